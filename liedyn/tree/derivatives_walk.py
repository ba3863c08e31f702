"""Derivatives of inverse dynamics of W states in lanes: one walk along the tree, results written on the way.

The formulas are those of `liedyn.tree.rnea_derivatives`. In lanes a number is a line of the cache, and what all links
and all pairs of degrees of freedom need does not fit into the first cache. So links are visited as late as possible
and left for good at once: depth first, the last branch first. What is kept belongs to the links between the ground and
where the walk is, and degrees of freedom are done with in descending order: rows of the results are complete from the
last to the first, and go to memory while the walk goes on.
"""
import numpy as np

from liedyn.jit import inline, kernel, kernel_in_place
from liedyn.lie.algebra import (
    Ad_dual_inverse, ad, add6, compose, dot, dot6, inertia_in_parent, inertia_times, minus_ad_dual, scale6, sub6,
)
from liedyn.lie.coriolis import contribution, coriolis_moments, coriolis_times
from liedyn.lie.lanes import LANES, WIDTH, load, store
from liedyn.lie.sines import put_sines, sines_size
from liedyn.model.packed import REVOLUTE
from liedyn.tree.batches import aligned, find_lines, gather, in_lanes, lines_for, nothing_put, put_complete
from liedyn.tree.joints import accumulate_spring_derivatives, dofs_of_kind, pose_by_sines
from liedyn.tree.kinematics import screw_of_kind_at
from liedyn.tree.records import (
    armature, damping, dof_count, dof_total, first_dof, get3, get6, get9, get_inertia,
    get_pose, inertia, kind, link_count, parent, previous_dof, put3, put6, put9, put_inertia, put_pose, q_total,
    upward, zero6,
)

# numbers per link on the way to the ground: pose, twist and acceleration in the world, then of all it carries the
# composite inertia I, the moments D and P of the Coriolis matrix, and the wrench F; then per degree of freedom
LINK, POSE, TWIST, ACCELERATION, I, D, P, F = 52, 0, 12, 18, 24, 34, 43, 46
DOF, S, PSI_DOT, PSI_DDOT, S_RATE = 24, 0, 6, 12, 18


@inline
def walk_size(ints):
    """Numbers in the workspace of `derivatives_walk`."""
    return sines_at(ints) + sines_size(q_total(ints))


@inline
def dof_at(ints, p):
    return LINK * link_count(ints) + DOF * p


@inline
def sines_at(ints):
    return dof_at(ints, dof_total(ints))


@inline
def outward(lane, joint, ints, floats, i, depth, p, q, v, a, f_ext, work):
    """Motion of link i, what it and its screws contribute; p degrees of freedom lie between it and the ground."""
    X, k, j = pose_by_sines(lane, joint, ints, floats, i, q, work, sines_at(ints)), LINK * depth, first_dof(ints, i)
    if parent(ints, i) < 0:
        Vp, Ap = zero6(lane), upward(lane, floats)
    else:
        X = compose(get_pose(lane, work, k - LINK + POSE), X)
        Vp, Ap = get6(lane, work, k - LINK + TWIST), get6(lane, work, k - LINK + ACCELERATION)
    V, A = Vp, Ap
    for d in range(dofs_of_kind(joint)):
        V = add6(V, scale6(load(lane, v, j + d), screw_of_kind_at(lane, joint, ints, floats, i, X, d)))
    for d in range(dofs_of_kind(joint)):
        Sj, at = screw_of_kind_at(lane, joint, ints, floats, i, X, d), dof_at(ints, p + d)
        psi_dot = ad(Vp, Sj)
        # a single screw does not turn itself
        S_dot = psi_dot if dofs_of_kind(joint) == 1 else ad(V, Sj)
        A = add6(A, add6(scale6(load(lane, a, j + d), Sj), scale6(load(lane, v, j + d), S_dot)))
        put6(lane, work, at + S, Sj)
        put6(lane, work, at + PSI_DOT, psi_dot)
        put6(lane, work, at + PSI_DDOT, add6(ad(Ap, Sj), ad(Vp, psi_dot)))
        put6(lane, work, at + S_RATE, add6(psi_dot, S_dot))
    own = inertia_in_parent(X, inertia(ints, floats, i))
    B = coriolis_moments(own, V)
    wrench = add6(inertia_times(own, A), coriolis_times(B, V))  # B V = V x* I V
    if f_ext.size > 0:
        wrench = sub6(wrench, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
    put_pose(lane, work, k + POSE, X)
    put6(lane, work, k + TWIST, V)
    put6(lane, work, k + ACCELERATION, A)
    put_inertia(lane, work, k + I, own)
    put9(lane, work, k + D, B[0])
    put3(lane, work, k + P, B[1])
    put6(lane, work, k + F, wrench)


@inline
def inward(lane, joint, ints, floats, i, depth, p, q, work, dtau_dq, dtau_dv, M):
    """All entries of joint i with those that carry it, and what it carries to its parent."""
    nv, k, first = dof_total(ints), LINK * depth, first_dof(ints, i)
    carries, B = get_inertia(lane, work, k + I), (get9(lane, work, k + D), get3(lane, work, k + P))
    wrench = get6(lane, work, k + F)
    for j in range(first, first + dofs_of_kind(joint)):
        at = dof_at(ints, p + j - first)
        Sj, psi_dot = get6(lane, work, at + S), get6(lane, work, at + PSI_DOT)
        carried = inertia_times(carries, Sj)
        by_q, by_v, below = contribution(
            carries, B, Sj, psi_dot, get6(lane, work, at + PSI_DDOT), get6(lane, work, at + S_RATE))
        for i in range(first, first + dofs_of_kind(joint)):
            Si = get6(lane, work, dof_at(ints, p + i - first) + S)
            store(lane, dtau_dq, i * nv + j, dot6(by_q, Si))
            store(lane, dtau_dv, i * nv + j, dot6(by_v, Si))
            store(lane, M, i * nv + j, dot6(carried, Si))
        by_q = add6(by_q, minus_ad_dual(Sj, wrench))
        i, at = previous_dof(ints, first), dof_at(ints, p - 1)
        while i >= 0:
            Si, S_rate = get6(lane, work, at + S), get6(lane, work, at + S_RATE)
            psi_turn, psi_ddot = get3(lane, work, at + PSI_DOT), get6(lane, work, at + PSI_DDOT)
            inertia_ij = dot6(carried, Si)
            store(lane, dtau_dq, i * nv + j, dot6(by_q, Si))
            store(lane, dtau_dv, i * nv + j, dot6(by_v, Si))
            store(lane, M, i * nv + j, inertia_ij)
            store(lane, dtau_dq, j * nv + i, dot(below, psi_turn) + dot6(carried, psi_ddot))
            store(lane, dtau_dv, j * nv + i, dot(below, Si[0]) + dot6(carried, S_rate))
            store(lane, M, j * nv + i, inertia_ij)
            i, at = previous_dof(ints, i), at - DOF
    if depth > 0:
        up = k - LINK
        for r in range(I, F + 6):
            store(lane, work, up + r, load(lane, work, up + r) + load(lane, work, k + r))


@inline
def joints_own(lane, ints, floats, i, q, dtau_dq, dtau_dv, M):
    """Springs, dampers and armatures of joint i."""
    for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
        k = (dof_total(ints) + 1) * j
        store(lane, M, k, load(lane, M, k) + armature(ints, floats, j))
        store(lane, dtau_dv, k, load(lane, dtau_dv, k) + damping(ints, floats, j))
    accumulate_spring_derivatives(lane, ints, floats, i, q, dtau_dq)


@kernel_in_place
def derivatives_walk(lane, ints, floats, q, v, a, f_ext, path, work, dtau_dq, dtau_dv, M,
                     rows_q, rows_v, rows_M, lines_q, lines_v, lines_M):
    """dtau/dq, dtau/dv and M of W states, nv x nv each, in lanes, and from there to where `find_lines` says."""
    n, nv = link_count(ints), dof_total(ints)
    put_sines(lane, q, q_total(ints), work, sines_at(ints))
    depth, p, left_q, left_v, left_M = -1, 0, nothing_put(rows_q), nothing_put(rows_v), nothing_put(rows_M)
    for i in range(n - 1, -1, -1):
        fork = parent(ints, i + 1) if i + 1 < n else -1
        k, steps = i, 0
        while k != fork:
            path[steps] = k
            k, steps = parent(ints, k), steps + 1
        while steps > 0:
            steps -= 1
            depth += 1
            k = path[steps]
            if kind(ints, k) == REVOLUTE:  # the common joint compiled apart: its zeros cost nothing
                outward(lane, REVOLUTE, ints, floats, k, depth, p, q, v, a, f_ext, work)
            else:
                outward(lane, kind(ints, k), ints, floats, k, depth, p, q, v, a, f_ext, work)
            p += dof_count(ints, k)
        p -= dof_count(ints, i)
        if kind(ints, i) == REVOLUTE:
            inward(lane, REVOLUTE, ints, floats, i, depth, p, q, work, dtau_dq, dtau_dv, M)
        else:
            inward(lane, kind(ints, i), ints, floats, i, depth, p, q, work, dtau_dq, dtau_dv, M)
        joints_own(lane, ints, floats, i, q, dtau_dq, dtau_dv, M)
        depth -= 1
        left_q = put_complete(dtau_dq, first_dof(ints, i) * nv, rows_q, lines_q, left_q)
        left_v = put_complete(dtau_dv, first_dof(ints, i) * nv, rows_v, lines_v, left_v)
        left_M = put_complete(M, first_dof(ints, i) * nv, rows_M, lines_M, left_M)


@kernel(nogil=True)
def walk_states(begin, end, ints, floats, q, v, a, f_ext, dtau_dq, dtau_dv, M):
    """dtau/dq, dtau/dv and M of rows begin to end - 1, so many that `lines_for` them there is scratch."""
    work, path = aligned(walk_size(ints) * WIDTH), np.empty(link_count(ints), np.int64)
    q_w, v_w, a_w, f_w = in_lanes(q), in_lanes(v), in_lanes(a), in_lanes(f_ext)
    dq_w, dv_w, M_w = in_lanes(dtau_dq), in_lanes(dtau_dv), in_lanes(M)
    lines_q, lines_v, lines_M = lines_for(dtau_dq), lines_for(dtau_dv), lines_for(M)
    for matrix in (dq_w, dv_w, M_w):
        matrix[:] = 0.0  # once: zeros stay where they are
    for b in range(begin, end, WIDTH):
        find_lines(dtau_dq, b, end, lines_q)
        find_lines(dtau_dv, b, end, lines_v)
        find_lines(M, b, end, lines_M)
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(a, b, end, a_w)
        gather(f_ext, b, end, f_w)
        derivatives_walk(LANES, ints, floats, q_w, v_w, a_w, f_w, path, work, dq_w, dv_w, M_w,
                         dtau_dq, dtau_dv, M, lines_q, lines_v, lines_M)
