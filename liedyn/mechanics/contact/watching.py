"""Has a robot one-sided constraints that the state opens and closes? Others pay no more for contacts than this."""
from liedyn.model.packed import LOOP_ACTIVE, LOOP_SIDE, OPEN, constraints_of

WATCHES = "watches contacts"
"""Key of `robot._memo`."""


def watches(robot):
    """True if some one-sided constraint is neither off nor switched to "sliding" or "sticking"."""
    memo = robot._memo
    if WATCHES not in memo:
        records, _ = constraints_of(robot.packed)
        memo[WATCHES] = bool(((records[:, LOOP_SIDE] != 0) & (records[:, LOOP_ACTIVE] == OPEN)).any())
    return memo[WATCHES]
