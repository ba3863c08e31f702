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
from liedyn.jit import MATRIX, VECTOR, late
from liedyn.tree.records import MODEL


@late(MODEL, VECTOR, VECTOR, VECTOR)
def other_residuals(model, q, work, g):
    contact_residual_kernel(model, work, g)
    coupling_residual_kernel(model, q, g)
    custom_residual_kernel(model, q, g)


@late(MODEL, VECTOR, VECTOR, MATRIX)
def other_jacobians(model, q, work, G):
    contact_jacobian_kernel(model, work, G)
    coupling_jacobian_kernel(model, G)
    custom_jacobian_kernel(model, q, G)


@late(MODEL, VECTOR, VECTOR, VECTOR, VECTOR)
def other_velocities(model, q, v, work, psi):
    """Fills G v - b."""
    contact_velocity_kernel(model, work, psi)
    coupling_velocity_kernel(model, v, psi)
    custom_velocity_kernel(model, q, v, psi)


@late(MODEL, VECTOR, VECTOR, VECTOR, VECTOR)
def other_biases(model, q, v, work, phi):
    contact_bias_kernel(model, work, phi)
    coupling_bias_kernel(model, phi)
    custom_bias_kernel(model, q, v, phi)


@late(MODEL, *[VECTOR] * 4, *[MATRIX] * 3)
def other_derivatives(model, q, v, a, work, psi_q, phi_q, phi_v):
    """Couplings are linear: they have none."""
    contact_derivatives_kernel(model, work, psi_q, phi_q, phi_v)
    custom_derivatives_kernel(model, q, v, a, psi_q, phi_q, phi_v)


@late(MODEL, *[VECTOR] * 3, MATRIX)
def other_force_derivatives(model, q, work, lam, D):
    contact_force_derivative_kernel(model, work, lam, D)
    custom_force_derivative_kernel(model, q, lam, D)


@late(MODEL, *[VECTOR] * 5, MATRIX, MATRIX, types.int64, types.int64, MATRIX)
def vary_other_rows(model, q, v, a, work, variations, N, X, part, b, out):
    """out[:, block b]: variations of velocities along N (part 2), of accelerations along N and X (part 3)."""
    vary_contact_rows(model, work, variations, part, b, out)
    vary_custom_rows(model, q, v, a, N, X, part, b, out)


@late(MODEL, *[VECTOR] * 3)
def push_others(model, work, lam, bodies):
    push_contacts(model, work, lam, bodies)


@late(MODEL, *[VECTOR] * 3)
def vary_other_wrenches(model, work, lam, variations):
    vary_contact_wrenches(model, work, lam, variations)


@late(MODEL, *[VECTOR] * 2, MATRIX, types.int64, MATRIX)
def vary_other_forces(model, q, lam, N, b, balance):
    vary_custom_forces(model, q, lam, N, b, balance)
