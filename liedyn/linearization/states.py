"""Linearization of many states without Python in between: results in place, one workspace for each thread."""
import numpy as np
from numba import types

from liedyn.dense import largest_size
from liedyn.dynamics.nullspace import OK
from liedyn.exchange import padded
from liedyn.jit import address_for, apart, inline, kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, take_vector
from liedyn.lie.registers import first_place
from liedyn.linearization.alike import linearize_alike, matrix_of, room_in_lanes, spaces_fit_lanes
from liedyn.linearization.local import complete_derivatives, linearize_constrained, linearize_size
from liedyn.linearization.open_tree import (
    linearize_tree, linearize_unconstrained, picks_all_in_order, put_tree_directions,
)
from liedyn.linearization.output_rows import output_size, put_outputs, read_accelerations
from liedyn.model.packed import NV, N_ROWS, PackedModel
from liedyn.tree.aba_derivatives import aba_derivatives_size
from liedyn.tree.batches import aligned, batch, gather, in_lanes, lines_for, scatter, scatter_matrix
from liedyn.tree.records import MODEL


@inline
def is_consistent(v, residual, psi, tolerance):
    """Is the state on the constraint manifold, and does its velocity stay there?"""
    return largest_size(residual) <= tolerance and largest_size(psi) <= tolerance * max(1.0, largest_size(v))


@batch
def linearize_registers(begin, end, model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, outputs,
                        closure_tolerance, rank_tolerance, A, B, C, D, f0, K, S, drift, a, lam, rank, condition,
                        condition_y, closure):
    """`linearize_states` W rows at a time, for those that depend alike (`liedyn.linearization.alike`).

    The rank of all others stays what it is: `linearize_states` can follow. It is a kernel of its own, as a single
    state should not wait for it to be compiled.
    """
    count, n, p, nu = q.shape[0], model.ints[NV], virtual_w.size, actuators.shape[1]
    x, r, choosable = 2 * p, C.shape[1], np.empty(n)
    if not spaces_fit_lanes(model, R_y, virtual_y, R_w, virtual_w, choosable):
        return
    q_w, v_w, tau_w, f_ext_w = in_lanes(q), in_lanes(v), in_lanes(tau), in_lanes(f_ext)
    space = room_in_lanes(model, p, nu)
    lower, moved, C_w, D_w = matrix_of(p, x + nu), matrix_of(n, x + nu), matrix_of(r, x), matrix_of(r, nu)
    of_outputs = aligned(output_size(LANES, model, r, x, nu) if outputs.shape[0] > 0 else 0)
    A_rows, B_rows = A.reshape(count, x * x), B.reshape(count, x * nu)
    K_rows, S_rows = K.reshape(count, n * p), S.reshape(count, n * p)
    lines_A, lines_B, lines_K = lines_for(A_rows), lines_for(B_rows), lines_for(K_rows)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(tau, b, end, tau_w)
        gather(f_ext, b, end, f_ext_w)
        if not linearize_alike(model, q_w, v_w, tau_w, f_ext_w, R_w[0], virtual_w, choosable, actuators,
                               closure_tolerance, rank_tolerance, space):
            continue
        scatter_matrix(space.A, b, end, A_rows, lines_A)
        scatter_matrix(space.B, b, end, B_rows, lines_B)
        scatter_matrix(space.K, b, end, K_rows, lines_K)
        scatter_matrix(space.K, b, end, S_rows, lines_K)
        scatter(space.f0, b, end, f0)
        scatter(space.drift, b, end, drift)
        scatter(space.a, b, end, a)
        scatter(space.lam, b, end, lam)
        for k in range(b, min(b + WIDTH, end)):
            rank[k], closure[k] = n - p, space.closure[0, k - b]
            condition[k] = condition_y[k] = space.condition[0, k - b]
        if r > 0:
            if read_accelerations(outputs):
                complete_derivatives(LANES, p, space.X, space.A, space.B, actuators, space.M, lower, moved, space.da,
                                     space.balance)
            put_outputs(LANES, model, q_w, v_w, space.a[0], space.lam[0], outputs, space.N, space.X, space.da,
                        space.balance, space.work[WIDTH:], of_outputs, C_w, D_w)
            scatter(C_w, b, end, C.reshape(count, r * x))
            scatter(D_w, b, end, D.reshape(count, r * nu))


@batch
def linearize_trees(begin, end, model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, outputs,
                    closure_tolerance, rank_tolerance, A, B, C, D, f0, K, S, drift, a, lam, rank, condition,
                    condition_y, closure):
    """`linearize_states` W rows at a time, for trees without constraints in their own coordinates."""
    count, n, p, nu = q.shape[0], model.ints[NV], virtual_w.size, actuators.shape[1]
    x, r = 2 * p, C.shape[1]
    if not (R_y.shape[0] == 1 and R_w.shape[0] == 1 and picks_all_in_order(R_y[0], virtual_y)
            and picks_all_in_order(R_w[0], virtual_w)):
        return
    q_w, v_w, tau_w, f_ext_w = in_lanes(q), in_lanes(v), in_lanes(tau), in_lanes(f_ext)
    A_w, B_w, f0_w, a_w, C_w, D_w = (
        matrix_of(x, x), matrix_of(x, nu), matrix_of(1, x), matrix_of(1, n), matrix_of(r, x), matrix_of(r, nu))
    work = aligned(WIDTH * (1 + aba_derivatives_size(model) + 4 * n * n))
    read = min(r, 1)  # what only outputs need has no place without them
    N, X, M = matrix_of(n, read * x), matrix_of(n, read * x), matrix_of(n, read * n)
    da, balance = matrix_of(n, read * (x + nu)), matrix_of(n, read * (x + nu))
    lower, moved = matrix_of(p, read * (x + nu)), matrix_of(n, read * (x + nu))
    of_outputs = aligned(output_size(LANES, model, r, x, nu) if r > 0 else 0)
    A_rows, B_rows = A.reshape(count, x * x), B.reshape(count, x * nu)
    lines_A, lines_B = lines_for(A_rows), lines_for(B_rows)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(tau, b, end, tau_w)
        gather(f_ext, b, end, f_ext_w)
        work[0] = WIDTH
        world = take_vector(work, WIDTH * aba_derivatives_size(model))
        if not linearize_tree(LANES, model, q_w, v_w, tau_w, f_ext_w, actuators, world, work, A_w, B_w, f0_w, a_w):
            continue
        scatter_matrix(A_w, b, end, A_rows, lines_A)
        scatter_matrix(B_w, b, end, B_rows, lines_B)
        scatter(f0_w, b, end, f0)
        scatter(a_w, b, end, a)
        for k in range(b, min(b + WIDTH, end)):
            rank[k], closure[k], condition[k], condition_y[k] = 0, 0.0, 1.0, 1.0
            for i in range(n):
                drift[k, i] = 0.0
                for j in range(n):
                    K[k, i, j] = S[k, i, j] = 1.0 if i == j else 0.0
        if r > 0:
            put_tree_directions(LANES, N, X, M, da, balance)
            if read_accelerations(outputs):
                complete_derivatives(LANES, p, X, A_w, B_w, actuators, M, lower, moved, da, balance)
            put_outputs(LANES, model, q_w, v_w, a_w[0], lam[0], outputs, N, X, da, balance, work[WIDTH:],
                        of_outputs, C_w, D_w)
            scatter(C_w, b, end, C.reshape(count, r * x))
            scatter(D_w, b, end, D.reshape(count, r * nu))


@kernel_in_place
def put_all_outputs(model, q, v, a, lam, outputs, actuators, A, B, M, N, X, da, balance, lower, moved, work,
                    room, C, D):
    """C and D at one state, from what `linearize_in_place` leaves; `lower`, `moved` and `room` are scratch."""
    if read_accelerations(outputs):
        complete_derivatives(SCALAR, A.shape[0] - lower.shape[0], X, A, B, actuators, M, lower, moved, da, balance)
    put_outputs(SCALAR, model, q, v, a, lam, outputs, N, X, da, balance, work[first_place(work):], room, C, D)


_VECTOR, _MATRIX = types.float64[::1], types.float64[:, ::1]
_INTEGERS, _PLAN = types.int64[::1], types.int64[:, ::1]
_ONE_STATE = (MODEL, *[_VECTOR] * 4, _MATRIX, _INTEGERS, _MATRIX, _INTEGERS, _MATRIX, types.float64, _VECTOR,
              *[_MATRIX] * 2, *[_VECTOR] * 6, *[_MATRIX] * 6)
_OUTPUTS = MODEL, *[_VECTOR] * 4, _PLAN, *[_MATRIX] * 10, *[_VECTOR] * 2, *[_MATRIX] * 2
linearize_one = apart(_ONE_STATE, types.Tuple((types.int64, types.int64, types.float64) * 2))
"""Call a kernel with the arguments of `linearize_in_place`."""
put_outputs_apart = apart(_OUTPUTS, types.none)
"""Call a kernel with the arguments of `put_all_outputs`."""


def addresses(R_y, virtual_y, R_w, virtual_w, rows, outputs):
    """Of what linearizes a mechanism with so many constraint rows at one state, and of what reads outputs, 0 if none.

    Trees in their own coordinates do not wait for the constraints to be compiled, nor other mechanisms for theirs.
    """
    all_in_order = np.eye(R_y.shape[-1])[None]
    own = (rows == 0 and np.array_equal(R_y, all_in_order) and np.array_equal(R_w, all_in_order)
           and np.all(virtual_y < 0) and np.all(virtual_w < 0))
    return (address_for(linearize_unconstrained if own else linearize_constrained, _ONE_STATE),
            address_for(put_all_outputs, _OUTPUTS) if len(outputs) else 0)


@batch
def linearize_states(begin, end, model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, outputs,
                     closure_tolerance, rank_tolerance, A, B, C, D, f0, K, S, drift, a, lam, rank, condition,
                     condition_y, closure, of_one_state, of_outputs):
    """The local state space at each row whose rank is not known yet, -1.

    `R_y` and `R_w` (choices, p, nv) hold one choice of coordinates for all states, or one for each; `outputs` the parts
    of an `OutputPlan`. `condition_y` is the condition number of the coordinates, `condition` that of the velocities.
    The first state that has no state space keeps its rank, and none behind it in its block is worked on. The last two
    arguments are `addresses`.
    """
    n, m, p_y, p_w, nu = model.ints[NV], model.ints[N_ROWS], virtual_y.size, virtual_w.size, actuators.shape[1]
    x = p_y + p_w
    model = PackedModel(model.ints, model.floats.copy())  # where moving targets and custom rows leave what they return
    work, w, residual, psi = (np.empty(linearize_size(model, p_y, p_w, nu)), np.empty(p_w), np.zeros(m), np.zeros(m))
    G, M = np.empty((m, n)), np.empty((n, padded(n)))
    N, X = np.empty((n, padded(x))), np.empty((n, padded(x)))
    da, balance = np.empty((n, padded(x + nu))), np.empty((n, padded(x + nu)))
    lower, moved = np.empty((p_w, padded(x + nu))), np.empty((n, padded(x + nu)))
    room = np.empty(output_size(SCALAR, model, C.shape[1], x, nu) if outputs.shape[0] > 0 else 0)
    for b in range(begin, end):
        if rank[b] >= 0:
            continue
        status, rank[b], condition[b], status_y, _, condition_y[b] = linearize_one(of_one_state, (
            model, q[b], v[b], tau[b], f_ext[b], R_y[min(b, R_y.shape[0] - 1)], virtual_y,
            R_w[min(b, R_w.shape[0] - 1)], virtual_w, actuators, rank_tolerance, work, A[b], B[b], f0[b], w, a[b],
            lam[b], residual, psi, G, M, N, X, da, balance))
        closure[b] = largest_size(residual)
        if status != OK or status_y != OK or not is_consistent(v[b], residual, psi, closure_tolerance):
            rank[b] = -1
            return
        for i in range(n):
            drift[b, i] = v[b, i]
            for s in range(p_y):
                K[b, i, s] = N[i, s]
            for s in range(p_w):
                S[b, i, s] = X[i, p_y + s]
                drift[b, i] -= X[i, p_y + s] * w[s]
        if outputs.shape[0] > 0:
            put_outputs_apart(of_outputs, (
                model, q[b], v[b], a[b], lam[b], outputs, actuators, A[b], B[b], M, N, X, da, balance, lower,
                moved, work, room, C[b], D[b]))
