"""Eliminations of a traced program: the pivots are those of the reference state, and every state is asked whether they
are large enough there.

A kernel looks for the largest element at each state. Any other pivot gives the same result, if rounding errors do not
grow too much: threshold pivoting (Duff, Erisman and Reid 1986, section 5.4). A pivot p that is smaller than usual by a
factor f makes errors grow by up to 1/f, and several of them by the product: so each state is asked for the product of
all factors of an elimination, which is one guard.
"""
import functools

from liedyn.machine.linalg import gauss_jordan
from liedyn.machine.linalg.ranks import SMALL_ROW, negligible
from liedyn.machine.program.expressions import Expression, larger, smaller, value_of
from liedyn.machine.program.guards import GROWTH, PIVOT, REDUNDANT
from liedyn.machine.simd.lanes import SCALAR

USUAL, FALLEN, LEAST = 0.01, 0.1, 1e-4
"""Usual least size of a pivot, relative to the first one at the reference state, whose weighted rows are of size 1; a
pivot that is smaller there may fall to this part; but not below the last number, where a state is next to a singular
one."""
PRODUCT, OF_DEPENDENT = 0.02, 0.3
"""Least product of all pivots that are smaller than usual, each relative to its usual least size; and the same where
some rows depend on others, which contradict each other by rounding errors."""
DOUBT = 1e5
"""A row counts as redundant where what is left of it is this much smaller than what would make it independent: more is
left where rounding errors have grown, or where rows contradict each other. What is left of its constant is compared
with the constants of the solved rows, which grow with the square of the velocity."""
REGULAR = 5e-5
"""Least size of a pivot of a positive definite matrix, relative to the element of its diagonal at the reference state:
pivots are what is left of these. Where the reference state itself has a smaller one, it may fall as other pivots."""


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
        product = 1.0
        k = begin
        while k < end:
            i, c, size = _largest_of_reference(T, k, end, n, free)
            if k == begin:
                first = smallest = size
            if negligible.py_func(size, first, tolerance):
                break
            smallest = min(smallest, size)
            if isinstance(T[i, c], Expression):
                usual = max(min(USUAL * first, FALLEN * size), LEAST * first)
                product = product * smaller(1.0 / usual * abs(T[i, c]), 1.0)
            if i != k:
                swap_rows(T, i, k)
                rows[i], rows[k] = rows[k], rows[i]
            exchange(SCALAR, T, k, c)
            columns[k] = c
            free[0, c] = 0.0
            k += 1
        dependent = _require_redundant(guards, T, range(begin, k), range(k, end), n, free,
                                       tolerance * max(first, SMALL_ROW) / DOUBT)
        if isinstance(product, Expression):
            guards.require(OF_DEPENDENT if dependent else PRODUCT, product, strict=False, kind=GROWTH)
        return k - begin, first, smallest

    def solve_rows_for(lane, A, B):
        scale_row, add_row = plain(gauss_jordan.scale_row), plain(gauss_jordan.add_row)
        diagonal = [value_of(A[k, k]) for k in range(A.shape[0])]
        for k in range(A.shape[0]):
            pivot = A[k, k]
            if not value_of(pivot) > 0.0:
                return False
            if isinstance(pivot, Expression):
                poor = pivot.value < REGULAR * diagonal[k]
                guards.poor |= poor
                guards.require(FALLEN * pivot.value if poor else REGULAR * diagonal[k], pivot, kind=PIVOT)
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


def _require_redundant(guards, T, solved, rows, n, free, bound):
    """The rows after the last pivot depend on those before it at every state: what is left of them becomes zero.

    So do their constants: rows that contradict each other have as many results as there are choices among them.
    Returns whether there are such rows.
    """
    found, constants = False, range(n, T.shape[1])
    forced = bound * functools.reduce(larger, (abs(T[i, j]) for i in solved for j in constants), 1.0)
    for i in rows:
        for j in (*(j for j in range(n) if free[0, j]), *constants):
            if isinstance(T[i, j], Expression):
                found = True
                guards.require(abs(T[i, j]), bound if j < n else forced, strict=False, kind=REDUNDANT)
            if j < n:
                T[i, j] = 0.0
    return found
