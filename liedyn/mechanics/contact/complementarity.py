"""Normal and friction forces of several contacts: a complementarity problem with circular friction disks.

For contact c let P_n be the normal force (or impulse), P_t the friction, u_n and u_t the accelerations (or velocities)
along them; u = D P + b with the Delassus matrix D = H M^-1 H^T, symmetric and positive semidefinite. Wanted are

    0 <= P_n,  0 <= u_n,  P_n u_n = 0                                   Signorini
    |P_t| <= mu P_n,  and P_t = -mu P_n u_t / |u_t| where u_t != 0      Coulomb

(Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems, 2008, chapters 12 and 13). A contact that
slides already has a given direction d of its motion, and P_t = -mu P_n d whatever u_t is. Of dry friction in joints
(`liedyn.mechanics.contact.sliding_friction`) P_n is given, and u_n is nothing.

A solution is computed by following a path through the interior of the cones
(`liedyn.mechanics.contact.cone_interior_point`), which works for dependent contacts, too, such as the four corners of a
box on the floor; where a path ends early, along others. Newton steps on the projections (Alart and Curnier 1991),

    P_n = max(0, P_n - r u_n)        P_t = projection of P_t - r u_t on the disk of radius mu P_n,

then make it exact to rounding, unless a contact is just about to change. Where D is singular the forces are not unique:
each Newton step is the shortest one, and of all forces with the same motion those of least norm are used if they are a
solution, so that loads are shared evenly.

Without friction there is a solution whenever some motion u_n >= 0 is possible, by a quadratic program; with friction
too, as long as some motion has u_n > 0 for all contacts (Acary, Cadoux, Lemarechal and Malick 2011). Known directions
of sliding may contradict each other (Painleve 1895).

More contacts than can be closed at once, as corners in a plane but for 1e-9 m, are the hard case: some of them open by
such small motions that every path ends before it tells which. Then contacts are left open beforehand, each in turn, and
then those together that seem to open most clearly; the conditions are those of all contacts as ever.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.nearest import orthonormal_rows, shortest
from liedyn.machine.linalg.vectors import add_multiple, inner
from liedyn.mechanics.contact.cone_interior_point import Way, interior_point

SOLVED, NOT_SOLVED = 0, 1
CONVERGED = 1e-13
"""Residual, relative to the largest force, that counts as rounding: some last digits of sums of ten terms."""
NEWTON_STEPS = 12
WAYS = (Way(1e-3, 0.99, 0.0, 0.0, 0.0), Way(1e-2, 0.9, 0.0, 0.0, 1.0), Way(1e-2, 0.9, 0.0, 100.0, 1.0),
        Way(0.1, 0.9, 0.5, 0.0, 0.0), Way(0.1, 0.7, -0.5, 1.0, 0.0), Way(1e-2, 0.9, -0.5, 0.0, 0.0),
        Way(1e-2, 0.8, -0.7, 0.01, 0.1), Way(0.1, 0.7, -0.9, 0.0, 0.0))
"""Paths of `interior_point`, tried in this order until one gives a solution."""
FEW = 3
"""Number of paths that are tried where contacts are left open."""
GOOD, ALMOST = 1e-11, 1e-7
"""Accepted violation of the conditions, relative to forces and motions: usually, and if no attempt is better."""
DEPENDENT = 1e-11
"""A row whose remainder is below this fraction of the longest row depends on the others."""
LEAST = 1e-3
"""Motion, relative to the numbers whose difference it is, below which rounding affects the last digits."""


Coulomb = namedtuple("Coulomb", "Y b first count mu given direction limit")
"""A problem: Y (k, p) with D = Y Y^T, b (k); for every contact its first row (the normal one), the number of its rows,
mu, whether it slides already (given) and in which direction (contacts, 3), and P_n if that is given, else -1. Then its
normal row is empty, mu is 1, and there is one more row."""

Room = namedtuple("Room", "D F J rows order step")
"""Scratch arrays: D (k, k), F (k), its derivative J (k, k), rows (k, k + 1) and their order, and a step (k)."""


@kernel_in_place
def motion_along(D, b, P, i):
    """u_i = (D P + b)_i."""
    return b[i] + inner(D[i], P)


@kernel_in_place
def disk(mu, P_n):
    """Radius of the friction disk, mu max(0, P_n); mu may be infinite."""
    return mu * P_n if P_n > 0.0 else 0.0


@kernel_in_place
def step_sizes(D, i, count):
    """r for the normal row i and for the tangential rows after it: inverse sizes of their blocks in D."""
    normal, tangential = D[i, i], 0.0
    for k in range(i + 1, i + count):
        tangential += D[k, k]  # at least the largest eigenvalue of the block
    return 1.0 / normal if normal > 0.0 else 0.0, 1.0 / tangential if tangential > 0.0 else 0.0


@kernel
def linearize_conditions(problem, D, P, F, J):
    """F (k), zero at a solution, and its derivative J (k, k) by P; returns the largest |F_k|."""
    _, b, first, count, mu, given, direction, limit = problem
    F[:] = 0.0
    J[:] = 0.0
    for c in range(first.size):
        i, n = first[c], count[c]
        r_n, r_t = step_sizes(D, i, n)
        u = motion_along(D, b, P, i)
        closed = P[i] - r_n * u > 0.0
        if limit[c] >= 0.0:
            F[i], J[i, i], closed = P[i] - limit[c], 1.0, True
        elif closed:
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
                for l in range(n - 1):  # derivative of the projection times derivative of P_t - r u_t
                    across = ((1.0 if k == l else 0.0) - w[k] * w[l] / (size * size)) * radius / size
                    J[row, i + 1 + l] -= across
                    add_multiple(across * r_t, D[i + 1 + l], J[row])
    return largest_size(F)


@kernel
def newton(problem, size, P, room):
    """Newton steps on the conditions, P in place, until the residual relative to `size` stops falling."""
    k = P.size
    for _ in range(NEWTON_STEPS):
        left = linearize_conditions(problem, room.D, P, room.F, room.J)
        if not CONVERGED * size < left < np.inf:
            break
        for i in range(k):
            length = math.sqrt(inner(room.J[i], room.J[i]))
            scale = 1.0 / length if length > 0.0 else 0.0
            for j in range(k):
                room.rows[i, j] = scale * room.J[i, j]
            room.rows[i, k] = scale * room.F[i]
        rank, _ = orthonormal_rows(room.rows, DEPENDENT, room.order)
        shortest(room.rows, rank, room.step)
        add_multiple(-1.0, room.step, P)


@kernel
def violation(problem, D, P, unit):
    """How far forces are from a solution: the largest violation of a condition, relative to the forces and `unit`.

    For two numbers of which one must be zero, their product counts.
    """
    _, b, first, count, mu, given, direction, limit = problem
    size = force_size(problem, D, P, unit)
    worst = 0.0
    for c in range(first.size):
        i = first[c]
        u_n, P_n, u_t, P_t, power = motion_along(D, b, P, i) / unit, P[i] / size, 0.0, 0.0, 0.0
        if D[i, i] == 0.0 and limit[c] < 0.0:
            continue
        for k in range(i + 1, i + count[c]):
            u, force = motion_along(D, b, P, k) / unit, P[k] / size
            if given[c]:
                worst = max(worst, abs(force + mu[c] * P_n * direction[c, k - i - 1]))
                continue
            u_t += u * u
            P_t += force * force
            power += force * u
        u_t, P_t = math.sqrt(u_t), math.sqrt(P_t)
        slips = (mu[c] * P_n if np.isfinite(mu[c]) else P_n) * u_t + (power if np.isfinite(mu[c]) else 0.0)
        beyond = P_t - disk(mu[c], P_n) if P_t > 0.0 else 0.0
        each = max(max(-u_n, -P_n), max(abs(u_n * P_n), max(slips, beyond)))
        if not each <= worst:  # also true for NaN
            worst = each
    return worst


@kernel_in_place
def force_size(problem, D, P, unit):
    """The largest unknown force, at least the one that causes the motion `unit` where forces cause most motion."""
    largest, size = 0.0, 0.0
    for c in range(problem.first.size):
        for i in range(problem.first[c] + (1 if problem.limit[c] >= 0.0 else 0), problem.first[c] + problem.count[c]):
            largest = max(largest, D[i, i])
            if not abs(P[i]) <= size:  # also true for NaN
                size = abs(P[i])
    return max(size, unit / largest if largest > 0.0 else 0.0)


@kernel_in_place
def put_limits(problem, P):
    """The normal forces that are given."""
    for c in range(problem.first.size):
        if problem.limit[c] >= 0.0:
            P[problem.first[c]] = problem.limit[c]


@kernel
def share_evenly(problem, P, room):
    """The shortest forces with the same motion as P, in room.step."""
    Y = problem.Y
    rows, order = np.zeros((Y.shape[1], P.size + 1)), np.empty(Y.shape[1], np.int64)
    for j in range(Y.shape[1]):
        for i in range(P.size):
            rows[j, i] = Y[i, j]
            rows[j, P.size] += Y[i, j] * P[i]
    rank, _ = orthonormal_rows(rows, DEPENDENT, order)
    shortest(rows, rank, room.step)
    put_limits(problem, room.step)
    return rank


@kernel
def follow_paths(problem, b, unit, ways, best, trial, P, room):
    """Improves forces P (k) with the violation `best` along paths, with right sides b; returns their new violation."""
    attempted = Coulomb(problem.Y, b, problem.first, problem.count, problem.mu, problem.given, problem.direction,
                        problem.limit)
    for n in range(ways):
        interior_point(attempted, unit, WAYS[n], trial)
        for exact in (False, True):
            if exact:
                newton(attempted, force_size(attempted, room.D, trial, unit), trial, room)
            found = violation(problem, room.D, trial, unit)
            if found < best or exact and found <= GOOD:
                best = found
                P[:] = trial
        if best <= GOOD:
            break
    return best


@kernel
def leave_open(problem, unit, best, trial, P, room):
    """Improves forces P (k) with the violation `best` by contacts that are left open; returns their new violation."""
    first, b, forces = problem.first, problem.b.copy(), P.copy()
    order = np.empty(first.size)
    for _ in range(first.size - 1):
        size = force_size(problem, room.D, forces, unit)
        for c in range(first.size):  # by which motion for how much force a contact opens
            left = problem.limit[c] >= 0.0 or b[first[c]] > problem.b[first[c]]
            order[c] = -np.inf if left else motion_along(room.D, problem.b, forces, first[c]) / unit / max(
                CONVERGED, forces[first[c]] / size)
        for c in np.argsort(-order):
            if order[c] == -np.inf:
                continue
            b[first[c]] += 10.0 * unit  # it opens, whatever the others do
            best = follow_paths(problem, b, unit, FEW, best, trial, P, room)
            if best <= GOOD:
                return best
            b[first[c]] = problem.b[first[c]]
        if not np.max(order) > -np.inf:
            break
        b[first[np.argmax(order)]] += 10.0 * unit
        follow_paths(problem, b, unit, 1, np.inf, trial, forces, room)
    return best


@kernel
def solve_coulomb(problem, noise, P):
    """Forces P (k), written in place; returns (status, violation of the conditions relative to the forces).

    `noise` is the size of the numbers whose difference b is, and so determines the rounding error of b.
    """
    k, b, approaches = P.size, problem.b, False
    P[:] = 0.0
    put_limits(problem, P)
    for c in range(problem.first.size):
        i = problem.first[c]
        approaches = approaches or (b[i + 1] != 0.0 if problem.limit[c] >= 0.0 else not b[i] >= 0.0)
    if not approaches:
        return SOLVED, 0.0
    room = Room(np.empty((k, k)), np.empty(k), np.empty((k, k)), np.empty((k, k + 1)), np.empty(k, np.int64),
                np.empty(k))
    for i in range(k):
        for j in range(k):
            room.D[i, j] = inner(problem.Y[i], problem.Y[j])
    unit, trial = max(largest_size(b), LEAST * noise), np.zeros(k)
    if not unit < np.inf:
        return NOT_SOLVED, np.inf
    best = follow_paths(problem, b, unit, len(WAYS), np.inf, trial, P, room)
    if not best <= ALMOST and not problem.given.any():  # of known directions there may be no solution
        best = leave_open(problem, unit, best, trial, P, room)
    if not best <= ALMOST:
        return NOT_SOLVED, best
    if share_evenly(problem, P, room) < k and violation(problem, room.D, room.step, unit) <= max(best, CONVERGED):
        P[:] = room.step
    size = force_size(problem, room.D, P, unit)
    for c in range(problem.first.size):
        i = problem.first[c]
        if abs(P[i]) <= CONVERGED * size and problem.limit[c] < 0.0:
            P[i:i + problem.count[c]] = 0.0
    return SOLVED, best
