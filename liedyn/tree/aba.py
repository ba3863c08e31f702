"""Articulated-body algorithm: forward dynamics of a tree in O(n) (Featherstone 2008, table 7.1), body coordinates.

A joint of several degrees of freedom is taken one screw at a time, last first: its screws share the link's frame, so
eliminating them in turn is the block elimination of table 7.1 without ever inverting a block, armatures included.
"""
import numpy as np

from liedyn.boundary import delivered, rows_for, states, wrenches
from liedyn.direct import configuration, direct, model, nothing, result, velocity
from liedyn.errors import SingularConfigurationError
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, ad, add6, dot6, inertia_times, minus_ad_dual, scale6, sub6
from liedyn.lie.articulated import (
    add_articulated, articulated, articulated_in_parent, articulated_times, without_direction,
)
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.model.packed import ANGULAR, LINEAR
from liedyn.objects import is_none, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter
from liedyn.tree.joints import accumulate_springs, joint_pose, joint_twist
from liedyn.tree.records import (
    accumulate6, armature, dof_column, dof_count, dof_link, dof_total, dof_type, first_dof, get6, get9, get_pose,
    get_symmetric, inertia, link_count, parent, pitch, put6, put9, put_pose, put_symmetric, upward,
)

# numbers per link: pose f, twist V, velocity product c, articulated inertia I, bias wrench p; then per dof: U, 1/D, u
LINK, X, V, C, I, P = 51, 0, 12, 18, 24, 45
DOF, U, D_INVERSE, FORCE = 8, 0, 6, 7


@inline
def aba_size(ints):
    """Numbers in the workspace of `aba_kernel`."""
    return LINK * link_count(ints) + DOF * dof_total(ints)


@inline
def get_articulated(lane, work, k):
    return get_symmetric(lane, work, k), get9(lane, work, k + 6), get_symmetric(lane, work, k + 15)


@inline
def put_articulated(lane, work, k, I):
    put_symmetric(lane, work, k, I[0])
    put9(lane, work, k + 6, I[1])
    put_symmetric(lane, work, k + 15, I[2])


@inline
def unit_screw(lane, ints, floats, j):
    """S_j, one column of the joint's motion subspace in the link's own frame."""
    c = dof_column(ints, j)
    x, y, z = 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0
    axis = (splat(lane, x), splat(lane, y), splat(lane, z))
    angular = 0.0 if dof_type(ints, j) == LINEAR else 1.0
    linear = 1.0 if dof_type(ints, j) == LINEAR else (
        0.0 if dof_type(ints, j) == ANGULAR else pitch(ints, floats, dof_link(ints, j)))
    return scale6(1.0, ((angular * axis[0], angular * axis[1], angular * axis[2]),
                        (linear * axis[0], linear * axis[1], linear * axis[2])))


@kernel_in_place
def aba_kernel(lane, ints, floats, q, v, tau, f_ext, work, a):
    """a = M^-1 (tau + tau_joint(q, v) - c(q, v)); f_ext is (6 n) or empty."""
    n = link_count(ints)
    dofs = LINK * n
    for i in range(n):
        f = joint_pose(lane, ints, floats, i, q)
        Sv = joint_twist(lane, ints, floats, i, v)
        Vi = Sv
        if parent(ints, i) >= 0:
            Vi = add6(Ad_inverse(f, get6(lane, work, LINK * parent(ints, i) + V)), Sv)
        Ii = inertia(ints, floats, i)
        p = minus_ad_dual(Vi, inertia_times(Ii, Vi))
        if f_ext.size > 0:
            p = sub6(p, get6(lane, f_ext, 6 * i))
        put_pose(lane, work, LINK * i + X, f)
        put6(lane, work, LINK * i + V, Vi)
        put6(lane, work, LINK * i + C, ad(Vi, Sv))
        put_articulated(lane, work, LINK * i + I, articulated(splat(lane, 0.0), Ii))
        put6(lane, work, LINK * i + P, p)
        # the force left for acceleration once spring and damper have had theirs
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            store(lane, a, j, load(lane, tau, j))
        accumulate_springs(lane, ints, floats, i, q, v, -1.0, a)
    for i in range(n - 1, -1, -1):
        Ia = get_articulated(lane, work, LINK * i + I)
        p = get6(lane, work, LINK * i + P)
        for j in range(first_dof(ints, i) + dof_count(ints, i) - 1, first_dof(ints, i) - 1, -1):
            S = unit_screw(lane, ints, floats, j)
            Uj = articulated_times(Ia, S)
            d = 1.0 / (dot6(Uj, S) + armature(ints, floats, j))
            u = load(lane, a, j) - dot6(p, S)
            put6(lane, work, dofs + DOF * j + U, Uj)
            store(lane, work, dofs + DOF * j + D_INVERSE, d)
            store(lane, work, dofs + DOF * j + FORCE, u)
            Ia = without_direction(Ia, Uj, d)
            p = add6(p, scale6(d * u, Uj))
        if parent(ints, i) >= 0:
            f = get_pose(lane, work, LINK * i + X)
            p = add6(p, articulated_times(Ia, get6(lane, work, LINK * i + C)))
            k = LINK * parent(ints, i)
            above = get_articulated(lane, work, k + I)
            put_articulated(lane, work, k + I, add_articulated(above, articulated_in_parent(f, Ia)))
            accumulate6(lane, work, k + P, Ad_dual_inverse(f, p))
    for i in range(n):
        Ap = upward(lane, floats) if parent(ints, i) < 0 else get6(lane, work, LINK * parent(ints, i) + P)
        Ai = add6(Ad_inverse(get_pose(lane, work, LINK * i + X), Ap), get6(lane, work, LINK * i + C))
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            k = dofs + DOF * j
            free = load(lane, work, k + FORCE) - dot6(get6(lane, work, k + U), Ai)
            aj = load(lane, work, k + D_INVERSE) * free
            store(lane, a, j, aj)
            Ai = add6(Ai, scale6(aj, unit_screw(lane, ints, floats, j)))
        put6(lane, work, LINK * i + P, Ai)  # the bias wrench has served; its place keeps the acceleration


@batch
def aba_states(begin, end, ints, floats, q, v, tau, f_ext, a):
    """`aba_kernel` on each row."""
    work = aligned(aba_size(ints) * WIDTH)
    if end - begin == 1:
        aba_kernel(SCALAR, ints, floats, q[begin], v[begin], tau[begin], f_ext[begin], work, a[begin])
        return
    q_w, v_w, tau_w, f_w, a_w = in_lanes(q), in_lanes(v), in_lanes(tau), in_lanes(f_ext), in_lanes(a)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(tau, b, end, tau_w)
        gather(f_ext, b, end, f_w)
        aba_kernel(LANES, ints, floats, q_w, v_w, tau_w, f_w, work, a_w)
        scatter(a_w, b, end, a)


def require_regular_tree(robot):
    """Forward dynamics of the open tree needs an invertible M.

    Raises
    ------
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.
    """
    if robot.singular_tree:
        raise SingularConfigurationError(
            f"the open tree of {robot.name!r} has no accelerations: no inertia resists the motion of "
            f"{', '.join(robot.singular_tree)}, which only loops hold; use forward_dynamics", np.zeros(1))


@direct
def aba_direct(ints, floats, q, v, tau, out):
    """`aba_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, v, tau, work = configuration(ints, q), velocity(ints, v), velocity(ints, tau), scratch(aba_size(ints))
    a = result(out, (dof_total(ints),), (floats, q, v, tau, work))
    if not is_none(a):
        aba_kernel(SCALAR, ints, floats, q, v, tau, nothing(), work, numbers(a, dof_total(ints)))
    return a


def aba(robot, q, v, tau, f_ext=None, out=None):
    """Forward dynamics of the open tree by the articulated-body algorithm.

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
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame: ``{"name": (..., 6)}`` or an
        array of shape (..., nbodies, 6).
    out : ndarray, shape (..., nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    a : ndarray, shape (..., nv)
        Accelerations [rad/s^2, m/s^2]; springs, dampers and armatures of the joints act, loops are ignored.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Notes
    -----
    Featherstone 2008, table 7.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> tau = ld.rnea(panda, q, 0 * q, 0 * q + 1.0)
    >>> bool(abs(ld.aba(panda, q, 0 * q, tau) - 1.0).max() < 1e-9)
    True
    """
    if f_ext is None and not robot.singular_tree:
        a = aba_direct(robot.ints, robot.floats, q, v, tau, out)
        if a is not None:
            return a
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    require_regular_tree(robot)
    a = rows_for(out, lead, (robot.nv,), q, v, tau)
    aba_states(robot.ints, robot.floats, q, v, tau, wrenches(robot, f_ext, lead), a)
    return delivered(a, lead, (robot.nv,), out)
