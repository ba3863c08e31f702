"""``cached_njit``: the user's compiled loop around liedyn's kernels, kept on disk between runs.

Numba's own cache would not notice a change in liedyn and would time yesterday's kernels. This one is that of
`liedyn.machine.cache` (same directory, same environment switches), stamped with the sources of the benchmarks as well.
"""
import functools
import hashlib
from pathlib import Path

from numba import njit

import liedyn
from liedyn.machine.cache import cached, source_stamp as package_stamp

HERE = Path(__file__).resolve().parent


@functools.cache
def source_stamp(path):
    """SHA-256 over liedyn and the benchmarks, whichever of their files is asked for; None as for liedyn's own."""
    stamp = package_stamp(liedyn.__file__)
    if stamp is None:
        return None
    digest = hashlib.sha256(stamp.encode())
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cached_njit(function):
    """``njit`` as a user of liedyn writes it, and the result on disk.

    Parameters
    ----------
    function : callable

    Returns
    -------
    dispatcher
    """
    return cached(njit(function), function, source_stamp)
