"""A kernel of a GPU that calls a compiled function for each of many states."""
# mypy: ignore-errors
import math

from numba import cuda, types

from liedyn.machine.program.cuda_lane import ONE, CudaLane
from liedyn.machine.simd.registers import LARGEST
from liedyn.model.calls.direct import bad_quaternion
from liedyn.model.packed import PackedModel

ENTRY = """\
def {name}(ints, floats, none, begin, end, {arrays}, ok, failed):
    i = cuda.grid(1)
    s = begin + i
    if s >= end:
        return
    model = PackedModel(ints, floats)
    good = {checks}
    if good:
        kernel({call})
        good = {finite}
    if not good:
        {clear}
        cuda.atomic.add(failed, 0, 1)
    ok[s] = good
"""


@cuda.jit(device=True)
def bounded(x):
    """Whether all numbers of a state are small enough, and no NaN."""
    good = True
    for k in range(x.shape[0]):
        good = good and abs(x[k]) <= LARGEST
    return good


@cuda.jit(device=True)
def clear(x):
    """Numbers that are none."""
    for k in range(x.shape[0]):
        x[k] = math.nan


def entry(kernel, given, work, results):
    """A kernel of a GPU that calls a compiled function for each state.

    Parameters
    ----------
    kernel : CPUDispatcher
        Its arguments are `lane`, `model`, `f_ext` and the following.
    given, work, results : sequence of str
        Names of arrays with the states, of all arrays to which it writes besides, and of its results, which have to be
        finite.

    Returns
    -------
    kernel : callable
        For `numba.cuda.jit`: ``kernel[blocks, threads](ints, floats, none, begin, end, *given, *work, *results, ok,
        failed)`` for states begin to end - 1: arrays (count, size) of float64 in any layout, those of `work` from row 0
        on, `none` without numbers, `ok` of uint8 (count,), `failed` of uint32 (1,). Where `ok` is zero, arguments or
        results are not finite or a quaternion is not of unit length, and results are not numbers.
    signature : Signature
        Its types.
    """
    lane, name = CudaLane(), f"{kernel.py_func.__name__}_of_states"
    code = kernel.py_func.__code__
    inside = {"lane": "ONE", "model": "model", "f_ext": "none"} | {x: f"{x}[i]" for x in work}
    checks = [f"bounded({x}[s])" for x in given] + ["bad_quaternion(model, q[s]) < 0"] * ("q" in given)
    text = ENTRY.format(
        name=name, arrays=", ".join((*given, *work, *results)), checks=" and ".join(checks),
        call=", ".join(inside.get(x) or f"{x}[s]" for x in code.co_varnames[:code.co_argcount]),
        finite=" and ".join(f"bounded({x}[s])" for x in results), clear="; ".join(f"clear({x}[s])" for x in results))
    names = {"cuda": cuda, "ONE": ONE, "PackedModel": PackedModel, "bounded": bounded, "clear": clear,
             "kernel": lane.plain(kernel), "bad_quaternion": lane.plain(bad_quaternion)}
    exec(compile(text, f"{__file__}:{name}", "exec", dont_inherit=True), names)
    rows = [types.Array(types.float64, 2, "A")] * len((*given, *work, *results))
    numbers = [types.Array(kind, 1, "C") for kind in (types.int64, types.float64, types.float64)]
    return names[name], types.void(*numbers, types.int64, types.int64, *rows, types.Array(types.uint8, 1, "C"),
                                   types.Array(types.uint32, 1, "C"))
