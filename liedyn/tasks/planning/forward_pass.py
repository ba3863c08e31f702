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
    COST_ROOM, OBJECTIVE, input_cost, put_input_gradient, put_state_derivatives, state_cost,
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
def leave_gap(model, d, r, gap, part, q, v):
    """(q, v) moved by -part times the gap, along the manifold; False if the result has no closed configuration."""
    if part == 0.0:
        return True
    if not put_state(model, d, r, q, v, gap, -part):
        return False
    copy_vector(r.stage.q, q)
    copy_vector(r.stage.v, v)
    return True


@late(MODEL, DISCRETISATION, STEP_ROOM, types.int64, VECTOR, returns=types.Tuple([types.float64] * 2))
def touching_cost(model, d, r, k, q):
    """`gap_cost`, compiled separately: in the rollout it would slow down plans without phases by a twentieth."""
    return gap_cost(model, d, r.stage, k, q)


@late(DISCRETISATION, STEP_ROOM, types.int64, returns=types.Tuple([types.float64] * 2))
def contact_cost(d, r, k):
    """`cone_cost` of the last step, compiled separately for the same reason."""
    return cone_cost(d.phases.cones, k, r.first)


@late(DISCRETISATION, Address(FOUND), types.int64, types.int64, EXPANSION, returns=types.Tuple([types.float64] * 2))
def add_contact_derivatives(d, found, n, k, x):
    """`add_cone_derivatives` of the step from knot k, whose multipliers follow n velocities in the outputs."""
    x.by_u[k] = 0.0
    return add_cone_derivatives(d.phases.cones, k, found.lam[k], found.C[k, n:], found.D[k, n:], x.lx[k], x.lxx[k],
                                x.lu[k], x.by_u[k])


@late(MODEL, DISCRETISATION, OBJECTIVE, STEP_ROOM, COST_ROOM, FORWARD_ROOM, PATH, EXPANSION, types.float64, PATH,
      returns=types.Tuple((types.int64, *[types.float64] * 3)))
def roll_out(model, d, o, r, c, f, path, x, alpha, trial):
    """`trial` from its own first state with inputs u + alpha k + K dx, within their limits.

    Returns (knots done, cost, augmented Lagrangian of limits, largest violation): all knots, unless a step has no
    solution.
    """
    knots = trial.u.shape[0]
    total = added = worst = 0.0
    for k in range(knots + 1):
        last = k == knots
        cost, more, violation = state_cost(model, o, c, k, last, trial.q[k], trial.v[k], x.lam[k], x.mu[k])
        total, added, worst = total + cost, added + more, max(worst, violation)
        if last:
            break
        if k > 0 and touches(d, k):  # the first state is given
            more, violation = touching_cost(model, d, r, k, trial.q[k])
            added, worst = added + more, max(worst, violation)
        put_difference(*in_phase(model, d, k), f.dq, path.q[k], path.v[k], trial.q[k], trial.v[k], f.dx)
        for i in range(trial.u.shape[1]):
            s = path.u[k, i] + alpha * x.k[k, i]
            for j in range(f.dx.size):
                s += x.K[k, i, j] * f.dx[j]
            trial.u[k, i] = min(max(s, o.u_low[i]), o.u_high[i])
        total += input_cost(o, k, trial.u[k])
        if not total + added < np.inf:
            return k, np.inf, np.inf, np.inf
        if not advance(model, d, r, k, trial.q[k], trial.v[k], trial.u[k], trial.q[k + 1], trial.v[k + 1]):
            return k, np.inf, np.inf, np.inf
        if d.phases.cones.rows.size > 0:
            more, violation = contact_cost(d, r, k)
            added, worst = added + more, max(worst, violation)
        if is_open(x.gap[k]) and not leave_gap(
                *in_phase(model, d, k + 1), r, x.gap[k], 1.0 - alpha, trial.q[k + 1], trial.v[k + 1]):
            return k, np.inf, np.inf, np.inf
    return knots + 1, total, added, worst


@late(MODEL, DISCRETISATION, OBJECTIVE, COST_ROOM, STEP_ROOM, Address(FOUND), PATH, EXPANSION,
      returns=types.Tuple([types.float64] * 3))
def expand_costs(model, d, o, c, r, found, path, x):
    """Derivatives of the cost along a plan, with the motions of the manifold `found` at its knots.

    Returns (cost, augmented Lagrangian of limits, largest violation).
    """
    knots = path.u.shape[0]
    total = added = worst = 0.0
    for k in range(knots + 1):
        if k < knots:
            total += put_input_gradient(o, k, path.u[k], x.lu[k])
        cost, more, violation = put_state_derivatives(
            model, o, c, k, k == knots, path.q[k], path.v[k], x.lam[k], x.mu[k], found.K[k], found.C[k], x.lx[k],
            x.lxx[k])
        total, added, worst = total + cost, added + more, max(worst, violation)
        if k > 0 and touches(d, k):
            more, violation = add_gap_derivatives(model, d, r.stage, k, path.q[k], found.K[k], x.lx[k], x.lxx[k])
            added, worst = added + more, max(worst, violation)
        if k < knots and d.phases.cones.rows.size > 0:
            more, violation = add_contact_derivatives(d, found, path.v.shape[1], k, x)
            added, worst = added + more, max(worst, violation)
    return total, added, worst


@late(OBJECTIVE, FORWARD_ROOM, INPUT_BOX, EXPANSION, types.boolean, returns=types.Tuple([types.float64] * 2))
def predict(o, f, box, x, curved):
    """Slope of the cost along the change that the linear model makes of k and K, and its curvature if it is wanted; the
    change of inputs is what `box` has as wanted."""
    knots, nu = x.lu.shape
    slope, curvature = 0.0, 0.0
    for j in range(f.dx.size):
        f.dx[j] = 0.0
    for k in range(knots + 1):
        for i in range(f.dx.size):
            slope += x.lx[k, i] * f.dx[i]
            for j in range(f.dx.size if curved else 0):
                curvature += f.dx[i] * x.lxx[k, i, j] * f.dx[j]
        if k == knots:
            break
        du = box.wanted[k]
        for i in range(nu):
            s = x.k[k, i]
            for j in range(f.dx.size):
                s += x.K[k, i, j] * f.dx[j]
            du[i] = s
            slope += x.lu[k, i] * s
        for i in range(nu if curved else 0):
            for j in range(nu):
                curvature += 2.0 * du[i] * o.R[i, j] * du[j]
            for j in range(f.dx.size if x.by_u.shape[1] > 0 else 0):
                curvature += 2.0 * du[i] * x.by_u[k, i, j] * f.dx[j]
            for j in range(nu if x.by_u.shape[1] > 0 else 0):
                curvature += du[i] * x.by_u[k, i, f.dx.size + j] * du[j]
        for i in range(f.dx.size):
            s = x.gap[k, i]
            for j in range(f.dx.size):
                s += x.A[k, i, j] * f.dx[j]
            for j in range(nu):
                s += x.B[k, i, j] * du[j]
            f.dx_next[i] = s
        copy_vector(f.dx_next, f.dx)
    return slope, curvature
