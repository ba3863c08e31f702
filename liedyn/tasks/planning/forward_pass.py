"""Forward passes of a plan: rollouts, derivatives of the cost, and the linear model's prediction for a change.

A plan may have gaps: the step from knot k need not end at knot k + 1 (multiple shooting). The gap is the difference of
the two in x = (y, w), seen from knot k + 1. A rollout with the fraction alpha of the change leaves 1 - alpha of each
gap (Giftthaler et al. 2018; Mastalli et al. 2020).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import Address, record
from liedyn.machine.compiled.jit import VECTOR, inline, late
from liedyn.model.packed_records import MODEL
from liedyn.tasks.planning.augmented_lagrangian import add_cone_derivatives, add_gap_derivatives, cone_cost, gap_cost
from liedyn.tasks.planning.backward_pass import INPUT_BOX
from liedyn.tasks.planning.expansion import EXPANSION, FOUND, PATH, put_difference
from liedyn.tasks.planning.objective import (
    COST_ROOM, OBJECTIVE, Knot, input_cost, put_input_gradient, put_state_derivatives, state_cost,
)
from liedyn.tasks.planning.phase_changes import advance
from liedyn.tasks.planning.phases import touches
from liedyn.tasks.planning.step import DISCRETISATION, STEP_ROOM, copy_vector, in_phase, put_state

ForwardRoom = namedtuple("ForwardRoom", "dq dx dx_next")

FORWARD_ROOM = record(ForwardRoom, *[VECTOR] * 3)


@inline
def is_open(gap):
    """True if a gap is not zero."""
    largest = 0.0
    for i in range(gap.size):
        largest = max(largest, abs(gap[i]))
    return largest > 0.0


@late(MODEL, DISCRETISATION, STEP_ROOM, VECTOR, types.float64, VECTOR, VECTOR, returns=types.boolean)
def leave_gap(model, steps, scratch, gap, part, q, v):
    """(q, v) moved by -part times the gap, along the manifold; False if the result has no closed configuration."""
    if part == 0.0:
        return True
    if not put_state(model, steps, scratch, q, v, gap, -part):
        return False
    copy_vector(scratch.stage.q, q)
    copy_vector(scratch.stage.v, v)
    return True


@late(MODEL, DISCRETISATION, STEP_ROOM, types.int64, VECTOR, returns=types.Tuple([types.float64] * 2))
def touching_cost(model, steps, scratch, k, q):
    """`gap_cost`, compiled separately: in the rollout it would slow down plans without phases by a twentieth."""
    return gap_cost(model, steps, scratch.stage, k, q)


@late(DISCRETISATION, STEP_ROOM, types.int64, returns=types.Tuple([types.float64] * 2))
def contact_cost(steps, scratch, k):
    """`cone_cost` of the last step, compiled separately for the same reason."""
    return cone_cost(steps.phases.cones, k, scratch.first)


@late(DISCRETISATION, Address(FOUND), types.int64, types.int64, EXPANSION, returns=types.Tuple([types.float64] * 2))
def add_contact_derivatives(steps, found, n, k, expansion):
    """`add_cone_derivatives` of the step from knot k, whose multipliers follow n velocities in the outputs."""
    expansion.by_u[k] = 0.0
    slopes = expansion.lx[k], expansion.lxx[k], expansion.lu[k], expansion.by_u[k]
    return add_cone_derivatives(steps.phases.cones, k, found.lam[k], (found.C[k, n:], found.D[k, n:]), slopes)


@late(MODEL, DISCRETISATION, OBJECTIVE, STEP_ROOM, COST_ROOM, FORWARD_ROOM, PATH, EXPANSION, types.float64, PATH,
      returns=types.Tuple((types.int64, *[types.float64] * 3)))
def roll_out(model, steps, objective, scratch, room, forward, path, expansion, alpha, trial):
    """`trial` from its own first state with inputs u + alpha k + K dx, within their limits.

    Returns (knots done, cost, augmented Lagrangian of limits, largest violation): all knots, unless a step has no
    solution.
    """
    knots = trial.u.shape[0]
    total = added = worst = 0.0
    for k in range(knots + 1):
        last = k == knots
        knot = Knot(k, last, trial.q[k], trial.v[k])
        cost, more, violation = state_cost(model, objective, room, knot, expansion.lam[k], expansion.mu[k])
        total, added, worst = total + cost, added + more, max(worst, violation)
        if last:
            break
        if k > 0 and touches(steps, k):  # the first state is given
            more, violation = touching_cost(model, steps, scratch, k, trial.q[k])
            added, worst = added + more, max(worst, violation)
        planned, state = (path.q[k], path.v[k]), (trial.q[k], trial.v[k])
        put_difference(*in_phase(model, steps, k), forward.dq, planned, state, forward.dx)
        for i in range(trial.u.shape[1]):
            s = path.u[k, i] + alpha * expansion.k[k, i]
            for j in range(forward.dx.size):
                s += expansion.K[k, i, j] * forward.dx[j]
            trial.u[k, i] = min(max(s, objective.u_low[i]), objective.u_high[i])
        total += input_cost(objective, k, trial.u[k])
        if not total + added < np.inf:
            return k, np.inf, np.inf, np.inf
        if not advance(model, steps, scratch, k, state, trial.u[k], (trial.q[k + 1], trial.v[k + 1])):
            return k, np.inf, np.inf, np.inf
        if steps.phases.cones.rows.size > 0:
            more, violation = contact_cost(steps, scratch, k)
            added, worst = added + more, max(worst, violation)
        if is_open(expansion.gap[k]) and not leave_gap(
                *in_phase(model, steps, k + 1), scratch, expansion.gap[k], 1.0 - alpha, trial.q[k + 1], trial.v[k + 1]):
            return k, np.inf, np.inf, np.inf
    return knots + 1, total, added, worst


@late(MODEL, DISCRETISATION, OBJECTIVE, COST_ROOM, STEP_ROOM, Address(FOUND), PATH, EXPANSION,
      returns=types.Tuple([types.float64] * 3))
def expand_costs(model, steps, objective, room, scratch, found, path, expansion):
    """Derivatives of the cost along a plan, with the motions of the manifold `found` at its knots.

    Returns (cost, augmented Lagrangian of limits, largest violation).
    """
    knots = path.u.shape[0]
    total = added = worst = 0.0
    for k in range(knots + 1):
        if k < knots:
            total += put_input_gradient(objective, k, path.u[k], expansion.lu[k])
        cost, more, violation = put_state_derivatives(
            model, objective, room, Knot(k, k == knots, path.q[k], path.v[k]), (expansion.lam[k], expansion.mu[k]),
            (found.K[k], found.C[k]), (expansion.lx[k], expansion.lxx[k]))
        total, added, worst = total + cost, added + more, max(worst, violation)
        if k > 0 and touches(steps, k):
            more, violation = add_gap_derivatives(
                model, steps, scratch.stage, k, path.q[k], found.K[k], (expansion.lx[k], expansion.lxx[k]))
            added, worst = added + more, max(worst, violation)
        if k < knots and steps.phases.cones.rows.size > 0:
            more, violation = add_contact_derivatives(steps, found, path.v.shape[1], k, expansion)
            added, worst = added + more, max(worst, violation)
    return total, added, worst


@late(OBJECTIVE, FORWARD_ROOM, INPUT_BOX, EXPANSION, types.boolean, returns=types.Tuple([types.float64] * 2))
def predict(objective, forward, box, expansion, curved):
    """Slope of the cost along the change that the linear model makes of k and K, and its curvature if it is wanted; the
    change of inputs is what `box` has as wanted."""
    knots, nu = expansion.lu.shape
    slope, curvature = 0.0, 0.0
    for j in range(forward.dx.size):
        forward.dx[j] = 0.0
    for k in range(knots + 1):
        for i in range(forward.dx.size):
            slope += expansion.lx[k, i] * forward.dx[i]
            for j in range(forward.dx.size if curved else 0):
                curvature += forward.dx[i] * expansion.lxx[k, i, j] * forward.dx[j]
        if k == knots:
            break
        du = box.wanted[k]
        for i in range(nu):
            s = expansion.k[k, i]
            for j in range(forward.dx.size):
                s += expansion.K[k, i, j] * forward.dx[j]
            du[i] = s
            slope += expansion.lu[k, i] * s
        for i in range(nu if curved else 0):
            for j in range(nu):
                curvature += 2.0 * du[i] * objective.R[i, j] * du[j]
            for j in range(forward.dx.size if expansion.by_u.shape[1] > 0 else 0):
                curvature += 2.0 * du[i] * expansion.by_u[k, i, j] * forward.dx[j]
            for j in range(nu if expansion.by_u.shape[1] > 0 else 0):
                curvature += du[i] * expansion.by_u[k, i, forward.dx.size + j] * du[j]
        for i in range(forward.dx.size):
            s = expansion.gap[k, i]
            for j in range(forward.dx.size):
                s += expansion.A[k, i, j] * forward.dx[j]
            for j in range(nu):
                s += expansion.B[k, i, j] * du[j]
            forward.dx_next[i] = s
        copy_vector(forward.dx_next, forward.dx)
    return slope, curvature
