"""Which contacts of a state are open, slide or stick, and their forces.

Gaps decide which contacts touch; their normal velocities decide which of them collide
(`liedyn.mechanics.contact.impact`) or separate, and the accelerations of the rest are a complementarity problem
(`liedyn.mechanics.contact.contact_problem`).
"""
# mypy: ignore-errors
import math
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.families.contact import contact
from liedyn.mechanics.contact.complementarity import SOLVED
from liedyn.mechanics.contact.contact_problem import CONTRADICTION, System, Touching, solve_contacts
from liedyn.mechanics.contact.sliding_friction import limits
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.kinds import CABLE, DRY_FRICTION
from liedyn.model.packed import (
    LOOP_ACTIVE, LOOP_FRICTION, LOOP_I, LOOP_KIND, LOOP_LIMIT, LOOP_NROWS, LOOP_RESTITUTION, LOOP_ROW, LOOP_SIDE,
    LOOPS_AT, N_LOOPS, N_ROWS, OFF,
    ON, OPEN, SLIDING, constraints_of, event_of_cable,
)

TOUCHING = 1e-9
"""Gap [m, rad] below which a contact touches: above the error of projections and of located events."""
DEEPEST = 1e-6
"""Largest accepted penetration [m, rad]."""
AT_REST = 1e-9
"""Normal and slip velocity, relative to the speeds (at least 1 rad/s, 1 m/s), that counts as zero."""
PAINLEVE = 1e-3
"""Smallest accepted ratio of a sliding contact's normal stiffness to that without friction."""
ENDS = "surfaces that end"
"""Key of `robot._memo`."""
NOTHING = 1e-9
"""Force and acceleration, relative to the largest ones, that count as zero."""


class Contacts(NamedTuple):
    """All one-sided constraints of a packed model, in arrays; `count` is 1 for those without friction.

    Dry friction of joints is one of them: always closed, with a normal force that is given.
    """

    names: np.ndarray
    index: np.ndarray  # numbers of the constraints
    first: np.ndarray  # their first rows
    count: np.ndarray  # number of rows
    side: np.ndarray
    restitution: np.ndarray
    friction: np.ndarray
    dry: np.ndarray  # True for dry friction of joints
    law: np.ndarray  # (contacts, 4) its numbers, else zeros
    cable: np.ndarray  # True for inextensible cables

    def some(self, chosen):
        """Those contacts only."""
        return Contacts(*(x[chosen] for x in self))

    def called(self, c):
        """Contact c as messages name it."""
        return f"{'cable' if self.cable[c] else 'contact'} {self.names[c]!r}"

    def event(self, what, c):
        """The name of an event of contact c, `what` in one word."""
        return event_of_cable(what, self.names[c]) if self.cable[c] else f"{what} {self.names[c]}"

    def rows(self, c):
        """The rows of contact c."""
        return slice(self.first[c], self.first[c] + self.count[c])

    def tangential(self, c):
        """The tangential rows of contact c."""
        return slice(self.first[c] + 1, self.first[c] + self.count[c])

    def slips(self, psi, chosen):
        """Slip speeds of some contacts, given psi = G v - b."""
        return np.array([np.linalg.norm(psi[self.tangential(c)]) for c in chosen])

    def loads(self, c, lam):
        """Normal force of contact c, and the magnitude of its friction force."""
        return -self.side[c] * lam[..., self.first[c]], np.linalg.norm(lam[..., self.tangential(c)], axis=-1)

    def put_limits(self, lam, psi, chosen, sticking):
        """Writes the limits of dry friction among some contacts to its empty rows of `lam`.

        `sticking` says which of these contacts are at rest.
        """
        for c, rests in zip(chosen, sticking):
            if self.dry[c]:
                limit = self.law[c, 1] if rests else limits(self.law[c], self.slips(psi, [c])[0])[0]
                lam[self.first[c]] = -self.side[c] * limit


NO_CONTACTS = Contacts(np.empty(0, object), *np.empty((4, 0), np.int64), *np.empty((2, 0)), np.empty(0, bool),
                       np.empty((0, 4)), np.empty(0, bool))


def contacts_of(robot, model):
    """The one-sided constraints of a packed model of the robot."""
    records, numbers = constraints_of(model)
    index = records[:, LOOP_SIDE].nonzero()[0]
    if not len(index):
        return NO_CONTACTS
    return Contacts(np.array(robot.constraint_names, dtype=object)[index], index, records[index, LOOP_ROW],
                    records[index, LOOP_NROWS], records[index, LOOP_SIDE], numbers[index, LOOP_RESTITUTION].copy(),
                    numbers[index, LOOP_FRICTION].copy(), dry := records[index, LOOP_KIND] == DRY_FRICTION,
                    np.where(dry[:, None], numbers[index, LOOP_LIMIT:LOOP_LIMIT + 4], 0.0),
                    records[index, LOOP_KIND] == CABLE)


def statuses(model):
    """A view of the status of every constraint."""
    first, count = model.ints.item(LOOPS_AT), model.ints.item(N_LOOPS)
    return model.ints[first + LOOP_ACTIVE:first + count * LOOP_I:LOOP_I]


def put_statuses(status, contacts, closed, to=ON):
    """Set the status of the contacts `closed` (numbers among `contacts`), and open all others that are not off."""
    status[contacts.index] = np.where(status[contacts.index] == OFF, OFF, OPEN)
    status[contacts.index[closed]] = to


def with_rows_of(model, contacts, closed, to=ON):
    """A copy of the model in which the contacts `closed` have rows, with status `to`, and the others none."""
    model = model._replace(ints=model.ints.copy())
    put_statuses(statuses(model), contacts, closed, to)
    return model


def penetration(contacts, c, gap):
    """What is wrong with contact c, whose gap is negative, in words."""
    if contacts.cable[c]:
        return f"the path of cable {contacts.names[c]!r} is {-gap:.3g} longer than the cable"
    return f"contact {contacts.names[c]!r} is {-gap:.3g} deep on the wrong side of its surface"


def surfaces_that_end(robot):
    """Their constraints, by number."""
    if ENDS not in robot._memo:
        first = len(robot.model.loops)
        robot._memo[ENDS] = {first + k: each for k, each in enumerate(robot.model.constraints) if each.extent}
    return robot._memo[ENDS]


@kernel
def point_on(model, l, q):
    """The point of contact l in the axes of its surface, the normal last."""
    work = np.empty(world_size(model))
    world_positions(SCALAR, model, q, work)
    return contact(model, work, l)[2]


def place_on(robot, k, q):
    """How far the point of contact k is inside the edge of its surface, and its gap."""
    each, (x, y, z) = surfaces_that_end(robot)[k], point_on(robot.packed, k, q)
    if each.kind == "on_cylinder":
        return 0.5 * each.extent[0] - abs(z), each.side * (math.hypot(x, y) - each.length)
    inside = (each.extent[0] - math.hypot(x, y) if len(each.extent) == 1
              else min(0.5 * each.extent[0] - abs(x), 0.5 * each.extent[1] - abs(y)))
    return inside, each.side * (z - each.radius)


def touching_of(contacts, chosen, **known):
    """Some contacts as `Touching` for `solve_contacts`: at rest, unless `given`, `direction` or `shift` are passed.

    The limits of dry friction are those at rest.
    """
    count = contacts.count[chosen]
    rows = [np.arange(contacts.first[c], contacts.first[c] + contacts.count[c]) for c in chosen]
    fields = dict(given=np.zeros(len(count), bool), direction=np.zeros((len(count), 3)), shift=np.zeros(len(count)),
                  limit=np.where(contacts.dry[chosen], contacts.law[chosen, 1], -1.0))
    return Touching(rows=np.concatenate([np.empty(0, np.int64), *rows]), first=np.cumsum(count) - count, count=count,
                    mu=contacts.friction[chosen], side=contacts.side[chosen].astype(float), **fields | known)


def solve(M, f, G, c, equal, touching, tolerance):
    """(status, z, lam, D, P) of `solve_contacts`."""
    z, lam = np.zeros(len(f)), np.zeros(len(c))
    status, D, P = solve_contacts(System(M, f, G, c, equal), touching, tolerance, z, lam)
    return status, z, lam, D, P


def normal_stiffness(touching, D, P):
    """d u_n / d P_n of each closed sliding contact, divided by its value without friction; 1 for other contacts.

    The other contacts do not change. Near zero, friction pulls the contact as strongly as it pushes; below zero, more
    strongly (Painleve 1895): a solution exists, but it is not stable.
    """
    out, motion, rows, slides = np.ones(len(touching.first)), D.copy(), [], {}
    for c, (i, n, mu) in enumerate(zip(touching.first, touching.count, touching.mu)):
        friction = np.linalg.norm(P[i + 1:i + n])
        if touching.limit[c] >= 0.0:  # joints with dry friction that is not at its limit are held
            rows += [i + 1] if friction < mu * P[i] * (1.0 - 1e-9) else []
            continue
        if P[i] > 0.0 and friction > 0.0 and friction >= mu * P[i] * (1.0 - 1e-9):
            motion[:, i] += D[:, i + 1:i + n] @ P[i + 1:i + n] / P[i]  # friction is proportional to the normal force
            slides[c] = len(rows)
            rows.append(i)
        elif P[i] > 0.0:
            rows += range(i, i + n)
    for c, l in slides.items():
        with_friction = motion[np.ix_(rows, rows)]
        plain = with_friction.copy()
        plain[:, l] = D[rows, rows[l]]
        x, x_plain = (np.linalg.pinv(J, 1e-11)[l, l] for J in (with_friction, plain))
        out[c] = x_plain / x if x != 0.0 else 1.0
    return out


def equations(model, contacts):
    """A mask of the rows that are equations: those of all constraints except one-sided ones."""
    equal = np.ones(int(model.ints[N_ROWS]), dtype=bool)
    for c in range(len(contacts.index)):
        equal[contacts.rows(c)] = False
    return equal


class Accelerations(NamedTuple):
    """Motion and forces at a state with touching contacts, without collision."""

    a: np.ndarray  # (nv)
    lam: np.ndarray  # (m)
    status: np.ndarray  # of the contacts that touch: OPEN, ON (sticking) or SLIDING
    direction: np.ndarray  # (contacts, 3) unit vectors of sliding in the tangential rows


def accelerations(model, contacts, touching, state, slip_limit, tolerance):
    """Accelerations with the contacts numbered `touching`; None if the conditions contradict each other.

    `state` is a `State`. A contact slower than `slip_limit` counts as resting, and sticks if its friction suffices.
    """
    q, v, tau, f_ext = state
    M, h, G, _, psi, gamma = terms_kernel(with_rows_of(model, contacts, touching), q, v, f_ext)
    mu, side, size = contacts.friction[touching], contacts.side[touching], len(touching)
    speed, direction = contacts.slips(psi, touching), np.zeros((size, 3))
    given = (speed > slip_limit) & np.isfinite(mu)
    for e in np.flatnonzero(given):
        direction[e, :contacts.count[touching[e]] - 1] = psi[contacts.tangential(touching[e])] / speed[e]
    if (moving := given & contacts.dry[touching]).any():  # dry friction of joints that move is a known force
        rubbed = np.zeros(len(psi))
        contacts.put_limits(rubbed, psi, touching[moving], np.zeros(moving.sum(), bool))
        for e in np.flatnonzero(moving):
            rubbed[contacts.tangential(touching[e])] = contacts.loads(touching[e], rubbed)[0] * direction[e, 0]
        rubbing = state._replace(tau=tau - G.T @ rubbed)
        rest = accelerations(model, contacts, touching[~moving], rubbing, slip_limit, tolerance)
        if rest is None:
            return None
        status = np.full(size, SLIDING)
        status[~moving], direction[~moving] = rest.status, rest.direction
        return Accelerations(rest.a, rest.lam + rubbed, status, direction)
    closed = touching_of(contacts, touching, given=given, direction=direction)
    found, a, lam, D, P = solve(M, tau - h, G, gamma, equations(model, contacts), closed, tolerance)
    if found != SOLVED:
        if found == CONTRADICTION:
            raise ValueError("the constraints contradict each other")
        return None
    status = np.full(size, OPEN)
    jams = given & (normal_stiffness(closed, D, P) <= PAINLEVE)
    if jams.any():  # jammed by its own friction: it opens if it can
        rest = accelerations(model, contacts, touching[~jams], state, slip_limit, tolerance)
        if rest is None or (side * (G @ rest.a - gamma)[contacts.first[touching]] < 0.0)[jams].any():
            return None
        direction[jams] = 0.0
        status[~jams], direction[~jams] = rest.status, rest.direction
        return Accelerations(rest.a, rest.lam, status, direction)
    u = G @ a - gamma
    force = max(float(np.abs(P).max(initial=0.0)), NOTHING * float(np.abs(h).max(initial=0.0)))
    motion = max(1.0, float(np.abs(u).max(initial=0.0)))
    for e, c in enumerate(touching):
        if contacts.loads(c, lam)[0] <= NOTHING * force and side[e] * u[contacts.first[c]] > NOTHING * motion:
            continue
        status[e], slides = SLIDING, u[contacts.tangential(c)]
        if contacts.count[c] == 1 or given[e]:
            continue
        if np.linalg.norm(slides) <= NOTHING * motion:
            status[e] = ON
        else:  # starts to slide at this instant
            direction[e, :len(slides)] = slides / np.linalg.norm(slides)
    return Accelerations(a, lam, status, direction)
