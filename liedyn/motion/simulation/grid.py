"""The time grid of a run: t_k = t_0 + k dt, where the last step may be shorter."""
import math

import numpy as np

from liedyn.machine.errors import InputError

MOST_STEPS = 1e12
"""Largest number of steps of a run: more are a mistake of units."""
WHOLE = 1e-9
"""Smallest part of a step that counts as rounding of the times: no step is as short as that."""
COARSEST = 0.01
"""Largest part of a step that rounding of the times may be."""


class Grid:
    """Times of the steps, without the times of events between them."""

    def __init__(self, start, end, dt):
        if not end > start:
            raise InputError(f"t_final must come after t0 = {start:g}, got {end:g}")
        if not (dt > 0.0 and (end - start) / dt < MOST_STEPS):
            raise InputError(f"dt must be positive, and make no more than {MOST_STEPS:g} steps to t_final, got {dt:g}")
        dt = min(dt, end - start)
        rounding = 4.0 * math.ulp(max(abs(start), abs(end))) / dt
        if rounding > COARSEST:
            raise InputError(f"dt = {dt:g} is too short for times around {end:g}, which are rounded to "
                             f"{math.ulp(max(abs(start), abs(end))):.2g}; count time from t0 = 0")
        self.start, self.end, self.dt = start, end, dt
        self.whole = max(WHOLE, rounding)
        """Part of a step that counts as rounding of its times."""
        self.steps = max(1, math.ceil((end - start) / dt - self.whole))

    def number(self, t):
        """Number of the step that begins at t or contains it."""
        return math.floor((t - self.start) / self.dt + self.whole)

    def next_time(self, t):
        """The first time of the grid after t."""
        return min(self.start + (self.number(t) + 1) * self.dt, self.end)

    def fill(self, rows, count, last_held):
        """Times of the rows after row 0, at most `count`, and their inputs; returns the number of rows."""
        first = self.number(rows.t.item(0))
        count = min(count, self.steps - first)
        numbers = np.arange(first, first + count + 1)
        rows.t[1:count + 1] = np.minimum(self.start + numbers[1:] * self.dt, self.end)
        if first + count == self.steps:
            rows.t[count] = self.end
        rows.held[:count + 1] = np.minimum(numbers, last_held)
        return count
