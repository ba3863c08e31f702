"""The Hessian of the Lagrangian, node by node: exact, but for what has first derivatives only.

Cost and constraints are functions l of the states, inputs and accelerations of single nodes, and of the duration. Along
columns 1 and 2 of a node's unknowns

    l_12 = l_q . N_12 + l_v . X_12 + l_a . a_12 + (second derivatives of l itself) along 1 and 2

so that gradients of all that there is are added up first, and `SecondMotion` is contracted with them once.
"""
import numpy as np

from liedyn.linear.sensitivity.sensitivities import is_of_cut_ball
from liedyn.tasks.optimal_motion.dynamics import bent_rates
from liedyn.tasks.optimal_motion.limits import Linear, Power, Virtual
from liedyn.tasks.optimal_motion.second_order_cost import second_motion

EXACT = Linear, Power, Virtual
"""Kinds of rows whose second derivatives are known."""


def is_known(robot, rows):
    """Are their second derivatives known? Coordinates of balls that are cut have none that go on."""
    if isinstance(rows, Virtual) and not rows.of_velocity and any(is_of_cut_ball(robot, each) for each in rows.names):
        return False
    return isinstance(rows, EXACT)


class NodeHessians:
    """Sums over all nodes.

    Attributes
    ----------
    of_q, of_v, of_a : ndarray, shape (nodes, nv)
        Gradients.
    H : ndarray, shape (nodes, columns, columns)
        Second derivatives otherwise, by the coordinates and inputs of a node and the duration.
    """

    def __init__(self, transcription, motion):
        layout = transcription.layout
        columns = layout.x + layout.nu + 1
        self._charts, self._chart, self._motion, self._second = transcription.charts, transcription.chart, motion, None
        self.of_q, self.of_v, self.of_a = np.zeros((3, layout.nodes, motion.v.shape[1]))
        self.H, self.x = np.zeros((layout.nodes, columns, columns)), layout.x

    def add_rates(self, nodes, charts, k, motion, on_x, on_f):
        """on_x . x + on_f . f of some nodes in charts k[i], not necessarily their own."""
        gradients, H = bent_rates(charts, k, motion, on_x, on_f)
        for total, each in zip((self.of_q, self.of_v, self.of_a), gradients):
            total[nodes] += each
        self.H[nodes, :self.x, :self.x] += H

    def add_by_duration(self, nodes, slopes):
        """What the gradient (count, x + nu) of some nodes gains with the duration."""
        self.H[nodes, :-1, -1] += slopes
        self.H[nodes, -1, :-1] += slopes

    def add_rows(self, rows, nodes, samples, multipliers, second):
        """Limits of an `EXACT` kind."""
        if isinstance(rows, Virtual):
            bent = second().stroke_rates if rows.of_velocity else second().strokes
            self._add_columns(nodes, np.einsum("bm,bcmx->bcx", multipliers, bent[nodes][:, :, rows._places]))
            return
        _, *by = rows.evaluate(samples)
        for total, each in zip((self.of_q, self.of_v), by):
            if each is not None:
                total[nodes] += np.einsum("bm,bmj->bj", multipliers, each)
        if isinstance(rows, Power):
            crossed = np.einsum("bm,jm,bjx->bmx", multipliers, rows._S, samples.dv[:, :, :self.x])
            at = self.x + np.array(rows._places)
            for m, column in enumerate(at):
                self.H[nodes, column, :self.x] += crossed[:, m]
                self.H[nodes, :self.x, column] += crossed[:, m]

    def total(self, second):
        """The Hessians of the nodes; `second()` is their `SecondMotion`."""
        charts = self._charts
        if self.of_a.any() or (charts.robot.row_names or charts.groups) and (self.of_v.any() or self.of_q.any()):
            self._add_columns(slice(None), second().along(self.of_q, self.of_v, self.of_a))
        return self.H

    def _add_columns(self, nodes, H):
        """Hessians by coordinates and inputs (count, x + nu, x): nothing that bends is quadratic in the inputs."""
        x = self.x
        self.H[nodes, :-1, :x] += H
        self.H[nodes, :x, x:-1] += H[:, x:].swapaxes(1, 2)


def second_motion_of(transcription, motion):
    """`SecondMotion` of all nodes, computed when it is first called."""
    found = []

    def second():
        if not found:
            found.append(second_motion(transcription.charts, transcription.chart, motion,
                                       bool(transcription.charts.robot.virtual_names)))
        return found[0]

    return second
