"""How large a mechanism is: what makes closure errors and speeds in metres comparable with those in radians.

The size is the largest distance, in the packed model, of a joint's frame from that of its parent, of a constraint's
frame from its body's, or the largest length or radius of a constraint. A mechanism drawn in millimetres is thus held as
closely as the same one in metres or kilometres.
"""
import numpy as np

from liedyn.model.kinds import CONSTRAINT_KINDS, JOINTS, KINDS, LOOP_KINDS
from liedyn.model.packed import (
    LINK_PLACEMENT, LINK_PRIMITIVE, LOOP_COEFFICIENTS, LOOP_KIND, LOOP_LENGTH, LOOP_NROWS, LOOP_POSE_A, LOOP_POSE_B,
    LOOP_RADIUS, constraints_of, links_of,
)

POSITION = slice(9, 12)  # of a pose, behind its rotation


def size_of(robot):
    """Size of a robot [m]; 1 where its model contains no length.

    Examples
    --------
    >>> import liedyn as ld
    >>> size_of(ld.load("five_bar"))
    1.5
    """
    links, loops = links_of(robot.packed)[1], constraints_of(robot.packed)[1]
    points = [records[:, at:][:, POSITION] for records, at in (
        (links, LINK_PLACEMENT), (loops, LOOP_POSE_A), (loops, LOOP_POSE_B))]
    surfaces = loops[[KINDS[k] in LOOP_KINDS or CONSTRAINT_KINDS[KINDS[k]].family == "contact" for k in _kinds(robot)]]
    lengths = [np.linalg.norm(np.concatenate(points), axis=1), np.abs(surfaces[:, [LOOP_LENGTH, LOOP_RADIUS]]).ravel()]
    return float(np.concatenate(lengths).max(initial=0.0)) or 1.0


def velocity_sizes(robot):
    """What each velocity is measured in: 1 rad/s, or the robot's size a second; shape (nv,)."""
    links, size = links_of(robot.packed)[0], size_of(robot)
    motions = [each for primitive in links[:, LINK_PRIMITIVE] for each in JOINTS[primitive].motions]
    return np.array([size if each[0] == "v" else 1.0 for each in motions])


def row_sizes(robot):
    """What the residual of each constraint row is measured in: 1 rad or the robot's size; shape (m,).

    That of a coupling follows from the coordinates it couples. Rows of a user's own count as they are.
    """
    size, rows = size_of(robot), []
    loops, _ = constraints_of(robot.packed)
    for numbers, kind in zip(loops, _kinds(robot)):
        name, count = KINDS[kind], numbers[LOOP_NROWS]
        if name in LOOP_KINDS:
            rows += [1.0 if component[0] == "w" else size for component in LOOP_KINDS[name].forbidden]
        elif CONSTRAINT_KINDS[name].coefficients:
            at = numbers[LOOP_COEFFICIENTS]
            coefficients = np.abs(robot.floats[at:at + robot.nv])
            rows += [(coefficients * velocity_sizes(robot)).max(initial=0.0) or 1.0] * int(count)
        else:
            rows += [1.0 if name == "custom" else size] * int(count)
    return np.array(rows)


def _kinds(robot):
    return constraints_of(robot.packed)[0][:, LOOP_KIND]
