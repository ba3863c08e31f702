"""What holds for all tests: how they share a machine, and kernels that most of them need."""
import gc
import os
import subprocess
import sys
import time

import pytest

# The threads of linear algebra wait for each other in loops: on small matrices, beside another worker, that costs up to
# thirty times what the arithmetic does. It has to be said before NumPy is imported; workers and processes inherit it.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

os.environ.setdefault("LIEDYN_INTERPRET", "0")
"""What is computed must not depend on how far a process in the background has come."""

gc.set_threshold(20_000, 10, 10)
"""What compilers leave behind is large and stays: walking over it again and again takes a tenth of the time."""
WARMED = "LIEDYN_TESTS_WARMED"
"""What `liedyn warmup` has printed before the workers began: a test of the command line looks there first."""
WARMED_AT = "LIEDYN_TESTS_WARMED_AT"
"""The time when it had ended: what is in the cache later may be from tests."""
LONG = ["docs", "additions", "benchmarks", "types", "notebooks", "interpreted", "specialization",
        "specialized_mechanisms", "cli", "first_calls", "fmu", "large", "starting", "casadi", "jax"]
"""Files that take long, the longest first: what is begun last should be short, so that workers end together."""


def pytest_collection_modifyitems(items):
    places = {f"test_{name}.py": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))


@pytest.fixture(scope="module", autouse=True)
def collections_pass_over_what_is_there():
    """What files before have left (compilers, results of fixtures) is no longer looked at when memory is collected."""
    gc.freeze()


def pytest_sessionstart(session):
    """Before workers begin with all files: kernels that many of them need are compiled, by as many processes.

    Otherwise each worker would compile them, and most processes that tests start. With full caches it takes seconds.
    """
    config = session.config
    workers = getattr(config.option, "numprocesses", None)
    whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.collectonly
    if workers and whole and os.environ.get("LIEDYN_CACHE") != "0":
        command = [sys.executable, "-m", "liedyn", "warmup", "--jobs", str(workers)]
        os.environ[WARMED] = subprocess.run(command, cwd=config.rootpath, stdout=subprocess.PIPE, text=True).stdout
        os.environ[WARMED_AT] = str(time.time())
        print("\nkernels that many tests need:", os.environ[WARMED])
