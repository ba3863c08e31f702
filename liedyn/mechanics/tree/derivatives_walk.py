"""Derivatives of inverse dynamics of W states in lanes: one traversal of the tree, which writes results on the way.

The formulas are those of `liedyn.mechanics.tree.rnea_derivatives`. In lanes a number fills a cache line, and the data
of all links and all pairs of degrees of freedom exceed the first-level cache: computation would wait for the second
level, and that for the memory to which results are written. So links are visited as late as possible and finished at
once: depth first, the last branch first. Degrees of freedom are finished in descending order. The contributions of each
to the rows of those that carry it overwrite its motion, so that rows are completed one after another, the last ones
first, and are written to memory during the traversal.
"""
import numpy as np

from liedyn.lie.algebra import (
    Ad_dual_inverse, ad, add, add6, add9, add_ad, add_power, add_symmetric, compose, dot, inertia_in_parent,
    inertia_times, scale6, sub6, sub_ad_dual,
)
from liedyn.lie.coriolis import add_coriolis, contribution, coriolis_moments
from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store
from liedyn.machine.simd.sines import put_sines, sines_size
from liedyn.mechanics.tree.joints import accumulate_spring_derivatives, by_kind, dofs_of_kind, screw_of_kind_at
from liedyn.mechanics.tree.poses import origin_of, pose_in_parent
from liedyn.model.calls.batches import aligned, check_rows, find_lines, gather, in_lanes, lines_for, put_complete
from liedyn.model.packed_records import (
    armature, damping, dof_count, dof_link, dof_total, first_dof, fork_of, get3, get6, get9, get_inertia, get_pose,
    inertia, link_count, minus_gravity, parent, parent_dof, put3, put6, put9, put_inertia, put_pose, q_total,
    stretch_of, subtree_end, zero6,
)

# numbers per link on the way to the ground: pose, twist and acceleration in the world
LINK, POSE, TWIST, ACCELERATION = 24, 0, 12, 18
# numbers per fork on that way, and after the last one: for all links visited beyond it, composite inertia I, moments D
# and P of the Coriolis matrix, and wrench F
BEYOND, I, D, P, F = 28, 0, 10, 19, 22
# numbers per degree of freedom: its screw S; then, while links beyond it are visited, the terms for columns of those
# that carry it: Psi_dot + S_dot, Psi_ddot and the angular part of Psi_dot; later overwritten by its contributions to
# the rows of those that carry it: I S, and by q and by v; last, 2 B^T S for its own row
DOF, S, S_RATE, PSI_DDOT, PSI_TURN, BELOW = 27, 0, 6, 12, 18, 24
CARRIED, BY_Q, BY_V = 6, 12, 18
LARGEST_JOINT = 6


@inline
def walk_size(model):
    """Size of the workspace of `derivatives_walk`."""
    return sines_at(model) + sines_size(q_total(model))


@inline
def beyond_at(model, fork):
    return LINK * link_count(model) + BEYOND * fork


@inline
def dof_at(model, j):
    return beyond_at(model, link_count(model)) + DOF * j


@inline
def springs_at(model):
    """Index of the derivatives of a joint's spring, a square matrix."""
    return dof_at(model, dof_total(model))


@inline
def sines_at(model):
    return springs_at(model) + LARGEST_JOINT * LARGEST_JOINT


@inline
def is_fork(model, i):
    """True if link i carries several others directly."""
    return i >= 0 and fork_of(model, first_dof(model, i) + dof_count(model, i) - 1) >= 0


@inline
def outward(lane, joint, model, i, depth, origin, q, v, a, work):
    """Motion of link i and of its screws."""
    X = pose_in_parent(lane, joint, model, i, q, work, sines_at(model), origin)
    k, j = LINK * depth, first_dof(model, i)
    if parent(model, i) < 0:
        Vp, Ap = zero6(lane), minus_gravity(lane, model)
    else:
        X = compose(get_pose(lane, work, k - LINK + POSE), X)
        Vp, Ap = get6(lane, work, k - LINK + TWIST), get6(lane, work, k - LINK + ACCELERATION)
    V, A = Vp, Ap
    for d in range(dofs_of_kind(joint)):
        V = add6(V, scale6(load(lane, v, j + d), screw_of_kind_at(lane, joint, model, i, X, d)))
    for d in range(dofs_of_kind(joint)):
        Sj, at = screw_of_kind_at(lane, joint, model, i, X, d), dof_at(model, j + d)
        psi_dot = ad(Vp, Sj)
        # a single screw is fixed in its own motion
        S_dot = psi_dot if dofs_of_kind(joint) == 1 else ad(V, Sj)
        A = add6(A, add6(scale6(load(lane, a, j + d), Sj), scale6(load(lane, v, j + d), S_dot)))
        put6(lane, work, at + S, Sj)
        put6(lane, work, at + S_RATE, add6(psi_dot, S_dot))
        put6(lane, work, at + PSI_DDOT, add_ad(ad(Ap, Sj), Vp, psi_dot))
        put3(lane, work, at + PSI_TURN, psi_dot[0])
    put_pose(lane, work, k + POSE, X)
    put6(lane, work, k + TWIST, V)
    put6(lane, work, k + ACCELERATION, A)


@inline
def own_dynamics(lane, model, i, depth, f_ext, work):
    """Inertia, Coriolis matrix and wrench of link i alone."""
    k = LINK * depth
    X, V = get_pose(lane, work, k + POSE), get6(lane, work, k + TWIST)
    m, h, J = inertia_in_parent(X, inertia(model, i))
    own = splat(lane, m), h, J
    B = coriolis_moments(own, V)
    # B V = V x* I V
    wrench = add_coriolis(inertia_times(own, get6(lane, work, k + ACCELERATION)), B, V[0])
    if f_ext.size > 0:
        wrench = sub6(wrench, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
    return own, B, wrench


@inline
def with_those(lane, work, k, dynamics):
    """Inertia, Coriolis matrix and wrench of some links, plus those at work[k:]."""
    (m, h, J), (d, p), wrench = dynamics
    m0, h0, J0 = get_inertia(lane, work, k + I)
    return ((m + m0, add(h, h0), add_symmetric(J, J0)),
            (add9(d, get9(lane, work, k + D)), add(p, get3(lane, work, k + P))), add6(wrench, get6(lane, work, k + F)))


@inline
def put_dynamics(lane, work, k, dynamics):
    own, (d, p), wrench = dynamics
    put_inertia(lane, work, k + I, own)
    put9(lane, work, k + D, d)
    put3(lane, work, k + P, p)
    put6(lane, work, k + F, wrench)


@inline
def composite(lane, model, i, depth, fork, f_ext, work):
    """Composite inertia, Coriolis matrix and wrench beyond joint i, stored for the parent."""
    dynamics = own_dynamics(lane, model, i, depth, f_ext, work)
    if i + 1 < link_count(model) and parent(model, i + 1) == i:
        dynamics = with_those(lane, work, beyond_at(model, fork), dynamics)
    if is_fork(model, parent(model, i)):
        put_dynamics(
            lane, work, beyond_at(model, fork - 1), with_those(lane, work, beyond_at(model, fork - 1), dynamics))
    else:
        put_dynamics(lane, work, beyond_at(model, fork), dynamics)
    return dynamics


@inline
def clear(lane, work, k, count):
    for zero in range(k, k + count):
        store(lane, work, zero, 0.0)


@inline
def put_zeros(lane, begin, end, matrices):
    """Zeros in numbers `begin` to `end` - 1 of each matrix."""
    for k in range(begin, end):
        put_entries(lane, k, (0.0, 0.0, 0.0), matrices)


@inline
def put_entries(lane, k, entries, matrices):
    """Write number k of each matrix: of dtau/dq, dtau/dv and M."""
    store(lane, matrices[0], k, entries[0])
    store(lane, matrices[1], k, entries[1])
    store(lane, matrices[2], k, entries[2])


@inline
def inward(lane, joint, model, i, depth, fork, f_ext, work):
    """Contributions of the degrees of freedom of joint i, except for the term in F; returns F, their wrench."""
    carries, B, wrench = composite(lane, model, i, depth, fork, f_ext, work)
    for j in range(first_dof(model, i), first_dof(model, i) + dofs_of_kind(joint)):
        k = dof_at(model, j)
        Sj = get6(lane, work, k + S)
        by_q, by_v, below = contribution(
            carries, B, Sj, get3(lane, work, k + PSI_TURN), get6(lane, work, k + PSI_DDOT),
            get6(lane, work, k + S_RATE))
        put6(lane, work, k + CARRIED, inertia_times(carries, Sj))
        put6(lane, work, k + BY_Q, by_q)
        put6(lane, work, k + BY_V, by_v)
        put3(lane, work, k + BELOW, below)
    return wrench


@inline
def row_of_dof(lane, model, j, at, work, matrices):
    """Row j, at index `at` of the matrices."""
    k, first = dof_at(model, j), first_dof(model, dof_link(model, j))
    Sj, carried, below = get6(lane, work, k + S), get6(lane, work, k + CARRIED), get3(lane, work, k + BELOW)
    behind, last = first, parent_dof(model, first)
    while behind > 0:  # those that carry j, one stretch between forks at a time, and the zeros after it
        put_zeros(lane, at + last + 1, at + behind, matrices)
        behind = stretch_of(model, last) if last >= 0 else 0
        for c in range(behind, last + 1):
            k = dof_at(model, c)
            Sc, S_rate, psi_ddot = (
                get6(lane, work, k + S), get6(lane, work, k + S_RATE), get6(lane, work, k + PSI_DDOT))
            by_q = add_power(dot(below, get3(lane, work, k + PSI_TURN)), carried, psi_ddot)
            by_v = add_power(dot(below, Sc[0]), carried, S_rate)
            put_entries(lane, at + c, (by_q, by_v, add_power(0.0, carried, Sc)), matrices)
        last = parent_dof(model, behind)
    # within the joint both formulas agree except for the term in F, which is not included yet
    for c in range(first, subtree_end(model, j)):
        k = dof_at(model, c)
        by_q, by_v = get6(lane, work, k + BY_Q), get6(lane, work, k + BY_V)
        by_a = get6(lane, work, k + CARRIED)
        put_entries(lane, at + c, (add_power(0.0, by_q, Sj), add_power(0.0, by_v, Sj), add_power(0.0, by_a, Sj)),
                    matrices)
    put_zeros(lane, at + subtree_end(model, j), at + dof_total(model), matrices)


@inline
def joints_own(lane, model, j, at, work, matrices):
    """Spring, damper and armature of the joint of j in row j, which begins at index `at` of the matrices."""
    dtau_dq, dtau_dv, M = matrices
    i, k = dof_link(model, j), at + j
    store(lane, M, k, load(lane, M, k) + armature(model, j))
    store(lane, dtau_dv, k, load(lane, dtau_dv, k) + damping(model, j))
    k, spring = at + first_dof(model, i), springs_at(model) + (j - first_dof(model, i)) * dof_count(model, i)
    for d in range(dof_count(model, i)):
        store(lane, dtau_dq, k + d, load(lane, dtau_dq, k + d) + load(lane, work, spring + d))


@inline
def keep_shared(lane, behind, before, begin, matrix):
    """Move the numbers from `behind` to the end of their register, as the lanes' first number changes."""
    for k in range(behind, behind + -behind % WIDTH):
        store(lane, matrix, k - begin, load(lane, matrix, k - before))


@kernel_in_place
def derivatives_walk(lane, model, q, v, a, f_ext, path, work, lanes, rows, lines):
    """dtau/dq, dtau/dv and M of W states, row by row in lanes, and written to the memory set by `find_lines`."""
    n, nv, (dtau_dq, dtau_dv, M) = link_count(model), dof_total(model), lanes
    put_sines(lane, q, q_total(model), work, sines_at(model))
    origin = origin_of(lane, model, 0, q)
    depth, fork, begin = -1, 0, nv * nv - nv * nv % WIDTH
    for i in range(n - 1, -1, -1):
        branch = parent(model, i + 1) if i + 1 < n else -1
        k, steps = i, 0
        while k != branch:
            path[steps] = k
            k, steps = parent(model, k), steps + 1
        while steps > 0:
            steps -= 1
            depth += 1
            k = path[steps]
            if is_fork(model, parent(model, k)):
                fork += 1
            if is_fork(model, k):
                clear(lane, work, beyond_at(model, fork), BEYOND)
            by_kind(outward, lane, model, k, depth, origin, q, v, a, work)
        wrench = by_kind(inward, lane, model, i, depth, fork, f_ext, work)
        clear(lane, work, springs_at(model), dof_count(model, i) * dof_count(model, i))
        accumulate_spring_derivatives(lane, model, i, q, work, springs_at(model), dof_count(model, i))
        for j in range(first_dof(model, i) + dof_count(model, i) - 1, first_dof(model, i) - 1, -1):
            # row j goes into the lanes before the rest of a register that it shares with row j + 1
            row, before, begin = j * nv, begin, j * nv - j * nv % WIDTH
            keep_shared(lane, row + nv, before, begin, dtau_dq)
            keep_shared(lane, row + nv, before, begin, dtau_dv)
            keep_shared(lane, row + nv, before, begin, M)
            row_of_dof(lane, model, j, row - begin, work, lanes)
            joints_own(lane, model, j, row - begin, work, lanes)
            for x in range(3):
                put_complete(lanes[x], begin, row, row + nv, rows[x], lines[x])
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            k = dof_at(model, j)
            put6(lane, work, k + BY_Q, sub_ad_dual(get6(lane, work, k + BY_Q), get6(lane, work, k + S), wrench))
        if is_fork(model, parent(model, i)):
            fork -= 1
        depth -= 1


@kernel(nogil=True)
def walk_states(begin, end, model, q, v, a, f_ext, dtau_dq, dtau_dv, M, verdict):
    """dtau/dq, dtau/dv and M of rows begin to end - 1; they must be many enough for the scratch of `lines_for`."""
    work, path = aligned(walk_size(model) * WIDTH), np.empty(link_count(model), np.int64)
    q_w, v_w, a_w, f_w = in_lanes(q), in_lanes(v), in_lanes(a), in_lanes(f_ext)
    kept = (dof_total(model) + 2 * WIDTH) * WIDTH  # a row, and what shares registers with it on both sides
    lanes, rows = (aligned(kept), aligned(kept), aligned(kept)), (dtau_dq, dtau_dv, M)
    lines = lines_for(dtau_dq), lines_for(dtau_dv), lines_for(M)
    for b in range(begin, end, WIDTH):
        check_rows(verdict, q, b, end)
        check_rows(verdict, v, b, end)
        check_rows(verdict, a, b, end)
        for x in range(3):
            find_lines(rows[x], b, end, lines[x])
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(a, b, end, a_w)
        gather(f_ext, b, end, f_w)
        derivatives_walk(LANES, model, q_w, v_w, a_w, f_w, path, work, lanes, rows, lines)
