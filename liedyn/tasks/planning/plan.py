"""Plans by differential dynamic programming: optimal inputs, states and feedback for a cost, within limits."""
# mypy: ignore-errors

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.feedback import Feedback
from liedyn.machine.arguments import non_negative, positive, whole
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.contact.contact_state import contacts_of
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.configuration import difference
from liedyn.mechanics.tree.energy import total_mass
from liedyn.model.calls.boundary import as_floats, require_usable, states
from liedyn.tasks.planning.ddp_search import CONVERGED, ITERATIONS, STALLED, VIOLATED
from liedyn.tasks.planning.phase_schedule import STANDARD_GRAVITY, contact_forces
from liedyn.tasks.planning.solver import Division, Solver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.tasks.planning.planning_problem import Cost, Limits
    from liedyn.tasks.planning.phase_schedule import Phase
    from liedyn.typing import Array, ArrayLike

STATUS = {CONVERGED: "converged", ITERATIONS: "no iteration is left", STALLED: "no step lowers the cost",
          VIOLATED: "limits cannot be held"}


PULL = 1e-6
"""Part of the largest force of a contact by which it may exceed its friction, or pull, because of rounding."""
STANDING = 0.01
"""Part of the largest impulse by which another one may exceed its friction without a warning: when feet land, standing
ones are pulled slightly."""


class PlanWarning(UserWarning):
    """A plan has not converged, or violates its limits."""


@dataclass(frozen=True, repr=False)
class Plan(Feedback):
    """A planned motion; returned by :func:`liedyn.ddp`. As a function of (t, q, v) it is a regulator along the motion.

    The inputs are those of the plan plus its feedback, within their limits. Time is that since the plan's beginning;
    before it, and after its last step, the first and last steps apply.

    Attributes
    ----------
    t : ndarray, shape (steps + 1,)
        Times of the knots [s].
    q, v : ndarray, shapes (steps + 1, nq) and (steps + 1, nv)
        States at the knots [rad, m; rad/s, m/s]; loops are closed.
    u : ndarray, shape (steps, nu)
        Inputs, each constant during a step [N m, N].
    K : ndarray, shape (steps, nu, x)
        Feedback of the states: u + K x, with x the deviation from the knot. No feedback for inputs at their limits.
    cost : float
    costs : ndarray, shape (iterations + 1,)
        Cost before each iteration, and at the end.
    violation : float
        Largest violation of limits of states; forces of contacts in weights of the robot, impulses in kg m/s divided by
        its mass.
    multipliers : dict
        For limits of states, by name, shape (steps + 1,): positive at the upper one, negative at the lower one. For
        contacts with limited forces, by name, shape (steps, 3), or 1 column without friction: derivative of the cost
        by the normal and the tangential forces [1/N].
    status : str
        ``"converged"``, or the reason for the end of the search.
    iterations : int
    states, inputs : tuple of str
        Names of x and u.
    phase : ndarray, shape (steps + 1,)
        Number of the phase of each knot. At a phase change two knots have the same time, and the input between them
        has no effect.
    contacts : dict
        For plans over phases, by name of a one-sided contact, shape (steps, 2): normal force and friction [N] at the
        beginning of each step; zero if it is open.
    impulses : dict
        For plans over phases, by name of a one-sided contact, shape (phases - 1, 2): impulses [N s] at phase changes.
    method : str
    h : float

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> plan = ld.ddp(arm, arm.home, [0.0] * 4, ld.Cost(Q=1.0, R=1e-3, q=arm.home), steps=10, h=0.01)
    >>> plan.u.shape, plan.K.shape, plan.status
    ((10, 4), (10, 4, 4), 'converged')
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.1, u=ld.Sampled(plan, plan.h))
    """

    _role = "a plan"
    t: Array
    q: Array
    v: Array
    u: Array
    K: Array
    cost: float
    costs: Array
    violation: float
    multipliers: dict[str, Any]
    status: str
    iterations: int
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    phase: Array
    contacts: dict[str, Any]
    impulses: dict[str, Any]
    method: str
    h: float
    _robot: object = field(repr=False)
    _places: np.ndarray = field(repr=False)
    _bounds: tuple = field(repr=False)

    def __repr__(self) -> str:
        return (f"Plan({len(self.u)} steps of {self.h:g} s, cost {self.cost:.6g}, {self.status} after "
                f"{self.iterations} iterations)")

    def _inputs(self, t, q, v):
        """Those of the plan plus its feedback, within their limits."""
        # a sample at a knot may be early by rounding
        k = int(np.clip(np.searchsorted(self.t, t + 1e-6 * self.h, "right") - 1, 0, len(self.u) - 1))
        return regulated(self._robot, self._places, self, k, q, v, self._bounds)


def regulated(robot, places, plan, k, q, v, bounds):
    """Inputs of step k of a plan (with q, v, u and K) with its feedback."""
    x = np.concatenate([difference(robot, plan.q[k], q)[places], (v - plan.v[k])[places]])
    return np.clip(plan.u[k] + plan.K[k] @ x, *bounds)


def pushes_of(solver):
    """Contact forces in the steps of a plan over phases, and impulses at phase changes."""
    if not solver.phases:
        return {}, {}
    path, robot = solver.path, solver.robot
    forces = contact_forces(solver.robots, solver.of_knot, path.q, path.v,
                            np.einsum("kij,kj->ki", actuator_matrix(robot, path.q[:-1]), path.u))
    touches = np.flatnonzero(np.diff(solver.of_knot))
    lam, contacts = solver.rooms.stages.found.lam[touches], contacts_of(robot, robot.packed)
    return forces, {name: np.stack(contacts.loads(c, lam), axis=1) for c, name in enumerate(contacts.names)}


def multipliers_of_contacts(solver):
    """Multipliers of the force limits, by name of the contact."""
    cones, robot = solver.discretisation.phases.cones, solver.robot
    contacts, found = contacts_of(robot, robot.packed), cones.lam / cones.unit[:, None]
    names = [contacts.names[list(contacts.first).index(row)] for row in cones.rows[cones.first]]
    return {name: found[:, i:i + count] for name, i, count in zip(names, cones.first, cones.count)}


def warn_of_contacts(plan, robot, limit_tolerance):
    """PlanWarning if a contact would have to pull, or friction would have to exceed its limit."""
    contacts, begins = contacts_of(robot, robot.packed), plan.t[:-1][np.diff(plan.phase) > 0]
    # limits are satisfied to limit_tolerance: twice that, for friction up to 1.7
    held_to = 2.0 * limit_tolerance * STANDARD_GRAVITY * total_mass(robot)
    largest = max((np.abs(load).max(initial=0.0) for load in plan.impulses.values()), default=0.0)
    for name, friction in zip(contacts.names, contacts.friction):
        for load, t, unit, rounding in ((plan.contacts[name], plan.t, "N", held_to),
                                        (plan.impulses[name], begins, "N s", max(held_to, STANDING * largest))):
            push, hold = load.T
            with np.errstate(invalid="ignore"):  # infinite friction holds without a normal force, too
                held = np.nan_to_num(friction * np.maximum(push, 0.0), nan=np.inf, posinf=np.inf)
            beyond = np.maximum(-push, hold - held)
            k = int(beyond.argmax()) if len(load) else 0
            if len(load) and beyond[k] > max(PULL * np.abs(load).max(), rounding):
                warnings.warn(f"contact {name!r} has to push with {push[k]:.4g} {unit} and to hold {hold[k]:.4g} "
                              f"{unit} at t = {t[k]:g} s, with friction {friction:g}: `simulate` would let it "
                              "go or slip",
                              PlanWarning, stacklevel=3)


def plan_of(solver, status):
    """The plan in the present state of a search."""
    count, path, x, log = int(solver.log.count[0]), solver.path, solver.expansion, solver.log
    multipliers = {name: x.lam[:, k].copy() for k, name in enumerate(solver.limit_names)}
    multipliers |= multipliers_of_contacts(solver)
    return Plan(solver.t.copy(), path.q.copy(), path.v.copy(), path.u.copy(), x.K.copy(),
                float(log.cost[count]), log.cost[:count + 1].copy(), float(log.violation[count]), multipliers,
                STATUS[status], count, solver.y.names + solver.y.rates, solver.robot.actuator_names,
                solver.of_knot.copy(), *pushes_of(solver), solver.method, solver.h, solver.robot, solver.places,
                (solver.objective.u_low.copy(), solver.objective.u_high.copy()))


def put_start(solver, start):
    """Sets the initial plan of a search; True if its inputs are to be rolled out."""
    robot, path, steps = solver.robot, solver.path, solver.steps
    nu = len(robot.actuator_names)
    path.u[:] = np.clip(solver.objective.u, solver.objective.u_low, solver.objective.u_high)
    if start is None:
        return True
    if isinstance(start, tuple) and len(start) == 2:
        lead, q, v = states(robot, q=start[0], v=start[1])
        if lead != (steps + 1,):
            raise InputError(f"start: states must have shape ({steps + 1}, ...), one for each knot, got "
                             f"leading axes {lead}")
        path.q[1:], path.v[1:] = q[1:], v[1:]
        for k in range(1, steps + 1):
            solver.state(q[k], v[k], k)
        return False
    u = start.u if isinstance(start, Plan) else as_floats("start", start, nu)
    if u.shape != (steps, nu):
        raise InputError(f"start must be a plan or inputs of shape ({steps}, {nu}), or states (q, v), got "
                         f"{shown(u.shape)}")
    require_usable("start", u)
    path.u[:] = np.clip(u, solver.objective.u_low, solver.objective.u_high)
    return True


def first_penalty(solver, roll):
    """The mean cost of a step of the initial plan, 1 if it is zero: larger penalties, from initial plans of high cost,
    make the search creep along the limits, and smaller ones are increased."""
    solver.search(0, (0.0, np.inf), 1.0, roll)
    solver.set_penalty(1.0)
    return float(solver.log.cost[0]) / solver.steps or 1.0


def ddp(robot: Robot, q0: ArrayLike, v0: ArrayLike, cost: Cost, steps: int | Sequence[Phase], h: float,
        limits: Limits | None = None, method: Literal["euler", "midpoint", "rk4"] = "midpoint",
        independent: Sequence[str] | None = None, start: Plan | ArrayLike | tuple[Any, ...] | None = None,
        iterations: int = 200, tolerance: float = 1e-9, limit_tolerance: float = 1e-6,
        penalty: float | None = None, hessian: Literal["gauss-newton", "exact"] = "gauss-newton") -> Plan:
    """Plan a motion of least cost by differential dynamic programming, on the constraint manifold.

    Parameters
    ----------
    robot : Robot
        Trees and closed loops; constraints are two-sided and keep their switches, except for those of phases.
    q0 : array_like, shape (nq,)
        Initial configuration [rad, m; quaternions (x, y, z, w)], closed.
    v0 : array_like, shape (nv,)
        Initial velocity [rad/s, m/s]; with loops only the independent velocities are used.
    cost : Cost
    steps : int or sequence of Phase
        Number of steps, each with an input; or phases, in which contacts are closed by name. At each phase change there
        is a step of no duration, so that the plan has (all steps + phases - 1) rows of inputs. Contacts that
        close there stop at once (a plastic impact); that they touch is satisfied to `limit_tolerance`.
    h : float
        Duration of a step [s].
    limits : Limits, optional
    method : {"euler", "midpoint", "rk4"}
        Integration method: semi-implicit Euler, explicit midpoint rule, or Runge-Kutta of fourth order, all with exact
        derivatives; they need one, two and four evaluations of the dynamics.
    independent : sequence of str, optional
        Coordinates of the tree that determine the others during the whole motion; default: those that the robot
        declares, or those that pivoting at q0 chooses. For plans over phases, and robots that roll: preferred
        coordinates; x is then the state of the whole tree, and dependent coordinates have no feedback.
    start : Plan, array_like or tuple, optional
        Initial guess: a plan or inputs (steps, nu), which are rolled out; or a tuple (q, v) of closed states at all
        knots, which need not follow from one another (multiple shooting). Default: the inputs u of the cost.
    iterations : int
        Largest number of iterations.
    tolerance : float
        The search ends if the linear model predicts a relative decrease of the cost below this value.
    limit_tolerance : float
        Largest violation of limits of states [rad, m, rad/s, m/s].
    penalty : float, optional
        First penalty of violated limits of states, per square of a unit; default: the mean cost of a step of the
        initial plan.
    hessian : {"gauss-newton", "exact"}
        Second derivatives of the search: those of the cost alone; or those of the steps as well, contracted with the
        costate, which is Newton's method: it ends in fewer iterations, each of which takes longer, where costs remain
        large or dynamics are strongly nonlinear. Where Newton's model has no minimum an iteration takes a part of the
        steps' second derivatives, and where its change has to be shortened the better one of both.
        "exact" knows loops, rolling, force elements, phases, the impacts between them, targets, and limits of states.
        Users' targets, centres of mass seen from a frame, and gaps and forces of contacts contribute by Gauss and
        Newton in both cases.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        An argument has the wrong kind, shape or value; or the robot has contacts that open and close outside phases,
        functions of time, or force elements with users' laws, which plans do not support.
    ClosureError
        A loop is open at q0.
    PlanError, SingularConfigurationError
        A step of the initial plan has no solution: the message names the knot.
    KeyboardInterrupt
        Ctrl-C; its attribute ``plan`` is the plan so far.

    Warns
    -----
    PlanWarning
        The search has not converged, or limits cannot be satisfied; the message has the largest violation. Or a contact
        of a phase would have to pull, or to exceed its friction, where that is no limit or could not be satisfied.

    Notes
    -----
    Iterative LQR with gaps (Li and Todorov 2004; feasibility-driven DDP: Mastalli et al. 2020) in independent
    coordinates of the tree, with exact first derivatives of steps and costs and Gauss-Newton second ones, or exact
    second derivatives of steps by an adjoint sweep through their stages (Dunn and Bertsekas 1989). Limits of
    inputs are held exactly by an interior point method on all steps (Rao, Wright and Rawlings 1998), limits of states
    by an augmented Lagrangian (Howell, Jackson and Manchester 2019), and so are the friction cones of contacts (Jackson
    et al. 2021). All of the search is compiled.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> cost = ld.Cost(Q=1e-3, R=1e-5, q=panda.home, terminal_targets=ld.PointTarget("panda_hand", (0.4, 0.2, 0.5),
    ...                                                                             weight=30.0))
    >>> plan = ld.ddp(panda, panda.home, [0.0] * 7, cost, steps=30, h=0.02, limits=ld.Limits(inputs=(-80.0, 80.0)))
    >>> plan.status
    'converged'
    """
    solver = Solver(robot, q0, v0, cost, limits, Division(steps, h, method, independent, hessian))
    iterations = whole("iterations", iterations)
    tolerance, limit_tolerance = non_negative("tolerance", tolerance), non_negative("limit_tolerance", limit_tolerance)
    penalty = None if penalty is None else positive("penalty", penalty)
    solver.begin(*solver.state(q0, v0))
    roll = put_start(solver, start)
    if penalty is None:
        penalty = first_penalty(solver, roll) if solver.limited else 1.0
    solver.set_penalty(penalty)
    try:
        status = solver.search(iterations, (tolerance, limit_tolerance), penalty, roll)
    except KeyboardInterrupt as stop:
        stop.plan = plan_of(solver, ITERATIONS)
        raise
    plan = plan_of(solver, status)
    if status != CONVERGED:
        worst = f"; limits are violated by {plan.violation:.3g}" if plan.violation > limit_tolerance else ""
        fall = -solver.log.slope[plan.iterations]
        warnings.warn(f"{plan.status} after {plan.iterations} iterations: the linear model predicts a fall of the cost "
                      f"by {fall:.3g} of {plan.cost:.6g}{worst}", PlanWarning, stacklevel=2)
    if solver.phases:
        warn_of_contacts(plan, solver.robot, limit_tolerance)
    return plan
