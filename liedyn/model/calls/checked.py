"""Kernels that check their arguments first, for debugging: those of `liedyn.kernels` under ``LIEDYN_CHECK=1``.

Called from Python, a checked kernel is a Python function; in compiled code the same check returns to the interpreter
for a few microseconds before the kernel runs. An argument of one name has the same shape in all kernels.
"""
import functools
import inspect
import math

import numpy as np
from numba import objmode
from numba.extending import overload

from liedyn.machine.errors import InputError
from liedyn.machine.simd.lanes import SCALAR
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.packed import (
    BODIES_AT, BODY_I, CLUSTERS_AT, CLUSTER_I, HEADER, LOOPS_AT, LOOP_F, LOOP_FLOATS_AT, NQ, NV, N_BODIES, N_CLUSTERS,
    N_LINKS, N_LOOPS, N_ROWS, N_VIRTUAL, PackedModel,
)

SHAPES = {
    x: " ".join(shape) or "1" for each in RECURSIONS.values() for x, shape in (each.scratch | each.results).items()
} | {
    "q": "nq", "q0": "nq", "q1": "nq", "v": "nv", "a": "nv", "tau": "nv", "dv": "nv", "weights": "nv", "lam": "rows",
    "poses": "nbodies 12", "f_ext": "nlinks 6", "R_constant": "p nv", "virtual": "p", "R_y": "p_y nv",
    "virtual_y": "p_y", "R_w": "p_w nv", "virtual_w": "p_w", "actuators": "nv nu",
}
"""Shapes of arguments by name. The sizes `p`, `p_y`, `p_w` and `nu` are arbitrary, but equal within one call."""
_COUNTS = {"nq": NQ, "nv": NV, "nbodies": N_BODIES, "nlinks": N_LINKS, "rows": N_ROWS}


def check(kernel, workspace_size, **given):
    """Check that arguments fit a kernel.

    Raises
    ------
    InputError
        Wrong number type, memory order, size or range; the message names kernel, argument, and the expected and actual
        value.
    """
    model = given.pop("model")
    if not isinstance(model, PackedModel):
        raise InputError(f"{kernel}: model must be that of a robot, robot.packed, got {type(model).__name__}")
    ints, floats = model
    _require_array(kernel, "ints of model", ints, np.int64)
    _require_array(kernel, "floats of model", floats, np.float64)
    if ints.size < HEADER or ints.size < ints[CLUSTERS_AT] + CLUSTER_I * ints[N_CLUSTERS]:
        raise InputError(f"{kernel}: ints of model must be those of a robot, got {ints.size} numbers")
    if floats.size < ints[LOOP_FLOATS_AT] + LOOP_F * ints[N_LOOPS]:
        raise InputError(f"{kernel}: floats of model must be those of the robot of ints, got {floats.size} numbers")
    counts = {name: int(ints[at]) for name, at in _COUNTS.items()}
    for name, x in given.items():
        if name == "lane":
            if x is not SCALAR:
                raise InputError(f"{kernel}: the first argument must be SCALAR, got {x!r}")
        elif name == "b":
            count = int(ints[LOOPS_AT] - ints[BODIES_AT]) // BODY_I
            if not 0 <= x < count:
                raise InputError(f"{kernel}: b must be the number of a body or frame, 0 to {count - 1}, got {x!r}")
        elif name == "work":
            _require_array(kernel, name, x, np.float64)
            if x.size < workspace_size(model):
                raise InputError(f"{kernel}: work must have {workspace_size(model)} numbers or more, as `workspace` "
                                 f"makes it, got {x.size}")
        elif name in SHAPES:
            integers = name.startswith("virtual")
            _require_array(kernel, name, x, np.int64 if integers else np.float64)
            if name != "f_ext" or x.size:
                _require_shape(kernel, name, x, SHAPES[name].split(), counts)
            if integers and not ((-1 <= x) & (x < ints[N_VIRTUAL])).all():
                raise InputError(f"{kernel}: {name} must be numbers of virtual velocities, 0 to {ints[N_VIRTUAL] - 1}, "
                                 f"or -1, got {x}")


def _require_array(kernel, name, x, dtype):
    if not isinstance(x, np.ndarray):
        raise InputError(f"{kernel}: {name} must be an array, got {type(x).__name__}")
    if x.dtype != dtype or not (x.flags.c_contiguous and x.flags.aligned):
        raise InputError(f"{kernel}: {name} must be a C-contiguous {np.dtype(dtype)} array, got {x.dtype} with strides "
                         f"{x.strides}")


def _require_shape(kernel, name, x, symbols, counts):
    """Check a symbolic shape; symbols without a value yet get the actual size."""
    if any(not symbol.isdigit() and symbol not in counts for symbol in symbols) and x.ndim == len(symbols):
        for symbol, size in zip(symbols, x.shape):
            if not symbol.isdigit():
                counts.setdefault(symbol, size)
    shape = tuple(int(symbol) if symbol.isdigit() else counts.get(symbol, symbol) for symbol in symbols)
    known = all(isinstance(size, int) for size in shape)
    if x.shape != shape and not (known and x.shape == (math.prod(shape),)):
        raise InputError(f"{kernel}: {name} must have shape ({', '.join(symbols)}) = ({', '.join(map(str, shape))}), "
                         f"got {x.shape}")


def checked(name, kernel, workspace_size):
    """A kernel under its public name, preceded by `check`, for Python and for compiled code."""
    signature = inspect.signature(kernel.py_func)
    names = tuple(signature.parameters)
    first = names.index("model")  # a lane has no size, and compiled code cannot pass it to the interpreter

    def check_numbers(numbers):
        check(name, workspace_size, **dict(zip(names[first:], numbers)))

    @functools.wraps(kernel.py_func)
    def call(*arguments, **named):
        bound = signature.bind(*arguments, **named)
        check(name, workspace_size, **bound.arguments)
        return kernel(*bound.args)

    @overload(call)
    def in_compiled_code(*arguments):
        def call(*arguments):
            numbers = arguments[first:]
            with objmode():
                check_numbers(numbers)
            return kernel(*arguments)
        return call

    return call
