"""Feedback: inputs as functions of (t, q, v), what controllers of liedyn have in common, and derivatives of both.

With its derivative feedback is a pair (f, df). f gives the inputs, shape (n,): generalised forces, or forces of the
actuators. df gives (by_q, by_v), each of shape (n, nv): their derivatives by a displacement in the tangent space at q
(perturbed on the right) and by v.

A controller has `_inputs(t, q, v)`, its law for a checked state of `_robot`; `Feedback` makes it callable. A regulator
says at each time from which state it takes the deviation x, and with which gain: `LinearFeedback` makes the law of
that, and its exact derivative.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, number, positive
from liedyn.machine.errors import InputError, said, shown
from liedyn.mechanics.constraints.checking import central_difference, relative_deviation
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


def single_state(who, robot, q, v):
    """A checked state (q, v); `who` says in the message who takes one only.

    Raises InputError if there are several, a shape does not fit, an entry is not finite, or a quaternion is not of unit
    length.
    """
    lead, q, v = states(robot, q=q, v=v)
    if len(q) != 1:
        raise InputError(f"{who}, got leading axes {lead}")
    return q[0], v[0]


class Feedback:
    """Base class of controllers: functions of (t, q, v), for `tau` or `u` of `simulate` or for `Sampled`."""

    _role = "a controller"
    """What errors call it."""

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Inputs of the actuators; of a `PIDC` or `HybridController` the generalised forces tau, shape (nv,).

        Parameters
        ----------
        t : float
            Time [s].
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s].

        Returns
        -------
        u : ndarray, shape (nu,)
            Forces [N m, N].

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length; and what the class says
            of calls.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> regulator = ld.lqr(arm, arm.home, Q=1.0, R=0.1)
        >>> bool((regulator(0.0, arm.home, [0.0] * 4) == regulator.u).all())
        True
        """
        return self._inputs(*self._checked(t, q, v))

    def _checked(self, t, q, v):
        """Time and state as numbers and vectors; InputError if they do not fit."""
        return number("t", t), *single_state(f"{self._role} takes one state at a time", self._robot, q, v)


class LinearFeedback(Feedback):
    """Base class of regulators u = u_0 - K x; `_about(t)` gives the `Deviation` x, u_0 and K at time t."""

    _role = "a regulator"

    def _inputs(self, t, q, v):
        deviation, u, K = self._about(t)
        return u - K @ deviation(q, v)

    def derivative(self, t: float, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """Derivatives of the inputs by a displacement in the tangent space at q, and by v.

        Parameters
        ----------
        t : float
            Time [s].
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s].

        Returns
        -------
        by_q, by_v : ndarray, shape (nu, nv)

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.lqr(arm, arm.home, Q=1.0, R=0.1).derivative(0.0, arm.home, [0.0] * 4)[0].shape
        (4, 4)
        """
        t, q, v = self._checked(t, q, v)
        deviation, _, K = self._about(t)
        by_q, by_v = deviation.derivative(q, v)
        return -K @ by_q, -K @ by_v

    @property
    def feedback(self) -> tuple[Callable[..., Array], Callable[..., Any]]:
        """The pair (f, df), as `simulate` and `linearize` take it."""
        return self, self.derivative


def split(name, given):
    """(f, df) if a pair is given; df is None if numbers or a single function are given.

    Raises InputError if it is a pair of anything but two functions.
    """
    if not (isinstance(given, (tuple, list)) and any(map(callable, given))):  # numbers, or a function alone
        return given, None
    if len(given) != 2 or not all(callable(x) for x in given):
        raise InputError(f"{name} as feedback must be (f, df), the function and its derivative, got {shown(given)}")
    return given


def value(name, f, t, q, v, size):
    """f(t, q, v) as an array.

    Raises InputError if f fails, or does not return `size` finite numbers.
    """
    return _finite(name, "f", _call(name, "f", f, t, q, v), (size,), t)


def derivatives(name, df, t, q, v, size):
    """(by_q, by_v) of df(t, q, v).

    Raises InputError if df fails, or does not return two finite arrays of shape (size, nv).
    """
    found = _call(name, "df", df, t, q, v)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise InputError(f"df of {name} = (f, df) must return (by_q, by_v), got {shown(found)}")
    return tuple(_finite(name, f"{part} of df", x, (size, len(v)), t) for part, x in zip(("by_q", "by_v"), found))


def _call(name, part, function, t, q, v):
    try:
        return function(t, q.copy(), v.copy())
    except Exception as error:
        raise InputError(f"{part} of {name} = (f, df) fails with {said(error)} at t = {t:g}") from error


def _finite(name, part, x, shape, t):
    x = floats(f"{part} of {name} = (f, df)", x)
    if x.shape != shape:
        raise InputError(f"{part} of {name} = (f, df) must have shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(x))[0])
        raise InputError(f"{part} of {name} = (f, df) is not finite at t = {t:g}: {x[where]} at {where}")
    return x


@dataclass(frozen=True)
class FeedbackCheck:
    """Largest errors of a feedback's derivatives against differences, relative to the largest entry (or to one).

    Attributes
    ----------
    deviations : dict
        ``by q`` and ``by v``.
    tolerance : float
    """

    deviations: dict[str, Any]
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether both deviations are below the tolerance."""
        return max(self.deviations.values()) <= self.tolerance


def check_feedback(robot: Robot, feedback: tuple[Any, ...], q: ArrayLike, v: ArrayLike, t: float = 0.0,
                   tolerance: float = 1e-7) -> FeedbackCheck:
    """Compare the derivatives of a feedback with finite differences of sixth order, at one state.

    Parameters
    ----------
    robot : Robot
    feedback : tuple
        (f, df), as for ``tau`` or ``u`` of `simulate` and `linearize`: ``f(t, q, v)`` gives n forces, ``df(t, q, v)``
        their derivatives (by_q, by_v), each of shape (n, nv).
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)], preferably one without special symmetry.
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s].
    t : float
        Time [s].
    tolerance : float
        Largest relative error accepted: rounding in sixth-order differences leaves about 1e-10.

    Returns
    -------
    FeedbackCheck
        ``ok``, and the ``deviations`` by q and by v.

    Raises
    ------
    InputError
        It is no pair of functions; a shape does not fit, an entry is not finite, or a function fails.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> spring = (lambda t, q, v: -3.0 * q ** 2 - v, lambda t, q, v: (-6.0 * np.diag(q), -np.eye(4)))
    >>> ld.check_feedback(arm, spring, arm.home, np.ones(4)).ok
    True
    """
    t, tolerance = number("t", t), positive("tolerance", tolerance)
    q, v = single_state("check_feedback takes one state", robot, q, v)
    f, df = split("feedback", feedback)
    if df is None:
        raise InputError(f"feedback must be (f, df), the function and its derivative, got {shown(feedback)}")
    size = floats("f of feedback = (f, df)", _call("feedback", "f", f, t, q, v)).size
    by_q, by_v = derivatives("feedback", df, t, q, v, size)
    directions = np.eye(robot.nv)
    along_q = [central_difference(lambda s, e=e: value("feedback", f, t, integrate(robot, q, s * e), v, size))
               for e in directions]
    along_v = [central_difference(lambda s, e=e: value("feedback", f, t, q, v + s * e, size)) for e in directions]
    return FeedbackCheck({"by q": relative_deviation(by_q, np.stack(along_q, -1)),
                          "by v": relative_deviation(by_v, np.stack(along_v, -1))}, tolerance)
