"""Poses of bodies in the world: the product of exponentials, joint by joint."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import compose
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import NARROW, SCALAR, store
from liedyn.machine.simd.registers import at_once, store_at_once
from liedyn.machine.simd.sines import put_sines, sines_size
from liedyn.machine.simd.transposition import turned
from liedyn.mechanics.tree.joints import by_kind, joint_pose
from liedyn.mechanics.tree.poses import (
    PLACES, columns_beyond, columns_of, get_columns, get_world_pose, link_in_world, place_one_state, put_world_pose,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    body_count, body_link, body_placement, link_count, parent, put3, put_pose, q_total, zero3,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@kernel_in_place
def poses_size(model):
    """Size of the workspace of `place_links`: poses of the links, then sines."""
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
            X = by_kind(link_in_world, lane, model, i, q, work, PLACES, sines, world)
            put_world_pose(lane, work, PLACES * i, X)


@inline
def is_where_its_link_is(model, b):
    """True if body b is declared in the frame of its link; many are."""
    R, p = body_placement(SCALAR, model, b)
    return body_link(model, b) >= 0 and R[0] + R[4] == 2.0 and p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0


@inline
def body_in_world(lane, model, work, b):
    """World pose of body b, in its own declared frame; needs `place_links`."""
    if is_where_its_link_is(model, b):
        return get_world_pose(lane, work, PLACES * body_link(model, b))
    X = body_placement(lane, model, b)
    if body_link(model, b) < 0:
        return X
    return compose(get_world_pose(lane, work, PLACES * body_link(model, b)), X)


@inline
def columns_of_body(model, work, b):
    """World pose of body b for one state, as columns of the homogeneous matrix."""
    if is_where_its_link_is(model, b):
        return get_columns(work, PLACES * body_link(model, b))
    X = body_placement(SCALAR, model, b)
    if body_link(model, b) < 0:
        return columns_of(X)
    return columns_beyond(get_columns(work, PLACES * body_link(model, b)), X)


@inline
def put_matrix(lane, x, k, X):
    """The homogeneous matrix of a pose, row by row."""
    R, p = X
    put3(lane, x, k, (R[0], R[1], R[2]))
    put3(lane, x, k + 4, (R[3], R[4], R[5]))
    put3(lane, x, k + 8, (R[6], R[7], R[8]))
    put3(lane, x, k + 12, zero3(lane))
    for r in range(3):
        store(lane, x, k + 4 * r + 3, p[r])
    store(lane, x, k + 15, 1.0)


@kernel_in_place
def forward_kinematics_kernel(lane, model, q, work, poses):
    """World poses of all bodies, twelve numbers each: R by rows, then p."""
    place_links(lane, model, q, work)
    for b in range(body_count(model)):
        put_pose(lane, poses, 12 * b, body_in_world(lane, model, work, b))


@kernel_in_place
def matrices_kernel(lane, model, q, work, poses):
    """World poses of all bodies, as homogeneous matrices."""
    place_links(lane, model, q, work)
    for b in range(body_count(model)):
        if at_once(lane) > 1:
            x, y, z, p = columns_of_body(model, work, b)
            rows = turned(x, y, z, p)
            for r in range(4):
                store_at_once(NARROW, poses, 16 * b + 4 * r, 4, rows[r])
        else:
            put_matrix(lane, poses, 16 * b, body_in_world(lane, model, work, b))


@kernel_in_place
def pose_kernel(lane, model, q, b, T):
    """World pose of body b as a homogeneous matrix, from the body to the ground."""
    X, i = body_placement(lane, model, b), body_link(model, b)
    while i >= 0:
        X = compose(joint_pose(lane, model, i, q), X)
        i = parent(model, i)
    put_matrix(lane, T, 0, X)


@recursion(matrices_kernel, work=poses_size, poses="nbodies 4 4")
def forward_kinematics(robot: Robot, q: ArrayLike, out: Array | None = None) -> Array:
    """Poses of all bodies in the world.

    Returns
    -------
    poses : ndarray, shape (..., nbodies, 4, 4)
        Homogeneous transforms from body to world coordinates [m], in the order of ``robot.body_names``.

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


@recursion(pose_kernel, T="4 4")
def pose(robot: Robot, q: ArrayLike, body: str, out: Array | None = None) -> Array:
    """Pose of one body in the world.

    Returns
    -------
    T : ndarray, shape (..., 4, 4)
        Homogeneous transform from body to world coordinates [m].

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
