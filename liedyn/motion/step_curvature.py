"""The second derivative of an explicit step, contracted with a costate: an adjoint sweep through its stages.

For weights (p_y, p_w) of the state at the end of a step (`liedyn.motion.discrete_steps`), the rates f_i of stage i have
the weights nu_i, from the last stage to the first: with c h the part of the step that leads from a stage to the next,

    nu_i = b_i h p_w + c h on_w_(i+1)        on_y_i = (df_i/dy)^T nu_i
    on_w_i = (df_i/dw)^T nu_i + b_i h dexp_{-u}^T p_y + c h dexp_{-u}^T on_y_(i+1)

where each dexp belongs to the displacement u in question, and is one in R^n. Rates of y that are not among w (rolling)
are velocities v(y, w) of their own: what would be their on_w_i is a weight of v, whose gradient by (y, w) is added to
on_y_i and on_w_i, and whose second derivative is in f_i''. With the variations S_i of a stage, rows
of (y, w, input) by those at the start, the second derivative is the sum over the stages of S_i^T (nu_i . f_i'') S_i,
where nu . f'' is the Hessian of a weighted sum of accelerations: no tensor is needed. Displacements of ball and free
joints are bent, too (`liedyn.lie.slopes.put_carried_slopes`). All second derivatives are Hessians in the exponential's
chart, so they are symmetric and add to those of a cost.
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.lie.slopes import carry_rows, pull_back, put_carried_slopes
from liedyn.linear.second.motion_states import WeighedMotion, of_states
from liedyn.machine.compiled.by_address import Address, contents
from liedyn.machine.compiled.jit import CUBE, INTEGERS, MATRIX, VECTOR, group, inline, late
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, clear, padded
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.machine.simd.registers import copy_row
from liedyn.mechanics.dynamics.state import State, gather_state, state_in_lanes
from liedyn.mechanics.tree.aba_second_derivatives import aba_hessian_kernel, aba_hessian_size
from liedyn.model.calls.batches import aligned, batch, gather, in_lanes, lines_for, scatter_matrix
from liedyn.model.packed import N_ROWS
from liedyn.model.packed_records import MODEL
from liedyn.motion.discrete_steps import (
    EULER, put_displacement_of, put_sums, put_variation, stage_time, stage_weight, vary_stage,
)

CurvatureRoom = namedtuple("CurvatureRoom", "costate nu on_y motion done H kept on_w back S HS T on_start on_u total")
"""Weights of the state at the end of a step; for each state of each stage (as in `Stages`), nu, on_y and H = nu . f''
(z, z), z = (y, w, input), and for mechanisms with constraints nu as `WeighedMotion`, and whether H was found; second
derivatives (z, z) of a cost, kept for each knot; on_w of one stage, and what a displacement has for weights. Padded
(z, z): S, its rows of inputs always the identity, nu . f'' S, and the `total`, which is the result; padded (p, z):
dexp_{-u} D of ball and free joints, and what `put_carried_slopes` makes of it."""

CURVATURE = group(CurvatureRoom, VECTOR, MATRIX, MATRIX, group(WeighedMotion, *[MATRIX] * 3), INTEGERS, CUBE, CUBE,
                  VECTOR, VECTOR, *[MATRIX] * 6)
CURVATURE_ROOM = Address(CURVATURE)


def curvature_room(rows, steps, n, p, nu):
    """`CurvatureRoom` for so many states and steps of n degrees of freedom; empty for none."""
    z, motion = 2 * p + nu, WeighedMotion(*np.zeros((3, rows, n)))
    room = CurvatureRoom(np.zeros(2 * p), *np.zeros((2, rows, p)), motion,
                         np.ones(rows, np.int64), np.zeros((rows, z, z)), np.zeros((steps + 1, z, z)),
                         *np.zeros((2, p)),
                         *np.zeros((2, z, padded.py_func(z))), *np.zeros((3, p, padded.py_func(z))),
                         np.zeros((z, padded.py_func(z))))
    room.S[range(2 * p, z), range(2 * p, z)] = 1.0
    return room


# ---- the rates: Hessians of weighted accelerations


@inline
def put_tree_hessian(n, nu, actuators, hessians, H):
    """H (z, z) of W states from the four parts of `aba_hessian_kernel`."""
    (qq, vv, qv, qtau), z = hessians, 2 * n + nu
    for k in range(z * z):
        store(LANES, H, k, splat(LANES, 0.0))
    for i in range(n):
        for j in range(n):
            store(LANES, H, z * i + j, load(LANES, qq, n * i + j))
            store(LANES, H, z * (n + i) + n + j, load(LANES, vv, n * i + j))
            x = load(LANES, qv, n * i + j)
            store(LANES, H, z * i + n + j, x)
            store(LANES, H, z * (n + j) + i, x)
        for c in range(nu):
            x = splat(LANES, 0.0)
            for j in range(n):
                x = x + actuators[j, c] * load(LANES, qtau, n * i + j)
            store(LANES, H, z * i + 2 * n + c, x)
            store(LANES, H, z * (2 * n + c) + i, x)


@batch
def tree_hessians(begin, end, model, state, actuators, nu, H):
    """Rows of H = nu . f'' by (q, v, inputs) for a tree in its own coordinates."""
    n, columns, square = nu.shape[1], actuators.shape[1], nu.shape[1] * nu.shape[1] * WIDTH
    rows = H.reshape(H.shape[0], H.shape[1] * H.shape[2])
    lanes, weights, out = state_in_lanes(state), in_lanes(nu), in_lanes(rows)
    work, lines = aligned(aba_hessian_size(model) * WIDTH), lines_for(rows)
    qq, vv, qv, qtau = aligned(square), aligned(square), aligned(square), aligned(square)
    for b in range(begin, end, WIDTH):
        gather_state(state, b, end, lanes)
        gather(nu, b, end, weights)
        aba_hessian_kernel(LANES, model, lanes.q, lanes.v, lanes.tau, weights, lanes.f_ext, work, qq, vv, qv, qtau)
        put_tree_hessian(n, columns, actuators, (qq, vv, qv, qtau), out)
        scatter_matrix(out, b, end, rows, lines)


of_trees = late(types.int64, types.int64, MODEL, group(State, *[MATRIX] * 4), MATRIX, MATRIX, CUBE)(
    tree_hessians.kernel)


@inline
def put_motion_weights(d, begin, end, c):
    """c.motion.a = nu, as weights of all accelerations."""
    for b in range(begin, end):
        for i in range(d.speeds.size):
            c.motion.a[b, d.speeds[i]] = c.nu[b, d.entries[d.places.size + i] - c.nu.shape[1]]


@inline
def all_done(begin, end, c):
    """True if all states from begin to end have Hessians."""
    made = True
    for b in range(begin, end):
        made = made and c.done[b] == 1
    return made


@inline
def put_hessians(model, d, states, begin, end, c):
    """c.H of the states from begin to end, after `put_stage_weights`; False if one has none."""
    if model.ints[N_ROWS] == 0:
        of_trees(begin, end, model, states, d.actuators, c.nu, c.H)
        return True
    put_motion_weights(d, begin, end, c)
    of_states(begin, end, model, states, contents(d.coordinates), d.actuators, c.motion, d.rank_tolerance, c.H, c.done)
    return all_done(begin, end, c)


# ---- the sweep


@late(types.int64[:, ::1], VECTOR, VECTOR)
def pull_groups_back(groups, u, back):
    """The entries of ball and free joints in back become dexp_{-u}^T back."""
    for g in range(groups.shape[0]):
        pull_back(groups[g, 1], u, groups[g, 0], back)


@inline
def put_back(d, u, on, c):
    """c.back = dexp_{-u}^T on."""
    for i in range(c.back.size):
        c.back[i] = on[i]
    if d.groups.shape[0] > 0:
        pull_groups_back(d.groups, u, c.back)


@late(*[INTEGERS] * 3, MATRIX, types.int64, CURVATURE)
def put_rolling_weights(places, speeds, entries, X, row, c):
    """Weights of rates of y that are not among w leave c.on_w; their gradient by X is added there and to c.on_y."""
    p = c.on_w.size
    for i in range(places.size):
        is_speed = False
        for k in range(speeds.size):
            is_speed = is_speed or speeds[k] == places[i]
        if not is_speed:
            x = c.on_w[entries[i]]
            c.motion.v[row, places[i]] += x
            c.on_w[entries[i]] = 0.0
            for l in range(p):
                c.on_y[row, l] += x * X[places[i], l]
                c.on_w[l] += x * X[places[i], p + l]


@inline
def put_stage_weights(d, r, c, k, knots, v):
    """nu and on_y of all stages of the step from knot k with velocities v, for the weights c.costate."""
    p, h = r.u.size, d.h
    put_displacement_of(d, r, k, knots, v)
    put_back(d, r.x, c.costate, c)
    if d.method == EULER:  # semi-implicit: the displacement uses the new velocities
        for i in range(p):
            c.nu[k, i] = h * (c.costate[p + i] + h * c.back[i])
        return
    onward = 0.0  # the part of the step that leads to the next stage
    for i in range(p):
        r.u[i], c.on_w[i] = c.back[i], 0.0  # what the displacement of the step gives to velocities of stages
    for s in range(d.method):
        stage = d.method - 1 - s
        row, weight = stage * knots + k, stage_weight(d.method, stage, h)
        for i in range(p):
            c.nu[row, i] = weight * c.costate[p + i] + onward * c.on_w[i]
        for i in range(p):
            on_y, on_w = 0.0, weight * r.u[i] + onward * c.back[i]
            for j in range(p):
                on_y += r.found.A[row, p + j, i] * c.nu[row, j]
                on_w += r.found.A[row, p + j, p + i] * c.nu[row, j]
            c.on_y[row, i], c.on_w[i] = on_y, on_w
        if d.speeds.size < d.places.size:
            put_rolling_weights(d.places, d.speeds, d.entries, r.found.C[row], row, c)
        if stage > 0:
            onward = stage_time(stage, h)
            for i in range(p):
                r.x[i] = onward * r.found.f0[row - knots, i]
            put_back(d, r.x, c.on_y[row], c)


@inline
def add_bent(c, H, out):
    """out += S^T H S."""
    z, columns = H.shape[0], c.S.shape[1]
    clear(c.HS)
    add_products_in_registers(H, 0, z, 1, z, z, c.S, c.HS)
    add_products_in_registers(c.S, 0, 1, columns, z, z, c.HS, out)


@late(types.int64[:, ::1], *[VECTOR] * 2, *[MATRIX] * 2, CURVATURE)
def add_bent_groups(groups, u, on, D, Z, c):
    """c.total += on . the second variation of Z after a displacement u that varies by D, for ball and free joints."""
    p, columns = Z.shape
    clear(c.T)
    clear(c.on_start)
    clear(c.on_u)
    for i in range(p):
        c.back[i] = on[i]
    for g in range(groups.shape[0]):
        first, count = groups[g, 0], groups[g, 1]
        carry_rows(count, u, first, c.T, D)
        pull_back(count, u, first, c.back)
        put_carried_slopes(count, u, first, on, c.back, c.T, c.on_start, c.on_u)
        for i in range(first, first + count):  # Ad_{exp -u} of the start
            for j in range(columns):
                c.T[i, j] = Z[i, j] - c.T[i, j]
    add_products_in_registers(c.T, 0, 1, columns, c.total.shape[0], p, c.on_start, c.total)
    add_products_in_registers(D, 0, 1, columns, c.total.shape[0], p, c.on_u, c.total)


@inline
def put_stage_rows(r, c, stage):
    """Rows of S: variations of y and w at the stage."""
    p, columns = r.u.size, c.S.shape[1]
    for i in range(p):
        copy_row(SCALAR, r.eta, columns * i, columns, c.S, columns * i)
        copy_row(SCALAR, r.dw, columns * i, columns, c.S, columns * (p + i))
        if stage == 0:
            for j in range(columns):
                c.S[i, j] = 1.0 if i == j else 0.0


@inline
def put_step_hessian(d, r, c, k, knots, v):
    """c.total = the Hessian of the step from knot k by (y, w, input), after `put_stage_weights` and c.H of all stages.

    Entries off the diagonal may stand on either side, half of the sum of both belongs to each.
    """
    clear(c.total)
    clear(r.df)
    for stage in range(d.method):
        row = stage * knots + k
        vary_stage(d, r, row, knots, stage)
        put_stage_rows(r, c, stage)
        add_bent(c, c.H[row], c.total)
        if stage > 0 and d.groups.shape[0] > 0:
            add_bent_groups(d.groups, r.u, c.on_y[row], r.moved, r.eta, c)
    if d.groups.shape[0] > 0:
        put_sums(d, r, k, knots)
        put_displacement_of(d, r, k, knots, v)
        put_variation(d, r.x, r.sum_w, r.eta)
        add_bent_groups(d.groups, r.x, c.costate, r.sum_w, r.eta, c)
