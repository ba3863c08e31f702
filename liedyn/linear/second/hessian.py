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

For displacements along constant velocities, q exp(d t), g_12 is the symmetric part of the variation of G d along d.
"""
from collections import namedtuple

from liedyn.lie.algebra import minus_ad_dual, scale6
from liedyn.linear.choice import reads_cuts
from liedyn.linear.second.adjoint_contacts import vary_contacts
from liedyn.linear.second.adjoint_cuts import RowWeights, vary_cuts
from liedyn.linear.second.adjoint_equations import (
    MotionSums, Room, Shares, put_adjoints, put_inertia, put_least_columns, put_multiplier_columns, put_z,
)
from liedyn.linear.second.adjoint_recursion import (
    JOINT, LINK, MOTION, Columns, Prepared, Weighed, vary_gradient, vary_links, vary_motions,
)
from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, at, clear, padded
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, load, matrix_in, store, take_integers, take_matrix, take_vector, vector_in,
)
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import reader_rows, vary_velocity_rows
from liedyn.mechanics.constraints.elimination import elimination_size
from liedyn.mechanics.constraints.families.cut import CUT, put_cuts
from liedyn.mechanics.constraints.reduced import multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import complete_terms
from liedyn.mechanics.dynamics.state import STATE, State
from liedyn.mechanics.tree.crba import crba_kernel, crba_size
from liedyn.mechanics.tree.kinematics import world_positions, world_size, world_velocities
from liedyn.mechanics.tree.tangent_recursion import BODY, VariedLinks, get_block6, put_bodies
from liedyn.model.constraint_records import is_long, loop_count
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, dof_count, first_dof, get3, link_count

MotionWeights = namedtuple("MotionWeights", "q v a turn reader_rates reader_accelerations")
"""Weights of displacements, velocities and accelerations (nv each), of the rates of coordinates in their own tangent
(nv), and of the velocities and accelerations of cut joints' coordinates (nz each)."""

SumWeights = namedtuple("SumWeights", "y w a lam q v")
"""Rows of weights of the rates of y and w; of all accelerations, of the multipliers, of all displacements, of all
velocities, or none."""

ONE = group(MotionWeights, *[VECTOR] * 6)
MANY, SUMS = group(MotionSums, *[MATRIX] * 7), group(SumWeights, *[MATRIX] * 6)


@inline
def kinematics_size(model, x):
    """Size of the workspaces of a `Prepared` and a `Weighed` that are not shared."""
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    of_links = links * (BODY + LINK + padded(x) * MOTION + WIDTH * LINK)
    return of_links + world_size(model) + (1 + JOINT) * n + 3 * (m + nz) + WIDTH * 16


@kernel_in_place
def motion_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `motion_hessian`."""
    n, m, x = model.ints[NV], model.ints[N_ROWS], p_y + p_w
    reduced = n * n + crba_size(model) + 2 * n * padded(p_w) + 2 * p_w * padded(p_w) + model.ints[N_VIRTUAL] * n
    multipliers = m * padded(x + nu) + 3 * multipliers_size(SCALAR, model) + WIDTH * m + 4 * m
    columns = (3 * n + m + x + nu) * padded(x)
    positions = elimination_size(SCALAR, model) + m * n + padded(n)
    return kinematics_size(model, x) + reduced + multipliers + columns + positions + 3 * n + WIDTH * 40


@kernel_in_place
def model_hessians_size(model, count, p_y, p_w, nu):
    """Size of the workspace of `model_hessians` for `count` weighted sums, which may be of multipliers."""
    n, m, x = model.ints[NV], model.ints[N_ROWS], p_y + p_w
    own = count * (4 * n + 2 * model.ints[N_VIRTUAL])
    shares = kinematics_size(model, x) + n * (m + 1 + padded(x + nu)) + 3 * m + CUT * loop_count(model)
    return motion_hessian_size(model, p_y, p_w, nu) + own + shares + WIDTH * 24


@inline
def add_turns(model, turn, columns, b, of_motion):
    """Adds half of turn . [d, dv], joint by joint, to the variations of the gradient by q and v."""
    of_q, of_v, _ = of_motion
    width = of_q.shape[1] // WIDTH
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            c = get3(SCALAR, turn, first), (0.0, 0.0, 0.0)
            if count == 6:
                c = c[0], get3(SCALAR, turn, first + 3)
            by_q = scale6(0.5, minus_ad_dual(get_block6(columns.X, first, count, b), c))
            by_v = scale6(-0.5, minus_ad_dual(get_block6(columns.N, first, count, b), c))
            for k in range(3):
                at_k = width * (first + k) + b
                store(LANES, of_q, at_k, load(LANES, of_q, at_k) + by_q[0][k])
                store(LANES, of_v, at_k, load(LANES, of_v, at_k) + by_v[0][k])
                if count == 6:
                    at_k = width * (first + 3 + k) + b
                    store(LANES, of_q, at_k, load(LANES, of_q, at_k) + by_q[1][k])
                    store(LANES, of_v, at_k, load(LANES, of_v, at_k) + by_v[1][k])


@inline
def add_products(columns, sizes, of_motion, of_lam, P):
    """P += columns^T times the variations of the gradient along the columns of the state."""
    (p_y, x, c), (of_q, of_v, of_a) = sizes, of_motion
    n, m = of_q.shape[0], of_lam.shape[0]
    add_products_in_registers(columns.N, 0, 1, columns.N.shape[1], p_y, n, of_q, P)
    add_products_in_registers(columns.X, 0, 1, columns.X.shape[1], x, n, of_v, P)
    add_products_in_registers(columns.A, 0, 1, columns.A.shape[1], c, n, of_a, P)
    add_products_in_registers(columns.L, 0, 1, columns.L.shape[1], c, m, of_lam, P)


@inline
def put_symmetric(x, P, H):
    """H, whose first x columns are those of P: made symmetric, zero for two inputs."""
    for i in range(H.shape[0]):
        for j in range(H.shape[1]):
            y = 0.0
            if i < x and j < x:
                y = 0.5 * (at(P, i, j) + at(P, j, i))
            elif i < x or j < x:
                y = at(P, max(i, j), min(i, j))
            H[i, j] = y


@inline
def vary_all(model, q, lam, reads, prepared, weighed, room, b):
    """Block b of the variations of the gradient, and of the velocities of the rows for mu."""
    columns, m, size = prepared.columns, lam.size, WIDTH * MOTION * link_count(model)
    variations, multipliers = vector_in(prepared.variations, b * size, size), (lam, room.lam_2)
    for r in range(m):
        store(LANES, room.lam_2, r, load(LANES, columns.L, columns.L.shape[1] // WIDTH * r + b))
    vary_links(model, prepared, weighed, b, variations)
    vary_cuts(model, prepared.world, False, multipliers, weighed, b, variations, room.of_lam)
    vary_contacts(model, prepared.world, multipliers, weighed, b, variations, room.of_lam)
    if reads:
        vary_cuts(model, prepared.world, True, multipliers, weighed, b, variations, room.of_lam)
    vary_gradient(model, q, prepared, weighed, b, variations, room.of_motion)


@inline
def put_columns(model, state, turn, lam, reads, prepared, room, shares, sizes, H):
    """The second variations along all columns."""
    (p_y, x, c), blocks = sizes, room.P.shape[1] // WIDTH
    clear(room.P)
    if shares.theta.size > 0:
        for b in range(blocks):
            vary_all(model, state.q, lam, False, shares.prepared, shares.weighed, room, b)
        own = shares.prepared.columns
        add_products_in_registers(own.N, 0, 1, own.N.shape[1], p_y, own.N.shape[0], room.of_motion[0], room.P)
        add_products_in_registers(own.X, 0, 1, own.X.shape[1], c, own.X.shape[0], room.of_motion[1], room.P)
    for b in range(blocks):
        vary_all(model, state.q, lam, reads, prepared, room.weighed, room, b)
        add_turns(model, turn, prepared.columns, b, room.of_motion)
    add_products(prepared.columns, sizes, room.of_motion, room.of_lam, room.P)
    put_symmetric(x, room.P, H)


@inline
def prepare(model, state, a, prepared):
    """Kinematics and bodies at the velocity of a state."""
    world_positions(SCALAR, model, state.q, prepared.world)
    world_velocities(SCALAR, model, state.v, prepared.world)
    put_bodies(SCALAR, model, state.v, a, state.f_ext, prepared.world, prepared.bodies)


@inline
def vary_all_motions(model, prepared, blocks):
    size = WIDTH * MOTION * link_count(model)
    for b in range(blocks):
        vary_motions(model, prepared.world, prepared.bodies, prepared.columns, b,
                     vector_in(prepared.variations, b * size, size))


@inline
def put_shares(model, state, e, space, prepared, shares, room, blocks, column):
    """Columns and kinematics for weights of multipliers."""
    own, moved = shares.prepared, room.of_lam
    put_z(model, e, space.lam, shares.G_sharp, shares.order, shares.z)
    prepare(model, State(state.q, shares.z, state.tau, state.f_ext), space.a, own)
    clear(own.columns.X)  # first the variations of G z along displacements
    vary_all_motions(model, own, blocks)
    weighed = room.weighed
    cuts = shares.cuts
    put_cuts(SCALAR, model, own.world, space.lam, own.bodies, cuts)
    size = WIDTH * MOTION * link_count(model)
    for b in range(blocks):
        links = VariedLinks(own.world, cuts, vector_in(own.variations, b * size, size))
        vary_velocity_rows(SCALAR, model, (state.q, shares.z, space.a), links, space.N, b, moved)
    put_least_columns(model, e, space, moved, room.left, column, shares, (prepared.columns.L, own.columns.X),
                      room.scratch)
    vary_all_motions(model, own, blocks)
    for r in range(weighed.rows.phi.size):
        for part in range(3):
            store(SCALAR, shares.weighed.rows[part], r, 0.0)
    for j in range(shares.weighed.mu.size):
        shares.weighed.mu[j] = 0.0


@inline
def weighed_in(model, some, work):
    """Workspaces of a `Weighed`, empty if `some` is 0 and not 1."""
    n, m, nz, links = (
        some * model.ints[NV], some * model.ints[N_ROWS], some * model.ints[N_VIRTUAL], some * link_count(model))
    return Weighed(
        take_vector(work, n), RowWeights(take_vector(work, m), take_vector(work, m), take_vector(work, m)),
        RowWeights(take_vector(work, nz), take_vector(work, nz), take_vector(work, nz)),
        take_vector(work, LINK * links), take_vector(work, WIDTH * LINK * links), take_vector(work, JOINT * n))


@inline
def shares_in(model, columns, shared, asked, blocks, work):
    """Workspaces of `Shares`, empty unless weights of multipliers are `asked` for; other matrices are `shared`."""
    n, links = model.ints[NV], link_count(model) if asked else 0
    m, cuts = model.ints[N_ROWS] if asked else 0, loop_count(model) if asked else 0
    Z = take_matrix(work, n if asked else 0, columns.A.shape[1])
    return Shares(
        take_matrix(work, n, m), take_integers(work, m), take_vector(work, n if asked else 0), take_vector(work, m),
        Prepared(take_vector(work, world_size(model) if asked else 0), take_vector(work, BODY * links), shared.M,
                 shared.E, shared.S, shared.MS, shared.inverse, Columns(columns.N, Z, columns.A, columns.L),
                 take_vector(work, WIDTH * MOTION * links * blocks)),
        weighed_in(model, 1 if asked else 0, work), take_vector(work, CUT * cuts))


@late(MODEL, STATE, COORDINATES, MANY, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessians(model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of the motion with each row of weights by (y, w, u).

    Arguments as for `model_hessians`.
    """
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    (_, virtual_y, _, virtual_w), x, c = coordinates, space.A.shape[0], H.shape[1]
    p_y, p_w, reads = virtual_y.size, virtual_w.size, reads_cuts(virtual_y) or reads_cuts(virtual_w)
    work[0] = first_place(work)
    asked, blocks = m > 0 and weights.lam.size > 0, padded(x) // WIDTH
    columns, column = Columns(space.N, space.X, space.da, take_matrix(work, m, padded(c))), take_vector(work, m)
    prepared = Prepared(
        take_vector(work, world_size(model)), take_vector(work, BODY * links), take_matrix(work, n, n),
        take_matrix(work, nz, n), take_matrix(work, n, padded(p_w)), take_matrix(work, n, padded(p_w)),
        take_matrix(work, p_w, padded(p_w)), columns, take_vector(work, WIDTH * MOTION * links * blocks))
    room = Room(
        weighed_in(model, 1, work), take_vector(work, n), take_vector(work, n), take_vector(work, n),
        take_vector(work, multipliers_size(SCALAR, model)),
        (take_matrix(work, n, padded(x)), take_matrix(work, n, padded(x)), take_matrix(work, n, padded(x))),
        take_matrix(work, m, padded(x)), take_vector(work, WIDTH * m), take_matrix(work, c, padded(x)))
    shares = shares_in(model, columns, prepared, asked, blocks, work)
    crba_kernel(SCALAR, model, state.q, take_vector(work, crba_size(model)), prepared.M)
    prepare(model, state, space.a, prepared)
    if reads:
        reader_rows(SCALAR, model, prepared.world, prepared.E)
    put_inertia(space.X, p_y, prepared, take_matrix(work, p_w, padded(p_w)))
    if m > 0 and is_long(model):
        complete_terms(model, space.M, space.G)
    if asked:
        put_shares(model, state, e, space, prepared, shares, room, blocks, column)
    elif m > 0:
        put_multiplier_columns(model, e, space.balance, room.left, column, columns.L)
    clear(room.of_lam)
    vary_all_motions(model, prepared, blocks)
    for k in range(weights.q.shape[0]):
        put_adjoints(model, state, coordinates, weights, k, e, work, space, prepared, room, shares)
        put_columns(model, state, vector_in(weights.turn, k * n, n), space.lam, reads, prepared, room, shares,
                    (p_y, x, c), matrix_in(H, k * c * c, c, c))


@inline
def add_rows(rows, virtual, weights, k, out, readers):
    """out += R^T weights for rows R of the tree; the weights of cut joints' coordinates are added to `readers`."""
    n, nz = rows.shape[1], readers.shape[1]
    for s in range(virtual.size):
        x = at(weights, k, s)
        if virtual[s] >= 0:
            store(SCALAR, readers, nz * k + virtual[s], load(SCALAR, readers, nz * k + virtual[s]) + x)
        else:
            for j in range(n if x != 0.0 else 0):
                store(SCALAR, out, n * k + j, load(SCALAR, out, n * k + j) + x * at(rows, s, j))


@inline
def put_turns(model, v, turn, of_q):
    """Adds to of_q the weights of displacements that the rates R ad(d, v) have, for their weights R^T y in `turn`."""
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            zero = 0.0, 0.0, 0.0
            c, V = (get3(SCALAR, turn, first), zero), (get3(SCALAR, v, first), zero)
            if count == 6:
                c, V = (c[0], get3(SCALAR, turn, first + 3)), (V[0], get3(SCALAR, v, first + 3))
            by_q = minus_ad_dual(V, c)
            for k in range(3):
                store(SCALAR, of_q, first + k, load(SCALAR, of_q, first + k) + by_q[0][k])
                if count == 6:
                    store(SCALAR, of_q, first + 3 + k, load(SCALAR, of_q, first + 3 + k) + by_q[1][k])


@late(MODEL, STATE, COORDINATES, SUMS, VECTOR, VECTOR, SPACE, MATRIX)
def model_hessians(model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of sums with each row of weights, by (y, w, u).

    To be called after `linearize_in_place` and `complete_derivatives` of the same state. `e` is the elimination that
    the former leaves at the first place of its workspace, not read without constraints; `work` has
    `model_hessians_size` numbers. For balls and free joints among y, ydot are the rates of displacements from a state
    that moves on with the velocity v, as in `liedyn.linear.local`: ydot = R (v + [d, v0] + [d, v - v0]/2).
    """
    n, nz, (R_y, virtual_y, R_w, virtual_w) = model.ints[NV], model.ints[N_VIRTUAL], coordinates
    count = weights.y.shape[0]
    work[0] = first_place(work)
    given = MotionSums(
        take_matrix(work, count, n), take_matrix(work, count, n), take_matrix(work, count, n), weights.lam,
        take_matrix(work, count, n), take_matrix(work, count, nz), take_matrix(work, count, nz))
    rest = vector_in(work, int(work[0]), work.size - int(work[0]))
    for j in range(count * n):
        store(SCALAR, given.q, j, load(SCALAR, weights.q, j) if weights.q.size > 0 else 0.0)
        store(SCALAR, given.turn, j, 0.0)
        store(SCALAR, given.a, j, load(SCALAR, weights.a, j) if weights.a.size > 0 else 0.0)
    for j in range(count * nz):
        store(SCALAR, given.reader_rates, j, 0.0)
        store(SCALAR, given.reader_accelerations, j, 0.0)
    for k in range(count):
        add_rows(R_w, virtual_w, weights.w, k, given.a, given.reader_accelerations)
        add_rows(R_y, virtual_y, weights.y, k, given.turn, given.reader_rates)
        put_turns(model, state.v, vector_in(given.turn, n * k, n), vector_in(given.q, n * k, n))
        for j in range(n * k, n * (k + 1)):
            x = load(SCALAR, weights.v, j) if weights.v.size > 0 else 0.0
            store(SCALAR, given.v, j, load(SCALAR, given.turn, j) + x)
    motion_hessians(model, state, coordinates, given, e, rest, space, H)


@late(MODEL, STATE, COORDINATES, ONE, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of the motion with these weights by (y, w, u), as `model_hessians`."""
    q, v, a, turn, rates, accelerations = weights
    motion_hessians(
        model, state, coordinates,
        MotionSums(matrix_in(q, 0, 1, q.size), matrix_in(v, 0, 1, v.size), matrix_in(a, 0, 1, a.size),
                   matrix_in(q, 0, 0, 0), matrix_in(turn, 0, 1, turn.size), matrix_in(rates, 0, 1, rates.size),
                   matrix_in(accelerations, 0, 1, rates.size)), e, work, space, H)
