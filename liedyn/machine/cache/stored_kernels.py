"""The cache that Numba asks for a kernel: one file for each signature, processor and version, without an index.

Numba's own cache keeps an index beside the files. Two processes that change it at once lose an entry, or get the
other's file under their own key; two versions that alternate erase each other's files. Here the file name is the index:

    tree-rnea.rnea_kernel.cpython-311.<version>.<key>.nbc

The version is a hash of the sources and of the compiler, the key one of the argument types and the processor. The file
repeats the key, as Numba compares keys by equality rather than by name.

If there is none for this very processor, the package may contain one for its level (`cpu_targets`).
"""
# mypy: ignore-errors
import contextlib
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
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from liedyn.machine.cache.cache_files import (
    CARRIED, PACKAGE, alone, cache_directory, is_there, keep_versions, read, switched_on, write,
)
from liedyn.machine.cache.stamps import source_stamp
from liedyn.machine.compiled.cpu_targets import LEVEL, WIDTH
from liedyn.machine.compiled.translation import IS_KNOWN
from liedyn.machine.typed_decorators import once

VERSIONS_KEPT = 3
"""The newest versions of each kernel that stay on disk; one version of all kernels takes about 150 MB."""


@once
def _compiler():
    """What else determines the machine code, besides sources and processor: versions and options of Numba and LLVM."""
    return (numba.__version__, llvmlite.__version__, config.OPT, config.BOUNDSCHECK, config.LOOP_VECTORIZE,
            config.SLP_VECTORIZE, config.DEBUGINFO_DEFAULT, config.USING_SVML)


def source_of(function):
    """The file of a function; for one generated for a declaration (file name ``FILE.py:NAME``), that file."""
    file, mark, _ = function.__code__.co_filename.partition(".py:")
    return file + mark[:-1]


def _digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


class _Library(JITCodeLibrary):
    """Machine code read from a file. Its LLVM code is read only when another function links it in, as that takes
    longer."""

    _bitcode = _parsed = None

    @classmethod
    def _unserialize(cls, codegen, state):
        name, _, (code, bitcode) = state
        library = cls(codegen, name)
        library._bitcode = bitcode
        library.enable_object_caching()
        library._set_compiled_object(code)
        library._finalize_final_module()
        return library

    @property
    def _shared_module(self):
        if self._parsed is None and self._bitcode is not None:
            self._parsed = binding.parse_bitcode(self._bitcode)
        return self._parsed

    @_shared_module.setter
    def _shared_module(self, module):
        self._parsed = module

    def get_pointer_to_function(self, name):  # Numba's looks into a list of names that is made from the LLVM code
        return self._codegen._engine.get_function_address(name)


class _Reader:
    """Numba's context, which makes a `_Library` of what is read."""

    def __init__(self, context):
        self._context = context

    def codegen(self):
        return self

    def unserialize_library(self, state):
        return _Library._unserialize(self._context.codegen(), state)

    def __getattr__(self, name):
        return getattr(self._context, name)


class _Impl(CompileResultCacheImpl):
    """How Numba serializes a compiled function; it refuses functions that contain addresses."""

    def __init__(self, py_func):  # replaces Numba's, which searches for a directory
        self._locator, self._lineno = self, py_func.__code__.co_firstlineno
        self._py_file = py_func.__code__.co_filename

    def reduce(self, result):
        """The serialized function, without what only serves people: types of variables (with their files) and names of
        values, which are half of the LLVM code."""
        if IS_KNOWN:
            passes = binding.create_new_module_pass_manager()
            passes.add_strip_symbols_pass()
            passes.run(result.library._get_module_for_linking(), result.library.codegen._pass_builder(opt=0))
        return super().reduce(result._replace(type_annotation=""))

    def rebuild(self, target_context, reduced_data):
        if not IS_KNOWN:
            return super().rebuild(target_context, reduced_data)
        return CompileResult._rebuild(_Reader(target_context), *reduced_data)._replace(target_context=target_context)


class KernelCache(Cache):
    """The cache of one function, in Numba's protocol.

    Parameters
    ----------
    function : callable
    stamp : callable
        The stamp of the sources behind a file, given its path; computed when a kernel is first searched for, not at
        import.

    Attributes
    ----------
    carried : int
        How many of the kernels that were read came with the package.
    """

    def __init__(self, function, stamp=source_stamp):
        self._py_func, self._impl, self._stamp = function, _Impl(function), stamp
        self._source, self._name = source_of(function), repr(function)
        self.carried = 0
        self.enable()

    @functools.cached_property
    def name(self):
        """The beginning of the names of all its files."""
        file = Path(self._source).resolve()  # in the package, or a module written by `specialize`
        module = file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else Path(file.name)
        function = self._py_func.__qualname__.replace("<", "").replace(">", "")  # Windows
        return f"{'-'.join(module.with_suffix('').parts)}.{function}.{sys.implementation.cache_tag}"

    @property
    def cache_path(self):
        return cache_directory()

    def _file(self, key):
        """The file for a key; None if code compiled here must not be stored."""
        stamp = self._stamp(self._source) if self._enabled else None
        return stamp and f"{self.name}.{_digest(stamp, _compiler())}.{_digest(key)}.nbc"

    def _index_key(self, sig, codegen):
        return *super()._index_key(sig, codegen), WIDTH

    def load_overload(self, sig, target_context):
        """The stored function as Numba represents it; None if there is none.

        Numba's own method first loads all its types and functions, half of the time of a first call that compiles
        nothing. Compiled code needs only Numba's runtime.
        """
        if not IS_KNOWN:
            return super().load_overload(sig, target_context)
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig, target_context):
        found = next(filter(None, map(self._read, self._keys(sig, target_context.codegen()))), None)
        return found and self._impl.rebuild(target_context, found)

    def _keys(self, sig, codegen):
        """The keys to search for: this very processor, then its level."""
        key = types, (triple, *_), *rest = self._index_key(sig, codegen)
        return [key, *([(types, (triple, LEVEL, ""), *rest)] if LEVEL else [])]

    def _read(self, key):
        """The stored data of a key; None if there is none."""
        name = self._file(key)
        kept = name and read(name)
        if not kept:
            return None
        try:
            known, data = pickle.loads(kept.data)
        except (ImportError, AttributeError):  # of a user's function: a name in it no longer exists
            return None
        if known != key:
            return None
        self.carried += kept.path.parent == CARRIED
        return data

    def _save_overload(self, sig, result):
        if not result.library._finalized:  # `compiled.translation` saves again when there is machine code
            return
        key = self._index_key(sig, result.codegen)
        name = self._file(key)
        if name and self._impl.check_cachable(result):
            *parts, environments = self._impl.reduce(result)
            environments = environments if getattr(result.library, "knows_environments", True) else ()
            write(name, dumps((key, (*parts, environments))))
            keep_versions(self.name, VERSIONS_KEPT)

    def alone(self, sig, codegen):
        """Context in which no other process compiles the same signature; the second one waits for the file."""
        names = list(map(self._file, self._keys(sig, codegen)))
        return contextlib.nullcontext() if None in names or any(map(is_there, names)) else alone(names[0])

    def flush(self):
        keep_versions(self.name, 0)


def cached(dispatcher, function, stamp=source_stamp):
    """Let Numba's dispatcher of a function use this cache, unless the function is in no file."""
    if switched_on() and not function.__code__.co_filename.startswith("<"):
        dispatcher._cache = KernelCache(function, stamp)
    return dispatcher
