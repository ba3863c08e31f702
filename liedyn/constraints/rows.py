"""The rows of all constraints of a robot: one set of kernels, whatever the kinds.

    residual        g(q, t)                          of the holonomic rows, zero in the others
    Jacobian        G(q)
    velocity        psi = G v - b(q, t)              zero on the manifold
    bias            phi_0 = Gdot v - bdot            G a + phi_0 = phi = 0
    derivatives     dpsi/dq, dphi/dq, dphi/dv        at the actual v and a
    force           d(G^T lambda)/dq

A constraint that is switched off keeps its rows, and they are zero: nothing changes its shape when constraints are
switched, and ranks, minimum-norm multipliers and derivatives come out right by themselves.
"""

from liedyn.constraints.cut_joints import closure_kernel, loop_count
from liedyn.constraints.cut_rows import (
    cut_bias_kernel, cut_derivatives_kernel, cut_force_derivative_kernel, cut_jacobian_kernel, cut_velocity_kernel,
)
from liedyn.jit import kernel
from liedyn.model.packed import LOOP_HOLONOMIC, LOOP_I, LOOP_NROWS, LOOP_ROW, LOOPS_AT


@kernel
def holonomic_rows(ints, mask):
    """mask[row] = 1 for rows with a residual, 0 for rows on velocities only; inactive rows count as they would."""
    for l in range(loop_count(ints)):
        k = ints[LOOPS_AT] + LOOP_I * l
        for r in range(ints[k + LOOP_NROWS]):
            mask[ints[k + LOOP_ROW] + r] = 1 if r < ints[k + LOOP_HOLONOMIC] else 0


@kernel
def residual_rows(ints, floats, q, work, g):
    """g (m); needs `world_positions`."""
    closure_kernel(ints, floats, work, g)


@kernel
def jacobian_rows(ints, floats, q, work, G):
    """G (m, nv); needs `world_positions`."""
    cut_jacobian_kernel(ints, floats, work, False, G)


@kernel
def velocity_rows(ints, floats, q, v, work, psi):
    """psi (m) = G v - b; needs `world_velocities`."""
    cut_velocity_kernel(ints, floats, work, False, psi)


@kernel
def bias_rows(ints, floats, q, v, work, phi):
    """phi (m) at the accelerations in `work`; after `world_accelerations` with a = 0 it is phi_0."""
    cut_bias_kernel(ints, floats, work, False, phi)


@kernel
def derivative_rows(ints, floats, q, v, a, work, psi_q, phi_q, phi_v):
    """dpsi/dq, dphi/dq, dphi/dv (m, nv); needs positions, velocities, and accelerations at a in `work`."""
    cut_derivatives_kernel(ints, floats, work, False, psi_q, phi_q, phi_v)


@kernel
def force_derivative_rows(ints, floats, q, work, lam, D):
    """D += d(G^T lambda)/dq (nv, nv); needs `world_positions`."""
    cut_force_derivative_kernel(ints, floats, work, lam, D)
