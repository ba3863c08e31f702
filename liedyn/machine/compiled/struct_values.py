"""Arguments of a kernel, stored in Numba's struct layout: Python then passes one address instead of all of them.

Numba's dispatcher unpacks each array of a named tuple at every call; for the hundred arrays of a simulation step that
takes ten times as long as the step. `Kept` unpacks them once. Its owner must hold the arrays, as references are not
counted.
"""
# mypy: ignore-errors
import ctypes

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from liedyn.machine.compiled.jit import c_address, kernel
from liedyn.machine.typed_decorators import intrinsic

_I64 = ir.IntType(64)


@intrinsic
def _size_of(typing, values):
    """Size in bytes of values in memory."""
    return types.int64(values), lambda context, builder, sig, args: ir.Constant(
        _I64, context.get_abi_sizeof(args[0].type))


def _unowned(context, builder, kind, value):
    """A value with arrays without an owner: the reference that Numba counts for a Python array ends with the call."""
    if isinstance(kind, types.BaseTuple):
        parts = [_unowned(context, builder, each, builder.extract_value(value, k)) for k, each in enumerate(kind)]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.Array):
        array = make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (ir.Constant(x.type, None) for x in (array.meminfo, array.parent))
        return array._getvalue()
    return value


@intrinsic
def _put_at(typing, address, values):
    def codegen(context, builder, sig, args):
        value = _unowned(context, builder, sig.args[1], args[1])
        builder.store(value, builder.inttoptr(args[0], value.type.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, values), codegen


@kernel
def _room(values):
    return _size_of(values)


@kernel
def _put(address, values):
    _put_at(address, values)


class Kept:
    """A named tuple of numbers and arrays stored at an address, as long as this object lives.

    Attributes
    ----------
    values : tuple
    address : int
    """

    def __init__(self, values):
        self.values = values
        self._block = np.zeros(_room(values) // 8 + 1, np.int64)
        self.address = self._block.ctypes.data
        _put(self.address, values)

    def __reduce__(self):
        return Kept, (self.values,)  # a copy gets an address of its own


def kept(kind):
    """An intrinsic that reads values of a Numba type from an address."""
    @intrinsic
    def read(typing, address):
        def codegen(context, builder, sig, args):
            return builder.load(builder.inttoptr(args[0], context.get_value_type(kind).as_pointer()))

        return kind(types.int64), codegen

    return read


def functions_of(dispatcher, count):
    """A kernel that takes `count` integers and returns one, as two functions: the first holds the interpreter's lock,
    as a short call would have to wait to get it back; the second one releases it for other threads."""
    address, kinds = c_address(dispatcher, (types.int64,) * count), [ctypes.c_int64] * (count + 1)
    return ctypes.PYFUNCTYPE(*kinds)(address), ctypes.CFUNCTYPE(*kinds)(address)
