"""Plans by differential dynamic programming: inputs, states and feedback that are best for a cost, within limits."""
# mypy: ignore-errors

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import non_negative, number, positive, whole
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.contact.contact_state import contacts_of
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.configuration import difference
from liedyn.mechanics.tree.energy import total_mass
from liedyn.model.calls.boundary import as_floats, require_usable, states
from liedyn.tasks.planning.ddp_search import CONVERGED, ITERATIONS, STALLED, VIOLATED
from liedyn.tasks.planning.phase_schedule import STANDARD_GRAVITY, contact_forces
from liedyn.tasks.planning.solver import Solver

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
"""Part of the largest force of a contact that may be beyond its friction, or pull, by rounding."""
STANDING = 0.01
"""Part of the largest impulse that another one may be beyond its friction by, without a warning: where feet land, those
that stand are pulled a little."""


class PlanWarning(UserWarning):
    """A plan that is not the best one, or does not hold its limits."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A planned motion; made by :func:`liedyn.ddp`. As a function of (t, q, v) it is a regulator along it.

    Attributes
    ----------
    t : ndarray, shape (steps + 1,)
        Times of the knots [s].
    q, v : ndarray, shapes (steps + 1, nq) and (steps + 1, nv)
        States at the knots [rad, m; rad/s, m/s]; loops are closed.
    u : ndarray, shape (steps, nu)
        Inputs, each held for a step [N m, N].
    K : ndarray, shape (steps, nu, x)
        Feedback of the states: u + K x, with x the deviation from the knot. No feedback at limits of inputs.
    cost : float
    costs : ndarray, shape (iterations + 1,)
        Cost before each iteration, and at the end.
    violation : float
        Largest violation of limits of states; forces of contacts in weights of the robot, impulses in kg m/s by its
        mass.
    multipliers : dict
        Of limits of states, by name, shape (steps + 1,): positive at the upper one, negative at the lower one. Of
        contacts whose forces are limited, by name, shape (steps, 3), 1 for those without friction: what the cost would
        change by per newton of the normal and the tangential forces.
    status : str
        ``"converged"``, or why the search has ended.
    iterations : int
    states, inputs : tuple of str
        Names of x and u.
    phase : ndarray, shape (steps + 1,)
        Number of the phase of each knot. Where one ends and the next one begins two knots have the same time, and the
        input between them does nothing.
    contacts : dict
        Of plans over phases, by name of a one-sided contact, shape (steps, 2): normal force and friction [N] as each
        step begins; zero where it is open.
    impulses : dict
        Of plans over phases, by name of a one-sided contact, shape (phases - 1, 2): those [N s] where phases begin.
    method : str
    h : float

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> plan = ld.ddp(arm, arm.home, [0.0] * 4, ld.Cost(Q=1.0, R=1e-3, q=arm.home), steps=10, h=0.01)
    >>> plan.u.shape, plan.K.shape, plan.status
    ((10, 4), (10, 4, 4), 'converged')
    """

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

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Inputs of the actuators: those of the plan with its feedback, within their limits.

        Parameters
        ----------
        t : float
            Time since the plan's beginning [s]; before it, and after its last step, those steps count.
        q : array_like, shape (nq,)
        v : array_like, shape (nv,)

        Returns
        -------
        u : ndarray, shape (nu,)

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> plan = ld.ddp(arm, arm.home, [0.0] * 4, ld.Cost(Q=1.0, R=1e-3, q=arm.home), steps=10, h=0.01)
        >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.1, u=ld.Sampled(plan, plan.h))
        """
        lead, q, v = states(self._robot, q=q, v=v)
        if lead:
            raise InputError(f"a plan takes one state at a time, got leading axes {lead}")
        # a sample at a knot may come a rounding error early
        k = int(np.clip(np.searchsorted(self.t, number("t", t) + 1e-6 * self.h, "right") - 1, 0, len(self.u) - 1))
        return regulated(self._robot, self._places, self, k, q[0], v[0], self._bounds)


def regulated(robot, places, plan, k, q, v, bounds):
    """Inputs of step k of a plan (with q, v, u and K) with its feedback."""
    x = np.concatenate([difference(robot, plan.q[k], q)[places], (v - plan.v[k])[places]])
    return np.clip(plan.u[k] + plan.K[k] @ x, *bounds)


def pushes_of(solver):
    """What the contacts of a plan over phases push with, in steps and where phases begin."""
    if not solver.phases:
        return {}, {}
    path, robot = solver.path, solver.robot
    forces = contact_forces(solver.robots, solver.of_knot, path.q, path.v,
                            np.einsum("kij,kj->ki", actuator_matrix(robot, path.q[:-1]), path.u))
    touches = np.flatnonzero(np.diff(solver.of_knot))
    lam, contacts = solver.rooms.stages.found.lam[touches], contacts_of(robot, robot.packed)
    return forces, {name: np.stack(contacts.loads(c, lam), axis=1) for c, name in enumerate(contacts.names)}


def multipliers_of_contacts(solver):
    """Of the limits of forces, by name of the contact."""
    cones, robot = solver.discretisation.phases.cones, solver.robot
    contacts, found = contacts_of(robot, robot.packed), cones.lam / cones.unit[:, None]
    names = [contacts.names[list(contacts.first).index(row)] for row in cones.rows[cones.first]]
    return {name: found[:, i:i + count] for name, i, count in zip(names, cones.first, cones.count)}


def warn_of_contacts(plan, robot, limit_tolerance):
    """PlanWarning where a contact would have to pull, or to hold more than its friction can."""
    contacts, begins = contacts_of(robot, robot.packed), plan.t[:-1][np.diff(plan.phase) > 0]
    # limits are held to limit_tolerance: twice that, for friction up to 1.7
    held_to = 2.0 * limit_tolerance * STANDARD_GRAVITY * total_mass(robot)
    largest = max((np.abs(load).max(initial=0.0) for load in plan.impulses.values()), default=0.0)
    for name, friction in zip(contacts.names, contacts.friction):
        for load, t, unit, rounding in ((plan.contacts[name], plan.t, "N", held_to),
                                        (plan.impulses[name], begins, "N s", max(held_to, STANDING * largest))):
            push, hold = load.T
            with np.errstate(invalid="ignore"):  # infinite friction holds without a push, too
                held = np.nan_to_num(friction * np.maximum(push, 0.0), nan=np.inf, posinf=np.inf)
            beyond = np.maximum(-push, hold - held)
            k = int(beyond.argmax()) if len(load) else 0
            if len(load) and beyond[k] > max(PULL * np.abs(load).max(), rounding):
                warnings.warn(f"contact {name!r} has to push with {push[k]:.4g} {unit} and to hold {hold[k]:.4g} "
                              f"{unit} at t = {t[k]:g} s, with friction {friction:g}: `simulate` would let it "
                              "go or slip",
                              PlanWarning, stacklevel=3)


def plan_of(solver, status):
    """The plan that a search has left, as it is."""
    count, path, x, log = int(solver.log.count[0]), solver.path, solver.expansion, solver.log
    multipliers = {name: x.lam[:, k].copy() for k, name in enumerate(solver.limit_names)}
    multipliers |= multipliers_of_contacts(solver)
    return Plan(solver.t.copy(), path.q.copy(), path.v.copy(), path.u.copy(), x.K.copy(),
                float(log.cost[count]), log.cost[:count + 1].copy(), float(log.violation[count]), multipliers,
                STATUS[status], count, solver.y.names + solver.y.rates, solver.robot.actuator_names,
                solver.of_knot.copy(), *pushes_of(solver), solver.method, solver.h, solver.robot, solver.places,
                (solver.objective.u_low.copy(), solver.objective.u_high.copy()))


def put_start(solver, start):
    """The plan where the search begins; True if its inputs are to be rolled out."""
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
    """The mean cost of a step where the search begins, 1 if it is zero: larger ones, of starts that cost much, make
    the search crawl along the limits, and smaller ones grow."""
    solver.search(0, 0.0, np.inf, 1.0, roll)
    solver.set_penalty(1.0)
    return float(solver.log.cost[0]) / solver.steps or 1.0


def ddp(robot: Robot, q0: ArrayLike, v0: ArrayLike, cost: Cost, steps: int | Sequence[Phase], h: float,
        limits: Limits | None = None, method: Literal["euler", "midpoint", "rk4"] = "midpoint",
        independent: Sequence[str] | None = None, start: Plan | ArrayLike | tuple[Any, ...] | None = None,
        iterations: int = 200, tolerance: float = 1e-9, limit_tolerance: float = 1e-6,
        penalty: float | None = None) -> Plan:
    """Plan a motion of least cost by differential dynamic programming, on the manifold of the constraints.

    Parameters
    ----------
    robot : Robot
        Trees and closed loops; constraints are two-sided and stay as they are switched, but for those of phases.
    q0 : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] at the beginning, closed.
    v0 : array_like, shape (nv,)
        Velocity [rad/s, m/s]; of loops the independent velocities count.
    cost : Cost
    steps : int or sequence of Phase
        How many steps the plan has, with an input each; or phases, in which contacts are closed by name. Between two of
        them lies a step of no duration, so that the plan has (all steps + phases - 1) rows of inputs. Contacts that
        close there stop at once (a plastic impact); that they touch is held to `limit_tolerance`.
    h : float
        Time of a step [s].
    limits : Limits, optional
    method : {"euler", "midpoint", "rk4"}
        The step: semi-implicit Euler, explicit midpoint rule, or Runge-Kutta of fourth order, all with exact
        derivatives; they take one, two and four evaluations of the dynamics.
    independent : sequence of str, optional
        Coordinates of the tree that determine the others all along the motion; default: the robot's own, or those that
        pivoting at q0 leaves. Of plans over phases, and of robots that roll: coordinates to prefer; x is then that of
        the whole tree, and what depends on others has no feedback.
    start : Plan, array_like or tuple, optional
        Where the search begins: a plan or inputs (steps, nu), which are rolled out; or a tuple (q, v) of states at all
        knots, closed, which need not follow from one another (multiple shooting). Default: the inputs u of the cost.
    iterations : int
        Largest number of iterations.
    tolerance : float
        The search ends where the linear model predicts no fall of the cost by more than this part of it.
    limit_tolerance : float
        Largest violation of limits of states [rad, m, rad/s, m/s].
    penalty : float, optional
        First penalty of violated limits of states, per square of a unit; default: the mean cost of a step of the plan
        that the search begins with.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        An argument of the wrong kind, shape or value; or a robot with contacts that open and close outside phases,
        functions of time, or force elements with laws of users, which plans do not know.
    ClosureError
        A loop is open at q0.
    PlanError, SingularConfigurationError
        The steps that the search begins with lead nowhere: the message names the knot.
    KeyboardInterrupt
        Ctrl-C; its attribute ``plan`` is the plan so far.

    Warns
    -----
    PlanWarning
        The search has not converged, or limits cannot be held; with the largest violation. A contact of a phase would
        have to pull, or to hold more than its friction, where that is no limit or could not be held.

    Notes
    -----
    Iterative LQR with gaps (Li and Todorov 2004; feasibility-driven DDP: Mastalli et al. 2020) in independent
    coordinates of the tree, with exact first derivatives of steps and costs and Gauss-Newton second ones. Limits of
    inputs are held exactly by a quadratic programme at each knot (Tassa, Mansard and Todorov 2014), limits of states by
    an augmented Lagrangian (Howell, Jackson and Manchester 2019), and so are the friction cones of contacts (Jackson et
    al. 2021). All of the search is compiled.

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
    solver = Solver(robot, q0, v0, cost, steps, h, limits, method, independent)
    iterations = whole("iterations", iterations)
    tolerance, limit_tolerance = non_negative("tolerance", tolerance), non_negative("limit_tolerance", limit_tolerance)
    penalty = None if penalty is None else positive("penalty", penalty)
    solver.begin(*solver.state(q0, v0))
    roll = put_start(solver, start)
    if penalty is None:
        penalty = first_penalty(solver, roll) if solver.limited else 1.0
    solver.set_penalty(penalty)
    try:
        status = solver.search(iterations, tolerance, limit_tolerance, penalty, roll)
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
