"""The search for a plan: iterations of differential dynamic programming, and multipliers of the limits around them.

Each iteration expands costs and steps to first order (iterative LQR: Li and Todorov 2004), finds changes of the inputs
backward (`liedyn.planning.backward`), and tries them forward on the real steps, halved until the merit

    cost + what limits add + nu sum |gaps|

falls by a part of what the linear model predicts (Armijo), with nu so large that a step which closes gaps is a descent
(Nocedal and Wright 2006, eq. 18.36). Where no part of a change helps, the next one is damped. When the search for given
multipliers has converged, multipliers and penalties are updated (ALTRO: Howell, Jackson and Manchester 2019) until the
limits are held. Nothing is allocated here.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.compiled.jit import INTEGERS, VECTOR, group, inline, kernel
from liedyn.planning.backward import BACKWARD_ROOM, backward_knot
from liedyn.planning.forward import EXPANSION, FORWARD_ROOM, PATH, expand, predict, roll_out
from liedyn.planning.objective import COST_ROOM, OBJECTIVE, update_multipliers
from liedyn.planning.step import DISCRETISATION, STEP_ROOM, copy_vector

CONVERGED, ITERATIONS, STALLED, VIOLATED, SINGULAR = range(5)
"""What ends a search: it has converged; no iteration is left; no step helps; limits cannot be held; a step or the
derivatives at a knot lead nowhere."""

HALVINGS, ARMIJO, GAP_SHARE = 12, 1e-4, 0.5
CLOSED_GAPS = 1e-9
"""Sum of |gaps| of a plan whose steps lead from knot to knot: a whole step closes them to rounding."""
FIRST_DAMPING, LARGEST_DAMPING = 1e-6, 1e8
FIRST_TOLERANCE = 1e-3
"""Of the search before the first update of multipliers, which need not be exact; each next one is ten times finer."""
ROUNDING = 1e-13
"""A slope below this part of the merit is rounding: its sum has thousands of terms."""

Options = namedtuple("Options", "iterations tolerance limit_tolerance largest_penalty roll floor")
"""`roll` is 1 where the plan's inputs are to be rolled out first, with its feedback, from its first state; `floor` is a
cost that is rounding."""

Log = namedtuple("Log", "cost gaps violation slope step count")
"""By iteration; `count` has iterations made, updates of multipliers, and the knot where it failed."""

Rooms = namedtuple("Rooms", "step cost backward forward")

OPTIONS = group(Options, types.int64, types.float64, types.float64, types.float64, types.int64, types.float64)
LOG = group(Log, *[VECTOR] * 5, INTEGERS)
ROOMS = group(Rooms, STEP_ROOM, COST_ROOM, BACKWARD_ROOM, FORWARD_ROOM)
ARGUMENTS = DISCRETISATION, OBJECTIVE, PATH, PATH, EXPANSION, ROOMS


@inline
def copy_path(path, to):
    for k in range(path.q.shape[0]):
        copy_vector(path.q[k], to.q[k])
        copy_vector(path.v[k], to.v[k])
    for k in range(path.u.shape[0]):
        copy_vector(path.u[k], to.u[k])


@inline
def backward(o, b, path, x, damping):
    """Changes and feedback of all knots; False if a knot has no best inputs."""
    last = path.u.shape[0]
    for i in range(b.Vx.size):
        b.Vx[i] = x.lx[last, i]
        for j in range(b.Vx.size):
            b.Vxx[i, j] = x.lxx[last, i, j]
    for k in range(last - 1, -1, -1):
        if not backward_knot(x.A[k], x.B[k], x.gap[k], x.lx[k], x.lxx[k], x.lu[k], o.R, path.u[k], o.u_low, o.u_high,
                             damping, b, x.k[k], x.K[k]):
            return False
    return True


@inline
def start(model, d, o, path, trial, x, r):
    """Roll the plan out from its first state with its feedback; returns the knots that were reached."""
    copy_vector(path.q[0], trial.q[0])
    copy_vector(path.v[0], trial.v[0])
    for k in range(x.gap.shape[0]):
        for i in range(x.gap.shape[1]):
            x.gap[k, i] = 0.0
    made = roll_out(model, d, o, r.step, r.cost, r.forward, path, x, 0.0, trial)[0]
    if made == path.q.shape[0]:
        copy_path(trial, path)
    return made


@inline
def next_multipliers(model, o, c, path, x, grows, largest):
    for k in range(path.q.shape[0]):
        update_multipliers(model, o, c, k, path.q[k], path.v[k], grows, largest, x.lam[k], x.mu[k])


@inline
def line_search(model, d, o, path, trial, x, r, merit, slope, weight, gaps):
    """(part of the change that is taken, merit after it): 0 if none helps. `trial` is the new plan."""
    alpha = 1.0
    copy_vector(path.q[0], trial.q[0])
    copy_vector(path.v[0], trial.v[0])
    for _ in range(HALVINGS):
        made, cost, added, _ = roll_out(model, d, o, r.step, r.cost, r.forward, path, x, alpha, trial)
        if made == path.q.shape[0]:
            after = cost + added + weight * (1.0 - alpha) * gaps
            if after - merit <= ARMIJO * alpha * (slope - weight * gaps):
                return alpha, after
        alpha *= 0.5
    return 0.0, merit


@kernel(nogil=True)
def search(model, d, o, path, trial, x, r, options, log):
    """Improve a plan in place; returns what ended the search."""
    iteration, updates, damping, gap_weight, stuck = 0, 0, 0.0, 0.0, False
    log.count[0], log.count[1], log.count[2] = 0, 0, -1
    if options.roll:
        made = start(model, d, o, path, trial, x, r)
        if made < path.q.shape[0]:
            log.count[2] = made
            return SINGULAR
    limited = o.low.size > 0
    tolerance = max(options.tolerance, FIRST_TOLERANCE) if limited else options.tolerance
    worst_before = np.inf
    while True:
        made, cost, added, worst, gaps = expand(model, d, o, r.step, r.cost, r.forward, path, x)
        if made < path.q.shape[0] or not cost + added < np.inf:
            log.count[2] = made
            return SINGULAR
        if not backward(o, r.backward, path, x, damping):
            log.count[2] = path.q.shape[0]
            return SINGULAR
        slope, curvature = predict(o, r.forward, x)
        log.cost[iteration], log.gaps[iteration], log.violation[iteration] = cost, gaps, worst
        log.slope[iteration], log.step[iteration] = slope, 0.0
        log.count[0] = iteration
        size = abs(cost) + abs(added)
        closed = gaps <= CLOSED_GAPS
        if closed and (stuck or -slope <= max(tolerance, ROUNDING) * size or -slope <= options.floor):
            stuck = False
            finished = tolerance <= options.tolerance
            if not limited or finished and worst <= options.limit_tolerance:
                return CONVERGED
            if finished and worst > 0.5 * worst_before and not can_grow(x, options.largest_penalty):
                return VIOLATED
            worst_before = worst
            next_multipliers(model, o, r.cost, path, x, worst > options.limit_tolerance, options.largest_penalty)
            updates += 1
            log.count[1] = updates
            tolerance = max(options.tolerance, 0.1 * tolerance)
            iteration += 1
            if iteration > options.iterations:
                return ITERATIONS
            continue
        if iteration == options.iterations:
            if limited:
                next_multipliers(model, o, r.cost, path, x, False, options.largest_penalty)
            return ITERATIONS
        if gaps > 0.0:
            gap_weight = max(gap_weight, (slope + 0.5 * max(curvature, 0.0)) / (GAP_SHARE * gaps))
        merit = cost + added + gap_weight * gaps
        alpha, _ = line_search(model, d, o, path, trial, x, r, merit, slope, gap_weight, gaps)
        log.step[iteration] = alpha
        iteration += 1
        if alpha > 0.0:
            copy_path(trial, path)
            stuck = False
            damping = 0.0 if damping <= FIRST_DAMPING else damping * (0.1 if alpha == 1.0 else 1.0)
            continue
        stuck = closed and -slope <= math.sqrt(ROUNDING) * size  # the merit cannot tell any more
        damping = 0.0 if stuck else max(FIRST_DAMPING, 10.0 * damping)
        if damping > LARGEST_DAMPING:
            return STALLED


@inline
def can_grow(x, largest):
    """Is some penalty below the largest one?"""
    for k in range(x.mu.shape[0]):
        for l in range(x.mu.shape[1]):
            if x.mu[k, l] < largest:
                return True
    return False
