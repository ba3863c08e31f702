"""Gears, racks and other linear couplings of coordinates: sum of c_j q_j = offset + x(t).

With one coordinate and a target x(t), that coordinate is driven. All derivatives are zero.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.model.constraint_records import loop_at, loop_integer, loop_rows
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH, LOOP_MOTION, LOOP_RATE, LOOP_TWIST
from liedyn.model.packed_records import dof_count, dof_total, first_dof, first_q, link_count


@inline
def residual(model, l, q, work, g):
    """sum c_j q_j - offset - x(t); only coordinates with one degree of freedom are coupled."""
    at = loop_integer(model, l, LOOP_COEFFICIENTS)
    total = -model.floats[loop_at(model, l, LOOP_LENGTH)] - model.floats[loop_at(model, l, LOOP_MOTION)]
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            total += model.floats[at + first_dof(model, i)] * q[first_q(model, i)]
    g[loop_rows(model, l)[0]] = total


@inline
def jacobian(model, l, q, work, G):
    """The constant row c."""
    at, row = loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l)[0]
    for j in range(dof_total(model)):
        G[row, j] = model.floats[at + j]


@inline
def velocity(model, l, q, v, work, psi):
    """c . v - xd(t)."""
    at, total = loop_integer(model, l, LOOP_COEFFICIENTS), -model.floats[loop_at(model, l, LOOP_TWIST)]
    for j in range(dof_total(model)):
        total += model.floats[at + j] * v[j]
    psi[loop_rows(model, l)[0]] = total


@inline
def bias(model, l, q, v, work, phi):
    """-xdd(t)."""
    phi[loop_rows(model, l)[0]] = -model.floats[loop_at(model, l, LOOP_RATE)]
