"""The singularity-robust null-space formulation (Spencer 2004, 3.1, eq. 3.2-3.7).

    G = U S V^T,  V = [V_1 V_2]
    a = V_2 (V_2^T M V_2)^-1 V_2^T (tau - h - M a_p) + a_p        a_p = G^+ gamma

Where G loses rank, the singular values after the rank are omitted from G^+, and the mechanism has one more degree of
freedom. The growth of the accelerations on the way there is described by the terms of (3.6),

    G^+ Gdot v = sum_i v_i (u_i . Gdot v) / s_i

where a small s_i is harmless if u_i . Gdot v vanishes with it.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.dense import independent_rows, solve_positive, transposed_product
from liedyn.machine.linalg.row_space import row_space, shortest_solution, unbalanced_force
from liedyn.mechanics.dynamics.dynamics_problem import Solution, gains, of_each_state, spread
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import baumgarte_rows


RowSpace = namedtuple("RowSpace", "B V s rank")
"""B (n, m), V (n, n) and the singular values s (n) of G that `row_space` writes, and how many of these count."""


@kernel
def tangent_accelerations(terms, tau, space, a, lam):
    """a = a_p + V_2 eta_dot with G a_p = gamma, and minimum-norm lam; False if some motion has no inertia.

    An orthonormal basis mixes coordinates of all sizes, so with large constraint forces the digits of a body of 1e-11
    kg m^2 are lost. A second pass, on the residuals of the forces and of the rows, recovers them.
    """
    (M, h, G, wanted), (B, V, s, rank), n = terms, space, tau.size
    p = n - rank
    K, MK, reduced = np.empty((n, p)), np.empty((n, p)), np.empty((p, p))
    eta_dot, force, a_p = np.empty((p, 1)), np.empty(n), np.empty(n)
    rows, more = np.empty(lam.size), np.empty(lam.size)
    for i in range(n):
        for k in range(p):
            K[i, k] = V[rank + k, i]
    transposed_product(M, K, MK)  # M is symmetric
    a[:] = 0.0
    lam[:] = 0.0
    for _ in range(2):
        for k in range(lam.size):
            rows[k] = wanted[k]
            for i in range(n):
                rows[k] -= G[k, i] * a[i]
        shortest_solution(B, V, s, rank, rows, a_p)
        for i in range(n):
            a[i] += a_p[i]
        unbalanced_force(M, h, G, tau, a, lam, force)
        transposed_product(K, MK, reduced)
        transposed_product(K, force.reshape(n, 1), eta_dot)
        if not solve_positive(reduced, eta_dot):
            return False
        for i in range(n):
            for k in range(p):
                a[i] += K[i, k] * eta_dot[k, 0]
        unbalanced_force(M, h, G, tau, a, lam, force)
        shortest_solution(V, B, s, rank, force, more)
        for k in range(lam.size):
            lam[k] += more[k]
    return True


@kernel
def indicators(B, s, rank, gamma, out):
    """out_i = |u_i . Gdot v|, the norm of Spencer's v_i u_i^T Gdot v, for each singular value.

    If G has lost rank, its last left singular vectors are arbitrary; the part of Gdot v outside the range of G is then
    assigned to the first of them.
    """
    out[:] = 0.0
    lost = gamma.copy()
    for i in range(rank):
        along = 0.0
        for k in range(gamma.size):
            along += B[i, k] * gamma[k]
        along /= s[i]
        out[i] = abs(along)
        for k in range(gamma.size):
            lost[k] -= B[i, k] / s[i] * along
    if rank < out.size:
        out[rank] = math.sqrt(np.sum(lost * lost))


@kernel
def svd_kernel(terms, tau, baumgarte, ranking, a, lam, sizes):
    """Accelerations a (n) and minimum-norm multipliers lam (m); returns (status, rank).

    `terms` are those of `terms_kernel`; singular values and indicators are written to `sizes` (2, m), zero where
    m > n. baumgarte = (alpha, beta), zeros for no stabilisation. `ranking` decides how many singular values count
    (`liedyn.machine.linalg.ranks`).
    """
    G, (m, n) = terms.G, terms.G.shape
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    rank = independent_rows(G, ranking)[0]
    row_space(G, 0.0, B, V, s)
    wanted = np.empty(m)
    baumgarte_rows(terms, baumgarte, wanted)
    for k in range(m):
        sizes[0, k] = s[k] if k < n else 0.0
    indicators(B, s, rank, terms.gamma, sizes[1])
    if tangent_accelerations(Terms(terms.M, terms.h, G, wanted), tau, RowSpace(B, V, s, rank), a, lam):
        return OK, rank
    return SINGULAR_INERTIA, rank


def solve(problem, baumgarte=None):
    """`svd_kernel` on every state."""
    count, m = problem.gamma.shape
    sizes = np.empty((count, 2, m))
    a, lam, rank = of_each_state(problem, svd_kernel, gains(baumgarte), more=(sizes,))
    values, indicator = sizes[:, 0].copy(), sizes[:, 1].copy()
    return Solution(a, lam, rank, spread(values, rank), problem.dependent, singular_values=values, indicator=indicator)
