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
from liedyn.mechanics.dynamics.svd import tangent_accelerations

SINGULAR_INERTIA, CONTRADICTION = 2, 3
CONSISTENT = 1e-7
"""Accepted residual of the equations, relative to their right sides: rounding, amplified by the smallest pivot."""
BLOCKED = 1e-11
"""If the part of a contact's row in the motions that satisfy the equations is below this fraction, it is rounding: the
equations block the contact."""


Touching = namedtuple("Touching", "rows first count mu given direction side shift")
"""Contacts that can only push: the numbers of their rows in G (k), those of one contact together; `first` to
`direction` as in `Coulomb`; the side of each, and the shift of its u_n."""


@kernel
def solve_contacts(M, f, G, c, equal, touching, tolerance, z, lam):
    """z (n) and multipliers lam (m) of `M z + G^T lam = f`; returns a status, D (k, k) and the forces P (k).

    M (n, n); f (n); rows G (m, n) and right sides c (m); `equal` (m) marks the equations. In the contacts' rows lam is
    minus the side times P for normal rows, -P for tangential ones.
    """
    rows, first = touching.rows, touching.first
    m, n, k = G.shape[0], G.shape[1], rows.size
    D, P = np.zeros((k, k)), np.zeros(k)
    E, B, V, s = G.copy(), np.empty((n, m)), np.empty((n, n)), np.empty(n)
    wanted = c.copy()
    for i in range(m):
        if not equal[i]:
            E[i, :] = 0.0
            wanted[i] = 0.0
    rank = row_space(E, tolerance, B, V, s)
    none = np.zeros(n)
    if not tangent_accelerations(M, none, E, wanted, f, B, V, s, rank, z, lam):
        return SINGULAR_INERTIA, D, P
    for i in range(m):
        left, size = -wanted[i], abs(wanted[i])
        for j in range(n):
            left += E[i, j] * z[j]
            size = max(size, abs(E[i, j] * z[j]))
        if abs(left) > CONSISTENT * max(1.0, size):
            return CONTRADICTION, D, P
    p = n - rank
    signs = np.ones(k)
    for e in range(first.size):
        signs[first[e]] = touching.side[e]
    reduced, L, Y = np.zeros((p, p)), np.empty((p, p)), np.zeros((k, p))
    for i in range(p):
        for j in range(n):
            moved = inner(M[j], V[rank + i])
            for l in range(p):
                reduced[l, i] += V[rank + l, j] * moved
    if not factor(reduced, L):
        return SINGULAR_INERTIA, D, P
    b, noise = np.zeros(k), 0.0
    for r in range(k):
        size = 0.0
        for j in range(n):
            size += abs(G[rows[r], j])
        for i in range(p):
            Y[r, i] = signs[r] * inner(G[rows[r]], V[rank + i])
            if abs(Y[r, i]) <= BLOCKED * size:
                Y[r, i] = 0.0
        forward(L, Y[r])
        b[r], noise = -signs[r] * c[rows[r]], max(noise, abs(c[rows[r]]))
        for j in range(n):
            b[r] += signs[r] * G[rows[r], j] * z[j]
            noise = max(noise, abs(G[rows[r], j] * z[j]))
    for e in range(first.size):
        b[first[e]] += touching.shift[e]
    for r in range(k):
        for l in range(k):
            D[r, l] = inner(Y[r], Y[l])
    problem = Coulomb(Y, b, first, touching.count, touching.mu, touching.given, touching.direction)
    if solve_coulomb(problem, noise, P)[0] != SOLVED:
        return NOT_SOLVED, D, P
    y = np.zeros(p)
    for r in range(k):
        add_multiple(P[r], Y[r], y)
    backward(L, y)
    for i in range(p):
        add_multiple(y[i], V[rank + i], z)
    force, more = np.empty(n), np.zeros(m)
    for r in range(k):
        lam[rows[r]] = -signs[r] * P[r]
    unbalanced_force(M, none, G, f, z, lam, force)
    shortest_solution(V, B, s, rank, force, more)
    for i in range(m):
        if equal[i]:
            lam[i] += more[i]
    return SOLVED, D, P
