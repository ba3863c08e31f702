"""Time-stepping with contacts: smooth steps while contact modes do not change, and impulses where they do.

A step does not locate impact times. Each contact's mode at the beginning of a step - open, or closed and at rest along
its normal, sticking or sliding - is assumed for the whole step, which the classical Runge-Kutta method makes with
closed contacts as equations, as `simulate` does between events. The step is accepted if at its beginning and its end
nothing penetrates, nothing pulls, friction is within its disk, and no slip has reversed. So flight, rolling and sliding
are of fourth order, and rolling bodies are not slowed down.

A step that is not accepted is made by Moreau's method (Moreau 1988; Jean 1999). From the free motion (q_f, v_f),
without contacts,

    M (v+ - v_f) = -G^T Lambda    G v+ = b    0 <= P_n,  0 <= u_n^+ + e u_n^-,  complementary

for the contacts that are closed in the middle of the step, with friction opposing u_t^+
(`liedyn.mechanics.contact.contact_problem`); M and G are those at q_f, where v_f belongs: in axes that turn with a
body, a velocity at one configuration is meaningless at another. Then q+ = q_f exp(h (v+ - v_f) / 2) is projected on the
equations and out of penetrated contacts, in the metric of the kinetic energy, and v+ on the rows of resting contacts.
Any number of impacts within a step is one impulse, so that accumulation points and rest need no special treatment; the
price is first order in these steps.

A contact that would close slowly within the step is lowered to its surface: u_n^+ >= -2 gap / h instead of Newton's
law, so that it comes to rest on the surface. In such a step energy may grow by no more than the work done: the
potential energy that impulses and projections have added is subtracted from the speed along their displacement. Other
speeds change only if energy would grow although contacts have dissipated some: they are not slowed down because an
instant of contact is known to a step only, so that a frictionless landing leaves what is along the surface.

For joints with so much damping that explicit steps would be unstable, the free motion uses the midpoint
q_m = q exp(h v / 2),

    (M + h D) (v_f - v) = h (tau - h(q_m, v)) - G^T lam      q_f = q_m exp(h v_f / 2)

with D the damping. An example is a rod between two balls that spins about itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.vectors import add_multiple, copy_to, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.mechanics.contact.complementarity import SOLVED
from liedyn.mechanics.contact.contact_problem import System, Touching, solve_contacts
from liedyn.mechanics.contact.contact_state import AT_REST, TOUCHING
from liedyn.mechanics.contact.sliding_friction import friction_limit, is_dry
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import terms_in_place
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_velocities
from liedyn.model.constraint_records import loop_rows, refresh
from liedyn.model.packed import OFF, ON, OPEN
from liedyn.motion.simulation.inputs import held_power, input_forces
from liedyn.motion.simulation.integrators.method import Method, TimeStepping
from liedyn.motion.simulation.integrators.out_of_contacts import DEEPEST, lift_out, push_out
from liedyn.motion.simulation.integrators.smooth_rows import (
    IN_CONTACT, IN_FLIGHT, LEFT, NOISE, OneSided, choose_statuses, is_stiff, one_sided_records, put_rates,
    room_for_step, set_all, smooth_row,
)
from liedyn.motion.simulation.manifold_projection import correction, energy_of, metric
from liedyn.motion.simulation.stages import check, finish_row
from liedyn.motion.simulation.workspace import (
    CONDITION, INPUT_WORK, NOT_CLOSED, NOT_CONVERGED, NOT_FINITE, OK, OTHER_WORK,
)

if TYPE_CHECKING:
    from typing import Any

SLOW = 2.0
"""A contact closes slowly if the free motion needs no more than this number of steps to build its speed up."""
STICKING = 1.0 - 1e-9
"""Fraction of its disk within which friction holds."""
STILL = 1e-10
"""Speed of targets, relative to all speeds, that is rounding: the work of moving targets is not bounded."""


# ---- impulses


@kernel
def closed_contacts(model, work, h, contacts, start):
    """The contacts of an impulse step: those that are closed in its middle, or come to rest on their surfaces.

    work.residual and work.psi are those of the free motion at its end, `start` (m) is psi at the beginning of the step.
    """
    size, rows = contacts.index.size, np.empty(work.psi.size, np.int64)
    closed = Touching(rows, np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size),
                      np.zeros(size, types.boolean), np.zeros((size, 3)), np.empty(size), np.empty(size),
                      np.full(size, -1.0))
    taken = rows_taken = 0
    for k in range(size):
        begin, many = loop_rows(model, contacts.index[k])
        gap, freely, closing = (contacts.side[k] * work.residual[begin], contacts.side[k] * work.psi[begin],
                                contacts.side[k] * start[begin])
        middle = gap - 0.5 * h * freely
        slow = freely < 0.0 and -freely <= SLOW * abs(freely - closing)
        if middle > TOUCHING and not (slow and gap <= 0.0):
            continue
        closed.shift[taken] = 2.0 * max(middle, 0.0) / h if slow else contacts.bounce[k] * min(0.0, closing)
        closed.first[taken], closed.count[taken] = rows_taken, many
        closed.mu[taken], closed.side[taken] = contacts.friction[k], contacts.side[k]
        if is_dry(model, contacts.index[k]):
            w = abs(start[begin + 1])
            closed.limit[taken] = h * friction_limit(model, contacts.index[k], w, w > AT_REST)
        for r in range(many):
            closed.rows[rows_taken + r] = begin + r
        taken += 1
        rows_taken += many
    return Touching(closed.rows[:rows_taken], closed.first[:taken], closed.count[:taken], closed.mu[:taken],
                    closed.given[:taken], closed.direction[:taken], closed.side[:taken], closed.shift[:taken],
                    closed.limit[:taken])


@kernel
def damped_row(model, settings, work, rows, k, room):
    """The free motion from row k to row k + 1, with implicit dampers; returns a status."""
    h, q, v = rows.t[k + 1] - rows.t[k], rows.q[k], rows.v[k]
    room.half[:] = 0.5 * h * v
    integrate_kernel(model, q, room.half, room.q)
    refresh(model, rows.t[k] + 0.5 * h)
    set_all(model, room.contacts.index, OPEN)
    terms_in_place(model, room.q, v, work.f_ext, work.world, Terms(work.M, work.h, work.G, work.gamma))
    velocity_rows(model, room.q, v, work.world, work.psi)
    if not input_forces(settings, work, rows.t[k] + 0.5 * h, rows.held[k], room.q, v):
        return NOT_FINITE
    for r in range(work.psi.size):
        room.c[r] = inner(work.G[r], v) - work.psi[r]
    for j in range(v.size):
        work.M[j, j] += h * work.damping[j]
        room.after[j] = h * (work.tau[j] - work.h[j]) + inner(work.M[j], v)
    none = OneSided(room.contacts.index[:0], room.contacts.side, room.contacts.bounce, room.contacts.friction)
    nothing = closed_contacts(model, work, h, none, room.start)
    system = System(work.M, room.after, work.G, room.c, room.equal)
    if solve_contacts(system, nothing, settings.rank_tolerance, room.free, room.force)[0] != SOLVED:
        return NOT_CONVERGED
    room.half[:] = 0.5 * h * room.free
    by_inputs, damped = 0.5 * h * (held_power(work, room.q, v) + held_power(work, room.q, room.free)), 0.0
    for j in range(v.size):
        by_inputs += room.half[j] * work.tau[j] + 0.5 * h * v[j] * work.tau[j]
        damped += h * work.damping[j] * room.free[j] * 0.5 * (v[j] + room.free[j])
    integrate_kernel(model, room.q, room.half, rows.q[k + 1])
    copy_to(room.free, rows.v[k + 1])
    copy_to(work.tau, rows.tau[k + 1])
    rows.scalars[k + 1, INPUT_WORK] = rows.scalars[k, INPUT_WORK] + by_inputs
    rows.scalars[k + 1, OTHER_WORK] = rows.scalars[k, OTHER_WORK] - damped
    return OK


@kernel
def put_impulses(model, settings, work, rows, k, stiff, room):
    """room.after and the impulses room.force after the free motion in row k + 1, and their effect on the energy.

    Marks the rows of contacts that then rest in room.rests; returns a status, the energy that contacts have added, and
    the part of it that is counted in the works of the row.
    """
    h, q, v = rows.t[k + 1] - rows.t[k], rows.q[k + 1], rows.v[k + 1]
    refresh(model, rows.t[k + 1])
    set_all(model, room.contacts.index, ON)
    terms_in_place(model, q, v, work.f_ext, work.world, Terms(work.M, work.h, work.G, work.gamma))
    residual_rows(model, q, work.world, work.residual)
    velocity_rows(model, q, v, work.world, work.psi)
    for j in range(v.size):
        work.M[j, j] += h * work.damping[j] if stiff else 0.0
    for j in range(v.size):
        room.half[j] = inner(work.M[j], v)
    for r in range(work.psi.size):
        room.c[r] = inner(work.G[r], v) - work.psi[r]
    room.after[:] = v
    room.force[:] = 0.0
    room.rests[:] = 0
    rows.memory[k + 1, :] = 0.0
    closed = closed_contacts(model, work, h, room.contacts, room.start)
    if closed.first.size == 0:
        return OK, 0.0, 0.0
    system = System(work.M, room.half, work.G, room.c, room.equal)
    if solve_contacts(system, closed, settings.rank_tolerance, room.after, room.force)[0] != SOLVED:
        return NOT_CONVERGED, 0.0, 0.0
    given = booked = 0.0
    for e in range(closed.first.size):
        first, count, done, rubbed = closed.rows[closed.first[e]], closed.count[e], 0.0, 0.0
        for r in range(first, first + count):
            done -= 0.5 * room.force[r] * (room.start[r] + inner(work.G[r], room.after) - room.c[r])
            rubbed += room.force[r] * room.force[r] if r > first else 0.0
        normal = abs(room.force[first])
        if normal > 0.0 and closed.shift[e] >= 0.0:
            room.rests[first] = 1
            if math.sqrt(rubbed) < STICKING * closed.mu[e] * normal:
                room.rests[first + 1:first + count] = 1
        if normal > 0.0 and rows.lam[k, first] == 0.0:
            rows.memory[k + 1, first] = -done
        else:
            booked += done
        given += done
    rows.scalars[k + 1, OTHER_WORK] += booked
    for j in range(v.size):
        rows.scalars[k + 1, INPUT_WORK] += 0.5 * h * rows.tau[k + 1, j] * (room.after[j] - v[j])
        rows.scalars[k + 1, OTHER_WORK] -= 0.5 * h * work.damping[j] * (room.after[j] ** 2 - v[j] ** 2)
    return OK, given, booked


@kernel_in_place
def keep_rests(model, settings, work, use, q, v):
    """The nearest v that satisfies the marked rows at q."""
    metric(model, settings, work, q)
    world_positions(SCALAR, model, q, work.world)
    jacobian_rows(model, q, work.world, work.G)
    world_velocities(SCALAR, model, v, work.world)
    velocity_rows(model, q, v, work.world, work.psi)
    correction(model, settings, work, work.psi, use, work.order[:0])
    add_multiple(1.0, work.vector[0], v)


@kernel
def bound_energy(model, settings, work, allowed, lost, room, q, v):
    """Reduces the speed along room.half, where impulses have moved q, until the energy at (q, v) is within its bound.

    Velocities orthogonal to it are reduced only if it then exceeds the bound by more than contacts have `lost`.
    """
    along, excess = room.half, energy_of(model, work, q, v) - allowed
    if excess > 0.0 and largest_size(along) > NOISE:
        along *= largest_size(v) / largest_size(along)
        room.after[:] = v + along
        still = energy_of(model, work, q, work.zero)
        square = 2.0 * (energy_of(model, work, q, along) - still)
        speed = energy_of(model, work, q, room.after) - allowed - excess - 0.5 * square
        if square > 0.0 and speed != 0.0:
            speed /= square
            v += along * speed * (math.sqrt(max(0.0, 1.0 - 2.0 * excess / (speed * speed * square))) - 1.0)
            keep_rests(model, settings, work, room.use, q, v)
    total = energy_of(model, work, q, v)
    kinetic = total - energy_of(model, work, q, work.zero)
    if total > allowed + lost and kinetic > 0.0:
        v *= math.sqrt(max(0.0, 1.0 - (total - allowed - lost) / kinetic))


@kernel
def impulse_row(model, settings, work, rows, k, stiff, room):
    """Row k + 1 by impulses after the free motion, which the row has already; returns a status."""
    h, m, n = rows.t[k + 1] - rows.t[k], work.psi.size, work.zero.size
    q, v, q_new, v_new = rows.q[k], rows.v[k], rows.q[k + 1], rows.v[k + 1]
    status, given, booked = put_impulses(model, settings, work, rows, k, stiff, room)
    if status != OK:
        return status
    moving = largest_size(room.c)
    for j in range(n):
        room.half[j] = 0.5 * h * (room.after[j] - v_new[j])
    if max(largest_size(v), largest_size(room.after)) <= AT_REST:  # what rests does not move, held by whatever forces
        copy_to(q, q_new)
        room.half[:] = 0.0
    copy_to(q_new, room.q)
    integrate_kernel(model, q_new, room.half, q_new)
    for r in range(m):
        room.use[r] = 1 if (room.equal[r] or room.rests[r] != 0) and work.holonomic[r] != 0 else 0
    if not push_out(model, settings, work, room.contacts, room.use, q_new) <= DEEPEST:
        copy_to(room.q, q_new)
        integrate_kernel(model, q_new, room.half, q_new)
        if not lift_out(model, settings, work, room.contacts, room, q_new) <= DEEPEST:
            return NOT_CLOSED
    for r in range(m):
        if room.equal[r] and not abs(work.residual[r]) <= settings.tolerance * work.row_sizes[r]:
            return NOT_CLOSED
        room.use[r] = 1 if room.equal[r] or room.rests[r] != 0 else 0
    v_new[:] = room.after
    keep_rests(model, settings, work, room.use, q_new, v_new)
    status = check(settings, q_new, v_new)
    if status != OK:
        return status
    if moving <= STILL * max(1.0, largest_size(v)):
        allowed = energy_of(model, work, q, v) + min(0.0, given) - booked
        for c in (INPUT_WORK, OTHER_WORK):
            allowed += rows.scalars[k + 1, c] - rows.scalars[k, c]
        difference_kernel(model, room.q, q_new, room.half)
        bound_energy(model, settings, work, allowed, max(0.0, -given), room, q_new, v_new)
    rows.a[k + 1] = (v_new - v) / h
    rows.lam[k + 1] = room.force / h
    rows.scalars[k + 1, CONDITION] = np.nan
    return OK


# ---- the loop


@kernel
def moreau_row(model, settings, work, rows, k, known, room):
    """Row k + 1 from row k by a smooth step or by one with impulses; returns a status."""
    m, h, closed, same = work.psi.size, rows.t[k + 1] - rows.t[k], False, True
    refresh(model, rows.t[k])
    stiff = is_stiff(model, work, h, rows.q[k])
    put_rates(model, work, room.contacts.index, rows.q[k], rows.v[k])
    room.start[:] = work.psi
    smooth, status = choose_statuses(model, work, room.contacts, rows.v[k], room.status) and not stiff, LEFT
    for c in range(room.contacts.index.size):
        closed, same = closed or room.status[c] > OFF, same and room.status[c] == room.before[c]
    if smooth:
        made = rows.memory[k, m]
        complete = known and (made == IN_FLIGHT and not closed or made == IN_CONTACT and same)
        room.before[:] = room.status
        status = smooth_row(model, settings, work, rows, k, complete, room, True)
        if status == OK:
            rows.memory[k + 1, :] = 0.0
            rows.memory[k + 1, m] = IN_CONTACT if closed else IN_FLIGHT
            return OK
    flies = smooth and not closed and status == LEFT  # row k + 1 has the free motion already
    if not flies and not stiff:
        room.status[:] = OPEN
        flies = smooth_row(model, settings, work, rows, k, False, room, False) == OK
    if not flies:
        status = damped_row(model, settings, work, rows, k, room)
        if status != OK:
            return status
    return impulse_row(model, settings, work, rows, k, not flies, room)


@kernel(nogil=True)
def advance_moreau(model, settings, work, rows, count, known, energy):
    """Arguments and result as for `advance`; if `count` is zero, row 0 is completed as if no contact were closed."""
    contacts = one_sided_records(model)
    room = room_for_step(model, work, contacts)
    set_all(model, contacts.index, OPEN)
    if count == 0 and not known:
        return finish_row(model, settings, work, rows, 0), 0
    for k in range(count):
        status = moreau_row(model, settings, work, rows, k, known or k > 0, room)
        if status != OK:
            set_all(model, contacts.index, OPEN)
            return status, k
    set_all(model, contacts.index, OPEN)
    return OK, count


class Moreau(Method):
    """The scheme at the top of this file, for `simulate`."""

    name = "moreau"
    summary = "time-stepping for contacts: impacts are not located, however many there are, and of first order"
    loop: Any = staticmethod(advance_moreau)

    def _integrator(self, grid, on_grid):
        """The object that makes the steps of one run."""
        return TimeStepping(self.loop, grid)


METHODS = [Moreau()]
