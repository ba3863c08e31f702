"""Linearization of many states in one kernel: results in place, one workspace per thread."""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.linearize_in_lanes import (
    MOST_IN_LANES, largest, linearize_in_lanes, linearize_in_lanes_size, matrix_of, space_in_lanes, spaces_fit_lanes,
)
from liedyn.linear.local import linearize_in_place, linearize_size
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.open_tree import linearize_tree, picks_all_in_order, put_tree_directions
from liedyn.linear.output_rows import output_size, put_outputs, read_accelerations
from liedyn.linear.space import COORDINATES, SPACE, Coordinates, LocalSpace
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, inline_array, kernel_in_place, late
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.gauss_jordan import element, padded
from liedyn.machine.linalg.vectors import copy_to
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_matrix, take_vector, width_of
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.free_velocities import TANGENT, is_left
from liedyn.mechanics.constraints.sparse_elimination import complete_terms
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import STATE, State, gather_state, state_in_lanes
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives_size
from liedyn.model.calls.batches import aligned, batch, lines_for, scatter, scatter_matrix
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS, PackedModel
from liedyn.model.packed_records import MODEL

Found = namedtuple("Found", "A B C D f0 K S drift a lam rank condition condition_y closure")
"""Results, one row for each state; `rank` is -1 until the state has been linearized. K, S and drift may have no rows.

`condition` is the condition number of the velocities, `condition_y` that of the coordinates.
"""

Tolerances = namedtuple("Tolerances", "closure rank")
"""Tolerances of the closure error and of velocities that open loops; of pivots that count as zero."""

Request = namedtuple("Request", "coordinates actuators outputs tolerances")
"""What is asked for: `Coordinates`; S_u of tau = S_u u; the parts of an `OutputPlan`; `Tolerances`."""

Scratch = namedtuple("Scratch", "work lower moved outputs")
"""Workspaces of one thread: for the linearization, two matrices like da, and for the outputs."""


# ---- W states at a time: separate kernels, so that a single state does not wait for their compilation


@inline_array
def scratch_in_lanes(model, size, n, p, nu, outputs, C):
    """Workspaces of `size` numbers, and of outputs if there are any."""
    x, read = 2 * p, 1 if outputs.shape[0] > 0 else 0
    return Scratch(aligned(size), matrix_of(p, read * (x + nu)), matrix_of(n, read * (x + nu)),
                   aligned(read * output_size(LANES, model, C.shape[1], x, nu)))


@inline
def put_outputs_of(lane, model, state, request, space, scratch, C, D):
    """C and D, from what a linearization leaves in `space` and its workspace."""
    if width_of(lane) == 1 and is_long(model):
        complete_terms(model, space.M, space.G)
    if read_accelerations(request.outputs):
        p_y = space.A.shape[0] - scratch.lower.shape[0]
        complete_derivatives(lane, p_y, request.actuators, space, scratch.lower, scratch.moved)
    e = scratch.work[first_place(scratch.work):]
    put_outputs(lane, model, state, request.outputs, space, e, scratch.outputs, C, D)


@inline
def put_drift(v, K, w, drift):
    """drift = v - K w of W states: the velocity that moving constraints force."""
    for j in range(K.shape[0]):
        x = load(LANES, v, j)
        for s in range(K.shape[1] // WIDTH):
            x = x - load(LANES, w, s) * element(LANES, K, j, s)
        store(LANES, drift, j, x)


@batch
def linearize_registers(begin, end, model, state, request, found):
    """`linearize_states` for states with the same dependent velocities (`liedyn.linear.linearize_in_lanes`); the rank
    of other states remains -1."""
    coordinates, actuators, outputs, _ = request
    count, n, p, nu = state.q.shape[0], model.ints[NV], coordinates.virtual_w.size, actuators.shape[1]
    m, x, r, choosable = model.ints[N_ROWS], 2 * p, found.C.shape[1], np.empty(n)
    size, virtual, R = linearize_in_lanes_size(model, p, nu), coordinates.virtual_w, matrix_of(p, n)
    if size > MOST_IN_LANES or not spaces_fit_lanes(model, coordinates, choosable):
        return
    chosen = Coordinates(R, virtual, R, virtual)
    if not is_left(virtual, TANGENT):
        chosen = Coordinates(R, virtual, coordinates.R_w[0], virtual)
        for k in range(p * n):
            store(LANES, R, k, splat(LANES, load(SCALAR, chosen.R_w, k)))
    asked = Request(chosen, actuators, outputs, request.tolerances)
    lanes, space = state_in_lanes(state), space_in_lanes(n, m, p, nu, True)
    scratch = scratch_in_lanes(model, size, n, p, nu, outputs, found.C)
    K, drift, C, D = matrix_of(n, p), matrix_of(1, n), matrix_of(r, x), matrix_of(r, nu)
    condition, closure = matrix_of(1, 1), matrix_of(1, 1)
    A_rows, B_rows = found.A.reshape(count, x * x), found.B.reshape(count, x * nu)
    K_rows, S_rows = found.K.reshape(len(found.K), n * p), found.S.reshape(len(found.S), n * p)
    C_rows, D_rows = found.C.reshape(count, r * x), found.D.reshape(count, r * nu)
    lines_A, lines_B, lines_K, lines_S = lines_for(A_rows), lines_for(B_rows), lines_for(K_rows), lines_for(S_rows)
    for b in range(begin, end, WIDTH):
        gather_state(state, b, end, lanes)
        if not linearize_in_lanes(model, lanes, asked, choosable, scratch.work, space, condition):
            continue
        put_motions(space.X, K)
        put_drift(lanes.v, K, space.w, drift)
        scatter_matrix(space.A, b, end, A_rows, lines_A)
        scatter_matrix(space.B, b, end, B_rows, lines_B)
        if len(found.K) > 0:
            scatter_matrix(K, b, end, K_rows, lines_K)
        if len(found.S) > 0:
            scatter_matrix(K, b, end, S_rows, lines_S)
        if len(found.drift) > 0:
            scatter(drift, b, end, found.drift)
        scatter(space.f0, b, end, found.f0)
        scatter(space.a, b, end, found.a)
        scatter(space.lam, b, end, found.lam)
        store(LANES, closure, 0, largest(space.residual, m))
        for k in range(b, min(b + WIDTH, end)):
            found.rank[k], found.closure[k] = n - p, closure[0, k - b]
            found.condition[k] = found.condition_y[k] = condition[0, k - b]
        if r > 0:
            put_outputs_of(LANES, model, lanes, request, space, scratch, C, D)
            scatter(C, b, end, C_rows)
            scatter(D, b, end, D_rows)


@inline
def put_motions(X, K):
    """K of W states, the second half of X = [Delta S]."""
    p = K.shape[1] // WIDTH
    for i in range(K.shape[0]):
        for s in range(p):
            store(LANES, K, p * i + s, load(LANES, X, 2 * p * i + p + s))


@inline
def put_identity(matrix):
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 1.0 if i == j else 0.0


@batch
def linearize_trees(begin, end, model, state, request, found):
    """`linearize_states` for trees without constraints, in their own coordinates."""
    (R_y, virtual_y, R_w, virtual_w), actuators, outputs, _ = request
    count, n, p, nu = state.q.shape[0], model.ints[NV], virtual_w.size, actuators.shape[1]
    x, r = 2 * p, found.C.shape[1]
    if not (R_y.shape[0] == 1 and R_w.shape[0] == 1 and picks_all_in_order(R_y[0], virtual_y)
            and picks_all_in_order(R_w[0], virtual_w)):
        return
    lanes, space = state_in_lanes(state), space_in_lanes(n, 0, p, nu, r > 0)
    size = WIDTH * (1 + aba_derivatives_size(model) + 4 * n * n)
    scratch = scratch_in_lanes(model, size, n, p, nu, outputs, found.C)
    C, D = matrix_of(r, x), matrix_of(r, nu)
    A_rows, B_rows = found.A.reshape(count, x * x), found.B.reshape(count, x * nu)
    C_rows, D_rows = found.C.reshape(count, r * x), found.D.reshape(count, r * nu)
    lines_A, lines_B = lines_for(A_rows), lines_for(B_rows)
    for b in range(begin, end, WIDTH):
        gather_state(state, b, end, lanes)
        scratch.work[0] = WIDTH
        world = take_vector(scratch.work, WIDTH * aba_derivatives_size(model))
        if not linearize_tree(LANES, model, lanes, actuators, world, scratch.work, space):
            continue
        scatter_matrix(space.A, b, end, A_rows, lines_A)
        scatter_matrix(space.B, b, end, B_rows, lines_B)
        scatter(space.f0, b, end, found.f0)
        scatter(space.a, b, end, found.a)
        for k in range(b, min(b + WIDTH, end)):
            found.rank[k], found.closure[k], found.condition[k], found.condition_y[k] = 0, 0.0, 1.0, 1.0
            if len(found.K) > 0:
                put_identity(found.K[k])
            if len(found.S) > 0:
                put_identity(found.S[k])
            if len(found.drift) > 0:
                found.drift[k] = 0.0
        if r > 0:
            put_tree_directions(LANES, space)
            put_outputs_of(LANES, model, lanes, request, space, scratch, C, D)
            scatter(C, b, end, C_rows)
            scatter(D, b, end, D_rows)


# ---- one state at a time


REQUEST = group(Request, COORDINATES, MATRIX, types.int64[:, ::1], group(Tolerances, *[types.float64] * 2))
"""Its type for one state."""


@late(MODEL, STATE, REQUEST, SPACE, group(Scratch, VECTOR, MATRIX, MATRIX, VECTOR), MATRIX, MATRIX)
def put_outputs_at_one_state(model, state, request, space, scratch, C, D):
    put_outputs_of(SCALAR, model, state, request, space, scratch, C, D)


@kernel_in_place
def linearize_row(b, model, states, request, scratch, room, found):
    """Row b of `found`; returns False and leaves rank -1 if that state has no state space. `room` is a `LocalSpace`."""
    (R_y, virtual_y, R_w, virtual_w), actuators, outputs, tolerances = request
    chosen = Coordinates(
        R_y[min(b, R_y.shape[0] - 1)], virtual_y, R_w[min(b, R_w.shape[0] - 1)], virtual_w)
    state = State(states.q[b], states.v[b], states.tau[b], states.f_ext[b])
    space = LocalSpace(
        found.A[b], found.B[b], found.f0[b], room.w, found.a[b], found.lam[b], room.residual, room.psi, room.G, room.M,
        room.N, room.X, room.da, room.balance)
    status = linearize_in_place(model, state, chosen, actuators, tolerances.rank, scratch.work, space)
    status_w, found.rank[b], found.condition[b], status_y, _, found.condition_y[b] = status
    found.closure[b] = largest_size(space.residual)
    # is the state on the constraint manifold, and its velocity tangent to it?
    consistent = (found.closure[b] <= tolerances.closure
                  and largest_size(space.psi) <= tolerances.closure * max(1.0, largest_size(state.v)))
    if status_w != OK or status_y != OK or not consistent:
        found.rank[b] = -1
        return False
    p_y = virtual_y.size
    for i in range(state.v.size):
        drift = state.v[i]
        if len(found.K) > 0:
            for s in range(p_y):
                found.K[b, i, s] = space.N[i, s]
        for s in range(virtual_w.size):
            drift -= space.X[i, p_y + s] * space.w[s]
            if len(found.S) > 0:
                found.S[b, i, s] = space.X[i, p_y + s]
        if len(found.drift) > 0:
            found.drift[b, i] = drift
    if outputs.shape[0] > 0:
        asked = Request(chosen, actuators, outputs, tolerances)
        put_outputs_at_one_state(model, state, asked, space, scratch, found.C[b], found.D[b])
    return True


@batch
def linearize_states(begin, end, model, states, request, found):
    """The local state space at each row whose rank is still unknown, -1.

    R_y and R_w (choices, p, nv) hold one choice of coordinates for all states, or one for each; `outputs` has the parts
    of an `OutputPlan`. The rank of the first state that has no state space stays -1; the states after it in its block
    are not treated.
    """
    coordinates, actuators, outputs, _ = request
    n, m, nu, given = model.ints[NV], model.ints[N_ROWS], actuators.shape[1], model.floats
    p_y, p_w, read = coordinates.virtual_y.size, coordinates.virtual_w.size, int(outputs.shape[0] > 0)
    x, u, size = padded(p_y + p_w), padded(p_y + p_w + nu), linearize_size(model, p_y, p_w, nu)
    of_outputs = read * output_size(SCALAR, model, found.C.shape[1], p_y + p_w, nu)
    room = np.empty(size + given.size + p_w + 2 * m + m * n + n * (padded(n) + 2 * x + 2 * u) + of_outputs
                    + read * (p_w + n) * u + 16 * WIDTH)  # each array rounded up to whole registers
    room[0] = first_place(room)
    model = PackedModel(model.ints, take_vector(room, given.size))
    # results of moving targets and custom rows; not by a slice, whose error handling compiles in 1.5 s
    copy_to(given, model.floats)
    none, empty = take_vector(room, 0), take_matrix(room, 0, 0)
    space = LocalSpace(
        empty, empty, none, take_vector(room, p_w), none, none, take_vector(room, m), take_vector(room, m),
        take_matrix(room, m, n), take_matrix(room, n, padded(n)), take_matrix(room, n, x), take_matrix(room, n, x),
        take_matrix(room, n, u), take_matrix(room, n, u))
    lower, moved = take_matrix(room, read * p_w, u), take_matrix(room, read * n, u)
    outputs_room = take_vector(room, of_outputs)
    scratch = Scratch(room[int(room[0]):], lower, moved, outputs_room)  # a slice, which keeps a reference to `room`
    for b in range(begin, end):
        if found.rank[b] < 0 and not linearize_row(b, model, states, request, scratch, space, found):
            return
