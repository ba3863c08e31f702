"""Expressions of a straight-line program, simplified while they are created.

Equal expressions are one object. An expression also has a value, that at the reference state: branches of a kernel are
decided by it, and recorded as guards (`liedyn.machine.program.guards`).

Simplifications keep every result that is finite, to the last bit but for the sign of zero: zeros and ones vanish,
signs move outwards, and constants are multiplied with each other where that does not round. They are wrong for x - x
and 0 x at infinite x, so a program is for finite states, and its results are checked to be finite. Sums are not
reordered.
"""
import math
import operator

from liedyn.machine.program.guards import Guards

NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE = "negate", "+", "-", "*", "/"
INPUT, CALL, SELECT = "input", "call", "select"
ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE)


def _divided(a, b):
    """a / b with the infinities of IEEE 754, where Python raises an error."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _where_defined(function):
    """A function of module math that is not a number outside its domain."""
    def value(*arguments):
        try:
            return function(*arguments)
        except ValueError:
            return math.nan
    return value


_VALUES = {ADD: operator.add, SUBTRACT: operator.sub, MULTIPLY: operator.mul, DIVIDE: _divided, NEGATE: operator.neg,
           SELECT: lambda a, b, x, y: x if a < b else y}
FUNCTIONS = {name: _where_defined(getattr(math, name)) for name in (
    "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "expm1", "log", "tanh", "fabs", "copysign",
    "floor", "hypot")}
FUNCTIONS["rint"] = lambda x: float(round(x))
"""What programs may call, by the name in C: the functions on numbers."""


class Program:
    """All expressions created so far, in order, each of them once, and the guards.

    Parameters
    ----------
    reference : dict
        For each input array, by name, its numbers at the reference state.

    Examples
    --------
    >>> program = Program({"q": [2.0]})
    >>> x = program.node(INPUT, "q", 0)
    >>> y = x + 1.0 if x > 0.0 else x
    >>> y.value, x - x, [str(guard) for guard in program.guards]
    (3.0, 0.0, ['0.0 < x0'])
    """

    def __init__(self, reference):
        self.reference, self._found, self.guards = reference, {}, Guards()

    def __iter__(self):
        return iter(self._found.values())

    def __len__(self):
        return len(self._found)

    def node(self, operation, *arguments):
        """The expression of an operation: an array's name and index, a function and its arguments, or operands."""
        key = (operation, *((x.number,) if isinstance(x, Expression) else x for x in arguments))
        found = self._found.get(key)
        if found is None:
            value = self._value(operation, arguments)
            found = self._found[key] = Expression(self, len(self._found), operation, arguments, value)
        return found

    def _value(self, operation, arguments):
        if operation == INPUT:
            return float(self.reference[arguments[0]][arguments[1]])
        if operation == CALL:
            return FUNCTIONS[arguments[0]](*map(value_of, arguments[1:]))
        return _VALUES[operation](*map(value_of, arguments))

    def used_by(self, results):
        """Numbers of the expressions on which the results depend."""
        used, left = set(), [x for x in results if isinstance(x, Expression)]
        while left:
            x = left.pop()
            if x.number not in used:
                used.add(x.number)
                left.extend(y for y in x.arguments if isinstance(y, Expression))
        return used


def value_of(x):
    """The number itself, or the value of an expression at the reference state."""
    return x.value if isinstance(x, Expression) else float(x)


class Expression:
    """A number whose value is known at run time only; `value` is that at the reference state."""

    __slots__ = ("program", "number", "operation", "arguments", "value")

    def __init__(self, program, number, operation, arguments, value):
        self.program, self.number, self.operation, self.arguments = program, number, operation, arguments
        self.value = value

    def __str__(self):
        return f"x{self.number}"

    def __neg__(self):
        if self.operation == NEGATE:
            return self.arguments[0]
        if self.operation == SUBTRACT:
            return self.program.node(SUBTRACT, *reversed(self.arguments))
        return self.program.node(NEGATE, self)

    def __add__(self, other):
        return _add(self.program, self, other)

    def __radd__(self, other):
        return _add(self.program, other, self)

    def __sub__(self, other):
        return _subtract(self.program, self, other)

    def __rsub__(self, other):
        return _subtract(self.program, other, self)

    def __mul__(self, other):
        return _multiply(self.program, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return _divide(self.program, self, other)

    def __rtruediv__(self, other):
        return _divide(self.program, other, self)

    def __pow__(self, power):
        if power == 2:
            return self * self
        if power == 0.5:
            return call("sqrt", self)
        raise TypeError(f"a program has no power {power}")

    def __abs__(self):
        return call("fabs", self)

    def __lt__(self, other):
        return self.program.guards.decide(self, other, self.value < value_of(other), strict=True)

    def __gt__(self, other):
        return self.program.guards.decide(other, self, value_of(other) < self.value, strict=True)

    def __le__(self, other):
        return self.program.guards.decide(self, other, self.value <= value_of(other), strict=False)

    def __ge__(self, other):
        return self.program.guards.decide(other, self, value_of(other) <= self.value, strict=False)

    def __eq__(self, other):
        """Only zeros that are there at every state count as zero: kernels ask in order to skip them."""
        if self is other:
            return True
        if isinstance(other, Expression) or other != 0.0:
            raise TypeError("a program cannot ask whether two numbers are equal")
        return False

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("a program cannot take a number for a truth value")

    __float__ = __int__ = __index__ = __bool__


def call(name, *arguments):
    """A function of numbers or expressions."""
    for x in arguments:
        if isinstance(x, Expression):
            return x.program.node(CALL, name, *_numbers(*arguments))
    return FUNCTIONS[name](*arguments)


def where_less(a, b, x, y):
    """x where a < b, else y; both are computed."""
    if not any(isinstance(z, Expression) for z in (a, b)):
        return x if a < b else y
    a, b, x, y = _numbers(a, b, x, y)
    program = (a if isinstance(a, Expression) else b).program
    return x if x is y else program.node(SELECT, a, b, x, y)


def larger(a, b):
    """The larger of two numbers; a where b is not a number."""
    return where_less(a, b, b, a)


def smaller(a, b):
    """The smaller of two numbers; a where b is not a number."""
    return where_less(b, a, b, a)


def _is(x, value):
    return not isinstance(x, Expression) and x == value


def _negated(x):
    return isinstance(x, Expression) and x.operation == NEGATE


def _add(program, a, b):
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    if a is b:
        return _multiply(program, 2.0, a)
    if _negated(b):
        return _subtract(program, a, b.arguments[0])
    return _subtract(program, b, a.arguments[0]) if _negated(a) else program.node(ADD, *_ordered(a, b))


def _subtract(program, a, b):
    if _is(a, 0.0):
        return -b
    if _is(b, 0.0):
        return a
    if a is b:
        return 0.0
    if _negated(b):
        return _add(program, a, b.arguments[0])
    return -_add(program, a.arguments[0], b) if _negated(a) else program.node(SUBTRACT, *_numbers(a, b))


def _multiply(program, a, b):
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    a, b = _ordered(a, b)
    negative, a, b = _without_signs(a, b)
    if _is(a, 1.0):
        product = b
    elif _scaled(b) and not isinstance(a, Expression) and (_is_power_of_two(a) or _is_power_of_two(b.arguments[0])):
        product = _multiply(program, a * b.arguments[0], b.arguments[1])
    else:
        product = program.node(MULTIPLY, *_ordered(a, b))
    return -product if negative else product


def _divide(program, a, b):
    if _is(a, 0.0):
        return 0.0
    if not isinstance(b, Expression) and _is_power_of_two(b):
        return _multiply(program, 1.0 / b, a)
    negative, a, b = _without_signs(*_numbers(a, b))
    return -program.node(DIVIDE, a, b) if negative else program.node(DIVIDE, a, b)


def _scaled(x):
    """True for a constant times an expression."""
    return isinstance(x, Expression) and x.operation == MULTIPLY and not isinstance(x.arguments[0], Expression)


def _is_power_of_two(x):
    """True if a product with the constant x does not round."""
    return math.isfinite(x) and abs(math.frexp(x)[0]) == 0.5


def _without_signs(a, b):
    """Whether the product of a and b has an explicit negative sign, and both without their signs."""
    negative = False
    if _negated(b):
        negative, b = True, b.arguments[0]
    elif not isinstance(b, Expression) and b < 0.0:
        negative, b = True, -b
    if _negated(a):
        negative, a = not negative, a.arguments[0]
    elif not isinstance(a, Expression) and a < 0.0:
        negative, a = not negative, -a
    return negative, a, b


def _numbers(*numbers):
    """Constants as Python floats."""
    return tuple(x if isinstance(x, Expression) else float(x) for x in numbers)


def _ordered(a, b):
    """The same order for a and b as for b and a: a constant first."""
    a, b = _numbers(a, b)
    if isinstance(a, Expression) and (not isinstance(b, Expression) or b.number < a.number):
        return b, a
    return a, b
