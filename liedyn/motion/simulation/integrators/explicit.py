"""Explicit Runge-Kutta methods with fixed steps, from their tableaux, without allocation.

    q_i = q + h sum_j a_ij qdot_j        v_i = v + h sum_j a_ij vdot_j        q_new, v_new with b_j in place of a_ij

On the numbers of q, quaternions are treated in their linear space: Qdot = Q (w, 0) / 2 is an ordinary equation in R^4
that preserves the length of Q, so that a method keeps its order; rounding of the length is removed after each step. The
dynamics are evaluated at unit quaternions.

On the group (Munthe-Kaas 1998, 1999; Hairer, Lubich and Wanner 2006, IV.8.2) q_i = q exp(u_i) with local coordinates u
and udot = dexp^-1_{-u} v, started anew at each step; the inverse of dexp is exact here, without truncated commutators.
For one-dof joints both forms are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.vectors import add_multiple, copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.mechanics.tree.energy import kinetic_energy_kernel
from liedyn.motion.simulation.coordinate_rates import coordinate_rates, local_rates, unit_quaternions
from liedyn.motion.simulation.gauss_stages import collocation_step, is_collocation
from liedyn.motion.simulation.integrators.method import Method, tableau
from liedyn.motion.simulation.manifold_projection import energy_of
from liedyn.motion.simulation.momenta_run import step_in_momenta
from liedyn.motion.simulation.singular_passages import BALANCED, NEAR, PARTS, part_end, passing
from liedyn.motion.simulation.stages import end_step, energy_due, finish_row, put_power, stage
from liedyn.motion.simulation.workspace import (
    BOUNDED_ENERGY, CONDITION, INPUT_WORK, MINIMAL, MOMENTA, OK, OTHER_WORK, Moment,
)

if TYPE_CHECKING:
    from typing import Any


@inline
def add_works(settings, work, rows, l, h):
    """Adds the works of a step of length h to row l, from the powers at its stages."""
    stages = settings.tableau.shape[1]
    for c in range(2):
        for j in range(stages):
            rows.scalars[l, INPUT_WORK + c] += h * settings.tableau[stages, j] * work.power[j, c]


@inline
def runge_kutta_step(model, settings, work, rows, start, k, l):
    """State and works of row l from row k, which is complete, and `start` its moment; returns a status."""
    h, stages, n = rows.t[l] - start.t, settings.tableau.shape[1], work.zero.size
    _, row, q, v = start
    u = work.step
    if is_collocation(settings) or settings.formulation == MOMENTA:
        if is_collocation(settings):
            status = collocation_step(model, settings, work, start, h, rows.a[k], (rows.q[l], rows.v[l]))
        else:
            status = step_in_momenta(model, settings, work, start, h, rows.a[k], (rows.q[l], rows.v[l]))
        add_works(settings, work, rows, l, h)
        return status
    put_power(model, settings, work, q, v, rows.a[k], work.power[0])
    copy_to(v, work.q_rate[0, :n])
    copy_to(rows.a[k], work.a_stage[0])
    if not settings.on_group:
        coordinate_rates(model, q, v, work.q_rate[0])
    for i in range(1, stages + 1):
        q_i, v_i = (work.q_stage, work.v_stage) if i < stages else (rows.q[l], rows.v[l])
        u[:] = 0.0
        copy_to(v, v_i)
        part = 0.0
        for j in range(min(i, stages)):
            weight = h * settings.tableau[i, j]
            part += settings.tableau[i, j]
            if weight == 0.0:
                continue
            for c in range(n if settings.on_group else u.size):
                u[c] += weight * work.q_rate[j, c]
            add_multiple(weight, work.a_stage[j], v_i)
        if settings.on_group:
            integrate_kernel(model, q, u, q_i)
        else:
            for c in range(u.size):
                q_i[c] = q[c] + u[c]
        if i < stages:
            if not settings.on_group:
                coordinate_rates(model, q_i, v_i, work.q_rate[i])
                unit_quaternions(model, q_i)
            status = stage(model, settings, work, start.t + part * h, row, i)
            if status != OK:
                return status
            if settings.on_group:
                if settings.stabilisation == MINIMAL:  # the constraints have moved the stage
                    difference_kernel(model, q, q_i, u)
                local_rates(model, u, v_i, work.q_rate[i])
    if not settings.on_group:
        unit_quaternions(model, rows.q[l])
    add_works(settings, work, rows, l, h)
    return OK


@inline
def explicit_step(model, settings, work, rows, start, k, l, energy):
    """Row l, complete, by a step from row k, whose moment is `start`; returns a status. k = l is allowed."""
    for c in (INPUT_WORK, OTHER_WORK):
        rows.scalars[l, c] = rows.scalars[k, c]
    bound = np.inf
    if settings.energy == BOUNDED_ENERGY:  # the energy must not grow by more than the work done in the step
        bound = energy_of(model, work, rows.q[k], rows.v[k]) - rows.scalars[l, INPUT_WORK] - rows.scalars[l, OTHER_WORK]
    status = runge_kutta_step(model, settings, work, rows, start, k, l)
    if status != OK:
        return status
    bound += rows.scalars[l, INPUT_WORK] + rows.scalars[l, OTHER_WORK]
    due = min(energy_due(settings, rows, l, energy), bound)
    return end_step(model, settings, work, rows, l, rows.t[l] - start.t, due)


@inline
def step_in_parts(model, settings, work, rows, base, k, parts, energy):
    """Row k + 1 by `parts` steps from row `base`; returns a status.

    work.nearest[0] gets the largest condition number.
    """
    end, held = rows.t[k + 1], rows.held[k + 1]
    first, row, status = rows.t[base], rows.held[base], OK
    for number in range(parts):
        begin, last = base if number == 0 else k + 1, number + 1 == parts
        start = Moment(rows.t[begin], row, rows.q[begin], rows.v[begin])
        rows.t[k + 1] = end if last else part_end(first, end, number, parts)
        rows.held[k + 1] = held if last else row
        if status == OK:
            status = explicit_step(model, settings, work, rows, start, begin, k + 1, energy)
    return status


@kernel_in_place
def imbalance(model, work, rows, k, l):
    """Energy gained from row k to row l beyond the work done, relative to the kinetic energy."""
    gain = energy_of(model, work, rows.q[l], rows.v[l]) - energy_of(model, work, rows.q[k], rows.v[k])
    for c in (INPUT_WORK, OTHER_WORK):
        gain -= rows.scalars[l, c] - rows.scalars[k, c]
    kinetic_energy_kernel(SCALAR, model, rows.q[l], rows.v[l], work.local, work.number)
    return abs(gain) / work.number[0]


@inline
def next_row(model, settings, work, rows, base, k, energy):
    """Row k + 1 by a step from row `base`, divided into parts near a singular configuration.

    Returns a status and the row from which the next step begins (`liedyn.motion.simulation.singular_passages`).
    """
    condition = rows.scalars[base, CONDITION]
    limit, parts, best, least = passing(condition), 1, 0, np.inf
    work.nearest[0] = condition
    while True:
        status = step_in_parts(model, settings, work, rows, base, k, parts, energy)
        if status != OK or parts == best:  # repeats the best division
            break
        if parts == 1 and work.nearest[0] > limit:
            parts = 2
            continue
        if not work.nearest[0] > NEAR:
            break
        left = imbalance(model, work, rows, base, k + 1)
        if left < least:
            best, least = parts, left
        if least < BALANCED or parts >= PARTS:
            if best == parts:
                break
            parts = best
        else:
            parts *= 2
    stay = base == k and rows.held[k + 1] == rows.held[base] and rows.scalars[k + 1, CONDITION] > limit
    return status, base if stay else k + 1


@kernel_in_place(nogil=True)
def advance(model, settings, work, rows, count, known, energy):
    """At most `count` steps from row 0, which is complete already if `known`; `energy` is the energy at zero work.

    Returns (status, k): rows 0 to k are complete, and the run can continue from row k. If status is not OK, row k + 1
    could not be computed.
    """
    if not known:
        status = finish_row(model, settings, work, rows, 0)
        if status != OK:
            return status, -1
    base = 0
    for k in range(count):
        status, base = next_row(model, settings, work, rows, base, k, energy)
        if status != OK:
            return status, k
    return OK, min(count, max(base, 1))


class ExplicitRungeKutta(Method):
    """An explicit method by its tableau: the rows of A after the first one, which is empty, and the weights b."""

    loop: Any = staticmethod(advance)
    takes_momenta = True

    def __init__(self, name, summary, A, b, on_group=False):
        self.name, self.summary, self.tableau, self.on_group = name, summary, tableau(A, b), on_group
