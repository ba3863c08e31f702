"""Linear models of closed mechanisms in batches: `ld.specialize(robot).linearize` against `ld.linearize`."""
import numpy as np

import liedyn as ld
from benchmarks import robots
from benchmarks.errors import require_agreement
from benchmarks.tables import markdown, microseconds, quotient, ratio
from benchmarks.targets import mark
from benchmarks.timing import WALL, Contender, Effort, race

TITLE = "Specialised mechanisms"
TARGETS = {"five_bar": 12.0, "four_bar": 20.0, "loader": 6.0, "parallel_five_bar": 2.5}
"""How many times faster than the general function was aimed at, by robot."""
COUNT, DISTINCT = 100_000, 1000
RESULTS = ("A", "B", "f0")
TOLERANCE = 1e-9
TEXT = """Microseconds per state: median (lower and upper quartile), time on the wall, one thread, calls from Python for
{count:,} states. general: `ld.linearize`; in part: with `results=("A", "B", "f0")`; specialised: these three, with
`out=`. Targets in brackets.
"""


def measure(effort, progress):
    """Time the batches of each mechanism.

    Returns
    -------
    dict
        "rows": robot, timings.
    """
    rows = []
    for name in TARGETS:
        progress(name)
        rows.append({"robot": name, "timings": _timings(name, effort)})
    return {"rows": rows}


def _timings(name, effort):
    robot, rng = robots.named(name), np.random.default_rng(0)
    q, v = (np.resize(x, (COUNT, x.shape[1])) for x in robots.moving_states(robot, DISTINCT, rng)[:2])
    tau = np.resize(rng.normal(size=(DISTINCT, robot.nv)), v.shape)
    fast = ld.specialize(robot)
    found, independent = fast.linearize(q, v, tau, results=RESULTS), fast._programs.choices()[0].names
    general = ld.linearize(robot, q, v, tau, independent=independent, results=RESULTS)
    for which, ours in zip(RESULTS, found):
        require_agreement(f"{name}, specialised and general, {which}", ours, getattr(general, which), TOLERANCE)
    return race({
        "general": Contender(lambda: ld.linearize(robot, q, v, tau, independent=independent), COUNT),
        "in part": Contender(
            lambda: ld.linearize(robot, q, v, tau, independent=independent, results=RESULTS), COUNT),
        "specialised": Contender(lambda: fast.linearize(q, v, tau, results=RESULTS, out=found), COUNT),
    }, Effort(effort.rounds, effort.block, 5.0, effort.quick), WALL)


def report(results):
    """The section in Markdown."""
    ways, lines = ("general", "in part", "specialised"), []
    for row in results["rows"]:
        general, part, specialised = (row["timings"][key] for key in ways)
        lines.append((row["robot"], *map(microseconds, (general, part, specialised)),
                      mark(quotient(general, specialised), TARGETS[row["robot"]]), ratio(part, specialised)))
    titles = "robot", *ways, "general / specialised", "in part / specialised"
    return f"{TEXT.format(count=COUNT)}\n{markdown(titles, lines)}\n"


def target_pairs(results):
    """For the table of targets: job, peer, and the ratios with their targets."""
    yield "A, B and f of closed mechanisms, batches", "ld.linearize", [
        (quotient(row["timings"]["general"], row["timings"]["specialised"]), TARGETS[row["robot"]])
        for row in results["rows"]]
