"""Programs of `liedyn.machine.program.llvm_lines` where nothing is compiled: number by number, lane by lane."""
import operator

from liedyn.machine.program.expressions import ADD, DIVIDE, FUNCTIONS, MULTIPLY, NEGATE, SELECT, SUBTRACT
from liedyn.machine.program.plain_registers import divided

_OPERATIONS = {ADD: operator.add, SUBTRACT: operator.sub, MULTIPLY: operator.mul, DIVIDE: divided,
               NEGATE: operator.neg, SELECT: lambda a, b, x, y: x if a < b else y}
_COMPARISONS = {"<": operator.lt, "<=": operator.le}


def interpreted_lines(text, names):
    """The plain version of the helper that `lines_of` makes of the same arguments."""
    lines = [line.split(" ") for line in text.split("\n")]

    def run(lane, arrays):
        given = {name: x.m for name, x in zip((*names, "good"), arrays)}
        for i in range(lane.width):
            given["good"][i] = 1.0 if _holds(lines, given, lane.width, i) else 0.0

    return run


def _holds(lines, arrays, width, i):
    """Writes the results of lane i; True where all guards hold and all results are finite."""
    numbers, kept, good = {}, {}, True

    def value(x):
        return float(x[1:]) if x[0] == "#" else numbers[x]

    for what, *rest in lines:
        if what == "guard":
            good &= _COMPARISONS[rest[0]](value(rest[1]), value(rest[2]))
        elif what == "put":
            x = arrays[rest[0]][int(rest[1]) * width + i] = value(rest[2])
            good &= x - x == 0.0
        elif what == "keep":
            kept[rest[0]] = numbers[rest[1]]
        elif what not in ("memory", "part"):
            numbers[what] = _number(rest, arrays, kept, value, width, i)
    return good


def _number(line, arrays, kept, value, width, i):
    operation, *arguments = line
    if operation == "in":
        return arrays[arguments[0]][int(arguments[1]) * width + i]
    if operation == "kept":
        return kept[arguments[0]]
    function = _OPERATIONS.get(operation) or FUNCTIONS[operation]
    try:
        return function(*map(value, arguments))
    except OverflowError:
        return float("inf")
