"""Compilation of kernels: decorators for helpers that vanish into their callers and for cached kernels.

Numba counts references to every array a function is given, also in helpers that are inlined, wherever the function
branches: atomic increments that take longer than the arithmetic of a joint. Where no array is made and none returned,
nothing needs to be counted: that is `inline` and `kernel_in_place`, against `inline_array` and `kernel`.

Numba's own cache looks at one file at a time and so returns stale code when a *callee* in another file changes, and it
raises at import when no directory is writable. `kernel` therefore stamps its cache with the code of its module and of
all that this one imports from the package, and falls back to compiling in memory. Environment: ``LIEDYN_CACHE=0``
switches the cache off; ``LIEDYN_CACHE_DIR`` (or Numba's own ``NUMBA_CACHE_DIR``) says where it lies; by default it is
the package's ``__pycache__``, or the user's cache directory when the package is read-only.
"""
import ast
import functools
import hashlib
import os
import tempfile
from pathlib import Path

import scipy.linalg.cython_blas  # noqa: F401  Numba looks for it at the first dispatch of a process: 0.13 s of a first call
from llvmlite import ir
from numba import njit, typeof, types
from numba.core.caching import Cache, CompileResultCacheImpl, IndexDataCacheFile
from numba.core.errors import TypingError
from numba.extending import intrinsic

PACKAGE = Path(__file__).resolve().parent
_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}

inline_array = functools.partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)
"""A small helper that makes or returns arrays: LLVM inlines it into its callers, so it needs no cache."""

inline = functools.partial(inline_array, _nrt=False)
"""A small helper on numbers and tuples: inlined, it costs nothing. Must not return an array: nobody would own it."""

inline_algebra = functools.partial(inline, fastmath={"contract", "nnan", "nsz"})
"""A helper that adds and multiplies, and never compares: of a zero known when compiling, 0 x and x + 0 vanish."""


@functools.cache
def source_stamp(path) -> str:
    """SHA-256 over what the code in a file means: its own bytecode and that of all it imports from the package.

    Docstrings, comments and the places of lines do not count, and neither do modules that are not imported.
    """
    reached, waiting = set(), [Path(path).resolve()]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += _module(file)[1]
    digest = hashlib.sha256()
    for file in sorted(reached):
        name = file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else Path(file.name)
        digest.update(name.as_posix().encode() + b"\0" + _module(file)[0])
    return digest.hexdigest()


@functools.cache
def _module(file):
    """(digest of the code in a file, files of the package that it imports); kept on disk by the file's content."""
    source = file.read_bytes()
    key, directory = hashlib.sha256(source).hexdigest(), cache_directory()
    kept = directory and directory / f"{key[:32]}.module"
    try:
        digest, *names = kept.read_text().split()
        return bytes.fromhex(digest), [_file_of(name) for name in names]
    except (AttributeError, OSError, ValueError):  # no cache, not there, or not written to its end
        digest, names = _code_and_imports(source)
    if kept:
        _write(kept, " ".join([digest.hex(), *names]) + "\n")
    return digest, [_file_of(name) for name in names]


def _code_and_imports(source):
    tree, imported = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            imported |= {name if _file_of(name := f"{node.module}.{each.name}") else node.module
                         for each in node.names}
        elif isinstance(node, ast.Import):
            imported |= {each.name for each in node.names}
    digest = hashlib.sha256()
    _add_code(digest, compile(tree, "", "exec", dont_inherit=True, optimize=2))  # 2: without docstrings
    return digest.digest(), sorted(filter(_file_of, imported))


def _write(path, text):
    """All of a file or nothing: another process may be reading it."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError:
        pass  # what cannot be kept is worked out again


@functools.cache
def _file_of(module):
    """The source file of a module of the package; None if it is none."""
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        return None
    place = PACKAGE.joinpath(*rest)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _add_code(digest, code):
    """Add the instructions, names and constants of a code object, and of those inside it."""
    digest.update(repr((code.co_name, code.co_names, code.co_varnames, code.co_freevars)).encode() + code.co_code)
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


@functools.cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept; None when the cache is switched off or nothing is writable."""
    if os.environ.get("LIEDYN_CACHE", "1") == "0":
        return None
    chosen = os.environ.get("LIEDYN_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    # outside the package, two installations must not overwrite each other's kernels
    here = "liedyn_" + hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    candidates = [Path(chosen) / here] if chosen else [PACKAGE / "__pycache__", user / "liedyn" / here]
    return next((path for path in candidates if _writable(path)), None)


class _Locator:
    """Numba's cache locator protocol, for one kernel."""

    def __init__(self, py_func, py_file):
        self._py_file = py_file
        path = Path(py_file).resolve()  # inside the package, or a module that `specialize` has written
        module = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.name)
        self._disambiguator = "-".join(module.with_suffix("").parts)

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, py_file)

    def get_cache_path(self):
        return str(cache_directory())

    def ensure_cache_path(self):
        os.makedirs(self.get_cache_path(), exist_ok=True)

    def get_source_stamp(self):
        return None  # not at import: `_Index` works it out when it is needed

    def get_disambiguator(self):
        return self._disambiguator


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Index(IndexDataCacheFile):
    """The list of what is cached of one kernel, with the stamp of its sources."""

    def __init__(self, cache_path, filename_base, py_file):
        super().__init__(cache_path, filename_base, None)
        self._py_file = py_file

    _source_stamp = property(lambda self: source_stamp(self._py_file), lambda self, given: None)


class _KernelCache(Cache):
    _impl_class = _KernelCacheImpl

    def __init__(self, py_func):
        super().__init__(py_func)
        self._cache_file = _Index(self._cache_path, self._impl.filename_base, self._impl.locator._py_file)


KERNELS = []
"""Every kernel of the library, in the order of definition (for `liedyn warmup`, and tests that count compilations)."""


def kernel(function=None, **options):
    """Compile lazily (nothing at import), cache on disk, and raise on nothing: kernels divide as NumPy does."""
    if function is None:
        return functools.partial(kernel, **options)
    dispatcher = njit(**_OPTIONS, **options)(function)
    if cache_directory() is not None:
        dispatcher._cache = _KernelCache(function)
    if function.__module__.split(".")[0] == "liedyn":
        KERNELS.append(dispatcher)
    return dispatcher


kernel_in_place = functools.partial(kernel, _nrt=False)
"""A kernel that works in the arrays it is given; it makes none and returns none."""


def address_of(dispatcher, *arguments):
    """Address of a kernel for arguments like these, compiled or found in the cache."""
    return address_for(dispatcher, tuple(typeof(x) for x in arguments))


def address_for(dispatcher, kinds):
    """The same, for arguments of these Numba types."""
    result = _compiled(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


def c_address(dispatcher, kinds):
    """Address of a kernel for arguments of these Numba types as a function of C, compiled or found in the cache."""
    result = _compiled(dispatcher, kinds)
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


def call_at(context, builder, address, result, kinds, values):
    """Code that calls the kernel at an address, for Numba types of its result and of the arguments `values`."""
    convention = context.call_conv
    callee = builder.inttoptr(address, ir.PointerType(convention.get_function_type(result, kinds)))
    return convention.call_function(builder, callee, result, kinds, values)[1]


def apart(kinds, result):
    """What calls kernels of one signature at their addresses, in compiled code: ``call(address, arguments)``.

    Numba compiles all that a kernel calls once more with it. Of the largest ones once is enough, and only of those that
    a robot needs. `kinds` are the Numba types of the arguments, which come as a tuple; `result` is the type of what
    comes back, or the kernel that returns it.
    """
    @intrinsic
    def call(typing, address, arguments):
        if tuple(arguments) != kinds:
            raise TypingError(f"arguments {tuple(arguments)} where {kinds} are taken")
        returned = result if isinstance(result, types.Type) else _compiled(result, kinds).signature.return_type

        def codegen(context, builder, signature, values):
            address, given = values
            taken = [builder.extract_value(given, k) for k in range(len(kinds))]
            return call_at(context, builder, address, returned, kinds, taken)

        return returned(address, arguments), codegen

    return call


def _compiled(dispatcher, kinds):
    dispatcher.compile(kinds)
    return dispatcher.overloads[kinds]
