"""The record of singular passages: where the condition number of G has a peak on the rows of a run.

Close to a singular configuration the condition number c is 1 / |s|, where s goes through zero at a constant rate: a
peak lies between the row with the largest c and the larger of its neighbours, as far from each as its 1 / c says.
"""
import numpy as np

from liedyn.simulation.trajectory import EventRecord
from liedyn.simulation.workspace import CONDITION
from liedyn.tree.configuration import difference_kernel, integrate_kernel

NAME = "singular passage"
PEAK = 30.0
"""Factor by which a peak rises above the smallest condition number since the passage before."""


class Passages:
    """Looks at the rows of a run as they come, and puts singular passages among the events."""

    def __init__(self, run):
        self.run, self.tail, self.least = run, [], np.inf

    def look(self, last):
        """Rows 0 to `last`, of which row 0 is the last one of before unless an event has changed it."""
        run, rows = self.run, self.run.rows
        here = [(rows.t[k], rows.scalars[k, CONDITION], rows.q[k], rows.v[k]) for k in (0, last)]
        if not self.tail or self.tail[-1][0] != here[0][0] or self.tail[-1][1] != here[0][1]:
            self.tail, self.least = [_copy(here[0])], here[0][1]
        before = self.tail[:-1]
        t = np.concatenate([[row[0] for row in before], rows.t[:last + 1]])
        c = np.concatenate([[row[1] for row in before], rows.scalars[:last + 1, CONDITION]])
        inner = c[1:-1]
        behind = 0  # the row up to which `least` counts
        for k in np.flatnonzero((inner > c[:-2]) & (inner >= c[2:]) & (inner > PEAK * min(self.least, c.min()))) + 1:
            self.least = min(self.least, c[behind:k].min())
            if c[k] > PEAK * self.least:
                first = k if c[k + 1] > c[k - 1] else k - 1
                states = [row[2:] for row in before] + list(zip(rows.q[:last + 1], rows.v[:last + 1]))
                self._record(t[first:first + 2], c[first:first + 2], states[first:first + 2], float(c[k]))
                self.least, behind = np.inf, k + 1
        self.least = min(self.least, c[behind:].min())
        self.tail = [_copy((rows.t[k], rows.scalars[k, CONDITION], rows.q[k], rows.v[k]))
                     for k in range(max(0, last - 1), last + 1)]
        run.recorder.events.sort(key=lambda event: event.t)

    def _record(self, t, c, states, peak):
        """One passage between two rows, with the cubic through their states."""
        run, h = self.run, float(t[1] - t[0])
        (q0, v0), (q1, v1) = states
        x = c[1] / (c[0] + c[1])
        u, change, q = np.empty_like(v0), np.empty_like(v0), np.empty_like(q0)
        difference_kernel(run.packed, q0, q1, u)
        change[:] = x * (1 - x) ** 2 * h * v0 + x * x * (3 - 2 * x) * u - x * x * (1 - x) * h * v1
        integrate_kernel(run.packed, q0, change, q)
        v = (1 - x) * (1 - 3 * x) * v0 + 6 * x * (1 - x) * u / h + x * (3 * x - 2) * v1
        run.recorder.events.append(EventRecord(
            float(t[0] + x * h), NAME, q, v, q.copy(), v.copy(), np.zeros(len(run.x.psi)), 0.0, condition=peak))


def _copy(row):
    return (float(row[0]), float(row[1]), row[2].copy(), row[3].copy())
