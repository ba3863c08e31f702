"""Transforms across a joint: twists to the child, wrenches and articulated inertias to the parent.

A link that rotates about its z axis has the pose f = Rz(beta) (Rx(alpha) Rz(gamma + q), r) in its parent: rotations
about coordinate axes, with beta zero for the first child of a link (`liedyn.model.links`). Applied one after another
they take half the operations of the rotation matrix of f. Other joints use f itself.
"""
from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, add_cross
from liedyn.lie.articulated import articulated_in_parent, articulated_shifted
from liedyn.lie.turns import (
    about_x, about_z, articulated_about_x, articulated_about_z, back_about_x, back_about_z, turned,
)
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import integer, load, store
from liedyn.machine.simd.sines import sines_size
from liedyn.mechanics.tree.joints import pose_by_sines
from liedyn.model.packed import FREE, LINK_F, LINK_FLOATS_AT, LINK_SHIFT, LINK_TURNS, REVOLUTE
from liedyn.model.packed_records import constant3, dof_count, first_q, kind, number, q_total

GAMMA, ALPHA, BETA = 0, 2, 4


@inline
def first_angle(model):
    """The first coordinate that may be an angle: those of a free base are not angles."""
    return dof_count(model, 0) + 1 if kind(model, 0) == FREE else 0


@inline
def constant_turn(model, i, angle):
    """Cosine and sine of a constant angle of link i."""
    k = integer(model.ints, LINK_FLOATS_AT) + LINK_F * i + LINK_TURNS + angle
    return number(model, k), number(model, k + 1)


@inline
def origin(lane, model, i):
    """r, the origin of link i, in the axes of its parent rotated by beta."""
    return constant3(lane, model, integer(model.ints, LINK_FLOATS_AT) + LINK_F * i + LINK_SHIFT)


@inline
def joint_turn(lane, model, i, work, at):
    """Cosine and sine stored for the coordinate of link i."""
    k = at + first_q(model, i)
    return load(lane, work, k + sines_size(q_total(model)) // 2), load(lane, work, k)


@inline
def add_gamma(lane, model, i, work, at):
    """Replace cosine and sine of q by those of gamma + q; to be called before the functions below for link i."""
    k = at + first_q(model, i)
    c, s = turned(constant_turn(model, i, GAMMA), *joint_turn(lane, model, i, work, at))
    store(lane, work, k + sines_size(q_total(model)) // 2, c)
    store(lane, work, k, s)


@inline
def vector_to_child(lane, model, i, work, at, a):
    """A vector in the axes of the rotating link i, from the axes of its parent rotated by beta."""
    alpha, turn = constant_turn(model, i, ALPHA), joint_turn(lane, model, i, work, at)
    return back_about_z(turn, back_about_x(alpha, a))


@inline
def twist_to_child(lane, joint, model, i, q, work, at, V):
    """Ad_{f^-1} V: a twist in the coordinates of link i."""
    if joint != REVOLUTE:
        return Ad_inverse(pose_by_sines(lane, joint, model, i, q, work, at), V)
    beta, (w, v) = constant_turn(model, i, BETA), V
    if beta[1] != 0.0:
        w, v = back_about_z(beta, w), back_about_z(beta, v)
    v = add_cross(v, w, origin(lane, model, i))
    return vector_to_child(lane, model, i, work, at, w), vector_to_child(lane, model, i, work, at, v)


@inline
def wrench_to_parent(lane, joint, model, i, q, work, at, F):
    """Ad*_{f^-1} F: a wrench in the coordinates of the parent of link i."""
    if joint != REVOLUTE:
        return Ad_dual_inverse(pose_by_sines(lane, joint, model, i, q, work, at), F)
    beta, alpha = constant_turn(model, i, BETA), constant_turn(model, i, ALPHA)
    turn = joint_turn(lane, model, i, work, at)
    f = about_x(alpha, about_z(turn, F[1]))
    m = add_cross(about_x(alpha, about_z(turn, F[0])), origin(lane, model, i), f)
    if beta[1] != 0.0:
        m, f = about_z(beta, m), about_z(beta, f)
    return m, f


@inline
def inertia_to_parent(lane, joint, model, i, q, work, at, I):
    """Ad*_{f^-1} I Ad_{f^-1}: an articulated inertia in the coordinates of the parent of link i."""
    if joint != REVOLUTE:
        return articulated_in_parent(pose_by_sines(lane, joint, model, i, q, work, at), I)
    beta, alpha = constant_turn(model, i, BETA), constant_turn(model, i, ALPHA)
    I = articulated_about_x(alpha, articulated_about_z(joint_turn(lane, model, i, work, at), I))
    I = articulated_shifted(origin(lane, model, i), I)
    if beta[1] != 0.0:
        I = articulated_about_z(beta, I)
    return I
