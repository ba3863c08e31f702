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
from liedyn.mechanics.dynamics.svd import svd_kernel
from liedyn.mechanics.dynamics.terms import put_terms
from liedyn.model.constraint_records import is_long, ranking_of
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.workspace import (
    MOMENTA, MULTIPLIER, NOT_FINITE, NULLSPACE, OK, SETTINGS, SINGULAR, SVD, WORK,
)

_SIGNATURE = MODEL, SETTINGS, WORK, types.float64, types.int64, *[VECTOR] * 4


@inline
def is_dense(o):
    """True for accelerations by a dense formulation; those of "momenta" come from the null space."""
    return o.formulation != NULLSPACE and o.formulation != MOMENTA


@inline
def prepare(model, o, x, t, row, q, v):
    """Inputs, M, h, G, residual, psi, and gamma with Baumgarte's terms (Spencer 2004, eq. 3.8; Yun and Sarkar 1998,
    eq. 17).

    Returns False if an input is not finite, or a constraint has no direction here.
    """
    usable = input_forces(o, x, t, row, q, v)
    put_terms(model, q, v, x.f_ext, x.world, x.M, x.h, x.G, x.gamma)
    if is_dense(o) and is_long(model):
        complete_terms(model, x.M, x.G)
    if o.rate != 0.0 or o.stiffness != 0.0:
        residual_rows(model, q, x.world, x.residual)
        velocity_rows(model, q, v, x.world, x.psi)
        for k in range(x.gamma.size):
            x.gamma[k] -= o.rate * x.psi[k] + o.stiffness * x.residual[k]
    return usable and largest_size(x.gamma) < np.inf


@inline
def solve_nullspace(model, o, x, force, a):
    """Accelerations for generalised forces `force`; returns a status."""
    status, _, ratio = solve_accelerations(model, x.M, x.h, x.G, x.gamma, force, o.rank_tolerance, x.solve, a)
    x.number[0] = 1.0 / ratio
    return status


@late(MODEL, SETTINGS, WORK, *[VECTOR] * 3, returns=types.int64)
@kernel
def solve_dense(model, o, x, force, a, lam):
    """Accelerations and multipliers by the dense formulations, which allocate arrays; returns a status."""
    terms = x.M, x.h, x.G, x.residual, x.psi, x.gamma, force, 0.0, 0.0, ranking_of(model, o.rank_tolerance), a, lam
    x.number[0] = np.nan
    if o.formulation == MULTIPLIER:
        return multiplier_kernel(*terms)[0]
    status, rank = svd_kernel(*terms, x.sizes[0], x.sizes[1])
    if o.formulation == SVD:
        x.number[0] = x.sizes[0, 0] / x.sizes[0, rank - 1] if rank > 0 else 1.0
    return status


@late(*_SIGNATURE, returns=types.int64)
def by_nullspace(model, o, x, t, row, q, v, a, lam):
    """Without friction; a kernel of its own, as the loop over trials would make it 20 % slower."""
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    status = solve_nullspace(model, o, x, x.tau, a)
    if lam.size > 0:
        solve_multipliers(model, x.solve, lam)
    return OK if status == 0 else SINGULAR


@late(*_SIGNATURE, returns=types.int64)
def by_trials(model, o, x, t, row, q, v, a, lam):
    """By any formulation, with friction (`liedyn.mechanics.contact.sliding_friction`)."""
    if not prepare(model, o, x, t, row, q, v):
        return NOT_FINITE
    found = lam if lam.size == x.lam_stage.size else x.lam_stage
    trials, force = begin_trials(model, x.world, x.tau, o.friction, x.friction)
    for k in range(trials):
        if is_dense(o):
            status = solve_dense(model, o, x, force, a, found)
        else:
            status = solve_nullspace(model, o, x, force, a)
            if trials > 1 or lam.size > 0:
                solve_multipliers(model, x.solve, found)
        if status != 0 or trials > 1 and not next_trial(model, x.tau, x.friction, k, trials, found):
            return SINGULAR
    put_friction(model, x.friction, trials, found)
    return OK


@inline
def accelerations(model, o, x, t, row, q, v, a, lam):
    """Accelerations, and multipliers if `lam` is not empty; returns a status."""
    if o.friction or is_dense(o):
        return by_trials(model, o, x, t, row, q, v, a, lam)
    return by_nullspace(model, o, x, t, row, q, v, a, lam)
