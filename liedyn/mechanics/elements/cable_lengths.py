"""Lengths of cables, the rows that measure them, and how these vary.

A cable is a chain of pieces: straight ones from a point of one body to a point of another, and ones that go round a
cylinder or sphere on a third body. With p and q the two points in the frame C of what is wrapped (of the world for a
straight piece), R its radius, and for each point rho its distance from the axis or centre, alpha = acos(R / rho) and
sqrt(rho^2 - R^2) the straight part beside it,

    straight    L = |q - p|
    cylinder    L = sqrt(L_2^2 + (z_q - z_p)^2)     L_2 = straight parts + R (angle about z - alpha_p - alpha_q)
    sphere      L = straight parts + R (angle at the centre - alpha_p - alpha_q)

a helix on the cylinder, a great circle on the sphere: shortest ways. Where the angle would be negative a piece has
lifted off, and is straight. Gradients of L_2, and of L on a sphere, by p and q are the unit vectors e along the
straight parts, away from the tangent points; these turn as if the tangent points were fixed, de = n (n . dp) / length
within the plane.

With u_j + w_j x p the velocity of a point for a unit speed of j, the row is G_j = e_p . dp_j + e_q . dq_j, seen from C.
"""
import math

from liedyn.lie.algebra import ad, add, cross, dot, rotate, scale, sub, unrotate
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, late
from liedyn.machine.linalg.vectors import inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cut_joints import placed
from liedyn.mechanics.elements.element_wrenches import LAWS_TYPE
from liedyn.mechanics.tree.kinematics import S, of_dof
from liedyn.model.force_elements import (
    CYLINDER, FRAME, LINKS, PATH, PIECE, POINTS, RADIUS, ROW, SENSE, SHORTEST, SIDE, SIDE_AT, STRAIGHT,
)
from liedyn.model.packed_records import MODEL, dof_count, dof_link, dof_total, first_dof, get3, get6, get9, subtree_end

ZERO3 = 0.0, 0.0, 0.0
ONE = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0


@inline
def carries(model, k, i):
    """True if degree of freedom k moves link i."""
    if i < 0:
        return False
    last = first_dof(model, i) + dof_count(model, i) - 1
    return dof_link(model, k) == i or k <= last and last < subtree_end(model, k)


@inline
def straight(p, q, dp, dq):
    """L, its gradients by p and q, and their changes along dp and dq."""
    away, d = sub(q, p), sub(dq, dp)
    L = math.sqrt(dot(away, away))
    e = scale(1.0 / L, away)
    de = scale(1.0 / L, sub(d, scale(dot(e, d), e)))
    return L, scale(-1.0, e), e, scale(-1.0, de), de


@inline
def beside(rho, R):
    """Length of the straight part, sine and cosine of alpha, and alpha."""
    length = math.sqrt(rho * rho - R * R)
    return length, length / rho, R / rho, math.acos(min(R / rho, 1.0))


@inline
def once_round(angle):
    """An angle between zero and two pi."""
    return angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))


@inline
def beside_a_point(R, p, q, side):
    """+1 or -1: counterclockwise or clockwise round a circle, beside a point; 0 if the straight way is there."""
    away = q[0] - p[0], q[1] - p[1]
    part = -(p[0] * away[0] + p[1] * away[1]) / (away[0] * away[0] + away[1] * away[1])
    part = min(max(part, 0.0), 1.0)
    near = p[0] + part * away[0], p[1] + part * away[1]
    if near[0] * near[0] + near[1] * near[1] > R * R and near[0] * side[0] + near[1] * side[1] >= 0.0:
        return 0.0
    phi_p, phi_q = math.atan2(p[1], p[0]), math.atan2(q[1], q[0])
    alpha_p, alpha_q = math.acos(min(R / math.hypot(p[0], p[1]), 1.0)), math.acos(min(R / math.hypot(q[0], q[1]), 1.0))
    best, chosen = -2.0, 0.0
    for s in (1.0, -1.0):
        angle = once_round(s * (phi_q - phi_p)) - alpha_p - alpha_q
        middle = phi_p + s * (alpha_p + 0.5 * angle)
        aligned = (side[0] * math.cos(middle) + side[1] * math.sin(middle)) / math.hypot(side[0], side[1])
        if angle >= 0.0 and aligned > best:
            best, chosen = aligned, s
    return chosen


@inline
def sense_of(numbers, at, p, q):
    """+1 or -1: which way a piece goes round the z axis of C; 0 if it does not."""
    if numbers[at + SENSE] == SHORTEST:
        return 1.0 if p[0] * q[1] - p[1] * q[0] >= 0.0 else -1.0
    if numbers[at + SENSE] == SIDE:
        return beside_a_point(numbers[at + RADIUS], p, q, get3(SCALAR, numbers, at + SIDE_AT))
    return numbers[at + SENSE]


@inline
def round_cylinder(R, s, p, q, dp, dq):
    """As `straight`, and True if it has lifted off."""
    rho_p, rho_q = math.hypot(p[0], p[1]), math.hypot(q[0], q[1])
    (l_p, sin_p, cos_p, alpha_p), (l_q, sin_q, cos_q, alpha_q) = beside(rho_p, R), beside(rho_q, R)
    angle = once_round(s * (math.atan2(q[1], q[0]) - math.atan2(p[1], p[0]))) - alpha_p - alpha_q
    r_p, r_q = (p[0] / rho_p, p[1] / rho_p), (q[0] / rho_q, q[1] / rho_q)
    e_p = sin_p * r_p[0] + s * cos_p * r_p[1], sin_p * r_p[1] - s * cos_p * r_p[0], 0.0
    e_q = sin_q * r_q[0] - s * cos_q * r_q[1], sin_q * r_q[1] + s * cos_q * r_q[0], 0.0
    L_2, rise = l_p + l_q + R * angle, q[2] - p[2]
    L = math.sqrt(L_2 * L_2 + rise * rise)
    along_p, along_q, d_rise = dot(e_p, dp), dot(e_q, dq), dq[2] - dp[2]
    d_L2 = along_p + along_q
    dL = (L_2 * d_L2 + rise * d_rise) / L
    de_p = (dp[0] - along_p * e_p[0]) / l_p, (dp[1] - along_p * e_p[1]) / l_p, 0.0
    de_q = (dq[0] - along_q * e_q[0]) / l_q, (dq[1] - along_q * e_q[1]) / l_q, 0.0
    g_p = L_2 / L * e_p[0], L_2 / L * e_p[1], -rise / L
    g_q = L_2 / L * e_q[0], L_2 / L * e_q[1], rise / L
    dg_p = ((d_L2 * e_p[0] + L_2 * de_p[0] - dL * g_p[0]) / L, (d_L2 * e_p[1] + L_2 * de_p[1] - dL * g_p[1]) / L,
            (-d_rise - dL * g_p[2]) / L)
    dg_q = ((d_L2 * e_q[0] + L_2 * de_q[0] - dL * g_q[0]) / L, (d_L2 * e_q[1] + L_2 * de_q[1] - dL * g_q[1]) / L,
            (d_rise - dL * g_q[2]) / L)
    return (L, g_p, g_q, dg_p, dg_q), s == 0.0 or angle < 0.0


@inline
def sphere_end(rho, beside_it, R, s, x, t, b, cot, mixed, d, d_b):
    """e of one end, and its change, with x, t, b unit vectors outward, towards the other end, and across."""
    length, sin, cos, _ = beside_it
    e, n = sub(scale(sin, x), scale(s * cos, t)), add(scale(cos, x), scale(s * sin, t))
    across = (sin + s * cos * cot) / rho * dot(b, d) - s * R * mixed * d_b
    return e, add(scale(dot(n, d) / length, n), scale(across, b))


@inline
def round_sphere(numbers, at, R, p, q, dp, dq):
    """As `round_cylinder`."""
    rho_p, rho_q = math.sqrt(dot(p, p)), math.sqrt(dot(q, q))
    x_p, x_q = scale(1.0 / rho_p, p), scale(1.0 / rho_q, q)
    across, c = cross(x_p, x_q), dot(x_p, x_q)
    sin = math.sqrt(dot(across, across))
    b, angle = scale(1.0 / sin, across), math.atan2(sin, c)
    t_p, t_q = cross(b, x_p), cross(x_q, b)
    s = 1.0
    if numbers[at + SENSE] == SIDE:
        side = get3(SCALAR, numbers, at + SIDE_AT)
        in_plane = rho_q * c, rho_q * sin
        s = beside_a_point(R, (rho_p, 0.0), in_plane, (dot(x_p, side), dot(t_p, side)))
        angle = 2.0 * math.pi - angle if s < 0.0 else angle
    near_p, near_q = beside(rho_p, R), beside(rho_q, R)
    angle -= near_p[3] + near_q[3]
    mixed = 1.0 / (rho_p * rho_q * sin)
    g_p, dg_p = sphere_end(rho_p, near_p, R, s, x_p, t_p, b, c / sin, mixed, dp, dot(b, dq))
    g_q, dg_q = sphere_end(rho_q, near_q, R, s, x_q, t_q, b, c / sin, mixed, dq, dot(b, dp))
    return (near_p[0] + near_q[0] + R * angle, g_p, g_q, dg_p, dg_q), s == 0.0 or angle < 0.0


@inline
def length_of(numbers, at, p, q, dp, dq):
    """L of the piece at numbers[at:], its gradients by p and q, and their changes along dp and dq."""
    if numbers[at] == STRAIGHT:
        return straight(p, q, dp, dq)
    R = numbers[at + RADIUS]
    if numbers[at] == CYLINDER:
        found, off = round_cylinder(R, sense_of(numbers, at, p, q), p, q, dp, dq)
    else:
        found, off = round_sphere(numbers, at, R, p, q, dp, dq)
    return straight(p, q, dp, dq) if off else found


@inline
def ends_of(model, numbers, world, at):
    """Links of the two points and of what is wrapped, positions of the points, and the pose of C, in world axes."""
    a, b, c = int(numbers[at + LINKS]), int(numbers[at + LINKS + 1]), int(numbers[at + LINKS + 2])
    P = placed(SCALAR, model, world, a, (ONE, get3(SCALAR, numbers, at + POINTS)))[1]
    Q = placed(SCALAR, model, world, b, (ONE, get3(SCALAR, numbers, at + POINTS + 3)))[1]
    C = ONE, ZERO3
    if numbers[at] != STRAIGHT:
        C = placed(SCALAR, model, world, c, (get9(SCALAR, numbers, at + FRAME), get3(SCALAR, numbers, at + FRAME + 9)))
    return (a, b, c), P, Q, C


@inline
def speed(model, world, j, point):
    """Velocity of a point for a unit speed of j."""
    w, u = get6(SCALAR, world, of_dof(model, j, S))
    return add(u, cross(w, point))


@inline
def share(model, k, i, c):
    """1, 0 or -1: how a point of link i moves relative to link c when k moves."""
    return (1.0 if carries(model, k, i) else 0.0) - (1.0 if carries(model, k, c) else 0.0)


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, VECTOR, VECTOR, MATRIX)
def add_cable_lengths(model, laws, world, v, x, w, G):
    """x += L, G += dL/dq and w = G v in the rows of cables; needs `world_positions`."""
    for e in range(laws.records.shape[0]):
        path, r = laws.records[e, PATH], laws.records[e, ROW]
        if path == 0:
            continue
        for piece in range(int(laws.numbers[path])):
            at = path + 1 + PIECE * piece
            (a, b, c), P, Q, C = ends_of(model, laws.numbers, world, at)
            p, q = unrotate(C[0], sub(P, C[1])), unrotate(C[0], sub(Q, C[1]))
            L, g_p, g_q, _, _ = length_of(laws.numbers, at, p, q, ZERO3, ZERO3)
            F_p, F_q = rotate(C[0], g_p), rotate(C[0], g_q)
            x[r] += L
            for j in range(dof_total(model)):
                s_p, s_q = share(model, j, a, c), share(model, j, b, c)
                if s_p != 0.0:
                    G[r, j] += s_p * dot(F_p, speed(model, world, j, P))
                if s_q != 0.0:
                    G[r, j] += s_q * dot(F_q, speed(model, world, j, Q))
        w[r] = inner(G[r], v)


@inline
def row_change(model, world, j, k, ends, F, s_j, moved, c):
    """F . d_k(dp_j): how the velocity of a point, seen from C, for a unit speed of j changes along k."""
    i, point = ends
    if s_j == 0.0:
        return 0.0
    (w_j, u_j), w_k = get6(SCALAR, world, of_dof(model, j, S)), get6(SCALAR, world, of_dof(model, k, S))[0]
    d = cross(w_j, moved)
    if carries(model, k, dof_link(model, j)):
        w, u = ad(get6(SCALAR, world, of_dof(model, k, S)), (w_j, u_j))
        d = add(d, add(u, cross(w, point)))
    if carries(model, k, c):
        d = sub(d, cross(w_k, add(u_j, cross(w_j, point))))
    return s_j * dot(F, d)


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX)
def add_cable_derivatives(model, laws, world, v, f, w_q, D):
    """Add dw/dq to the rows of cables in w_q, and d(G^T f)/dq to D; needs `world_positions`."""
    n = dof_total(model)
    for e in range(laws.records.shape[0]):
        path, r = laws.records[e, PATH], laws.records[e, ROW]
        if path == 0:
            continue
        for piece in range(int(laws.numbers[path])):
            at = path + 1 + PIECE * piece
            (a, b, c), P, Q, C = ends_of(model, laws.numbers, world, at)
            p, q = unrotate(C[0], sub(P, C[1])), unrotate(C[0], sub(Q, C[1]))
            for k in range(n):
                of_p, of_q = speed(model, world, k, P), speed(model, world, k, Q)
                dp = unrotate(C[0], scale(share(model, k, a, c), of_p))
                dq = unrotate(C[0], scale(share(model, k, b, c), of_q))
                _, g_p, g_q, dg_p, dg_q = length_of(laws.numbers, at, p, q, dp, dq)
                F_p, F_q = rotate(C[0], g_p), rotate(C[0], g_q)
                A_p, A_q = rotate(C[0], dg_p), rotate(C[0], dg_q)
                moved_p = of_p if carries(model, k, a) else ZERO3
                moved_q = of_q if carries(model, k, b) else ZERO3
                for j in range(n):
                    s_p, s_q = share(model, j, a, c), share(model, j, b, c)
                    if s_p == 0.0 and s_q == 0.0:
                        continue
                    change = s_p * dot(A_p, speed(model, world, j, P)) + s_q * dot(A_q, speed(model, world, j, Q))
                    change += row_change(model, world, j, k, (a, P), F_p, s_p, moved_p, c)
                    change += row_change(model, world, j, k, (b, Q), F_q, s_q, moved_q, c)
                    w_q[r, k] += v[j] * change
                    D[j, k] += f[r] * change
