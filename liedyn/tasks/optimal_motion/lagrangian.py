"""The Hessian of the Lagrangian, node by node: exact, except for functions with first derivatives only.

Cost and constraints are functions l of the states, inputs and accelerations of single nodes, and of the duration. Along
columns 1 and 2 of a node's unknowns

    l_12 = l_q . N_12 + l_v . X_12 + l_a . a_12 + (second derivatives of l itself) along 1 and 2

so that all gradients are summed first, and second derivatives of the motion are needed contracted with the sums only:
`bent_motion`, by adjoint equations (`liedyn.linear.second.hessian`).

`SecondMotion`, where there are force elements, or limits of coordinates of cut joints: second derivatives of states and
accelerations by coordinates of charts and inputs themselves, for a multiple of the time.

The columns (N, X, a', lambda') of the linear model at a node vary with its coordinates x. With Z_h = [G_h; R_y J(d)],
Z = [G; R_w], a prime for the variation along a column and D for the derivative along another one,

    Z_h DN = -(D(G_h) N, D(R_y J) N)    Z DX = -(D psi', 0)    M Da' + G^T Dlambda' = -D F'    G Da' = -D phi'

the same equations as for parameters (`liedyn.linear.sensitivity.linear_model`), with mixed second variations of the
equations of motion and of the constraints (`liedyn.linear.sensitivity.variations`): no step size. DN is the derivative
of a displacement, seen from its end; X and a' are vectors, whose derivatives are symmetric.
"""
from typing import NamedTuple

import numpy as np

from liedyn.linear.operating_point import actuators_of
from liedyn.linear.second.motion_states import WeighedMotion, motion_states
from liedyn.linear.sensitivity.linear_model import At, Besides, Chosen, LinearModels
from liedyn.linear.sensitivity.law_sensitivity import element_slopes
from liedyn.linear.sensitivity.link_sensitivity import Columns
from liedyn.linear.sensitivity.sensitivities import is_of_cut_ball
from liedyn.linear.sensitivity.sensitivity_columns import Variations
from liedyn.linear.sensitivity.variations import Motion
from liedyn.linear.space import Coordinates
from liedyn.mechanics.constraints.independent import Independent, tangent_names
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.crba import crba
from liedyn.motion.local_coordinates import rate_slope
from liedyn.tasks.optimal_motion.dynamics import bent_rates
from liedyn.tasks.optimal_motion.limits import Linear, Power, Virtual


class SecondMotion(NamedTuple):
    """Derivatives of N, X and a' of a `Motion` by x: (count, columns, nv, x), the columns being those of x, then of u.

    Also those of the coordinates of cut joints and of their rates, (count, columns, coordinates, x), if needed.
    """

    N: np.ndarray
    X: np.ndarray
    a: np.ndarray
    strokes: np.ndarray
    stroke_rates: np.ndarray

    def along(self, of_q, of_v, of_a):
        """The Hessian (count, columns, x) of a function with these gradients by q, v and a (count, nv), as far as it
        comes from the motion's own curvature."""
        return sum(np.einsum("bj,bcjx->bcx", weights, second, optimize=True)
                   for weights, second in ((of_q, self.N), (of_v, self.X), (of_a, self.a)))


def second_motion(charts, k, motion, reads):
    """The `SecondMotion` at states of charts k[i]; coordinates of cut joints only if it `reads` them."""
    robot, (p, x), nodes = charts.robot, charts.sizes, len(motion.q)
    d = charts.displacement(k, motion.q)
    R_y, R_w = charts.turned_rows(k, d), charts.R_w[k]
    y, w = (Independent(tangent_names(len(R[0])), R[0], np.full(len(R[0]), -1)) for R in (R_y, R_w))
    slopes = element_slopes(robot, motion.q, motion.v, motion.u, (nodes,))
    inputs = np.broadcast_to(actuator_matrix(robot, motion.q), (nodes, robot.nv, motion.u.shape[1]))
    at = At(Motion(motion.q, motion.v, motion.a, motion.lam), crba(robot, motion.q),
            np.full(nodes, robot.nv - x + p), inputs)
    models = LinearModels(robot, ((nodes,), 0), Chosen(y, w, R_y, R_w), at, Besides(slopes))
    one, two = models.columns, Columns(*(each[:, :, :x] for each in models.columns))
    along, count = Variations(robot, models.motion, [([], [])] * x, reads, slopes), one.N.shape[2]
    N, X = np.zeros((2, nodes, count, robot.nv, x))
    rates = np.zeros((nodes, p, models.Z_h.shape[1], x))  # the other coordinates displace nothing
    if robot.row_names:
        rates[:, :, :-p or None] = along.along(Columns(None, two.N[:, :, :p], None, None), two).rows.psi_mixed[
            :, :, models.holonomic]
    if charts.groups:
        turned = charts.turned(d, two.N)
        for group in charts.groups:
            slope = rate_slope(d[:, None, group], two.N[:, group, :p].swapaxes(1, 2))  # for columns c: (b, c, a, j)
            bent = slope @ turned[:, None, group]
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


def bent_motion(charts, k, motion, of_q, of_v, of_a):
    """`SecondMotion.along`, by adjoint equations: for robots without force elements.

    In the tangent space at the state the Hessian is that of `motion_states`. The chart of ball joints and floating
    bases is bent against it: along columns 1 and 2, y has the second variation R_y D_2(J(d)) N_1 there, whose weights
    are the derivatives by y.
    """
    robot, (p, x), count = charts.robot, charts.sizes, len(motion.q)
    d, inputs = charts.displacement(k, motion.q), actuators_of(robot)
    R_y, R_w = (np.ascontiguousarray(R) for R in (charts.turned_rows(k, d), charts.R_w[k]))
    H, done = np.zeros((count, *[x + inputs.shape[1]] * 2)), np.zeros(count, np.int64)
    state = State(motion.q, motion.v, motion.u @ inputs.T, np.zeros((count, 0)))
    chosen = Coordinates(R_y, np.full(p, -1), R_w, np.full(x - p, -1))
    motion_states(robot.packed, state, chosen, inputs, WeighedMotion(of_q, of_v, of_a), RANK_TOLERANCE, H, done)
    if charts.groups:
        turned, columns = charts.turned(d, motion.N), zip((of_q, of_v, of_a), (motion.N, motion.X, motion.da_dx))
        by_y = sum(np.einsum("bj,bjy->by", weights, each[:, :, :p]) for weights, each in columns)
        on_d = np.einsum("bij,bi->bj", charts.R_y[k], by_y)
        for group in charts.groups:
            slope = rate_slope(d[:, None, group], motion.N[:, group].swapaxes(1, 2))  # for columns c: (b, c, a, j)
            H[:, :p, :p] -= np.einsum("ba,bcax->bcx", on_d[:, group], slope @ turned[:, None, group], optimize=True)
    return H[:, :, :x]


EXACT = Linear, Power, Virtual
"""Kinds of rows whose second derivatives are known."""


def is_known(robot, rows):
    """True if their second derivatives are known: not for coordinates of cut ball joints, which are not continuous."""
    if isinstance(rows, Virtual) and not rows.of_velocity and any(is_of_cut_ball(robot, each) for each in rows.names):
        return False
    return isinstance(rows, EXACT)


class NodeHessians:
    """Sums of gradients and second derivatives over all functions of the Lagrangian, for each node.

    Attributes
    ----------
    of_q, of_v, of_a : ndarray, shape (nodes, nv)
        Gradients.
    H : ndarray, shape (nodes, columns, columns)
        Other second derivatives, by the coordinates and inputs of a node and the duration.
    """

    def __init__(self, transcription, motion):
        layout = transcription.layout
        columns = layout.x + layout.nu + 1
        self._charts, self._chart, self._motion, self._second = transcription.charts, transcription.chart, motion, None
        self.of_q, self.of_v, self.of_a = np.zeros((3, layout.nodes, motion.v.shape[1]))
        self.H, self.x = np.zeros((layout.nodes, columns, columns)), layout.x

    def add_rates(self, nodes, charts, k, motion, on_x, on_f):
        """Adds on_x . x + on_f . f of some nodes in charts k[i], which need not be their own."""
        gradients, H = bent_rates(charts, k, motion, on_x, on_f)
        for total, each in zip((self.of_q, self.of_v, self.of_a), gradients):
            total[nodes] += each
        self.H[nodes, :self.x, :self.x] += H

    def add_by_duration(self, nodes, slopes):
        """Adds the mixed derivatives by the duration and (x, u) of some nodes, (count, x + nu)."""
        self.H[nodes, :-1, -1] += slopes
        self.H[nodes, -1, :-1] += slopes

    def add_rows(self, rows, nodes, samples, multipliers, second):
        """Adds limits of an `EXACT` kind."""
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
        charts, gradients = self._charts, (self.of_q, self.of_v, self.of_a)
        if self.of_a.any() or (charts.robot.row_names or charts.groups) and (self.of_v.any() or self.of_q.any()):
            self._add_columns(slice(None), second().along(*gradients) if charts.robot.elements is not None else
                              bent_motion(charts, self._chart, self._motion, *gradients))
        return 0.5 * (self.H + self.H.swapaxes(1, 2))

    def _add_columns(self, nodes, H):
        """Adds Hessians by coordinates and inputs (count, x + nu, x): none is quadratic in the inputs."""
        x = self.x
        self.H[nodes, :-1, :x] += H
        self.H[nodes, :x, x:-1] += H[:, x:].swapaxes(1, 2)


def second_motion_of(transcription, motion):
    """A function that returns `SecondMotion` of all nodes, computed at its first call."""
    found = []

    def second():
        if not found:
            found.append(second_motion(transcription.charts, transcription.chart, motion,
                                       bool(transcription.charts.robot.virtual_names)))
        return found[0]

    return second
