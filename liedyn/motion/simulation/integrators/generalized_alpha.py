"""The generalised-alpha method on the configuration group (Bruls, Cardona and Arnold 2012), constraints on positions.

Index 3: the unknowns of a step are the exponent u of q_{n+1} = q_n exp(u) and the multipliers, the equations

    M vdot + h(q, v) + G^T lambda = tau        g(q, t) = 0        (nonholonomic rows: G v = b)

at its end, where v and vdot follow u by the recurrences

    u = h v_n + h^2 (1/2 - beta) a_n + h^2 beta a_{n+1}        v_{n+1} = v_n + h (1 - gamma) a_n + h gamma a_{n+1}
    (1 - alpha_m) a_{n+1} + alpha_m a_n = (1 - alpha_f) vdot_{n+1} + alpha_f vdot_n

Second order, unconditionally stable for linear problems, with spectral radius rho at infinity (Chung and Hulbert 1993).
Newton's method with the exact iteration matrix, T = J_r(u), scaled by beta h^2 (Bottasso, Bauchau and Cardona
2007), so that its condition number does not depend on h (feedback with its derivative is part of ID):

    [ beta h^2 (beta' M + gamma' dID/dv + (dID/dq + d(G^T lambda)/dq) T)    G^T ] [ du              ]
    [ G T                                                                   0   ] [ beta h^2 dlambda]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.machine.arguments import between
from liedyn.machine.compiled.jit import inline, inline_array, kernel
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.linalg.nearest import orthonormal_rows
from liedyn.machine.linalg.ranks import put_weighed
from liedyn.machine.linalg.vectors import copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import residual_rows, velocity_rows
from liedyn.mechanics.dynamics.state import Motion
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.rnea import rnea_kernel
from liedyn.model.constraint_records import ranking_of, refresh
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.integrators.derivatives import (
    Derivatives, columns_by_exponent, make_derivatives, put_derivatives,
)
from liedyn.motion.simulation.integrators.method import Method
from liedyn.motion.simulation.stages import end_step, energy_due, finish_row, put_power
from liedyn.motion.simulation.workspace import INPUT_WORK, NOT_CONVERGED, NOT_FINITE, OK, SINGULAR

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array

ITERATIONS = 20
CONVERGED = 1e-11
"""Size of a Newton step, relative to the state, that ends the iteration: quadratic, so the next would be rounding."""


class Coefficients(NamedTuple):
    """The constants of the recurrences."""

    alpha_m: float
    alpha_f: float
    gamma: float
    beta: float


class Newton(NamedTuple):
    """Scratch arrays of Newton's method, for n velocities and m rows."""

    A: Array  # (n + m, n + m) the iteration matrix
    b: Array  # (n + m) the right side, then the change of the unknowns
    u: Array  # (n) the exponent of the step
    force: Array  # (n) ID at the end of the step
    by_u: Array  # (n, n) derivatives of the forces, of G u and of psi by u
    G_u: Array  # (m, n)
    psi_u: Array  # (m, n)
    column: Array  # (2, n)
    derivatives: Derivatives


@inline
def coefficients(rho):
    """The constants for a spectral radius at infinity (Chung and Hulbert 1993)."""
    alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    return Coefficients(alpha_m, alpha_f, gamma, 0.25 * (gamma + 0.5) ** 2)


@inline_array
def make_newton(model, work):
    m, n = work.G.shape
    return Newton(np.empty((n + m, n + m)), np.empty(n + m), np.empty(n), np.empty(n), np.empty((n, n)),
                  np.empty((m, n)), np.empty((m, n)), np.empty((2, n)), make_derivatives(model, work))


@inline
def predict(by, rows, k, h, u):
    """First guess of row k + 1: vdot and lambda as at the beginning of the step."""
    n, v, a_n, a = u.size, rows.v[k], rows.memory[k], rows.memory[k + 1]
    copy_to(rows.memory[k], rows.memory[k + 1])
    for j in range(n):
        a[j] = (a_n[n + j] - by.alpha_m * a_n[j]) / (1.0 - by.alpha_m)
        u[j] = h * v[j] + h * h * ((0.5 - by.beta) * a_n[j] + by.beta * a[j])
        rows.v[k + 1, j] = v[j] + h * ((1.0 - by.gamma) * a_n[j] + by.gamma * a[j])


@inline
def put_equations(model, work, q, v, newton):
    """Residuals and derivatives by u, after `put_derivatives` at (q, v)."""
    derivatives = newton.derivatives
    residual_rows(model, q, derivatives.work, work.residual)
    velocity_rows(model, q, v, derivatives.work, work.psi)
    for i in range(v.size):
        for j in range(v.size):
            newton.A[i, j] = derivatives.ID_q[i, j] + derivatives.force_q[i, j] - derivatives.tau_q[i, j]
    columns_by_exponent(model, newton.u, newton.A[:v.size], newton.column, newton.by_u)
    columns_by_exponent(model, newton.u, work.G, newton.column, newton.G_u)
    columns_by_exponent(model, newton.u, derivatives.psi_q, newton.column, newton.psi_u)


@inline
def order_rows(model, settings, work):
    """Puts the independent rows of work.G first in work.order; returns their number."""
    put_weighed(work.G, ranking_of(model, settings.rank_tolerance), work.Y)
    work.Y[:, work.zero.size] = 0.0
    return orthonormal_rows(work.Y, settings.rank_tolerance, work.order)[0]


@inline
def put_matrix(work, rank, lam, h, scales, newton):
    """The linear system of an iteration, for `rank` rows in work.order; scales = (beta h^2, dv/du, dvdot/du)."""
    n, A, b, derivatives = work.zero.size, newton.A, newton.b, newton.derivatives
    scale, by_v, by_a = scales
    for i in range(n):
        for j in range(n):
            A[i, j] = scale * (by_a * work.M[i, j] + by_v * (derivatives.ID_v[i, j] - derivatives.tau_v[i, j])
                               + newton.by_u[i, j])
        b[i] = work.tau[i] - newton.force[i]
        for r in range(lam.size):
            b[i] -= lam[r] * work.G[r, i]
        b[i] *= scale
    for c in range(rank):
        r, holonomic = work.order[c], work.holonomic[work.order[c]] != 0
        b[n + c] = -work.residual[r] if holonomic else -h * work.psi[r]
        for d in range(rank):
            A[n + c, n + d] = 0.0
        for j in range(n):
            A[j, n + c] = work.G[r, j]
            A[n + c, j] = newton.G_u[r, j] if holonomic else h * newton.psi_u[r, j] + h * by_v * work.G[r, j]


@inline
def change_unknowns(work, rank, rows, k, scales, newton):
    """Adds the solution of the linear system; returns the largest relative change of row k + 1, reached from row k."""
    n, b, u, v, memory, moved = work.zero.size, newton.b, newton.u, rows.v[k + 1], rows.memory[k + 1], 0.0
    h, (scale, by_v, by_a) = rows.t[k + 1] - rows.t[k], scales
    for j in range(n):
        u[j] += b[j]
        v[j] += by_v * b[j]
        memory[n + j] += by_a * b[j]
        moved = max(moved, abs(b[j]) / (1.0 + abs(u[j])), h * by_v * abs(b[j]) / (1.0 + h * abs(v[j])))
        if not np.isfinite(b[j]):
            return np.inf
    for c in range(rank):
        memory[2 * n + work.order[c]] += b[n + c] / scale
    return moved


@inline
def solve_step(model, settings, work, rows, k, by, newton):
    """Row k + 1, except for what `end_step` adds, by Newton's method from `predict`; returns a status."""
    n, h, t, rank = work.zero.size, rows.t[k + 1] - rows.t[k], rows.t[k + 1], -1
    q, v, v_dot, lam = rows.q[k + 1], rows.v[k + 1], rows.memory[k + 1, n:2 * n], rows.memory[k + 1, 2 * n:]
    scale = by.beta * h * h
    scales = scale, by.gamma / (by.beta * h), (1.0 - by.alpha_m) / (scale * (1.0 - by.alpha_f))
    for _ in range(ITERATIONS):
        integrate_kernel(model, rows.q[k], newton.u, q)
        if not input_forces(settings, work, t, rows.held[k], q, v):
            return NOT_FINITE
        rnea_kernel(SCALAR, model, q, v, v_dot, work.f_ext, work.local, newton.force)
        put_derivatives(model, settings, work, t, Motion(q, v, v_dot, lam), newton.derivatives)
        put_equations(model, work, q, v, newton)
        if rank < 0:
            rank = order_rows(model, settings, work)
        put_matrix(work, rank, lam, h, scales, newton)
        if not solve_square(newton.A, newton.b, n + rank):
            return SINGULAR
        moved = change_unknowns(work, rank, rows, k, scales, newton)
        if moved < CONVERGED:
            integrate_kernel(model, rows.q[k], newton.u, q)
            return OK
        if not np.isfinite(moved):
            break
    return NOT_CONVERGED


@kernel(nogil=True)
def advance_alpha(model, settings, work, rows, count, known, energy):
    """Arguments and result as for `advance`. rows.memory holds a_n, vdot_n and lambda_n, NaN at the start."""
    status = OK if known else finish_row(model, settings, work, rows, 0)
    if status != OK:
        return status, -1
    n, by, newton = work.zero.size, coefficients(settings.rho), make_newton(model, work)
    if np.isnan(rows.memory[0, 0]):
        rows.memory[0, :n] = rows.a[0]
        rows.memory[0, n:2 * n] = rows.a[0]
        rows.memory[0, 2 * n:] = rows.lam[0]
    for k in range(count):
        h, now, then = rows.t[k + 1] - rows.t[k], rows.memory[k], rows.memory[k + 1]
        put_power(model, settings, work, rows.q[k], rows.v[k], rows.a[k], work.power[0])
        refresh(model, rows.t[k + 1])
        predict(by, rows, k, h, newton.u)
        status = solve_step(model, settings, work, rows, k, by, newton)
        if status != OK:
            return status, k
        for j in range(n):
            then[j] = ((1.0 - by.alpha_f) * then[n + j] + by.alpha_f * now[n + j] - by.alpha_m * now[j]) / (
                1.0 - by.alpha_m)
        put_power(model, settings, work, rows.q[k + 1], rows.v[k + 1], then[n:2 * n], work.power[1])
        for c in range(2):
            rows.scalars[k + 1, INPUT_WORK + c] = (
                rows.scalars[k, INPUT_WORK + c] + 0.5 * h * (work.power[0, c] + work.power[1, c]))
        status = end_step(model, settings, work, rows, k + 1, h, energy_due(settings, rows, k + 1, energy))
        if status != OK:
            return status, k
    return OK, count


@dataclass(frozen=True)
class GeneralizedAlpha(Method):
    """The generalised-alpha method as the `method` of `simulate`.

    Parameters
    ----------
    rho : float
        Spectral radius at infinity: 1 without numerical damping, 0 annihilates high frequencies in one step.

    Raises
    ------
    InputError
        `rho` is not between 0 and 1.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> ld.simulate(robot, robot.home, [0.0] * 4, 0.01, method=ld.GeneralizedAlpha(rho=0.5)).method
    'generalized_alpha'
    """

    rho: float = 0.8
    name = "generalized_alpha"
    summary = "implicit, second order, constraints solved on positions; `GeneralizedAlpha` says how much it damps"
    loop: Any = staticmethod(advance_alpha)
    uses_derivatives = keeps_constraints = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", between("rho", self.rho, 0.0, 1.0))


METHODS = [GeneralizedAlpha()]
