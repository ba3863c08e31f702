"""The regressor including parameters of joints, for closed mechanisms too; and the known forces besides it."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import positive
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import given_coordinates
from liedyn.mechanics.elements.generalized import element_forces
from liedyn.mechanics.tree.regressor import inertial_regressor
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model.calls.boundary import states
from liedyn.tasks.identification.dynamic_parameters import (
    FRICTION_WIDTH, dynamic_parameters, joint_columns, without_friction,
)
from liedyn.tasks.identification.parameter_projection import allowed_motions, chosen_coordinates, require_allowed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames


def regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, include: Sequence[str] | dict[str, Any] = (),
              independent: IndependentNames = None, friction_width: float = FRICTION_WIDTH) -> Array:
    """Inverse dynamics as a matrix times parameters; for closed mechanisms without the constraint forces.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v, a : array_like, shape (..., nv)
        Velocity and acceleration [rad/s, m/s; rad/s^2, m/s^2] that satisfy the constraints, body-fixed for ball and
        free joints.
    include : sequence of str, or dict
        Columns of joints: any of "armature", "damping", "coulomb", "offset", see `dynamic_parameters`.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates of a mechanism with constraints. None: those that the robot declares, else "auto" (pivoting, at the
        first state of a batch). For a tree: all.
    friction_width : float
        Dry friction has the column ``tanh(v / friction_width)`` [rad/s, m/s], as in `Builder.friction`.

    Returns
    -------
    Y : ndarray, shape (..., p, 10 * nbodies + extra)
        Columns as in `dynamic_parameters`. For a tree p = nv, and ``Y @ parameters`` is the result of `rnea`, without
        springs, and without armatures and dampers that are not included. With constraints p is the number of
        independent coordinates and ``Y @ parameters = K^T tau``, where v = K w and w are their velocities: the
        multipliers do no work along K. Efforts u of actuators with tau = B u follow from ``K^T B u = Y @ parameters``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, there are too many or few independent
        coordinates, or a velocity or acceleration opens loops.
    ClosureError
        A configuration does not close the loops.
    SingularConfigurationError
        The independent coordinates do not determine the motion at a state.

    Notes
    -----
    Atkeson, An and Hollerbach 1986 for trees; Ghorbel et al. 2000 and Khalil and Dombre 2002, chapter 9, for loops.
    `inertial_regressor` alone is compiled and does not require closed loops.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> v = ld.complete_velocity(robot, robot.home, {"q1": 0.4, "q2": -0.2})
    >>> a = ld.forward_dynamics(robot, robot.home, v, [3.0, 1.0, 0.0, 0.0]).a
    >>> Y = ld.regressor(robot, robot.home, v, a)
    >>> parameters = list(ld.dynamic_parameters(robot).values())
    >>> Y.shape, (Y @ parameters).round(9).tolist()  # q1 and q2 are driven with 3 and 1 N m
    ((2, 40), [3.0, 1.0])
    """
    columns, width = joint_columns(robot, include), positive("friction_width", friction_width)
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    independent = given_coordinates("independent", independent)
    if not len(q):
        raise InputError("regressor needs at least one state")
    require_allowed(robot, lead, q, v, a)
    Y = tree_regressor(robot, q, v, a, columns, width)
    with_one = chosen_coordinates(robot, q, independent)
    if with_one is not None:
        Y = np.swapaxes(allowed_motions(robot, q, with_one, lead), 1, 2) @ Y
    return Y.reshape(lead + Y.shape[1:])


def tree_regressor(robot, q, v, a, columns, width):
    """Y of the open tree for rows of states, shape (count, nv, parameters)."""
    count, nv = v.shape
    Y = np.zeros((count, nv, 10 * robot.nbodies + len(columns)))
    Y[:, :, :10 * robot.nbodies] = inertial_regressor(robot, q, v, a).reshape(count, nv, -1)
    for k, (word, j) in enumerate(columns, 10 * robot.nbodies):
        Y[:, j, k] = {"armature": a[:, j], "damping": v[:, j], "coulomb": np.tanh(v[:, j] / width), "offset": 1.0}[word]
    return Y


def known_forces(robot, q, v, a, include, Y, width):
    """The part of inverse dynamics that is not Y times the robot's parameters: springs, parameters not included,
    elements.

    Friction elements that columns of Y represent are left out; `Y` is that of the tree.
    """
    values = np.array(list(dynamic_parameters(robot, include).values()))
    columns = joint_columns(robot, include)
    theirs = np.array([word in ("coulomb", "offset") for word, _ in columns], dtype=bool)
    values[10 * robot.nbodies:][theirs] = 0.0  # `rnea` does not contain these parameters
    other = without_friction(robot, columns)
    forces = element_forces(other, q, v) if other.elements is not None else 0.0
    return rnea(other, q, v, a) - Y @ values - forces
