"""``cached_njit``: the user's compiled loop around liedyn's kernels, kept on disk between runs.

Numba's own cache would not notice a change in liedyn and would time yesterday's kernels. This one is that of
`liedyn.jit` (same directory, same environment switches), stamped with the sources of the benchmarks as well.
"""
import functools
import hashlib
from pathlib import Path

from numba import njit
from numba.core.caching import Cache, CompileResultCacheImpl

from liedyn import jit

HERE = Path(__file__).resolve().parent


@functools.cache
def source_stamp():
    """SHA-256 over liedyn and the benchmarks."""
    digest = hashlib.sha256(jit.source_stamp(jit.PACKAGE / "__init__.py").encode())
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Locator(jit._Locator):
    def __init__(self, py_func, py_file):
        self._py_file = py_file
        self._disambiguator = f"benchmarks-{Path(py_file).stem}-{py_func.__code__.co_firstlineno}"

    def get_source_stamp(self):
        return source_stamp()


class _Impl(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Cache(Cache):  # Numba's own index, with that stamp
    _impl_class = _Impl


def cached_njit(function):
    """``njit`` as a user of liedyn writes it, and the result on disk.

    Parameters
    ----------
    function : callable

    Returns
    -------
    dispatcher
    """
    dispatcher = njit(function)
    if jit.cache_directory() is not None:
        dispatcher._cache = _Cache(function)
    return dispatcher
