"""Guards: what a kernel decided at the reference state, as comparisons that every other state is asked.

A program is valid where all guards hold. A guard is written so that it fails if one of its numbers is not a number.
"""
import contextlib
from typing import NamedTuple


BRANCH, PIVOT, REDUNDANT = "branch", "pivot", "redundant"
"""Kinds of guards: which way a kernel goes; a pivot is large enough; a row depends on others."""


class Guard(NamedTuple):
    """smaller < larger if `strict`, else smaller <= larger."""

    smaller: object
    larger: object
    strict: bool

    def __str__(self):
        return f"{self.smaller} {'<' if self.strict else '<='} {self.larger}"


class Guards:
    """The guards of a program, each of them once, in the order of the decisions.

    Attributes
    ----------
    kinds : set of str
        The kinds that there are.

    Examples
    --------
    >>> guards = Guards()
    >>> guards.decide("x", 1.0, False, strict=True)
    False
    >>> with guards.off():
    ...     guards.decide("y", 1.0, True, strict=True)
    True
    >>> [str(guard) for guard in guards]
    ['1.0 <= x']
    """

    def __init__(self):
        self._found, self._off, self.kinds = {}, (), set()

    def __iter__(self):
        return iter(self._found.values())

    def __len__(self):
        return len(self._found)

    def decide(self, smaller, larger, yes, strict):
        """The decision `yes`, on smaller < larger or smaller <= larger, which is recorded."""
        if yes:
            self.require(smaller, larger, strict)
        else:
            self.require(larger, smaller, not strict)
        return yes

    def require(self, smaller, larger, strict=True, kind=BRANCH):
        """Every state has to satisfy smaller < larger."""
        if kind not in self._off:
            self.kinds.add(kind)
            self._found.setdefault((str(smaller), str(larger), strict), Guard(smaller, larger, strict))

    @contextlib.contextmanager
    def off(self, *kinds):
        """Within this context decisions of these kinds are not recorded, as any of them leads to a valid result."""
        before, self._off = self._off, kinds or (BRANCH, PIVOT, REDUNDANT)
        try:
            yield
        finally:
            self._off = before
