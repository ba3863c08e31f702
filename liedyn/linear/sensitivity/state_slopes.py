"""Derivatives of A and B of a linear model by its own state and inputs.

The second derivatives H of the rates (`liedyn.linear.second`) belong to one chart, the exponential's at the state. A
neighbour's A belongs to the chart there: column j is the derivative along a displacement that follows the one along k,
where exp(d_k) exp(d_j) = exp(d_k + d_j + [d_k, d_j] / 2). And the rates of balls and free joints among the coordinates
y are those of displacements from a state that moves on (`liedyn.linear.local`), from another one there. With columns
N, X of displacements and velocities, brackets joint by joint, and R the rows of the coordinates,

    dA_j / dx_k = H_jk + A (R [N_k, N_j]) / 2 + R ([N_j, X_k] - [N_k, X_j] - [[N_k, N_j], v]) / 2

the last term for the rows of y only. Without balls and free joints it is H itself.
"""
import numpy as np

from liedyn.linear.sensitivity.sensitivity_columns import brackets


def state_slopes(models, A, H):
    """Derivatives (states, x, columns, columns) of [A B] of `LinearModels` by (y, w, u), the last axis, from the second
    derivatives H of the rates in the exponential's chart."""
    robot, R, p = models.robot, models.R_y, models.R_y.shape[1]
    if not robot.groups:
        return H
    N, X = (each.swapaxes(1, 2) for each in models.columns[:2])
    turned = brackets(robot, N[:, None], N[:, :, None])  # [N_k, N_j] at (j, k)
    crossed = brackets(robot, N[:, :, None], X[:, None])
    rates = 0.5 * (crossed - crossed.swapaxes(1, 2) - brackets(robot, turned, models.motion.v[:, None, None]))
    found = H + 0.5 * np.einsum("biy,byn,bjkn->bijk", A[:, :, :p], R, turned, optimize=True)
    found[:, :p] += np.einsum("byn,bjkn->byjk", R, rates, optimize=True)
    return found


def eigenvalue_slopes(A, slopes):
    """Eigenvalues (..., x) of A, sorted by real, then imaginary part, and their derivatives (..., x, np) for those of
    A, (..., x, x, np): w^H A_p v / w^H v."""
    values, V = np.linalg.eig(A)
    order = np.lexsort((values.imag, values.real), axis=-1)
    V = np.take_along_axis(V, order[..., None, :], axis=-1)
    with np.errstate(all="ignore"):
        W = np.linalg.inv(V)
    return np.take_along_axis(values, order, -1), np.einsum("...ki,...ijp,...jk->...kp", W, slopes, V)
