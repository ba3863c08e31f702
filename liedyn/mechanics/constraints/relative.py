"""Motion of frame B relative to frame A and all its derivatives, for constraints between two bodies.

With v_r = v_b - v_a and a_r the relative twist and acceleration of the two sides in world coordinates (gravity cancels
in a_r), C the frame in which the rows are constant, and v_C = v_a + Pi v_r its twist (Pi selects the components of v_r
that C follows), the components of v_r in C have the rates of

    a_r - ad(v_C, v_r)

Let the sides be displaced by eta_a, eta_b: then C is displaced by zeta = eta_a + Pi (eta_b - eta_a), and seen from C
the variations of twists and accelerations are those seen from the sides (`liedyn.mechanics.tree.tangent_recursion`) and
a turn:

    dv_a - ad(zeta - eta_a, v_a)        dv_b + ad(eta_b - zeta, v_b)        likewise for a_a, a_b

With dv_r, da_r their differences and dv_C = dv_a + Pi dv_r, as Pi is constant in C, the components have the variations

    dv_r        da_r - ad(dv_C, v_r) - ad(v_C, dv_r)

and no third-order tensor is formed. One degree of freedom j moves the side X that it is on by S_j; seen from there,
twist and acceleration change by Psi_dot_j and Psi_ddot_j - ad(v_X, Psi_dot_j).

A frame A that moves by a target, A(t) = A_0 T(t), is a side of its own: v_a and a_a contain the target's twist W and
its rate, and the formulas stay as they are, because W turns with the link it is attached to.

Only degrees of freedom on exactly one of the two paths to the ground matter: common ones move both frames together.
"""
from liedyn.lie.algebra import Ad, Ad_inverse, ad, add6, minus_ad_dual, neg6, scale6, sub6
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.tree.kinematics import PSI_DDOT, PSI_DOT, S, S_DOT, acceleration_of, of_dof, twist_of
from liedyn.mechanics.tree.tangent_recursion import DA, DV, ETA, push_link, variation_of
from liedyn.model.constraint_records import has_target, loop_at, loop_links
from liedyn.model.kinds import INLINE, N_JOINTS, PLANAR, SPHERICAL, UNIVERSAL
from liedyn.model.packed import LOOP_RATE, LOOP_TWIST
from liedyn.model.packed_records import dof_count, first_dof, get6, parent_dof

ZERO6 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@inline
def last_dof(model, i):
    """The last degree of freedom of link i, -1 for the ground."""
    if i < 0:
        return -1
    return first_dof(model, i) + dof_count(model, i) - 1


@inline
def path_ends(model, l):
    """The last degrees of freedom of both sides, from which `toward_ground` starts."""
    a, b = loop_links(model, l)
    return last_dof(model, a), last_dof(model, b)


@inline
def toward_ground(model, ja, jb):
    """One step along the two paths to the ground, which have met when ja == jb.

    Parents have smaller numbers than children, so the larger of the two is not a common one.
    """
    if jb > ja:
        return ja, parent_dof(model, jb)
    return parent_dof(model, ja), jb


@inline
def follows(kind):
    """True if the frame of the rows moves with side b in any component, not just with side a."""
    return kind == UNIVERSAL or kind == PLANAR or kind == SPHERICAL or kind == INLINE or kind >= N_JOINTS


@inline
def follows_b(kind, virtual):
    """1 for the components of the relative twist that the frame of the rows follows, 0 for the others."""
    if kind == UNIVERSAL:
        return (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if kind == PLANAR:
        return (0.0, 0.0, 0.0), (1.0, 1.0, 0.0)
    turns = 1.0 if kind == SPHERICAL and virtual else 0.0
    return (turns, turns, turns), (1.0, 1.0, 1.0)


@inline
def followed(kind, virtual, C, V):
    """Pi V: the components of a relative twist that the frame of the rows follows."""
    if not follows(kind):
        return scale6(0.0, V)
    w, v = Ad_inverse(C, V)
    a, b = follows_b(kind, virtual)
    return Ad(C, ((a[0] * w[0], a[1] * w[1], a[2] * w[2]), (b[0] * v[0], b[1] * v[1], b[2] * v[2])))


@inline
def side_twists(lane, model, work, l):
    """Twist of side a (the link, or the moving frame on it), and twist of side b."""
    a, b = loop_links(model, l)
    v_a = twist_of(lane, work, a)
    if has_target(model, l):
        A = loop_frames(lane, model, work, l)[0]
        v_a = add6(v_a, Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST))))
    return v_a, twist_of(lane, work, b)


@inline
def side_accelerations(lane, model, work, l):
    """Accelerations of side a and of side b, including gravity."""
    a, b = loop_links(model, l)
    a_a = acceleration_of(lane, model, work, a)
    if has_target(model, l):
        A = loop_frames(lane, model, work, l)[0]
        W = Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST)))
        W_dot = Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_RATE)))
        a_a = add6(add6(a_a, W_dot), ad(twist_of(lane, work, a), W))
    return a_a, acceleration_of(lane, model, work, b)


@inline
def relative_twist(lane, model, work, l, C):
    """Components in C of the twist of b relative to a."""
    v_a, v_b = side_twists(lane, model, work, l)
    return Ad_inverse(C, sub6(v_b, v_a))


@inline
def relative_rate(lane, model, work, l, kind, virtual, C):
    """Rates of the components in C of the relative twist."""
    v_a, v_b = side_twists(lane, model, work, l)
    a_a, a_b = side_accelerations(lane, model, work, l)
    v_r, a_r = sub6(v_b, v_a), sub6(a_b, a_a)
    v_C = add6(v_a, followed(kind, virtual, C, v_r))
    return Ad_inverse(C, sub6(a_r, ad(v_C, v_r)))


@inline
def relative_screw(lane, model, work, j, on_b, C):
    """Components in C of the relative twist for a unit velocity of degree of freedom j."""
    x = Ad_inverse(C, get6(lane, work, of_dof(model, j, S)))
    return scale6(1.0 if on_b else -1.0, x)


@inline
def frame_turn(model, work, j, on_b, kind, virtual, C):
    """zeta_j: the displacement of C for a unit displacement S_j, in world coordinates."""
    Sj = get6(SCALAR, work, of_dof(model, j, S))
    zeta = followed(kind, virtual, C, Sj)
    return zeta if on_b else sub6(Sj, zeta)


@inline
def relative_variation(kind, virtual, C, v, a, eta, dv, da):
    """Components in C of the variations of the relative twist and of its rate, for floats or lanes.

    Arguments are pairs for the sides (a, b): twists v, accelerations a, displacements eta, and the variations of v and
    a as seen from the sides.
    """
    eta_r, v_r = sub6(eta[1], eta[0]), sub6(v[1], v[0])
    if not follows(kind):  # C moves with side a
        dv_r = sub6(add6(dv[1], ad(eta_r, v[1])), dv[0])
        da_r = sub6(add6(da[1], ad(eta_r, a[1])), da[0])
        return Ad_inverse(C, dv_r), Ad_inverse(C, sub6(sub6(da_r, ad(dv[0], v_r)), ad(v[0], dv_r)))
    moved = followed(kind, virtual, C, eta_r)  # displacement of C relative to side a
    left = sub6(eta_r, moved)  # displacement of side b relative to C
    v_C = add6(v[0], followed(kind, virtual, C, v_r))
    dv_a, da_a = sub6(dv[0], ad(moved, v[0])), sub6(da[0], ad(moved, a[0]))
    dv_r = sub6(add6(dv[1], ad(left, v[1])), dv_a)
    da_r = sub6(add6(da[1], ad(left, a[1])), da_a)
    dv_C = add6(dv_a, followed(kind, virtual, C, dv_r))
    return Ad_inverse(C, dv_r), Ad_inverse(C, sub6(sub6(da_r, ad(dv_C, v_r)), ad(v_C, dv_r)))


@inline
def relative_derivatives(model, work, j, on_b, kind, virtual, C, v_a, v_b, a_a, a_b):
    """Components in C of d(twist)/dq_j, d(rate)/dq_j and d(rate)/dv_j."""
    Sj = get6(SCALAR, work, of_dof(model, j, S))
    psi_dot, psi_ddot = get6(SCALAR, work, of_dof(model, j, PSI_DOT)), get6(SCALAR, work, of_dof(model, j, PSI_DDOT))
    S_dot = get6(SCALAR, work, of_dof(model, j, S_DOT))
    v_X = v_b if on_b else v_a
    a_by_q, a_by_v = sub6(psi_ddot, ad(v_X, psi_dot)), sub6(add6(S_dot, psi_dot), ad(v_X, Sj))
    v, a = (v_a, v_b), (a_a, a_b)
    by_q = relative_variation(
        kind, virtual, C, v, a, on_side(on_b, Sj), on_side(on_b, psi_dot), on_side(on_b, a_by_q))
    by_v = relative_variation(
        kind, virtual, C, v, a, (ZERO6, ZERO6), on_side(on_b, Sj), on_side(on_b, a_by_v))
    return by_q[0], by_q[1], by_v[1]


@inline
def on_side(on_b, V):
    """A pair for the sides (a, b): V on one of them, zero on the other."""
    return scale6(0.0 if on_b else 1.0, V), scale6(1.0 if on_b else 0.0, V)


# ---- in many directions at once (`liedyn.mechanics.tree.tangent_recursion`)


@inline
def side_states(lane, model, work, l):
    """Twists and accelerations of the sides (a, b), two pairs."""
    return side_twists(lane, model, work, l), side_accelerations(lane, model, work, l)


@inline
def side_variations(lane, model, work, variations, l):
    """Displacements of the sides (a, b), and variations of their twists and accelerations as seen from them: pairs."""
    a, b = loop_links(model, l)
    dv_a, da_a = variation_of(variations, a, DV), variation_of(variations, a, DA)
    if has_target(model, l):
        A = loop_frames(lane, model, work, l)[0]
        da_a = add6(da_a, ad(dv_a, Ad(A, get6(SCALAR, model.floats, loop_at(model, l, LOOP_TWIST)))))
    return ((variation_of(variations, a, ETA), variation_of(variations, b, ETA)),
            (dv_a, variation_of(variations, b, DV)), (da_a, variation_of(variations, b, DA)))


@inline
def push_sides(lane, model, l, F, bodies):
    """Add the wrench F of a constraint as G^T lambda does: to side a, and minus F to side b."""
    a, b = loop_links(model, l)
    push_link(lane, bodies, b, F)
    push_link(lane, bodies, a, neg6(F))


@inline
def wrench_variations(model, l, kind, C, F, dF, variations):
    """The variations of such a wrench F, as seen from sides a and b; dF is seen from C."""
    a, b = loop_links(model, l)
    eta_a, eta_b = variation_of(variations, a, ETA), variation_of(variations, b, ETA)
    moved = followed(kind, False, C, sub6(eta_b, eta_a))
    left = sub6(sub6(eta_b, eta_a), moved)
    return neg6(add6(dF, minus_ad_dual(moved, F))), sub6(dF, minus_ad_dual(left, F))
