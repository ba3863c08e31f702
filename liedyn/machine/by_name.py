"""Import of an object by its name, at the moment when it is needed."""
from importlib import import_module


def by_name(path):
    """The object with the path ``"module:name"``; tables of readers and shorthand methods hold such paths."""
    module, name = path.split(":")
    return getattr(import_module(module), name)
