"""Geometry of the model in plain NumPy: poses from numbers, numbers from poses, bases of joints.

The algebra for kernels is in :mod:`liedyn.lie`; describing a robot does not use it, so as not to import Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model.numbers import numbers

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


def placement(xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike | None = None,
              quaternion: ArrayLike | None = None) -> Array:
    """Pose from a translation and a rotation.

    Parameters
    ----------
    xyz : array_like, shape (3,)
        Translation [m].
    rpy : array_like, shape (3,), optional
        Roll, pitch, yaw [rad]: rotations about the fixed x, then y, then z axis, R = Rz(yaw) Ry(pitch) Rx(roll).
    quaternion : array_like, shape (4,), optional
        Quaternion (x, y, z, w), of any length except zero. Pass `rpy` or `quaternion`, not both.

    Returns
    -------
    ndarray, shape (4, 4)

    Raises
    ------
    ModelError
        Both `rpy` and `quaternion` given, a zero quaternion, or numbers of the wrong shape.

    Examples
    --------
    >>> placement(xyz=[1, 2, 3], rpy=[0, 0, np.pi / 2]).round(6)[:2]
    array([[ 0., -1.,  0.,  1.],
           [ 1.,  0.,  0.,  2.]])
    """
    if rpy is not None and quaternion is not None:
        raise ModelError("placement: takes rpy or quaternion, not both")
    pose = np.eye(4)
    pose[:3, 3] = numbers("placement", "xyz", xyz, (3,))
    if rpy is not None:
        pose[:3, :3] = rotation_from_rpy(numbers("placement", "rpy", rpy, (3,)))
    if quaternion is not None:
        pose[:3, :3] = rotation_from_quaternion(numbers("placement", "quaternion", quaternion, (4,)))
    return pose


def rotation_from_rpy(rpy):
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr]])


def rpy_from_rotation(R):
    """Roll, pitch, yaw of a rotation; accurate also at pitch = +-pi/2, as each angle allows for the previous ones."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    s, c = np.sin(yaw), np.cos(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def rotation_from_quaternion(quaternion):
    """Rotation matrix of a quaternion (x, y, z, w) of any length except zero."""
    size = np.abs(quaternion).max()
    if not size > 0.0:
        raise ModelError(f"placement, quaternion: must not be zero, got {shown(quaternion.tolist())}")
    x, y, z, w = quaternion / size / np.linalg.norm(quaternion / size)  # squares of tiny numbers would lose digits
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def skew(a):
    """The matrix [a] with [a] b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def rotation_pose(R):
    """Pose of pure rotation R."""
    pose = np.eye(4)
    pose[:3, :3] = R
    return pose


ROUNDING = 4.0 * np.finfo(np.float64).eps
"""Entries of a rotation below this are rounding errors of zero."""


def is_along_z(axis):
    """True if a unit vector points along z or -z, up to rounding."""
    return bool(np.all(np.abs(axis[:2]) < ROUNDING))


def z_to(axis):
    """The smallest rotation that takes z to the unit vector `axis` (exact for coordinate axes).

    For -z, up to rounding, it is not unique; then it is half a turn about x.
    """
    if is_along_z(axis) and axis[2] < 0.0:
        return np.diag([1.0, -1.0, -1.0])
    w = skew(np.array([-axis[1], axis[0], 0.0]))  # z x axis, whose length is the sine
    if axis[2] > 0.0:
        return np.eye(3) + w + w @ w / (1.0 + axis[2])
    w = w / np.hypot(axis[0], axis[1])  # normalised, as 1 + cosine would lose its digits near -z
    return np.eye(3) + np.hypot(axis[0], axis[1]) * w + (1.0 - axis[2]) * (w @ w)


def joint_basis(axes):
    """Rotation from the user's joint frame to the frame in which the joint's motion is standard.

    No axis: the joint frame itself. One axis: it becomes z. Two orthogonal axes: they become x and y.
    """
    if len(axes) == 0:
        return np.eye(3)
    return z_to(axes[0]) if len(axes) == 1 else np.column_stack([*axes, np.cross(*axes)])


# Rotations from a basis to a link frame whose z axis is column 0, 1 or 2 of the basis
COLUMN_TO_Z = tuple(z_to(axis) for axis in np.eye(3))

def facing(axis):
    """The smallest rotation about z that brings `axis`, which is not along z, into the yz plane."""
    x, y = np.where(np.abs(axis[:2]) < ROUNDING, 0.0, axis[:2])
    s, c = np.array([x, y]) / np.copysign(np.hypot(x, y), y)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def turns(R):
    """Cosines and sines of gamma, alpha and beta in R = Rz(beta) Rx(alpha) Rz(gamma), shape (6,); beta is zero if
    possible.

    Every rotation is such a product. For small alpha only beta + gamma is well defined; gamma is then computed from R
    and the other two angles.
    """
    x, y, cos_alpha = R[:, 2]
    c, s = (1.0, 0.0) if abs(x) < ROUNDING else np.array([-y, x]) / np.hypot(x, y)
    sin_alpha = x * s - y * c
    e, f, g = R[:, 0]
    e, f = c * e + s * f, c * f - s * e
    numbers = np.array([e, cos_alpha * f + sin_alpha * g, cos_alpha, sin_alpha, c, s])
    numbers[np.abs(numbers) < ROUNDING] = 0.0
    return numbers
