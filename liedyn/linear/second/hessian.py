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
from liedyn.linear.second.adjoint_cuts import RowWeights, add_cuts, hold_cuts, vary_cuts
from liedyn.linear.second.adjoint_recursion import LINK, put_gradient, put_links, sum_inward, vary_gradient, vary_links
from liedyn.linear.sensitivity.link_sensitivity import Columns
from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_products_in_registers, add_transposed_product, at, clear, padded, put_element, solve_rows,
)
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, splat, store, take_matrix, take_vector, vector_in,
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
from liedyn.mechanics.tree.tangent_recursion import BODY, VARIATION, get_block6, put_bodies
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, dof_count, first_dof, get3, link_count

MotionWeights = namedtuple("MotionWeights", "q v a turn reader_rates reader_accelerations")
"""Weights of displacements, velocities and accelerations (nv each), of the rates of coordinates in their own tangent
(nv, `RateWeights`), and of the velocities and accelerations of cut joints' coordinates (nz each)."""

RateWeights = namedtuple("RateWeights", "y w")
"""Weights of the rates of the coordinates y, and of the velocities w, of a local state space."""

Weighed = namedtuple("Weighed", "mu rows readers lam reads")
"""mu, the weights of rows and of cut joints' coordinates, the multipliers, and whether such coordinates are read."""

WEIGHTS = group(MotionWeights, *[VECTOR] * 6)
RATES = group(RateWeights, *[VECTOR] * 2)


@kernel_in_place
def motion_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `motion_hessian`."""
    n, m, nz, x, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], p_y + p_w, link_count(model)
    of_links = links * (BODY + LINK + WIDTH * (VARIATION + LINK)) + world_size(model)
    reduced = n * n + crba_size(model) + 2 * n * padded(p_w) + p_w * padded(p_w + 1)
    multipliers = m * padded(x + nu) + 3 * multipliers_size(SCALAR, model) + WIDTH * m + 6 * m
    columns = (3 * n + m + x + nu) * padded(x)
    positions = elimination_size(SCALAR, model) + m * n + padded(n)
    return of_links + reduced + multipliers + columns + positions + 4 * n + nz * (3 + n) + WIDTH * 48


@kernel_in_place
def model_hessian_size(model, p_y, p_w, nu):
    """Size of the workspace of `model_hessian`."""
    return motion_hessian_size(model, p_y, p_w, nu) + 4 * model.ints[NV] + 2 * model.ints[N_VIRTUAL] + WIDTH * 8


# ---- the adjoint equations


@inline
def add_readers(E, weights, factor, out):
    """out += factor E^T weights: what cut joints' coordinates weigh, as weights of all velocities."""
    for k in range(weights.size):
        x = factor * load(SCALAR, weights, k)
        for j in range(out.size if x != 0.0 else 0):
            out[j] += x * at(E, k, j)


@inline
def put_mu(weights, E, M, X, p_y, S, MS, reduced, mu, left):
    """mu, with S^T M S m = -S^T nu_a, and left = -(M mu + nu_a); nu_a includes the readers' accelerations."""
    n, p = mu.size, reduced.shape[0]
    clear(S)
    clear(MS)
    clear(reduced)
    for j in range(n):
        left[j], mu[j] = -weights.a[j], 0.0
        for s in range(p):
            put_element(SCALAR, S, j, s, at(X, j, p_y + s))
    add_readers(E, weights.reader_accelerations, -1.0, left)
    add_product(SCALAR, 1.0, M, n, S, MS)
    add_transposed_product(S, 0, p, MS, reduced)
    for s in range(p):
        total = 0.0
        for j in range(n):
            total += at(S, j, s) * left[j]
        put_element(SCALAR, reduced, s, p, total)
    solve_rows(SCALAR, reduced)
    for s in range(p):
        m = at(reduced, s, p)
        for j in range(n):
            mu[j] += at(S, j, s) * m
            left[j] -= at(MS, j, s) * m


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
def put_gradient_of_all(model, state, world, bodies, weighed, adjoints, of_q, of_v):
    """The gradient by q and v of the weighted sum of the equations of motion and of all rows."""
    put_links(model, weighed.mu, world, bodies, adjoints)
    add_cuts(model, world, False, weighed.rows, weighed.lam, adjoints)
    if weighed.reads:
        add_cuts(model, world, True, weighed.readers, weighed.lam, adjoints)
    sum_inward(model, world, adjoints)
    put_gradient(model, state.q, weighed.mu, world, adjoints, of_q, of_v)


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
def put_weights(model, weights, rows, readers):
    """No weights of the rows yet; those of cut joints' coordinates as given."""
    for k in range(rows.phi.size):
        rows.phi[k] = rows.psi[k] = rows.residual[k] = 0.0
    for k in range(readers.phi.size):
        readers.phi[k], readers.psi[k] = weights.reader_accelerations[k], weights.reader_rates[k]
        readers.residual[k] = 0.0


@inline
def minus_sum(a, b, out):
    for j in range(b.size):
        out[j] = -(a[j] + b[j])


@late(MODEL, STATE, COORDINATES, WEIGHTS, VECTOR, VECTOR, SPACE, MATRIX)
def motion_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of the motion with these weights by (y, w, u), at a linearized state.

    Arguments as for `model_hessian`.
    """
    n, m, nz, links = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], link_count(model)
    (R_y, virtual_y, R_w, virtual_w), x = coordinates, space.A.shape[0]
    p_y, p_w, nu, reads = virtual_y.size, virtual_w.size, H.shape[0] - x, reads_cuts(virtual_y) or reads_cuts(virtual_w)
    work[0] = first_place(work)
    world, bodies, adjoints = (
        take_vector(work, world_size(model)), take_vector(work, BODY * links), take_vector(work, LINK * links))
    M, E, L = take_matrix(work, n, n), take_matrix(work, nz, n), take_matrix(work, m, padded(x + nu))
    left, mu, of_q, of_v = take_vector(work, n), take_vector(work, n), take_vector(work, n), take_vector(work, n)
    rows = RowWeights(take_vector(work, m), take_vector(work, m), take_vector(work, m))
    readers = RowWeights(take_vector(work, nz), take_vector(work, nz), take_vector(work, nz))
    reduced, scratch = take_matrix(work, p_w, padded(p_w + 1)), take_vector(work, multipliers_size(SCALAR, model))
    weighed = Weighed(mu, rows, readers, space.lam, reads)

    crba_kernel(SCALAR, model, state.q, take_vector(work, crba_size(model)), M)
    world_positions(SCALAR, model, state.q, world)
    world_velocities(SCALAR, model, state.v, world)
    put_bodies(SCALAR, model, state.v, space.a, state.f_ext, world, bodies)
    if reads:
        reader_rows(SCALAR, model, world, E)
    put_weights(model, weights, rows, readers)
    put_mu(weights, E, M, space.X, p_y, take_matrix(work, n, padded(p_w)), take_matrix(work, n, padded(p_w)), reduced,
           mu, left)
    if m > 0:
        if is_long(model):
            complete_terms(model, space.M, space.G)
        minimum_norm_multipliers(SCALAR, model, e, left, scratch, rows.phi)
        put_multiplier_columns(model, e, space.balance, left, take_vector(work, m), L)
        put_gradient_of_all(model, state, world, bodies, weighed, adjoints, of_q, of_v)
        minus_sum(of_v, weights.v, left)
        leave_to_rows((R_w, virtual_w), E, space.X, p_y, left, readers.psi)
        minimum_norm_multipliers(SCALAR, model, e, left, scratch, rows.psi)
    put_gradient_of_all(model, state, world, bodies, weighed, adjoints, of_q, of_v)
    if m > 0:
        minus_sum(of_q, weights.q, left)
        leave_to_rows((R_y, virtual_y), E, space.N, 0, left, readers.residual)
        hold_positions(model, e, space.G, left, work, rows.residual)
        hold_cuts(model, world, False, rows, adjoints)
        if reads:
            hold_cuts(model, world, True, readers, adjoints)
    columns = Columns(space.N, space.X, space.da, L)
    put_columns(model, state, weights.turn, weighed, world, bodies, adjoints, columns, work, H, p_y, x)


@inline
def put_columns(model, state, turn, weighed, world, bodies, adjoints, columns, work, H, p_y, x):
    """The second variations along all columns, with `weighed` adjoints."""
    mu, rows, readers, lam, reads = weighed
    n, m, links, w = mu.size, lam.size, link_count(model), padded(x)
    variations, rates = take_vector(work, WIDTH * VARIATION * links), take_vector(work, WIDTH * LINK * links)
    of_motion = take_matrix(work, n, w), take_matrix(work, n, w), take_matrix(work, n, w)
    of_lam, lam_2, P = take_matrix(work, m, w), take_vector(work, WIDTH * m), take_matrix(work, H.shape[0], w)
    clear(of_lam)
    for b in range(w // WIDTH):
        for r in range(m):
            store(LANES, lam_2, r, load(LANES, columns.L, columns.L.shape[1] // WIDTH * r + b))
        vary_links(model, world, bodies, columns, b, variations, adjoints, rates)
        vary_cuts(model, world, False, rows, (lam, lam_2), b, variations, adjoints, rates, of_lam)
        if reads:
            vary_cuts(model, world, True, readers, (lam, lam_2), b, variations, adjoints, rates, of_lam)
        vary_gradient(model, state.q, mu, world, columns, b, variations, adjoints, rates, of_motion)
        add_turns(model, turn, columns, b, of_motion)
    put_products(columns, (p_y, x, H.shape[0] - x), of_motion, of_lam, P, H)


@inline
def add_rows(rows, virtual, weights, out, readers):
    """out += R^T weights for rows R of the tree; the weights of cut joints' coordinates are added to `readers`."""
    for s in range(virtual.size):
        if virtual[s] >= 0:
            readers[virtual[s]] += weights[s]
        else:
            for j in range(out.size):
                out[j] += weights[s] * at(rows, s, j)


@late(MODEL, STATE, COORDINATES, RATES, VECTOR, VECTOR, SPACE, MATRIX)
def model_hessian(model, state, coordinates, weights, e, work, space, H):
    """H (x + nu, x + nu): the Hessian of weights.y . ydot + weights.w . wdot by (y, w, u); zero for u twice.

    To be called after `linearize_in_place` and `complete_derivatives` of the same state. `e` is the elimination that
    the former leaves at the first place of its workspace, not read without constraints; `work` has `model_hessian_size`
    numbers. For balls and free joints among y, ydot are the rates of displacements from a state that moves on with the
    velocity v, as in `liedyn.linear.local`: ydot = R (v + [d, v0] + [d, v - v0]/2).
    """
    n, nz, (R_y, virtual_y, R_w, virtual_w) = model.ints[NV], model.ints[N_VIRTUAL], coordinates
    work[0] = first_place(work)
    all_weights = take_matrix(work, 4, n)
    given = MotionWeights(vector_in(all_weights, 0, n), vector_in(all_weights, n, n), vector_in(all_weights, 2 * n, n),
                          vector_in(all_weights, 3 * n, n), take_vector(work, nz), take_vector(work, nz))
    size = motion_hessian_size(model, virtual_y.size, virtual_w.size, H.shape[0] - space.A.shape[0])
    rest = take_vector(work, size)
    for k in range(all_weights.size):
        store(SCALAR, all_weights, k, 0.0)
    for k in range(nz):
        given.reader_rates[k] = given.reader_accelerations[k] = 0.0
    add_rows(R_w, virtual_w, weights.w, given.a, given.reader_accelerations)
    add_rows(R_y, virtual_y, weights.y, given.turn, given.reader_rates)
    for j in range(n):
        given.v[j] = given.turn[j]
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            zero = 0.0, 0.0, 0.0
            c, v = (get3(SCALAR, given.turn, first), zero), (get3(SCALAR, state.v, first), zero)
            if count == 6:
                c, v = (c[0], get3(SCALAR, given.turn, first + 3)), (v[0], get3(SCALAR, state.v, first + 3))
            by_q = minus_ad_dual(v, c)
            for k in range(3):
                given.q[first + k] = by_q[0][k]
                if count == 6:
                    given.q[first + 3 + k] = by_q[1][k]
    motion_hessian(model, state, coordinates, given, e, rest, space, H)
