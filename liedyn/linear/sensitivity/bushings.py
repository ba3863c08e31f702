"""Bushings, and wrenches that are given, varied in two directions to second order
(`liedyn.mechanics.elements.element_wrenches`).

Along displacements eta = (theta, rho) of B in A, with eta_12 what direction 2 changes of the first, seen from A,

    p_1 = rho_1 + theta_1 x p        p_12 = rho_12 + theta_12 x p + theta_1 x p_2

and likewise what turns with B, by theta alone. All else is the element's force with quadruples in place of numbers.
"""
from numba import types

from liedyn.lie.algebra import Ad_inverse, ad, add, add6, compose, cross, neg
from liedyn.lie.exponential import inverse, log
from liedyn.linear.sensitivity.contact_sensitivity import quadruple_of
from liedyn.linear.sensitivity.law_sensitivity import SLOPES
from liedyn.linear.sensitivity.rotations import ZERO3, added, crossed, inverse_jacobian_times, rotation_vector
from liedyn.linear.sensitivity.row_sensitivity import PASSES
from liedyn.linear.sensitivity.second_order_sensitivity import out_of
from liedyn.linear.sensitivity.two_frames import push_sides, relative_motion, sides
from liedyn.machine.compiled.jit import VECTOR, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR
from liedyn.mechanics.constraints.constraint_frames import loop_frames
from liedyn.mechanics.elements.element_wrenches import DAMPING_AT, PRELOAD_AT, times
from liedyn.model.constraint_records import loop_kind, loop_rows
from liedyn.model.force_elements import BUSHING, FOLLOWER, LAW, NUMBERS, ROW
from liedyn.model.packed_records import MODEL, get6, zero3


@inline
def moved_with(x, w_1, w_2, w_12):
    """A vector that turns by these angular displacements."""
    x_2 = cross(w_2, x)
    return x, cross(w_1, x), x_2, add(cross(w_12, x), cross(w_1, x_2))


@inline
def product(c, at, x, y):
    """A matrix (6, 6) of numbers times quadruples of angular and of linear parts."""
    a, b = times(c, at, (x[0], y[0])), times(c, at, (x[1], y[1]))
    e, f = times(c, at, (x[2], y[2])), times(c, at, (x[3], y[3]))
    return (a[0], b[0], e[0], f[0]), (a[1], b[1], e[1], f[1])


@inline
def bushing(c, at, phi, p, V):
    """Moment and force at B, in A."""
    w = quadruple_of(V, 0)
    held_moment, held = product(c, at, phi, p)
    moment, force = product(c, at + DAMPING_AT, w, added(quadruple_of(V, 1), crossed(w, p)))
    m, F = get6(SCALAR, c, at + PRELOAD_AT)
    held_moment, held = (add(held_moment[0], m), *held_moment[1:]), (add(held[0], F), *held[1:])
    return added(inverse_jacobian_times(phi, 0.5, held_moment), moment), added(held, force)


@late(MODEL, SLOPES, types.int64, VECTOR, PASSES)
def vary_bushing(model, slopes, l, work, passes):
    """Let the element of six rows that the cut joint l measures push its links; needs `vary_links`."""
    (A, B), r, e = loop_frames(SCALAR, model, work, l), loop_rows(model, l)[0], 0
    while slopes.records[e, ROW] != r:
        e += 1
    at = slopes.records[e, NUMBERS]
    side_a, side_b = sides(model, work, passes, l)
    M, L, V, _ = relative_motion(loop_kind(model, l), False, A, side_a, side_b)  # M is zero: A stays where it is
    (w_1, v_1), (w_2, v_2) = Ad_inverse(A, L[0]), Ad_inverse(A, L[1])
    w_12, v_12 = Ad_inverse(A, add6(L[2], ad(L[1], L[0])))
    R, p = compose(inverse(A), B)
    turned = moved_with(p, w_1, w_2, w_12)
    p = p, add(v_1, turned[1]), add(v_2, turned[2]), add(add(v_12, turned[3]), cross(w_1, v_2))
    if slopes.records[e, LAW] == BUSHING:
        moment, force = bushing(
            slopes.numbers, at, rotation_vector(log((R, ZERO3))[0], -0.5, w_1, w_2, w_12), p, V)
    else:
        s, still = slopes.rows, zero3(LANES)
        m, F = neg((s[r, 0], s[r + 1, 0], s[r + 2, 0])), neg((s[r + 3, 0], s[r + 4, 0], s[r + 5, 0]))
        if slopes.records[e, LAW] == FOLLOWER:
            moment, force = moved_with(m, w_1, w_2, w_12), moved_with(F, w_1, w_2, w_12)
        else:
            moment, force = (m, ZERO3, still, still), (F, ZERO3, still, still)
    moment = added(moment, crossed(p, force))
    push_sides(model, passes, l, M, L, out_of(A, (
        (moment[0], force[0]), (moment[1], force[1]), (moment[2], force[2]), (moment[3], force[3]))))
