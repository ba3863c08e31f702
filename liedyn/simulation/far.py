"""Calls by address, between compiled functions that are compiled apart.

A loop that names a kernel contains all of it: it would be compiled once more for every formulation, and these for every
loop. The loops of this package know addresses only, of two functions,

    status = formulation(ints, floats, settings, work, t, row, q, v, a, lam)       accelerations, and multipliers if
                                                                                   `lam` has room for them
    status = stabilisation(ints, floats, settings, work, h, energy, q, v)          (q, v) on the constraints

in ``settings.formulation`` and ``settings.stabiliser``.
"""
from llvmlite import ir
from numba import types, typeof
from numba.extending import intrinsic


def _call(context, builder, signature, arguments):
    convention, taken = context.call_conv, signature.args[1:]
    function = convention.get_function_type(types.int64, taken)
    callee = builder.inttoptr(arguments[0], ir.PointerType(function))
    return convention.call_function(builder, callee, types.int64, taken, arguments[1:])[1]


@intrinsic
def accelerations(typing, address, ints, floats, settings, work, t, row, q, v, a, lam):
    """Call the formulation at an address."""
    return types.int64(address, ints, floats, settings, work, t, row, q, v, a, lam), _call


@intrinsic
def stabilise(typing, address, ints, floats, settings, work, h, energy, q, v):
    """Call the stabilisation at an address."""
    return types.int64(address, ints, floats, settings, work, h, energy, q, v), _call


def address_of(dispatcher, *arguments):
    """Address of a kernel for arguments like these, compiled or found in the cache."""
    kinds = tuple(typeof(x) for x in arguments)
    dispatcher.compile(kinds)
    result = dispatcher.overloads[kinds]
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
