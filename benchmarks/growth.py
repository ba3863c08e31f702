"""How times grow: with the length of a chain, with the number of short chains, with the number of small loops.

Chains: n bodies in a row, so the depth d is n. Brushes: chains of five side by side, so d stays five; what is O(n d)
for chains is O(n) for them. Ladders: parallelograms on top of each other, one loop and one degree of freedom each.
Rows: four-bars side by side, all loops coupled, one degree of freedom (IFToMM benchmark A02).
"""
import numpy as np

from benchmarks import loops, recursions, robots
from benchmarks.errors import MissingPeer
from benchmarks.native.peers import Tree
from benchmarks.plots import figure
from benchmarks.tables import MISSING, markdown, median
from benchmarks.timing import Contender, race
from benchmarks.trees import states
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.calls.boundary import wrenches

TITLE = "Growth"
SIZES, QUICK_SIZES = (5, 10, 20, 50, 100, 200), (5, 10)
LOOPS, QUICK_LOOPS = (1, 2, 4, 8, 12, 16, 24), (1, 4)
FOUR_BARS, QUICK_FOUR_BARS = (5, 10, 20, 40, 80, 200), (5, 12)
ALGORITHMS = ("forward_kinematics", "rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives")
FAMILIES = {"chain": ALGORITHMS, "brush": (*ALGORITHMS, *recursions.NONZEROS)}
LOOPED = {"ladders": "ladders", "rows": "rows of four-bars"}
"""Series of loops, and their titles; results that were stored earlier may lack the second."""
TOLERATED = 0.15
"""How far above the expected one a fitted exponent may be: memory outgrows the first cache on the way."""
FITTED = 20
"""Slopes are fitted from this size on: before, what is done once counts."""

TEXT = """Microseconds of processor time per state in compiled code, medians, against the number of bodies n of chains
(depth d = n) and of brushes (chains of five side by side, d = 5), and against the number of parallelograms of ladders.
Slope: exponent of n fitted in log-log coordinates from n = 20 on (loops: from 4 on). RNEA, ABA and kinematics
should have slope 1; derivatives are O(n d): slope 2 for chains, 1 for brushes. But the matrices of a brush are n x n
numbers, almost all of them zeros, and writing those takes O(n^2) whatever the algorithm.
Kernels with the ending `_nonzeros` leave them as they are, zeroed once before all calls, as native
Pinocchio does in derivatives of RNEA and in M: their slope is that of the algorithm, and is compared with O(n d).

![Times over the number of joints, on logarithmic axes: straight lines](plots/growth.svg)
"""


def measure(effort, progress):
    """Time everything at all sizes.

    Returns
    -------
    dict
        "trees": rows of family, algorithm, sizes, timings by size of liedyn and native; "ladders": rows of loops, nv,
        timings of f and exact; "rows": the same of rows of four-bars.
    """
    trees = []
    for family, algorithms in FAMILIES.items():
        for algorithm in algorithms:
            progress(f"{family}, {algorithm}")
            rows = [_tree(f"{family}{size}", algorithm, effort) for size in (QUICK_SIZES if effort.quick else SIZES)]
            trees.append({"family": family, "algorithm": algorithm, "rows": rows})
    ladders = []
    for count in QUICK_LOOPS if effort.quick else LOOPS:
        progress(f"ladder of {count} loops")
        ladders.append(_loops(f"ladder{count}", count, effort))
    rows = []
    for count in QUICK_FOUR_BARS if effort.quick else FOUR_BARS:
        progress(f"row of {count} four-bars")
        rows.append(_loops(f"four_bars{count}", count, effort))
    return {"trees": trees, "ladders": ladders, "rows": rows}


def _tree(name, algorithm, effort):
    robot = robots.named(name)
    q, v, x = states(robot, algorithm)
    out, work = recursions.results(robot)
    loop = (recursions.LOOPS | recursions.NONZEROS)[algorithm]
    contenders = {"liedyn": Contender(lambda: loop(robot.packed, q, v, x, 0, work, out), len(q))}
    try:
        if not effort.quick:
            oracle = robots.oracle(name)
            given = tuple(map(np.ascontiguousarray, zip(*(oracle.to_pin(*state) for state in zip(q, v, x)))))
            contenders["native"] = Contender(Tree(oracle).runs(algorithm.removesuffix("_nonzeros"), *given)[-1], len(q))
    except MissingPeer:
        pass
    timings = race(contenders, effort)
    return {"size": robot.nv, "timings": {key: timings.get(key) for key in ("liedyn", "native")}}


def _loops(name, count, effort):
    robot = robots.named(name)
    q, v, tau = robots.moving_states(robot, 4, np.random.default_rng(5))
    chosen = choose(robot, q[0], None, RANK_TOLERANCE)
    f_ext, packed = wrenches(robot, None, ())[0], robot.packed
    given = (packed, q, v, tau, f_ext, chosen.rows, chosen.virtual, robot.actuator_matrix.copy(), RANK_TOLERANCE)
    timings = race({
        "f": Contender(lambda: loops.accelerations_loop(packed, q, v, tau, f_ext, RANK_TOLERANCE), len(q)),
        "exact": Contender(lambda: loops.linearize_loop(*given), len(q))}, effort)
    return {"size": count, "nv": robot.nv, "timings": timings}


def slope(sizes, times, first):
    """Exponent of a power law fitted to the times of sizes from `first` on, None if there are fewer than two.

    Examples
    --------
    >>> round(slope([1, 10, 100], [5.0, 10.0, 1000.0], 10), 6)
    2.0
    """
    points = [(np.log(n), np.log(t)) for n, t in zip(sizes, times) if n >= first]
    return float(np.polyfit(*zip(*points), 1)[0]) if len(points) > 1 else None


def _slope_text(rows, key, first):
    times = [row["timings"].get(key) for row in rows]
    if None in times:
        return MISSING
    value = slope([row["size"] for row in rows], [t[0] for t in times], first)
    return "" if value is None else f"{value:.2f}"


def report(results):
    """The section in Markdown."""
    lines = []
    for series in results["trees"]:
        rows = series["rows"]
        lines.append((f"{series['family']}, {series['algorithm']}", *(median(row["timings"]["liedyn"]) for row in rows),
                      _slope_text(rows, "liedyn", FITTED), _slope_text(rows, "native", FITTED)))
    sizes = [f"n = {row['size']}" for row in results["trees"][0]["rows"]]
    return (f"{TEXT}\n{markdown(('', *sizes, 'slope', 'slope of native'), lines)}\n\n"
            + "\n\n".join(_table_of_loops(title, results[kind]) for kind, title in LOOPED.items() if kind in results)
            + "\n")


def _table_of_loops(title, rows):
    lines = [(name, *(median(row["timings"][key]) for row in rows), _slope_text(rows, key, 4))
             for key, name in (("f", "f"), ("exact", "A, B and f"))]
    lines.append(("A, B and f, per loop", *(f"{1e6 * row['timings']['exact'][0] / row['size']:.2f}" for row in rows),
                  ""))
    return markdown((title, *(f"{row['size']} loops" for row in rows), "slope"), lines)


def plot(results, folder):
    """growth.svg: trees on the left, ladders on the right."""
    with figure(folder / "growth.svg", 2) as (left, right):
        colours = {name: f"C{k}" for k, name in enumerate(FAMILIES["brush"])}
        for series in results["trees"]:
            sizes = [row["size"] for row in series["rows"]]
            times = [1e6 * row["timings"]["liedyn"][0] for row in series["rows"]]
            chain, name = series["family"] == "chain", series["algorithm"]
            left.loglog(sizes, times, "o-" if chain else "--", color=colours[name], ms=3,
                        label=f"{name}: slope {_slope_text(series['rows'], 'liedyn', FITTED)}"
                        if chain or name in recursions.NONZEROS else None)
        left.set(xlabel="bodies n (dashed: chains of five side by side)", ylabel="time per state [us]", title="Trees")
        left.legend(fontsize=7)
        for (kind, rows), line in zip(((kind, results[kind]) for kind in LOOPED if kind in results), ("o-", "s--")):
            for key, name in (("f", "f"), ("exact", "A, B and f")):
                right.loglog([row["size"] for row in rows], [1e6 * row["timings"][key][0] for row in rows], line, ms=3,
                             label=f"{kind}, {name}: slope {_slope_text(rows, key, 4)}")
        right.set(xlabel="loops", ylabel="time per state [us]", title="Loops")
        right.legend(fontsize=7)
        for axes in (left, right):
            axes.grid(True, which="both", alpha=0.2)


def target_pairs(results):
    """For the table of targets: exponents aimed at over those reached, one meaning as expected or slower growth."""
    expected = {"chain": {"rnea": 1.0, "aba": 1.0, "forward_kinematics": 1.0, "rnea_derivatives": 2.0,
                          "aba_derivatives": 2.0},
                "brush": {"rnea": 1.0, "aba": 1.0, "forward_kinematics": 1.0, "rnea_derivatives_nonzeros": 1.0,
                          "aba_derivatives_nonzeros": 1.0}}
    for family, exponents in expected.items():
        pairs = []
        for series in results["trees"]:
            wanted = exponents.get(series["algorithm"]) if series["family"] == family else None
            rows = series["rows"]
            reached = slope([row["size"] for row in rows], [row["timings"]["liedyn"][0] for row in rows], FITTED)
            if wanted and reached:
                pairs.append(((wanted + TOLERATED) / reached, 1.0))
        if pairs:
            yield f"(expected exponent of n + {TOLERATED}) / exponent, {family}, to n = 200", "-", pairs
