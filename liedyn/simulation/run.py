"""A run: steps in chunks of compiled rows, events between them, and what is kept when something goes wrong.

The compiled loops know nothing of events. They fill a chunk of rows; guards are evaluated on the rows afterwards, the
first crossing is located by repeating its step with a part of its length, and what came later is thrown away.
"""
import numpy as np

from liedyn.constraints.records import refresh
from liedyn.errors import SimulationError
from liedyn.functions import raise_errors
from liedyn.simulation.crossings import first_crossing
from liedyn.simulation.energy_check import EnergyCheck
from liedyn.simulation.fixed_step import advance
from liedyn.simulation.passage_events import Passages
from liedyn.simulation.projection import energy_of
from liedyn.simulation.switching import happen, pulling, release
from liedyn.simulation.workspace import (
    DIVERGED, NOT_CLOSED, NOT_CONSISTENT, NOT_CONVERGED, NOT_FINITE, OK, SINGULAR, TOO_SMALL, copy_row,
    make_rows,
)

SMALLEST, LARGEST = 16, 4096
"""Rows of a chunk: few behind an event, where much may have to be thrown away, and more as nothing happens."""
CHATTER = 20
"""Events within one step that mean chattering: the state goes nowhere while they follow one another."""

MESSAGES = {
    SINGULAR: "singular: no inertia resists some motion that the constraints allow, or the "
              "independent coordinates lose a motion",
    NOT_CLOSED: "the constraints cannot be closed: a target out of reach, or a singular configuration",
    NOT_CONSISTENT: "the projection on constraints and energy does not converge",
    NOT_FINITE: "the state is not finite any more: the motion has diverged, or an input is not a number",
    DIVERGED: "a speed has passed {largest:g}: the motion has diverged",
    NOT_CONVERGED: "the Newton iteration of the implicit step does not converge: try a smaller dt",
    TOO_SMALL: "the adaptive step has become too small: a discontinuity, or a singular configuration",
}


class Run:
    """One simulation. The integrator fills rows; everything else is kept together here.

    Parameters
    ----------
    robot : Robot
    ints, floats : ndarray
        Private copies of the packed model: switches and moving targets are written to them.
    settings : Settings
    work : Work
    integrator : object
        ``step``, its usual step; ``restart(run)`` after row 0 has changed; ``advance(run, count, known)`` fills rows
        from row 0 on and returns (status, last complete row); ``within(run, k, t)`` puts the state at a time between
        rows k and k + 1 into ``run.single``.
    start : tuple
        t0, q0, v0.
    end : float
    events : sequence of Event
    unilateral : dict
        Place among the rows, and +1 or -1, by constraint name.
    inputs : Inputs
    recorder : Recorder
    progress : Progress
    labels : dict
        method, formulation, stabilisation: names for the trajectory.
    """

    def __init__(self, robot, ints, floats, settings, work, integrator, start, end, events, unilateral, inputs,
                 recorder, progress, labels):
        self.robot, self.ints, self.floats, self.o, self.x = robot, ints, floats, settings, work
        self.integrator, self.end, self.events, self.unilateral = integrator, end, events, unilateral
        self.inputs, self.recorder, self.progress, self.labels = inputs, recorder, progress, labels
        self.rows, self.single = make_rows(robot, LARGEST + 1), make_rows(robot, 2)
        self.rows.t[0], self.rows.q[0], self.rows.v[0] = start
        self.rows.a[0] = np.nan
        on = robot.active
        self.active = np.array([name in on for name in robot.constraint_names], dtype=np.int64)
        self.chunk, self.known, self.ended = SMALLEST, False, False
        self.energy_at_no_work = self.energy(self.rows.q[0], self.rows.v[0])
        self.held, self.times = {}, []
        self.passages, self.energy_check = Passages(self), EnergyCheck(self)

    def energy(self, q, v):
        """T + V [J]."""
        return energy_of(self.ints, self.floats, self.x, q, v)

    # ---- the whole

    def go(self):
        """Run to the end.

        Raises
        ------
        SimulationError
            With the trajectory so far.
        """
        try:
            self.restart()
            self.recorder.add(self.rows, 0, 0, self.active)
            self.settle()
            while self.rows.t[0] < self.end and not self.ended:
                self._chunk()
                self.progress.show(self.rows.t[0])
        except KeyboardInterrupt as interrupt:
            interrupt.trajectory = self.trajectory()
            raise
        except SimulationError:
            raise
        except Exception as error:  # from a user's function or from below: what has been computed must not be lost
            raise self.failure(f"{type(error).__name__}: {error}") from error
        finally:
            self.progress.close()
        trajectory = self.trajectory()
        self.energy_check.warn(trajectory)
        return trajectory

    def trajectory(self):
        """Everything so far, the present state included."""
        if self.recorder.last_time() != self.rows.t[0] and np.isfinite(self.rows.a[0]).all():
            self.recorder.add_always(self.rows, 0, self.active)
        return self.recorder.trajectory(self.robot, **self.labels)

    def failure(self, text):
        """The error that says what went wrong at the present state."""
        t = float(self.rows.t[0])
        return SimulationError(f"simulation of {self.robot.name!r} stopped at t = {t:.9g} s: {text}",
                               self.trajectory(), (t, self.rows.q[0].copy(), self.rows.v[0].copy()))

    def raise_status(self, status):
        """A status other than OK as a typed error."""
        self.inputs.raise_errors()
        raise_errors(self.robot.functions)
        text = MESSAGES[status].format(largest=self.o.largest.min())
        if status in (NOT_CLOSED, NOT_CONSISTENT):
            g = np.abs(self.x.residual)
            worst = int(np.nanargmax(g)) if np.isfinite(g).any() else 0
            text += f" ({self.robot.row_names[worst]} is left at {g[worst]:.3g})"
        raise self.failure(text)

    # ---- parts

    def restart(self):
        """Complete row 0 after it has been set: targets, minimal coordinates, accelerations."""
        refresh(self.ints, self.floats, self.rows.t[0])
        self.x.pivots[:] = 1.0, 0.0  # minimal coordinates are to be chosen anew
        self.integrator.restart(self)
        status = advance(self.ints, self.floats, self.o, self.x, self.rows, 0, False, 0.0)[0]
        if status == OK and not np.isfinite(self.rows.a[0]).all():
            status = NOT_FINITE
        if status != OK:
            self.raise_status(status)
        self.known = True

    def settle(self):
        """Release unilateral constraints that hold on to what they should let go."""
        name = pulling(self)
        while name is not None:
            release(self, name)
            name = pulling(self)

    def _chunk(self):
        """Steps until the chunk is full, an event happens, or the end."""
        status, done = self.integrator.advance(self, self.chunk, self.known)
        crossing = first_crossing(self, max(done, 0))
        self.held = {}
        if crossing is None:
            self.keep(done)
            if status != OK:
                self.raise_status(status)
            self.known, self.chunk = True, min(2 * self.chunk, LARGEST)
            return
        k, t, together = crossing
        self.integrator.within(self, k, t)
        self.keep(k)
        copy_row(self.single, 0, self.rows, 0)
        self.chunk = SMALLEST
        self.restart()
        for what in together:
            self.count_event(what)
            if not isinstance(what, str):
                happen(self, what)
            elif self.active[self.robot.constraint_index(what)]:
                release(self, what)
        self.settle()

    def keep(self, k):
        """Record the rows up to k, and go on from there."""
        if k > 0:
            self.recorder.add(self.rows, 1, k, self.active)
            self.passages.look(k)
            self.energy_check.look(k)
            copy_row(self.rows, k, self.rows, 0)

    def count_event(self, what):
        """Stop when too many events happen within one step."""
        t = self.rows.t[0]
        self.times = [before for before in self.times if before > t - self.integrator.step] + [t]
        if len(self.times) > CHATTER:
            name = what if isinstance(what, str) else what.name
            raise self.failure(f"chattering: {len(self.times)} events within {self.integrator.step:g} s, "
                               f"the last of them {name!r}")
