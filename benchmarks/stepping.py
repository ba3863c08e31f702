"""Steps one by one, as loops in real time make them, called from Python."""
import numpy as np

import liedyn as ld
from benchmarks.tables import markdown, median
from benchmarks.timing import Contender, race

TITLE = "Steps one by one"
ROBOTS, QUICK_ROBOTS = ("panda", "five_bar", "loader", "cassie_like"), ("five_bar",)
METHODS = ("rk4", "moreau")
DT, BLOCK = 1e-3, 100

TEXT = """Microseconds of processor time per step of 1 ms from Python, one thread, projected on constraints: `ld.step`,
`Stepper.step` with inputs at each step, `Stepper.advance` and `ld.simulate` of 100 steps. Robots are at rest and have
no weight, so that they can be stepped for ever; a step in motion takes as long, but for a projection that does more.
"""


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        for method in METHODS:
            progress(f"{name}, {method}")
            rows.append(_row(name, method, effort))
    return rows


def _row(name, method, effort):
    builder = ld.Builder.of(ld.load(name))
    builder.change("robot", gravity=(0.0, 0.0, 0.0))
    robot = builder.build()
    q, v, tau = ld.close(robot, robot.home), np.zeros(robot.nv), np.zeros(robot.nv)
    one, many = (ld.Stepper(robot, q, v, DT, method=method) for _ in range(2))
    contenders = {
        "step": Contender(lambda: ld.step(robot, q, v, tau, DT, method=method), 1),
        "Stepper.step": Contender(lambda: one.step(tau), 1),
        "advance": Contender(lambda: many.advance(BLOCK), BLOCK),
        "simulate": Contender(lambda: ld.simulate(robot, q, v, BLOCK * DT, dt=DT, method=method), BLOCK)}
    return {"robot": name, "nv": robot.nv, "method": method, "timings": race(contenders, effort)}


def report(rows):
    """The section in Markdown."""
    calls = tuple(rows[0]["timings"])
    lines = [(row["robot"], str(row["nv"]), row["method"], *(median(row["timings"][call]) for call in calls))
             for row in rows]
    return f"{TEXT}\n" + markdown(("robot", "nv", "method", *calls), lines)
