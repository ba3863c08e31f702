"""Long work in compiled code, in slices of bounded time: between two of them Python handles signals, as Ctrl-C.

While compiled code runs, a signal only leaves a note, which the interpreter reads when it goes on. So whatever may take
long comes back to Python every tenth of a second. How much work that is, `Slices` learns from the slices before.

A function of the user that compiled code calls may be where the signal arrives. What it raises there cannot pass
through compiled code; it is kept (`stops`), and raised at the end of the slice.
"""
import contextlib
import signal
import threading
import time
import weakref

LONGEST = 0.1
"""Seconds that a slice should take."""
GROWTH = 8
"""A slice is at most so many times as long as the one before: what comes may take longer than what has been."""

_STOPS = []
_FAILURES = weakref.WeakSet()


class Slices:
    """How many pieces of one kind of work make a slice.

    Parameters
    ----------
    first : int
        Pieces of the first slice, of which nothing is known yet. It may compile what it calls: the second one is as
        long, and the first to learn from.
    growth : int
        See `GROWTH`.
    """

    def __init__(self, first, growth=GROWTH):
        self.pieces, self.growth, self._is_first = first, growth, True

    def of(self, count, block=1):
        """Yield (begin, end) of each slice of `count` pieces, whole blocks but for the last one.

        Raises
        ------
        BaseException
            What has ended a user's function: KeyboardInterrupt, SystemExit.
        """
        begin = 0
        while begin < count:
            end = min(count, begin + self.pieces + -self.pieces % block)
            with self.timed(end - begin):
                yield begin, end
            begin = end
            raise_stops()

    def until(self, done):
        """Yield how many pieces a slice may take, until `done()`; raises as `of` does."""
        while not done():
            with self.timed(self.pieces):
                yield self.pieces
            raise_stops()

    def timed(self, pieces):
        """Learn from a slice of so many pieces, made within the context."""
        return _Timed(self, pieces)

    def learn(self, pieces, seconds):
        """Conclude from a slice of so many pieces how many the next one has."""
        wanted = LONGEST * pieces / max(seconds, 1e-9)
        # a short last slice says less than a whole one
        if not self._is_first and (wanted < self.pieces or pieces >= self.pieces):
            self.pieces = max(1, int(min(wanted, self.growth * self.pieces)))
        self._is_first = False


class _Timed:
    """A context, which tells `Slices` how long it took where nothing is raised."""

    __slots__ = ("slices", "pieces", "started")

    def __init__(self, slices, pieces):
        self.slices, self.pieces = slices, pieces

    def __enter__(self):
        self.started = time.monotonic()

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.slices.learn(self.pieces, time.monotonic() - self.started)


def stops(failure):
    """Where compiled code leaves what ends the program, of a user's function with this `Failure`: a list."""
    _FAILURES.add(failure)
    return _STOPS


def raise_stops():
    """Raise what has ended a user's function, if something has; nobody is told of it again."""
    if _STOPS:
        error = _STOPS[0]
        forget_stops()
        raise error


def forget_stops():
    """Nothing has ended a user's function."""
    _STOPS.clear()
    for failure in list(_FAILURES):
        if failure.about[0] > 1:
            failure.forget()


@contextlib.contextmanager
def interrupts_noted():
    """Ctrl-C raises nothing within the context, but is noted in the list that is given, and handled at the end.

    For libraries written in C++ that call functions of Python, and tell nobody what those raise; and for Numba, which
    takes an interrupt for something that is wrong with the types, and remembers it.
    """
    noted, handler = [], signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield noted  # signals are handled elsewhere, or not in Python
        return
    signal.signal(signal.SIGINT, lambda *given: noted.append(given))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, handler)
        if noted:
            handler(*noted[0])
