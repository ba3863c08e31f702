"""Kinematics of a tree in world axes: what Jacobians, inertia matrix, derivatives and loops share.

Everything is a spatial vector at one fixed point, so that nothing has to be carried from frame to frame afterwards:
the columns S_j of all body Jacobians, and the rates that the derivatives need (Singh, Russell and Wensing 2022,
eq. 17-20), with p the parent of the link i that degree of freedom j moves:

    Psi_dot_j = ad(V_p, S_j)      Psi_ddot_j = ad(A_p, S_j) + ad(V_p, Psi_dot_j)      S_dot_j = ad(V_i, S_j)

A turn by S_j of all that lies beyond joint j changes a body twist, seen in the body, by exactly Psi_dot_j: the parent
stays behind. Accelerations contain gravity (the ground accelerates upward).

That point is where the first link is at the state in question (`liedyn.tree.poses.origin_of`), not the world's origin.
No result depends on it but by rounding, which grows with the square of the distance to it.
"""
import numpy as np

from liedyn.boundary import delivered, require_robot, rows_for, states
from liedyn.direct import configuration, direct, model, result, unusual
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import ad, add, add6, compose, cross, scale, scale6
from liedyn.lie.lanes import LANES, NARROW, SCALAR, WIDTH, load
from liedyn.lie.registers import at_once, store_at_once
from liedyn.lie.sines import put_sines, sines_size
from liedyn.lie.transposition import turned
from liedyn.model.packed import ANGULAR, HELICAL, LINEAR, PRISMATIC, REVOLUTE
from liedyn.model.robot import Robot
from liedyn.objects import is_none, number_of, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, lines_for, scatter_matrix
from liedyn.tree.joints import dofs_of_kind, joint_pose
from liedyn.tree.poses import (
    PLACES, columns_beyond, columns_of, get_columns, get_world_pose, link_in_world, origin_of, place_one_state,
    put_world_pose, seen_from,
)
from liedyn.tree.records import (
    body_count, body_link, body_placement, dof_column, dof_count, dof_link, dof_total, dof_type, first_dof, get3,
    get6, kind, link_count, parent, pitch, put3, put6, put_pose, q_total, upward, zero3, zero6,
)

# the shared part of a workspace: LINK numbers per link, then DOF numbers per degree of freedom
LINK, POSE, TWIST, ACCELERATION = 28, 0, 16, 22
DOF, S, PSI_DOT, PSI_DDOT, S_DOT = 24, 0, 6, 12, 18


@inline
def sines_at(ints):
    """Where sines and cosines of the coordinates lie, behind links and degrees of freedom."""
    return LINK * link_count(ints) + DOF * dof_total(ints)


@inline
def origin_at(ints):
    """Where the origin lies, its place in the world, behind the sines."""
    return sines_at(ints) + sines_size(q_total(ints))


@inline
def world_size(ints):
    """Numbers in the shared part of a workspace."""
    return origin_at(ints) + WIDTH  # three for the origin; what follows begins with a register


@inline
def put_origin(lane, ints, floats, q, work):
    """Choose the origin."""
    put3(lane, work, origin_at(ints), origin_of(lane, ints, floats, 0, q))


@inline
def origin(lane, ints, work):
    """The place of the origin in the world."""
    return get3(lane, work, origin_at(ints))


@inline
def of_link(i, what):
    return LINK * i + what


@inline
def of_dof(ints, j, what):
    return LINK * link_count(ints) + DOF * j + what


@inline
def world_pose(lane, work, i):
    return get_world_pose(lane, work, of_link(i, POSE))


@inline
def twist_of(lane, work, i):
    """Twist of link i, -1 for the ground."""
    if i < 0:
        return zero6(lane)
    return get6(lane, work, of_link(i, TWIST))


@inline
def acceleration_of(lane, floats, work, i):
    """Acceleration of link i with gravity, -1 for the ground."""
    if i < 0:
        return upward(lane, floats)
    return get6(lane, work, of_link(i, ACCELERATION))


@inline
def screw(lane, ints, floats, X, j):
    """S_j in world coordinates, for the pose X of the link it moves."""
    R, p = X
    c = dof_column(ints, j)
    # the column is known at run time only; a tuple has no run-time index that costs nothing
    axis = (R[2], R[5], R[8]) if c == 2 else ((R[1], R[4], R[7]) if c == 1 else (R[0], R[3], R[6]))
    if dof_type(ints, j) == LINEAR:
        return zero3(lane), axis
    moment = cross(p, axis)
    if dof_type(ints, j) == ANGULAR:
        return axis, moment
    return axis, add(moment, scale(pitch(ints, floats, dof_link(ints, j)), axis))


@inline
def screw_of_kind_at(lane, joint, ints, floats, i, X, d):
    """Screw d of joint i in world coordinates, for the pose X of its link."""
    R, p = X
    z = (R[2], R[5], R[8])
    if joint == REVOLUTE:
        return z, cross(p, z)
    if joint == PRISMATIC:
        return zero3(lane), z
    if joint == HELICAL:
        return z, add(cross(p, z), scale(pitch(ints, floats, i), z))
    k = d % 3
    axis = z if k == 2 else ((R[1], R[4], R[7]) if k == 1 else (R[0], R[3], R[6]))
    return (axis, cross(p, axis)) if d < 3 else (zero3(lane), axis)


@inline
def put_link_in_place(lane, joint, ints, floats, i, q, work):
    """Pose and screws of link i; for one state the poses are there already."""
    if at_once(lane) > 1:
        X = world_pose(lane, work, i)
    else:
        X = link_in_world(lane, joint, ints, floats, i, q, work, LINK, sines_at(ints), origin(lane, ints, work))
        put_world_pose(lane, work, of_link(i, POSE), X)
    for d in range(dofs_of_kind(joint)):
        put6(lane, work, of_dof(ints, first_dof(ints, i) + d, S),
             screw_of_kind_at(lane, joint, ints, floats, i, X, d))


@kernel_in_place
def world_positions(lane, ints, floats, q, work):
    """Poses of all links and the screws S_j, and the origin they are seen from."""
    put_sines(lane, q, q_total(ints), work, sines_at(ints))
    put_origin(lane, ints, floats, q, work)
    if at_once(lane) > 1:
        place_one_state(ints, floats, q, work, LINK, sines_at(ints), origin(SCALAR, ints, work))
    for i in range(link_count(ints)):
        if kind(ints, i) == REVOLUTE:  # the common joint compiled apart: its zeros cost nothing
            put_link_in_place(lane, REVOLUTE, ints, floats, i, q, work)
        else:
            put_link_in_place(lane, kind(ints, i), ints, floats, i, q, work)


@kernel_in_place
def world_velocities(lane, ints, v, work):
    """Twists V_i, and Psi_dot_j and S_dot_j; needs `world_positions`."""
    for i in range(link_count(ints)):
        Vp, j = twist_of(lane, work, parent(ints, i)), first_dof(ints, i)
        if dof_count(ints, i) == 1:
            Sj = get6(lane, work, of_dof(ints, j, S))
            put6(lane, work, of_link(i, TWIST), add6(Vp, scale6(load(lane, v, j), Sj)))
            # a single screw does not turn itself: ad(V, S) = ad(V_p + v S, S)
            psi_dot = ad(Vp, Sj)
            put6(lane, work, of_dof(ints, j, PSI_DOT), psi_dot)
            put6(lane, work, of_dof(ints, j, S_DOT), psi_dot)
            continue
        V = Vp
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            V = add6(V, scale6(load(lane, v, j), get6(lane, work, of_dof(ints, j, S))))
        put6(lane, work, of_link(i, TWIST), V)
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            Sj = get6(lane, work, of_dof(ints, j, S))
            put6(lane, work, of_dof(ints, j, PSI_DOT), ad(Vp, Sj))
            put6(lane, work, of_dof(ints, j, S_DOT), ad(V, Sj))


@kernel_in_place
def world_accelerations(lane, ints, floats, v, a, work):
    """Accelerations A_i with gravity, and Psi_ddot_j; needs `world_velocities`."""
    for i in range(link_count(ints)):
        Vp = twist_of(lane, work, parent(ints, i))
        Ap = acceleration_of(lane, floats, work, parent(ints, i))
        A = Ap
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            Sj = get6(lane, work, of_dof(ints, j, S))
            S_dot_j = get6(lane, work, of_dof(ints, j, S_DOT))
            A = add6(A, add6(scale6(load(lane, a, j), Sj), scale6(load(lane, v, j), S_dot_j)))
            psi_dot = get6(lane, work, of_dof(ints, j, PSI_DOT))
            put6(lane, work, of_dof(ints, j, PSI_DDOT), add6(ad(Ap, Sj), ad(Vp, psi_dot)))
        put6(lane, work, of_link(i, ACCELERATION), A)


@inline
def body_pose(lane, ints, floats, work, b):
    """Pose of body b, in its own declared frame; needs `world_positions`."""
    X = body_placement(lane, ints, floats, b)
    if body_link(ints, b) < 0:
        return seen_from(origin(lane, ints, work), X)
    return compose(world_pose(lane, work, body_link(ints, b)), X)


# ---- poses alone


@inline
def poses_size(ints):
    """Numbers in the workspace of `place_links`: poses of the links, then sines."""
    return PLACES * link_count(ints) + sines_size(q_total(ints))


@inline
def place_links(lane, ints, floats, q, work):
    """World poses of all links."""
    sines, world = PLACES * link_count(ints), zero3(lane)
    put_sines(lane, q, q_total(ints), work, sines)
    if at_once(lane) > 1:
        place_one_state(ints, floats, q, work, PLACES, sines, zero3(SCALAR))
    else:
        for i in range(link_count(ints)):
            if kind(ints, i) == REVOLUTE:
                X = link_in_world(lane, REVOLUTE, ints, floats, i, q, work, PLACES, sines, world)
            else:
                X = link_in_world(lane, kind(ints, i), ints, floats, i, q, work, PLACES, sines, world)
            put_world_pose(lane, work, PLACES * i, X)


@inline
def is_where_its_link_is(ints, floats, b):
    """Is body b declared in the very frame of its link? Many are."""
    R, p = body_placement(SCALAR, ints, floats, b)
    return body_link(ints, b) >= 0 and R[0] + R[4] == 2.0 and p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0


@inline
def pose_on_link(lane, ints, floats, work, b):
    """World pose of body b, in its own declared frame; needs `place_links`."""
    X = body_placement(lane, ints, floats, b)
    if body_link(ints, b) < 0:
        return X
    return compose(get_world_pose(lane, work, PLACES * body_link(ints, b)), X)


@kernel_in_place
def forward_kinematics_kernel(lane, ints, floats, q, work, poses):
    """World poses of all bodies, twelve numbers each: R row by row, then p."""
    place_links(lane, ints, floats, q, work)
    for b in range(body_count(ints)):
        if is_where_its_link_is(ints, floats, b):
            put_pose(lane, poses, 12 * b, get_world_pose(lane, work, PLACES * body_link(ints, b)))
        else:
            put_pose(lane, poses, 12 * b, pose_on_link(lane, ints, floats, work, b))


@batch
def forward_kinematics_states(begin, end, ints, floats, q, poses):
    """`forward_kinematics_kernel` on each row."""
    work = aligned(poses_size(ints) * WIDTH)
    if end - begin == 1:
        forward_kinematics_kernel(SCALAR, ints, floats, q[begin], work, poses[begin])
        return
    q_w, poses_w = in_lanes(q), in_lanes(poses)
    lines = lines_for(poses)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        forward_kinematics_kernel(LANES, ints, floats, q_w, work, poses_w)
        scatter_matrix(poses_w, b, end, poses, lines)


@inline
def columns_of_body(ints, floats, work, b):
    """Columns of the homogeneous matrix of body b, for one state; needs `place_links`."""
    if is_where_its_link_is(ints, floats, b):
        return get_columns(work, PLACES * body_link(ints, b))
    X = body_placement(SCALAR, ints, floats, b)
    if body_link(ints, b) < 0:
        return columns_of(X)
    return columns_beyond(get_columns(work, PLACES * body_link(ints, b)), X)


@inline
def put_matrix(x, k, columns):
    """The homogeneous matrix of 4 x 4 numbers whose columns are given, row by row."""
    rows = turned(columns[0], columns[1], columns[2], columns[3])
    for r in range(4):
        store_at_once(NARROW, x, k + 4 * r, 4, rows[r])


@direct
def forward_kinematics_direct(ints, floats, q, out):
    """World poses of all bodies as matrices, for one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, work, n = configuration(ints, q), scratch(poses_size(ints)), body_count(ints)
    poses = result(out, (n, 4, 4), (floats, q, work))
    if not is_none(poses):
        matrices = numbers(poses, 16 * n)
        place_links(SCALAR, ints, floats, q, work)
        for b in range(n):
            put_matrix(matrices, 16 * b, columns_of_body(ints, floats, work, b))
    return poses


@direct
def pose_direct(ints, floats, q, names, name, out):
    """World pose of a body as a matrix, for one state as Python passes it: from the body to the ground."""
    ints, floats = model(ints, floats)
    q = configuration(ints, q)
    b = number_of(names, name)
    T = result(out, (4, 4), (floats, q)) if b >= 0 else unusual()
    if not is_none(T):
        X, i = body_placement(SCALAR, ints, floats, b), body_link(ints, b)
        while i >= 0:
            X = compose(joint_pose(SCALAR, ints, floats, i, q), X)
            i = parent(ints, i)
        put_matrix(numbers(T, 16), 0, columns_of(X))
    return T


def forward_kinematics(robot, q, out=None):
    """Poses of all bodies in the world.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    out : ndarray, shape (..., nbodies, 4, 4), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    poses : ndarray, shape (..., nbodies, 4, 4)
        Homogeneous transforms from body to world coordinates [m], in the order of ``robot.body_names``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Product of exponentials, joint by joint: f = M exp(S q) (Spencer 2004, A.2).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.forward_kinematics(panda, ld.neutral(panda)).shape[1:]
    (4, 4)
    """
    if type(robot) is not Robot:
        require_robot(robot)
    poses = forward_kinematics_direct(robot.ints, robot.floats, q, out)
    if poses is not None:
        return poses
    lead, q = states(robot, q=q)
    shape = (robot.nbodies, 4, 4)
    poses, packed = rows_for(out, lead, shape, q), np.empty((len(q), 12 * robot.nbodies))
    forward_kinematics_states(robot.ints, robot.floats, q, packed)
    matrices, packed = poses.reshape((len(q), *shape)), packed.reshape(len(q), robot.nbodies, 12)
    matrices[..., :3, :3] = packed[..., :9].reshape(len(q), robot.nbodies, 3, 3)
    matrices[..., :3, 3] = packed[..., 9:]
    matrices[..., 3, :] = 0.0, 0.0, 0.0, 1.0
    return delivered(poses, lead, shape, out)


def pose(robot, q, body, out=None):
    """Pose of one body in the world.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    body : str
        Name of the body.
    out : ndarray, shape (..., 4, 4), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    T : ndarray, shape (..., 4, 4)
        Homogeneous transform from body to world coordinates [m].

    Raises
    ------
    InputError
        An unknown body, a shape that does not fit, or an entry that is not finite.

    Notes
    -----
    Spencer 2004, A.2.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.pose(panda, ld.neutral(panda), panda.body_names[0]).shape
    (4, 4)
    """
    if type(robot) is not Robot:
        require_robot(robot)
    T = pose_direct(robot.ints, robot.floats, q, robot.body_numbers, body, out)
    if T is not None:
        return T
    b = robot.body_index(body)
    lead, q = states(robot, q=q)
    T = rows_for(out, lead, (4, 4), q)
    T[:] = forward_kinematics(robot, q)[:, b].reshape(-1, 16)
    return delivered(T, lead, (4, 4), out)
