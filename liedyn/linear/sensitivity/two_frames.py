"""The two frames that a constraint joins, varied to second order (first order:
`liedyn.mechanics.constraints.relative`).

With R the displacement of side b relative to side a, frame C of the rows is displaced by M relative to a, and b by L
relative to C: R is M followed by L. C follows b in some components, M^-1 dM = Pi (dR R^-1, seen in C), which gives

    M_1 = Pi R_1      M_2 = Pi R_2      M_12 = Pi (R_12 + ad(L_2, R_1))

The difference of the twists and accelerations of both sides, carried to C, is what the rows read.
"""
from collections import namedtuple

from liedyn.lie.algebra import ad, add6, sub6
from liedyn.linear.sensitivity.changes import A_AT, B_AT, of_loop
from liedyn.linear.sensitivity.link_sensitivity import displacement_of, motion_of, push, rate_of
from liedyn.linear.sensitivity.second_order_sensitivity import (
    bracket, carried, carried_back, combined, constant_in, minus, negative, plus, relative, seen_in, wrench_carried,
    wrench_carried_back,
)
from liedyn.machine.compiled.jit import MATRIX, group, inline
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, store
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.relative import followed
from liedyn.model.constraint_records import has_target, loop_at, loop_links
from liedyn.model.packed import LOOP_RATE, LOOP_TWIST
from liedyn.model.packed_records import get6, zero6

Rows = namedtuple("Rows", "g psi phi psi_mixed phi_mixed")
"""Variations of residuals, velocities and accelerations of the rows along direction 2, and the mixed ones, padded."""

ROWS = group(Rows, *[MATRIX] * 5)
"""Their type, for `liedyn.machine.compiled.jit.late`."""


@inline
def shift_on(model, passes, l, at):
    """Displacement of frame A or B of constraint l in its link, along the parameters."""
    return zero6(SCALAR), get6(LANES, passes.spread, of_loop(model, l, at)), zero6(LANES)


@inline
def side(model, work, passes, i, shift):
    """Displacement, twist and acceleration of a frame on link i."""
    return (combined(displacement_of(passes, i), shift), carried(motion_of(passes, i), shift),
            carried(rate_of(model, work, passes, i), shift))


@inline
def sides(model, work, passes, l):
    """`side` for both sides a and b; side a moves with its target."""
    a, b = loop_links(model, l)
    e, V, A = side(model, work, passes, a, shift_on(model, passes, l, A_AT))
    if has_target(model, l):
        frame = loop_frames(SCALAR, model, work, l)[0]
        W = constant_in(frame, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST)))
        W_dot = constant_in(frame, get6(SCALAR, model.floats, loop_at(model, l, LOOP_RATE)))
        A, V = plus(plus(A, W_dot), bracket(V, W)), plus(V, W)
    return (e, V, A), side(model, work, passes, b, shift_on(model, passes, l, B_AT))


@inline
def following(kind, virtual, C, R):
    """M and L, from the displacement R of b relative to a."""
    M_1, M_2 = followed(kind, virtual, C, R[0]), followed(kind, virtual, C, R[1])
    M = M_1, M_2, followed(kind, virtual, C, add6(R[2], ad(sub6(R[1], M_2), R[0])))
    return M, relative(M, R)


@inline
def followed_by(kind, virtual, C, x):
    return (followed(kind, virtual, C, x[0]), followed(kind, virtual, C, x[1]), followed(kind, virtual, C, x[2]),
            followed(kind, virtual, C, x[3]))


@inline
def relative_motion(kind, virtual, C, a, b):
    """M and L, and the components in C of the relative twist and of its rate."""
    M, L = following(kind, virtual, C, relative(a[0], b[0]))
    v_a, v_r = carried(a[1], M), minus(carried_back(b[1], L), carried(a[1], M))
    a_r = minus(carried_back(b[2], L), carried(a[2], M))
    v_C = plus(v_a, followed_by(kind, virtual, C, v_r))
    return M, L, seen_in(C, v_r), seen_in(C, minus(a_r, bracket(v_C, v_r)))


@inline
def push_sides(model, passes, l, M, L, F):
    """Adds a wrench that is seen from C to the links as G^T lambda does: on b, and the opposite one on a."""
    a, b = loop_links(model, l)
    push(passes, b, wrench_carried(wrench_carried_back(F, L), shift_on(model, passes, l, B_AT)))
    push(passes, a, wrench_carried(negative(wrench_carried(F, M)), shift_on(model, passes, l, A_AT)))


@inline
def put_row(rows, row, b, g, psi, phi):
    """Writes row `row`: the residual, and pairs of the parts that vary along direction 2."""
    k = rows.g.shape[1] // WIDTH * row + b
    store(LANES, rows.g, k, g)
    store(LANES, rows.psi, k, psi[0])
    store(LANES, rows.psi_mixed, k, psi[1])
    store(LANES, rows.phi, k, phi[0])
    store(LANES, rows.phi_mixed, k, phi[1])
