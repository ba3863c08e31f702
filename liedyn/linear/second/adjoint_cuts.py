"""What cut joints add to the gradient of `liedyn.linear.second.adjoint_recursion`, with its variations.

The rows of a cut joint are constant components of the relative motion in frame C (`liedyn.mechanics.constraints.
relative`). Weights of the rows make constant wrenches in C: K of the acceleration phi, J of the velocity psi, L of psi
for velocities mu (the multipliers), H of the residual. With v_C = v_a + Pi v_r, the number

    K . (a_r - ad(v_C, v_r)) + J . v_r + L . w_r

has, by twists, accelerations and mu-twists of the sides seen from C, the derivatives

    side b: of_a = K, of_w = L, of_v = J + v_C x* K - Pi^T (v_r x* K)        side a: -K, -L, -of_v - v_r x* K

Side b is displaced by D relative to C, and C by M = Pi (eta_b - eta_a) relative to a, which turns what is seen from C:
by D the sum of x x* of_x over side b, by M minus that over side a. Only the relative displacement matters:

    of_q = H + by_D + Pi^T (by_M - by_D) on side b, and the opposite on side a.

The same for the coordinates of cut joints, whose velocities are other components in a frame of their own.
"""
from collections import namedtuple

from liedyn.lie.algebra import Ad, Ad_dual_inverse, Ad_inverse, ad, add6, minus_ad_dual, neg6, sub6
from liedyn.linear.second.adjoint_recursion import LINK, OF_A, OF_Q, OF_V, OF_W, Weighed, push, push_rate, weighed_twist
from liedyn.linear.second.adjoint_sides import (
    adjoints_of_sides, followed_twist, followed_wrench, pair_neg, push_between, still, value, wrench_back,
)
from liedyn.machine.compiled.jit import VECTOR, group, inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.families.cut import counts, cut_wrench, rows_in, vary_rows
from liedyn.mechanics.constraints.relative import ZERO6, side_states, side_variations
from liedyn.mechanics.tree.tangent_recursion import ADDED, DV, variation_of
from liedyn.model.constraint_records import (
    has_target, loop_at, loop_count, loop_kind, loop_links, loop_pitch, loop_rows, loop_virtuals,
)
from liedyn.model.packed import LOOP_TWIST
from liedyn.model.packed_records import accumulate6, get6, get_pose, parent, put6, put_pose, zero6

RowWeights = namedtuple("RowWeights", "phi psi residual")
"""Weights of the accelerations, the velocities and the residuals of the constraints, or of the coordinates of cut
joints."""
ROW_WEIGHTS = group(RowWeights, *[VECTOR] * 3)
WEIGHED = group(Weighed, VECTOR, ROW_WEIGHTS, ROW_WEIGHTS, *[VECTOR] * 4)
"""Types, for `liedyn.machine.compiled.jit.late`."""

# numbers of each cut joint: frame; twists, accelerations and mu-twists of the sides; wrenches on side b, of_v on side a
KEPT, V_A, V_B, A_A, A_B, W_A, W_B, B_OF_A, B_OF_V, B_OF_W, B_OF_Q, A_OF_V = (
    78, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72)
# registers of each cut joint for a block of columns: M, -D, the variations of the sides' motion seen from C, and of L
SIDES, FOLLOWED, AWAY, DV_A, DV_B, DA_A, DA_B, DL = 42, 0, 6, 12, 18, 24, 30, 36


@inline
def push_sides(lane, part, model, l, moved, found, target, links):
    """Add a part of the pairs, `value` or `rate`, to the wrenches of the links, seen from these.

    A target that moves side a relative to its link with the twist `target` adds its bracket with it to the
    acceleration of a.
    """
    links_of, on_a = loop_links(model, l), wrench_back(pair_neg(found[0][0]), moved[0])
    push_between(lane, part, links_of, moved, found, links)
    if has_target(model, l):
        push(lane, links, links_of[0], OF_V, minus_ad_dual(target, part(on_a)))


@inline
def target_twist(lane, model, world, l):
    """Twist of the moving frame A relative to its link; zero without a target."""
    twist = zero6(lane)
    if has_target(model, l):
        A = loop_frames(lane, model, world, l)[0]
        twist = Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST)))
    return twist


@inline
def wrench_of(lane, model, l, virtual, C, weights):
    """The wrench in world axes of the weights of rows of cut l."""
    first, count = loop_virtuals(model, l) if virtual else loop_rows(model, l)
    F = cut_wrench(lane, loop_kind(model, l), loop_pitch(model, l), virtual, first, count, weights)
    return Ad_dual_inverse(C, F)


@inline
def weights_of(weighed, virtual):
    """Weights of rows, or of cut joints' coordinates."""
    rows, readers = weighed.rows, weighed.readers
    return readers if virtual else rows


@inline
def kept_at(model, l, virtual):
    """Index of the numbers of cut l."""
    return KEPT * (l + (loop_count(model) if virtual else 0))


@kernel_in_place
def put_sides(lane, model, world, virtual, lam, cuts):
    """Store of all cut joints what does not depend on weights: frames, motions of the sides, wrenches of multipliers.

    Needs twists and accelerations in `world`.
    """
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C, (v, a), k = (rows_in(lane, model, world, l, virtual)[1], side_states(lane, model, world, l),
                            kept_at(model, l, virtual))
            put_pose(lane, cuts, k, C)
            put6(lane, cuts, k + V_A, v[0])
            put6(lane, cuts, k + V_B, v[1])
            put6(lane, cuts, k + A_A, a[0])
            put6(lane, cuts, k + A_B, a[1])
            put6(lane, cuts, k + B_OF_W, zero6(lane) if virtual else wrench_of(lane, model, l, False, C, lam))


@inline
def by_velocities(frame, v_a, v_r, K):
    """The terms of of_v on side b and on side a that are linear in the velocities of the sides."""
    crossed = minus_ad_dual(v_r, K)
    of_v = minus_ad_dual(add6(v_a, followed_twist(*frame, v_r)), K)
    of_v = sub6(of_v, followed_wrench(*frame, crossed))
    return of_v, neg6(add6(of_v, crossed))


@kernel_in_place
def add_cuts_of_rates(lane, model, world, virtual, weighed):
    """`add_cuts` for of_a and of_v alone."""
    adjoints, cuts = weighed.adjoints, weighed.cuts
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            k, weights, (link_a, link_b) = (
                kept_at(model, l, virtual), weights_of(weighed, virtual), loop_links(model, l))
            C, v_a, v_b = get_pose(lane, cuts, k), get6(lane, cuts, k + V_A), get6(lane, cuts, k + V_B)
            K, J = (wrench_of(lane, model, l, virtual, C, weights.phi),
                    wrench_of(lane, model, l, virtual, C, weights.psi))
            on_b, on_a = by_velocities((loop_kind(model, l), virtual, C), v_a, sub6(v_b, v_a), K)
            push(lane, adjoints, link_b, OF_A, K)
            push(lane, adjoints, link_b, OF_V, add6(on_b, J))
            push(lane, adjoints, link_a, OF_A, neg6(K))
            push(lane, adjoints, link_a, OF_V, sub6(on_a, J))
            if has_target(model, l):
                push(lane, adjoints, link_a, OF_V, minus_ad_dual(target_twist(lane, model, world, l), neg6(K)))


@kernel_in_place
def add_cuts(lane, model, world, virtual, weighed):
    """Add the wrenches of all cut joints' rows, or with `virtual` of their coordinates, to those of the links.

    What their variations take is stored, for all columns. Needs `put_sides`, and W of all links.
    """
    cuts = weighed.cuts
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            k, weights, (link_a, link_b) = (
                kept_at(model, l, virtual), weights_of(weighed, virtual), loop_links(model, l))
            C, v, a = (get_pose(lane, cuts, k), (get6(lane, cuts, k + V_A), get6(lane, cuts, k + V_B)),
                       (get6(lane, cuts, k + A_A), get6(lane, cuts, k + A_B)))
            w = weighed_twist(lane, weighed.adjoints, link_a), weighed_twist(lane, weighed.adjoints, link_b)
            K, J = (wrench_of(lane, model, l, virtual, C, weights.phi),
                    wrench_of(lane, model, l, virtual, C, weights.psi))
            L, H = get6(lane, cuts, k + B_OF_W), wrench_of(lane, model, l, virtual, C, weights.residual)
            found = adjoints_of_sides(
                (loop_kind(model, l), virtual, C), (still(K), still(J), still(L), still(H)), (ZERO6, ZERO6),
                (still(v[0]), still(a[0]), still(w[0])), (still(v[1]), still(a[1]), still(w[1])))
            push_sides(lane, value, model, l, (ZERO6, ZERO6), found, target_twist(lane, model, world, l),
                       weighed.adjoints)
            (_, of_v, _, of_q), of_v_a = found
            put6(lane, cuts, k + W_A, w[0])
            put6(lane, cuts, k + W_B, w[1])
            put6(lane, cuts, k + B_OF_A, K)
            put6(lane, cuts, k + B_OF_V, of_v[0])
            put6(lane, cuts, k + B_OF_Q, of_q[0])
            put6(lane, cuts, k + A_OF_V, of_v_a[0])


@inline
def varied_wrench(lane, model, l, C, lam_2):
    """The wrench of variations of the multipliers, in world axes."""
    first, count = loop_rows(model, l)
    return Ad_dual_inverse(C, cut_wrench(lane, loop_kind(model, l), loop_pitch(model, l), False, first, count, lam_2))


@inline
def carried_by(lane, cuts, k, x_2, t):
    """The variation x_2 of the twist at cuts[k], seen from a frame that is displaced by t."""
    return add6(x_2, ad(get6(lane, cuts, k), t))


@inline
def back_on(lane, cuts, k, F_2, t):
    """The variation F_2 of the wrench at cuts[k] on a frame that is displaced by t, seen from that before."""
    return add6(F_2, minus_ad_dual(t, get6(lane, cuts, k)))


@inline
def sides_at(model, l, virtual):
    """Index of the variations of the sides of cut l, in registers."""
    return SIDES * (l + (loop_count(model) if virtual else 0))


@kernel_in_place
def vary_sides(lane, model, world, virtual, lam_2, cuts, variations, sides):
    """Store the variations along a block of columns that do not depend on weights; needs `put_sides`.

    lam_2 has a register of variations of each multiplier.
    """
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            k, s, (link_a, link_b) = kept_at(model, l, virtual), sides_at(model, l, virtual), loop_links(model, l)
            C, (eta, dv, da) = get_pose(lane, cuts, k), side_variations(lane, model, world, variations, l)
            R = sub6(eta[1], eta[0])
            M = followed_twist(loop_kind(model, l), virtual, C, R)
            away, dL = sub6(M, R), zero6(LANES)
            if not virtual:
                dL = varied_wrench(LANES, model, l, C, lam_2)
            put6(LANES, sides, s + FOLLOWED, M)
            put6(LANES, sides, s + AWAY, away)
            put6(LANES, sides, s + DV_A, carried_by(lane, cuts, k + V_A, dv[0], M))
            put6(LANES, sides, s + DV_B, carried_by(lane, cuts, k + V_B, dv[1], away))
            put6(LANES, sides, s + DA_A, carried_by(
                lane, cuts, k + A_A, add6(da[0], variation_of(variations, link_a, ADDED)), M))
            put6(LANES, sides, s + DA_B, carried_by(
                lane, cuts, k + A_B, add6(da[1], variation_of(variations, link_b, ADDED)), away))
            put6(LANES, sides, s + DL, dL)


@inline
def vary_cut(lane, model, world, l, virtual, weighed, sides):
    """The variations of `push_sides` of one cut joint; those of its relative mu-twist are returned.

    They are the second numbers of the pairs of `adjoints_of_sides`, whose first numbers are the same along all columns.
    """
    cuts, rates, k, s, (link_a, link_b) = (
        weighed.cuts, weighed.rates, kept_at(model, l, virtual), sides_at(model, l, virtual), loop_links(model, l))
    C = get_pose(lane, cuts, k)
    frame, K, L = (loop_kind(model, l), virtual, C), get6(lane, cuts, k + B_OF_A), get6(lane, cuts, k + B_OF_W)
    M, away = get6(LANES, sides, s + FOLLOWED), get6(LANES, sides, s + AWAY)
    v_a, v_b, dL = get6(LANES, sides, s + DV_A), get6(LANES, sides, s + DV_B), get6(LANES, sides, s + DL)
    a_a, a_b = get6(LANES, sides, s + DA_A), get6(LANES, sides, s + DA_B)
    w_a = carried_by(lane, cuts, k + W_A, weighed_twist(LANES, rates, link_a), M)
    w_b = carried_by(lane, cuts, k + W_B, weighed_twist(LANES, rates, link_b), away)
    of_v, of_v_a = by_velocities(frame, v_a, sub6(v_b, v_a), K)
    by_M = add6(minus_ad_dual(a_a, K), add6(minus_ad_dual(w_a, L), minus_ad_dual(get6(lane, cuts, k + W_A), dL)))
    by_M = sub6(by_M, add6(minus_ad_dual(v_a, get6(lane, cuts, k + A_OF_V)),
                           minus_ad_dual(get6(lane, cuts, k + V_A), of_v_a)))
    by_D = add6(minus_ad_dual(a_b, K), add6(minus_ad_dual(w_b, L), minus_ad_dual(get6(lane, cuts, k + W_B), dL)))
    by_D = add6(by_D, add6(minus_ad_dual(v_b, get6(lane, cuts, k + B_OF_V)),
                           minus_ad_dual(get6(lane, cuts, k + V_B), of_v)))
    of_q = add6(by_D, followed_wrench(*frame, sub6(by_M, by_D)))
    push(LANES, rates, link_b, OF_A, minus_ad_dual(away, K))
    push(LANES, rates, link_b, OF_V, back_on(lane, cuts, k + B_OF_V, of_v, away))
    push(LANES, rates, link_b, OF_W, back_on(lane, cuts, k + B_OF_W, dL, away))
    push(LANES, rates, link_b, OF_Q, back_on(lane, cuts, k + B_OF_Q, of_q, away))
    on_a = neg6(minus_ad_dual(M, K))
    push(LANES, rates, link_a, OF_A, on_a)
    push(LANES, rates, link_a, OF_V, back_on(lane, cuts, k + A_OF_V, of_v_a, M))
    push(LANES, rates, link_a, OF_W, neg6(back_on(lane, cuts, k + B_OF_W, dL, M)))
    push(LANES, rates, link_a, OF_Q, neg6(back_on(lane, cuts, k + B_OF_Q, of_q, M)))
    if has_target(model, l):
        push(LANES, rates, link_a, OF_V, minus_ad_dual(target_twist(lane, model, world, l), on_a))
    return Ad_inverse(C, sub6(w_b, w_a))


@kernel_in_place
def vary_cuts(lane, model, world, virtual, weighed, b, sides, of_lam):
    """The variations of `add_cuts` along block b, and those of the velocities of the rows for mu, in of_lam.

    Needs `vary_sides`.
    """
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            w_r = vary_cut(lane, model, world, l, virtual, weighed, sides)
            if not virtual:
                vary_rows(model, l, False, b, w_r, of_lam)


@kernel_in_place
def push_cuts(lane, model, virtual, weighed, variations):
    """The variations of `add_cuts` along columns that change velocities only: those of of_v."""
    cuts, rates = weighed.cuts, weighed.rates
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            k, kind, (link_a, link_b) = kept_at(model, l, virtual), loop_kind(model, l), loop_links(model, l)
            C, K = get_pose(lane, cuts, k), get6(lane, cuts, k + B_OF_A)
            dv_a, dv_b = variation_of(variations, link_a, DV), variation_of(variations, link_b, DV)
            on_b, on_a = by_velocities((kind, virtual, C), dv_a, sub6(dv_b, dv_a), K)
            push_rate(rates, link_b, on_b)
            push_rate(rates, link_a, on_a)


@inline
def carry_down(lane, model, between, H, adjoints):
    """Add the wrench H on the second of two links, and the opposite one on the first, to of_q of all links from there
    to the ground."""
    link_a, link_b = between
    while link_b >= 0:
        accumulate6(lane, adjoints, LINK * link_b + OF_Q, H)
        link_b = parent(model, link_b)
    while link_a >= 0:
        accumulate6(lane, adjoints, LINK * link_a + OF_Q, neg6(H))
        link_a = parent(model, link_a)


@kernel_in_place
def hold_cuts(lane, model, virtual, weighed):
    """Add the wrenches of the weights of residuals to of_q of all links from both sides to the ground, and to what
    `add_cuts` stores."""
    weights, cuts = weights_of(weighed, virtual), weighed.cuts
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            k = kept_at(model, l, virtual)
            H = wrench_of(lane, model, l, virtual, get_pose(lane, cuts, k), weights.residual)
            carry_down(lane, model, loop_links(model, l), H, weighed.adjoints)
            accumulate6(lane, cuts, k + B_OF_Q, H)
