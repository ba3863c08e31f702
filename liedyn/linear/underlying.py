"""The linearized underlying ODE in all coordinates."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.contact_linearization import settled_without_friction
from liedyn.linear.operating_point import CLOSURE_TOLERANCE, linearize_at
from liedyn.linear.lower_rows import turning
from liedyn.machine.arguments import non_negative, positive
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import given_coordinates
from liedyn.mechanics.constraints.loops import reader_kernel
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.boundary import states, wrenches

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames, Wrenches


def underlying(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, independent: IndependentNames = None,
               f_ext: Wrenches | None = None, closure_tolerance: float = CLOSURE_TOLERANCE,
               rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Linearized underlying ODE in all coordinates, A = [Df] P (Spencer 2004).

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] at which the loops are closed.
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s] that satisfies the constraints.
    tau : array_like, shape (nv,)
        Generalised forces [N m, N].
    independent : sequence of str, "auto", "tangent" or None
        Coordinates that define the projection P onto the tangent space of the constraint manifold, as for `linearize`.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    A : ndarray, shape (2 nv, 2 nv)
        d(dq, dv)/dt for a tangent perturbation (dq, dv), which is first projected by P. Its rank is at most 2p; at an
        equilibrium its spectrum is that of the local state space, and zeros.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v violates the constraints, a shape does not fit, an entry is not finite, a name is unknown, or there are too
        many or too few coordinates; a contact slides with friction, or is at a transition; the robot has force
        elements.
    SingularConfigurationError
        A constraint has no direction here, the configuration is singular, the independent coordinates do not determine
        the motion, or some motion has no inertia.

    Warns
    -----
    ConditionWarning
        As for `linearize`.

    Notes
    -----
    Spencer 2004, eq. 4.3 and 4.4, theorems 4.1.1 and 4.1.2.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.underlying(loader, loader.home, [0.0] * 8, [0.0] * 8).shape
    (16, 16)
    """
    independent = given_coordinates("independent", independent)
    closure_tolerance = positive("closure_tolerance", closure_tolerance)
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    if lead:
        raise InputError(f"underlying takes one state, got leading axes {lead}")
    if robot.element_names:
        raise InputError(f"underlying takes no force elements, as {robot.element_names[0]!r} is one; linearize() does")
    forces = wrenches(robot, f_ext, lead)[0]
    robot = settled_without_friction(robot, q[0], v[0], tau[0], forces, rank_tolerance, "the underlying ODE")
    state = State(q[0], v[0], tau[0], forces)
    found = linearize_at(robot, state, independent, None, closure_tolerance, rank_tolerance)
    y, w, local = found.coordinates, found.velocities, found.local
    p_y, x = len(y.names), len(y.names) + len(w.names)
    rates = local.X[:, :x].copy()
    turning(robot.packed, v[0], local.N, p_y, rates)
    along_motion = np.vstack([rates, local.da[:, :x]])
    E, rho_q, _, _ = reader_kernel(robot.packed, q[0], v[0], local.a)
    R_y, R_w = y.matrix(E), w.matrix(E)
    rate, reads = np.zeros_like(R_w), w.virtual >= 0
    rate[reads] = rho_q[w.virtual[reads]]
    return along_motion @ np.block([[R_y, np.zeros_like(R_y)], [rate, R_w]])
