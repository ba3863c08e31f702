"""The right side of the equations of motion at a stage of a step: moving targets, accelerations, power."""
from liedyn.constraints.records import refresh
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.simulation.far import accelerations, stabilise
from liedyn.simulation.workspace import BOUNDED_ENERGY, MINIMAL, OK
from liedyn.tree.rnea import rnea_kernel


@kernel_in_place
def put_power(model, o, x, q, v, a, power):
    """Power of the inputs, and of all else that changes the energy: dampers, external wrenches, moving targets."""
    by_inputs, lost = 0.0, 0.0
    for j in range(v.size):
        by_inputs += x.tau[j] * v[j]
        lost += x.damping[j] * v[j] * v[j]
    power[0], power[1] = by_inputs, -lost
    if o.all_power:  # dE/dt = v . (M a + h) without the external wrenches
        rnea_kernel(SCALAR, model, q, v, a, x.none, x.local, x.vector[3])
        power[1] = -by_inputs - lost
        for j in range(v.size):
            power[1] += x.vector[3, j] * v[j]


@kernel_in_place
def wanted_energy(o, energy, by_inputs, other):
    """The energy that there ought to be; where it is a bound, what has been lost is not taken from it."""
    return energy + by_inputs + (max(other, 0.0) if o.energy == BOUNDED_ENERGY else other)


@kernel_in_place
def stage(model, o, x, t, row, i):
    """Accelerations and power at the state in x.q_stage, x.v_stage, as number i of a step; returns a status."""
    refresh(model, t)
    if o.stabilisation == MINIMAL:
        status = stabilise(o.stabiliser, model, o, x, 0.0, 0.0, x.q_stage, x.v_stage)
        if status != OK:
            return status
    status = accelerations(o.formulation, model, o, x, t, row, x.q_stage, x.v_stage, x.a_stage[i], x.none)
    x.nearest[0] = max(x.nearest[0], x.number[0])
    if status == OK:
        put_power(model, o, x, x.q_stage, x.v_stage, x.a_stage[i], x.power[i])
    return status
