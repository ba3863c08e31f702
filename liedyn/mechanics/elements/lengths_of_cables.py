"""Lengths of the paths of all cables of a robot."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.loops import closure_error
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.elements.generalized import _forces
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


def cable_lengths(robot: Robot, q: ArrayLike) -> dict[str, Any]:
    """Lengths of the paths of cables and winches.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    lengths : dict
        By name of a cable, inextensible or elastic, or of a winch: the length of its path [m], shape (...).

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length; cables of different kinds
        share a name.
    SingularConfigurationError
        A path has no length: one of its points lies within what it goes round.

    Examples
    --------
    >>> import math
    >>> import liedyn as ld
    >>> b = ld.Builder("bob")
    >>> b.body("bob", mass=1.0)
    >>> b.joint("motion", "translational", "ground", "bob")
    >>> b.cable("string", [("ground", (0, 0, 0)), ("bob", (0, 0, 0))], length=1.0, stiffness=math.inf)
    >>> lengths = ld.cable_lengths(b.build(), [0.3, 0.0, 0.4])
    >>> float(lengths["string"])
    0.5
    """
    require_robot(robot)
    lead, rows = states(robot, q=q)
    found = []
    if robot.elements is not None:
        measures = [each.measure for each in (*robot.model.elements, *(
            each.element for each in robot.model.actuators if each.name in robot.elements.driven))]
        x = _forces(robot, rows, np.zeros((len(rows), robot.nv)))[1]
        found = [(each.name, x[:, row] + each.length) for each, row in zip(measures, robot.elements.rows)
                 if each.kind == "cable"]
    own = {each.name: each.length for each in robot.model.constraints if each.kind == "cable"}
    if own:
        closed = robot.switched(dict.fromkeys(own, "sticking"))
        g = closure_error(closed, rows)
        require_rows(closed, lead, g)
        found += [(name, g[:, closed.row_owners.index(name)] + length) for name, length in own.items()]
    lengths = {name: x.reshape(lead) for name, x in found}
    if len(lengths) < len(found):
        names = [name for name, _ in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(
            f"several cables of {robot.name!r} are called {', '.join(map(shown, twice))}: rename all but one")
    return lengths
