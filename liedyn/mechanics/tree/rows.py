"""Rows of the matrices of a tree, whole registers at a time.

Entry (i, j) of the inertia matrix and similar ones is nonzero if one of the two degrees of freedom carries the other:
the product of a vector of i, the same for all j, with one of j. A table holds each component of these vectors, for all
degrees of freedom, in a row of its own, `pitch` numbers apart, so that those of consecutive j fill registers. The
numbering is depth first: those that i carries follow it without a gap, and j < i carries i if the last one that j
carries is i or later.

For symmetric matrices one state computes squares of four by four above the diagonal, and writes their transposes below.
Registers of 256 bits are used, as wider ones would cross a cache line with nearly every store.
"""
from collections import namedtuple

from liedyn.lie.algebra import dot6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, NARROW, SCALAR, WIDTH, load, splat, store
from liedyn.machine.simd.registers import at_once, before_line, load_at_once, prefetch_line, side_by_side, store_at_once
from liedyn.machine.simd.strided import first_then, where_before, where_larger
from liedyn.machine.simd.transposition import turned
from liedyn.model.packed_records import dof_total, parent_dof, root_of, stretch_of, subtree_end

FOUR = 4  # rows and columns of a square
BAND = 64  # rows whose squares are computed together, so that their data stay in the first-level cache


@inline
def pitch(model):
    """Distance of two rows of a table: one number for each degree of freedom, rounded up to whole registers."""
    return dof_total(model) + -dof_total(model) % WIDTH


@inline
def filled(lane, model):
    """How many numbers of a row must be defined: for one state whole registers, as the padding is read, too."""
    return pitch(model) if at_once(lane) > 1 else dof_total(model)


@inline
def table_size(model, rows):
    """Size of a table with `rows` rows, with two registers more: for alignment, and to be read past the end."""
    return rows * pitch(model) + 2 * WIDTH


@inline
def table_in(lane, work, k):
    """Index where a table begins, for memory reserved from work[k] on."""
    return k + (before_line(work, k) if at_once(lane) > 1 else 0)


@inline
def of_one3(lane, model, work, table, row, j):
    """Three components, from row `row` of the table on, for degree of freedom j."""
    k = table + row * pitch(model) + j
    return load(lane, work, k), load(lane, work, k + pitch(model)), load(lane, work, k + 2 * pitch(model))


@inline
def of_one6(lane, model, work, table, row, j):
    """Six components for degree of freedom j, a twist or a wrench."""
    return of_one3(lane, model, work, table, row, j), of_one3(lane, model, work, table, row + 3, j)


@inline
def of_next3(lane, model, work, table, row, j):
    """Three components for degree of freedom j and the following ones, a register of each."""
    k = table + row * pitch(model) + j
    return (load_at_once(lane, work, k, WIDTH), load_at_once(lane, work, k + pitch(model), WIDTH),
            load_at_once(lane, work, k + 2 * pitch(model), WIDTH))


@inline
def of_next6(lane, model, work, table, row, j):
    """Six components for degree of freedom j and the following ones, a register of each."""
    return of_next3(lane, model, work, table, row, j), of_next3(lane, model, work, table, row + 3, j)


@inline
def put_next3(lane, model, work, table, row, j, x):
    """Store x in three rows of the table, from degree of freedom j on."""
    k = table + row * pitch(model) + j
    store_at_once(lane, work, k, WIDTH, x[0])
    store_at_once(lane, work, k + pitch(model), WIDTH, x[1])
    store_at_once(lane, work, k + 2 * pitch(model), WIDTH, x[2])


@inline
def put_next6(lane, model, work, table, row, j, V):
    """Store V in six rows of the table, from degree of freedom j on."""
    put_next3(lane, model, work, table, row, j, V[0])
    put_next3(lane, model, work, table, row + 3, j, V[1])


@inline
def put_ends(lane, model, work, table, row):
    """Store in one row of the table, for one state, the number after the last degree of freedom that each carries."""
    if at_once(lane) > 1:
        for j in range(dof_total(model)):
            store(SCALAR, work, table + row * pitch(model) + j, float(subtree_end(model, j)))


@inline
def clear_lanes(lane, model, X):
    """X (nv, nv) = 0 in lanes, before pairs are written of which one carries the other; whole rows are written."""
    if at_once(lane) == 1:
        for k in range(dof_total(model) * dof_total(model)):
            store(lane, X, k, 0.0)


@kernel_in_place
def clear_block(model, X, first, behind, begin, end):
    """Set rows `first` to behind - 1 of X (nv, nv) to zero in columns `begin` to end - 1."""
    nv, w = dof_total(model), at_once(SCALAR)
    for j in range(begin, end, w):
        for i in range(first, behind):
            prefetch_line(X, i * nv + j + 2 * WIDTH)  # rows are too far apart for the processor's prefetcher
            store_at_once(SCALAR, X, i * nv + j, end - j, splat(LANES, 0.0))


@inline
def clear(model, X, first, behind, begin, end):
    """`clear_block`, for a block that may have no columns."""
    if begin < end:
        clear_block(model, X, first, behind, begin, end)


@inline
def clear_in_trees(model, X, first, behind, begin, end):
    """`clear`, but only where rows and columns may belong to the same tree."""
    begin, end = max(begin, root_of(model, first)), min(end, subtree_end(model, root_of(model, behind - 1)))
    clear(model, X, first, behind, begin, end)


@inline
def leave(model, X, first, behind, begin, end):
    """Do not change the block."""


@inline
def carrier_before(model, k, j):
    """The last degree of freedom before j that carries k, possibly k itself; -1 if there is none."""
    while k >= j:
        begin = stretch_of(model, k)
        k = j - 1 if begin < j else parent_dof(model, begin)
    return k


@inline
def reach(model, first, behind):
    """The number after the last degree of freedom that one of `first` to behind - 1 carries."""
    k, end = behind - 1, behind
    while k >= first:  # one that carries more also carries the last of them
        end, k = subtree_end(model, k), parent_dof(model, stretch_of(model, k))
    return end


Entries = namedtuple("Entries", "ends last_left of_row of_columns left right")
"""Functions of the entries of a matrix: left(of_row(i), of_columns(j)) where j carries i, up to j = last_left(i), and
right(...) after it where i carries j. of_columns(j) are numbers of j and the following ones; `ends` is the row filled
by `put_ends`."""


@inline
def put_left(lane, model, work, table, entries, block, X):
    """Rows `first` to behind - 1, a register of columns from j on, some of which carry rows; none is carried by one.

    block = (first, behind, j).
    """
    first, behind, j = block
    nv, columns = dof_total(model), entries.of_columns(lane, model, work, table, j)
    column_ends = load_at_once(lane, work, table + entries.ends * pitch(model) + j, WIDTH)
    for i in range(first, behind):
        prefetch_line(X, i * nv + j + 2 * WIDTH)
        x = entries.left(entries.of_row(lane, model, work, table, i), columns)
        store_at_once(lane, X, i * nv + j, WIDTH, where_larger(column_ends, float(i), x))


@inline
def put_both(lane, model, work, table, entries, block, X):
    """The same if some columns carry rows and some are carried by rows."""
    first, behind, j = block
    nv, columns = dof_total(model), entries.of_columns(lane, model, work, table, j)
    column_ends = load_at_once(lane, work, table + entries.ends * pitch(model) + j, WIDTH)
    for i in range(first, behind):
        own, last = entries.of_row(lane, model, work, table, i), entries.last_left(model, i)
        x = where_larger(column_ends, float(i), entries.left(own, columns))
        y = first_then(subtree_end(model, last) - j, entries.right(own, columns), splat(LANES, 0.0))
        store_at_once(lane, X, i * nv + j, nv - j, first_then(last + 1 - j, x, y))


@inline
def put_right(lane, model, work, table, entries, block, X):
    """The same if some columns are carried by rows and none carries a row."""
    first, behind, j = block
    nv, columns = dof_total(model), entries.of_columns(lane, model, work, table, j)
    for i in range(first, behind):
        prefetch_line(X, i * nv + j + 2 * WIDTH)
        y = entries.right(entries.of_row(lane, model, work, table, i), columns)
        store_at_once(lane, X, i * nv + j, nv - j, first_then(subtree_end(model, i) - j, y, splat(LANES, 0.0)))


@inline
def put_rows(lane, model, work, table, entries, elsewhere, X):
    """X_ij by `Entries` where one of i and j carries the other; else 0.

    For one state: block by block, each in whole registers of columns, with unrelated entries masked. Blocks in which
    none carries another are passed to `elsewhere`: `clear`, `clear_in_trees` or `leave`.
    """
    nv, w = dof_total(model), at_once(lane)
    for first in range(0, nv, w):
        behind, k, done = min(first + w, nv), parent_dof(model, first), first
        while k >= 0:  # a dof outside these rows that carries one of them also carries the first
            j = k - k % w
            elsewhere(model, X, first, behind, j + w, done)
            put_left(lane, model, work, table, entries, (first, behind, j), X)
            k, done = carrier_before(model, k, j), j
        elsewhere(model, X, first, behind, 0, done)
        j, end = first, reach(model, first, behind)
        while j <= entries.last_left(model, behind - 1):
            put_both(lane, model, work, table, entries, (first, behind, j), X)
            j += w
        while j < end:
            put_right(lane, model, work, table, entries, (first, behind, j), X)
            j += w
        elsewhere(model, X, first, behind, j, nv)


# ---- symmetric matrices of one state: squares, and their transposes below the diagonal


@inline
def four_from(model, j):
    """j and the next three; after the last one, the last again."""
    last = dof_total(model) - 1
    return j, min(j + 1, last), min(j + 2, last), min(j + 3, last)


@inline
def row_of_square(model, work, at, of_row, columns, i, j):
    """X_ij for j and the next three; zero where i does not carry j."""
    return where_before(j, subtree_end(model, i), dot6(columns, of_row(model, work, at, i)))


@inline
def square(model, work, at, of_row, columns, rows, j):
    """Four rows and four columns, from j on."""
    return (row_of_square(model, work, at, of_row, columns, rows[0], j), row_of_square(model, work, at, of_row, columns,
            rows[1], j), row_of_square(model, work, at, of_row, columns, rows[2], j), row_of_square(model, work, at,
            of_row, columns, rows[3], j))


@inline
def expect_square(X, columns, rows, j):
    """Prefetch four rows from column j on, which are too far apart for the processor's prefetcher."""
    for r in range(FOUR):
        prefetch_line(X, rows[r] * columns + j)


@inline
def put_square(X, columns, rows, j, count, x):
    """Write four rows from column j on, `count` numbers of each.

    The last row is written first: rows after the last of X are written to its place, and overwritten.
    """
    store_at_once(NARROW, X, rows[3] * columns + j, count, x[3])
    store_at_once(NARROW, X, rows[2] * columns + j, count, x[2])
    store_at_once(NARROW, X, rows[1] * columns + j, count, x[1])
    store_at_once(NARROW, X, rows[0] * columns + j, count, x[0])


@inline
def furthest(model, i):
    """The number after the last degree of freedom that one of four from i on carries."""
    return max(max(subtree_end(model, i), subtree_end(model, i + 1)),
               max(subtree_end(model, i + 2), subtree_end(model, i + 3)))


@inline
def clear_squares(model, X, above, below, j, i):
    """Set a square above the diagonal and its transpose to zero."""
    nv, zero = dof_total(model), side_by_side(0.0, 0.0, 0.0, 0.0)
    expect_square(X, nv, above, j + FOUR)
    expect_square(X, nv, below, i + 2 * FOUR)
    put_square(X, nv, above, j, nv - j, (zero, zero, zero, zero))
    put_square(X, nv, below, i, FOUR, (zero, zero, zero, zero))


@inline
def leave_squares(model, X, above, below, j, i):
    """Do not change a square above the diagonal and its transpose."""


@inline
def put_squares(model, work, at, of_row, columns, elsewhere, first, j, X):
    """Columns j to j + 3 of `put_symmetric` and their transposes, for the rows of one band, from row `first` on."""
    nv, below = dof_total(model), four_from(model, j)
    for i in range(first, min(first + BAND, j), FOUR):
        above = (i, i + 1, i + 2, i + 3)
        if furthest(model, i) > j:
            x = square(model, work, at, of_row, columns, above, j)
            expect_square(X, nv, above, j + FOUR)
            expect_square(X, nv, below, i + 2 * FOUR)
            put_square(X, nv, above, j, nv - j, x)
            put_square(X, nv, below, i, FOUR, turned(x[0], x[1], x[2], x[3]))
        else:
            elsewhere(model, X, above, below, j, i)
    if j < first + BAND:
        x = square(model, work, at, of_row, columns, below, j)
        image = turned(x[0], x[1], x[2], x[3])
        x = (x[0], first_then(1, image[1], x[1]), first_then(2, image[2], x[2]), first_then(3, image[3], x[3]))
        put_square(X, nv, below, j, nv - j, x)


@inline
def put_symmetric(model, work, at, of_row, of_columns, elsewhere, X):
    """X_ij = X_ji = of_row(i) . of_columns(j) where i carries j, else 0: a twist times the wrench of all that j
    carries.

    Squares in which none carries another are passed to `elsewhere`: `clear_squares` or `leave_squares`.
    """
    for first in range(0, dof_total(model), BAND):
        for j in range(first, dof_total(model), FOUR):
            put_squares(model, work, at, of_row, of_columns(model, work, at, j), elsewhere, first, j, X)
