"""Tensions of cables: inputs of least norm within limits."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model.calls.boundary import states, wrenches

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

RANK = 1e-9
"""Singular values below this part of the largest one count as zero."""
MET = 1e-9
"""Largest part of the forces, and of the tensions beyond their limits, that may be left."""


def tensions(robot: Robot, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, low: ArrayLike = 0.0,
             high: ArrayLike = np.inf, f_ext: Wrenches | None = None) -> Array:
    """Inputs of least norm within limits that make a motion, such as the tensions of the cables of a robot.

    Parameters
    ----------
    robot : Robot
        With actuators; cables are those of ``Builder.winch``.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v, a : array_like, shape (..., nv), optional
        Velocity and acceleration; at rest by default.
    low, high : array_like, shape (nu,) or number
        Limits of the inputs.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, each in its body's own frame, as for `rnea`.

    Returns
    -------
    u : ndarray, shape (..., nu)
        In the order of ``robot.actuator_names``.

    Raises
    ------
    InputError
        No inputs within the limits make the motion; a shape does not fit, an entry is not finite, or a quaternion is
        not of unit length.

    Notes
    -----
    The inputs that make the motion are u_0 + Z z, u_0 the shortest ones and Z orthonormal; the shortest z with
    low <= u_0 + Z z <= high is found as a least-distance problem by non-negative least squares (Lawson and Hanson 1974,
    chapter 23), in finitely many steps. With loops the balance holds in the directions that they leave free.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder("bob", gravity=(0.0, 0.0, -9.81))
    >>> b.body("bob", mass=1.0)
    >>> b.joint("motion", "translational", "ground", "bob", driven=False)
    >>> for k, (x, y) in enumerate(((1, 0), (-1, 1), (-1, -1), (0, 0))):
    ...     b.winch(f"winch{k}", [("ground", (x, y, 1.0)), ("bob", (0, 0, 0))])
    >>> ld.tensions(b.build(), [0.0, 0.0, 0.0], low=1.0).round(3)
    array([3.7  , 2.266, 2.266, 4.578])
    """
    require_robot(robot)
    rest = np.zeros(robot.nv)
    lead, q, v, a = states(robot, q=q, v=rest if v is None else v, a=rest if a is None else a)
    wrenches(robot, f_ext, lead)
    limits = []
    for name, x in (("low", low), ("high", high)):
        x = floats(name, x)
        if x.ndim > 1 or x.ndim and x.shape != (len(robot.actuator_names),) or np.isnan(x).any():
            raise InputError(f"{name} must be a number, or one for each of {len(robot.actuator_names)} actuators")
        limits.append(np.broadcast_to(x, len(robot.actuator_names)))
    tau = rnea(robot, *(x.reshape(lead + (-1,)) for x in (q, v, a)), f_ext).reshape(len(q), -1)
    if robot.elements is not None:
        tau = tau - element_forces(robot, q, v)
    S, u = actuator_matrix(robot, q), np.empty((len(q), len(robot.actuator_names)))
    G = constraint_jacobian(robot, q) if robot.row_names else None
    for b in range(len(q)):
        with of_the_batch(lead, b):
            K = np.eye(robot.nv) if G is None else _null_space(G[b])
            u[b] = _shortest(robot, K.T @ S[b], K.T @ tau[b], *limits)
    return u.reshape(lead + (-1,))


def _null_space(G):
    """Orthonormal columns that G maps to zero."""
    _, s, Vt = np.linalg.svd(G)
    return Vt[np.count_nonzero(s > RANK * s.max(initial=0.0)):].T


def _shortest(robot, S, tau, low, high):
    """The shortest u with S u = tau and low <= u <= high; InputError if there is none."""
    from scipy.optimize import nnls

    u = np.linalg.pinv(S, rcond=RANK) @ tau
    size = max(1.0, np.abs(tau).max(initial=0.0))
    if np.abs(S @ u - tau).max(initial=0.0) > MET * size:
        raise InputError(f"the actuators of {robot.name!r} cannot make this motion, whatever their inputs")
    Z = _null_space(S)
    rows = np.vstack([Z[np.isfinite(low)], -Z[np.isfinite(high)]])
    least = np.concatenate([(low - u)[np.isfinite(low)], (u - high)[np.isfinite(high)]])
    scale = max(1.0, np.abs(least).max(initial=0.0))
    if (least > MET * scale).any():
        E, f = np.vstack([rows.T, least / scale]), np.append(np.zeros(Z.shape[1]), 1.0)
        y, left = nnls(E, f)
        r = E @ y - f
        if left < 1e-12 or r[-1] > -1e-12:
            raise _out_of(robot, low, high)
        u = u + Z @ (-scale * r[:-1] / r[-1])
    if (u < low - MET * scale).any() or (u > high + MET * scale).any():
        raise _out_of(robot, low, high)
    return np.clip(u, low, high) if np.abs(S @ np.clip(u, low, high) - tau).max(initial=0.0) < MET * size else u


def _out_of(robot, low, high):
    return InputError(f"no tensions between {low.min():g} and {high.max():g} of the actuators of {robot.name!r} make "
                      "this motion")
