"""Moving-horizon estimation: the states that fit the measurements of a window best, on the manifold of a mechanism.

The unknowns z are independent and of unit variance: a displacement of the first state of the window, and a
disturbance of each of its steps; L L^T = P and L_Q L_Q^T = Q (Rao, Rawlings and Mayne 2003, eq. 9):

    x_0 = L xi      x_k+1 = step(x_k, u_k + L_Q eta_k)      min |xi|^2 + sum |eta_k|^2 + sum |R^-1/2 (y_k - h(x_k))|^2

The past before the window is represented by an extended Kalman filter, with its estimate and covariance P. The least
squares are SciPy's; derivatives are those of the steps themselves, propagated by S_k+1 = A S_k + B dw_k.
"""
# mypy: ignore-errors

from __future__ import annotations

from copy import copy
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from liedyn.control.estimation.extended import ExtendedKalmanFilter
from liedyn.control.estimation.filters import SamplingFilter
from liedyn.machine.arguments import one_of, whole
from liedyn.machine.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")


class MovingHorizonEstimator(SamplingFilter):
    """State estimates from the measurements of a window; returned by :func:`moving_horizon`.

    Attributes
    ----------
    q, v, t, outputs
        As for `ExtendedKalmanFilter`.
    disturbances : ndarray, shape (k, nu)
        Estimated disturbances of the steps of the window [N m, N].

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ld.moving_horizon(arm, arm.home, [0.0] * 4, 0.01, P=1e-4, Q=1e-2, R=1e-6, outputs=["q1", "q4"]).t
    0.0
    """

    disturbances: Array
    robot: Robot
    h: float
    outputs: tuple[str, ...]
    horizon: int
    loss: Any

    def __init__(self, begin: Any, horizon: int, loss: Any) -> None:
        self._begin, self.robot, self.h, self.outputs = begin, begin.robot, begin.h, begin.outputs
        self.horizon, self.loss, self._measurement = horizon, loss, begin._measurement
        self.reset()

    @property
    def _u(self):
        return self._window[-1].before

    @property
    def t(self) -> float:
        return self._begin.t + (len(self._window) - 1) * self.h

    def reset(self) -> None:
        self._begin.reset()
        self._deviation = self._begin._deviation
        self._window = [SimpleNamespace(before=self._begin._u, y=None, u=None)]
        self.disturbances, self._z = np.zeros((0, len(self._begin._Q))), np.zeros(len(self._begin.P))

    def _predict(self, u):
        now, _, _ = self._begin._carried(self._deviation, u, self.t)
        if len(self._window) > self.horizon:  # the filter takes in the first sample
            first, x, self._begin = self._window[0], len(self._begin.P), copy(self._begin)
            if first.y is not None:
                self._begin.update(first.y, first.before)
            self._begin.predict(first.u)
            self._z, self._window = np.append(np.zeros(x), self._z[x + len(self._begin._Q):]), self._window[1:]
        self._window[-1].u = u
        self._window.append(SimpleNamespace(before=u, y=None, u=None))
        self._z, self._deviation = np.append(self._z, np.zeros(len(self._begin._Q))), now

    def _update(self, y, u):
        self._window = [*self._window[:-1], SimpleNamespace(before=u, y=y, u=None)]
        along = lru_cache(1)(lambda z: self._along(np.frombuffer(z)))  # residuals, and then their derivative
        z = least_squares(lambda z: along(z.tobytes())[0], self._z, lambda z: along(z.tobytes())[1], loss=self.loss).x
        _, _, now, disturbances = along(z.tobytes())
        self._z, self._deviation, self.disturbances = z, now, disturbances

    def _along(self, z):
        """Residuals, their derivative by z, the last state, disturbances of the inputs."""
        begin, x = self._begin, len(self._begin.P)
        L, LQ, residuals, rows, disturbances = _root(begin.P), _root(begin._Q), [z], [np.eye(len(z))], []
        d = begin._displaced(begin._deviation, L @ z[:x], begin.t)
        S = np.hstack([begin._turned(begin._deviation, d) @ L, np.zeros((x, len(z) - x))])
        for k, sample in enumerate(self._window):
            if sample.y is not None:
                C = begin._kept.acting(begin._model(d, sample.before).C, self.outputs)
                e = self._measurement.difference(sample.y, self._measurement(d.robot, d.q, d.v, sample.before))
                seen, slope = ~np.isnan(e), self._measurement.difference_slope(e)
                root = np.linalg.inv(np.linalg.cholesky(begin.R[np.ix_(seen, seen)]))
                residuals.append(root @ e[seen])
                rows.append(-root @ (slope @ C @ S)[seen])
            if sample.u is not None:
                here = slice(x + k * len(LQ), x + (k + 1) * len(LQ))
                disturbances.append(LQ @ z[here])
                d, A, B = begin._carried(d, sample.u + disturbances[-1], begin.t + k * begin.h)
                S = A @ S
                S[:, here] += B @ LQ
        return np.concatenate(residuals), np.vstack(rows), d, np.array(disturbances).reshape(-1, len(LQ))


def moving_horizon(robot: Robot, q: ArrayLike, v: ArrayLike, h: float, P: ArrayLike | dict[str, Any],
                   Q: ArrayLike | dict[str, Any], R: ArrayLike | dict[str, Any], outputs: Sequence[str] | None = None,
                   horizon: int = 20, loss: Literal["linear", "soft_l1", "huber", "cauchy", "arctan"] = "linear",
                   **options: Any) -> MovingHorizonEstimator:
    """A state estimator for the measurements of a moving window; constraints, ball and free joints are supported.

    Parameters
    ----------
    robot, q, v, h, P, Q, R, outputs
        As for `ExtendedKalmanFilter`; so are attributes and methods of the result.
    horizon : int
        Number of steps of the window; the past before it is represented by an extended Kalman filter.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        Weight of residuals above their standard deviation, as for `scipy.optimize.least_squares`: all but "linear"
        reduce the influence of outliers.
    **options
        Other options of `ExtendedKalmanFilter`: `independent`, `speeds`, `steps`, `t`, `rank_tolerance`, `states`.
        Disturbances act on the forces of the actuators.

    Returns
    -------
    MovingHorizonEstimator

    Raises
    ------
    InputError, ClosureError
        As for `ExtendedKalmanFilter`.

    Notes
    -----
    An update computes the steps and linear models of the window a few times: 15 steps of a five-bar take about 0.1 s.
    For a linear system the estimates are those of the filter.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> estimator = ld.moving_horizon(arm, arm.home, [0.0] * 4, 0.01, P=1e-4, Q=1e-2, R=1e-6, outputs=["q1", "q4"])
    >>> estimator.predict([0.0] * 4)
    >>> estimator.update(estimator.measure() + [1e-3, 0.0])
    >>> bool(abs(ld.closure_error(arm, estimator.q)).max() < 1e-12)
    True
    """
    if "noise" in options:
        raise InputError("moving_horizon knows disturbances of the inputs only: leave out noise")
    begin = ExtendedKalmanFilter(robot, q, v, h, P, Q, R, outputs, **options)
    return MovingHorizonEstimator(begin, whole("horizon", horizon, 1), one_of("loss", loss, LOSSES))


def _root(P):
    """L with L L^T = P, which may be semidefinite."""
    values, vectors = np.linalg.eigh(P)
    return vectors * np.sqrt(np.maximum(values, 0.0))
