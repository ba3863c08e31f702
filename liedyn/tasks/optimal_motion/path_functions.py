"""Functions of (t, q, v, u) along a motion: users' functions with their derivatives, and distances from obstacles."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.feedback import FeedbackCheck
from liedyn.machine.arguments import floats, number, positive, require_robot
from liedyn.machine.errors import InputError, said, shown
from liedyn.mechanics.contact.distances import distances
from liedyn.mechanics.constraints.checking import central_difference, relative_deviation
from liedyn.mechanics.tree.configuration import integrate
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.model.calls.boundary import as_floats, states
from liedyn.model.travel import Travelling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


@dataclass(frozen=True)
class PathFunction(Travelling):
    """A function along a motion with its derivatives, for a cost or for limits of `optimize_motion`.

    Attributes
    ----------
    f : callable
        ``f(t, q, v, u)`` returns a number, or m numbers.
    df : callable
        ``df(t, q, v, u)`` returns its derivatives (by_q, by_v, by_u), shapes (m, nv), (m, nv), (m, nu) (for a number
        the axis m may be missing), by a displacement in the tangent space at q (perturbed on the right), by v and by
        the actuators' forces u; or four, with by_t of shape (m,), if f depends on the time and the duration is free.
    low, high : float or array_like, shape (m,)
        Limits; equal ones make an equation.
    name : str
        Name in messages.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> power = ld.PathFunction(lambda t, q, v, u: u @ v, lambda t, q, v, u: (np.zeros(4), u, v), high=50.0)
    >>> power.check(arm, arm.home, np.ones(4), np.ones(4)).ok
    True
    """

    f: Callable[..., Any]
    df: Callable[..., Any]
    low: float | ArrayLike = -np.inf
    high: float | ArrayLike = np.inf
    name: str = "path function"

    def __post_init__(self) -> None:
        for part in ("f", "df"):
            if not callable(getattr(self, part)):
                raise InputError(f"{part} of a PathFunction must be a function, got {shown(getattr(self, part))}")
        low, high = (floats(each, getattr(self, each)) for each in ("low", "high"))
        if np.isnan(low).any() or np.isnan(high).any() or low.ndim > 1 or high.ndim > 1:
            raise InputError(f"low and high of {self.name!r} must be numbers, or one for each value of f")
        if (low > high).any():
            raise InputError(f"low of {self.name!r} is above high: {shown(self.low)}, {shown(self.high)}")

    def check(self, robot: Robot, q: ArrayLike, v: ArrayLike, u: ArrayLike, t: float = 0.0,
              tolerance: float = 1e-7) -> FeedbackCheck:
        """Compare the derivatives with finite differences of sixth order, at one state.

        Parameters
        ----------
        robot : Robot
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)], preferably one without special symmetry.
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s].
        u : array_like, shape (nu,)
            Forces of the actuators [N m, N].
        t : float
            Time [s].
        tolerance : float
            Largest relative error accepted.

        Returns
        -------
        FeedbackCheck
            ``ok``, and the ``deviations`` by q, by v and by u.

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a function fails.

        Examples
        --------
        >>> import numpy as np
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> speed = ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, v, 0.0 * u))
        >>> found = speed.check(arm, arm.home, np.ones(4), np.zeros(4))
        >>> found.ok, round(found.deviations["by v"], 3)  # the factor two is missing
        (False, 0.5)
        """
        require_robot(robot)
        t, tolerance = number("t", t), positive("tolerance", tolerance)
        _, q, v = states(robot, q=q, v=v)
        q, v, u = q[0], v[0], as_floats("u", u, len(robot.actuator_names)).copy()
        by = derivatives_of(self, t, q, v, u, len(value_of(self, t, q, v, u)))
        moved = (lambda s, e: (integrate(robot, q, s * e), v, u), lambda s, e: (q, v + s * e, u),
                 lambda s, e: (q, v, u + s * e))
        deviations = {}
        for name, exact, move in zip(("by q", "by v", "by u"), by, moved):
            along = [central_difference(lambda s, e=e, move=move: value_of(self, t, *move(s, e)))
                     for e in np.eye(exact.shape[1])]
            deviations[name] = relative_deviation(exact, np.stack(along, -1)) if along else 0.0
        return FeedbackCheck(deviations, tolerance)


def value_of(function, t, q, v, u):
    """f of a `PathFunction` as an array of shape (m,).

    Raises InputError if the function fails, or does not return finite numbers.
    """
    found = np.atleast_1d(floats(f"f of {function.name!r}", _call(function, "f", t, q, v, u)))
    if found.ndim > 1 or not np.isfinite(found).all():
        raise InputError(f"f of {function.name!r} must return finite numbers, got {shown(found)} at t = {t:g}")
    return found


def derivatives_of(function, t, q, v, u, size):
    """(by_q, by_v, by_u, by_t) of df of a `PathFunction` with `size` values.

    Raises InputError if the function fails, or returns arrays of other shapes.
    """
    found = _call(function, "df", t, q, v, u)
    if not isinstance(found, (tuple, list)) or len(found) not in (3, 4):
        raise InputError(f"df of {function.name!r} must return (by_q, by_v, by_u), got {shown(found)}")
    found, out = (*found, np.zeros(size))[:4], []
    for part, x, columns in zip(("by_q", "by_v", "by_u", "by_t"), found, (len(v), len(v), len(u), 1)):
        x = floats(f"{part} of {function.name!r}", x)
        if x.size != size * columns or not np.isfinite(x).all():
            raise InputError(f"{part} of df of {function.name!r} must be finite and of shape {(size, columns)}, "
                             f"got shape {x.shape} at t = {t:g}")
        out.append(x.reshape(size, columns))
    return (*out[:3], out[3][:, 0])


def _call(function, part, t, q, v, u):
    try:
        return getattr(function, part)(t, q.copy(), v.copy(), u.copy())
    except Exception as error:
        raise InputError(f"{part} of {function.name!r} fails with {said(error)} at t = {t:g}") from error


def clearance(robot: Robot, body: str, center: ArrayLike, radius: float,
              point: ArrayLike = (0.0, 0.0, 0.0)) -> PathFunction:
    """A sphere that a point of a body must not enter, for ``path`` of `optimize_motion`.

    Parameters
    ----------
    robot : Robot
    body : str
        Name of a body or frame.
    center : array_like, shape (3,)
        Centre of the sphere in the world [m].
    radius : float
        Radius of the sphere [m]; for a body that is itself a sphere, the sum of both radii.
    point : array_like, shape (3,)
        Point of the body, in its own frame [m].

    Returns
    -------
    PathFunction
        The squared distance divided by the squared radius, at least one: smooth everywhere, with the exact
        derivative from `body_jacobian`.

    Raises
    ------
    InputError
        The body is unknown, a shape does not fit, or the radius is not positive.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ball = ld.clearance(panda, "panda_hand", [0.4, 0.0, 0.4], 0.1)
    >>> ball.check(panda, panda.home, [0.0] * 7, [0.0] * 7).ok
    True
    """
    require_robot(robot)
    robot.body_index(body)
    center, point, radius = as_floats("center", center, 3), as_floats("point", point, 3), positive("radius", radius)
    if center.shape != (3,) or point.shape != (3,):
        raise InputError(f"center and point must have shape (3,), got {center.shape} and {point.shape}")
    away = _Away(robot, body, center, point, radius)
    return PathFunction(away.value, away.derivatives, low=1.0, name=f"clearance of {body!r}")


class _Away:
    """The squared distance of a point of a body from a centre, in units of the radius; its methods can be pickled."""

    def __init__(self, robot, body, center, point, radius):
        self.robot, self.body, self.center, self.point, self.radius = robot, body, center, point, radius

    def _place(self, q):
        T = pose(self.robot, q, self.body)
        return T[:3, :3], T[:3, 3] + T[:3, :3] @ self.point - self.center

    def value(self, t, q, v, u):
        """Squared distance in units of the squared radius."""
        d = self._place(q)[1]
        return d @ d / self.radius ** 2

    def derivatives(self, t, q, v, u):
        """Derivatives by q, v and u."""
        R, d = self._place(q)
        J = body_jacobian(self.robot, q, self.body)
        rate = R @ (J[3:] - np.cross(self.point, J[:3], axisb=0).T)
        return 2.0 * d @ rate / self.radius ** 2, np.zeros(self.robot.nv), np.zeros(len(self.robot.actuator_names))


def separation(robot: Robot, pairs: Sequence[tuple[str, str]] | None = None, at_least: float = 0.0) -> PathFunction:
    """Pairs of shapes that keep a distance along a motion, for ``path`` of `optimize_motion`.

    Parameters
    ----------
    robot : Robot
    pairs : sequence of (str, str), optional
        As for `distances`.
    at_least : float
        Distance that every pair keeps [m].

    Returns
    -------
    PathFunction
        The distances of all pairs, with their exact derivatives.

    Raises
    ------
    LiedynError
        coal is not installed (extra ``collision``), or cannot read a mesh.
    InputError
        A name is unknown, or there are no pairs.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("panda"))
    >>> b.shape("fist", "panda_hand", "sphere", size=0.1, role="collision")
    >>> b.shape("post", "ground", "cylinder", (0.5, 0.0, 0.5), size=(0.05, 1.0), role="collision")
    >>> panda = b.build()
    >>> ld.separation(panda, at_least=0.02).check(panda, panda.home, [0.0] * 7, [0.0] * 7).ok
    True
    """
    require_robot(robot)
    at_least = number("at_least", at_least)
    apart = _Apart(robot, pairs)
    apart.value(0.0, robot.home, None, None)
    return PathFunction(apart.value, apart.derivatives, low=at_least, name="distances of shapes")


class _Apart:
    """Distances of pairs of shapes; its methods can be pickled."""

    def __init__(self, robot, pairs):
        self.robot, self.pairs = robot, pairs

    def value(self, t, q, v, u):
        """Distances of all pairs."""
        return distances(self.robot, q, self.pairs).distance

    def derivatives(self, t, q, v, u):
        """Derivatives by q, v and u."""
        J = distances(self.robot, q, self.pairs).jacobian
        return J, np.zeros_like(J), np.zeros((len(J), len(self.robot.actuator_names)))
