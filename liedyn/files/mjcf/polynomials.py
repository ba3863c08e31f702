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
    row = PolynomialRow(Y, X, places, x0, [np.polynomial.Polynomial(a).deriv(k) for k in range(4)])
    return {name: getattr(row, name) for name in (
        "residual", "jacobian", "bias", "derivatives", "force_derivative")}


class PolynomialRow:
    """The functions of one row, as methods: unlike functions within functions, these can be pickled.

    Parameters
    ----------
    Y, X : ndarray, shape (nv,)
        The two sums.
    places : ndarray of int, shape (nv,)
        Where the coordinates are in q.
    x0 : float
    orders : list of Polynomial
        p and its derivatives.
    """

    def __init__(self, Y, X, places, x0, orders):
        self.Y, self.X, self.places, self.x0, self.orders = Y, X, places, x0, orders

    def _at(self, q):
        """What the value of x makes of the polynomial and its derivatives."""
        return [p(self.X @ q[self.places] - self.x0) for p in self.orders]

    def residual(self, t, q):
        """g"""
        return np.array([self.Y @ q[self.places] - self._at(q)[0]])

    def jacobian(self, t, q):
        """dg/dq"""
        return (self.Y - self._at(q)[1] * self.X)[None]

    def bias(self, t, q, v):
        """Its change along the motion, times v."""
        return np.array([-self._at(q)[2] * (self.X @ v) ** 2])

    def derivatives(self, t, q, v, a):
        """By q of the row's velocity, by q and by v of its acceleration."""
        X, (_, _, p2, p3) = self.X, self._at(q)
        rate, change = X @ v, X @ a
        return -p2 * rate * X[None], -(p2 * change + p3 * rate ** 2) * X[None], -2.0 * p2 * rate * X[None]

    def force_derivative(self, t, q, lam):
        """That of G^T lam by q."""
        return -lam[0] * self._at(q)[2] * np.outer(self.X, self.X)
