"""Serialisation of robots and users' functions for other processes, and identification of jobs."""
import dataclasses
import functools
import hashlib
import importlib
import types

import numpy as np

from liedyn.machine.errors import InputError, LiedynError, said, shown
from liedyn.model.robot import Robot


def needed(name):
    """A module of the extra `dask`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LiedynError(f"jobs on a cluster need {name}: pip install 'liedyn[dask]'") from None


def packed(what, thing):
    """Any object as bytes, including robots, and functions that are defined in a script or a notebook.

    Robots are serialised as described in `liedyn.model.travel`, with users' functions, whose code cloudpickle includes.
    """
    cloudpickle = needed("cloudpickle")
    try:
        return cloudpickle.dumps(thing, protocol=5)
    except Exception as error:  # a user's __reduce__ may raise any error
        raise InputError(f"{what} cannot be sent to other processes: {said(error)}") from error


def unpacked(data):
    """The inverse of `packed`; returns the same object for the same bytes, so that a robot keeps its stored results."""
    return _unpacked(data)


def _loaded(data):
    return needed("cloudpickle").loads(data)


_unpacked = functools.lru_cache(maxsize=16)(_loaded)


# ---- identification of jobs, also in another process on another day


def digest(*things):
    """A short text that is the same for the same objects, in every process."""
    found = hashlib.sha256()
    _add(found, things, set())
    return found.hexdigest()[:16]


def _add(found, x, seen):
    """Adds what identifies an object; `seen` are the functions that have been added."""
    x = getattr(x, "py_func", x)  # the Python function of a compiled one
    found.update(f"{type(x).__module__}.{type(x).__qualname__} ".encode())
    if isinstance(x, np.ndarray) and x.dtype.kind != "O":
        found.update(f"{x.dtype} {x.shape}".encode())
        found.update(memoryview(np.ascontiguousarray(x)).cast("B") if x.size else b"")
    elif isinstance(x, Robot):
        _add(found, (x.model_as_is(), x.t), seen)
    elif x is None or isinstance(x, str | int | float | complex | bytes | np.generic):
        found.update(repr(x).encode())
    elif isinstance(x, dict | list | tuple | set | frozenset):
        found.update(f"{len(x)} ".encode())
        for each in x.items() if isinstance(x, dict) else sorted(x, key=repr) if isinstance(x, set | frozenset) else x:
            _add(found, each, seen)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        _add(found, {each.name: getattr(x, each.name) for each in dataclasses.fields(x)}, seen)
    elif isinstance(x, types.FunctionType):
        _add_function(found, x, seen)
    elif isinstance(x, type | types.ModuleType | types.BuiltinFunctionType):
        found.update(getattr(x, "__qualname__", x.__name__).encode())
    else:  # the text may differ between processes: then a job starts anew rather than mixing different results
        found.update(packed(shown(x), x))


def _add_function(found, function, seen):
    """Adds a user's function: its code, and the values that it uses besides its arguments."""
    if function in seen:
        return
    seen.add(function)
    found.update(function.__qualname__.encode())
    codes = [function.__code__]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        found.update(code.co_code)
        _add(found, [each for each in code.co_consts if not isinstance(each, types.CodeType)], seen)
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    used = dict.fromkeys(name for code in codes for name in code.co_names if name in function.__globals__)
    for value in (function.__defaults__, function.__kwdefaults__, *cells, *map(function.__globals__.get, used)):
        if isinstance(value, types.FunctionType) and value.__module__ != function.__module__:
            found.update(f"{value.__module__}.{value.__qualname__}".encode())  # a function of a library
        else:
            _add(found, value, seen)


def require_same_job(path, kept, wanted):
    """InputError if the results of another job exist already."""
    for name, value in wanted.items():
        if kept.get(name) != value:
            raise InputError(f"{shown(str(path))} holds the results of another job: its {name} is "
                             f"{shown(kept.get(name))}, not {shown(value)}; take another path, or remove it")
