"""Steps in which contact modes do not change: the smooth part of time-stepping (`moreau`).

The state at the beginning of a step determines the mode of each contact: open, or closed and at rest along its normal,
sticking or sliding. A Runge-Kutta step with these as equations and friction forces is accepted if the modes still hold
at its end.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.nearest import factor, forward
from liedyn.machine.linalg.vectors import copy_to, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import residual_rows, velocity_rows
from liedyn.mechanics.contact.contact_state import AT_REST, NOTHING, TOUCHING
from liedyn.mechanics.tree.crba import crba_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.model.constraint_records import loop_at, loop_count, loop_integer, loop_rows, switch
from liedyn.model.packed import LOOP_ACTIVE, LOOP_FRICTION, LOOP_RESTITUTION, LOOP_SIDE, OFF, ON, OPEN, SLIDING
from liedyn.motion.simulation.integrators.explicit import explicit_step
from liedyn.motion.simulation.manifold_projection import energy_of
from liedyn.motion.simulation.stages import finish_row
from liedyn.motion.simulation.workspace import CONDITION, FREE_ENERGY, INPUT_WORK, OK, OTHER_WORK, Moment

NOISE = 1e-12
"""Penetration or displacement [m, rad] that counts as zero."""
STIFF = 1.0
"""Rate of the dampers times the step above which explicit steps are not used: they are unstable above 2.8."""
LEFT = -2
"""Status of a smooth step in which a contact changes its mode."""
BY_IMPULSES, IN_CONTACT, IN_FLIGHT = range(3)
"""How a row was computed, in column m of rows.memory, NaN at the beginning of a run. The columns before it have, in the
first row of each contact that has just closed, the energy that it has absorbed in the step."""

OneSided = namedtuple("OneSided", "index side bounce friction")
"""The one-sided constraints that are not off: their indices, side, restitution and friction."""
Room = namedtuple("Room", "q free after half a lam force c start equal use rests status before contacts")
"""Scratch arrays of a step: a configuration; velocities (n); a, multipliers and impulses (m) of rows; right sides of
G v = c, and G v - c at its beginning (m); masks of rows that are equations, are projected on, and belong to contacts
that rest after impulses (m); the status of each one-sided constraint in this step and in the one before; and these
constraints, `OneSided`."""


@kernel
def one_sided_records(model):
    """The one-sided constraints that are not off."""
    index, count, numbers = np.empty(loop_count(model), np.int64), 0, np.empty((3, loop_count(model)))
    for l in range(loop_count(model)):
        if loop_integer(model, l, LOOP_SIDE) != 0 and loop_integer(model, l, LOOP_ACTIVE) != OFF:
            index[count], numbers[0, count] = l, loop_integer(model, l, LOOP_SIDE)
            numbers[1, count] = model.floats[loop_at(model, l, LOOP_RESTITUTION)]
            numbers[2, count] = model.floats[loop_at(model, l, LOOP_FRICTION)]
            count += 1
    return OneSided(index[:count], numbers[0, :count], numbers[1, :count], numbers[2, :count])


@kernel
def room_for_step(model, work, contacts):
    n, m, count = work.v_stage.size, work.psi.size, contacts.index.size
    equal = np.ones(m, types.boolean)
    for l in contacts.index:
        first, many = loop_rows(model, l)
        equal[first:first + many] = False
    return Room(np.empty(work.q_stage.size), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(m),
                np.zeros(m), np.empty(m), np.empty(m), equal, np.zeros(m, np.int64), np.zeros(m, np.int64),
                np.empty(count, np.int64), np.full(count, OFF), contacts)


@kernel_in_place
def set_all(model, index, status):
    for k in range(index.size):
        switch(model, index[k], status)


@kernel_in_place
def put_rates(model, work, index, q, v):
    """work.residual and work.psi at a state, with rows for all contacts; the time is the model's."""
    set_all(model, index, ON)
    world_positions(SCALAR, model, q, work.world)
    residual_rows(model, q, work.world, work.residual)
    world_velocities(SCALAR, model, v, work.world)
    velocity_rows(model, q, v, work.world, work.psi)


@kernel_in_place
def is_stiff(model, work, h, q):
    """True if dampers of joints may be too stiff for explicit steps: the trace of M^-1 D bounds their fastest rate."""
    if not largest_size(work.damping) > 0.0:
        return False
    crba_kernel(SCALAR, model, q, work.world, work.M)
    if not factor(work.M, work.L):
        return True
    rate = 0.0
    for j in range(work.damping.size):
        if work.damping[j] > 0.0:
            work.vector[0, :] = 0.0
            work.vector[0, j] = 1.0
            forward(work.L, work.vector[0])
            rate += work.damping[j] * inner(work.vector[0], work.vector[0])
    return not h * rate <= STIFF


@kernel_in_place
def choose_statuses(model, work, contacts, v, status):
    """The mode of each contact at the state of work.residual and work.psi. False if an impulse is due."""
    limit = AT_REST * max(1.0, largest_size(v))
    for c in range(contacts.index.size):
        l = contacts.index[c]
        first, count = loop_rows(model, l)
        gap, rate, slip = contacts.side[c] * work.residual[first], contacts.side[c] * work.psi[first], 0.0
        status[c] = OPEN
        if gap > TOUCHING or (gap >= -TOUCHING and rate > limit):
            continue
        for r in range(first + 1, first + count):
            slip += work.psi[r] * work.psi[r]
        slip = math.sqrt(slip)
        if gap < -TOUCHING or rate < -limit or (slip > limit and not np.isfinite(contacts.friction[c])):
            return False
        status[c] = ON if count > 1 and slip <= limit else SLIDING
        for r in range(first + 1, first + count):
            if status[c] == SLIDING:
                work.friction.direction[l, r - first - 1] = work.psi[r] / slip
    return True


@kernel_in_place
def push_within_disks(model, contacts, status, lam):
    """True if no closed contact pulls and the friction of sticking contacts is within its disk."""
    size = largest_size(lam)
    for c in range(contacts.index.size):
        if status[c] <= OFF:
            continue
        first, count = loop_rows(model, contacts.index[c])
        normal, rubbed = -contacts.side[c] * lam[first], 0.0
        if not normal >= -NOTHING * size:
            return False
        if status[c] == ON and np.isfinite(contacts.friction[c]):
            for r in range(first + 1, first + count):
                rubbed += lam[r] * lam[r]
            if not math.sqrt(rubbed) <= contacts.friction[c] * max(normal, 0.0) + NOTHING * size:
                return False
    return True


@kernel_in_place
def have_stayed(model, work, rows, k, contacts, status):
    """True if every contact at row k is in the mode that the step ending there has assumed."""
    put_rates(model, work, contacts.index, rows.q[k], rows.v[k])
    limit = AT_REST * max(1.0, largest_size(rows.v[k]))
    for c in range(contacts.index.size):
        l = contacts.index[c]
        first, count = loop_rows(model, l)
        gap, rate, ahead = contacts.side[c] * work.residual[first], contacts.side[c] * work.psi[first], 0.0
        if status[c] == OPEN:
            if not gap >= -NOISE:
                return False
            continue
        if not (abs(gap) <= TOUCHING and abs(rate) <= limit):
            return False
        for r in range(first + 1, first + count):
            ahead += work.psi[r] * work.friction.direction[l, r - first - 1]
        if status[c] == SLIDING and count > 1 and not ahead > 0.0:
            return False
    return push_within_disks(model, contacts, status, rows.lam[k])


@kernel_in_place
def explicit_row(model, settings, work, rows, k):
    """Row k + 1 by an explicit step from row k, which is complete; returns a status."""
    energy = 0.0
    if settings.energy != FREE_ENERGY:
        energy = energy_of(model, work, rows.q[k], rows.v[k]) - rows.scalars[k, INPUT_WORK] - rows.scalars[k,
                                                                                                           OTHER_WORK]
    start = Moment(rows.t[k], rows.held[k], rows.q[k], rows.v[k])
    return explicit_step(model, settings, work, rows, start, k, k + 1, energy)


@kernel_in_place
def smooth_row(model, settings, work, rows, k, complete, room, judged):
    """Row k + 1 by an explicit step with the contact modes of room.status; returns a status.

    If `judged`, returns LEFT if the modes do not hold at the end. `complete` is true if row k is complete with these
    modes; else it is completed, and stored unless its forces come from impulses.
    """
    m, condition, status = work.psi.size, rows.scalars[k, CONDITION], OK
    copy_to(rows.a[k], room.a)
    copy_to(rows.lam[k], room.lam)
    for c in range(room.contacts.index.size):
        switch(model, room.contacts.index[c], room.status[c])
    if not complete:
        work.pivots[0], work.pivots[1] = 1.0, 0.0  # choose the minimal coordinates anew
        status = finish_row(model, settings, work, rows, k)
        if status == OK and judged and not push_within_disks(model, room.contacts, room.status, rows.lam[k]):
            status = LEFT
    if status == OK:
        status = explicit_row(model, settings, work, rows, k)
    if status == OK and judged and not have_stayed(model, work, rows, k + 1, room.contacts, room.status):
        status = LEFT
    if status != OK or not judged or rows.memory[k, m] == BY_IMPULSES:
        copy_to(room.a, rows.a[k])
        copy_to(room.lam, rows.lam[k])
        rows.scalars[k, CONDITION] = condition
    return status
