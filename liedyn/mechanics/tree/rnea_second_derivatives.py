"""All second derivatives of inverse dynamics in O(n d^2): closed forms for any joint.

Singh, Russell and Wensing 2024 (IEEE T-RO 40, "On second-order derivatives of rigid-body dynamics"), in world axes,
with twelve numbers for every Coriolis matrix instead of 36. What `rnea_derivatives` has of a degree of freedom i (by_q,
by_v, below = 2 B^T S) moves with those that carry it. With B' = B(I, S_i), B'' = B(I, Psi_dot_i) + the rate of B along
S_i, and S_rate = Psi_dot + S_dot, i and any j on the way from i to the ground have four wrenches and three moments,

    p = B' S_j      t = B'^T S_j      t'' = 2 B''^T S_j      c = S_j x below_i - 2 B'^T Psi_dot_j
    by_qq = 2 B'' Psi_dot_j + (B' + B'^T) Psi_ddot_j + S_j x* by_q_i
    by_qv = 2 B' Psi_dot_j + S_j x* by_v_i
    by_vq = 2 B'' S_j + (B' + B'^T) S_rate_j

and every k on the way from j to the ground is a product of those with its S, Psi_dot, Psi_ddot and S_rate, where a
moment takes the angular part of a twist only. With x = p . S_k and y = t . S_k

    qq(i, j, k) = (p - t) . Psi_ddot_k + c . Psi_dot_k      vv(i, j, k) = -2 y
    qq(j, i, k) = (p + t) . Psi_ddot_k + t'' . Psi_dot_k    vv(j, i, k) = 2 y
    qq(k, i, j) = by_qq . S_k                               vv(k, i, j) = 2 x

    qv(i, j, k) = (p - t) . S_rate_k + c . S_k              qv(i, k, j) = -2 t . Psi_dot_k      qa(i, j, k) = x - y
    qv(j, i, k) = (p + t) . S_rate_k + t'' . S_k            qv(j, k, i) = 2 t . Psi_dot_k       qa(j, i, k) = x + y
    qv(k, i, j) = by_vq . S_k                               qv(k, j, i) = by_qv . S_k           qa(k, i, j) = x + y
                                                                                                qa(k, j, i) = x - y
in qv and qa q first; qq and vv are symmetric in the last two, and all other entries are zero. For joints of one degree
of freedom this holds where indices coincide, too. Within a ball or free joint degrees of freedom carry each other, see
`put_within` and `own_joint_vectors`, and the derivatives by q are those of one after the other, whose symmetric part is
the Hessian in the exponential's chart.

Registers of one state hold consecutive k for a pair (i, j), or consecutive j for a pair (i, k), whichever lie side by
side in the result. Entries whose last index is i are mirrored, or written one by one.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add, add6, add9, add_cross, dot, dot6, minus_ad_dual, scale, sub
from liedyn.lie.coriolis import add_block, add_both_blocks, as_block, block_transpose_times, second_moments
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store, vector_in, width_of
from liedyn.machine.simd.registers import at_once, put_row, store_at_once
from liedyn.machine.simd.strided import chosen_records_at_once, records_at_once
from liedyn.mechanics.tree.crba import CARRIED, SCREW
from liedyn.mechanics.tree.joints import has_rotation_spring, screw_of_kind, spring_curvature
from liedyn.mechanics.tree.kinematics import DOF, PSI_DOT, S, of_dof, world_motion, world_size
from liedyn.mechanics.tree.mirror import mirror
from liedyn.mechanics.tree.rnea_derivatives import (
    BELOW, BY_Q, BY_V, COMPOSITE, D, F, NUMBERS, P, PSI_DDOTS, PSI_DOT_TURN, S_RATES, TABLE, composites, contributions,
    derivatives_table,
)
from liedyn.mechanics.tree.rnea_hessian import make_symmetric, rnea_hessian, whole_lines
from liedyn.mechanics.tree.rows import of_next3, of_next6, of_one3, of_one6, pitch, put_next3, put_next6, table_size
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import DOF_I
from liedyn.model.packed_records import (
    as_inertia, as_twist, dof_count, dof_link, dof_link_at, dof_total, first_dof, kind, last_of_joint,
    link_count, parent_dof, stretch_of, subtree_end,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

# rows of the table after those of `rnea_derivatives`: of every degree of freedom the linear part of Psi_dot, B' and
# 2 B''; then of one i and all j on its way to the ground
PSI_DOT_SHIFT, B_OWN, B_RATE = TABLE, TABLE + 3, TABLE + 15
P_ROW, T_ROW, T_RATE, C_ROW, BY_QQ, BY_QV, BY_VQ, ROWS = (
    TABLE + 27, TABLE + 33, TABLE + 36, TABLE + 39, TABLE + 42, TABLE + 48, TABLE + 54, TABLE + 60)


@inline
def forces_at(model):
    """Index of the rigid-body part of the forces, behind the rest of the workspace."""
    return world_size(model) + COMPOSITE * link_count(model) + table_size(model, ROWS) + 4 * WIDTH


@kernel_in_place
def rnea_second_derivatives_size(model):
    """Size of the workspace of `rnea_second_derivatives_kernel`."""
    return forces_at(model) + whole_lines(dof_total(model))


@inline
def spare_at(lane, model, work):
    """Index of place for two registers."""
    return derivatives_table(lane, model, work) + ROWS * pitch(model) + 2 * WIDTH


@inline
def put_next_blocks(lane, model, work, table, row, j, B):
    """Store the twelve numbers of B in rows of the table, from degree of freedom j on."""
    d, p = B
    put_next3(lane, model, work, table, row, j, d[:3])
    put_next3(lane, model, work, table, row + 3, j, d[3:6])
    put_next3(lane, model, work, table, row + 6, j, d[6:])
    put_next3(lane, model, work, table, row + 9, j, p)


@inline
def blocks_of_one(lane, model, work, table, row, j):
    return (of_one3(lane, model, work, table, row, j) + of_one3(lane, model, work, table, row + 3, j)
            + of_one3(lane, model, work, table, row + 6, j)), of_one3(lane, model, work, table, row + 9, j)


@inline
def second_contributions(lane, model, work):
    """Rows Psi_dot, B' and 2 B'' of the table."""
    table = derivatives_table(lane, model, work)
    for j in range(0, dof_total(model), at_once(lane)):
        last = dof_total(model) - 1 - j
        beyond = chosen_records_at_once(
            lane, work, world_size(model), COMPOSITE, model.ints, dof_link_at(model, j), DOF_I, last, NUMBERS)
        moved = records_at_once(lane, work, of_dof(model, j, S), DOF, last, DOF)
        psi_dot = as_twist(moved, PSI_DOT)
        B_own, B_rate = second_moments(as_inertia(beyond), (beyond[D:P], beyond[P:F]), as_twist(moved, S), psi_dot)
        put_next3(lane, model, work, table, PSI_DOT_SHIFT, j, psi_dot[1])
        E, p = as_block(B_rate)
        put_next_blocks(lane, model, work, table, B_OWN, j, as_block(B_own))
        put_next_blocks(lane, model, work, table, B_RATE, j, (add9(E, E), add(p, p)))


@kernel_in_place
def pair_vectors(lane, model, work, i):
    """The wrenches and moments of i with all j on the way from its joint to the ground, a register of j at once."""
    table, zero = derivatives_table(lane, model, work), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    B1, B2 = (blocks_of_one(lane, model, work, table, B_OWN, i), blocks_of_one(lane, model, work, table, B_RATE, i))
    by_q, by_v = of_one6(lane, model, work, table, BY_Q, i), of_one6(lane, model, work, table, BY_V, i)
    below, last = of_one3(lane, model, work, table, BELOW, i), last_of_joint(model, i)
    while last >= 0:
        begin = stretch_of(model, last)
        for j in range(begin, last + 1, at_once(lane)):
            Sj, turn = of_next6(lane, model, work, table, SCREW, j), of_next3(lane, model, work, table, PSI_DOT_TURN, j)
            psi_dot, twice = (turn, of_next3(lane, model, work, table, PSI_DOT_SHIFT, j)), add(turn, turn)
            put_next6(lane, model, work, table, P_ROW, j, add_block(zero, B1, Sj[0]))
            put_next3(lane, model, work, table, T_ROW, j, block_transpose_times(B1, Sj))
            put_next3(lane, model, work, table, T_RATE, j, block_transpose_times(B2, Sj))
            back = scale(-2.0, block_transpose_times(B1, psi_dot))
            put_next3(lane, model, work, table, C_ROW, j, add_cross(back, Sj[0], below))
            x = add_both_blocks(minus_ad_dual(Sj, by_q), B1, of_next6(lane, model, work, table, PSI_DDOTS, j))
            put_next6(lane, model, work, table, BY_QQ, j, add_block(x, B2, turn))
            put_next6(lane, model, work, table, BY_QV, j, add_block(minus_ad_dual(Sj, by_v), B1, twice))
            x = add_both_blocks(zero, B1, of_next6(lane, model, work, table, S_RATES, j))
            put_next6(lane, model, work, table, BY_VQ, j, add_block(x, B2, Sj[0]))
        last = parent_dof(model, begin)


@inline
def put_towards_ground(lane, model, work, i, j, results):
    """Forces i and j, for all k on the way from the joint of j to the ground, a register of k at once."""
    qq, vv, qv, qa = results
    table, nv, link = derivatives_table(lane, model, work), dof_total(model), dof_link(model, j)
    p, t = of_one6(lane, model, work, table, P_ROW, j), of_one3(lane, model, work, table, T_ROW, j)
    t_rate, c = of_one3(lane, model, work, table, T_RATE, j), of_one3(lane, model, work, table, C_ROW, j)
    first, last = first_dof(model, link), last_of_joint(model, j)
    spare, known = spare_at(lane, model, work), last + 1 if dof_count(model, link) == 1 else first
    while last >= 0:
        begin = stretch_of(model, last)
        for k in range(begin, last + 1, at_once(lane)):
            count, ijk, jik = last + 1 - k, (i * nv + j) * nv + k, (j * nv + i) * nv + k
            Sk, turn = of_next6(lane, model, work, table, SCREW, k), of_next3(lane, model, work, table, PSI_DOT_TURN, k)
            psi_ddot, S_rate = (of_next6(lane, model, work, table, PSI_DDOTS, k),
                                of_next6(lane, model, work, table, S_RATES, k))
            x, y, by_ddot, t_ddot = dot6(Sk, p), dot(Sk[0], t), dot6(psi_ddot, p), dot(psi_ddot[0], t)
            by_rate, t_by_rate = dot6(S_rate, p), dot(S_rate[0], t)
            store_at_once(lane, qq, ijk, count, by_ddot - t_ddot + dot(turn, c))
            store_at_once(lane, vv, ijk, count, -(x + y))
            if k < known:
                store_at_once(lane, qv, ijk, min(last + 1, known) - k, by_rate - t_by_rate + dot(Sk[0], c))
            if k < first:
                store_at_once(lane, vv, ijk, min(last + 1, first) - k, -(y + y))
                store_at_once(lane, qa, ijk, min(last + 1, first) - k, x - y)
            if dof_link(model, i) != link:
                store_at_once(lane, qq, jik, count, by_ddot + t_ddot + dot(turn, t_rate))
                store_at_once(lane, vv, jik, count, y + y)
                store_at_once(lane, qv, jik, count, by_rate + t_by_rate + dot(Sk[0], t_rate))
                store_at_once(lane, qa, jik, count, x + y)
                turned = dot(turn, t)
                store_at_once(lane, work, spare, WIDTH, turned + turned)
                for r in range(min(count, at_once(lane))):
                    store(lane, qv, (j * nv + k + r) * nv + i, load(lane, work, spare + r))
        last = parent_dof(model, begin)


@inline
def put_within(lane, model, work, i, j, qv):
    """Entries (i, k, j) of qv for all k of the joint of j, of several degrees of freedom, one after the other."""
    table, nv = derivatives_table(lane, model, work), dof_total(model)
    t = of_one3(lane, model, work, table, T_ROW, j)
    for k in range(first_dof(model, dof_link(model, j)), last_of_joint(model, j) + 1):
        store(lane, qv, (i * nv + k) * nv + j, -2.0 * dot(t, of_one3(lane, model, work, table, PSI_DOT_TURN, k)))


@inline
def put_between(lane, model, work, i, k, results):
    """Force k, and i for qv, for all j on the way from the joint of i to that of k, a register of j at once."""
    qq, vv, qv, qa = results
    table, nv, link = derivatives_table(lane, model, work), dof_total(model), dof_link(model, i)
    Sk, turn = of_one6(lane, model, work, table, SCREW, k), of_one3(lane, model, work, table, PSI_DOT_TURN, k)
    nearest, last = last_of_joint(model, k) + 1, last_of_joint(model, i)
    spare, shared = spare_at(lane, model, work), dof_count(model, link) > 1
    while last >= nearest:
        begin, own = max(stretch_of(model, last), nearest), shared and dof_link(model, last) == link
        if own:
            begin = first_dof(model, link)
        for j in range(begin, last + 1, at_once(lane)):
            count, kij = last + 1 - j, (k * nv + i) * nv + j
            p, t = of_next6(lane, model, work, table, P_ROW, j), of_next3(lane, model, work, table, T_ROW, j)
            x, y, turned = dot6(p, Sk), dot(t, Sk[0]), dot(t, turn)
            by_vq = dot6(of_next6(lane, model, work, table, BY_VQ, j), Sk)
            by_qv = dot6(of_next6(lane, model, work, table, BY_QV, j), Sk)
            store_at_once(lane, qv, (i * nv + k) * nv + j, count, -(turned + turned))
            store_at_once(lane, qq, kij, count, dot6(of_next6(lane, model, work, table, BY_QQ, j), Sk))
            store_at_once(lane, work, spare, WIDTH, by_qv)
            store_at_once(lane, work, spare + WIDTH, WIDTH, x - y)
            for r in range(min(count, at_once(lane))):
                store(lane, qv, (k * nv + j + r) * nv + i, load(lane, work, spare + r))
                store(lane, qa, (k * nv + j + r) * nv + i, load(lane, work, spare + WIDTH + r))
            if own:
                store_at_once(lane, vv, kij, count, by_vq)
            else:
                store_at_once(lane, vv, kij, count, x + x)
                store_at_once(lane, qv, kij, count, by_vq)
                store_at_once(lane, qa, kij, count, x + y)
        last = parent_dof(model, begin)


@inline
def own_joint_vectors(lane, model, work, i):
    """Within a joint of several degrees of freedom, by velocities p - t + S_i x* I S_j, in place of by_vq."""
    table = derivatives_table(lane, model, work)
    Si = of_one6(lane, model, work, table, SCREW, i)
    for j in range(first_dof(model, dof_link(model, i)), last_of_joint(model, i) + 1, at_once(lane)):
        p, t = of_next6(lane, model, work, table, P_ROW, j), of_next3(lane, model, work, table, T_ROW, j)
        turned = minus_ad_dual(Si, of_next6(lane, model, work, table, CARRIED, j))
        moment, force = add6(p, turned)
        put_next6(lane, model, work, table, BY_VQ, j, (sub(moment, t), force))


@kernel_in_place
def finish_joint(lane, model, q, i, qq):
    """Hessians in the exponential's chart of joint i, of several degrees of freedom, and its spring."""
    nv, first, count = dof_total(model), first_dof(model, i), dof_count(model, i)
    at, last = (nv + 1) * first, parent_dof(model, first)
    for f in range(first, subtree_end(model, first)):
        make_symmetric(lane, qq, f * nv * nv + at, nv, count)
    while last >= 0:
        make_symmetric(lane, qq, last * nv * nv + at, nv, count)
        last = parent_dof(model, last)
    if has_rotation_spring(model, i):
        for c in range(count):
            for d in range(count):
                x = spring_curvature(lane, model, i, q, screw_of_kind(lane, kind(model, i), model, i, c),
                                     screw_of_kind(lane, kind(model, i), model, i, d))
                for r in range(count):
                    k, one = (first + r) * nv * nv + at + c * nv + d, screw_of_kind(lane, kind(model, i), model, i, r)
                    store(lane, qq, k, load(lane, qq, k) + dot6(x, one))


@kernel_in_place
def put_mirrored(lane, model, f, qq, vv):
    """The other halves of qq and vv of force f."""
    at, first = f * dof_total(model) * dof_total(model), stretch_of(model, f)
    behind, last = subtree_end(model, f), parent_dof(model, first)
    while first < behind:
        mirror(lane, model, qq, at, first, behind)
        mirror(lane, model, vv, at, first, behind)
        first, behind = stretch_of(model, last) if last >= 0 else 0, last + 1
        last = parent_dof(model, first)


@kernel_in_place
def put_second_derivatives(lane, model, work, i, qq, vv, qv, qa):
    """Entries with i as the outermost of three indices, up to symmetries."""
    results, j = (qq, vv, qv, qa), last_of_joint(model, i)
    pair_vectors(lane, model, work, i)
    if dof_count(model, dof_link(model, i)) > 1:
        own_joint_vectors(lane, model, work, i)
    while j >= 0:
        put_towards_ground(lane, model, work, i, j, results)
        if dof_count(model, dof_link(model, j)) > 1:
            put_within(lane, model, work, i, j, qv)
        if dof_link(model, j) != dof_link(model, i):
            put_between(lane, model, work, i, j, results)
        j = parent_dof(model, j)


@kernel_in_place
def rnea_second_derivatives_nonzeros_kernel(lane, model, q, v, a, f_ext, work, qq, vv, qv, qa):
    """`rnea_second_derivatives_kernel` for tensors that are already zero where they are zero at every state."""
    world_motion(lane, model, q, v, a, work)
    composites(lane, model, f_ext, work)
    tau = vector_in(work, width_of(lane) * forces_at(model), width_of(lane) * dof_total(model))
    contributions(lane, model, work, tau)
    second_contributions(lane, model, work)
    for i in range(dof_total(model)):
        put_second_derivatives(lane, model, work, i, qq, vv, qv, qa)
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            finish_joint(lane, model, q, i, qq)
    for f in range(dof_total(model)):
        put_mirrored(lane, model, f, qq, vv)


@kernel_in_place
def rnea_second_derivatives_kernel(lane, model, q, v, a, f_ext, work, qq, vv, qv, qa):
    """Second derivatives, each nv x nv x nv."""
    size = dof_total(model) * dof_total(model) * dof_total(model)
    put_row(lane, qq, 0, size, splat(LANES, 0.0))
    put_row(lane, vv, 0, size, splat(LANES, 0.0))
    put_row(lane, qv, 0, size, splat(LANES, 0.0))
    put_row(lane, qa, 0, size, splat(LANES, 0.0))
    rnea_second_derivatives_nonzeros_kernel(lane, model, q, v, a, f_ext, work, qq, vv, qv, qa)


@recursion(rnea_second_derivatives_kernel, work=rnea_second_derivatives_size,
           nonzeros=rnea_second_derivatives_nonzeros_kernel, otherwise={"weights": rnea_hessian},
           qq="nv nv nv", vv="nv nv nv", qv="nv nv nv", qa="nv nv nv")
def rnea_second_derivatives(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: Wrenches | None = None,
                            weights: ArrayLike | None = None,
                            out: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Second derivatives of inverse dynamics: all of them, or those of one weighted sum of the forces.

    Parameters
    ----------
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    weights : array_like, shape (..., nv), optional
        Of the forces: the results are then those of ``weights . tau``, a number. That costs little more than
        `rnea_derivatives`, and grows as it does.
    out : tuple of 4 ndarrays, shape (..., nv, nv, nv), with weights (..., nv, nv), optional
        Where the results go: C-contiguous float64 of the very shape of the results.

    Returns
    -------
    qq : ndarray, shape (..., nv, nv, nv), with weights (..., nv, nv)
        ``qq[i, j, k]``, with weights ``qq[j, k]``, is the second derivative of force i by the coordinates j and k
        [N m/rad^2 and so on]: the Hessian in the exponential's chart at q, so that
        tau(q exp d) = tau + tau_q d + d^T qq d / 2 to third order, d in the tangent space at q, perturbed on the right,
        as `integrate` moves q. It is symmetric in j and k.
    vv : ndarray, of the same shape
        By the velocities j and k; symmetric.
    qv, qa : ndarray, of the same shape
        By the coordinate j and the velocity, or acceleration, k: ``qa[i, j, k]`` is the derivative of the entry (i, k)
        of the inertia matrix.

    Notes
    -----
    Singh, Russell and Wensing 2024, IEEE T-RO 40, with springs and dampers of the joints; with weights, the same added
    up over forces before products are made. The inertia matrix is the same for all v and a, so that derivatives by v
    and a, and by a twice, are zero.

    Derivatives taken one after the other, of the columns of `rnea_derivatives`, differ from `qq` within a ball or free
    joint, as the tangent space turns: d/dt of dtau_dq[:, j] along q exp(e_k t) is
    L_jk = qq_jk + dtau_dq ad(e_k) e_j / 2, where ad is the Lie bracket of the joint's twists (angular, linear), for a
    ball the cross product. Pinocchio's ``ComputeRNEASecondOrderDerivatives`` gives this L, not
    symmetric, and the derivatives of the inertia matrix as [i, a, q], where `qa` is [i, q, a].

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = ld.random_configuration(panda, rng=0), np.ones(7)
    >>> qq, vv, qv, qa = ld.rnea_second_derivatives(panda, q, v, v)
    >>> qq.shape, bool(abs(qa - qa.transpose(2, 1, 0)).max() < 1e-12)
    ((7, 7, 7), True)
    >>> weighted = ld.rnea_second_derivatives(panda, q, v, v, weights=v)[0]
    >>> bool(abs(weighted - qq.sum(axis=0)).max() < 1e-12)
    True
    """
