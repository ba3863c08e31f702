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
wrenches on the links. The upper rows are those of ydot = R_y v,

    A_yy = R_y (Delta - ad_v N) + d(R_y v)/dq N        A_yw = R_y S        B_y = 0

with ad_v joint by joint: zero unless a ball or free joint is among the coordinates (its tangent turns with it). Where
y and w are the same coordinates, these are -R ad_v N and 1. Time is held: `Robot.at` sets it.
"""
from collections import namedtuple

import numpy as np

from liedyn.constraints.custom import vary_custom_forces
from liedyn.constraints.cut_rows import (
    cut_bias_kernel, cut_velocity_kernel, vary_cut_accelerations, vary_cut_velocities,
)
from liedyn.constraints.rows import (
    holonomic_rows, push_constraints, reader_rows, residual_rows, vary_acceleration_rows, vary_constraint_wrenches,
    vary_velocity_rows, velocity_rows,
)
from liedyn.dynamics.nullspace import (
    OK, SINGULAR_INERTIA, given_accelerations, invert_rows, shortest_multipliers,
)
from liedyn.dynamics.terms import terms_in_place, terms_size
from liedyn.exchange import add_transposed_product, at, clear, padded, solve_rows_for
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_matrix, take_vector
from liedyn.linearization.upper_rows import put_upper_rows
from liedyn.model.packed import N_ROWS, N_VIRTUAL, NV
from liedyn.tree.aba_derivatives import aba_derivatives_kernel
from liedyn.tree.kinematics import world_size
from liedyn.tree.records import link_count
from liedyn.tree.rnea_derivatives import COMPOSITE
from liedyn.tree.variations import (
    BODY, VARIATION, gather_wrenches, put_bodies, vary_accelerations, vary_forces, vary_velocities, vary_wrenches,
)


@inline
def forced(Z_inverse, rank, rows, virtual, rates, virtual_rates, i, b):
    """Row i of -[G_1; R]^-1 (rates of G_1; of the virtual velocities that are read, zero for others), block b."""
    width, total = rates.shape[1] // WIDTH, splat(LANES, 0.0)
    for k in range(rank):
        total = total - at(Z_inverse, i, k) * load(LANES, rates, width * int(load(SCALAR, rows, k)) + b)
    for s in range(virtual.size):
        if virtual[s] >= 0:
            total = total - at(Z_inverse, i, rank + s) * load(LANES, virtual_rates, width * virtual[s] + b)
    return total


@inline
def reads_cuts(virtual):
    """Is one of the velocities that of a cut joint?"""
    reads = False
    for k in range(virtual.size):
        reads = reads or virtual[k] >= 0
    return reads


@inline
def same_choice(G, mask, R_y, virtual_y, R_w, virtual_w):
    """Are independent coordinates and velocities the same, and all rows that count those of positions?"""
    if virtual_y.size != virtual_w.size:
        return False
    for i in range(mask.size):
        if mask[i] == 0.0:
            for j in range(G.shape[1]):
                if G[i, j] != 0.0:
                    return False
    for k in range(virtual_y.size):
        if virtual_y[k] != virtual_w[k]:
            return False
        for i in range(R_y.shape[1]):
            if R_y[k, i] != R_w[k, i]:
                return False
    return True


@kernel_in_place
def linearize_size(ints, p_y, p_w, nu):
    """Numbers in the workspace of `linearize_in_place`: enough for all that is taken, in the order of the kernel."""
    n, m, nz, links = ints[NV], ints[N_ROWS], ints[N_VIRTUAL], link_count(ints)
    w, x, columns, one = padded(n), padded(p_y + p_w), padded(p_y + p_w + nu), padded(p_w + 1)
    world = max(terms_size(ints), world_size(ints) + COMPOSITE * links)
    state = world + n * n + n + m + 2 * nz + nz * n + (m + n) * (w + 2) + 2 * w + (n + p_w) * one + m * padded(m + 1)
    tree = 4 * n * n
    positions = m + m * n + n * w + (m + n) * (w + 2) + 2 * w
    variations = (BODY + VARIATION * WIDTH) * links + x + (m + 2 * nz) * x
    return 1 + state + max(tree, positions + variations) + p_w * (columns + one) + n * x + 2 * nz * x


@inline
def null_space(Z_inverse, rank, p, out):
    """out (n, p), padded: the last columns of Z_inverse."""
    clear(out)
    for i in range(out.shape[0]):
        for s in range(p):
            out[i, s] = at(Z_inverse, i, rank + s)


@kernel_in_place
def position_null_space(ints, G, mask, E, R_y, virtual_y, tolerance, work, N):
    """N from the holonomic rows alone; returns (status, rank, condition)."""
    n, m, p = ints[NV], ints[N_ROWS], virtual_y.size
    G_h, Z_inverse = take_matrix(work, m, n), take_matrix(work, n, padded(n))
    for i in range(m):
        for j in range(n):
            G_h[i, j] = mask[i] * G[i, j]
    table, rows, columns = take_matrix(work, m + p, padded(n)), take_vector(work, m + p), take_vector(work, m + p)
    free, largest = take_matrix(work, 1, padded(n)), take_vector(work, padded(n))
    status, rank, condition = invert_rows(G_h, E, R_y, virtual_y, tolerance, table, rows, columns, free, largest,
                                          Z_inverse)
    if status == OK:
        null_space(Z_inverse, rank, p, N)
    return status, rank, condition


@inline
def is_open_tree(G, R, virtual):
    """No rows, and every coordinate in its own place?"""
    if G.shape[0] > 0 or R.shape[0] != R.shape[1]:
        return False
    for k in range(R.shape[0]):
        for i in range(R.shape[1]):
            if virtual[k] >= 0 or R[k, i] != (1.0 if i == k else 0.0):
                return False
    return True


@kernel_in_place
def linearize_tree(ints, floats, q, v, tau, f_ext, actuators, world, work, a, Z_inverse, N, X, da):
    """An open tree, N = S = 1, Delta = 0: da = [da/dq, da/dv, M^-1 S_u] from sparse solves. False if M is singular."""
    n = a.size
    L, da_dq, da_dv, inertia_inverse = (take_matrix(work, n, n), take_matrix(work, n, n), take_matrix(work, n, n),
                                        take_matrix(work, n, n))
    aba_derivatives_kernel(SCALAR, ints, floats, q, v, tau, f_ext, world, a, L, da_dq, da_dv, inertia_inverse)
    clear(Z_inverse)
    clear(N)
    clear(X)
    clear(da)
    regular = True
    for i in range(n):
        regular = regular and at(L, i, i) > 0.0
        Z_inverse[i, i] = N[i, i] = X[i, n + i] = 1.0
        for j in range(n):
            da[i, j], da[i, n + j] = at(da_dq, i, j), at(da_dv, i, j)
            x = at(inertia_inverse, i, j)
            for c in range(actuators.shape[1]):
                da[i, 2 * n + c] += x * actuators[j, c]
    return regular


@inline
def put_lower_rows(lower, p_y, p_w, A, B):
    """The rows of wdot in A and B, those of ydot in B."""
    for s in range(p_w):
        for c in range(p_y + p_w):
            A[p_y + s, c] = at(lower, s, c)
        for c in range(B.shape[1]):
            B[p_y + s, c] = at(lower, s, p_y + p_w + c)
    for k in range(p_y):
        for c in range(B.shape[1]):
            B[k, c] = 0.0


@kernel_in_place
def vary_state(ints, floats, q, v, a, lam, p_y, virtual_y, virtual_w, rank, rows, Z_inverse, world, bodies, variations,
               of_y, rates, virtual_rates, virtual_upper, N, X, D, balance, b):
    """Block b of Delta in X, of D, and of balance = -(M D + d(ID + G^T lambda)/dq [N 0] + dID/dv X).

    `of_y` is one in the columns of y; rates (m rows) and virtual_rates (nz rows) are scratch, all padded;
    `virtual_upper` receives the variations of the virtual velocities, if y reads any.
    """
    n, width = v.size, X.shape[1] // WIDTH
    reads_w = reads_cuts(virtual_w)
    vary_velocities(ints, world, N, X, b, variations)
    if b * WIDTH < p_y:  # Delta
        vary_velocity_rows(ints, floats, q, v, a, world, variations, N, b, rates)
        if reads_w:
            vary_cut_velocities(ints, floats, world, variations, True, b, virtual_rates)
        for i in range(n):
            Delta = forced(Z_inverse, rank, rows, virtual_w, rates, virtual_rates, i, b)
            store(LANES, X, width * i + b, load(LANES, X, width * i + b) + load(LANES, of_y, b) * Delta)
    vary_accelerations(ints, floats, world, X, b, variations)
    if reads_cuts(virtual_y):
        vary_cut_velocities(ints, floats, world, variations, True, b, virtual_upper)
    vary_acceleration_rows(ints, floats, q, v, a, world, variations, N, X, b, rates)
    if reads_w:
        vary_cut_accelerations(ints, floats, world, variations, True, b, virtual_rates)
    to = D.shape[1] // WIDTH
    for i in range(n):
        store(LANES, D, to * i + b, forced(Z_inverse, rank, rows, virtual_w, rates, virtual_rates, i, b))
    vary_wrenches(ints, world, bodies, D, b, variations)
    vary_constraint_wrenches(ints, floats, world, lam, variations)
    vary_forces(ints, floats, q, world, bodies, N, X, D, b, variations, balance)
    vary_custom_forces(ints, floats, q, lam, N, b, balance)


@inline
def reduce_balance(Z_inverse, rank, balance, blocks, actuators, inputs, lower):
    """lower = [S^T balance, S^T S_u], the inputs from column `inputs` on."""
    n, p, nu = balance.shape[0], lower.shape[0], actuators.shape[1]
    width, to = balance.shape[1] // WIDTH, lower.shape[1] // WIDTH
    clear(lower)
    for s in range(p):
        for b in range(blocks):
            total = splat(LANES, 0.0)
            for i in range(n):
                total = total + at(Z_inverse, i, rank + s) * load(LANES, balance, width * i + b)
            store(LANES, lower, to * s + b, total)
    for s in range(p):
        for c in range(inputs, lower.shape[1]):
            lower[s, c] = 0.0
    for i in range(n):
        for c in range(nu):
            x = at(actuators, i, c)
            if x != 0.0:
                for s in range(p):
                    lower[s, inputs + c] += x * at(Z_inverse, i, rank + s)


@kernel_in_place
def linearize_in_place(ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work,
                       A, B, f0, w, a, lam, residual, psi, rows, G, Z_inverse, N, X, D, balance, MK):
    """The local state space at one state; arguments as for `linearize_kernel`, results as it returns them.

    N = [N 0], X = [Delta S], Z_inverse, D, balance and MK = M [S a_p] are padded; `rows` has m + p_w numbers. D and
    balance are those before wdot moves (`complete_derivatives`). Returns (status, rank, condition) of the velocities,
    and the same of the coordinates.
    """
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    work[0] = 1.0
    world = take_vector(work, max(terms_size(ints), world_size(ints) + COMPOSITE * link_count(ints)))
    M, h, gamma, rho, z = (take_matrix(work, n, n), take_vector(work, n), take_vector(work, m), take_vector(work, nz),
                           take_vector(work, nz))
    E, x = take_matrix(work, nz, n), padded(p_y + p_w)
    upper, virtual_upper, turned = take_matrix(work, n, x), take_matrix(work, nz, x), take_matrix(work, nz, x)
    if is_open_tree(G, R_w, virtual_w) and is_open_tree(G, R_y, virtual_y):
        regular = linearize_tree(ints, floats, q, v, tau, f_ext, actuators, world, work, a, Z_inverse, N, X, D)
        clear(balance)
        for i in range(n):
            w[i], f0[n + i] = v[i], a[i]
        put_lower_rows(D, n, n, A, B)
        put_upper_rows(ints, v, z, R_y, virtual_y, True, E, N, X, upper, virtual_upper, turned, A, f0)
        clear(D)
        clear(MK)
        return (OK if regular else SINGULAR_INERTIA), 0, 1.0, OK, 0, 1.0
    # the state: accelerations and multipliers
    terms_in_place(ints, floats, q, v, f_ext, world, M, h, G, gamma)
    residual_rows(ints, floats, q, world, residual)
    velocity_rows(ints, floats, q, v, world, psi)
    if reads_cuts(virtual_y) or reads_cuts(virtual_w):
        reader_rows(ints, floats, world, E)
        cut_bias_kernel(ints, floats, world, True, rho)
        cut_velocity_kernel(ints, floats, world, True, z)
    table, columns = take_matrix(work, m + p_w, padded(n)), take_vector(work, m + p_w)
    free, largest = take_matrix(work, 1, padded(n)), take_vector(work, padded(n))
    status, rank, condition = invert_rows(G, E, R_w, virtual_w, tolerance, table, rows, columns, free, largest,
                                          Z_inverse)
    if status != OK:
        return status, rank, condition, OK, rank, condition
    K, reduced = take_matrix(work, n, padded(p_w + 1)), take_matrix(work, p_w, padded(p_w + 1))
    if not given_accelerations(M, h, gamma, rho, tau, virtual_w, rank, rows, Z_inverse, K, MK, reduced, a, lam):
        return SINGULAR_INERTIA, rank, condition, OK, rank, condition
    shortest_multipliers(table, rank, m, rows, columns, take_matrix(work, m - rank, padded(m - rank + 1)), lam)
    for s in range(p_w):
        f0[p_y + s] = -at(reduced, s, p_w)
        w[s] = z[virtual_w[s]] if virtual_w[s] >= 0 else 0.0
        for i in range(n):
            w[s] += R_w[s, i] * v[i]

    # the directions: [N 0] for coordinates, [Delta S] for velocities, Delta still to come
    mask = take_vector(work, m)
    holonomic_rows(ints, mask)
    same = same_choice(G, mask, R_y, virtual_y, R_w, virtual_w)
    if same:
        status_y, rank_y, condition_y = OK, rank, condition
        null_space(Z_inverse, rank, p_y, N)
    else:
        status_y, rank_y, condition_y = position_null_space(
            ints, G, mask, E, R_y, virtual_y, tolerance, work, N)
        if status_y != OK:
            return OK, rank, condition, status_y, rank_y, condition_y
    of_y = take_vector(work, x)
    for c in range(x):
        of_y[c] = 1.0 if c < p_y else 0.0
    clear(X)
    for i in range(n):
        for s in range(p_w):
            X[i, p_y + s] = at(Z_inverse, i, rank + s)

    # the variations of the state along them, a register of directions at a time
    links = link_count(ints)
    bodies, variations = take_vector(work, BODY * links), take_vector(work, VARIATION * WIDTH * links)
    rates, virtual_rates = take_matrix(work, m, x), take_matrix(work, nz, x)
    put_bodies(ints, floats, v, a, f_ext, world, bodies)
    push_constraints(ints, floats, world, lam, bodies)
    gather_wrenches(ints, bodies)
    for b in range(x // WIDTH):
        vary_state(ints, floats, q, v, a, lam, p_y, virtual_y, virtual_w, rank, rows, Z_inverse, world, bodies,
                   variations, of_y, rates, virtual_rates, virtual_upper, N, X, D, balance, b)

    # S^T M S wdot = S^T balance
    lower, inertia = take_matrix(work, p_w, padded(p_y + p_w + nu)), take_matrix(work, p_w, padded(p_w + 1))
    reduce_balance(Z_inverse, rank, balance, x // WIDTH, actuators, p_y + p_w, lower)
    clear(inertia)
    add_transposed_product(Z_inverse, rank, p_w, MK, inertia)
    solve_rows_for(inertia, lower)
    put_lower_rows(lower, p_y, p_w, A, B)
    put_upper_rows(ints, v, z, R_y, virtual_y, same, E, N, X, upper, virtual_upper, turned, A, f0)
    return OK, rank, condition, status_y, rank_y, condition_y


@kernel_in_place
def complete_derivatives(p_y, X, A, B, actuators, MK, da, balance):
    """D becomes da = D + S wdot by (y, w, u), and balance what the constraints have to balance, S_u u - M da - ..."""
    p_w, x = A.shape[0] - p_y, A.shape[1]
    for i in range(da.shape[0]):
        for c in range(B.shape[1]):
            da[i, x + c], balance[i, x + c] = 0.0, actuators[i, c]
        for s in range(p_w):
            for c in range(x + B.shape[1]):
                w_dot = A[p_y + s, c] if c < x else B[p_y + s, c - x]
                da[i, c] += X[i, p_y + s] * w_dot
                balance[i, c] -= MK[i, s] * w_dot


Local = namedtuple("Local", "A B f0 w a lam residual psi rows G Z_inverse N X da balance")
"""Results of `linearize_kernel`; rows of G come in the order `rows`, the independent ones first."""


@kernel
def linearize_kernel(ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance):
    """The local state space at one state.

    R and `virtual` as for `nullspace_kernel`, for the coordinates y and the velocities w; `actuators` is tau = S_u u,
    (n, nu). Returns (status, rank, condition) of the velocities, the same of the coordinates, and a `Local`: A, B, f0;
    w, a and lam; residual and psi (m); the rows G_1, G (m, n) and [G_1; R_w]^-1; N (n, p_y), X = [Delta S]
    (n, p_y + p_w); da, the acceleration's derivative by (y, w, u); balance = G^T dlambda. Matrices of n rows are
    padded.
    """
    n, m = ints[NV], ints[N_ROWS]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    x = p_y + p_w
    local = Local(
        np.zeros((x, x)), np.zeros((x, nu)), np.zeros(x), np.zeros(p_w), np.zeros(n), np.zeros(m), np.empty(m),
        np.empty(m), np.zeros(m + p_w), np.empty((m, n)), np.empty((n, padded(n))), np.empty((n, padded(x))),
        np.empty((n, padded(x))), np.empty((n, padded(x + nu))), np.empty((n, padded(x + nu))))
    work, MK = np.empty(linearize_size(ints, p_y, p_w, nu)), np.empty((n, padded(p_w + 1)))
    found = linearize_in_place(
        ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work, local.A, local.B,
        local.f0, local.w, local.a, local.lam, local.residual, local.psi, local.rows, local.G, local.Z_inverse,
        local.N, local.X, local.da, local.balance, MK)
    complete_derivatives(p_y, local.X, local.A, local.B, actuators, MK, local.da, local.balance)
    return found[:3], found[3:], local
