"""What users pass to public functions, by type: each value as it should be, or an InputError that names the argument.

NumPy takes more than numbers: text is read, imaginary parts, masks and units of time are dropped. All of that is
refused here.
"""
import math
import numbers

import numpy as np

from liedyn.machine.errors import InputError, shown, suggestion

ORTHOGONALITY = 1e-9  # of rotations and pairs of axes: less is a mistake, not rounding in a file


def require_robot(robot):
    """InputError for what is no robot, with the way to one."""
    if hasattr(robot, "packed"):  # not by its class, as kernels would have to be compiled again with each edit of that
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
        It is complex, masked, text, dates, truth values, ragged, or no numbers at all.
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
        raise InputError(f"{name} must be {wanted}{', and real' if x.dtype.kind == 'c' else ''}, got {got}")
    try:
        return np.asarray(x, dtype=np.float64)
    except OverflowError as error:  # integers beyond the largest float
        raise InputError(f"{name} is too large, got {shown(given)}") from error
    except Exception:  # symbols without a value
        raise InputError(f"{name} must be {wanted}, got {shown(given)}") from None


def _is_number(x):
    """Is a Python object one real number, such as a fraction, or a number of SymPy?"""
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
    """A float that passes a test; `what` says in words which."""
    x = _float(name, x)
    if not is_fine(x):
        raise InputError(f"{name} must be {what}, got {x}")
    return x


def number(name, x):
    """A finite float."""
    return _float_that_is(name, x, math.isfinite, "finite")


def positive(name, x):
    """A finite float above zero."""
    return _float_that_is(name, x, lambda x: 0.0 < x < math.inf, "positive and finite")


def non_negative(name, x):
    """A finite float that is not below zero."""
    return _float_that_is(name, x, lambda x: 0.0 <= x < math.inf, "finite and not negative")


def between(name, x, low, high):
    """A finite float in an interval, ends included."""
    return _float_that_is(name, x, lambda x: low <= x <= high, f"between {low:g} and {high:g}")


def whole(name, x, least=0):
    """A whole number, not below the least one."""
    if not _is_whole(x) or x < least:
        what = {0: "a whole number, not negative", 1: "a positive whole number"}[least]
        raise InputError(f"{name} must be {what}, got {shown(x)}")
    return int(x)


def _is_whole(x):
    return isinstance(x, numbers.Integral) and not isinstance(x, bool)


def lead_of(name, x):
    """A number of states, or the leading axes of a batch, as a tuple."""
    if _is_whole(x):
        return (whole(name, x),)
    if isinstance(x, (tuple, list, np.ndarray)):
        return tuple(whole(name, n) for n in x)
    raise InputError(f"{name} must be a whole number or several, got {shown(x)}")


def flag(name, x):
    """True or False, and nothing that merely looks like it."""
    if not isinstance(x, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {shown(x)}")
    return bool(x)


def one_of(name, x, known):
    """One of the known words."""
    if not isinstance(x, str) or x not in known:
        raise InputError(f"unknown {name} {shown(x)}, {suggestion(x if isinstance(x, str) else '', known)}")
    return x


def names(name, x):
    """Names, or a single one, as a tuple of str."""
    found = (x,) if isinstance(x, str) else x
    if not isinstance(found, (tuple, list, set, frozenset, dict, np.ndarray)) or (
            not all(isinstance(each, str) for each in found)):
        raise InputError(f"{name} must be names, got {shown(x)}")
    return tuple(str(each) for each in found)
