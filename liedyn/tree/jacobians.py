"""Body-fixed Jacobians of one body, their rates and their derivatives (Spencer 2004, section 4.4.1).

Spencer's recursions run from the ground to the body and move all columns into each new link. Here the walk is from the
body to the ground: every column is found where it stays, in the body's own frame. With X the pose of the body in link
i, and W_i the twist of the body relative to link i, the sum of J_k v_k over the joints strictly beyond link i,

    J_j = Ad_{X^-1} S_j             dJ_j/dq_k = ad(J_j, J_k) for k strictly beyond link i, else 0
    Jdot_j = ad(J_j, W_i)           Jddot_j = ad(Jdot_j, W_i) + ad(J_j, Wdot_i)

for the degrees of freedom j of joint i. So the columns of a joint depend on the joints between it and the body and on
nothing else: not on its own position, nor on where the robot is in the world.
"""

from liedyn.arguments import require_robot
from liedyn.boundary import of_all_states
from liedyn.direct import configuration, direct, packed, result, unusual, velocity
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import Ad_inverse, ad, add6, compose, scale6
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load
from liedyn.lie.sines import sincos
from liedyn.model.packed import REVOLUTE
from liedyn.objects import is_none, number_of, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, lines_for, scatter_matrix
from liedyn.tree.joints import dofs_of_kind, joint_pose, pose_of_kind, screw_of_kind
from liedyn.tree.records import (
    body_link, body_placement, dof_count, dof_link, dof_total, first_dof, first_q, get6, kind, parent, previous_dof,
    put6, put_column, put_zeros, zero6,
)


@inline
def put_columns(lane, joint, model, i, q, X, J):
    """Columns of joint i, for the pose X of the body in link i; returns its pose in the parent, X if that is ground."""
    for d in range(dofs_of_kind(joint)):
        put_column(lane, J, dof_total(model), first_dof(model, i) + d,
                   Ad_inverse(X, screw_of_kind(lane, joint, model, i, d)))
    if parent(model, i) < 0:
        return X
    s, c = sincos(load(lane, q, first_q(model, i)))
    return compose(pose_of_kind(lane, joint, model, i, q, s, c), X)


@kernel_in_place
def body_jacobian_kernel(lane, model, q, b, J):
    """J of body b, 6 x nv."""
    put_zeros(lane, J, 6 * dof_total(model))
    X, i = body_placement(lane, model, b), body_link(model, b)
    while i >= 0:
        if kind(model, i) == REVOLUTE:  # the common joint compiled apart: its zeros cost nothing
            X = put_columns(lane, REVOLUTE, model, i, q, X, J)
        else:
            X = put_columns(lane, kind(model, i), model, i, q, X, J)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_dot_kernel(lane, model, q, v, b, J_dot):
    """dJ/dt of body b for qdot = v, 6 x nv."""
    nv = dof_total(model)
    put_zeros(lane, J_dot, 6 * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    W = zero6(lane)
    while i >= 0:
        own = zero6(lane)
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            put_column(lane, J_dot, nv, j, ad(Jj, W))
            own = add6(own, scale6(load(lane, v, j), Jj))
        W = add6(W, own)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_ddot_kernel(lane, model, q, v, a, b, J_ddot):
    """d2J/dt2 of body b for qdot = v, vdot = a, 6 x nv."""
    nv = dof_total(model)
    put_zeros(lane, J_ddot, 6 * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    W, W_dot = zero6(lane), zero6(lane)
    while i >= 0:
        own, own_dot = zero6(lane), zero6(lane)
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            Jj_dot = ad(Jj, W)
            put_column(lane, J_ddot, nv, j, add6(ad(Jj_dot, W), ad(Jj, W_dot)))
            own = add6(own, scale6(load(lane, v, j), Jj))
            own_dot = add6(own_dot, add6(scale6(load(lane, a, j), Jj), scale6(load(lane, v, j), Jj_dot)))
        W, W_dot = add6(W, own), add6(W_dot, own_dot)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@kernel_in_place
def body_jacobian_dq_kernel(lane, model, q, b, work, dJ_dq):
    """dJ/dq of body b, 6 x nv x nv; `work` receives the columns of J, six numbers each."""
    nv = dof_total(model)
    put_zeros(lane, dJ_dq, 6 * nv * nv)
    X, i = body_placement(lane, model, b), body_link(model, b)
    if i < 0:
        return
    last = first_dof(model, i) + dof_count(model, i) - 1
    while i >= 0:
        for d in range(dof_count(model, i)):
            j = first_dof(model, i) + d
            Jj = Ad_inverse(X, screw_of_kind(lane, kind(model, i), model, i, d))
            put6(lane, work, 6 * j, Jj)
            k = last
            while dof_link(model, k) != i:
                put_column(lane, dJ_dq, nv * nv, j * nv + k, ad(Jj, get6(lane, work, 6 * k)))
                k = previous_dof(model, k)
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)


@batch
def body_jacobian_states(begin, end, model, q, b, J):
    """`body_jacobian_kernel` on each row; J has one row of 6 * nv numbers per state."""
    if end - begin == 1:
        body_jacobian_kernel(SCALAR, model, q[begin], b, J[begin])
        return
    q_w, J_w = in_lanes(q), in_lanes(J)
    lines = lines_for(J)
    for s in range(begin, end, WIDTH):
        gather(q, s, end, q_w)
        body_jacobian_kernel(LANES, model, q_w, b, J_w)
        scatter_matrix(J_w, s, end, J, lines)


@batch
def body_jacobian_dot_states(begin, end, model, q, v, b, J_dot):
    """`body_jacobian_dot_kernel` on each row."""
    if end - begin == 1:
        body_jacobian_dot_kernel(SCALAR, model, q[begin], v[begin], b, J_dot[begin])
        return
    q_w, v_w, J_dot_w = in_lanes(q), in_lanes(v), in_lanes(J_dot)
    lines = lines_for(J_dot)
    for s in range(begin, end, WIDTH):
        gather(q, s, end, q_w)
        gather(v, s, end, v_w)
        body_jacobian_dot_kernel(LANES, model, q_w, v_w, b, J_dot_w)
        scatter_matrix(J_dot_w, s, end, J_dot, lines)


@batch
def body_jacobian_ddot_states(begin, end, model, q, v, a, b, J_ddot):
    """`body_jacobian_ddot_kernel` on each row."""
    if end - begin == 1:
        body_jacobian_ddot_kernel(SCALAR, model, q[begin], v[begin], a[begin], b, J_ddot[begin])
        return
    q_w, v_w, a_w, J_ddot_w = in_lanes(q), in_lanes(v), in_lanes(a), in_lanes(J_ddot)
    lines = lines_for(J_ddot)
    for s in range(begin, end, WIDTH):
        gather(q, s, end, q_w)
        gather(v, s, end, v_w)
        gather(a, s, end, a_w)
        body_jacobian_ddot_kernel(LANES, model, q_w, v_w, a_w, b, J_ddot_w)
        scatter_matrix(J_ddot_w, s, end, J_ddot, lines)


@batch
def body_jacobian_dq_states(begin, end, model, q, b, dJ_dq):
    """`body_jacobian_dq_kernel` on each row; dJ_dq has one row of 6 * nv * nv numbers per state."""
    work = aligned(6 * dof_total(model) * WIDTH)
    if end - begin == 1:
        body_jacobian_dq_kernel(SCALAR, model, q[begin], b, work, dJ_dq[begin])
        return
    q_w, dJ_dq_w = in_lanes(q), in_lanes(dJ_dq)
    lines = lines_for(dJ_dq)
    for s in range(begin, end, WIDTH):
        gather(q, s, end, q_w)
        body_jacobian_dq_kernel(LANES, model, q_w, b, work, dJ_dq_w)
        scatter_matrix(dJ_dq_w, s, end, dJ_dq, lines)


@direct
def body_jacobian_direct(model, q, names, name, out):
    """`body_jacobian_kernel` on one state as Python passes it."""
    model = packed(model)
    q, nv = configuration(model, q), dof_total(model)
    b = number_of(names, name)
    J = result(out, (6, nv), (model.floats, q)) if b >= 0 else unusual()
    if not is_none(J):
        body_jacobian_kernel(SCALAR, model, q, b, numbers(J, 6 * nv))
    return J


def body_jacobian(robot, q, body, out=None):
    """Body-fixed Jacobian: the twist of a body, in its own frame, is J v.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    body : str
        Name of the body.
    out : ndarray, shape (..., 6, nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    J : ndarray, shape (..., 6, nv)
        Rows (omega, v) [rad/s, m/s per unit of v], in the frame of the body as it was declared; zero for a body fixed
        to the ground.

    Raises
    ------
    InputError
        An unknown body, a shape that does not fit, an entry that is not finite, or a quaternion not of unit length.

    Notes
    -----
    Spencer 2004, section 4.4.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.body_jacobian(panda, ld.neutral(panda), panda.body_names[-1]).shape
    (6, 7)
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    J = body_jacobian_direct(robot.packed, q, robot.body_numbers, body, out)
    if J is not None:
        return J
    return of_all_states(robot, body_jacobian_states, (6, robot.nv), out, robot.body_index(body), q=q)


@direct
def body_jacobian_dot_direct(model, q, v, names, name, out):
    """`body_jacobian_dot_kernel` on one state as Python passes it."""
    model = packed(model)
    q, v, nv = configuration(model, q), velocity(model, v), dof_total(model)
    b = number_of(names, name)
    J_dot = result(out, (6, nv), (model.floats, q, v)) if b >= 0 else unusual()
    if not is_none(J_dot):
        body_jacobian_dot_kernel(SCALAR, model, q, v, b, numbers(J_dot, 6 * nv))
    return J_dot


def body_jacobian_dot(robot, q, v, body, out=None):
    """Time derivative of the body-fixed Jacobian.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    body : str
        Name of the body.
    out : ndarray, shape (..., 6, nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    J_dot : ndarray, shape (..., 6, nv)
        dJ/dt along the motion: the body's acceleration (d/dt of its twist, without gravity) is ``J a + J_dot v``.

    Raises
    ------
    InputError
        An unknown body, a shape that does not fit, an entry that is not finite, or a quaternion not of unit length.

    Notes
    -----
    Spencer 2004, section 4.4.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> J_dot = ld.body_jacobian_dot(panda, q, 0 * q + 1.0, panda.body_names[-1])
    >>> J_dot.shape, bool(ld.body_jacobian_dot(panda, q, 0 * q, panda.body_names[-1]).any())
    ((6, 7), False)
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    J_dot = body_jacobian_dot_direct(robot.packed, q, v, robot.body_numbers, body, out)
    if J_dot is not None:
        return J_dot
    return of_all_states(robot, body_jacobian_dot_states, (6, robot.nv), out, robot.body_index(body), q=q, v=v)


@direct
def body_jacobian_ddot_direct(model, q, v, a, names, name, out):
    """`body_jacobian_ddot_kernel` on one state as Python passes it."""
    model = packed(model)
    q, v, a, nv = configuration(model, q), velocity(model, v), velocity(model, a), dof_total(model)
    b = number_of(names, name)
    J_ddot = result(out, (6, nv), (model.floats, q, v, a)) if b >= 0 else unusual()
    if not is_none(J_ddot):
        body_jacobian_ddot_kernel(SCALAR, model, q, v, a, b, numbers(J_ddot, 6 * nv))
    return J_ddot


def body_jacobian_ddot(robot, q, v, a, body, out=None):
    """Second time derivative of the body-fixed Jacobian.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    a : array_like, shape (..., nv)
        Acceleration dv/dt [rad/s^2, m/s^2].
    body : str
        Name of the body.
    out : ndarray, shape (..., 6, nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    J_ddot : ndarray, shape (..., 6, nv)

    Raises
    ------
    InputError
        An unknown body, a shape that does not fit, an entry that is not finite, or a quaternion not of unit length.

    Notes
    -----
    Spencer 2004, section 4.4.1; the printed recursion has one dot too many in its third and fourth terms, which should
    read ``ad(S v) Ad(f^-1) Jdot_P`` and ``ad(S vdot) J_i``.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> ld.body_jacobian_ddot(panda, q, 0 * q + 1.0, 0 * q, panda.body_names[-1]).shape
    (6, 7)
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    J_ddot = body_jacobian_ddot_direct(robot.packed, q, v, a, robot.body_numbers, body, out)
    if J_ddot is not None:
        return J_ddot
    return of_all_states(robot, body_jacobian_ddot_states, (6, robot.nv), out, robot.body_index(body), q=q, v=v, a=a)


@direct
def body_jacobian_dq_direct(model, q, names, name, out):
    """`body_jacobian_dq_kernel` on one state as Python passes it."""
    model = packed(model)
    q, nv = configuration(model, q), dof_total(model)
    work = scratch(6 * nv)
    b = number_of(names, name)
    dJ_dq = result(out, (6, nv, nv), (model.floats, q, work)) if b >= 0 else unusual()
    if not is_none(dJ_dq):
        body_jacobian_dq_kernel(SCALAR, model, q, b, work, numbers(dJ_dq, 6 * nv * nv))
    return dJ_dq


def body_jacobian_dq(robot, q, body, out=None):
    """Derivative of the body-fixed Jacobian with respect to the configuration.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    body : str
        Name of the body.
    out : ndarray, shape (..., 6, nv, nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    dJ_dq : ndarray, shape (..., 6, nv, nv)
        ``dJ_dq[:, j, k]`` is the derivative of column j of J along q exp(e_k t): in the tangent space at q, perturbed
        on the right. Zero unless the joint of k lies between the joint of j and the body.

    Raises
    ------
    InputError
        An unknown body, a shape that does not fit, an entry that is not finite, or a quaternion not of unit length.

    Notes
    -----
    Spencer 2004, section 4.4.1. ``J_dot = dJ_dq @ v``.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, hand = ld.neutral(panda), panda.body_names[-1]
    >>> v = 0 * q + 1.0
    >>> bool(abs(ld.body_jacobian_dq(panda, q, hand) @ v - ld.body_jacobian_dot(panda, q, v, hand)).max() < 1e-12)
    True
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    dJ_dq = body_jacobian_dq_direct(robot.packed, q, robot.body_numbers, body, out)
    if dJ_dq is not None:
        return dJ_dq
    return of_all_states(robot, body_jacobian_dq_states, (6, robot.nv, robot.nv), out, robot.body_index(body), q=q)
