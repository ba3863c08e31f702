"""Cables in pictures: where they go, whether they are slack, and their pulleys. Numbers only."""
from typing import NamedTuple

import numpy as np

from liedyn.mechanics.constraints.cable_points import POINTS_OF_PIECE, cable_points
from liedyn.model.cable_paths import is_belt, parts_of
from liedyn.model.kinds import CABLE
from liedyn.model.packed import LOOP_ACTIVE, LOOP_KIND, LOOP_ROW, OFF, constraints_of
from liedyn.model.remembered import remembered

ROPE = "#7A4A1E"
THICK = 0.35
"""Radius of a cable relative to that of a bar."""
STEP = POINTS_OF_PIECE // 8
"""Of the points of a straight piece every fifth is kept."""
SIDES = 6
"""Faces around a cable."""
SLACK = 1e-6
"""How much shorter than the cable its path is, relative to its length, where it counts as slack."""


class Measured(NamedTuple):
    """A cable of a robot: its declaration; the packed model that has it, and its number there; its length, or None if
    it is never slack; which of its points are kept."""

    name: str
    stations: tuple
    packed: object
    number: int
    length: float | None
    kept: np.ndarray


class Line(NamedTuple):
    """The path of a cable: points (k, 3) in the world."""

    name: str
    points: np.ndarray
    slack: bool


@remembered
def cables(robot):
    """All cables of a robot, elastic and inextensible ones, and winches, without those that are switched off."""
    found = []
    if robot.elements is not None:
        elements = [*robot.model.elements, *(each.element for each in robot.model.actuators
                                             if each.name in robot.elements.driven)]
        records = constraints_of(robot.elements.packed)[0]
        for each, row in zip(elements, robot.elements.rows):
            if each.measure.kind == "cable":
                at = np.flatnonzero((records[:, LOOP_KIND] == CABLE) & (records[:, LOOP_ROW] == row))[0]
                found.append(_measured(robot.elements.packed, at, each.measure, pulls=each.law == "cable"))
    records = constraints_of(robot.packed)[0]
    for k, each in enumerate(robot.model.constraints, len(robot.model.loops)):
        if each.kind == "cable" and records[k, LOOP_ACTIVE] != OFF:
            found.append(_measured(robot.packed, k, each, pulls=True))
    return tuple(found)


def _measured(packed, number, each, pulls):
    kept = []
    for part in parts_of(each.stations):
        straight = all(station.shape == "point" for station in part)
        for _ in range(len(part) - 1 if is_belt(part) else 1):
            kept += [np.arange(POINTS_OF_PIECE) % STEP == 0 if straight else np.ones(POINTS_OF_PIECE, bool)]
    return Measured(each.name, each.stations, packed, int(number), each.length if pulls else None,
                    np.append(np.concatenate(kept), True))


def lines(robot, q):
    """The paths of all cables at q, each with as many points as at any other q."""
    found, q = [], np.array(q, dtype=float)
    for each in cables(robot):
        points, length = cable_points(each.packed, each.number, q)
        found.append(Line(each.name, points[each.kept],
                          each.length is not None and bool(length < each.length * (1.0 - SLACK))))
    return found


def dashes(line):
    """The parts of a line (k, 2, 3), every other one of no length where the cable is slack."""
    parts = np.stack([line.points[:-1], line.points[1:]], axis=1)
    if line.slack:
        parts[1::2, 1] = parts[1::2, 0]
    return parts


def tube(line, radius):
    """Corners (k, 4, 3) of the faces round the parts of a line."""
    parts = dashes(line)
    along = parts[:, 1] - parts[:, 0]
    size = np.linalg.norm(along, axis=1)
    along /= np.where(size > 0.0, size, 1.0)[:, None]
    across = np.cross(along, np.eye(3)[np.abs(along).argmin(axis=1)])
    across /= np.where(size > 0.0, np.linalg.norm(across, axis=1), 1.0)[:, None]
    angle = 2.0 * np.pi * np.arange(SIDES + 1) / SIDES
    ring = radius * (np.cos(angle)[:, None, None] * across + np.sin(angle)[:, None, None] * np.cross(along, across))
    first, last = ring + parts[:, 0], ring + parts[:, 1]  # (SIDES + 1, k, 3)
    corners = np.stack([first[:-1], first[1:], last[1:], last[:-1]], axis=2)
    corners[:, size == 0.0] = parts[size == 0.0, 0][:, None]
    return corners.reshape(-1, 4, 3)
