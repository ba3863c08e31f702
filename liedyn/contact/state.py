"""Which contacts of a state are open, slide or stick, and what they push with.

Gaps say which contacts touch; of those, velocities along the normal say which ones collide (`liedyn.contact.impact`) or
come apart, and the accelerations of the rest are a complementarity problem (`liedyn.contact.problem`).
"""
from typing import NamedTuple

import numpy as np

from liedyn.contact.complementarity import SOLVED
from liedyn.contact.problem import CONTRADICTION, solve_contacts
from liedyn.dynamics.terms import terms_kernel
from liedyn.model.packed import (
    LOOP_ACTIVE, LOOP_FRICTION, LOOP_NROWS, LOOP_RESTITUTION, LOOP_ROW,
    LOOP_SIDE, N_ROWS, OFF, ON, OPEN, SLIDING, constraints_of,
)

TOUCHING = 1e-9
"""Gap [m, rad] below which a contact touches: above what projections and located events leave."""
DEEPEST = 1e-6
"""Penetration [m, rad] that no contact may reach."""
AT_REST = 1e-9
"""Normal and slip velocity, relative to the speeds (at least 1 rad/s, 1 m/s), that is rounding."""
PAINLEVE = 1e-3
"""Part of its normal stiffness that a sliding contact must have left: friction multiplies its force by the inverse."""
NOTHING = 1e-9
"""Force and acceleration, relative to the largest ones, that is rounding."""


class Contacts(NamedTuple):
    """All one-sided constraints of a packed model, in arrays; `count` is 1 for those without friction."""

    index: np.ndarray  # numbers of the constraints
    first: np.ndarray  # their first rows
    count: np.ndarray  # how many rows they have
    side: np.ndarray
    restitution: np.ndarray
    friction: np.ndarray


def contacts_of(model):
    """The one-sided constraints of a packed model."""
    records, numbers = constraints_of(model)
    index = np.flatnonzero(records[:, LOOP_SIDE])
    return Contacts(index, records[index, LOOP_ROW], records[index, LOOP_NROWS], records[index, LOOP_SIDE],
                    numbers[index, LOOP_RESTITUTION].copy(), numbers[index, LOOP_FRICTION].copy())


def statuses(model):
    """A view on the status of every constraint."""
    return constraints_of(model)[0][:, LOOP_ACTIVE]


def with_rows_of(model, contacts, closed):
    """The model in which these contacts (numbers among `contacts`) have all their rows, and the others none."""
    model = model._replace(ints=model.ints.copy())
    status = statuses(model)
    status[contacts.index] = np.where(status[contacts.index] == OFF, OFF, OPEN)
    status[contacts.index[closed]] = ON
    return model


def rows_of(contacts, chosen):
    """(rows, first, count): the rows of some contacts one behind the other, and where among them each begins."""
    count = contacts.count[chosen]
    rows = np.concatenate([np.empty(0, np.int64)] + [np.arange(contacts.first[c], contacts.first[c] + contacts.count[c])
                                                     for c in chosen])
    return rows.astype(np.int64), (np.cumsum(count) - count).astype(np.int64), count.astype(np.int64)


def equations(model, contacts):
    """Which rows are equations: those of all constraints but the one-sided ones."""
    equal = np.ones(int(model.ints[N_ROWS]), dtype=bool)
    for first, count in zip(contacts.first, contacts.count):
        equal[first:first + count] = False
    return equal


class Accelerations(NamedTuple):
    """Motion and forces at a state with contacts that touch and do not collide."""

    a: np.ndarray  # (nv)
    lam: np.ndarray  # (m)
    status: np.ndarray  # of the contacts that touch: OPEN, ON (sticking) or SLIDING
    direction: np.ndarray  # (contacts, 3) of their sliding, unit vectors in the tangential rows
    margin: np.ndarray  # how far each is from its next change, relative to its largest force or acceleration


def accelerations(model, contacts, touching, q, v, tau, f_ext, slip_limit, tolerance):
    """Accelerations with the contacts numbered `touching`; None if the conditions contradict each other.

    Slower than `slip_limit` is at rest, and sticks if it can.
    """
    closed = with_rows_of(model, contacts, touching)
    M, h, G, _, psi, gamma = terms_kernel(closed, q, v, f_ext)
    rows, first, count = rows_of(contacts, touching)
    slip = np.zeros((len(touching), 3))
    for e, (i, n) in enumerate(zip(contacts.first[touching], count)):
        slip[e, :n - 1] = psi[i + 1:i + n]
    speed, mu, side = np.linalg.norm(slip, axis=1), contacts.friction[touching], contacts.side[touching]
    given = (speed > slip_limit) & np.isfinite(mu)
    direction = np.where(given[:, None], slip / np.where(speed > 0.0, speed, 1.0)[:, None], 0.0)
    a, lam, P, stiffness = np.zeros(len(v)), np.zeros(len(psi)), np.zeros(len(rows)), np.empty(len(touching))
    found = solve_contacts(M, tau - h, G, gamma, equations(model, contacts), rows, first, count, mu, given, direction,
                           side.astype(float), np.zeros(len(touching)), tolerance, a, lam, P, stiffness)
    if found != SOLVED:
        if found == CONTRADICTION:
            raise ValueError("the constraints contradict each other")
        return None
    jams = given & (stiffness <= PAINLEVE)
    if jams.any():  # pulled tight by its own friction: if it may as well let go, it does
        rest = accelerations(model, contacts, touching[~jams], q, v, tau, f_ext, slip_limit, tolerance)
        if rest is None or (side * (G @ rest.a - gamma)[contacts.first[touching]] < 0.0)[jams].any():
            return None
        status, margin, slides = np.full(len(touching), OPEN), np.zeros(len(touching)), np.zeros((len(touching), 3))
        status[~jams], margin[~jams], slides[~jams] = rest.status, rest.margin, rest.direction
        return Accelerations(rest.a, rest.lam, status, slides, margin)
    u = G @ a - gamma
    force = max(float(np.abs(P).max(initial=0.0)), NOTHING * float(np.abs(h).max(initial=0.0)))
    motion = max(1.0, float(np.abs(u).max(initial=0.0)))
    status, margin = np.full(len(touching), OPEN), np.full(len(touching), np.inf)
    for e, (i, n, k) in enumerate(zip(contacts.first[touching], count, first)):
        away, push = side[e] * u[i] / motion, P[k] / force if force > 0.0 else 0.0
        if push <= NOTHING and away > NOTHING:
            margin[e] = away
            continue
        status[e], margin[e] = SLIDING, push
        if n == 1 or given[e]:
            continue
        slides, rubs = np.linalg.norm(u[i + 1:i + n]), np.linalg.norm(P[k + 1:k + n])
        if slides / motion <= NOTHING:
            status[e] = ON
            if np.isfinite(mu[e]):
                margin[e] = min(push, push * mu[e] - rubs / force if force > 0.0 else 0.0)
        else:
            direction[e, :n - 1] = u[i + 1:i + n] / slides
            margin[e] = 0.0  # it has just begun to slide
    return Accelerations(a, lam, status, direction, margin)
