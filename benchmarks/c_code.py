"""C by `ld.generate_c` against C that CasADi generates, and Pinocchio's C++: time, size and stack."""
import ctypes
import functools
import hashlib
import subprocess
from pathlib import Path

import numpy as np

import liedyn as ld
from benchmarks import generated, robots
from benchmarks.errors import MissingPeer, require_agreement
from benchmarks.native import MARCH, cache_directory, compile_to, compiler
from benchmarks.native.peers import Generated, Tree
from benchmarks.tables import markdown, microseconds, quotient, ratio
from benchmarks.targets import NAMES, mark
from benchmarks.timing import Contender, race
from benchmarks.trees import states

TITLE = "Generated C"
ROBOTS = ("panda", "ur5")
PEERS = ("native", "CasADi", "Pinocchio, C", "liedyn")
HESSIANS = ("rnea_hessian", "aba_hessian")
TOLERANCE = 1e-8
FLAGS = ("-std=c99", "-O3", MARCH, "-fPIC", "-shared", "-w")
SMALL = ("-std=c99", "-Os", "-fPIC", "-nostartfiles", "-shared")
ROOM = 1 << 18
"""Bytes of the stack on which a function runs whose need is measured."""
LOOP = """
#include <stdint.h>
void states(int64_t count, const double *q, const double *v, const double *x, const double *weights, double *out) {{
    for (int64_t s = 0; s < count; ++s) {{
        {function}({arguments}, {results});
    }}
}}
"""
STACK = """
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
static unsigned char room[{room}];
static ucontext_t here, there;
static void called(void) {{
    static double q[{n}], v[{n}], x[{n}], weights[{n}], out[{size}];
    (void)weights;
    {call}
}}
static int64_t used(void (*function)(void)) {{
    int64_t k = 0;
    memset(room, 0xA5, sizeof room);
    getcontext(&there);
    there.uc_stack.ss_sp = room;
    there.uc_stack.ss_size = sizeof room;
    there.uc_link = &here;
    makecontext(&there, function, 0);
    swapcontext(&here, &there);
    while (k < (int64_t)sizeof room && room[k] == 0xA5) ++k;
    return (int64_t)sizeof room - k;
}}
static void nothing(void) {{}}
int64_t stack(void) {{ return used(called) - used(nothing); }}
"""

TEXT = """Microseconds per state: median (lower and upper quartile), processor time. liedyn: `ld.generate_c`;
CasADi: its generated C for recursions in its symbols (`benchmarks/generated.py`); Pinocchio, C: its own code generation
(CppADCodeGen); all with `gcc -O3 -march=native`, in a loop in C over distinct states, results left in one place.
liedyn's asks at each call whether the arguments and the results are finite, and clears results that are not. native:
Pinocchio's C++. Size: code and constants [bytes] with `gcc -Os -shared -fPIC`; stack [bytes]: what a call writes to,
with `gcc -Os`. Targets in brackets.
"""


def measure(effort, progress):
    """Time the functions of each robot.

    Returns
    -------
    dict
        "rows": robot, function, timings, size and stack; "missing".
    """
    missing, rows = {}, []
    for name in ROBOTS:
        for function in (*generated.ALGORITHMS, *HESSIANS):
            progress(f"{name}, {function}")
            rows.append(_row(name, function, effort, missing))
    return {"rows": rows, "missing": missing}


def _row(name, function, effort, missing):
    robot = robots.named(name)
    q, v, x = states(robot, "rnea_derivatives" if function == "rnea_hessian" else
                     "aba_derivatives" if function == "aba_hessian" else function)
    weights = np.linspace(-1.0, 2.0, robot.nv)
    made, contenders = GeneratedC(name, function), {}
    require_agreement(f"{name} {function}, generated C", made.results(q[0], v[0], x[0], weights),
                      _expected(robot, function, q[0], v[0], x[0], weights), TOLERANCE)
    contenders["liedyn"] = Contender(made.run(q, v, x, weights), len(q))
    if function in generated.ALGORITHMS:
        for peer, contend in (("CasADi", _casadi), ("Pinocchio, C", _codegen), ("native", _native)):
            try:
                contenders |= contend(name, function, q, v, x)
            except MissingPeer as error:
                missing[peer] = str(error)
    timings = race(contenders, effort)
    variants = [timings.pop(key) for key in list(timings) if key.startswith("native")]
    timings["native"] = min(variants) if variants else None
    return {"robot": name, "function": function, "size": made.size(), "stack": made.stack(),
            "timings": {key: timings.get(key) for key in PEERS}}


def _expected(robot, function, q, v, x, weights):
    if function in HESSIANS:
        return getattr(ld, function.replace("hessian", "second_derivatives"))(robot, q, v, x, weights=weights)
    found = getattr(ld, function)(robot, q, v, x)
    return found if isinstance(found, tuple) else (found,)


def _in_order_of(oracle, q, v, x):
    return [np.ascontiguousarray(part[:, order]) for part, order in (
        (q, oracle.q_order), (v, oracle.v_order), (x, oracle.v_order))]


def _casadi(name, function, q, v, x):
    oracle = robots.oracle(name)
    last = np.empty((1, q.shape[1] if function in ("rnea", "aba") else 3 * q.shape[1] ** 2))
    given = _in_order_of(oracle, q, v, x)
    return {"CasADi": Contender(generated.run(oracle, function, *given, 1, last, keep=False), len(q))}


def _codegen(name, function, q, v, x):
    oracle = robots.oracle(name)
    made, given = Generated(oracle, function, cache_directory() / f"codegen-{name}"), _in_order_of(oracle, q, v, x)
    made.run(*(each[:1] for each in given))()
    if function == "rnea":  # orders of joints may differ: the sum of the torques does not
        require_agreement(f"{name} {function}, Pinocchio's C", [made.results(q.shape[1]).sum()],
                          [ld.rnea(robots.named(name), q[0], v[0], x[0]).sum()], TOLERANCE)
    return {"Pinocchio, C": Contender(made.run(*given), len(q))}


def _native(name, function, q, v, x):
    oracle = robots.oracle(name)
    runs = Tree(oracle).runs(function, *_in_order_of(oracle, q, v, x))
    return {f"native {k}": Contender(run, len(q)) for k, run in enumerate(runs)}


class GeneratedC:
    """One generated function, compiled.

    Parameters
    ----------
    name : str
        Of a robot with a fixed base and joints of one degree of freedom.
    function : str
    """

    def __init__(self, name, function):
        self.n, self.command = robots.named(name).nv, compiler("gcc")
        self.count = 1 if function in ("rnea", "aba") else 4 if function in HESSIANS else 3
        self.one = self.n if self.count == 1 else self.n ** 2
        self.folder = cache_directory() / f"c-{name}-{function}"
        files = ld.generate_c(robots.named(name), self.folder, functions=(function,))
        self.source = next(file for file in files if file.endswith(".c") and not file.endswith("main.c"))
        self.function = f"{Path(self.source).stem}_{function}"
        self.weighted = function in HESSIANS
        self.library = self._compiled("loop", FLAGS, LOOP.format(
            function=self.function, arguments=self._arguments(f" + s * {self.n}"), results=self._results()))

    def _arguments(self, at):
        return f"q{at}, v{at}, x{at}" + ", weights" * self.weighted

    def _results(self):
        return ", ".join(f"out + {k * self.one}" for k in range(self.count))

    def _compiled(self, what, flags, more=""):
        code = f'#include "{self.source}"\n{more}'
        stamp = hashlib.sha256((Path(self.source).read_text() + more + " ".join(flags)).encode()).hexdigest()[:16]
        target = self.folder / f"{what}-{stamp}.so"
        if not target.exists():
            place = self.folder / f"{what}.c"
            place.write_text(code)
            compile_to(target, [self.command, *flags, str(place), "-lm"])
        return ctypes.CDLL(str(target))

    def run(self, q, v, x, weights):
        """The function over all states, without arguments."""
        given = [np.ascontiguousarray(each) for each in (q, v, x, weights)]
        out = np.empty((self.count, self.one))
        call = functools.partial(self.library.states, ctypes.c_int64(len(q)), *(
            each.ctypes.data_as(ctypes.c_void_p) for each in (*given, out)))
        call.kept = given, out
        return call

    def results(self, q, v, x, weights):
        """Those of one state."""
        call = self.run(q[None], v[None], x[None], weights)
        call()
        return tuple(part.reshape((self.n,) if self.count == 1 else (self.n, self.n)) for part in call.kept[1])

    def size(self):
        """Bytes of code and of constants of the function alone."""
        self._compiled("small", SMALL)
        made = max(self.folder.glob("small-*.so"), key=lambda path: path.stat().st_mtime)
        printed = subprocess.run(["size", "-A", str(made)], capture_output=True, text=True, check=True).stdout
        return sum(int(line.split()[1]) for line in printed.splitlines() if line.startswith((".text", ".rodata")))

    def stack(self):
        """Bytes of the stack that a call needs."""
        call = f"(void){self.function}({self._arguments('')}, {self._results()});"
        return int(self._compiled("stack", ("-Os", "-fPIC", "-shared", "-w"), STACK.format(
            room=ROOM, n=self.n, size=self.one * self.count, call=call)).stack())


def report(results):
    """The section in Markdown."""
    lines = []
    for row in results["rows"]:
        t = row["timings"]
        lines.append((
            row["robot"], row["function"], *(microseconds(t[key]) for key in PEERS),
            *(mark(quotient(t[key], t["liedyn"]), 1.0) for key in PEERS[1:3]), ratio(t["native"], t["liedyn"]),
            f"{row['size']:,}", f"{row['stack']:,}"))
    heading = ("robot", "function", *PEERS, "CasADi / liedyn", "Pinocchio, C / liedyn", "native / liedyn", "size",
               "stack")
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in results["missing"].items())
    return f"{TEXT}\n{markdown(heading, lines, text=2)}\n{notes}"


def target_pairs(results):
    """For the table of targets: job, peer, and ratios with their targets."""
    for function in generated.ALGORITHMS:
        rows = [row["timings"] for row in results["rows"] if row["function"] == function]
        for peer in PEERS[1:3]:
            yield f"{NAMES[function]}, generated C", f"{peer}, generated", [
                (quotient(t[peer], t["liedyn"]), 1.0) for t in rows]
