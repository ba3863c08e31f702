"""What taut cables add to the gradient of `liedyn.linear.second.adjoint_recursion`, with its variations.

The row of a cable is the sum over its pieces of e . pdot at both ends, with e the gradient of the piece's length L by
the ends p as seen from what it goes round (`liedyn.mechanics.constraints.families.cable`). With x = pdot, w the
velocities of the ends for the multipliers, and a dot for the rate along the motion, weights (phi, psi, g, lambda) of
acceleration, velocity, residual and multiplier make a number with the derivatives by these

    by xdot: phi e      by x: psi e + 2 phi edot      by w: lambda e
    by p: g e + psi edot + phi eddot + lambda L_pp w

because L_pp is symmetric: e varies along x as the row does by p. They are forces at the ends in the axes of what the
cable goes round, and vary as e does on jets of one order more. From there on each end is a cut joint whose wrenches
vary (`liedyn.linear.second.adjoint_cuts`). Each function is compiled for the first robot with a taut cable.
"""
from numba import types

from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, add, add6, dot, scale, sub6
from liedyn.linear.second.adjoint_cuts import WEIGHED, carry_down
from liedyn.linear.second.adjoint_recursion import weighed_twist
from liedyn.linear.second.adjoint_sides import adjoints_of_sides, push_between, rate, still, value
from liedyn.linear.sensitivity.cable_sensitivity import gradients_to_third_order
from liedyn.linear.sensitivity.parameter_jets import paired
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.mechanics.constraints.cable_lengths import gradients
from liedyn.mechanics.constraints.families.cable import motion_of, piece, piece_at, piece_count, sides
from liedyn.mechanics.constraints.jets import ZERO3, constant
from liedyn.mechanics.constraints.relative import ZERO6, followed, relative_variation
from liedyn.mechanics.tree.tangent_recursion import ADDED, DA, DV, ETA, variation_of
from liedyn.model.constraint_records import is_active, loop_kind, loop_rows
from liedyn.model.kinds import CABLE
from liedyn.model.packed_records import MODEL


@inline
def is_cable(model, l):
    return is_active(model, l) and loop_kind(model, l) == CABLE


@inline
def weights_of(weighed, r):
    """Weights of the acceleration, the velocity and the residual of row r."""
    rows = weighed.rows
    return load(SCALAR, rows.phi, r), load(SCALAR, rows.psi, r), load(SCALAR, rows.residual, r)


@inline
def along_motion(end):
    """The end of a piece on jets, for its pairs (p, x, xdot, w): in time, and once more along the same motion."""
    (p, p_2), (x, x_2), (x_dot, x_dot_2), _ = end
    return paired(p, x, p_2, x_2, x, x_dot, x_2, x_dot_2)


@inline
def along_weights(end):
    """The end of a piece on jets, along the velocity w in the place of time."""
    (p, p_2), _, _, (w, w_2) = end
    return p, w, p_2, w_2


@inline
def pair_sum(x, y):
    return add(x[0], y[0]), add(x[1], y[1])


@inline
def pair_scale(c, x):
    return scale(c, x[0]), scale(c, x[1])


@inline
def weighted(c, x):
    """A pair of numbers times a pair of vectors."""
    return scale(c[0], x[0]), add(scale(c[0], x[1]), scale(c[1], x[0]))


@inline
def forces_at(weights, multiplier, e, e_w):
    """The forces K, J, L and H at one end, pairs, for its gradient along the motion and along w."""
    (of_phi, of_psi, of_g), (lam, lam_2), ((e, e_t, e_2, e_t2), (_, e_tt, _, e_tt2)) = weights, multiplier, e
    here, rate, second = (e, e_2), (e_t, e_t2), (e_tt, e_tt2)
    J = pair_sum(pair_scale(of_psi, here), pair_scale(2.0 * of_phi, rate))
    H = pair_sum(pair_sum(pair_scale(of_g, here), pair_scale(of_psi, rate)), pair_scale(of_phi, second))
    H = pair_sum(H, weighted((lam, lam_2), (e_w[1], e_w[3])))
    return pair_scale(of_phi, here), J, weighted((lam, lam_2), here), H


@inline
def wrench_at(F, f):
    """A pair of forces at the origin of F, in its axes, as wrenches in the world."""
    return (Ad_dual_inverse(F, (scale(0.0, f[0]), f[0])), Ad_dual_inverse(F, (scale(0.0, f[1]), f[1])))


@inline
def adjoints_at(F, forces, moved, states):
    """`adjoints_of_sides` of one end; `states` are pairs of the twists, accelerations and w-twists of both sides."""
    K, J, L, H = forces
    return adjoints_of_sides((CABLE, False, F), (wrench_at(F, K), wrench_at(F, J), wrench_at(F, L), wrench_at(F, H)),
                             moved, states[0], states[1])


@inline
def end_state(model, world, weighed, i, c, F, p):
    """The pairs (p, x, xdot, w) of one end, on link i as seen from link c, and the states of both, with nothing
    varied."""
    v, a = sides(model, world, i, c)
    w = weighed_twist(SCALAR, weighed.adjoints, c), weighed_twist(SCALAR, weighed.adjoints, i)
    x, x_dot = motion_of((v, a), F)
    w_r = Ad_inverse(F, sub6(w[1], w[0]))[1]
    return (((p, ZERO3), (x, ZERO3), (x_dot, ZERO3), (w_r, ZERO3)),
            ((still(v[0]), still(a[0]), still(w[0])), (still(v[1]), still(a[1]), still(w[1]))))


@late(MODEL, types.int64, VECTOR, VECTOR, WEIGHED)
def add_cable(model, l, world, lam, weighed):
    """Add the wrenches of the row of cable l to those of the links."""
    r, moved = loop_rows(model, l)[0], (ZERO6, ZERO6)
    weights, multiplier = weights_of(weighed, r), (load(SCALAR, lam, r), 0.0)
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, world, at)
        end_p, states_p = end_state(model, world, weighed, a, c, P, p)
        end_q, states_q = end_state(model, world, weighed, b, c, Q, q)
        e_p, e_q = gradients_to_third_order(model.floats, at, along_motion(end_p), along_motion(end_q))
        w_p, w_q = gradients(model.floats, at, along_weights(end_p), along_weights(end_q))
        found = adjoints_at(P, forces_at(weights, multiplier, e_p, w_p), moved, states_p)
        push_between(SCALAR, value, (c, a), moved, found, weighed.adjoints)
        found = adjoints_at(Q, forces_at(weights, multiplier, e_q, w_q), moved, states_q)
        push_between(SCALAR, value, (c, b), moved, found, weighed.adjoints)


@inline
def varied_twist(weighed, i):
    return weighed_twist(LANES, weighed.rates, i)


@inline
def varied_acceleration(variations, i):
    return add6(variation_of(variations, i, DA), variation_of(variations, i, ADDED))


@inline
def varied_end(model, world, weighed, variations, i, c, F, p):
    """As `end_state`, with variations, and how the frame and the end are displaced."""
    v, a = sides(model, world, i, c)
    w = weighed_twist(SCALAR, weighed.adjoints, c), weighed_twist(SCALAR, weighed.adjoints, i)
    eta = variation_of(variations, c, ETA), variation_of(variations, i, ETA)
    dv = variation_of(variations, c, DV), variation_of(variations, i, DV)
    da = varied_acceleration(variations, c), varied_acceleration(variations, i)
    dw = varied_twist(weighed, c), varied_twist(weighed, i)
    x, x_dot = motion_of((v, a), F)
    x_2, x_dot_2 = relative_variation(CABLE, False, F, v, a, eta, dv, da)
    w_2, _ = relative_variation(CABLE, False, F, w, w, eta, dw, dw)
    R = sub6(eta[1], eta[0])
    M = followed(CABLE, False, F, R)
    end = ((p, Ad_inverse(F, R)[1]), (x, x_2[1]), (x_dot, x_dot_2[1]), (Ad_inverse(F, sub6(w[1], w[0]))[1], w_2[1]))
    return end, (((v[0], dv[0]), (a[0], da[0]), (w[0], dw[0])), ((v[1], dv[1]), (a[1], da[1]), (w[1], dw[1]))), (
        M, sub6(R, M))


@inline
def varied_speed(e_w, end):
    """The variation of e . w at one end."""
    w, w_2 = end[3]
    return dot(e_w[2], w) + dot(e_w[0], w_2)


@late(MODEL, types.int64, VECTOR, types.UniTuple(VECTOR, 2), WEIGHED, types.int64, VECTOR, MATRIX)
def vary_cable(model, l, world, multipliers, weighed, b, variations, of_lam):
    """The variations of `add_cable` along block b, and that of the velocity of the row for w, in of_lam."""
    r = loop_rows(model, l)[0]
    weights, multiplier = weights_of(weighed, r), (load(SCALAR, multipliers[0], r), load(LANES, multipliers[1], r))
    total = 0.0 * multiplier[1]
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (i, j, c), (P, Q), (p, q) = piece(model, world, at)
        end_p, states_p, moved_p = varied_end(model, world, weighed, variations, i, c, P, p)
        end_q, states_q, moved_q = varied_end(model, world, weighed, variations, j, c, Q, q)
        e_p, e_q = gradients_to_third_order(model.floats, at, along_motion(end_p), along_motion(end_q))
        w_p, w_q = gradients(model.floats, at, along_weights(end_p), along_weights(end_q))
        found = adjoints_at(P, forces_at(weights, multiplier, e_p, w_p), moved_p, states_p)
        push_between(LANES, rate, (c, i), moved_p, found, weighed.rates)
        found = adjoints_at(Q, forces_at(weights, multiplier, e_q, w_q), moved_q, states_q)
        push_between(LANES, rate, (c, j), moved_q, found, weighed.rates)
        total = total + varied_speed(w_p, end_p) + varied_speed(w_q, end_q)
    store(LANES, of_lam, of_lam.shape[1] // WIDTH * r + b, total)


@late(MODEL, types.int64, VECTOR, WEIGHED)
def hold_cable(model, l, world, weighed):
    """Add the wrenches of the weight of the residual to of_q of all links from both sides to the ground."""
    weight = weights_of(weighed, loop_rows(model, l)[0])[2]
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, world, at)
        e_p, e_q = gradients(model.floats, at, constant(p), constant(q))
        carry_down(SCALAR, model, (c, a), Ad_dual_inverse(P, (ZERO3, scale(weight, e_p[0]))), weighed.adjoints)
        carry_down(SCALAR, model, (c, b), Ad_dual_inverse(Q, (ZERO3, scale(weight, e_q[0]))), weighed.adjoints)
