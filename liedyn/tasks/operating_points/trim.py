"""Equilibria and steady motions: coordinates, speeds and inputs at which nothing accelerates.

The residual is wdot(y, w, u, p), the accelerations of the independent velocities; its derivatives are the lower rows of
the exact A and B of `linearize`, and so Newton's method on the manifold is

    [A_wy A_ww B_w P_w] (dy, dw, du, dp) = -wdot        R_h K dy = held value - value

without finite differences (`liedyn.tasks.operating_points.equilibrium_problem`,
`liedyn.tasks.operating_points.newton`). Closing the loops at each step keeps the state on the manifold
(`liedyn.close`).

If Newton's method stops without a solution, and all coordinates are unknown, the mechanism is relaxed from the guess:
coordinates move with strong damping, without inertia, dy/dt = wdot(y). If there is a potential energy, that is its
steepest descent in the metric of the inertia, and ends at a stable equilibrium. Pseudo-transient continuation (Kelley
and Keyes 1998) makes implicit Euler steps, which get longer as the residual falls,

    (1 / h - A_wy) dw = wdot        h_next = h |wdot| / |wdot next|

until they are Newton steps.

Contacts of an operating point: those that touch stick, and must push and not slip at the result.

The guess determines which contacts touch. They are closed as equations during Newton's method; then the dynamics of the
robot itself, with complementarity of contacts (`liedyn.mechanics.contact.contact_modes`), checks them: a contact that
would pull is opened, one that is penetrated is closed, and the search continues.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, names, positive, require_robot, whole
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import (
    ClosureError, ConditionWarning, InputError, LiedynError, ModelError, SingularConfigurationError, listed,
    of_the_batch, shown, suggestion,
)
from liedyn.mechanics.contact.contact_modes import watched
from liedyn.mechanics.contact.contact_state import DEEPEST, with_rows_of
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.model.calls.boundary import states
from liedyn.tasks.operating_points.equilibrium_problem import Problem, place_rows
from liedyn.tasks.operating_points.newton import search, unmet
from liedyn.tasks.operating_points.trim_result import TrimError, outcome, stacked

CLOSED_GAP = 1e-3
"""Gap [m, rad] at the guess below which a contact touches."""


def touching(robot, q, v):
    """Names of the contacts that touch at a guess.

    Raises InputError if one of them slips.
    """
    contacts, gaps = watched(robot), gaps_of(robot, q)
    psi = _rows(robot, q, v)[4]
    closed = [name for name, gap in gaps.items() if gap <= CLOSED_GAP]
    limit = CLOSED_GAP * max(1.0, float(np.abs(v).max(initial=0.0)))
    for c, name in enumerate(contacts.names):
        if name in closed and contacts.friction[c] > 0.0 and contacts.slips(psi, [c])[0] > limit:
            raise InputError(f"contact {shown(name)} slips at this guess: trim takes contacts that stick; switch it "
                             "to 'sliding', which has no friction, or make v consistent with complete_velocity()")
    return closed


def gaps_of(robot, q):
    """Gaps of the contacts that may open and close, by name."""
    contacts = watched(robot)
    residual = _rows(robot, q, np.zeros(robot.nv))[3]
    return dict(zip(contacts.names, contacts.side * residual[contacts.first]))


def _rows(robot, q, v):
    terms = terms_kernel(with_rows_of(robot.packed, watched(robot), slice(None)), q, v, np.empty(0))
    raise_errors(robot.functions)
    return terms


def with_closed(robot, closed):
    """The robot with these contacts closed as equations, and the others off."""
    contacts = watched(robot)
    return robot.switched({name: False if name not in closed else "sticking" if friction > 0.0 else "sliding"
                           for name, friction in zip(contacts.names, contacts.friction)})


def held_up(robot, point, closed):
    """Contacts at a point of ``with_closed(robot, closed)``: names of those that should be closed, of those that slip
    in spite of friction, and the `ForwardDynamics` of the robot itself, None if the closed contacts should change."""
    contacts = watched(robot)
    free = point.robot.switched(dict.fromkeys(contacts.names, True))
    deep = [name for name, gap in gaps_of(free, point.q).items() if name not in closed and gap < -DEEPEST]
    if deep:
        return [*closed, *deep], [], None
    found = forward_dynamics(free, point.q, point.v, actuator_matrix(free, point.q) @ point.u)
    stay = [name for name in closed if found.contacts[name] in ("sticking", "sliding")]
    if stay != closed:
        return stay, [], None
    rub = dict(zip(contacts.names, contacts.friction))
    return closed, [name for name in closed if found.contacts[name] == "sliding" and rub[name] > 0.0], found


if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.tasks.operating_points.trim_result import Trim
    from liedyn.typing import ArrayLike

SHORT, LEAST, MOST = 0.1, 1e-12, 1e12
"""Largest change of a coordinate [rad, m] in the first step in time; steps in time below which the relaxation ends
without success, and the longest one."""
STEPS, NEAR = 300, 1e-6
"""Largest number of steps, and the factor of the residual at which Newton's method takes over."""


def relaxed(problem, here):
    """The point where a mechanism is nearly at rest and the number of steps; None if it does not come to rest, or if
    the unknowns are not exactly all coordinates."""
    count = len(here.w)
    if here.y != here.speeds or here.free.keys() != set(here.y) or here.values or problem.bounds or here.w.any():
        return None, 0
    start, before = np.linalg.norm(here.r), np.linalg.norm(here.r)
    h = SHORT / max(np.abs(here.r).max(initial=0.0), 1.0)
    for k in range(STEPS):
        if before <= NEAR * start:
            return here, k
        try:
            rates = place_rows(here.robot, here.q, here.y) @ here.ss.S  # rates of y by velocities w
            step = rates @ np.linalg.solve(np.eye(count) / h - here.J @ rates, here.r)
            longest = (here.room[:, 1] / np.maximum(np.abs(step), 1e-300)).min(initial=1.0)
            if longest < 1.0 and h > LEAST:  # beyond this displacement the linear model is not valid
                h *= 0.5
                continue
            there = problem.moved(here, step)
        except (ClosureError, ModelError, SingularConfigurationError, np.linalg.LinAlgError):
            h *= 0.25
            if h < LEAST:
                return None, k
            continue
        after = np.linalg.norm(there.r)
        h = min(h * np.clip(before / max(after, 1e-300), 0.3, 3.0), MOST)
        here, before = there, after
    return None, STEPS

def trim(robot: Robot, q: ArrayLike, v: ArrayLike | None = None, u: ArrayLike | dict[str, Any] | None = None,
         hold: dict[str, Any] | Sequence[str] | None = None, free: Sequence[str] | None = None,
         bounds: dict[str, Any] | None = None, tolerance: float = 1e-10, iterations: int = 100,
         rank_tolerance: float = RANK_TOLERANCE) -> Trim:
    """Find an equilibrium, or a steady motion, near a guess.

    At which configuration does it come to rest under these inputs: ``trim(robot, q, u=[3.0])``. Which inputs hold this
    configuration: ``trim(robot, q, free=["motor"])``. Which spring does: ``trim(robot, q, free=["stiffness:spring"])``.
    In general, coordinates, speeds, inputs, gravity and spring parameters are given or unknown, by name.

    Parameters
    ----------
    robot : Robot
        At its own time if constraints move. Contacts that touch at the guess (nearer than 1 mm) are closed; those that
        would have to pull are opened.
    q : array_like, shape (..., nq)
        Guess of the configuration [rad, m; quaternions (x, y, z, w)]; its loops are closed first.
    v : array_like, shape (..., nv), optional
        Velocity of a steady motion [rad/s, m/s]; default: at rest. If it violates the constraints, only its independent
        velocities are used.
    u : array_like, shape (..., nu), or dict, optional
        Inputs of the actuators, given or a guess; default zero. Or some of them by name.
    hold : dict or sequence of str, optional
        Quantities that are held, at values (...) by name, or at the values of the guess: coordinates of the tree or of
        cut joints, each one number; ``velocity:`` and the name of a coordinate; and parameters as in `free`.
    free : sequence of str, optional
        Unknowns: coordinates; ``velocity:`` and the name of a coordinate; actuators, or if the robot
        declares none ``force:`` and the name of a coordinate; ``gravity`` (its size, along its direction),
        ``gravity.x``, ``gravity.y``, ``gravity.z``; ``stiffness:``, ``damping:``, ``rest:`` and the name of a joint
        with one coordinate; ``stiffness:``, ``damping:``, ``preload:``, ``length:`` or ``rest:`` and the name of a
        force element; ``mass:``, ``com.x:``, ``inertia.xx:`` and the name of a body (see `sensitivities`).
        Default: all coordinates that are not held. If no coordinate is named here, the configuration is held; else the
        other independent coordinates are held.
    bounds : dict, optional
        (lowest, highest) by name of an unknown.
    tolerance : float
        Largest acceleration that counts as zero, relative to the largest one that a unit change of the unknowns causes
        (or to 1).
    iterations : int
        Largest number of steps.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    Trim

    Raises
    ------
    TrimError
        No equilibrium was found; the message names the acceleration that is left and its size, or the contact that
        slips. For a batch the error has all other states.
    InputError
        A shape does not fit, a name is unknown, the guess violates its bounds, a contact slips at the guess, or
        the unknowns have no effect.
    ClosureError
        The loops do not close with the coordinates that are held.

    Notes
    -----
    Newton's method on the manifold, with exact derivatives, finds unstable equilibria too. If it stops, and the
    unknowns are exactly all coordinates, the mechanism moves with strong damping, without inertia, to a stable
    equilibrium (`liedyn.tasks.operating_points.trim`).

    With velocities the condition is that they stay constant: steady turning, rolling at constant speed. `Trim.drift`
    shows whether the motion remains steady.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> held = ld.trim(loader, loader.home, free=loader.actuator_names)
    >>> lower = ld.trim(loader, loader.home, u=0.99 * held.u, hold=["bucket"], free=["boom", "tilt_cylinder"])
    >>> bool(abs(ld.forward_dynamics(loader, lower.q, lower.v, lower.tau).a).max() < 1e-6)
    True
    """
    require_robot(robot)
    tolerance, iterations = positive("tolerance", tolerance), whole("iterations", iterations, 1)
    given = hold if isinstance(hold, dict) else dict.fromkeys(names("hold", () if hold is None else hold))
    given = {name: None if x is None else floats(f"hold of {shown(name)}", x) for name, x in given.items()}
    u = _inputs(robot, u)
    lead, q, v, u, given = _broadcast(robot, q, v, u, given)

    def solved(b):
        held = {name: x if x is None else float(x[b]) for name, x in given.items()}
        with of_the_batch(lead, b):
            return _solve(robot, q[b], v[b], u[b], held, (free, bounds, rank_tolerance), (tolerance, iterations))

    if not lead:
        return solved(0)
    results, first = [], None
    for b in range(len(q)):
        try:
            results.append(solved(b))
        except LiedynError as error:
            if isinstance(error, InputError) and not results:
                raise
            results.append(getattr(error, "nearest", None))
            first = first or error
    if first is None:
        return stacked(results, lead)
    count = sum(each is None or not each.reached for each in results)
    if all(each is None for each in results):
        raise first
    raise TrimError(f"{first}; {len(results) - count} of {len(results)} states were reached, the error has them",
                    stacked(results, lead)) from first


def _inputs(robot, u):
    """Rows of inputs."""
    nu, known = len(robot.actuator_names), robot.actuator_names
    if isinstance(u, dict):
        for name in u:
            if name not in known:
                raise InputError(f"u: unknown {shown(name)}, {suggestion(name, known)}")
        parts = [floats(f"u of {shown(name)}", u.get(name, 0.0)) for name in known]
        try:
            u = np.stack(np.broadcast_arrays(*parts), -1) if parts else np.zeros(0)
        except ValueError:
            raise InputError(f"shapes of u do not fit each other: {', '.join(str(x.shape) for x in parts)}") from None
    u = np.zeros(nu) if u is None else floats("u", u)
    if u.shape[-1:] != (nu,) or not np.isfinite(u).all():
        raise InputError(f"u must be finite and have shape (..., {nu}), got {u.shape}")
    return u


def _broadcast(robot, q, v, u, given):
    """The common leading shape of all arguments, and their rows."""
    lead, q, v = states(robot, q=q, v=np.zeros(robot.nv) if v is None else v)
    shapes = {"q and v": lead, "u": u.shape[:-1]} | {
        f"hold of {shown(name)}": x.shape for name, x in given.items() if x is not None}
    for name, x in given.items():
        if x is not None and not np.isfinite(x).all():
            raise InputError(f"hold of {shown(name)} must be finite, got {shown(x.tolist())}")
    try:
        every = np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise InputError("leading axes do not broadcast: " + ", ".join(f"{key} {x}" for key, x in shapes.items())
                         ) from None
    count = math.prod(every)
    q, v = (np.broadcast_to(x.reshape(lead + x.shape[1:]), every + x.shape[1:]).reshape(count, x.shape[1])
            for x in (q, v))
    u = np.broadcast_to(u, every + u.shape[-1:]).reshape(count, u.shape[-1])
    rows = {name: x if x is None else np.broadcast_to(x, every).ravel() for name, x in given.items()}
    return every, q, v, u, rows


def _solve(robot, q, v, u, given, ways, limits):
    """The `Trim` near one guess; `ways` are further arguments of `Problem`, `limits` those of `search`."""
    if not watches(robot):
        problem, here, count = _search(robot, q, v, u, given, ways, limits)
        return outcome(problem, here, count, True)
    closed, tried = touching(robot, q, v), set()
    while True:
        tried.add(frozenset(closed))
        problem, here, count = _search(with_closed(robot, closed), q, v, u, given, ways, limits)
        now, slip, found = held_up(robot, here, closed)
        if slip:
            raise TrimError(f"no equilibrium of {robot.name!r} near this guess: contact {shown(slip[0])} slips, its "
                            "friction does not hold it", outcome(problem, here, count, False))
        if found is not None:
            return outcome(problem, here, count, True, found)
        if frozenset(now) in tried:
            raise TrimError(f"no equilibrium of {robot.name!r} near this guess: contacts {listed(closed)} should be "
                            f"{listed(now) or 'open'}, and then they again",
                            outcome(problem, here, count, False))
        closed, q, v, u = now, here.q, here.v, here.u


def _search(robot, q, v, u, given, ways, limits):
    problem = Problem(robot, given, *ways)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        start = problem.start(q, v, u, given)
        here, count, reached = search(problem, start, *limits)
        if not reached:
            there, steps = relaxed(problem, start)
            if there is not None:
                here, more, reached = search(problem, there, *limits)
                count += steps + more
    others = [each for each in told if not issubclass(each.category, ConditionWarning)]
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if len(others) < len(told):  # states on the way were near singular ones: is the result?
        problem.point(here.robot, (here.q, here.v, here.u), (here.y, here.speeds), here.values)
    if not reached:
        raise TrimError(f"no equilibrium of {robot.name!r} near this guess: {unmet(problem, here)}",
                        outcome(problem, here, count, False))
    return problem, here, count
