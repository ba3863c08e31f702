"""Everything interpreted: ``LIEDYN_COMPILE=never`` and ``LIEDYN_CHECK=1``.

Nothing is compiled in a process with ``LIEDYN_COMPILE=never``, and what would need it raises an error that says so.
With ``LIEDYN_CHECK=1`` calls from Python are interpreted, and functions of the user's own that are compiled may call
compiled kernels.
"""
# mypy: ignore-errors
import inspect
import itertools
import weakref

import numba

from liedyn.machine.compiled import jit, late, objects, struct_values, translation
from liedyn.machine.errors import LiedynError
from liedyn.machine.program import interpret

_PLACES = itertools.count(-1, -1)
"""Numbers that stand for addresses; they lead to nothing but the tables of `interpret`."""
interpret.VALUES = weakref.WeakValueDictionary()


def install(never):
    """Interpret calls from Python; if `never`, refuse to compile anything."""
    if translation.IS_KNOWN:
        translation.Dispatcher.__call__ = _call
    else:
        _interpret_stock_kernels()
    jit.address_of, struct_values.functions_of = _no_address, _functions_of
    objects.layout_is_known = _no_layout
    if not never:
        struct_values.Kept, jit.address_for = NotedValues, _noted_address
        return
    translation.Dispatcher.compile = _refused
    jit.compiled_for = late.compiled_for = jit.c_address = _refused
    struct_values.Kept, jit.address_for = Values, _place_for
    from liedyn.machine.compiled import user_functions

    user_functions.CPUDispatcher = ()  # users' functions are called back, compiled or not


def _call(kernel, *arguments, **named):
    if kernel.targetoptions.get("no_cpython_wrapper"):
        raise TypeError(f"{kernel.__module__}.{kernel.__name__} is a helper of compiled code: Python cannot call it")
    if named:
        bound = inspect.signature(kernel.py_func).bind(*arguments, **named)
        bound.apply_defaults()
        arguments = bound.args
    return interpret.run(kernel, arguments)


def _interpret_stock_kernels():
    """Where kernels are functions of Numba's own class (`liedyn.machine.compiled.translation`)."""
    stock = type(numba.njit(_no_layout))
    plain_call = stock.__call__

    def call(self, *arguments, **named):
        ours = self.__module__.partition(".")[0] == "liedyn"
        return (_call if ours else plain_call)(self, *arguments, **named)

    stock.__call__ = call


def _refused(kernel, *given):
    raise LiedynError(f"{kernel.__module__}.{kernel.__name__} would have to be compiled, and the environment has "
                      "LIEDYN_COMPILE=never")


def _no_layout():
    """There are no direct calls, which read Python's objects in compiled code."""
    return False


def _no_address(kernel, *arguments):
    raise LiedynError(f"{kernel.__name__} has no address, as it is interpreted")


def _functions_of(kernel, count):
    def function(*integers):
        return interpret.run(kernel, integers)

    return function, function


class Values:
    """Stands for `liedyn.machine.compiled.struct_values.Kept`."""

    def __init__(self, values):
        self.values, self.address = values, next(_PLACES)
        interpret.VALUES[self.address] = self

    def __reduce__(self):
        return Values, (self.values,)


def _place_for(kernel, kinds):
    place = next(_PLACES)
    interpret.KERNELS_AT[place] = kernel
    return place


class NotedValues(struct_values.Kept):
    """Values at an address of memory, which interpreted kernels know as well."""

    def __init__(self, values):
        super().__init__(values)
        interpret.VALUES[self.address] = self

    def __reduce__(self):
        return NotedValues, (self.values,)


_plain_address_for = jit.address_for


def _noted_address(kernel, kinds):
    address = _plain_address_for(kernel, kinds)
    interpret.KERNELS_AT[address] = kernel
    return address
