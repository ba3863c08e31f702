"""Cut joints: the relative pose of two frames split into the joint's own motion and the closure error.

Frames A (on link a, the parent side) and B (on link b) have the relative pose T = A^-1 B. A cut joint is a massless
virtual joint between them (Spencer 2004, 2.4.2 and 4.4): its coordinates z follow from T in closed form, and the
closure residual is the log of the motion that the joint does not permit,

    T = f1(z) E f2(z)      residual = W^T log E

with f1 the part of the joint's chain before the *cut frame* C = A f1 and f2 the part after it. C is chosen so that both
the forbidden directions (the columns of W) and the virtual velocities are constant components of the twist of b
relative to a, expressed in C. For most joints C is simply A. For a universal joint it is the cross; for planar, inline
and spherical cuts it has A's axes at B's origin: rows of the latter two are then the exact rates of their residuals
also where the loop is open, as stabilisation requires. The velocities of a ball are components in B, as those of a
spherical joint in the tree.

Residuals, rows and constraint wrenches (moment, force) are expressed in C.

Poses of the two frames of a constraint at a configuration.
"""
import math

import numpy as np

from liedyn.lie.algebra import Ad, Ad_inverse, about_z, add, compose, cross, dot, rotate, scale, sub, sub6, unrotate
from liedyn.lie.exponential import inverse, left_jacobian_inverse, log
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.comparisons import where_positive
from liedyn.machine.simd.lanes import SCALAR, lane_of, sqrt, store, width_of
from liedyn.machine.simd.sines import sincos
from liedyn.mechanics.tree.kinematics import origin, world_pose
from liedyn.mechanics.tree.poses import seen_from
from liedyn.model.constraint_records import (
    has_target, is_active, is_cut, loop_at, loop_count, loop_kind, loop_links, loop_pitch, loop_rows, loop_virtuals,
)
from liedyn.model.kinds import (
    CYLINDRICAL, HELICAL, INLINE, JOINTS, PLANAR, PRISMATIC, REVOLUTE, SPHERICAL, TRANSLATIONAL, UNIVERSAL, components,
)
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


# Twist components (0-2 angular, 3-5 linear) in the cut frame, by kind: first the forbidden ones, then virtual
# velocities
FORBIDDEN = np.array([(components(kind.forbidden) + [9] * 6)[:6] for kind in JOINTS])
VIRTUAL = np.array([(components(kind.motions) + [9] * 6)[:6] for kind in JOINTS])

_IDENTITY = ((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))


@inline
def _turn_z(angle):
    s, c = sincos(angle)
    return (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)


@inline
def joint_motion(kind, pitch, T):
    """Virtual coordinates z (three, unused ones zero; without a ball's) and the motions f1, f2 of the chain."""
    R, p = T
    turn = math.atan2(R[3] - R[1], R[0] + R[4])  # the rotation about z nearest to R
    zero = (0.0, 0.0, 0.0)
    z, f1, f2 = zero, _IDENTITY, _IDENTITY
    if kind == REVOLUTE:
        z, f2 = (turn, 0.0, 0.0), (_turn_z(turn), zero)
    elif kind == PRISMATIC:
        z, f2 = (p[2], 0.0, 0.0), (_IDENTITY[0], (0.0, 0.0, p[2]))
    elif kind == HELICAL:
        if pitch != 0.0:
            # the whole turns follow from the advance p_z
            turn += 2.0 * math.pi * np.round((p[2] / pitch - turn) / (2.0 * math.pi))
        z, f2 = (turn, 0.0, 0.0), (_turn_z(turn), (0.0, 0.0, pitch * turn))
    elif kind == CYLINDRICAL:
        z, f2 = (turn, p[2], 0.0), (_turn_z(turn), (0.0, 0.0, p[2]))
    elif kind == UNIVERSAL:
        z = (math.atan2(R[7], R[4]), math.atan2(R[2], R[0]), 0.0)
        (sx, cx), (sy, cy) = sincos(z[0]), sincos(z[1])
        f1 = (1.0, 0.0, 0.0, 0.0, cx, -sx, 0.0, sx, cx), zero
        f2 = (cy, 0.0, sy, 0.0, 1.0, 0.0, -sy, 0.0, cy), zero
    elif kind == PLANAR:
        z, f1, f2 = (p[0], p[1], turn), (_IDENTITY[0], (p[0], p[1], 0.0)), (_turn_z(turn), zero)
    elif kind == SPHERICAL:
        f2 = (R, zero)
    elif kind == TRANSLATIONAL:
        z, f2 = p, (_IDENTITY[0], p)
    elif kind == INLINE:
        z, f1, f2 = (p[2], 0.0, 0.0), (_IDENTITY[0], (0.0, 0.0, p[2])), (R, zero)
    return z, f1, f2


@inline
def turned_about_x(A, c, s):
    """The frame A turned about its x axis by the angle of (c, s)."""
    R, p = A
    return (R[0], c * R[1] + s * R[2], c * R[2] - s * R[1],
            R[3], c * R[4] + s * R[5], c * R[5] - s * R[4],
            R[6], c * R[7] + s * R[8], c * R[8] - s * R[7]), p


@inline
def cut_frames(kind, A, B):
    """World poses A f1 (without z) of the frames in which rows and virtual velocities are constant components."""
    C = A
    if kind == UNIVERSAL:
        # the cross turns with B's y axis relative to A
        y = unrotate(A[0], (B[0][1], B[0][4], B[0][7]))
        size = sqrt(y[1] * y[1] + y[2] * y[2])
        C = turned_about_x(A, where_positive(size, y[1] / size, 1.0), where_positive(size, y[2] / size, 0.0))
    if kind == PLANAR:
        z = (A[0][2], A[0][5], A[0][8])
        C = (A[0], sub(B[1], scale(dot(z, sub(B[1], A[1])), z)))
    if kind == SPHERICAL:
        return (A[0], B[1]), B
    if kind == INLINE:
        C = (A[0], B[1])
    return C, C


@inline
def _left_over(kind, pitch, T):
    """E = f1^-1 T f2^-1; angles are computed only if a translation depends on them, or two follow each other."""
    R, p = T
    if kind == HELICAL or kind == UNIVERSAL:
        f1, f2 = joint_motion(kind, pitch, T)[1:]
        return compose(compose(inverse(f1), T), inverse(f2))
    if kind == SPHERICAL:
        return _IDENTITY[0], p
    if kind == INLINE:
        return _IDENTITY[0], (p[0], p[1], 0.0)
    if kind == REVOLUTE or kind == CYLINDRICAL or kind == PLANAR:
        c, s = R[0] + R[4], R[3] - R[1]
        size = math.sqrt(c * c + s * s)
        if size > 0.0:
            R = about_z(R, -s / size, c / size)
    if kind == PRISMATIC or kind == CYLINDRICAL:
        p = sub(p, scale(p[2], (R[2], R[5], R[8])))
    elif kind == PLANAR:
        p = (0.0, 0.0, p[2])
    elif kind == TRANSLATIONAL:
        p = sub(p, rotate(R, p))
    return R, p


@inline
def _log(E):
    """log E; without angles for a motion so small that theta^2 is lost in rounding, as in a closed loop."""
    R, p = E
    w = (0.5 * (R[7] - R[5]), 0.5 * (R[2] - R[6]), 0.5 * (R[3] - R[1]))
    if dot(w, w) < 1e-16 and R[0] + R[4] + R[8] > 0.0:
        return w, sub(p, scale(0.5, cross(w, p)))
    return log(E)


@inline
def pose_in_lane(T, i):
    """The pose in lane i; for one state, the pose itself."""
    R, p = T
    return (lane_of(R[0], i), lane_of(R[1], i), lane_of(R[2], i), lane_of(R[3], i), lane_of(R[4], i),
            lane_of(R[5], i), lane_of(R[6], i), lane_of(R[7], i), lane_of(R[8], i)), (
                lane_of(p[0], i), lane_of(p[1], i), lane_of(p[2], i))


@inline
def _residual(kind, pitch, T):
    """log E as six numbers, with the helical row combined."""
    w, v = _log(_left_over(kind, pitch, T))
    last = v[2] - pitch * w[2] if kind == HELICAL else v[2]
    return (w[0], w[1], w[2], v[0], v[1], last)


@inline
def _rates(kind, pitch, T, x):
    """The twists f1^-1 df1 and df2 f2^-1 of the chain for the motion x = dT T^-1."""
    (R, p), w = T, x[0]
    p_dot = add(x[1], cross(w, p))
    X, Y, Z = cross(w, (R[0], R[3], R[6])), cross(w, (R[1], R[4], R[7])), cross(w, (R[2], R[5], R[8]))
    c, s = R[0] + R[4], R[3] - R[1]
    turn = (c * (X[1] - Y[0]) - s * (X[0] + Y[1])) / (c * c + s * s)
    o = 0.0 * turn
    still = o, o, o
    first, second = (still, still), (still, still)
    if kind == REVOLUTE:
        second = (o, o, turn), still
    elif kind == PRISMATIC:
        second = still, (o, o, p_dot[2])
    elif kind == HELICAL:
        second = (o, o, turn), (o, o, pitch * turn)
    elif kind == CYLINDRICAL:
        second = (o, o, turn), (o, o, p_dot[2])
    elif kind == UNIVERSAL:
        first = ((R[4] * Y[2] - R[7] * Y[1]) / (R[4] * R[4] + R[7] * R[7]), o, o), still
        second = (o, (R[0] * Z[0] - R[2] * X[0]) / (R[0] * R[0] + R[2] * R[2]), o), still
    elif kind == PLANAR:
        first, second = (still, (p_dot[0], p_dot[1], o)), ((o, o, turn), still)
    elif kind == SPHERICAL:
        second = w, still
    elif kind == TRANSLATIONAL:
        second = still, p_dot
    elif kind == INLINE:
        first, second = (still, (o, o, p_dot[2])), (w, still)
    return first, second


@inline
def residual_rate(kind, pitch, T, x):
    """The rate of log E for a motion x = dT T^-1, also for an open loop.

    From T = f1 E f2: dE E^-1 = Ad(f1^-1) x - f1^-1 df1 - Ad(E) df2 f2^-1, and the rate of log E by the inverse of its
    left Jacobian.
    """
    _, f1, f2 = joint_motion(kind, pitch, T)
    first, second = _rates(kind, pitch, T, x)
    E = compose(compose(inverse(f1), T), inverse(f2))
    w, v = sub6(sub6(Ad_inverse(f1, x), first), Ad(E, second))
    J, Q = left_jacobian_inverse(_log(E))
    return rotate(J, w), add(rotate(Q, w), rotate(J, v))


@inline
def put_residual(lane, model, l, A, B, residual):
    """The residual of cut joint l for the frames A and B, lane by lane, as a logarithm has branches."""
    kind, T, width = loop_kind(model, l), compose(inverse(A), B), width_of(lane)
    row, count = loop_rows(model, l)
    for i in range(width):
        e = _residual(kind, loop_pitch(model, l), pose_in_lane(T, i))
        for r in range(count):
            store(SCALAR, residual, (row + r) * width + i, e[FORBIDDEN[kind, r]])


@kernel_in_place
def closure_kernel(lane, model, work, residual):
    """Residuals of all active cut joints; needs `world_positions`."""
    for l in range(loop_count(model)):
        if is_cut(model, l) and is_active(model, l):
            A, B = loop_frames(lane, model, work, l)
            put_residual(lane, model, l, A, B, residual)


@kernel_in_place
def virtual_kernel(model, work, z):
    """Virtual coordinates of all loops, one for each virtual velocity; for a ball the log of its rotation."""
    for l in range(loop_count(model)):
        if not is_cut(model, l):
            continue
        A, B = loop_frames(SCALAR, model, work, l)
        kind = loop_kind(model, l)
        T = compose(inverse(A), B)
        coordinates = joint_motion(kind, loop_pitch(model, l), T)[0]
        if kind == SPHERICAL:
            coordinates = log((T[0], (0.0, 0.0, 0.0)))[0]
        first, count = loop_virtuals(model, l)
        for k in range(count):
            z[first + k] = coordinates[k]
