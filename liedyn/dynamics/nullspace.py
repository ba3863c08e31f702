"""Null-space dynamics: constrained accelerations in independent coordinates (Spencer 2004, 2.3 and 2.4, eq. 2.42-2.47).

Independent velocities w = R v (rows that pick coordinates of the tree, read virtual velocities at a cut, or span the
tangent space) and r independent rows G_1 of G = [G_1; T G_1] together determine v. One inverse serves everything:

    [G_1; R]^-1 = [G_1^# K]        G K = 0,  R K = 1,  G G_1^# = [1; T]

    a = K wdot + a_p               a_p = [G_1^# K] (-Gdot v, -Rdot v)
    K^T M K wdot = K^T (tau - h - M a_p)

Redundant rows change nothing but the multipliers, which are the minimum-norm ones: G^T lambda = tau - h - M a.
"""
import numpy as np

from liedyn.constraints.cut_rows import cut_bias_kernel
from liedyn.constraints.rows import bias_rows, jacobian_rows, reader_rows
from liedyn.dense import independent_rows, inverse, product, solve_positive, transposed_product
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import N_ROWS, N_VIRTUAL, NV
from liedyn.tree.crba import INERTIA, crba_kernel
from liedyn.tree.kinematics import world_accelerations, world_size, world_velocities
from liedyn.tree.records import link_count
from liedyn.tree.rnea import WORK, rnea_kernel

OK, WRONG_COUNT, SINGULAR_CHOICE, SINGULAR_INERTIA = range(4)

RANK_TOLERANCE = 1e-8
"""A pivot of G below this part of the largest one counts as zero. States closed to 1e-12 leave redundant rows at about
that size, and real rows of machines measured in mm and rad stay above 1e-4."""


@kernel
def choose_rows(G, E, R_constant, virtual, rank, order, Z):
    """Z = [G_1; R]: independent rows of G, then the rows that read the independent velocities."""
    for k in range(rank):
        Z[k, :] = G[order[k], :]
    for k in range(virtual.size):
        Z[rank + k, :] = R_constant[k, :]
        if virtual[k] >= 0:
            Z[rank + k, :] = E[virtual[k], :]


@kernel
def right_hand_side(x, y, rank, order, virtual, sign, out):
    """out = sign (x on independent rows of G; y on virtual coordinates, zero on the others), column by column."""
    out[:] = 0.0
    for k in range(rank):
        out[k, :] = sign * x[order[k], :]
    for k in range(virtual.size):
        if virtual[k] >= 0:
            out[rank + k, :] = sign * y[virtual[k], :]


@kernel
def minimum_norm_multipliers(G, G_sharp, order, rank, force, lam):
    """The shortest lambda with G^T lambda = force, for a force in the range of G^T."""
    m, n = G.shape
    r = rank
    T = np.zeros((m - r, r))
    for i in range(m - r):
        for k in range(n):
            x = G[order[r + i], k]
            if x != 0.0:
                for j in range(r):
                    T[i, j] += x * G_sharp[k, j]
    normal, known = np.zeros((r, r)), np.zeros((r, 1))
    transposed_product(T, T, normal)
    for j in range(r):
        normal[j, j] += 1.0
        for k in range(n):
            known[j, 0] += G_sharp[k, j] * force[k]
    solve_positive(normal, known)
    for j in range(r):
        lam[order[j]] = known[j, 0]
    for i in range(m - r):
        lam[order[r + i]] = 0.0
        for j in range(r):
            lam[order[r + i]] += T[i, j] * known[j, 0]


@kernel
def nullspace_kernel(ints, floats, q, v, tau, f_ext, R_constant, virtual, tolerance):
    """Constrained accelerations and all that linearization reuses; see the module's text for the symbols.

    `virtual[k]` is the virtual velocity that independent coordinate k reads, or -1 for row k of `R_constant`.
    Returns (status, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot).
    """
    n, m, nz, p = ints[NV], ints[N_ROWS], ints[N_VIRTUAL], virtual.size
    h, zero = np.empty(n), np.zeros(n)
    rnea_kernel(SCALAR, ints, floats, q, v, zero, f_ext, np.empty(WORK * link_count(ints)), h)
    work, M = np.empty(world_size(ints) + INERTIA * link_count(ints)), np.empty((n, n))
    crba_kernel(SCALAR, ints, floats, q, work, M)
    world_velocities(SCALAR, ints, v, work)
    world_accelerations(SCALAR, ints, floats, v, zero, work)
    G, E, gamma, rho = np.empty((m, n)), np.empty((nz, n)), np.empty((m, 1)), np.empty((nz, 1))
    jacobian_rows(ints, floats, q, work, G)
    reader_rows(ints, floats, work, E)
    bias_rows(ints, floats, q, v, work, gamma.reshape(m))
    cut_bias_kernel(ints, floats, work, True, rho.reshape(nz))
    order, pivots = np.empty(m, np.int64), np.empty(m)
    a, lam, Z_inverse, w_dot = np.zeros(n), np.zeros(m), np.zeros((n, n)), np.zeros((p, 1))
    rank = independent_rows(G, tolerance, order, pivots)
    if rank + p != n:
        return WRONG_COUNT, rank, np.inf, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    Z = np.empty((n, n))
    choose_rows(G, E, R_constant, virtual, rank, order, Z)
    condition = inverse(Z, Z_inverse)
    if not condition < 1.0 / np.finfo(np.float64).eps:
        return SINGULAR_CHOICE, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    K = np.ascontiguousarray(Z_inverse[:, rank:])
    known, a_p, force = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1))
    right_hand_side(gamma, rho, rank, order, virtual, -1.0, known)
    product(Z_inverse, known, a_p)
    product(M, a_p, force)
    for i in range(n):
        force[i, 0] = tau[i] - h[i] - force[i, 0]
    MK, reduced = np.empty((n, p)), np.empty((p, p))
    product(M, K, MK)
    transposed_product(K, MK, reduced)
    transposed_product(K, force, w_dot)
    if not solve_positive(reduced, w_dot):
        return SINGULAR_INERTIA, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    for i in range(n):
        a[i] = a_p[i, 0]
        for k in range(p):
            a[i] += K[i, k] * w_dot[k, 0]
    balance = np.empty(n)
    for i in range(n):
        balance[i] = tau[i] - h[i]
        for k in range(n):
            balance[i] -= M[i, k] * a[k]
    if m > 0:
        minimum_norm_multipliers(G, Z_inverse, order, rank, balance, lam)
    return OK, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
