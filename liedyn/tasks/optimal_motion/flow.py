"""Integration from given states with given inputs, in charts and in batches: classical Runge-Kutta method."""
import numpy as np

from liedyn.motion.runge_kutta import RK4, Vectors, step
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
    for done in range(steps):
        def equations(part, change, _, x=x, done=done):
            nonlocal q
            q, v = charts.states(k, x + change, q)
            return rates_in(charts, k, motion_at(charts, k, q, v, inputs((done + part) / steps))).f, None

        x = x + step(Vectors(np.zeros_like(x)), equations, RK4, h / steps)[0]
        found.append(x)
    return found
