"""Projection of long chains of loops, in time that grows as their number
(`liedyn.mechanics.constraints.sparse_elimination`).

The nearest change that takes a residual away, in the metric of the kinetic energy, is also what accelerations would be
without forces (Gauss' principle of least constraint): the null-space formulation finds both.
"""
from numba import types

from liedyn.machine.compiled.jit import VECTOR, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.dynamics.nullspace import OK, solve_accelerations
from liedyn.mechanics.dynamics.terms import tree_terms
from liedyn.model.packed_records import MODEL, parent_dof
from liedyn.motion.simulation.workspace import SETTINGS, WORK


@late(MODEL, WORK, VECTOR)
def inertia_along_tree(model, x, q):
    """M(q) in x.M, where one degree of freedom carries the other."""
    tree_terms(SCALAR, model, q, x.zero, x.none, x.world, x.M, x.vector[3])


@late(MODEL, SETTINGS, WORK, VECTOR, returns=types.int64)
def nearest_of_chain(model, o, x, left):
    """x.vector[0] = dx with G dx = left, shortest in the metric x.M, or where that is singular in the identity.

    Returns the rank.
    """
    status, rank, _ = solve_accelerations(
        model, x.M, x.zero, x.G, left, x.zero, o.rank_tolerance, x.solve, x.vector[0])
    if status != OK:
        for j in range(x.zero.size):
            k = j
            while k >= 0:
                x.M[j, k] = x.M[k, j] = 1.0 if k == j else 0.0
                k = parent_dof(model, k)
        solve_accelerations(model, x.M, x.zero, x.G, left, x.zero, o.rank_tolerance, x.solve, x.vector[0])
    return rank
