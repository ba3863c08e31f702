"""Gears, racks and other linear couplings of coordinates: sum of c_j q_j = offset + x(t), the simplest of all rows.

With one coordinate and a target x(t) it drives that coordinate.
"""
from liedyn.constraints.records import COUPLING, family_of, is_active, loop_at, loop_count, loop_integer, loop_rows
from liedyn.jit import inline, kernel_in_place
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH, LOOP_MOTION, LOOP_RATE, LOOP_TWIST
from liedyn.tree.records import dof_count, dof_total, first_dof, first_q, link_count


@inline
def couples(model, l):
    return family_of(model, l) == COUPLING and is_active(model, l)


@kernel_in_place
def coupling_residual_kernel(model, q, g):
    """Fills sum c_j q_j - offset - x(t); only coordinates with one degree of freedom are coupled."""
    for l in range(loop_count(model)):
        if couples(model, l):
            at = loop_integer(model, l, LOOP_COEFFICIENTS)
            total = -model.floats[loop_at(model, l, LOOP_LENGTH)] - model.floats[loop_at(model, l, LOOP_MOTION)]
            for i in range(link_count(model)):
                if dof_count(model, i) == 1:
                    total += model.floats[at + first_dof(model, i)] * q[first_q(model, i)]
            g[loop_rows(model, l)[0]] = total


@kernel_in_place
def coupling_jacobian_kernel(model, G):
    """Fills the constant rows c."""
    for l in range(loop_count(model)):
        if couples(model, l):
            at, row = loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l)[0]
            for j in range(dof_total(model)):
                G[row, j] = model.floats[at + j]


@kernel_in_place
def coupling_velocity_kernel(model, v, psi):
    """Fills c . v - xd(t)."""
    for l in range(loop_count(model)):
        if couples(model, l):
            at, total = loop_integer(model, l, LOOP_COEFFICIENTS), -model.floats[loop_at(model, l, LOOP_TWIST)]
            for j in range(dof_total(model)):
                total += model.floats[at + j] * v[j]
            psi[loop_rows(model, l)[0]] = total


@kernel_in_place
def coupling_bias_kernel(model, phi):
    """Fills -xdd(t)."""
    for l in range(loop_count(model)):
        if couples(model, l):
            phi[loop_rows(model, l)[0]] = -model.floats[loop_at(model, l, LOOP_RATE)]
