"""Poses of the two frames of a constraint at a configuration."""
from liedyn.lie.algebra import compose
from liedyn.machine.compiled.jit import inline
from liedyn.mechanics.tree.kinematics import origin, world_pose
from liedyn.mechanics.tree.poses import seen_from
from liedyn.model.constraint_records import has_target, loop_at, loop_links
from liedyn.model.packed import LOOP_MOTION, LOOP_POSE_A, LOOP_POSE_B
from liedyn.model.packed_records import constant_pose


@inline
def loop_frames(lane, model, work, l):
    """World poses of frame A, moved by its target, and of frame B; needs `world_positions`."""
    a, b = loop_links(model, l)
    A = placed(lane, model, work, a, constant_pose(lane, model, loop_at(model, l, LOOP_POSE_A)))
    B = placed(lane, model, work, b, constant_pose(lane, model, loop_at(model, l, LOOP_POSE_B)))
    if has_target(model, l):
        A = compose(A, constant_pose(lane, model, loop_at(model, l, LOOP_MOTION)))
    return A, B


@inline
def placed(lane, model, work, i, X):
    """World pose of a frame with pose X in link i, or in the world if i is the ground, -1."""
    if i < 0:
        return seen_from(origin(lane, model, work), X)
    return compose(world_pose(lane, work, i), X)
