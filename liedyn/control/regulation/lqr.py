"""Linear quadratic regulators at an operating point: u = u_0 - K x, with x the deviation on the manifold."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.control.constrained.inverse_dynamics import inverse_dynamics
from liedyn.control.regulation.following import following
from liedyn.control.regulation.kept_states import regulated, without
from liedyn.control.regulation.riccati import Riccati, Unsolved, solved, undamped
from liedyn.linear.feedback import LinearFeedback, single_state
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import flag, floats, positive, require_robot
from liedyn.machine.errors import InputError
from liedyn.machine.python_control import forces, plain, python_control
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.motion.discretize import discretize
from liedyn.motion.local_coordinates import Centred, Deviation
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.motion.discretize import DiscreteStateSpace
    from liedyn.linear.state_space import LocalStateSpace
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes, IndependentNames

ACCELERATES = 1e-6
"""Acceleration at an operating point, relative to the largest rates due to inputs and states, that counts as zero."""
REGULATOR = Unsolved("regulator", "no actuator drives it", "Q gives it no weight",
                     "; name in states what is regulated, if this is not")


class Regulator(LinearFeedback, Centred):
    """A regulator u = u_0 - K x about an operating point; returned by :func:`liedyn.lqr` and :func:`liedyn.dlqr`.

    It is a function of (t, q, v) for the `u` of `simulate`; ``feedback`` adds its exact derivative, for
    `linearize`, `discretize` and implicit methods. With integral action it remembers the errors of earlier calls; a
    call at an earlier time forgets later ones. Its derivative is then that at constant integrals.

    Attributes
    ----------
    model : LocalStateSpace or DiscreteStateSpace
        The linear model of the design.
    states : tuple of str
        Names of the states x: ``model.states``, then ``integral:bucket`` of what is integrated.
    left_out : dict
        States of the robot that are not regulated, each with the reason.
    K : ndarray, shape (nu, x)
    P : ndarray, shape (x, x)
        Matrix of the cost-to-go, x^T P x.
    q, v, u : ndarray
        The operating point.
    eigenvalues : ndarray of complex, shape (x,)
        Eigenvalues of the closed loop A - B K.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> regulator = ld.lqr(arm, arm.home, Q=1.0, R=0.1)
    >>> regulator.model.states
    ('q1', 'q2', 'velocity:q1', 'velocity:q2')
    """

    model: LocalStateSpace | DiscreteStateSpace
    states: tuple[str, ...]
    left_out: dict[str, str]
    K: Array
    P: Array
    q: Array
    v: Array
    u: Array
    eigenvalues: Complexes

    def __init__(self, model: LocalStateSpace | DiscreteStateSpace, deviation: Any, u: Array, K: Array,
                 P: Array, left_out: dict[str, str] | None = None, following: Any = None) -> None:
        self.left_out = {} if left_out is None else left_out
        self._following = following
        self.model, self.K, self.P, self.u, self._deviation = model, K, P, u, deviation
        self._robot, self.q, self.v = deviation.robot, deviation.q, deviation.v
        self.states = model.states + (() if following is None else following.integrals)
        A, B = (model.A, model.B) if following is None else following.extended(model)
        self.eigenvalues = np.sort_complex(np.linalg.eigvals(A - B @ K))

    def __repr__(self) -> str:
        slowest = np.abs(self.eigenvalues).max() if hasattr(self.model, "h") else self.eigenvalues.real.max()
        return (f"Regulator({len(self.u)} inputs, {len(self.K[0])} states, slowest eigenvalue {slowest:.4g}"
                f"{'' if self._following is None else self._following.told()}{without(self.left_out)})")

    def to_control(self, absolute: bool = False, estimated: bool = True) -> Any:
        """The regulator for python-control, as a function of a filter's estimate or of the states themselves.

        Parameters
        ----------
        absolute : bool
            Outputs are forces of the actuators including u_0, instead of their deviations from u_0; and with
            `estimated` false inputs are measurements, instead of their deviations from the operating point.
        estimated : bool
            Inputs are called as the outputs of filters of :func:`liedyn.kalman`, ``estimate_`` and the name of a state;
            else as outputs of :func:`liedyn.to_control` and of linear models, which have to include the states.

        Returns
        -------
        control.StateSpace, or control.NonlinearIOSystem if absolute
            Its states are those of integral action. Inputs: the deviations x, or measurements; outputs: ``force_`` and
            the name of an actuator. References are left out.

        Raises
        ------
        LiedynError
            python-control is not installed.
        InputError
            Nothing measures a state, of a ball or free joint that is not regulated as a whole; `absolute` with integral
            action.

        Examples
        --------
        >>> import liedyn as ld, control
        >>> arm = ld.load("five_bar")
        >>> regulator = ld.lqr(arm, arm.home, Q=1.0, R=0.1)
        >>> regulator.to_control().output_labels
        ['force_q1', 'force_q2', 'force_q3', 'force_q4']
        >>> plant = ld.to_control(arm, outputs=regulator.model.states)
        >>> closed = control.interconnect([plant, regulator.to_control(absolute=True, estimated=False)], inputs=[],
        ...                               outputs=["q1"])
        >>> closed.nstates
        4
        """
        control, x, nu = python_control("to_control"), len(self.model.states), len(self.u)
        if self._following is not None:
            return self._following.to_control(control, self.model, self.K, flag("absolute", absolute),
                                              flag("estimated", estimated))
        known = {"inputs": plain(self.model.states, "estimate_" if flag("estimated", estimated) else ""),
                 "outputs": forces(self.model.inputs), "name": "regulator", "dt": getattr(self.model, "h", 0)}
        if flag("absolute", absolute):
            return control.nlsys(None, self._absolute if estimated else self._of_measurements(), **known)
        return control.ss(np.zeros((0, 0)), np.zeros((0, x)), np.zeros((nu, 0)), -self.K, **known)

    def reset(self) -> None:
        """Start again: integrals are zero.

        Examples
        --------
        >>> import liedyn as ld
        >>> loader = ld.load("loader")
        >>> ld.lqr(loader, loader.home, Q=100.0, R=1e-9, integrate=("bucket",)).reset()
        """
        if self._following is not None:
            self._following.integral.reset()

    def bounded(self, u: ArrayLike, applied: ArrayLike) -> None:
        """Say that bounds have cut the last value: integrals that push further beyond them take that sample back.

        `Sampled` and `OutputFeedback` say it by themselves.

        Parameters
        ----------
        u, applied : array_like, shape (nu,)
            What the regulator has said, and what acts.

        Raises
        ------
        InputError
            A shape does not fit.

        Examples
        --------
        >>> import liedyn as ld
        >>> loader = ld.load("loader")
        >>> regulator = ld.lqr(loader, loader.home, Q=100.0, R=1e-9, integrate=("bucket",))
        >>> regulator.bounded([2e5, 0.0], [1e5, 0.0])
        """
        u, applied = floats("u", u), floats("applied", applied)
        if u.shape != self.u.shape or applied.shape != self.u.shape:
            raise InputError(f"u and applied must have shape {self.u.shape}, got {u.shape} and {applied.shape}")
        if self._following is not None:
            self._following.hold_back(self.K, u, applied)

    def _inputs(self, t, q, v):
        u = super()._inputs(t, q, v)
        return u if self._following is None else u + self._following.pushed(t, q, v, self.K)

    def _about(self, t):
        if self._following is not None:
            return self._following.about(t, self._deviation, self.u, self.K)
        return self._deviation, self.u, self.K

    def _absolute(self, t, _, x, params):
        return self.u - self.K @ x

    def _of_measurements(self):
        # imported here, as filters need the equilibria of regulators
        from liedyn.control.estimation.measurement import Measurement

        measurement = Measurement(self._robot, self.model.states)
        expected = measurement(self._robot, self.q, self.v, self.u)
        return lambda t, _, y, params: self.u - self.K @ measurement.difference(np.asarray(y, dtype=float), expected)


def lqr(robot: Robot, q: ArrayLike, Q: float | ArrayLike | dict[str, Any], R: float | ArrayLike | dict[str, Any],
        v: ArrayLike | None = None, u: ArrayLike | None = None, N: ArrayLike | None = None,
        independent: IndependentNames = None, speeds: Sequence[str] | None = None,
        rank_tolerance: float = RANK_TOLERANCE, states: Sequence[str] | None = None,
        integrate: Sequence[str] | None = None, reference: Any = None) -> Regulator:
    """The regulator that minimises the integral of x^T Q x + 2 x^T N du + du^T R du about an equilibrium.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    Q : float, array_like, shape (x,) or (x, x), or dict
        Weight of the states, positive semidefinite; a dict gives a diagonal by name: ``{"boom": 100.0}``, with zeros
        for names that are missing. States are named as in `linearize`: ``"boom"``, ``"velocity:boom"``.
    R : float, array_like, shape (nu,) or (nu, nu), or dict
        Weight of the inputs, positive definite; a dict by name of an actuator.
    v : array_like, shape (nv,), optional
        Velocity of a steady motion [rad/s, m/s]; default: at rest.
    u : array_like, shape (nu,), optional
        Inputs at the equilibrium; default: the smallest ones that hold the robot there (`inverse_dynamics`).
    N : array_like, shape (x, nu), optional
        Weight of products of states and inputs.
    independent, speeds
        Coordinates of the states, as for `linearize`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    states : sequence of str, optional
        What is regulated, by names of the states; rates of coordinates go with them. The others are left out, as is
        what nothing drives (``regulator.left_out`` says which and why): where a robot has rolled to, how far its wheels
        have turned. They may not act on the states that are regulated, nor do they have weights. Default: all states.
    integrate : sequence of str, optional
        Outputs, named as in `linearize`, whose error is integrated: they reach their references whatever constant
        force, friction or payload the model does not know. Each adds a state, ``"integral:bucket"``, with a weight in Q
        and a row in N.
    reference : dict, or Trajectory or another object with t, q, v and u, optional
        What is followed instead of the operating point, with feedforward. A dict has, by output, a number, or a
        function of t that returns a number, or value, rate and acceleration: ``{"bucket": 0.2}``, ``{"boom": lambda t:
        (0.1 * t, 0.1, 0.0)}``. Of a motion q, v and the inputs u are followed.

    Returns
    -------
    Regulator

    Raises
    ------
    InputError
        A shape does not fit, a name is unknown, a weight is not (semi)definite; the state is no equilibrium under
        u (the message has the largest acceleration); a state that is left out acts on one of `states`; an output
        depends on inputs at once, or cannot be held elsewhere; a reference does not fit; or a motion
        cannot be stabilised: nothing drives it, or its weight is zero. The criterion is that an eigenvalue s of the
        closed loop is not stable by a margin: its real part must be below -1e-9 abs(s) and below -2e-13 times the norm
        of the closed loop, with scaled states. For `dlqr` s is log(z) / h.
    ControllabilityError
        No inputs hold the robot at rest there.
    ClosureError
        A loop is open at q.

    Notes
    -----
    The exact A and B of `linearize` are used: with closed loops, redundant rows, springs and contact modes at q. The
    Riccati equation is solved by SciPy. The feedforward of references x_r = N_0 r + N_1 r' + N_2 r'', u_r = u_0 + M_0 r
    + M_1 r' + M_2 r'' is that of the linear model, exact for polynomials of degree two (Francis 1977); if it is not
    unique, states without a reference change as little as possible. That of a motion is the motion's own inputs.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> regulator = ld.lqr(loader, loader.home, {"boom": 100.0, "bucket": 100.0}, 1e-9)
    >>> bool((regulator.eigenvalues.real < 0.0).all())
    True
    >>> tr = ld.simulate(loader, loader.home, [0.0] * 8, 0.1, u=regulator)
    """
    deviation, whole, u = equilibrium(robot, q, v, u, (independent, speeds), rank_tolerance)
    kept = regulated(whole, states, len(deviation.y.names))
    model, followed = kept.model(whole), following(deviation, kept, u, integrate, reference)
    kept.refuse("Q", Q)
    extended = _extended(model, followed)
    K, P = riccati(extended, *_weights(extended, Q, R, N))
    if followed is not None:
        followed.designed(model)
    return Regulator(model, kept.deviation(deviation), u, K, P, kept.left_out, followed)


def riccati(model, Q, R, N=None):
    """K and P of one continuous-time model, for weights as matrices."""
    from scipy.linalg import solve_continuous_are

    N = np.zeros(model.B.shape) if N is None else N
    P = solved(solve_continuous_are, Riccati(model.A, model.B, Q, R, N), model.states, None, REGULATOR)
    return np.linalg.solve(R, model.B.T @ P + N.T), P


def dlqr(robot: Robot, q: ArrayLike, h: float, Q: ArrayLike | dict[str, Any], R: ArrayLike | dict[str, Any],
         v: ArrayLike | None = None, u: ArrayLike | None = None, N: ArrayLike | None = None,
         independent: IndependentNames = None, speeds: Sequence[str] | None = None,
         rank_tolerance: float = RANK_TOLERANCE, states: Sequence[str] | None = None,
         integrate: Sequence[str] | None = None, reference: Any = None) -> Regulator:
    """The discrete-time regulator that minimises the sum of x^T Q x + 2 x^T N du + du^T R du, for piecewise constant
    inputs.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    h : float
        Step, the time between samples [s].
    Q, R, v, u, N, independent, speeds, rank_tolerance, states, integrate, reference
        As for `lqr`.

    Returns
    -------
    Regulator
        Its model is the exact one of a step (`discretize`); ``regulator(t, q, v)`` has to be held over h.

    Raises
    ------
    InputError
        As for `lqr`.
    ControllabilityError
        No inputs hold the robot at rest there.
    ClosureError
        A loop is open at q.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> regulator = ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1)
    >>> bool((abs(regulator.eigenvalues) < 1.0).all())
    True
    """
    from scipy.linalg import solve_discrete_are

    h = positive("h", h)
    deviation, now, u = equilibrium(robot, q, v, u, (independent, speeds), rank_tolerance)
    kept = regulated(now, states, len(deviation.y.names))
    model, now = kept.model(sampled_model(deviation, u, h)), kept.model(now)
    followed = following(deviation, kept, u, integrate, reference)
    kept.refuse("Q", Q)
    extended = _extended(model, followed)
    A, B, (Q, R, N) = extended.A, extended.B, _weights(extended, Q, R, N)
    still = undamped(_extended(now, followed).A, h)
    P = solved(solve_discrete_are, Riccati(A, B, Q, R, N), extended.states, still, REGULATOR)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A + N.T)
    if followed is not None:
        followed.designed(model)
    return Regulator(model, kept.deviation(deviation), u, K, P, kept.left_out, followed)


class _Extended(NamedTuple):
    """A and B of a model with integrals, and the names of states and inputs."""

    A: np.ndarray
    B: np.ndarray
    states: tuple
    inputs: tuple


def _extended(model, followed):
    if followed is None:
        return model
    return _Extended(*followed.extended(model), model.states + followed.integrals, model.inputs)


def equilibrium(robot, q, v, u, chosen, tolerance, outputs=None):
    """The deviation from a state, the linear model, and inputs: those given, or the smallest that hold the robot.

    `chosen` are the independent coordinates and velocities, as for `linearize`.

    Raises InputError if the robot accelerates under these inputs.
    """
    require_robot(robot)
    q, v = single_state("a regulator or filter is for one state, gain_schedule for many", robot, q,
                        np.zeros(robot.nv) if v is None else v)
    deviation = Deviation(robot, q, v, *chosen, tolerance)
    if u is None:
        u = inverse_dynamics(robot, q, v, np.zeros(len(deviation.w.names)), independent=deviation.w).u
    else:
        u = floats("u", u)
        if u.shape != (len(robot.actuator_names),) or not np.isfinite(u).all():
            raise InputError(f"u must be {len(robot.actuator_names)} finite numbers, one for each of "
                             f"{', '.join(robot.actuator_names)}")
    model = linearize(robot, q, v, u=u, independent=deviation.y, speeds=deviation.w, outputs=outputs,
                      rank_tolerance=tolerance)
    require_steady(model, len(deviation.y.names))
    return deviation, model, u.copy()


def sampled_model(deviation, u, h):
    """The exact linear model of a step h from the state of a `Deviation`, in its coordinates."""
    d = deviation
    return discretize(d.robot, d.q, d.v, None, h, u=u, independent=d.y, speeds=d.w, rank_tolerance=d.tolerance)


def require_steady(model, p_y):
    """InputError if the robot accelerates at the operating point."""
    accelerations = np.abs(model.f0[p_y:])
    scale = max(1.0, np.abs(model.A).max(initial=0.0))
    if accelerations.size and accelerations.max() > ACCELERATES * scale:
        k = int(accelerations.argmax())
        raise InputError(f"no equilibrium under u: {model.states[p_y + k]} changes by {model.f0[p_y + k]:.3g} /s^2; "
                         "leave u out for the inputs that hold the robot")


def _weights(model, Q, R, N):
    x, nu = model.B.shape
    N = np.zeros((x, nu)) if N is None else floats("N", N)
    if N.shape != (x, nu) or not np.isfinite(N).all():
        raise InputError(f"N must be finite and have shape {(x, nu)}, got {N.shape}")
    return weight("Q", Q, model.states, False), weight("R", R, model.inputs, True), N
