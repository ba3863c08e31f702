"""Runge-Kutta-Munthe-Kaas: the classical fourth order in local coordinates q = q_0 exp(u), never off the group.

udot = dexp^-1_{-u} v (Munthe-Kaas 1998, 1999; Hairer, Lubich and Wanner 2006, IV.8.2), started anew at each step; the
inverse of dexp is exact here, so no commutator is truncated. For one-dof joints this is the classical method itself.
"""
from liedyn.jit import kernel_in_place
from liedyn.simulation.coordinates import local_rates
from liedyn.simulation.rates import stage
from liedyn.simulation.workspace import MINIMAL, OK
from liedyn.tree.configuration import difference_kernel, integrate_kernel


@kernel_in_place
def rkmk_step(model, o, x, t, h, row, q, v, a, q_new, v_new, work):
    """One step from (t, q, v), where a is known; adds to the two works. Returns a status."""
    u, rates = x.vector[1], x.q_rate  # rates of u: nv numbers at most nq
    n = v.size
    for j in range(v.size):
        x.a_stage[0, j] = a[j]
    for j in range(n):
        rates[0, j] = v[j]
    for i in range(1, 4):
        c = h if i == 3 else 0.5 * h
        for j in range(n):
            u[j] = c * rates[i - 1, j]
            x.v_stage[j] = v[j] + c * x.a_stage[i - 1, j]
        integrate_kernel(model, q, u, x.q_stage)
        status = stage(model, o, x, t + c, row, i)
        if status != OK:
            return status
        if o.stabilisation == MINIMAL:  # the constraints have moved the stage
            difference_kernel(model, q, x.q_stage, u)
        local_rates(model, u, x.v_stage, rates[i, :n])
    for j in range(n):
        u[j] = h / 6.0 * (rates[0, j] + 2.0 * rates[1, j] + 2.0 * rates[2, j] + rates[3, j])
        v_new[j] = v[j] + h / 6.0 * (
            x.a_stage[0, j] + 2.0 * x.a_stage[1, j] + 2.0 * x.a_stage[2, j] + x.a_stage[3, j])
    for c in range(2):
        work[c] += h / 6.0 * (x.power[0, c] + 2.0 * x.power[1, c] + 2.0 * x.power[2, c] + x.power[3, c])
    integrate_kernel(model, q, u, q_new)
    return OK
