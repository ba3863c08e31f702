"""Times of several contenders, measured in turn.

Blocks of calls are interleaved: every round runs one block of each contender, and the next round starts with another
one, so that a slow spell of the machine meets them all. A block is made long enough for the clock. Reported are the
median over the rounds and the quartiles, per operation; nothing is subtracted, and no smallest value is picked.

The clock is the processor time of this thread, which stands still while another process has the core. Every contender
computes in the calling thread and never waits, so on an idle machine it is the same as the clock on the wall.
"""
import gc
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.errors import BenchmarkError


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
    """How much to measure: rounds, and the shortest block [s]."""

    rounds: int
    block: float


FULL, QUICK = Effort(rounds=21, block=0.01), Effort(rounds=3, block=0.001)


@dataclass(frozen=True)
class Timing:
    """Seconds per operation: median and quartiles over the rounds."""

    median: float
    lower: float
    upper: float
    rounds: int
    operations: int


def race(contenders, effort):
    """Time contenders by name, interleaved.

    Parameters
    ----------
    contenders : dict of str to Contender
    effort : Effort

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
    runs = {name: _runs_per_block(contenders[name].run, effort.block) for name in names}
    blocks = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(effort.rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                blocks[name].append(_block(contenders[name].run, runs[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: _timing(blocks[name], runs[name] * contenders[name].operations) for name in names}


def _block(run, times):
    start = time.thread_time()
    for _ in range(times):
        run()
    return time.thread_time() - start


def _runs_per_block(run, block):
    run()  # whatever has to be compiled is compiled here
    runs = 1
    while (seconds := _block(run, runs)) < block:
        runs = max(2 * runs, int(1.1 * runs * block / max(seconds, 1e-9))) if seconds > 0.1 * block else 8 * runs
    return runs


def _timing(seconds, operations):
    lower, median, upper = np.percentile(seconds, [25, 50, 75]) / operations
    return Timing(float(median), float(lower), float(upper), len(seconds), operations)
