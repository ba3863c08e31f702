"""Implicit steps on the local state space, with the analytic iteration matrix 1 - h gamma A_hat (Spencer 2004, ch. 5).

The state x = (y, w) is that of the linearization: independent coordinates y and velocities w; q and v follow from it
(`minimal.complete`). A stage of a diagonally implicit Runge-Kutta method,

    y_i = y_n + h sum a_ij ydot_j        w_i = w_n + h sum a_ij wdot_j        a_ii = gamma,

is solved by Newton's method. The linear terms in a variation of (y, w) are those of `linearize`, without differences:
A_hat, and the motions N and X = [Delta S] of q and v. For ball and free joints y is R log(q_n^-1 q) and the matrix is
that of the body-fixed tangent, which differs by O(h): for these the iteration converges linearly, and also for inputs
that feed back the state without a derivative. The method is the fourth-order, L-stable, stiffly accurate one of
Hairer and Wanner (1996, IV.6, table 6.5) with gamma = 1/4.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from liedyn.linear.local import linearize_kernel
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, kernel, kernel_in_place, late
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.compiled.user_functions import call
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.model.constraint_records import refresh
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.coordinate_rates import local_rates
from liedyn.motion.simulation.inputs import add_driven_slopes, add_element_slopes, input_forces
from liedyn.motion.simulation.integrators.explicit import next_row
from liedyn.motion.simulation.integrators.method import Method
from liedyn.motion.simulation.manifold_projection import choose, complete, has_fallen
from liedyn.motion.simulation.singular_passages import is_explicit, note_distance
from liedyn.motion.simulation.stages import check, end_step, energy_due, finish_row, put_power
from liedyn.motion.simulation.workspace import (
    CONDITION, INPUT_WORK, NOT_CONVERGED, NOT_FINITE, OK, OTHER_WORK, SINGULAR,
)

if TYPE_CHECKING:
    from typing import Any

STAGES, GAMMA = 5, 0.25
NODES = np.array([1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0])
TABLEAU = np.array([[1 / 4, 0, 0, 0, 0],
                    [1 / 2, 1 / 4, 0, 0, 0],
                    [17 / 50, -1 / 25, 1 / 4, 0, 0],
                    [371 / 1360, -137 / 2720, 15 / 544, 1 / 4, 0],
                    [25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4]])
ITERATIONS = 30
CONVERGED = 1e-11
"""Size of a Newton step, relative to the state, that ends the iteration: quadratic, so the next would be rounding."""


linearization = late(MODEL, *[VECTOR] * 4, MATRIX, INTEGERS, MATRIX, INTEGERS, MATRIX, types.float64, returns=None)(
    linearize_kernel)
"""Calls `linearize_kernel` at its address, so that it is not compiled again as a part of the loop."""


Coordinates = namedtuple("Coordinates", "R_y virtual_y R_w virtual_w y w")
"""Independent coordinates y and velocities w: arguments of `linearize_kernel`, and indices in q and v."""

Stage = namedtuple("Stage", "base rate q v u_dot a")
"""One stage: (y, w) = base + h gamma rate, at the state (q, v), where u_dot and a are the rates of q and v."""


@kernel
def readers(dependent):
    """Rows that read the independent coordinates, -1 for each as none is of a cut joint, and their indices."""
    places = np.flatnonzero(dependent == 0)
    R = np.zeros((places.size, dependent.size))
    for k in range(places.size):
        R[k, places[k]] = 1.0
    return R, np.full(places.size, -1), places


@kernel
def coordinates(work):
    R_y, virtual_y, y = readers(work.dependent[0])
    R_w, virtual_w, w = readers(work.dependent[1])
    return Coordinates(R_y, virtual_y, R_w, virtual_w, y, w)


@inline
def read(c, of_q, of_v, k):
    """Entry k of (y, w)."""
    return of_q[c.y[k]] if k < c.y.size else of_v[c.w[k - c.y.size]]


@kernel_in_place
def close_loop(settings, work, t, q, v, local):
    """Adds feedback and force elements to local.A: A + B (F_q N dy + F_v X (dy, dw))."""
    nu = work.actuators.shape[1]
    if settings.feedback_address != 0:
        call(settings.feedback_address, t, q, v, v, v, work.feedback, 0)
        close(work.feedback, local, 0)
    if work.drives.shape[1] > nu:
        work.slopes[:] = 0.0
        add_element_slopes(work, t, q, v, work.slopes[0], work.slopes[1])
        if settings.feedback_address != 0:
            add_driven_slopes(work, work.slopes[0], work.slopes[1])
        close(work.slopes, local, nu)


@inline
def close(F, local, first):
    """Closes the loop of forces with the slopes F = (F_q, F_v), whose columns of B begin with column `first`."""
    p, p_y = local.A.shape[0], local.A.shape[0] - local.w.size
    for k in range(F.shape[1]):
        for c in range(p):
            s = 0.0
            for j in range(F.shape[2]):
                s += F[1, k, j] * local.X[j, c]
                if c < p_y:
                    s += F[0, k, j] * local.N[j, c]
            for i in range(p):
                local.A[i, c] += local.B[i, first + k] * s


@kernel
def newton_stage(model, settings, work, rows, k, t, c, s):
    """Solves a stage at time t of the step from row k, with the initial guess in s.q, s.v; returns a status."""
    p_y, p, n, h = c.y.size, s.base.size, s.v.size, GAMMA * (rows.t[k + 1] - rows.t[k])
    u, change, dv, step, A = np.empty(n), np.empty(n), np.empty(n), np.empty(p), np.empty((p, p))
    for _ in range(ITERATIONS):
        status = check(settings, s.q, s.v)
        if status == OK:
            status = complete(model, settings, work, s.q, s.v)
        if status != OK:
            return status
        if not input_forces(settings, work, t, rows.held[k], s.q, s.v):
            return NOT_FINITE
        found, found_y, local = linearization(model, s.q, s.v, work.tau, work.f_ext, c.R_y, c.virtual_y, c.R_w,
                                              c.virtual_w, work.drives, settings.rank_tolerance)
        note_distance(work, local.A, p_y)
        if found[0] != 0 or found_y[0] != 0:
            return SINGULAR
        close_loop(settings, work, t, s.q, s.v, local)
        s.a[:] = local.a
        difference_kernel(model, rows.q[k], s.q, u)
        local_rates(model, u, s.v, s.u_dot)
        dv[:] = s.v - rows.v[k]
        for i in range(p):
            step[i] = s.base[i] - (read(c, u, dv, i) - h * read(c, s.u_dot, s.a, i))
            for j in range(p):
                A[i, j] = (1.0 if i == j else 0.0) - h * local.A[i, j]
        if not solve_square(A, step, p):
            return SINGULAR
        moved = 0.0
        for j in range(n):
            change[j] = 0.0
            for i in range(p_y):
                change[j] += local.N[j, i] * step[i]
            for i in range(p):
                s.v[j] += local.X[j, i] * step[i]
        for i in range(p):
            moved = max(moved, abs(step[i]) * (1.0 if i < p_y else h / GAMMA))
        integrate_kernel(model, s.q, change, s.q)
        if not np.isfinite(moved):
            return NOT_CONVERGED
        if moved < CONVERGED:
            status = complete(model, settings, work, s.q, s.v)
            difference_kernel(model, rows.q[k], s.q, u)
            dv[:] = s.v - rows.v[k]
            for i in range(p):  # the rates from the stage equation itself, which are exact for stiff motions
                s.rate[i] = (read(c, u, dv, i) - s.base[i]) / h
            return status
    return NOT_CONVERGED


@kernel
def implicit_step(model, settings, work, rows, k, c):
    """State and works of row k + 1 from row k, which is complete; returns a status."""
    p, n, t, h = c.y.size + c.w.size, c.R_y.shape[1], rows.t[k], rows.t[k + 1] - rows.t[k]
    rates, base, u, u_dot, a = np.empty((STAGES, p)), np.empty(p), np.empty(n), rows.v[k].copy(), rows.a[k].copy()
    q, v = rows.q[k + 1], rows.v[k + 1]
    for i in range(STAGES):
        base[:] = 0.0
        for j in range(i):
            base += h * TABLEAU[i, j] * rates[j]
        # initial guess: along the last known rates, over the stage's time from the beginning of the step
        for j in range(n):
            u[j] = h * NODES[i] * u_dot[j]
            v[j] = rows.v[k, j] + h * NODES[i] * a[j]
        integrate_kernel(model, rows.q[k], u, q)
        refresh(model, t + h * NODES[i])
        status = newton_stage(model, settings, work, rows, k, t + h * NODES[i], c,
                              Stage(base, rates[i], q, v, u_dot, a))
        if status != OK:
            return status
        put_power(model, settings, work, q, v, a, work.power[0])
        for e in range(2):
            rows.scalars[k + 1, INPUT_WORK + e] += h * TABLEAU[STAGES - 1, i] * work.power[0, e]
    return OK


@kernel(nogil=True)
def advance_implicit(model, settings, work, rows, count, known, energy):
    """Arguments and result as for `advance`."""
    status = OK if known else finish_row(model, settings, work, rows, 0)
    if status != OK:
        return status, -1
    if has_fallen(work):
        choose(model, settings, work, rows.q[0])
    c = coordinates(work)
    base = 0
    for k in range(count):
        h = rows.t[k + 1] - rows.t[k]
        explicit = base < k or is_explicit(work, h, rows.scalars[k, CONDITION])
        if not explicit:
            work.nearest[0] = 0.0
            if has_fallen(work):
                choose(model, settings, work, rows.q[k])
                c = coordinates(work)
            rows.scalars[k + 1, INPUT_WORK:OTHER_WORK + 1] = rows.scalars[k, INPUT_WORK:OTHER_WORK + 1]
            status = implicit_step(model, settings, work, rows, k, c)
            explicit = is_explicit(work, h, work.nearest[0])
            if status == OK and not explicit:
                status = end_step(model, settings, work, rows, k + 1, h, energy_due(settings, rows, k + 1, energy))
            base = k + 1
        if explicit:
            status, base = next_row(model, settings, work, rows, min(base, k), k, energy)
            work.pivots[:] = 1.0, 0.0  # choose the coordinates anew
        if status != OK:
            return status, k
    return OK, min(count, max(base, 1))


class Implicit(Method):
    """The method at the top of this file, for `simulate`."""

    name = "implicit"
    summary = ("diagonally implicit Runge-Kutta of fourth order, L-stable, on minimal coordinates with the analytic "
               "iteration matrix 1 - h gamma A_hat of the local state space")
    loop: Any = staticmethod(advance_implicit)
    uses_derivatives = keeps_constraints = True


METHODS = [Implicit()]
