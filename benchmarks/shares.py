"""Default calls at random closed states: how many take much longer than the fastest one does."""
import time
import warnings

import numpy as np

import liedyn as ld
from benchmarks import robots
from benchmarks.tables import markdown

TITLE = "Shares of random states"
MACHINES = (*(name for name in ld.bundled()), "carrier10+1", "carrier18+3", "carrier6+24", "ladder12", "four_bars20")
QUICK_MACHINES = "five_bar", "stewart"
CALLS = {"f": ld.forward_dynamics, "A, B, f": ld.linearize}
STATES, CALLS_EACH = 100, 5
MANY, ALLOWED = 3.0, 0.03
"""A state is slow if it takes more than MANY times the fastest one; no more than this share should be."""

TEXT = f"""Microseconds per single default call from Python, one thread, the fastest of {CALLS_EACH} calls at each of
{STATES} random closed states (`ld.close` from normal steps of 0.2 rad about home, with random velocities). slow: the
share that takes more than {MANY:.0f} times the fastest. warned: the share at which a `ConditionWarning` says that fewer
than six digits are left.
"""
HEADING = "mechanism", "nv", "result", "fastest", "median", "slowest", "slow", "warned"


def measure(effort, progress):
    """Time every closed machine.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_MACHINES if effort.quick else MACHINES:
        robot = robots.named(name)
        if robot.loop_names:
            progress(name)
            rows += _rows(name, robot, 8 if effort.quick else STATES)
    return rows


def _rows(name, robot, count):
    states = list(zip(*robots.moving_states(robot, count, np.random.default_rng(6))))
    for what, function in CALLS.items():
        times, warned = [], 0
        for state in states:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ld.ConditionWarning)
                function(robot, *state)
            warned += any(issubclass(each.category, ld.ConditionWarning) for each in caught)
            times.append(min(_time(function, robot, state) for _ in range(CALLS_EACH)))
        yield {"robot": name, "nv": robot.nv, "what": what,
               "timings": {"each": (float(np.median(times)), min(times), max(times))},
               "slow": float(np.mean(np.array(times) > MANY * min(times))), "warned": warned / count}


def _time(function, robot, state):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.thread_time()
        function(robot, *state)
        return time.thread_time() - start


def report(rows):
    """The section in Markdown."""
    lines = []
    for row in rows:
        median, fastest, slowest = (f"{1e6 * x:.1f}" for x in row["timings"]["each"])
        lines.append((row["robot"], str(row["nv"]), row["what"], fastest, median, slowest, f"{row['slow']:.0%}",
                      f"{row['warned']:.0%}"))
    return f"{TEXT}\n{markdown(HEADING, lines)}\n"
