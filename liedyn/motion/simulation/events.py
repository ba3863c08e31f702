"""State events: changes of state and constraints when a guard crosses zero, and the location of the crossing."""
# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import minimize_scalar

from liedyn.machine.arguments import between, flag, floats, names, non_negative, number
from liedyn.machine.errors import InputError, said, shown
from liedyn.mechanics.contact.contact_state import DEEPEST, place_on, statuses, surfaces_that_end
from liedyn.model.packed import OFF, OPEN
from liedyn.model.travel import Travelling

TIME_TOLERANCE = 1e-12
"""Width of the interval, relative to the times themselves, in which an event is located: a few units of rounding."""


@dataclass(frozen=True)
class Event(Travelling):
    """A change of the state or the constraints when a function of the state, the guard, crosses zero.

    A guard that is exactly zero at the start of a run crosses there if it moves on in its direction. Adaptive
    methods evaluate it ten times a step, and where its slope changes sign in between. All events at one time are one
    change of the state, with one impact.

    The run continues from the state after the event: `action` changes the state, then constraints are switched off,
    then on, and the impulse that this needs makes the velocities consistent.

    Parameters
    ----------
    name : str
        Name in the trajectory's record of events.
    guard : callable
        ``guard(t, q, v)``, a number; t [s], q (nq,) and v (nv,) as in `simulate`. It must neither store nor change the
        arrays.
    direction : {0, 1, -1}
        Which crossings count: all, rising, or falling ones.
    on, off : sequence of str
        Constraints to be switched. An event that would change nothing, as they are switched already, does not occur.
        A one-sided constraint that is off is ignored until it is switched on again. It may be switched on while it is
        open; if it is closed it collides at once, and if it is penetrated that is an error.
    restitution : float
        Fraction of the approach speed with which the first row of each constraint in `on` rebounds: above zero the
        constraint stays off, and the state bounces.
    resting : float
        Approach speed [m/s, rad/s] below which restitution counts as zero, so that bouncing ends.
    action : callable, optional
        ``action(t, q, v)``, returning the new ``(q, v)``, or None to leave the state as it is.
    terminal : bool
        True if the run ends here.
    derivative : callable, optional
        Derivative of the guard, for `differentiate_run`: ``derivative(t, q, v)`` returns ``(by_t, by_q, by_v)``, the
        derivatives by t, by a displacement in the tangent space at q, shape (nv,), and by v, shape (nv,).
    action_derivative : callable, optional
        Derivative of the action: ``action_derivative(t, q, v)`` returns ``(by_t, by_q, by_v)`` of shapes (2 nv,),
        (2 nv, nv) and (2 nv, nv); the first nv rows are the displacement in the tangent space at the new q, the others
        belong to the new v.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.Event("upright", lambda t, q, v: q[0], direction=1, terminal=True).name
    'upright'
    """

    name: str
    guard: Callable[..., Any]
    direction: int = 0
    on: str | Sequence[str] = ()
    off: str | Sequence[str] = ()
    restitution: float = 0.0
    resting: float = 1e-3
    action: Callable[..., Any] | None = None
    terminal: bool = False
    derivative: Callable[..., Any] | None = None
    action_derivative: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"the name of an event must be text, got {shown(self.name)}")
        what = f"event {shown(self.name)}"
        for key in ("on", "off"):
            object.__setattr__(self, key, names(f"{what}: {key}", getattr(self, key)))
        if not callable(self.guard):
            raise InputError(f"{what}: guard must be a function of (t, q, v), got {shown(self.guard)}")
        if not (self.action is None or callable(self.action)):
            raise InputError(f"{what}: action must be a function of (t, q, v), or None, got {shown(self.action)}")
        for key in ("derivative", "action_derivative"):
            given = getattr(self, key)
            if not (given is None or callable(given)):
                raise InputError(f"{what}: {key} must be a function of (t, q, v), got {shown(given)}")
        if number(f"{what}: direction", self.direction) not in (-1, 0, 1):
            raise InputError(f"{what}: direction must be -1, 0 or 1, got {shown(self.direction)}")
        object.__setattr__(self, "restitution", between(f"{what}: restitution", self.restitution, 0.0, 1.0))
        object.__setattr__(self, "resting", non_negative(f"{what}: resting", self.resting))
        object.__setattr__(self, "terminal", flag(f"{what}: terminal", self.terminal))


SCALE = 10.0
"""Factor of the guards of edges, so that they are above the depth that counts as contact where a gap is zero."""


def edges(robot):
    """The events of all surfaces that end: a contact whose point comes over the edge is switched off, and on again when
    the point is inside and above."""
    found = []
    for k, each in surfaces_that_end(robot).items():
        def ends(t, q, v, k=k):
            return -place_on(robot, k, q)[0]

        def begins(t, q, v, k=k):
            inside, gap = place_on(robot, k, q)
            # from one surface to the next one, beside it, a point may be as deep; an impact is no beginning (`SCALE`)
            return SCALE * min(inside, gap + 0.5 * DEEPEST)

        found += [Event(f"{each.name} ends", ends, 1, off=each.name),
                  Event(f"{each.name} begins", begins, 1, on=each.name)]
    return tuple(found)


def leave_surfaces(robot, model, q):
    """Switches the contacts in `model` off that are beyond the edge at q, or below the surface."""
    for k in surfaces_that_end(robot):
        (inside, gap), status = place_on(robot, k, q), statuses(model)
        if status[k] == OPEN and (inside < 0.0 or gap < -DEEPEST):
            status[k] = OFF


def crosses(before, after, direction):
    """True if a guard crosses zero from one value to the next, in a direction that counts."""
    rising, falling = before < 0.0 <= after, before > 0.0 >= after
    return (rising and direction >= 0) or (falling and direction <= 0)


def locate(value_at, start, end, first, last, early=False):
    """A time just after a crossing, or just before it (`early`), accurate to the tolerance.

    Regula falsi with halved end values (Illinois; Dahlquist and Bjorck 2008, 6.2.3), bisection where that is slow.
    `first` and `last` are the guard's values at both ends, of opposite sign or zero.
    """
    width = TIME_TOLERANCE * max(1.0, abs(start), abs(end))
    low, high, f_low, f_high = start, end, first, last
    side = 0
    for k in range(200):
        if high - low <= width:
            break
        middle = 0.5 * (low + high)
        if k % 3 != 2 and f_high != f_low:
            middle = high - f_high * (high - low) / (f_high - f_low)
            # away from both ends, where the guard is already known
            middle = min(max(middle, low + 0.25 * width), high - 0.25 * width)
        f = value_at(middle)
        if f == 0.0 or (f > 0.0) == (last > 0.0 if last != 0.0 else first < 0.0):
            high, f_high = middle, f
            f_low, side = (0.5 * f_low if side == 1 else f_low), 1
        else:
            low, f_low = middle, f
            f_high, side = (0.5 * f_high if side == -1 else f_high), -1
    return low if early else high


def turning_point(value_at, start, end, first):
    """Time and value of the extremum towards zero between two times (Brent's search); `first` gives the sign."""
    sign = 1.0 if first > 0.0 else -1.0
    found = minimize_scalar(lambda t: sign * value_at(t), bounds=(start, end), method="bounded",
                            options={"xatol": 1e-9 * (end - start)})
    return float(found.x), sign * float(found.fun)


def guard_value(event, rows, k):
    """The guard at row k as a finite float."""
    what, t = f"guard of event {event.name!r}", float(rows.t[k])
    try:
        value = event.guard(t, rows.q[k], rows.v[k])
    except Exception as error:
        raise InputError(f"{what}: fails with {said(error)} at t = {t:.6g}") from error
    value = floats(f"what {what} returns", value)
    if value.size != 1:
        raise InputError(f"{what} must return a number, got an array of shape {value.shape} at t = {t:.6g}")
    value = float(value.ravel()[0])
    if not math.isfinite(value):
        raise InputError(f"{what} is not finite at t = {t:.6g}: {value}")
    return value
