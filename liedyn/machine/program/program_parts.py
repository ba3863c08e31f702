"""Programs in parts: functions of so many lines that compilers can digest, which hand on numbers in memory.

Time and memory of compilers grow faster than the length of a function.
"""
from collections import defaultdict
from typing import NamedTuple

from liedyn.machine.program.expressions import INPUT, Expression


class Parts(NamedTuple):
    """A traced function, divided.

    Attributes
    ----------
    lines : list of list
        For each part its expressions, guards, and triples (name, place, number) that store constants and inputs.
    stores : dict
        The places (name, place, expression) in result arrays of each expression, by its number.
    defined : dict
        The part that computes an expression, by its number.
    slots : dict
        The places in memory of expressions that later parts read, by their numbers.
    size : int
        The size of this memory.
    """

    lines: list
    stores: dict
    defined: dict
    slots: dict
    size: int


def divided(trace, longest):
    """The parts of a traced function.

    Parameters
    ----------
    trace : TracedFunction
    longest : int
        Lines of a part.

    Returns
    -------
    Parts
    """
    order, stores = scheduled(trace)
    blocks = [order[k:k + longest] for k in range(0, len(order), longest)] or [[]]
    defined, last = {}, {}
    for k, block in enumerate(blocks):
        for x in block:
            if isinstance(x, Expression):
                defined[x.number] = last[x.number] = k
            for y in _read(x):
                last[y.number] = k
    return Parts(blocks, stores, defined, *_slots(blocks, last))


def scheduled(trace):
    """What is used of a program, in order: expressions, and guards where their numbers are known; and the places in
    result arrays of each expression, by number, and of constants, by value."""
    roots = [y for values in trace.results.values() for y in values]
    guards, stores = defaultdict(list), defaultdict(list)
    for guard in trace.program.guards:
        both = [x for x in guard[:2] if isinstance(x, Expression)]
        guards[max((x.number for x in both), default=-1)].append(guard)
        roots += both
    for name, values in trace.results.items():
        for k, x in enumerate(values):
            stores[x.number if isinstance(x, Expression) else -1].append((name, k, x))
    used, order = trace.program.used_by(roots), []
    for x in trace.program:
        if x.number in used:
            if x.operation != INPUT:
                order.append(x)
            order += guards[x.number]
            if x.operation == INPUT:
                order += [(name, k, x) for name, k, _ in stores.pop(x.number, ())]
    return order + stores.pop(-1, []), stores


def _read(x):
    """The computed expressions that a line reads."""
    arguments = x.arguments if isinstance(x, Expression) else x
    return [y for y in arguments if isinstance(y, Expression) and y.operation != INPUT]


def _slots(blocks, last):
    """Places for numbers that later blocks read, each free again after the last of them; and their count."""
    slots, free, count, leaving = {}, [], 0, defaultdict(list)
    for k, block in enumerate(blocks):
        for x in block:
            if isinstance(x, Expression) and last[x.number] > k:
                if not free:
                    free.append(count)
                    count += 1
                slots[x.number] = free.pop()
                leaving[last[x.number]].append(slots[x.number])
        free += leaving[k]
    return slots, count
