"""The programs of a robot: which kernels are traced for each function, and at which state decisions are taken.

Each body below calls kernels as compiled code does, in their plain versions (`liedyn.machine.program.trace`), with the
robot's numbers as constants. It returns arrays of results by name.
"""
import functools
from typing import NamedTuple

import numpy as np

from liedyn.bridges.specialization.element_terms import ElementTerms
from liedyn.bridges.specialization.logarithms import anywhere
from liedyn.linear.local import linearize_in_place, linearize_size
from liedyn.linear.linearize_one_state import own_coordinates
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.operating_point import CLOSURE_TOLERANCE, actuators_of
from liedyn.linear.output_rows import output_size, put_outputs, read_accelerations
from liedyn.linear.outputs import output_plan
from liedyn.linear.space import Coordinates, LocalSpace
from liedyn.machine.errors import InputError, SingularConfigurationError
from liedyn.machine.program.expressions import larger, value_of
from liedyn.machine.program.guards import REDUNDANT
from liedyn.machine.program.trace import array_of, constants, room, traced_kernel
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.forward_states import (
    PIVOTED, Choice, Order, Solved, nullspace_in_place, nullspace_size,
)
from liedyn.mechanics.dynamics.nullspace import OK, RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.tree.aba_second_derivatives import aba_hessian
from liedyn.mechanics.tree.rnea_hessian import rnea_hessian
from liedyn.model.calls.direct import bad_quaternion
from liedyn.model.calls.recursion import RECURSIONS, arguments_of
from liedyn.model.packed import SPARSE, PackedModel

CONSISTENT = 1e-13
"""Largest violation of constraints some of which are redundant, by which results of `linearize` do not change."""
LARGEST_CONDITION = 300.0
"""Largest condition number of dependent velocities: where it is larger, those of another reference are better."""
HESSIANS = (rnea_hessian.__name__, aba_hessian.__name__)
"""Second derivatives of a weighted sum of forces, or of accelerations, of the open tree."""
TREE = ("rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives", *HESSIANS)
"""Functions of the open tree whose arguments and results are those declared in `liedyn.mechanics.tree`."""
OF_STATES = (*TREE, "forward_dynamics", "constrained_motion", "linearize", "linear_model", "model_with_outputs")
"""Functions that require quaternions to be of unit length, as the general ones do."""


def _holds(guard):
    """True if a guard holds at the reference state."""
    a, b = value_of(guard.smaller), value_of(guard.larger)
    return a < b if guard.strict else a <= b


class TracedFunction(NamedTuple):
    """A function of a robot as a program.

    Attributes
    ----------
    name : str
    inputs : dict
        Sizes of its arguments, by name.
    program : Program
    results : dict
        Expressions and numbers of its results, flat arrays by name.
    """

    name: str
    inputs: dict
    program: object
    results: dict

    def length(self):
        """The number of expressions on which its results and guards depend."""
        roots = [x for values in self.results.values() for x in values]
        return len(self.program.used_by([*roots, *(x for guard in self.program.guards for x in guard[:2])]))

    def only(self, names):
        """The same with those results that are named."""
        return self._replace(results={x: self.results[x] for x in names})


class RobotPrograms:
    """The programs of one robot at one reference state.

    Parameters
    ----------
    robot : Robot
    state : dict
        The reference: closed `q`, consistent `v`, forces `tau`, accelerations `a`, and `weights` if they matter.
    chosen : tuple, optional
        Coordinates and velocities of linear models (`Independent`).
    outputs : tuple of str, optional
        Their outputs, as for `linearize`.
    """

    def __init__(self, robot, state, chosen=None, outputs=None):
        self.robot, self.chosen, self.wanted = robot, chosen, outputs
        self.state = {"weights": 1.0 + np.arange(robot.nv)} | state
        ints, floats = constants(robot.packed.ints), constants(robot.packed.floats)
        ints[SPARSE] = 0  # what is zero at every state is skipped in any case
        self.model = PackedModel(ints, floats)
        self.n, self.m, self.nq = robot.nv, len(robot.row_names), robot.nq
        self._elements = None if robot.elements is None else ElementTerms(robot)
        self._traces = {}

    def trace(self, name):
        """The program of a function, traced once.

        Returns
        -------
        TracedFunction

        Raises
        ------
        SingularConfigurationError
            The reference state has no result.
        """
        if name not in self._traces:
            self._traces[name] = self._traced(name)
        return self._traces[name]

    def _traced(self, name):
        body, taken = self._of_tree(name) if name in TREE else self._of_method(getattr(self, name))
        body = self._of_unit_quaternions(body) if name in OF_STATES and "q" in taken else body
        if "inertia" in taken and "inertia" not in self.state:
            self.state["inertia"] = [value_of(x) for x in self.trace("inertia").results["M"]]
        reference = {x: self.state[x] for x in taken}
        try:
            program, results = traced_kernel(reference, body, self.instead_in(name))
        except ZeroDivisionError:
            raise self.singular(f"{name} divides by zero") from None
        if not all(_holds(guard) for guard in program.guards):
            raise self.singular(f"a decision of {name} is in doubt")
        if not np.isfinite([value_of(x) for values in results.values() for x in values]).all():
            raise self.singular(f"{name} is not finite")
        return TracedFunction(name, {x: len(numbers) for x, numbers in reference.items()}, program, results)

    def _of_tree(self, name):
        declared = RECURSIONS[name]
        extents = {"nv": self.n, "nq": self.nq}
        shapes = declared.scratch | declared.results

        def body(plain, **given):
            arrays = {x: room(*(extents.get(k) or int(k) for k in shape)) for x, shape in shapes.items()}
            known = given | arrays | {"lane": SCALAR, "model": self.model, "f_ext": room(0)}
            if declared.size is not None:
                known["work"] = room(plain(declared.size)(self.model))
            plain(declared.kernel)(*(known[x] for x in arguments_of(declared.kernel)))
            return {x: arrays[x] for x in declared.results}

        return body, tuple(x for x in declared.inputs if x != "f_ext")

    def _of_unit_quaternions(self, body):
        """What has no result unless quaternions are of unit length."""
        def required(plain, **given):
            self._require(plain(bad_quaternion)(self.model, given["q"]) < 0)
            return body(plain, **given)

        return required

    def instead_in(self, name):
        """What replaces compiled functions in a program (`Tracer`); None for nothing."""
        return anywhere if self._elements is not None and self._elements.has_displacements else None

    @staticmethod
    def _of_method(body):
        """A method that traces kernels, and the names of its inputs, which come after `plain`."""
        return body, body.__code__.co_varnames[2:body.__code__.co_argcount]

    # ---- dynamics

    def forward_dynamics(self, plain, q, v, tau):
        """Accelerations a and multipliers lam of minimum norm."""
        found = self.constrained_motion(plain, q, v, tau)
        return {"a": found["a"], "lam": found["lam"]}

    def constrained_motion(self, plain, q, v, tau):
        """The results of `forward_dynamics`, and a condition number that grows next to singular configurations."""
        tau = self.with_elements(plain, q, v, tau)
        solved, order = Solved(room(self.n), room(self.m), room(self.n)), Order(room(self.m + self.n), room(self.n))
        work = room(plain(nullspace_size)(self.model))
        choice = Choice(room(0, self.n), room(0), PIVOTED, RANK_TOLERANCE)
        status, _, condition, _ = plain(nullspace_in_place)(
            self.model, State(q, v, tau, room(0)), choice, work, order, solved)
        self._require(status == OK)
        if value_of(condition) < LARGEST_CONDITION:  # some mechanisms have no better state
            self._require(condition < LARGEST_CONDITION)
        return {"a": solved.a, "lam": solved.lam, "condition": array_of([condition])}

    def with_elements(self, plain, q, v, tau):
        """tau and the forces of force elements."""
        return tau if self._elements is None else self._elements.with_forces(plain, q, v, tau)

    def stage_accelerations(self, plain, q, v, tau):
        """The a of `forward_dynamics` also where redundant rows contradict each other a little, as within a step.

        Rows that are redundant at the reference state are left out: the projection at the end of the step sees them.
        """
        with q[0].program.guards.off(REDUNDANT):
            return {"a": self.forward_dynamics(plain, q, v, tau)["a"]}

    def linearize(self, plain, q, v, tau):
        """A, B and f0 in the coordinates of `choices`."""
        space, _, _ = self.local_space(plain, q, v, tau)
        return {"A": space.A, "B": space.B, "f0": space.f0}

    def linear_model(self, plain, q, v, tau):
        """A, B, f0 and K in the coordinates of `choices`, and the condition number of these."""
        space, _, condition = self.local_space(plain, q, v, tau)
        return self._model(space, condition)

    def model_with_outputs(self, plain, q, v, tau):
        """`linear_model`, C and D."""
        space, left, condition = self.local_space(plain, q, v, tau)
        plan, (x, nu) = self.output_plan(), space.B.shape
        if len(plan.parts):
            C, D = self.output_rows(plain, q, v, left, plan.parts, len(plan.labels))
        else:
            C, D = map(constants, own_coordinates(self.robot, len(plan.labels), x, nu))
        return self._model(space, condition) | {"C": C, "D": D}

    def _model(self, space, condition):
        count = len(self.choices()[0].names)
        K = array_of([x for row in space.N for x in row[:count]])
        return {"A": space.A, "B": space.B, "f0": space.f0, "K": K, "condition": array_of([condition])}

    def output_plan(self):
        """The `OutputPlan` of C and D."""
        plan = output_plan(self.robot, self.robot.outputs if self.wanted is None else self.wanted, self.choices()[0])
        plan.without_joints("specialize")
        if plan.contacts:
            raise InputError("specialize has no wrenches of constraints that are not loops: ask ld.linearize for "
                             f"{plan.labels[plan.contacts[0][1]]!r}")
        return plan

    def output_rows(self, plain, q, v, found, parts, count):
        """C and D for the parts of an `OutputPlan` with so many rows; `found` is what `local_space` has left."""
        (space, work, slopes), (x, nu) = found, found[0].B.shape
        p_y, size = len(self.choices()[0].names), plain(output_size)(SCALAR, self.model, count, x, nu)
        C, D = room(count, x), room(count, nu)
        if plain(read_accelerations)(parts):
            plain(complete_derivatives)(SCALAR, p_y, self._actuators(), space,
                                        room(x - p_y, x + nu), room(self.n, x + nu))
        plain(put_outputs)(SCALAR, self.model, State(q, v, room(self.n), room(0)), parts, space,
                           work[plain(first_place)(work):], room(size), C, D)
        return (C, D) if slopes is None else self._elements.closed(space, slopes, C, D)

    def local_space(self, plain, q, v, tau):
        """The `LocalSpace` in the coordinates of `choices`, what `output_rows` needs besides, and the condition number
        of the coordinates and velocities."""
        y, w = self.choices()
        coordinates = Coordinates(constants(y.rows), y.virtual, constants(w.rows), w.virtual)
        p_y, p_w, actuators = len(y.names), len(w.names), self._actuators()
        tau = self.with_elements(plain, q, v, tau)
        n, m, x, nu = self.n, self.m, p_y + p_w, actuators.shape[1]
        space = LocalSpace(room(x, x), room(x, nu), room(x), room(p_w), room(n), room(m), room(m), room(m), room(m, n),
                           room(n, n), room(n, x), room(n, x), room(n, x + nu), room(n, x + nu))
        work = room(plain(linearize_size)(self.model, p_y, p_w, nu))
        found = plain(linearize_in_place)(
            self.model, State(q, v, tau, room(0)), coordinates, actuators, RANK_TOLERANCE, work, space)
        self._require(found[0] == OK and found[3] == OK)
        self._require_consistent(q, v, space.residual, space.psi)
        condition, slopes = larger(found[2], found[5]), None
        if self._elements is None:
            return space, (space, work, slopes), condition
        slopes = self._elements.slopes(plain, q, v)
        A, B = self._elements.closed(space, slopes, space.A, space.B)
        return space._replace(A=A, B=B), (space, work, slopes), condition

    def _actuators(self):
        return constants(actuators_of(self.robot)) if self._elements is None else self._elements.actuators()

    def choices(self):
        """The coordinates and velocities of linear models: those given, or as `linearize` chooses them here."""
        if self.chosen is None:
            q = self.state["q"]
            y = choose_positions(self.robot, q, None, RANK_TOLERANCE)
            self.chosen = y, choose_speeds(self.robot, q, y, None, RANK_TOLERANCE)
        return self.chosen

    def _require_consistent(self, q, v, residual, psi):
        """Every state has to lie on the constraint manifold, and its velocity along it.

        Redundant rows contradict each other in proportion to the violation, and results depend on which are chosen.
        """
        tolerance = CONSISTENT if len(q) and REDUNDANT in q[0].program.guards.kinds else CLOSURE_TOLERANCE
        largest = functools.reduce(larger, map(abs, v), 1.0)
        for bound, rows in ((tolerance, residual), (tolerance * largest, psi)):
            for x in rows:
                self._require(abs(x) <= bound)

    def _require(self, found):
        if not found:
            raise self.singular("there is no result")

    def singular(self, what):
        """The error for a reference state where the kernels find no result."""
        G = constraint_jacobian(self.robot, self.state["q"])
        return SingularConfigurationError(
            f"{what} at the reference configuration of {self.robot.name!r}: give others as `at`, away from singular "
            "ones", np.linalg.svd(G, compute_uv=False))
