"""Motion of the origin of a body in world axes: Jacobian, its rate, and acceleration.

With R the rotation of the body, omega and p' its angular velocity and the velocity of its origin in world axes, and (w,
v) the same in body axes,

    omega = R w      p' = R v      omega' = R w'      p'' = R (v' + w x v)

so that the columns of the body-fixed Jacobian J (`liedyn.mechanics.tree.jacobians`) are rotated, and those of its rate
become R (Jdot_j + w x J_j), with w x applied to both halves.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import Ad_inverse, ad, add, add6, compose, cross, rotate, scale6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import load
from liedyn.mechanics.tree.joints import joint_pose, screw_of_kind
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    body_link, body_placement, dof_count, dof_total, first_dof, kind, parent, put6, put_column, put_zeros, zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@inline
def turned(R, V):
    """Both halves of V in world axes, R V."""
    return rotate(R, V[0]), rotate(R, V[1])


@inline
def get_column(lane, model, J, j):
    """Column j of a matrix of six rows."""
    nv = dof_total(model)
    return ((load(lane, J, j), load(lane, J, nv + j), load(lane, J, 2 * nv + j)),
            (load(lane, J, 3 * nv + j), load(lane, J, 4 * nv + j), load(lane, J, 5 * nv + j)))


@inline
def put_body_jacobian(lane, model, q, b, J):
    """The body-fixed Jacobian of body b, 6 x nv; returns its rotation."""
    nv = dof_total(model)
    put_zeros(lane, J, 6 * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    while i >= 0:
        for d in range(dof_count(model, i)):
            put_column(lane, J, nv, first_dof(model, i) + d,
                       Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d)))
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)
    return X[0]


@kernel_in_place
def world_jacobian_kernel(lane, model, q, b, J):
    """J of the origin of body b in world axes, 6 x nv."""
    R, i = put_body_jacobian(lane, model, q, b, J), body_link(model, b)
    while i >= 0:
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            put_column(lane, J, dof_total(model), j, turned(R, get_column(lane, model, J, j)))
        i = parent(model, i)


@kernel_in_place
def world_jacobian_dot_kernel(lane, model, q, v, b, J_dot):
    """dJ/dt of the origin of body b in world axes for qdot = v, 6 x nv."""
    R = put_body_jacobian(lane, model, q, b, J_dot)
    V, i = zero6(lane), body_link(model, b)
    while i >= 0:
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            V = add6(V, scale6(load(lane, v, j), get_column(lane, model, J_dot, j)))
        i = parent(model, i)
    W, i = zero6(lane), body_link(model, b)  # W: twist of the body relative to link i
    while i >= 0:
        own = zero6(lane)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Jj = get_column(lane, model, J_dot, j)
            own = add6(own, scale6(load(lane, v, j), Jj))
            turns = cross(V[0], Jj[0]), cross(V[0], Jj[1])
            put_column(lane, J_dot, dof_total(model), j, turned(R, add6(ad(Jj, W), turns)))
        W = add6(W, own)
        i = parent(model, i)


@kernel_in_place
def world_acceleration_kernel(lane, model, q, v, a, b, acceleration):
    """Angular acceleration of body b and acceleration of its origin, in world axes, without gravity."""
    X, i = body_placement(lane, model, b), body_link(model, b)
    W, W_dot = zero6(lane), zero6(lane)
    while i >= 0:
        own, own_dot = zero6(lane), zero6(lane)
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            own = add6(own, scale6(load(lane, v, j), Jj))
            own_dot = add6(own_dot, add6(scale6(load(lane, a, j), Jj), scale6(load(lane, v, j), ad(Jj, W))))
        W, W_dot = add6(W, own), add6(W_dot, own_dot)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)
    put6(lane, acceleration, 0, turned(X[0], (W_dot[0], add(W_dot[1], cross(W[0], W[1])))))


@recursion(world_jacobian_kernel, J="6 nv")
def world_jacobian(robot: Robot, q: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Jacobian in world axes: angular velocity of a body, and velocity of its origin, are J v.

    Returns
    -------
    J : ndarray, shape (..., 6, nv)
        Rows (omega, v) [rad/s, m/s per unit of v], in world axes; v is the velocity of the origin of the declared body
        or frame. Zero for a body fixed to the ground.

    Notes
    -----
    The result of `body_jacobian` with both halves rotated into world axes (Pinocchio calls this frame
    LOCAL_WORLD_ALIGNED).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.world_jacobian(panda, panda.home, "panda_hand").shape
    (6, 7)
    """


@recursion(world_jacobian_dot_kernel, J_dot="6 nv")
def world_jacobian_dot(robot: Robot, q: ArrayLike, v: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Time derivative of the Jacobian in world axes.

    Returns
    -------
    J_dot : ndarray, shape (..., 6, nv)
        dJ/dt along the motion, so that `world_acceleration` is ``J a + J_dot v``.

    Notes
    -----
    ``R (Jdot_j + w x J_j)`` of the body-fixed columns and angular velocity (`liedyn.mechanics.tree.world_axes`).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> bool(ld.world_jacobian_dot(panda, panda.home, [0.0] * 7, "panda_hand").any())
    False
    """


@recursion(world_acceleration_kernel, acceleration="6")
def world_acceleration(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, body: str,
                       out: Array | None = None) -> Array:
    """Angular acceleration of a body and linear acceleration of its origin, in world axes.

    Returns
    -------
    acceleration : ndarray, shape (..., 6)
        (alpha, p'') [rad/s^2, m/s^2], without gravity: p'' is the second derivative of the position of the body or
        frame. For a point declared as a frame (`Builder.frame`), a sensor there measures this acceleration minus
        gravity.

    Notes
    -----
    ``R (v' + w x v)`` of the body-fixed twist (w, v) (`liedyn.mechanics.tree.world_axes`).

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder("wheel")
    >>> b.body("wheel", 1.0, inertia=(1, 1, 1))
    >>> b.joint("axle", "revolute", "ground", "wheel")
    >>> b.frame("rim", "wheel", placement=(0.5, 0, 0))
    >>> ld.world_acceleration(b.build(), [0.0], [2.0], [0.0], "rim").tolist()  # towards the axle
    [0.0, 0.0, 0.0, -2.0, 0.0, 0.0]
    """
