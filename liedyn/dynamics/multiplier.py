"""Lagrange multipliers (Spencer 2004, 2.1, eq. 2.4 and 2.5), with Baumgarte's stabilisation (3.8).

    (G_1 M^-1 G_1^T) lambda_1 = G_1 M^-1 (tau - h) - gamma_1        M a = tau - h - G_1^T lambda_1

G_1 are independent rows of G, chosen by pivoting; where rows are redundant, the multipliers of minimum norm with the
same G^T lambda are returned. M itself is inverted: a tree with massless bodies needs another formulation.
"""
import numpy as np

from liedyn.compiled.jit import kernel
from liedyn.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.dynamics.problem import Solution, gains, no_inertia, require_regular_tree, terms_of
from liedyn.dynamics.stabilization import baumgarte_rows
from liedyn.linalg.dense import independent_rows, product, solve_positive
from liedyn.linalg.row_space import minimum_norm_multipliers, row_space

SINGULAR_MASS = 4
"""M itself is singular: some motion of the open tree moves no inertia."""


@kernel
def multiplier_kernel(M, h, G, residual, psi, gamma, tau, alpha, beta, tolerance, a, lam):
    """Accelerations a (n) and minimum-norm multipliers lam (m); returns (status, rank).

    M (n, n), h (n), G (m, n), residual, psi, gamma (m) are those of `terms_kernel`; alpha = beta = 0 is without
    stabilisation.
    """
    m, n = G.shape
    wanted, order, pivots = np.empty(m), np.empty(m, np.int64), np.empty(m)
    baumgarte_rows(residual, psi, gamma, alpha, beta, wanted)
    rank = independent_rows(G, tolerance, order, pivots)
    # columns of M^-1 [G_1^T, tau - h]
    free, factor = np.empty((n, rank + 1)), M.copy()
    for i in range(n):
        for k in range(rank):
            free[i, k] = G[order[k], i]
        free[i, rank] = tau[i] - h[i]
    if not solve_positive(factor, free):
        return SINGULAR_MASS, rank
    G_1, driven = np.empty((rank, n)), np.empty((rank, rank + 1))
    for k in range(rank):
        G_1[k, :] = G[order[k], :]
    product(G_1, free, driven)
    normal, lam_1 = np.ascontiguousarray(driven[:, :rank]), np.empty((rank, 1))
    for k in range(rank):
        lam_1[k, 0] = driven[k, rank] - wanted[order[k]]
    if not solve_positive(normal, lam_1):
        return SINGULAR_INERTIA, rank
    for i in range(n):
        a[i] = free[i, rank]
        for k in range(rank):
            a[i] -= free[i, k] * lam_1[k, 0]
    lam[:] = 0.0
    for k in range(rank):
        lam[order[k]] = lam_1[k, 0]
    if rank < m:
        force, B, V, s = np.zeros(n), np.empty((n, m)), np.empty((n, n)), np.empty(n)
        for k in range(rank):
            for i in range(n):
                force[i] += G_1[k, i] * lam_1[k, 0]
        minimum_norm_multipliers(B, V, s, row_space(G, tolerance, B, V, s), force, lam)
    return OK, rank


def solve(problem, baumgarte=None):
    """`multiplier_kernel` on every state; `condition` is that of G_1 M^-1 G_1^T."""
    require_regular_tree(problem.robot, "'multiplier'")
    alpha, beta = gains(baumgarte)
    count, m, n = problem.G.shape
    a, lam, condition = np.empty((count, n)), np.empty((count, m)), np.ones(count)
    for b in range(count):
        status, rank = multiplier_kernel(
            *terms_of(problem, b), problem.tau[b], alpha, beta, problem.tolerance, a[b], lam[b])
        if status != OK:
            raise no_inertia(problem, b)
        if rank:
            G_1 = problem.G[b][problem.order[b][:rank]]
            condition[b] = np.linalg.cond(G_1 @ np.linalg.solve(problem.M[b], G_1.T))
    return Solution(a, lam, problem.rank, condition, problem.dependent)
