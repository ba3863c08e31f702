"""Derivatives of forward dynamics, with M^-1 as a by-product: those of inverse dynamics, solved by M = L^T D L.

Differentiating ID(q, v, FD(q, v, tau)) = tau gives (Carpentier and Mansard 2018, RSS)

    da/dq = -M^-1 dtau/dq      da/dv = -M^-1 dtau/dv      da/dtau = M^-1

with dtau/dq and dtau/dv taken at the acceleration a = M^-1 (tau + tau_joint - c). M is factored anyway, and poses,
screws and twists are those of the derivatives: so a comes from the factor, and nothing is computed twice.
"""

from liedyn.boundary import delivered_all, rows_for_all, states, wrenches
from liedyn.direct import configuration, direct, model, nothing, results, velocity
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import (
    Ad_dual_inverse, add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual, scale6, sub6,
)
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.objects import is_none, item, numbers, scratch
from liedyn.tree.aba import require_regular_tree
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter
from liedyn.tree.crba import crba_kernel
from liedyn.tree.joints import accumulate_springs
from liedyn.tree.kinematics import (
    ACCELERATION, S, S_DOT, acceleration_of, of_dof, of_link, twist_of, world_accelerations, world_pose, world_size,
    world_velocities,
)
from liedyn.tree.ltdl import ltdl_factor, ltdl_inverse, ltdl_solve
from liedyn.tree.records import accumulate6, dof_count, dof_total, first_dof, get6, inertia, link_count, parent, put6
from liedyn.tree.rnea_derivatives import COMPOSITE, composite_derivatives


@inline
def aba_derivatives_size(ints):
    """Numbers in the workspace of `aba_derivatives_kernel`: that of the derivatives of RNEA."""
    return world_size(ints) + COMPOSITE * link_count(ints)


@kernel_in_place
def free_forces(lane, ints, floats, q, v, tau, f_ext, work, free):
    """free = tau + tau_joint - c, what is left to accelerate the links; needs `world_velocities`.

    Newton and Euler with a = 0, in world coordinates: one wrench F per link behind the shared part of the workspace.
    """
    n, base = link_count(ints), world_size(ints)
    for i in range(n):
        A = acceleration_of(lane, floats, work, parent(ints, i))
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            A = add6(A, scale6(load(lane, v, j), get6(lane, work, of_dof(ints, j, S_DOT))))
            store(lane, free, j, load(lane, tau, j))
        X, V = world_pose(lane, work, i), twist_of(lane, work, i)
        I = inertia_in_parent(X, inertia(ints, floats, i))
        F = add6(inertia_times(I, A), minus_ad_dual(V, inertia_times(I, V)))
        if f_ext.size > 0:
            F = sub6(F, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
        put6(lane, work, of_link(i, ACCELERATION), A)
        put6(lane, work, base + 6 * i, F)
        accumulate_springs(lane, ints, floats, i, q, v, -1.0, free)
    for i in range(n - 1, -1, -1):
        F = get6(lane, work, base + 6 * i)
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            store(lane, free, j, load(lane, free, j) - dot6(F, get6(lane, work, of_dof(ints, j, S))))
        if parent(ints, i) >= 0:
            accumulate6(lane, work, base + 6 * parent(ints, i), F)


@kernel_in_place
def aba_derivatives_kernel(lane, ints, floats, q, v, tau, f_ext, work, a, L, da_dq, da_dv, Minv):
    """da/dq, da/dv and M^-1, each nv x nv; `a` receives the accelerations, `L` the factor of M."""
    crba_kernel(lane, ints, floats, q, work, L)
    ltdl_factor(lane, ints, L)
    world_velocities(lane, ints, v, work)
    free_forces(lane, ints, floats, q, v, tau, f_ext, work, a)
    ltdl_solve(lane, ints, L, 1.0, a, 1)
    world_accelerations(lane, ints, floats, v, a, work)
    # generalised forces and M once more, of no use here, go where M^-1 will be
    composite_derivatives(lane, ints, floats, q, f_ext, work, Minv, da_dq, da_dv, Minv)
    ltdl_solve(lane, ints, L, -1.0, da_dq, dof_total(ints))
    ltdl_solve(lane, ints, L, -1.0, da_dv, dof_total(ints))
    ltdl_inverse(lane, ints, L, Minv)


@batch
def aba_derivatives_states(begin, end, ints, floats, q, v, tau, f_ext, da_dq, da_dv, Minv):
    """`aba_derivatives_kernel` on each row; matrices are rows of nv * nv numbers."""
    work, a_w, L_w = aligned(aba_derivatives_size(ints) * WIDTH), in_lanes(v), in_lanes(Minv)
    if end - begin == 1:
        aba_derivatives_kernel(SCALAR, ints, floats, q[begin], v[begin], tau[begin], f_ext[begin], work, a_w, L_w,
                               da_dq[begin], da_dv[begin], Minv[begin])
        return
    q_w, v_w, tau_w, f_w = in_lanes(q), in_lanes(v), in_lanes(tau), in_lanes(f_ext)
    dq_w, dv_w, Minv_w = in_lanes(da_dq), in_lanes(da_dv), in_lanes(Minv)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(tau, b, end, tau_w)
        gather(f_ext, b, end, f_w)
        aba_derivatives_kernel(LANES, ints, floats, q_w, v_w, tau_w, f_w, work, a_w, L_w, dq_w, dv_w, Minv_w)
        scatter(dq_w, b, end, da_dq)
        scatter(dv_w, b, end, da_dv)
        scatter(Minv_w, b, end, Minv)


@direct
def aba_derivatives_direct(ints, floats, q, v, tau, out):
    """`aba_derivatives_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, v, tau, nv = configuration(ints, q), velocity(ints, v), velocity(ints, tau), dof_total(ints)
    work, a, L = scratch(aba_derivatives_size(ints)), scratch(nv), scratch(nv * nv)
    made = results(out, ((nv, nv), (nv, nv), (nv, nv)), (floats, q, v, tau, work, a, L))
    if not is_none(made):
        da_dq, da_dv, Minv = (
            numbers(item(made, 0), nv * nv), numbers(item(made, 1), nv * nv), numbers(item(made, 2), nv * nv))
        aba_derivatives_kernel(SCALAR, ints, floats, q, v, tau, nothing(), work, a, L, da_dq, da_dv, Minv)
    return made


def aba_derivatives(robot, q, v, tau, f_ext=None, out=None):
    """Derivatives of forward dynamics with respect to configuration, velocity and force.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N].
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `aba`.
    out : tuple of 3 ndarrays, shape (..., nv, nv), optional
        Where the results go: C-contiguous float64 of the very shape of the results.

    Returns
    -------
    da_dq : ndarray, shape (..., nv, nv)
        Column j is the derivative along q exp(e_j t): in the tangent space at q, perturbed on the right.
    da_dv : ndarray, shape (..., nv, nv)
    Minv : ndarray, shape (..., nv, nv)
        Inverse of the inertia matrix, the derivative with respect to `tau`; symmetric.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Notes
    -----
    Carpentier and Mansard 2018, RSS, with the sparse factorisation of Featherstone 2008, section 6.5; springs
    and dampers of the joints included, loops ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> da_dq, da_dv, Minv = ld.aba_derivatives(panda, q, 0 * q, 0 * q)
    >>> bool(abs(Minv @ ld.crba(panda, q) - np.eye(7)).max() < 1e-10)
    True
    """
    if f_ext is None and not robot.singular_tree:
        made = aba_derivatives_direct(robot.ints, robot.floats, q, v, tau, out)
        if made is not None:
            return made
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    require_regular_tree(robot)
    square = (robot.nv, robot.nv)
    made = rows_for_all(out, lead, (square, square, square), q, v, tau)
    aba_derivatives_states(robot.ints, robot.floats, q, v, tau, wrenches(robot, f_ext, lead), *made)
    return delivered_all(made, lead, (square, square, square), out)
