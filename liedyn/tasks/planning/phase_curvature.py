"""Second derivatives in plans with phases or rolling (`liedyn.tasks.planning.phases`), contracted with costates.

Within a phase they are those of its own mechanism, in its own coordinates. At a phase change v+ is the acceleration a
at rest under the forces M v-. Both q+ and v+ depend on y, of which all of q+ follows, and on v-, so that a weighted
sum of the end has the gradient g_y and g_v by these, and the second derivative

    [dy; F]^T a'' [dy; F] + mu . (M v-)'' + g_y . y'' + g_v . v-''

where mu is the gradient by the forces, whose first variation is F. The last two terms are those of displacements and
velocities in the phase before.
"""
import numpy as np
from numba import types

from liedyn.linear.second.motion_states import WeighedMotion, of_states
from liedyn.machine.compiled.by_address import contents
from liedyn.machine.compiled.jit import MATRIX, inline, inline_array, kernel, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.tree.rnea_hessian import rnea_hessian_kernel, rnea_hessian_size
from liedyn.model.packed import PackedModel
from liedyn.model.packed_records import MODEL
from liedyn.motion.step_curvature import CURVATURE_ROOM, put_motion_weights
from liedyn.tasks.planning.element_curvature import Given, element_hessians
from liedyn.tasks.planning.element_forces import PlanElements, has_elements
from liedyn.tasks.planning.local_spaces import STATES
from liedyn.tasks.planning.phase_changes import add_times, coordinates_in, linearize_touch
from liedyn.tasks.planning.phases import touches
from liedyn.tasks.planning.step import DISCRETISATION, STEP_ROOM, owned_in_phase


@late(CURVATURE_ROOM, types.int64)
def stop_all(c, knots):
    """No weights of motions but those of costs at the knots: which ones steps have depends on their phases."""
    c = contents(c)
    for b in range(c.nu.shape[0]):
        for i in range(c.nu.shape[1]):
            c.nu[b, i] = 0.0
        for i in range(c.motion.v.shape[1]):
            c.motion.a[b, i] = 0.0
            if b >= knots:
                c.motion.v[b, i] = 0.0


@inline_array
def rows_of(states, first, last):
    """The states from `first` to `last`."""
    return State(states.q[first:last], states.v[first:last], states.tau[first:last], states.f_ext[first:last])


@inline
def entry(e, i, x):
    """The place of a phase's coordinate, velocity or input i among those of the tree, x of them without inputs."""
    return e.entries[i] if i < e.entries.size else x + i - e.entries.size


@inline
def add_whole(e, own, x, H):
    """H += the Hessian of a phase by all of x and the inputs, from that by its own coordinates."""
    for i in range(own.shape[0]):
        for j in range(own.shape[1]):
            H[entry(e, i, x), entry(e, j, x)] += own[i, j]


@late(MODEL, DISCRETISATION, STATES, types.UniTuple(types.int64, 3), CURVATURE_ROOM, returns=types.boolean)
@kernel
def phase_hessians(model, d, states, rows, c):
    """c.H of the steps among the rows from `begin` to `end`, phase by phase, after `put_stage_weights`; False if one
    has none.

    rows = (knots, begin, end), as for `linearize_phases`.
    """
    c, (knots, row, end), n, nu = contents(c), rows, states.v.shape[1], d.actuators.shape[1]
    while row < end:
        k = row % knots
        closed, e = owned_in_phase(model, d, k)
        last = row + 1
        while last < end and d.phases.of_knot[last % knots] == d.phases.of_knot[k]:
            last += 1
        steps = last - row - (1 if touches(d, (last - 1) % knots) else 0)
        put_motion_weights(e, row, row + steps, c)
        part, size = rows_of(states, row, row + steps), e.entries.size + nu
        weights = WeighedMotion(
            c.motion.q[row:row + steps], c.motion.v[row:row + steps], c.motion.a[row:row + steps])
        H, done = np.empty((steps, size, size)), np.ones(steps, np.int64)
        if has_elements(d):
            elements = contents(d.elements)
            own = PlanElements(elements.model, elements.laws, elements.work, elements.u[row:row + steps])
            given = Given(coordinates_in(n, e), d.actuators, d.rank_tolerance, weights)
            element_hessians(0, steps, closed, part, given, own, H, done)
        else:
            of_states(0, steps, closed, part, coordinates_in(n, e), d.actuators, weights, d.rank_tolerance, H, done)
        for b in range(steps):
            if done[b] == 0:
                return False
            c.H[row + b, :, :] = 0.0
            add_whole(e, H[b], 2 * n, c.H[row + b])
        row = last
    return True


@inline_array
def one_row(x):
    """A vector as a matrix with one row."""
    return x.reshape((1, x.size))


@inline_array
def motion_of(model, state, e, weights, tolerance, inputs):
    """The Hessian of a weighted motion of one state by the coordinates of a phase, and 1 if there is one."""
    n, size, done = state.v.shape[1], e.entries.size + inputs, np.ones(1, np.int64)
    H, actuators = np.empty((1, size, size)), np.eye(n)[:, :inputs].copy()
    of_states(0, 1, model, state, coordinates_in(n, e), actuators, weights, tolerance, H, done)
    return H[0], done[0]


@inline
def add_square_of(Z, H, scratch, out):
    """out += Z^T H Z; `scratch` is as Z."""
    scratch[:, :] = 0.0
    add_times(H, Z, scratch)
    add_times(Z.T, scratch, out)


@late(MODEL, DISCRETISATION, STEP_ROOM, STATES, types.int64, types.UniTuple(MATRIX, 2), CURVATURE_ROOM,
      returns=types.boolean)
@kernel
def put_touch_hessian(model, d, scratch, states, k, motions, c):
    """c.total = the Hessian of the phase change after knot k by x, for weights c.costate of its end; False if it has
    none."""
    c, n, before = contents(c), states.v.shape[1], rows_of(states, k, k + 1)
    after, found, by_q, M, Y, dq, forces = linearize_touch(
        model, d, scratch, k, (before.q[0], before.v[0]), motions)
    if found.rank[0] < 0:
        return False
    closed, e = owned_in_phase(model, d, k + 1)
    at_rest, p, w, zero = PackedModel(closed.ints, d.phases.rest), e.places.size, e.speeds.size, np.zeros(n)
    of_a, mu, on_q, of_y, of_q, of_v = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(p), np.zeros(n), np.zeros(n)
    for i in range(w):
        x = c.costate[e.entries[p + i]]
        of_a[e.speeds[i]] = x
        for j in range(n):
            mu[j] += x * found.B[0, p + i, j]
        for j in range(p):
            of_y[j] += x * found.A[0, p + i, j]
    for i in range(n):
        of_q[i], of_v[i] = c.motion.q[k, i], c.motion.v[k, i]  # of its cost
        for j in range(n):
            on_q[i] += by_q[j, i] * mu[j]
            of_v[i] += M[i, j] * mu[j]
    for i in range(p):
        of_y[i] += c.costate[e.entries[i]]
        for j in range(n):
            of_y[i] += found.K[0, j, i] * on_q[j]
        of_q[e.places[i]] += of_y[i]
    # the acceleration by y and forces, at constant velocities
    G, done = motion_of(at_rest, after, e, WeighedMotion(one_row(on_q), one_row(zero), one_row(of_a)),
                        d.rank_tolerance, n)
    Z, H, X = np.zeros((p + w + n, 2 * n)), np.zeros((2 * n, 2 * n)), motions[1][:n]
    Z[:p], Z[p + w:] = Y, forces
    add_square_of(Z, G, np.empty((p + w + n, 2 * n)), H)
    # the forces by q and v-
    work, qq, vv, qv, qa = (np.empty(rnea_hessian_size(model)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)),
                            np.empty((n, n)))
    rnea_hessian_kernel(SCALAR, at_rest, after.q[0], zero, before.v[0], mu, scratch.f_ext, work, qq, vv, qv, qa)
    add_square_of(dq, qq, np.empty((n, 2 * n)), H)
    along, mixed = np.zeros((n, 2 * n)), np.zeros((2 * n, 2 * n))
    add_times(qa, X, along)
    add_times(dq.T, along, mixed)
    # y and v- themselves
    model_before, e_before = owned_in_phase(model, d, k)
    own, done_before = motion_of(model_before, before, e_before,
                                 WeighedMotion(one_row(of_q), one_row(of_v), one_row(zero)), d.rank_tolerance, 0)
    add_whole(e_before, own, 2 * n, H)
    c.total[:, :] = 0.0
    for i in range(2 * n):
        for j in range(2 * n):
            c.total[i, j] = H[i, j] + mixed[i, j] + mixed[j, i]
    return done == 1 and done_before == 1
