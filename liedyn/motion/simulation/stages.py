"""A stage of a step, the end of a step, and the power at a state.

`Work` is passed by value, some hundred numbers at each call; therefore what is called at every stage is inlined.
"""
import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.vectors import copy_to, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.contact.sliding_friction import keep_directions
from liedyn.mechanics.tree.rnea import rnea_kernel
from liedyn.model.constraint_records import refresh
from liedyn.motion.simulation.formulations import accelerations
from liedyn.motion.simulation.inputs import held_power
from liedyn.motion.simulation.manifold_projection import stabilise
from liedyn.motion.simulation.workspace import (
    BOUNDED_ENERGY, CONDITION, DIVERGED, FREE_ENERGY, INPUT_WORK, MINIMAL, MOMENTA, NOT_FINITE, OK, OTHER_WORK,
)


@inline
def put_power(model, o, x, q, v, a, power):
    """Power of the inputs, and of other effects on the energy: dampers, external wrenches, moving targets.

    For force elements the power into their stored energy is excluded; the rest is counted with the inputs.
    """
    by_inputs, lost = inner(x.tau, v) + held_power(x, q, v), 0.0
    for j in range(v.size):
        lost += x.damping[j] * v[j] * v[j]
    power[0], power[1] = by_inputs, -lost
    if o.all_power:  # dE/dt = v . (M a + h) without the external wrenches
        rnea_kernel(SCALAR, model, q, v, a, x.none, x.local, x.vector[3])
        power[1] = inner(x.vector[3], v) - inner(x.tau, v) - lost


@inline
def stage(model, o, x, t, row, i):
    """Accelerations and power of stage i at the state x.q_stage, x.v_stage; returns a status."""
    refresh(model, t)
    if o.stabilisation == MINIMAL:
        status = stabilise(model, o, x, 0.0, 0.0, x.q_stage, x.v_stage)
        if status != OK:
            return status
    status = accelerations(model, o, x, t, row, x.q_stage, x.v_stage, x.a_stage[i], x.none)
    x.nearest[0] = max(x.nearest[0], x.number[0])
    if status == OK:
        put_power(model, o, x, x.q_stage, x.v_stage, x.a_stage[i], x.power[i])
    return status


@kernel_in_place
def check(o, q, v):
    """OK if a new state is finite and its speeds are below the largest; else the status that says why."""
    for k in range(q.size):
        if not np.isfinite(q[k]):
            return NOT_FINITE
    for j in range(v.size):
        if not np.isfinite(v[j]):
            return NOT_FINITE
        if abs(v[j]) > o.largest[j]:
            return DIVERGED
    return OK


@inline
def energy_due(o, rows, k, energy):
    """The energy that row k should have; if it is only a bound, dissipated energy is not subtracted."""
    other = rows.scalars[k, OTHER_WORK]
    return energy + rows.scalars[k, INPUT_WORK] + (max(other, 0.0) if o.energy == BOUNDED_ENERGY else other)


@inline
def finish_row(model, o, x, rows, k):
    """Accelerations, multipliers and condition number of row k; returns a status."""
    refresh(model, rows.t[k])
    status = accelerations(model, o, x, rows.t[k], rows.held[k], rows.q[k], rows.v[k], rows.a[k], rows.lam[k])
    rows.scalars[k, CONDITION] = x.number[0]
    copy_to(x.tau, rows.tau[k])
    if o.friction:
        keep_directions(x.friction)
    return status


@inline
def end_step(model, o, x, rows, k, h, wanted):
    """Projects the state in row k, at the end of a step of length h, and completes the row; returns a status."""
    q, v = rows.q[k], rows.v[k]
    status = check(o, q, v)
    # a step in momenta ends on the constraints
    if status == OK and not (o.formulation == MOMENTA and o.energy == FREE_ENERGY):
        status = stabilise(model, o, x, h, wanted, q, v)
    if status == OK:
        status = check(o, q, v)
    if status == OK:
        status = finish_row(model, o, x, rows, k)
    return status
