"""What the times were measured on."""
import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from numba import config

from benchmarks.tables import MISSING

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pin", "casadi", "sympy", "mpmath", "mujoco", "drake", "exudyn")


def description():
    """The machine and the versions, by name.

    Returns
    -------
    dict of str to str
        A package that is not installed is "missing".
    """
    out = {"processor": _processor(), "compiled for": config.CPU_NAME or "this processor",
           "threads": f"1 or 2 of {os.cpu_count()}", "load at the start": _load(),
           "system": f"{platform.system()} {platform.machine()}", "Python": platform.python_version(),
           "date": datetime.date.today().isoformat(), "compiler": _compiler(), "liedyn": _liedyn()}
    return out | {name: _version(name) for name in PACKAGES}


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    vectors = [name for name in ("avx2", "avx512f") if name in values.get("flags", "").split()]
    return " ".join([values.get("model name", platform.machine()), *vectors])


def _compiler():
    try:
        return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return MISSING


def _load():
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except OSError:
        return "unknown"


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return MISSING


def _liedyn():
    """Version and commit of the sources that are timed, and whether they differ from it."""
    import liedyn

    def git(*words):
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short", "HEAD")
        changed = git("status", "--porcelain", "--", "liedyn", "robots")
    except (OSError, subprocess.CalledProcessError):
        return liedyn.__version__
    return f"{liedyn.__version__}, commit {commit}{' with uncommitted changes' if changed else ''}"
