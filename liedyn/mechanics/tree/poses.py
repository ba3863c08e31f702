"""Poses of links in world axes, stored by columns (R | p), each with three numbers and one of padding.

For one state a column of the homogeneous matrix, with its 0 or 1, fills a register of 256 bits, and each column of the
product of two poses is a sum of the first pose's columns times numbers of the second: three multiplications for three
numbers. The time of a chain of links is then the latency of these three for each link.

Positions are relative to an origin that the caller chooses. Spatial vectors grow with the distance to their origin,
inertias with its square: relative to the world's origin, the dynamics of a robot 100 km away would lose ten digits;
relative to its `origin_of`, none.
"""
from liedyn.lie.algebra import add, compose, rotate, sub
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import NARROW, SCALAR, load, splat
from liedyn.machine.simd.registers import load_at_once, side_by_side, store_at_once
from liedyn.mechanics.tree.joints import by_kind, moved_by_sines, pose_of_kind
from liedyn.model.packed import PRISMATIC
from liedyn.model.packed_records import kind, link_count, parent, placement, put3, zero3

COLUMN, PLACES = 4, 16  # numbers stored for a column, and for a pose


@inline
def unturned(lane, model, i, q):
    """The pose of link i in its parent with the correct position but any angle, without computing a sine."""
    return pose_of_kind(lane, kind(model, i), model, i, q, splat(lane, 0.0), splat(lane, 1.0))


@inline
def slid(lane, model, i, q):
    """The position, in the frame of root i, of the first rotating link that it carries, possibly itself.

    Prismatic joints in a row, as of a planar vehicle or a gantry, can lead as far away as a free joint.
    """
    o, l = splat(lane, 0.0), splat(lane, 1.0)
    X = (l, o, o, o, l, o, o, o, l), (o, o, o)
    while kind(model, i) == PRISMATIC and i + 1 < link_count(model) and parent(model, i + 1) == i:
        i += 1
        X = compose(X, unturned(lane, model, i, q))
    return X[1]


@inline
def origin_of(lane, model, i, q):
    """The origin for the tree of root i: the position of its first rotating link in the world."""
    if i >= link_count(model):  # no moving link
        return zero3(lane)
    R, p = unturned(lane, model, i, q)
    return add(p, rotate(R, slid(lane, model, i, q)))


@inline
def seen_from(origin, X):
    """A pose in the world, with its position relative to `origin`."""
    R, p = X
    return R, sub(p, origin)


@inline
def pose_in_parent(lane, joint, model, i, q, work, sines, origin):
    """Pose of link i in its parent, from the sines at work[sines:]; for a root, relative to `origin`.

    The origin is subtracted from the joint's placement before its motion is added: the other order would lose digits.
    """
    M = placement(lane, model, i)
    if parent(model, i) < 0:
        M = seen_from(origin, M)
    return moved_by_sines(lane, joint, M, model, i, q, work, sines)


@inline
def as_world_pose(x):
    """A pose from the numbers stored for one."""
    return (x[0], x[4], x[8], x[1], x[5], x[9], x[2], x[6], x[10]), (x[12], x[13], x[14])


@inline
def get_world_pose(lane, x, k):
    """The pose stored from x[k] on."""
    return ((load(lane, x, k), load(lane, x, k + 4), load(lane, x, k + 8),
             load(lane, x, k + 1), load(lane, x, k + 5), load(lane, x, k + 9),
             load(lane, x, k + 2), load(lane, x, k + 6), load(lane, x, k + 10)),
            (load(lane, x, k + 12), load(lane, x, k + 13), load(lane, x, k + 14)))


@inline
def put_world_pose(lane, x, k, X):
    """Store a pose from x[k] on."""
    R, p = X
    put3(lane, x, k, (R[0], R[3], R[6]))
    put3(lane, x, k + COLUMN, (R[1], R[4], R[7]))
    put3(lane, x, k + 2 * COLUMN, (R[2], R[5], R[8]))
    put3(lane, x, k + 3 * COLUMN, p)


# ---- one state: four columns in registers


@inline
def get_columns(x, k):
    """The columns of the pose stored from x[k] on."""
    return (load_at_once(NARROW, x, k, COLUMN), load_at_once(NARROW, x, k + COLUMN, COLUMN),
            load_at_once(NARROW, x, k + 2 * COLUMN, COLUMN), load_at_once(NARROW, x, k + 3 * COLUMN, COLUMN))


@inline
def put_columns(x, k, X):
    """Store columns from x[k] on."""
    store_at_once(NARROW, x, k, COLUMN, X[0])
    store_at_once(NARROW, x, k + COLUMN, COLUMN, X[1])
    store_at_once(NARROW, x, k + 2 * COLUMN, COLUMN, X[2])
    store_at_once(NARROW, x, k + 3 * COLUMN, COLUMN, X[3])


@inline
def columns_of(f):
    """The columns of a pose."""
    R, p = f
    return (side_by_side(R[0], R[3], R[6], 0.0), side_by_side(R[1], R[4], R[7], 0.0),
            side_by_side(R[2], R[5], R[8], 0.0), side_by_side(p[0], p[1], p[2], 1.0))


@inline
def columns_beyond(X, f):
    """The columns of X f, from those of X."""
    x, y, z, p = X
    R, t = f
    return (x * R[0] + y * R[3] + z * R[6], x * R[1] + y * R[4] + z * R[7], x * R[2] + y * R[5] + z * R[8],
            p + (x * t[0] + y * t[1] + z * t[2]))


@inline
def columns_of_link(lane, joint, model, i, q, work, stride, sines, origin, previous):
    """Columns of the pose of link i; `previous` are those of link i - 1, usually its parent."""
    f = pose_in_parent(lane, joint, model, i, q, work, sines, origin)
    if parent(model, i) < 0:
        return columns_of(f)
    if parent(model, i) != i - 1:
        previous = get_columns(work, stride * parent(model, i))
    return columns_beyond(previous, f)


@inline
def place_one_state(model, q, work, stride, sines, origin):
    """Poses of all links to work[stride * i], from the sines at work[sines:]."""
    nothing = side_by_side(0.0, 0.0, 0.0, 0.0)
    X = (nothing, nothing, nothing, nothing)
    for i in range(link_count(model)):
        X = by_kind(columns_of_link, SCALAR, model, i, q, work, stride, sines, origin, X)
        put_columns(work, stride * i, X)


# ---- lanes


@inline
def link_in_world(lane, joint, model, i, q, work, stride, sines, origin):
    """Pose of link i, given that of its parent at work[stride * parent]."""
    f = pose_in_parent(lane, joint, model, i, q, work, sines, origin)
    if parent(model, i) < 0:
        return f
    return compose(get_world_pose(lane, work, stride * parent(model, i)), f)
