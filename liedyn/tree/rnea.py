"""Recursive Newton-Euler: inverse dynamics of a tree (Featherstone 2008, table 5.1; Spencer 2004, A.3).

Everything at a link is in that link's own frame: f its pose in its parent, V its twist, A its acceleration with gravity
(the ground accelerates upward), F the wrench that its joint passes on.
"""

from liedyn.boundary import delivered, rows_for, states, wrenches
from liedyn.direct import configuration, direct, model, nothing, result, velocity
from liedyn.jit import kernel_in_place
from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, ad, add6, inertia_times, minus_ad_dual, sub6
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.objects import is_none, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter
from liedyn.tree.joints import accumulate_springs, joint_pose, joint_twist, put_joint_force
from liedyn.tree.records import (
    accumulate6, armature, dof_count, dof_total, first_dof, get6, get_pose, inertia, link_count, parent, put6, put_pose,
    upward, zero6,
)

WORK = 30  # numbers per link: pose f (12), twist V, acceleration A, wrench F (6 each)
X, V, A, F = 0, 12, 18, 24


@kernel_in_place
def rnea_kernel(lane, ints, floats, q, v, a, f_ext, work, tau):
    """tau = M(q) a + c(q, v) - tau_joint(q, v): links are numbered parents first, f_ext is (6 n) or empty."""
    n = link_count(ints)
    for i in range(n):
        f = joint_pose(lane, ints, floats, i, q)
        Sv = joint_twist(lane, ints, floats, i, v)
        Sa = joint_twist(lane, ints, floats, i, a)
        if parent(ints, i) < 0:
            Vp, Ap = zero6(lane), upward(lane, floats)
        else:
            k = WORK * parent(ints, i)
            Vp, Ap = get6(lane, work, k + V), get6(lane, work, k + A)
        Vi = add6(Ad_inverse(f, Vp), Sv)
        Ai = add6(add6(Ad_inverse(f, Ap), Sa), ad(Vi, Sv))
        I = inertia(ints, floats, i)
        Fi = add6(inertia_times(I, Ai), minus_ad_dual(Vi, inertia_times(I, Vi)))
        if f_ext.size > 0:
            Fi = sub6(Fi, get6(lane, f_ext, 6 * i))
        put_pose(lane, work, WORK * i + X, f)
        put6(lane, work, WORK * i + V, Vi)
        put6(lane, work, WORK * i + A, Ai)
        put6(lane, work, WORK * i + F, Fi)
    for i in range(n - 1, -1, -1):
        Fi = get6(lane, work, WORK * i + F)
        put_joint_force(lane, ints, floats, i, Fi, tau)
        accumulate_springs(lane, ints, floats, i, q, v, 1.0, tau)
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            store(lane, tau, j, load(lane, tau, j) + armature(ints, floats, j) * load(lane, a, j))
        if parent(ints, i) >= 0:
            f = get_pose(lane, work, WORK * i + X)
            accumulate6(lane, work, WORK * parent(ints, i) + F, Ad_dual_inverse(f, Fi))


@batch
def rnea_states(begin, end, ints, floats, q, v, a, f_ext, tau):
    """`rnea_kernel` on each row."""
    work = aligned(WORK * link_count(ints) * WIDTH)
    if end - begin == 1:
        rnea_kernel(SCALAR, ints, floats, q[begin], v[begin], a[begin], f_ext[begin], work, tau[begin])
        return
    q_w, v_w, a_w, f_w, tau_w = in_lanes(q), in_lanes(v), in_lanes(a), in_lanes(f_ext), in_lanes(tau)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(a, b, end, a_w)
        gather(f_ext, b, end, f_w)
        rnea_kernel(LANES, ints, floats, q_w, v_w, a_w, f_w, work, tau_w)
        scatter(tau_w, b, end, tau)


@direct
def rnea_direct(ints, floats, q, v, a, out):
    """`rnea_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, v, a, work = configuration(ints, q), velocity(ints, v), velocity(ints, a), scratch(WORK * link_count(ints))
    tau = result(out, (dof_total(ints),), (floats, q, v, a, work))
    if not is_none(tau):
        rnea_kernel(SCALAR, ints, floats, q, v, a, nothing(), work, numbers(tau, dof_total(ints)))
    return tau


def rnea(robot, q, v, a, f_ext=None, out=None):
    """Inverse dynamics of the open tree by the recursive Newton-Euler algorithm.

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
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame: ``{"name": (..., 6)}`` or an
        array of shape (..., nbodies, 6).
    out : ndarray, shape (..., nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    tau : ndarray, shape (..., nv)
        Generalised forces [N m, N] that produce `a`: ``M a + c - tau_joint - J^T f_ext``, joint springs, dampers and
        armatures included. Loops are ignored.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Featherstone 2008, table 5.1; Spencer 2004, appendix A.3 in body coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> ld.rnea(panda, q, 0 * q, 0 * q).shape
    (7,)
    """
    if f_ext is None:
        tau = rnea_direct(robot.ints, robot.floats, q, v, a, out)
        if tau is not None:
            return tau
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    tau = rows_for(out, lead, (robot.nv,), q, v, a)
    rnea_states(robot.ints, robot.floats, q, v, a, wrenches(robot, f_ext, lead), tau)
    return delivered(tau, lead, (robot.nv,), out)
