"""Local state spaces of W states in lanes, of mechanisms of cut joints in coordinates of the tree.

What `liedyn.linearization.local` does at one state, with one decision for all on which velocities depend on which
(`liedyn.dynamics.alike`). All constraints are holonomic, and y and w the same coordinates: N = S = K, and Delta = Kdot.
A register holds one direction of W states.
"""
from collections import namedtuple

from liedyn.constraints.families.cut import (
    CUT, put_cuts, vary_cut_accelerations, vary_cut_velocities, vary_cut_wrenches,
)
from liedyn.constraints.elimination import elimination_size, minimum_norm_multipliers, reduced_motion, unbalanced
from liedyn.constraints.records import loop_count
from liedyn.constraints.rows import clear_block
from liedyn.dynamics.alike import eliminate_alike, fits_lanes, state_alike
from liedyn.dynamics.picked import picked_condition
from liedyn.dynamics.terms import terms_size
from liedyn.exchange import at, clear, clear_columns, element, padded, put_element, solve_rows_for
from liedyn.jit import inline, inline_array, kernel_in_place
from liedyn.lie.comparisons import is_positive, larger, magnitude
from liedyn.lie.lanes import LANES, WIDTH, load, splat, store, take_integers, take_matrix, take_vector
from liedyn.linearization.choice import into_picked, picked_motions, put_picked
from liedyn.linearization.local import forced, put_lower_rows, reduce_balance
from liedyn.linearization.sharing import (
    gather_columns, may_share, put_known_columns, share_columns, share_nothing, shares_size, spread_columns,
)
from liedyn.linearization.upper_rows import put_upper_rows
from liedyn.model.packed import N_ROWS, NV
from liedyn.tree.batches import aligned
from liedyn.tree.records import link_count
from liedyn.tree.variations import (
    BODY, VARIATION, gather_wrenches, put_bodies, vary_accelerations, vary_forces, vary_velocities, vary_wrenches,
)


@inline
def spaces_fit_lanes(model, R_y, virtual_y, R_w, virtual_w, choosable):
    """Are all constraints cut joints, and y and w the same coordinates of the tree at all states (`fits_lanes`)?"""
    if R_y.shape[0] != 1 or R_w.shape[0] != 1 or virtual_y.size != virtual_w.size:
        return False
    for k in range(virtual_y.size):
        if virtual_y[k] != virtual_w[k]:
            return False
        for i in range(R_y.shape[2]):
            if R_y[0, k, i] != R_w[0, k, i]:
                return False
    return fits_lanes(model, R_w[0], virtual_w, choosable)


Spaces = namedtuple("Spaces", "A B f0 K drift a lam condition closure M N X da balance work")
"""Results of `linearize_alike` in lanes, named as in `liedyn.linearization.local`, and its workspace: `closure` is the
largest residual, da and balance are those before `complete_derivatives`."""


@inline_array
def room_in_lanes(model, p, nu):
    """Arrays for `linearize_alike`, each number a register."""
    n, m, x = model.ints[NV], model.ints[N_ROWS], 2 * p
    return Spaces(
        matrix_of(x, x), matrix_of(x, nu), matrix_of(1, x), matrix_of(n, p), matrix_of(1, n), matrix_of(1, n),
        matrix_of(1, m), matrix_of(1, 1), matrix_of(1, 1), matrix_of(n, n), matrix_of(n, x), matrix_of(n, x),
        matrix_of(n, x + nu), matrix_of(n, x + nu), aligned(linearize_alike_size(model, p, nu)))


@inline_array
def matrix_of(m, n):
    """Room for a matrix of registers, in memory a multiple of W of them (`scatter`)."""
    return aligned(WIDTH * padded(m * n))[:m * n * WIDTH].reshape(m, WIDTH * n)


@kernel_in_place
def linearize_alike_size(model, p, nu):
    """Numbers in the workspace of `linearize_alike`."""
    n, m, links, x = model.ints[NV], model.ints[N_ROWS], link_count(model), 2 * p
    state = terms_size(model) + m * n + 2 * n + 4 * m + p * n + 2 * p * (p + 1) + m * (m + 1)
    variations = (BODY + VARIATION) * links + CUT * loop_count(model) + m * x + 2 * p * (x + nu) + n * x
    shared = shares_size(model, p) + p + 4 * n * x
    return WIDTH * (1 + state + variations + shared) + elimination_size(LANES, model)


@inline
def largest(x, count):
    """The largest of |x_0|, |x_1|, ... in every lane."""
    found = splat(LANES, 0.0)
    for k in range(count):
        found = larger(found, magnitude(load(LANES, x, k)))
    return found


@inline
def vary_column(model, q, lam, p, e, world, bodies, cuts, variations, rates, shares, N, X, D, out, balance, b):
    """Column b of Delta in X, of D, and of out = -(M D + d(ID + G^T lambda)/dq [N 0] + dID/dv X).

    The first p are those of y; `balance` receives what directions that share columns hand over.
    """
    every, displaced = splat(LANES, 1.0), b < p
    clear_block(rates, b)
    if displaced:  # Delta
        vary_velocities(LANES, model, world, N, X, b, variations)
        vary_cut_velocities(LANES, model, world, cuts, variations, False, b, rates)
        forced(LANES, model, e, rates, every, b, X)
    vary_accelerations(LANES, model, world, displaced, X, b, variations)
    vary_cut_accelerations(LANES, model, world, cuts, variations, False, b, rates)
    clear_block(D, b)
    forced(LANES, model, e, rates, every, b, D)
    vary_wrenches(LANES, model, world, bodies, D, b, variations)
    if displaced:
        vary_cut_wrenches(LANES, model, world, cuts, b, shares, variations, balance)
    vary_forces(LANES, model, q, world, bodies, displaced, N, X, D, b, shares, variations, out, balance)


@kernel_in_place
def linearize_alike(model, q, v, tau, f_ext, R, virtual, choosable, actuators, closure_tolerance, tolerance, space):
    """`linearize_in_place` of W states, results in `space`; False if they are to be worked on one by one.

    That is also where any state is off the manifold, or leaves it.
    """
    n, m, p, nu, work = model.ints[NV], model.ints[N_ROWS], virtual.size, actuators.shape[1], space.work
    M, N, X, D, balance = space.M, space.N, space.X, space.da, space.balance
    x = 2 * p
    work[0] = WIDTH
    e, world = take_vector(work, elimination_size(LANES, model)), take_vector(work, WIDTH * terms_size(model))
    G, h, left = take_matrix(work, m, WIDTH * n), take_vector(work, WIDTH * n), take_vector(work, WIDTH * n)
    gamma, residual, psi = (take_vector(work, WIDTH * m), take_vector(work, WIDTH * m), take_vector(work, WIDTH * m))
    state_alike(model, q, v, f_ext, world, M, h, G, gamma, residual, psi)
    store(LANES, space.closure, 0, largest(residual, m))
    slip = larger(splat(LANES, 1.0), largest(v, n)) * closure_tolerance - largest(psi, m)
    if not is_positive(closure_tolerance - largest(residual, m)) or not is_positive(slip):
        return False
    if not eliminate_alike(model, G, gamma, choosable, p, tolerance, e):
        return False
    store(LANES, space.condition, 0, picked_condition(LANES, model, e, G, p))
    clear(X)
    picked_motions(LANES, model, e, R, p, X)

    # the state: accelerations and multipliers
    KM, scratch = take_matrix(work, p, WIDTH * n), take_vector(work, WIDTH * m * (m + 1))
    reduced, inertia = take_matrix(work, p, WIDTH * (p + 1)), take_matrix(work, p, WIDTH * (p + 1))
    if not reduced_motion(LANES, model, e, M, h, tau, KM, reduced, inertia, space.a):
        return False
    unbalanced(LANES, M, h, tau, space.a, left)
    minimum_norm_multipliers(LANES, model, e, left, scratch, space.lam)

    # the directions, and the variations along them
    bodies, variations = take_vector(work, WIDTH * BODY * link_count(model)), take_vector(
        work, WIDTH * VARIATION * link_count(model))
    cuts, rates = take_vector(work, WIDTH * CUT * loop_count(model)), take_matrix(work, m, WIDTH * x)
    clear(N)
    for i in range(n):
        for s in range(p):
            put_element(LANES, N, i, s, element(LANES, X, i, p + s))
            put_element(LANES, space.K, i, s, element(LANES, X, i, p + s))
    shares, of_dofs = take_integers(work, shares_size(model, p)), take_integers(work, p)
    columns_y, columns = p, x
    share_nothing(model, shares)
    N_shared, X_shared, D_shared, balance_shared = N, X, D, balance
    if may_share(model):
        put_picked(R, of_dofs)
        columns_y, columns = share_columns(LANES, model, of_dofs, shares)
    share, s = columns < x, WIDTH * columns
    if share:
        N_shared, X_shared, D_shared, balance_shared = (
            take_matrix(work, n, s), take_matrix(work, n, s), take_matrix(work, n, s), take_matrix(work, n, s))
        gather_columns(LANES, model, shares, N, X, N_shared, X_shared)
        clear_columns(LANES, D, x)
        clear_columns(LANES, balance, x)
        put_known_columns(LANES, model, v, world, of_dofs, shares, M, balance)
    put_bodies(LANES, model, v, space.a, f_ext, world, bodies)
    put_cuts(LANES, model, world, space.lam, bodies, cuts)
    gather_wrenches(LANES, model, bodies)
    for b in range(columns):
        vary_column(model, q, space.lam, columns_y, e, world, bodies, cuts, variations, rates, shares, N_shared,
                    X_shared, D_shared, balance_shared, balance, b)
    if share:
        spread_columns(LANES, model, shares, X_shared, D_shared, balance_shared, X, D, balance)

    # K^T M K wdot = K^T balance in the elimination's own coordinates, then in those of w
    own, lower = take_matrix(work, p, WIDTH * (x + nu)), take_matrix(work, p, WIDTH * (x + nu))
    upper, none = take_matrix(work, n, WIDTH * x), take_matrix(work, 0, WIDTH * x)
    reduce_balance(LANES, model, e, balance, x, actuators, x, own)
    solve_rows_for(LANES, inertia, own)
    into_picked(model, e, R, own, lower)
    put_lower_rows(LANES, lower, p, p, space.A, space.B)
    put_upper_rows(LANES, model, v, take_vector(work, 0), R, virtual, True, none, N, X, upper, none, none, space.A,
                   space.f0)
    put_rates(v, R, space)
    return True


@inline
def put_rates(v, R, space):
    """The rates of w in f0, and the drift v - S w, for rows R that pick coordinates."""
    (p, n), columns = R.shape, space.K
    for j in range(n):
        store(LANES, space.drift, j, load(LANES, v, j))
    for s in range(p):
        for j in range(n):
            if at(R, s, j) != 0.0:
                store(LANES, space.f0, p + s, load(LANES, space.a, j))
                w = load(LANES, v, j)
                for i in range(n):
                    store(LANES, space.drift, i, load(LANES, space.drift, i) - w * element(LANES, columns, i, s))
