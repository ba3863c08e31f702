"""Newton's method and continuation to satisfy the constraints, in one compiled algorithm for one state and for many.

Newton steps on the manifold are in `liedyn.mechanics.constraints.closing_steps`; free joints are displaced along their
parents' axes (`liedyn.mechanics.tree.places`), so that a held coordinate is an entry of q. Held coordinates move to
their targets along a path from the closed guess, in parts: every point of the path is closed before the next part is
tried, and so the branch of the guess does not change.

The iteration itself, g(q) = 0 by Newton's method, is one for all that close constraints: `closer` makes it of two
functions. One measures how much is left open at q, and prepares a step. The other takes the step: the shortest one, in
any metric; within limits; of some coordinates, or of some rows. In compiled code it costs what a written loop would.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.mechanics.constraints.closing_steps import (
    LARGEST_STEP, ROUNDING, SMALLEST_PART, Held, begin_step, errors, put_step, room_for, shorter_way, take_step,
)
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.tree.places import displace, displacement
from liedyn.model.calls.batches import uneven_batch
from liedyn.model.constraint_records import ranking_of
from liedyn.model.packed import PackedModel

LONGEST_JUMP = 1.0
"""Largest move of a coordinate between two points of a path without suspecting a change of branch [rad, or lengths]."""
ITERATIONS = 60

CLOSED, OPEN_GUESS, OPEN_PATH, JUMP = range(4)
"""Outcome for a state: closed; the guess cannot be closed; the path to the targets ends in an open configuration; the
path continues only with a jump of other coordinates."""


class Target(NamedTuple):
    """Targets of the held coordinates of one state: `held`, q (nq) for the tree, values (k) for virtual ones."""

    held: Held
    q: np.ndarray
    values: np.ndarray


class Goals(NamedTuple):
    """Targets for rows of states: `held`, q (count, nq) and values (count, k)."""

    held: Held
    q: np.ndarray
    values: np.ndarray


class Rule(NamedTuple):
    """When the iteration ends; sizes are what `measure` returns.

    Attributes
    ----------
    steps : int
        Largest number of steps.
    rounding : float
        Closed, whatever was before: less cannot be had.
    enough : float
        Closed, if no step makes it smaller any more, as where rows contradict each other a little.
    slow : float
        Part of the size before from which on a step has not made it smaller.
    growth : float
        Where the size is not below this part of the one before, the iteration is given up.
    """

    steps: int
    rounding: float
    enough: float
    slow: float
    growth: float


def iteration(measure, correct):
    """``close(model, x, rule, q)``, a plain function: moves q to g(q) = 0; is it closed then?

    Parameters
    ----------
    measure : callable
        ``measure(model, x, q)``: how much is left open at q, one number, not finite where there is no saying.
    correct : callable
        ``correct(model, x, q)``: takes a step from q; False if there is none.

    Returns
    -------
    callable
        `x` is whatever the two take, `rule` a `Rule`. The last call but that of `correct` after the last step was that
        of `measure` at q.

    Examples
    --------
    The root of two:

    >>> close = iteration(lambda model, x, q: abs(q[0] ** 2 - 2.0), lambda model, x, q: x(q))
    >>> def step(q):
    ...     q[0] -= (q[0] ** 2 - 2.0) / (2.0 * q[0])
    ...     return True
    >>> q = np.array([1.0])
    >>> close(None, step, Rule(10, 1e-15, 1e-12, 0.5, np.inf), q), round(float(q[0]), 12)
    (True, 1.414213562373)
    """
    def close(model, x, rule, q):
        before = np.inf
        for _ in range(rule.steps):
            size = measure(model, x, q)
            if size <= rule.rounding or (size <= rule.enough and size > rule.slow * before):
                return True
            if not size < rule.growth * before:
                return False
            before = size
            if not correct(model, x, q):
                break
        return before <= rule.enough

    return close


def closer(measure, correct):
    """`iteration` of two helpers or kernels, as a helper of compiled code."""
    close = iteration(measure, correct)
    close.__name__ = close.__qualname__ = f"close_by_{correct.__name__}"  # its code has its name in common with none
    return inline(close)


@inline
def largest_error(model, of, q):
    """The largest error at q, as the step to it has left it."""
    return of[3].open[0]


@inline
def step_by_clusters(model, of, q):
    """A step of each cluster that is open; False if none can be taken."""
    held, goal, tolerance, room = of
    begin_step(room)
    put_step(model, q, held, room)
    return take_step(model, held, goal, tolerance, room, q)


_close = closer(largest_error, step_by_clusters)


@kernel_in_place
def newton(model, held, goal, tolerance, room, q):
    """Close q as well as rounding allows, without moving held coordinates; returns the largest error."""
    for c in range(room.part.size):
        room.part[c] = 1.0
    room.open[0] = errors(model, q, held, goal, room, room.error)
    _close(model, (held, goal, tolerance, room), Rule(ITERATIONS, ROUNDING, tolerance, np.inf, np.inf), q)
    return room.open[0]


@kernel_in_place
def largest_move(model, x):
    """The largest entry of a move x (nv) [rad, or units of length]."""
    largest, columns = 0.0, ranking_of(model, 0.0).columns
    for j in range(x.size):
        largest = max(largest, abs(x[j]) / columns[j])
    return largest


@kernel_in_place
def towards(model, q, target, held, share, room, out):
    """out = q with its held tree coordinates moved by a fraction `share` of the way to those of `target`."""
    displacement(model, q, target, room.step)
    for j in range(room.step.size):
        room.step[j] = share * room.step[j] if held.dofs[j] != 0 else 0.0
    displace(model, q, room.step, out)
    if share == 1.0:
        for k in range(q.size):
            if held.coordinates[k] != 0:
                out[k] = target[k]


@kernel
def follow(model, goal, tolerance, room, q):
    """Move a closed q along the path to the targets `goal` as far as possible; returns the outcome."""
    held, target, values = goal
    k, n = values.size, room.step.size
    begin, to_go, there, columns = np.empty(k), np.empty(k), np.empty(k), ranking_of(model, 0.0).columns
    virtual_kernel(model, room.world, room.z)
    way = 0.0
    for i in range(k):
        begin[i] = room.z[held.virtual[i]]
        to_go[i] = values[i] - begin[i]
        if held.angles[i] != 0:
            to_go[i] = shorter_way(to_go[i])
        way = max(way, abs(to_go[i]))
    displacement(model, q, target, room.step)
    for j in range(n):
        if held.dofs[j] != 0:
            way = max(way, abs(room.step[j]) / columns[j])
    trial, moved = np.empty(q.size), np.empty(n)
    done, part = 0.0, min(1.0, LARGEST_STEP / max(way, 1e-300))
    while done < 1.0:
        last = part >= 1.0 - done
        share = 1.0 if last else part / (1.0 - done)
        towards(model, q, target, held, share, room, trial)
        for i in range(k):
            there[i] = begin[i] + (1.0 if last else done + part) * to_go[i]
        error = newton(model, held, there, tolerance, room, trial)
        displacement(model, q, trial, moved)
        # a long jump of the other coordinates indicates another branch: shorten the part
        jumps = largest_move(model, moved) > LONGEST_JUMP
        if error <= tolerance and not jumps:
            q[:] = trial
            done, part = 1.0 if last else done + part, 2.0 * part
        else:
            part = 0.5 * min(part, 1.0 - done)
            if part < SMALLEST_PART:
                return JUMP if error <= tolerance else OPEN_PATH
    return CLOSED


@kernel
def close_kernel(model, goal, tolerance, room, start, q):
    """Close q and move it to the targets `goal`; returns the outcome.

    `start` (nq) receives the guess. An open guess is closed with the held coordinates fixed if that is possible, else
    with all of them free.
    """
    held, values = goal.held, goal.values
    if values.size == 0 and not held.dofs.any():
        room.step[:] = 0.0
        displace(model, q, room.step, q)  # normalises quaternions
        return CLOSED if newton(model, held, values, tolerance, room, q) <= tolerance else OPEN_GUESS
    start[:] = q
    errors(model, q, held, values, room, room.error)
    virtual_kernel(model, room.world, room.z)
    here = np.empty(values.size)
    for i in range(values.size):
        here[i] = room.z[held.virtual[i]]
    if not newton(model, held, here, tolerance, room, q) <= tolerance:
        nothing = Held(np.zeros_like(held.dofs), np.zeros_like(held.coordinates), held.virtual[:0], held.angles[:0])
        q[:] = start
        free = room_for(model, held.virtual[:0])
        free.holonomic[:] = room.holonomic
        if not newton(model, nothing, here[:0], tolerance, free, q) <= tolerance:
            return OPEN_GUESS
        errors(model, q, held, here, room, room.error)  # computes the pose of q
    return follow(model, goal, tolerance, room, q)


@uneven_batch
def close_states(begin, end, model, q, goals, tolerance, found):
    """found = (closed, status): `close_kernel` for each row of q.

    A row that cannot be closed ends where its search stopped, or if its path has closed points, at the last of them.
    """
    (held, target, values), (closed, status) = goals, found
    model = PackedModel(model.ints, model.floats.copy())  # a copy, as moving targets and custom rows write to floats
    room, start = room_for(model, held.virtual), np.empty(q.shape[1])
    holonomic_rows(model, room.holonomic)
    for b in range(begin, end):
        closed[b, :] = q[b]
        status[b] = close_kernel(
            model, Target(held, target[b], values[b]), tolerance, room, start, closed[b])
