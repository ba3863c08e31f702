"""What a constraint adds to the wrenches of the two links between which it acts, with its variations.

Weights K of its accelerations, J of its velocities, L of the velocities for mu and H of its residual are wrenches in
the frame C of its rows (`liedyn.linear.second.adjoint_cuts`). All are pairs (x, dx) here: a value in numbers of the
state and its variation along a register of directions, the product rule to first order; twists and wrenches are seen
from a link, or from a frame that is displaced by t.
"""
from liedyn.lie.algebra import (
    Ad_dual, Ad_dual_inverse, ad, add6, add_cross, minus_ad_dual, neg6, scale, scale6, sub6,
)
from liedyn.linear.second.adjoint_recursion import OF_A, OF_Q, OF_V, OF_W, push
from liedyn.machine.compiled.jit import inline
from liedyn.mechanics.constraints.relative import ZERO6, followed, follows, follows_b
from liedyn.model.kinds import PLANAR, UNIVERSAL


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


@inline
def follows_all(kind):
    """True if the frame of the rows follows its origin on side b in all directions, so that axes do not matter."""
    return follows(kind) and kind != UNIVERSAL and kind != PLANAR


@inline
def followed_twist(kind, virtual, C, V):
    """Pi V, as `followed`."""
    if not follows_all(kind):
        return followed(kind, virtual, C, V)
    (turns, _, _), _ = follows_b(kind, virtual)
    w, v = V
    return scale(turns, w), add_cross(v, w, scale(1.0 - turns, C[1]))


@inline
def followed_wrench(kind, virtual, C, F):
    """Pi^T F, the dual of `followed_twist`."""
    if not follows(kind):
        return scale6(0.0, F)
    if follows_all(kind):
        (turns, _, _), _ = follows_b(kind, virtual)
        n, f = F
        return add_cross(scale(turns, n), scale(1.0 - turns, C[1]), f), f
    w, v = Ad_dual(C, F)
    a, b = follows_b(kind, virtual)
    return Ad_dual_inverse(C, ((a[0] * w[0], a[1] * w[1], a[2] * w[2]), (b[0] * v[0], b[1] * v[1], b[2] * v[2])))


@inline
def followed_pair(kind, virtual, C, x):
    return followed_twist(kind, virtual, C, x[0]), followed_twist(kind, virtual, C, x[1])


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
def still(x):
    """A pair that does not vary."""
    return x, ZERO6


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
