"""Backward pass: the quadratic model of the cost to go, and inputs that are best for it within their limits.

With the derivatives of knot k and V' the cost to go of the next knot, moved by the gap f between them,

    Q_x = l_x + A^T (V'_x + V'_xx f)      Q_xx = l_xx + A^T V'_xx A
    Q_u = l_u + B^T (V'_x + V'_xx f)      Q_ux = B^T V'_xx A              Q_uu = 2 R + B^T V'_xx B

Inputs have the box limits that actuators have. They are held exactly, by the quadratic programme of each knot (Tassa,
Mansard and Todorov 2014; box-FDDP: Mastalli et al. 2022) and not by multipliers: a plan that is stopped early, as in
model-predictive control, is still one that the actuators can do. Inputs at a limit have no feedback.

Q_uu is positive definite, as R is and Gauss-Newton matrices have no negative directions. The damping multiplies its
diagonal (Marquardt), which is the same in all units.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, kernel_in_place
from liedyn.linalg.gauss_jordan import add_products_in_registers, add_row, clear, padded, scale_row

BOX_STEPS, BOX_TOLERANCE = 50, 1e-12
"""Newton's method on the box ends after a few steps, each of which frees or holds inputs; it ends where the gradient of
those that are free is rounding."""

BackwardRoom = namedtuple("BackwardRoom", "Vx Vxx F VF Q Qz K Y H L g step free")
"""V' and, by z = (x, u), F = [A B], V' F and Q of one knot; K and Y = Q_uu K + Q_ux; H, L, g, step and free are those
of the box. F, VF, Q, K and Y are padded."""

BACKWARD_ROOM = group(BackwardRoom, VECTOR, *[MATRIX] * 4, VECTOR, *[MATRIX] * 4, VECTOR, VECTOR, INTEGERS)


@kernel
def backward_room(x, nu):
    """`BackwardRoom` for x states and nu inputs."""
    z = padded(x + nu)
    return BackwardRoom(np.zeros(x), np.zeros((x, x)), np.zeros((x, z)), np.zeros((x, z)), np.zeros((x + nu, z)),
                        np.zeros(x + nu), np.zeros((nu, padded(x))), np.zeros((nu, padded(x))), np.zeros((nu, nu)),
                        np.zeros((nu, nu)), np.zeros(nu), np.zeros(nu), np.zeros(nu, np.int64))


@inline
def factor_free(H, free, count, L):
    """Cholesky's L of the rows and columns of H that are free; False if they are not positive definite."""
    for a in range(count):
        for b in range(a + 1):
            x = H[free[a], free[b]]
            for c in range(b):
                x -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = x / L[b, b]
            elif x > 0.0:
                L[a, a] = math.sqrt(x)
            else:
                return False
    return True


@inline
def solve_free(L, count, x):
    """x = (L L^T)^-1 x for its first entries."""
    for a in range(count):
        for b in range(a):
            x[a] -= L[a, b] * x[b]
        x[a] /= L[a, a]
    for a in range(count - 1, -1, -1):
        for b in range(a + 1, count):
            x[a] -= L[b, a] * x[b]
        x[a] /= L[a, a]


@inline
def box_value(H, g, x):
    """g^T x + x^T H x / 2."""
    total = 0.0
    for i in range(x.size):
        s = 0.0
        for j in range(x.size):
            s += H[i, j] * x[j]
        total += x[i] * (g[i] + 0.5 * s)
    return total


@kernel_in_place
def solve_box(H, g, u, low, high, r, x):
    """x, the smallest g^T x + x^T H x / 2 with low <= u + x <= high; how many inputs are free, -1 if H is not definite.

    Projected Newton method (Bertsekas 1982). r.free lists the free inputs, r.L is the factor of their part of H.
    """
    count = x.size
    for i in range(count):
        x[i] = min(max(0.0, low[i] - u[i]), high[i] - u[i])
    free, before = 0, -1
    for _ in range(BOX_STEPS):
        free, largest, scale, same = 0, 0.0, 0.0, before >= 0
        for i in range(count):
            s = g[i]
            for j in range(count):
                s += H[i, j] * x[j]
            r.g[i] = s
            held = x[i] <= low[i] - u[i] and s > 0.0 or x[i] >= high[i] - u[i] and s < 0.0
            if not held:
                same = same and free < before and r.free[free] == i
                r.free[free] = i
                free += 1
                largest, scale = max(largest, abs(s)), max(scale, abs(g[i]))
        same = same and free == before
        if not same and not factor_free(H, r.free, free, r.L):
            return -1
        if largest <= BOX_TOLERANCE * scale:
            break
        for a in range(free):
            r.step[a] = -r.g[r.free[a]]
        solve_free(r.L, free, r.step)
        before, by, value = free, 1.0, box_value(H, g, x)
        # the whole step, as far as the box allows; half of it and so on where that is no descent
        for a in range(free):
            r.g[a] = x[r.free[a]]
        for _ in range(BOX_STEPS):
            for a in range(free):
                i = r.free[a]
                x[i] = min(max(r.g[a] + by * r.step[a], low[i] - u[i]), high[i] - u[i])
            if box_value(H, g, x) <= value:
                break
            by *= 0.5
    return free


@inline
def put_gains(r, free, x_count, K):
    """K = -H^-1 Q_ux of the inputs that are free, zero for the others; all columns at once."""
    clear(r.K)
    for a in range(free):
        i = r.free[a]
        for j in range(x_count):
            r.K[i, j] = -r.Q[x_count + i, j]
        for b in range(a):
            add_row(r.K, i, -r.L[a, b], r.K, r.free[b])
        scale_row(r.K, i, 1.0 / r.L[a, a])
    for a in range(free - 1, -1, -1):
        i = r.free[a]
        for b in range(a + 1, free):
            add_row(r.K, i, -r.L[b, a], r.K, r.free[b])
        scale_row(r.K, i, 1.0 / r.L[a, a])
    for i in range(K.shape[0]):
        for j in range(x_count):
            K[i, j] = r.K[i, j]


@inline
def put_quadratic_model(A, B, gap, lx, lxx, lu, R, r):
    """Q and its gradient by z = (x, u), from V' of the next knot."""
    x_count, u_count = A.shape[0], B.shape[1]
    for i in range(x_count):  # V'_x at the end of the step
        for j in range(x_count):
            r.Vx[i] += r.Vxx[i, j] * gap[j]
    for i in range(x_count):
        r.Qz[i] = lx[i]
        for j in range(x_count):
            r.F[i, j], r.Q[i, j] = A[i, j], lxx[i, j]
        for j in range(u_count):
            r.F[i, x_count + j], r.Q[i, x_count + j] = B[i, j], 0.0
    for i in range(u_count):
        r.Qz[x_count + i] = lu[i]
        for j in range(x_count):
            r.Q[x_count + i, j] = 0.0
        for j in range(u_count):
            r.Q[x_count + i, x_count + j] = 2.0 * R[i, j]
    for l in range(x_count):
        v = r.Vx[l]
        for j in range(x_count + u_count):
            r.Qz[j] += v * r.F[l, j]
    clear(r.VF)
    add_products_in_registers(r.Vxx, 0, x_count, 1, x_count, x_count, r.F, r.VF)
    add_products_in_registers(r.F, 0, 1, r.F.shape[1], x_count + u_count, x_count, r.VF, r.Q)


@kernel_in_place
def backward_knot(A, B, gap, lx, lxx, lu, R, u, low, high, damping, r, k, K):
    """From V' of the next knot in r to V of this one, with the inputs' change k and feedback K; False if it fails."""
    x_count, u_count = A.shape[0], B.shape[1]
    put_quadratic_model(A, B, gap, lx, lxx, lu, R, r)
    for i in range(u_count):
        for j in range(u_count):
            a, b = x_count + i, x_count + j
            r.H[i, j] = 0.5 * (r.Q[a, b] + r.Q[b, a]) * (1.0 + damping if i == j else 1.0)
    free = solve_box(r.H, r.Qz[x_count:], u, low, high, r, k)
    if free < 0:
        return False
    put_gains(r, free, x_count, K)
    # V_x = Q_x + K^T (Q_uu k + Q_u) + Q_ux^T k, V_xx = Q_xx + K^T (Q_uu K + Q_ux) + Q_ux^T K
    for j in range(x_count):
        r.Vx[j] = r.Qz[j]
    for i in range(u_count):
        row = x_count + i
        for j in range(x_count):
            r.Vx[j] += r.Q[row, j] * k[i]
    add_products_in_registers(r.Q, x_count * r.Q.shape[1], 1, r.Q.shape[1], x_count, u_count, r.K, r.Q)
    for i in range(u_count if damping > 0.0 else 0):  # else K is zero where the parentheses are not
        s = r.Qz[x_count + i]
        for j in range(x_count):
            r.Y[i, j] = r.Q[x_count + i, j]
        for l in range(u_count):
            s += r.Q[x_count + i, x_count + l] * k[l]
            add_row(r.Y, i, r.Q[x_count + i, x_count + l], r.K, l)
        for a in range(x_count):
            r.Vx[a] += r.K[i, a] * s
            add_row(r.Q, a, r.K[i, a], r.Y, i)
    for a in range(x_count):
        for b in range(x_count):
            r.Vxx[a, b] = 0.5 * (r.Q[a, b] + r.Q[b, a])
    return True
