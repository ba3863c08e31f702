"""What was aimed at, as ratios, and the table of what was reached."""
from statistics import median

from benchmarks.tables import MISSING, markdown

ARMS = ("panda", "ur5")
FAST = ("rnea", "aba", "rnea_derivatives")
SLOWER = ("crba", "body_jacobian", "body_jacobian_dot", "body_jacobian_dq", "forward_kinematics")

NJIT = {"arm": dict.fromkeys(FAST, 3.5) | dict.fromkeys(SLOWER, 2.0) | {"aba_derivatives": 2.5},
        "other": dict.fromkeys(FAST, 3.0) | dict.fromkeys(SLOWER, 2.0) | {"aba_derivatives": 2.5}}
"""Compiled code against native Pinocchio, by group of robots and algorithm."""
PYTHON = {kind: dict.fromkeys((*FAST, *SLOWER, "aba_derivatives"), 2.5) for kind in NJIT}
PYTHON["arm"]["rnea"] = 1.5
"""One call from Python against Pinocchio's wheel called from Python."""
ONE_CORE = {"rnea": 12.0, "aba": 12.0, "rnea_derivatives": 9.0}
"""Batches on one core against native Pinocchio."""
IN_PARALLEL, OPENMP = 15.0, 3.0
"""Batches on two cores against Pinocchio's InParallel, and against generated C with OpenMP."""
FOUR_WIDE = 0.5
"""Part of these targets of batches that holds for registers of four doubles, half as many as they are for."""
GENERATED = {"rnea": 4.7, "aba": 5.1, "rnea_derivatives": 3.6, "aba_derivatives": 3.7}
"""Specialised kernels of the panda against native Pinocchio: what generated C was found to reach."""
CONSTRAINED, DERIVED = 2.0, 2.0
"""Constrained accelerations, and A, B and f, against native Pinocchio."""
LINEARIZATION = 3.0
"""Most evaluations of f that A, B and f may cost, up to 20 degrees of freedom."""
GAIN_SCHEDULING = 1e6
"""Linearizations of the five-bar per second on two cores."""
LESS_ERROR = 1000.0
"""How much smaller than of differences the error of the exact A must be."""

NAMES = {"rnea": "RNEA", "aba": "ABA", "rnea_derivatives": "dRNEA", "aba_derivatives": "dABA", "crba": "CRBA",
         "body_jacobian": "J", "body_jacobian_dot": "dJ/dt", "body_jacobian_dq": "dJ/dq", "forward_kinematics": "poses"}
"""Of the algorithms in the table of targets."""


def group(robot):
    """Whose targets a robot has."""
    return "arm" if robot in ARMS else "other"


def mark(value, target):
    """A ratio with its target, in bold where it is reached.

    Examples
    --------
    >>> mark(4.0, 3.5), mark(3.0, 3.5), mark(None, 3.5)
    ('**4.00** (3.5)', '3.00 (3.5)', 'missing')
    """
    if value is None:
        return MISSING
    text = f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return f"**{text}** ({target:g})" if value >= target else f"{text} ({target:g})"


def summary(name, peer, pairs):
    """One line of the table of targets: how many cases reach it, and the smallest, middle and largest ratio to it.

    Parameters
    ----------
    name, peer : str
    pairs : list of (ratio, target)
        Ratio None where something is missing.

    Examples
    --------
    >>> summary("RNEA", "native", [(3.0, 2.0), (None, 2.0), (1.0, 2.0)])
    ('RNEA', 'native', '2', '1 of 2', '1.00', '2.00', '3.00')
    """
    targets = sorted({target for _, target in pairs})
    known = [(value, target) for value, target in pairs if value is not None]
    text = " / ".join(f"{target:g}" for target in targets)
    if not known:
        return name, peer, text, MISSING, MISSING, MISSING, MISSING
    values = [value for value, _ in known]
    return (name, peer, text, f"{sum(value >= target for value, target in known)} of {len(known)}",
            *(f"{x:.2f}" if x < 100 else f"{x:.0f}" for x in (min(values), median(values), max(values))))


def table(lines):
    """Lines of :func:`summary` as Markdown."""
    return markdown(("job", "against", "target", "reached", "smallest", "median", "largest"), lines)
