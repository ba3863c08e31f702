"""Subspaces of motions, forces and actuators of a constrained mechanism at one configuration (Aghili 2005).

With a metric tensor W = C C^T of velocities, x = C^T v and y = C^-1 f have the same unit (section VII-B), and

    A = G C^-T = U_1 S V_1^T,  V = [V_1 V_2]      range(V_2) = N(A): admissible motions, and the forces that move
    D, orthonormal                                range(D) = C^-1 range(B): forces of the actuators B, eq. 53

A force y moves the mechanism by V_2^T y alone, and the least-norm actuator force with the same effect is
D (V_2^T D)^+ V_2^T y. That is Aghili's (I + H) P y: P = V_2 V_2^T is (4), H is (59). The singular values of V_2^T D,
the cosines between motions and actuators, decide (62): a motion with cosine zero is one on which no actuator does work.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.row_space import row_space
from liedyn.mechanics.dynamics.projection import metric_matrix

NOT_DRIVEN = 1e-8
"""A cosine between a motion and the actuators' space below this counts as zero: forces would be 1e8 times larger than
their effect, and half of the digits lost."""


class Decomposition(NamedTuple):
    """The subspaces at one configuration.

    Attributes
    ----------
    rank : int
        Number of independent rows of G.
    K : ndarray, shape (nv, p)
        Basis of the admissible motions, C^-T V_2.
    multipliers : ndarray, shape (m, nv)
        A^+T in physical coordinates: the least-norm lam with G^T lam = f is multipliers f, for constraint forces f; the
        least-norm v in the metric W with G v = b is multipliers^T b.
    U : ndarray, shape (m, rank)
        Orthonormal basis of the range of G.
    cosines : ndarray, shape (p,)
        Cosines between motions and actuators' space, largest first; zero where no actuator does work.
    driven : int
        Number of motions that the actuators drive.
    undriven : ndarray, shape (nv, p - driven)
        Motions on which no actuator does work.
    internal : ndarray, shape (nv, k)
        Actuator forces that move nothing: they load the constraints alone.
    acting : ndarray, shape (nv, nv)
        (I + H) P in physical coordinates: acting f is the least-norm actuator force with the same motion as f, eq. 60.
    """

    rank: int
    K: np.ndarray
    multipliers: np.ndarray
    U: np.ndarray
    cosines: np.ndarray
    driven: int
    undriven: np.ndarray
    internal: np.ndarray
    acting: np.ndarray


@kernel
def singular_values(A):
    """Rows s_i u_i (n, m), rows v_i (n, n), s (n) of A (m, n) = U S V^T."""
    m, n = A.shape
    US, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    row_space(A, 0.0, US, V, s)
    return US, V, s


@kernel
def count_above(s, limit):
    """Number of leading entries of the decreasing numbers s that are larger than the limit."""
    count = 0
    while count < s.size and s[count] > limit:
        count += 1
    return count


@kernel
def transposed(A):
    return np.ascontiguousarray(A.T)


@kernel
def decompose(G, B, C, C_inverse, ranking):
    """The fields of a `Decomposition` for constraint rows G (m, nv), actuators B (nv, nu), and a metric W = C C^T.

    `ranking` determines the number of singular values of G that count (`liedyn.machine.linalg.ranks`).
    """
    US, V, s = singular_values(G @ transposed(C_inverse))
    rank = independent_rows(G, ranking)[0]
    for i in range(rank):
        US[i] /= s[i]
    U, readers = transposed(US[:rank]), V @ C_inverse  # rows of `readers`: v_i^T C^-1
    scaled = readers[:rank].copy()
    for i in range(rank):
        scaled[i] /= s[i]
    multipliers = U @ scaled
    moving = readers[rank:].copy()

    _, D, sizes = singular_values(transposed(C_inverse @ B))
    D = D[:count_above(sizes, ranking.tolerance * sizes[0])].copy()
    drive = V[rank:].copy() @ transposed(D)
    right, left, cosines = singular_values(transposed(drive))
    driven = count_above(cosines, NOT_DRIVEN)
    all_right = singular_values(drive)[1]
    inverse = np.zeros((D.shape[0], moving.shape[0]))  # (V_2^T D)^+
    for i in range(driven):
        inverse += np.outer(right[i], left[i]) / cosines[i] ** 2
    CD = C @ transposed(D)
    return (rank, transposed(moving), multipliers, U, cosines, driven, transposed(left[driven:].copy() @ moving),
            CD @ transposed(all_right[driven:]), CD @ inverse @ moving)


@kernel
def internal_forces(multipliers, U, internal):
    """T (nv, s): actuator forces that change multipliers and nothing else, by wanted changes in s chosen rows.

    `multipliers` and `U` have those rows. Returns T and Pi (s, s), the projection on feasible changes: if rows are
    redundant, only the force that their multipliers make together matters (Remark 5).
    """
    count = len(U)
    _, basis, s = singular_values(transposed(U))
    basis = basis[:count_above(s, NOT_DRIVEN)].copy()
    Pi = transposed(basis) @ basis
    US, V, s = singular_values(multipliers @ internal)
    inverse = np.zeros((internal.shape[1], count))
    for i in range(count_above(s, NOT_DRIVEN * np.max(np.abs(multipliers)) if s.size else 0.0)):
        inverse += np.outer(V[i], US[i]) / s[i] ** 2
    return internal @ inverse @ Pi, Pi


def metric_root(metric, n):
    """C and C^-1 for the metric W = C C^T: ones for None, a diagonal, or a matrix.

    Raises InputError if the metric is none of those, or not symmetric and positive definite.
    """
    C = np.linalg.cholesky(np.eye(n) if metric is None else metric_matrix(metric, n))
    return C, np.linalg.inv(C)
