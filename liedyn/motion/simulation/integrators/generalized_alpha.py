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
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import between
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.linalg.nearest import orthonormal_rows
from liedyn.machine.linalg.ranks import put_weighed
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import residual_rows, velocity_rows
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.rnea import rnea_kernel
from liedyn.model.constraint_records import ranking_of, refresh
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.integrators.derivatives import columns_by_exponent, make_derivatives, put_derivatives
from liedyn.motion.simulation.integrators.method import Method
from liedyn.motion.simulation.stages import end_step, energy_due, finish_row, put_power
from liedyn.motion.simulation.workspace import INPUT_WORK, NOT_CONVERGED, NOT_FINITE, OK, SINGULAR

if TYPE_CHECKING:
    from typing import Any

ITERATIONS = 20
CONVERGED = 1e-11
"""Size of a Newton step, relative to the state, that ends the iteration: quadratic, so the next would be rounding."""


@kernel(nogil=True)
def advance_alpha(model, settings, work, rows, count, known, energy):
    """Arguments and result as for `advance`. rows.memory holds a_n, vdot_n and lambda_n, NaN at the start."""
    status = OK if known else finish_row(model, settings, work, rows, 0)
    if status != OK:
        return status, -1
    n, m = work.v_stage.size, work.psi.size
    alpha_m, alpha_f = (2.0 * settings.rho - 1.0) / (settings.rho + 1.0), settings.rho / (settings.rho + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    derivatives, by_u, psi_u, G_u = make_derivatives(model, work), np.empty((n, n)), np.empty((m, n)), np.empty((m, n))
    A, b, column = np.empty((n + m, n + m)), np.empty(n + m), np.empty((2, n))
    u, force = np.empty(n), np.empty(n)
    if np.isnan(rows.memory[0, 0]):
        rows.memory[0, :n] = rows.a[0]
        rows.memory[0, n:2 * n] = rows.a[0]
        rows.memory[0, 2 * n:] = rows.lam[0]
    for k in range(count):
        h, t = rows.t[k + 1] - rows.t[k], rows.t[k + 1]
        q, v, q_new, v_new = rows.q[k], rows.v[k], rows.q[k + 1], rows.v[k + 1]
        rows.memory[k + 1] = rows.memory[k]
        a_n, v_dot_n = rows.memory[k, :n], rows.memory[k, n:2 * n]
        a, v_dot, lam = rows.memory[k + 1, :n], rows.memory[k + 1, n:2 * n], rows.memory[k + 1, 2 * n:]
        put_power(model, settings, work, q, v, rows.a[k], work.power[0])
        refresh(model, t)
        a[:] = (v_dot_n - alpha_m * a_n) / (1.0 - alpha_m)
        u[:] = h * v + h * h * ((0.5 - beta) * a_n + beta * a)
        v_new[:] = v + h * ((1.0 - gamma) * a_n + gamma * a)
        scale = beta * h * h
        by_v, by_a = gamma / (beta * h), (1.0 - alpha_m) / (scale * (1.0 - alpha_f))
        status, rank = NOT_CONVERGED, -1
        for _ in range(ITERATIONS):
            integrate_kernel(model, q, u, q_new)
            if not input_forces(settings, work, t, rows.held[k], q_new, v_new):
                status = NOT_FINITE
                break
            rnea_kernel(SCALAR, model, q_new, v_new, v_dot, work.f_ext, work.local, force)
            put_derivatives(model, settings, work, t, q_new, v_new, v_dot, lam, derivatives)
            residual_rows(model, q_new, derivatives.work, work.residual)
            velocity_rows(model, q_new, v_new, derivatives.work, work.psi)
            if rank < 0:  # determine the independent rows
                put_weighed(work.G, ranking_of(model, settings.rank_tolerance), work.Y)
                work.Y[:, n] = 0.0
                rank, _ = orthonormal_rows(work.Y, settings.rank_tolerance, work.order)
            columns_by_exponent(model, u, derivatives.ID_q + derivatives.force_q - derivatives.tau_q, column, by_u)
            A[:n, :n] = scale * (by_a * work.M + by_v * (derivatives.ID_v - derivatives.tau_v) + by_u)
            b[:n] = work.tau - force
            for r in range(m):
                b[:n] -= lam[r] * work.G[r]
            b[:n] *= scale
            columns_by_exponent(model, u, work.G, column, G_u)
            columns_by_exponent(model, u, derivatives.psi_q, column, psi_u)
            A[n:n + rank, n:n + rank] = 0.0
            for c in range(rank):
                r = work.order[c]
                A[:n, n + c] = work.G[r]
                if work.holonomic[r] != 0:
                    A[n + c, :n], b[n + c] = G_u[r], -work.residual[r]
                else:
                    A[n + c, :n], b[n + c] = h * psi_u[r] + h * by_v * work.G[r], -h * work.psi[r]
            if not solve_square(A, b, n + rank):
                status = SINGULAR
                break
            moved = 0.0
            for j in range(n):
                u[j] += b[j]
                v_new[j] += by_v * b[j]
                v_dot[j] += by_a * b[j]
                moved = max(moved, abs(b[j]) / (1.0 + abs(u[j])), h * by_v * abs(b[j]) / (1.0 + h * abs(v_new[j])))
            for c in range(rank):
                lam[work.order[c]] += b[n + c] / scale
            if not np.isfinite(moved):
                break
            if moved < CONVERGED:
                status = OK
                break
        if status != OK:
            return status, k
        integrate_kernel(model, q, u, q_new)
        a[:] = ((1.0 - alpha_f) * v_dot + alpha_f * v_dot_n - alpha_m * a_n) / (1.0 - alpha_m)
        put_power(model, settings, work, q_new, v_new, v_dot, work.power[1])
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
