"""Files of the cache: reading returns exactly the bytes that were written, or nothing."""
# mypy: ignore-errors
import contextlib
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
from liedyn.machine.typed_decorators import once

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PACKAGE = Path(__file__).resolve().parents[2]
CARRIED = PACKAGE / "_kernels"
"""Directory of the kernels that came with the package (`liedyn.look.cli.wheel`); read only."""
FORMAT = 1
"""Version of the files' format; older files are ignored. Increase it when their content changes."""

LOCKS = "locks"
"""Name of an empty file; each kernel that is being compiled locks one byte of it."""
PATIENCE, PAUSE = 120.0, 0.05
"""How long a process waits for another one that compiles the same kernel, and how often it looks [s]."""


def _first_line(name, data):
    """The first line of a file, a comment as some files are Python: format and checksum, of fixed length."""
    checksum = hashlib.sha256(name.encode() + b"\0")
    checksum.update(data)
    return f"# liedyn {FORMAT} {checksum.hexdigest()}\n".encode()


_HEAD = len(_first_line("", b""))
_DIRECTORY, _FILE = 0o755, 0o644
"""Permissions of new directories and files, at most: the cache trusts only what no other user can write."""


def switched_on():
    """True unless ``LIEDYN_CACHE=0``."""
    return os.environ.get("LIEDYN_CACHE", "1") != "0"


def folder_of(package):
    """The package's folder in a cache outside it, so that installations do not overwrite each other's kernels."""
    return "liedyn_" + hashlib.sha256(str(package).encode()).hexdigest()[:16]


@once
def directories() -> tuple[Path, ...]:
    """Directories where files are searched first, in this order, whether they exist or not."""
    if not switched_on():
        return ()
    here = folder_of(PACKAGE)
    chosen = os.environ.get("LIEDYN_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return (Path(chosen) / here,)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # the tilde remains for a user without a home
    return (PACKAGE / "__pycache__", *([] if user.startswith("~") else [Path(user) / "liedyn" / here]))


@once
def cache_directory() -> Path | None:
    """The directory for new files; None when the cache is switched off or nothing is writable."""
    return next(filter(_writable, directories()), None)


def _writable(directory):
    try:
        if not _trusted(directory):
            return False
        for missing in (each for each in (*reversed(directory.parents), directory) if not each.exists()):
            missing.mkdir(mode=_DIRECTORY, exist_ok=True)
        if not _trusted(directory):  # another process may have created it meanwhile
            return False
        with _temporary(directory / "writable"):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def _temporary(path):
    """A new temporary file beside `path`, which others may at most read; removed at the end if it still exists."""
    name = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with open(name, "xb", opener=lambda file, flags: os.open(file, flags, _FILE)) as file:
            yield file
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


class Kept(NamedTuple):
    """A file of the cache, and its content after the first line."""

    path: Path
    data: memoryview


def read(name):
    """The content that `write` stored under a name; None if there is no such file, or it is damaged."""
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
    """The content of a file; None, with a warning, if other users may have written it."""
    with open_regular(path, buffering=0) as file:
        why = trouble(os.fstat(file.fileno()), _package(directory))
        if why is None:
            return memoryview(file.read())
    _distrust(path, why)
    return None


def _package(directory):
    """`os.stat` of the package's directory if `directory` lies in it."""
    return os.stat(PACKAGE) if directory.parent == PACKAGE else None


def _trusted(directory):
    """True if files of this cache directory may be executed, or it does not exist yet."""
    package, around = _package(directory), directory.parent
    try:
        why, place = trouble(os.stat(directory), package), directory
    except OSError:  # missing or not accessible: then nothing is read either
        why = None
    try:
        if why is None and package is None:
            why, place = trouble_above(os.stat(around)), around
    except OSError:
        pass
    if why:
        _distrust(place, why)
    return why is None


@once
def _distrust(place, why):
    """Warn, once for each place, that it is not used."""
    warnings.warn(f"{place} is not used for compiled kernels, which are programs: {why}", CacheWarning, stacklevel=3)


def write(name, data):
    """Store bytes under a name, atomically: another process may be reading.

    Returns the path; None, with a warning, if the bytes cannot be stored.
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
    """Delete all but the `count` newest versions of the files ``name.<version>.<rest>``."""
    with contextlib.suppress(OSError):  # another process may be doing the same
        files = {}
        for file in os.scandir(cache_directory() or ""):
            if file.name.startswith(f"{name}."):
                files.setdefault(file.name.removeprefix(f"{name}.").partition(".")[0], []).append(file)
        oldest_first = sorted(files.values(), key=lambda version: max(file.stat().st_mtime_ns for file in version))
        for version in oldest_first[:max(len(files) - count, 0)]:
            for file in version:
                os.unlink(file)


@once
def warn(cause):
    """Warn once for each cause, as the next kernel would fail for the same one."""
    warnings.warn(f"compiled kernels are not kept on disk: {cause}", CacheWarning, stacklevel=3)


@contextlib.contextmanager
def alone(name):
    """Context that only one process at a time enters for the same name; a process that has waited `PATIENCE` seconds
    enters anyway.

    A process can be in one such context at a time. Its lock ends with the process. Without locks (on Windows, on some
    network drives, where nothing can be written) no process waits.
    """
    directory = cache_directory() if fcntl else None
    try:
        file = directory and open(directory / LOCKS, "ab", opener=lambda path, flags: os.open(path, flags, _FILE))
    except OSError:
        file = None
    if not file:
        yield
        return
    with file:  # closing the file releases the lock
        place, end = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                break
            except (BlockingIOError, PermissionError):  # another process holds the lock
                time.sleep(PAUSE)
            except OSError:
                break
        yield


def is_there(name):
    """True if a file of this name exists in a directory that is read; only `read` checks its content."""
    return any((directory / name).exists() for directory in (*directories(), CARRIED))
