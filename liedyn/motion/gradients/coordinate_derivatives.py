"""Variations of configurations, column by column: of the numbers of q, in the tangent space, and of rates of q."""
from liedyn.lie.algebra import add, cross, quaternion_rotation, rotate, unrotate
from liedyn.lie.slopes import carry_rows
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.vectors import copy_to
from liedyn.mechanics.tree.joints import put_coordinate_rates
from liedyn.model.packed import FREE, NV
from liedyn.model.packed_records import dof_count, first_dof, first_q, kind, link_count, q_count
from liedyn.motion.simulation.coordinate_rates import coordinate_rates


@inline
def copy_rows(A, out):
    """out = A."""
    for i in range(A.shape[0]):
        copy_to(A[i], out[i])


@inline
def is_plain(model, q):
    """True if all joints have one degree of freedom, so that dq and theta are the same."""
    return q.size == model.ints[NV]


@kernel_in_place
def put_start(model, q, room):
    """Initial variations: the columns of dtheta_0 and dv_0 are unit vectors, all others zero."""
    n = room.v.shape[0]
    room.q_start[:, :], room.v_start[:, :] = 0.0, 0.0
    for j in range(n):
        room.v_start[j, n + j] = 1.0
    if is_plain(model, q):
        for j in range(n):
            room.q_start[j, j] = 1.0
        return
    unit, rate = room.number[0, :n], room.number[1, :q.size]
    for j in range(n):
        unit[:] = 0.0
        unit[j] = 1.0
        coordinate_rates(model, q, unit, rate)
        for r in range(q.size):
            room.q_start[r, j] = rate[r]


@kernel_in_place
def put_tangent(model, q, dq, theta):
    """theta (n, C) from the variations dq (nq, C) of the numbers of q, whose quaternions may have any length."""
    if is_plain(model, q):
        copy_rows(dq, theta)
        return
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if dof_count(model, i) == 1:
            copy_to(dq[k], theta[j])
            continue
        x, y, z, s = q[k], q[k + 1], q[k + 2], q[k + 3]
        square = x * x + y * y + z * z + s * s
        for c in range(dq.shape[1]):
            a, b, e, f = dq[k, c], dq[k + 1, c], dq[k + 2, c], dq[k + 3, c]
            theta[j, c] = 2.0 * (s * a - f * x - y * e + z * b) / square
            theta[j + 1, c] = 2.0 * (s * b - f * y - z * a + x * e) / square
            theta[j + 2, c] = 2.0 * (s * e - f * z - x * b + y * a) / square
        if kind(model, i) == FREE:
            R = quaternion_rotation(x, y, z, s)
            for c in range(dq.shape[1]):
                p = unrotate(R, (dq[k + 4, c], dq[k + 5, c], dq[k + 6, c]))
                theta[j + 3, c], theta[j + 4, c], theta[j + 5, c] = p


@kernel_in_place
def vary_rates(model, q, v, dq, theta, dv, number, out):
    """Variations (nq, C) of qdot: for a quaternion Q of Q (w, 0) / 2, for a position of R(Q) u."""
    if is_plain(model, q):
        copy_rows(dv, out)
        return
    turned, rate, along = number[0, :q.size], number[1, :q.size], number[2, :v.size]
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if dof_count(model, i) == 1:
            copy_to(dv[j], out[k])
            continue
        R = quaternion_rotation(q[k], q[k + 1], q[k + 2], q[k + 3])
        for c in range(dq.shape[1]):
            for r in range(k, k + q_count(model, i)):
                turned[r] = dq[r, c]
            for r in range(j, j + dof_count(model, i)):
                along[r] = dv[r, c]
            put_coordinate_rates(model, i, turned, v, rate)
            for r in range(k, k + 4):
                out[r, c] = rate[r]
            put_coordinate_rates(model, i, q, along, rate)
            for r in range(k, k + 4):
                out[r, c] += rate[r]
            if kind(model, i) == FREE:
                w, u = (theta[j, c], theta[j + 1, c], theta[j + 2, c]), (v[j + 3], v[j + 4], v[j + 5])
                x = rotate(R, add(cross(w, u), (dv[j + 3, c], dv[j + 4, c], dv[j + 5, c])))
                out[k + 4, c], out[k + 5, c], out[k + 6, c] = x


@kernel_in_place
def carry(model, shift, D, theta):
    """theta (n, C) of where exp(shift) leads, which changes by D, from that of where it begins."""
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) == 1:
            for c in range(theta.shape[1]):
                theta[j, c] += D[j, c]
        else:
            carry_rows(dof_count(model, i), shift, j, theta, D)
