"""The size of a mechanism, which makes closure errors and speeds in metres comparable with those in radians.

The size is the largest distance, in the packed model, of a joint's frame from that of its parent, of a constraint's
frame from its body's, or the largest length or radius of a constraint. So the relative accuracy of a mechanism is the
same in millimetres, metres and kilometres.
"""
import math

import numpy as np

from liedyn.model.kinds import CONSTRAINT_KINDS, JOINTS, KINDS, LOOP_KINDS
from liedyn.model.packed import (
    LINK_PARENT, LINK_PLACEMENT, LINK_PRIMITIVE, LOOP_COEFFICIENTS, LOOP_KIND, LOOP_LENGTH, LOOP_LINK_A, LOOP_LINK_B,
    LOOP_NROWS, LOOP_POSE_A, LOOP_POSE_B, LOOP_RADIUS, constraints_of, links_of,
)
from liedyn.model.remembered import remembered

POSITION = slice(9, 12)  # of a pose, after its rotation


@remembered
def size_of(robot):
    """Size of a robot [m]; 1 if its model contains no length.

    Examples
    --------
    >>> import liedyn as ld
    >>> size_of(ld.load("five_bar"))
    1.5
    """
    links, loops = links_of(robot.packed)[1], constraints_of(robot.packed)[1]
    points = [records[:, at:][:, POSITION] for records, at in (
        (links, LINK_PLACEMENT), (loops, LOOP_POSE_A), (loops, LOOP_POSE_B))]
    lengths = np.append(np.linalg.norm(np.concatenate(points), axis=1), _surfaces(robot))
    return float(lengths.max(initial=0.0)) or 1.0


@remembered
def velocity_sizes(robot):
    """The unit of each velocity: 1 rad/s, or the robot's size per second; shape (nv,), read-only."""
    return _read_only(np.where(_slides(robot), size_of(robot), 1.0))


@remembered
def row_sizes(robot):
    """The unit of the residual of each constraint row: 1 rad or the robot's size; shape (m,), read-only.

    The unit of a coupling follows from its coordinates. Custom rows have unit 1.
    """
    return _read_only(_row_sizes(robot, size_of(robot)))


def _read_only(x):
    """`x`, which is shared by all who ask and must stay as it is."""
    x.flags.writeable = False
    return x


def _row_sizes(robot, size):
    """`row_sizes` for a given unit of length."""
    rows, (loops, _) = [], constraints_of(robot.packed)
    for numbers, kind in zip(loops, _kinds(robot)):
        name, count = KINDS[kind], numbers[LOOP_NROWS]
        if name in LOOP_KINDS:
            rows += [1.0 if component[0] == "w" else size for component in LOOP_KINDS[name].forbidden]
        elif CONSTRAINT_KINDS[name].coefficients:
            at = numbers[LOOP_COEFFICIENTS]
            coefficients = np.abs(robot.packed.floats[at:at + robot.nv])
            rows += [(coefficients * np.where(_slides(robot), size, 1.0)).max(initial=0.0) or 1.0] * int(count)
        else:
            rows += [1.0 if name == "custom" else size] * int(count)
    return np.array(rows)


ROUNDING = 1e-14
"""Distances below this fraction of the largest distance from the origin are rounding of positions in a file."""
UNITS = 256.0
"""Ratio of consecutive units of length: the unit is 1 for machines of 0.03 to 8 m, such as most robots."""


def weights(robot):
    """Weights of the rows (m) and columns (nv) of G, by which they are multiplied before ranks are computed
    (`liedyn.machine.linalg.ranks`).

    Angles are in radians, lengths in a unit near the largest distance in the mechanism, wherever it stands. If it
    stands or reaches far away, its positions are rounded accordingly, and all rows get smaller weights. Weights are
    powers of two.

    Examples
    --------
    >>> import liedyn as ld
    >>> [x.tolist() for x in weights(ld.load("slider_crank"))]
    [[1.0], [1.0, 1.0]]
    """
    length, reach = _extent(robot)
    unit = _unit(length)
    far = 2.0 ** math.floor(math.log2(max(1.0, reach / (UNITS * unit))))
    rows = np.array([_unit(x) for x in _row_sizes(robot, unit)])
    return 1.0 / (far * rows), np.where(_slides(robot), unit, 1.0)


def _unit(x):
    """The power of UNITS nearest to twice a positive number, on a logarithmic scale."""
    return UNITS ** round(math.log(2.0 * x) / math.log(UNITS)) if x > 0.0 else 1.0


def _extent(robot):
    """The largest distance between neighbours in the mechanism, 0 without any; and its largest possible distance from
    the origin. Distances that are rounding of the positions count as zero.

    Positions on the ground are used only if there are no other distances, and are relative to their centre.
    """
    (links, records), (loops, frames) = links_of(robot.packed), constraints_of(robot.packed)
    parents, places = links[:, LINK_PARENT], records[:, LINK_PLACEMENT:][:, POSITION]
    bodies = np.concatenate([parents, loops[:, LOOP_LINK_A], loops[:, LOOP_LINK_B]])
    points = np.concatenate([places] + [frames[:, at:][:, POSITION] for at in (LOOP_POSE_A, LOOP_POSE_B)])
    distances, moves = np.linalg.norm(points, axis=1), bodies >= 0
    reach = [*distances[:len(parents)].tolist(), 0.0]
    for i, parent in enumerate(parents.tolist()):
        reach[i] += reach[parent] if parent >= 0 else 0.0
    far = distances + np.where(moves, np.array(reach)[bodies], 0.0)
    lengths = np.append(distances[moves], _surfaces(robot))
    lengths = np.where(lengths > ROUNDING * far.max(initial=0.0), lengths, 0.0)
    if not lengths.any() and len(points):
        lengths = np.linalg.norm(points - points.mean(axis=0), axis=1)
    return lengths.max(initial=0.0), far.max(initial=0.0)


def _kinds(robot):
    return constraints_of(robot.packed)[0][:, LOOP_KIND]


def _surfaces(robot):
    """Lengths and radii of contacts and cables."""
    loops = constraints_of(robot.packed)[1]
    have = [KINDS[k] in LOOP_KINDS or CONSTRAINT_KINDS[KINDS[k]].family in ("contact", "cable") for k in _kinds(robot)]
    return np.abs(loops[have][:, [LOOP_LENGTH, LOOP_RADIUS]]).ravel()


def _slides(robot):
    """A mask of the velocities that are measured in lengths."""
    links = links_of(robot.packed)[0]
    return np.array([each[0] == "v" for primitive in links[:, LINK_PRIMITIVE] for each in JOINTS[primitive].motions],
                    dtype=bool)
