"""Centroidal momentum matrix, which maps velocities to the momentum about the centre of mass; and its rate.

With I_j the composite inertia that joint j carries and S_j its screw, both about one point and in world axes, a unit of
v_j has the momentum (n, f) = I_j S_j. About the centre of mass c that is (n - c x f, f), column j of A_G (Orin, Goswami
and Lee 2013). Its rate needs

    d/dt (I_j S_j) = I_j S_dot_j + I_dot_j S_j

where the rate of an inertia (m, h, J) about a fixed point is (0, P, 2 tr(D) 1 - D - D^T), with
D = sum m rdot r^T and P the linear momentum: ten numbers like the inertia itself, which add up over bodies.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add, add6, cross, inertia_in_parent, inertia_times, scale, sub
from liedyn.lie.coriolis import coriolis_moments
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import splat
from liedyn.mechanics.tree.crba import INERTIA, RECORD, add_up_inward, composite_at, composite_inertias, crba_size
from liedyn.mechanics.tree.energy import mass_of_links, refuse_massless
from liedyn.mechanics.tree.kinematics import S, S_DOT, of_dof, twist_of, world_pose, world_velocities
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    dof_link, dof_total, get3, get6, get_inertia, inertia, link_count, parent, put_column, put_inertia, zero3,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@kernel_in_place
def centroidal_size(model):
    """Size of the workspace of the kernels here: that of `composite_inertias`, then their rates."""
    return rate_at(model, link_count(model))


@inline
def rate_at(model, i):
    """Index in the workspace of the rate of the composite inertia of link i."""
    return crba_size(model) + INERTIA * i


@inline
def mean(lane, model, base, step, work):
    """The centre of mass from composite inertias at work[base + step * i]; from their rates, its velocity."""
    moment = zero3(lane)
    for i in range(link_count(model)):
        if parent(model, i) < 0:
            moment = add(moment, get3(lane, work, base + step * i + 1))
    return scale(1.0 / mass_of_links(model), moment)


@inline
def rate_of_inertia(lane, I, V):
    """(0, P, 2 tr(D) 1 - D - D^T) of a rigid body with twist V."""
    D, P = coriolis_moments(I, V)
    return splat(lane, 0.0), P, (2.0 * (D[4] + D[8]), -D[1] - D[3], -D[2] - D[6], 2.0 * (D[0] + D[8]), -D[5] - D[7],
                                 2.0 * (D[0] + D[4]))


@kernel_in_place
def centroidal_momentum_matrix_kernel(lane, model, q, work, A_G):
    """A_G, 6 x nv."""
    composite_inertias(lane, model, q, work)
    com = mean(lane, model, composite_at(model, 0), RECORD, work)
    for j in range(dof_total(model)):
        n, f = inertia_times(get_inertia(lane, work, composite_at(model, dof_link(model, j))),
                             get6(lane, work, of_dof(model, j, S)))
        put_column(lane, A_G, dof_total(model), j, (sub(n, cross(com, f)), f))


@kernel_in_place
def centroidal_momentum_matrix_dot_kernel(lane, model, q, v, work, A_G_dot):
    """dA_G/dt for qdot = v, 6 x nv."""
    composite_inertias(lane, model, q, work)
    world_velocities(lane, model, v, work)
    for i in range(link_count(model)):
        I = inertia_in_parent(world_pose(lane, work, i), inertia(model, i))
        put_inertia(lane, work, rate_at(model, i), rate_of_inertia(lane, I, twist_of(lane, work, i)))
    add_up_inward(lane, model, rate_at(model, 0), INERTIA, INERTIA, work)
    com = mean(lane, model, composite_at(model, 0), RECORD, work)
    com_dot = mean(lane, model, rate_at(model, 0), INERTIA, work)
    for j in range(dof_total(model)):
        i, Sj = dof_link(model, j), get6(lane, work, of_dof(model, j, S))
        I = get_inertia(lane, work, composite_at(model, i))
        f = inertia_times(I, Sj)[1]
        n_dot, f_dot = add6(inertia_times(I, get6(lane, work, of_dof(model, j, S_DOT))),
                            inertia_times(get_inertia(lane, work, rate_at(model, i)), Sj))
        n_dot = sub(n_dot, add(cross(com_dot, f), cross(com, f_dot)))
        put_column(lane, A_G_dot, dof_total(model), j, (n_dot, f_dot))


@recursion(centroidal_momentum_matrix_kernel, work=centroidal_size, refuse={"massless": refuse_massless}, A_G="6 nv")
def centroidal_momentum_matrix(robot: Robot, q: ArrayLike, out: Array | None = None) -> Array:
    """Centroidal momentum matrix A_G: the momentum about the centre of mass, in world axes, is A_G v.

    Returns
    -------
    A_G : ndarray, shape (..., 6, nv)
        Rows (angular about the centre of mass, linear), the angular ones first [kg m^2/s, kg m/s per unit of v]. The
        axes are those of the world for any pose of the robot. ``A_G @ v`` is `momentum`; the last three rows, divided
        by the total mass, are the Jacobian of the centre of mass. Joint armatures are not included.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no moving body has mass.

    Notes
    -----
    Orin, Goswami and Lee 2013, Autonomous Robots 35, from composite inertias in world axes.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = ld.neutral(panda), [1.0] * 7
    >>> bool(abs(ld.centroidal_momentum_matrix(panda, q) @ v - ld.momentum(panda, q, v)).max() < 1e-12)
    True
    """


@recursion(centroidal_momentum_matrix_dot_kernel, work=centroidal_size, refuse={"massless": refuse_massless},
           A_G_dot="6 nv")
def centroidal_momentum_matrix_dot(robot: Robot, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> Array:
    """Time derivative of the centroidal momentum matrix.

    Returns
    -------
    A_G_dot : ndarray, shape (..., 6, nv)
        dA_G/dt along the motion, rows as in `centroidal_momentum_matrix`: ``A_G a + A_G_dot v``, the rate of the
        momentum, is the sum of all external wrenches about the centre of mass, with the weight (0, m g).

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no moving body has mass.

    Notes
    -----
    The reference point of the momenta moves with the centre of mass. Exact, from the rates of composite inertias, which
    add up as the inertias do.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = ld.neutral(panda), [1.0] * 7
    >>> ld.centroidal_momentum_matrix_dot(panda, q, v).shape
    (6, 7)
    """
