"""One descent: damped Gauss-Newton on the closed configurations within the limits (Levenberg-Marquardt on a manifold).

A step (`liedyn.tasks.reaching.reaching_steps`) is tried: the configuration moves by it, free joints along their
parents' axes (`liedyn.mechanics.tree.places`), so that what is held keeps its place, is closed again, and is kept if
the first level of targets whose error changes has got better; else the damping grows. Damping is a part of the squared
error itself, as Sugihara has it (IEEE Transactions on Robotics 27, 2011), and so dies out where targets can be reached.
"""
import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.vectors import copy_to, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.mechanics.tree.places import displace, displacement, turn_free_rows
from liedyn.tasks.reaching.reaching_problem import (
    LARGEST_STEP, close_within, evaluate, put_loops, reached_level, within,
)
from liedyn.tasks.reaching.reaching_steps import Task, bounded_step, hold_levels
from liedyn.tasks.reaching.target_rows import target_errors, target_rows

DAMPING, LEAST, MOST = 0.1, 1e-9, 1e8
"""First damping, by the squared error; its bounds."""
BETTER, WORSE = 0.3, 4.0
"""What the damping is multiplied by after a step that is kept, and after one that is not."""
ROUNDING = 1e-14
"""Relative changes of a squared error that are too small to decide."""
SLOW = 0.1
"""Gain below which the next step weighs carefully which coordinates to hold at their limits."""
STRAIGHTENING, EXACT = 4, 0.1
"""Largest number of steps that take back what a step has bent, and what they leave, by the floors of the levels."""
FAR = 0.1
"""Part of a step to which it is not cut: rather its angles are bounded, one by one."""
SMALLEST_STEP = 1e-13


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
    """Give the trial's levels that others follow what the linear step was to make of them; is it closed after that?

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
            break
        copy_to(room.trial_error, room.error)
        put_targets(model, problem, room, goal, q)
        turn_free_rows(model, q, room.J, True)
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
            break
        displace(model, q, room.closing, q)
        within(problem, q)
        if not close_within(model, problem, room, q):
            return False
        evaluate(model, problem, goal, posture, room, q, room.trial_error, room.trial_merit)
    return True


@kernel_in_place
def put_squares(problem, room):
    """What the damping of each level is relative to: its squared error, but no more than the mean square of its rows.

    However far away a target is, a step that is damped by the square of its rows goes half of the way.
    """
    begin = 0
    for level in range(problem.ends.size):
        size = 0.0
        for i in range(begin, problem.ends[level]):
            size += inner(room.J[i], room.J[i])
        room.squares[level] = min(room.merit[level], size / max(problem.ends[level] - begin, 1))
        begin = problem.ends[level]


@inline
def is_curved(problem, room, j):
    """Does what coordinate j does to the targets change with it? It does not for lengths that no loop holds."""
    curved = problem.are_lengths[j] == 0
    for i in range(room.g.size):
        curved = curved or room.G[i, j] != 0.0
    return curved


@kernel_in_place
def farthest(problem, room):
    """The largest move in the step room.d, but for lengths that no loop holds."""
    size = 0.0
    for j in range(room.d.size):
        if abs(room.d[j]) > size and is_curved(problem, room, j):
            size = abs(room.d[j])
    return size


@kernel_in_place
def propose(model, problem, posture, damping, careful, room, goal, q):
    """The next step, room.d; needs pose and errors of q. Returns the part to which it was cut."""
    n, levels = room.d.size, problem.ends.size
    put_targets(model, problem, room, goal, q)
    turn_free_rows(model, q, room.J, True)
    put_bounds(problem, room, q)
    if room.g.size > 0:
        put_loops(model, q, room)
    toward = room.toward if posture.size > 0 else room.toward[:0]
    if posture.size > 0:
        displacement(model, q, posture, toward)
        for j in range(n):
            toward[j] /= 1.0 + damping
    put_squares(problem, room)
    task = Task(room.J, room.e, problem.ends, room.squares[:levels], room.G, room.g, toward, room.low, room.up)
    bounded_step(task, problem.fixed, damping, careful, room.steps, room.d)
    part = min(1.0, LARGEST_STEP / max(farthest(problem, room), 1e-300))
    if part < FAR:  # lengths should not have to wait for angles
        for j in range(n):
            if is_curved(problem, room, j):
                room.low[j], room.up[j] = max(room.low[j], -LARGEST_STEP), min(room.up[j], LARGEST_STEP)
        bounded_step(task, problem.fixed, damping, careful, room.steps, room.d)
        part = 1.0
    for j in range(n):
        room.d[j] *= part
    for i in range(problem.weights.size):
        room.expected[i] = room.e[i] + inner(room.J[i], room.d)
    return part


@kernel_in_place
def attempt(model, problem, goal, posture, room, q):
    """Try the step room.d from q: the part by which it makes the first level that changes better."""
    levels = problem.ends.size
    displace(model, q, room.d, room.trial)
    within(problem, room.trial)
    if not close_within(model, problem, room, room.trial):
        return -1.0
    evaluate(model, problem, goal, posture, room, room.trial, room.trial_error, room.trial_merit)
    if followed_rows(problem, posture.size > 0) > 0:
        copy_to(room.error, room.kept_error)
        closed = straighten(model, problem, goal, posture, room)
        copy_to(room.kept_error, room.error)
        if not closed:
            return -1.0
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
