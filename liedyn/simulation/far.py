"""Calls by address, between compiled functions that are compiled apart.

A loop that names a kernel contains all of it: it would be compiled once more for every formulation, and these for every
loop. The loops of this package know addresses only, of two functions,

    status = formulation(model, settings, work, t, row, q, v, a, lam)       accelerations, and multipliers if
                                                                                   `lam` has room for them
    status = stabilisation(model, settings, work, h, energy, q, v)          (q, v) on the constraints

in ``settings.formulation`` and ``settings.stabiliser``, and of the linearization where they need it
(``settings.linearization``).
"""
from numba import types
from numba.extending import intrinsic

from liedyn.jit import address_for, apart, call_at
from liedyn.linearization.local import linearize_kernel
from liedyn.tree.records import MODEL


def _call(context, builder, signature, arguments):
    return call_at(context, builder, arguments[0], signature.return_type, signature.args[1:], arguments[1:])


@intrinsic
def accelerations(typing, address, model, settings, work, t, row, q, v, a, lam):
    """Call the formulation at an address."""
    return types.int64(address, model, settings, work, t, row, q, v, a, lam), _call


@intrinsic
def stabilise(typing, address, model, settings, work, h, energy, q, v):
    """Call the stabilisation at an address."""
    return types.int64(address, model, settings, work, h, energy, q, v), _call


_VECTOR, _MATRIX, _INTEGERS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_LINEARIZED = (MODEL, *[_VECTOR] * 4, _MATRIX, _INTEGERS, _MATRIX, _INTEGERS, _MATRIX, types.float64)
linearization = apart(_LINEARIZED, linearize_kernel)
"""Call `linearize_kernel` at its address, with a tuple of its arguments."""


def address_of_linearization():
    """Address of `linearize_kernel`."""
    return address_for(linearize_kernel, _LINEARIZED)
