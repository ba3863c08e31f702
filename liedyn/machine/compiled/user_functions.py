"""Users' functions inside compiled kernels, without compiling a kernel again.

A kernel that takes a function as its argument is compiled anew for each function, and never found in the cache. So a
user's function becomes a C function; its address is a number in the packed model, and kernels call it. All have one
signature,

    void f(double t, double *q, double *v, double *a, double *lam, double *out)

of which each uses what it needs. Compiled functions (``@njit``) run at full speed; plain Python functions are called
back, some microseconds each.

An exception cannot pass through C. If a function fails or returns an invalid result, the results become NaN, and the
arguments of the first failure are stored. After a kernel has run, its caller calls `raise_errors`, which calls a
compiled function once more with these arguments, now from Python, to get the exception.
"""
# mypy: ignore-errors
import contextlib
import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher

from liedyn.machine.arguments import floats
from liedyn.machine.compiled.slices import interrupts_noted, raise_stops
from liedyn.machine.compiled.user_callbacks import ARGUMENTS, Failure, compiled_entry, is_pose, python_entry
from liedyn.machine.errors import InputError, said, shown
from liedyn.machine.typed_decorators import intrinsic


POSES = ((4, 4), (6,), (6,))
"""Shapes of a prescribed motion of a frame: pose, twist, and the time derivative of the twist."""


@intrinsic
def call(typingctx, address, t, q, v, a, lam, out, at):
    """Call the C function at an address; its results go to `out` (an array of any shape) from index `at` on."""
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


class Function:
    """A user's function as a C function.

    Parameters
    ----------
    what : str
        What it is, for messages: ``"target of constraint 'pin'"``.
    function : callable
        Compiled by Numba, or plain Python. Takes (t), (t, q), (t, q, v), (t, q, v, a) or (t, q, lam), and returns a
        number, an array, or a tuple of arrays.
    sample : dict
        Values of its arguments, by name and in order: it is called once with them.
    *returns : tuple of tuple
        What it may return, each a tuple of the shapes of its arrays; axes of length one may be there or not.

    Attributes
    ----------
    address : int
        Where the C function is; valid as long as this object lives.
    size : int
        How many numbers it returns.
    failure : Failure
        The arguments with which it has failed.

    Raises
    ------
    InputError
        It is not callable, does not compile, fails at the sample, or returns something else. Numbers need not be finite
        there: a sample may lie where the function is singular.
    """

    def __init__(self, what, function, sample, *returns):
        if not callable(function):
            raise InputError(f"{what}: expected a function, got {shown(function)}")
        self.what, self.function, self._arguments, self._returns = what, function, tuple(sample), returns
        is_compiled = isinstance(function, CPUDispatcher)
        with interrupts_noted() if is_compiled else contextlib.nullcontext():  # it compiles
            self.size = len(self._answer(list(sample.values())))
            self._returns = [shapes for shapes in returns if _count(shapes) == self.size]
            self._has_pose = self._returns[0] == POSES
            self.failure = Failure([np.size(sample.get(name, ())) for name in ARGUMENTS[1:]], self.size, self._has_pose)
            if not is_compiled:
                self.address, self._entry = python_entry(self._checked, self._arguments, self.failure)
                return
            try:
                self.address, self._entry = compiled_entry(function, self._arguments, self.failure)
            except NumbaError as error:
                raise InputError(f"{what}: compiled code cannot call it: {said(error)}") from error

    def _answer(self, given):
        """The function's result as one array of numbers; InputError if it fails, or returns something of another
        size."""
        try:
            found = self.function(*(x.copy() if isinstance(x, np.ndarray) else x for x in given))
        except Exception as error:
            raise InputError(f"{self.what}: fails with {said(error)}{self._at(given)}") from error
        try:
            return _flat(found, self._returns)
        except InputError as error:
            raise InputError(f"{self.what}: {error}{self._at(given)}") from None

    def _checked(self, given):
        """`_answer`, checked to be finite and to begin with a pose if it should."""
        numbers = self._answer(given)
        if not np.isfinite(numbers).all():
            raise InputError(f"{self.what}: not finite{self._at(given)}: {shown(numbers)}")
        if self._has_pose and not is_pose(numbers):
            raise InputError(f"{self.what}: not a pose, as its rotation is not orthogonal or its last row not "
                             f"0, 0, 0, 1{self._at(given)}: {shown(numbers[:16].reshape(4, 4))}")
        return numbers

    def _at(self, given):
        return "".join((" at " if name == "t" else ", ") + f"{name} = {shown(x)}"
                       for name, x in zip(self._arguments, given))

    def raise_error(self):
        """Raise the error of its stored failure."""
        given, error = self.failure.take(self._arguments)
        if error is not None:
            raise error
        self._checked(given)
        raise InputError(f"{self.what}: fails{self._at(given)}, but not when it is called once more there: it must "
                         "depend on its arguments alone")

    def __deepcopy__(self, memo):
        return self  # copies share functions, as in Python

    def __reduce__(self):
        raise InputError(f"{self.what}: a function of the user cannot be pickled")


def _count(shapes):
    return sum(math.prod(shape) for shape in shapes)


def _flat(found, returns):
    """The result of a function as one array of numbers, if its shapes are one of the tuples in `returns`."""
    for shapes in returns:
        parts = (found,) if len(shapes) == 1 else found
        if _length(parts) == len(shapes):
            arrays = [floats("what it returns", part) for part in parts]
            if [_longer(x.shape) for x in arrays] == list(map(_longer, shapes)):
                return np.concatenate([x.ravel() for x in arrays])
    arrays = [floats("what it returns", part) for part in (found if isinstance(found, tuple | list) else (found,))]
    counts, size = [_count(shapes) for shapes in returns], sum(x.size for x in arrays)
    if size in counts:
        wanted, got = returns[counts.index(size)], ", ".join(str(x.shape) for x in arrays)
        raise InputError(f"must return arrays of shapes {', '.join(map(str, wanted))}, got {got}")
    raise InputError(f"must return {' or '.join(map(str, counts))} numbers, got {size}")


def _length(parts):
    return len(parts) if isinstance(parts, tuple | list) or isinstance(parts, np.ndarray) and parts.ndim else 0


def _longer(shape):
    return tuple(n for n in shape if n != 1)


def raise_errors(functions):
    """Raise the error of the first of these functions (a dict, as in a robot) that has failed; but first an exception
    such as KeyboardInterrupt that ended any function."""
    raise_stops()
    for function in functions.values():
        if function.failure:
            try:
                function.raise_error()
            finally:
                forget_errors(functions)


def forget_errors(functions):
    """Forget failures that had no effect; an exception that ended a function is raised."""
    raise_stops()
    for function in functions.values():
        function.failure.forget()
