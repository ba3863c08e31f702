"""Exchange steps (Stiefel 1960) on a table of linear forms: elimination that leaves all its by-products in place.

A table says y = T x: m rows, n columns. One step solves row k for x_c, and lets y_k and x_c change places:

    x_c = (y_k - sum of t_kj x_j over j != c) / t_kc

After r steps on the largest elements there are (complete pivoting), what stands in the table is

    [x_dependent]   [W  K] [y_1          ]      columns of W where x_dependent was
    [y_rest     ] = [T  0] [x_independent]

with y_1 the rows that were solved: for y = G x the null space K of G, the inverse W of its regular part, and the
dependence T of redundant rows on the others, from one elimination. Columns behind n are never chosen: constants.

Tables lie in a workspace row by row, every row padded to whole SIMD registers; places of tables count registers. Small
whole numbers kept there as floats are exact.
"""
from liedyn.dense import SMALL_ROW
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, larger, load, magnitude, splat, store


@inline
def registers(columns):
    """Registers that one row of a table fills."""
    return (columns + WIDTH - 1) // WIDTH


@inline
def get(work, row, j):
    """Number j of the row that begins at register `row`."""
    return load(SCALAR, work, WIDTH * row + j)


@inline
def put(work, row, j, x):
    store(SCALAR, work, WIDTH * row + j, x)


@inline
def get_index(work, row, j):
    return int(load(SCALAR, work, WIDTH * row + j))


@inline
def clear(work, at, count):
    """Zeros in `count` registers."""
    for b in range(count):
        store(LANES, work, at + b, splat(LANES, 0.0))


@inline
def add_row(work, to, x, row, width):
    """Row `to` += x row `row`."""
    for b in range(width):
        store(LANES, work, to + b, load(LANES, work, to + b) + x * load(LANES, work, row + b))


@inline
def largest_element(work, table, width, first, m, n, free, column_largest):
    """Row, column and size of the largest element in the rows from `first` on, columns where `free` is 1, not 0."""
    for b in range(width):
        s = splat(LANES, 0.0)
        for i in range(first, m):
            s = larger(s, magnitude(load(LANES, work, table + width * i + b)))
        store(LANES, work, column_largest + b, s * load(LANES, work, free + b))
    row, column, size = first, 0, 0.0
    for j in range(n):
        x = get(work, column_largest, j)
        if x > size:
            column, size = j, x
    for i in range(first, m):
        if abs(get(work, table + width * i, column)) == size:
            row = i
    return row, column, size


@inline
def swap_rows(work, i, k, width):
    for b in range(width):
        x = load(LANES, work, i + b)
        store(LANES, work, i + b, load(LANES, work, k + b))
        store(LANES, work, k + b, x)


@inline
def exchange(work, table, width, m, k, c):
    """Row k and column c change places."""
    row = table + width * k
    d = 1.0 / get(work, row, c)
    for b in range(width):
        store(LANES, work, row + b, -d * load(LANES, work, row + b))
    for i in range(m):
        other = table + width * i
        x = get(work, other, c)
        if i != k and x != 0.0:
            add_row(work, other, x, row, width)
            put(work, other, c, d * x)
    put(work, row, c, d)


@kernel_in_place
def exchange_all(work, table, m, n, width, tolerance, rows, columns, free, largest):
    """Exchange as many rows as are independent; returns how many, and the smallest pivot as a part of the first.

    Row k of the table is then that of x_c with c = columns[k] for k < rank, the others those of dependent y; rows[k]
    is the number that row k had at the beginning. `free` marks with 1 the columns that were not chosen. A pivot not
    above `tolerance` times the first one, or times SMALL_ROW, counts as zero.
    """
    for i in range(m):
        put(work, rows, i, i)
    clear(work, free, width)
    for j in range(n):
        put(work, free, j, 1.0)
    first = smallest = 0.0
    rank = 0
    while rank < min(m, n):
        i, c, size = largest_element(work, table, width, rank, m, n, free, largest)
        if rank == 0:
            first = smallest = size
        if size <= tolerance * max(first, SMALL_ROW):
            break
        smallest = min(smallest, size)
        if i != rank:
            swap_rows(work, table + width * i, table + width * rank, width)
            number = get(work, rows, i)
            put(work, rows, i, get(work, rows, rank))
            put(work, rows, rank, number)
        exchange(work, table, width, m, rank, c)
        put(work, columns, rank, c)
        put(work, free, c, 0.0)
        rank += 1
    return rank, (smallest / first if rank > 0 else 1.0)


@kernel_in_place
def solve_rows(work, table, n, width):
    """[A B] becomes [1 A^-1 B] for A (n, n) positive definite, which needs no pivoting; False if it is not."""
    for k in range(n):
        row = table + width * k
        pivot = get(work, row, k)
        if not pivot > 0.0:
            return False
        for b in range(width):
            store(LANES, work, row + b, (1.0 / pivot) * load(LANES, work, row + b))
        for i in range(n):
            if i != k:
                add_row(work, table + width * i, -get(work, table + width * i, k), row, width)
    return True
