"""Paths of cables as kernels see them."""
import numpy as np

STRAIGHT, CYLINDER, SPHERE, BELT = range(4)
"""Kinds of the pieces of a cable's path. A path is packed as their number, and PIECE numbers for each: its kind; the
links of its two points and of what is wrapped (of the first point, for a straight piece); the points in their links;
the pose of the wrapped frame C in its link; radius; sense; the side point in C.

Where pulleys follow each other, a belt lies in the plane of the first one, whose frame is C: the points are the centres
of two pulleys, or an end; the radius is that of the first one, with its sense as sign, minus that of the second one;
the sense is the second radius with its sign, and the side point the axis of the second one in its link."""
LINKS, POINTS, FRAME, RADIUS, SENSE, SIDE_AT, PIECE = 1, 4, 10, 22, 23, 24, 27
SHORTEST, SIDE = 0, 2
"""Senses besides +1 and -1, counterclockwise and clockwise about the axis."""
WRAPPED = {"cylinder": CYLINDER, "sphere": SPHERE}


def parts_of(stations):
    """The parts of a path, from point to point; a closed belt is one part."""
    ends = [k for k, each in enumerate(stations) if each.shape == "point"] or [0, len(stations) - 1]
    return [stations[k:l + 1] for k, l in zip(ends, ends[1:])]


def is_belt(part):
    """True if pulleys follow each other."""
    return len(part) > 3 or part[0].shape != "point"


def path_numbers(tree, stations):
    """The numbers of a path, for the links that carry its bodies (`liedyn.model.links`)."""
    pieces = []
    for part in parts_of(stations):
        wheel = next((each for each in part if each.shape != "point"), None)
        c, C = (-1, np.eye(4)) if wheel is None else _in_link(tree, wheel)
        for one, two in zip(part, part[1:]) if is_belt(part) else [(part[0], part[-1])]:
            (a, A), (b, B) = _in_link(tree, one), _in_link(tree, two)
            kind, radius, sense, side = STRAIGHT, 0.0, 0.0, np.zeros(3)
            if wheel is None:
                c = a
            elif is_belt(part):
                kind, radius, sense = BELT, one.sense * one.radius - two.sense * two.radius, two.sense * two.radius
                side = B[:3, 2]
            else:
                kind, radius, sense = WRAPPED[wheel.shape], wheel.radius, wheel.sense
                side = side if wheel.side is None else wheel.side
            pieces.append([kind, a, b, c, *A[:3, 3], *B[:3, 3], *C[:3, :3].ravel(), *C[:3, 3], radius, sense, *side])
    return np.array([len(pieces), *np.ravel(pieces)], dtype=float)


def _in_link(tree, station):
    """Number of the link that carries a station, -1 for the ground, and its pose there."""
    return tree.body_links[station.body], tree.body_poses[station.body] @ station.placement
