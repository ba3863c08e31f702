"""Exchange steps (Stiefel 1960) on a table of linear forms: elimination that leaves all its by-products in place.

A table says y = T x: m rows, n columns. One step solves row k for x_c, and lets y_k and x_c change places:

    x_c = (y_k - sum of t_kj x_j over j != c) / t_kc

After r steps on the largest elements there are (complete pivoting), what stands in the table is

    [x_dependent]   [W  K] [y_1          ]      columns of W where x_dependent was
    [y_rest     ] = [T  0] [x_independent]

with y_1 the rows that were solved: for y = G x the null space K of G, the inverse W of its regular part, and the
dependence T of redundant rows on the others, from one elimination. Columns behind n are never chosen: constants.

A matrix here is *padded*: its rows are whole SIMD registers, so that an operation on rows needs no loop over single
numbers; what stands in the padding does not matter as long as it is no rubbish. In lanes each element is a register,
one number for each of W states, and a row has as many registers as columns: the operations on rows are the same.
"""
from numba import types

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.ranks import negligible
from liedyn.machine.simd.comparisons import is_positive, larger, largest_lane, magnitude
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, matrix_in, splat, store, width_of
from liedyn.machine.simd.registers import at_once, is_zero


AS_LARGE = 1.0 - 1e-9
"""Elements from this part of the largest one on are as large: symmetric machines have many, and states are closed to
1e-12."""


@inline
def padded(columns):
    """Numbers in a row of a padded matrix that holds `columns`."""
    return WIDTH * ((columns + WIDTH - 1) // WIDTH)


@inline
def padded_for(lane, columns):
    """`padded` for one state, and as much as holds the rows of W states in lanes."""
    return WIDTH * ((columns + at_once(lane) - 1) // at_once(lane))


@inline
def clear_rows(A, count):
    """Zeros in the first rows of a padded matrix."""
    for b in range(count * (A.shape[1] // WIDTH)):
        store(LANES, A, b, splat(LANES, 0.0))


@inline
def clear(A):
    """Zeros in a padded matrix."""
    clear_rows(A, A.shape[0])


@inline
def clear_columns(lane, A, count):
    """Zeros in the first columns of a padded matrix, and behind them as far as their last register goes."""
    for i in range(A.shape[0]):
        for c in range(0, count, at_once(lane)):
            store(LANES, A, (columns_of(lane, A) * i + c) // at_once(lane), splat(LANES, 0.0))


@inline
def add_row(A, i, x, B, k):
    """Row i of A += x row k of B, which may be the narrower one; both padded."""
    to, row = A.shape[1] // WIDTH * i, B.shape[1] // WIDTH * k
    for b in range(B.shape[1] // WIDTH):
        store(LANES, A, to + b, load(LANES, A, to + b) + x * load(LANES, B, row + b))


@inline
def scale_row(A, i, x):
    """Row i of A *= x."""
    row = A.shape[1] // WIDTH * i
    for b in range(A.shape[1] // WIDTH):
        store(LANES, A, row + b, x * load(LANES, A, row + b))


@inline
def swap_rows(A, i, k):
    width = A.shape[1] // WIDTH
    for b in range(width):
        x = load(LANES, A, width * i + b)
        store(LANES, A, width * i + b, load(LANES, A, width * k + b))
        store(LANES, A, width * k + b, x)


@inline
def at(A, i, j):
    """A[i, j] without the price of negative indices."""
    return load(SCALAR, A, A.shape[1] * i + j)


@inline
def columns_of(lane, A):
    """Columns of A, padding included."""
    return A.shape[1] // width_of(lane)


@inline
def element(lane, A, i, j):
    """A[i, j] of one state, or of W in lanes."""
    return load(lane, A, columns_of(lane, A) * i + j)


@inline
def put_element(lane, A, i, j, x):
    """A[i, j] = x."""
    store(lane, A, columns_of(lane, A) * i + j, x)


@inline
def add_product(lane, factor, A, inner, X, out):
    """out += factor A X for the first `inner` columns of A, any matrix, and padded X, out; zeros of A cost nothing."""
    for i in range(A.shape[0]):
        for k in range(inner):
            x = element(lane, A, i, k)
            if not is_zero(x):
                add_row(out, i, factor * x, X, k)


@inline
def add_transposed_product(A, first, count, X, out):
    """out += A^T X for `count` columns of A from `first` on, any matrix, and padded X and out."""
    for i in range(A.shape[0]):
        for s in range(count):
            x = at(A, i, first + s)
            if x != 0.0:
                add_row(out, s, x, X, i)


@inline
def add_products_in_registers(A, first, down, along, rows, inner, X, out):
    """out[i] += sum over k of A[i, k] X[k] for as many rows of padded out and X, where A[i, k] is the number
    first + i down + k along of A: with along and down exchanged, the transposed matrix.

    Four rows at a time stay in registers until they are done: three times as fast as row by row from ten columns on,
    where what is added to has to be written and read again each time.
    """
    width, to = X.shape[1] // WIDTH, out.shape[1] // WIDTH
    for b in range(width):
        i = 0
        while i + 4 <= rows:
            o, a = to * i + b, first + i * down
            s, t = load(LANES, out, o), load(LANES, out, o + to)
            u, v = load(LANES, out, o + 2 * to), load(LANES, out, o + 3 * to)
            for k in range(inner):
                x, c = load(LANES, X, width * k + b), a + k * along
                s = s + load(SCALAR, A, c) * x
                t = t + load(SCALAR, A, c + down) * x
                u = u + load(SCALAR, A, c + 2 * down) * x
                v = v + load(SCALAR, A, c + 3 * down) * x
            store(LANES, out, o, s)
            store(LANES, out, o + to, t)
            store(LANES, out, o + 2 * to, u)
            store(LANES, out, o + 3 * to, v)
            i += 4
        while i < rows:
            s = load(LANES, out, to * i + b)
            for k in range(inner):
                s = s + load(SCALAR, A, first + i * down + k * along) * load(LANES, X, width * k + b)
            store(LANES, out, to * i + b, s)
            i += 1


@inline
def largest_element(T, begin, end, n, free):
    """Row, column and size of the largest element, rows from `begin` to `end`, columns where `free` is 1, not 0.

    Of elements that are as large but for rounding it is the first: what is chosen must not depend on rounding.
    """
    width, every = T.shape[1] // WIDTH, splat(LANES, 0.0)
    for b in range(width):
        s = splat(LANES, 0.0)
        for i in range(begin, end):
            s = larger(s, magnitude(load(LANES, T, width * i + b)))
        s = s * load(LANES, free, b)
        every = larger(every, s)
        store(LANES, free, width + b, s)
    size = largest_lane(every)
    row, column, least = begin, 0, AS_LARGE * size
    while column < n - 1 and not at(free, 1, column) >= least:
        column += 1
    while row < end - 1 and not abs(at(T, row, column)) >= least:
        row += 1
    return row, column, size


@inline
def exchange(lane, T, k, c):
    """Row k and column c change places."""
    d = 1.0 / element(lane, T, k, c)
    scale_row(T, k, -d)
    for i in range(T.shape[0]):
        x = element(lane, T, i, c)
        if i != k and not is_zero(x):
            add_row(T, i, x, T, k)
            put_element(lane, T, i, c, d * x)
    put_element(lane, T, k, c, d)


@late(MATRIX, types.int64, VECTOR, VECTOR)
def weigh(T, width, weights, columns):
    """T becomes that of weighed rows and columns, of constants by rows alone: T_ij times weights_i columns_j.

    An element is `width` numbers, one of each state in lanes.
    """
    for i in range(T.shape[0]):
        for k in range(T.shape[1]):
            T[i, k] *= weights[i] * (columns[k // width] if k < width * columns.size else 1.0)


@late(MATRIX, types.int64, types.int64, types.int64, INTEGERS, INTEGERS, VECTOR, VECTOR)
def unweigh(T, width, first, second, rows, chosen, weights, columns):
    """T after exchange steps is again that of rows and columns as they are, before `weigh`.

    Rows up to `first` and from `second` on were exchanged: `rows` and `chosen` are those of `exchange_rows`.
    """
    for i in range(T.shape[0]):
        exchanged = not first <= i < second
        by_row = columns[chosen[i]] if exchanged else 1.0 / weights[rows[i]]
        for k in range(T.shape[1]):
            T[i, k] *= by_row / (columns[k // width] if k < width * columns.size else 1.0)
        if exchanged:  # in the column of x_c stands that of y_i
            by_column = weights[rows[i]] * columns[chosen[i]]
            for l in range(T.shape[0]):
                for k in range(width * chosen[i], width * (chosen[i] + 1)):
                    T[l, k] *= by_column


@kernel_in_place
def exchange_rows(T, begin, end, n, tolerance, rows, columns, free):
    """Exchange as many of the rows from `begin` to `end` as are independent, of those exchanged before too.

    Returns how many, the first pivot and the smallest one. Row k of the table is then that of x_c with c = columns[k],
    for as many; rows[k] is the number that row k had at the beginning; both of integers. `free` (padded, two rows)
    marks with 1 the columns that may be chosen, and forgets those that are; its second row is scratch. Pivots are
    judged as in `liedyn.machine.linalg.ranks`, so rows and columns are weighed before (`weigh`) where weights are not
    all 1: these are powers of two, and nothing is rounded by that.
    """
    for i in range(begin, end):
        rows[i] = i
    first = smallest = 0.0
    k = begin
    while k < end:
        i, c, size = largest_element(T, k, end, n, free)
        if k == begin:
            first = smallest = size
        if negligible(size, first, tolerance):
            break
        smallest = min(smallest, size)
        if i != k:
            swap_rows(T, i, k)
            rows[i], rows[k] = rows[k], rows[i]
        exchange(SCALAR, T, k, c)
        columns[k] = c
        free[0, c] = 0.0
        k += 1
    return k - begin, first, smallest


@kernel_in_place
def solve_rows(lane, A):
    """[A B] becomes [1 A^-1 B], for A positive definite, which needs no pivoting; False if it is not, in any lane.

    One padded matrix: as many of its columns as it has rows are A, and all behind them are B.
    """
    return solve_rows_for(lane, A, matrix_in(A, 0, 0, 0))


@kernel_in_place
def solve_rows_for(lane, A, B):
    """B becomes A^-1 B, and A the identity, as in `solve_rows`; A and B padded."""
    n = A.shape[0]
    for k in range(n):
        pivot = element(lane, A, k, k)
        if not is_positive(pivot):
            return False
        scale_row(A, k, 1.0 / pivot)
        scale_row(B, k, 1.0 / pivot)
        for i in range(n):
            x = element(lane, A, i, k)
            if i != k and not is_zero(x):
                add_row(A, i, -x, A, k)
                add_row(B, i, -x, B, k)
    return True
