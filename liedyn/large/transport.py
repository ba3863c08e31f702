"""Robots and users' functions on their way to other processes: as bytes, and what tells one job from another."""
import dataclasses
import functools
import hashlib
import importlib
import io

import numpy as np

from liedyn.errors import InputError, LiedynError, said, shown
from liedyn.model.build import build
from liedyn.model.robot import Robot


def needed(name):
    """A module of the extra `dask`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LiedynError(f"jobs on a cluster need {name}: pip install 'liedyn[dask]'") from None


def packed(what, thing):
    """Anything as bytes: robots, and functions that are defined in a script or a notebook, included.

    A robot travels as its packed arrays and its declaration. If it has users' functions, whose C addresses mean nothing
    elsewhere, its declaration alone travels, with the Python functions, and it is built again.
    """
    cloudpickle = needed("cloudpickle")

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, x):
            if isinstance(x, Robot):
                return _parts(x)
            return super().reducer_override(x)

    data = io.BytesIO()
    try:
        Pickler(data, protocol=5).dump(thing)
    except Exception as error:  # whatever a user's __reduce__ raises
        raise InputError(f"{what} cannot be sent to other processes: {said(error)}") from error
    return data.getvalue()


@functools.lru_cache(maxsize=16)
def unpacked(data):
    """What `packed` has packed; the same object each time, so that a robot remembers what was worked out for it."""
    return needed("cloudpickle").loads(data)


def _parts(robot):
    """What makes the robot again: a function and its arguments."""
    if has_functions(robot):
        return _built, (robot.model_as_is(), robot.t)
    return _made, ({each.name: getattr(robot, each.name) for each in dataclasses.fields(Robot) if each.init},)


def _built(model, t):
    return build(model).at(t)


def _made(parts):
    return Robot(**parts)


def has_functions(robot):
    """Are there functions of the user in it?"""
    return bool(robot.functions or (robot.elements is not None and robot.elements.functions))


# ---- what tells jobs apart, also in another process on another day


def digest(*things):
    """A short text that is the same for the same things, whichever process asks."""
    found = hashlib.sha256()
    for each in things:
        _add(found, each)
    return found.hexdigest()[:16]


def _add(found, x):
    if isinstance(x, np.ndarray) and x.dtype.kind != "O":
        found.update(f"array {x.dtype} {x.shape}".encode())
        found.update(memoryview(np.ascontiguousarray(x)).cast("B") if x.size else b"")
    elif isinstance(x, Robot):
        _add(found, (x.name, x.coordinate_names, x.row_names, x.actuator_names, x.independent, x.outputs))
        if not has_functions(x):  # else there are addresses among the numbers
            _add(found, x.packed)
            _add(found, x.elements)
    elif isinstance(x, dict):
        _add(found, tuple(x.items()))
    elif isinstance(x, list | tuple):
        found.update(f"{len(x)} in turn".encode())
        for each in x:
            _add(found, each)
    elif hasattr(x, "__code__"):
        found.update(x.__qualname__.encode() + x.__code__.co_code)
        _add(found, [each for each in x.__code__.co_consts if isinstance(each, str | int | float)])
    elif x is None or isinstance(x, str | int | float | complex | bytes | np.generic):
        found.update(f"{type(x).__name__} {x!r}".encode())
    else:  # an object of the user: by its class alone, for its repr may hold an address
        found.update(f"a {type(x).__module__}.{type(x).__qualname__}".encode())


def require_same_job(path, kept, wanted):
    """InputError if results are there already, of another job."""
    for name, value in wanted.items():
        if kept.get(name) != value:
            raise InputError(f"{shown(str(path))} holds the results of another job: its {name} is "
                             f"{shown(kept.get(name))}, not {shown(value)}; take another path, or remove it")
