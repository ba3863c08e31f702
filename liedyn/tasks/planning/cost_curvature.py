"""What Gauss and Newton leave out of the second derivatives of a plan's costs: the gradient by a quantity, times the
second derivative of this quantity.

A cost or the augmented Lagrangian of a limit has a gradient by the displacement of q in the exponential's chart and by
v. These are weights of the mechanism's motion to second order, as the costates are of accelerations
(`liedyn.tasks.planning.exact_hessian`). To them belong the second derivatives of the quantities themselves by q:
deviations of balls and free joints, which are logarithms, places of free joints, and errors of targets
(`liedyn.tasks.reaching.target_curvature`). Gaps and forces of contacts contribute nothing here.
"""
import numpy as np
from numba import types

from liedyn.lie.algebra import add, cross, dot, neg6, quaternion_rotation, unrotate
from liedyn.lie.exponential import left_jacobian_inverse
from liedyn.lie.slopes import inverse_slope
from liedyn.machine.compiled.by_address import Address, contents
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel, late
from liedyn.model.packed_records import MODEL
from liedyn.motion.step_curvature import CURVATURE_ROOM
from liedyn.tasks.planning.expansion import EXPANSION, FOUND, PATH
from liedyn.tasks.planning.objective import (
    COORDINATE, COST_ROOM, KNOT, OBJECTIVE, PLACE, SPEED, TARGET, Knot, limit, put_deviation, put_errors, row_at,
)
from liedyn.tasks.planning.step import DISCRETISATION
from liedyn.tasks.reaching.target_curvature import add_target_curvature
from liedyn.tasks.reaching.target_rows import PackedTargets, target_rows


@inline
def twist_of(x, i, count):
    """The twist of a ball (count 3) or a free joint (6) in x, from entry i on."""
    none = 0.0, 0.0, 0.0
    return (x[i], x[i + 1], x[i + 2]), (x[i + 3], x[i + 4], x[i + 5]) if count == 6 else none


@inline
def unit_twist(k):
    return (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0), (
        1.0 if k == 3 else 0.0, 1.0 if k == 4 else 0.0, 1.0 if k == 5 else 0.0)


@inline
def add_logarithm(i, count, e, c, of_q, H):
    """Adds the gradient c by the deviation e of one ball or free joint, as one by displacements, and its curvature."""
    A, B = left_jacobian_inverse(neg6(e))  # J_r^-1(e) = [[A, 0], [B, A]]
    back = add(unrotate(A, c[0]), unrotate(B, c[1])), unrotate(A, c[1])
    for k in range(count):
        of_q[i + k] += back[0][k] if k < 3 else back[1][k - 3]
    for k in range(count):
        slope, more = inverse_slope(e, unit_twist(k))
        pulled = add(unrotate(slope, c[0]), unrotate(more, c[1])), unrotate(slope, c[1])
        x = add(unrotate(A, pulled[0]), unrotate(B, pulled[1])), unrotate(A, pulled[1])
        for l in range(count):
            y = 0.5 * (x[0][l] if l < 3 else x[1][l - 3])
            H[i + k, i + l] += y
            H[i + l, i + k] += y


@inline
def add_deviation_curvature(model, objective, room, knot, by_e, weights, H):
    """Weights and curvature of the deviation from the reference; by_e (2 nv), zero, takes the gradient by it."""
    of_q, of_v = weights
    put_deviation(model, objective, knot.k, knot.q, knot.v, room)
    n, which = of_v.size, 1 if knot.last else 0
    for i in range(objective.rows.size):
        for j in range(objective.rows.size):
            by_e[objective.rows[i]] += 2.0 * objective.Q[which, i, j] * room.d[objective.rows[j]]
    for b in range(objective.balls.shape[0]):
        i, count = objective.balls[b, 0], objective.balls[b, 1]
        add_logarithm(i, count, twist_of(room.d, i, count), twist_of(by_e, i, count), of_q, H)
        for k in range(count):
            by_e[i + k] = 0.0
    for j in range(n):
        of_q[j] += by_e[j]
        of_v[j] += by_e[n + j]


@inline_array
def add_errors(model, targets, k, q, by_error, room, of_q, H):
    """Weights and curvature of errors of targets with the gradient `by_error`, after `put_errors`."""
    packed = PackedTargets(targets.records, targets.constants, targets.goals[row_at(targets.goals, k)])
    target_rows(model, q, room.world, room.masses, packed, room.error, room.J)
    for r in range(targets.weights.size):
        for j in range(of_q.size):
            of_q[j] += by_error[r] * room.J[r, j]
    add_target_curvature(model, room.world, room.masses, packed, room.error, by_error, H)


@inline
def add_place(place, axis, j, q, force, of_q, H):
    """Weights and curvature of the position of a free joint along an axis, at `place` in q and j in v."""
    k, first = place - axis - 4, j - axis - 3
    R = quaternion_rotation(q[k], q[k + 1], q[k + 2], q[k + 3])
    along = (R[0], R[1], R[2]) if axis == 0 else (R[3], R[4], R[5]) if axis == 1 else (R[6], R[7], R[8])
    for b in range(3):
        of_q[first + 3 + b] += force * along[b]
        for a in range(3):
            x = 0.5 * force * dot(along, cross(unit_twist(a)[0], unit_twist(b)[0]))
            H[first + a, first + 3 + b] += x
            H[first + 3 + b, first + a] += x


@inline_array
def add_limits(model, objective, room, knot, multipliers, forces, weights, H):
    """Weights and curvature of the limits of a state; `forces`, zero, takes those of the limited targets."""
    (lam, mu), (of_q, of_v), bounded = multipliers, weights, objective.bounded
    if bounded.weights.size > 0:
        put_errors(model, bounded, knot.k, knot.q, room)
    for l in range(objective.low.size if knot.k > 0 else 0):
        force = limit(objective, l, knot.q, knot.v, room, lam, mu)[0]
        kind, place, j = objective.limits[l, 0], objective.limits[l, 1], objective.limits[l, 2]
        if kind == SPEED:
            of_v[j] += force
        elif kind == COORDINATE:
            of_q[j] += force
        elif kind == TARGET:
            forces[place] += force
        elif force != 0.0:
            add_place(place, kind - PLACE, j, knot.q, force, of_q, H)
    if bounded.weights.size > 0:
        add_errors(model, bounded, knot.k, knot.q, forces, room, of_q, H)


@late(MODEL, OBJECTIVE, COST_ROOM, KNOT, types.UniTuple(VECTOR, 2), types.UniTuple(VECTOR, 2), MATRIX, MATRIX)
@kernel
def weigh_state(model, objective, room, knot, multipliers, weights, N, lxx):
    """Adds the second derivatives of costs and limits by q to lxx, with the motions N of q by y; weights = (of_q, of_v)
    become those of displacements and velocities."""
    objective, room, n, p = contents(objective), contents(room), N.shape[0], N.shape[1]
    of_q, of_v = weights
    of_q[:], of_v[:], H = 0.0, 0.0, np.zeros((n, n))
    if objective.rows.size > 0:
        add_deviation_curvature(model, objective, room, knot, np.zeros(2 * n), weights, H)
    targets = objective.final if knot.last else objective.running
    if targets.weights.size > 0:
        put_errors(model, targets, knot.k, knot.q, room)
        by_error = np.empty(targets.weights.size)
        for r in range(by_error.size):
            by_error[r] = 2.0 * targets.weights[r] * targets.weights[r] * room.error[r]
        add_errors(model, targets, knot.k, knot.q, by_error, room, of_q, H)
    if objective.low.size > 0:
        add_limits(model, objective, room, knot, multipliers, np.zeros(objective.bounded.weights.size), weights, H)
    for i in range(n):
        for j in range(n):
            if H[i, j] != 0.0:
                for a in range(p):
                    for b in range(p):
                        lxx[a, b] += N[i, a] * H[i, j] * N[j, b]


@inline
def clear_inputs(x):
    """by_u = 0, where no limits of forces have put theirs there."""
    for k in range(x.by_u.shape[0]):
        for i in range(x.by_u.shape[1]):
            for j in range(x.by_u.shape[2]):
                x.by_u[k, i, j] = 0.0


@late(MODEL, DISCRETISATION, OBJECTIVE, COST_ROOM, Address(FOUND), CURVATURE_ROOM, PATH, EXPANSION)
def weigh_costs(model, d, objective, room, found, c, path, x):
    """Keeps the Gauss-Newton matrices of all knots, and does `weigh_state` at all of them for `add_step_hessians`."""
    c, x, knots = contents(c), contents(x), path.q.shape[0]
    n = x.lx.shape[1]
    if d.phases.cones.rows.size == 0:
        clear_inputs(x)
    for k in range(knots):
        for i in range(n):
            for j in range(n):
                c.kept[k, i, j] = x.lxx[k, i, j]
        for i in range(x.by_u.shape[1] if k < knots - 1 else 0):
            for j in range(x.by_u.shape[2]):
                c.kept[k, n + i, j] = x.by_u[k, i, j]
        weigh_state(model, objective, room, Knot(k, k == knots - 1, path.q[k], path.v[k]), (x.lam[k], x.mu[k]),
                    (c.motion.q[k], c.motion.v[k]), found.K[k], x.lxx[k])
