"""The linearization of one state, from Python, with an error message for each cause of failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.linear.local import linearize_kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints.free_velocities import TANGENT
from liedyn.mechanics.constraints.independent import (
    Independent, choose_positions, choose_speeds, holonomic, singular_choice, tangent_conditions, wrong_count,
)
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.dynamics.forward import warn_if_poor
from liedyn.mechanics.dynamics.nullspace import OK, WRONG_COUNT, nullspace_kernel
from liedyn.mechanics.dynamics.nullspace import raise_for_status
from liedyn.mechanics.dynamics.singular import LINEARIZATION, POOR_CONDITION, require_regular, warn_if_digits_are_lost
from liedyn.mechanics.dynamics.state import State

if TYPE_CHECKING:
    from liedyn.model.robot import Robot

CLOSURE_TOLERANCE = 1e-8
"""Largest closure error, and largest violation of G v = b relative to |v|, of an operating point: the derivatives
are those of the manifold, and do not exist off it."""


def require_consistent(robot, q, v, residual, psi, tolerance):
    """Requires a state on the constraint manifold; returns the largest closure error.

    Raises ClosureError if a loop is open, or another constraint is not met. Raises InputError if the velocity violates
    a constraint.
    """
    if not len(residual):
        return 0.0
    row = np.abs(residual).argmax()
    error, owner = abs(residual[row]), robot.row_owners[row]
    if error > tolerance:
        what = f"loop {owner!r} of {robot.name!r} is open" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r} is not met: off")
        raise ClosureError(f"{what} by {error:.3g} ({robot.row_names[row]}); assemble it first with close()"
                           f"{_clock(robot)}", float(error), owner, q)
    row = np.abs(psi).argmax()
    if abs(psi[row]) > tolerance * max(1.0, np.abs(v).max()):
        owner, moves = robot.row_owners[row], abs(psi[row])
        what = f"the loops of {robot.name!r}: |G v - b|" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r}: |G v - b|")
        raise InputError(f"v opens {what} = {moves:.3g} in {robot.row_names[row]}; "
                         f"make v consistent with complete_velocity(){_clock(robot)}")
    return float(error)


def _clock(robot):
    """Addition to messages about robots with functions of time, some of which may prescribe motions."""
    return f"; prescribed motions are taken at t = {robot.t:g}, use robot.at(t) for another time" if (
        robot.functions) else ""


def actuators_of(robot, loop=None):
    """S_u of tau = S_u u, with the inputs of a feedback after those of the actuators."""
    # a copy: the robot's own is read-only, a type for which Numba would compile all kernels once more
    if "actuators" not in robot._memo:
        robot._memo["actuators"] = robot.tree_actuators.copy()
    return robot._memo["actuators"] if loop is None else np.hstack([robot.tree_actuators, loop.S])


@dataclass(frozen=True)
class Found:
    """One linearized state: coordinates y, velocities w, rank and condition number, closure error, `Local`."""

    coordinates: Independent
    velocities: Independent
    rank: int
    condition: float
    residual: float
    local: object


class Asked(NamedTuple):
    """A robot, the leading axes of its states, and the coordinates y and velocities w in which they are linearized."""

    robot: Robot
    lead: tuple[int, ...]
    y: Independent
    w: Independent


def linearize_at(robot, state, independent, speeds, closure_tolerance, rank_tolerance, loop=None):
    q, v, tau, f_ext = state
    y = choose_positions(robot, q, independent, rank_tolerance)
    w = choose_speeds(robot, q, y, speeds, rank_tolerance)
    of_w, of_y, local = linearize_kernel(robot.packed, q, v, tau, f_ext, y.rows, y.virtual, w.rows,
                                         w.virtual, actuators_of(robot, loop), rank_tolerance)
    raise_errors(robot.functions)
    require_rows(robot, (), local.residual[None], local.psi[None])
    residual = require_consistent(robot, q, v, local.residual, local.psi, closure_tolerance)
    status, rank, condition = of_w
    if status != OK:
        raise_for_status(robot, q, w, nullspace_kernel(
            robot.packed, q, v, tau, f_ext, w.rows, w.virtual, rank_tolerance))
    if of_y[0] == WRONG_COUNT:
        raise wrong_count(robot, y, of_y[1])
    if of_y[0] != OK:
        raise singular_choice(robot, q, y, holonomic(robot))
    judge(Asked(robot, (), y, w), State(*(x[None] for x in state)), local.a[None], np.array([rank]),
          np.array([condition]), np.array([of_y[2]]), rank_tolerance)
    return Found(y, w, rank, condition, residual, local)


def least(x):
    return x[0] if len(x) == 1 else np.minimum.reduce(x)  # a method of arrays has more overhead


def largest(x):
    return x[0] if len(x) == 1 else np.maximum.reduce(x)


def left_as_tangent(chosen):
    """True if the coordinates are tangent spaces, which the kernel computes at each state."""
    return len(chosen.virtual) > 0 and chosen.virtual[0] == TANGENT


def judge(asked, state, a, rank, condition, condition_y, tolerance):
    """Raises SingularConfigurationError at a singular configuration, warns if few digits are correct."""
    robot, lead, y, w = asked
    require_regular(robot, lead, state.q, rank, tolerance)
    of_both = np.maximum(condition, condition_y)
    if not warn_if_digits_are_lost(robot, state.q, state.v, a, rank, of_both, LINEARIZATION):
        worst = largest(condition)
        # `worst` is the condition of the coordinates that pivoting chose
        if worst > POOR_CONDITION and left_as_tangent(w):
            worst = tangent_conditions(robot, state.q[condition.argmax()][None], tolerance)[0]
        warn_if_poor(w, worst)
        if y is not w:
            warn_if_poor(y, largest(condition_y))
