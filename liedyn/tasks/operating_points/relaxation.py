"""From a guess to where a mechanism comes to rest, where Newton's method comes to a halt.

All coordinates are free, and move as if in honey: dy/dt = wdot(y). In the metric of the inertia that is the way down
along the slope of the potential energy, where there is one, and ends where the mechanism can rest. Pseudo-transient
continuation (Kelley and Keyes 1998) takes implicit Euler steps, longer and longer ones as the residual falls,

    (1 / h - A_wy) dw = wdot        h_next = h |wdot| / |wdot next|

until they are Newton's.
"""
import numpy as np

from liedyn.machine.errors import ClosureError, ModelError, SingularConfigurationError
from liedyn.tasks.operating_points.equilibrium_problem import place_rows

SHORT, LEAST, MOST = 0.1, 1e-12, 1e12
"""The first step in time moves no coordinate further [rad, m]; steps in time at which it is given up, and at most."""
STEPS, NEAR = 300, 1e-6
"""How many steps there are, and the part of the residual from which on Newton's method takes over."""


def relaxed(problem, here):
    """The point where a mechanism nearly rests and the number of steps; None where it comes to no rest, or where
    something else than all coordinates is free."""
    count = len(here.w)
    if here.y != here.speeds or here.free.keys() != set(here.y) or here.values or problem.bounds or here.w.any():
        return None, 0
    start, before = np.linalg.norm(here.r), np.linalg.norm(here.r)
    h = SHORT / max(np.abs(here.r).max(initial=0.0), 1.0)
    for k in range(STEPS):
        if before <= NEAR * start:
            return here, k
        try:
            rates = place_rows(here.robot, here.q, here.y) @ here.ss.S  # of y, by velocities w
            step = rates @ np.linalg.solve(np.eye(count) / h - here.J @ rates, here.r)
            longest = (here.room[:, 1] / np.maximum(np.abs(step), 1e-300)).min(initial=1.0)
            if longest < 1.0 and h > LEAST:  # beyond, the linear model says little
                h *= 0.5
                continue
            there = problem.moved(here, step)
        except (ClosureError, ModelError, SingularConfigurationError, np.linalg.LinAlgError):
            h *= 0.25
            if h < LEAST:
                return None, k
            continue
        after = np.linalg.norm(there.r)
        h = min(h * np.clip(before / max(after, 1e-300), 0.3, 3.0), MOST)
        here, before = there, after
    return None, STEPS
