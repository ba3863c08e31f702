"""The interface of an integration method: how `simulate` makes its steps, and the method's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.motion.runge_kutta import CLASSICAL, tableau
from liedyn.motion.simulation.workspace import OK, copy_row

if TYPE_CHECKING:
    from typing import Any


class Method:
    """Base of all methods.

    Attributes
    ----------
    name, summary : str
        For the argument of `simulate` and for its docstring.
    loop : kernel
        For methods with fixed steps: makes one step from row to row,
        ``loop(model, settings, work, rows, count, known, energy)``, and returns (status, last row).
    uses_derivatives : bool
        True if it uses the derivative of a feedback.
    keeps_constraints : bool
        True if the constraints are part of its equations; the state is then not projected, and contacts cannot slide.
    takes_momenta : bool
        True if it can integrate momenta in place of velocities (`liedyn.motion.simulation.momenta_run`).
    tableau, on_group, rho : ndarray, bool, float
        As in `Settings`. A method that leaves a step to an explicit one uses the classical one on the group.
    """

    name: str
    summary: str
    loop: Any = None
    uses_derivatives: bool = False
    keeps_constraints: bool = False
    takes_momenta: bool = False
    tableau: Any = tableau(*CLASSICAL)
    on_group: bool = True
    rho: float = 0.0

    def _integrator(self, grid, on_grid):
        """The object that makes the steps of one run; `on_grid`: the user has chosen the grid."""
        return FixedStep(self.loop, grid)


class FixedStep:
    """An integrator whose compiled loop makes one step from row to row of the time grid."""

    stepping, completes = False, True

    def __init__(self, loop, grid):
        self.loop, self.grid, self.step = loop, grid, grid.dt

    def restart(self, run):
        """Called when row 0 has changed: sets its inputs."""
        run.rows.memory[0] = np.nan
        run.rows.held[0] = min(self.grid.number(run.rows.t[0]), len(run.x.table) - 1)

    def advance(self, run, count, known):
        """Makes the steps up to the end of the run, at most `count`."""
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
        """Times between rows at which guards are evaluated: none, as steps are short."""
        return None

    def _go(self, run, rows, count, known):
        return self.loop(run.packed, run.o, run.x, rows, count, known, run.energy_at_no_work)


class TimeStepping(FixedStep):
    """Fixed steps that include impacts: their loop opens and closes contacts by itself."""

    stepping, completes = True, False
