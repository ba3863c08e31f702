"""The continuous states of an FMU: independent coordinates as numbers of q, and independent velocities.

An angle or a length is a state itself. A ball joint has three degrees of freedom and four states, its quaternion, and a
free joint six and seven: these cannot be divided, so all of a joint's degrees of freedom are independent, or none.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import (
    Independent, choose_positions, choose_speeds, holonomic, singular_choice, wrong_count,
)
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.kinds import are_lengths
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_NQ, LINK_NV, links_of

ANGLE, LENGTH, QUATERNION = ("rad", "rad/s", "rad/s2"), ("m", "m/s", "m/s2"), ("1", "1/s", None)
"""Units of a coordinate, and of its first and second derivative."""


class Group(NamedTuple):
    """One independent link.

    Attributes
    ----------
    states : slice
        Its numbers among the states: one, four or seven.
    tangents : list of int
        Its numbers among the coordinates y, one for each degree of freedom.
    dofs : list of int
        The same as places in v.
    """

    states: slice
    tangents: list
    dofs: list


class States(NamedTuple):
    """Which numbers are states.

    Attributes
    ----------
    y, w : Independent
        Coordinates and velocities, as `linearize` takes them.
    places : list of int
        Places in q of the states of position, which come first.
    speeds : list of int
        Places in v of the others.
    groups : list of Group
    names : tuple of str
    units : list of tuple
        The unit of each state, of its derivative, and of that one's derivative.
    """

    y: Independent
    w: Independent
    places: list
    speeds: list
    groups: list
    names: tuple
    units: list


def states_of(robot, q, independent):
    """The states for a choice of independent coordinates (`linearize`), made at q.

    Raises InputError for coordinates that are no numbers of q, only a part of a joint's rotation, too few or too many,
    and for a mechanism that cannot move, SingularConfigurationError for those that do not determine the motion.
    """
    y = choose_positions(robot, q, independent, RANK_TOLERANCE)
    w = choose_speeds(robot, q, y, None, RANK_TOLERANCE)
    if not w.names:
        raise InputError(f"an FMU has states, but constraints let nothing of {robot.name!r} move")
    for chosen in (y, w):
        for name in chosen.names:
            if name not in robot.velocity_names:
                raise InputError(f"states of an FMU are coordinates of the tree, but {name!r} is not: name others as "
                                 "`independent`, or cut the loop at another joint")
    _require_determined(robot, q, y, holonomic(robot))
    _require_determined(robot, q, w, slice(None))
    groups, places, taken = [], [], set()
    for name in y.names:
        if name not in taken:
            group, own = _group(robot, y, name, len(places))
            groups.append(group)
            places += own
            taken.update(robot.velocity_names[j] for j in group.dofs)
    names = tuple(robot.coordinate_names[k] for k in places) + w.rates
    lengths = are_lengths(robot)
    units = [_unit_of_coordinate(robot, k) for k in places]
    units += [(*(LENGTH if lengths[robot.velocity_index(name)] else ANGLE)[1:], None) for name in w.names]
    return States(y, w, places, [robot.velocity_index(name) for name in w.names], groups, names, units)


def _require_determined(robot, q, chosen, rows):
    """Raises an error if coordinates are too few or too many, or do not determine the motion, with these rows of G."""
    G = constraint_jacobian(robot, q)[rows]
    rank = np.linalg.matrix_rank(G, RANK_TOLERANCE) if G.size else 0
    if rank + len(chosen.names) != robot.nv:
        raise wrong_count(robot, chosen, rank)
    if np.linalg.matrix_rank(np.vstack([G, chosen.rows]), RANK_TOLERANCE) < robot.nv:
        raise singular_choice(robot, q, chosen, rows)


def _group(robot, y, name, count):
    j = robot.velocity_index(name)
    iq, iv, nq, nv = next(tuple(map(int, link)) for link in links_of(robot.packed)[0][
        :, [LINK_IQ, LINK_IV, LINK_NQ, LINK_NV]] if link[1] <= j < link[1] + link[3])
    dofs = list(range(iv, iv + nv))
    missing = [robot.velocity_names[k] for k in dofs if robot.velocity_names[k] not in y.names]
    if missing:
        raise InputError(f"{name!r} is a part of a joint's motion that is no number of q without {', '.join(missing)}: "
                         "name all or none of them as `independent`")
    return (Group(slice(count, count + nq), [y.names.index(robot.velocity_names[k]) for k in dofs], dofs),
            list(range(iq, iq + nq)))


def _unit_of_coordinate(robot, k):
    name = robot.coordinate_names[k]
    if name in robot.velocity_names:
        return LENGTH if are_lengths(robot)[robot.velocity_index(name)] else ANGLE
    return QUATERNION
