"""Runs a kernel's own body on expressions: its arithmetic, without its loops, branches and reads of the model.

Before compilation a kernel is an ordinary Python function. Here its body and those of all helpers are executed as such,
with a register of one number, and with what stands for machine instructions replaced by plain functions. Arrays are
NumPy's, of objects: numbers where these are known, `Expression` where they depend on the state.
"""
import math

import numpy as np

from liedyn.machine.program.expressions import (
    FUNCTIONS, INPUT, Expression, Program, call, larger, smaller, where_less,
)
from liedyn.machine.program.interpret import World
from liedyn.machine.program.pivots import by_pivots_of_reference

LATE, PLACE = "liedyn.machine.compiled.late", 4
"""The module of intrinsics that call a kernel; the room for three numbers where one register is reserved for them."""


def inputs(program, name, size):
    """An array argument whose numbers are known at run time only."""
    return array_of([program.node(INPUT, name, k) for k in range(size)])


def array_of(values):
    """Numbers or expressions as an array."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def room(*shape):
    """Fresh memory for a kernel."""
    return np.zeros(shape, object) * 1.0


def constants(x):
    """An array of numbers as kernels read it here: Python's integers and floats."""
    return np.asarray(x).astype(object)


# ---- plain versions of intrinsics


def _integers(x, k, count):
    """`_part`; all numbers from k on if count is 0: kernels read behind the end of such a part."""
    return _part(x, k, count) if count else x.reshape(-1)[k:]


def _take(work, *shape):
    k = int(work[0])
    work[0] = k + math.prod(shape)
    return _part(work, k, *shape)


def _part(work, k, *shape):
    return work.reshape(-1)[k:k + math.prod(shape)].reshape(shape)


def _load(lane, x, k, *count):
    return x.reshape(-1)[k]


def _store(lane, x, k, value):
    x.reshape(-1)[k] = value


def _record(lane, x, base, stride, last, size):
    return tuple(_part(x, base, size))


def _chosen_record(lane, x, base, stride, ints, at, step, last, size):
    return tuple(_part(x, base + stride * ints[at], size))


def _put_record(lane, x, base, stride, last, values):
    x[base:base + len(values)] = array_of(values)


def _of_all(pair, plain):
    """Python's max or min, also of expressions."""
    def chosen(*numbers):
        numbers = numbers if len(numbers) > 1 else tuple(numbers[0])
        if not any(isinstance(x, Expression) for x in numbers):
            return plain(numbers)
        found = numbers[0]
        for x in numbers[1:]:
            found = pair(found, x)
        return found
    return chosen


def sincos(x):
    """sin x and cos x."""
    return call("sin", x), call("cos", x)


def near_zero(theta2, series, closed):
    """The series for theta < 1, else the closed form: both are computed."""
    return where_less(theta2, 1.0, series, closed)


def _same(lane, x):
    return x


PLAIN = {
    "simd.lanes": dict(
        load=_load, store=_store, splat=_same, narrow=lambda lane: lane, integer=lambda ints, k: ints[k],
        width_of=lambda lane: 1, lane_of=lambda x, i: x, take_vector=_take, take_matrix=_take, take_integers=_take,
        vector_in=_part, matrix_in=_part, integers_in=_integers, sqrt=lambda x: call("sqrt", x),
        atan2=lambda y, x: call("atan2", y, x)),
    "simd.registers": dict(
        at_once=lambda lane: 1, load_at_once=_load, is_zero=lambda x: x == 0.0, before_line=lambda x, k: 0,
        store_at_once=lambda lane, x, k, count, value: _store(lane, x, k, value)),
    "simd.comparisons": dict(
        magnitude=abs, larger=larger, is_positive=lambda x: x > 0.0, largest_lane=lambda x: x,
        smallest_lane=lambda x: x, where_less=where_less, where_positive=lambda x, a, b: where_less(0.0, x, a, b)),
    "simd.strided": dict(
        records_at_once=_record, constants_at_once=_record, chosen_records_at_once=_chosen_record,
        put_records_at_once=_put_record, where_larger=lambda a, b, x: where_less(b, a, x, 0.0),
        first_then=lambda count, x, y: x if count > 0 else y, where_before=lambda j, end, x: x if j < end else 0.0),
    "simd.sines": dict(sincos=sincos),
    "lie.exponential": dict(_near_zero=near_zero),
    "unsafe.ndarray": dict(to_fixed_tuple=lambda x, count: tuple(x[:count])),
}
"""A plain version of each intrinsic, by module and name."""


class _Functions:
    """Module math, or NumPy's functions of numbers, on numbers and expressions."""

    def __init__(self, module):
        self._module = module
        for name in FUNCTIONS:
            if hasattr(module, name):
                setattr(self, name, lambda *x, name=name: call(name, *x))
        self.round = lambda x: call("rint", x)
        self.isnan, self.isfinite = self._is_nan, lambda x: not self._is_nan(x)
        for name in ("empty", "zeros"):
            setattr(self, name, lambda shape, dtype=None: room(*(shape if isinstance(shape, tuple) else (shape,))))

    def __getattr__(self, name):
        return getattr(self._module, name)

    @staticmethod
    def _is_nan(x):
        """Never at a state whose guards hold: results are checked to be finite."""
        return not isinstance(x, Expression) and not math.isfinite(x)


class Tracer(World):
    """Compiled functions as the plain Python in which they were written, including all that they call.

    Parameters
    ----------
    program : Program
        Receives the expressions and the guards.
    instead : callable, optional
        Given `plain`, a dict of Python functions by the compiled ones and intrinsics that they replace.
    """

    def __init__(self, program, instead=None):
        super().__init__(careful=False)
        self.math, self.numpy = _Functions(math), _Functions(np)
        self._plain |= by_pivots_of_reference(program.guards, self.plain)
        self._plain |= instead(self.plain) if instead else {}

    def _module(self, names):
        copy = super()._module(names)
        if "max" not in copy:
            copy |= {"max": _of_all(larger, max), "min": _of_all(smaller, min)}
            if "WIDTH" in names:
                copy["WIDTH"] = PLACE if names["__name__"] == "liedyn.mechanics.tree.kinematics" else 1
        return copy

    def _found(self, value):
        module, name = value._defn.__module__, value.__name__
        if value in self._plain:
            return self._plain[value]
        if module == LATE:
            known = dict(zip(value._defn.__code__.co_freevars, value._defn.__closure__))
            return self.plain(known["kernel"].cell_contents)
        found = PLAIN.get(".".join(module.split(".")[-2:]), {}).get(name)
        if found is None:
            def found(*arguments):
                raise NotImplementedError(f"{module}.{name} has no plain version for expressions")
        return found


def traced_kernel(reference, body, instead=None):
    """The program of what a function does with the plain version of kernels.

    Parameters
    ----------
    reference : dict
        The inputs, by name, at the reference state.
    body : callable
        ``body(plain, **inputs)`` returns the results, arrays by name; `plain` is `Tracer.plain`.
    instead : callable, optional
        As for `Tracer`.

    Returns
    -------
    program : Program
    results : dict
        Flat arrays of numbers and expressions.
    """
    program = Program(reference)
    given = {name: inputs(program, name, len(x)) for name, x in reference.items()}
    results = body(Tracer(program, instead).plain, **given)
    return program, {name: x.reshape(-1) for name, x in results.items()}
