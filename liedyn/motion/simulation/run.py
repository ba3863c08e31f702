"""A run: blocks of compiled steps, events between them, and the trajectory so far if an error occurs.

The compiled loops know nothing of events. They fill a block of rows; guards are then evaluated on these rows, the first
crossing is located by repeating its step with a fraction of its length, and the rows after it are discarded.
"""
from collections import defaultdict
from functools import cached_property

import numpy as np

from liedyn.machine.compiled.slices import Slices
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import LiedynError, SimulationError
from liedyn.mechanics.contact.contact_state import DEEPEST, TOUCHING, equations, statuses
from liedyn.mechanics.contact.sliding_friction import set_directions
from liedyn.model.constraint_records import refresh
from liedyn.motion.simulation.apply_events import Contradiction, apply_events, require_outside
from liedyn.motion.simulation.crossings import PULL, Table, first_crossing, useful
from liedyn.motion.simulation.recorder import EnergyCheck
from liedyn.motion.simulation.events import crosses, guard_value
from liedyn.motion.simulation.failure_messages import reason, warn_if_wound
from liedyn.motion.simulation.gaps import steps_of_contacts
from liedyn.motion.simulation.integrators.explicit import advance
from liedyn.motion.simulation.integrators.out_of_contacts import DEEPEST as LEFT_BY_STEPS
from liedyn.motion.simulation.manifold_projection import energy_of
from liedyn.motion.simulation.preparation import have_gaps
from liedyn.motion.simulation.singular_passages import Passages
from liedyn.motion.simulation.contacts_of_run import SHORTEST, SMALLEST, Surfaces, Unreachable
from liedyn.motion.simulation.workspace import (
    DIVERGED, FAILED, FREE_ENERGY, INPUT_WORK, NOT_CLOSED, NOT_CONSISTENT, NOT_FINITE, OK, OTHER_WORK, SINGULAR,
    copy_row, make_rows,
)

LARGEST = 4096
"""Largest number of rows of a block: it doubles as long as no event happens."""
CHATTER = 20
"""Number of events within one step that counts as chattering: time hardly advances."""
TIGHT = (SINGULAR, NOT_CLOSED, NOT_CONSISTENT, NOT_FINITE, DIVERGED)
"""Statuses of steps that may fail because sliding friction grows without bound; a shorter step may succeed."""
HALVINGS = 30
"""Number of halvings of a step in which sliding friction fails."""


class Run(Surfaces):
    """One simulation. The integrator fills rows; all other data of the run are kept here.

    Parameters
    ----------
    robot : Robot
    ready : ReadyRun
        Private copies of the model: switches and moving targets are written to them.
    start : tuple
        q0, v0.
    integrators : tuple
        The object that makes the steps, and the one that continues where impacts accumulate, until contacts have
        settled, or None. Each has ``step``, its usual step; ``restart(run)``, called after row 0 has changed;
        ``advance(run, count, known)``, which fills rows from row 0 on and returns (status, last complete row);
        ``within(run, k, t)``, which writes the state at a time between rows k and k + 1 to ``run.single``;
        ``completes``, true if `advance` completes row 0 unless it is `known`.
    events : sequence of Event
    recorder : Recorder
    progress : Progress
    """

    def __init__(self, robot, ready, start, integrators, events, recorder, progress):
        model, settings, work, contacts, inputs = ready
        self.robot, self.packed, self.o, self.x = robot, model, settings, work
        self.integrator, self.settler = integrators
        self.usual, self.end = self.integrator, self.integrator.grid.end
        self.events, self.contacts, self.inputs = events, contacts, inputs
        self.recorder, self.progress = recorder, progress
        self.functions = inputs.functions | robot.functions
        self.rows = make_rows(robot, SMALLEST + 1)
        self.rows.t[0] = self.integrator.grid.start
        self.rows.q[0], self.rows.v[0] = start
        self.rows.a[0] = np.nan
        self.chunk, self.known, self.ended, self.slices = SMALLEST, False, False, Slices(SMALLEST)
        self.energy_at_no_work = 0.0 if settings.energy == FREE_ENERGY else self.energy(*start)
        self.held, self.times, self.impacts = {}, [], {}
        # true for contacts apart from their surface, or leaving it
        self.flies = np.ones(len(contacts.index), dtype=bool)
        self.grip_limit, self.turned = defaultdict(lambda: PULL), defaultdict(lambda: -np.inf)
        self.redundant = False
        self.direction = np.zeros((len(contacts.index), 3))
        self.row_directions = self.direction[None].copy()
        self.passages, self.energy_check = Passages(), EnergyCheck(self)

    @cached_property
    def single(self):
        """Two rows for states between those of the run."""
        return make_rows(self.robot, 2)

    @cached_property
    def have_gaps(self):
        """For each contact, true if its first residual is a gap."""
        return have_gaps(self.robot)[self.contacts.index]

    @cached_property
    def equations(self):
        """A mask of the rows that are no contacts'."""
        return equations(self.packed, self.contacts)

    def energy(self, q, v):
        """T + V [J]."""
        return energy_of(self.packed, self.x, q, v)

    # ---- the whole run

    def go(self):
        """Run to the end.

        Raises SimulationError with the trajectory so far.
        """
        try:
            self._begin()
            while self.rows.t[0] < self.end and not self.ended:
                self._chunk()
                self.progress.show(self.rows.t[0])
        except SimulationError:
            raise
        except LiedynError as error:  # the trajectory so far is kept with the error
            raise self.failure(str(error)) from error.__cause__ or error
        except Exception as error:
            raise self.failure(f"{type(error).__name__}: {error}") from error
        except BaseException as stop:  # an interrupt of the user, or the end of the program
            stop.trajectory = self.trajectory()
            raise
        finally:
            forget_errors(self.functions)
            self.progress.close()
        trajectory = self.trajectory()
        self.energy_check.warn(trajectory)
        warn_if_wound(self.robot, trajectory)
        return trajectory

    def trajectory(self):
        """The trajectory so far, including the present state."""
        if self.recorder.last_time() != self.rows.t[0] and np.isfinite(self.rows.a[0]).all():
            self.recorder.add_always(self.rows, 0, statuses(self.packed))
        return self.recorder.trajectory(self.robot)

    def failure(self, text, kind=SimulationError, **more):
        """The error for a failure at the present state, with the trajectory so far."""
        t, q, v = float(self.rows.t[0]), self.rows.q[0].copy(), self.rows.v[0].copy()
        text = f"simulation of {self.robot.name!r} stopped at t = {t:.9g} s: {text}"
        return kind(text, self.trajectory(), (t, q, v), **more)

    def raise_status(self, status):
        """Raises the error that belongs to a status other than OK."""
        raise_errors(self.functions)
        raise self.failure(self._reason(status))

    def _reason(self, status):
        return reason(status, self.robot, self.rows.q[0], self.o, self.x, self.inputs, self.integrator.stepping)

    # ---- parts

    def _begin(self):
        """Completes the first row; treats contacts that touch at the start, and guards that are zero there and move
        on. Where there is nothing of the kind, the first block does so."""
        if self.integrator.completes and not (
                self.events or len(self.contacts.index) or self.functions or self.inputs.sampling):
            self._set_out()
            return
        if self.inputs.sampling is not None:
            self.inputs.sampling.act(self.rows.t[0], self.rows.q[0], self.rows.v[0], self.x.table[0])
        if len(self.contacts.index) and not self.integrator.stepping:
            try:
                apply_events(self, beginning=True)
            except Contradiction as contradiction:
                if not self._step_through():
                    raise self.failure(str(contradiction)) from None
                self.restart()
                self.known = False
        else:
            if len(self.contacts.index):
                require_outside(self, self.rows.t[0], self.rows.q[0], self.rows.v[0], LEFT_BY_STEPS)
            self.restart()
        self.recorder.add(self.rows, 0, 0, statuses(self.packed))
        at_once = []
        for event in self.events:
            if useful(self, event) and guard_value(event, self.rows, 0) == 0.0:
                later = self._a_little_later(event)
                if later is not None and later[1] != 0.0 and event.direction in (0, np.sign(later[1])):
                    at_once.append(event)
        if at_once:
            self._instant(at_once, ())

    def _set_out(self):
        """Targets, minimal coordinates, directions and inputs for the state in row 0."""
        refresh(self.packed, self.rows.t[0])
        self.x.pivots[:] = 1.0, 0.0  # choose the minimal coordinates anew
        if len(self.contacts.index):
            self.put_directions()
        self.integrator.restart(self)

    def restart(self):
        """Completes row 0 after its state has been set."""
        self._set_out()
        if self.integrator.stepping and np.isfinite(self.rows.a[0]).all():  # forces are those of the last step
            self.known = True
            return
        status = advance(self.packed, self.o, self.x, self.rows, 0, False, 0.0)[0]
        raise_errors(self.functions)
        if status == OK and not np.isfinite(self.rows.a[0]).all():
            status = NOT_FINITE
        if status in TIGHT and self._may_step():  # time-stepping may pass it
            raise Contradiction(self._reason(status))
        if status != OK:
            self.raise_status(status)
        self.known = True

    def _chunk(self):
        """Steps until the block of rows is full, an event happens, or the run ends."""
        if self.integrator is self.settler and self.known and self._settled():
            self.energy_at_no_work = self.energy(self.rows.q[0], self.rows.v[0]) - float(
                self.rows.scalars[0, INPUT_WORK] + self.rows.scalars[0, OTHER_WORK])
            self._take_over()
        status, done = self._advance(self.chunk)
        if status in TIGHT and done == 0 and self._rubbing():
            status, done, crossing = self._shorter_step()
        else:
            status, done, crossing = self._search_as_far(status, done)
        self.held = {}
        if crossing is None:
            self._go_on(status, done)
            return
        self.within(crossing.step, crossing.t, here := make_rows(self.robot, 1), 0)
        together = self._together(crossing, here)
        self.keep(crossing.step)
        if self.integrator.stepping:  # contacts that close or open in the part of the step up to here
            copy_row(here, 0, self.rows, 1)
            steps_of_contacts(self, 1)
        copy_row(here, 0, self.rows, 0)
        if len(self.contacts.index):
            self.direction = self.row_directions[crossing.step].copy()
        self.chunk = SMALLEST
        self._instant([what for what in together if not isinstance(what, tuple)],
                      [what for what in together if isinstance(what, tuple)])

    def _go_on(self, status, done):
        """After `done` steps without events: the number of the next steps, or a way past steps that failed."""
        if status == OK:
            try:
                self._sample(done)
            except LiedynError:
                self._keep_on_surfaces(done)  # keeps the rows computed so far
                raise
        self._keep_on_surfaces(done)
        if status in TIGHT and self._rubbing():
            if done == 0:
                # friction holds a contact that slid: treated as an event, which changes its mode or raises an error
                self._instant((), ())
                status = self._advance(1)[0]
                shorter = status in TIGHT and self._rubbing() and self._shorter_step()[1]
                if status in TIGHT and not shorter and not self._step_through():
                    self.raise_status(status)
            self.chunk, self.known = SMALLEST, self.integrator is not self.settler
        elif status in TIGHT and self._may_step() and (done > 0 or self._step_through()):
            self.chunk, self.known = SMALLEST, self.integrator is not self.settler
        elif status != OK:
            self.raise_status(status)
        else:
            self.known = True
            self.chunk = SMALLEST if self.integrator is self.settler else min(2 * self.chunk, LARGEST)

    def _advance(self, count):
        """Rows by the integrator: (status, last complete row); the latter is 0 if a user's function has failed."""
        forget_errors(self.functions)
        if self.inputs.sampling is not None:
            count = min(count, self.inputs.sampling.steps_left(self.rows.t[0]))
        count = min(count, self.slices.pieces)
        if count >= len(self.rows.t):  # rows grow with the blocks: a short run needs few
            before, self.rows = self.rows, make_rows(self.robot, count + 1)
            copy_row(before, 0, self.rows, 0)
        with self.slices.timed(count):
            status, done = self.integrator.advance(self, count, self.known)
        if status != OK and done == 0 and not np.isfinite(self.rows.a[0]).all():
            status = NOT_FINITE
        done = max(done, 0)
        failed = [function.failure.t for function in self.functions.values() if function.failure]
        if failed:
            status, done = FAILED, max(0, int(np.searchsorted(self.rows.t[:done + 1], min(failed))) - 1)
        return status, done

    def _sample(self, k):
        """Lets a controller sample at row k; the row then gets the accelerations for the new input."""
        sampling, rows = self.inputs.sampling, self.rows
        if sampling is None or not sampling.act(rows.t[k], rows.q[k].copy(), rows.v[k].copy(), self.x.table[0]):
            return
        copy_row(rows, k, self.single, 0)
        refresh(self.packed, rows.t[k])
        status = advance(self.packed, self.o, self.x, self.single, 0, False, 0.0)[0]
        if status != OK:
            self.raise_status(status)
        copy_row(self.single, 0, rows, k)

    def _search(self, done):
        """The first crossing in rows 0 to done, if any."""
        if not self.events and not len(self.contacts.index):
            return None
        self.table = Table(self, done)
        return first_crossing(self, self.table)

    def _search_as_far(self, status, done):
        """(status, rows, crossing): the first crossing; fewer rows if the interior of a step cannot be evaluated."""
        reached = done
        while True:
            try:
                crossing = self._search(reached)
                break
            except Unreachable as place:
                reached = place.step
        if crossing is not None or reached == done:
            return status, reached, crossing
        self._keep_on_surfaces(reached)
        return self._shorter_step()

    def _keep_on_surfaces(self, k):
        """Records the rows up to k, after a check of their penetrations; directions of slip continue from there."""
        if len(self.contacts.index) and not self.integrator.stepping:
            table, kept = self.table, self.table.step <= k
            for p, c in np.argwhere((table.gap < -DEEPEST) & kept[:, None]):
                got = (f"got {-table.gap[p, c]:.3g} m longer than it is" if self.contacts.cable[c] else
                       f"got {-table.gap[p, c]:.3g} deep")
                raise self.failure(f"{self.contacts.called(c)} {got} at t = {table.t[p]:.6g} s without being caught: "
                                   "try a smaller dt")
            self.flies |= table.gap[kept][-1] > TOUCHING
            self.direction = self.row_directions[k].copy()
            self.put_directions()
        self.keep(k)

    def _shorter_step(self):
        """A part of a step, if the whole one fails because slip that has almost ceased reverses within it.

        Returns (status, rows, crossing) as for a block; (SINGULAR, 0, None) if no part can be made.
        """
        for k in range(1, HALVINGS):
            t = float(self.rows.t[0]) + self.integrator.step * 0.5 ** k
            self.row_directions = self.direction[None].copy()
            try:
                copy_row(self.at(0, t), 0, self.rows, 1)
                return OK, 1, self._search(1)
            except Unreachable:
                continue
        return SINGULAR, 0, None

    def _together(self, crossing, here):
        """The first event, and all others whose guards have crossed by then."""
        together, k = [crossing.what], crossing.step
        for event in self.events:
            if event is crossing.what or not useful(self, event):
                continue
            start, before = self.held.get(event) or (float(self.rows.t[k]), guard_value(event, self.rows, k))
            value = guard_value(event, here, 0)
            touches = (abs(value) <= DEEPEST and isinstance(crossing.what, tuple) and crossing.what[0] == "touch"
                       # its guard is the gap that has just closed
                       and self.contacts.names[crossing.what[1]] in event.on)
            if start < crossing.t and crosses(before, value, event.direction) or touches:
                together.append(event)
        for c, status in enumerate(self.contact_statuses()):
            pulls = status > 0 and not self.redundant and self.loads(c, here.lam[:1])[0][0] < 0.0
            if pulls and ("release", c) not in together:
                together.append(("release", c))
        return together

    def _instant(self, events, causes):
        """Treats all changes at one time, and sets which contacts are watched after it."""
        self.count_event([event.name for event in events] or [self.contacts.event(kind, c) for kind, c in causes])
        if self.integrator is self.settler and self.settler is not None and not events:
            return
        try:
            apply_events(self, events, causes)
        except Contradiction as contradiction:
            if events or not self._step_through():  # keeps the changes that events have made
                raise self.failure(str(contradiction)) from None
        self.ended = self.ended or any(event.terminal for event in events)
        for event in () if self.ended else events:
            if event.direction:
                later = self._a_little_later(event)
                if later is not None and event.direction * later[1] < 0.0:
                    self.held[event] = later
                elif event.restitution > 0.0 and useful(self, event) and not set(event.on) <= set(self.contacts.names):
                    raise self.failure(f"chattering: event {event.name!r} bounces faster than it can be followed; a "
                                       f"larger resting speed than {event.resting:g} would end it")

    def _a_little_later(self, event):
        """Time and guard a thousandth of a step after row 0."""
        copy_row(self.rows, 0, self.single, 0)
        self.single.t[1] = min(self.single.t[0] + 1e-3 * self.integrator.step, self.end)
        loop = self.integrator.loop if self.integrator.stepping else advance
        status, _ = loop(self.packed, self.o, self.x, self.single, 1, True, self.energy_at_no_work)
        refresh(self.packed, self.rows.t[0])
        self.put_directions()
        return (float(self.single.t[1]), guard_value(event, self.single, 1)) if status == OK else None

    def keep(self, k):
        """Records the rows up to k, and continues from there."""
        if k == 0:
            return
        if self.integrator.stepping:
            self.recorder.add(self.rows, 1, k, steps_of_contacts(self, k))
        else:
            self.recorder.add(self.rows, min(self.recorder.steps, 1), k, statuses(self.packed))
            self.passages.look(self, k)
            self.energy_check.look(self.robot, self.rows, k)
        copy_row(self.rows, k, self.rows, 0)

    def count_event(self, names):
        """Raises an error if too many events happen within one step."""
        t = self.rows.t[0]
        self.times = [before for before in self.times if before > t - self.integrator.step] + [t]
        if len(self.times) > CHATTER and t - self.times[-CHATTER] < SHORTEST:
            if self._step_through():
                return
            raise self.failure(f"chattering: {CHATTER} events within {t - self.times[-CHATTER]:.3g} s, "
                               f"the last of them {' and '.join(map(repr, names))}")

    # ---- states between rows

    def at(self, k, t):
        """The state at a time between rows k and k + 1, in row 0 of the result."""
        if len(self.contacts.index):
            set_directions(self.x.friction, self.contacts.index, self.row_directions[k])
        status = self.integrator.within(self, k, t)
        if status in TIGHT and self._rubbing():
            raise Unreachable(k)
        if status != OK:
            self.raise_status(status)
        return self.single

    def within(self, k, t, rows, p):
        """The state at a time between rows k and k + 1, in row p of `rows`."""
        copy_row(self.at(k, t), 0, rows, p)
