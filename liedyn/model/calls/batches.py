"""Batches of states: W rows at a time in SIMD lanes, and all rows shared among the threads that Numba may use.

A batch function works on rows begin to end - 1 of its arrays, one row per state:

    @batch
    def crba_states(begin, end, model, q, M): ...

and is called from Python without the first two: ``crba_states(model, q, M)``. Few rows are computed by one thread, many
by as many threads as ``numba.get_num_threads()`` permits, each with its own block of rows and its own workspace. So
``NUMBA_NUM_THREADS`` and ``numba.set_num_threads`` set their number; the interpreter's lock is released meanwhile. With
Numba's threading layer "workqueue", which is not safe if two Python threads call it, batches wait for one another. GNU
OpenMP, the layer "omp", does not survive a fork: in a forked child of a process that has started threads
(`multiprocessing` under Linux before Python 3.14), one thread computes all rows.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba import prange, types

from liedyn.machine.compiled.jit import address_of, call_at, inline, inline_array, kernel
from liedyn.machine.compiled.slices import Slices, raise_stops
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load
from liedyn.machine.simd.lines import (
    LINES, leave_registers, registers_left, turned, write_beginnings, write_endings, write_lines,
)
from liedyn.machine.simd.registers import LARGEST, before_line, bounded_at_once, finish_stores, prefetch_line
from liedyn.machine.simd.transposition import lanes_to_rows, rows_to_lanes
from liedyn.machine.typed_decorators import intrinsic
from liedyn.model.packed import N_LINKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SHARED = 5000
"""Links times states from which on threads are worth starting: 50 us of inverse dynamics, more of other functions."""
FEW = 64
"""Rows of the first slice of a batch; so many or fewer are computed at once."""
PAST_CACHE = 100_000
"""Size of a result from which on it is written past the cache: the second-level cache holds little more."""
_TURN = threading.Lock()
_LOST = False
"""True in a forked child whose parent had started threads, which a fork does not copy."""


def _after_fork():
    """In a forked child: no batch is running here, whatever the parent's threads were doing."""
    global _TURN, _LOST
    _TURN = threading.Lock()
    with contextlib.suppress(ValueError):  # no threads started so far: the child may start its own
        _LOST = numba.threading_layer() == "omp"


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_after_fork)


class BatchKernel:
    """A kernel on rows begin to end - 1, called from Python with all rows."""

    few = FEW

    def __init__(self, function):
        self.kernel = kernel(function, nogil=True)
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._addresses, self._slices = {}, {}

    def __call__(self, model, *arguments):
        first = arguments[0]
        count = len(first[0] if isinstance(first, tuple) else first)
        self.on(count, count * model.ints.item(N_LINKS) >= SHARED, model, *arguments)

    def on(self, count, many, *arguments):
        """Compute `count` rows in slices (`liedyn.machine.compiled.slices`), with all threads if `many`."""
        if count <= self.few or count <= self.slices(arguments[0]).short:
            self.at_once(0, count, many and count > 1, *arguments)
            raise_stops()
            return
        for begin, end in self.slices(arguments[0]).of(count, WIDTH * numba.get_num_threads() if many else WIDTH):
            self.at_once(begin, end, many, *arguments)

    def slices(self, first):
        """The `Slices` shared by all calls with this model, or without one: rows of one robot take similar times."""
        size = len(first[0]) if isinstance(first, tuple) else first.shape[1]
        if size not in self._slices:
            self._slices[size] = Slices(self.few)
        return self._slices[size]

    def at_once(self, begin, end, many, *arguments):
        """Compute rows begin to end - 1 without handling signals, with all threads if `many`."""
        if not many or _LOST or numba.get_num_threads() == 1:
            self.kernel(begin, end, *arguments)
        else:
            address = self._address(end, *arguments)
            with _TURN if numba.threading_layer() == "workqueue" else contextlib.nullcontext():
                shared(address, begin, end, numba.get_num_threads(), flat(arguments))

    def _address(self, *arguments):
        # Numba's own type inference for so many arguments takes as long as 500 states
        key = kinds(arguments)
        if key not in self._addresses:
            self._addresses[key] = address_of(self.kernel, 0, *arguments)
        return self._addresses[key]


class UnevenBatchKernel(BatchKernel):
    """A kernel whose rows may take a hundred times as long as earlier ones, so that nothing is inferred from these."""

    few = 2 * WIDTH

    def slices(self, first):
        """New `Slices` that start small and grow slowly."""
        return Slices(self.few, growth=2)


def batch(function: Callable[..., Any]) -> Any:
    """Decorator: a `BatchKernel`."""
    return BatchKernel(function)


def uneven_batch(function: Callable[..., Any]) -> Any:
    """Decorator: an `UnevenBatchKernel`."""
    return UnevenBatchKernel(function)


def kinds(x):
    """A key that distinguishes the Numba types of arguments, also of those within tuples."""
    if isinstance(x, tuple):
        return (type(x), *map(kinds, x))
    return (x.dtype, x.ndim, x.flags.num) if isinstance(x, np.ndarray) else type(x)


def flat(arguments):
    """Arguments with flattened tuples, as Numba's loops over threads need them; the machine code is the same."""
    return tuple(x for each in arguments for x in (flat(each) if isinstance(each, tuple) else (each,)))


@intrinsic
def call_rows(typing, address, begin, end, arguments):
    """Call the kernel at an address with two row numbers and a tuple of all other arguments."""
    taken = (begin, end, *arguments)

    def codegen(context, builder, signature, values):
        address, begin, end, rest = values
        values = (begin, end, *(builder.extract_value(rest, k) for k in range(len(arguments))))
        return call_at(context, builder, address, types.none, taken, values)

    return types.none(address, begin, end, arguments), codegen


@kernel(parallel=True, nogil=True)
def shared(address, begin, end, threads, arguments):
    """Call the kernel at an address on rows begin to end - 1, one block of whole registers for each thread."""
    block = (end - begin + threads - 1) // threads
    block += -block % WIDTH
    for k in prange(threads):
        call_rows(address, min(begin + k * block, end), min(begin + (k + 1) * block, end), arguments)
        finish_stores()


@inline_array
def aligned(size):
    """A workspace aligned so that each register of W numbers lies in one cache line."""
    work = np.empty(size + WIDTH)
    begin = (-work.ctypes.data // 8) % WIDTH
    return work[begin:begin + size]


@inline_array
def in_lanes(rows):
    """An array for W rows in lanes, with whole registers of columns."""
    columns = rows.shape[1]
    return aligned((columns + -columns % WIDTH) * WIDTH)


@inline
def bounded(rows, begin, end):
    """True if every number of rows begin to end - 1 is finite and not too large for kernels."""
    k, last, fine = begin * rows.shape[1], end * rows.shape[1], True
    while k + WIDTH <= last:
        fine &= bounded_at_once(rows, k)
        k += WIDTH
    while k < last:
        fine &= abs(load(SCALAR, rows, k)) <= LARGEST
        k += 1
    return fine


@inline
def check_rows(verdict, rows, b, end):
    """verdict[0] becomes 0 if one of the W rows from b on is not `bounded`; this also loads them into the cache."""
    if not bounded(rows, b, min(b + WIDTH, end)):
        verdict[0] = 0


@inline
def gather(rows, b, end, lanes):
    """Copy rows from b on into lanes: scalar k of the algorithm to [k*W, (k+1)*W); after the end, row end - 1."""
    columns = rows.shape[1]
    last, whole = min(WIDTH, end - b) - 1, columns - columns % WIDTH
    for k in range(0, whole, WIDTH):
        rows_to_lanes(LANES, rows, b * columns + k, columns, last, WIDTH, lanes, k)
    if whole < columns:
        rows_to_lanes(LANES, rows, b * columns + whole, columns, last, columns - whole, lanes, whole)


@inline
def prefetch_rows(rows, b):
    """Prefetch W rows from b on, which will be written."""
    columns = rows.shape[1]
    for k in range(b * columns, (b + WIDTH) * columns, WIDTH):
        prefetch_line(rows, k)


@inline
def scatter(lanes, b, end, rows):
    """Copy lanes back into rows from b on, as many as there are before `end`."""
    columns = rows.shape[1]
    last, whole = min(WIDTH, end - b) - 1, columns - columns % WIDTH
    for k in range(0, whole, WIDTH):
        lanes_to_rows(LANES, lanes, k, rows, b * columns + k, columns, last, WIDTH)
    if whole < columns:
        lanes_to_rows(LANES, lanes, whole, rows, b * columns + whole, columns, last, columns - whole)


@inline_array
def lines_for(rows):
    """Scratch of `scatter_matrix`: empty if the rows are better written through the cache."""
    return aligned(LINES if rows.size > PAST_CACHE and rows.shape[1] >= WIDTH else 0).view(np.int64)


@inline
def find_lines(rows, b, end, lines):
    """Find the cache lines (`liedyn.machine.simd.lines`) of W rows from b on; after the end, those of row end - 1."""
    last = min(WIDTH, end - b) - 1
    for s in range(WIDTH):
        at = (b + min(s, last)) * rows.shape[1]
        lines[WIDTH + s] = -before_line(rows, at) % WIDTH
        lines[s] = at - lines[WIDTH + s]
    lines[2 * WIDTH] = last
    # only a part of the lines at both ends is written: prefetch them
    prefetch_line(rows, b * rows.shape[1])
    prefetch_line(rows, (b + last + 1) * rows.shape[1])


@inline
def put_complete(lanes, begin, first, behind, rows, lines):
    """Write whole registers of the numbers `first` to `behind` - 1 to the lines of `find_lines`, the last ones first.

    All numbers from `behind` on have been written before. The lanes hold those from `begin` on, a multiple of W.
    """
    m, before = (behind + WIDTH - 1) // WIDTH, registers_left(lines)
    while (m - 1) * WIDTH >= first and (m + 1) * WIDTH > rows.shape[1]:
        now = turned(lanes, m - 1 - begin // WIDTH)
        write_endings(rows, lines, m, now, before, rows.shape[1] - m * WIDTH)
        m, before = m - 1, now
    while (m - 1) * WIDTH >= first:
        now = turned(lanes, m - 1 - begin // WIDTH)
        write_lines(rows, lines, m, now, before)
        m, before = m - 1, now
    leave_registers(lines, before)
    if m == 0:
        write_beginnings(rows, lines, before)


@inline
def scatter_matrix(lanes, b, end, rows, lines):
    """`scatter`, past the cache for results so large that writing takes longer than computing."""
    if lines.size == 0:
        scatter(lanes, b, end, rows)
    else:
        find_lines(rows, b, end, lines)
        put_complete(lanes, 0, 0, rows.shape[1], rows, lines)
