"""Robots as bytes and as copies: without what belongs to one process alone.

What has been worked out for a robot (`robot._memo`) holds addresses of machine code, and so do the packed arrays of one
with users' functions. None of it means anything in another process. A robot travels as its packed arrays and its
declaration; one with users' functions as its declaration, of which it is built again there.
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
    """The user's functions of a declaration: what each is, and the function."""
    for each in model.loops + model.constraints:
        if each.target is not None:
            yield f"target of constraint {each.name!r}", each.target
        for key, function in getattr(each, "functions", {}).items():
            yield f"{key} of constraint {each.name!r}", function
    for element in model.elements:
        for key, function in element.functions.items():
            yield f"{key} of force element {element.name!r}", function


def has_functions(robot):
    """Are there functions of the user in it?"""
    return bool(robot.functions or (robot.elements is not None and robot.elements.functions))


def parts_of(robot):
    """What makes the robot again in any process: a function and its arguments, as `__reduce__` returns them."""
    if has_functions(robot):
        return _built, (robot.model_as_is(), robot.t)
    return _made, ({each.name: getattr(robot, each.name) for each in dataclasses.fields(robot) if each.init},
                   tuple(each.name for each in dataclasses.fields(robot) if each.init and _is_read_only(
                       getattr(robot, each.name))))


def require_functions_travel(robot):
    """InputError that names a function of the user which the pickler at work cannot take along."""
    if has_functions(robot) and _goes_by_names(3):
        for what, function in functions_of(robot.model_as_is()):
            _require_travels(what, function)


class Travelling:
    """Holds functions of the user: one that the pickler at work cannot take along is an InputError that names it."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if _goes_by_names(2):
            for name, value in vars(self).items():
                if isinstance(value, types.FunctionType | types.MethodType | functools.partial):
                    _require_travels(f"{name.strip('_')} of {type(self).__name__}", value)
        return super().__reduce_ex__(protocol)


def _goes_by_names(depth):
    """Does the pickler at work take functions by their names, as `pickle` does? `cloudpickle` takes their code along,
    and `copy` shares them. Both are written in Python, and stand on the stack, so many frames up."""
    module = sys._getframe(depth).f_globals.get("__name__", "").split(".")
    return not {"copy", "cloudpickle"} & set(module)


def _require_travels(what, function):
    try:
        pickle.dumps(function)
    except Exception as error:  # whatever a user's __reduce__ raises
        raise InputError(
            f"{what} cannot be pickled: {said(error)}; functions travel by their names, so define it at the top of a "
            "module, compile it with @njit, or use cloudpickle") from error


def copied(robot):
    """A robot of its own arrays, which shares the declaration and the functions, as those do not change."""
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
    return by_name("liedyn.model.build:build")(model).at(t)  # which makes robots, and so imports this


def _made(parts, read_only=()):
    for name in read_only:
        parts[name].flags.writeable = False
    return by_name("liedyn.model.robot:Robot")(**parts)
