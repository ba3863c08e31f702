"""The adjoint equations of second derivatives (`liedyn.linear.second.hessian`), from what a linearization leaves.

A weighted sum of the multipliers, nu . lambda, adds to them: the least ones, lambda = G z, have besides the equations
of motion the weights theta of lambda - G z,

    G mu = theta - nu      G^T theta = 0

so that theta is what G leaves of nu, zero unless rows are redundant. Its second variations are those of the number
theta . G z, with z in the place of velocities, along the columns G z' = lambda' - G' z.
"""
from collections import namedtuple

from liedyn.linear.choice import reads_cuts
from liedyn.linear.local import put_right_inverse
from liedyn.linear.second.adjoint_contacts import add_contacts, hold_contacts
from liedyn.linear.second.adjoint_cuts import add_cuts, hold_cuts
from liedyn.linear.second.adjoint_recursion import put_gradient, put_joints, put_links, sum_inward
from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_transposed_product, at, clear, padded, put_element, solve_rows_for,
)
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, splat, store, take_matrix, take_vector,
)
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.constraints.elimination import (
    ROW, cluster_count, dependent_dofs, eliminate, elimination_size, kept, numbering, put_row_order, solved_cluster,
)
from liedyn.mechanics.constraints.reduced import minimum_norm_multipliers, multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import is_sparse, rank_of
from liedyn.mechanics.constraints.sparse_reduced import balancing_multipliers
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

MotionSums = namedtuple("MotionSums", "q v a lam turn reader_rates reader_accelerations")
"""Rows of weights as in `liedyn.linear.second.hessian.MotionWeights`, and of multipliers (m each, or none)."""

Room = namedtuple("Room", "weighed left of_q of_v scratch of_motion of_lam lam_2 P")
"""Workspaces for one weighted sum after the other."""

Shares = namedtuple("Shares", "G_sharp order z theta prepared weighed cuts")
"""For weights of multipliers: a right inverse of the independent rows and their order, z, theta, and what theta . G z
takes in the place of the equations of motion, with data of cut joints; empty if there are no such weights."""


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
def put_left(prepared, k, weights, mu, left):
    """left = -(M mu + nu_a); nu_a includes the readers' accelerations."""
    for j in range(mu.size):
        total = at(weights.a, k, j)
        for i in range(mu.size):
            total += at(prepared.M, j, i) * mu[i]
        left[j] = -total
    add_readers(prepared.E, weights.reader_accelerations, k, -1.0, left)


@inline
def put_mu(prepared, k, weights, mu, left):
    """Adds to mu, which moves the rows as it should, S m with S^T (M (mu + S m) + nu_a) = 0; and `put_left`."""
    S, n, p = prepared.S, mu.size, prepared.inverse.shape[0]
    put_left(prepared, k, weights, mu, left)
    for s in range(p):
        total = 0.0
        for j in range(n):
            total += at(S, j, s) * left[j]
        for t in range(p if total != 0.0 else 0):
            m = total * at(prepared.inverse, s, t)
            for j in range(n):
                mu[j] += at(S, j, t) * m
    put_left(prepared, k, weights, mu, left)


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
def put_gradient_of_all(model, q, lam, reads, prepared, weighed, room):
    """The gradient by q and v of the weighted sum of the equations of motion and of all rows."""
    world = prepared.world
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
def force_of(G, lam, force):
    """force = G^T lam."""
    for j in range(force.size):
        total = 0.0
        for i in range(lam.size):
            total += at(G, i, j) * lam[i]
        force[j] = total


@inline
def put_theta(model, e, G, weights, k, room, shares, mu):
    """theta, and mu that moves the rows by theta - nu."""
    theta, rows = shares.theta, room.weighed.rows
    for j in range(mu.size):
        mu[j] = 0.0
    if theta.size > 0:
        for i in range(theta.size):
            theta[i] = at(weights.lam, k, i)
        force_of(G, theta, room.left)
        minimum_norm_multipliers(SCALAR, model, e, room.left, room.scratch, rows.psi)
        for i in range(theta.size):
            theta[i] -= rows.psi[i]
        for l in range(rank_of(model, e)):
            x = rows.psi[integer(shares.order, l)]
            for j in range(mu.size):
                mu[j] -= at(shares.G_sharp, j, l) * x


@inline
def put_adjoints(model, state, coordinates, weights, k, e, work, space, prepared, room, shares):
    """The adjoint equations of weighted sum k: weights of all rows, and the wrenches of the links."""
    (R_y, virtual_y, R_w, virtual_w), (mu, rows, readers, _, _, _) = coordinates, room.weighed
    reads, left, begin, lam = reads_cuts(virtual_y) or reads_cuts(virtual_w), room.left, work[0], space.lam
    put_theta(model, e, space.G, weights, k, room, shares, mu)
    put_weights(k, weights, room.weighed)
    put_mu(prepared, k, weights, mu, left)
    if lam.size > 0:
        minimum_norm_multipliers(SCALAR, model, e, left, room.scratch, rows.phi)
        put_gradient_of_all(model, state.q, lam, reads, prepared, room.weighed, room)
        minus_sum(room.of_v, weights.v, k, left)
        leave_to_rows((R_w, virtual_w), prepared.E, space.X, virtual_y.size, left, readers.psi)
        minimum_norm_multipliers(SCALAR, model, e, left, room.scratch, rows.psi)
    if shares.theta.size > 0:  # the gradient of theta . G z by q
        for r in range(rows.psi.size):
            store(SCALAR, shares.weighed.rows.psi, r, shares.theta[r])
        put_gradient_of_all(model, state.q, lam, False, shares.prepared, shares.weighed, room)
        put_joints(model, shares.prepared.world, shares.weighed)
        for j in range(mu.size):
            left[j] = room.of_q[j]
    put_gradient_of_all(model, state.q, lam, reads, prepared, room.weighed, room)
    if lam.size > 0:
        for j in range(mu.size if shares.theta.size > 0 else 0):
            room.of_q[j] += left[j]
        minus_sum(room.of_q, weights.q, k, left)
        leave_to_rows((R_y, virtual_y), prepared.E, space.N, 0, left, readers.residual)
        hold_positions(model, e, space.G, left, work, rows.residual)
        hold_cuts(model, prepared.world, False, room.weighed)
        hold_contacts(model, prepared.world, room.weighed)
        if reads:
            hold_cuts(model, prepared.world, True, room.weighed)
    put_joints(model, prepared.world, room.weighed)
    work[0] = begin


@inline
def put_z(model, e, lam, G_sharp, order, z):
    """z with G z = lambda, for multipliers of least norm."""
    put_right_inverse(model, e, G_sharp)
    put_row_order(model, e, order)
    for j in range(z.size):
        z[j] = 0.0
        for l in range(rank_of(model, e)):
            z[j] += at(G_sharp, j, l) * lam[integer(order, l)]


@inline
def put_least_columns(model, e, space, moved, left, column, shares, columns, scratch):
    """L, the variations of the multipliers of least norm, and those of z: G z' = L - (variation of G z).

    `moved` has the latter for the columns of the state, zero for the inputs; `left` and `column` are scratch.
    """
    L, Z = columns
    n, m = left.size, column.size
    for c in range(L.shape[1]):
        for j in range(n):
            left[j] = at(space.balance, j, c)
        minimum_norm_multipliers(SCALAR, model, e, left, scratch, column)
        for r in range(m):
            put_element(SCALAR, L, r, c, column[r])
        if c < space.A.shape[0]:  # what G^T lambda = 0 leaves free follows from lambda = G z
            for j in range(n):
                left[j] = 0.0
                for r in range(m):
                    left[j] += at(space.G, r, j) * at(moved, r, c)
            minimum_norm_multipliers(SCALAR, model, e, left, scratch, column)
            for r in range(m):
                put_element(SCALAR, L, r, c, at(L, r, c) + at(moved, r, c) - column[r])
        for j in range(n):
            z = 0.0
            for l in range(rank_of(model, e)):
                r = integer(shares.order, l)
                z += at(shares.G_sharp, j, l) * (at(L, r, c) - (at(moved, r, c) if c < space.A.shape[0] else 0.0))
            put_element(SCALAR, Z, j, c, z)
