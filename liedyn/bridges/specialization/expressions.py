"""Expressions of a straight-line program, simplified while they are created.

Equal expressions are one object; constants are folded, zeros and ones are eliminated, and signs move outwards. Sums are
not reordered.
"""

NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE, INPUT, CALL, PART = "negate", "+", "-", "*", "/", "input", "call", "part"
ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE)


class Program:
    """All expressions created so far, in order, each of them once."""

    def __init__(self):
        self._found = {}

    def __iter__(self):
        return iter(self._found.values())

    def node(self, operation, *arguments):
        """The expression of an operation: an array's name and index, a function and its arguments, or operands."""
        key = (operation, *((x.number,) if isinstance(x, Expression) else x for x in arguments))
        if key not in self._found:
            self._found[key] = Expression(self, len(self._found), operation, arguments)
        return self._found[key]

    def used_by(self, results):
        """Numbers of the expressions on which the results depend."""
        used, left = set(), [x for x in results if isinstance(x, Expression)]
        while left:
            x = left.pop()
            if x.number not in used:
                used.add(x.number)
                left.extend(y for y in x.arguments if isinstance(y, Expression))
        return used


class Expression:
    """A number whose value is known at run time only."""

    __slots__ = ("program", "number", "operation", "arguments")

    def __init__(self, program, number, operation, arguments):
        self.program, self.number, self.operation, self.arguments = program, number, operation, arguments

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

    def __bool__(self):
        raise TypeError("a program without branches cannot depend on the state")

    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __index__ = lambda self, *_: bool(self)


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
    elif not isinstance(a, Expression) and b.operation == MULTIPLY and not isinstance(b.arguments[0], Expression):
        product = _multiply(program, a * b.arguments[0], b.arguments[1])
    else:
        product = program.node(MULTIPLY, *_ordered(a, b))
    return -product if negative else product


def _divide(program, a, b):
    if _is(a, 0.0):
        return 0.0
    if not isinstance(b, Expression):
        return _multiply(program, 1.0 / b, a)
    negative, a, b = _without_signs(*_numbers(a, b))
    return -program.node(DIVIDE, a, b) if negative else program.node(DIVIDE, a, b)


def _without_signs(a, b):
    """Whether the product of a and b has an explicit negative sign, and both without their signs."""
    negative = False
    if _negated(b):
        negative, b = True, b.arguments[0]
    if _negated(a):
        negative, a = not negative, a.arguments[0]
    elif not isinstance(a, Expression) and a < 0.0:
        negative, a = not negative, -a
    return negative, a, b


def _numbers(a, b):
    """Constants as Python floats."""
    return (a if isinstance(a, Expression) else float(a)), (b if isinstance(b, Expression) else float(b))


def _ordered(a, b):
    """The same order for a and b as for b and a: a constant first."""
    a, b = _numbers(a, b)
    if isinstance(a, Expression) and (not isinstance(b, Expression) or b.number < a.number):
        return b, a
    return a, b
