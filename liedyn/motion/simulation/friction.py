"""Sliding friction in runs: a force that depends on the normal force, which in turn depends on the friction.

A contact j that slides along the unit vector s has the friction -mu N_j s, a generalised force N_j d_j with
d_j = -mu G_t^T s. Normal forces are linear in all forces, N = N_0 + C N, where column j of C is the effect of d_j
alone. So every formulation solves first without friction, then once with each d_j added, and finally with the forces N
d for the N that solves (1 - C) N = N_0 (Glocker 2001, 5.4). If 1 - C has a pivot that is not positive, friction
increases the normal force faster than itself: the accelerations are contradictory (Painleve 1895), which the run
resolves.

The direction is that of the slip. Just before slip begins, and in the part of a step after its reversal, the previous
direction is used, so that the right side stays smooth up to the event.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, kernel_in_place, late
from liedyn.machine.linalg.vectors import add_multiple, copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.families.contact import contact, velocity_jets
from liedyn.mechanics.constraints.jets import constant
from liedyn.mechanics.constraints.relative import path_ends, relative_screw, relative_twist, toward_ground
from liedyn.model.constraint_records import holonomic_count, loop_at, loop_count, loop_integer, loop_kind, loop_rows
from liedyn.model.packed import LOOP_ACTIVE, LOOP_FRICTION, LOOP_SIDE, SLIDING
from liedyn.model.packed_records import MODEL

Friction = namedtuple("Friction", "direction used drags influence trials solution force")
"""Friction data for L constraints, of which S are contacts: the previous direction (L, 3) of slip, and that used at
this state (L, 3); d (S, n) and 1 - C (S, S) of the contacts that slide now, and for each the normal force without
friction, the scale of the trial force and the number of the constraint (S, 3); N (S); the forces (n) with which a
formulation is to solve."""
FRICTION = types.NamedTuple([*[MATRIX] * 5, VECTOR, VECTOR], Friction)
"""Its Numba type."""
SLOW = 1e-10
"""Slip [m/s] below which its direction is rounding."""
PAINLEVE = 5e-4
"""Pivot of 1 - C below which friction holds a contact that should slide; the contact's mode is determined before."""


@kernel_in_place
def slips(model, l):
    """True if contact l slides with friction."""
    return (loop_integer(model, l, LOOP_SIDE) != 0 and loop_integer(model, l, LOOP_ACTIVE) == SLIDING
            and loop_rows(model, l)[1] > holonomic_count(model, l)
            and model.floats[loop_at(model, l, LOOP_FRICTION)] > 0.0)


@late(MODEL, VECTOR, FRICTION, returns=types.int64)
def put_drags(model, world, f):
    """Directions, d and numbers of the contacts that slide; returns their count. Needs `world_velocities`."""
    count = 0
    for l in range(loop_count(model)):
        if not slips(model, l):
            continue
        kind, mu, rows = loop_kind(model, l), model.floats[loop_at(model, l, LOOP_FRICTION)], loop_rows(model, l)[1]
        length, r, p, d, C = contact(model, world, l)
        w, v = relative_twist(SCALAR, model, world, l, C)
        motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
        size, ahead = 0.0, 0.0
        for k in range(1, rows):
            size += motion[k][0] * motion[k][0]
            ahead += motion[k][0] * f.direction[l, k - 1]
        size = math.sqrt(size)
        for k in range(1, rows):
            f.used[l, k - 1] = motion[k][0] / size if ahead > 0.0 and size > SLOW else f.direction[l, k - 1]
        f.drags[count] = 0.0
        ja, jb = path_ends(model, l)
        while ja != jb:
            j = max(ja, jb)
            w, v = relative_screw(SCALAR, model, world, j, jb > ja, C)
            motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
            for k in range(1, rows):
                f.drags[count, j] -= mu * f.used[l, k - 1] * motion[k][0]
            ja, jb = toward_ground(model, ja, jb)
        f.trials[count, 2] = l
        count += 1
    return count


@kernel_in_place
def begin_trials(model, o, x):
    """Number of solutions that a formulation needs (1, or 2 plus the sliding contacts), and the first force."""
    copy_to(x.tau, x.friction.force)
    count = put_drags(model, x.world, x.friction) if o.friction else 0
    return (1 if count == 0 else count + 2), x.friction.force


@kernel_in_place
def normal_force(model, l, lam):
    return -loop_integer(model, l, LOOP_SIDE) * lam[loop_rows(model, l)[0]]


@kernel_in_place
def next_trial(model, x, k, trials, lam):
    """The force of trial k + 1, from the result of trial k. False if friction holds a contact that should slide."""
    count, f = trials - 2, x.friction
    if k > count:
        return True
    for i in range(count):
        N = normal_force(model, int(f.trials[i, 2]), lam)
        if k == 0:
            f.trials[i, 0] = N
        else:
            f.influence[i, k - 1] = (1.0 if i == k - 1 else 0.0) - (N - f.trials[i, 0]) / f.trials[k - 1, 1]
    copy_to(x.tau, f.force)
    if k < count:
        # a force of the expected size, so that differences lose few digits
        f.trials[k, 1] = max(abs(f.trials[k, 0]), 1e-6)
        add_multiple(f.trials[k, 1], f.drags[k], f.force)
        return True
    for i in range(count):
        f.solution[i] = f.trials[i, 0]
    for k in range(count):  # without row exchange: a pivot that is not positive means a contact that is held
        if not f.influence[k, k] > PAINLEVE:
            return False
        for i in range(k + 1, count):
            part = f.influence[i, k] / f.influence[k, k]
            for j in range(k + 1, count):
                f.influence[i, j] -= part * f.influence[k, j]
            f.solution[i] -= part * f.solution[k]
    for k in range(count - 1, -1, -1):
        for j in range(k + 1, count):
            f.solution[k] -= f.influence[k, j] * f.solution[j]
        f.solution[k] /= f.influence[k, k]
        add_multiple(f.solution[k], f.drags[k], f.force)
    return True


@kernel_in_place
def keep_directions(x):
    """Stores the directions of slip at this state for the next ones."""
    for l in range(x.friction.used.shape[0]):
        copy_to(x.friction.used[l], x.friction.direction[l])


@kernel_in_place
def put_friction(model, x, trials, lam):
    """Multipliers of the friction, in the tangential rows."""
    for i in range(trials - 2):
        l = int(x.friction.trials[i, 2])
        first, rows = loop_rows(model, l)
        for k in range(1, rows):
            lam[first + k] = (model.floats[loop_at(model, l, LOOP_FRICTION)] * normal_force(model, l, lam)
                              * x.friction.used[l, k - 1])


def room_for_friction(robot, contacts):
    """Arrays for a run with these contacts."""
    L, S, n = len(robot.constraint_names), len(contacts.index), robot.nv
    return Friction(*map(np.zeros, ((L, 3), (L, 3), (S, n), (S, S), (S, 3), S, n)))


def set_directions(x, index, directions):
    """Sets the directions of slip of the contacts with these numbers."""
    for kept in (x.friction.direction, x.friction.used):
        kept[:] = 0.0
        kept[index] = directions
