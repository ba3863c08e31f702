"""The model, settings and workspace of a finished run, for the derivatives of its steps."""
import numpy as np

from liedyn.linear.sensitivity.changes import make_changes
from liedyn.linear.sensitivity.law_sensitivity import make_slopes
from liedyn.linear.sensitivity.partials import partial_states
from liedyn.linear.sensitivity.variations import ByParameters, Motion
from liedyn.machine.compiled.slices import Slices
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import InputError, SimulationError
from liedyn.machine.memory import require_memory
from liedyn.mechanics.contact.contact_state import statuses
from liedyn.mechanics.contact.watching import dry_friction_of
from liedyn.model.calls.boundary import wrenches
from liedyn.model.constraint_records import refresh
from liedyn.model.packed import N_ROWS, PackedModel
from liedyn.motion.gradients.equations import element_changes, put_at_rest
from liedyn.motion.gradients.room import StepDerivatives, make_room
from liedyn.motion.gradients.step_derivatives import differentiate_steps, make_parts, vary_start
from liedyn.motion.simulation.inputs import Inputs
from liedyn.motion.simulation.preparation import one_sided, private_model, settings_of
from liedyn.motion.simulation.workspace import (
    FREE_ENERGY, FUNCTION, MESSAGES, N_SCALARS, NOT_CLOSED, OK, Rows, make_rows, make_work,
)

FEW = 64
"""Number of steps that are differentiated in the first slice."""
MADE_IN_PARTS = "next to a singular configuration its step could not be found again"


class Tape:
    """The model, settings and workspace of a finished run, for the derivatives of its steps."""

    def __init__(self, robot, start, grid, scheme, pushes, events, changes):
        """`start` is (q, v), `pushes` is (tau, u, f_ext) as given to `simulate`, `scheme` its `Scheme`."""
        tau, u, f_ext = pushes
        forces = wrenches(robot, f_ext, ())[0]
        self.robot, self.n, self.grid, self.given = robot, robot.nv, grid, start
        self.inputs = Inputs(robot, tau, u, (grid.start, *start), grid, True)
        if self.inputs.kind == FUNCTION and not self.inputs.derivative:
            name = "u" if u is not None else "tau"
            raise InputError(f"{name} is a function without its derivative: give a pair (f, df), as for check_feedback")
        if self.inputs.sampling is not None:
            raise InputError("Sampled controllers are not differentiated: give inputs over the time grid, or (f, df)")
        self.model = private_model(robot, grid.start)
        self.contacts = one_sided(robot, self.model, (), events)
        if dry := dry_friction_of(robot, fixed=True):
            raise InputError(f"runs are not differentiated with {dry}")
        self.x = make_work(robot, forces, self.inputs, self.contacts, scheme.method.tableau.shape[1])
        self.o = settings_of(robot, scheme, self.contacts, self.inputs, len(forces) > 0, FREE_ENERGY)
        own, of_elements = (make_changes([each[k] for each in changes]) for k in range(2))
        self.room = make_room(self.model, self.x, own, of_elements, make_slopes(self.x.laws, int(
            self.x.elements.ints[N_ROWS])))
        self.d, self.parameters = self.room.derivatives, len(changes)

    def put(self, status, t):
        """Sets the statuses of the constraints, and the time."""
        statuses(self.model)[:] = status
        refresh(self.model, t)

    def row(self, t):
        """The row of the table of inputs that is used at time t."""
        return min(self.grid.number(t), len(self.x.table) - 1)

    def at_rest(self):
        """The model without gravity, springs and velocities of targets."""
        put_at_rest(self.model, self.room.at_rest)
        return PackedModel(self.model.ints, self.room.at_rest)

    def element_partials(self, t, q, v):
        """Derivatives by the parameters of minus the forces of elements; after `put_derivatives` at this state."""
        found = np.zeros((self.n, self.parameters))
        if self.room.of_elements.changes.records.size:
            element_changes(self.x, t, q, v, self.room.of_elements, found)
        return found

    def partials(self, q, v, a, lam):
        """Derivatives by the parameters of ID + G^T lam, phi, psi and g, with the present statuses of constraints."""
        n, m, count = self.n, len(self.x.psi), self.parameters
        found = ByParameters(*(np.zeros((1, size, count)) for size in (n, m, m, m)))
        if count:
            at = Motion(*(np.ascontiguousarray(x[None]) for x in (q, v, a, lam)))
            partial_states(self.model, at, self.room.changes, found)
        return [x[0] for x in found]

    def start(self, rows, start):
        """Derivative of the initial state by the parameters, (2 n, np): zero for start="as given"."""
        first = 2 * self.n + self.x.actuators.shape[1]
        if start == "as given" or not self.parameters:
            return np.zeros((2 * self.n, self.parameters))
        given = self.given if start == "project" else (rows.q[0], rows.v[0])
        if vary_start(self.model, self.o, self.x, *given, rows, self.room) != OK:
            raise SimulationError("how the start moves with the parameters is not determined: its constraints are "
                                  "singular there")
        return np.vstack([self.room.theta, self.room.v])[:, first:first + self.parameters].copy()

    def steps(self, trajectory, held, parts, start="check"):
        """Derivatives of all steps in the parts between events."""
        rows, n = len(trajectory.t), self.n
        known = Rows(trajectory.t, held, trajectory.q, trajectory.v, trajectory.a, trajectory.tau, trajectory.lam,
                     np.empty((rows, N_SCALARS)), np.empty((rows, 0)))
        nu, parameters = self.x.actuators.shape[1], self.parameters
        require_memory(f"derivatives of {rows - 1} steps of {self.robot.name!r} by its states, {nu} inputs and "
                       f"{parameters} parameters", 16.0 * rows * n * (2 * n + nu + parameters + 1))
        found = StepDerivatives(np.zeros((rows - 1, 2 * n, 2 * n)), np.zeros((rows - 1, 2 * n, nu)),
                                np.zeros((rows - 1, 2 * n, parameters)), np.zeros((rows - 1, 2 * n)))
        origin, slices = np.arange(rows - 1), Slices(FEW)
        statuses(self.model)[:] = trajectory.status[0]
        start = self.start(known, start)
        for first, last in parts:
            statuses(self.model)[:] = trajectory.status[first]
            k = first
            while k < last:
                end = min(last, k + slices.pieces)
                with slices.timed(end - k):
                    status, k = self._differentiate(known, k, end, found)
                if status == NOT_CLOSED:  # the step was not a single step with its projection
                    base = self._passage(known, k, first, found)
                    status, origin[k], k = (status, k, k) if base is None else (OK, base, k + 1)
                if status != OK:
                    text = MADE_IN_PARTS if status == NOT_CLOSED else MESSAGES[status]
                    raise SimulationError(f"the run has no derivative at t = {trajectory.t[k]:.9g} s: "
                                          f"{text.format(largest=self.o.largest.min())}", trajectory)
        return found, start, origin

    def _differentiate(self, rows, first, last, found):
        functions = self.inputs.functions | self.robot.functions
        forget_errors(functions)
        result = differentiate_steps(self.model, self.o, self.x, rows, (first, last), self.room, found)
        raise_errors(functions)
        return result

    def _passage(self, rows, k, first, found):
        """Derivatives of a step to row k + 1 that passes a singular configuration; the row where it begins, or None."""
        for base in range(k, max(first, k - 1) - 1, -1):
            for parts in (1, 2, 4, 8, 16, 32, 64):
                if base == k and parts == 1:
                    continue
                made = make_rows(self.robot, parts + 1)
                for target, source in zip(made[:-2], rows[:-2]):
                    target[0] = source[base]
                made.t[parts], made.held[:] = rows.t[k + 1], rows.held[base]
                if make_parts(self.model, self.o, self.x, made) != OK:
                    continue
                if np.array_equal(made.q[parts], rows.q[k + 1]) and np.array_equal(made.v[parts], rows.v[k + 1]):
                    own = StepDerivatives(*(np.zeros((parts, *x.shape[1:])) for x in found))
                    if self._differentiate(made, 0, parts, own)[0] != OK:
                        return None
                    put_product(own, np.diff(made.t) / (made.t[-1] - made.t[0]), k, found)
                    return base
        return None


def put_product(parts, lengths, k, found):
    """The derivatives of a step from those of its parts; `lengths` are their fractions of the step."""
    state, of_inputs, of_parameters, of_length = np.eye(parts.by_state.shape[1]), 0.0, 0.0, 0.0
    for by_state, by_inputs, by_parameters, by_length, length in zip(*parts, lengths):
        state, of_inputs = by_state @ state, by_state @ of_inputs + by_inputs if np.ndim(of_inputs) else by_inputs
        of_parameters = by_state @ of_parameters + by_parameters if np.ndim(of_parameters) else by_parameters
        of_length = by_state @ of_length + length * by_length if np.ndim(of_length) else length * by_length
    found.by_state[k], found.by_inputs[k], found.by_parameters[k], found.by_length[k] = (
        state, of_inputs, of_parameters, of_length)
