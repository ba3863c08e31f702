"""``python -m benchmarks``: time liedyn on this machine and print the tables."""
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # before anything starts threads

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks import loops, machine, timing, trees  # noqa: E402
from benchmarks.errors import BenchmarkError  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from liedyn.errors import LiedynError  # noqa: E402

RESULTS = Path(__file__).with_name("RESULTS.md")

TREES = """## Open trees

Microseconds of processor time per state: median (lower and upper quartile). Ratios of medians, above one where liedyn
is faster. One thread, contenders interleaved, the same distinct states for all. "pin, Python" and "liedyn, Python" are
calls from Python; "njit" is a loop of the user's own compiled code; "lanes" is one call from Python with all states.
liedyn checks its input wherever it is called from Python, and returns M with the derivatives of inverse dynamics.
"""

LOOPS = """## Linearization

Microseconds of processor time per state, compiled code (the last two columns: called from Python). f: constrained
accelerations; exact: A, B and f together; differences: A and B by central differences of f in the same compiled code,
every perturbed state assembled again with a frozen Newton matrix. "error of differences" is the largest against the
exact A and B, relative to the largest entry, at the best of several steps. p independent coordinates, nu inputs.
"""


def main(arguments=None):
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats: does it run, not how fast is it")
    parser.add_argument("--json", metavar="F", type=Path, help="also write all numbers to a file")
    parser.add_argument("--write", action="store_true", help=f"also write {RESULTS.name} beside the benchmarks")
    options = parser.parse_args(arguments)
    try:
        if options.quick and options.write:
            raise BenchmarkError("--write needs a full run, not --quick")
        _run(options)
    except (LiedynError, OSError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options):
    effort = timing.QUICK if options.quick else timing.FULL
    about = machine.description()
    tree_rows, loop_rows = trees.measure(effort, _progress), loops.measure(effort, _progress)
    report = "\n".join([
        "# Benchmarks", "", f"`python -m benchmarks{' --quick' if options.quick else ' --write'}`: "
        f"{effort.rounds} rounds, blocks of {1e3 * effort.block:g} ms or more.", "",
        markdown(("machine", ""), list(about.items())), "",
        TREES, trees.table(tree_rows), "", LOOPS, loops.table(loop_rows), ""])
    print(report)
    if options.write:
        RESULTS.write_text(report)
    if options.json:
        rows = {"machine": about, "effort": asdict(effort), "trees": [asdict(row) for row in tree_rows],
                "loops": [asdict(row) for row in loop_rows]}
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def _progress(what):
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
