"""Cost of a discretised motion and its limits at one knot, with derivatives in the state space at that knot.

The cost of a knot is

    e^T Q e + (u - u_0)^T R (u - u_0) + sum (weight error)^2

with e the deviation of (q, v) from a reference on the configuration group, and errors of targets
(`liedyn.tasks.reaching.target_rows`). Every term depends on all coordinates of the tree; its gradient in x = (y, w)
follows from the motions N and X = [Delta S] of the constraint manifold (`liedyn.linear.local`), so that the cost does
not depend on the choice of coordinates. Gradients are exact; second derivatives are Gauss-Newton approximations
(what they leave out: `liedyn.tasks.planning.cost_curvature`).

Limits low <= c <= high add an augmented Lagrangian (`liedyn.tasks.planning.augmented_lagrangian`).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.lie.algebra import add, dot, neg, neg6, quaternion_rotation, rotate
from liedyn.lie.exponential import left_jacobian_inverse, so3_left_jacobian_inverse
from liedyn.machine.compiled.by_address import record, contents
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, add_row, at, clear, clear_rows, padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import copy_row
from liedyn.mechanics.tree.configuration import difference_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.packed import N_LINKS, NV
from liedyn.model.packed_records import MODEL
from liedyn.tasks.planning.augmented_lagrangian import add_square, interval_limit
from liedyn.tasks.reaching.target_rows import PackedTargets, target_errors, target_rows

COORDINATE, SPEED, TARGET, PLACE = range(4)
"""Kinds of limits: the bounded quantity. PLACE and the next numbers: axes of the position of a free joint."""

TargetRows = namedtuple("TargetRows", "records constants weights goals")
"""Targets as in `liedyn.tasks.reaching.target_rows`: weights (rows), goals (1 or knots, 9 targets)."""

Objective = namedtuple("Objective", "rows Q R q v u balls whole running final limits low high bounded u_low u_high")
"""Cost and limits.

`rows` (r) are the entries of the deviation (dq, dv) that `Q` (2, r, r) weights, before and at the end; references q, v
and u have one row or one for each knot; `balls` (count, 2) have the first degree of freedom and their number for each
ball and free joint; `whole` is 1 if (y, w) are all coordinates and velocities of the tree, in R^n; `limits`
(c, 3) are kind, place and degree of freedom (from PLACE on, that of the same axis), within `low` and `high`; places of
kind TARGET are rows of the targets `bounded`.
"""

CostRoom = namedtuple("CostRoom", "world masses d error J g N D E WE H")
"""Scratch arrays: the deviation d (2 n), errors of targets, their rows J (.., n), a row g (2 p) of a limit. Padded:
motions N and derivatives D (n, p) of the deviation of q by y; rows E of errors, their derivatives by x followed by
the errors, weighted in WE; H = E^T WE, half of the second derivatives and of the gradient."""

Knot = namedtuple("Knot", "k last q v")
"""A state of a plan: its number, true for the last one, and (q, v)."""

KNOT = group(Knot, types.int64, types.boolean, VECTOR, VECTOR)
TARGET_ROWS = group(TargetRows, types.int64[:, ::1], VECTOR, VECTOR, MATRIX)
OBJECTIVE = record(Objective, INTEGERS, types.float64[:, :, ::1], *[MATRIX] * 4, types.int64[:, ::1], types.int64,
                  TARGET_ROWS, TARGET_ROWS, types.int64[:, ::1], VECTOR, VECTOR, TARGET_ROWS, VECTOR, VECTOR)
COST_ROOM = record(CostRoom, *[VECTOR] * 4, MATRIX, VECTOR, *[MATRIX] * 5)


@kernel
def cost_room(model, p, rows):
    """`CostRoom` for p coordinates and at most `rows` rows of targets."""
    n, columns = model.ints[NV], padded(2 * p + 1)
    count = max(rows, 2 * n)
    return CostRoom(np.empty(world_size(model)), np.empty(4 * model.ints[N_LINKS]), np.zeros(2 * n), np.zeros(rows),
                    np.zeros((rows, n)), np.zeros(2 * p), np.zeros((n, padded(p))), np.zeros((n, padded(p))),
                    np.zeros((count, columns)), np.zeros((count, columns)), np.zeros((2 * p, columns)))


@inline
def row_at(references, k):
    """The row of the references for knot k."""
    return min(k, references.shape[0] - 1)


@inline
def put_errors(model, targets, k, q, room):
    """Errors of targets at knot k; the poses remain in room.world."""
    world_positions(SCALAR, model, q, room.world)
    goal = targets.goals[row_at(targets.goals, k)]
    packed = PackedTargets(targets.records, targets.constants, goal)
    target_errors(model, q, room.world, room.masses, packed, room.error)


@inline
def put_error_rows(model, targets, k, q, p, whole, room):
    """Rows E of the errors, after `put_errors`."""
    goal, rows = targets.goals[row_at(targets.goals, k)], targets.weights.size
    packed = PackedTargets(targets.records, targets.constants, goal)
    target_rows(model, q, room.world, room.masses, packed, room.error, room.J)
    clear_rows(room.E, rows)
    if whole:
        for i in range(rows):
            copy_row(SCALAR, room.J, p * i, p, room.E, room.E.shape[1] * i)
    else:
        add_products_in_registers(room.J, 0, room.J.shape[1], 1, rows, room.J.shape[1], room.N, room.E)
    for i in range(rows):
        room.E[i, 2 * p] = room.error[i]


@inline
def add_targets(model, targets, k, q, p, whole, room):
    """Adds the targets to H; returns their cost."""
    put_errors(model, targets, k, q, room)
    put_error_rows(model, targets, k, q, p, whole, room)
    total, rows = 0.0, targets.weights.size
    clear_rows(room.WE, rows)
    for i in range(rows):
        factor = targets.weights[i] * targets.weights[i]
        add_row(room.WE, i, factor, room.E, i)
        total += factor * room.error[i] * room.error[i]
    add_products_in_registers(room.E, 0, 1, room.E.shape[1], p, rows, room.WE, room.H)
    return total


@inline
def put_deviation(model, objective, k, q, v, room):
    """room.d = (q - q_0, v - v_0) at knot k."""
    n, kq, kv = v.size, row_at(objective.q, k), row_at(objective.v, k)
    difference_kernel(model, objective.q[kq], q, room.d)
    for j in range(n):
        room.d[n + j] = v[j] - objective.v[kv, j]


@inline
def limited(objective, l, q, v, room):
    """The quantity that limit l bounds; errors of the targets `bounded` must be up to date."""
    kind, place = objective.limits[l, 0], objective.limits[l, 1]
    return room.error[place] if kind == TARGET else v[place] if kind == SPEED else q[place]


@inline
def limit(objective, l, q, v, room, lam, mu):
    """`interval_limit` of limit l."""
    return interval_limit(limited(objective, l, q, v, room), objective.low[l], objective.high[l], lam[l], mu[l])


@kernel_in_place
def input_cost(objective, k, u):
    """(u - u_0)^T R (u - u_0)."""
    R, u_0, total = objective.R, objective.u[row_at(objective.u, k)], 0.0
    for i in range(u.size):
        x = 0.0
        for j in range(u.size):
            x += R[i, j] * (u[j] - u_0[j])
        total += x * (u[i] - u_0[i])
    return total


@late(MODEL, OBJECTIVE, COST_ROOM, KNOT, VECTOR, VECTOR,
      returns=types.Tuple((types.float64, types.float64, types.float64)))
@kernel_in_place
def state_cost(model, objective, room, knot, lam, mu):
    """Cost of the state at knot k; augmented Lagrangian of its limits; their largest violation."""
    objective, room, total, (k, last, q, v) = contents(objective), contents(room), 0.0, knot
    which = 1 if last else 0
    if objective.rows.size > 0:
        put_deviation(model, objective, k, q, v, room)
        Q = objective.Q[which]
        for i in range(objective.rows.size):  # Q is symmetric
            steps = room.d[objective.rows[i]]
            x = 0.5 * at(Q, i, i) * steps
            for j in range(i):
                if at(Q, i, j) != 0.0:
                    x += at(Q, i, j) * room.d[objective.rows[j]]
            total += 2.0 * x * steps
    targets = objective.final if last else objective.running
    if targets.weights.size > 0:
        put_errors(model, targets, k, q, room)
        for i in range(targets.weights.size):
            x = targets.weights[i] * room.error[i]
            total += x * x
    if objective.bounded.weights.size > 0:
        put_errors(model, objective.bounded, k, q, room)
    added = worst = 0.0
    for l in range(objective.low.size if k > 0 else 0):  # the first state is given
        _, more, violation = limit(objective, l, q, v, room, lam, mu)
        added, worst = added + more, max(worst, violation)
    return total, added, worst


@inline
def put_deviation_slopes(objective, room, p):
    """room.D = derivatives of the deviation of q by y, after `put_deviation`."""
    n = room.N.shape[0]
    clear(room.D)
    for i in range(n):
        add_row(room.D, i, 1.0, room.N, i)
    for g in range(objective.balls.shape[0]):
        i = objective.balls[g, 0]
        w = (room.d[i], room.d[i + 1], room.d[i + 2])
        if objective.balls[g, 1] == 3:
            A = so3_left_jacobian_inverse(neg(w))
            for j in range(p):
                put_column(room.D, i, j, rotate(A, column(room.N, i, j)))
            continue
        A, B = left_jacobian_inverse(neg6((w, (room.d[i + 3], room.d[i + 4], room.d[i + 5]))))
        for j in range(p):
            a, b = column(room.N, i, j), column(room.N, i + 3, j)
            put_column(room.D, i, j, rotate(A, a))
            put_column(room.D, i + 3, j, add(rotate(B, a), rotate(A, b)))


@inline
def column(A, i, j):
    """Three numbers of a column, from row i on."""
    return A[i, j], A[i + 1, j], A[i + 2, j]


@inline
def put_column(A, i, j, x):
    A[i, j], A[i + 1, j], A[i + 2, j] = x[0], x[1], x[2]


@inline
def add_deviation(objective, which, p, X, room):
    """Adds the weighted deviation to H, after `put_deviation`; returns its cost."""
    n, rows, total = room.N.shape[0], objective.rows.size, 0.0
    put_deviation_slopes(objective, room, p)
    clear_rows(room.E, rows)
    clear_rows(room.WE, rows)
    for i in range(rows):
        row = objective.rows[i]
        if row < n:
            add_row(room.E, i, 1.0, room.D, row)
        else:
            copy_row(SCALAR, X, 2 * p * (row - n), 2 * p, room.E, room.E.shape[1] * i)
        room.E[i, 2 * p] = room.d[row]
    add_products_in_registers(objective.Q, which * rows * rows, rows, 1, rows, rows, room.E, room.WE)
    for i in range(rows):
        total += room.d[objective.rows[i]] * room.WE[i, 2 * p]
    add_products_in_registers(room.E, 0, 1, room.E.shape[1], 2 * p, rows, room.WE, room.H)
    return total


@inline
def add_whole_deviation(objective, which, p, room):
    """`add_deviation` for a deviation that is that of (y, w)."""
    Q, total = objective.Q[which], 0.0
    for i in range(objective.rows.size):
        row, x = objective.rows[i], 0.0
        for j in range(objective.rows.size):
            factor = at(Q, i, j)
            if factor != 0.0:
                x += factor * room.d[objective.rows[j]]
                room.H[row, objective.rows[j]] += factor
        room.H[row, 2 * p] += x
        total += x * room.d[row]
    return total


@kernel_in_place
def add_place_rate(place, axis, j, q, N, g):
    """Adds to g the rate of the position of a free joint along an axis of its parent, at `place` in q and j in v."""
    k = place - axis - 4
    R = quaternion_rotation(q[k], q[k + 1], q[k + 2], q[k + 3])
    along = (R[0], R[1], R[2]) if axis == 0 else (R[3], R[4], R[5]) if axis == 1 else (R[6], R[7], R[8])
    for i in range(N.shape[1]):
        g[i] += dot(along, (N[j - axis, i], N[j - axis + 1, i], N[j - axis + 2, i]))


@late(MODEL, OBJECTIVE, COST_ROOM, KNOT, types.UniTuple(VECTOR, 2), types.UniTuple(MATRIX, 2),
      types.Tuple((VECTOR, MATRIX)),
      returns=types.Tuple((types.float64, types.float64, types.float64)))
@kernel_in_place
def put_state_derivatives(model, objective, room, knot, multipliers, motions, slopes):
    """Result of `state_cost`; adds its gradient lx and Gauss-Newton matrix lxx in x = (y, w), limits included.

    multipliers = (lam, mu) of limits, motions = (N, X): q and v along x; slopes = (lx, lxx).
    """
    (k, last, q, v), (lam, mu), (N, X), (lx, lxx) = knot, multipliers, motions, slopes
    objective, room = contents(objective), contents(room)
    p, whole = lx.size // 2, objective.whole == 1
    total = added = worst = 0.0
    clear(room.H)
    for i in range(0 if whole else N.shape[0]):
        copy_row(SCALAR, N, p * i, p, room.N, room.N.shape[1] * i)
    if objective.rows.size > 0:
        put_deviation(model, objective, k, q, v, room)
        which = 1 if last else 0
        total += add_whole_deviation(objective, which, p, room) if whole else add_deviation(objective, which, p, X,
                                                                                            room)
    targets = objective.final if last else objective.running
    if targets.weights.size > 0:
        total += add_targets(model, targets, k, q, p, whole, room)
    for i in range(2 * p):
        lx[i] = 2.0 * room.H[i, 2 * p]
        for j in range(2 * p):
            lxx[i, j] = 2.0 * room.H[i, j]
    if objective.bounded.weights.size > 0:
        put_errors(model, objective.bounded, k, q, room)
        put_error_rows(model, objective.bounded, k, q, p, whole, room)
    for l in range(objective.low.size if k > 0 else 0):  # the first state is given
        force, more, violation = limit(objective, l, q, v, room, lam, mu)
        added, worst = added + more, max(worst, violation)
        if force == 0.0:
            continue
        kind, j = objective.limits[l, 0], objective.limits[l, 2]
        for i in range(2 * p):
            room.g[i] = 0.0 if kind != SPEED else X[j, i] if not whole else 1.0 if i == p + j else 0.0
        for i in range(p if kind != SPEED else 0):
            room.g[i] = N[j, i] if kind == COORDINATE else room.E[objective.limits[l, 1], i] if kind == TARGET else 0.0
        if kind >= PLACE:
            add_place_rate(objective.limits[l, 1], kind - PLACE, j, q, N, room.g)
        for i in range(2 * p):
            lx[i] += force * room.g[i]
        add_square(room.g, 2 * p, mu[l], lxx)
    return total, added, worst


@kernel_in_place
def put_input_gradient(objective, k, u, lu):
    """lu = 2 R (u - u_0); returns the result of `input_cost`."""
    R, u_0, total = objective.R, objective.u[row_at(objective.u, k)], 0.0
    for i in range(u.size):
        x = 0.0
        for j in range(u.size):
            x += R[i, j] * (u[j] - u_0[j])
        lu[i] = 2.0 * x
        total += x * (u[i] - u_0[i])
    return total


@kernel_in_place
def update_multipliers(model, objective, room, knot, lam, mu):
    """The next multipliers of limits."""
    k, _, q, v = knot
    if objective.bounded.weights.size > 0:
        put_errors(model, objective.bounded, k, q, room)
    for l in range(objective.low.size if k > 0 else 0):  # the first state is given
        lam[l] = limit(objective, l, q, v, room, lam, mu)[0]
