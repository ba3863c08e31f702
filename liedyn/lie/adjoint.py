"""Adjoint maps of SE(3), their duals, and spatial inertia, as (6, 6) matrices.

Twists are (omega, v), wrenches (moment, force). Everything takes leading batch axes and works inside ``@njit`` code.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie import algebra, exponential
from liedyn.lie.arrays import (
    MATRIX6, NUMBER, POSE, SYMMETRIC, TWIST, VECTOR, inertia_matrix6, lie_function, matrix6, pose, product6, symmetric,
    twist, vector, wrench_matrix6,
)

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


@lie_function(POSE, returns=(6, 6))
def Ad(T: ArrayLike) -> Array:
    """Adjoint map: takes a twist from the body's frame to the frame in which its pose T is given.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``[[R, 0], [[p] R, R]]``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a pose.

    Notes
    -----
    Spencer 2004, A.1.4: ``hat(Ad(T) @ V) = T hat(V) T^-1``.

    Examples
    --------
    >>> from liedyn.lie import exp
    >>> Ad(exp([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])) @ [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    array([1., 0., 0., 0., 1., 0.])
    """
    return matrix6(*exponential.Ad_blocks(pose(T)))


@lie_function(POSE, returns=(6, 6))
def Ad_dual(T: ArrayLike) -> Array:
    """Dual adjoint map, ``Ad(T).T``: takes a wrench from the frame in which T is given to the body's frame.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``[[R^T, R^T [p]^T], [0, R^T]]``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the matrix is not a pose.

    Notes
    -----
    Spencer 2004, A.1.4 (its final form) and A.1.5. The power of a wrench on a twist is the same in both frames.

    Examples
    --------
    >>> from liedyn.lie import exp
    >>> Ad_dual(exp([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])) @ [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    array([ 0., -1.,  0.,  1.,  0.,  0.])
    """
    return wrench_matrix6(*exponential.Ad_blocks(pose(T)))


@lie_function(TWIST, returns=(6, 6))
def ad(V: ArrayLike) -> Array:
    """Lie bracket with V: ``ad(V) @ W = [V, W]``.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v).

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``[[[omega], 0], [[v], [omega]]]``.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    Spencer 2004, A.1.4.

    Examples
    --------
    >>> ad([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) @ [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    array([0., 0., 1., 0., 0., 0.])
    """
    w, v = twist(V)
    return matrix6(exponential.hat(w), exponential.hat(v))


@lie_function(TWIST, returns=(6, 6))
def ad_dual(V: ArrayLike) -> Array:
    """Dual of the Lie bracket, ``ad(V).T``; on wrenches and momenta, ``-ad_dual(V)`` is Featherstone's V x*.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist (omega, v).

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``[[-[omega], -[v]], [0, -[omega]]]``.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite.

    Notes
    -----
    Spencer 2004, A.1.4.

    Examples
    --------
    >>> ad_dual([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]) @ [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    array([ 0.,  0., -1.,  0.,  0.,  0.])
    """
    w, v = twist(V)
    return wrench_matrix6(exponential.hat(w), exponential.hat(v))


@lie_function(NUMBER, VECTOR, SYMMETRIC, returns=(6, 6))
def spatial_inertia(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Spatial inertia of a rigid body: takes its twist to its momentum, and is twice the kinetic energy between twists.

    Parameters
    ----------
    mass : array_like, shape (...)
        [kg]
    com : array_like, shape (..., 3)
        Centre of mass c in the body's frame [m].
    inertia : array_like, shape (..., 3, 3)
        Rotational inertia about the centre of mass in the body's axes [kg m^2]; its upper triangle counts.

    Returns
    -------
    I : ndarray, shape (..., 6, 6)
        ``[[inertia - m [c]^2, m [c]], [-m [c], m 1]]`` in the body's frame.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or the inertia is not symmetric.

    Notes
    -----
    Featherstone 2008, eq. 2.63.

    Examples
    --------
    >>> import numpy as np
    >>> spatial_inertia(2.0, [0.0, 0.0, 1.0], np.eye(3)).diagonal()
    array([3., 3., 1., 2., 2., 2.])
    """
    m, c = float(mass), vector(com)
    h = algebra.scale(m, c)
    return inertia_matrix6((m, h, algebra.add_symmetric(symmetric(inertia), algebra.minus_square(c, h))))


@lie_function(POSE, MATRIX6, returns=(6, 6))
def transform_inertia(T: ArrayLike, I: ArrayLike) -> Array:
    """Inertia in another frame.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame in which the inertia is given, seen from the new frame.
    I : array_like, shape (..., 6, 6)
        Spatial inertia; any matrix that takes twists to wrenches will do, a stiffness or damping for instance.

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``Ad_dual(T^-1) I Ad(T^-1)``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or T is not a pose.

    Notes
    -----
    Featherstone 2008, eq. 2.66.

    Examples
    --------
    >>> import numpy as np
    >>> from liedyn.lie import exp
    >>> I = spatial_inertia(2.0, [0.0, 0.0, 0.0], np.eye(3))
    >>> shifted = transform_inertia(exp([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), I)
    >>> np.array_equal(shifted, spatial_inertia(2.0, [0.0, 0.0, 1.0], np.eye(3)))
    True
    """
    A, Q = exponential.Ad_blocks(exponential.inverse(pose(T)))
    return product6(wrench_matrix6(A, Q), product6(I, matrix6(A, Q)))
