"""The search from one start, then from others: descents until all targets are reached, for rows of a batch, compiled.

If a descent ends at a local minimum, mostly at limits, the search continues from the configuration reflected at the
middle of the limits, each time at a smaller distance: joints leave their limits to the other side. That takes few more
steps and is deterministic. Without limits, or in the middle of them, as for a stretched arm that should become shorter,
it continues from a nearby configuration. Then other starts follow, the same for all rows of a batch, until the targets
of the first priority are reached: those of lower priority need no other starts.
"""
import math
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.vectors import copy_to
from liedyn.mechanics.tree.places import displace, displacement
from liedyn.model.calls.batches import batch
from liedyn.model.packed import PackedModel
from liedyn.tasks.reaching.descent import descend, gain
from liedyn.tasks.reaching.reaching_problem import (
    Aim, close_within, evaluate, first_levels, reached_level, room_for, within,
)

REFLECTIONS = 5
"""Number of reflections from which a stalled descent continues."""
ENOUGH, NO_MORE = 1e-3, 1e-12
"""Relative decrease of the squared error that a step must reach: while there are other starts, and at the end."""
ASIDE = 0.1
"""Distance [rad, m] above which two configurations differ, and distance of a nearby start."""
WALK = 20
"""Number of steps from a closed configuration towards another start."""
WAITING = -2
"""Status of a row that has not been searched yet."""


@kernel_in_place
def reflect(model, problem, tries, room, q, out):
    """out = q reflected at the middle of its limits, at a smaller distance each time; next to q if out would be q."""
    copy_to(q, out)
    moved, part = False, 1.0 - (tries + 1) / REFLECTIONS
    for j in range(problem.places.size):
        low, up = problem.lower[j], problem.upper[j]
        if problem.places[j] >= 0 and problem.fixed[j] == 0 and up - low < np.inf:
            k, middle = problem.places[j], 0.5 * (low + up)
            out[k] = middle - part * (q[k] - middle)
            moved = moved or abs(out[k] - q[k]) > ASIDE
    if not moved:
        for j in range(room.d.size):
            room.d[j] = ASIDE * (1 + tries) * math.cos(j) if problem.fixed[j] == 0 else 0.0
        displace(model, q, room.d, out)


@kernel_in_place
def go_to(model, problem, start, room, q):
    """Moves a closed q to `start`, or along closed configurations as near to it as possible; held coordinates stay."""
    if room.g.size == 0:
        displacement(model, q, start, room.d)
        for j in range(room.d.size):
            room.d[j] = 0.0 if problem.fixed[j] != 0 else room.d[j]
        displace(model, q, room.d, q)
        within(problem, q)
    else:
        descend(model, first_levels(problem, 0), Aim(start, start), WALK, ENOUGH, room, q)


@kernel_in_place
def settle(model, problem, aim, iterations, room, q):
    """From the result of the search to the minimum with lower priorities and posture; returns the iterations.

    Errors of the first priority that these cause are corrected.
    """
    was_reached = reached_level(problem, room.error, 0)
    _, total = descend(model, problem, aim, iterations, NO_MORE, room, q)
    if was_reached and not reached_level(problem, room.error, 0):
        no_posture = Aim(aim.goal, aim.posture[:0])
        total += descend(model, first_levels(problem, 1), no_posture, iterations, NO_MORE, room, q)[1]
        evaluate(model, problem, aim, room, q, room.error, room.merit)
    return total


@kernel
def search(model, problem, aim, starts, iterations, room, q):
    """Moves a closed q to the best of all descents; (are all targets reached?, iterations, number of other starts)."""
    first, best, merit, other = q.copy(), q.copy(), np.full_like(room.merit, np.inf), np.empty_like(q)
    error, total, used, no_posture = room.error.copy(), 0, 0, Aim(aim.goal, aim.posture[:0])
    while True:
        for tries in range(1 + REFLECTIONS):
            reached, count = descend(model, problem, no_posture, iterations, ENOUGH, room, q)
            enough = reached_level(problem, room.error, 0)
            total += count
            if used == 0 and tries == 0 or gain(problem.floors, merit, room.merit) > 0.0:
                best[:] = q
                merit[:] = room.merit
                error[:] = room.error
            if enough or tries == REFLECTIONS:
                break
            reflect(model, problem, tries, room, q, other)
            go_to(model, problem, other, room, q)
        if enough or used == starts.shape[0]:
            break
        q[:] = first
        go_to(model, problem, starts[used], room, q)
        used += 1
    if not reached or aim.posture.size > 0:
        q[:] = best
        room.error[:] = error
        total += settle(model, problem, aim, iterations, room, q)
    return reached_level(problem, room.error, problem.ends.size), total, used


class SearchRows(NamedTuple):
    """What a search has of each row: q (count, nq) in and out, goals, posture (count, nq, or no columns), errors
    (count, r); `status`: 1 if all targets are reached, 0 if not, -1 if the start could not be closed; numbers of
    iterations and of other starts."""

    q: np.ndarray
    goals: np.ndarray
    posture: np.ndarray
    errors: np.ndarray
    status: np.ndarray
    counts: np.ndarray
    restarts: np.ndarray


class SearchEffort(NamedTuple):
    """Iterations of a descent; rows of a path, or 0; iterations after which the remaining rows stay WAITING."""

    iterations: int
    path: int
    budget: int


@batch
def search_states(begin, end, model, rows, problem, starts, effort):
    """`search` on each of the `SearchRows` that is WAITING.

    Rows of paths are treated in order: each starts where the one before has ended, except the first of its path.
    """
    q, status, path, budget = rows.q, rows.status, effort.path, effort.budget
    model = PackedModel(model.ints, model.floats.copy())  # holds the results of users' functions
    room = room_for(model, problem.weights.size, problem.ends.size)
    for b in range(begin, end):
        if status[b] != WAITING:
            continue
        if budget <= 0:
            break
        if path > 0 and b % path > 0 and status[b - 1] >= 0:
            q[b] = q[b - 1]
        within(problem, q[b])
        if not close_within(model, problem, room, q[b]):
            status[b] = -1
            continue
        reached, rows.counts[b], rows.restarts[b] = search(
            model, problem, Aim(rows.goals[b], rows.posture[b]), starts, effort.iterations, room, q[b])
        status[b] = 1 if reached else 0
        rows.errors[b] = room.error
        budget -= 1 + rows.counts[b]
