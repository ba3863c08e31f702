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

The multipliers' own derivative never appears: S^T G^T = 0. The upper rows are those of ydot = R_y v,

    A_yy = R_y (Delta - ad_v N) + d(R_y v)/dq N        A_yw = R_y S        B_y = 0

with ad_v joint by joint: zero unless a ball or free joint is among the coordinates (its tangent turns with it). Where
y and w are the same coordinates, these are -R ad_v N and 1. Time is held: `Robot.at` sets it.
"""
from collections import namedtuple

import numpy as np

from liedyn.constraints.cut_rows import cut_bias_kernel, cut_velocity_kernel
from liedyn.constraints.records import SPHERICAL, is_cut, loop_count, loop_kind, loop_virtuals
from liedyn.constraints.rows import (
    derivative_rows, force_derivative_rows, holonomic_rows, reader_derivatives, reader_rows, residual_rows,
    velocity_rows,
)
from liedyn.dynamics.nullspace import (
    OK, SINGULAR_INERTIA, given_accelerations, invert_rows, shortest_multipliers,
)
from liedyn.dynamics.terms import terms_in_place, terms_size
from liedyn.exchange import (
    add_product, add_row, add_transposed_product, at, clear, padded, solve_rows_for,
)
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.lanes import SCALAR, take_matrix, take_vector
from liedyn.model.packed import FREE, N_ROWS, N_VIRTUAL, NV
from liedyn.model.packed import SPHERICAL as BALL
from liedyn.tree.aba_derivatives import aba_derivatives_kernel
from liedyn.tree.kinematics import world_accelerations, world_size, world_velocities
from liedyn.tree.records import first_dof, kind, link_count
from liedyn.tree.rnea_derivatives import COMPOSITE, composite_derivatives


@inline
def subtract_cross(x, y, z, X, from_, p, out, to):
    """out[to:to+3] -= (x, y, z) x X[from_:from_+3], column by column."""
    for c in range(p):
        a, b, d = X[from_, c], X[from_ + 1, c], X[from_ + 2, c]
        out[to, c] -= y * d - z * b
        out[to + 1, c] -= z * a - x * d
        out[to + 2, c] -= x * b - y * a


@inline
def subtract_tangent_bracket(ints, v, N, p, out):
    """out -= ad_v N joint by joint: zero but for ball and free joints."""
    for i in range(link_count(ints)):
        j = first_dof(ints, i)
        if kind(ints, i) == BALL or kind(ints, i) == FREE:
            subtract_cross(v[j], v[j + 1], v[j + 2], N, j, p, out, j)
        if kind(ints, i) == FREE:
            # the linear part: w x linear + v x angular
            subtract_cross(v[j], v[j + 1], v[j + 2], N, j + 3, p, out, j + 3)
            subtract_cross(v[j + 3], v[j + 4], v[j + 5], N, j, p, out, j + 3)


@kernel_in_place
def turning(ints, v, N, p, out):
    """out -= ad_v N for the first p columns, as a kernel."""
    subtract_tangent_bracket(ints, v, N, p, out)


@inline
def subtract_virtual_bracket(ints, z, EN, p, out):
    """out -= ad of the virtual velocities z on E N: zero but for ball cuts."""
    for l in range(loop_count(ints)):
        if is_cut(ints, l) and loop_kind(ints, l) == SPHERICAL:
            k = loop_virtuals(ints, l)[0]
            subtract_cross(z[k], z[k + 1], z[k + 2], EN, k, p, out, k)


@inline
def forced(rates, virtual_rates, rank, rows, virtual, out):
    """out = -(rates of the independent rows of G; of the virtual velocities that are read, zero for the others)."""
    clear(out)
    for k in range(rank):
        add_row(out, k, -1.0, rates, int(rows[k]))
    for k in range(virtual.size):
        if virtual[k] >= 0:
            add_row(out, rank + k, -1.0, virtual_rates, virtual[k])


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


@inline
def put_upper_rows(ints, v, z, E, rho_q, R_y, virtual_y, same, N, X, EX, upper, virtual_upper, A, f0):
    """The rows of ydot in A and f0; `upper` (n rows), `virtual_upper` and `EX` (nz rows) are scratch, padded."""
    n, p = R_y.shape[1], virtual_y.size
    clear(upper)
    clear(virtual_upper)
    if not same:
        for i in range(n):
            add_row(upper, i, 1.0, X, i)
        add_product(1.0, rho_q, n, N, virtual_upper)
        add_product(1.0, E, n, X, virtual_upper)
    subtract_tangent_bracket(ints, v, N, p, upper)
    clear(EX)
    add_product(1.0, E, n, N, EX)
    subtract_virtual_bracket(ints, z, EX, p, virtual_upper)
    for k in range(p):
        for c in range(A.shape[1]):
            A[k, c] = virtual_upper[virtual_y[k], c] if virtual_y[k] >= 0 else 0.0
        f0[k] = z[virtual_y[k]] if virtual_y[k] >= 0 else 0.0
        for i in range(n):
            x = R_y[k, i]
            if x != 0.0:
                f0[k] += x * v[i]
                for c in range(A.shape[1]):
                    A[k, c] += x * upper[i, c]
        if same:
            A[k, p + k] = 1.0


@kernel_in_place
def linearize_size(ints, p_y, p_w, nu):
    """Numbers in the workspace of `linearize_in_place`: enough for all that is taken, in the order of the kernel."""
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    w, columns, one = padded(n), padded(p_y + p_w + nu), padded(p_w + 1)
    world = max(terms_size(ints), world_size(ints) + COMPOSITE * link_count(ints))
    state = world + n * n + n + m + 2 * nz + (m + n) * (w + 2) + 2 * w + (2 * n + p_w) * one + m * padded(m + 1)
    positions = m + m * n + n * w + (m + n) * (w + 2) + 2 * w
    derivatives = 2 * n * n + n + 3 * m * n + (m + nz) * padded(p_y) + (m + nz + n) * columns
    upper = n * columns + 2 * nz * columns
    return 1 + state + positions + derivatives + upper + p_w * padded(p_w)


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
def linearize_in_place(ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work,
                       A, B, f0, w, a, lam, residual, psi, rows, G, E, Z_inverse, N, X, da, balance, of_virtual):
    """The local state space at one state; arguments as for `linearize_kernel`, results as it returns them.

    N, X = [Delta S], Z_inverse, da and balance are padded; `rows` has m + p_w numbers. Returns (status, rank,
    condition) of the velocities, and the same of the coordinates.
    """
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    work[0] = 1.0
    world = take_vector(work, max(terms_size(ints), world_size(ints) + COMPOSITE * link_count(ints)))
    M, h, gamma, rho, z = (take_matrix(work, n, n), take_vector(work, n), take_vector(work, m), take_vector(work, nz),
                           take_vector(work, nz))
    width = padded(p_y + p_w)
    if is_open_tree(G, R_w, virtual_w) and is_open_tree(G, R_y, virtual_y):
        regular = linearize_tree(ints, floats, q, v, tau, f_ext, actuators, world, work, a, Z_inverse, N, X, da)
        clear(balance)
        for i in range(n):
            w[i], f0[n + i] = v[i], a[i]
        put_lower_rows(da, n, n, A, B)
        put_upper_rows(ints, v, z, E, of_virtual[0], R_y, virtual_y, True, N, X, take_matrix(work, nz, padded(n)),
                       take_matrix(work, n, width), take_matrix(work, nz, width), A, f0)
        status = OK if regular else SINGULAR_INERTIA
        return status, 0, 1.0, OK, 0, 1.0
    # the state: accelerations and multipliers
    terms_in_place(ints, floats, q, v, f_ext, world, M, h, G, gamma)
    residual_rows(ints, floats, q, world, residual)
    velocity_rows(ints, floats, q, v, world, psi)
    reader_rows(ints, floats, world, E)
    cut_bias_kernel(ints, floats, world, True, rho)
    cut_velocity_kernel(ints, floats, world, True, z)
    table, columns = take_matrix(work, m + p_w, padded(n)), take_vector(work, m + p_w)
    free, largest = take_matrix(work, 1, padded(n)), take_vector(work, padded(n))
    status, rank, condition = invert_rows(G, E, R_w, virtual_w, tolerance, table, rows, columns, free, largest,
                                          Z_inverse)
    if status != OK:
        return status, rank, condition, OK, rank, condition
    K, MK, reduced = (take_matrix(work, n, padded(p_w + 1)), take_matrix(work, n, padded(p_w + 1)),
                      take_matrix(work, p_w, padded(p_w + 1)))
    if not given_accelerations(M, h, gamma, rho, tau, virtual_w, rank, rows, Z_inverse, K, MK, reduced, a, lam):
        return SINGULAR_INERTIA, rank, condition, OK, rank, condition
    shortest_multipliers(table, rank, m, rows, columns, take_matrix(work, m - rank, padded(m - rank + 1)), lam)
    for s in range(p_w):
        f0[p_y + s] = -at(reduced, s, p_w)
        w[s] = z[virtual_w[s]] if virtual_w[s] >= 0 else 0.0
        for i in range(n):
            w[s] += R_w[s, i] * v[i]

    # the directions of the variations of coordinates
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

    # all derivatives at the constrained acceleration; positions are set already
    ID_q, ID_v, ignored = take_matrix(work, n, n), take_matrix(work, n, n), take_vector(work, n)
    psi_q, phi_q, phi_v = take_matrix(work, m, n), take_matrix(work, m, n), take_matrix(work, m, n)
    world_velocities(SCALAR, ints, v, world)
    world_accelerations(SCALAR, ints, floats, v, a, world)
    composite_derivatives(SCALAR, ints, floats, q, f_ext, world, ignored, ID_q, ID_v, M)
    force_derivative_rows(ints, floats, q, world, lam, ID_q)
    derivative_rows(ints, floats, q, v, a, world, psi_q, phi_q, phi_v)
    rho_q, rho_dot_q, rho_dot_v = of_virtual[0], of_virtual[1], of_virtual[2]
    reader_derivatives(ints, floats, world, rho_q, rho_dot_q, rho_dot_v)

    # X = [Delta S]; Delta first on its own
    rates, virtual_rates, known = (take_matrix(work, m, padded(p_y)), take_matrix(work, nz, padded(p_y)),
                                   take_matrix(work, n, width))
    reads = reads_cuts(virtual_w)
    clear(rates)
    add_product(1.0, psi_q, n, N, rates)
    if reads:
        clear(virtual_rates)
        add_product(1.0, rho_q, n, N, virtual_rates)
    forced(rates, virtual_rates, rank, rows, virtual_w, known)
    clear(X)
    add_product(1.0, Z_inverse, n if reads else rank, known, X)
    for i in range(n):
        for s in range(p_w):
            X[i, p_y + s] = at(Z_inverse, i, rank + s)

    # D = [D_y D_w] in da, then the balance of forces
    rates, virtual_rates = take_matrix(work, m, width), take_matrix(work, nz, width)
    clear(rates)
    add_product(1.0, phi_q, n, N, rates)
    add_product(1.0, phi_v, n, X, rates)
    if reads:
        clear(virtual_rates)
        add_product(1.0, rho_dot_q, n, N, virtual_rates)
        add_product(1.0, rho_dot_v, n, X, virtual_rates)
    forced(rates, virtual_rates, rank, rows, virtual_w, known)
    clear(da)
    add_product(1.0, Z_inverse, n if reads else rank, known, da)
    clear(balance)
    add_product(-1.0, M, n, da, balance)
    add_product(-1.0, ID_q, n, N, balance)
    add_product(-1.0, ID_v, n, X, balance)
    for i in range(n):
        for c in range(nu):
            balance[i, p_y + p_w + c] = actuators[i, c]

    # S^T M S wdot = S^T balance
    lower, inertia = take_matrix(work, p_w, padded(p_y + p_w + nu)), take_matrix(work, p_w, padded(p_w + 1))
    clear(lower)
    clear(inertia)
    add_transposed_product(Z_inverse, rank, p_w, balance, lower)
    add_transposed_product(Z_inverse, rank, p_w, MK, inertia)
    solve_rows_for(inertia, lower)
    add_product(1.0, K, p_w, lower, da)
    add_product(-1.0, MK, p_w, lower, balance)
    put_lower_rows(lower, p_y, p_w, A, B)
    put_upper_rows(ints, v, z, E, rho_q, R_y, virtual_y, same, N, X, take_matrix(work, nz, padded(p_y)),
                   take_matrix(work, n, width), take_matrix(work, nz, width), A, f0)
    return OK, rank, condition, status_y, rank_y, condition_y


Local = namedtuple("Local", "A B f0 w a lam residual psi rows G E Z_inverse N X da balance of_virtual")
"""Results of `linearize_kernel`; rows of G come in the order `rows`, the independent ones first."""


@kernel
def linearize_kernel(ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance):
    """The local state space at one state.

    R and `virtual` as for `nullspace_kernel`, for the coordinates y and the velocities w; `actuators` is tau = S_u u,
    (n, nu). Returns (status, rank, condition) of the velocities, the same of the coordinates, and a `Local`: A, B, f0;
    w, a and lam; residual and psi (m); G (m, n), E (nz, n), [G_1; R_w]^-1 and the rows G_1; N (n, p_y), X = [Delta S]
    (n, p_y + p_w); da, the acceleration's derivative by (y, w, u); balance = G^T dlambda; and the derivatives of
    virtual velocities by q and of virtual accelerations by q and v, (3, nz, n). Matrices of n rows are padded.
    """
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    p_y, p_w, nu = virtual_y.size, virtual_w.size, actuators.shape[1]
    x = p_y + p_w
    columns = padded(x + nu)
    local = Local(
        np.zeros((x, x)), np.zeros((x, nu)), np.zeros(x), np.zeros(p_w), np.zeros(n), np.zeros(m), np.empty(m),
        np.empty(m), np.zeros(m + p_w), np.empty((m, n)), np.empty((nz, n)), np.empty((n, padded(n))),
        np.empty((n, padded(p_y))), np.empty((n, padded(x))), np.empty((n, columns)), np.empty((n, columns)),
        np.empty((3, nz, n)))
    work = np.empty(linearize_size(ints, p_y, p_w, nu))
    found = linearize_in_place(
        ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance, work, local.A, local.B,
        local.f0, local.w, local.a, local.lam, local.residual, local.psi, local.rows, local.G, local.E, local.Z_inverse,
        local.N, local.X, local.da, local.balance, local.of_virtual)
    return found[:3], found[3:], local
