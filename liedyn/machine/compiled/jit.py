"""Compilation of kernels: decorators for helpers that vanish into their callers and for cached kernels.

Numba counts references to every array a function is given, also in helpers that are inlined, wherever the function
branches: atomic increments that take longer than the arithmetic of a joint. Where no array is made and none returned,
nothing needs to be counted: that is `inline` and `kernel_in_place`, against `inline_array` and `kernel`.

Kernels are kept on disk by `liedyn.machine.cache`.
"""
import functools

from llvmlite import ir
from numba import config, typeof, types
from numba.core.registry import CPUDispatcher

from liedyn.machine.cache import cache_directory, cached  # noqa: F401  where kernels are kept is asked for here
from liedyn.machine.compiled.late import compiled_for, late_call
from liedyn.machine.compiled.translation import compiled

_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}

inline_array = functools.partial(compiled, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                                 **_OPTIONS)
"""A small helper that makes or returns arrays: LLVM inlines it into its callers, so it needs no cache."""

inline = functools.partial(inline_array, _nrt=False)
"""A small helper on numbers and tuples: inlined, it costs nothing. Must not return an array: nobody would own it."""

inline_algebra = functools.partial(inline, fastmath={"contract", "nnan", "nsz"})
"""A helper that adds and multiplies, and never compares: of a zero known when compiling, 0 x and x + 0 vanish."""

KERNELS = []
"""Every kernel of the library, in the order of definition (for `liedyn warmup`, and tests that count compilations)."""


def kernel(function=None, **options):
    """Compile lazily (nothing at import), cache on disk, and raise on nothing: kernels divide as NumPy does."""
    if function is None:
        return functools.partial(kernel, **options)
    dispatcher = cached(compiled(function, **_OPTIONS, **options), function)
    if function.__module__.split(".")[0] == "liedyn":
        KERNELS.append(dispatcher)
    return dispatcher


kernel_in_place = functools.partial(kernel, _nrt=False)
"""A kernel that works in the arrays it is given; it makes none and returns none."""


INTEGERS, VECTOR, MATRIX, CUBE = types.int64[::1], types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
"""Types of arguments of `late` kernels."""


def group(made, *kinds):
    """The type of a named tuple whose entries are of these types."""
    return types.BaseTuple.from_types(kinds, made)


def late(*kinds, returns=types.none):
    """Decorator: a kernel, in place by default, for arguments of these types that is compiled when it is first called.

    For what is large or rare, see `liedyn.machine.compiled.late`; called from compiled code only. Where `returns` is
    None, the type of what comes back is found when a caller is compiled.
    """
    def decorate(function):
        dispatcher = function if isinstance(function, CPUDispatcher) else kernel_in_place(function)
        return dispatcher if config.DISABLE_JIT else late_call(dispatcher, kinds, returns)

    return decorate


def address_of(dispatcher, *arguments):
    """Address of a kernel for arguments like these, compiled or found in the cache."""
    return address_for(dispatcher, tuple(typeof(x) for x in arguments))


def address_for(dispatcher, kinds):
    """The same, for arguments of these Numba types."""
    result = compiled_for(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


def c_address(dispatcher, kinds):
    """Address of a kernel for arguments of these Numba types as a function of C, compiled or found in the cache."""
    result = compiled_for(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


def call_at(context, builder, address, result, kinds, values):
    """Code that calls the kernel at an address, for Numba types of its result and of the arguments `values`."""
    convention = context.call_conv
    callee = builder.inttoptr(address, ir.PointerType(convention.get_function_type(result, kinds)))
    return convention.call_function(builder, callee, result, kinds, values)[1]
