"""How much memory a process may still take, and a refusal in time.

An operating system gives more memory than it has, and ends a process that uses it; libraries below Python end it, too,
where they get none. So what is large is asked for here before it is made.
"""
import os

import numpy as np

from liedyn.machine.errors import InputError

SHARE = 0.8
"""Part of the memory that is free which one call may take."""
FREE_ANYWAY = 1e7
"""Smaller sizes are not looked at: files of the system say what is free, in a tenth of a millisecond."""


class TooLargeError(InputError):
    """What is asked for needs more memory than there is."""


def free_memory():
    """Bytes that this process may still take, infinite where the system does not say: the least of the machine's, of
    its control group's (containers) and of its own limit of addresses."""
    return min(_of_machine(), _of_group(), _of_process())


def require_memory(what, size):
    """An error that says what needs how much, where `size` bytes are more than there are.

    Raises
    ------
    TooLargeError
    """
    if size > FREE_ANYWAY and not size <= SHARE * (free := free_memory()):
        raise TooLargeError(f"{what} takes {told(size)} of memory, and {told(free)} are free")


def told(size):
    """A number of bytes in words."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size = size / 1000.0
    return f"{size:.4g} GB"


def _of_machine():
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return np.inf


def _of_group():
    most, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if not (most.isdigit() and used.isdigit()):
        return np.inf
    return float(most) - float(used) + _reclaimed()


def _reclaimed():
    """Bytes of files that the group holds in memory, and gives back."""
    for line in _read("/sys/fs/cgroup/memory.stat").splitlines():
        if line.startswith("file "):
            return float(line.split()[1])
    return 0.0


def _of_process():
    try:
        import resource
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = _read("/proc/self/statm").split()
        return np.inf if most == resource.RLIM_INFINITY or not used else most - float(used[0]) * resource.getpagesize()
    except (ImportError, ValueError, OSError):  # Windows
        return np.inf


def _read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read(65536)
    except (OSError, ValueError):
        return ""
