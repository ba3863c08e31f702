"""Public functions of the constraints: residual, velocity, Jacobian, bias, virtual coordinates, redundant rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cluster_weights import ranks
from liedyn.mechanics.constraints.constraint_rows import (
    bias_rows, derivative_rows, force_derivative_rows, pose_and_jacobian, reader_rows, residual_rows, velocity_rows,
)
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.constraints.families.cut import cut_derivatives_kernel
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.tree.kinematics import world_motion, world_positions, world_size, world_velocities
from liedyn.model.calls.boundary import states
from liedyn.model.packed import N_VIRTUAL

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@kernel
def closure_states(model, q, residual, virtual):
    """Residuals and virtual coordinates of each row."""
    work = np.empty(world_size(model))
    for b in range(q.shape[0]):
        world_positions(SCALAR, model, q[b], work)
        residual_rows(model, q[b], work, residual[b])
        virtual_kernel(model, work, virtual[b])


@kernel
def jacobian_states(model, q, G, E):
    """G and E (the rows of virtual velocities), for each row of q."""
    work = np.empty(world_size(model))
    for b in range(q.shape[0]):
        pose_and_jacobian(model, q[b], work, G[b])
        reader_rows(SCALAR, model, work, E[b])


@kernel
def bias_states(model, q, v, gamma):
    """-Gdot v of each row."""
    work, zero = np.empty(world_size(model)), np.zeros(v.shape[1])
    for b in range(q.shape[0]):
        world_motion(SCALAR, model, q[b], v[b], zero, work)
        bias_rows(model, q[b], v[b], work, gamma[b])
        for k in range(gamma.shape[1]):
            gamma[b, k] = -gamma[b, k]


@kernel
def velocity_states(model, q, v, psi):
    """psi = G v - b of each row."""
    work = np.empty(world_size(model))
    for b in range(q.shape[0]):
        world_positions(SCALAR, model, q[b], work)
        world_velocities(SCALAR, model, v[b], work)
        velocity_rows(model, q[b], v[b], work, psi[b])


@kernel
def all_derivatives(model, q, v, a, lam):
    """dpsi/dq, dphi/dq, dphi/dv (m, nv) and d(G^T lam)/dq (nv, nv) of one state."""
    m, n = lam.size, v.size
    work = np.empty(world_size(model))
    psi_q, phi_q, phi_v, force_q = np.empty((m, n)), np.empty((m, n)), np.empty((m, n)), np.zeros((n, n))
    world_motion(SCALAR, model, q, v, a, work)
    derivative_rows(model, q, v, a, work, (psi_q, phi_q, phi_v))
    force_derivative_rows(model, q, work, lam, force_q)
    return psi_q, phi_q, phi_v, force_q


@kernel
def reader_kernel(model, q, v, a):
    """E, and the derivatives of virtual velocities by q and of virtual accelerations by q and v: each (nz, nv)."""
    work, E = np.empty(world_size(model)), np.empty((model.ints[N_VIRTUAL], v.size))
    rho_q, rho_dot_q, rho_dot_v = np.zeros_like(E), np.zeros_like(E), np.zeros_like(E)
    world_motion(SCALAR, model, q, v, a, work)
    reader_rows(SCALAR, model, work, E)
    cut_derivatives_kernel(model, work, True, rho_q, rho_dot_q, rho_dot_v)
    return E, rho_q, rho_dot_q, rho_dot_v


def _of_states(robot, kernel, *shapes, defined=False, **given):
    """Results of a kernel for the given states; with `defined`, checked by `require_rows`."""
    lead, *given = states(robot, **given)
    sizes = {"m": len(robot.row_names), "nz": len(robot.virtual_names), "nv": robot.nv}
    found = [np.empty((len(given[0]), *(sizes[size] for size in shape.split()))) for shape in shapes]
    kernel(robot.packed, *given, *found)
    raise_errors(robot.functions)
    if defined:
        require_rows(robot, lead, found[0])
    return [x.reshape(lead + x.shape[1:]) for x in found]


def closure_error(robot: Robot, q: ArrayLike) -> Array:
    """Residuals of the constraints, such as the closure errors of loops.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    residual : ndarray, shape (..., m)
        One number per row of ``robot.row_names`` [rad, m]: for a cut joint the forbidden components, in the cut frame,
        of the log of the motion that it cannot make; for other kinds the gap. Zero when closed, in rows that constrain
        velocities only, and where the constraint is switched off.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Spencer 2004, 2.4.2; the cut frames are explained in `liedyn.mechanics.constraints.cut_joints`.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> bool(abs(ld.closure_error(loader, loader.home)).max() < 1e-12)
    True
    """
    return _of_states(robot, closure_states, "m", "nz", q=q)[0]


def virtual_coordinates(robot: Robot, q: ArrayLike) -> Array:
    """Coordinates of the cut joints, computed from the frames that they join.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    z : ndarray, shape (..., nz)
        One number per name of ``robot.virtual_names`` [rad, m]; a spherical cut shows the log of its rotation.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Spencer 2004, 4.4: q_v as a function of the tree's coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> dict(zip(five_bar.virtual_names, ld.virtual_coordinates(five_bar, five_bar.home).round(6).tolist()))
    {'pin': -2.094395}
    """
    return _of_states(robot, closure_states, "m", "nz", q=q)[1]


def velocity_error(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Residuals of the constraints on velocities.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    psi : ndarray, shape (..., m)
        ``G v - b`` [rad/s, m/s], rows as in ``robot.row_names``: for holonomic rows the rate of `closure_error`, for
        rolling the velocity of slip. Zero on the manifold.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        A constraint has no direction at q: the two points of a distance coincide, a disk lies flat (`require_rows`).

    Notes
    -----
    ``A(q) qdot = b(q, t)`` of Yun and Sarkar 1998, eq. 4 to 6.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> ld.constraints.velocity_error(five_bar, five_bar.home, [0.0] * 4).shape
    (5,)
    """
    return _of_states(robot, velocity_states, "m", defined=True, q=q, v=v)[0]


def constraint_jacobian(robot: Robot, q: ArrayLike) -> Array:
    """Constraint Jacobian, G v = b.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    G : ndarray, shape (..., m, nv)
        Rows as in ``robot.row_names``: for a cut joint the forbidden components of the twist of its child side relative
        to its parent side, in the cut frame. Redundant rows are included; rows of inactive constraints are zero.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        A constraint has no direction at q: the two points of a distance coincide, a disk lies flat (`require_rows`).

    Notes
    -----
    Spencer 2004, eq. 2.1b and 4.4.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.constraint_jacobian(loader, loader.home).shape
    (15, 8)
    """
    return _of_states(robot, jacobian_states, "m nv", "nz nv", defined=True, q=q)[0]


def virtual_jacobian(robot: Robot, q: ArrayLike) -> Array:
    """Linear map from v to the velocities of the cut joints' coordinates.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    E : ndarray, shape (..., nz, nv)
        Rows as in ``robot.virtual_names``; a spherical cut's are its angular velocity in the child's cut frame.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Spencer 2004, 4.4.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> ld.virtual_jacobian(five_bar, five_bar.home).round(12).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    return _of_states(robot, jacobian_states, "m nv", "nz nv", q=q)[1]


def constraint_bias(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Right side of the constraints on accelerations, G a = gamma.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.

    Returns
    -------
    gamma : ndarray, shape (..., m)
        ``db/dt - dG/dt v`` [rad/s^2, m/s^2].

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        A constraint has no direction at q: the two points of a distance coincide, a disk lies flat (`require_rows`).

    Notes
    -----
    Spencer 2004, eq. 2.3.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> float(abs(ld.constraint_bias(loader, loader.home, [0.0] * 8)).max())
    0.0
    """
    return _of_states(robot, bias_states, "m", defined=True, q=q, v=v)[0]


def require_defined(robot, q, v):
    """Raise the cause if the rows of the constraints, or their bias, are not finite (`require_rows`)."""
    constraint_jacobian(robot, q)
    constraint_bias(robot, q, v)


def rank_of(robot, q, tolerance, rows=None):
    """Rank of G, or of some of its rows, at one configuration, and the names of the dependent rows."""
    G = constraint_jacobian(robot, q)
    if rows is not None:
        G[~rows] = 0.0
    (rank,), (order,), _ = ranks(robot, G[None], tolerance)
    return int(rank), tuple(robot.row_names[k] for k in sorted(order[rank:]) if robot.active_rows[k])
