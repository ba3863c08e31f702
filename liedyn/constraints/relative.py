"""Motion of frame B relative to frame A, and all its derivatives: what every constraint between two bodies is made of.

With v_r = v_b - v_a and a_r the relative twist and acceleration of the two sides in world coordinates (gravity drops
out of a_r), C the frame in which the rows are constant, and v_C = v_a + Pi v_r its twist (Pi keeps the components of
v_r that C follows), the components of v_r in C have the rates of

    a_r - ad(v_C, v_r)

A turn by S_j moves C by zeta_j. Seen from C, twists and accelerations change by delta(x) - ad(zeta_j, x), so that
derivatives need nothing but the vectors S, Psi_dot, Psi_ddot, S_dot of `liedyn.tree.kinematics`, and no third-order
tensor is formed. With s = +1 on the path of b and -1 on that of a, X the side it is on:

    delta v_r = s (Psi_dot_j + ad(S_j, v_X)) - ad(zeta_j, v_r)
    delta a_r = s (Psi_ddot_j - ad(v_X, Psi_dot_j) + ad(S_j, a_X)) - ad(zeta_j, a_r)

A frame A that moves by a target, A(t) = A_0 T(t), is a side of its own: v_a and a_a contain the target's twist W and
its rate, and the formulas stay as they are, because W turns with the link it is attached to.

Only degrees of freedom on exactly one of the two paths to the ground count: what both share moves the pair as a whole.
"""
from liedyn.constraints.records import (
    INLINE, PLANAR, SPHERICAL, UNIVERSAL, has_target, loop_at, loop_frames, loop_links,
)
from liedyn.jit import inline
from liedyn.lie.algebra import Ad, Ad_inverse, ad, add6, scale6, sub6
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import LOOP_RATE, LOOP_TWIST
from liedyn.tree.kinematics import PSI_DDOT, PSI_DOT, S_DOT, S, acceleration_of, of_dof, twist_of
from liedyn.tree.records import dof_count, first_dof, get6, previous_dof


@inline
def last_dof(ints, i):
    """The last degree of freedom of link i, -1 for the ground."""
    if i < 0:
        return -1
    return first_dof(ints, i) + dof_count(ints, i) - 1


@inline
def path_ends(ints, l):
    """The last degrees of freedom of both sides: where `toward_ground` starts."""
    a, b = loop_links(ints, l)
    return last_dof(ints, a), last_dof(ints, b)


@inline
def toward_ground(ints, ja, jb):
    """One step of the two paths to the ground, which have met when ja == jb.

    Parents have smaller numbers than children, so the larger of the two ends is never shared.
    """
    if jb > ja:
        return ja, previous_dof(ints, jb)
    return previous_dof(ints, ja), jb


@inline
def follows_b(kind, virtual, component):
    """Does this component of the relative twist move the frame of the rows along (against side a)?"""
    if kind == UNIVERSAL:
        return component == 0
    if kind == PLANAR:
        return component == 3 or component == 4
    if kind >= INLINE:
        return component >= 3
    return kind == SPHERICAL and (virtual or component >= 3)


@inline
def followed(kind, virtual, C, V):
    """Pi V: the part of a relative twist that moves the frame of the rows."""
    inside = Ad_inverse(C, V)
    w, v = inside
    return Ad(C, ((w[0] if follows_b(kind, virtual, 0) else 0.0, w[1] if follows_b(kind, virtual, 1) else 0.0,
                   w[2] if follows_b(kind, virtual, 2) else 0.0),
                  (v[0] if follows_b(kind, virtual, 3) else 0.0, v[1] if follows_b(kind, virtual, 4) else 0.0,
                   v[2] if follows_b(kind, virtual, 5) else 0.0)))


@inline
def side_twists(ints, floats, work, l):
    """Twists of side a, the link or the moving frame it carries, and of side b."""
    a, b = loop_links(ints, l)
    v_a = twist_of(SCALAR, work, a)
    if has_target(ints, l):
        A = loop_frames(ints, floats, work, l)[0]
        v_a = add6(v_a, Ad(A, get6(SCALAR, floats, loop_at(ints, l, LOOP_TWIST))))
    return v_a, twist_of(SCALAR, work, b)


@inline
def side_accelerations(ints, floats, work, l):
    """Accelerations of side a and of side b, with gravity."""
    a, b = loop_links(ints, l)
    a_a = acceleration_of(SCALAR, floats, work, a)
    if has_target(ints, l):
        A = loop_frames(ints, floats, work, l)[0]
        W = Ad(A, get6(SCALAR, floats, loop_at(ints, l, LOOP_TWIST)))
        W_dot = Ad(A, get6(SCALAR, floats, loop_at(ints, l, LOOP_RATE)))
        a_a = add6(add6(a_a, W_dot), ad(twist_of(SCALAR, work, a), W))
    return a_a, acceleration_of(SCALAR, floats, work, b)


@inline
def relative_twist(ints, floats, work, l, C):
    """Components in C of the twist of b relative to a."""
    v_a, v_b = side_twists(ints, floats, work, l)
    return Ad_inverse(C, sub6(v_b, v_a))


@inline
def relative_rate(ints, floats, work, l, kind, virtual, C):
    """Rates of the components in C of the relative twist."""
    v_a, v_b = side_twists(ints, floats, work, l)
    a_a, a_b = side_accelerations(ints, floats, work, l)
    v_r, a_r = sub6(v_b, v_a), sub6(a_b, a_a)
    v_C = add6(v_a, followed(kind, virtual, C, v_r))
    return Ad_inverse(C, sub6(a_r, ad(v_C, v_r)))


@inline
def relative_screw(ints, work, j, on_b, C):
    """Components in C of the relative twist for a unit velocity of degree of freedom j."""
    x = Ad_inverse(C, get6(SCALAR, work, of_dof(ints, j, S)))
    return scale6(1.0 if on_b else -1.0, x)


@inline
def frame_turn(ints, work, j, on_b, kind, virtual, C):
    """zeta_j: the motion of C for a turn by S_j, in world coordinates."""
    Sj = get6(SCALAR, work, of_dof(ints, j, S))
    zeta = followed(kind, virtual, C, Sj)
    return zeta if on_b else sub6(Sj, zeta)


@inline
def relative_derivatives(ints, work, j, on_b, kind, virtual, C, v_a, v_b, a_a, a_b):
    """Components in C of d(twist)/dq_j, d(rate)/dq_j and d(rate)/dv_j."""
    s = 1.0 if on_b else -1.0
    v_r, a_r = sub6(v_b, v_a), sub6(a_b, a_a)
    v_C = add6(v_a, followed(kind, virtual, C, v_r))
    Sj = get6(SCALAR, work, of_dof(ints, j, S))
    psi_dot, psi_ddot = get6(SCALAR, work, of_dof(ints, j, PSI_DOT)), get6(SCALAR, work, of_dof(ints, j, PSI_DDOT))
    S_dot = get6(SCALAR, work, of_dof(ints, j, S_DOT))
    v_X, a_X = (v_b, a_b) if on_b else (v_a, a_a)
    zeta = frame_turn(ints, work, j, on_b, kind, virtual, C)
    turned_v = add6(psi_dot, ad(Sj, v_X))
    turned_a = add6(sub6(psi_ddot, ad(v_X, psi_dot)), ad(Sj, a_X))
    delta_v_r = sub6(scale6(s, turned_v), ad(zeta, v_r))
    delta_a_r = sub6(scale6(s, turned_a), ad(zeta, a_r))
    delta_v_C = sub6(followed(kind, virtual, C, delta_v_r), ad(zeta, v_a))
    if not on_b:
        delta_v_C = add6(delta_v_C, turned_v)
    by_q = sub6(sub6(delta_a_r, ad(delta_v_C, v_r)), ad(v_C, delta_v_r))
    by_v = sub6(scale6(s, sub6(add6(S_dot, psi_dot), ad(v_X, Sj))), add6(ad(zeta, v_r), ad(v_C, scale6(s, Sj))))
    return Ad_inverse(C, delta_v_r), Ad_inverse(C, by_q), Ad_inverse(C, by_v)
