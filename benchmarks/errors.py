"""What a benchmark raises when it cannot be run, or would compare different things."""
import numpy as np

from liedyn.machine.errors import LiedynError


class BenchmarkError(LiedynError):
    """A benchmark that cannot be run as asked."""


class MissingPeer(BenchmarkError):
    """A library to compare with that is not installed, or cannot be built here; the message says why."""


class SlowCompilerError(MissingPeer):
    """A peer whose compilation was given up.

    Attributes
    ----------
    seconds : int
        Of processor time, after which it was.
    """

    def __init__(self, message, seconds):
        super().__init__(message)
        self.seconds = seconds


class DisagreementError(BenchmarkError):
    """Two contenders computed different results: their times say nothing.

    Attributes
    ----------
    difference : float
        Largest difference, relative to the largest entry.
    """

    def __init__(self, message, difference):
        super().__init__(message)
        self.difference = difference


def relative_difference(actual, expected):
    """Largest difference of two arrays, or of two tuples of them, relative to the largest entry of each.

    Examples
    --------
    >>> relative_difference([1.0, 2.0], [1.0, 4.0])
    0.5
    """
    if isinstance(expected, tuple):
        return max(map(relative_difference, actual, expected))
    actual, expected = np.asarray(actual), np.asarray(expected)
    return float(np.abs(actual - expected).max(initial=0.0) / (np.abs(expected).max(initial=0.0) or 1.0))


def require_agreement(what, actual, expected, tolerance):
    """Raise DisagreementError if two results differ, else return by how much they do."""
    difference = relative_difference(actual, expected)
    if not difference <= tolerance:
        raise DisagreementError(f"{what}: results differ by {difference:.2g} (allowed {tolerance:.2g})", difference)
    return difference
