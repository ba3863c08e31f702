"""Momenta of a tree and their rates: the dynamics without accelerations.

The momentum of joint j is p_j = S_j . h_i, with h_i the sum of I_k V_k over the links k that it carries. By Newton and
Euler, the rate of h_i is the sum of the wrenches on these links, including that of the joint. S_j is fixed in its link
i, so it moves with the twist V_i of that link, and

    p = M v        pdot_j = tau_j + S_j . w_i + ad(V_i, S_j) . h_i

with w_i the weight of the links beyond j, external wrenches included. For one coordinate ad(V, S) . h is dT/dq_j, and
these are Hamilton's equations; for the quasi-velocities of ball and free joints the term accounts for the rotating
axes, and they are those of Poincare (1901) and Hamel (1904).

An armature adds its momentum b_j v_j to p_j. All vectors of a link are in its own frame, as in
`liedyn.mechanics.tree.rnea`.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add6, cross, inertia_times, minus_ad_dual, neg, scale, sub6, unrotate
from liedyn.lie.turns import back_about_z
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import load, store
from liedyn.machine.simd.sines import put_sines_from, sines_size
from liedyn.mechanics.tree.joint_transforms import (
    BETA, add_gamma, constant_turn, first_angle, twist_to_child, vector_to_child, wrench_to_parent,
)
from liedyn.mechanics.tree.joints import (
    accumulate_springs_of_kind, by_kind, dofs_of_kind, pose_by_sines, put_force_of_kind, twist_of_kind,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import REVOLUTE
from liedyn.model.packed_records import (
    accumulate6, armature, first_dof, get3, get6, inertia, link_count, minus_gravity, parent, put3, put6, q_total,
    zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

WORK = 21  # numbers per link on the way to the ground: twist V (6), upward acceleration (3), h (6), w (6)
V, UP, MOMENTUM, WRENCH = 0, 6, 9, 15


@kernel_in_place
def momentum_size(model):
    """Size of the workspace of `momentum_terms_kernel`."""
    return sines_at(model) + sines_size(q_total(model))


@inline
def sines_at(model):
    return WORK * link_count(model)


@inline
def up_in_child(lane, joint, model, i, q, work, up):
    """The upward acceleration in the axes of link i, from the axes of its parent; after `add_gamma`."""
    if joint != REVOLUTE:
        return unrotate(pose_by_sines(lane, joint, model, i, q, work, sines_at(model))[0], up)
    beta = constant_turn(model, i, BETA)
    if beta[1] != 0.0:
        up = back_about_z(beta, up)
    return vector_to_child(lane, model, i, work, sines_at(model), up)


@inline
def outward(lane, joint, model, i, depth, q, v, f_ext, work):
    """Twist, momentum and wrench of link i alone."""
    if joint == REVOLUTE:
        add_gamma(lane, model, i, work, sines_at(model))
    k = WORK * depth
    if parent(model, i) < 0:
        Vi, up = zero6(lane), minus_gravity(lane, model)[1]
    else:
        Vi = twist_to_child(lane, joint, model, i, q, work, sines_at(model), get6(lane, work, k - WORK + V))
        up = get3(lane, work, k - WORK + UP)
    Vi = add6(Vi, twist_of_kind(lane, joint, model, i, v))
    up = up_in_child(lane, joint, model, i, q, work, up)
    m, h, _ = inertia(model, i)
    weight = neg(cross(h, up)), neg(scale(m, up))
    if f_ext.size > 0:
        weight = add6(weight, get6(lane, f_ext, 6 * i))
    put6(lane, work, k + V, Vi)
    put3(lane, work, k + UP, up)
    put6(lane, work, k + MOMENTUM, inertia_times(inertia(model, i), Vi))
    put6(lane, work, k + WRENCH, weight)


@inline
def inward(lane, joint, model, i, depth, q, v, work, momenta, forces):
    """Momentum and force of joint i from those beyond it, which are then transformed to the parent and added there."""
    k = WORK * depth
    carried, wrench = get6(lane, work, k + MOMENTUM), get6(lane, work, k + WRENCH)
    put_force_of_kind(lane, joint, model, i, carried, momenta)
    put_force_of_kind(lane, joint, model, i, sub6(wrench, minus_ad_dual(get6(lane, work, k + V), carried)), forces)
    accumulate_springs_of_kind(lane, joint, model, i, q, v, -1.0, forces)
    for j in range(first_dof(model, i), first_dof(model, i) + dofs_of_kind(joint)):
        store(lane, momenta, j, load(lane, momenta, j) + armature(model, j) * load(lane, v, j))
    if parent(model, i) >= 0:
        at = sines_at(model)
        accumulate6(lane, work, k - WORK + MOMENTUM, wrench_to_parent(lane, joint, model, i, q, work, at, carried))
        accumulate6(lane, work, k - WORK + WRENCH, wrench_to_parent(lane, joint, model, i, q, work, at, wrench))


@kernel_in_place
def momentum_terms_kernel(lane, model, q, v, f_ext, work, momenta, forces):
    """momenta = M v, and forces with pdot = tau + forces on the open tree; f_ext is (6 n) or empty.

    Links are numbered depth first, as in `rnea_kernel`.
    """
    n = link_count(model)
    put_sines_from(lane, q, first_angle(model), q_total(model), work, sines_at(model))
    depth = -1
    for i in range(n):
        depth += 1
        by_kind(outward, lane, model, i, depth, q, v, f_ext, work)
        fork = parent(model, i + 1) if i + 1 < n else -1
        k = i
        while k != fork:  # back to the parent of the next link
            by_kind(inward, lane, model, k, depth, q, v, work, momenta, forces)
            k = parent(model, k)
            depth -= 1


@recursion(momentum_terms_kernel, work=momentum_size, momenta="nv", forces="nv")
def momentum_terms(robot: Robot, q: ArrayLike, v: ArrayLike, f_ext: Wrenches | None = None,
                   out: Array | None = None) -> tuple[Array, Array]:
    """Momenta of the open tree, and the forces besides tau that change them: the dynamics without accelerations.

    Returns
    -------
    momenta : ndarray, shape (..., nv)
        ``p = M v`` [kg m^2/s, kg m/s], joint armatures included.
    forces : ndarray, shape (..., nv)
        ``pdot = tau + forces - G^T lam`` [N m, N]: dT/dq, weight, joint springs and dampers, external wrenches; for
        ball and free joints, whose velocities are body-fixed, also the term of their rotating axes.

    Notes
    -----
    Hamilton's equations for joints of one coordinate, those of Poincare (1901) and Hamel (1904) for ball and free
    joints, by one recursion of link momenta; see `liedyn.mechanics.tree.momenta`.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = ld.neutral(panda), [1.0] * 7
    >>> p, forces = ld.momentum_terms(panda, q, v)
    >>> bool(abs(p - ld.crba(panda, q) @ v).max() < 1e-12)
    True
    """
