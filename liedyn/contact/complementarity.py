"""Normal and friction forces of several contacts: a complementarity problem with circular friction disks.

For contact c let P_n be the normal force (or impulse), P_t the friction, u_n and u_t the accelerations (or velocities)
along them; u = D P + b with the Delassus matrix D = H M^-1 H^T, symmetric and positive semidefinite. Wanted are

    0 <= P_n,  0 <= u_n,  P_n u_n = 0                                   Signorini
    |P_t| <= mu P_n,  and P_t = -mu P_n u_t / |u_t| where u_t != 0      Coulomb

(Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems, 2008, chapters 12 and 13). A contact that
slides already has a given direction d of its motion, and P_t = -mu P_n d whatever u_t is.

Projected Gauss-Seidel sweeps, which find out who is closed and who slips, and Newton steps on the projections (Alart
and Curnier 1991),

    P_n = max(0, P_n - r u_n)        P_t = projection of P_t - r u_t on the disk of radius mu P_n,

which make the result exact to rounding. Where D is singular (a table on four feet) forces are not unique: a Newton step
is the shortest one that there is, so the result is near what the sweeps have found.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.compiled.jit import kernel, kernel_in_place
from liedyn.linalg.dense import largest_size
from liedyn.linalg.row_space import row_space, shortest_solution
from liedyn.linalg.vectors import add_multiple, inner

SOLVED, NOT_SOLVED = 0, 1
CONVERGED = 1e-13
"""Residual, relative to the largest force, that is rounding: some units in the last place of sums of ten terms."""
ROUNDS, SWEEPS, NEWTON_STEPS, LEAPS = 7, 20, 25, 6
"""Rounds of sweeps, each with three times as many as the one before; Newton steps and leaps behind each."""

ALMOST = 1e-8
"""Residual, relative to the largest force, that counts as none where all rounds have left it."""
UNMOVED = 1e-4
"""Residual, relative to the forces that would stop each motion alone, beyond which forces that grow are no solution."""
MOST = 1000
"""Sweeps behind a leap."""
AT_LIMIT = 1e-6
"""Distance of friction from its disk, relative to it, at which a contact counts as slipping."""
LEAST = 1e-3
"""Motion, relative to the numbers that it is the difference of, below which rounding spoils the last digits."""


Coulomb = namedtuple("Coulomb", "D b first count mu given direction")
"""A problem: D (k, k), b (k); for every contact its first row (the normal one), the number of its rows, mu, whether it
slides already (given) and in which direction (contacts, 3)."""

Room = namedtuple("Room", "F J B V s step")
"""Scratch arrays of `newton`: F (k), its derivative J (k, k), the row space of J, and the step (k)."""


@kernel_in_place
def motion_along(D, b, P, i):
    """u_i = (D P + b)_i."""
    return b[i] + inner(D[i], P)


@kernel_in_place
def disk(mu, P_n):
    """Radius of the friction disk; mu may be infinite."""
    return mu * P_n if P_n > 0.0 else 0.0


@kernel_in_place
def step_sizes(D, i, count):
    """r for the normal row i and for the tangential rows behind it: inverse sizes of their blocks in D."""
    normal, tangential = D[i, i], 0.0
    for k in range(i + 1, i + count):
        tangential += D[k, k]  # not less than the largest eigenvalue of the block
    return 1.0 / normal if normal > 0.0 else 0.0, 1.0 / tangential if tangential > 0.0 else 0.0


@kernel
def sweep(problem, relaxation, P):
    """One symmetric Gauss-Seidel sweep, over all contacts and back, relaxed; P changes in place."""
    D, b, first, count, mu, given, direction = problem
    u = np.empty(3)
    for step in range(2 * first.size):
        c = step if step < first.size else 2 * first.size - 1 - step
        i, n = first[c], count[c]
        r_n, r_t = step_sizes(D, i, n)
        slope = D[i, i]
        if given[c]:  # what the friction that comes with it adds to the motion along the normal
            for k in range(n - 1):
                slope -= mu[c] * direction[c, k] * D[i, i + 1 + k]
            if slope > 0.0:
                r_n = 1.0 / slope
        P[i] += relaxation * (max(0.0, P[i] - r_n * motion_along(D, b, P, i)) - P[i])
        if given[c]:
            for k in range(n - 1):
                P[i + 1 + k] = -mu[c] * P[i] * direction[c, k]
        elif n > 1:
            size = 0.0
            for k in range(n - 1):  # all of them at once, or a fixed point would not slip against its friction
                u[k] = motion_along(D, b, P, i + 1 + k)
            for k in range(i + 1, i + n):
                P[k] -= relaxation * r_t * u[k - i - 1]
                size += P[k] * P[k]
            size = math.sqrt(size)
            if size > disk(mu[c], P[i]):
                for k in range(i + 1, i + n):
                    P[k] *= disk(mu[c], P[i]) / size


@kernel
def linearize_conditions(problem, P, F, J):
    """F (k), zero at a solution, and its derivative J (k, k) by P; returns the largest entry of F."""
    D, b, first, count, mu, given, direction = problem
    F[:] = 0.0
    J[:] = 0.0
    for c in range(first.size):
        i, n = first[c], count[c]
        r_n, r_t = step_sizes(D, i, n)
        u = motion_along(D, b, P, i)
        closed = P[i] - r_n * u > 0.0
        if closed:
            F[i] = r_n * u
            add_multiple(r_n, D[i], J[i])
        else:
            F[i] = P[i]
            J[i, i] = 1.0
        w, size = np.zeros(3), 0.0
        for k in range(n - 1):
            w[k] = P[i + 1 + k] - r_t * motion_along(D, b, P, i + 1 + k)
            size += w[k] * w[k]
        size = math.sqrt(size)
        radius = disk(mu[c], P[i]) if closed else 0.0
        for k in range(n - 1):
            row = i + 1 + k
            if given[c]:
                F[row] = P[row] + mu[c] * P[i] * direction[c, k]
                J[row, row] = 1.0
                J[row, i] = mu[c] * direction[c, k]
            elif not closed:
                F[row] = P[row]
                J[row, row] = 1.0
            elif size <= radius:
                F[row] = P[row] - w[k]
                add_multiple(r_t, D[row], J[row])
            else:
                F[row] = P[row] - radius * w[k] / size
                J[row, row] = 1.0
                if P[i] > 0.0:
                    J[row, i] -= mu[c] * w[k] / size
                for l in range(n - 1):  # the projection's derivative times that of P_t - r u_t
                    across = ((1.0 if k == l else 0.0) - w[k] * w[l] / (size * size)) * radius / size
                    J[row, i + 1 + l] -= across
                    add_multiple(across * r_t, D[i + 1 + l], J[row])
    return largest_size(F)


@kernel
def leap(problem, more, P, rate):
    """As many sweeps at once as it takes until the first contact slips that sticks, and `more`; P in place."""
    first, count, mu = problem.first, problem.count, problem.mu
    rate[:] = P
    sweep(problem, 0.5, P)
    sweeps = np.inf
    for c in range(first.size):
        i = first[c]
        if problem.given[c] or count[c] == 1 or not np.isfinite(mu[c]):
            continue
        a, h, inside = 0.0, 0.0, 0.0  # a n^2 + 2 h n + inside = 0 after n sweeps
        for k in range(i, i + count[c]):
            weight = -mu[c] * mu[c] if k == i else 1.0
            a += weight * (P[k] - rate[k]) ** 2
            h += weight * (P[k] - rate[k]) * P[k]
            inside += weight * P[k] * P[k]
        if not inside < -AT_LIMIT * disk(mu[c], P[i]) ** 2 or not h * h - a * inside >= 0.0:
            continue
        root = math.sqrt(h * h - a * inside)
        sweeps = min(sweeps, -inside / (h + root) if h + root > 0.0 else np.inf)  # the smallest positive one
    for i in range(P.size):
        rate[i] = P[i] - rate[i]
        if np.isfinite(sweeps):
            P[i] += sweeps * rate[i]
    for _ in range(more):
        sweep(problem, 0.5, P)


@kernel
def newton(problem, smallest, P, room):
    """Newton steps on the conditions, P in place; (residual, size of the forces that it is relative to)."""
    left, size = 0.0, smallest
    for _ in range(NEWTON_STEPS):
        left, size = linearize_conditions(problem, P, room.F, room.J), max(smallest, largest_size(P))
        left = left / size if size > 0.0 else 0.0
        if not left > CONVERGED:
            break
        rank = row_space(room.J, 1e-11, room.B, room.V, room.s)
        shortest_solution(room.B, room.V, room.s, rank, room.F, room.step)
        add_multiple(-1.0, room.step, P)
    return left, size


@kernel
def solve_coulomb(problem, noise, P):
    """Forces P (k), from a guess in place; returns (status, residual relative to the forces).

    `noise` is the size of the numbers that b is the difference of, whose rounding it has.

    Contacts that all stick may contradict each other a little, where D is singular: two corners of a body cannot stick
    while one of them is lifted more than the other. Then each sweep adds a little to the forces between them, until one
    slips. Leaps go there at once.
    """
    k = P.size
    room = Room(np.empty(k), np.empty((k, k)), np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k))
    trial, leapt = np.empty(k), np.empty(k)
    smallest = 0.0  # of the forces that would stop each motion alone
    for i in range(k):
        if problem.D[i, i] > 0.0:
            smallest = max(smallest, max(abs(problem.b[i]), LEAST * noise) / problem.D[i, i])
    usual = max(smallest, largest_size(P))
    sweeps, left, size = SWEEPS, 0.0, 0.0
    for tried in range(ROUNDS):
        for _ in range(sweeps):  # with less and less relaxation: friction may make longer steps go round in circles
            sweep(problem, 1.0 / (1.0 + 0.5 * tried), P)
        sweeps *= 3
        leapt[:] = P
        for leaps in range(LEAPS + 1):
            if leaps > 0:
                leap(problem, min(sweeps, MOST), leapt, room.step)
            trial[:] = leapt
            left, size = newton(problem, smallest, trial, room)
            if left * size > UNMOVED * usual:
                left = np.inf
            if not (left <= 100.0 * CONVERGED and admissible(problem, trial, size)):
                continue
            P[:] = trial
            rank = row_space(problem.D, 1e-11, room.B, room.V, room.s)
            if rank < k:  # of all forces with these motions the shortest, if it is a solution: loads are shared evenly
                trial[:] = 0.0
                for i in range(rank):
                    trial += (room.V[i] * P).sum() * room.V[i]
                size = max(smallest, largest_size(trial))
                found = linearize_conditions(problem, trial, room.F, room.J)
                if found <= 100.0 * CONVERGED * size and admissible(problem, trial, size):
                    P[:] = trial
            return SOLVED, left
        if not largest_size(P) < np.inf:
            return NOT_SOLVED, np.inf
    if left <= ALMOST and admissible(problem, trial, size):
        P[:] = trial
        return SOLVED, left
    return NOT_SOLVED, left


@kernel_in_place
def admissible(problem, P, size):
    """Does nothing pull, and is all friction inside its disk? True for every solution, not for every root of F."""
    for c in range(problem.first.size):
        i = problem.first[c]
        if not P[i] >= -1e3 * CONVERGED * size:
            return False
        friction = 0.0
        for k in range(i + 1, i + problem.count[c]):
            friction += P[k] * P[k]
        if not math.sqrt(friction) <= disk(problem.mu[c], P[i]) + 1e3 * CONVERGED * size:
            return False
    return True
