"""Checks of rows of states for kernels: finite, not too large, and quaternions of unit length; and copies of rows.

To be much faster than the dynamics, these use whole registers and all threads.
"""
import numpy as np

from liedyn.machine.compiled.objects import counted, extent_of, numbers, shaped
from liedyn.machine.linalg.vectors import copy_to
from liedyn.model.calls.batches import batch, bounded
from liedyn.model.calls.direct import UNIT_TOLERANCE, direct, general_path
from liedyn.model.packed import HEADER, LINK_I, LINK_IQ, LINK_NQ, N_LINKS

SHARED = 50_000
"""Size from which on threads are worth starting."""


@batch
def bounded_states(begin, end, rows, verdict):
    """verdict[0] becomes 0 if some number of the rows is not `bounded`."""
    if not bounded(rows, begin, end):
        verdict[0] = 0


@batch
def unit_states(begin, end, model, q, verdict):
    """verdict[0] becomes the number of a link whose quaternion is not of unit length in some row, if there is one."""
    for i in range(model.ints[N_LINKS]):
        record = HEADER + LINK_I * i
        if model.ints[record + LINK_NQ] >= 4:
            k = model.ints[record + LINK_IQ]
            for b in range(begin, end):
                n2 = q[b, k] ** 2 + q[b, k + 1] ** 2 + q[b, k + 2] ** 2 + q[b, k + 3] ** 2
                if not abs(n2 - 1.0) <= UNIT_TOLERANCE:
                    verdict[0] = i


@batch
def copy_rows(begin, end, rows, copies):
    for b in range(begin, end):
        copy_to(rows[b], copies[b])


@direct
def bounded_at_sight(rows):
    """`bounded_states` for contiguous rows, without threads; None for other arrays."""
    count, columns = extent_of(rows, 0), extent_of(rows, 1)
    fine = bounded(shaped(numbers(rows, count * columns), (count, columns)), 0, count)
    return counted(rows) if fine else general_path()


def is_bounded(rows):
    """True if all numbers of contiguous rows are finite and not too large for kernels."""
    if rows.size < SHARED:
        return bounded_at_sight(rows) is not None
    verdict = np.ones(1, dtype=np.int64)
    bounded_states.on(len(rows), True, rows, verdict)
    return bool(verdict[0])


def are_finite(rows):
    """True if all numbers of contiguous rows are finite."""
    return is_bounded(rows) or bool(np.isfinite(rows).all())


def copy_of(rows):
    """A copy of contiguous rows; of many rows by all threads, as new memory takes longer than the copy."""
    if rows.size < SHARED:
        return rows.copy()
    copies = np.empty_like(rows)
    copy_rows.on(len(rows), True, rows, copies)
    return copies


def bad_quaternion(model, q):
    """A link whose quaternion is not of unit length in some row of `q`, -1 if all are."""
    verdict = np.full(1, -1)
    unit_states.on(len(q), q.size >= SHARED, model, q, verdict)
    return int(verdict[0])
