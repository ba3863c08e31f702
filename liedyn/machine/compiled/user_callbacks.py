"""C functions of one signature, made from users' functions, compiled or plain Python
(`liedyn.machine.compiled.user_functions`).

An exception cannot pass through C. If a function fails or returns an invalid result, the C function returns NaN and
stores the arguments of the first failure, in whatever thread it happened.
"""
# mypy: ignore-errors
import ctypes

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, jit, types
from numba.extending import overload

from liedyn.machine.arguments import ORTHOGONALITY
from liedyn.machine.compiled.callbacks import callback
from liedyn.machine.compiled.jit import address_for, c_address, c_kernel, inline
from liedyn.machine.compiled.slices import stops
from liedyn.machine.typed_decorators import intrinsic

ARGUMENTS = ("t", "q", "v", "a", "lam")
_POINTER, _NUMBER = ir.DoubleType().as_pointer(), types.float64
_C_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * 5)
_C_ARGUMENTS = (_NUMBER, *[types.CPointer(_NUMBER)] * 5)
_KINDS = dict(zip(ARGUMENTS, (_NUMBER, *[types.Array(_NUMBER, 1, "C")] * 4)))


# ---- results


def is_finite(out, size):
    for k in range(size):
        if not np.isfinite(out[k]):
            return False
    return True


def is_pose(out):
    """True if the numbers begin with a (4, 4) pose."""
    if out[12] != 0.0 or out[13] != 0.0 or out[14] != 0.0 or out[15] != 1.0:
        return False
    for i in range(3):
        for j in range(i + 1):
            dot = out[i] * out[j] + out[4 + i] * out[4 + j] + out[8 + i] * out[8 + j]
            if not abs(dot - (1.0 if i == j else 0.0)) <= ORTHOGONALITY:
                return False
    return (out[0] * (out[5] * out[10] - out[6] * out[9]) + out[1] * (out[6] * out[8] - out[4] * out[10])
            + out[2] * (out[4] * out[9] - out[5] * out[8])) > 0.0


_is_finite, _is_pose = inline(is_finite), inline(is_pose)


def _put(out, at, result):
    """Write a number, an array, or a tuple of these to `out` from index `at` on; returns the next free index."""
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


# ---- failures


class Failure:
    """The arguments of the first failure of a function.

    Attributes
    ----------
    about : ndarray of int64
        State (0 no failure, 1 failed, 2 ended by an exception that ends the program); sizes of q, v, a, lam and of the
        result; 1 if the result begins with a pose; address of `numbers`.
    numbers : ndarray
        t; for compiled functions then q, v, a, lam.
    raised : list of BaseException
        The exception of a plain Python function: none or one.
    """

    def __init__(self, lengths, size, with_pose):
        self.numbers, self.raised = np.zeros(1 + sum(lengths)), []
        self.about = np.array([0, *lengths, size, with_pose, self.numbers.ctypes.data], dtype=np.int64)

    def __bool__(self):
        return bool(self.about[0])

    @property
    def t(self):
        """Time of the failure."""
        return float(self.numbers[0])

    def take(self, arguments):
        """The arguments by name and the exception; both are then forgotten."""
        arrays = np.split(self.numbers[1:].copy(), np.cumsum(self.about[1:4]))
        found, error = dict(zip(ARGUMENTS, (self.t, *arrays))), next(iter(self.raised), None)
        self.forget()
        return [found[name] for name in arguments], error

    def forget(self):
        """Forget the failure."""
        self.about[0] = 0
        self.raised.clear()


@intrinsic
def _numbers_at(typing, address):
    """An address as a pointer to numbers."""
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], _POINTER)

    return types.CPointer(_NUMBER)(types.int64), codegen


@intrinsic
def _is_first(typing, about):
    """Set the first entry from 0 to 1, atomically; true for the one thread that did it."""
    def codegen(context, builder, signature, args):
        number, order = ir.IntType(64), "seq_cst"
        return builder.extract_value(builder.cmpxchg(args[0], number(0), number(1), order, order), 1)

    return types.boolean(about), codegen


@c_kernel(_nrt=False)
def judge(about, count, t, q, v, a, lam, out):
    """Check the result `out`, of which `count` numbers have been written; if it is invalid, fill it with NaN and store
    the arguments.

    A kernel of its own, called by address: inlined, it would be compiled again with each user's function.
    """
    size, fine = about[5], count == about[5]
    if fine:
        fine = _is_finite(out, size) and (about[6] == 0 or _is_pose(out))
    if not fine:
        for k in range(size):
            out[k] = np.nan
        if _is_first(about):
            numbers, at = _numbers_at(about[7]), 1
            numbers[0] = t
            at = _copy(q, about[1], numbers, at)
            at = _copy(v, about[2], numbers, at)
            at = _copy(a, about[3], numbers, at)
            _copy(lam, about[4], numbers, at)


@inline
def _copy(x, size, numbers, at):
    for k in range(size):
        numbers[at + k] = x[k]
    return at + size


@intrinsic
def _judge(typing, address, about, count, t, q, v, a, lam, out):
    """Call `judge` at its address, with the address of `about`."""
    def codegen(context, builder, signature, args):
        number = ir.IntType(64)
        kinds = [number.as_pointer(), number, ir.DoubleType(), *[_POINTER] * 5]
        function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
        builder.call(builder.inttoptr(args[0], function), [builder.inttoptr(args[1], kinds[0]), *args[2:]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, *_C_ARGUMENTS), codegen


# ---- entry points


def compiled_entry(function, arguments, failure):
    """Address of a C function that calls a compiled one, and the object that must live as long."""
    kinds = tuple(_KINDS[name] for name in arguments)
    if not function._can_compile:  # it was compiled for given types, perhaps of other layouts, and refuses further ones
        function = jit(**function.targetoptions)(function.py_func)
    address, places = address_for(function, kinds), [ARGUMENTS.index(name) for name in arguments]
    compiled = function.overloads[kinds]
    result = compiled.signature.return_type
    about = failure.about.ctypes.data
    judge_at = c_address(judge, (types.CPointer(types.int64), types.int64, *_C_ARGUMENTS))
    nq, nv, na, nl, size = failure.about[1:6].tolist()

    @intrinsic
    def attempt(typing, t, q, v, a, lam):
        """(true unless it raised, its result or nothing)."""
        def codegen(context, builder, signature, args):
            convention = context.call_conv
            callee = builder.inttoptr(ir.IntType(64)(address), convention.get_function_type(result, kinds).as_pointer())
            status, found = convention.call_function(builder, callee, result, kinds, [args[k] for k in places])
            found = builder.select(status.is_ok, found, ir.Constant(found.type, None))
            return context.make_tuple(builder, signature.return_type, [status.is_ok, found])

        return types.Tuple((types.boolean, result))(t, q, v, a, lam), codegen

    def entry(t, q, v, a, lam, out):
        fine, found = attempt(t, carray(q, nq), carray(v, nv), carray(a, na), carray(lam, nl))
        count = _put(carray(out, size), 0, found) if fine else -1
        _judge(judge_at, about, count, t, q, v, a, lam, out)

    entry = cfunc(types.void(*_C_ARGUMENTS))(entry)
    return entry.address, (entry, function, compiled)


def python_entry(answer, arguments, failure):
    """The same for a C function that calls back ``answer(arguments)``, which raises if it has no valid result."""
    at = [(ctypes.c_double * n).from_address for n in failure.about[1:6]]
    places, put = [(k, at[k - 1]) for k in map(ARGUMENTS.index, arguments)], at[4]

    def entry(*given, read=np.frombuffer):
        out = read(put(given[5]))
        out[:] = answer([read(room(given[k])) if k else given[0] for k, room in places])

    entry = callback(_C_FUNCTION, entry, failure.raised, stops(failure), failure.about.ctypes.data)
    return ctypes.cast(entry, ctypes.c_void_p).value, entry
