"""The contacts of a run: their statuses and loads, and whether they have settled or their impacts accumulate."""
import numpy as np

from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import AccumulationError
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows
from liedyn.mechanics.contact.contact_state import (
    AT_REST, DEEPEST, TOUCHING, accelerations, put_statuses, statuses,
)
from liedyn.mechanics.contact.sliding_friction import set_directions
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.model.constraint_records import refresh
from liedyn.model.packed import OFF, ON, OPEN, SLIDING
from liedyn.motion.simulation.crossings import PULL
from liedyn.motion.simulation.gaps import by_forces, gaps
from liedyn.motion.simulation.inputs import put_input_forces
from liedyn.motion.simulation.manifold_projection import constraint_state
from liedyn.motion.simulation.workspace import NOT_FINITE

SMALLEST = 16
"""Number of rows of a block after an event, of which many may have to be discarded."""
SHORTEST = 1e-6
"""Smallest time [s] between impacts of one contact; below it they accumulate."""
GRIP, MOST_GRIP = 1e-6, 1e-3
"""Excess of friction over its disk, relative to the largest force, that is allowed to a contact whose slip would end at
once."""


class Unreachable(Exception):
    """Sliding friction has no solution in a part of the step after a row."""

    def __init__(self, step):
        super().__init__()
        self.step = step


class Surfaces:
    """The part of a `Run` that concerns its contacts."""

    def status(self, name):
        """Status of a constraint by name."""
        return int(statuses(self.packed)[self.robot.constraint_index(name)])

    def present(self):
        """Status of every constraint; in time-stepping that of contacts follows from the forces of row 0."""
        return by_forces(self, self.rows.lam[:1])[0] if self.integrator.stepping else statuses(self.packed)

    def contact_statuses(self):
        """Status of every contact."""
        return statuses(self.packed)[self.contacts.index].tolist()

    def rubs(self, c):
        """True if a contact has friction with a finite limit."""
        return self.contacts.count[c] > 1 and 0.0 < self.contacts.friction[c] < np.inf

    def _rubbing(self):
        return any(status == SLIDING and self.rubs(c) for c, status in enumerate(self.contact_statuses()))

    def loads(self, c, lam):
        """Normal force (rows,), and the friction limit minus the friction: infinite if there is no limit."""
        normal, friction = self.contacts.loads(c, lam)
        limit = self.contacts.friction[c] * normal if self.rubs(c) else normal
        if self.contacts.dry[c]:  # it cannot let go
            normal = np.full(len(lam), np.inf)
        if not self.rubs(c) or self.contact_statuses()[c] != ON:
            return normal, np.full(len(lam), np.inf)
        return normal, limit - friction

    def grips(self, c, t, turns, begins):
        """True if a contact is to stick that could as well begin to slide, because it has just alternated between both.

        `turns` is true if it comes to rest or begins to slip, `begins` if it has come to rest and does not stick.

        Friction may then exceed its disk a little before the contact slips again, by ten times as much at each
        recurrence.
        """
        again = begins and t - self.turned[c] < 0.01 * self.integrator.step
        if again:
            self.grip_limit[c] = min(max(GRIP, 10.0 * self.grip_limit[c]), MOST_GRIP)
        elif t - self.turned[c] > self.integrator.step:
            self.grip_limit[c] = PULL
        self.turned[c] = t if turns else self.turned[c]
        return again

    def put_directions(self):
        """Writes the directions in which contacts slide for the compiled loops."""
        set_directions(self.x.friction, self.contacts.index, self.direction)

    def forces_at(self, t, q, v):
        """Generalised forces of the inputs at a state."""
        finite = put_input_forces(self.o, self.x, t, int(self.rows.held[0]), q, v)
        raise_errors(self.functions)
        if not finite:
            self.raise_status(NOT_FINITE)
        return self.x.tau.copy()

    def look_for_redundancy(self, q):
        """True if rows of closed contacts depend on each other or on the equations, so that forces are not unique.

        Rows of one contact may do so, if the mechanism cannot move in all their directions. Three tangential rows span
        a plane only, in which forces of least norm lie.
        """
        constraint_state(self.packed, self.x, q, self.x.zero)
        used = np.abs(self.x.G).max(axis=1, initial=0.0) > 0.0
        spare = sum(count == 4 and status == ON for count, status in zip(self.contacts.count, self.contact_statuses()))
        rank, of_equations = (rank_of_rows(self.robot, np.where(rows[:, None], self.x.G, 0.0), RANK_TOLERANCE)
                              for rows in (used, used & self.equations))
        self.redundant = bool(rank - of_equations < np.count_nonzero(used & ~self.equations) - spare)

    def holds(self, rows, p):
        """True if there are forces that push, within the friction disks, for which all contacts keep their modes.

        These forces then replace the row's multipliers.
        """
        t, now = float(rows.t[p]), np.array(self.contact_statuses())
        closed = np.flatnonzero(now > 0)
        refresh(self.packed, t)
        slides = now[closed] == SLIDING
        state = State(rows.q[p], rows.v[p], rows.tau[p], self.x.f_ext)
        found = accelerations(self.packed, self.contacts, closed, state, 1e-9, RANK_TOLERANCE)
        if found is None or (found.status == OPEN).any() or ((found.status == SLIDING) & ~slides & np.array(
                [self.rubs(c) for c in closed])).any():
            return False
        rows.lam[p] = found.lam
        return True

    def _may_step(self):
        """True if time-stepping may continue where the run's own steps stop: closed contacts are treated as rigid."""
        return (self.settler is not None and self.integrator is self.usual
                and any(status > OFF for status in self.contact_statuses()))

    def _step_through(self):
        """Switches to time-stepping, if that is allowed, until contacts have settled."""
        if self.settler is None:
            return False
        self.integrator, self.known, self.chunk = self.settler, False, SMALLEST
        self.impacts, self.times, self.redundant = {}, [], False
        put_statuses(statuses(self.packed), self.contacts, slice(0))
        return True

    def _take_over(self):
        """Continues after time-stepping: contacts closed by its last step stay closed, unless they have opened."""
        statuses(self.packed)[:] = self.present()
        self.integrator = self.usual
        gap = gaps(self.packed, self.contacts, self.rows.t[:1], self.rows.q[:1], self.rows.v[:1])[0][0]
        self._instant((), [("release", c) for c in np.flatnonzero(gap > TOUCHING)])

    def _settled(self):
        """True if every closed contact has come to rest along its normal, and none is deeper than events accept."""
        gap, rate, _ = gaps(self.packed, self.contacts, self.rows.t[:1], self.rows.q[:1], self.rows.v[:1])
        speed = max(1.0, float(np.abs(self.rows.v[0]).max(initial=0.0)))
        return not (np.abs(rate[gap <= TOUCHING]) > AT_REST * speed).any() and not (gap < -DEEPEST).any()

    def collided(self, t, contacts):
        """Stores the times of impacts; raises an error where they accumulate."""
        for c in contacts:
            name = self.contacts.names[c]
            before = self.impacts.setdefault(name, [])
            before.append(t)
            del before[:-4]
            gone = np.diff(before)
            if len(gone) == 3 and (gone < SHORTEST).all():
                ratio = min(gone[-1] / gone[-2], 0.999999) if gone[-2] > 0.0 else 0.0
                end = t + gone[-1] * ratio / (1.0 - ratio)
                if self._step_through():
                    return
                raise self.failure(
                    f"impacts of {self.contacts.called(c)} accumulate at t = {end:.9g} s: the last three are less than "
                    f"{SHORTEST:g} s apart, and infinitely many follow. accumulation='moreau' goes on by time-stepping "
                    "until they have settled", AccumulationError, t=end, contacts=(name,))

    def gaps_at(self, k, t):
        """Gaps, their rates and slip of all contacts at a time between rows k and k + 1."""
        here = self.at(k, t)
        return [x[0] for x in gaps(self.packed, self.contacts, here.t[:1], here.q[:1], here.v[:1])]
