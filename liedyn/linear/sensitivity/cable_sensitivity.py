"""Lengths of cables varied in two directions to second order (`liedyn.linear.sensitivity.element_sensitivity`).

The gradients g_p and g_q of a piece's length by its two points p and q, seen from what is wrapped, are functions of
these points (`liedyn.mechanics.elements.cable_lengths`). Here they are computed of quadruples, and so vary to second
order as the points do. The length varies by them,

    L_1 = g . p_1        L_2 = g . p_2        L_12 = g . p_12 + g_2 . p_1

summed over both points; its rate is the sum of g . dp/dt.
"""
import math
import operator

from liedyn.lie.algebra import dot, scale, sub, unrotate
from liedyn.linear.sensitivity.contact_sensitivity import joined, quadruple_of
from liedyn.linear.sensitivity.link_sensitivity import displacement_of, motion_of, push
from liedyn.linear.sensitivity.second_order_sensitivity import (
    carried_back, minus, negative, out_of, place_moved_by, relative, seen_in, wrench_carried_back,
)
from liedyn.machine.compiled.jit import inline
from liedyn.mechanics.constraints.jets import (
    ZERO3, jet_add, jet_component, jet_cross, jet_dot, jet_inverse_root, jet_multiple, jet_scale, jet_sub, jet_unit,
    sum_of, times, with_constant,
)
from liedyn.mechanics.elements.cable_lengths import ends_of, round_cylinder, round_sphere, sense_of
from liedyn.model.force_elements import CYLINDER, RADIUS, SPHERE

multiple_of = with_constant(operator.mul)
"""A constant times a number."""


@inline
def varied_length(L, g_p, g_q, p, q):
    """A length as a quadruple, from its gradients by two points."""
    return (L, dot(g_p[0], p[1]) + dot(g_q[0], q[1]), dot(g_p[0], p[2]) + dot(g_q[0], q[2]),
            dot(g_p[0], p[3]) + dot(g_p[2], p[1]) + dot(g_q[0], q[3]) + dot(g_q[2], q[1]))


@inline
def less_square(s, R):
    """s - R^2."""
    return s[0] - R * R, s[1], s[2], s[3]


@inline
def tangent_of(R, a):
    """For a point outside a circle or sphere: the unit vector outward, and sine and cosine of the angle between it and
    the tangent point."""
    square = jet_dot(a, a)
    inverse, straight = jet_inverse_root(square), less_square(square, R)
    sin = times(times(straight, jet_inverse_root(straight)), inverse)
    return jet_scale(inverse, a), sin, multiple_of(R, inverse)


@inline
def flat(a):
    """A vector without its z component."""
    return ((a[0][0], a[0][1], 0.0), (a[1][0], a[1][1], 0.0), (a[2][0], a[2][1], 0.0 * a[2][2]),
            (a[3][0], a[3][1], 0.0 * a[3][2]))


@inline
def clockwise(a):
    """A vector in the plane of x and y, turned by -90 degrees."""
    return ((a[0][1], -a[0][0], 0.0), (a[1][1], -a[1][0], 0.0), (a[2][1], -a[2][0], 0.0 * a[2][2]),
            (a[3][1], -a[3][0], 0.0 * a[3][2]))


@inline
def upward(s):
    """A number along z."""
    return ((0.0, 0.0, s[0]), (0.0, 0.0, s[1]), (0.0 * s[2], 0.0 * s[2], s[2]), (0.0 * s[3], 0.0 * s[3], s[3]))


@inline
def of_cylinder(R, s, L_2, p, q):
    """Gradients of the length round a cylinder in the sense s, whose length in the plane is L_2."""
    (r_p, sin_p, cos_p), (r_q, sin_q, cos_q) = tangent_of(R, flat(p)), tangent_of(R, flat(q))
    e_p = jet_add(jet_scale(sin_p, r_p), jet_multiple(s, jet_scale(cos_p, clockwise(r_p))))
    e_q = jet_sub(jet_scale(sin_q, r_q), jet_multiple(s, jet_scale(cos_q, clockwise(r_q))))
    length, rise = varied_length(L_2, e_p, e_q, p, q), jet_component(jet_sub(q, p), 2)
    inverse = jet_inverse_root(sum_of(times(length, length), times(rise, rise)))
    part, up = times(length, inverse), upward(times(rise, inverse))
    return jet_sub(jet_scale(part, e_p), up), jet_add(jet_scale(part, e_q), up)


@inline
def of_sphere(R, s, p, q):
    """Gradients of the length round a sphere, the shorter way for s = 1, the longer one for s = -1."""
    (x_p, sin_p, cos_p), (x_q, sin_q, cos_q) = tangent_of(R, p), tangent_of(R, q)
    b = jet_unit(jet_cross(x_p, x_q))
    return (jet_sub(jet_scale(sin_p, x_p), jet_multiple(s, jet_scale(cos_p, jet_cross(b, x_p)))),
            jet_sub(jet_scale(sin_q, x_q), jet_multiple(s, jet_scale(cos_q, jet_cross(x_q, b)))))


@inline
def gradients(numbers, at, p, q):
    """Gradients of the length of the piece at numbers[at:], as quadruples."""
    R, away = numbers[at + RADIUS], jet_unit(jet_sub(q, p))
    found = jet_multiple(-1.0, away), away
    if numbers[at] == CYLINDER:
        s = sense_of(numbers, at, p[0], q[0])
        (L, g_p, _, _, _), off = round_cylinder(R, s, p[0], q[0], ZERO3, ZERO3)
        if not off:  # |g_p| = L_2 / L in the plane
            in_plane = dot((g_p[0], g_p[1], 0.0), (g_p[0], g_p[1], 0.0))
            found = of_cylinder(R, s, L * math.sqrt(in_plane), p, q)
    elif numbers[at] == SPHERE:
        (_, g_p, _, _, _), off = round_sphere(numbers, at, R, p[0], q[0], ZERO3, ZERO3)
        if not off:
            across = sub(q[0], scale(dot(p[0], q[0]) / dot(p[0], p[0]), p[0]))
            found = of_sphere(R, 1.0 if dot(g_p, across) < 0.0 else -1.0, p, q)
    return found


@inline
def end_of(passes, i, c, C, p):
    """Point p, seen from C on link c, of link i: its displacement from C, its position and its velocity."""
    L = relative(displacement_of(passes, c), displacement_of(passes, i))
    V, place = seen_in(C, minus(carried_back(motion_of(passes, i), L), motion_of(passes, c))), place_moved_by(C, L, p)
    return L, place, jet_add(quadruple_of(V, 1), jet_cross(quadruple_of(V, 0), place))


@inline
def piece_of(model, numbers, at, world, passes):
    """Links of the piece at numbers[at:], the frame C, and for each of both points displacement, position, velocity and
    gradient."""
    (a, b, c), P, Q, C = ends_of(model, numbers, world, at)
    L_p, p, p_dot = end_of(passes, a, c, C, unrotate(C[0], sub(P, C[1])))
    L_q, q, q_dot = end_of(passes, b, c, C, unrotate(C[0], sub(Q, C[1])))
    g_p, g_q = gradients(numbers, at, p, q)
    return (a, b, c), C, (L_p, p, p_dot, g_p), (L_q, q, q_dot, g_q)


@inline
def piece_length(piece):
    """Length of a piece, but for its value, and its rate, as quadruples."""
    (_, p, p_dot, g_p), (_, q, q_dot, g_q) = piece[2:]
    return varied_length(0.0, g_p, g_q, p, q), sum_of(jet_dot(g_p, p_dot), jet_dot(g_q, q_dot))


@inline
def pull_end(passes, i, c, C, f, end):
    """Applies the force f along the gradient at one end to its link, and the opposite one to what is wrapped."""
    L, p, _, g = end
    force = jet_scale(f, g)
    F = out_of(C, joined(jet_cross(p, force), force))
    push(passes, i, wrench_carried_back(F, L))
    push(passes, c, negative(F))


@inline
def pull_piece(passes, piece, f):
    """Applies the force f of a cable at both ends of a piece."""
    (a, b, c), C, at_p, at_q = piece
    pull_end(passes, a, c, C, f, at_p)
    pull_end(passes, b, c, C, f, at_q)
