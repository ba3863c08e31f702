"""Feedback with its derivative: a pair (f, df) of functions of (t, q, v), and a check of df against f.

f gives the inputs, shape (n,): generalised forces, or forces of the actuators. df gives (by_q, by_v), each of shape
(n, nv): their derivatives by a displacement in the tangent space at q (perturbed on the right) and by v.
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
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


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
    lead, q, v = states(robot, q=q, v=v)
    if lead:
        raise InputError(f"check_feedback takes one state, got leading axes {lead}")
    f, df = split("feedback", feedback)
    if df is None:
        raise InputError(f"feedback must be (f, df), the function and its derivative, got {shown(feedback)}")
    q, v = q[0], v[0]
    size = floats("f of feedback = (f, df)", _call("feedback", "f", f, t, q, v)).size
    by_q, by_v = derivatives("feedback", df, t, q, v, size)
    directions = np.eye(robot.nv)
    along_q = [central_difference(lambda s, e=e: value("feedback", f, t, integrate(robot, q, s * e), v, size))
               for e in directions]
    along_v = [central_difference(lambda s, e=e: value("feedback", f, t, q, v + s * e, size)) for e in directions]
    return FeedbackCheck({"by q": relative_deviation(by_q, np.stack(along_q, -1)),
                          "by v": relative_deviation(by_v, np.stack(along_v, -1))}, tolerance)
