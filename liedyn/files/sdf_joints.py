"""Joints of SDFormat files: in the tree, as cut joints, and as couplings of the coordinates of others."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from liedyn.files.file_bodies import mimic_once
from liedyn.files.sdf_scopes import MODEL, Scope, SdfElement, relative
from liedyn.machine.arguments import ORTHOGONALITY
from liedyn.machine.errors import ModelError, errors_at, shown, suggestion
from liedyn.model.frames import ROUNDING
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.validation import unit

JOINT_TYPES = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "screw": "helical",
               "universal": "universal", "revolute2": "universal", "ball": "spherical", "fixed": "fixed",
               "gearbox": None}
"""The kind of joint for each type of SDFormat; a gearbox is not a joint, but couples two joints."""

_UNLIMITED = 1e16  # written by old versions for no limit
_IN_PLACE = 1e-12  # [m] distance from the origin of its link up to which a joint rotates about it
_PARALLEL = 1e-6  # tolerance for the axes of a gearbox and of the joints that it couples


@dataclass(frozen=True)
class SdfJoint:
    """A joint with its axes and frame in the world, in the configuration of the file.

    Attributes
    ----------
    name, type, kind : str
    parent, child : str
        Bodies of the robot.
    pose : ndarray, shape (4, 4)
    axes : list of ndarray
        The axes of its kind.
    pitch : float or None
        [m/rad]
    last : bool
        Whether it is the first choice for a cut joint.
    element : SdfElement
    scope : Scope
    """

    name: str
    type: str
    kind: str | None
    parent: str
    child: str
    pose: np.ndarray
    axes: list
    pitch: float | None
    last: bool
    element: SdfElement
    scope: Scope

    @classmethod
    def read(cls, scope, element):
        """The joint of an element <joint>."""
        kind = element.text("type")
        if kind not in JOINT_TYPES:
            raise ModelError(f"{element.owner}, type: unknown {shown(kind)}, {suggestion(kind, JOINT_TYPES)}")
        ends = []
        for end in ("parent", "child"):
            name = element.word(end)
            with errors_at(f"{element.owner}, {end}"):
                ends.append(scope.body(name))
        count = len(JOINT_KINDS[JOINT_TYPES[kind] or "universal"].axes)
        axes = [_direction(scope, element, element.part(key, needed=True)) for key in ("axis", "axis2")[:count]]
        physics = element.part("physics")
        simbody = physics and physics.part("simbody")
        return cls(scope.prefix + element.name, kind, JOINT_TYPES[kind], *ends, scope.world_pose(element.name), axes,
                   _pitch(element) if kind == "screw" else None,
                   bool(simbody and simbody.is_set("must_be_loop_joint")), element, scope)

    @property
    def coordinates(self):
        """Names of its coordinates, one for each axis."""
        return [self.name + suffix for suffix in JOINT_KINDS[self.kind].velocities[:len(self.axes)]]

    def parts(self):
        """The elements <axis> and <axis2>, with the arguments of `Builder.joint` from their <limit> and <dynamics>."""
        for key in ("axis", "axis2"):
            axis = self.element.part(key)
            if axis is None:
                continue
            axis.owner = f"{axis.owner}, {key}"
            limit, dynamics = (axis.part(tag) or SdfElement(Element(tag), axis.owner) for tag in ("limit", "dynamics"))
            ends = [limit.number_of("lower", -np.inf), limit.number_of("upper", np.inf)]
            bounds = [limit.number_of(bound, -1.0) for bound in ("velocity", "effort")]  # negative: no bound
            velocity, effort = (np.inf if x < 0.0 else x for x in bounds)
            yield axis, {
                "limits": [x if abs(x) < _UNLIMITED else np.copysign(np.inf, x) for x in ends],
                "velocity_limit": velocity, "effort_limit": effort, "damping": dynamics.number_of("damping", 0.0),
                "stiffness": dynamics.number_of("spring_stiffness", 0.0),
                "rest": dynamics.number_of("spring_reference", 0.0)}, dynamics.number_of("friction", 0.0)

    def properties(self, which):
        """Limits, damping and springs of the coordinates of these numbers."""
        given = [each for _, each, _ in self.parts()]
        if self.type == "continuous":
            given[0]["limits"] = [-np.inf, np.inf]
        return {key: [given[k][key] for k in which] for key in given[0]} if which else {}

    def home(self):
        """Initial positions, which files up to 1.9 may contain."""
        return {name: axis.number_of("initial_position") for name, (axis, _, _) in zip(self.coordinates, self.parts())
                if axis.part("initial_position")}

    def frictions(self):
        """Dry friction by coordinate."""
        return {name: friction for name, (_, _, friction) in zip(self.coordinates, self.parts()) if friction}

    def left_out(self, left, is_in_tree, keeps_friction):
        """Note properties of this joint that the robot lacks."""
        if self.kind == "fixed":
            return  # exporters write limits and damping for fixed joints, too
        for k, (_, given, friction) in enumerate(self.parts()):
            what = "cut joints" if not is_in_tree else f"{self.type} joints"
            is_surplus = k >= len(self.axes)
            is_idle = not is_in_tree or is_surplus
            if friction and not (keeps_friction and not is_surplus):
                _note(left, "left out the dry friction of joints", self.name)
            if np.isfinite(given["limits"]).any() and (is_idle or self.type == "continuous"):
                _note(left, f"left out limits of {what}", self.name)
            elif is_idle and np.isfinite([given["velocity_limit"], given["effort_limit"]]).any():
                _note(left, f"left out limits of {what}", self.name)
            if is_surplus and (given["damping"] or given["stiffness"]):
                _note(left, f"left out damping and springs of {what}", self.name)


def _note(left, what, name):
    if name not in left[what]:
        left[what].append(name)


def _direction(scope, joint, axis):
    """The axis of a joint, in the world."""
    xyz = axis.part("xyz", needed=True)
    direction = unit(f"{joint.owner}, {axis.xml.tag}", "xyz", axis.numbers_of("xyz", 3))
    frame = xyz.xml.get("expressed_in") or (MODEL if axis.is_set("use_parent_model_frame") else joint.name)
    with errors_at(f"{joint.owner}, {axis.xml.tag}, expressed_in"):
        return scope.world_pose(frame)[:3, :3] @ direction


def _pitch(joint):
    """Metres per radian. The older of the two units is radians per metre, of a left-handed thread."""
    if joint.part("screw_thread_pitch"):
        return joint.number_of("screw_thread_pitch") / (2.0 * np.pi)
    if joint.part("thread_pitch") is None:
        raise ModelError(f"{joint.owner}: no <screw_thread_pitch>, whose default differs from version to version")
    pitch = joint.number_of("thread_pitch")
    if pitch == 0.0:
        raise ModelError(f"{joint.owner}, thread_pitch: in radians per metre, must not be zero")
    return -1.0 / pitch


def tree_joint(builder, poses, joint, is_turned):
    """Declare a joint of the tree; if it is reversed, parent and child are exchanged, with the same coordinates.

    The frame of a body is that of its link. If the joint does not rotate about the link's origin, the link is fixed to
    a massless body that does. Two revolute joints replace a universal one that is reversed or has axes that are not
    orthogonal.
    """
    holder, held = (joint.child, joint.parent) if is_turned else (joint.parent, joint.child)
    sign = -1.0 if is_turned else 1.0
    steps = [(joint.name, joint.kind, list(range(len(joint.axes))))]
    if joint.kind == "universal" and (is_turned or abs(joint.axes[0] @ joint.axes[1]) > ORTHOGONALITY):
        steps = [(joint.coordinates[k], "revolute", [k]) for k in ((1, 0) if is_turned else (0, 1))]
    seat = poses[held].copy()
    seat[:3, 3] = joint.pose[:3, 3]
    for name, kind, which in steps:
        axes = [sign * joint.axes[k] for k in which]
        body, frame = held, poses[held]
        if name != steps[-1][0] or not _turns_in_place(kind, axes, frame[:3, 3] - seat[:3, 3]):
            body, frame = f"{name} frame", seat
            builder.body(body)
        builder.joint(name, kind, holder, body, placement=relative(poses[holder], frame), pitch=joint.pitch,
                      **_in_frame(axes, frame), **joint.properties(which))
        poses, holder = poses | {body: frame}, body
    if holder != held:
        builder.joint(holder, "fixed", holder, held, placement=relative(seat, poses[held]))


def cut_joint(builder, poses, joint):
    """Declare a joint that closes a loop; a screw has its springs about its axis."""
    given = joint.properties(range(len(joint.axes))) if joint.kind != "fixed" else {}
    springs = {key: given[key] for key in ("damping", "stiffness", "rest") if key in given}
    A, B = (relative(poses[end], joint.pose) for end in (joint.parent, joint.child))
    builder.loop(joint.name, joint.kind, joint.parent, joint.child, parent_placement=A, child_placement=B,
                 pitch=joint.pitch, **_in_frame(joint.axes, joint.pose), **springs)


def _in_frame(axes, frame):
    """Axes in the world as arguments for a joint in this frame; rounding errors of zero are set to zero."""
    turned = [frame[:3, :3].T @ axis for axis in axes]
    return {key: np.where(np.abs(axis) < ROUNDING, 0.0, axis) for key, axis in zip(("axis", "axis2"), turned)}


def _turns_in_place(kind, axes, arm):
    """True if a joint through one point leaves another point, at `arm` from it, at rest."""
    if kind in ("fixed", "prismatic"):
        return True
    if len(axes) == 1:
        arm = arm - (arm @ axes[0]) * axes[0]
    return np.linalg.norm(arm) < _IN_PLACE


def gearbox(builder, gear, joints, turned):
    """Couple the angles of two links relative to a third one: theta_2 = -ratio theta_1."""
    name = gear.element.word("gearbox_reference_body")
    with errors_at(f"{gear.element.owner}, gearbox_reference_body"):
        reference = gear.scope.body(name)
    ratio = gear.element.number_of("gearbox_ratio", 1.0)
    coefficients = {}
    for link, axis, factor in zip((gear.parent, gear.child), gear.axes, (ratio, 1.0)):
        found = [each for each in joints if {each.parent, each.child} == {reference, link} and each.kind == "revolute"
                 and each.name in turned and abs(each.axes[0] @ axis) > 1.0 - _PARALLEL]
        if not found:
            raise ModelError(f"{gear.element.owner}: no revolute joint of the tree about its axis between "
                             f"{shown(reference)} and {shown(link)}")
        same = (found[0].axes[0] @ axis > 0.0) == (found[0].child == link)
        if found[0].name in coefficients:
            raise ModelError(f"{gear.element.owner}: both of its links turn with {shown(found[0].name)}")
        coefficients[found[0].name] = factor if same else -factor
    builder.constraint(gear.name, "coupling", coefficients=coefficients)


def mimics(builder, joints, turned):
    """Couple the axes that mimic others."""
    by_name, leaders = {joint.name: joint for joint in joints}, {}
    for joint in joints:
        for name, (axis, _, _) in zip(joint.coordinates, joint.parts()):
            mimic = axis.part("mimic")
            if mimic is None:
                continue
            owner = f"{joint.element.owner}, {axis.xml.tag}, mimic"
            leader = by_name.get(joint.scope.prefix + mimic.text("joint"))
            if leader is None:
                raise ModelError(f"{owner}: unknown joint {shown(mimic.text('joint'))}, "
                                 f"{suggestion(mimic.text('joint'), by_name)}")
            which = {"axis": 0, "axis2": 1}.get(mimic.xml.get("axis", "axis"), 2)
            if which >= len(leader.coordinates):
                raise ModelError(f"{owner}: {shown(leader.name)} has no {mimic.xml.get('axis', 'axis')}")
            mimic_once(owner, name, leader.coordinates[which], leaders)
            for each in (joint, leader):
                if each.name not in turned:
                    raise ModelError(f"{owner}: {shown(each.name)} closes a loop, and has no coordinate to be coupled")
            multiplier = mimic.number_of("multiplier")
            offset = mimic.number_of("offset", 0.0) - multiplier * mimic.number_of("reference", 0.0)
            builder.constraint(f"{name} mimic", "coupling", offset=offset,
                               coefficients={name: 1.0, leader.coordinates[which]: -multiplier})
