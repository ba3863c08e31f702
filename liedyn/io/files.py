"""Paths that users give, the bytes behind them, and warnings about these."""

import sys
import warnings
from pathlib import Path

from liedyn.errors import InputError, ModelError, ModelWarning, cut, shown


def path_of(source):
    """`source` as a Path; InputError if it is none."""
    try:
        return Path(source)
    except TypeError:
        raise InputError(f"expected a name or a path, got {shown(source)}") from None


def read_bytes(path):
    """What stands in a file; ModelError if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: no file has such a name
        raise ModelError(f"cannot be read: {_reason(error)}") from None


def write_text(path, text):
    """Write a file; InputError if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{cut(str(path), 300)}: cannot be written: {_reason(error)}") from None


def warn(text):
    """A ModelWarning at the line that called the library, by whatever function of it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("liedyn."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, ModelWarning, stacklevel=level)


def _reason(error):
    return getattr(error, "strerror", None) or error
