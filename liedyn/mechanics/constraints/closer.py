"""Newton's method on the constraints on positions, g(q) = 0: one iteration for all that close them.

What tasks differ in are two functions. One says how much is left open at q, and prepares what a step needs. The other
takes the step: the shortest one, in any metric; within limits; of some coordinates, or of some rows. `closer` makes the
iteration of the two, which costs in compiled code what a loop written out would.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import inline


class Rule(NamedTuple):
    """When the iteration ends; sizes are what `measure` returns.

    Attributes
    ----------
    steps : int
        Largest number of steps.
    rounding : float
        Closed, whatever was before: less cannot be had.
    enough : float
        Closed, if no step makes it smaller any more, as where rows contradict each other a little.
    slow : float
        Part of the size before from which on a step has not made it smaller.
    growth : float
        Where the size is not below this part of the one before, the iteration is given up.
    """

    steps: int
    rounding: float
    enough: float
    slow: float
    growth: float


def iteration(measure, correct):
    """``close(model, x, rule, q)``, a plain function: moves q to g(q) = 0; is it closed then?

    Parameters
    ----------
    measure : callable
        ``measure(model, x, q)``: how much is left open at q, one number, not finite where there is no saying.
    correct : callable
        ``correct(model, x, q)``: takes a step from q; False if there is none.

    Returns
    -------
    callable
        `x` is whatever the two take, `rule` a `Rule`. The last call but that of `correct` after the last step was that
        of `measure` at q.

    Examples
    --------
    The root of two:

    >>> close = iteration(lambda model, x, q: abs(q[0] ** 2 - 2.0), lambda model, x, q: x(q))
    >>> def step(q):
    ...     q[0] -= (q[0] ** 2 - 2.0) / (2.0 * q[0])
    ...     return True
    >>> q = np.array([1.0])
    >>> close(None, step, Rule(10, 1e-15, 1e-12, 0.5, np.inf), q), round(float(q[0]), 12)
    (True, 1.414213562373)
    """
    def close(model, x, rule, q):
        before = np.inf
        for _ in range(rule.steps):
            size = measure(model, x, q)
            if size <= rule.rounding or (size <= rule.enough and size > rule.slow * before):
                return True
            if not size < rule.growth * before:
                return False
            before = size
            if not correct(model, x, q):
                break
        return before <= rule.enough

    return close


def closer(measure, correct):
    """`iteration` of two helpers or kernels, as a helper of compiled code."""
    close = iteration(measure, correct)
    close.__name__ = close.__qualname__ = f"close_by_{correct.__name__}"  # its code has its name in common with none
    return inline(close)
