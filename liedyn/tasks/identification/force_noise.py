"""How large the noise of the equations is, and equations of unit variance: restricted maximum likelihood (REML).

A force that is measured with the variance theta_i enters the equations of a state by the column g_i of what it does
there: of K^T for generalised forces, so that it counts for much where a mechanism is nearly singular. What noise of the
motion and of the model adds is a variance for each equation j, with the unit vector e_j as its column, the same in all
states. So the covariance of a state is linear in all variances,

    C(theta) = sum over k of theta_k g_k g_k^T

Parameters that are fitted take a part of the noise away, most of it where few states tell them; the likelihood of what
is left allows for that (Patterson and Thompson 1971; Harville 1977, J. Am. Stat. Assoc. 72). With V_k = dC/dtheta_k of
all states and P = C^-1 - C^-1 W (W^T C^-1 W)^-1 W^T C^-1 its derivatives vanish where

    S theta = r,    S_kl = tr(P V_k P V_l),    r_k = y^T P V_k P y

A variance of zero would trust what is next to singular without bounds. So the square root of each has the prior of
Chung, Rabe-Hesketh et al. 2013 (Psychometrika 78), which keeps it from zero by about its own deviation and adds
1/theta_k to r_k.
"""
from typing import NamedTuple

import numpy as np

FINEST = 1e-6
"""No equation is taken to be better than this part of the root mean square of its forces."""
BEFORE = 0.1
"""In the first round all measured forces are as inaccurate as they are large, and of the equations this part of it."""
ROUNDS = 60
"""Newton steps at the most; ten are usual, twenty where forces are exact and variances fall to the smallest ones."""
STEP = 10.0
"""By this factor a variance changes in one round at the most."""
SETTLED = 0.02
"""Relative change of all variances at which they are known well enough: their own deviation is ten times as large."""
NUMERICAL = 1e-10


class Noise(NamedTuple):
    """Covariances of the equations, and how surely they are known.

    Attributes
    ----------
    C : ndarray, shape (count, p, p)
    columns : ndarray, shape (count, p, n)
        What each source of noise of its deviation is in the equations of unit variance.
    uncertainty : ndarray, shape (n, n)
        Covariance of the logarithms of the variances.
    """

    C: np.ndarray
    columns: np.ndarray
    uncertainty: np.ndarray

    def spread(self, U):
        """The covariance of U^T y for equations of unit variance, by an orthonormal basis U of the columns of W.

        It is 1 where variances are known. Where they were estimated the weights fit the noise, which makes estimates
        scatter more: twice the term of Kenward and Roger 1997, Biometrics 53(3), for a C that is linear in variances.
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
    """The `Noise` that is left when parameters are fitted to y = W pi.

    Parameters
    ----------
    F : ndarray, shape (count, p, m)
        What each measured force of usual size is in the equations.
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
        H = information(G, U)[0] + np.eye(m + p)  # that of the prior is 1 for the logarithm of each variance
        change = np.clip(np.linalg.solve(H, r + 2.0), 1.0 / STEP, STEP)
        after = np.maximum(theta * change, FINEST ** 2)
        settled = (abs(after - theta) <= SETTLED * theta).all()
        theta = after
        if settled:
            break
    return Noise(C, G, 2.0 * np.linalg.inv(H))


def basis(W):
    """An orthonormal basis of the columns of W, those in which no rounding is left."""
    size = np.linalg.norm(W, axis=0)
    U, s, _ = np.linalg.svd(W / np.where(size > 0.0, size, 1.0), full_matrices=False)
    return U[:, s > NUMERICAL * s.max(initial=0.0)]


def information(G, U):
    """S in units of the variances, and of what it consists.

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
    """W and y by the inverse of the lower triangles of C, as rows of unit variance."""
    both = np.linalg.solve(np.linalg.cholesky(C), np.concatenate([W, y[..., None]], axis=-1))
    return both[..., :-1].reshape(y.size, -1), both[..., -1].ravel()
