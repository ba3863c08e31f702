"""Copies and pickles of robots, without data that is valid in one process only.

Results stored with a robot (`robot._memo`) contain addresses of machine code, and so do the packed arrays of one with
users' functions. They are invalid in another process. So a robot is pickled as its packed arrays and its declaration;
one with users' functions as its declaration, from which it is built again.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
import sys
import types
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, said

if TYPE_CHECKING:
    from typing import Any, SupportsIndex


def functions_of(model):
    """The user's functions in a declaration, each with a description."""
    for each in model.loops + model.constraints:
        if each.target is not None:
            yield f"target of constraint {each.name!r}", each.target
        for key, function in getattr(each, "functions", {}).items():
            yield f"{key} of constraint {each.name!r}", function
    for element in model.elements:
        for key, function in element.functions.items():
            yield f"{key} of force element {element.name!r}", function


def has_functions(robot):
    """True if the robot contains users' functions."""
    return bool(robot.functions or (robot.elements is not None and robot.elements.functions))


def parts_of(robot):
    """A function and its arguments that make the robot again in any process, as `__reduce__` returns them."""
    if has_functions(robot):
        return _built, (robot.model_as_is(), robot.t)
    return _made, ({each.name: getattr(robot, each.name) for each in dataclasses.fields(robot) if each.init},
                   tuple(each.name for each in dataclasses.fields(robot) if each.init and _is_read_only(
                       getattr(robot, each.name))))


def require_functions_travel(robot):
    """InputError, with its name, for a user's function that the current pickler cannot pickle."""
    if has_functions(robot) and _goes_by_names(3):
        for what, function in functions_of(robot.model_as_is()):
            _require_travels(what, function)


class Travelling:
    """Holds users' functions: one that the current pickler cannot pickle raises an InputError with its name."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if _goes_by_names(2):
            for name, value in vars(self).items():
                if isinstance(value, types.FunctionType | types.MethodType | functools.partial):
                    _require_travels(f"{name.strip('_')} of {type(self).__name__}", value)
        return super().__reduce_ex__(protocol)


def _goes_by_names(depth):
    """True if the current pickler stores functions by name, as `pickle` does. `cloudpickle` stores their code, and
    `copy` shares them; both are written in Python, and are found on the stack, `depth` frames up."""
    module = sys._getframe(depth).f_globals.get("__name__", "").split(".")
    return not {"copy", "cloudpickle"} & set(module)


def _require_travels(what, function):
    try:
        pickle.dumps(function)
    except Exception as error:  # any exception of a user's __reduce__
        raise InputError(
            f"{what} cannot be pickled: {said(error)}; functions travel by their names, so define it at the top of a "
            "module, compile it with @njit, or use cloudpickle") from error


def copied(robot):
    """A robot with its own arrays, which shares the declaration and the functions, as these do not change."""
    own = {each.name: _copy(getattr(robot, each.name)) for each in dataclasses.fields(robot) if each.init}
    return dataclasses.replace(robot, **own)


def _copy(x):
    if isinstance(x, np.ndarray):
        found = x.copy()
        found.flags.writeable = x.flags.writeable
        return found
    if isinstance(x, tuple) and hasattr(x, "_fields"):  # packed models, elements and their laws
        return type(x)(*map(_copy, x))
    return dict(x) if isinstance(x, dict) else x


def _is_read_only(x):
    return isinstance(x, np.ndarray) and not x.flags.writeable


def _built(model, t):
    return by_name("liedyn.model.build:build")(model).at(t)  # imported by name, as that module imports this one


def _made(parts, read_only=()):
    for name in read_only:
        parts[name].flags.writeable = False
    return by_name("liedyn.model.robot:Robot")(**parts)
