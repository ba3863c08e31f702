"""Eliminations of a traced program: the pivots are those of the reference state, and every state is asked whether they
are large enough there.

A kernel looks for the largest element at each state. Any other pivot gives the same result, if rounding errors do not
grow too much: threshold pivoting (Duff, Erisman and Reid 1986, section 5.4), with a bound that is the same for all
steps.
"""
from liedyn.machine.linalg import gauss_jordan
from liedyn.machine.linalg.ranks import SMALL_ROW, negligible
from liedyn.machine.program.expressions import Expression, value_of
from liedyn.machine.program.guards import PIVOT as OF_PIVOT, REDUNDANT
from liedyn.machine.simd.lanes import SCALAR

PIVOT, FALLEN, LEAST = 0.01, 0.1, 1e-4
"""Least size of a pivot, relative to the first one at the reference state, whose weighted rows are of size 1; a pivot
that is smaller there may fall to this part; but not below the last number, where a state is next to a singular one."""
DOUBT = 1000.0
"""A row counts as redundant where what is left of it is this much smaller than what would make it independent."""
REGULAR, LIGHTEST = 2e-3, 1e-6
"""Least size of a pivot of a positive definite matrix, relative to the reference state; and relative to the element of
its diagonal there, of which the pivot is what is left: next to nothing where some motion has next to no inertia."""


def by_pivots_of_reference(guards, plain):
    """Replacements of eliminations for a `Tracer`.

    Parameters
    ----------
    guards : Guards
    plain : callable
        `Tracer.plain`.

    Returns
    -------
    dict
        Python functions by the kernels that they replace.
    """
    def exchange_rows(T, begin, end, n, tolerance, rows, columns, free):
        exchange, swap_rows = plain(gauss_jordan.exchange), plain(gauss_jordan.swap_rows)
        for i in range(begin, end):
            rows[i] = i
        first = smallest = 0.0
        k = begin
        while k < end:
            i, c, size = _largest_of_reference(T, k, end, n, free)
            if k == begin:
                first = smallest = size
            if negligible.py_func(size, first, tolerance):
                break
            smallest = min(smallest, size)
            if isinstance(T[i, c], Expression):
                guards.require(max(min(PIVOT * first, FALLEN * size), LEAST * first), abs(T[i, c]), kind=OF_PIVOT)
            if i != k:
                swap_rows(T, i, k)
                rows[i], rows[k] = rows[k], rows[i]
            exchange(SCALAR, T, k, c)
            columns[k] = c
            free[0, c] = 0.0
            k += 1
        _require_redundant(guards, T, range(k, end), n, free, tolerance * max(first, SMALL_ROW) / DOUBT)
        return k - begin, first, smallest

    def solve_rows_for(lane, A, B):
        scale_row, add_row = plain(gauss_jordan.scale_row), plain(gauss_jordan.add_row)
        diagonal = [value_of(A[k, k]) for k in range(A.shape[0])]
        for k in range(A.shape[0]):
            pivot = A[k, k]
            if not value_of(pivot) > 0.0:
                return False
            if isinstance(pivot, Expression):
                guards.require(max(REGULAR * pivot.value, LIGHTEST * diagonal[k]), pivot, kind=OF_PIVOT)
            for X in (A, B):
                scale_row(X, k, 1.0 / pivot)
            for i in range(A.shape[0]):
                x = A[i, k]
                if i != k and x != 0.0:
                    for X in (A, B):
                        add_row(X, i, -x, X, k)
        return True

    def solve_rows(lane, A):
        return solve_rows_for(lane, A, A[:0, :0])

    return {gauss_jordan.exchange_rows: exchange_rows, gauss_jordan.solve_rows_for: solve_rows_for,
            gauss_jordan.solve_rows: solve_rows}


def _largest_of_reference(T, begin, end, n, free):
    """`largest_element` of the values at the reference state."""
    sizes = {(i, j): abs(value_of(T[i, j])) for j in range(n) if free[0, j] for i in range(begin, end)}
    size = max(sizes.values(), default=0.0)
    i, c = next((at for at, x in sizes.items() if x >= gauss_jordan.AS_LARGE * size), (begin, 0))
    return i, c, size


def _require_redundant(guards, T, rows, n, free, bound):
    """The rows after the last pivot depend on those before it at every state: what is left of them becomes zero.

    So do their constants: rows that contradict each other have as many results as there are choices among them.
    """
    for i in rows:
        for j in (*(j for j in range(n) if free[0, j]), *range(n, T.shape[1])):
            if isinstance(T[i, j], Expression):
                guards.require(abs(T[i, j]), bound, strict=False, kind=REDUNDANT)
            if j < n:
                T[i, j] = 0.0
