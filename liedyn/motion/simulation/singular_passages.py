"""How fixed steps pass singular configurations.

At a distance s from a singular configuration, where s is the ratio of the smallest to the largest singular value of G,
rounding of the closure error moves the configuration by eps / s, the constrained velocities by eps / s^2 and the
accelerations by eps / s^3. If the motion itself is smooth through the singular configuration, a step that evaluates it
very close to that configuration is worse than one that does not. Therefore

* a state that is much closer to a singular configuration than the one before is recorded, but the next step does not
  begin there: it begins at the state before, and is twice as long;
* a step with a stage much closer than that is repeated in two unequal parts, whose stages are elsewhere.

If a motion approaches a singular configuration in many small steps, neither happens. A motion that passes at a small
distance s turns within the time in which it moves by s, which a fixed step may not resolve. The energy shows that: a
step near a singular configuration whose energy gain differs from the work done is repeated in 2, 4, ... parts, and the
best of these is accepted.

The stages of the implicit method are solved on minimal coordinates, where these errors are of first order, and its
coefficients, up to 14, magnify them. Close to a singular configuration its steps are made by the explicit method,
unless the motion is too stiff for that.

Singular passages are recorded at peaks of the condition number of G on the rows of a run. Close to a singular
configuration the condition number c is 1 / |s|, where s goes through zero at a constant rate: the peak lies between the
row with the largest c and the larger of its neighbours, at distances proportional to 1 / c.
"""
import math

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.motion.simulation.trajectory import EventRecord
from liedyn.motion.simulation.workspace import CONDITION

CLOSER = 10.0
"""Growth of the condition number of G from one state to the next that counts as much closer to being singular."""
CLOSE = 1e3
"""Condition number below which rounding is harmless: an error of eps 1e9 in the accelerations."""
NEAR = 30.0
"""Condition number above which the energy of a step is checked, and the implicit method makes explicit steps."""
BALANCED = 1e-11
"""Energy gained beyond the work, relative to the kinetic energy, with which a step is accepted."""
PARTS = 64
"""Largest number of parts of a step."""
NAME = "singular passage"
PEAK = 30.0
"""Ratio of a peak to the smallest condition number since the passage before."""


@inline
def passing(condition):
    """The condition number above which no step begins, after a state with this one."""
    return max(CLOSE, CLOSER * condition)


@inline
def part_end(start, end, number, parts):
    """End of part 0, 1, ... of a step: at 0.6 for two parts, at 0.3, 0.55 and 0.8 for four."""
    return start + (number + 1.2) / parts * (end - start)


@inline
def is_explicit(work, h, condition):
    """True if an implicit step of length h is to be replaced by an explicit one, at this condition number."""
    return condition > NEAR and h * work.nearest[1] < 1.0


@kernel_in_place
def note_distance(work, A, p):
    """Stores the condition number of an implicit stage, and the fastest rate of wdot = -k y - d w; p: size of y."""
    condition = 1.0 / work.pivots[1]
    work.nearest[0] = max(work.nearest[0], condition)
    if not condition > NEAR:
        work.nearest[1] = 0.0
        for i in range(p, A.shape[0]):
            k, d = 0.0, 0.0
            for j in range(p):
                k += abs(A[i, j])
            for j in range(p, A.shape[0]):
                d += abs(A[i, j])
            work.nearest[1] = max(work.nearest[1], math.sqrt(k), d)


class Passages:
    """Checks the rows of a run as they are computed, and adds singular passages to the events."""

    def __init__(self):
        self.before, self.end, self.least = [], None, np.inf

    def look(self, run, last):
        """Rows 0 to `last`; row 0 is the last row of the block before, unless an event has changed it."""
        rows, before, c = run.rows, self.before, run.rows.scalars[:last + 1, CONDITION]
        if self.end != (rows.t[0], c[0]):
            before, self.least = [], c[0]
        if before:
            c = np.concatenate([[row[1] for row in before], c])
        inner, least, found = c[1:-1], c.min(), ()
        peak = PEAK * min(self.least, least)
        behind = 0  # the row up to which `least` is valid
        if np.fmax.reduce(inner, initial=-np.inf) > peak:
            t = np.concatenate([[row[0] for row in before], rows.t[:last + 1]])
            found = np.flatnonzero((inner > c[:-2]) & (inner >= c[2:]) & (inner > peak)) + 1
        for k in found:
            self.least = min(self.least, c[behind:k].min())
            if c[k] > PEAK * self.least:
                first = k if c[k + 1] > c[k - 1] else k - 1
                states = [row[2:] for row in before] + list(zip(rows.q[:last + 1], rows.v[:last + 1]))
                _record(run, t[first:first + 2], c[first:first + 2], states[first:first + 2], float(c[k]))
                self.least, behind = np.inf, k + 1
        self.least = min(self.least, c[behind:].min() if behind else least)
        self.end = float(rows.t[last]), float(c[-1])
        self.before = [(float(rows.t[last - 1]), float(c[-2]), rows.q[last - 1].copy(), rows.v[last - 1].copy())]
        if run.recorder.events:
            run.recorder.events.sort(key=lambda event: event.t)


def _record(run, t, c, states, peak):
    """Records one passage between two rows, with the cubic interpolation of their states."""
    h = float(t[1] - t[0])
    (q0, v0), (q1, v1) = states
    x = c[1] / (c[0] + c[1])
    u, change, q = np.empty_like(v0), np.empty_like(v0), np.empty_like(q0)
    difference_kernel(run.packed, q0, q1, u)
    change[:] = x * (1 - x) ** 2 * h * v0 + x * x * (3 - 2 * x) * u - x * x * (1 - x) * h * v1
    integrate_kernel(run.packed, q0, change, q)
    v = (1 - x) * (1 - 3 * x) * v0 + 6 * x * (1 - x) * u / h + x * (3 * x - 2) * v1
    run.recorder.events.append(EventRecord(
        float(t[0] + x * h), NAME, q, v, q.copy(), v.copy(), np.zeros(len(run.x.psi)), 0.0, condition=peak))
