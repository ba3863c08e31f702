"""Coriolis matrix: C(q, v) v are the forces of velocity, and dM/dt = C + C^T.

With I_j, B_j the composite inertia and Coriolis matrix of all links that joint j carries, for every degree of freedom i
on the way from j to the ground, or of the same joint,

    C_ij = S_i . (I_j S_dot_j + B_j S_j)        C_ji = S_j . (I_j S_dot_i + B_j S_i)

with B (w, u) = (tr(D) w - D w, w x P) of `liedyn.lie.coriolis`: B V = V x* I V for the link's own twist V, and
B + B^T = dI/dt, from which both properties of C follow (Niemeyer and Slotine 1991; Echeandia and Wensing 2021).
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import dot, dot6, inertia_in_parent, inertia_times
from liedyn.lie.coriolis import add_coriolis, coriolis_moments, coriolis_transpose_times
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import splat, store
from liedyn.mechanics.tree.crba import INERTIA, add_up_inward
from liedyn.mechanics.tree.kinematics import (
    S, S_DOT, of_dof, twist_of, world_pose, world_positions, world_size, world_velocities,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    dof_count, dof_total, first_dof, get3, get6, get9, get_inertia, inertia, link_count, parent_dof, put3, put_inertia,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

D, P, NUMBERS = INERTIA, INERTIA + 9, INERTIA + 12
"""Numbers of a link beyond the shared workspace: composite inertia, D, P."""


@kernel_in_place
def coriolis_size(model):
    """Size of the workspace of `coriolis_matrix_kernel`."""
    return composite_at(model, link_count(model))


@inline
def composite_at(model, i):
    """Index in the workspace of the composite inertia, D and P of link i."""
    return world_size(model) + NUMBERS * i


@inline
def put_moments(lane, work, k, B):
    """Write D and P."""
    d, p = B
    put3(lane, work, k + D, d[:3])
    put3(lane, work, k + D + 3, d[3:6])
    put3(lane, work, k + D + 6, d[6:])
    put3(lane, work, k + P, p)


@kernel_in_place
def coriolis_matrix_kernel(lane, model, q, v, work, C):
    """C, nv x nv."""
    world_positions(lane, model, q, work)
    world_velocities(lane, model, v, work)
    for i in range(link_count(model)):
        I = inertia_in_parent(world_pose(lane, work, i), inertia(model, i))
        put_inertia(lane, work, composite_at(model, i), I)
        put_moments(lane, work, composite_at(model, i), coriolis_moments(I, twist_of(lane, work, i)))
    add_up_inward(lane, model, composite_at(model, 0), NUMBERS, NUMBERS, work)
    nv = dof_total(model)
    for k in range(nv * nv):
        store(lane, C, k, splat(lane, 0.0))
    for i in range(link_count(model)):
        at, first = composite_at(model, i), first_dof(model, i)
        I, B = get_inertia(lane, work, at), (get9(lane, work, at + D), get3(lane, work, at + P))
        for j in range(first, first + dof_count(model, i)):
            Sj = get6(lane, work, of_dof(model, j, S))
            column = add_coriolis(inertia_times(I, get6(lane, work, of_dof(model, j, S_DOT))), B, Sj[0])
            carried, moment = inertia_times(I, Sj), coriolis_transpose_times(B, Sj)
            for k in range(first, first + dof_count(model, i)):
                store(lane, C, k * nv + j, dot6(column, get6(lane, work, of_dof(model, k, S))))
            k = parent_dof(model, first)
            while k >= 0:
                Sk, Sk_dot = get6(lane, work, of_dof(model, k, S)), get6(lane, work, of_dof(model, k, S_DOT))
                store(lane, C, k * nv + j, dot6(column, Sk))
                store(lane, C, j * nv + k, dot6(carried, Sk_dot) + dot(moment, Sk[0]))
                k = parent_dof(model, k)


@recursion(coriolis_matrix_kernel, work=coriolis_size, C="nv nv")
def coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> Array:
    """Coriolis matrix C(q, v) of the open tree: C v are the forces of velocity, and dM/dt - 2 C is skew-symmetric.

    Adaptive and passivity-based controllers need this matrix, of another velocity than it was computed with: ``C @
    v_reference``.

    Returns
    -------
    C : ndarray, shape (..., nv, nv)
        ``M a + C v + g = tau + tau_joint``, with M of `crba`, g the gravity, and tau_joint the joints' own springs and
        dampers. Of all matrices with this C v, one with ``dM/dt = C + C^T`` exactly, along the motion v; for joints of
        one degree of freedom the one of Christoffel's symbols.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Echeandia and Wensing 2021, ASME J. Computational and Nonlinear Dynamics 16(9), for any joint; factorisation of each
    body after Niemeyer and Slotine 1991.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = panda.home, [1.0] * 7
    >>> C, still = ld.coriolis_matrix(panda, q, v), [0.0] * 7
    >>> bool(abs(C @ v - ld.rnea(panda, q, v, still) + ld.rnea(panda, q, still, still)).max() < 1e-12)
    True
    """
