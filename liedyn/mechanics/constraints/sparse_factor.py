"""Sparse LU factorization of constraint rows that each have few entries (Davis 2006, chapter 6).

Rows are processed in the given order: each is reduced by the rows before it, and its largest remaining element is its
pivot. With r independent rows G_1, in that order,

    G_1 = L U        L (r, r) lower triangular        U (r, n) with 1 on the pivots, and zeros before them

A row that depends on the others is T_i G_1; its part of L is T_i L. Only nonzero entries are stored, row after row, so
that time and memory are linear in their number.
"""
from collections import namedtuple

from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import AS_LARGE, padded
from liedyn.machine.simd.lanes import LANES, WIDTH, integers_in, load, store, vector_in

SMALL_PIVOT = 1e-3
"""Smallest trusted pivot, as a fraction of its row's largest element; rows of regular machines have larger ones."""
ROUNDING = 1e-13
"""A coefficient of T below this is rounding, as for the vanishing rows of planar loops."""

Factor = namedtuple("Factor", "y d x block normal place seat mark columns position cut row pivot lower upper end "
                    "index values")
"""y: L y = the right side; d: diagonal of L; x: the row being reduced; block: a register for each pivot; normal: four
vectors for `liedyn.mechanics.constraints.sparse_elimination`.

Indexed by degree of freedom: place, the number of its pivot, or -1; seat, its number among the independent ones; mark,
the last row that used it; columns, the columns of a row. By pivot: position, the place of its row in the order. By row
of G: cut, the cut it belongs to. By place in the order: row, its number in G; pivot, its number, or -1; and where its
parts of L and U begin and end in `index` (pivots of L or T, degrees of freedom of U) and `values`.
"""


@inline
def factor_size(n, m, entries):
    """Size of the workspace for m rows, n degrees of freedom, and this number of entries in L and U."""
    return (8 + WIDTH) * padded(n) + (4 + 6) * padded(m) + 2 * padded(entries)


@inline
def factor_in(work, at, n, m, entries):
    """The `Factor` stored at work[at:]."""
    w, rows, room = padded(n), padded(m), padded(entries)
    block, normal = at + 3 * w, at + (3 + WIDTH) * w
    of_dofs = normal + 4 * rows
    of_rows, index = of_dofs + 5 * w, of_dofs + 5 * w + 6 * rows
    return Factor(
        vector_in(work, at, n), vector_in(work, at + w, n), vector_in(work, at + 2 * w, n),
        vector_in(work, block, WIDTH * n), vector_in(work, normal, 4 * rows),
        integers_in(work, of_dofs, n), integers_in(work, of_dofs + w, n), integers_in(work, of_dofs + 2 * w, n),
        integers_in(work, of_dofs + 3 * w, n), integers_in(work, of_dofs + 4 * w, n),
        integers_in(work, of_rows, m), integers_in(work, of_rows + rows, m), integers_in(work, of_rows + 2 * rows, m),
        integers_in(work, of_rows + 3 * rows, m), integers_in(work, of_rows + 4 * rows, m),
        integers_in(work, of_rows + 5 * rows, m),
        integers_in(work, index, room), vector_in(work, index + room, room))


@inline
def touch(f, i, j, count, lowest):
    """Add column j to row i; returns the number of its columns, and the first pivot among them."""
    f.mark[j] = i
    f.columns[count] = j
    return count + 1, min(lowest, f.place[j]) if f.place[j] >= 0 else lowest


@inline
def reduce_row(f, i, constant, count, lowest, rank, dependent):
    """Reduce row i, in f.x on f.columns[:count], by the rows before it; the coefficients are stored as its part of L.

    Returns (constant, count): the reduced right side, and the new number of columns; L ends early if the memory is
    full.
    """
    at, room = f.lower[i], f.values.size
    for k in range(lowest, rank):
        j = dependent[k]
        if f.mark[j] == i and f.x[j] != 0.0 and at < room:
            part, row = f.x[j], f.position[k]
            f.index[at], f.values[at] = k, part
            at += 1
            constant -= part * f.y[k]
            for u in range(f.upper[row], f.end[row]):
                column = f.index[u]
                if f.mark[column] != i:
                    f.x[column] = 0.0
                    count, lowest = touch(f, i, column, count, lowest)
                f.x[column] -= part * f.values[u]
    f.upper[i] = f.end[i] = at
    return constant, count


@inline
def find_pivot(f, count, choosable, columns):
    """Pivot of the reduced row: its column, its size, and the size of the largest element, including columns not
    allowed.

    Sizes are weighted by column. Among elements of equal size up to rounding it is the first one.
    """
    size = rest = 0.0
    for t in range(count):
        j = f.columns[t]
        if f.place[j] < 0:
            x = abs(f.x[j]) * columns[j]
            rest = max(rest, x)
            if choosable[j] != 0.0:
                size = max(size, x)
    best = -1
    for t in range(count):
        j = f.columns[t]
        if best < 0 and f.place[j] < 0 and choosable[j] != 0.0 and abs(f.x[j]) * columns[j] >= AS_LARGE * size:
            best = j
    return best, size, rest


@inline
def take_row(f, i, j, k, constant, count, dependent):
    """Store row i as row k of U, with pivot column j."""
    pivot, at = f.x[j], f.upper[i]
    dependent[k], f.place[j], f.position[k], f.pivot[i] = j, k, i, k
    f.d[k], f.y[k] = pivot, constant / pivot
    for t in range(count):
        column = f.columns[t]
        if f.place[column] < 0 and f.x[column] != 0.0:
            f.index[at], f.values[at] = column, f.x[column] / pivot
            at += 1
    f.end[i] = at


@inline
def put_dependence(f, i, at):
    """Replace T_i L by T_i, stored from `at` on; returns its end."""
    last, begin = -1, at
    for u in range(f.lower[i], f.upper[i]):
        k = f.index[u]
        f.block[k] = f.values[u]
        last = max(last, k)
    for k in range(last, -1, -1):
        t = f.block[k] / f.d[k]
        f.block[k] = 0.0
        if abs(t) > ROUNDING and at < f.values.size:
            f.index[at], f.values[at] = k, t
            at += 1
            row = f.position[k]
            for u in range(f.lower[row], f.upper[row]):
                f.block[f.index[u]] -= t * f.values[u]
    f.lower[i], f.upper[i], f.end[i] = begin, at, at
    return at


@inline
def solve_upper(f, rank, x):
    """Solve U x = x for the dependent columns, the others being zero; x is indexed by pivot."""
    for k in range(rank - 1, -1, -1):
        row = f.position[k]
        for u in range(f.upper[row], f.end[row]):
            if f.place[f.index[u]] >= 0:
                x[k] -= f.values[u] * x[f.place[f.index[u]]]


@inline
def solve_lower(f, rank, x):
    """Solve L x = x in place."""
    for k in range(rank):
        row = f.position[k]
        for u in range(f.lower[row], f.upper[row]):
            x[k] -= f.values[u] * x[f.index[u]]
        x[k] /= f.d[k]


@inline
def solve_transposed(f, rank, x):
    """Solve (L U)^T x = x for the dependent columns, in place."""
    for k in range(rank):
        row = f.position[k]
        for u in range(f.upper[row], f.end[row]):
            if f.place[f.index[u]] >= 0:
                x[f.place[f.index[u]]] -= f.values[u] * x[k]
    for k in range(rank - 1, -1, -1):
        x[k] /= f.d[k]
        row = f.position[k]
        for u in range(f.lower[row], f.upper[row]):
            x[f.index[u]] -= f.values[u] * x[k]


@inline
def solve_block(f, rank, X):
    """Solve L U x = x for the dependent columns, in place, one register at a time."""
    for k in range(rank):
        row, x = f.position[k], load(LANES, X, k)
        for u in range(f.lower[row], f.upper[row]):
            x = x - f.values[u] * load(LANES, X, f.index[u])
        store(LANES, X, k, x / f.d[k])
    for k in range(rank - 1, -1, -1):
        row, x = f.position[k], load(LANES, X, k)
        for u in range(f.upper[row], f.end[row]):
            if f.place[f.index[u]] >= 0:
                x = x - f.values[u] * load(LANES, X, f.place[f.index[u]])
        store(LANES, X, k, x)
