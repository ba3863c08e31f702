"""Independent velocities from the elimination: the tree coordinates that it keeps independent, or the tangent space.

Complete pivoting, cluster by cluster, gives K = (slopes; 1). Its independent velocities are the coordinates of "auto".
The rows of "tangent" are an orthonormal basis of the columns of K; as clusters share no degrees of freedom, each has
rows of its own (Gram-Schmidt, twice, which is sufficient: Giraud, Langou, Rozloznik and van den Eshof 2005).
"""
import math

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import at
from liedyn.machine.simd.lanes import SCALAR, integer, load, store
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, INDEPENDENT, cluster_count, cluster_lists, cluster_size, dependence, dependent_dofs, eliminate,
    elimination_size, independent_dofs, kept, put_row_order,
)
from liedyn.model.packed import NV, N_ROWS

LEFT, TANGENT = -2, -3
"""Stand in place of the number of a virtual velocity: the coordinate is one that the elimination keeps independent, or
a row of the tangent space."""


@inline
def is_left(virtual, what):
    """True if the coordinates are of this kind, LEFT or TANGENT."""
    return virtual.size > 0 and integer(virtual, 0) == what


@inline
def put_left(model, e, R):
    """Rows that select the independent velocities of the elimination, in its order."""
    (p, n), independent = R.shape, independent_dofs(model, e)[0]
    for k in range(R.size):
        store(SCALAR, R, k, 0.0)
    for s in range(p):
        row = 0
        for u in range(p):
            row += integer(independent, u) < integer(independent, s)
        store(SCALAR, R, n * row + integer(independent, s), 1.0)


@kernel_in_place
def put_tangent(model, e, R):
    """An orthonormal basis of the tangent space; the largest component of each row is positive."""
    p, n = R.shape
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    slopes, _ = dependence(SCALAR, model, e, p)
    for k in range(R.size):
        store(SCALAR, R, k, 0.0)
    for c in range(cluster_count(model)):
        size, dofs = cluster_size(model, c)[1], cluster_lists(model, c)[1]
        first, end = kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)
        below, above = kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)
        for s in range(first, end):
            store(SCALAR, R, n * s + integer(independent, s), 1.0)
            for k in range(below, above):
                store(SCALAR, R, n * s + integer(dependent, k), at(slopes, k, s))
            for u in range(2 * (s - first) if above > below else 0):
                t, x = first + u % (s - first), 0.0
                for k in range(size):
                    j = integer(model.ints, dofs + k)
                    x += at(R, s, j) * at(R, t, j)
                for k in range(size):
                    j = integer(model.ints, dofs + k)
                    store(SCALAR, R, n * s + j, at(R, s, j) - x * at(R, t, j))
            norm, largest = 0.0, 0.0
            for k in range(size):
                x = at(R, s, integer(model.ints, dofs + k))
                norm += x * x
                if abs(x) > abs(largest):
                    largest = x
            by = math.copysign(1.0 / math.sqrt(norm), largest)
            for k in range(size):
                j = n * s + integer(model.ints, dofs + k)
                store(SCALAR, R, j, by * load(SCALAR, R, j))


@kernel
def choose_open(model, G, tolerance, what):
    """(rank, rows, R) for LEFT or TANGENT coordinates; `rows` lists the rows of G, independent ones first."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    e, rows = np.empty(elimination_size(SCALAR, model)), np.empty(m, np.int64)
    rank, _, _ = eliminate(model, G, np.zeros(m), np.ones(n), tolerance, e)
    put_row_order(model, e, rows)
    R = np.empty((n - rank, n))
    if what == LEFT:
        put_left(model, e, R)
    else:
        put_tangent(model, e, R)
    return rank, rows, R
