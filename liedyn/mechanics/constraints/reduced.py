"""Constrained accelerations and multipliers from an elimination (`liedyn.mechanics.constraints.elimination`).

With R = tau - h, and K, W, T and a_p of the elimination,

    K^T M K wdot = K^T (R - M a_p)        mu = W^T (R - M a)        (1 + T^T T) lambda_1 = mu, lambda_rest = T lambda_1

Row s of K^T M is row s of M for the independent velocity s, plus the slopes of s times the rows of the velocities that
depend on it. The `lane` argument selects one state or W states in lanes.
"""
from collections import namedtuple

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import add_row, clear, element, padded_for, put_element, solve_rows
from liedyn.machine.simd.lanes import (
    LANES, WIDTH, integer, integers_in, load, matrix_in, splat, store, take_matrix, take_vector, vector_in, width_of,
)
from liedyn.machine.simd.registers import at_once
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, INDEPENDENT, ROW, cluster_count, cluster_lists, cluster_size, dependence, dependent_dofs,
    independent_dofs, kept, numbering, solved_cluster,
)
from liedyn.mechanics.constraints.sparse_elimination import is_sparse
from liedyn.mechanics.constraints.sparse_reduced import (
    balancing_multipliers, constraint_force_of_cuts, reduce_inertia_of_tree, unbalanced_of_tree,
)
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS


# ---- accelerations


@inline
def reduce_inertia(lane, model, work, M, p, KM, reduced):
    """KM = K^T M (p, n) and the first p columns of `reduced`, K^T M K (p, p + 1); all padded, M too."""
    if width_of(lane) == 1 and is_sparse(model, work):
        reduce_inertia_of_tree(model, work, M, KM, reduced)
        return
    dependent, independent = dependent_dofs(model, work)[0], independent_dofs(model, work)[0]
    slopes, w = dependence(lane, model, work, p)[0], M.shape[1] // WIDTH
    for c in range(cluster_count(model)):
        for s in range(kept(work, c, INDEPENDENT), kept(work, c + 1, INDEPENDENT)):
            for b in range(w):
                store(LANES, KM, w * s + b, load(LANES, M, w * integer(independent, s) + b))
            for k in range(kept(work, c, DEPENDENT), kept(work, c + 1, DEPENDENT)):
                add_row(KM, s, element(lane, slopes, k, s), M, integer(dependent, k))
    to, from_, columns = reduced.shape[1] // WIDTH, slopes.shape[1] // WIDTH, at_once(lane)
    clear(reduced)
    for i in range(p):
        for s in range(p):
            put_element(lane, reduced, i, s, element(lane, KM, i, integer(independent, s)))
    for c in range(cluster_count(model)):
        # blocks of columns of the cluster's independent velocities
        begin, end = kept(work, c, INDEPENDENT) // columns, (kept(work, c + 1, INDEPENDENT) + columns - 1) // columns
        for k in range(kept(work, c, DEPENDENT), kept(work, c + 1, DEPENDENT)):
            for i in range(p):
                x = element(lane, KM, i, integer(dependent, k))
                for b in range(begin, end):
                    store(LANES, reduced, to * i + b,
                          load(LANES, reduced, to * i + b) + x * load(LANES, slopes, from_ * k + b))


@inline
def reduce_forces(lane, model, work, balance, p, reduction):
    """Column p of the reduced matrix: K^T (tau - h - M a_p)."""
    (_, h, tau), KM, reduced = balance, reduction.KM, reduction.reduced
    dependent, independent = dependent_dofs(model, work)[0], independent_dofs(model, work)[0]
    slopes, forced = dependence(lane, model, work, p)
    rank = integer(model.ints, NV) - p
    for c in range(cluster_count(model)):
        for s in range(kept(work, c, INDEPENDENT), kept(work, c + 1, INDEPENDENT)):
            j = integer(independent, s)
            x = load(lane, tau, j) - load(lane, h, j)
            for k in range(kept(work, c, DEPENDENT), kept(work, c + 1, DEPENDENT)):
                j = integer(dependent, k)
                x = x + element(lane, slopes, k, s) * (load(lane, tau, j) - load(lane, h, j))
            for k in range(rank):
                x = x - element(lane, KM, s, integer(dependent, k)) * load(lane, forced, k)
            put_element(lane, reduced, s, p, x)


@inline
def put_accelerations(lane, model, work, w_dot, p, a):
    """a = K wdot + a_p; wdot is column p of `w_dot`."""
    dependent, independent = dependent_dofs(model, work)[0], independent_dofs(model, work)[0]
    slopes, forced = dependence(lane, model, work, p)
    for c in range(cluster_count(model)):
        for k in range(kept(work, c, DEPENDENT), kept(work, c + 1, DEPENDENT)):
            x = load(lane, forced, k)
            for s in range(kept(work, c, INDEPENDENT), kept(work, c + 1, INDEPENDENT)):
                x = x + element(lane, slopes, k, s) * element(lane, w_dot, s, p)
            store(lane, a, integer(dependent, k), x)
    for s in range(p):
        store(lane, a, integer(independent, s), element(lane, w_dot, s, p))


ForceBalance = namedtuple("ForceBalance", "M h tau")
"""Of M a + h + G^T lambda = tau; M may be padded."""

Reduction = namedtuple("Reduction", "KM reduced inertia")
"""K^T M (p, n); its reduction, which is solved, and what remains of K^T M K (p, p + 1 each); all padded."""


@kernel_in_place
def reduced_motion(lane, model, work, balance, reduction, a):
    """Solve K^T M K wdot = K^T (tau - h - M a_p), a = K wdot + a_p; K^T M K and K^T M remain in `reduction`.

    False if K^T M K is not positive definite, in any lane.
    """
    KM, reduced, inertia = reduction
    p = reduced.shape[0]
    reduce_inertia(lane, model, work, balance.M, p, KM, reduced)
    for b in range(p * (reduced.shape[1] // WIDTH)):
        store(LANES, inertia, b, load(LANES, reduced, b))
    reduce_forces(lane, model, work, balance, p, reduction)
    regular = solve_rows(lane, reduced)
    put_accelerations(lane, model, work, reduced, p, a)
    return regular


# ---- multipliers


@inline
def unbalanced(lane, model, M, h, tau, a, left):
    """left = tau - h - M a, padded: the generalized force that G^T lambda must equal."""
    if width_of(lane) == 1 and is_long(model):
        n = integer(model.ints, NV)
        unbalanced_of_tree(
            model, M, vector_in(h, 0, n), vector_in(tau, 0, n), vector_in(a, 0, n), vector_in(left, 0, n))
        return
    n, w = M.shape[0], M.shape[1] // WIDTH
    for b in range(w):
        total = splat(LANES, 0.0)
        for j in range(n):
            total = total + load(lane, a, j) * load(LANES, M, w * j + b)
        store(LANES, left, b, total)
    for j in range(n):
        store(lane, left, j, load(lane, tau, j) - load(lane, h, j) - load(lane, left, j))


@inline
def multipliers_size(lane, model):
    """Size of the largest scratch for multipliers of minimum norm: a matrix for the independent rows."""
    rank = min(integer(model.ints, NV), integer(model.ints, N_ROWS))
    return rank * padded_for(lane, rank + 1)


@kernel_in_place
def shortest_multipliers(lane, table, rank, m, rows, columns, normal, lam):
    """Solve (1 + T^T T) lambda_1 = mu in place of mu, then lambda_rest = T lambda_1 for the dependent rows."""
    clear(normal)
    for k in range(rank):
        for l in range(k + 1):
            x = splat(lane, 1.0 if k == l else 0.0)
            for i in range(rank, m):
                x = x + element(lane, table, i, integer(columns, k)) * element(lane, table, i, integer(columns, l))
            put_element(lane, normal, k, l, x)
            put_element(lane, normal, l, k, x)
        put_element(lane, normal, k, rank, load(lane, lam, integer(rows, k)))
    solve_rows(lane, normal)
    for k in range(rank):
        store(lane, lam, integer(rows, k), element(lane, normal, k, rank))
    for i in range(rank, m):
        x = splat(lane, 0.0)
        for k in range(rank):
            x = x + element(lane, table, i, integer(columns, k)) * element(lane, normal, k, rank)
        store(lane, lam, integer(rows, i), x)


@kernel_in_place
def minimum_norm_multipliers(lane, model, work, left, scratch, lam):
    """lambda (m) of minimum norm with G^T lambda = left; `scratch` has `multipliers_size` numbers."""
    if width_of(lane) == 1 and is_sparse(model, work):
        n, m = integer(model.ints, NV), integer(model.ints, N_ROWS)
        balancing_multipliers(model, work, vector_in(left, 0, n), vector_in(lam, 0, m))
        return
    dependent, columns = dependent_dofs(model, work)
    _, places, order, _ = numbering(model)
    for c in range(cluster_count(model)):
        m, n = cluster_size(model, c)
        if m == 0:
            continue
        table, first, rank = solved_cluster(lane, model, work, c)
        rows, own = integers_in(work, order + kept(work, c, ROW), m), integers_in(work, places + first, rank)
        for k in range(rank):  # mu = W^T left
            x, column = splat(lane, 0.0), integer(own, k)
            for i in range(rank):
                x = x + element(lane, table, i, column) * load(lane, left, integer(dependent, first + i))
            store(lane, lam, integer(rows, k), x)
        if m > rank:
            shortest_multipliers(
                lane, table, rank, m, rows, own, matrix_in(scratch, 0, rank, padded_for(lane, rank + 1)), lam)


@inline
def constraint_force(lane, model, G, lam, force):
    """force = G^T lambda, cluster by cluster."""
    if width_of(lane) == 1 and is_long(model):
        n, m = integer(model.ints, NV), integer(model.ints, N_ROWS)
        constraint_force_of_cuts(model, G, vector_in(lam, 0, m), vector_in(force, 0, n))
        return
    for j in range(integer(model.ints, NV)):
        store(lane, force, j, splat(lane, 0.0))
    for c in range(cluster_count(model)):
        m, n = cluster_size(model, c)
        rows, dofs = cluster_lists(model, c)
        for i in range(m):
            row = integer(model.ints, rows + i)
            x = load(lane, lam, row)
            for k in range(n):
                j = integer(model.ints, dofs + k)
                store(lane, force, j, load(lane, force, j) + element(lane, G, row, j) * x)


@inline
def constrained_motion(lane, model, e, balance, work, inertia, found):
    """found = (a, lambda of minimum norm); K^T M K remains in `inertia`. False if that is not positive definite."""
    p, (M, h, tau), (a, lam) = inertia.shape[0], balance, found
    KM = take_matrix(work, p, M.shape[1])
    reduced, left = take_matrix(work, p, inertia.shape[1]), take_vector(work, M.shape[1])
    if not reduced_motion(lane, model, e, balance, Reduction(KM, reduced, inertia), a):
        return False
    unbalanced(lane, model, M, h, tau, a, left)
    minimum_norm_multipliers(lane, model, e, left, take_vector(work, multipliers_size(lane, model)), lam)
    return True
