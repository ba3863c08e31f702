"""Contact forces by an interior-point method on the friction cones.

For each contact let r = (mu P_n, P_t) and w = (u_n / mu + |u_t|, u_t). Signorini's and Coulomb's conditions
(`liedyn.mechanics.contact.complementarity`) then say that both are in the cone |x_t| <= x_0 and orthogonal (De Saxce
and Feng 1998), r . w = 0, or with the product x o y = (x . y, x_0 y_t + y_0 x_t) of that cone

    y = B^T r        w = A y + b + |w_t| e + LOAD r        r o w = m e        e = (1, 0, 0)

at m = 0, with y the change of the motion in coordinates with unit inertia. For m > 0 the solutions form a path inside
the cones; Newton steps follow it while m is reduced (Acary, Armand, Nguyen and Shpakovych 2024), each with a predictor
step for m = 0 first (Mehrotra 1992). Contacts without friction are cones of one row, r = P_n and w = u_n; so are those
that slide in a known direction d, for which B differs from A: friction is proportional to the normal force, y = (A_n -
mu A_t d)^T P_n.

Dry friction of joints, |P_t| <= F (`problem.limit`), is two cones of one row: a = P_t + F and s, the negative part of
u_t = (u_t + s) - s,

    0 <= a,  0 <= u_t + s,  complementary        0 <= s,  0 <= 2 F - a,  complementary

with a and s passed from one to the other by two more components of y.

The linear systems have p equations for y only, of the form 1 + B^T T, with the forces eliminated: contacts may be many,
depend on each other, or contradict each other slightly. u_n / mu is stored instead of w_0, so that the boundary u_n = 0
of the cone has full precision. LOAD keeps forces finite that nothing else determines.

The conditions are not monotone: a path may turn back, or end, before m = 0. Other paths lead to solutions of the same
problem: with other shares of m for each contact; from the convex problem in which |w_t| e is left out, which is that of
a quadratic program on the cones (Anitescu 2006) and always has a path, with |w_t| e / (1 + gradual m); and from soft
contacts to rigid ones, with soft m r instead of LOAD r.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.dense import inverse, largest_size
from liedyn.machine.linalg.vectors import add_multiple, inner

LOAD = 1e-12
"""Compliance of the contacts where nothing else determines the forces, relative to that of free contacts."""
ROUGH = 1e4
"""Friction coefficient from which on a contact is treated as one that never slips."""
STEPS = 150
END = 1e-13
"""m, and the residual of the other equations, at which the path ends."""
GOLDEN = 0.6180339887498949
"""Fractional parts of its multiples are spread evenly, for any number of them."""
MOST = 0.5
"""Largest ratio of the m that a step aims for to the current one."""
STUCK = 1e-2
"""Fraction of a step below which there is no progress."""
SLOW = 0.3
"""Fraction of a step below which the next step first returns to the middle of the cones."""


Cones = namedtuple("Cones", "A B b start contact size")
"""Rows A and B (K, p) and right sides b (K), scaled so that the longest row of each cone is 1; the first row of each
cone (cones + 1); its contact, -1 for the second cone of a dry friction, and the divisor of its rows (cones)."""

Way = namedtuple("Way", "least reach uneven gradual soft")
"""How a path is followed, and which one: the smallest ratio of the m that a step aims for to the current one; the
fraction of the way to the boundary that a step goes; how much the contacts' shares of m differ (0 to 1, in another
order if negative); and how far from the convex problem and from rigid contacts it begins (top of this file)."""

Path = namedtuple("Path", "y r w slip s rho_y rho kind")
"""A point of the path: y (p), r (K), w (K), with u_n / mu instead of w_0; |w_t| (cones), its direction s (K), the
residuals of the equations of y (p) and w (K), and the factors of |w_t| e and of r in w (2)."""

Steps = namedtuple("Steps", "dy dr dw predicted_r predicted_w left forces share")
"""A step; the predictor; m e - r o w (K); forces without the response of y (K); and the share of m of each cone."""

Factors = namedtuple("Factors", "respond drop T M inverse small other")
"""For each cone dr = respond (left) - drop (rho + A dy), both (cones, 4, 4); T = drop A (K, p); 1 + B^T T and its
inverse (p, p); scratch of the size of cones."""


@kernel
def cones_of(problem, unit):
    """The cones of all contacts that can move along their normals; `unit` is the unit of the motion b."""
    Y, b, first, count, mu, given, direction, limit = problem
    start, contact, size, cones = np.zeros(2 * first.size + 1, np.int64), np.zeros(2 * first.size, np.int64), np.ones(
        2 * first.size), 0
    p, dry = Y.shape[1], 0
    pushed = np.zeros(p)  # the motion by -F of each dry friction
    for c in range(first.size):
        if limit[c] > 0.0 and inner(Y[first[c] + 1], Y[first[c] + 1]) > 0.0:
            contact[cones], contact[cones + 1] = c, -1
            start[cones + 1], start[cones + 2] = start[cones] + 1, start[cones] + 2
            add_multiple(-limit[c], Y[first[c] + 1], pushed)
            cones, dry = cones + 2, dry + 1
        elif inner(Y[first[c]], Y[first[c]]) > 0.0:
            contact[cones] = c
            start[cones + 1] = start[cones] + (1 if given[c] or mu[c] == 0.0 else count[c])
            cones += 1
    K, n = start[cones], p
    A, B, right = np.zeros((K, p + 2 * dry)), np.zeros((K, p + 2 * dry)), np.zeros(K)
    for i in range(cones):
        c, o = contact[i], start[i]
        if c < 0:
            continue
        if limit[c] >= 0.0:
            row = first[c] + 1
            size[i] = math.sqrt(inner(Y[row], Y[row]))
            right[o] = (b[row] + inner(Y[row], pushed)) / (unit * size[i])
            for j in range(p):
                A[o, j] = B[o, j] = Y[row, j] / size[i]
            right[o + 1] = 2.0 * limit[c] * size[i] / unit
            size[i + 1] = max(1.0, right[o + 1])
            right[o + 1] /= size[i + 1]
            A[o, n], B[o + 1, n] = 1.0, 1.0 / size[i + 1]
            A[o + 1, n + 1], B[o, n + 1] = -1.0 / size[i + 1], 1.0
            n += 2
            continue
        rows, longest = start[i + 1] - o, 0.0
        for k in range(rows):
            part = 1.0 / min(mu[c], ROUGH) if k == 0 and rows > 1 else 1.0
            for j in range(p):
                A[o + k, j] = part * Y[first[c] + k, j]
            right[o + k] = part * (b[first[c] + k] + inner(Y[first[c] + k], pushed)) / unit
            longest = max(longest, math.sqrt(inner(A[o + k], A[o + k])))
        size[i] = longest
        for k in range(rows):
            right[o + k] /= longest
            for j in range(p):
                A[o + k, j] /= longest
                B[o + k, j] = A[o + k, j]
        if given[c]:
            for k in range(count[c] - 1):
                for j in range(p):
                    B[o, j] -= mu[c] * direction[c, k] / longest * Y[first[c] + 1 + k, j]
    return Cones(A, B, right, start[:cones + 1], contact[:cones], size[:cones])


@kernel_in_place
def put_forces(problem, cones, r, unit, P):
    """P (k) from r."""
    for i in range(P.size):
        P[i] = 0.0
    for c in range(problem.first.size):
        P[problem.first[c]] = max(0.0, problem.limit[c])
    for i in range(cones.contact.size):
        c, o, part = cones.contact[i], cones.start[i], unit / cones.size[i]
        if c < 0:
            continue
        if problem.limit[c] >= 0.0:
            P[problem.first[c] + 1] = r[o] * part - problem.limit[c]
            continue
        row, rows, mu = problem.first[c], cones.start[i + 1] - o, problem.mu[c]
        P[row] = r[o] * part / (min(mu, ROUGH) if rows > 1 else 1.0)
        for k in range(1, rows):
            P[row + k] = r[o + k] * part
        if problem.given[c]:
            for k in range(problem.count[c] - 1):
                P[row + 1 + k] = -mu * problem.direction[c, k] * P[row]


@kernel_in_place
def look(cones, path):
    """Residuals of the equations; returns m, and the largest residual relative to the forces."""
    A, B, b, start = cones.A, cones.B, cones.b, cones.start
    part, load = path.kind
    for j in range(path.y.size):
        path.rho_y[j] = -path.y[j]
    m = 0.0
    for i in range(start.size - 1):
        o, size = start[i], 0.0
        for k in range(o + 1, start[i + 1]):
            size += path.w[k] * path.w[k]
        path.slip[i] = math.sqrt(size)
        for k in range(o, start[i + 1]):
            path.s[k] = path.w[k] / path.slip[i] if k > o and path.slip[i] > 0.0 else 0.0
            path.rho[k] = b[k] + load * path.r[k] + inner(A[k], path.y) - path.w[k]
            add_multiple(path.r[k], B[k], path.rho_y)
            m += path.r[k] * path.w[k]
        m += part * path.r[o] * path.slip[i]
    left = max(largest_size(path.rho), largest_size(path.rho_y)) / max(1.0, largest_size(path.r))
    return m / (start.size - 1), left


@kernel
def factorize(cones, path, f):
    """Factorize the linear equations of a step; False if they are singular."""
    for j in range(f.M.shape[0]):
        f.M[j, :] = 0.0
        f.M[j, j] = 1.0
    r, w, s = path.r, path.w, path.s
    part, load = path.kind
    for i in range(cones.contact.size):
        o = cones.start[i]
        n = cones.start[i + 1] - o
        Z, Z_inverse = np.empty((n, n)), np.empty((n, n))
        w_0 = w[o] + part * path.slip[i]
        # L(r) S in `other` and Z = L(w) + load L(r) S, where L(x) y = x o y and S = 1 + part e s^T
        for k in range(n):
            for l in range(n):
                on, beside = k == l, k == 0 or l == 0
                f.other[k, l] = (r[o + k + l] if beside else r[o] if on else 0.0) + part * r[o + k] * s[o + l]
                Z[k, l] = (w_0 if on else w[o + k + l] if beside else 0.0) + load * f.other[k, l]
        if not inverse(Z, Z_inverse) < np.inf:
            return False
        for k in range(n):
            f.T[o + k, :] = 0.0
            for l in range(n):
                f.respond[i, k, l], f.drop[i, k, l] = Z_inverse[k, l], 0.0
                for j in range(n):
                    f.drop[i, k, l] += Z_inverse[k, j] * f.other[j, l]
                add_multiple(f.drop[i, k, l], cones.A[o + l], f.T[o + k])
            for j in range(f.M.shape[0]):
                add_multiple(cones.B[o + k, j], f.T[o + k], f.M[j])
    return inverse(f.M, f.inverse) < np.inf


@kernel_in_place
def solve_step(cones, path, steps, f):
    """dy, dr and dw for `left`, with one refinement, since the forces' response is a difference of large numbers."""
    p, forces = path.y.size, steps.forces
    for j in range(p):
        steps.dy[j] = 0.0
    for _ in range(2):
        for i in range(cones.contact.size):
            o, n = cones.start[i], cones.start[i + 1] - cones.start[i]
            for k in range(o, o + n):
                steps.dw[k] = path.rho[k] + inner(cones.A[k], steps.dy)
            for k in range(n):
                forces[o + k] = 0.0
                for l in range(n):
                    forces[o + k] += f.respond[i, k, l] * steps.left[o + l] - f.drop[i, k, l] * steps.dw[o + l]
        for j in range(p):
            f.small[j] = path.rho_y[j] - steps.dy[j]
        for k in range(forces.size):
            add_multiple(forces[k], cones.B[k], f.small)
        for j in range(p):
            steps.dy[j] += inner(f.inverse[j], f.small)
    for i in range(cones.contact.size):
        o, n = cones.start[i], cones.start[i + 1] - cones.start[i]
        for k in range(o, o + n):
            steps.dw[k] = path.rho[k] + inner(cones.A[k], steps.dy)
        for k in range(n):
            steps.dr[o + k] = 0.0
            for l in range(n):
                steps.dr[o + k] += f.respond[i, k, l] * steps.left[o + l] - f.drop[i, k, l] * steps.dw[o + l]
        for k in range(o, o + n):
            steps.dw[k] += path.kind[1] * steps.dr[k]


@kernel_in_place
def put_left(cones, path, steps, m, second):
    """m e - r o w, each cone with its share of m; with the product of the predicted changes if `second` (corrector)."""
    r, w, dr, dw, left = path.r, path.w, steps.predicted_r, steps.predicted_w, steps.left
    part = path.kind[0]
    for i in range(cones.contact.size):
        o, end = cones.start[i], cones.start[i + 1]
        w_0, dw_0 = w[o] + part * path.slip[i], dw[o]
        for k in range(o + 1, end):
            dw_0 += part * path.s[k] * dw[k]
        left[o] = m * steps.share[i] - r[o] * w_0 - (dr[o] * dw_0 if second else 0.0)
        for k in range(o + 1, end):
            left[o] -= r[k] * w[k] + (dr[k] * dw[k] if second else 0.0)
            left[k] = -(r[o] * w[k] + w_0 * r[k]) - (dr[o] * dw[k] + dw_0 * dr[k] if second else 0.0)


@kernel_in_place
def to_boundary(x, dx, o, end, width):
    """The largest part, at most 1, of the step dx that stays in the cone width |x_t| <= x_0 of rows o to end - 1."""
    part = min(1.0, -x[o] / dx[o]) if dx[o] < 0.0 else 1.0
    a, h, c = dx[o] * dx[o], x[o] * dx[o], x[o] * x[o]  # a part^2 + 2 h part + c = 0 on the boundary
    for k in range(o + 1, end):
        a -= width * width * dx[k] * dx[k]
        h -= width * width * x[k] * dx[k]
        c -= width * width * x[k] * x[k]
    if end - o > 1 and (a < 0.0 or h < 0.0) and h * h >= a * c:
        root = math.sqrt(h * h - a * c)
        part = min(part, max(0.0, c) / (root - h) if h < 0.0 else -(h + root) / a)
    return part


@kernel_in_place
def inside(cones, path, dr, dw):
    """The largest fraction of a step, at most 1, that stays inside the cones."""
    part, width = 1.0, 1.0 - path.kind[0]  # w_0 - |w_t| is w[o] - width |w_t|
    for i in range(cones.contact.size):
        o, end = cones.start[i], cones.start[i + 1]
        part = min(part, to_boundary(path.r, dr, o, end, 1.0))
        part = min(part, to_boundary(path.w, dw, o, end if width > 0.0 else o + 1, width))
    return part


@kernel_in_place
def predicted(cones, path, steps, part):
    """m after a fraction of the predicted step."""
    m = 0.0
    for i in range(cones.contact.size):
        o, size = cones.start[i], 0.0
        for k in range(o, cones.start[i + 1]):
            moved = path.w[k] + part * steps.predicted_w[k]
            size += moved * moved if k > o else 0.0
            m += moved * (path.r[k] + part * steps.predicted_r[k])
        m += path.kind[0] * math.sqrt(size) * (path.r[o] + part * steps.predicted_r[o])
    return m / cones.contact.size


@kernel
def interior_point(problem, unit, way, P):
    """Follow the path, P (k) in place; returns the residual of the equations, relative to the motion `unit`.

    In `way`, small ratios `least` and a `reach` of nearly the whole way are fast; other values and other paths succeed
    where these do not.
    """
    cones = cones_of(problem, unit)
    count, K, p = cones.contact.size, cones.b.size, cones.A.shape[1]
    path = Path(np.zeros(p), np.zeros(K), np.zeros(K), np.zeros(count), np.zeros(K), np.zeros(p), np.zeros(K),
                np.zeros(2))
    steps = Steps(np.zeros(p), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K),
                  np.ones(count))
    f = Factors(np.zeros((count, 4, 4)), np.zeros((count, 4, 4)), np.zeros((K, p)), np.zeros((p, p)), np.zeros((p, p)),
                np.zeros(p), np.zeros((4, 4)))
    for i in range(count):
        path.r[cones.start[i]] = path.w[cones.start[i]] = 1.0
        steps.share[i] += way.uneven * (2.0 * (GOLDEN * (i + 1) % 1.0) - 1.0)
    part, m, left = 1.0, 1.0, 0.0
    path.kind[1] = max(LOAD, way.soft)
    for _ in range(STEPS if count > 0 else 0):
        path.kind[0] = max(path.kind[0], 1.0 / (1.0 + way.gradual * m))
        path.kind[1] = max(LOAD, min(path.kind[1], way.soft * m))
        m, left = look(cones, path)
        if max(m, left) <= END or (part < STUCK and m < 1e-8) or not factorize(cones, path, f):
            break
        put_left(cones, path, steps, 0.0, False)
        solve_step(cones, path, steps, f)
        steps.predicted_r[:] = steps.dr
        steps.predicted_w[:] = steps.dw
        sigma = max(way.least,
                    (max(0.0, predicted(cones, path, steps, inside(cones, path, steps.dr, steps.dw))) / m) ** 3)
        if left > 100.0 * m:
            sigma = max(sigma, 0.1)
        if part < SLOW:
            sigma = max(sigma, SLOW)
        put_left(cones, path, steps, min(MOST, sigma) * m, part >= SLOW)
        solve_step(cones, path, steps, f)
        part = min(1.0, way.reach * inside(cones, path, steps.dr, steps.dw))
        add_multiple(part, steps.dy, path.y)
        add_multiple(part, steps.dr, path.r)
        add_multiple(part, steps.dw, path.w)
    put_forces(problem, cones, path.r, unit, P)
    return max(m, left)
