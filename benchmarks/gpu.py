"""States a second on a GPU of NVIDIA: programs of `ld.specialize(device="cuda")`, and bodies of kernels by numba-cuda.

    LIEDYN_COMPILE=never python -m benchmarks --sections gpu --write

needs a GPU and CuPy, and numba-cuda for the bodies. `python -m benchmarks.cuda_check` prints the same as it goes.
"""
from benchmarks.tables import markdown

TITLE = "States a second on a GPU"
SECONDS = 240.0
"""Time for all programs, and again for all bodies."""
TEXT = """One {device}. Results are compared with the CPU's: the last column has the largest difference, relative to the
largest number of a result. States lie in columns on the device, results stay there; thousand million states a second,
the median of several calls, single precision in brackets. "prototype" is what the first prototype reached on such a
card. A linear model is A, B and f0 of a closed mechanism.
"""
BODIES = """
What is too long for one program runs the body of its kernel, loops and all, in each thread, compiled by numba-cuda;
million states a second in double precision:
"""


def measure(effort, progress):
    """Rows of programs and of bodies, and the name of the device."""
    import cupy

    from benchmarks import cuda_check

    rows = []
    for part in cuda_check.measure, cuda_check.measure_bodies:
        progress(part.__name__)
        part(cuda_check.elapsed() + SECONDS, rows)
    return {"device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "rows": rows}


def report(results):
    """The section in Markdown."""
    rows = [row for row in results["rows"] if row["layout"] == "columns"]
    programs, bodies = ([row for row in rows if bool(row.get("body")) == body] for body in (False, True))
    known = {(row["robot"], row["function"], row["dtype"], row["count"]): row for row in programs}
    counts = sorted({row["count"] for row in programs})
    lines = []
    for robot, function in dict.fromkeys((row["robot"], row["function"]) for row in programs):
        pairs = [[known.get((robot, function, dtype, count)) for dtype in ("float64", "float32")] for count in counts]
        lines.append((robot, function, *(_pair(*(row and row["per_second"] / 1e9 for row in pair)) for pair in pairs),
                      _pair(*(row and row["table"] for row in pairs[-1])),
                      _pair(*(row and row["error"] for row in pairs[-1]), form=".0e")))
    head = ("robot", "function", *(f"{count:,} states" for count in counts), "prototype", "difference")
    parts = [TEXT.format(device=results["device"]), markdown(head, lines)]
    if bodies:
        millions = [row["per_second"] / 1e6 for row in bodies]
        parts += [BODIES, markdown(("robot", "function", "states", "million a second", "difference"), [
            (row["robot"], row["function"], f"{row['count']:,}", f"{x:,.{0 if x >= 100.0 else 1}f}",
             f"{row['error']:.0e}") for row, x in zip(bodies, millions)])]
    return "\n".join(parts)


def _pair(double, single, form=".3g"):
    """A number in double precision, and that in single precision in brackets."""
    texts = ["" if x is None else format(x, form) for x in (double, single)]
    return f"{texts[0]} ({texts[1]})" if texts[1] else texts[0]
