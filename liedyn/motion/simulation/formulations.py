"""Accelerations within a run, by each formulation; they write the condition number to ``work.number[0]``.

Only the formulations that a run needs are compiled: these kernels are `late`, and the integrators' loops call them.
"""
import numpy as np
from numba import types

from liedyn.machine.compiled.jit import VECTOR, inline, kernel, late
from liedyn.machine.linalg.dense import largest_size
from liedyn.mechanics.constraints.constraint_rows import residual_rows, velocity_rows
from liedyn.mechanics.constraints.sparse_elimination import complete_terms
from liedyn.mechanics.contact.sliding_friction import begin_trials, next_trial, put_friction
from liedyn.mechanics.dynamics.multiplier import multiplier_kernel
from liedyn.mechanics.dynamics.nullspace import solve_accelerations, solve_multipliers
from liedyn.mechanics.dynamics.state import StateTerms, Terms
from liedyn.mechanics.dynamics.svd import svd_kernel
from liedyn.mechanics.dynamics.terms import put_terms
from liedyn.model.constraint_records import is_long, ranking_of
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.workspace import (
    MOMENT, MOMENTA, MULTIPLIER, NOT_FINITE, NULLSPACE, OK, SETTINGS, SINGULAR, SVD, WORK,
)

_SIGNATURE = MODEL, SETTINGS, WORK, MOMENT, *[VECTOR] * 2


@inline
def is_dense(settings):
    """True for accelerations by a dense formulation; those of "momenta" come from the null space."""
    return settings.formulation != NULLSPACE and settings.formulation != MOMENTA


@inline
def prepare(model, settings, work, now):
    """Inputs, M, h, G, residual, psi, and gamma with Baumgarte's terms (Spencer 2004, eq. 3.8; Yun and Sarkar 1998,
    eq. 17).

    Returns False if an input is not finite, or a constraint has no direction here.
    """
    t, row, q, v = now
    usable = input_forces(settings, work, t, row, q, v)
    put_terms(model, q, v, work.f_ext, work.world, Terms(work.M, work.h, work.G, work.gamma))
    if is_dense(settings) and is_long(model):
        complete_terms(model, work.M, work.G)
    if settings.rate != 0.0 or settings.stiffness != 0.0:
        residual_rows(model, q, work.world, work.residual)
        velocity_rows(model, q, v, work.world, work.psi)
        for k in range(work.gamma.size):
            work.gamma[k] -= settings.rate * work.psi[k] + settings.stiffness * work.residual[k]
    return usable and largest_size(work.gamma) < np.inf


@inline
def solve_nullspace(model, settings, work, force, a):
    """Accelerations for generalised forces `force`; returns a status."""
    terms = Terms(work.M, work.h, work.G, work.gamma)
    status, _, ratio = solve_accelerations(model, terms, force, settings.rank_tolerance, work.solve, a)
    work.number[0] = 1.0 / ratio
    return status


@late(MODEL, SETTINGS, WORK, *[VECTOR] * 3, returns=types.int64)
@kernel
def solve_dense(model, settings, work, force, a, lam):
    """Accelerations and multipliers by the dense formulations, which allocate arrays; returns a status."""
    ranking = ranking_of(model, settings.rank_tolerance)
    terms, unchanged = StateTerms(work.M, work.h, work.G, work.residual, work.psi, work.gamma), (0.0, 0.0)
    work.number[0] = np.nan
    if settings.formulation == MULTIPLIER:
        return multiplier_kernel(terms, force, unchanged, ranking, a, lam)[0]
    status, rank = svd_kernel(terms, force, unchanged, ranking, a, lam, work.sizes)
    if settings.formulation == SVD:
        work.number[0] = work.sizes[0, 0] / work.sizes[0, rank - 1] if rank > 0 else 1.0
    return status


@late(*_SIGNATURE, returns=types.int64)
def by_nullspace(model, settings, work, now, a, lam):
    """Without friction; a kernel of its own, as the loop over trials would make it 20 % slower."""
    if not prepare(model, settings, work, now):
        return NOT_FINITE
    status = solve_nullspace(model, settings, work, work.tau, a)
    if lam.size > 0:
        solve_multipliers(model, work.solve, lam)
    return OK if status == 0 else SINGULAR


@late(*_SIGNATURE, returns=types.int64)
def by_trials(model, settings, work, now, a, lam):
    """By any formulation, with friction (`liedyn.mechanics.contact.sliding_friction`)."""
    if not prepare(model, settings, work, now):
        return NOT_FINITE
    found = lam if lam.size == work.lam_stage.size else work.lam_stage
    trials, force = begin_trials(model, work.world, now.v, work.tau, settings.friction, work.friction)
    for k in range(trials):
        if is_dense(settings):
            status = solve_dense(model, settings, work, force, a, found)
        else:
            status = solve_nullspace(model, settings, work, force, a)
            if trials > 1 or lam.size > 0:
                solve_multipliers(model, work.solve, found)
        if status != 0 or trials > 1 and not next_trial(model, work.friction, k, trials, found):
            return SINGULAR
    put_friction(model, now.v, settings.friction, work.friction, trials, found)
    return OK


@inline
def accelerations(model, settings, work, now, a, lam):
    """Accelerations, and multipliers if `lam` is not empty; returns a status."""
    if settings.friction or is_dense(settings):
        return by_trials(model, settings, work, now, a, lam)
    return by_nullspace(model, settings, work, now, a, lam)
