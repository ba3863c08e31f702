"""Which outputs of a linearization are coordinates of the tree: those need no Python at each state."""
from dataclasses import dataclass

import numpy as np

from liedyn.constraints.independent import by_name
from liedyn.linearization.states import ACCELERATION, POSITION, VELOCITY

NO_OUTPUTS = np.zeros((0, 2), dtype=np.int64)
_KINDS = {"position": POSITION, "velocity": VELOCITY, "acceleration": ACCELERATION}


@dataclass(frozen=True)
class OutputPlan:
    """Outputs as `linearize_states` takes them.

    Attributes
    ----------
    labels : tuple of str
    rows : ndarray of int64, shape (count, 2)
        Kind and number of a velocity coordinate; none where the outputs are the independent coordinates themselves.
    """

    labels: tuple
    rows: np.ndarray


def output_plan(robot, names, chosen):
    """The plan, or None if there are other outputs than coordinates of the tree."""
    if not names:
        return OutputPlan(chosen.names, NO_OUTPUTS)
    key = ("outputs", names, chosen.names)
    if key not in robot.memo:
        robot.memo[key] = _plan(robot, names, chosen)
    return robot.memo[key]


def _plan(robot, names, chosen):
    if names == chosen.names and set(names) <= set(robot.velocity_names):
        return OutputPlan(names, NO_OUTPUTS)
    labels, rows = [], []
    for name in names:
        kind, _, what = name.partition(":") if ":" in name else ("position", ":", name)
        if kind not in _KINDS:
            return None
        for member in by_name(robot, [what]).names:
            if member not in robot.velocity_names:
                return None
            labels.append(member if kind == "position" else f"{kind}:{member}")
            rows.append((_KINDS[kind], robot.velocity_index(member)))
    return OutputPlan(tuple(labels), np.array(rows, dtype=np.int64))
