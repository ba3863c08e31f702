"""The generalised-alpha method on the configuration group (Bruls, Cardona and Arnold 2012), constraints on positions.

Index 3: the unknowns of a step are the exponent u of q_{n+1} = q_n exp(u) and the multipliers, the equations

    M vdot + h(q, v) + G^T lambda = tau        g(q, t) = 0        (nonholonomic rows: G v = b)

at its end, where v and vdot follow u by the recurrences

    u = h v_n + h^2 (1/2 - beta) a_n + h^2 beta a_{n+1}        v_{n+1} = v_n + h (1 - gamma) a_n + h gamma a_{n+1}
    (1 - alpha_m) a_{n+1} + alpha_m a_n = (1 - alpha_f) vdot_{n+1} + alpha_f vdot_n

Second order, unconditionally stable for linear problems, with spectral radius rho at infinity (Chung and Hulbert 1993).
Newton with the exact iteration matrix, T = J_r(u) and everything scaled by beta h^2 (Bottasso, Bauchau and Cardona
2007), so that its condition does not depend on h (feedback with its derivative is part of ID):

    [ beta h^2 (beta' M + gamma' dID/dv + (dID/dq + d(G^T lambda)/dq) T)    G^T ] [ du              ]
    [ G T                                                                   0   ] [ beta h^2 dlambda]
"""
import numpy as np

from liedyn.constraints.records import refresh
from liedyn.constraints.rows import derivative_rows, force_derivative_rows, jacobian_rows, residual_rows, velocity_rows
from liedyn.jit import kernel, kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.simulation.coordinates import body_rates
from liedyn.simulation.elimination import eliminate
from liedyn.simulation.far import stabilise
from liedyn.simulation.feedback import add_feedback
from liedyn.simulation.fixed_step import check, finish_row
from liedyn.simulation.formulations import input_forces
from liedyn.nearest import orthonormal_rows
from liedyn.simulation.rates import put_power, wanted_energy
from liedyn.simulation.workspace import INPUT_WORK, NOT_CONVERGED, NOT_FINITE, OK, OTHER_WORK, SINGULAR
from liedyn.tree.configuration import integrate_kernel
from liedyn.tree.kinematics import world_accelerations, world_positions, world_velocities
from liedyn.tree.rnea import rnea_kernel
from liedyn.tree.rnea_derivatives import composite_derivatives, derivatives_size

ITERATIONS = 20
CONVERGED = 1e-11
"""Size of a Newton step, relative to the state, that ends the iteration: quadratic, so the next would be rounding."""


@kernel_in_place
def columns_by_exponent(model, u, D, column, out):
    """out = D T: columns by u from columns by the tangent at the end; `column` is scratch (2, n)."""
    n = u.size
    for c in range(n):
        for j in range(n):
            column[0, j] = 1.0 if j == c else 0.0
        body_rates(model, u, column[0], column[1])
        for i in range(D.shape[0]):
            s = 0.0
            for j in range(n):
                s += D[i, j] * column[1, j]
            out[i, c] = s


@kernel
def advance_alpha(model, o, x, rows, count, known, energy):
    """As `advance`. rows.memory holds a_n, vdot_n and lambda_n, not a number at the start."""
    if not known:
        status = finish_row(model, o, x, rows, 0)
        if status != OK:
            return status, -1
    n, m = x.v_stage.size, x.psi.size
    alpha_m, alpha_f = (2.0 * o.rho - 1.0) / (o.rho + 1.0), o.rho / (o.rho + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    work = np.empty(derivatives_size(model))
    ID_q, ID_v, by_u, ignored = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    psi_q, psi_u, phi_q, phi_v = np.empty((m, n)), np.empty((m, n)), np.empty((m, n)), np.empty((m, n))
    A, b, column = np.empty((n + m, n + m)), np.empty(n + m), np.empty((2, n))
    u, a, v_dot, lam, force = np.empty(n), np.empty(n), np.empty(n), np.empty(m), np.empty(n)
    if np.isnan(rows.memory[0, 0]):
        rows.memory[0, :n] = rows.a[0]
        rows.memory[0, n:2 * n] = rows.a[0]
        rows.memory[0, 2 * n:] = rows.lam[0]
    for k in range(count):
        h, t = rows.t[k + 1] - rows.t[k], rows.t[k + 1]
        q, v, q_new, v_new = rows.q[k], rows.v[k], rows.q[k + 1], rows.v[k + 1]
        a_n, v_dot_n = rows.memory[k, :n], rows.memory[k, n:2 * n]
        put_power(model, o, x, q, v, rows.a[k], x.power[0])
        refresh(model, t)
        lam[:] = rows.memory[k, 2 * n:]
        v_dot[:] = v_dot_n
        for j in range(n):
            a[j] = ((1.0 - alpha_f) * v_dot[j] + alpha_f * v_dot_n[j] - alpha_m * a_n[j]) / (1.0 - alpha_m)
            u[j] = h * v[j] + h * h * ((0.5 - beta) * a_n[j] + beta * a[j])
            v_new[j] = v[j] + h * ((1.0 - gamma) * a_n[j] + gamma * a[j])
        by_v, by_a = gamma / (beta * h), (1.0 - alpha_m) / (beta * h * h * (1.0 - alpha_f))
        status, rank = NOT_CONVERGED, -1
        for _ in range(ITERATIONS):
            integrate_kernel(model, q, u, q_new)
            if not input_forces(o, x, t, rows.held[k], q_new, v_new):
                status = NOT_FINITE
                break
            rnea_kernel(SCALAR, model, q_new, v_new, v_dot, x.f_ext, x.local, force)
            world_positions(SCALAR, model, q_new, work)
            world_velocities(SCALAR, model, v_new, work)
            world_accelerations(SCALAR, model, v_new, v_dot, work)
            residual_rows(model, q_new, work, x.residual)
            velocity_rows(model, q_new, v_new, work, x.psi)
            jacobian_rows(model, q_new, work, x.G)
            derivative_rows(model, q_new, v_new, v_dot, work, psi_q, phi_q, phi_v)
            composite_derivatives(SCALAR, model, q_new, x.f_ext, work, ignored, ID_q, ID_v, x.M)
            force_derivative_rows(model, q_new, work, lam, ID_q)
            add_feedback(o, x, t, q_new, v_new, -1.0, ID_q, ID_v)
            if rank < 0:  # which rows are independent
                x.Y[:, :n] = x.G
                x.Y[:, n] = 0.0
                rank, _ = orthonormal_rows(x.Y, o.rank_tolerance, x.order)
            scale = beta * h * h
            columns_by_exponent(model, u, ID_q, column, by_u)
            for i in range(n):
                for j in range(n):
                    A[i, j] = scale * (by_a * x.M[i, j] + by_v * ID_v[i, j] + by_u[i, j])
                b[i] = force[i] - x.tau[i]
                for r in range(m):
                    b[i] += x.G[r, i] * lam[r]
                b[i] *= -scale
            columns_by_exponent(model, u, x.G, column, phi_q)
            columns_by_exponent(model, u, psi_q, column, psi_u)
            for c in range(rank):
                r = x.order[c]
                holonomic = x.holonomic[r] != 0
                b[n + c] = -x.residual[r] if holonomic else -h * x.psi[r]
                for j in range(n):
                    A[j, n + c] = x.G[r, j]
                    A[n + c, j] = phi_q[r, j] if holonomic else h * psi_u[r, j] + h * by_v * x.G[r, j]
                for d in range(rank):
                    A[n + c, n + d] = 0.0
            if not eliminate(A, b, n + rank):
                status = SINGULAR
                break
            moved = 0.0
            for j in range(n):
                u[j] += b[j]
                v_new[j] += by_v * b[j]
                v_dot[j] += by_a * b[j]
                moved = max(moved, abs(b[j]) / (1.0 + abs(u[j])), h * by_v * abs(b[j]) / (1.0 + h * abs(v_new[j])))
            for c in range(rank):
                lam[x.order[c]] += b[n + c] / scale
            if not np.isfinite(moved):
                break
            if moved < CONVERGED:
                status = OK
                break
        if status != OK:
            return status, k
        integrate_kernel(model, q, u, q_new)
        for j in range(n):
            a[j] = ((1.0 - alpha_f) * v_dot[j] + alpha_f * v_dot_n[j] - alpha_m * a_n[j]) / (1.0 - alpha_m)
        rows.memory[k + 1, :n] = a
        rows.memory[k + 1, n:2 * n] = v_dot
        rows.memory[k + 1, 2 * n:] = lam
        put_power(model, o, x, q_new, v_new, v_dot, x.power[1])
        for c in range(2):
            rows.scalars[k + 1, INPUT_WORK + c] = (
                rows.scalars[k, INPUT_WORK + c] + 0.5 * h * (x.power[0, c] + x.power[1, c]))
        status = check(o, q_new, v_new)
        if status == OK:
            works = rows.scalars[k + 1, INPUT_WORK], rows.scalars[k + 1, OTHER_WORK]
            status = stabilise(o.stabiliser, model, o, x, h, wanted_energy(o, energy, *works), q_new, v_new)
        if status == OK:
            status = finish_row(model, o, x, rows, k + 1)
        if status != OK:
            return status, k
    return OK, count
