"""Check whether the independent coordinates that a file declares fit its constraints."""
from dataclasses import replace

import numpy as np

from liedyn.machine.errors import LiedynError, cut, listed
from liedyn.mechanics.constraints.closing import CLOSED, Held, Target
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows
from liedyn.mechanics.constraints.independent import by_name, holonomic
from liedyn.mechanics.constraints.loops import constraint_jacobian, virtual_jacobian
from liedyn.mechanics.constraints.singular_guess import closed_from
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model.validation import warn

ELSEWHERE, ASIDE, OPEN = 2, 0.1, 1e-9
"""If they do not fit at home, which may be singular: the number of other configurations tried, their distance from home
[rad, m], and the closure error below which these count as closed."""


def fitting(robot, file):
    """The robot of a file; if its declared independent coordinates do not fit, without them, and with a warning.

    They fit if they determine the motion at home or near it: the positions, or if there are constraints on velocities
    only, the velocities. If home cannot be closed nothing is checked.
    """
    rng, q, trouble, none = np.random.default_rng(0), robot.home, "", np.empty(0, np.int64)
    free = Target(Held(np.zeros(robot.nv, np.int64), np.zeros(robot.nq, np.int64), none, none), q.copy(),
                  np.empty(0))
    for k in range(1 + ELSEWHERE):
        here = q.copy() if k == 0 else integrate(robot, q, ASIDE * rng.normal(size=robot.nv))
        here, status = closed_from(robot, here, free, OPEN)
        if status != CLOSED:
            continue
        try:
            found = _trouble(robot, here)
        except LiedynError:  # rows that are not defined here
            continue
        if not found:
            return robot
        trouble = trouble or found
    if not trouble:
        return robot
    warn(f"{cut(str(file))}: ignored independent: {listed(robot.independent)}, {trouble}; they are chosen where "
         "they are needed")
    return replace(robot, model=replace(robot.model, independent=()))


def _trouble(robot, q):
    """A text saying what is wrong with the independent coordinates at a configuration; empty if they fit."""
    G, chosen = constraint_jacobian(robot, q), by_name(robot, robot.independent)
    R, trouble = chosen.matrix(virtual_jacobian(robot, q)), ""
    for rows in (G, np.where(holonomic(robot)[:, None], G, 0.0)):
        freedom = robot.nv - rank_of_rows(robot, rows, RANK_TOLERANCE)
        if len(R) != freedom:
            found = f"{len(R)} where the robot has {freedom} degrees of freedom"
        elif rank_of_rows(robot, np.vstack([rows, R]), RANK_TOLERANCE) < robot.nv:
            found = "which do not determine its motion"
        else:
            return ""
        trouble = trouble or found
    return trouble
