"""Rows defined by a user's own functions: G(q, t) v + drift(q, t) = 0, with or without a residual.

The functions are in the model as addresses (`liedyn.machine.compiled.user_functions`); their results are written
directly to the rows.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.compiled.user_functions import call
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.model.constraint_records import holonomic_count, loop_integer, loop_rows
from liedyn.model.packed import (
    LOOP_BIAS, LOOP_COEFFICIENTS, LOOP_DERIVATIVES, LOOP_DRIFT, LOOP_FORCE, LOOP_JACOBIAN, LOOP_RESIDUAL, TIME,
)
from liedyn.model.packed_records import dof_total


@inline
def residual(model, l, q, work, g):
    if holonomic_count(model, l) > 0:
        call(loop_integer(model, l, LOOP_RESIDUAL), model.floats[TIME], q, q, q, q, g, loop_rows(model, l)[0])


@inline
def jacobian(model, l, q, work, G):
    at = loop_rows(model, l)[0] * dof_total(model)
    call(loop_integer(model, l, LOOP_JACOBIAN), model.floats[TIME], q, q, q, q, G, at)


@inline
def velocity(model, l, q, v, work, psi):
    first, count = loop_rows(model, l)
    if loop_integer(model, l, LOOP_DRIFT) != 0:
        call(loop_integer(model, l, LOOP_DRIFT), model.floats[TIME], q, q, q, q, psi, first)
    else:
        psi[first:first + count] = 0.0
    scratch, n = loop_integer(model, l, LOOP_COEFFICIENTS), dof_total(model)
    call(loop_integer(model, l, LOOP_JACOBIAN), model.floats[TIME], q, q, q, q, model.floats, scratch)
    for r in range(count):
        for j in range(n):
            psi[first + r] += model.floats[scratch + n * r + j] * v[j]


@inline
def bias(model, l, q, v, work, phi):
    call(loop_integer(model, l, LOOP_BIAS), model.floats[TIME], q, v, v, v, phi, loop_rows(model, l)[0])


@inline
def fill_derivatives(model, l, q, v, a):
    """Compute dpsi/dq, dphi/dq and dphi/dv, (rows, nv) each, in this order; returns their index in floats."""
    scratch = loop_integer(model, l, LOOP_COEFFICIENTS)
    call(loop_integer(model, l, LOOP_DERIVATIVES), model.floats[TIME], q, v, a, a, model.floats, scratch)
    return scratch


@inline
def derivatives(model, l, q, v, a, work, slopes):
    psi_q, phi_q, phi_v = slopes
    n, (first, count), scratch = dof_total(model), loop_rows(model, l), fill_derivatives(model, l, q, v, a)
    for r in range(count):
        for j in range(n):
            k = scratch + n * r + j
            psi_q[first + r, j] = model.floats[k]
            phi_q[first + r, j] = model.floats[k + count * n]
            phi_v[first + r, j] = model.floats[k + 2 * count * n]


@inline
def fill_force_derivative(model, l, q, lam):
    """Compute d(G^T lambda)/dq (nv, nv), for the multipliers of the function's own rows; returns its index in
    floats."""
    scratch, (first, count), floats = loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l), model.floats
    own = scratch + dof_total(model) * dof_total(model)  # after the matrix: a copy for the function
    for r in range(count):
        floats[own + r] = lam[first + r]
    call(loop_integer(model, l, LOOP_FORCE), floats[TIME], q, q, q, floats[own:], floats, scratch)
    return scratch


@inline
def force_derivative(model, l, q, work, lam, D):
    n, scratch = dof_total(model), fill_force_derivative(model, l, q, lam)
    for i in range(n):
        for j in range(n):
            D[i, j] += model.floats[scratch + n * i + j]


# ---- in many directions at once (`liedyn.mechanics.tree.tangent_recursion`)


@inline
def add_row_product(model, k, n, A, b, sign, out, at):
    """out[at] += sign times the n numbers floats[k:] times A[:, block b], in lanes."""
    width, total = A.shape[1] // WIDTH, load(LANES, out, at)
    for j in range(n):
        total = total + (sign * load(SCALAR, model.floats, k + j)) * load(LANES, A, width * j + b)
    store(LANES, out, at, total)


@inline
def vary_rows(model, l, motion, links, columns, part, b, out):
    (q, v, a), (N, X) = motion, columns
    n, width, (first, count) = dof_total(model), out.shape[1] // WIDTH, loop_rows(model, l)
    scratch = fill_derivatives(model, l, q, v, a)
    for r in range(count):
        at, k = width * (first + r) + b, scratch + n * r
        if part == 2:
            add_row_product(model, k, n, N, b, 1.0, out, at)
        else:
            add_row_product(model, k + count * n, n, N, b, 1.0, out, at)
            add_row_product(model, k + 2 * count * n, n, X, b, 1.0, out, at)


@inline
def vary_forces(model, l, q, lam, N, b, balance):
    n, width, scratch = dof_total(model), balance.shape[1] // WIDTH, fill_force_derivative(model, l, q, lam)
    for i in range(n):
        add_row_product(model, scratch + n * i, n, N, b, -1.0, balance, width * i + b)
