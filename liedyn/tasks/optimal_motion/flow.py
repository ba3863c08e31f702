"""Motion from given states with given inputs, in charts and side by side: Runge-Kutta's classical method."""
import numpy as np

from liedyn.motion.discrete_steps import STAGES, WEIGHTS
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in


def flow(charts, k, x, inputs, h, steps, start=None):
    """Where coordinates x[i] in chart k[i] go within times h[i], in equal steps.

    `inputs(part)` are those of all rows at a part of that time.

    Returns
    -------
    list of ndarray
        Coordinates after each step.
    """
    found, q = [], start
    dt = (h / steps)[:, None]
    for step in range(steps):
        rate, change = np.zeros_like(x), np.zeros_like(x)
        for c, b in zip(STAGES, WEIGHTS):
            q, v = charts.states(k, x + c * dt * rate, q)
            rate = rates_in(charts, k, motion_at(charts, k, q, v, inputs((step + c) / steps))).f
            change += b * rate
        x = x + dt * change
        found.append(x)
    return found
