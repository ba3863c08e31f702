"""Holonomic, nonholonomic and moving constraints on one level (Yun and Sarkar 1998, section IV).

Every constraint is asked for on velocities, the holonomic ones with a pull towards their residual C (eq. 17 and 20),

    A v = b - sigma C        v = S eta + xi        S = null space of A,  xi = A^+ (b - sigma C)

so that C decays like exp(-sigma t) from any start, also one that violates the constraints. Differentiated (eq. 37-39),

    A a = gamma - sigma psi        zeta = A^+ (gamma - sigma psi)        a = S eta_dot + zeta
    S^T M S eta_dot = S^T (tau - h - M zeta)                             (28)

which makes psi = A v - b decay like exp(-sigma t) in every row, exactly, wherever the motion starts. A start whose
velocity does not fit A v = b - sigma C is fitted first: `unified_velocity_kernel` (eq. 36, in the least-squares sense).
"""
import numpy as np

from liedyn.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.dynamics.row_space import row_space, shortest_solution
from liedyn.dynamics.stabilization import velocity_level_rows
from liedyn.dynamics.svd import tangent_accelerations
from liedyn.jit import kernel


@kernel
def unified_kernel(M, h, G, residual, psi, gamma, tau, sigma, tolerance, a, lam):
    """Accelerations a (n) and minimum-norm multipliers lam (m); returns (status, rank).

    M (n, n), h (n), G (m, n), residual, psi, gamma (m) are those of `terms_kernel`.
    """
    m, n = G.shape
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    rank = row_space(G, tolerance, B, V, s)
    wanted = np.empty(m)
    velocity_level_rows(psi, gamma, sigma, wanted)
    if tangent_accelerations(M, h, G, wanted, tau, B, V, s, rank, a, lam):
        return OK, rank
    return SINGULAR_INERTIA, rank


@kernel
def unified_velocity_kernel(G, residual, psi, sigma, tolerance, v):
    """v becomes the nearest velocity with A v = b - sigma C; psi is that of the v given, and not updated."""
    m, n = G.shape
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    rank = row_space(G, tolerance, B, V, s)
    excess, change = np.empty(m), np.empty(n)
    for k in range(m):
        excess[k] = psi[k] + sigma * residual[k]
    shortest_solution(B, V, s, rank, excess, change)
    for i in range(n):
        v[i] -= change[i]
