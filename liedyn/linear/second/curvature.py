"""Curvature of the constraint surface, and the motion of a body along it, to second order."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import require_robot
from liedyn.mechanics.constraints.loops import constraint_jacobian, velocity_error
from liedyn.mechanics.elements.generalized import without_elements
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_dq
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames


@dataclass(frozen=True)
class Curvature:
    """How a mechanism moves about a configuration, to second order in its independent coordinates y.

    Attributes
    ----------
    coordinates : tuple of str
        The independent coordinates.
    first : ndarray, shape (..., nv, p)
        Displacements of all coordinates for unit displacements of these.
    second : ndarray, shape (..., nv, p, p)
        Their second derivatives, symmetric: the mechanism is closed at ``integrate(q, d)`` with
        ``d = first dy + second dy dy / 2``, to third order.
    twist, twist_second : ndarray, shapes (..., 6, p) and (..., 6, p, p), or None
        The displacement of the body, a twist (angular, linear) in its own frame X: it moves to
        X exp(twist dy + twist_second dy dy / 2), to third order.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> found = ld.curvature(arm, arm.home, ("q1", "q2"), arm.body_names[-1])
    >>> found.second.shape, found.twist_second.shape
    ((4, 2, 2), (6, 2, 2))
    """

    coordinates: tuple[str, ...]
    first: Array
    second: Array
    twist: Array | None = None
    twist_second: Array | None = None


def curvature(robot: Robot, q: ArrayLike, independent: IndependentNames = None, body: str | None = None) -> Curvature:
    """Curvature of the surface on which a mechanism moves, and second-order motion of a body.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configurations [rad, m; quaternions (x, y, z, w)] at which the loops are closed.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates, as for `linearize`.
    body : str, optional
        A body or frame, the motion of which is asked for.

    Returns
    -------
    Curvature
        First and second derivatives of all displacements, and of the body's.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        What `linearize` refuses; a constraint is a user's function.
    SingularConfigurationError
        The configuration is singular, or the coordinates do not determine it.

    Notes
    -----
    The residuals g(q exp d) stay zero: G d_12 is minus their second variation, in the exponential's chart, exactly. A
    step of inverse kinematics or an analysis of tolerances that uses it errs by the third power.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> found = ld.curvature(arm, arm.home, ("q1", "q2"))
    >>> dy = np.array([0.01, -0.02])
    >>> q = ld.integrate(arm, arm.home, found.first @ dy + 0.5 * found.second @ dy @ dy)
    >>> bool(abs(ld.closure_error(arm, q)).max() < 1e-5)
    True
    """
    require_robot(robot)
    robot = robot if robot.elements is None else without_elements(robot)
    lead, rows = states(robot, q=q)
    v = np.zeros((len(rows), robot.nv))
    if robot.functions:  # frames may be moved
        G = constraint_jacobian(robot, rows)
        v = -np.einsum("bji,bi->bj", np.linalg.pinv(G, rcond=1e-9), velocity_error(robot, rows, v))
    given = (x.reshape(*lead, x.shape[1]) for x in (rows, v))  # as they were given, for errors
    model = linearize(robot, *given, np.zeros(robot.nv), independent, second={})
    p = model.K.shape[-1]
    N, bends = (x.reshape(len(rows), robot.nv, *x.shape[len(lead) + 1:]) for x in (model.K, model.second.q))
    arrays, body_arrays = (N, bends[:, :, :p, :p]), (None, None)
    if body is not None:
        J, turned = body_jacobian(robot, rows, body), body_jacobian_dq(robot, rows, body)
        bent = np.einsum("bijk,bjx,bky->bixy", turned, N, N, optimize=True)
        second = np.einsum("bij,bjxy->bixy", J, arrays[1]) + 0.5 * (bent + bent.swapaxes(2, 3))
        body_arrays = tuple(x.reshape(*lead, *x.shape[1:]) for x in (J @ N, second))
    return Curvature(model.states[:p], *(x.reshape(*lead, *x.shape[1:]) for x in arrays), *body_arrays)
