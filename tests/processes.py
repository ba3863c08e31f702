"""Code run in fresh processes, with no environment that concerns the cache but what a test gives."""
import atexit
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import liedyn as ld
from liedyn.machine.cache import cache_files as files

ROOT = Path(ld.__file__).parents[1]
UNSET = ("LIEDYN_CACHE", "LIEDYN_CACHE_DIR", "NUMBA_CACHE_DIR", "LIEDYN_CHECK", "PYTHONDONTWRITEBYTECODE")
KEPT = {name: os.environ.get(name) for name in UNSET[:3]}
"""The environment of a process that uses the cache of the tests: what they have compiled, it finds."""

COUNT = """
from liedyn.machine.compiled import jit
hits = sum(sum(k.stats.cache_hits.values()) for k in jit.KERNELS)
misses = sum(sum(k.stats.cache_misses.values()) for k in jit.KERNELS)
print(hits, misses)
"""


def _environment(package, given):
    here = {k: x for k, x in os.environ.items() if k not in UNSET} | {"PYTHONPATH": str(package)} | given
    return {k: x for k, x in here.items() if x is not None}


def interpreter(code, package=ROOT, **environment):
    """A new interpreter that has ended well, with `package` first on the path.

    What is None is not in its environment.
    """
    result = subprocess.run([sys.executable, "-c", code], env=_environment(package, environment),
                            capture_output=True, text=True, cwd=package)
    assert result.returncode == 0, result.stderr
    return result


@functools.cache
def _server():
    # with threads of its own it must not fork
    environment = _environment("", {"PYTHONPATH": None, "OPENBLAS_NUM_THREADS": "1"})
    server = subprocess.Popen([sys.executable, Path(__file__).with_name("fork_server.py")], env=environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(server.communicate)
    return server


def process(code, package=ROOT, **environment):
    """The same, but where the system can fork the process comes with Numba ready to compile: most of a start.

    Everything of liedyn is new to it. What an interpreter draws at its start, the seed of hashes, and the processor for
    which Numba compiles are those of the process that forks.
    """
    if not hasattr(os, "fork"):
        return interpreter(code, package, **environment)
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        out.touch()
        err.touch()
        job = {"code": code, "folder": str(package), "environment": _environment(package, environment),
               "files": [os.devnull, str(out), str(err)]}
        server = _server()
        print(json.dumps(job), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        result = subprocess.CompletedProcess(code, status, out.read_text(), err.read_text())
    assert result.returncode == 0, result.stderr
    return result


def with_kernels(package=ROOT, cache=None):
    """Environment for this package or a copy of it, in which a cache begins with all kernels of the tests: what is the
    same in both, stamp and all, is not compiled again. Programs of robots and kernels of users are not among them."""
    cache = Path(cache or os.environ.get("LIEDYN_CACHE_DIR") or package / "cache")
    folder = cache / files.folder_of(package / "liedyn")
    folder.mkdir(parents=True, exist_ok=True)
    there = {file.name for file in folder.iterdir()}
    for file in (file for place in files.directories() for file in place.glob("*.*") if file.name not in there):
        try:
            os.link(file, folder / file.name)
        except OSError:  # on another disk, or removed by a process that is tidying up
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(file, folder / file.name)
    return {"LIEDYN_CACHE_DIR": str(cache)}


def python(code, package=ROOT, **environment):
    """The words that a fresh process prints."""
    return process(code, package, **environment).stdout.split()
