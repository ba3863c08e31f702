"""Compiled functions of Python objects as builtin functions of the interpreter.

Numba's own entry point takes a tuple of arguments, which the interpreter has to make for each call. Builtin functions
like those of CPython itself (METH_FASTCALL) read the arguments from the interpreter's stack.
"""
# mypy: ignore-errors
import ctypes

import numpy as np
from llvmlite import ir
from numba import types

from liedyn.machine.compiled.jit import c_address, c_kernel
from liedyn.machine.compiled.objects import OBJECT, integers_or_zeros
from liedyn.machine.typed_decorators import intrinsic

MOST = 10
"""Largest number of arguments of such a function."""

_FASTCALL = 0x80
_POINTER, _I64 = ir.IntType(8).as_pointer(), ir.IntType(64)


class _Method(ctypes.Structure):
    """PyMethodDef: name, function, flags, docstring."""

    name: bytes
    function: int
    flags: int
    doc: bytes

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


_METHODS = []  # the PyMethodDef structures that builtin functions point to; they must live as long as the process


@intrinsic
def called(typing, address, given, count):
    """The result of the C function at an address for `count` objects, 1 to MOST; else NULL, with an exception."""
    def codegen(context, builder, signature, values):
        address, given, count = values
        given, ends = builder.bitcast(given, _POINTER.as_pointer()), []
        other, end = builder.append_basic_block("other"), builder.append_basic_block("end")
        switch = builder.switch(count, other)
        for n in range(1, MOST + 1):
            block = builder.append_basic_block(f"objects{n}")
            switch.add_case(ir.Constant(_I64, n), block)
            builder.position_at_end(block)
            objects = [builder.load(builder.gep(given, [ir.Constant(_I64, k)])) for k in range(n)]
            function = builder.inttoptr(address, ir.FunctionType(_POINTER, [_POINTER] * n).as_pointer())
            ends.append((builder.call(function, objects), block))
            builder.branch(end)
        builder.position_at_end(other)
        context.get_python_api(builder).err_set_string("PyExc_TypeError", "wrong number of arguments")
        builder.branch(end)
        builder.position_at_end(end)
        result = builder.phi(_POINTER)
        for value, block in (*ends, (ir.Constant(_POINTER, None), other)):
            result.add_incoming(value, block)
        return result

    return OBJECT(types.int64, OBJECT, types.intp), codegen


@c_kernel
def spread(function, given, count):
    """The builtin function; its `self` holds address and number of arguments of the C function to call."""
    callee = integers_or_zeros(function, True, 2)
    return called(callee[0], given, count if count == callee[1] else 0)


def builtin(dispatcher, count):
    """A kernel that takes `count` objects and returns one, as a builtin function; compiled or read from the cache."""
    method = _Method(dispatcher.__name__.encode(), c_address(spread, (OBJECT, OBJECT, types.intp)), _FASTCALL, None)
    _METHODS.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    callee = np.array([c_address(dispatcher, (OBJECT,) * count), count], dtype=np.int64)
    return make(ctypes.addressof(method), callee, None)
