"""Variances of the equations' noise, and equations of unit variance: restricted maximum likelihood (REML).

A measured force with variance theta_i enters the equations of a state with the column g_i of its effect there: of K^T
for generalised forces, so that it is amplified where a mechanism is nearly singular. Noise of the motion and of the
model adds a variance for each equation j, with the unit vector e_j as its column, the same in all states. So the
covariance of a state is linear in all variances,

    C(theta) = sum over k of theta_k g_k g_k^T

Fitted parameters absorb a part of the noise, most of it where few states determine them; the likelihood of the
residuals accounts for that (Patterson and Thompson 1971; Harville 1977, J. Am. Stat. Assoc. 72). With V_k = dC/dtheta_k
of all states and P = C^-1 - C^-1 W (W^T C^-1 W)^-1 W^T C^-1 its derivatives vanish where

    S theta = r,    S_kl = tr(P V_k P V_l),    r_k = y^T P V_k P y

A variance of zero would give infinite weight to nearly singular states. Therefore the square root of each variance has
the prior of Chung, Rabe-Hesketh et al. 2013 (Psychometrika 78), which keeps it away from zero by about its own
standard deviation and adds 1/theta_k to r_k.
"""
from typing import NamedTuple

import numpy as np

FINEST = 1e-6
"""Smallest standard deviation of an equation, relative to the root mean square of its forces."""
BEFORE = 0.1
"""Initial standard deviations: measured forces those of their own size, equations this part of it."""
ROUNDS = 60
"""Largest number of Newton steps; ten are usual, twenty if forces are exact and variances fall to the smallest ones."""
STEP = 10.0
"""Largest factor of a variance in one step."""
SETTLED = 0.02
"""Relative change of all variances that ends the iteration: their own standard deviation is ten times as large."""
NUMERICAL = 1e-10


class Noise(NamedTuple):
    """Covariances of the equations, and the uncertainty of these covariances.

    Attributes
    ----------
    C : ndarray, shape (count, p, p)
    columns : ndarray, shape (count, p, n)
        Effect of each source of noise, of the size of its standard deviation, on the equations of unit variance.
    uncertainty : ndarray, shape (n, n)
        Covariance of the logarithms of the variances.
    """

    C: np.ndarray
    columns: np.ndarray
    uncertainty: np.ndarray

    def spread(self, U):
        """The covariance of U^T y for equations of unit variance, where U is an orthonormal basis of the columns of W.

        It is 1 for known variances. If they were estimated, the weights fit the noise, which increases the scatter of
        the estimates: twice the term of Kenward and Roger 1997, Biometrics 53(3), for a C that is linear in the
        variances.
        """
        _, u, A, UU = information(self.columns, U)
        added = np.tensordot(u @ (A * self.uncertainty), u, axes=((0, 2), (0, 2)))
        taken = (UU @ np.tensordot(self.uncertainty, UU, 1)).sum(axis=0)
        return np.eye(U.shape[1]) + 2.0 * (added - taken)


def known_noise(sigma, shape):
    """The `Noise` of equations (count, p) of known standard deviations, one for all or one for each of p."""
    count, p = shape
    C = np.broadcast_to(np.diag(np.broadcast_to(sigma, (p,)) ** 2), (count, p, p))
    return Noise(C, np.zeros((count, p, 0)), np.zeros((0, 0)))


def estimated_noise(F, W, y):
    """The `Noise` of the residuals when parameters are fitted to y = W pi.

    Parameters
    ----------
    F : ndarray, shape (count, p, m)
        Effect of each measured force of typical size on the equations.
    W : ndarray, shape (count, p, b)
    y : ndarray, shape (count, p)
    """
    count, p, m = F.shape
    size = np.sqrt((y ** 2).mean(axis=0))
    size = np.maximum(size, FINEST * np.where(size > 0.0, size, max(size.max(), 1e-300)))
    columns = np.concatenate([F, np.broadcast_to(np.diag(size), (count, p, p))], axis=-1)
    theta = np.concatenate([np.ones(m), np.full(p, BEFORE ** 2)])
    for _ in range(ROUNDS):
        C = (columns * theta) @ np.swapaxes(columns, 1, 2)
        L, scaled = np.linalg.cholesky(C), columns * np.sqrt(theta)
        unit = np.linalg.solve(L, np.concatenate([scaled, W, y[..., None]], axis=-1))
        G, Ww, yw = unit[..., :m + p], unit[..., m + p:-1].reshape(y.size, -1), unit[..., -1].ravel()
        U = basis(Ww)
        left = (yw - U @ (U.T @ yw)).reshape(y.shape)
        r = ((left[:, None] @ G) ** 2).sum(axis=(0, 1))
        H = information(G, U)[0] + np.eye(m + p)  # the prior's information is 1 for the logarithm of each variance
        change = np.clip(np.linalg.solve(H, r + 2.0), 1.0 / STEP, STEP)
        after = np.maximum(theta * change, FINEST ** 2)
        settled = (abs(after - theta) <= SETTLED * theta).all()
        theta = after
        if settled:
            break
    return Noise(C, G, 2.0 * np.linalg.inv(H))


def basis(W):
    """An orthonormal basis of the columns of W, without directions of the size of rounding."""
    size = np.linalg.norm(W, axis=0)
    U, s, _ = np.linalg.svd(W / np.where(size > 0.0, size, 1.0), full_matrices=False)
    return U[:, s > NUMERICAL * s.max(initial=0.0)]


def information(G, U):
    """The information matrix S in units of the variances, and the terms of which it consists.

    With the columns g_tk of G, shape (count, p, n), in equations of unit variance and P = 1 - U U^T:
    S_kl = sum over t, s of (g_tk^T P_ts g_sl)^2 = sum of A_t (A_t - 2 u_t^T u_t), and <UU_k, UU_l>.

    Returns
    -------
    S : ndarray, shape (n, n)
    u : ndarray, shape (count, b, n)
        U_t^T g_tk.
    A : ndarray, shape (count, n, n)
        g_tk^T g_tl.
    UU : ndarray, shape (n, b, b)
        Sums over t of u_tk u_tk^T.
    """
    n, b = G.shape[2], U.shape[1]
    u = np.swapaxes(U.reshape(*G.shape[:2], b), 1, 2) @ G
    A = np.swapaxes(G, 1, 2) @ G
    by_source = np.moveaxis(u, 2, 0)
    UU = np.swapaxes(by_source, 1, 2) @ by_source
    flat = UU.reshape(n, b * b)
    return (A * (A - 2.0 * np.swapaxes(u, 1, 2) @ u)).sum(axis=0) + flat @ flat.T, u, A, UU


def whitened(C, W, y):
    """W and y multiplied by the inverse Cholesky factors of C, as rows of unit variance."""
    both = np.linalg.solve(np.linalg.cholesky(C), np.concatenate([W, y[..., None]], axis=-1))
    return both[..., :-1].reshape(y.size, -1), both[..., -1].ravel()
