"""The time grid of a run: t_k = t_0 + k dt, the last one at the end; and the integrators that step along it."""
import numpy as np

from liedyn.simulation.workspace import OK, copy_row

WHOLE = 1e-9
"""Part of a step that is rounding of the times: no step is made as short as that."""


class Grid:
    """Times of the steps, whatever instants events have put between them."""

    def __init__(self, start, end, dt):
        self.start, self.end, self.dt = start, end, dt
        self.steps = max(1, int(np.ceil((end - start) / dt - WHOLE)))

    def number(self, t):
        """Number of the step that begins at t or contains it."""
        return int(np.floor((t - self.start) / self.dt + WHOLE))

    def next_time(self, t):
        """The first time of the grid behind t."""
        return min(self.start + (self.number(t) + 1) * self.dt, self.end)

    def fill(self, rows, count, last_held):
        """Times of the rows behind row 0, at most `count` of them, and the inputs they hold; returns how many."""
        first = self.number(rows.t[0])
        count = min(count, self.steps - first)
        numbers = first + np.arange(count + 1)
        rows.t[1:count + 1] = np.minimum(self.start + numbers[1:] * self.dt, self.end)
        if first + count == self.steps:
            rows.t[count] = self.end
        rows.held[:count + 1] = np.minimum(numbers, last_held)
        return count


class FixedStep:
    """An integrator whose compiled loop makes one step from row to row.

    Parameters
    ----------
    loop : kernel
        ``loop(model, settings, work, rows, count, known, energy)``, returning (status, last row).
    grid : Grid
    """

    stepping = False

    def __init__(self, loop, grid):
        self.loop, self.grid, self.step = loop, grid, grid.dt

    def restart(self, run):
        """Row 0 has changed: which inputs does it hold?"""
        run.rows.memory[0] = np.nan
        run.rows.held[0] = min(self.grid.number(run.rows.t[0]), len(run.x.table) - 1)

    def advance(self, run, count, known):
        """As many steps as there are up to the end, `count` at most."""
        count = self.grid.fill(run.rows, count, len(run.x.table) - 1)
        return self._go(run, run.rows, count, known)

    def within(self, run, k, t):
        """The state at time t between rows k and k + 1, into row 0 of run.single; returns a status."""
        copy_row(run.rows, k, run.single, 0)
        status = OK
        if t > run.rows.t[k]:
            run.single.t[1] = t
            status, _ = self._go(run, run.single, 1, False)
            copy_row(run.single, 1, run.single, 0)
        return status

    def between(self, run, done):
        """Times between rows at which guards are to be looked at: none, steps are short."""
        return None

    def _go(self, run, rows, count, known):
        return self.loop(run.packed, run.o, run.x, rows, count, known, run.energy_at_no_work)


class TimeStepping(FixedStep):
    """Fixed steps that take impacts in: their loop opens and closes contacts by itself."""

    stepping = True
