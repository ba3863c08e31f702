"""Steps and derivatives of plans with phases (`liedyn.tasks.planning.phases`): impacts at phase changes, and local
state spaces phase by phase."""
import numpy as np
from numba import types

from liedyn.linear.linearize_states import Request, Tolerances
from liedyn.linear.output_rows import MULTIPLIER
from liedyn.linear.space import Coordinates
from liedyn.machine.compiled.by_address import contents
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel, kernel_in_place, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.tree.rnea import rnea_kernel, rnea_size
from liedyn.mechanics.tree.rnea_derivatives import derivatives_size, rnea_derivatives_kernel
from liedyn.model.packed import N_ROWS, PackedModel
from liedyn.model.packed_records import MODEL
from liedyn.tasks.planning.element_forces import has_elements
from liedyn.tasks.planning.local_spaces import (
    FOUND, OUTPUTS, STATES, TOLERANCES, linearize_with_elements, one_by_one, room_in,
)
from liedyn.tasks.planning.phases import put_closed, touches
from liedyn.tasks.planning.step import (
    DISCRETISATION, STEP_ROOM, accelerate, copy_vector, in_phase, make_step, owned_in_phase,
    owned_stage_of, put_motion,
)


@late(MODEL, DISCRETISATION, STEP_ROOM, types.int64, *[types.UniTuple(VECTOR, 2)] * 2, returns=types.boolean)
@kernel
def touch(model, steps, scratch, k, state, after):
    """after = (q, v) at the beginning of the phase after knot k, from a state (q, v); False if there is none."""
    (q, v), (q_next, v_next) = state, after
    closed, e = owned_in_phase(model, steps, k + 1)
    held = PackedModel(e.configuration, model.floats)
    if not put_closed(held, e, owned_stage_of(scratch.stage, e.choosable[0]), q, steps.rank_tolerance):
        return False
    at_rest, rest, work = PackedModel(closed.ints, steps.phases.rest), np.zeros(v.size), np.empty(rnea_size(model))
    copy_vector(scratch.stage.q, q_next)
    rnea_kernel(SCALAR, at_rest, q_next, rest, v, scratch.f_ext, work, scratch.tau)
    if accelerate(at_rest, q_next, rest, scratch.tau, scratch.f_ext, steps.rank_tolerance, scratch.solve, scratch.a,
                  scratch.first)[0] != OK:
        return False
    for i in range(e.speeds.size):
        scratch.w[i] = scratch.a[e.speeds[i]]
    if not put_motion(closed, e, owned_stage_of(scratch.stage, e.choosable[1]), scratch.w):
        return False
    copy_vector(scratch.stage.v, v_next)
    finite = True
    for j in range(v.size):
        finite = finite and abs(v_next[j]) < np.inf
    return finite


@kernel(nogil=True)
def close_knots(model, steps, scratch, path, first):
    """Moves the states of the knots from `first` on to the constraints of their phases.

    Returns the first knot that cannot be closed, or the number of knots.
    """
    for k in range(first, path.q.shape[0]):
        closed, e = owned_in_phase(model, steps, k)
        held = PackedModel(e.configuration, model.floats)
        if not put_closed(held, e, owned_stage_of(scratch.stage, e.choosable[0]), path.q[k], steps.rank_tolerance):
            return k
        copy_vector(scratch.stage.q, path.q[k])
        for i in range(e.speeds.size):
            scratch.w[i] = path.v[k, e.speeds[i]]
        if not put_motion(closed, e, owned_stage_of(scratch.stage, e.choosable[1]), scratch.w):
            return k
        copy_vector(scratch.stage.v, path.v[k])
    return path.q.shape[0]


@kernel_in_place
def advance(model, steps, scratch, k, state, u, after):
    """after = (q, v) after a state (q, v) of knot k: by a step, or by a phase change; False if there is no solution."""
    if steps.phases.counts.shape[0] == 0:
        return make_step(model, steps, scratch, state, u, after)
    if touches(steps, k):
        return touch(model, steps, scratch, k, state, after)
    of_knot, e = in_phase(model, steps, k)
    return make_step(of_knot, e, scratch, state, u, after)


@inline_array
def picks_of(n, places):
    """Rows (1, p, n) that pick degrees of freedom."""
    R = np.zeros((1, places.size, n))
    for i in range(places.size):
        R[0, i, places[i]] = 1.0
    return R


@inline_array
def coordinates_in(n, steps):
    """`Coordinates` of the places and speeds of a phase."""
    return Coordinates(picks_of(n, steps.places), np.full(steps.places.size, -1, np.int64), picks_of(n, steps.speeds),
                       np.full(steps.speeds.size, -1, np.int64))


@inline
def put_whole(steps, found, b, row, whole):
    """Row b of a phase, as one of the whole tree: f0, the rows of A and B that are read, N, outputs, multipliers."""
    p, w = steps.places.size, steps.speeds.size
    whole.f0[row, :], whole.A[row, :, :], whole.B[row, :, :] = 0.0, 0.0, 0.0
    whole.K[row, :, :], whole.C[row, :, :] = 0.0, 0.0
    for i in range(p + w):
        at = steps.entries[i]
        whole.f0[row, at] = found.f0[b, i]
        for j in range(p + w):
            whole.A[row, at, steps.entries[j]] = found.A[b, i, j]
        for j in range(whole.B.shape[2]):
            whole.B[row, at, j] = found.B[b, i, j]
        for j in range(found.C.shape[1]):
            whole.C[row, j, at] = found.C[b, j, i]
        for j in range(found.K.shape[1] if i < p else 0):
            whole.K[row, j, at] = found.K[b, j, i]
    for j in range(found.D.shape[1]):
        for i in range(whole.D.shape[2]):
            whole.D[row, j, i] = found.D[b, j, i]
    copy_vector(found.lam[b], whole.lam[row])
    whole.rank[row] = found.rank[b]


@late(MODEL, DISCRETISATION, STATES, types.Tuple((OUTPUTS, TOLERANCES)), types.UniTuple(types.int64, 3), FOUND,
      returns=types.int64)
@kernel
def linearize_phases(model, steps, states, asked, rows, whole):
    """Local state spaces of the rows from `begin` to `end`, phase by phase; returns the first row without one, or
    `end`.

    asked = (outputs, tolerances); rows = (knots, begin, end): stages of `knots` rows each.
    """
    (outputs, tolerances), (knots, begin, end) = asked, rows
    n, m, row = states.v.shape[1], model.ints[N_ROWS], begin
    if begin >= knots:  # contact forces are those at the beginning of a step
        outputs = outputs[:n]
    while row < end:
        k = row % knots
        closed, e = owned_in_phase(model, steps, k)
        last = row + 1
        while last < end and steps.phases.of_knot[last % knots] == steps.phases.of_knot[k]:
            last += 1
        part = State(states.q[row:last], states.v[row:last], states.tau[row:last], states.f_ext[row:last])
        found = room_in(last - row, n, m, e.places.size, e.speeds.size, steps.actuators.shape[1], outputs.shape[0])
        request = Request(coordinates_in(n, e), steps.actuators, outputs, tolerances)
        if has_elements(steps):
            linearize_with_elements(0, last - row, closed, part, request, found, contents(steps.elements), row)
        else:
            one_by_one(0, last - row, closed, part, request, found)
        for b in range(last - row):
            if found.rank[b] < 0:
                return row + b
            put_whole(e, found, b, row + b, whole)
        row = last
    return end


@inline
def add_times(A, X, out):
    """out += A X; A may have more columns than X has rows."""
    for i in range(out.shape[0]):
        for l in range(X.shape[0]):
            x = A[i, l]
            if x != 0.0:
                for j in range(X.shape[1]):
                    out[i, j] += x * X[l, j]


@inline_array
def multipliers_of(rows):
    """Outputs that are the multipliers of these rows."""
    outputs = np.empty((rows.size, 4), np.int64)
    for i in range(rows.size):
        outputs[i, 0], outputs[i, 1], outputs[i, 2], outputs[i, 3] = MULTIPLIER, 0, rows[i], i
    return outputs


@inline_array
def linearize_touch(model, steps, scratch, k, state, motions):
    """What the derivatives of `touch` are made of, from a state (q, v) with motions N and X.

    Returns the state after it, at rest under the forces M v-, and its local state space in the next phase, with the
    multipliers of contacts as outputs, whose rank is -1 if there is none; derivatives of M v- by q, and M; and along
    all of x the motions of y, which is that of the next phase, of all coordinates and of the forces.
    """
    (q, v), (N, X) = state, motions
    n, m, rows = v.size, model.ints[N_ROWS], steps.phases.cones.rows
    after = State(np.empty((1, q.size)), np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, 0)))
    work, by_q, by_v, M = np.empty(derivatives_size(model)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    closed, e = owned_in_phase(model, steps, k + 1)
    at_rest, p, w, v_after = PackedModel(closed.ints, steps.phases.rest), e.places.size, e.speeds.size, np.empty(n)
    found = room_in(1, n, m, p, w, n, rows.size)
    Y, dq, forces = np.zeros((p, 2 * n)), np.zeros((n, 2 * n)), np.zeros((n, 2 * n))
    if not touch(model, steps, scratch, k, state, (after.q[0], v_after)):
        return after, found, by_q, M, Y, dq, forces
    rnea_derivatives_kernel(SCALAR, at_rest, after.q[0], after.v[0], v, scratch.f_ext, work, scratch.tau, by_q, by_v, M)
    for i in range(n):  # scratch.tau lacks the forces of armatures
        after.tau[0, i] = 0.0
        for j in range(n):
            after.tau[0, i] += M[i, j] * v[j]
    request = Request(
        coordinates_in(n, e), np.eye(n), multipliers_of(rows), Tolerances(np.inf, steps.rank_tolerance))
    one_by_one(0, 1, at_rest, after, request, found)
    for i in range(p):
        for j in range(n):
            Y[i, j] = N[e.places[i], j]
    add_times(found.K[0], Y, dq)
    add_times(by_q, dq, forces)
    add_times(M, X[:n], forces)
    return after, found, by_q, M, Y, dq, forces


@late(MODEL, DISCRETISATION, STEP_ROOM, types.int64, types.UniTuple(VECTOR, 2), types.UniTuple(MATRIX, 2), MATRIX,
      returns=types.boolean)
@kernel
def put_touch_derivatives(model, steps, scratch, k, state, motions, A):
    """A (2 n, 2 n) of `touch` from a state (q, v) with motions N of its coordinates and X of its velocities.

    In X the velocities are followed by the multipliers of contacts, which become those of the impulses.
    """
    _, found, _, _, Y, _, forces = linearize_touch(model, steps, scratch, k, state, motions)
    if found.rank[0] < 0:
        return False
    e, n, X = owned_in_phase(model, steps, k + 1)[1], state[1].size, motions[1]
    p, w, moved = e.places.size, e.speeds.size, np.zeros((e.entries.size, 2 * n))
    add_times(found.A[0], Y, moved)
    add_times(found.B[0], forces, moved)
    X[n:] = 0.0
    add_times(found.C[0], Y, X[n:])
    add_times(found.D[0], forces, X[n:])
    A[:, :] = 0.0
    for i in range(p + w):
        for j in range(2 * n):
            A[e.entries[i], j] = Y[i, j] if i < p else moved[i, j]
    return True
