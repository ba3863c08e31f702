"""Errors of the intervals of a motion, and finer meshes if they are too large."""
import numpy as np

from liedyn.tasks.optimal_motion.charts import LeftChartError
from liedyn.tasks.optimal_motion.flow import flow

STEPS, CHECKS = 16, 4
"""Runge-Kutta steps in an interval for comparison, and number of their states that are compared."""


def interval_errors(program, z):
    """Largest difference, in coordinates x of each interval's chart, from an integration of its inputs."""
    t = program.transcription
    x, _, duration = t.layout.split(z)
    k, motion = np.arange(len(t.mesh) - 1), program.evaluate(z).motion
    errors = np.zeros(len(k))
    try:
        there = flow(t.charts, k, x[t.knots[:-1]], lambda part: t.inputs(z, k, np.full(len(k), part)),
                     duration * np.diff(t.mesh), STEPS)
    except LeftChartError as error:  # with these inputs the state moves far away from that of the motion
        errors[error.rows] = np.inf
        return errors
    for check in range(1, CHECKS + 1):
        part = check / CHECKS
        if check < CHECKS:
            found = t.inside(z, motion, k, np.full(len(k), part))[0]
        else:
            q, v = t.charts.states(t.chart[t.knots[1:]], x[t.knots[1:]])
            found = t.charts.read(k, q, v)
        errors = np.maximum(errors, np.abs(found - there[STEPS * check // CHECKS - 1]).max(axis=1))
    return errors


def finer(transcription, errors, tolerance):
    """A mesh of sufficient accuracy: each interval is divided according to its order, into at most four."""
    order = transcription.points if transcription.name == "collocation" else 4
    parts = np.ceil(np.minimum(2.0 * errors / tolerance, 1e9) ** (1.0 / (order + 1)))
    parts = np.where(errors > tolerance, np.clip(parts, 2, 4), 1).astype(int)
    mesh = transcription.mesh
    return np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh, mesh[1:], parts)), [1.0]])
