"""Message in the terminal while kernels are compiled: one line after two seconds, or a count of compiled functions.

Nothing is shown in pipes and files, and nothing with ``LIEDYN_QUIET=1`` in the environment. The line is shown once per
process. The command line uses the counter; `liedyn warmup` shows neither, as it has a progress bar.
"""
import os
import sys
import threading
import time

PATIENCE = 2.0
"""Seconds of compilation in a process after which the message appears."""
LINE = ("liedyn: compiling kernels, which later calls and processes read from the cache; "
        "`liedyn warmup` compiles all of them ahead")


class _Notice:
    """Time spent compiling in this process, number of functions, and what is shown of it."""

    def __init__(self):
        self.counts = self.is_silent = False
        self._spent, self._functions, self._begin, self._timer, self._is_late = 0.0, 0, None, None, False

    def begin(self):
        """The compilation of an outermost function begins."""
        self._begin = time.perf_counter()
        if not (self._is_late or self.is_silent) and _is_seen():
            self._timer = threading.Timer(max(PATIENCE - self._spent, 0.0), self._show)
            self._timer.daemon = True
            self._timer.start()

    def one_more(self):
        """One more function has been compiled."""
        self._functions += 1
        if self.counts and self._is_late:
            seconds = self._spent + time.perf_counter() - self._begin
            print(f"\rliedyn: compiling kernels, once for this machine: {self._functions} functions, {seconds:.0f} s",
                  end="", file=sys.stderr, flush=True)

    def end(self):
        """The outermost function and all its callees are compiled."""
        self._spent += time.perf_counter() - self._begin
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_line(self):
        """Begin a new line below the counter, if there is one."""
        if self.counts and self._is_late:
            print(file=sys.stderr)

    def _show(self):
        self._is_late = True
        if not self.counts:
            print(LINE, file=sys.stderr, flush=True)


def _is_seen():
    return os.environ.get("LIEDYN_QUIET", "0") == "0" and sys.stderr is not None and sys.stderr.isatty()


notice = _Notice()
