"""Derivatives of the inverse right Jacobians: first derivatives of J_r^-1(u) r by u, second derivatives of c .
J_r^-1(u) r.

On so(3), with y = w x r, z = w x y and the function d of `liedyn.lie.exponential`,

    J_r^-1(w) r = r + y / 2 + d z
    slope       -[r] / 2 + d' z w^T + d K            K = w r^T - 2 r w^T + (w . r) 1
    curvature   d (c r^T + r c^T - 2 (c . r) 1) + d' (w m^T + m w^T + (c . z) 1) + d'' (c . z) w w^T      m = K^T c

where f' = (df/dtheta) / theta. On se(3) the same holds over dual numbers, w + e v with e^2 = 0: second parts are
derivatives of the first ones along (v, s), s the linear part of r. So only the series of d is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.lie import exponential
from liedyn.lie.algebra import Ad, add, cross, dot, minus_ad_dual, neg, neg6, rotate, scale, unrotate
from liedyn.lie.arrays import TWIST, VECTOR, lie_function, matrix3, matrix6, twist, vector
from liedyn.machine.compiled.jit import inline, inline_array

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike

THIRD_RATE = exponential._rate(exponential._D_SECOND_RATE)
"""The series of d''', for theta below one radian."""
ZERO3 = 0.0, 0.0, 0.0


@inline
def rates_of_d(square):
    """d, d', d'' and d''' at theta^2 = `square`; floats only.

    Above one radian they follow from theta^2 d' = theta^2 d^2 + 1/4 - 3 d and its derivatives.
    """
    d = exponential.coefficient_d(square)
    first = exponential.rate_d(square, d)
    second = exponential.second_rate_d(square, d, first)
    if square < 1.0:
        third = 0.0
        for x in THIRD_RATE:
            third = third * square + x
    else:
        third = ((8.0 * d + 2.0 * square * first) * first + (2.0 * square * d - 7.0) * second) / square
    return d, first, second, third


@inline
def plus(A, B):
    """A + B of row-major matrices."""
    return (A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5],
            A[6] + B[6], A[7] + B[7], A[8] + B[8])


@inline
def times(k, A):
    """k A."""
    return (k * A[0], k * A[1], k * A[2], k * A[3], k * A[4], k * A[5], k * A[6], k * A[7], k * A[8])


@inline
def outer(a, b):
    """a b^T."""
    return (a[0] * b[0], a[0] * b[1], a[0] * b[2], a[1] * b[0], a[1] * b[1], a[1] * b[2],
            a[2] * b[0], a[2] * b[1], a[2] * b[2])


@inline
def diagonal(k):
    """k 1."""
    return (k, 0.0, 0.0, 0.0, k, 0.0, 0.0, 0.0, k)


@inline
def both(a, b):
    """a b^T + b a^T."""
    return plus(outer(a, b), outer(b, a))


@inline
def bracketed(w, r):
    """K = w r^T - 2 r w^T + (w . r) 1, the derivative of w x (w x r) by w."""
    return plus(plus(outer(w, r), outer(scale(-2.0, r), w)), diagonal(dot(w, r)))


@inline
def unbracketed(w, r, c):
    """K^T c."""
    return add(add(scale(dot(w, c), r), scale(-2.0 * dot(r, c), w)), scale(dot(w, r), c))


@inline
def inverse_slope(U, R):
    """Blocks (A, Q) of d(J_r^-1(U) R)/dU = [[A, 0], [Q, A]]: A is the slope of SO(3), Q its derivative along (v, s)."""
    (w, v), (r, s) = U, R
    d, d1, d2, _ = rates_of_d(dot(w, w))
    along, y = dot(w, v), cross(w, r)
    z, dz = cross(w, y), add(cross(v, y), cross(w, add(cross(v, r), cross(w, s))))
    K, dK = bracketed(w, r), plus(bracketed(v, r), bracketed(w, s))
    A = plus(times(-0.5, exponential.hat(r)), plus(times(d1, outer(z, w)), times(d, K)))
    Q = plus(times(-0.5, exponential.hat(s)), plus(times(d1 * along, K), times(d, dK)))
    return A, plus(Q, plus(outer(add(scale(d2 * along, z), scale(d1, dz)), w), times(d1, outer(z, v))))


@inline
def inverse_curvature(U, R, c):
    """The second derivatives A of c . J_r^-1(w) r by w, for SO(3), and their derivative Q along (v, s)."""
    (w, v), (r, s) = U, R
    d, d1, d2, d3 = rates_of_d(dot(w, w))
    along, y = dot(w, v), cross(w, r)
    z, dz = cross(w, y), add(cross(v, y), cross(w, add(cross(v, r), cross(w, s))))
    cz, c_dz, m = dot(c, z), dot(c, dz), unbracketed(w, r, c)
    dm = add(unbracketed(v, r, c), unbracketed(w, s, c))
    C, dC = plus(both(c, r), diagonal(-2.0 * dot(c, r))), plus(both(c, s), diagonal(-2.0 * dot(c, s)))
    D, dD = plus(both(w, m), diagonal(cz)), plus(plus(both(v, m), both(w, dm)), diagonal(c_dz))
    A = plus(plus(times(d, C), times(d1, D)), times(d2 * cz, outer(w, w)))
    Q = plus(plus(times(d1 * along, C), times(d, dC)), plus(times(d2 * along, D), times(d1, dD)))
    return A, plus(Q, plus(times(d3 * along * cz + d2 * c_dz, outer(w, w)), times(d2 * cz, both(w, v))))


@inline
def carry_rows(count, u, k, Z, D):
    """Z = Ad_{exp -u} Z + dexp_{-u} D in the rows of one ball (count 3) or free joint (6), from row k on.

    Columns Z displace where a motion u begins, columns D vary u: both displace where it ends, and as seen from there.
    """
    if count == 3:
        w = neg((u[k], u[k + 1], u[k + 2]))
        R, J = exponential.so3_exp(w), exponential.so3_left_jacobian(w)
        for j in range(Z.shape[1]):
            a = rotate(R, (Z[k, j], Z[k + 1, j], Z[k + 2, j]))
            b = rotate(J, (D[k, j], D[k + 1, j], D[k + 2, j]))
            for i in range(3):
                Z[k + i, j] = a[i] + b[i]
        return
    V = neg6(((u[k], u[k + 1], u[k + 2]), (u[k + 3], u[k + 4], u[k + 5])))
    X, (J, C) = exponential.exp(V), exponential.left_jacobian(V)
    for j in range(Z.shape[1]):
        a = Ad(X, ((Z[k, j], Z[k + 1, j], Z[k + 2, j]), (Z[k + 3, j], Z[k + 4, j], Z[k + 5, j])))
        w, v = (D[k, j], D[k + 1, j], D[k + 2, j]), (D[k + 3, j], D[k + 4, j], D[k + 5, j])
        Jw, Jv, Cw = rotate(J, w), rotate(J, v), rotate(C, w)
        for i in range(3):
            Z[k + i, j] = a[0][i] + Jw[i]
            Z[k + 3 + i, j] = a[1][i] + Jv[i] + Cw[i]


@inline
def pull_back(count, u, k, f):
    """f = dexp_{-u}^T f in the entries of one ball or free joint: by changes of where a motion ends becomes by u."""
    if count == 3:
        J = exponential.so3_left_jacobian(neg((u[k], u[k + 1], u[k + 2])))
        f[k], f[k + 1], f[k + 2] = unrotate(J, (f[k], f[k + 1], f[k + 2]))
        return
    J, C = exponential.left_jacobian(neg6(((u[k], u[k + 1], u[k + 2]), (u[k + 3], u[k + 4], u[k + 5]))))
    m, f_v = (f[k], f[k + 1], f[k + 2]), (f[k + 3], f[k + 4], f[k + 5])
    f[k], f[k + 1], f[k + 2] = add(unrotate(J, m), unrotate(C, f_v))
    f[k + 3], f[k + 4], f[k + 5] = unrotate(J, f_v)


@inline
def entries_of(count, A, k, j):
    """The twist in column j of A, from row k on; of a ball its rotation."""
    if count == 3:
        return (A[k, j], A[k + 1, j], A[k + 2, j]), ZERO3
    return (A[k, j], A[k + 1, j], A[k + 2, j]), (A[k + 3, j], A[k + 4, j], A[k + 5, j])


@inline
def put_carried_slopes(count, u, k, on, back, T, on_start, on_u):
    """What the rows T = dexp_{-u} D of one joint contribute to the second derivative of `carry_rows`.

    Where a motion ends, exp(a) exp(T) is a + T + ad_a T / 2 in the exponential's chart, and T is bent as dexp_{-u} is:
    on . (second variation along i and j) = a_i . on_start_j + D_i . on_u_j, made symmetric, with a = Ad_{exp -u} Z,
    `on` the weights of its entries and back = dexp_{-u}^T on.
    """
    far = (u[k], u[k + 1], u[k + 2]), ZERO3
    m, c = ((on[k], on[k + 1], on[k + 2]), ZERO3), ((back[k], back[k + 1], back[k + 2]), ZERO3)
    if count > 3:
        far, m = (far[0], (u[k + 3], u[k + 4], u[k + 5])), (m[0], (on[k + 3], on[k + 4], on[k + 5]))
        c = c[0], (back[k + 3], back[k + 4], back[k + 5])
    for j in range(T.shape[1]):
        theta = entries_of(count, T, k, j)
        by_start, (A, Q) = minus_ad_dual(theta, m), inverse_slope(far, theta)
        by_u = neg(add(unrotate(A, c[0]), unrotate(Q, c[1]))), neg(unrotate(A, c[1]))
        for i in range(3):
            on_start[k + i, j], on_u[k + i, j] = by_start[0][i], by_u[0][i]
            if count > 3:
                on_start[k + 3 + i, j], on_u[k + 3 + i, j] = by_start[1][i], by_u[1][i]


@inline_array
def symmetric6(A, B):
    """[[A, B], [B, 0]]."""
    x = np.zeros((6, 6))
    for i in range(3):
        for j in range(3):
            x[i, j] = A[3 * i + j]
            x[3 + i, j] = x[i, 3 + j] = B[3 * i + j]
    return x


@lie_function(VECTOR, VECTOR, returns=(3, 3))
def so3_right_jacobian_inverse_slope(w: ArrayLike, r: ArrayLike) -> Array:
    """Derivative of ``so3_right_jacobian_inverse(w) @ r`` by w.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad]; singular where ``|w|`` is 2 pi, 4 pi, ...
    r : array_like, shape (..., 3)
        Angular velocity in the turned axes [rad/s], constant.

    Returns
    -------
    ndarray, shape (..., 3, 3)
        Derivative of the rate of w by w.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    The derivative of ``r + [w] r / 2 + (1 - (t/2) cot(t/2))/t^2 [w]^2 r`` with ``t = |w|`` (Chirikjian 2011,
    eq. 10.86).

    Examples
    --------
    >>> so3_right_jacobian_inverse_slope([0.0, 0.0, 0.0], [2.0, 0.0, 0.0])
    array([[ 0.,  0.,  0.],
           [ 0.,  0.,  1.],
           [ 0., -1.,  0.]])
    """
    return matrix3(inverse_slope((vector(w), ZERO3), (vector(r), ZERO3))[0])


@lie_function(TWIST, TWIST, returns=(6, 6))
def right_jacobian_inverse_slope(V: ArrayLike, r: ArrayLike) -> Array:
    """Derivative of ``right_jacobian_inverse(V) @ r`` by V.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m]; singular where ``|omega|`` is 2 pi, 4 pi, ...
    r : array_like, shape (..., 6)
        Body-fixed twist [rad/s, m/s], constant.

    Returns
    -------
    ndarray, shape (..., 6, 6)
        Derivative of the rate of the logarithm by the logarithm.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    The derivative for SO(3), evaluated with dual numbers (Spencer 2004, A.1.3).

    Examples
    --------
    >>> import numpy as np
    >>> from liedyn.lie import ad
    >>> r = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    >>> bool(abs(right_jacobian_inverse_slope(np.zeros(6), r) + 0.5 * ad(r)).max() < 1e-15)
    True
    """
    return matrix6(*inverse_slope(twist(V), twist(r)))


@lie_function(VECTOR, VECTOR, VECTOR, returns=(3, 3))
def so3_right_jacobian_inverse_curvature(w: ArrayLike, r: ArrayLike, c: ArrayLike) -> Array:
    """Second derivatives of ``c @ so3_right_jacobian_inverse(w) @ r`` by w.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad]; singular where ``|w|`` is 2 pi, 4 pi, ...
    r : array_like, shape (..., 3)
        Angular velocity in the turned axes [rad/s], constant.
    c : array_like, shape (..., 3)
        Weights of the rates of w.

    Returns
    -------
    ndarray, shape (..., 3, 3)
        The second derivatives, a symmetric matrix.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Examples
    --------
    >>> so3_right_jacobian_inverse_curvature([0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, 0.0, 0.0]).round(12)
    array([[ 0. ,  0. ,  0. ],
           [ 0. , -1.5,  0. ],
           [ 0. ,  0. , -1.5]])
    """
    return matrix3(inverse_curvature((vector(w), ZERO3), (vector(r), ZERO3), vector(c))[0])


@lie_function(TWIST, TWIST, TWIST, returns=(6, 6))
def right_jacobian_inverse_curvature(V: ArrayLike, r: ArrayLike, c: ArrayLike) -> Array:
    """Second derivatives of ``c @ right_jacobian_inverse(V) @ r`` by V.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m]; singular where ``|omega|`` is 2 pi, 4 pi, ...
    r : array_like, shape (..., 6)
        Body-fixed twist [rad/s, m/s], constant.
    c : array_like, shape (..., 6)
        Weights of the rates of V.

    Returns
    -------
    ndarray, shape (..., 6, 6)
        The second derivatives, a symmetric matrix.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> H = right_jacobian_inverse_curvature(np.zeros(6), [3.0, 0, 0, 0, 0, 0], [3.0, 0, 0, 0, 0, 0])
    >>> H.diagonal().round(12)
    array([ 0. , -1.5, -1.5,  0. ,  0. ,  0. ])
    """
    moment, force = twist(c)
    A = inverse_curvature(twist(V), twist(r), moment)[0]
    B, Q = inverse_curvature(twist(V), twist(r), force)
    return symmetric6(plus(A, Q), B)
