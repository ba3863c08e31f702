"""Explicit steps in independent coordinates of the tree, and their derivatives, compiled.

They are for `discretize`, where the coordinates belong to R^n, and for plans (`liedyn.tasks.planning.step`).

At each stage the dependent coordinates and velocities follow from the independent ones by Newton's method on the
constraints, and the local state space there gives the rates f_i = (w, wdot) and their derivatives [A_i B_i]. The chain
rule along the stages is

    df_i = A_i (eta_i, dw_i) + B_i du

where dw_i = dw + c h df_(i-1), and eta_i is the variation of the coordinates at a displacement c h w_(i-1) from the
start: a body-fixed variation eta of y becomes, after a displacement u, Ad_{exp -u} eta + dexp_{-u} du, joint by joint.
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.lie.slopes import carry_rows
from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, add_row, at, clear, padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import copy_row
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.mechanics.constraints.elimination import (
    dependence, dependent_dofs, eliminate, elimination_size, independent_dofs,
)
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.picked import picks
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size, world_velocities
from liedyn.model.calls.batches import batch
from liedyn.model.packed import NQ, NV, N_ROWS, PackedModel
from liedyn.motion.runge_kutta import RK4

EULER, MIDPOINT, CLASSICAL = 1, 2, 4
"""Methods, by their number of stages."""
TIMES, WEIGHTS = (tuple(each.tolist()) for each in (RK4[:-1].sum(axis=1), RK4[-1]))
NEWTON_STEPS, CONVERGED = 20, 1e-13
"""Newton's method doubles the digits of a stage in each step; the initial guess has a few. A step below CONVERGED means
that the next one would be below double precision."""

Steps = namedtuple("Steps", "A B q v done")
"""Results, a row for each state: derivatives by state and inputs, state at the end of the step, 1 if it was made."""

OneStep = namedtuple("OneStep", "method h groups places speeds entries")
"""A method and the length of its steps; for each ball or free joint, (groups, 2), its first entry in x and their
number; degrees of freedom of y and w, and their entries in x."""

Stages = namedtuple("Stages", "f0 A B C")
"""Local state spaces at the stages, stage by stage, each for all knots; C begins with X if w are fewer than y."""

VariationRoom = namedtuple("VariationRoom", "found u w x eta dw df moved sum_w sum_f")
"""`Stages`; a displacement u with the velocities w there, and the sum x of rates. Padded (p, z), by z = (y, w, input):
derivatives of the coordinates, of the rates (w, wdot) of a stage, of the displacement of the next one, and of the sum
of rates."""

Stage = namedtuple("Stage", "q v change world G residual gamma e choosable")
"""The state of a stage; the displacement from the beginning of the step; terms of the constraints and the elimination;
1 for dependent coordinates."""


@inline
def solve_dependent(model, s, gamma, rank_tolerance):
    """Eliminate the rows of s.G for right sides gamma; False if they do not determine all dependent coordinates."""
    rank, _, complete = eliminate(model, s.G, gamma, s.choosable, rank_tolerance, s.e)
    free = 0.0
    for j in range(s.choosable.size):
        free += s.choosable[j]
    return complete and rank == int(free)


@inline
def largest_coordinate(q):
    """The largest |q_j|, at least 1, as the scale of comparisons."""
    size = 1.0
    for j in range(q.size):
        size = max(size, abs(q[j]))
    return size


@inline
def step_along_tangent(model, s, q_0, u, places, rank_tolerance):
    """s.q = q_0 moved by u along the tangent, dependent coordinates included; returns the size of that step."""
    n, m, p = model.ints[NV], model.ints[N_ROWS], places.size
    for j in range(n):
        s.change[j] = 0.0
    for k in range(p):
        s.change[places[k]] = u[k]
    if m > 0:
        world_positions(SCALAR, model, q_0, s.world)
        jacobian_rows(model, q_0, s.world, s.G)
        for i in range(m):
            s.gamma[i] = 0.0
        if not solve_dependent(model, s, s.gamma, rank_tolerance):
            return np.inf
        for k in range(p):
            s.v[places[k]] = u[k]
        complete_velocities(model, s, p)
        for j in range(n):
            s.change[j] = s.v[j]
    integrate_kernel(model, q_0, s.change, s.q)
    size = 0.0
    for j in range(n):
        size = max(size, abs(s.change[j]))
    return size


@kernel_in_place
def put_stage(model, s, q_0, u, w, places, rank_tolerance):
    """The state on the manifold with coordinates u away from q_0 and velocities w, at the indices `places`.

    Returns False if Newton's method does not converge, or not to the solution next to the tangent: each correction has
    to be at most half as large as the one before it, and the first one at most as large as the step along the tangent.
    """
    n, m = model.ints[NV], model.ints[N_ROWS]
    largest = step_along_tangent(model, s, q_0, u, places, rank_tolerance)
    if not largest < np.inf:
        return False
    for _ in range(NEWTON_STEPS if m > 0 else 0):
        world_positions(SCALAR, model, s.q, s.world)
        residual_rows(model, s.q, s.world, s.residual)
        jacobian_rows(model, s.q, s.world, s.G)
        if largest <= CONVERGED * largest_coordinate(s.q):
            break
        for i in range(m):
            s.gamma[i] = -s.residual[i]
        if not solve_dependent(model, s, s.gamma, rank_tolerance):
            return False
        dependent, forced = dependent_dofs(model, s.e)[0], dependence(SCALAR, model, s.e, places.size)[1]
        before, largest = largest, 0.0
        for j in range(n):
            s.change[j] = 0.0
        for k in range(n - places.size):
            s.change[dependent[k]] = forced[k]
            largest = max(largest, abs(forced[k]))
        integrate_kernel(model, s.q, s.change, s.q)
        if not (largest <= 0.5 * before or largest <= CONVERGED * largest_coordinate(s.q)):
            return False
    for j in range(n):
        s.v[j] = 0.0
    for k in range(places.size):
        s.v[places[k]] = w[k]
    if m == 0:
        return True
    if not largest <= CONVERGED * largest_coordinate(s.q):
        return False
    put_velocities(model, s, places.size)
    return solve_dependent(model, s, s.gamma, rank_tolerance) and complete_velocities(model, s, places.size)


@inline
def put_velocities(model, s, p):
    """s.gamma = b of G v = b: the velocities that moving constraints force."""
    for j in range(s.change.size):
        s.change[j] = 0.0
    world_velocities(SCALAR, model, s.change, s.world)
    velocity_rows(model, s.q, s.change, s.world, s.gamma)
    for i in range(s.gamma.size):
        s.gamma[i] = -s.gamma[i]


@inline
def complete_velocities(model, s, p):
    """The dependent velocities in s.v from the independent ones in s.v."""
    dependent, independent = dependent_dofs(model, s.e)[0], independent_dofs(model, s.e)[0]
    slopes, forced = dependence(SCALAR, model, s.e, p)
    for k in range(s.v.size - p):
        x = forced[k]
        for c in range(p):
            x += at(slopes, k, c) * s.v[independent[c]]
        s.v[dependent[k]] = x
    return True


# ---- the step and its derivative


@inline
def stage_time(i, h):
    """Time of stage i relative to the beginning of the step, for all methods."""
    return h * TIMES[i]


@inline
def stage_weight(method, i, h):
    """Weight of the rates of stage i, times h."""
    if method == CLASSICAL:
        return h * WEIGHTS[i]
    return h if i == method - 1 else 0.0


@inline
def put_displacement(d, v, x):
    """x = sum of rates becomes u and the change of w, for a whole step from velocities v."""
    p = d.places.size
    for i in range(p if d.method == EULER else 0):  # semi-implicit: the displacement uses the new velocities
        x[d.entries[i]] = d.h * (v[d.places[i]] + x[d.entries[p + i]])


@inline
def put_coordinates(d, r, v, x, part):
    """r.u and r.w at the fraction `part` of x = (u, change of w) from a state with velocities v."""
    p = d.places.size
    for i in range(p):
        r.u[i] = part * x[d.entries[i]]
    for i in range(d.speeds.size):
        r.w[i] = v[d.speeds[i]] + part * x[d.entries[p + i]]


@late(types.int64[:, ::1], VECTOR, MATRIX, MATRIX)
def carry_groups(groups, u, D, Z):
    """The rows of Z of ball and free joints, for `put_variation`."""
    for g in range(groups.shape[0]):
        carry_rows(groups[g, 1], u, groups[g, 0], Z, D)


@inline
def put_variation(d, u, D, Z):
    """Z (p, z) = the variation of y after a displacement u that varies by D."""
    p = Z.shape[0]
    clear(Z)
    for i in range(p):
        Z[i, i] = 1.0
    if d.groups.shape[0] > 0:
        carry_groups(d.groups, u, D, Z)
    g, end = 0, -1
    for i in range(p):
        if g < d.groups.shape[0] and i == d.groups[g, 0]:
            end = i + d.groups[g, 1]
            g += 1
        if i >= end:
            add_row(Z, i, 1.0, D, i)


@inline
def put_scaled(factor, D, first, out):
    """out = factor D + [0 1 0], the identity in columns from `first` on."""
    clear(out)
    for i in range(out.shape[0]):
        add_row(out, i, factor, D, i)
        out[i, first + i] += 1.0


@inline
def put_rolling(d, X, eta, first, dw):
    """Rows of dw for velocities that are not independent (rolling), from X at the stage."""
    p = eta.shape[0]
    for i in range(d.places.size if d.speeds.size < d.places.size else 0):
        place, at, is_speed = d.places[i], d.entries[i], False
        for k in range(d.speeds.size):
            is_speed = is_speed or d.speeds[k] == place
        if not is_speed:
            for j in range(dw.shape[1]):
                dw[at, j] = X[place, j] if first and j < 2 * p else 0.0
            for l in range(0 if first else p):
                add_row(dw, at, X[place, l], eta, l)
                add_row(dw, at, X[place, p + l], dw, l)


@inline
def put_rate_derivatives(r, A, B, first):
    """df of a stage, from the lower rows of its A (2p, 2p) and B (2p, nu); eta and dw are those of its state."""
    p, x, nu, z = r.u.size, A.shape[1], B.shape[1], r.df.shape[1]
    clear(r.df)
    for i in range(p):
        if first:  # at the first stage eta and dw are rows of the identity
            copy_row(SCALAR, A, x * (p + i), x, r.df, z * i)
        copy_row(SCALAR, B, nu * (p + i), nu, r.df, z * i + x)
    if not first:
        add_products_in_registers(A, x * p, x, 1, p, p, r.eta, r.df)
        add_products_in_registers(A, x * p + p, x, 1, p, p, r.dw, r.df)


@inline
def put_displacement_of(d, r, k, knots, v):
    """r.x = change of (y, w) by the step from knot k with velocities v."""
    for i in range(r.x.size):
        r.x[i] = 0.0
        for stage in range(d.method):
            r.x[i] += stage_weight(d.method, stage, d.h) * r.found.f0[stage * knots + k, i]
    put_displacement(d, v, r.x)


@inline
def vary_stage(d, r, row, knots, stage):
    """Variations of a stage, from those of the stage before: r.eta, r.dw, r.df, and r.moved of the way r.u to it."""
    p, c_h = r.u.size, stage_time(stage, d.h)
    if stage > 0:
        for i in range(p):
            r.u[i] = c_h * r.found.f0[row - knots, i]
        clear(r.moved)
        for i in range(p):
            add_row(r.moved, i, c_h, r.dw, i)
        put_variation(d, r.u, r.moved, r.eta)
    put_scaled(c_h, r.df, p, r.dw)
    put_rolling(d, r.found.C[row], r.eta, stage == 0, r.dw)
    put_rate_derivatives(r, r.found.A[row], r.found.B[row], stage == 0)


@inline
def put_sums(d, r, k, knots):
    """Sums over the stages: sum_w of the displacement, sum_f of the velocities after the step."""
    p, h = r.u.size, d.h
    if d.method == EULER:  # semi-implicit: the displacement uses the new velocities
        put_rate_derivatives(r, r.found.A[k], r.found.B[k], True)
        put_scaled(h, r.df, p, r.sum_f)
        clear(r.sum_w)
        for i in range(p):
            add_row(r.sum_w, i, h, r.sum_f, i)
        return
    clear(r.df)
    clear(r.sum_w)
    clear(r.sum_f)
    for stage in range(d.method):
        row, weight = stage * knots + k, stage_weight(d.method, stage, h)
        vary_stage(d, r, row, knots, stage)
        for i in range(p):
            add_row(r.sum_w, i, weight, r.dw, i)
            add_row(r.sum_f, i, weight, r.df, i)
    for i in range(p):
        r.sum_f[i, p + i] += 1.0


@inline
def vary_step(d, r, k, knots, v, A, B):
    """A (2p, 2p) and B (2p, nu) of the step from knot k with velocities v; r.x = change of (y, w)."""
    p, x, nu, z = r.u.size, A.shape[1], B.shape[1], r.df.shape[1]
    put_sums(d, r, k, knots)
    put_displacement_of(d, r, k, knots, v)
    for i in range(p):
        r.u[i] = r.x[i]
    put_variation(d, r.u, r.sum_w, r.eta)
    for i in range(p):
        copy_row(SCALAR, r.eta, z * i, x, A, x * i)
        copy_row(SCALAR, r.eta, z * i + x, nu, B, nu * i)
        copy_row(SCALAR, r.sum_f, z * i, x, A, x * (p + i))
        copy_row(SCALAR, r.sum_f, z * i + x, nu, B, nu * (p + i))


@inline_array
def places_of(R):
    """The degrees of freedom that the rows of R pick."""
    places = np.empty(R.shape[0], np.int64)
    for i in range(R.shape[0]):
        for j in range(R.shape[1]):
            if R[i, j] == 1.0:
                places[i] = j
    return places


@batch
def discretize_states(begin, end, model, state, coordinates, actuators, settings, found):
    """One step from each state; `coordinates` pick coordinates of the tree whose group is R^n.

    `settings` are the length of the step and the tolerance of ranks.
    """
    (h, rank_tolerance), n, m, nu = settings, model.ints[NV], model.ints[N_ROWS], actuators.shape[1]
    p, empty, given = coordinates.virtual_y.size, np.empty, model.floats
    model = PackedModel(model.ints, given.copy())  # holds the results of moving targets and custom rows
    work, space = empty(linearize_size(model, p, p, nu)), new_space(model, p, p, nu)
    s = Stage(empty(model.ints[NQ]), empty(n), empty(n), empty(world_size(model)), empty((m, n)), empty(m), empty(m),
              empty(elimination_size(SCALAR, model)), np.zeros(padded(n)))
    if not picks(model, coordinates.R_y, coordinates.virtual_y, s.choosable):
        return
    places, entries, z = places_of(coordinates.R_y), np.arange(2 * p), padded(2 * p + nu)
    d = OneStep(CLASSICAL, h, empty((0, 2), np.int64), places, places, entries)
    stages = Stages(empty((4, 2 * p)), empty((4, 2 * p, 2 * p)), empty((4, 2 * p, nu)), empty((4, 1, 1)))
    r = VariationRoom(stages, empty(p), empty(p), empty(2 * p), np.zeros((p, z)), np.zeros((p, z)), np.zeros((p, z)),
                      np.zeros((p, z)), np.zeros((p, z)), np.zeros((p, z)))
    for b in range(begin, end):
        q, v, made = state.q[b], state.v[b], True
        s.q[:], s.v[:] = q, v
        for i in range(CLASSICAL):
            if i > 0:
                put_coordinates(d, r, v, stages.f0[i - 1], stage_time(i, h))
                made = put_stage(model, s, q, r.u, r.w, places, rank_tolerance)
            if made:
                status = linearize_in_place(model, State(s.q, s.v, state.tau[b], state.f_ext[b]), coordinates,
                                            actuators, rank_tolerance, work, space)
                made = status[0] == OK and status[3] == OK
            if not made:
                break
            stages.f0[i], stages.A[i], stages.B[i] = space.f0, space.A, space.B
        if made:
            vary_step(d, r, 0, 1, v, found.A[b], found.B[b])
            put_coordinates(d, r, v, r.x, 1.0)
            made = put_stage(model, s, q, r.u, r.w, places, rank_tolerance)
        found.done[b] = 1 if made else 0
        if made:
            found.q[b], found.v[b] = s.q, s.v
