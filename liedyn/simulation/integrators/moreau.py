"""Time-stepping through contact: Moreau's scheme on velocities, with positions projected (Moreau 1988; Jean 1999).

A step knows no instants of impact, only impulses: with the midpoint q_m = q exp(h v / 2), and all of M, h, G there,

    (M + h D) (v+ - v) = h (tau - h(q_m, v)) - G^T Lambda    G v+ = b    0 <= P_n,  0 <= u_n^+ + e u_n^-,  complementary

for the contacts that are closed at q_m, friction opposing u_t^+ (`liedyn.contact.problem`). D is the damping of joints:
stiff where it turns next to no inertia, as a rod between two balls about itself. Then q+ = q_m exp(h v+ / 2) is
projected on the equations and out of what it penetrates, in the metric of the kinetic energy. Any number of impacts
within a step is one impulse, so accumulation points and rest are nothing special; the price is first order.

A contact that would close within the step, slowly, is let down to its surface: u_n^+ >= -2 gap / h instead of Newton's
law, so that what comes to rest rests on the surface. After each step energy may have grown by no more than the work
done: what a projection has lifted is taken from the speeds.
"""
import math

import numpy as np
from numba import types

from liedyn.compiled.jit import kernel, kernel_in_place
from liedyn.constraints.records import loop_at, loop_count, loop_integer, loop_rows, refresh, switch
from liedyn.constraints.rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.contact.complementarity import SOLVED
from liedyn.contact.problem import Touching, solve_contacts
from liedyn.dynamics.terms import terms_in_place
from liedyn.linalg.dense import largest_size
from liedyn.linalg.vectors import inner
from liedyn.model.packed import LOOP_ACTIVE, LOOP_FRICTION, LOOP_RESTITUTION, LOOP_SIDE, OFF, ON, OPEN
from liedyn.simd.lanes import SCALAR
from liedyn.simulation.inputs import held_power, input_forces
from liedyn.simulation.integrators.method import Method, TimeStepping
from liedyn.simulation.projection import correction, energy_of, metric
from liedyn.simulation.stages import check, finish_row
from liedyn.simulation.workspace import CONDITION, INPUT_WORK, NOT_CLOSED, NOT_CONVERGED, NOT_FINITE, OK, OTHER_WORK
from liedyn.tree.configuration import integrate_kernel
from liedyn.tree.kinematics import world_positions, world_velocities

TOUCHING = 1e-9
"""Gap [m, rad] at the midpoint below which a contact is closed."""
DEEPEST = 1e-5
"""Penetration [m, rad] that a projection may leave."""
SLOW = 2.0
"""A contact closes slowly when free motion takes no more than so many steps to build its speed up."""
ITERATIONS = 30
STILL = 1e-10
"""Speed of targets, relative to all speeds, that is rounding: targets that move do work, which is not bounded."""


@kernel
def one_sided_records(model):
    """Numbers of the one-sided constraints that are not off; side, restitution and friction of each."""
    index, count, numbers = np.empty(loop_count(model), np.int64), 0, np.empty((3, loop_count(model)))
    for l in range(loop_count(model)):
        if loop_integer(model, l, LOOP_SIDE) != 0 and loop_integer(model, l, LOOP_ACTIVE) != OFF:
            index[count], numbers[0, count] = l, loop_integer(model, l, LOOP_SIDE)
            numbers[1, count] = model.floats[loop_at(model, l, LOOP_RESTITUTION)]
            numbers[2, count] = model.floats[loop_at(model, l, LOOP_FRICTION)]
            count += 1
    return index[:count], numbers[0, :count], numbers[1, :count], numbers[2, :count]


@kernel_in_place
def set_all(model, index, status):
    for k in range(index.size):
        switch(model, index[k], status)


@kernel_in_place
def push_out(model, o, x, index, side, use, q):
    """Project q on the equations and out of what it penetrates; all contacts have rows. The deepest penetration left.

    `use` (m) marks rows: those of the equations at first, and those of the contacts that have been met.
    """
    metric(model, o, x, q)
    for _ in range(ITERATIONS):
        world_positions(SCALAR, model, q, x.world)
        residual_rows(model, q, x.world, x.residual)
        size, deepest = 0.0, 0.0
        for c in range(index.size):
            r = loop_rows(model, index[c])[0]
            if side[c] * x.residual[r] < 0.0:
                use[r] = 1
                deepest = max(deepest, -side[c] * x.residual[r])
        for r in range(use.size):
            if use[r] != 0:
                size = max(size, abs(x.residual[r]))
        if size <= 1e-14:
            break
        jacobian_rows(model, q, x.world, x.G)
        correction(model, o, x, x.residual, use, x.order[:0])
        integrate_kernel(model, q, x.vector[0], q)
    return deepest


@kernel
def closed_contacts(model, x, h, index, side, bounce, friction, c, free):
    """The contacts that a step takes in: those that are closed at its midpoint, or come to rest on their surfaces.

    `free` (n) is the velocity without them, `c` (m) the right sides of the rows G v = c.
    """
    size = index.size
    closed = Touching(np.empty(c.size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size),
                      np.zeros(size, types.boolean), np.zeros((size, 3)), np.empty(size), np.empty(size))
    taken = rows_taken = 0
    for k in range(size):
        begin, many = loop_rows(model, index[k])
        gap, closing = side[k] * x.residual[begin], side[k] * x.psi[begin]
        freely = side[k] * (inner(x.G[begin], free) - c[begin])
        slow = freely < 0.0 and -freely <= SLOW * abs(freely - closing)
        if gap > TOUCHING and not (slow and gap + 0.5 * h * freely <= 0.0):
            continue
        closed.shift[taken] = 2.0 * max(gap, 0.0) / h if slow else bounce[k] * min(0.0, closing)
        closed.first[taken], closed.count[taken] = rows_taken, many
        closed.mu[taken], closed.side[taken] = friction[k], side[k]
        for r in range(many):
            closed.rows[rows_taken + r] = begin + r
        taken += 1
        rows_taken += many
    return Touching(closed.rows[:rows_taken], closed.first[:taken], closed.count[:taken], closed.mu[:taken],
                    closed.given[:taken], closed.direction[:taken], closed.side[:taken], closed.shift[:taken])


@kernel
def advance_moreau(model, o, x, rows, count, known, energy):
    """As `advance`. rows.memory[:, 0] is the energy that contacts which have just closed have taken in the step."""
    n, m = x.v_stage.size, x.psi.size
    index, side, bounce, friction = one_sided_records(model)
    set_all(model, index, OPEN)
    status = OK if known else finish_row(model, o, x, rows, 0)
    if status != OK:
        return status, -1
    equal, use = np.ones(m, types.boolean), np.zeros(m, np.int64)
    for l in index:
        first, many = loop_rows(model, l)
        equal[first:first + many] = False
    free, after, f, half = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    lam, c, q_m = np.zeros(m), np.empty(m), np.empty(x.q_stage.size)
    nothing = closed_contacts(model, x, 1.0, index[:0], side, bounce, friction, c, free)
    for k in range(count):
        t, h = rows.t[k], rows.t[k + 1] - rows.t[k]
        q, v, q_new, v_new = rows.q[k], rows.v[k], rows.q[k + 1], rows.v[k + 1]
        half[:] = 0.5 * h * v
        integrate_kernel(model, q, half, q_m)
        refresh(model, t + 0.5 * h)
        set_all(model, index, ON)
        terms_in_place(model, q_m, v, x.f_ext, x.world, x.M, x.h, x.G, x.gamma)
        residual_rows(model, q_m, x.world, x.residual)
        velocity_rows(model, q_m, v, x.world, x.psi)
        if not input_forces(o, x, t + 0.5 * h, rows.held[k], q_m, v):
            return NOT_FINITE, k
        moving = 0.0
        for r in range(m):
            c[r] = inner(x.G[r], v) - x.psi[r]
            if equal[r]:
                moving = max(moving, abs(c[r]))
        for j in range(n):
            x.M[j, j] += h * x.damping[j]
            f[j] = h * (x.tau[j] - x.h[j]) + inner(x.M[j], v)
        if solve_contacts(x.M, f, x.G, c, equal, nothing, o.rank_tolerance, free, lam)[0] != SOLVED:
            return NOT_CONVERGED, k
        closed = closed_contacts(model, x, h, index, side, bounce, friction, c, free)
        if solve_contacts(x.M, f, x.G, c, equal, closed, o.rank_tolerance, after, lam)[0] != SOLVED:
            return NOT_CONVERGED, k
        by_inputs, damped, by_contacts, new = 0.0, 0.0, 0.0, False
        for j in range(n):
            mean = 0.5 * (v[j] + after[j])
            by_inputs += h * x.tau[j] * mean
            damped += h * x.damping[j] * after[j] * mean
            half[j] = 0.5 * h * after[j]
        by_inputs += 0.5 * h * (held_power(x, q_m, v) + held_power(x, q_m, after))
        for r in closed.rows[closed.first]:
            new = new or (lam[r] != 0.0 and rows.lam[k, r] == 0.0)
        for r in closed.rows:
            by_contacts -= 0.5 * lam[r] * (inner(x.G[r], v) + inner(x.G[r], after))
        integrate_kernel(model, q_m, half, q_new)
        refresh(model, t + h)
        for r in range(m):
            use[r] = 1 if equal[r] and x.holonomic[r] != 0 else 0
        if not push_out(model, o, x, index, side, use, q_new) <= DEEPEST:
            return NOT_CLOSED, k
        for r in range(m):
            if equal[r] and not abs(x.residual[r]) <= o.tolerance * x.row_sizes[r]:
                return NOT_CLOSED, k
            use[r] = 1 if equal[r] else 0
        jacobian_rows(model, q_new, x.world, x.G)
        world_velocities(SCALAR, model, after, x.world)
        velocity_rows(model, q_new, after, x.world, x.psi)
        correction(model, o, x, x.psi, use, x.order[:0])
        v_new[:] = after + x.vector[0]
        status = check(o, q_new, v_new)
        if status != OK:
            return status, k
        if moving <= STILL * max(1.0, largest_size(v)):
            before = energy_of(model, x, q, v) + by_inputs - damped + min(0.0, by_contacts)
            total = energy_of(model, x, q_new, v_new)
            kinetic = total - energy_of(model, x, q_new, x.zero)
            if total > before and kinetic > 0.0:
                v_new *= math.sqrt(max(0.0, 1.0 - (total - before) / kinetic))
        rows.a[k + 1] = (v_new - v) / h
        rows.tau[k + 1] = x.tau
        rows.lam[k + 1] = lam / h
        rows.scalars[k + 1, CONDITION] = np.nan
        rows.scalars[k + 1, INPUT_WORK] = rows.scalars[k, INPUT_WORK] + by_inputs
        rows.scalars[k + 1, OTHER_WORK] = rows.scalars[k, OTHER_WORK] - damped + (0.0 if new else by_contacts)
        rows.memory[k + 1, 0] = -by_contacts if new else 0.0
        set_all(model, index, OPEN)
    set_all(model, index, OPEN)
    return OK, count


class Moreau(Method):
    """The scheme above, for `simulate`."""

    name = "moreau"
    summary = "time-stepping for contacts, first order: impacts are not located, however many there are"
    loop = staticmethod(advance_moreau)

    def _integrator(self, grid, on_grid):
        """What makes the steps of one run."""
        return TimeStepping(self.loop, grid)


METHODS = [Moreau()]
