"""A wheel that carries kernels: made, installed, and used where nothing may be compiled. Takes a minute; `-m wheel`."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, interpreter

from liedyn.look.cli.wheel import build
from liedyn.machine.compiled.cpu_targets import LEVEL

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(sys.platform != "linux" or LEVEL is None, reason="wheels carry kernels for levels of x86-64"),
]
RNEA = """
import liedyn as ld
robot = ld.load("panda")
print(ld.rnea(robot, robot.home, robot.home, robot.home)[1])
"""
LINEARIZE = """
robot = ld.load("five_bar")
print(ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4).A[2, 0])
"""
COUNTED = """
import time
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    exec({program!r})
print(sum(each.is_start for _, each in recorder.buffer), time.process_time())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder in which a wheel with the kernels of both calls, for the level of this processor, is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "program.py").write_text(RNEA + LINEARIZE)
    wheel = build(ROOT, folder / "dist", [LEVEL], folder / "program.py")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target",
               folder / "installed", wheel]
    subprocess.run(command, check=True)
    return folder / "installed"


def run(program, package, cache, **environment):
    """The numbers that a program prints, functions compiled, seconds of the processor."""
    kept = {"LIEDYN_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": None, "NUMBA_CPU_FEATURES": None} | environment
    *printed, compiled, seconds = interpreter(COUNTED.format(program=program), package, **kept).stdout.split()
    return [float(x) for x in printed], int(compiled), float(seconds)


def test_nothing_is_compiled_or_written(installed, tmp_path):
    results, compiled, seconds = run(RNEA + LINEARIZE, installed, tmp_path)
    assert compiled == 0 and not any(tmp_path.iterdir())
    here, _, _ = run(RNEA + LINEARIZE, ROOT, os.environ.get("LIEDYN_CACHE_DIR"))
    assert results == pytest.approx(here, rel=1e-12)
    # imports and loading included; other processes only ever add
    assert min(seconds, *(run(RNEA + LINEARIZE, installed, tmp_path)[2] for _ in range(2))) < 1.5


def test_another_level_is_compiled_as_ever(installed, tmp_path):
    other = "x86-64-v3" if LEVEL == "x86-64-v4" else "x86-64"
    expected, _, _ = run(RNEA, installed, tmp_path)
    for times in (1, 0):
        results, compiled, _ = run(RNEA, installed, tmp_path, NUMBA_CPU_NAME=other, NUMBA_CPU_FEATURES="")
        assert (compiled > 0) == times and results == pytest.approx(expected, rel=1e-12)


def test_other_sources_are_compiled_as_ever(installed, tmp_path):
    home = tmp_path / "copy"
    shutil.copytree(installed, home, ignore=shutil.ignore_patterns("__pycache__"))
    expected, _, _ = run(RNEA, home, tmp_path / "cache")
    algebra = home / "liedyn/lie/algebra.py"
    text, old = algebra.read_text(), "def scale(c, a):\n"
    algebra.write_text(text.replace('"""', '"""Another sentence. ', 1))
    assert run(RNEA, home, tmp_path / "cache")[:2] == (expected, 0)
    assert text.count(old) == 1, "the helper this test changes has changed"
    algebra.write_text(text.replace(old, old + "    c = 2.0 * c\n"))
    results, compiled, _ = run(RNEA, home, tmp_path / "cache")
    assert compiled > 0 and results != expected


def test_no_folder_of_the_machine_is_named(installed):
    kernels = list((installed / "liedyn/_kernels").glob("*.nbc"))
    assert kernels
    for folder in {str(installed.parent), str(Path.home()), str(ROOT), sys.prefix, *filter(None, sys.path)}:
        assert not [path.name for path in kernels if f"{folder}/".encode() in path.read_bytes()], folder
