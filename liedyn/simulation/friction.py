"""Sliding friction in runs: a force that depends on the normal force, which depends on it.

A contact j that slides along the unit vector s rubs with -mu N_j s, a generalised force N_j d_j with d_j = -mu G_t^T s.
Normal forces are linear in all forces, N = N_0 + C N, where column j of C is what d_j alone does to them. So a
formulation, whichever it is, solves first without friction, then once with each d_j added, and at last with the forces
N d that solve (1 - C) N = N_0 (Glocker 2001, 5.4). Where 1 - C has a pivot that is not positive, friction pulls a
contact tighter than it rubs: accelerations contradict each other (Painleve 1895), which the run settles.

What is kept stands in one array of `Work`, row by row for L constraints, of which S are contacts:

    direction (L), used (L)     of slip, kept from before, and at this state: three numbers each
    d (S), 1 - C (S)            of the contacts that slide now
    trials (S)                  normal force without friction, scale of the trial force, number of the constraint
    N, force                    the solution; the forces that a formulation is to solve with

The direction is that of the slip. Just before slip begins, and in the part of a step behind its reversal, it is the
direction kept from before, so that the right side stays smooth up to the event.
"""
import math

import numpy as np
from numba import types

from liedyn.constraints.families.contact import contact, velocity_jets
from liedyn.constraints.jets import constant
from liedyn.constraints.records import holonomic_count, loop_at, loop_count, loop_integer, loop_kind, loop_rows
from liedyn.constraints.relative import path_ends, relative_screw, relative_twist, toward_ground
from liedyn.jit import address_for, apart, kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import LOOP_ACTIVE, LOOP_FRICTION, LOOP_SIDE, SLIDING

SLOW = 1e-10
"""Slip [m/s] whose direction is rounding."""
PAINLEVE = 5e-4
"""Pivot of 1 - C below which friction holds what should slide; the state of a contact is settled before."""


@kernel_in_place
def slips(model, l):
    """Does contact l slide, with friction?"""
    return (loop_integer(model, l, LOOP_SIDE) != 0 and loop_integer(model, l, LOOP_ACTIVE) == SLIDING
            and loop_rows(model, l)[1] > holonomic_count(model, l)
            and model.floats[loop_at(model, l, LOOP_FRICTION)] > 0.0)


@kernel_in_place
def places(model, friction):
    """Where d, 1 - C, the trials, N and the force begin, in rows."""
    L = loop_count(model)
    S = (friction.shape[0] - 2 * L - 2) // 3
    return 2 * L, 2 * L + S, 2 * L + 2 * S, 2 * L + 3 * S, 2 * L + 3 * S + 1


@kernel_in_place
def put_drags(model, world, friction):
    """Directions used, d and numbers of the contacts that slide; returns how many. Needs `world_velocities`."""
    count, L = 0, loop_count(model)
    drags, _, trials, _, _ = places(model, friction)
    for l in range(L):
        if not slips(model, l):
            continue
        kind, mu, rows = loop_kind(model, l), model.floats[loop_at(model, l, LOOP_FRICTION)], loop_rows(model, l)[1]
        length, r, p, d, C = contact(model, world, l)
        w, v = relative_twist(SCALAR, model, world, l, C)
        motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
        size, ahead = 0.0, 0.0
        for k in range(1, rows):
            size += motion[k][0] * motion[k][0]
            ahead += motion[k][0] * friction[l, k - 1]
        size = math.sqrt(size)
        for k in range(1, rows):
            friction[L + l, k - 1] = motion[k][0] / size if ahead > 0.0 and size > SLOW else friction[l, k - 1]
        for j in range(friction.shape[1]):
            friction[drags + count, j] = 0.0
        ja, jb = path_ends(model, l)
        while ja != jb:
            j = max(ja, jb)
            w, v = relative_screw(SCALAR, model, world, j, jb > ja, C)
            motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
            for k in range(1, rows):
                friction[drags + count, j] -= mu * friction[L + l, k - 1] * motion[k][0]
            ja, jb = toward_ground(model, ja, jb)
        friction[trials + count, 2] = l
        count += 1
    return count


_VECTOR, _MATRIX, _INTEGERS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_DRAGS = (_INTEGERS, _VECTOR, _VECTOR, _MATRIX)
drags_of = apart(_DRAGS, types.int64)
"""Call `put_drags` at its address, with a tuple of its arguments: robots without friction do not compile it."""


def address_of_drags():
    """Address of `put_drags`."""
    return address_for(put_drags, _DRAGS)


@kernel_in_place
def begin_trials(model, o, x):
    """How often a formulation has to solve, once, or for each contact that slides and twice more; and with what."""
    force = x.friction[places(model, x.friction)[4]]
    for j in range(x.tau.size):
        force[j] = x.tau[j]
    count = 0 if o.friction == 0 else drags_of(o.friction, (model, x.world, x.friction))
    return (1 if count == 0 else count + 2), force[:x.tau.size]


@kernel_in_place
def normal_force(model, l, lam):
    return -loop_integer(model, l, LOOP_SIDE) * lam[loop_rows(model, l)[0]]


@kernel_in_place
def next_trial(model, x, k, trials, lam):
    """The force of trial k + 1, from what trial k has found. False where friction holds what should slide."""
    count, F = trials - 2, x.friction
    drags, influence, trial, solution, force = places(model, F)
    if k > count:
        return True
    for i in range(count):
        N = normal_force(model, int(F[trial + i, 2]), lam)
        if k == 0:
            F[trial + i, 0] = N
        else:
            F[influence + i, k - 1] = (1.0 if i == k - 1 else 0.0) - (N - F[trial + i, 0]) / F[trial + k - 1, 1]
    for j in range(x.tau.size):
        F[force, j] = x.tau[j]
    if k < count:
        # about as large a force as there will be: differences keep their digits
        F[trial + k, 1] = max(abs(F[trial + k, 0]), 1e-6)
        for j in range(x.tau.size):
            F[force, j] += F[trial + k, 1] * F[drags + k, j]
        return True
    for i in range(count):
        F[solution, i] = F[trial + i, 0]
    for k in range(count):  # without exchange of rows: a pivot that is not positive is a contact that is held
        if not F[influence + k, k] > PAINLEVE:
            return False
        for i in range(k + 1, count):
            part = F[influence + i, k] / F[influence + k, k]
            for j in range(k + 1, count):
                F[influence + i, j] -= part * F[influence + k, j]
            F[solution, i] -= part * F[solution, k]
    for k in range(count - 1, -1, -1):
        for j in range(k + 1, count):
            F[solution, k] -= F[influence + k, j] * F[solution, j]
        F[solution, k] /= F[influence + k, k]
    for i in range(count):
        for j in range(x.tau.size):
            F[force, j] += F[solution, i] * F[drags + i, j]
    return True


@kernel_in_place
def keep_directions(model, x):
    """The directions of slip at this state are those kept for the next ones."""
    L = loop_count(model)
    for l in range(L):
        for k in range(3):
            x.friction[l, k] = x.friction[L + l, k]


@kernel_in_place
def put_friction(model, x, trials, lam):
    """Multipliers of the friction in the tangential rows, as if these had been there."""
    L, trial = loop_count(model), places(model, x.friction)[2]
    for i in range(trials - 2):
        l = int(x.friction[trial + i, 2])
        first, rows = loop_rows(model, l)
        for k in range(1, rows):
            lam[first + k] = model.floats[loop_at(model, l, LOOP_FRICTION)] * normal_force(model, l, lam) * x.friction[
                L + l, k - 1]


def room_for_friction(robot, contacts):
    """The array for a run with these contacts."""
    L, S = len(robot.constraint_names), len(contacts.index)
    return np.zeros((2 * L + 3 * S + 2, max(robot.nv, S, 3)))


def set_directions(x, index, directions):
    """Let contacts slide in these directions, given by the numbers of their constraints."""
    L = (len(x.friction) - 2 - 3 * len(index)) // 2
    x.friction[:2 * L, :3] = 0.0
    x.friction[index, :3] = x.friction[L + index, :3] = directions
