"""Backward pass: the quadratic model of the cost to go, and inputs that are best for it within their limits.

With F = [B A f] the derivatives of the step from knot k and the gap f behind it, and V' the cost to go of the next
knot, the quadratic model by (u, x, 1) is

    [Q_uu Q_ux Q_u]   [2R  0   l_u]
    [Q_xu Q_xx Q_x] = [0  l_xx l_x] + [B A]^T (V'_xx F + [0 0 V'_x])

whose rows are U and S. Inputs change by k + K dx, and what is left is V: without limits the Schur complement

    S - Q_xu Q_uu^-1 U = [0 V_xx V_x]

Inputs have the box limits that actuators have. They are held exactly, by the quadratic programme of each knot (Tassa,
Mansard and Todorov 2014; box-FDDP: Mastalli et al. 2022) and not by multipliers: a plan that is stopped early, as in
model-predictive control, is still one that the actuators can do. Inputs at a limit have no feedback.

Q_uu is positive definite, as R is and Gauss-Newton matrices have no negative directions. The damping multiplies its
diagonal (Marquardt), which is the same in all units.
"""
from collections import namedtuple

import numpy as np

from liedyn.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, kernel_in_place
from liedyn.linalg.gauss_jordan import (
    add_products_in_registers, add_row, clear, clear_rows, padded, scale_row, solve_rows,
)
from liedyn.simd.lanes import SCALAR
from liedyn.simd.registers import copy_row

BOX_STEPS, BOX_TOLERANCE = 50, 1e-12
"""Newton's method on the box ends after a few steps, each of which frees or holds inputs; it ends where the gradient of
those that are free is rounding."""

BackwardRoom = namedtuple("BackwardRoom", "Vx Vxx F VF U S T Y g before free")
"""V', and F, V' F, U and S of one knot; T = [-1 K k]; Y = U + Q_uu T; g, before and free of the box. F, VF, U, S, T and
Y are padded."""

BACKWARD_ROOM = group(BackwardRoom, VECTOR, *[MATRIX] * 7, *[VECTOR] * 2, INTEGERS)


@kernel
def backward_room(x, nu):
    """`BackwardRoom` for x states and nu inputs."""
    z = padded(nu + x + 1)
    return BackwardRoom(np.zeros(x), np.zeros((x, x)), np.zeros((x, z)), np.zeros((x, z)), np.zeros((nu, z)),
                        np.zeros((x, z)), np.zeros((nu, z)), np.zeros((nu, z)), np.zeros(nu), np.zeros(nu),
                        np.zeros(nu, np.int64))


@inline
def put_quadratic_model(A, B, gap, lx, lxx, lu, R, r):
    """U and S from V' of the next knot."""
    x, nu, width = A.shape[0], B.shape[1], r.F.shape[1]
    last = nu + x
    clear(r.VF)
    clear(r.U)
    clear(r.S)
    for i in range(x):
        copy_row(SCALAR, B, nu * i, nu, r.F, width * i)
        copy_row(SCALAR, A, x * i, x, r.F, width * i + nu)
        copy_row(SCALAR, lxx, x * i, x, r.S, width * i + nu)
        r.F[i, last], r.S[i, last], r.VF[i, last] = gap[i], lx[i], r.Vx[i]
    for i in range(nu):
        for j in range(nu):
            r.U[i, j] = 2.0 * R[i, j]
        r.U[i, last] = lu[i]
    add_products_in_registers(r.Vxx, 0, x, 1, x, x, r.F, r.VF)
    add_products_in_registers(r.F, 0, 1, width, nu, x, r.VF, r.U)
    add_products_in_registers(r.F, nu, 1, width, x, x, r.VF, r.S)


@inline
def box_value(U, last, x):
    """Q_u^T x + x^T Q_uu x / 2."""
    total = 0.0
    for i in range(x.size):
        s = 0.0
        for j in range(x.size):
            s += U[i, j] * x[j]
        total += x[i] * (U[i, last] + 0.5 * s)
    return total


@inline
def solve_free(r, last):
    """T = Q_uu^-1 [Q_uu Q_ux g] of the inputs that are free, zeros for the others; False if that is not definite."""
    clear_rows(r.T, r.free.size)
    for i in range(r.free.size):
        if r.free[i] == 0:
            r.T[i, i] = 1.0
            continue
        add_row(r.T, i, 1.0, r.U, i)
        r.T[i, last] = r.g[i]
        for j in range(r.free.size):
            r.T[i, j] *= r.free[j]
    return solve_rows(SCALAR, r.T)


@inline
def solve_box(r, u, low, high, last, x):
    """x, the smallest Q_u^T x + x^T Q_uu x / 2 with low <= u + x <= high; False if Q_uu is not definite.

    Projected Newton method (Bertsekas 1982). r.free has 1 for inputs that are free, r.T is that of `solve_free`.
    """
    for i in range(x.size):
        x[i] = min(max(0.0, low[i] - u[i]), high[i] - u[i])
        r.free[i] = -1
    for _ in range(BOX_STEPS):
        largest, scale, same = 0.0, 0.0, True
        for i in range(x.size):
            s = r.U[i, last]
            for j in range(x.size):
                s += r.U[i, j] * x[j]
            r.g[i] = s
            held = x[i] <= low[i] - u[i] and s > 0.0 or x[i] >= high[i] - u[i] and s < 0.0
            same = same and r.free[i] == (0 if held else 1)
            r.free[i] = 0 if held else 1
            if not held:
                largest, scale = max(largest, abs(s)), max(scale, abs(r.U[i, last]))
        done = largest <= BOX_TOLERANCE * scale
        if not (same and done) and not solve_free(r, last):
            return False
        if done:
            return True
        for i in range(x.size):
            r.before[i] = x[i]
        by, value = 1.0, box_value(r.U, last, x)
        # the whole step, as far as the box allows; half of it and so on where that is no descent
        for _ in range(BOX_STEPS):
            for i in range(x.size):
                x[i] = min(max(r.before[i] - by * r.T[i, last], low[i] - u[i]), high[i] - u[i])
            if box_value(r.U, last, x) <= value:
                break
            by *= 0.5
    return True


@kernel_in_place
def backward_knot(A, B, gap, lx, lxx, lu, R, u, low, high, damping, r, k, K):
    """From V' of the next knot in r to V of this one, with the inputs' change k and feedback K; False if it fails."""
    x, nu, width = A.shape[0], B.shape[1], r.F.shape[1]
    last = nu + x
    put_quadratic_model(A, B, gap, lx, lxx, lu, R, r)
    clear(r.Y)
    for i in range(nu):
        add_row(r.Y, i, 1.0, r.U, i)
        r.U[i, i] *= 1.0 + damping
    if not solve_box(r, u, low, high, last, k):
        return False
    for i in range(nu):
        scale_row(r.T, i, -1.0)
        r.T[i, last] = k[i]
        copy_row(SCALAR, r.T, width * i + nu, x, K, x * i)
    add_products_in_registers(r.U, nu, 1, width, x, nu, r.T, r.S)
    if damping > 0.0:  # else K is zero where Y is not
        for i in range(nu):
            r.U[i, i] /= 1.0 + damping
        add_products_in_registers(r.U, 0, width, 1, nu, nu, r.T, r.Y)
        add_products_in_registers(r.T, nu, 1, width, x, nu, r.Y, r.S)
    for i in range(x):
        r.Vx[i] = r.S[i, last]
        for j in range(i + 1):
            r.Vxx[i, j] = r.Vxx[j, i] = 0.5 * (r.S[i, nu + j] + r.S[j, nu + i])
    return True
