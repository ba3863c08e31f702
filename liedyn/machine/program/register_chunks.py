"""Long programs in chunks that need few numbers at a time, for processors with few registers.

Two means: results one after the other, each as late as it can be computed; and results in groups that are computed
apart from each other, with what they have in common computed again.
"""
import math
from typing import NamedTuple

from liedyn.machine.program.expressions import INPUT, Expression
from liedyn.machine.program.program_parts import scheduled

REORDERED = 0.65
"""Which part of the numbers a program in another order may need: compilers do not keep to it."""
REPEATED = 2.0
"""How many times the operations of a program its chunks may have in all."""


class Chunk(NamedTuple):
    """Some results of a program, with its expressions in another order."""

    expressions: tuple
    guards: tuple = ()

    def __iter__(self):
        return iter(self.expressions)

    def used_by(self, results):
        """Numbers of all expressions: there are no others."""
        return {x.number for x in self.expressions}


def chunks(trace, most):
    """A traced function as several, one after the other, which need fewer numbers at a time.

    Parameters
    ----------
    trace : TracedFunction
    most : int
        How many numbers a chunk may need at a time if that can be reached.

    Returns
    -------
    list of TracedFunction
        Each with the results that it computes, or None in their place; the first one has all guards.
    """
    if pressure_of(trace) <= most:
        return [trace]
    guards = tuple(trace.program.guards)
    whole = _reordered(trace, guards)
    if pressure_of(whole) <= REORDERED * most:
        return [whole]
    apart = []
    for name, values in trace.results.items():
        if len(values):
            apart.append(_reordered(trace._replace(results={name: values}), () if apart else guards))
    return apart if sum(len(_lines(chunk)) for chunk in apart) <= REPEATED * len(_lines(trace)) else [whole]


def pressure_of(trace):
    """How many numbers a traced function needs at a time in its own order, without its inputs."""
    return pressure(_lines(trace))


def pressure(lines):
    """How many numbers a program needs at a time if it is computed line by line, without its inputs."""
    last = {}
    for at, x in enumerate(lines):
        for y in _operands(x):
            last[y.number] = at
    ends = [0] * len(lines)
    for at in last.values():
        ends[at] += 1
    live = largest = 0
    for x, ending in zip(lines, ends):
        live += x.number in last
        largest = max(largest, live)
        live -= ending
    return largest


def _lines(trace):
    return [x for x in scheduled(trace)[0] if isinstance(x, Expression)]


def _operands(x):
    return [y for y in x.arguments if isinstance(y, Expression) and y.operation != INPUT]


def _reordered(trace, guards):
    """A trace with the results in that order for which it needs the fewest numbers, after the guards."""
    asked = sorted({x.number: x for guard in guards for x in guard[:2] if isinstance(x, Expression)}.items())
    best = min((_depth_first([*(x for _, x in asked), *roots]) for roots in _orders(trace.results)), key=pressure)
    inputs = [x for x in trace.program if x.operation == INPUT]
    return trace._replace(program=Chunk((*inputs, *best), guards))


def _orders(results):
    """Results in several orders: as they are, and matrices from the last column, row, or corner on."""
    at = [(k % _width(values), k // _width(values), x)
          for values in results.values() for k, x in enumerate(values) if isinstance(x, Expression)]
    for key in (lambda j, i: 0, lambda j, i: -j, lambda j, i: -i, lambda j, i: -max(i, j), lambda j, i: j):
        yield [x for _, _, x in sorted(at, key=lambda each, key=key: key(*each[:2]))]


def _width(values):
    """The number of columns of a square matrix, or 1."""
    width = math.isqrt(len(values))
    return width if width * width == len(values) else 1


def _depth_first(roots):
    """All expressions that some results need, each directly before its first use."""
    seen, order = set(), []
    for root in roots:
        left = [(root, False)]
        while left:
            x, complete = left.pop()
            if complete:
                order.append(x)
            elif x.number not in seen and x.operation != INPUT:
                seen.add(x.number)
                left.append((x, True))
                left += [(y, False) for y in reversed(_operands(x))]
    return order
