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
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.crba import crba_kernel
from liedyn.mechanics.tree.energy import kinetic_energy_kernel, potential_energy_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.mechanics.tree.rnea import rnea_kernel
from liedyn.model.constraint_records import is_long, ranking_of
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.chain_projection import inertia_along_tree, nearest_of_chain
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
ROUNDING = 1e-15
"""A closure error [rad, sizes of the mechanism] that is a few units of rounding."""


@kernel_in_place
def constraint_state(model, x, q, v):
    """x.residual, x.G, x.psi at (q, v)."""
    world_positions(SCALAR, model, q, x.world)
    residual_rows(model, q, x.world, x.residual)
    jacobian_rows(model, q, x.world, x.G)
    world_velocities(SCALAR, model, v, x.world)
    velocity_rows(model, q, v, x.world, x.psi)


@inline
def put_jacobian(model, q, x):
    """x.G at q, whose pose is in x.world; for sparse chains only structural non-zeros, as x.G is zero elsewhere."""
    if is_long(model):
        cut_jacobian_kernel(SCALAR, model, x.world, False, x.G)
    else:
        jacobian_rows(model, q, x.world, x.G)


@inline
def relative_size(x):
    """The largest residual, lengths relative to the mechanism's size; NaN if one is NaN."""
    largest = 0.0
    for k in range(x.residual.size):
        size = abs(x.residual[k]) / x.row_sizes[k]
        if np.isnan(size):
            return np.nan
        largest = max(largest, size)
    return largest


@inline
def is_reduced(model, o):
    """True if the nearest change is computed in independent velocities (long chains of loops), not by x.L, x.Y."""
    return is_long(model) and o.energy == FREE_ENERGY


@inline
def metric(model, o, x, q):
    """x.L = factor of M(q), or of the identity if M is singular; or x.M = M(q) if `is_reduced`."""
    if is_reduced(model, o):
        inertia_along_tree(model, x, q)
        return
    crba_kernel(SCALAR, model, q, x.world, x.M)
    if not factor(x.M, x.L):
        x.L[:, :] = 0.0
        for j in range(x.L.shape[0]):
            x.L[j, j] = 1.0


@inline
def correction(model, o, x, left, rows, dependent):
    """x.vector[0] = minus the nearest change that cancels the residuals `left` of the marked rows.

    The change is nearest in the metric `x.L`; if `dependent` marks any coordinates, only these change. Returns the rank
    in the first case, and in the second the last pivot, which measures how well these coordinates determine the rows.
    """
    if is_reduced(model, o) and dependent.size == 0:
        found = 1.0 * nearest_of_chain(model, o, x, left)
    elif dependent.size > 0:
        found = nearest_in_columns(
            x.G, left, rows, dependent, ranking_of(model, o.rank_tolerance), x.Y, x.order, x.vector[0])
    else:
        found = 1.0 * nearest_in_metric(
            x.G, left, rows, x.L, ranking_of(model, o.rank_tolerance), x.Y, x.order, x.vector[0])
    for j in range(x.vector.shape[1]):
        x.vector[0, j] = -x.vector[0, j]
    return found


@inline
def left_open(model, of, q):
    """The largest residual at q; leaves the pose of q in x.world, and G."""
    x = of[1]
    world_positions(SCALAR, model, q, x.world)
    residual_rows(model, q, x.world, x.residual)
    put_jacobian(model, q, x)
    return relative_size(x)


@inline
def correct_positions(model, of, q):
    """A step by `correction`."""
    o, x, dependent = of
    correction(model, o, x, x.residual, x.holonomic, dependent)
    integrate_kernel(model, q, x.vector[0], q)
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
def close_positions(model, o, x, q, dependent):
    """Newton's method on g(q) = 0 by `correction`; writes the pose of q to x.world, and x.G. False if not converged."""
    return _close(model, (o, x, dependent), rule_of(o.tolerance), q)


@inline
def consistent_velocities(model, o, x, q, v, dependent):
    """The nearest v with G v = b; needs the pose of q in x.world, and x.G. Returns the result of `correction`."""
    world_velocities(SCALAR, model, v, x.world)
    velocity_rows(model, q, v, x.world, x.psi)
    found = correction(model, o, x, x.psi, x.every, dependent)
    add_multiple(1.0, x.vector[0], v)
    return found


@kernel_in_place
def project_positions(model, o, x, q):
    """Moves q to the nearest closed position in the metric of the kinetic energy; False if that is not reached."""
    metric(model, o, x, q)
    return close_positions(model, o, x, q, x.order[:0])


@kernel_in_place
def project_velocities(model, o, x, q, v):
    """Moves v to the nearest one that the constraints allow at q, in the same metric."""
    metric(model, o, x, q)
    world_positions(SCALAR, model, q, x.world)
    jacobian_rows(model, q, x.world, x.G)
    consistent_velocities(model, o, x, q, v, x.order[:0])


@kernel_in_place
def energy_of(model, x, q, v):
    """T + V, with the energy stored in force elements; x.vector[3] is overwritten."""
    kinetic_energy_kernel(SCALAR, model, q, v, x.local, x.number)
    T = x.number[0]
    potential_energy_kernel(SCALAR, model, q, x.local, x.number)
    return T + x.number[0] + add_held(x, q, x.vector[3])


@kernel_in_place
def correct_energy(model, x, excess, rank, h, q, v):
    """One Newton step for the energy within the constraints, whose orthonormal rows are in x.Y."""
    n = v.size
    speed, fall = x.vector[1], x.vector[2]
    rnea_kernel(SCALAR, model, q, x.zero, x.zero, x.none, x.local, fall)
    add_held(x, q, fall)
    forward(x.L, fall)
    for j in range(n):  # L^T v
        speed[j] = v[j] / x.L[j, j]
        for k in range(j + 1, n):
            speed[j] += x.L[k, j] * v[k]
    for r in range(rank):
        add_multiple(-inner(x.Y[r], speed), x.Y[r], speed)
        add_multiple(-inner(x.Y[r], fall), x.Y[r], fall)
    slope = inner(speed, speed) + h * h * inner(fall, fall)
    if not slope > abs(excess) * 1e-3:
        return False  # at rest in equilibrium no direction changes the energy
    backward(x.L, speed)
    backward(x.L, fall)
    add_multiple(-excess / slope, speed, v)
    for j in range(n):
        fall[j] *= -excess / slope * h * h
    integrate_kernel(model, q, fall, q)
    return True


@inline
def project(model, o, x, h, wanted_energy, q, v):
    """The nearest state on the manifold, with the wanted energy if `o.energy` is set; returns a status."""
    metric(model, o, x, q)
    for _ in range(ITERATIONS):
        if not close_positions(model, o, x, q, x.order[:0]):
            return NOT_CLOSED
        rank = int(consistent_velocities(model, o, x, q, v, x.order[:0]))
        if o.energy == FREE_ENERGY:
            return OK
        energy = energy_of(model, x, q, v)
        excess = energy - wanted_energy
        if o.energy == BOUNDED_ENERGY and excess < 0.0:
            return OK
        # the energies themselves are rounded
        if abs(excess) <= 1e-13 * (1.0 + abs(energy)):
            return OK
        if not correct_energy(model, x, excess, rank, h, q, v):
            return OK if o.energy == WANTED_ENERGY or excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT
    return OK if o.energy == BOUNDED_ENERGY and excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT


@kernel_in_place
def complete(model, o, x, q, v):
    """Dependent coordinates and velocities of (q, v) from the independent ones; x.pivots[1] is the last pivot."""
    if not close_positions(model, o, x, q, x.dependent[0]):
        return NOT_CLOSED
    x.pivots[1] = consistent_velocities(model, o, x, q, v, x.dependent[1])
    if x.pivots[0] == 0.0:
        x.pivots[0] = x.pivots[1]
    return OK


@kernel_in_place
def choose_columns(x, rows, ranking, dependent):
    """Marks the columns of x.G that determine its marked rows best."""
    n, m = x.columns.shape[0], x.columns.shape[1] - 1
    for j in range(n):
        for i in range(m):
            x.columns[j, i] = ranking.rows[i] * x.G[i, j] * ranking.columns[j] if rows[i] != 0 else 0.0
        x.columns[j, m] = 0.0
        dependent[j] = 0
    rank, _ = orthonormal_rows(x.columns, ranking.tolerance, x.order)
    for k in range(rank):
        dependent[x.order[k]] = 1


@kernel_in_place
def choose(model, o, x, q):
    """Both partitions at q, by pivoting."""
    world_positions(SCALAR, model, q, x.world)
    jacobian_rows(model, q, x.world, x.G)
    ranking = ranking_of(model, o.rank_tolerance)
    choose_columns(x, x.holonomic, ranking, x.dependent[0])
    choose_columns(x, x.every, ranking, x.dependent[1])
    x.pivots[0], x.pivots[1] = 0.0, 1.0  # the pivot of this choice is known at its first use


@inline
def has_fallen(x):
    """True if coordinates should be chosen anew, also if they were chosen at a worse place than this one."""
    return x.pivots[1] < FALLEN * x.pivots[0] or x.pivots[0] < FALLEN * x.pivots[1]


@late(MODEL, SETTINGS, WORK, types.float64, types.float64, VECTOR, VECTOR, returns=types.int64)
def stabilise(model, o, x, h, energy, q, v):
    """Projects (q, v), or completes it from its independent coordinates, or leaves it; returns a status."""
    if o.stabilisation == PROJECTION:
        return project(model, o, x, h, energy, q, v)
    if o.stabilisation == MINIMAL:
        if has_fallen(x):
            choose(model, o, x, q)
        return complete(model, o, x, q, v)
    return OK
