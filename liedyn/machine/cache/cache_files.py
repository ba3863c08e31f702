"""Files of the cache: what is read is what was written, byte for byte, or nothing."""
import contextlib
import functools
import hashlib
import os
import time
import uuid
import warnings
from pathlib import Path
from typing import NamedTuple

from liedyn.machine.cache.trust import trouble, trouble_above
from liedyn.machine.errors import CacheWarning
from liedyn.machine.reading import open_regular

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PACKAGE = Path(__file__).resolve().parents[2]
CARRIED = PACKAGE / "_kernels"
"""Where files are that have come with the package (`liedyn.look.cli.wheel`); nothing is written there."""
FORMAT = 1
"""To be counted up when what the files contain changes: older files are then as good as none."""

LOCKS = "locks"
"""An empty file, of which each kernel that is being compiled locks one byte."""
PATIENCE, PAUSE = 120.0, 0.05
"""How long a process waits for another one that compiles the same kernel, and how often it looks [s]."""


def _first_line(name, data):
    """Format and checksum of name and data, always as long; a comment, for some of the files are programs."""
    checksum = hashlib.sha256(name.encode() + b"\0")
    checksum.update(data)
    return f"# liedyn {FORMAT} {checksum.hexdigest()}\n".encode()


_HEAD = len(_first_line("", b""))
_DIRECTORY, _FILE = 0o755, 0o644
"""Permissions of what is made here, at most: where other users may write nothing is trusted."""


def switched_on():
    """Is anything kept at all?"""
    return os.environ.get("LIEDYN_CACHE", "1") != "0"


def folder_of(package):
    """The folder in a cache outside the package: two installations must not overwrite each other's kernels."""
    return "liedyn_" + hashlib.sha256(str(package).encode()).hexdigest()[:16]


@functools.cache
def directories() -> tuple[Path, ...]:
    """Where files are looked for first, in this order, whether the directories exist or not."""
    if not switched_on():
        return ()
    here = folder_of(PACKAGE)
    chosen = os.environ.get("LIEDYN_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return (Path(chosen) / here,)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # a user without a home: the tilde stays
    return (PACKAGE / "__pycache__", *([] if user.startswith("~") else [Path(user) / "liedyn" / here]))


@functools.cache
def cache_directory() -> Path | None:
    """Where new files go; None when the cache is switched off or nothing is writable."""
    return next(filter(_writable, directories()), None)


def _writable(directory):
    try:
        if not _trusted(directory):
            return False
        for missing in (each for each in (*reversed(directory.parents), directory) if not each.exists()):
            missing.mkdir(mode=_DIRECTORY, exist_ok=True)
        if not _trusted(directory):  # another may have made it meanwhile
            return False
        with _temporary(directory / "writable"):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def _temporary(path):
    """A new file beside `path`, which others may read at most; removed if it is still there."""
    name = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with open(name, "xb", opener=lambda file, flags: os.open(file, flags, _FILE)) as file:
            yield file
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


class Kept(NamedTuple):
    """A file of the cache, and what it holds behind its first line."""

    path: Path
    data: memoryview


def read(name):
    """What `write` has kept under a name; None if there is no such file, or not all of it as it was written."""
    for directory in (*directories(), CARRIED):
        path = directory / name
        try:
            data = _contents(path, directory) if _trusted(directory) else None
        except OSError:
            continue
        if data is None:
            continue
        if data[:_HEAD] == _first_line(name, data[_HEAD:]):
            return Kept(path, data[_HEAD:])
    return None


def _contents(path, directory):
    """What is in a file; None if others may have written it, which a warning says."""
    with open_regular(path, buffering=0) as file:
        why = trouble(os.fstat(file.fileno()), _package(directory))
        if why is None:
            return memoryview(file.read())
    _distrust(path, why)
    return None


def _package(directory):
    """The state of the package's directory, for what is in it."""
    return os.stat(PACKAGE) if directory.parent == PACKAGE else None


def _trusted(directory):
    """May what is in a directory of the cache be run? What is not there yet may."""
    package, around = _package(directory), directory.parent
    try:
        why, place = trouble(os.stat(directory), package), directory
    except OSError:  # not there, or not to be seen: then nothing is read either
        why = None
    try:
        if why is None and package is None:
            why, place = trouble_above(os.stat(around)), around
    except OSError:
        pass
    if why:
        _distrust(place, why)
    return why is None


@functools.cache
def _distrust(place, why):
    """Once for each place."""
    warnings.warn(f"{place} is not used for compiled kernels, which are programs: {why}", CacheWarning, stacklevel=3)


def write(name, data):
    """Keep bytes under a name, all of them or none: another process may be reading.

    Returns the path; None if the bytes cannot be kept, which a warning says.
    """
    directory = cache_directory()
    if directory is None:
        if places := [str(each) for each in directories() if _trusted(each)]:
            warn(f"not writable: {', '.join(places)}")
        return None
    path = directory / name
    try:
        path.parent.mkdir(mode=_DIRECTORY, exist_ok=True)
        with _temporary(path) as file:
            file.write(_first_line(name, data))
            file.write(data)
            file.close()
            if path.is_dir():
                path.rmdir()
            os.replace(file.name, path)
    except OSError as error:
        warn(f"{directory}: {error.strerror or error}")
        return None
    return path


def keep_versions(name, count):
    """Of the files ``name.<version>.<rest>`` keep those of the `count` versions written last."""
    with contextlib.suppress(OSError):  # another process may be doing the same
        files = {}
        for file in os.scandir(cache_directory() or ""):
            if file.name.startswith(f"{name}."):
                files.setdefault(file.name.removeprefix(f"{name}.").partition(".")[0], []).append(file)
        oldest_first = sorted(files.values(), key=lambda version: max(file.stat().st_mtime_ns for file in version))
        for version in oldest_first[:max(len(files) - count, 0)]:
            for file in version:
                os.unlink(file)


@functools.cache
def warn(cause):
    """Once for each cause: the next kernel would only say the same."""
    warnings.warn(f"compiled kernels are not kept on disk: {cause}", CacheWarning, stacklevel=3)


@contextlib.contextmanager
def alone(name):
    """Within the context no other process is in it for the same name; but for those whose `PATIENCE` has ended.

    A process can be in one such context at a time. Its lock ends with the process. Without locks (on Windows, on some
    network drives, where nothing can be written) all go ahead.
    """
    directory = cache_directory() if fcntl else None
    try:
        file = directory and open(directory / LOCKS, "ab", opener=lambda path, flags: os.open(path, flags, _FILE))
    except OSError:
        file = None
    if not file:
        yield
        return
    with file:  # closing it gives the lock back
        place, end = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                break
            except (BlockingIOError, PermissionError):  # another process has it
                time.sleep(PAUSE)
            except OSError:
                break
        yield


def is_there(name):
    """Is there a file of this name in a directory that is read? What is in it, only `read` knows."""
    return any((directory / name).exists() for directory in (*directories(), CARRIED))
