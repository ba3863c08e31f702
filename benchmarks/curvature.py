"""Second derivatives of linear models beside the first ones: contracted with weights, and whole."""
import numpy as np

import liedyn as ld
from benchmarks.tables import markdown, microseconds, ratio
from benchmarks.timing import Contender, race

TITLE = "Linear models to second order"
ROBOTS = "five_bar", "loader", "stewart", "cassie_like", "panda", "solo12"
QUICK_ROBOTS = ("five_bar",)
COUNT = 64

TEXT = f"""Microseconds of processor time per state, of {COUNT} states in one call of `ld.linearize` on one core: A, B
and f; with the Hessian of one weighted sum of the rates (`second=weights`); with all second derivatives of the rates
(`second=True`). The ratios are those to A, B and f; 3, and 2.5 + 0.8 p with p degrees of freedom, are asked for.
"""


def states(robot):
    """States near home, with velocities and forces."""
    rng = np.random.default_rng(0)
    q = np.array([ld.close(robot, robot.home)] * COUNT)
    v = rng.normal(size=(COUNT, robot.nv))
    if robot.row_names:
        G = ld.constraint_jacobian(robot, q[0])
        v -= v @ (np.linalg.pinv(G, rcond=1e-9) @ G).T
    return q, v, rng.normal(size=v.shape)


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        progress(name)
        robot = ld.load(name)
        given = states(robot)
        x = ld.linearize(robot, *given).A.shape[-1]
        weights = np.concatenate([np.zeros(x // 2), np.ones(x - x // 2)])
        contenders = {"first": Contender(lambda robot=robot, given=given: ld.linearize(robot, *given), COUNT),
                      "contracted": Contender(lambda robot=robot, given=given, weights=weights: ld.linearize(
                          robot, *given, second=weights), COUNT),
                      "whole": Contender(lambda robot=robot, given=given: ld.linearize(
                          robot, *given, second=True), COUNT)}
        rows.append({"robot": name, "p": x - x // 2, "timings": race(contenders, effort)})
    return rows


def report(rows):
    """The section in Markdown."""
    lines = []
    for row in rows:
        t = row["timings"]
        lines.append((f"{row['robot']}, p = {row['p']}",
                      *(microseconds(t[key]) for key in ("first", "contracted", "whole")),
                      ratio(t["contracted"], t["first"]), ratio(t["whole"], t["first"]),
                      f"{2.5 + 0.8 * row['p']:.1f}"))
    return f"{TEXT}\n" + markdown(
        ("robot", "A, B, f", "contracted", "whole", "ratio", "ratio of the whole", "asked"), lines)
