"""From one start, and then from others: descents until all targets are reached, in compiled rows of a batch.

Where a descent ends at a minimum that is not what was wanted, mostly at limits, the search goes on from the
configuration reflected in the middle of the limits, each time less far from it: joints at their limits come off them,
to the other side. That takes few more steps and no chance. Where there are no limits, or it stands in the middle of
them, as a stretched arm does that should become shorter, it goes on from a little beside. Then come the other starts,
the same for all rows of a batch, until the targets of the first priority are reached: those of lower ones take none.
"""
import math

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.vectors import copy_to
from liedyn.mechanics.tree.places import displace, displacement
from liedyn.model.calls.batches import batch
from liedyn.model.packed import PackedModel
from liedyn.tasks.reaching.descent import descend, gain
from liedyn.tasks.reaching.reaching_problem import close_within, evaluate, first_levels, reached_level, room_for, within

REFLECTIONS = 5
"""How often a stalled descent goes on from its reflection."""
ENOUGH, NO_MORE = 1e-3, 1e-12
"""Part of the squared error that a step has to gain: while there are other ways, and at the end."""
ASIDE = 0.1
"""What counts as another place [rad, m], and how far beside to go on."""
WALK = 20
"""Steps from a closed configuration towards another start."""
WAITING = -2
"""Status of a row that has not been searched yet."""


@kernel_in_place
def reflect(model, problem, tries, room, q, out):
    """out = q reflected in the middle of its limits, less far each time; where that is no other place, beside q."""
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
    """Move a closed q to `start`, or on closed configurations as near to it as it comes; what is held stays."""
    if room.g.size == 0:
        displacement(model, q, start, room.d)
        for j in range(room.d.size):
            room.d[j] = 0.0 if problem.fixed[j] != 0 else room.d[j]
        displace(model, q, room.d, q)
        within(problem, q)
    else:
        descend(model, first_levels(problem, 0), start, start, WALK, ENOUGH, room, q)


@kernel_in_place
def settle(model, problem, goal, posture, iterations, room, q):
    """From where the search has ended to the very minimum, lower priorities and posture included; its iterations.

    What these have bent of the first priority is taken back.
    """
    was_reached = reached_level(problem, room.error, 0)
    _, total = descend(model, problem, goal, posture, iterations, NO_MORE, room, q)
    if was_reached and not reached_level(problem, room.error, 0):
        total += descend(model, first_levels(problem, 1), goal, posture[:0], iterations, NO_MORE, room, q)[1]
        evaluate(model, problem, goal, posture, room, q, room.error, room.merit)
    return total


@kernel
def search(model, problem, goal, posture, starts, iterations, room, q):
    """Moves a closed q to the best of all descents; (are all targets reached?, iterations, other starts used)."""
    first, best, merit, other = q.copy(), q.copy(), np.full_like(room.merit, np.inf), np.empty_like(q)
    error, total, used = room.error.copy(), 0, 0
    while True:
        for tries in range(1 + REFLECTIONS):
            reached, count = descend(model, problem, goal, posture[:0], iterations, ENOUGH, room, q)
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
    if not reached or posture.size > 0:
        q[:] = best
        room.error[:] = error
        total += settle(model, problem, goal, posture, iterations, room, q)
    return reached_level(problem, room.error, problem.ends.size), total, used


@batch
def search_states(begin, end, model, q, goals, posture, problem, starts, iterations, path, budget, errors, status,
                  counts, restarts):
    """`search` on each row that is WAITING: q (count, nq) in and out, goals, posture (count, nq, or no columns), errors
    (count, r).

    With a `path` of so many rows, which are worked on all at once then, each begins where the one before has ended,
    unless it is the first of its path. `status` becomes 1 where all targets are reached, 0 where not, -1 where the
    start could not be closed. After `budget` iterations the rows that are left stay WAITING.
    """
    model = PackedModel(model.ints, model.floats.copy())  # where users' functions leave what they return
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
        reached, counts[b], restarts[b] = search(model, problem, goals[b], posture[b], starts, iterations, room, q[b])
        status[b] = 1 if reached else 0
        errors[b] = room.error
        budget -= 1 + counts[b]
