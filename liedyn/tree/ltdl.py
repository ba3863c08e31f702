"""The sparse factorisation M = L^T D L of a tree's inertia matrix (Featherstone 2008, section 6.5).

Row k of L has entries only at the ancestors of degree of freedom k: those that carry it on the way to the ground. The
tree's zeros in M stay zeros in L, so that all work is on ancestors. M is positive definite: nothing is ever pivoted.
Matrices are nv * nv numbers, row by row; L is unit, D takes the place of its diagonal.
"""
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import load, store
from liedyn.tree.records import dof_total, previous_dof


@kernel_in_place
def ltdl_factor(lane, ints, M):
    """L and D in place of the lower triangle of M; the upper triangle is left alone."""
    nv = dof_total(ints)
    for k in range(nv - 1, -1, -1):
        d = load(lane, M, k * nv + k)
        i = previous_dof(ints, k)
        while i >= 0:
            l = load(lane, M, k * nv + i) / d
            j = i
            while j >= 0:
                store(lane, M, i * nv + j, load(lane, M, i * nv + j) - l * load(lane, M, k * nv + j))
                j = previous_dof(ints, j)
            store(lane, M, k * nv + i, l)
            i = previous_dof(ints, i)


@kernel_in_place
def ltdl_solve(lane, ints, L, factor, B, columns):
    """B = factor M^-1 B for the columns of B, in place, by L^T Y = B and L X = D^-1 Y."""
    nv = dof_total(ints)
    for k in range(nv - 1, -1, -1):
        i = previous_dof(ints, k)
        while i >= 0:
            l = load(lane, L, k * nv + i)
            for c in range(columns):
                store(lane, B, i * columns + c, load(lane, B, i * columns + c) - l * load(lane, B, k * columns + c))
            i = previous_dof(ints, i)
    for k in range(nv):
        d = factor / load(lane, L, k * nv + k)
        for c in range(columns):
            store(lane, B, k * columns + c, d * load(lane, B, k * columns + c))
        i = previous_dof(ints, k)
        while i >= 0:
            l = load(lane, L, k * nv + i)
            for c in range(columns):
                store(lane, B, k * columns + c, load(lane, B, k * columns + c) - l * load(lane, B, i * columns + c))
            i = previous_dof(ints, i)


@kernel_in_place
def ltdl_inverse(lane, ints, L, Minv):
    """M^-1, symmetric to the last bit: from the ground outwards, L M^-1 = D^-1 L^-T read where its right side is known.

    Left of the diagonal that side is zero, on it 1/D: row k follows from the rows of its ancestors.
    """
    nv = dof_total(ints)
    for k in range(nv):
        for c in range(k):
            store(lane, Minv, k * nv + c, 0.0)
        i = previous_dof(ints, k)
        while i >= 0:
            l = load(lane, L, k * nv + i)
            for c in range(k):
                store(lane, Minv, k * nv + c, load(lane, Minv, k * nv + c) - l * load(lane, Minv, i * nv + c))
            i = previous_dof(ints, i)
        for c in range(k):
            store(lane, Minv, c * nv + k, load(lane, Minv, k * nv + c))
        diagonal = 1.0 / load(lane, L, k * nv + k)
        i = previous_dof(ints, k)
        while i >= 0:
            diagonal = diagonal - load(lane, L, k * nv + i) * load(lane, Minv, k * nv + i)
            i = previous_dof(ints, i)
        store(lane, Minv, k * nv + k, diagonal)
