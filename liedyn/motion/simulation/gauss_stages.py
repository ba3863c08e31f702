"""Steps of Gauss's Runge-Kutta methods, by fixed-point iteration over the coupled stages.

    q_i = q exp(u_i)    u_i = h sum a_ij udot_j        v_i = v + h sum a_ij a_j, or the same for momenta

In the momenta of joints with one coordinate the equations are Hamilton's, for which these methods are symplectic
(Hairer, Lubich and Wanner 2006, VI.4): the energy does not drift, whatever the step. With constraints on positions,
momenta up to constraint impulses obey Hamilton's equations, too (`liedyn.motion.simulation.momenta_run`; Dichmann and
Maddocks 1996). In velocities the methods are only symmetric.

The iteration contracts by the step times the fastest rate of the motion. It is continued to rounding, as remaining
errors would make the energy drift.
"""
from numba import types

from liedyn.machine.compiled.jit import VECTOR, inline, late
from liedyn.machine.linalg.vectors import copy_to
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.coordinate_rates import local_rates
from liedyn.motion.simulation.momenta_run import end_in_momenta, first_stage, put_increments, stage_in_momenta
from liedyn.motion.simulation.stages import stage
from liedyn.motion.simulation.workspace import MINIMAL, MOMENT, MOMENTA, NOT_CONVERGED, OK, SETTINGS, WORK

ITERATIONS, STALLED = 100, 3
CONVERGED, ROUNDING = 1e-15, 1e-8
"""Changes in an iteration, relative to the state, that end it at once, or after they have ceased to fall STALLED
times: rounding limits them, for bodies at the ends of long arms more than for others."""


@inline
def is_collocation(settings):
    """True if the method is implicit; the first row of the tableau is empty for explicit ones."""
    return settings.tableau[0, 0] != 0.0


@inline
def stage_in_velocities(model, settings, work, start, h, i):
    """Rates of stage i of a step from `start`; returns a status."""
    u = work.step[:start.v.size]
    copy_to(start.v, work.v_stage)
    part = put_increments(settings, work, h, i, u, work.v_stage)
    integrate_kernel(model, start.q, u, work.q_stage)
    status = stage(model, settings, work, start.t + part * h, start.row, i)
    if settings.stabilisation == MINIMAL:
        difference_kernel(model, start.q, work.q_stage, u)
    local_rates(model, u, work.v_stage, work.q_rate[i])
    return status


@inline
def end_in_velocities(model, settings, work, start, h, end):
    u, (q, v) = work.step[:start.v.size], end
    copy_to(start.v, v)
    put_increments(settings, work, h, settings.tableau.shape[1], u, v)
    integrate_kernel(model, start.q, u, q)
    return OK


@inline
def change(before, now, size):
    """The largest change of an entry, relative to the largest entry or to `size`."""
    largest, moved = size, 0.0
    for j in range(now.size):
        largest, moved = max(largest, abs(now[j])), max(moved, abs(now[j] - before[j]))
    return moved / largest if largest > 0.0 else 0.0


@inline
def sweep(model, settings, work, start, h):
    """Recomputes every stage with the newest rates of the others; returns (status, largest change)."""
    moved, status, n, q_rate, rate = 0.0, OK, start.v.size, work.vector[1], work.vector[2]
    for i in range(settings.tableau.shape[1]):
        copy_to(work.q_rate[i, :n], q_rate)
        copy_to(work.a_stage[i], rate)
        if settings.formulation == MOMENTA:
            status = stage_in_momenta(model, settings, work, start, h, i)
        else:
            status = stage_in_velocities(model, settings, work, start, h, i)
        if status != OK:
            break
        moved = max(moved, change(q_rate, work.q_rate[i, :n], 1.0 / h), change(rate, work.a_stage[i], 1.0 / h))
    return status, moved


@late(MODEL, SETTINGS, WORK, MOMENT, types.float64, VECTOR, types.UniTuple(VECTOR, 2), returns=types.int64)
def collocation_step(model, settings, work, start, h, a, end):
    """A step of length h from `start`, where the accelerations are a, to (q, v) = end, by the implicit method of the
    tableau.

    Returns a status. The powers of the stages are written to work.power.
    """
    status, least, stalled = OK, 1e300, 0
    if settings.formulation == MOMENTA:
        status = first_stage(model, settings, work, start, a)
    else:
        copy_to(start.v, work.q_rate[0, :start.v.size])
        copy_to(a, work.a_stage[0])
    for i in range(1, settings.tableau.shape[1]):
        copy_to(work.q_rate[0], work.q_rate[i])
        copy_to(work.a_stage[0], work.a_stage[i])
    for _ in range(ITERATIONS):
        if status != OK:
            return status
        status, moved = sweep(model, settings, work, start, h)
        stalled += moved >= least
        least = min(least, moved)
        if moved < CONVERGED or stalled >= STALLED and least < ROUNDING:
            if settings.formulation == MOMENTA:
                return end_in_momenta(model, settings, work, start, h, end)
            return end_in_velocities(model, settings, work, start, h, end)
        if not moved < 1e100:
            break
    return NOT_CONVERGED
