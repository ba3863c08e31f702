"""Programs as lines of a kernel that Numba compiles, for one state and for lanes."""
from collections import defaultdict

from liedyn.machine.program.expressions import CALL, INPUT, NEGATE, SELECT, Expression

CALLED = {
    "sqrt": ("liedyn.machine.simd.lanes", "sqrt"), "atan2": ("liedyn.machine.simd.lanes", "atan2"),
    "fabs": ("liedyn.machine.simd.comparisons", "magnitude"),
    "select": ("liedyn.machine.simd.comparisons", "where_less"), "sincos": ("liedyn.machine.simd.sines", "sincos"),
}
"""Module and name of the functions that lines call."""
_SINES = {"sin": 0, "cos": 1}


def imports(programs):
    """The lines that import what programs call."""
    called = {x.arguments[0] if x.operation == CALL else x.operation
              for program in programs for x in program if x.operation in (CALL, SELECT)}
    return sorted("from {} import {}".format(*CALLED["sincos" if name in _SINES else name]) for name in called)


def statements(program, arrays):
    """The straight lines of a kernel.

    Parameters
    ----------
    program : Program
        Without decisions: lines ask no guards.
    arrays : dict
        The results, by the names of their arrays: expressions and numbers, None for what is not written.

    Returns
    -------
    list of str
    """
    if len(program.guards):
        raise ValueError("lines have no guards")
    results = [(name, k, x) for name, array in arrays.items() for k, x in enumerate(array) if x is not None]
    used = program.used_by(x for _, _, x in results)
    places = defaultdict(list)
    for name, k, x in results:
        places[text_of(x)].append(f"store(lane, {name}, {k}, {text_of(x)})")
    lines, called = [], set()

    def write(x):
        # function calls are placed where they are needed: the processor meanwhile computes what comes before
        for y in x.arguments:
            if isinstance(y, Expression) and y.operation == CALL and y.number not in called:
                called.add(y.number)
                write(y)
        # stored at once, so that it needs no register
        lines.extend([f"{text_of(x)} = {formula(x, text_of)}", *places.pop(text_of(x), ())])

    for x in program:
        if x.number in used and x.operation != CALL:
            write(x)
    return lines + [store for constants in places.values() for store in constants]


def formula(x, text):
    """The right side of a line; `text` is that of a number."""
    arguments = x.arguments
    if x.operation == INPUT:
        return f"load(lane, {arguments[0]}, {arguments[1]})"
    if x.operation == CALL:
        if arguments[0] in _SINES:
            return f"sincos({text(arguments[1])})[{_SINES[arguments[0]]}]"
        return f"{CALLED[arguments[0]][1]}({', '.join(map(text, arguments[1:]))})"
    if x.operation == NEGATE:
        return f"-{text(arguments[0])}"
    if x.operation == SELECT:
        return f"where_less({', '.join(map(text, arguments))})"
    return f"{text(arguments[0])} {x.operation} {text(arguments[1])}"


def text_of(x):
    """An expression's name, or a constant."""
    return f"x{x.number}" if isinstance(x, Expression) else repr(float(x))
