"""Sending chunks to workers, and collecting their results."""
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
"""Number of chunks sent ahead per thread of the workers: no thread waits, and few inputs are in memory."""
PATIENCE = 30.0
"""Seconds to wait for a scheduler."""


@contextlib.contextmanager
def connected(client):
    """A Dask client: for an address, for a cluster, or with own worker processes, one for each core."""
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
    """Computes the missing chunks; returns their number.

    No more chunks are sent than workers can process, so that inputs and results need little memory. Chunks of a worker
    that dies are computed by another one.

    Parameters
    ----------
    client : distributed.Client
    work : bytes
        A `ChunkWork`, packed.
    place : Kept
        Storage of the results.
    inputs : function of (begin, end)
        Returns these rows in a form that `rows_of` accepts on a worker: arrays, or futures of them.
    show : function of a number
        Called with the number of chunks that are complete.

    Raises
    ------
    LiedynError
        A chunk cannot be computed. Chunks in progress are completed and stored.
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
        except Exception as error:  # workers died repeatedly, or the chunk was too large for them
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
    """On a worker: computes a chunk and stores it.

    Returns the error as text, since not all errors can be serialised, or None; and the argument of `place.take`.
    """
    _use_cache(tuple(cache.items()))
    numba.set_num_threads(1)  # for this thread; other threads of this worker compute their own chunks
    begin, end = place.rows(number)
    try:
        arrays, errors = computed(unpacked(work), rows_of(rows), end - begin, place.template)
        return None, place.write(number, arrays, errors)
    except RowError as error:
        return f"from row {begin + error.row} on: {error.text}", None
    except Exception as error:
        return said(error), None


def rows_of(rows):
    """Rows by name as arrays; a tuple (array, begin, end) is a part that is read here."""
    if not isinstance(rows, dict):
        return rows
    return {name: np.asarray(x[0][x[1]:x[2]] if isinstance(x, tuple) else x) for name, x in rows.items()}


@once
def _use_cache(environment):
    """Makes this process use the cache of kernels of the process that started the job, if it can access that folder."""
    there = {name: value for name, value in environment if os.path.isdir(value)}
    if there and any(os.environ.get(name) != value for name, value in there.items()):
        os.environ.update(there)
        files.directories.cache_clear()
        files.cache_directory.cache_clear()
