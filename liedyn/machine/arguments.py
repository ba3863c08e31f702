"""Checks of the arguments of public functions: each returns the value in the type wanted, or raises an InputError that
names the argument.

NumPy accepts more than numbers: it parses text and drops imaginary parts, masks and units of time. All of that is
refused here.
"""
import math
import numbers

import numpy as np

from liedyn.machine.errors import InputError, shown, suggestion

ORTHOGONALITY = 1e-9  # tolerance for rotations and pairs of axes: a larger error is a mistake, not rounding in a file


def require_robot(robot):
    """InputError if `robot` is not a Robot; the message says how to get one."""
    # not isinstance: kernels would depend on the class, and be compiled again whenever it is edited
    if hasattr(robot, "packed"):
        return
    if isinstance(robot, str):
        remedy = f"; load it with ld.load({shown(robot)})"
    else:
        remedy = "; call its build()" if type(robot).__name__ == "Builder" else ""
    raise InputError(f"expected a Robot, got {shown(robot)}{remedy}")


def floats(name, x, wanted="numbers"):
    """`x` as an array of float64, of any shape, finite or not.

    Raises
    ------
    InputError
        It is complex, masked, ragged, or holds text, dates, truth values or other objects.
    """
    given = x
    if type(x) is not np.ndarray:
        if np.ma.is_masked(x):
            raise InputError(f"{name} has masked entries: {shown(x)}")
        try:
            x = np.asarray(x)
        except Exception:  # ragged lists, and whatever a user's __array__ raises
            raise InputError(f"{name} must be {wanted}, got {shown(given)}") from None
    if x.dtype.kind not in "fiu" and (x.dtype.kind != "O" or not all(map(_is_number, x.flat))):
        got = f"an array of {x.dtype}" if isinstance(given, np.ndarray) else shown(given)
        if isinstance(given, dict):
            got += ": an array, in order, not by name"
        raise InputError(f"{name} must be {wanted}{', and real' if x.dtype.kind == 'c' else ''}, got {got}")
    try:
        return np.asarray(x, dtype=np.float64)
    except OverflowError as error:  # integers beyond the largest float
        raise InputError(f"{name} is too large, got {shown(given)}") from error
    except Exception:  # symbols without a value
        raise InputError(f"{name} must be {wanted}, got {shown(given)}") from None


def _is_number(x):
    """True if a Python object is one real number; fractions and SymPy numbers count."""
    if isinstance(x, np.generic):
        return x.dtype.kind in "fiu"
    return hasattr(type(x), "__float__") and not isinstance(x, bool | np.ndarray)


def _float(name, x):
    if type(x) is float:
        return x
    found = floats(name, x, "a number")
    if found.ndim:
        raise InputError(f"{name} must be a number, got {shown(x)}")
    return float(found)


def _float_that_is(name, x, is_fine, what):
    """`x` as a float for which ``is_fine(x)`` is true; `what` describes that condition in the message."""
    x = _float(name, x)
    if not is_fine(x):
        raise InputError(f"{name} must be {what}, got {x}")
    return x


def number(name, x):
    """`x` as a finite float."""
    return _float_that_is(name, x, math.isfinite, "finite")


def positive(name, x):
    """`x` as a finite float above zero."""
    return _float_that_is(name, x, lambda x: 0.0 < x < math.inf, "positive and finite")


def non_negative(name, x):
    """`x` as a finite float, zero or above."""
    return _float_that_is(name, x, lambda x: 0.0 <= x < math.inf, "finite and not negative")


def between(name, x, low, high):
    """`x` as a finite float in the closed interval from `low` to `high`."""
    return _float_that_is(name, x, lambda x: low <= x <= high, f"between {low:g} and {high:g}")


def whole(name, x, least=0):
    """`x` as an int, at least `least` (0 or 1)."""
    if not _is_whole(x) or x < least:
        what = {0: "a whole number, not negative", 1: "a positive whole number"}[least]
        raise InputError(f"{name} must be {what}, got {shown(x)}")
    return int(x)


def _is_whole(x):
    return isinstance(x, numbers.Integral) and not isinstance(x, bool)


def lead_of(name, x):
    """The leading shape of a batch as a tuple; `x` is a number of states or that shape itself."""
    if _is_whole(x):
        return (whole(name, x),)
    if isinstance(x, (tuple, list, np.ndarray)):
        return tuple(whole(name, n) for n in x)
    raise InputError(f"{name} must be a whole number or several, got {shown(x)}")


def flag(name, x):
    """`x` as a bool; 0, 1 and the like are refused."""
    if not isinstance(x, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {shown(x)}")
    return bool(x)


def one_of(name, x, known):
    """`x`, which must be one of the strings `known`."""
    if not isinstance(x, str) or x not in known:
        raise InputError(f"unknown {name} {shown(x)}, {suggestion(x if isinstance(x, str) else '', known)}")
    return x


def names(name, x):
    """One name or several, as a tuple of str."""
    found = (x,) if isinstance(x, str) else x
    if not isinstance(found, (tuple, list, set, frozenset, dict, np.ndarray)) or (
            not all(isinstance(each, str) for each in found)):
        raise InputError(f"{name} must be names, got {shown(x)}")
    return tuple(str(each) for each in found)
