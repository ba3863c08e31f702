"""What happens between the nodes, where the program does not look: exceeded limits, and leaps to another branch."""
from typing import NamedTuple

import numpy as np

from liedyn.mechanics.tree.configuration import difference
from liedyn.tasks.optimal_motion.charts import LeftChartError
from liedyn.tasks.optimal_motion.limits import Power
from liedyn.tasks.optimal_motion.samples import Samples

LOOSE = 1e-3
"""What limits may be exceeded by between nodes, as a part of the limit (of one, if it is zero), before the mesh gets
finer there, or the user is told: less than limits of machines are known by."""
LEAP = 1e-6
"""Configurations that differ by more [rad, m] are two: Newton's method finds one to 1e-13."""
SEEN = 1e-6
"""Smaller parts are the tolerance of the solver."""


class Excess(NamedTuple):
    """Of all limits (m,): names, how far each row of a trajectory is beyond them (rows, m), the same as parts of the
    limits, and do finer meshes help? Inputs that jump from limit to limit overshoot on any mesh."""

    names: list
    amounts: np.ndarray
    parts: np.ndarray
    shrinks: np.ndarray

    def largest(self, least):
        """The largest amounts by name, of limits that are exceeded by a larger part than `least`, worst parts first."""
        worst, amounts = (x.max(axis=0, initial=0.0) for x in (self.parts, self.amounts))
        return {self.names[j]: float(amounts[j]) for j in np.argsort(-worst) if worst[j] > least}


def excess(demands, actuators, t, q, v, u):
    """The `Excess` of rows of a trajectory: times t (count,), states (q, v), inputs u of `actuators`, their names."""
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
    """Which intervals of `rows` rows each exceed limits by more than LOOSE of them where a finer mesh helps, and the
    largest such part."""
    parts = np.where(found.shrinks, found.parts, 0.0).max(axis=1, initial=0.0)
    of_interval = parts[:-1].reshape(-1, rows).max(axis=1)
    return of_interval > LOOSE, parts.max()


def leaps(program, z):
    """Intervals whose end is not the next knot but another configuration with the same coordinates in their chart, or
    none.

    Tangent coordinates name a configuration next to their reference. Far from it a mechanism may have another one that
    has the same, beyond a dead centre or in another assembly mode: no motion leads there.

    Raises
    ------
    LeftChartError
        A knot is out of reach of the chart before it: a ball turns too far.
    """
    t = program.transcription
    q, k = program.evaluate(z).nodes.q[t.knots], np.arange(len(t.mesh) - 1)
    y = np.einsum("bij,bj->bi", t.charts.R_y[k], t.charts.displacement(k, q[1:]))
    found = np.empty(len(k), bool)
    for i in k:  # one by one, as Newton's method gives up all of a batch where it fails for one
        try:
            there = t.charts.configurations(k[[i]], y[[i]])[0]
            found[i] = np.abs(difference(t.charts.robot, there, q[i + 1])).max() > LEAP
        except LeftChartError:
            found[i] = True
    return found
