"""Aghili's matrices: projector, constraint inertia, cross-coupling, and the map for passive joints.

In physical coordinates, with the metric tensor W of velocities as in `liedyn.mechanics.dynamics.projection`: P projects
velocities, P^T forces. For W = 1, P is symmetric and all equations are as printed in Aghili 2005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import SingularConfigurationError
from liedyn.mechanics.constraints.cluster_weights import ranks
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.dynamics_problem import REGULAR, non_negative, require_regular_tree
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.projection import inertia_matrix, metric_tensor, weighted_inverse
from liedyn.mechanics.tree.crba import crba
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Booleans

DECOUPLED = 1e-10
"""Cross-coupling below this fraction of the norm of the inertia is rounding."""

UNREACHED = 1e-8
"""Part of a unit force that active joints may fail to deliver and still count as sufficient: rounding, times the
condition number of a linkage at some distance from singular configurations."""


def _matrices(robot, q, metric, tolerance):
    """Leading shape, then M, P and W as (count, n, n)."""
    if isinstance(metric, str):
        require_regular_tree(robot, "the metric 'inertia'", "another metric")
    lead, rows = states(robot, q=q)
    G, M = constraint_jacobian(robot, rows), crba(robot, rows)
    W = metric_tensor(metric, M)
    P = np.eye(robot.nv) - weighted_inverse(G, ranks(robot, G, non_negative("rank_tolerance", tolerance))[0], W) @ G
    return lead, M, P, W


def projector(robot: Robot, q: ArrayLike, metric: ArrayLike | Literal["inertia"] | None = None,
              rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Projector P onto the velocities that the constraints admit.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        Metric tensor W of the velocities (Aghili 2005, eq. 8, 48), which defines orthogonality, and weights mixed
        units. 1 by default; "inertia" is the metric of the kinetic energy, in which impulses act.
    rank_tolerance : float
        Pivots of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    P : ndarray, shape (..., nv, nv)
        ``P v`` is the admissible velocity nearest to v in the metric; ``P.T @ f`` is the part of a force that moves
        (f_parallel), ``(I - P).T @ f`` the part that the constraints balance (f_perp). P is symmetric for metric 1, and
        ``W P`` always is. At a singular configuration P includes the additional motion.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or the metric is not positive
        definite.
    SingularConfigurationError
        The metric is "inertia", and that of the open tree is singular.

    Notes
    -----
    Aghili 2005, eq. 5 and 15; ``P = W^-1/2 P_W W^1/2`` with his P_W.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> P, G = ld.dynamics.projector(five_bar, five_bar.home), ld.constraint_jacobian(five_bar, five_bar.home)
    >>> bool(abs(P @ P - P).max() < 1e-12), bool(abs(G @ P).max() < 1e-12), round(float(P.trace()))
    (True, True, 2)
    """
    lead, _, P, _ = _matrices(robot, q, metric, rank_tolerance)
    return P.reshape(lead + P.shape[1:])


def constraint_inertia(robot: Robot, q: ArrayLike, form: Literal["M_c", "M_c'", "M_c''"] = "M_c",
                       metric: ArrayLike | Literal["inertia"] | None = None, scale: float | None = None,
                       rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """A constraint inertia matrix, M_c a = P^T (f - h) + C_c v.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    form : {"M_c", "M_c'", "M_c''"}
        ``M + P^T M - M P``, positive definite; ``P^T M P + (I - P)^T M (I - P)``, also symmetric;
        ``P^T M + s W (I - P)``, regular and the cheapest.
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        Metric tensor W of the velocities; 1 by default.
    scale : float, optional
        The number s of M_c'' (Aghili's gamma); by default ``|M| / |W|``.
    rank_tolerance : float
        Pivots of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    M_c : ndarray, shape (..., nv, nv)
        Inertia [kg m^2, kg m, kg].

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, an unknown form, a scale that
        is not positive, or a metric that is not positive definite.
    SingularConfigurationError
        The metric is "inertia", and that of the open tree is singular.

    Notes
    -----
    Aghili 2005, eq. 23, 28, 29. At a configuration without constraints (P = I) all three are M.

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> five_bar = ld.load("five_bar")
    >>> M_c = ld.dynamics.constraint_inertia(five_bar, five_bar.home, "M_c'")
    >>> bool(abs(M_c - M_c.T).max() < 1e-12), bool(np.linalg.eigvalsh(M_c)[0] > 0)
    (True, True)
    """
    lead, M, P, W = _matrices(robot, q, metric, rank_tolerance)
    return inertia_matrix(M, P, W, form, scale).reshape(lead + M.shape[1:])


def cross_coupling(robot: Robot, q: ArrayLike, form: Literal["M_c", "M_c'", "M_c''"] = "M_c",
                   metric: ArrayLike | Literal["inertia"] | None = None, scale: float | None = None,
                   rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Cross-coupling mu from the forces that cause motion to the constraint force.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    form : {"M_c", "M_c'", "M_c''"}
        The constraint inertia matrix with which it is used.
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        Metric tensor W of the velocities; 1 by default.
    scale : float, optional
        The number s of M_c''; by default ``|M| / |W|``.
    rank_tolerance : float
        Pivots of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    mu : ndarray, shape (..., nv, nv)
        ``(I - P)^T M M_c^-1``, in ``G^T lam = (I - P)^T (f - h) - mu (P^T (f - h) + C_c v)``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, an unknown form, a scale that
        is not positive, or a metric that is not positive definite.
    SingularConfigurationError
        The constraint inertia matrix is singular: some motion has no inertia; or the metric is "inertia", and that of
        the open tree is singular.

    Notes
    -----
    Aghili 2005, eq. 32. ``mu @ P.T`` vanishes where `is_decoupled` is true.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> ld.dynamics.cross_coupling(five_bar, five_bar.home).shape
    (4, 4)
    """
    lead, M, P, W = _matrices(robot, q, metric, rank_tolerance)
    M_c = inertia_matrix(M, P, W, form, scale)
    singular_values = np.linalg.svd(M_c, compute_uv=False)
    if not (singular_values[:, -1:] * REGULAR > singular_values[:, :1]).all():
        raise SingularConfigurationError(f"{form} of {robot.name!r} is singular here", singular_values)
    mu = np.swapaxes(np.eye(robot.nv) - P, -1, -2) @ M @ np.linalg.inv(M_c)
    return mu.reshape(lead + M.shape[1:])


def is_decoupled(robot: Robot, q: ArrayLike, metric: ArrayLike | Literal["inertia"] | None = None,
                 tolerance: float = DECOUPLED, rank_tolerance: float = RANK_TOLERANCE) -> bool | Booleans:
    """Whether the constraint force is independent of the forces that cause motion.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        Metric tensor W of the velocities; 1 by default. In the metric "inertia" every mechanism is decoupled.
    tolerance : float
        Largest norm of ``(I - P)^T M P``, as a fraction of the norm of M.
    rank_tolerance : float
        Pivots of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    decoupled : bool or ndarray of bool, shape (...)
        True where the inertia maps admissible velocities onto forces that do no work on inadmissible ones:
        ``(I - P)^T M P = 0``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or the metric is not positive
        definite.
    SingularConfigurationError
        The metric is "inertia", and that of the open tree is singular.

    Notes
    -----
    Aghili 2005, Proposition 3 and Appendix IV. There the condition is that the null space is invariant under M.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> ld.dynamics.is_decoupled(five_bar, five_bar.home)
    False
    >>> ld.dynamics.is_decoupled(five_bar, five_bar.home, metric="inertia")
    True
    """
    lead, M, P, _ = _matrices(robot, q, metric, rank_tolerance)
    coupling = np.swapaxes(np.eye(robot.nv) - P, -1, -2) @ M @ P
    decoupled = np.linalg.norm(coupling, axis=(1, 2)) <= tolerance * np.linalg.norm(M, axis=(1, 2))
    return decoupled.reshape(lead) if lead else bool(decoupled[0])


def actuated_forces(robot, active=None):
    """An orthonormal basis of the forces that the active joints can exert, shape (nv, count)."""
    if active is None:
        U, s, _ = np.linalg.svd(robot.actuator_matrix, full_matrices=False)
        return U[:, s > RANK_TOLERANCE * s.max(initial=0.0)]
    names = [active] if isinstance(active, str) else list(active)
    return np.eye(robot.nv)[:, [robot.velocity_index(name) for name in names]]


def passive_joint_map(robot: Robot, q: ArrayLike, active: Sequence[str] | None = None,
                      metric: ArrayLike | Literal["inertia"] | None = None,
                      rank_tolerance: float = RANK_TOLERANCE) -> tuple[Array, bool | Booleans]:
    """The map H by which active joints alone produce the motion of a force f_parallel on all joints: f = (I + H)
    f_parallel.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    active : sequence of str, optional
        Velocity coordinates with an actuator; by default those that the robot's actuators drive.
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        Metric tensor W of the velocities; forces are measured by W^-1. 1 by default.
    rank_tolerance : float
        Pivots of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    H : ndarray, shape (..., nv, nv)
        ``-(I - P)^T Q^+ (I - B)`` with ``Q = (I - B) (I - P)^T`` and B the projector onto the forces of the active
        joints. ``H f_parallel`` causes no motion, and (I + H) f_parallel has no force in the passive joints.
    controllable : bool or ndarray of bool, shape (...)
        Whether this holds for every f_parallel: the active joints are sufficient, and not singular here.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, an unknown coordinate, or the
        metric is not positive definite.
    SingularConfigurationError
        The metric is "inertia", and that of the open tree is singular.

    Notes
    -----
    Aghili 2005, eq. 53-60, and the controllability condition (56), (62).

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> five_bar = ld.load("five_bar")
    >>> H, controllable = ld.dynamics.passive_joint_map(five_bar, five_bar.home, active=["q1", "q4"])
    >>> f = (np.eye(4) + H) @ ld.dynamics.projector(five_bar, five_bar.home).T @ [1.0, 2.0, 3.0, 4.0]
    >>> bool(abs(f[[1, 2]]).max() < 1e-12), controllable
    (True, True)
    >>> ld.dynamics.passive_joint_map(five_bar, five_bar.home, active=["q1"])[1]
    False
    """
    lead, _, P, W = _matrices(robot, q, metric, rank_tolerance)
    L, identity = np.linalg.cholesky(W), np.eye(robot.nv)
    # in coordinates L^T v and L^-1 f the metric is 1, and the equations are as printed
    P = np.swapaxes(L, -1, -2) @ P @ np.linalg.inv(np.swapaxes(L, -1, -2))
    drives = np.linalg.inv(L) @ actuated_forces(robot, active)
    B = drives @ np.linalg.pinv(drives)
    Q = (identity - B) @ (identity - P)
    H = -(identity - P) @ np.linalg.pinv(Q, rcond=rank_tolerance) @ (identity - B)
    left = (identity - B) @ (identity + H) @ P
    controllable = np.linalg.norm(left, axis=(1, 2)) <= UNREACHED
    H = L @ H @ np.linalg.inv(L)
    return H.reshape(lead + H.shape[1:]), (controllable.reshape(lead) if lead else bool(controllable[0]))
