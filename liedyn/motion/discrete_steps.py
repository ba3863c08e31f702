"""Derivatives of one Runge-Kutta step at many states, in coordinates of the tree whose group is R^n (`discretize`).

The step is that of `liedyn.motion.discretize`, compiled: at each stage the dependent coordinates and
velocities follow from the independent ones by Newton's method on the constraints, and the local state space (A, B, f)
there gives the stage and its derivatives,

    k_i = f_i        dk_i = A_i (dx + c_i h dk_i-1) + B_i du
"""
from collections import namedtuple

import numpy as np

from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import at, padded
from liedyn.machine.simd.lanes import SCALAR
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

STAGES, WEIGHTS = RK4[:-1].sum(axis=1), RK4[-1].copy()
NEWTON_STEPS, CONVERGED = 20, 1e-13
"""Newton's method doubles the digits of a stage in each step; the initial guess has a few. A step below CONVERGED means
that the next one would be below double precision."""

Steps = namedtuple("Steps", "A B q v done")
"""Results, a row for each state: derivatives by state and inputs, state at the end of the step, 1 if it was made."""

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


@inline
def vary_step(space, c_h, Z, dk, p, nu):
    """dk = A (1 + c h dk) + [0 B] for the columns of states and inputs; Z is scratch."""
    x = 2 * p
    for i in range(x):
        for j in range(x + nu):
            Z[i, j] = c_h * dk[i, j] + (1.0 if i == j else 0.0)
    for i in range(x):
        for j in range(x + nu):
            total = space.B[i, j - x] if j >= x else 0.0
            for l in range(x):
                total += space.A[i, l] * Z[l, j]
            dk[i, j] = total


@batch
def discretize_states(begin, end, model, state, coordinates, actuators, h, rank_tolerance, found):
    """One step from each state; `coordinates` pick coordinates of the tree whose group is R^n."""
    n, m, nq, nu, given = model.ints[NV], model.ints[N_ROWS], model.ints[NQ], actuators.shape[1], model.floats
    p = coordinates.virtual_y.size
    x, empty = 2 * p, np.empty
    model = PackedModel(model.ints, given.copy())  # holds the results of moving targets and custom rows
    work, space = empty(linearize_size(model, p, p, nu)), new_space(model, p, p, nu)
    s = Stage(empty(nq), empty(n), empty(n), empty(world_size(model)), empty((m, n)), empty(m), empty(m),
              empty(elimination_size(SCALAR, model)), empty(padded(n)))
    places, k, change, u, w = np.empty(p, np.int64), empty(x), empty(x), empty(p), empty(p)
    dk, d_change, Z = empty((x, x + nu)), empty((x, x + nu)), empty((x, x + nu))
    if not picks(model, coordinates.R_y, coordinates.virtual_y, s.choosable):
        return
    for i in range(p):
        for j in range(n):
            if coordinates.R_y[i, j] == 1.0:
                places[i] = j
    for b in range(begin, end):
        q_0, tau, f_ext = state.q[b], state.tau[b], state.f_ext[b]
        k[:], change[:] = 0.0, 0.0
        dk[:], d_change[:] = 0.0, 0.0
        made = True
        for i in range(4):
            c_h = STAGES[i] * h
            for j in range(p):
                u[j], w[j] = c_h * k[j], state.v[b, places[j]] + c_h * k[p + j]
            if i == 0:
                s.q[:], s.v[:] = q_0, state.v[b]
            else:
                made = put_stage(model, s, q_0, u, w, places, rank_tolerance)
            if not made:
                break
            status = linearize_in_place(
                model, State(s.q, s.v, tau, f_ext), coordinates, actuators, rank_tolerance, work, space)
            made = status[0] == OK and status[3] == OK
            if not made:
                break
            vary_step(space, c_h, Z, dk, p, nu)
            for j in range(x):
                k[j] = space.f0[j]
                change[j] += h * WEIGHTS[i] * k[j]
                for l in range(x + nu):
                    d_change[j, l] += h * WEIGHTS[i] * dk[j, l]
        if made:
            for j in range(p):
                u[j], w[j] = change[j], state.v[b, places[j]] + change[p + j]
            made = put_stage(model, s, q_0, u, w, places, rank_tolerance)
        found.done[b] = 1 if made else 0
        if made:
            found.q[b], found.v[b] = s.q, s.v
            for j in range(x):
                for l in range(x):
                    found.A[b, j, l] = d_change[j, l] + (1.0 if j == l else 0.0)
                for l in range(nu):
                    found.B[b, j, l] = d_change[j, x + l]
