"""Lagrange multipliers (Spencer 2004, 2.1, eq. 2.4 and 2.5), with Baumgarte's stabilisation (3.8).

    (G_1 M^-1 G_1^T) lambda_1 = G_1 M^-1 (tau - h) - gamma_1        M a = tau - h - G_1^T lambda_1

G_1 are independent rows of G, chosen by pivoting; where rows are redundant, the multipliers of minimum norm with the
same G^T lambda are returned. M itself is inverted: a tree with massless bodies needs another formulation.
"""
import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.dense import independent_rows, solve_positive, transposed_product
from liedyn.machine.linalg.row_space import row_space, shortest_solution
from liedyn.mechanics.dynamics.dynamics_problem import Solution, gains, of_each_state, require_regular_tree
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.mechanics.dynamics.terms import baumgarte_rows

SINGULAR_MASS = 4
"""Status: M itself is singular, as some motion of the open tree has no inertia."""


@kernel
def multiplier_kernel(terms, tau, baumgarte, ranking, a, lam):
    """Accelerations a (n) and minimum-norm multipliers lam (m); returns (status, rank).

    `terms` are those of `terms_kernel`; baumgarte = (alpha, beta), zeros for no stabilisation.
    """
    M, h, G, (m, n) = terms.M, terms.h, terms.G, terms.G.shape
    wanted, (rank, order, _) = np.empty(m), independent_rows(G, ranking)
    baumgarte_rows(terms, baumgarte, wanted)
    # columns of M^-1 [G_1^T, tau - h]
    free, factor = np.empty((n, rank + 1)), M.copy()
    for i in range(n):
        for k in range(rank):
            free[i, k] = G[order[k], i]
        free[i, rank] = tau[i] - h[i]
    columns, driven = free.copy(), np.empty((rank + 1, rank + 1))
    if not solve_positive(factor, free):
        return SINGULAR_MASS, rank
    transposed_product(columns, free, driven)
    normal, lam_1 = np.ascontiguousarray(driven[:rank, :rank]), np.empty((rank, 1))
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
                force[i] += columns[i, k] * lam_1[k, 0]
        row_space(G, 0.0, B, V, s)
        shortest_solution(V, B, s, rank, force, lam)
    return OK, rank


def solve(problem, baumgarte=None):
    """`multiplier_kernel` for every state; `condition` is that of G_1 M^-1 G_1^T."""
    require_regular_tree(problem.robot, "'multiplier'")
    a, lam, rank = of_each_state(problem, multiplier_kernel, gains(baumgarte))
    condition = np.ones(len(a))
    for b in np.flatnonzero(rank):
        G_1 = problem.G[b][problem.order[b][:rank[b]]]
        condition[b] = np.linalg.cond(G_1 @ np.linalg.solve(problem.M[b], G_1.T))
    return Solution(a, lam, problem.rank, condition, problem.dependent)
