"""Second derivatives of the accelerations in a plan's steps, for robots with force elements.

The equations are those of `liedyn.linear.second.element_loads`, compiled. A weighted sum of accelerations is a
function G of the state and of all generalised forces; with mu = dG/dtau and F = [dtau/dq N + dtau/dv X, dtau/du] the
variation of the forces along the columns (y, w, u),

    [1; F]^T G'' [1; F] + mu . tau''

where G'' has mu . dtau/dq and mu . dtau/dv as weights of displacements and velocities, and tau'' is the second
variation of the elements alone (`liedyn.linear.sensitivity.element_sensitivity`).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.second.hessian import motion_hessian, motion_hessian_size
from liedyn.linear.second.motion_states import WeighedMotion, weights_at
from liedyn.linear.second.weighted_sums import MotionWeights
from liedyn.linear.sensitivity.changes import Changes
from liedyn.linear.sensitivity.element_sensitivity import Acting, element_variations_size, vary_elements
from liedyn.linear.sensitivity.law_sensitivity import Slopes, put_slopes
from liedyn.linear.sensitivity.link_sensitivity import Along, Columns
from liedyn.linear.space import Coordinates
from liedyn.machine.compiled.jit import CUBE, INTEGERS, MATRIX, group, inline, inline_array, kernel, late
from liedyn.machine.linalg.gauss_jordan import at, clear, padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import Motion, State
from liedyn.mechanics.elements.element_wrenches import in_axes_of_a
from liedyn.mechanics.elements.forces import add_derivatives, add_driven, give_inputs, row_count, taken
from liedyn.model.force_elements import NUMBERS, ROW
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, get6, put6
from liedyn.tasks.planning.element_forces import ELEMENTS
from liedyn.tasks.planning.local_spaces import STATES
from liedyn.tasks.planning.step import COORDINATES

Given = namedtuple("Given", "coordinates actuators tolerance weights")
"""Coordinates and actuators of all states, the tolerance of ranks, and `WeighedMotion` of one state or all."""

GIVEN = group(Given, COORDINATES, MATRIX, types.float64, group(WeighedMotion, *[MATRIX] * 3))

OneState = namedtuple("OneState", "mu on_q on_v by_q by_v F G R")
"""mu and the weights of displacements and velocities (nv); dtau/dq and dtau/dv (nv, nv); F (nv, z); G'' by (y, w, tau),
(x + nv, x + nv), and its product with [1; F]."""

Bends = namedtuple("Bends", "along slopes pushed changes work force mixed")
"""What the second variations of force elements take: directions, `Slopes` of the laws, effects of one input on the
rows; no changes of parameters; scratch, and the results (nv, padded)."""


@inline_array
def one_state(n, x, z):
    return OneState(np.empty(n), np.empty(n), np.empty(n), np.empty((n, n)), np.empty((n, n)), np.empty((n, z)),
                    np.empty((x + n, x + n)), np.empty((x + n, z)))


@inline_array
def bends_of(model, laws, n, x):
    rows, numbers, columns = model.ints[N_ROWS], laws.numbers.size, padded(x)
    one = Columns(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(0))
    two = Columns(np.zeros((n, columns)), np.zeros((n, columns)), np.zeros((n, columns)), np.zeros((0, columns)))
    slopes = Slopes(np.zeros((rows, 6)), np.zeros((numbers, 3)), np.full(numbers, -1), laws.cuts, laws.records,
                    laws.numbers)
    changes = Changes(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(1))
    return Bends(Along(one, two, np.zeros((n, columns)), np.zeros((n, columns))), slopes, np.zeros(rows), changes,
                 np.empty(element_variations_size(model, numbers)), np.empty((n, columns)), np.empty((n, columns)))


@inline
def put_weights(s, weights, space, x):
    """mu, and the weights of displacements and velocities, with those that the forces of the elements give."""
    n = s.mu.size
    for j in range(n):
        s.mu[j] = 0.0
        for i in range(n):
            s.mu[j] += weights.a[i] * at(space.da, i, x + j)
    for j in range(n):
        s.on_q[j], s.on_v[j] = weights.q[j], weights.v[j]
        for i in range(n):
            s.on_q[j] += s.by_q[i, j] * s.mu[i]
            s.on_v[j] += s.by_v[i, j] * s.mu[i]


@inline
def put_state_columns(s, space, p_y, x):
    """The columns of F that belong to the state."""
    n = s.mu.size
    for i in range(n):
        for j in range(x):
            total = 0.0
            for l in range(n):
                total += s.by_v[i, l] * at(space.X, l, j)
                if j < p_y:
                    total += s.by_q[i, l] * at(space.N, l, j)
            s.F[i, j] = total


@inline
def put_closed(s, x, H):
    """H = [1; F]^T G'' [1; F]."""
    n, z = s.F.shape
    for i in range(x + n):
        for j in range(z):
            total = s.G[i, j] if j < x else 0.0
            for l in range(n):
                total += s.G[i, x + l] * s.F[l, j]
            s.R[i, j] = total
    for i in range(z):
        for j in range(z):
            total = s.R[i, j] if i < x else 0.0
            for l in range(n):
                total += s.F[l, i] * s.R[x + l, j]
            H[i, j] = total


@inline
def put_pushed(laws, displaced, c, pushed):
    """What a unit of input c adds to the rows of the elements; needs their displacements."""
    for r in range(pushed.size):
        pushed[r] = 0.0
    for k in range(laws.inputs.shape[0]):
        if laws.inputs[k, 0] == c:
            e = laws.inputs[k, 1]
            r = laws.records[e, ROW]
            if row_count(laws, e) == 6:
                m, F = in_axes_of_a(laws, e, get6(SCALAR, displaced, r), get6(
                    SCALAR, laws.numbers, laws.records[e, NUMBERS]))
                put6(SCALAR, pushed, r, ((-m[0], -m[1], -m[2]), (-F[0], -F[1], -F[2])))
            else:
                pushed[r] = -laws.numbers[laws.inputs[k, 2] - 1]


@inline
def subtract_bends(elements, displaced, state, space, s, bends, sizes, H):
    """H += mu . tau'', symmetric, along all columns and those of the state; `sizes` are those of y and of the state."""
    one, two, (p_y, x) = bends.along.one, bends.along.two, sizes
    n, z = s.F.shape
    for j in range(n):
        for k in range(x):
            two.N[j, k] = at(space.N, j, k) if k < p_y else 0.0
            two.X[j, k] = at(space.X, j, k)
    for c in range(z):
        for j in range(n):
            one.N[j] = two.N[j, c] if c < x else 0.0
            one.X[j] = two.X[j, c] if c < x else 0.0
        put_pushed(elements.laws, displaced, c - x, bends.pushed)
        clear(bends.force)
        clear(bends.mixed)
        vary_elements(elements.model, bends.changes, Acting(bends.slopes, bends.pushed),
                      Motion(state.q, state.v, one.A, one.L), bends.along, bends.work, (bends.force, bends.mixed))
        for k in range(x):
            total = 0.0
            for i in range(n):
                total += s.mu[i] * bends.mixed[i, k]
            total *= 0.5 if c < x else 1.0
            H[c, k] -= total
            H[k, c] -= total


@late(types.int64, types.int64, MODEL, STATES, GIVEN, ELEMENTS, CUBE, INTEGERS)
@kernel
def element_hessians(begin, end, model, states, given, elements, H, done):
    """Rows of H (z, z): Hessians of weighted accelerations by (y, w, u) with force elements, whose inputs are those of
    these rows and whose forces are in tau. `done` becomes 1 where there is one, 0 where the state is singular."""
    R_y, virtual_y, R_w, virtual_w = given.coordinates
    p_y, p_w, nu, n = virtual_y.size, virtual_w.size, given.actuators.shape[1], model.ints[NV]
    x, columns, laws = p_y + p_w, padded(p_y + p_w + n), elements.laws
    lower, moved, space = np.empty((p_w, columns)), np.empty((n, columns)), new_space(model, p_y, p_w, n)
    own, work = np.empty(linearize_size(model, p_y, p_w, n)), np.empty(motion_hessian_size(model, p_y, p_w, n))
    still, reads, every, inputs = np.zeros(n), np.zeros(model.ints[N_VIRTUAL]), np.eye(n), np.eye(nu)
    s, bends, S = one_state(n, x, x + nu), bends_of(elements.model, laws, n, x), np.empty((n, nu))
    for b in range(begin, end):
        chosen = Coordinates(R_y[min(b, R_y.shape[0] - 1)], virtual_y, R_w[min(b, R_w.shape[0] - 1)], virtual_w)
        state = State(states.q[b], states.v[b], states.tau[b], states.f_ext[b])
        found = linearize_in_place(model, state, chosen, every, given.tolerance, own, space)
        done[b] = 1 if found[0] == OK and found[3] == OK else 0
        if done[b] == 0:
            continue
        complete_derivatives(SCALAR, p_y, every, space, lower, moved)
        give_inputs(laws, elements.u[b])
        s.by_q[:, :], s.by_v[:, :], S[:, :] = 0.0, 0.0, given.actuators
        add_derivatives(elements.model, laws, elements.work, 0.0, state.q, state.v, False, s.by_q, s.by_v)
        add_driven(elements.model, laws, elements.work, inputs, S)
        measured = taken(elements.model, elements.work)
        put_slopes(laws, 0.0, measured.x, measured.w, measured.out, bends.slopes)
        weights = weights_at(given.weights, b)
        put_weights(s, weights, space, x)
        put_state_columns(s, space, p_y, x)
        s.F[:, x:] = S
        motion_hessian(model, state, chosen, MotionWeights(s.on_q, s.on_v, weights.a, still, reads, reads),
                       own[first_place(own):], work, space, s.G)
        put_closed(s, x, H[b])
        subtract_bends(elements, measured.x, state, space, s, bends, (p_y, x), H[b])
