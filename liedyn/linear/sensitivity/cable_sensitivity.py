"""Lengths of cables varied in two directions to second order (`liedyn.linear.sensitivity.element_sensitivity`).

The gradients g_p and g_q of a piece's length by its two points p and q, seen from what is wrapped, are functions of
these points (`liedyn.mechanics.constraints.cable_lengths`). Here they are computed of quadruples, and so vary to second
order as the points do. The length varies by them,

    L_1 = g . p_1        L_2 = g . p_2        L_12 = g . p_12 + g_2 . p_1

summed over both points; its rate is the sum of g . dp/dt. That of a cable that does not stretch is the row of a
constraint: on jets in time too it has the acceleration, and the tension is its multiplier.
"""
from numba import types

from liedyn.lie.algebra import rotate, sub
from liedyn.linear.sensitivity import parameter_jets as jets
from liedyn.linear.sensitivity.changes import LENGTH_AT, number_change, of_loop
from liedyn.linear.sensitivity.contact_sensitivity import force_of, joined, place_variations, quadruple_of
from liedyn.linear.sensitivity.link_sensitivity import PASSES, displacement_of, motion_of, push, rate_of
from liedyn.linear.sensitivity.parameter_jets import paired
from liedyn.linear.sensitivity.second_order_sensitivity import (
    carried_back, minus, negative, out_of, place_moved_by, relative, seen_in, wrench_carried_back,
)
from liedyn.linear.sensitivity.two_frames import ROWS, put_row, relative_motion
from liedyn.machine.compiled.jit import VECTOR, inline, late
from liedyn.mechanics.constraints.cable_lengths import gradients, gradients_on
from liedyn.mechanics.constraints.families.cable import piece, piece_at, piece_count
from liedyn.mechanics.constraints.jets import followed_up, jet_add, jet_cross, jet_dot, jet_scale, sum_of
from liedyn.model.constraint_records import loop_rows
from liedyn.model.kinds import CABLE
from liedyn.model.packed_records import MODEL

gradients_to_third_order = gradients_on(jets)


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


@inline
def state_of(model, world, passes, i):
    """Displacement, twist and acceleration of link i."""
    return displacement_of(passes, i), motion_of(passes, i), rate_of(model, world, passes, i)


@inline
def moving_end(model, world, passes, i, c, F, p):
    """Point p of link i, seen from link c, and its velocity, on jets in time and in both directions."""
    M, _, x, x_dot = relative_motion(
        CABLE, False, F, state_of(model, world, passes, c), state_of(model, world, passes, i))
    speed = quadruple_of(x, 1)
    return paired(*place_variations(p, F, M), *speed), paired(*speed, *quadruple_of(x_dot, 1))


@late(MODEL, types.int64, VECTOR, types.UniTuple(VECTOR, 3), types.int64, PASSES, ROWS)
def vary_cable_row(model, l, world, multipliers, b, passes, rows):
    """The row of a cable that does not stretch, and its wrenches on the links, for multipliers and their variations
    along directions 1 and 2."""
    r = loop_rows(model, l)[0]
    tension, longer = force_of(*multipliers, r, 1, 0), number_change(passes.spread, of_loop(model, l, LENGTH_AT))
    moved, zero = -longer, 0.0 * longer
    row = (0.0, 0.0, zero, zero), (0.0, 0.0, zero, zero)
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (i, j, c), (P, Q), (p, q) = piece(model, world, at)
        p, x = moving_end(model, world, passes, i, c, P, p)
        q, y = moving_end(model, world, passes, j, c, Q, q)
        e_p, e_q = gradients_to_third_order(model.floats, at, p, q)
        row = jets.sum_of(row, jets.sum_of(jets.jet_dot(e_p, x), jets.jet_dot(e_q, y)))
        moved = moved + followed_up(0.0, e_p[0], e_q[0], p[0], q[0])[2]
        pull_piece(passes, piece_of(model, at, world, passes), tension)
    (_, _, psi, phi), (_, _, psi_mixed, phi_mixed) = row
    put_row(rows, r, b, moved, (psi, psi_mixed), (phi, phi_mixed))
