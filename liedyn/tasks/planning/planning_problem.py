"""Cost and limits of a plan in the user's form, and packed for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.tree.places import places_of
from liedyn.model.calls.boundary import as_floats, require_usable, states
from liedyn.tasks.cost_weights import weight
from liedyn.tasks.planning.objective import COORDINATE, PLACE, SPEED, TARGET, Objective, TargetRows
from liedyn.tasks.reaching.packing import pack
from liedyn.tasks.reaching.target_rows import GOAL, RECORD
from liedyn.tasks.reaching.targets import Target, checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.typing import ArrayLike

FINE = 1e-12
"""Accuracy of closed states."""


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost of a plan: a sum over its steps, and a terminal term.

    Each step costs ``x^T Q x + du^T R du`` and the sum of (weight error)^2 of targets, as for `dlqr` without a factor
    1/2 or the duration of the step; the end costs ``x^T terminal_Q x`` and the same sum for its own targets.

    Attributes
    ----------
    Q : float, array_like, shape (x,) or (x, x), or dict
        Weight of the states' deviation from (q, v), positive semidefinite, as for `dlqr`. A dict gives a diagonal by
        name, ``{"boom": 100.0, "velocity:boom": 1.0}``; dependent coordinates may be named, too.
    R : float, array_like, shape (nu,) or (nu, nu), or dict
        Weight of the inputs' deviation from u, positive definite; a dict by name of an actuator.
    q, v, u : array_like, optional
        Reference state and inputs [rad, m; rad/s, m/s; N m, N]: one state, shapes (nq,), (nv,) and (nu,), or one for
        each knot, shapes (steps + 1, nq), (steps + 1, nv) and (steps, nu). Default: at rest at home, without forces.
        The reference need not close the loops.
    targets, terminal_targets : Target or sequence of Target
        Poses, points, directions of bodies (as for `inverse_kinematics`, with their weights), or the user's own
        targets; goals with an axis of steps + 1 move along the horizon. Priorities are ignored.
    terminal_Q : as Q

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> reach = ld.PointTarget("panda_hand", (0.4, 0.2, 0.4), weight=10.0)
    >>> cost = ld.Cost(Q=1e-3, R=1e-4, terminal_targets=reach)
    """

    Q: float | ArrayLike | dict[str, Any] = 0.0
    R: float | ArrayLike | dict[str, Any] = 1.0
    q: ArrayLike | None = None
    v: ArrayLike | None = None
    u: ArrayLike | None = None
    targets: Target | Sequence[Target] = ()
    terminal_Q: Any = 0.0
    terminal_targets: Target | Sequence[Target] = ()


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a plan: of all inputs, and of all states but the first, which is given.

    Attributes
    ----------
    inputs : pair of array_like, or dict, optional
        (lowest, highest), numbers or shape (nu,) [N m, N]; or pairs by name of an actuator. Satisfied exactly, at every
        iteration.
    coordinates, speeds : dict, optional
        Pairs (lowest, highest) by name of a coordinate [rad, m] or velocity [rad/s, m/s] of the tree, including
        dependent ones such as the stroke of a cylinder.
    targets : sequence of (Target, lowest, highest), optional
        Limits of each row of a target's error, numbers or shape (k,): a point above a height, or a user's own function
        of q with its Jacobian (`Target`). Equal limits are equations.
    contacts : bool or dict, optional
        In phases: True if closed contacts have to push, within their friction, at the beginning of each step and in
        impacts. A dict limits the contacts that it names, to its own coefficients of friction, ``{"foot": 0.5}``,
        infinite if the contact must only not pull. Default: all contacts, with the robot's friction.

    Examples
    --------
    >>> import liedyn as ld
    >>> limits = ld.Limits(inputs=(-2e5, 2e5), coordinates={"lift_rod": (-0.3, 0.5)}, speeds={"boom": (-1.0, 1.0)})
    """

    inputs: tuple[ArrayLike, ArrayLike] | dict[str, Any] | None = None
    coordinates: dict[str, Any] | None = None
    speeds: dict[str, Any] | None = None
    targets: Sequence[tuple[Target, Any, Any]] = ()
    contacts: bool | dict[str, Any] = True


def limits_of(limits):
    """The user's `Limits`; an empty one for None."""
    limits = Limits() if limits is None else limits
    if not isinstance(limits, Limits):
        raise InputError(f"limits: expected Limits, such as ld.Limits(inputs=(-1.0, 1.0)), got {shown(limits)}")
    return limits


def objective_of(robot, y, whole, cost, limits, steps):
    """`Objective`, the names of the limits, and users' functions of targets."""
    if not isinstance(cost, Cost):
        raise InputError(f"cost: expected a Cost, such as ld.Cost(Q=1.0, R=0.1), got {shown(cost)}")
    limits = limits_of(limits)
    n, nu, functions = robot.nv, len(robot.actuator_names), {}
    weights = np.array([_deviation_weight(robot, y, name, x) for name, x in (
        ("Q", cost.Q), ("terminal_Q", cost.terminal_Q))])
    rows = np.flatnonzero(weights.any(axis=(0, 1)))
    q = _reference(robot, "q", robot.home if cost.q is None else cost.q, robot.nq, steps + 1)
    states(robot, q=q)
    v = _reference(robot, "v", np.zeros(n) if cost.v is None else cost.v, n, steps + 1)
    u = _reference(robot, "u", np.zeros(nu) if cost.u is None else cost.u, nu, steps)
    running = _target_rows(robot, "targets", cost.targets, steps, functions)
    final = _target_rows(robot, "terminal_targets", cost.terminal_targets, steps, functions)
    balls = np.array([(each.start, each.stop - each.start) for each in robot.groups], np.int64).reshape(-1, 2)
    low, high = _input_limits(robot, limits.inputs)
    bounds, bounded, names = _limits(robot, limits, steps, functions)
    return Objective(
        rows, np.ascontiguousarray(weights[:, rows][:, :, rows]), weight("R", cost.R, robot.actuator_names, True),
        q, v, u, balls, int(whole), running, final, *bounds, bounded, low, high), names, functions


def _deviation_weight(robot, y, name, value):
    """Q by all coordinates and velocities of the tree (2 nv, 2 nv)."""
    n, full = robot.nv, np.zeros((2 * robot.nv, 2 * robot.nv))
    if isinstance(value, dict):
        labels = robot.velocity_names
        return weight(name, value, (*labels, *(f"velocity:{each}" for each in labels)), False)
    places = y.rows.argmax(axis=1)
    places = np.concatenate([places, n + places])
    full[np.ix_(places, places)] = weight(name, value, y.names + y.rates, False)
    return full


def _reference(robot, name, x, size, count):
    """One row, or one for each knot."""
    x = as_floats(f"{name} of the cost", x, size)
    if x.ndim > 2 or x.ndim == 2 and len(x) not in (1, count):
        raise InputError(f"{name} of the cost must have shape ({size},) or ({count}, {size}), got {x.shape}")
    require_usable(f"{name} of the cost", x)
    return x.reshape(-1, size).copy()


def _target_rows(robot, name, targets, steps, functions):
    if isinstance(targets, (tuple, list)) and not targets:
        return TargetRows(np.empty((0, RECORD), np.int64), np.empty(0), np.empty(0), np.empty((1, 0)))
    packed = pack(robot, checked(targets))
    functions |= packed.functions
    goals = packed.goals
    if goals.ndim > 2 or goals.ndim == 2 and len(goals) not in (1, steps + 1):
        raise InputError(f"{name}: goals must have no leading axes, or one of steps + 1 = {steps + 1}, got "
                         f"{goals.shape[:-1]}")
    return TargetRows(packed.problem.records, packed.problem.constants, packed.problem.weights,
                      np.ascontiguousarray(goals.reshape(-1, GOAL * len(packed.problem.records))))


def _pair(what, x, size=None):
    """(lowest, highest), each a number or an array of `size`."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise InputError(f"limits of {what} must be a pair (lowest, highest), got {shown(x)}")
    low, high = (floats(f"limits of {what}", each) for each in x)
    if any(each.shape not in ((), (size,)) for each in (low, high)):
        several = "" if size is None else f" or {size} numbers"
        raise InputError(f"limits of {what} must be numbers{several}, got {shown(x)}")
    low, high = (np.broadcast_to(each, () if size is None else (size,)).astype(float) for each in (low, high))
    if np.isnan(low).any() or np.isnan(high).any() or not (low <= high).all() or (low == np.inf).any() or (
            high == -np.inf).any():
        raise InputError(f"limits of {what} must be numbers, the lowest not above the highest, got {shown(x)}")
    return low, high


def _input_limits(robot, inputs):
    names = robot.actuator_names
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    if isinstance(inputs, dict):
        for name, pair in inputs.items():
            k = _place(name, names, "actuator")
            low[k], high[k] = _pair(name, pair)
    elif inputs is not None:
        low, high = _pair("inputs", inputs, len(names))
    return low.copy(), high.copy()


def _place(name, names, what):
    if name not in names:
        raise InputError(f"limits: unknown {what} {shown(name)}, {suggestion(shown(name), names)}")
    return names.index(name)


def _limits(robot, limits, steps, functions):
    """(limits, low, high), the targets among them, and the names of the rows."""
    records, low, high, names, targets = [], [], [], [], []
    for kind, what, given in ((COORDINATE, "coordinate", limits.coordinates), (SPEED, "velocity", limits.speeds)):
        if given is None:
            continue
        if not isinstance(given, dict):
            raise InputError(f"limits of {what}s must be pairs by name, got {shown(given)}")
        for name, pair in given.items():
            dof = _place(name, robot.velocity_names, what)
            if kind == COORDINATE and name not in robot.coordinate_names:
                raise InputError(f"limits: {name!r} is part of a rotation, and no coordinate that could be limited")
            below, above = _pair(f"{what} {name!r}", pair)
            of_free = kind == COORDINATE and places_of(robot)[dof] < 0
            records.append((PLACE + "xyz".index(name[-1]) if of_free else kind,
                            robot.coordinate_index(name) if kind == COORDINATE else dof, dof))
            low.append(float(below))
            high.append(float(above))
            names.append(name if kind == COORDINATE else f"velocity:{name}")
    if not isinstance(limits.targets, (tuple, list)):
        raise InputError("limits of targets must be a sequence of (target, lowest, highest), got "
                         f"{shown(limits.targets)}")
    for each in limits.targets:
        if not isinstance(each, (tuple, list)) or len(each) != 3 or not isinstance(each[0], Target):
            raise InputError(f"limits of targets must be (target, lowest, highest), got {shown(each)}")
        targets.append(each[0])
    bounded = _target_rows(robot, "limits of targets", targets, steps, functions)
    if targets:
        # in the order in which `pack` sorts them
        order = sorted(range(len(targets)), key=lambda k: targets[k].priority)
        for (name, rows), k in zip(pack(robot, targets).rows.items(), order):
            count = rows.stop - rows.start
            below, above = _pair(name, limits.targets[k][1:], count)
            for i in range(count):
                if np.isfinite(below[i]) or np.isfinite(above[i]):
                    records.append((TARGET, rows.start + i, 0))
                    low.append(below[i])
                    high.append(above[i])
                    names.append(f"{name}[{i}]")
    return (np.array(records, np.int64).reshape(-1, 3), np.array(low), np.array(high)), bounded, tuple(names)


def cost_floor(objective, steps):
    """The cost of deviations of the size of rounding: FINE times a unit for states, targets and inputs."""
    running = np.trace(objective.Q[0]) + (objective.running.weights ** 2).sum()
    running += (np.diag(objective.R) * np.maximum(1.0, np.abs(objective.u).max(axis=0)) ** 2).sum()
    return FINE ** 2 * (steps * running + np.trace(objective.Q[1]) + (objective.final.weights ** 2).sum())
