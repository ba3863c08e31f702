"""One step of a discretised motion in independent coordinates of the tree.

The state is x = (y, w): independent coordinates y and their rates w, both chosen from those of the tree. A step starts
at (q, w), moves along the configurations q(u) on the manifold whose chosen coordinates differ from those of q by u, and
has constant inputs. With wdot = f(q, w, input) from the null space (`liedyn.linear.local`),

    EULER (semi-implicit)   w' = w + h f(q, w)                            q' = q(h w')
    MIDPOINT                w_m = w + h/2 f(q, w), q_m = q(h/2 w)         w' = w + h f(q_m, w_m), q' = q(h w_m)
    RK4                     the classical method, as in `liedyn.motion.discrete_steps`

Coordinates of ball and free joints move by the exponential map of their group. Derivatives:
`liedyn.tasks.planning.expansion`.
"""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.linear.space import Coordinates
from liedyn.machine.compiled.by_address import record, contents
from liedyn.machine.compiled.jit import (
    CUBE, INTEGERS, MATRIX, VECTOR, group, inline, inline_array, kernel, kernel_in_place, late,
)
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows
from liedyn.mechanics.constraints.elimination import elimination_size
from liedyn.mechanics.dynamics.nullspace import OK, acceleration_kernel, acceleration_size
from liedyn.mechanics.tree.aba import aba_kernel, aba_size
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.packed import N_ROWS, NQ, NV, PackedModel
from liedyn.model.packed_records import MODEL
from liedyn.motion.discrete_steps import (
    Stage, complete_velocities, put_coordinates, put_displacement, put_stage, put_velocities, solve_dependent,
    stage_time, stage_weight,
)
from liedyn.tasks.planning.element_forces import ELEMENTS, has_elements, put_all_forces
from liedyn.tasks.planning.phases import PHASES

Discretisation = namedtuple("Discretisation", "method h places speeds entries groups choosable configuration "
                            "coordinates actuators rank_tolerance phases elements")
"""The discretisation: `places` and `speeds` are the degrees of freedom of y and w, `entries` their indices in x;
`groups` (count, 2) have the first entry and the number of entries of each ball or free joint.
`choosable` (2, nv) is 1 for dependent coordinates and velocities; `configuration` are the integers of
the model with those rows only that restrict positions. `coordinates` are y for all states of a batch; with phases
all but the method, the inputs and the tolerance are in `phases` (`in_phase`). `elements` are force elements."""

StepRoom = namedtuple("StepRoom", "stage solve a lam first tau f_ext u w k sum q v")
"""Scratch arrays: `first` are the multipliers at the beginning of the step, or of a phase change; `k` the rates of x at
the last stage, `sum` the weighted sum of those of the stages; a state (q, v)."""

COORDINATES = group(Coordinates, CUBE, INTEGERS, CUBE, INTEGERS)
DISCRETISATION = record(Discretisation, types.int64, types.float64, *[INTEGERS] * 3, types.int64[:, ::1], MATRIX,
                        INTEGERS, COORDINATES, MATRIX, types.float64, PHASES, ELEMENTS)
STEP_ROOM = record(StepRoom, group(Stage, *[VECTOR] * 4, MATRIX, *[VECTOR] * 4), *[VECTOR] * 12)

accelerate = late(MODEL, *[VECTOR] * 4, types.float64, *[VECTOR] * 3,
                  returns=types.Tuple((types.int64, types.int64, types.float64)))(acceleration_kernel)


@late(MODEL, *[VECTOR] * 6)
def accelerate_tree(model, q, v, tau, f_ext, work, a):
    """a of a tree without constraints if its inertia matrix is positive definite; NaN if it is singular."""
    aba_kernel(SCALAR, model, q, v, tau, f_ext, work, a)


@inline
def in_phase(model, d, k):
    """The model and the discretisation of the step from knot k, and of differences at that knot."""
    x = d.phases
    if x.counts.shape[0] == 0:
        return model, contents(d)
    i = x.of_knot[k]
    y, w, groups = x.counts[i]
    places, speeds = x.places[i, :y], x.speeds[i, :w]
    return PackedModel(x.ints[i], model.floats), Discretisation(
        d.method, d.h, places, speeds, x.entries[i, :y + w], x.groups[i, :groups], x.choosable[i], x.configuration[i],
        contents(d.coordinates), d.actuators, d.rank_tolerance, contents(x), contents(d.elements))


@inline
def stage_of(s, choosable):
    """The same stage with other dependent coordinates."""
    return Stage(s.q, s.v, s.change, s.world, s.G, s.residual, s.gamma, s.e, choosable)


owned_in_phase, owned_stage_of = (inline_array(each.py_func) for each in (in_phase, stage_of))
"""The same for kernels that make arrays: the result counts as allocated by them."""


@kernel
def step_room(model, p):
    """`StepRoom` for p coordinates."""
    n, m, nq = model.ints[NV], model.ints[N_ROWS], model.ints[NQ]
    stage = Stage(np.empty(nq), np.empty(n), np.empty(n), np.empty(world_size(model)), np.empty((m, n)), np.empty(m),
                  np.empty(m), np.empty(elimination_size(SCALAR, model)), np.zeros(padded(n)))
    solve = np.empty(max(acceleration_size(model), aba_size(model)))
    return StepRoom(stage, solve, np.empty(n), np.empty(m), np.empty(m), np.empty(n), np.empty(0), np.empty(p),
                    np.empty(p), np.zeros(2 * p), np.zeros(2 * p), np.empty(nq), np.empty(n))


@kernel_in_place
def put_forces(actuators, u, tau):
    """tau = S u."""
    for j in range(tau.size):
        x = 0.0
        for c in range(u.size):
            x += actuators[j, c] * u[c]
        tau[j] = x


@late(MODEL, DISCRETISATION, STEP_ROOM, *[VECTOR] * 3, types.float64, returns=types.boolean)
@kernel_in_place
def put_state(model, d, r, q, v, x, part):
    """r.stage = the state on the manifold at the fraction `part` of x = (u, change of w) from (q, v); False if none."""
    put_coordinates(d, r, v, x, part)
    if d.speeds.size == d.places.size:
        return put_stage(model, stage_of(r.stage, d.choosable[0]), q, r.u, r.w, d.places, d.rank_tolerance)
    held = PackedModel(d.configuration, model.floats)
    return put_stage(held, stage_of(r.stage, d.choosable[0]), q, r.u, r.u, d.places, d.rank_tolerance) and put_motion(
        model, d, stage_of(r.stage, d.choosable[1]), r.w)


@kernel_in_place
def put_motion(model, d, s, w):
    """s.v from the independent velocities w at s.q, with constraints on velocities alone; False if it is singular."""
    for j in range(s.v.size):
        s.v[j] = 0.0
    world_positions(SCALAR, model, s.q, s.world)
    jacobian_rows(model, s.q, s.world, s.G)
    put_velocities(model, s, d.speeds.size)
    for i in range(d.speeds.size):
        s.v[d.speeds[i]] = w[i]
    return solve_dependent(model, s, s.gamma, d.rank_tolerance) and complete_velocities(model, s, d.speeds.size)


@inline
def put_rates(model, d, r, q, v):
    """r.k = (w, f) at a state on the manifold; False if it is singular."""
    p, finite = d.places.size, True
    if model.ints[N_ROWS] == 0:
        accelerate_tree(model, q, v, r.tau, r.f_ext, r.solve, r.a)
    else:
        finite = accelerate(model, q, v, r.tau, r.f_ext, d.rank_tolerance, r.solve, r.a, r.lam)[0] == OK
    for i in range(r.k.size if d.entries.size < r.k.size else 0):  # entries that only other phases read
        r.k[i] = 0.0
    for i in range(p):
        r.k[d.entries[i]] = v[d.places[i]]
    for i in range(d.speeds.size):
        x = r.a[d.speeds[i]]
        r.k[d.entries[p + i]] = x
        finite = finite and abs(x) < np.inf
    return finite


@late(MODEL, DISCRETISATION, STEP_ROOM, types.UniTuple(VECTOR, 2), VECTOR, types.UniTuple(VECTOR, 2),
      returns=types.boolean)
@kernel_in_place
def make_step(model, d, r, state, u, after):
    """after = (q, v) after a step from a state (q, v) under inputs u; False if it has no solution."""
    (q, v), (q_next, v_next) = state, after
    put_forces(d.actuators, u, r.tau)
    for i in range(r.sum.size):
        r.sum[i] = 0.0
    for i in range(d.method):
        if i == 0:
            if has_elements(d):
                put_all_forces(d.actuators, contents(d.elements), u, q, v, r.tau)
            regular = put_rates(model, d, r, q, v)
            copy_vector(r.lam, r.first)
        else:
            regular = put_state(model, d, r, q, v, r.k, stage_time(i, d.h))
            if regular and has_elements(d):
                put_all_forces(d.actuators, contents(d.elements), u, r.stage.q, r.stage.v, r.tau)
            regular = regular and put_rates(model, d, r, r.stage.q, r.stage.v)
        if not regular:
            return False
        for j in range(r.sum.size):
            r.sum[j] += stage_weight(d.method, i, d.h) * r.k[j]
    put_displacement(d, v, r.sum)
    if not put_state(model, d, r, q, v, r.sum, 1.0):
        return False
    copy_vector(r.stage.q, q_next)
    copy_vector(r.stage.v, v_next)
    return True


@inline
def copy_vector(x, to):
    """to = x in a loop, as slices would copy twice."""
    for i in range(x.size):
        to[i] = x[i]


def coordinates_of(y):
    """`Coordinates` of an `Independent`, the same for positions and velocities, at all states."""
    rows = y.rows[None].copy()
    return Coordinates(rows, y.virtual.copy(), rows, y.virtual.copy())
