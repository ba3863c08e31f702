"""Implicit steps on the local state space, with the analytic iteration matrix 1 - h gamma A_hat (Spencer 2004, ch. 5).

The state x = (y, w) is that of the linearization: coordinates that the position constraints leave, velocities that all
constraints leave; q and v follow from it (`minimal.complete`). A stage of a diagonally implicit Runge-Kutta method,

    y_i = y_n + h sum a_ij ydot_j        w_i = w_n + h sum a_ij wdot_j        a_ii = gamma,

is solved by Newton, and what is linear in a variation of (y, w) is what `linearize` computes, without differences:
A_hat, and the motions N and X = [Delta S] of q and v. For ball and free joints y is R log(q_n^-1 q) and the matrix is
that of the body-fixed tangent, which differs by O(h): there the iteration converges linearly, as it does where inputs
feed back the state and their derivative is not given. The method is the fourth-order, L-stable, stiffly accurate one of
Hairer and Wanner (1996, IV.6, table 6.5) with gamma = 1/4.
"""
import numpy as np

from liedyn.constraints.records import refresh
from liedyn.jit import kernel
from liedyn.simulation.coordinates import local_rates
from liedyn.simulation.elimination import eliminate
from liedyn.simulation.far import linearization, stabilise
from liedyn.simulation.feedback import close_loop
from liedyn.simulation.fixed_step import check, finish_row, next_row
from liedyn.simulation.formulations import input_forces
from liedyn.simulation.minimal import choose, complete, has_fallen
from liedyn.simulation.passages import is_explicit, note_distance
from liedyn.simulation.rates import put_power, wanted_energy
from liedyn.simulation.workspace import CONDITION, INPUT_WORK, NOT_CONVERGED, NOT_FINITE, OK, OTHER_WORK, SINGULAR
from liedyn.tree.configuration import difference_kernel, integrate_kernel

STAGES, GAMMA = 5, 0.25
NODES = np.array([1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0])
TABLEAU = np.array([
    [1 / 4, 0, 0, 0, 0],
    [1 / 2, 1 / 4, 0, 0, 0],
    [17 / 50, -1 / 25, 1 / 4, 0, 0],
    [371 / 1360, -137 / 2720, 15 / 544, 1 / 4, 0],
    [25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4],
])
ITERATIONS = 30
CONVERGED = 1e-11
"""Size of a Newton step, relative to the state, that ends the iteration: quadratic, so the next would be rounding."""


@kernel
def readers(dependent):
    """Rows that read the coordinates that are not marked, and -1 for each: none is one of a cut joint."""
    p = 0
    for j in range(dependent.size):
        p += 1 - dependent[j]
    R = np.zeros((p, dependent.size))
    k = 0
    for j in range(dependent.size):
        if dependent[j] == 0:
            R[k, j] = 1.0
            k += 1
    return R, np.full(p, -1)


@kernel
def newton_stage(model, o, x, t, h, row, q, v, base_y, base_w, R_y, virtual_y, R_w, virtual_w, q_s, v_s, y_dot,
                 w_dot, u_dot, a):
    """Solve one stage from the guess (q_s, v_s), which becomes the solution; rates go to y_dot, w_dot, u_dot and a."""
    p_y, p_w, n = virtual_y.size, virtual_w.size, v.size
    u, step, change = np.empty(n), np.empty(p_y + p_w), np.empty(n)
    A = np.empty((p_y + p_w, p_y + p_w))
    for _ in range(ITERATIONS):
        status = check(o, q_s, v_s)
        if status == OK:
            status = complete(model, o, x, q_s, v_s)
        if status != OK:
            return status
        if not input_forces(o, x, t, row, q_s, v_s):
            return NOT_FINITE
        found, found_y, local = linearization(
            o.linearization, (model, q_s, v_s, x.tau, x.f_ext, R_y, virtual_y, R_w, virtual_w, x.actuators,
                              o.rank_tolerance))
        note_distance(x, local.A, p_y)
        if found[0] != 0 or found_y[0] != 0:
            return SINGULAR
        close_loop(o, x, t, q_s, v_s, local)
        a[:] = local.a
        difference_kernel(model, q, q_s, u)
        local_rates(model, u, v_s, u_dot)
        for k in range(p_y):
            step[k] = base_y[k]
            for j in range(n):
                step[k] -= R_y[k, j] * (u[j] - h * GAMMA * u_dot[j])
        for k in range(p_w):
            step[p_y + k] = base_w[k]
            for j in range(n):
                step[p_y + k] -= R_w[k, j] * (v_s[j] - v[j] - h * GAMMA * a[j])
        for i in range(p_y + p_w):
            for j in range(p_y + p_w):
                A[i, j] = (1.0 if i == j else 0.0) - h * GAMMA * local.A[i, j]
        if not eliminate(A, step, p_y + p_w):
            return SINGULAR
        moved = 0.0
        for j in range(n):
            change[j] = 0.0
            for k in range(p_y):
                change[j] += local.N[j, k] * step[k]
                v_s[j] += local.X[j, k] * step[k]
            for k in range(p_w):
                v_s[j] += local.X[j, p_y + k] * step[p_y + k]
        for k in range(p_y):
            moved = max(moved, abs(step[k]))
        for k in range(p_w):
            moved = max(moved, h * abs(step[p_y + k]))
        integrate_kernel(model, q_s, change, q_s)
        if not np.isfinite(moved):
            return NOT_CONVERGED
        if moved < CONVERGED:
            status = complete(model, o, x, q_s, v_s)
            difference_kernel(model, q, q_s, u)
            # the rates that the stage equation itself gives: exact however stiff the motion is
            for k in range(p_y):
                y_dot[k] = -base_y[k] / (h * GAMMA)
                for j in range(n):
                    y_dot[k] += R_y[k, j] * u[j] / (h * GAMMA)
            for k in range(p_w):
                w_dot[k] = -base_w[k] / (h * GAMMA)
                for j in range(n):
                    w_dot[k] += R_w[k, j] * (v_s[j] - v[j]) / (h * GAMMA)
            return status
    return NOT_CONVERGED


@kernel
def implicit_step(model, o, x, t, h, row, q, v, a, R_y, virtual_y, R_w, virtual_w, q_new, v_new, work):
    """One step from (t, q, v), where a is known; adds to the two works. Returns a status."""
    p_y, p_w, n = virtual_y.size, virtual_w.size, v.size
    y_dot, w_dot = np.empty((STAGES, p_y)), np.empty((STAGES, p_w))
    base_y, base_w, u, u_dot, a_s = np.empty(p_y), np.empty(p_w), np.empty(n), v.copy(), a.copy()
    for i in range(STAGES):
        base_y[:] = 0.0
        base_w[:] = 0.0
        for j in range(i):
            base_y += h * TABLEAU[i, j] * y_dot[j]
            base_w += h * TABLEAU[i, j] * w_dot[j]
        # the guess: along the last rates known, as far as this stage lies from the beginning
        for j in range(n):
            u[j] = h * NODES[i] * u_dot[j]
            v_new[j] = v[j] + h * NODES[i] * a_s[j]
        integrate_kernel(model, q, u, q_new)
        refresh(model, t + h * NODES[i])
        status = newton_stage(model, o, x, t + h * NODES[i], h, row, q, v, base_y, base_w, R_y, virtual_y, R_w,
                              virtual_w, q_new, v_new, y_dot[i], w_dot[i], u_dot, a_s)
        if status != OK:
            return status
        put_power(model, o, x, q_new, v_new, a_s, x.power[0])
        for c in range(2):
            work[c] += h * TABLEAU[STAGES - 1, i] * x.power[0, c]
    return OK


@kernel
def advance_implicit(model, o, x, rows, count, known, energy):
    """As `advance`."""
    if not known:
        status = finish_row(model, o, x, rows, 0)
        if status != OK:
            return status, -1
    if has_fallen(x):
        choose(model, o, x, rows.q[0])
    R_y, virtual_y = readers(x.dependent[0])
    R_w, virtual_w = readers(x.dependent[1])
    base = 0
    for k in range(count):
        t, h = rows.t[k], rows.t[k + 1] - rows.t[k]
        if base < k or is_explicit(x, h, rows.scalars[k, CONDITION]):
            status, base = next_row(model, o, x, rows, base, k, energy)
            x.pivots[:] = 1.0, 0.0  # coordinates are to be chosen anew
            if status != OK:
                return status, k
            continue
        x.nearest[0] = 0.0
        q, v, q_new, v_new = rows.q[k], rows.v[k], rows.q[k + 1], rows.v[k + 1]
        work = rows.scalars[k + 1, INPUT_WORK:OTHER_WORK + 1]
        work[:] = rows.scalars[k, INPUT_WORK:OTHER_WORK + 1]
        if has_fallen(x):
            choose(model, o, x, q)
            R_y, virtual_y = readers(x.dependent[0])
            R_w, virtual_w = readers(x.dependent[1])
        status = implicit_step(model, o, x, t, h, rows.held[k], q, v, rows.a[k], R_y, virtual_y, R_w, virtual_w,
                               q_new, v_new, work)
        if status == OK:
            status = check(o, q_new, v_new)
        if status == OK:
            wanted = wanted_energy(o, energy, work[0], work[1])
            status = stabilise(o.stabiliser, model, o, x, h, wanted, q_new, v_new)
        if is_explicit(x, h, x.nearest[0]):
            status, base = next_row(model, o, x, rows, k, k, energy)
            x.pivots[:] = 1.0, 0.0
        else:
            base = k + 1
            if status == OK:
                status = finish_row(model, o, x, rows, k + 1)
        if status != OK:
            return status, k
    return OK, min(count, max(base, 1))
