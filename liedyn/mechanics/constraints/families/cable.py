"""Cables: the length of a path through points of bodies and round cylinders and spheres, minus that of the cable.

Inextensible cables are one-sided: the residual stays below zero, and the multiplier is the tension. Force elements and
winches measure such a residual. With p and q the ends of a piece as seen from the frame C of what it goes round, and
their velocities pdot and qdot seen from there, the row is the sum over all pieces of

    e_p . pdot + e_q . qdot

with e_p and e_q the gradients of the piece's length (`liedyn.mechanics.constraints.cable_lengths`). This is linear in
the velocities, so that on jets the same line gives G, the bias and every derivative, as for contacts. Each function is
compiled at its first call (`late`): robots with contacts and no cables need none.
"""
from numba import types

from liedyn.lie.algebra import (
    Ad_dual_inverse, Ad_inverse, ad, add, add6, cross, dot, minus_ad_dual, neg6, rotate, scale, sub, sub6, unrotate,
)
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.mechanics.constraints.cable_lengths import AXIS, arc, gradients, piece_length
from liedyn.mechanics.constraints.cut_joints import placed
from liedyn.mechanics.constraints.jets import ZERO3, constant, jet_dot, sum_of
from liedyn.mechanics.constraints.relative import followed, relative_derivatives, relative_screw, relative_variation
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of
from liedyn.mechanics.tree.tangent_recursion import DA, DV, ETA, push_link, variation_of, vary_push
from liedyn.model.cable_paths import BELT, FRAME, LINKS, PIECE, POINTS, SENSE, SIDE_AT
from liedyn.model.constraint_records import loop_at, loop_integer, loop_rows
from liedyn.model.kinds import CABLE
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH
from liedyn.model.packed_records import MODEL, dof_count, dof_link, dof_total, first_dof, get3, get6, get9, subtree_end

ONE = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0
INT, FLOAT = types.int64, types.float64


@inline
def piece_count(model, l):
    return int(model.floats[loop_integer(model, l, LOOP_COEFFICIENTS)])


@inline
def piece_at(model, l, k):
    """Index in floats of piece k."""
    return loop_integer(model, l, LOOP_COEFFICIENTS) + 1 + PIECE * k


@inline
def piece(model, work, at):
    """Links of both ends and of C; the frames P and Q with the axes of C at both ends; and the ends as seen from C."""
    numbers = model.floats
    a, b, c = int(numbers[at + LINKS]), int(numbers[at + LINKS + 1]), int(numbers[at + LINKS + 2])
    P = placed(SCALAR, model, work, a, (ONE, get3(SCALAR, numbers, at + POINTS)))[1]
    Q = placed(SCALAR, model, work, b, (ONE, get3(SCALAR, numbers, at + POINTS + 3)))[1]
    C = placed(SCALAR, model, work, c, (get9(SCALAR, numbers, at + FRAME), get3(SCALAR, numbers, at + FRAME + 9)))
    p, q = unrotate(C[0], sub(P, C[1])), unrotate(C[0], sub(Q, C[1]))
    return (a, b, c), ((C[0], P), (C[0], Q)), (p, q)


@inline
def carries(model, k, i):
    """True if degree of freedom k moves link i."""
    if i < 0:
        return False
    last = first_dof(model, i) + dof_count(model, i) - 1
    return dof_link(model, k) == i or k <= last and last < subtree_end(model, k)


@inline
def share(model, k, i, c):
    """1, 0 or -1: how a point of link i moves relative to link c when k moves."""
    return (1.0 if carries(model, k, i) else 0.0) - (1.0 if carries(model, k, c) else 0.0)


@inline
def unit_motion(model, work, j, i, c, F):
    """Velocity of a point of link i, the origin of F, as seen from link c for a unit speed of j, in the axes of F."""
    s = share(model, j, i, c)
    return scale(s, Ad_inverse(F, get6(SCALAR, work, of_dof(model, j, S)))[1]) if s != 0.0 else ZERO3


@inline
def row_of(numbers, at, ends, speeds):
    """The row of a piece on jets."""
    e_p, e_q = gradients(numbers, at, ends[0], ends[1])
    return sum_of(jet_dot(e_p, speeds[0]), jet_dot(e_q, speeds[1]))


@inline
def sides(model, work, i, c):
    """Twists and accelerations of links c and i, two pairs."""
    return ((twist_of(SCALAR, work, c), twist_of(SCALAR, work, i)),
            (acceleration_of(SCALAR, model, work, c), acceleration_of(SCALAR, model, work, i)))


@inline
def motion_of(state, F):
    """Velocity of the origin of F in the second of two sides, as seen from the first one, and its rate."""
    v, a = state
    v_r = sub6(v[1], v[0])
    v_F = add6(v[0], followed(CABLE, False, F, v_r))
    return Ad_inverse(F, v_r)[1], Ad_inverse(F, sub6(sub6(a[1], a[0]), ad(v_F, v_r)))[1]


@inline
def direction(model, work, at):
    """Direction of a straight part of a belt, in the world."""
    _, (_, Q), (p, q) = piece(model, work, at)
    return rotate(Q[0], gradients(model.floats, at, constant(p), constant(q))[1][0])


@inline
def arc_between(model, work, at, beyond):
    """Length of the arc between two straight parts of a belt."""
    (_, b, _), (P, _), _ = piece(model, work, at)
    axis = rotate(placed(SCALAR, model, work, b, (ONE, ZERO3))[0], get3(SCALAR, model.floats, at + SIDE_AT))
    return arc(model.floats[at + SENSE], rotate(P[0], AXIS), axis, direction(model, work, at),
               direction(model, work, beyond))


@late(MODEL, INT, VECTOR, returns=FLOAT)
def total_length(model, l, work):
    """Length of the path; needs `world_positions`."""
    total = 0.0
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        _, _, (p, q) = piece(model, work, at)
        total += piece_length(model.floats, at, p, q)
        if model.floats[at] == BELT and model.floats[at + SENSE] != 0.0:
            total += arc_between(model, work, at, piece_at(model, l, (k + 1) % piece_count(model, l)))
    return total


@late(MODEL, INT, VECTOR, MATRIX)
def put_gradient(model, l, work, G):
    """Add the row to G (m, nv), where it is zero; needs `world_positions`."""
    row = loop_rows(model, l)[0]
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        e_p, e_q = gradients(model.floats, at, constant(p), constant(q))
        for j in range(dof_total(model)):
            G[row, j] += dot(e_p[0], unit_motion(model, work, j, a, c, P)) + dot(
                e_q[0], unit_motion(model, work, j, b, c, Q))


@late(MODEL, INT, VECTOR, returns=FLOAT)
def total_rate(model, l, work):
    """Rate of the length; needs `world_velocities`."""
    total = 0.0
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        e_p, e_q = gradients(model.floats, at, constant(p), constant(q))
        v_c = twist_of(SCALAR, work, c)
        total += dot(e_p[0], Ad_inverse(P, sub6(twist_of(SCALAR, work, a), v_c))[1])
        total += dot(e_q[0], Ad_inverse(Q, sub6(twist_of(SCALAR, work, b), v_c))[1])
    return total


@late(MODEL, INT, VECTOR, returns=FLOAT)
def total_bias(model, l, work):
    """Second rate of the length at the accelerations in `work`."""
    total = 0.0
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        (v_p, a_p), (v_q, a_q) = motion_of(sides(model, work, a, c), P), motion_of(sides(model, work, b, c), Q)
        total += row_of(model.floats, at, ((p, v_p, ZERO3, ZERO3), (q, v_q, ZERO3, ZERO3)),
                        ((v_p, a_p, ZERO3, ZERO3), (v_q, a_q, ZERO3, ZERO3)))[1]
    return total


@inline
def unit_changes(model, work, j, i, c, state, F):
    """How the origin of F, in link i as seen from link c, is displaced by j, and how its velocity and the rate of that
    change by q_j, and the rate by v_j."""
    on_i = carries(model, j, i)
    if on_i == carries(model, j, c):
        return ZERO3, ZERO3, ZERO3, ZERO3
    (v_c, v_i), (a_c, a_i) = state
    y_q, rate_q, rate_v = relative_derivatives(model, work, j, on_i, CABLE, False, F, v_c, v_i, a_c, a_i)
    return relative_screw(SCALAR, model, work, j, on_i, F)[1], y_q[1], rate_q[1], rate_v[1]


@late(MODEL, INT, VECTOR, *[MATRIX] * 3)
def put_derivatives(model, l, work, psi_q, phi_q, phi_v):
    """Add to dpsi/dq, dphi/dq, dphi/dv (m, nv), where they are zero; needs positions to accelerations in `work`."""
    row = loop_rows(model, l)[0]
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        of_p, of_q = sides(model, work, a, c), sides(model, work, b, c)
        (v_p, a_p), (v_q, a_q) = motion_of(of_p, P), motion_of(of_q, Q)
        for j in range(dof_total(model)):
            y_p, u_p, u_pq, u_pv = unit_changes(model, work, j, a, c, of_p, P)
            y_q, u_q, u_qq, u_qv = unit_changes(model, work, j, b, c, of_q, Q)
            by_q = row_of(model.floats, at, ((p, v_p, y_p, u_p), (q, v_q, y_q, u_q)),
                          ((v_p, a_p, u_p, u_pq), (v_q, a_q, u_q, u_qq)))
            by_v = row_of(model.floats, at, ((p, v_p, ZERO3, y_p), (q, v_q, ZERO3, y_q)),
                          ((v_p, a_p, y_p, u_pv), (v_q, a_q, y_q, u_qv)))
            psi_q[row, j] += by_q[2]
            phi_q[row, j] += by_q[3]
            phi_v[row, j] += by_v[3]


@inline
def row_change(model, work, j, k, i, c, place, force):
    """force . d_k(dp_j): how the velocity of a point, seen from C, for a unit speed of j changes along k."""
    s = share(model, j, i, c)
    if s == 0.0:
        return 0.0
    (w_j, u_j), (w_k, u_k) = get6(SCALAR, work, of_dof(model, j, S)), get6(SCALAR, work, of_dof(model, k, S))
    d = ZERO3
    if carries(model, k, i):
        d = cross(w_j, add(u_k, cross(w_k, place)))
    if carries(model, k, dof_link(model, j)):
        w, u = ad((w_k, u_k), (w_j, u_j))
        d = add(d, add(u, cross(w, place)))
    if carries(model, k, c):
        d = sub(d, cross(w_k, add(u_j, cross(w_j, place))))
    return s * dot(force, d)


@late(MODEL, INT, VECTOR, FLOAT, MATRIX)
def add_force_derivative(model, l, work, tension, D):
    """D += d(G^T tension)/dq (nv, nv); needs `world_positions`."""
    for r in range(piece_count(model, l)):
        at = piece_at(model, l, r)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        for k in range(dof_total(model)):
            y_p, y_q = unit_motion(model, work, k, a, c, P), unit_motion(model, work, k, b, c, Q)
            e_p, e_q = gradients(model.floats, at, (p, ZERO3, y_p, ZERO3), (q, ZERO3, y_q, ZERO3))
            F_p, F_q = rotate(P[0], e_p[0]), rotate(Q[0], e_q[0])
            for j in range(dof_total(model)):
                change = dot(e_p[2], unit_motion(model, work, j, a, c, P))
                change += dot(e_q[2], unit_motion(model, work, j, b, c, Q))
                change += row_change(model, work, j, k, a, c, P[1], F_p)
                change += row_change(model, work, j, k, b, c, Q[1], F_q)
                D[j, k] += tension * change


# ---- in many directions at once (`liedyn.mechanics.tree.tangent_recursion`)


@inline
def varied_motion(variations, i, c, state, F, with_rates):
    """As `unit_changes` along many directions: displacement, and changes of the velocity and of its rate."""
    eta = variation_of(variations, c, ETA), variation_of(variations, i, ETA)
    dv = variation_of(variations, c, DV), variation_of(variations, i, DV)
    da = variation_of(variations, c, DA), variation_of(variations, i, DA)
    du, du_dot = relative_variation(CABLE, False, F, state[0], state[1], eta, dv, da if with_rates else dv)
    return Ad_inverse(F, sub6(eta[1], eta[0]))[1], du[1], du_dot[1]


@late(MODEL, INT, VECTOR, VECTOR, INT, INT, MATRIX)
def vary_row(model, l, work, variations, part, block, out):
    """out[:, block] += variations of the row's velocity (part 2) or acceleration (part 3), where they are zero."""
    place = out.shape[1] // WIDTH * loop_rows(model, l)[0] + block
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        of_p, of_q = sides(model, work, a, c), sides(model, work, b, c)
        (v_p, a_p), (v_q, a_q) = motion_of(of_p, P), motion_of(of_q, Q)
        y_p, u_p, du_p = varied_motion(variations, a, c, of_p, P, part == 3)
        y_q, u_q, du_q = varied_motion(variations, b, c, of_q, Q, part == 3)
        row = row_of(model.floats, at, ((p, v_p, y_p, u_p), (q, v_q, y_q, u_q)),
                     ((v_p, a_p, u_p, du_p), (v_q, a_q, u_q, du_q)))
        store(LANES, out, place, load(LANES, out, place) + (row[2] if part == 2 else row[3]))


@inline
def wrench_at(F, tension, e):
    """The wrench of a force along e at the origin of F, of floats or lanes, in the world."""
    return Ad_dual_inverse(F, (scale(0.0, e), scale(tension, e)))


@late(MODEL, INT, VECTOR, FLOAT, VECTOR)
def push_ends(model, l, work, tension, bodies):
    """Add the wrenches of the tension to those of the links."""
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        e_p, e_q = gradients(model.floats, at, constant(p), constant(q))
        W_p, W_q = wrench_at(P, tension, e_p[0]), wrench_at(Q, tension, e_q[0])
        push_link(SCALAR, bodies, a, W_p)
        push_link(SCALAR, bodies, b, W_q)
        push_link(SCALAR, bodies, c, neg6(add6(W_p, W_q)))


@inline
def vary_end(variations, i, c, F, tension, e):
    """Variations of the wrenches of one end: they rotate with C, and change in C with the ends."""
    moved = sub6(variation_of(variations, i, ETA), variation_of(variations, c, ETA))
    along = followed(CABLE, False, F, moved)
    W, dW = wrench_at(F, tension, e[0]), wrench_at(F, tension, e[2])
    vary_push(variations, i, sub6(dW, minus_ad_dual(sub6(moved, along), W)))
    vary_push(variations, c, neg6(add6(dW, minus_ad_dual(along, W))))


@late(MODEL, INT, VECTOR, FLOAT, VECTOR)
def vary_ends(model, l, work, tension, variations):
    """Variations of these wrenches at constant tension."""
    for k in range(piece_count(model, l)):
        at = piece_at(model, l, k)
        (a, b, c), (P, Q), (p, q) = piece(model, work, at)
        eta_c = variation_of(variations, c, ETA)
        y_p = Ad_inverse(P, sub6(variation_of(variations, a, ETA), eta_c))[1]
        y_q = Ad_inverse(Q, sub6(variation_of(variations, b, ETA), eta_c))[1]
        e_p, e_q = gradients(model.floats, at, (p, ZERO3, y_p, scale(0.0, y_p)), (q, ZERO3, y_q, scale(0.0, y_q)))
        vary_end(variations, a, c, P, tension, e_p)
        vary_end(variations, b, c, Q, tension, e_q)


# ---- what the rows of all families are made of (`liedyn.mechanics.constraints.families`)


@inline
def residual(model, l, q, work, g):
    g[loop_rows(model, l)[0]] = total_length(model, l, work) - model.floats[loop_at(model, l, LOOP_LENGTH)]


@inline
def jacobian(model, l, q, work, G):
    put_gradient(model, l, work, G)


@inline
def velocity(model, l, q, v, work, psi):
    psi[loop_rows(model, l)[0]] = total_rate(model, l, work)


@inline
def bias(model, l, q, v, work, phi):
    phi[loop_rows(model, l)[0]] = total_bias(model, l, work)


@inline
def derivatives(model, l, q, v, a, work, slopes):
    psi_q, phi_q, phi_v = slopes
    put_derivatives(model, l, work, psi_q, phi_q, phi_v)


@inline
def force_derivative(model, l, q, work, lam, D):
    add_force_derivative(model, l, work, lam[loop_rows(model, l)[0]], D)


@inline
def vary_rows(model, l, motion, links, columns, part, b, out):
    vary_row(model, l, links.world, links.variations, part, b, out)


@inline
def push(model, l, work, lam, bodies):
    push_ends(model, l, work, lam[loop_rows(model, l)[0]], bodies)


@inline
def vary_wrench(model, l, work, lam, variations):
    vary_ends(model, l, work, lam[loop_rows(model, l)[0]], variations)
