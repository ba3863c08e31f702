"""The cache that Numba asks for a kernel: one file for each signature, processor and version, and no list of them.

Numba's own keeps an index beside the files. Two processes that change it at once lose an entry, or find a file of the
other's under their own key; two versions that take turns erase each other's. Here the name of a file says all of it:

    tree-rnea.rnea_kernel.cpython-311.<version>.<key>.nbc

The version stands for the sources and for what compiles them, the key for types of arguments and processor. The file
repeats the key, as Numba compares keys by equality rather than by name.
"""
import functools
import hashlib
import pickle
import sys
from pathlib import Path

import llvmlite
import numba
from llvmlite import binding
from numba.core import config
from numba.core.caching import Cache, CompileResultCacheImpl
from numba.core.serialize import dumps

from liedyn.cache.files import PACKAGE, cache_directory, keep_versions, read, switched_on, write
from liedyn.cache.stamps import source_stamp

VERSIONS_KEPT = 3
"""Versions of one kernel that stay on disk, those written last: all kernels of one take about 150 MB."""


@functools.cache
def _compiler():
    """What decides, besides sources and processor, what a kernel is compiled to."""
    return (numba.__version__, llvmlite.__version__, config.OPT, config.BOUNDSCHECK, config.LOOP_VECTORIZE,
            config.SLP_VECTORIZE, config.DEBUGINFO_DEFAULT)


@functools.cache
def _lanes():
    """Whether there are registers of eight doubles, also where NUMBA_CPU_NAME names a processor without them."""
    return bool(binding.get_host_cpu_features().get("avx512f"))


def source_of(function):
    """The file that a function is in; of one that was written for a declaration, at ``FILE.py:NAME``, that of this."""
    file, mark, _ = function.__code__.co_filename.partition(".py:")
    return file + mark[:-1]


def _digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


class _Impl(CompileResultCacheImpl):
    """How Numba takes a compiled function apart and puts it together; it refuses what holds addresses."""

    def __init__(self, py_func):  # not that of Numba, which looks for a directory
        self._locator, self._lineno = self, py_func.__code__.co_firstlineno
        self._py_file = py_func.__code__.co_filename


class KernelCache(Cache):
    """The cache of one function, in Numba's protocol.

    Parameters
    ----------
    function : callable
    stamp : callable
        The stamp of the sources behind a file, given its path; asked when a kernel is looked for, not at import.
    """

    def __init__(self, function, stamp=source_stamp):
        self._py_func, self._impl, self._stamp = function, _Impl(function), stamp
        self._source, self._name = source_of(function), repr(function)
        self.enable()

    @functools.cached_property
    def name(self):
        """What the names of all its files begin with."""
        file = Path(self._source).resolve()  # in the package, or a module that `specialize` has written
        module = file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else Path(file.name)
        function = self._py_func.__qualname__.replace("<", "").replace(">", "")  # Windows
        return f"{'-'.join(module.with_suffix('').parts)}.{function}.{sys.implementation.cache_tag}"

    @property
    def cache_path(self):
        return cache_directory()

    def _file(self, key):
        """None if what is compiled here must not be kept."""
        stamp = self._stamp(self._source) if self._enabled else None
        return stamp and f"{self.name}.{_digest(stamp, _compiler())}.{_digest(key)}.nbc"

    def _index_key(self, sig, codegen):
        return *super()._index_key(sig, codegen), _lanes()

    def _load_overload(self, sig, target_context):
        key = self._index_key(sig, target_context.codegen())
        name = self._file(key)
        kept = name and read(name)
        if not kept:
            return None
        try:
            known, data = pickle.loads(kept.data)
        except (ImportError, AttributeError):  # of a user's function: it names what has another place by now
            return None
        return self._impl.rebuild(target_context, data) if known == key else None

    def _save_overload(self, sig, result):
        if not result.library._finalized:  # `compiled.translation` comes again when there is machine code
            return
        key = self._index_key(sig, result.codegen)
        name = self._file(key)
        if name and self._impl.check_cachable(result):
            *parts, environments = self._impl.reduce(result)
            environments = environments if getattr(result.library, "knows_environments", True) else ()
            write(name, dumps((key, (*parts, environments))))
            keep_versions(self.name, VERSIONS_KEPT)

    def flush(self):
        keep_versions(self.name, 0)


def cached(dispatcher, function, stamp=source_stamp):
    """Let Numba's dispatcher of a function keep what it compiles, unless the function is in no file."""
    if switched_on() and not function.__code__.co_filename.startswith("<"):
        dispatcher._cache = KernelCache(function, stamp)
    return dispatcher
