"""Messages that say why a step failed.

A warning if a spring on the angle of a cut joint passes half a turn from rest, where its force jumps.
"""
import warnings

import numpy as np

from liedyn.machine.errors import ModelWarning, shown
from liedyn.mechanics.constraints.undefined import undefined_rows
from liedyn.mechanics.elements.generalized import element_states
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.model.build import is_rate_only
from liedyn.model.calls.boundary import is_usable
from liedyn.motion.simulation.singular_passages import NEAR
from liedyn.motion.simulation.workspace import DIVERGED, MESSAGES, NOT_CLOSED, NOT_CONVERGED, NOT_FINITE

ALMOST = 1e-2
"""Angle to the plane below which failures are put down to a disk that falls flat [rad]."""


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


def reason(status, robot, q, o, x, inputs, stepping):
    """Message for a status other than OK at q, from the scratch of the step; `stepping`: a time-stepping method."""
    text = MESSAGES[status].format(largest=o.largest.min())
    if stepping and status == NOT_CONVERGED:
        text = "no impulses that push and obey Coulomb's law could be found for a step: try a smaller dt"
    by_collocation = o.tableau[0, 0] != 0.0  # the first row of explicit methods is empty
    # with divergence any other failure may be a consequence
    if by_collocation and status != DIVERGED and not x.nearest[0] <= NEAR:
        return (f"the iteration of the implicit step does not converge near a singular configuration (condition number "
                f"{x.nearest[0]:.3g}), where its rates grow without bound however small dt is: explicit methods, as "
                "'rk4', pass it")
    if status in (NOT_FINITE, NOT_CONVERGED):
        text = _not_finite(robot, x, inputs) or text
    g = np.abs(x.residual) / x.row_sizes
    if status == NOT_CLOSED and (g > o.tolerance).any():
        worst = int(np.nanargmax(g))
        text += f" ({robot.row_names[worst]} is left at {abs(x.residual[worst]):.3g})"
    return text + _almost_flat(robot, q)


def _almost_flat(robot, q):
    """What a message adds where a disk lies almost flat, so that nothing holds its point of
    contact; else nothing."""
    for disk in robot.model.constraints:
        if disk.kind != "disk_on_plane":
            continue
        normal, axle = (
            (pose(robot, q, body)[:3, :3] if body in robot.body_names else np.eye(3)) @ frame[:3, :3] @ along
            for body, frame, along in ((disk.parent, disk.parent_placement, disk.axis),
                                       (disk.child, disk.child_placement, disk.child_axis)))
        if np.linalg.norm(np.cross(normal, axle)) < ALMOST:
            return (f" (the disk of {shown(disk.name)} lies almost flat, where its point of contact runs round the rim "
                    "without bound: let points of its rim touch instead)")
    return ""


def _not_finite(robot, x, inputs):
    """Message for the input or constraint that was not finite at the last evaluation of accelerations."""
    bad = np.flatnonzero(~is_usable(x.u))
    if len(bad):
        return f"the input {inputs.names[bad[0]]} is {x.u[bad[0]]}"
    bad = ~np.isfinite(x.gamma)
    return str(undefined_rows(robot, bad)) if bad.any() else ""
