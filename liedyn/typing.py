"""Types in the signatures of liedyn, for editors, type checkers and annotations of your own.

    >>> from liedyn.typing import Array, ArrayLike

What functions take is an `ArrayLike` where they want numbers: lists, tuples, arrays of any kind of real numbers. What
they return is an `Array`, of float64. Nothing of liedyn imports this module when it runs.
"""
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
"""Numbers: float64."""

Complexes: TypeAlias = NDArray[np.complex128]
"""Eigenvalues, responses: complex128."""

Integers: TypeAlias = NDArray[np.int64]
"""Counts and places: int64."""

Booleans: TypeAlias = NDArray[np.bool_]
"""Truth values."""

Objects: TypeAlias = NDArray[np.object_]
"""An array of objects, such as the robots of a batch of trims."""

Wrenches: TypeAlias = dict[str, Any] | ArrayLike
"""Wrenches on bodies: by name of a body or frame, or one for each body."""

IndependentNames: TypeAlias = Sequence[str] | Literal["auto", "tangent"] | None
"""Which coordinates are independent: their names, a choice by pivoting, the tangent space, or as the robot declares."""

PathLike: TypeAlias = str | os.PathLike[str]
"""Where a file is."""

Function = TypeVar("Function", bound=Callable[..., Any])
"""What a decorator takes, and gives back with the same arguments and results."""


class Kernel(Protocol):
    """A compiled function, for compiled functions of your own; see `liedyn.kernels`."""

    py_func: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any: ...


__all__ = ["Array", "ArrayLike", "Booleans", "Complexes", "Function", "IndependentNames", "Integers", "Kernel",
           "Objects", "PathLike", "Wrenches"]
