"""What all filters check, say and document once: measurements at a state, and the calls of those in discrete time."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


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


def vector(name, x, size, t=None):
    """`size` finite numbers, or an InputError; at time t of a call."""
    x = floats(name, x)
    if x.shape != (size,) or not np.isfinite(x).all():
        raise InputError(f"{name} must be {size} finite numbers, got {shown(x.tolist())}"
                         + ("" if t is None else f" at t = {t:g}"))
    return x
