"""Kernels as the plain Python they are written in: no compiler, the same results.

`run` calls a kernel's own body with arrays as views of the same memory (`plain_arrays`), helpers and other kernels as
plain functions, and intrinsics as `plain_intrinsics` has them. Two worlds share one body. In the fast one numbers are
Python's floats. Where these raise, because they divide by zero or overflow, arrays are put back as they were and the
call is made again in the careful one: with numbers of NumPy, which give inf and NaN as compiled code does.

Nothing is copied: functions keep their code with its file and lines, so that a debugger steps through `rnea_kernel`
where it is written.
"""
# mypy: ignore-errors
import builtins
import math
import os
import threading
import types

import numpy as np
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from liedyn.machine.program.plain_arrays import Arrays, Plain, wrapped
from liedyn.machine.program.plain_intrinsics import CAREFUL, PLAIN

_PACKAGE = __name__.partition(".")[0] + "."
_HERE = threading.local()
"""`errors`: what NumPy did about division by zero and the like before kernels began."""


class CarefulMath:
    """Stands for the module math, with inf and NaN instead of errors."""

    pi, inf, nan, e, tau = math.pi, math.inf, math.nan, math.e, math.tau
    copysign, isnan, isinf, isfinite, fabs = math.copysign, math.isnan, math.isinf, math.isfinite, math.fabs
    sqrt, sin, cos, tan, exp, log, atan2, atan, acos, asin, hypot, tanh, sinh, cosh, fmod, log10 = map(staticmethod, (
        np.sqrt, np.sin, np.cos, np.tan, np.exp, np.log, np.arctan2, np.arctan, np.arccos, np.arcsin, np.hypot, np.tanh,
        np.sinh, np.cosh, np.fmod, np.log10))
    floor, ceil = (staticmethod(lambda x, f=f: _integer(f(x))) for f in (np.floor, np.ceil))


def _integer(x, *base):
    """`int` as compiled code does it, where NaN and what is too large becomes the smallest integer."""
    return int(x, *base) if base or -2.0 ** 63 <= x < 2.0 ** 63 else -2 ** 63


class World:
    """All compiled functions of the package as plain ones."""

    def __init__(self, careful):
        self.careful, self.numpy, self.math = careful, Arrays(careful), CarefulMath if careful else math
        self._begin_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self):
        """Also in a forked child, whatever other threads were doing."""
        self._lock = threading.RLock()
        self._forget()

    def _forget(self):
        """Nothing is converted, or being converted; after an interrupt, which leaves functions without all names."""
        self._begun, self._modules, self._plain, self._names, self._intrinsics = {}, {}, {}, {}, {}

    def plain(self, compiled):
        """The plain version of a compiled function."""
        found = self._plain.get(compiled)
        if found is None:
            with self._lock:  # other threads get functions that are complete, with all that they call
                is_outermost = not self._begun
                try:
                    found = self._plain.get(compiled) or self._begun.get(compiled) or self._made(compiled)
                except BaseException:
                    self._forget()
                    raise
                if is_outermost:
                    self._plain.update(self._begun)
                    self._begun = {}
        return found

    def _made(self, compiled):
        f = compiled.py_func
        cells = tuple(types.CellType() for _ in f.__closure__ or ())
        names = self._module(f.__globals__)
        bare = types.FunctionType(f.__code__, names, f.__name__, f.__defaults__, cells or None)
        bare.__kwdefaults__ = f.__kwdefaults__
        found = self._begun[compiled] = self.called(compiled, bare)
        for cell, given in zip(cells, f.__closure__ or ()):
            cell.cell_contents = self._value(given.cell_contents)
        self._convert(f.__globals__, names, f.__code__)
        return found

    def called(self, compiled, function):
        """What callers of a kernel get; for heirs that look at the clock at each call."""
        return function

    def wrapped(self, x):
        """An argument from Python, arrays as views."""
        if isinstance(x, np.ndarray):
            return wrapped(x, self.careful)
        if isinstance(x, tuple):
            parts = map(self.wrapped, x)
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if isinstance(x, bool | np.bool_):
            return bool(x)
        if isinstance(x, int | np.integer):
            return int(x)
        if isinstance(x, float | np.floating):
            return np.float64(x) if self.careful else float(x)
        return x

    def _value(self, value):
        if isinstance(value, CPUDispatcher):
            return self.plain(value)
        if isinstance(value, _Intrinsic):
            return self._intrinsic(value)
        if value is math or value is np:
            return self.math if value is math else self.numpy
        if isinstance(value, types.ModuleType) and value.__name__.startswith(_PACKAGE):
            if value.__name__ not in self._names:
                self._names[value.__name__] = _Names(self._value, value.__dict__)
            return self._names[value.__name__]
        if isinstance(value, np.ndarray) or isinstance(value, tuple) and any(isinstance(x, np.ndarray) for x in value):
            return self.wrapped(value)  # constants of compiled code
        return value

    def _intrinsic(self, value):
        if value not in self._intrinsics:
            self._intrinsics[value] = self._found(value)
        return self._intrinsics[value]

    def _found(self, value):
        module, name = value._defn.__module__, value.__name__
        module = module.removeprefix(_PACKAGE) if module.startswith(_PACKAGE) else ""
        if name == "call" and module == "machine.compiled.user_functions":
            return _call_user
        if self.careful and name in CAREFUL.get(module, ()):
            return CAREFUL[module][name]
        if name in PLAIN.get(module, ()):
            return PLAIN[module][name]
        closure = dict(zip(value._defn.__code__.co_freevars, value._defn.__closure__ or ()))
        if module == "machine.compiled.late":
            return self.late(closure["kernel"].cell_contents, closure["kinds"].cell_contents)
        if module == "machine.compiled.struct_values":
            return lambda address: self.wrapped(VALUES[address].values)
        if module == "machine.program.llvm_lines":
            from liedyn.machine.program.plain_lines import interpreted_lines

            return interpreted_lines(*(closure[x].cell_contents for x in ("text", "names")))
        if name == "call_rows":
            return lambda address, begin, end, rest: self.plain(KERNELS_AT[address])(begin, end, *rest)
        if name == "_loop_at":
            return lambda address, *given: self.plain(KERNELS_AT[address])(*given)

        def missing(*given):
            raise NotImplementedError(f"there is no plain version of the intrinsic {module}.{name}")

        return missing

    def late(self, kernel, kinds):
        """A late kernel, which is interpreted like any other."""
        return self.plain(kernel)

    def _module(self, names):
        """A copy of the names of a module; what functions of it use is converted with them."""
        if id(names) not in self._modules:
            self._modules[id(names)] = names, {
                "__name__": names.get("__name__", ""), "__builtins__": builtins, "int": _integer}
        return self._modules[id(names)][1]  # the names themselves are kept, lest others get their place in memory

    def _convert(self, names, copy, code):
        for name in code.co_names:
            if name not in copy and name in names:
                copy[name] = range if name == "prange" else self._value(names[name])
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self._convert(names, copy, inner)


def _call_user(*given):
    """A user's function, in which NumPy warns as it did before kernels began."""
    with np.errstate(**_HERE.errors):
        PLAIN["machine.compiled.user_functions"]["call"](*given)


class _Names:
    """A module of the package whose names are converted when they are asked for."""

    def __init__(self, convert, names):
        self._convert, self._of = convert, names

    def __getattr__(self, name):
        value = self._convert(self._of[name])
        setattr(self, name, value)
        return value


KERNELS_AT, VALUES = {}, {}
"""Where nothing is compiled: what the numbers stand for that are addresses in compiled code."""
WORLDS = World(False), World(True)
RAISED_BY_NUMBERS = ZeroDivisionError, OverflowError, ValueError, TypeError
"""Errors of Python's numbers where compiled code has inf and NaN: a negative number to a broken power is complex, which
no array takes."""


def unwrapped(x):
    """What a kernel returns, arrays and numbers as Python knows them."""
    if isinstance(x, Plain):
        return x.whole()
    if isinstance(x, tuple):
        parts = map(unwrapped, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x.item() if isinstance(x, np.generic) else x


def arrays_of(x):
    """All arrays that a kernel may write to."""
    if isinstance(x, np.ndarray):
        return [x] if x.flags.writeable else []
    return [each for part in x for each in arrays_of(part)] if isinstance(x, tuple) else []


def run(kernel, arguments, worlds=WORLDS):
    """The result of a kernel for these arguments, interpreted."""
    written = arrays_of(arguments)
    before = [x.copy() for x in written]
    outer = getattr(_HERE, "errors", None)
    _HERE.errors = np.seterr(all="ignore")
    try:
        try:
            fast = worlds[0]
            return unwrapped(fast.plain(kernel)(*map(fast.wrapped, arguments)))
        except RAISED_BY_NUMBERS:
            _put_back(written, before)
        careful = worlds[1]
        return unwrapped(careful.plain(kernel)(*map(careful.wrapped, arguments)))
    except Stop:
        _put_back(written, before)
        raise
    finally:
        np.seterr(**_HERE.errors)
        _HERE.errors = outer


class Stop(BaseException):
    """Ends an interpreted call, whose arrays become what they were."""


def _put_back(arrays, before):
    for x, was in zip(arrays, before, strict=True):
        x[...] = was
