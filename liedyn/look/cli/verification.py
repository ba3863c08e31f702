"""The check of ``liedyn linearize --check``: central differences of the exactly reduced dynamics.

A witness, not a method: the library itself takes no finite differences. It shares with `linearize` the closure error,
the constraint Jacobian and forward dynamics, and none of their derivatives.
"""
import numpy as np

import liedyn as ld
from liedyn.machine.errors import LiedynError
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

STEP = 1e-3  # error of order 4: about STEP^4; of rounding: about 1e-16 / STEP
STENCIL = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
NEWTON_STEPS = 12


def central_differences(robot, ss, independent):
    """A and B of a linearized robot, from differences of dx/dt = f(x, u).

    Parameters
    ----------
    robot : Robot
    ss : LocalStateSpace
        The system to be checked: only its operating point is used.
    independent : sequence of str, "auto", "tangent" or None
        As given to `linearize`; the independent velocities are those that it chooses by itself.

    Returns
    -------
    A, B : ndarray
        Shapes (p, p) and (p, nu), p independent coordinates and velocities.

    Raises
    ------
    LiedynError
        A rotation of a ball in a cut joint is among the independent coordinates: no single coordinate is its integral.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> ss = ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4)
    >>> A, B = central_differences(robot, ss, ss.states[:2])
    >>> bool(abs(A - ss.A).max() < 1e-8 * abs(ss.A).max())
    True
    """
    reduced = _Reduced(robot, ss, independent)
    n_y, p, nu = len(reduced.y.names), len(ss.states), len(robot.actuator_names)
    force = 1.0 / (np.abs(ss.B).max(initial=0.0) or 1.0)  # in forces the rate is affine: a large step loses nothing
    scale = np.repeat([1.0, force], [p, nu])
    columns = [_derivative(lambda h, e=e: reduced.rate(h * e[:n_y], h * e[n_y:p], h * e[p:])) for e in np.diag(scale)]
    derivatives = (np.reshape(columns, (p + nu, p)) / scale[:, None]).T
    return derivatives[:, :p], derivatives[:, p:]


def _derivative(function):
    return sum(weight * function(k * STEP) for k, weight in STENCIL) / STEP


class _Reduced:
    """dx/dt of the mechanism in x = (y, w): deviation of the independent coordinates from the operating point as it
    moves on, and the independent velocities."""

    def __init__(self, robot, ss, independent):
        self.robot, self.q, self.v, self.tau = robot, ss.q, ss.v, ss.tau
        self.y = choose_positions(robot, ss.q, independent, RANK_TOLERANCE)
        self.w = choose_speeds(robot, ss.q, self.y, None, RANK_TOLERANCE)
        for name in np.array(self.y.names)[self.y.virtual >= 0]:
            loop = next(loop for loop in robot.model.loops if name == loop.name or name.startswith(f"{loop.name}."))
            if loop.kind == "spherical":
                raise LiedynError(f"--check cannot vary {name}: it is no derivative of a coordinate")
        self.w0 = self.rows(self.w, ss.q) @ ss.v

    def rows(self, chosen, q):
        return chosen.matrix(ld.virtual_jacobian(self.robot, q))

    def deviation(self, q0, q):
        """y of q seen from q0."""
        y, cut = self.y.rows @ ld.difference(self.robot, q0, q), self.y.virtual >= 0
        if cut.any():
            moved = ld.virtual_coordinates(self.robot, q) - ld.virtual_coordinates(self.robot, q0)
            y[cut] = moved[self.y.virtual[cut]]
        return y

    def configuration(self, y):
        """The closed configuration with deviation y, by Newton from the operating point."""
        q, holonomic = self.q, self.robot.holonomic
        for _ in range(NEWTON_STEPS):
            error = np.concatenate([ld.closure_error(self.robot, q)[holonomic], self.deviation(self.q, q) - y])
            step = self.solve(q, holonomic, self.y, -error)
            q = ld.integrate(self.robot, q, step)
            if np.abs(step).max(initial=0.0) < 1e-15:
                break
        return q

    def solve(self, q, rows, chosen, right):
        """The motion that these rows of G and the chosen coordinates prescribe."""
        Z = np.vstack([ld.constraint_jacobian(self.robot, q)[rows], self.rows(chosen, q)])
        return np.linalg.lstsq(Z, right, rcond=RANK_TOLERANCE)[0]

    def rate(self, y, w, u):
        """(dy/dt, dw/dt) at deviations y, w and u from the operating point."""
        robot, m = self.robot, len(self.robot.row_names)
        q = self.configuration(y)
        v = self.solve(q, slice(m), self.w, np.concatenate([np.zeros(m), self.w0 + w]))
        a = ld.forward_dynamics(robot, q, v, self.tau + ld.actuator_matrix(robot, q) @ u, independent=self.w).a
        y_dot, w_dot = self.rows(self.y, q) @ v, self.rows(self.w, q) @ a
        if robot.nq != robot.nv:  # the tangent of balls turns with the body: seen from the moving operating point
            y_dot = _derivative(lambda t: self.deviation(
                ld.integrate(robot, self.q, t * self.v), ld.integrate(robot, q, t * v)))
        if (self.w.virtual >= 0).any():
            w_dot = w_dot + _derivative(lambda t: self.rows(self.w, ld.integrate(robot, q, t * v)) @ v)
        return np.concatenate([y_dot, w_dot])
