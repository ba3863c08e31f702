"""The compiled loop of the explicit fixed-step methods: row after row, nothing allocated."""
import numpy as np

from liedyn.constraints.records import refresh
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.simulation.far import accelerations, stabilise
from liedyn.simulation.friction import keep_directions
from liedyn.simulation.passages import BALANCED, NEAR, PARTS, part_end, passing
from liedyn.simulation.projection import energy_of
from liedyn.simulation.rates import put_power, wanted_energy
from liedyn.simulation.rk4 import rk4_step
from liedyn.simulation.rkmk import rkmk_step
from liedyn.simulation.workspace import (
    BOUNDED_ENERGY, CONDITION, DIVERGED, INPUT_WORK, MINIMAL, NOT_FINITE, OK, OTHER_WORK, RK4,
)
from liedyn.tree.energy import kinetic_energy_kernel


@kernel_in_place
def finish_row(model, o, x, rows, k):
    """Accelerations, multipliers and condition number of row k; returns a status."""
    refresh(model, rows.t[k])
    status = accelerations(o.formulation, model, o, x, rows.t[k], rows.held[k], rows.q[k], rows.v[k],
                           rows.a[k], rows.lam[k])
    rows.scalars[k, CONDITION] = x.number[0]
    for j in range(x.tau.size):
        rows.tau[k, j] = x.tau[j]
    if o.friction != 0:
        keep_directions(model, x)
    return status


@kernel_in_place
def check(o, q, v):
    """Is a new state usable?"""
    for k in range(q.size):
        if not np.isfinite(q[k]):
            return NOT_FINITE
    for j in range(v.size):
        if not np.isfinite(v[j]):
            return NOT_FINITE
        if abs(v[j]) > o.largest[j]:
            return DIVERGED
    return OK


@inline
def explicit_step(model, o, x, rows, k, l, t, row, energy):
    """Row l, complete, by a step from row k at time t with inputs `row`; returns a status. Both may be one row."""
    h = rows.t[l] - t
    q, v, a, q_new, v_new = rows.q[k], rows.v[k], rows.a[k], rows.q[l], rows.v[l]
    work = rows.scalars[l, INPUT_WORK:OTHER_WORK + 1]
    work[0], work[1] = rows.scalars[k, INPUT_WORK], rows.scalars[k, OTHER_WORK]
    bound = energy_of(model, x, q, v) - work[0] - work[1] if o.energy == BOUNDED_ENERGY else 0.0
    put_power(model, o, x, q, v, a, x.power[0])
    if o.method == RK4 and o.stabilisation != MINIMAL:  # whose stages must be configurations
        status = rk4_step(model, o, x, t, h, row, q, v, a, q_new, v_new, work)
    else:
        status = rkmk_step(model, o, x, t, h, row, q, v, a, q_new, v_new, work)
    if status == OK:
        status = check(o, q_new, v_new)
    if status == OK:
        wanted = wanted_energy(o, energy, work[0], work[1])
        if o.energy == BOUNDED_ENERGY:  # nor may a step gain more than the work done in it
            wanted = min(wanted, bound + work[0] + work[1])
        status = stabilise(o.stabiliser, model, o, x, h, wanted, q_new, v_new)
    if status == OK:
        status = check(o, q_new, v_new)
    if status == OK:
        status = finish_row(model, o, x, rows, l)
    return status


@inline
def step_in_parts(model, o, x, rows, base, k, parts, energy):
    """Row k + 1 by so many steps from row `base`; returns a status. x.nearest[0] grows to the largest condition number.
    """
    end, held = rows.t[k + 1], rows.held[k + 1]
    first, row, status = rows.t[base], rows.held[base], OK
    for number in range(parts):
        start = base if number == 0 else k + 1
        t, last = rows.t[start], number + 1 == parts
        rows.t[k + 1] = end if last else part_end(first, end, number, parts)
        rows.held[k + 1] = held if last else row
        if status == OK:
            status = explicit_step(model, o, x, rows, start, k + 1, t, row, energy)
    return status


@kernel_in_place
def imbalance(model, x, rows, k, l):
    """Energy gained from row k to row l beyond the work done, by the kinetic energy."""
    gain = energy_of(model, x, rows.q[l], rows.v[l]) - energy_of(model, x, rows.q[k], rows.v[k])
    for c in (INPUT_WORK, OTHER_WORK):
        gain -= rows.scalars[l, c] - rows.scalars[k, c]
    kinetic_energy_kernel(SCALAR, model, rows.q[l], rows.v[l], x.local, x.number)
    return abs(gain) / x.number[0]


@inline
def next_row(model, o, x, rows, base, k, energy):
    """Row k + 1 by a step from row `base`, near a singular configuration in parts.

    Returns a status and the row from which the next step begins (`liedyn.simulation.passages`).
    """
    condition = rows.scalars[base, CONDITION]
    limit, parts, best, least = passing(condition), 1, 0, np.inf
    x.nearest[0] = condition
    while True:
        status = step_in_parts(model, o, x, rows, base, k, parts, energy)
        if status != OK or parts == best:  # the best of all, once more
            break
        if parts == 1 and x.nearest[0] > limit:
            parts = 2
            continue
        if not x.nearest[0] > NEAR:
            break
        left = imbalance(model, x, rows, base, k + 1)
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


@kernel_in_place
def advance(model, o, x, rows, count, known, energy):
    """At most `count` steps from row 0, which is complete already if `known`; `energy` is that at zero work.

    Returns (status, k): rows 0 to k are complete, and the motion can go on from row k. With a status other than OK, row
    k + 1 could not be reached.
    """
    if not known:
        status = finish_row(model, o, x, rows, 0)
        if status != OK:
            return status, -1
    base = 0
    for k in range(count):
        status, base = next_row(model, o, x, rows, base, k, energy)
        if status != OK:
            return status, k
    return OK, min(count, max(base, 1))
