"""Objects by their names: what is imported at the moment when it is needed."""
from importlib import import_module


def by_name(path):
    """The object of a path ``"module:name"``: an entry of a table of readers, or what a method is a shorthand for."""
    module, name = path.split(":")
    return getattr(import_module(module), name)
