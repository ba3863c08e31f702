"""Computation of one chunk of rows, on a worker or in the calling process."""
import warnings
from typing import NamedTuple

import numpy as np

from liedyn.linear import linearize
from liedyn.linear.state_space import RESULTS
from liedyn.machine.errors import ConditionWarning, InputError, LiedynError, listed, said, shown, suggestion
from liedyn.mechanics.dynamics import forward_dynamics
from liedyn.motion.simulation import simulate
from liedyn.tasks.operating_points import trim

FUNCTIONS = {
    "linearize": (linearize, ("A", "B", "C", "D", "f0")),
    "forward_dynamics": (forward_dynamics, ("a", "lam")),
    "trim": (trim, ("q", "v", "u", "tau", "freedom", "reached")),
    "simulate": (simulate, ("q", "v")),
}
"""Functions of a batch of states, by name, and the results stored by default."""
ONE = "result"
"""Name of the result of a function that returns one array or number instead of several by name."""


class ChunkWork(NamedTuple):
    """The computation for each chunk of a job.

    `function` is a name among FUNCTIONS, or a function of (robot, rows by name) for all rows of a chunk at once, or, if
    `one_by_one`, of one parameter. `keep` has the names of the results to be stored, None for all.
    """

    function: object
    robot: object
    keep: tuple | None
    options: dict
    one_by_one: bool


class Template(NamedTuple):
    """Shape of one row, and type, of a result."""

    shape: tuple
    dtype: str


class RowError(Exception):
    """A user's function failed with an error that is not liedyn's, or its results form no array.

    Attributes
    ----------
    row : int
        Index in the chunk of the row, or of the first of the rows computed together.
    text : str
    """

    def __init__(self, row, text):
        super().__init__(row, text)
        self.row, self.text = row, text


def computed(work, rows, count, template=None):
    """Results of a chunk, and its errors.

    Rows that fail are found by halving; all other rows are computed.

    Parameters
    ----------
    work : ChunkWork
    rows : dict of ndarray, or list
        Inputs of `count` rows by name, or their parameters.
    count : int
    template : dict of Template, optional
        Names, shapes and types of the results; default: those of the first rows.

    Returns
    -------
    arrays : dict of ndarray, shape (count, ...)
        NaN, zero or False for rows that failed.
    errors : dict
        Errors by index of the row in the chunk.

    Raises
    ------
    LiedynError
        All rows fail and there is no template: the first error.
    RowError
        A user's function raises another error.
    """
    if work.one_by_one:
        parts, errors = _one_by_one(work, rows)
    else:
        parts, errors = [], {}
        _halving(work, rows, 0, count, parts, errors)
    if template is None:
        if len(errors) == count:
            raise errors[0]
        template = {name: Template(x.shape[1:], x.dtype.str) for name, x in parts[0][2].items()}
    arrays = {name: np.empty((count, *each.shape), each.dtype) for name, each in template.items()}
    for array in arrays.values():
        array[...] = np.nan if array.dtype.kind in "fc" else 0
    for begin, end, found in parts:
        if set(found) != set(template):
            raise RowError(begin, f"results are {listed(found)}, those of the first rows {listed(template)}")
        for name, values in found.items():
            _put(name, arrays[name], begin, end, values)
    return arrays, {row: said(error).removesuffix(" (state 0 of the batch)") for row, error in errors.items()}


def _put(name, array, begin, end, values):
    """Writes rows begin to end - 1; if these are shorter, as all runs stopped early, the rest is unchanged."""
    size = values.shape[1:]
    if len(size) != array.ndim - 1 or any(n > most for n, most in zip(size, array.shape[1:])):
        raise RowError(begin, f"{name} has shape {size} a row, in the first rows {array.shape[1:]}")
    array[(slice(begin, end), *map(slice, size))] = values


def _halving(work, rows, begin, end, parts, errors):
    """Computes rows begin to end - 1 at once or, if that fails, each half of them."""
    try:
        found, failed = _batch(work, {name: x[begin:end] for name, x in rows.items()}, end - begin)
    except LiedynError as error:
        if end - begin > 1:
            middle = (begin + end) // 2
            _halving(work, rows, begin, middle, parts, errors)
            _halving(work, rows, middle, end, parts, errors)
        else:
            errors[begin] = error
        return
    except RowError as error:
        raise RowError(begin, error.text) from None
    except Exception as error:
        raise RowError(begin, said(error)) from error
    parts.append((begin, end, found))
    errors.update({begin + row: error for row, error in failed.items()})


def _batch(work, rows, count):
    """Results of rows at once, and errors of some of the runs."""
    if callable(work.function):
        given = () if work.robot is None else (work.robot,)
        found, errors = _by_name(work.function(*given, **rows, **work.options)), {}
        found = {name: np.asarray(x) for name, x in found.items()}
    else:
        function, usual = FUNCTIONS[work.function]
        names, options = work.keep or usual, work.options
        if work.function == "linearize" and set(names) <= set(RESULTS):
            options = {"results": names} | options
        with warnings.catch_warnings():
            if work.function == "simulate":  # failed runs are listed by index of the row
                warnings.simplefilter("ignore", ConditionWarning)
            result = function(work.robot, **rows, **options)
        errors = {index[0]: error for index, error in getattr(result, "errors", {}).items()}
        found = {name: _attribute(work.function, result, name) for name in names}
        if "t" in found:
            found["t"] = np.broadcast_to(found["t"], (count, *found["t"].shape))
    for name, x in found.items():
        if x.ndim == 0 or len(x) != count:
            raise RowError(0, f"{name} has shape {x.shape}, not one row for each of {count}")
    return _kept(work, found), errors


def _attribute(what, result, name):
    value = getattr(result, name, None) if not name.startswith("_") else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiubc":
        known = [each for each, x in vars(result).items() if isinstance(x, np.ndarray) and not each.startswith("_")]
        raise InputError(f"{what} has no array {shown(name)} to keep, {suggestion(name, known)}")
    return value


def _one_by_one(work, rows):
    """Results of each parameter."""
    parts, errors = [], {}
    for k, parameter in enumerate(rows):
        try:
            found = work.function(parameter, **work.options)
        except LiedynError as error:
            errors[k] = error
            continue
        except Exception as error:
            raise RowError(k, said(error)) from error
        try:
            found = {name: np.asarray(x)[None] for name, x in _by_name(found).items()}
        except ValueError as error:
            raise RowError(k, said(error)) from error
        parts.append((k, k + 1, _kept(work, found, k)))
    return parts, errors


def _by_name(found):
    return found if isinstance(found, dict) else {ONE: found}


def _kept(work, found, row=0):
    """The results to be stored, as numbers, by name."""
    missing = set(work.keep or ()) - set(found)
    if missing:
        raise InputError(f"nothing is called {listed(sorted(missing))} among the results: {listed(found)}")
    found = {name: found[name] for name in work.keep or found}
    for name, x in found.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise RowError(row, f"results need names, not {shown(name)}")
        if x.dtype.kind not in "fiubc":
            raise RowError(row, f"{name} must be numbers, got an array of {x.dtype}")
    return found
