"""One step of inverse kinematics: damped least squares behind equations, by priority, within bounds.

The step d of the coordinates satisfies the linearised loops and comes as near to each level of targets as damping lets
it, one level within what the levels before it leave free:

    G d = -g         min |e_k + J_k d|^2 + damping |d|^2 over d_k in the null space of G, J_1, ... J_k-1

Rows are projected on that null space, P = J (1 - Q^T Q) with orthonormal rows Q, and then d_k = -P^T (P P^T + damping
1)^-1 (e_k + J_k d): small matrices of as many rows as a level has. Redundant rows of G have no direction in Q. Bounds
lo <= d <= up are met by an active set within the step: the coordinate that would go farthest beyond its bound is held
there, and all others share what it cannot do.
"""
from typing import NamedTuple

import numpy as np

from liedyn.compiled.jit import kernel, kernel_in_place
from liedyn.linalg.nearest import backward, factor, forward, orthonormal_rows

RANK_TOLERANCE = 1e-8
"""Rows that are left with less than this part of their length have no direction of their own."""

LEAST_DAMPING = 1e-14
"""Keeps what is factorised positive definite: singular values of 1e-7 and less take no part in a step."""


class StepRoom(NamedTuple):
    """Arrays to work in: m rows of loops, r rows of targets, n degrees of freedom."""

    Y: np.ndarray  # (m, n + 1)
    order: np.ndarray  # (max(m, r)) of int64
    Q: np.ndarray  # (n, n) orthonormal rows of what is taken
    P: np.ndarray  # (r, n + 1) rows of a level in what is free
    A: np.ndarray  # (r, r)
    y: np.ndarray  # (r)
    held: np.ndarray  # (n) of int64: 1 for coordinates at a bound of the step


@kernel
def step_room(m, r, n):
    return StepRoom(np.empty((m, n + 1)), np.empty(max(m, r), np.int64), np.empty((n, n)), np.empty((r, n + 1)),
                    np.empty((r, r)), np.empty(r), np.empty(n, np.int64))


@kernel_in_place
def project(Q, rank, x):
    """x -= Q^T Q x for the first `rank` rows of Q."""
    n = Q.shape[1]
    for k in range(rank):
        s = 0.0
        for j in range(n):
            s += Q[k, j] * x[j]
        for j in range(n):
            x[j] -= s * Q[k, j]


@kernel_in_place
def close_step(G, g, room, d):
    """d of the coordinates that are not held, as short as the linearised loops allow; their rank goes to Q."""
    m, n = G.shape
    for i in range(m):
        rest = -g[i]
        for j in range(n):
            room.Y[i, j] = 0.0 if room.held[j] != 0 else G[i, j]
            rest -= G[i, j] * d[j] if room.held[j] != 0 else 0.0
        room.Y[i, n] = rest
    rank, _ = orthonormal_rows(room.Y, RANK_TOLERANCE, room.order)
    for k in range(rank):
        for j in range(n):
            room.Q[k, j] = room.Y[k, j]
            d[j] += room.Y[k, n] * room.Y[k, j]
    return rank


@kernel_in_place
def level_step(J, e, damping, rank, room, d):
    """Adds the step of one level to d; leaves its rows, projected, in room.P; returns their largest square."""
    r, n = J.shape
    longest = 0.0
    for i in range(r):
        rest, size = e[i], 0.0
        for j in range(n):
            rest += J[i, j] * d[j]
            size += J[i, j] * J[i, j]
            room.P[i, j] = 0.0 if room.held[j] != 0 else J[i, j]
        longest = max(longest, size)
        room.y[i] = rest
        project(room.Q, rank, room.P[i, :n])
    for i in range(r):
        for k in range(i + 1):
            s = damping if i == k else 0.0
            for j in range(n):
                s += room.P[i, j] * room.P[k, j]
            room.A[i, k] = s
    A, y = room.A[:r, :r], room.y[:r]
    if factor(A, A):
        forward(A, y)
        backward(A, y)
        for i in range(r):
            for j in range(n):
                d[j] -= room.P[i, j] * y[i]
    return longest


@kernel_in_place
def take(r, longest, rank, room):
    """The directions of a level, left in room.P, go to Q behind the first `rank`; returns how many there are now."""
    n = room.Q.shape[1]
    P, largest = room.P[:r], 0.0
    for i in range(r):
        s = 0.0
        for j in range(n):
            s += P[i, j] * P[i, j]
        largest = max(largest, s)
        P[i, n] = 0.0
    if largest <= RANK_TOLERANCE * RANK_TOLERANCE * longest:
        return rank
    found, _ = orthonormal_rows(P, RANK_TOLERANCE * np.sqrt(longest / largest), room.order)
    found = min(found, n - rank)
    for k in range(found):
        for j in range(n):
            room.Q[rank + k, j] = P[k, j]
    return rank + found


@kernel_in_place
def unbounded_step(J, e, ends, G, g, toward, damping, squares, room, d):
    """The step with the coordinates that are held as d has them; returns the rank of all that is taken."""
    n = d.size
    for j in range(n):
        d[j] = d[j] if room.held[j] != 0 else 0.0
    rank, begin = close_step(G, g, room, d), 0
    for k in range(ends.size):
        longest = level_step(J[begin:ends[k]], e[begin:ends[k]], damping * squares[k] + LEAST_DAMPING, rank, room, d)
        if k + 1 < ends.size or toward.size > 0:
            rank = take(ends[k] - begin, longest, rank, room)
        begin = ends[k]
    if toward.size > 0:
        rest = room.P[0, :n]
        for j in range(n):
            rest[j] = 0.0 if room.held[j] != 0 else toward[j] - d[j]
        project(room.Q, rank, rest)
        for j in range(n):
            d[j] += rest[j]
    return rank


@kernel_in_place
def bounded_step(J, e, ends, G, g, toward, low, up, fixed, damping, squares, room, d):
    """d (n) with low <= d <= up: `J`, `e` rows of targets, level after level, which end at `ends`; G d = -g.

    `toward` (n, or none) is where what is left free goes; `fixed` (n) marks what stays. The damping is relative to the
    squared errors of the levels, `squares`.
    """
    n = d.size
    for j in range(n):
        room.held[j] = fixed[j]
        d[j] = 0.0
    for _ in range(n + 1):
        unbounded_step(J, e, ends, G, g, toward, damping, squares, room, d)
        worst, beyond = -1, 1e-14
        for j in range(n):
            past = max(low[j] - d[j], d[j] - up[j])
            if room.held[j] == 0 and past > beyond:
                worst, beyond = j, past
        if worst < 0:
            break
        room.held[worst] = 1
        d[worst] = low[worst] if d[worst] < low[worst] else up[worst]
    for j in range(n):
        d[j] = min(max(d[j], low[j]), up[j])
