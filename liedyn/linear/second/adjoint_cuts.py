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

from liedyn.lie.algebra import Ad, Ad_dual, Ad_dual_inverse, Ad_inverse, add6, minus_ad_dual, neg6, scale6, sub6
from liedyn.linear.second.adjoint_recursion import LINK, OF_A, OF_Q, OF_V, OF_W, push, weighed_twist
from liedyn.linear.second.pairs import (
    pair_add, pair_carried, pair_dual, pair_neg, pair_sub, wrench_back,
)
from liedyn.machine.compiled.jit import VECTOR, group, inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.families.cut import counts, cut_wrench, rows_in, vary_rows
from liedyn.mechanics.constraints.relative import (
    ZERO6, followed, follows, follows_b, side_states, side_variations,
)
from liedyn.mechanics.tree.tangent_recursion import ADDED, variation_of
from liedyn.model.constraint_records import (
    has_target, loop_at, loop_count, loop_kind, loop_links, loop_pitch, loop_rows, loop_virtuals,
)
from liedyn.model.packed import LOOP_TWIST
from liedyn.model.packed_records import accumulate6, get6, parent, zero6

RowWeights = namedtuple("RowWeights", "phi psi residual")
"""Weights of the accelerations, the velocities and the residuals of the constraints, or of the coordinates of cut
joints."""
ROW_WEIGHTS = group(RowWeights, *[VECTOR] * 3)


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
    (of_a, of_v, of_w, of_q), of_v_a = found
    (link_a, link_b), (M, D) = loop_links(model, l), moved
    away = neg6(D)
    push(lane, links, link_b, OF_A, part(wrench_back(of_a, away)))
    push(lane, links, link_b, OF_V, part(wrench_back(of_v, away)))
    push(lane, links, link_b, OF_W, part(wrench_back(of_w, away)))
    push(lane, links, link_b, OF_Q, part(wrench_back(of_q, away)))
    on_a = wrench_back(pair_neg(of_a), M)
    push(lane, links, link_a, OF_A, part(on_a))
    push(lane, links, link_a, OF_V, part(wrench_back(of_v_a, M)))
    push(lane, links, link_a, OF_W, part(wrench_back(pair_neg(of_w), M)))
    push(lane, links, link_a, OF_Q, part(wrench_back(pair_neg(of_q), M)))
    if has_target(model, l):
        push(lane, links, link_a, OF_V, minus_ad_dual(target, part(on_a)))


@inline
def target_twist(model, world, l):
    """Twist of the moving frame A relative to its link; zero without a target."""
    twist = zero6(SCALAR)
    if has_target(model, l):
        A = loop_frames(SCALAR, model, world, l)[0]
        twist = Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST)))
    return twist


@inline
def wrench_of(model, l, virtual, C, weights):
    """The wrench in world axes of the weights of rows of cut l."""
    first, count = loop_virtuals(model, l) if virtual else loop_rows(model, l)
    F = cut_wrench(SCALAR, loop_kind(model, l), loop_pitch(model, l), virtual, first, count, weights)
    return Ad_dual_inverse(C, F)


@inline
def wrenches_of(model, l, virtual, C, weights, lam):
    """K, J, L and H."""
    L = zero6(SCALAR) if virtual else wrench_of(model, l, False, C, lam)
    return (wrench_of(model, l, virtual, C, weights.phi), wrench_of(model, l, virtual, C, weights.psi), L,
            wrench_of(model, l, virtual, C, weights.residual))


@inline
def still(x):
    """A pair that does not vary."""
    return x, ZERO6


@inline
def weights_of(weighed, virtual):
    """Weights of rows, or of cut joints' coordinates."""
    rows, readers = weighed.rows, weighed.readers
    return readers if virtual else rows


@kernel_in_place
def add_cuts(model, world, virtual, lam, weighed):
    """Add the wrenches of all cut joints' rows, or with `virtual` of their coordinates, to those of the links.

    Needs twists and accelerations in `world`, and W of all links.
    """
    weights, adjoints = weights_of(weighed, virtual), weighed.adjoints
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            kind, C, _, _ = rows_in(SCALAR, model, world, l, virtual)
            (link_a, link_b), (v, a) = loop_links(model, l), side_states(SCALAR, model, world, l)
            K, J, L, H = wrenches_of(model, l, virtual, C, weights, lam)
            w = weighed_twist(SCALAR, adjoints, link_a), weighed_twist(SCALAR, adjoints, link_b)
            moved = ZERO6, ZERO6
            found = adjoints_of_sides(
                (kind, virtual, C), (still(K), still(J), still(L), still(H)), moved,
                (still(v[0]), still(a[0]), still(w[0])), (still(v[1]), still(a[1]), still(w[1])))
            push_sides(SCALAR, value, model, l, moved, found, target_twist(model, world, l), adjoints)


@kernel_in_place
def vary_cuts(model, world, virtual, multipliers, weighed, b, variations, of_lam):
    """The variations of `add_cuts` along block b, and those of the velocities of the rows for mu, in of_lam.

    `multipliers` are lam and a register of its variations for each row.
    """
    (lam, lam_2), weights, (_, _, _, adjoints, rates, _) = multipliers, weights_of(weighed, virtual), weighed
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            kind, C, first, count = rows_in(SCALAR, model, world, l, virtual)
            (link_a, link_b), (v, a) = loop_links(model, l), side_states(SCALAR, model, world, l)
            eta, dv, da = side_variations(SCALAR, model, world, variations, l)
            added = variation_of(variations, link_a, ADDED), variation_of(variations, link_b, ADDED)
            K, J, L, H = wrenches_of(model, l, virtual, C, weights, lam)
            dL = zero6(LANES)
            if not virtual:
                dL = Ad_dual_inverse(C, cut_wrench(LANES, kind, loop_pitch(model, l), virtual, first, count, lam_2))
            R = sub6(eta[1], eta[0])
            M = followed(kind, virtual, C, R)
            moved = M, sub6(R, M)
            w_a = weighed_twist(SCALAR, adjoints, link_a), weighed_twist(LANES, rates, link_a)
            w_b = weighed_twist(SCALAR, adjoints, link_b), weighed_twist(LANES, rates, link_b)
            found = adjoints_of_sides(
                (kind, virtual, C), (still(K), still(J), (L, dL), still(H)), moved,
                ((v[0], dv[0]), (a[0], add6(da[0], added[0])), w_a),
                ((v[1], dv[1]), (a[1], add6(da[1], added[1])), w_b))
            push_sides(LANES, rate, model, l, moved, found, target_twist(model, world, l), rates)
            if not virtual:
                w_r = sub6(pair_carried(w_b, neg6(moved[1]))[1], pair_carried(w_a, M)[1])
                vary_rows(model, l, False, b, Ad_inverse(C, w_r), of_lam)


@inline
def carry_down(model, l, H, adjoints):
    """Add the wrench H on side b of constraint l, and the opposite one on side a, to of_q of all links from there to
    the ground."""
    link_a, link_b = loop_links(model, l)
    while link_b >= 0:
        accumulate6(SCALAR, adjoints, LINK * link_b + OF_Q, H)
        link_b = parent(model, link_b)
    while link_a >= 0:
        accumulate6(SCALAR, adjoints, LINK * link_a + OF_Q, neg6(H))
        link_a = parent(model, link_a)


@kernel_in_place
def hold_cuts(model, world, virtual, weighed):
    """Add the wrenches of the weights of residuals to of_q of all links from both sides to the ground."""
    weights = weights_of(weighed, virtual)
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C = rows_in(SCALAR, model, world, l, virtual)[1]
            carry_down(model, l, wrench_of(model, l, virtual, C, weights.residual), weighed.adjoints)
