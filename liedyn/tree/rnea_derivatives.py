"""Derivatives of inverse dynamics, with M as a by-product, in one pass: closed forms for any joint.

Singh, Russell and Wensing 2022 (IEEE RA-L 7(2), eq. 25-28), world coordinates. With I, B, F the composite inertia,
Coriolis matrix and wrench of all that joint j carries, for every degree of freedom i on the way from j to the ground:

  dtau_i/dq_j = S_i . (I Psi_ddot_j + 2 B Psi_dot_j + S_j x* F)  dtau_j/dq_i = S_j . (I Psi_ddot_i + 2 B Psi_dot_i)
  dtau_i/dv_j = S_i . (2 B S_j + I (Psi_dot_j + S_dot_j))        dtau_j/dv_i = S_j . (2 B S_i + I (Psi_dot_i + S_dot_i))
  M_ij = S_i . I S_j

Within one joint the term in F is absent: its own screws turn with the wrench. B needs only 12 numbers, not 36: with
D = sum m rdot r^T over all particles and P the linear momentum, B (w, v) = (tr(D) w - D w, w x P).
"""

from liedyn.boundary import delivered_all, rows_for_all, states, wrenches
from liedyn.direct import configuration, direct, model, nothing, results, velocity
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import (
    Ad_dual_inverse, add, add6, cross, dot, dot6, inertia_in_parent, inertia_times, minus_ad_dual, rotate, scale,
    scale6, sub, sub6, unrotate,
)
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.objects import is_none, item, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter_matrix, tile_for
from liedyn.tree.joints import accumulate_spring_derivatives
from liedyn.tree.kinematics import (
    PSI_DDOT, PSI_DOT, S_DOT, S, acceleration_of, of_dof, twist_of, world_accelerations, world_pose,
    world_positions, world_size, world_velocities,
)
from liedyn.tree.records import (
    armature, damping, dof_count, dof_total, first_dof, get3, get6, get9, get_inertia, inertia, link_count, parent,
    previous_dof, put3, put6, put9, put_inertia,
)

# numbers per link beyond the shared workspace: composite inertia, then D, P, then the wrench F
COMPOSITE, D, P, F = 28, 10, 19, 22


@inline
def coriolis_moments(I, V):
    """D = sum m rdot r^T and P = sum m rdot of a rigid body with twist V (both at the world's origin)."""
    m, h, J = I
    w, u = V
    t = 0.5 * (J[0] + J[3] + J[5])
    # [w] E with E = sum m r r^T = tr(J)/2 1 - J, column by column
    c0 = cross(w, (t - J[0], -J[1], -J[2]))
    c1 = cross(w, (-J[1], t - J[3], -J[4]))
    c2 = cross(w, (-J[2], -J[4], t - J[5]))
    return ((u[0] * h[0] + c0[0], u[0] * h[1] + c1[0], u[0] * h[2] + c2[0],
             u[1] * h[0] + c0[1], u[1] * h[1] + c1[1], u[1] * h[2] + c2[1],
             u[2] * h[0] + c0[2], u[2] * h[1] + c1[2], u[2] * h[2] + c2[2]),
            add(scale(m, u), cross(w, h)))


@inline
def coriolis_times(B, V):
    """B V."""
    D, P = B
    w = V[0]
    return (sub(scale(D[0] + D[4] + D[8], w), rotate(D, w)), cross(w, P))


@inline
def coriolis_transpose_times(B, V):
    """The moment part of B^T V, all there is."""
    D, P = B
    w, u = V
    return add(sub(scale(D[0] + D[4] + D[8], w), unrotate(D, w)), cross(P, u))


@inline
def put_body_dynamics(lane, ints, floats, f_ext, i, k, work):
    """Inertia, D, P and wrench of link i alone, in world coordinates, at work[k:]."""
    X, V, A = world_pose(lane, work, i), twist_of(lane, work, i), acceleration_of(lane, floats, work, i)
    I = inertia_in_parent(X, inertia(ints, floats, i))
    B = coriolis_moments(I, V)
    wrench = add6(inertia_times(I, A), coriolis_times(B, V))  # B V = V x* I V
    if f_ext.size > 0:
        wrench = sub6(wrench, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
    put_inertia(lane, work, k, I)
    put9(lane, work, k + D, B[0])
    put3(lane, work, k + P, B[1])
    put6(lane, work, k + F, wrench)


@kernel_in_place
def composites(lane, ints, floats, f_ext, work):
    """Inertia, D, P and wrench of all that each joint carries; needs positions, velocities and accelerations."""
    n, base = link_count(ints), world_size(ints)
    for i in range(n):
        put_body_dynamics(lane, ints, floats, f_ext, i, base + COMPOSITE * i, work)
    for i in range(n - 1, -1, -1):
        if parent(ints, i) >= 0:
            c, up = base + COMPOSITE * i, base + COMPOSITE * parent(ints, i)
            for k in range(COMPOSITE):
                store(lane, work, up + k, load(lane, work, up + k) + load(lane, work, c + k))


@kernel_in_place
def derivative_entries(lane, ints, floats, q, work, tau, dtau_dq, dtau_dv, M):
    """tau, and all entries that are not zero: those of pairs of which one carries the other; from the `composites`."""
    n, nv = link_count(ints), dof_total(ints)
    for i in range(n - 1, -1, -1):
        c = world_size(ints) + COMPOSITE * i
        I = get_inertia(lane, work, c)
        B = (get9(lane, work, c + D), get3(lane, work, c + P))
        wrench = get6(lane, work, c + F)
        first, end = first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)
        for j in range(first, end):
            Sj = get6(lane, work, of_dof(ints, j, S))
            psi_dot, psi_ddot = get6(lane, work, of_dof(ints, j, PSI_DOT)), get6(lane, work, of_dof(ints, j, PSI_DDOT))
            S_dot = get6(lane, work, of_dof(ints, j, S_DOT))
            carried = inertia_times(I, Sj)
            by_q = add6(inertia_times(I, psi_ddot), scale6(2.0, coriolis_times(B, psi_dot)))
            by_v = add6(inertia_times(I, add6(psi_dot, S_dot)), scale6(2.0, coriolis_times(B, Sj)))
            below = scale(2.0, coriolis_transpose_times(B, Sj))
            store(lane, tau, j, dot6(wrench, Sj))
            for k in range(first, end):
                Sk = get6(lane, work, of_dof(ints, k, S))
                store(lane, dtau_dq, k * nv + j, dot6(by_q, Sk))
                store(lane, dtau_dv, k * nv + j, dot6(by_v, Sk))
                store(lane, M, k * nv + j, dot6(carried, Sk))
            by_q = add6(by_q, minus_ad_dual(Sj, wrench))
            k = previous_dof(ints, first)
            while k >= 0:
                Sk, Sk_dot = get6(lane, work, of_dof(ints, k, S)), get6(lane, work, of_dof(ints, k, S_DOT))
                psk_dot = get6(lane, work, of_dof(ints, k, PSI_DOT))
                psk_ddot = get6(lane, work, of_dof(ints, k, PSI_DDOT))
                inertia_kj = dot6(carried, Sk)
                store(lane, dtau_dq, k * nv + j, dot6(by_q, Sk))
                store(lane, dtau_dv, k * nv + j, dot6(by_v, Sk))
                store(lane, dtau_dq, j * nv + k, dot(below, psk_dot[0]) + dot6(carried, psk_ddot))
                store(lane, dtau_dv, j * nv + k, dot(below, Sk[0]) + dot6(carried, add6(psk_dot, Sk_dot)))
                store(lane, M, k * nv + j, inertia_kj)
                store(lane, M, j * nv + k, inertia_kj)
                k = previous_dof(ints, k)
    for j in range(nv):
        store(lane, M, j * nv + j, load(lane, M, j * nv + j) + armature(ints, floats, j))
        store(lane, dtau_dv, j * nv + j, load(lane, dtau_dv, j * nv + j) + damping(ints, floats, j))
    for i in range(n):
        accumulate_spring_derivatives(lane, ints, floats, i, q, dtau_dq)


@kernel_in_place
def derivative_columns(lane, ints, floats, q, work, tau, dtau_dq, dtau_dv, M):
    """dtau/dq, dtau/dv, M and tau, from the `composites` of the workspace."""
    for k in range(dof_total(ints) * dof_total(ints)):
        store(lane, dtau_dq, k, 0.0)
        store(lane, dtau_dv, k, 0.0)
        store(lane, M, k, 0.0)
    derivative_entries(lane, ints, floats, q, work, tau, dtau_dq, dtau_dv, M)


@kernel_in_place
def composite_derivatives(lane, ints, floats, q, f_ext, work, tau, dtau_dq, dtau_dv, M):
    """The backward pass, over a workspace in which positions, velocities and accelerations are set."""
    composites(lane, ints, floats, f_ext, work)
    derivative_columns(lane, ints, floats, q, work, tau, dtau_dq, dtau_dv, M)


@kernel_in_place
def world_motion(lane, ints, floats, q, v, a, work):
    """Poses, twists and accelerations of all links, and what goes with them."""
    world_positions(lane, ints, floats, q, work)
    world_velocities(lane, ints, v, work)
    world_accelerations(lane, ints, floats, v, a, work)


@kernel_in_place
def rnea_derivatives_kernel(lane, ints, floats, q, v, a, f_ext, work, tau, dtau_dq, dtau_dv, M):
    """dtau/dq, dtau/dv and M, each nv x nv; `tau` receives the rigid-body part of the generalised forces."""
    world_motion(lane, ints, floats, q, v, a, work)
    composite_derivatives(lane, ints, floats, q, f_ext, work, tau, dtau_dq, dtau_dv, M)


@batch
def rnea_derivatives_states(begin, end, ints, floats, q, v, a, f_ext, dtau_dq, dtau_dv, M):
    """`rnea_derivatives_kernel` on each row; matrices are rows of nv * nv numbers."""
    work = aligned((world_size(ints) + COMPOSITE * link_count(ints)) * WIDTH)
    tau_w = in_lanes(v)
    if end - begin == 1:
        rnea_derivatives_kernel(SCALAR, ints, floats, q[begin], v[begin], a[begin], f_ext[begin], work, tau_w,
                                dtau_dq[begin], dtau_dv[begin], M[begin])
        return
    q_w, v_w, a_w, f_w = in_lanes(q), in_lanes(v), in_lanes(a), in_lanes(f_ext)
    dq_w, dv_w, M_w = in_lanes(dtau_dq), in_lanes(dtau_dv), in_lanes(M)
    tile = tile_for(M)
    for matrix in (dq_w, dv_w, M_w):
        matrix[:] = 0.0  # once: zeros stay where they are
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(a, b, end, a_w)
        gather(f_ext, b, end, f_w)
        world_motion(LANES, ints, floats, q_w, v_w, a_w, work)
        composites(LANES, ints, floats, f_w, work)
        derivative_entries(LANES, ints, floats, q_w, work, tau_w, dq_w, dv_w, M_w)
        scatter_matrix(dq_w, b, end, dtau_dq, tile)
        scatter_matrix(dv_w, b, end, dtau_dv, tile)
        scatter_matrix(M_w, b, end, M, tile)


@direct
def rnea_derivatives_direct(ints, floats, q, v, a, out):
    """`rnea_derivatives_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, v, a, nv = configuration(ints, q), velocity(ints, v), velocity(ints, a), dof_total(ints)
    work, tau = scratch(world_size(ints) + COMPOSITE * link_count(ints)), scratch(nv)
    made = results(out, ((nv, nv), (nv, nv), (nv, nv)), (floats, q, v, a, work, tau))
    if not is_none(made):
        dtau_dq, dtau_dv, M = (
            numbers(item(made, 0), nv * nv), numbers(item(made, 1), nv * nv), numbers(item(made, 2), nv * nv))
        rnea_derivatives_kernel(SCALAR, ints, floats, q, v, a, nothing(), work, tau, dtau_dq, dtau_dv, M)
    return made


def rnea_derivatives(robot, q, v, a, f_ext=None, out=None):
    """Derivatives of inverse dynamics with respect to configuration and velocity, and the inertia matrix.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    a : array_like, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    out : tuple of 3 ndarrays, shape (..., nv, nv), optional
        Where the results go: C-contiguous float64 of the very shape of the results.

    Returns
    -------
    dtau_dq : ndarray, shape (..., nv, nv)
        Column j is the derivative along q exp(e_j t): in the tangent space at q, perturbed on the right.
    dtau_dv : ndarray, shape (..., nv, nv)
    M : ndarray, shape (..., nv, nv)
        Inertia matrix, the derivative with respect to `a`.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

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
    if f_ext is None:
        made = rnea_derivatives_direct(robot.ints, robot.floats, q, v, a, out)
        if made is not None:
            return made
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    square = (robot.nv, robot.nv)
    made = rows_for_all(out, lead, (square, square, square), q, v, a)
    rnea_derivatives_states(robot.ints, robot.floats, q, v, a, wrenches(robot, f_ext, lead), *made)
    return delivered_all(made, lead, (square, square, square), out)
