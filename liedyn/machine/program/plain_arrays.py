"""Arrays of interpreted kernels: views of the memory of NumPy's arrays whose numbers are plain Python floats.

A number of a NumPy array is an object of its own that is slow to add. A `memoryview` of the same memory hands out
Python's floats, four times as fast; `Vector` and `Tensor` put it behind the indices that kernels use. In the *careful*
world, which computes with inf and NaN as compiled code does, the memory is a flat array of NumPy instead.

Every operator is defined here: what an array class lacks, Python replaces by something else (a missing ``==`` by
identity, a missing ``+=`` by a new array), which would be silently wrong. What kernels do not use raises.
"""
# mypy: ignore-errors
import math
import operator
import os

import numpy as np

CHECK = os.environ.get("LIEDYN_CHECK", "0") != "0"
"""Check each index of arrays of several axes, and fill new memory with NaN: ``LIEDYN_CHECK=1``."""
NOWHERE = 1 << 40
"""What new memory for integers is filled with: as an index it leads out of every array."""
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def of_numpy(x):
    """The array of NumPy with the same memory; anything else as it is."""
    return x.whole() if isinstance(x, Plain) else x


def memory_of(x, careful):
    """The numbers of a contiguous array, in one row."""
    return x.reshape(-1) if careful else memoryview(x.reshape(-1))


def wrapped(x, careful):
    """An array of NumPy as an array of kernels, with the same memory."""
    if not x.flags.c_contiguous:
        return Strided(x, careful)
    m = memory_of(x, careful)
    return Vector(m) if x.ndim == 1 else Tensor(m, x.shape)


def again(x, careful):
    """What NumPy computed, as kernels know it: plain numbers, arrays of this kind."""
    if isinstance(x, np.ndarray) and x.ndim:
        return wrapped(np.ascontiguousarray(x), careful)
    return x if careful or not hasattr(x, "item") else x.item()


class Plain:
    """What kernels do with whole arrays: NumPy does it."""

    __slots__ = ()
    __hash__ = None

    def any(self, axis=None):
        return again(self.whole().any(axis), self.careful)

    def all(self, axis=None):
        return again(self.whole().all(axis), self.careful)

    def sum(self, axis=None):
        return again(self.whole().sum(axis), self.careful)

    def max(self):
        return again(self.whole().max(), self.careful)

    def min(self):
        return again(self.whole().min(), self.careful)

    def argmax(self):
        return int(self.whole().argmax())

    def argmin(self):
        return int(self.whole().argmin())

    def dot(self, x):
        return again(self.whole().dot(of_numpy(x)), self.careful)

    def astype(self, kind):
        return again(self.whole().astype(_KINDS.get(str(kind), kind)), self.careful)

    def copy(self):
        return wrapped(self.whole().copy(), self.careful)

    def ravel(self):
        return again(self.whole().ravel(), self.careful)

    def fill(self, x):
        self.whole()[...] = x

    @property
    def T(self):
        return Strided(self.whole().T, self.careful)

    @property
    def flat(self):
        return iter(self.ravel())

    @property
    def ctypes(self):
        return self.whole().ctypes

    @property
    def dtype(self):
        return self.whole().dtype

    def __array__(self, dtype=None, copy=None):
        return np.array(self.whole(), dtype) if copy else np.asarray(self.whole(), dtype)

    def __array_ufunc__(self, ufunc, method, *given, **named):
        return again(getattr(ufunc, method)(*map(of_numpy, given), **named), self.careful)

    def __bool__(self):
        raise TypeError("an array is neither true nor false")

    def __contains__(self, x):
        raise TypeError("kernels do not search arrays")

    def __neg__(self):
        return again(-self.whole(), self.careful)

    def __pos__(self):
        return self.copy()

    def __abs__(self):
        return again(abs(self.whole()), self.careful)

    def __invert__(self):
        return again(~self.whole(), self.careful)


def _define(name, function, reflected=False):
    def operate(self, other):
        both = (of_numpy(other), self.whole()) if reflected else (self.whole(), of_numpy(other))
        return again(function(*both), self.careful)

    setattr(Plain, name, operate)


def _define_in_place(name, function):
    def operate(self, other):  # others may look at the same memory
        self.whole()[...] = function(self.whole(), of_numpy(other))
        return self

    setattr(Plain, name, operate)


for _name in _BINARY:
    _function = getattr(operator, f"__{_name}__")
    _define(f"__{_name}__", _function)
    _define(f"__r{_name}__", _function, True)
    _define_in_place(f"__i{_name}__", _function)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _define(f"__{_name}__", getattr(operator, f"__{_name}__"))


class Vector(Plain):
    """One axis; `m` is the memory."""

    __slots__ = ("m",)
    ndim = 1

    def __init__(self, m):
        self.m = m

    @property
    def careful(self):
        return type(self.m) is np.ndarray

    @property
    def size(self):
        return len(self.m)

    @property
    def shape(self):
        return (len(self.m),)

    def whole(self):
        return np.asarray(self.m)

    def __len__(self):
        return len(self.m)

    def __iter__(self):
        return iter(self.m)

    def __getitem__(self, i):
        if type(i) is slice:
            return Vector(self.m[i])
        try:
            return self.m[i]
        except TypeError:  # numbers of several places, or where a mask says so
            return again(self.whole()[of_numpy(i)], self.careful)

    def __setitem__(self, i, x):
        if type(i) is slice:
            np.asarray(self.m[i])[...] = of_numpy(x)
            return
        try:
            self.m[i] = x
        except TypeError:  # a number of another kind, or several places
            if isinstance(i, (int, np.integer)) and not isinstance(x, complex):
                self.m[i] = int(x)
            else:
                self.whole()[of_numpy(i)] = of_numpy(x)

    def view(self, kind):
        return wrapped(self.whole().view(kind), self.careful)

    def reshape(self, *shape):
        return again(self.whole().reshape(*shape), self.careful)


class Open(Vector):
    """A view of no numbers that leads to those behind its beginning, as pointers do: `integers_in(work, 0, 0)`."""

    __slots__ = ()
    size, shape = 0, (0,)

    def __len__(self):
        return 0

    def whole(self):
        return np.asarray(self.m)[:0]


class Tensor(Plain):
    """Two or more axes, in C order."""

    __slots__ = ("m", "shape", "_row")

    def __init__(self, m, shape):
        self.m, self.shape = m, tuple(shape)
        self._row = math.prod(self.shape[1:])

    @property
    def careful(self):
        return type(self.m) is np.ndarray

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return len(self.m)

    def whole(self):
        return np.asarray(self.m).reshape(self.shape)

    def __len__(self):
        return self.shape[0]

    def _place(self, i):
        """The place of one number in the memory."""
        k = 0
        for n, j in zip(self.shape, i):
            if CHECK and not -n <= j < n:
                raise IndexError(f"index {i} of an array of shape {self.shape}")
            k = k * n + (j if j >= 0 else j + n)
        return k

    def __getitem__(self, i):
        if type(i) is tuple:
            if len(i) == len(self.shape) and not any(type(k) is slice for k in i):
                return self.m[self._place(i)]
            return _part(self.whole()[tuple(map(of_numpy, i))], self.careful)
        if type(i) is slice or not isinstance(i, (int, np.integer)):
            return _part(self.whole()[of_numpy(i)], self.careful)
        n, row = self.shape[0], self._row
        if i < 0:
            i += n
        if not 0 <= i < n:
            raise IndexError(f"row {i} of {n}")
        m = self.m[i * row:(i + 1) * row]
        return Vector(m) if len(self.shape) == 2 else Tensor(m, self.shape[1:])

    def __setitem__(self, i, x):
        if type(i) is tuple and len(i) == len(self.shape) and not any(type(k) is slice for k in i):
            k = self._place(i)
            try:
                self.m[k] = x
            except TypeError:
                if isinstance(x, complex):
                    raise
                self.m[k] = int(x)
        else:
            self.whole()[tuple(map(of_numpy, i)) if type(i) is tuple else of_numpy(i)] = of_numpy(x)

    def reshape(self, *shape):
        return again(self.whole().reshape(*shape), self.careful)


class Strided(Plain):
    """What is no block of memory."""

    __slots__ = ("x", "careful")

    def __init__(self, x, careful):
        self.x, self.careful = x, careful

    shape = property(lambda self: self.x.shape)
    size = property(lambda self: self.x.size)
    ndim = property(lambda self: self.x.ndim)

    def whole(self):
        return self.x

    def __len__(self):
        return len(self.x)

    def __iter__(self):
        return (self[k] for k in range(len(self.x)))

    def __getitem__(self, i):
        return _part(self.x[tuple(map(of_numpy, i)) if type(i) is tuple else of_numpy(i)], self.careful)

    def __setitem__(self, i, y):
        self.x[tuple(map(of_numpy, i)) if type(i) is tuple else of_numpy(i)] = of_numpy(y)

    def reshape(self, *shape):
        return again(self.x.reshape(*shape), self.careful)


def _part(x, careful):
    """A part of an array, with the same memory where NumPy's indexing keeps it."""
    return wrapped(x, careful) if isinstance(x, np.ndarray) and x.ndim else again(x, careful)


_KINDS = {"bool": np.bool_, "int64": np.int64, "float64": np.float64}
"""Numba's names of number types, as NumPy knows them."""
_OF_NUMBERS = {
    "isnan": lambda x: x != x, "isfinite": lambda x: -math.inf < x < math.inf, "isinf": lambda x: abs(x) == math.inf,
    "floor": lambda x: float(math.floor(x)) if -math.inf < x < math.inf else x, "abs": abs,
}
"""Functions of one number that need no detour through NumPy."""


class Arrays:
    """Stands for the module numpy: arrays are those of kernels, and numbers plain."""

    def __init__(self, careful):
        self._careful = careful

    def __getattr__(self, name):
        own = getattr(np, name)
        if not callable(own) or isinstance(own, type):
            return own
        careful, quick = self._careful, None if self._careful else _OF_NUMBERS.get(name)

        def function(*given, **named):
            if quick and type(given[0]) in (float, int):
                return quick(given[0])
            given = [_KINDS.get(str(x), x) if not isinstance(x, (int, float)) else x for x in map(of_numpy, given)]
            found = own(*given, **{key: _KINDS.get(str(x), of_numpy(x)) for key, x in named.items()})
            if CHECK and name in ("empty", "empty_like"):
                found[...] = {"f": np.nan, "i": NOWHERE}.get(found.dtype.kind, True)
            return tuple(again(x, careful) for x in found) if isinstance(found, tuple) else again(found, careful)

        setattr(self, name, function)
        return function
