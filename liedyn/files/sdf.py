"""Robots from SDFormat files, 1.4 to 1.11.

The file's joints are a graph: a spanning tree of it becomes the robot's tree, the others become cut joints of the same
kind. Visual and collision shapes are read; meshes are never opened. Included models are put in their places
(`liedyn.files.sdf_includes`).
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from liedyn.files.file_bodies import declare_bodies, inertial_of
from liedyn.files.file_bodies import add_friction, require_width
from liedyn.files.known import SDF, strangers, told
from liedyn.files.paths import path_of, read_bytes
from liedyn.files.sdf_includes import FOLDERS, with_included
from liedyn.files.sdf_joints import SdfJoint, cut_joint, gearbox, mimics, tree_joint
from liedyn.files.sdf_scopes import Scope, SdfElement, own_pose, relative, truth
from liedyn.files.file_bodies import Shapes, mesh_path
from liedyn.files.xml_elements import parse
from liedyn.machine.errors import InputError, ModelError, cut, errors_at, listed, shown, suggestion
from liedyn.model import GROUND, Builder
from liedyn.model.validation import warn

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, PathLike


def spanning_tree(bodies, joints, canonical):
    """Choose the joints of the tree: for each body the first declared one that connects it to the ground.

    `bodies` are names in the order of declaration, `joints` objects with `parent` and `child` in order of preference;
    `canonical` is the body that becomes a root if all bodies of its part of the mechanism have a joint as child.
    Returns `tree`, by number of a joint True if it is reversed, with its parent as child, and the roots: bodies to be
    connected to the ground, one for each part of the mechanism without a joint to it; that with `canonical` comes
    first.
    """
    first = {}
    for k, joint in enumerate(joints):
        first.setdefault(joint.child, k)
    tree, roots, reached = {}, [], {GROUND}
    _grow(tree, reached, joints, first)
    for body in [canonical, *bodies]:
        if body in reached:
            continue
        part = _joined(body, bodies, joints)
        free = [each for each in part if each not in first]
        root = next((each for each in [canonical, *free] if each in (free or part)), part[0])
        roots.append(root)
        reached.add(root)
        _grow(tree, reached, joints, first)
    return tree, roots


def _grow(tree, reached, joints, first):
    """Add joints to the tree until no joint leads from it to a body outside."""
    while True:
        forward = [k for k, each in enumerate(joints) if each.parent in reached and each.child not in reached]
        backward = [k for k, each in enumerate(joints) if each.child in reached and each.parent not in reached]
        preferred = [k for k in forward if first[joints[k].child] == k]
        if not forward + backward:
            return
        k = (preferred + forward + backward)[0]
        tree[k] = not forward
        reached.add(joints[k].child if forward else joints[k].parent)


def _joined(body, bodies, joints):
    """The bodies connected to this one by joints, including itself, in the order of declaration."""
    found, size = {body}, 0
    while len(found) > size:
        size = len(found)
        for joint in joints:
            if joint.parent in found or joint.child in found:
                found |= {joint.parent, joint.child}
    return [each for each in bodies if each in found]


_SIZES = {"box": (("size", 3),), "sphere": (("radius", 1),), "cylinder": (("radius", 1), ("length", 1)),
          "capsule": (("radius", 1), ("length", 1)), "ellipsoid": (("radii", 3),)}


def add_shapes(builder, links, path):
    """Declare the shapes of all links; returns omissions, with the names of the links."""
    shapes = Shapes(builder)
    for body, link in links.items():
        for role in ("visual", "collision"):
            for xml in link.xml.findall(role):
                element = SdfElement(xml, f"{link.owner}, {role}")
                try:
                    values = _shape(element, path)
                except ModelError as error:
                    shapes.left_out[str(error)] = body
                    continue
                if values:
                    shapes.add(f"{body} {xml.get('name') or role}", body, role=role, **values)
    return shapes.left_out


def _shape(element, path):
    """Arguments of `Builder.shape`; None for empty geometry."""
    geometry, (pose, frame) = element.part("geometry", needed=True), own_pose(element)
    if frame:
        raise ModelError(f"{element.owner}: its pose is relative to {shown(frame)}, not to its link")
    given = {"placement": pose, "color": _color(element)}
    for kind, keys in _SIZES.items():
        part = geometry.part(kind)
        if part:
            return given | {"kind": kind, "size": [x for key, count in keys for x in part.numbers_of(key, count)]}
    plane, mesh = geometry.part("plane"), geometry.part("mesh")
    if plane:
        return given | {"kind": "plane", "placement": pose @ _facing(plane.numbers_of("normal", 3, (0.0, 0.0, 1.0)))}
    if mesh:
        return given | {"kind": "mesh", "mesh": mesh_path(mesh.word("uri"), path),
                        "scale": mesh.numbers_of("scale", 3, (1.0,) * 3)}
    if geometry.part("empty") or not len(geometry.xml):
        return {}
    raise ModelError(f"{element.owner}: a {shown(geometry.xml[0].tag)} is not drawn")


def _facing(normal):
    """A pose whose z axis is the normal."""
    z = np.array(normal) / (np.linalg.norm(normal) or 1.0)
    x = np.cross(np.eye(3)[np.abs(z).argmin()], z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return pose


def _color(element):
    material = element.part("material")
    diffuse = material and material.part("diffuse")
    if not diffuse:
        return None
    try:
        found = np.array([float(word) for word in (diffuse.xml.text or "").split()])
    except ValueError:
        return None
    return np.clip(found, 0.0, 1.0).tolist() if len(found) in (3, 4) and np.isfinite(found).all() else None


NOT_FOUND = f"which is not found: neither beside the file, nor above it, nor in a folder of {', '.join(FOLDERS)}"
_VERSIONS = [(1, minor) for minor in range(4, 12)]
_MOMENTS = ("ixx", "iyy", "izz")


def load_sdf(path: PathLike, model: str | None = None, floating_base: bool = True, base_name: str = "base",
             gravity: ArrayLike | None = None, friction: float | None = None) -> Robot:
    """Read a robot from an SDFormat file.

    Links become bodies; those of models within the model are named ``model::link``, their joints likewise. Joints keep
    their names, limits, damping and springs; universal ones have the coordinates ``joint.angle1`` and ``joint.angle2``.
    A body's joint is the first one of the file that connects it to the ground; joints declared in the opposite
    direction are reversed, which does not change their coordinates (but inverts the quaternion of a ball). All others
    close loops: cut joints of the same kinds, closed at zero coordinates, which are the poses of the file. A joint that
    rotates about a point other than the origin of its link has a massless body ``joint frame`` there. Frames keep their
    names; in models within the model they are named as links are. Included models (``model://NAME`` and relative
    paths) are looked for beside the file, in the folders above it, and in those of GZ_SIM_RESOURCE_PATH,
    IGN_GAZEBO_RESOURCE_PATH, SDF_PATH and GAZEBO_MODEL_PATH. Gearboxes, and axes that mimic others (``x mimic``),
    become couplings. Visual and collision shapes are kept for pictures; sensors and plugins are ignored.

    Parameters
    ----------
    path : str or Path
    model : str, optional
        Name of the model, if the file has several.
    floating_base : bool
        If true, parts without a joint to the world get a free joint to the ground, whose home is the pose in the file;
        else they are fixed. Links of static models are always fixed. Free joints are not driven unless an actuator is
        declared: the inputs are the other joints.
    base_name : str
        Name of that joint; if there are several such parts, the joints after the first are called ``base link``.
    gravity : array_like, shape (3,), optional
        [m/s^2] Default: that of the model's world, else (0, 0, -9.81).
    friction : float, optional
        Keep the dry friction of joints as ``<coordinate> friction`` (:meth:`Builder.friction`): force elements that are
        smooth below this rate [rad/s, m/s], or, with 0, friction that really sticks. Default: it is omitted, with a
        warning; that of cut joints always is.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file is not SDFormat, includes files for the model that are not there, asks for inertia to be computed from
        shapes, or does not describe a robot; the message names the element.
    InputError
        `floating_base` is not True or False, or a name is not text.

    Warns
    -----
    ModelWarning
        The file has properties that the robot lacks: dry friction in joints, limits of cut joints, links without
        gravity, Drake's extensions. Or its model has elements or attributes that SDFormat does not have, at any depth:
        each is reported with the most similar name of SDFormat. Or masses are SDFormat's defaults. Or a link has an
        inertia that is physically impossible.

    Examples
    --------
    >>> robot = load_sdf("cassie.sdf")  # doctest: +SKIP
    """
    path = path_of(path)
    for name, value, kind in (("model", model, str | None), ("floating_base", floating_base, bool | np.bool_),
                              ("base_name", base_name, str)):
        if not isinstance(value, kind):
            raise InputError(f"load_sdf, {name}: cannot be {shown(value)}")
    require_width("load_sdf", friction)
    with errors_at(path):
        root = _parse(path)
        left = defaultdict(list)
        try:
            world, scope = _choose(root, model, left)
            robot = _read(world, scope, left, (floating_base, base_name),
                          _gravity(world.element) if gravity is None else gravity,
                          path, friction)
        except RecursionError:
            raise ModelError("its models lie too deep within one another, or frames of them in a circle") from None
    for what, names in left.items():
        warn(f"{cut(path.name)}: {what}: {listed(names)}")
    for what, texts in strangers(SDF, scope.element.xml).items():
        warn(f"{cut(path.name)}: left out {what}: {told(texts)}")
    return robot


def _parse(path):
    """The element <sdf> of a known version, with included models in their places."""
    xml = parse(read_bytes(path), "sdf", "SDFormat")
    _as_now(xml)
    with_included(xml, path, _as_now)
    return SdfElement(xml, "sdf")


def _as_now(xml):
    """Bring the root of a file of a known version into the form of today's."""
    version = SdfElement(xml, "sdf").text("version")
    first, last = ((".".join(map(str, each))) for each in (_VERSIONS[0], _VERSIONS[-1]))
    if version not in {f"{major}.{minor}" for major, minor in _VERSIONS}:
        raise ModelError(f"sdf, version: {first} to {last} are read, got {shown(version)}")
    if version == first:  # axes are then in the frame of the model by default
        for axis in [each for tag in ("axis", "axis2") for each in xml.iter(tag)]:
            if axis.find("use_parent_model_frame") is None:
                ElementTree.SubElement(axis, "use_parent_model_frame").text = "true"


def _choose(root, name, left):
    """The scopes of the world and of the model to be read."""
    worlds = root.xml.findall("world") or [ElementTree.Element("world")]
    worlds[0].extend(root.xml.findall("model"))
    if len(worlds) > 1:
        raise ModelError(f"holds {len(worlds)} worlds, where one is read")
    element = SdfElement(worlds[0], "world")
    models = [each.text("name") for each in element.named("model")]
    included = [each.word("uri", "?") for each in element.all("include") + root.all("include")]
    if not models:
        raise ModelError("holds no <model>" + (f", but includes {listed(included)}, {NOT_FOUND}" if included else ""))
    if included:
        left["left out included files that are not there"] = included
    if name is None and len(models) > 1:
        raise ModelError(f"holds {len(models)} models, {listed(models)}: name one, model={shown(models[0])}")
    name = models[0] if name is None else name
    if name not in models:
        raise ModelError(f"no model {shown(name)}, {suggestion(name, models)}")
    world = Scope(element, chosen=name)
    return world, world.inner[name]


def _gravity(world):
    """Gravity of the world; for a file with only a model, that of an empty world."""
    alone = all(each.tag == "model" for each in world.xml)
    return (0.0, 0.0, -9.81) if alone else world.numbers_of("gravity", 3, (0.0, 0.0, -9.8))


@dataclass(frozen=True)
class _Held:
    """Represents the fixed connection of a static link to the world."""

    child: str
    parent: str = GROUND
    last: bool = False


def _read(world, scope, left, base, gravity, path, friction):
    floating_base, base_name = base
    scopes = scope.scopes()
    poses, elements, static = _links(scopes, left)
    if not elements:
        raise ModelError(f"{scope.element.owner}: has no link")
    joints, gears = _joints([*scopes, world], poses, static, left)
    graph = [_Held(name) for name in static] + sorted(joints, key=lambda joint: joint.last)
    tree, roots = spanning_tree(list(elements), graph, scope.canonical())
    turned = {graph[k].name: back for k, back in tree.items() if k >= len(static)}
    bases = {root: base_name if k == 0 else f"{base_name} {root}" for k, root in enumerate(roots)}
    home = {bases[root]: _coordinates(poses[root]) for root in roots} if floating_base else {}
    for joint in joints:
        home |= joint.home() if joint.name in turned else {}
    source = path.name.encode(errors="replace").decode()  # file names may be any bytes
    builder = Builder(scope.element.name, gravity=gravity, home=home, source=source)
    declare_bodies(builder, {name: _inertial(name, link, left) for name, link in elements.items()})
    for name in static:
        builder.joint(f"{name} static", "fixed", GROUND, name, placement=poses[name])
    for root, name in bases.items():
        if floating_base:
            builder.joint(name, "free", GROUND, root, driven=False)
        else:
            builder.joint(name, "fixed", GROUND, root, placement=poses[root])
    for joint in joints:
        if joint.name in turned:
            tree_joint(builder, poses, joint, turned[joint.name])
        else:
            cut_joint(builder, poses, joint)
        joint.left_out(left, joint.name in turned, friction is not None)
        if friction is not None:
            add_friction(builder, joint.frictions(), friction)
    for gear in gears:
        gearbox(builder, gear, joints, turned)
    mimics(builder, joints, turned)
    _declare_frames(builder, scopes, poses)
    not_drawn = add_shapes(builder, elements, path)
    if not_drawn:
        left["left out shapes of links"] = list(not_drawn)
    return builder.build()


def _links(scopes, left):
    """Poses of links in the world by name, with the ground; their elements; names of those of static models."""
    poses, elements, static = {GROUND: np.eye(4)}, {}, []
    for each in scopes:
        _refuse(each, left)
        for name in each.things:
            each.pose(name)  # checks that every frame has a pose
        for link in each.links():
            name = each.prefix + link.name
            elements[name], poses[name] = link, each.world_pose(link.name)
            if _is_static(each):
                static.append(name)
    return poses, elements, static


def _joints(scopes, poses, static, left):
    """Joints between links that move, and gearboxes."""
    joints, gears = [], []
    for each in scopes:
        for element in each.joints:
            joint = SdfJoint.read(each, element)
            if not {joint.parent, joint.child} <= set(poses):
                left["left out joints with other models"].append(joint.name)
            elif joint.type == "gearbox":
                gears.append(joint)
            elif not {joint.parent, joint.child} <= {GROUND, *static}:
                joints.append(joint)
    return joints, gears


def _declare_frames(builder, scopes, poses):
    for each in scopes:
        for name, (kind, _) in each.things.items():
            if kind == "frame" and each.prefix + name not in poses:
                body = each.body(name)
                builder.frame(each.prefix + name, body, relative(poses[body], each.world_pose(name)))


def _is_static(scope):
    return scope.outer is not None and (scope.element.is_set("static") or _is_static(scope.outer))


def _refuse(scope, left):
    """Raise errors for unsupported parts of a model, and note ignored ones."""
    for each in scope.element.all("include"):
        raise ModelError(f"{scope.element.owner}: includes {shown(each.word('uri', ''))}, {NOT_FOUND}")
    for element in scope.element.xml.iter("pose"):
        if element.get("frame"):
            left["ignored frames of poses, which SDFormat calls relative_to"].append(element.get("frame"))


def _coordinates(pose):
    """Quaternion and position, the coordinates of a free joint."""
    from scipy.spatial.transform import Rotation

    return [*Rotation.from_matrix(pose[:3, :3]).as_quat(), *pose[:3, 3]]


def _inertial(name, link, left):
    """Mass, centre of mass and inertia of a body; by SDFormat's rule, links without <inertial> have 1 kg."""
    for tag, is_plain in (("gravity", True), ("kinematic", False)):
        given = link.part(tag)
        if given and link.is_set(tag) != is_plain:
            left["left out that links are kinematic" if tag == "kinematic" else "left out that gravity spares links"
                 ].append(name)
    decay = link.part("velocity_decay")
    if decay and (decay.number_of("linear", 0.0) or decay.number_of("angular", 0.0)):
        left["left out the velocity decay of links"].append(name)
    inertial = link.part("inertial") or SdfElement(ElementTree.Element("inertial"), link.owner)
    if truth(f"{link.owner}, inertial, auto", inertial.xml.get("auto", "false")):
        raise ModelError(f"{link.owner}, inertial: its inertia is to be computed from shapes (auto), which are not "
                         "read; give mass and inertia")
    if inertial.part("fluid_added_mass"):
        left["left out the added mass of links in a fluid"].append(name)
    pose, inertia = own_pose(inertial)[0], inertial.part("inertia")
    if inertial.part("mass") is None or inertia is None or any(inertia.part(key) is None for key in _MOMENTS):
        left["took SDFormat's defaults, 1 kg or 1 kg m^2, for links without mass or inertia"].append(name)
    inertia = inertia or SdfElement(ElementTree.Element("inertia"), link.owner)
    return inertial_of(link.owner, inertial.number_of("mass", 1.0), pose, [
        inertia.number_of(key, 1.0 if key in _MOMENTS else 0.0) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")])
