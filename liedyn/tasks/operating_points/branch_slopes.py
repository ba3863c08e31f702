"""How eigenvalues move along a curve of equilibria: exact derivatives of A by the state, inputs and parameters.

Along a direction of the unknowns A varies by its derivatives by the state and the inputs, and by the parameters among
the unknowns (`liedyn.linear.sensitivity`), and an eigenvalue with right and left eigenvectors v, w by w^H A' v / w^H v.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.linear.sensitivity.sensitivities import sensitivities
from liedyn.linear.sensitivity.state_slopes import eigenvalue_slopes
from liedyn.tasks.operating_points.equilibrium_problem import read_rows

CYCLIC = 1e-12
"""Relative size below which a row or a column of A is zero."""


def kept(A):
    """Indices of A without those of zero rows and columns: of cyclic coordinates and conserved quantities."""
    left, least = np.arange(len(A)), CYCLIC * np.abs(A).max(initial=0.0)
    while True:
        B = np.abs(A[np.ix_(left, left)])
        keep = (B.max(axis=0, initial=0.0) > least) & (B.max(axis=1, initial=0.0) > least)
        if keep.all():
            return left
        left = left[keep]


def moving_eigenvalues(problem, point, direction):
    """Eigenvalues of A at a `Point`, sorted, and their derivatives along a direction of its unknowns."""
    robot, names = point.robot, problem.parameters
    s = sensitivities(robot, point.q, point.v, u=point.u, parameters=names, independent=point.y, outputs=(),
                      speeds=None if point.speeds == point.y else point.speeds,
                      rank_tolerance=problem.rank_tolerance, second=True)
    dy, dw, du, dp = problem.split(point, direction)
    p = point.K.shape[1]
    rows = read_rows(robot, point.q, s.model.states[:p])
    slope = s.A_x @ np.concatenate([rows @ (point.K @ dy), dw, du]) + s.A @ dp
    values, slopes = np.zeros((2, len(slope)), dtype=complex)
    left = kept(s.model.A)
    values[:len(left)], found = eigenvalue_slopes(s.model.A[np.ix_(left, left)], slope[np.ix_(left, left)][..., None])
    slopes[:len(left)] = found[:, 0]
    order = np.lexsort((values.imag, values.real))
    return values[order], slopes[order]
