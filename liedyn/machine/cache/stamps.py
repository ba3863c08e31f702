"""Stamps: one hash of all sources that a compiled kernel depends on.

Numba's own cache looks at one file at a time and so returns stale code when a *callee* in another file changes.
"""
import ast
import contextlib
import dis
import hashlib
import os
import sys
from pathlib import Path

from liedyn.machine.cache.cache_files import PACKAGE, read, warn, write
from liedyn.machine.typed_decorators import once

_UNSTAMPED = f"{PACKAGE.name}.machine.cache"


def _edit(entry):
    """Time of last change and size of a file."""
    state = entry.stat()
    return state.st_mtime_ns, state.st_size


def _edits(directory):
    """`_edit` of each source file below a directory."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            if entry.is_dir() and not entry.name.startswith("_"):
                found |= _edits(entry.path)
            elif entry.name.endswith(".py"):
                found[entry.path] = _edit(entry)
    return found


_IMPORTED = _edits(PACKAGE)


def _as_imported(file):
    """True if a file exists and has not changed since the import; always true for files outside the package."""
    with contextlib.suppress(OSError):
        edit = _edit(file)
        return _IMPORTED.get(str(file), edit) == edit
    return False


@once
def source_stamp(path) -> str | None:
    """SHA-256 of the code in a file: of its bytecode and that of all it imports from the package.

    Docstrings, comments, line numbers and what only type checkers read do not count, nor do modules that are not
    imported, nor this folder. None if one of the files has changed since the package was imported (an edit, or an
    upgrade during a long run): the code in this process is then not the code in the files.
    """
    reached, waiting = set(), [Path(path).resolve()]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += _module(file)[1]
    if any(_module(file)[0] is None for file in reached):
        return None
    digest = hashlib.sha256()
    for file in sorted(reached):
        name = file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else Path(file.name)
        digest.update(name.as_posix().encode() + b"\0" + _module(file)[0])
    return digest.hexdigest()


@once
def _module(file):
    """(digest of the code in a file, files of the package that it imports); cached on disk by the file's content.

    The digest holds for one version of Python. It is None if the file has changed since the import.
    """
    if not _as_imported(file):
        warn(f"{file} has changed since it was imported")
        return None, []
    source = file.read_bytes()
    name = f"{hashlib.sha256(source).hexdigest()[:32]}.{sys.implementation.cache_tag}.module"
    kept = read(name)
    if kept is None:
        code, imported = hashlib.sha256(), set()
        typed = b"TYPE_CHECKING" in source  # a syntax tree doubles the time
        what = _Untyped().visit(ast.parse(source)) if typed else source
        _add_code(code, imported, compile(what, "", "exec", dont_inherit=True, optimize=2))  # 2: without docstrings
        digest, names = code.hexdigest(), sorted(filter(_file_of, imported))
        write(name, " ".join([digest, *names]).encode())
    else:
        digest, *names = bytes(kept.data).decode().split()
    return bytes.fromhex(digest), [_file_of(name) for name in names]


class _Untyped(ast.NodeTransformer):
    """Removes code for type checkers only: imports under TYPE_CHECKING, and annotations of functions."""

    def visit_If(self, node):
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node


@once
def _file_of(module):
    """The source file of a module of the package; None if it has no file, or one that does not count."""
    first, *rest = module.split(".")
    if first != PACKAGE.name or module == _UNSTAMPED or module.startswith(f"{_UNSTAMPED}."):
        return None
    place = PACKAGE.joinpath(*rest)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _add_code(digest, imported, code):
    """Add the instructions, names, constants and imports of a code object, and of code objects nested in it."""
    # takes a third of the time of a syntax tree; `modulefinder` uses it, too
    for module, level, names in dis._find_imports(code):
        if level == 0:
            parts = [f"{module}.{each}" for each in names or ()]
            imported |= {each if _file_of(each) else module for each in parts or [module]}
    digest.update(repr((code.co_name, code.co_names, code.co_varnames, code.co_freevars)).encode() + code.co_code)
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(digest, imported, constant)
        elif isinstance(constant, frozenset):  # its order differs from process to process
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())
