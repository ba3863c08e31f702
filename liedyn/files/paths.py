"""Paths from users, and the bytes of files."""

from contextlib import contextmanager
from pathlib import Path

from liedyn.files.text_path import TextPath
from liedyn.machine.errors import InputError, ModelError, cut, shown
from liedyn.machine.reading import open_regular, read_regular


def path_of(source):
    """`source` as a Path, one with a text of its own as it is; InputError if it is not a path."""
    if isinstance(source, TextPath):
        return source
    try:
        return Path(source)
    except TypeError:
        raise InputError(f"expected a name or a path, got {shown(source)}") from None


def read_bytes(path):
    """The bytes of a file; ModelError if it cannot be read, is no regular file, or is larger than 64 MiB."""
    if isinstance(path, TextPath) and path.data is not None:
        return path.data
    try:
        return read_regular(path)
    except (OSError, ValueError) as error:  # ValueError: an impossible file name
        raise ModelError(f"cannot be read: {_reason(error)}") from None


def require_regular(path):
    """ModelError for a FIFO, a device or a folder instead of a file that another library will read."""
    try:
        open_regular(path).close()
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {_reason(error)}") from None


def write_text(path, text):
    """Write a file; InputError if that fails."""
    with writing(path):
        path.write_text(text, encoding="utf-8")


@contextmanager
def writing(path):
    """Context in which files are written at a path; InputError if that fails."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{cut(str(path), 300)}: cannot be written: {_reason(error)}") from None


def _reason(error):
    return getattr(error, "strerror", None) or error
