"""Elimination of the constraints, cluster by cluster: dependent velocities in terms of independent ones.

Constraints that share no degrees of freedom are in different clusters (`liedyn.model.clusters`), each with its own
tableau. Exchange steps (`liedyn.machine.linalg.gauss_jordan`) on its rows of G a - gamma, over its own degrees of
freedom, give

    [a_dependent]   [W  slopes  a_p] [y_1]
    [y_rest     ] = [T  0       0  ] [a_independent, 1]

so that K is the identity in the rows of the independent velocities and `slopes` in the others, and the costs are those
of the clusters: sum of m_c^2 n_c instead of m^2 n. The workspace holds all of it until the next elimination, at the
indices of `layout`. Accelerations and multipliers follow from it (`liedyn.mechanics.constraints.reduced`).

The `lane` argument selects one state or W states in lanes, which then have the same dependent velocities
(`liedyn.mechanics.dynamics.forward_in_lanes`).
"""
import numpy as np
from numba import types

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import (
    at,
    clear,
    element,
    exchange_rows,
    padded,
    padded_for,
    put_element,
    unweigh,
    weigh,
)
from liedyn.machine.linalg.ranks import negligible
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, matrix_in, splat, store, vector_in, width_of,
)
from liedyn.mechanics.constraints.sparse_factor import factor_in, factor_size
from liedyn.model.constraint_records import is_long, is_weighed, ranking_of
from liedyn.model.packed import (
    CLUSTERS_AT, CLUSTER_DOFS, CLUSTER_I, CLUSTER_NDOFS, CLUSTER_NROWS, CLUSTER_ROWS, NV, N_CLUSTERS, N_ROWS, SPARSE,
)
from liedyn.model.packed_records import MODEL

# stored for each cluster, and after the last one: index of its tableau, its first dependent and independent velocity,
# its first row
KEPT, TABLE, DEPENDENT, INDEPENDENT, ROW = 4, 0, 1, 2, 3


@inline
def cluster_count(model):
    return integer(model.ints, N_CLUSTERS)


@inline
def cluster_size(model, c):
    """Number of rows and of degrees of freedom of cluster c."""
    k = integer(model.ints, CLUSTERS_AT) + CLUSTER_I * c
    return integer(model.ints, k + CLUSTER_NROWS), integer(model.ints, k + CLUSTER_NDOFS)


@inline
def cluster_lists(model, c):
    """Indices in ints where the lists of its rows and of its degrees of freedom begin."""
    k = integer(model.ints, CLUSTERS_AT) + CLUSTER_I * c
    return integer(model.ints, k + CLUSTER_ROWS), integer(model.ints, k + CLUSTER_DOFS)


@inline
def numbering(model):
    """Indices of the integers in the workspace, after the clusters' data, and their end.

    dofs that are dependent and independent; their columns in the tableaux; rows in the order of the tableaux
    """
    w = padded(integer(model.ints, NV) + 1)
    dofs = padded(KEPT * (cluster_count(model) + 1))
    columns = dofs + 2 * w
    rows = columns + 2 * w
    return dofs, columns, rows, rows + padded(integer(model.ints, N_ROWS))


@inline
def layout(lane, model):
    """Indices of the numbers in the workspace: a_p; scratch; slopes; tableaux."""
    n, forced = integer(model.ints, NV), numbering(model)[3]
    w = padded_for(lane, n + 1)
    scratch = forced + w
    slopes = scratch + 2 * w
    return forced, scratch, slopes, slopes + n * padded_for(lane, n)


@kernel_in_place
def elimination_size(lane, model):
    """Size of the workspace of `eliminate`."""
    begin = size = layout(lane, model)[3]
    for c in range(cluster_count(model)):
        m, n = cluster_size(model, c)
        size += m * padded_for(lane, n + 1)
    if is_long(model):
        size = max(size, begin + factor_size(
            integer(model.ints, NV), integer(model.ints, N_ROWS), integer(model.ints, SPARSE)))
    return size


@inline
def factor_of(model, work):
    """L and U of a long chain of loops, stored in place of the tableaux
    (`liedyn.mechanics.constraints.sparse_elimination`)."""
    return factor_in(work, layout(SCALAR, model)[3],
    integer(model.ints, NV), integer(model.ints, N_ROWS),
                     integer(model.ints, SPARSE))


@inline
def kept(work, c, what):
    """Entry `what` of the data stored for cluster c."""
    return integer(integers_in(work, 0, 0), KEPT * c + what)


@inline
def dependent_dofs(model, work):
    """The degrees of freedom of the dependent velocities, cluster by cluster, and their columns."""
    at, columns = numbering(model)[:2]
    return integers_in(work, at, integer(model.ints, NV)), integers_in(work, columns, integer(model.ints, NV))


@inline
def independent_dofs(model, work):
    """The degrees of freedom of the independent velocities, cluster by cluster, and their columns."""
    w = padded(integer(model.ints, NV) + 1)
    at, columns = numbering(model)[:2]
    return integers_in(work, at + w, integer(model.ints, NV)), integers_in(work, columns + w, integer(model.ints, NV))


@inline
def solved_cluster(lane, model, work, c):
    """The tableau of cluster c, its first dependent velocity, and how many of them it has."""
    m, n = cluster_size(model, c)
    first = kept(work, c, DEPENDENT)
    table = matrix_in(work, kept(work, c, TABLE), m, padded_for(lane, n + 1))
    return table, first, kept(work, c + 1, DEPENDENT) - first


@inline
def dependence(lane, model, work, p):
    """slopes, padded, with a row for each dependent velocity and a column for each of p independent ones; and a_p."""
    forced, _, slopes, _ = layout(lane, model)
    n = integer(model.ints, NV)
    return matrix_in(work, slopes, n, padded_for(lane, p)), vector_in(work, forced, width_of(lane) * n)


@inline
def fill_table(lane, model, c, G, gamma, table):
    """The tableau G a - gamma of cluster c: a column for each of its accelerations, and one for the constant."""
    m, n = cluster_size(model, c)
    rows, dofs = cluster_lists(model, c)
    clear(table)
    for i in range(m):
        row = integer(model.ints, rows + i)
        for j in range(n):
            put_element(lane, table, i, j, element(lane, G, row, integer(model.ints, dofs + j)))
        put_element(lane, table, i, n, -load(lane, gamma, row))


@kernel
def cluster_weights(model, c, count):
    """The weights of `count` rows and of the columns of cluster c, in its own order; of all together if c is -1.

    Rows after those of the constraints have weight 1.
    """
    every, rows = ranking_of(model, 0.0), np.ones(count)
    if c < 0:
        rows[:every.rows.size] = every.rows
        return rows, every.columns.copy()
    (_, n), (of_rows, of_dofs) = cluster_size(model, c), cluster_lists(model, c)
    columns = np.empty(n)
    for i in range(count):
        rows[i] = every.rows[model.ints[of_rows + i]]
    for j in range(n):
        columns[j] = every.columns[model.ints[of_dofs + j]]
    return rows, columns


@late(MODEL, types.int64, types.int64, MATRIX)
@kernel
def weigh_table(model, c, width, table):
    """`weigh` with the weights of cluster c, for a tableau whose elements are `width` numbers."""
    rows, columns = cluster_weights(model, c, table.shape[0])
    weigh(table, width, rows, columns)


@late(MODEL, types.int64, types.int64, types.int64, types.int64, INTEGERS, INTEGERS, MATRIX)
@kernel
def unweigh_table(model, c, width, first, second, order, chosen, table):
    """`unweigh` with the weights of cluster c, after exchange steps."""
    rows, columns = cluster_weights(model, c, table.shape[0])
    unweigh(table, width, first, second, order, chosen, rows, columns)


@inline
def keep_places(work, c, at_table, k, s, row):
    """Store where the tableau, the dependent and independent velocities and the rows of cluster c begin."""
    keep = integers_in(work, KEPT * c, KEPT)
    keep[TABLE], keep[DEPENDENT], keep[INDEPENDENT], keep[ROW] = at_table, k, s, row


@inline
def keep_choice(model, work, c, k, s, row, rank, chosen):
    """Store the order of the rows and velocities of cluster c; `chosen` is nonzero for its dependent velocities.

    Returns the index of the first independent velocity of the next cluster.
    """
    m, n = cluster_size(model, c)
    of_rows, of_dofs = cluster_lists(model, c)
    dependent, columns = dependent_dofs(model, work)
    independent, places = independent_dofs(model, work)
    rows = integers_in(work, numbering(model)[2] + row, m)
    for i in range(m):
        rows[i] = integer(model.ints, of_rows + rows[i])
    for i in range(rank):
        dependent[k + i] = integer(model.ints, of_dofs + columns[k + i])
    for j in range(n):
        if load(SCALAR, chosen, j) == 0.0:
            independent[s], places[s] = integer(model.ints, of_dofs + j), j
            s += 1
    return s


@kernel_in_place
def eliminate(model, G, gamma, choosable, tolerance, work):
    """Solve the constraints for as many velocities as they determine, of those where `choosable` is 1, not 0.

    Returns (rank, ratio, complete): the number of independent rows; the smallest weighted pivot divided by the largest
    of its cluster; whether the remaining rows depend on these, which fails only if some dofs could not be chosen, or
    rows are NaN.
    """
    _, scratch, _, at_table = layout(SCALAR, model)
    k = s = row = 0
    ratio, complete = 1.0, True
    for c in range(cluster_count(model)):
        keep_places(work, c, at_table, k, s, row)
        m, n = cluster_size(model, c)
        of_dofs = cluster_lists(model, c)[1]
        rank = 0
        free = matrix_in(work, scratch, 2, padded(n + 1))
        clear(free)
        if m > 0:
            table = matrix_in(work, at_table, m, padded(n + 1))
            fill_table(SCALAR, model, c, G, gamma, table)
            if is_weighed(model):
                weigh_table(model, c, 1, table)
            for j in range(n):
                store(SCALAR, free, j, load(SCALAR, choosable, integer(model.ints, of_dofs + j)))
            order, own = integers_in(work, numbering(model)[2] + row, m), integers_in(work, numbering(model)[1] + k, n)
            rank, first, smallest = exchange_rows(table, 0, m, n, tolerance, order, own, free)
            if rank > 0:
                ratio = min(ratio, smallest / first)
            for j in range(n):
                store(SCALAR, free, j, 0.0)
            for i in range(rank):
                store(SCALAR, free, own[i], 1.0)
            for i in range(rank, m):
                for j in range(n):
                    if load(SCALAR, free, j) == 0.0 and not negligible(abs(at(table, i, j)), first, tolerance):
                        complete = False
            if is_weighed(model):
                unweigh_table(model, c, 1, rank, m, order, own, table)
        s = keep_choice(model, work, c, k, s, row, rank, free)
        k, row, at_table = k + rank, row + m, at_table + m * padded(n + 1)
    keep_places(work, cluster_count(model), at_table, k, s, row)
    put_slopes(SCALAR, model, work, s)
    return k, ratio, complete


@inline
def put_slopes(lane, model, work, p):
    """slopes and a_p, copied from the tableaux."""
    slopes, forced = dependence(lane, model, work, p)
    places, width = independent_dofs(model, work)[1], slopes.shape[1] // WIDTH
    for c in range(cluster_count(model)):
        n = cluster_size(model, c)[1]
        table, first, rank = solved_cluster(lane, model, work, c)
        for k in range(first, first + rank):
            for b in range(width):
                store(LANES, slopes, width * k + b, splat(LANES, 0.0))
            for s in range(kept(work, c, INDEPENDENT), kept(work, c + 1, INDEPENDENT)):
                put_element(lane, slopes, k, s, element(lane, table, k - first, integer(places, s)))
            store(lane, forced, k, element(lane, table, k - first, n))


@inline
def put_row_order(model, work, rows):
    """Indices of the rows, independent ones first."""
    order, count = integers_in(work, numbering(model)[2], integer(model.ints, N_ROWS)), cluster_count(model)
    k, end = 0, kept(work, count, DEPENDENT)
    for c in range(count):
        m, row = cluster_size(model, c)[0], kept(work, c, ROW)
        rank = kept(work, c + 1, DEPENDENT) - kept(work, c, DEPENDENT)
        for l in range(rank):
            rows[k + l] = order[row + l]
        for l in range(rank, m):
            rows[end + l - rank] = order[row + l]
        k, end = k + rank, end + m - rank
