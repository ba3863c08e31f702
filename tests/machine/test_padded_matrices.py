"""Products of padded matrices against NumPy's."""
import numpy as np
import pytest

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, exchange_rows, unweigh, weigh
from liedyn.machine.simd.lanes import WIDTH


@kernel
def add_products(A, first, down, along, rows, inner, X, out):
    add_products_in_registers(A, first, down, along, rows, inner, X, out)


def padded_matrix(rng, rows, columns):
    whole = np.zeros((rows, -(-columns // WIDTH) * WIDTH))
    whole[:, :columns] = rng.normal(size=(rows, columns))
    return whole


@kernel
def weigh_rows(T, width, weights, columns):
    weigh(T, width, weights, columns)


@kernel
def unweigh_rows(T, width, first, second, rows, chosen, weights, columns):
    unweigh(T, width, first, second, rows, chosen, weights, columns)


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
@pytest.mark.parametrize("inner", [0, 1, 7])
@pytest.mark.parametrize("columns, wider", [(1, 0), (WIDTH, 3), (2 * WIDTH + 3, WIDTH)])
def test_products_in_registers(rows, inner, columns, wider):
    """A part of a matrix or of its transpose, rows in groups of four and the rest, `out` as wide as X or wider."""
    rng = np.random.default_rng(rows + 10 * inner)
    X, before = padded_matrix(rng, inner, columns), padded_matrix(rng, rows + 2, columns + wider)
    A = rng.normal(size=(rows + 1, inner + 2))
    part, expected = A[1:, 2:], before.copy()
    expected[:rows, :X.shape[1]] += part @ X
    transpose = np.ascontiguousarray(part.T)
    for whole, first, down, along in ((A, A.shape[1] + 2, A.shape[1], 1), (transpose, 0, 1, rows)):
        out = before.copy()
        add_products(whole, first, down, along, rows, inner, X, out)
        assert np.allclose(out, expected, rtol=0, atol=1e-13)  # rounding of at most seven products


@pytest.mark.parametrize("more", [0, 2])
def test_exchanges_of_weighed_tables(more):
    """y = T x + t of six rows, four of them independent, exchanged as weighed ones, then `more` rows: what stands in
    the table in the end says the same of x and y as they are."""
    rng = np.random.default_rng(more)
    n, m = 7, 6
    weighed = padded_matrix(rng, m + more, n + 1)
    weighed[4:6, :n] = rng.normal(size=(2, 4)) @ weighed[:4, :n]
    weights, columns = 2.0 ** rng.integers(-20, 20, m + more), 2.0 ** rng.integers(-20, 20, n)
    T = weighed / weights[:, None]
    T[:, :n] /= columns
    x = columns * rng.normal(size=n)
    y = T[:, :n] @ x + T[:, n]
    table, free = T.copy(), np.zeros((2, T.shape[1]))
    free[0, :n] = 1.0
    order, chosen = np.empty(m + more, np.int64), np.empty(m + more, np.int64)
    weigh_rows(table, 1, weights, columns)
    assert (table == weighed).all()
    rank, first, _ = exchange_rows(table, 0, m, n, 1e-10, order, chosen, free)
    assert (rank, first) == (4, np.abs(weighed[:m, :n]).max())
    exchange_rows(table, m, m + more, n, 0.0, order, chosen, free)
    unweigh_rows(table, 1, rank, m, order, chosen, weights, columns)
    exchanged = np.r_[:rank, m:m + more]
    given, found = np.append(x, 1.0), y[order]
    given[chosen[exchanged]], found[exchanged] = y[order[exchanged]], x[chosen[exchanged]]
    sizes = 1.0 / weights[order]
    sizes[exchanged] = columns[chosen[exchanged]]
    assert (np.abs(table[:, :n + 1] @ given - found) < 1e-12 * sizes).all()  # numbers around 1, ten operations each


def test_weighed_tables_of_states_in_lanes():
    """Three states, whose numbers stand side by side: each of them as if it were alone."""
    rng = np.random.default_rng(0)
    n, m = 4, 3
    tables = rng.normal(size=(3, m, n + 1))
    weights, columns = 2.0 ** rng.integers(-20, 20, m), 2.0 ** rng.integers(-20, 20, n)
    order, chosen = np.array([2, 0, 1]), np.array([1, 3, -1])
    together = np.ascontiguousarray(tables.transpose(1, 2, 0)).reshape(m, -1)
    weigh_rows(together, 3, weights, columns)
    unweigh_rows(together, 3, 2, m, order, chosen, weights, columns)
    for k, each in enumerate(tables):
        weigh_rows(each, 1, weights, columns)
        unweigh_rows(each, 1, 2, m, order, chosen, weights, columns)
        assert (together.reshape(m, n + 1, 3)[:, :, k] == each).all()
