"""Long computations in compiled code, cut into slices of bounded time: between slices Python handles signals such as
Ctrl-C.

While compiled code runs, a signal only sets a flag, which the interpreter reads when it continues. So every long
computation returns to Python every tenth of a second. `Slices` estimates from the previous slices how much work fits
into one.

A signal may also arrive in a user's function that compiled code calls. Its exception cannot pass through compiled code;
it is stored (`stops`) and raised at the end of the slice.
"""
# mypy: ignore-errors
import contextlib
import signal
import threading
import time
import weakref

LONGEST = 0.1
"""Wanted duration of a slice in seconds."""
SHORT = 0.01
"""Part of a slice that is made without measuring it: one that takes a hundred times as long is a slice."""
GROWTH = 8
"""Largest ratio of a slice to the one before, as the work ahead may be slower than the work done."""

_STOPS = []
_FAILURES = weakref.WeakSet()


class Slices:
    """Chooses how many pieces of one kind of work make a slice.

    Parameters
    ----------
    first : int
        Pieces of the first slice. It may include compilation, so its time is ignored: the second slice has the same
        length and is the first to be measured.
    growth : int
        See `GROWTH`.

    Attributes
    ----------
    short : int
        Pieces that are few enough not to be measured (`SHORT`); 0 as long as nothing is known.
    """

    def __init__(self, first, growth=GROWTH):
        self.pieces, self.growth, self.short, self._is_first = first, growth, 0, True

    def of(self, count, block=1):
        """Yield (begin, end) of each slice of `count` pieces, in multiples of `block` except for the last one.

        Raises
        ------
        BaseException
            The exception that ended a user's function: KeyboardInterrupt, SystemExit.
        """
        begin = 0
        while begin < count:
            end = min(count, begin + self.pieces + -self.pieces % block)
            with self.timed(end - begin):
                yield begin, end
            begin = end
            raise_stops()

    def until(self, done):
        """Yield the number of pieces of each next slice, until `done()`; raises as `of` does."""
        while not done():
            with self.timed(self.pieces):
                yield self.pieces
            raise_stops()

    def timed(self, pieces):
        """Context that measures a slice of so many pieces."""
        return _Timed(self, pieces)

    def learn(self, pieces, seconds):
        """Choose the next number of pieces from the measured time of this one."""
        wanted = LONGEST * pieces / max(seconds, 1e-9)
        if not self._is_first:
            self.short = int(SHORT * wanted)
        # a short last slice is a worse measurement than a whole one
        if not self._is_first and (wanted < self.pieces or pieces >= self.pieces):
            self.pieces = max(1, int(min(wanted, self.growth * self.pieces)))
        self._is_first = False


class _Timed:
    """The context of `Slices.timed`; an exception makes it skip the measurement."""

    __slots__ = ("slices", "pieces", "started")

    def __init__(self, slices, pieces):
        self.slices, self.pieces = slices, pieces

    def __enter__(self):
        self.started = time.monotonic()

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.slices.learn(self.pieces, time.monotonic() - self.started)


def stops(failure):
    """The list to which compiled code appends exceptions that end the program, from the function with this
    `Failure`."""
    _FAILURES.add(failure)
    return _STOPS


def raise_stops():
    """Raise the stored exception that ended a user's function, if there is one, and forget it."""
    if _STOPS:
        error = _STOPS[0]
        forget_stops()
        raise error


def forget_stops():
    """Forget stored exceptions."""
    _STOPS.clear()
    for failure in list(_FAILURES):
        if failure.about[0] > 1:
            failure.forget()


@contextlib.contextmanager
def interrupts_noted():
    """Within the context Ctrl-C raises nothing; it is noted in the list that the context returns, and handled at the
    end.

    For C++ libraries that call Python functions and drop their exceptions; and for Numba, which mistakes an interrupt
    for a typing error, and remembers it.
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
