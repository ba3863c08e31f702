"""When does exact linearization beat finite differences, in time and in accuracy? (The thesis leaves it open, 5.1.)

The size of the problem is varied in three ways: the length n of a chain (n = p), the number of loops (ladders, n = 3 p)
and the mechanism. Times and the errors of differences are those of `loops`; the truth comes from fifty-digit arithmetic
(`exact`) for small mechanisms, operation counts from instrumented code (`operations`).
"""
import numpy as np

import liedyn as ld
from benchmarks import loops, operations, robots
from benchmarks.differences import differences
from benchmarks.errors import MissingPeer, relative_difference, require_agreement
from benchmarks.exact import ExactMechanism
from benchmarks.plots import figure
from benchmarks.tables import MISSING, markdown, median, quotient
from benchmarks.targets import LESS_ERROR

TITLE = "Exact linearization or finite differences"
CASES = ("chain1", "chain2", "chain4", "chain10", "chain20", "chain50", "ladder1", "ladder2", "ladder4", "ladder8",
         "ladder16", "four_bar", "five_bar", "loader", "stewart", "cassie_like", "panda", "talos")
TRUE = ("chain1", "chain2", "chain4", "four_bar", "five_bar", "ladder1", "ladder2", "loader", "panda")
"""Small enough for fifty digits."""
QUICK_CASES = ("five_bar",)
STEPS = tuple(10.0 ** -k for k in range(1, 10))
COMMON_STEP = 1e-6
TOLERANCE = 1e-10
ROUNDING = 2.0 ** -53
"""An error of zero counts as this: the truth itself is rounded to a float."""

TEXT = """n coordinates of the tree, p independent ones, nu inputs. f, A, B and f, differences: microseconds in compiled
code, medians; central differences take 4 p + 2 nu evaluations of f, and assemble every perturbed state again (with a
frozen Newton matrix). worth: for how many of these evaluations A, B and f could be had; with fewer, differences would
be faster. Even one-sided differences need 2 p + nu + 1. Operations: floating-point additions, multiplications,
divisions and roots, as compiled, counted while the code runs; an operation on a register of W numbers counts as W of
them, also where fewer columns than W are left for it, as in small mechanisms.
"""
ERRORS = """Errors of A and B, relative to the largest entry, against {digits} digits where such are known (an own
Newton-Euler in mpmath, differentiated without loss), at one moving state. differences: central, at the best of the
steps 1e-1 to 1e-9, which a user does not know, and at 1e-6.

![Errors of differences over their step, with a best step; exact derivatives below all](plots/study.svg)
"""
CONCLUSION = """So in time: {time} In accuracy: {accuracy}
"""


def measure(effort, progress):
    """Times, operations and errors of all cases.

    Returns
    -------
    list of dict Rows of `loops`, with "operations", "errors" by step against the truth, and "error of exact" (None
    where the truth is not known).
    """
    cases = QUICK_CASES if effort.quick else CASES
    progress("operation counts")
    counts = {} if effort.quick else operations.of_linearization(cases)
    rows = []
    for name in cases:
        progress(name)
        row = loops.row(name, effort, native=False) | {"robot": name, "loops": len(robots.named(name).loop_names)}
        row["operations"] = counts.get(name)
        row["error of exact"], row["errors"], row["truth"] = None, None, "too large"
        if name in TRUE:
            try:
                row["error of exact"], row["errors"] = _errors(name)
                row["truth"] = "known"
            except MissingPeer as error:
                row["truth"] = str(error)
        rows.append(row)
    return rows


def _errors(name):
    """Error of the exact A and B, and of differences at all steps."""
    robot = robots.named(name)
    q, v, tau = robots.moving_states(robot, 1, np.random.default_rng(1))
    given, actuators, p = loops.given(robot, q, v, tau)
    chosen = loops.choice_of(robot, q[0])
    ss = ld.linearize(robot, q[0], v[0], tau[0], independent=chosen)
    truth = ExactMechanism(robot, chosen.names).lower_rows(q[0], v[0], tau[0])
    exact = require_agreement(f"{name}, exact linearization and fifty digits",
                              (ss.A[p:], ss.B[p:]), (truth[:, :2 * p], truth[:, 2 * p:]), TOLERANCE)
    force, out, errors = 1.0 / (np.abs(ss.B).max(initial=0.0) or 1.0), np.empty_like(truth), []
    for step in STEPS:
        differences(given[0], q[0], v[0], tau[0], *given[4:], actuators, loops.RANK_TOLERANCE, step, force, out)
        errors.append(relative_difference((out[:, :2 * p], out[:, 2 * p:]), (truth[:, :2 * p], truth[:, 2 * p:])))
    return max(exact, ROUNDING), errors


def worth(row):
    """How many evaluations of f by differences A, B and f take as long as."""
    t = row["timings"]
    return t["exact"][0] / (t["differences"][0] / row["evaluations"])


def report(rows):
    """The section in Markdown."""
    heading = ("", "n / p / nu / loops", "f", "A, B and f", "differences", "evaluations", "differences / exact",
               "worth", "operations: f", "A, B and f", "differences", "(A, B and f) / f", "differences / exact")
    lines = []
    for row in rows:
        t, counts = row["timings"], row["operations"]
        cells = (MISSING,) * 5
        if counts:
            cells = (*(f"{counts[key]:,}" for key in ("f", "exact", "differences")),
                     f"{counts['exact'] / counts['f']:.1f}", f"{counts['differences'] / counts['exact']:.1f}")
        lines.append((row["robot"], " / ".join(str(row[key]) for key in ("nv", "p", "nu", "loops")), median(t["f"]),
                      median(t["exact"]), median(t["differences"]), str(row["evaluations"]),
                      f"{quotient(t['differences'], t['exact']):.1f}", f"{worth(row):.1f}", *cells))
    known = [row for row in rows if row["errors"]]
    errors = [(row["robot"], f"{row['error of exact']:.1e}", f"{min(row['errors']):.1e}",
               f"{STEPS[int(np.argmin(row['errors']))]:.0e}", f"{row['errors'][STEPS.index(COMMON_STEP)]:.1e}",
               f"{min(row['errors']) / row['error of exact']:,.0f}") for row in known]
    out = [TEXT, markdown(heading, lines), ""]
    if errors:
        out += [ERRORS.format(digits="fifty"), markdown(
            ("", "exact", "differences, best step", "that step", "differences, 1e-6", "best step / exact"), errors), ""]
    missing = {row["truth"] for row in rows} - {"known", "too large"}
    out += [f"Missing: the truth ({why}).\n" for why in sorted(missing)]
    return "\n".join([*out, _conclusion(rows, known)])


def _conclusion(rows, known):
    gains = {row["robot"]: quotient(row["timings"]["differences"], row["timings"]["exact"]) for row in rows}
    least, most = min(gains, key=gains.get), max(gains, key=gains.get)
    slower = [name for name, gain in gains.items() if gain < 1.0]
    faster = f"faster in all cases but {', '.join(slower)}" if slower else "always faster"
    time = (f"exact linearization is {faster}, by {gains[least]:.1f} ({least}) to {gains[most]:.0f} times ({most}); "
            f"it costs as much as {min(map(worth, rows)):.1f} to {max(map(worth, rows)):.1f} evaluations of f, and\n"
            f"even one degree of freedom with one input takes 6 of them by central and 4 by one-sided differences.")
    accuracy = "no truth was computed."
    if known:
        ratios = [min(row["errors"]) / row["error of exact"] for row in known]
        accuracy = (f"at the best step differences are {min(ratios):,.0f} to {max(ratios):,.0f} times less accurate,\n"
                    f"and the best step differs from one mechanism to the next.")
    return CONCLUSION.format(time=time, accuracy=accuracy)


def plot(rows, folder):
    """study.svg: gain in time, errors over the step, operations."""
    with figure(folder / "study.svg", 3, width=4.4) as (gain, error, count):
        for start, marker in (("chain", "o-"), ("ladder", "s-"), ("", "^")):
            chosen = [row for row in rows if row["robot"].startswith(start) and (
                start or not row["robot"].startswith(("chain", "ladder")))]
            x = [row["evaluations"] for row in chosen]
            label = {"chain": "chains", "ladder": "ladders of loops", "": "mechanisms"}[start]
            gain.loglog(x, [quotient(row["timings"]["differences"], row["timings"]["exact"]) for row in chosen], marker,
                        ms=4, label=label)
            counted = [row for row in chosen if row["operations"]]
            for key, style in (("f", ":"), ("exact", "-")):
                if start and counted:
                    count.loglog([row["nv"] for row in counted], [row["operations"][key] for row in counted],
                                 marker[0] + style, ms=4, label=f"{label}: {'A, B and f' if key == 'exact' else 'f'}")
        gain.axhline(1.0, color="k", lw=0.8)
        gain.set(xlabel="evaluations of f, 4 p + 2 nu", ylabel="time of differences / time of exact", title="Time")
        for k, row in enumerate(row for row in rows if row["errors"]):
            error.loglog(STEPS, row["errors"], color=f"C{k}", label=row["robot"])
            error.axhline(max(row["error of exact"], 1e-17), color=f"C{k}", ls=":", lw=0.8)
        error.set(xlabel="step of central differences", ylabel="relative error of A, B",
                  title="Accuracy (dotted: exact linearization)")
        count.set(xlabel="coordinates of the tree n", ylabel="floating-point operations", title="Operations")
        for axes in (gain, error, count):
            axes.legend(fontsize=6)
            axes.grid(True, which="both", alpha=0.2)


def target_pairs(rows):
    """For the table of targets: error of differences over that of the exact A and B."""
    yield f"error of differences at the best step / {LESS_ERROR:g} / error of the exact A and B", "fifty digits", [
        (min(row["errors"]) / row["error of exact"] / LESS_ERROR if row["error of exact"] else None, 1.0)
        for row in rows if row["errors"]]
