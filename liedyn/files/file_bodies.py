"""Bodies of URDF and SDFormat files, and checks of their inertias.

Dry friction of joints in robot files, as optional force elements.

Shapes of robot files: their names, and the paths of their meshes.

Joints that mimic others: none mimics itself, also not through others.
"""
import os
from pathlib import Path

import numpy as np

from liedyn.machine.arguments import positive
from liedyn.machine.errors import ModelError, listed, shown
from liedyn.model.numbers import numbers
from liedyn.model.validation import NOTHING, SYMMETRY, warn


class Shapes:
    """Declares shapes to a builder with unique names; shapes that cannot be declared are omitted and noted.

    Attributes
    ----------
    left_out : dict
        The reason, by owner of the shape.
    """

    def __init__(self, builder):
        self.builder, self.left_out, self._names = builder, {}, set()

    def add(self, wanted, body, kind, **values):
        """Declare a shape."""
        name, k = wanted, 1
        while name in self._names:
            k += 1
            name = f"{wanted} {k}"
        self._names.add(name)
        try:
            self.builder.shape(name, body, kind, **values)
        except ModelError as error:
            self.left_out[str(error)] = body


def mesh_path(name, file):
    """The path of a mesh; ``package://`` is searched for in the parent folders and in ROS_PACKAGE_PATH.

    A path that is not found is returned unchanged; the error comes when it is drawn.
    """
    plain = name.removeprefix("file://")
    if plain != name or "://" not in name:
        return str(Path(file).parent.joinpath(plain))
    package, _, rest = name.split("://", 1)[1].partition("/")
    elsewhere = map(Path, filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(":")))
    folders = [*Path(file).resolve().parents, *elsewhere]
    for folder in folders:
        for place in (folder / package / rest, *([folder / rest] if folder.name == package else [])):
            if place.is_file():
                return str(place)
    return name


def require_width(function, width):
    """InputError if `width`, the rate below which friction is smooth, is neither None, nor 0, nor a positive number."""
    if width is not None and not (isinstance(width, int | float) and width == 0):
        positive(f"{function}, friction", width)


def add_friction(builder, forces, width):
    """Dry friction by coordinate, smooth below the rate `width`; the builder refuses invalid values."""
    for coordinate, force in forces.items():
        builder.friction(f"{coordinate} friction", coordinate, coulomb=force, width=width)


def plain_friction(constraint):
    """(coordinate, force) of dry friction that is Coulomb's alone on one coordinate, as files know it; else None."""
    coulomb, static, _, viscous = constraint.limit
    if len(constraint.coefficients) > 1 or static != coulomb or viscous or constraint.active is not True:
        return None
    [(coordinate, coefficient)] = constraint.coefficients.items()
    return coordinate, abs(coefficient) * coulomb


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


def mimic_once(owner, name, leader, leaders):
    """Note that a coordinate mimics another; a circle of them, which would hold all of them still, is a `ModelError`.

    `leaders` has the coordinate that each one mimics, of those declared so far.
    """
    leaders[name], chain = leader, [name]
    while chain[-1] in leaders:
        chain.append(leaders[chain[-1]])
        if chain[-1] == name:
            through = f" through {listed(chain[1:-1])}" if len(chain) > 2 else ""
            raise ModelError(f"{owner}: mimics itself{through}")
