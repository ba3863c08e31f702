"""Robots from URDF files.

Loops, which URDF cannot express, come as an argument or in a sidecar file. Meshes are never opened.
"""

import os
import re
import warnings
from collections import defaultdict
from xml.etree import ElementTree

import numpy as np

from liedyn.errors import InputError, ModelError, ModelWarning, cut, errors_at, listed, shown, suggestion
from liedyn.io.files import path_of, read_bytes
from liedyn.io.toml import as_table, declare, read_document, take_section
from liedyn.model import GROUND, Builder, placement
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.numbers import numbers

_KINDS = {"fixed": "fixed", "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
          "planar": "planar", "floating": "free"}
_ELEMENTS = {"link", "joint", "material", "transmission", "gazebo", "sensor"}  # of a robot, in URDF
_BOUNDS = ("lower", "upper", "velocity", "effort")  # of one coordinate
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)


def load_urdf(path, floating_base=False, base_name="base", loops=None, gravity=(0.0, 0.0, -9.81)):
    """Read a robot from a URDF file.

    Links become bodies; a link without <inertial> is massless. Joints keep their names, limits and damping; a `planar`
    joint moves in the plane orthogonal to its axis. Shapes, materials, sensors and transmissions are passed over.

    Parameters
    ----------
    path : str or Path
    floating_base : bool
        Join the root link to the ground by a free joint; else it is fixed.
    base_name : str
        Name of the joint between the ground and the root link.
    loops : dict, optional
        Tables as in ``[loops.x]`` of a robot's TOML file, by name. Instead of `parent` a table may have `parent_frame`,
        the name of a link, or of a joint, whose frame is that of its child link; likewise `child_frame`. Default: those
        of the file ``robot.loops.toml`` beside ``robot.urdf``, if there is one.
    gravity : array_like, shape (3,)
        [m/s^2]

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file is not a URDF, has mimic joints, or does not describe a robot; the message names the element.
    InputError
        `floating_base` is not True or False, or `loops` no dictionary.

    Warns
    -----
    ModelWarning
        The file says what the robot will not have: dry friction in joints, safety controllers, limits of continuous,
        planar and floating joints, elements that URDF does not have. Or a link has an inertia that no real body has,
        as some of published files do.

    Examples
    --------
    >>> robot = load_urdf("solo12.urdf", floating_base=True)  # doctest: +SKIP
    """
    path = path_of(path)
    for name, value, kind in (("floating_base", floating_base, bool | np.bool_), ("base_name", base_name, str),
                              ("loops", loops, dict | None)):
        if not isinstance(value, kind):
            raise InputError(f"load_urdf, {name}: cannot be {shown(value)}")
    with errors_at(path):
        root = _parse(path)
        source = path.name.encode(errors="replace").decode()  # file names may be any bytes
        builder = Builder(root.text("name"), gravity=gravity, source=source)
        links, joints = root.named("link"), root.named("joint")
        for link in links:
            _add_body(builder, link)
        _add_base(builder, links, joints, base_name, "free" if floating_base else "fixed")
        for joint in joints:
            _add_joint(builder, joint)
        frames = {joint.name: _end(joint, "child") for joint in joints} | {link.name: link.name for link in links}
        if loops is None:
            _add_sidecar_loops(builder, frames, path.with_suffix(".loops.toml"))
        else:
            _add_loops(builder, frames, loops)
        robot, left_out = builder.build(), _left_out(root, joints)
    for what, names in left_out.items():
        warnings.warn(f"{cut(path.name)}: left out {what}: {listed(names)}", ModelWarning, stacklevel=2)
    return robot


class _Element:
    """An XML element, and the link or joint it belongs to, which errors name."""

    def __init__(self, xml, owner):
        self.xml, self.owner = xml, owner

    name = property(lambda self: self.xml.get("name"))

    def named(self, tag):
        """The child elements of this tag, which must have names and own their parts."""
        found = [_Element(xml, tag) for xml in self.xml.findall(tag)]
        for each in found:
            each.owner = f"{tag} {shown(each.text('name'))}"
        return found

    def part(self, tag, needed=False):
        """The one child element of this tag, or None."""
        found = self.xml.findall(tag)
        if len(found) > 1 or (needed and not found):
            raise ModelError(f"{self.owner}: {len(found) or 'no'} <{tag}> in <{self.xml.tag}>, which has one")
        return _Element(found[0], self.owner) if found else None

    def text(self, key):
        """An attribute that must be there."""
        if key not in self.xml.attrib:
            raise ModelError(f"{self.owner}: missing {key!r} of <{self.xml.tag}>")
        return self.xml.get(key)

    def numbers(self, key):
        """The numbers in an attribute that must be there."""
        words = self.text(key).split()
        if not all(map(_NUMBER.fullmatch, words)):
            raise ModelError(f"{self.owner}, {self.xml.tag}, {key}: expected numbers, got {shown(self.text(key))}")
        return [float(word) for word in words]

    def number(self, key, default=None):
        """The number in an attribute; where there is none the default value, if that is given."""
        if default is not None and key not in self.xml.attrib:
            return default
        numbers = self.numbers(key)
        if len(numbers) != 1:
            raise ModelError(f"{self.owner}, {self.xml.tag}, {key}: expected one number, got {shown(self.text(key))}")
        return numbers[0]

    def pose(self):
        """The pose in the element's <origin>."""
        origin = self.part("origin")
        given = {key: origin.numbers(key) for key in ("xyz", "rpy") if origin and key in origin.xml.attrib}
        with errors_at(f"{self.owner}, origin", owner="placement"):
            return placement(**given)


def _parse(path):
    """The element <robot>."""
    data = read_bytes(path)
    try:
        xml = ElementTree.fromstring(data)
    except (SyntaxError, ValueError, LookupError) as error:  # the last two: of encodings
        raise ModelError(f"not a URDF: {error}") from None
    namespace = xml.tag[: xml.tag.find("}") + 1]  # which some files put everything into
    for each in xml.iter():
        each.tag = each.tag.removeprefix(namespace)
    if xml.tag != "robot":
        raise ModelError(f"not a URDF: expected <robot>, got <{cut(xml.tag)}>")
    return _Element(xml, "robot")


def _add_body(builder, link):
    inertial = link.part("inertial")
    if inertial is None:
        builder.body(link.name)
        return
    mass, pose = inertial.part("mass", needed=True).number("value"), inertial.pose()
    inertia = inertial.part("inertia", needed=True)
    xx, xy, xz, yy, yz, zz = (inertia.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    J = numbers(link.owner, "inertia", [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], (3, 3))
    R = pose[:3, :3]
    builder.body(link.name, mass=mass, com=pose[:3, 3], inertia=R @ J @ R.T)


def _add_base(builder, links, joints, name, kind):
    children = {_end(joint, "child") for joint in joints}
    roots = [link.name for link in links if link.name not in children]
    if len(roots) == 1:  # else there is no tree, and the builder knows why
        builder.joint(name, kind, parent=GROUND, child=roots[0])


def _end(joint, tag):
    """The name of a joint's parent or child link."""
    return joint.part(tag, needed=True).text("link")


def _add_joint(builder, joint):
    if mimic := joint.part("mimic"):
        other = shown(mimic.xml.get("joint"))
        raise ModelError(f"{joint.owner}: mimics {other}, which a tree joint of liedyn cannot do")
    kind = joint.text("type")
    if kind not in _KINDS:
        raise ModelError(f"{joint.owner}, type: unknown {shown(kind)}, {suggestion(kind, _KINDS)}")
    axis, dynamics = joint.part("axis"), _dynamics(joint)
    direction = axis.numbers("xyz") if axis and "xyz" in axis.xml.attrib else (1.0, 0.0, 0.0)
    builder.joint(
        joint.name, _KINDS[kind], _end(joint, "parent"), _end(joint, "child"), placement=joint.pose(),
        axis=direction if JOINT_KINDS[_KINDS[kind]].axes else None,
        damping=dynamics.number("damping", 0.0) if dynamics and kind != "fixed" else 0.0, **_limits(joint, kind))


def _dynamics(joint):
    """The element <dynamics>, which exporters write for fixed joints too; <joint_properties> is its former name."""
    return joint.part("dynamics") or joint.part("joint_properties")


def _limits(joint, kind):
    """Limits of the joints that have one coordinate; missing ones are infinite."""
    limit = joint.part("limit")
    if limit is None or kind not in ("revolute", "continuous", "prismatic"):
        return {}
    limits = {f"{key}_limit": limit.number(key, np.inf) for key in ("velocity", "effort")}
    if kind != "continuous":
        limits["limits"] = limit.number("lower", -np.inf), limit.number("upper", np.inf)
    return limits


def _left_out(root, joints):
    """What the file says and the robot does not have, with the names of what it says it about."""
    found = defaultdict(list)
    for joint in joints:
        kind, dynamics, limit = joint.text("type"), _dynamics(joint), joint.part("limit")
        bounds = {"continuous": ("lower", "upper"), "planar": _BOUNDS, "floating": _BOUNDS}.get(kind, ())
        if kind != "fixed" and dynamics and dynamics.number("friction", 0.0):
            found["the dry friction of joints"].append(joint.name)
        if limit and any(limit.number(key, 0.0) for key in bounds):
            found[f"limits of {kind} joints"].append(joint.name)
        if joint.part("safety_controller"):
            found["the safety controllers of joints"].append(joint.name)
    others = dict.fromkeys(each.tag for each in root.xml if each.tag not in _ELEMENTS)
    return found | ({"elements that URDF does not have": list(others)} if others else {})


def _add_sidecar_loops(builder, frames, sidecar):
    if not os.path.lexists(sidecar):
        return
    with errors_at(sidecar.name):
        document = read_document(sidecar)
        loops = take_section(document, "loops")
        for key in document:
            raise ModelError(f"unknown key {shown(key)}: only [loops.x] tables stand in a sidecar file")
        _add_loops(builder, frames, loops)


def _add_loops(builder, frames, loops):
    for name, table in loops.items():
        with errors_at(f"[loops.{cut(str(name))}]"):
            table = _with_bodies(as_table(table), frames)
        declare(builder, "loops", name, table)


def _with_bodies(table, frames):
    """The table with `parent_frame` and `child_frame` replaced by the bodies whose frames they are."""
    table = dict(table)
    for body in ("parent", "child"):
        frame = table.pop(f"{body}_frame", None)
        if frame is None:
            continue
        if body in table:
            raise ModelError(f"give {body} or {body}_frame, not both")
        if not isinstance(frame, str) or frame not in frames:
            raise ModelError(f"{body}_frame: unknown {shown(frame)}, {suggestion(frame, frames)}")
        table[body] = frames[frame]
    return table
