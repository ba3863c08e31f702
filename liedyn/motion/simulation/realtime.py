"""A loop that is synchronised with the wall clock."""
# mypy: ignore-errors

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from liedyn.machine.arguments import positive
from liedyn.machine.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class RealTimeLoop:
    """Calls a function once every `dt` of the wall clock, and counts the calls that end too late.

    After a late call the next ones follow at once, until the loop has caught up; if it is more than `patience` behind,
    the lost time is given up, and `factor` falls below one. For `Stepper` at 1 kHz let each call make several steps
    (`Stepper.advance`), as many as are drawn together: while it computes, other threads run, and the operating system's
    interruptions are averaged over them.

    Parameters
    ----------
    function : callable
        ``function()``. Returning False ends the loop.
    dt : float
        Time between calls [s].
    patience : float
        Largest delay of the loop that is made up for [s].

    Attributes
    ----------
    calls, late : int
        Number of calls, and number of calls that ended after the next one was due.
    worst : float
        The longest delay [s].
    factor : float
        Time of the calls divided by time of the wall clock: 1 if the loop keeps up.
    running : bool
    error : Exception or None
        The error that ended the loop in its thread; `stop` raises it.

    Raises
    ------
    InputError
        The function cannot be called, or a time is not positive.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4)
    >>> loop = ld.RealTimeLoop(lambda: stepper.advance(16), 0.016)
    >>> loop.run(0.08)
    >>> loop.calls, round(stepper.t, 9)
    (5, 0.08)
    """

    calls: int
    late: int
    worst: float
    error: Exception | None
    dt: float
    patience: float

    def __init__(self, function: Callable[..., Any], dt: float, patience: float = 0.1) -> None:
        if not callable(function):
            raise InputError(f"function must be one without arguments, got {shown(function)}")
        self._function, self.dt, self.patience = function, positive("dt", dt), positive("patience", patience)
        self.calls, self.late, self.worst, self.error = 0, 0, 0.0, None
        self._elapsed, self._thread, self._ends = 0.0, None, threading.Event()

    @property
    def factor(self) -> float:
        return self.calls * self.dt / self._elapsed if self._elapsed else 1.0

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __repr__(self) -> str:
        return f"RealTimeLoop(dt={self.dt:g}, calls={self.calls}, late={self.late}, factor={self.factor:.4f})"

    def __reduce__(self) -> Any:
        raise InputError("a loop in real time belongs to its process, and cannot be copied: make another one")

    def run(self, duration: float) -> None:
        """Run in the calling thread.

        Parameters
        ----------
        duration : float
            Duration [s].

        Raises
        ------
        InputError
            The duration is no positive number, or the loop already runs in a thread of its own.

        Examples
        --------
        >>> loop = RealTimeLoop(lambda: None, 0.001)
        >>> loop.run(0.01)
        >>> loop.calls
        10
        """
        duration = positive("duration", duration)
        self._require_stopped()
        self._ends.clear()
        self._run(round(duration / self.dt))

    def start(self) -> None:
        """Run in a thread of its own, until `stop`.

        Raises
        ------
        InputError
            The loop already runs.

        Examples
        --------
        >>> loop = RealTimeLoop(lambda: None, 0.001)
        >>> loop.start()
        >>> loop.running
        True
        >>> loop.stop()
        """
        self._require_stopped()
        self._ends.clear()
        self.error = None
        self._thread = threading.Thread(target=self._run_aside, name="liedyn real time", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and raise the error that ended its loop, if any.

        Examples
        --------
        >>> loop = RealTimeLoop(lambda: 1 / 0, 0.001)
        >>> loop.start()
        >>> loop.stop()
        Traceback (most recent call last):
            ...
        ZeroDivisionError: division by zero
        """
        self._ends.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        error, self.error = self.error, None
        if error is not None:
            raise error

    def _require_stopped(self):
        if self.running:
            raise InputError("the loop is running in a thread of its own: stop() it first")

    def _run_aside(self):
        try:
            self._run(None)
        except Exception as error:
            self.error = error

    def _run(self, count):
        done, before, begin = 0, self._elapsed, time.perf_counter()
        due = begin
        while not self._ends.is_set() and (count is None or done < count):
            go_on = self._function()
            done, due, now = done + 1, due + self.dt, time.perf_counter()
            self.calls, self._elapsed = self.calls + 1, before + max(now, due) - begin
            if now > due:
                self.late, self.worst = self.late + 1, max(self.worst, now - due)
                if now - due > self.patience:
                    due = now
            if go_on is False:
                break
            time.sleep(max(0.0, due - time.perf_counter()))
