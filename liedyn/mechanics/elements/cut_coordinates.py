"""Coordinates of cut joints in the displacements of force elements: x += C z, with C of `liedyn.model.force_elements`.

The coordinates z are read off the closed loops, with rates E v (`liedyn.mechanics.constraints.cut_joints`). The rows G
of the elements gain C E, and what their forces f do along z varies with q as the wrenches of the cut joints do, which
are constant in the cut frames:

    d(G^T f)/dq  has besides  d(E^T lam)/dq  at lam = C^T f
"""
import math

from liedyn.machine.compiled.jit import MATRIX, VECTOR, late
from liedyn.machine.linalg.vectors import add_multiple, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.constraints.families.cut import (
    cut_derivatives_kernel, cut_force_derivative_kernel, cut_jacobian_kernel, cut_velocity_kernel,
)
from liedyn.mechanics.elements.element_laws import LAWS_TYPE
from liedyn.model.packed_records import MODEL


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR, MATRIX)
def add_cut_coordinates(model, laws, world, z, E, x, w, G):
    """x += C z, w += C E v, G += C E; needs `world_velocities`. Angles count from rest to half a turn either way."""
    cut_velocity_kernel(SCALAR, model, world, True, z)
    for r in range(x.size):
        w[r] += inner(laws.cuts[r], z)
    virtual_kernel(model, world, z)
    E[:] = 0.0
    cut_jacobian_kernel(SCALAR, model, world, True, E)
    for r in range(x.size):
        x[r] += inner(laws.cuts[r], z)
        if laws.turns[r] > 0.0:
            x[r] -= laws.turns[r] * math.floor(x[r] / laws.turns[r] + 0.5)
        for k in range(z.size):
            add_multiple(laws.cuts[r, k], E[k], G[r])


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, MATRIX, MATRIX)
def add_cut_derivatives(model, laws, world, f, lam, z_q, ignored_q, ignored_v, w_q, D):
    """Add C d(E v)/dq to w_q and d(E^T C^T f)/dq to D; needs `world_motion`. `lam` is lost."""
    z_q[:] = 0.0
    lam[:] = 0.0
    cut_derivatives_kernel(model, world, True, z_q, ignored_q, ignored_v)
    for r in range(f.size):
        add_multiple(f[r], laws.cuts[r], lam)
        for k in range(lam.size):
            add_multiple(laws.cuts[r, k], z_q[k], w_q[r])
    cut_force_derivative_kernel(model, world, True, lam, D)
