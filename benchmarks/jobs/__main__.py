"""``python -m benchmarks.jobs [names]``: run the scripts of newcomers' jobs, each in a process of its own.

A table of their lines, without those that are empty, print or describe, and of the CPU seconds of the whole process,
imports included. The first run compiles what the later ones find in the cache; the smaller of `--repeats` runs counts.
"""
import argparse
import ast
import os
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
JOBS = ("urdf_with_mistakes", "stewart_regulator", "dropped_quadruped", "identified_arm", "least_time", "balancer",
        "beside_a_post", "c_and_fmu", "elastic_legs", "bearing_loads", "against_differences", "own_motor",
        "arm_regulator")


def main(arguments=None):
    """Run the command; returns the number of jobs that failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join(JOBS)}")
    parser.add_argument("--repeats", type=int, default=2, help="runs of each job (default: 2)")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(JOBS):
        parser.error(f"unknown jobs: {', '.join(sorted(unknown))}")
    failed = 0
    print("| job | lines | CPU s |\n|---|---|---|")
    for name in options.names or JOBS:
        runs = [_run(name) for _ in range(options.repeats)]
        seconds = [each for each in runs if each is not None]
        failed += not seconds
        print(f"| {title(name)} | {lines(name)} | {f'{min(seconds):.1f}' if seconds else 'failed'} |", flush=True)
    return failed


def title(name):
    """The job in words: the first line of its script."""
    return ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())).splitlines()[0].rstrip(".")


def lines(name):
    """Lines of a script's statements, without its docstring and those that print."""
    body = ast.parse((HERE / f"{name}.py").read_text()).body[1:]
    return len({k for each in body if not _prints(each) for k in range(each.lineno, each.end_lineno + 1)})


def _prints(statement):
    call = getattr(statement, "value", None)
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print"


def _run(name):
    """CPU seconds of a job in one thread, children included; None if it fails, with its last words."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    alone = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run([sys.executable, "-m", f"benchmarks.jobs.{name}"], cwd=HERE.parents[1], env=alone,
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
