"""Cold and warm: what is waited for before the first result, with an empty cache and with a full one.

Each line is a process of its own, timed by the clock on the wall from its start to its end; cold ones have a new
directory for the cache. First numbers are interpreted (`liedyn.machine.program.handover`), so each line is also timed
with ``LIEDYN_INTERPRET=0``, which has it wait for the compiler. `liedyn warmup` compiles everything, and the lines
before it nearly as much: `python -m benchmarks --sections starting` takes a quarter of an hour.
"""
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from benchmarks.errors import BenchmarkError
from benchmarks.sections import ROOT
from benchmarks.tables import MISSING, markdown

TITLE = "Starting: cold and warm"
ROUNDS = 5
"""Of what is warm; cold lines are run once."""
QUICK = 10.0
"""Seconds; what takes longer is run once with an empty cache."""
LONGEST = 1500.0

PYTHON = (sys.executable, "-c")
LIEDYN = (*PYTHON, "import sys; from liedyn.look.cli import main; sys.exit(main())")
FIRST = "import liedyn as ld; r = ld.load('panda'); "
LINES = {
    "import numpy, numba": (*PYTHON, "import numpy, numba"),
    "import liedyn": (*PYTHON, "import liedyn"),
    "import, load the panda, ld.rnea once": (*PYTHON, FIRST + "ld.rnea(r, r.home, r.home, r.home)"),
    "the same, ld.forward_dynamics": (*PYTHON, FIRST + "ld.forward_dynamics(r, r.home, r.home, r.home)"),
    "the same, ld.rnea_derivatives": (*PYTHON, FIRST + "ld.rnea_derivatives(r, r.home, r.home, r.home)"),
    "the same, ld.rnea of 1,000 states": (
        *PYTHON, FIRST + "q = ld.random_configuration(r, 0, size=1000); ld.rnea(r, q, q, q)"),
    "import, load the five-bar, ld.linearize once": (
        *PYTHON, "import liedyn as ld; r = ld.load('five_bar'); ld.linearize(r, r.home, [0.0] * 4, [0.0] * 4)"),
    "import, load the loader, ld.close": (*PYTHON, "import liedyn as ld; r = ld.load('loader'); ld.close(r, r.home)"),
    "import, load the Stewart platform, ld.linearize once": (
        *PYTHON, "import liedyn as ld; r = ld.load('stewart'); ld.linearize(r, r.home, [0.0] * 24, [0.0] * 24)"),
    "import, load the five-bar, ld.simulate of 100,000 steps": (
        *PYTHON, "import liedyn as ld; r = ld.load('five_bar'); "
                 "ld.simulate(r, r.home, [0.0] * 4, 100.0, record=1000, progress=False)"),
    "README: liedyn linearize loader ...": (
        *LIEDYN, "linearize", "loader", "--independent", "boom", "bucket", "--velocity", "boom=0.4", "bucket=-0.3",
        "--check", "--save", "loader.npz", "--plot", "loader.png"),
}
WARMUP = {"liedyn warmup": (*LIEDYN, "warmup")}

TEXT = """Seconds on the wall, a process each. first: with an empty cache, median of {rounds} (smallest and largest);
compiled: the same, once, where `LIEDYN_INTERPRET=0` has it wait for the compiler; warm: kernels from the cache, median
of {rounds}. The import, and what is read at the first call, are part of each line. Calls of one state are interpreted
at first; many states at once, and runs, are compiled. `liedyn warmup` compiles all kernels, as many processes at a time
as there are cores.
"""


def measure(effort, progress):
    """Time every line.

    Returns
    -------
    list of dict
        "line", "first" (a list), "cold" (compiled), "warm" (a list).

    Raises
    ------
    BenchmarkError
        A command fails.
    """
    rows = []
    for name, command in LINES.items():
        with tempfile.TemporaryDirectory() as folder:
            progress(name)
            cold = _seconds(command, folder, LIEDYN_INTERPRET="0")
            warm = [_seconds(command, folder) for _ in range(ROUNDS)]
        first = [_first(command)]
        while first[0] < QUICK and len(first) < ROUNDS:
            first.append(_first(command))
        rows.append({"line": name, "first": first, "cold": cold, "warm": warm})
    for name, command in WARMUP.items():
        with tempfile.TemporaryDirectory() as folder:
            progress(name)
            rows.append({"line": name, "first": [], "cold": _seconds(command, folder),
                         "warm": [_seconds(command, folder)]})
    return rows


def _first(command):
    """Seconds with an empty cache."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a process may be compiling into it
        return _seconds(command, folder)


def _seconds(command, folder, **environment):
    unset = "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR", "LIEDYN_INTERPRET"
    given = {name: value for name, value in os.environ.items() if name not in unset}
    given |= {"LIEDYN_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)} | environment
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=LONGEST)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command[1:])}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return seconds


def report(rows):
    """The section in Markdown."""
    def text(values):
        if not values:
            return MISSING if values is None else ""  # of old numbers; warmup interprets nothing
        if len(values) == 1:
            return f"{values[0]:.2f}"
        return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"

    lines = [(row["line"], text(row.get("first")), f"{row['cold']:.1f}", text(row["warm"])) for row in rows]
    return f"{TEXT.format(rounds=ROUNDS)}\n{markdown(('', 'first [s]', 'compiled [s]', 'warm [s]'), lines)}\n"
