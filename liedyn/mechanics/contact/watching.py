"""Whether the state decides modes of one-sided constraints; other robots do not import the contact code."""
from liedyn.model.packed import LOOP_ACTIVE, LOOP_SIDE, OPEN, constraints_of

WATCHES = "watches contacts"
"""Key of `robot._memo`."""


def watches(robot):
    """True if contacts may open or close: some one-sided constraint is not off, "sliding" or "sticking"."""
    memo = robot._memo
    if WATCHES not in memo:
        records, _ = constraints_of(robot.packed)
        memo[WATCHES] = bool(((records[:, LOOP_SIDE] != 0) & (records[:, LOOP_ACTIVE] == OPEN)).any())
    return memo[WATCHES]
