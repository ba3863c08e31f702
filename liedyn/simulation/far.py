"""Calls by address, between compiled functions that are compiled apart.

A loop that names a kernel contains all of it: it would be compiled once more for every formulation, and these for every
loop. The loops of this package know addresses only, of two functions,

    status = formulation(ints, floats, settings, work, t, row, q, v, a, lam)       accelerations, and multipliers if
                                                                                   `lam` has room for them
    status = stabilisation(ints, floats, settings, work, h, energy, q, v)          (q, v) on the constraints

in ``settings.formulation`` and ``settings.stabiliser``, and of the linearization where they need it.
"""
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from liedyn.jit import address_of
from liedyn.linearization.local import linearize_kernel


def _call(context, builder, signature, arguments):
    convention, taken, result = context.call_conv, signature.args[1:], signature.return_type
    callee = builder.inttoptr(arguments[0], ir.PointerType(convention.get_function_type(result, taken)))
    return convention.call_function(builder, callee, result, taken, arguments[1:])[1]


@intrinsic
def accelerations(typing, address, ints, floats, settings, work, t, row, q, v, a, lam):
    """Call the formulation at an address."""
    return types.int64(address, ints, floats, settings, work, t, row, q, v, a, lam), _call


@intrinsic
def stabilise(typing, address, ints, floats, settings, work, h, energy, q, v):
    """Call the stabilisation at an address."""
    return types.int64(address, ints, floats, settings, work, h, energy, q, v), _call


@intrinsic
def linearization(typing, address, ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators,
                  tolerance):
    """Call `linearize_kernel` at its address; what it returns, it says itself."""
    arguments = ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, tolerance
    linearize_kernel.compile(arguments)
    return linearize_kernel.overloads[arguments].signature.return_type(address, *arguments), _call


def address_of_linearization(ints, floats, work, q, v):
    """Address of `linearize_kernel`."""
    R, none = np.zeros((1, v.size)), np.full(1, -1)
    return address_of(linearize_kernel, ints, floats, q, v, v, work.f_ext, R, none, R, none, work.actuators, 0.0)
