"""One descent: damped Gauss-Newton on the closed configurations within the limits (Levenberg-Marquardt on a manifold).

A step (`liedyn.reaching.steps`) is tried: the configuration moves by it, is closed again, and is kept if the
first level of targets whose error changes has got better; else the damping grows. Damping is a part of the squared
error itself, as Sugihara has it (IEEE Transactions on Robotics 27, 2011), and so dies out where targets can be reached.
"""
from typing import NamedTuple

import numpy as np

from liedyn.compiled.jit import inline, kernel, kernel_in_place
from liedyn.constraints.rows import holonomic_rows, jacobian_rows, residual_rows
from liedyn.reaching.rows import LEVEL, ROW, ROWS, target_errors, target_rows
from liedyn.reaching.steps import StepRoom, Task, bounded_step, close_step, hold_levels, step_room
from liedyn.linalg.dense import largest_size
from liedyn.linalg.vectors import copy_to, inner
from liedyn.model.packed import N_LINKS, N_ROWS, NQ, NV
from liedyn.simd.lanes import SCALAR
from liedyn.tree.configuration import difference_kernel, integrate_kernel
from liedyn.tree.kinematics import world_positions, world_size

LARGEST_STEP = 0.5
"""Largest move of a coordinate in one step [rad or m]."""
DAMPING, LEAST, MOST = 0.1, 1e-9, 1e8
"""First damping, by the squared error; its bounds."""
BETTER, WORSE = 0.3, 4.0
"""What the damping is multiplied by after a step that is kept, and after one that is not."""
FINE = 1e-2
"""Squared errors below this part of the squared tolerances are not compared any more."""
ROUNDING = 1e-14
"""Relative changes of a squared error that are too small to decide."""
SLOW = 0.1
"""Gain below which the next step weighs carefully which coordinates to hold at their limits."""
STRAIGHTENING, EXACT = 4, 0.1
"""Largest number of steps that take back what a step has bent, and what they leave, by the floors of the levels."""
SMALLEST_STEP = 1e-13
CLOSED, CLOSING = 1e-13, 12
"""Closure error at which closing stops, as rounding allows no better; and its largest number of steps."""


class Problem(NamedTuple):
    """What is wanted, the same for all rows of a batch: t targets of r rows in `levels` levels of priority.

    Attributes
    ----------
    records : ndarray of int64, shape (t, RECORD)
        As in `liedyn.reaching.rows`.
    constants, weights, tolerances : ndarray, shapes (3 t), (r) and (t)
    ends : ndarray of int64, shape (levels)
        Behind the last row of each level.
    floors : ndarray, shape (levels)
        Squared weighted error of each level that is small enough.
    places : ndarray of int64, shape (nv)
        The coordinate that each velocity is the rate of, -1 where there is none with limits.
    fixed : ndarray of int64, shape (nv)
        1 for velocity coordinates that are held.
    lower, upper : ndarray, shape (nv)
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


@inline
def first_levels(problem, levels):
    """The same problem with so many levels only, none or one."""
    rows, count = problem.ends[0] if levels > 0 else 0, 0
    while levels > 0 and count < problem.records.shape[0] and problem.records[count, LEVEL] == 0:
        count += 1
    return Problem(problem.records[:count], problem.constants[:3 * count], problem.weights[:rows],
                   problem.tolerances[:count], problem.ends[:levels], problem.floors[:levels], problem.places,
                   problem.fixed, problem.lower, problem.upper)


class Room(NamedTuple):
    """Arrays to work in: m rows of loops, r rows of targets, n degrees of freedom."""

    steps: StepRoom
    world: np.ndarray
    masses: np.ndarray  # (4 links)
    holonomic: np.ndarray  # (m) 1 for rows with a residual
    G: np.ndarray  # (m, n)
    g: np.ndarray  # (m)
    J: np.ndarray  # (r, n) and e (r), with weights
    e: np.ndarray
    error: np.ndarray  # (r) without weights, here and at the trial
    trial_error: np.ndarray
    kept_error: np.ndarray
    expected: np.ndarray  # (r) what the step makes of the errors to first order, with weights
    merit: np.ndarray  # (levels + 1) squared errors of levels, then of the posture
    trial_merit: np.ndarray
    d: np.ndarray  # (n)
    low: np.ndarray
    up: np.ndarray
    toward: np.ndarray
    closing: np.ndarray
    trial: np.ndarray  # (nq)


@kernel
def room_for(model, r, levels):
    """`Room` for r rows of targets."""
    n, m, nq = model.ints[NV], model.ints[N_ROWS], model.ints[NQ]
    holonomic = np.ones(m)
    holonomic_rows(model, holonomic)
    return Room(step_room(m, max(r, 1), n), np.empty(world_size(model)), np.empty(4 * model.ints[N_LINKS]), holonomic,
                np.empty((m, n)), np.empty(m), np.empty((r, n)), np.empty(r), np.empty(r), np.empty(r),
                np.empty(r), np.empty(r),
                np.empty(levels + 1), np.empty(levels + 1), np.empty(n), np.empty(n), np.empty(n),
                np.empty(n), np.empty(n), np.empty(nq))


@kernel_in_place
def within(problem, q):
    """Coordinates beyond a limit go to it."""
    for j in range(problem.places.size):
        k = problem.places[j]
        if k >= 0:
            q[k] = min(max(q[k], problem.lower[j]), problem.upper[j])


@kernel_in_place
def put_loops(model, q, room):
    """G and g of the rows with a residual; needs the pose of q."""
    residual_rows(model, q, room.world, room.g)
    jacobian_rows(model, q, room.world, room.G)
    for i in range(room.g.size):
        if room.holonomic[i] == 0.0:
            room.g[i] = 0.0
            room.G[i, :] = 0.0


@kernel_in_place
def close_within(model, problem, room, q):
    """Close q by shortest steps within its limits, from close by; leaves its pose; was it closed?

    What comes to a limit stays there.
    """
    world_positions(SCALAR, model, q, room.world)
    if room.g.size == 0:
        return True
    for j in range(problem.fixed.size):
        room.steps.held[j] = problem.fixed[j]
    before = np.inf
    for _ in range(CLOSING):
        put_loops(model, q, room)
        size = largest_size(room.g)
        if size <= CLOSED:
            return True
        if not size < 0.9 * before:
            return size <= 10.0 * CLOSED
        before = size
        for j in range(room.closing.size):
            room.closing[j] = 0.0
        close_step(room.G, room.g, room.steps, room.closing)
        for j in range(room.closing.size):
            room.closing[j] = min(max(room.closing[j], -LARGEST_STEP), LARGEST_STEP)
        integrate_kernel(model, q, room.closing, q)
        for j in range(problem.places.size):
            k = problem.places[j]
            if k >= 0 and (q[k] < problem.lower[j] or q[k] > problem.upper[j]):
                q[k] = min(max(q[k], problem.lower[j]), problem.upper[j])
                room.steps.held[j] = 1
        world_positions(SCALAR, model, q, room.world)
    return False


@kernel_in_place
def reached_level(problem, error, level):
    """Are all targets of this level, and of those before it, within their tolerances?"""
    for t in range(problem.records.shape[0]):
        s, first = 0.0, problem.records[t, ROW]
        for k in range(first, first + problem.records[t, ROWS]):
            s += error[k] * error[k] if problem.weights[k] > 0.0 else 0.0
        if problem.records[t, LEVEL] <= level and not s <= problem.tolerances[t] * problem.tolerances[t]:
            return False
    return True


@kernel_in_place
def evaluate(model, problem, goal, posture, room, q, error, merit):
    """Errors of targets, and squared errors of levels and of the posture (nq, or none); needs the pose of q."""
    target_errors(model, q, room.world, room.masses, problem.records, problem.constants, goal, error)
    begin, levels = 0, problem.ends.size
    for level in range(levels):
        merit[level] = 0.0
        for k in range(begin, problem.ends[level]):
            merit[level] += (problem.weights[k] * error[k]) ** 2
        begin = problem.ends[level]
    merit[levels] = 0.0
    if posture.size > 0:
        difference_kernel(model, q, posture, room.closing)
        for j in range(room.closing.size):
            merit[levels] += room.closing[j] * room.closing[j]


@inline
def gain(floors, merit, trial):
    """The part by which the first level that changes has got better, 0 if none does.

    Squared errors below the floor of their level are all the same.
    """
    for level in range(merit.size):
        floor = floors[level] if level < floors.size else 0.0
        if merit[level] <= floor and trial[level] <= floor:
            continue
        change = merit[level] - trial[level]
        if not abs(change) <= ROUNDING * merit[level]:
            return change / merit[level] if merit[level] > 0.0 else -1.0
    return 0.0


@kernel_in_place
def put_targets(model, problem, room, goal, q):
    """Rows and errors with their weights; needs pose and errors of q."""
    target_rows(model, q, room.world, room.masses, problem.records, problem.constants, goal, room.error, room.J)
    for i in range(problem.weights.size):
        room.e[i] = problem.weights[i] * room.error[i]
        for j in range(room.d.size):
            room.J[i, j] *= problem.weights[i]


@kernel_in_place
def put_bounds(problem, room, q):
    """How far each coordinate is from its limits."""
    for j in range(room.d.size):
        k = problem.places[j]
        room.low[j] = problem.lower[j] - q[k] if k >= 0 else -np.inf
        room.up[j] = problem.upper[j] - q[k] if k >= 0 else np.inf


@inline
def followed_rows(problem, has_posture):
    """How many rows of targets are in levels that others follow."""
    levels = problem.ends.size
    if has_posture:
        return problem.ends[levels - 1] if levels > 0 else 0
    return problem.ends[levels - 2] if levels > 1 else 0


@kernel_in_place
def bent(problem, count, room):
    """Squared distance of the trial's errors from what the step was to make of them, in the first `count` rows."""
    s = 0.0
    for i in range(count):
        s += (problem.weights[i] * room.trial_error[i] - room.expected[i]) ** 2
    return s


@kernel_in_place
def straighten(model, problem, goal, posture, room):
    """Give the trial's levels that others follow what the linear step was to make of them; leaves its errors.

    A step along the levels behind changes those before to second order. Held against it, that would let the levels
    behind only creep (the effect of Maratos; Nocedal and Wright 2006, 15.5, with this second-order correction).
    """
    n, count, q = room.d.size, followed_rows(problem, posture.size > 0), room.trial
    way, size, floor = largest_size(room.d), 0.0, np.inf
    for level in range(problem.floors.size):
        floor = min(floor, EXACT * problem.floors[level])
    for i in range(count):
        size += inner(room.J[i], room.J[i])
    for _ in range(STRAIGHTENING):
        off = bent(problem, count, room)
        # no larger than second order can be, else it is another thing, and the levels decide for themselves
        if off <= floor or not off <= size * way * way:
            return
        copy_to(room.trial_error, room.error)
        put_targets(model, problem, room, goal, q)
        if room.g.size > 0:
            put_loops(model, q, room)
        for j in range(n):
            k = problem.places[j]
            at_limit = k >= 0 and (q[k] <= problem.lower[j] or q[k] >= problem.upper[j])
            room.steps.held[j] = 1 if at_limit or problem.fixed[j] != 0 else 0
            room.closing[j] = 0.0
        for i in range(count):
            room.steps.done[i] = room.expected[i] - room.e[i]
        hold_levels(room.G, room.g, room.J[:count], room.steps, room.closing)
        if not largest_size(room.closing) <= way:
            return
        integrate_kernel(model, q, room.closing, q)
        within(problem, q)
        if not close_within(model, problem, room, q):
            return
        evaluate(model, problem, goal, posture, room, q, room.trial_error, room.trial_merit)


@kernel_in_place
def propose(model, problem, posture, damping, careful, room, goal, q):
    """The next step, room.d; needs pose and errors of q. Returns the part to which it was cut."""
    n, levels = room.d.size, problem.ends.size
    put_targets(model, problem, room, goal, q)
    put_bounds(problem, room, q)
    if room.g.size > 0:
        put_loops(model, q, room)
    toward = room.toward if posture.size > 0 else room.toward[:0]
    if posture.size > 0:
        difference_kernel(model, q, posture, toward)
        for j in range(n):
            toward[j] /= 1.0 + damping
    task = Task(room.J, room.e, problem.ends, room.merit[:levels], room.G, room.g, toward, room.low, room.up)
    bounded_step(task, problem.fixed, damping, careful, room.steps, room.d)
    part = min(1.0, LARGEST_STEP / max(largest_size(room.d), 1e-300))
    for j in range(n):
        room.d[j] *= part
    for i in range(problem.weights.size):
        room.expected[i] = room.e[i] + inner(room.J[i], room.d)
    return part


@kernel_in_place
def attempt(model, problem, goal, posture, room, q):
    """Try the step room.d from q: the part by which it makes the first level that changes better."""
    levels = problem.ends.size
    integrate_kernel(model, q, room.d, room.trial)
    within(problem, room.trial)
    if not close_within(model, problem, room, room.trial):
        return -1.0
    evaluate(model, problem, goal, posture, room, room.trial, room.trial_error, room.trial_merit)
    if followed_rows(problem, posture.size > 0) > 0:
        copy_to(room.error, room.kept_error)
        straighten(model, problem, goal, posture, room)
        copy_to(room.kept_error, room.error)
    return gain(problem.floors, room.merit[:levels + 1], room.trial_merit[:levels + 1])


@kernel_in_place
def descend(model, problem, goal, posture, iterations, enough, room, q):
    """Move a closed q within its limits as near to the targets as it goes down; (are they reached?, iterations).

    It ends where all targets are reached and there is no posture, or where a step gains less than the part `enough`.
    Leaves the errors of q in room.error and room.merit.
    """
    damping, levels = DAMPING, problem.ends.size
    world_positions(SCALAR, model, q, room.world)
    evaluate(model, problem, goal, posture, room, q, room.error, room.merit)
    count, careful = 0, False
    while count < iterations:
        if posture.size == 0 and reached_level(problem, room.error, levels):
            break
        count += 1
        part = propose(model, problem, posture, damping, careful, room, goal, q)
        if not largest_size(room.d) > SMALLEST_STEP:
            break
        gained = attempt(model, problem, goal, posture, room, q)
        if gained > 0.0:
            copy_to(room.trial, q)
            copy_to(room.trial_error, room.error)
            copy_to(room.trial_merit, room.merit)
            damping = max(BETTER * damping, LEAST)
            careful = gained < SLOW
            if gained < enough and part == 1.0 and damping < DAMPING:
                break
        else:
            damping *= WORSE
            if gained == 0.0 or damping > MOST:
                break
            world_positions(SCALAR, model, q, room.world)
            if problem.records.shape[0] > 0:  # what targets keep of the pose, such as masses
                target_errors(model, q, room.world, room.masses, problem.records, problem.constants, goal, room.error)
    return reached_level(problem, room.error, levels), count
