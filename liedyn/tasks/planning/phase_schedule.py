"""Timed phases of a plan in the user's form, and packed for kernels (`liedyn.tasks.planning.phases`).

Plans along a schedule of contacts: the phases ahead, and the transfer of an earlier plan to them.

Steps are numbered from t = 0 on. A plan that begins with step `first` starts with a phase change of no duration, which
moves the measured state to the constraints of the phase at that time, followed by the phases ahead. A knot is
identified by the number of the step that begins there, and by whether it comes after a phase change.
"""
# mypy: ignore-errors

from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr

from liedyn.machine.arguments import floats, names, whole
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows, weighed
from liedyn.mechanics.constraints.independent import holonomic
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.contact.contact_state import contacts_of
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.energy import total_mass
from liedyn.model.packed import (
    DOF_F, DOF_FLOATS_AT, DOF_STIFFNESS, GRAVITY, LOOP_ACTIVE, LOOP_HOLONOMIC, LOOP_NROWS, NV, OFF, SLIDING,
    PackedModel, constraints_of,
)
from liedyn.tasks.planning.augmented_lagrangian import Cones
from liedyn.tasks.planning.phase_changes import close_knots
from liedyn.tasks.planning.phases import Phases
from liedyn.tasks.planning.planning_problem import limits_of

NOW = 1
"""Index of the step whose inputs are applied, in a plan along a schedule."""


def schedule_of(schedule):
    """The phases of a schedule, None without one."""
    if schedule is None:
        return None
    if not isinstance(schedule, (tuple, list)) or not schedule or not all(isinstance(x, Phase) for x in schedule):
        raise InputError("schedule must be phases that follow one another, such as [ld.Phase(['foot'], 20), "
                         f"ld.Phase([], 15)], got {shown(schedule)}")
    return [Phase(names("closed", each.closed), whole("steps of a phase", each.steps, 1)) for each in schedule]


def phases_ahead(schedule, first, steps):
    """The phases of `steps` steps from step `first` on, after one without steps in which all contacts are open."""
    ends = np.cumsum([each.steps for each in schedule])
    at = first % ends[-1]
    i = int(np.searchsorted(ends, at, "right"))
    room, ahead = ends[i] - at, [Phase((), 0)]
    while steps > 0:
        count, closed = int(min(room, steps)), schedule[i].closed
        goes_on = len(ahead) > 1 and ahead[-1].closed == closed
        ahead.append(Phase(closed, count + ahead.pop().steps if goes_on else count))
        i, steps = (i + 1) % len(schedule), steps - count
        room = schedule[i].steps
    return ahead


def steps_and_touches(solver, first):
    """Number of the step that begins at each knot; 1 after phase changes; 1 before phase changes."""
    behind = np.concatenate([[0], np.diff(solver.of_knot)])
    return (first + np.arange(len(behind)) - solver.of_knot).tolist(), behind.tolist(), behind[1:].tolist()


def carry(old, first_old, new, first_new):
    """Copies states, inputs, feedback and multipliers of common knots. Knots that only the new plan has come last."""
    numbers, behind, touches = steps_and_touches(old, first_old)
    knots = {(numbers[k], behind[k]): k for k in range(NOW, old.steps + 1)}
    steps = {(numbers[k], touches[k]): k for k in range(NOW, old.steps)}
    phases, phases_old = new.discretisation.phases, old.discretisation.phases
    numbers, behind, touches = steps_and_touches(new, first_new)
    for k in range(NOW, new.steps + 1):
        at = knots.get((numbers[k], behind[k]), knots.get((numbers[k], 1 - behind[k]), old.steps))
        new.path.q[k], new.path.v[k], new.expansion.lam[k] = old.path.q[at], old.path.v[at], old.expansion.lam[at]
        at = steps.get((numbers[k], touches[k])) if k < new.steps else None
        if at is not None:
            new.path.u[k], new.expansion.K[k] = old.path.u[at], old.expansion.K[at]
            phases.cones.lam[k] = phases_old.cones.lam[at]
            if touches[k]:
                phases.lam[new.of_knot[k]] = phases_old.lam[old.of_knot[at]]


def close(solver):
    """Moves the states of all knots but the first one to the constraints of their phases.

    Raises
    ------
    PlanError
        A state cannot be moved there.
    """
    at = close_knots(solver.model, solver.discretisation, solver.rooms.step, solver.path, NOW)
    if at <= solver.steps:
        solver.fail(at, solver.path)


if TYPE_CHECKING:
    from collections.abc import Sequence

STANDARD_GRAVITY = 9.80665
"""Standard gravity [m/s^2], for forces in weights of the robot, independent of the robot's own gravity."""


@dataclass(frozen=True)
class Phase:
    """A phase of a plan: the closed contacts, and the number of steps.

    Attributes
    ----------
    closed : sequence of str
        Names of the closed contacts, which stick if they have friction; all other one-sided contacts are open,
        and so are constraints that only other phases name.
    steps : int
        Number of steps. The first one of several phases may have none: then the initial state need not touch
        where the next phase does, and is moved there at once.

    Examples
    --------
    >>> import liedyn as ld
    >>> hop = [ld.Phase(["foot"], 20), ld.Phase([], 15), ld.Phase(["foot"], 20)]
    """

    closed: Sequence[str]
    steps: int


def phases_of(robot, steps):
    """The phases of a plan and their robots; a single phase without own contacts if `steps` is a number."""
    if not isinstance(steps, (tuple, list)):
        return None, [whole("steps", steps, 1)], [robot]
    if not steps or not all(isinstance(each, Phase) for each in steps):
        raise InputError(f"steps must be a number, or phases such as [ld.Phase(['foot'], 20)], got {shown(steps)}")
    closed = [names("closed", each.closed) for each in steps]
    for each in closed:
        for name in each:
            if name not in robot.constraint_names:
                raise InputError(
                    f"phases: unknown constraint {shown(name)}, {suggestion(name, robot.constraint_names)}")
    one_sided = tuple(contacts_of(robot, robot.packed).names)
    governed = dict.fromkeys((*one_sided, *(name for each in closed for name in each)))
    robots = [robot.switched({name: ("sticking" if name in one_sided else True) if name in each else False
                              for name in governed}) for each in closed]
    return tuple(steps), [whole("steps of a phase", each.steps, 1 if k > 0 or len(steps) == 1 else 0)
                          for k, each in enumerate(steps)], robots


def knots_of(counts, h):
    """Phase and time of each knot: a phase change has two knots at the same time."""
    of_knot = np.repeat(np.arange(len(counts)), np.array(counts) + 1)
    k = np.arange(len(of_knot)) - of_knot
    return of_knot, h * k


def configuration_of(packed):
    """The integers of a model with the rows that have a residual only, without those of rolling."""
    model = PackedModel(packed.ints.copy(), packed.floats)
    records = constraints_of(model)[0]
    rolls = (records[:, LOOP_ACTIVE] > OFF) & (records[:, LOOP_HOLONOMIC] < records[:, LOOP_NROWS])
    records[rolls, LOOP_ACTIVE] = SLIDING
    return model.ints


def picked(robot, q, preferred):
    """Independent degrees of freedom (y, w) at q, which determine the others.

    All of `preferred` are among them if the constraints allow it; ball and free joints are taken as a whole.
    """
    G = constraint_jacobian(robot, q)
    together = np.zeros(robot.nv, bool)
    for group in robot.groups:
        together[group] = True
    may = np.flatnonzero(~together)
    dependent = []
    for rows, among in ((G, may), (np.where(holonomic(robot)[:, None], G, 0.0), None)):
        among = dependent[0] if among is None else among
        rank = rank_of_rows(robot, rows, RANK_TOLERANCE) if len(rows) else 0
        A = weighed(robot, rows)[0][:, among] * np.where(np.isin(among, preferred), 1e-3, 1.0)
        pivots, order = qr(A, mode="r", pivoting=True) if rank else (np.zeros((0, 0)), np.arange(0))
        size = np.abs(np.diag(pivots))
        if rank and (len(size) < rank or size[rank - 1] <= RANK_TOLERANCE * size[0]):
            raise InputError(f"{robot.name!r}: the constraints {', '.join(robot.active)} cannot be solved at q0 for "
                             "coordinates of joints other than ball and free joints, whose coordinates belong together")
        dependent.append(np.sort(among[order[:rank]]))
    return [np.setdiff1d(np.arange(robot.nv), x) for x in dependent[::-1]]


def pack_phases(robots, counts, q, preferred, limits):
    """`Phases` from robots that differ in their switches."""
    n, m, P = robots[0].nv, len(robots[0].row_names), len(robots)
    packed = robots[0].packed
    picks = [picked(robot, q, preferred) for robot in robots]
    numbers, places, speeds, entries = (np.zeros((P, size), np.int64) for size in (3, n, n, 2 * n))
    groups, choosable = np.zeros((P, n, 2), np.int64), np.zeros((P, 2, padded.py_func(n)))
    for i, (y, w) in enumerate(picks):
        wholes = [(group.start, group.stop - group.start) for group in robots[0].groups]
        numbers[i] = len(y), len(w), len(wholes)
        places[i, :len(y)], speeds[i, :len(w)] = y, w
        entries[i, :len(y) + len(w)] = np.concatenate([y, n + w])
        groups[i, :len(wholes)] = np.array(wholes).reshape(-1, 2)
        choosable[i, :, :n] = 1.0
        choosable[i, 0, y] = choosable[i, 1, w] = 0.0
    return Phases(knots_of(counts, 1.0)[0], np.array([robot.packed.ints for robot in robots]),
                  np.array([configuration_of(robot.packed) for robot in robots]), numbers, places, speeds, entries,
                  groups, choosable, rest_of(packed), np.zeros((P - 1, m)), np.ones((P - 1, m)),
                  cones_of(robots, knots_of(counts, 1.0)[0], limits))


def no_phases():
    """`Phases` for a plan without phases."""
    integers, numbers = np.zeros((0, 0), np.int64), np.zeros((0, 0))
    return Phases(np.zeros(0, np.int64), *[integers] * 6, np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0)),
                  np.zeros(0), numbers, numbers, no_cones(0, np.zeros(0)))


def no_cones(steps, unit):
    """`Cones` for `steps` steps without contacts."""
    integers = np.zeros(0, np.int64)
    return Cones(integers, integers, integers, np.zeros(0), np.zeros(0), np.zeros((steps, 0), np.int64), unit,
                 np.zeros((steps, 0)), np.ones(steps), np.zeros(0))


def cones_of(robots, of_knot, limits):
    """`Cones` of the contacts with limited forces."""
    robot, steps = robots[0], len(of_knot) - 1
    contacts, limited = contacts_of(robot, robot.packed), limits_of(limits).contacts
    if isinstance(limited, bool):
        limited = dict(zip(contacts.names, contacts.friction)) if limited else {}
    if not isinstance(limited, dict):
        raise InputError("limits of contacts must be True, False, or coefficients of friction by name, such as "
                         f"{{'foot': 0.5}}, got {shown(limited)}")
    for name, friction in limited.items():
        if name not in contacts.names:
            raise InputError(f"limits: unknown one-sided contact {shown(name)}, {suggestion(name, contacts.names)}")
        if not (np.ndim(floats(f"friction of {name}", friction)) == 0 and friction >= 0.0):
            raise InputError(f"limits: friction of contact {name!r} must be a number that is not negative, got "
                             f"{shown(friction)}")
    touches, mass = of_knot[1:] != of_knot[:-1], total_mass(robot)
    unit = np.where(touches, mass, STANDARD_GRAVITY * mass)
    chosen = [c for c, name in enumerate(contacts.names) if name in limited]
    if not chosen:
        return no_cones(steps, unit)
    friction = np.array([limited[contacts.names[c]] for c in chosen], float)
    count = np.where(np.isfinite(friction), contacts.count[chosen], 1)
    rows = [contacts.first[c] + np.arange(k) for c, k in zip(chosen, count)]
    closed = np.array([[name in each.active for name in contacts.names[chosen]] for each in robots], np.int64)
    closes = closed[of_knot[1:]] * np.where(touches[:, None], 1 - closed[of_knot[:-1]], 1)
    return Cones(np.concatenate(rows).astype(np.int64), np.cumsum(count) - count, count, contacts.side[chosen].astype(
        float), np.where(count > 1, friction, 0.0), closes, unit, np.zeros((steps, count.sum())),
        np.ones(steps), np.zeros(2 * robot.nv + len(robot.actuator_names)))


def rest_of(packed):
    """Floats of the model without gravity and springs."""
    floats, ints = packed.floats.copy(), packed.ints
    floats[GRAVITY:GRAVITY + 3] = 0.0
    floats[ints[DOF_FLOATS_AT] + DOF_STIFFNESS:][:DOF_F * ints[NV]:DOF_F] = 0.0
    return floats


def contact_forces(robots, of_knot, q, v, tau):
    """By name of a one-sided contact, (steps, 2): normal force and friction as each step begins, zero if open."""
    robot = robots[0]
    contacts = contacts_of(robot, robot.packed)
    found = {name: np.zeros((len(tau), 2)) for name in contacts.names}
    for k, force in enumerate(tau):
        if of_knot[k] != of_knot[k + 1]:  # a phase change has impulses
            continue
        phase = robots[of_knot[k]]
        lam = by_name("liedyn.mechanics.dynamics.forward:forward_dynamics")(phase, q[k], v[k], force).lam
        for c, name in enumerate(contacts.names):
            if name in phase.active:
                found[name][k] = contacts.loads(c, lam)
    return found
