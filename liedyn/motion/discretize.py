"""One step of an integrator as a discrete-time system: derivatives of the step itself, not of the flow it stands for.

The step is that of Runge-Kutta-Munthe-Kaas, classical fourth order, in independent coordinates: q = q_0 exp(u) with all
constraints solved at every stage, so that each stage state lies on the manifold and has an exact local model (A, B).
With r = R_y v the rate of y, body-fixed for ball and free joints, and J(u) = dexp^-1_{-u} joint by joint, the
rates that `liedyn.motion.runge_kutta` takes, and their variations, are

    k = (J(u) r, wdot)
    dk_u = J (A_yy + ad_r) eta + J A_yw dw + d(J r)/du du        dk_w = A_wy eta + A_ww dw + B_w dinput

where a variation eta_0 of y at the start is, at u, the variation eta = Ad_{exp -u} eta_0 + dexp_{-u} du, and A_yy holds
-ad_r, because the tangent at q turns with the body (`liedyn.motion.local_coordinates`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.closed_loop import operating_points
from liedyn.linear.state_space import ARRAYS, DiscreteStateSpace
from liedyn.linear.contact_linearization import settled_without_friction
from liedyn.linear.linearize import Given, all_states
from liedyn.linear.linearize_states import Tolerances
from liedyn.linear.operating_point import CLOSURE_TOLERANCE, Asked, actuators_of, linearize_at
from liedyn.linear.outputs import NO_OUTPUTS
from liedyn.linear.space import Coordinates
from liedyn.machine.arguments import non_negative, positive, require_robot
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.constraints.independent import all_holonomic, by_name, given_coordinates
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.elements.generalized import without_elements
from liedyn.model.calls.boundary import wrenches
from liedyn.motion.discrete_steps import Steps, discretize_states
from liedyn.motion.local_coordinates import Deviation, at_time
from liedyn.motion.runge_kutta import RK4, step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames, Wrenches


def discretize(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | tuple[Any, ...] | None = None,
               h: float | None = None, independent: IndependentNames = None, speeds: Sequence[str] | None = None,
               f_ext: Wrenches | None = None, closure_tolerance: float = CLOSURE_TOLERANCE,
               rank_tolerance: float = RANK_TOLERANCE,
               u: ArrayLike | tuple[Any, ...] | None = None) -> DiscreteStateSpace:
    """Exact discrete-time model of a mechanism: the derivatives of one integrator step.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints. Batches whose independent
        coordinates are revolute or prismatic joints run in compiled code; others state by state.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that satisfies the constraints.
    tau : array_like, shape (..., nv), or tuple
        Generalised forces [N m, N], constant during the step; or feedback with its derivative (f, df), as for
        `linearize`, evaluated at every stage of the step. The model is then that of the closed loop, and B that of
        constant forces added to the feedback.
    h : float
        Length of the step [s].
    independent, speeds
        Coordinates and velocities of the state, as for `linearize`. Ball and free joints must be chosen as a whole.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    closure_tolerance, rank_tolerance : float
        As for `linearize`.
    u : array_like, shape (..., nu), or tuple
        Instead of tau: forces of the robot's actuators, or feedback (f, df) that gives them.

    Returns
    -------
    DiscreteStateSpace
        ``A, B`` with names of states and inputs, and the state where the step ends.

    Raises
    ------
    InputError
        As for `linearize`; a contact slides with friction; a step that is not positive; or coordinates without a group
        structure: part of a ball or free joint, a ball cut, or linear combinations that contain such coordinates.
    ClosureError
        The constraints cannot be satisfied at q, or at a stage: the step leaves the workspace or is too long.
    SingularConfigurationError
        As for `linearize`.

    Notes
    -----
    Contacts keep their modes at (q, v) during the whole step.

    Runge-Kutta-Munthe-Kaas of order four in independent coordinates, differentiated stage by stage with the exact A and
    B of each stage. `LocalStateSpace.discretize` is the exponential of one A instead.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ds = ld.discretize(arm, arm.home, [0.0] * 4, [0.0] * 4, 1e-3)
    >>> ds.A.shape, ds.B.shape, ds.states
    ((4, 4), (4, 4), ('q1', 'q2', 'velocity:q1', 'velocity:q2'))
    """
    require_robot(robot)
    h, closure_tolerance = positive("h", h), positive("closure_tolerance", closure_tolerance)
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    independent, speeds = given_coordinates("independent", independent), given_coordinates("speeds", speeds)
    options = h, independent, speeds, closure_tolerance, rank_tolerance
    lead, *rows = operating_points(robot, q, v, tau, u)
    forces = wrenches(robot, f_ext, lead)
    return _all_states(robot, lead, rows, forces, ("tau", tau) if u is None else ("u", u), options)


def _all_states(robot, lead, given, forces, named, options):
    """The models (rows of q, v, tau, and the loop): compiled for coordinates in R^n, else one by one."""
    (q, v, tau, loop), (h, independent, speeds, *tolerances) = given, options
    if not len(q):
        raise InputError("discretize needs at least one state")
    names = robot.independent if independent is None else independent
    if not names and not robot.row_names:
        names = robot.velocity_names
    if _adds_up(robot, loop, names, speeds):
        y = by_name(robot, names)
        coordinates = Coordinates(y.rows[None].copy(), y.virtual, y.rows[None].copy(), y.virtual)
        start = Given(State(q, v, tau, forces), coordinates, actuators_of(robot))
        # raises the errors of these states
        all_states(Asked(robot, lead, y, y), start, NO_OUTPUTS, 0, Tolerances(*tolerances))
        p, nu, count = len(y.names), len(robot.actuator_names), len(q)
        found = Steps(np.empty((count, 2 * p, 2 * p)), np.empty((count, 2 * p, nu)), np.empty_like(q), np.empty_like(v),
                      np.zeros(count, np.int64))
        discretize_states(robot.packed, start.state, Coordinates(y.rows, y.virtual, y.rows, y.virtual), start.actuators,
                          (h, tolerances[1]), found)
        for b in np.flatnonzero(found.done == 0):  # states whose constraints are harder to solve, or have no solution
            with of_the_batch(lead, b):
                one = _one_state(robot, q[b:b + 1], v[b:b + 1], tau[b:b + 1], None, forces[b], options)
            found.A[b], found.B[b], found.q[b], found.v[b] = one.A, one.B, one.q_next, one.v_next
        return _together((found.A, found.B, q, v, tau, found.q, found.v), lead, h, y.names + y.rates, robot)
    if not lead:
        return _one_state(robot, q, v, tau, loop, forces[0], options)
    models = []
    for b in range(len(q)):
        with of_the_batch(lead, b):
            _, *row = operating_points(robot, q[b], v[b], *_given_at(named, lead, b))
            models.append(_one_state(robot, *row, forces[b], options))
    if len({model.states for model in models}) > 1:
        raise InputError("the coordinates that are left differ from state to state: name independent ones")
    return _together([np.array([getattr(model, name) for model in models]) for name in ARRAYS], lead, h,
                     models[0].states, robot)


def _adds_up(robot, loop, names, speeds):
    """True if y and w are the same revolute and prismatic joints, and only constant forces act."""
    plain = {*robot.coordinate_names} & {*robot.velocity_names}
    simple = loop is None and robot.elements is None and not robot.functions and not watches(robot)
    return (simple and speeds is None and bool(names) and isinstance(names, tuple) and all_holonomic(robot)
            and plain.issuperset(by_name(robot, names).names))


def _given_at(named, lead, b):
    """tau and u at state b of a batch; one of them is None."""
    name, given = named
    if not isinstance(given, tuple):
        given = np.asarray(given, dtype=np.float64)
        given = np.broadcast_to(given, lead + given.shape[-1:]).reshape(-1, given.shape[-1])[b]
    return (given, None) if name == "tau" else (None, given)


def _together(rows, lead, h, states, robot):
    """A `DiscreteStateSpace` of rows A, B, q, v, tau, q_next, v_next."""
    A, B, q, v, tau, q_next, v_next = (x.reshape(lead + x.shape[1:]).copy() for x in rows)
    return DiscreteStateSpace(A, B, h, states, robot.actuator_names, q, v, tau, q_next, v_next)


def _one_state(robot, q, v, tau, loop, f_ext, options):
    """One state; arrays have a leading axis of length 1."""
    h, independent, speeds, *tolerances = options
    given_tau = tau[0]
    if robot.elements is not None:  # the force elements are part of the loop
        robot, given_tau = without_elements(robot), loop.given[0]
    q, v, tau = q[0], v[0], tau[0]
    robot = settled_without_friction(robot, q, v, tau, f_ext, tolerances[1], "the derivative of a step")
    found = linearize_at(robot, State(q, v, tau, f_ext), independent, speeds, *tolerances, loop)
    y, w = found.coordinates, found.velocities
    space, x = Deviation.by(robot, q, v, y, w, tolerances[1]), len(y.names) + len(w.names)
    p, nu, forces = len(y.names), len(robot.actuator_names), tau
    inputs = np.eye(nu, x + nu, x)

    def at(part):
        return at_time(robot, robot.t + part * h)

    def equations(part, change, eta):
        nonlocal found, loop, forces
        if part > 0.0:
            now = at(part)
            q_i, v_i = space.state_at(change, now)
            if loop is not None:
                loop = loop.at(robot.t + part * h, q_i[None], v_i[None])
                forces = loop.tau[0]
            found = linearize_at(now, State(q_i, v_i, forces, f_ext), y, w, *tolerances, loop)
        A, B = found.local.A, found.local.B[:, :nu]
        if loop is not None and loop.driven is not None:
            B = B + found.local.B[:, nu:] @ loop.driven[0]
        if loop is not None:
            A = A + found.local.B[:, nu:] @ loop.of_state(found.local.N[:, :p], found.local.X[:, :x])[0]
        return found.local.f0, A @ eta + B @ inputs

    change, end = step(space, equations, RK4, h, np.eye(x, x + nu))
    q_next, v_next = space.state_at(change, at(1.0))
    return DiscreteStateSpace(end[:, :x].copy(), end[:, x:].copy(), h, y.names + w.rates, robot.actuator_names,
                              q.copy(), v.copy(), given_tau.copy(), q_next, v_next)
