"""Import of an object by its name, at the moment when it is needed."""
from functools import cache
from importlib import import_module

_module = cache(import_module)  # asks once whether a module is there


def by_name(path):
    """The object with the path ``"module:name"``; tables of readers and shorthand methods hold such paths."""
    module, name = path.split(":")
    return getattr(_module(module), name)
