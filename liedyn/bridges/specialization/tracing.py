"""Runs a kernel's own body on expressions: its arithmetic, without its loops, branches and reads of the model.

Before compilation a kernel is an ordinary Python function. Here its body and those of all helpers are executed as such,
with the accesses of `liedyn.machine.simd.lanes` replaced: the model is read as numbers, the state as expressions.
"""
import types

from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from liedyn.bridges.specialization.expressions import CALL, INPUT, Expression
from liedyn.machine.simd import lanes, registers, strided


class Memory(dict):
    """An array of a traced kernel: its numbers by flat index."""

    size = 0  # what kernels read of `f_ext`: there are no wrenches


def inputs(program, name, size):
    """An array argument whose numbers are known at run time only."""
    return Memory((k, program.node(INPUT, name, k)) for k in range(size))


def _load(lane, x, k):
    return x[k] if isinstance(x[k], Expression) else float(x[k])


def _record(x, base, size):
    """Numbers of a record; entries that have not been written yet are read as None and never used."""
    return tuple(_load(None, x, base + k) if base + k in x else None for k in range(size))


_ACCESS = {
    lanes.load: _load,
    lanes.store: lambda lane, x, k, value: x.__setitem__(k, value),
    lanes.splat: lambda lane, x: x,
    lanes.narrow: lambda lane: lane,
    lanes.integer: lambda ints, k: int(ints[k]),
    registers.at_once: lambda lane: 1,
    registers.load_at_once: lambda lane, x, k, count: _load(lane, x, k),
    registers.store_at_once: lambda lane, x, k, count, value: x.__setitem__(k, value),
    strided.records_at_once: lambda lane, x, base, stride, last, size: _record(x, base, size),
    strided.chosen_records_at_once: lambda lane, x, base, stride, ints, at, step, last, size: tuple(
        _load(lane, x, base + stride * int(ints[at]) + k) for k in range(size)),
    strided.constants_at_once: lambda lane, x, base, stride, last, size: tuple(map(float, x[base:base + size])),
    strided.put_records_at_once: lambda lane, x, base, stride, last, values: x.update(
        (base + k, value) for k, value in enumerate(values)),
    registers.is_zero: lambda x: not isinstance(x, Expression) and x == 0.0,
}


def _call(function):
    """An elementary function, as a node of the program."""
    def node(*arguments):
        return next(x.program for x in arguments if isinstance(x, Expression)).node(CALL, function, *arguments)
    return node


class Tracer:
    """Compiled functions as the plain Python in which they were written, including all that they call.

    Parameters
    ----------
    instead : dict
        Python functions that replace compiled ones, and intrinsics.
    """

    def __init__(self, instead):
        self._instead, self._modules, self._plain = instead, {}, {}

    def plain(self, compiled):
        """The plain Python function of one compiled function."""
        if compiled in self._instead:
            return self._instead[compiled]
        if compiled not in self._plain:
            function = compiled.py_func
            self._plain[compiled] = types.FunctionType(function.__code__, self._module(function.__globals__),
                                                       function.__name__, function.__defaults__, function.__closure__)
        return self._plain[compiled]

    def _module(self, names):
        """The names of a module, with compiled functions and accesses replaced."""
        if id(names) not in self._modules:
            copy = self._modules[id(names)] = dict(names)
            for name, value in names.items():
                if isinstance(value, CPUDispatcher):
                    copy[name] = self.plain(value)
                elif isinstance(value, _Intrinsic):
                    copy[name] = self._instead.get(value) or _ACCESS.get(value) or _call(value)
        return self._modules[id(names)]
