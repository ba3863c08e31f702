"""Derivatives of the steps along a plan, for all knots in one batch (methods and symbols:
`liedyn.tasks.planning.step`).

As the knots of a plan are known, the local state spaces at all of them, and then those at the next stages of all
steps, are batches of `liedyn.linear.linearize_states`: W states at a time in lanes if the robot allows it. The chain
rule along the stages follows, knot by knot (`liedyn.motion.discrete_steps`).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.linearize_one_state import room
from liedyn.linear.linearize_states import Request, Tolerances, linearize_registers, linearize_trees
from liedyn.linear.output_rows import MULTIPLIER, TREE, VELOCITY
from liedyn.machine.compiled.by_address import placed, record, contents
from liedyn.machine.compiled.jit import CUBE, MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.tree.configuration import difference_kernel
from liedyn.model.packed import N_ROWS
from liedyn.model.packed_records import MODEL
from liedyn.motion.discrete_steps import EULER, put_displacement_of, stage_time, vary_step
from liedyn.tasks.planning.element_forces import has_elements, put_forces_of_row
from liedyn.tasks.planning.local_spaces import (
    BATCH, FOUND, OUTPUTS, STATES, TOLERANCES, linearize_with_elements, one_by_one,
)
from liedyn.tasks.planning.phase_changes import linearize_phases, put_touch_derivatives, touch
from liedyn.tasks.planning.phases import touches
from liedyn.tasks.planning.step import DISCRETISATION, STEP_ROOM, copy_vector, in_phase, put_forces, put_state

Path = namedtuple("Path", "q v u")
"""States of the knots, one more than inputs."""

Expansion = namedtuple("Expansion", "A B gap lx lxx lu by_u k K lam mu")
"""For each knot: derivatives of the step, gap to the next knot, derivatives of the cost, with [l_ux l_uu] (nu, x + nu)
of force limits of contacts if there are any; the change k and the feedback K of inputs; multipliers and
penalties of the limits."""

StageRoom = namedtuple("StageRoom", "states found outputs tolerances u x eta dw df moved sum_w sum_f")
"""States and local state spaces at all stages, stage by stage, each for all knots, whose `outputs` are velocities and
multipliers of contacts; and scratch for one knot: a displacement u and the sum x of rates. Padded (p, z), by z = (y, w,
input): derivatives of the coordinates, of the rates (w, wdot) of a stage, of the displacement of the next one, and of
the sum of rates."""

PATH = group(Path, *[MATRIX] * 3)
EXPANSION = record(Expansion, *[CUBE] * 2, *[MATRIX] * 2, CUBE, MATRIX, CUBE, MATRIX, CUBE, *[MATRIX] * 2)
STAGE_ROOM = record(StageRoom, STATES, FOUND, OUTPUTS, TOLERANCES, *[VECTOR] * 2, *[MATRIX] * 6)
in_registers, of_trees = (late(*BATCH)(each.kernel) for each in (linearize_registers, linearize_trees))


def stage_room(robot, d, knots, whole):
    """`StageRoom` for steps between `knots` knots; if (y, w) are the `whole` state, no outputs are needed."""
    n, p, nu, rows = robot.nv, d.entries.size // 2, d.actuators.shape[1], d.method * knots
    states = State(np.empty((rows, robot.nq)), np.empty((rows, n)), np.empty((rows, n)), np.empty((rows, 0)))
    outputs = np.array([(TREE, VELOCITY, j, j) for j in range(0 if whole and robot.elements is None else n)]
                       + [(MULTIPLIER, 0, row, n + i) for i, row in enumerate(d.phases.cones.rows)],
                       np.int64).reshape(-1, 4)
    return StageRoom(states, room(robot, rows, p, p, nu, len(outputs)), outputs, Tolerances(np.inf, d.rank_tolerance),
                     np.zeros(p), np.zeros(2 * p), *np.zeros((6, p, padded.py_func(2 * p + nu))))


@inline
def put_scaled_row(h, row, at, one, out):
    """Row `at` of out = h row, with 1 added in the column `one` if there is one."""
    for j in range(row.size):
        out[at, j] = h * row[j]
    if one >= 0:
        out[at, one] += 1.0


@inline
def put_euler_derivatives(h, A_f, B_f, A, B):
    """A and B of a semi-implicit step in coordinates of R^n: rows of w' = w + h f, and of y' = y + h w'."""
    p = A.shape[0] // 2
    for i in range(p):
        put_scaled_row(h, A_f[p + i], p + i, p + i, A)
        put_scaled_row(h, A[p + i], i, i, A)
        put_scaled_row(h, B_f[p + i], p + i, -1, B)
        put_scaled_row(h, B[p + i], i, -1, B)


@kernel_in_place
def put_step_derivatives(d, r, k, knots, v, A, B):
    """A (2p, 2p) and B (2p, nu) of the step from knot k with velocities v."""
    if d.method == EULER and d.groups.shape[0] == 0:  # the same as below, three times as fast
        put_euler_derivatives(d.h, r.found.A[k], r.found.B[k], A, B)
    else:
        vary_step(contents(d), contents(r), k, knots, v, A, B)


@inline
def put_stage_states(model, d, r, step, stage, path):
    """States of all knots at a stage; returns the first knot whose stage does not exist, or the number of knots."""
    knots, s = path.q.shape[0], r.states
    for k in range(knots if stage == 0 else knots - 1):
        row, q, v = stage * knots + k, path.q[k], path.v[k]
        if stage == 0:
            copy_vector(q, s.q[row])
            copy_vector(v, s.v[row])
        else:
            of_knot, e = in_phase(model, d, k)
            if not put_state(of_knot, e, step, q, v, r.found.f0[row - knots], stage_time(stage, d.h)):
                return k
            copy_vector(step.stage.q, s.q[row])
            copy_vector(step.stage.v, s.v[row])
        u = path.u[min(k, knots - 2)]
        if has_elements(d):
            put_forces_of_row(d.actuators, contents(d.elements), row, u, s.q[row], s.v[row], s.tau[row])
        else:
            put_forces(d.actuators, u, s.tau[row])
    return knots


@inline
def linearize_stage(model, d, r, begin, end):
    """Local state spaces of the rows from `begin` to `end`; returns the first row that has none, or `end`."""
    states, tolerances, found = contents(r.states), contents(r.tolerances), contents(r.found)
    request = Request(contents(d.coordinates), d.actuators, r.outputs, tolerances)
    for k in range(begin, end):
        found.rank[k] = -1
    if d.phases.counts.shape[0] > 0:
        rows = d.phases.of_knot.size, begin, end
        return linearize_phases(model, d, states, (r.outputs, tolerances), rows, found)
    if has_elements(d):
        linearize_with_elements(begin, end, model, states, request, found, contents(d.elements), 0)
    elif model.ints[N_ROWS] > 0:
        in_registers(begin, end, model, states, request, found)
    else:
        of_trees(begin, end, model, states, request, found)
    known = begin
    while known < end and found.rank[known] >= 0:
        known += 1
    if known < end and not has_elements(d):
        one_by_one(begin, end, model, states, request, found)
    while known < end and found.rank[known] >= 0:
        known += 1
    return known


@inline
def put_difference(model, d, dq, start, end, dx):
    """dx = (y, w) of the difference of a state (q, v) from another; dq (nv) is scratch."""
    (q_0, v_0), (q, v) = start, end
    p = d.places.size
    difference_kernel(model, q_0, q, dq)
    for i in range(dx.size if d.entries.size < dx.size else 0):
        dx[i] = 0.0
    for i in range(p):
        dx[d.entries[i]] = dq[d.places[i]]
    for i in range(d.speeds.size):
        dx[d.entries[p + i]] = v[d.speeds[i]] - v_0[d.speeds[i]]


@kernel_in_place
def put_gaps(model, d, r, step, dq, path, x):
    """Gaps between the ends of steps and the next knots; returns (knots done, sum of their sizes)."""
    knots, gaps = path.q.shape[0], 0.0
    for k in range(knots - 1):
        of_knot, e = in_phase(model, d, k)
        if touches(d, k):
            made = touch(model, d, step, k, (path.q[k], path.v[k]), (step.q, step.v))
        else:
            put_displacement_of(e, r, k, knots, path.v[k])
            made = put_state(of_knot, e, step, path.q[k], path.v[k], r.x, 1.0)
            copy_vector(step.stage.q, step.q)
            copy_vector(step.stage.v, step.v)
        if not made:
            return k, np.inf
        knot, end = (path.q[k + 1], path.v[k + 1]), (step.q, step.v)
        put_difference(*in_phase(model, d, k + 1), dq, knot, end, x.gap[k])
        for i in range(r.x.size):
            gaps += abs(x.gap[k, i])
    return knots, gaps


@late(MODEL, DISCRETISATION, STAGE_ROOM, STEP_ROOM, VECTOR, PATH, types.boolean, EXPANSION,
      returns=types.Tuple((types.int64, types.float64)))
def expand_steps(model, d, r, step, dq, path, closed, x):
    """Derivatives of all steps in x, motions of the manifold in r.found, and gaps between steps and knots.

    If the plan is `closed`, each step ends at the next knot: there are no gaps, and no step has to be computed. Returns
    (knots done, sum of |gaps|); dq (nv) is scratch.
    """
    knots, p = path.q.shape[0], x.gap.shape[1] // 2
    for stage in range(d.method):
        begin, count = stage * knots, knots if stage == 0 else knots - 1
        made = put_stage_states(model, d, r, step, stage, path)
        made = linearize_stage(model, d, r, begin, begin + min(made, count)) - begin
        if made < count:
            return made, np.inf
    for k in range(knots - 1):
        if touches(d, k):
            state, motions = (path.q[k], path.v[k]), (r.found.K[k], r.found.C[k])
            if not put_touch_derivatives(model, d, step, k, state, motions, x.A[k]):
                return k, np.inf
            x.B[k, :, :] = r.found.D[k, :, :] = 0.0
            copy_vector(step.first, r.found.lam[k])
        else:
            e = d if d.phases.counts.shape[0] == 0 else placed(in_phase(model, d, k)[1])
            put_step_derivatives(e, r, k, knots, path.v[k], x.A[k], x.B[k])
        for i in range(2 * p):
            x.gap[k, i] = 0.0
    return (knots, 0.0) if closed else put_gaps(model, d, r, step, dq, path, x)
