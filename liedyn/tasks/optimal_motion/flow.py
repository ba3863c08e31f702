"""Integration from given states with given inputs, in charts and in batches: classical Runge-Kutta method."""
import numpy as np

from liedyn.motion.discrete_steps import STAGES, WEIGHTS
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in


def flow(charts, k, x, inputs, h, steps, start=None):
    """Integrates coordinates x[i] in charts k[i] over times h[i], in equal steps.

    `inputs(part)` returns the inputs of all rows at a fraction of that time.

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
