"""Derivatives of constrained accelerations and multipliers by all coordinates, including those that open the loops.

Accelerations and multipliers solve M a + G^T lambda = tau - h, G a = gamma at any (q, v). Their variations obey, with
ID and phi = G a - gamma at constant a,

    M da + G^T dlambda = dtau - dID - dG^T lambda        G da = -dphi

which one factorization solves for all columns [dtheta, dv, dtau] (`liedyn.machine.linalg.saddle`). If rows are
redundant, the multipliers of minimum norm, lambda = (G^T)^+ r, vary also with the space of rows: with y of minimum norm
in G y = lambda,

    dlambda = (G^T)^+ (dr - dG^T lambda) + (1 - G G^+) dG y
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError
from liedyn.machine.linalg.nearest import orthonormal_rows, shortest
from liedyn.machine.linalg.saddle import factor_saddle, solve_saddle
from liedyn.machine.linalg.vectors import copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import derivative_rows
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import Motion
from liedyn.mechanics.elements.generalized import forces_and_derivatives, without_elements
from liedyn.mechanics.tree.kinematics import world_motion
from liedyn.mechanics.tree.rnea_derivatives import derivatives_size
from liedyn.model.calls.batches import batch
from liedyn.model.calls.boundary import states, wrenches
from liedyn.model.constraint_records import ranking_of
from liedyn.model.packed import NV, N_ROWS, PackedModel
from liedyn.motion.simulation.integrators.derivatives import Derivatives, put_mechanism_derivatives

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

Found = namedtuple("Found", "a lam")
"""Derivatives at all states: (count, nv, 3 nv) and (count, m, 3 nv), initially zero; columns theta, v, tau."""


Matrices = namedtuple("Matrices", "derivatives G M L forces solved rates Y W Z order rest y")
"""`Derivatives` at one state; its terms; right sides and solutions by columns theta, v and tau; and scratch arrays."""


@kernel
def room_of(model):
    """Arrays for one state."""
    n, m, empty = model.ints[NV], model.ints[N_ROWS], np.empty
    d = Derivatives(empty((n, n)), empty((n, n)), empty((n, n)), empty((n, n)), empty((n, n)), empty((m, n)),
                    empty((m, n)), empty((m, n)), empty(derivatives_size(model)), empty(n))
    return Matrices(d, empty((m, n)), empty((n, n)), empty((n, n)), empty((n, 3 * n)), empty((n, 3 * n)),
                    empty((m, 3 * n)), empty((m, 4 * n)), empty((n, m + 3 * n)), empty((m, n + 1)),
                    empty(max(m, n), np.int64), np.zeros(n), empty(n))


@kernel_in_place
def vary_multipliers(model, q, lam, rank, room, out):
    """out (m, 3 n) with G^T out = room.forces, of minimum norm, including the variation of the row space."""
    d, G, forces, W, Z, order, y = room.derivatives, room.G, room.forces, room.W, room.Z, room.order, room.y
    rest = room.rest
    n, m = G.shape[1], G.shape[0]
    for j in range(n):
        for i in range(m):
            W[j, i] = G[i, j]
        for c in range(3 * n):
            W[j, m + c] = forces[j, c]
    found = min(rank, orthonormal_rows(W, 0.0, order, 3 * n)[0])
    for i in range(m):
        for c in range(3 * n):
            s = 0.0
            for k in range(found):
                s += W[k, i] * W[k, m + c]
            out[i, c] = s
    if rank == m:
        return
    for i in range(m):
        for j in range(n):
            Z[i, j] = G[i, j]
        Z[i, n] = lam[i]
    shortest(Z, min(rank, orthonormal_rows(Z, 0.0, order)[0]), y)
    # d(G y) is the variation of the constraints' accelerations at v = 0
    world_motion(SCALAR, model, q, rest, y, d.work)
    derivative_rows(model, q, rest, y, d.work, (d.psi_q, d.phi_q, d.phi_v))
    world_motion(SCALAR, model, q, rest, rest, d.work)  # minus the part of moving constraints
    at_zero = d.phi_v
    derivative_rows(model, q, rest, rest, d.work, (d.psi_q, at_zero, d.psi_q))
    for c in range(n):
        for i in range(m):
            d.phi_q[i, c] -= at_zero[i, c]
        for k in range(found):
            s = 0.0
            for i in range(m):
                s += W[k, i] * d.phi_q[i, c]
            for i in range(m):
                d.phi_q[i, c] -= s * W[k, i]
        for i in range(m):
            out[i, c] += d.phi_q[i, c]


@batch
def derivative_states(begin, end, model, f_ext, motion, tolerance, found):
    """Derivatives at the states of a `Motion`; zero rows where they are not determined."""
    q, v, a, lam = motion
    n, m = model.ints[NV], model.ints[N_ROWS]
    model = PackedModel(model.ints, model.floats.copy())  # holds the results of moving targets and custom rows
    room = room_of(model)
    d, G, M, L, forces, solved, rates, Y, _, _, order, _, _ = room
    for b in range(begin, end):
        put_mechanism_derivatives(model, f_ext[b], Motion(q[b], v[b], a[b], lam[b]), G, M, d)
        for i in range(n):
            for j in range(n):
                forces[i, j], forces[i, n + j] = -(d.ID_q[i, j] + d.force_q[i, j]), -d.ID_v[i, j]
                forces[i, 2 * n + j] = 1.0 if i == j else 0.0
            copy_to(forces[i], solved[i])
        for i in range(m):
            for j in range(n):
                rates[i, j], rates[i, n + j], rates[i, 2 * n + j] = -d.phi_q[i, j], -d.phi_v[i, j], 0.0
        for i in range(n):
            for j in range(n):
                d.tau_q[i, j] = M[i, j]  # a copy, as a singular M is changed
        added = factor_saddle(M, G, L)
        if added < 0:
            continue
        rank = solve_saddle(
            L, added, G, ranking_of(model, tolerance), (solved, rates), (Y, order), found.a[b])
        if m == 0:
            continue
        for i in range(n):  # forces that the constraints balance
            for k in range(n):
                x = d.tau_q[i, k]
                if x != 0.0:
                    for c in range(3 * n):
                        forces[i, c] -= x * found.a[b, k, c]
        vary_multipliers(model, q[b], lam[b], rank, room, found.lam[b])


@dataclass(frozen=True)
class ForwardDynamicsDerivatives:
    """Constrained accelerations and multipliers with their derivatives; arrays have the leading axes of a batch.

    Attributes
    ----------
    a : ndarray, shape (..., nv)
    lam : ndarray, shape (..., m)
    a_q, a_v, a_tau : ndarray, shape (..., nv, nv)
        Derivatives of the accelerations by displacements in the tangent space at q, by v and by tau.
    lam_q, lam_v, lam_tau : ndarray, shape (..., m, nv)
        Derivatives of the multipliers.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.forward_dynamics_derivatives(panda, panda.home, [0.0] * 7, [0.0] * 7).a_v.shape
    (7, 7)
    """

    a: Array
    lam: Array
    a_q: Array
    a_v: Array
    a_tau: Array
    lam_q: Array
    lam_v: Array
    lam_tau: Array


def forward_dynamics_derivatives(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 f_ext: Wrenches | None = None,
                                 rank_tolerance: float = RANK_TOLERANCE) -> ForwardDynamicsDerivatives:
    """Derivatives of constrained accelerations and multipliers by all coordinates of the tree, velocities and forces.

    Each coordinate varies on its own, even if that opens loops: accelerations are those of ``M a + G^T lam = tau - h,
    G a = gamma`` at (q, v), as stages of integrators and solvers in redundant coordinates use them. For minimal models
    on the constraint manifold use `linearize`.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N], without those of force elements, which are added and differentiated.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    ForwardDynamicsDerivatives
        ``a, lam`` and ``a_q, a_v, a_tau, lam_q, lam_v, lam_tau``.

    Raises
    ------
    InputError
        As `forward_dynamics`; or the robot has one-sided constraints, which `linearize` supports.
    SingularConfigurationError
        As `forward_dynamics`.

    Notes
    -----
    Exact to rounding, without step size. Redundant rows at q are left out, as a displacement may make them
    contradictory; their multipliers are differentiable only along displacements that keep the rank.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> found = ld.forward_dynamics_derivatives(arm, arm.home, np.zeros(4), np.zeros(4))
    >>> found.a_q.shape, found.lam_tau.shape
    ((4, 4), (5, 4))
    >>> bool(abs(ld.constraint_jacobian(arm, arm.home) @ found.a_tau).max() < 1e-12)  # forces open no loop
    True
    """
    known = forward_dynamics(robot, q, v, tau, f_ext=f_ext, rank_tolerance=rank_tolerance)
    if watches(robot):
        raise InputError(f"{robot.name!r} has one-sided constraints: take linearize, or switch them to what they are "
                         "with robot.switched")
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    n, m, plain = robot.nv, len(robot.row_names), robot
    a, lam = known.a.reshape(len(q), n).copy(), known.lam.reshape(len(q), m).copy()
    if robot.elements is not None:
        plain = without_elements(robot)
    found = Found(np.zeros((len(q), n, 3 * n)), np.zeros((len(q), m, 3 * n)))
    forces = wrenches(robot, f_ext, lead)
    derivative_states(plain.packed, forces, Motion(q, v, a, lam), float(rank_tolerance), found)
    raise_errors(robot.functions)
    if robot.elements is not None:
        _, by_q, by_v = forces_and_derivatives(robot, robot.t, q, v)
        for x in found:
            x[..., :n] += x[..., 2 * n:] @ by_q
            x[..., n:2 * n] += x[..., 2 * n:] @ by_v
    parts = (x[..., k * n:(k + 1) * n].reshape(*lead, x.shape[1], n) for x in found for k in range(3))
    return ForwardDynamicsDerivatives(known.a, known.lam, *parts)
