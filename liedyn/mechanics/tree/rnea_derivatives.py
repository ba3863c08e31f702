"""Derivatives of inverse dynamics, with M as a by-product, in one pass: closed forms for any joint.

Singh, Russell and Wensing 2022 (IEEE RA-L 7(2), eq. 25-28), world coordinates. With I, B, F the composite inertia,
Coriolis matrix and wrench of all links that joint j carries, for every degree of freedom i on the way from j to the
ground:

  dtau_i/dq_j = S_i . (I Psi_ddot_j + 2 B Psi_dot_j + S_j x* F)  dtau_j/dq_i = S_j . (I Psi_ddot_i + 2 B Psi_dot_i)
  dtau_i/dv_j = S_i . (2 B S_j + I (Psi_dot_j + S_dot_j))        dtau_j/dv_i = S_j . (2 B S_i + I (Psi_dot_i + S_dot_i))
  M_ij = S_i . I S_j

Within one joint the term in F is absent, as its screws rotate with the wrench. B needs only 12 numbers, not 36: with
D = sum m rdot r^T over all particles and P the linear momentum, B (w, v) = (tr(D) w - D w, w x P).
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import Ad_dual_inverse, add6, dot, dot6, inertia_in_parent, inertia_times, minus_ad_dual, sub6
from liedyn.lie.coriolis import add_coriolis, contribution, coriolis_moments
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import store
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.machine.simd.strided import chosen_records_at_once, constants_at_once, put_records_at_once, records_at_once
from liedyn.mechanics.tree.crba import CARRIED, SCREW, add_armatures, inertia_rows
from liedyn.mechanics.tree.derivatives_walk import walk_states
from liedyn.mechanics.tree.joints import accumulate_joint_derivatives
from liedyn.mechanics.tree.kinematics import (
    ACCELERATION, DOF, LINK, POSE, PSI_DDOT, PSI_DOT, S, S_DOT, TWIST, of_dof, of_link, world_motion,
    world_size,
)
from liedyn.mechanics.tree.poses import as_world_pose
from liedyn.mechanics.tree.rows import (
    Entries, clear, clear_in_trees, clear_lanes, clear_squares, leave, leave_squares, of_next3, of_next6, of_one3,
    of_one6, put_ends, put_next3, put_next6, put_rows, table_in, table_size,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import DOF_I, LINK_F
from liedyn.model.packed_records import (
    as_inertia, as_twist, dof_count, dof_link_at, dof_total, first_dof, get3, get6, get9, get_inertia, inertia_at,
    last_of_joint, link_count, parent, parent_dof,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

# numbers per link beyond the shared workspace, in whole registers: composite inertia, then D, P, then the wrench F
COMPOSITE, D, P, F, NUMBERS = 32, 10, 19, 22, 28
# rows of the table after those of M: the end of the dofs that a dof carries, then its contributions to the rows of
# those beyond it, and of those that carry it
ENDS, PSI_DOT_TURN, PSI_DDOTS, S_RATES, BELOW, BY_Q, BY_V, TABLE = 12, 13, 16, 22, 28, 31, 37, 43


@kernel_in_place
def derivatives_size(model):
    """Size of the workspace of `rnea_derivatives_kernel`."""
    return world_size(model) + COMPOSITE * link_count(model) + table_size(model, TABLE)


@inline
def derivatives_table(lane, model, work):
    """Index of the table in the workspace of `rnea_derivatives_kernel`."""
    return table_in(lane, work, world_size(model) + COMPOSITE * link_count(model))


@inline
def put_body_dynamics(lane, model, f_ext, i, k, work):
    """Inertia, D, P and wrench of link i and the following ones, each alone, in world coordinates, to work[k:]."""
    last = link_count(model) - 1 - i
    link = records_at_once(lane, work, of_link(i, POSE), LINK, last, LINK)
    X, V, A = as_world_pose(link), as_twist(link, TWIST), as_twist(link, ACCELERATION)
    own = as_inertia(constants_at_once(lane, model.floats, inertia_at(model, i), LINK_F, last, D))
    m, h, J = I = inertia_in_parent(X, own)
    B = coriolis_moments(I, V)
    wrench = add_coriolis(inertia_times(I, A), B, V[0])  # B V = V x* I V
    if f_ext.size > 0:
        wrench = sub6(wrench, Ad_dual_inverse(X, as_twist(records_at_once(lane, f_ext, 6 * i, 6, last, 6), 0)))
    (d, p), (n, f) = B, wrench
    put_records_at_once(lane, work, k, COMPOSITE, last, (m,) + h + J + d + p + n + f)


@kernel_in_place
def composites(lane, model, f_ext, work):
    """Inertia, D, P and wrench of all links that each joint carries; needs positions, velocities and accelerations."""
    n, base = link_count(model), world_size(model)
    for i in range(0, n, at_once(lane)):
        put_body_dynamics(lane, model, f_ext, i, base + COMPOSITE * i, work)
    for i in range(n - 1, -1, -1):
        if parent(model, i) >= 0:
            c, up = base + COMPOSITE * i, base + COMPOSITE * parent(model, i)
            for k in range(0, NUMBERS, at_once(lane)):
                x = load_at_once(lane, work, up + k, COMPOSITE - k) + load_at_once(lane, work, c + k, COMPOSITE - k)
                store_at_once(lane, work, up + k, COMPOSITE - k, x)


@inline
def derivative_pairs(lane, model, work, tau, dtau_dq, dtau_dv, M):
    """tau, and all nonzero entries, pair by pair: in lanes the data loaded for a pair serve five entries."""
    n, nv = link_count(model), dof_total(model)
    for i in range(n - 1, -1, -1):
        c = world_size(model) + COMPOSITE * i
        I, wrench = get_inertia(lane, work, c), get6(lane, work, c + F)
        B = (get9(lane, work, c + D), get3(lane, work, c + P))
        first, end = first_dof(model, i), first_dof(model, i) + dof_count(model, i)
        for j in range(first, end):
            Sj, psi_dot = get6(lane, work, of_dof(model, j, S)), get6(lane, work, of_dof(model, j, PSI_DOT))
            psi_ddot = get6(lane, work, of_dof(model, j, PSI_DDOT))
            S_rate = add6(psi_dot, get6(lane, work, of_dof(model, j, S_DOT)))
            carried = inertia_times(I, Sj)
            by_q, by_v, below = contribution(I, B, Sj, psi_dot[0], psi_ddot, S_rate)
            store(lane, tau, j, dot6(wrench, Sj))
            for k in range(first, end):
                Sk = get6(lane, work, of_dof(model, k, S))
                store(lane, dtau_dq, k * nv + j, dot6(by_q, Sk))
                store(lane, dtau_dv, k * nv + j, dot6(by_v, Sk))
                store(lane, M, k * nv + j, dot6(carried, Sk))
            by_q = add6(by_q, minus_ad_dual(Sj, wrench))
            k = parent_dof(model, first)
            while k >= 0:
                Sk, Sk_dot = get6(lane, work, of_dof(model, k, S)), get6(lane, work, of_dof(model, k, S_DOT))
                psk_dot = get6(lane, work, of_dof(model, k, PSI_DOT))
                psk_ddot = get6(lane, work, of_dof(model, k, PSI_DDOT))
                inertia_kj = dot6(carried, Sk)
                store(lane, dtau_dq, k * nv + j, dot6(by_q, Sk))
                store(lane, dtau_dv, k * nv + j, dot6(by_v, Sk))
                store(lane, dtau_dq, j * nv + k, dot(below, psk_dot[0]) + dot6(carried, psk_ddot))
                store(lane, dtau_dv, j * nv + k, dot(below, Sk[0]) + dot6(carried, add6(psk_dot, Sk_dot)))
                store(lane, M, k * nv + j, inertia_kj)
                store(lane, M, j * nv + k, inertia_kj)
                k = parent_dof(model, k)


@kernel_in_place
def contributions(lane, model, work, tau):
    """tau, and the table of each degree of freedom's contributions to entries of others; from the `composites`."""
    table = derivatives_table(lane, model, work)
    for j in range(0, dof_total(model), at_once(lane)):
        last = dof_total(model) - 1 - j
        beyond = chosen_records_at_once(
            lane, work, world_size(model), COMPOSITE, model.ints, dof_link_at(model, j), DOF_I, last, NUMBERS)
        I, wrench = as_inertia(beyond), as_twist(beyond, F)
        B = beyond[D:P], beyond[P:F]
        moved = records_at_once(lane, work, of_dof(model, j, S), DOF, last, DOF)
        Sj, psi_dot = as_twist(moved, S), as_twist(moved, PSI_DOT)
        psi_ddot, S_rate = as_twist(moved, PSI_DDOT), add6(psi_dot, as_twist(moved, S_DOT))
        by_q, by_v, below = contribution(I, B, Sj, psi_dot[0], psi_ddot, S_rate)
        put_next6(lane, model, work, table, SCREW, j, Sj)
        put_next6(lane, model, work, table, CARRIED, j, inertia_times(I, Sj))
        put_next3(lane, model, work, table, PSI_DOT_TURN, j, psi_dot[0])
        put_next6(lane, model, work, table, PSI_DDOTS, j, psi_ddot)
        put_next6(lane, model, work, table, S_RATES, j, S_rate)
        put_next3(lane, model, work, table, BELOW, j, below)
        put_next6(lane, model, work, table, BY_Q, j, add6(by_q, minus_ad_dual(Sj, wrench)))
        put_next6(lane, model, work, table, BY_V, j, by_v)
        store_at_once(lane, tau, j, last + 1, dot6(wrench, Sj))
    put_ends(lane, model, work, table, ENDS)


@inline
def own_contributions(lane, model, work, table, i):
    """S_i, I S_i, and the moment part of 2 B^T S_i, whose force part is zero."""
    return (of_one6(lane, model, work, table, SCREW, i), of_one6(lane, model, work, table, CARRIED, i),
            of_one3(lane, model, work, table, BELOW, i))


@inline
def contributions_by_q(lane, model, work, table, j):
    """Contributions of j and the following ones, a register of each, to dtau/dq_j: angular part, twist, wrench."""
    return (of_next3(lane, model, work, table, PSI_DOT_TURN, j), of_next6(lane, model, work, table, PSI_DDOTS, j),
            of_next6(lane, model, work, table, BY_Q, j))


@inline
def contributions_by_v(lane, model, work, table, j):
    """Contributions of j and the following ones, a register of each, to dtau/dv_j: angular part, twist, wrench."""
    return (of_next3(lane, model, work, table, SCREW, j), of_next6(lane, model, work, table, S_RATES, j),
            of_next6(lane, model, work, table, BY_V, j))


@inline
def derivative_carried(own, columns):
    """dtau_i/dq_j or dtau_i/dv_j where j carries i."""
    _, carried, below = own
    turn, twist, _ = columns
    return dot(below, turn) + dot6(carried, twist)


@inline
def derivative_carrying(own, columns):
    """dtau_i/dq_j or dtau_i/dv_j where i carries j."""
    return dot6(columns[2], own[0])


@inline
def put_derivative_rows(lane, model, work, elsewhere, dtau_dq, dtau_dv):
    """dtau/dq and dtau/dv of one state, row by row, from the `contributions`.

    Within one joint both formulas agree except for the term in F, so the formula without it is used there.
    """
    table = derivatives_table(lane, model, work)
    by_q = Entries(ENDS, last_of_joint, own_contributions, contributions_by_q, derivative_carried, derivative_carrying)
    by_v = Entries(ENDS, last_of_joint, own_contributions, contributions_by_v, derivative_carried, derivative_carrying)
    put_rows(lane, model, work, table, by_q, elsewhere, dtau_dq)
    put_rows(lane, model, work, table, by_v, elsewhere, dtau_dv)


@kernel_in_place
def derivative_rows(lane, model, work, dtau_dq, dtau_dv):
    """All entries."""
    put_derivative_rows(lane, model, work, clear, dtau_dq, dtau_dv)


@kernel_in_place
def derivative_rows_of_trees(lane, model, work, dtau_dq, dtau_dv):
    """Entries of degrees of freedom of the same tree; others are not changed."""
    put_derivative_rows(lane, model, work, clear_in_trees, dtau_dq, dtau_dv)


@kernel_in_place
def derivative_nonzeros(lane, model, work, dtau_dq, dtau_dv):
    """The entries that may be nonzero; others must be zero, and are not written."""
    put_derivative_rows(lane, model, work, leave, dtau_dq, dtau_dv)


@inline
def put_derivatives(lane, model, q, work, rows, squares, found):
    """found = (tau, dtau/dq, dtau/dv, M), from the `composites` in the workspace; in lanes nonzero entries only."""
    tau, dtau_dq, dtau_dv, M = found
    if at_once(lane) > 1:
        contributions(lane, model, work, tau)
        rows(lane, model, work, dtau_dq, dtau_dv)
        inertia_rows(model, work, derivatives_table(lane, model, work), squares, M)
    else:
        derivative_pairs(lane, model, work, tau, dtau_dq, dtau_dv, M)
    add_armatures(lane, model, M)
    accumulate_joint_derivatives(lane, model, q, dtau_dq, dtau_dv)


@inline
def derivatives_alone(lane, model, q, work, rows, found, spare):
    """found = (dtau/dq, dtau/dv), written by `rows`, from the `composites`; tau, and in lanes M, go to `spare`."""
    dtau_dq, dtau_dv = found
    if at_once(lane) > 1:
        contributions(lane, model, work, spare)
        rows(lane, model, work, dtau_dq, dtau_dv)
    else:
        clear_lanes(lane, model, dtau_dq)
        clear_lanes(lane, model, dtau_dv)
        derivative_pairs(lane, model, work, spare, dtau_dq, dtau_dv, spare)
    accumulate_joint_derivatives(lane, model, q, dtau_dq, dtau_dv)


@kernel_in_place
def composite_derivatives(lane, model, q, f_ext, work, found):
    """The inward pass to found = (tau, dtau/dq, dtau/dv, M), for positions, velocities and accelerations in `work`."""
    _, dtau_dq, dtau_dv, M = found
    composites(lane, model, f_ext, work)
    clear_lanes(lane, model, dtau_dq)
    clear_lanes(lane, model, dtau_dv)
    clear_lanes(lane, model, M)
    put_derivatives(lane, model, q, work, derivative_rows, clear_squares, found)


@kernel_in_place
def rnea_derivatives_kernel(lane, model, q, v, a, f_ext, work, tau, dtau_dq, dtau_dv, M):
    """dtau/dq, dtau/dv and M, each nv x nv; `tau` receives the rigid-body part of the generalised forces."""
    world_motion(lane, model, q, v, a, work)
    composite_derivatives(lane, model, q, f_ext, work, (tau, dtau_dq, dtau_dv, M))


@kernel_in_place
def rnea_derivatives_nonzeros_kernel(lane, model, q, v, a, f_ext, work, tau, dtau_dq, dtau_dv, M):
    """`rnea_derivatives_kernel` for matrices that are already zero where neither degree of freedom carries the other.

    These entries are not written, so that trees of many branches take O(n d) instead of O(n^2).
    """
    world_motion(lane, model, q, v, a, work)
    composites(lane, model, f_ext, work)
    put_derivatives(lane, model, q, work, derivative_nonzeros, leave_squares, (tau, dtau_dq, dtau_dv, M))


@recursion(rnea_derivatives_kernel, work=derivatives_size, scratch={"tau": "nv"}, past_cache=walk_states,
           nonzeros=rnea_derivatives_nonzeros_kernel, dtau_dq="nv nv", dtau_dv="nv nv", M="nv nv")
def rnea_derivatives(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: Wrenches | None = None,
                     out: Array | None = None) -> tuple[Array, Array, Array]:
    """Derivatives of inverse dynamics with respect to configuration and velocity, and the inertia matrix.

    Parameters
    ----------
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.

    Returns
    -------
    dtau_dq : ndarray, shape (..., nv, nv)
        Column j is the derivative along q exp(e_j t): in the tangent space at q, perturbed on the right.
    dtau_dv : ndarray, shape (..., nv, nv)
    M : ndarray, shape (..., nv, nv)
        Inertia matrix, the derivative with respect to `a`.

    Notes
    -----
    Singh, Russell and Wensing 2022, IEEE RA-L 7(2), eq. 25-28; springs and dampers of the joints included.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> dtau_dq, dtau_dv, M = ld.rnea_derivatives(panda, q, 0 * q, 0 * q)
    >>> bool(abs(M - ld.crba(panda, q)).max() < 1e-12)
    True
    """
