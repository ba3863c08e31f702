"""The regressor: inverse dynamics as a matrix times inertial parameters (Atkeson, An and Hollerbach 1986).

The wrench that moves a body is linear in its ten parameters pi = (m, h, J): mass, first moment m c and the
rotational inertia about the origin of the body's frame (xx, xy, xz, yy, yz, zz), all in the body's own axes. With w its
angular velocity, `dw` the rate of that and `acc` the acceleration of its origin with gravity,

    force  = m acc + dw x h + w x (w x h)
    moment = h x acc + J dw + w x (J w)

A degree of freedom with screw S = (s, u), in the frame of a body that it carries, has the force S . (moment, force). So
the ten entries of the regressor for a degree of freedom and a body follow without a matrix:

    of m:   u . acc
    of h:   u x dw + w x (w x u) + acc x s
    of J:   the coefficients of J in  s . (J dw) + (s x w) . (J w)

Screws and motions of the links are those of `liedyn.mechanics.tree.kinematics`, transformed to the body.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import Ad_inverse, add, add_cross, cross, dot
from liedyn.machine.compiled.jit import inline, inline_algebra, kernel_in_place
from liedyn.machine.simd.lanes import store
from liedyn.mechanics.tree.kinematics import S, acceleration_of, body_pose, of_dof, twist_of, world_motion, world_size
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    body_count, body_link, dof_count, dof_total, first_dof, get6, parent_dof, put3, put_symmetric, put_zeros,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

PARAMETERS = 10  # of a body: m, m c (3), J (xx, xy, xz, yy, yz, zz)


@kernel_in_place
def regressor_size(model):
    """Size of the workspace of the kernels here."""
    return world_size(model)


@inline_algebra
def mixed(a, b, c, d):
    """The coefficients of J = (xx, xy, xz, yy, yz, zz) in a . (J b) + c . (J d)."""
    return (a[0] * b[0] + c[0] * d[0],
            a[0] * b[1] + a[1] * b[0] + c[0] * d[1] + c[1] * d[0],
            a[0] * b[2] + a[2] * b[0] + c[0] * d[2] + c[2] * d[0],
            a[1] * b[1] + c[1] * d[1],
            a[1] * b[2] + a[2] * b[1] + c[1] * d[2] + c[2] * d[1],
            a[2] * b[2] + c[2] * d[2])


@inline
def body_motion(lane, model, work, b):
    """w, dw and, at the origin of body b, acc, in its own axes; and its pose."""
    X, i = body_pose(lane, model, work, b), body_link(model, b)
    w, u = Ad_inverse(X, twist_of(lane, work, i))
    dw, rate = Ad_inverse(X, acceleration_of(lane, model, work, i))
    return X, w, dw, add_cross(rate, w, u)


@inline
def put_row(lane, Y, k, screw, w, dw, acc):
    """The ten entries for one degree of freedom and one body, to Y[k:]."""
    s, u = screw
    store(lane, Y, k, dot(u, acc))
    put3(lane, Y, k + 1, add(add_cross(cross(u, dw), w, cross(w, u)), cross(acc, s)))
    put_symmetric(lane, Y, k + 4, mixed(s, dw, cross(s, w), w))


@kernel_in_place
def regressor_nonzeros(lane, model, q, v, a, work, Y):
    """Entries of Y where a degree of freedom carries a body; others are not changed."""
    world_motion(lane, model, q, v, a, work)
    columns = PARAMETERS * body_count(model)
    for b in range(body_count(model)):
        i = body_link(model, b)
        if i < 0:
            continue
        X, w, dw, acc = body_motion(lane, model, work, b)
        j = first_dof(model, i) + dof_count(model, i) - 1
        while j >= 0:
            screw = Ad_inverse(X, get6(lane, work, of_dof(model, j, S)))
            put_row(lane, Y, j * columns + PARAMETERS * b, screw, w, dw, acc)
            j = parent_dof(model, j)


@kernel_in_place
def regressor_kernel(lane, model, q, v, a, work, Y):
    """Y (nv, 10 nbodies) with M a + c = Y pi, except for armatures, springs and dampers of joints."""
    put_zeros(lane, Y, dof_total(model) * PARAMETERS * body_count(model))
    regressor_nonzeros(lane, model, q, v, a, work, Y)


@recursion(regressor_kernel, work=regressor_size, nonzeros=regressor_nonzeros, Y="nv nbodies 10")
def inertial_regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Array | None = None) -> Array:
    """Regressor Y of inverse dynamics of the open tree, which is linear in the inertial parameters of all bodies.

    Returns
    -------
    Y : ndarray, shape (..., nv, nbodies, 10)
        ``Y[..., j, b, :]`` is the derivative of the force of degree of freedom j by the ten `inertial_parameters` of
        body b: its mass m [kg], its first moment m c [kg m] and its rotational inertia xx, xy, xz, yy, yz, zz about the
        origin of its frame [kg m^2], all in the axes of that frame. The sum of products with all parameters is `rnea`,
        except for armatures, springs and dampers of the joints. Zero for bodies that the degree of freedom does not
        carry.

    Notes
    -----
    Atkeson, An and Hollerbach 1986, eq. 9-16: the order is theirs. Pinocchio has xx, xy, yy, xz, yz, zz, Khalil and
    Dombre have J first, then m c and m.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v, a = ld.neutral(panda), [0.1] * 7, [1.0] * 7
    >>> Y = ld.inertial_regressor(panda, q, v, a)
    >>> tau = (Y * ld.inertial_parameters(panda)).sum(axis=(-2, -1))
    >>> Y.shape, bool(abs(tau - ld.rnea(panda, q, v, a)).max() < 1e-12)
    ((7, 13, 10), True)
    """
