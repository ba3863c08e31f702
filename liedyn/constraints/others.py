"""Rows of contacts, couplings and custom constraints: all kinds that are no cut joints.

Most robots have none of these: what they add is compiled when the first robot that has some asks for it.
"""
from numba import types

from liedyn.constraints.contacts import (
    contact_bias_kernel, contact_derivatives_kernel, contact_force_derivative_kernel, contact_jacobian_kernel,
    contact_residual_kernel, contact_velocity_kernel, push_contacts, vary_contact_rows, vary_contact_wrenches,
)
from liedyn.constraints.couplings import (
    coupling_bias_kernel, coupling_jacobian_kernel, coupling_residual_kernel, coupling_velocity_kernel,
)
from liedyn.constraints.custom import (
    custom_bias_kernel, custom_derivatives_kernel, custom_force_derivative_kernel, custom_jacobian_kernel,
    custom_residual_kernel, custom_velocity_kernel, vary_custom_forces, vary_custom_rows,
)
from liedyn.jit import INTEGERS, MATRIX, VECTOR, late


@late(INTEGERS, VECTOR, VECTOR, VECTOR, VECTOR)
def other_residuals(ints, floats, q, work, g):
    contact_residual_kernel(ints, floats, work, g)
    coupling_residual_kernel(ints, floats, q, g)
    custom_residual_kernel(ints, floats, q, g)


@late(INTEGERS, VECTOR, VECTOR, VECTOR, MATRIX)
def other_jacobians(ints, floats, q, work, G):
    contact_jacobian_kernel(ints, floats, work, G)
    coupling_jacobian_kernel(ints, floats, G)
    custom_jacobian_kernel(ints, floats, q, G)


@late(INTEGERS, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def other_velocities(ints, floats, q, v, work, psi):
    """Fills G v - b."""
    contact_velocity_kernel(ints, floats, work, psi)
    coupling_velocity_kernel(ints, floats, v, psi)
    custom_velocity_kernel(ints, floats, q, v, psi)


@late(INTEGERS, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def other_biases(ints, floats, q, v, work, phi):
    contact_bias_kernel(ints, floats, work, phi)
    coupling_bias_kernel(ints, floats, phi)
    custom_bias_kernel(ints, floats, q, v, phi)


@late(INTEGERS, *[VECTOR] * 5, *[MATRIX] * 3)
def other_derivatives(ints, floats, q, v, a, work, psi_q, phi_q, phi_v):
    """Couplings are linear: they have none."""
    contact_derivatives_kernel(ints, floats, work, psi_q, phi_q, phi_v)
    custom_derivatives_kernel(ints, floats, q, v, a, psi_q, phi_q, phi_v)


@late(INTEGERS, *[VECTOR] * 4, MATRIX)
def other_force_derivatives(ints, floats, q, work, lam, D):
    contact_force_derivative_kernel(ints, floats, work, lam, D)
    custom_force_derivative_kernel(ints, floats, q, lam, D)


@late(INTEGERS, *[VECTOR] * 6, MATRIX, MATRIX, types.int64, types.int64, MATRIX)
def vary_other_rows(ints, floats, q, v, a, work, variations, N, X, part, b, out):
    """out[:, block b]: variations of velocities along N (part 2), of accelerations along N and X (part 3)."""
    vary_contact_rows(ints, floats, work, variations, part, b, out)
    vary_custom_rows(ints, floats, q, v, a, N, X, part, b, out)


@late(INTEGERS, *[VECTOR] * 4)
def push_others(ints, floats, work, lam, bodies):
    push_contacts(ints, floats, work, lam, bodies)


@late(INTEGERS, *[VECTOR] * 4)
def vary_other_wrenches(ints, floats, work, lam, variations):
    vary_contact_wrenches(ints, floats, work, lam, variations)


@late(INTEGERS, *[VECTOR] * 3, MATRIX, types.int64, MATRIX)
def vary_other_forces(ints, floats, q, lam, N, b, balance):
    vary_custom_forces(ints, floats, q, lam, N, b, balance)
