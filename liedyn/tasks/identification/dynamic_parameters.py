"""The parameters in which inverse dynamics is linear: ten for each body, and those of joints, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import names, require_robot
from liedyn.machine.errors import InputError, ModelError, shown, suggestion
from liedyn.model.builder import Builder
from liedyn.model.inertial_parameters import PARAMETERS, inertial_parameters, with_inertial_parameters
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.packed import DOF_ARMATURE, DOF_DAMPING, dofs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot

JOINT_PARAMETERS = "armature", "damping", "coulomb", "offset"
"""Factors of the acceleration, of the velocity, of its sign, and of 1."""
FRICTION_WIDTH = 1e-3
"""Rate below which Coulomb friction is smoothed [rad/s, m/s], as in `liedyn.Builder.friction`."""
INERTIA = len(PARAMETERS)


def dynamic_parameters(robot: Robot, include: Sequence[str] | dict[str, Any] = ()) -> dict[str, float]:
    """Names and values of all parameters that correspond to columns of `regressor`.

    Parameters
    ----------
    robot : Robot
    include : sequence of str, or dict
        Parameters in addition to the ten `inertial_parameters` of each body: any of "armature", "damping", "coulomb"
        (dry friction) and "offset" (a constant force), for all coordinates except those of ball and free joints; or a
        dict with the names of the coordinates for each of these words.

    Returns
    -------
    values : dict of float
        By name: ``body.m``, ``body.mx`` [kg m], ..., ``body.Jzz`` [kg m^2], then ``coordinate.armature`` and so on. Dry
        friction is that of the robot's friction elements of one coordinate.

    Raises
    ------
    InputError
        robot is no robot, a word is unknown, or a coordinate is unknown or part of a ball or free joint.
    ModelError
        The friction element of a coordinate with "coulomb" has more than one number (static friction).

    Notes
    -----
    "Dynamic parameters" in the sense of Khalil and Dombre 2002, chapter 9.

    Examples
    --------
    >>> import liedyn as ld
    >>> values = ld.dynamic_parameters(ld.load("slider_crank"), include=["damping"])
    >>> values["crank.m"], values["crank.Jzz"], list(values)[-1]
    (1.0, 1.0, 'rod.damping')
    """
    wanted = joint_columns(robot, include)
    pi = inertial_parameters(robot).ravel()
    named = [f"{body}.{letter}" for body in robot.body_names for letter in PARAMETERS]
    more = {f"{robot.velocity_names[j]}.{word}": joint_value(robot, word, j) for word, j in wanted}
    return dict(zip(named, pi.tolist())) | more


def joint_columns(robot, include):
    """(word, number of the velocity coordinate) of each column after those of the bodies."""
    require_robot(robot)
    scalar = [name for joint in robot.model.joints if JOINT_KINDS[joint.kind].nv and not
              JOINT_KINDS[joint.kind].has_quaternion for name in velocities_of(joint)]
    scalar = [name for name in robot.velocity_names if name in scalar]
    asked = include if isinstance(include, dict) else dict.fromkeys(names("include", include), None)
    columns = []
    for word in asked:
        if not isinstance(word, str) or word not in JOINT_PARAMETERS:
            raise InputError(f"unknown parameter of joints {shown(word)} in include, "
                             f"{suggestion(word if isinstance(word, str) else '', JOINT_PARAMETERS)}")
    for word in JOINT_PARAMETERS:
        if word in asked:
            chosen = scalar if asked[word] is None else names(f"include, {word}", asked[word])
            for name in chosen:
                if name not in scalar:
                    raise InputError(f"include, {word}: no coordinate {shown(name)} that turns or slides, "
                                     f"{suggestion(name, scalar)}")
            columns += [(word, robot.velocity_index(name)) for name in dict.fromkeys(chosen)]
    return columns


def velocities_of(joint):
    return [joint.name + suffix for suffix in JOINT_KINDS[joint.kind].velocities]


def joint_value(robot, word, j):
    """The robot's value of this parameter of velocity coordinate j."""
    if word in ("armature", "damping"):
        return float(dofs_of(robot.packed)[1][j, DOF_ARMATURE if word == "armature" else DOF_DAMPING])
    if word == "coulomb":
        return sum(element.numbers[0] for element in frictions_of(robot, robot.velocity_names[j]))
    return 0.0


def frictions_of(robot, coordinate):
    """The force elements of dry friction of this coordinate alone; ModelError if one has static friction."""
    found = []
    for element in robot.model.elements:
        if element.law == "friction" and set(element.coefficients) == {coordinate}:
            coulomb, static, _, _, viscous = element.numbers
            if static != coulomb or viscous or element.coefficients[coordinate] != 1.0:
                raise ModelError(f"friction element {shown(element.name)} has more than dry friction: it cannot be "
                                 f"described by {coordinate}.coulomb alone")
            found.append(element)
    return found


def without_friction(robot, columns):
    """The robot without the friction elements that columns of dry friction represent."""
    elements = [element.name for word, j in columns if word == "coulomb"
                for element in frictions_of(robot, robot.velocity_names[j])]
    if not elements:
        return robot
    b = Builder.of(robot)
    for name in elements:
        b.remove("element", name)
    return b.build().at(robot.t)


def with_parameters(robot, columns, pi, width):
    """The robot with other parameters: ten for each body, then those of the columns. Offsets are no part of a robot."""
    changed = with_inertial_parameters(robot, pi[:INERTIA * robot.nbodies])
    b, values = Builder.of(without_friction(changed, columns)), dict(zip(columns, pi[INERTIA * robot.nbodies:]))
    for joint in robot.model.joints:
        for word in ("armature", "damping"):
            numbers = getattr(joint, word).copy()
            for k, name in enumerate(velocities_of(joint)):
                numbers[k] = values.get((word, robot.velocity_index(name)), numbers[k])
            if not np.array_equal(numbers, getattr(joint, word)):
                b.change("joint", joint.name, **{word: numbers})
    for (word, j), value in values.items():
        if word == "coulomb" and value:
            b.friction(f"{robot.velocity_names[j]} friction", robot.velocity_names[j], float(value), width=width)
    return b.build().at(robot.t)
