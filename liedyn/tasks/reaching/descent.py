"""One descent: damped Gauss-Newton on closed configurations within limits (Levenberg-Marquardt on a manifold).

A step (`liedyn.tasks.reaching.reaching_steps`) is tried: the configuration moves by it, free joints along their
parents' axes (`liedyn.mechanics.tree.places`), so that held coordinates keep their values; it is closed again, and
accepted if the first priority level whose error changes has improved; else the damping grows. Damping is proportional
to the squared error itself (Sugihara, IEEE Transactions on Robotics 27, 2011), and so vanishes if targets can be
reached.
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
from liedyn.tasks.reaching.target_rows import PackedTargets, target_errors, target_rows

DAMPING, LEAST, MOST = 0.1, 1e-9, 1e8
"""First damping, relative to the squared error; its bounds."""
BETTER, WORSE = 0.3, 4.0
"""Factors of the damping after an accepted step, and after a rejected one."""
ROUNDING = 1e-14
"""Relative changes of a squared error below this are ignored."""
SLOW = 0.1
"""Improvement below which the next step determines the held coordinates carefully."""
STRAIGHTENING, EXACT = 4, 0.1
"""Largest number of corrections of second-order errors, and their tolerance relative to the levels' floors."""
FAR = 0.1
"""Smallest fraction to which a step is shortened: below, its angles are bounded one by one."""
SMALLEST_STEP = 1e-13


@inline
def gain(floors, merit, trial):
    """The relative improvement of the first level that changes, 0 if none does.

    Squared errors below the floor of their level count as equal.
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
    """Weighted rows and errors of targets; needs pose and errors of q."""
    packed = PackedTargets(problem.records, problem.constants, goal)
    target_rows(model, q, room.world, room.masses, packed, room.error, room.J)
    for i in range(problem.weights.size):
        room.e[i] = problem.weights[i] * room.error[i]
        for j in range(room.d.size):
            room.J[i, j] *= problem.weights[i]


@kernel_in_place
def put_bounds(problem, room, q):
    """Distance of each coordinate from its limits."""
    for j in range(room.d.size):
        k = problem.places[j]
        room.low[j] = problem.lower[j] - q[k] if k >= 0 else -np.inf
        room.up[j] = problem.upper[j] - q[k] if k >= 0 else np.inf


@inline
def followed_rows(problem, has_posture):
    """Number of rows of targets in all levels but the last."""
    levels = problem.ends.size
    if has_posture:
        return problem.ends[levels - 1] if levels > 0 else 0
    return problem.ends[levels - 2] if levels > 1 else 0


@kernel_in_place
def bent(problem, count, room):
    """Squared difference of the trial's errors from the step's prediction, in the first `count` rows."""
    s = 0.0
    for i in range(count):
        s += (problem.weights[i] * room.trial_error[i] - room.expected[i]) ** 2
    return s


@kernel_in_place
def straighten(model, problem, aim, room):
    """Corrects the trial so that all levels but the last have the errors predicted by the step; True if it is closed.

    A step along the later levels changes the earlier ones to second order. If that counted against it, the later levels
    would only creep (Maratos effect; Nocedal and Wright 2006, 15.5, with this second-order correction).
    """
    n, count, q = room.d.size, followed_rows(problem, aim.posture.size > 0), room.trial
    way, size, floor = largest_size(room.d), 0.0, np.inf
    for level in range(problem.floors.size):
        floor = min(floor, EXACT * problem.floors[level])
    for i in range(count):
        size += inner(room.J[i], room.J[i])
    for _ in range(STRAIGHTENING):
        off = bent(problem, count, room)
        # a larger difference is not of second order, and the levels decide without a correction
        if off <= floor or not off <= size * way * way:
            break
        copy_to(room.trial_error, room.error)
        put_targets(model, problem, room, aim.goal, q)
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
        evaluate(model, problem, aim, room, q, room.trial_error, room.trial_merit)
    return True


@kernel_in_place
def put_squares(problem, room):
    """The reference of each level's damping: its squared error, but at most the mean square of its rows.

    However far away a target is, a step with a damping equal to the square of its rows goes half of the way.
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
    """True if the effect of coordinate j on the targets varies with it; not for lengths outside loops."""
    curved = problem.are_lengths[j] == 0
    for i in range(room.g.size):
        curved = curved or room.G[i, j] != 0.0
    return curved


@kernel_in_place
def farthest(problem, room):
    """The largest entry of the step room.d, without lengths outside loops."""
    size = 0.0
    for j in range(room.d.size):
        if abs(room.d[j]) > size and is_curved(problem, room, j):
            size = abs(room.d[j])
    return size


@kernel_in_place
def propose(model, problem, aim, damping, careful, room, q):
    """The next step, room.d; needs pose and errors of q. Returns the fraction to which it was shortened."""
    n, levels = room.d.size, problem.ends.size
    put_targets(model, problem, room, aim.goal, q)
    turn_free_rows(model, q, room.J, True)
    put_bounds(problem, room, q)
    if room.g.size > 0:
        put_loops(model, q, room)
    toward = room.toward if aim.posture.size > 0 else room.toward[:0]
    if aim.posture.size > 0:
        displacement(model, q, aim.posture, toward)
        for j in range(n):
            toward[j] /= 1.0 + damping
    put_squares(problem, room)
    task = Task(room.J, room.e, problem.ends, room.squares[:levels], room.G, room.g, toward, room.low, room.up)
    bounded_step(task, problem.fixed, damping, careful, room.steps, room.d)
    part = min(1.0, LARGEST_STEP / max(farthest(problem, room), 1e-300))
    if part < FAR:  # lengths need not be shortened because of angles
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
def attempt(model, problem, aim, room, q):
    """Tries the step room.d from q: the relative improvement of the first level that changes."""
    levels = problem.ends.size
    displace(model, q, room.d, room.trial)
    within(problem, room.trial)
    if not close_within(model, problem, room, room.trial):
        return -1.0
    evaluate(model, problem, aim, room, room.trial, room.trial_error, room.trial_merit)
    if followed_rows(problem, aim.posture.size > 0) > 0:
        copy_to(room.error, room.kept_error)
        closed = straighten(model, problem, aim, room)
        copy_to(room.kept_error, room.error)
        if not closed:
            return -1.0
    return gain(problem.floors, room.merit[:levels + 1], room.trial_merit[:levels + 1])


@kernel_in_place
def descend(model, problem, aim, iterations, enough, room, q):
    """Moves a closed q within its limits to a local minimum of the errors; (are the targets reached?, iterations).

    It ends if all targets are reached and there is no posture, or if a step improves by less than the fraction
    `enough`.
    Leaves the errors of q in room.error and room.merit.
    """
    damping, levels = DAMPING, problem.ends.size
    world_positions(SCALAR, model, q, room.world)
    evaluate(model, problem, aim, room, q, room.error, room.merit)
    count, careful = 0, False
    while count < iterations:
        if aim.posture.size == 0 and reached_level(problem, room.error, levels):
            break
        count += 1
        part = propose(model, problem, aim, damping, careful, room, q)
        if not largest_size(room.d) > SMALLEST_STEP:
            break
        gained = attempt(model, problem, aim, room, q)
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
            if problem.records.shape[0] > 0:  # data of the pose that targets use, such as masses
                packed = PackedTargets(problem.records, problem.constants, aim.goal)
                target_errors(model, q, room.world, room.masses, packed, room.error)
    return reached_level(problem, room.error, levels), count
