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
    BOUNDED_ENERGY, CONDITION, DIVERGED, FREE_ENERGY, INPUT_WORK, MINIMAL, MOMENTA, NOT_FINITE, OK, OTHER_WORK, Moment,
)


@inline
def put_power(model, settings, work, q, v, a, power):
    """Power of the inputs, and of other effects on the energy: dampers, external wrenches, moving targets.

    For force elements the power into their stored energy is excluded; the rest is counted with the inputs.
    """
    by_inputs, lost = inner(work.tau, v) + held_power(work, q, v), 0.0
    for j in range(v.size):
        lost += work.damping[j] * v[j] * v[j]
    power[0], power[1] = by_inputs, -lost
    if settings.all_power:  # dE/dt = v . (M a + h) without the external wrenches
        rnea_kernel(SCALAR, model, q, v, a, work.none, work.local, work.vector[3])
        power[1] = inner(work.vector[3], v) - inner(work.tau, v) - lost


@inline
def stage(model, settings, work, t, row, i):
    """Accelerations and power of stage i at the state work.q_stage, work.v_stage; returns a status."""
    refresh(model, t)
    if settings.stabilisation == MINIMAL:
        status = stabilise(model, settings, work, 0.0, 0.0, work.q_stage, work.v_stage)
        if status != OK:
            return status
    status = accelerations(
        model, settings, work, Moment(t, row, work.q_stage, work.v_stage), work.a_stage[i], work.none)
    work.nearest[0] = max(work.nearest[0], work.number[0])
    if status == OK:
        put_power(model, settings, work, work.q_stage, work.v_stage, work.a_stage[i], work.power[i])
    return status


@kernel_in_place
def check(settings, q, v):
    """OK if a new state is finite and its speeds are below the largest; else the status that says why."""
    for k in range(q.size):
        if not np.isfinite(q[k]):
            return NOT_FINITE
    for j in range(v.size):
        if not np.isfinite(v[j]):
            return NOT_FINITE
        if abs(v[j]) > settings.largest[j]:
            return DIVERGED
    return OK


@inline
def energy_due(settings, rows, k, energy):
    """The energy that row k should have; if it is only a bound, dissipated energy is not subtracted."""
    other = rows.scalars[k, OTHER_WORK]
    return energy + rows.scalars[k, INPUT_WORK] + (max(other, 0.0) if settings.energy == BOUNDED_ENERGY else other)


@inline
def finish_row(model, settings, work, rows, k):
    """Accelerations, multipliers and condition number of row k; returns a status."""
    refresh(model, rows.t[k])
    now = Moment(rows.t[k], rows.held[k], rows.q[k], rows.v[k])
    status = accelerations(model, settings, work, now, rows.a[k], rows.lam[k])
    rows.scalars[k, CONDITION] = work.number[0]
    copy_to(work.tau, rows.tau[k])
    if settings.friction:
        keep_directions(work.friction)
    return status


@inline
def end_step(model, settings, work, rows, k, h, wanted):
    """Projects the state in row k, at the end of a step of length h, and completes the row; returns a status."""
    q, v = rows.q[k], rows.v[k]
    status = check(settings, q, v)
    # a step in momenta ends on the constraints
    if status == OK and not (settings.formulation == MOMENTA and settings.energy == FREE_ENERGY):
        status = stabilise(model, settings, work, h, wanted, q, v)
    if status == OK:
        status = check(settings, q, v)
    if status == OK:
        status = finish_row(model, settings, work, rows, k)
    return status
