"""Recursive Newton-Euler: inverse dynamics of a tree (Luh, Walker and Paul 1980; Spencer 2004, A.3).

All vectors of a link are in its own frame: f = (R, p) is its pose in its parent, w its angular velocity, `dw` the rate
of w, `acc` the acceleration of its origin with gravity (the ground accelerates upward), F the wrench transmitted by its
joint. The linear velocity is not needed.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add, add_cross, cross, scale, sub6, symmetric_times, unrotate
from liedyn.lie.turns import back_about_z
from liedyn.machine.compiled.jit import inline, inline_algebra, kernel_in_place
from liedyn.machine.simd.lanes import load, store
from liedyn.machine.simd.sines import put_sines_from, sines_size
from liedyn.mechanics.tree.joint_transforms import (
    BETA, add_gamma, constant_turn, first_angle, origin, vector_to_child, wrench_to_parent,
)
from liedyn.mechanics.tree.joints import (
    accumulate_springs_of_kind, by_kind, dofs_of_kind, pose_by_sines, put_force_of_kind, twist_of_kind,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import REVOLUTE
from liedyn.model.packed_records import (
    accumulate6, armature, first_dof, get3, get6, inertia, link_count, minus_gravity, parent, put3, put6, q_total,
    zero3,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

WORK = 15  # numbers per link on the way to the ground: w, dw, acc (3 each), wrench F (6)
RATES, F = 0, 9


@kernel_in_place
def rnea_size(model):
    """Size of the workspace of `rnea_kernel`."""
    return sines_at(model) + sines_size(q_total(model))


@inline
def sines_at(model):
    return WORK * link_count(model)


@inline_algebra
def swept(w, dw, r):
    """dw x r + w x (w x r): the acceleration of the point r of a body that rotates about the origin."""
    return add_cross(cross(dw, r), w, cross(w, r))


@inline
def rates_in_child(lane, joint, model, i, q, work, rates):
    """w and dw of the parent, and its acceleration acc at the origin of link i, in the axes of link i."""
    (w, dw, acc), at = rates, sines_at(model)
    if joint != REVOLUTE:
        R, p = pose_by_sines(lane, joint, model, i, q, work, at)
        return unrotate(R, w), unrotate(R, dw), unrotate(R, add(acc, swept(w, dw, p)))
    add_gamma(lane, model, i, work, at)
    beta = constant_turn(model, i, BETA)
    if beta[1] != 0.0:
        w, dw, acc = back_about_z(beta, w), back_about_z(beta, dw), back_about_z(beta, acc)
    acc = add(acc, swept(w, dw, origin(lane, model, i)))
    return (vector_to_child(lane, model, i, work, at, w), vector_to_child(lane, model, i, work, at, dw),
            vector_to_child(lane, model, i, work, at, acc))


@inline
def outward(lane, joint, model, i, depth, q, v, a, f_ext, work):
    """Rates of link i, and by Newton and Euler the wrench that causes them."""
    turn, slide = twist_of_kind(lane, joint, model, i, v)
    turn_rate, slide_rate = twist_of_kind(lane, joint, model, i, a)
    if parent(model, i) < 0:
        wp, dwp, accp = zero3(lane), zero3(lane), minus_gravity(lane, model)[1]
    else:
        k = WORK * (depth - 1) + RATES
        wp, dwp, accp = get3(lane, work, k), get3(lane, work, k + 3), get3(lane, work, k + 6)
    w0, dw0, acc0 = rates_in_child(lane, joint, model, i, q, work, (wp, dwp, accp))
    w = add(w0, turn)
    dw = add_cross(add(dw0, turn_rate), w0, turn)
    acc = add_cross(add(acc0, slide_rate), add(w0, w), slide)
    m, h, J = inertia(model, i)
    force = add(scale(m, acc), swept(w, dw, h))
    moment = add_cross(add_cross(symmetric_times(J, dw), h, acc), w, symmetric_times(J, w))
    Fi = (moment, force)
    if f_ext.size > 0:
        Fi = sub6(Fi, get6(lane, f_ext, 6 * i))
    k = WORK * depth + RATES
    put3(lane, work, k, w)
    put3(lane, work, k + 3, dw)
    put3(lane, work, k + 6, acc)
    put6(lane, work, WORK * depth + F, Fi)


@inline
def inward(lane, joint, model, i, depth, q, v, a, work, tau):
    """tau_i = S_i . F_i; then F_i, in the parent's frame, is added to the wrench of the parent."""
    Fi = get6(lane, work, WORK * depth + F)
    put_force_of_kind(lane, joint, model, i, Fi, tau)
    accumulate_springs_of_kind(lane, joint, model, i, q, v, 1.0, tau)
    for j in range(first_dof(model, i), first_dof(model, i) + dofs_of_kind(joint)):
        store(lane, tau, j, load(lane, tau, j) + armature(model, j) * load(lane, a, j))
    if parent(model, i) >= 0:
        Fi = wrench_to_parent(lane, joint, model, i, q, work, sines_at(model), Fi)
        accumulate6(lane, work, WORK * (depth - 1) + F, Fi)


@kernel_in_place
def rnea_kernel(lane, model, q, v, a, f_ext, work, tau):
    """tau = M(q) a + c(q, v) - tau_joint(q, v); f_ext is (6 n) or empty.

    Links are numbered depth first. So the way back from a branch begins at its tip, and only the links from there to
    the ground need storage: little enough for the first-level cache, also in lanes.
    """
    n = link_count(model)
    put_sines_from(lane, q, first_angle(model), q_total(model), work, sines_at(model))
    depth = -1
    for i in range(n):
        depth += 1
        by_kind(outward, lane, model, i, depth, q, v, a, f_ext, work)
        fork = parent(model, i + 1) if i + 1 < n else -1
        k = i
        while k != fork:  # back to the parent of the next link
            by_kind(inward, lane, model, k, depth, q, v, a, work, tau)
            k = parent(model, k)
            depth -= 1


@recursion(rnea_kernel, work=rnea_size, tau="nv")
def rnea(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: Wrenches | None = None,
         out: Array | None = None) -> Array:
    """Inverse dynamics of the open tree by the recursive Newton-Euler algorithm.

    Returns
    -------
    tau : ndarray, shape (..., nv)
        Generalised forces [N m, N] that produce `a`: ``M a + c - tau_joint - J^T f_ext``, joint springs, dampers and
        armatures included. Loops are ignored.

    Notes
    -----
    Featherstone 2008, table 5.1; Spencer 2004, appendix A.3 in body coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> ld.rnea(panda, q, 0 * q, 0 * q).shape
    (7,)
    """
