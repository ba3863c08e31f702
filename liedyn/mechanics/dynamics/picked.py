"""Independent velocities that are coordinates of the tree: rows R that pick them, and their condition number."""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import at, element
from liedyn.machine.simd.comparisons import larger, magnitude
from liedyn.machine.simd.lanes import SCALAR, integer, integers_in, load, splat, store, width_of
from liedyn.mechanics.constraints.elimination import (
    INDEPENDENT, ROW, cluster_count, dependence, dependent_dofs, independent_dofs, kept, numbering, solved_cluster,
)
from liedyn.mechanics.constraints.sparse_elimination import condition_of_rows, is_sparse


@inline
def picks(model, R, virtual, choosable):
    """True if every row of R picks one coordinate of the tree, where `choosable` is then zero, and one elsewhere."""
    n = R.shape[1]
    for j in range(n):
        store(SCALAR, choosable, j, 1.0)
    for k in range(virtual.size):
        if virtual[k] >= 0:
            return False
        ones = 0
        for j in range(n):
            x = at(R, k, j)
            if x == 1.0 and load(SCALAR, choosable, j) == 1.0:
                ones += 1
                store(SCALAR, choosable, j, 0.0)
            elif x != 0.0:
                return False
        if ones != 1:
            return False
    return True


@inline
def picked_condition(lane, model, e, G, p):
    """Condition number (1-norm) of [G_1; R] for rows R that pick coordinates: its inverse is [W slopes; 0 1]."""
    if width_of(lane) == 1 and is_sparse(model, e):
        return splat(lane, condition_of_rows(model, e, G, p))
    slopes, _ = dependence(lane, model, e, p)
    dependent, columns = dependent_dofs(model, e)
    rows, independent = integers_in(e, numbering(model)[2], G.shape[0]), independent_dofs(model, e)[0]
    one, zero = splat(lane, 1.0), splat(lane, 0.0)
    norm, inverse_norm = one, one
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(lane, model, e, c)
        row = kept(e, c, ROW)
        for l in range(rank):
            x, y = zero, zero
            for k in range(rank):
                x = x + magnitude(element(lane, G, integer(rows, row + k), integer(dependent, first + l)))
                y = y + magnitude(element(lane, table, k, integer(columns, first + l)))
            norm, inverse_norm = larger(norm, x), larger(inverse_norm, y)
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            x, y = one, one
            for k in range(rank):
                x = x + magnitude(element(lane, G, integer(rows, row + k), integer(independent, s)))
                y = y + magnitude(element(lane, slopes, first + k, s))
            norm, inverse_norm = larger(norm, x), larger(inverse_norm, y)
    return norm * inverse_norm
