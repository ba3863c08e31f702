"""Exact local state space of any mechanism, by implicit differentiation in the null space (Spencer 2004, 4.2 and 4.3).

State x = (y, w): independent coordinates y, as many as the holonomic constraints g(q, t) = 0 leave, and independent
velocities w, as many as the velocity constraints G v = b(q, t) leave; y and w are read by R_y and R_w. A variation of y
moves q along N and v along Delta; one of w moves v along S:

    [G_h; R_y] N = (0, 1)      [G_1; R_w] Delta = -(d(G v - b)/dq, d(R_w v)/dq) N      [G_1; R_w] S = (0, 1)

If all constraints are holonomic, N = S = K. Differentiating ID(q, v, a) + G^T lambda = tau and phi = G a + Gdot v -
bdot = 0 (and the rate rho of w) along (N, Delta) and (0, S) gives, with D = [D_y D_w] the variation of the
accelerations that the constraints force at wdot = 0 and X = [Delta S],

    [G_1; R_w] D = -(dphi/dq [N 0] + dphi/dv X, drho/dq [N 0] + drho/dv X)

    S^T M S [A_wy A_ww] = -S^T (M D + (dID/dq + d(G^T lambda)/dq) [N 0] + dID/dv X)           S^T M S B_w = S^T S_u

The derivative of the multipliers drops out: S^T G^T = 0. No matrix of derivatives is formed either: the terms in
parentheses are the variations of inverse dynamics and of the constraints along the columns of ([N 0], X, D), one
outward and one inward pass for as many columns as a register holds (`liedyn.mechanics.tree.tangent_recursion`), with
the constraints' wrenches acting on the links. Directions of different legs share columns, and some of a floating base
need none (`liedyn.linear.column_sharing`). The upper rows are those of ydot = R_y v,

    A_yy = R_y (Delta - ad_v N) + d(R_y v)/dq N        A_yw = R_y S        B_y = 0

with ad_v joint by joint: zero unless a ball or free joint is among the coordinates (its tangent turns with it). If y
and w are the same coordinates, these are -R ad_v N and 1. Time is held constant: `Robot.at` sets it.
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.choice import (
    GIVEN, PICKED, SPANNED, copy_columns, given_motions, given_rates, picked_motions, picked_rates, position_null_space,
    reads_cuts, same_choice, spanned_motions, spanned_rates,
)
from liedyn.linear.directions import Known, directions_size, vary_directions
from liedyn.linear.lower_rows import complete_derivatives, put_lower_rows, put_upper_rows
from liedyn.linear.open_tree import linearize_unconstrained, picks_all_in_order
from liedyn.linear.space import COORDINATES, SPACE, Chosen, Coordinates, LocalSpace
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import clear, padded, padded_for
from liedyn.machine.simd.lanes import SCALAR, WIDTH, load, store, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows, reader_rows
from liedyn.mechanics.constraints.elimination import (
    cluster_count, dependent_dofs, eliminate, elimination_size, put_row_order, solved_cluster,
)
from liedyn.mechanics.constraints.families.cut import cut_bias_kernel, cut_velocity_kernel
from liedyn.mechanics.constraints.free_velocities import LEFT, TANGENT, is_left, put_left, put_tangent
from liedyn.mechanics.constraints.reduced import ForceBalance, constrained_motion, multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import (
    complete_terms, eliminate_rows, is_sparse, right_inverse_of_rows,
)
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_INERTIA, WRONG_COUNT
from liedyn.mechanics.dynamics.picked import picked_condition, picks
from liedyn.mechanics.dynamics.state import STATE, State, StateTerms
from liedyn.mechanics.dynamics.terms import put_state_terms, terms_size
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives_size
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL

STATUS = types.Tuple((types.int64, types.int64, types.float64) * 2)
"""Type of the status of a local state space, for `liedyn.machine.compiled.jit.late`."""


@inline
def local_size(lane, model, p_y, p_w, nu):
    """Size of the workspace of `put_local_space`."""
    n, one = model.ints[NV], padded_for(lane, p_w + 1)
    columns = padded_for(lane, p_y + p_w + nu)
    solved = (p_w + 1) * padded_for(lane, n) + 2 * p_w * one + multipliers_size(lane, model) + 2 * p_w * columns
    upper = (n + model.ints[N_VIRTUAL]) * padded_for(lane, p_y + p_w)
    return WIDTH * 16 + solved + upper + directions_size(lane, model, p_y, p_w)


@kernel_in_place
def linearize_size(model, p_y, p_w, nu):
    """Size of the workspace of `linearize_in_place`: the sum of all arrays, in the order in which the kernel takes
    them.
    """
    n, m, nz, w = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], padded(model.ints[NV])
    world = max(terms_size(model), aba_derivatives_size(model))
    state = elimination_size(SCALAR, model) + world + n + 2 * m + 2 * nz + nz * n + w
    given = 2 * (m + n) * (w + 2) + 4 * w + 2 * n * w + m * n
    constrained = given + local_size(SCALAR, model, p_y, p_w, nu)
    return WIDTH * 24 + state + max(4 * n * n, constrained)  # each array rounded up to whole registers


@inline
def put_local_space(lane, model, state, chosen, known, work, space):
    """All of `space` from X = S and, if y and w differ, N. Returns False if some motion has no inertia."""
    coordinates = chosen.coordinates
    p_y, p_w = coordinates.virtual_y.size, coordinates.virtual_w.size
    inertia = take_matrix(work, p_w, padded_for(lane, p_w + 1))
    balance = ForceBalance(space.M, known.h, state.tau)
    if not constrained_motion(lane, model, known.e, balance, work, inertia, (space.a, space.lam)):
        return False
    if chosen.way == PICKED:
        picked_rates(lane, model, known.e, coordinates.R_w, state.v, p_y, space)
    elif chosen.way == SPANNED:
        spanned_rates(lane, model, known.e, coordinates.R_w, state.v, p_y, space)
    else:
        given_rates(coordinates, known, state.v, space)
    if chosen.same:
        copy_columns(lane, space.X, p_y, p_y, space.N)
    vary_directions(lane, model, state, chosen, known, work, space)
    put_lower_rows(lane, model, chosen, known, inertia, work, space)
    put_upper_rows(lane, model, state.v, chosen, known, work, space)
    return True


@inline
def take_known(model, coordinates, actuators, work):
    """Room for what is known of a state, in its workspace."""
    n, nz = model.ints[NV], model.ints[N_VIRTUAL]
    e = take_vector(work, elimination_size(SCALAR, model))
    world = take_vector(work, max(terms_size(model), aba_derivatives_size(model)))
    return Known(world, e, take_matrix(work, nz, n), take_vector(work, nz), take_vector(work, nz),
                 take_vector(work, n), actuators,
                 take_matrix(work, nz, padded(coordinates.virtual_y.size + coordinates.virtual_w.size)))


@inline
def put_equations(model, state, coordinates, gamma, known, space):
    """Terms of the equations of motion, and what is known of cut joints if the coordinates read them."""
    terms = StateTerms(space.M, known.h, space.G, space.residual, space.psi, gamma)
    put_state_terms(model, state.q, state.v, state.f_ext, known.world, terms)
    if reads_cuts(coordinates.virtual_y) or reads_cuts(coordinates.virtual_w):
        reader_rows(SCALAR, model, known.world, known.E)
        cut_bias_kernel(model, known.world, True, known.rho)
        cut_velocity_kernel(SCALAR, model, known.world, True, known.z)


@inline
def eliminate_chosen(model, coordinates, gamma, choosable, tolerance, known, space):
    """The elimination that leaves the chosen velocities independent, if there is one: (way, rank).

    For the choices LEFT and TANGENT the rows that the elimination leaves are written to R_w and R_y.
    """
    R, p = coordinates.R_w, coordinates.virtual_w.size
    leave, tangent = is_left(coordinates.virtual_w, LEFT), is_left(coordinates.virtual_w, TANGENT)
    for j in range(model.ints[NV]):
        choosable[j] = 1.0
    if not (leave or tangent or picks(model, R, coordinates.virtual_w, choosable)):
        return GIVEN, 0
    rank, _, complete = eliminate_rows(model, space.M, space.G, gamma, choosable, tolerance, known.e)
    if not complete or rank + p != model.ints[NV]:
        return GIVEN, rank
    if leave:
        put_left(model, known.e, R)
    if tangent:
        put_tangent(model, known.e, R)
    for k in range(R.size if leave or tangent else 0):
        store(SCALAR, coordinates.R_y, k, load(SCALAR, R, k))
    return SPANNED if tangent else PICKED, rank


@late(MODEL, STATE, COORDINATES, MATRIX, types.float64, VECTOR, SPACE, returns=STATUS)
def linearize_constrained(model, state, coordinates, actuators, tolerance, work, space):
    """The local state space at one state; arguments as for `linearize_kernel`, results in `space`.

    The elimination's part of the workspace begins at its `first_place`. For the choices LEFT and TANGENT
    (`liedyn.mechanics.constraints.free_velocities`) y and w are the same coordinates; their rows are written to R_w and
    R_y here. Returns (status, rank, condition) of the velocities, and the same of the coordinates.
    """
    R_y, virtual_y, R_w, virtual_w = coordinates
    p_y, m = virtual_y.size, model.ints[N_ROWS]
    work[0] = first_place(work)
    known = take_known(model, coordinates, actuators, work)
    gamma, mask = take_vector(work, m), take_vector(work, m)
    choosable = take_vector(work, padded(model.ints[NV]))
    put_equations(model, state, coordinates, gamma, known, space)

    # the elimination (which velocities depend on which), and S
    clear(space.X)
    way, rank = eliminate_chosen(model, coordinates, gamma, choosable, tolerance, known, space)
    if way == GIVEN and (is_left(virtual_w, LEFT) or is_left(virtual_w, TANGENT)):
        return WRONG_COUNT, rank, np.inf, OK, rank, np.inf
    if way == SPANNED:
        spanned_motions(SCALAR, R_w, p_y, space.X)
    elif way == PICKED:
        picked_motions(SCALAR, model, known.e, R_w, p_y, space.X)
    if way != GIVEN:  # a tangent space is better conditioned than the coordinates that pivoting chooses
        status, condition = OK, picked_condition(SCALAR, model, known.e, space.G, virtual_w.size)
    else:
        if is_long(model):
            complete_terms(model, space.M, space.G)
        status, rank, condition = given_motions(model, known.E, coordinates, tolerance, work, space)
        if status != OK:
            return status, rank, condition, OK, rank, condition
        for j in range(model.ints[NV]):
            choosable[j] = 1.0
        eliminate(model, space.G, gamma, choosable, tolerance, known.e)

    # the coordinates, and N if it differs from S
    holonomic_rows(model, mask)
    same = same_choice(space.G, mask, R_y, virtual_y, R_w, virtual_w)
    status_y, rank_y, condition_y = OK, rank, condition
    if not same:
        if is_long(model):
            complete_terms(model, space.M, space.G)
        status_y, rank_y, condition_y = position_null_space(model, mask, known.E, coordinates, tolerance, work, space)
    if status_y == OK and not put_local_space(
            SCALAR, model, state, Chosen(coordinates, way, same), known, work, space):
        status = SINGULAR_INERTIA
    return status, rank, condition, status_y, rank_y, condition_y


@kernel_in_place
def linearize_in_place(model, state, coordinates, actuators, tolerance, work, space):
    """`linearize_constrained`, or the cheaper `linearize_unconstrained` for a free tree in its own coordinates."""
    R_y, virtual_y, R_w, virtual_w = coordinates
    if space.lam.size == 0 and picks_all_in_order(R_w, virtual_w) and picks_all_in_order(R_y, virtual_y):
        return linearize_unconstrained(model, state, coordinates, actuators, tolerance, work, space)
    return linearize_constrained(model, state, coordinates, actuators, tolerance, work, space)


@kernel_in_place
def put_right_inverse(model, e, G_sharp):
    """G_1^#: as many columns of G_sharp as there are independent rows, in their order (`put_row_order`)."""
    (dependent, columns), k = dependent_dofs(model, e), 0
    G_sharp[:] = 0.0
    if is_sparse(model, e):
        right_inverse_of_rows(model, e, G_sharp)
        return
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(SCALAR, model, e, c)
        for l in range(rank):
            for i in range(rank):
                G_sharp[dependent[first + i], k] = table[i, columns[first + l]]
            k += 1


@inline_array
def new_space(model, p_y, p_w, nu):
    """Arrays for the local state space of one state; zero where kernels do not write all entries."""
    n, m, x = model.ints[NV], model.ints[N_ROWS], p_y + p_w
    return LocalSpace(
        np.zeros((x, x)), np.zeros((x, nu)), np.zeros(x), np.zeros(p_w), np.zeros(n), np.zeros(m), np.zeros(m),
        np.zeros(m), np.zeros((m, n)), np.zeros((n, padded(n))), np.empty((n, padded(x))), np.empty((n, padded(x))),
        np.empty((n, padded(x + nu))), np.empty((n, padded(x + nu))))


Local = namedtuple("Local", "A B f0 w a lam residual psi rows G G_sharp N X da balance")
"""Results of `linearize_kernel`; rows of G come in the order `rows`, the independent ones first."""


@kernel
def linearize_kernel(model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance):
    """The local state space at one state.

    R and `virtual` as for `nullspace_kernel`, for the coordinates y and the velocities w; `actuators` is tau = S_u u,
    (n, nu). Returns (status, rank, condition) of the velocities, the same of the coordinates, and a `Local`: A, B, f0;
    w, a and lam; residual and psi (m); the order of the rows, G (m, n) and a right inverse of G_1 (n, m; as many
    columns are used as G_1 has rows); N (n, p_y), X = [Delta S] (n, p_y + p_w); da, the derivative of a by (y, w, u);
    balance = G^T dlambda. The last four are padded.
    """
    n, m = model.ints[NV], model.ints[N_ROWS]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    space, columns = new_space(model, p_y, p_w, nu), padded(p_y + p_w + nu)
    rows, G_sharp, work = np.zeros(m, np.int64), np.empty((n, m)), np.empty(linearize_size(model, p_y, p_w, nu))
    found = linearize_in_place(model, State(q, v, tau, f_ext), Coordinates(R_y, virtual_y, R_w, virtual_w), actuators,
                               tolerance, work, space)
    if found[0] == OK and found[3] == OK:
        complete_derivatives(SCALAR, p_y, actuators, space, np.empty((p_w, columns)), np.empty((n, columns)))
        if m > 0:
            e = work[first_place(work):]
            put_row_order(model, e, rows)
            put_right_inverse(model, e, G_sharp)
    return found[:3], found[3:], Local(
        space.A, space.B, space.f0, space.w, space.a, space.lam, space.residual, space.psi, rows, space.G, G_sharp,
        space.N, space.X, space.da, space.balance)
