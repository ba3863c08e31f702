"""Ctrl-C in long calls: all of them end within a second, and keep what they have computed where there is a result."""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from interrupts import CALLS
from processes import ROOT

KEEP = {"simulate", "simulate with a Python function", "simulate, adaptive", "simulate side by side",
        "simulate in threads", "Stepper.advance", "ddp"}
"""Calls whose exception carries a result, or that leave one."""
AFTER = 0.4
"""Seconds that a call is let run: several slices."""
SOON = 1.0
"""Seconds within which it has to end: of the clock, or of the processor for those who share it with others."""
DEAF = 30.0

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes under Windows are interrupted in another way")


def processor_time(process):
    """Seconds that a process has used; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def begun(names):
    """A process that makes these calls, and what it says."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parents[1])]),
                                "NUMBA_NUM_THREADS": "2"}
    return subprocess.Popen([sys.executable, Path(__file__).parents[1] / "interrupts.py", *names], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupted(process):
    """How long a call takes to end, by both clocks, and how much is kept; None where it does not end so."""
    time.sleep(AFTER)
    used, begun = processor_time(process), time.perf_counter()
    process.send_signal(signal.SIGINT)
    too_late = threading.Timer(DEAF, process.kill)
    too_late.start()
    line = process.stdout.readline()
    too_late.cancel()
    if not line.startswith("ended "):
        return None
    cpu, kept = line.split()[-2:]
    return min(time.perf_counter() - begun, (float(cpu) - used) / 2), int(kept)  # of two threads


@pytest.fixture(scope="module")
def ended():
    """By name of a call what `interrupted` found, or what the process said at its end.

    Python itself loses an interrupt that comes while it calls back from a weak reference, and says so: such a call is
    made once more.
    """
    found, lost = {}, set()
    while len(found) < len(CALLS):
        process = begun([name for name in CALLS if name not in found])
        for line in process.stdout:
            name = line.removeprefix("begins ").strip()
            found[name] = interrupted(process)
            if found[name] is None:
                break
        _, said = process.communicate()
        if len(found) < len(CALLS) or None in found.values():
            name = next((name for name in CALLS if found.get(name) is None), None)
            if "Exception ignored in" in said and name not in lost:
                lost.add(name)
                found.pop(name, None)
            else:
                found[name] = said[-1000:] or "deaf"
    return found


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c(ended, name):
    assert not isinstance(ended[name], str), ended[name]
    seconds, kept = ended[name]
    assert seconds < SOON
    assert kept > 1 or name not in KEEP
