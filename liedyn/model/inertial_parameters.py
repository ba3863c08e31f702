"""The ten inertial parameters of each body, in which the equations of motion are linear, and their replacement."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError, ModelError, shown
from liedyn.model.builder import Builder

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

PARAMETERS = "m", "mx", "my", "mz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz"
"""Mass, first moment and rotational inertia about the origin of the body's frame, in its axes."""
_TRIANGLE = np.triu_indices(3)


def inertial_parameters(robot: Robot) -> Array:
    """Masses, first moments and rotational inertias of all bodies: the parameters of `regressor`.

    Parameters
    ----------
    robot : Robot

    Returns
    -------
    pi : ndarray, shape (nbodies, 10)
        A row for each of ``robot.body_names``: mass m [kg], first moment m c [kg m] and rotational inertia xx, xy, xz,
        yy, yz, zz [kg m^2] about the origin of the body's frame (not about the centre of mass c), in the axes of that
        frame, which is the child frame of its joint. The off-diagonal entries are those of the matrix, that is, minus
        the products of inertia.

    Raises
    ------
    InputError
        `robot` is not a Robot.

    Notes
    -----
    The order of Atkeson, An and Hollerbach 1986. Pinocchio has xx, xy, yy, xz, yz, zz, Khalil and Dombre have the
    rotational inertia first, then m c and m.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.inertial_parameters(ld.load("slider_crank"))[0].tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    """
    require_robot(robot)
    bodies = robot.model.bodies
    m = np.array([body.mass for body in bodies])
    c = np.array([body.com for body in bodies]).reshape(-1, 3)
    J = np.array([body.inertia for body in bodies]).reshape(-1, 3, 3) + parallel_axes(m, c)
    return np.concatenate([m[:, None], m[:, None] * c, J[(slice(None), *_TRIANGLE)]], axis=1)


def with_inertial_parameters(robot: Robot, pi: ArrayLike) -> Robot:
    """The same robot with other masses, first moments and rotational inertias.

    Parameters
    ----------
    robot : Robot
    pi : array_like, shape (nbodies, 10) or (10 * nbodies,)
        In the order of `inertial_parameters`.

    Returns
    -------
    Robot
        With the time, switches and targets of `robot`.

    Raises
    ------
    InputError
        `robot` is not a Robot, a shape does not fit, or an entry is not finite.
    ModelError
        A mass is negative, or zero with a nonzero first moment; or an inertia about the centre of mass has a negative
        principal moment, for which motions would not be determined.

    Warns
    -----
    ModelWarning
        An inertia that is physically impossible: its largest principal moment exceeds the sum of the other two.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("slider_crank")
    >>> pi = ld.inertial_parameters(robot)
    >>> round(ld.total_mass(ld.with_inertial_parameters(robot, 2.0 * pi)) / ld.total_mass(robot), 12)
    2.0
    """
    require_robot(robot)
    pi = floats("pi", pi)
    if pi.shape not in ((robot.nbodies, 10), (10 * robot.nbodies,)) or not np.isfinite(pi).all():
        raise InputError(f"pi must be finite, of shape ({robot.nbodies}, 10), ten numbers for each body; got "
                         f"{shown(pi) if pi.size == 10 * robot.nbodies else pi.shape}")
    b = Builder.of(robot)
    for name, (m, *h, Jxx, Jxy, Jxz, Jyy, Jyz, Jzz) in zip(robot.body_names, pi.reshape(-1, 10)):
        if m == 0.0 and any(h):
            raise ModelError(f"body {shown(name)}: has no mass, but the first moment {np.array(h).tolist()}")
        com = np.array(h) / m if m else np.zeros(3)
        J = np.array([[Jxx, Jxy, Jxz], [Jxy, Jyy, Jyz], [Jxz, Jyz, Jzz]])
        b.change("body", name, mass=float(m), com=com, inertia=J - parallel_axes(m, com))
    changed = b.build()
    return changed.at(robot.t) if robot.t else changed


def parallel_axes(m, c):
    """m (|c|^2 1 - c c^T), the parallel-axis term of a mass at c, shape (..., 3, 3)."""
    m, c = np.asarray(m)[..., None, None], np.asarray(c)
    return m * ((c ** 2).sum(axis=-1)[..., None, None] * np.eye(3) - c[..., :, None] * c[..., None, :])
