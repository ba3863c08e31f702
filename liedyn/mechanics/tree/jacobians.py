"""Body-fixed Jacobians of one body, their rates and their derivatives (Spencer 2004, section 4.4.1).

Spencer's recursions run from the ground to the body and move all columns into each new link. Here the recursion goes
from the body to the ground: every column is computed in the body's own frame at once. With X the pose of the body in
link i, and W_i the twist of the body relative to link i, the sum of J_k v_k over the joints strictly beyond link i,

    J_j = Ad_{X^-1} S_j             dJ_j/dq_k = ad(J_j, J_k) for k strictly beyond link i, else 0
    Jdot_j = ad(J_j, W_i)           Jddot_j = ad(Jdot_j, W_i) + ad(J_j, Wdot_i)

for the degrees of freedom j of joint i. So the columns of a joint depend only on the joints between it and the body,
not on its own position or on the pose of the robot in the world.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import Ad_inverse, ad, add6, compose, scale6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import load
from liedyn.machine.simd.sines import sincos
from liedyn.mechanics.tree.joints import by_kind, dofs_of_kind, joint_pose, pose_of_kind, screw_of_kind
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    body_link, body_placement, dof_count, dof_link, dof_total, first_dof, first_q, get6, kind, parent, parent_dof, put6,
    put_column, put_zeros, zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@inline
def put_columns(lane, joint, model, i, q, X, J):
    """Columns of joint i, for the pose X of the body in link i; returns its pose in the parent, or X at the ground."""
    for d in range(dofs_of_kind(joint)):
        put_column(lane, J, dof_total(model), first_dof(model, i) + d,
                   Ad_inverse(X, screw_of_kind(lane, joint, model, i, d)))
    if parent(model, i) < 0:
        return X
    s, c = sincos(load(lane, q, first_q(model, i)))
    return compose(pose_of_kind(lane, joint, model, i, q, s, c), X)


@kernel_in_place
def body_jacobian_kernel(lane, model, q, b, J):
    """J of body b, 6 x nv."""
    put_zeros(lane, J, 6 * dof_total(model))
    X, i = body_placement(lane, model, b), body_link(model, b)
    while i >= 0:
        X = by_kind(put_columns, lane, model, i, q, X, J)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_dot_kernel(lane, model, q, v, b, J_dot):
    """dJ/dt of body b for qdot = v, 6 x nv."""
    nv = dof_total(model)
    put_zeros(lane, J_dot, 6 * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    W = zero6(lane)
    while i >= 0:
        own = zero6(lane)
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            put_column(lane, J_dot, nv, j, ad(Jj, W))
            own = add6(own, scale6(load(lane, v, j), Jj))
        W = add6(W, own)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_ddot_kernel(lane, model, q, v, a, b, J_ddot):
    """d2J/dt2 of body b for qdot = v, vdot = a, 6 x nv."""
    nv = dof_total(model)
    put_zeros(lane, J_ddot, 6 * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    W, W_dot = zero6(lane), zero6(lane)
    while i >= 0:
        own, own_dot = zero6(lane), zero6(lane)
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            Jj_dot = ad(Jj, W)
            put_column(lane, J_ddot, nv, j, add6(ad(Jj_dot, W), ad(Jj, W_dot)))
            own = add6(own, scale6(load(lane, v, j), Jj))
            own_dot = add6(own_dot, add6(scale6(load(lane, a, j), Jj), scale6(load(lane, v, j), Jj_dot)))
        W, W_dot = add6(W, own), add6(W_dot, own_dot)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_dq_size(model):
    """Size of the workspace of `body_jacobian_dq_kernel`."""
    return 6 * dof_total(model)


@kernel_in_place
def body_jacobian_dq_kernel(lane, model, q, b, work, dJ_dq):
    """dJ/dq of body b, 6 x nv x nv; `work` receives the columns of J, six numbers each."""
    nv = dof_total(model)
    put_zeros(lane, dJ_dq, 6 * nv * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    if i < 0:
        return
    last = first_dof(model, i) + dof_count(model, i) - 1
    while i >= 0:
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            put6(lane, work, 6 * j, Jj)
            k = last
            while dof_link(model, k) != i:
                put_column(lane, dJ_dq, nv * nv, j * nv + k, ad(Jj, get6(lane, work, 6 * k)))
                k = parent_dof(model, k)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@recursion(body_jacobian_kernel, J="6 nv")
def body_jacobian(robot: Robot, q: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Body-fixed Jacobian: the twist of a body, in its own frame, is J v.

    Returns
    -------
    J : ndarray, shape (..., 6, nv)
        Rows (omega, v) [rad/s, m/s per unit of v], in the frame of the body as it was declared; zero for a body fixed
        to the ground.

    Notes
    -----
    Spencer 2004, section 4.4.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.body_jacobian(panda, ld.neutral(panda), panda.body_names[-1]).shape
    (6, 7)
    """


@recursion(body_jacobian_dot_kernel, J_dot="6 nv")
def body_jacobian_dot(robot: Robot, q: ArrayLike, v: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Time derivative of the body-fixed Jacobian.

    Returns
    -------
    J_dot : ndarray, shape (..., 6, nv)
        dJ/dt along the motion: the body's acceleration (d/dt of its twist, without gravity) is ``J a + J_dot v``.

    Notes
    -----
    Spencer 2004, section 4.4.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> J_dot = ld.body_jacobian_dot(panda, q, 0 * q + 1.0, panda.body_names[-1])
    >>> J_dot.shape, bool(ld.body_jacobian_dot(panda, q, 0 * q, panda.body_names[-1]).any())
    ((6, 7), False)
    """


@recursion(body_jacobian_ddot_kernel, J_ddot="6 nv")
def body_jacobian_ddot(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, body: str,
                       out: Array | None = None) -> Array:
    """Second time derivative of the body-fixed Jacobian.

    Returns
    -------
    J_ddot : ndarray, shape (..., 6, nv)

    Notes
    -----
    Spencer 2004, section 4.4.1; the printed recursion has one dot too many in its third and fourth terms, which should
    read ``ad(S v) Ad(f^-1) Jdot_P`` and ``ad(S vdot) J_i``.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> ld.body_jacobian_ddot(panda, q, 0 * q + 1.0, 0 * q, panda.body_names[-1]).shape
    (6, 7)
    """


@recursion(body_jacobian_dq_kernel, work=body_jacobian_dq_size, dJ_dq="6 nv nv")
def body_jacobian_dq(robot: Robot, q: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Derivative of the body-fixed Jacobian with respect to the configuration.

    Returns
    -------
    dJ_dq : ndarray, shape (..., 6, nv, nv)
        ``dJ_dq[:, j, k]`` is the derivative of column j of J along q exp(e_k t): in the tangent space at q, perturbed
        on the right. Zero unless the joint of k lies between the joint of j and the body.

    Notes
    -----
    Spencer 2004, section 4.4.1. ``J_dot = dJ_dq @ v``.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, hand = ld.neutral(panda), panda.body_names[-1]
    >>> v = 0 * q + 1.0
    >>> bool(abs(ld.body_jacobian_dq(panda, q, hand) @ v - ld.body_jacobian_dot(panda, q, v, hand)).max() < 1e-12)
    True
    """
