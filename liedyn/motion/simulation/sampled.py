"""Sampled controllers: the input is computed periodically, held between samples, delayed, and bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, non_negative, positive
from liedyn.machine.errors import InputError, said, shown
from liedyn.model.travel import Travelling

if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Sampled(Travelling):
    """A controller with sampling, delay, hold and saturation, for `tau` or `u` of `simulate`.

    It is called once at each time ``t0 + k period``, with the state at that time; its value is applied from `delay`
    later on until the next value arrives. Unlike a function of time and state it may have a memory, as no step before a
    sample is repeated. A controller with a method ``bounded(u, applied)`` is told when bounds have cut its value, so
    that its integrals do not wind up: regulators with integral action stop those that push further (conditional
    integration).

    Parameters
    ----------
    controller : callable
        ``(t, q, v) -> u``, such as a :class:`liedyn.Regulator`.
    period : float
        Time between samples [s]: a multiple of `dt`.
    delay : float
        Time for computing and transmission [s]: a multiple of `dt`.
    lower, upper : float or array_like, optional
        Bounds of the inputs.
    initial : array_like, optional
        Input until the first value arrives; default zero.

    Raises
    ------
    InputError
        The controller cannot be called, or a number is not positive or not finite.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> controller = ld.Sampled(ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1), period=0.01, delay=0.005, upper=0.5)
    >>> tr = ld.simulate(arm, arm.home, [0.0] * 4, 0.1, u=controller)
    """

    controller: Any
    period: float
    delay: float = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    initial: Any = 0.0

    def __post_init__(self) -> None:
        if not callable(self.controller):
            raise InputError(f"Sampled, controller: expected a function of (t, q, v), got {shown(self.controller)}")
        for name, check in (("period", positive), ("delay", non_negative)):
            object.__setattr__(self, name, check(f"Sampled, {name}", getattr(self, name)))
        for name in ("lower", "upper", "initial"):
            x = floats(f"Sampled, {name}", getattr(self, name))
            if np.isnan(x).any() or name == "initial" and not np.isfinite(x).all():
                raise InputError(f"Sampled, {name}: must be numbers, got {shown(getattr(self, name))}")
            object.__setattr__(self, name, x)
        if (np.asarray(self.lower) > self.upper).any():
            raise InputError(f"Sampled, lower: must not exceed upper, got {shown(self.lower)} and {shown(self.upper)}")


def cut(controller, u, lower, upper):
    """The controller's value within bounds; if they cut it, and it wants to know, it is told."""
    applied = np.clip(u, lower, upper)
    if hasattr(controller, "bounded") and (applied != u).any():
        controller.bounded(u, applied)
    return applied


class Sampling:
    """The state of a `Sampled` in one run: samples by numbers of steps, and values that have not arrived yet.

    Attributes
    ----------
    initial : ndarray, shape (size,)
    """

    def __init__(self, name, given, size, grid):
        self.name, self.given, self.size, self.grid = name, given, size, grid
        self.every, self.lag = (self._steps(each, getattr(given, each)) for each in ("period", "delay"))
        self.bounds = [self._fitted(each, getattr(given, each)) for each in ("lower", "upper")]
        self.initial = self._fitted("initial", given.initial)
        self.coming, self.last = [], -1

    def _steps(self, what, time):
        count = round(time / self.grid.dt)
        if abs(count * self.grid.dt - time) > 1e-6 * self.grid.dt or what == "period" and count < 1:
            raise InputError(f"Sampled, {what}: must be a multiple of dt = {self.grid.dt:g} s, got {time:g}")
        return count

    def _fitted(self, what, x):
        if x.shape not in ((), (self.size,)):
            raise InputError(f"Sampled, {what}: must be a number or {self.size} numbers, got shape {x.shape}")
        return np.broadcast_to(x, (self.size,)).astype(float)

    def _said(self, t, q, v):
        """The controller's present value; InputError if it fails, or does not return finite numbers."""
        owner = f"{self.name}, the sampled controller,"
        try:
            u = floats(owner, self.given.controller(t, q.copy(), v.copy()))
        except Exception as error:
            raise InputError(f"{owner} fails with {said(error)} at t = {t:g}") from error
        if u.shape != (self.size,) or not np.isfinite(u).all():
            raise InputError(f"{owner} must return {self.size} finite numbers, got {shown(u.tolist())} at t = {t:g}")
        return u

    def steps_left(self, t):
        """Number of steps from time t until the next sample or arrival."""
        now = self.grid.number(t)
        due = [(now // self.every + 1) * self.every, *(number for number, _ in self.coming)]
        return max(1, min(due) - now)

    def act(self, t, q, v, held):
        """Samples if a sample is due, and applies values that arrive; True if the input has changed."""
        now = self.grid.number(t)
        if abs(self.grid.start + now * self.grid.dt - t) > self.grid.whole * self.grid.dt or now <= self.last:
            return False
        self.last = now
        if now % self.every == 0:
            u = cut(self.given.controller, self._said(t, q, v), *self.bounds)
            self.coming.append((now + self.lag, u))
        arrived = [u for number, u in self.coming if number <= now]
        self.coming = [each for each in self.coming if each[0] > now]
        if arrived:
            held[:] = arrived[-1]
        return bool(arrived)
