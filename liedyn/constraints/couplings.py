"""Gears, racks and other linear couplings of coordinates: sum of c_j q_j = offset + x(t), the simplest of all rows.

With one coordinate and a target x(t) it drives that coordinate.
"""
from liedyn.constraints.records import COUPLING, is_active, loop_at, loop_count, loop_integer, loop_kind, loop_rows
from liedyn.jit import inline, kernel_in_place
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH, LOOP_MOTION, LOOP_RATE, LOOP_TWIST
from liedyn.tree.records import dof_count, dof_total, first_dof, first_q, link_count


@inline
def couples(ints, l):
    return loop_kind(ints, l) == COUPLING and is_active(ints, l)


@kernel_in_place
def coupling_residual_kernel(ints, floats, q, g):
    """Fills sum c_j q_j - offset - x(t); only coordinates with one degree of freedom are coupled."""
    for l in range(loop_count(ints)):
        if couples(ints, l):
            at = loop_integer(ints, l, LOOP_COEFFICIENTS)
            total = -floats[loop_at(ints, l, LOOP_LENGTH)] - floats[loop_at(ints, l, LOOP_MOTION)]
            for i in range(link_count(ints)):
                if dof_count(ints, i) == 1:
                    total += floats[at + first_dof(ints, i)] * q[first_q(ints, i)]
            g[loop_rows(ints, l)[0]] = total


@kernel_in_place
def coupling_jacobian_kernel(ints, floats, G):
    """Fills the constant rows c."""
    for l in range(loop_count(ints)):
        if couples(ints, l):
            at, row = loop_integer(ints, l, LOOP_COEFFICIENTS), loop_rows(ints, l)[0]
            for j in range(dof_total(ints)):
                G[row, j] = floats[at + j]


@kernel_in_place
def coupling_velocity_kernel(ints, floats, v, psi):
    """Fills c . v - xd(t)."""
    for l in range(loop_count(ints)):
        if couples(ints, l):
            at, total = loop_integer(ints, l, LOOP_COEFFICIENTS), -floats[loop_at(ints, l, LOOP_TWIST)]
            for j in range(dof_total(ints)):
                total += floats[at + j] * v[j]
            psi[loop_rows(ints, l)[0]] = total


@kernel_in_place
def coupling_bias_kernel(ints, floats, phi):
    """Fills -xdd(t)."""
    for l in range(loop_count(ints)):
        if couples(ints, l):
            phi[loop_rows(ints, l)[0]] = -floats[loop_at(ints, l, LOOP_RATE)]
