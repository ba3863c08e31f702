"""Targets of inverse kinematics: by the names of bodies and frames, and users' own.

A target has an error and the Jacobian of that error. The kernels know those of this file by number
(`liedyn.tasks.reaching.target_rows`) and call the methods of all others.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import positive
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, shown
from liedyn.tasks.reaching.goals import pose_of, rotation_of, units, vector, vectors, weight_of
from liedyn.tasks.reaching.target_rows import CENTER_OF_MASS, DIRECTION, ORIENTATION, POINT

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

GROUND = -1
"""Index of the ground as a reference frame."""


@dataclass(frozen=True)
class Part:
    """Three rows of a target, or all rows of a user's own target.

    Attributes
    ----------
    kind : int
    body, reference : str or None
    vector : ndarray, shape (3,)
        A point of the body, or an axis in it.
    goal : ndarray, shape (..., 9) or (..., 3)
    weight : ndarray, shape (3,)
    is_angle : bool
    """

    kind: int
    body: str
    reference: str
    vector: np.ndarray
    goal: np.ndarray
    weight: np.ndarray
    is_angle: bool


class Target:
    """Base class of targets; derive your own targets from it.

    Such a target has two methods, ``error(robot, q)`` with the rows that should become zero, shape (k,), and
    ``jacobian(robot, q)`` with their derivatives along the velocity coordinates, shape (k, nv). Attributes
    may be set on the class or the object.

    Attributes
    ----------
    weight : float or sequence of float
        Factors of the error, one or one for each row; rows of weight zero are ignored.
    priority : int
        Targets of priority 0 are reached as well as possible, those of priority 1 in the remaining freedom, and so on.
    tolerance : float or None
        Norm of the error at which the target counts as reached; None for the tolerances of the call.
    name : str or None
        Name in results; by default made from the kind of target.

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> class Sum(ld.Target):
    ...     name = "sum"
    ...     def error(self, robot, q):
    ...         return np.array([q.sum() - 1.0])
    ...     def jacobian(self, robot, q):
    ...         return np.ones((1, robot.nv))
    >>> panda = ld.load("panda")
    >>> bool(abs(ld.inverse_kinematics(panda, Sum()).q.sum() - 1.0) < 1e-6)
    True
    """

    weight: ArrayLike = 1.0
    priority: int = 0
    tolerance: float | None = None
    name: str | None = None

    def error(self, robot: Robot, q: ArrayLike) -> NDArray[Any]:
        """The rows that should become zero.

        Parameters
        ----------
        robot : Robot
        q : array_like, shape (..., nq)
            Configuration [rad, m; quaternions (x, y, z, w)]; your own targets get one, of shape (nq,).

        Returns
        -------
        error : ndarray, shape (..., k)
            Error without weights [rad, m].

        Examples
        --------
        >>> import liedyn as ld
        >>> panda = ld.load("panda")
        >>> ld.PointTarget("panda_hand", (0.0, 0.0, 0.0)).error(panda, panda.home).shape
        (3,)
        """
        return self._evaluate(robot, q)[0]

    def jacobian(self, robot: Robot, q: ArrayLike) -> NDArray[Any]:
        """The derivatives of the error along the velocity coordinates.

        Parameters
        ----------
        robot : Robot
        q : array_like, shape (..., nq)
            Configuration [rad, m; quaternions (x, y, z, w)]; your own targets get one, of shape (nq,).

        Returns
        -------
        J : ndarray, shape (..., k, nv)
            The rate of the error is ``J v`` [rad/s, m/s].

        Examples
        --------
        >>> import liedyn as ld
        >>> panda = ld.load("panda")
        >>> ld.CenterOfMassTarget((0.1, 0.0, 0.4)).jacobian(panda, panda.home).shape
        (3, 7)
        """
        return self._evaluate(robot, q)[1]

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "parts", self._parts())  # once, as targets do not change

    def _evaluate(self, robot, q):
        # the packing knows the kinds of targets
        return by_name("liedyn.tasks.reaching.packing:evaluate")(robot, self, q)

    parts: tuple[Any, ...] = ()
    """The target's parts for kernels; empty for users' own targets."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownTarget(Target):
    """Common attributes of targets that the kernels know, as for `Target`."""

    weight: ArrayLike = 1.0
    priority: int = 0
    tolerance: float | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class PoseTarget(KnownTarget):
    """A pose of a body or frame.

    Attributes
    ----------
    body : str
    pose : array_like, shape (..., 4, 4)
        Goal of the pose [m], in the world or relative to another body or frame.
    relative_to : str, optional
    weight, orientation_weight : float or array_like, shape (3,)
        Factors of the errors of position [1/m] and of orientation [1/rad], one or one for each axis of the world (or of
        the other body).
    priority, tolerance, name
        As for `Target`; `tolerance` applies to both errors.

    Notes
    -----
    The error is (log(R Rg^T), p - pg), as rotation vector and distance in axes of the world.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> hand = ld.PoseTarget("panda_hand", ld.pose(panda, panda.home, "panda_hand"))
    >>> hand.error(panda, panda.home).shape, hand.jacobian(panda, panda.home).shape
    ((6,), (6, 7))
    """

    body: str
    pose: ArrayLike
    relative_to: str | None = None
    _: KW_ONLY
    orientation_weight: ArrayLike = 1.0

    def _parts(self):
        pose = pose_of(f"pose of {shown(self.body)}", self.pose)
        rotation = pose[..., :3, :3].reshape(pose.shape[:-2] + (9,))
        return (_part(ORIENTATION, self, rotation, weight=weight_of(self, "orientation_weight"), is_angle=True),
                _part(POINT, self, pose[..., :3, 3]))


@dataclass(frozen=True, eq=False)
class OrientationTarget(KnownTarget):
    """An orientation of a body or frame, at any position.

    Attributes
    ----------
    body : str
    rotation : array_like, shape (..., 3, 3)
        Goal of the orientation, in the world or relative to another body or frame.
    relative_to : str, optional
    weight, priority, tolerance, name
        As for `Target`; weights [1/rad] by axes of the world (or of the other body).

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> panda = ld.load("panda")
    >>> level = ld.OrientationTarget("panda_hand", np.diag([1.0, -1.0, -1.0]))
    >>> level.error(panda, panda.home).shape
    (3,)
    """

    body: str
    rotation: ArrayLike
    relative_to: str | None = None

    def _parts(self):
        rotation = rotation_of(f"rotation of {shown(self.body)}", self.rotation)
        return (_part(ORIENTATION, self, rotation.reshape(rotation.shape[:-2] + (9,)), is_angle=True),)


@dataclass(frozen=True, eq=False)
class PointTarget(KnownTarget):
    """A position of a point of a body.

    Attributes
    ----------
    body : str
    position : array_like, shape (..., 3)
        Goal of the point [m], in the world or relative to another body or frame.
    point : array_like, shape (3,)
        The point, in the body's own frame [m].
    relative_to : str, optional
    weight, priority, tolerance, name
        As for `Target`; weights [1/m] by axes of the world (or of the other body): (0, 0, 1) for a height.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> found = ld.inverse_kinematics(panda, ld.PointTarget("panda_hand", (0.4, 0.2, 0.3), point=(0.0, 0.0, 0.1)))
    >>> ld.pose(panda, found.q, "panda_hand")[:3].dot((0.0, 0.0, 0.1, 1.0)).round(5)
    array([0.4, 0.2, 0.3])
    """

    body: str
    position: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)
    relative_to: str | None = None

    def _parts(self):
        return (_part(POINT, self, vectors("position", self.position), vector=vector("point", self.point)),)


@dataclass(frozen=True, eq=False)
class DirectionTarget(KnownTarget):
    """A direction of an axis of a body; rotations about the axis are free.

    Attributes
    ----------
    body : str
    axis : array_like, shape (3,)
        The axis, in the body's own frame, of any length but zero.
    direction : array_like, shape (..., 3)
        Goal of the axis, in the world or relative to another body or frame; of any length but zero.
    relative_to : str, optional
    weight, priority, tolerance, name
        As for `Target`; weights [1/rad].

    Notes
    -----
    The error is the rotation vector of the smallest rotation from the direction to the axis; its norm is the angle.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> down = ld.DirectionTarget("panda_hand", (0, 0, 1), (0, 0, -1))
    >>> ld.pose(panda, ld.inverse_kinematics(panda, down).q, "panda_hand")[:3, 2].round(5) + 0.0
    array([ 0.,  0., -1.])
    """

    body: str
    axis: ArrayLike
    direction: ArrayLike
    relative_to: str | None = None

    def _parts(self):
        goal = units("direction", vectors("direction", self.direction))
        return (_part(DIRECTION, self, goal, vector=units("axis", vector("axis", self.axis)), is_angle=True),)


@dataclass(frozen=True, eq=False)
class CenterOfMassTarget(KnownTarget):
    """A position of the centre of mass of all moving bodies.

    Attributes
    ----------
    position : array_like, shape (..., 3)
        Goal of the centre of mass [m], in the world or relative to a body or frame.
    relative_to : str, optional
    weight, priority, tolerance, name
        As for `Target`; weights [1/m] by axes of the world (or of the other body): (1, 1, 0) to be above a point.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> found = ld.inverse_kinematics(panda, ld.CenterOfMassTarget((0.1, 0.0, 0.4)))
    >>> ld.center_of_mass(panda, found.q).round(5)
    array([0.1, 0. , 0.4])
    """

    position: ArrayLike
    relative_to: str | None = None

    body: None = None

    def _parts(self):
        return (_part(CENTER_OF_MASS, self, vectors("position", self.position)),)


def _part(kind, target, goal, vector=(0.0, 0.0, 0.0), weight=None, is_angle=False):
    weight = weight_of(target, "weight") if weight is None else weight
    return Part(kind, target.body, target.relative_to, np.array(vector), goal, weight, is_angle)


def check(target):
    """InputError if an attribute of a target is not valid."""
    if isinstance(target.priority, bool) or not isinstance(target.priority, int | np.integer):
        raise InputError(f"priority of a target must be a whole number, got {shown(target.priority)}")
    if target.tolerance is not None:
        positive("tolerance of a target", target.tolerance)
    for what in ("name", "body", "relative_to"):
        text = getattr(target, what, None)
        if not isinstance(text, str | None):
            raise InputError(f"{what} of a target must be text, got {shown(text)}")


def checked(targets):
    """One target or several, as a tuple."""
    found = (targets,) if isinstance(targets, Target) else targets
    if not isinstance(found, (tuple, list)) or not all(isinstance(each, Target) for each in found) or not found:
        raise InputError(f"targets must be one or several, such as ld.PoseTarget(body, pose), got {shown(targets)}")
    for each in found:
        check(each)
    return tuple(found)
