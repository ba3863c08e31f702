"""Gears, racks and other linear couplings of coordinates: sum of c_j q_j = offset + x(t).

With one coordinate and a target x(t), that coordinate is driven. All derivatives are zero. Dry friction has such a row
for the rate of the sum only, its second one; the first is empty.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.model.constraint_records import loop_at, loop_integer, loop_kind, present_rows
from liedyn.model.kinds import DRY_FRICTION
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH, LOOP_MOTION, LOOP_RATE, LOOP_TWIST
from liedyn.model.packed_records import dof_count, dof_total, first_dof, first_q, link_count


@inline
def row_of(model, l):
    """The row of the sum; -1 for dry friction that slides, whose row is no equation."""
    first, count = present_rows(model, l)
    return first if loop_kind(model, l) != DRY_FRICTION else first + 1 if count > 1 else -1


@inline
def residual(model, l, q, work, g):
    """sum c_j q_j - offset - x(t); only coordinates with one degree of freedom are coupled."""
    if loop_kind(model, l) == DRY_FRICTION:
        return
    at = loop_integer(model, l, LOOP_COEFFICIENTS)
    total = -model.floats[loop_at(model, l, LOOP_LENGTH)] - model.floats[loop_at(model, l, LOOP_MOTION)]
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            total += model.floats[at + first_dof(model, i)] * q[first_q(model, i)]
    g[present_rows(model, l)[0]] = total


@inline
def jacobian(model, l, q, work, G):
    """The constant row c."""
    at, row = loop_integer(model, l, LOOP_COEFFICIENTS), row_of(model, l)
    if row >= 0:
        for j in range(dof_total(model)):
            G[row, j] = model.floats[at + j]


@inline
def rate(model, l, v):
    """c . v."""
    at, total = loop_integer(model, l, LOOP_COEFFICIENTS), 0.0
    for j in range(dof_total(model)):
        total += model.floats[at + j] * v[j]
    return total


@inline
def velocity(model, l, q, v, work, psi):
    """c . v - xd(t)."""
    row = row_of(model, l)
    if row >= 0:
        psi[row] = rate(model, l, v) - model.floats[loop_at(model, l, LOOP_TWIST)]


@inline
def bias(model, l, q, v, work, phi):
    """-xdd(t)."""
    row = row_of(model, l)
    if row >= 0:
        phi[row] = -model.floats[loop_at(model, l, LOOP_RATE)]
