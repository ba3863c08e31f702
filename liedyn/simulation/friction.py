"""Sliding friction in runs: a force that depends on the normal force, which depends on it.

A contact j that slides along the unit vector s rubs with -mu N_j s, a generalised force N_j d_j with d_j = -mu G_t^T s.
Normal forces are linear in all forces, N = N_0 + C N, where column j of C is what d_j alone does to them. So a
formulation, whichever it is, solves first without friction, then once with each d_j added, and at last with the forces
N d that solve (1 - C) N = N_0 (Glocker 2001, 5.4). Where 1 - C has no positive diagonal, friction pulls the contact
tighter than it rubs: accelerations contradict each other (Painleve 1895), which the run settles.

The direction is that of the slip. Just before slip begins, and in the part of a step behind its reversal, it is the
direction kept from before, so that the right side stays smooth up to the event.
"""
import math

import numpy as np
from numba import types

from liedyn.constraints.contacts import contact, velocity_jets
from liedyn.constraints.jets import constant
from liedyn.constraints.records import holonomic_count, loop_at, loop_count, loop_integer, loop_kind, loop_rows
from liedyn.constraints.relative import path_ends, relative_screw, relative_twist, toward_ground
from liedyn.jit import address_for, apart, kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import LOOP_ACTIVE, LOOP_FRICTION, LOOP_SIDE, SLIDING
from liedyn.simulation.elimination import eliminate

SLOW = 1e-10
"""Slip [m/s] whose direction is rounding."""
PAINLEVE = 5e-4
"""Diagonal of 1 - C below which friction holds what should slide; the state of a contact is settled before."""


@kernel_in_place
def slips(ints, floats, l):
    """Does contact l slide, with friction?"""
    return (loop_integer(ints, l, LOOP_SIDE) != 0 and loop_integer(ints, l, LOOP_ACTIVE) == SLIDING
            and loop_rows(ints, l)[1] > holonomic_count(ints, l) and floats[loop_at(ints, l, LOOP_FRICTION)] > 0.0)


@kernel_in_place
def put_drags(ints, floats, world, sliding, direction, used, drags):
    """Numbers of the contacts that slide, the directions used, and d_j (n) of each; returns how many there are.

    `direction` (constraints, 3) is the one kept from before; needs `world_velocities`.
    """
    count = 0
    for l in range(loop_count(ints)):
        if not slips(ints, floats, l):
            continue
        kind, friction, rows = loop_kind(ints, l), floats[loop_at(ints, l, LOOP_FRICTION)], loop_rows(ints, l)[1]
        L, r, p, d, C = contact(ints, floats, world, l)
        w, v = relative_twist(SCALAR, ints, floats, world, l, C)
        motion = velocity_jets(kind, L, r, constant(p), constant(d), constant(w), constant(v))
        size, ahead = 0.0, 0.0
        for k in range(1, rows):
            size += motion[k][0] * motion[k][0]
            ahead += motion[k][0] * direction[l, k - 1]
        size = math.sqrt(size)
        for k in range(1, rows):
            used[l, k - 1] = motion[k][0] / size if ahead > 0.0 and size > SLOW else direction[l, k - 1]
        for j in range(drags.shape[1]):
            drags[count, j] = 0.0
        ja, jb = path_ends(ints, l)
        while ja != jb:
            j = max(ja, jb)
            w, v = relative_screw(SCALAR, ints, world, j, jb > ja, C)
            motion = velocity_jets(kind, L, r, constant(p), constant(d), constant(w), constant(v))
            for k in range(1, rows):
                drags[count, j] -= friction * used[l, k - 1] * motion[k][0]
            ja, jb = toward_ground(ints, ja, jb)
        sliding[count] = l
        count += 1
    return count


_VECTOR, _MATRIX, _INTEGERS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_DRAGS = (_INTEGERS, _VECTOR, _VECTOR, _INTEGERS, _MATRIX, _MATRIX, _MATRIX)
drags_of = apart(_DRAGS, types.int64)
"""Call `put_drags` at its address, with a tuple of its arguments: robots without friction do not compile it."""


def address_of_drags():
    """Address of `put_drags`."""
    return address_for(put_drags, _DRAGS)


@kernel_in_place
def begin_trials(ints, floats, o, x):
    """How often a formulation has to solve: once, or for each contact that slides and twice more."""
    for j in range(x.tau.size):
        x.force[j] = x.tau[j]
    if o.friction == 0:
        return 1
    count = drags_of(o.friction, (ints, floats, x.world, x.sliding, x.direction, x.used, x.drags))
    return 1 if count == 0 else count + 2


@kernel_in_place
def normal_force(ints, l, lam):
    return -loop_integer(ints, l, LOOP_SIDE) * lam[loop_rows(ints, l)[0]]


@kernel_in_place
def next_trial(ints, x, k, trials, lam):
    """x.force of trial k + 1, from what trial k has found. False where friction holds what should slide."""
    count = trials - 2
    if k > count:
        return True
    for i in range(count):
        N = normal_force(ints, x.sliding[i], lam)
        if k == 0:
            x.normal[i, 0] = N
        else:
            x.influence[i, k - 1] = (1.0 if i == k - 1 else 0.0) - (N - x.normal[i, 0]) / x.normal[k - 1, 1]
    for j in range(x.tau.size):
        x.force[j] = x.tau[j]
    if k < count:
        # about as large a force as there will be: differences keep their digits
        x.normal[k, 1] = max(abs(x.normal[k, 0]), 1e-6)
        for j in range(x.force.size):
            x.force[j] += x.normal[k, 1] * x.drags[k, j]
        return True
    for i in range(count):
        if not x.influence[i, i] > PAINLEVE:
            return False
        x.number[i] = x.normal[i, 0]
    if not eliminate(x.influence, x.number, count):
        return False
    for i in range(count):
        for j in range(x.force.size):
            x.force[j] += x.number[i] * x.drags[i, j]
    return True


@kernel_in_place
def keep_directions(x):
    """The directions of slip at this state are those kept for the next ones."""
    for l in range(x.used.shape[0]):
        for k in range(3):
            x.direction[l, k] = x.used[l, k]


@kernel_in_place
def put_friction(ints, floats, x, trials, lam):
    """Multipliers of the friction in the tangential rows, as if these had been there."""
    for i in range(trials - 2):
        l = x.sliding[i]
        first, rows = loop_rows(ints, l)
        for k in range(1, rows):
            lam[first + k] = floats[loop_at(ints, l, LOOP_FRICTION)] * normal_force(ints, l, lam) * x.used[l, k - 1]


def room_for_friction(robot, contacts):
    """Arrays of `Work` for the contacts of a run."""
    slide, n, all_of_them = len(contacts.index), robot.nv, len(robot.constraint_names)
    return dict(sliding=np.zeros(slide, np.int64), direction=np.zeros((all_of_them, 3)),
                used=np.zeros((all_of_them, 3)), drags=np.zeros((slide, n)), normal=np.zeros((slide, 2)),
                influence=np.zeros((slide, slide)), number=np.empty(max(1, slide)), force=np.zeros(n))
