"""The first event in a block of rows: zero crossings of guards, gaps that close, contacts that open, stick or slip.

Guards are evaluated at the rows, and between them for integrators with steps of their own: their dense output gives
states at tenths of a step, with neighbours for the slope there. Where the slope turns towards zero and back, the
extremum is located, so that a guard which crosses zero twice within a step is not missed. The rates of gaps are known,
so that their extrema are found between the rows of every integrator.
"""
from functools import partial
from typing import NamedTuple

import numpy as np

from liedyn.mechanics.contact.contact_state import TOUCHING
from liedyn.mechanics.contact.sliding_friction import SLOW
from liedyn.model.packed import OFF, ON, OPEN, SLIDING
from liedyn.motion.simulation.events import crosses, guard_value, locate, turning_point
from liedyn.motion.simulation.gaps import gaps
from liedyn.motion.simulation.workspace import make_rows

PULL = 1e-9
"""Force of the wrong sign, relative to the largest multiplier, that counts as rounding."""
NOISE = 1e-14
"""Gap [m, rad] that is rounding at positions of some metres."""
HALVINGS = 40
"""Largest number of halvings of a step to find a state with a positive gap after a contact has opened."""
NEIGHBOUR = 1e-4
"""Distance in time of the states for slopes, relative to the time between two states of the table."""


class Crossing(NamedTuple):
    """The first event: its step, its time, and its cause, an Event or (kind, number of the contact)."""

    step: int
    t: float
    what: object


class Table:
    """States of a block of rows in the order of time; `step` is the number of the row at or before each state."""

    def __init__(self, run, done):
        self.rows, self.step, self.slopes = run.rows, np.arange(done + 1), False
        self._look(run)
        run.row_directions = self.directions
        times = run.integrator.between(run, done) if done > 0 else None
        if times is not None:
            self.slopes = bool(run.events)
            self._fill(run, done, times)
            self._look(run)

    def _look(self, run):
        """Gaps, their rates, slip and its direction at all states."""
        n = len(self.step)
        self.t, self.directions = self.rows.t[:n], np.zeros((n, 0, 3))
        if len(run.contacts.index):
            self.gap, self.rate, self.slip = gaps(run.packed, run.contacts, self.t, self.rows.q[:n], self.rows.v[:n])
            self.directions = _directions(run, self.slip)

    def _fill(self, run, done, times):
        """Rows, each followed by the states between it and the next one; these have two neighbours each for slopes."""
        places = [(k, t) for k in range(done) for t in (float(run.rows.t[k]), *times[k])]
        places.append((done, float(run.rows.t[done])))
        room = make_rows(run.robot, len(places))
        self.near = make_rows(run.robot, 2 * len(places)) if self.slopes else None
        for p, (k, t) in enumerate(places):
            run.within(k, t, room, p)
            if self.slopes and p + 1 < len(places):
                later = places[p + 1][1]
                width = NEIGHBOUR * (later - t)
                run.within(k, t + width, self.near, 2 * p)
                run.within(k, later - width, self.near, 2 * p + 1)
        self.rows, self.step = room, np.array([k for k, _ in places])


def _directions(run, slip):
    """Direction of each contact's slip at every state; where slip is zero, the last direction before."""
    out = np.empty(slip.shape)
    last = run.direction.copy()
    for p in range(len(slip)):
        size = np.linalg.norm(slip[p], axis=1)
        moving = (size > SLOW) & ((slip[p] * last).sum(axis=1) >= 0.0)
        last[moving] = slip[p][moving] / size[moving, None]
        out[p] = last
    return out


def first_crossing(run, table):
    """The earliest crossing of a block, or None."""
    first, last = None, len(table.step) - 1
    for watch in _watches(run):
        found = watch(run, table, last)
        if found is not None and (first is None or found.t < first.t):
            first, last = found, min(last, int(np.searchsorted(table.t, found.t)))
    return first


def useful(run, event):
    """True if the event would change anything; switching on an open contact that is on already does not."""
    on = [run.status(name) <= OFF for name in event.on]
    off = [run.status(name) != OFF for name in event.off]
    return any(on + off) or not (on or off) or event.terminal or event.action is not None


def _watches(run):
    for event in run.events:
        if useful(run, event):
            yield partial(_first_of_event, event)
    for c, status in enumerate(() if run.integrator.stepping else run.contact_statuses()):
        if status == OPEN:
            yield partial(_first_touch, c)
        elif status in (ON, SLIDING):
            yield partial(_first_release, c)
            if status == SLIDING and run.rubs(c):
                yield partial(_first_reversal, c)


def _first_of_event(event, run, table, last):
    """The first time at which the guard of an event crosses zero in its direction."""
    def at(t):
        return guard_value(event, run.at(k, t), 0)

    start, before = run.held.get(event) or (float(table.t[0]), guard_value(event, table.rows, 0))
    for p in range(last):
        if table.t[p + 1] <= start:
            continue
        k, begin, end = int(table.step[p]), max(start, float(table.t[p])), float(table.t[p + 1])
        after = guard_value(event, table.rows, p + 1)
        if crosses(before, after, event.direction):
            return Crossing(k, locate(at, begin, end, before, after), event)
        if table.slopes and begin == table.t[p] and before * after > 0.0:
            up = guard_value(event, table.near, 2 * p) - before
            down = after - guard_value(event, table.near, 2 * p + 1)
            if before * up < 0.0 < before * down:  # towards zero at the beginning, and away from it at the end
                t, extreme = turning_point(at, begin, end, before)
                if crosses(before, extreme, event.direction):
                    return Crossing(k, locate(at, begin, t, before, extreme), event)
                if crosses(extreme, after, event.direction):
                    return Crossing(k, locate(at, t, end, extreme, after), event)
        before = after
    return None


def _first_touch(c, run, table, last):
    """The first time at which an open contact closes: its gap falls to zero, at a state or between two states."""
    gap, rate, t = table.gap[:last + 1, c], table.rate[:last + 1, c], table.t
    flies = np.maximum.accumulate(gap > TOUCHING) | run.flies[c]
    for p in _candidates(gap, rate, np.diff(t[:last + 1]), flies):
        k, begin, end, before = int(table.step[p]), float(t[p]), float(t[p + 1]), max(gap[p], 1e-300)

        at, rate_at = (lambda t, k=k, part=part: float(run.gaps_at(k, t)[part][c]) for part in (0, 1))
        if not flies[p]:
            return Crossing(k, locate(lambda moment, at=at: at(moment) + TOUCHING, begin, end, before + TOUCHING,
                                      gap[p + 1] + TOUCHING), ("touch", c))
        if gap[p + 1] > 0.0:  # the smallest gap between two states outside
            end = locate(rate_at, begin, end, rate[p], rate[p + 1])
            after = at(end)
            if after > 0.0:
                continue
        elif p > 0 or before > NOISE:
            after = gap[p + 1]
        else:  # it has just opened, and closes again within the step
            flight = _flight(at, begin, end, gap[p + 1])
            # too low to be resolved: it closes after twice the time after which its rate changes sign
            if flight is None:
                return Crossing(k, min(end, 2.0 * _turn(rate_at, begin, end, rate[p]) - begin), ("touch", c))
            begin, before, end, after = flight
        return Crossing(k, locate(at, begin, end, before, after), ("touch", c))
    return None


def _flight(at, begin, end, last):
    """Times and gaps between which a contact that opened at `begin` closes again.

    None if its gap is never larger than rounding.
    """
    up, before = begin, 0.0
    for k in range(HALVINGS, -1, -1):
        t = begin + (end - begin) * 0.5 ** k if k else end
        gap = at(t) if k else last
        if gap > NOISE:
            up, before = t, gap
        elif before > 0.0 and gap <= 0.0:
            return up, before, t, gap
    return None


def _turn(rate_at, begin, end, first):
    """The time at which a contact that opens at `begin`, with the rate `first`, begins to close again.

    The search starts at `begin`: the rate at the end is of no use where friction elsewhere changes its branch.
    """
    for k in range(HALVINGS, -1, -1):
        t = begin + (end - begin) * 0.5 ** k if k else end
        rate = rate_at(t)
        if rate < 0.0:
            return locate(rate_at, begin, t, max(first, 1e-300), rate)
    return end


def _candidates(gap, rate, h, flies):
    """Indices of the intervals in which a gap may close; without load a touching contact's gap is rounding."""
    g0, g1, r0, r1 = gap[:-1], gap[1:], rate[:-1], rate[1:]
    falls = np.where(flies[:-1], (g1 < -NOISE) | ((g1 <= 0.0) & (r1 <= 0.0)), g1 < -TOUCHING)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the tangents at both ends intersect below zero, so the gap may be negative between them
        deepest = g0 + r0 * (g1 - g0 - r1 * h) / (r0 - r1)
    dips = flies[:-1] & (g0 > 0.0) & (g1 > 0.0) & (r0 < 0.0) & (r1 > 0.0) & (deepest <= 0.0)
    return np.flatnonzero(falls | dips)


def _first_release(c, run, table, last):
    """The first time at which a closed contact would have to pull, or friction exceeds its limit."""
    lam = table.rows.lam[:last + 1]
    normal, grip = run.loads(c, lam)
    size = np.maximum(np.abs(lam).max(axis=1, initial=0.0), 1e-300)
    found = (_first_overload(run, c, table, "release", normal, PULL * size),
             _first_overload(run, c, table, "slip", grip, run.grip_limit[c] * size))
    return min(filter(None, found), key=lambda crossing: crossing.t, default=None)


def _first_overload(run, c, table, kind, values, limits):
    """The first time at which a contact's margin (`values` at every state) falls below zero by more than the limits."""
    for p in np.flatnonzero(values < -limits):
        if run.redundant:
            if crossing := _lost_balance(run, c, table, p, kind):
                return crossing
            continue
        k = int(table.step[max(p - 1, 0)])
        if p == 0:
            return Crossing(0, float(table.t[0]), (kind, c))
        below = 0.0 if values[p - 1] > 0.0 else float(limits[p])  # at zero, or where the margin is beyond rounding

        def at(moment, k=k, kind=kind, below=below):
            return run.loads(c, run.at(k, moment).lam[:1])[0 if kind == "release" else 1][0] + below

        first, after = max(values[p - 1] + below, 1e-300), values[p] + below
        # early: with forces that still push
        return Crossing(k, locate(at, float(table.t[p - 1]), float(table.t[p]), first, after, True), (kind, c))
    return None


def _lost_balance(run, c, table, p, kind):
    """With redundant contacts: when admissible contact forces cease to exist (those of minimum norm need not be
    admissible). None if they still exist at state p of the table."""
    if run.holds(table.rows, p):
        return None
    before = max(p - 1, 0)
    k = int(table.step[before])
    if p == 0 or not run.holds(table.rows, before):
        return Crossing(k, float(table.t[before]), (kind, c))
    return Crossing(k, locate(lambda moment: 1.0 if run.holds(run.at(k, moment), 0) else -1.0, float(table.t[p - 1]),
                              float(table.t[p]), 1.0, -1.0), ("balance", c))


def _first_reversal(c, run, table, last):
    """The first time at which a sliding contact comes to rest: its slip turns against its former direction."""
    slip, direction = table.slip[:last + 1, c], table.directions[:last + 1, c]
    along = (slip[1:] * direction[:-1]).sum(axis=1)
    for p in np.flatnonzero(along < 0.0):
        k, begin = int(table.step[p]), float(slip[p] @ direction[p])
        if begin <= 0.0:
            return Crossing(k, float(table.t[p]), ("rest", c))

        def at(moment, k=k, p=p):
            return float(run.gaps_at(k, moment)[2][c] @ direction[p])

        return Crossing(k, locate(at, float(table.t[p]), float(table.t[p + 1]), begin, along[p]), ("rest", c))
    return None
