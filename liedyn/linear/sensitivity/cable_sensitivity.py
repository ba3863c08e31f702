"""Lengths of cables varied in two directions to second order (`liedyn.linear.sensitivity.element_sensitivity`).

The gradients g_p and g_q of a piece's length by its two points p and q, seen from what is wrapped, are functions of
these points (`liedyn.mechanics.constraints.cable_lengths`). Here they are computed of quadruples, and so vary to second
order as the points do. The length varies by them,

    L_1 = g . p_1        L_2 = g . p_2        L_12 = g . p_12 + g_2 . p_1

summed over both points; its rate is the sum of g . dp/dt.
"""
from liedyn.lie.algebra import rotate, sub
from liedyn.linear.sensitivity.contact_sensitivity import joined, quadruple_of
from liedyn.linear.sensitivity.link_sensitivity import displacement_of, motion_of, push
from liedyn.linear.sensitivity.second_order_sensitivity import (
    carried_back, minus, negative, out_of, place_moved_by, relative, seen_in, wrench_carried_back,
)
from liedyn.machine.compiled.jit import inline
from liedyn.mechanics.constraints.cable_lengths import followed_up, gradients
from liedyn.mechanics.constraints.families.cable import piece
from liedyn.mechanics.constraints.jets import jet_add, jet_cross, jet_dot, jet_scale, sum_of


@inline
def end_of(passes, i, c, C, p):
    """Point p, seen from C on link c, of link i: its displacement from C, its position and its velocity."""
    L = relative(displacement_of(passes, c), displacement_of(passes, i))
    V, place = seen_in(C, minus(carried_back(motion_of(passes, i), L), motion_of(passes, c))), place_moved_by(C, L, p)
    return L, place, jet_add(quadruple_of(V, 1), jet_cross(quadruple_of(V, 0), place))


@inline
def piece_of(model, at, world, passes):
    """Links of the piece at index `at` of floats, the frame C, and for each of both points displacement, position,
    velocity and gradient."""
    (a, b, c), ((R, P), _), (p, q) = piece(model, world, at)
    C = R, sub(P, rotate(R, p))
    L_p, p, p_dot = end_of(passes, a, c, C, p)
    L_q, q, q_dot = end_of(passes, b, c, C, q)
    g_p, g_q = gradients(model.floats, at, p, q)
    return (a, b, c), C, (L_p, p, p_dot, g_p), (L_q, q, q_dot, g_q)


@inline
def piece_changes(varied):
    """Length of a piece, but for its value, and its rate, as quadruples."""
    (_, p, p_dot, g_p), (_, q, q_dot, g_q) = varied[2:]
    return followed_up(0.0, g_p, g_q, p, q), sum_of(jet_dot(g_p, p_dot), jet_dot(g_q, q_dot))


@inline
def pull_end(passes, i, c, C, f, end):
    """Applies the force f along the gradient at one end to its link, and the opposite one to what is wrapped."""
    L, p, _, g = end
    force = jet_scale(f, g)
    F = out_of(C, joined(jet_cross(p, force), force))
    push(passes, i, wrench_carried_back(F, L))
    push(passes, c, negative(F))


@inline
def pull_piece(passes, varied, f):
    """Applies the force f of a cable at both ends of a piece."""
    (a, b, c), C, at_p, at_q = varied
    pull_end(passes, a, c, C, f, at_p)
    pull_end(passes, b, c, C, f, at_q)
