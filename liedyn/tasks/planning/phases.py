"""Phases of a plan: knots with different closed contacts, and the phase changes between them.

Each knot belongs to a phase, and phases differ in the constraints that are closed: in the integers of the model, and in
the independent coordinates. The state is therefore that of the whole tree, x = (dq, dv); a phase reads and writes the
entries of its own coordinates y and velocities w, and all others are zero. Sticking contacts constrain velocities
alone (rolling): then there are fewer w than y, and the other entries of ydot follow from w.

Between two phases there is a step without duration. It moves q to the constraints of the next phase, at constant
coordinates y of that phase, and changes the velocities by a plastic impact (Featherstone 2008, 11.7),

    M (v+ - v-) + G^T Lambda = 0        G v+ = 0

so that v+ is the acceleration of the robot at rest, without gravity and springs, under the forces M v-; hence its
derivatives are those of accelerations, too. If constraints only open, q and v do not change. That closing contacts
touch is an equation g(q) = 0 at the knot before, with an augmented Lagrangian as for other limits
(`liedyn.tasks.planning.objective`).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import record
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, kernel_in_place
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows
from liedyn.mechanics.constraints.elimination import dependence, dependent_dofs
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.model.packed import PackedModel
from liedyn.motion.discrete_steps import CONVERGED, NEWTON_STEPS, largest_coordinate, solve_dependent
from liedyn.tasks.planning.contact_limits import CONES

Phases = namedtuple(
    "Phases", "of_knot ints configuration counts places speeds entries groups choosable rest lam mu cones")
"""For each knot its phase; and for each phase the integers of the model, and of one with the rows that have a residual
only; numbers of y, w and groups, and as many `places`, `speeds`, `entries` and `groups`; 1 for coordinates and
velocities that may be dependent; multipliers and penalties (m) of g at its end. `rest` are floats of the model
without gravity and springs; `cones` limit the forces of contacts. For plans of a single phase without rolling all are
empty."""

PHASES = record(Phases, INTEGERS, *[types.int64[:, ::1]] * 6, types.int64[:, :, ::1], types.float64[:, :, ::1], VECTOR,
               MATRIX, MATRIX, CONES)


@inline
def touches(d, k):
    """True if another phase begins after knot k."""
    of_knot = d.phases.of_knot
    return k + 1 < of_knot.size and of_knot[k] != of_knot[k + 1]


@inline
def put_closed(model, d, s, q, rank_tolerance):
    """s.q = q moved to the position constraints in its dependent coordinates; False if Newton's method fails.

    The first correction may be of any size, as q may be far away; each later one is at most half as large.
    """
    for j in range(q.size):
        s.q[j] = q[j]
    before = np.inf
    for _ in range(NEWTON_STEPS):
        world_positions(SCALAR, model, s.q, s.world)
        residual_rows(model, s.q, s.world, s.residual)
        jacobian_rows(model, s.q, s.world, s.G)
        for i in range(s.gamma.size):
            s.gamma[i] = -s.residual[i]
        if not solve_dependent(model, s, s.gamma, rank_tolerance):
            return False
        dependent, forced = dependent_dofs(model, s.e)[0], dependence(SCALAR, model, s.e, d.places.size)[1]
        largest = 0.0
        for j in range(s.change.size):
            s.change[j] = 0.0
        for k in range(s.change.size - d.places.size):
            s.change[dependent[k]] = forced[k]
            largest = max(largest, abs(forced[k]))
        integrate_kernel(model, s.q, s.change, s.q)
        if largest <= CONVERGED * largest_coordinate(s.q):
            return True
        if not largest <= 0.5 * before:
            return False
        before = largest
    return False


# ---- the equation g(q) = 0 of contacts that close after a knot


@inline
def put_touching(model, d, s, k, q):
    """Residuals of the next phase at q, and their rows in s.G; returns the number of that phase."""
    i = d.phases.of_knot[k + 1]
    closed = PackedModel(d.phases.configuration[i], model.floats)
    world_positions(SCALAR, closed, q, s.world)
    residual_rows(closed, q, s.world, s.residual)
    jacobian_rows(closed, q, s.world, s.G)
    return i - 1


@kernel_in_place
def gap_cost(model, d, s, k, q):
    """Augmented Lagrangian of the gaps of contacts that close after knot k, and the largest gap."""
    i, added, worst = put_touching(model, d, s, k, q), 0.0, 0.0
    for r in range(s.residual.size):
        lam, mu = d.phases.lam[i, r], d.phases.mu[i, r]
        force = mu * s.residual[r] + lam
        added += 0.5 * (force * force - lam * lam) / mu
        worst = max(worst, abs(s.residual[r]))
    return added, worst


@kernel_in_place
def add_gap_derivatives(model, d, s, k, q, N, lx, lxx):
    """Result of `gap_cost`; adds its gradient and Gauss-Newton matrix, by the motions N of the state."""
    added, worst = gap_cost(model, d, s, k, q)
    i, p = d.phases.of_knot[k], N.shape[1]
    for r in range(s.residual.size):
        lam, mu = d.phases.lam[i, r], d.phases.mu[i, r]
        for j in range(p):
            s.change[j] = 0.0
        for l in range(N.shape[0]):
            x = s.G[r, l]
            for j in range(p if x != 0.0 else 0):
                s.change[j] += x * N[l, j]
        for a in range(p):
            lx[a] += (mu * s.residual[r] + lam) * s.change[a]
            for b in range(p if s.change[a] != 0.0 else 0):
                lxx[a, b] += mu * s.change[a] * s.change[b]
    return added, worst


@kernel_in_place
def update_gap_multipliers(model, d, s, k, q, factor, largest):
    """lambda = mu (g + lambda / mu), and penalties times a factor."""
    i = put_touching(model, d, s, k, q)
    for r in range(s.residual.size):
        d.phases.lam[i, r] += d.phases.mu[i, r] * s.residual[r]
        d.phases.mu[i, r] = min(factor * d.phases.mu[i, r], largest)
