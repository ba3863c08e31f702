"""Declared parts of a robot: bodies, frames, joints, cut joints (loops), other constraints, actuators.

They are frozen records, whose numbers were checked and converted to arrays by :class:`liedyn.model.Builder`.
Poses are (4, 4) arrays, lengths in metres, angles in radians. The ground is the reserved body name ``"ground"``.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.typing import Array

GROUND = "ground"
APPLIED = "wrench", "follower"
"""Laws of applied wrenches, in the axes of the world and of the body."""


class _Record:
    """Base class that makes the arrays of a record read-only."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Body(_Record):
    """A rigid body.

    Attributes
    ----------
    name : str
    mass : float
        [kg]
    com : ndarray, shape (3,)
        Centre of mass in the body frame [m].
    inertia : ndarray, shape (3, 3)
        Rotational inertia about the centre of mass, in body axes [kg m^2].
    """

    name: str
    mass: float
    com: Array
    inertia: Array


@dataclass(frozen=True, eq=False)
class Joint(_Record):
    """A joint of the tree: pose of child in parent = `placement` @ motion(q).

    Attributes
    ----------
    name, kind, parent, child : str
    placement : ndarray, shape (4, 4)
        Joint frame in the frame of the parent body; the child frame at the joint's zero.
    axes : tuple of ndarray, shape (3,)
        Unit axes in the joint frame: none, one, or two for a universal joint.
    pitch : float
        Advance of a helical joint [m/rad], else 0.
    limits : ndarray, shape (nq, 2)
        Lowest and highest value of each coordinate.
    velocity_limit, effort_limit : ndarray, shape (nv,)
    armature, damping, stiffness : ndarray, shape (nv,)
        Rotor inertia, viscous damping and spring stiffness of each coordinate.
    rest : ndarray, shape (nq,)
        Configuration in which the springs are at rest.
    driven : bool
        Whether its velocity coordinates are inputs if no actuators are declared.
    """

    name: str
    kind: str
    parent: str
    child: str
    placement: Array
    axes: tuple[Array, ...]
    pitch: float
    limits: Array
    velocity_limit: Array
    effort_limit: Array
    armature: Array
    damping: Array
    stiffness: Array
    rest: Array
    driven: bool = True


@dataclass(frozen=True, eq=False)
class Frame(_Record):
    """A named frame, fixed in a body; functions that take names of bodies accept it as a massless body.

    Attributes
    ----------
    name, body : str
        `body` is the name of a body, the ground or another frame.
    placement : ndarray, shape (4, 4)
        Pose in the frame of that body.
    """

    name: str
    body: str
    placement: Array

    @property
    def joint(self) -> Joint:
        """The fixed joint between its body and it."""
        nothing = np.empty(0)
        return Joint(self.name, "fixed", self.body, self.name, self.placement, (), 0.0, np.empty((0, 2)),
                     *(nothing,) * 6)


@dataclass(frozen=True, eq=False)
class Loop(_Record):
    """A cut joint: closes a loop between two bodies of the tree.

    Frame A is `parent_placement` in body `parent`, frame B is `child_placement` in body `child`; the motion
    A^-1 B is that of the joint kind.

    Attributes
    ----------
    name, kind, parent, child : str
    parent_placement, child_placement : ndarray, shape (4, 4)
    axes : tuple of ndarray, shape (3,)
        Unit axes in the cut frames: none, one, or two for a universal joint.
    pitch : float
        Advance of a helical joint [m/rad], else 0.
    active : bool
        Whether it is initially switched on.
    target : callable or None
        Moves frame A in its body: a function of time.
    """

    name: str
    kind: str
    parent: str
    child: str
    parent_placement: Array
    child_placement: Array
    axes: tuple[Array, ...]
    pitch: float
    active: bool = True
    target: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class Station(_Record):
    """A point of the path of a cable, or what it goes round.

    Attributes
    ----------
    body : str
    placement : ndarray, shape (4, 4)
    shape : str
        "point", "cylinder" or "sphere".
    radius : float
    sense : int
        1 or -1: counterclockwise or clockwise about the axis; 0 the shorter way; 2 beside `side`.
    side : ndarray, shape (3,)
    """

    body: str
    placement: Array
    shape: str = "point"
    radius: float = 0.0
    sense: int = 0
    side: Any = None


@dataclass(frozen=True, eq=False)
class Constraint(_Record):
    """A constraint other than a cut joint.

    Attributes
    ----------
    name, kind : str
        Kinds: :data:`liedyn.model.kinds.CONSTRAINT_KINDS`.
    parent, child : str or None
        The two bodies; None for couplings and custom rows, which have none.
    parent_placement, child_placement : ndarray, shape (4, 4)
        Frames A and B in these bodies.
    axis : ndarray, shape (3,)
        Normal or axis of the parent's surface, in frame A.
    child_axis : ndarray, shape (3,)
        Axle of a disk, or the direction without slip of a knife edge, in frame B.
    length, radius : float
        Length of a rod, or radius of the parent's surface; radius of the child's disk or sphere [m], negative for a
        sphere inside another one.
    rows : tuple of str
        Suffixes of the names of its rows.
    holonomic : int
        Number of rows with a residual, which come first.
    coefficients : dict
        For a coupling: coefficient by coordinate name.
    offset : float
        For a coupling: value of the sum.
    functions : dict
        For custom rows: the functions by name.
    active : bool or str
        Whether it is initially switched on; ``"sliding"`` or ``"sticking"`` for a one-sided constraint that is
        initially closed.
    target : callable or None
        Moves frame A in its body: a function of time.
    side : int
        1 or -1 for a one-sided constraint, whose first residual stays above or below zero; else 0.
    restitution, friction : float
        For a one-sided constraint: ratio of separation to approach speed in an impact, and Coulomb's coefficient.
    extent : tuple of float
        For a plane that ends: lengths of a rectangle along x and y of frame A, or the radius of a disk; for a cylinder
        that ends its length; else nothing.
    limit : tuple of float
        For dry friction: coulomb, static, stribeck and viscous, as in :meth:`Builder.friction`.
    stations : tuple of Station
        For a cable: the points of its path, and what it goes round.
    """

    name: str
    kind: str
    parent: str | None = None
    child: str | None = None
    parent_placement: Array = field(default_factory=lambda: np.eye(4))
    child_placement: Array = field(default_factory=lambda: np.eye(4))
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    child_axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    length: float = 0.0
    radius: float = 0.0
    rows: tuple[str, ...] = ()
    holonomic: int = 0
    coefficients: dict[str, Any] = field(default_factory=dict)
    offset: float = 0.0
    functions: dict[str, Any] = field(default_factory=dict)
    active: bool | str = True
    target: Callable[..., Any] | None = None
    side: int = 0
    restitution: float = 0.0
    friction: float = 0.0
    extent: tuple[float, ...] = ()
    limit: tuple[float, ...] = ()
    stations: tuple[Station, ...] = ()

    @property
    def bodies(self) -> set[str | None]:
        """The bodies that it acts on; None for couplings and custom rows."""
        return {each.body for each in self.stations} or {self.parent, self.child}


@dataclass(frozen=True, eq=False)
class Element(_Record):
    """A force element: a force given by a law of a displacement and its rate.

    Attributes
    ----------
    measure : Constraint or Loop
        The constraint whose residual is the displacement: of kind distance, cable or coupling, for a length or a sum
        minus that at rest; or a fixed cut joint, for the displacement of two frames (for an applied force, of a frame
        from the ground).
    law : str
        One of :data:`liedyn.model.force_elements.LAW_KINDS`.
    numbers : tuple of float
    functions : dict
        Users' functions, by argument name.
    """

    measure: Constraint | Loop
    law: str
    numbers: tuple[float, ...] = ()
    functions: dict[str, Any] = field(default_factory=dict)
    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def bodies(self) -> set[str]:
        """The two bodies that it acts between, None for a coupling; an applied force has only one."""
        if self.measure.kind == "cable":
            return self.measure.bodies
        return {self.measure.child} | (set() if self.law in APPLIED else {self.measure.parent})

    @property
    def coefficients(self) -> Any:
        return getattr(self.measure, "coefficients", {})


@dataclass(frozen=True, eq=False)
class Shape(_Record):
    """A shape fixed in a body, for pictures or contacts; it does not affect the dynamics.

    Attributes
    ----------
    name, body : str
        `body` is the name of a body, the ground or a frame.
    kind : str
        One of :data:`SHAPE_SIZES`.
    placement : ndarray, shape (4, 4)
        Pose in the frame of that body.
    size : tuple of float
        [m] Box: edges along x, y, z; sphere: radius; cylinder and capsule, along z: radius, and length without the
        caps; ellipsoid: half axes; plane, with the normal z, and mesh: empty.
    mesh : str
        File of a mesh.
    scale : tuple of float
        Factors for the coordinates of the mesh.
    color : tuple of float or None
        Red, green, blue, opacity, from 0 to 1.
    role : str
        "visual" or "collision".
    """

    name: str
    body: str
    kind: str
    placement: Array = field(default_factory=lambda: np.eye(4))
    size: tuple[float, ...] = ()
    mesh: str = ""
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    color: tuple[float, ...] | None = None
    role: str = "visual"


SHAPE_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 0, "mesh": 0}
"""Kinds of shapes, and the number of entries of their `size`."""
SHAPE_ROLES = "visual", "collision"


@dataclass(frozen=True, eq=False)
class Actuator:
    """An input u on velocity coordinates, of the tree or of cut joints: tau[coordinate] += gear * u for all `gears`."""

    name: str
    gears: dict[str, float]

    @property
    def measure(self) -> Any:
        """The constraint that would hold the driven coordinates."""
        return Constraint(self.name, "coupling", rows=(".sum",), holonomic=1, coefficients=self.gears)

    @property
    def element(self) -> Element:
        """The force element that exerts it; its last number is the input."""
        return Element(self.measure, "driven", (1.0, 0.0))

    @property
    def bodies(self) -> set[str]:
        return set()


@dataclass(frozen=True, eq=False)
class Cylinder:
    """An input u that drives two points apart with the force gear * u.

    Attributes
    ----------
    measure : Constraint
        Of kind distance, with length 0.
    gear : float
    """

    measure: Constraint
    gear: float

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def element(self) -> Element:
        """The force element that exerts it; its last number is the input."""
        return Element(self.measure, "driven", (self.gear, 0.0))

    @property
    def gears(self) -> dict[str, float]:
        return {}

    @property
    def bodies(self) -> set[str]:
        return {self.measure.parent, self.measure.child}


@dataclass(frozen=True, eq=False)
class Thruster:
    """An input u that is a wrench on a body: u times `wrench`, at a frame of the body.

    Attributes
    ----------
    measure : Loop
        Fixed, from the ground to the frame.
    wrench : tuple of float
        (moment, force) for one unit of the input, six numbers.
    axes : str
        "body" or "world": the axes in which the wrench is constant.
    """

    measure: Loop
    wrench: tuple[float, ...]
    axes: str = "body"

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def gears(self) -> dict[str, float]:
        return {}

    @property
    def bodies(self) -> set[str]:
        return {self.measure.child}

    @property
    def element(self) -> Element:
        """The force element that exerts it; its last number is the input."""
        return Element(self.measure, "thrust" if self.axes == "body" else "push", (*self.wrench, 0.0))


@dataclass(frozen=True, eq=False)
class Winch:
    """An input u that pulls a cable with the tension gear * u.

    Attributes
    ----------
    measure : Constraint
        A cable, with length 0.
    gear : float
    """

    measure: Any
    gear: float

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def gears(self) -> dict[str, float]:
        return {}

    @property
    def bodies(self) -> set[str]:
        return self.measure.bodies

    @property
    def element(self) -> Element:
        """The force element that exerts it; its last number is the input."""
        return Element(self.measure, "driven", (-self.gear, 0.0))


@dataclass(frozen=True, eq=False)
class Model(_Record):
    """All declarations of a robot, in their order.

    Attributes
    ----------
    name : str
    gravity : ndarray, shape (3,)
        [m/s^2]
    bodies : tuple of Body
    joints : tuple of Joint
    loops : tuple of Loop
    actuators : tuple of Actuator, Cylinder, Thruster or Winch
    home : dict
        Value or list of values by coordinate name or joint name.
    independent : tuple of str
        Default choice of independent coordinates.
    outputs : tuple of str
    constraints : tuple of Constraint
        All except cut joints, which are in `loops`.
    description, source : str
        Description of the robot, and the source of its parameters.
    elements : tuple of Element
    frames : tuple of Frame
    shapes : tuple of Shape
    """

    name: str
    gravity: Array
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    actuators: tuple[Actuator | Cylinder | Thruster | Winch, ...]
    home: dict[str, Any] = field(default_factory=dict)
    independent: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    description: str = ""
    source: str = ""
    elements: tuple[Element, ...] = ()
    frames: tuple[Frame, ...] = ()
    shapes: tuple[Shape, ...] = ()

    @property
    def tree_joints(self) -> tuple[Joint, ...]:
        """The joints, followed by the fixed joints of the frames."""
        return self.joints + tuple(frame.joint for frame in self.frames)
