"""The singular value decomposition of the constraint rows, G = U S V^T, by one-sided Jacobi rotations.

Rotations of the columns of G that make them orthogonal leave G V = U S: the columns are s_i u_i, and V^T is the product
of the rotations, row by row v_i (Golub and Van Loan 2013, 8.6.3; Demmel and Veselic 1992). It is accurate to rounding
also for singular G, gives the null space too, and is as fast as LAPACK for the few rows of a mechanism. The
formulations need no division by a vanishing singular value:

    null space          K = [v_r+1 ... v_n]
    shortest solution   G^+ y = sum_{i <= r} v_i (s_i u_i . y) / s_i^2
    minimum norm        (G^T)^+ f = sum_{i <= r} s_i u_i (v_i . f) / s_i^2
"""
import math

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.ranks import negligible

ROUNDING = 4.0 * np.finfo(np.float64).eps
"""Columns with a smaller cosine count as orthogonal; columns shorter than this fraction of |G| as zero."""
SWEEPS = 40
"""Largest number of sweeps; quadratic convergence takes 6 to 10."""


@kernel_in_place
def row_space(G, tolerance, B, V, s):
    """Compute B (n, m) with rows s_i u_i, V (n, n) with rows v_i, and s (n) the singular values, largest first; returns
    the rank.

    Singular values up to `tolerance` times the largest one count as zero. Constraint rows are reduced to independent
    ones before, by `liedyn.machine.linalg.dense.independent_rows`, as a singular value depends on the units of all
    rows.
    """
    m, n = G.shape
    scale = 0.0
    for i in range(n):
        for k in range(n):
            V[i, k] = 0.0
        V[i, i] = 1.0
        for k in range(m):
            B[i, k] = G[k, i]
            scale += G[k, i] * G[k, i]
    least = ROUNDING * ROUNDING * scale
    for _ in range(SWEEPS):
        rotated = False
        for i in range(n - 1):
            for j in range(i + 1, n):
                a, b, c = 0.0, 0.0, 0.0
                for k in range(m):
                    a += B[i, k] * B[i, k]
                    b += B[j, k] * B[j, k]
                    c += B[i, k] * B[j, k]
                if a <= least or b <= least or abs(c) <= ROUNDING * math.sqrt(a * b):
                    continue
                rotated = True
                cotangent = (b - a) / (2.0 * c)
                t = math.copysign(1.0, cotangent) / (abs(cotangent) + math.sqrt(1.0 + cotangent * cotangent))
                cosine = 1.0 / math.sqrt(1.0 + t * t)
                sine = t * cosine
                for k in range(m):
                    x, y = B[i, k], B[j, k]
                    B[i, k], B[j, k] = cosine * x - sine * y, sine * x + cosine * y
                for k in range(n):
                    x, y = V[i, k], V[j, k]
                    V[i, k], V[j, k] = cosine * x - sine * y, sine * x + cosine * y
        if not rotated:
            break
    for i in range(n):
        a = 0.0
        for k in range(m):
            a += B[i, k] * B[i, k]
        s[i] = math.sqrt(a)
    for i in range(n - 1):
        best = i
        for j in range(i + 1, n):
            if s[j] > s[best]:
                best = j
        if best != i:
            s[i], s[best] = s[best], s[i]
            for k in range(m):
                B[i, k], B[best, k] = B[best, k], B[i, k]
            for k in range(n):
                V[i, k], V[best, k] = V[best, k], V[i, k]
    rank = 0
    while rank < n and not negligible(s[rank], s[0], tolerance):
        rank += 1
    return rank


@kernel_in_place
def shortest_solution(B, V, s, rank, y, x):
    """x = G^+ y, the shortest x that minimises |G x - y|; with V and B exchanged, that of G^T x = y."""
    for k in range(x.size):
        x[k] = 0.0
    for i in range(rank):
        along = 0.0
        for k in range(y.size):
            along += B[i, k] * y[k]
        along /= s[i] * s[i]
        for k in range(x.size):
            x[k] += V[i, k] * along


@kernel
def unbalanced_force(M, h, G, tau, a, lam, force):
    """force = tau - h - M a - G^T lambda."""
    for i in range(a.size):
        force[i] = tau[i] - h[i]
        for k in range(a.size):
            force[i] -= M[i, k] * a[k]
    for k in range(lam.size):
        if lam[k] != 0.0:
            for i in range(a.size):
                force[i] -= G[k, i] * lam[k]
