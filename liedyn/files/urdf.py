"""Robots from URDF files, with their visual and collision shapes.

Loops, which URDF cannot express, come from elements of its dialects (`liedyn.files.urdf_loops`), from a sidecar file or
as an argument. Meshes are never opened.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from liedyn.files.declared_coordinates import fitting
from liedyn.files.file_bodies import declare_bodies, inertial_of
from liedyn.files.file_bodies import add_friction, require_width
from liedyn.files.known import URDF, strangers, told
from liedyn.files.paths import path_of, read_bytes
from liedyn.files.file_bodies import Shapes, mesh_path
from liedyn.files.urdf_loops import add_elements, add_loops, add_mimic, sidecar
from liedyn.files.xml_elements import Element, parse
from liedyn.machine.errors import InputError, ModelError, cut, errors_at, listed, shown, suggestion
from liedyn.model import GROUND, Builder
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.numbers import LARGEST
from liedyn.model.validation import warn

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, PathLike

_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def add_shapes(builder, root, links, path):
    """Declare the shapes of all links; returns omissions, with the names of the links."""
    shapes, colors = Shapes(builder), {}
    for material in root.xml.findall("material"):
        color = material.find("color")
        if color is not None and material.get("name"):
            colors[material.get("name")] = _numbers(color.get("rgba", ""))
    for link in links:
        for role in ("visual", "collision"):
            for element in _elements(link, role):
                try:
                    values = _shape(element, path)
                except ModelError as error:
                    shapes.left_out[str(error)] = link.name
                    continue
                material = element.xml.find("material")
                if material is not None:
                    color = material.find("color")
                    values["color"] = (_numbers(color.get("rgba", "")) if color is not None
                                       else colors.get(material.get("name")))
                name = element.xml.get("name") or f"{link.name} {role}"
                shapes.add(name, link.name, role=role, **values)
    return shapes.left_out


def _elements(link, role):
    return [type(link)(xml, f"{link.owner}, {role}") for xml in link.xml.findall(role)]


def _shape(element, path):
    """Arguments of `Builder.shape`."""
    geometry = element.part("geometry", needed=True)
    given = {"placement": element.pose()}
    for kind, keys in _SIZES.items():
        part = geometry.part(kind)
        if part:
            return given | {"kind": kind, "size": [x for key in keys for x in part.numbers(key)]}
    mesh = geometry.part("mesh", needed=True)
    scale = mesh.numbers("scale") if "scale" in mesh.xml.attrib else [1.0] * 3
    return given | {"kind": "mesh", "mesh": mesh_path(mesh.text("filename"), path),
                    "scale": scale * 3 if len(scale) == 1 else scale}


def _numbers(text):
    """Four numbers from 0 to 1 in a text, or None: a shape is not omitted for a wrong color."""
    try:
        found = np.array([float(word) for word in text.split()])
    except ValueError:
        return None
    return np.clip(found, 0.0, 1.0).tolist() if len(found) == 4 and np.isfinite(found).all() else None


_XACRO = "a xacro template, not a URDF: expand it first (`xacro robot.xacro > robot.urdf`)"
TURNS, DEGREES = 4.0 * np.pi, 360.0
"""Limits of angles between these look like degrees [rad]."""
_KINDS = {"fixed": "fixed", "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
          "planar": "planar", "floating": "free"}
_BOUNDS = ("lower", "upper", "velocity", "effort")  # for one coordinate


def load_urdf(path: PathLike, floating_base: bool = False, base_name: str = "base",
              loops: dict[str, Any] | list[tuple[Any, ...]] | None = None, gravity: ArrayLike = (0.0, 0.0, -9.81),
              friction: float | None = None) -> Robot:
    """Read a robot from a URDF file.

    Links become bodies; a link without <inertial> is massless; a root link named ground is the ground. Joints keep
    their names, limits and damping; a `planar` joint moves in the plane orthogonal to its axis. A joint that mimics
    another one is coupled to it by a constraint, ``<joint> mimic``. Visual and collision shapes, with their colors and
    the files of their meshes, are kept for pictures; sensors and transmissions are ignored.

    Loops are read from the elements <loop> and <coupling> of URDF+ (Chignoli et al., 2024; ``independent="false"`` of
    its joints makes the others the default choice of independent coordinates), from the element <constraint> proposed
    to URDF (ros/urdfdom_headers, pull request 108, as of 2026) and from a sidecar file or `loops`.

    Parameters
    ----------
    path : str or Path
    floating_base : bool
        If true, the root link has a free joint to the ground; else it is fixed. Free joints, this one and those of the
        file (``floating``), are not driven unless an actuator is declared: the inputs are the other joints.
    base_name : str
        Name of the joint between the ground and the root link.
    loops : dict or list of tuple, optional
        Tables as in ``[loops.x]`` of a robot's TOML file, by name. Instead of `parent` a table may have `parent_frame`,
        the name of a link, or of a joint, whose frame is that of its child link; likewise `child_frame`. Or pairs of
        such frames that coincide, ``("tip", "hook")``, or are joined, ``("tip", "hook", "spherical")``; the loop is
        called ``tip hook``. Default: those of the file ``robot.loops.toml`` beside ``robot.urdf``, if there is one;
        else of ``robot.yaml`` with `closed_loop`, in the format of example-parallel-robots (read with the extra
        `yaml`), with its types of joints, and its motors as actuators.
    gravity : array_like, shape (3,)
        [m/s^2]
    friction : float, optional
        Keep the dry friction of joints as ``<coordinate> friction`` (:meth:`Builder.friction`): force elements that are
        smooth below this rate [rad/s, m/s], or, with 0, friction that really sticks. Default: it is omitted, with a
        warning.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file is not a URDF, is a template (xacro), or does not describe a robot; the message names the element.
    InputError
        `floating_base` is not True or False, or `loops` is neither a dictionary nor a list of pairs.

    Warns
    -----
    ModelWarning
        The file has properties that the robot lacks: dry friction in joints, safety controllers, limits of continuous,
        planar and floating joints, limits of accelerations, Drake's extensions, joints within <gazebo>. Or it has
        elements or attributes that URDF does not have, at any depth: each is reported with the most similar name of
        URDF. Or a link has an inertia that is physically impossible, as in some published files; or the declared
        independent coordinates do not fit the constraints, and are ignored. Or limits of angles look like degrees.

    Examples
    --------
    >>> robot = load_urdf("solo12.urdf", floating_base=True)  # doctest: +SKIP
    """
    path = path_of(path)
    for name, value, kind in (("floating_base", floating_base, bool | np.bool_), ("base_name", base_name, str),
                              ("loops", loops, dict | list | tuple | None)):
        if not isinstance(value, kind):
            raise InputError(f"load_urdf, {name}: cannot be {shown(value)}")
    require_width("load_urdf", friction)
    with errors_at(path):
        root = _parse(path)
        source = path.name.encode(errors="replace").decode()  # file names may be any bytes
        links, joints = root.named("link"), root.named("joint")
        beside = sidecar(path) if loops is None else None
        kinds = {joint.name: _kind(joint) for joint in joints}
        if beside:
            beside.change(kinds)
        base = _base(links, joints, base_name, floating_base)
        builder = Builder(root.text("name"), gravity=gravity, source=source,
                          independent=_independent(joints, kinds, base))
        declare_bodies(builder, {link.name: _inertial(link) for link in links if link.name != GROUND})
        for name, (kind, child) in base.items():
            builder.joint(name, kind, GROUND, child, driven=kind != "free")
        for joint in joints:
            _add_joint(builder, joint, kinds[joint.name], beside.axes.get(joint.name) if beside else None)
        leaders = {}
        for joint in joints:
            add_mimic(builder, joint, kinds, leaders)
        rubbing = _rubbing(joints, kinds)
        kept = {} if friction is None else {name: x for name, x in rubbing.items() if JOINT_KINDS[kinds[name]].nv == 1}
        add_friction(builder, kept, friction)
        add_elements(builder, root, joints, kinds)
        frames = {GROUND: GROUND} | {joint.name: joint.end("child") for joint in joints}
        frames |= {link.name: link.name for link in links}
        if beside:
            beside.add_to(builder, frames)
        add_loops(builder, frames, loops or {})
        not_drawn = add_shapes(builder, root, links, path)
        robot, left_out = builder.build(), _left_out(root, joints)
        if rubbing.keys() - kept:
            left_out["the dry friction of joints"] = [name for name in rubbing if name not in kept]
        if not_drawn:
            left_out["shapes of links"] = list(not_drawn)
    _tell(cut(path.name), _in_degrees(joints, kinds), left_out, root)
    return fitting(robot, path.name)


def _in_degrees(joints, kinds):
    """Joints whose limits of angles look like degrees."""
    return [joint.name for joint in joints if kinds[joint.name] == "revolute"
            and any(TURNS < abs(x) <= DEGREES for x in _limits(joint, "revolute").get("limits", ()))]


def _tell(file, turned, left_out, root):
    """Warn of what looks wrong in a file, of what the robot lacks, and of what URDF does not have."""
    if turned:
        warn(f"{file}: limits of {listed(turned)} are more than two turns: are they in degrees? URDF has radians")
    for what, names in left_out.items():
        warn(f"{file}: left out {what}: {listed(names)}")
    for what, texts in strangers(URDF, root.xml).items():
        warn(f"{file}: left out {what}: {told(texts)}")


def _parse(path):
    """The element <robot>."""
    data = read_bytes(path)
    try:
        xml = parse(data, "robot", "a URDF")
    except ModelError as error:
        if b"<xacro:" in data and "unbound prefix" in str(error):
            raise ModelError(_XACRO) from None
        raise
    for each in xml.iter():
        if any("/xacro}" in name for name in (each.tag, *each.attrib)) or any("${" in text for text in _texts(each)):
            raise ModelError(_XACRO)
    return Element(xml, "robot")


def _texts(xml):
    return [*xml.attrib.values(), xml.text or "", xml.tail or ""]


def _kind(joint):
    """The kind of a joint in liedyn."""
    kind = joint.text("type")
    if kind not in _KINDS:
        raise ModelError(f"{joint.owner}, type: unknown {shown(kind)}, {suggestion(kind, _KINDS)}")
    return _KINDS[kind]


def _base(links, joints, name, floats):
    """The joint between the ground and the root link: kind and child by name; empty if that link is the ground."""
    children = {joint.end("child") for joint in joints}
    names = [link.name for link in links]
    roots = [name for name in names if name not in children]
    if len(roots) > 1 and children.issubset(names):
        raise ModelError(f"no joint holds {listed(roots)}: a URDF has one root link, join the others to it")
    if GROUND in children:
        raise ModelError(f"link {shown(GROUND)}: only a root link can be the ground; call it otherwise")
    if roots == [GROUND]:
        if floats:
            raise ModelError(f"link {shown(GROUND)}: the ground cannot float; call the root link otherwise")
        return {}
    # otherwise the builder reports the error
    return {name: ("free" if floats else "fixed", roots[0])} if len(roots) == 1 else {}


def _independent(joints, kinds, base):
    """Independent coordinates of URDF+, in which joints can be marked as dependent."""
    if all(joint.xml.get("independent") != "false" for joint in joints):
        return ()
    named = [(name, kind) for name, (kind, _) in base.items()]
    named += [(joint.name, kinds[joint.name]) for joint in joints if joint.xml.get("independent") != "false"]
    return [name + suffix for name, kind in named for suffix in JOINT_KINDS[kind].velocities]


def _inertial(link):
    inertial = link.part("inertial")
    if inertial is None:
        return None
    mass, pose = inertial.part("mass", needed=True).number("value"), inertial.pose()
    inertia = inertial.part("inertia", needed=True)
    return inertial_of(link.owner, mass, pose, [
        inertia.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")])


def _add_joint(builder, joint, kind, axes):
    """Declare a joint; `axes` are those of a kind from a sidecar file."""
    dynamics = _dynamics(joint)
    if axes is None:
        axes = {"axis": joint.axis()} if len(JOINT_KINDS[kind].axes) == 1 else {}
    builder.joint(
        joint.name, kind, joint.end("parent"), joint.end("child"), placement=joint.pose(),
        **axes, damping=dynamics.number("damping", 0.0) if dynamics and kind != "fixed" else 0.0, driven=kind != "free",
        **_limits(joint, kind))


def _dynamics(joint):
    """The element <dynamics>, which exporters write for fixed joints, too; <joint_properties> is its former name."""
    return joint.part("dynamics") or joint.part("joint_properties")


def _rubbing(joints, kinds):
    """Dry friction of joints by name."""
    given = {joint.name: _dynamics(joint) for joint in joints if kinds[joint.name] != "fixed"}
    found = {name: dynamics.number("friction", 0.0) for name, dynamics in given.items() if dynamics}
    return {name: x for name, x in found.items() if x}


def _limits(joint, kind):
    """Limits of the joints that have one coordinate; missing ones are infinite, and so are the largest numbers."""
    limit = joint.part("limit")
    if limit is None or kind not in ("revolute", "prismatic"):
        return {}
    limits = {f"{key}_limit": _bound(limit.number(key, np.inf)) for key in ("velocity", "effort")}
    if joint.text("type") != "continuous":
        limits["limits"] = _bound(limit.number("lower", -np.inf)), _bound(limit.number("upper", np.inf))
    return limits


def _bound(value):
    return np.copysign(np.inf, value) if abs(value) >= LARGEST else value


def _left_out(root, joints):
    """Properties that the robot lacks, with the names of the parts that have them."""
    found = defaultdict(list)
    for joint in joints:
        kind, limit = joint.text("type"), joint.part("limit")
        bounds = {"continuous": ("lower", "upper"), "planar": _BOUNDS, "floating": _BOUNDS}.get(kind, ())
        if kind == "fixed" and joint.part("mimic"):
            found["what fixed joints mimic"].append(joint.name)
        if limit and any(limit.number(key, 0.0) for key in bounds):
            found[f"limits of {kind} joints"].append(joint.name)
        if joint.part("safety_controller"):
            found["the safety controllers of joints"].append(joint.name)
    for each in root.xml.iterfind("gazebo//joint"):
        found["joints within <gazebo>, which may close loops"].append(each.get("name", ""))
    if any(link.name == GROUND and link.part("inertial") for link in root.named("link")):
        found["the inertia of the root link"].append(GROUND)
    return found
