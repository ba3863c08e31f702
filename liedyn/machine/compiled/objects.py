"""Python objects inside compiled code: borrowed arguments, read through pointers, and new objects to return.

Arrays are read through the fields of PyArrayObject and PyArray_Descr that NumPy's C interface publishes, and made with
its PyArray_New. `layout_is_known` verifies the offsets. Addresses enter compiled code as symbols, which the linker of
each process resolves, so that kernels can be cached.
"""
# mypy: ignore-errors
import ctypes

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, box, models, register_model, unbox
from numba.np.arrayobj import make_array, populate_array

from liedyn.machine.compiled.jit import inline
from liedyn.machine.typed_decorators import intrinsic

# offsets in bytes from the start of an object: CPython's header, then PyArrayObject; and in PyArray_Descr
TYPE, DATA, NDIM, DIMENSIONS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
BYTE_ORDER, TYPE_NUMBER = 26, 28
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
READABLE = C_CONTIGUOUS | ALIGNED
NATIVE = ord("=")
FLOAT64, INT64 = np.dtype(np.float64).num, np.dtype(np.int64).num

STACK = 16384
"""Largest workspace on the stack, in numbers: 128 KiB, as the smallest thread stacks have 512. Robots of more than two
hundred bodies need more; they use the general way, whose overhead is small beside their computation."""

_POINTER, _I32, _I64, _DOUBLE = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64), ir.DoubleType()


class ObjectType(types.Type):
    """A Python object, neither converted nor reference-counted."""

    def __init__(self):
        super().__init__("PythonObject")


OBJECT = ObjectType()


@register_model(ObjectType)
class _ObjectModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _POINTER)


unbox(ObjectType)(lambda typ, obj, c: NativeValue(obj))
box(ObjectType)(lambda typ, value, c: value)


def layout_is_known():
    """True if arrays of this interpreter have the offsets above."""
    def read(address, ctype):
        return ctype.from_address(address).value

    def fits(x):
        at, descr = id(x), id(x.dtype)
        dimensions, flags = read(at + DIMENSIONS, ctypes.c_void_p), read(at + FLAGS, ctypes.c_int)
        return (read(at + TYPE, ctypes.c_void_p) == id(type(x)) and read(at + DATA, ctypes.c_void_p) == x.ctypes.data
                and read(at + NDIM, ctypes.c_int) == x.ndim and read(at + DESCR, ctypes.c_void_p) == descr
                and [read(dimensions + 8 * k, ctypes.c_int64) for k in range(x.ndim)] == list(x.shape)
                and chr(read(descr + BYTE_ORDER, ctypes.c_uint8)) == x.dtype.byteorder
                and read(descr + TYPE_NUMBER, ctypes.c_int) == x.dtype.num
                and bool(flags & C_CONTIGUOUS) == x.flags.c_contiguous
                and bool(flags & ALIGNED) == x.flags.aligned
                and bool(flags & WRITEABLE) == x.flags.writeable)

    return object.__basicsize__ == DATA and all(map(fits, (
        np.zeros((3, 2)), np.zeros((2, 3, 4))[:, ::2], np.zeros(3, dtype=np.dtype(float).newbyteorder()),
        np.zeros(2, dtype=np.int64), np.zeros(5, dtype=np.float32), np.broadcast_to(1.0, 4), np.zeros(()),
        np.zeros(17, dtype=np.int8)[1:].view(np.float64))))


def _new_array_function():
    """Address of PyArray_New, entry 93 in NumPy's table of C functions, which is located as extension modules do."""
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.restype, table.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = table(np._core._multiarray_umath._ARRAY_API, None)
    return ctypes.cast(at, ctypes.POINTER(ctypes.c_void_p))[93]


binding.add_symbol("liedyn_new_array", _new_array_function())


def _symbol(builder, name):
    return builder.module.globals.get(name) or ir.GlobalVariable(builder.module, ir.IntType(8), name)


def _call(builder, name, returns, *args):
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(returns, [x.type for x in args]), name)
    return builder.call(function, args)


def _field(builder, x, offset, typ):
    return builder.load(builder.bitcast(builder.gep(x, [ir.Constant(_I64, offset)]), typ.as_pointer()))


def _extents(context, builder, typ, shape):
    """A shape, a tuple of integers, as a list of LLVM integers."""
    return [context.cast(builder, builder.extract_value(shape, k), n, types.intp) for k, n in enumerate(typ)]


# ---- reading objects


def address_of_type(kind, name):
    """A compiled function that returns the address of a Python class, by a symbol `name` for the linker."""
    binding.add_symbol(name, id(kind))

    @intrinsic
    def address(typing):
        """Address of a type."""
        return types.intp(), lambda context, builder, sig, args: builder.ptrtoint(_symbol(builder, name), _I64)

    return address


def _reader(offset, typ, returns=types.intp):
    @intrinsic
    def read(typing, x):
        """One field of an object."""
        def codegen(context, builder, sig, args):
            value = _field(builder, args[0], offset, typ)
            if returns == OBJECT:
                return value
            return builder.ptrtoint(value, _I64) if typ == _POINTER else builder.zext(value, _I64)

        return returns(OBJECT), codegen

    return read


ndarray_type, tuple_type = address_of_type(np.ndarray, "liedyn_ndarray"), address_of_type(tuple, "liedyn_tuple")
type_of, ndim_of, flags_of = _reader(TYPE, _POINTER), _reader(NDIM, _I32), _reader(FLAGS, _I32)
descr_of = _reader(DESCR, _POINTER, OBJECT)
byte_order, type_number = _reader(BYTE_ORDER, ir.IntType(8)), _reader(TYPE_NUMBER, _I32)


@intrinsic
def extent_of(typing, x, k):
    """Entry k of the shape of an array object."""
    def codegen(context, builder, sig, args):
        return builder.load(builder.gep(_field(builder, args[0], DIMENSIONS, _I64.as_pointer()), [args[1]]))

    return types.intp(OBJECT, types.intp), codegen


@intrinsic
def has_shape(typing, x, shape):
    """True if an array object has this shape, with as many axes as `shape` has entries."""
    def codegen(context, builder, sig, args):
        dimensions, same = _field(builder, args[0], DIMENSIONS, _I64.as_pointer()), cgutils.true_bit
        for k, n in enumerate(_extents(context, builder, shape, args[1])):
            found = builder.load(builder.gep(dimensions, [ir.Constant(_I64, k)]))
            same = builder.and_(same, builder.icmp_signed("==", found, n))
        return same

    return types.boolean(OBJECT, shape), codegen


@inline
def is_array(x, number, ndim, flags):
    """True for an ndarray (no subclass) of native numbers with `ndim` axes and all of these flags."""
    if type_of(x) != ndarray_type():
        return False
    descr = descr_of(x)
    return (ndim_of(x) == ndim and flags_of(x) & flags == flags and type_number(descr) == number
            and byte_order(descr) == NATIVE)


@intrinsic
def borrowed_none(typing):
    return OBJECT(), lambda context, builder, sig, args: context.get_python_api(builder).borrow_none()


@intrinsic
def is_none(typing, x):
    return types.boolean(OBJECT), lambda context, builder, sig, args: builder.icmp_unsigned(
        "==", args[0], context.get_python_api(builder).borrow_none())


@intrinsic
def tuple_size(typing, x):
    """Number of objects in a tuple."""
    return types.intp(OBJECT), lambda context, builder, sig, args: _call(builder, "PyTuple_Size", _I64, *args)


@intrinsic
def item(typing, x, k):
    """Object k of a tuple, as a borrowed reference."""
    return OBJECT(OBJECT, types.intp), lambda context, builder, sig, args: _call(
        builder, "PyTuple_GetItem", _POINTER, *args)


@intrinsic
def integer(typing, x):
    """The value of a Python int."""
    return types.int64(OBJECT), lambda context, builder, sig, args: _call(builder, "PyLong_AsLongLong", _I64, *args)


@intrinsic
def number_of(typing, names, name):
    """The non-negative integer that a dict holds for a name; -1 if the name is missing."""
    def codegen(context, builder, sig, args):
        found = _call(builder, "PyDict_GetItemWithError", _POINTER, *args)  # a borrowed reference
        known, place = cgutils.is_not_null(builder, found), cgutils.alloca_once_value(builder, ir.Constant(_I64, -1))
        with builder.if_else(known, likely=True) as (if_known, if_not):
            with if_known:
                builder.store(_call(builder, "PyLong_AsLongLong", _I64, found), place)
            with if_not:  # a key that cannot be hashed raises
                _call(builder, "PyErr_Clear", ir.VoidType())
        return builder.load(place)

    return types.intp(OBJECT, OBJECT), codegen


# ---- arrays without an owner

NUMBERS, INTEGERS = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")


def _array(context, builder, array_type, data, size):
    array, width = make_array(array_type)(context, builder), ir.Constant(_I64, 8)
    populate_array(array, data=data, shape=[size], strides=[width], itemsize=width, meminfo=None)
    return array._getvalue()


@intrinsic
def numbers(typing, x, size):
    """The first `size` numbers of an array object, flat."""
    def codegen(context, builder, sig, args):
        return _array(context, builder, NUMBERS, _field(builder, args[0], DATA, _DOUBLE.as_pointer()), args[1])

    return NUMBERS(OBJECT, types.intp), codegen


@intrinsic
def no_numbers(typing, size):
    """An array that claims `size` numbers but has no memory."""
    def codegen(context, builder, sig, args):
        return _array(context, builder, NUMBERS, ir.Constant(_DOUBLE.as_pointer(), None), args[0])

    return NUMBERS(types.intp), codegen


@intrinsic(prefer_literal=True)
def integers_or_zeros(typing, x, usual, size):
    """The integers of an array object; if it is not the usual one, `size` (a literal) zeros."""
    def codegen(context, builder, sig, args):
        count = size.literal_value
        zeros = cgutils.global_constant(builder, "zeros", ir.Constant(ir.ArrayType(_I64, count), [0] * count))
        data = cgutils.alloca_once_value(builder, builder.bitcast(zeros, _I64.as_pointer()))
        with builder.if_then(args[1], likely=True):
            builder.store(_field(builder, args[0], DATA, _I64.as_pointer()), data)
        return _array(context, builder, INTEGERS, builder.load(data), ir.Constant(_I64, count))

    return INTEGERS(OBJECT, types.boolean, size), codegen


@intrinsic
def scratch(typing, size):
    """`size` numbers on the stack of the calling kernel (not of a helper); an array of size -1 if beyond `STACK`."""
    def codegen(context, builder, sig, args):
        fits = builder.icmp_signed("<=", args[0], ir.Constant(_I64, STACK))
        data = builder.alloca(_DOUBLE, builder.select(fits, args[0], ir.Constant(_I64, 0)))
        data.align = 64  # a cache line
        return _array(context, builder, NUMBERS, data, builder.select(fits, args[0], ir.Constant(_I64, -1)))

    return NUMBERS(types.intp), codegen


@intrinsic
def shaped(typing, x, shape):
    """A flat array seen in another shape of the same size, without ownership."""
    kind = types.Array(x.dtype, len(shape), "C")

    def codegen(context, builder, sig, args):
        array, extents = make_array(kind)(context, builder), _extents(context, builder, shape, args[1])
        strides = [ir.Constant(_I64, 8)]
        for n in extents[:0:-1]:
            strides.insert(0, builder.mul(strides[0], n))
        data = make_array(sig.args[0])(context, builder, args[0]).data
        populate_array(array, data=data, shape=extents, strides=strides, itemsize=ir.Constant(_I64, 8), meminfo=None)
        return array._getvalue()

    return kind(x, shape), codegen


@intrinsic
def place_of(typing, x):
    """Address of the data of an array."""
    def codegen(context, builder, sig, args):
        return builder.ptrtoint(make_array(NUMBERS)(context, builder, args[0]).data, _I64)

    return types.intp(NUMBERS), codegen


# ---- new references, to be returned


@intrinsic
def counted(typing, x):
    """The same object with its reference count increased by one."""
    def codegen(context, builder, sig, args):
        context.get_python_api(builder).incref(args[0])
        return args[0]

    return OBJECT(OBJECT), codegen


def _new_array(builder, extents):
    """PyArray_New(ndarray, ndim, dimensions, FLOAT64, ...): a new reference, or NULL and an exception."""
    null, zero = ir.Constant(_POINTER, None), ir.Constant(_I32, 0)
    dimensions = cgutils.alloca_once(builder, _I64, max(len(extents), 1))
    for k, n in enumerate(extents):
        builder.store(n, builder.gep(dimensions, [ir.Constant(_I64, k)]))
    return _call(builder, "liedyn_new_array", _POINTER, _symbol(builder, "liedyn_ndarray"),
                 ir.Constant(_I32, len(extents)), dimensions, ir.Constant(_I32, FLOAT64), null, null, zero, zero, null)


def _or_none(context, builder, x, failed):
    """x, or None if memory is exhausted: the general way will then raise the error."""
    api, place = context.get_python_api(builder), cgutils.alloca_once_value(builder, x)
    with builder.if_then(failed, likely=False):
        api.err_clear()
        api.decref(x)  # Py_DecRef accepts NULL
        none = api.borrow_none()
        api.incref(none)
        builder.store(none, place)
    return builder.load(place)


@intrinsic
def new_array(typing, shape):
    """A new array of float64, or None."""
    def codegen(context, builder, sig, args):
        x = _new_array(builder, _extents(context, builder, shape, args[0]))
        return _or_none(context, builder, x, cgutils.is_null(builder, x))

    return OBJECT(shape), codegen


@intrinsic
def new_arrays(typing, shapes):
    """A tuple of new arrays of float64, or None."""
    def codegen(context, builder, sig, args):
        api = context.get_python_api(builder)
        whole = api.tuple_new(len(shapes))
        failed = cgutils.alloca_once_value(builder, cgutils.is_null(builder, whole))
        with builder.if_then(cgutils.is_not_null(builder, whole), likely=True):
            for k, shape in enumerate(shapes):
                x = _new_array(builder, _extents(context, builder, shape, builder.extract_value(args[0], k)))
                builder.store(builder.or_(builder.load(failed), cgutils.is_null(builder, x)), failed)
                api.tuple_setitem(whole, k, x)  # steals the reference
        return _or_none(context, builder, whole, builder.load(failed))

    return OBJECT(shapes), codegen
