"""Exponential, logarithm and their Jacobians on tuples, to full precision near zero and near half a turn.

With theta = |w|, every map of SO(3) here has the form 1 + f [w] + g [w]^2, where f and g are (Spencer 2004, A.1.3)

    a = sin(theta) / theta               b = (1 - cos(theta)) / theta^2
    c = (theta - sin(theta)) / theta^3   d = (1 - (theta / 2) cot(theta / 2)) / theta^2

The adjoint map of SE(3) is that of SO(3) over dual numbers: ad_V is [w] + e [v] with e^2 = 0. So the 6x6 Jacobians are
pairs of blocks (A, Q), meaning [[A, 0], [Q, A]]: A is the Jacobian of SO(3) at w and Q its derivative along v, for
which f' = (df/dtheta) / theta is needed. All functions work on floats and on SIMD lanes, except the logarithms of
matrices.
"""
import math


from liedyn.lie.algebra import add, cross, dot, neg, rotate_rotation, scale, unrotate
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import atan2, lanewise, sqrt
from liedyn.machine.simd.sines import sincos
from liedyn.machine.typed_decorators import intrinsic

_TINY = 1e-300  # avoids 0/0; far below every square that matters

# Power series in theta^2, highest power first; at theta = 1, where the closed forms take over, they have full
# precision.
_B = tuple((-1) ** k / math.factorial(2 * k + 2) for k in range(9, -1, -1))
_C = tuple((-1) ** k / math.factorial(2 * k + 3) for k in range(9, -1, -1))
_D = tuple(n / m for n, m in (  # |B_2k| / (2k)!, Bernoulli numbers
    (77683, 14101100039391805440000), (174611, 802857662698291200000), (43867, 5109094217170944000),
    (3617, 10670622842880000), (1, 74724249600), (691, 1307674368000), (1, 47900160), (1, 1209600), (1, 30240),
    (1, 720), (1, 12)))


def _rate(series):
    """The series of f' = (df/dtheta) / theta, which is twice the derivative by theta^2."""
    return tuple(2 * (len(series) - 1 - k) * x for k, x in enumerate(series[:-1]))


_B_RATE, _C_RATE, _D_RATE = _rate(_B), _rate(_C), _rate(_D)
_D_SECOND_RATE = _rate(_D_RATE)


@inline
def _sum(series, x):
    y = 0.0 * x
    for coefficient in series:
        y = y * x + coefficient
    return y


def _choose(theta2, series, closed):
    return series if theta2 < 1.0 else closed


@intrinsic
def _near_zero(typing, theta2, series, closed):
    """The series for theta < 1, else the closed form; float or lanes."""
    return lanewise(_choose, theta2, series, closed)


# ---- the functions of theta


@inline
def half_angle(theta2):
    """sin(theta/2) / theta and cos(theta/2)."""
    theta = sqrt(theta2 + _TINY)
    s, c = sincos(0.5 * theta)
    return s / theta, c


@inline
def coefficients_ab(theta2):
    s, c = half_angle(theta2)
    return 2.0 * s * c, 2.0 * s * s


@inline
def coefficient_c(theta2, a):
    return _near_zero(theta2, _sum(_C, theta2), (1.0 - a) / (theta2 + _TINY))


@inline
def coefficient_d(theta2):
    a, b = coefficients_ab(theta2)
    return _near_zero(theta2, _sum(_D, theta2), (1.0 - 0.5 * a / b) / (theta2 + _TINY))


@inline
def rates_bc(theta2, a, b, c):
    """b' and c', with f' = (df/dtheta) / theta."""
    return (_near_zero(theta2, _sum(_B_RATE, theta2), (a - 2.0 * b) / (theta2 + _TINY)),
            _near_zero(theta2, _sum(_C_RATE, theta2), (b - 3.0 * c) / (theta2 + _TINY)))


@inline
def rate_d(theta2, d):
    b = coefficients_ab(theta2)[1]
    closed = ((0.5 / b - 1.0) / (theta2 + _TINY) - d) / (theta2 + _TINY)
    return _near_zero(theta2, _sum(_D_RATE, theta2), closed)


@inline
def second_rate_d(theta2, d, d_rate):
    """(dd'/dtheta) / theta, from 2 theta^2 dd/dtheta^2 = theta^2 d^2 + 1/4 - 3 d, differentiated once more."""
    closed = (2.0 * d * d + (2.0 * theta2 * d - 5.0) * d_rate) / (theta2 + _TINY)
    return _near_zero(theta2, _sum(_D_SECOND_RATE, theta2), closed)


# ---- maps of the form 1 + f [w] + g [w]^2


@inline
def hat(w):
    """[w], row by row: [w] x = w x x."""
    zero = w[0] - w[0]
    return (zero, zero - w[2], w[1], w[2], zero, zero - w[0], zero - w[1], w[0], zero)


@inline
def vee(W):
    """The w of [w]; a symmetric part is ignored."""
    return (0.5 * (W[7] - W[5]), 0.5 * (W[2] - W[6]), 0.5 * (W[3] - W[1]))


@inline
def polynomial(w, f, g):
    """1 + f [w] + g [w]^2."""
    x, y, z = w
    return (1.0 - g * (y * y + z * z), g * x * y - f * z, g * x * z + f * y,
            g * x * y + f * z, 1.0 - g * (x * x + z * z), g * y * z - f * x,
            g * x * z - f * y, g * y * z + f * x, 1.0 - g * (x * x + y * y))


@inline
def polynomial_times(w, f, g, x):
    """(1 + f [w] + g [w]^2) x."""
    wx = cross(w, x)
    return add(x, cross(w, add(scale(f, x), scale(g, wx))))


@inline
def polynomial_rate(w, v, f, g, df, dg):
    """d/de of 1 + f [w] + g [w]^2 at w + e v, for the rates f' = df and g' = dg."""
    s = dot(w, v)
    x, y, z = w
    # skew part f [v] + s f' [w]; symmetric part g ([w][v] + [v][w]) + s g' [w]^2
    k = add(scale(f, v), scale(s * df, w))
    h = s * dg
    u = add(scale(g, v), scale(0.5 * h, w))  # the symmetric part is w u^T + u w^T - 2 (w.u) 1
    xx, yy, zz = 2.0 * x * u[0], 2.0 * y * u[1], 2.0 * z * u[2]
    xy, xz, yz = x * u[1] + y * u[0], x * u[2] + z * u[0], y * u[2] + z * u[1]
    return (-(yy + zz), xy - k[2], xz + k[1],
            xy + k[2], -(xx + zz), yz - k[0],
            xz - k[1], yz + k[0], -(xx + yy))


# ---- SO(3)


@inline
def so3_exp(w):
    """exp [w] = 1 + a [w] + b [w]^2 (Rodrigues; Spencer A.1.3)."""
    a, b = coefficients_ab(dot(w, w))
    return polynomial(w, a, b)


@inline
def quaternion_exp(w):
    """The quaternion (x, y, z, w) of the rotation exp [w]."""
    s, c = half_angle(dot(w, w))
    return (s * w[0], s * w[1], s * w[2], c)


@inline
def quaternion_log(x, y, z, w):
    """The rotation vector of a quaternion of any length, |log| <= pi, continuous through the identity."""
    # 2 atan(n / w) / n without a branch; the tiny terms avoid 0/0 and decide the sign for w = 0 (half a turn)
    n = sqrt(x * x + y * y + z * z + _TINY)
    size = sqrt(w * w + _TINY)
    k = 2.0 * (w + 1e-150) / size * atan2(n, size) / n
    return (k * x, k * y, k * z)


@inline
def quaternion_product(p, q):
    """p q: the rotation q, followed by p."""
    return (p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1],
            p[3] * q[1] + p[1] * q[3] + p[2] * q[0] - p[0] * q[2],
            p[3] * q[2] + p[2] * q[3] + p[0] * q[1] - p[1] * q[0],
            p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2])


@inline
def quaternion_inverse_product(p, q):
    """p^-1 q, for unit quaternions."""
    return quaternion_product((-p[0], -p[1], -p[2], p[3]), q)


@inline
def quaternion_unit(q):
    """q / |q|."""
    k = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (k * q[0], k * q[1], k * q[2], k * q[3])


@inline
def rotation_quaternion(R):
    """The unit quaternion (x, y, z, w), w >= 0, of a rotation; floats only.

    It divides by the largest component, so that nothing cancels at any angle (Shepperd 1978).
    """
    trace = R[0] + R[4] + R[8]
    largest = max(trace, R[0], R[4], R[8])
    if largest == trace:
        q = (R[7] - R[5], R[2] - R[6], R[3] - R[1], 1.0 + trace)
    elif largest == R[0]:
        q = (1.0 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6], R[7] - R[5])
    elif largest == R[4]:
        q = (R[1] + R[3], 1.0 + R[4] - R[0] - R[8], R[5] + R[7], R[2] - R[6])
    else:
        q = (R[2] + R[6], R[5] + R[7], 1.0 + R[8] - R[0] - R[4], R[3] - R[1])
    if q[3] < 0.0:
        q = (-q[0], -q[1], -q[2], -q[3])
    return quaternion_unit(q)


@inline
def so3_log(R):
    """The rotation vector w of R = exp [w], |w| <= pi; floats only."""
    return quaternion_log(*rotation_quaternion(R))


@inline
def so3_left_jacobian(w):
    """J = 1 + b [w] + c [w]^2 (Chirikjian 2011, eq. 10.86; the A of Spencer A.1.3)."""
    a, b = coefficients_ab(dot(w, w))
    return polynomial(w, b, coefficient_c(dot(w, w), a))


@inline
def so3_left_jacobian_inverse(w):
    """J^-1 = 1 - [w]/2 + d [w]^2 (Chirikjian 2011, eq. 10.86)."""
    return polynomial(w, -0.5, coefficient_d(dot(w, w)))


# ---- SE(3)


@inline
def exp(V):
    """exp V = (exp [w], J(w) v) (Spencer A.1.3)."""
    w, v = V
    theta2 = dot(w, w)
    a, b = coefficients_ab(theta2)
    return polynomial(w, a, b), polynomial_times(w, b, coefficient_c(theta2, a), v)


@inline
def log_rotated(w, p):
    """J^-1(w) p: the v of a pose (exp [w], p)."""
    return polynomial_times(w, -0.5, coefficient_d(dot(w, w)), p)


@inline
def log(X):
    """The twist V of X = exp V, |w| <= pi; floats only."""
    w = so3_log(X[0])
    return w, log_rotated(w, X[1])


@inline
def left_jacobian(V):
    """Blocks (A, Q) of the J with exp(V + dV) = exp(J dV) exp(V) to first order."""
    w, v = V
    theta2 = dot(w, w)
    a, b = coefficients_ab(theta2)
    c = coefficient_c(theta2, a)
    db, dc = rates_bc(theta2, a, b, c)
    return polynomial(w, b, c), polynomial_rate(w, v, b, c, db, dc)


@inline
def left_jacobian_inverse(V):
    """Blocks (A, Q) of the inverse of `left_jacobian`."""
    w, v = V
    theta2 = dot(w, w)
    d = coefficient_d(theta2)
    return polynomial(w, -0.5, d), polynomial_rate(w, v, -0.5, d, 0.0, rate_d(theta2, d))


@inline
def inverse(X):
    """X^-1 = (R^T, -R^T p)."""
    R, p = X
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]), neg(unrotate(R, p))


@inline
def Ad_blocks(X):
    """Blocks (R, [p] R) of the matrix of Ad_X (Spencer A.1.4)."""
    return X[0], rotate_rotation(hat(X[1]), X[0])
