"""Cables: paths through points of bodies and round cylinders and spheres, as declared and for kernels.

A cable is a constraint of the kind "cable", whose residual is the length of its path minus its own: of its own, if it
is inextensible, or as what a force element or a winch measures.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.cable_paths import SIDE, WRAPPED, is_belt, parts_of
from liedyn.model.description import Constraint, Station
from liedyn.model.frames import placement as pose_from
from liedyn.model.kinds import CONSTRAINT_KINDS
from liedyn.model.numbers import numbers

if TYPE_CHECKING:
    from liedyn.typing import ArrayLike

FLAT = 1e-6
"""How far pulleys of a belt may be out of one plane, as a slope; the same as for kernels, which see it later."""


@dataclass(frozen=True, eq=False)
class Pulley:
    """A cylinder or sphere on a body that a cable goes round, between two points of its path or from pulley to pulley.

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


def cable(owner, name, path, length):
    """The constraint that a user's path is as long as `length`; ModelError for a path that is none."""
    if not isinstance(path, (tuple, list)):
        raise ModelError(f"{owner}, path: expected points (body, place) and pulleys, got {shown(path)}")
    stations = tuple(_station(f"{owner}, path", each) for each in path)
    ends = len(stations) > 1 and {stations[0].shape == "point", stations[-1].shape == "point"}
    if ends != {True} and not (ends == {False} and len(stations) > 2 and _same(stations[0], stations[-1])
                               and all(each.shape != "point" for each in stations)):
        raise ModelError(f"{owner}, path: a cable begins and ends at a point; or it is a belt that goes round pulleys "
                         "only, and ends at the pulley where it begins")
    for part in parts_of(stations):
        if is_belt(part) and any(each.shape != "point" and each.sense not in (-1, 1) for each in part):
            raise ModelError(f"{owner}, path: pulleys that follow each other are cylinders with turn=1 or turn=-1; put "
                             "a point between others")
        if is_belt(part):
            _require_plane(owner, [each for each in part if each.shape != "point"])
    form = CONSTRAINT_KINDS["cable"]
    return Constraint(name, "cable", stations=stations, length=float(numbers(owner, "length", length, ())),
                      rows=form.rows, holonomic=form.holonomic)


def _require_plane(owner, pulleys):
    """ModelError if two pulleys of a belt on one body do not lie in one plane: they never will."""
    for k, one in enumerate(pulleys):
        for two in pulleys[:k]:
            axis, way = one.placement[:3, 2], two.placement[:3, 3] - one.placement[:3, 3]
            if one.body == two.body and np.abs(np.cross(axis, two.placement[:3, 2])).max() > FLAT:
                raise ModelError(f"{owner}, path: pulleys that follow each other have parallel axes, those of two on "
                                 f"{shown(one.body)} are {shown(axis.round(6).tolist())} and "
                                 f"{shown(two.placement[:3, 2].round(6).tolist())}; put a point between them")
            if one.body == two.body and abs(axis @ way) > FLAT * np.linalg.norm(way):
                raise ModelError(f"{owner}, path: pulleys that follow each other lie in one plane, those of two on "
                                 f"{shown(one.body)} are {abs(axis @ way):.6g} m apart; put a point between them")


def _same(one, two):
    """True if a belt may begin at one station and end at the other."""
    return (one.body, one.shape, one.radius, one.sense) == (two.body, two.shape, two.radius, two.sense) and (
        np.array_equal(one.placement, two.placement))


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
