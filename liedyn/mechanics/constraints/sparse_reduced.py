"""Constrained accelerations and multipliers of long chains of loops; the sparse form of
`liedyn.mechanics.constraints.reduced`.

It uses the sparse factors of the constraints (`liedyn.mechanics.constraints.sparse_elimination`), and only those
entries of M where one degree of freedom carries the other:

    mu = (L U)^-T (tau - h - M a)        (1 + T T^T) lambda_rest = T mu        lambda_1 = mu - T^T lambda_rest
"""
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, late
from liedyn.machine.linalg.gauss_jordan import at, clear, put_element
from liedyn.machine.simd.lanes import SCALAR, integer, load, store
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, INDEPENDENT, cluster_count, dependence, dependent_dofs, factor_of, independent_dofs, kept,
)
from liedyn.mechanics.constraints.relative import path_ends, toward_ground
from liedyn.mechanics.constraints.sparse_elimination import rank_of
from liedyn.mechanics.constraints.sparse_factor import solve_transposed
from liedyn.model.constraint_records import is_active, loop_count, loop_rows
from liedyn.model.packed import NV
from liedyn.model.packed_records import MODEL, parent_dof


@inline
def add_dependence(f, i, scale, mu, normal, to):
    """normal[to + i] += scale T_i mu; mu is indexed by pivot."""
    for u in range(f.lower[i], f.upper[i]):
        normal[to + i] += scale * f.values[u] * mu[f.index[u]]


@inline
def add_transposed(f, i, scale, normal, at, mu):
    """mu += scale T_i^T normal[at + i]."""
    for u in range(f.lower[i], f.upper[i]):
        mu[f.index[u]] += scale * f.values[u] * normal[at + i]


@inline
def depends(f, i):
    """True if place i of the order is a dependent row with nonzero coefficients."""
    return f.pivot[i] < 0 and f.upper[i] > f.lower[i]


@inline
def share_multipliers(f, mu, scratch):
    """The mu of minimum norm together with the multipliers of dependent rows, which are returned in f.normal, by place.

    Solves (1 + T T^T) lambda_rest = T mu by conjugate gradients (Hestenes and Stiefel 1952): exact up to rounding after
    as many steps as there are different eigenvalues, few if all loops are alike.
    """
    m, count, power = f.row.size, 0, 0.0
    x, r, p, Ap = 0, f.normal.size // 4, 2 * (f.normal.size // 4), 3 * (f.normal.size // 4)
    for i in range(m):
        f.normal[x + i] = f.normal[r + i] = 0.0
        if depends(f, i):
            add_dependence(f, i, 1.0, mu, f.normal, r)
            count += 1
            power += f.normal[r + i] * f.normal[r + i]
        f.normal[p + i] = f.normal[r + i]
    enough = 1e-32 * power
    for _ in range(2 * count + 10):
        if not power > enough:
            break
        for k in range(mu.size):
            scratch[k] = 0.0
        for i in range(m):
            if depends(f, i):
                add_transposed(f, i, 1.0, f.normal, p, scratch)
        curvature = 0.0
        for i in range(m):
            if depends(f, i):
                f.normal[Ap + i] = f.normal[p + i]
                add_dependence(f, i, 1.0, scratch, f.normal, Ap)
                curvature += f.normal[p + i] * f.normal[Ap + i]
        step, before, power = power / curvature, power, 0.0
        for i in range(m):
            if depends(f, i):
                f.normal[x + i] += step * f.normal[p + i]
                f.normal[r + i] -= step * f.normal[Ap + i]
                power += f.normal[r + i] * f.normal[r + i]
        for i in range(m):
            if depends(f, i):
                f.normal[p + i] = f.normal[r + i] + power / before * f.normal[p + i]
    for i in range(m):
        if depends(f, i):
            add_transposed(f, i, -1.0, f.normal, x, mu)


@late(MODEL, VECTOR, VECTOR, VECTOR)
def balancing_multipliers(model, e, left, lam):
    """`minimum_norm_multipliers` with L and U."""
    f, rank, dependent = factor_of(model, e), rank_of(model, e), dependent_dofs(model, e)[0]
    for k in range(rank):
        f.x[k] = left[dependent[k]]
    solve_transposed(f, rank, f.x)
    share_multipliers(f, f.x, f.block)
    for i in range(f.row.size):
        lam[f.row[i]] = f.x[f.pivot[i]] if f.pivot[i] >= 0 else f.normal[i]


@inline
def times_inertia(model, M, X, x, Y, y):
    """Y[y:] = M X[x:], flat arrays; M has entries where one degree of freedom carries the other."""
    n, columns = integer(model.ints, NV), M.shape[1]
    for j in range(n):
        store(SCALAR, Y, y + j, 0.0)
    for j in range(n):
        X_j = load(SCALAR, X, x + j)
        Y_j = load(SCALAR, Y, y + j) + load(SCALAR, M, columns * j + j) * X_j
        k = parent_dof(model, j)
        while k >= 0:
            M_kj = load(SCALAR, M, columns * k + j)
            store(SCALAR, Y, y + k, load(SCALAR, Y, y + k) + M_kj * X_j)
            Y_j += M_kj * load(SCALAR, X, x + k)
            k = parent_dof(model, k)
        store(SCALAR, Y, y + j, Y_j)


@late(MODEL, VECTOR, MATRIX, MATRIX, MATRIX)
def reduce_inertia_of_tree(model, e, M, KM, reduced):
    """`reduce_inertia`, along the branches of the tree."""
    p, n, columns = reduced.shape[0], integer(model.ints, NV), KM.shape[1]
    f, (dependent, _), (independent, _) = factor_of(model, e), dependent_dofs(model, e), independent_dofs(model, e)
    slopes, _ = dependence(SCALAR, model, e, p)
    clear(reduced)
    for c in range(cluster_count(model)):
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            for j in range(n):
                f.x[j] = 0.0
            f.x[independent[s]] = 1.0
            for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                f.x[dependent[k]] = at(slopes, k, s)
            times_inertia(model, M, f.x, 0, KM, columns * s)
    for c in range(cluster_count(model)):
        for t in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            for s in range(p):
                x = at(KM, s, independent[t])
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x += at(KM, s, dependent[k]) * at(slopes, k, t)
                put_element(SCALAR, reduced, s, t, x)


@late(MODEL, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR)
def unbalanced_of_tree(model, M, h, tau, a, left):
    """`unbalanced`, along the branches of the tree."""
    times_inertia(model, M, a, 0, left, 0)
    for j in range(h.size):
        left[j] = tau[j] - h[j] - left[j]


@late(MODEL, MATRIX, VECTOR, VECTOR)
def constraint_force_of_cuts(model, G, lam, force):
    """`constraint_force` of cut joints: each acts on the degrees of freedom between its ends."""
    for j in range(force.size):
        force[j] = 0.0
    for l in range(loop_count(model)):
        first, count = loop_rows(model, l)
        ja, jb = path_ends(model, l)
        while ja != jb and is_active(model, l):
            j = max(ja, jb)
            for r in range(first, first + count):
                force[j] += at(G, r, j) * lam[r]
            ja, jb = toward_ground(model, ja, jb)
