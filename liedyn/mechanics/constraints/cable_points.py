"""Points along the paths of cables, for pictures.

Each piece of a path (`liedyn.mechanics.constraints.cable_lengths`) has as many points as any other, wherever the cable
goes: a straight part, an arc, a straight part; where it does not go round, all three are on one line.
"""
import math

import numpy as np

from liedyn.lie.algebra import add, cross, dot, rotate, scale, sub
from liedyn.machine.compiled.jit import inline, kernel
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cable_lengths import (
    AXIS, gradients, once_round, plane_of, round_length, sense_of,
)
from liedyn.mechanics.constraints.families.cable import direction, piece, piece_at, piece_count, total_length
from liedyn.mechanics.constraints.jets import constant
from liedyn.mechanics.tree.kinematics import origin, world_positions, world_size
from liedyn.model.cable_paths import BELT, CYLINDER, RADIUS, SENSE, STRAIGHT

LINE, ARC = 8, 24
"""How many parts a straight part and an arc have."""
POINTS_OF_PIECE = 2 * LINE + ARC
"""The last point of a piece is the first one of the next."""


@inline
def put_line(out, row, start, end, count):
    """Write the points from `start`, up to the one before `end`."""
    for k in range(count):
        point = add(start, scale(k / count, sub(end, start)))
        out[row + k, 0], out[row + k, 1], out[row + k, 2] = point


@inline
def put_arc(out, row, centre, arms, angle, rise):
    """Write the points of an arc from centre + arms[0] towards arms[1], which rises by `rise` on its way."""
    for k in range(ARC):
        part = k / ARC
        point = add(add(centre, scale(part, rise)), add(scale(math.cos(part * angle), arms[0]),
                                                        scale(math.sin(part * angle), arms[1])))
        out[row + k, 0], out[row + k, 1], out[row + k, 2] = point


@inline
def touched(p, n, R):
    """The straight part beside p, and where it touches a circle of radius R about the origin; R has the sense as sign,
    with which the circle is left towards p clockwise about n."""
    square = dot(p, p)
    l = math.sqrt(max(square - R * R, 0.0))
    away = scale(1.0 / square, add(scale(l, p), scale(R, cross(p, n))))
    return l, sub(p, scale(l, away))


@inline
def put_round(out, row, numbers, at, p, q):
    """Write the points of a piece round a cylinder or sphere in the axes of its frame; False if it is straight."""
    if numbers[at] == STRAIGHT:
        return False
    n, flat_p, flat_q = plane_of(numbers, at, p, q)
    s, R = sense_of(numbers, at, n, flat_p, flat_q), numbers[at + RADIUS]
    L_2, is_round = round_length(R, s, n, flat_p, flat_q)
    if not is_round or not math.isfinite(L_2):
        return False
    l_p, one = touched(flat_p, n, s * R)
    l_q, two = touched(flat_q, n, -s * R)
    angle = (L_2 - l_p - l_q) / R
    rise = scale(dot(n, sub(q, p)) / L_2, n) if numbers[at] == CYLINDER else scale(0.0, n)
    base = scale(dot(n, p), n) if numbers[at] == CYLINDER else scale(0.0, n)
    start, end = add(add(one, base), scale(l_p, rise)), add(add(two, base), scale(l_p + R * angle, rise))
    put_line(out, row, p, start, LINE)
    put_arc(out, row + LINE, add(base, scale(l_p, rise)), (one, scale(s, cross(n, one))), angle, scale(R * angle, rise))
    put_line(out, row + LINE + ARC, end, q, LINE)
    return True


@inline
def put_belt(out, row, model, work, at, beyond, C, p, q):
    """Write the points of a straight part of a belt, in the axes of its frame, and of the arc after it."""
    u = gradients(model.floats, at, constant(p), constant(q))[1][0]
    arm = cross(u, AXIS)
    r_q = model.floats[at + SENSE]
    end = add(q, scale(r_q, arm))
    put_line(out, row, add(p, scale(model.floats[at + RADIUS] + r_q, arm)), end, 2 * LINE)
    angle = 0.0
    if r_q != 0.0:
        u_next = direction(model, work, beyond)
        n, here = rotate(C, AXIS), rotate(C, u)
        sense = math.copysign(1.0, r_q)
        angle = sense * (once_round(sense * math.atan2(dot(n, cross(here, u_next)), dot(here, u_next)) + 1e-9) - 1e-9)
    put_arc(out, row + 2 * LINE, q, (scale(r_q, arm), scale(r_q, cross(AXIS, arm))), angle, (0.0, 0.0, 0.0))


@kernel
def cable_points(model, l, q):
    """Points (count, 3) in the world along the path of constraint l, a cable; and the length of the path.

    Where a path is not defined its length is NaN, and its pieces are straight.
    """
    work = np.empty(world_size(model))
    world_positions(SCALAR, model, q, work)
    count, numbers = piece_count(model, l), model.floats
    out, row = np.empty((POINTS_OF_PIECE * count + 1, 3)), 0
    size = total_length(model, l, work)
    for k in range(count):
        at = piece_at(model, l, k)
        _, (P, Q), (p, q_C) = piece(model, work, at)
        if numbers[at] == BELT and math.isfinite(size):
            put_belt(out, row, model, work, at, piece_at(model, l, (k + 1) % count), P[0], p, q_C)
        elif numbers[at] == BELT or not put_round(out, row, numbers, at, p, q_C):
            put_line(out, row, p, q_C, POINTS_OF_PIECE)
        centre = add(origin(SCALAR, model, work), sub(P[1], rotate(P[0], p)))
        for j in range(row, row + POINTS_OF_PIECE):
            point = add(centre, rotate(P[0], (out[j, 0], out[j, 1], out[j, 2])))
            out[j, 0], out[j, 1], out[j, 2] = point
        row += POINTS_OF_PIECE
        if k == count - 1:
            out[row, 0], out[row, 1], out[row, 2] = add(centre, rotate(Q[0], q_C))
    at = piece_at(model, l, count - 1)
    if numbers[at] == BELT and numbers[at + SENSE] != 0.0:  # closed
        out[row] = out[0]
    return out, size
