"""Controllers of python-control as inputs of `simulate`: their states are advanced beside those of the mechanism."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.estimation.filters import vector
from liedyn.control.estimation.measurement import measured
from liedyn.linear.feedback import Feedback
from liedyn.machine.arguments import names as names_of, positive, require_robot, whole
from liedyn.machine.errors import InputError, said, shown, suggestion
from liedyn.machine.python_control import python_control
from liedyn.model.travel import Travelling
from liedyn.motion.local_coordinates import at_time
from liedyn.motion.runge_kutta import RK4, Vectors, step
from liedyn.motion.simulation.sampled import Sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


class SystemFeedback(Feedback, Travelling):
    """A controller with its own states; returned by :func:`liedyn.from_control`, and run by its ``sampled``.

    Each call is a sample, and advances the states to the next one. It raises InputError if the system or the reference
    fails, or a result of them does not fit.

    Attributes
    ----------
    sampled : Sampled
        For the `u` of `simulate`.
    system : control.StateSpace or control.NonlinearIOSystem
    x : ndarray, shape (nx,)
        States of the controller.
    outputs : tuple of str
        Measured outputs.

    Examples
    --------
    >>> import liedyn as ld, control
    >>> arm = ld.load("five_bar")
    >>> damper = control.ss([], [], [], [[-1.0]])
    >>> ld.from_control(damper, arm, ["velocity:q1"], actuators=["q1"], period=0.01)
    SystemFeedback(1 readings, 0 states, 1 actuators, every 0.01 s)
    """

    sampled: Sampled
    system: Any
    x: Array
    outputs: tuple[str, ...]

    def __init__(self, system: Any, measurement: Any, places: Any, sampling: Any, advance: Any, reference: Any,
                 start: Any) -> None:
        (period, *bounds), self._advance, self._reference, (self._u, self._start) = sampling, advance, reference, start
        self.system, self.outputs = system, measurement.labels
        self._robot, self._measurement, self._places, self._period = measurement.robot, measurement, places, period
        self.sampled = Sampled(self, period, *bounds, self._u)
        self.reset()

    def __repr__(self) -> str:
        return (f"SystemFeedback({len(self.outputs)} readings, {len(self.x)} states, {len(self._places)} actuators, "
                f"every {self._period:g} s)")

    def reset(self) -> None:
        """Start again from the initial states of the controller.

        Examples
        --------
        >>> import liedyn as ld, control
        >>> arm = ld.load("five_bar")
        >>> integrator = control.ss([[0.0]], [[1.0]], [[2.0]], [[0.0]])
        >>> feedback = ld.from_control(integrator, arm, ["q1"], actuators=["q1"], period=0.01)
        >>> u = feedback(0.0, arm.home, [0.0] * 4)
        >>> feedback.reset()
        >>> feedback.x.tolist()
        [0.0]
        """
        self.x, self._held, self._coming = self._start.copy(), self._u, []

    def _inputs(self, t, q, v):
        """Inputs at a sample; the states are advanced to the next one."""
        for arrival, coming in self._coming:  # forces that act just before the sample
            if arrival < t - 1e-6 * self._period:
                self._held = coming
        self._coming = [each for each in self._coming if each[0] >= t - 1e-6 * self._period]
        e = self._measurement(at_time(self._robot, t), q, v, self._held)
        if self._reference is not None:
            e = self._measurement.difference(_said("reference", self._reference, len(e), t), e)
        try:
            said_now, x = self.system.output(t, self.x, e), self._advance(t, self.x, e)
        except Exception as error:
            raise InputError(f"from_control, the system fails with {said(error)} at t = {t:g}") from error
        u = self._u.copy()
        u[self._places] += vector("the system's output", np.atleast_1d(said_now), len(self._places), t)
        self.x = vector("the system's state", np.atleast_1d(x), len(self.x), t)
        u = np.clip(u, self.sampled.lower, self.sampled.upper)
        self._coming.append((t + self.sampled.delay, u))
        return u.copy()


def from_control(system: Any, robot: Robot, outputs: Sequence[str] | None = None,
                 reference: ArrayLike | Callable[..., Any] | None = None, actuators: Sequence[str] | None = None,
                 u: ArrayLike | None = None, period: float | None = None, steps: int = 1, x: ArrayLike | None = None,
                 delay: float = 0.0, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf) -> SystemFeedback:
    """A controller of python-control, for ``simulate(u=feedback.sampled)``.

    Parameters
    ----------
    system : control.StateSpace, control.TransferFunction or control.NonlinearIOSystem
        The controller, in continuous or discrete time.
    robot : Robot
    outputs : sequence of str, optional
        Measured outputs, in the order of the controller's inputs, named as in `linearize`; default: those that the
        robot declares.
    reference : array_like, shape (ny,), or callable, optional
        Wanted measurement, or a function of t that returns it: the input of the system is reference minus
        measurement. Default: its input is the measurement.
    actuators : sequence of str, optional
        Driven actuators, in the order of the system's outputs; default: all actuators.
    u : array_like, shape (nu,), optional
        Forces of all actuators that are added to the system's outputs; default: zero.
    period : float, optional
        Sampling period [s], a multiple of the `dt` of `simulate`; default: that of a discrete-time system.
    steps : int
        Number of Runge-Kutta steps in a period, for a nonlinear system in continuous time.
    x : array_like, shape (nx,), optional
        Initial states of the controller; default: zero.
    delay, lower, upper
        As for `Sampled`.

    Returns
    -------
    SystemFeedback

    Raises
    ------
    LiedynError
        python-control is not installed.
    InputError
        The system is of another kind, a name is unknown, or numbers do not fit.

    Notes
    -----
    A continuous-time system is sampled: its measurements are constant over a period, in which a linear one is advanced
    by the exponential, a nonlinear one by the classical Runge-Kutta method. With a period as short as `dt`, it is a
    continuous controller to first order in `dt`.

    Examples
    --------
    >>> import liedyn as ld, control
    >>> arm = ld.load("five_bar")
    >>> hold = ld.inverse_dynamics(arm, arm.home, [0.0] * 4, [0.0, 0.0]).u
    >>> s = control.tf("s")
    >>> lead = 200.0 * (1 + 0.2 * s) / (1 + 0.01 * s)
    >>> feedback = ld.from_control(lead, arm, ["q1"], arm.home[:1], actuators=["q1"], u=hold, period=1e-3)
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.1, u=feedback.sampled)
    """
    control = python_control("from_control")
    require_robot(robot)
    if isinstance(system, control.TransferFunction):
        system = control.ss(system)
    if not isinstance(system, control.StateSpace | control.NonlinearIOSystem):
        raise InputError(f"system: expected a StateSpace, TransferFunction or NonlinearIOSystem, got {shown(system)}")
    measurement = measured(robot, outputs)
    known = robot.actuator_names
    names = known if actuators is None else names_of("actuators", actuators)
    for name in names:
        if name not in known or names.count(name) > 1:
            raise InputError(f"actuators: unknown or named twice: {shown(name)}, {suggestion(shown(name), known)}")
    for what, count, wanted in (("inputs", system.ninputs, measurement.labels), ("outputs", system.noutputs, names)):
        if count != len(wanted):
            raise InputError(f"the system has {count} {what}, which stand for {', '.join(wanted) or 'nothing'}")
    if system.isdtime(strict=True) and system.dt is not True:
        if period is not None and abs(period - system.dt) > 1e-9 * system.dt:
            raise InputError(f"period: the system samples every {system.dt:g} s, got {period:g}")
        period = system.dt
    if period is None:
        raise InputError("period: give the time between samples, which the system does not say")
    period, steps = positive("period", period), whole("steps", steps, 1)
    u = np.zeros(len(known)) if u is None else vector("u", u, len(known))
    x = np.zeros(system.nstates) if x is None else vector("x", x, system.nstates)
    if reference is not None and not callable(reference):
        reference = vector("reference", reference, len(measurement.labels))
    return SystemFeedback(system, measurement, [known.index(name) for name in names], (period, delay, lower, upper),
                          _advance(control, system, period, steps), reference, (u, x))


def _advance(control, system, period, steps):
    """The function (t, x, e) that returns the states a period later."""
    if system.isdtime(strict=True):
        return system.dynamics
    if isinstance(system, control.StateSpace):
        from scipy.linalg import expm

        nx, both = system.nstates, np.zeros((system.nstates + system.ninputs,) * 2)
        both[:nx] = np.hstack([system.A, system.B])
        return functools.partial(_linear, expm(period * both)[:nx])
    return functools.partial(_runge_kutta, system.dynamics, period / steps, steps)


def _linear(step, t, x, e):
    return step @ np.concatenate([x, e])


def _runge_kutta(dynamics, h, steps, t, x, e):
    for k in range(steps):
        def rates(part, change, _, now=t + k * h, x=x):
            return dynamics(now + part * h, x + change, e), None

        x = x + step(Vectors(np.zeros_like(x)), rates, RK4, h)[0]
    return x


def _said(name, value, size, t):
    """The reference at time t."""
    if not callable(value):
        return value
    try:
        value = value(t)
    except Exception as error:
        raise InputError(f"{name} fails with {said(error)} at t = {t:g}") from error
    return vector(name, value, size, t)
