"""The coordinates of a local state space: from the elimination's independent velocities to the chosen w = R v.

PICKED: every row of R picks one coordinate of the tree. The elimination keeps these independent; its result is S with
columns permuted. LEFT stands for the coordinates that the elimination chooses by pivoting.
SPANNED: R is an orthonormal basis of the tangent space, each row within one cluster of coordinates; S = R^T.
GIVEN: rows of R that read virtual velocities, or any other rows, need S from the inverse [G_1; R]^-1.
In the last two cases the elimination chooses by pivoting, and R S is applied at the end (symbols:
`liedyn.linear.local`).
"""
from numba import types

from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, late
from liedyn.machine.linalg.gauss_jordan import add_row, at, clear, columns_of, element, padded, put_element
from liedyn.machine.simd.comparisons import larger, largest_lane, magnitude
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, load, splat, store, take_integers, take_matrix
from liedyn.machine.simd.registers import copy_row, is_zero, load_at_once
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, INDEPENDENT, cluster_count, cluster_lists, cluster_size, dependence, dependent_dofs, independent_dofs,
    kept,
)
from liedyn.mechanics.dynamics.nullspace import OK, Tableau, invert_rows
from liedyn.model.packed import NV, N_ROWS
from liedyn.model.packed_records import MODEL

PICKED, SPANNED, GIVEN = range(3)
_FOUND = types.Tuple((types.int64, types.int64, types.float64))


@inline
def reads_cuts(virtual):
    """True if one of the velocities is that of a cut joint."""
    reads = False
    for k in range(virtual.size):
        reads = reads or virtual[k] >= 0
    return reads


@inline
def same_choice(G, mask, R_y, virtual_y, R_w, virtual_w):
    """True if y and w are the same coordinates, and all velocity constraints derive from position constraints."""
    if virtual_y.size != virtual_w.size:
        return False
    for i in range(mask.size):
        if mask[i] == 0.0:
            for j in range(G.shape[1]):
                if G[i, j] != 0.0:
                    return False
    for k in range(virtual_y.size):
        if virtual_y[k] != virtual_w[k]:
            return False
    difference = splat(LANES, 0.0)
    for k in range(0, R_y.size, WIDTH):
        x = load_at_once(SCALAR, R_y, k, R_y.size - k) - load_at_once(SCALAR, R_w, k, R_y.size - k)
        difference = larger(difference, magnitude(x))
    return largest_lane(difference) == 0.0


@inline
def take_tableau(model, p, work):
    """Scratch arrays for `invert_rows` with p rows R."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return Tableau(take_matrix(work, m + p, padded(n)), take_integers(work, m + p), take_integers(work, m + p),
                   take_matrix(work, 2, padded(n)), take_matrix(work, n, padded(n)))


@inline
def row_that_picks(R, j):
    """The row of R that picks coordinate j."""
    u = 0
    while at(R, u, j) == 0.0:
        u += 1
    return u


@inline
def put_picked(R, picked):
    """Writes the coordinates that the rows of R pick."""
    for u in range(R.shape[0]):
        j = 0
        while at(R, u, j) == 0.0:
            j += 1
        picked[u] = j


@inline
def picked_motions(lane, model, e, R, p_y, X):
    """X = S for independent velocities that R picks: the elimination's S with columns permuted."""
    p = R.shape[0]
    slopes, _ = dependence(lane, model, e, p)
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    for c in range(cluster_count(model)):
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            j = integer(independent, s)
            u = row_that_picks(R, j)
            put_element(lane, X, j, p_y + u, 1.0)
            for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                put_element(lane, X, integer(dependent, k), p_y + u, element(lane, slopes, k, s))


@inline
def picked_rates(lane, model, e, R, v, p_y, space):
    """w = R v, and its rates R a (in f0), for independent velocities that R picks."""
    independent = independent_dofs(model, e)[0]
    for s in range(R.shape[0]):
        j = integer(independent, s)
        u = row_that_picks(R, j)
        store(lane, space.w, u, load(lane, v, j))
        store(lane, space.f0, p_y + u, load(lane, space.a, j))


@late(MODEL, MATRIX, COORDINATES, types.float64, VECTOR, SPACE, returns=_FOUND)
def given_motions(model, E, coordinates, tolerance, work, space):
    """space.X = S for any independent velocities; returns (status, rank, condition)."""
    R, virtual, p_y = coordinates.R_w, coordinates.virtual_w, coordinates.virtual_y.size
    tableau = take_tableau(model, virtual.size, work)
    status, rank, condition = invert_rows(model, space.G, E, R, virtual, tolerance, tableau)
    if status == OK:
        for i in range(space.X.shape[0]):
            for s in range(virtual.size):
                space.X[i, p_y + s] = at(tableau.Z_inverse, i, rank + s)
    return status, rank, condition


@inline
def spanned_motions(lane, R, p_y, X):
    """X = S = R^T for an orthonormal basis."""
    for s in range(R.shape[0]):
        for j in range(columns_of(lane, R)):
            put_element(lane, X, j, p_y + s, element(lane, R, s, j))


@inline
def spanned_rates(lane, model, e, R, v, p_y, space):
    """w = R v, and its rates R a (in f0), for rows that are an orthonormal basis of the tangent space."""
    for c in range(cluster_count(model)):
        n, dofs = cluster_size(model, c)[1], cluster_lists(model, c)[1]
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            w = rate = splat(lane, 0.0)
            for k in range(n):
                j = integer(model.ints, dofs + k)
                x = element(lane, R, s, j)
                w, rate = w + x * load(lane, v, j), rate + x * load(lane, space.a, j)
            store(lane, space.w, s, w)
            store(lane, space.f0, p_y + s, rate)


@inline
def given_rates(coordinates, known, v, space):
    """w and its rates (in f0) for any independent velocities."""
    R, virtual, p_y = coordinates.R_w, coordinates.virtual_w, coordinates.virtual_y.size
    for s in range(virtual.size):
        k = virtual[s]
        space.w[s] = known.z[k] if k >= 0 else along(R, virtual, known.E, s, v)
        space.f0[p_y + s] = along(R, virtual, known.E, s, space.a) + (known.rho[k] if k >= 0 else 0.0)


@inline
def along(R, virtual, E, s, x):
    """Row s of R times a vector x; the rows of E read the virtual velocities."""
    total = 0.0
    for i in range(R.shape[1]):
        total += (at(E, virtual[s], i) if virtual[s] >= 0 else at(R, s, i)) * load(SCALAR, x, i)
    return total


@inline
def copy_columns(lane, X, first, count, N):
    """N = `count` columns of X from column `first` on, filled up with zeros; both matrices are padded."""
    clear(N)
    for i in range(N.shape[0]):
        copy_row(lane, X, columns_of(lane, X) * i + first, count, N, columns_of(lane, N) * i)


@late(MODEL, VECTOR, MATRIX, COORDINATES, types.float64, VECTOR, SPACE, returns=_FOUND)
def position_null_space(model, mask, E, coordinates, tolerance, work, space):
    """space.N from the holonomic rows alone; returns (status, rank, condition)."""
    R, virtual, m, n = coordinates.R_y, coordinates.virtual_y, model.ints[N_ROWS], model.ints[NV]
    G_h = take_matrix(work, m, n)
    for i in range(m):
        for j in range(n):
            G_h[i, j] = mask[i] * space.G[i, j]
    tableau = take_tableau(model, virtual.size, work)
    status, rank, condition = invert_rows(model, G_h, E, R, virtual, tolerance, tableau)
    if status == OK:
        copy_columns(SCALAR, tableau.Z_inverse, rank, virtual.size, space.N)
    return status, rank, condition


@inline
def hold_choice(coordinates, E, virtual_rates, S, scale, b, out):
    """out[:, block b] -= scale * S (R out + rates of the virtual velocities that R reads)."""
    R, virtual, p_y = coordinates.R_w, coordinates.virtual_w, coordinates.virtual_y.size
    n, to, width = R.shape[1], out.shape[1] // WIDTH, virtual_rates.shape[1] // WIDTH
    for s in range(virtual.size):
        total = splat(LANES, 0.0)
        if virtual[s] >= 0:
            total = load(LANES, virtual_rates, width * virtual[s] + b)
        for i in range(n):
            x = at(E, virtual[s], i) if virtual[s] >= 0 else at(R, s, i)
            total = total + x * load(LANES, out, to * i + b)
        for i in range(n):
            at_i = to * i + b
            store(LANES, out, at_i, load(LANES, out, at_i) - at(S, i, p_y + s) * (scale * total))


@inline
def hold_span(lane, model, e, R, scale, b, out):
    """out[:, block b] -= scale * R^T R out: `hold_choice` for an orthonormal basis of the tangent space."""
    to = out.shape[1] // WIDTH
    for c in range(cluster_count(model)):
        n, dofs = cluster_size(model, c)[1], cluster_lists(model, c)[1]
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            total = splat(LANES, 0.0)
            for k in range(n):
                j = integer(model.ints, dofs + k)
                total = total + element(lane, R, s, j) * load(LANES, out, to * j + b)
            for k in range(n):
                j = integer(model.ints, dofs + k)
                x = element(lane, R, s, j) * (scale * total)
                store(LANES, out, to * j + b, load(LANES, out, to * j + b) - x)


@inline
def into_span(lane, model, e, R, own, out):
    """out = R K own, for an orthonormal basis of the tangent space."""
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    slopes, _ = dependence(lane, model, e, R.shape[0])
    clear(out)
    for c in range(cluster_count(model)):
        first, end = kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)
        for u in range(first, end):
            for s in range(first, end):
                x = element(lane, R, u, integer(independent, s))
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x = x + element(lane, R, u, integer(dependent, k)) * element(lane, slopes, k, s)
                if not is_zero(x):
                    add_row(out, u, x, own, s)


@inline
def into_picked(model, e, R, own, out):
    """out = R K own, for rows R that pick coordinates: the elimination's own rows, permuted."""
    independent = independent_dofs(model, e)[0]
    clear(out)
    for u in range(R.shape[0]):
        for s in range(R.shape[0]):
            if at(R, u, integer(independent, s)) != 0.0:
                add_row(out, u, 1.0, own, s)


@late(MODEL, VECTOR, MATRIX, INTEGERS, *[MATRIX] * 3)
def into_choice(model, e, R, virtual, E, own, out):
    """out = R K own: from rows for the elimination's independent velocities to rows for those that R reads."""
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    p, rank = virtual.size, R.shape[1] - virtual.size
    slopes, _ = dependence(SCALAR, model, e, p)
    clear(out)
    for u in range(p):
        for s in range(p):
            j = integer(independent, s)
            x = at(E, virtual[u], j) if virtual[u] >= 0 else at(R, u, j)
            for k in range(rank):
                j = integer(dependent, k)
                x += (at(E, virtual[u], j) if virtual[u] >= 0 else at(R, u, j)) * at(slopes, k, s)
            if x != 0.0:
                add_row(out, u, x, own, s)
