"""Newton and continuation that close the constraints, one compiled algorithm for one state and for many.

Newton on the manifold, free joints displaced along their parents' axes (`liedyn.tree.places`), so that what is held is
a place in q: the shortest tangent step (minimum norm, by singular values, so redundant rows are harmless)
that removes the linearized error, cut to a largest step and halved until the error falls. Coordinates that are held
move to their targets along a path from the closed guess, a part of the way at a time: every point of the path is closed
before the next part is tried, and so the branch of the guess is kept.
"""
import math
from typing import NamedTuple

import numpy as np

from liedyn.compiled.batches import batch
from liedyn.compiled.jit import inline, kernel
from liedyn.constraints.cut_joints import virtual_kernel
from liedyn.constraints.rows import holonomic_rows, jacobian_rows, reader_rows, residual_rows
from liedyn.linalg.dense import largest_size
from liedyn.linalg.row_space import row_space, shortest_solution
from liedyn.model.packed import NQ, NV, N_ROWS, N_VIRTUAL, PackedModel
from liedyn.simd.lanes import SCALAR
from liedyn.tree.kinematics import world_positions, world_size
from liedyn.tree.places import by_displacements, displace, displacement

LARGEST_STEP = 0.3
"""Largest move of a coordinate in one step [rad or m]: well below the distance to another branch in common machines."""
LONGEST_JUMP = 1.0
"""Largest move of any coordinate between two points of a path before the path is suspected of changing branch."""
ITERATIONS = 60
SMALLEST_PART = 1e-3
ROUNDING = 1e-14
RANK_TOLERANCE = 1e-9
"""Singular values below this part of the largest one take no part in a step."""

CLOSED, OPEN_GUESS, OPEN_PATH, JUMP = range(4)
"""What became of a state: closed; its guess cannot be closed; the path to its targets ends in an open configuration;
it goes on only by a jump of other coordinates."""


class Held(NamedTuple):
    """Coordinates that are held; all arrays of int64.

    Attributes
    ----------
    dofs, coordinates : ndarray, shape (nv,) and (nq,)
        1 for those of the tree, in steps and in q.
    virtual, angles : ndarray, shape (k,)
        Numbers of virtual coordinates; 1 for those that are angles, for which whole turns do not count.
    """

    dofs: np.ndarray
    coordinates: np.ndarray
    virtual: np.ndarray
    angles: np.ndarray


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


class Room(NamedTuple):
    """Arrays to work in: m constraint rows and k held virtual coordinates below them."""

    world: np.ndarray
    holonomic: np.ndarray  # (m) 1 for rows with a residual
    z: np.ndarray  # virtual coordinates
    G: np.ndarray  # (m, nv)
    E: np.ndarray  # (nz, nv)
    rows: np.ndarray  # (m + k, nv)
    error: np.ndarray  # (m + k)
    trial_error: np.ndarray
    B: np.ndarray  # three of `row_space`
    V: np.ndarray
    s: np.ndarray
    step: np.ndarray  # (nv)
    part_step: np.ndarray
    trial: np.ndarray  # (nq)


@kernel
def room_for(model, k):
    """`Room` for k held virtual coordinates."""
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    return Room(np.empty(world_size(model)), np.ones(m), np.empty(nz), np.empty((m, n)), np.empty((nz, n)),
                np.empty((m + k, n)), np.empty(m + k), np.empty(m + k), np.empty((n, m + k)), np.empty((n, n)),
                np.empty(n), np.empty(n), np.empty(n), np.empty(model.ints[NQ]))


@inline
def shorter_way(angle):
    """The angle, less whole turns, between -pi and pi."""
    return angle - 2.0 * math.pi * np.floor((angle + math.pi) / (2.0 * math.pi))


@kernel
def length(x):
    s = 0.0
    for k in range(x.size):
        s += x[k] * x[k]
    return math.sqrt(s)


@kernel
def errors(model, q, held, goal, room, error):
    """error (m + k): residuals, then held virtual coordinates less their goals; leaves the pose of q."""
    m = room.holonomic.size
    world_positions(SCALAR, model, q, room.world)
    residual_rows(model, q, room.world, error[:m])
    if goal.size > 0:
        virtual_kernel(model, room.world, room.z)
    for k in range(goal.size):
        apart = room.z[held.virtual[k]] - goal[k]
        error[m + k] = shorter_way(apart) if held.angles[k] != 0 else apart


@kernel
def error_rows(model, q, held, room):
    """room.rows (m + k, nv), what steps of the coordinates that are free do to `errors`; needs the pose of q."""
    m, n = room.G.shape
    jacobian_rows(model, q, room.world, room.G)
    by_displacements(model, q, room.G)
    if held.virtual.size > 0:
        reader_rows(SCALAR, model, room.world, room.E)
        by_displacements(model, q, room.E)
    for j in range(n):
        free = held.dofs[j] == 0
        for i in range(m):
            room.rows[i, j] = room.G[i, j] if free and room.holonomic[i] > 0.0 else 0.0
        for k in range(held.virtual.size):
            room.rows[m + k, j] = room.E[held.virtual[k], j] if free else 0.0


@kernel
def newton(model, held, goal, tolerance, room, q):
    """Close q as well as rounding allows, held coordinates staying where they are; returns the largest error."""
    errors(model, q, held, goal, room, room.error)
    size = largest_size(room.error)
    for _ in range(ITERATIONS):
        if size <= ROUNDING or not size < np.inf:
            break
        error_rows(model, q, held, room)
        rank = row_space(room.rows, RANK_TOLERANCE, room.B, room.V, room.s)
        shortest_solution(room.B, room.V, room.s, rank, room.error, room.step)
        shorten = -min(1.0, LARGEST_STEP / max(largest_size(room.step), 1e-300))
        part, before, found = 1.0, length(room.error), False
        while not found and part > SMALLEST_PART:
            for j in range(room.step.size):
                room.part_step[j] = part * shorten * room.step[j]
            displace(model, q, room.part_step, room.trial)
            errors(model, room.trial, held, goal, room, room.trial_error)
            found = length(room.trial_error) < before
            part = 0.0 if size <= tolerance else 0.5 * part  # closed already: what is left is rounding
        if not found:
            errors(model, q, held, goal, room, room.error)
            break
        q[:] = room.trial
        room.error[:] = room.trial_error
        size = largest_size(room.error)
    return size


@kernel
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
    begin, to_go, goal = np.empty(k), np.empty(k), np.empty(k)
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
            way = max(way, abs(room.step[j]))
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
        jumps = largest_size(moved) > LONGEST_JUMP
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
    start[:] = q
    errors(model, q, held, values, room, room.error)
    virtual_kernel(model, room.world, room.z)
    here = np.empty(values.size)
    for i in range(values.size):
        here[i] = room.z[held.virtual[i]]
    if not newton(model, held, here, tolerance, room, q) <= tolerance:
        nothing = Held(np.zeros_like(held.dofs), np.zeros_like(held.coordinates), held.virtual[:0], held.angles[:0])
        q[:] = start
        free = room_for(model, 0)
        free.holonomic[:] = room.holonomic
        if not newton(model, nothing, here[:0], tolerance, free, q) <= tolerance:
            return OPEN_GUESS
        errors(model, q, held, here, room, room.error)  # the pose of q
    return follow(model, held, target, values, tolerance, room, q)


@batch
def close_states(begin, end, model, q, target, values, dofs, coordinates, virtual, angles, tolerance, closed, status):
    """`close_kernel` on each row: targets (count, nq) of held tree coordinates and `values` (count, k) of virtual ones.

    `dofs` to `angles` are those of `Held`. What cannot be closed stays where the search stopped, on the last closed
    point of its path if there is one.
    """
    model = PackedModel(model.ints, model.floats.copy())  # where moving targets and custom rows leave what they return
    held = Held(dofs, coordinates, virtual, angles)
    room, start = room_for(model, values.shape[1]), np.empty(q.shape[1])
    holonomic_rows(model, room.holonomic)
    for b in range(begin, end):
        closed[b, :] = q[b]
        status[b] = close_kernel(model, held, target[b], values[b], tolerance, room, start, closed[b])
