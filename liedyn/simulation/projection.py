"""Projection on the invariants: closed loops, consistent velocities, and the energy that there ought to be.

Spencer 2004, 3.1.3 (eq. 3.10, 3.11), with the kinetic energy as the measure of distance instead of the sum of squares,
which depends on units: the shortest step dq with G dq = -g in the metric M, repeated until g = 0, then the shortest
change dv with G (v + dv) = b. (A tree whose M is singular takes the sum of squares.) Moving along such a step changes
the momentum by constraint forces alone, as an impulse would.

The energy E(q, v) = T + V is one more invariant, E = E_0 + work of the inputs - work lost in dampers. Its gradient is
(dV/dq, M v), that of T by q being of second order in v, where the second part suffices. With time measured in steps h
the metric of a state is |dq|^2 / h^2 + |dv|^2, so the correction goes along (h^2 M^-1 dV/dq, v), projected on the
constraints: speeds scale as long as there are any, and at a turning point the height gives way.
"""
import numpy as np

from liedyn.constraints.rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.nearest import backward, factor, forward, nearest_in_metric
from liedyn.simulation.workspace import (
    BOUNDED_ENERGY, FREE_ENERGY, NOT_CLOSED, NOT_CONSISTENT, OK, WANTED_ENERGY,
)
from liedyn.tree.configuration import integrate_kernel
from liedyn.tree.crba import crba_kernel
from liedyn.tree.energy import kinetic_energy_kernel, potential_energy_kernel
from liedyn.tree.kinematics import world_positions, world_velocities
from liedyn.tree.rnea import rnea_kernel

BOUND = 1e-10
"""What a bound of the energy may be passed by, relative to it."""
ITERATIONS = 30
"""Newton steps: two suffice after a step of an integrator, more near singular configurations, where it is linear."""
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
def relative_size(x):
    """The largest residual, lengths by the mechanism's size; NaN if one is."""
    largest = 0.0
    for k in range(x.residual.size):
        size = abs(x.residual[k]) / x.row_sizes[k]
        if np.isnan(size):
            return np.nan
        largest = max(largest, size)
    return largest


@inline
def is_closed(o, size, before):
    """Is a residual rounding, or has it ceased to fall, as where rows contradict each other a little?

    Near a singular configuration a residual g leaves an error g / s of the configuration, s the smallest singular value
    of G, and the next velocities and accelerations are off by g / s^2 and g / s^3: no residual above rounding is small.
    """
    return size <= ROUNDING or (size <= o.tolerance and size > 0.5 * before)


@kernel_in_place
def metric(model, x, q):
    """x.L: factor of M(q), or of the identity where M is singular."""
    crba_kernel(SCALAR, model, q, x.world, x.M)
    if not factor(x.M, x.L):
        x.L[:, :] = 0.0
        for j in range(x.L.shape[0]):
            x.L[j, j] = 1.0


@kernel_in_place
def close_positions(model, o, x, q):
    """Newton on g(q) = 0 in the metric `x.L`; leaves the pose of q in x.world. False if it does not converge."""
    before = 1e300
    for _ in range(ITERATIONS):
        world_positions(SCALAR, model, q, x.world)
        residual_rows(model, q, x.world, x.residual)
        size = relative_size(x)
        if is_closed(o, size, before):
            return True
        if not size < 1e100:
            return False
        before = size
        jacobian_rows(model, q, x.world, x.G)
        nearest_in_metric(x.G, x.residual, x.holonomic, x.L, o.rank_tolerance, x.Y, x.order, x.vector[0])
        for j in range(x.vector.shape[1]):
            x.vector[0, j] = -x.vector[0, j]
        integrate_kernel(model, q, x.vector[0], q)
    return before <= o.tolerance


@kernel_in_place
def consistent_velocities(model, o, x, q, v):
    """The nearest v with G v = b in the metric `x.L`; needs the pose of q in x.world. Returns rank and ratio."""
    jacobian_rows(model, q, x.world, x.G)
    world_velocities(SCALAR, model, v, x.world)
    velocity_rows(model, q, v, x.world, x.psi)
    rank = nearest_in_metric(x.G, x.psi, x.every, x.L, o.rank_tolerance, x.Y, x.order, x.vector[0])
    for j in range(v.size):
        v[j] -= x.vector[0, j]
    return rank


@kernel_in_place
def energy_of(model, x, q, v):
    """T + V."""
    kinetic_energy_kernel(SCALAR, model, q, v, x.local, x.number)
    T = x.number[0]
    potential_energy_kernel(SCALAR, model, q, x.local, x.number)
    return T + x.number[0]


@kernel_in_place
def correct_energy(model, x, excess, rank, h, q, v):
    """One Newton step for the energy along the constraints, whose orthonormal rows are in x.Y."""
    n = v.size
    speed, fall = x.vector[1], x.vector[2]
    rnea_kernel(SCALAR, model, q, x.zero, x.zero, x.none, x.local, fall)
    forward(x.L, fall)
    for j in range(n):  # L^T v
        speed[j] = v[j] / x.L[j, j]
        for k in range(j + 1, n):
            speed[j] += x.L[k, j] * v[k]
    for r in range(rank):
        along_speed, along_fall = 0.0, 0.0
        for j in range(n):
            along_speed += x.Y[r, j] * speed[j]
            along_fall += x.Y[r, j] * fall[j]
        for j in range(n):
            speed[j] -= along_speed * x.Y[r, j]
            fall[j] -= along_fall * x.Y[r, j]
    slope = 0.0
    for j in range(n):
        slope += speed[j] * speed[j] + h * h * fall[j] * fall[j]
    if not slope > abs(excess) * 1e-3:
        return False  # at rest in equilibrium nothing changes the energy
    backward(x.L, speed)
    backward(x.L, fall)
    for j in range(n):
        v[j] -= excess / slope * speed[j]
        fall[j] *= -excess / slope * h * h
    integrate_kernel(model, q, fall, q)
    return True


@kernel_in_place
def project(model, o, x, h, wanted_energy, q, v):
    """The nearest state on the manifold, with the wanted energy if `o.energy` is set; returns a status."""
    metric(model, x, q)
    for _ in range(ITERATIONS):
        if not close_positions(model, o, x, q):
            return NOT_CLOSED
        rank = consistent_velocities(model, o, x, q, v)
        if o.energy == FREE_ENERGY:
            return OK
        energy = energy_of(model, x, q, v)
        excess = energy - wanted_energy
        if o.energy == BOUNDED_ENERGY and excess < 0.0:
            return OK
        # rounding of the energies themselves
        if abs(excess) <= 1e-13 * (1.0 + abs(energy)):
            return OK
        if not correct_energy(model, x, excess, rank, h, q, v):
            return OK if o.energy == WANTED_ENERGY or excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT
    return OK if o.energy == BOUNDED_ENERGY and excess <= BOUND * (1.0 + abs(energy)) else NOT_CONSISTENT
