"""Rates of coordinates, two ways: of the numbers in q, and of local coordinates u with q = q_0 exp(u).

One-dof joints have qdot = udot = v. A quaternion obeys Qdot = Q (w, 0) / 2, a linear equation that keeps its length; a
free joint moves by pdot = R(Q) v. Local coordinates obey udot = dexp^-1_{-u} v = J_r^-1(u) v (right-hand form: v is
body-fixed and u is multiplied from the right; Munthe-Kaas 1998, Hairer, Lubich and Wanner 2006, IV.7).
"""
from liedyn.jit import kernel_in_place
from liedyn.lie.algebra import add, neg, quaternion_rotation, rotate
from liedyn.lie.exponential import left_jacobian, left_jacobian_inverse, so3_left_jacobian, so3_left_jacobian_inverse
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import FREE
from liedyn.tree.records import dof_count, first_dof, first_q, get3, kind, link_count, put3


@kernel_in_place
def coordinate_rates(model, q, v, q_dot):
    """q_dot (nq): the plain time derivative of every number in q."""
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if dof_count(model, i) == 1:
            q_dot[k] = v[j]
            continue
        x, y, z, s = q[k], q[k + 1], q[k + 2], q[k + 3]
        wx, wy, wz = 0.5 * v[j], 0.5 * v[j + 1], 0.5 * v[j + 2]
        q_dot[k] = s * wx + y * wz - z * wy
        q_dot[k + 1] = s * wy + z * wx - x * wz
        q_dot[k + 2] = s * wz + x * wy - y * wx
        q_dot[k + 3] = -x * wx - y * wy - z * wz
        if kind(model, i) == FREE:
            put3(SCALAR, q_dot, k + 4, rotate(quaternion_rotation(x, y, z, s), get3(SCALAR, v, j + 3)))


@kernel_in_place
def unit_quaternions(model, q):
    """Give every quaternion in q its unit length."""
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            k = first_q(model, i)
            size = (q[k] ** 2 + q[k + 1] ** 2 + q[k + 2] ** 2 + q[k + 3] ** 2) ** 0.5
            for c in range(k, k + 4):
                q[c] /= size


@kernel_in_place
def local_rates(model, u, v, u_dot):
    """u_dot = J_r^-1(u) v joint by joint; u_dot may be v itself. Regular for turns below 2 pi."""
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) == 1:
            u_dot[j] = v[j]
        elif kind(model, i) == FREE:
            A, Q = left_jacobian_inverse((neg(get3(SCALAR, u, j)), neg(get3(SCALAR, u, j + 3))))
            w, linear = get3(SCALAR, v, j), get3(SCALAR, v, j + 3)
            put3(SCALAR, u_dot, j, rotate(A, w))
            put3(SCALAR, u_dot, j + 3, add(rotate(Q, w), rotate(A, linear)))
        else:
            A = so3_left_jacobian_inverse(neg(get3(SCALAR, u, j)))
            put3(SCALAR, u_dot, j, rotate(A, get3(SCALAR, v, j)))


@kernel_in_place
def body_rates(model, u, u_dot, v):
    """v = J_r(u) u_dot joint by joint, the inverse of `local_rates`; v may be u_dot itself."""
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) == 1:
            v[j] = u_dot[j]
        elif kind(model, i) == FREE:
            A, Q = left_jacobian((neg(get3(SCALAR, u, j)), neg(get3(SCALAR, u, j + 3))))
            w, linear = get3(SCALAR, u_dot, j), get3(SCALAR, u_dot, j + 3)
            put3(SCALAR, v, j, rotate(A, w))
            put3(SCALAR, v, j + 3, add(rotate(Q, w), rotate(A, linear)))
        else:
            put3(SCALAR, v, j, rotate(so3_left_jacobian(neg(get3(SCALAR, u, j))), get3(SCALAR, u_dot, j)))


@kernel_in_place
def largest_turn(model, u):
    """The largest angle among the ball and free joints of local coordinates u, squared."""
    largest = 0.0
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            j = first_dof(model, i)
            largest = max(largest, u[j] ** 2 + u[j + 1] ** 2 + u[j + 2] ** 2)
    return largest
