"""A search for plans of one robot, with all its arrays: made once, used for many plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from liedyn.linear.linearize import linearize
from liedyn.linear.operating_point import CLOSURE_TOLERANCE, actuators_of
from liedyn.machine.arguments import one_of, positive, require_robot
from liedyn.machine.compiled.slices import Slices
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import ClosureError, InputError, LiedynError, shown
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.memory import require_memory
from liedyn.machine.typed_decorators import once
from liedyn.mechanics.constraints.independent import all_holonomic, by_name, choose, given_coordinates
from liedyn.mechanics.constraints.loops import closure_error
from liedyn.mechanics.contact.watching import dry_friction_of, watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.calls.boundary import states
from liedyn.model.packed import PackedModel
from liedyn.motion.discrete_steps import CLASSICAL, EULER, MIDPOINT
from liedyn.motion.step_curvature import curvature_room
from liedyn.tasks.planning.backward_pass import InputBox, backward_room
from liedyn.tasks.planning.ddp_search import (
    FROM_INPUTS, GO_ON, ITERATIONS, SINGULAR, Log, Options, Plans, Rooms, raise_multipliers, search,
)
from liedyn.tasks.planning.element_forces import elements_of
from liedyn.tasks.planning.expansion import Expansion, Path, stage_room
from liedyn.tasks.planning.forward_pass import ForwardRoom
from liedyn.tasks.planning.objective import cost_room
from liedyn.tasks.planning.phase_schedule import knots_of, no_phases, pack_phases, phases_of
from liedyn.tasks.planning.planning_problem import cost_floor, limits_of, objective_of
from liedyn.tasks.planning.step import Discretisation, coordinates_of, step_room

if TYPE_CHECKING:
    from liedyn.typing import Array

HESSIANS = "gauss-newton", "exact"
"""Second derivatives of the search: those of the cost alone, or those of the steps as well."""
METHODS = {"euler": EULER, "midpoint": MIDPOINT, "rk4": CLASSICAL}
SLICE, STAGE, SMALL = 0.05, 1e-4, 10
"""Seconds of the first slice of a search, and of a stage of a step in an iteration for robots of up to `SMALL` degrees
of freedom: ten times what they take."""
HALVINGS = 12
"""Number of fractions of a change that are tried, each half of the one before."""
GROWTH, LARGEST_PENALTY = 10.0, 1e8
"""Growth of the penalty of a violated limit, and the largest penalty relative to the first one."""


class PlanError(LiedynError):
    """A motion cannot be planned: a step from some knot has no solution.

    Attributes
    ----------
    knot : int
        Index of the knot.
    q, v : ndarray
        The state at the knot.

    Examples
    --------
    >>> import liedyn as ld
    >>> issubclass(ld.PlanError, ld.LiedynError)
    True
    """

    knot: int
    q: Array
    v: Array

    def __init__(self, message: str, knot: int, q: Array, v: Array) -> None:
        super().__init__(message)
        self.knot, self.q, self.v = knot, q, v


def require_known(robot):
    """InputError if the robot has something that plans do not support."""
    unknown = [(robot.elements is not None and bool(robot.elements.functions),
                "force elements with laws of users, or applied forces that are functions of time"),
               (bool(robot.functions), "users' functions in its model"),
               (dry := dry_friction_of(robot), dry),
               (watches(robot), "one-sided contacts that open and close: plan in phases, `steps=[ld.Phase(...)]`, or "
                                "switch each, `robot.switched(...)`")]
    for has, what in unknown:
        if has:
            raise InputError(f"{robot.name!r} has {what}; plans by `ddp` do not know them")
    if not robot.actuator_names:
        raise InputError(f"{robot.name!r} has no actuators, there is nothing to plan")


def coordinates_for(robot, q, independent):
    """Independent coordinates of the tree for the steps, in its order.

    Raises InputError if they are no coordinates of the tree.
    """
    independent = given_coordinates("independent", independent)
    if isinstance(independent, str) and independent == "tangent":
        raise InputError("independent: plans need coordinates of the tree, got 'tangent'")
    y = choose(robot, q, independent, RANK_TOLERANCE)
    strange = [name for name in y.names if name not in robot.velocity_names]
    if strange:
        raise InputError(f"independent: {strange[0]!r} belongs to a cut joint; plans need coordinates of the tree")
    return by_name(robot, sorted(y.names, key=robot.velocity_index))


def groups_of(robot, places):
    """(first, count) of each ball or free joint among the chosen coordinates."""
    groups = []
    for group in robot.groups:
        first, count = group.start, group.stop - group.start
        at = np.flatnonzero((places >= first) & (places < first + count))
        if 0 < len(at) < count:
            raise InputError(f"only part of the ball or free joint of {robot.velocity_names[first]} is independent: "
                             "its coordinates can be integrated together only")
        if len(at):
            groups.append((at[0], count))
    return np.array(groups, np.int64).reshape(-1, 2)


@once
def no_curvature(n, p, nu):
    """An empty `curvature_room`, which nobody writes to."""
    return curvature_room(0, 0, n, p, nu)


def first_slice(stages, size):
    """Iterations before Python handles signals for the first time: most searches need no more, and each call of
    compiled code converts a hundred arrays."""
    return max(1, int(SLICE / (STAGE * stages * (max(size, SMALL) / SMALL)**3)))


class Division(NamedTuple):
    """How a motion is divided into steps, and what the search reads of them: arguments of `ddp`."""

    steps: Any
    h: float
    method: str
    independent: Any = None
    hessian: str = HESSIANS[0]


class Solver:
    """The arrays of a search, and the search.

    Attributes
    ----------
    y : Independent
    objective : Objective
    limit_names : tuple of str
    path : Path
        The plan: states and inputs.
    expansion : Expansion
        Derivatives of the steps, including the feedback K, multipliers and penalties.
    """

    def __init__(self, robot, q, v, cost, limits, division):
        require_robot(robot)
        steps, h, method, independent, hessian = division
        self.phases, counts, self.robots = phases_of(robot, steps)
        self.robot, self.h = self.robots[0], positive("h", h)
        self.method = one_of("method", method, METHODS)
        self._require_memory(sum(counts) + len(counts), METHODS[self.method])
        self.of_knot, self.t = knots_of(counts, self.h)
        self.steps = len(self.t) - 1
        q, v = self.state(q, v)
        for each in self.robots:
            require_known(each)
        self.discretisation = self._in_phases(q, counts, independent, limits) if (
            self.phases or not all_holonomic(self.robot)) else self._in_one(q, independent, limits)
        self.exact = one_of("hessian", hessian, HESSIANS) == HESSIANS[1]
        self.set_objective(cost, limits)
        self.model = PackedModel(self.robot.packed.ints, self.robot.packed.floats.copy())
        p, nu, c = len(self.places), len(self.robot.actuator_names), len(self.limit_names)
        n, nq, step, x, N = self.robot.nv, self.robot.nq, step_room(self.model, p), 2 * p, self.steps
        o = self.objective
        rows = max(o.running.weights.size, o.final.weights.size, o.bounded.weights.size)
        zeros = np.zeros
        self.path, self.trial = (Path(zeros((N + 1, nq)), zeros((N + 1, n)), zeros((N, nu))) for _ in range(2))
        self.expansion = Expansion(
            zeros((N, x, x)), zeros((N, x, nu)), zeros((N, x)), zeros((N + 1, x)), zeros((N + 1, x, x)),
            zeros((N, nu)), self._curvatures(N, nu, x), zeros((N, nu)), zeros((N, nu, x)), zeros((N + 1, c)),
            np.ones((N + 1, c)))
        self.rooms = Rooms(
            step, stage_room(self.robot, self.discretisation, N + 1, o.whole), cost_room(self.model, p, rows),
            backward_room(x, nu), ForwardRoom(zeros(n), zeros(x), zeros(x)), InputBox(*zeros((9, N, nu))),
            curvature_room(self.discretisation.method * (N + 1), N, n, p, nu) if self.exact else no_curvature(n, p, nu),
            Path(*(np.zeros_like(each) if self.exact else np.zeros((0, each.shape[1])) for each in self.path)))
        self.log, self._slices = None, Slices(first_slice(self.discretisation.method * N, n))

    def __getstate__(self):  # users' functions have addresses in this process only
        return vars(self) | ({"objective": None, "functions": None} if self.functions else {})

    def __setstate__(self, state):
        vars(self).update(state)
        if self.functions is None:
            self.set_objective(*self._given)

    def _require_memory(self, knots, stages):
        """TooLargeError if derivatives at all knots need more memory than there is."""
        n, nu, m = self.robot.nv, len(self.robot.actuator_names), len(self.robot.row_names)
        x = 2 * (n if self.phases else max(n - m, 1))
        require_memory(f"a plan of {self.robot.name!r} with {knots - 1} steps",
                       8.0 * knots * (3 * x * (x + nu) + stages * (n + m) * (3 * x + 2 * nu)))

    def _in_one(self, q, independent, limits):
        """The discretisation in coordinates that are the same during the whole motion, and determine x."""
        robot, contacts = self.robot, limits_of(limits).contacts
        if not isinstance(contacts, bool):
            raise InputError("limits of contacts count in phases, `steps=[ld.Phase(...)]`, and True or False without "
                             f"them, got {shown(contacts)}")
        self.y = y = coordinates_for(robot, q, independent)
        self.places = places = y.rows.argmax(axis=1).astype(np.int64)
        groups, choosable = groups_of(robot, places), np.zeros((2, padded.py_func(robot.nv)))
        self._require_sums(len(groups))
        choosable[:, :robot.nv] = 1.0
        choosable[:, places] = 0.0
        return Discretisation(
            METHODS[self.method], self.h, places, places, np.arange(2 * len(places)), groups, choosable,
            robot.packed.ints, coordinates_of(y), actuators_of(robot), RANK_TOLERANCE, no_phases(),
            self._elements())

    def _in_phases(self, q, counts, independent, limits):
        """The discretisation in coordinates of each phase; x is the state of the whole tree."""
        robot, n = self.robot, self.robot.nv
        if self.method == "euler" and not all(map(all_holonomic, self.robots)):
            raise InputError("method='euler' moves coordinates by new velocities, which rolling and contacts that "
                             "stick do not leave free; use 'midpoint'")
        preferred = () if independent is None else coordinates_for(robot, q, independent).rows.argmax(axis=1)
        self.y, self.places = by_name(robot, robot.velocity_names), np.arange(n)
        phases = pack_phases(self.robots, counts, q, preferred, limits)
        self._require_sums(phases.counts[:, 2].max())
        return Discretisation(
            METHODS[self.method], self.h, self.places, self.places, np.arange(2 * n), phases.groups[0],
            phases.choosable[0], robot.packed.ints, coordinates_of(self.y), actuators_of(robot), RANK_TOLERANCE, phases,
            self._elements())

    def _curvatures(self, steps, nu, x):
        """[l_ux l_uu] of all steps, if forces of contacts are limited or steps have second derivatives."""
        has = self.exact or self.discretisation.phases.cones.rows.size > 0
        return np.zeros((steps, nu, x + nu) if has else (steps, 0, 0))

    def _elements(self):
        """Force elements, for the states at all stages of all steps."""
        return elements_of(self.robot, METHODS[self.method] * (self.steps + 1))

    def _require_sums(self, groups):
        if groups and self.method == "rk4":
            raise InputError(f"method='rk4' needs coordinates that add up, and {self.robot.name!r} has ball or free "
                             "joints; use 'midpoint'")

    @property
    def limited(self):
        """True if the search has multipliers, of limits or of contacts that close."""
        phases = self.discretisation.phases
        return bool(self.limit_names) or phases.lam.size + phases.cones.lam.size > 0

    def set_penalty(self, penalty):
        """Sets the first penalty of all limits, and multipliers to zero."""
        phases = self.discretisation.phases
        self.expansion.lam[:] = phases.lam[:] = phases.cones.lam[:] = 0.0
        self.keep_penalty(penalty)

    def keep_penalty(self, penalty):
        """Sets the penalty of all limits; multipliers do not change."""
        phases = self.discretisation.phases
        self.expansion.mu[:] = phases.mu[:] = phases.cones.mu[:] = penalty

    def state(self, q, v, knot=0):
        """A state as rows, closed in the phase of a knot.

        Raises InputError, ClosureError as `linearize` does.
        """
        robot = self.robots[self.of_knot[knot]]
        lead, q, v = states(robot, q0=q, v0=v)
        if lead:
            raise InputError(f"a plan begins at one state, got leading axes {lead}")
        if robot.row_names:
            error = float(np.abs(closure_error(robot, q[0])).max())
            if error > CLOSURE_TOLERANCE:
                raise ClosureError(f"{robot.name!r} is open by {error:.3g} at q0; assemble it first with close()",
                                   error, None, q[0])
        return q[0], v[0]

    def set_objective(self, cost, limits):
        """Sets another cost and other limits, with the same numbers of rows."""
        d, self._given = self.discretisation, (cost, limits)
        whole = len(self.places) == self.robot.nv and d.phases.counts.size == d.groups.size == 0
        self.objective, self.limit_names, self.functions = objective_of(
            self.robot, self.y, whole, cost, limits, self.steps)

    def begin(self, q, v):
        """Sets the first state at all knots, and feedback to zero."""
        for path in self.path, self.trial:
            path.q[:], path.v[:] = q, v
        self.expansion.K[:] = self.expansion.k[:] = 0.0

    def search(self, iterations, tolerances, penalty, roll, finish=True, halvings=HALVINGS, growth=GROWTH):
        """Improves the plan; returns the reason for the end of the search.

        `tolerances` are those of the decrease of the cost and of limits. `roll` selects the start
        (`liedyn.tasks.planning.ddp_search.Options`; False and True: states, inputs). Without `finish` the feedback is
        that of the iteration before the last, and multipliers are updated by `raise_multipliers`. `growth` is the
        factor of penalties, 1 for constant ones.

        Raises PlanError if a step of the initial plan has no solution.
        """
        memory = np.zeros(5) if self.log is None else self.log.memory
        self.log = log = Log(*(np.zeros(iterations + 2) for _ in range(5)), np.zeros(3, np.int64), memory)
        forget_errors(self.functions)
        status = self._search_in_slices(iterations, Options(
            iterations, halvings, *tolerances, growth, LARGEST_PENALTY * penalty, int(roll),
            1 if finish else 0, cost_floor(self.objective, self.steps)), log)
        raise_errors(self.functions)
        if status == SINGULAR:
            rolled = roll == FROM_INPUTS and self.log.count[0] == 0
            self.fail(int(self.log.count[2]), self.trial if rolled else self.path)
        if status == ITERATIONS and finish:
            self.raise_multipliers()
        return status

    def _search_in_slices(self, iterations, options, log):
        """`search` in slices, each continued where the one before ran out of iterations
        (`liedyn.machine.compiled.slices`)."""
        made = updates = 0
        while True:
            part = min(self._slices.pieces, iterations - made)
            last = made + part == iterations
            with self._slices.timed(part):
                status = search(
                    self.model, self.discretisation, self.objective, Plans(self.path, self.trial, self.expansion),
                    self.rooms,
                    options._replace(iterations=part, roll=GO_ON if made else options.roll,
                                     finish=options.finish if last else 0),
                    Log(*(each[made:] for each in log[:5]), *log[5:]))
            log.count[:2] += made, updates
            if last or status != ITERATIONS:
                return status
            made, updates = log.count[:2].tolist()
            raise_errors(self.functions)

    def raise_multipliers(self):
        """Updates the multipliers of the limits for the present plan."""
        raise_multipliers(self.model, self.discretisation, self.objective, self.rooms, self.path, self.expansion)

    def fail(self, knot, path):
        """Raises the error that says why a step from a knot has no solution."""
        at = min(knot, self.steps)
        q, v = path.q[at].copy(), path.v[at].copy()
        where = f"at knot {at} of {self.steps}, t = {self.t[at]:g} s"
        try:
            linearize(self.robots[self.of_knot[at]], q, v, tau=np.zeros(self.robot.nv),
                      independent=None if self.discretisation.phases.counts.size else self.y.names)
        except InputError:  # numbers of a diverged motion
            pass
        except LiedynError as error:
            error.args = (f"{error} ({where} of the plan)", *error.args[1:])
            raise
        raise PlanError(f"the step {where} leads nowhere: {self.robot.name!r} does not close after it, or its numbers "
                        "overflow; begin with other inputs, a shorter step or limits", at, q, v)
