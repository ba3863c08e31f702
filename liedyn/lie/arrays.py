"""Conversion between arrays and the tuples of the kernels; `lie_function` makes the public functions of `liedyn.lie`.

It makes two callables of one function of NumPy arrays: for Python callers, with checked arguments and batches (leading
axes are broadcast and one compiled loop runs over the rows); for users' own ``@njit`` code, the function itself,
inlined.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba.core import types as numba_types
from numba.core.errors import TypingError
from numba.extending import overload

from liedyn.lie.algebra import neg
from liedyn.lie.exponential import hat
from liedyn.machine.arguments import floats
from liedyn.machine.compiled.jit import inline, inline_array, kernel
from liedyn.machine.errors import InputError
from liedyn.machine.simd.registers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from liedyn.typing import Function

TOLERANCE = 1e-6
"""Largest accepted error of R^T R and of the last row of a pose: a larger one is a mistake, not rounding."""

_FINITE, _NOT_ZERO, _SYMMETRIC, _SKEW, _TWIST_MATRIX, _ROTATION, _POSE = range(7)


class Argument(NamedTuple):
    """Requirements on an argument: its name in messages, its shape, and the check of its numbers."""

    what: str
    shape: tuple
    check: int = _FINITE


NUMBER = Argument("a number", ())
VECTOR = Argument("a vector", (3,))
TWIST = Argument("a twist (omega, v)", (6,))
MATRIX6 = Argument("a matrix", (6, 6))
QUATERNION = Argument("a quaternion (x, y, z, w)", (4,), _NOT_ZERO)
ROTATION = Argument("a rotation", (3, 3), _ROTATION)
POSE = Argument("a pose", (4, 4), _POSE)
SYMMETRIC = Argument("a symmetric matrix", (3, 3), _SYMMETRIC)
SKEW = Argument("a skew-symmetric matrix", (3, 3), _SKEW)
TWIST_MATRIX = Argument("an element of se(3)", (4, 4), _TWIST_MATRIX)


# ---- checks


@inline
def _is_rotation(x, n):
    """True if the upper left 3x3 block of the n x n matrix in `x` is a rotation."""
    worst = 0.0
    for i in range(3):
        for j in range(i, 3):
            product = x[i] * x[j] + x[n + i] * x[n + j] + x[2 * n + i] * x[2 * n + j]
            worst = max(worst, abs(product - (1.0 if i == j else 0.0)))
    volume = (x[0] * (x[n + 1] * x[2 * n + 2] - x[n + 2] * x[2 * n + 1])
              - x[1] * (x[n] * x[2 * n + 2] - x[n + 2] * x[2 * n])
              + x[2] * (x[n] * x[2 * n + 1] - x[n + 1] * x[2 * n]))
    return worst <= TOLERANCE and volume > 0.0


@inline
def _is_symmetric(x, n, sign):
    """True if the upper left 3x3 block of the n x n matrix in `x` is symmetric (sign 1) or skew-symmetric (sign -1)."""
    size, worst = 0.0, 0.0
    for i in range(3):
        for j in range(3):
            size = max(size, abs(x[n * i + j]))
            worst = max(worst, abs(x[n * i + j] - sign * x[n * j + i]))
    return worst <= TOLERANCE * size


@kernel
def _first_bad(check, rows):
    """Index of the first row that fails the check, -1 if all pass."""
    for k in range(rows.shape[0]):
        x = rows[k]
        good = True
        for i in range(x.size):
            good = good and abs(x[i]) <= LARGEST
        if check == _NOT_ZERO:
            good = good and x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2 > 0.0
        elif check == _SYMMETRIC:
            good = good and _is_symmetric(x, 3, 1.0)
        elif check == _SKEW:
            good = good and _is_symmetric(x, 3, -1.0)
        elif check == _ROTATION:
            good = good and _is_rotation(x, 3)
        elif check != _FINITE:
            last = max(abs(x[12]), abs(x[13]), abs(x[14]), abs(x[15] - (1.0 if check == _POSE else 0.0)))
            block = _is_rotation(x, 4) if check == _POSE else _is_symmetric(x, 4, -1.0)
            good = good and block and last <= TOLERANCE
        if not good:
            return k
    return -1


def _as_array(name, argument, x):
    x = floats(name, x)
    if x.shape[x.ndim - len(argument.shape):] != argument.shape:
        sizes = ", ".join(["...", *map(str, argument.shape)])
        raise InputError(f"{name} must be {argument.what} of shape ({sizes}), got {x.shape}")
    return x


def _as_rows(name, argument, x, lead):
    if x.shape != lead + argument.shape:
        x = np.broadcast_to(x, lead + argument.shape)
    x = x.reshape((-1,) + argument.shape)
    if not x.flags.carray:  # Numba would compile again for any other layout
        x = x.copy()
    bad = _first_bad(argument.check, x.reshape(-1, math.prod(argument.shape)))
    if bad >= 0:
        finite, bounded = np.isfinite(x[bad]).all(), (np.abs(x[bad]) <= LARGEST).all()
        what = argument.what if bounded else f"within {LARGEST:g} of zero" if finite else "finite"
        raise InputError(f"{name} is not {what}: {x[bad].tolist()}")
    return x


# ---- loops over rows, for one, two and three arguments; `one` is bound by `_loop`


def _one_argument(x, out):
    for k in range(len(out)):
        out[k] = one(x[k])  # noqa: F821


def _two_arguments(x, y, out):
    for k in range(len(out)):
        out[k] = one(x[k], y[k])  # noqa: F821


def _three_arguments(x, y, z, out):
    for k in range(len(out)):
        out[k] = one(x[k], y[k], z[k])  # noqa: F821


def _loop(function, count):
    """The kernel that runs `function` over rows.

    The function becomes a global of the loop, not a closure, since Numba's cache cannot find code with a closure.
    """
    loop = (_one_argument, _two_arguments, _three_arguments)[count - 1]
    names = {"one": inline_array(function), "__name__": function.__module__, "__builtins__": __builtins__}
    loop = types.FunctionType(loop.__code__, names, f"{function.__name__}_rows")
    loop.__qualname__ = loop.__name__
    return kernel(loop)


def lie_function(*arguments: Argument, returns: tuple[int, ...]) -> Callable[[Function], Function]:
    """Decorator: publish a function of arrays to Python, with checks and batches, and to ``@njit`` code.

    `arguments` are name, shape and check of each argument, `returns` is the shape of the result.
    """

    def publish(function):
        rows = _loop(function, len(arguments))
        parameters = inspect.signature(function)
        names = tuple(parameters.parameters)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            if kwargs or len(args) != len(arguments):
                args = parameters.bind(*args, **kwargs).args
            arrays = [_as_array(name, argument, x) for name, argument, x in zip(names, arguments, args)]
            leads = [x.shape[: x.ndim - len(argument.shape)] for argument, x in zip(arguments, arrays)]
            try:
                lead = leads[0] if len(leads) == 1 else np.broadcast_shapes(*leads)
            except ValueError:
                shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(names, arrays))
                raise InputError(f"leading axes do not broadcast: {shapes}") from None
            arrays = [_as_rows(*each, lead) for each in zip(names, arguments, arrays)]
            out = np.empty((len(arrays[0]),) + returns)
            rows(*arrays, out)
            return out.reshape(lead + returns)

        @overload(checked, strict=False)
        def compiled(*args, **kwargs):
            for name, argument, given in zip(names, arguments, parameters.bind(*args, **kwargs).args):
                ndim = given.ndim if isinstance(given, numba_types.Array) else 0
                number = isinstance(getattr(given, "dtype", given), (numba_types.Float, numba_types.Integer))
                if ndim != len(argument.shape) or not number:
                    raise TypingError(f"{function.__name__}: {name} must be {argument.what}, "
                                      f"an array of shape {argument.shape}, got {given}")
            return function

        return checked

    return publish


# ---- arrays to tuples, inside compiled code


@inline
def vector(x):
    if x.shape[0] != 3:
        raise InputError("a vector has shape (3,)")
    return (float(x[0]), float(x[1]), float(x[2]))


@inline
def twist(x):
    if x.shape[0] != 6:
        raise InputError("a twist (omega, v) has shape (6,)")
    return (float(x[0]), float(x[1]), float(x[2])), (float(x[3]), float(x[4]), float(x[5]))


@inline
def quaternion(x):
    if x.shape[0] != 4:
        raise InputError("a quaternion (x, y, z, w) has shape (4,)")
    return (float(x[0]), float(x[1]), float(x[2]), float(x[3]))


@inline
def _block(x):
    return (float(x[0, 0]), float(x[0, 1]), float(x[0, 2]),
            float(x[1, 0]), float(x[1, 1]), float(x[1, 2]),
            float(x[2, 0]), float(x[2, 1]), float(x[2, 2]))


@inline
def rotation(x):
    if x.shape[0] != 3 or x.shape[1] != 3:
        raise InputError("a rotation has shape (3, 3)")
    return _block(x)


@inline
def symmetric(x):
    """The upper triangle (xx, xy, xz, yy, yz, zz)."""
    if x.shape[0] != 3 or x.shape[1] != 3:
        raise InputError("an inertia about a point has shape (3, 3)")
    return (float(x[0, 0]), float(x[0, 1]), float(x[0, 2]), float(x[1, 1]), float(x[1, 2]), float(x[2, 2]))


@inline
def pose(x):
    if x.shape[0] != 4 or x.shape[1] != 4:
        raise InputError("a pose has shape (4, 4)")
    return _block(x), (float(x[0, 3]), float(x[1, 3]), float(x[2, 3]))


# ---- tuples to arrays


@inline_array
def vector_array(a):
    x = np.empty(3)
    x[0], x[1], x[2] = a
    return x


@inline_array
def quaternion_array(q):
    x = np.empty(4)
    x[0], x[1], x[2], x[3] = q
    return x


@inline_array
def twist_array(V):
    x = np.empty(6)
    x[0], x[1], x[2] = V[0]
    x[3], x[4], x[5] = V[1]
    return x


@inline
def _put_block(x, i, j, A):
    x[i, j], x[i, j + 1], x[i, j + 2] = A[0], A[1], A[2]
    x[i + 1, j], x[i + 1, j + 1], x[i + 1, j + 2] = A[3], A[4], A[5]
    x[i + 2, j], x[i + 2, j + 1], x[i + 2, j + 2] = A[6], A[7], A[8]


@inline_array
def matrix3(A):
    x = np.empty((3, 3))
    _put_block(x, 0, 0, A)
    return x


@inline_array
def matrix4(corner, A, p):
    """[[A, p], [0, corner]]."""
    x = np.zeros((4, 4))
    _put_block(x, 0, 0, A)
    x[0, 3], x[1, 3], x[2, 3] = p
    x[3, 3] = corner
    return x


@inline_array
def matrix6(A, Q):
    """[[A, 0], [Q, A]]: a map of twists."""
    x = np.zeros((6, 6))
    _put_block(x, 0, 0, A)
    _put_block(x, 3, 0, Q)
    _put_block(x, 3, 3, A)
    return x


@inline_array
def wrench_matrix6(A, Q):
    """The transpose of `matrix6`: a map of wrenches."""
    x = np.zeros((6, 6))
    for i in range(2):
        _put_block(x, 3 * i, 3 * i, (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]))
    _put_block(x, 0, 3, (Q[0], Q[3], Q[6], Q[1], Q[4], Q[7], Q[2], Q[5], Q[8]))
    return x


@inline_array
def inertia_matrix6(I):
    """The matrix of an inertia I = (m, h, J): [[J, [h]], [-[h], m 1]]."""
    m, h, J = I
    x = np.zeros((6, 6))
    _put_block(x, 0, 0, (J[0], J[1], J[2], J[1], J[3], J[4], J[2], J[4], J[5]))
    _put_block(x, 0, 3, hat(h))
    _put_block(x, 3, 0, hat(neg(h)))
    x[3, 3], x[4, 4], x[5, 5] = m, m, m
    return x


@inline_array
def product6(A, B):
    """A B."""
    if A.shape[0] != 6 or A.shape[1] != 6 or B.shape[0] != 6 or B.shape[1] != 6:
        raise InputError("a matrix of twists or wrenches has shape (6, 6)")
    x = np.zeros((6, 6))
    for i in range(6):
        for k in range(6):
            for j in range(6):
                x[i, j] += A[i, k] * B[k, j]
    return x
