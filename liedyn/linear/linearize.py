"""Linearization of any mechanism at any state: the public function."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.linear.closed_loop import operating_points
from liedyn.linear.linearize_one_state import linearize_one_state, own_coordinates, room, tangent_condition
from liedyn.linear.linearize_states import (
    Request, Tolerances, linearize_registers, linearize_states, linearize_trees,
)
from liedyn.linear.operating_point import (
    CLOSURE_TOLERANCE, Asked, actuators_of, judge, least, left_as_tangent, linearize_at,
)
from liedyn.linear.outputs import needed_actuators, needed_outputs, output_plan, with_outputs
from liedyn.linear.space import Coordinates
from liedyn.linear.state_space import RESULTS, LocalStateSpace, asked_results, read_asked, restricted
from liedyn.machine.arguments import names, non_negative, positive, require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.constraints.free_velocities import TANGENT
from liedyn.mechanics.constraints.independent import (
    Independent, all_holonomic, choose_positions, choose_speeds, given_coordinates,
)
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.forward_states import FEW
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.elements.generalized import without_elements
from liedyn.model.calls.boundary import wrenches
from liedyn.model.calls.checks import copy_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames, Wrenches


_FRICTION = "liedyn.linear.contact_linearization:Friction"
_SETTLED = "liedyn.linear.contact_linearization:settled_in_contact"
_JOINT_ROWS = "liedyn.linear.joint_rows:JointRows"
_SECOND = "liedyn.linear.second.second_derivatives:second_derivatives"
_LINEARIZED = "liedyn.linear.second.second_derivatives:Linearized"
_ELEMENT_LOADS = "liedyn.linear.second.element_loads:ElementLoads"
_OPEN_MODEL = "liedyn.linear.second.element_loads:OpenModel"
_SECOND_OF_ONE_STATE = "liedyn.linear.second.second_one_state:second_of_one_state"


class Given(NamedTuple):
    """States, coordinates and actuators, as `linearize_states` takes them."""

    state: State
    coordinates: Coordinates
    actuators: np.ndarray


def linearize(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | tuple[Any, ...] | None = None,
              independent: IndependentNames = None, outputs: Sequence[str] | None = None, f_ext: Wrenches | None = None,
              closure_tolerance: float = CLOSURE_TOLERANCE, rank_tolerance: float = RANK_TOLERANCE,
              speeds: Sequence[str] | None = None, u: ArrayLike | tuple[Any, ...] | None = None,
              second: bool | ArrayLike | Mapping[str, ArrayLike] | None = None,
              results: Sequence[str] | None = None) -> LocalStateSpace:
    """Exact minimal state-space model of a mechanism about a state, moving or at rest.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] at which the loops are closed.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that satisfies the constraints.
    tau : array_like, shape (..., nv), or tuple
        Generalised forces [N m, N] at the operating point; or feedback with its derivative, a pair of functions
        (f, df): ``f(t, q, v)`` gives the forces, ``df(t, q, v)`` their derivatives (by_q, by_v), each of shape
        (nv, nv), by a displacement in the tangent space at q and by v (`check_feedback` checks them). The model is
        then that of the closed loop, with the feedback at the robot's time.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates y of the state: names of coordinates of the tree or of cut joints (a joint's name stands for all
        its coordinates), "auto" (by pivoting, at the first state of a batch), "tangent" (an orthonormal basis of the
        tangent space). None: those that the robot declares, else "auto".
    outputs : sequence of str, optional
        Outputs, such as ``"bucket"``, ``"velocity:boom"``, ``"acceleration:boom"``, ``"pose:bucket"``,
        ``"twist:bucket"``, ``"twist_rate:bucket"``, ``"wrench:pin"`` (a loop, another constraint
        between bodies, or a joint of the tree, as in `joint_wrenches`). None: those that the robot declares, else the
        independent coordinates.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    speeds : sequence of str, optional
        Independent velocities w of the state, if rolling or other constraints on velocities leave fewer of them than
        independent coordinates. None: those that the robot declares, else the velocities of independent coordinates
        that pivoting keeps independent; all of them if every constraint is holonomic.
    u : array_like, shape (..., nu), or tuple
        Instead of tau: forces of the robot's actuators, or a feedback (f, df) that gives them, derivatives (nu, nv).
    second : bool, array_like of shape (..., x), or dict, optional
        True: ``second`` of the result has all second derivatives, and its ``taylor`` is the model to second order. An
        array: weights of the rates f = (ydot, wdot), of whose sum ``second.f`` is the Hessian, which takes a few
        times as long as A and B for mechanisms of any size; or a dict of weights of ``"f"``, ``"a"`` (all
        accelerations, nv), ``"lam"`` (multipliers, m) and ``"q"`` (all displacements, nv).
    results : sequence of str, optional
        Those that will be read, of "A", "B", "C", "D", "f0", "K", "S", "drift", "a" and "lam", as in
        ``results=("A", "B", "f0")``. Others are not stored, nor computed where that takes time: columns of inputs
        without "B" and "D", rows of outputs without "C" and "D". None: all.

    Returns
    -------
    LocalStateSpace
        ``A, B, C, D, f0, K, S, drift`` with names of states, inputs (the robot's actuators, or all of tau) and outputs.
        For a batch the arrays have its leading axes; C and D of the coordinates themselves are one read-only matrix
        for all states. Results that were left out raise an InputError when they are read.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v violates the constraints, a shape does not fit, an entry is not finite, a name is unknown, there are too many
        or too few coordinates, a result is unknown, or a feedback fails; a contact is exactly at a transition (about to
        open, to slip or to stick), an impact is due, or contact modes differ between the states of a batch.
    SingularConfigurationError
        A constraint has no direction here, the configuration is singular, the independent coordinates do not determine
        the motion, or some motion has no inertia.

    Warns
    -----
    ConditionWarning
        The result has few correct digits, next to a singular configuration or in coordinates that are poorly
        conditioned here: the message says how many (`liedyn.mechanics.dynamics.singular`).

    Notes
    -----
    Spencer 2004, 4.2-4.4 (A21, A22 and B of the local state space), extended to coordinates on Lie groups, virtual
    coordinates and redundant loops: see `liedyn.linear.local`. No step size: exact to rounding.
    The tangent of a ball or free joint among the coordinates is body-fixed and turns with the body (upper left of A).
    Constraints that are switched off are ignored, moving ones are taken at the robot's time (``robot.at(t)``).

    The state decides the modes of contacts (one-sided constraints): open ones are ignored, those that stick or slide
    are equations, and sliding friction varies with the normal force and the direction of slip
    (`liedyn.linear.contact_linearization`). The model holds as long as the modes do not change.

    The states of a batch are shared among threads (``NUMBA_NUM_THREADS``); an error names the first bad state. If all
    loops are closed by cut joints, or there are none, and the coordinates are the tree's or tangent spaces, W states
    are treated at once in SIMD lanes, unless the mechanism is so large that this is slower.

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
    second, results = None if second is False else second, asked_results(results)
    computed = results if second is None else RESULTS
    if f_ext is None and u is None and robot.elements is None:
        found = linearize_one_state(
            robot, q, v, tau, (independent, outputs, speeds, computed, closure_tolerance, rank_tolerance))
        if found is not None and (second is None or _completed(found, robot, q, v, tau, second)):
            return restricted(found, results) if second is not None else found
    closure_tolerance = positive("closure_tolerance", closure_tolerance)
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    in_contact = watches(robot)
    independent, speeds = given_coordinates("independent", independent), given_coordinates("speeds", speeds)
    read = robot.outputs if outputs is None else names("outputs", outputs)
    lead, q, v, tau, loop = operating_points(robot, q, v, tau, u)
    if not len(q):
        raise InputError("linearize needs at least one state")
    given_tau, whole, loads = tau, robot, None
    if robot.elements is not None:  # their forces are in tau, their derivatives in the loop
        robot, given_tau = without_elements(robot), loop.given
    forces, solve = wrenches(robot, f_ext, lead), all_states
    friction = None
    if in_contact:
        robot, friction = by_name(_SETTLED)(robot, lead, q, v, tau, forces, rank_tolerance)
    y, w, R_y, R_w = _choices(robot, lead, q, independent, speeds, rank_tolerance)
    plan = needed_outputs(computed, output_plan(robot, read, y))
    if plan.more and friction is None:
        friction = by_name(_FRICTION)(robot, [])
    if plan.joints:
        friction.joints = by_name(_JOINT_ROWS)(robot, plan.joints, f_ext, lead)
    if plan.more or friction is not None and (friction.rubs or not friction.least_norm):
        solve = functools.partial(friction.solve, all_states, plan.contacts)
    asked = Asked(robot, lead, y, w)
    actuators = actuators_of(robot, loop)
    if solve is all_states and loop is None:
        solve, actuators = functools.partial(all_states, results=computed), needed_actuators(computed, actuators)
    given = Given(State(q, v, tau, forces), Coordinates(R_y, y.virtual, R_w, w.virtual), actuators)
    tolerances = Tolerances(closure_tolerance, rank_tolerance)
    rows = len(plan.labels) if len(plan.parts) or plan.more else 0
    if loop is None:
        found = solve(asked, given, plan.parts, rows, tolerances)
    else:
        parts = np.vstack([plan.parts, loop.velocities(rows)])
        opened = solve(asked, given, parts, rows + robot.nv, tolerances)
        found = loop.closed(opened, rows, len(robot.actuator_names))
        loads = None if second is None else _loads(whole, robot, (q, v), loop, opened, rows)
        if plan.joints and whole.elements is not None:
            joints = by_name(_JOINT_ROWS)(whole, plan.joints, None, lead)
            _add_elements(joints, joints.of_elements(loop, (q, v), opened.K, opened.C[:, rows:]), found)
    if not rows and with_outputs(results):
        found = _with_own_coordinates(robot, found)
    space = _state_space(asked, plan.labels, results, (q, v, given_tau), found, rank_tolerance)
    return space if second is None else _with_second(space, asked, given, loads, friction, tolerances, second)


def _loads(robot, mechanism, state, loop, opened, rows):
    """The force elements of a robot, for its second derivatives; InputError for a user's feedback."""
    if robot.elements is None or loop.inner is not None:
        raise InputError("second derivatives of feedback are not known: give forces, and close the loop on A and B")
    by_tau = opened.B[:, :, len(robot.actuator_names):]
    model = by_name(_OPEN_MODEL)(by_tau, opened.K, opened.C[:, rows:], opened.S, opened.rank)
    return by_name(_ELEMENT_LOADS)(robot, mechanism, (*state, loop.u), loop, model)


def _completed(space, robot, q, v, tau, second):
    """Adds the second derivatives of one state to its `LocalStateSpace`; False if the general way has to find them."""
    made = by_name(_SECOND_OF_ONE_STATE)(space, robot, q, v, tau, second)
    if made is not None:
        vars(space)["second"] = made
    return made is not None


def _with_second(space, asked, given, loads, friction, tolerances, second):
    """The result with its second derivatives."""
    if friction is not None and friction.rubs:
        raise InputError("second derivatives are not available while contacts slide with friction, as "
                         f"{', '.join(map(repr, friction.names))} here")
    robot = asked.robot
    sizes = {"f": len(space.states), "a": robot.nv, "lam": len(robot.row_names), "q": robot.nv}
    linearized = by_name(_LINEARIZED)(
        robot, asked.lead, sizes, given.state, given.coordinates, given.actuators, tolerances, loads)
    vars(space)["second"] = by_name(_SECOND)(linearized, second)
    return space


def _with_own_coordinates(robot, found):
    """`Found` with the C and D of outputs that are the coordinates themselves: the same matrices at all states, not
    copied for each."""
    C, D = own_coordinates(robot, found.K.shape[2], found.A.shape[2], len(robot.actuator_names))
    if len(found.A) == 1:
        return found._replace(C=C.copy()[None], D=D.copy()[None])
    return found._replace(C=_repeated(C, len(found.A)), D=_repeated(D, len(found.A)))


def _repeated(x, count):
    """`np.broadcast_to`, ten times as fast."""
    found = np.ndarray((count, *x.shape), x.dtype, x, strides=(0, *x.strides))
    found.flags.writeable = False
    return found


def _choices(robot, lead, q, independent, speeds, tolerance):
    """Coordinates, velocities and the rows of both: one choice for all states, but a tangent space at each state."""
    tangent = isinstance(independent, str) and independent == "tangent"
    if tangent and speeds is None and all_holonomic(robot):
        with of_the_batch(lead, 0):
            names = choose_positions(robot, q[0], independent, tolerance).names
        rows = np.empty((len(q), len(names), robot.nv))  # the kernel writes them
        y = Independent(names, rows[0], np.full(len(names), TANGENT))
        return y, y, rows, rows
    ys, ws = [], []
    for b, each in enumerate(q if tangent else q[:1]):
        with of_the_batch(lead, b):
            ys.append(choose_positions(robot, each, independent, tolerance))
            ws.append(choose_speeds(robot, each, ys[b], speeds, tolerance))
    changed = [b for b, w in enumerate(ws) if len(w.names) != len(ws[0].names)]
    if changed:
        raise InputError(f"state {changed[0]} has {len(ws[changed[0]].names)} degrees of freedom, "
                         f"state 0 has {len(ws[0].names)}: linearize them apart")
    if len(ys) == 1:
        return ys[0], ws[0], ys[0].rows[None], ws[0].rows[None]
    return ys[0], ws[0], np.array([y.rows for y in ys]), np.array([w.rows for w in ws])


def _add_elements(joints, derivatives, found):
    """Add what force elements transmit through joints to the outputs; derivatives by x and by u."""
    for k, (by_x, by_u) in enumerate(zip(*derivatives)):
        joints.add(by_x, found.C[k])
        joints.add(by_u, found.D[k])


def all_states(asked, given, parts, outputs, tolerances, results=RESULTS):
    """Linearizes all states at once; an error names the first state that has no state space."""
    robot, lead, y, w = asked
    found = room(robot, len(given.state.q), len(y.names), len(w.names), given.actuators.shape[1], outputs,
                 results)
    request = Request(given.coordinates, given.actuators, parts, tolerances)
    arguments = robot.packed, given.state, request, found
    if len(found.rank) >= FEW:
        (linearize_registers if robot.row_names else linearize_trees)(*arguments)
    if least(found.rank) < 0:
        linearize_states(*arguments)
    raise_errors(robot.functions)
    if least(found.rank) < 0:
        b = int(np.argmax(found.rank < 0))
        with of_the_batch(lead, b):
            _require(robot, y, w, given, b, tolerances)
    judge(asked, given.state, found.a, found.rank, found.condition, found.condition_y, tolerances.rank)
    return found


def _one_choice(chosen, rows, b):
    """The coordinates of state b."""
    return Independent(chosen.names, rows[min(b, len(rows) - 1)], chosen.virtual)


def _require(robot, y, w, given, b, tolerances):
    """Raises the error that state b causes."""
    q, v, tau, forces = (x[b] for x in given.state)
    of_y, of_w = _one_choice(y, given.coordinates.R_y, b), _one_choice(w, given.coordinates.R_w, b)
    if left_as_tangent(y):
        of_y = of_w = choose_positions(robot, q, "tangent", tolerances.rank)
        if b and len(of_y.names) != len(y.names):
            raise InputError(f"state {b} has {len(of_y.names)} degrees of freedom, state 0 has {len(y.names)}: "
                             "linearize them apart")
    linearize_at(robot, State(q, v, tau, forces), of_y, of_w, *tolerances)


def _state_space(asked, labels, results, state, found, tolerance):
    """The result, in the leading shape of the user's arguments."""
    robot, lead, y, w = asked
    arrays = {name: getattr(found, name) for name in results}
    arrays |= dict(zip(("q", "v", "tau"), map(copy_of, state)))
    numbers = {"rank": found.rank, "condition": found.condition, "closure_residual": found.closure}
    if lead:
        known = {name: x.reshape(lead + x.shape[1:]) for name, x in (arrays | numbers).items()}
    else:
        known = {name: x[0] for name, x in arrays.items()} | {name: x.item() for name, x in numbers.items()}
    known |= {"states": y.names + w.rates, "inputs": robot.actuator_names, "outputs": labels, "_robot": robot}
    later = ()
    if left_as_tangent(y):
        del known["condition"]
        later = tangent_condition, robot, tolerance
    return LocalStateSpace.of(known | {"_later": (read_asked, results, *later)})
