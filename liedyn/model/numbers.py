"""Declared numbers as finite float arrays of the required shapes."""

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, ModelError, shown

LARGEST = 1e30  # in SI units: products of a few such numbers, as in dynamics and its derivatives, are finite


def numbers(owner, key, value, shape, bounds=False):
    """`value` as a float array of the given shape, no entry larger than `LARGEST`; `bounds` may be infinite."""
    array = any_numbers(owner, key, value)
    if array.shape != shape:
        expected = "one number" if shape == () else f"{' x '.join(map(str, shape))} numbers"
        raise ModelError(f"{owner}, {key}: expected {expected}, got {shown(value)}")
    entries = array[~np.isposinf(array)] if bounds else array
    if not np.isfinite(entries).all():
        raise ModelError(f"{owner}, {key}: must be finite, got {shown(value)}")
    if (np.abs(entries) > LARGEST).any():
        raise ModelError(f"{owner}, {key}: too large to compute with, got {shown(value)}; at most {LARGEST:g} is taken")
    return array


def any_numbers(owner, key, value):
    """`value` as a float array of any shape; entries may be infinite or NaN, but not text, dates, truths or masked."""
    try:
        return floats(key, value).copy()
    except InputError as error:
        problem = "too large to compute with" if isinstance(error.__cause__, OverflowError) else "expected numbers"
        raise ModelError(f"{owner}, {key}: {problem}, got {shown(value)}") from None
