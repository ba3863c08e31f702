"""The extended Kalman filter on the manifold of a mechanism.

The estimate is a state (q, v) on the constraints, its error the deviation x = (y, w) in independent coordinates, and P
the covariance of x. A prediction is one step of the integrator of `discretize`, with the step's own derivatives A and
B; the tangent space of x moves with the estimate:

    P = A P A^T + G Q G^T

An update, with e the difference of the measurement and its prediction on their group, moves the state by dx along the
manifold and transforms P to the new tangent space, J the right Jacobian of dx joint by joint (Sola et al. 2018, eq.
79):

    K = P C^T (C P C^T + R)^-1        dx = K e        P = J [(1 - K C) P (1 - K C)^T + K R K^T] J^T
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.estimation.measurement import measured
from liedyn.control.estimation.filters import SamplingFilter
from liedyn.control.estimation.process_noise import state_noise
from liedyn.linear.feedback import single_state
from liedyn.control.regulation.kept_states import KeptStates, followed, without
from liedyn.control.regulation.lqr import sampled_model
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import non_negative, number, positive, require_robot, whole
from liedyn.machine.errors import ClosureError
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.motion.local_coordinates import Centred, Deviation, at_time
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames

POOR = 10.0
"""Condition number of the coordinates above which others are considered: if a coordinate hardly moves, the motion is no
longer a linear function of it, long before digits are lost."""
BETTER = 0.3
"""Largest ratio of the condition number of other coordinates to the present one for a change."""


class ExtendedKalmanFilter(SamplingFilter, Centred):
    """An extended Kalman filter whose estimates satisfy the constraints; ball and free joints are supported.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Initial estimate [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (nv,)
        Its velocity [rad/s, m/s], which satisfies the constraints.
    h : float
        Step, the time between samples [s].
    P : float, array_like, shape (x,) or (x, x), or dict
        Covariance of the initial error, positive semidefinite; a dict gives a diagonal by name of a state.
    Q : float, array_like, shape (ng,) or (ng, ng), or dict
        Covariance of the disturbances, each constant during a step, positive semidefinite.
    R : float, array_like, shape (ny,) or (ny, ny), or dict
        Covariance of the measurement noise, positive definite; a dict by name of an output.
    outputs : sequence of str, optional
        Measured outputs, named as in `linearize`; default: those that the robot declares.
    noise : {"inputs", "states"} or array_like, shape (x, ng)
        What the disturbances act on: forces of the actuators, states at the end of a step, or states through a matrix.
    independent, speeds
        Coordinates of the states, as for `linearize`. If none are named, other coordinates are chosen as soon as the
        present ones become poorly conditioned, and P and Q are transformed.
    steps : int
        Number of integrator steps in a prediction.
    t : float, optional
        Initial time [s], by default the robot's.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    states : sequence of str, optional
        What is estimated, as for `kalman`; rates go with their coordinates. The others are left out of P: they are
        predicted, and not updated. On the way they may act on nothing that is estimated or measured. Default: all
        states; if some are named, independent coordinates do not change on the way.

    Attributes
    ----------
    q, v : ndarray
        The estimate.
    P : ndarray, shape (x, x)
        Covariance of its error, in the coordinates ``states``.
    states, outputs : tuple of str
    left_out : dict
        Why states are left out, by name.
    t : float
        [s]
    e, S : ndarray, shapes (k,) and (k, k)
        Innovation of the last update and its covariance, for the outputs that were measured.

    Raises
    ------
    InputError
        A shape does not fit, a name is unknown, a covariance is not (semi)definite, no step can be linearized in these
        coordinates (`discretize`), or a state that is left out acts on one that is not, in a later step too.
    ClosureError
        A loop is open at q.

    Notes
    -----
    A prediction is a step of `discretize`: fourth order, on the manifold at each stage. With sliding friction a step
    has no derivative, and a prediction raises the error of `discretize`.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ekf = ld.ExtendedKalmanFilter(arm, arm.home, [0.0] * 4, h=0.01, P=1e-4, Q=1e-2, R=1e-6, outputs=["q1", "q4"])
    >>> ekf.predict([0.0] * 4)
    >>> ekf.update(ekf.measure() + [1e-3, 0.0])
    >>> bool(abs(ld.closure_error(arm, ekf.q)).max() < 1e-12)
    True
    """

    P: Array
    outputs: tuple[str, ...]
    e: Array
    S: Array
    robot: Robot
    h: float
    steps: int
    R: Array

    def __init__(self, robot: Robot, q: ArrayLike, v: ArrayLike, h: float, P: float | ArrayLike | dict[str, Any],
                 Q: float | ArrayLike | dict[str, Any], R: float | ArrayLike | dict[str, Any],
                 outputs: Sequence[str] | None = None, noise: Literal["inputs", "states"] | ArrayLike = "inputs",
                 independent: IndependentNames = None, speeds: Sequence[str] | None = None, steps: int = 1,
                 t: float | None = None, rank_tolerance: float = RANK_TOLERANCE,
                 states: Sequence[str] | None = None) -> None:
        require_robot(robot)
        self.robot, self.h, self.steps = robot, positive("h", h), whole("steps", steps, 1)
        self._tolerance = non_negative("rank_tolerance", rank_tolerance)
        self._measurement = measured(robot, outputs)
        self.outputs = self._measurement.labels
        q, v = single_state("a filter takes one state at a time", robot, q, v)
        self._chooses = states is None and speeds is None and (independent is None and not robot.independent
                                            or isinstance(independent, str) and independent == "auto")
        t = robot.t if t is None else number("t", t)
        d = Deviation(at_time(robot, t), q, v, independent, speeds, rank_tolerance)
        self._kept = KeptStates(())
        if states is not None:
            self._kept = followed(self._model(d, np.zeros(len(robot.actuator_names))), states, len(d.y.names))
        self._deviation = self._kept.deviation(d)
        inputs, self._by_inputs = robot.actuator_names, isinstance(noise, str) and noise == "inputs"
        self.R = weight("R", R, self.outputs, True)
        self._kept.refuse("P", P)
        P = weight("P", P, self.states, False)
        if self._by_inputs:
            self._Q = weight("Q", Q, inputs, False)
        else:
            self._Q = state_noise(Q, noise, None, self.states, inputs)
        self._start = self._deviation, P, self._Q, t
        self.reset()

    @property
    def states(self) -> tuple[str, ...]:
        return self._kept.states or self._deviation.y.names + self._deviation.w.rates

    @property
    def left_out(self) -> dict[str, str]:
        return dict(self._kept.left_out)

    @property
    def t(self) -> float:
        return self._begin + self._count * self.h

    def __repr__(self) -> str:
        return (f"ExtendedKalmanFilter({self.robot.name!r}, {len(self.states)} states, {len(self.outputs)} outputs, "
                f"t={self.t:g}{without(self.left_out)})")

    def reset(self) -> None:
        self._deviation, self.P, self._Q, self._begin = self._start
        self._count, self._u = 0, np.zeros(len(self.robot.actuator_names))
        self.e, self.S = np.zeros(0), np.zeros((0, 0))

    def _predict(self, u):
        d, A, B = self._carried(self._deviation, u, self.t)
        P = A @ self.P @ A.T + (B @ self._Q @ B.T if self._by_inputs else self._Q)
        self._deviation, self.P, self._u = d, 0.5 * (P + P.T), u
        self._count += 1

    def _update(self, y, u):
        d = self._deviation
        model = self._model(d, u)
        e = self._measurement.difference(y, self._measurement(d.robot, d.q, d.v, u))
        seen = ~np.isnan(e)
        C, R = self._kept.acting(model.C, self.outputs)[seen], self.R[np.ix_(seen, seen)]
        self.e, self.S = e[seen], C @ self.P @ C.T + R
        K = np.linalg.solve(self.S, C @ self.P).T
        dx = K @ self.e
        try:
            self._deviation = self._displaced(d, dx, self.t)
        except ClosureError as error:
            error.args = (f"the update moves the estimate by {np.abs(dx).max():.3g}, to where the loops do not close",)
            raise
        left = np.eye(len(dx)) - K @ C
        P = left @ self.P @ left.T + K @ R @ K.T
        J = self._turned(d, self._deviation)
        P = J @ P @ J.T
        self.P = 0.5 * (P + P.T)
        if self._chooses and model.condition > POOR:
            self._choose_again(u)

    def _carried(self, d: Any, u: ArrayLike, t: float) -> tuple[Any, Array, Array]:
        """The `Deviation` about the state one prediction after that of `d`, and A and B of this step."""
        h, A, B = self.h / self.steps, np.eye(len(self.P)), np.zeros((len(self.P), len(u)))
        for k in range(self.steps):
            now = sampled_model(d, u, h)
            step = self._block(now.A)
            A, B = step @ A, step @ B + self._rows(now.B)
            d = self._moved(d, now.q_next, now.v_next, t + (k + 1) * h)
        return d, A, B

    def _displaced(self, d: Any, dx: Array, t: float) -> Any:
        """The `Deviation` about the state displaced by dx from that of `d`; ClosureError if there is none."""
        return self._moved(d, *d.state_at(dx), t)

    def _moved(self, d, q, v, t):
        """The same coordinates about another state, at time t."""
        return self._kept.deviation(Deviation(at_time(self.robot, t), q, v, d.y, d.w, self._tolerance))

    def _model(self, d, u):
        """The linear model of all states at d, with what is measured as its outputs."""
        return linearize(d.robot, d.q, d.v, u=u, independent=d.y, speeds=d.w, outputs=self._measurement.names,
                         rank_tolerance=self._tolerance)

    def _turned(self, before, after):
        """`turned` of the states that are estimated."""
        return self._block(turned(before, after))

    def _block(self, M):
        """The part of M (x, x) of the states that are estimated; InputError if another one acts on them."""
        return self._kept.acting(self._rows(M), self.states)

    def _rows(self, M):
        return M if self._kept.index is None else M[self._kept.index]

    def _choose_again(self, u):
        """Changes to other coordinates if these are much better conditioned."""
        d = self._deviation
        other = Deviation(d.robot, d.q, d.v, "auto", None, self._tolerance)
        old, new = (linearize(d.robot, d.q, d.v, u=u, independent=each.y, speeds=each.w, outputs=other.y.names
                              + other.w.rates, rank_tolerance=self._tolerance) for each in (d, other))
        if new.condition < BETTER * old.condition:
            T = old.C  # derivatives of the new states by the old ones
            self._deviation, self.P = other, T @ self.P @ T.T
            if not self._by_inputs:
                self._Q = T @ self._Q @ T.T


def turned(before, after):
    """J (x, x): maps errors about the state before an update to errors about the state after it."""
    J, p = np.eye(len(before.y.names) + len(before.w.names)), len(before.y.names)
    tree = np.flatnonzero(before.y.virtual < 0)
    rows = before.y.rows[tree]
    back = Deviation.derivative(before, after.q, after.v)[0][:p][tree] @ rows.T
    J[np.ix_(tree, tree)] = np.linalg.inv(back)
    return J
