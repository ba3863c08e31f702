"""Lengths of the pieces of cables, and their gradients on jets.

A cable is a chain of pieces: straight ones from a point of one body to a point of another, and ones that go round a
cylinder or sphere on a third body. With p and q the two points in the frame C of what is wrapped (of the first point's
link for a straight piece), R its radius, and n the normal of the plane in which a piece turns, of which only the parts
of p and q across n count (the axis of a cylinder; p x q for a sphere),

    straight    L = |q - p|
    round       L_2 = l_p + l_q + R (angle from p to q about n - alpha_p - alpha_q)
                l = sqrt(|p|^2 - R^2), the straight part beside a point       alpha = acos(R / |p|)
    sphere      L = L_2
    cylinder    L = sqrt(L_2^2 + (z_q - z_p)^2)

a helix on the cylinder, a great circle on the sphere: shortest ways. Where the angle would be negative a piece has
lifted off, and is straight. Gradients of L_2 by p and q are the unit vectors along the straight parts, away from the
tangent points,

    e_p = (l_p p + s R p x n) / |p|^2        e_q = (l_q q - s R q x n) / |q|^2

with s = 1 for a piece that turns counterclockwise about n, s = -1 for one that turns clockwise. On jets
(`liedyn.mechanics.constraints.jets`) these lines give all derivatives of the gradients.

Where pulleys follow each other, pieces are the straight parts of a belt, from the circle about p to that about q. With
d = q - p and rho = s_p R_p - s_q R_q, where a point has the radius zero, their lengths and directions are

    l = sqrt(|d|^2 - rho^2)        u = (l d - rho d x n) / |d|^2

To them come the arcs R (angle from u to the next one). Gradients of all that by p and q are sums of -u and u, as the
belt is the shortest: an arc adds nothing to them.
"""
import math

from liedyn.lie.algebra import cross, dot, scale, sub
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints import jets
from liedyn.model.cable_paths import BELT, CYLINDER, RADIUS, SENSE, SHORTEST, SIDE, SIDE_AT, SPHERE, STRAIGHT
from liedyn.model.packed_records import get3

AXIS = (0.0, 0.0, 1.0)
FLAT = 1e-6
"""How far a belt may be out of its plane, as a slope."""
MOST = 1.75 * math.pi
"""The longest arc of a belt; more would be one of less than nothing."""


@inline
def once_round(angle):
    """An angle between zero and two pi."""
    return angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))


@inline
def length(p):
    return math.sqrt(dot(p, p))


@inline
def beside_a_point(R, p, q, side):
    """+1 or -1: counterclockwise or clockwise round a circle, beside a point; 0 if the straight way is there."""
    away = q[0] - p[0], q[1] - p[1]
    part = -(p[0] * away[0] + p[1] * away[1]) / (away[0] * away[0] + away[1] * away[1])
    part = min(max(part, 0.0), 1.0)
    near = p[0] + part * away[0], p[1] + part * away[1]
    if near[0] * near[0] + near[1] * near[1] > R * R and near[0] * side[0] + near[1] * side[1] >= 0.0:
        return 0.0
    phi_p, phi_q = math.atan2(p[1], p[0]), math.atan2(q[1], q[0])
    alpha_p, alpha_q = math.acos(min(R / math.hypot(p[0], p[1]), 1.0)), math.acos(min(R / math.hypot(q[0], q[1]), 1.0))
    best, chosen = -2.0, 0.0
    for s in (1.0, -1.0):
        angle = once_round(s * (phi_q - phi_p)) - alpha_p - alpha_q
        middle = phi_p + s * (alpha_p + 0.5 * angle)
        aligned = (side[0] * math.cos(middle) + side[1] * math.sin(middle)) / math.hypot(side[0], side[1])
        if angle >= 0.0 and aligned > best:
            best, chosen = aligned, s
    return chosen


@inline
def plane_of(numbers, at, p, q):
    """n, and the parts of p and q across n."""
    if numbers[at] == SPHERE:
        across = cross(p, q)
        return scale(1.0 / length(across), across), p, q
    return AXIS, (p[0], p[1], 0.0), (q[0], q[1], 0.0)


@inline
def sense_of(numbers, at, n, p, q):
    """s for the piece at numbers[at:]; 0 if it goes straight. p and q are across n."""
    if numbers[at + SENSE] == SIDE:
        side, x = get3(SCALAR, numbers, at + SIDE_AT), scale(1.0 / length(p), p)
        y = cross(n, x)
        return beside_a_point(numbers[at + RADIUS], (length(p), 0.0), (dot(x, q), dot(y, q)),
                              (dot(x, side), dot(y, side)))
    if numbers[at + SENSE] == SHORTEST:
        return 1.0 if dot(n, cross(p, q)) >= 0.0 else -1.0
    return numbers[at + SENSE]


@inline
def round_length(R, s, n, p, q):
    """L_2 of p and q across n, NaN if one of them lies within; and True if the piece goes round, and has not lifted
    off."""
    angle = once_round(s * math.atan2(dot(n, cross(p, q)), dot(p, q)))
    angle -= math.acos(min(R / length(p), 1.0)) + math.acos(min(R / length(q), 1.0))
    l_p, l_q = math.sqrt(dot(p, p) - R * R), math.sqrt(dot(q, q) - R * R)
    return l_p + l_q + R * angle, s != 0.0 and not (angle < 0.0 and l_p + l_q >= 0.0)


@inline
def way(numbers, at, p, q):
    """s and L_2 of the piece at numbers[at:], and True if it goes round."""
    if numbers[at] == STRAIGHT:
        return 0.0, 0.0, False
    n, p, q = plane_of(numbers, at, p, q)
    s = sense_of(numbers, at, n, p, q)
    L_2, is_round = round_length(numbers[at + RADIUS], s, n, p, q)
    return s, L_2, is_round


@inline
def arc(r, n, n_of_next, u, u_next):
    """Length of a belt on a pulley between two directions; r is its radius with the sense as sign.

    NaN if the axis of the next pulley is another one, or where the belt would have to lift off. Directions that differ
    by rounding are the same.
    """
    angle = math.copysign(1.0, r) * math.atan2(dot(n, cross(u, u_next)), dot(u, u_next))
    angle = once_round(angle + 1e-9) - 1e-9
    return abs(r) * angle if length(cross(n, n_of_next)) <= FLAT and angle <= MOST else math.nan


@inline
def piece_length(numbers, at, p, q):
    """L of the piece at numbers[at:]; NaN where a point lies within what it goes round."""
    if numbers[at] == BELT:
        d = sub(q, p)
        square = d[0] * d[0] + d[1] * d[1]
        inside = square - numbers[at + RADIUS] ** 2
        return math.sqrt(inside) if abs(d[2]) <= FLAT * math.sqrt(square) and inside >= 0.0 else math.nan
    _, L_2, is_round = way(numbers, at, p, q)
    if not is_round:
        return length(sub(q, p))
    rise = q[2] - p[2] if numbers[at] == CYLINDER else 0.0
    return math.sqrt(L_2 * L_2 + rise * rise)


# ---- on jets


def gradients_on(on):
    """Gradients of lengths on jets; `on` is the module of the jets' algebra (`liedyn.mechanics.constraints.jets`)."""
    add, sub, scale, multiple, dot, cross = (
        on.jet_add, on.jet_sub, on.jet_scale, on.jet_multiple, on.jet_dot, on.jet_cross)
    sum_of, times, root, inverse_root = on.sum_of, on.times, on.jet_root, on.jet_inverse_root
    component, unit, across, constant, zero = on.jet_component, on.jet_unit, on.jet_across, on.constant, on.jet_zero
    followed_up, value_of = on.followed_up, on.value_of

    @inline
    def tangent(R, p, n):
        """(sqrt(|p|^2 - R^2) p + R p x n) / |p|^2."""
        square = dot(p, p)
        inverse = inverse_root(square)
        along = scale(root(on.jet_lowered(square, R * R)), p)
        return scale(times(inverse, inverse), add(along, multiple(R, cross(p, n))))

    @inline
    def round_gradients(L_2, R, n, p, q, rise):
        """Gradients of L by p and q, which lie across n; R has the sign s, and `rise` is the way along n."""
        e_p, e_q = tangent(R, p, n), tangent(-R, q, n)
        flat = followed_up(L_2, e_p, e_q, p, q)
        inverse = inverse_root(sum_of(times(flat, flat), times(rise, rise)))
        level, along = times(flat, inverse), scale(times(rise, inverse), n)
        return sub(scale(level, e_p), along), add(scale(level, e_q), along)

    @inline
    def gradients(numbers, at, p, q):
        """Gradients by p and q of the length of the piece at numbers[at:]."""
        if numbers[at] == BELT:
            u = tangent(-numbers[at + RADIUS], across(sub(q, p)), constant(AXIS))
            return multiple(-1.0, u), u
        s, L_2, is_round = way(numbers, at, value_of(p), value_of(q))
        if not is_round:
            e = unit(sub(q, p))
            return multiple(-1.0, e), e
        if numbers[at] == CYLINDER:
            return round_gradients(L_2, s * numbers[at + RADIUS], constant(AXIS), across(p), across(q),
                                   component(sub(q, p), 2))
        return round_gradients(L_2, s * numbers[at + RADIUS], unit(cross(p, q)), p, q, zero(p))

    return gradients


gradients = gradients_on(jets)
"""The gradients as jets; derivatives are floats or lanes, as those of the points."""
