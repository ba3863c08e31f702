"""Couplings of two sums of coordinates by a polynomial, as rows of `Builder.custom`.

With p the polynomial and s = x - x0, the row is g = y - p(s) = 0, and its velocity is dy/dt - p'(s) dx/dt.
"""
import numpy as np


def polynomial_rows(robot, y, x, x0, a):
    """Functions of `Builder.custom` for y = a0 + a1 (x - x0) + a2 (x - x0)^2 + ...

    Parameters
    ----------
    robot : Robot
    y, x : dict
        Coefficients of two sums of coordinates, by name.
    x0 : float
    a : sequence of float
    """
    Y, X = np.zeros((2, robot.nv))
    for row, terms in ((Y, y), (X, x)):
        for name, value in terms.items():
            row[robot.velocity_index(name)] = value
    places = np.array([robot.coordinate_names.index(name) if name in robot.coordinate_names else 0
                       for name in robot.velocity_names])
    orders = [np.polynomial.Polynomial(a).deriv(k) for k in range(4)]

    def at(q):
        """What the value of x makes of the polynomial and its derivatives."""
        return [p(X @ q[places] - x0) for p in orders]

    def derivatives(t, q, v, a):
        _, _, p2, p3 = at(q)
        rate, change = X @ v, X @ a
        return -p2 * rate * X[None], -(p2 * change + p3 * rate ** 2) * X[None], -2.0 * p2 * rate * X[None]

    return dict(
        residual=lambda t, q: np.array([Y @ q[places] - at(q)[0]]),
        jacobian=lambda t, q: (Y - at(q)[1] * X)[None],
        bias=lambda t, q, v: np.array([-at(q)[2] * (X @ v) ** 2]),
        derivatives=derivatives,
        force_derivative=lambda t, q, lam: -lam[0] * at(q)[2] * np.outer(X, X))
