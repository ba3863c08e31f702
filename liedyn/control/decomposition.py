"""Motions, forces and actuators of a constrained mechanism at one configuration, each in its subspace (Aghili 2005).

With a metric tensor W = C C^T of velocities, x = C^T v and y = C^-1 f have one unit (section VII-B), and there

    A = G C^-T = U_1 S V_1^T,  V = [V_1 V_2]      range(V_2) = N(A): admissible motions, and the forces that move
    D, orthonormal                                range(D) = C^-1 range(B): what the actuators B can do, eq. 53

A force y moves the mechanism by V_2^T y alone, and the shortest one of the actuators that does the same is
D (V_2^T D)^+ V_2^T y. That is Aghili's (I + H) P y: P = V_2 V_2^T is (4), H is (59). Singular values of V_2^T D, the
cosines between motions and actuators, answer (62): a motion with cosine zero is one on which no actuator does work.
"""
import numpy as np

from liedyn.dense import SMALL_ROW
from liedyn.errors import InputError

NOT_DRIVEN = 1e-8
"""A cosine between a motion and the actuators' space below this counts as zero: forces would be 1e8 times larger than
what they do, and half of the digits lost."""


class Decomposition:
    """The subspaces at one configuration.

    Parameters
    ----------
    G : ndarray, shape (m, nv)
        Constraint rows; redundant ones and zeros are welcome.
    B : ndarray, shape (nv, nu)
        Columns span the actuators' forces.
    W : ndarray, shape (nv, nv)
        Metric tensor of velocities; W^-1 is that of forces.
    tolerance : float
        Singular values of G below this part of the largest one count as zero.

    Attributes
    ----------
    rank : int
        Number of independent rows.
    K : ndarray, shape (nv, p)
        Basis of the admissible motions.
    G_sharp : ndarray, shape (nv, m)
        The shortest v with G v = b, in the metric W, is G_sharp b.
    multipliers : ndarray, shape (m, nv)
        The shortest lam with G^T lam = f, for constraint forces f.
    cosines : ndarray, shape (p,)
        Between motions and the actuators' space, largest first; zero where no actuator does work.
    driven : int
        How many motions the actuators drive.
    undriven : ndarray, shape (nv, p - driven)
        Motions on which no actuator does work.
    internal : ndarray, shape (nv, k)
        Forces of the actuators that move nothing: they load the constraints alone.
    """

    def __init__(self, G, B, W, tolerance):
        C = np.linalg.cholesky(W)
        C_inverse = np.linalg.inv(C)
        U, s, Vt = np.linalg.svd(G @ C_inverse.T)
        largest = max(s.max(initial=0.0), SMALL_ROW * np.linalg.norm(C_inverse, 2))
        self.rank = rank = int((s > tolerance * largest).sum())
        inverted = Vt[:rank].T / s[:rank]
        self.K = C_inverse.T @ Vt[rank:].T
        self.G_sharp = C_inverse.T @ inverted @ U[:, :rank].T
        self.multipliers = U[:, :rank] @ inverted.T @ C_inverse
        self._rows = U[:, :rank]

        D, sizes, _ = np.linalg.svd(C_inverse @ B, full_matrices=False)
        D = D[:, sizes > tolerance * sizes.max(initial=0.0)]
        left, cosines, right = np.linalg.svd(Vt[rank:] @ D)
        self.cosines = np.zeros(len(left))
        self.cosines[:len(cosines)] = cosines
        self.driven = driven = int((cosines > NOT_DRIVEN).sum())
        self.undriven = self.K @ left[:, driven:]
        self.internal = C @ D @ right[driven:].T
        self._acting = C @ D @ (right[:driven].T / cosines[:driven]) @ left[:, :driven].T @ self.K.T

    def acting(self, force):
        """The shortest force of the actuators that moves the mechanism as `force` does, eq. 60."""
        return self._acting @ force

    def not_driven(self, force):
        """The part of what `force` does that no actuator can do, by undriven motion: zero if `acting` is exact."""
        return self.undriven.T @ force

    def internal_for(self, rows):
        """T (nv, s): forces of the actuators that change multipliers and nothing else, by wanted change of those rows.

        Returns T and Pi (s, s), the change that really comes: where rows are redundant, only the force that multipliers
        make together counts (Remark 5), and Pi projects on it.
        """
        U, s, _ = np.linalg.svd(self._rows[rows], full_matrices=False)
        reachable = U[:, s > NOT_DRIVEN]
        E = self.multipliers[rows] @ self.internal
        T = self.internal @ np.linalg.pinv(E, rcond=NOT_DRIVEN) @ reachable @ reachable.T
        return T, reachable @ reachable.T


def metric_tensor(metric, n):
    """W (n, n): ones for None, a diagonal, or a matrix.

    Raises
    ------
    InputError
        It is none of those, or not symmetric and positive definite.
    """
    if metric is None:
        return np.eye(n)
    try:
        W = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metric must be numbers, got {metric!r}") from None
    if W.shape == (n,):
        W = np.diag(W)
    if W.shape != (n, n):
        raise InputError(f"metric must have shape ({n},) or ({n}, {n}), got {W.shape}")
    if not (np.isfinite(W).all() and np.allclose(W, W.T, rtol=1e-12, atol=0.0) and np.linalg.eigvalsh(W)[0] > 0.0):
        raise InputError(f"metric must be symmetric and positive definite, got {W.tolist()}")
    return W
