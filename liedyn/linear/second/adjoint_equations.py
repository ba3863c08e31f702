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
from liedyn.linear.second.adjoint_cuts import add_cuts, add_cuts_of_rates, hold_cuts
from liedyn.linear.second.adjoint_recursion import (
    put_gradient_by_q, put_gradient_by_v, put_joints, put_links, sum_inward, times_related,
)
from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_row, at, clear, columns_of, element, padded, put_element, solve_rows_for,
)
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, splat, store, take_matrix, take_vector, vector_in, width_of,
)
from liedyn.machine.simd.registers import is_zero
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.constraints.elimination import (
    ROW, cluster_count, dependent_dofs, eliminate, elimination_size, kept, numbering, put_row_order, solved_cluster,
)
from liedyn.mechanics.constraints.reduced import minimum_norm_multipliers, multipliers_size
from liedyn.mechanics.constraints.sparse_elimination import is_sparse, rank_of
from liedyn.mechanics.constraints.sparse_reduced import balancing_multipliers
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.packed import NV, N_ROWS

Room = namedtuple("Room", "weighed left of_q of_v scratch of_motion of_lam lam_2 P hessian")
"""Workspaces for one weighted sum after the other."""

Shares = namedtuple("Shares", "G_sharp order z theta prepared weighed cuts")
"""For weights of multipliers: a right inverse of the independent rows and their order, z, theta, and what theta . G z
takes in the place of the equations of motion, with data of cut joints; empty if there are no such weights."""


@inline
def add_readers(lane, E, weights, k, factor, out):
    """out += factor E^T weights[k]: what cut joints' coordinates weigh, as weights of all velocities."""
    for r in range(columns_of(lane, weights)):
        x = factor * element(lane, weights, k, r)
        for j in range(0 if is_zero(x) else columns_of(lane, E)):
            store(lane, out, j, load(lane, out, j) + x * element(lane, E, r, j))


@inline
def put_inertia(lane, X, p_y, prepared, identity):
    """S, M S and the inverse of S^T M S, with as much scratch."""
    S, MS, inverse = prepared.S, prepared.MS, prepared.inverse
    n, p = S.shape[0], identity.shape[0]
    clear(S)
    clear(MS)
    clear(inverse)
    clear(identity)
    for j in range(n):
        for s in range(p):
            put_element(lane, S, j, s, element(lane, X, j, p_y + s))
    add_product(lane, 1.0, prepared.M, n, S, MS)
    for j in range(n):
        for s in range(p):
            x = element(lane, S, j, s)
            if not is_zero(x):
                add_row(identity, s, x, MS, j)
    for s in range(p):
        put_element(lane, inverse, s, s, splat(lane, 1.0))
    solve_rows_for(lane, identity, inverse)


@inline
def put_left(lane, model, prepared, k, weights, mu, left):
    """left = -(M mu + nu_a); nu_a includes the readers' accelerations."""
    for j in range(prepared.M.shape[0]):
        store(lane, left, j, -(times_related(lane, model, mu, prepared.M, j) + element(lane, weights.a, k, j)))
    add_readers(lane, prepared.E, weights.reader_accelerations, k, -1.0, left)


@inline
def put_mu(lane, model, prepared, k, weights, mu, left):
    """Adds to mu, which moves the rows as it should, S m with S^T (M (mu + S m) + nu_a) = 0; and `put_left`."""
    S, n, p = prepared.S, prepared.M.shape[0], prepared.inverse.shape[0]
    put_left(lane, model, prepared, k, weights, mu, left)
    for s in range(p):
        total = splat(lane, 0.0)
        for j in range(n):
            total = total + element(lane, S, j, s) * load(lane, left, j)
        for t in range(0 if is_zero(total) else p):
            m = total * element(lane, prepared.inverse, s, t)
            for j in range(n):
                store(lane, mu, j, load(lane, mu, j) + element(lane, S, j, t) * m)
    put_left(lane, model, prepared, k, weights, mu, left)


@inline
def leave_to_rows(lane, chosen, E, X, first, left, readers):
    """Take from `left` the part that the chosen coordinates R bear, R^T S^T left, so that G^T bears the rest.

    `chosen` is (R, virtual); those of cut joints are borne by their own rows, and added to the weights `readers`.
    """
    (R, virtual), n = chosen, X.shape[0]
    for s in range(virtual.size):
        total = splat(lane, 0.0)
        for j in range(n):
            total = total + element(lane, X, j, first + s) * load(lane, left, j)
        if virtual[s] >= 0:
            store(lane, readers, virtual[s], load(lane, readers, virtual[s]) + total)
        for j in range(n):
            x = element(lane, E, virtual[s], j) if virtual[s] >= 0 else element(lane, R, s, j)
            store(lane, left, j, load(lane, left, j) - total * x)


@inline
def put_multiplier_columns(lane, model, e, balance, left, column, L):
    """L, padded as `balance`: multipliers that balance each of its columns; zero for redundant rows.

    `left` and `column` are scratch for one column.
    """
    clear(L)
    if width_of(lane) == 1 and is_sparse(model, e):
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
        table, first, rank = solved_cluster(lane, model, e, c)
        row = kept(e, c, ROW)
        for k in range(rank):
            for b in range(width):
                total = splat(LANES, 0.0)
                for i in range(rank):
                    x = element(lane, table, i, integer(columns, first + k))
                    total = total + x * load(LANES, balance, width * integer(dependent, first + i) + b)
                store(LANES, L, width * integer(rows, row + k) + b, total)


@inline
def put_gradient_of_rates(lane, model, lam, reads, prepared, weighed, of_v):
    """The gradient by v of the weighted sum of the equations of motion and of all rows."""
    world = prepared.world
    put_links(lane, model, world, weighed)
    add_cuts_of_rates(lane, model, world, False, weighed)
    if width_of(lane) == 1:
        add_contacts(model, world, lam, weighed)
    if reads:
        add_cuts_of_rates(lane, model, world, True, weighed)
    sum_inward(lane, model, world, weighed.adjoints)
    put_gradient_by_v(lane, model, prepared, weighed, of_v)


@inline
def put_gradient_of_all(lane, model, lam, reads, prepared, weighed, of_q):
    """The gradient by q of the weighted sum of the equations of motion and of all rows."""
    world = prepared.world
    put_links(lane, model, world, weighed)
    add_cuts(lane, model, world, False, weighed)
    if width_of(lane) == 1:
        add_contacts(model, world, lam, weighed)
    if reads:
        add_cuts(lane, model, world, True, weighed)
    sum_inward(lane, model, world, weighed.adjoints)
    put_gradient_by_q(lane, model, prepared, weighed, of_q)


@inline
def hold_positions(lane, model, e, G, left, work, rho):
    """G_h^T rho = left, by an elimination of its own if some constraints are not holonomic, which those in lanes
    are."""
    m, n, same = model.ints[N_ROWS], model.ints[NV], True
    mask, scratch = take_vector(work, m), take_vector(work, multipliers_size(lane, model))
    holonomic_rows(model, mask)
    for i in range(m if width_of(lane) == 1 else 0):
        for j in range(n if mask[i] == 0.0 else 0):
            same = same and at(G, i, j) == 0.0
    if same:
        minimum_norm_multipliers(lane, model, e, left, scratch, rho)
        return
    G_h, gamma, choosable = take_matrix(work, m, n), take_vector(work, m), take_vector(work, padded(n))
    of_positions = take_vector(work, elimination_size(SCALAR, model))
    for i in range(m):
        gamma[i] = 0.0
        for j in range(n):
            G_h[i, j] = mask[i] * at(G, i, j)
    for j in range(n):
        choosable[j] = 1.0
    eliminate(model, G_h, gamma, choosable, RANK_TOLERANCE, of_positions)
    minimum_norm_multipliers(SCALAR, model, of_positions, left, scratch, rho)


@inline
def put_weights(lane, k, weights, weighed):
    """No weights of the rows yet; those of cut joints' coordinates as given."""
    rows, readers = weighed.rows, weighed.readers
    for r in range(rows.phi.size):
        rows.phi[r] = rows.psi[r] = rows.residual[r] = 0.0
    for r in range(columns_of(lane, weights.reader_rates)):
        store(lane, readers.phi, r, element(lane, weights.reader_accelerations, k, r))
        store(lane, readers.psi, r, element(lane, weights.reader_rates, k, r))
        store(lane, readers.residual, r, 0.0)


@inline
def minus_sum(lane, n, a, b, k, out):
    """out = -(a + b[k]), n numbers."""
    for j in range(n):
        store(lane, out, j, -(load(lane, a, j) + element(lane, b, k, j)))


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
def put_adjoints(lane, model, coordinates, weights, k, e, work, space, prepared, room, shares):
    """The adjoint equations of weighted sum k: weights of all rows, and the wrenches of the links."""
    (R_y, virtual_y, R_w, virtual_w), (mu, rows, readers, _, _, _, _) = coordinates, room.weighed
    reads, left, begin = reads_cuts(virtual_y) or reads_cuts(virtual_w), room.left, work[0]
    n, m = model.ints[NV], model.ints[N_ROWS]
    constrained, lam = m > 0, vector_in(space.lam, 0, width_of(lane) * m)
    put_theta(model, e, space.G, weights, k, room, shares, mu)
    put_weights(lane, k, weights, room.weighed)
    put_mu(lane, model, prepared, k, weights, mu, left)
    if constrained:
        minimum_norm_multipliers(lane, model, e, left, room.scratch, rows.phi)
        put_gradient_of_rates(lane, model, lam, reads, prepared, room.weighed, room.of_v)
        minus_sum(lane, n, room.of_v, weights.v, k, left)
        leave_to_rows(lane, (R_w, virtual_w), prepared.E, space.X, virtual_y.size, left, readers.psi)
        minimum_norm_multipliers(lane, model, e, left, room.scratch, rows.psi)
    if shares.theta.size > 0:  # the gradient of theta . G z by q
        for r in range(rows.psi.size):
            store(SCALAR, shares.weighed.rows.psi, r, shares.theta[r])
        put_gradient_of_all(lane, model, lam, False, shares.prepared, shares.weighed, room.of_q)
        put_joints(lane, model, shares.prepared.world, shares.weighed)
        for j in range(mu.size):
            left[j] = room.of_q[j]
    put_gradient_of_all(lane, model, lam, reads, prepared, room.weighed, room.of_q)
    if constrained:
        for j in range(mu.size if shares.theta.size > 0 else 0):
            room.of_q[j] += left[j]
        minus_sum(lane, n, room.of_q, weights.q, k, left)
        leave_to_rows(lane, (R_y, virtual_y), prepared.E, space.N, 0, left, readers.residual)
        hold_positions(lane, model, e, space.G, left, work, rows.residual)
        hold_cuts(lane, model, False, room.weighed)
        if width_of(lane) == 1:
            hold_contacts(model, prepared.world, room.weighed)
        if reads:
            hold_cuts(lane, model, True, room.weighed)
    put_joints(lane, model, prepared.world, room.weighed)
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
