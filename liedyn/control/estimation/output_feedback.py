"""Output feedback: a controller that uses estimates from measurements instead of the state."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.estimation.filters import vector
from liedyn.linear.feedback import Feedback
from liedyn.machine.arguments import floats, whole
from liedyn.machine.errors import InputError, shown
from liedyn.model.travel import Travelling
from liedyn.motion.simulation.sampled import Sampled, cut
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.control.estimation.extended import ExtendedKalmanFilter
    from liedyn.control.estimation.observers import KalmanFilter
    from liedyn.typing import Array, ArrayLike


class OutputFeedback(Feedback, Travelling):
    """A controller on estimates, and the filter for them; ``simulate(u=feedback.sampled)`` runs both.

    At every sample: the measurement, which is all that is used of the state, an update of the filter, the controller at
    the estimate, and the prediction with the inputs that act until the next sample, including their bounds and delay.

    Parameters
    ----------
    controller : callable
        ``(t, q, v) -> u``, such as a :class:`liedyn.Regulator`.
    estimator : KalmanFilter or ExtendedKalmanFilter
        Its step is the sampling period.
    noise : float, array_like, shape (ny,) or (ny, ny), or dict, optional
        Covariance of the noise that is added to measurements; default: none.
    rng : int or numpy.random.Generator
        Random generator of that noise, or its seed.
    delay : int
        Number of samples from a measurement until the corresponding inputs act.
    lower, upper : float or array_like, optional
        Bounds of the actuator inputs.
    initial : float or array_like
        Inputs until the first computed ones act.

    Attributes
    ----------
    sampled : Sampled
        For `tau` or `u` of `simulate`.
    t : ndarray, shape (count,)
        Times of the samples [s].
    y, u : ndarray, shapes (count, ny), (count, nu)
        Measurements, and the controller's outputs for them.
    q, v : ndarray, shapes (count, nq), (count, nv)
        Estimates for which the controller computed them.

    Raises
    ------
    InputError
        The controller cannot be called, the estimator is no discrete-time filter, or a number does not fit. In a call:
        samples are not in the order of time, or the controller's output does not fit.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> observer = ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"])
    >>> regulator = ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1)
    >>> feedback = ld.OutputFeedback(regulator, observer, noise=1e-8)
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.1, u=feedback.sampled)
    >>> feedback.y.shape
    (11, 2)
    """

    sampled: Sampled
    controller: Callable[..., Any]
    estimator: KalmanFilter | ExtendedKalmanFilter
    delay: int

    def __init__(self, controller: Callable[..., Any], estimator: KalmanFilter | ExtendedKalmanFilter,
                 noise: float | ArrayLike | dict[str, Any] | None = None, rng: int | np.random.Generator = 0,
                 delay: int = 0, lower: float | ArrayLike = -np.inf, upper: float | ArrayLike = np.inf,
                 initial: float | ArrayLike = 0.0) -> None:
        for each in ("h", "measure", "update", "predict", "reset"):
            if not hasattr(estimator, each):
                raise InputError(f"OutputFeedback, estimator: expected a filter that samples, such as "
                                 f"ExtendedKalmanFilter, got {shown(estimator)}")
        self.controller, self.estimator, self.delay = controller, estimator, whole("OutputFeedback, delay", delay)
        h = estimator.h
        self.sampled = Sampled(self, h, self.delay * h, lower, upper, initial)
        if not callable(controller):
            raise InputError(f"OutputFeedback, controller: expected a function of (t, q, v), got {shown(controller)}")
        size = len(estimator.robot.actuator_names)
        for each in ("lower", "upper", "initial"):
            if np.shape(getattr(self.sampled, each)) not in ((), (size,)):
                raise InputError(f"OutputFeedback, {each}: must be a number or {size} numbers")
        self._root = None
        if noise is not None:
            values, axes = np.linalg.eigh(weight("noise", noise, estimator.outputs, False))
            self._root = axes * np.sqrt(np.maximum(values, 0.0))
        try:
            np.random.default_rng(rng)
        except Exception:  # NumPy and the user's objects raise errors of all kinds
            raise InputError(f"OutputFeedback, rng: must be a seed or a generator, got {shown(rng)}") from None
        self._rng, self._size = rng, size
        self.reset()

    @property
    def t(self) -> Array:
        return np.array([each[0] for each in self._records])

    @property
    def y(self) -> Array:
        return self._column(1, len(self.estimator.outputs))

    @property
    def q(self) -> Array:
        return self._column(2, self.estimator.robot.nq)

    @property
    def v(self) -> Array:
        return self._column(3, self.estimator.robot.nv)

    @property
    def u(self) -> Array:
        return self._column(4, self._size)

    def __repr__(self) -> str:
        return f"OutputFeedback({self.controller!r}, {self.estimator!r})"

    def _column(self, k, size):
        return np.array([each[k] for each in self._records]).reshape(-1, size)

    def reset(self) -> None:
        """Start again: the filter from its initial estimate, the same noise if `rng` is a seed, no records.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"])
        >>> ld.OutputFeedback(ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1), observer).reset()
        """
        self.estimator.reset()
        if hasattr(self.controller, "reset"):
            self.controller.reset()
        initial = np.broadcast_to(self.sampled.initial, (self._size,)).astype(float)
        self._coming, self._held = [initial] * self.delay, initial
        self._random, self._records = np.random.default_rng(self._rng), []

    @property
    def _robot(self) -> Any:
        return self.estimator.robot

    def _inputs(self, t, q, v):
        if self._records and abs(t - self._records[-1][0] - self.estimator.h) > 1e-6 * self.estimator.h:
            raise InputError(f"OutputFeedback: a sample at t = {t:g} s cannot follow that at "
                             f"{self._records[-1][0]:g} s; reset() begins again")
        y = self.estimator.measure(q, v, self._held)
        if self._root is not None:
            y = self.estimator.disturbed(y, self._root @ self._random.normal(size=len(y)))
        return self.answer(t, y)

    def answer(self, t: float, y: ArrayLike) -> Array:
        """The controller's output for a measurement; for users' own loops with real sensors.

        Parameters
        ----------
        t : float
            Time [s].
        y : array_like, shape (ny,)
            Measurement, NaN for outputs that were not measured.

        Returns
        -------
        u : ndarray, shape (nu,)
            To be applied for one sampling period, `delay` samples later.

        Raises
        ------
        InputError
            The measurement or the controller's output does not fit.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"])
        >>> regulator = ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1)
        >>> u = ld.OutputFeedback(regulator, observer).answer(0.0, observer.y)
        >>> bool(abs(u - regulator.u).max() < 1e-12)
        True
        """
        self.estimator.update(y, self._held)
        q, v = self.estimator.q, self.estimator.v
        u = vector("what the controller says", self.controller(t, q, v), self._size)
        u = cut(self.controller, u, self.sampled.lower, self.sampled.upper)
        self._coming.append(u)
        self._held = self._coming.pop(0)
        self.estimator.predict(self._held)
        self._records.append((t, floats("y", y), q, v, u))
        return u.copy()
