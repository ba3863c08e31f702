"""Projection of long chains of loops, in time proportional to their number
(`liedyn.mechanics.constraints.sparse_elimination`).

The nearest change that removes a residual, in the metric of the kinetic energy, equals the accelerations without forces
(Gauss' principle of least constraint): the null-space formulation computes both.
"""
from numba import types

from liedyn.machine.compiled.jit import VECTOR, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.dynamics.nullspace import OK, solve_accelerations
from liedyn.mechanics.dynamics.terms import tree_terms
from liedyn.model.packed_records import MODEL, parent_dof
from liedyn.motion.simulation.workspace import SETTINGS, WORK


@late(MODEL, WORK, VECTOR)
def inertia_along_tree(model, work, q):
    """work.M = M(q), only the entries where one degree of freedom carries the other."""
    tree_terms(SCALAR, model, q, work.zero, work.none, work.world, work.M, work.vector[3])


@late(MODEL, SETTINGS, WORK, VECTOR, returns=types.int64)
def nearest_of_chain(model, settings, work, left):
    """work.vector[0] = dx with G dx = left, shortest in the metric work.M, or in the identity if work.M is singular.

    Returns the rank.
    """
    status, rank, _ = solve_accelerations(
        model, work.M, work.zero, work.G, left, work.zero, settings.rank_tolerance, work.solve, work.vector[0])
    if status != OK:
        for j in range(work.zero.size):
            k = j
            while k >= 0:
                work.M[j, k] = work.M[k, j] = 1.0 if k == j else 0.0
                k = parent_dof(model, k)
        solve_accelerations(model, work.M, work.zero, work.G, left, work.zero, settings.rank_tolerance, work.solve,
                            work.vector[0])
    return rank
