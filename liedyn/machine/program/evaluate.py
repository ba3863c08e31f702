"""Which guards hold at many states: the part of a program that its guards need, in NumPy, a column for each state."""
import numpy as np

from liedyn.machine.program.expressions import ARITHMETIC, CALL, INPUT, NEGATE, Expression

_FUNCTIONS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
"""Functions of programs, by their names in C, where NumPy has other names."""
_OPERATIONS = dict(zip(ARITHMETIC, (np.add, np.subtract, np.multiply, np.divide)))


NUMBERS = 4_000_000
"""As many are kept at a time, or those of one state."""


def guards_hold(program, states, margin=1.0):
    """A mask of the states at which all guards hold.

    Parameters
    ----------
    program : Program
    states : dict
        Rows of each input array, by name.
    margin : float
        By how many times numbers have to exceed positive bounds, such as those of pivots.

    Returns
    -------
    ndarray of bool, shape (count,)
    """
    guards = list(program.guards)
    used = program.used_by([x for guard in guards for x in guard[:2]])
    count, most = len(next(iter(states.values()))), max(NUMBERS // max(len(used), 1), 1)
    blocks = [{name: x[k:k + most] for name, x in states.items()} for k in range(0, count, most)]
    return np.concatenate([_all_hold(program, guards, used, block, margin) for block in blocks] or [np.ones(0, bool)])


def _all_hold(program, guards, used, states, margin):
    found = np.ones(len(next(iter(states.values()))), bool)
    values = {}

    def value(x):
        return values[x.number] if isinstance(x, Expression) else x

    with np.errstate(all="ignore"):
        for x in program:
            if x.number in used:
                values[x.number] = _evaluated(x, value, states)
        for guard in guards:
            a, b = value(guard.smaller), value(guard.larger)
            a = margin * a if not isinstance(guard.smaller, Expression) and a > 0.0 else a
            found &= a < b if guard.strict else a <= b
    return found


def _evaluated(x, value, states):
    arguments = x.arguments
    if x.operation == INPUT:
        return states[arguments[0]][:, arguments[1]]
    if x.operation == CALL:
        return getattr(np, _FUNCTIONS.get(arguments[0], arguments[0]))(*map(value, arguments[1:]))
    if x.operation == NEGATE:
        return -value(arguments[0])
    if x.operation in _OPERATIONS:
        return _OPERATIONS[x.operation](*map(value, arguments))
    a, b, first, second = map(value, arguments)
    return np.where(a < b, first, second)
