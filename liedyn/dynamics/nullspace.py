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

`nullspace_kernel` takes the coordinates it is given: exchanging the rows R as well makes the table [G_1; R]^-1.
"""
import numpy as np

from liedyn.constraints.cut_rows import cut_bias_kernel
from liedyn.constraints.rows import reader_rows
from liedyn.dynamics.terms import terms_in_place, terms_size
from liedyn.exchange import (
    add_product, add_row, add_transposed_product, at, clear, exchange_rows, padded, solve_rows,
)
from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.lanes import SCALAR, load, matrix_in, store, vector_in
from liedyn.model.packed import N_ROWS, N_VIRTUAL, NV
from liedyn.tree.ltdl import ltdl_factor, ltdl_solve

OK, WRONG_COUNT, SINGULAR_CHOICE, SINGULAR_INERTIA = range(4)

RANK_TOLERANCE = 1e-8
"""A pivot of G below this part of the largest one counts as zero. States closed to 1e-12 leave redundant rows at about
that size, and real rows of machines measured in mm and rad stay above 1e-4."""


@inline
def solution(w_dot, K, p, a):
    """a = K wdot + a_p, for K with a_p behind its p columns and -wdot in column p of `w_dot`."""
    for i in range(a.size):
        x = at(K, i, p)
        for s in range(p):
            x -= at(K, i, s) * at(w_dot, s, p)
        a[i] = x


@kernel_in_place
def reduced_accelerations(M, h, tau, K, MK, reduced, a):
    """a from K^T M K wdot = K^T (tau - h - M a_p), for K = [K a_p]; False if K^T M K is not positive definite.

    Leaves M [K a_p] with h - tau added to its last column in MK, and [1, -wdot] in `reduced`; all padded.
    """
    n, p = h.size, reduced.shape[0]
    clear(MK)
    add_product(1.0, M, n, K, MK)
    for i in range(n):
        MK[i, p] += h[i] - tau[i]
    clear(reduced)
    add_transposed_product(K, 0, p, MK, reduced)
    regular = solve_rows(reduced)
    solution(reduced, K, p, a)
    return regular


@inline
def left_to_balance(reduced, MK, p, i):
    """(tau - h - M a)_i, what the constraints have to balance; after `reduced_accelerations`."""
    x = -at(MK, i, p)
    for s in range(p):
        x += at(MK, i, s) * at(reduced, s, p)
    return x


@kernel_in_place
def shortest_multipliers(table, rank, m, rows, columns, normal, lam):
    """lambda on rows that depend on others, with (1 + T T^T) x = T mu, and lambda_1 = mu - T^T x in place of mu."""
    rest = m - rank
    clear(normal)
    for i in range(rest):
        for j in range(rest):
            x = 1.0 if i == j else 0.0
            for k in range(rank):
                c = int(columns[k])
                x += at(table, rank + i, c) * at(table, rank + j, c)
            normal[i, j] = x
        for k in range(rank):
            normal[i, rest] += at(table, rank + i, int(columns[k])) * lam[int(rows[k])]
    solve_rows(normal)
    for i in range(rest):
        x = at(normal, i, rest)
        lam[int(rows[rank + i])] = x
        for k in range(rank):
            lam[int(rows[k])] -= at(table, rank + i, int(columns[k])) * x


# ---- coordinates chosen by pivoting


@inline
def solve_layout(n, m):
    """Where things begin in the workspace of the solution; the last number is its size.

    table of G a - gamma (m rows), K and M K (n rows), K^T M K or the smaller matrix of the multipliers; rows, columns,
    free, largest
    """
    w, mw = padded(n + 1), padded(m + 1)
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
    return solve_layout(ints[NV], ints[N_ROWS])[7]


@kernel_in_place
def acceleration_size(ints):
    """Numbers in the workspace of `acceleration_kernel`."""
    n, m = ints[NV], ints[N_ROWS]
    return terms_size(ints) + n * n + n + m * n + m + solve_size(ints)


@inline
def fill_table(G, gamma, table):
    """G a - gamma: a column for each acceleration, and one for the constant."""
    m, n = G.shape
    clear(table)
    for i in range(m):
        for j in range(n):
            table[i, j] = G[i, j]
        table[i, n] = -gamma[i]


@inline
def fill_null_space(table, rank, columns, free, n, K):
    """[K a_p], read off the table."""
    p = n - rank
    clear(K)
    for k in range(rank):
        K[int(columns[k]), p] = at(table, k, n)
    s = 0
    for j in range(n):
        if free[0, j] != 0.0:
            K[j, s] = 1.0
            for k in range(rank):
                K[int(columns[k]), s] = at(table, k, j)
            s += 1


@kernel_in_place
def solve_tree(ints, M, h, tau, L, a):
    """a = M^-1 (tau - h), the branches of the tree kept apart; L receives the factor of M. False if M is singular."""
    n = h.size
    for k in range(n * n):
        store(SCALAR, L, k, load(SCALAR, M, k))
    for i in range(n):
        a[i] = tau[i] - h[i]
    ltdl_factor(SCALAR, ints, L)
    ltdl_solve(SCALAR, ints, L, 1.0, a, 1)
    regular = True
    for i in range(n):
        regular = regular and at(L, i, i) > 0.0
    return regular


@kernel_in_place
def solve_accelerations(ints, M, h, G, gamma, tau, tolerance, work, a):
    """a (nv) of M a + h + G^T lambda = tau, G a = gamma, with `solve_size` numbers of workspace.

    Returns (status, rank, ratio) as `acceleration_kernel`.
    """
    n, m = h.size, gamma.size
    K_at, MK_at, reduced_at, rows_at, columns_at, free_at, largest_at, _ = solve_layout(n, m)
    table, free = matrix_in(work, 0, m, padded(n + 1)), matrix_in(work, free_at, 1, padded(n + 1))
    columns = vector_in(work, columns_at, n)
    fill_table(G, gamma, table)
    clear(free)
    for j in range(n):
        free[0, j] = 1.0
    rank, ratio = exchange_rows(table, 0, m, n, tolerance, vector_in(work, rows_at, m), columns, free,
                                vector_in(work, largest_at, n))
    if rank == 0:
        regular = solve_tree(ints, M, h, tau, matrix_in(work, reduced_at, n, n), a)
        return (OK if regular else SINGULAR_INERTIA), rank, ratio
    p = n - rank
    K, MK = matrix_in(work, K_at, n, padded(p + 1)), matrix_in(work, MK_at, n, padded(p + 1))
    fill_null_space(table, rank, columns, free, n, K)
    regular = reduced_accelerations(M, h, tau, K, MK, matrix_in(work, reduced_at, p, padded(p + 1)), a)
    return (OK if regular else SINGULAR_INERTIA), rank, ratio


@kernel_in_place
def solve_multipliers(m, n, rank, work, lam):
    """lambda (m) of minimum norm, from the workspace that `solve_accelerations` leaves."""
    _, MK_at, reduced_at, rows_at, columns_at, _, largest_at, _ = solve_layout(n, m)
    p = n - rank
    rows, columns = vector_in(work, rows_at, m), vector_in(work, columns_at, n)
    table, mu = matrix_in(work, 0, m, padded(n + 1)), matrix_in(work, largest_at, 1, padded(n + 1))
    MK, reduced = matrix_in(work, MK_at, n, padded(p + 1)), matrix_in(work, reduced_at, p, padded(p + 1))
    clear(mu)
    for k in range(rank):  # mu = W^T balance, row by row of W
        add_row(mu, 0, left_to_balance(reduced, MK, p, int(columns[k])), table, k)
    for k in range(rank):
        lam[int(rows[k])] = mu[0, int(columns[k])]
    rest = m - rank
    shortest_multipliers(table, rank, m, rows, columns, matrix_in(work, reduced_at, rest, padded(rest + 1)), lam)


@kernel_in_place
def acceleration_kernel(ints, floats, q, v, tau, f_ext, tolerance, work, a, lam):
    """a (nv) and the minimum-norm lam (m), with `acceleration_size` numbers of workspace.

    Returns (status, rank, ratio): OK, or SINGULAR_INERTIA where some motion moves no mass; independent rows of G; its
    smallest pivot by its largest, which says how far a singular configuration is. `f_ext` is (6 links) or empty.
    """
    n, m = ints[NV], ints[N_ROWS]
    k = solve_size(ints)
    M, h = matrix_in(work, k, n, n), vector_in(work, k + n * n, n)
    k += n * n + n
    G, gamma = matrix_in(work, k, m, n), vector_in(work, k + m * n, m)
    k += m * n + m
    terms_in_place(ints, floats, q, v, f_ext, vector_in(work, k, terms_size(ints)), M, h, G, gamma)
    status, rank, ratio = solve_accelerations(ints, M, h, G, gamma, tau, tolerance, work, a)
    solve_multipliers(m, n, rank, work, lam)
    return status, rank, ratio


# ---- coordinates given


@kernel_in_place
def invert_rows(G, E, R, virtual, tolerance, table, rows, columns, free, largest, Z_inverse):
    """Z_inverse = [G_1; R]^-1 (n, n), padded; R with rows of E where `virtual` says so.

    Returns (status, rank, condition). `table` (m + p rows, padded) keeps T; rows[:rank] are the numbers of the rows
    G_1, columns[:rank] their columns of the table.
    """
    m, n = G.shape
    p = virtual.size
    clear(table)
    clear(free)
    for j in range(n):
        free[0, j] = 1.0
        for i in range(m):
            table[i, j] = G[i, j]
        for k in range(p):
            table[m + k, j] = E[virtual[k], j] if virtual[k] >= 0 else R[k, j]
    rank, _ = exchange_rows(table, 0, m, n, tolerance, rows, columns, free, largest)
    if rank + p != n:
        return WRONG_COUNT, rank, np.inf
    count, _ = exchange_rows(table, m, m + p, n, 0.0, rows, columns, free, largest)
    if count < p:
        return SINGULAR_CHOICE, rank, np.inf
    clear(Z_inverse)
    inverse_norm = norm = 0.0
    for k in range(n):
        # column k of the inverse: that of row k of Z, which stands in the table at row i
        i = k if k < rank else m + k - rank
        to = k if k < rank else rank + int(rows[i]) - m
        c = int(columns[i])
        s = 0.0
        for l in range(n):
            row = l if l < rank else m + l - rank
            x = at(table, row, c)
            Z_inverse[int(columns[row]), to] = x
            s += abs(x)
        inverse_norm = max(inverse_norm, s)
    for j in range(n):
        s = 0.0
        for k in range(rank):
            s += abs(G[int(rows[k]), j])
        for k in range(p):
            s += abs(E[virtual[k], j] if virtual[k] >= 0 else R[k, j])
        norm = max(norm, s)
    condition = norm * inverse_norm
    singular = not condition < 1.0 / np.finfo(np.float64).eps
    return (SINGULAR_CHOICE if singular else OK), rank, condition


@kernel_in_place
def given_accelerations(M, h, gamma, rho, tau, virtual, rank, rows, Z_inverse, K, MK, reduced, a, lam):
    """a, -w_dot in column p of `reduced`, and lam on the rows G_1; False if K^T M K is not positive definite."""
    n, p = h.size, virtual.size
    clear(K)
    for i in range(n):
        for s in range(p):
            K[i, s] = at(Z_inverse, i, rank + s)
        x = 0.0
        for k in range(rank):
            x += at(Z_inverse, i, k) * gamma[int(rows[k])]
        for s in range(p):
            if virtual[s] >= 0:
                x -= at(Z_inverse, i, rank + s) * rho[virtual[s]]
        K[i, p] = x
    regular = reduced_accelerations(M, h, tau, K, MK, reduced, a)
    for k in range(rank):
        lam[int(rows[k])] = 0.0
    for i in range(n):
        left = left_to_balance(reduced, MK, p, i)
        for k in range(rank):
            lam[int(rows[k])] += at(Z_inverse, i, k) * left
    return regular


@kernel
def nullspace_kernel(ints, floats, q, v, tau, f_ext, R_constant, virtual, tolerance):
    """Constrained accelerations in given coordinates; see the module's text for the symbols.

    `virtual[k]` is the virtual velocity that independent coordinate k reads, or -1 for row k of `R_constant`. Returns
    (status, rank, condition, a, lam, order, h, G, E, Z_inverse, M, w_dot); `order` lists the rows G_1 first.
    """
    n, m, nz, p = ints[NV], ints[N_ROWS], ints[N_VIRTUAL], virtual.size
    work, M, h = np.empty(terms_size(ints)), np.empty((n, n)), np.empty(n)
    G, E, gamma, rho = np.empty((m, n)), np.empty((nz, n)), np.empty(m), np.empty(nz)
    terms_in_place(ints, floats, q, v, f_ext, work, M, h, G, gamma)
    reader_rows(ints, floats, work, E)
    cut_bias_kernel(ints, floats, work, True, rho)
    a, lam, w_dot, Z_inverse = np.zeros(n), np.zeros(m), np.zeros(p), np.zeros((n, padded(n)))
    table, rows, columns = np.empty((m + p, padded(n))), np.empty(m + p), np.empty(m + p)
    free, largest = np.empty((1, padded(n))), np.empty(padded(n))
    status, rank, condition = invert_rows(G, E, R_constant, virtual, tolerance, table, rows, columns, free, largest,
                                          Z_inverse)
    order = rows[:m].astype(np.int64)
    if status == OK:
        K, MK, reduced = np.empty((n, padded(p + 1))), np.empty((n, padded(p + 1))), np.empty((p, padded(p + 1)))
        if given_accelerations(M, h, gamma, rho, tau, virtual, rank, rows, Z_inverse, K, MK, reduced, a, lam):
            w_dot[:] = -reduced[:, p]
            shortest_multipliers(table, rank, m, rows, columns, np.empty((m - rank, padded(m - rank + 1))), lam)
        else:
            status = SINGULAR_INERTIA
    return status, rank, condition, a, lam, order, h, G, E, np.ascontiguousarray(Z_inverse[:, :n]), M, w_dot
