"""Code run in fresh processes, with no environment that concerns the cache but what a test gives."""
import os
import subprocess
import sys
from pathlib import Path

import liedyn as ld

ROOT = Path(ld.__file__).parents[1]
UNSET = ("LIEDYN_CACHE", "LIEDYN_CACHE_DIR", "NUMBA_CACHE_DIR", "LIEDYN_CHECK", "PYTHONDONTWRITEBYTECODE")

COUNT = """
from liedyn import jit
hits = sum(sum(k.stats.cache_hits.values()) for k in jit.KERNELS)
misses = sum(sum(k.stats.cache_misses.values()) for k in jit.KERNELS)
print(hits, misses)
"""


def process(code, package=ROOT, **environment):
    """A fresh process that has ended well, with `package` first on the path; what is None is not in its environment."""
    given = {k: x for k, x in os.environ.items() if k not in UNSET} | {"PYTHONPATH": str(package)} | environment
    result = subprocess.run([sys.executable, "-c", code], env={k: x for k, x in given.items() if x is not None},
                            capture_output=True, text=True, cwd=package)
    assert result.returncode == 0, result.stderr
    return result


def python(code, package=ROOT, **environment):
    """The words that a fresh process prints."""
    return process(code, package, **environment).stdout.split()
