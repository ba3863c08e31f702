"""Backward pass: the quadratic model of the cost-to-go, and its optimal inputs within their limits.

With [A f] and B the derivatives of the step from knot k and the gap f after it, and V' the cost-to-go of the next knot,
the quadratic model by u and (x, 1) is, with l_ux and l_uu of force limits of contacts,

    Q_uu       = 2 R + l_uu   + B^T V'_xx B
    [Q_ux Q_u] = [l_ux l_u]   + B^T (V'_xx [A f] + [0 V'_x])
    [Q_xx Q_x] = [l_xx l_x]   + A^T (V'_xx [A f] + [0 V'_x])

Inputs change by k + K dx, and what is left is V, the Schur complement

    [V_xx V_x] = [Q_xx Q_x] - Q_xu Q_uu^-1 [Q_ux Q_u]

Q_uu is positive definite, as R is and Gauss-Newton matrices have no negative directions. The damping adds costs of
changes: the damping times the weights that the diagonal of R gives to inputs, and those that states have on average, so
that changes are small where the model is not the motion.

The best change du of all inputs within low <= u + du <= high is the solution of a convex quadratic programme. A
primal-dual interior point method finds it (Nocedal and Wright 2006, 16.6; along the steps of a plan: Rao, Wright and
Rawlings 1998): with the distances s from the limits and their multipliers z, Newton's method on z s = m is a pass
backward and forward of the plan, with the further costs of inputs

    weight du^2 / 2 + push du        weight = z_low / s_low + z_high / s_high
                                     push   = m / s_high - m / s_low - weight du

and m falls from pass to pass, by less where the limits allow short ways only
(`liedyn.tasks.planning.ddp_search.find_changes`). The feedback fades where inputs come
near their limits, and is none at them. A knot by itself, as in box-DDP, would not know what the changes before it do.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import contents, record
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, add_row, clear, padded, solve_rows_for
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import copy_row
from liedyn.tasks.planning.expansion import EXPANSION, PATH
from liedyn.tasks.planning.objective import OBJECTIVE

BackwardRoom = namedtuple("BackwardRoom", "Vx Vxx X B VX VB Q U S T weights")
"""V'; X = [A f] and B; VX = V'_xx X + [0 V'_x] and VB = V'_xx B; Q = Q_uu, which becomes the identity,
U = [Q_ux Q_u] and S = [Q_xx Q_x]; T = [K k]; weights of states. Matrices are padded, but V'_xx."""

InputBox = namedtuple("InputBox", "wanted change below above low high weight push own")
"""Of all steps (steps, nu): the change of inputs that the quadratic model wants, the one within their limits from where
it is found, its distances from the limits `below` and `above` it, infinite where there is none, and the multipliers
`low` and `high` of those; what they add to the cost of a change, weight du^2 / 2 + push du; and the second derivative
of the cost by the input without it."""

BACKWARD_ROOM, INPUT_BOX = record(BackwardRoom, VECTOR, *[MATRIX] * 9, VECTOR), record(InputBox, *[MATRIX] * 9)

INSIDE = 0.1
"""Least distance from a limit, by the room between both, that the changes begin with."""
NARROW = 1e-12
"""The room between limits that are equal, by what inputs change."""
CENTRING, TO_BOUNDARY = 0.1, 0.995
"""The least part of the mean product z s that is aimed at next, and the part of the way to a limit that is taken."""
HELD = 1e-6
"""The largest distance from a limit, by the room between both or by the limit, at which an input is held there."""


@kernel
def backward_room(x, nu):
    """`BackwardRoom` for x states and nu inputs."""
    z, w = padded(x + 1), padded(nu)
    return BackwardRoom(np.zeros(x), np.zeros((x, x)), np.zeros((x, z)), np.zeros((x, w)), np.zeros((x, z)),
                        np.zeros((x, w)), np.zeros((nu, w)), np.zeros((nu, z)), np.zeros((x, z)), np.zeros((nu, z)),
                        np.zeros(x))


@inline
def put_quadratic_model(expansion, k, R, damping, box, scratch):
    """Q, U and S of knot k from V' of the next one."""
    A, B, lxx = expansion.A[k], expansion.B[k], expansion.lxx[k]
    n, nu, z, w = A.shape[0], B.shape[1], scratch.X.shape[1], scratch.B.shape[1]
    clear(scratch.VX)
    clear(scratch.VB)
    clear(scratch.Q)
    clear(scratch.U)
    clear(scratch.S)
    for i in range(n):
        copy_row(SCALAR, A, n * i, n, scratch.X, z * i)
        copy_row(SCALAR, B, nu * i, nu, scratch.B, w * i)
        copy_row(SCALAR, lxx, n * i, n, scratch.S, z * i)
        scratch.S[i, i] += damping * scratch.weights[i]
        scratch.X[i, n], scratch.S[i, n], scratch.VX[i, n] = expansion.gap[k, i], expansion.lx[k, i], scratch.Vx[i]
    for i in range(nu):
        for j in range(nu):
            scratch.Q[i, j] = 2.0 * R[i, j]
        scratch.Q[i, i] += 2.0 * damping * R[i, i] + box.weight[k, i]
        scratch.U[i, n] = expansion.lu[k, i] + box.push[k, i]
    add_products_in_registers(scratch.Vxx, 0, n, 1, n, n, scratch.X, scratch.VX)
    add_products_in_registers(scratch.Vxx, 0, n, 1, n, n, scratch.B, scratch.VB)
    add_products_in_registers(scratch.B, 0, 1, w, nu, n, scratch.VB, scratch.Q)
    add_products_in_registers(scratch.B, 0, 1, w, nu, n, scratch.VX, scratch.U)
    add_products_in_registers(scratch.X, 0, 1, z, n, n, scratch.VX, scratch.S)


@late(MATRIX, BACKWARD_ROOM)
def add_curvature_by_inputs(by_u, scratch):
    """U and Q += [l_ux l_uu]; compiled separately, as inlined it would slow down plans without phases by a tenth."""
    nu = by_u.shape[0]
    x = by_u.shape[1] - nu
    for i in range(nu):
        for j in range(x):
            scratch.U[i, j] += by_u[i, j]
        for j in range(nu):
            scratch.Q[i, j] += by_u[i, x + j]


@kernel_in_place
def backward_knot(expansion, k, R, damping, box, scratch):
    """From V' of the next knot in r to V of knot k, with the change and the feedback of its inputs; False if it has no
    best ones."""
    scratch = contents(scratch)
    n, nu, z = expansion.B.shape[1], expansion.B.shape[2], scratch.X.shape[1]
    put_quadratic_model(expansion, k, R, damping, box, scratch)
    if expansion.by_u.shape[1] > 0:
        add_curvature_by_inputs(expansion.by_u[k], scratch)
    for i in range(nu):
        box.own[k, i] = scratch.Q[i, i] - box.weight[k, i]
    clear(scratch.T)
    for i in range(nu):
        add_row(scratch.T, i, -1.0, scratch.U, i)
    if not solve_rows_for(SCALAR, scratch.Q, scratch.T):
        return False
    K = expansion.K[k]
    for i in range(nu):
        expansion.k[k, i] = scratch.T[i, n]
        copy_row(SCALAR, scratch.T, z * i, n, K, n * i)
    add_products_in_registers(scratch.U, 0, 1, z, n, nu, scratch.T, scratch.S)
    for i in range(n):
        scratch.Vx[i] = scratch.S[i, n]
        for j in range(i + 1):
            scratch.Vxx[i, j] = scratch.Vxx[j, i] = 0.5 * (scratch.S[i, j] + scratch.S[j, i])
    return True


@late(OBJECTIVE, BACKWARD_ROOM, INPUT_BOX, EXPANSION, types.float64, returns=types.boolean)
def backward(objective, scratch, box, expansion, damping):
    """Changes and feedback of all knots; False if one has no best inputs."""
    last = expansion.lu.shape[0]
    for i in range(scratch.Vx.size):
        scratch.Vx[i], scratch.weights[i] = expansion.lx[last, i], 0.0
        for k in range(last + 1):
            scratch.weights[i] += abs(expansion.lxx[k, i, i]) / (last + 1)
        for j in range(scratch.Vx.size):
            scratch.Vxx[i, j] = expansion.lxx[last, i, j]
    for k in range(last - 1, -1, -1):
        if not backward_knot(expansion, k, objective.R, damping, box, scratch):
            return False
    return True


@inline
def leave_free(box):
    """No costs of changes, as where no limit is near."""
    for k in range(box.weight.shape[0]):
        for i in range(box.weight.shape[1]):
            box.weight[k, i] = box.push[k, i] = 0.0


@inline
def is_beyond(objective, path, box):
    """Would a change that is wanted be beyond a limit?"""
    for k in range(path.u.shape[0]):
        for i in range(path.u.shape[1]):
            u = path.u[k, i] + box.wanted[k, i]
            if u < objective.u_low[i] or u > objective.u_high[i]:
                return True
    return False


@late(OBJECTIVE, PATH, INPUT_BOX, types.float64)
def begin_inside(objective, path, box, m):
    """Changes within the limits, and multipliers whose products with the distances are m."""
    for i in range(path.u.shape[1]):
        reach = 0.0
        for k in range(path.u.shape[0]):
            reach = max(reach, abs(box.wanted[k, i]))
        reach = reach if reach > 0.0 else 1.0
        room = objective.u_high[i] - objective.u_low[i]
        space = max(INSIDE * (room if room < np.inf else reach), NARROW * reach)
        for k in range(path.u.shape[0]):
            low, high = objective.u_low[i] - path.u[k, i], objective.u_high[i] - path.u[k, i]
            x = min(max(0.0, low + space), high - space) if room > 2.0 * space else 0.5 * (low + high)
            box.change[k, i], box.below[k, i], box.above[k, i] = x, max(x - low, space), max(high - x, space)
            box.low[k, i], box.high[k, i] = m / box.below[k, i], m / box.above[k, i]


@late(INPUT_BOX, types.float64)
def put_barrier(box, m):
    """What the limits add to the cost of changes, for products m."""
    for k in range(box.change.shape[0]):
        for i in range(box.change.shape[1]):
            a, b = box.below[k, i], box.above[k, i]
            box.weight[k, i] = box.low[k, i] / a + box.high[k, i] / b
            box.push[k, i] = m / b - m / a - box.weight[k, i] * box.change[k, i]


@inline
def next_product(part, mean):
    """The product z s to aim at after the part of the way that the limits allowed: the shorter it was, the less the
    products fall, so that they become equal and the next way is longer."""
    return max(CENTRING, math.sqrt(1.0 - part)) * mean


@inline
def part_to(part, x, dx):
    """The part of the change dx that leaves a little of x, or a smaller one."""
    return min(part, -TO_BOUNDARY * x / dx) if dx < 0.0 else part


@late(INPUT_BOX, types.float64, returns=types.Tuple([types.float64] * 2))
def move_inside(box, m):
    """Go towards the changes that are wanted, and multipliers that belong to them, as far as the limits allow.

    Returns (the smaller of the parts of both, sum of products z s after it).
    """
    of_x = of_z = 1.0
    for k in range(box.change.shape[0]):
        for i in range(box.change.shape[1]):
            steps, a, b = box.wanted[k, i] - box.change[k, i], box.below[k, i], box.above[k, i]
            of_x = part_to(part_to(of_x, a, steps), b, -steps)
            z, w = box.low[k, i], box.high[k, i]
            of_z = part_to(part_to(of_z, z, (m - z * steps) / a - z), w, (m + w * steps) / b - w)
    total = 0.0
    for k in range(box.change.shape[0]):
        for i in range(box.change.shape[1]):
            steps, a, b = box.wanted[k, i] - box.change[k, i], box.below[k, i], box.above[k, i]
            z, w = box.low[k, i], box.high[k, i]
            box.change[k, i] += of_x * steps
            if a < np.inf:
                box.below[k, i] = a + of_x * steps
                box.low[k, i] = z + of_z * ((m - z * steps) / a - z)
                total += box.below[k, i] * box.low[k, i]
            if b < np.inf:
                box.above[k, i] = b - of_x * steps
                box.high[k, i] = w + of_z * ((m + w * steps) / b - w)
                total += box.above[k, i] * box.high[k, i]
    return min(of_x, of_z), total


@late(OBJECTIVE, PATH, INPUT_BOX, EXPANSION)
def hold_at_limits(objective, path, box, expansion):
    """Inputs that come to a limit are put there, without feedback.

    An input is held where its limit resists more than its own cost, z / s >= Q_uu: one that goes only a little way from
    its limit, as changes are small, is free. To hold an input costs about m at most, as z s = m.
    """
    for k in range(path.u.shape[0]):
        for i in range(path.u.shape[1]):
            for limit, distance, z, side in ((objective.u_low[i], box.below[k, i], box.low[k, i], -1.0),
                                             (objective.u_high[i], box.above[k, i], box.high[k, i], 1.0)):
                size = min(objective.u_high[i] - objective.u_low[i], abs(limit) + abs(box.wanted[k, i]))
                if distance < np.inf and distance <= HELD * size and z >= distance * box.own[k, i]:
                    # a little further: it is cut to the limit
                    expansion.k[k, i] = limit - path.u[k, i] + side * NARROW * size
                    for j in range(expansion.K.shape[2]):
                        expansion.K[k, i, j] = 0.0
