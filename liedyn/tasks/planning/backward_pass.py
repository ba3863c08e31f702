"""Backward pass: the quadratic model of the cost-to-go, and its optimal inputs within their limits.

With [A f] and B the derivatives of the step from knot k and the gap f after it, and V' the cost-to-go of the next knot,
the quadratic model by u and (x, 1) is, with l_ux and l_uu of force limits of contacts,

    Q_uu       = 2 R + l_uu   + B^T V'_xx B
    [Q_ux Q_u] = [l_ux l_u]   + B^T (V'_xx [A f] + [0 V'_x])
    [Q_xx Q_x] = [l_xx l_x]   + A^T (V'_xx [A f] + [0 V'_x])

The inputs change by k + K dx, which leaves V: without limits the Schur complement

    [V_xx V_x] = [Q_xx Q_x] - Q_xu Q_uu^-1 [Q_ux Q_u]

Inputs have the box limits of actuators. These are satisfied exactly, by the quadratic program of each knot (Tassa,
Mansard and Todorov 2014; box-FDDP: Mastalli et al. 2022) and not by multipliers: a plan that is stopped early, as in
model-predictive control, is still feasible for the actuators. Inputs at a limit have no feedback.

Q_uu is positive definite, as R is and Gauss-Newton matrices are positive semidefinite. The damping scales its
diagonal (Marquardt), which is independent of units.
"""
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.by_address import record, contents
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import (
    add_products_in_registers, add_row, clear, padded, scale_row, solve_rows_for,
)
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import copy_row

BOX_STEPS, BOX_TOLERANCE, SHORTEST = 50, 1e-12, 2.0 ** -50
"""Newton's method in the box ends after a few steps, each of which frees or holds inputs, when the gradient of
the free ones is rounding."""

BackwardRoom = namedtuple("BackwardRoom", "Vx Vxx X B VX VB Q U S W T Y g before free")
"""V'; X = [A f] and B; VX = V'_xx X + [0 V'_x] and VB = V'_xx B; Q = Q_uu, U = [Q_ux Q_u] and S = [Q_xx Q_x]; W, which
becomes the identity, T = [K k], and Y = U + Q T; g, before and free for the box. Matrices are padded except V'_xx."""

BACKWARD_ROOM = record(BackwardRoom, VECTOR, *[MATRIX] * 11, *[VECTOR] * 2, INTEGERS)


@kernel
def backward_room(x, nu):
    """`BackwardRoom` for x states and nu inputs."""
    z, w = padded(x + 1), padded(nu)
    return BackwardRoom(np.zeros(x), np.zeros((x, x)), np.zeros((x, z)), np.zeros((x, w)), np.zeros((x, z)),
                        np.zeros((x, w)), np.zeros((nu, w)), np.zeros((nu, z)), np.zeros((x, z)), np.zeros((nu, w)),
                        np.zeros((nu, z)), np.zeros((nu, z)), np.zeros(nu), np.zeros(nu), np.zeros(nu, np.int64))


@inline
def put_quadratic_model(A, B, gap, lx, lxx, lu, R, r):
    """Q, U and S from V' of the next knot."""
    x, nu, z, w = A.shape[0], B.shape[1], r.X.shape[1], r.B.shape[1]
    clear(r.VX)
    clear(r.VB)
    clear(r.Q)
    clear(r.U)
    clear(r.S)
    for i in range(x):
        copy_row(SCALAR, A, x * i, x, r.X, z * i)
        copy_row(SCALAR, B, nu * i, nu, r.B, w * i)
        copy_row(SCALAR, lxx, x * i, x, r.S, z * i)
        r.X[i, x], r.S[i, x], r.VX[i, x] = gap[i], lx[i], r.Vx[i]
    for i in range(nu):
        for j in range(nu):
            r.Q[i, j] = 2.0 * R[i, j]
        r.U[i, x] = lu[i]
    add_products_in_registers(r.Vxx, 0, x, 1, x, x, r.X, r.VX)
    add_products_in_registers(r.Vxx, 0, x, 1, x, x, r.B, r.VB)
    add_products_in_registers(r.B, 0, 1, w, nu, x, r.VB, r.Q)
    add_products_in_registers(r.B, 0, 1, w, nu, x, r.VX, r.U)
    add_products_in_registers(r.X, 0, 1, z, x, x, r.VX, r.S)


@late(MATRIX, BACKWARD_ROOM)
def add_curvature_by_inputs(by_u, r):
    """U and Q += [l_ux l_uu]; compiled separately, as inlined it would slow down plans without phases by a tenth."""
    nu = by_u.shape[0]
    x = by_u.shape[1] - nu
    for i in range(nu):
        for j in range(x):
            r.U[i, j] += by_u[i, j]
        for j in range(nu):
            r.Q[i, j] += by_u[i, x + j]


@inline
def box_value(r, last, x):
    """Q_u^T x + x^T Q_uu x / 2."""
    total = 0.0
    for i in range(x.size):
        s = 0.0
        for j in range(x.size):
            s += r.Q[i, j] * x[j]
        total += x[i] * (r.U[i, last] + 0.5 * s)
    return total


@inline
def solve_free(r, last):
    """T = Q_uu^-1 [Q_ux g] for the free inputs, zeros for the others; False if Q_uu is not positive definite."""
    clear(r.W)
    clear(r.T)
    for i in range(r.free.size):
        if r.free[i] == 0:
            r.W[i, i] = 1.0
            continue
        for j in range(r.free.size):
            r.W[i, j] = r.Q[i, j] * r.free[j]
        add_row(r.T, i, 1.0, r.U, i)
        r.T[i, last] = r.g[i]
    return solve_rows_for(SCALAR, r.W, r.T)


@inline
def move(r, by, u, low, high, last, x):
    """x = fraction `by` of the step from r.before, clipped to the box; True if nothing was clipped."""
    inside = True
    for i in range(x.size):
        wanted = r.before[i] - by * r.T[i, last]
        x[i] = min(max(wanted, low[i] - u[i]), high[i] - u[i])
        inside = inside and x[i] == wanted
    return inside


@inline
def solve_box(r, u, low, high, last, x):
    """x that minimises Q_u^T x + x^T Q_uu x / 2 with low <= u + x <= high; False if Q_uu is not positive definite.

    Projected Newton method (Bertsekas 1982). r.free is 1 for free inputs, r.T is the result of `solve_free`.
    """
    for i in range(x.size):
        x[i] = min(max(0.0, low[i] - u[i]), high[i] - u[i])
        r.free[i] = -1
    for _ in range(BOX_STEPS):
        largest, scale, same = 0.0, 0.0, True
        for i in range(x.size):
            s = r.U[i, last]
            for j in range(x.size):
                s += r.Q[i, j] * x[j]
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
        if move(r, 1.0, u, low, high, last, x):
            continue  # to the minimum over the free inputs
        # the whole step, clipped; half of it and so on if that is no descent
        by, value = 1.0, box_value(r, last, r.before)
        while by > SHORTEST and not box_value(r, last, x) <= value:
            by *= 0.5
            move(r, by, u, low, high, last, x)
    return True


@kernel_in_place
def backward_knot(A, B, gap, lx, lxx, lu, by_u, R, u, low, high, damping, r, k, K):
    """From V' of the next knot in r to V of this one, with input change k and feedback K; False if it fails."""
    r = contents(r)
    x, nu, z = A.shape[0], B.shape[1], r.X.shape[1]
    put_quadratic_model(A, B, gap, lx, lxx, lu, R, r)
    if by_u.size > 0:
        add_curvature_by_inputs(by_u, r)
    for i in range(nu):
        r.Q[i, i] *= 1.0 + damping
    if not solve_box(r, u, low, high, x, k):
        return False
    for i in range(nu):
        scale_row(r.T, i, -1.0)
        r.T[i, x] = k[i]
        copy_row(SCALAR, r.T, z * i, x, K, x * i)
    add_products_in_registers(r.U, 0, 1, z, x, nu, r.T, r.S)
    if damping > 0.0:  # without damping K is zero where Y is not
        clear(r.Y)
        for i in range(nu):
            r.Q[i, i] /= 1.0 + damping
            add_row(r.Y, i, 1.0, r.U, i)
        add_products_in_registers(r.Q, 0, r.Q.shape[1], 1, nu, nu, r.T, r.Y)
        add_products_in_registers(r.T, 0, 1, z, x, nu, r.Y, r.S)
    for i in range(x):
        r.Vx[i] = r.S[i, x]
        for j in range(i + 1):
            r.Vxx[i, j] = r.Vxx[j, i] = 0.5 * (r.S[i, j] + r.S[j, i])
    return True
