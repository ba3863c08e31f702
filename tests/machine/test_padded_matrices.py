"""Products of padded matrices against NumPy's."""
import numpy as np
import pytest

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers
from liedyn.machine.simd.lanes import WIDTH


@kernel
def add_products(A, first, down, along, rows, inner, X, out):
    add_products_in_registers(A, first, down, along, rows, inner, X, out)


def padded_matrix(rng, rows, columns):
    whole = np.zeros((rows, -(-columns // WIDTH) * WIDTH))
    whole[:, :columns] = rng.normal(size=(rows, columns))
    return whole


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
