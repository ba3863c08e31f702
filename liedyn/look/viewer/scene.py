"""Contents of the scene: bodies as solids, forces as arrows, the camera. Numbers only, independent of the browser.

Solids are those of the robot's file. A robot without any is drawn from its model: each body by bars between the points
where joints hold it, each joint by its axes of rotation or translation.
"""
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from liedyn.look.plotting import COLOURS, SLIDING, axes_of_view, plane_of, poses_of
from liedyn.machine.errors import ModelWarning, cut, listed, shown
from liedyn.mechanics.constraints.constraint_wrenches import world_constraint_wrenches
from liedyn.mechanics.tree.energy import center_of_mass, total_mass
from liedyn.model import GROUND
from liedyn.model.remembered import remembered

JOINT, CUT, DARK, CENTRE, FORCE, CONTACT = "#E8E8E8", "#FFD400", "#3C3C3C", "#111111", "#D55E00", "#0072B2"
THICKNESS = 0.014
"""Radius of a bar relative to the size of the robot."""
LONGEST = 0.4
"""Length of the largest arrow relative to the size of the robot."""


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


class Camera(NamedTuple):
    """Position and target of the camera; `up` is the upward direction on the screen."""

    position: np.ndarray
    target: np.ndarray
    up: np.ndarray


class Arrow(NamedTuple):
    """The force of a constraint: its point of application, and the vector to be drawn, both in space [m]."""

    name: str
    start: np.ndarray
    vector: np.ndarray
    color: tuple


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
    reach = [each.radius for each in robot.model.constraints]
    for shape in _declared(robot):
        size = np.asarray(shape.size, float) if shape.kind not in ("mesh", "plane") else np.zeros(1)
        reach.append(0.5 * float(size.max(initial=0.0)))
        if shape.body in poses:
            seen = np.vstack([seen, (poses[shape.body] @ shape.placement)[:3, 3]])
    largest = max(map(abs, reach), default=0.0)
    low, high = seen.min(axis=0), seen.max(axis=0)
    return np.array([low - largest, high + largest]) if (high - low).max() < 4 * largest else np.array([low, high])


def size_of(robot):
    """The size of the robot [m], to which all other sizes in the scene are relative."""
    return float(np.linalg.norm(np.ptp(extent(robot), axis=0))) or 1.0


def camera(robot, q):
    """A view of the whole robot at q: onto its plane if it has one, else from the front, the right and above."""
    corners, up = extent_at(robot, q), -robot.gravity
    normal = plane_of(robot, poses_of(robot, q))
    right, above = axes_of_view(robot, normal)[:2] if normal is not None else (np.eye(3)[0], np.eye(3)[2])
    up = up / np.linalg.norm(up) if np.linalg.norm(up) > 1e-9 else above
    if normal is None:
        across = np.cross(up, np.eye(3)[np.abs(up).argmin()])
        across /= np.linalg.norm(across)
        direction = 0.6 * across + 0.8 * np.cross(across, up) + 0.45 * up
    elif abs(normal @ up) > 0.9:
        direction = 0.9 * up - 0.6 * above
    else:
        direction = normal + 0.2 * up + 0.25 * right
    target = corners.mean(axis=0)
    return Camera(target + 1.65 * size_of(robot) * direction / np.linalg.norm(direction), target, up)


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
    if not lost:
        return tuple(found)
    # collision shapes if there are no visual ones, and bars if there are no shapes
    found = [each._replace(role="visual") if each.body in lost else each for each in found]
    drawn = {each.body for each in found if each.role == "visual"} | set(robot.body_names) - lost
    return tuple(found + _from_model(robot, colours, drawn - {GROUND}))


def _from_model(robot, colours, drawn):
    """Bars for the bodies without shapes, and solids for joints, cut joints, and rolling geometry."""
    radius, found = THICKNESS * size_of(robot), []
    points = held_at(robot)
    rods = {joint.child for joint in robot.model.joints if joint.kind in SLIDING}
    for name in robot.body_names:
        if name not in drawn:
            found += ([bar(name, start, end, radius, colours[name]) for start, end in _bars(points[name])]
                      or [Solid(name, "sphere", np.eye(4), (2.2 * radius,), colours[name])] * (name not in rods))
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


def _rolling(robot, radius, colours, drawn):
    """Spheres and disks of contacts whose bodies are not drawn otherwise."""
    found = []
    for each in robot.model.constraints:
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


def arrows(robot, q, lam, unit=None):
    """Forces of constraints and contacts on their child sides, where they act.

    `unit` is the force with the longest arrow; by default the largest one, unless it is negligible beside the weight.
    """
    wrenches = world_constraint_wrenches(robot, q, lam)
    poses = poses_of(robot, q)
    unit = unit or max([0.02 * weight(robot), *(np.linalg.norm(F[3:]) for F in wrenches.values())])
    found = []
    for each in robot.model.loops + robot.model.constraints:
        if each.name in wrenches and unit > 0.0:
            force = wrenches[each.name][3:] / unit
            size = np.linalg.norm(force)
            if size > 1e-3:
                found.append(Arrow(each.name, (poses[each.child] @ each.child_placement)[:3, 3],
                                   LONGEST * size_of(robot) * force * min(1.0, 1.5 / size),
                                   colour(CONTACT if getattr(each, "side", 0) else FORCE)))
    return tuple(found)


@remembered
def weight(robot):
    """Weight of the robot [N]."""
    return 0.0 if robot.massless else float(total_mass(robot) * np.linalg.norm(robot.gravity))


def centre(robot, q):
    """The centre of mass, or None where there is no mass."""
    return None if robot.massless else center_of_mass(robot, q)
