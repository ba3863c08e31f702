"""One step of Newton's method for the constraints, cluster by cluster.

Clusters of constraints share no degrees of freedom (`liedyn.model.clusters`), so each has a step of its own: the
shortest one that removes its linearized error, by singular values, so that redundant rows are harmless. Each step is
limited to a largest size and halved until the error of its cluster falls, independently of other clusters. The cost is
linear in their number.

The rows of long chains of loops are eliminated one after the other (`liedyn.mechanics.constraints.sparse_elimination`);
the shortest of all steps a_p + K z follows from K^T K z = -K^T a_p. If virtual coordinates are held, the step is the
shortest of those that move them to their targets, as nearly as possible. Lengths are in units of the mechanism
(`liedyn.model.size`).
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import add_row, padded
from liedyn.machine.linalg.nearest import backward, factor, forward, nearest_in_metric
from liedyn.machine.linalg.ranks import Ranking
from liedyn.machine.linalg.row_space import row_space, shortest_solution
from liedyn.machine.linalg.vectors import copy_to, inner
from liedyn.machine.simd.lanes import SCALAR, matrix_in
from liedyn.mechanics.constraints.constraint_rows import clear_rows, other_jacobians, residual_rows
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.constraints.elimination import (
    cluster_count, cluster_lists, cluster_size, dependence, dependent_dofs, elimination_size, independent_dofs,
)
from liedyn.mechanics.constraints.families.cut import cut_jacobian_kernel
from liedyn.mechanics.constraints.sparse_elimination import eliminate_rows
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.mechanics.tree.places import displace, turn_free_rows
from liedyn.model.constraint_records import all_cut, is_long, loop_count, loop_rows, loop_virtuals, ranking_of
from liedyn.model.packed import NQ, NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL

LARGEST_STEP = 0.3
"""Largest move of a coordinate in one step [rad, or units of length]: well below the usual distance of branches."""
SMALLEST_PART = 1e-3
ROUNDING = 1e-14
RANK_TOLERANCE = 1e-9
"""Singular values below this fraction of the largest one are ignored in a step."""


class Held(NamedTuple):
    """The held coordinates; all arrays of int64.

    Attributes
    ----------
    dofs, coordinates : ndarray, shape (nv,) and (nq,)
        1 for held tree coordinates, as entries of steps and of q.
    virtual, angles : ndarray, shape (k,)
        Numbers of held virtual coordinates; 1 for those that are angles, which are compared up to whole turns.
    """

    dofs: np.ndarray
    coordinates: np.ndarray
    virtual: np.ndarray
    angles: np.ndarray


HELD = group(Held, *[INTEGERS] * 4)


class Block(NamedTuple):
    """Workspace of one cluster, or of a whole long chain."""

    rows: np.ndarray
    right: np.ndarray
    x: np.ndarray
    B: np.ndarray  # arguments of `row_space`
    V: np.ndarray
    s: np.ndarray
    work: np.ndarray  # workspace of the elimination of a chain, or empty
    choosable: np.ndarray  # (nv) ones
    M: np.ndarray  # (nv, nv) scratch of the elimination of a chain


BLOCK = group(Block, *[VECTOR] * 8, MATRIX)


class ClosingRoom(NamedTuple):
    """Workspace for m constraint rows and k held virtual coordinates below them."""

    world: np.ndarray
    holonomic: np.ndarray  # (m) 1 for rows with a residual
    z: np.ndarray  # virtual coordinates
    G: np.ndarray  # (m, nv)
    E: np.ndarray  # (nz, nv)
    error: np.ndarray  # (m + k)
    trial_error: np.ndarray
    weights: np.ndarray  # (m + k) of the errors
    of_rows: np.ndarray  # (m + k) of int64: cluster of each row
    of_dofs: np.ndarray  # (nv) of int64: cluster of each degree of freedom
    part: np.ndarray  # by cluster: fraction of its step still tried, 0 when done
    size: np.ndarray  # by cluster: largest error
    square: np.ndarray  # by cluster: sum of squared errors
    trial_size: np.ndarray  # by cluster: largest error of the trial
    trial_square: np.ndarray
    open: np.ndarray  # (1) the largest error of all
    block: Block
    step: np.ndarray  # (nv)
    part_step: np.ndarray
    trial: np.ndarray  # (nq)


ROOM = group(ClosingRoom, *[VECTOR] * 3, *[MATRIX] * 2, *[VECTOR] * 3, *[INTEGERS] * 2, *[VECTOR] * 6, BLOCK,
             *[VECTOR] * 3)


@kernel
def clusters_of_rows(model, virtual):
    """The cluster of each row (m), followed by that of each held virtual coordinate (k), int64."""
    m = model.ints[N_ROWS]
    found = np.zeros(m + virtual.size, np.int64)
    for c in range(cluster_count(model)):
        rows = cluster_lists(model, c)[0]
        for i in range(cluster_size(model, c)[0]):
            found[model.ints[rows + i]] = c
    for i in range(virtual.size):
        for l in range(loop_count(model)):
            first, size = loop_virtuals(model, l)
            if first <= virtual[i] < first + size:
                found[m + i] = found[loop_rows(model, l)[0]]
    return found


@kernel
def clusters_of_dofs(model):
    """The cluster of each degree of freedom (nv)."""
    found = np.zeros(model.ints[NV], np.int64)
    for c in range(cluster_count(model)):
        dofs = cluster_lists(model, c)[1]
        for j in range(cluster_size(model, c)[1]):
            found[model.ints[dofs + j]] = c
    return found


@kernel
def clear_clusters(model, virtual, G, E):
    """Set the entries of G that belong to clusters to zero, except for chains, and the rows of E that are read.

    Other entries are neither written nor read.
    """
    for i in virtual:
        E[i] = 0.0
    for c in range(0 if is_long(model) else cluster_count(model)):
        (m, n), (rows, dofs) = cluster_size(model, c), cluster_lists(model, c)
        for j in range(n):
            for i in range(m):
                G[model.ints[rows + i], model.ints[dofs + j]] = 0.0


@kernel
def room_for(model, virtual):
    """`ClosingRoom` for held virtual coordinates, given by number (int64)."""
    n, m, nz, k, count = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], virtual.size, cluster_count(model)
    of_rows, of_dofs, held = clusters_of_rows(model, virtual), clusters_of_dofs(model), np.zeros(count, np.int64)
    for i in range(k):
        held[of_rows[m + i]] += 1
    weights, by_chain = np.ones(m + k), is_long(model)
    weights[:m] = ranking_of(model, 0.0).rows
    height = width = area = wide = 0
    for c in range(count):
        size = cluster_size(model, c)
        rows, columns = size[0] + held[c], size[1] if size[0] > 0 and not by_chain else 0
        height, width = max(height, rows), max(width, columns)
        area, wide = max(area, rows * columns), max(wide, columns * columns)
    chain, size_of_chain = (n, elimination_size(SCALAR, model)) if by_chain else (0, 0)
    block = Block(np.empty(area), np.empty(height), np.empty(width), np.empty(area), np.empty(wide), np.empty(width),
                  np.empty(size_of_chain), np.ones(chain), np.empty((chain, chain)))
    G, E = np.empty((m, n)), np.empty((nz if k > 0 else 0, n))
    clear_clusters(model, virtual, G, E)
    return ClosingRoom(
        np.empty(world_size(model)), np.ones(m), np.empty(nz), G, E, np.empty(m + k), np.empty(m + k), weights, of_rows,
        of_dofs, np.empty(count), np.empty(count), np.empty(count), np.empty(count), np.empty(count), np.empty(1),
        block, np.empty(n), np.empty(n), np.empty(model.ints[NQ]))


@inline
def shorter_way(angle):
    """The angle plus a multiple of 2 pi, between -pi and pi."""
    return angle - 2.0 * np.pi * np.floor((angle + np.pi) / (2.0 * np.pi))


@kernel_in_place
def errors(model, q, held, goal, room, error):
    """error (m + k): residuals, then held virtual coordinates minus their goals; computes the pose of q.

    Returns the largest error, lengths in units of the mechanism; NaN if any is NaN.
    """
    m = room.holonomic.size
    world_positions(SCALAR, model, q, room.world)
    residual_rows(model, q, room.world, error[:m])
    if goal.size > 0:
        virtual_kernel(model, room.world, room.z)
    for k in range(goal.size):
        apart = room.z[held.virtual[k]] - goal[k]
        error[m + k] = shorter_way(apart) if held.angles[k] != 0 else apart
    largest = 0.0
    for i in range(error.size):
        if np.isnan(error[i]):
            return np.nan
        largest = max(largest, room.weights[i] * abs(error[i]))
    return largest


@kernel_in_place
def error_rows(model, q, held, room):
    """Derivative of `errors` by steps of the free coordinates, in room.G and room.E; needs the pose of q."""
    if not all_cut(model):  # else the sparsity pattern may vary with q
        clear_rows(room.G)
    cut_jacobian_kernel(SCALAR, model, room.world, False, room.G)
    other_jacobians(model, q, room.world, room.G)
    turn_free_rows(model, q, room.G, True)
    if held.virtual.size > 0:
        cut_jacobian_kernel(SCALAR, model, room.world, True, room.E)
        turn_free_rows(model, q, room.E, True)
    for j in range(held.dofs.size):
        if held.dofs[j] != 0:
            c = room.of_dofs[j]
            rows = cluster_lists(model, c)[0]
            for i in range(cluster_size(model, c)[0]):
                room.G[model.ints[rows + i], j] = 0.0
            for k in held.virtual:
                room.E[k, j] = 0.0


@kernel_in_place
def put_sizes(room, error, size, square):
    """The largest weighted error of each cluster, and its sum of squares."""
    for c in range(size.size):
        size[c] = square[c] = 0.0
    for i in range(error.size):
        x = room.weights[i] * error[i]
        c = room.of_rows[i]
        size[c] = max(size[c], abs(x))
        square[c] += x * x


@kernel_in_place
def cluster_step(model, held, room, c):
    """The step of cluster c by singular value decomposition."""
    (m, n), (rows, dofs), block = cluster_size(model, c), cluster_lists(model, c), room.block
    ranking, first = ranking_of(model, RANK_TOLERANCE), room.holonomic.size
    total = m
    for k in range(held.virtual.size):
        total += room.of_rows[first + k] == c
    A, right, x = matrix_in(block.rows, 0, total, n), block.right[:total], block.x[:n]
    i = 0
    for r in range(m + held.virtual.size):
        row = model.ints[rows + r] if r < m else first + r - m
        if r >= m and room.of_rows[row] != c:
            continue
        weight = room.weights[row] if r >= m or room.holonomic[row] > 0.0 else 0.0
        right[i] = weight * room.error[row]
        for j in range(n):
            dof = model.ints[dofs + j]
            entry = room.G[row, dof] if r < m else room.E[held.virtual[r - m], dof]
            A[i, j] = weight * entry * ranking.columns[dof]
        i += 1
    B, V, s = matrix_in(block.B, 0, n, total), matrix_in(block.V, 0, n, n), block.s[:n]
    rank = row_space(A, RANK_TOLERANCE, B, V, s)
    shortest_solution(B, V, s, rank, right, x)
    for j in range(n):
        dof = model.ints[dofs + j]
        room.step[dof] = ranking.columns[dof] * x[j]


@late(MODEL, HELD, ROOM)
@kernel
def chain_step(model, held, room):
    """The shortest step a_p + K z of long chains of loops, in units of the mechanism, with held coordinates."""
    m, n, k, block = room.holonomic.size, room.step.size, held.virtual.size, room.block
    e, columns = block.work, ranking_of(model, 0.0).columns
    rank = eliminate_rows(model, block.M, room.G, room.error[:m], block.choosable, RANK_TOLERANCE, e)[0]
    p = n - rank
    (dependent, _), (independent, _), (slopes, forced) = (
        dependent_dofs(model, e), independent_dofs(model, e), dependence(SCALAR, model, e, p))
    for i in range(rank):
        by = 1.0 / columns[dependent[i]]
        forced[i] *= by
        for s in range(p):
            slopes[i, s] *= by * columns[independent[s]]
    normal, L, z = np.zeros((p, padded(p))), np.empty((p, p)), np.zeros(p)
    for i in range(rank):
        for s in range(p):
            x = slopes[i, s]
            z[s] -= x * forced[i]
            if x != 0.0:
                add_row(normal, s, x, slopes, i)
    for s in range(p):
        normal[s, s] += 1.0
    factor(normal, L)
    forward(L, z)
    backward(L, z)
    C, c = np.zeros((k, p)), np.empty(k)  # the remaining error of held virtual coordinates, and their rows times K
    for h in range(k):
        row = room.E[held.virtual[h]]
        c[h] = room.error[m + h]
        for s in range(p):
            C[h, s] = row[independent[s]] * columns[independent[s]]
        for i in range(rank):
            x = row[dependent[i]] * columns[dependent[i]]
            if x != 0.0:
                c[h] -= x * forced[i]
                for s in range(p):
                    C[h, s] += x * slopes[i, s]
        c[h] -= inner(C[h], z)
    if k > 0:
        more, by = np.empty(p), Ranking(RANK_TOLERANCE, np.ones(k), np.ones(p))
        nearest_in_metric(C, c, np.ones(k), L, by, (np.empty((k, p + 1)), np.empty(k, np.int64)), more)
        z += more
    for s in range(p):
        room.step[independent[s]] = columns[independent[s]] * z[s]
    for i in range(rank):
        room.step[dependent[i]] = columns[dependent[i]] * (forced[i] + inner(slopes[i], z))


@kernel_in_place
def put_step(model, q, held, room):
    """room.step for the clusters that are not closed yet, each limited to a largest size; needs the pose of q."""
    columns, largest = ranking_of(model, 0.0).columns, room.trial_size
    error_rows(model, q, held, room)
    for j in range(room.step.size):
        room.step[j] = 0.0
    if is_long(model):
        chain_step(model, held, room)
    else:
        for c in range(room.part.size):
            if room.part[c] > 0.0 and cluster_size(model, c)[0] > 0:
                cluster_step(model, held, room, c)
    for c in range(largest.size):
        largest[c] = 0.0
    for j in range(room.step.size):
        c = room.of_dofs[j]
        largest[c] = max(largest[c], abs(room.step[j]) / columns[j])
    for j in range(room.step.size):
        room.step[j] *= -min(1.0, LARGEST_STEP / max(largest[room.of_dofs[j]], 1e-300))


@kernel_in_place
def take_step(model, held, goal, tolerance, room, q):
    """Move q by room.step, or by fractions of it that reduce the clusters' errors; a cluster without such a fraction is
    done.

    Returns whether any coordinate has moved; the result of `errors` at the new q is in room.open.
    """
    while True:
        for j in range(room.step.size):
            room.part_step[j] = room.part[room.of_dofs[j]] * room.step[j]
        displace(model, q, room.part_step, room.trial)
        largest = errors(model, room.trial, held, goal, room, room.trial_error)
        put_sizes(room, room.trial_error, room.trial_size, room.trial_square)
        again, moved = False, False
        for c in range(room.part.size):
            if room.part[c] > 0.0 and not room.trial_square[c] < room.square[c]:
                # closed already: the remaining error is rounding
                part = 0.0 if room.size[c] <= tolerance else 0.5 * room.part[c]
                room.part[c], again = part if part > SMALLEST_PART else 0.0, True
            moved = moved or room.part[c] > 0.0
        if not moved:
            room.open[0] = errors(model, q, held, goal, room, room.error)
            return False
        if not again:
            copy_to(room.trial, q)
            copy_to(room.trial_error, room.error)
            room.open[0] = largest
            return True


@kernel_in_place
def begin_step(room):
    """Mark the clusters that move: those not yet closed to rounding and still making progress."""
    put_sizes(room, room.error, room.size, room.square)
    for c in range(room.part.size):
        room.part[c] = 1.0 if room.size[c] > ROUNDING and room.part[c] > 0.0 else 0.0
