"""Python functions behind addresses of C functions, without losing exceptions.

An exception may come before the first statement of a Python function, where no `try` of its own catches it: a signal
that arrived while compiled code ran is handled there. `ctypes` prints such an exception and drops it. So compiled code
stands between C and the Python function, and fetches the exception from the interpreter itself.
"""
# mypy: ignore-errors
import ctypes
import functools

from llvmlite import ir
from numba import types
from numba.core import cgutils

from liedyn.machine.compiled.builtin import builtin
from liedyn.machine.compiled.jit import c_kernel
from liedyn.machine.compiled.objects import OBJECT, borrowed_none, counted, layout_is_known
from liedyn.machine.typed_decorators import intrinsic, once

_POINTER, _I32, _I64, _DOUBLE = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64), ir.DoubleType()
STOPPED = 2
"""First entry of `Failure.about` if the exception ends the program (KeyboardInterrupt); 1 for an `Exception`."""


def _call(builder, name, returns, *args, more=False):
    kinds = [x.type for x in args]
    function = ir.FunctionType(returns, kinds[:1] if more else kinds, var_arg=more)
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)


@intrinsic
def _guarded(typing, answer, raised, stops, about, t, q, v, a, lam, out):
    """Call ``answer(t, q, v, a, lam, out)``; its exception is appended to `raised` or `stops`, and out becomes NaN."""
    def codegen(context, builder, signature, args):
        answer, raised, stops, about, t, *addresses = args
        out = addresses[-1]

        def integer(x, kind):
            return builder.inttoptr(_call(builder, "PyLong_AsLongLong", _I64, x), kind.as_pointer())

        def place(k):
            return builder.gep(about, [ir.Constant(_I64, k)])

        def take(name):
            return cgutils.alloca_once_value(builder, ir.Constant(_POINTER, None), name)

        about, failed = integer(about, _I64), cgutils.alloca_once_value(builder, cgutils.true_bit)
        state = builder.load(place(0))
        with builder.if_then(builder.icmp_signed("<", state, ir.Constant(_I64, STOPPED)), likely=True):
            null = ir.Constant(_POINTER, None)
            result = _call(builder, "PyObject_CallFunctionObjArgs", _POINTER, answer, t, *addresses, null, more=True)
            builder.store(cgutils.is_null(builder, result), failed)
            _call(builder, "Py_DecRef", ir.VoidType(), result)  # also correct for NULL
            with builder.if_then(builder.load(failed), likely=False):
                kind = context.get_python_api(builder).get_c_object("PyExc_Exception")
                ordinary = _call(builder, "PyErr_ExceptionMatches", _I32, kind)
                error = [take("kind"), take("error"), take("trace")]
                _call(builder, "PyErr_Fetch", ir.VoidType(), *error)
                _call(builder, "PyErr_NormalizeException", ir.VoidType(), *error)
                value, trace = builder.load(error[1]), builder.load(error[2])
                with builder.if_then(cgutils.is_not_null(builder, trace)):
                    _call(builder, "PyException_SetTraceback", _I32, value, trace)
                with builder.if_then(builder.icmp_signed("==", state, ir.Constant(_I64, 0))):
                    numbers = builder.inttoptr(builder.load(place(7)), _DOUBLE.as_pointer())
                    builder.store(_call(builder, "PyFloat_AsDouble", _DOUBLE, t), numbers)
                    builder.store(ir.Constant(_I64, 1), place(0))
                    _call(builder, "PyList_Append", _I32, raised, value)
                with builder.if_then(builder.icmp_signed("==", ordinary, ir.Constant(_I32, 0))):
                    builder.store(ir.Constant(_I64, STOPPED), place(0))
                    _call(builder, "PyList_Append", _I32, stops, value)
                for each in error:
                    _call(builder, "Py_DecRef", ir.VoidType(), builder.load(each))
                _call(builder, "PyErr_Clear", ir.VoidType())
        with builder.if_then(builder.load(failed), likely=False):
            numbers = integer(out, _DOUBLE)
            with cgutils.for_range(builder, builder.load(place(5))) as loop:
                builder.store(ir.Constant(_DOUBLE, float("nan")), builder.gep(numbers, [loop.index]))
        return context.get_dummy_value()

    return types.none(*[OBJECT] * 10), codegen


@c_kernel
def guarded(answer, raised, stops, about, t, q, v, a, lam, out):
    _guarded(answer, raised, stops, about, t, q, v, a, lam, out)
    return counted(borrowed_none())


@once
def _builtin():
    return builtin(guarded, 10) if layout_is_known() else _in_python


def _in_python(answer, raised, stops, about, *given):
    """The same if the layout of arrays is not the known one: an exception before the first statement may be lost."""
    about, error = (ctypes.c_int64 * 8).from_address(about), None
    out = (ctypes.c_double * about[5]).from_address(given[-1])
    try:
        if about[0] < STOPPED:
            return answer(*given)
    except BaseException as raising:
        error = raising
    out[:] = [float("nan")] * about[5]
    if error is not None and about[0] == 0:
        ctypes.c_double.from_address(about[7]).value = given[0]
        about[0] = 1
        raised.append(error)
    if error is not None and not isinstance(error, Exception):
        about[0] = STOPPED
        stops.append(error)
    return None


def callback(kind, answer, raised, stops, about):
    """A C function of the `ctypes` type `kind` that calls ``answer(t, q, v, a, lam, out)`` with a number and addresses.

    The lists `raised` and `stops` receive its first `Exception`, and an exception that ends the program; `about` is the
    address of `liedyn.machine.compiled.user_callbacks.Failure.about`.
    """
    return kind(functools.partial(_builtin(), answer, raised, stops, about))
