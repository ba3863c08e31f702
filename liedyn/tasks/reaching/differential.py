"""Differential inverse kinematics: velocities towards targets, with loops and within limits, for control.

    min |W (J v + rate e)|^2 + damping |v|^2    G v = b - residual / dt    low <= v <= up    within low_i <= A v <= up_i

level of priority after level, each in the freedom that the levels before leave. Without the user's inequalities that is
one step of inverse kinematics (`liedyn.tasks.reaching.reaching_steps`), compiled; with them, or on request, a solver of
quadratic programs is used.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.machine.arguments import flag, floats, non_negative, positive, require_robot
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, of_the_batch, shown
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.vectors import inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.tree.configuration import difference_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.mechanics.tree.places import turn_free_rows
from liedyn.model.calls.batches import batch
from liedyn.model.calls.boundary import require_usable
from liedyn.model.packed import N_ROWS, PackedModel
from liedyn.tasks.reaching.descent import put_bounds, put_targets
from liedyn.tasks.reaching.packing import pack
from liedyn.tasks.reaching.quadratic import InfeasibleError, solve
from liedyn.tasks.reaching.reaching_problem import HELD, PLACE, room_for
from liedyn.tasks.reaching.reaching_steps import Task, bounded_step
from liedyn.tasks.reaching.solve import SHARED, held, rows_for_targets
from liedyn.tasks.reaching.target_rows import PackedTargets, target_errors
from liedyn.tasks.reaching.targets import checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.tasks.reaching.targets import Target
    from liedyn.typing import Array, ArrayLike

CONTRADICTION = 1e-8
"""Residual of the loops' equations, relative to their largest number or 1, below which a velocity satisfies them."""


@kernel_in_place
def put_motion(model, problem, at, still, pace, room, drift):
    """Rows of targets with rate times their errors, and rows of loops with G v = -g, at = (q, goal); `drift` (m) is
    scratch."""
    q, goal = at
    world_positions(SCALAR, model, q, room.world)
    targets = PackedTargets(problem.records, problem.constants, goal)
    target_errors(model, q, room.world, room.masses, targets, room.error)
    put_targets(model, problem, room, goal, q)
    world_velocities(SCALAR, model, still, room.world)
    residual_rows(model, q, room.world, room.g)
    velocity_rows(model, q, still, room.world, drift)
    jacobian_rows(model, q, room.world, room.G)
    for i in range(model.ints[N_ROWS]):
        room.g[i] = drift[i] + room.g[i] / pace.dt
    for i in range(room.e.size):
        room.e[i] *= pace.rate
    put_places(model, problem, room, q)


@kernel_in_place
def put_places(model, problem, room, q):
    """Rows after those of loops: the rates of held positions."""
    i = m = model.ints[N_ROWS]
    for j in range(problem.fixed.size):
        if problem.fixed[j] == PLACE:
            room.g[i] = 0.0
            room.G[i, :] = 0.0
            room.G[i, j] = 1.0
            i += 1
    turn_free_rows(model, q, room.G[m:], False)


@kernel_in_place
def put_speeds(problem, speeds, dt, room, q):
    """Bounds of the velocities; a coordinate beyond its limits returns as fast as it may."""
    put_bounds(problem, room, q)
    for j in range(room.d.size):
        room.low[j] = min(max(room.low[j] / dt, -speeds[j]), speeds[j])
        room.up[j] = max(min(room.up[j] / dt, speeds[j]), -speeds[j])
        if problem.fixed[j] == HELD:
            room.low[j] = room.up[j] = 0.0


@kernel_in_place
def put_terms(room, toward, rows):
    """[W J | W e], [G | -g], bounds and the wanted step, as rows for a solver."""
    n, r, m = room.d.size, room.e.size, room.g.size
    for j in range(n):
        for i in range(r):
            rows[i, j] = room.J[i, j]
        for i in range(m):
            rows[r + i, j] = room.G[i, j]
        rows[r + m, j], rows[r + m + 1, j] = room.low[j], room.up[j]
        rows[r + m + 2, j] = toward[j] if toward.size > 0 else 0.0
    for i in range(r + m + 3):
        rows[i, n] = room.e[i] if i < r else (-room.g[i - r] if i < r + m else 0.0)


class VelocityRows(NamedTuple):
    """What there is of each state: q (count, nq), goals, posture (count, nq, or no columns), the result v (count, nv),
    and `left`, its relative residual in the loops' equations.

    For a solver `terms` (count, r + m + 3, nv + 1), which otherwise has no rows, receives `put_terms`, and v does not
    change.
    """

    q: np.ndarray
    goals: np.ndarray
    posture: np.ndarray
    terms: np.ndarray
    v: np.ndarray
    left: np.ndarray


class Pace(NamedTuple):
    """Largest velocities (nv), rate at which errors decay, period, and damping."""

    speeds: np.ndarray
    rate: float
    dt: float
    damping: float


@batch
def target_velocities(begin, end, model, rows, problem, pace):
    """The velocities for all `VelocityRows`."""
    model = PackedModel(model.ints, model.floats.copy())
    fixed = (problem.fixed == HELD).astype(np.int64)
    room = room_for(model, problem.weights.size, problem.ends.size, (problem.fixed == PLACE).sum())
    still, drift, toward = np.zeros(room.d.size), np.empty(room.g.size), room.toward
    if rows.posture.shape[1] == 0:
        toward = toward[:0]
    room.squares[:] = 1.0  # damping is absolute
    for b in range(begin, end):
        put_motion(model, problem, (rows.q[b], rows.goals[b]), still, pace, room, drift)
        put_speeds(problem, pace.speeds, pace.dt, room, rows.q[b])
        if toward.size > 0:
            difference_kernel(model, rows.q[b], rows.posture[b], toward)
            for j in range(toward.size):
                toward[j] *= pace.rate
        if rows.terms.shape[1] > 0:
            put_terms(room, toward, rows.terms[b])
            continue
        task = Task(room.J, room.e, problem.ends, room.squares, room.G, room.g, toward, room.low, room.up)
        bounded_step(task, fixed, pace.damping, True, room.steps, rows.v[b])
        size = max(1.0, largest_size(room.g))
        for i in range(room.g.size):
            room.g[i] += inner(room.G[i], rows.v[b])
        rows.left[b] = largest_size(room.g) / size


def differential_inverse_kinematics(robot: Robot, q: ArrayLike, targets: Target | Sequence[Target], dt: float,
                                    rate: float | None = None, posture: ArrayLike | None = None,
                                    hold: Sequence[str] = (), limits: bool = True,
                                    velocity_limit: float | ArrayLike | None = None, damping: float = 1e-6,
                                    inequalities: tuple[Any, ...] | None = None, solver: str | None = None) -> Array:
    """Velocity towards targets: with loops, within limits of positions and velocities; for control, in each period.

    Parameters
    ----------
    robot : Robot
        Its loops and other constraints are satisfied, and drift of loops is corrected; moving ones are at the robot's
        time (``robot.at(t)``).
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    targets : Target or sequence of Target
        As for `inverse_kinematics`.
    dt : float
        Period [s]: positions stay within their limits for that time.
    rate : float, optional
        Errors decay like exp(-rate t) [1/s]; by default ``1 / dt``, as fast as one period allows.
    posture : array_like, shape (..., nq), optional
        Configuration to approach, at the same rate, in the freedom that all targets leave.
    hold : sequence of str, optional
        Coordinates and joints that do not move, as for `inverse_kinematics`.
    limits : bool
        Keep the coordinates within ``robot.lower`` and ``robot.upper``; those beyond return as fast as they can.
    velocity_limit : float or array_like, shape (nv,), optional
        Largest velocities [rad/s, m/s]; by default ``robot.velocity_limit``.
    damping : float
        Weight of the squared velocities: keeps them finite next to singular configurations.
    inequalities : tuple, optional
        (A, low, up), shapes (k, nv), (k,) and (k,), for one state: low <= A v <= up. Needs a solver.
    solver : str, optional
        ``"piqp"`` (extra `ik`), or any solver of ``qpsolvers``, in place of the library's active-set method.

    Returns
    -------
    v : ndarray, shape (..., nv)
        [rad/s, m/s]

    Raises
    ------
    InfeasibleError
        Loops, limits and inequalities contradict each other.
    InputError
        A name is unknown, a shape does not fit, or an entry is not finite.
    LiedynError
        The solver is not installed.

    Notes
    -----
    A quadratic program for each level of priority. Its linear model is valid for small steps: with limits and targets
    out of reach, `integrate` v over `dt` and `close` again.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> hand = ld.PointTarget("panda_hand", (0.4, 0.2, 0.5))
    >>> q = panda.home
    >>> for _ in range(300):
    ...     q = ld.integrate(panda, q, 0.01 * ld.differential_inverse_kinematics(panda, q, hand, 0.01, rate=5.0))
    >>> bool(abs(hand.error(panda, q)).max() < 1e-5)
    True
    """
    require_robot(robot)
    dt = positive("dt", dt)
    rate = 1.0 / dt if rate is None else positive("rate", rate)
    if not rate * dt <= 1.0 + 1e-12:
        raise InputError(f"rate must be at most 1 / dt = {1.0 / dt:g}, beyond which errors are overshot, got {rate:g}")
    packed = pack(robot, checked(targets), limits=flag("limits", limits), fixed=held(robot, hold))
    speeds = _speeds(robot, velocity_limit)
    lead, q, posture, goals = rows_for_targets(robot, packed, q, posture, "q")
    inequalities = _inequalities(robot, inequalities, lead)
    if not isinstance(solver, str | None):
        raise InputError(f"solver must be the name of one, got {shown(solver)}")
    count, n = len(q), robot.nv
    r, m = packed.problem.weights.size, len(robot.row_names) + int((packed.problem.fixed == PLACE).sum())
    if inequalities is not None and solver is None:
        solver = "piqp"
    terms = np.empty((count, 0 if solver is None else r + m + 3, n + 1))
    v, left = np.zeros((count, n)), np.zeros(count)
    target_velocities.on(count, count >= SHARED, robot.packed, VelocityRows(q, goals, posture, terms, v, left),
                         packed.problem, Pace(speeds, rate, dt, non_negative("damping", damping)))
    raise_errors(robot.functions | packed.functions)
    for b in np.arange(count) if solver is not None else np.flatnonzero(~(left <= CONTRADICTION)):
        with of_the_batch(lead, b):
            constraint_jacobian(robot, q[b])  # raises an error if a row is not defined
            if solver is not None:
                v[b] = _by_solver(terms[b], packed.problem, posture.shape[1] > 0, damping, inequalities, solver)
            if not left[b] <= CONTRADICTION:
                raise InfeasibleError(f"no velocity of {robot.name!r} keeps its loops closed and its coordinates "
                                      f"within their limits: {left[b]:.3g} of the loops' velocity is left", left[b])
    return v.reshape((*lead, n))


def _speeds(robot, limit):
    speeds = robot.velocity_limit if limit is None else floats("velocity_limit", limit)
    if speeds.shape not in ((), (robot.nv,)) or not (speeds >= 0.0).all():
        raise InputError(f"velocity_limit must be a number or {robot.nv}, none negative, got {shown(limit)}")
    return np.broadcast_to(speeds, (robot.nv,)).copy()


def _inequalities(robot, given, lead):
    """(A, low, up) as arrays, or None."""
    if given is None:
        return None
    if lead:
        raise InputError(f"inequalities belong to one state, got leading axes {lead}")
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise InputError(f"inequalities must be (A, low, up), got {shown(given)}")
    A, low, up = floats("A", given[0]), floats("low", given[1]), floats("up", given[2])
    if A.ndim != 2 or A.shape[1] != robot.nv or low.shape != A.shape[:1] or up.shape != A.shape[:1]:
        raise InputError(f"inequalities (A, low, up) must have shapes (k, {robot.nv}), (k,), (k,), got {A.shape}, "
                         f"{low.shape}, {up.shape}")
    require_usable("A", A, 2)
    if not (low <= up).all():
        raise InputError("lower bounds of inequalities must not be above the upper ones, nor NaN")
    return A, low, up


def _by_solver(terms, problem, has_posture, damping, inequalities, solver):
    """The velocity of one state by a solver, level after level."""
    n, r = terms.shape[1] - 1, problem.weights.size
    targets, loops, (low, up, toward) = terms[:r], terms[r:-3], terms[-3:, :n]
    fixed, begin, v = [loops], 0, None
    for end in problem.ends:
        J, e = targets[begin:end, :n], targets[begin:end, n]
        v = solve(J, -e, damping, np.vstack(fixed), (low, up), inequalities, solver)
        fixed.append(np.column_stack([J, J @ v]))
        begin = end
    if has_posture:
        v = solve(np.eye(n), toward, 0.0, np.vstack(fixed), (low, up), inequalities, solver)
    return v
