"""Rows of the constraints and their wrenches, varied in two directions to second order.

One set of kernels for all kinds, as `liedyn.mechanics.constraints.constraint_rows` has to first order; those of
contacts are compiled for the first robot with contacts, those of cables
for the first one with a taut cable. Custom rows have first derivatives only
(`liedyn.linear.sensitivity.sensitivity_columns`).
"""
from numba import types

from liedyn.lie.algebra import Ad_inverse, add6, compose
from liedyn.lie.exponential import inverse
from liedyn.linear.sensitivity.cable_sensitivity import vary_cable_row
from liedyn.linear.sensitivity.changes import LENGTH_AT, number_change, of_loop
from liedyn.linear.sensitivity.contact_sensitivity import vary_contact
from liedyn.linear.sensitivity.link_sensitivity import PASSES, Along, Columns
from liedyn.linear.sensitivity.second_order_sensitivity import out_of
from liedyn.linear.sensitivity.two_frames import ROWS, push_sides, put_row, relative_motion, sides
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.cut_joints import residual_rate
from liedyn.mechanics.constraints.families.cut import cut_wrench, read, rows_in
from liedyn.model.constraint_records import (
    CONTACT, CUSTOM, family_of, is_active, is_cut, loop_count, loop_integer, loop_kind, loop_pitch, loop_rows,
    loop_virtuals,
)
from liedyn.model.kinds import CABLE
from liedyn.model.packed import LOOP_COEFFICIENTS
from liedyn.model.packed_records import MODEL, dof_total, zero6

ALONG = group(Along, group(Columns, *[VECTOR] * 4), group(Columns, *[MATRIX] * 4), MATRIX, MATRIX)
"""Its type, for `liedyn.machine.compiled.jit.late`."""


@inline
def put_multipliers(two, b, lam_2):
    """lam_2 = block b of the multipliers' variations, one after the other."""
    for r in range(two.L.shape[0]):
        store(LANES, lam_2, r, load(LANES, two.L, two.L.shape[1] // WIDTH * r + b))


@inline
def put_parts(model, l, virtual, b, moved, x, x_dot, rows):
    """Rows of cut joint l, from the displacement, the relative twist and its rate in C."""
    kind, pitch = loop_kind(model, l), loop_pitch(model, l)
    first, count = loop_virtuals(model, l) if virtual else loop_rows(model, l)
    for r in range(count):
        put_row(rows, first + r, b, read(kind, pitch, virtual, r, moved),
                (read(kind, pitch, virtual, r, x[2]), read(kind, pitch, virtual, r, x[3])),
                (read(kind, pitch, virtual, r, x_dot[2]), read(kind, pitch, virtual, r, x_dot[3])))


@inline
def vary_cut(model, l, work, multipliers, b, passes, rows):
    """Rows of cut joint l, and its wrench on the links."""
    kind, C, first, count = rows_in(SCALAR, model, work, l, False)
    pitch, (A, B), (lam, lam_1, lam_2) = loop_pitch(model, l), loop_frames(SCALAR, model, work, l), multipliers
    side_a, side_b = sides(model, work, passes, l)
    M, L, x, x_dot = relative_motion(kind, False, C, side_a, side_b)
    moved = residual_rate(kind, pitch, compose(inverse(A), B), Ad_inverse(A, add6(M[1], L[1])))
    put_parts(model, l, False, b, moved, x, x_dot, rows)
    F = (cut_wrench(SCALAR, kind, pitch, False, first, count, lam),
         cut_wrench(SCALAR, kind, pitch, False, first, count, lam_1),
         cut_wrench(LANES, kind, pitch, False, first, count, lam_2), zero6(LANES))
    push_sides(model, passes, l, M, L, out_of(C, F))


@kernel_in_place
def vary_cuts(model, work, multipliers, b, passes, rows):
    """Rows and wrenches of all active cut joints."""
    for l in range(loop_count(model)):
        if is_cut(model, l) and is_active(model, l):
            vary_cut(model, l, work, multipliers, b, passes, rows)


@kernel_in_place
def vary_readers(model, work, b, passes, readers):
    """The virtual velocities of cut joints, as `vary_cut` treats their rows; the residuals are their coordinates."""
    for l in range(loop_count(model)):
        if is_cut(model, l):
            kind, C, _, _ = rows_in(SCALAR, model, work, l, True)
            side_a, side_b = sides(model, work, passes, l)
            M, L, x, x_dot = relative_motion(kind, True, C, side_a, side_b)
            put_parts(model, l, True, b, Ad_inverse(C, add6(M[1], L[1])), x, x_dot, readers)


@inline
def vary_coupling(model, l, lam_2, along, b, spread, rows, force):
    """The row c . v of a coupling, and its forces c lambda."""
    (_, two, _, X_12), at, row = along, loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l)[0]
    width = X_12.shape[1] // WIDTH
    zero = splat(LANES, 0.0)
    g, psi, mixed, phi = -number_change(spread, of_loop(model, l, LENGTH_AT)), zero, zero, zero
    for j in range(dof_total(model)):
        c, k = model.floats[at + j], width * j + b
        g = g + c * load(LANES, two.N, k)
        psi, mixed = psi + c * load(LANES, two.X, k), mixed + c * load(LANES, X_12, k)
        phi = phi + c * load(LANES, two.A, k)
        store(LANES, force, k, load(LANES, force, k) + c * load(LANES, lam_2, row))
    put_row(rows, row, b, g, (psi, mixed), (phi, zero))


@late(MODEL, VECTOR, types.UniTuple(VECTOR, 3), ALONG, types.int64, PASSES, ROWS, MATRIX)
def vary_others(model, work, multipliers, along, b, passes, rows, force):
    """Rows of contacts and their wrenches on the links; rows of couplings and their forces."""
    for l in range(loop_count(model)):
        if is_cut(model, l) or not is_active(model, l):
            continue
        if family_of(model, l) == CONTACT:
            vary_contact(model, l, work, multipliers, b, passes, rows)
        elif loop_kind(model, l) == CABLE:
            vary_cable_row(model, l, work, multipliers, b, passes, rows)
        elif family_of(model, l) != CUSTOM:
            vary_coupling(model, l, multipliers[2], along, b, passes.spread, rows, force)
