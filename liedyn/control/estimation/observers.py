"""Observers with constant gains at an operating point: the results of `kalman` and `dkalman`."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import flag, floats
from liedyn.machine.errors import InputError
from liedyn.machine.python_control import forces, plain, python_control

if TYPE_CHECKING:
    from typing import Any

    from liedyn.motion.discretize import DiscreteStateSpace
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes


class Sensors:
    """Common base of all filters: measurements at a state, by default that of `_deviation`, with inputs `_u`."""

    @property
    def q(self) -> Array:
        return self._deviation.q.copy()

    @property
    def v(self) -> Array:
        return self._deviation.v.copy()

    def measure(self, q: ArrayLike | None = None, v: ArrayLike | None = None, u: ArrayLike | None = None) -> Array:
        """The noise-free measurement at a state.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Configuration [rad, m; quaternions (x, y, z, w)]; default: the estimate (of `kalman` the operating point).
        v : array_like, shape (nv,), optional
            Velocity [rad/s, m/s]; default: the same.
        u : array_like, shape (nu,), optional
            Forces of the actuators, which affect accelerations and constraint forces; default: those of the last
            prediction, initially zero, or of the operating point of `kalman` and `dkalman`.

        Returns
        -------
        y : ndarray, shape (ny,)
            In the order of ``outputs``. A pose, and the position of a ball or free joint, is given by its rotation
            vector (and the position of its origin).

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["velocity:q1", "velocity:q2"])
        >>> observer.measure(arm.home, [0.0] * 4).tolist()
        [0.0, 0.0]
        """
        d = self._deviation
        q, v = d.state(self.q if q is None else q, self.v if v is None else v)
        return self._measurement(d.robot, q, v, self._held(u))

    def disturbed(self, y: ArrayLike, noise: ArrayLike) -> Array:
        """A measurement with added noise, on the group for measurements that are no vectors.

        Parameters
        ----------
        y, noise : array_like, shape (ny,)

        Returns
        -------
        y : ndarray, shape (ny,)

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["velocity:q1"])
        >>> observer.disturbed([0.5], [0.25]).tolist()
        [0.75]
        """
        return self._measurement.disturbed(vector("y", y, len(self.outputs)), vector("noise", noise, len(self.outputs)))

    def _held(self, u):
        return self._u if u is None else vector("u", u, len(self._u))


class SamplingFilter(Sensors):
    """Common base of filters in discrete time; `_update(y, u)` and `_predict(u)` are given checked arguments."""

    def reset(self) -> None:
        """Start again from the initial estimate.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ekf = ld.ExtendedKalmanFilter(arm, arm.home, [0.0] * 4, 0.01, 1e-4, 1e-2, 1e-6, ["q1", "q4"])
        >>> ekf.predict([1.0, 0.0, 0.0, 0.0])
        >>> ekf.reset()
        >>> ekf.t
        0.0
        """
        raise NotImplementedError

    def update(self, y: ArrayLike, u: ArrayLike | None = None) -> None:
        """Update the estimate by a measurement; an error leaves the filter as it was.

        Parameters
        ----------
        y : array_like, shape (ny,)
            Measurement, NaN for outputs that were not measured.
        u : array_like, shape (nu,), optional
            Forces of the actuators at the time of the measurement; default: those of the last prediction, initially
            zero, or of the operating point of `dkalman`.

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.
        ClosureError
            The estimate leaves the workspace.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ekf = ld.ExtendedKalmanFilter(arm, arm.home, [0.0] * 4, 0.01, 1e-4, 1e-2, 1e-6, ["q1", "q4"])
        >>> ekf.update([arm.home[0] + 1e-3, float("nan")])
        >>> ekf.e.round(6).tolist()
        [0.001]
        """
        self._wholly(self._update, self._measurement.reading(y), self._held(u))

    def predict(self, u: ArrayLike | None = None) -> None:
        """Predict the estimate after a step; an error leaves the filter as it was.

        Parameters
        ----------
        u : array_like, shape (nu,), optional
            Forces of the actuators, constant during the step; default as for `update`.

        Raises
        ------
        InputError
            The shape does not fit, an entry is not finite, or the step has no derivative (`discretize`).
        ClosureError
            The step leaves the workspace.
        SingularConfigurationError
            As for `linearize`.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ekf = ld.ExtendedKalmanFilter(arm, arm.home, [0.0] * 4, 0.01, 1e-4, 1e-2, 1e-6, ["q1", "q4"])
        >>> ekf.predict([1.0, 0.0, 0.0, 0.0])
        >>> ekf.t
        0.01
        """
        self._wholly(self._predict, self._held(u))

    def _wholly(self, change, *given):
        """Make a change of the filter, or none if an error is raised."""
        before = vars(self).copy()
        try:
            change(*given)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise


class Observer(Sensors):
    """Common base of both filters with constant gains."""

    model: Any
    C: Array
    D: Array
    L: Array
    P: Array
    u: Array
    outputs: tuple[str, ...]
    y: Array
    eigenvalues: Complexes

    def __init__(self, model: Any, C: Array, D: Array, measurement: Any, deviation: Any, u: ArrayLike, L: Array,
                 P: Array, tolerance: float) -> None:
        self.model, self.C, self.D, self.L, self.P, self.u = model, C, D, L, P, u
        self.outputs = measurement.labels
        self._measurement, self._deviation, self._tolerance = measurement, deviation, tolerance
        self.y = measurement(deviation.robot, deviation.q, deviation.v, u)
        self.eigenvalues = np.sort_complex(np.linalg.eigvals(model.A - L @ C))

    @property
    def robot(self) -> Robot:
        return self._deviation.robot

    @property
    def _u(self):
        return self.u

    def __repr__(self) -> str:
        slowest = np.abs(self.eigenvalues).max() if hasattr(self.model, "h") else self.eigenvalues.real.max()
        return (f"{type(self).__name__}({len(self.outputs)} outputs, {len(self.C[0])} states, "
                f"slowest eigenvalue {slowest:.4g})")

    def innovation(self, y: ArrayLike, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """The difference of a measurement from the prediction of the linear model.

        Parameters
        ----------
        y : array_like, shape (ny,)
            A measurement; NaN for outputs that were not measured.
        x : array_like, shape (x,)
            The estimated deviation from the operating point.
        u : array_like, shape (nu,), optional
            Forces of the actuators; default: those of the operating point.

        Returns
        -------
        e : ndarray, shape (ny,)
            Zero for outputs that were not measured.

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["velocity:q1", "velocity:q2"])
        >>> observer.innovation([0.1, 0.0], [0.0] * 4).tolist()
        [0.1, 0.0]
        """
        left = self._measurement.difference(self._measurement.reading(y), self.y)
        expected = self.C @ self._state("x", x) + self.D @ (self._held(u) - self.u)
        return np.where(np.isnan(left), 0.0, left - expected)

    def to_control(self, absolute: bool = False) -> Any:
        """The filter for python-control.

        Parameters
        ----------
        absolute : bool
            Absolute measurements and actuator inputs, instead of deviations from the operating point.

        Returns
        -------
        control.StateSpace, or control.NonlinearIOSystem if absolute
            Inputs: the measured outputs, then ``force_`` and the names of the actuators; outputs: the estimate,
            ``estimate_`` and the name of a state. In discrete time its states are the prediction, its outputs the
            estimate after the update.

        Raises
        ------
        LiedynError
            python-control is not installed.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["velocity:q1"]).to_control().input_labels
        ['velocity_q1', 'force_q1', 'force_q2', 'force_q3', 'force_q4']
        """
        control, x, ny = python_control("to_control"), len(self.C[0]), len(self.C)
        A, B, one, M = self.model.A, self.model.B, np.eye(x), getattr(self, "M", np.zeros((x, ny)))
        known = {"inputs": plain(self.outputs) + forces(self.model.inputs), "states": plain(self.model.states),
                 "outputs": plain(self.model.states, "estimate_"), "name": "filter", "dt": getattr(self.model, "h", 0)}
        if not flag("absolute", absolute):
            return control.ss(A - self.L @ self.C, np.hstack([self.L, B - self.L @ self.D]), one - M @ self.C,
                              np.hstack([M, -M @ self.D]), **known)

        return control.nlsys(self._absolute_rate, self._absolute_estimate, **known)

    def _absolute_rate(self, t, x, given, params):
        read, u = given[:len(self.C)], given[len(self.C):]
        return self.model.A @ x + self.model.B @ (u - self.u) + self.L @ self.innovation(read, x, u)

    def _absolute_estimate(self, t, x, given, params):
        M = getattr(self, "M", np.zeros((len(self.C[0]), len(self.C))))
        return x + M @ self.innovation(given[:len(self.C)], x, given[len(self.C):])

    def _state(self, name, x):
        return vector(name, x, len(self.C[0]))

class KalmanBucyFilter(Observer):
    """A steady-state filter in continuous time, dx/dt = A x + B (u - u_0) + L e; returned by :func:`liedyn.kalman`.

    Attributes
    ----------
    model : LocalStateSpace
        The linear model of the design; the states x are ``model.states``.
    C, D : ndarray, shapes (ny, x) and (ny, nu)
        Output matrices of the measurement.
    L : ndarray, shape (x, ny)
    P : ndarray, shape (x, x)
        Covariance of the error of the estimate.
    outputs : tuple of str
    q, v, u, y : ndarray
        The operating point, and the measurement there.
    eigenvalues : ndarray of complex, shape (x,)
        Eigenvalues of A - L C.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["q1", "q2"]).outputs
    ('q1', 'q2')
    """

    def rate(self, x: ArrayLike, y: ArrayLike, u: ArrayLike | None = None) -> Array:
        """The rate of the estimate.

        Parameters
        ----------
        x : array_like, shape (x,)
            The estimated deviation from the operating point.
        y : array_like, shape (ny,)
            Measurement; NaN for outputs that were not measured.
        u : array_like, shape (nu,), optional
            Forces of the actuators; default: those of the operating point.

        Returns
        -------
        dx : ndarray, shape (x,)
            Rates of the states [1/s].

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> observer = ld.kalman(arm, arm.home, Q=1.0, R=1e-4, outputs=["q1", "q2"])
        >>> observer.rate([0.0] * 4, observer.y).tolist()
        [0.0, 0.0, 0.0, 0.0]
        """
        x, u = self._state("x", x), self._held(u)
        return self.model.A @ x + self.model.B @ (u - self.u) + self.L @ self.innovation(y, x, u)


class KalmanFilter(Observer, SamplingFilter):
    """A steady-state filter in discrete time; returned by :func:`liedyn.dkalman`.

    Call `update` with each measurement and `predict` with the inputs of the following step, alternately;
    :class:`liedyn.OutputFeedback` does both.

    Attributes
    ----------
    model : DiscreteStateSpace
        The exact linear model of a step; the states x are ``model.states``.
    C, D : ndarray, shapes (ny, x) and (ny, nu)
        Output matrices of the measurement.
    M : ndarray, shape (x, ny)
        Gain of an update, x + M e.
    L : ndarray, shape (x, ny)
        A M, the gain from one prediction to the next.
    P : ndarray, shape (x, x)
        Covariance of the error of a prediction.
    outputs : tuple of str
    u, y : ndarray
        Inputs at the operating point, and the measurement there.
    x : ndarray, shape (x,)
        The estimate: deviation from the operating point, ``model.q`` and ``model.v``.
    q, v : ndarray
        The estimate as a state on the constraints.
    h : float
        Step [s].
    eigenvalues : ndarray of complex, shape (x,)
        Eigenvalues of A - L C.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> observer = ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"])
    >>> observer.update(observer.y + [1e-3, 0.0])
    >>> bool(0.0 < observer.x[0] < 1e-3)
    True
    """

    M: Array
    x: Array
    h: float

    def __init__(self, model: DiscreteStateSpace, C: Array, D: Array, measurement: Any, deviation: Any, u: Array,
                 M: Array, P: Array, tolerance: float) -> None:
        super().__init__(model, C, D, measurement, deviation, u, model.A @ M, P, tolerance)
        self.M, self.h = M, model.h
        self.reset()

    @property
    def q(self) -> Array:
        return self._estimate()[0]

    @property
    def v(self) -> Array:
        return self._estimate()[1]

    def reset(self, x: ArrayLike | None = None) -> None:
        """Start again.

        Parameters
        ----------
        x : array_like, shape (x,), optional
            The initial estimate; default: the operating point.

        Raises
        ------
        InputError
            The shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"]).reset()
        """
        self.x = np.zeros(len(self.C[0])) if x is None else self._state("x", x).copy()

    def _update(self, y, u):
        self.x = self.x + self.M @ self.innovation(y, self.x, u)

    def _predict(self, u):
        self.x = self.model.A @ self.x + self.model.B @ (u - self.u)

    def _estimate(self):
        return self._deviation.state_at(self.x)


def vector(name, x, size):
    """`size` finite numbers, or an InputError."""
    x = floats(name, x)
    if x.shape != (size,) or not np.isfinite(x).all():
        raise InputError(f"{name} must be {size} finite numbers, got shape {x.shape}")
    return x
