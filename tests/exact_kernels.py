"""The kernels' own bodies on numbers with as many digits as wanted (mpmath): what rounding costs an algorithm.

Constants that stand in the source as doubles, and the data of robots, are what they are, to the last bit.
"""
import mpmath
import numpy as np

from liedyn.machine.program.interpret import World
from liedyn.machine.program.plain_arrays import Arrays, Open, Vector, wrapped
from liedyn.machine.program.plain_intrinsics import PLAIN
from liedyn.machine.program.plain_registers import Register, lanewise

DIGITS = 40
MP = mpmath.mp.clone()
MP.dps = DIGITS
_LANES = PLAIN["machine.simd.lanes"]


def numbers(x):
    """An array of exact numbers; any other array as it is."""
    x = np.asarray(x)
    if x.dtype != float:
        return x
    found = np.empty(x.size, object)
    found[:] = [MP.mpf(float(y)) for y in x.ravel()]
    return found.reshape(x.shape)


class _Arrays(Arrays):
    """Stands for the module numpy: new arrays hold exact numbers."""

    def __getattr__(self, name):
        own = super().__getattr__(name)
        if name not in ("empty", "zeros", "ones", "full", "eye"):
            return own

        def function(*given, **named):
            return wrapped(numbers(own(*given, **named).whole()), True)

        return function


class _Math:
    pi, inf, nan = MP.pi, MP.inf, MP.nan

    def __getattr__(self, name):
        return getattr(MP, name)


def _integers(work, k, n):
    return Vector(work.m[k:k + n]) if n else Open(work.m[k:])


EXACT = {
    "sqrt": lanewise(MP.sqrt), "atan2": lanewise(MP.atan2), "take_integers": _LANES["take_vector"],
    "integers_in": _integers, "splat": lambda lane, x: MP.mpf(x) if lane.width == 1 else Register(
        (MP.mpf(x),) * lane.width),
    "sincos": lambda x: (lanewise(MP.sin)(x), lanewise(MP.cos)(x)),
}
"""Intrinsics that are other functions of exact numbers; arrays of these hold integers as well."""


class Exact(World):
    """Compiled functions as functions of exact numbers."""

    def __init__(self):
        super().__init__(True)
        self.numpy, self.math = _Arrays(True), _Math()

    def wrapped(self, x):
        if isinstance(x, float | np.floating):
            return MP.mpf(float(x))
        return wrapped(numbers(x), True) if isinstance(x, np.ndarray) else super().wrapped(x)

    def _found(self, value):
        return EXACT.get(value.__name__) or super()._found(value)

    def call(self, kernel, *arguments):
        """Run a kernel; returns its arguments, arrays with what it has written."""
        given = [self.wrapped(x) for x in arguments]
        self.plain(kernel)(*given)
        return [x.whole() if hasattr(x, "whole") else x for x in given]
