"""The parts of the report, and how they are measured: each in a process of its own, so that none disturbs another."""
import importlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.errors import BenchmarkError

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ("trees", "batches", "specialised", "mechanisms", "c_code", "loops", "undeclared", "shares", "growth",
            "study", "linkages", "second_derivatives", "curvature", "stepping", "reaching", "momenta", "gradients",
            "optimal_motion", "nlp_solvers", "planning", "reaches", "gpu", "starting")
"""Modules of this package with TITLE, measure(effort, progress), report(results), and some with target_pairs(results)
or plot(results, folder)."""
QUICK = ("trees", "batches", "loops", "undeclared", "shares", "growth", "study", "linkages", "curvature",
         "stepping", "reaching", "momenta", "gradients", "planning", "reaches")
ON_REQUEST = ("gpu", "starting")
"""Measured only when named: one needs a GPU, the other takes minutes to compile everything again."""
LONGEST = {"starting": 3600.0, "second_derivatives": 1200.0}
USUAL_LONGEST = 600.0
"""Seconds after which a section is given up: those that compile much have more."""
MAIN = ("trees", "batches", "loops")
"""Those that are measured for a level of processors, too."""


def module(name):
    """The module of a section."""
    return importlib.import_module(f"benchmarks.{name}")


def measured_apart(name):
    """Results of a section measured in a process of its own.

    Raises
    ------
    BenchmarkError
        The process fails; the message is its last line.
    """
    longest = LONGEST.get(name, USUAL_LONGEST)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.json"
        command = [sys.executable, "-m", "benchmarks", "--sections", name, "--json", str(target), "--here"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        watchdog = threading.Timer(longest, process.kill)
        watchdog.start()
        message = "no message"
        for line in process.stderr:
            if line.startswith("..."):
                print(line, end="", file=sys.stderr, flush=True)  # what is timed next
            elif line.strip():
                message = line.strip()
        status = process.wait()
        watchdog.cancel()
        if status or not target.exists():
            raise BenchmarkError(f"{name}: {message} (exit status {status}; at most {longest:.0f} s)")
        return json.loads(target.read_text())["sections"][name]


def measured_here(name, effort, progress):
    """Results of a section measured in this process, as they come back from JSON."""
    start = time.perf_counter()
    results = json.loads(json.dumps(module(name).measure(effort, progress)))
    return {"results": results, "seconds": round(time.perf_counter() - start, 1)}
