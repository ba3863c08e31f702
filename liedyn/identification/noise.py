"""How large the noise of the equations is, and equations of unit variance (Gautier 1997, weighted least squares).

A force that is measured with the standard deviation sigma_i enters the equations of a state by the column F_i of what
it does there: K^T for generalised forces, so that it counts for much where a mechanism is nearly singular. What noise
of the motion and of the model adds is taken to be the same in all states: s_j for equation j. The squares of what is
left by least squares are, in the mean, linear in the squares of both,

    left_j^2 = sum of F_ji^2 sigma_i^2 + s_j^2
"""
import numpy as np
from scipy.optimize import nnls

FINEST = 1e-6
"""No equation is taken to be better than this part of the root mean square of its forces."""
ROUNDS = 3
"""Least squares and noise in turns; after the second round little changes."""
NUMERICAL = 1e-10


def covariances(F, W, y):
    """Covariances of the equations of each state, shape (count, p, p), from what is left when pi is fitted to y = W pi.

    Parameters
    ----------
    F : ndarray, shape (count, p, m)
        What a unit of each measured force is in the equations.
    W : ndarray, shape (count, p, b)
    y : ndarray, shape (count, p)
    """
    size = np.sqrt((y ** 2).mean(axis=0))
    floor = FINEST * np.where(size > 0.0, size, max(size.max(), 1e-300))
    C = np.broadcast_to(np.eye(y.shape[1]), y.shape + y.shape[1:])
    for _ in range(ROUNDS):
        left = y - W @ fit(*whitened(C, W, y))
        left *= np.sqrt(y.size / max(y.size - W.shape[-1], 1))
        sigma, s = variances(F ** 2, left ** 2, np.diagonal(C, axis1=1, axis2=2))
        C = (F * sigma) @ np.swapaxes(F, 1, 2) + np.diag(np.maximum(s, floor ** 2))
    return C


def whitened(C, W, y):
    """W and y by the inverse of the lower triangles of C, as rows of unit variance."""
    both = np.linalg.solve(np.linalg.cholesky(C), np.concatenate([W, y[..., None]], axis=-1))
    return both[..., :-1].reshape(y.size, -1), both[..., -1].ravel()


def fit(W, y):
    """The pi of least squares."""
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    return np.linalg.lstsq(W / scale, y, rcond=NUMERICAL)[0] / scale


def variances(squares, left, before):
    """sigma^2, shape (m,), and s^2, shape (p,), none negative.

    The variance of a square is twice the square of its mean, by which the equations are weighted.
    """
    count, p, m = squares.shape
    A = np.concatenate([squares, np.broadcast_to(np.eye(p), (count, p, p))], axis=-1) / before[..., None]
    Q, R = np.linalg.qr(A.reshape(count * p, -1))
    size = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
    found = nnls(R / size, Q.T @ (left / before).ravel())[0] / size
    return found[:m], found[m:]
