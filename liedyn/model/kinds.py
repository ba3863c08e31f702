"""The kinds of joints and of constraints: their primitive motions, and the names of their coordinates.

A joint kind is a chain of primitives. Each primitive moves about or along one column of the joint's basis
(:func:`liedyn.model.frames.joint_basis`); a joint kind of several primitives becomes a chain of packed links with
massless links in between, but is one joint for the user. A primitive is a chain of itself; its compiled functions are
in `liedyn.mechanics.tree.joints`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
"""Components of a twist, in the axes of the joint's basis, or of the cut frame."""


def components(names):
    """Numbers of components of a twist."""
    return [TWIST.index(each) for each in names]


@dataclass(frozen=True)
class JointKind:
    """One kind of joint, in the tree or cut.

    Attributes
    ----------
    motions : tuple of str
        The component of the child's twist relative to the parent that each velocity coordinate measures.
    velocities : tuple of str
        Suffixes of the velocity coordinates, nv of them.
    coordinates : tuple of str
        Suffixes of the configuration coordinates, nq of them: the same unless there is a quaternion, which comes first.
    axes : tuple of (float, float, float)
        Default axes, as many as the user may specify.
    has_pitch : bool
        Whether it needs a pitch.
    is_primitive : bool
        Whether it is one link, not a chain of revolute and prismatic ones; it then has one, three or six velocities.
    screws : callable or None
        Twists (nv, 6) of unit velocities of a primitive by its pitch; None for the components themselves.
    forbidden : tuple of str
        As a cut joint: the components, in the cut frame, that are zero. A helical cut forbids vz - pitch wz, a
        universal cut the rotation about axis x axis2. Empty if it cannot be cut.
    is_of_tree : bool
        Whether it can be a joint of the tree.
    """

    motions: tuple
    velocities: tuple
    coordinates: tuple
    axes: tuple
    has_pitch: bool = False
    is_primitive: bool = False
    screws: Callable | None = None
    forbidden: tuple = ()
    is_of_tree: bool = True

    @property
    def nq(self):
        return len(self.coordinates)

    @property
    def nv(self):
        return len(self.velocities)

    @property
    def has_quaternion(self):
        return ".qw" in self.coordinates

    @property
    def are_lengths(self):
        """For each coordinate, True if it is a length."""
        of_motions = [each[0] == "v" for each in self.motions]
        return [False] * 4 + of_motions[3:] if self.has_quaternion else of_motions

    @property
    def rows(self):
        """Suffixes of the rows of a cut joint."""
        return tuple(f".{each}" for each in self.forbidden)

    @property
    def chain(self):
        """Primitives from parent to child: (kind, column of the joint's basis that becomes the z axis of its link)."""
        if self.is_primitive:
            return ((JOINTS.index(self), 2),)
        return tuple((REVOLUTE if each[0] == "w" else PRISMATIC, "xyz".index(each[1])) for each in self.motions)

    def screws_of(self, pitch):
        """Motion subspace (6, nv) of a primitive in its link's frame."""
        return np.eye(6)[:, components(self.motions)] if self.screws is None else np.array(self.screws(pitch)).T

    def moves_along_z(self, pitch):
        """True if a primitive moves only about and along the z axis of its link."""
        return not self.screws_of(pitch)[[0, 1, 3, 4]].any()


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_QUATERNION = (".qx", ".qy", ".qz", ".qw")
_ROTATIONS = (".rx", ".ry", ".rz")
_SLIDES = (".x", ".y", ".z")


def _kind(motions, velocities=("",), axes=(), coordinates=None, **more):
    """A kind that, by default, can be a cut joint and forbids all components of a twist that are not its motions."""
    motions = tuple(motions.split())
    more.setdefault("forbidden", tuple(each for each in TWIST if each not in motions))
    return JointKind(motions, velocities, coordinates or velocities, axes, **more)


# In the order of their codes in the packed model, for links (primitives only) and for cut joints
_JOINTS = {
    "fixed": _kind("", ()),
    "revolute": _kind("wz", axes=(_Z,), is_primitive=True),
    "prismatic": _kind("vz", axes=(_Z,), is_primitive=True),
    "helical": _kind("wz", axes=(_Z,), is_primitive=True, has_pitch=True,
                     screws=lambda pitch: [(0.0, 0.0, 1.0, 0.0, 0.0, pitch)]),
    "cylindrical": _kind("wz vz", (".angle", ".slide"), (_Z,)),
    "universal": _kind("wx wy", (".angle1", ".angle2"), (_X, _Y)),
    "planar": _kind("vx vy wz", (".x", ".y", ".angle"), (_Z,)),
    "translational": _kind("vx vy vz", _SLIDES),
    "spherical": _kind("wx wy wz", _ROTATIONS, coordinates=_QUATERNION, is_primitive=True),
    "free": _kind("wx wy wz vx vy vz", _ROTATIONS + _SLIDES, coordinates=_QUATERNION + _SLIDES, is_primitive=True),
    # the origin of the child stays on the z line of frame A: only its slide is a coordinate, so it cannot be a joint of
    # the tree
    "inline": _kind("vz", axes=(_Z,), forbidden=("vx", "vy"), is_of_tree=False),
}
(FIXED, REVOLUTE, PRISMATIC, HELICAL, CYLINDRICAL, UNIVERSAL, PLANAR, TRANSLATIONAL, SPHERICAL, FREE,
 INLINE) = range(len(_JOINTS))
JOINTS = tuple(_JOINTS.values())
N_JOINTS = len(JOINTS)
JOINT_KINDS = {name: kind for name, kind in _JOINTS.items() if kind.is_of_tree}
LOOP_KINDS = {name: kind for name, kind in _JOINTS.items() if kind.forbidden}


@dataclass(frozen=True)
class ConstraintKind:
    """A constraint other than a cut joint.

    Attributes
    ----------
    rows : tuple of str
        Suffixes of its rows' names.
    holonomic : int
        Number of rows with a residual, which come first.
    needs : tuple of str
        Required parameters.
    takes : tuple of str
        Optional parameters.
    one_sided : bool
        Whether it can be unilateral, with its first row as the gap.
    tangential : tuple of str
        Suffixes of additional rows for friction, if `rows` has none for it.
    undefined : str
        Text describing where its rows have no direction; empty if they always have one.
    family : str
        The module of `liedyn.mechanics.constraints.families` with its kernels.
    coefficients : int
        For couplings of coordinates, the number of coefficients for each; else 0.
    """

    rows: tuple
    holonomic: int
    needs: tuple = ()
    takes: tuple = ()
    one_sided: bool = False
    tangential: tuple = ()
    undefined: str = ""
    family: str = "contact"
    coefficients: int = 0


# In the order of their codes in the packed model, after the cut joints. Rolling adds the rows after the first one.
CONSTRAINT_KINDS = {
    "distance": ConstraintKind((".gap",), 1, ("length",), (), True, (".x", ".y", ".z"), "its two points coincide"),
    "on_plane": ConstraintKind((".gap",), 1, (), ("axis", "extent"), True, (".x", ".y")),
    "on_cylinder": ConstraintKind(
        (".gap",), 1, ("radius",), ("axis", "extent"), True, (".around", ".along"),
        undefined="its point lies on the axis"),
    "on_circle": ConstraintKind(
        (".height", ".gap"), 2, ("radius",), ("axis",), undefined="its point lies on the axis"),
    "knife_edge": ConstraintKind((".slip",), 0, ("child_axis",)),
    "disk_on_plane": ConstraintKind(
        (".gap", ".x", ".y"), 1, ("radius", "child_axis"), ("axis", "rolling"), True, undefined="its disk lies flat"),
    "sphere_on_plane": ConstraintKind((".gap", ".x", ".y"), 1, ("radius",), ("axis", "rolling", "extent"), True),
    "sphere_on_sphere": ConstraintKind(
        (".gap", ".x", ".y", ".z"), 1, ("radius", "parent_radius"), ("rolling", "inside"), True,
        undefined="the centres of its spheres coincide"),
    "coupling": ConstraintKind((".sum",), 1, one_sided=True, family="coupling", coefficients=1),
    # a contact that never opens: its first row is empty, and has the limit of the friction as its normal force
    "dry_friction": ConstraintKind((".limit", ".force"), 1, one_sided=True, family="coupling", coefficients=1),
    "custom": ConstraintKind((), 0, family="custom"),
    # its multiplier is the tension
    "cable": ConstraintKind(
        (".tension",), 1, one_sided=True, family="cable",
        undefined="its points coincide, one lies within what a cable goes round, or a belt lifts off, or leaves the "
                  "plane of its pulleys, whose axes have to be parallel"),
}
FAMILIES = ("cut", *dict.fromkeys(kind.family for kind in CONSTRAINT_KINDS.values()))
KINDS = (*_JOINTS, *CONSTRAINT_KINDS)
"""Names of all kinds of cut joints and constraints, by their codes."""
(DISTANCE, ON_PLANE, ON_CYLINDER, ON_CIRCLE, KNIFE_EDGE, DISK_ON_PLANE, SPHERE_ON_PLANE,
 SPHERE_ON_SPHERE) = range(N_JOINTS, N_JOINTS + 8)
DRY_FRICTION, CABLE = KINDS.index("dry_friction"), KINDS.index("cable")


def neutral(kind):
    """Neutral coordinates of a joint kind: zeros, and the identity for a quaternion."""
    return [1.0 if suffix == ".qw" else 0.0 for suffix in kind.coordinates]


def are_lengths(robot):
    """A mask (nv) of the velocities that are in m/s; the others are in rad/s."""
    found = np.zeros(robot.nv, bool)
    for joint in robot.model.joints:
        kind = JOINT_KINDS[joint.kind]
        for suffix, motion in zip(kind.velocities, kind.motions):
            if f"{joint.name}{suffix}" in robot.velocity_names:
                found[robot.velocity_index(f"{joint.name}{suffix}")] = motion[0] == "v"
    return found
