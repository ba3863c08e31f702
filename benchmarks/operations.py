"""Floating-point operations of compiled code, counted while it runs.

Every block of every function that Numba compiles after :func:`count_from_now` also adds the number of its additions,
subtractions, multiplications, divisions, fused operations and square roots to a counter; an operation on a register of
W numbers counts W. The code is the one that is timed, before LLVM simplifies it: an operation that it finds to be
needless counts as well. Sines and cosines count as the polynomials they are.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from numba.core import cgutils

COUNTER = ctypes.c_int64()
_FLOAT = re.compile(r"= (?:tail )?(?:(?P<op>fadd|fsub|fmul|fdiv)\b|call [^@]*@\"?llvm\.(?P<call>fma|fmuladd|sqrt)\.)")
_LANES = re.compile(r"<(\d+) x double>")
_LABEL = re.compile(r"^[\w.$\"-]+:")
_TERMINATOR = re.compile(r"^\s*(ret|br|switch|unreachable|invoke|indirectbr|resume)\b")
_WEIGHT = {"fma": 2, "fmuladd": 2}


def count_from_now():
    """Count in all code that is compiled from now on; there is no way back: use a process of its own."""
    original = cgutils.normalize_ir_text
    cgutils.normalize_ir_text = lambda text: original(counted(text))


def operations(function, *arguments):
    """How many a call takes; it is called twice, the first time to be compiled."""
    function(*arguments)
    COUNTER.value = 0
    function(*arguments)
    return COUNTER.value


def counted(text):
    """LLVM's text of a module, with the counter in it."""
    address = f"inttoptr (i64 {ctypes.addressof(COUNTER)} to ptr)"
    out, inside, number, flops = [], False, 0, 0
    for line in text.split("\n"):
        if line.startswith("define "):
            inside = True
        if inside and _LABEL.match(line):
            flops = 0
        found = _FLOAT.search(line) if inside else None
        if found:
            lanes = _LANES.search(line)
            flops += _WEIGHT.get(found["call"], 1) * (int(lanes[1]) if lanes else 1)
        if inside and flops and _TERMINATOR.match(line):
            old, new = f"%\"flops.{number}\"", f"%\"flops.{number + 1}\""
            out += [f"  {old} = load i64, ptr {address}", f"  {new} = add i64 {old}, {flops}",
                    f"  store i64 {new}, ptr {address}"]
            number, flops = number + 2, 0
        if line.startswith("}"):
            inside = False
        out.append(line)
    return "\n".join(out)


def of_linearization(names):
    """Operations of f, of A, B and f, and of central differences for several robots, in a process of its own.

    Parameters
    ----------
    names : sequence of str
        As :func:`benchmarks.robots.named` takes them.

    Returns
    -------
    dict of str to dict
        "f", "exact" and "differences" by name; empty if the process fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.operations", *names], cwd=Path(__file__).resolve().parents[1],
        env=os.environ | {"LIEDYN_CACHE": "0"}, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def _main(names):
    count_from_now()
    from benchmarks import loops, robots

    out = {}
    for name in names:
        robot = robots.named(name)
        q, v, tau = robots.moving_states(robot, 1, np.random.default_rng(1))
        given, actuators, p = loops.given(robot, q, v, tau)
        packed, f_ext = given[0], given[4]
        result = np.empty((p, 2 * p + actuators.shape[1]))
        out[name] = {
            "f": operations(loops.accelerations_loop, packed, q, v, tau, f_ext, loops.RANK_TOLERANCE),
            "exact": operations(loops.linearize_loop, *given, actuators, loops.RANK_TOLERANCE),
            "differences": operations(loops.differences_loop, *given, actuators, loops.RANK_TOLERANCE,
                                      loops.TIMED_STEP, 1.0, result)}
    print(json.dumps(out))


if __name__ == "__main__":
    _main(sys.argv[1:])
