"""Generalised forces of all force elements at a state, and their derivatives.

With f(x, w) the forces, x the lengths, w = G v their rates and G the rows that measure them,

    tau = -G^T f

    dtau/dq = -d(G^T f)/dq - G^T (f_x G + f_w dw/dq)            f held constant in the first term
    dtau/dv = -G^T f_w G
"""
from collections import namedtuple

import numpy as np

from liedyn.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel, kernel_in_place, late
from liedyn.constraints.rows import (
    derivative_rows, force_derivative_rows, jacobian_rows, residual_rows, velocity_rows,
)
from liedyn.elements.laws import LAWS, force
from liedyn.linalg.vectors import add_multiple
from liedyn.model.packed import NV, N_ROWS
from liedyn.simd.lanes import SCALAR, WIDTH, take_matrix, take_vector
from liedyn.simd.registers import first_place
from liedyn.tree.kinematics import world_motion, world_positions, world_size, world_velocities
from liedyn.tree.records import MODEL

Measured = namedtuple("Measured", "world x w f f_x f_w G")
"""Kinematics; lengths, rates, forces and their slopes (m); the rows (m, n)."""
ARRAYS = 13
"""Of a workspace, each of which may begin with a new register."""


@kernel_in_place
def room_size(model):
    """Numbers in the workspace of all kernels here."""
    m, n = model.ints[N_ROWS], model.ints[NV]
    return world_size(model) + 3 + 5 * m + n + 4 * m * n + n * n + WIDTH * ARRAYS


def room_for(model):
    """A workspace; none where nothing is measured, as most robots have no force elements."""
    return np.empty(room_size(model) if model.ints[N_ROWS] else 0)


@inline_array
def taken(model, work):
    """The arrays of `Measured`, from the beginning of a workspace."""
    m, n = model.ints[N_ROWS], model.ints[NV]
    work[0] = first_place(work)
    return Measured(take_vector(work, world_size(model)), take_vector(work, m), take_vector(work, m),
                    take_vector(work, m), take_vector(work, m), take_vector(work, m), take_matrix(work, m, n))


@inline
def measure(model, laws, work, at, q, v):
    """Fill `Measured`; needs `world_velocities`."""
    out = take_vector(work, 3)
    residual_rows(model, q, at.world, at.x)
    velocity_rows(model, q, v, at.world, at.w)
    jacobian_rows(model, q, at.world, at.G)
    for r in range(at.x.size):
        at.f[r], at.f_x[r], at.f_w[r] = force(laws, r, at.x, at.w, out)


@late(MODEL, LAWS, VECTOR, VECTOR, VECTOR, VECTOR)
def add_forces(model, laws, work, q, v, tau):
    """tau -= G^T f."""
    at = taken(model, work)
    world_positions(SCALAR, model, q, at.world)
    world_velocities(SCALAR, model, v, at.world)
    measure(model, laws, work, at, q, v)
    for r in range(at.f.size):
        add_multiple(-at.f[r], at.G[r], tau)


@late(MODEL, LAWS, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX)
def add_derivatives(model, laws, work, q, v, by_q, by_v):
    """Add dtau/dq and dtau/dv (n, n)."""
    at, m, n = taken(model, work), model.ints[N_ROWS], model.ints[NV]
    zero, w_q = take_vector(work, n), take_matrix(work, m, n)
    ignored_q, ignored_v, D = take_matrix(work, m, n), take_matrix(work, m, n), take_matrix(work, n, n)
    zero[:] = 0.0
    D[:] = 0.0
    world_motion(SCALAR, model, q, v, zero, at.world)
    measure(model, laws, work, at, q, v)
    derivative_rows(model, q, v, zero, at.world, w_q, ignored_q, ignored_v)
    force_derivative_rows(model, q, at.world, at.f, D)
    for i in range(n):
        add_multiple(-1.0, D[i], by_q[i])
        for r in range(m):
            add_multiple(-at.G[r, i] * at.f_x[r], at.G[r], by_q[i])
            add_multiple(-at.G[r, i] * at.f_w[r], w_q[r], by_q[i])
            add_multiple(-at.G[r, i] * at.f_w[r], at.G[r], by_v[i])


@kernel
def force_states(model, laws, work, q, v, tau, x, w, f):
    """Of each row of q and v: tau, and lengths, rates and forces of all elements."""
    tau[:] = 0.0
    for b in range(q.shape[0]):
        add_forces(model, laws, work, q[b], v[b], tau[b])
        at = taken(model, work)
        x[b], w[b], f[b] = at.x, at.w, at.f


@kernel
def derivative_states(model, laws, work, q, v, by_q, by_v):
    """Of each row of q and v: dtau/dq and dtau/dv."""
    by_q[:] = 0.0
    by_v[:] = 0.0
    for b in range(q.shape[0]):
        add_derivatives(model, laws, work, q[b], v[b], by_q[b], by_v[b])
