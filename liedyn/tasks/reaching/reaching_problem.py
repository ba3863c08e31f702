"""The data and arrays of a search of inverse kinematics, and the closing and evaluation of configurations."""
from collections import namedtuple
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing import Rule, closer
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows, jacobian_rows, residual_rows
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.mechanics.tree.places import displace, displacement, turn_free_rows
from liedyn.model.constraint_records import ranking_of
from liedyn.model.packed import N_LINKS, N_ROWS, NQ, NV
from liedyn.tasks.reaching.reaching_steps import StepRoom, close_step, step_room
from liedyn.tasks.reaching.target_rows import LEVEL, ROW, ROWS, PackedTargets, target_errors

LARGEST_STEP = 0.5
"""Largest change of a coordinate in one step [rad or m]; unlimited for lengths outside loops, as these act linearly."""
FINE = 1e-2
"""Squared errors below this part of the squared tolerances count as equal."""
HELD, PLACE = 1, 2
"""Values of `Problem.fixed` for held coordinates."""
CLOSED, CLOSING = 1e-13, 12
"""Closure error at which closing stops, the limit of rounding; and its largest number of steps."""


class Problem(NamedTuple):
    """The targets, the same for all rows of a batch: t targets of r rows in `levels` levels of priority.

    Attributes
    ----------
    records : ndarray of int64, shape (t, RECORD)
        As in `liedyn.tasks.reaching.target_rows`.
    constants, weights, tolerances : ndarray, shapes (3 t), (r) and (t)
    ends : ndarray of int64, shape (levels)
        End of the rows of each level.
    floors : ndarray, shape (levels)
        Squared weighted error of each level that counts as zero.
    places : ndarray of int64, shape (nv)
        The coordinate of which each velocity is the rate, -1 for coordinates without limits.
    fixed : ndarray of int64, shape (nv)
        HELD for held coordinates; PLACE for a component of the position of a free joint, which is no velocity
        coordinate.
    lower, upper : ndarray, shape (nv)
    are_lengths : ndarray of int64, shape (nv)
        1 for coordinates that are lengths, 0 for angles.
    """

    records: np.ndarray
    constants: np.ndarray
    weights: np.ndarray
    tolerances: np.ndarray
    ends: np.ndarray
    floors: np.ndarray
    places: np.ndarray
    fixed: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    are_lengths: np.ndarray


@inline
def first_levels(problem, levels):
    """The same problem with the first `levels` levels only, none or one."""
    rows, count = problem.ends[0] if levels > 0 else 0, 0
    while levels > 0 and count < problem.records.shape[0] and problem.records[count, LEVEL] == 0:
        count += 1
    return Problem(problem.records[:count], problem.constants[:3 * count], problem.weights[:rows],
                   problem.tolerances[:count], problem.ends[:levels], problem.floors[:levels], problem.places,
                   problem.fixed, problem.lower, problem.upper, problem.are_lengths)


class ReachingRoom(NamedTuple):
    """Scratch arrays: m rows of loops, r rows of targets, n degrees of freedom."""

    steps: StepRoom
    world: np.ndarray
    masses: np.ndarray  # (4 links)
    holonomic: np.ndarray  # (m) 1 for rows with a residual
    G: np.ndarray  # (m, n)
    g: np.ndarray  # (m)
    J: np.ndarray  # (r, n) and e (r), with weights
    e: np.ndarray
    error: np.ndarray  # (r) without weights, at q and at the trial
    trial_error: np.ndarray
    kept_error: np.ndarray
    expected: np.ndarray  # (r) weighted errors that the step predicts to first order
    merit: np.ndarray  # (levels + 1) squared errors of levels, then of the posture
    trial_merit: np.ndarray
    squares: np.ndarray  # (levels) reference of the damping of each level
    d: np.ndarray  # (n)
    low: np.ndarray
    up: np.ndarray
    toward: np.ndarray
    closing: np.ndarray
    trial: np.ndarray  # (nq)


@kernel
def room_for(model, r, levels, more=0):
    """`ReachingRoom` for r rows of targets, and `more` rows after those of loops."""
    n, m, nq = model.ints[NV], model.ints[N_ROWS] + more, model.ints[NQ]
    holonomic = np.ones(m)
    holonomic_rows(model, holonomic)
    steps = step_room(m, max(r, 1), n)
    steps.weights[:model.ints[N_ROWS]] = ranking_of(model, 0.0).rows
    return ReachingRoom(steps, np.empty(world_size(model)), np.empty(4 * model.ints[N_LINKS]), holonomic,
                np.empty((m, n)), np.empty(m), np.empty((r, n)), np.empty(r), np.empty(r), np.empty(r),
                np.empty(r), np.empty(r),
                np.empty(levels + 1), np.empty(levels + 1), np.empty(levels), np.empty(n), np.empty(n), np.empty(n),
                np.empty(n), np.empty(n), np.empty(nq))


@kernel_in_place
def within(problem, q):
    """Clips coordinates to their limits."""
    for j in range(problem.places.size):
        k = problem.places[j]
        if k >= 0:
            q[k] = min(max(q[k], problem.lower[j]), problem.upper[j])


@kernel_in_place
def put_loops(model, q, room):
    """G, by steps of `liedyn.mechanics.tree.places`, and g of the rows with a residual; needs the pose of q."""
    residual_rows(model, q, room.world, room.g)
    jacobian_rows(model, q, room.world, room.G)
    turn_free_rows(model, q, room.G, True)
    for i in range(room.g.size):
        if room.holonomic[i] == 0.0:
            room.g[i] = 0.0
            room.G[i, :] = 0.0


@inline
def open_loops(model, of, q):
    """The largest closure error; leaves the pose of q, and what `put_loops` does."""
    room = of[1]
    world_positions(SCALAR, model, q, room.world)
    put_loops(model, q, room)
    return largest_size(room.g)


@inline
def step_within(model, of, q):
    """The shortest step of the coordinates that are not held; what comes to a limit stays there."""
    problem, room = of
    for j in range(room.closing.size):
        room.closing[j] = 0.0
    close_step(room.G, room.g, room.steps, room.closing)
    for j in range(room.closing.size):
        room.closing[j] = min(max(room.closing[j], -LARGEST_STEP), LARGEST_STEP)
    displace(model, q, room.closing, q)
    for j in range(problem.places.size):
        k = problem.places[j]
        if k >= 0 and (q[k] < problem.lower[j] or q[k] > problem.upper[j]):
            q[k] = min(max(q[k], problem.lower[j]), problem.upper[j])
            room.steps.held[j] = 1
    return True


_close = closer(open_loops, step_within)


@kernel_in_place
def close_within(model, problem, room, q):
    """Closes a nearly closed q by least-norm steps within its limits; its pose is stored. False if it does not close.

    A coordinate that reaches a limit stays there.
    """
    if room.g.size == 0:
        world_positions(SCALAR, model, q, room.world)
        return True
    for j in range(problem.fixed.size):
        room.steps.held[j] = problem.fixed[j]
    return _close(model, (problem, room), Rule(CLOSING, CLOSED, 10.0 * CLOSED, 0.9, 0.9), q)


@kernel_in_place
def reached_level(problem, error, level):
    """True if all targets of this level, and of those before it, are within their tolerances."""
    for t in range(problem.records.shape[0]):
        s, first = 0.0, problem.records[t, ROW]
        for k in range(first, first + problem.records[t, ROWS]):
            s += error[k] * error[k] if problem.weights[k] > 0.0 else 0.0
        if problem.records[t, LEVEL] <= level and not s <= problem.tolerances[t] * problem.tolerances[t]:
            return False
    return True


Aim = namedtuple("Aim", "goal posture")
"""What targets want, as for `target_errors`, and the posture (nq, or empty)."""


@kernel_in_place
def evaluate(model, problem, aim, room, q, error, merit):
    """Errors of targets, and squared errors of levels and of the posture; needs the pose of q."""
    targets = PackedTargets(problem.records, problem.constants, aim.goal)
    target_errors(model, q, room.world, room.masses, targets, error)
    begin, levels = 0, problem.ends.size
    for level in range(levels):
        merit[level] = 0.0
        for k in range(begin, problem.ends[level]):
            merit[level] += (problem.weights[k] * error[k]) ** 2
        begin = problem.ends[level]
    merit[levels] = 0.0
    if aim.posture.size > 0:
        displacement(model, q, aim.posture, room.closing)
        for j in range(room.closing.size):
            merit[levels] += room.closing[j] * room.closing[j]
