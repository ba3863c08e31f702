"""Second derivatives of all steps of a plan, contracted with its costates: Newton's Hessian of the cost.

The costate of a plan is the gradient of the cost to go by the state at a knot,

    lambda_N = l_x        lambda_k = l_x + A^T lambda_(k+1)

As it does not depend on the changes that are searched for, the Hessians of all steps are one batch, before the backward
pass. They are added to the second derivatives of the cost, so that the quadratic model of the backward pass is that of
Newton's method (Dunn and Bertsekas 1989). Far from an optimum it may have no minimum: then a smaller part of them is
added, down to none, which is the method of Gauss and Newton.
"""
from numba import types

from liedyn.machine.compiled.by_address import contents
from liedyn.machine.compiled.jit import inline, late
from liedyn.model.packed_records import MODEL
from liedyn.motion.step_curvature import (
    CURVATURE_ROOM, all_done, put_hessians, put_motion_weights, put_stage_weights, put_step_hessian,
)
from liedyn.tasks.planning.element_curvature import Given, element_hessians
from liedyn.tasks.planning.element_forces import has_elements
from liedyn.tasks.planning.expansion import EXPANSION, PATH, STAGE_ROOM
from liedyn.tasks.planning.phase_curvature import phase_hessians, put_touch_hessian, stop_all
from liedyn.tasks.planning.phases import touches
from liedyn.tasks.planning.step import DISCRETISATION, STEP_ROOM, in_phase


@inline
def step_back(x, k, costate, before):
    """The costate of knot k from that of the next one; `before` is scratch."""
    for i in range(costate.size):
        s = x.lx[k, i]
        for j in range(costate.size):
            s += x.A[k, j, i] * costate[j]
        before[i] = s
    for i in range(costate.size):
        costate[i] = before[i]


@inline
def put_last(x, costate):
    """The costate of the last knot."""
    for i in range(costate.size):
        costate[i] = x.lx[x.A.shape[0], i]


@inline
def add_to_cost(total, k, x):
    """Adds the Hessian of the step from knot k to l_xx and by_u."""
    n, nu = x.lx.shape[1], x.lu.shape[1]
    for i in range(n):
        for j in range(n):
            x.lxx[k, i, j] += 0.5 * (total[i, j] + total[j, i])
    for c in range(nu):
        for j in range(n + nu):
            x.by_u[k, c, j] += 0.5 * (total[n + c, j] + total[j, n + c])


@inline
def put_stage_hessians(model, d, states, begin, end, c):
    """`put_hessians`, in phases or with force elements if there are any."""
    if d.phases.counts.shape[0] > 0:
        return phase_hessians(model, d, states, (d.phases.of_knot.size, begin, end), c)
    if not has_elements(d):
        return put_hessians(model, d, states, begin, end, c)
    put_motion_weights(d, begin, end, c)
    given = Given(contents(d.coordinates), d.actuators, d.rank_tolerance, c.motion)
    element_hessians(begin, end, model, states, given, contents(d.elements), c.H, c.done)
    return all_done(begin, end, c)


@late(MODEL, DISCRETISATION, STAGE_ROOM, STEP_ROOM, CURVATURE_ROOM, PATH, EXPANSION, returns=types.boolean)
def add_step_hessians(model, d, r, step, c, path, x):
    """Adds the Hessians of all steps to those of the cost, and of the motions that the costs of states depend on.

    To be called after `weigh_costs`. Returns False if a state has none.
    """
    d, r, c, x = contents(d), contents(r), contents(c), contents(x)
    knots = path.q.shape[0]
    if d.phases.counts.shape[0] > 0:
        stop_all(c, knots)
    put_last(x, c.costate)
    for k in range(knots - 2, -1, -1):
        if not touches(d, k):
            put_stage_weights(in_phase(model, d, k)[1], r, c, k, knots, path.v[k])
        step_back(x, k, c.costate, r.x)
    for stage in range(d.method):
        if not put_stage_hessians(model, d, contents(r.states), stage * knots, (stage + 1) * knots - min(stage, 1), c):
            return False
    put_last(x, c.costate)
    for k in range(knots - 2, -1, -1):
        if touches(d, k):
            if not put_touch_hessian(model, d, step, contents(r.states), k, (r.found.K[k], r.found.C[k]), c):
                return False
        else:
            put_step_hessian(in_phase(model, d, k)[1], r, c, k, knots, path.v[k])
        add_to_cost(c.total, k, x)
        step_back(x, k, c.costate, r.x)
    for i in range(x.lx.shape[1]):
        for j in range(x.lx.shape[1]):
            x.lxx[knots - 1, i, j] += c.H[knots - 1, i, j]
    return True


@late(CURVATURE_ROOM, EXPANSION, types.float64)
def leave_step_hessians(c, x, part):
    """Leaves only a part of what has been added to the Gauss-Newton matrices of the cost."""
    c, x = contents(c), contents(x)
    n = x.lx.shape[1]
    for k in range(x.lxx.shape[0]):
        for i in range(n):
            for j in range(n):
                x.lxx[k, i, j] = c.kept[k, i, j] + part * (x.lxx[k, i, j] - c.kept[k, i, j])
        for i in range(n, c.kept.shape[1] if k < x.by_u.shape[0] else n):
            for j in range(c.kept.shape[2]):
                x.by_u[k, i - n, j] = c.kept[k, i, j] + part * (x.by_u[k, i - n, j] - c.kept[k, i, j])
