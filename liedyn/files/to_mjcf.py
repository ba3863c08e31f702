"""Robots written as MJCF files, MuJoCo's format.

Compensated weights: fields of bodies and free joints in MuJoCo, forces on robots.

A body's `gravcomp` is the fraction of its weight that a force at its centre of mass compensates. The armature of a free
joint, along the world's axes, is a mass without weight at the origin of the body: here a body of its own, fixed there.
"""
# mypy: ignore-errors

from dataclasses import replace
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from liedyn.files.export import LeftOut, document, motions, refused, require_plain, words
from liedyn.files.file_bodies import plain_friction
from liedyn.files.mjcf_contacts import add_contact, is_contact
from liedyn.files.paths import path_of, write_text
from liedyn.machine.errors import ModelError, shown
from liedyn.model import GROUND, placement
from liedyn.model.description import Thruster, Winch
from liedyn.model.kinds import JOINT_KINDS, neutral
from liedyn.model.links import depth_first

_RELATIVE = 1e-12  # relative, for numbers in a file


def borne_part(element, body, gravity):
    """The fraction of a body's weight that a force element compensates; None if it is another force."""
    if element.law != "wrench" or element.functions or element.measure.child != body.name:
        return None
    torque, force = np.split(np.array(element.numbers), 2)
    weight, point = body.mass * gravity, element.measure.child_placement[:3, 3]
    size = weight @ weight
    if not size or torque.any() or not np.allclose(point, body.com, rtol=_RELATIVE, atol=_RELATIVE):
        return None
    part = -(force @ weight) / size
    is_weight = np.allclose(force, -part * weight, rtol=0.0, atol=_RELATIVE * np.abs(force).max())
    return float(part) if is_weight else None


def rotors_of_free_joints(model):
    """By free joint, the body fixed to its child that represents the translational part of MuJoCo's armature."""
    found = {}
    bodies = {body.name: body for body in model.bodies}
    used = _points_of_others(model)
    for joint in model.tree_joints:
        if joint.kind != "free" or joint.parent != GROUND:
            continue
        for held in model.tree_joints:
            body = bodies.get(held.child)
            is_there = held.kind == "fixed" and held.parent == joint.child and np.array_equal(held.placement, np.eye(4))
            if body and is_there and held.child not in used and _is_rotor(body, joint, model):
                found[joint.name] = body.name
    return found


def _is_rotor(body, joint, model):
    """True if a body is the mass of a joint's translational armature, and a force compensates its weight."""
    turns = np.array_equal(joint.armature, [body.mass] * 3 + [0.0] * 3)
    forces = [each for each in model.elements if body.name in each.bodies]
    borne = [borne_part(each, body, model.gravity) for each in forces]
    return (turns and body.mass > 0.0 and not body.inertia.any() and not body.com.any()
            and (borne == [1.0] if model.gravity.any() else not forces))


def _points_of_others(model):
    """Bodies to which joints, loops, constraints, actuators, frames or shapes are attached."""
    used = {joint.parent for joint in model.tree_joints} | {shape.body for shape in model.shapes}
    for each in (*model.loops, *model.constraints):
        used |= getattr(each, "bodies", {each.parent, each.child})
    for each in model.actuators:
        used |= each.bodies
    return used


_LEAST = 2e-15  # MuJoCo needs masses and moments above 1e-15 for bodies that move
_ROUNDING = 1e-12  # accepted excess of the largest moment over the sum of the others; MuJoCo accepts none
_DIRECTIONS = ((".x", (1.0, 0.0, 0.0)), (".y", (0.0, 1.0, 0.0)), (".z", (0.0, 0.0, 1.0)))


def save_mjcf(robot, path):
    """Write a robot as an MJCF file; see :func:`liedyn.files.load`."""
    path, model, left_out = path_of(path), robot.model_as_is(), LeftOut()
    xml = Element("mujoco", model=model.name)
    compiler = SubElement(xml, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = SubElement(xml, "option", gravity=words(model.gravity))
    elements = {GROUND: SubElement(xml, "worldbody")}
    rotors = rotors_of_free_joints(model)
    hinges, key = _add_tree(model, robot, rotors, elements, compiler, left_out)
    assets, equality, tendons, contacts = (Element(tag) for tag in ("asset", "equality", "tendon", "contact"))
    for shape in model.shapes:
        _add_geom(elements[shape.body], shape, assets, left_out)
    for loop in model.loops:
        _add_loop(equality, loop, elements)
    for contact in filter(is_contact, model.constraints):
        add_contact(contacts, contact, model, elements, left_out)
        option.set("cone", "elliptic")
    _add_constraints(model, equality, tendons, hinges, elements, left_out)
    _add_elements(model, rotors, tendons, hinges, elements, left_out)
    actuators = _actuators(model, tendons, hinges, elements, left_out)
    keys = Element("keyframe")
    if model.home or any(joint.kind == "free" and _has_springs_elsewhere(joint) for joint in model.joints):
        SubElement(keys, "key", name="home", qpos=words(key))
    xml.extend(part for part in (assets, contacts, tendons, equality, actuators, keys) if len(part))
    if model.independent:
        left_out.add("the choice of independent coordinates", ", ".join(model.independent))
    write_text(path, document(xml))
    left_out.warn(path)


def _add_tree(model, robot, rotors, elements, compiler, left_out):
    """Bodies and joints; returns the joints of one coordinate by name, and the home configuration in MuJoCo's order."""
    bodies, home = {body.name: body for body in model.bodies}, dict(zip(robot.coordinate_names, robot.home))
    hinges, key = {}, []
    for joint in depth_first(model.tree_joints):
        if joint.child in rotors.values():
            continue
        body = elements[joint.child] = SubElement(elements[joint.parent], "body", name=joint.child)
        _place(body, joint.placement)
        if joint.child in bodies:  # else it is a frame
            _add_inertia(body, bodies[joint.child], compiler)
        _add_joints(body, joint, hinges, left_out, joint.name in rotors)
        key += [home[name] for name in _their_coordinates(joint)]
    return hinges, key


def _add_constraints(model, equality, tendons, hinges, elements, left_out):
    """Couplings, dry friction as the `frictionloss` of joints, and cables that do not stretch as limits of tendons."""
    for constraint in model.constraints:
        if is_contact(constraint):
            continue
        if constraint.kind == "cable" and constraint.active is True:
            tendon = _add_path(tendons, constraint.name, constraint.stations, elements)
            left_out.add("inextensible cables that go round in a sense", constraint.name, tendon is None)
            if tendon is not None:
                tendon.set("range", words([0.0, constraint.length]))
            continue
        if constraint.kind != "dry_friction":
            _add_coupling(equality, tendons, constraint)
            continue
        coordinate, force = plain_friction(constraint) or ("", 0.0)
        left_out.add("dry friction", constraint.name, coordinate not in hinges)
        if coordinate in hinges:
            hinges[coordinate].set("frictionloss", words(force))


def _add_elements(model, rotors, tendons, hinges, elements, left_out):
    """Springs and dampers of tendons, and compensated weights."""
    bodies = {body.name: body for body in model.bodies}
    for element in model.elements:
        if element.measure.child in rotors.values() or _bears_weight(element, bodies, elements, model.gravity):
            continue
        if not (element.coefficients.keys() <= hinges.keys() and _add_spring(tendons, element, elements)):
            left_out.add("force elements", element.name)


def _actuators(model, tendons, hinges, elements, left_out):
    """The element of the actuators."""
    actuators = Element("actuator")
    for each in model.actuators:
        if not each.gears.keys() <= hinges.keys():
            left_out.add("actuators of balls, free joints and cut joints", each.name)
        elif isinstance(each, Winch):
            left_out.add("cables that go round in a sense", each.name,
                         not _add_winch(actuators, tendons, each, elements))
        else:
            (_add_thruster if isinstance(each, Thruster) else _add_motor)(actuators, tendons, each, elements)
    return actuators


def _add_geom(body, shape, assets, left_out):
    """Visual shapes do not collide and are in the group that MuJoCo shows; collision shapes are in a hidden one."""
    if shape.kind == "plane" and shape.body != GROUND:
        left_out.add("planes of bodies that move", shape.name)
        return
    geom = SubElement(body, "geom", name=shape.name, type=shape.kind, mass="0")
    _place(geom, shape.placement)
    if shape.kind == "mesh":
        SubElement(assets, "mesh", name=shape.name, file=shape.mesh, scale=words(shape.scale))
        geom.set("mesh", shape.name)
    elif shape.kind == "plane":
        geom.set("size", "0 0 1")
    else:
        halves = {"box": (0.5, 0.5, 0.5), "cylinder": (1.0, 0.5), "capsule": (1.0, 0.5)}
        geom.set("size", words(np.multiply(shape.size, halves.get(shape.kind, 1.0))))
    if shape.color is not None:
        geom.set("rgba", words(shape.color))
    if shape.role == "visual":
        geom.set("contype", "0")
        geom.set("conaffinity", "0")
    geom.set("group", "2" if shape.role == "visual" else "3")


def _quaternion(R):
    """A quaternion (w, x, y, z), as in MuJoCo."""
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(R).as_quat(), 1)


def _place(element, pose):
    element.set("pos", words(pose[:3, 3]))
    if not np.array_equal(pose[:3, :3], np.eye(3)):
        element.set("quat", words(_quaternion(pose[:3, :3])))


def _add_inertia(element, body, compiler):
    """Principal moments and their axes, computed here as MuJoCo computes them with fewer digits."""
    moments, axes = np.linalg.eigh(body.inertia)
    if np.array_equal(body.inertia, np.diag(np.diag(body.inertia))):
        moments, axes = np.diag(body.inertia), np.eye(3)
    moments, k = np.maximum(moments, 0.0), np.argmax(moments)
    others = moments.sum() - moments[k]
    if moments[k] > max(others * (1.0 + _ROUNDING), _LEAST):
        raise ModelError(f"body {shown(body.name)}, inertia: MuJoCo takes none whose largest principal moment exceeds "
                         f"the sum of the other two, got {shown(moments.tolist())}")
    moments[k] = min(moments[k], others) if others else moments[k]
    if body.mass < _LEAST or moments.min() < _LEAST:
        compiler.set("boundmass", words(_LEAST))
        compiler.set("boundinertia", words(_LEAST))
    inertial = SubElement(element, "inertial", pos=words(body.com), mass=words(body.mass),
                          diaginertia=words(moments))
    if not np.array_equal(axes, np.eye(3)):
        inertial.set("quat", words(_quaternion(axes * np.linalg.det(axes))))


def _bears_weight(element, bodies, elements, gravity):
    """Write a force that compensates a part of a body's weight as MuJoCo's gravcomp; False for another force."""
    body = bodies.get(element.measure.child)
    part = body and borne_part(element, body, gravity)
    if part is None:
        return False
    xml = elements[body.name]
    xml.set("gravcomp", words(float(xml.get("gravcomp", "0")) + part))
    return True


def _is_free(joint, has_rotor=False):
    """True if it is a free joint for MuJoCo, with equal numbers in all directions."""
    same = all(np.ptp(getattr(joint, key)) == 0.0 for key in ("armature", "damping", "stiffness")
               if key != "armature" or not has_rotor)
    return (joint.kind == "free" and joint.parent == GROUND and np.array_equal(joint.placement, np.eye(4)) and same)


def _their_coordinates(joint):
    """Our names of the coordinates in MuJoCo's order."""
    order = {"free": [4, 5, 6, 3, 0, 1, 2], "spherical": [3, 0, 1, 2]}.get(joint.kind)
    names = [joint.name + suffix for suffix in JOINT_KINDS[joint.kind].coordinates]
    return [names[k] for k in order] if order else names


def _has_springs_elsewhere(joint):
    """True if the springs of a free joint rest away from the origin; MuJoCo's rest at the body's pose in the file."""
    return joint.stiffness.any() and not np.array_equal(joint.rest, neutral(JOINT_KINDS["free"]))


def _add_joints(body, joint, hinges, left_out, has_rotor):
    kind = JOINT_KINDS[joint.kind]
    left_out.add("limits of velocities", joint.name, np.isfinite(joint.velocity_limit).any())
    if kind.has_quaternion:
        bounded = np.isfinite(joint.limits).any() or np.isfinite(joint.effort_limit).any()
        left_out.add("limits of balls and free joints", joint.name, bounded)
        turn, slide = slice(0, 3), slice(3, 6)
        if joint.armature[slide].any():
            raise ModelError(f"joint {shown(joint.name)}, armature: MuJoCo's goes along the axes of the world, that of "
                             f"translations here along the body's, got {shown(joint.armature[slide].tolist())}")
        if _is_free(joint, has_rotor):
            _add_joint(body, joint.name, "free", joint, slice(0, 3) if has_rotor else slice(0, 6))
            if _has_springs_elsewhere(joint):
                _place(body, placement(joint.rest[4:], quaternion=joint.rest[:4]))
            return
        for k, (name, axis) in enumerate(_DIRECTIONS if joint.kind == "free" else ()):
            element = _add_joint(body, joint.name + name, "slide", joint, slide)
            element.set("axis", words(axis))
            if joint.stiffness[3]:
                element.set("springref", words(joint.rest[4 + k]))
        if joint.stiffness[0] and not np.array_equal(joint.rest[:4], [0.0, 0.0, 0.0, 1.0]):
            raise ModelError(f"joint {shown(joint.name)}, rest: MuJoCo's springs of balls rest at zero, got "
                             f"{shown(joint.rest[:4].tolist())}")
        _add_joint(body, joint.name, "ball", joint, turn)
        return
    for motion in motions(joint) if kind.nv else ():
        k = motion.place
        element = _add_joint(body, motion.name, "hinge" if motion.is_turn else "slide", joint, slice(k, k + 1))
        element.set("axis", words(motion.axis))
        hinges[motion.name] = element
        if joint.rest[k]:
            element.set("springref", words(joint.rest[k]))
        if np.isfinite(joint.limits[k]).any():
            element.set("range", words(np.clip(joint.limits[k], -1e10, 1e10)))  # MuJoCo's largest number
        if np.isfinite(joint.effort_limit[k]):
            element.set("actuatorfrcrange", words([-joint.effort_limit[k], joint.effort_limit[k]]))


def _add_joint(body, name, kind, joint, places):
    """A MuJoCo joint for some of a joint's coordinates, which differ in their names only."""
    element = SubElement(body, "joint", name=name, type=kind)
    for key in ("armature", "damping", "stiffness"):
        values = getattr(joint, key)[places]
        if np.ptp(values):
            raise ModelError(f"joint {shown(joint.name)}, {key}: MuJoCo has one number for all axes, got "
                             f"{shown(values.tolist())}")
        if values[0]:
            element.set(key, words(values[0]))
    return element


def _add_loop(equality, loop, elements):
    """Sites in both bodies, and the equality between them."""
    require_plain(replace(loop, active=loop.active or True))
    if loop.kind not in ("fixed", "spherical", "revolute"):
        raise refused(loop)
    points = {"": np.eye(4)}
    if loop.kind == "revolute":
        points[" axis"] = np.eye(4)
        points[" axis"][:3, 3] = loop.axes[0]
    for suffix, point in points.items():
        names = [f"{loop.name}{suffix} {end}" for end in ("A", "B")]
        _add_sites(names, loop, elements, point)
        tag = "weld" if loop.kind == "fixed" else "connect"
        _switch(SubElement(equality, tag, name=f"{loop.name}{suffix}", site1=names[0], site2=names[1]), loop)


def _switch(element, each):
    """Mark an equality as switched off, if it is."""
    if not each.active:
        element.set("active", "false")


def _add_coupling(equality, tendons, constraint):
    """A tendon whose length is the sum, and an equality that keeps it constant."""
    require_plain(replace(constraint, active=constraint.active or True))
    if constraint.kind != "coupling":
        raise refused(constraint)
    _add_sum(tendons, constraint.name, constraint.coefficients)
    polynomial = [constraint.offset, 0.0, 0.0, 0.0, 0.0]
    _switch(SubElement(equality, "tendon", name=constraint.name, tendon1=constraint.name, polycoef=words(polynomial)),
            constraint)


def _add_sum(tendons, name, coefficients):
    """A tendon whose length is a sum of coordinates."""
    tendon = SubElement(tendons, "fixed", name=name)
    for joint, coefficient in coefficients.items():
        SubElement(tendon, "joint", joint=joint, coef=words(coefficient))
    return tendon


def _add_sites(names, each, elements, point):
    """Sites at a point of frames A and B of a loop or constraint."""
    for name, link, pose in zip(names, (each.parent, each.child), (each.parent_placement, each.child_placement)):
        _place(SubElement(elements[link], "site", name=name), pose @ point)


def _add_path(tendons, name, stations, elements):
    """A tendon over sites and round geoms; None if it goes round in a given sense, which MuJoCo's do not."""
    if any(each.sense in (-1, 1) for each in stations):
        return None
    tendon = SubElement(tendons, "spatial", name=name)
    for k, each in enumerate(stations):
        here, body = f"{name} {k + 1}", elements[each.body]
        if each.shape == "point":
            _place(SubElement(body, "site", name=here), each.placement)
            SubElement(tendon, "site", site=here)
            continue
        size = words((each.radius, each.radius) if each.shape == "cylinder" else each.radius)
        _place(SubElement(body, "geom", name=here, type=each.shape, size=size, mass="0", group="3", contype="0",
                          conaffinity="0"), each.placement)
        SubElement(tendon, "geom", geom=here)
        if each.side is not None:  # outside, where only its direction matters
            across = each.side * ((1.0, 1.0, 0.0) if each.shape == "cylinder" else 1.0)
            side = np.eye(4)
            side[:3, 3] = 2.0 * each.radius / np.linalg.norm(across) * across
            _place(SubElement(body, "site", name=f"{here} side"), each.placement @ side)
            tendon[-1].set("sidesite", f"{here} side")
    return tendon


def _add_spring(tendons, element, elements):
    """A tendon with a spring and damper; False for other elements, or if its length would be negative."""
    if element.law == "cable" and not element.numbers[1]:  # slack up to its length
        tendon = _add_path(tendons, element.name, element.measure.stations, elements)
        if tendon is not None:
            tendon.set("stiffness", words(element.numbers[0]))
            tendon.set("springlength", words([0.0, max(element.measure.length, 0.0)]))
        return tendon is not None
    if element.law == "linear":
        stiffness, damping, preload = element.numbers
        stiff, damp, slack = [stiffness], [damping], 0.0
    elif element.law == "polynomial":
        *numbers, slack = element.numbers
        stiff, damp, stiffness, preload = numbers[:3], numbers[3:], numbers[0], 0.0
    else:
        return False
    measure, is_path = element.measure, element.measure.kind == "cable"
    length = measure.length if measure.parent or is_path else measure.offset
    length -= preload / stiffness if stiffness else 0.0
    if (measure.parent or is_path) and length < 0.0 or preload and not stiffness:
        return False
    if is_path:
        tendon = _add_path(tendons, element.name, measure.stations, elements)
        if tendon is None:
            return False
    elif measure.parent is None:
        tendon = _add_sum(tendons, element.name, measure.coefficients)
    else:
        tendon = _add_line(tendons, element.name, measure, elements)
    if length == -1.0:  # in MuJoCo -1 means the length in the drawing
        length = np.nextafter(-1.0, 0.0)
    lengths = [length, length + slack] if slack else length
    for key, value in (("stiffness", stiff), ("damping", damp), ("springlength", lengths)):
        tendon.set(key, words(value))
    return True


def _add_line(tendons, name, measure, elements):
    """A tendon from a site to a site."""
    names = [f"{name} {end}" for end in ("A", "B")]
    _add_sites(names, measure, elements, np.eye(4))
    tendon = SubElement(tendons, "spatial", name=name)
    for each in names:
        SubElement(tendon, "site", site=each)
    return tendon


def _add_thruster(actuators, tendons, thruster, elements):
    """A motor of a site, whose gear is a force and a moment; in axes of the world by another site there."""
    site, measure, reference = f"{thruster.name} site", thruster.measure, {}
    _place(SubElement(elements[measure.child], "site", name=site), measure.child_placement)
    if thruster.axes == "world":
        reference = {"refsite": f"{thruster.name} axes"}
        SubElement(elements[GROUND], "site", name=reference["refsite"])
    gear = words((*thruster.wrench[3:], *thruster.wrench[:3]))
    SubElement(actuators, "motor", name=thruster.name, site=site, **reference, gear=gear)


def _add_winch(actuators, tendons, winch, elements):
    """A motor of a tendon, whose force makes it longer; False if the path cannot be written."""
    name = f"{winch.name} tendon"
    if _add_path(tendons, name, winch.measure.stations, elements) is None:
        return False
    SubElement(actuators, "motor", name=winch.name, tendon=name, gear=words(-winch.gear))
    return True


def _add_motor(actuators, tendons, actuator, elements):
    """A motor of a joint, of a tendon over several, or of one between two points."""
    if not actuator.gears:
        name = f"{actuator.name} tendon"
        _add_line(tendons, name, actuator.measure, elements)
        SubElement(actuators, "motor", name=actuator.name, tendon=name, gear=words(actuator.gear))
    elif len(actuator.gears) == 1:
        [(joint, gear)] = actuator.gears.items()
        SubElement(actuators, "motor", name=actuator.name, joint=joint, gear=words(gear))
    else:
        name = f"{actuator.name} tendon"
        _add_sum(tendons, name, actuator.gears)
        SubElement(actuators, "motor", name=actuator.name, tendon=name)
