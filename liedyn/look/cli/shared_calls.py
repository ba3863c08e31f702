"""Calls that several processes share, and a progress bar of them: for ``liedyn warmup``."""
# mypy: ignore-errors
import sys
from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait


def dealt(count, pools, call):
    """Results of ``call(0)`` to ``call(count - 1)``, as they come, from pools of one process each.

    Neighbours in the list need the same inner kernels, which each process translates for itself: a process makes the
    calls of its own part of the list, one after the other, and in the end those at the end of the longest part left.
    """
    parts = [deque(range(k * count // len(pools), (k + 1) * count // len(pools))) for k in range(len(pools))]
    running = {}

    def go_on(pool, own):
        if part := own or max(parts, key=len):
            running[pool.submit(call, part.popleft() if part is own else part.pop())] = pool, own

    for each in zip(pools, parts):
        go_on(*each)
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            go_on(*running.pop(future))
            yield future.result()


def progress(names, done):
    """A list of the results of `done`, with a progress bar on stderr."""
    try:
        from tqdm import tqdm
    except ImportError:
        results = []
        for result in done:
            results.append(result)
            print(f"\r{len(results)}/{len(names)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return results
    return list(tqdm(done, total=len(names), unit="function", disable=None))  # None: shown in terminals only
