"""Exchange steps (Stiefel 1960) on a tableau of linear forms: one elimination that gives inverse, null space and
dependence of rows.

A tableau means y = T x, with m rows and n columns. One step solves row k for x_c, and exchanges y_k and x_c:

    x_c = (y_k - sum of t_kj x_j over j != c) / t_kc

After r steps, each on the largest remaining element (complete pivoting), the tableau is

    [x_dependent]   [W  K] [y_1          ]      columns of W in the place of x_dependent
    [y_rest     ] = [T  0] [x_independent]

with y_1 the rows that were solved. For y = G x this gives the null space K of G, the inverse W of its regular part, and
the dependence T of redundant rows on the others. Columns after the first n are never chosen: they hold constants.

A matrix here is *padded*: its rows are whole SIMD registers, so that row operations need no remainder loop; the padding
may hold any finite numbers. In lanes each element is a register, one number for each of W states, and a row has as many
registers as columns: the row operations are the same.
"""
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.ranks import negligible
from liedyn.machine.simd.comparisons import is_positive, larger, largest_lane, magnitude
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, matrix_in, splat, store, width_of
from liedyn.machine.simd.registers import at_once, is_zero


AS_LARGE = 1.0 - 1e-9
"""Elements at least this fraction of the largest one count as equally large: symmetric machines have many, and states
satisfy constraints to 1e-12 only."""


@inline
def padded(columns):
    """Length of a row of a padded matrix with so many columns, in numbers."""
    return WIDTH * ((columns + WIDTH - 1) // WIDTH)


@inline
def padded_for(lane, columns):
    """`padded` for one state; in lanes, the length of a row for W states."""
    return WIDTH * ((columns + at_once(lane) - 1) // at_once(lane))


@inline
def clear_rows(A, count):
    """Set the first `count` rows of a padded matrix to zero."""
    for b in range(count * (A.shape[1] // WIDTH)):
        store(LANES, A, b, splat(LANES, 0.0))


@inline
def clear(A):
    """Set a padded matrix to zero."""
    clear_rows(A, A.shape[0])


@inline
def clear_columns(lane, A, count):
    """Set the first `count` columns of a padded matrix to zero, and those after them up to the end of the register."""
    for i in range(A.shape[0]):
        for c in range(0, count, at_once(lane)):
            store(LANES, A, (columns_of(lane, A) * i + c) // at_once(lane), splat(LANES, 0.0))


@inline
def add_row(A, i, x, B, k):
    """Row i of A += x times row k of B, which may be narrower; both padded."""
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
    """A[i, j] without the cost of negative indices."""
    return load(SCALAR, A, A.shape[1] * i + j)


@inline
def columns_of(lane, A):
    """Number of columns of A, padding included."""
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
    """out += factor A X, for the first `inner` columns of any A, and padded X and out; zeros of A are skipped."""
    for i in range(A.shape[0]):
        for k in range(inner):
            x = element(lane, A, i, k)
            if not is_zero(x):
                add_row(out, i, factor * x, X, k)


@inline
def add_transposed_product(A, first, count, X, out):
    """out += A^T X, with `count` columns of any matrix A from column `first` on, and padded X and out."""
    for i in range(A.shape[0]):
        for s in range(count):
            x = at(A, i, first + s)
            if x != 0.0:
                add_row(out, s, x, X, i)


@inline
def add_products_in_registers(A, first, down, along, rows, inner, X, out):
    """out[i] += sum over k of A[i, k] X[k] for the first `rows` rows of padded out and X, where A[i, k] is element
    first + i down + k along of A: with along and down exchanged, the transposed matrix.

    Four rows at a time stay in registers until they are complete: three times as fast as row by row from ten columns
    on, which loads and stores the sums at each step.
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
def scaled_sums(lane, A, k, i, y, sums):
    """`sums` plus y times four elements of row k of A, from column i on."""
    s, t, u, v = sums
    return (s + element(lane, A, k, i) * y, t + element(lane, A, k, i + 1) * y, u + element(lane, A, k, i + 2) * y,
            v + element(lane, A, k, i + 3) * y)


@inline
def column_of_four(lane, A, i, b):
    """Four elements of a column of A, from row i on."""
    return element(lane, A, i, b), element(lane, A, i + 1, b), element(lane, A, i + 2, b), element(lane, A, i + 3, b)


@inline
def put_column_of_four(lane, A, i, b, x):
    for r in range(4):
        put_element(lane, A, i + r, b, x[r])


@inline
def add_transposed_products(lane, A, rows, X, out):
    """out += A^T X for the first `rows` columns of A.

    In lanes four rows of two columns stay in registers until they are complete.
    """
    if width_of(lane) == 1:
        add_products_in_registers(A, 0, 1, A.shape[1], rows, A.shape[0], X, out)
        return
    columns, i = columns_of(lane, X), 0
    while i + 4 <= rows:
        b = 0
        while b + 2 <= columns:
            s, t = column_of_four(lane, out, i, b), column_of_four(lane, out, i, b + 1)
            for k in range(A.shape[0]):
                s = scaled_sums(lane, A, k, i, element(lane, X, k, b), s)
                t = scaled_sums(lane, A, k, i, element(lane, X, k, b + 1), t)
            put_column_of_four(lane, out, i, b, s)
            put_column_of_four(lane, out, i, b + 1, t)
            b += 2
        while b < columns:
            s = column_of_four(lane, out, i, b)
            for k in range(A.shape[0]):
                s = scaled_sums(lane, A, k, i, element(lane, X, k, b), s)
            put_column_of_four(lane, out, i, b, s)
            b += 1
        i += 4
    while i < rows:
        for b in range(columns):
            s = element(lane, out, i, b)
            for k in range(A.shape[0]):
                s = s + element(lane, A, k, i) * element(lane, X, k, b)
            put_element(lane, out, i, b, s)
        i += 1


@inline
def largest_element(T, begin, end, n, free):
    """Row, column and size of the largest element in rows `begin` to `end` and columns where `free` is 1, not 0.

    Among elements of equal size up to rounding (`AS_LARGE`) it is the first, so that rounding does not decide the
    choice.
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
    """Exchange step: row k and column c are exchanged."""
    d = 1.0 / element(lane, T, k, c)
    scale_row(T, k, -d)
    for i in range(T.shape[0]):
        x = element(lane, T, i, c)
        if i != k and not is_zero(x):
            add_row(T, i, x, T, k)
            put_element(lane, T, i, c, d * x)
    put_element(lane, T, k, c, d)


@kernel_in_place
def weigh(T, width, weights, columns):
    """Weight the tableau: T_ij *= weights_i columns_j; columns of constants by weights_i only.

    An element is `width` numbers, one of each state in lanes.
    """
    for i in range(T.shape[0]):
        for k in range(T.shape[1]):
            T[i, k] *= weights[i] * (columns[k // width] if k < width * columns.size else 1.0)


@kernel_in_place
def unweigh(T, width, first, second, rows, chosen, weights, columns):
    """Undo `weigh` after exchange steps.

    Rows up to `first` and from `second` on were exchanged: `rows` and `chosen` are those of `exchange_rows`.
    """
    for i in range(T.shape[0]):
        exchanged = not first <= i < second
        by_row = columns[chosen[i]] if exchanged else 1.0 / weights[rows[i]]
        for k in range(T.shape[1]):
            T[i, k] *= by_row / (columns[k // width] if k < width * columns.size else 1.0)
        if exchanged:  # y_i now stands in the column of x_c
            by_column = weights[rows[i]] * columns[chosen[i]]
            for l in range(T.shape[0]):
                for k in range(width * chosen[i], width * (chosen[i] + 1)):
                    T[l, k] *= by_column


@kernel_in_place
def exchange_rows(T, begin, end, n, tolerance, rows, columns, free):
    """Exchange all independent rows among those from `begin` to `end`, given the rows exchanged before.

    Returns their number, the first pivot and the smallest one. Row k of the tableau then belongs to x_c with c =
    columns[k], for each of these; rows[k] is the original index of row k (both integer arrays). `free` (padded, two
    rows) marks with 1 the columns that may be chosen, and is set to 0 for those that were; its second row is scratch.
    Pivots are compared as in `liedyn.machine.linalg.ranks`, so the tableau must have been weighted before (`weigh`)
    unless all weights are 1: weights are powers of two and cause no rounding.
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
    """[A B] becomes [1 A^-1 B] for positive definite A, without pivoting; False if A is not positive definite in any
    lane.

    One padded matrix: its first columns, as many as it has rows, are A, and the others are B.
    """
    return solve_rows_for(lane, A, matrix_in(A, 0, 0, 0))


@kernel_in_place
def solve_rows_for(lane, A, B):
    """B becomes A^-1 B and A the identity, as in `solve_rows`; A and B are padded."""
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
