"""One step of inverse kinematics: damped least squares with equations, by priority, within bounds.

The step d of the coordinates satisfies the linearised loops and reduces the error of each level of targets as far as
damping allows, and each level preserves the results of the levels before it:

    min |e_k + J_k d|^2 + damping |d|^2   with   G d = -g,   J_i d unchanged for i < k,   low <= d <= up

Rows of equations are orthonormalised, Q, which drops redundant ones. The least-norm solution of the equations is
completed in their null space, where P = J (1 - Q^T Q): by -P^T (P P^T + damping 1)^-1 (e + J d), with small matrices of
as many rows as a level has. Bounds are satisfied by an active set (Nocedal and Wright 2006, 16.5): on the way from the
step of the level before to the best one, the coordinate that reaches its bound first is held there, and the others
compensate for it.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.nearest import backward, factor, forward, orthonormal_rows
from liedyn.machine.linalg.vectors import add_multiple, copy_to, inner

RANK_TOLERANCE = 1e-8
"""Rows whose orthogonalised length is below this part of their own are redundant."""
LEAST_DAMPING = 1e-14
"""Smallest damping, which keeps matrices positive definite: singular values below 1e-7 take no part in a step."""
BEYOND = 1e-10
"""Excess of a bound that counts, above rounding, as rounding may move coordinates that cannot move."""
CHANGES = 4
"""Largest number of changes of the held coordinates, per degree of freedom."""


class Task(NamedTuple):
    """The data of a step: r rows of targets, m rows of loops, n degrees of freedom.

    Attributes
    ----------
    J, e : ndarray, shapes (r, n) and (r)
        Rows and errors of targets, level after level.
    ends : ndarray of int64, shape (levels)
        End of the rows of each level.
    squares : ndarray, shape (levels)
        Reference of the damping of each level.
    G, g : ndarray, shapes (m, n) and (m)
    toward : ndarray, shape (n) or (0)
        Wanted step in the remaining freedom.
    low, up : ndarray, shape (n)
        Bounds of the step.
    """

    J: np.ndarray
    e: np.ndarray
    ends: np.ndarray
    squares: np.ndarray
    G: np.ndarray
    g: np.ndarray
    toward: np.ndarray
    low: np.ndarray
    up: np.ndarray


class StepRoom(NamedTuple):
    """Scratch arrays: m rows of loops, r rows of targets (at least one), n degrees of freedom."""

    Y: np.ndarray  # (m + r, n + 1) equations, which become orthonormal rows
    order: np.ndarray  # (m + r) of int64
    done: np.ndarray  # (r) results of the levels: J d
    P: np.ndarray  # (r, n) rows of a level in the null space
    A: np.ndarray  # (r, r)
    y: np.ndarray  # (r)
    held: np.ndarray  # (n) of int64: 1 for coordinates that are fixed or at a bound of the step
    kept: np.ndarray  # (n) the step so far
    weights: np.ndarray  # (m) of the rows of loops, before ranks are judged (`liedyn.machine.linalg.ranks`)


@kernel
def step_room(m, r, n):
    return StepRoom(np.empty((m + r, n + 1)), np.empty(m + r, np.int64), np.empty(r), np.empty((r, n)),
                    np.empty((r, r)), np.empty(r), np.empty(n, np.int64), np.empty(n), np.ones(m))


@kernel_in_place
def project(Q, x):
    """x -= Q^T Q x; x may be shorter than the rows of Q."""
    for k in range(Q.shape[0]):
        add_multiple(-inner(Q[k], x), Q[k], x)


@kernel_in_place
def put_equation(row, goal, held, d, y):
    """y = [row | goal], restricted to the coordinates that are not held."""
    n = d.size
    for j in range(n):
        y[j] = 0.0 if held[j] != 0 else row[j]
        goal -= row[j] * d[j] if held[j] != 0 else 0.0
    y[n] = goal


@kernel_in_place
def shorten(Y, held, d):
    """The least-norm solution of the equations Y, orthonormalised here, in the coordinates that are not held."""
    n = d.size
    for j in range(n):
        d[j] = d[j] if held[j] != 0 else 0.0
    for k in range(Y.shape[0]):
        for j in range(n):
            d[j] += Y[k, n] * Y[k, j]


@kernel_in_place
def hold_levels(G, g, J, room, d):
    """Solves G d = -g and J d = `room.done` by the least-norm step of the coordinates that are not held; the rank."""
    m, count = g.size, J.shape[0]
    for i in range(m):
        put_equation(G[i], -g[i], room.held, d, room.Y[i])
        for j in range(d.size + 1):
            room.Y[i, j] *= room.weights[i]
    for i in range(count):
        put_equation(J[i], room.done[i], room.held, d, room.Y[m + i])
    rank, _ = orthonormal_rows(room.Y[:m + count], RANK_TOLERANCE, room.order)
    shorten(room.Y[:rank], room.held, d)
    return rank


@kernel_in_place
def close_step(G, g, room, d):
    """Solves G d = -g by the least-norm step of the coordinates that are not held; the rank."""
    return hold_levels(G, g, G[:0], room, d)


@kernel_in_place
def level_step(J, e, damping, Q, room, d):
    """Adds to d the step of one level in the null space of Q."""
    r, n = J.shape
    P, A, y = room.P[:r], room.A[:r, :r], room.y[:r]
    for i in range(r):
        y[i] = e[i] + inner(J[i], d)
        for j in range(n):
            P[i, j] = 0.0 if room.held[j] != 0 else J[i, j]
        project(Q, P[i])
        for k in range(i + 1):
            A[i, k] = inner(P[k], P[i]) + (damping if i == k else 0.0)
    if factor(A, A):
        forward(A, y)
        backward(A, y)
        for i in range(r):
            add_multiple(-y[i], P[i], d)


@kernel_in_place
def free_step(task, level, damping, room, d):
    """The step of a level with held coordinates at their values in d."""
    n, begin = d.size, task.ends[level - 1] if level > 0 else 0
    Q = room.Y[:hold_levels(task.G, task.g, task.J[:begin], room, d)]
    if level < task.ends.size:
        end = task.ends[level]
        level_step(task.J[begin:end], task.e[begin:end], damping * task.squares[level] + LEAST_DAMPING, Q, room, d)
    else:
        rest = room.P[0]
        for j in range(n):
            rest[j] = 0.0 if room.held[j] != 0 else task.toward[j] - d[j]
        project(Q, rest)
        add_multiple(1.0, rest, d)


@kernel_in_place
def blocking(task, room, d):
    """The free coordinate that reaches its bound first between room.kept and d (-1: none), and the fraction there."""
    first, part = -1, 1.0
    for j in range(d.size):
        bound = task.up[j] if d[j] > task.up[j] + BEYOND else (task.low[j] if d[j] < task.low[j] - BEYOND else d[j])
        if room.held[j] == 0 and bound != d[j]:
            here = max(0.0, (bound - room.kept[j]) / (d[j] - room.kept[j]))
            if here < part or first < 0:
                first, part = j, min(here, part)
    return first, part


@kernel_in_place
def let_go(task, level, fixed, damping, room, d):
    """Releases a coordinate at a bound that the step would move inside; False if there is none."""
    for j in range(d.size):
        if room.held[j] == 0 or fixed[j] != 0 or task.up[j] - task.low[j] <= BEYOND:
            continue
        copy_to(d, room.kept)
        room.held[j] = 0
        free_step(task, level, damping, room, d)
        inside = d[j] < task.up[j] - BEYOND if room.kept[j] == task.up[j] else d[j] > task.low[j] + BEYOND
        copy_to(room.kept, d)
        if inside:
            return True
        room.held[j] = 1
    return False


@kernel_in_place
def bounded_level(task, level, fixed, damping, careful, room, d):
    """Moves d, within its bounds, to the step of one level."""
    for j in range(d.size):
        room.held[j] = fixed[j]
    for _ in range(CHANGES * d.size):
        copy_to(d, room.kept)
        free_step(task, level, damping, room, d)
        block, part = blocking(task, room, d)
        if block < 0:
            if not careful or not let_go(task, level, fixed, damping, room, d):
                break
        else:
            bound = task.up[block] if d[block] > task.up[block] else task.low[block]
            for j in range(d.size):
                d[j] = room.kept[j] + part * (d[j] - room.kept[j])
            room.held[block], d[block] = 1, bound
    for j in range(d.size):
        d[j] = min(max(d[j], task.low[j]), task.up[j])


@kernel_in_place
def bounded_step(task, fixed, damping, careful, room, d):
    """d (n), the step of a `Task`; `fixed` (n) marks coordinates that do not move.

    Only a `careful` step releases coordinates at their bounds that it would move inside again, and is optimal.
    """
    for j in range(d.size):
        d[j] = min(max(0.0, task.low[j]), task.up[j]) if fixed[j] == 0 else 0.0
    last = task.ends.size if task.toward.size > 0 else task.ends.size - 1
    for level in range(max(last, 0) + 1):
        bounded_level(task, level, fixed, damping, careful, room, d)
        if level < last:
            for i in range(task.ends[level]):
                room.done[i] = inner(task.J[i], d)
