"""Hessians of weighted motions at rows of states: one workspace per thread."""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.second.hessian import motion_hessian, motion_hessian_size
from liedyn.linear.second.weighted_sums import MotionWeights
from liedyn.linear.space import Coordinates
from liedyn.machine.compiled.jit import CUBE, INTEGERS, MATRIX, group, inline_array, late
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.batches import batch
from liedyn.model.packed import NV, N_VIRTUAL
from liedyn.model.packed_records import MODEL

WeighedMotion = namedtuple("WeighedMotion", "q v a")
"""Weights (states, nv) of displacements in the exponential's chart, of velocities and of accelerations; one row stands
for all states."""


@inline_array
def weights_at(weights, b):
    """The weights of state b."""
    q, v, a = weights
    return WeighedMotion(q[min(b, q.shape[0] - 1)], v[min(b, v.shape[0] - 1)], a[min(b, a.shape[0] - 1)])


@batch
def motion_states(begin, end, model, states, coordinates, actuators, weights, tolerance, H, done):
    """H (states, x + nu, x + nu): Hessians of weights.q . d + weights.v . v + weights.a . a by (y, w, u).

    `done` (states,) is 1 where a state has one, 0 where it is singular.
    """
    R_y, virtual_y, R_w, virtual_w = coordinates
    p_y, p_w, nu, n = virtual_y.size, virtual_w.size, actuators.shape[1], model.ints[NV]
    columns = padded(p_y + p_w + nu)
    lower, moved, space = np.empty((p_w, columns)), np.empty((n, columns)), new_space(model, p_y, p_w, nu)
    solved, work = np.empty(linearize_size(model, p_y, p_w, nu)), np.empty(motion_hessian_size(model, p_y, p_w, nu))
    still, reads = np.zeros(n), np.zeros(model.ints[N_VIRTUAL])
    for b in range(begin, end):
        chosen = Coordinates(R_y[min(b, R_y.shape[0] - 1)], virtual_y, R_w[min(b, R_w.shape[0] - 1)], virtual_w)
        state = State(states.q[b], states.v[b], states.tau[b], states.f_ext[b])
        found = linearize_in_place(model, state, chosen, actuators, tolerance, solved, space)
        done[b] = 1 if found[0] == OK and found[3] == OK else 0
        if done[b] == 0:
            continue
        complete_derivatives(SCALAR, p_y, actuators, space, lower, moved)
        own = weights_at(weights, b)
        given = MotionWeights(own.q, own.v, own.a, still, reads, reads)
        motion_hessian(model, state, chosen, given, solved[first_place(solved):], work, space, H[b])


of_states = late(types.int64, types.int64, MODEL, group(State, *[MATRIX] * 4), group(
    Coordinates, CUBE, INTEGERS, CUBE, INTEGERS), MATRIX, group(WeighedMotion, *[MATRIX] * 3), types.float64, CUBE,
    INTEGERS)(motion_states.kernel)
