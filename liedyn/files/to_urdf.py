"""Robots written as URDF files, with loops as in URDF+."""

from xml.etree.ElementTree import Element, SubElement

import numpy as np

from liedyn.files.export import LeftOut, document, motions, refused, require_plain, words
from liedyn.files.file_bodies import plain_friction
from liedyn.files.paths import path_of, write_text
from liedyn.model import GROUND
from liedyn.model.frames import rpy_from_rotation
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.numbers import LARGEST


def save_urdf(robot, path):
    """Write a robot as a URDF file; see :func:`liedyn.files.load`."""
    path, model, left_out = path_of(path), robot.model_as_is(), LeftOut()
    xml = Element("robot", name=model.name)
    SubElement(xml, "link", name=GROUND)
    for body in model.bodies:
        _add_link(xml, body)
    for frame in model.frames:
        SubElement(xml, "link", name=frame.name)
    links = {link.get("name"): link for link in xml}
    for shape in model.shapes:
        _add_shape(links[shape.body], shape, left_out)
    joints = {}  # the XML elements, by coordinate
    for joint in model.tree_joints:
        _add_joint(xml, joint, joints, left_out)
    _say_what_depends(robot, joints, left_out)
    for loop in model.loops:
        _add_loop(xml, loop)
    for constraint in model.constraints:
        if constraint.kind == "dry_friction":
            left_out.add("dry friction", constraint.name, not _add_friction(constraint, joints))
        else:
            _add_mimic(constraint, joints)
    for what, names in (("actuators", [each.name for each in model.actuators]), ("the home configuration", model.home),
                        ("force elements", robot.element_names)):
        for name in names:
            left_out.add(what, name)
    left_out.add("gravity", words(model.gravity), not np.array_equal(model.gravity, [0.0, 0.0, -9.81]))
    write_text(path, document(xml))
    left_out.warn(path)


def _add_link(xml, body):
    link = SubElement(xml, "link", name=body.name)
    if body.mass or body.inertia.any():
        inertial = SubElement(link, "inertial")
        SubElement(inertial, "origin", xyz=words(body.com), rpy="0 0 0")
        SubElement(inertial, "mass", value=words(body.mass))
        entries = {f"i{'xyz'[i]}{'xyz'[k]}": words(body.inertia[i, k]) for i in range(3) for k in range(i, 3)}
        SubElement(inertial, "inertia", entries)


def _add_shape(link, shape, left_out):
    """Write a shape; ellipsoids and planes do not exist in URDF."""
    geometries = {"box": {"size": words(shape.size)}, "sphere": {"radius": words(shape.size)},
                  "mesh": {"filename": shape.mesh, "scale": words(shape.scale)}}
    if shape.kind in ("cylinder", "capsule"):
        geometries[shape.kind] = dict(zip(("radius", "length"), map(words, shape.size)))
    if shape.kind not in geometries:
        left_out.add(f"shapes that are {shape.kind}s", shape.name)
        return
    element = SubElement(link, shape.role, name=shape.name)
    _add_origin(element, shape.placement)
    SubElement(SubElement(element, "geometry"), shape.kind, geometries[shape.kind])
    if shape.color is not None and shape.role == "visual":
        SubElement(SubElement(element, "material", name=f"{shape.name} color"), "color", rgba=words(shape.color))


def _add_joint(xml, joint, joints, left_out):
    """A joint of several coordinates becomes several joints, with the coordinates' names, and links between them."""
    for what, values in (("armatures of joints", joint.armature), ("springs of joints", joint.stiffness)):
        left_out.add(what, joint.name, values.any())
    if joint.kind in ("fixed", "free"):
        element = _joint(xml, joint.name, {"fixed": "fixed", "free": "floating"}[joint.kind], joint.parent, joint.child)
        _add_origin(element, joint.placement)
        if joint.kind == "free":
            left_out.add("limits of free joints", joint.name, np.isfinite(joint.limits).any() or np.isfinite(
                joint.velocity_limit).any() or np.isfinite(joint.effort_limit).any())
            _add_damping(element, joint.damping, joint.name, left_out)
            joints |= {joint.name + suffix: element for suffix in JOINT_KINDS["free"].velocities}
        return
    parent, moves = joint.parent, motions(joint)
    for motion in moves:
        k, child = motion.place, joint.child if motion is moves[-1] else motion.name
        if child == motion.name and motion is not moves[-1]:
            SubElement(xml, "link", name=child)
        limits = joint.limits[k]
        is_free = motion.is_turn and not np.isfinite(limits).any()
        kind = "continuous" if is_free else "revolute" if motion.is_turn else "prismatic"
        element = joints[motion.name] = _joint(xml, motion.name, kind, parent, child)
        _add_origin(element, joint.placement if k == 0 else np.eye(4))
        SubElement(element, "axis", xyz=words(motion.axis))
        bounds = {} if is_free else dict(zip(("lower", "upper"), limits))
        bounds |= {"effort": joint.effort_limit[k], "velocity": joint.velocity_limit[k]}
        SubElement(element, "limit", {key: words(np.clip(x, -LARGEST, LARGEST)) for key, x in bounds.items()})
        _add_damping(element, joint.damping[k:k + 1], joint.name, left_out)
        parent = child


def _joint(xml, name, kind, parent, child):
    element = SubElement(xml, "joint", name=name, type=kind)
    SubElement(element, "parent", link=parent)
    SubElement(element, "child", link=child)
    return element


def _add_origin(element, pose):
    SubElement(element, "origin", xyz=words(pose[:3, 3]), rpy=words(rpy_from_rotation(pose[:3, :3])))


def _add_damping(element, damping, name, left_out):
    left_out.add("damping that differs from axis to axis", name, np.ptp(damping) > 0.0)
    if damping[0] and not np.ptp(damping):
        SubElement(element, "dynamics", damping=words(damping[0]))


def _say_what_depends(robot, joints, left_out):
    """Mark the dependent joints, as in URDF+; their order is not written."""
    chosen = robot.model.independent
    marked = [name for name, element in joints.items() if name in chosen]
    whole = {id(joints[name]) for name in marked}
    if tuple(marked) != tuple(chosen) or any(id(joints[name]) in whole and name not in chosen for name in joints):
        left_out.add("the choice of independent coordinates", ", ".join(chosen))
        return
    for element in joints.values():
        if chosen and id(element) not in whole:
            element.set("independent", "false")


def _add_loop(xml, loop):
    """Revolute loops are those of URDF+; other kinds are written in the same way as an extension."""
    require_plain(loop)
    element = SubElement(xml, "loop", name=loop.name, type=loop.kind)
    for tag, link, pose in (("predecessor", loop.parent, loop.parent_placement),
                            ("successor", loop.child, loop.child_placement)):
        _add_origin(SubElement(element, tag, link=link), pose)
    for tag, axis in zip(("axis", "axis2"), loop.axes):
        SubElement(element, tag, xyz=words(axis))
    if loop.kind == "helical":
        SubElement(element, "pitch", value=words(loop.pitch))


def _add_friction(constraint, joints):
    """Friction of a joint; False if URDF does not know it."""
    coordinate, force = plain_friction(constraint) or ("", 0.0)
    element = joints.get(coordinate)
    if element is None or element.get("type") not in ("revolute", "continuous", "prismatic"):
        return False
    dynamics = element.find("dynamics")
    (SubElement(element, "dynamics") if dynamics is None else dynamics).set("friction", words(force))
    return True


def _add_mimic(constraint, joints):
    """A coupling of two joints: one that mimics nothing yet, preferably a dependent one, mimics the other."""
    require_plain(constraint)
    names = list(constraint.coefficients)
    free = [name for name in names if constraint.coefficients[name] and joints[name].find("mimic") is None]
    if constraint.kind != "coupling" or len(names) != 2 or not free:
        raise refused(constraint)
    follower = max(free, key=lambda name: joints[name].get("independent") == "false")
    leader = names[names[0] == follower]
    ratio = -constraint.coefficients[leader] / constraint.coefficients[follower]
    SubElement(joints[follower], "mimic", joint=leader, multiplier=words(ratio),
               offset=words(constraint.offset / constraint.coefficients[follower]))
