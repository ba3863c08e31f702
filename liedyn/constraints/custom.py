"""Rows that a user's own functions define: G(q, t) v + drift(q, t) = 0, with or without a residual behind them.

The functions sit in the model as addresses (`liedyn.functions`); what they return is written straight into the rows.
"""
from liedyn.constraints.records import (
    CUSTOM, family_of, holonomic_count, is_active, loop_count, loop_integer, loop_rows,
)
from liedyn.functions import call
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.model.packed import (
    LOOP_BIAS, LOOP_COEFFICIENTS, LOOP_DERIVATIVES, LOOP_DRIFT, LOOP_FORCE, LOOP_JACOBIAN, LOOP_RESIDUAL, TIME,
)
from liedyn.tree.records import dof_total


@inline
def is_custom(model, l):
    return family_of(model, l) == CUSTOM and is_active(model, l)


@kernel_in_place
def custom_residual_kernel(model, q, g):
    """Fills the residuals."""
    for l in range(loop_count(model)):
        if is_custom(model, l) and holonomic_count(model, l) > 0:
            address = loop_integer(model, l, LOOP_RESIDUAL)
            call(address, model.floats[TIME], q, q, q, q, g, loop_rows(model, l)[0])


@kernel_in_place
def custom_jacobian_kernel(model, q, G):
    """Fills the rows of G (m, nv)."""
    for l in range(loop_count(model)):
        if is_custom(model, l):
            at = loop_rows(model, l)[0] * dof_total(model)
            call(loop_integer(model, l, LOOP_JACOBIAN), model.floats[TIME], q, q, q, q, G, at)


@kernel_in_place
def custom_velocity_kernel(model, q, v, psi):
    """Fills psi = G v + drift."""
    n = dof_total(model)
    for l in range(loop_count(model)):
        if is_custom(model, l):
            first, count = loop_rows(model, l)
            if loop_integer(model, l, LOOP_DRIFT) != 0:
                call(loop_integer(model, l, LOOP_DRIFT), model.floats[TIME], q, q, q, q, psi, first)
            else:
                psi[first:first + count] = 0.0
            scratch = loop_integer(model, l, LOOP_COEFFICIENTS)
            call(loop_integer(model, l, LOOP_JACOBIAN), model.floats[TIME], q, q, q, q, model.floats, scratch)
            for r in range(count):
                for j in range(n):
                    psi[first + r] += model.floats[scratch + n * r + j] * v[j]


@kernel_in_place
def custom_bias_kernel(model, q, v, phi):
    """Fills phi_0, the acceleration of the rows at a = 0."""
    for l in range(loop_count(model)):
        if is_custom(model, l):
            call(loop_integer(model, l, LOOP_BIAS), model.floats[TIME], q, v, v, v, phi, loop_rows(model, l)[0])


@kernel_in_place
def custom_derivatives_kernel(model, q, v, a, psi_q, phi_q, phi_v):
    """Fills dpsi/dq, dphi/dq, dphi/dv (m, nv)."""
    n = dof_total(model)
    for l in range(loop_count(model)):
        if is_custom(model, l):
            first, count = loop_rows(model, l)
            scratch, size = loop_integer(model, l, LOOP_COEFFICIENTS), count * n
            call(loop_integer(model, l, LOOP_DERIVATIVES), model.floats[TIME], q, v, a, a, model.floats, scratch)
            for r in range(count):
                for j in range(n):
                    k = scratch + n * r + j
                    psi_q[first + r, j] = model.floats[k]
                    phi_q[first + r, j] = model.floats[k + size]
                    phi_v[first + r, j] = model.floats[k + 2 * size]


@kernel_in_place
def custom_force_derivative_kernel(model, q, lam, D):
    """D += d(G^T lambda)/dq (nv, nv); the function gets the multipliers of its own rows."""
    n = dof_total(model)
    for l in range(loop_count(model)):
        if is_custom(model, l):
            first, count = loop_rows(model, l)
            scratch = loop_integer(model, l, LOOP_COEFFICIENTS)
            own = scratch + n * n  # behind the matrix: the multipliers, a view of their own for the function
            for r in range(count):
                model.floats[own + r] = lam[first + r]
            floats = model.floats
            call(loop_integer(model, l, LOOP_FORCE), floats[TIME], q, q, q, floats[own:], floats, scratch)
            for i in range(n):
                for j in range(n):
                    D[i, j] += model.floats[scratch + n * i + j]


# ---- in many directions at once (`liedyn.tree.variations`)


@inline
def add_row_product(model, k, n, A, b, sign, out, at):
    """out[at] += sign times the n numbers floats[k:] times A[:, block b], in lanes."""
    width, total = A.shape[1] // WIDTH, load(LANES, out, at)
    for j in range(n):
        total = total + (sign * load(SCALAR, model.floats, k + j)) * load(LANES, A, width * j + b)
    store(LANES, out, at, total)


@kernel_in_place
def vary_custom_rows(model, q, v, a, N, X, part, b, out):
    """out[:, block b] of custom rows: variations of velocities along N (part 2), of accelerations (part 3)."""
    n, width = dof_total(model), out.shape[1] // WIDTH
    for l in range(loop_count(model)):
        if is_custom(model, l):
            first, count = loop_rows(model, l)
            scratch, size = loop_integer(model, l, LOOP_COEFFICIENTS), count * n
            call(loop_integer(model, l, LOOP_DERIVATIVES), model.floats[TIME], q, v, a, a, model.floats, scratch)
            for r in range(count):
                at, k = width * (first + r) + b, scratch + n * r
                if part == 2:
                    add_row_product(model, k, n, N, b, 1.0, out, at)
                else:
                    add_row_product(model, k + size, n, N, b, 1.0, out, at)
                    add_row_product(model, k + 2 * size, n, X, b, 1.0, out, at)


@kernel_in_place
def vary_custom_forces(model, q, lam, N, b, balance):
    """balance[:, block b] -= d(G^T lambda) of the custom rows."""
    n, width = dof_total(model), balance.shape[1] // WIDTH
    for l in range(loop_count(model)):
        if is_custom(model, l):
            first, count = loop_rows(model, l)
            scratch = loop_integer(model, l, LOOP_COEFFICIENTS)
            own = scratch + n * n
            for r in range(count):
                model.floats[own + r] = lam[first + r]
            floats = model.floats
            call(loop_integer(model, l, LOOP_FORCE), floats[TIME], q, q, q, floats[own:], floats, scratch)
            for i in range(n):
                add_row_product(model, scratch + n * i, n, N, b, -1.0, balance, width * i + b)
