"""Rates of coordinates in two forms: of the numbers in q, and of local coordinates u with q = q_0 exp(u).

One-dof joints have qdot = udot = v. A quaternion obeys Qdot = Q (w, 0) / 2, a linear equation that keeps its length; a
free joint moves by pdot = R(Q) v. Local coordinates obey udot = dexp^-1_{-u} v = J_r^-1(u) v (right-hand form: v is
body-fixed and u is multiplied from the right; Munthe-Kaas 1998, Hairer, Lubich and Wanner 2006, IV.7).
"""
from liedyn.lie.algebra import add, dot, neg6, rotate
from liedyn.lie.exponential import left_jacobian, left_jacobian_inverse
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.joints import joint_twist, put_coordinate_rates, put_force_of_kind
from liedyn.model.packed_records import dof_count, first_dof, first_q, kind, link_count, q_count


@kernel_in_place
def coordinate_rates(model, q, v, q_dot):
    """q_dot (nq): the plain time derivative of every number in q."""
    for i in range(link_count(model)):
        put_coordinate_rates(model, i, q, v, q_dot)


@kernel_in_place
def unit_quaternions(model, q):
    """Scales every quaternion in q to unit length."""
    for i in range(link_count(model)):
        if q_count(model, i) > dof_count(model, i):
            k = first_q(model, i)
            size = (q[k] ** 2 + q[k + 1] ** 2 + q[k + 2] ** 2 + q[k + 3] ** 2) ** 0.5
            for c in range(k, k + 4):
                q[c] /= size


@inline
def twist_back(model, i, u):
    """The twist of joint i for velocities -u."""
    return neg6(joint_twist(SCALAR, model, i, u))


@inline
def put_transformed(model, i, J, v, out):
    """out = J v for joint i, where J maps its twists by the matrix [A 0; Q A]."""
    (A, Q), (w, linear) = J, joint_twist(SCALAR, model, i, v)
    put_force_of_kind(SCALAR, kind(model, i), model, i, (rotate(A, w), add(rotate(Q, w), rotate(A, linear))), out)


@kernel_in_place
def local_rates(model, u, v, u_dot):
    """u_dot = J_r^-1(u) v joint by joint; u_dot may be v itself. Regular for rotations below 2 pi."""
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            u_dot[first_dof(model, i)] = v[first_dof(model, i)]
        else:
            put_transformed(model, i, left_jacobian_inverse(twist_back(model, i, u)), v, u_dot)


@kernel_in_place
def body_rates(model, u, u_dot, v):
    """v = J_r(u) u_dot joint by joint, the inverse of `local_rates`; v may be u_dot itself."""
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            v[first_dof(model, i)] = u_dot[first_dof(model, i)]
        else:
            put_transformed(model, i, left_jacobian(twist_back(model, i, u)), u_dot, v)


@kernel_in_place
def largest_turn(model, u):
    """The square of the largest rotation angle among the ball and free joints of local coordinates u."""
    largest = 0.0
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            w = joint_twist(SCALAR, model, i, u)[0]
            largest = max(largest, dot(w, w))
    return largest
