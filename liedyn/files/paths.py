"""Paths that users give, and the bytes behind them."""

from pathlib import Path

from liedyn.machine.errors import InputError, ModelError, cut, shown
from liedyn.machine.reading import open_regular, read_regular


def path_of(source):
    """`source` as a Path; InputError if it is none."""
    try:
        return Path(source)
    except TypeError:
        raise InputError(f"expected a name or a path, got {shown(source)}") from None


def read_bytes(path):
    """What stands in a file; ModelError if it cannot be read, is no regular file, or is larger than 64 MiB."""
    try:
        return read_regular(path)
    except (OSError, ValueError) as error:  # ValueError: no file has such a name
        raise ModelError(f"cannot be read: {_reason(error)}") from None


def require_regular(path):
    """ModelError if there is a FIFO, a device or a folder in the place of a file, which others are going to read."""
    try:
        open_regular(path).close()
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {_reason(error)}") from None


def write_text(path, text):
    """Write a file; InputError if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{cut(str(path), 300)}: cannot be written: {_reason(error)}") from None


def _reason(error):
    return getattr(error, "strerror", None) or error
