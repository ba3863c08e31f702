"""Rotations: SO(3), its algebra so(3), and quaternions.

Everything takes leading batch axes and works inside ``@njit`` code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie import exponential
from liedyn.lie.algebra import neg, quaternion_rotation
from liedyn.lie.arrays import (
    QUATERNION, ROTATION, SKEW, VECTOR, lie_function, matrix3, quaternion, quaternion_array, rotation, vector,
    vector_array,
)

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


@lie_function(VECTOR, returns=(3, 3))
def so3_hat(w: ArrayLike) -> Array:
    """The matrix [w] with ``[w] x = w x x``.

    Parameters
    ----------
    w : array_like, shape (..., 3)

    Returns
    -------
    ndarray, shape (..., 3, 3)
        Skew-symmetric.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    Spencer 2004, A.1.2.

    Examples
    --------
    >>> so3_hat([1.0, 2.0, 3.0])
    array([[ 0., -3.,  2.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    return matrix3(exponential.hat(vector(w)))


@lie_function(SKEW, returns=(3,))
def so3_vee(W: ArrayLike) -> Array:
    """The vector w of a skew-symmetric matrix [w], the inverse of `so3_hat`.

    Parameters
    ----------
    W : array_like, shape (..., 3, 3)

    Returns
    -------
    ndarray, shape (..., 3)

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not skew-symmetric.

    Notes
    -----
    Spencer 2004, A.1.2. Compiled code checks no numbers and ignores the symmetric part.

    Examples
    --------
    >>> so3_vee(so3_hat([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    return vector_array(exponential.vee(rotation(W)))


@lie_function(VECTOR, returns=(3, 3))
def so3_exp(w: ArrayLike) -> Array:
    """Rotation by the angle ``|w|`` about the axis ``w``.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad], of any length.

    Returns
    -------
    R : ndarray, shape (..., 3, 3)

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``1 + sin(t)/t [w] + (1 - cos(t))/t^2 [w]^2`` with ``t = |w|`` (Rodrigues; Spencer 2004, A.1.3), written with half
    angles so that nothing cancels.

    Examples
    --------
    >>> import numpy as np
    >>> so3_exp([0.0, 0.0, np.pi / 2]).round(12) @ [1.0, 0.0, 0.0]
    array([0., 1., 0.])
    """
    return matrix3(exponential.so3_exp(vector(w)))


@lie_function(ROTATION, returns=(3,))
def so3_log(R: ArrayLike) -> Array:
    """Rotation vector of a rotation, the inverse of `so3_exp`.

    Parameters
    ----------
    R : array_like, shape (..., 3, 3)

    Returns
    -------
    w : ndarray, shape (..., 3)
        Rotation vector [rad], ``|w| <= pi``. At half a turn w and -w are both right; one of them is returned.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a rotation.

    Notes
    -----
    Computed from the quaternion, with a division by its largest component (Shepperd 1978): full precision at every
    angle.

    Examples
    --------
    >>> so3_log(so3_exp([0.1, 0.2, 0.3]))
    array([0.1, 0.2, 0.3])
    """
    return vector_array(exponential.so3_log(rotation(R)))


@lie_function(VECTOR, returns=(3, 3))
def so3_left_jacobian(w: ArrayLike) -> Array:
    """The J with ``exp(w + dw) = exp(J dw) exp(w)`` to first order in dw.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad].

    Returns
    -------
    J : ndarray, shape (..., 3, 3)
        It takes the rate of w to the angular velocity in fixed axes.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``1 + (1 - cos(t))/t^2 [w] + (t - sin(t))/t^3 [w]^2`` with ``t = |w|`` (Chirikjian 2011, eq. 10.86): the matrix A of
    Spencer 2004, A.1.3.

    Examples
    --------
    >>> so3_left_jacobian([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    return matrix3(exponential.so3_left_jacobian(vector(w)))


@lie_function(VECTOR, returns=(3, 3))
def so3_right_jacobian(w: ArrayLike) -> Array:
    """The J with ``exp(w + dw) = exp(w) exp(J dw)`` to first order in dw.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad].

    Returns
    -------
    J : ndarray, shape (..., 3, 3)
        It takes the rate of w to the angular velocity in the turned axes.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    The left Jacobian at -w, and its transpose (Chirikjian 2011, eq. 10.86).

    Examples
    --------
    >>> w = [0.1, 0.2, 0.3]
    >>> (so3_right_jacobian(w) == so3_left_jacobian(w).T).all().item()
    True
    """
    return matrix3(exponential.so3_left_jacobian(neg(vector(w))))


@lie_function(VECTOR, returns=(3, 3))
def so3_left_jacobian_inverse(w: ArrayLike) -> Array:
    """The inverse of `so3_left_jacobian`.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad]; singular where ``|w|`` is 2 pi, 4 pi, ...

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``1 - [w]/2 + (1 - (t/2) cot(t/2))/t^2 [w]^2`` with ``t = |w|`` (Chirikjian 2011, eq. 10.86).

    Examples
    --------
    >>> w = [0.1, 0.2, 0.3]
    >>> import numpy as np
    >>> bool(abs(so3_left_jacobian_inverse(w) @ so3_left_jacobian(w) - np.eye(3)).max() < 1e-15)
    True
    """
    return matrix3(exponential.so3_left_jacobian_inverse(vector(w)))


@lie_function(VECTOR, returns=(3, 3))
def so3_right_jacobian_inverse(w: ArrayLike) -> Array:
    """The inverse of `so3_right_jacobian`.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation vector [rad]; singular where ``|w|`` is 2 pi, 4 pi, ...

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    ``1 + [w]/2 + (1 - (t/2) cot(t/2))/t^2 [w]^2`` with ``t = |w|`` (Chirikjian 2011, eq. 10.86).

    Examples
    --------
    >>> w = [0.1, 0.2, 0.3]
    >>> import numpy as np
    >>> bool(abs(so3_right_jacobian_inverse(w) @ so3_right_jacobian(w) - np.eye(3)).max() < 1e-15)
    True
    """
    return matrix3(exponential.so3_left_jacobian_inverse(neg(vector(w))))


@lie_function(QUATERNION, returns=(3, 3))
def rotation_from_quaternion(quat: ArrayLike) -> Array:
    """Rotation of a quaternion.

    Parameters
    ----------
    quat : array_like, shape (..., 4)
        Scalar last, (x, y, z, w), as in SciPy; of any length except zero.

    Returns
    -------
    R : ndarray, shape (..., 3, 3)

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the quaternion is zero.

    Examples
    --------
    >>> rotation_from_quaternion([1.0, 0.0, 0.0, 0.0]).diagonal()
    array([ 1., -1., -1.])
    """
    return matrix3(quaternion_rotation(*quaternion(quat)))


@lie_function(ROTATION, returns=(4,))
def quaternion_from_rotation(R: ArrayLike) -> Array:
    """Unit quaternion of a rotation.

    Parameters
    ----------
    R : array_like, shape (..., 3, 3)

    Returns
    -------
    quat : ndarray, shape (..., 4)
        Scalar last, (x, y, z, w), with w >= 0: the one of the two quaternions that is nearer to the identity.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a rotation.

    Notes
    -----
    Computed with a division by the largest component (Shepperd 1978): full precision at every angle.

    Examples
    --------
    >>> import numpy as np
    >>> quaternion_from_rotation(np.eye(3))
    array([0., 0., 0., 1.])
    """
    return quaternion_array(exponential.rotation_quaternion(rotation(R)))
