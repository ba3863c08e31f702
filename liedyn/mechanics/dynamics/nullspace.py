"""Null-space dynamics: constrained accelerations in independent coordinates (Spencer 2004, 2.3 and 2.4, eq. 2.42-2.47).

Independent velocities w = R v (rows that pick coordinates of the tree, read virtual velocities at a cut, or span the
tangent space) and r independent rows G_1 of G = [G_1; T G_1] together determine v. All quantities follow from one
inverse:

    [G_1; R]^-1 = [G_1^# K]        G K = 0,  R K = 1,  G G_1^# = [1; T]

    a = K wdot + a_p               a_p = [G_1^# K] (-Gdot v, -Rdot v)
    K^T M K wdot = K^T (tau - h - M a_p)

Only K^T M K has to be regular: massless bodies held by the constraints are permitted. Redundant rows, and the zero rows
of inactive constraints, affect only the multipliers, which are those of minimum norm: G^T lambda = tau - h - M a.

`acceleration_kernel` lets the elimination choose the coordinates, as a does not depend on them, and works on clusters
of constraints (`liedyn.mechanics.constraints.elimination`).
`nullspace_kernel` uses given coordinates: exchanging the rows R as well turns the tableau into [G_1; R]^-1.

Errors for states that `nullspace_kernel` cannot solve.
"""
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.errors import SingularConfigurationError
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_transposed_product, at, clear, exchange_rows, padded, solve_rows,
)
from liedyn.machine.simd.lanes import SCALAR, WIDTH, integer, matrix_in, store, vector_in
from liedyn.machine.simd.registers import before_line
from liedyn.mechanics.constraints.constraint_rows import reader_rows
from liedyn.mechanics.constraints.elimination import elimination_size, unweigh_table, weigh_table
from liedyn.mechanics.constraints.families.cut import cut_bias_kernel
from liedyn.mechanics.constraints.independent import singular_choice, wrong_count
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.constraints.reduced import (
    ForceBalance, Reduction, minimum_norm_multipliers, multipliers_size, reduced_motion, shortest_multipliers,
    unbalanced,
)
from liedyn.mechanics.constraints.sparse_elimination import eliminate_rows
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import copy_inertia, put_terms, terms_in_place, terms_size
from liedyn.mechanics.tree.ltdl import ltdl_factor, ltdl_solve
from liedyn.model.constraint_records import is_weighed
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL


def raise_for_status(robot, q, chosen, solved):
    """Raise the error for the status of `nullspace_kernel`."""
    status, rank = solved[:2]
    if status == WRONG_COUNT:
        if len(chosen.names) == robot.nv - rank_of(robot, robot.home, RANK_TOLERANCE)[0]:
            # the coordinates fit the robot, but this configuration has lost or gained a motion
            raise singular_choice(robot, q, chosen)
        raise wrong_count(robot, chosen, rank)
    if status == SINGULAR_CHOICE:
        raise singular_choice(robot, q, chosen)
    if status == SINGULAR_INERTIA:
        K, M = solved[9][:, rank:], solved[10]
        raise SingularConfigurationError(
            f"no inertia resists some motion of {robot.name!r} that its loops allow: K^T M K is not positive definite",
            np.linalg.svd(K.T @ M @ K, compute_uv=False))


OK, WRONG_COUNT, SINGULAR_CHOICE, SINGULAR_INERTIA = range(4)

RANK_TOLERANCE = 1e-8
"""A pivot of G below this fraction of the largest one counts as zero. For states closed to 1e-12, redundant rows are of
about this size; independent rows of machines measured in mm and rad stay above 1e-4."""


@inline
def solution(w_dot, K, p, a):
    """a = K wdot + a_p, for K with a_p as column p, and -wdot in column p of `w_dot`."""
    for i in range(a.size):
        x = at(K, i, p)
        for s in range(p):
            x -= at(K, i, s) * at(w_dot, s, p)
        a[i] = x


@kernel_in_place
def reduced_accelerations(M, h, tau, K, MK, reduced, a):
    """Solve K^T M K wdot = K^T (tau - h - M a_p) for a, with [K a_p] in K; False if K^T M K is not positive definite.

    MK receives M [K a_p] with h - tau added to its last column, `reduced` [1, -wdot]; all padded.
    """
    n, p = h.size, reduced.shape[0]
    clear(MK)
    add_product(SCALAR, 1.0, M, n, K, MK)
    for i in range(n):
        MK[i, p] += h[i] - tau[i]
    clear(reduced)
    add_transposed_product(K, 0, p, MK, reduced)
    regular = solve_rows(SCALAR, reduced)
    solution(reduced, K, p, a)
    return regular


@inline
def left_to_balance(reduced, MK, p, i):
    """(tau - h - M a)_i, the constraint force needed; after `reduced_accelerations`."""
    x = -at(MK, i, p)
    for s in range(p):
        x += at(MK, i, s) * at(reduced, s, p)
    return x


# ---- coordinates chosen by pivoting


@inline
def solve_layout(model):
    """Indices in the workspace of the solution, the last one that of the elimination.

    M, K^T M and its reduction, which the multipliers overwrite; the constraint force needed; a mask of the dofs
    """
    n = integer(model.ints, NV)
    w, one = padded(n), padded(n + 1)
    KM = w * n
    reduced = KM + w * n
    inertia = reduced + max(one * n, multipliers_size(SCALAR, model))
    left = inertia + one * n
    choosable = left + w
    return 0, KM, reduced, inertia, left, choosable, choosable + w


@kernel_in_place
def solve_size(model):
    """Size of the workspace of `solve_accelerations`."""
    return solve_layout(model)[6] + elimination_size(SCALAR, model)


@kernel_in_place
def acceleration_size(model):
    """Size of the workspace of `acceleration_kernel`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return WIDTH + solve_size(model) + padded(terms_size(model) + n + m) + padded(m * n)


@kernel_in_place
def solve_tree(model, M, h, tau, L, a):
    """a = M^-1 (tau - h), exploiting the sparsity of the tree; L receives the factor of M. False if M is singular."""
    n = h.size
    for i in range(n):
        for j in range(n):
            store(SCALAR, L, n * i + j, at(M, i, j))
        a[i] = tau[i] - h[i]
    ltdl_factor(SCALAR, model, L)
    ltdl_solve(SCALAR, model, L, 1.0, a, 1)
    regular = True
    for i in range(n):
        regular = regular and at(L, i, i) > 0.0
    return regular


@inline
def elimination_in(model, work):
    """Parts of the solution's workspace: the mask of velocities that may be dependent, and that of the elimination."""
    _, _, _, _, _, choosable_at, e_at = solve_layout(model)
    return vector_in(work, choosable_at, model.ints[NV]), vector_in(work, e_at, work.size - e_at)


@inline
def solve_padded(model, terms, tau, tolerance, work, a):
    """`solve_accelerations` for a padded M."""
    choosable, _ = elimination_in(model, work)
    for j in range(tau.size):
        store(SCALAR, choosable, j, 1.0)
    return solve_chosen(model, terms, tau, tolerance, work, a)


@kernel_in_place
def solve_chosen(model, terms, tau, tolerance, work, a):
    """`solve_padded` with the dependent velocities among those marked in the mask of `elimination_in`."""
    M, h, G, gamma = terms
    n = h.size
    _, KM_at, reduced_at, inertia_at, left_at, _, _ = solve_layout(model)
    choosable, e = elimination_in(model, work)
    rank, ratio, complete = eliminate_rows(model, M, G, gamma, choosable, tolerance, e)
    p = n - rank
    if rank == 0:
        regular = solve_tree(model, M, h, tau, matrix_in(work, reduced_at, n, n), a)
    else:
        reduction = Reduction(matrix_in(work, KM_at, p, padded(n)), matrix_in(work, reduced_at, p, padded(p + 1)),
                              matrix_in(work, inertia_at, p, padded(p + 1)))
        regular = reduced_motion(SCALAR, model, e, ForceBalance(M, h, tau), reduction, a)
    if gamma.size > 0:
        unbalanced(SCALAR, model, M, h, tau, a, vector_in(work, left_at, padded(n)))
    return (OK if regular and complete else SINGULAR_INERTIA), rank, ratio


@kernel_in_place
def solve_accelerations(model, terms, tau, tolerance, work, a):
    """a (nv) of M a + h + G^T lambda = tau, G a = gamma, with `solve_size` numbers of workspace.

    Returns (status, rank, ratio) as `acceleration_kernel`.
    """
    n = tau.size
    M = matrix_in(work, solve_layout(model)[0], n, padded(n))
    copy_inertia(model, terms.M, M)
    return solve_padded(model, Terms(M, terms.h, terms.G, terms.gamma), tau, tolerance, work, a)


@kernel_in_place
def solve_multipliers(model, work, lam):
    """lambda (m) of minimum norm, from the workspace after `solve_accelerations`."""
    _, _, reduced_at, _, left_at, _, _ = solve_layout(model)
    left, scratch = vector_in(work, left_at, padded(model.ints[NV])), vector_in(work, reduced_at, left_at - reduced_at)
    minimum_norm_multipliers(SCALAR, model, elimination_in(model, work)[1], left, scratch, lam)


@kernel_in_place
def acceleration_kernel(model, q, v, tau, f_ext, tolerance, work, a, lam):
    """a (nv) and the minimum-norm lam (m), with `acceleration_size` numbers of workspace.

    Returns (status, rank, ratio): OK, or SINGULAR_INERTIA if some motion has no mass, or a row of G is NaN as its
    constraint has no direction; number of independent rows of G; the smallest pivot divided by the largest of its
    cluster, which is small near singular configurations. `f_ext` is (6 links) or empty.
    """
    n, m = model.ints[NV], model.ints[N_ROWS]
    size = terms_size(model)
    k = before_line(work, 0)
    world, h, gamma = vector_in(work, k, size), vector_in(work, k + size, n), vector_in(work, k + size + n, m)
    k = k + padded(size + n + m)
    G, k = matrix_in(work, k, m, n), k + padded(m * n)
    solution = vector_in(work, k, work.size - k)
    terms = Terms(matrix_in(work, k, n, padded(n)), h, G, gamma)
    put_terms(model, q, v, f_ext, world, terms)
    status, rank, ratio = solve_padded(model, terms, tau, tolerance, solution, a)
    solve_multipliers(model, solution, lam)
    return status, rank, ratio


# ---- given coordinates


Tableau = namedtuple("Tableau", "table rows columns free Z_inverse")
"""The exchanged tableau T (m + p rows, padded) of [G; R]; rows[:rank] are the numbers of the rows G_1, columns[:rank]
their columns of the tableau (m + p each); scratch (2, padded); Z_inverse = [G_1; R]^-1 (n, n), padded."""

Reduced = namedtuple("Reduced", "K MK w_dot")
"""Matrices of `reduced_accelerations`."""


@kernel_in_place
def invert_rows(model, G, E, R, virtual, tolerance, tableau):
    """[G_1; R]^-1 in `tableau`; rows of R are replaced by rows of E where `virtual` >= 0.

    Returns (status, rank, condition).
    """
    table, rows, columns, free, Z_inverse = tableau
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
    if is_weighed(model):
        weigh_table(model, -1, 1, table)
    rank, _, _ = exchange_rows(table, 0, m, n, tolerance, rows, columns, free)
    if rank + p != n:
        return WRONG_COUNT, rank, np.inf
    count, _, _ = exchange_rows(table, m, m + p, n, 0.0, rows, columns, free)
    if count < p:
        return SINGULAR_CHOICE, rank, np.inf
    if is_weighed(model):
        unweigh_table(model, -1, 1, rank, m, rows, columns, table)
    clear(Z_inverse)
    inverse_norm = norm = 0.0
    for k in range(n):
        # column k of the inverse belongs to row k of Z, which is row i of the tableau
        i = k if k < rank else m + k - rank
        to = k if k < rank else rank + rows[i] - m
        c = columns[i]
        s = 0.0
        for l in range(n):
            row = l if l < rank else m + l - rank
            x = at(table, row, c)
            Z_inverse[columns[row], to] = x
            s += abs(x)
        inverse_norm = max(inverse_norm, s)
    for j in range(n):
        s = 0.0
        for k in range(rank):
            s += abs(G[rows[k], j])
        for k in range(p):
            s += abs(E[virtual[k], j] if virtual[k] >= 0 else R[k, j])
        norm = max(norm, s)
    condition = norm * inverse_norm
    singular = not condition < 1.0 / np.finfo(np.float64).eps
    return (SINGULAR_CHOICE if singular else OK), rank, condition


@kernel_in_place
def given_accelerations(terms, rho, tau, virtual, rank, tableau, reduced, a, lam):
    """a, -w_dot in column p of `reduced.w_dot`, and lam for the rows G_1; False if K^T M K is not positive definite."""
    n, p, rows, Z_inverse, (K, MK, w_dot) = tau.size, virtual.size, tableau.rows, tableau.Z_inverse, reduced
    clear(K)
    for i in range(n):
        for s in range(p):
            K[i, s] = at(Z_inverse, i, rank + s)
        x = 0.0
        for k in range(rank):
            x += at(Z_inverse, i, k) * terms.gamma[rows[k]]
        for s in range(p):
            if virtual[s] >= 0:
                x -= at(Z_inverse, i, rank + s) * rho[virtual[s]]
        K[i, p] = x
    regular = reduced_accelerations(terms.M, terms.h, tau, K, MK, w_dot, a)
    for k in range(rank):
        lam[rows[k]] = 0.0
    for i in range(n):
        left = left_to_balance(w_dot, MK, p, i)
        for k in range(rank):
            lam[rows[k]] += at(Z_inverse, i, k) * left
    return regular


@kernel
def nullspace_kernel(model, q, v, tau, f_ext, R_constant, virtual, tolerance):
    """Constrained accelerations in given coordinates; for symbols see the module's docstring.

    `virtual[k]` is the number of the virtual velocity that is independent velocity k, or -1 for row k of `R_constant`.
    Returns (status, rank, condition, a, lam, order, h, G, E, Z_inverse, M, w_dot); `order` lists the rows G_1 first.
    """
    n, m, nz, p = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], virtual.size
    work, E, rho = np.empty(terms_size(model)), np.empty((nz, n)), np.empty(nz)
    terms = Terms(np.empty((n, n)), np.empty(n), np.empty((m, n)), np.empty(m))
    terms_in_place(model, q, v, f_ext, work, terms)
    reader_rows(SCALAR, model, work, E)
    cut_bias_kernel(model, work, True, rho)
    a, lam, w_dot = np.zeros(n), np.zeros(m), np.zeros(p)
    tableau = Tableau(np.empty((m + p, padded(n))), np.empty(m + p, np.int64), np.empty(m + p, np.int64),
                      np.empty((2, padded(n))), np.zeros((n, padded(n))))
    status, rank, condition = invert_rows(model, terms.G, E, R_constant, virtual, tolerance, tableau)
    order = tableau.rows[:m].copy()
    if status == OK:
        reduced = Reduced(np.empty((n, padded(p + 1))), np.empty((n, padded(p + 1))), np.empty((p, padded(p + 1))))
        if given_accelerations(terms, rho, tau, virtual, rank, tableau, reduced, a, lam):
            w_dot[:] = -reduced.w_dot[:, p]
            shortest_multipliers(SCALAR, tableau.table, rank, m, tableau.rows, tableau.columns,
                                 np.empty((rank, padded(rank + 1))), lam)
        else:
            status = SINGULAR_INERTIA
    return (status, rank, condition, a, lam, order, terms.h, terms.G, E,
            np.ascontiguousarray(tableau.Z_inverse[:, :n]), terms.M, w_dot)
