"""The sparse factorisation M = L^T D L of a tree's inertia matrix (Featherstone 2008, section 6.5).

Row k of L has entries only at the ancestors of degree of freedom k: those that carry it on the way to the ground. The
tree's zeros in M remain zeros in L, so that all work is on ancestors. M is positive definite, so no pivoting is needed.
Matrices are nv * nv numbers, row by row; L is unit, D takes the place of its diagonal.
"""
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, load, splat, store
from liedyn.machine.simd.registers import at_once, is_zero, load_at_once, store_at_once
from liedyn.model.packed_records import dof_total, parent_dof


@kernel_in_place
def ltdl_factor(lane, model, M):
    """L and D in place of the lower triangle of M; the upper triangle is not changed."""
    nv = dof_total(model)
    for k in range(nv - 1, -1, -1):
        d = load(lane, M, k * nv + k)
        i = parent_dof(model, k)
        while i >= 0:
            l = load(lane, M, k * nv + i) / d
            j = i
            while j >= 0:
                store(lane, M, i * nv + j, load(lane, M, i * nv + j) - l * load(lane, M, k * nv + j))
                j = parent_dof(model, j)
            store(lane, M, k * nv + i, l)
            i = parent_dof(model, i)


@inline
def subtract_above(lane, model, L, k, B, at, stride, count, x):
    """x - sum of l_ki B_i over the ancestors i of k, a register of a row; the nearest, computed last, comes last."""
    nearest = parent_dof(model, k)
    if nearest < 0:
        return x
    i = parent_dof(model, nearest)
    while i >= 0:
        x = x - load(lane, L, k * dof_total(model) + i) * load_at_once(lane, B, i * stride + at, count)
        i = parent_dof(model, i)
    return x - load(lane, L, k * dof_total(model) + nearest) * load_at_once(lane, B, nearest * stride + at, count)


@kernel_in_place
def ltdl_solve(lane, model, L, factor, B, columns):
    """B = factor M^-1 B for the columns of B, in place, by L^T Y = B and L X = D^-1 Y."""
    nv = dof_total(model)
    for c in range(0, columns, at_once(lane)):
        count = columns - c
        for k in range(nv - 1, -1, -1):
            y = load_at_once(lane, B, k * columns + c, count)
            i = -1 if is_zero(y) else parent_dof(model, k)  # often zero, where branches do not meet
            while i >= 0:
                x = load_at_once(lane, B, i * columns + c, count)
                store_at_once(lane, B, i * columns + c, count, x - load(lane, L, k * nv + i) * y)
                i = parent_dof(model, i)
        for k in range(nv):
            x = (factor / load(lane, L, k * nv + k)) * load_at_once(lane, B, k * columns + c, count)
            x = subtract_above(lane, model, L, k, B, c, columns, count, x)
            store_at_once(lane, B, k * columns + c, count, x)


@kernel_in_place
def ltdl_solve_both(lane, model, L, factor, B, C, columns):
    """B = factor M^-1 B and C = factor M^-1 C, as `ltdl_solve`, interleaved to hide memory latency."""
    nv = dof_total(model)
    for c in range(0, columns, at_once(lane)):
        count = columns - c
        for k in range(nv - 1, -1, -1):
            y, z = load_at_once(lane, B, k * columns + c, count), load_at_once(lane, C, k * columns + c, count)
            i = parent_dof(model, k)
            while i >= 0:
                l, at = load(lane, L, k * nv + i), i * columns + c
                store_at_once(lane, B, at, count, load_at_once(lane, B, at, count) - l * y)
                store_at_once(lane, C, at, count, load_at_once(lane, C, at, count) - l * z)
                i = parent_dof(model, i)
        for k in range(nv):
            d, at = factor / load(lane, L, k * nv + k), k * columns + c
            y, z = d * load_at_once(lane, B, at, count), d * load_at_once(lane, C, at, count)
            i = parent_dof(model, k)
            while i >= 0:
                l = load(lane, L, k * nv + i)
                y = y - l * load_at_once(lane, B, i * columns + c, count)
                z = z - l * load_at_once(lane, C, i * columns + c, count)
                i = parent_dof(model, i)
            store_at_once(lane, B, at, count, y)
            store_at_once(lane, C, at, count, z)


@kernel_in_place
def ltdl_inverse(lane, model, L, Minv):
    """M^-1, exactly symmetric, from the ground outwards: L M^-1 = D^-1 L^-T is used only where its right side is known.

    Left of the diagonal that side is zero, on it 1/D: row k follows from the rows of its ancestors.
    """
    nv = dof_total(model)
    for k in range(nv):
        for c in range(0, k, at_once(lane)):
            x = subtract_above(lane, model, L, k, Minv, c, nv, k - c, splat(LANES, 0.0))
            store_at_once(lane, Minv, k * nv + c, k - c, x)
        for c in range(k):
            store(lane, Minv, c * nv + k, load(lane, Minv, k * nv + c))
        diagonal = 1.0 / load(lane, L, k * nv + k)
        i = parent_dof(model, k)
        while i >= 0:
            diagonal = diagonal - load(lane, L, k * nv + i) * load(lane, Minv, k * nv + i)
            i = parent_dof(model, i)
        store(lane, Minv, k * nv + k, diagonal)
