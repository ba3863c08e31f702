"""First calls: interpreted at once, compiled in the background, the same numbers all the time."""
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from processes import _environment, interpreter

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
START = """
import os, sys, time, warnings
import numpy as np
import liedyn as ld
from liedyn.machine.program import handover
from numba.core import event

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
panda = ld.load("panda")
q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7))
energy = sys.modules["liedyn.mechanics.tree.energy"]

def compilations():
    return len({id(each.data["dispatcher"]) for _, each in compiled.buffer})

def is_direct(name="potential_energy"):
    return type(getattr(energy, f"{name}_direct")).__name__ == "builtin_function_or_method"
"""


def printed(code, folder, **environment):
    """The words that a fresh process with an empty cache prints."""
    given = {"LIEDYN_INTERPRET": "1", "LIEDYN_CACHE_DIR": str(folder)} | environment
    return interpreter(START + code, **given).stdout.split()


FIRST = """
five_bar = ld.load("five_bar")
x = ld.close(five_bar, five_bar.home), np.zeros(4), np.ones(4)
ld.rnea(panda, q, v, a), ld.forward_dynamics(five_bar, *x), ld.linearize(five_bar, *x).A
ld.crba(panda, np.array([q, v])), ld.aba(panda, list(q), v, a), ld.pose(panda, q, panda.body_names[-1])
print(compilations())
"""


def test_first_numbers_need_no_compiler(tmp_path):
    assert printed(FIRST, tmp_path, LIEDYN_BACKGROUND="0") == ["0"]


CHANGE = """
first, calls, end = ld.potential_energy(panda, q), 0, time.monotonic() + 300.0
while not is_direct() and time.monotonic() < end:
    assert abs(ld.potential_energy(panda, q) - first) <= 1e-13 * abs(first)
    calls += 1
    time.sleep(0.02)
for k in range(3):
    assert abs(ld.potential_energy(panda, q) - first) <= 1e-13 * abs(first)
print(is_direct(), calls > 1, compilations(), handover.CHOOSER.background._process.poll())
"""


def test_compiled_code_takes_over(tmp_path):
    """It comes from another process; nothing is compiled in this one."""
    assert printed(CHANGE, tmp_path) == ["True", "True", "0", "None"]


@pytest.mark.parametrize("environment", [{"LIEDYN_BACKGROUND": "0"}, {"LIEDYN_CACHE": "0"}])
def test_what_takes_long_is_compiled_here(tmp_path, environment):
    code = """
handover.LONGEST = 0.0
first = ld.potential_energy(panda, q)
print(compilations() > 0, ld.potential_energy(panda, q) == first)
"""
    assert printed(code, tmp_path, **environment) == ["True", "True"]


def test_nobody_waits_for_ever(tmp_path):
    """Without another process a kernel that is called again and again is compiled when that has taken its time."""
    code = """
handover.LONGEST = 0.05
for k in range(10_000):
    ld.potential_energy(panda, q)
    if is_direct():
        break
print(is_direct(), k > 3)
"""
    assert printed(code, tmp_path, LIEDYN_BACKGROUND="0") == ["True", "True"]


def test_switched_off(tmp_path):
    code = "ld.potential_energy(panda, q)\nprint(compilations() > 0, handover.CHOOSER is not None)"
    assert printed(code, tmp_path, LIEDYN_INTERPRET="0") == ["True", "False"]


def test_a_command_that_compiles_is_not_interpreted(tmp_path):
    code = "handover.compile_always()\nld.potential_energy(panda, q)\nprint(compilations() > 0, is_direct())"
    assert printed(code, tmp_path) == ["True", "True"]


def test_several_threads(tmp_path):
    code = """
import threading
found, errors = [], []
def work(k):
    try:
        found.append((ld.rnea(panda, q, v, a), ld.crba(panda, q), ld.linearize(panda, q, v, a).A))
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
[each.start() for each in threads], [each.join() for each in threads]
same = all(np.array_equal(x, y) for each in found for x, y in zip(each, found[0]))
print(len(found), errors, same, compilations())
"""
    assert printed(code, tmp_path, LIEDYN_BACKGROUND="0") == ["6", "[]", "True", "0"]


@linux
def test_a_forked_child(tmp_path):
    """It has no process of its own, and leaves that of its parent alone."""
    code = """
first = ld.potential_energy(panda, q)
if child := os.fork():
    status = os.waitpid(child, 0)[1]
    print(status, handover.CHOOSER.background._process.poll(), ld.potential_energy(panda, q) == first)
else:
    same = ld.potential_energy(panda, q) == first and ld.kinetic_energy(panda, q, v) > 0.0
    os._exit(0 if same and handover.CHOOSER.background._process is None else 1)
"""
    assert printed(code, tmp_path) == ["0", "None", "True"]


def test_a_background_process_that_dies_is_told(tmp_path):
    code = """
first = ld.potential_energy(panda, q)
handover.CHOOSER.background._process.kill()
handover.CHOOSER.background._process.wait()
with warnings.catch_warnings(record=True) as noted:
    warnings.simplefilter("always")
    time.sleep(0.1)
    assert ld.potential_energy(panda, q) == first and ld.kinetic_energy(panda, q, v) > 0.0
print(*[each.category.__name__ for each in noted], "ended with status -9" in str(noted[0].message))
"""
    assert printed(code, tmp_path) == ["CacheWarning", "True"]


def test_no_place_for_compiled_kernels(tmp_path):
    """Then no process is started, as what it compiles could not be found."""
    (tmp_path / "file").touch()
    code = """
handover.LONGEST = 0.05
for k in range(10_000):
    ld.potential_energy(panda, q)
    if is_direct():
        break
print(handover.CHOOSER.background._process, is_direct())
"""
    assert printed(code, tmp_path / "file") == ["None", "True"]


def _has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, None])
def test_the_background_process_ends_with_its_parent(tmp_path, how):
    """Killed, interrupted, or at its end; also while a child of the parent holds its end of the pipe."""
    code = START + """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start processes in the background that ignore it
ld.linearize(panda, q, v, a)
if os.fork() == 0:
    time.sleep(30.0)
    os._exit(0)
print(handover.CHOOSER.background._process.pid, flush=True)
time.sleep(0.0 if sys.argv[1:] == ["end"] else 60.0)
"""
    given = _environment(os.getcwd(), {"LIEDYN_INTERPRET": "1", "LIEDYN_CACHE_DIR": str(tmp_path)})
    given["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = subprocess.Popen([sys.executable, "-c", code, *["end"] * (how is None)], env=given, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    pid = int(process.stdout.readline())
    try:
        assert not _has_ended(pid)
        if how:
            process.send_signal(how)
        process.wait(120.0)
        end = time.monotonic() + 60.0
        while not _has_ended(pid) and time.monotonic() < end:
            time.sleep(0.05)
        assert _has_ended(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert not list(tmp_path.rglob("*.tmp"))
