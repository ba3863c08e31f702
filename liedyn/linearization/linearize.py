"""Linearization of any mechanism at any state: the public functions."""
import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from liedyn.arguments import names, non_negative, positive, require_robot
from liedyn.boundary import states, wrenches
from liedyn.constraints.independent import (
    Independent, all_holonomic, choose_positions, choose_speeds, given_coordinates, holonomic, singular_choice,
    tangent_conditions, wrong_count,
)
from liedyn.constraints.left_open import TANGENT
from liedyn.constraints.loops import reader_kernel
from liedyn.constraints.undefined import require_rows
from liedyn.contact.settled import settle
from liedyn.contact.watching import watches
from liedyn.dynamics.forward import POOR_CONDITION, raise_for_status, warn_if_poor
from liedyn.dynamics.nullspace import OK, RANK_TOLERANCE, WRONG_COUNT, nullspace_kernel
from liedyn.dynamics.singular import LINEARIZATION, require_regular, warn_if_digits_are_lost
from liedyn.dynamics.state import State
from liedyn.dynamics.states import FEW
from liedyn.errors import ClosureError, InputError, of_the_batch
from liedyn.functions import raise_errors
from liedyn.linearization.closed_loop import operating_points
from liedyn.linearization.contacts import Friction
from liedyn.linearization.local import linearize_kernel
from liedyn.linearization.one_state import linearize_one_state, room
from liedyn.linearization.outputs import output_plan
from liedyn.linearization.state_space import LocalStateSpace
from liedyn.linearization.space import Coordinates
from liedyn.linearization.states import Tolerances, linearize_registers, linearize_states, linearize_trees
from liedyn.linearization.upper_rows import turning

CLOSURE_TOLERANCE = 1e-8
"""Largest closure error, and largest violation of G v = b relative to |v|, of an operating point: the derivatives
are those of the manifold, and off it there is no state to linearize about."""


def require_consistent(robot, q, v, residual, psi, tolerance):
    """The state lies on the constraint manifold; returns the largest closure error.

    Raises
    ------
    ClosureError
        A loop is open, or another constraint is not met.
    InputError
        The velocity opens a loop, or breaks another constraint.
    """
    if not len(residual):
        return 0.0
    row = np.abs(residual).argmax()
    error, owner = abs(residual[row]), robot.row_owners[row]
    if error > tolerance:
        what = f"loop {owner!r} of {robot.name!r} is open" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r} is not met: off")
        raise ClosureError(f"{what} by {error:.3g} ({robot.row_names[row]}); assemble it first with close()",
                           float(error), owner, q)
    row = np.abs(psi).argmax()
    if abs(psi[row]) > tolerance * max(1.0, np.abs(v).max()):
        owner, moves = robot.row_owners[row], abs(psi[row])
        what = f"the loops of {robot.name!r}: |G v - b|" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r}: |G v - b|")
        raise InputError(f"v opens {what} = {moves:.3g} in {robot.row_names[row]}; "
                         "make v consistent with complete_velocity()")
    return float(error)


def _actuators(robot, loop=None):
    """tau = S_u u, with the inputs of a feedback behind those of the actuators."""
    if "actuators" not in robot.memo:  # the robot's own is read-only: Numba would compile all kernels once more for it
        robot.memo["actuators"] = robot.actuator_matrix.copy()
    return robot.memo["actuators"] if loop is None else np.hstack([robot.actuator_matrix, loop.S])


class Given(NamedTuple):
    """What `linearize_states` takes behind the model."""

    state: State
    coordinates: Coordinates
    actuators: np.ndarray


@dataclass(frozen=True)
class _Found:
    """What is known of one state: coordinates y, velocities w, rank and condition number, closure error, `Local`."""

    coordinates: Independent
    velocities: Independent
    rank: int
    condition: float
    residual: float
    local: object


def _linearize_one(robot, q, v, tau, f_ext, independent, speeds, closure_tolerance, rank_tolerance, loop=None):
    y = choose_positions(robot, q, independent, rank_tolerance)
    w = choose_speeds(robot, q, y, speeds, rank_tolerance)
    of_w, of_y, local = linearize_kernel(robot.packed, q, v, tau, f_ext, y.rows, y.virtual, w.rows,
                                         w.virtual, _actuators(robot, loop), rank_tolerance)
    raise_errors(robot.functions)
    require_rows(robot, (), local.residual[None], local.psi[None])
    residual = require_consistent(robot, q, v, local.residual, local.psi, closure_tolerance)
    status, rank, condition = of_w
    if status != OK:
        raise_for_status(robot, q, w, nullspace_kernel(
            robot.packed, q, v, tau, f_ext, w.rows, w.virtual, rank_tolerance))
    if of_y[0] == WRONG_COUNT:
        raise wrong_count(robot, y, of_y[1])
    if of_y[0] != OK:
        raise singular_choice(robot, q, y, holonomic(robot))
    state = State(*(x[None] for x in (q, v, tau, f_ext)))
    _judge(robot, (), y, w, state, local.a[None], np.array([rank]), np.array([condition]), np.array([of_y[2]]),
           rank_tolerance)
    return _Found(y, w, rank, condition, residual, local)


def left_as_tangent(chosen):
    """Are the coordinates tangent spaces that the kernel chooses at each state?"""
    return len(chosen.virtual) > 0 and chosen.virtual[0] == TANGENT


def _judge(robot, lead, y, w, state, a, rank, condition, condition_y, tolerance):
    """SingularConfigurationError at a singular configuration, a warning where few digits are left."""
    require_regular(robot, lead, state.q, rank, tolerance)
    largest = np.maximum(condition, condition_y)
    if not warn_if_digits_are_lost(robot, state.q, state.v, a, rank, largest, LINEARIZATION):
        worst = -_least(-condition)
        if worst > POOR_CONDITION and left_as_tangent(w):  # that is of the coordinates which the elimination left
            worst = tangent_conditions(robot, state.q[condition.argmax()][None], tolerance)[0]
        warn_if_poor(w, worst)
        if y is not w:
            warn_if_poor(y, -_least(-condition_y))


def linearize(robot, q, v, tau=None, independent=None, outputs=None, f_ext=None, closure_tolerance=CLOSURE_TOLERANCE,
              rank_tolerance=RANK_TOLERANCE, speeds=None, u=None):
    """Exact minimal state-space model of a mechanism about a state, moving or at rest.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them closed.
    tau : array_like, shape (..., nv), or tuple
        Generalised forces [N m, N] at the operating point; or feedback with its derivative, a pair of functions
        (f, df): ``f(t, q, v)`` gives the forces, ``df(t, q, v)`` their derivatives (by_q, by_v), each of shape
        (nv, nv), by a displacement in the tangent space at q and by v (`check_feedback` checks them). The model is
        then that of the closed loop, with the feedback at the robot's time.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates y of the state: names of the tree's or of cut joints' coordinates (a joint's name stands for all it
        has), "auto" (pivoting, at the first state of a batch), "tangent" (an orthonormal basis of the tangent
        space). None: what the robot declares, else "auto".
    outputs : sequence of str, optional
        Outputs, such as ``"bucket"``, ``"velocity:boom"``, ``"acceleration:boom"``, ``"pose:bucket"``,
        ``"twist:bucket"``, ``"twist_rate:bucket"``, ``"wrench:pin"`` (a loop, or another constraint
        between bodies). None: what the robot declares, else the independent coordinates.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.
    speeds : sequence of str, optional
        Independent velocities w of the state, where rolling or other constraints on velocities alone leave fewer of
        them than independent coordinates. None: what the robot declares, else those of the independent coordinates that
        pivoting leaves; all of them where every constraint is holonomic.
    u : array_like, shape (..., nu), or tuple
        Instead of tau: forces of the robot's actuators, or feedback (f, df) that gives them, derivatives (nu, nv).

    Returns
    -------
    LocalStateSpace
        ``A, B, C, D, f0, K, S, drift`` with names of states, inputs (the robot's actuators, or all of tau) and outputs.
        For a batch the arrays have its leading axes; C and D of the coordinates themselves are one read-only matrix
        for all states.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v opens a loop, a shape does not fit, an entry is not finite, an unknown name, too many or few coordinates, or a
        feedback that fails; a contact is exactly at a transition (about to open, to slip or to stick), an impact is
        due, or contacts are not in the same state in all states of a batch.
    SingularConfigurationError
        A constraint has no direction here, the configuration is singular, the independent coordinates do not determine
        the motion, or some motion moves no inertia.

    Warns
    -----
    ConditionWarning
        Next to a singular configuration, or in independent coordinates that are poorly conditioned here, few digits are
        left: says how many (`liedyn.dynamics.singular`).

    Notes
    -----
    Spencer 2004, 4.2-4.4 (A21, A22 and B of the local state space), extended to coordinates on Lie groups, virtual
    coordinates and redundant loops: see `liedyn.linearization.local`. No step size: exact to rounding.
    The tangent of a ball or free joint among the coordinates is body-fixed, and turns with the body (upper left of A).
    Constraints that are switched off do not count, moving ones are taken at the robot's time (``robot.at(t)``).

    Contacts (one-sided constraints) are what the state makes of them: open ones do not count, those that stick or slide
    are equations, and sliding friction varies with the normal force and the direction of slip
    (`liedyn.linearization.contacts`). The model holds as long as they stay so.

    The states of a batch are shared among threads (``NUMBA_NUM_THREADS``), and the first bad one is named. If all loops
    are closed by cut joints, or there are none, and the coordinates are the tree's, they are worked on in SIMD lanes.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ss = ld.linearize(loader, loader.home, [0.0] * 8, [0.0] * 8, independent=("boom", "bucket"))
    >>> ss.A.shape, ss.inputs
    ((4, 4), ('lift_cylinder', 'tilt_cylinder'))
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    closure_tolerance = positive("closure_tolerance", closure_tolerance)
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    in_contact = watches(robot)
    if f_ext is None and u is None and not in_contact:
        found = linearize_one_state(robot, q, v, tau, independent, outputs, speeds, closure_tolerance, rank_tolerance)
        if found is not None:
            return found
    independent, speeds = given_coordinates("independent", independent), given_coordinates("speeds", speeds)
    asked = robot.outputs if outputs is None else names("outputs", outputs)
    lead, q, v, tau, loop = operating_points(robot, q, v, tau, u)
    if not len(q):
        raise InputError("linearize needs at least one state")
    forces, solve = wrenches(robot, f_ext, lead), _solve
    friction = Friction(robot, [])
    if in_contact:
        robot, friction = _settled(robot, lead, q, v, tau, forces, rank_tolerance)
    y, w, R_y, R_w = _choices(robot, lead, q, independent, speeds, rank_tolerance)
    plan = output_plan(robot, asked, y)
    if friction.rubs or plan.contacts or not friction.least_norm:
        solve = functools.partial(friction.solve, _solve, plan.contacts)
    given = Given(State(q, v, tau, forces), Coordinates(R_y, y.virtual, R_w, w.virtual), _actuators(robot, loop))
    tolerances = Tolerances(closure_tolerance, rank_tolerance)
    rows = len(plan.labels) if len(plan.parts) or plan.contacts else 0
    if loop is None:
        found = solve(robot, lead, y, w, given, plan.parts, rows, tolerances)
    else:
        parts = np.vstack([plan.parts, loop.velocities(rows)])
        found = loop.closed(solve(robot, lead, y, w, given, parts, rows + robot.nv, tolerances), rows,
                            len(robot.actuator_names))
    C, D = (found.C, found.D) if rows else _own_coordinates(robot, len(q), found)
    return _state_space(robot, lead, y, w, plan.labels, C, D, (q, v, tau), found, rank_tolerance)


def _settled(robot, lead, q, v, tau, forces, tolerance):
    """The robot with the contacts as these states have them, and the friction of those that slide.

    Raises
    ------
    InputError
        A contact is at a transition, or contacts do not do the same at all states.
    """
    settled = []
    for b, state in enumerate(zip(q, v, tau, forces)):
        with of_the_batch(lead, b):
            settled.append(settle(robot, *state, tolerance))
            settled[b].require_no_transition()
            if settled[b].robot is not settled[0].robot:
                raise InputError(f"contacts are {settled[0].names} at the first state, {settled[b].names} here: "
                                 "linearize such states apart")
    return settled[0].robot, Friction(robot, settled)


def settled_without_friction(robot, q, v, tau, forces, tolerance, what):
    """The robot with the contacts as this one state has them; InputError where one slides with friction."""
    if not watches(robot):
        return robot
    switched, friction = _settled(robot, (), q[None], v[None], tau[None], forces[None], tolerance)
    if friction.rubs:
        raise InputError(f"{what} is not available while contacts slide with friction, as "
                         f"{', '.join(map(repr, friction.names))} here; linearize() is")
    return switched


def _own_coordinates(robot, count, found):
    """C and D of the coordinates themselves: the same at all states, and not copied for each."""
    (p, x, nu) = found.K.shape[2], found.A.shape[2], found.B.shape[2]
    key = ("C, D", p, x, nu)
    if key not in robot.memo:
        robot.memo[key] = np.eye(p, x), np.zeros((p, nu))
    C, D = robot.memo[key]
    if count == 1:
        return C.copy()[None], D.copy()[None]
    return np.broadcast_to(C, (count, *C.shape)), np.broadcast_to(D, (count, *D.shape))


def _choices(robot, lead, q, independent, speeds, tolerance):
    """Coordinates and velocities, and the rows of both: one choice for all states, but a tangent space for each."""
    if isinstance(independent, str) and independent == "tangent" and speeds is None and all_holonomic(robot):
        with of_the_batch(lead, 0):
            names = choose_positions(robot, q[0], independent, tolerance).names
        rows = np.empty((len(q), len(names), robot.nv))  # the kernel writes them
        y = Independent(names, rows[0], np.full(len(names), TANGENT))
        return y, y, rows, rows
    if len(q) > 1 and isinstance(independent, str) and independent == "tangent":
        ys, ws = [], []
        for b, each in enumerate(q):
            with of_the_batch(lead, b):
                ys.append(choose_positions(robot, each, independent, tolerance))
                ws.append(choose_speeds(robot, each, ys[b], speeds, tolerance))
        changed = [b for b, w in enumerate(ws) if len(w.names) != len(ws[0].names)]
        if changed:
            raise InputError(f"state {changed[0]} has {len(ws[changed[0]].names)} degrees of freedom, "
                             f"state 0 has {len(ws[0].names)}: linearize them apart")
        return ys[0], ws[0], np.array([y.rows for y in ys]), np.array([w.rows for w in ws])
    with of_the_batch(lead, 0):
        y = choose_positions(robot, q[0], independent, tolerance)
        w = choose_speeds(robot, q[0], y, speeds, tolerance)
    return y, w, y.rows[None], w.rows[None]


def _solve(robot, lead, y, w, given, parts, outputs, tolerances):
    """All states at once; the first one that has no state space is an error that says which."""
    found = room(robot, len(given.state.q), len(y.names), len(w.names), given.actuators.shape[1], outputs)
    arguments = robot.packed, *given, parts, tolerances, found
    if len(found.rank) >= FEW:
        (linearize_registers if robot.row_names else linearize_trees)(*arguments)
    if _least(found.rank) < 0:
        linearize_states(*arguments)
    raise_errors(robot.functions)
    if _least(found.rank) < 0:
        b = int(np.argmax(found.rank < 0))
        with of_the_batch(lead, b):
            _require(robot, y, w, given, b, tolerances)
    _judge(robot, lead, y, w, given.state, found.a, found.rank, found.condition, found.condition_y, tolerances.rank)
    return found


def _least(x):
    return x[0] if len(x) == 1 else x.min()


def _one_choice(chosen, rows, b):
    """The coordinates of state b."""
    return Independent(chosen.names, rows[min(b, len(rows) - 1)], chosen.virtual)


def _require(robot, y, w, given, b, tolerances):
    """Raise what is wrong with state b."""
    q, v, tau, forces = (x[b] for x in given.state)
    of_y, of_w = _one_choice(y, given.coordinates.R_y, b), _one_choice(w, given.coordinates.R_w, b)
    if left_as_tangent(y):
        of_y = of_w = choose_positions(robot, q, "tangent", tolerances.rank)
        if b and len(of_y.names) != len(y.names):
            raise InputError(f"state {b} has {len(of_y.names)} degrees of freedom, state 0 has {len(y.names)}: "
                             "linearize them apart")
    _linearize_one(robot, q, v, tau, forces, of_y, of_w, *tolerances)


def _state_space(robot, lead, y, w, labels, C, D, state, found, tolerance):
    """The result in the user's shape."""
    q, v, tau = (x.copy() for x in state)
    arrays = (found.A, found.B, C, D, found.f0, found.K, found.S, found.drift, q, v, tau, found.a, found.lam,
              found.rank, found.condition, found.closure)
    if lead:
        shaped = [x.reshape(lead + x.shape[1:]) for x in arrays]
    else:
        shaped = [x[0] for x in arrays[:-3]] + [int(found.rank[0]), float(found.condition[0]), float(found.closure[0])]
    values = (*shaped[:8], y.names + w.rates, robot.actuator_names, labels, *shaped[8:])
    if left_as_tangent(y):
        return LocalStateSpace.in_tangent_spaces(values, robot, tolerance)
    return LocalStateSpace.of(values)


def underlying(robot, q, v, tau, independent=None, f_ext=None, closure_tolerance=CLOSURE_TOLERANCE,
               rank_tolerance=RANK_TOLERANCE):
    """Linearized underlying ODE in all coordinates, A = [Df] P of the thesis.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s] that keeps them closed.
    tau : array_like, shape (nv,)
        Generalised forces [N m, N].
    independent : sequence of str, "auto", "tangent" or None
        Coordinates that define the projection P onto the tangent of the constraint manifold, as for `linearize`.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    A : ndarray, shape (2 nv, 2 nv)
        d(dq, dv)/dt for a tangent perturbation (dq, dv) that is first projected by P. Its rank is 2p at most; at an
        equilibrium its spectrum is that of the local state space, and zeros.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v opens a loop, a shape does not fit, an entry is not finite, an unknown name, or too many or few coordinates; a
        contact slides with friction, or is at a transition.
    SingularConfigurationError
        A constraint has no direction here, the configuration is singular, the independent coordinates do not determine
        the motion, or some motion moves no inertia.

    Warns
    -----
    ConditionWarning
        As for `linearize`.

    Notes
    -----
    Spencer 2004, eq. 4.3 and 4.4, theorems 4.1.1 and 4.1.2.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.underlying(loader, loader.home, [0.0] * 8, [0.0] * 8).shape
    (16, 16)
    """
    independent = given_coordinates("independent", independent)
    closure_tolerance = positive("closure_tolerance", closure_tolerance)
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    if lead:
        raise InputError(f"underlying takes one state, got leading axes {lead}")
    forces = wrenches(robot, f_ext, lead)[0]
    robot = settled_without_friction(robot, q[0], v[0], tau[0], forces, rank_tolerance, "the underlying ODE")
    found = _linearize_one(robot, q[0], v[0], tau[0], forces, independent, None, closure_tolerance, rank_tolerance)
    y, w, local = found.coordinates, found.velocities, found.local
    p_y, x = len(y.names), len(y.names) + len(w.names)
    rates = local.X[:, :x].copy()
    turning(robot.packed, v[0], local.N, p_y, rates)
    along_motion = np.vstack([rates, local.da[:, :x]])
    E, rho_q, _, _ = reader_kernel(robot.packed, q[0], v[0], local.a)
    R_y, R_w = y.matrix(E), w.matrix(E)
    rate, reads = np.zeros_like(R_w), w.virtual >= 0
    rate[reads] = rho_q[w.virtual[reads]]
    return along_motion @ np.block([[R_y, np.zeros_like(R_y)], [rate, R_w]])
