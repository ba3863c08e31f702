"""The search for a plan: iterations of differential dynamic programming, and an outer loop for multipliers of limits.

Each iteration expands costs and steps to first order (iterative LQR: Li and Todorov 2004), or with second derivatives
of the steps (`liedyn.tasks.planning.exact_hessian`), computes changes of the inputs backward
(`liedyn.tasks.planning.backward_pass`), and tries them forward on the real steps, halved until the merit

    cost + augmented Lagrangian of the limits + nu sum |gaps|

falls by a part of what the linear model predicts (Armijo), with nu so large that a step which closes gaps is a descent
(Nocedal and Wright 2006, eq. 18.36). The linear model keeps inputs within their limits, all along the plan
(`find_changes`). Where only a small part of a change helps, or none, the next one is damped. When the search for given
multipliers has converged, multipliers and penalties are updated (ALTRO: Howell, Jackson and Manchester 2019) until the
limits are held. Nothing is allocated here, but where phases of contacts meet (`liedyn.tasks.planning.phase_changes`)
and for exact second derivatives.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import placed, record
from liedyn.machine.compiled.jit import INTEGERS, VECTOR, group, inline, kernel, late
from liedyn.motion.step_curvature import CURVATURE_ROOM
from liedyn.tasks.planning.augmented_lagrangian import (
    next_penalty, update_cone_multipliers, update_gap_multipliers,
)
from liedyn.tasks.planning.backward_pass import (
    BACKWARD_ROOM, INPUT_BOX, backward, begin_inside, hold_at_limits, is_beyond, leave_free, move_inside, next_product,
    put_barrier,
)
from liedyn.tasks.planning.cost_curvature import weigh_costs
from liedyn.tasks.planning.exact_hessian import add_step_hessians, leave_step_hessians
from liedyn.tasks.planning.expansion import EXPANSION, PATH, STAGE_ROOM, expand_steps
from liedyn.tasks.planning.forward_pass import FORWARD_ROOM, expand_costs, predict, roll_out
from liedyn.tasks.planning.objective import COST_ROOM, OBJECTIVE, Knot, update_multipliers
from liedyn.tasks.planning.phases import touches
from liedyn.tasks.planning.step import STEP_ROOM, copy_vector

CONVERGED, ITERATIONS, STALLED, VIOLATED, SINGULAR = range(5)
"""Reasons for the end of a search: it has converged; no iteration is left; no step helps; limits cannot be satisfied; a
step or the derivatives at a knot do not exist."""
UPDATE = -1
"""It goes on with other multipliers."""

FROM_STATES, FROM_INPUTS, GO_ON = range(3)

ARMIJO, GAP_SHARE = 0.3, 0.5
PROGRESS = 0.25
"""Penalties grow if multipliers alone have not reduced the largest violation to this part of it."""
CLOSED_GAPS = 1e-9
"""Sum of |gaps| of a plan whose steps lead from knot to knot: a whole step closes them to rounding."""
FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 1.0, 1e-3, 1e14
SHORT, DAMPED, MOST_DAMPED = 0.1, 4.0, 10.0
"""Damping begins after a short part of a change. It grows as the part that was taken is smaller than a half, by
MOST_DAMPED where none helped, and falls by DAMPED after a whole change."""
PASSES, EXACT, SHARE = 50, 1e-3, 0.1
"""Most times that changes are found with limits of inputs; what those may add at the end: a part of the slope, or a
share of the tolerance."""
PARTS = 4
"""Parts of the second derivatives of the steps that are tried, each half of the one before."""
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
"""By iteration; `count` has iterations made, updates of multipliers, and the knot where it failed. `memory` is what a
search needs to go on."""
DAMPING, GAP_WEIGHT, TOLERANCE, VIOLATION, CLOSED = range(5)
"""Places of the memory: VIOLATION is the largest one at the last update of multipliers, CLOSED is 1.0 without gaps."""

Merit = namedtuple("Merit", "value slope weight gaps")
"""Of a plan: the merit, the slope of the cost along a change, the weight of gaps and the sum of these."""

Plans = namedtuple("Plans", "path trial expansion")
"""The plan, the one that is tried, and derivatives along the plan with the changes that they give."""

Rooms = namedtuple("Rooms", "step stages cost backward forward box curvature other")
"""`curvature`, and another plan that is tried, are empty where second derivatives of the steps are not wanted."""

OPTIONS = group(Options, *[types.int64] * 2, *[types.float64] * 4, *[types.int64] * 2, types.float64)
LOG = group(Log, *[VECTOR] * 5, INTEGERS, VECTOR)
ROOMS = record(Rooms, STEP_ROOM, STAGE_ROOM, COST_ROOM, BACKWARD_ROOM, FORWARD_ROOM, INPUT_BOX, CURVATURE_ROOM,
               PATH)


@inline
def copy_path(path, to):
    for k in range(path.q.shape[0]):
        copy_vector(path.q[k], to.q[k])
        copy_vector(path.v[k], to.v[k])
    for k in range(path.u.shape[0]):
        copy_vector(path.u[k], to.u[k])


@late(OBJECTIVE, ROOMS, PATH, EXPANSION, types.float64, types.boolean, types.float64,
      returns=types.Tuple([types.float64] * 2))
def find_changes(objective, rooms, path, expansion, damping, curved, exact):
    """Changes and feedback of all knots, within the limits of inputs.

    Returns the slope of the cost along them, infinite if there are none, and its curvature if it is wanted. `exact` is
    what limits may always add to the slope.
    """
    box = rooms.box
    leave_free(box)
    if not backward(objective, rooms.backward, box, expansion, damping):
        return np.inf, 0.0
    slope, curvature = predict(objective, rooms.forward, box, expansion, curved)
    if not is_beyond(objective, path, box):
        return slope, curvature
    pairs = 2 * path.u.size
    m = max(abs(slope), exact) / pairs
    begin_inside(objective, path, box, m)
    for _ in range(PASSES):
        put_barrier(box, m)
        if not backward(objective, rooms.backward, box, expansion, damping):
            return np.inf, 0.0
        slope, curvature = predict(objective, rooms.forward, box, expansion, curved)
        part, total = move_inside(box, m)
        if part == 1.0 and total <= max(EXACT * abs(slope), exact):
            break
        m = next_product(part, total / pairs)
    hold_at_limits(objective, path, box, expansion)
    return slope, curvature


@inline
def find_exact_changes(model, steps, objective, rooms, path, expansion, wanted):
    """`find_changes` with second derivatives of the steps, if they are wanted, and whether the model has some.

    Where it has no minimum they are halved, up to `PARTS` times, and left out at last.
    """
    if rooms.curvature.H.shape[0] > 0:
        weigh_costs(model, steps, objective, rooms.cost, rooms.stages.found, rooms.curvature, path, expansion)
        known = add_step_hessians(model, steps, rooms.stages, rooms.step, rooms.curvature, path, expansion)
        for _ in range(PARTS if known else 0):
            slope, curvature = find_changes(objective, rooms, path, expansion, *wanted)
            if slope < np.inf:
                return slope, curvature, True
            leave_step_hessians(rooms.curvature, expansion, 0.5)
        leave_step_hessians(rooms.curvature, expansion, 0.0)
    slope, curvature = find_changes(objective, rooms, path, expansion, *wanted)
    return slope, curvature, False


@inline
def start(model, steps, objective, path, trial, expansion, rooms):
    """Roll the plan out with its feedback from the first state of `trial`; returns the knots that were reached."""
    for k in range(expansion.gap.shape[0]):
        for i in range(expansion.gap.shape[1]):
            expansion.gap[k, i] = 0.0
    made = roll_out(model, steps, objective, rooms.step, rooms.cost, rooms.forward, path, expansion, 0.0, trial)[0]
    if made == path.q.shape[0]:
        copy_path(trial, path)
    return made


@inline
def next_multipliers(model, steps, objective, rooms, path, expansion, penalty):
    """Multipliers of all limits of states and contacts; penalty = (factor `growth` of penalties, the largest)."""
    growth, largest = penalty
    cones, lam, mu = steps.phases.cones, expansion.lam, expansion.mu
    for k in range(path.u.shape[0] if cones.rows.size > 0 else 0):
        update_cone_multipliers(cones, k, rooms.stages.found.lam[k], growth, largest)
    for k in range(path.q.shape[0]):
        if k > 0 and touches(steps, k):
            update_gap_multipliers(model, steps, rooms.step.stage, k, path.q[k], growth, largest)
        knot = Knot(k, k == path.u.shape[0], path.q[k], path.v[k])
        update_multipliers(model, objective, rooms.cost, knot, lam[k], mu[k])
        for l in range(objective.low.size if growth > 1.0 else 0):
            mu[k, l] = next_penalty(mu[k, l], growth, largest)


@inline
def has_limits(steps, objective):
    """Are there limits that multipliers hold?"""
    return objective.low.size + steps.phases.lam.size + steps.phases.cones.lam.size > 0


@inline
def penalty_of(steps, objective, expansion):
    """The penalty of limits, which grows for all of them at once."""
    if objective.low.size > 0:
        return expansion.mu[1, 0]
    return steps.phases.mu[0, 0] if steps.phases.mu.size > 0 else steps.phases.cones.mu[0]


@inline
def gap_weight(weight, slope, curvature, gaps):
    """The weight of gaps in the merit, which never falls."""
    if not gaps > 0.0 or not slope < np.inf:
        return weight
    return max(weight, (slope + 0.5 * max(curvature, 0.0)) / (GAP_SHARE * gaps))


@inline
def line_search(model, steps, objective, plans, rooms, merit, halvings):
    """(part of the change that is taken, cost, violation and fall of the merit after it), 0 if there is none.

    plans.trial is the new plan.
    """
    path, trial, expansion = plans
    alpha = 1.0
    copy_vector(path.q[0], trial.q[0])
    copy_vector(path.v[0], trial.v[0])
    for _ in range(halvings if merit.slope < np.inf else 0):
        made, cost, added, worst = roll_out(
            model, steps, objective, rooms.step, rooms.cost, rooms.forward, path, expansion, alpha, trial)
        if made == path.q.shape[0]:
            after = cost + added + merit.weight * (1.0 - alpha) * merit.gaps
            if after - merit.value <= ARMIJO * alpha * (merit.slope - merit.weight * merit.gaps):
                return alpha, cost, worst, merit.value - after
        alpha *= 0.5
    return 0.0, np.inf, np.inf, 0.0


@inline
def better_step(model, steps, objective, plans, rooms, merit, halvings, wanted):
    """`line_search` and the slope; where Newton's change is shortened, of that of Gauss and Newton if the merit falls
    more along it: far from an optimum the second derivatives may promise too much.

    wanted = (whether the change is Newton's, what `find_changes` is asked for).
    """
    path, trial, expansion = plans
    newton = line_search(model, steps, objective, plans, rooms, merit, halvings)
    if newton[0] == 1.0 or not wanted[0]:
        return newton, merit.slope
    copy_path(trial, rooms.other)
    leave_step_hessians(rooms.curvature, expansion, 0.0)
    slope, _ = find_changes(objective, rooms, path, expansion, *wanted[1])
    other = line_search(model, steps, objective, plans, rooms,
                        Merit(merit.value, slope, merit.weight, merit.gaps), halvings)
    if other[3] > newton[3]:
        return other, slope
    copy_path(rooms.other, trial)
    return newton, merit.slope


@inline
def next_damping(damping, alpha):
    """Damping after the part alpha of a change."""
    if alpha == 1.0:
        return damping / DAMPED if damping > LEAST_DAMPING else 0.0
    grown = damping * (0.5 / alpha if alpha > 0.0 else MOST_DAMPED)
    return max(FIRST_DAMPING, grown) if alpha <= SHORT else grown


@inline
def tolerance_of(options, added, memory):
    """What a change must promise, relative to the cost; the last one where no limit adds to the cost."""
    return memory[TOLERANCE] if added != 0.0 else options.tolerance


@inline
def is_below_rounding(alpha, slope, size, memory):
    """True where no part of a change helps because the merit cannot tell any more: the search is at its end."""
    return alpha == 0.0 and memory[CLOSED] > 0.0 and abs(slope) <= math.sqrt(ROUNDING) * size


@inline
def begin(options, limited, memory):
    """What a search knows where it begins."""
    memory[DAMPING] = memory[GAP_WEIGHT] = memory[CLOSED] = 0.0
    memory[TOLERANCE] = max(options.tolerance, FIRST_TOLERANCE) if limited else options.tolerance
    memory[VIOLATION] = np.inf


@inline
def cannot_be_held(options, worst, penalty, memory):
    """Have multipliers and the largest penalty not helped?"""
    return options.growth > 1.0 and worst > 0.5 * memory[VIOLATION] and not penalty < options.largest_penalty


@inline
def next_growth(options, worst, memory):
    """The factor of penalties, 1 where multipliers alone make progress; and what the search is to reach next."""
    grows = options.growth > 1.0 and worst > options.limit_tolerance and worst > PROGRESS * memory[VIOLATION]
    memory[VIOLATION], memory[TOLERANCE] = worst, max(options.tolerance, 0.01 * memory[TOLERANCE])
    return options.growth if grows else 1.0


@inline
def write_down(log, iteration, cost, gaps, worst, slope):
    log.cost[iteration], log.gaps[iteration], log.violation[iteration] = cost, gaps, worst
    log.slope[iteration], log.step[iteration], log.count[0] = slope, 0.0, iteration


@kernel(nogil=True)
def raise_multipliers(model, steps, objective, rooms, path, expansion):
    """Multipliers after a search that has run out of iterations, without larger penalties."""
    next_multipliers(
        model, placed(steps), placed(objective), placed(rooms), path, placed(expansion), (1.0, np.inf))


@inline
def begun(model, steps, objective, plans, rooms, options, log):
    """Prepare the memory and the plan of a search; False if a plan from inputs has no solution."""
    path, trial, expansion = plans
    log.count[0], log.count[1], log.count[2] = 0, 0, -1
    if options.roll != GO_ON:
        begin(options, has_limits(steps, objective), log.memory)
    if options.roll != FROM_INPUTS:
        return True
    log.count[2] = start(model, steps, objective, path, trial, expansion, rooms)
    log.memory[CLOSED] = 1.0
    return log.count[2] == path.q.shape[0]


@inline
def end_of(options, limited, exact, worst, penalty, last, memory):
    """What ends a search that has converged for its multipliers; UPDATE if it goes on with the next ones.

    `exact` tells if it has converged as far as is wanted at last, `last` if no iteration is left.
    """
    if not limited or exact and worst <= options.limit_tolerance:
        return CONVERGED
    if exact and cannot_be_held(options, worst, penalty, memory):
        return VIOLATED
    return ITERATIONS if last else UPDATE


@kernel(nogil=True)
def search(model, steps, objective, plans, rooms, options, log):
    """Improve plans.path in place; returns what ended the search."""
    path, trial, steps, objective, rooms = plans.path, plans.trial, placed(steps), placed(objective), placed(rooms)
    expansion = placed(plans.expansion)
    plans = Plans(path, trial, expansion)
    knots, memory, limited, iteration = path.q.shape[0], log.memory, has_limits(steps, objective), 0
    moved, stuck, failed, made, gaps = True, False, False, 0, 0.0
    if not begun(model, steps, objective, plans, rooms, options, log):
        return SINGULAR
    while True:
        if moved:
            made, gaps = expand_steps(model, steps, rooms.stages, rooms.step, rooms.forward.dq, path,
                                      memory[CLOSED] > 0.0, expansion)
        cost, added, worst = expand_costs(
            model, steps, objective, rooms.cost, rooms.step, rooms.stages.found, path, expansion)
        log.count[2] = made
        if made < knots or not cost + added < np.inf:
            return SINGULAR
        size, last = abs(cost) + abs(added), iteration == options.iterations
        asked = memory[DAMPING], gaps > 0.0, SHARE * options.tolerance * size
        slope, curvature, exact = find_exact_changes(model, steps, objective, rooms, path, expansion, asked)
        write_down(log, iteration, cost, gaps, worst, slope)
        memory[CLOSED] = 1.0 if gaps <= CLOSED_GAPS else 0.0
        wanted = tolerance_of(options, added, memory)
        small = abs(slope) <= max(max(wanted, ROUNDING) * size, options.floor)
        iteration += 1
        if memory[CLOSED] > 0.0 and (stuck or small):
            if memory[DAMPING] > 0.0:  # damped changes promise little anywhere: the undamped one tells if it is the end
                if last or failed:
                    return ITERATIONS if last else STALLED
                memory[DAMPING], moved, stuck = 0.0, False, False
                continue
            penalty = penalty_of(steps, objective, expansion) if limited else 0.0
            end = end_of(options, limited, wanted <= options.tolerance, worst, penalty, last, memory)
            if end != UPDATE:
                return end
            penalties = next_growth(options, worst, memory), options.largest_penalty
            next_multipliers(model, steps, objective, rooms, path, expansion, penalties)
            log.count[1] += 1
            moved = stuck = failed = False
            continue
        if last:
            return ITERATIONS
        memory[GAP_WEIGHT] = gap_weight(memory[GAP_WEIGHT], slope, curvature, gaps)
        merit = Merit(cost + added + memory[GAP_WEIGHT] * gaps, slope, memory[GAP_WEIGHT], gaps)
        (alpha, cost, worst, _), slope = better_step(
            model, steps, objective, plans, rooms, merit, options.halvings, (exact, asked))
        log.step[iteration - 1] = alpha
        stuck = is_below_rounding(alpha, slope, size, memory)
        moved = alpha > 0.0
        failed = not moved and (failed or memory[DAMPING] == 0.0)
        if not stuck:
            memory[DAMPING] = next_damping(memory[DAMPING], alpha)
        if memory[DAMPING] > LARGEST_DAMPING:
            return STALLED
        if not moved:
            continue
        memory[CLOSED] = 1.0 if alpha == 1.0 else memory[CLOSED]
        copy_path(trial, path)
        if iteration == options.iterations and not options.finish:
            log.cost[iteration], log.violation[iteration], log.count[0] = cost, worst, iteration
            return ITERATIONS
