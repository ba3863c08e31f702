"""The kinds of joints and of cut joints: how each is made of primitive motions, and what its coordinates are called.

A joint kind is a chain of primitives. Each primitive moves about or along one column of the joint's basis
(:func:`liedyn.model.frames.joint_basis`); a joint kind of several primitives becomes a chain of packed links with
massless links in between, yet stays one joint to the user.
"""

from dataclasses import dataclass

# Primitives: what a packed link can do relative to its parent link; the first three move about or along its z axis.
REVOLUTE, PRISMATIC, HELICAL, SPHERICAL, FREE = range(5)

_QUATERNION = (".qx", ".qy", ".qz", ".qw")
_ROTATIONS = (".rx", ".ry", ".rz")
_SLIDES = (".x", ".y", ".z")


@dataclass(frozen=True)
class JointKind:
    """One kind of joint.

    Attributes
    ----------
    primitives : tuple of (int, int)
        Chain from parent to child: (primitive, column of the joint's basis it moves about or along).
    velocities : tuple of str
        Suffixes of the velocity coordinates, nv of them.
    coordinates : tuple of str
        Suffixes of the configuration coordinates, nq of them: the same unless there is a quaternion.
    axes : tuple of (float, float, float)
        Default axes; its length says how many axes the user may give.
    """

    primitives: tuple
    velocities: tuple
    coordinates: tuple
    axes: tuple

    @property
    def nq(self):
        return len(self.coordinates)

    @property
    def nv(self):
        return len(self.velocities)


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def _kind(primitives, velocities, axes=(), coordinates=None):
    return JointKind(primitives, velocities, coordinates or velocities, axes)


JOINT_KINDS = {
    "fixed": _kind((), ()),
    "revolute": _kind(((REVOLUTE, 2),), ("",), (_Z,)),
    "prismatic": _kind(((PRISMATIC, 2),), ("",), (_Z,)),
    "helical": _kind(((HELICAL, 2),), ("",), (_Z,)),
    "cylindrical": _kind(((REVOLUTE, 2), (PRISMATIC, 2)), (".angle", ".slide"), (_Z,)),
    "universal": _kind(((REVOLUTE, 0), (REVOLUTE, 1)), (".angle1", ".angle2"), (_X, _Y)),
    "planar": _kind(((PRISMATIC, 0), (PRISMATIC, 1), (REVOLUTE, 2)), (".x", ".y", ".angle"), (_Z,)),
    "translational": _kind(((PRISMATIC, 0), (PRISMATIC, 1), (PRISMATIC, 2)), _SLIDES),
    "spherical": _kind(((SPHERICAL, 2),), _ROTATIONS, coordinates=_QUATERNION),
    "free": _kind(((FREE, 2),), _ROTATIONS + _SLIDES, coordinates=_QUATERNION + _SLIDES),
}

# Cut joints, in the order of their codes in the packed model: the rows each contributes (the twist components, in the
# folded frame, that it forbids). A helical cut forbids vz - pitch wz, a universal cut the twist about axis x axis2.
LOOP_ROWS = {
    "fixed": (".wx", ".wy", ".wz", ".vx", ".vy", ".vz"),
    "revolute": (".wx", ".wy", ".vx", ".vy", ".vz"),
    "prismatic": (".wx", ".wy", ".wz", ".vx", ".vy"),
    "helical": (".wx", ".wy", ".vx", ".vy", ".vz"),
    "cylindrical": (".wx", ".wy", ".vx", ".vy"),
    "universal": (".wz", ".vx", ".vy", ".vz"),
    "planar": (".wx", ".wy", ".vz"),
    "spherical": (".vx", ".vy", ".vz"),
    "translational": (".wx", ".wy", ".wz"),
    "inline": (".vx", ".vy"),
}
LOOP_KINDS = tuple(LOOP_ROWS)

@dataclass(frozen=True)
class ConstraintKind:
    """A constraint that is no cut joint.

    Attributes
    ----------
    rows : tuple of str
        Suffixes of its rows' names.
    holonomic : int
        How many of them, the first ones, have a residual.
    needs : tuple of str
        Parameters that must be given.
    takes : tuple of str
        Parameters that may be given.
    one_sided : bool
        May it be unilateral? Then its first row is the gap.
    tangential : tuple of str
        Suffixes of the rows that friction adds, where `rows` has none for it.
    undefined : str
        Where its rows have no direction, in words; empty if they have one everywhere.
    """

    rows: tuple
    holonomic: int
    needs: tuple = ()
    takes: tuple = ()
    one_sided: bool = False
    tangential: tuple = ()
    undefined: str = ""


# In the order of their codes in the packed model, behind the cut joints. Rolling adds the rows behind the first one.
CONSTRAINT_KINDS = {
    "distance": ConstraintKind((".gap",), 1, ("length",), (), True, (".x", ".y", ".z"), "its two points coincide"),
    "on_plane": ConstraintKind((".gap",), 1, (), ("axis",), True, (".x", ".y")),
    "on_cylinder": ConstraintKind(
        (".gap",), 1, ("radius",), ("axis",), True, (".around", ".along"), undefined="its point lies on the axis"),
    "on_circle": ConstraintKind(
        (".height", ".gap"), 2, ("radius",), ("axis",), undefined="its point lies on the axis"),
    "knife_edge": ConstraintKind((".slip",), 0, ("child_axis",)),
    "disk_on_plane": ConstraintKind(
        (".gap", ".x", ".y"), 1, ("radius", "child_axis"), ("axis", "rolling"), True, undefined="its disk lies flat"),
    "sphere_on_plane": ConstraintKind((".gap", ".x", ".y"), 1, ("radius",), ("axis", "rolling"), True),
    "sphere_on_sphere": ConstraintKind(
        (".gap", ".x", ".y", ".z"), 1, ("radius", "parent_radius"), ("rolling", "inside"), True,
        undefined="the centres of its spheres coincide"),
    "coupling": ConstraintKind((".sum",), 1, one_sided=True),
    "custom": ConstraintKind((), 0),
}

# An inline cut (a point of the child on the z line of frame A) is no joint of the tree: only its slide is a coordinate.
_INLINE = JointKind(primitives=(), velocities=("",), coordinates=("",), axes=(_Z,))


def cut_kind(name):
    """Axes and coordinates of a cut joint: those of the joint of the same name, or of the inline pair."""
    return _INLINE if name == "inline" else JOINT_KINDS[name]


def neutral(kind):
    """Neutral coordinates of a joint kind: zeros, and the identity where there is a quaternion."""
    return [1.0 if suffix == ".qw" else 0.0 for suffix in kind.coordinates]
