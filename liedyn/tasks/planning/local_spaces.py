"""Local state spaces along a plan one by one, also for robots with force elements.

The forces tau(q, v, u) of elements and inputs have known derivatives (`liedyn.mechanics.elements.forces`). A local
state space with all generalised forces as inputs, B_tau, and the motions N and X of coordinates and velocities
gives

    A + B_tau (dtau/dq [N 0] + dtau/dv X)        B = B_tau dtau/du
"""
import numpy as np
from numba import types

from liedyn.linear.linearize_states import Found, Request, Tolerances, linearize_states
from liedyn.machine.compiled.jit import CUBE, MATRIX, VECTOR, group, inline_array, kernel, late
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.elements.forces import add_derivatives, add_driven, give_inputs
from liedyn.model.packed_records import MODEL
from liedyn.tasks.planning.element_forces import ELEMENTS
from liedyn.tasks.planning.step import COORDINATES

FOUND = group(Found, *[CUBE] * 4, MATRIX, *[CUBE] * 2, *[MATRIX] * 3, types.int64[::1], *[VECTOR] * 3)
STATES, OUTPUTS, TOLERANCES = (
    group(State, *[MATRIX] * 4), types.int64[:, ::1], group(Tolerances, *[types.float64] * 2))
BATCH = (types.int64, types.int64, MODEL, STATES, group(Request, COORDINATES, MATRIX, OUTPUTS, TOLERANCES), FOUND)
one_by_one = late(*BATCH)(linearize_states.kernel)


@inline_array
def room_in(count, n, m, p_y, p_w, nu, outputs):
    """`Found` for `count` states."""
    x = p_y + p_w
    return Found(np.empty((count, x, x)), np.empty((count, x, nu)), np.empty((count, outputs, x)),
                 np.empty((count, outputs, nu)), np.empty((count, x)), np.empty((count, n, p_y)),
                 np.empty((count, n, p_w)), np.empty((count, n)), np.empty((count, n)), np.empty((count, m)),
                 np.full(count, -1, np.int64), np.empty(count), np.empty(count), np.empty(count))


@late(*BATCH, ELEMENTS, types.int64)
@kernel
def linearize_with_elements(begin, end, model, states, request, found, elements, first):
    """As `one_by_one`, with force elements; the inputs of row b are elements.u[first + b], its generalised forces are
    complete.

    The first outputs are the velocities, which do not depend on forces. A row whose numbers overflow has no rank.
    """
    coordinates, actuators, outputs, tolerances = request
    n, nu = states.v.shape[1], actuators.shape[1]
    count, x, p = states.q.shape[0], found.A.shape[1], found.K.shape[2]
    of_forces = Found(found.A, np.empty((count, x, n)), found.C, np.empty((count, outputs.shape[0], n)), *found[4:])
    one_by_one(begin, end, model, states, Request(coordinates, np.eye(n), outputs, tolerances), of_forces)
    by_q, by_v, S, every, F = np.empty((n, n)), np.empty((n, n)), np.empty((n, nu)), np.eye(nu), np.empty((n, x))
    for b in range(begin, end):
        if found.rank[b] < 0:
            return
        by_q[:, :], by_v[:, :], S[:, :] = 0.0, 0.0, actuators
        give_inputs(elements.laws, elements.u[first + b])
        add_derivatives(elements.model, elements.laws, elements.work, 0.0, states.q[b], states.v[b], False, by_q, by_v)
        add_driven(elements.model, elements.laws, elements.work, every, S)
        finite = True
        for i in range(n):
            for j in range(x):
                s = 0.0
                for l in range(n):
                    s += by_v[i, l] * found.C[b, l, j]
                    if j < p:
                        s += by_q[i, l] * found.K[b, l, j]
                F[i, j] = s
                finite = finite and abs(s) < np.inf
        for i in range(x):
            finite = finite and abs(found.f0[b, i]) < np.inf
            for j in range(nu):
                s = 0.0
                for l in range(n):
                    s += of_forces.B[b, i, l] * S[l, j]
                found.B[b, i, j] = s
            for l in range(n):
                s = of_forces.B[b, i, l]
                for j in range(x if s != 0.0 else 0):
                    found.A[b, i, j] += s * F[l, j]
        for r in range(n, outputs.shape[0]):
            for l in range(n):
                s = of_forces.D[b, r, l]
                for j in range(x if s != 0.0 else 0):
                    found.C[b, r, j] += s * F[l, j]
            for j in range(nu):
                found.D[b, r, j] = 0.0
                for l in range(n):
                    found.D[b, r, j] += of_forces.D[b, r, l] * S[l, j]
        if not finite:
            found.rank[b] = -1
            return
