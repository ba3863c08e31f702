"""Steady-state Kalman filters at an operating point, in continuous and in discrete time."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.estimation.measurement import measured
from liedyn.control.estimation.observers import KalmanBucyFilter, KalmanFilter, Reading
from liedyn.control.estimation.process_noise import state_noise
from liedyn.control.regulation.kept_states import estimated
from liedyn.control.regulation.lqr import equilibrium, sampled_model
from liedyn.control.regulation.riccati import Riccati, Unsolved, solved, undamped
from liedyn.machine.arguments import positive
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames

FILTER = Unsolved("filter", "no output sees it", "no noise moves it",
                  "; name in states what is estimated, if this is not")


def kalman(robot: Robot, q: ArrayLike, Q: float | ArrayLike | dict[str, Any], R: float | ArrayLike | dict[str, Any],
           outputs: Sequence[str] | None = None, noise: Literal["inputs", "states"] | ArrayLike = "inputs",
           v: ArrayLike | None = None, u: ArrayLike | None = None, independent: IndependentNames = None,
           speeds: Sequence[str] | None = None, rank_tolerance: float = RANK_TOLERANCE,
           states: Sequence[str] | None = None) -> KalmanBucyFilter:
    """The steady-state Kalman-Bucy filter about an equilibrium: the estimate with the smallest covariance.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    Q : float, array_like, shape (ng,) or (ng, ng), or dict
        Intensity of the disturbances, positive semidefinite, in squares of their units times seconds; a dict gives a
        diagonal by name, with zeros for names that are missing.
    R : float, array_like, shape (ny,) or (ny, ny), or dict
        Intensity of the measurement noise, positive definite; a dict by name of an output.
    outputs : sequence of str, optional
        Measured outputs, named as in `linearize`; default: those that the robot declares.
    noise : {"inputs", "states"} or array_like, shape (x, ng)
        What the disturbances act on: forces of the actuators, rates of the states, or these through a matrix.
    v, u, independent, speeds, rank_tolerance
        As for `lqr`.
    states : sequence of str, optional
        What is estimated, as for `lqr` what is regulated; the others are left out, as is what no output sees. Outputs
        may not depend on what is left out, of which ``q`` and ``v`` of the filter have the values of the operating
        point. Default: all states.

    Returns
    -------
    KalmanBucyFilter

    Raises
    ------
    InputError
        A shape does not fit, a name is unknown, a covariance is not (semi)definite; the state is no equilibrium
        under u; or a motion that does not decay is not observable, or not excited by disturbances: the filter is not
        stable by the margin described in `lqr`.
    ControllabilityError
        No inputs hold the robot at rest there.
    ClosureError
        A loop is open at q.

    Notes
    -----
    With A, B, C and D of `linearize`, L = P C^T R^-1 and A P + P A^T - P C^T R^-1 C P + G Q G^T = 0 (Kalman and Bucy
    1961), solved by SciPy.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> observer = ld.kalman(loader, loader.home, Q=1e6, R=1e-6, outputs=["boom", "bucket"])
    >>> bool((observer.eigenvalues.real < 0.0).all())
    True
    """
    from scipy.linalg import solve_continuous_are

    measurement = measured(robot, outputs)
    deviation, now, u = equilibrium(robot, q, v, u, (independent, speeds), rank_tolerance, measurement.names)
    kept = estimated(now, states, len(deviation.y.names))
    now = kept.model(now)
    R, Q = weight("R", R, measurement.labels, True), state_noise(Q, noise, now.B, now.states, now.inputs)
    P = solved(solve_continuous_are, Riccati(now.A.T, now.C.T, Q, R), now.states, None, FILTER)
    L = np.linalg.solve(R, now.C @ P).T
    return KalmanBucyFilter(now, Reading(now, measurement, kept.deviation(deviation), u), L, P, kept.left_out)


def dkalman(robot: Robot, q: ArrayLike, h: float, Q: float | ArrayLike | dict[str, Any],
            R: float | ArrayLike | dict[str, Any], outputs: Sequence[str] | None = None,
            noise: Literal["inputs", "states"] | ArrayLike = "inputs", v: ArrayLike | None = None,
            u: ArrayLike | None = None, independent: IndependentNames = None, speeds: Sequence[str] | None = None,
            rank_tolerance: float = RANK_TOLERANCE, states: Sequence[str] | None = None) -> KalmanFilter:
    """The steady-state Kalman filter in discrete time, with inputs constant between samples.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    h : float
        Step, the time between samples [s].
    Q : float, array_like, shape (ng,) or (ng, ng), or dict
        Covariance of the disturbances, each constant during a step, positive semidefinite; white noise of intensity S
        has about S / h as an input, S h as a change of the states.
    R : float, array_like, shape (ny,) or (ny, ny), or dict
        Covariance of the measurement noise, positive definite.
    outputs, v, u, independent, speeds, rank_tolerance, states
        As for `kalman`.
    noise : {"inputs", "states"} or array_like, shape (x, ng)
        What the disturbances act on: forces of the actuators, states at the end of a step, or states through a matrix.

    Returns
    -------
    KalmanFilter

    Raises
    ------
    InputError
        As for `kalman`.
    ControllabilityError
        No inputs hold the robot at rest there.
    ClosureError
        A loop is open at q.

    Notes
    -----
    On the exact model of a step (`discretize`): P = A (P - M C P) A^T + G Q G^T with M = P C^T (C P C^T + R)^-1 (Kalman
    1960), solved by SciPy.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> observer = ld.dkalman(arm, arm.home, 0.01, Q=1.0, R=1e-4, outputs=["q1", "q2"])
    >>> bool((abs(observer.eigenvalues) < 1.0).all())
    True
    """
    from scipy.linalg import solve_discrete_are

    h = positive("h", h)
    measurement = measured(robot, outputs)
    deviation, now, u = equilibrium(robot, q, v, u, (independent, speeds), rank_tolerance, measurement.names)
    kept = estimated(now, states, len(deviation.y.names))
    model, now = kept.model(sampled_model(deviation, u, h)), kept.model(now)
    R, Q = weight("R", R, measurement.labels, True), state_noise(Q, noise, model.B, model.states, model.inputs)
    P = solved(solve_discrete_are, Riccati(model.A.T, now.C.T, Q, R), now.states, undamped(now.A, h), FILTER)
    M = np.linalg.solve(now.C @ P @ now.C.T + R, now.C @ P).T
    return KalmanFilter(model, Reading(now, measurement, kept.deviation(deviation), u), M, P, kept.left_out)
