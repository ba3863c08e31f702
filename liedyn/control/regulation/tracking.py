"""Time-varying linear-quadratic regulators along a motion: u = u_0(t) - K(t) x, x the deviation from the motion at t.

The Riccati equation -dP/dt = P A + A^T P - P B R^-1 B^T P + Q is integrated backward from P(end) = Q_f with the exact A
and B at the samples of the motion. In each interval A and B are means of the values at its ends, and the step is the
exponential of the Hamiltonian system, for any stiffness: of second order in the interval (Kwakernaak and Sivan 1972,
3.3).
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.inverse_dynamics import inverse_dynamics
from liedyn.control.regulation.kept_states import regulated, without
from liedyn.control.regulation.motion_reference import SampledMotion
from liedyn.linear.feedback import LinearFeedback
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.calls.boundary import states as states_of
from liedyn.motion.local_coordinates import Deviation
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames


class TrackingRegulator(LinearFeedback):
    """A regulator along a motion; returned by :func:`liedyn.tvlqr`.

    It is a function of (t, q, v) for the `u` of `simulate`. Between samples K and u_0 are interpolated linearly, the
    motion by cubics from configurations and velocities; before the first and after the last sample they are constant.

    Attributes
    ----------
    t : ndarray, shape (count,)
        Times of the samples [s].
    q, v, u : ndarray, shapes (count, nq), (count, nv), (count, nu)
        The motion and its inputs.
    K : ndarray, shape (count, nu, x)
    P : ndarray, shape (count, x, x)
        Matrix of the cost-to-go, x^T P x.
    states : tuple of str
        What is regulated.
    left_out : dict
        States of the robot that are not regulated, each with the reason.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.01, dt=1e-3)
    >>> ld.tvlqr(arm, tr.t, tr.q, tr.v, Q=10.0, R=0.1, u=0.0 * tr.v)
    TrackingRegulator(11 samples, 0 to 0.01 s, 4 inputs)
    """

    t: Array
    q: Array
    v: Array
    u: Array
    K: Array
    P: Array
    states: tuple[str, ...]
    left_out: dict[str, str]

    def __init__(self, t: Array, u: Array, K: Array, P: Array, deviations: Any, kept: Any) -> None:
        self.t, self.u, self.K, self.P, self._deviations = t, u, K, P, deviations
        self.states, self.left_out = kept.states, kept.left_out
        self._robot = deviations[0].robot
        self.q, self.v = np.array([each.q for each in deviations]), np.array([each.v for each in deviations])
        self._motion = SampledMotion(self._robot, t, self.q, self.v, u)

    def __repr__(self) -> str:
        return (f"TrackingRegulator({len(self.t)} samples, {self.t[0]:g} to {self.t[-1]:g} s, {self.K.shape[1]} inputs"
                f"{without(self.left_out)})")

    def reference(self, t: float) -> tuple[Array, Array, Array]:
        """The motion and its inputs at time t.

        Parameters
        ----------
        t : float
            Time [s].

        Returns
        -------
        q, v, u : ndarray

        Raises
        ------
        InputError
            The time is not a number.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.01, dt=1e-3)
        >>> regulator = ld.tvlqr(arm, tr.t, tr.q, tr.v, Q=10.0, R=0.1, u=0.0 * tr.v)
        >>> [x.shape for x in regulator.reference(0.0035)]
        [(4,), (4,), (4,)]
        """
        return self._motion(t)

    def gain(self, t: float) -> Array:
        """K at time t.

        Parameters
        ----------
        t : float
            Time [s].

        Returns
        -------
        K : ndarray, shape (nu, x)

        Raises
        ------
        InputError
            The time is not a number.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.01, dt=1e-3)
        >>> regulator = ld.tvlqr(arm, tr.t, tr.q, tr.v, Q=10.0, R=0.1, u=0.0 * tr.v)
        >>> regulator.gain(0.0035).shape
        (4, 4)
        """
        k, s, _ = self._motion.place(t)
        return (1.0 - s) * self.K[k] + s * self.K[k + 1]

    def _about(self, t):
        q, v, u = self.reference(t)
        return self._deviations[0].at(q, v), u, self.gain(t)


def tvlqr(robot: Robot, t: ArrayLike, q: ArrayLike, v: ArrayLike, Q: ArrayLike | dict[str, Any],
          R: ArrayLike | dict[str, Any], a: ArrayLike | None = None, u: ArrayLike | None = None,
          final: float | ArrayLike | dict[str, Any] | None = None, independent: IndependentNames = None,
          speeds: Sequence[str] | None = None, rank_tolerance: float = RANK_TOLERANCE,
          states: Sequence[str] | None = None) -> TrackingRegulator:
    """The regulator that stabilises a motion: it minimises the integral of x^T Q x + du^T R du along the motion.

    Parameters
    ----------
    robot : Robot
    t : array_like, shape (count,)
        Times of the samples, increasing [s].
    q, v : array_like, shapes (count, nq), (count, nv)
        The motion [rad, m; rad/s, m/s], loops closed; for a `Trajectory` ``tr.t, tr.q, tr.v``.
    Q, R
        Weights, as for `lqr`.
    a : array_like, shape (count, nv), optional
        Accelerations of the motion [rad/s^2, m/s^2], from which `inverse_dynamics` computes the inputs.
    u : array_like, shape (count, nu), optional
        Inputs along the motion; give u or a.
    final : float, array_like or dict, optional
        Weight of the state at the end, as Q; default: Q.
    independent, speeds
        Coordinates of the states, as for `linearize`; "auto" chooses them at the first sample.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    states : sequence of str, optional
        What is regulated, as for `lqr`; the others are left out along the whole motion.

    Returns
    -------
    TrackingRegulator

    Raises
    ------
    InputError
        A shape does not fit, times do not increase, a name is unknown, a weight is not (semi)definite, or neither or
        both of a and u are given.
    ControllabilityError
        No inputs give the accelerations a.
    ClosureError
        A loop is open at a sample.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.2, dt=1e-3)
    >>> regulator = ld.tvlqr(arm, tr.t, tr.q, tr.v, Q=10.0, R=0.1, u=0.0 * tr.v)
    >>> regulator.K.shape
    (201, 4, 4)
    """
    from scipy.linalg import expm

    require_robot(robot)
    lead, q, v = states_of(robot, q=q, v=v)
    t = floats("t", t)
    if len(lead) != 1 or t.shape != lead or len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise InputError(f"a motion has times t that increase and a row of q and v for each, at least two; got t of "
                         f"shape {t.shape}, q of {lead + q.shape[1:]}")
    first = Deviation(robot, q[0], v[0], independent, speeds, rank_tolerance)
    deviations = [first, *(first.at(*each) for each in zip(q[1:], v[1:]))]
    if (a is None) == (u is None):
        raise InputError("give a, the accelerations of the motion, or u, its inputs")
    if u is None:
        u = _inputs(robot, q, v, floats("a", a), first.w)
    u = floats("u", u)
    if u.shape != (len(t), len(robot.actuator_names)) or not np.isfinite(u).all():
        raise InputError(f"u must be finite and have shape {(len(t), len(robot.actuator_names))}, got {u.shape}")
    models = linearize(robot, q, v, u=u, independent=first.y, speeds=first.w, rank_tolerance=rank_tolerance)
    kept = regulated(models, states, len(first.y.names))
    models = kept.model(models)
    kept.refuse("Q", Q)
    Q, R = weight("Q", Q, models.states, False), weight("R", R, models.inputs, True)
    P = np.empty_like(models.A)
    P[-1] = Q if final is None else weight("final", final, models.states, False)
    x = P.shape[-1]
    for k in range(len(t) - 2, -1, -1):
        A, B = (0.5 * (M[k] + M[k + 1]) for M in (models.A, models.B))
        S = B @ np.linalg.solve(R, B.T)
        # backward in time
        step = expm((t[k + 1] - t[k]) * np.block([[-A, S], [Q, A.T]]))
        X, Y = step[:x, :x] + step[:x, x:] @ P[k + 1], step[x:, :x] + step[x:, x:] @ P[k + 1]
        P[k] = np.linalg.solve(X.T, Y.T).T
        P[k] = 0.5 * (P[k] + P[k].T)
    K = np.linalg.solve(R, np.swapaxes(models.B, -1, -2) @ P)
    return TrackingRegulator(t.copy(), u.copy(), K, P, [kept.deviation(each) for each in deviations], kept)


def _inputs(robot, q, v, a, w):
    """Inputs that give these accelerations of all coordinates."""
    if a.shape != v.shape:
        raise InputError(f"a must have shape {v.shape}, got {a.shape}")
    if (w.virtual >= 0).any():
        raise InputError("from accelerations inputs are found for coordinates of the tree only: give u")
    return inverse_dynamics(robot, q, v, a @ w.rows.T, independent=w).u
