"""Exact local state space of any mechanism, by implicit differentiation in the null space (Spencer 2004, 4.2 and 4.3).

State x = (y, w): independent coordinates, those that all holonomic constraints g(q, t) = 0 leave, and independent
velocities, those that all velocity constraints G v = b(q, t) leave; R_y and R_w read them. A variation of y moves q
along N and v along Delta, one of w moves v along S:

    [G_h; R_y] N = (0, 1)      [G_1; R_w] Delta = -(d(G v - b)/dq, d(R_w v)/dq) N      [G_1; R_w] S = (0, 1)

Where all constraints are holonomic, N = S = K. Differentiating ID(q, v, a) + G^T lambda = tau and phi = G a + Gdot v -
bdot = 0 (and likewise the reader rho of wdot) along (N, Delta) and (0, S) leaves, with D = [D_y D_w] the accelerations
that the constraints force on their own and X = [Delta S],

    [G_1; R_w] D = -(dphi/dq [N 0] + dphi/dv X, drho/dq [N 0] + drho/dv X)

    S^T M S [A_wy A_ww] = -S^T (M D + (dID/dq + d(G^T lambda)/dq) [N 0] + dID/dv X)           S^T M S B_w = S^T S_u

The multipliers' own derivative never appears: S^T G^T = 0. No matrix of derivatives is formed either: what stands in
parentheses is the variation of inverse dynamics and of the constraints along the columns of ([N 0], X, D), one pass out
and one pass in for as many columns as a register holds (`liedyn.tree.variations`), with the constraints' wrenches as
wrenches on the links. Directions of different legs share columns, and some of a floating base need none
(`liedyn.linearization.sharing`). The upper rows are those of ydot = R_y v,

    A_yy = R_y (Delta - ad_v N) + d(R_y v)/dq N        A_yw = R_y S        B_y = 0

with ad_v joint by joint: zero unless a ball or free joint is among the coordinates (its tangent turns with it). Where
y and w are the same coordinates, these are -R ad_v N and 1. Time is held: `Robot.at` sets it.
"""
from collections import namedtuple

import numpy as np

from liedyn.constraints.families.cut import (
    CUT, cut_bias_kernel, cut_velocity_kernel, vary_cut_accelerations, vary_cut_velocities,
)
from liedyn.constraints.elimination import (
    DEPENDENT, INDEPENDENT, ROW, cluster_count, dependence, dependent_dofs, eliminate, elimination_size,
    independent_dofs, kept, minimum_norm_multipliers, numbering, reduced_motion, solved_cluster,
    unbalanced,
)
from liedyn.constraints.left_open import LEFT, TANGENT, is_left, put_left, put_tangent
from liedyn.constraints.records import loop_count
from liedyn.constraints.rows import (
    clear_block, holonomic_rows, push_constraints, reader_rows, vary_acceleration_rows, vary_constraint_wrenches,
    vary_other_forces, vary_velocity_rows,
)
from liedyn.dynamics.nullspace import OK, SINGULAR_INERTIA, WRONG_COUNT
from liedyn.dynamics.picked import picked_condition, picks
from liedyn.dynamics.terms import state_terms, terms_size
from liedyn.exchange import (
    add_product, add_row, at, clear, columns_of, element, padded, put_element, solve_rows_for,
)
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, splat, store, take_integers, take_matrix, take_vector,
)
from liedyn.lie.registers import at_once, copy_row, first_place, is_zero, load_at_once, put_row, store_at_once
from liedyn.linearization.choice import (
    GIVEN, PICKED, SPANNED, along, copy_columns, given_motions, hold_choice, hold_span, into_choice, into_picked,
    into_span, picked_motions, picked_rates, position_null_space, put_picked, reads_cuts, same_choice, spanned_motions,
    spanned_rates,
)
from liedyn.linearization.open_tree import linearize_unconstrained, picks_all_in_order
from liedyn.linearization.sharing import (
    gather_at_one_state, may_share, share_at_one_state, share_nothing, shares_size, spread_at_one_state,
)
from liedyn.linearization.upper_rows import put_upper_rows
from liedyn.model.packed import N_LOOPS, N_ROWS, N_VIRTUAL, NV
from liedyn.tree.aba_derivatives import aba_derivatives_size
from liedyn.tree.records import link_count
from liedyn.tree.variations import (
    BODY, VARIATION, gather_wrenches, put_bodies, vary_accelerations, vary_forces, vary_velocities, vary_wrenches,
)


@kernel_in_place
def linearize_size(model, p_y, p_w, nu):
    """Numbers in the workspace of `linearize_in_place`: enough for all that is taken, in the order of the kernel."""
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    w, x, columns, one = padded(n), padded(p_y + p_w), padded(p_y + p_w + nu), padded(p_w + 1)
    world = max(terms_size(model), aba_derivatives_size(model))
    state = elimination_size(SCALAR, model) + world + n * w + n + m + 2 * nz + nz * n + 2 * (n * x + 2 * nz * x)
    tree = 4 * n * n
    shared = shares_size(model, p_w) + p_w + 4 * n * x
    given = 2 * (m + n) * (w + 2) + 4 * w + 2 * n * w + m * n + m
    solved = padded(n) + p_w * w + 2 * p_w * one + w + m * padded(m + 1) + p_w * padded(p_w)
    variations = (BODY + VARIATION * WIDTH) * links + x + (m + nz) * x + 2 * p_w * columns + CUT * model.ints[N_LOOPS]
    return WIDTH * 40 + state + max(tree, given + solved + variations + shared)  # as many arrays fill whole registers


@inline
def put_lower_rows(lane, lower, p_y, p_w, A, B):
    """The rows of wdot in A and B, those of ydot in B."""
    nu, x, columns = columns_of(lane, B), columns_of(lane, A), columns_of(lane, lower)
    for k in range(p_y):
        put_row(lane, B, nu * k, nu, splat(LANES, 0.0))
    for s in range(p_w):
        copy_row(lane, lower, columns * s, x, A, x * (p_y + s))
        copy_row(lane, lower, columns * s + x, nu, B, nu * (p_y + s))


@inline
def forced(lane, model, e, rates, scale, b, out):
    """out[:, block b] -= what gives the independent rows these rates, in the dependent velocities; times a row."""
    dependent, columns = dependent_dofs(model, e)
    rows = integers_in(e, numbering(model)[2], rates.shape[0])
    width, to = rates.shape[1] // WIDTH, out.shape[1] // WIDTH
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(lane, model, e, c)
        row = kept(e, c, ROW)
        for k in range(rank):
            total = splat(LANES, 0.0)
            for l in range(rank):
                x = element(lane, table, k, integer(columns, first + l))
                total = total + x * load(LANES, rates, width * integer(rows, row + l) + b)
            i = to * integer(dependent, first + k) + b
            store(LANES, out, i, load(LANES, out, i) - scale * total)


@inline
def vary_state(model, q, v, a, lam, p_y, virtual_y, R_w, virtual_w, way, E, e, world, bodies, cuts,
               variations, of_y, rates, virtual_rates, virtual_upper, shares, N, X, D, out, balance, b):
    """Block b of Delta in X, of D, and of out = -(M D + d(ID + G^T lambda)/dq [N 0] + dID/dv X).

    `of_y` is one in the columns of y; rates (m rows) and virtual_rates (nz rows) are scratch, all padded;
    `virtual_upper` receives the variations of the virtual velocities, if y reads any. Where directions share columns,
    the first p_y are those of y, and `balance` receives what is handed over (`liedyn.tree.shared_columns`).
    """
    reads_w, every, displaced = reads_cuts(virtual_w), splat(LANES, 1.0), b * WIDTH < p_y
    if displaced:  # Delta
        vary_velocities(SCALAR, model, world, N, X, b, variations)
        vary_velocity_rows(SCALAR, model, q, v, a, world, cuts, variations, N, b, rates)
        forced(SCALAR, model, e, rates, load(LANES, of_y, b), b, X)
        if reads_w:
            vary_cut_velocities(SCALAR, model, world, cuts, variations, True, b, virtual_rates)
        if way == SPANNED:
            hold_span(model, e, R_w, load(LANES, of_y, b), b, X)
        elif way == GIVEN:
            hold_choice(R_w, virtual_w, E, virtual_rates, X, p_y, load(LANES, of_y, b), b, X)
    vary_accelerations(SCALAR, model, world, displaced, X, b, variations)
    if reads_cuts(virtual_y):
        vary_cut_velocities(SCALAR, model, world, cuts, variations, True, b, virtual_upper)
    vary_acceleration_rows(SCALAR, model, q, v, a, world, cuts, variations, N, X, b, rates)
    clear_block(D, b)
    forced(SCALAR, model, e, rates, every, b, D)
    if reads_w:
        vary_cut_accelerations(SCALAR, model, world, cuts, variations, True, b, virtual_rates)
    if way == SPANNED:
        hold_span(model, e, R_w, every, b, D)
    elif way == GIVEN:
        hold_choice(R_w, virtual_w, E, virtual_rates, X, p_y, every, b, D)
    vary_wrenches(SCALAR, model, world, bodies, D, b, variations)
    if displaced:
        vary_constraint_wrenches(SCALAR, model, world, cuts, lam, b, shares, variations, balance)
    vary_forces(SCALAR, model, q, world, bodies, displaced, N, X, D, b, shares, variations, out, balance)
    vary_other_forces(model, q, lam, N, b, out)


@inline
def actuators_at_once(lane, actuators, j, i):
    """Row j of the matrix of actuators from column i on, a register of it; in lanes, where all states have it."""
    nu = actuators.shape[1]
    if at_once(lane) == 1:
        return splat(LANES, at(actuators, j, i))
    return load_at_once(SCALAR, actuators, nu * j + i, nu - i)


@inline
def reduce_balance(lane, model, e, balance, blocks, actuators, inputs, lower):
    """lower = K^T [balance, S_u], the inputs from column `inputs` on, for the elimination's own K."""
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    p, nu = lower.shape[0], actuators.shape[1]
    slopes, width, to = dependence(lane, model, e, p)[0], balance.shape[1] // WIDTH, lower.shape[1] // WIDTH
    clear(lower)
    for c in range(cluster_count(model)):
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            for b in range(blocks):
                total = load(LANES, balance, width * integer(independent, s) + b)
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x = element(lane, slopes, k, s)
                    total = total + x * load(LANES, balance, width * integer(dependent, k) + b)
                store(LANES, lower, to * s + b, total)
            for i in range(inputs, min(at_once(lane) * blocks, columns_of(lane, lower))):
                put_element(lane, lower, s, i, 0.0)
            for i in range(0, nu, at_once(lane)):
                total_u = actuators_at_once(lane, actuators, integer(independent, s), i)
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x = element(lane, slopes, k, s)
                    total_u = total_u + x * actuators_at_once(lane, actuators, integer(dependent, k), i)
                store_at_once(lane, lower, columns_of(lane, lower) * s + inputs + i, nu - i, total_u)


@kernel_in_place
def linearize_constrained(model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work,
                          A, B, f0, w, a, lam, residual, psi, G, M, N, X, D, balance):
    """The local state space at one state; arguments as for `linearize_kernel`, results as it returns them.

    M, N = [N 0], X = [Delta S], D and balance are padded; D and balance are those before wdot moves
    (`complete_derivatives`). The elimination's part of the workspace begins at its `first_place`. Coordinates that are
    LEFT, or the TANGENT space (`liedyn.constraints.left_open`), are those of the velocities, for both of which R_w and
    R_y are written here. Returns (status, rank, condition) of the velocities, and the same of the coordinates.
    """
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    p_y, p_w, nu, x = virtual_y.size, virtual_w.size, actuators.shape[1], padded(virtual_y.size + virtual_w.size)
    work[0] = first_place(work)
    e = take_vector(work, elimination_size(SCALAR, model))
    world = take_vector(work, max(terms_size(model), aba_derivatives_size(model)))
    h, gamma, rho, z = take_vector(work, n), take_vector(work, m), take_vector(work, nz), take_vector(work, nz)
    E, upper = take_matrix(work, nz, n), take_matrix(work, n, x)
    virtual_upper, turned = take_matrix(work, nz, x), take_matrix(work, nz, x)
    # the constraints: which velocities depend on which
    state_terms(model, q, v, f_ext, world, M, h, G, gamma, residual, psi)
    if reads_cuts(virtual_y) or reads_cuts(virtual_w):
        reader_rows(SCALAR, model, world, E)
        cut_bias_kernel(model, world, True, rho)
        cut_velocity_kernel(SCALAR, model, world, True, z)
    choosable = take_vector(work, padded(n))
    clear(X)
    left, tangent = is_left(virtual_w, LEFT), is_left(virtual_w, TANGENT)
    for j in range(n):
        choosable[j] = 1.0
    way = PICKED if left or tangent or picks(model, R_w, virtual_w, choosable) else GIVEN
    if way == PICKED:
        rank, _, complete = eliminate(model, G, gamma, choosable, tolerance, e)
        if not complete or rank + p_w != n:
            way = GIVEN
    if way == GIVEN and (left or tangent):
        return WRONG_COUNT, rank, np.inf, OK, rank, np.inf
    if left:
        put_left(model, e, R_w)
    if tangent:
        way = SPANNED
        put_tangent(model, e, R_w)
        spanned_motions(R_w, p_y, X)
    for k in range(R_w.size if left or tangent else 0):
        store(SCALAR, R_y, k, load(SCALAR, R_w, k))
    if way != GIVEN:  # a tangent space is better than the coordinates that are left
        status, condition = OK, picked_condition(SCALAR, model, e, G, p_w)
    if way == PICKED:
        picked_motions(SCALAR, model, e, R_w, p_y, X)
    elif way == GIVEN:
        status, rank, condition = given_motions(model, G, E, R_w, virtual_w, tolerance, work, p_y, X)
        if status != OK:
            return status, rank, condition, OK, rank, condition
        for j in range(n):
            choosable[j] = 1.0
        eliminate(model, G, gamma, choosable, tolerance, e)

    # the state: accelerations and multipliers
    KM, left = take_matrix(work, p_w, padded(n)), take_vector(work, padded(n))
    reduced, inertia = take_matrix(work, p_w, padded(p_w + 1)), take_matrix(work, p_w, padded(p_w + 1))
    if not reduced_motion(SCALAR, model, e, M, h, tau, KM, reduced, inertia, a):
        return SINGULAR_INERTIA, rank, condition, OK, rank, condition
    unbalanced(SCALAR, M, h, tau, a, left)
    minimum_norm_multipliers(SCALAR, model, e, left, take_vector(work, m * padded(m + 1)), lam)
    if way == PICKED:
        picked_rates(model, e, R_w, v, a, p_y, w, f0)
    elif way == SPANNED:
        spanned_rates(model, e, R_w, v, a, p_y, w, f0)
    for s in range(p_w if way == GIVEN else 0):
        w[s] = z[virtual_w[s]] if virtual_w[s] >= 0 else along(R_w, virtual_w, E, s, v)
        f0[p_y + s] = along(R_w, virtual_w, E, s, a) + (rho[virtual_w[s]] if virtual_w[s] >= 0 else 0.0)

    # the directions: [N 0] for coordinates, [Delta S] for velocities, Delta still to come
    mask = take_vector(work, m)
    holonomic_rows(model, mask)
    same = same_choice(G, mask, R_y, virtual_y, R_w, virtual_w)
    status_y, rank_y, condition_y = OK, rank, condition
    if same:
        copy_columns(X, p_y, p_y, N)
    else:
        status_y, rank_y, condition_y = position_null_space(model, G, mask, E, R_y, virtual_y, tolerance, work, N)
        if status_y != OK:
            return OK, rank, condition, status_y, rank_y, condition_y
    # directions that share columns
    shares, of_dofs = take_integers(work, shares_size(model, p_w)), take_integers(work, p_w)
    columns_y, columns = p_y, p_y + p_w
    share_nothing(model, shares)
    N_shared, X_shared, D_shared, balance_shared = N, X, D, balance
    if may_share(model) and way == PICKED and same and columns > WIDTH:
        put_picked(R_w, of_dofs)
        columns_y, columns = share_at_one_state(model, of_dofs, shares)
    share = columns < p_y + p_w
    if share:
        s = padded(columns)
        N_shared, X_shared, D_shared, balance_shared = (
            take_matrix(work, n, s), take_matrix(work, n, s), take_matrix(work, n, s), take_matrix(work, n, s))
        gather_at_one_state(model, v, world, of_dofs, shares, M, N, X, N_shared, X_shared, D, balance)
    of_y = take_vector(work, x)
    for c in range(x):
        of_y[c] = 1.0 if c < columns_y else 0.0

    # the variations of the state along them, a register of columns at a time
    links = link_count(model)
    bodies, variations = take_vector(work, BODY * links), take_vector(work, VARIATION * WIDTH * links)
    rates, virtual_rates = take_matrix(work, m, x), take_matrix(work, nz, x)
    cuts = take_vector(work, CUT * loop_count(model))
    put_bodies(SCALAR, model, v, a, f_ext, world, bodies)
    push_constraints(SCALAR, model, world, lam, bodies, cuts)
    gather_wrenches(SCALAR, model, bodies)
    for b in range(padded(columns) // WIDTH):
        vary_state(model, q, v, a, lam, columns_y, virtual_y, R_w, virtual_w, way, E, e, world, bodies, cuts,
                   variations, of_y, rates, virtual_rates, virtual_upper, shares, N_shared, X_shared, D_shared,
                   balance_shared, balance, b)
    if share:
        spread_at_one_state(model, shares, X_shared, D_shared, balance_shared, X, D, balance)

    # K^T M K wdot = K^T balance in the elimination's own coordinates, then in those of w
    own, lower = take_matrix(work, p_w, padded(p_y + p_w + nu)), take_matrix(work, p_w, padded(p_y + p_w + nu))
    reduce_balance(SCALAR, model, e, balance, x // WIDTH, actuators, p_y + p_w, own)
    solve_rows_for(SCALAR, inertia, own)
    if way == PICKED:
        into_picked(model, e, R_w, own, lower)
    elif way == SPANNED:
        into_span(model, e, R_w, own, lower)
    else:
        into_choice(model, e, R_w, virtual_w, E, own, lower)
    put_lower_rows(SCALAR, lower, p_y, p_w, A, B)
    put_upper_rows(SCALAR, model, v, z, R_y, virtual_y, same, E, N, X, upper, virtual_upper, turned, A, f0)
    return OK, rank, condition, status_y, rank_y, condition_y


@kernel_in_place
def linearize_in_place(model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work,
                       A, B, f0, w, a, lam, residual, psi, G, M, N, X, D, balance):
    """`linearize_constrained`, or for a tree without constraints in its own coordinates what costs less."""
    if G.shape[0] == 0 and picks_all_in_order(R_w, virtual_w) and picks_all_in_order(R_y, virtual_y):
        return linearize_unconstrained(
            model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work, A, B, f0, w, a,
            lam, residual, psi, G, M, N, X, D, balance)
    return linearize_constrained(
        model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work, A, B, f0, w, a, lam,
        residual, psi, G, M, N, X, D, balance)


@kernel_in_place
def complete_derivatives(lane, p_y, X, A, B, actuators, M, lower, moved, da, balance):
    """D becomes da = D + S wdot by (y, w, u), and balance what the constraints have to balance, S_u u - M da - ...

    `lower` (p_w rows) and `moved` (n rows) are scratch, padded as da and balance are.
    """
    p_w, x, nu, n = A.shape[0] - p_y, A.shape[0], actuators.shape[1], da.shape[0]
    clear(lower)
    clear(moved)
    for s in range(p_w):
        for c in range(x):
            put_element(lane, lower, s, c, element(lane, A, p_y + s, c))
        for c in range(nu):
            put_element(lane, lower, s, x + c, element(lane, B, p_y + s, c))
    for j in range(n):
        for s in range(p_w):
            if not is_zero(element(lane, X, j, p_y + s)):
                add_row(moved, j, element(lane, X, j, p_y + s), lower, s)
        for c in range(x, columns_of(lane, da)):
            put_element(lane, da, j, c, 0.0)
            put_element(lane, balance, j, c, at(actuators, j, c - x) if c < x + nu else 0.0)
        add_row(da, j, 1.0, moved, j)
    add_product(lane, -1.0, M, n, moved, balance)


@kernel_in_place
def put_row_order(model, e, p, rows, G_sharp):
    """Numbers of the rows, independent ones first, and G_1^# in as many columns of G_sharp."""
    dependent, columns = dependent_dofs(model, e)
    order, k, end = integers_in(e, numbering(model)[2], rows.size), 0, model.ints[NV] - p
    G_sharp[:] = 0.0
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(SCALAR, model, e, c)
        row = kept(e, c, ROW)
        for l in range(table.shape[0]):
            if l < rank:
                for i in range(rank):
                    G_sharp[dependent[first + i], k] = table[i, columns[first + l]]
                rows[k] = order[row + l]
                k += 1
            else:
                rows[end] = order[row + l]
                end += 1


Local = namedtuple("Local", "A B f0 w a lam residual psi rows G G_sharp N X da balance")
"""Results of `linearize_kernel`; rows of G come in the order `rows`, the independent ones first."""


@kernel
def linearize_kernel(model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance):
    """The local state space at one state.

    R and `virtual` as for `nullspace_kernel`, for the coordinates y and the velocities w; `actuators` is tau = S_u u,
    (n, nu). Returns (status, rank, condition) of the velocities, the same of the coordinates, and a `Local`: A, B, f0;
    w, a and lam; residual and psi (m); the order of the rows, G (m, n) and a right inverse of G_1 (n, m, as many
    columns as G_1 has rows); N (n, p_y), X = [Delta S] (n, p_y + p_w); da, the acceleration's derivative by (y, w, u);
    balance = G^T dlambda; the last four are padded.
    """
    n, m = model.ints[NV], model.ints[N_ROWS]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    x = p_y + p_w
    local = Local(
        np.zeros((x, x)), np.zeros((x, nu)), np.zeros(x), np.zeros(p_w), np.zeros(n), np.zeros(m), np.empty(m),
        np.empty(m), np.zeros(m, np.int64), np.empty((m, n)), np.empty((n, m)), np.empty((n, padded(x))),
        np.empty((n, padded(x))), np.empty((n, padded(x + nu))), np.empty((n, padded(x + nu))))
    work, M = np.empty(linearize_size(model, p_y, p_w, nu)), np.empty((n, padded(n)))
    found = linearize_in_place(
        model, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work, local.A, local.B,
        local.f0, local.w, local.a, local.lam, local.residual, local.psi, local.G, M, local.N, local.X, local.da,
        local.balance)
    if found[0] == OK and found[3] == OK:
        complete_derivatives(SCALAR, p_y, local.X, local.A, local.B, actuators, M, np.empty((p_w, padded(x + nu))),
                             np.empty((n, padded(x + nu))), local.da, local.balance)
        if m > 0:
            put_row_order(model, work[first_place(work):], p_w, local.rows, local.G_sharp)
    return found[:3], found[3:], local
