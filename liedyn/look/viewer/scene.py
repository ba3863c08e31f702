"""Contents of the scene besides solids: forces as arrows, the camera. Numbers only, independent of the browser."""
from typing import NamedTuple

import numpy as np

from liedyn.look.planes import axes_of_view, plane_of, poses_of
from liedyn.look.solids import colour, extent_at, size_of
from liedyn.mechanics.constraints.constraint_wrenches import world_constraint_wrenches
from liedyn.mechanics.tree.energy import center_of_mass, total_mass
from liedyn.model.remembered import remembered

CENTRE, FORCE, CONTACT = "#111111", "#D55E00", "#0072B2"
LONGEST = 0.4
"""Length of the largest arrow relative to the size of the robot."""


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


def camera(robot, *configurations):
    """A view of the whole robot at all of these: onto its plane if it has one, else from the front, right and above."""
    seen, up = np.vstack([extent_at(robot, q) for q in configurations]), -robot.gravity
    corners = np.array([seen.min(axis=0), seen.max(axis=0)])
    normal = plane_of(robot, poses_of(robot, configurations[0]))
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
    away = 1.65 * max(size_of(robot), float(np.linalg.norm(np.ptp(corners, axis=0))))
    return Camera(target + away * direction / np.linalg.norm(direction), target, up)


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
