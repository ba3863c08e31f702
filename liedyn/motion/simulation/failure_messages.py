"""Messages that say why a step failed."""
import numpy as np

from liedyn.mechanics.constraints.undefined import undefined_rows
from liedyn.model.calls.boundary import is_usable
from liedyn.motion.simulation.singular_passages import NEAR
from liedyn.motion.simulation.workspace import DIVERGED, MESSAGES, NOT_CLOSED, NOT_CONVERGED, NOT_FINITE


def reason(status, robot, o, x, inputs, stepping):
    """Message for a status other than OK, from the scratch of the step; `stepping`: a time-stepping method."""
    text = MESSAGES[status].format(largest=o.largest.min())
    if stepping and status == NOT_CONVERGED:
        text = "no impulses that push and obey Coulomb's law could be found for a step: try a smaller dt"
    by_collocation = o.tableau[0, 0] != 0.0  # the first row of explicit methods is empty
    # with divergence any other failure may be a consequence
    if by_collocation and status != DIVERGED and not x.nearest[0] <= NEAR:
        return (f"the iteration of the implicit step does not converge near a singular configuration (condition number "
                f"{x.nearest[0]:.3g}), where its rates grow without bound however small dt is: explicit methods, as "
                "'rk4', pass it")
    if status in (NOT_FINITE, NOT_CONVERGED):
        text = _not_finite(robot, x, inputs) or text
    g = np.abs(x.residual) / x.row_sizes
    if status == NOT_CLOSED and (g > o.tolerance).any():
        worst = int(np.nanargmax(g))
        text += f" ({robot.row_names[worst]} is left at {abs(x.residual[worst]):.3g})"
    return text


def _not_finite(robot, x, inputs):
    """Message for the input or constraint that was not finite at the last evaluation of accelerations."""
    bad = np.flatnonzero(~is_usable(x.u))
    if len(bad):
        return f"the input {inputs.names[bad[0]]} is {x.u[bad[0]]}"
    bad = ~np.isfinite(x.gamma)
    return str(undefined_rows(robot, bad)) if bad.any() else ""
