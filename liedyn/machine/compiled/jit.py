"""Decorators that compile kernels (cached) and helpers (inlined into their callers).

Numba counts references to every array argument, also in inlined helpers, at each branch: atomic increments that take
longer than the arithmetic of a joint. A function that neither creates nor returns arrays needs no reference counts: use
`inline` and `kernel_in_place` there, `inline_array` and `kernel` elsewhere.

Kernels are stored on disk by `liedyn.machine.cache`.
"""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from llvmlite import ir
from numba import config, typeof, types
from numba.core.registry import CPUDispatcher

from liedyn.machine.cache import cache_directory, cached  # noqa: F401  users import it from here
from liedyn.machine.compiled.late import compiled_for, late_call
from liedyn.machine.compiled.translation import compiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.typing import Kernel

_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}

inline_array: Callable[[Callable[..., Any]], Any] = functools.partial(
    compiled, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)
"""A small helper that creates or returns arrays: LLVM inlines it into its callers, so it needs no cache."""

inline: Callable[[Callable[..., Any]], Any] = functools.partial(inline_array, _nrt=False)
"""A small helper on numbers and tuples, inlined at no cost; must not return arrays, as references are not counted."""

inline_algebra: Callable[[Callable[..., Any]], Any] = functools.partial(
    inline, fastmath={"contract", "nnan", "nsz"})
"""A helper that adds and multiplies, without comparisons: 0 x and x + 0 with a compile-time zero cost nothing."""

KERNELS: list[Kernel] = []
"""All kernels of the library in the order of definition (for `liedyn warmup`, and tests that count compilations)."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile at the first call, cache on disk, and divide as NumPy does (no ZeroDivisionError).

    Python and compiled code call it; for C code see `c_kernel`.
    """
    if function is None:
        return functools.partial(kernel, **options)
    dispatcher = cached(compiled(function, **{"no_cfunc_wrapper": True} | _OPTIONS | options), function)
    if function.__module__.split(".")[0] == "liedyn":
        KERNELS.append(dispatcher)
    return dispatcher


kernel_in_place: Callable[..., Any] = functools.partial(kernel, _nrt=False)
"""A kernel that works in its argument arrays; it neither creates nor returns arrays."""

c_kernel: Callable[..., Any] = functools.partial(kernel, no_cfunc_wrapper=False)
"""A kernel with a C function, whose address is `c_address`."""

_by_address: Callable[..., Any] = functools.partial(kernel_in_place, no_cpython_wrapper=True)
"""A kernel that compiled code calls by address, without functions that convert the arguments of other callers: these
are a tenth of the machine code of all kernels."""


INTEGERS, VECTOR, MATRIX, CUBE = types.int64[::1], types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
"""Argument types of `late` kernels."""


def group(made, *kinds):
    """The type of a named tuple with members of these types."""
    return types.BaseTuple.from_types(kinds, made)


def late(*kinds: Any, returns: Any = types.none) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: a kernel for arguments of these types, compiled when it is first called; in place by default.

    For large or rarely used kernels, see `liedyn.machine.compiled.late`; called from compiled code only. If `returns`
    is None, the return type is inferred when a caller is compiled.
    """
    def decorate(function):
        dispatcher = function if isinstance(function, CPUDispatcher) else _by_address(function)
        return dispatcher if config.DISABLE_JIT else late_call(dispatcher, kinds, returns)

    return decorate


def address_of(dispatcher, *arguments):
    """Address of a kernel for arguments of the types of these; compiled or read from the cache."""
    return address_for(dispatcher, tuple(typeof(x) for x in arguments))


def address_for(dispatcher, kinds):
    """Address of a kernel for arguments of these Numba types; compiled or read from the cache."""
    result = compiled_for(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


def c_address(dispatcher, kinds):
    """Address of a kernel's C function for arguments of these Numba types; compiled or read from the cache."""
    if dispatcher.targetoptions.get("no_cfunc_wrapper"):
        raise TypeError(f"{dispatcher.__module__}.{dispatcher.__name__} has no C function: it is no c_kernel")
    result = compiled_for(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


def call_at(context, builder, address, result, kinds, values):
    """Generate a call of the kernel at an address; `result` and `kinds` are Numba types of result and `values`."""
    convention = context.call_conv
    callee = builder.inttoptr(address, ir.PointerType(convention.get_function_type(result, kinds)))
    return convention.call_function(builder, callee, result, kinds, values)[1]
