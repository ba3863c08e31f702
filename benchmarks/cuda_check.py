"""``ld.specialize(robot, device="cuda")`` on the GPU of this machine: results beside the CPU's, and throughput.

    LIEDYN_COMPILE=never python -m benchmarks.cuda_check [SECONDS]
    LIEDYN_COMPILE=never python -m benchmarks.cuda_check bodies [SECONDS]

The first needs CuPy only; the second is for functions that are too long for one program, and needs numba-cuda too. Each
takes less than three minutes, and prints each line as soon as it is known.
"""
import concurrent.futures
import json
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np

import liedyn as ld
from liedyn.bridges.specialization.cuda_robot import CudaRobot

DISTINCT, FEW, SPREAD = 64, 4, 0.3
SIZES, CALLS = (102_400, 1_024_000, 10_240_000), 5
BOUNDS = {"float64": 1e-10, "float32": 2e-3}
"""Largest differences, relative to the largest number of a result."""
CASES = (("panda", "rnea"), ("panda", "aba"), ("panda", "rnea_derivatives"), ("panda", "aba_derivatives"),
         ("panda", "crba"), ("five_bar", "linearize"), ("five_bar", "forward_dynamics"), ("four_bar", "linearize"),
         ("parallel_five_bar", "linearize"))
BODIES = ("rnea", "aba", "aba_derivatives", "rnea_derivatives")
"""Functions that are computed by the kernels' bodies, each compiled once for all robots."""
OF_BODIES = {"panda": (102_400, 1_024_000), "solo12": (102_400, 1_024_000), "talos": (102_400,)}
"""Numbers of states, by robot."""
TABLE = {("five_bar", "linearize"): (6.8, 13.2), ("four_bar", "linearize"): (14.5, 25.7),
         ("parallel_five_bar", "linearize"): (0.19, 1.08), ("panda", "rnea"): (17.2, 31.8),
         ("panda", "aba"): (6.8, 15.6), ("panda", "rnea_derivatives"): (1.12, 4.6),
         ("panda", "aba_derivatives"): (0.45, 2.3)}
"""Thousand million states a second of a prototype on an H200, in double and in single precision."""
BEGIN = time.perf_counter()


def elapsed():
    """Seconds since this module was imported."""
    return time.perf_counter() - BEGIN


def say(*words):
    print(f"[{elapsed():5.1f} s]", *words, flush=True)


def states(robot, count=DISTINCT):
    """Closed states with consistent velocities, and forces."""
    rng, rows = np.random.default_rng(3), []
    while len(rows) < count:
        q = ld.integrate(robot, robot.home, SPREAD * rng.normal(size=robot.nv))
        v, tau = rng.normal(size=(2, robot.nv))
        if robot.row_names:
            try:
                q = ld.close(robot, q)
            except ld.LiedynError:
                continue
            G = ld.constraint_jacobian(robot, q)
            v = v - np.linalg.pinv(G, rcond=1e-8) @ (G @ v)
        rows.append((q, v, tau))
    return [np.array(x) for x in zip(*rows)]


def prepared(case):
    """Compiles a case, so that it is in CuPy's cache, and returns its states and the CPU's results of them."""
    (name, function), dtype = case
    robot = ld.load(name)
    given = states(robot)[:1 if function == "crba" else 3]
    start = time.perf_counter()
    gpu = CudaRobot(robot, None, dtype, "columns")
    source = gpu.source(function)
    traced = time.perf_counter()
    gpu._device.compile(source)
    compiled = time.perf_counter()
    rounded = [x.astype(dtype).astype(np.float64) for x in given]
    expected = gpu._general(function, dict(zip(("q", "v", "tau"), rounded)))
    return given, [np.asarray(x) for x in expected], len(source), traced - start, compiled - traced


class Measured:
    """One case on the GPU, in the layout `layout`.

    Parameters
    ----------
    case : tuple
    given, expected : list of ndarray
    """

    def __init__(self, case, given, expected):
        (name, self.function), self.dtype = case
        self.gpu, self.layout = CudaRobot(ld.load(name), None, self.dtype, "rows"), "rows"
        self.given, self.expected = given, expected

    def arguments(self, count):
        """States, one after the other and again, on the device."""
        import cupy

        rows = [cupy.asarray(np.ascontiguousarray(x if self.layout == "rows" else x.T).astype(self.dtype))
                for x in self.given]
        times = count // len(self.given[0])
        return [cupy.tile(x, (times, 1) if self.layout == "rows" else (1, times)) for x in rows]

    def __call__(self, arguments):
        self.gpu.layout = self.layout
        return getattr(self.gpu, self.function)(*arguments, fallback="nan")

    def error(self, count):
        """The largest difference to the CPU's results, in the first and the last states, and the part that is `ok`."""
        *found, ok = self(self.arguments(count))
        worst, n = 0.0, len(self.given[0])
        ok, good = ok.get(), None
        for x, y in zip(found, self.expected):
            if not y.size:
                continue
            x = np.moveaxis(x.get(), -1, 0) if self.layout == "columns" else x.get()
            for part, good in ((x[:n], ok[:n]), (x[-n:], ok[-n:])):
                if not np.isnan(part[~good]).all():
                    return np.inf, ok.mean()
                worst = max(worst, abs(part[good] - y[good]).max() / abs(y).max())
        return worst, ok.mean()

    def seconds(self, count):
        """Median and least time of a call, of several that are asked for one after the other."""
        import cupy

        arguments, times = self.arguments(count), []
        for _ in range(3):
            self(arguments)
        begin = time.perf_counter()
        while len(times) < 5 or (len(times) < 30 and time.perf_counter() - begin < 0.3):
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            for _ in range(CALLS):
                self(arguments)
            last.record()
            last.synchronize()
            times.append(cupy.cuda.get_elapsed_time(first, last) * 1e-3 / CALLS)
        return float(np.median(times)), min(times)


def bandwidth():
    """Bytes a second of a copy on the device, read and written."""
    import cupy

    x = cupy.ones(1 << 28)
    y, times = cupy.empty_like(x), []
    for _ in range(10):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        y[...] = x
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last) * 1e-3)
    return 2 * x.nbytes / float(np.median(times))


def machine():
    """What there is here."""
    query = "--query-gpu=name,driver_version,memory.total,clocks.max.sm"
    for command in (["nvidia-smi", query, "--format=csv,noheader"], ["nvcc", "--version"]):
        try:
            found = subprocess.run(command, capture_output=True, text=True, timeout=20)
            say(" ".join(found.stdout.split("\n")[-2 if command[0] == "nvcc" else 0].split()))
        except OSError as error:
            say(command[0], "is not here:", error)
    for name in ("numpy", "numba", "cupy", "torch", "jax"):
        try:
            say(name, __import__(name).__version__)
        except Exception as error:  # noqa: BLE001 - whatever keeps a package from being imported is a line of the report
            say(name, "is not here:", repr(error)[:200])
    say("CPUs", os.cpu_count(), "python", sys.version.split()[0])


def measure(seconds, rows):
    """All cases; `rows` receives a dict for each line of the table."""
    import cupy

    cases = [(case, dtype) for dtype in BOUNDS for case in CASES]
    pool = concurrent.futures.ProcessPoolExecutor(
        min(len(cases), os.cpu_count() or 1), mp_context=multiprocessing.get_context("spawn"))
    waiting = {pool.submit(prepared, case): case for case in cases}
    say(f"copy {bandwidth() / 1e12:.2f} TB/s read and written")
    for done in concurrent.futures.as_completed(waiting, timeout=seconds):
        (robot, function), dtype = case = waiting[done]
        label = f"{robot:17s} {function:16s} {dtype}"
        try:
            given, expected, length, traced, compiled = done.result()
            say(label, f"{length} characters, traced {traced:.1f} s, compiled {compiled:.1f} s")
            measured = Measured(case, given, expected)
            for measured.layout in ("columns", "rows"):
                layout = measured.layout
                worst, ok = measured.error(64 * DISTINCT + DISTINCT)
                say(label, layout, f"error {worst:.1e}, ok {ok:.4f}", "" if worst < BOUNDS[dtype] else "WRONG")
                for count in SIZES if layout == "columns" else SIZES[1:2]:
                    if elapsed() > seconds:
                        say("no time left")
                        return
                    median, least = measured.seconds(count)
                    known = TABLE.get((robot, function), (None, None))[dtype == "float32"]
                    rows.append(dict(robot=robot, function=function, dtype=dtype, layout=layout, count=count,
                                     per_second=count / median, best=count / least, error=worst, ok=ok, table=known))
                    say(label, layout, count, f"{count / median / 1e9:.3f} (best {count / least / 1e9:.3f}) thousand "
                        f"million a second, table {known}, {count / median / 1e9 / known:.2f} of it" if known else
                        f"{count / median / 1e9:.3f} thousand million a second")
                cupy.get_default_memory_pool().free_all_blocks()
        except Exception as error:  # noqa: BLE001 - one case must not keep the others from being measured
            say(label, "FAILED", repr(error)[:1500])
    pool.shutdown(cancel_futures=True)


def measure_bodies(seconds, rows):
    """Functions of the open tree by the bodies of their kernels, short or not."""
    import cupy

    from liedyn.bridges.specialization import cuda_robot

    cuda_robot.LONGEST_LINES = -1
    given = {robot: states(ld.load(robot), FEW) for robot in OF_BODIES}
    for function in BODIES:
        for robot, counts in OF_BODIES.items():
            label = f"{robot:17s} {function:16s} float64 body"
            try:
                begin = time.perf_counter()
                measured = Measured(((robot, function), "float64"), given[robot], None)
                measured.layout, names = "columns", measured.gpu._function(function).inputs
                expected = measured.gpu._general(function, dict(zip(names, given[robot])))
                measured.expected = [np.asarray(x) for x in expected]
                worst, _ = measured.error(100 * FEW)
                say(label, f"ready after {time.perf_counter() - begin:.1f} s, error {worst:.1e}",
                    "" if worst < BOUNDS["float64"] else "WRONG")
                for count in counts:
                    if elapsed() > seconds:
                        say("no time left")
                        return
                    median, least = measured.seconds(count)
                    rows.append(dict(robot=robot, function=function, dtype="float64", layout="columns", count=count,
                                     per_second=count / median, best=count / least, error=worst, body=True))
                    say(label, count, f"{count / median / 1e6:.2f} million a second")
                cupy.get_default_memory_pool().free_all_blocks()
            except Exception as error:  # noqa: BLE001 - one case must not keep the others from being measured
                say(label, "FAILED", repr(error)[:1500])


def main():
    bodies, numbers = "bodies" in sys.argv[1:], [float(x) for x in sys.argv[1:] if x != "bodies"]
    seconds, rows = numbers[0] if numbers else 150.0, []
    machine()
    try:
        (measure_bodies if bodies else measure)(seconds, rows)
    finally:
        if os.environ.get("OUT"):
            with open(os.path.join(os.environ["OUT"], f"cuda{'_bodies' * bodies}.json"), "w") as file:
                json.dump(rows, file, indent=1)
        say(len(rows), "rows")


if __name__ == "__main__":
    main()
