"""Keeps a state on the constraint manifold: by projection, or in minimal coordinates.

Projection restores the invariants: closed loops, consistent velocities, and the energy if it is known.

Spencer 2004, 3.1.3 (eq. 3.10, 3.11), with the kinetic energy as the measure of distance instead of the sum of squares,
which depends on units: the shortest step dq with G dq = -g in the metric M, repeated until g = 0, then the shortest
change dv with G (v + dv) = b. (A tree whose M is singular takes the sum of squares.) Moving along such a step changes
the momentum by constraint forces alone, as an impulse would.

The energy E(q, v) = T + V is one more invariant, E = E_0 + work of the inputs - work lost in dampers. Its gradient is
(dV/dq, M v), without the gradient of T by q, which is of second order in v. With time measured in steps h the metric of
a state is |dq|^2 / h^2 + |dv|^2, so the correction is along (h^2 M^-1 dV/dq, v), projected on the constraints: it
scales speeds as long as there are any, and changes the height at a turning point.

Minimal coordinates (Spencer 2004, 2.3.1): the independent ones are integrated, and at every stage the dependent ones
solve g(q) = 0 and G v = b at constant independent ones, by Newton's method from the integrated guess. Positions may
have more independent coordinates than velocities (rolling), so each has its own partition. Both are chosen by pivoting,
and anew as soon as the last pivot has fallen to a fraction of its value at the choice (Gillespie 2003, section 4:
singularities of the choice are avoided).

Long chains of loops are projected in time proportional to their number
(`liedyn.mechanics.constraints.sparse_elimination`): the nearest change that removes a residual, in the metric of the
kinetic energy, equals the accelerations without forces (Gauss' principle of least constraint), which the null-space
formulation computes.
"""
import numpy as np
from numba import types

from liedyn.machine.compiled.jit import VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.nearest import (
    backward, factor, forward, nearest_in_columns, nearest_in_metric, orthonormal_rows,
)
from liedyn.machine.linalg.vectors import add_multiple, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing import Rule, closer
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.mechanics.constraints.families.cut import cut_jacobian_kernel
from liedyn.mechanics.dynamics.nullspace import SINGULAR_INERTIA, solve_accelerations
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import tree_terms
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.crba import crba_kernel
from liedyn.mechanics.tree.energy import kinetic_energy_kernel, potential_energy_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.mechanics.tree.rnea import rnea_kernel
from liedyn.model.constraint_records import is_long, ranking_of
from liedyn.model.packed_records import MODEL, parent_dof
from liedyn.motion.simulation.inputs import add_held
from liedyn.motion.simulation.workspace import (
    BOUNDED_ENERGY, FREE_ENERGY, MINIMAL, NOT_CLOSED, NOT_CONSISTENT, OK, PROJECTION, SETTINGS, WANTED_ENERGY, WORK,
)


BOUND = 1e-10
"""Tolerance of a bound of the energy, relative to it."""
ITERATIONS = 30
"""Largest number of Newton steps: two suffice after a step; near singularities convergence is linear."""
FALLEN = 0.5
"""Fraction of its first value at which the last pivot requires a new choice: early, because choosing costs little and
the error of a step grows with the slopes of the dependent coordinates."""
CONSISTENT = 1e-6
"""Largest residual [rad, sizes of the mechanism] of a state on the manifold, and velocity residual relative to the
speeds, if any is above 1 rad/s."""
ROUNDING = 1e-15
"""A closure error [rad, sizes of the mechanism] that is a few units of rounding."""


@late(MODEL, WORK, VECTOR)
def inertia_along_tree(model, work, q):
    """work.M = M(q), only the entries where one degree of freedom carries the other."""
    terms = Terms(work.M, work.vector[3], work.G, work.gamma)
    tree_terms(SCALAR, model, q, work.zero, work.none, work.world, terms)


@late(MODEL, SETTINGS, WORK, VECTOR, returns=types.int64)
def nearest_of_chain(model, settings, work, left):
    """work.vector[0] = dx with G dx = left, shortest in the metric work.M, or in the identity if work.M is singular.

    Returns the rank.
    """
    terms = Terms(work.M, work.zero, work.G, left)
    status, rank, _ = solve_accelerations(
        model, terms, work.zero, settings.rank_tolerance, work.solve, work.vector[0])
    if status == SINGULAR_INERTIA:
        for j in range(work.zero.size):
            k = j
            while k >= 0:
                work.M[j, k] = work.M[k, j] = 1.0 if k == j else 0.0
                k = parent_dof(model, k)
        solve_accelerations(model, terms, work.zero, settings.rank_tolerance, work.solve, work.vector[0])
    return rank


@kernel_in_place
def constraint_state(model, work, q, v):
    """work.residual, work.G, work.psi at (q, v).

    Returns True if all rows are finite, and the state violates none of them by more than `CONSISTENT`.
    """
    world_positions(SCALAR, model, q, work.world)
    residual_rows(model, q, work.world, work.residual)
    jacobian_rows(model, q, work.world, work.G)
    world_velocities(SCALAR, model, v, work.world)
    velocity_rows(model, q, v, work.world, work.psi)
    for k in range(work.psi.size):
        size = CONSISTENT * work.row_sizes[k]
        if not (abs(work.residual[k]) <= size and abs(work.psi[k]) <= size):
            return False
        for j in range(v.size):
            if not np.isfinite(work.G[k, j]):
                return False
    return True


@inline
def put_jacobian(model, q, work):
    """work.G at q, whose pose is in work.world; for sparse chains only structural non-zeros: the rest is zero."""
    if is_long(model):
        cut_jacobian_kernel(SCALAR, model, work.world, False, work.G)
    else:
        jacobian_rows(model, q, work.world, work.G)


@inline
def relative_size(work):
    """The largest residual, lengths relative to the mechanism's size; NaN if one is NaN."""
    largest = 0.0
    for k in range(work.residual.size):
        size = abs(work.residual[k]) / work.row_sizes[k]
        if np.isnan(size):
            return np.nan
        largest = max(largest, size)
    return largest


@inline
def is_reduced(model, settings):
    """True if the nearest change is computed in independent velocities (long chains of loops), not by x.L, x.Y."""
    return is_long(model) and settings.energy == FREE_ENERGY


@inline
def metric(model, settings, work, q):
    """work.L = factor of M(q), or of the identity if M is singular; or work.M = M(q) if `is_reduced`."""
    if is_reduced(model, settings):
        inertia_along_tree(model, work, q)
        return
    crba_kernel(SCALAR, model, q, work.world, work.M)
    if not factor(work.M, work.L):
        work.L[:, :] = 0.0
        for j in range(work.L.shape[0]):
            work.L[j, j] = 1.0


@inline
def correction(model, settings, work, left, rows, dependent):
    """work.vector[0] = minus the nearest change that cancels the residuals `left` of the marked rows.

    The change is nearest in the metric `work.L`; if `dependent` marks any coordinates, only these change. Returns the
    rank in the first case, and in the second the last pivot, which measures how well these coordinates determine the
    rows.
    """
    if is_reduced(model, settings) and dependent.size == 0:
        found = 1.0 * nearest_of_chain(model, settings, work, left)
    elif dependent.size > 0:
        found = nearest_in_columns(work.G, left, rows, dependent, ranking_of(model, settings.rank_tolerance),
                                   (work.Y, work.order), work.vector[0])
    else:
        found = 1.0 * nearest_in_metric(
            work.G, left, rows, work.L, ranking_of(model, settings.rank_tolerance), (work.Y, work.order),
            work.vector[0])
    for j in range(work.vector.shape[1]):
        work.vector[0, j] = -work.vector[0, j]
    return found


@inline
def left_open(model, of, q):
    """The largest residual at q; leaves the pose of q in work.world, and G."""
    work = of[1]
    world_positions(SCALAR, model, q, work.world)
    residual_rows(model, q, work.world, work.residual)
    put_jacobian(model, q, work)
    return relative_size(work)


@inline
def correct_positions(model, of, q):
    """A step by `correction`."""
    settings, work, dependent = of
    correction(model, settings, work, work.residual, work.holonomic, dependent)
    integrate_kernel(model, q, work.vector[0], q)
    return True


_close = closer(left_open, correct_positions)


@inline
def rule_of(tolerance):
    """Positions are closed to rounding, or to this tolerance if the residual has ceased to fall.

    Near a singular configuration a residual g leaves an error g / s of the configuration, s the smallest singular value
    of G, and the next velocities and accelerations are off by g / s^2 and g / s^3: no residual above rounding is small.
    """
    return Rule(ITERATIONS, ROUNDING, tolerance, 0.5, np.inf)


@inline
def close_positions(model, settings, work, q, dependent):
    """Newton's method on g(q) = 0 by `correction`; writes work.world and work.G. False if not converged."""
    return _close(model, (settings, work, dependent), rule_of(settings.tolerance), q)


@inline
def consistent_velocities(model, settings, work, q, v, dependent):
    """The nearest v with G v = b; needs the pose of q in work.world, and work.G. Returns the result of `correction`."""
    world_velocities(SCALAR, model, v, work.world)
    velocity_rows(model, q, v, work.world, work.psi)
    found = correction(model, settings, work, work.psi, work.every, dependent)
    add_multiple(1.0, work.vector[0], v)
    return found


@kernel_in_place
def project_positions(model, settings, work, q):
    """Moves q to the nearest closed position in the metric of the kinetic energy; False if that is not reached."""
    metric(model, settings, work, q)
    return close_positions(model, settings, work, q, work.order[:0])


@kernel_in_place
def project_velocities(model, settings, work, q, v):
    """Moves v to the nearest one that the constraints allow at q, in the same metric."""
    metric(model, settings, work, q)
    world_positions(SCALAR, model, q, work.world)
    jacobian_rows(model, q, work.world, work.G)
    consistent_velocities(model, settings, work, q, v, work.order[:0])


@kernel_in_place
def energy_of(model, work, q, v):
    """T + V, with the energy stored in force elements; work.vector[3] is overwritten."""
    kinetic_energy_kernel(SCALAR, model, q, v, work.local, work.number)
    T = work.number[0]
    potential_energy_kernel(SCALAR, model, q, work.local, work.number)
    return T + work.number[0] + add_held(work, q, work.vector[3])


@kernel_in_place
def correct_energy(model, work, excess, rank, h, q, v):
    """One Newton step for the energy within the constraints, whose orthonormal rows are in work.Y."""
    n = v.size
    speed, fall = work.vector[1], work.vector[2]
    rnea_kernel(SCALAR, model, q, work.zero, work.zero, work.none, work.local, fall)
    add_held(work, q, fall)
    forward(work.L, fall)
    for j in range(n):  # L^T v
        speed[j] = v[j] / work.L[j, j]
        for k in range(j + 1, n):
            speed[j] += work.L[k, j] * v[k]
    for r in range(rank):
        add_multiple(-inner(work.Y[r], speed), work.Y[r], speed)
        add_multiple(-inner(work.Y[r], fall), work.Y[r], fall)
    slope = inner(speed, speed) + h * h * inner(fall, fall)
    if not slope > abs(excess) * 1e-3:
        return False  # at rest in equilibrium no direction changes the energy
    backward(work.L, speed)
    backward(work.L, fall)
    add_multiple(-excess / slope, speed, v)
    for j in range(n):
        fall[j] *= -excess / slope * h * h
    integrate_kernel(model, q, fall, q)
    return True


@inline
def project(model, settings, work, h, wanted_energy, q, v):
    """The nearest state on the manifold, with the wanted energy if `settings.energy` is set; returns a status."""
    metric(model, settings, work, q)
    for _ in range(ITERATIONS):
        if not close_positions(model, settings, work, q, work.order[:0]):
            return NOT_CLOSED
        rank = int(consistent_velocities(model, settings, work, q, v, work.order[:0]))
        if settings.energy == FREE_ENERGY:
            return OK
        energy = energy_of(model, work, q, v)
        excess = energy - wanted_energy
        if settings.energy == BOUNDED_ENERGY and excess < 0.0:
            return OK
        # the energies themselves are rounded
        if abs(excess) <= 1e-13 * (1.0 + abs(energy)):
            return OK
        if not correct_energy(model, work, excess, rank, h, q, v):
            return OK if settings.energy == WANTED_ENERGY or excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT
    return OK if settings.energy == BOUNDED_ENERGY and excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT


@kernel_in_place
def complete(model, settings, work, q, v):
    """Dependent coordinates and velocities of (q, v) from the independent ones; work.pivots[1] is the last pivot."""
    if not close_positions(model, settings, work, q, work.dependent[0]):
        return NOT_CLOSED
    work.pivots[1] = consistent_velocities(model, settings, work, q, v, work.dependent[1])
    if work.pivots[0] == 0.0:
        work.pivots[0] = work.pivots[1]
    return OK


@kernel_in_place
def choose_columns(work, rows, ranking, dependent):
    """Marks the columns of work.G that determine its marked rows best."""
    n, m = work.columns.shape[0], work.columns.shape[1] - 1
    for j in range(n):
        for i in range(m):
            work.columns[j, i] = ranking.rows[i] * work.G[i, j] * ranking.columns[j] if rows[i] != 0 else 0.0
        work.columns[j, m] = 0.0
        dependent[j] = 0
    rank, _ = orthonormal_rows(work.columns, ranking.tolerance, work.order)
    for k in range(rank):
        dependent[work.order[k]] = 1


@kernel_in_place
def choose(model, settings, work, q):
    """Both partitions at q, by pivoting."""
    world_positions(SCALAR, model, q, work.world)
    jacobian_rows(model, q, work.world, work.G)
    ranking = ranking_of(model, settings.rank_tolerance)
    choose_columns(work, work.holonomic, ranking, work.dependent[0])
    choose_columns(work, work.every, ranking, work.dependent[1])
    work.pivots[0], work.pivots[1] = 0.0, 1.0  # the pivot of this choice is known at its first use


@inline
def has_fallen(work):
    """True if coordinates should be chosen anew, also if they were chosen at a worse place than this one."""
    return work.pivots[1] < FALLEN * work.pivots[0] or work.pivots[0] < FALLEN * work.pivots[1]


@late(MODEL, SETTINGS, WORK, types.float64, types.float64, VECTOR, VECTOR, returns=types.int64)
def stabilise(model, settings, work, h, energy, q, v):
    """Projects (q, v), or completes it from its independent coordinates, or leaves it; returns a status."""
    if settings.stabilisation == PROJECTION:
        return project(model, settings, work, h, energy, q, v)
    if settings.stabilisation == MINIMAL:
        if has_fallen(work):
            choose(model, settings, work, q)
        return complete(model, settings, work, q, v)
    return OK
