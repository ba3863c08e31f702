"""Constraint Jacobian of the cut joints, its bias, and all derivatives that a linearization needs.

For one loop let v_r = v_b - v_a and a_r be the relative twist and acceleration of its two links in world coordinates
(gravity drops out of a_r), C the cut frame, v_C = v_a + Pi v_r its own twist (Pi keeps the components of v_r that C
follows), and w a row: a unit wrench that is constant in C. Then

    velocity      psi = w . v_r                         G_j = +-w . S_j
    acceleration  phi = w . (a_r - ad(v_C, v_r))

A turn by S_j moves C by zeta_j. Seen from C, where w is at rest, twists and accelerations change by delta(x) -
ad(zeta_j, x), so that derivatives need nothing but the vectors S, Psi_dot, Psi_ddot, S_dot of
`liedyn.tree.kinematics`, and no third-order tensor is formed. With s = +1 on the path of b and -1 on that of a, X
the link on that side:

    delta v_r = s (Psi_dot_j + ad(S_j, v_X)) - ad(zeta_j, v_r)
    delta a_r = s (Psi_ddot_j - ad(v_X, Psi_dot_j) + ad(S_j, a_X)) - ad(zeta_j, a_r)

Only degrees of freedom on exactly one of the two paths to the ground count: what both share moves the loop as a whole.
"""
import numpy as np

from liedyn.constraints.cut_joints import (
    FORBIDDEN,
    HELICAL,
    VIRTUAL,
    cut_frames,
    follows_b,
    loop_count,
    loop_frames,
    loop_kind,
    loop_links,
    loop_pitch,
    loop_rows,
    loop_virtuals,
)
from liedyn.jit import inline, kernel
from liedyn.lie.algebra import (
    Ad,
    Ad_dual_inverse,
    Ad_inverse,
    ad,
    add6,
    dot6,
    minus_ad_dual,
    scale6,
    sub6,
)
from liedyn.lie.lanes import SCALAR
from liedyn.tree.kinematics import (
    PSI_DDOT,
    PSI_DOT,
    S_DOT,
    S,
    acceleration_of,
    of_dof,
    twist_of,
)
from liedyn.tree.records import dof_count, dof_link, dof_total, first_dof, get6, previous_dof

_ZERO = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@inline
def last_dof(ints, i):
    """The last degree of freedom of link i, -1 for the ground."""
    if i < 0:
        return -1
    return first_dof(ints, i) + dof_count(ints, i) - 1


@inline
def loop_path(ints, l, path, side):
    """Degrees of freedom on exactly one of the two paths to the ground, and their sides; returns how many.

    Parents have smaller numbers than children, so the larger of the two ends is never shared.
    """
    a, b = loop_links(ints, l)
    ja, jb = last_dof(ints, a), last_dof(ints, b)
    count = 0
    while ja != jb:
        if jb > ja:
            path[count], side[count] = jb, 1
            jb = previous_dof(ints, jb)
        else:
            path[count], side[count] = ja, -1
            ja = previous_dof(ints, ja)
        count += 1
    return count


@inline
def component(k):
    """The unit six-vector e_k."""
    return ((1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0),
            (1.0 if k == 3 else 0.0, 1.0 if k == 4 else 0.0, 1.0 if k == 5 else 0.0))


@inline
def row_wrench(ints, floats, l, virtual, r):
    """Row r of loop l as a wrench in its cut frame: a forbidden direction, or the reader of a virtual velocity."""
    kind = loop_kind(ints, l)
    if virtual:
        return component(VIRTUAL[kind, r])
    k = FORBIDDEN[kind, r]
    if kind == HELICAL and k == 5:
        return ((0.0, 0.0, -loop_pitch(ints, floats, l)), (0.0, 0.0, 1.0))
    return component(k)


@inline
def followed(kind, virtual, C, V):
    """Pi V: the part of a relative twist that moves the cut frame."""
    inside = Ad_inverse(C, V)
    w, v = inside
    return Ad(C, ((w[0] if follows_b(kind, virtual, 0) else 0.0, w[1] if follows_b(kind, virtual, 1) else 0.0,
                   w[2] if follows_b(kind, virtual, 2) else 0.0),
                  (v[0] if follows_b(kind, virtual, 3) else 0.0, v[1] if follows_b(kind, virtual, 4) else 0.0,
                   v[2] if follows_b(kind, virtual, 5) else 0.0)))


@inline
def rows_in(ints, floats, work, l, virtual):
    """Kind, frame, first row and row count of the forbidden directions or of the virtual velocities of a loop."""
    kind = loop_kind(ints, l)
    A, B = loop_frames(ints, floats, work, l)
    rows_frame, virtual_frame = cut_frames(kind, loop_pitch(ints, floats, l), A, B)
    if virtual:
        first, count = loop_virtuals(ints, l)
        return kind, virtual_frame, first, count
    first, count = loop_rows(ints, l)
    return kind, rows_frame, first, count


@kernel
def cut_jacobian_kernel(ints, floats, work, virtual, G):
    """G (m, nv), or with `virtual` the rows that read the virtual velocities (nz, nv); needs `world_positions`."""
    G[:] = 0.0
    nv = dof_total(ints)
    path, side = np.empty(nv, np.int64), np.empty(nv, np.int64)
    for l in range(loop_count(ints)):
        kind, C, first, count = rows_in(ints, floats, work, l, virtual)
        length = loop_path(ints, l, path, side)
        for r in range(count):
            w = Ad_dual_inverse(C, row_wrench(ints, floats, l, virtual, r))
            for k in range(length):
                G[first + r, path[k]] = side[k] * dot6(w, get6(SCALAR, work, of_dof(ints, path[k], S)))


@kernel
def cut_velocity_kernel(ints, floats, work, virtual, psi):
    """psi (m) = w . v_r, or with `virtual` the virtual velocities; needs `world_velocities`."""
    for l in range(loop_count(ints)):
        kind, C, first, count = rows_in(ints, floats, work, l, virtual)
        a, b = loop_links(ints, l)
        v_r = sub6(twist_of(SCALAR, work, b), twist_of(SCALAR, work, a))
        for r in range(count):
            psi[first + r] = dot6(Ad_dual_inverse(C, row_wrench(ints, floats, l, virtual, r)), v_r)


@kernel
def cut_bias_kernel(ints, floats, work, virtual, phi):
    """phi (m) at the accelerations in `work`: with a = 0 it is Gdot v."""
    for l in range(loop_count(ints)):
        kind, C, first, count = rows_in(ints, floats, work, l, virtual)
        a, b = loop_links(ints, l)
        v_a, v_r = twist_of(SCALAR, work, a), sub6(twist_of(SCALAR, work, b), twist_of(SCALAR, work, a))
        a_r = sub6(acceleration_of(SCALAR, floats, work, b), acceleration_of(SCALAR, floats, work, a))
        v_C = add6(v_a, followed(kind, virtual, C, v_r))
        rate = sub6(a_r, ad(v_C, v_r))
        for r in range(count):
            phi[first + r] = dot6(Ad_dual_inverse(C, row_wrench(ints, floats, l, virtual, r)), rate)


@kernel
def cut_derivatives_kernel(ints, floats, work, virtual, psi_q, phi_q, phi_v):
    """dpsi/dq, dphi/dq and dphi/dv, each (m, nv); needs positions, velocities and accelerations in `work`."""
    psi_q[:] = 0.0
    phi_q[:] = 0.0
    phi_v[:] = 0.0
    nv = dof_total(ints)
    path, side = np.empty(nv, np.int64), np.empty(nv, np.int64)
    for l in range(loop_count(ints)):
        kind, C, first, count = rows_in(ints, floats, work, l, virtual)
        a, b = loop_links(ints, l)
        v_a, v_b = twist_of(SCALAR, work, a), twist_of(SCALAR, work, b)
        a_a, a_b = acceleration_of(SCALAR, floats, work, a), acceleration_of(SCALAR, floats, work, b)
        v_r, a_r = sub6(v_b, v_a), sub6(a_b, a_a)
        v_C = add6(v_a, followed(kind, virtual, C, v_r))
        length = loop_path(ints, l, path, side)
        for k in range(length):
            j, on_b, s = path[k], side[k] > 0, float(side[k])
            Sj = get6(SCALAR, work, of_dof(ints, j, S))
            psi_dot, psi_ddot = (
                get6(SCALAR, work, of_dof(ints, j, PSI_DOT)),
                get6(SCALAR, work, of_dof(ints, j, PSI_DDOT)),
            )
            S_dot = get6(SCALAR, work, of_dof(ints, j, S_DOT))
            v_X, a_X = (v_b, a_b) if on_b else (v_a, a_a)
            zeta = followed(kind, virtual, C, Sj)
            if not on_b:
                zeta = sub6(Sj, zeta)
            turned_v = add6(psi_dot, ad(Sj, v_X))
            turned_a = add6(sub6(psi_ddot, ad(v_X, psi_dot)), ad(Sj, a_X))
            delta_v_r = sub6(scale6(s, turned_v), ad(zeta, v_r))
            delta_a_r = sub6(scale6(s, turned_a), ad(zeta, a_r))
            delta_v_C = sub6(followed(kind, virtual, C, delta_v_r), ad(zeta, v_a))
            if not on_b:
                delta_v_C = add6(delta_v_C, turned_v)
            by_q = sub6(sub6(delta_a_r, ad(delta_v_C, v_r)), ad(v_C, delta_v_r))
            sS = scale6(s, Sj)
            by_v = sub6(scale6(s, sub6(add6(S_dot, psi_dot), ad(v_X, Sj))), add6(ad(zeta, v_r), ad(v_C, sS)))
            for r in range(count):
                w = Ad_dual_inverse(C, row_wrench(ints, floats, l, virtual, r))
                psi_q[first + r, j] = dot6(w, delta_v_r)
                phi_q[first + r, j] = dot6(w, by_q)
                phi_v[first + r, j] = dot6(w, by_v)


@inline
def cut_wrench(ints, floats, l, C, lam):
    """The wrench W lambda of loop l in world coordinates: what link a receives from the cut, and b gives."""
    first, count = loop_rows(ints, l)
    F = _ZERO
    for r in range(count):
        F = add6(F, scale6(lam[first + r], row_wrench(ints, floats, l, False, r)))
    return Ad_dual_inverse(C, F)


@kernel
def cut_force_derivative_kernel(ints, floats, work, lam, D):
    """D += d(G^T lambda)/dq (nv, nv): the term that depends on how the wrench at the cut turns with the cut frame."""
    nv = dof_total(ints)
    path, side = np.empty(nv, np.int64), np.empty(nv, np.int64)
    for l in range(loop_count(ints)):
        kind, C, _, _ = rows_in(ints, floats, work, l, False)
        F = cut_wrench(ints, floats, l, C, lam)
        length = loop_path(ints, l, path, side)
        for kj in range(length):
            j = path[kj]
            Sj = get6(SCALAR, work, of_dof(ints, j, S))
            zeta = followed(kind, False, C, Sj)
            if side[kj] < 0:
                zeta = sub6(Sj, zeta)
            turned, carried = minus_ad_dual(zeta, F), minus_ad_dual(sub6(zeta, Sj), F)
            for ki in range(length):
                i = path[ki]
                # a joint beyond j on the same side (or j's own) turns with S_j itself
                moves_along = side[ki] == side[kj] and dof_link(ints, i) >= dof_link(ints, j)
                Si = get6(SCALAR, work, of_dof(ints, i, S))
                D[i, j] += side[ki] * dot6(carried if moves_along else turned, Si)
