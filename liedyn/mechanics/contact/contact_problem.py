"""Accelerations and impacts as one problem: unknown motion z, equations, and contacts that can only push.

    M z = f - E^T lam_E + H^T P        E z = c_E        u = H z - c_H + shift, complementary to P (`complementarity`)

For accelerations z = a, f = tau - h, c = gamma; for impacts z = v+, f = M v-, c = b(t), and `shift` is e u_n^- for
Newton's law of restitution. The equations are eliminated by a basis K of their null space, so redundant equations, and
massless bodies held by loops only, do no harm:

    z = z_0 + K^T (K M K^T)^-1 K H^T P        D = H K^T (K M K^T)^-1 K H^T
"""
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.nearest import backward, factor, forward
from liedyn.machine.linalg.row_space import row_space, shortest_solution, unbalanced_force
from liedyn.machine.linalg.vectors import add_multiple, inner
from liedyn.mechanics.contact.complementarity import NOT_SOLVED, SOLVED, Coulomb, solve_coulomb
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.svd import RowSpace, tangent_accelerations

SINGULAR_INERTIA, CONTRADICTION = 2, 3
CONSISTENT = 1e-7
"""Accepted residual of the equations, relative to their right sides: rounding, amplified by the smallest pivot."""
BLOCKED = 1e-11
"""If the part of a contact's row in the motions that satisfy the equations is below this fraction, it is rounding: the
equations block the contact."""


Touching = namedtuple("Touching", "rows first count mu given direction side shift limit")
"""Contacts that can only push: the numbers of their rows in G (k), those of one contact together; `first` to
`direction` and `limit` as in `Coulomb`; the side of each, and the shift of its u_n."""


System = namedtuple("System", "M f G c equal")
"""M (n, n) and f (n); rows G (m, n) and their right sides c (m); `equal` (m) marks those that are equations."""


@kernel
def solve_contacts(system, touching, tolerance, z, lam):
    """z (n) and multipliers lam (m) of `M z + G^T lam = f`; returns a status, D (k, k) and the forces P (k).

    In the contacts' rows lam is minus the side times P for normal rows, -P for tangential ones.
    """
    M, f, G, c, equal = system
    k, n = touching.rows.size, G.shape[1]
    D, P = np.zeros((k, k)), np.zeros(k)
    status, rank, B, V, s = solve_equations(system, tolerance, z, lam)
    if status != SOLVED:
        return status, D, P
    K, L = V[rank:], np.empty((n - rank, n - rank))
    if not factor_reduced(M, K, L):
        return SINGULAR_INERTIA, D, P
    Y, b, signs, noise = contact_rows(G, c, z, K, L, touching)
    for r in range(k):
        for l in range(k):
            D[r, l] = inner(Y[r], Y[l])
    problem = Coulomb(Y, b, touching.first, touching.count, touching.mu, touching.given, touching.direction,
                      touching.limit)
    if solve_coulomb(problem, noise, P)[0] != SOLVED:
        return NOT_SOLVED, D, P
    y = np.zeros(n - rank)
    for r in range(k):
        add_multiple(P[r], Y[r], y)
        lam[touching.rows[r]] = -signs[r] * P[r]
    backward(L, y)
    for i in range(y.size):
        add_multiple(y[i], K[i], z)
    force, more = np.empty(n), np.zeros(lam.size)
    unbalanced_force(M, np.zeros(n), G, f, z, lam, force)
    shortest_solution(V, B, s, rank, force, more)
    for i in range(lam.size):
        if equal[i]:
            lam[i] += more[i]
    return SOLVED, D, P


@kernel
def solve_equations(system, tolerance, z, lam):
    """z and lam without contacts; returns a status, and rank, B, V and s of the equations (`row_space`)."""
    M, f, G, c, equal = system
    m, n = G.shape
    E, wanted, B, V, s = G.copy(), c.copy(), np.empty((n, m)), np.empty((n, n)), np.empty(n)
    for i in range(m):
        if not equal[i]:
            E[i, :] = 0.0
            wanted[i] = 0.0
    rank = row_space(E, tolerance, B, V, s)
    if not tangent_accelerations(Terms(M, np.zeros(n), E, wanted), f, RowSpace(B, V, s, rank), z, lam):
        return SINGULAR_INERTIA, rank, B, V, s
    for i in range(m):
        left, size = -wanted[i], abs(wanted[i])
        for j in range(n):
            left += E[i, j] * z[j]
            size = max(size, abs(E[i, j] * z[j]))
        if abs(left) > CONSISTENT * max(1.0, size):
            return CONTRADICTION, rank, B, V, s
    return SOLVED, rank, B, V, s


@kernel
def factor_reduced(M, K, L):
    """K M K^T = L L^T; False if some motion has no inertia."""
    p, n = K.shape
    reduced = np.zeros((p, p))
    for i in range(p):
        for j in range(n):
            moved = inner(M[j], K[i])
            for l in range(p):
                reduced[l, i] += K[l, j] * moved
    return factor(reduced, L)


@kernel
def contact_rows(G, c, z, K, L, touching):
    """Rows Y (k, p) with D = Y Y^T, b (k) = u without forces of contacts, signs of the rows, and the largest term of b.

    z is the motion without contacts.
    """
    rows, k = touching.rows, touching.rows.size
    Y, b, signs, noise = np.zeros((k, K.shape[0])), np.zeros(k), np.ones(k), 0.0
    for e in range(touching.first.size):
        signs[touching.first[e]] = touching.side[e]
    for r in range(k):
        size = 0.0
        for j in range(z.size):
            size += abs(G[rows[r], j])
        for i in range(K.shape[0]):
            Y[r, i] = signs[r] * inner(G[rows[r]], K[i])
            if abs(Y[r, i]) <= BLOCKED * size:
                Y[r, i] = 0.0
        forward(L, Y[r])
        b[r], noise = -signs[r] * c[rows[r]], max(noise, abs(c[rows[r]]))
        for j in range(z.size):
            b[r] += signs[r] * G[rows[r], j] * z[j]
            noise = max(noise, abs(G[rows[r], j] * z[j]))
    for e in range(touching.first.size):
        b[touching.first[e]] += touching.shift[e]
    return Y, b, signs, noise
