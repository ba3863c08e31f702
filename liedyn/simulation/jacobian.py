"""The exact Jacobian of the right side that SciPy's implicit solvers integrate (`liedyn.simulation.adaptive`).

The right side maps y = (u, v, W) to (udot, a, powers), at the projection (q', v') of (q_c exp u, v) on the constraints.
Its derivative follows the same way. A variation of y displaces q by dq = J_r(u) du and changes v by dv; with the right
inverse G^# of the stabilisation (of least kinetic energy, or in the dependent coordinates alone)

    dq' = dq - G_h^# G_h dq                     holonomic rows h
    dv' = dv - G^# (G dv + dpsi/dq dq')         psi = G v - b, all rows

(with no projection, dq' = dq and dv' = dv). Differentiating ID(q, v, a) + G^T lambda = tau and
phi = G a + Gdot v - bdot = 0 for independent rows G_1 gives the accelerations,

    [M  G_1^T] [da     ]   [dtau - (dID/dq + d(G^T lambda)/dq) dq' - dID/dv dv']
    [G_1  0  ] [dlambda] = [-dphi/dq dq' - dphi/dv dv'                         ]

Baumgarte's terms and those of the velocity level are part of phi. With u' = log(q_c^-1 q'), udot = J_r^-1(u') v' varies
by J_r^-1 dv' + d(J_r^-1 v')/du (J_r^-1 dq').

G^# is taken at the projected state, and the residual of a loop is taken to vary by G dq; both are exact on the
constraints. Off them the error is of the size of the residual, small for the solver's Newton method, whose right side
is exact.
"""
import math

import numpy as np
from scipy.special import zeta

from liedyn.constraints.rows import derivative_rows, force_derivative_rows, jacobian_rows
from liedyn.dense import inverse, product
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.algebra import ad, add6, scale6
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import FREE
from liedyn.simulation.coordinates import body_rates, local_rates
from liedyn.simulation.feedback import add_feedback
from liedyn.nearest import backward, forward, orthonormal_rows
from liedyn.simulation.projection import metric
from liedyn.simulation.workspace import BAUMGARTE, MINIMAL, OK, PROJECTION, SINGULAR
from liedyn.tree.configuration import difference_kernel
from liedyn.tree.records import dof_count, first_dof, get3, kind, link_count
from liedyn.tree.rnea import rnea_kernel
from liedyn.tree.rnea_derivatives import (
    composite_derivatives, derivatives_size, rnea_derivatives_kernel, world_motion,
)

BERNOULLI = np.array([2.0 * (-1) ** (k + 1) * zeta(2.0 * k) / (2.0 * math.pi) ** (2 * k) for k in range(1, 31)])
"""B_2k / (2k)!: the terms fall by (|u| / 2 pi)^2, so that 30 of them reach rounding for turns up to half a circle."""


@inline
def twist_of(free, x, j):
    """The part of a ball or free joint in a vector, as a twist; a ball joint moves no point."""
    zero = (0.0, 0.0, 0.0)
    return (get3(SCALAR, x, j), get3(SCALAR, x, j + 3)) if free else (get3(SCALAR, x, j), zero)


@inline
def unit(c, k):
    return 1.0 if c == k else 0.0


@kernel_in_place
def local_rate_derivatives(model, u, v, D):
    """D = d(J_r^-1(u) v)/du (n, n), joint by joint: J_r^-1 = 1 + ad_u / 2 + sum of B_2k / (2k)! ad_u^2k."""
    D[:, :] = 0.0
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) == 1:
            continue
        free = kind(model, i) == FREE
        U = twist_of(free, u, j)
        for c in range(6 if free else 3):
            along = ((unit(c, 0), unit(c, 1), unit(c, 2)), (unit(c, 3), unit(c, 4), unit(c, 5)))
            power = twist_of(free, v, j)  # ad_u^k v, and its variation
            varied = ad(along, power)
            total = scale6(0.5, varied)
            power = ad(U, power)
            for k in range(BERNOULLI.size):
                varied = add6(ad(along, power), ad(U, varied))
                power = ad(U, power)
                total = add6(total, scale6(BERNOULLI[k], varied))
                varied = add6(ad(along, power), ad(U, varied))
                power = ad(U, power)
            for r in range(3):
                D[j + r, j + c] = total[0][r]
                if free:
                    D[j + 3 + r, j + c] = total[1][r]


@kernel
def right_inverse(o, x, rows, dependent, out):
    """G^# (n, m) of the marked rows, as the stabilisation has it; returns the rank, x.order lists those rows first."""
    m, n = x.G.shape
    Y, column = np.zeros((m, n + m)), np.empty(n)
    for i in range(m):
        if rows[i] != 0:
            for j in range(n):
                Y[i, j] = x.G[i, j] if o.stabilisation != MINIMAL or dependent[j] != 0 else 0.0
            if o.stabilisation == PROJECTION:
                forward(x.L, Y[i, :n])
            Y[i, n + i] = 1.0
    rank, _ = orthonormal_rows(Y, o.rank_tolerance, x.order, m)
    for i in range(m):
        column[:] = 0.0
        for k in range(rank):
            for j in range(n):
                column[j] += Y[k, j] * Y[k, n + i]
        if o.stabilisation == PROJECTION:
            backward(x.L, column)
        for j in range(n):
            out[j, i] = column[j]
    return rank


@kernel
def subtract_product(A, B, C, out):
    """out -= A B C."""
    inner = np.empty((B.shape[0], C.shape[1]))
    product(B, C, inner)
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(inner.shape[1]):
                out[i, j] -= A[i, k] * inner[k, j]


@kernel
def onto_tangent(o, x, psi_q, dq, dv):
    """(dq, dv) become the variations (dq', dv') of the projected state, one in each column."""
    G_sharp = np.empty((dq.shape[0], x.G.shape[0]))
    right_inverse(o, x, x.holonomic, x.dependent[0], G_sharp)
    subtract_product(G_sharp, x.G, dq, dq)
    right_inverse(o, x, x.every, x.dependent[1], G_sharp)
    subtract_product(G_sharp, x.G, dv, dv)
    subtract_product(G_sharp, psi_q, dq, dv)


@kernel
def at_energy(model, o, x, h, q, v, psi_q, work, dq, dv):
    """The same where the projection also restores the energy, E(q', v') = E_0 + W, whose W are the last two columns.

    The correction is a multiple s of the direction e that `correct_energy` goes: ds = (dW - dE) / (dE along e).
    """
    n, columns, zero = dq.shape[0], dq.shape[1], x.zero
    fall, ignored, by_v, M = np.empty(n), np.empty(n), np.empty((n, n)), np.empty((n, n))
    at_rest, moving = np.empty((n, n)), np.empty((n, n))
    rnea_kernel(SCALAR, model, q, zero, zero, x.none, x.local, fall)
    # the kinetic energy varies by v . d(M v)/dq / 2, which is what accelerations v add to the forces
    rnea_derivatives_kernel(SCALAR, model, q, zero, zero, x.none, work, ignored, at_rest, by_v, M)
    rnea_derivatives_kernel(SCALAR, model, q, zero, v, x.none, work, ignored, moving, by_v, M)
    E_q, E_v = fall.copy(), np.zeros(n)
    for i in range(n):
        for j in range(n):
            E_q[j] += 0.5 * v[i] * (moving[i, j] - at_rest[i, j])
            E_v[i] += M[i, j] * v[j]
    forward(x.L, fall)
    backward(x.L, fall)
    e_q, e_v, G_sharp = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, x.G.shape[0]))
    for i in range(n):
        e_q[i, 0], e_v[i, 0] = h * h * fall[i], v[i]
    right_inverse(o, x, x.every, x.dependent[1], G_sharp)
    subtract_product(G_sharp, x.G, e_q, e_q)
    subtract_product(G_sharp, x.G, e_v, e_v)
    subtract_product(G_sharp, psi_q, e_q, e_v)
    slope = 0.0
    for i in range(n):
        slope += E_q[i] * e_q[i, 0] + E_v[i] * e_v[i, 0]
    for c in range(columns if slope > 0.0 else 0):  # at rest in equilibrium nothing changes the energy
        ds = 1.0 if c >= 2 * n else 0.0
        for i in range(n):
            ds -= E_q[i] * dq[i, c] + E_v[i] * dv[i, c]
        for i in range(n):
            dq[i, c] += ds / slope * e_q[i, 0]
            dv[i, c] += ds / slope * e_v[i, 0]


@kernel
def put_power_rows(model, o, x, q, v, a, M, ID_q, ID_v, tau_q, tau_v, dq, dv, da, work, out):
    """The two rows of `put_power`: tau . v, and v . (ID without the external wrenches) - tau . v - damping v . v."""
    n, columns, f = v.size, dq.shape[1], x.vector[3]
    own_q = ID_q
    if o.all_power:
        rnea_kernel(SCALAR, model, q, v, a, x.none, x.local, f)
        if x.f_ext.size > 0:
            own_q = np.empty((n, n))
            rnea_derivatives_kernel(SCALAR, model, q, v, a, x.none, work, np.empty(n), own_q, ID_v, M)
    for c in range(columns):
        by_inputs, other = 0.0, 0.0
        for i in range(n):
            dtau, dID = 0.0, 0.0
            for j in range(n):
                dtau += tau_q[i, j] * dq[j, c] + tau_v[i, j] * dv[j, c]
                dID += own_q[i, j] * dq[j, c] + ID_v[i, j] * dv[j, c] + M[i, j] * da[j, c]
            by_inputs += x.tau[i] * dv[i, c] + dtau * v[i]
            other -= 2.0 * x.damping[i] * v[i] * dv[i, c]
            if o.all_power:
                other += f[i] * dv[i, c] + dID * v[i]
        out[0, c], out[1, c] = by_inputs, other - (by_inputs if o.all_power else 0.0)


@kernel
def put_accelerations(x, M, by_q, by_v, phi_q, phi_v, rank, dq, dv, da):
    """da of M da + G_1^T dlambda = -(by_q dq + by_v dv), G_1 da = -(phi_q dq + phi_v dv); False if singular."""
    n, columns = dq.shape
    K, K_inverse, right = np.zeros((n + rank, n + rank)), np.empty((n + rank, n + rank)), np.zeros((n + rank, columns))
    K[:n, :n] = M
    by_state, of_state = np.zeros((n + rank, 2 * n)), np.empty((2 * n, columns))
    by_state[:n, :n], by_state[:n, n:] = by_q, by_v
    for k in range(rank):
        r = x.order[k]
        K[n + k, :n], K[:n, n + k] = x.G[r], x.G[r]
        by_state[n + k, :n], by_state[n + k, n:] = phi_q[r], phi_v[r]
    of_state[:n], of_state[n:] = dq, dv
    if not inverse(K, K_inverse) < np.inf:
        return False
    subtract_product(np.eye(n + rank), by_state, of_state, right)
    product(K_inverse[:n], right, da)
    return True


@kernel
def right_side_jacobian(model, o, x, t, h, center, y, q, v, a, lam, J):
    """J (2 nv + 2, 2 nv + 2), the derivative of ydot by y; (q, v) is the projected state, with a and lam there.

    Moving constraints are at time t already, and x.tau holds the inputs. Returns a status.
    """
    n, m = v.size, x.psi.size
    columns = 2 * n + 2
    work, ignored, M = np.empty(derivatives_size(model)), np.empty(n), np.empty((n, n))
    ID_q, ID_v, tau_q, tau_v = np.empty((n, n)), np.empty((n, n)), np.zeros((n, n)), np.zeros((n, n))
    psi_q, phi_q, phi_v = np.empty((m, n)), np.empty((m, n)), np.empty((m, n))
    dq, dv, da = np.zeros((n, columns)), np.zeros((n, columns)), np.empty((n, columns))
    # the derivatives at the state
    if o.stabilisation == PROJECTION:
        metric(model, x, q)
    world_motion(SCALAR, model, q, v, a, work)
    jacobian_rows(model, q, work, x.G)
    derivative_rows(model, q, v, a, work, psi_q, phi_q, phi_v)
    composite_derivatives(SCALAR, model, q, x.f_ext, work, ignored, ID_q, ID_v, M)
    by_q = ID_q.copy()
    force_derivative_rows(model, q, work, lam, by_q)
    add_feedback(o, x, t, q, v, 1.0, tau_q, tau_v)
    by_q -= tau_q
    # phi' = phi + rate psi + stiffness g
    rate, stiffness = o.sigma, 0.0
    if o.stabilisation == BAUMGARTE:
        rate, stiffness = rate + 2.0 * o.alpha, o.beta * o.beta
    for r in range(m):
        for j in range(n):
            phi_q[r, j] += rate * psi_q[r, j] + (stiffness * x.G[r, j] if x.holonomic[r] != 0 else 0.0)
            phi_v[r, j] += rate * x.G[r, j]
    # variations of the projected state
    step, column, rates = np.zeros(n), np.empty(n), np.empty((n, n))
    for j in range(n):
        step[j] = 1.0
        body_rates(model, y[:n], step, column)
        dq[:, j] = column
        dv[j, n + j] = 1.0
        step[j] = 0.0
    if o.stabilisation == PROJECTION or o.stabilisation == MINIMAL:
        onto_tangent(o, x, psi_q, dq, dv)
        if o.energy:
            at_energy(model, o, x, h, q, v, psi_q, work, dq, dv)
    # accelerations and powers
    rank = right_inverse(o, x, x.every, x.dependent[1], np.empty((n, m)))
    if not put_accelerations(x, M, by_q, ID_v - tau_v, phi_q, phi_v, rank, dq, dv, da):
        return SINGULAR
    J[n:2 * n] = da
    put_power_rows(model, o, x, q, v, a, M, ID_q, ID_v, tau_q, tau_v, dq, dv, da, work, J[2 * n:])
    # local coordinates
    u = np.empty(n)
    difference_kernel(model, center, q, u)
    local_rate_derivatives(model, u, v, rates)
    for c in range(columns):
        local_rates(model, u, dq[:, c].copy(), column)
        local_rates(model, u, dv[:, c].copy(), step)
        for i in range(n):
            J[i, c] = step[i]
            for j in range(n):
                J[i, c] += rates[i, j] * column[j]
    return OK
