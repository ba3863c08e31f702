"""Gradients of whole runs: what the derivatives of all steps and the adjoint cost beside the run itself."""
import numpy as np

import liedyn as ld
from benchmarks.tables import markdown, median
from benchmarks.timing import Contender, race

TITLE = "Gradients of runs"
ROBOTS, QUICK_ROBOTS = ("five_bar", "loader", "stewart", "panda", "solo12"), ("five_bar",)
STEPS, DT = 1000, 1e-3

TEXT = f"""Microseconds of processor time for {STEPS:,} steps (rk4, {DT * 1e3:g} ms, projected on constraints, one
thread) without gravity, with inputs of their own in each step: `ld.simulate`; `ld.differentiate_run`, the run with the
derivatives of its steps by state and inputs; `adjoint`, one gradient by the start and all inputs; and both of these by
the run.
"""


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        progress(name)
        rows.append(_row(name, 50 if effort.quick else STEPS, effort))
    return rows


def _row(name, steps, effort):
    builder = ld.Builder.of(ld.load(name))
    builder.change("robot", gravity=(0.0, 0.0, 0.0))
    robot = builder.build()
    q = ld.neutral(robot) if robot.home is None else ld.close(robot, robot.home)
    v, end = np.zeros(robot.nv), steps * DT
    tau = 1e-3 * np.random.default_rng(0).normal(size=(steps, robot.nv))
    run, weights = ld.differentiate_run(robot, q, v, end, tau=tau), np.ones(robot.nv)
    contenders = {
        "run": Contender(lambda: ld.simulate(robot, q, v, end, tau=tau, progress=False), 1),
        "derivatives": Contender(lambda: ld.differentiate_run(robot, q, v, end, tau=tau), 1),
        "adjoint": Contender(lambda: run.adjoint(q=weights), 1)}
    return {"robot": name, "nv": robot.nv, "inputs": tau.size, "timings": race(contenders, effort)}


def report(rows):
    """The section in Markdown."""
    lines = []
    for row in rows:
        times = row["timings"]
        of_run, *others = (times[call][0] for call in ("run", "derivatives", "adjoint"))
        lines.append((row["robot"], str(row["nv"]), f"{row['inputs']:,}",
                      *(median(times[call]) for call in times), f"{sum(others) / of_run:.1f}"))
    return f"{TEXT}\n" + markdown(("robot", "nv", "inputs", "run", "derivatives", "adjoint", "by the run"), lines)
