"""Second derivatives of weighted errors of targets by the coordinates, in the exponential's chart.

The symbols are those of `liedyn.tasks.reaching.target_rows`. The joints between a frame and its reference act one after
the other; joint j that acts after joint k (it is nearer to the ground on the side of the frame, farther from it on
the other side) also turns what k has moved. With a_j = sign_j omega_j and P_k the velocity of the point for joint k,

    point, centre of mass   e_jk = sign_j sign_k omega_j x P_k
    rotations               e_jk = de (a_j x a_k) / 2 + the second derivative of e by rotations, along a_j and a_k

Within one joint, whose chart is an exponential, the first is the mean of both orders and a_j x a_k is left out. Of
the axis u the second derivative by rotations a and b is that of e = f(c) d x u with c = d . u, f' = -(1 - f c) / s^2.
"""
import numpy as np

from liedyn.lie.algebra import add, cross, dot, neg, rotate, scale, unrotate
from liedyn.lie.exponential import so3_left_jacobian_inverse
from liedyn.lie.slopes import inverse_slope
from liedyn.machine.compiled.jit import inline, kernel
from liedyn.machine.simd.lanes import SCALAR, load
from liedyn.mechanics.tree.energy import mass_of_links
from liedyn.mechanics.tree.kinematics import S, body_pose, of_dof
from liedyn.model.packed_records import body_link, dof_link, dof_total, get3, get6, parent_dof, zero3
from liedyn.tasks.reaching.target_rows import (
    BODY, CENTER_OF_MASS, CUSTOM, DIRECTION, GOAL, KIND, POINT, REFERENCE, ROW, last_dof, matrix_of_direction,
    place_of, point_column, reference_pose, turned_into,
)


@inline
def put_sequence(model, record, order, signs):
    """The degrees of freedom between a frame and its reference from the one that acts last, and their number."""
    a = last_dof(model, body_link(model, record[BODY]))
    b = last_dof(model, body_link(model, record[REFERENCE])) if record[REFERENCE] >= 0 else -1
    below, above = 0, order.size  # those of the frame are found in the opposite order
    while a != b:
        if a > b:
            above -= 1
            order[above], signs[above] = a, 1.0
            a = parent_dof(model, a)
        else:
            order[below], signs[below] = b, -1.0
            below += 1
            b = parent_dof(model, b)
    count = below + order.size - above
    for i in range(below, count):
        order[i], signs[i] = order[above + i - below], signs[above + i - below]
    return count


@inline
def add_pair(H, j, k, x):
    H[j, k] += x
    if j != k:
        H[k, j] += x


@inline
def add_moved(model, world, force, j, k, columns, sign, H):
    """Adds sign force . (omega_j x P_k) to H, where joint j acts after k or is the same."""
    w, P = get6(SCALAR, world, of_dof(model, j, S))[0], (columns[k, 0], columns[k, 1], columns[k, 2])
    x = dot(force, cross(w, P))
    if dof_link(model, j) == dof_link(model, k) and j != k:
        other = get6(SCALAR, world, of_dof(model, k, S))[0]
        x = 0.5 * (x + dot(force, cross(other, (columns[j, 0], columns[j, 1], columns[j, 2]))))
    add_pair(H, j, k, sign * x)


@inline
def put_column(columns, j, x):
    columns[j, 0], columns[j, 1], columns[j, 2] = x[0], x[1], x[2]


@inline
def add_point(model, world, place, force, sequence, columns, H):
    """The second derivative of force . place, seen in the world's axes."""
    order, signs, count = sequence
    for i in range(count):
        put_column(columns, order[i], point_column(model, world, order[i], place))
    for i in range(count):
        for l in range(i, count):
            add_moved(model, world, force, order[i], order[l], columns, signs[i] * signs[l], H)


@inline
def add_mass(model, world, masses, force, columns, H):
    """The second derivative of force . the centre of mass."""
    total = 1.0 / mass_of_links(model)
    for k in range(columns.shape[0]):
        i = dof_link(model, k)
        m, moment = load(SCALAR, masses, 4 * i), get3(SCALAR, masses, 4 * i + 1)
        w, v = get6(SCALAR, world, of_dof(model, k, S))
        put_column(columns, k, add(scale(m * total, v), scale(total, cross(w, moment))))
    for k in range(columns.shape[0]):
        j = k
        while j >= 0:
            add_moved(model, world, force, j, k, columns, 1.0, H)
            j = parent_dof(model, j)


@inline
def bend_of_rotation(e, weights, a, b):
    """weights . the second derivative of log(R) = e by rotations a and b of R."""
    J = so3_left_jacobian_inverse(e)
    by_a = inverse_slope((neg(e), zero3(SCALAR)), (a, zero3(SCALAR)))[0]
    by_b = inverse_slope((neg(e), zero3(SCALAR)), (b, zero3(SCALAR)))[0]
    return -0.5 * (dot(weights, rotate(by_a, rotate(J, b))) + dot(weights, rotate(by_b, rotate(J, a))))


@inline
def bend_of_direction(u, d, weights, a, b):
    """weights . the second derivative of `turned_into` by rotations a and b of u."""
    _, w, f, g = turned_into(u, d)
    c, s2 = dot(d, u), dot(w, w)
    f2 = 4.0 / 15.0 if s2 < 1e-4 else (f - 3.0 * c * g) / s2
    if s2 < 1e-8 and c < 0.0:  # opposite directions: the error has a kink
        return 0.0
    u_a, u_b = cross(a, u), cross(b, u)
    u_ab = scale(0.5, add(cross(a, u_b), cross(b, u_a)))
    c_a, c_b = dot(d, u_a), dot(d, u_b)
    bent = add(scale(f2 * c_a * c_b - g * dot(d, u_ab), w), scale(f, cross(d, u_ab)))
    return dot(weights, add(bent, scale(-g, add(scale(c_a, cross(d, u_b)), scale(c_b, cross(d, u_a))))))


@inline
def add_rotation(model, world, axes, e, ends, weights, sequence, H):
    """The second derivative of weights . e; ends = (the present axis, its goal), of a direction."""
    (order, signs, count), (u, d), of_direction = sequence, ends, dot(ends[1], ends[1]) > 0.0
    A = matrix_of_direction(u, d) if of_direction else so3_left_jacobian_inverse(e)
    pull = unrotate(A, weights)  # A^T weights
    for i in range(count):
        a = scale(signs[i], unrotate(axes, get3(SCALAR, world, of_dof(model, order[i], S))))
        for l in range(i, count):
            b = scale(signs[l], unrotate(axes, get3(SCALAR, world, of_dof(model, order[l], S))))
            x = bend_of_direction(u, d, weights, a, b) if of_direction else bend_of_rotation(e, weights, a, b)
            if dof_link(model, order[i]) != dof_link(model, order[l]):
                x += 0.5 * dot(pull, cross(a, b))
            add_pair(H, order[i], order[l], x)


@kernel
def add_target_curvature(model, world, masses, targets, error, weights, H):
    """H (nv, nv) += the second derivative of weights . error of `target_errors`, which has been called at the same q.

    Targets of users, and centres of mass that are seen from a frame, have none here.
    """
    records, constants, goal = targets
    n = dof_total(model)
    order, signs, columns = np.empty(n, np.int64), np.empty(n), np.empty((n, 3))
    for t in range(records.shape[0]):
        record, row = records[t], records[t, ROW]
        if record[KIND] == CUSTOM or record[KIND] == CENTER_OF_MASS and record[REFERENCE] >= 0:
            continue
        given, axes = get3(SCALAR, weights, row), reference_pose(model, world, record[REFERENCE])[0]
        if record[KIND] == CENTER_OF_MASS:
            add_mass(model, world, masses, given, columns, H)
            continue
        sequence = order, signs, put_sequence(model, record, order, signs)
        if record[KIND] == POINT:
            place = place_of(model, world, masses, record, constants, 3 * t)
            add_point(model, world, place, rotate(axes, given), sequence, columns, H)
        elif record[KIND] == DIRECTION:
            u = rotate(body_pose(SCALAR, model, world, record[BODY])[0], get3(SCALAR, constants, 3 * t))
            ends = unrotate(axes, u), get3(SCALAR, goal, GOAL * t)
            add_rotation(model, world, axes, get3(SCALAR, error, row), ends, given, sequence, H)
        else:
            ends = zero3(SCALAR), zero3(SCALAR)
            add_rotation(model, world, axes, get3(SCALAR, error, row), ends, given, sequence, H)
