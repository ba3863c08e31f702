"""Newton and continuation that close the constraints, one compiled algorithm for one state and for many.

Newton on the manifold, a step after the other (`liedyn.mechanics.constraints.closing_steps`), until errors are
rounding; free joints are displaced along their parents' axes (`liedyn.mechanics.tree.places`), so that what is held is
a place in q. Coordinates that are held move to their targets along a path from the closed guess, a part of the way at a
time: every point of the path is closed before the next part is tried, and so the branch of the guess is kept.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.mechanics.constraints.closing_steps import (
    LARGEST_STEP, ROUNDING, SMALLEST_PART, Held, begin_step, errors, put_step, room_for, shorter_way, take_step,
)
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.tree.places import displace, displacement
from liedyn.model.calls.batches import uneven_batch
from liedyn.model.constraint_records import ranking_of
from liedyn.model.packed import PackedModel

LONGEST_JUMP = 1.0
"""Largest move of any coordinate between two points of a path before the path is suspected of changing branch [rad, or
units of length]."""
ITERATIONS = 60

CLOSED, OPEN_GUESS, OPEN_PATH, JUMP = range(4)
"""What became of a state: closed; its guess cannot be closed; the path to its targets ends in an open configuration;
it goes on only by a jump of other coordinates."""


class Target(NamedTuple):
    """Where held coordinates of one state have to be: what is held, q (nq) on the tree, values (k) of virtual ones."""

    held: Held
    q: np.ndarray
    values: np.ndarray


class Goals(NamedTuple):
    """The same of rows of states: what is held, q (count, nq) and values (count, k)."""

    held: Held
    q: np.ndarray
    values: np.ndarray


@kernel_in_place
def newton(model, held, goal, tolerance, room, q):
    """Close q as well as rounding allows, held coordinates staying where they are; returns the largest error."""
    size = errors(model, q, held, goal, room, room.error)
    for k in range(ITERATIONS):
        if size <= ROUNDING or not size < np.inf:
            break
        begin_step(room, k == 0)
        put_step(model, q, held, room)
        moved, size = take_step(model, held, goal, tolerance, room, q)
        if not moved:
            break
    return size


@kernel_in_place
def largest_move(model, x):
    """The largest of the moves x (nv) [rad, or units of length]."""
    largest, columns = 0.0, ranking_of(model, 0.0).columns
    for j in range(x.size):
        largest = max(largest, abs(x[j]) / columns[j])
    return largest


@kernel_in_place
def towards(model, q, target, held, share, room, out):
    """out = q with its held tree coordinates moved a share of the way to those of `target`."""
    displacement(model, q, target, room.step)
    for j in range(room.step.size):
        room.step[j] = share * room.step[j] if held.dofs[j] != 0 else 0.0
    displace(model, q, room.step, out)
    if share == 1.0:
        for k in range(q.size):
            if held.coordinates[k] != 0:
                out[k] = target[k]


@kernel
def follow(model, held, target, values, tolerance, room, q):
    """Move a closed q along the path to its targets as far as it goes; returns what became of it."""
    k, n = values.size, room.step.size
    begin, to_go, goal, columns = np.empty(k), np.empty(k), np.empty(k), ranking_of(model, 0.0).columns
    virtual_kernel(model, room.world, room.z)
    way = 0.0
    for i in range(k):
        begin[i] = room.z[held.virtual[i]]
        to_go[i] = values[i] - begin[i]
        if held.angles[i] != 0:
            to_go[i] = shorter_way(to_go[i])
        way = max(way, abs(to_go[i]))
    displacement(model, q, target, room.step)
    for j in range(n):
        if held.dofs[j] != 0:
            way = max(way, abs(room.step[j]) / columns[j])
    trial, moved = np.empty(q.size), np.empty(n)
    done, part = 0.0, min(1.0, LARGEST_STEP / max(way, 1e-300))
    while done < 1.0:
        last = part >= 1.0 - done
        share = 1.0 if last else part / (1.0 - done)
        towards(model, q, target, held, share, room, trial)
        for i in range(k):
            goal[i] = begin[i] + (1.0 if last else done + part) * to_go[i]
        error = newton(model, held, goal, tolerance, room, trial)
        displacement(model, q, trial, moved)
        # a long jump of the other coordinates is the sign of another branch: shorten the part
        jumps = largest_move(model, moved) > LONGEST_JUMP
        if error <= tolerance and not jumps:
            q[:] = trial
            done, part = 1.0 if last else done + part, 2.0 * part
        else:
            part = 0.5 * min(part, 1.0 - done)
            if part < SMALLEST_PART:
                return JUMP if error <= tolerance else OPEN_PATH
    return CLOSED


@kernel
def close_kernel(model, held, target, values, tolerance, room, start, q):
    """Close q and move it to its targets; returns what became of it.

    `start` (nq) receives the guess; an open guess is closed with the held coordinates where they are if that can be,
    else with all of them free.
    """
    if values.size == 0 and not held.dofs.any():
        room.step[:] = 0.0
        displace(model, q, room.step, q)  # quaternions of unit length
        return CLOSED if newton(model, held, values, tolerance, room, q) <= tolerance else OPEN_GUESS
    start[:] = q
    errors(model, q, held, values, room, room.error)
    virtual_kernel(model, room.world, room.z)
    here = np.empty(values.size)
    for i in range(values.size):
        here[i] = room.z[held.virtual[i]]
    if not newton(model, held, here, tolerance, room, q) <= tolerance:
        nothing = Held(np.zeros_like(held.dofs), np.zeros_like(held.coordinates), held.virtual[:0], held.angles[:0])
        q[:] = start
        free = room_for(model, held.virtual[:0])
        free.holonomic[:] = room.holonomic
        if not newton(model, nothing, here[:0], tolerance, free, q) <= tolerance:
            return OPEN_GUESS
        errors(model, q, held, here, room, room.error)  # the pose of q
    return follow(model, held, target, values, tolerance, room, q)


@uneven_batch
def close_states(begin, end, model, q, target, values, dofs, coordinates, virtual, angles, tolerance, closed, status):
    """`close_kernel` on each row: targets (count, nq) of held tree coordinates and `values` (count, k) of virtual ones.

    `dofs` to `angles` are those of `Held`. What cannot be closed stays where the search stopped, on the last closed
    point of its path if there is one.
    """
    model = PackedModel(model.ints, model.floats.copy())  # where moving targets and custom rows leave what they return
    held = Held(dofs, coordinates, virtual, angles)
    room, start = room_for(model, virtual), np.empty(q.shape[1])
    holonomic_rows(model, room.holonomic)
    for b in range(begin, end):
        closed[b, :] = q[b]
        status[b] = close_kernel(model, held, target[b], values[b], tolerance, room, start, closed[b])
