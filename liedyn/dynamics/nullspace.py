"""Null-space dynamics: constrained accelerations in independent coordinates (Spencer 2004, 2.3 and 2.4, eq. 2.42-2.47).

Independent velocities w = R v (rows that pick coordinates of the tree, read virtual velocities at a cut, or span the
tangent space) and r independent rows G_1 of G = [G_1; T G_1] together determine v. One inverse serves everything:

    [G_1; R]^-1 = [G_1^# K]        G K = 0,  R K = 1,  G G_1^# = [1; T]

    a = K wdot + a_p               a_p = [G_1^# K] (-Gdot v, -Rdot v)
    K^T M K wdot = K^T (tau - h - M a_p)

Only K^T M K has to be regular: massless bodies that the constraints hold are welcome. Redundant rows, and the zero rows
of constraints that are switched off, change nothing but the multipliers, which are the minimum-norm ones:
G^T lambda = tau - h - M a.

`acceleration_kernel` lets the elimination choose the coordinates: a does not depend on them. Complete pivoting of G
(`liedyn.exchange`) leaves K, a_p, the inverse W of the regular part of G, and T, in one table. lambda_1 = mu follows
from the forces on the dependent coordinates alone, mu = W^T (tau - h - M a), and the shortest multipliers are

    lambda_rest = x, lambda_1 = mu - T^T x        (1 + T T^T) x = T mu

`nullspace_kernel` takes the coordinates it is given.
"""
import numpy as np

from liedyn.constraints.cut_rows import cut_bias_kernel
from liedyn.constraints.rows import reader_rows
from liedyn.dense import independent_rows, inverse, product, solve_positive, transposed_product
from liedyn.dynamics.terms import terms_in_place, terms_size
from liedyn.exchange import add_row, clear, exchange_all, get, get_index, put, registers, solve_rows
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.lanes import SCALAR, WIDTH, load, matrix_in, store, vector_in
from liedyn.model.packed import N_ROWS, N_VIRTUAL, NV
from liedyn.tree.ltdl import ltdl_factor, ltdl_solve

OK, WRONG_COUNT, SINGULAR_CHOICE, SINGULAR_INERTIA = range(4)

RANK_TOLERANCE = 1e-8
"""A pivot of G below this part of the largest one counts as zero. States closed to 1e-12 leave redundant rows at about
that size, and real rows of machines measured in mm and rad stay above 1e-4."""


# ---- coordinates chosen by pivoting, in place


@inline
def solve_layout(n, m):
    """Where things begin in the workspace of the solution, in registers; the last number is its size.

    table (m rows of n + 1), K and M K (n rows, at most n + 1), K^T M K (the same), rows, columns, free, largest
    """
    w, mw = registers(n + 1), registers(m + 1)
    K = w * m
    MK = K + w * n
    reduced = MK + w * n
    rows = reduced + max(w * n, mw * m)
    columns = rows + mw
    free = columns + w
    return K, MK, reduced, rows, columns, free, free + w, free + 2 * w


@kernel_in_place
def solve_size(ints):
    """Numbers in the workspace of `solve_accelerations`."""
    return WIDTH * solve_layout(ints[NV], ints[N_ROWS])[7]


@inline
def fill_table(G, gamma, work, width):
    """G a - gamma: a column for each acceleration, and one for the constant."""
    m, n = G.shape
    for i in range(m):
        clear(work, width * (i + 1) - 1, 1)  # behind the constant too: leftovers there could be slow numbers
        for j in range(n):
            put(work, width * i, j, load(SCALAR, G, n * i + j))
        put(work, width * i, n, -load(SCALAR, gamma, i))


@inline
def fill_null_space(work, n, rank, width, K, rows, columns, free):
    """Rows of [K a_p], read off the table; returns the number of registers in a row."""
    p = n - rank
    w = registers(p + 1)
    clear(work, K, w * n)
    for k in range(rank):
        c = get_index(work, columns, k)
        put(work, K + w * c, p, get(work, width * k, n))
    s = 0
    for j in range(n):
        if get(work, free, j) != 0.0:
            put(work, K + w * j, s, 1.0)
            for k in range(rank):
                put(work, K + w * get_index(work, columns, k), s, get(work, width * k, j))
            s += 1
    return w


@kernel_in_place
def solve_tree(ints, M, h, tau, L, a):
    """a = M^-1 (tau - h), the branches of the tree kept apart; L receives the factor of M. False if M is singular."""
    n = h.size
    for k in range(n * n):
        store(SCALAR, L, k, load(SCALAR, M, k))
    for i in range(n):
        store(SCALAR, a, i, load(SCALAR, tau, i) - load(SCALAR, h, i))
    ltdl_factor(SCALAR, ints, L)
    ltdl_solve(SCALAR, ints, L, 1.0, a, 1)
    regular = True
    for i in range(n):
        regular = regular and load(SCALAR, L, n * i + i) > 0.0
    return regular


@kernel_in_place
def solve_accelerations(ints, M, h, G, gamma, tau, tolerance, work, a):
    """a (nv) of M a + h + G^T lambda = tau, G a = gamma, with `solve_size` numbers of workspace.

    Returns (status, rank, ratio) as `acceleration_kernel`.
    """
    n, m = h.size, gamma.size
    K, MK, reduced, rows, columns, free, largest, _ = solve_layout(n, m)
    width = registers(n + 1)
    fill_table(G, gamma, work, width)
    rank, ratio = exchange_all(work, 0, m, n, width, tolerance, rows, columns, free, largest)
    if rank == 0:
        regular = solve_tree(ints, M, h, tau, vector_in(work, WIDTH * reduced, n * n), a)
        return (OK if regular else SINGULAR_INERTIA), rank, ratio
    p = n - rank
    w = fill_null_space(work, n, rank, width, K, rows, columns, free)
    # [M K, M a_p + h - tau], then K^T times it
    clear(work, MK, w * n)
    for i in range(n):
        for j in range(n):
            x = load(SCALAR, M, n * i + j)
            if x != 0.0:
                add_row(work, MK + w * i, x, K + w * j, w)
        put(work, MK + w * i, p, get(work, MK + w * i, p) + load(SCALAR, h, i) - load(SCALAR, tau, i))
    clear(work, reduced, w * p)
    for i in range(n):
        for s in range(p):
            x = get(work, K + w * i, s)
            if x != 0.0:
                add_row(work, reduced + w * s, x, MK + w * i, w)
    regular = solve_rows(work, reduced, p, w)
    for i in range(n):
        x = get(work, K + w * i, p)
        for s in range(p):
            x -= get(work, K + w * i, s) * get(work, reduced + w * s, p)
        store(SCALAR, a, i, x)
    return (OK if regular else SINGULAR_INERTIA), rank, ratio


@kernel_in_place
def solve_multipliers(m, n, rank, work, lam):
    """lambda (m) of minimum norm, from the workspace that `solve_accelerations` leaves."""
    K, MK, reduced, rows, columns, free, largest, _ = solve_layout(n, m)
    width, p = registers(n + 1), n - rank
    w = registers(p + 1)
    # mu = W^T balance, row by row of W; balance = tau - h - M K wdot - M a_p
    clear(work, largest, width)
    for k in range(rank):
        i = MK + w * get_index(work, columns, k)
        balance = -get(work, i, p)
        for s in range(p):
            balance += get(work, i, s) * get(work, reduced + w * s, p)
        add_row(work, largest, balance, width * k, width)
    for k in range(rank):
        store(SCALAR, lam, get_index(work, rows, k), get(work, largest, get_index(work, columns, k)))
    shortest_multipliers(m, n, rank, work, lam)


@kernel_in_place
def shortest_multipliers(m, n, rank, work, lam):
    """lambda on the rest of the rows, with (1 + T T^T) x = T mu, and off the others."""
    K, MK, normal, rows, columns, free, largest, _ = solve_layout(n, m)
    width, rest = registers(n + 1), m - rank
    w = registers(rest + 1)
    clear(work, normal, w * rest)
    for i in range(rest):
        for j in range(rest + 1):
            x = 1.0 if i == j else 0.0
            for k in range(rank):
                c = get_index(work, columns, k)
                if j < rest:
                    other = get(work, width * (rank + j), c)
                else:
                    other = load(SCALAR, lam, get_index(work, rows, k))
                x += get(work, width * (rank + i), c) * other
            put(work, normal + w * i, j, x)
    solve_rows(work, normal, rest, w)
    for i in range(rest):
        x = get(work, normal + w * i, rest)
        store(SCALAR, lam, get_index(work, rows, rank + i), x)
        for k in range(rank):
            l = get_index(work, rows, k)
            T = get(work, width * (rank + i), get_index(work, columns, k))
            store(SCALAR, lam, l, load(SCALAR, lam, l) - T * x)


@kernel_in_place
def acceleration_size(ints):
    """Numbers in the workspace of `acceleration_kernel`."""
    n, m = ints[NV], ints[N_ROWS]
    return terms_size(ints) + n * n + n + m * n + m + solve_size(ints)


@kernel_in_place
def acceleration_kernel(ints, floats, q, v, tau, f_ext, tolerance, work, a, lam):
    """a (nv) and the minimum-norm lam (m), with `acceleration_size` numbers of workspace.

    Returns (status, rank, ratio): OK, or SINGULAR_INERTIA where some motion moves no mass; independent rows of G; its
    smallest pivot by its largest, which says how far a singular configuration is. `f_ext` is (6 links) or empty.
    """
    n, m = ints[NV], ints[N_ROWS]
    k = solve_size(ints)  # in front, where registers begin
    M, h = matrix_in(work, k, n, n), vector_in(work, k + n * n, n)
    k += n * n + n
    G, gamma = matrix_in(work, k, m, n), vector_in(work, k + m * n, m)
    k += m * n + m
    terms_in_place(ints, floats, q, v, f_ext, vector_in(work, k, terms_size(ints)), M, h, G, gamma)
    status, rank, ratio = solve_accelerations(ints, M, h, G, gamma, tau, tolerance, work, a)
    solve_multipliers(m, n, rank, work, lam)
    return status, rank, ratio


# ---- coordinates given


@kernel
def choose_rows(G, E, R_constant, virtual, rank, order, Z):
    """Z = [G_1; R]: independent rows of G, then the rows that read the independent velocities."""
    for k in range(rank):
        Z[k, :] = G[order[k], :]
    for k in range(virtual.size):
        Z[rank + k, :] = R_constant[k, :]
        if virtual[k] >= 0:
            Z[rank + k, :] = E[virtual[k], :]


@kernel
def right_hand_side(x, y, rank, order, virtual, sign, out):
    """out = sign (x on independent rows of G; y on virtual coordinates, zero on the others), column by column."""
    out[:] = 0.0
    for k in range(rank):
        out[k, :] = sign * x[order[k], :]
    for k in range(virtual.size):
        if virtual[k] >= 0:
            out[rank + k, :] = sign * y[virtual[k], :]


@kernel
def minimum_norm_multipliers(G, G_sharp, order, rank, force, lam):
    """The shortest lambda with G^T lambda = force, for a force in the range of G^T."""
    m, n = G.shape
    r = rank
    T = np.zeros((m - r, r))
    for i in range(m - r):
        for k in range(n):
            x = G[order[r + i], k]
            if x != 0.0:
                for j in range(r):
                    T[i, j] += x * G_sharp[k, j]
    normal, known = np.zeros((r, r)), np.zeros((r, 1))
    transposed_product(T, T, normal)
    for j in range(r):
        normal[j, j] += 1.0
        for k in range(n):
            known[j, 0] += G_sharp[k, j] * force[k]
    solve_positive(normal, known)
    for j in range(r):
        lam[order[j]] = known[j, 0]
    for i in range(m - r):
        lam[order[r + i]] = 0.0
        for j in range(r):
            lam[order[r + i]] += T[i, j] * known[j, 0]


@kernel
def nullspace_kernel(ints, floats, q, v, tau, f_ext, R_constant, virtual, tolerance):
    """Constrained accelerations and all that linearization reuses; see the module's text for the symbols.

    `virtual[k]` is the virtual velocity that independent coordinate k reads, or -1 for row k of `R_constant`.
    Returns (status, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot).
    """
    n, m, nz, p = ints[NV], ints[N_ROWS], ints[N_VIRTUAL], virtual.size
    work, M, h = np.empty(terms_size(ints)), np.empty((n, n)), np.empty(n)
    G, E, gamma, rho = np.empty((m, n)), np.empty((nz, n)), np.empty((m, 1)), np.empty((nz, 1))
    terms_in_place(ints, floats, q, v, f_ext, work, M, h, G, gamma.reshape(m))
    for k in range(m):
        gamma[k, 0] = -gamma[k, 0]
    reader_rows(ints, floats, work, E)
    cut_bias_kernel(ints, floats, work, True, rho.reshape(nz))
    order, pivots = np.empty(m, np.int64), np.empty(m)
    a, lam, Z_inverse, w_dot = np.zeros(n), np.zeros(m), np.zeros((n, n)), np.zeros((p, 1))
    rank = independent_rows(G, tolerance, order, pivots)
    if rank + p != n:
        return WRONG_COUNT, rank, np.inf, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    Z = np.empty((n, n))
    choose_rows(G, E, R_constant, virtual, rank, order, Z)
    condition = inverse(Z, Z_inverse)
    if not condition < 1.0 / np.finfo(np.float64).eps:
        return SINGULAR_CHOICE, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    K = np.ascontiguousarray(Z_inverse[:, rank:])
    known, a_p, force = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1))
    right_hand_side(gamma, rho, rank, order, virtual, -1.0, known)
    product(Z_inverse, known, a_p)
    product(M, a_p, force)
    for i in range(n):
        force[i, 0] = tau[i] - h[i] - force[i, 0]
    MK, reduced = np.empty((n, p)), np.empty((p, p))
    product(M, K, MK)
    transposed_product(K, MK, reduced)
    transposed_product(K, force, w_dot)
    if not solve_positive(reduced, w_dot):
        return SINGULAR_INERTIA, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
    for i in range(n):
        a[i] = a_p[i, 0]
        for k in range(p):
            a[i] += K[i, k] * w_dot[k, 0]
    balance = np.empty(n)
    for i in range(n):
        balance[i] = tau[i] - h[i]
        for k in range(n):
            balance[i] -= M[i, k] * a[k]
    if m > 0:
        minimum_norm_multipliers(G, Z_inverse, order, rank, balance, lam)
    return OK, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot[:, 0]
