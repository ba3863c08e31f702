"""Kernels' own bodies as functions of a GPU, one state for each thread: a third kind of lane, after one state and SIMD.

Compiled functions are given to `numba.cuda` as the plain Python in which they are written, including all that they
call, with a register of one number: what stands for machine instructions of a processor is replaced by functions of one
number. Arrays may be strided, so that the numbers k of threads that run together lie side by side in memory.
"""
# mypy: ignore-errors
import ast
import inspect
import math
import textwrap
import types as pytypes

from numba import cuda
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from liedyn.machine.program.interpret import World
from liedyn.machine.program.trace import LATE, PLACE
from liedyn.machine.simd.lanes import Lanes

ONE = 1
"""What kernels receive as `lane`."""


# ---- what stands for machine instructions


def _load(lane, x, k):
    return x[k]


def _store(lane, x, k, value):
    x[k] = value


def _of_lane(lane, x):
    return x


def _lane(lane):
    return lane


def _integer(ints, k):
    return ints[k]


def _first(x, i):
    return x


def _one(lane):
    return 1


def _load_at_once(lane, x, k, count):
    return x[k]


def _store_at_once(lane, x, k, count, value):
    x[k] = value


def _zero(x, k):
    return 0


def _nothing(x, k):
    return None


def _is_zero(x):
    return x == 0.0


def _is_positive(x):
    return x > 0.0


def _magnitude(x):
    return abs(x)


def _larger(a, b):
    return b if b > a else a


def _same(x):
    return x


def _where_positive(x, a, b):
    return a if x > 0.0 else b


def _where_larger(a, b, x):
    return x if a > b else 0.0


def _first_then(count, x, y):
    return x if count > 0 else y


def _where_before(j, end, x):
    return x if j < end else 0.0


def _near_zero(theta2, series, closed):
    return series if theta2 < 1.0 else closed


def _sincos(x):
    return math.sin(x), math.cos(x)


def _sqrt(x):
    return math.sqrt(x) if x >= 0.0 else math.nan


def _atan2(y, x):
    return math.atan2(y, x)


def _record(lane, x, base, stride, last, size):
    return tuple(x[base:base + size])


def _chosen_record(lane, x, base, stride, ints, at, step, last, size):
    return _record(lane, x, base + stride * ints[at], stride, last, size)


def _put_record(lane, x, base, stride, last, values):
    for k, value in enumerate(values):
        x[base + k] = value


def _unrolled(name, arguments, lines):
    """A function of generated lines: loops over numbers of a tuple are none for compilers."""
    names = {}
    exec(f"def {name}({arguments}):\n    " + "\n    ".join(lines), names)
    return names[name]


def _tuple_from(base, size):
    return f"return ({''.join(f'x[{base} + {k}], ' for k in range(size))})"


@overload(_record, target="cuda", prefer_literal=True)
def _record_lines(lane, x, base, stride, last, size):
    size = getattr(size, "literal_value", None)
    if size is not None:
        return _unrolled("record", "lane, x, base, stride, last, size", [_tuple_from("base", size)])


@overload(_chosen_record, target="cuda", prefer_literal=True)
def _chosen_record_lines(lane, x, base, stride, ints, at, step, last, size):
    size = getattr(size, "literal_value", None)
    if size is not None:
        return _unrolled("chosen", "lane, x, base, stride, ints, at, step, last, size",
                         ["start = base + stride * ints[at]", _tuple_from("start", size)])


@overload(_put_record, target="cuda")
def _put_record_lines(lane, x, base, stride, last, values):
    return _unrolled("put", "lane, x, base, stride, last, values",
                     [f"x[base + {k}] = values[{k}]" for k in range(len(values))] or ["pass"])


OVERLOADED = (_record, _chosen_record, _put_record)
INSTEAD = {
    "simd.lanes": dict(load=_load, store=_store, splat=_of_lane, narrow=_lane, integer=_integer, width_of=_one,
                       lane_of=_first, sqrt=_sqrt, atan2=_atan2),
    "simd.registers": dict(at_once=_one, load_at_once=_load_at_once, store_at_once=_store_at_once, is_zero=_is_zero,
                           before_line=_zero, prefetch_line=_nothing),
    "simd.comparisons": dict(is_positive=_is_positive, magnitude=_magnitude, larger=_larger, largest_lane=_same,
                             smallest_lane=_same, where_positive=_where_positive),
    "simd.strided": dict(records_at_once=_record, constants_at_once=_record, chosen_records_at_once=_chosen_record,
                         put_records_at_once=_put_record, where_larger=_where_larger, first_then=_first_then,
                         where_before=_where_before),
    "simd.sines": dict(sincos=_sincos),
    "lie.exponential": dict(_near_zero=_near_zero),
}
"""What replaces each intrinsic, by module and name."""


AT_ONCE = "at_once"


class _OneAtOnce(ast.NodeTransformer):
    """Leaves out what is done with several numbers at once, for which a thread has no registers."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Constant(1), node) if getattr(node.func, "id", "") == AT_ONCE else node

    def visit_If(self, node):
        self.generic_visit(node)
        test = node.test
        if isinstance(test, ast.Compare) and all(
                isinstance(x, ast.Constant) for x in (test.left, *test.comparators)):
            chosen = node.body if eval(compile(ast.Expression(test), "", "eval")) else node.orelse
            return chosen or ast.copy_location(ast.Pass(), node)
        return node


def _for_one_number(function):
    """The code of a function in which `at_once(lane)` is 1, without the branches that are then never taken."""
    code = function.__code__
    tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    tree.body[0].decorator_list = []
    tree = ast.increment_lineno(ast.fix_missing_locations(_OneAtOnce().visit(tree)), code.co_firstlineno - 1)
    return next(x for x in compile(tree, code.co_filename, "exec").co_consts if inspect.iscode(x))


class CudaLane(World):
    """Compiled functions as functions of a GPU."""

    def __init__(self):
        super().__init__(careful=False)
        self.math, self.numpy = math, None

    def called(self, compiled, function):
        if AT_ONCE in function.__code__.co_names:
            function = pytypes.FunctionType(_for_one_number(function), function.__globals__, function.__name__,
                                            function.__defaults__)
        function.__module__ = compiled.py_func.__module__
        return cuda.jit(device=True)(function)

    def _module(self, names):
        copy = super()._module(names)
        copy["int"] = int
        return copy

    def _convert(self, names, copy, code):
        super()._convert(names, copy, code)
        if "WIDTH" in copy:
            copy["WIDTH"] = PLACE if copy["__name__"] == "liedyn.mechanics.tree.kinematics" else 1

    def _value(self, value):
        if isinstance(value, Lanes):
            return ONE
        return super()._value(value) if isinstance(value, (CPUDispatcher, _Intrinsic)) else value

    def _found(self, value):
        module, name = value._defn.__module__, value.__name__
        if module == LATE:
            known = dict(zip(value._defn.__code__.co_freevars, value._defn.__closure__))
            return self.plain(known["kernel"].cell_contents)
        found = INSTEAD.get(".".join(module.split(".")[-2:]), {}).get(name)
        if found is not None:
            return found if found in OVERLOADED else cuda.jit(device=True)(found)

        def missing(*given):
            raise NotImplementedError(f"{module}.{name} has no version for a thread of a GPU")

        return missing
