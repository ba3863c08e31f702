"""The five primitive joints: pose, screws, generalised force, coordinates, spring. Other joints are chains of them.

The motion of a joint is f = M exp(S q): fixed placement, then a screw of the child's own frame. S is constant in that
frame, so recursions need no derivative of S. Revolute, prismatic and helical joints move about and along z.

All compiled code that depends on kinds of joints is here, apart from short cuts for revolute ones and free bases; the
Python side is in `liedyn.model.kinds`. A primitive of one degree of freedom has a coordinate that adds up, and a spring
that is linear in it; those of several are groups with a quaternion.
"""
from liedyn.lie.algebra import (
    about_z, add, cross, dot, quaternion_rotation, rotate, rotate_rotation, scale, sub, unrotate,
)
from liedyn.lie.exponential import (
    coefficient_d, exp, hat, log_rotated, polynomial, polynomial_times, quaternion_exp, quaternion_inverse_product,
    quaternion_log, quaternion_product, quaternion_unit, rate_d,
)
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import SCALAR, load, splat, store
from liedyn.machine.simd.sines import sincos, sines_size
from liedyn.model.kinds import FREE, HELICAL, PRISMATIC, REVOLUTE, SPHERICAL
from liedyn.model.packed_records import (
    accumulate3, damping, dof_count, dof_total, first_dof, first_q, get3, kind, link_count, pitch, placement, put3,
    q_total, rest, stiffness, zero3,
)


# If a function has an argument for the kind of a joint besides its number, the kind may be known at compile time:
# entries that are zero for that kind then cost nothing. `joint_pose(lane, model, i, q)` looks it up.


@inline
def by_kind(function, lane, model, i, *arguments):
    """function(lane, joint, model, i, ...), compiled separately for the usual kind, whose zeros then cost nothing."""
    if kind(model, i) == REVOLUTE:
        return function(lane, REVOLUTE, model, i, *arguments)
    return function(lane, kind(model, i), model, i, *arguments)


@inline
def dofs_of_kind(joint):
    return 3 if joint == SPHERICAL else (6 if joint == FREE else 1)


@inline
def pose_of_kind(lane, joint, model, i, q, s, c):
    """f = M exp(S q): the pose of link i in its parent; s and c are sine and cosine of its coordinate, if an angle."""
    return moved(lane, joint, placement(lane, model, i), model, i, q, s, c)


@inline
def moved(lane, joint, M, model, i, q, s, c):
    """M exp(S q), for the placement M of joint i relative to any frame."""
    R, p = M
    k = first_q(model, i)
    if joint == REVOLUTE:
        return about_z(R, s, c), p
    if joint == PRISMATIC:
        return R, add(p, scale(load(lane, q, k), (R[2], R[5], R[8])))
    if joint == HELICAL:
        return about_z(R, s, c), add(p, scale(pitch(model, i) * load(lane, q, k), (R[2], R[5], R[8])))
    turned = rotate_rotation(R, quaternion_rotation(*get_quaternion(lane, model, i, q)))
    if joint == FREE:
        p = add(p, rotate(R, get3(lane, q, k + 4)))
    return turned, p


@inline
def pose_by_sines(lane, joint, model, i, q, work, at):
    """f of link i, from the sines written by `put_sines` to work[at:] for all coordinates."""
    return moved_by_sines(lane, joint, placement(lane, model, i), model, i, q, work, at)


@inline
def moved_by_sines(lane, joint, M, model, i, q, work, at):
    """`moved`, from the sines written by `put_sines`."""
    k, s, c = at + first_q(model, i), splat(lane, 0.0), splat(lane, 1.0)
    if joint == REVOLUTE or joint == HELICAL:
        s, c = load(lane, work, k), load(lane, work, k + sines_size(q_total(model)) // 2)
    return moved(lane, joint, M, model, i, q, s, c)


@inline
def joint_pose(lane, model, i, q):
    """f of link i, computing its sine."""
    s, c = sincos(load(lane, q, first_q(model, i)))
    return pose_of_kind(lane, kind(model, i), model, i, q, s, c)


@inline
def twist_of_kind(lane, joint, model, i, v):
    """S v, the twist of link i relative to its parent, in the link's frame."""
    k = first_dof(model, i)
    zero = splat(lane, 0.0)
    x = load(lane, v, k)
    if joint == REVOLUTE:
        return (zero, zero, x), zero3(lane)
    if joint == PRISMATIC:
        return zero3(lane), (zero, zero, x)
    if joint == HELICAL:
        return (zero, zero, x), (zero, zero, pitch(model, i) * x)
    if joint == SPHERICAL:
        return get3(lane, v, k), zero3(lane)
    return get3(lane, v, k), get3(lane, v, k + 3)


@inline
def joint_twist(lane, model, i, v):
    """S v, the twist of link i relative to its parent, in the link's frame."""
    return twist_of_kind(lane, kind(model, i), model, i, v)


@inline
def screw_of_kind(lane, joint, model, i, d):
    """S_d, one column of the motion subspace of joint i in the link's own frame."""
    zero, one = splat(lane, 0.0), splat(lane, 1.0)
    z = (zero, zero, one)
    if joint == REVOLUTE:
        return z, zero3(lane)
    if joint == PRISMATIC:
        return zero3(lane), z
    if joint == HELICAL:
        return z, (zero, zero, splat(lane, pitch(model, i)))
    k = d % 3
    axis = z if k == 2 else ((zero, one, zero) if k == 1 else (one, zero, zero))
    return (axis, zero3(lane)) if d < 3 else (zero3(lane), axis)


@inline
def screw_of_kind_at(lane, joint, model, i, X, d):
    """Screw d of joint i in world coordinates, for the pose X of its link."""
    R, p = X
    z = (R[2], R[5], R[8])
    if joint == REVOLUTE:
        return z, cross(p, z)
    if joint == PRISMATIC:
        return zero3(lane), z
    if joint == HELICAL:
        return z, add(cross(p, z), scale(pitch(model, i), z))
    k = d % 3
    axis = z if k == 2 else ((R[1], R[4], R[7]) if k == 1 else (R[0], R[3], R[6]))
    return (axis, cross(p, axis)) if d < 3 else (zero3(lane), axis)


@inline
def put_force_of_kind(lane, joint, model, i, F, tau):
    """tau = S^T F, for the wrench F transmitted by joint i, in the link's frame."""
    k = first_dof(model, i)
    if joint == REVOLUTE:
        store(lane, tau, k, F[0][2])
    elif joint == PRISMATIC:
        store(lane, tau, k, F[1][2])
    elif joint == HELICAL:
        store(lane, tau, k, F[0][2] + pitch(model, i) * F[1][2])
    else:
        put3(lane, tau, k, F[0])
        if joint == FREE:
            put3(lane, tau, k + 3, F[1])


# ---- coordinates and the group elements that they represent


@inline
def get_quaternion(lane, model, i, q):
    k = first_q(model, i)
    return load(lane, q, k), load(lane, q, k + 1), load(lane, q, k + 2), load(lane, q, k + 3)


@inline
def move_joint(model, i, q, dv, q_new):
    """Coordinates q_new = q (+) dv of joint i; q_new may be q itself. Quaternions are normalised."""
    k, j = first_q(model, i), first_dof(model, i)
    if dof_count(model, i) == 1:
        q_new[k] = q[k] + dv[j]
        return
    quaternion, w = get_quaternion(SCALAR, model, i, q), get3(SCALAR, dv, j)
    if kind(model, i) == FREE:
        step = exp((w, get3(SCALAR, dv, j + 3)))[1]
        put3(SCALAR, q_new, k + 4, add(get3(SCALAR, q, k + 4), rotate(quaternion_rotation(*quaternion), step)))
    turned = quaternion_unit(quaternion_product(quaternion, quaternion_exp(w)))
    q_new[k], q_new[k + 1], q_new[k + 2], q_new[k + 3] = turned


@inline
def joint_difference(model, i, q0, q1, dv):
    """The dv of joint i with q0 (+) dv = q1, along the shorter way."""
    k, j = first_q(model, i), first_dof(model, i)
    if dof_count(model, i) == 1:
        dv[j] = q1[k] - q0[k]
        return
    start = get_quaternion(SCALAR, model, i, q0)
    w = quaternion_log(*quaternion_inverse_product(start, get_quaternion(SCALAR, model, i, q1)))
    put3(SCALAR, dv, j, w)
    if kind(model, i) == FREE:
        step = unrotate(quaternion_rotation(*start), sub(get3(SCALAR, q1, k + 4), get3(SCALAR, q0, k + 4)))
        put3(SCALAR, dv, j + 3, log_rotated(w, step))


@inline
def put_coordinate_rates(model, i, q, v, q_dot):
    """The time derivative of each number of joint i in q: v, or for a quaternion Q, Q (w, 0) / 2."""
    k, j = first_q(model, i), first_dof(model, i)
    if dof_count(model, i) == 1:
        q_dot[k] = v[j]
        return
    x, y, z, s = quaternion = get_quaternion(SCALAR, model, i, q)
    wx, wy, wz = 0.5 * v[j], 0.5 * v[j + 1], 0.5 * v[j + 2]
    q_dot[k] = s * wx + y * wz - z * wy
    q_dot[k + 1] = s * wy + z * wx - x * wz
    q_dot[k + 2] = s * wz + x * wy - y * wx
    q_dot[k + 3] = -x * wx - y * wy - z * wz
    if kind(model, i) == FREE:
        put3(SCALAR, q_dot, k + 4, rotate(quaternion_rotation(*quaternion), get3(SCALAR, v, j + 3)))


# ---- springs and dampers: tau_joint = -damping v - dV/dq


@inline
def spring_rotation(lane, model, i, q):
    """phi = log(rest^-1 q) of a spherical or free joint, a rotation vector in the child's frame."""
    k = first_q(model, i)
    at_rest = rest(model, k), rest(model, k + 1), rest(model, k + 2), rest(model, k + 3)
    return quaternion_log(*quaternion_inverse_product(at_rest, get_quaternion(lane, model, i, q)))


@inline
def spring_shift(lane, model, i, q):
    """R^T (p - p_rest) of a free joint: the displacement of its linear spring in the child's frame."""
    k = first_q(model, i)
    R = quaternion_rotation(*get_quaternion(lane, model, i, q))
    at_rest = rest(model, k + 4), rest(model, k + 5), rest(model, k + 6)
    return unrotate(R, sub(get3(lane, q, k + 4), at_rest))


@inline
def spring_energy(lane, model, i, q):
    """V = k |log(rest^-1 q)|^2 / 2 of joint i."""
    j = first_dof(model, i)
    k = stiffness(model, j)
    if dof_count(model, i) == 1:
        x = load(lane, q, first_q(model, i)) - rest(model, first_q(model, i))
        return 0.5 * k * x * x
    phi = spring_rotation(lane, model, i, q)
    energy = 0.5 * k * dot(phi, phi)
    if kind(model, i) == FREE:
        shift = spring_shift(lane, model, i, q)
        energy = energy + 0.5 * stiffness(model, j + 3) * dot(shift, shift)
    return energy


@inline
def accumulate_springs_of_kind(lane, joint, model, i, q, v, sign, tau):
    """tau += sign (damping v + dV/dq): minus the force of spring and damper of joint i, times sign."""
    j = first_dof(model, i)
    for d in range(j, j + dofs_of_kind(joint)):
        store(lane, tau, d, load(lane, tau, d) + sign * damping(model, d) * load(lane, v, d))
    if dofs_of_kind(joint) == 1:
        k = first_q(model, i)
        stretch = load(lane, q, k) - rest(model, k)
        store(lane, tau, j, load(lane, tau, j) + sign * stiffness(model, j) * stretch)
    elif stiffness(model, j) != 0.0:
        # dV/dq in the tangent space at q is k phi itself: an isotropic torsion spring pulls along its own axis
        phi = spring_rotation(lane, model, i, q)
        accumulate3(lane, tau, j, scale(sign * stiffness(model, j), phi))
    if joint == FREE and stiffness(model, j + 3) != 0.0:
        shift = spring_shift(lane, model, i, q)
        accumulate3(lane, tau, j + 3, scale(sign * stiffness(model, j + 3), shift))


@inline
def accumulate_springs(lane, model, i, q, v, sign, tau):
    """tau += sign (damping v + dV/dq): minus the force of spring and damper of joint i, times sign."""
    accumulate_springs_of_kind(lane, kind(model, i), model, i, q, v, sign, tau)


@inline
def accumulate_spring_derivatives(lane, model, i, q, X, at, columns):
    """X += the derivative of dV/dq of joint i, tangent at q: k J_r^-1(phi), for free joints also k (1, [shift]).

    Its first entry is number `at` of X, whose rows have `columns` entries.
    """
    j = first_dof(model, i)
    k = stiffness(model, j)
    if dof_count(model, i) == 1:
        store(lane, X, at, load(lane, X, at) + k)
    elif k != 0.0:
        phi = spring_rotation(lane, model, i, q)
        J = polynomial(phi, 0.5, coefficient_d(dot(phi, phi)))  # J_r^-1(phi) = 1 + [phi]/2 + d [phi]^2, row by row
        accumulate3(lane, X, at, scale(k, J[:3]))
        accumulate3(lane, X, at + columns, scale(k, J[3:6]))
        accumulate3(lane, X, at + 2 * columns, scale(k, J[6:]))
    if kind(model, i) == FREE and stiffness(model, j + 3) != 0.0:
        # the shift s = R^T (p - p_rest) changes by s x w + v
        k = stiffness(model, j + 3)
        S = hat(scale(k, spring_shift(lane, model, i, q)))
        accumulate3(lane, X, at + 3 * columns, S[:3])
        accumulate3(lane, X, at + 4 * columns, S[3:6])
        accumulate3(lane, X, at + 5 * columns, S[6:])
        for d in range(at + 3 * columns + 3, at + 6 * columns + 3, columns + 1):
            store(lane, X, d, load(lane, X, d) + k)


@inline
def has_rotation_spring(model, i):
    """True if joint i, of several degrees of freedom, has a spring."""
    j = first_dof(model, i)
    return stiffness(model, j) != 0.0 or (kind(model, i) == FREE and stiffness(model, j + 3) != 0.0)


@inline
def spring_variation(lane, model, i, q, d):
    """The variation of dV/dq of such a joint along d: k J_r^-1(phi) d, k (shift x angular + linear)."""
    k, phi = stiffness(model, first_dof(model, i)), spring_rotation(lane, model, i, q)
    w, u = d
    turned = cross(phi, w)
    moment = scale(k, add(add(w, scale(0.5, turned)), scale(coefficient_d(dot(phi, phi)), cross(phi, turned))))
    force = scale(0.0, u)
    if kind(model, i) == FREE:
        shift = spring_shift(lane, model, i, q)
        force = scale(stiffness(model, first_dof(model, i) + 3), add(cross(shift, w), u))
    return moment, force


@inline
def spring_curvature(lane, model, i, q, d, e):
    """The second variation of dV/dq of such a joint along d and e, in the exponential's chart at q: symmetric.

    On the way q exp(d t) phi changes by J d, J = J_r^-1(phi), and so its second derivative is dJ(J d) d; the shift
    changes by shift x angular + linear, once and again. Between d and e is the mean of both orders.
    """
    k, phi = stiffness(model, first_dof(model, i)), spring_rotation(lane, model, i, q)
    square = dot(phi, phi)
    c = coefficient_d(square)
    once = add(_rate_of_inverse(phi, c, rate_d(square, c), polynomial_times(phi, 0.5, c, d[0]), e[0]),
               _rate_of_inverse(phi, c, rate_d(square, c), polynomial_times(phi, 0.5, c, e[0]), d[0]))
    moment, force = scale(0.5 * k, once), scale(0.0, d[1])
    if kind(model, i) == FREE:
        shift = spring_shift(lane, model, i, q)
        twice = add(cross(add(cross(shift, d[0]), d[1]), e[0]), cross(add(cross(shift, e[0]), e[1]), d[0]))
        force = scale(0.5 * stiffness(model, first_dof(model, i) + 3), twice)
    return moment, force


@inline
def _rate_of_inverse(phi, c, c_rate, x, y):
    """dJ_r^-1 y for a change x of phi: J_r^-1 = 1 + [phi]/2 + c [phi]^2, and c changes by c' phi . x."""
    turned = cross(phi, y)
    both = add(scale(c, add(cross(x, turned), cross(phi, cross(x, y)))),
               scale(c_rate * dot(phi, x), cross(phi, turned)))
    return add(scale(0.5, cross(x, y)), both)


@inline
def accumulate_joint_derivatives(lane, model, q, dtau_dq, dtau_dv):
    """Add the derivatives of springs and dampers of all joints."""
    for j in range(dof_total(model)):
        k = (dof_total(model) + 1) * j
        if damping(model, j) != 0.0:
            store(lane, dtau_dv, k, load(lane, dtau_dv, k) + damping(model, j))
    for i in range(link_count(model)):
        accumulate_spring_derivatives(
            lane, model, i, q, dtau_dq, (dof_total(model) + 1) * first_dof(model, i), dof_total(model))
