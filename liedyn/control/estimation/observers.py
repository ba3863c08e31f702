"""Observers with constant gains at an operating point: the results of `kalman` and `dkalman`."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from liedyn.control.estimation.filters import SamplingFilter, Sensors, vector
from liedyn.control.regulation.kept_states import without
from liedyn.machine.arguments import flag
from liedyn.machine.python_control import forces, plain, python_control

if TYPE_CHECKING:
    from liedyn.motion.discretize import DiscreteStateSpace
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes


class Reading(NamedTuple):
    """What is measured about an operating point: the local state space `now`, whose C and D are those of the
    `measurement`, the `deviation` of states from there, and the inputs u."""

    now: Any
    measurement: Any
    deviation: Any
    u: Array


class Observer(Sensors):
    """Common base of both filters with constant gains."""

    model: Any
    C: Array
    D: Array
    L: Array
    P: Array
    u: Array
    outputs: tuple[str, ...]
    left_out: dict[str, str]
    y: Array
    eigenvalues: Complexes

    def __init__(self, model: Any, at: Reading, L: Array, P: Array, left_out: dict[str, str] | None = None) -> None:
        now, measurement, deviation, u = at
        self.left_out = {} if left_out is None else left_out
        self.model, self.C, self.D, self.L, self.P, self.u = model, now.C, now.D, L, P, u
        self.outputs = measurement.labels
        self._measurement, self._deviation = measurement, deviation
        self.y = measurement(deviation.robot, deviation.q, deviation.v, u)
        self.eigenvalues = np.sort_complex(np.linalg.eigvals(model.A - L @ self.C))

    @property
    def robot(self) -> Robot:
        return self._deviation.robot

    @property
    def _u(self):
        return self.u

    def __repr__(self) -> str:
        slowest = np.abs(self.eigenvalues).max() if hasattr(self.model, "h") else self.eigenvalues.real.max()
        return (f"{type(self).__name__}({len(self.outputs)} outputs, {len(self.C[0])} states, "
                f"slowest eigenvalue {slowest:.4g}{without(self.left_out)})")

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
        return self._innovation(self._measurement.reading(y), self._state("x", x), self._held(u))

    def _innovation(self, y, x, u):
        left = self._measurement.difference(y, self.y)
        return np.where(np.isnan(left), 0.0, left - (self.C @ x + self.D @ (u - self.u)))

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
    left_out : dict
        States of the robot that are not estimated, each with the reason.
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
    left_out : dict
        States of the robot that are not estimated, each with the reason.
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

    def __init__(self, model: DiscreteStateSpace, at: Reading, M: Array, P: Array,
                 left_out: dict[str, str] | None = None) -> None:
        super().__init__(model, at, model.A @ M, P, left_out)
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
        self.x = self.x + self.M @ self._innovation(y, self.x, u)

    def _predict(self, u):
        self.x = self.model.A @ self.x + self.model.B @ (u - self.u)

    def _estimate(self):
        return self._deviation.state_at(self.x)
