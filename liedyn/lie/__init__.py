"""Lie groups of rigid motion: functions of (4, 4) poses, (6,) twists and (3, 3) rotations.

A twist is (omega, v) and a wrench (moment, force), angular part first; a pose takes a body's coordinates to those of
the frame in which it is given. From Python, every function takes leading batch axes and checks its arguments. Inside
your own ``@njit`` functions the same names take single arrays, cost tens of nanoseconds and check shapes only. (Numba's
cache of your functions does not see a new version of liedyn: clear it after an upgrade.)

    >>> from liedyn.lie import exp, log
    >>> log(exp([0.0, 0.0, 0.5, 1.0, 0.0, 0.0])).round(12)
    array([0. , 0. , 0.5, 1. , 0. , 0. ])

The same formulas on tuples, for floats and SIMD lanes, are in `algebra` and `exponential`.
"""
from liedyn.lie.adjoint import Ad, Ad_dual, ad, ad_dual, spatial_inertia, transform_inertia
from liedyn.lie.se3 import (
    act, compose, exp, hat, inverse, left_jacobian, left_jacobian_inverse, log, right_jacobian, right_jacobian_inverse,
    vee,
)
from liedyn.lie.slopes import (
    right_jacobian_inverse_curvature, right_jacobian_inverse_slope, so3_right_jacobian_inverse_curvature,
    so3_right_jacobian_inverse_slope,
)
from liedyn.lie.so3 import (
    quaternion_from_rotation, rotation_from_quaternion, so3_exp, so3_hat, so3_left_jacobian, so3_left_jacobian_inverse,
    so3_log, so3_right_jacobian, so3_right_jacobian_inverse, so3_vee,
)

__all__ = [
    "Ad", "Ad_dual", "act", "ad", "ad_dual", "compose", "exp", "hat", "inverse", "left_jacobian",
    "left_jacobian_inverse", "log", "quaternion_from_rotation", "right_jacobian", "right_jacobian_inverse",
    "right_jacobian_inverse_curvature", "right_jacobian_inverse_slope", "rotation_from_quaternion", "so3_exp",
    "so3_hat", "so3_left_jacobian", "so3_left_jacobian_inverse", "so3_log", "so3_right_jacobian",
    "so3_right_jacobian_inverse", "so3_right_jacobian_inverse_curvature", "so3_right_jacobian_inverse_slope", "so3_vee",
    "spatial_inertia", "transform_inertia", "vee",
]
