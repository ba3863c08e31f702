"""Accelerations inside a run: one compiled function for each formulation, all with the signature of `far`.

They leave the condition number in ``work.number[0]``.
"""
import numpy as np

from liedyn.constraints.rows import residual_rows, velocity_rows
from liedyn.dense import largest_size
from liedyn.dynamics.multiplier import multiplier_kernel
from liedyn.dynamics.nullspace import solve_accelerations, solve_multipliers
from liedyn.dynamics.stabilization import baumgarte_rows
from liedyn.dynamics.svd import svd_kernel
from liedyn.dynamics.terms import terms_in_place
from liedyn.dynamics.unified import unified_kernel
from liedyn.functions import call
from liedyn.jit import kernel, kernel_in_place
from liedyn.lie.registers import LARGEST
from liedyn.simulation.friction import begin_trials, next_trial, put_friction
from liedyn.simulation.workspace import BAUMGARTE, FUNCTION, NOT_FINITE, OK, SINGULAR


@kernel_in_place
def input_forces(o, x, t, row, q, v):
    """x.tau = B u, u a row of the table or what the user's function says; False if that is no force to compute with."""
    nu = x.actuators.shape[1]
    if o.input_kind == FUNCTION:
        call(o.input_address, t, q, v, v, v, x.u, 0)
    else:
        for k in range(nu):
            x.u[k] = x.table[row, k]
    for j in range(x.tau.size):
        x.tau[j] = 0.0
        for k in range(nu):
            x.tau[j] += x.actuators[j, k] * x.u[k]
    return largest_size(x.u) <= LARGEST


@kernel_in_place
def prepare(model, o, x, t, row, q, v):
    """Inputs, M, h, G, residual, psi, and gamma with Baumgarte's pull (Spencer 2004, eq. 3.8).

    False if an input is no force to compute with, or a constraint has no direction here.
    """
    usable = input_forces(o, x, t, row, q, v)
    terms_in_place(model, q, v, x.f_ext, x.world, x.M, x.h, x.G, x.gamma)
    if o.stabilisation == BAUMGARTE or o.sigma != 0.0:
        residual_rows(model, q, x.world, x.residual)
        velocity_rows(model, q, v, x.world, x.psi)
    if o.stabilisation == BAUMGARTE:
        baumgarte_rows(x.residual, x.psi, x.gamma, o.alpha, o.beta, x.gamma)
    return usable and largest_size(x.gamma) < np.inf


@kernel_in_place
def by_nullspace(model, o, x, t, row, q, v, a, lam):
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    status, rank, ratio = solve_accelerations(model, x.M, x.h, x.G, x.gamma, x.tau, o.rank_tolerance, x.solve, a)
    if lam.size > 0:
        solve_multipliers(model, x.solve, lam)
    x.number[0] = 1.0 / ratio
    return OK if status == 0 else SINGULAR


@kernel_in_place
def by_nullspace_with_friction(model, o, x, t, row, q, v, a, lam):
    """A kernel of its own: the loop over trials would make the one above a fifth slower for all robots."""
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    trials, force = begin_trials(model, o, x)
    for k in range(trials):
        status, rank, ratio = solve_accelerations(model, x.M, x.h, x.G, x.gamma, force, o.rank_tolerance, x.solve, a)
        if trials > 1:
            solve_multipliers(model, x.solve, x.lam_stage)
            if status != 0 or not next_trial(model, x, k, trials, x.lam_stage):
                return SINGULAR
    if lam.size > 0:
        solve_multipliers(model, x.solve, lam)
        put_friction(model, x, trials, lam)
    x.number[0] = 1.0 / ratio
    return OK if status == 0 else SINGULAR


@kernel
def by_svd(model, o, x, t, row, q, v, a, lam):
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    m = x.gamma.size
    sizes, indicator = np.empty(m), np.empty(m)
    found = lam if lam.size == m else x.lam_stage
    trials, force = begin_trials(model, o, x)
    for k in range(trials):
        status, rank = svd_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, force, 0.0, 0.0, o.rank_tolerance, a,
                                  found, sizes, indicator)
        if status != 0 or trials > 1 and not next_trial(model, x, k, trials, found):
            return SINGULAR
    put_friction(model, x, trials, found)
    x.number[0] = sizes[0] / sizes[rank - 1] if rank > 0 else 1.0
    return OK


@kernel
def by_multipliers(model, o, x, t, row, q, v, a, lam):
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    m = x.gamma.size
    found = lam if lam.size == m else x.lam_stage
    trials, force = begin_trials(model, o, x)
    for k in range(trials):
        status, _ = multiplier_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, force, 0.0, 0.0, o.rank_tolerance, a,
                                      found)
        if status != 0 or trials > 1 and not next_trial(model, x, k, trials, found):
            return SINGULAR
    put_friction(model, x, trials, found)
    x.number[0] = np.nan
    return OK


@kernel
def by_velocity_level(model, o, x, t, row, q, v, a, lam):
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    m = x.gamma.size
    found = lam if lam.size == m else x.lam_stage
    trials, force = begin_trials(model, o, x)
    for k in range(trials):
        status, _ = unified_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, force, o.sigma, o.rank_tolerance, a,
                                   found)
        if status != 0 or trials > 1 and not next_trial(model, x, k, trials, found):
            return SINGULAR
    put_friction(model, x, trials, found)
    x.number[0] = np.nan
    return OK


WITH_FRICTION = {"nullspace": by_nullspace_with_friction}
"""Formulations with another kernel for robots on which something rubs."""
FORMULATIONS = {"nullspace": by_nullspace, "svd": by_svd, "multiplier": by_multipliers, "unified": by_velocity_level}
