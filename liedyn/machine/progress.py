"""A progress bar for long runs (with tqdm), and a way to stop a run in another thread."""
# mypy: ignore-errors
import sys
import threading
import time

from liedyn.machine.arguments import flag
from liedyn.machine.errors import InputError

LONG = 3.0
"""Seconds after which a run gets a bar."""


class Stopped(BaseException):
    """Ends a run in a thread after the main thread was interrupted."""


def _in_a_terminal():
    """False where a bar would fill a file or a page with its states: in logs, notebooks, pages that are made."""
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Shows simulated time, after `LONG` seconds.

    `wanted` is True (shown at once; tqdm must be installed), False (never), or None (on long runs in a terminal, if
    tqdm is installed); or a `threading.Event`: nothing is shown, and the run ends with `Stopped` once the event is set.
    """

    def __init__(self, wanted, start, end, doing="simulate", unit="s"):
        self.start, self.end, self.doing, self.unit = start, end, doing, unit
        self.bar, self.due, self.tqdm, self.stop = None, None, None, None
        if isinstance(wanted, threading.Event):
            self.stop = wanted
            return
        if wanted is None and not _in_a_terminal() or wanted is not None and not flag("progress", wanted):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            if wanted:
                raise InputError("progress=True needs tqdm: pip install 'liedyn[progress]'") from None
            return
        self.tqdm, self.due = tqdm, 0.0 if wanted else None

    def show(self, t):
        """The run has reached time t."""
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        if self.due is None:  # the time before the first steps may have been compilation
            self.due = time.monotonic() + LONG
        if self.tqdm is None or time.monotonic() < self.due:
            return
        if self.bar is None:
            self.bar = self.tqdm(total=round(self.end - self.start, 9), desc=self.doing,
                                 bar_format="{l_bar}{bar}| {n:.4g}/{total:.4g} " + self.unit
                                            + " [{elapsed}<{remaining}]")
        self.bar.update(t - self.start - self.bar.n)

    def close(self):
        """Finish the bar and leave it on the screen."""
        if self.bar is not None:
            self.bar.close()
