"""A warning if a spring on the angle of a cut joint passes half a turn from rest, where its force jumps."""
import warnings

import numpy as np

from liedyn.machine.errors import ModelWarning, shown
from liedyn.mechanics.elements.generalized import element_states
from liedyn.model.build import is_rate_only


def warn_if_wound(robot, trajectory):
    """Check the recorded states of a run.

    Warns
    -----
    ModelWarning
        Names the spring and the time.
    """
    if robot.elements is None or not robot.elements.laws.turns.any():
        return
    states = element_states(robot, trajectory.q, trajectory.v)
    for element, row in zip(robot.model.elements, robot.elements.rows):
        turn = robot.elements.laws.turns[row] if isinstance(row, int) else 0.0
        jumps = np.abs(np.diff(states[element.name][0])) > 0.5 * turn if turn and not is_rate_only(element) else False
        if np.any(jumps):
            t = trajectory.t[int(np.argmax(jumps)) + 1]
            warnings.warn(
                f"force element {shown(element.name)} of {robot.name!r} passes half a turn from rest before t = "
                f"{t:.6g} s, where its force jumps: the angle of a cut joint counts no turns; make that a joint of the "
                "tree, and cut another joint of the loop", ModelWarning, stacklevel=5)
