"""Cables: paths through points of bodies and round cylinders and spheres, as declared and for kernels.

They are packed as `liedyn.model.force_elements` says.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.description import GROUND, Constraint, _Record
from liedyn.model.force_elements import CYLINDER, SIDE, SPHERE, STRAIGHT
from liedyn.model.frames import placement as pose_from
from liedyn.model.numbers import numbers
from liedyn.model.packed import BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array, ArrayLike

WRAPPED = {"cylinder": CYLINDER, "sphere": SPHERE}


@dataclass(frozen=True, eq=False)
class Pulley:
    """A cylinder or sphere on a body that a cable goes round, between two points of its path.

    Attributes
    ----------
    body : str
        Name of a body or frame, or ``"ground"``.
    placement : array_like, shape (4, 4) or (3,), optional
        Its frame in the body: the centre, and z as the axis of a cylinder.
    radius : float
        [m]
    turn : int
        Of a cylinder: 1 or -1 if the cable, on its way along the path, goes round counterclockwise or clockwise about
        z, until both neighbours of the path lie in one direction from the axis. 0: the shorter way.
    side : array_like, shape (3,), optional
        A point in the frame, beside which the cable passes, instead of `turn`.
    shape : {"cylinder", "sphere"}

    Examples
    --------
    >>> import liedyn as ld
    >>> wheel = ld.Pulley("ground", (0.0, 0.0, 1.0), radius=0.1, turn=1)
    """

    body: str
    placement: ArrayLike | None = None
    radius: float = 0.1
    turn: int = 0
    side: ArrayLike | None = None
    shape: str = "cylinder"


@dataclass(frozen=True, eq=False)
class Station(_Record):
    """A point of a path, or what it goes round, checked.

    Attributes
    ----------
    body : str
    placement : ndarray, shape (4, 4)
    shape : str
        "point", "cylinder" or "sphere".
    radius : float
    sense : int
    side : ndarray, shape (3,)
    """

    body: str
    placement: Array
    shape: str = "point"
    radius: float = 0.0
    sense: int = 0
    side: Any = None


@dataclass(frozen=True, eq=False)
class Cable(_Record):
    """The length of a path minus that at rest, as a measure of force elements and actuators.

    Attributes
    ----------
    name : str
    stations : tuple of Station
    length : float
        [m]
    """

    name: str
    stations: tuple[Station, ...]
    length: float = 0.0

    parent = child = None
    kind = "cable"

    @property
    def coefficients(self) -> dict[str, float]:
        return {}

    @property
    def bodies(self) -> set[str]:
        return {each.body for each in self.stations}

    @property
    def row(self) -> Constraint:
        """The row of constraints to which kernels add the length of the path."""
        return Constraint(self.name, "coupling", rows=(".sum",), holonomic=1, offset=self.length)


def cable(owner, name, path, length):
    """The `Cable` of a user's path; ModelError for one that is none."""
    if not isinstance(path, (tuple, list)):
        raise ModelError(f"{owner}, path: expected points (body, place) and pulleys, got {shown(path)}")
    stations = tuple(_station(f"{owner}, path", each) for each in path)
    kinds = [each.shape == "point" for each in stations]
    if len(stations) < 2 or not (kinds[0] and kinds[-1]) or any(not (a or b) for a, b in zip(kinds, kinds[1:])):
        raise ModelError(f"{owner}, path: a cable begins and ends at a point, and has one between two pulleys")
    return Cable(name, stations, float(numbers(owner, "length", length, ())))


def _station(owner, each):
    if isinstance(each, Station):
        return each
    if isinstance(each, dict):
        given = dict(each)
        given["placement"] = pose_from(**given["placement"]) if isinstance(given.get("placement"), dict) else given.get(
            "placement")
        if "radius" not in given:
            return _point(owner, given.pop("body", None), given.pop("placement"), given)
        each = _pulley(owner, given)
    if isinstance(each, Pulley):
        return _wrapped(owner, each)
    if not isinstance(each, (tuple, list)) or len(each) != 2:
        raise ModelError(f"{owner}: expected points (body, place) and pulleys, got {shown(each)}")
    return _point(owner, *each, {})


def _point(owner, body, place, more):
    if more:
        raise ModelError(f"{owner}: a point has a body and a placement, got {shown(next(iter(more)))}")
    return Station(validation.text(owner, "body", body), validation.pose(owner, "placement", place))


def _pulley(owner, given):
    try:
        return Pulley(**given)
    except TypeError:
        raise ModelError(f"{owner}: a pulley has body, placement, radius, turn, side and shape, got "
                         f"{shown(list(given))}") from None


def _wrapped(owner, each):
    radius = float(numbers(owner, "radius", each.radius, ()))
    shape = validation.choice(owner, "shape", each.shape, WRAPPED)
    if not radius > 0.0:
        raise ModelError(f"{owner}, radius: must be positive, got {radius}")
    turns = not isinstance(each.turn, bool) and each.turn in (-1, 0, 1)
    if not turns or each.turn and (shape == "sphere" or each.side is not None):
        raise ModelError(f"{owner}, turn: 1, -1 or 0 round a cylinder, without a side, got {shown(each.turn)}")
    side = None if each.side is None else numbers(owner, "side", each.side, (3,))
    body, place = validation.text(owner, "body", each.body), validation.pose(owner, "placement", each.placement)
    return Station(body, place, shape, radius, int(each.turn) if side is None else SIDE, side)


def arguments_of_station(station):
    """A station as a table of files, which `cable` takes."""
    from liedyn.model.frames import rpy_from_rotation

    parts = {"xyz": station.placement[:3, 3], "rpy": rpy_from_rotation(station.placement[:3, :3])}
    found = {"body": station.body} | {"placement": {key: x.tolist() for key, x in parts.items() if x.any()}}
    if not found["placement"]:
        del found["placement"]
    if station.shape == "point":
        return found
    more = {"turn": station.sense} if station.sense in (-1, 1) else {}
    more |= {"side": station.side.tolist()} if station.side is not None else {}
    more |= {"shape": station.shape} if station.shape != "cylinder" else {}
    return found | {"radius": station.radius} | more


def path_numbers(robot, cable):
    """The numbers of a path, for the robot with its bodies."""
    ends = [(k, each) for k, each in enumerate(cable.stations) if each.shape == "point"]
    found = [float(len(ends) - 1)]
    for (k, one), (l, two) in zip(ends, ends[1:]):
        between = cable.stations[k + 1] if l > k + 1 else None
        (a, A), (b, B) = _in_link(robot, one), _in_link(robot, two)
        c, C = (-1, np.eye(4)) if between is None else _in_link(robot, between)
        kind = STRAIGHT if between is None else WRAPPED[between.shape]
        side = np.zeros(3) if between is None or between.side is None else between.side
        found += [float(kind), float(a), float(b), float(c), *A[:3, 3], *B[:3, 3], *C[:3, :3].ravel(), *C[:3, 3],
                  between.radius if between else 0.0, float(between.sense) if between else 0.0, *side]
    return [float(x) for x in found]


def _in_link(robot, station):
    """Number of the link that carries a station, and its pose there."""
    if station.body == GROUND:
        return -1, station.placement
    (ints, floats), b = robot.packed, robot.body_index(station.body)
    at = int(ints[BODY_FLOATS_AT]) + BODY_F * b
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = floats[at:at + 9].reshape(3, 3), floats[at + 9:at + 12]
    return int(ints[int(ints[BODIES_AT]) + BODY_I * b + BODY_LINK]), X @ station.placement
