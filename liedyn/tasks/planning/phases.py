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
touch is an equation g(q) = 0 at the knot before (`liedyn.tasks.planning.augmented_lagrangian`).
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.by_address import record
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline
from liedyn.machine.linalg.vectors import copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing import Rule, closer
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows
from liedyn.mechanics.constraints.elimination import dependence, dependent_dofs
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.motion.discrete_steps import CONVERGED, NEWTON_STEPS, largest_coordinate, solve_dependent
from liedyn.tasks.planning.augmented_lagrangian import CONES

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
def touches(steps, k):
    """True if another phase begins after knot k."""
    of_knot = steps.phases.of_knot
    return k + 1 < of_knot.size and of_knot[k] != of_knot[k + 1]


@inline
def step_of_dependent(model, of, q):
    """The size of the step that closes position constraints, relative to coordinates; infinite if there is none."""
    steps, stage, rank_tolerance = of
    world_positions(SCALAR, model, q, stage.world)
    residual_rows(model, q, stage.world, stage.residual)
    jacobian_rows(model, q, stage.world, stage.G)
    for i in range(stage.gamma.size):
        stage.gamma[i] = -stage.residual[i]
    if not solve_dependent(model, stage, stage.gamma, rank_tolerance):
        return np.inf
    dependent, forced = dependent_dofs(model, stage.e)[0], dependence(SCALAR, model, stage.e, steps.places.size)[1]
    largest = 0.0
    for j in range(stage.change.size):
        stage.change[j] = 0.0
    for k in range(stage.change.size - steps.places.size):
        stage.change[dependent[k]] = forced[k]
        largest = max(largest, abs(forced[k]))
    return largest / largest_coordinate(q)


@inline
def step_dependent(model, of, q):
    """The step that `step_of_dependent` has found."""
    integrate_kernel(model, q, of[1].change, q)
    return True


_close = closer(step_of_dependent, step_dependent)


@inline
def put_closed(model, steps, stage, q, rank_tolerance):
    """stage.q = q moved to the position constraints in its dependent coordinates; False if Newton's method fails.

    The first correction may be of any size, as q may be far away; each later one is at most half as large.
    """
    copy_to(q, stage.q)
    return _close(model, (steps, stage, rank_tolerance), Rule(NEWTON_STEPS, CONVERGED, CONVERGED, np.inf, 0.5), stage.q)
