"""One step of the discretised motion, with its exact derivatives, in independent coordinates of the tree.

The state is x = (y, w): coordinates y that all constraints leave, and their rates w, both picked from those of the
tree. A step starts at (q, w), moves along the manifold q(u) of configurations whose picked coordinates are u away from
q, and holds the input. With wdot = f(q, w, input) from the null space (`liedyn.linearization.local`),

    EULER (semi-implicit)   w' = w + h f(q, w)                            q' = q(h w')
    MIDPOINT                w_m = w + h/2 f(q, w), q_m = q(h/2 w)         w' = w + h f(q_m, w_m), q' = q(h w_m)
    RK4                     the classical method, as in `liedyn.linearization.steps`

Coordinates of balls and free joints move by the exponential of their group. A variation eta of y, body-fixed, is after
a displacement u the variation Ad_{exp -u} eta + dexp_{-u} du, joint by joint; the first two methods need no more than
that. Variations of f are the lower rows of A and B of the local state space, those of the coordinates are exact sums.
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, kernel_in_place, late
from liedyn.constraints.elimination import elimination_size
from liedyn.dynamics.nullspace import OK, acceleration_kernel, acceleration_size
from liedyn.dynamics.state import State
from liedyn.lie.algebra import Ad, neg, neg6, rotate
from liedyn.lie.exponential import exp, left_jacobian, so3_exp, so3_left_jacobian
from liedyn.linalg.gauss_jordan import padded
from liedyn.linearization.local import linearize_in_place, linearize_size, new_space
from liedyn.linearization.space import COORDINATES, SPACE, Coordinates
from liedyn.linearization.steps import Stage, put_stage
from liedyn.model.packed import N_ROWS, NQ, NV
from liedyn.simd.lanes import SCALAR
from liedyn.tree.kinematics import world_size
from liedyn.tree.records import MODEL

EULER, MIDPOINT, RK4 = 1, 2, 4
"""Methods, by the number of their stages."""

Discretisation = namedtuple("Discretisation", "method h places groups coordinates actuators rank_tolerance")
"""How steps are made: `places` (p) are the degrees of freedom that y picks; `groups` (count, 2) says which of them, by
the first one and their number, belong to one ball or free joint."""

StepRoom = namedtuple("StepRoom", "stage space work solve q v a lam tau f_ext u w k dk d_sum sum eta d_w")
"""Room to work in. `k` (2, p) and `dk` (2 p, z) are the rates of the last stage and their derivatives by z = (y, w,
input); `sum` and `d_sum` add up those of the stages; `eta` and `d_w` are variations of a stage."""

DISCRETISATION = group(Discretisation, types.int64, types.float64, INTEGERS, types.int64[:, ::1], COORDINATES, MATRIX,
                       types.float64)
STEP_ROOM = group(StepRoom, group(Stage, *[VECTOR] * 4, MATRIX, *[VECTOR] * 4), SPACE, *[VECTOR] * 10,
                  MATRIX, MATRIX, MATRIX, VECTOR, MATRIX, MATRIX)

accelerate = late(MODEL, *[VECTOR] * 4, types.float64, *[VECTOR] * 3,
                  returns=types.Tuple((types.int64, types.int64, types.float64)))(acceleration_kernel)


@kernel
def step_room(model, p, nu):
    """`StepRoom` for p coordinates and nu inputs."""
    n, m, nq, x = model.ints[NV], model.ints[N_ROWS], model.ints[NQ], 2 * p
    stage = Stage(np.empty(nq), np.empty(n), np.empty(n), np.empty(world_size(model)), np.empty((m, n)), np.empty(m),
                  np.empty(m), np.empty(elimination_size(SCALAR, model)), np.zeros(padded(n)))
    return StepRoom(stage, new_space(model, p, p, nu), np.empty(linearize_size(model, p, p, nu)),
                    np.empty(acceleration_size(model)), np.empty(nq), np.empty(n), np.empty(n), np.empty(m),
                    np.empty(n), np.empty(0), np.empty(p), np.empty(p), np.zeros((2, p)), np.zeros((x, x + nu)),
                    np.zeros((x, x + nu)), np.zeros(x), np.zeros((p, x + nu)), np.zeros((p, x + nu)))


@kernel_in_place
def put_forces(actuators, u, tau):
    """tau = S u."""
    for j in range(tau.size):
        x = 0.0
        for c in range(u.size):
            x += actuators[j, c] * u[c]
        tau[j] = x


@inline
def carry_columns(group_size, u, k, Z, D):
    """Rows of one ball or free joint, from row k on: Ad_{exp -u} Z + dexp_{-u} D, into Z."""
    if group_size == 3:
        w = neg((u[k], u[k + 1], u[k + 2]))
        R, J = so3_exp(w), so3_left_jacobian(w)
        for j in range(Z.shape[1]):
            a = rotate(R, (Z[k, j], Z[k + 1, j], Z[k + 2, j]))
            b = rotate(J, (D[k, j], D[k + 1, j], D[k + 2, j]))
            for i in range(3):
                Z[k + i, j] = a[i] + b[i]
        return
    V = neg6(((u[k], u[k + 1], u[k + 2]), (u[k + 3], u[k + 4], u[k + 5])))
    X, (J, C) = exp(V), left_jacobian(V)
    for j in range(Z.shape[1]):
        a = Ad(X, ((Z[k, j], Z[k + 1, j], Z[k + 2, j]), (Z[k + 3, j], Z[k + 4, j], Z[k + 5, j])))
        w, v = (D[k, j], D[k + 1, j], D[k + 2, j]), (D[k + 3, j], D[k + 4, j], D[k + 5, j])
        Jw, Jv, Cw = rotate(J, w), rotate(J, v), rotate(C, w)
        for i in range(3):
            Z[k + i, j] = a[0][i] + Jw[i]
            Z[k + 3 + i, j] = a[1][i] + Jv[i] + Cw[i]


@inline
def put_variation(d, u, D, Z):
    """Z (p, z) = the variation of y after a displacement u that varies by D."""
    p = Z.shape[0]
    for i in range(p):
        for j in range(Z.shape[1]):
            Z[i, j] = 1.0 if i == j else 0.0
    for g in range(d.groups.shape[0]):
        carry_columns(d.groups[g, 1], u, d.groups[g, 0], Z, D)
    g, end = 0, -1
    for i in range(p):
        if g < d.groups.shape[0] and i == d.groups[g, 0]:
            end = i + d.groups[g, 1]
            g += 1
        if i >= end:
            for j in range(Z.shape[1]):
                Z[i, j] += D[i, j]


@inline
def vary_rates(d, r, first):
    """dk = (variation of w, that of f) at a stage; eta and d_w are variations of its y and w."""
    p, z = r.eta.shape
    for i in range(p):
        for j in range(z):
            r.dk[i, j] = r.d_w[i, j]
            r.dk[p + i, j] = r.space.B[p + i, j - 2 * p] if j >= 2 * p else 0.0
    if first:  # eta and d_w are rows of the identity
        for i in range(p):
            for j in range(2 * p):
                r.dk[p + i, j] = r.space.A[p + i, j]
        return
    for i in range(p):
        for l in range(p):
            x, y = r.space.A[p + i, l], r.space.A[p + i, p + l]
            for j in range(z):
                r.dk[p + i, j] += x * r.eta[l, j] + y * r.d_w[l, j]


@inline
def put_stage_variations(d, r, c_h, first):
    """eta and d_w of a stage that lies c_h rates of the last one away from the start."""
    p, z = r.eta.shape
    for i in range(p):
        for j in range(z):
            r.d_w[i, j] = (1.0 if j == p + i else 0.0) + (0.0 if first else c_h * r.dk[p + i, j])
    if first:
        return
    for i in range(p):
        for j in range(z):
            r.dk[i, j] *= c_h
    put_variation(d, r.u, r.dk, r.eta)


@inline
def add_stage(r, weight, derivatives):
    """Sums of the rates and of their derivatives."""
    p, z = r.eta.shape
    for i in range(p):
        r.sum[i] += weight * r.k[0, i]
        r.sum[p + i] += weight * r.k[1, i]
    if derivatives:
        for i in range(2 * p):
            for j in range(z):
                r.d_sum[i, j] += weight * r.dk[i, j]


@inline
def stage_rates(model, d, r, q, v, derivatives):
    """k = (w, f) at a state on the manifold, and the local state space if derivatives are wanted; is it regular?"""
    p = d.places.size
    if derivatives:
        status = linearize_in_place(model, State(q, v, r.tau, r.f_ext), d.coordinates, d.actuators, d.rank_tolerance,
                                    r.work, r.space)
        if status[0] != OK or status[3] != OK:
            return False
        for i in range(p):
            r.k[1, i] = r.space.f0[p + i]
    else:
        if accelerate(model, q, v, r.tau, r.f_ext, d.rank_tolerance, r.solve, r.a, r.lam)[0] != OK:
            return False
        for i in range(p):
            r.k[1, i] = r.a[d.places[i]]
    finite = True
    for i in range(p):
        r.k[0, i] = v[d.places[i]]
        finite = finite and abs(r.k[1, i]) < np.inf
    return finite


@late(MODEL, DISCRETISATION, STEP_ROOM, VECTOR, VECTOR, VECTOR, types.boolean, VECTOR, VECTOR, MATRIX, MATRIX,
      MATRIX, MATRIX, returns=types.boolean)
@kernel_in_place
def make_step(model, d, r, q, v, u, derivatives, q_next, v_next, A, B, N, X):
    """(q_next, v_next) after a step from (q, v) under inputs u; False if it leads nowhere.

    With derivatives also A (2p, 2p) and B (2p, nu) of the step, and the motions N and X = [Delta S] at (q, v), padded.
    """
    p, h, stages = d.places.size, d.h, d.method
    put_forces(d.actuators, u, r.tau)
    for i in range(2 * p):
        r.sum[i] = 0.0
    if derivatives:
        for i in range(2 * p):
            for j in range(r.d_sum.shape[1]):
                r.d_sum[i, j] = 0.0
    for i in range(stages):
        c_h = h * (0.0 if i == 0 else 1.0 if i == 3 else 0.5)
        if i == 0:
            if not stage_rates(model, d, r, q, v, derivatives):
                return False
            if derivatives:
                copy(r.space.N, N)
                copy(r.space.X, X)
        else:
            for j in range(p):
                r.u[j], r.w[j] = c_h * r.k[0, j], v[d.places[j]] + c_h * r.k[1, j]
            if not put_stage(model, r.stage, q, r.u, r.w, d.places, d.rank_tolerance):
                return False
            if not stage_rates(model, d, r, r.stage.q, r.stage.v, derivatives):
                return False
        if derivatives:
            put_stage_variations(d, r, c_h, i == 0)
            vary_rates(d, r, i == 0)
        weight = h if stages == 1 or i == 1 and stages == 2 else 0.0 if stages == 2 else (
            h / 6.0 if i == 0 or i == 3 else h / 3.0)
        add_stage(r, weight, derivatives)
    if stages == 1:  # semi-implicit: moved by the new velocities
        for i in range(p):
            r.sum[i] = h * (v[d.places[i]] + r.sum[p + i])
            if derivatives:
                for j in range(r.d_sum.shape[1]):
                    r.d_sum[i, j] = h * ((1.0 if j == p + i else 0.0) + r.d_sum[p + i, j])
    for i in range(p):
        r.u[i], r.w[i] = r.sum[i], v[d.places[i]] + r.sum[p + i]
    if not put_stage(model, r.stage, q, r.u, r.w, d.places, d.rank_tolerance):
        return False
    copy_vector(r.stage.q, q_next)
    copy_vector(r.stage.v, v_next)
    if derivatives:
        put_variation(d, r.u, r.d_sum, r.eta)
        for i in range(p):
            for j in range(2 * p):
                A[i, j] = r.eta[i, j]
                A[p + i, j] = r.d_sum[p + i, j] + (1.0 if j == p + i else 0.0)
            for j in range(B.shape[1]):
                B[i, j] = r.eta[i, 2 * p + j]
                B[p + i, j] = r.d_sum[p + i, 2 * p + j]
    return True


@inline
def copy_vector(x, to):
    """to = x, which slices would copy twice."""
    for i in range(x.size):
        to[i] = x[i]


@inline
def copy(A, to):
    """to = A."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            to[i, j] = A[i, j]


@kernel_in_place
def put_motions(model, d, r, q, v, N, X):
    """N and X = [Delta S] at a state that no step begins from; False if it is singular."""
    for j in range(r.tau.size):
        r.tau[j] = 0.0
    status = linearize_in_place(model, State(q, v, r.tau, r.f_ext), d.coordinates, d.actuators, d.rank_tolerance,
                                r.work, r.space)
    copy(r.space.N, N)
    copy(r.space.X, X)
    return status[0] == OK and status[3] == OK


def coordinates_of(y):
    """`Coordinates` of an `Independent` for positions and velocities alike."""
    return Coordinates(y.rows.copy(), y.virtual.copy(), y.rows.copy(), y.virtual.copy())
