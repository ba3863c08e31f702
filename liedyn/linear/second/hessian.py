"""The Hessian of one weighted sum of a mechanism's motion by the state and the inputs of its local state space.

Along columns 1 and 2 of the linear model (N, X, a', lambda'; symbols: `liedyn.linear.local`) a sum of displacements,
velocities and accelerations with weights (nu_q, nu_v, nu_a) changes to second order by

    nu_q . d_12 + nu_v . v_12 + nu_a . a_12

No second-order equation is solved: four adjoint ones turn this into second variations of the equations of motion F and
of the rows of the constraints themselves,

    S^T M S m = -S^T nu_a      mu = S m                  mu . F_12 + kappa . phi_12 + sigma . psi_12 + rho . g_12
    G^T kappa = -(M mu + nu_a)
    G^T sigma + R_w^T s = -(nu_v + derivative of mu . F + kappa . phi by v)
    G_h^T rho + R_y^T r = -(nu_q + derivative of mu . F + kappa . phi + sigma . psi by q)

where d_12 = v_12 = a_12 = lambda_12 = 0. That is the Hessian of one number, made by forward mode on reverse mode:
`liedyn.linear.second.adjoint_recursion`. Of redundant rows any weights will do, as the variations of all rows are
consistent. Coordinates of cut joints that are chosen as y or w are rows too, with the weights of what they measure.

Columns of w displace nothing, so that only vv is left between two of them, and nothing between them and inputs: they
take the cheaper passes `push_links`, `push_cuts` and `push_gradient` where all constraints are cut joints.

For displacements along constant velocities, q exp(d t), g_12 is the symmetric part of the variation of G d along d.

Kernels take a `lane` argument: one state, a register of directions at once, or W states in lanes, one direction after
the other (`liedyn.linear.second.second_in_lanes`).
"""
from numba import typeof

from liedyn.lie.algebra import minus_ad_dual, scale6
from liedyn.linear.choice import reads_cuts
from liedyn.linear.second.adjoint_contacts import vary_contacts
from liedyn.linear.second.adjoint_cuts import KEPT, SIDES, RowWeights, push_cuts, put_sides, vary_cuts, vary_sides
from liedyn.linear.second.adjoint_equations import (
    Room, Shares, put_adjoints, put_inertia, put_least_columns, put_multiplier_columns, put_z,
)
from liedyn.linear.second.adjoint_recursion import (
    JOINT, LINK, MOTION, Columns, Prepared, TreeHessian, Weighed, push_gradient, push_links, push_motions,
    put_tree_columns, put_tree_hessian, vary_gradient, vary_links, vary_motions,
)
from liedyn.linear.second.weighted_sums import MotionSums, MotionWeights, SumWeights, motion_sums, sums_size
from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import (
    add_transposed_products, clear, columns_of, element, padded, padded_for, put_element,
)
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, load, matrix_in, splat, store, take_integers, take_matrix, take_vector, vector_in, width_of,
)
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import reader_rows, vary_velocity_rows
from liedyn.mechanics.constraints.elimination import elimination_size
from liedyn.mechanics.constraints.families.cut import CUT, put_cuts
from liedyn.mechanics.constraints.reduced import multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import complete_terms
from liedyn.mechanics.dynamics.state import STATE
from liedyn.mechanics.tree.kinematics import world_motion, world_size
from liedyn.mechanics.tree.rnea_derivatives import composites, contributions, derivative_nonzeros, put_derivatives
from liedyn.mechanics.tree.rnea_hessian import forces_at, rnea_hessian_size
from liedyn.mechanics.tree.rows import leave_squares
from liedyn.mechanics.tree.tangent_recursion import BODY, VariedLinks, get_block6
from liedyn.model.constraint_records import all_cut, is_long, loop_count
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, dof_count, first_dof, get3, link_count, zero6

ONE = group(MotionWeights, *[VECTOR] * 6)
MANY, SUMS = group(MotionSums, *[MATRIX] * 7), group(SumWeights, *[MATRIX] * 6)
ONE_STATE, IN_LANES = typeof(SCALAR), typeof(LANES)
"""Types of `lane`: with it as an argument, registers that are kept on the stack lie within lines of the cache."""


@inline
def kinematics_size(lane, model, x):
    """Size of the workspaces of a `Prepared` and a `Weighed` that are not shared, but for the sides of cut joints."""
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    of_cuts = 3 * (m + nz) + 2 * KEPT * loop_count(model)
    of_state = links * (BODY + LINK) + rnea_hessian_size(model) + (1 + JOINT) * n + of_cuts
    return width_of(lane) * of_state + links * (padded_for(lane, x) * MOTION + WIDTH * LINK) + WIDTH * 20


@inline
def hessian_size(lane, model, p_y, p_w, nu):
    """Size of the workspace of `put_hessians`."""
    n, m, x, w = model.ints[NV], model.ints[N_ROWS], p_y + p_w, width_of(lane)
    columns, own = padded_for(lane, x), padded_for(lane, p_w)
    reduced = w * (7 * (n * n + WIDTH) + model.ints[N_VIRTUAL] * n) + 2 * (n + p_w) * own
    multipliers = m * padded_for(lane, x + nu) + 3 * multipliers_size(lane, model) + WIDTH * m + w * 4 * m
    positions = elimination_size(SCALAR, model) + m * n + padded(n)
    sides = 2 * loop_count(model) * SIDES * (columns if w == 1 else padded_for(lane, p_y))
    variations = sides + (3 * n + m + x + nu) * columns
    return kinematics_size(lane, model, x) + reduced + multipliers + variations + positions + w * 3 * n + WIDTH * 40


@kernel_in_place
def motion_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `motion_hessian`."""
    return hessian_size(SCALAR, model, p_y, p_w, nu)


@kernel_in_place
def model_hessians_size(model, count, p_y, p_w, nu):
    """Size of the workspace of `model_hessians` for `count` weighted sums, which may be of multipliers."""
    n, m, x = model.ints[NV], model.ints[N_ROWS], p_y + p_w
    cuts = loop_count(model) * (CUT + 2 * SIDES * padded(x))
    shares = kinematics_size(SCALAR, model, x) + n * (m + 1 + padded(x + nu)) + 3 * m + cuts
    return hessian_size(SCALAR, model, p_y, p_w, nu) + sums_size(SCALAR, model, count) + shares + WIDTH * 24


@inline
def add_turns(lane, model, turn, columns, b, of_motion):
    """Adds half of turn . [d, dv], joint by joint, to the variations of the gradient by q and v."""
    of_q, of_v, _ = of_motion
    width, every = of_q.shape[1] // WIDTH, of_v.shape[1] // WIDTH
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            c = get3(lane, turn, first), zero6(lane)[1]
            if count == 6:
                c = c[0], get3(lane, turn, first + 3)
            by_q = scale6(0.5, minus_ad_dual(get_block6(columns.X, first, count, b), c))
            by_v = scale6(-0.5, minus_ad_dual(get_block6(columns.N, first, count, b), c))
            for k in range(3):
                at_q, at_v = width * (first + k) + b, every * (first + k) + b
                store(LANES, of_q, at_q, load(LANES, of_q, at_q) + by_q[0][k])
                store(LANES, of_v, at_v, load(LANES, of_v, at_v) + by_v[0][k])
                if count == 6:
                    at_q, at_v = at_q + 3 * width, at_v + 3 * every
                    store(LANES, of_q, at_q, load(LANES, of_q, at_q) + by_q[1][k])
                    store(LANES, of_v, at_v, load(LANES, of_v, at_v) + by_v[1][k])


@inline
def add_products(lane, columns, sizes, of_motion, of_lam, P):
    """P += columns^T times the variations of the gradient along the columns of the state."""
    (p_y, x, c), (of_q, of_v, of_a) = sizes, of_motion
    add_transposed_products(lane, columns.N, p_y, of_q, P)
    add_transposed_products(lane, columns.X, x, of_v, P)
    add_transposed_products(lane, columns.A, c, of_a, P)
    add_transposed_products(lane, columns.L, c, of_lam, P)


@inline
def put_symmetric(lane, p_y, x, P, H):
    """H, whose first x columns are those of P: made symmetric, zero for inputs with inputs or velocities.

    Of the columns after the first p_y only the rows from p_y to x are read.
    """
    for i in range(H.shape[0]):
        for j in range(i + 1):
            y = splat(lane, 0.0)
            if i < p_y or p_y <= j and i < x:
                y = 0.5 * (element(lane, P, i, j) + element(lane, P, j, i))
            elif j < p_y:
                y = element(lane, P, i, j)
            put_element(lane, H, i, j, y)
            put_element(lane, H, j, i, y)


@inline
def put_block(L, b, lam_2):
    """Block b of the columns of L."""
    for r in range(L.shape[0]):
        store(LANES, lam_2, r, load(LANES, L, L.shape[1] // WIDTH * r + b))


@inline
def vary_all(lane, model, lam, reads, prepared, weighed, room, b):
    """Block b of the variations of the gradient, and of the velocities of the rows for mu."""
    columns, size = prepared.columns, WIDTH * MOTION * link_count(model)
    variations, multipliers = vector_in(prepared.variations, b * size, size), (lam, room.lam_2)
    if width_of(lane) == 1:
        put_block(columns.L, b, room.lam_2)
    vary_links(lane, model, columns, weighed, b)
    places = WIDTH * SIDES * 2 * loop_count(model)
    sides = vector_in(prepared.sides, b * places, places)
    vary_cuts(lane, model, prepared.world, False, weighed, b, sides, room.of_lam)
    if width_of(lane) == 1:
        vary_contacts(model, prepared.world, multipliers, weighed, b, variations, room.of_lam)
    if reads:
        vary_cuts(lane, model, prepared.world, True, weighed, b, sides, room.of_lam)
    vary_gradient(lane, model, prepared, weighed, b, room.of_motion)


@inline
def push_all(lane, model, reads, prepared, weighed, room, b):
    """Block b of the variations of the gradient by v, along columns that displace nothing."""
    size = WIDTH * MOTION * link_count(model)
    variations = vector_in(prepared.variations, b * size, size)
    push_links(model, weighed.rates)
    push_cuts(lane, model, False, weighed, variations)
    if reads:
        push_cuts(lane, model, True, weighed, variations)
    push_gradient(lane, model, prepared.world, weighed.rates, b, room.of_motion[1])


@inline
def put_columns(lane, model, state, turn, lam, reads, prepared, room, shares, sizes, H):
    """The second variations along all columns."""
    (p_y, x, c), blocks = sizes, room.P.shape[1] // WIDTH
    clear(room.P)
    if shares.theta.size > 0:
        put_tree_hessian(lane, model, state.q, False, shares.prepared, shares.weighed, room.hessian)
        put_tree_columns(lane, model, room.hessian, shares.prepared.columns, room.of_motion)
        for b in range(blocks):
            vary_all(lane, model, lam, False, shares.prepared, shares.weighed, room, b)
        own = shares.prepared.columns
        add_transposed_products(lane, own.N, p_y, room.of_motion[0], room.P)
        add_transposed_products(lane, own.X, c, room.of_motion[1], room.P)
    displaced = room.of_lam.shape[1] // WIDTH
    put_tree_hessian(lane, model, state.q, True, prepared, room.weighed, room.hessian)
    put_tree_columns(lane, model, room.hessian, prepared.columns, room.of_motion)
    for b in range(displaced):
        vary_all(lane, model, lam, reads, prepared, room.weighed, room, b)
        add_turns(lane, model, turn, prepared.columns, b, room.of_motion)
    for b in range(displaced, blocks):
        push_all(lane, model, reads, prepared, room.weighed, room, b)
    add_products(lane, prepared.columns, sizes, room.of_motion, room.of_lam, room.P)
    put_symmetric(lane, p_y, x, room.P, H)


@inline
def prepare(lane, model, state, a, prepared):
    """Kinematics, what `put_tree_hessian` takes, the inertia matrix and the derivatives of inverse dynamics."""
    work, w, n = prepared.world, width_of(lane), model.ints[NV]
    world_motion(lane, model, state.q, state.v, a, work)
    composites(lane, model, state.f_ext, work)
    tau = vector_in(work, w * forces_at(model), w * n)
    if w > 1:
        contributions(lane, model, work, tau)
    for k in range(n * n):
        store(lane, prepared.M, k, splat(lane, 0.0))
    put_derivatives(lane, model, state.q, work, derivative_nonzeros, leave_squares,
                    (tau, prepared.D_q, prepared.D_v, prepared.M))


@inline
def vary_all_motions(lane, model, prepared, blocks, displaced):
    """Variations of all links along all blocks of columns, of which those from `displaced` on displace nothing."""
    size = WIDTH * MOTION * link_count(model)
    for b in range(blocks):
        variations = vector_in(prepared.variations, b * size, size)
        if b < displaced:
            vary_motions(lane, model, prepared.world, prepared.columns, b, variations)
        else:
            push_motions(lane, model, prepared.world, prepared.columns, b, variations)


@inline
def vary_all_sides(lane, model, reads, prepared, cuts, blocks, lam_2):
    """Variations of the sides of all cut joints along blocks of columns."""
    size, places = WIDTH * MOTION * link_count(model), WIDTH * SIDES * 2 * loop_count(model)
    for b in range(blocks):
        variations, sides = (vector_in(prepared.variations, b * size, size),
                             vector_in(prepared.sides, b * places, places))
        put_block(prepared.columns.L, b, lam_2)
        vary_sides(lane, model, prepared.world, False, lam_2, cuts, variations, sides)
        if reads:
            vary_sides(lane, model, prepared.world, True, lam_2, cuts, variations, sides)


@inline
def put_shares(model, state, lam, e, space, prepared, shares, room, blocks, column):
    """Columns and kinematics for weights of multipliers."""
    own, moved = shares.prepared, room.of_lam
    put_z(model, e, lam, shares.G_sharp, shares.order, shares.z)
    world_motion(SCALAR, model, state.q, shares.z, space.a, own.world)
    clear(own.columns.X)  # first the variations of G z along displacements
    vary_all_motions(SCALAR, model, own, blocks, blocks)
    weighed = room.weighed
    cuts = shares.cuts
    put_cuts(SCALAR, model, own.world, lam, own.bodies, cuts)
    size = WIDTH * MOTION * link_count(model)
    for b in range(blocks):
        links = VariedLinks(own.world, cuts, vector_in(own.variations, b * size, size))
        motion = state.q, shares.z, vector_in(space.a, 0, model.ints[NV])
        vary_velocity_rows(SCALAR, model, motion, links, space.N, b, moved)
    put_least_columns(model, e, space, moved, room.left, column, shares, (prepared.columns.L, own.columns.X),
                      room.scratch)
    vary_all_motions(SCALAR, model, own, blocks, blocks)
    put_sides(SCALAR, model, own.world, False, lam, shares.weighed.cuts)
    vary_all_sides(SCALAR, model, False, own, shares.weighed.cuts, blocks, room.lam_2)
    for r in range(weighed.rows.phi.size):
        for part in range(3):
            store(SCALAR, shares.weighed.rows[part], r, 0.0)
    for j in range(shares.weighed.mu.size):
        shares.weighed.mu[j] = 0.0


@inline
def weighed_in(lane, model, some, work):
    """Workspaces of a `Weighed`, empty if `some` is 0 and not 1."""
    w = some * width_of(lane)
    n, m, nz, links = w * model.ints[NV], w * model.ints[N_ROWS], w * model.ints[N_VIRTUAL], link_count(model)
    return Weighed(
        take_vector(work, n), RowWeights(take_vector(work, m), take_vector(work, m), take_vector(work, m)),
        RowWeights(take_vector(work, nz), take_vector(work, nz), take_vector(work, nz)),
        take_vector(work, LINK * w * links), take_vector(work, some * WIDTH * LINK * links),
        take_vector(work, JOINT * n), take_vector(work, 2 * KEPT * w * loop_count(model)))


@inline
def shares_in(model, columns, shared, asked, blocks, work):
    """Workspaces of `Shares`, empty unless weights of multipliers are `asked` for; other matrices are `shared`."""
    n, links = model.ints[NV], link_count(model) if asked else 0
    m, cuts = model.ints[N_ROWS] if asked else 0, loop_count(model) if asked else 0
    Z = take_matrix(work, n if asked else 0, columns.A.shape[1])
    return Shares(
        take_matrix(work, n, m), take_integers(work, m), take_vector(work, n if asked else 0), take_vector(work, m),
        Prepared(take_vector(work, world_size(model) if asked else 0), take_vector(work, BODY * links), shared.M,
                 shared.D_q, shared.D_v, shared.E, shared.S, shared.MS, shared.inverse,
                 Columns(columns.N, Z, columns.A, columns.L),
                 take_vector(work, WIDTH * MOTION * links * blocks),
                 take_vector(work, WIDTH * SIDES * 2 * cuts * blocks)),
        weighed_in(SCALAR, model, 1 if asked else 0, work), take_vector(work, CUT * cuts))


@inline
def put_hessians(lane, model, state, coordinates, weights, e, work, space, H):
    """H, c rows of c numbers for each row of weights: Hessians of the motion by (y, w, u), as `model_hessians`."""
    n, m, nz, links, w = (
        model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model), width_of(lane))
    (_, virtual_y, _, virtual_w), x, c = coordinates, space.A.shape[0], columns_of(lane, H)
    p_y, p_w, reads = virtual_y.size, virtual_w.size, reads_cuts(virtual_y) or reads_cuts(virtual_w)
    asked, of_x, of_w, lam = m > 0 and weights.lam.size > 0, padded_for(lane, x), padded_for(lane, p_w), vector_in(
        space.lam, 0, w * m)
    of_y = of_x if asked or not all_cut(model) else padded_for(lane, p_y)  # columns that displace something
    columns, column = Columns(space.N, space.X, space.da, take_matrix(work, m, padded_for(lane, c))), take_vector(
        work, m)
    prepared = Prepared(
        take_vector(work, w * rnea_hessian_size(model)), take_vector(work, 0), take_matrix(work, n, w * n),
        take_matrix(work, n, w * n), take_matrix(work, n, w * n), take_matrix(work, nz, w * n),
        take_matrix(work, n, of_w), take_matrix(work, n, of_w),
        take_matrix(work, p_w, of_w), columns, take_vector(work, MOTION * links * of_x),
        take_vector(work, SIDES * 2 * loop_count(model) * of_y))
    room = Room(
        weighed_in(lane, model, 1, work), take_vector(work, w * n), take_vector(work, w * n), take_vector(work, w * n),
        take_vector(work, multipliers_size(lane, model)),
        (take_matrix(work, n, of_y), take_matrix(work, n, of_x), take_matrix(work, n, of_y)),
        take_matrix(work, m, of_y), take_vector(work, WIDTH * m), take_matrix(work, c, of_x),
        TreeHessian(take_matrix(work, n, w * n), take_matrix(work, n, w * n), take_matrix(work, n, w * n),
                    take_matrix(work, n, w * n)))
    shares, blocks = shares_in(model, columns, prepared, asked, of_x // WIDTH, work), of_x // WIDTH
    prepare(lane, model, state, space.a, prepared)
    if reads:
        reader_rows(lane, model, prepared.world, prepared.E)
    put_inertia(lane, space.X, p_y, prepared, take_matrix(work, p_w, of_w))
    if w == 1 and m > 0 and is_long(model):
        complete_terms(model, space.M, space.G)
    if asked:
        put_shares(model, state, lam, e, space, prepared, shares, room, blocks, column)
    elif m > 0:
        put_multiplier_columns(lane, model, e, space.balance, room.left, column, columns.L)
    clear(room.of_lam)
    vary_all_motions(lane, model, prepared, blocks, of_y // WIDTH)
    put_sides(lane, model, prepared.world, False, lam, room.weighed.cuts)
    if reads:
        put_sides(lane, model, prepared.world, True, lam, room.weighed.cuts)
    vary_all_sides(lane, model, reads, prepared, room.weighed.cuts, of_y // WIDTH, room.lam_2)
    for k in range(weights.q.shape[0]):
        put_adjoints(lane, model, coordinates, weights, k, e, work, space, prepared, room, shares)
        put_columns(lane, model, state, vector_in(weights.turn, k * w * n, w * n), lam, reads, prepared, room, shares,
                    (p_y, x, c), matrix_in(H, k * c * c * w, c, c * w))


@late(ONE_STATE, MODEL, STATE, COORDINATES, MANY, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessians(lane, model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of the motion with each row of weights by (y, w, u).

    Arguments as for `model_hessians`.
    """
    work[0] = first_place(work)
    put_hessians(lane, model, state, coordinates, weights, e, work, space, H)


@late(MODEL, STATE, COORDINATES, SUMS, VECTOR, VECTOR, SPACE, MATRIX)
def model_hessians(model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of sums with each row of weights, by (y, w, u).

    To be called after `linearize_in_place` and `complete_derivatives` of the same state. `e` is the elimination that
    the former leaves at the first place of its workspace, not read without constraints; `work` has
    `model_hessians_size` numbers. For balls and free joints among y, ydot are the rates of displacements from a state
    that moves on with the velocity v, as in `liedyn.linear.local`: ydot = R (v + [d, v0] + [d, v - v0]/2).
    """
    work[0] = first_place(work)
    given = motion_sums(SCALAR, model, state.v, coordinates, weights, work)
    rest = vector_in(work, int(work[0]), work.size - int(work[0]))
    motion_hessians(SCALAR, model, state, coordinates, given, e, rest, space, H)


@late(MODEL, STATE, COORDINATES, ONE, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of the motion with these weights by (y, w, u), as `model_hessians`."""
    q, v, a, turn, rates, accelerations = weights
    motion_hessians(
        SCALAR, model, state, coordinates,
        MotionSums(matrix_in(q, 0, 1, q.size), matrix_in(v, 0, 1, v.size), matrix_in(a, 0, 1, a.size),
                   matrix_in(q, 0, 0, 0), matrix_in(turn, 0, 1, turn.size), matrix_in(rates, 0, 1, rates.size),
                   matrix_in(accelerations, 0, 1, rates.size)), e, work, space, H)
