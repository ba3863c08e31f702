"""Errors for constraint rows that are not finite: which constraint has no direction at a configuration, and why.

The rate of a distance is n . v with n = p / |p|. If both points coincide, n is 0 / 0; likewise for rows on the axis of
a cylinder, and for a disk that lies flat (`liedyn.mechanics.constraints.families.contact`). Kernels write NaN there;
callers check here before they pass rows to linear algebra, which may never return for NaN, or to users.
"""
import numpy as np

from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, SingularConfigurationError, of_the_batch
from liedyn.model.kinds import CONSTRAINT_KINDS


def require_rows(robot, lead, *arrays):
    """Check that arrays (count, m, ...) of constraint rows, for a batch of leading shape `lead`, are finite.

    SingularConfigurationError if a constraint has no direction at some configuration; InputError if numbers overflow,
    or the result of a user's function is not finite.
    """
    if all(np.isfinite(x).all() for x in arrays):
        return
    raise_errors(robot.functions)
    bad = np.any([~np.isfinite(x.reshape(*x.shape[:2], -1)).all(axis=2) for x in arrays], axis=0)
    b = int(np.argmax(bad.any(axis=1)))
    with of_the_batch(lead, b):
        raise undefined_rows(robot, bad[b])


def undefined_rows(robot, bad):
    """The error for rows marked in `bad` (m,) that are not finite at a configuration."""
    every, said = robot.model.loops + robot.model.constraints, []
    for name in dict.fromkeys(owner for owner, is_bad in zip(robot.row_owners, bad) if is_bad):
        kind = CONSTRAINT_KINDS.get(every[robot.constraint_index(name)].kind)
        if kind is not None and kind.undefined:
            said.append(f"constraint {name!r} of {robot.name!r} has no direction here: {kind.undefined}")
    if said:
        return SingularConfigurationError("; ".join(said), np.zeros(1))
    return InputError(f"row {robot.row_names[int(np.argmax(bad))]} of the constraints of {robot.name!r} is not finite: "
                      "numbers overflow, or a function returns such")
