"""The classical Runge-Kutta method on the numbers of q and v, quaternions in their linear space.

Qdot = Q (w, 0) / 2 is an ordinary equation in R^4 that keeps the length of Q, so the method has its fourth order there;
the rounding of the length is taken away after each step. What the dynamics see are unit quaternions.
"""
from liedyn.jit import inline
from liedyn.simulation.coordinates import coordinate_rates, unit_quaternions
from liedyn.simulation.rates import stage
from liedyn.simulation.workspace import OK


@inline
def rk4_step(model, o, x, t, h, row, q, v, a, q_new, v_new, work):
    """One step from (t, q, v), where a is known; adds to the two works. Returns a status."""
    coordinate_rates(model, q, v, x.q_rate[0])
    for j in range(v.size):
        x.a_stage[0, j] = a[j]
    for i in range(1, 4):
        c = h if i == 3 else 0.5 * h
        for k in range(q.size):
            x.q_stage[k] = q[k] + c * x.q_rate[i - 1, k]
        for j in range(v.size):
            x.v_stage[j] = v[j] + c * x.a_stage[i - 1, j]
        coordinate_rates(model, x.q_stage, x.v_stage, x.q_rate[i])
        unit_quaternions(model, x.q_stage)
        status = stage(model, o, x, t + c, row, i)
        if status != OK:
            return status
    for k in range(q.size):
        q_new[k] = q[k] + h / 6.0 * (
            x.q_rate[0, k] + 2.0 * x.q_rate[1, k] + 2.0 * x.q_rate[2, k] + x.q_rate[3, k])
    for j in range(v.size):
        v_new[j] = v[j] + h / 6.0 * (
            x.a_stage[0, j] + 2.0 * x.a_stage[1, j] + 2.0 * x.a_stage[2, j] + x.a_stage[3, j])
    for c in range(2):
        work[c] += h / 6.0 * (x.power[0, c] + 2.0 * x.power[1, c] + 2.0 * x.power[2, c] + x.power[3, c])
    unit_quaternions(model, q_new)
    return OK
