"""Times of several contenders, measured in turn.

Blocks of calls are interleaved: every round runs one block of each contender, and the next round starts with another
one, so that a slow spell of the machine meets them all. A block is made long enough for the clock. Reported are the
median over the rounds and the quartiles, per operation; nothing is subtracted, and no smallest value is picked.

The clock is the processor time of this thread, which stands still while another process has the core. Every contender
computes in the calling thread and never waits, so on an idle machine it is the same as the clock on the wall. Where
contenders have several threads the clock on the wall is the only one (`WALL`).
"""
import gc
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.errors import BenchmarkError

THREAD, WALL = time.thread_time, time.perf_counter


@dataclass(frozen=True)
class Contender:
    """Something to time.

    Attributes
    ----------
    run : callable
        Without arguments; does `operations` operations.
    operations : int
    """

    run: object
    operations: int


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes
    ----------
    rounds : int
        Fewer, but three at least, in a race that would take longer than its budget.
    block : float
        The shortest block [s].
    budget : float
        For one race [s].
    """

    rounds: int
    block: float
    budget: float = 2.0
    quick: bool = False


FULL, QUICK = Effort(rounds=15, block=0.006), Effort(rounds=3, block=0.0005, budget=0.05, quick=True)


class Timing(NamedTuple):
    """Seconds per operation: median and quartiles over the rounds."""

    median: float
    lower: float
    upper: float


def race(contenders, effort, clock=THREAD):
    """Time contenders by name, interleaved.

    Parameters
    ----------
    contenders : dict of str to Contender
    effort : Effort
    clock : callable

    Returns
    -------
    dict of str to Timing

    Raises
    ------
    BenchmarkError
        Fewer than one round, or a contender without operations.

    Examples
    --------
    >>> sorted(race({"sum": Contender(lambda: sum(range(1000)), 1)}, QUICK))
    ['sum']
    """
    if effort.rounds < 1:
        raise BenchmarkError(f"a race needs at least one round, got {effort.rounds}")
    for name, contender in contenders.items():
        if contender.operations < 1:
            raise BenchmarkError(f"contender {name!r} does {contender.operations} operations in a run")
    names = list(contenders)
    runs = {name: _runs_per_block(contenders[name].run, effort.block, clock) for name in names}
    blocks = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for turn in range(effort.rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                blocks[name].append(_block(contenders[name].run, runs[name], clock))
            if turn >= min(2, effort.rounds - 1) and time.perf_counter() - start > effort.budget:
                break
    finally:
        if collecting:
            gc.enable()
    return {name: _timing(blocks[name], runs[name] * contenders[name].operations) for name in names}


def _block(run, times, clock):
    start = clock()
    for _ in range(times):
        run()
    return clock() - start


def _runs_per_block(run, block, clock):
    run()  # whatever has to be compiled is compiled here
    runs = 1
    while (seconds := _block(run, runs, clock)) < block:
        runs = max(2 * runs, int(1.1 * runs * block / max(seconds, 1e-9))) if seconds > 0.1 * block else 8 * runs
    return runs


def _timing(seconds, operations):
    lower, median, upper = np.percentile(seconds, [25, 50, 75]) / operations
    return Timing(float(median), float(lower), float(upper))
