"""The Hessian of weights . tau, where tau are the forces of inverse dynamics: closed forms for any joint, in O(n d).

For phi = sum of mu_i tau_i let W_j be the twist of link j if the velocities are mu, and W_p that of the parent of link
j. Along the tree add up, over all links k that joint j carries, with I_k and B_k composite and w_k = W_k - W_p(k)

    h = sum of I_k w_k      C = sum of B(I_k, w_k)      c = sum of 2 B_k^T w_k, a moment

With B' = B(I, S_j), B'' = B(I, Psi_dot_j) + the rate of B along S_j, and what `rnea_derivatives` has of every degree of
freedom (by_q, by_v, I S, S_rate = Psi_dot + S_dot), every one has the vectors

    g = S x* h + (B' + B'^T) W_p            m = S x c - 2 C^T Psi_dot + 2 B''^T W_p
    n = 2 (B'^T W_p - C^T S)                psi = ad(W_p, S)

and then for all j on the way from i to the ground

    phi_qq(i, j) = g_i . Psi_ddot_j + m_i . Psi_dot_j + by_q_i . psi_j        phi_vv(i, j) = n_i . S_j
    phi_qv(i, j) = g_i . S_rate_j + m_i . S_j      phi_qv(j, i) = n_i . Psi_dot_j + by_v_i . psi_j
    phi_qa(i, j) = g_i . S_j                       phi_qa(j, i) = (I S)_i . psi_j

where m and n are moments, which take the angular part of a twist only. These are the second derivatives of Singh,
Russell and Wensing 2024 (IEEE T-RO 40), added up over forces first, where most terms cancel. Within one ball or free
joint i and j carry each other: the formulas of (j, i) hold, and qq and vv are their symmetric part.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add, add6, ad, cross, dot, dot6, inertia_times, minus_ad_dual, scale6, sub
from liedyn.lie.coriolis import add_coriolis, coriolis_moments, coriolis_transpose_times, second_moments
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store, vector_in, width_of
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.machine.simd.strided import chosen_records_at_once, put_records_at_once, records_at_once
from liedyn.mechanics.tree.crba import CARRIED, SCREW
from liedyn.mechanics.tree.joints import has_rotation_spring, screw_of_kind, spring_curvature
from liedyn.mechanics.tree.kinematics import DOF, PSI_DOT, S, of_dof, world_motion, world_size
from liedyn.mechanics.tree.rnea_derivatives import (
    BY_Q, BY_V, COMPOSITE, D, F, NUMBERS, P, PSI_DDOTS, PSI_DOT_TURN, S_RATES, TABLE, composites, contributions,
    derivatives_table,
)
from liedyn.mechanics.tree.rows import of_next3, of_next6, of_one3, of_one6, pitch, put_next3, put_next6, table_size
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import DOF_I
from liedyn.model.packed_records import (
    as_inertia, as_twist, dof_count, dof_link, dof_link_at, dof_total, first_dof, get3, get6, kind, link_count, parent,
    parent_dof, put6, stretch_of, subtree_end, zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

# numbers per link, in whole registers: h (before that the joint's own twist w), C and c; W of the parent
WEIGHED, H, C, C_P, BELOW_C, END, SUMS, W_PARENT, WEIGHED_NUMBERS = 32, 0, 6, 15, 18, 21, 24, 24, 30
# rows of the table after those of `rnea_derivatives`
G, M_ROW, N_ROW, PSI, ROWS = TABLE, TABLE + 6, TABLE + 9, TABLE + 12, TABLE + 18


@inline
def forces_at(model):
    """Index of the rigid-body part of the forces, behind the rest of the workspace."""
    own = WEIGHED * link_count(model) + 2 * WIDTH
    return world_size(model) + COMPOSITE * link_count(model) + table_size(model, ROWS) + own


@kernel_in_place
def rnea_hessian_size(model):
    """Size of the workspace of `rnea_hessian_kernel`."""
    return forces_at(model) + whole_lines(dof_total(model))


@inline
def whole_lines(count):
    """So many numbers, rounded up to whole registers."""
    return count + -count % WIDTH


@inline
def weighed_at(lane, model, work, i):
    """Index of the sums of link i."""
    return derivatives_table(lane, model, work) + ROWS * pitch(model) + 2 * WIDTH + WEIGHED * i


@inline
def doubled(a):
    return add(a, a)


@inline
def weighed_twists(lane, model, weights, work):
    """Of every link, its joint's own twist and the parent's W, if velocities are the weights."""
    for i in range(link_count(model)):
        at, own, W = weighed_at(lane, model, work, i), zero6(lane), zero6(lane)
        if parent(model, i) >= 0:
            up = weighed_at(lane, model, work, parent(model, i))
            W = add6(get6(lane, work, up + W_PARENT), get6(lane, work, up + H))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            own = add6(own, scale6(load(lane, weights, j), get6(lane, work, of_dof(model, j, S))))
        put6(lane, work, at + H, own)
        put6(lane, work, at + W_PARENT, W)


@kernel_in_place
def weighed_sums(lane, model, weights, work):
    """h, C and c of every link, over all links that its joint carries."""
    n = link_count(model)
    weighed_twists(lane, model, weights, work)
    for i in range(0, n, at_once(lane)):
        at, last = weighed_at(lane, model, work, i), n - 1 - i
        beyond = records_at_once(lane, work, world_size(model) + COMPOSITE * i, COMPOSITE, last, NUMBERS)
        own = records_at_once(lane, work, at, WEIGHED, last, WEIGHED_NUMBERS)
        I, B, w = as_inertia(beyond), (beyond[D:P], beyond[P:F]), as_twist(own, H)
        (moment, force), (d, p) = inertia_times(I, w), coriolis_moments(I, w)
        below = doubled(coriolis_transpose_times(B, w))
        put_records_at_once(lane, work, at, WEIGHED, last,
                            moment + force + d + p + below + (0.0, 0.0, 0.0) + own[W_PARENT:WEIGHED_NUMBERS])
    for i in range(n - 1, -1, -1):
        if parent(model, i) >= 0:
            c, up = weighed_at(lane, model, work, i), weighed_at(lane, model, work, parent(model, i))
            for k in range(0, SUMS, at_once(lane)):
                x = load_at_once(lane, work, up + k, WIDTH) + load_at_once(lane, work, c + k, WIDTH)
                store_at_once(lane, work, up + k, WIDTH, x)


@kernel_in_place
def weighed_vectors(lane, model, work):
    """Rows g, m, n and psi of the table."""
    table = derivatives_table(lane, model, work)
    for j in range(0, dof_total(model), at_once(lane)):
        last = dof_total(model) - 1 - j
        beyond = chosen_records_at_once(
            lane, work, world_size(model), COMPOSITE, model.ints, dof_link_at(model, j), DOF_I, last, NUMBERS)
        sums = chosen_records_at_once(lane, work, weighed_at(lane, model, work, 0), WEIGHED, model.ints,
                                      dof_link_at(model, j), DOF_I, last, WEIGHED_NUMBERS)
        moved = records_at_once(lane, work, of_dof(model, j, S), DOF, last, DOF)
        Sj, psi_dot, W = as_twist(moved, S), as_twist(moved, PSI_DOT), as_twist(sums, W_PARENT)
        h, C_all, c = as_twist(sums, H), (sums[C:C_P], sums[C_P:BELOW_C]), sums[BELOW_C:END]
        B1, B2 = second_moments(as_inertia(beyond), (beyond[D:P], beyond[P:F]), Sj, psi_dot)
        back = coriolis_transpose_times(B1, W)
        moment, force = add_coriolis(minus_ad_dual(Sj, h), B1, W[0])
        m = sub(coriolis_transpose_times(B2, W), coriolis_transpose_times(C_all, psi_dot))
        put_next6(lane, model, work, table, G, j, (add(moment, back), force))
        put_next3(lane, model, work, table, M_ROW, j, add(cross(Sj[0], c), doubled(m)))
        put_next3(lane, model, work, table, N_ROW, j, doubled(sub(back, coriolis_transpose_times(C_all, Sj))))
        put_next6(lane, model, work, table, PSI, j, ad(W, Sj))


@inline
def clear_gap(lane, results, begin, end):
    """Zeros in numbers `begin` to end - 1 of each matrix."""
    H_qq, H_vv, H_qv, H_qa = results
    for k in range(begin, end, at_once(lane)):
        store_at_once(lane, H_qq, k, end - k, splat(LANES, 0.0))
        store_at_once(lane, H_vv, k, end - k, splat(LANES, 0.0))
        store_at_once(lane, H_qv, k, end - k, splat(LANES, 0.0))
        store_at_once(lane, H_qa, k, end - k, splat(LANES, 0.0))


@inline
def leave_gap(lane, results, begin, end):
    """Do not write them."""


@inline
def put_hessian_row(lane, model, work, i, gap, results):
    """Row i: a register of columns at once, first those that carry its joint, then those that i carries."""
    H_qq, H_vv, H_qv, H_qa = results
    table, row = derivatives_table(lane, model, work), i * dof_total(model)
    g, m, n = (of_one6(lane, model, work, table, G, i), of_one3(lane, model, work, table, M_ROW, i),
               of_one3(lane, model, work, table, N_ROW, i))
    by_q = of_one6(lane, model, work, table, BY_Q, i)
    behind = first_dof(model, dof_link(model, i))
    last = parent_dof(model, behind)
    while behind > 0:
        gap(lane, results, row + last + 1, row + behind)
        behind = stretch_of(model, last) if last >= 0 else 0
        for j in range(behind, last + 1, at_once(lane)):
            k, count, Sj = row + j, last + 1 - j, of_next6(lane, model, work, table, SCREW, j)
            qq = (dot6(of_next6(lane, model, work, table, PSI_DDOTS, j), g)
                  + dot(of_next3(lane, model, work, table, PSI_DOT_TURN, j), m)
                  + dot6(of_next6(lane, model, work, table, PSI, j), by_q))
            store_at_once(lane, H_qq, k, count, qq)
            store_at_once(lane, H_vv, k, count, dot(Sj[0], n))
            store_at_once(lane, H_qv, k, count,
                          dot6(of_next6(lane, model, work, table, S_RATES, j), g) + dot(Sj[0], m))
            store_at_once(lane, H_qa, k, count, dot6(Sj, g))
        last = parent_dof(model, behind)
    S_turn, turn = (of_one3(lane, model, work, table, SCREW, i), of_one3(lane, model, work, table, PSI_DOT_TURN, i))
    psi_ddot, psi = of_one6(lane, model, work, table, PSI_DDOTS, i), of_one6(lane, model, work, table, PSI, i)
    end = subtree_end(model, i)
    for j in range(first_dof(model, dof_link(model, i)), end, at_once(lane)):
        k, count, n = row + j, end - j, of_next3(lane, model, work, table, N_ROW, j)
        qq = (dot6(of_next6(lane, model, work, table, G, j), psi_ddot)
              + dot(of_next3(lane, model, work, table, M_ROW, j), turn)
              + dot6(of_next6(lane, model, work, table, BY_Q, j), psi))
        store_at_once(lane, H_qq, k, count, qq)
        store_at_once(lane, H_vv, k, count, dot(n, S_turn))
        store_at_once(lane, H_qv, k, count, dot(n, turn) + dot6(of_next6(lane, model, work, table, BY_V, j), psi))
        store_at_once(lane, H_qa, k, count, dot6(of_next6(lane, model, work, table, CARRIED, j), psi))
    gap(lane, results, row + end, row + dof_total(model))


@inline
def make_symmetric(lane, X, at, columns, count):
    """Replace a square of `count` rows from X[at] on, `columns` numbers apart, by its symmetric part."""
    for c in range(count):
        for d in range(c):
            k, l = at + c * columns + d, at + d * columns + c
            mean = 0.5 * (load(lane, X, k) + load(lane, X, l))
            store(lane, X, k, mean)
            store(lane, X, l, mean)


@kernel_in_place
def finish_joint(lane, model, q, weights, i, H_qq, H_vv):
    """The symmetric part within joint i, and its spring."""
    nv, first, count = dof_total(model), first_dof(model, i), dof_count(model, i)
    at = (nv + 1) * first
    make_symmetric(lane, H_qq, at, nv, count)
    make_symmetric(lane, H_vv, at, nv, count)
    if has_rotation_spring(model, i):
        for c in range(count):
            for d in range(count):
                moment, force = spring_curvature(
                    lane, model, i, q, screw_of_kind(lane, kind(model, i), model, i, c),
                    screw_of_kind(lane, kind(model, i), model, i, d))
                x = load(lane, H_qq, at + c * nv + d) + dot(get3(lane, weights, first), moment)
                if count > 3:
                    x = x + dot(get3(lane, weights, first + 3), force)
                store(lane, H_qq, at + c * nv + d, x)


@inline
def put_hessian(lane, model, q, v, a, weights, f_ext, work, gap, results):
    """All second derivatives; entries beside them are left to `gap`."""
    world_motion(lane, model, q, v, a, work)
    composites(lane, model, f_ext, work)
    tau = vector_in(work, width_of(lane) * forces_at(model), width_of(lane) * dof_total(model))
    contributions(lane, model, work, tau)
    weighed_sums(lane, model, weights, work)
    weighed_vectors(lane, model, work)
    for i in range(dof_total(model)):
        put_hessian_row(lane, model, work, i, gap, results)
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            finish_joint(lane, model, q, weights, i, results[0], results[1])


@kernel_in_place
def rnea_hessian_kernel(lane, model, q, v, a, weights, f_ext, work, H_qq, H_vv, H_qv, H_qa):
    """Second derivatives of weights . tau, each nv x nv."""
    put_hessian(lane, model, q, v, a, weights, f_ext, work, clear_gap, (H_qq, H_vv, H_qv, H_qa))


@kernel_in_place
def rnea_hessian_nonzeros_kernel(lane, model, q, v, a, weights, f_ext, work, H_qq, H_vv, H_qv, H_qa):
    """`rnea_hessian_kernel` for matrices that are already zero where neither degree of freedom carries the other."""
    put_hessian(lane, model, q, v, a, weights, f_ext, work, leave_gap, (H_qq, H_vv, H_qv, H_qa))


@recursion(rnea_hessian_kernel, work=rnea_hessian_size, nonzeros=rnea_hessian_nonzeros_kernel,
           H_qq="nv nv", H_vv="nv nv", H_qv="nv nv", H_qa="nv nv")
def rnea_hessian(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: ArrayLike,
                 f_ext: Wrenches | None = None, out: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Hessian of ``weights . tau``: `rnea_second_derivatives` with weights.

    Parameters
    ----------
    weights : array_like, shape (..., nv)
        Of the forces.

    Returns
    -------
    H_qq, H_vv, H_qv, H_qa : ndarray, shape (..., nv, nv)
        As `rnea_second_derivatives` describes them.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> H_qq, H_vv, H_qv, H_qa = rnea_hessian(panda, q, q, q, 1.0 + q)
    >>> bool(abs(H_qq - H_qq.T).max() < 1e-12)
    True
    """
