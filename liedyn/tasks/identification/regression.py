"""The regressor including parameters of joints, for closed mechanisms too; and the known forces besides it.

The condition number of a regressor, and its exact derivative by the motion.

With W = sum of sigma u v^T, the largest and the smallest singular value change by u^T dW v. That is the power on the
"velocities" u of the forces of a robot with the parameters v (which need not be physically consistent): so derivatives
of inverse dynamics of two such robots suffice, whatever the number of parameters.
"""
# mypy: ignore-errors

from __future__ import annotations
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import positive
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import given_coordinates
from liedyn.mechanics.elements.generalized import element_forces
from liedyn.mechanics.tree.regressor import inertial_regressor
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model.calls.boundary import states
from liedyn.model.packed import (
    BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK, LINK_END, LINK_MASS, LINK_PITCH, LINK_SPREAD, dofs_of,
    links_of,
)
from liedyn.tasks.identification.dynamic_parameters import (
    FRICTION_WIDTH, INERTIA, dynamic_parameters, joint_columns, without_friction,
)
from liedyn.tasks.identification.parameter_projection import allowed_motions, chosen_coordinates, require_allowed
from liedyn.tasks.identification.physical import parameters_of, pseudo_inertia

_TRIANGLE = np.triu_indices(3)


def log_condition(robot, motion, columns, kept, sizes, width):
    """log(sigma_max / sigma_min) of a tree's regressor, columns scaled by `sizes`; derivatives by q, v and a."""
    q, v, a = motion
    Y = tree_regressor(robot, q, v, a, columns, width)
    U, s, Vt = np.linalg.svd((Y[..., kept] / sizes).reshape(-1, len(kept)), full_matrices=False)
    by_q, by_v, by_a = np.zeros(v.shape), np.zeros(v.shape), np.zeros(v.shape)
    for k, sign in ((0, 1.0), (-1, -1.0)):
        pi, u = np.zeros(Y.shape[-1]), sign / s[k] * U[:, k].reshape(v.shape)
        pi[kept] = Vt[k] / sizes
        for total, derivative in zip((by_q, by_v, by_a), rnea_derivatives(of_parameters(robot, pi), q, v, a)):
            total += np.einsum("sj,sjk->sk", u, derivative)
        for (word, j), x in zip(columns, pi[INERTIA * robot.nbodies:]):
            if word == "armature":
                by_a[:, j] += u[:, j] * x
            elif word == "damping":
                by_v[:, j] += u[:, j] * x
            elif word == "coulomb":
                by_v[:, j] += u[:, j] * x / width / np.cosh(np.clip(v[:, j] / width, -300.0, 300.0)) ** 2
    return np.log(s[0] / s[-1]), (by_q, by_v, by_a)


def of_parameters(robot, pi):
    """The packed robot with arbitrary inertial parameters, and no springs, dampers or armatures in its joints."""
    floats, ints = robot.packed.floats.copy(), robot.packed.ints
    packed = robot.packed._replace(floats=floats)
    links, dofs = links_of(packed)[1], dofs_of(packed)[1]
    moments = np.zeros((len(links), 4, 4))
    for b, P in enumerate(pseudo_inertia(pi[:INERTIA * robot.nbodies].reshape(-1, INERTIA))):
        i, at = ints[ints[BODIES_AT] + BODY_I * b + BODY_LINK], ints[BODY_FLOATS_AT] + BODY_F * b
        if i >= 0:
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = floats[at:at + 9].reshape(3, 3), floats[at + 9:at + BODY_F]
            moments[i] += X @ P @ X.T
    links[:, LINK_MASS:LINK_PITCH] = parameters_of(moments)
    links[:, LINK_SPREAD:LINK_END] = moments[(slice(None), *_TRIANGLE)]
    dofs[:, :3] = 0.0
    return replace(robot, packed=packed)


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
