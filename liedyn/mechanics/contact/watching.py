"""Whether the state decides modes of one-sided constraints; other robots do not import the contact code."""
from liedyn.machine.errors import listed
from liedyn.model.kinds import DRY_FRICTION
from liedyn.model.packed import LOOP_ACTIVE, LOOP_KIND, LOOP_SIDE, OFF, OPEN, constraints_of

WATCHES = "watches contacts"
"""Key of `robot._memo`."""


def watches(robot):
    """True if contacts may open or close: some one-sided constraint is not off, "sliding" or "sticking"."""
    memo = robot._memo
    if WATCHES not in memo:
        records, _ = constraints_of(robot.packed)
        memo[WATCHES] = bool(((records[:, LOOP_SIDE] != 0) & (records[:, LOOP_ACTIVE] == OPEN)).any())
    return memo[WATCHES]


def dry_friction_of(robot, fixed=False):
    """What a robot has, and what to do, for callers that do not know dry friction that sticks; empty if it has none.

    `fixed` includes that whose mode is fixed.
    """
    records, _ = constraints_of(robot.packed)
    there = records[:, LOOP_ACTIVE] != OFF if fixed else records[:, LOOP_ACTIVE] == OPEN
    dry = (records[:, LOOP_KIND] == DRY_FRICTION) & there
    names = [name for name, is_dry in zip(robot.constraint_names, dry) if is_dry]
    return names and (f"dry friction of joints that sticks, {listed(names)}: declare it smooth instead, "
                      f"Builder.friction(..., width=1e-3), or switch it off, robot.switched({{{names[0]!r}: False}})")
