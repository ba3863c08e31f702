"""Tangent-space charts of the constraint manifold, each about a reference configuration, for many states at once.

Coordinates of a state (q, v) in the chart about q_r, with R_y an orthonormal basis of the variations of q that the
holonomic constraints allow at q_r, and R_w one of the velocities that all constraints allow:

    y = R_y log(q_r^-1 q)        w = R_w v

Conversely, (q, v) solves the constraints together with these rows, by Newton's method on the configuration group: for
any (y, w) the state closes the loops to rounding. These are the local coordinates of Bordalba, Schoels, Ros, Porta and
Diehl 2023 ("Direct collocation methods for trajectory optimization in constrained robotic systems", IEEE T-RO), where
w need not be the rates of y: they are quasi-velocities, which include ball joints, floating bases and rolling.

The rate of y, and the variation of y along a displacement eta of q, are R_y J(d) v and R_y J(d) eta with
d = log(q_r^-1 q) and J the inverse right Jacobian, joint by joint: J = 1 for coordinates in R^n.
"""
from typing import NamedTuple

import numpy as np

from liedyn.lie import right_jacobian_inverse_curvature, so3_right_jacobian_inverse_curvature
from liedyn.machine.errors import LiedynError, SingularConfigurationError
from liedyn.mechanics.constraints.cluster_weights import ranks
from liedyn.mechanics.constraints.independent import holonomic
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import difference, integrate
from liedyn.motion.local_coordinates import LARGEST_TURN, close, complete, inverse_jacobian, rate_slope


class LeftChartError(LiedynError):
    """A state is outside its chart: the chart has to be moved.

    Attributes
    ----------
    rows : ndarray of int
        Indices of these states.
    """

    def __init__(self, rows):
        super().__init__(f"{len(rows)} states have left their charts")
        self.rows = rows


class Charts(NamedTuple):
    """Charts of one robot; `q` (count, nq) are the references, R_y (count, p_y, nv) and R_w (count, p_w, nv)."""

    robot: object
    q: np.ndarray
    R_y: np.ndarray
    R_w: np.ndarray
    groups: tuple

    @property
    def sizes(self):
        """Number of coordinates y, and of y and w together."""
        return self.R_y.shape[1], self.R_y.shape[1] + self.R_w.shape[1]

    def displacement(self, k, q):
        """d = log(q_r^-1 q) of each state q[i] in chart k[i]."""
        d = difference(self.robot, self.q[k], q)
        for group in self.groups:
            turn = np.linalg.norm(d[:, group][:, :3], axis=1)
            if turn.max(initial=0.0) > LARGEST_TURN:
                raise LeftChartError(np.flatnonzero(turn > LARGEST_TURN))
        return d

    def read(self, k, q, v):
        """(y, w) of each state in chart k[i], as one array."""
        y = np.einsum("bij,bj->bi", self.R_y[k], self.displacement(k, q))
        return np.concatenate([y, np.einsum("bij,bj->bi", self.R_w[k], v)], axis=1)

    def turned_rows(self, k, d):
        """R_y J(d): the derivative of y by a displacement of q."""
        R = self.R_y[k]
        if self.groups:
            R = R.copy()
            for group in self.groups:
                R[:, :, group] = R[:, :, group] @ inverse_jacobian(d[:, group])
        return R

    def turned(self, d, N):
        """J(d) N: the change of displacements d along the columns of N (count, nv, columns)."""
        found = N.copy()
        for group in self.groups:
            found[:, group] = inverse_jacobian(d[:, group]) @ N[:, group]
        return found

    def rate_slopes(self, k, d, v):
        """R_y d(J(d) v)/dd: the derivative of the rate of y by d; None if all coordinates belong to R^n."""
        if not self.groups:
            return None
        found = np.zeros_like(self.R_y[k])
        for group in self.groups:
            found[:, :, group] = self.R_y[k][:, :, group] @ rate_slope(d[:, group], v[:, group])
        return found

    def configurations(self, k, y, start=None):
        """The configurations with coordinates y[i] in charts k[i], from a start nearby.

        Raises LeftChartError if Newton's method does not converge.
        """
        robot, R = self.robot, self.R_y[k]
        if start is None or not (robot.row_names or self.groups):
            q = integrate(robot, self.q[k], np.einsum("bji,bj->bi", R, y))
            if not (robot.row_names or self.groups):
                return q

        def read(q):
            d = self.displacement(k, q)
            return y - np.einsum("bij,bj->bi", R, d), self.turned_rows(k, d)

        q, _, done = close(robot, q if start is None else start, read, _solve, 1.0)
        if done.all():
            return q
        if start is not None:  # the start was too far away
            return self.configurations(k, y)
        raise LeftChartError(np.flatnonzero(~done))

    def states(self, k, x, start=None):
        """The states (q, v) with coordinates x[i] = (y, w) in charts k[i]."""
        p = self.R_y.shape[1]
        q = self.configurations(k, x[:, :p], start)
        return q, self.velocities(k, q, x[:, p:])

    def velocities(self, k, q, w):
        """The velocities with coordinates w[i] in charts k[i] that satisfy the constraints at q[i]."""
        if not self.robot.row_names:
            return np.einsum("bji,bj->bi", self.R_w[k], w)
        return complete(self.robot, q, self.R_w[k], w, _solve, 2)  # twice: normal equations lose digits


def charts_about(robot, q):
    """Charts about the configurations q (count, nq), which close the loops.

    Raises SingularConfigurationError if the constraints have different ranks at these references.
    """
    if not robot.row_names:
        one = np.broadcast_to(np.eye(robot.nv), (len(q), robot.nv, robot.nv)).copy()
        return Charts(robot, q.copy(), one, one, robot.groups)
    G, rows = constraint_jacobian(robot, q), holonomic(robot)
    R_w = R_y = _null_spaces(robot, G)
    if not rows.all():
        R_y = _null_spaces(robot, np.where(rows[:, None], G, 0.0))
    return Charts(robot, q.copy(), R_y, R_w, robot.groups)


def _null_spaces(robot, G):
    """Orthonormal bases of the null spaces of matrices with the same rank."""
    n = G.shape[2]
    if not G.shape[1]:
        return np.broadcast_to(np.eye(n), (len(G), n, n)).copy()
    _, s, Vt = np.linalg.svd(G)
    found = ranks(robot, G, RANK_TOLERANCE)[0]
    if found.min() < found.max():
        b = int(np.argmin(found))
        raise SingularConfigurationError(
            f"the constraints of {robot.name!r} have rank {found.max()}, but {found[b]} at knot {b} of the motion: the "
            "manifold branches there; move the guess away from this configuration", s[b])
    return np.ascontiguousarray(Vt[:, found[0]:])


def _solve(Z, right):
    """Solutions of Z x = right, whose equations may be redundant but consistent: by normal equations, whose loss of
    digits Newton's method corrects."""
    transposed = Z.swapaxes(1, 2)
    try:
        return np.linalg.solve(transposed @ Z, (transposed @ right[:, :, None]))[:, :, 0]
    except np.linalg.LinAlgError:
        return np.full((len(Z), Z.shape[2]), np.inf)


def rate_curvature(d, r, on):
    """The second derivatives of on . J(d) r by d, for rotation vectors or twists (..., 3 or 6)."""
    return (so3_right_jacobian_inverse_curvature if d.shape[-1] == 3 else right_jacobian_inverse_curvature)(d, r, on)
