"""Has a robot one-sided constraints that the state opens and closes? Others pay no more for contacts than this."""
from liedyn.model.packed import LOOP_ACTIVE, LOOP_I, LOOP_SIDE, LOOPS_AT, N_LOOPS, OPEN

WATCHES = "watches contacts"
"""Key of `robot.memo`."""


def watches(robot):
    """True if some one-sided constraint is neither off nor switched to "sliding" or "sticking"."""
    memo = robot.memo
    if WATCHES not in memo:
        ints = robot.ints
        records = ints[ints[LOOPS_AT]:ints[LOOPS_AT] + LOOP_I * ints[N_LOOPS]].reshape(-1, LOOP_I)
        memo[WATCHES] = bool(((records[:, LOOP_SIDE] != 0) & (records[:, LOOP_ACTIVE] == OPEN)).any())
    return memo[WATCHES]
