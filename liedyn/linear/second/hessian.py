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
from liedyn.linear.second.adjoint_contacts import add_contacts, hold_contacts, vary_contacts
from liedyn.linear.second.adjoint_cuts import RowWeights, add_cuts, hold_cuts, vary_cuts
from liedyn.linear.second.adjoint_recursion import (
    LINK, MOTION, Columns, Prepared, Weighed, put_gradient, put_links, sum_inward, vary_gradient, vary_links,
    vary_motions,
)
from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_products_in_registers, add_transposed_product, at, clear, padded, put_element, solve_rows_for,
)
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, matrix_in, splat, store, take_matrix, take_vector, vector_in,
)
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows, reader_rows
from liedyn.mechanics.constraints.elimination import (
    ROW, cluster_count, dependent_dofs, eliminate, elimination_size, kept, numbering, solved_cluster,
)
from liedyn.mechanics.constraints.reduced import minimum_norm_multipliers, multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import complete_terms, is_sparse
from liedyn.mechanics.constraints.sparse_reduced import balancing_multipliers
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import STATE
from liedyn.mechanics.tree.crba import crba_kernel, crba_size
from liedyn.mechanics.tree.kinematics import world_positions, world_size, world_velocities
from liedyn.mechanics.tree.tangent_recursion import BODY, get_block6, put_bodies
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, dof_count, first_dof, get3, link_count

MotionWeights = namedtuple("MotionWeights", "q v a turn reader_rates reader_accelerations")
"""Weights of displacements, velocities and accelerations (nv each), of the rates of coordinates in their own tangent
(nv, `RateWeights`), and of the velocities and accelerations of cut joints' coordinates (nz each); or rows of them."""

RateWeights = namedtuple("RateWeights", "y w")
"""Weights of the rates of the coordinates y, and of the velocities w, of a local state space; or rows of them."""

SumWeights = namedtuple("SumWeights", "y w a lam")
"""Rows of weights of the rates of y and w, of all accelerations, and of the multipliers."""

Room = namedtuple("Room", "weighed left of_q of_v scratch of_motion of_lam lam_2 P")
"""Workspaces for one weighted sum after the other."""

ONE, ONE_RATE = group(MotionWeights, *[VECTOR] * 6), group(RateWeights, *[VECTOR] * 2)
MANY, SUMS = group(MotionWeights, *[MATRIX] * 6), group(SumWeights, *[MATRIX] * 4)


@kernel_in_place
def motion_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `motion_hessian` and `motion_hessians`."""
    n, m, nz, x, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], p_y + p_w, link_count(model)
    of_links = links * (BODY + LINK + padded(x) * MOTION + WIDTH * LINK) + world_size(model)
    reduced = n * n + crba_size(model) + 2 * n * padded(p_w) + 2 * p_w * padded(p_w)
    multipliers = m * padded(x + nu) + 3 * multipliers_size(SCALAR, model) + WIDTH * m + 6 * m
    columns = (3 * n + m + x + nu) * padded(x)
    positions = elimination_size(SCALAR, model) + m * n + padded(n)
    return of_links + reduced + multipliers + columns + positions + 5 * n + nz * (4 + n) + WIDTH * 48


@kernel_in_place
def model_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `model_hessian`."""
    return motion_hessian_size(model, p_y, p_w, nu) + 4 * model.ints[NV] + 2 * model.ints[N_VIRTUAL] + WIDTH * 8


@kernel_in_place
def model_hessians_size(model, count, p_y, p_w, nu):
    """Size of the workspace of `model_hessians` for `count` weighted sums."""
    own = count * (4 * model.ints[NV] + 2 * model.ints[N_VIRTUAL])
    return motion_hessian_size(model, p_y, p_w, nu) + own + WIDTH * 8


# ---- the adjoint equations


@inline
def add_readers(E, weights, k, factor, out):
    """out += factor E^T weights[k]: what cut joints' coordinates weigh, as weights of all velocities."""
    for r in range(weights.shape[1]):
        x = factor * at(weights, k, r)
        for j in range(out.size if x != 0.0 else 0):
            out[j] += x * at(E, r, j)


@inline
def put_inertia(X, p_y, prepared, identity):
    """S, M S and the inverse of S^T M S, with as much scratch."""
    S, MS, inverse = prepared.S, prepared.MS, prepared.inverse
    n, p = S.shape[0], identity.shape[0]
    clear(S)
    clear(MS)
    clear(inverse)
    clear(identity)
    for j in range(n):
        for s in range(p):
            put_element(SCALAR, S, j, s, at(X, j, p_y + s))
    add_product(SCALAR, 1.0, prepared.M, n, S, MS)
    add_transposed_product(S, 0, p, MS, identity)
    for s in range(p):
        put_element(SCALAR, inverse, s, s, 1.0)
    solve_rows_for(SCALAR, identity, inverse)


@inline
def put_mu(prepared, k, weights, mu, left):
    """mu, with S^T M S m = -S^T nu_a, and left = -(M mu + nu_a); nu_a includes the readers' accelerations."""
    S, n, p = prepared.S, mu.size, prepared.inverse.shape[0]
    for j in range(n):
        left[j], mu[j] = -at(weights.a, k, j), 0.0
    add_readers(prepared.E, weights.reader_accelerations, k, -1.0, left)
    for s in range(p):
        total = 0.0
        for j in range(n):
            total += at(S, j, s) * left[j]
        for t in range(p if total != 0.0 else 0):
            m = total * at(prepared.inverse, s, t)
            for j in range(n):
                mu[j] += at(S, j, t) * m
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += at(prepared.M, j, i) * mu[i]
        left[j] -= total


@inline
def leave_to_rows(chosen, E, X, first, left, readers):
    """Take from `left` the part that the chosen coordinates R bear, R^T S^T left, so that G^T bears the rest.

    `chosen` is (R, virtual); those of cut joints are borne by their own rows, and added to the weights `readers`.
    """
    R, virtual = chosen
    for s in range(virtual.size):
        total = 0.0
        for j in range(left.size):
            total += at(X, j, first + s) * left[j]
        if virtual[s] >= 0:
            readers[virtual[s]] += total
        for j in range(left.size):
            left[j] -= total * (at(E, virtual[s], j) if virtual[s] >= 0 else at(R, s, j))


@inline
def put_multiplier_columns(model, e, balance, left, column, L):
    """L, padded as `balance`: multipliers that balance each of its columns; zero for redundant rows.

    `left` and `column` are scratch for one column.
    """
    clear(L)
    if is_sparse(model, e):
        for c in range(L.shape[1]):
            for j in range(left.size):
                left[j] = at(balance, j, c)
            balancing_multipliers(model, e, left, column)
            for r in range(L.shape[0]):
                put_element(SCALAR, L, r, c, column[r])
        return
    (dependent, columns), order, width = dependent_dofs(model, e), numbering(model)[2], L.shape[1] // WIDTH
    rows = integers_in(e, order, L.shape[0])
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(SCALAR, model, e, c)
        row = kept(e, c, ROW)
        for k in range(rank):
            for b in range(width):
                total = splat(LANES, 0.0)
                for i in range(rank):
                    x = at(table, i, integer(columns, first + k))
                    total = total + x * load(LANES, balance, width * integer(dependent, first + i) + b)
                store(LANES, L, width * integer(rows, row + k) + b, total)


@inline
def put_gradient_of_all(model, q, lam, reads, prepared, room):
    """The gradient by q and v of the weighted sum of the equations of motion and of all rows."""
    world, weighed = prepared.world, room.weighed
    put_links(model, prepared, weighed)
    add_cuts(model, world, False, lam, weighed)
    add_contacts(model, world, lam, weighed)
    if reads:
        add_cuts(model, world, True, lam, weighed)
    sum_inward(model, world, weighed.adjoints)
    put_gradient(model, q, world, weighed, room.of_q, room.of_v)


@inline
def hold_positions(model, e, G, left, work, rho):
    """G_h^T rho = left, by an elimination of its own if some constraints are not holonomic."""
    m, n, same = G.shape[0], G.shape[1], True
    mask = take_vector(work, m)
    holonomic_rows(model, mask)
    for i in range(m):
        for j in range(n if mask[i] == 0.0 else 0):
            same = same and at(G, i, j) == 0.0
    if same:
        minimum_norm_multipliers(SCALAR, model, e, left, take_vector(work, multipliers_size(SCALAR, model)), rho)
        return
    G_h, gamma, choosable = take_matrix(work, m, n), take_vector(work, m), take_vector(work, padded(n))
    of_positions = take_vector(work, elimination_size(SCALAR, model))
    for i in range(m):
        gamma[i] = 0.0
        for j in range(n):
            G_h[i, j] = mask[i] * G[i, j]
    for j in range(n):
        choosable[j] = 1.0
    eliminate(model, G_h, gamma, choosable, RANK_TOLERANCE, of_positions)
    minimum_norm_multipliers(
        SCALAR, model, of_positions, left, take_vector(work, multipliers_size(SCALAR, model)), rho)


# ---- the Hessian


@inline
def add_turns(model, turn, columns, b, of_motion):
    """Adds half of turn . [d, dv], joint by joint, to the variations of the gradient by q and v (`RateWeights`)."""
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
def put_products(columns, sizes, of_motion, of_lam, P, H):
    """H from the variations of the gradient along the columns of the state: columns^T times these, made symmetric."""
    (p_y, x, nu), (of_q, of_v, of_a) = sizes, of_motion
    n, m = of_q.shape[0], of_lam.shape[0]
    clear(P)
    add_products_in_registers(columns.N, 0, 1, columns.N.shape[1], p_y, n, of_q, P)
    add_products_in_registers(columns.X, 0, 1, columns.X.shape[1], x, n, of_v, P)
    add_products_in_registers(columns.A, 0, 1, columns.A.shape[1], x + nu, n, of_a, P)
    add_products_in_registers(columns.L, 0, 1, columns.L.shape[1], x + nu, m, of_lam, P)
    for i in range(x + nu):
        for j in range(x + nu):
            y = 0.0
            if i < x and j < x:
                y = 0.5 * (at(P, i, j) + at(P, j, i))
            elif i < x or j < x:
                y = at(P, max(i, j), min(i, j))
            H[i, j] = y


@inline
def put_weights(k, weights, weighed):
    """No weights of the rows yet; those of cut joints' coordinates as given."""
    rows, readers = weighed.rows, weighed.readers
    for r in range(rows.phi.size):
        rows.phi[r] = rows.psi[r] = rows.residual[r] = 0.0
    for r in range(readers.phi.size):
        readers.phi[r], readers.psi[r] = at(weights.reader_accelerations, k, r), at(weights.reader_rates, k, r)
        readers.residual[r] = 0.0


@inline
def minus_sum(a, b, k, out):
    """out = -(a + b[k])."""
    for j in range(out.size):
        out[j] = -(a[j] + at(b, k, j))


@inline
def put_adjoints(model, state, coordinates, weights, k, e, work, space, prepared, room):
    """The adjoint equations of weighted sum k: weights of all rows, and the wrenches of the links."""
    (R_y, virtual_y, R_w, virtual_w), (rows, readers) = coordinates, (room.weighed.rows, room.weighed.readers)
    reads, left, begin = reads_cuts(virtual_y) or reads_cuts(virtual_w), room.left, work[0]
    put_weights(k, weights, room.weighed)
    put_mu(prepared, k, weights, room.weighed.mu, left)
    if space.lam.size > 0:
        minimum_norm_multipliers(SCALAR, model, e, left, room.scratch, rows.phi)
        put_gradient_of_all(model, state.q, space.lam, reads, prepared, room)
        minus_sum(room.of_v, weights.v, k, left)
        leave_to_rows((R_w, virtual_w), prepared.E, space.X, virtual_y.size, left, readers.psi)
        minimum_norm_multipliers(SCALAR, model, e, left, room.scratch, rows.psi)
    put_gradient_of_all(model, state.q, space.lam, reads, prepared, room)
    if space.lam.size > 0:
        minus_sum(room.of_q, weights.q, k, left)
        leave_to_rows((R_y, virtual_y), prepared.E, space.N, 0, left, readers.residual)
        hold_positions(model, e, space.G, left, work, rows.residual)
        hold_cuts(model, prepared.world, False, room.weighed)
        hold_contacts(model, prepared.world, room.weighed)
        if reads:
            hold_cuts(model, prepared.world, True, room.weighed)
    work[0] = begin


@inline
def put_columns(model, state, turn, lam, reads, prepared, room, sizes, H):
    """The second variations along all columns."""
    columns, weighed = prepared.columns, room.weighed
    m, size = lam.size, WIDTH * MOTION * link_count(model)
    for b in range(room.P.shape[1] // WIDTH):
        variations = vector_in(prepared.variations, b * size, size)
        for r in range(m):
            store(LANES, room.lam_2, r, load(LANES, columns.L, columns.L.shape[1] // WIDTH * r + b))
        vary_links(model, prepared, variations, weighed.adjoints, weighed.rates)
        vary_cuts(model, prepared.world, False, (lam, room.lam_2), weighed, b, variations, room.of_lam)
        vary_contacts(model, prepared.world, (lam, room.lam_2), weighed, b, variations, room.of_lam)
        if reads:
            vary_cuts(model, prepared.world, True, (lam, room.lam_2), weighed, b, variations, room.of_lam)
        vary_gradient(model, state.q, prepared, weighed, b, variations, room.of_motion)
        add_turns(model, turn, columns, b, room.of_motion)
    put_products(columns, sizes, room.of_motion, room.of_lam, room.P, H)


@late(MODEL, STATE, COORDINATES, MANY, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessians(model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of the motion with each row of weights by (y, w, u).

    Arguments as for `model_hessian`.
    """
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    (_, virtual_y, _, virtual_w), x, c = coordinates, space.A.shape[0], H.shape[1]
    p_y, p_w, reads = virtual_y.size, virtual_w.size, reads_cuts(virtual_y) or reads_cuts(virtual_w)
    size = WIDTH * MOTION * links
    work[0] = first_place(work)
    L = take_matrix(work, m, padded(c))
    prepared = Prepared(
        take_vector(work, world_size(model)), take_vector(work, BODY * links), take_matrix(work, n, n),
        take_matrix(work, nz, n), take_matrix(work, n, padded(p_w)), take_matrix(work, n, padded(p_w)),
        take_matrix(work, p_w, padded(p_w)), Columns(space.N, space.X, space.da, L),
        take_vector(work, size * (padded(x) // WIDTH)))
    weighed = Weighed(
        take_vector(work, n), RowWeights(take_vector(work, m), take_vector(work, m), take_vector(work, m)),
        RowWeights(take_vector(work, nz), take_vector(work, nz), take_vector(work, nz)),
        take_vector(work, LINK * links), take_vector(work, WIDTH * LINK * links))
    room = Room(
        weighed, take_vector(work, n), take_vector(work, n), take_vector(work, n),
        take_vector(work, multipliers_size(SCALAR, model)),
        (take_matrix(work, n, padded(x)), take_matrix(work, n, padded(x)), take_matrix(work, n, padded(x))),
        take_matrix(work, m, padded(x)), take_vector(work, WIDTH * m), take_matrix(work, c, padded(x)))
    crba_kernel(SCALAR, model, state.q, take_vector(work, crba_size(model)), prepared.M)
    world_positions(SCALAR, model, state.q, prepared.world)
    world_velocities(SCALAR, model, state.v, prepared.world)
    put_bodies(SCALAR, model, state.v, space.a, state.f_ext, prepared.world, prepared.bodies)
    if reads:
        reader_rows(SCALAR, model, prepared.world, prepared.E)
    put_inertia(space.X, p_y, prepared, take_matrix(work, p_w, padded(p_w)))
    clear(room.of_lam)
    if m > 0:
        if is_long(model):
            complete_terms(model, space.M, space.G)
        put_multiplier_columns(model, e, space.balance, room.left, take_vector(work, m), L)
    for b in range(padded(x) // WIDTH):
        vary_motions(model, prepared.world, prepared.bodies, prepared.columns, b,
                     vector_in(prepared.variations, b * size, size))
    for k in range(weights.q.shape[0]):
        put_adjoints(model, state, coordinates, weights, k, e, work, space, prepared, room)
        put_columns(model, state, vector_in(weights.turn, k * n, n), space.lam, reads, prepared, room, (p_y, x, c - x),
                    matrix_in(H, k * c * c, c, c))


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
    """of_q, the weights of displacements that the rates R ad(d, v) have, for weights R^T y of rates in `turn`."""
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            zero = 0.0, 0.0, 0.0
            c, V = (get3(SCALAR, turn, first), zero), (get3(SCALAR, v, first), zero)
            if count == 6:
                c, V = (c[0], get3(SCALAR, turn, first + 3)), (V[0], get3(SCALAR, v, first + 3))
            by_q = minus_ad_dual(V, c)
            for k in range(3):
                store(SCALAR, of_q, first + k, by_q[0][k])
                if count == 6:
                    store(SCALAR, of_q, first + 3 + k, by_q[1][k])


@late(MODEL, STATE, COORDINATES, SUMS, VECTOR, VECTOR, SPACE, MATRIX)
def model_hessians(model, state, coordinates, weights, e, work, space, H):
    """H (count (x + nu), x + nu): the Hessians of sums with each row of weights, by (y, w, u).

    Arguments as for `model_hessian`.
    """
    n, nz, (R_y, virtual_y, R_w, virtual_w) = model.ints[NV], model.ints[N_VIRTUAL], coordinates
    count, nu = weights.y.shape[0], H.shape[1] - space.A.shape[0]
    work[0] = first_place(work)
    given = MotionWeights(
        take_matrix(work, count, n), take_matrix(work, count, n), take_matrix(work, count, n),
        take_matrix(work, count, n), take_matrix(work, count, nz), take_matrix(work, count, nz))
    rest = take_vector(work, motion_hessian_size(model, virtual_y.size, virtual_w.size, nu))
    for j in range(count * n):
        store(SCALAR, given.q, j, 0.0)
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
            store(SCALAR, given.v, j, load(SCALAR, given.turn, j))
    motion_hessians(model, state, coordinates, given, e, rest, space, H)


@late(MODEL, STATE, COORDINATES, ONE, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of the motion with these weights by (y, w, u), as `model_hessian`."""
    q, v, a, turn, rates, accelerations = weights
    motion_hessians(
        model, state, coordinates,
        MotionWeights(matrix_in(q, 0, 1, q.size), matrix_in(v, 0, 1, v.size), matrix_in(a, 0, 1, a.size),
                      matrix_in(turn, 0, 1, turn.size), matrix_in(rates, 0, 1, rates.size),
                      matrix_in(accelerations, 0, 1, rates.size)), e, work, space, H)


@late(MODEL, STATE, COORDINATES, ONE_RATE, VECTOR, VECTOR, SPACE, MATRIX)
def model_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of weights.y . ydot + weights.w . wdot by (y, w, u); zero for u twice.

    To be called after `linearize_in_place` and `complete_derivatives` of the same state. `e` is the elimination that
    the former leaves at the first place of its workspace, not read without constraints; `work` has `model_hessian_size`
    numbers. For balls and free joints among y, ydot are the rates of displacements from a state that moves on with the
    velocity v, as in `liedyn.linear.local`: ydot = R (v + [d, v0] + [d, v - v0]/2).
    """
    (y, w), none = weights, matrix_in(weights.y, 0, 0, 0)
    sums = SumWeights(matrix_in(y, 0, 1, y.size), matrix_in(w, 0, 1, w.size), none, none)
    model_hessians(model, state, coordinates, sums, e, work, space, H)
