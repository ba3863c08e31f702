"""Inverse kinematics: configurations in which bodies reach their targets."""
# mypy: ignore-errors

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import flag, names, one_of, positive, require_robot, whole
from liedyn.machine.compiled.slices import Slices
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import InputError, LiedynError, of_the_batch, shown, suggestion
from liedyn.mechanics.constraints.assembly import close_around
from liedyn.mechanics.tree.configuration import random_configuration
from liedyn.model.calls.boundary import as_floats, states
from liedyn.model.kinds import JOINTS
from liedyn.model.packed import LINK_IV, LINK_NV, LINK_PRIMITIVE, links_of
from liedyn.tasks.reaching.packing import pack
from liedyn.tasks.reaching.reaching_problem import HELD, PLACE
from liedyn.tasks.reaching.reaching_search import WAITING, SearchEffort, SearchRows, search_states
from liedyn.tasks.reaching.target_rows import LEVEL, ROW, ROWS
from liedyn.tasks.reaching.targets import checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.tasks.reaching.targets import Target
    from liedyn.typing import Array, ArrayLike

SHARED = 64
"""Number of rows above which threads are used."""
FIRST_ITERATIONS = 1024
"""Steps of descents in the first slice of a batch, 10 to 30 us each."""
ALL = 2 ** 62
"""Budget of steps for a single row: no limit."""
UNREACHED = ("raise", "warn", "ignore")


class ReachError(LiedynError):
    """Targets could not be reached.

    Attributes
    ----------
    nearest : InverseKinematics
        The nearest configurations that were found.

    Examples
    --------
    >>> import liedyn as ld
    >>> try:
    ...     ld.inverse_kinematics(ld.load("panda"), ld.PointTarget("panda_hand", (2.0, 0.0, 0.0)))
    ... except ld.ReachError as error:
    ...     bool(error.nearest.reached)
    False
    """

    nearest: InverseKinematics

    def __init__(self, text: str, nearest: InverseKinematics) -> None:
        super().__init__(text)
        self.nearest = nearest


class ReachWarning(UserWarning):
    """Some targets of a batch have not been reached."""


@dataclass(frozen=True, repr=False)
class InverseKinematics:
    """Configurations that reach targets.

    Attributes
    ----------
    q : ndarray, shape (..., nq)
        Closed configurations within the limits.
    reached : bool or ndarray of bool, shape (...)
        Whether all targets of the first priority are within their tolerances.
    errors : dict
        Remaining error by name of a target, without weights: (..., 6) for poses, rotation vector [rad] and then
        distance [m]; (..., 3) for directions and orientations [rad], points and centres of mass [m].
    iterations : int or ndarray of int, shape (...)
        Number of steps of all descents.
    restarts : int or ndarray of int, shape (...)
        Number of random starts used.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.inverse_kinematics(panda, ld.PointTarget("panda_hand", [[0.4, 0.2, 0.3], [0.4, -0.2, 0.3]]))
    InverseKinematics(2 of 2 reached)
    """

    q: Array
    reached: bool
    errors: dict[str, Any]
    iterations: int
    restarts: int

    def __repr__(self) -> str:
        return f"InverseKinematics({np.count_nonzero(self.reached)} of {np.size(self.reached)} reached)"


def inverse_kinematics(robot: Robot, targets: Target | Sequence[Target], q0: ArrayLike | None = None,
                       posture: ArrayLike | None = None, hold: Sequence[str] = (), limits: bool = True,
                       tolerance: float = 1e-6, angle_tolerance: float = 1e-6, restarts: int = 20,
                       iterations: int = 100, seed: int = 0, path: bool = False,
                       unreached: Literal["raise", "warn", "ignore"] | None = None) -> InverseKinematics:
    """Configurations in which bodies reach their targets: with closed loops, within limits, for one target or batches.

    Parameters
    ----------
    robot : Robot
        Its loops and other constraints stay closed; moving ones are at the robot's time (``robot.at(t)``).
    targets : Target or sequence of Target
        `PoseTarget`, `PointTarget`, `DirectionTarget`, `OrientationTarget`, `CenterOfMassTarget`, or your own
        (`Target`), with weights and priorities. Leading axes of their goals make a batch.
    q0 : array_like, shape (..., nq), optional
        Start [rad, m; quaternions (x, y, z, w)]; by default ``robot.home``. It is closed, and moved within the limits.
    posture : array_like, shape (..., nq), optional
        Configuration to stay near, in the freedom that all targets leave.
    hold : sequence of str, optional
        Coordinates and joints that keep their initial values; the position of a free joint, such as ``base.x``, in
        its parent's frame. A rotation is held as a whole, by its joint or by all its components.
    limits : bool
        Keep the coordinates within ``robot.lower`` and ``robot.upper``.
    tolerance, angle_tolerance : float
        Distance [m] and angle [rad] at which a target is reached, unless it has a tolerance of its own.
    restarts : int
        Number of random starts, used if the start and its reflections do not lead to all targets.
    iterations : int
        Largest number of steps of each descent.
    seed : int
        Seed of the random configurations; they are the same for all rows of a batch.
    path : bool
        The last leading axis is a path: each configuration is searched from the one before, and so stays on its branch
        as long as the branch exists; only the first one starts at q0.
    unreached : {"raise", "warn", "ignore"}, optional
        What to do if targets of the first priority are not reached: by default a single one raises an error, and a
        batch warns once.

    Returns
    -------
    InverseKinematics

    Raises
    ------
    ReachError
        Targets are not reached; the error has the nearest configuration that was found.
    ClosureError
        The start cannot be closed, or not within the limits.
    InputError
        A name is unknown, a shape does not fit, an entry is not finite, or a pose is no rigid transformation.

    Notes
    -----
    Damped Gauss-Newton on the manifold of closed configurations (Levenberg-Marquardt; damping by Sugihara 2011), exact
    Jacobians, loops as equations, limits as an active set within each step, priorities by projection on the freedom
    that higher ones leave. A descent that ends at limits continues from its reflection at the middle of them. For
    targets out of reach the nearest configuration is a local minimum. Rolling and other constraints on velocities do
    not restrict configurations.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> there = ld.pose(panda, ld.random_configuration(panda, rng=0, size=100), "panda_hand")
    >>> found = ld.inverse_kinematics(panda, ld.PoseTarget("panda_hand", there))
    >>> bool(found.reached.all()), bool(abs(ld.pose(panda, found.q, "panda_hand") - there).max() < 1e-5)
    (True, True)
    """
    require_robot(robot)
    iterations = whole("iterations", iterations, 1)
    if unreached is not None:
        one_of("unreached", unreached, UNREACHED)
    packed = pack(robot, checked(targets), positive("tolerance", tolerance),
                  positive("angle_tolerance", angle_tolerance), flag("limits", limits), held(robot, hold))
    lead, q, posture, goals = rows_for_targets(robot, packed, robot.home if q0 is None else q0, posture, "q0")
    if flag("path", path) and not lead:
        raise InputError("a path needs targets with a leading axis, got a single one")
    length = lead[-1] if path else 0
    starts = _starts(robot, whole("seed", seed), whole("restarts", restarts))
    start, count = q.copy(), len(q)
    errors, (status, counts, used) = np.empty((count, packed.problem.weights.size)), np.zeros((3, count), np.int64)
    every = SearchRows(q, goals, posture, errors, status, counts, used)

    def search(rows):
        status[rows] = WAITING
        part = SearchRows(*(np.ascontiguousarray(x[rows]) for x in every))
        some = len(part.q)
        slices = Slices(FIRST_ITERATIONS).until(lambda: (part.status != WAITING).all()) if some > 1 else (ALL,)
        for budget in slices:
            search_states.at_once(0, some, not path and some >= SHARED, robot.packed, part, packed.problem, starts,
                                  SearchEffort(iterations, length, budget))
        for x, found in zip(every, part):
            x[rows] = found

    search(slice(None))
    if (status < 0).any():
        _close_starts(robot, lead, start, (q, status), search, path, packed.problem.fixed)
    functions = robot.functions | packed.functions
    (forget_errors if (status == 1).all() else raise_errors)(functions)
    found = InverseKinematics(
        q.reshape((*lead, robot.nq)), _shaped(_first_reached(packed.problem, errors), lead),
        {name: errors[:, rows].reshape((*lead, rows.stop - rows.start)) for name, rows in packed.rows.items()},
        _shaped(counts, lead), _shaped(used, lead))
    if unreached != "ignore" and not np.all(found.reached):
        _tell(robot, packed, found, unreached or ("warn" if lead else "raise"))
    return found


def _starts(robot, seed, count):
    """Random configurations, the same for the same seed; stored, as computing them takes longer than a search."""
    known = robot._memo.get("starts", (None,))
    if known[0] != (seed, count):
        known = robot._memo["starts"] = (seed, count), random_configuration(robot, seed, count)
    return known[1]


def held(robot, hold):
    """HELD, PLACE or 0 for each velocity coordinate (nv), as in `Problem.fixed`.

    Raises InputError if a name is unknown, or names a part of a rotation.
    """
    fixed, hold = np.zeros(robot.nv, np.int64), names("hold", hold)
    if not hold:
        return fixed
    for name in hold:
        dofs = [j for j, each in enumerate(robot.velocity_names)
                if each == name or name in robot.joint_names and each.startswith(f"{name}.")]
        if not dofs:
            raise InputError(f"cannot hold {shown(name)}, {suggestion(name, robot.velocity_names + robot.joint_names)}")
        fixed[dofs] = HELD
    for link in links_of(robot.packed)[0]:
        if not JOINTS[link[LINK_PRIMITIVE]].has_quaternion:
            continue
        turn, place = (fixed[link[LINK_IV] + k:link[LINK_IV] + k + 3] for k in (0, 3))
        if turn.any() and not turn.all():
            name = robot.velocity_names[link[LINK_IV] + int(turn.argmax())]
            raise InputError(f"cannot hold {name!r}, a component of a rotation, which is held whole: name all three or "
                             f"the joint")
        if link[LINK_NV] > 3 and not place.all():
            place *= PLACE
    return fixed


def rows_for_targets(robot, packed, q, posture, name):
    """The common leading shape of all arguments, and rows of q, postures (without columns if none) and goals."""
    given = {"q": as_floats(name, q, robot.nq)}
    if posture is not None:
        given["q1"] = as_floats("posture", posture, robot.nq)
    own, *rows = states(robot, **given)
    wanted = packed.goals.shape[:-1]
    try:
        lead = np.broadcast_shapes(own, wanted)
    except ValueError:
        raise InputError(f"leading axes of targets {wanted} and of {name} and posture {own} do not broadcast") from None
    count = math.prod(lead)

    def spread(x, lead_of_x):
        if lead_of_x != lead:
            x = np.broadcast_to(x.reshape((*lead_of_x, x.shape[-1])), (*lead, x.shape[-1]))
        return np.array(x.reshape(count, x.shape[-1]), order="C")

    q = spread(rows[0], own)
    return lead, q, spread(rows[1], own) if len(rows) > 1 else np.empty((count, 0)), spread(packed.goals, wanted)


def _close_starts(robot, lead, start, rows_of, search, path, fixed):
    """Searches again from starts that the library's assembly has closed, with held coordinates at their values."""
    q, status = rows_of
    rows = np.flatnonzero(status < 0)
    for b in rows:
        with of_the_batch(lead, b):
            q[b] = close_around(robot, start[b], fixed)
    search(slice(None) if path else rows)
    if (status < 0).any():
        b = int(np.flatnonzero(status < 0)[0])
        with of_the_batch(lead, b):
            raise InputError(f"the start of {robot.name!r} is closed beyond its limits only; give q0 within them, or "
                             "limits=False")


def _first_reached(problem, errors):
    """True if all targets of the first level are within their tolerances."""
    reached = np.ones(len(errors), bool)
    for record, tolerance in zip(problem.records.tolist(), problem.tolerances):
        if record[LEVEL] == 0:
            rows = slice(record[ROW], record[ROW] + record[ROWS])
            counted = errors[:, rows] * (problem.weights[rows] > 0.0)
            reached &= np.einsum("ij,ij->i", counted, counted) <= tolerance * tolerance
    return reached


def _shaped(x, lead):
    return x.reshape(lead) if lead else x[0].item()


def _tell(robot, packed, found, how):
    """Raises or warns with the remaining errors."""
    missed = ~np.atleast_1d(found.reached).ravel()
    worst = {name: np.linalg.norm(error.reshape(len(missed), -1)[missed], axis=1).max()
             for name, error in found.errors.items()}
    left = ", ".join(f"{name} is off by {size:.3g}" for name, size in worst.items())
    what = f"targets of {robot.name!r} not reached"
    if np.ndim(found.reached):
        what = f"{np.count_nonzero(missed)} of {missed.size} {what}"
    text = f"{what}: at most {left} [m, rad]; out of reach, or try more restarts"
    if how == "raise":
        raise ReachError(text, found)
    warnings.warn(text, ReachWarning, stacklevel=3)
