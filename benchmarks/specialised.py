"""Straight-line kernels for one robot (`ld.specialize`) against C that CasADi generates, and the general ones."""
import numba
import numpy as np

import liedyn as ld
from benchmarks import generated, recursions, robots
from benchmarks.batches import threaded
from benchmarks.errors import MissingPeer, require_agreement
from benchmarks.native.peers import Tree
from benchmarks.tables import markdown, microseconds, quotient, ratio
from benchmarks.targets import GENERATED, NAMES, OPENMP, mark
from benchmarks.timing import WALL, Contender, Effort, race
from benchmarks.trees import states
from liedyn.kernels import SCALAR

TITLE = "Specialised kernels"
ROBOTS = ("panda", "ur5")
COUNT = 10_000
TOLERANCE = 1e-8
ONE = ("native", "casadi", "general", "njit")
BATCH = ("casadi batch", "batch", "casadi batch 2", "batch 2")

TEXT = """Microseconds per state: median (lower and upper quartile). specialised: `ld.specialize(robot)`, its kernel in
a user's `@njit` loop over distinct states; CasADi: generated C, `gcc -O3 -march=native`, in a loop in C, results left
in one place by both; native and general as above (processor time). Batches: {count} states, results kept (time on the
wall, calls from Python). Targets in brackets: faster than generated C, also than that which takes 1/4.7, 1/5.1, 1/3.6
and 1/3.7 of native Pinocchio's time for RNEA, ABA, dRNEA and dABA.
"""


def measure(effort, progress):
    """Time the four recursions of each robot.

    Returns
    -------
    dict
        "rows": robot, algorithm, timings; "missing".
    """
    missing, rows = {}, []
    if not hasattr(ld, "specialize"):
        missing["specialised"] = "no ld.specialize"
    for name in ROBOTS:
        for algorithm in generated.ALGORITHMS:
            progress(f"{name}, {algorithm}")
            rows.append(_row(name, algorithm, effort, missing))
    return {"rows": rows, "missing": missing}


def looped(kernel, algorithm):
    """A user's compiled loop around a specialised kernel, with the arguments of `recursions`."""
    if algorithm in ("rnea", "aba"):
        @numba.njit
        def loop(q, v, x, out):
            for s in range(len(q)):
                kernel(SCALAR, q[s], v[s], x[s], out[0])
    elif algorithm == "rnea_derivatives":
        @numba.njit
        def loop(q, v, x, out):
            for s in range(len(q)):
                kernel(SCALAR, q[s], v[s], x[s], out[0], out[1], out[2])
    else:
        @numba.njit
        def loop(q, v, x, out):
            for s in range(len(q)):
                kernel(SCALAR, q[s], v[s], x[s], out[0], out[1], out[2], out[3], out[4])
    return loop


def _row(name, algorithm, effort, missing):
    robot = robots.named(name)
    q, v, x = states(robot, algorithm)
    out, work = recursions.results(robot)
    general = recursions.LOOPS[algorithm]
    one = {"general": Contender(lambda: general(robot.packed, q, v, x, 0, work, out), len(q))}
    many = [np.ascontiguousarray(np.resize(part, (COUNT, part.shape[1]))) for part in (q, v, x)]
    batch = {}
    if hasattr(ld, "specialize"):
        fast = ld.specialize(robot)
        require_agreement(f"{name} {algorithm}, specialised and general", getattr(fast, algorithm)(q, v, x),
                          getattr(ld, algorithm)(robot, q, v, x), TOLERANCE)
        loop = looped(getattr(fast.kernels, algorithm), algorithm)
        one["njit"] = Contender(lambda: loop(q, v, x, out), len(q))
        results = getattr(fast, algorithm)(*many)
        run = lambda: getattr(fast, algorithm)(*many, out=results)  # noqa: E731
        batch |= {"batch": run, "batch 2": threaded(run)}
    try:
        oracle = robots.oracle(name)
        given = [np.ascontiguousarray(part[:, order]) for part, order in (
            (q, oracle.q_order), (v, oracle.v_order), (x, oracle.v_order))]
        one |= {f"native {k}": Contender(run, len(q)) for k, run in enumerate(Tree(oracle).runs(algorithm, *given))}
    except MissingPeer as error:
        missing["native"] = str(error)
    try:
        oracle = robots.oracle(name)
        given = [np.ascontiguousarray(part[:, order]) for part, order in (
            (q, oracle.q_order), (v, oracle.v_order), (x, oracle.v_order))]
        wide = [np.ascontiguousarray(np.resize(part, (COUNT, part.shape[1]))) for part in given]
        size = robot.nv if algorithm in ("rnea", "aba") else 3 * robot.nv ** 2
        kept, last = np.empty((COUNT, size)), np.empty((1, size))
        one["casadi"] = Contender(generated.run(oracle, algorithm, *given, 1, last, keep=False), len(q))
        batch |= {"casadi batch": generated.run(oracle, algorithm, *wide, 1, kept),
                  "casadi batch 2": generated.run(oracle, algorithm, *wide, 2, kept)}
    except MissingPeer as error:
        missing["CasADi"] = str(error)
    timings = race(one, effort)
    variants = [timings.pop(key) for key in list(timings) if key.startswith("native")]
    timings["native"] = min(variants) if variants else None
    longer = Effort(effort.rounds, effort.block, 2.0, effort.quick)
    timings |= race({key: Contender(run, COUNT) for key, run in batch.items()}, longer, WALL) if batch else {}
    return {"robot": name, "algorithm": algorithm, "timings": {key: timings.get(key) for key in (*ONE, *BATCH)}}


def report(results):
    """The section in Markdown."""
    lines = []
    for row in results["rows"]:
        t = row["timings"]
        lines.append((
            row["robot"], row["algorithm"], *(microseconds(t[key]) for key in ("native", "casadi", "general", "njit")),
            mark(quotient(t["casadi"], t["njit"]), 1.0),
            mark(quotient(t["native"], t["njit"]), GENERATED[row["algorithm"]]), ratio(t["native"], t["casadi"]),
            *(microseconds(t[key]) for key in ("casadi batch", "batch")), ratio(t["casadi batch"], t["batch"]),
            mark(quotient(t["casadi batch 2"], t["batch 2"]), OPENMP)))
    heading = ("robot", "algorithm", "native", "CasADi", "general", "specialised", "CasADi / specialised",
               "native / specialised", "native / CasADi", "CasADi, batch", "specialised, batch", "batch: ratio",
               "two cores: ratio")
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in results["missing"].items())
    return f"{TEXT.format(count=f'{COUNT:,}')}\n{markdown(heading, lines)}\n{notes}"


def target_pairs(results):
    """For the table of targets: job, peer, and the ratios of the panda with their targets."""
    for algorithm in generated.ALGORITHMS:
        rows = [row["timings"] for row in results["rows"] if row["algorithm"] == algorithm]
        yield f"{NAMES[algorithm]}, specialised", "generated C", [(quotient(t["casadi"], t["njit"]), 1.0) for t in rows]
        yield f"{NAMES[algorithm]}, specialised, panda", "Pinocchio, C++", [
            (quotient(row["timings"]["native"], row["timings"]["njit"]), GENERATED[algorithm])
            for row in results["rows"] if row["algorithm"] == algorithm and row["robot"] == "panda"]
