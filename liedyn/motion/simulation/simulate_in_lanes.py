"""Many runs of the same length in parallel: W of them in SIMD lanes, blocks of W in threads.

For mechanisms of revolute and prismatic joints whose constraints are cut joints, by explicit methods with fixed steps
in the null-space formulation: each step is that of `liedyn.motion.simulation.integrators.explicit`, projection
included, on W states at once. A run leaves its lane when it needs more than that, next to a singular configuration or
where it diverges; the number of its steps so far is noted, and `liedyn.motion.simulation.many` repeats it by itself. A
lane has no effect on the others: a lane whose run has left continues with a copy of another run.
"""
from collections import namedtuple

import numpy as np

from liedyn.linear.linearize_in_lanes import matrix_of
from liedyn.machine.compiled.jit import inline, inline_array, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.simd.comparisons import larger, magnitude
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store
from liedyn.mechanics.constraints.closing import closer
from liedyn.mechanics.constraints.constraint_rows import clear_rows
from liedyn.mechanics.constraints.cut_joints import closure_kernel
from liedyn.mechanics.constraints.elimination import elimination_size
from liedyn.mechanics.constraints.families.cut import cut_jacobian_kernel, cut_velocity_kernel
from liedyn.mechanics.constraints.reduced import (
    ForceBalance, Reduction, minimum_norm_multipliers, multipliers_size, reduced_motion, unbalanced,
)
from liedyn.mechanics.dynamics.forward_in_lanes import eliminate_in_lanes, spread_in_lanes, terms_in_lanes
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import terms_size
from liedyn.mechanics.tree.aba import aba_kernel, aba_size
from liedyn.mechanics.tree.crba import crba_kernel, crba_size
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.model.calls.batches import aligned, batch, gather
from liedyn.model.packed import NV, N_ROWS
from liedyn.motion.simulation.manifold_projection import rule_of
from liedyn.motion.simulation.singular_passages import NEAR

Plan = namedtuple("Plan", "start end dt steps record independent projects tolerance rank_tolerance")
"""Common data of all runs: the time grid; the number of steps per recorded row; the number of independent velocities;
true if states are projected; largest residual that may be left; relative size of pivots of G that count as zero."""

Runs = namedtuple("Runs", "q v a lam tau scalars done now at")
"""Results (runs, rows, ...): states, accelerations, multipliers, forces of the inputs; condition number, work of the
inputs and of dampers; and (runs) the number of steps made. State of a slice for the next one: `now` (runs, nq + nv +
3), the state, both works, and the condition number of the last step; `at` (runs), the number of the next step."""

Room = namedtuple("Room", "q v tau a lam q_stage v_stage step rates world M h G gamma KM reduced inertia left e "
                          "scratch work near none choosable")
"""Data of W runs: the state, forces, accelerations and multipliers at the beginning of a step; the stage and its
change; the terms; workspaces; works of inputs and dampers; near: the largest condition number of the step;
ones for velocities that may be dependent."""


@inline_array
def room_for(model, nq, stages, p):
    """Workspaces for one thread."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    world = WIDTH * max(terms_size(model), max(crba_size(model), aba_size(model)))
    return Room(
        aligned(WIDTH * padded(nq)), aligned(WIDTH * padded(n)), aligned(WIDTH * padded(n)), aligned(WIDTH * padded(n)),
        aligned(WIDTH * padded(m)), aligned(WIDTH * padded(nq)), aligned(WIDTH * padded(n)), aligned(WIDTH * padded(n)),
        matrix_of(2 * stages, n), aligned(world), matrix_of(n, n), aligned(WIDTH * n), matrix_of(m, n),
        aligned(WIDTH * m), matrix_of(p, n), matrix_of(p, p + 1), matrix_of(p, p + 1), aligned(WIDTH * n),
        aligned(elimination_size(LANES, model)), aligned(multipliers_size(LANES, model)), aligned(WIDTH * 4),
        aligned(WIDTH * 2), np.empty(0), np.ones(n))


@kernel_in_place
def accelerations_of_runs(model, work, q, v, plan, a, with_multipliers):
    """a at (q, v), and the multipliers if wanted; updates work.near. False if the W runs cannot continue together."""
    if model.ints[N_ROWS] == 0:
        aba_kernel(LANES, model, q, v, work.tau, work.none, work.world, a)
        store(LANES, work.near, 1, splat(LANES, 1.0))
        return True
    terms_in_lanes(model, q, v, work.none, work.world, Terms(work.M, work.h, work.G, work.gamma))
    if not eliminate_in_lanes(model, work.G, work.gamma, work.choosable, plan.independent, plan.rank_tolerance, work.e):
        return False
    spread = spread_in_lanes(model, work.e)
    store(LANES, work.near, 0, larger(load(LANES, work.near, 0), spread))
    store(LANES, work.near, 1, spread)
    reduction = Reduction(work.KM, work.reduced, work.inertia)
    if not reduced_motion(LANES, model, work.e, ForceBalance(work.M, work.h, work.tau), reduction, a):
        return False
    if with_multipliers:
        unbalanced(LANES, model, work.M, work.h, work.tau, a, work.left)
        minimum_norm_multipliers(LANES, model, work.e, work.left, work.scratch, work.lam)
    return True


@inline
def add_scaled(count, c, x, first, y):
    """y += c x[first:], of registers; c a number."""
    for j in range(count):
        store(LANES, y, j, load(LANES, y, j) + c * load(LANES, x, first + j))


@inline
def copy_registers(count, x, y):
    for j in range(count):
        store(LANES, y, j, load(LANES, x, j))


@inline
def nearest_change(model, work, plan, left, y):
    """y -= dy with G dy = left, shortest in the metric work.M: accelerations without forces (Gauss' principle)."""
    n = model.ints[NV]
    if not eliminate_in_lanes(model, work.G, left, work.choosable, plan.independent, plan.rank_tolerance, work.e):
        return False
    clear_rows(work.h)
    clear_rows(work.step)
    reduction = Reduction(work.KM, work.reduced, work.inertia)
    if not reduced_motion(LANES, model, work.e, ForceBalance(work.M, work.h, work.step), reduction, work.left):
        return False
    add_scaled(n, -1.0, work.left, 0, y)
    return True


@inline
def residual_sizes(work, row_sizes):
    """Each run's largest residual, relative to the sizes of the rows."""
    size = splat(LANES, 0.0)
    for i in range(row_sizes.size):
        size = larger(size, magnitude(load(LANES, work.gamma, i)) * (1.0 / row_sizes[i]))
    return size


@inline
def left_open_in_lanes(model, of, q):
    """The largest residual of any run at q, NaN if one is; leaves residuals in work.gamma, G, and the pose of q."""
    work, _, row_sizes = of
    world_positions(LANES, model, q, work.world)
    clear_rows(work.gamma)
    clear_rows(work.G)
    closure_kernel(LANES, model, work.world, work.gamma)
    cut_jacobian_kernel(LANES, model, work.world, False, work.G)
    store(LANES, work.work, 3, residual_sizes(work, row_sizes))
    size = 0.0
    for l in range(WIDTH):
        if np.isnan(work.work[3 * WIDTH + l]):
            return np.nan
        size = max(size, work.work[3 * WIDTH + l])
    return size


@inline
def correct_in_lanes(model, of, q):
    """The nearest change, of all runs."""
    work, plan, _ = of
    return nearest_change(model, work, plan, work.gamma, q)


_close = closer(left_open_in_lanes, correct_in_lanes)


@kernel_in_place
def project_runs(model, work, plan, row_sizes):
    """`liedyn.motion.simulation.manifold_projection.project` for W runs: False if they cannot continue together.

    All make as many Newton steps as the slowest one needs.
    """
    crba_kernel(LANES, model, work.q, work.world, work.M)
    if not _close(model, (work, plan, row_sizes), rule_of(plan.tolerance), work.q):
        return False
    world_velocities(LANES, model, work.v, work.world)
    clear_rows(work.gamma)
    cut_velocity_kernel(LANES, model, work.world, False, work.gamma)
    return nearest_change(model, work, plan, work.gamma, work.v)


@inline
def add_power(model, work, v, damping, weight):
    """Adds weight times the powers of inputs and dampers at v to their works."""
    by_inputs, lost = load(LANES, work.work, 0), load(LANES, work.work, 1)
    for j in range(model.ints[NV]):
        speed = load(LANES, v, j)
        by_inputs = by_inputs + weight * (load(LANES, work.tau, j) * speed)
        lost = lost - (weight * damping[j]) * (speed * speed)
    store(LANES, work.work, 0, by_inputs)
    store(LANES, work.work, 1, lost)


@kernel_in_place
def step_runs(model, work, tableau, h, plan, damping, row_sizes):
    """One step of W runs, from known accelerations work.a; False if they cannot continue together."""
    n, stages, m = model.ints[NV], tableau.shape[1], model.ints[N_ROWS]
    store(LANES, work.near, 0, splat(LANES, 1.0))
    for j in range(n):
        store(LANES, work.rates, j, load(LANES, work.v, j))
        store(LANES, work.rates, stages * n + j, load(LANES, work.a, j))
    add_power(model, work, work.v, damping, h * tableau[stages, 0])
    for i in range(1, stages + 1):
        q, v = (work.q_stage, work.v_stage) if i < stages else (work.q, work.v)
        if i < stages:
            copy_registers(n, work.q, q)
            copy_registers(n, work.v, v)
        for j in range(min(i, stages)):
            if tableau[i, j] != 0.0:
                add_scaled(n, h * tableau[i, j], work.rates, j * n, q)
                add_scaled(n, h * tableau[i, j], work.rates, (stages + j) * n, v)
        if i < stages:
            if not accelerations_of_runs(model, work, q, v, plan, work.step, False):
                return False
            for j in range(n):
                store(LANES, work.rates, i * n + j, load(LANES, v, j))
                store(LANES, work.rates, (stages + i) * n + j, load(LANES, work.step, j))
            add_power(model, work, v, damping, h * tableau[stages, i])
    return m == 0 or not plan.projects or project_runs(model, work, plan, row_sizes)


@inline
def put_row(model, work, b, end, row, runs):
    """Stores the present state as row `row` of runs b to b + W - 1."""
    nq, n, m = runs.q.shape[2], model.ints[NV], model.ints[N_ROWS]
    for l in range(min(WIDTH, end - b)):
        for j in range(nq):
            runs.q[b + l, row, j] = work.q[WIDTH * j + l]
        for j in range(n):
            runs.v[b + l, row, j] = work.v[WIDTH * j + l]
            runs.a[b + l, row, j] = work.a[WIDTH * j + l]
            runs.tau[b + l, row, j] = work.tau[WIDTH * j + l]
        for i in range(m):
            runs.lam[b + l, row, i] = work.lam[WIDTH * i + l]
        runs.scalars[b + l, row, 0] = work.near[WIDTH + l]
        runs.scalars[b + l, row, 1], runs.scalars[b + l, row, 2] = work.work[l], work.work[WIDTH + l]


@inline
def put_inputs(model, work, b, end, k, tau):
    """Forces of step k, tau (runs or 1, steps or 1, nv)."""
    row = min(k, tau.shape[1] - 1)
    for l in range(WIDTH):
        run = min(b + l, end - 1) if tau.shape[0] > 1 else 0
        for j in range(model.ints[NV]):
            work.tau[WIDTH * j + l] = tau[run, row, j]


@inline
def leaves(model, work, l, largest):
    """True if run l of the W leaves after this step: near a singular configuration, not finite or too fast."""
    out = not work.near[l] <= NEAR
    for j in range(model.ints[NV]):
        out = out or not abs(work.v[WIDTH * j + l]) <= largest[j] or not np.isfinite(work.q[WIDTH * j + l])
    return out


@inline
def copy_lane(model, work, source, target):
    """Copies the run of one lane to another, whose own run has left."""
    for j in range(model.ints[NV]):
        for y in (work.q, work.v):
            y[WIDTH * j + target] = y[WIDTH * j + source]


@inline
def retire(model, work, b, end, k, largest, gone, done):
    """Runs that leave in step k are noted, and their lanes continue with another run; False if none is left."""
    stays = -1
    for l in range(WIDTH):
        if gone[l] == 0.0 and leaves(model, work, l, largest):
            gone[l] = 1.0
            if b + l < end:
                done[b + l] = k
        if gone[l] == 0.0:
            stays = l
    for l in range(WIDTH):
        if gone[l] != 0.0 and stays >= 0:
            copy_lane(model, work, stays, l)
    return stays >= 0


@inline
def put_now(model, work, b, end, k, runs):
    """Stores the states of runs b to b + W - 1 before step k."""
    nq, n = runs.q.shape[2], model.ints[NV]
    for l in range(min(WIDTH, end - b)):
        runs.at[b + l] = k
        for j in range(nq):
            runs.now[b + l, j] = work.q[WIDTH * j + l]
        for j in range(n):
            runs.now[b + l, nq + j] = work.v[WIDTH * j + l]
        runs.now[b + l, nq + n], runs.now[b + l, nq + n + 1] = work.work[l], work.work[WIDTH + l]
        runs.now[b + l, nq + n + 2] = work.near[l]


@inline
def take_now(model, work, b, end, steps, runs, gone):
    """Restores what `put_now` stored; returns the number of the step. Lanes without a run repeat the last run."""
    nq, n = runs.q.shape[2], model.ints[NV]
    for l in range(WIDTH):
        run = min(b + l, end - 1)
        gone[l] = 0.0 if b + l < end and runs.done[run] > steps else 1.0
        for j in range(nq):
            work.q[WIDTH * j + l] = runs.now[run, j]
        for j in range(n):
            work.v[WIDTH * j + l] = runs.now[run, nq + j]
        work.work[l], work.work[WIDTH + l] = runs.now[run, nq + n], runs.now[run, nq + n + 1]
        work.near[l] = runs.now[run, nq + n + 2]
    return runs.at[b]


@inline
def recorded_before(plan, k):
    """Number of rows recorded before step k."""
    return (k + plan.record - 1) // plan.record


@batch
def advance_runs(begin, end, model, q0, v0, tau, tableau, plan, limits, budget, runs):
    """The next steps of each run, W at a time, at most `budget`; step 0 is the first one.

    `limits`: (row_sizes, largest speeds, damping). If runs cannot continue together, all of them leave.
    """
    nq, stages = q0.shape[1], tableau.shape[1]
    row_sizes, largest, damping = limits
    work, gone = room_for(model, nq, stages, plan.independent), np.zeros(WIDTH)
    for b in range(begin, end, WIDTH):
        if runs.at[b] > plan.steps:
            continue
        if runs.at[b] == 0:
            gather(q0, b, end, work.q)
            gather(v0, b, end, work.v)
            for l in range(WIDTH):
                gone[l] = 0.0 if b + l < end else 1.0
            work.work[:] = 0.0
            work.near[:] = 1.0
            first = 0
        else:
            first = take_now(model, work, b, end, plan.steps, runs, gone)
        row, behind = recorded_before(plan, first), min(first + budget, plan.steps + 1)
        for k in range(first, behind):
            put_inputs(model, work, b, end, k, tau)
            records = k % plan.record == 0 or k == plan.steps
            together = accelerations_of_runs(model, work, work.q, work.v, plan, work.a, records)
            if together and retire(model, work, b, end, k, largest, gone, runs.done):
                if records:
                    put_row(model, work, b, end, row, runs)
                    row += 1
                if k == plan.steps:
                    continue
                t, later = plan.start + k * plan.dt, min(plan.start + (k + 1) * plan.dt, plan.end)
                h = (plan.end if k + 1 == plan.steps else later) - t
                if step_runs(model, work, tableau, h, plan, damping, row_sizes):
                    continue
            for l in range(min(WIDTH, end - b)):
                if gone[l] == 0.0:
                    runs.done[b + l] = k
            behind = plan.steps + 1  # no run is left
            break
        put_now(model, work, b, end, behind, runs)
