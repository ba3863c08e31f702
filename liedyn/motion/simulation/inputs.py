"""The inputs of a run: constant, an array over the time grid, or a function, with or without derivative."""
import numpy as np

from liedyn.linear import feedback
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.compiled.user_functions import Function, call
from liedyn.machine.errors import InputError
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.vectors import add_multiple, copy_to, inner
from liedyn.machine.simd.registers import LARGEST
from liedyn.mechanics.elements.forces import add_derivatives, add_driven, add_energy_slope, add_forces, give_inputs
from liedyn.model.calls.boundary import as_floats, require_usable
from liedyn.model.force_elements import NO_ELEMENTS
from liedyn.model.packed import N_ROWS
from liedyn.motion.simulation.sampled import Sampled, Sampling
from liedyn.motion.simulation.workspace import FUNCTION, TABLE


class Inputs:
    """tau or u in the form that the loops use.

    Attributes
    ----------
    direct : bool
        True if the inputs are tau; `actuators` is then the identity.
    kind, address, derivative : int
        Kind of the source; addresses of the function, and of its derivative if that is known and needed, else 0.
    names : list of str, of length nu
        Names of the inputs in messages.
    table : ndarray, shape (rows, nu)
    actuators : ndarray, shape (nv, nu)
        tau = actuators u, plus the forces of the actuators in `driven`.
    driven : ndarray of int64, shape (count, 3)
        Actuators that are force elements, in the format of `liedyn.model.force_elements.Laws`.
    sampling : Sampling or None
    functions : dict
        The user's functions (`liedyn.machine.compiled.user_functions.Function`), by role.
    """

    def __init__(self, robot, tau, u, start, grid, implicit):
        if tau is not None and u is not None:
            raise InputError("give tau or u, not both: u are the forces of the actuators, tau those of all coordinates")
        name, given = ("u", u) if u is not None else ("tau", tau)
        given, df = feedback.split(name, given)
        self.sampling, self.robot = None, robot
        self.direct = u is None
        size = len(robot.actuator_names) if u is not None else robot.nv
        self.actuators = robot.tree_actuators.copy() if u is not None else np.eye(robot.nv)
        elements = robot.elements or NO_ELEMENTS
        self.driven = elements.laws.inputs if u is not None else NO_ELEMENTS.laws.inputs
        self.table, self.kind, self.address, self.derivative = np.zeros((1, size)), TABLE, 0, 0
        self.functions = {} if robot.elements is None else dict(robot.elements.functions)
        if isinstance(given, Sampled):
            self.sampling = Sampling(name, given, size, grid)
            self.table[0] = self.sampling.initial
        elif callable(given):
            t0, q0, v0 = start
            sample = {"t": t0, "q": q0.copy(), "v": v0.copy()}
            self.functions[name] = Function(name, given, sample, ((size,),))
            self.kind, self.address = FUNCTION, self.functions[name].address
            if df is not None:
                feedback.derivatives(name, df, t0, q0, v0, size)
            if df is not None and implicit:
                what, shape = f"df of {name} = (f, df)", (size, robot.nv)
                self.functions[what] = Function(what, df, sample, (shape, shape))
                self.derivative = self.functions[what].address
        elif given is not None:
            self.table = _table(name, given, size, grid.steps)


    @property
    def names(self):
        names = self.robot.velocity_names if self.direct else self.robot.actuator_names
        return [f"{'tau' if self.direct else 'u'} of {each!r}" for each in names]


def _table(name, given, size, steps):
    """The table of inputs: one row if they are constant, or one for each step."""
    table = np.array(as_floats(name, given, size), dtype=np.float64, order="C", ndmin=2)
    if table.ndim != 2 or len(table) not in (1, steps, steps + 1):
        raise InputError(f"{name} over the time grid must have shape ({steps}, {size}) or ({steps + 1}, {size}): row k "
                         f"is held from time k dt on; got {table.shape}")
    require_usable(name, table, axes=2)
    return table


@inline
def input_forces(settings, work, t, row, q, v):
    """work.tau = B u plus the forces of elements; u is a row of the table, or the result of the user's function.

    Returns False if u is not finite.
    """
    if settings.input_kind == FUNCTION:
        call(settings.input_address, t, q, v, v, v, work.u, 0)
    else:
        copy_to(work.table[row], work.u)
    if settings.direct:
        copy_to(work.u, work.tau)
    else:
        for j in range(work.tau.size):
            work.tau[j] = inner(work.actuators[j], work.u)
    if work.elements.ints[N_ROWS] > 0:
        give_inputs(work.laws, work.u)
        add_forces(work.elements, work.laws, work.element_work, t, q, v, work.tau)
    return largest_size(work.u) <= LARGEST


@inline
def add_held(work, q, slope):
    """The energy stored in force elements; its derivative is added to `slope`."""
    if work.elements.ints[N_ROWS] == 0:
        return 0.0
    return add_energy_slope(work.elements, work.laws, work.element_work, 0.0, q, slope)


@inline
def held_power(work, q, v):
    """Power that flows into the stored energy of force elements at velocity v; work.vector[3] is overwritten."""
    if work.elements.ints[N_ROWS] == 0:
        return 0.0
    work.vector[3, :] = 0.0
    add_held(work, q, work.vector[3])
    return inner(work.vector[3], v)


put_input_forces = kernel_in_place(input_forces.py_func)
"""`input_forces` for Python."""


@inline
def add_element_slopes(work, t, q, v, by_q, by_v):
    """Adds dtau/dq and dtau/dv (n, n) of force elements."""
    if work.elements.ints[N_ROWS] > 0:
        add_derivatives(work.elements, work.laws, work.element_work, t, q, v, False, by_q, by_v)


@kernel_in_place
def add_feedback(settings, work, t, q, v, by_q, by_v):
    """Adds dtau/dq and dtau/dv (n, n) of force elements, and of inputs that are a feedback with a derivative."""
    add_element_slopes(work, t, q, v, by_q, by_v)
    if settings.feedback_address == 0:
        return
    call(settings.feedback_address, t, q, v, v, v, work.feedback, 0)
    for i in range(by_q.shape[0]):
        for k in range(work.actuators.shape[1]):
            if work.actuators[i, k] != 0.0:
                add_multiple(work.actuators[i, k], work.feedback[0, k], by_q[i])
                add_multiple(work.actuators[i, k], work.feedback[1, k], by_v[i])
    add_driven_slopes(work, by_q, by_v)


@inline
def add_driven_slopes(work, by_q, by_v):
    """Adds the feedback through actuators that are force elements; after `add_element_slopes`."""
    if work.laws.inputs.shape[0] > 0:
        add_driven(work.elements, work.laws, work.element_work, work.feedback[0], by_q)
        add_driven(work.elements, work.laws, work.element_work, work.feedback[1], by_v)
