"""Errors of targets and their rows: what inverse kinematics minimises, and its derivatives by the coordinates.

All quantities are relative to a reference frame b, mostly the ground. With (R, p) the pose of frame a seen in b, and
S_j the screw of degree of freedom j (omega, and v at the origin), which moves a (sign +1), b (-1), or both (0),

    orientation     e = log(R Rg^T)                 de = J_l^-1(e) omega
    point           e = R x + p - pg                de = v + omega x (the point)
    direction       e = theta n = log(d to u)       de = ((1 - f c) / s^2 w w^T + f (c - u d^T)) omega
    centre of mass  e = c - cg                      de = sum over the links that j carries, m (v + omega x r) / M

where u = R x is the present axis, d its goal, w = d x u = s n, c = d . u, f = theta / s. The
norm of e is an angle [rad] or a distance [m]. A user's target computes e and its rows in its own functions.
"""
import math
from collections import namedtuple

from liedyn.lie.algebra import add, cross, dot, neg, rotate, rotate_rotation, scale, sub, unrotate
from liedyn.lie.exponential import so3_left_jacobian_inverse, so3_log
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.compiled.user_functions import call
from liedyn.machine.simd.lanes import SCALAR, load
from liedyn.mechanics.tree.energy import mass_of_links
from liedyn.mechanics.tree.kinematics import S, body_pose, of_dof, origin, world_pose
from liedyn.model.packed import TIME
from liedyn.model.packed_records import (
    body_link, dof_count, dof_total, first_dof, get3, get6, get9, inertia, link_count, parent, parent_dof, put3, zero3,
)

ORIENTATION, POINT, DIRECTION, CENTER_OF_MASS, CUSTOM = range(5)
KIND, BODY, REFERENCE, ROW, ROWS, LEVEL, ERROR, JACOBIAN, RECORD = range(9)
"""Places in a record of a target: frames by index, -1 for the ground; first row, number of rows; level of priority;
addresses of a user's functions (`liedyn.machine.compiled.user_functions`)."""
GOAL = 9
"""Size of a goal: a rotation row by row, or three numbers."""
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@inline
def reference_pose(model, world, b):
    """Pose of frame b, seen from the origin that all poses are seen from."""
    if b < 0:
        place = origin(SCALAR, model, world)
        return IDENTITY, neg(place)
    return body_pose(SCALAR, model, world, b)


@inline
def transposed(R):
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


@inline
def turned_into(u, d):
    """The rotation vector theta n of the smallest rotation from d to u, with f = theta / s and (1 - f c) / s^2."""
    w, c = cross(d, u), dot(d, u)
    s = math.sqrt(dot(w, w))
    if s < 1e-4 and c > 0.0:  # series: the truncation error is below 1e-16
        f, g = 1.0 + s * s / 6.0, 1.0 / 3.0 + 2.0 * s * s / 15.0
    elif s < 1e-12:  # opposite directions: any perpendicular axis
        k = 0 if abs(d[0]) < 0.6 else (1 if abs(d[1]) < 0.6 else 2)
        n = cross(d, (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0))
        return scale(math.pi / math.sqrt(dot(n, n)), n), n, math.pi, 0.0
    else:
        f = math.atan2(s, c) / s
        g = (1.0 - f * c) / (s * s)
    return scale(f, w), w, f, g


@inline
def matrix_of_direction(u, d):
    """The matrix that maps omega to the rate of `turned_into`."""
    _, w, f, g = turned_into(u, d)
    c = f * dot(d, u)
    return (g * w[0] * w[0] + c - f * u[0] * d[0], g * w[0] * w[1] - f * u[0] * d[1], g * w[0] * w[2] - f * u[0] * d[2],
            g * w[1] * w[0] - f * u[1] * d[0], g * w[1] * w[1] + c - f * u[1] * d[1], g * w[1] * w[2] - f * u[1] * d[2],
            g * w[2] * w[0] - f * u[2] * d[0], g * w[2] * w[1] - f * u[2] * d[1], g * w[2] * w[2] + c - f * u[2] * d[2])


@kernel_in_place
def put_masses(model, world, masses):
    """Mass and first moment, four numbers, of each link and all links it carries; needs `world_positions`."""
    for i in range(link_count(model)):
        m, h, _ = inertia(model, i)
        R, p = world_pose(SCALAR, world, i)
        masses[4 * i] = m
        put3(SCALAR, masses, 4 * i + 1, add(scale(m, p), rotate(R, h)))
    for i in range(link_count(model) - 1, -1, -1):
        if parent(model, i) >= 0:
            for k in range(4):
                masses[4 * parent(model, i) + k] += masses[4 * i + k]


@inline
def center_of_mass_of(model, masses):
    """The centre of mass, seen from the origin, from the result of `put_masses`."""
    moment = zero3(SCALAR)
    for i in range(link_count(model)):
        if parent(model, i) < 0:
            moment = add(moment, get3(SCALAR, masses, 4 * i + 1))
    return scale(1.0 / mass_of_links(model), moment)


@inline
def place_of(model, world, masses, record, constants, at):
    """The point of a target, seen from the origin."""
    if record[KIND] == CENTER_OF_MASS:
        return center_of_mass_of(model, masses)
    R, p = body_pose(SCALAR, model, world, record[BODY])
    return add(p, rotate(R, get3(SCALAR, constants, at)))


PackedTargets = namedtuple("PackedTargets", "records constants goal")
"""Records (count, RECORD) of targets, points and axes in their bodies (3 count), and what is wanted (GOAL count)."""


@kernel_in_place
def target_errors(model, q, world, masses, targets, error):
    """error (rows) of all targets; needs `world_positions`; `masses` (4 links) is computed if a target needs it.

    """
    records, constants, goal = targets
    for t in range(records.shape[0]):
        if records[t, KIND] == CENTER_OF_MASS:
            put_masses(model, world, masses)
    for t in range(records.shape[0]):
        record, row = records[t], records[t, ROW]
        if record[KIND] == CUSTOM:
            call(record[ERROR], model.floats[TIME], q, q, q, q, error, row)
            continue
        B = reference_pose(model, world, record[REFERENCE])
        if record[KIND] == ORIENTATION:
            R = rotate_rotation(transposed(B[0]), body_pose(SCALAR, model, world, record[BODY])[0])
            put3(SCALAR, error, row, so3_log(rotate_rotation(R, transposed(get9(SCALAR, goal, GOAL * t)))))
        elif record[KIND] == DIRECTION:
            R = body_pose(SCALAR, model, world, record[BODY])[0]
            u = unrotate(B[0], rotate(R, get3(SCALAR, constants, 3 * t)))
            put3(SCALAR, error, row, turned_into(u, get3(SCALAR, goal, GOAL * t))[0])
        else:
            place = unrotate(B[0], sub(place_of(model, world, masses, record, constants, 3 * t), B[1]))
            put3(SCALAR, error, row, sub(place, get3(SCALAR, goal, GOAL * t)))


@inline
def put_in_rows(J, row, j, x):
    J[row, j], J[row + 1, j], J[row + 2, j] = x[0], x[1], x[2]


@inline
def last_dof(model, i):
    """The last degree of freedom that moves link i, -1 for the ground."""
    return first_dof(model, i) + dof_count(model, i) - 1 if i >= 0 else -1


@inline
def point_column(model, world, j, place):
    """Velocity of the point at `place`, carried along by degree of freedom j."""
    w, v = get6(SCALAR, world, of_dof(model, j, S))
    return add(v, cross(w, place))


@kernel_in_place
def put_path(model, world, record, turns, place, A, J):
    """Columns of the joints between a frame and its reference: of the point at `place`, or A times the rotation."""
    a = last_dof(model, body_link(model, record[BODY]))
    b = last_dof(model, body_link(model, record[REFERENCE])) if record[REFERENCE] >= 0 else -1
    R = reference_pose(model, world, record[REFERENCE])[0]
    while a != b:
        j, sign = (a, 1.0) if a > b else (b, -1.0)
        if turns:
            x = rotate(A, unrotate(R, get3(SCALAR, world, of_dof(model, j, S))))
        else:
            x = unrotate(R, point_column(model, world, j, place))
        put_in_rows(J, record[ROW], j, scale(sign, x))
        if a > b:
            a = parent_dof(model, a)
        else:
            b = parent_dof(model, b)


@kernel_in_place
def put_mass_columns(model, world, masses, record, J):
    """Columns of the centre of mass, seen in its reference frame."""
    total = 1.0 / mass_of_links(model)
    B = reference_pose(model, world, record[REFERENCE])
    center, b = center_of_mass_of(model, masses), record[REFERENCE]
    for i in range(link_count(model)):
        m, moment = load(SCALAR, masses, 4 * i), get3(SCALAR, masses, 4 * i + 1)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            w, v = get6(SCALAR, world, of_dof(model, j, S))
            x = add(scale(m * total, v), scale(total, cross(w, moment)))
            put_in_rows(J, record[ROW], j, unrotate(B[0], x))
    j = last_dof(model, body_link(model, b)) if b >= 0 else -1
    while j >= 0:  # joints that carry the reference too
        x, row = unrotate(B[0], point_column(model, world, j, center)), record[ROW]
        put_in_rows(J, row, j, sub((J[row, j], J[row + 1, j], J[row + 2, j]), x))
        j = parent_dof(model, j)


@kernel_in_place
def target_rows(model, q, world, masses, targets, error, J):
    """J (rows, nv), the exact derivatives of `target_errors`, which has been called at the same q."""
    records, constants, goal = targets
    J[:] = 0.0
    for t in range(records.shape[0]):
        record = records[t]
        if record[KIND] == CUSTOM:
            call(record[JACOBIAN], model.floats[TIME], q, q, q, q, J, record[ROW] * dof_total(model))
        elif record[KIND] == CENTER_OF_MASS:
            put_mass_columns(model, world, masses, record, J)
        elif record[KIND] == POINT:
            place = place_of(model, world, masses, record, constants, 3 * t)
            put_path(model, world, record, False, place, IDENTITY, J)
        else:
            A = so3_left_jacobian_inverse(get3(SCALAR, error, record[ROW]))
            if record[KIND] == DIRECTION:
                R = body_pose(SCALAR, model, world, record[BODY])[0]
                B = reference_pose(model, world, record[REFERENCE])
                u = unrotate(B[0], rotate(R, get3(SCALAR, constants, 3 * t)))
                A = matrix_of_direction(u, get3(SCALAR, goal, GOAL * t))
            put_path(model, world, record, True, zero3(SCALAR), A, J)
