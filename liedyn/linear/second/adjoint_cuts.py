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

from liedyn.lie.algebra import Ad, Ad_dual, Ad_dual_inverse, Ad_inverse, ad, add6, minus_ad_dual, neg6, scale6, sub6
from liedyn.linear.second.adjoint_recursion import LINK, OF_A, OF_Q, OF_V, OF_W, Weighed, push, weighed_twist
from liedyn.machine.compiled.jit import VECTOR, group, inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.families.cut import counts, cut_wrench, rows_in, vary_rows
from liedyn.mechanics.constraints.relative import (
    ZERO6, followed, follows, follows_b, side_states, side_variations,
)
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

# numbers of each cut joint for its variations: frame; twists, accelerations and mu-twists of the sides; wrenches on
# side b, and of_v on side a
KEPT, V_A, V_B, A_A, A_B, W_A, W_B, B_OF_A, B_OF_V, B_OF_W, B_OF_Q, A_OF_V = (
    78, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72)


# ---- pairs (x, dx): a value in numbers of the state and its variation along a register of directions, the product rule
# to first order; twists and wrenches are seen from a link, or from a frame that is displaced by t


@inline
def pair_add(x, y):
    return add6(x[0], y[0]), add6(x[1], y[1])


@inline
def pair_sub(x, y):
    return sub6(x[0], y[0]), sub6(x[1], y[1])


@inline
def pair_neg(x):
    return neg6(x[0]), neg6(x[1])


@inline
def pair_dual(x, F):
    """-ad*_x F."""
    return minus_ad_dual(x[0], F[0]), add6(minus_ad_dual(x[1], F[0]), minus_ad_dual(x[0], F[1]))


@inline
def pair_carried(x, t):
    """A twist x, seen from a frame that is displaced by t."""
    return x[0], add6(x[1], ad(x[0], t))


@inline
def wrench_back(F, t):
    """A wrench F on a frame that is displaced by t, seen from the frame before the displacement."""
    return F[0], add6(F[1], minus_ad_dual(t, F[0]))


# ---- the rows of a cut joint


@inline
def followed_wrench(kind, virtual, C, F):
    """Pi^T F, the dual of `followed`."""
    if not follows(kind):
        return scale6(0.0, F)
    w, v = Ad_dual(C, F)
    a, b = follows_b(kind, virtual)
    return Ad_dual_inverse(C, ((a[0] * w[0], a[1] * w[1], a[2] * w[2]), (b[0] * v[0], b[1] * v[1], b[2] * v[2])))


@inline
def followed_pair(kind, virtual, C, x):
    return followed(kind, virtual, C, x[0]), followed(kind, virtual, C, x[1])


@inline
def followed_wrench_pair(kind, virtual, C, F):
    return followed_wrench(kind, virtual, C, F[0]), followed_wrench(kind, virtual, C, F[1])


@inline
def adjoints_of_sides(frame, wrenches, moved, a, b):
    """The wrenches (of_a, of_v, of_w, of_q) on side b, and of_v on side a, as pairs seen from C.

    `wrenches` are K, J, L and H, `moved` is (M, D), and the sides have twists, accelerations and mu-twists, pairs that
    are seen from each side.
    """
    (K, J, L, H), (M, D) = wrenches, moved
    v_a, a_a, w_a = pair_carried(a[0], M), pair_carried(a[1], M), pair_carried(a[2], M)
    away = neg6(D)
    v_b, a_b, w_b = pair_carried(b[0], away), pair_carried(b[1], away), pair_carried(b[2], away)
    v_r = pair_sub(v_b, v_a)
    crossed = pair_dual(v_r, K)
    of_v = pair_add(J, pair_dual(pair_add(v_a, followed_pair(*frame, v_r)), K))
    of_v = pair_sub(of_v, followed_wrench_pair(*frame, crossed))
    of_v_a = pair_neg(pair_add(of_v, crossed))
    by_M = pair_sub(pair_add(pair_dual(a_a, K), pair_dual(w_a, L)), pair_dual(v_a, of_v_a))
    by_D = pair_add(pair_add(pair_dual(a_b, K), pair_dual(w_b, L)), pair_dual(v_b, of_v))
    of_q = pair_add(pair_add(H, by_D), followed_wrench_pair(*frame, pair_sub(by_M, by_D)))
    return (K, of_v, L, of_q), of_v_a


@inline
def value(F):
    return F[0]


@inline
def rate(F):
    return F[1]


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
def push_between(lane, part, between, moved, found, links):
    """`push_sides` for two links (a, b), neither of which has a target."""
    (of_a, of_v, of_w, of_q), of_v_a = found
    (link_a, link_b), (M, D) = between, moved
    away = neg6(D)
    push(lane, links, link_b, OF_A, part(wrench_back(of_a, away)))
    push(lane, links, link_b, OF_V, part(wrench_back(of_v, away)))
    push(lane, links, link_b, OF_W, part(wrench_back(of_w, away)))
    push(lane, links, link_b, OF_Q, part(wrench_back(of_q, away)))
    push(lane, links, link_a, OF_A, part(wrench_back(pair_neg(of_a), M)))
    push(lane, links, link_a, OF_V, part(wrench_back(of_v_a, M)))
    push(lane, links, link_a, OF_W, part(wrench_back(pair_neg(of_w), M)))
    push(lane, links, link_a, OF_Q, part(wrench_back(pair_neg(of_q), M)))


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
def wrenches_of(lane, model, l, virtual, C, weights, lam):
    """K, J, L and H."""
    L = zero6(lane) if virtual else wrench_of(lane, model, l, False, C, lam)
    return (wrench_of(lane, model, l, virtual, C, weights.phi), wrench_of(lane, model, l, virtual, C, weights.psi), L,
            wrench_of(lane, model, l, virtual, C, weights.residual))


@inline
def still(x):
    """A pair that does not vary."""
    return x, ZERO6


@inline
def weights_of(weighed, virtual):
    """Weights of rows, or of cut joints' coordinates."""
    rows, readers = weighed.rows, weighed.readers
    return readers if virtual else rows


@inline
def sides_of_cut(lane, model, world, l, virtual, lam, weighed):
    """Frame, twists, accelerations and mu-twists of the sides (a, b), and `adjoints_of_sides` with nothing varied."""
    kind, C, _, _ = rows_in(lane, model, world, l, virtual)
    (link_a, link_b), (v, a) = loop_links(model, l), side_states(lane, model, world, l)
    K, J, L, H = wrenches_of(lane, model, l, virtual, C, weights_of(weighed, virtual), lam)
    w = weighed_twist(lane, weighed.adjoints, link_a), weighed_twist(lane, weighed.adjoints, link_b)
    found = adjoints_of_sides(
        (kind, virtual, C), (still(K), still(J), still(L), still(H)), (ZERO6, ZERO6),
        (still(v[0]), still(a[0]), still(w[0])), (still(v[1]), still(a[1]), still(w[1])))
    return C, (v, a, w), found


@kernel_in_place
def add_cuts(lane, model, world, virtual, lam, weighed):
    """Add the wrenches of all cut joints' rows, or with `virtual` of their coordinates, to those of the links.

    Needs twists and accelerations in `world`, and W of all links.
    """
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            _, _, found = sides_of_cut(lane, model, world, l, virtual, lam, weighed)
            push_sides(lane, value, model, l, (ZERO6, ZERO6), found, target_twist(lane, model, world, l),
                       weighed.adjoints)


@inline
def kept_at(model, l, virtual):
    """Index of the numbers of cut l."""
    return KEPT * (l + (loop_count(model) if virtual else 0))


@kernel_in_place
def keep_cuts(lane, model, world, virtual, lam, weighed):
    """Store what the variations of cut joints take, for all columns; needs all weights."""
    cuts = weighed.cuts
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C, (v, a, w), found = sides_of_cut(lane, model, world, l, virtual, lam, weighed)
            (of_a, of_v, of_w, of_q), of_v_a = found
            k = kept_at(model, l, virtual)
            put_pose(lane, cuts, k, C)
            put6(lane, cuts, k + V_A, v[0])
            put6(lane, cuts, k + V_B, v[1])
            put6(lane, cuts, k + A_A, a[0])
            put6(lane, cuts, k + A_B, a[1])
            put6(lane, cuts, k + W_A, w[0])
            put6(lane, cuts, k + W_B, w[1])
            put6(lane, cuts, k + B_OF_A, of_a[0])
            put6(lane, cuts, k + B_OF_V, of_v[0])
            put6(lane, cuts, k + B_OF_W, of_w[0])
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
def vary_cut(lane, model, world, l, virtual, lam_2, weighed, variations):
    """The variations of `push_sides` of one cut joint; those of its relative mu-twist are returned.

    They are the second numbers of the pairs of `adjoints_of_sides`, whose first numbers are the same along all columns.
    """
    cuts, rates, k, (link_a, link_b) = weighed.cuts, weighed.rates, kept_at(model, l, virtual), loop_links(model, l)
    C = get_pose(lane, cuts, k)
    kind, K, L = loop_kind(model, l), get6(lane, cuts, k + B_OF_A), get6(lane, cuts, k + B_OF_W)
    eta, dv, da = side_variations(lane, model, world, variations, l)
    R = sub6(eta[1], eta[0])
    M = followed(kind, virtual, C, R)
    away = sub6(M, R)  # -D
    v_a, v_b = carried_by(lane, cuts, k + V_A, dv[0], M), carried_by(lane, cuts, k + V_B, dv[1], away)
    a_a = carried_by(lane, cuts, k + A_A, add6(da[0], variation_of(variations, link_a, ADDED)), M)
    a_b = carried_by(lane, cuts, k + A_B, add6(da[1], variation_of(variations, link_b, ADDED)), away)
    w_a = carried_by(lane, cuts, k + W_A, weighed_twist(LANES, rates, link_a), M)
    w_b = carried_by(lane, cuts, k + W_B, weighed_twist(LANES, rates, link_b), away)
    v_r, dL = sub6(v_b, v_a), zero6(LANES)
    if not virtual:
        dL = varied_wrench(LANES, model, l, C, lam_2)
    crossed = minus_ad_dual(v_r, K)
    of_v = sub6(minus_ad_dual(add6(v_a, followed(kind, virtual, C, v_r)), K),
                followed_wrench(kind, virtual, C, crossed))
    of_v_a = neg6(add6(of_v, crossed))
    by_M = add6(minus_ad_dual(a_a, K), add6(minus_ad_dual(w_a, L), minus_ad_dual(get6(lane, cuts, k + W_A), dL)))
    by_M = sub6(by_M, add6(minus_ad_dual(v_a, get6(lane, cuts, k + A_OF_V)),
                           minus_ad_dual(get6(lane, cuts, k + V_A), of_v_a)))
    by_D = add6(minus_ad_dual(a_b, K), add6(minus_ad_dual(w_b, L), minus_ad_dual(get6(lane, cuts, k + W_B), dL)))
    by_D = add6(by_D, add6(minus_ad_dual(v_b, get6(lane, cuts, k + B_OF_V)),
                           minus_ad_dual(get6(lane, cuts, k + V_B), of_v)))
    of_q = add6(by_D, followed_wrench(kind, virtual, C, sub6(by_M, by_D)))
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
def vary_cuts(lane, model, world, virtual, lam_2, weighed, b, variations, of_lam):
    """The variations of `add_cuts` along block b, and those of the velocities of the rows for mu, in of_lam.

    lam_2 has a register of variations of each multiplier; needs `keep_cuts`.
    """
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            w_r = vary_cut(lane, model, world, l, virtual, lam_2, weighed, variations)
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
            dv_r = sub6(dv_b, dv_a)
            crossed = minus_ad_dual(dv_r, K)
            of_v = minus_ad_dual(add6(dv_a, followed(kind, virtual, C, dv_r)), K)
            of_v = sub6(of_v, followed_wrench(kind, virtual, C, crossed))
            push(LANES, rates, link_b, OF_V, of_v)
            push(LANES, rates, link_a, OF_V, neg6(add6(of_v, crossed)))


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
def hold_cuts(lane, model, world, virtual, weighed):
    """Add the wrenches of the weights of residuals to of_q of all links from both sides to the ground."""
    weights = weights_of(weighed, virtual)
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C = rows_in(lane, model, world, l, virtual)[1]
            carry_down(lane, model, loop_links(model, l), wrench_of(lane, model, l, virtual, C, weights.residual),
                       weighed.adjoints)
