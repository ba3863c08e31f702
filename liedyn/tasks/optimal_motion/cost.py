"""The cost of a motion: integrals of effort, time, speed, distance from a posture and users' functions; an end cost.

    J = T sum_i w_i L(t_i, q_i, v_i, u_i) + E(T, q, v, u at the end)

Effort, speed and posture are squares x^T W x. Derivatives are exact; users' functions have first derivatives only. The
Hessian of squares is the Gauss-Newton matrix plus the terms of the curvature of the manifold (`bend`).
"""
import numpy as np

from liedyn.machine.arguments import floats, non_negative
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.model.calls.boundary import states
from liedyn.tasks.optimal_motion.charts import Charts, charts_about
from liedyn.tasks.optimal_motion.path_functions import PathFunction, derivatives_of, value_of


class Square:
    """A term x^T W x of the integrand.

    Attributes
    ----------
    W : ndarray, shape (k, k)
    """

    def values(self, s):
        """x (count, k) at `Samples`, and its derivatives by their columns, (count, k, columns)."""
        raise NotImplementedError

    def bend(self, s, motion, weights, hessians):
        """Add to `NodeHessians` what the Gauss-Newton matrix lacks, times weights (count, 1): 2 x^T W d^2x."""


class Effort(Square):
    """Forces of the actuators."""

    def __init__(self, robot, given):
        self.W = weight_of("effort", given, len(robot.actuator_names))

    def values(self, s):
        return s.u, s.du


class Speed(Square):
    """Velocities of all coordinates."""

    def __init__(self, robot, given):
        self.W = weight_of("velocity", given, robot.nv)

    def values(self, s):
        return s.v, s.dv

    def bend(self, s, motion, weights, hessians):
        hessians.of_v += 2.0 * weights * (s.v @ self.W)


class NearPosture(Square):
    """The difference from a configuration, on the configuration group."""

    def __init__(self, robot, given):
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise InputError(f"posture must be (weight, q), got {shown(given)}")
        _, q = states(robot, q=given[1])
        self.W, one = weight_of("posture", given[0], robot.nv), np.eye(robot.nv)[None]
        self._about = Charts(robot, q[:1], one, one, charts_about(robot, q[:1]).groups)

    def values(self, s):
        k = np.zeros(len(s.q), np.int64)
        d = self._about.displacement(k, s.q)
        return d, self._about.turned_rows(k, d) @ s.dq

    def bend(self, s, motion, weights, hessians):
        d = self.values(s)[0]
        on_x = np.hstack([2.0 * weights * (d @ self.W), np.zeros(d.shape)])
        hessians.add_rates(slice(None), self._about, np.zeros(len(d), np.int64), motion, on_x, 0.0 * on_x)


SQUARES = {
    "effort": Effort,
    "velocity": Speed,
    "posture": NearPosture,
}
KINDS = (*SQUARES, "time", "function", "terminal")


class MotionCost:
    """The terms of a cost, checked; the arguments are described in `optimize_motion`."""

    def __init__(self, robot, given):
        if given is None or isinstance(given, str):
            given = {given or "effort": 1.0}
        if not isinstance(given, dict) or not given:
            raise InputError(f"cost must be a dict of {', '.join(KINDS)}, or the name of one, got {shown(given)}")
        for name in given:
            if name not in KINDS:
                raise InputError(f"unknown cost {shown(name)}, {suggestion(name, KINDS)}")
        self.squares = [square(robot, given[name]) for name, square in SQUARES.items() if name in given]
        self.time = non_negative("cost of time", given.get("time", 0.0))
        self.function, self.terminal = (given.get(name) for name in ("function", "terminal"))
        for name, x in (("function", self.function), ("terminal", self.terminal)):
            if x is not None and not isinstance(x, PathFunction):
                raise InputError(f"cost {name!r} must be a PathFunction, got {shown(x)}")

    def running(self, s, duration):
        """Time and the squares at samples s of a quadrature: the value, its gradient (size of the local columns), its
        derivative by the duration, and the blocks of the Gauss-Newton Hessian."""
        L, by = np.full(len(s.t), self.time), np.zeros((len(s.t), s.dq.shape[2]))
        H = np.zeros((len(s.t), *s.dq.shape[2:] * 2))
        for square in self.squares:
            (x, dx), W = square.values(s), square.W
            if W.any():
                Wx = x @ W
                L, by = L + np.einsum("bi,bi->b", x, Wx), by + 2.0 * np.einsum("bi,bij->bj", Wx, dx)
                H += 2.0 * duration * (dx.swapaxes(1, 2) @ (W @ dx))
        H[:, :, -1] += by
        H[:, -1] += by
        weights = duration * s.weights
        return weights @ L, weights[:, None] * by, s.weights @ L, s.weights[:, None, None] * H

    def of_function(self, s, duration):
        """The same for the user's integrand: value, gradient and derivative by the duration."""
        L, by = own(self.function, s)
        weights = duration * s.weights
        return weights @ L, weights[:, None] * by, s.weights @ L

    def bend(self, s, motion, factor, hessians):
        """Adds the integral of the squares times a factor to `NodeHessians`, without the Gauss-Newton part."""
        for square in self.squares:
            square.bend(s, motion, factor * s.weights[:, None], hessians)


def own(function, s):
    """Values (count,) of a user's scalar function at samples, and their derivatives by the local columns."""
    values, slopes = np.empty(len(s.t)), np.empty((len(s.t), s.dq.shape[2]))
    for b, point in enumerate(zip(s.t, s.q, s.v, s.u)):
        value = value_of(function, *point)
        if len(value) != 1:
            raise InputError(f"the cost {function.name!r} must be one number, got {len(value)}")
        by_q, by_v, by_u, by_t = derivatives_of(function, *point, 1)
        values[b] = value[0]
        slopes[b] = by_q[0] @ s.dq[b] + by_v[0] @ s.dv[b] + by_u[0] @ s.du[b] + by_t[0] * s.dt[b]
    return values, slopes


def weight_of(name, x, size):
    """A symmetric positive semidefinite matrix, from a number, a diagonal or a matrix."""
    x = floats(f"cost of {name}", x)
    if x.ndim == 0:
        x = np.full(size, float(x))
    W = np.diag(x) if x.ndim == 1 else x
    if W.shape != (size, size) or not np.isfinite(W).all():
        raise InputError(f"cost of {name} must be a number, or of shape ({size},) or ({size}, {size}), and finite, got "
                         f"shape {x.shape}")
    W = 0.5 * (W + W.T)
    if size and np.linalg.eigvalsh(W)[0] < -1e-12 * np.abs(W).max():
        raise InputError(f"cost of {name} must not be negative: eigenvalues from {np.linalg.eigvalsh(W)[0]:.3g}")
    return W
