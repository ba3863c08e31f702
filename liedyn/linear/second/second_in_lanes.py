"""Second derivatives of W states in lanes, of mechanisms that `liedyn.linear.linearize_in_lanes` linearizes in lanes.

The same equations as for one state (`liedyn.linear.second.hessian`), with one elimination for all W states; a register
holds one direction of W states. Weights of multipliers are left to `liedyn.linear.second.second_states`.
"""
import numpy as np

from liedyn.linear.linearize_in_lanes import (
    MOST_IN_LANES, linearize_in_lanes, linearize_in_lanes_size, matrix_of, space_in_lanes, spaces_fit_lanes,
)
from liedyn.linear.linearize_states import Request
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.second.hessian import IN_LANES, SUMS, hessian_size, put_hessians
from liedyn.linear.second.weighted_sums import SumWeights, motion_sums, sums_size
from liedyn.linear.space import COORDINATES, Coordinates, LocalSpace
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, late
from liedyn.machine.linalg.gauss_jordan import clear
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.mechanics.constraints.free_velocities import TANGENT, is_left
from liedyn.mechanics.dynamics.state import STATE, gather_state, state_in_lanes
from liedyn.model.calls.batches import aligned, batch, gather, lines_for, scatter_matrix
from liedyn.model.packed import NV, N_ROWS
from liedyn.model.packed_records import MODEL


@inline
def gather_weights(weights, b, end, lanes):
    """Load rows of weights of the W states from b on into lanes; a single row is that of all states."""
    if weights.shape[0] == 1:
        for k in range(weights.shape[1]):
            store(LANES, lanes, k, splat(LANES, load(SCALAR, weights, k)))
    else:
        gather(weights, b, end, lanes)


@late(IN_LANES, MODEL, STATE, COORDINATES, SUMS, VECTOR, VECTOR, group(LocalSpace, *[MATRIX] * 14), MATRIX)
def model_hessians_in_lanes(lane, model, state, coordinates, weights, e, work, space, H):
    """`liedyn.linear.second.hessian.model_hessians` of W states."""
    work[0] = WIDTH
    sums = motion_sums(lane, model, state.v, coordinates, weights, work)
    put_hessians(lane, model, state, coordinates, sums, e, work, space, H)


@batch
def second_registers(begin, end, model, states, request, weights, results):
    """`second_states` for states with the same dependent velocities; `done` becomes 1 where H has been computed."""
    (coordinates, actuators, tolerances), (H, done) = request, results
    p, n, nu, sums = coordinates.virtual_w.size, model.ints[NV], actuators.shape[1], weights.y.shape[1]
    virtual, choosable, c = coordinates.virtual_w, np.empty(n), 2 * p + nu
    of_space = linearize_in_lanes_size(model, p, nu)
    size = 1 + hessian_size(LANES, model, p, p, nu) + sums_size(LANES, model, sums)
    if weights.lam.size > 0 or of_space + size > MOST_IN_LANES or not spaces_fit_lanes(model, coordinates, choosable):
        return
    lanes, space, R = state_in_lanes(states), space_in_lanes(n, model.ints[N_ROWS], p, nu, True), matrix_of(p, n)
    chosen, own = Coordinates(R, virtual, R, virtual), aligned(of_space)
    picked = chosen
    if not is_left(virtual, TANGENT):
        picked = Coordinates(R, virtual, coordinates.R_w[0], virtual)
        for k in range(p * n):
            store(LANES, R, k, splat(LANES, load(SCALAR, picked.R_w, k)))
    wanted = Request(picked, actuators, np.empty((0, 4), np.int64), tolerances)
    condition, work = matrix_of(1, 1), aligned(size)
    lower, moved = matrix_of(p, 2 * p + nu), matrix_of(n, 2 * p + nu)
    given = SumWeights(
        matrix_of(sums, weights.y.shape[2]), matrix_of(sums, weights.w.shape[2]), matrix_of(sums, weights.a.shape[2]),
        matrix_of(sums, 0), matrix_of(sums, weights.q.shape[2]), matrix_of(sums, weights.v.shape[2]))
    found, rows, count = matrix_of(H.shape[1] * c, c), H.reshape(H.shape[0], H.shape[1] * c * c), weights.y.shape[0]
    clear(found)
    after = found[(H.shape[1] - sums) * c:]
    rows_y, rows_w = weights.y.reshape(count, given.y.size // WIDTH), weights.w.reshape(count, given.w.size // WIDTH)
    rows_a, rows_q = weights.a.reshape(count, given.a.size // WIDTH), weights.q.reshape(count, given.q.size // WIDTH)
    rows_v = weights.v.reshape(count, given.v.size // WIDTH)
    lines, e = lines_for(rows), own[WIDTH:]  # a slice, which keeps a reference
    for b in range(begin, end, WIDTH):
        gather_state(states, b, end, lanes)
        if not linearize_in_lanes(model, lanes, wanted, choosable, own, space, condition):
            continue
        complete_derivatives(LANES, p, actuators, space, lower, moved)
        gather_weights(rows_y, b, end, given.y)
        gather_weights(rows_w, b, end, given.w)
        gather_weights(rows_a, b, end, given.a)
        gather_weights(rows_q, b, end, given.q)
        gather_weights(rows_v, b, end, given.v)
        model_hessians_in_lanes(LANES, model, lanes, chosen, given, e, work, space, after)
        scatter_matrix(found, b, end, rows, lines)
        for k in range(b, min(b + WIDTH, end)):
            done[k] = 1
