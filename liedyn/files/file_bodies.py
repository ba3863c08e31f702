"""Bodies of URDF and SDFormat files, and checks of their inertias."""
import numpy as np

from liedyn.machine.errors import shown
from liedyn.model.numbers import numbers
from liedyn.model.validation import NOTHING, SYMMETRY, warn

NEXT_TO_NOTHING = 1e-6
"""Fraction of the largest moment of inertia in a robot below which an invalid inertia is only a placeholder (antennas,
frames), as nobody checks these."""


def inertial_of(owner, mass, pose, moments):
    """Mass, centre of mass and inertia in the axes of the link; `moments` are xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = moments
    J, R = numbers(owner, "inertia", [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], (3, 3)), pose[:3, :3]
    return mass, pose[:3, 3], R @ J @ R.T


def declare_bodies(builder, inertials):
    """Declare bodies; `inertials` has by name the result of `inertial_of`, or None for a massless body.

    A negative principal moment that is negligible in the robot is replaced by zero, and the largest by the sum of the
    others, with a warning; this does not change the motion noticeably. Any other negative moment is an error of the
    builder.
    """
    largest = max((np.abs(each[2]).max() for each in inertials.values() if each), default=0.0)
    for name, each in inertials.items():
        mass, com, J = each or (0.0, np.zeros(3), np.zeros((3, 3)))
        moments, axes = np.linalg.eigh(J)
        if -NEXT_TO_NOTHING * largest < moments[0] < -max(SYMMETRY * moments[2], NOTHING):  # a smaller one is rounding
            warn(f"body {shown(name)}, inertia: has the negative principal moment {moments[0]:.6g}, taken as zero, "
                 f"which is next to nothing beside the robot's largest moment, {largest:.3g}")
            middle = max(moments[1], 0.0)
            J = axes * [0.0, middle, min(moments[2], middle)] @ axes.T
        builder.body(name, mass=mass, com=com, inertia=J)
