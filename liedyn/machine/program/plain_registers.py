"""Registers of several numbers in interpreted kernels: tuples on which arithmetic works number by number."""
# mypy: ignore-errors
import functools
import math
import operator


class Register(tuple):
    """Several numbers side by side, on which arithmetic works number by number."""

    __slots__ = ()

    def __neg__(self):
        return Register(map(operator.neg, self))

    def __bool__(self):
        raise TypeError("a register is neither true nor false")


def divided(x, y):
    """x / y as compiled code divides."""
    try:
        return x / y
    except ZeroDivisionError:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _define(name, function, reflected=False):
    def operate(a, b):
        if type(b) is Register:
            return Register(map(function, a, b))
        return Register([function(b, x) for x in a] if reflected else [function(x, b) for x in a])

    setattr(Register, name, operate)


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("truediv", divided)):
    _define(f"__{_name}__", _function)
    _define(f"__r{_name}__", _function, True)


def _refuse(*given):
    raise TypeError("registers are added, subtracted, multiplied and divided only")


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "pow", "rpow", "mod", "rmod", "floordiv", "rfloordiv", "matmul",
              "and", "or", "contains", "abs", "float", "int"):
    setattr(Register, f"__{_name}__", _refuse)
Register.__hash__ = None


def lanewise(function):
    """A function of numbers, applied to each lane of registers."""
    @functools.wraps(function)
    def apply(x, *more):
        if type(x) is not Register:
            return function(x, *more)
        return Register(map(function, x, *[y if type(y) is Register else (y,) * len(x) for y in more]))

    return apply
