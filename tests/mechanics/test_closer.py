"""The Newton iteration that closes constraints: when it ends, and what it says then."""
import numpy as np
import pytest

from liedyn.machine.compiled.jit import inline, kernel
from liedyn.mechanics.constraints.closing import Rule, closer, iteration

RULE = Rule(steps=20, rounding=1e-15, enough=1e-9, slow=0.5, growth=0.9)


def sizes_of(rule, sizes, steps=True):
    """Is it closed where what is left open is one of these after the other; how many steps were taken?"""
    taken = []

    def correct(model, x, q):
        taken.append(True)
        return steps

    closed = iteration(lambda model, x, q: sizes[len(taken)], correct)(None, None, rule, None)
    return closed, len(taken)


@pytest.mark.parametrize("sizes, closed, steps", [
    ([0.0], True, 0), ([1.0, 0.1, 1e-3, 1e-6, 1e-12, 1e-16], True, 5),
    ([1.0, 1e-5, 1e-12, 0.7e-12], True, 3),  # it falls no more, and is enough
    ([1.0, 0.5, 0.3, 0.29], False, 3),  # it falls no more, and is not
    ([1.0, np.nan], False, 1), ([np.inf], False, 0), ([np.nan], False, 0),
    ([0.8 ** k for k in range(21)], False, 20), ([1e-9 * 0.4 ** k for k in range(21)], True, 16),
], ids=str)
def test_when_it_ends(sizes, closed, steps):
    assert sizes_of(RULE, sizes) == (closed, steps)


def test_growth_may_be_allowed():
    assert sizes_of(RULE._replace(growth=np.inf), [1.0, 3.0, 0.1, 0.0]) == (True, 3)


def test_where_no_step_can_be_taken_what_is_left_decides():
    assert sizes_of(RULE, [1e-3], steps=False) == (False, 1)
    assert sizes_of(RULE, [1e-10], steps=False) == (True, 1)


def test_out_of_steps_what_was_left_last_decides():
    assert sizes_of(RULE._replace(steps=2), [1.0, 1e-10, 0.0]) == (True, 2)
    assert sizes_of(RULE._replace(steps=2), [1.0, 1e-8, 0.0]) == (False, 2)


def test_compiled_as_in_python():
    """The root of each number, by two helpers of which the iteration makes one kernel."""
    @inline
    def left(model, x, q):
        return abs(q[0] * q[0] - x)

    @inline
    def newton(model, x, q):
        q[0] -= (q[0] * q[0] - x) / (2.0 * q[0])
        return q[0] != 0.0

    close = closer(left, newton)

    @kernel
    def root(x, rule, q):
        return close(0, x, rule, q)

    plain = iteration(left.py_func, newton.py_func)
    for x in (2.0, 1e-20, 9.0):
        for rule in (RULE, RULE._replace(growth=np.inf, rounding=0.0)):
            q, r = np.ones(1), np.ones(1)
            assert root(x, rule, q) == plain(None, x, rule, r)
            assert abs(q[0] - r[0]) <= 1e-15 * r[0]
