"""The search for a plan: iterations of differential dynamic programming, and an outer loop for multipliers of limits.

Each iteration expands costs and steps to first order (iterative LQR: Li and Todorov 2004), computes changes of the
inputs backward (`liedyn.tasks.planning.backward_pass`), and tries them forward on the real steps, halved until the
merit

    cost + augmented Lagrangian of the limits + nu sum |gaps|

falls by a fraction of the prediction of the linear model (Armijo), with nu so large that a step which closes gaps is a
descent direction (Nocedal and Wright 2006, eq. 18.36). If no fraction of a change helps, the next one is damped. If
limits of inputs shorten steps, inputs that a change would move beyond them are held at their limits (`find_changes`).
When the search for given multipliers has converged, multipliers and penalties are updated (ALTRO: Howell, Jackson and
Manchester 2019) until the limits are satisfied. Memory is allocated only at phase changes
(`liedyn.tasks.planning.phase_changes`).
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import placed, record
from liedyn.machine.compiled.jit import INTEGERS, VECTOR, group, inline, kernel, late
from liedyn.tasks.planning.backward_pass import BACKWARD_ROOM, backward_knot
from liedyn.tasks.planning.contact_limits import update_cone_multipliers
from liedyn.tasks.planning.expansion import EXPANSION, PATH, STAGE_ROOM, expand_steps
from liedyn.tasks.planning.forward_pass import FORWARD_ROOM, expand_costs, predict, roll_out
from liedyn.tasks.planning.objective import COST_ROOM, OBJECTIVE, update_multipliers
from liedyn.tasks.planning.phases import touches, update_gap_multipliers
from liedyn.tasks.planning.step import STEP_ROOM, copy_vector

CONVERGED, ITERATIONS, STALLED, VIOLATED, SINGULAR = range(5)
"""Reasons for the end of a search: it has converged; no iteration is left; no step helps; limits cannot be satisfied; a
step or the derivatives at a knot do not exist."""

FROM_STATES, FROM_INPUTS, GO_ON = range(3)

ARMIJO, GAP_SHARE = 1e-4, 0.5
PROGRESS = 0.25
"""Penalties grow if multipliers alone have not reduced the largest violation to this part of it."""
CLOSED_GAPS = 1e-9
"""Sum of |gaps| of a plan without gaps: a whole step closes them to rounding."""
FIRST_DAMPING, LARGEST_DAMPING = 1e-6, 1e8
PASSES, KEPT, CREEPING = 8, 0.1, 0.01
"""Largest number of passes with more inputs held at their limits, the smallest fraction of the slope that must remain,
and the relative decrease of the merit below which inputs are held from the next iteration on."""
FIRST_TOLERANCE = 1e-3
"""Tolerance of the search before the first update of multipliers, which need not be exact; each next one is a hundred
times smaller."""
ROUNDING = 1e-13
"""A slope below this part of the merit is rounding: the merit is a sum of thousands of terms."""

Options = namedtuple(
    "Options", "iterations halvings tolerance limit_tolerance growth largest_penalty roll finish floor")
"""`roll` selects the start: FROM_STATES of the plan; FROM_INPUTS, rolled out with its feedback from the first state
of `trial`; GO_ON, where the search before has run out of iterations. `finish` is 1 if derivatives and feedback of
the last iteration's plan are wanted; `floor` is a cost that is rounding. Penalties grow by the factor `growth`; if
it is 1 they are constant, and only multipliers are updated, at most as often as there are iterations."""

Log = namedtuple("Log", "cost gaps violation slope step count memory")
"""Data of each iteration; `count` has the number of iterations, of updates of multipliers, and the knot of a failure.
`memory` has the data for a continuation: damping, weight of gaps, tolerance, largest violation at the last update, 1 if
closed, 1 if creeping."""

Rooms = namedtuple("Rooms", "step stages cost backward forward")

OPTIONS = group(Options, *[types.int64] * 2, *[types.float64] * 4, *[types.int64] * 2, types.float64)
LOG = group(Log, *[VECTOR] * 5, INTEGERS, VECTOR)
ROOMS = record(Rooms, STEP_ROOM, STAGE_ROOM, COST_ROOM, BACKWARD_ROOM, FORWARD_ROOM)


@inline
def copy_path(path, to):
    for k in range(path.q.shape[0]):
        copy_vector(path.q[k], to.q[k])
        copy_vector(path.v[k], to.v[k])
    for k in range(path.u.shape[0]):
        copy_vector(path.u[k], to.u[k])


@late(OBJECTIVE, BACKWARD_ROOM, FORWARD_ROOM, PATH, EXPANSION, types.float64, returns=types.boolean)
def backward(o, b, f, path, x, damping):
    """Changes and feedback of all knots, inputs within `f.low` and `f.high`; False if a knot has no minimum."""
    last = path.u.shape[0]
    for i in range(b.Vx.size):
        b.Vx[i] = x.lx[last, i]
        for j in range(b.Vx.size):
            b.Vxx[i, j] = x.lxx[last, i, j]
    for k in range(last - 1, -1, -1):
        if not backward_knot(x.A[k], x.B[k], x.gap[k], x.lx[k], x.lxx[k], x.lu[k], x.by_u[k], o.R, path.u[k], f.low[k],
                             f.high[k], damping, b, x.k[k], x.K[k]):
            return False
    return True


@inline
def free_boxes(o, f):
    """Resets the limits of inputs at all knots."""
    for k in range(f.low.shape[0]):
        copy_vector(o.u_low, f.low[k])
        copy_vector(o.u_high, f.high[k])


@late(OBJECTIVE, BACKWARD_ROOM, FORWARD_ROOM, PATH, EXPANSION, types.float64, types.boolean,
      types.int64, returns=types.Tuple((types.boolean, types.float64, types.float64)))
def find_changes(o, b, f, path, x, damping, curved, passes):
    """Changes and feedback of all knots, with active limits determined in at most `passes` passes.

    Returns whether they exist, their slope and their curvature.

    The quadratic program of a knot does not contain the changes of knots before it. With their changes dx an input that
    it leaves free may be beyond its limit, k + K dx, and would shorten the step. Such inputs are held at the limit, and
    changes are computed again (active sets of all knots at once, as in Hintermueller, Ito and Kunisch 2002).
    """
    free_boxes(o, f)
    slope, curvature, first = 0.0, 0.0, 0.0
    for p in range(passes):
        if not backward(o, b, f, path, x, damping):
            return False, 0.0, 0.0
        slope, curvature, beyond = predict(o, f, path, x, curved)
        if p == 0:
            first = slope
        if beyond == 0:
            break
    if slope > KEPT * first:  # too many inputs are held
        free_boxes(o, f)
        if not backward(o, b, f, path, x, damping):
            return False, 0.0, 0.0
        slope, curvature, _ = predict(o, f, path, x, curved)
    return True, slope, curvature


@inline
def start(model, d, o, path, trial, x, r):
    """Rolls the plan out with its feedback from the first state of `trial`; returns the number of knots reached."""
    for k in range(x.gap.shape[0]):
        for i in range(x.gap.shape[1]):
            x.gap[k, i] = 0.0
    made = roll_out(model, d, o, r.step, r.cost, r.forward, path, x, 0.0, trial)[0]
    if made == path.q.shape[0]:
        copy_path(trial, path)
    return made


@inline
def next_multipliers(model, d, o, r, path, x, growth, largest):
    for k in range(path.u.shape[0] if d.phases.cones.rows.size > 0 else 0):
        update_cone_multipliers(d.phases.cones, k, r.stages.found.lam[k], growth, largest)
    for k in range(path.q.shape[0]):
        if k > 0 and touches(d, k):
            update_gap_multipliers(model, d, r.step.stage, k, path.q[k], growth, largest)
        update_multipliers(model, o, r.cost, k, path.q[k], path.v[k], x.lam[k], x.mu[k])
        for l in range(o.low.size if growth > 1.0 else 0):
            x.mu[k, l] = min(growth * x.mu[k, l], largest)


@inline
def penalty_of(d, o, x):
    """The penalty of limits, the same for all of them."""
    return x.mu[1, 0] if o.low.size > 0 else d.phases.mu[0, 0] if d.phases.mu.size > 0 else d.phases.cones.mu[0]


@inline
def line_search(model, d, o, path, trial, x, r, merit, slope, weight, gaps, halvings):
    """(accepted fraction of the change, 0 if none helps; cost and violation after it). `trial` is the new plan."""
    alpha = 1.0
    copy_vector(path.q[0], trial.q[0])
    copy_vector(path.v[0], trial.v[0])
    for _ in range(halvings):
        made, cost, added, worst = roll_out(model, d, o, r.step, r.cost, r.forward, path, x, alpha, trial)
        if made == path.q.shape[0]:
            after = cost + added + weight * (1.0 - alpha) * gaps
            if after - merit <= ARMIJO * alpha * (slope - weight * gaps):
                return alpha, cost, worst
        alpha *= 0.5
    return 0.0, np.inf, np.inf


@inline
def remember(log, damping, gap_weight, tolerance, worst_before, closed, creeping):
    """Stores the state of a search that runs out of iterations, so that it can be continued."""
    log.memory[5] = 1.0 if creeping else 0.0
    log.memory[0], log.memory[1], log.memory[2], log.memory[3] = damping, gap_weight, tolerance, worst_before
    log.memory[4] = 1.0 if closed else 0.0
    return ITERATIONS


@kernel(nogil=True)
def raise_multipliers(model, d, o, r, path, x):
    """Updates multipliers after a search that ran out of iterations, at constant penalties."""
    next_multipliers(model, placed(d), placed(o), placed(r), path, placed(x), 1.0, np.inf)


@kernel(nogil=True)
def search(model, d, o, path, trial, x, r, options, log):
    """Improves a plan in place; returns the reason for its end."""
    d, o, x, r = placed(d), placed(o), placed(x), placed(r)
    iteration, updates, damping, gap_weight, stuck = 0, 0, 0.0, 0.0, False
    log.count[0], log.count[1], log.count[2] = 0, 0, -1
    closed = creeping = False
    if options.roll == FROM_INPUTS:
        made = start(model, d, o, path, trial, x, r)
        closed = made == path.q.shape[0]
        if not closed:
            log.count[2] = made
            return SINGULAR
    moved, limited = True, o.low.size + d.phases.lam.size + d.phases.cones.lam.size > 0
    tolerance = max(options.tolerance, FIRST_TOLERANCE) if limited else options.tolerance
    worst_before = np.inf
    if options.roll == GO_ON:
        damping, gap_weight, tolerance, worst_before = log.memory[0], log.memory[1], log.memory[2], log.memory[3]
        closed, creeping = log.memory[4] > 0.0, log.memory[5] > 0.0
    while True:
        if moved:
            made, gaps = expand_steps(model, d, r.stages, r.step, r.forward.dq, path, closed, x)
        cost, added, worst = expand_costs(model, d, o, r.cost, r.step, r.stages.found, path, x)
        if made < path.q.shape[0] or not cost + added < np.inf:
            log.count[2] = made
            return SINGULAR
        moved = False
        found, slope, curvature = find_changes(o, r.backward, r.forward, path, x, damping, gaps > 0.0,
                                               PASSES if creeping else 1)
        if not found:
            log.count[2] = path.q.shape[0]
            return SINGULAR
        log.cost[iteration], log.gaps[iteration], log.violation[iteration] = cost, gaps, worst
        log.slope[iteration], log.step[iteration] = slope, 0.0
        log.count[0] = iteration
        size = abs(cost) + abs(added)
        closed = gaps <= CLOSED_GAPS
        wanted = tolerance if added != 0.0 else options.tolerance  # exact if no limit is active
        if closed and (stuck or -slope <= max(wanted, ROUNDING) * size or -slope <= options.floor):
            stuck = False
            finished = wanted <= options.tolerance
            if not limited or finished and worst <= options.limit_tolerance:
                return CONVERGED
            grows = options.growth > 1.0
            if grows and finished and worst > 0.5 * worst_before and not penalty_of(d, o, x) < options.largest_penalty:
                return VIOLATED
            if iteration == options.iterations:
                return remember(log, damping, gap_weight, tolerance, worst_before, closed, creeping)
            grows = grows and worst > options.limit_tolerance and worst > PROGRESS * worst_before
            worst_before = worst
            next_multipliers(
                model, d, o, r, path, x, options.growth if grows else 1.0, options.largest_penalty)
            updates += 1
            log.count[1] = updates
            tolerance = max(options.tolerance, 0.01 * tolerance)
            iteration += 1
            continue
        if iteration == options.iterations:
            return remember(log, damping, gap_weight, tolerance, worst_before, closed, creeping)
        if gaps > 0.0:
            gap_weight = max(gap_weight, (slope + 0.5 * max(curvature, 0.0)) / (GAP_SHARE * gaps))
        before, merit = cost, cost + added + gap_weight * gaps
        alpha, cost, worst = line_search(model, d, o, path, trial, x, r, merit, slope, gap_weight, gaps,
                                         options.halvings)
        log.step[iteration] = alpha
        iteration += 1
        if alpha > 0.0:
            copy_path(trial, path)
            creeping = before - cost <= CREEPING * abs(merit)
            stuck, moved, closed = False, True, closed or alpha == 1.0
            damping = 0.0 if damping <= FIRST_DAMPING else damping * (0.1 if alpha == 1.0 else 1.0)
            if iteration == options.iterations and not options.finish:
                log.cost[iteration], log.violation[iteration], log.count[0] = cost, worst, iteration
                return remember(log, damping, gap_weight, tolerance, worst_before, closed, creeping)
            continue
        creeping = True
        stuck = closed and -slope <= math.sqrt(ROUNDING) * size  # the merit no longer distinguishes iterates
        damping = 0.0 if stuck else max(FIRST_DAMPING, 10.0 * damping)
        if damping > LARGEST_DAMPING:
            return STALLED
