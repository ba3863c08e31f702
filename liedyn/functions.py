"""Users' functions inside compiled kernels, without compiling a kernel again.

A kernel that takes a function as its argument is compiled anew for each function, and never found in the cache. So a
user's function becomes a C function, its address is a number like any other in the packed model, and kernels call
the address. All have one signature,

    void f(double t, double *q, double *v, double *a, double *lam, double *out)

of which each uses what it needs. Compiled functions (``@njit``) run at full speed; plain Python functions are called
back, some microseconds each, and what they raise is kept for the caller to raise again: nothing can pass through C.
"""
import ctypes

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, types
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from liedyn.errors import InputError

ARGUMENTS = ("t", "q", "v", "a", "lam")
_POINTER = ctypes.POINTER(ctypes.c_double)
_C_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_double, *[_POINTER] * 5)
_ENTRY = types.void(types.float64, *[types.CPointer(types.float64)] * 5)


@intrinsic
def call(typingctx, address, t, q, v, a, lam, out, at):
    """Call the C function at an address; its results go to `out` (an array of any shape) from place `at` on."""
    signature = types.void(address, t, q, v, a, lam, out, at)

    def codegen(context, builder, signature, args):
        number, pointer = ir.DoubleType(), ir.DoubleType().as_pointer()
        function = ir.FunctionType(ir.VoidType(), [number] + [pointer] * 5)
        data = [context.make_array(ty)(context, builder, value=value).data
                for ty, value in zip(signature.args[2:7], args[2:7])]
        data[-1] = builder.gep(data[-1], [args[7]])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [args[1], *data])
        return context.get_dummy_value()

    return signature, codegen


def _put(out, at, result):
    """Write a number, an array, or a tuple of these to `out` from `at` on; returns the next free place."""
    raise NotImplementedError("compiled code only")


@overload(_put)
def _put_compiled(out, at, result):
    if isinstance(result, types.Array):
        def put(out, at, result):
            for x in result.flat:
                if at < out.size:
                    out[at] = x
                at += 1
            return at
    elif isinstance(result, types.BaseTuple):
        if len(result) == 0:
            return lambda out, at, result: at

        def put(out, at, result):
            return _put(out, _put(out, at, result[0]), result[1:])
    else:
        def put(out, at, result):
            if at < out.size:
                out[at] = result
            return at + 1
    return put


def _flat(result):
    """A number, an array, or a tuple of these, as one array of numbers."""
    parts = result if isinstance(result, tuple | list) and not np.isscalar(result) else (result,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts] or [np.empty(0)])


def _compiled_entry(function, arguments, sizes, size):
    """A C function that calls a compiled one."""
    nq, nv, na, nl = sizes
    if arguments == ("t",):
        def entry(t, q, v, a, lam, out):
            _put(carray(out, size), 0, function(t))
    elif arguments == ("t", "q"):
        def entry(t, q, v, a, lam, out):
            _put(carray(out, size), 0, function(t, carray(q, nq)))
    elif arguments == ("t", "q", "v"):
        def entry(t, q, v, a, lam, out):
            _put(carray(out, size), 0, function(t, carray(q, nq), carray(v, nv)))
    elif arguments == ("t", "q", "v", "a"):
        def entry(t, q, v, a, lam, out):
            _put(carray(out, size), 0, function(t, carray(q, nq), carray(v, nv), carray(a, na)))
    else:
        def entry(t, q, v, a, lam, out):
            _put(carray(out, size), 0, function(t, carray(q, nq), carray(lam, nl)))
    return cfunc(_ENTRY)(entry)


class Function:
    """A user's function as a C function.

    Parameters
    ----------
    what : str
        What it is, for messages: ``"target of loop 'pin'"``.
    function : callable
        Compiled by Numba, or plain Python. Takes (t), (t, q), (t, q, v), (t, q, v, a) or (t, q, lam), and returns a
        number, an array, or a tuple of arrays.
    sample : dict
        Values of its arguments, by name and in order: it is called once with them.
    sizes : tuple of int
        How many numbers it may return in all.

    Attributes
    ----------
    address : int
        Where the C function is; valid as long as this object lives.
    size : int
        How many numbers it returns.
    error : Exception or None
        What a plain Python function has raised.

    Raises
    ------
    InputError
        It is not callable, does not compile, fails at the sample, or returns another count of numbers. They need not be
        finite there: a sample may lie where the function is singular.
    """

    def __init__(self, what, function, sample, sizes):
        if not callable(function):
            raise InputError(f"{what}: expected a function, got {function!r}")
        self.what, self.function, self.error = what, function, None
        try:
            result = _flat(function(*sample.values()))
        except Exception as error:
            raise InputError(f"{what}: fails with {type(error).__name__}: {error}") from error
        if result.size not in sizes:
            raise InputError(f"{what}: must return {' or '.join(map(str, sizes))} numbers, got {result.size}")
        self.size = result.size
        lengths = [np.size(sample.get(name, ())) for name in ARGUMENTS[1:]]
        if isinstance(function, CPUDispatcher):
            self._entry = _compiled_entry(function, tuple(sample), tuple(lengths), self.size)
            self.address = self._entry.address
        else:
            self._entry = _C_FUNCTION(self._callback(tuple(sample), lengths))
            self.address = ctypes.cast(self._entry, ctypes.c_void_p).value

    def _callback(self, arguments, lengths):
        def entry(t, q, v, a, lam, out):
            out = np.ctypeslib.as_array(out, (self.size,))
            try:
                given = {"t": t}
                for name, pointer, length in zip(ARGUMENTS[1:], (q, v, a, lam), lengths):
                    if name in arguments:
                        given[name] = np.ctypeslib.as_array(pointer, (length,)).copy()
                out[:] = _flat(self.function(*[given[name] for name in arguments]))
            except BaseException as error:  # C cannot pass it on: `raise_error` does
                out[:], self.error = np.nan, error

        return entry

    def raise_error(self):
        """Raise what a plain Python function has raised since it was last asked, if anything."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def __reduce__(self):
        raise TypeError(f"{self.what}: a compiled function cannot be pickled")


def raise_errors(functions):
    """Raise what one of these functions (a dict of them, as in a robot) has raised, if anything."""
    for function in functions.values():
        function.raise_error()
