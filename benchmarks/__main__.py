"""``python -m benchmarks``: time liedyn on this machine and print the tables."""
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before anything starts threads; parallel contenders ask for two themselves
os.environ["OMP_WAIT_POLICY"] = "passive"  # threads that wait must not spin while another contender is timed
os.environ["NUMBA_NUM_THREADS"] = str(min(2, os.cpu_count() or 1))

import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import numba  # noqa: E402

from benchmarks import machine, sections, timing  # noqa: E402
from benchmarks.errors import BenchmarkError  # noqa: E402
from benchmarks.report import RESULTS, STORE, text, write  # noqa: E402
from liedyn.machine.compiled.cpu_targets import LEVELS  # noqa: E402
from liedyn.machine.errors import LiedynError  # noqa: E402


def main(arguments=None):
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats: does it run, not how fast is it")
    parser.add_argument("--sections", nargs="+", metavar="S", choices=sections.SECTIONS,
                        help=f"only these of {', '.join(sections.SECTIONS)}; {', '.join(sections.ON_REQUEST)} only so")
    parser.add_argument("--level", choices=LEVELS,
                        help="kernels and native peers for any processor of a level, not for this very one; without "
                             f"--sections only {', '.join(sections.MAIN)}")
    parser.add_argument("--json", metavar="F", type=Path, help="also write all numbers to a file")
    parser.add_argument("--write", action="store_true",
                        help=f"also write {RESULTS.name}, its plots and {STORE.name}; sections not measured are kept")
    parser.add_argument("--report", action="store_true", help=f"measure nothing: {RESULTS.name} from {STORE.name}")
    parser.add_argument("--here", action="store_true", help="all in one process, which stops at the first error")
    options = parser.parse_args(arguments)
    try:
        if options.quick and options.write:
            raise BenchmarkError("--write needs a full run, not --quick")
        if options.level and numba.config.CPU_NAME != options.level:  # Numba has read its variables already
            chosen = os.environ | {"NUMBA_CPU_NAME": options.level, "NUMBA_CPU_FEATURES": ""}
            command = [sys.executable, "-m", "benchmarks", *(sys.argv[1:] if arguments is None else arguments)]
            return subprocess.call(command, env=chosen)
        return _run(options)
    except (LiedynError, OSError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1


def _run(options):
    if options.report:
        write(json.loads(STORE.read_text()))
        return 0
    numba.set_num_threads(1)
    about, failed = machine.description(), {}
    numbers = {"machine": about, "sections": {}}
    default = sections.QUICK if options.quick else [s for s in sections.SECTIONS if s not in sections.ON_REQUEST]
    default = sections.MAIN if options.level else default
    for name in options.sections or default:
        _progress(name)
        if options.quick or options.here:
            effort = timing.QUICK if options.quick else timing.FULL
            measured = sections.measured_here(name, effort, _progress)
        else:
            try:
                measured = sections.measured_apart(name)
            except BenchmarkError as error:
                failed[name] = str(error)
                measured = {"failed": str(error)}
                print(f"benchmarks: {error}", file=sys.stderr)
        numbers["sections"][name] = measured | {"machine": about}
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    if options.write:
        write(_with_stored(numbers, options.level))
    if not options.here:
        print(text(numbers))
    return 1 if failed else 0


def _with_stored(numbers, level):
    """All that is to be stored: the new numbers, and those that have not been measured now."""
    stored = {"sections": {}, "levels": {}} | (json.loads(STORE.read_text()) if STORE.exists() else {})
    before = stored["levels"].get(level, {"sections": {}}) if level else stored
    numbers = numbers | {"sections": before["sections"] | numbers["sections"]}
    if level:
        return stored | {"levels": stored["levels"] | {level: numbers}}
    return numbers | {"levels": stored["levels"]}


def _progress(what):
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
