"""The inputs of a run: constant, an array over the time grid, or a function, with its derivative or without."""
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
    """tau or u in the form that the loops take.

    Attributes
    ----------
    direct : bool
        Are they tau, and `actuators` the identity?
    kind, address, derivative : int
        Where they come from; addresses of the function, and of its derivative where that is known and wanted, else 0.
    names : list of str, of length nu
        In messages.
    table : ndarray, shape (rows, nu)
    actuators : ndarray, shape (nv, nu)
        tau = actuators u, and what those of `driven` do.
    driven : ndarray of int64, shape (count, 3)
        Actuators that are force elements, as `liedyn.model.force_elements.Laws` have them.
    sampling : Sampling or None
    functions : dict
        The user's functions (`liedyn.machine.compiled.user_functions.Function`), by what they are.
    """

    def __init__(self, robot, tau, u, start, grid, implicit):
        if tau is not None and u is not None:
            raise InputError("give tau or u, not both: u are the forces of the actuators, tau those of all coordinates")
        name, given = ("u", u) if u is not None else ("tau", tau)
        given, df = feedback.split(name, given)
        self.sampling = None
        self.direct = u is None
        size = len(robot.actuator_names) if u is not None else robot.nv
        self.actuators = robot.tree_actuators.copy() if u is not None else np.eye(robot.nv)
        elements = robot.elements or NO_ELEMENTS
        self.driven = elements.laws.inputs if u is not None else NO_ELEMENTS.laws.inputs
        self.table, self.kind, self.address, self.derivative = np.zeros((1, size)), TABLE, 0, 0
        self.functions = {} if robot.elements is None else dict(robot.elements.functions)
        self.names = [f"{name} of {each!r}" for each in (
            robot.actuator_names if u is not None else robot.velocity_names)]
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


def _table(name, given, size, steps):
    """One row that holds always, or one for each step."""
    table = np.array(as_floats(name, given, size), dtype=np.float64, order="C", ndmin=2)
    if table.ndim != 2 or len(table) not in (1, steps, steps + 1):
        raise InputError(f"{name} over the time grid must have shape ({steps}, {size}) or ({steps + 1}, {size}): row k "
                         f"is held from time k dt on; got {table.shape}")
    require_usable(name, table, axes=2)
    return table


@inline
def input_forces(o, x, t, row, q, v):
    """x.tau = B u and the forces of elements; u is a row of the table, or what the user's function says.

    False if u is no force to compute with.
    """
    if o.input_kind == FUNCTION:
        call(o.input_address, t, q, v, v, v, x.u, 0)
    else:
        copy_to(x.table[row], x.u)
    if o.direct:
        copy_to(x.u, x.tau)
    else:
        for j in range(x.tau.size):
            x.tau[j] = inner(x.actuators[j], x.u)
    if x.elements.ints[N_ROWS] > 0:
        give_inputs(x.laws, x.u)
        add_forces(x.elements, x.laws, x.element_work, t, q, v, x.tau)
    return largest_size(x.u) <= LARGEST


@inline
def add_held(x, q, slope):
    """The energy that force elements hold; slope += its derivative."""
    if x.elements.ints[N_ROWS] == 0:
        return 0.0
    return add_energy_slope(x.elements, x.laws, x.element_work, 0.0, q, slope)


@inline
def held_power(x, q, v):
    """Power that goes into the energy of force elements at a motion v; x.vector[3] is lost."""
    if x.elements.ints[N_ROWS] == 0:
        return 0.0
    x.vector[3, :] = 0.0
    add_held(x, q, x.vector[3])
    return inner(x.vector[3], v)


put_input_forces = kernel_in_place(input_forces.py_func)
"""`input_forces` for Python."""


@inline
def add_element_slopes(x, t, q, v, by_q, by_v):
    """Add dtau/dq and dtau/dv (n, n) of force elements."""
    if x.elements.ints[N_ROWS] > 0:
        add_derivatives(x.elements, x.laws, x.element_work, t, q, v, False, by_q, by_v)


@kernel_in_place
def add_feedback(o, x, t, q, v, by_q, by_v):
    """Add dtau/dq and dtau/dv (n, n), of force elements, and of inputs that are a feedback with a derivative."""
    add_element_slopes(x, t, q, v, by_q, by_v)
    if o.feedback_address == 0:
        return
    call(o.feedback_address, t, q, v, v, v, x.feedback, 0)
    for i in range(by_q.shape[0]):
        for k in range(x.actuators.shape[1]):
            if x.actuators[i, k] != 0.0:
                add_multiple(x.actuators[i, k], x.feedback[0, k], by_q[i])
                add_multiple(x.actuators[i, k], x.feedback[1, k], by_v[i])
    add_driven_slopes(x, by_q, by_v)


@inline
def add_driven_slopes(x, by_q, by_v):
    """Add what the feedback does by actuators that are force elements; after `add_element_slopes`."""
    if x.laws.inputs.shape[0] > 0:
        add_driven(x.elements, x.laws, x.element_work, x.feedback[0], by_q)
        add_driven(x.elements, x.laws, x.element_work, x.feedback[1], by_v)
