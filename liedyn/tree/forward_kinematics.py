"""Poses of bodies in the world: the product of exponentials, joint by joint."""
import numpy as np

from liedyn.arguments import require_robot
from liedyn.boundary import delivered, rows_for, states
from liedyn.direct import configuration, direct, packed, result, unusual
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import compose
from liedyn.lie.lanes import LANES, NARROW, SCALAR, WIDTH
from liedyn.lie.registers import at_once, store_at_once
from liedyn.lie.sines import put_sines, sines_size
from liedyn.lie.transposition import turned
from liedyn.model.packed import REVOLUTE
from liedyn.objects import is_none, number_of, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, lines_for, scatter_matrix
from liedyn.tree.joints import joint_pose
from liedyn.tree.poses import (
    PLACES, columns_beyond, columns_of, get_columns, get_world_pose, link_in_world, place_one_state, put_world_pose,
)
from liedyn.tree.records import (
    body_count, body_link, body_placement, kind, link_count, parent, put_pose, q_total, zero3,
)


@inline
def poses_size(model):
    """Numbers in the workspace of `place_links`: poses of the links, then sines."""
    return PLACES * link_count(model) + sines_size(q_total(model))


@inline
def place_links(lane, model, q, work):
    """World poses of all links."""
    sines, world = PLACES * link_count(model), zero3(lane)
    put_sines(lane, q, q_total(model), work, sines)
    if at_once(lane) > 1:
        place_one_state(model, q, work, PLACES, sines, zero3(SCALAR))
    else:
        for i in range(link_count(model)):
            if kind(model, i) == REVOLUTE:
                X = link_in_world(lane, REVOLUTE, model, i, q, work, PLACES, sines, world)
            else:
                X = link_in_world(lane, kind(model, i), model, i, q, work, PLACES, sines, world)
            put_world_pose(lane, work, PLACES * i, X)


@inline
def is_where_its_link_is(model, b):
    """Is body b declared in the very frame of its link? Many are."""
    R, p = body_placement(SCALAR, model, b)
    return body_link(model, b) >= 0 and R[0] + R[4] == 2.0 and p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0


@inline
def pose_on_link(lane, model, work, b):
    """World pose of body b, in its own declared frame; needs `place_links`."""
    X = body_placement(lane, model, b)
    if body_link(model, b) < 0:
        return X
    return compose(get_world_pose(lane, work, PLACES * body_link(model, b)), X)


@kernel_in_place
def forward_kinematics_kernel(lane, model, q, work, poses):
    """World poses of all bodies, twelve numbers each: R row by row, then p."""
    place_links(lane, model, q, work)
    for b in range(body_count(model)):
        if is_where_its_link_is(model, b):
            put_pose(lane, poses, 12 * b, get_world_pose(lane, work, PLACES * body_link(model, b)))
        else:
            put_pose(lane, poses, 12 * b, pose_on_link(lane, model, work, b))


@batch
def forward_kinematics_states(begin, end, model, q, poses):
    """`forward_kinematics_kernel` on each row."""
    work = aligned(poses_size(model) * WIDTH)
    if end - begin == 1:
        forward_kinematics_kernel(SCALAR, model, q[begin], work, poses[begin])
        return
    q_w, poses_w = in_lanes(q), in_lanes(poses)
    lines = lines_for(poses)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        forward_kinematics_kernel(LANES, model, q_w, work, poses_w)
        scatter_matrix(poses_w, b, end, poses, lines)


@inline
def columns_of_body(model, work, b):
    """Columns of the homogeneous matrix of body b, for one state; needs `place_links`."""
    if is_where_its_link_is(model, b):
        return get_columns(work, PLACES * body_link(model, b))
    X = body_placement(SCALAR, model, b)
    if body_link(model, b) < 0:
        return columns_of(X)
    return columns_beyond(get_columns(work, PLACES * body_link(model, b)), X)


@inline
def put_matrix(x, k, columns):
    """The homogeneous matrix of 4 x 4 numbers whose columns are given, row by row."""
    rows = turned(columns[0], columns[1], columns[2], columns[3])
    for r in range(4):
        store_at_once(NARROW, x, k + 4 * r, 4, rows[r])


@direct
def forward_kinematics_direct(model, q, out):
    """World poses of all bodies as matrices, for one state as Python passes it."""
    model = packed(model)
    q, work, n = configuration(model, q), scratch(poses_size(model)), body_count(model)
    poses = result(out, (n, 4, 4), (model.floats, q, work))
    if not is_none(poses):
        matrices = numbers(poses, 16 * n)
        place_links(SCALAR, model, q, work)
        for b in range(n):
            put_matrix(matrices, 16 * b, columns_of_body(model, work, b))
    return poses


@direct
def pose_direct(model, q, names, name, out):
    """World pose of a body as a matrix, for one state as Python passes it: from the body to the ground."""
    model = packed(model)
    q = configuration(model, q)
    b = number_of(names, name)
    T = result(out, (4, 4), (model.floats, q)) if b >= 0 else unusual()
    if not is_none(T):
        X, i = body_placement(SCALAR, model, b), body_link(model, b)
        while i >= 0:
            X = compose(joint_pose(SCALAR, model, i, q), X)
            i = parent(model, i)
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
    if not hasattr(robot, "packed"):
        require_robot(robot)
    poses = forward_kinematics_direct(robot.packed, q, out)
    if poses is not None:
        return poses
    lead, q = states(robot, q=q)
    shape = (robot.nbodies, 4, 4)
    poses, packed = rows_for(out, lead, shape, q), np.empty((len(q), 12 * robot.nbodies))
    forward_kinematics_states(robot.packed, q, packed)
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
    if not hasattr(robot, "packed"):
        require_robot(robot)
    T = pose_direct(robot.packed, q, robot.body_numbers, body, out)
    if T is not None:
        return T
    b = robot.body_index(body)
    lead, q = states(robot, q=q)
    T = rows_for(out, lead, (4, 4), q)
    T[:] = forward_kinematics(robot, q)[:, b].reshape(-1, 16)
    return delivered(T, lead, (4, 4), out)
