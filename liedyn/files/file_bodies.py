"""Bodies as URDF and SDFormat describe them, with the inertias that are found there."""
import numpy as np

from liedyn.machine.errors import shown
from liedyn.model.numbers import numbers
from liedyn.model.validation import NOTHING, SYMMETRY, warn

NEXT_TO_NOTHING = 1e-6
"""Part of the largest moment in a robot. Placeholders (antennas, frames) are that small, and none looks at theirs."""


def inertial_of(owner, mass, pose, moments):
    """Mass, centre of mass and inertia in the axes of the link; `moments` are xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = moments
    J, R = numbers(owner, "inertia", [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], (3, 3)), pose[:3, :3]
    return mass, pose[:3, 3], R @ J @ R.T


def declare_bodies(builder, inertials):
    """Declare bodies; `inertials` is by name what `inertial_of` returns, or None for a massless body.

    A negative principal moment that is next to nothing beside the robot is taken as zero, and the largest as the sum of
    the others, with a warning: the robot moves as it would, to that accuracy. Any other one is an error of the builder.
    """
    largest = max((np.abs(each[2]).max() for each in inertials.values() if each), default=0.0)
    for name, each in inertials.items():
        mass, com, J = each or (0.0, np.zeros(3), np.zeros((3, 3)))
        moments, axes = np.linalg.eigh(J)
        if -NEXT_TO_NOTHING * largest < moments[0] < -max(SYMMETRY * moments[2], NOTHING):  # below that: rounding
            warn(f"body {shown(name)}, inertia: has the negative principal moment {moments[0]:.6g}, taken as zero, "
                 f"which is next to nothing beside the robot's largest moment, {largest:.3g}")
            middle = max(moments[1], 0.0)
            J = axes * [0.0, middle, min(moments[2], middle)] @ axes.T
        builder.body(name, mass=mass, com=com, inertia=J)
