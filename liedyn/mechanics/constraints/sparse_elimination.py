"""Elimination of the constraints of long chains of loops, at a cost linear in their number.

A row of a cut joint has entries only in the few degrees of freedom between its two ends. The tableau of
`liedyn.mechanics.constraints.elimination` would cost the cube of a cluster's size. Here the rows are factored one after
the other, G_1 = L U (`liedyn.mechanics.constraints.sparse_factor`), in an order in which neighbours follow each other
(`liedyn.model.clusters`). Back substitution gives the slopes and the forced part of the dependent velocities, stored as
`eliminate` stores them; other parts of the tableau are solved for with L and U:

    W y = (L U)^-1 y        W^T f = (L U)^-T f

Factoring row by row is less reliable for rank and conditioning than complete pivoting. So if a pivot is small compared
with its row, or a slope is steep, `eliminate` is used instead. Outside their sparsity patterns G and M are neither read
nor written here; `complete_terms` writes the zeros there before dense code reads them.
"""
import numpy as np
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, late
from liedyn.machine.linalg.gauss_jordan import add_row, at, put_element
from liedyn.machine.linalg.ranks import SMALL_ROW, negligible
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, integers_in, load, splat, store
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, ROW, TABLE, cluster_count, cluster_lists, cluster_size, dependence, dependent_dofs,
    eliminate, factor_of, independent_dofs, keep_places, kept, layout, numbering,
)
from liedyn.mechanics.constraints.relative import path_ends, toward_ground
from liedyn.mechanics.constraints.sparse_factor import (
    SMALL_PIVOT, find_pivot, put_dependence, reduce_row, solve_block, solve_lower, solve_transposed, solve_upper,
    take_row, touch,
)
from liedyn.model.constraint_records import is_active, is_long, loop_count, loop_rows, ranking_of
from liedyn.model.packed import NV
from liedyn.model.packed_records import MODEL, subtree_end

STEEP = 1e4
"""Slope of a dependent velocity above which another choice of independent ones may be better."""


@inline
def is_sparse(model, e):
    """True if the elimination in workspace e stored L and U instead of tableaux."""
    return is_long(model) and kept(e, cluster_count(model), TABLE) < 0


@inline
def rank_of(model, e):
    """Number of dependent velocities."""
    return kept(e, cluster_count(model), DEPENDENT)


# ---- elimination


@inline
def gather_row(model, G, f, i, columns):
    """Load row i of the order into f.x; returns how many columns it has, the first pivot among them, and its largest
    element, each multiplied by its column's weight."""
    count, lowest, largest, row = 0, integer(model.ints, NV), 0.0, f.row[i]
    l = f.cut[row]
    ja, jb = path_ends(model, l)
    while ja != jb and is_active(model, l):
        j = max(ja, jb)
        x = at(G, row, j)
        f.x[j], largest = x, max(largest, abs(x) * columns[j]) if abs(x) < np.inf else np.inf
        count, lowest = touch(f, i, j, count, lowest)
        ja, jb = toward_ground(model, ja, jb)
    return count, lowest, largest


@inline
def put_order(model, f):
    """The rows in the order of the elimination, cluster by cluster, and the cut that each row of G belongs to."""
    i = 0
    for c in range(cluster_count(model)):
        rows = cluster_lists(model, c)[0]
        for k in range(cluster_size(model, c)[0]):
            f.row[i] = integer(model.ints, rows + k)
            i += 1
    for l in range(loop_count(model)):
        first, count = loop_rows(model, l)
        for r in range(count):
            f.cut[first + r] = l


@inline
def keep_cluster(model, e, f, c, first_row, s):
    """Store cluster c as `eliminate` does: the order of its rows, its independent velocities; returns their number."""
    m, n = cluster_size(model, c)
    dofs = cluster_lists(model, c)[1]
    order, k = integers_in(e, numbering(model)[2] + first_row, m), 0
    for independent in (True, False):
        for i in range(first_row, first_row + m):
            if (f.pivot[i] >= 0) == independent:
                order[k] = f.row[i]
                k += 1
    free, places = independent_dofs(model, e)
    for j in range(n):
        dof = integer(model.ints, dofs + j)
        if f.place[dof] < 0:
            free[s], places[s], f.seat[dof] = dof, j, s
            s += 1
    return s


@inline
def put_sparse_slopes(model, e, f, rank, p):
    """slopes and a_p by back substitution; returns the largest slope, of weighted coordinates."""
    weights = ranking_of(model, 0.0).columns
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    slopes, forced = dependence(SCALAR, model, e, p)
    width, largest = slopes.shape[1] // WIDTH, 0.0
    for k in range(rank - 1, -1, -1):
        row, x = f.position[k], f.y[k]
        for b in range(width):
            store(LANES, slopes, width * k + b, splat(LANES, 0.0))
        for u in range(f.upper[row], f.end[row]):
            j, y = f.index[u], f.values[u]
            if f.place[j] >= 0:
                add_row(slopes, k, -y, slopes, f.place[j])
                x -= y * forced[f.place[j]]
            else:
                put_element(SCALAR, slopes, k, f.seat[j], at(slopes, k, f.seat[j]) - y)
        forced[k] = x
        for s in range(p):
            largest = max(largest, abs(at(slopes, k, s)) * weights[independent[s]] / weights[dependent[k]])
    return largest


@late(MODEL, MATRIX, VECTOR, VECTOR, types.float64, VECTOR,
      returns=types.Tuple((types.int64, types.float64, types.boolean)))
def factor_rows(model, G, gamma, choosable, tolerance, e):
    """Factor the rows as L U: (rank, ratio) as in `eliminate`, and False if pivots or slopes are doubtful."""
    f, failed, begin = factor_of(model, e), (0, 0.0, False), layout(SCALAR, model)[3]
    (dependent, columns), weights = dependent_dofs(model, e), ranking_of(model, tolerance)
    for j in range(f.place.size):
        f.place[j] = f.mark[j] = -1
        f.block[j] = 0.0
        columns[j] = 0
    put_order(model, f)
    rank = end = i = 0
    ratio = 1.0
    for c in range(cluster_count(model)):
        keep_places(e, c, begin, rank, 0, i)
        largest, first, smallest, least = 0.0, 0.0, np.inf, np.inf
        for _ in range(cluster_size(model, c)[0]):
            f.lower[i], f.pivot[i] = end, -1
            weight = weights.rows[f.row[i]]
            count, lowest, own = gather_row(model, G, f, i, weights.columns)
            own *= weight
            if not own < np.inf:
                return failed
            largest = max(largest, own)
            constant, count = reduce_row(f, i, gamma[f.row[i]], count, lowest, rank, dependent)
            if f.upper[i] + count >= f.values.size:
                return failed  # not enough memory in the workspace
            column, size, rest = find_pivot(f, count, choosable, weights.columns)
            size, rest = weight * size, weight * rest
            if not negligible(rest, largest, tolerance):
                if not size > SMALL_PIVOT * max(own, rest):
                    return failed
                take_row(f, i, column, rank, constant, count, dependent)
                rank, least = rank + 1, min(least, rest)
                first, smallest = max(first, size), min(smallest, size)
            end = f.end[i]
            i += 1
        if negligible(least, largest, tolerance):
            return failed
        if first > 0.0:
            ratio = min(ratio, smallest / first)
    keep_places(e, cluster_count(model), -1, rank, 0, i)
    s = 0
    for c in range(cluster_count(model)):
        keep_places(e, c, begin, kept(e, c, DEPENDENT), s, kept(e, c, ROW))
        s = keep_cluster(model, e, f, c, kept(e, c, ROW), s)
    keep_places(e, cluster_count(model), -1, rank, s, i)
    for i in range(f.row.size):
        if f.pivot[i] < 0 and f.upper[i] > f.lower[i]:
            end = put_dependence(f, i, end)
    if end >= f.values.size:
        return failed
    if not put_sparse_slopes(model, e, f, rank, s) < STEEP:
        return failed
    return rank, ratio, True


@inline
def eliminate_rows(model, M, G, gamma, choosable, tolerance, e):
    """`eliminate`, for long chains by L and U if these are reliable; otherwise M and G are completed first."""
    if is_long(model):
        rank, ratio, found = factor_rows(model, G, gamma, choosable, tolerance, e)
        if found:
            return rank, ratio, True
        complete_terms(model, M, G)
    return eliminate(model, G, gamma, choosable, tolerance, e)


@late(MODEL, MATRIX, MATRIX)
def complete_terms(model, M, G):
    """Write zeros to M (n, n, or padded) and G (m, n) outside the sparsity pattern of a long chain."""
    n = integer(model.ints, NV)
    for i in range(n):
        for j in range(i + 1, n):
            if j >= subtree_end(model, i):
                M[i, j] = M[j, i] = 0.0
    for l in range(loop_count(model)):
        first, count = loop_rows(model, l)
        for r in range(first, first + count):
            ja, jb = path_ends(model, l)
            for j in range(n - 1, -1, -1):  # parents have smaller numbers than children
                if is_active(model, l) and ja != jb and j == max(ja, jb):
                    ja, jb = toward_ground(model, ja, jb)
                else:
                    G[r, j] = 0.0


@late(MODEL, MATRIX, MATRIX, VECTOR, VECTOR, VECTOR)
def eliminate_again(model, M, G, gamma, choosable, e):
    """Replace L and U by the tableaux of `eliminate`, with the same dependent velocities, for code that reads tableaux.

    `gamma` and `choosable` are scratch.
    """
    f = factor_of(model, e)
    for i in range(gamma.size):
        gamma[i] = 0.0
    for j in range(choosable.size):
        choosable[j] = 1.0 if f.place[j] >= 0 else 0.0
    complete_terms(model, M, G)
    eliminate(model, G, gamma, choosable, SMALL_PIVOT * SMALL_ROW, e)  # a tolerance below every pivot of L and U


# ---- solutions with L and U


@late(MODEL, VECTOR, MATRIX, VECTOR, types.int64, types.int64, MATRIX)
def forced_by_factor(model, e, rates, masks, mask, b, out):
    """out[:, block b] -= W rates[:, block b], in the dependent velocities; multiplied by block `mask` of `masks`."""
    f, rank, dependent = factor_of(model, e), rank_of(model, e), dependent_dofs(model, e)[0]
    width, to, scale = rates.shape[1] // WIDTH, out.shape[1] // WIDTH, load(LANES, masks, mask)
    for k in range(rank):
        store(LANES, f.block, k, load(LANES, rates, width * f.row[f.position[k]] + b))
    solve_block(f, rank, f.block)
    for k in range(rank):
        i = to * dependent[k] + b
        store(LANES, out, i, load(LANES, out, i) - scale * load(LANES, f.block, k))


# ---- conditioning


@inline
def norm_of_inverse(f, rank, x, z):
    """Estimate of the 1-norm of W (Hager 1984; Higham 1988): a lower bound from a few solutions, nearly always
    sharp."""
    norm, k = 0.0, -1
    for _ in range(5):
        for i in range(rank):
            x[i] = 1.0 / rank if k < 0 else 1.0 if i == k else 0.0
        solve_lower(f, rank, x)
        solve_upper(f, rank, x)
        size, along, largest, steepest = 0.0, 0.0, 0.0, -1
        for i in range(rank):
            size += abs(x[i])
            z[i] = 1.0 if x[i] >= 0.0 else -1.0
        solve_transposed(f, rank, z)
        for i in range(rank):
            along += z[i] / rank if k < 0 else z[i] if i == k else 0.0
            if abs(z[i]) > largest:
                largest, steepest = abs(z[i]), i
        if not size > norm:
            break
        norm, k = size, steepest
        if largest <= along:
            break
    return norm


@late(MODEL, VECTOR, MATRIX, types.int64, returns=types.float64)
def condition_of_rows(model, e, G, p):
    """`picked_condition` for L and U."""
    f, rank = factor_of(model, e), rank_of(model, e)
    slopes, norm, inverse_norm = dependence(SCALAR, model, e, p)[0], 1.0, norm_of_inverse(f, rank, f.x, f.block)
    for s in range(p):
        total = 1.0
        for k in range(rank):
            total += abs(at(slopes, k, s))
        inverse_norm = max(inverse_norm, total)
    for j in range(f.x.size):
        f.x[j] = 0.0 if f.place[j] >= 0 else 1.0
    for i in range(f.row.size):
        l = f.cut[f.row[i]]
        ja, jb = path_ends(model, l)
        while ja != jb and f.pivot[i] >= 0:
            j = max(ja, jb)
            f.x[j] += abs(at(G, f.row[i], j))
            ja, jb = toward_ground(model, ja, jb)
    for j in range(f.x.size):
        norm = max(norm, f.x[j])
    return norm * inverse_norm


@late(MODEL, VECTOR, MATRIX)
def right_inverse_of_rows(model, e, G_sharp):
    """W as a matrix: rows of the dependent velocities, a column for each independent row."""
    f, rank, dependent = factor_of(model, e), rank_of(model, e), dependent_dofs(model, e)[0]
    for l in range(rank):
        for k in range(rank):
            f.x[k] = 1.0 if k == l else 0.0
        solve_lower(f, rank, f.x)
        solve_upper(f, rank, f.x)
        for k in range(rank):
            G_sharp[dependent[k], l] = f.x[k]
