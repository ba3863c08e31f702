"""Constraint Jacobian of the cut joints, its bias, and all derivatives that a linearization needs.

The rows of a cut joint are constant components of the relative motion in its cut frame C: forbidden directions, or
virtual velocities. With x the components in C of the relative twist (see `liedyn.mechanics.constraints.relative`),

    psi = x_k        phi = xdot_k        G_j = x_k of S_j

and a helical row combines two of them. Constraint wrenches are constant in C too.
"""
from liedyn.lie.algebra import Ad_dual_inverse, add, add6, compose, dot6, minus_ad_dual, sub6
from liedyn.lie.exponential import inverse
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import put_element
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.cut_joints import FORBIDDEN, VIRTUAL, cut_frames, put_residual, residual_rate
from liedyn.mechanics.constraints.relative import (
    ZERO6, frame_turn, path_ends, push_sides, relative_derivatives, relative_rate, relative_screw, relative_twist,
    relative_variation, side_accelerations, side_states, side_twists, side_variations, toward_ground, wrench_variations,
)
from liedyn.mechanics.tree.kinematics import S, of_dof
from liedyn.mechanics.tree.tangent_recursion import hand_over, vary_push
from liedyn.model.constraint_records import (
    is_active, is_cut, loop_count, loop_kind, loop_links, loop_pitch, loop_rows, loop_virtuals,
)
from liedyn.model.kinds import HELICAL
from liedyn.model.packed_records import dof_link, get6, get_pose, put6, put_pose, zero6


@inline
def component(x, k):
    """Component k of a six-vector; k need not be known at compile time."""
    w, v = x
    if k < 3:
        return w[0] if k == 0 else (w[1] if k == 1 else w[2])
    return v[0] if k == 3 else (v[1] if k == 4 else v[2])


@inline
def read(kind, pitch, virtual, r, x):
    """Row r of a cut joint: a forbidden component of the relative motion x in C, or a virtual velocity."""
    if virtual:
        return component(x, VIRTUAL[kind, r])
    k = FORBIDDEN[kind, r]
    if kind == HELICAL and k == 5:
        return x[1][2] - pitch * x[0][2]
    return component(x, k)


@inline
def rows_in(lane, model, work, l, virtual):
    """Kind, frame, first row and number of rows of a loop, for the forbidden directions or the virtual velocities."""
    A, B = loop_frames(lane, model, work, l)
    return rows_between(model, l, virtual, A, B)


@inline
def rows_between(model, l, virtual, A, B):
    """`rows_in` for given world poses of frames A and B."""
    kind = loop_kind(model, l)
    rows_frame, virtual_frame = cut_frames(kind, A, B)
    if virtual:
        first, count = loop_virtuals(model, l)
        return kind, virtual_frame, first, count
    first, count = loop_rows(model, l)
    return kind, rows_frame, first, count


@inline
def counts(model, l, virtual):
    """True if there are rows to fill; virtual velocities exist also for a cut that is switched off."""
    return is_cut(model, l) and (virtual or is_active(model, l))


@inline
def put_columns(lane, model, work, l, kind, pitch, virtual, C, first, count, G):
    """Rows of cut l in G, or of virtual velocities in E: nonzero between its ends and their common ancestor."""
    ja, jb = path_ends(model, l)
    while ja != jb:
        j, on_b = max(ja, jb), jb > ja
        x = relative_screw(lane, model, work, j, on_b, C)
        for r in range(count):
            put_element(lane, G, first + r, j, read(kind, pitch, virtual, r, x))
        ja, jb = toward_ground(model, ja, jb)


@kernel_in_place
def cut_jacobian_kernel(lane, model, work, virtual, G):
    """The cut joints' rows of G (m, nv), or of E (nz, nv) for virtual velocities; other rows are not changed."""
    for l in range(loop_count(model)):
        if not counts(model, l, virtual):
            continue
        kind, C, first, count = rows_in(lane, model, work, l, virtual)
        put_columns(lane, model, work, l, kind, loop_pitch(model, l), virtual, C, first, count, G)


@kernel_in_place
def cut_residual_kernel(model, work, g_q):
    """The cut joints' rows of dg/dq (m, nv), which equal those of G in closed loops; other rows are not changed."""
    for l in range(loop_count(model)):
        if not counts(model, l, False):
            continue
        (A, B), kind, (first, count) = loop_frames(SCALAR, model, work, l), loop_kind(model, l), loop_rows(model, l)
        T, (ja, jb) = compose(inverse(A), B), path_ends(model, l)
        while ja != jb:
            j = max(ja, jb)
            x = residual_rate(kind, loop_pitch(model, l), T, relative_screw(SCALAR, model, work, j, jb > ja, A))
            for r in range(count):
                g_q[first + r, j] = read(kind, loop_pitch(model, l), False, r, x)
            ja, jb = toward_ground(model, ja, jb)


@kernel_in_place
def cut_velocity_kernel(lane, model, work, virtual, psi):
    """psi (m) of the cut joints, or with `virtual` the virtual velocities; needs `world_velocities`."""
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            kind, C, first, count = rows_in(lane, model, work, l, virtual)
            x = relative_twist(lane, model, work, l, C)
            for r in range(count):
                store(lane, psi, first + r, read(kind, loop_pitch(model, l), virtual, r, x))


@kernel_in_place
def cut_bias_kernel(model, work, virtual, phi):
    """phi (m) of the cut joints at the accelerations in `work`: with a = 0 it is Gdot v - bdot."""
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            kind, C, first, count = rows_in(SCALAR, model, work, l, virtual)
            x = relative_rate(SCALAR, model, work, l, kind, virtual, C)
            for r in range(count):
                phi[first + r] = read(kind, loop_pitch(model, l), virtual, r, x)


@inline
def put_terms(lane, model, work, l, A, B, G, phi):
    """Rows of G and phi of cut l, for given world poses of frames A and B."""
    kind, C, first, count = rows_between(model, l, False, A, B)
    pitch = loop_pitch(model, l)
    rate = relative_rate(lane, model, work, l, kind, False, C)
    for r in range(count):
        store(lane, phi, first + r, read(kind, pitch, False, r, rate))
    put_columns(lane, model, work, l, kind, pitch, False, C, first, count, G)


@kernel_in_place
def cut_terms_kernel(lane, model, work, G, phi):
    """`cut_jacobian_kernel` and `cut_bias_kernel` of the active cut joints, computing each frame once."""
    for l in range(loop_count(model)):
        if counts(model, l, False):
            A, B = loop_frames(lane, model, work, l)
            put_terms(lane, model, work, l, A, B, G, phi)


@kernel_in_place
def cut_state_kernel(lane, model, work, residual, psi, G, phi):
    """`closure_kernel`, `cut_velocity_kernel` and `cut_terms_kernel`, computing each frame once."""
    for l in range(loop_count(model)):
        if counts(model, l, False):
            A, B = loop_frames(lane, model, work, l)
            put_residual(lane, model, l, A, B, residual)
            kind, C, first, count = rows_between(model, l, False, A, B)
            x = relative_twist(lane, model, work, l, C)
            for r in range(count):
                store(lane, psi, first + r, read(kind, loop_pitch(model, l), False, r, x))
            put_terms(lane, model, work, l, A, B, G, phi)


@kernel_in_place
def cut_derivatives_kernel(model, work, virtual, psi_q, phi_q, phi_v):
    """Fills dpsi/dq, dphi/dq and dphi/dv, each (m, nv); needs positions, velocities and accelerations in `work`."""
    for l in range(loop_count(model)):
        if not counts(model, l, virtual):
            continue
        kind, C, first, count = rows_in(SCALAR, model, work, l, virtual)
        pitch = loop_pitch(model, l)
        v_a, v_b = side_twists(SCALAR, model, work, l)
        a_a, a_b = side_accelerations(SCALAR, model, work, l)
        ja, jb = path_ends(model, l)
        while ja != jb:
            j, on_b = max(ja, jb), jb > ja
            twist_q, rate_q, rate_v = relative_derivatives(model, work, j, on_b, kind, virtual, C, v_a, v_b, a_a, a_b)
            for r in range(count):
                psi_q[first + r, j] = read(kind, pitch, virtual, r, twist_q)
                phi_q[first + r, j] = read(kind, pitch, virtual, r, rate_q)
                phi_v[first + r, j] = read(kind, pitch, virtual, r, rate_v)
            ja, jb = toward_ground(model, ja, jb)


@inline
def cut_wrench(lane, kind, pitch, virtual, first, count, lam):
    """W lambda in C: the wrench on side a, minus that on b; or with `virtual`, for forces along virtual velocities."""
    zero = splat(lane, 0.0)
    w, v = (zero, zero, zero), (zero, zero, zero)
    for r in range(count):
        k, x = VIRTUAL[kind, r] if virtual else FORBIDDEN[kind, r], load(lane, lam, first + r)
        w = add(w, (x if k == 0 else zero, x if k == 1 else zero, x if k == 2 else zero))
        v = add(v, (x if k == 3 else zero, x if k == 4 else zero, x if k == 5 else zero))
        if kind == HELICAL and k == 5 and not virtual:
            w = w[0], w[1], w[2] - pitch * x
    return w, v


@inline
def carry_wrench(model, work, l, ends, frame, F, dF, D):
    """Column of D += d(J^T F)/dq for the larger of two `ends`, along which the wrench F changes in its frame by dF.

    F and dF are in world coordinates; the frame of the rows is (kind, virtual, C).
    """
    j, j_on_b = max(ends[0], ends[1]), ends[1] > ends[0]
    Sj = get6(SCALAR, work, of_dof(model, j, S))
    zeta = frame_turn(model, work, j, j_on_b, *frame)
    turned, carried = add6(dF, minus_ad_dual(zeta, F)), add6(dF, minus_ad_dual(sub6(zeta, Sj), F))
    ia, ib = path_ends(model, l)
    while ia != ib:
        i, i_on_b = max(ia, ib), ib > ia
        # a joint after j on the same side, and j itself, turns with S_j
        moves_along = i_on_b == j_on_b and dof_link(model, i) >= dof_link(model, j)
        pulled = dot6(carried if moves_along else turned, get6(SCALAR, work, of_dof(model, i, S)))
        D[i, j] += pulled if i_on_b else -pulled
        ia, ib = toward_ground(model, ia, ib)


@kernel_in_place
def cut_force_derivative_kernel(model, work, virtual, lam, D):
    """D += d(J^T lambda)/dq (nv, nv), J the cut joints' rows of G or E: their wrenches turn with the cut frames."""
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            kind, C, first, count = rows_in(SCALAR, model, work, l, virtual)
            F = Ad_dual_inverse(C, cut_wrench(SCALAR, kind, loop_pitch(model, l), virtual, first, count, lam))
            ja, jb = path_ends(model, l)
            while ja != jb:
                carry_wrench(model, work, l, (ja, jb), (kind, virtual, C), F, ZERO6, D)
                ja, jb = toward_ground(model, ja, jb)


# ---- in many directions at once (`liedyn.mechanics.tree.tangent_recursion`)

# stored for each cut, for all blocks of directions: frame C, twists and accelerations of the sides, wrench
CUT, TWISTS, RATES, PULL = 42, 12, 24, 36


@kernel_in_place
def put_cuts(lane, model, work, lam, bodies, cuts):
    """Fill `cuts` (CUT numbers for each record) for active cut joints, and add their wrenches to those of the links."""
    for l in range(loop_count(model)):
        if counts(model, l, False):
            kind, C, first, count = rows_in(lane, model, work, l, False)
            v, a = side_states(lane, model, work, l)
            F = Ad_dual_inverse(C, cut_wrench(lane, kind, loop_pitch(model, l), False, first, count, lam))
            push_sides(lane, model, l, F, bodies)
            put_pose(lane, cuts, CUT * l, C)
            put6(lane, cuts, CUT * l + TWISTS, v[0])
            put6(lane, cuts, CUT * l + TWISTS + 6, v[1])
            put6(lane, cuts, CUT * l + RATES, a[0])
            put6(lane, cuts, CUT * l + RATES + 6, a[1])
            put6(lane, cuts, CUT * l + PULL, F)


@inline
def cut_state(lane, model, work, cuts, l, virtual):
    """Frame of the rows, twists and accelerations of the sides: as stored, or in the frame of virtual velocities."""
    C = get_pose(lane, cuts, CUT * l)
    v = get6(lane, cuts, CUT * l + TWISTS), get6(lane, cuts, CUT * l + TWISTS + 6)
    a = get6(lane, cuts, CUT * l + RATES), get6(lane, cuts, CUT * l + RATES + 6)
    if virtual:  # virtual velocities exist also for an inactive cut
        C = rows_in(lane, model, work, l, True)[1]
        v, a = side_states(lane, model, work, l)
    return C, v, a


@inline
def vary_rows(model, l, virtual, b, x, out):
    """Rows of cut l applied to x, lanes, in block b of `out`."""
    width, pitch = out.shape[1] // WIDTH, loop_pitch(model, l)
    first, count = loop_virtuals(model, l) if virtual else loop_rows(model, l)
    for r in range(count):
        store(LANES, out, width * (first + r) + b, read(loop_kind(model, l), pitch, virtual, r, x))


@kernel_in_place
def vary_cut_velocities(lane, model, links, virtual, b, psi):
    """psi[:, block b]: rows of `cut_velocity_kernel` applied to the variations of the relative twists."""
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C, v, a = cut_state(lane, model, links.world, links.cuts, l, virtual)
            eta, dv, _ = side_variations(lane, model, links.world, links.variations, l)
            # only the first result is used, so dv stands for da
            x, _ = relative_variation(loop_kind(model, l), virtual, C, v, a, eta, dv, dv)
            vary_rows(model, l, virtual, b, x, psi)


@kernel_in_place
def vary_cut_accelerations(lane, model, links, virtual, b, phi):
    """phi[:, block b]: rows of `cut_bias_kernel` applied to the variations of the relative twists' rates."""
    for l in range(loop_count(model)):
        if counts(model, l, virtual):
            C, v, a = cut_state(lane, model, links.world, links.cuts, l, virtual)
            eta, dv, da = side_variations(lane, model, links.world, links.variations, l)
            _, x = relative_variation(loop_kind(model, l), virtual, C, v, a, eta, dv, da)
            vary_rows(model, l, virtual, b, x, phi)


@kernel_in_place
def vary_cut_wrenches(lane, model, links, b, shares, balance):
    """Variations of the cut joints' wrenches at constant lambda: constant in C, they turn with it.

    For shared columns, the share that acts on a link carrying the whole loop is handed over (`vary_forces`).
    """
    cuts, variations = links.cuts, links.variations
    for l in range(loop_count(model)):
        if counts(model, l, False):
            C, F = get_pose(lane, cuts, CUT * l), get6(lane, cuts, CUT * l + PULL)
            dF_a, dF_b = wrench_variations(model, l, loop_kind(model, l), C, F, zero6(LANES), variations)
            ja, jb = path_ends(model, l)
            (link_a, link_b), i = loop_links(model, l), dof_link(model, max(ja, jb))  # i is a link of the loop's group
            vary_push(variations, link_a, hand_over(lane, model, links, shares, i, link_a, dF_a, b, balance))
            vary_push(variations, link_b, hand_over(lane, model, links, shares, i, link_b, dF_b, b, balance))
