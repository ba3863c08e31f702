"""How much memory a process may still use, and an error before it runs out.

An operating system promises more memory than it has, and kills a process that uses it; libraries below Python abort it,
too, when an allocation fails. So large arrays are checked here before they are allocated.
"""
import os

import numpy as np

from liedyn.machine.errors import InputError

SHARE = 0.8
"""Fraction of the free memory that one call may use."""
FREE_ANYWAY = 1e7
"""Bytes below which nothing is checked, as reading the system's files takes a tenth of a millisecond."""


class TooLargeError(InputError):
    """A result needs more memory than there is."""


def free_memory():
    """Bytes that this process may still use, infinite if the system does not say: the minimum over the machine, its
    control group (containers) and its own address-space limit."""
    return min(_of_machine(), _of_group(), _of_process())


def require_memory(what, size):
    """TooLargeError with the name `what` if `size` bytes exceed `SHARE` of the free memory."""
    if size > FREE_ANYWAY and not size <= SHARE * (free := free_memory()):
        raise TooLargeError(f"{what} takes {told(size)} of memory, and {told(free)} are free")


def told(size):
    """A number of bytes with its unit, for messages."""
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
    """Bytes of cached files of the control group, which the system frees on demand."""
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
