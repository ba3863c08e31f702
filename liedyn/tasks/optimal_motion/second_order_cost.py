"""Second derivatives of states and accelerations by coordinates of charts and inputs, exact.

The columns (N, X, a', lambda') of the linear model at a node move with its coordinates x. With Z_h = [G_h; R_y J(d)],
Z = [G; R_w], a prime for the variation along a column and D for the derivative along another one,

    Z_h DN = -(D(G_h) N, D(R_y J) N)    Z DX = -(D psi', 0)    M Da' + G^T Dlambda' = -D F'    G Da' = -D phi'

the same equations as for parameters (`liedyn.linear.sensitivity.linear_model`), with mixed second variations of the
equations of motion and of the constraints (`liedyn.linear.sensitivity.variations`): no step size. DN is the derivative
of a displacement, seen from where it leads to; X and a' are plain numbers, whose derivatives are symmetric.
"""
from typing import NamedTuple

import numpy as np

from liedyn.linear.sensitivity.linear_model import LinearModels
from liedyn.linear.sensitivity.sensitivities import element_slopes
from liedyn.linear.sensitivity.sensitivity_columns import Columns, Variations
from liedyn.linear.sensitivity.variations import Motion
from liedyn.mechanics.constraints.independent import Independent, tangent_names
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.crba import crba
from liedyn.tasks.optimal_motion.charts import inverse_jacobian_slopes


class SecondMotion(NamedTuple):
    """How N, X and a' of a `Motion` change with x: (count, columns, nv, x), `columns` being those of x, then of u.

    The same of the coordinates of cut joints and of their rates, (count, columns, coordinates, x), or of none.
    """

    N: np.ndarray
    X: np.ndarray
    a: np.ndarray
    strokes: np.ndarray
    stroke_rates: np.ndarray

    def along(self, of_q, of_v, of_a):
        """The Hessian (count, columns, x) of a function with these gradients by q, v and a (count, nv), as far as the
        motion's own curvature makes it."""
        return sum(np.einsum("bj,bcjx->bcx", weights, second, optimize=True)
                   for weights, second in ((of_q, self.N), (of_v, self.X), (of_a, self.a)))


def second_motion(charts, k, motion, reads):
    """The `SecondMotion` at states of charts k[i]; strokes only if it `reads` them."""
    robot, (p, x), nodes = charts.robot, charts.sizes, len(motion.q)
    d = charts.displacement(k, motion.q)
    R_y, R_w = charts.turned_rows(k, d), charts.R_w[k]
    y, w = (Independent(tangent_names(len(R[0])), R[0], np.full(len(R[0]), -1)) for R in (R_y, R_w))
    slopes = element_slopes(robot, motion.q, motion.v, motion.u, (nodes,))
    inputs = np.broadcast_to(actuator_matrix(robot, motion.q), (nodes, robot.nv, motion.u.shape[1]))
    models = LinearModels(robot, (nodes,), y, w, R_y, R_w, Motion(motion.q, motion.v, motion.a, motion.lam),
                          crba(robot, motion.q), np.full(nodes, robot.nv - x + p), inputs, slopes)
    one, two = models.columns, Columns(*(each[:, :, :x] for each in models.columns))
    along, count = Variations(robot, models.motion, [([], [])] * x, reads, slopes), one.N.shape[2]
    N, X = np.zeros((2, nodes, count, robot.nv, x))
    rates = np.zeros((nodes, p, models.Z_h.shape[1], x))  # the others displace nothing
    if robot.row_names:
        rates[:, :, :-p or None] = along.along(Columns(None, two.N[:, :, :p], None, None), two).rows.psi_mixed[
            :, :, models.holonomic]
    if charts.groups:
        turned = charts.turned(d, two.N)
        for group in charts.groups:
            slope = inverse_jacobian_slopes(d[:, group])[0]
            bent = np.einsum("baij,bic,bjx->bcax", slope, two.N[:, group, :p], turned[:, group])
            rates[:, :, -p:] += np.einsum("bya,bcax->bcyx", charts.R_y[k][:, :, group], bent)
    N[:, :p] = -models.Z_h_inverse[:, None] @ rates
    if robot.row_names:
        rates = along.along(Columns(two.N, two.X, None, None), two, N[:, :x]).rows.psi_mixed
        X[:, :x] = models.follow(False, rates, np.zeros((*rates.shape[:2], 0, x)))[0]
    found = along.along(one, two, N, X, models.pushed())
    free, _ = models.follow(False, found.rows.phi_mixed, found.readers.phi_mixed)
    a = free + models.S[:, None] @ models.balance(found.mixed, free)
    strokes = along.along(Columns(None, one.N, None, None), two, None, N).readers.psi_mixed if reads else None
    return SecondMotion(N, X, a, strokes, found.readers.psi_mixed)
