"""The parts of the report, and how they are measured: each in a process of its own, so that none disturbs another."""
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.errors import BenchmarkError

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ("trees", "batches", "specialised", "loops", "growth", "study", "linkages", "starting")
"""Modules of this package with TITLE, measure(effort, progress), report(results), and some with target_pairs(results)
or plot(results, folder)."""
QUICK = ("trees", "batches", "loops", "growth", "study", "linkages")
ON_REQUEST = ("starting",)
"""Measured only when named: it takes minutes to compile everything again."""
LONGEST = 900.0
"""Seconds after which a section is given up."""


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
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.json"
        command = [sys.executable, "-m", "benchmarks", "--sections", name, "--json", str(target), "--here"]
        try:
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"{name} takes more than {LONGEST:.0f} s") from None
        if done.returncode or not target.exists():
            lines = [line for line in done.stderr.splitlines() if not line.startswith("...")] or ["no message"]
            raise BenchmarkError(f"{name}: {lines[-1]} (exit status {done.returncode})")
        return json.loads(target.read_text())["sections"][name]


def measured_here(name, effort, progress):
    """Results of a section measured in this process, as they come back from JSON."""
    start = time.perf_counter()
    results = json.loads(json.dumps(module(name).measure(effort, progress)))
    return {"results": results, "seconds": round(time.perf_counter() - start, 1)}
