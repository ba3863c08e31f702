"""Generalised forces of all force elements at a state, and their derivatives.

With f(x, w) the forces, x the lengths, w = G v their rates and G the rows that measure them,

    tau = -G^T f

    dtau/dq = -d(G^T f)/dq - G^T (f_x G + f_w dw/dq)            f held constant in the first term
    dtau/dv = -G^T f_w G
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.compiled.jit import MATRIX, VECTOR, kernel, kernel_in_place, late
from liedyn.constraints.rows import (
    derivative_rows, force_derivative_rows, jacobian_rows, residual_rows, velocity_rows,
)
from liedyn.elements.laws import LAWS, force
from liedyn.linalg.vectors import add_multiple
from liedyn.model.packed import NV, N_ROWS
from liedyn.simd.lanes import SCALAR
from liedyn.tree.kinematics import world_motion, world_positions, world_size, world_velocities
from liedyn.tree.records import MODEL

Room = namedtuple("Room", "world zero x w f f_x f_w out G w_q ignored_q ignored_v D")
"""Scratch arrays: of kinematics; zeros (n); lengths, rates, forces, their slopes (m); (3); rows (m, n), and (n, n)."""
ROOM = types.NamedTuple([*[VECTOR] * 8, *[MATRIX] * 5], Room)


@kernel_in_place
def kinematics_size(model):
    """Numbers in the workspace of kinematics."""
    return world_size(model)


def room_for(model):
    """Those for a packed model."""
    m, n = int(model.ints[N_ROWS]), int(model.ints[NV])
    shapes = kinematics_size(model) if m else 0, n, m, m, m, m, m, 3, (m, n), (m, n), (m, n), (m, n), (n, n)
    return Room(*map(np.zeros, shapes))


@kernel_in_place
def measure(model, laws, room, q, v):
    """Lengths, rates, forces with their slopes, and G; needs `world_velocities`."""
    residual_rows(model, q, room.world, room.x)
    velocity_rows(model, q, v, room.world, room.w)
    jacobian_rows(model, q, room.world, room.G)
    for r in range(room.x.size):
        room.f[r], room.f_x[r], room.f_w[r] = force(laws, r, room.x, room.w, room.out)


@late(MODEL, LAWS, ROOM, VECTOR, VECTOR, VECTOR)
def add_forces(model, laws, room, q, v, tau):
    """tau -= G^T f."""
    world_positions(SCALAR, model, q, room.world)
    world_velocities(SCALAR, model, v, room.world)
    measure(model, laws, room, q, v)
    for r in range(room.f.size):
        add_multiple(-room.f[r], room.G[r], tau)


@late(MODEL, LAWS, ROOM, VECTOR, VECTOR, MATRIX, MATRIX)
def add_derivatives(model, laws, room, q, v, by_q, by_v):
    """Add dtau/dq and dtau/dv (n, n)."""
    world_motion(SCALAR, model, q, v, room.zero, room.world)
    measure(model, laws, room, q, v)
    derivative_rows(model, q, v, room.zero, room.world, room.w_q, room.ignored_q, room.ignored_v)
    room.D[:] = 0.0
    force_derivative_rows(model, q, room.world, room.f, room.D)
    for i in range(v.size):
        add_multiple(-1.0, room.D[i], by_q[i])
        for r in range(room.f.size):
            add_multiple(-room.G[r, i] * room.f_x[r], room.G[r], by_q[i])
            add_multiple(-room.G[r, i] * room.f_w[r], room.w_q[r], by_q[i])
            add_multiple(-room.G[r, i] * room.f_w[r], room.G[r], by_v[i])


@kernel
def force_states(model, laws, room, q, v, tau, x, w, f):
    """Of each row of q and v: tau, and lengths, rates and forces of all elements."""
    tau[:] = 0.0
    for b in range(q.shape[0]):
        add_forces(model, laws, room, q[b], v[b], tau[b])
        x[b], w[b], f[b] = room.x, room.w, room.f


@kernel
def derivative_states(model, laws, room, q, v, by_q, by_v):
    """Of each row of q and v: dtau/dq and dtau/dv."""
    by_q[:] = 0.0
    by_v[:] = 0.0
    for b in range(q.shape[0]):
        add_derivatives(model, laws, room, q[b], v[b], by_q[b], by_v[b])
