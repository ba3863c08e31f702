"""Direct calls from Python into a kernel: 0.1 us, and 0.1 us for a new array, instead of 3 to 6 us.

Numba's dispatcher determines the types of all arguments at each call, makes an array structure of each and counts
references to it; checks and conversions in Python cost as much again. A `direct` kernel gets Python's objects as
borrowed references (its caller holds them, and the interpreter's lock), and checks them itself: type, number type,
shape, flags and numbers, before anything else is read through a pointer. For usual arguments it computes and returns
the result, a new array or the caller's `out`. For any other argument (a list, float32, strided, a batch, a wrong shape,
not finite or too large, `out` overlapping an input) it returns None, and the general path of
`liedyn.model.calls.boundary` follows: conversions, batches, typed errors.

    @direct
    def rnea_direct(model, q, v, a, out):
        model = packed(model)
        q, v, a = configuration(model, q), velocity(model, v), velocity(model, a)
        work = scratch(rnea_size(model))
        tau = result(out, (dof_total(model),), (model.floats, q, v, a, work))
        if not is_none(tau):
            rnea_kernel(SCALAR, model, q, v, a, nothing(), work, numbers(tau, dof_total(model)))
        return tau

An unusual argument becomes an array of size -1, which `result` rejects. If arrays do not have the layout of
`liedyn.machine.compiled.objects`, in another interpreter, every call uses the general path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.machine.compiled.builtin import builtin
from liedyn.machine.compiled.jit import c_kernel, inline, inline_array
from liedyn.machine.compiled.objects import (
    FLOAT64, INT64, READABLE, WRITEABLE, address_of_type, borrowed_none, counted, extent_of, has_shape,
    integers_or_zeros, is_array, is_none, item, layout_is_known, new_array, new_arrays, no_numbers, numbers, place_of,
    tuple_size, tuple_type, type_of,
)
from liedyn.machine.simd.registers import LARGEST
from liedyn.model.packed import HEADER, LINK_I, LINK_IQ, LINK_NQ, NQ, NV, N_LINKS, PackedModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

UNIT_TOLERANCE = 1e-6
"""Largest deviation of the squared length of a quaternion from 1. Kernels normalise it; a larger deviation is a mistake
(a wrong order, a perturbation without normalisation) rather than rounding."""

packed_model_type = address_of_type(PackedModel, "liedyn_packed_model")


class DirectKernel:
    """A kernel that Python calls with objects; it returns the result, or None.

    It is compiled, or read from the cache, at the first call, for objects as its only signature. From then on its name
    in its module refers to the builtin function itself, which saves a look-up.
    """

    def __init__(self, function):
        self.dispatcher, self._names, self._name = c_kernel(function), function.__globals__, function.__name__

    def __call__(self, *objects):
        function = builtin(self.dispatcher, len(objects)) if layout_is_known() else _unusual
        self._names[self._name] = function
        return function(*objects)


def direct(function: Callable[..., Any]) -> Any:
    """Decorator: a `DirectKernel`."""
    return DirectKernel(function)


def _unusual(*objects):
    """Replaces all direct kernels if arrays do not have the known layout."""


# ---- arguments


@inline_array
def nothing():
    """An empty array."""
    return no_numbers(0)


@inline_array
def packed(model):
    """The packed model; for an unusual object, that of an empty robot, without floats."""
    if type_of(model) != packed_model_type():
        return PackedModel(integers_or_zeros(model, False, HEADER), no_numbers(-1))
    ints, floats = item(model, 0), item(model, 1)
    usual = is_array(ints, INT64, 1, READABLE) and is_array(floats, FLOAT64, 1, READABLE)
    return PackedModel(integers_or_zeros(ints, usual, HEADER),
                       numbers(floats, extent_of(floats, 0)) if usual else no_numbers(-1))


@inline_array
def bounded(x, size):
    """A vector of numbers that are finite and not too large for kernels."""
    if not is_array(x, FLOAT64, 1, READABLE) or extent_of(x, 0) != size:
        return no_numbers(-1)
    found = numbers(x, size)
    for k in range(size):
        if not abs(found[k]) <= LARGEST:
            return no_numbers(-1)
    return found


@inline_array
def velocity(model, x):
    """A velocity, an acceleration, generalised forces or a tangent vector."""
    return bounded(x, model.ints[NV])


@inline
def bad_quaternion(model, q):
    """Link whose quaternion is not of unit length, -1 if all are."""
    for i in range(model.ints[N_LINKS]):
        if model.ints[HEADER + LINK_I * i + LINK_NQ] >= 4:
            k = model.ints[HEADER + LINK_I * i + LINK_IQ]
            n2 = q[k] * q[k] + q[k + 1] * q[k + 1] + q[k + 2] * q[k + 2] + q[k + 3] * q[k + 3]
            if not abs(n2 - 1.0) <= UNIT_TOLERANCE:
                return i
    return -1


@inline_array
def configuration(model, q):
    """A configuration whose quaternions have unit length."""
    found = bounded(q, model.ints[NQ])
    return no_numbers(-1) if found.size > model.ints[NV] and bad_quaternion(model, found) >= 0 else found


# ---- results


@inline
def general_path():
    """Return None."""
    return counted(borrowed_none())


@inline
def usual(inputs):
    for k in range(len(inputs)):
        if inputs[k].size < 0:
            return False
    return True


@inline
def fits(x, shape, inputs):
    """True if results of this shape can be written to an object that does not overlap the inputs."""
    if not is_array(x, FLOAT64, len(shape), READABLE | WRITEABLE) or not has_shape(x, shape):
        return False
    size = 1
    for k in range(len(shape)):
        size *= extent_of(x, k)
    first = place_of(numbers(x, size))
    for k in range(len(inputs)):
        other = place_of(inputs[k])
        if first < other + 8 * inputs[k].size and other < first + 8 * size:
            return False
    return True


@inline
def result(out, shape, inputs):
    """The array for the result: `out`, or a new one if that is None; None if any argument is unusual."""
    if usual(inputs):
        if is_none(out):
            return new_array(shape)
        if fits(out, shape, inputs):
            return counted(out)
    return general_path()


@inline
def results(out, shapes, inputs):
    """The same for a tuple of arrays, one of each shape."""
    if usual(inputs):
        if is_none(out):
            return new_arrays(shapes)
        if are_fit(out, shapes, inputs):
            return counted(out)
    return general_path()


@inline
def are_fit(out, shapes, inputs):
    """True if results of these shapes, all of one size, can be written to a tuple of arrays that do not overlap."""
    if type_of(out) != tuple_type() or tuple_size(out) != len(shapes):
        return False
    for k in range(len(shapes)):
        if not fits(item(out, k), shapes[k], inputs):
            return False
    size = 1
    for k in range(len(shapes[0])):
        size *= shapes[0][k]
    for k in range(len(shapes)):
        for i in range(k):
            apart = place_of(numbers(item(out, k), size)) - place_of(numbers(item(out, i), size))
            if abs(apart) < 8 * size:
                return False
    return True
