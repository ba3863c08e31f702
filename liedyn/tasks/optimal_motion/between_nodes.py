"""Checks between the nodes of the program: limits that are exceeded, and jumps to another branch."""
from typing import NamedTuple

import numpy as np

from liedyn.mechanics.tree.configuration import difference
from liedyn.tasks.optimal_motion.charts import LeftChartError
from liedyn.tasks.optimal_motion.limits import Power
from liedyn.tasks.optimal_motion.samples import Samples

LOOSE = 1e-3
"""Largest excess of limits between nodes, relative to the limit (or to one if it is zero), above which the mesh is
refined or the user warned: below the accuracy to which limits are known."""
LEAP = 1e-6
"""Difference of configurations [rad, m] above which they are two solutions: Newton's method is accurate to 1e-13."""
SEEN = 1e-6
"""Smaller excesses are within the tolerance of the solver."""


class Excess(NamedTuple):
    """For all limits (m,): names, how far each row of a trajectory exceeds them (rows, m), the same relative to the
    limits, and whether finer meshes help: inputs that switch between their limits overshoot on any mesh."""

    names: list
    amounts: np.ndarray
    parts: np.ndarray
    shrinks: np.ndarray

    def largest(self, least):
        """The largest excess by name, for limits exceeded by a larger fraction than `least`, worst ones first."""
        worst, amounts = (x.max(axis=0, initial=0.0) for x in (self.parts, self.amounts))
        return {self.names[j]: float(amounts[j]) for j in np.argsort(-worst) if worst[j] > least}


def excess(demands, actuators, t, q, v, u):
    """The `Excess` of rows of a trajectory: times t (count,), states (q, v), inputs u of `actuators`, given by name."""
    samples = Samples(t, q, v, u, *[None] * 6)
    parts = [(rows.names, rows.evaluate(samples)[0], rows.low, rows.high, not isinstance(rows, Power))
             for rows in demands.rows]
    parts.append(([f"force:{name}" for name in actuators], u, *demands.of_inputs.T, False))
    values, low, high = (np.concatenate(x, axis=-1) for x in list(zip(*parts))[1:4])
    amounts = np.maximum(np.maximum(low - values, values - high), 0.0)
    size = np.max([np.where(np.isfinite(x), np.abs(x), 0.0) for x in (low, high)], axis=0)
    shrinks = np.concatenate([np.full(len(names), each) for names, *_, each in parts])
    return Excess([name for names, *_ in parts for name in names], amounts,
                  amounts / np.where(size > 0.0, size, 1.0), shrinks)


def intervals_beyond(found, rows):
    """Intervals of `rows` rows each that exceed limits by more than the fraction LOOSE where a finer mesh helps, and
    the largest such fraction."""
    parts = np.where(found.shrinks, found.parts, 0.0).max(axis=1, initial=0.0)
    of_interval = parts[:-1].reshape(-1, rows).max(axis=1)
    return of_interval > LOOSE, parts.max()


def leaps(program, z):
    """Intervals whose end is not the next knot but another configuration with the same chart coordinates; may be empty.

    Tangent coordinates determine a configuration next to their reference. Far from it a mechanism may have another
    configuration with the same coordinates, beyond a dead centre or in another assembly mode: no motion leads there.

    Raises LeftChartError if a knot is outside the chart of the knot before it, as a ball joint rotates too far.
    """
    t = program.transcription
    q, k = program.evaluate(z).nodes.q[t.knots], np.arange(len(t.mesh) - 1)
    y = np.einsum("bij,bj->bi", t.charts.R_y[k], t.charts.displacement(k, q[1:]))
    found = np.empty(len(k), bool)
    for i in k:  # one by one, as Newton's method fails for a whole batch if it fails for one state
        try:
            there = t.charts.configurations(k[[i]], y[[i]])[0]
            found[i] = np.abs(difference(t.charts.robot, there, q[i + 1])).max() > LEAP
        except LeftChartError:
            found[i] = True
    return found
