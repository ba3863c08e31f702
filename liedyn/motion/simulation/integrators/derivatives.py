"""Derivatives for implicit methods: of the equations of motion at a state, and the Jacobian of the right side.

SciPy's implicit solvers (`adaptive`) get the exact Jacobian of their right side, which maps y = (u, v, W) to (udot, a,
powers), at the projection (q', v') of (q_c exp u, v) on the constraints. A variation of y displaces q by dq = J_r(u) du
and changes v by dv; with the right inverse G^# of the stabilisation (of least kinetic energy, or in the dependent
coordinates alone) the projection varies by

    dq' = dq - G_h^# G_h dq                     holonomic rows h
    dv' = dv - G^# (G dv + dpsi/dq dq')         psi = G v - b, all rows

(with no projection, dq' = dq and dv' = dv). Differentiating ID(q, v, a) + G^T lambda = tau and
phi = G a + Gdot v - bdot = 0 gives the accelerations: for independent rows, with Z a basis of G's null space,

    da = G^+ (-dphi) + Z (Z^T M Z)^-1 Z^T (-dF - M G^+ (-dphi))

    dF = (dID/dq + d(G^T lambda)/dq - dtau/dq) dq' + (dID/dv - dtau/dv) dv'        dphi = dphi/dq dq' + dphi/dv dv'

Baumgarte's terms and those of the velocity level are part of phi. With u' = log(q_c^-1 q'), the variation of
udot = J_r^-1(u') v' is J_r^-1 dv' + d(J_r^-1 v')/du (J_r^-1 dq').

G^# is evaluated at the projected state, and the residual of a loop is assumed to vary by G dq; both are exact on the
constraints. Off them the error is of the size of the residual, which is harmless in the solver's Newton method, as the
right side itself is exact.
"""
# mypy: ignore-errors
from collections import namedtuple

import numpy as np

from liedyn.lie.slopes import inverse_slope
from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.linalg.vectors import inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cluster_weights import pseudoinverse, rank_of_rows, ranks
from liedyn.mechanics.constraints.constraint_rows import derivative_rows, force_derivative_rows, jacobian_rows
from liedyn.mechanics.dynamics.state import Motion
from liedyn.mechanics.elements.generalized import energy_slope
from liedyn.mechanics.tree.configuration import difference_kernel
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import (
    composite_derivatives, derivatives_size, rnea_derivatives, world_motion,
)
from liedyn.model.packed import FREE
from liedyn.model.packed_records import dof_count, first_dof, get3, kind, link_count
from liedyn.motion.simulation.coordinate_rates import body_rates
from liedyn.motion.simulation.inputs import add_feedback
from liedyn.motion.simulation.workspace import MINIMAL, PROJECTION

Derivatives = namedtuple("Derivatives", "ID_q ID_v force_q tau_q tau_v psi_q phi_q phi_v work ignored")
"""Derivatives of ID(q, v, a), of G^T lambda, and of the inputs (n, n); of psi = G v - b and phi = G a + Gdot v - bdot
(m, n); in the tangent space at q, and by v. And scratch numbers."""


@kernel
def make_derivatives(model, work):
    """Arrays for the derivatives."""
    m, n = work.G.shape
    return Derivatives(
        np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((m, n)),
        np.empty((m, n)), np.empty((m, n)), np.empty(derivatives_size(model)), np.empty(n))


@kernel_in_place
def put_mechanism_derivatives(model, f_ext, motion, G, M, derivatives):
    """G, M and all derivatives, except those of inputs and force elements, which are set to zero."""
    q, v, a, lam = motion
    world_motion(SCALAR, model, q, v, a, derivatives.work)
    jacobian_rows(model, q, derivatives.work, G)
    slopes = derivatives.psi_q, derivatives.phi_q, derivatives.phi_v
    derivative_rows(model, q, v, a, derivatives.work, slopes)
    found = derivatives.ignored, derivatives.ID_q, derivatives.ID_v, M
    composite_derivatives(SCALAR, model, q, f_ext, derivatives.work, found)
    for zero in (derivatives.force_q, derivatives.tau_q, derivatives.tau_v):
        zero[:] = 0.0
    force_derivative_rows(model, q, derivatives.work, lam, derivatives.force_q)


@kernel_in_place
def put_derivatives(model, settings, work, t, motion, derivatives):
    """All derivatives at a state; the time of moving constraints, work.M and work.G must be up to date."""
    put_mechanism_derivatives(model, work.f_ext, motion, work.G, work.M, derivatives)
    add_feedback(settings, work, t, motion.q, motion.v, derivatives.tau_q, derivatives.tau_v)


@kernel_in_place
def columns_by_exponent(model, u, D, column, out):
    """out = D J_r(u): from columns in the tangent space to columns by u of q exp(u); `column` (2, n) is scratch."""
    n = u.size
    for c in range(n):
        column[0, :] = 0.0
        column[0, c] = 1.0
        body_rates(model, u, column[0], column[1])
        for i in range(D.shape[0]):
            out[i, c] = inner(D[i], column[1])


@inline
def twist_of(free, x, j):
    """The entries of a ball or free joint in a vector, as a twist; the linear part of a ball joint is zero."""
    return get3(SCALAR, x, j), get3(SCALAR, x, j + 3) if free else (0.0, 0.0, 0.0)


@kernel_in_place
def local_rate_derivatives(model, u, v, D):
    """D = d(J_r^-1(u) v)/du (n, n), joint by joint."""
    D[:, :] = 0.0
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) == 1:
            continue
        free = kind(model, i) == FREE
        A, Q = inverse_slope(twist_of(free, u, j), twist_of(free, v, j))
        for r in range(3):
            for c in range(3):
                D[j + r, j + c] = A[3 * r + c]
                if free:
                    D[j + 3 + r, j + c], D[j + 3 + r, j + 3 + c] = Q[3 * r + c], A[3 * r + c]


def jacobian_by_exponent(model, u):
    """J_r(u), joint by joint."""
    out = np.empty((u.size, u.size))
    columns_by_exponent(model, u, np.eye(u.size), np.empty((2, u.size)), out)
    return out


class RightInverse:
    """G^# of the stabilisation, and the projection of variations of the state."""

    def __init__(self, robot, settings, work, psi_q):
        self.robot, self.G, self.psi_q, self.holonomic = robot, work.G, psi_q, work.holonomic != 0
        self.root, self.marks = np.eye(len(work.M)), np.ones(work.dependent.shape)
        self.tolerance = settings.rank_tolerance
        if settings.stabilisation == MINIMAL:
            self.marks = work.dependent
        else:
            try:
                self.root = np.linalg.cholesky(work.M)
            except np.linalg.LinAlgError:  # as in `metric`
                pass

    def of(self, rows, marks):
        """G^# for the marked rows; the columns of the others are zero."""
        marked = rows * marks
        Y = np.linalg.solve(self.root, marked.T).T
        return np.linalg.solve(self.root.T, pseudoinverse(Y[None], rank_of_rows(self.robot, marked, self.tolerance))[0])

    def positions(self, dq):
        """dq' = dq - G_h^# G_h dq."""
        G = np.where(self.holonomic[:, None], self.G, 0.0)
        return dq - self.of(G, self.marks[0]) @ (G @ dq)

    def velocities(self, dq, dv):
        """dv' = dv - G^# (G dv + dpsi/dq dq')."""
        return dv - self.of(self.G, self.marks[1]) @ (self.G @ dv + self.psi_q @ dq)


def at_energy(robot, q, v, h, M, inverse, variation):
    """(dq', dv') if the projection also restores the energy, E(q', v') = E_0 + W; W are the last two columns.

    The correction is a multiple s of the direction e of `correct_energy`: ds = (dW - dE) / (dE along e).
    """
    rest, (dq, dv) = np.zeros(len(v)), variation
    fall = rnea(robot, q, rest, rest)
    if robot.elements is not None:
        fall += energy_slope(robot, q)[0]
    # the derivative of the kinetic energy, v . d(M v)/dq / 2, from the force of accelerations v
    E_q = fall + 0.5 * v @ (rnea_derivatives(robot, q, rest, v)[0] - rnea_derivatives(robot, q, rest, rest)[0])
    e_q = h * h * np.linalg.solve(M, fall)
    e_q -= inverse.of(inverse.G, inverse.marks[1]) @ (inverse.G @ e_q)
    e_v = inverse.velocities(e_q, v)
    slope = E_q @ e_q + v @ M @ e_v
    if not slope > 0.0:  # at rest in equilibrium no direction changes the energy
        return dq, dv
    ds = -(E_q @ dq + v @ M @ dv)
    ds[-2:] += 1.0
    return dq + np.outer(e_q, ds / slope), dv + np.outer(e_v, ds / slope)


def accelerations(G, M, dF, dphi):
    """da of M da + G^T dlambda = -dF, G da = -dphi, for independent rows."""
    (U, s, Vt), rank = np.linalg.svd(G), len(G)
    Z, da = Vt[rank:].T, -Vt[:rank].T @ (U.T @ dphi / s[:, None])
    return da - Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (dF + M @ da))


def right_side_jacobian(run, settings, t, h, center, y):
    """The derivative (2 nv + 2, 2 nv + 2) of ydot by y, whose state is row 1 of run.single, and its inputs in work.tau.

    Raises LinAlgError if some motion has no inertia.
    """
    work, n = run.x, run.robot.nv
    q, v, a, lam = (part[1].copy() for part in (run.single.q, run.single.v, run.single.a, run.single.lam))
    derivatives = make_derivatives(run.packed, work)
    put_derivatives(run.packed, settings, work, t, Motion(q, v, a, lam), derivatives)
    dq, dv, J = np.zeros((n, 2 * n + 2)), np.zeros((n, 2 * n + 2)), np.empty((2 * n + 2, 2 * n + 2))
    dq[:, :n], dv[:, n:2 * n] = jacobian_by_exponent(run.packed, y[:n]), np.eye(n)
    if settings.stabilisation in (PROJECTION, MINIMAL):
        inverse = RightInverse(run.robot, settings, work, derivatives.psi_q)
        dq = inverse.positions(dq)
        dv = inverse.velocities(dq, dv)
        if settings.energy:
            dq, dv = at_energy(run.robot, q, v, h, work.M, inverse, (dq, dv))
    dtau, dID = derivatives.tau_q @ dq + derivatives.tau_v @ dv, derivatives.ID_q @ dq + derivatives.ID_v @ dv
    dphi = (derivatives.phi_q + settings.rate * derivatives.psi_q + settings.stiffness * work.holonomic[:, None]
            * work.G) @ dq + (derivatives.phi_v + settings.rate * work.G) @ dv
    (rank,), (order,), _ = ranks(run.robot, work.G[None], settings.rank_tolerance)
    rows = order[:rank]  # redundant rows may have drifted apart
    J[n:2 * n] = da = accelerations(work.G[rows], work.M, dID + derivatives.force_q @ dq - dtau, dphi[rows])
    # the rows of `put_power`: tau . v, to which the power into stored energy is added at the end, and v . (ID without
    # the external wrenches) - tau . v - damping v . v
    J[2 * n] = work.tau @ dv + v @ dtau
    J[2 * n + 1] = -2.0 * (work.damping * v) @ dv
    if settings.all_power:
        by_q, by_v, _ = rnea_derivatives(run.robot, q, v, a)
        J[2 * n + 1] += rnea(run.robot, q, v, a) @ dv + v @ (by_q @ dq + by_v @ dv + work.M @ da) - J[2 * n]
    if run.robot.elements is not None:
        slope, by_q = energy_slope(run.robot, q)
        J[2 * n] += slope @ dv + v @ by_q @ dq
    u, rates = np.empty(n), np.empty((n, n))
    difference_kernel(run.packed, center, q, u)
    local_rate_derivatives(run.packed, u, v, rates)
    to_local = np.linalg.inv(jacobian_by_exponent(run.packed, u))
    J[:n] = to_local @ dv + rates @ (to_local @ dq)
    return J
