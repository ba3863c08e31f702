"""Rigid motions: SE(3) and its algebra se(3), on (4, 4) poses and (6,) twists (omega, v), angular part first.

Everything takes leading batch axes and works inside ``@njit`` code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie import algebra, exponential
from liedyn.lie.arrays import (
    POSE, TWIST, TWIST_MATRIX, VECTOR, lie_function, matrix4, matrix6, pose, twist, twist_array, vector, vector_array,
)

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


@lie_function(TWIST, returns=(4, 4))
def hat(V: ArrayLike) -> Array:
    """The matrix of a twist, an element of se(3).

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v).

    Returns
    -------
    ndarray, shape (..., 4, 4)
        ``[[[omega], v], [0, 0]]``.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    Spencer 2004, A.1.2.

    Examples
    --------
    >>> hat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    array([[ 0., -3.,  2.,  4.],
           [ 3.,  0., -1.,  5.],
           [-2.,  1.,  0.,  6.],
           [ 0.,  0.,  0.,  0.]])
    """
    w, v = twist(V)
    return matrix4(0.0, exponential.hat(w), v)


@lie_function(TWIST_MATRIX, returns=(6,))
def vee(matrix: ArrayLike) -> Array:
    """The twist of an element of se(3), the inverse of `hat`.

    Parameters
    ----------
    matrix : array_like, shape (..., 4, 4)

    Returns
    -------
    V : ndarray, shape (..., 6)
        Twist (omega, v).

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not of the form ``[[[omega], v], [0, 0]]``.

    Notes
    -----
    Spencer 2004, A.1.2. Compiled code checks no numbers.

    Examples
    --------
    >>> vee(hat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    array([1., 2., 3., 4., 5., 6.])
    """
    W, v = pose(matrix)
    return twist_array((exponential.vee(W), v))


@lie_function(TWIST, returns=(4, 4))
def exp(V: ArrayLike) -> Array:
    """Pose reached by moving with the constant twist V for a unit of time.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m].

    Returns
    -------
    T : ndarray, shape (..., 4, 4)

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``(exp [omega], A v)`` with A the left Jacobian of SO(3) (Spencer 2004, A.1.3, where the last denominator should be
    ``|w|^3``). Full precision at every angle, zero included.

    Examples
    --------
    >>> import numpy as np
    >>> exp([0.0, 0.0, np.pi, 0.0, 1.0, 0.0]).round(3)[:, 3] + 0.0
    array([-0.637,  0.   ,  0.   ,  1.   ])
    """
    return matrix4(1.0, *exponential.exp(twist(V)))


@lie_function(POSE, returns=(6,))
def log(T: ArrayLike) -> Array:
    """Twist that reaches a pose in a unit of time along the shorter way, the inverse of `exp`.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns
    -------
    V : ndarray, shape (..., 6)
        Twist (omega, v) times time [rad, m], ``|omega| <= pi``. At half a turn both senses are right; one is returned.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a pose.

    Notes
    -----
    Inverse of Spencer 2004, A.1.3: omega from the quaternion (see `so3_log`), then v by the inverse left Jacobian of
    SO(3). Full precision at every angle, zero and pi included.

    Examples
    --------
    >>> log(exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])).round(12)
    array([0.1, 0.2, 0.3, 1. , 2. , 3. ])
    """
    return twist_array(exponential.log(pose(T)))


@lie_function(POSE, returns=(4, 4))
def inverse(T: ArrayLike) -> Array:
    """The inverse pose, ``(R^T, -R^T p)``.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a pose.

    Notes
    -----
    Spencer 2004, A.1.1.

    Examples
    --------
    >>> inverse(exp([0.0, 0.0, 0.0, 1.0, 2.0, 3.0]))[:, 3]
    array([-1., -2., -3.,  1.])
    """
    return matrix4(1.0, *exponential.inverse(pose(T)))


@lie_function(POSE, POSE, returns=(4, 4))
def compose(T1: ArrayLike, T2: ArrayLike) -> Array:
    """The product of two poses: first T2, then T1.

    Parameters
    ----------
    T1, T2 : array_like, shape (..., 4, 4)

    Returns
    -------
    T : ndarray, shape (..., 4, 4)
        ``T1 @ T2``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a matrix is not a pose.

    Notes
    -----
    Spencer 2004, A.1.1.

    Examples
    --------
    >>> import numpy as np
    >>> T = exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    >>> bool(abs(compose(T, inverse(T)) - np.eye(4)).max() < 1e-15)
    True
    """
    return matrix4(1.0, *algebra.compose(pose(T1), pose(T2)))


@lie_function(POSE, VECTOR, returns=(3,))
def act(T: ArrayLike, x: ArrayLike) -> Array:
    """A point in the frame that T is seen from: ``R x + p``.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of a body.
    x : array_like, shape (..., 3)
        Point in the body's frame [m].

    Returns
    -------
    ndarray, shape (..., 3)
        The same point in the frame in which T is given [m].

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a pose.

    Notes
    -----
    Spencer 2004, A.1.1.

    Examples
    --------
    >>> act(exp([0.0, 0.0, 0.0, 1.0, 2.0, 3.0]), [1.0, 1.0, 1.0])
    array([2., 3., 4.])
    """
    R, p = pose(T)
    return vector_array(algebra.add(algebra.rotate(R, vector(x)), p))


@lie_function(TWIST, returns=(6, 6))
def left_jacobian(V: ArrayLike) -> Array:
    """The J with ``exp(V + dV) = exp(J dV) exp(V)`` to first order in dV.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m].

    Returns
    -------
    J : ndarray, shape (..., 6, 6)
        It takes the rate of V to the twist in fixed axes about the fixed origin (Spencer's inertial velocity).

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``[[A, 0], [Q, A]]``: A the left Jacobian of SO(3), Q its derivative along v (Chirikjian 2011, eq. 10.95; Sola et
    al. 2018, eq. 179-180; Barfoot and Furgale 2014, eq. 102). Full precision at every angle, zero included.

    Examples
    --------
    >>> left_jacobian([0.0, 0.0, 0.0, 2.0, 0.0, 0.0]) @ [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    array([0., 1., 0., 0., 0., 1.])
    """
    return matrix6(*exponential.left_jacobian(twist(V)))


@lie_function(TWIST, returns=(6, 6))
def right_jacobian(V: ArrayLike) -> Array:
    """The J with ``exp(V + dV) = exp(V) exp(J dV)`` to first order in dV.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m].

    Returns
    -------
    J : ndarray, shape (..., 6, 6)
        It takes the rate of V to the body-fixed twist.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    The left Jacobian at -V; ``left_jacobian(V) = Ad(exp(V)) right_jacobian(V)`` (Chirikjian 2011, eq. 10.95).

    Examples
    --------
    >>> from liedyn.lie import Ad
    >>> V = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    >>> bool(abs(Ad(exp(V)) @ right_jacobian(V) - left_jacobian(V)).max() < 1e-14)
    True
    """
    return matrix6(*exponential.left_jacobian(algebra.neg6(twist(V))))


@lie_function(TWIST, returns=(6, 6))
def left_jacobian_inverse(V: ArrayLike) -> Array:
    """The inverse of `left_jacobian`.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m]; singular where ``|omega|`` is 2 pi, 4 pi, ...

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``[[A, 0], [Q, A]]``: A the inverse left Jacobian of SO(3), Q its derivative along v (compare Sola et al. 2018,
    eq. 179). Full precision at every angle, zero included.

    Examples
    --------
    >>> import numpy as np
    >>> V = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    >>> bool(abs(left_jacobian_inverse(V) @ left_jacobian(V) - np.eye(6)).max() < 1e-14)
    True
    """
    return matrix6(*exponential.left_jacobian_inverse(twist(V)))


@lie_function(TWIST, returns=(6, 6))
def right_jacobian_inverse(V: ArrayLike) -> Array:
    """The inverse of `right_jacobian`.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m]; singular where ``|omega|`` is 2 pi, 4 pi, ...

    Returns
    -------
    ndarray, shape (..., 6, 6)
        It takes a body-fixed twist to the rate of the logarithm.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    The inverse left Jacobian at -V (compare Sola et al. 2018, eq. 179).

    Examples
    --------
    >>> import numpy as np
    >>> V = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    >>> bool(abs(right_jacobian_inverse(V) @ right_jacobian(V) - np.eye(6)).max() < 1e-14)
    True
    """
    return matrix6(*exponential.left_jacobian_inverse(algebra.neg6(twist(V))))
