"""A robot as solids: the shapes of its file, or bars, pins and boxes made from its model. Numbers only.

Solids are those of the robot's file. A robot without any is drawn from its model: each body by bars between the points
where joints hold it, each joint by its axes of rotation or translation.
"""
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from liedyn.look.cable_lines import cables, lines
from liedyn.look.planes import SLIDING, poses_of
from liedyn.machine.errors import ModelWarning, cut, listed, shown
from liedyn.machine.figures import COLOURS
from liedyn.model import GROUND
from liedyn.model.remembered import remembered

JOINT, CUT, DARK = "#E8E8E8", "#FFD400", "#3C3C3C"
THICKNESS = 0.014
"""Radius of a bar relative to the size of the robot."""
PULLEY = "pulley"
"""The role of what cables go round."""


class Solid(NamedTuple):
    """A shape in a body, as `liedyn.model.description.Shape`, but always with a colour, (r, g, b, a) in 0 to 1."""

    body: str
    kind: str
    placement: np.ndarray
    size: tuple
    color: tuple
    mesh: str | None = None
    scale: tuple = (1.0, 1.0, 1.0)
    role: str = "visual"


def colour(text, alpha=1.0):
    """(r, g, b, a) of "#rrggbb"."""
    return (*(int(text[k:k + 2], 16) / 255.0 for k in (1, 3, 5)), alpha)


def held_at(robot):
    """Points by body, in its own frame, where joints, cut joints, constraints and frames hold it."""
    points = {name: [np.zeros(3)] for name in (GROUND, *robot.body_names)}
    places = [(joint.parent, joint.placement) for joint in robot.model.tree_joints
              if joint.kind not in SLIDING or joint.parent == GROUND]
    for each in robot.model.loops + robot.model.constraints:
        if each.parent is not None:
            places += [(each.parent, each.parent_placement), (each.child, each.child_placement)]
    frames = {frame.name: frame for frame in robot.model.frames}
    places += [(each.body, each.placement) for cable in cables(robot) for each in cable.stations]
    for body, placement in places:
        while body in frames:
            body, placement = frames[body].body, frames[body].placement @ placement
        points[body].append(placement[:3, 3])
    rods = {joint.child for joint in robot.model.joints if joint.kind in SLIDING}
    for body in robot.model.bodies:
        if body.name not in rods and np.ptp(points[body.name], axis=0).max() < 1e-9:
            points[body.name].append(body.com)
    return {name: np.unique(np.round(found, 12), axis=0) for name, found in points.items()}


@remembered
def extent(robot):
    """Lower and upper corner of the robot at home, without the ground: (2, 3) [m]."""
    return extent_at(robot, robot.home)


def extent_at(robot, q):
    """Lower and upper corner of the robot at q, without the ground: (2, 3) [m]."""
    poses, points = poses_of(robot, q), held_at(robot)
    seen = np.vstack([points[name] @ poses[name][:3, :3].T + poses[name][:3, 3] for name in robot.body_names]
                     or [np.zeros((1, 3))])
    seen = np.vstack([seen, *(each.points for each in lines(robot, q))])
    reach = [each.radius for each in robot.model.constraints]
    for shape in _declared(robot):
        size = np.asarray(shape.size, float) if shape.kind not in ("mesh", "plane") else np.zeros(1)
        reach.append(0.5 * float(size.max(initial=0.0)))
        if shape.body in poses:
            seen = np.vstack([seen, (poses[shape.body] @ shape.placement)[:3, 3]])
    if not robot.model.shapes:
        reach += [0.5 * float(max(inertia_box(robot, name)[1])) for name in robot.body_names if len(points[name]) == 1]
    largest = max(map(abs, reach), default=0.0)
    low, high = seen.min(axis=0), seen.max(axis=0)
    return np.array([low - largest, high + largest]) if (high - low).max() < 4 * largest else np.array([low, high])


def size_of(robot):
    """The size of the robot [m], to which all other sizes in the scene are relative."""
    return float(np.linalg.norm(np.ptp(extent(robot), axis=0))) or 1.0


@remembered
def _declared(robot):
    """The shapes of the robot, those of frames as shapes of the bodies that hold them."""
    frames, found = {frame.name: frame for frame in robot.model.frames}, []
    for shape in robot.model.shapes:
        while shape.body in frames:
            frame = frames[shape.body]
            shape = replace(shape, body=frame.body, placement=frame.placement @ shape.placement)
        found.append(shape)
    return found


@remembered
def solids(robot):
    """All solids of a robot, body by body."""
    colours = {name: colour(COLOURS[k % len(COLOURS)]) for k, name in enumerate(robot.body_names)}
    colours[GROUND] = colour(DARK)
    found = [Solid(shape.body, shape.kind, shape.placement, tuple(shape.size),
                   tuple(shape.color) if shape.color is not None else colours[shape.body],
                   shape.mesh, tuple(np.broadcast_to(shape.scale, 3)), shape.role) for shape in _declared(robot)]
    gone = [each for each in found if each.kind == "mesh" and not Path(each.mesh).is_file()]
    found = [each for each in found if each.kind != "mesh" or Path(each.mesh).is_file()]
    seen = {each.body for each in found if each.role == "visual"} - {GROUND}
    lost = {each.body for each in gone if each.role == "visual"} - seen if seen else set(robot.body_names)
    if gone:
        bodies = listed(dict.fromkeys(each.body for each in gone))
        warnings.warn(f"{cut(robot.name)}: {len(gone)} meshes are not there, of {bodies}; the first is "
                      f"{shown(gone[0].mesh)}", ModelWarning, stacklevel=2)
    wheels = _pulleys(robot, found)
    if not lost:
        return tuple(found + wheels)
    # collision shapes if there are no visual ones, and bars if there are no shapes
    found = [each._replace(role="visual") if each.body in lost else each for each in found]
    drawn = {each.body for each in found if each.role == "visual"} | set(robot.body_names) - lost
    return tuple(found + _from_model(robot, colours, drawn - {GROUND}) + wheels)


def _pulleys(robot, shapes):
    """What cables go round, unless a shape of the robot is there."""
    frames, found = {frame.name: frame for frame in robot.model.frames}, {}
    for each in (station for cable in cables(robot) for station in cable.stations if station.shape != "point"):
        body, placement = each.body, each.placement
        while body in frames:
            body, placement = frames[body].body, frames[body].placement @ placement
        known = [shape for shape in shapes if shape.body == body and shape.kind == each.shape and np.isclose(
            shape.size[0], each.radius) and np.allclose(shape.placement[:3, 3], placement[:3, 3])]
        size = (each.radius, 3.0 * THICKNESS * size_of(robot)) if each.shape == "cylinder" else (each.radius,)
        if not known:
            found[body, each.shape, each.radius, placement.tobytes()] = Solid(
                body, each.shape, placement, size, (*colour(JOINT)[:3], 0.9), role=PULLEY)
    return list(found.values())


def _from_model(robot, colours, drawn):
    """Bars for the bodies without shapes, and solids for joints, cut joints, and rolling geometry."""
    radius, found = THICKNESS * size_of(robot), []
    points = held_at(robot)
    rods = {joint.child for joint in robot.model.joints if joint.kind in SLIDING}
    rolling = {each.child for each in robot.model.constraints if each.radius > 0.0}
    for name in robot.body_names:
        if name in drawn:
            continue
        bars = [bar(name, start, end, radius, colours[name]) for start, end in _bars(points[name])]
        if not bars and name not in rods and name not in rolling:
            placement, sides = inertia_box(robot, name)
            bars = [Solid(name, "box", placement, sides, colours[name]) if max(sides) > 0.0 else
                    Solid(name, "sphere", np.eye(4), (2.2 * radius,), colours[name])]
        found += bars
    for joint in robot.model.joints:
        if joint.kind not in ("fixed", "free"):
            if joint.kind in SLIDING and joint.parent != GROUND and not {joint.parent, joint.child} & drawn:
                found += _cylinder(robot, joint, radius, colours)
            else:
                found += _joint(joint.parent, joint.kind, joint.placement, joint.axes, radius, colour(JOINT))
                if joint.kind in SLIDING and joint.child not in drawn:
                    found.append(_rod(joint, radius, colours[joint.child]))
        if joint.parent == GROUND and joint.kind != "free":
            found.append(Solid(GROUND, "box", joint.placement, (3.6 * radius,) * 3, colours[GROUND]))
    for loop in robot.model.loops:
        for body, placement in ((loop.parent, loop.parent_placement), (loop.child, loop.child_placement)):
            found += _joint(body, loop.kind, placement, loop.axes, 0.9 * radius, colour(CUT))
            if body == GROUND:
                found.append(Solid(GROUND, "box", placement, (3.6 * radius,) * 3, colours[GROUND]))
    return found + _rolling(robot, radius, colours, drawn)


def inertia_box(robot, name):
    """Pose in the body and sides of the homogeneous box with the mass and inertia of a body that no joint holds.

    The sides of other bodies, and of points, are 0.
    """
    body = robot.model.bodies[robot.body_index(name)]
    placement, sides = np.eye(4), np.zeros(3)
    placement[:3, 3] = body.com
    if body.mass > 0.0 and any(joint.child == name and joint.kind == "free" for joint in robot.model.joints):
        moments, placement[:3, :3] = np.linalg.eigh(body.inertia)
        placement[:3, 0] *= np.linalg.det(placement[:3, :3])
        sides = np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / body.mass, 0.0))
    return placement, tuple(sides)


def _rolling(robot, radius, colours, drawn):
    """Spheres and disks of contacts whose bodies are not drawn otherwise."""
    found = []
    for each in robot.model.constraints:
        if each.kind == "sphere_on_sphere" and each.parent not in drawn:
            color = (*colours[each.parent][:3], 0.75) if each.parent != GROUND else (0.8, 0.8, 0.8, 1.0)
            found.append(Solid(each.parent, "sphere", each.parent_placement, (each.length,), color))
        if each.child is None or each.child == GROUND or each.child in drawn or each.radius <= 0.0:
            continue
        color = (*colours[each.child][:3], 0.75)
        if each.kind.startswith("sphere"):
            found.append(Solid(each.child, "sphere", each.child_placement, (each.radius,), color))
        elif each.kind.startswith("disk"):
            disk = each.child_placement @ along(each.child_axis)
            found.append(Solid(each.child, "cylinder", disk, (each.radius, 0.6 * radius), color))
            across = disk @ along((1.0, 0.0, 0.0))  # a spoke, which makes rotations of the disk visible
            found.append(Solid(each.child, "capsule", across, (0.5 * radius, 1.7 * each.radius), colour(JOINT)))
    return found


def _bars(points):
    """All bars between two or three points, else a star about their mean."""
    if len(points) <= 3:
        return [(points[i], points[k]) for i in range(len(points)) for k in range(i)]
    return [(points.mean(axis=0), point) for point in points]


def bar(body, start, end, radius, color):
    """A capsule from one point of a body to another."""
    placement = along(end - start) if np.linalg.norm(end - start) > 0.0 else np.eye(4)
    placement[:3, 3] = (start + end) / 2
    return Solid(body, "capsule", placement, (radius, float(np.linalg.norm(end - start))), color)


def along(axis):
    """A pose at the origin whose z axis has this direction."""
    z = np.asarray(axis, float) / np.linalg.norm(axis)
    x = np.cross(z, np.eye(3)[np.abs(z).argmin()])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return pose


def _joint(body, kind, placement, axes, radius, color):
    """A pin for each axis of rotation, a sleeve for each of translation, a ball."""
    if kind in ("spherical", "ball", "free"):
        return [Solid(body, "sphere", placement, (1.7 * radius,), color)]
    if kind in ("prismatic", "cylindrical", "helical"):
        return [Solid(body, "cylinder", placement @ along(axis), (1.45 * radius, 7.0 * radius), color) for axis in axes]
    return [Solid(body, "cylinder", placement @ along(axis), (1.5 * radius, 3.4 * radius), color) for axis in axes]


def _rod(joint, radius, color):
    """The rod of a sliding joint: a thinner bar of the child through the sleeve."""
    return bar(joint.child, -6.0 * radius * joint.axes[0], 6.0 * radius * joint.axes[0], 0.7 * radius, color)


def _cylinder(robot, joint, radius, colours):
    """Barrel and rod of a sliding joint between two bodies; they overlap in the middle at home."""
    poses = poses_of(robot, robot.home)
    end = (np.linalg.inv(poses[joint.parent]) @ poses[joint.child])[:3, 3]
    if np.linalg.norm(end) < 8.0 * radius:
        return [*_joint(joint.parent, joint.kind, joint.placement, joint.axes, radius, colour(JOINT)),
                _rod(joint, radius, colours[joint.child])]
    back = (np.linalg.inv(poses[joint.child]) @ poses[joint.parent])[:3, 3]
    mouth = joint.placement.copy()
    mouth[:3, 3] = 0.6 * end
    return [bar(joint.parent, np.zeros(3), 0.6 * end, 1.5 * radius, colours.get(joint.parent, colours[GROUND])),
            bar(joint.child, np.zeros(3), 0.65 * back, 0.8 * radius, colours[joint.child]),
            *_joint(joint.parent, "revolute", mouth, joint.axes, 1.2 * radius, colour(JOINT))]
