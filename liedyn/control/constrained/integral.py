"""Integral action: the integral of an error over the times at which a controller is called."""

from collections import deque

import numpy as np

REMEMBERED = 100_000
"""Number of samples that an integral stores; a simulation goes back by some thousand of them at events."""


class Integral:
    """The integral of samples over time, by the trapezoidal rule; a sample at an earlier time undoes later ones.

    So the stages of a Runge-Kutta step, a step that is repeated, and a run that starts anew each use the integral of
    their own time.
    """

    def __init__(self, size):
        self._zero = np.zeros(size)
        self._samples = deque(maxlen=REMEMBERED)

    def reset(self):
        """Start again from zero."""
        self._samples.clear()

    def known(self, t):
        """Integral up to t as a function of the next sample x at t: known + weight x; returns known, weight."""
        while self._samples and self._samples[-1][0] >= t:
            self._samples.pop()
        if not self._samples:
            return self._zero, 0.0
        before, x, total = self._samples[-1]
        weight = 0.5 * (t - before)
        return total + weight * x, weight

    def last(self):
        """What the last sample has added."""
        if not self._samples:
            return self._zero
        before = self._samples[-2][2] if len(self._samples) > 1 else self._zero
        return self._samples[-1][2] - before

    def undo(self, which):
        """Take back what the last sample has added, where `which` is true."""
        if self._samples:
            t, x, total = self._samples[-1]
            self._samples[-1] = t, x, np.where(which, total - self.last(), total)

    def add(self, t, x):
        """Add the sample x at t; returns the integral up to t."""
        known, weight = self.known(t)
        total = known + weight * x
        self._samples.append((t, x, total))
        return total
