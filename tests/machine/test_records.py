"""Named tuples by their addresses in compiled code: what is read there is what a caller has."""
from collections import namedtuple

import numpy as np
import pytest
from numba import types

from liedyn.machine.compiled.by_address import Address, placed, record, contents
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, kernel, late

Inner = namedtuple("Inner", "weights count")
Pair = namedtuple("Pair", "left right")
Outer = namedtuple("Outer", "h inner A pair on")

INNER, PAIR = group(Inner, VECTOR, types.int64), group(Pair, VECTOR, VECTOR)
OUTER = record(Outer, types.float64, INNER, MATRIX, PAIR, types.boolean)


@late(OUTER, VECTOR, returns=types.float64)
def weigh(x, out):
    """All entries of a record: numbers, arrays, tuples of both, and of one kind alone."""
    for i in range(out.size):
        out[i] = x.h * x.inner.weights[i] + x.A[i, x.inner.count] + x.pair.left[i] - x.pair.right[i]
    return 1.0 if x.on else -1.0


@late(OUTER, VECTOR, returns=types.float64)
def hand_on(x, out):
    return weigh(x, out)


@kernel
def by_address(x, out):
    return hand_on(placed(x), out)


@kernel
def as_it_is(x, out):
    return hand_on(x, out)


@kernel
def several(x, out):
    """The record of each turn is that of the turn, not the first one."""
    total = 0.0
    for k in range(3):
        total += hand_on(Outer(x.h * k, x.inner, x.A, x.pair, k > 0), out)
        total += out.sum()
    return total


@kernel
def arrays_of(x):
    """Arrays that outlive the address."""
    at = placed(x)
    return at.A, contents(at).inner.weights, contents(at.pair), at.inner.weights[1:]


@pytest.fixture
def given():
    rng = np.random.default_rng(3)
    return Outer(0.5, Inner(rng.normal(size=4), 1), rng.normal(size=(4, 2)),
                 Pair(rng.normal(size=4), rng.normal(size=4)), True)


def wanted(x, h):
    return h * x.inner.weights + x.A[:, x.inner.count] + x.pair.left - x.pair.right


@pytest.mark.parametrize("call", [by_address, as_it_is])
def test_what_lies_there_is_what_was_given(given, call):
    out = np.empty(4)
    assert call(given, out) == 1.0 and np.abs(out - wanted(given, 0.5)).max() < 1e-15
    assert call(given._replace(on=False, h=2.0), out) == -1.0 and np.abs(out - wanted(given, 2.0)).max() < 1e-15


def test_arrays_are_seen_as_they_change(given):
    out = np.empty(4)
    given.pair.left[:], given.A[:] = 7.0, 0.0
    by_address(given, out)
    assert np.abs(out - wanted(given, 0.5)).max() < 1e-15


def test_a_record_that_is_made_in_a_loop(given):
    expected = sum((1.0 if k else -1.0) + wanted(given, 0.5 * k).sum() for k in range(3))
    assert several(given, np.empty(4)) == pytest.approx(expected, rel=1e-14)


def test_arrays_are_counted(given):
    """What is returned stays when the record is gone: memory that is given back would be written to by the next one."""
    kept, (left, right) = (x.copy() for x in (given.A, given.inner.weights)), map(np.copy, given.pair)
    A, weights, pair, rest = arrays_of(given)
    del given
    np.full(64, np.nan), np.full(8, np.nan)
    assert all((a == b).all() for a, b in zip(kept, (A, weights)))
    assert (pair.left == left).all() and (pair.right == right).all() and (rest == weights[1:]).all()


def test_types_say_what_lies_there():
    assert OUTER == Address(group(Outer, types.float64, INNER, MATRIX, PAIR, types.boolean)) != Address(INNER)
    assert record(Pair, record(Inner, VECTOR, types.int64), VECTOR) == record(Pair, INNER, VECTOR)  # a part lies inside


def test_a_field_that_there_is_not(given):
    @kernel
    def wrong(x):
        return placed(x).weight

    with pytest.raises(Exception, match="weight"):
        wrong(given)
