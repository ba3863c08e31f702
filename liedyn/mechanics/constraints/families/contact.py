"""Points, directions and surfaces in contact: distance, plane, cylinder, circle, knife edge, rolling disk and spheres.

With everything in the axes of frame A, p is the origin of frame B, d a direction fixed in B, w and v the relative
angular velocity and the velocity pdot, e = e_z the normal or axis in A, and r the radius of the disk or sphere on the
child:

    distance, on_sphere     |p| = L                         n . v                           n = p / |p|
    on_plane                e . p = 0                       e . v
    on_cylinder             |p_xy| = L                      n_xy . v                        n_xy = p_xy / |p_xy|
    on_circle               both of the last two
    knife_edge              -                               d . v
    disk_on_plane           e . p = r sqrt(1 - (d . e)^2)   v + w x rho,  rho = -r u,  u = unit(e - d (d . e))
    sphere_on_plane         e . p = r                       v + w x rho,  rho = -r e
    sphere_on_sphere        |p| = L + r                     n . v,  s - n (n . s),  s = v - r w x n

d is the axle of a disk. A sphere inside another one has r < 0. The first column is the residual, the second one, in its
row along the normal, its rate; the rows beyond that are rolling without slip (Yun and Sarkar 1998, 43-45, in geometric
form; Gillespie 2003, eq. 8 for the disk). The tangential velocity on a sphere fills three rows of rank two: no pair of
tangents is smooth all over a sphere, and redundant rows cost nothing here. One-sided constraints with friction have
tangential rows too: v - n (n . v) on a sphere, v_x and v_y on a plane, (n x v)_z and v_z on a cylinder.

A velocity is linear in (w, v), so on jets the same lines give G, the bias and every derivative.
"""
import math

from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, add, cross, dot, rotate, scale, sub6, unrotate
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, store
from liedyn.mechanics.constraints import jets
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.families.cut import carry_wrench
from liedyn.mechanics.constraints.jets import ZERO3, constant
from liedyn.mechanics.constraints.relative import (
    ZERO6, path_ends, push_sides, relative_derivatives, relative_rate, relative_screw, relative_twist,
    relative_variation, side_accelerations, side_states, side_twists, side_variations, toward_ground, wrench_variations,
)
from liedyn.mechanics.tree.tangent_recursion import vary_push
from liedyn.model.constraint_records import loop_at, loop_kind, loop_links, present_rows
from liedyn.model.kinds import (
    DISK_ON_PLANE, DISTANCE, KNIFE_EDGE, ON_CIRCLE, ON_CYLINDER, ON_PLANE, SPHERE_ON_PLANE, SPHERE_ON_SPHERE,
)
from liedyn.model.packed import LOOP_DIRECTION, LOOP_LENGTH, LOOP_RADIUS
from liedyn.model.packed_records import get3

UNIT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def velocity_rows(on):
    """The rows of a contact on jets; `on` is the module of the jets' algebra (`liedyn.mechanics.constraints.jets`)."""
    add, sub, scale, multiple, dot, cross = (
        on.jet_add, on.jet_sub, on.jet_scale, on.jet_multiple, on.jet_dot, on.jet_cross)
    component, unit, across, constant, zero = on.jet_component, on.jet_unit, on.jet_across, on.constant, on.jet_zero

    @inline
    def rows(kind, L, r, p, d, w, v):
        none = zero(v)
        if kind == DISTANCE:
            n = unit(p)
            t = sub(v, scale(dot(n, v), n))
            return dot(n, v), component(t, 0), component(t, 1), component(t, 2)
        if kind == KNIFE_EDGE:
            return dot(d, v), none, none, none
        if kind == ON_PLANE:
            return component(v, 2), component(v, 0), component(v, 1), none
        if kind == ON_CYLINDER:
            n = unit(across(p))
            return dot(n, v), component(cross(n, v), 2), component(v, 2), none
        if kind == ON_CIRCLE:
            return component(v, 2), dot(unit(across(p)), v), none, none
        if kind == SPHERE_ON_SPHERE:
            n = unit(p)
            s = sub(v, multiple(r, cross(w, n)))
            t = sub(s, scale(dot(n, s), n))
            return dot(n, v), component(t, 0), component(t, 1), component(t, 2)
        e = constant(UNIT[2])
        c = add(v, multiple(-r, cross(w, e)))
        if kind == DISK_ON_PLANE:
            u = unit(sub(e, scale(component(d, 2), d)))
            c = add(v, multiple(-r, cross(w, u)))
        return component(c, 2), component(c, 0), component(c, 1), none

    return rows


velocity_jets = velocity_rows(jets)
"""The rows as four jets, unused ones zero; derivatives are floats or lanes, as those of v."""


@inline
def gaps(kind, L, r, p, d):
    """The residuals, at most two."""
    if kind == DISTANCE:
        return math.sqrt(dot(p, p)) - L, 0.0
    if kind == ON_PLANE:
        return p[2], 0.0
    if kind == ON_CYLINDER:
        return math.hypot(p[0], p[1]) - L, 0.0
    if kind == ON_CIRCLE:
        return p[2], math.hypot(p[0], p[1]) - L
    if kind == DISK_ON_PLANE:
        return p[2] - r * math.sqrt(d[0] * d[0] + d[1] * d[1]), 0.0
    if kind == SPHERE_ON_PLANE:
        return p[2] - r, 0.0
    return math.sqrt(dot(p, p)) - L - r, 0.0


@inline
def contact(model, work, l):
    """L, r, p, d, and the frame C with the axes of A and the origin of B."""
    A, B = loop_frames(SCALAR, model, work, l)
    L, r = model.floats[loop_at(model, l, LOOP_LENGTH)], model.floats[loop_at(model, l, LOOP_RADIUS)]
    away = (B[1][0] - A[1][0], B[1][1] - A[1][1], B[1][2] - A[1][2])
    d = unrotate(A[0], rotate(B[0], get3(SCALAR, model.floats, loop_at(model, l, LOOP_DIRECTION))))
    return L, r, unrotate(A[0], away), d, (A[0], B[1])


@inline
def residual(model, l, q, work, g):
    """Residuals of an active contact; needs `world_positions`."""
    if loop_kind(model, l) != KNIFE_EDGE:
        L, r, p, d, _ = contact(model, work, l)
        first = present_rows(model, l)[0]
        found = gaps(loop_kind(model, l), L, r, p, d)
        g[first] = found[0]
        if loop_kind(model, l) == ON_CIRCLE:
            g[first + 1] = found[1]


@inline
def jacobian(model, l, q, work, G):
    """Rows of an active contact in G (m, nv); needs `world_positions`."""
    L, r, p, d, C = contact(model, work, l)
    first, count = present_rows(model, l)
    ja, jb = path_ends(model, l)
    while ja != jb:
        j = max(ja, jb)
        w, v = relative_screw(SCALAR, model, work, j, jb > ja, C)
        rows = velocity_jets(loop_kind(model, l), L, r, constant(p), constant(d), constant(w), constant(v))
        for k in range(count):
            G[first + k, j] = rows[k][0]
        ja, jb = toward_ground(model, ja, jb)


@inline
def moving(p, d, x, x_dot):
    """p, d, w, v as jets in time alone, for the relative twist x = (w, v) and its rate."""
    w, v = x
    return ((p, v, ZERO3, ZERO3), (d, cross(w, d), ZERO3, ZERO3), (w, x_dot[0], ZERO3, ZERO3),
            (v, x_dot[1], ZERO3, ZERO3))


@inline
def velocity(model, l, q, v, work, psi):
    """psi (m) of an active contact; needs `world_velocities`."""
    L, r, p, d, C = contact(model, work, l)
    first, count = present_rows(model, l)
    w, v = relative_twist(SCALAR, model, work, l, C)
    rows = velocity_jets(loop_kind(model, l), L, r, constant(p), constant(d), constant(w), constant(v))
    for k in range(count):
        psi[first + k] = rows[k][0]


@inline
def bias(model, l, q, v, work, phi):
    """phi (m) of an active contact at the accelerations in `work`."""
    kind = loop_kind(model, l)
    L, r, p, d, C = contact(model, work, l)
    first, count = present_rows(model, l)
    x = relative_twist(SCALAR, model, work, l, C)
    pj, dj, wj, vj = moving(p, d, x, relative_rate(SCALAR, model, work, l, kind, False, C))
    rows = velocity_jets(kind, L, r, pj, dj, wj, vj)
    for k in range(count):
        phi[first + k] = rows[k][1]


@inline
def perturbed(p, d, x, x_dot, y, y_q, y_dot_q):
    """p, d, w, v as jets in time and along a motion y = (theta, delta p) that changes x by y_q and x_dot by y_dot_q."""
    w, v = x
    turned = cross(y[0], d)
    return ((p, v, y[1], y_q[1]),
            (d, cross(w, d), turned, add(cross(y_q[0], d), cross(w, turned))),
            (w, x_dot[0], y_q[0], y_dot_q[0]), (v, x_dot[1], y_q[1], y_dot_q[1]))


@inline
def derivatives(model, l, q, v, a, work, slopes):
    """slopes = (dpsi/dq, dphi/dq, dphi/dv) (m, nv) of an active contact; needs positions to accelerations in `work`."""
    psi_q, phi_q, phi_v = slopes
    kind = loop_kind(model, l)
    L, r, p, d, C = contact(model, work, l)
    first, count = present_rows(model, l)
    v_a, v_b = side_twists(SCALAR, model, work, l)
    a_a, a_b = side_accelerations(SCALAR, model, work, l)
    x = relative_twist(SCALAR, model, work, l, C)
    x_dot = relative_rate(SCALAR, model, work, l, kind, False, C)
    ja, jb = path_ends(model, l)
    while ja != jb:
        j = max(ja, jb)
        y = relative_screw(SCALAR, model, work, j, jb > ja, C)
        y_q, y_dot_q, y_dot_v = relative_derivatives(model, work, j, jb > ja, kind, False, C, v_a, v_b, a_a, a_b)
        pj, dj, wj, vj = perturbed(p, d, x, x_dot, y, y_q, y_dot_q)
        by_q = velocity_jets(kind, L, r, pj, dj, wj, vj)
        pj, dj, wj, vj = perturbed(p, d, x, x_dot, ZERO6, y, y_dot_v)  # y changes the rates alone
        by_v = velocity_jets(kind, L, r, pj, dj, wj, vj)
        for k in range(count):
            psi_q[first + k, j] = by_q[k][2]
            phi_q[first + k, j] = by_q[k][3]
            phi_v[first + k, j] = by_v[k][3]
        ja, jb = toward_ground(model, ja, jb)


@inline
def size_of(lam, first, count, k):
    """The multiplier of row k as a constant number, zero if there is no such row."""
    return lam[first + k] if k < count else 0.0, 0.0, 0.0, 0.0


@inline
def sizes_of(rows, lam):
    """Multipliers of four rows, of which `rows` (first, count) exist."""
    first, count = rows
    return (size_of(lam, first, count, 0), size_of(lam, first, count, 1), size_of(lam, first, count, 2),
            size_of(lam, first, count, 3))


@inline
def varied_wrench(kind, L, r, p, d, sizes):
    """W^T lambda in C, moment and force as jets, for jets p, d and four jets lambda: the coefficients of w and v."""
    still = jets.jet_multiple(0.0, p)
    moment, force = still, still
    for k in range(3):
        u = UNIT[k], still[1], still[2], still[3]
        turn, push = velocity_jets(kind, L, r, p, d, u, still), velocity_jets(kind, L, r, p, d, still, u)
        for i in range(4):
            moment = jets.jet_add(moment, jets.jet_along(jets.times(sizes[i], turn[i]), UNIT[k]))
            force = jets.jet_add(force, jets.jet_along(jets.times(sizes[i], push[i]), UNIT[k]))
    return moment, force


@inline
def contact_wrench(kind, L, r, p, d, sizes):
    """W^T lambda in C."""
    moment, force = varied_wrench(kind, L, r, constant(p), constant(d), sizes)
    return moment[0], force[0]


@inline
def contact_wrench_variation(kind, L, r, p, d, y, sizes):
    """The change of `contact_wrench` in C when p and d move by the relative displacement y, of floats or lanes."""
    zero = scale(0.0, y[1])
    moment, force = varied_wrench(kind, L, r, (p, ZERO3, y[1], zero), (d, ZERO3, cross(y[0], d), zero), sizes)
    return moment[2], force[2]


@inline
def force_derivative(model, l, q, work, lam, D):
    """D += d(G^T lambda)/dq (nv, nv) of an active contact: the wrench rotates with C, and changes in C with p and d."""
    kind, sizes = loop_kind(model, l), sizes_of(present_rows(model, l), lam)
    L, r, p, d, C = contact(model, work, l)
    F = Ad_dual_inverse(C, contact_wrench(kind, L, r, p, d, sizes))
    ja, jb = path_ends(model, l)
    while ja != jb:
        y = relative_screw(SCALAR, model, work, max(ja, jb), jb > ja, C)
        dF = Ad_dual_inverse(C, contact_wrench_variation(kind, L, r, p, d, y, sizes))
        carry_wrench(model, work, l, (ja, jb), (kind, False, C), F, dF, D)
        ja, jb = toward_ground(model, ja, jb)


# ---- in many directions at once (`liedyn.mechanics.tree.tangent_recursion`)


@inline
def varied_jets(model, work, variations, l, with_rates):
    """The rows of contact l as jets in time and along many directions; parts 2 and 3 are lanes."""
    kind = loop_kind(model, l)
    L, r, p, d, C = contact(model, work, l)
    v, a = side_states(SCALAR, model, work, l)
    eta, dv, da = side_variations(SCALAR, model, work, variations, l)
    y = Ad_inverse(C, sub6(eta[1], eta[0]))
    dx, dx_dot = relative_variation(kind, False, C, v, a, eta, dv, da if with_rates else dv)
    x = relative_twist(SCALAR, model, work, l, C)
    x_dot = relative_rate(SCALAR, model, work, l, kind, False, C)
    return velocity_jets(kind, L, r, *perturbed(p, d, x, x_dot, y, dx, dx_dot))


@inline
def vary_rows(model, l, motion, links, columns, part, b, out):
    """out[:, block b] of an active contact: variations of its velocities (part 2) or accelerations (part 3)."""
    width = out.shape[1] // WIDTH
    first, count = present_rows(model, l)
    rows = varied_jets(model, links.world, links.variations, l, part == 3)
    for k in range(count):
        store(LANES, out, width * (first + k) + b, rows[k][2] if part == 2 else rows[k][3])


@inline
def push(model, l, work, lam, bodies):
    """Add the contact's wrenches to those of the links."""
    L, r, p, d, C = contact(model, work, l)
    F = contact_wrench(loop_kind(model, l), L, r, p, d, sizes_of(present_rows(model, l), lam))
    push_sides(SCALAR, model, l, Ad_dual_inverse(C, F), bodies)


@inline
def vary_wrench(model, l, work, lam, variations):
    """Variations of the contact's wrenches at constant lambda: they rotate with C, and change in C with p and d."""
    kind, sizes = loop_kind(model, l), sizes_of(present_rows(model, l), lam)
    L, r, p, d, C = contact(model, work, l)
    eta = side_variations(SCALAR, model, work, variations, l)[0]
    y = Ad_inverse(C, sub6(eta[1], eta[0]))
    F = Ad_dual_inverse(C, contact_wrench(kind, L, r, p, d, sizes))
    dF = Ad_dual_inverse(C, contact_wrench_variation(kind, L, r, p, d, y, sizes))
    (a, b), (dF_a, dF_b) = loop_links(model, l), wrench_variations(model, l, kind, C, F, dF, variations)
    vary_push(variations, b, dF_b)
    vary_push(variations, a, dF_a)
