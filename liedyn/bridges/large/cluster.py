"""Chunks on their way to workers and back."""
import contextlib
import os

import numba
import numpy as np

from liedyn.bridges.large.chunks import RowError, computed
from liedyn.bridges.large.transport import needed, unpacked
from liedyn.machine.cache import cache_files as files
from liedyn.machine.errors import InputError, LiedynError, said, shown
from liedyn.machine.typed_decorators import once

CACHE = "LIEDYN_CACHE_DIR", "NUMBA_CACHE_DIR"
AHEAD = 2
"""Chunks that wait for each thread of the workers: it always has one, and the inputs of few are on their way."""
PATIENCE = 30.0
"""Seconds to wait for a scheduler."""


@contextlib.contextmanager
def connected(client):
    """A client of Dask: that of an address, of a cluster, or of worker processes of its own, one for each core."""
    distributed = needed("distributed")
    if isinstance(client, distributed.Client):
        yield client
        return
    with contextlib.ExitStack() as stack:
        if client is None:
            try:
                client = stack.enter_context(distributed.LocalCluster(
                    n_workers=os.cpu_count(), threads_per_worker=1, processes=True, dashboard_address=":0"))
            except (RuntimeError, OSError) as error:
                raise LiedynError("worker processes do not start; a script that starts some needs the line if __name__ "
                                  f"== '__main__': {said(error)}") from error
        elif not isinstance(client, str | distributed.deploy.Cluster) or not client:
            raise InputError("client must be a Client or cluster of Dask, the address of a scheduler, or None, got "
                             f"{shown(client)}")
        try:
            found = stack.enter_context(distributed.Client(client, timeout=PATIENCE, set_as_default=False))
        except (OSError, ValueError, TypeError, ImportError) as error:
            raise InputError(f"client: there is no scheduler at {shown(client)}: {said(error)}") from error
        yield found


def run(client, work, place, inputs, show):
    """Compute the chunks that are not there yet; how many they were.

    No more chunks are on their way than workers can take, so inputs and results need little memory. What a worker had
    when it died is computed again by another one.

    Parameters
    ----------
    client : distributed.Client
    work : bytes
        A `ChunkWork`, packed.
    place : Kept
        Where results go.
    inputs : function of (begin, end)
        What gives these rows to `rows_of` on a worker: arrays, or futures of them.
    show : function of a number
        Called with the number of chunks that are there.

    Raises
    ------
    LiedynError
        A chunk cannot be computed. Those under way are waited for, and kept.
    """
    distributed = needed("distributed")
    waiting = iter(sorted(set(range(place.chunks)) - place.done()))
    cache = {name: os.environ[name] for name in CACHE if os.environ.get(name)}
    under_way, stopped, count = {}, None, 0
    arrived = distributed.as_completed(loop=client.loop)
    show(0)
    while True:
        room = AHEAD * max(1, sum(client.nthreads().values())) - len(under_way)
        for number in _take(waiting, room if stopped is None else 0):
            begin, end = place.rows(number)
            future = client.submit(compute, work, place, number, inputs(client, begin, end), cache, pure=False,
                                   key=f"liedyn-chunk-{number}-{os.urandom(8).hex()}")
            under_way[future] = number
            arrived.add(future)
        if not under_way:
            break
        future = next(arrived)
        number = under_way.pop(future)
        try:
            failure, made = future.result()
        except Exception as error:  # workers died again and again, or the chunk was more than they can hold
            failure = said(error)
        if failure is None:
            place.take(number, made)
            count += 1
            show(count)
        elif stopped is None:
            begin, end = place.rows(number)
            stopped = LiedynError(f"chunk {number} (rows {begin} to {end - 1}) cannot be computed: {failure}")
    if stopped is not None:
        raise stopped
    return count


def _take(iterator, count):
    for _, each in zip(range(count), iterator):
        yield each


def compute(work, place, number, rows, cache):
    """On a worker: compute a chunk and keep it.

    Returns what went wrong, as text since not all errors can travel, or None; and what `place.take` is to have.
    """
    _use_cache(tuple(cache.items()))
    numba.set_num_threads(1)  # of this thread; others of this worker have chunks of their own
    begin, end = place.rows(number)
    try:
        arrays, errors = computed(unpacked(work), rows_of(rows), end - begin, place.template)
        return None, place.write(number, arrays, errors)
    except RowError as error:
        return f"from row {begin + error.row} on: {error.text}", None
    except Exception as error:
        return said(error), None


def rows_of(rows):
    """Rows by name as arrays: they may be a part of something that is read here, (array, begin, end)."""
    if not isinstance(rows, dict):
        return rows
    return {name: np.asarray(x[0][x[1]:x[2]] if isinstance(x, tuple) else x) for name, x in rows.items()}


@once
def _use_cache(environment):
    """Have this process read and keep kernels where the one that has started the job does, if it sees that folder."""
    there = {name: value for name, value in environment if os.path.isdir(value)}
    if there and any(os.environ.get(name) != value for name, value in there.items()):
        os.environ.update(there)
        files.directories.cache_clear()
        files.cache_directory.cache_clear()
