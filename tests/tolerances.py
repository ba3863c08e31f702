"""Adaptive methods with tight tolerances, beside methods with fixed steps."""
import liedyn as ld
from liedyn.motion.simulation.integrators.adaptive import SOLVERS


def tight(name, rtol=1e-10, atol=1e-12):
    """A method by its name, with these tolerances if it has any."""
    return ld.Adaptive(name, rtol, atol) if name in SOLVERS else name
