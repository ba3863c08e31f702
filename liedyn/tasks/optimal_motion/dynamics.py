"""Motion of a robot at many states of charts, with exact derivatives by their coordinates and by the inputs.

One call of the compiled batches of `linearize`: its coordinates are those of the charts, R_y J(d) and R_w, its outputs
are all velocities and accelerations, whose rows of C and D are the derivatives.
"""
from typing import NamedTuple

import numpy as np

from liedyn.linear.closed_loop import operating_points
from liedyn.linear.linearize import Given, all_states
from liedyn.linear.linearize_states import Tolerances
from liedyn.linear.operating_point import Asked, actuators_of
from liedyn.linear.output_rows import ACCELERATION, TREE, VELOCITY
from liedyn.linear.space import Coordinates
from liedyn.mechanics.constraints.independent import Independent, tangent_names
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.elements.generalized import without_elements
from liedyn.model.calls.boundary import is_usable, wrenches
from liedyn.motion.local_coordinates import inverse_jacobian, rate_slope
from liedyn.tasks.optimal_motion.charts import LeftChartError, rate_curvature

CLOSURE_TOLERANCE = 1e-8
"""Closure tolerance; it is never reached, as states of charts are closed to rounding."""


class Motion(NamedTuple):
    """States with their accelerations, and derivatives by the coordinates x = (y, w) of their charts and by inputs u.

    q (count, nq), v and a (count, nv), multipliers lam (count, m); dq = N dy, dv = X dx, da = da_dx dx + da_du du.
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    N: np.ndarray
    X: np.ndarray
    da_dx: np.ndarray
    da_du: np.ndarray


def motion_at(charts, k, q, v, u):
    """The motion at states (q[i], v[i]) in charts k[i] with inputs u[i].

    Raises LeftChartError if states have diverged, as with steps that are too long for a stiff spring.
    """
    far = ~(is_usable(q).all(axis=1) & is_usable(v).all(axis=1))
    if far.any():
        raise LeftChartError(np.flatnonzero(far))
    robot, (p, x), n = charts.robot, charts.sizes, charts.robot.nv
    lead, rows_q, rows_v, tau, loop = operating_points(robot, q, v, None, u)
    plain = robot if robot.elements is None else without_elements(robot)
    names = tangent_names(p), tangent_names(x - p)
    R_y = np.ascontiguousarray(charts.turned_rows(k, charts.displacement(k, q)))
    R_w = np.ascontiguousarray(charts.R_w[k])
    y, w = (Independent(each, R[0], np.full(len(each), -1)) for each, R in zip(names, (R_y, R_w)))
    parts = np.array([(TREE, rate, j, row * n + j) for row, rate in enumerate((VELOCITY, ACCELERATION))
                      for j in range(n)], dtype=np.int64)
    given = Given(State(rows_q, rows_v, tau, wrenches(plain, None, lead)),
                  Coordinates(R_y, y.virtual, R_w, w.virtual), actuators_of(plain, loop))
    asked, tolerances = Asked(plain, lead, y, w), Tolerances(CLOSURE_TOLERANCE, RANK_TOLERANCE)
    if loop is None:
        found = all_states(asked, given, parts, 2 * n, tolerances)
    else:
        parts = np.vstack([parts, loop.velocities(2 * n)])
        found = all_states(asked, given, parts, 3 * n, tolerances)
        found = loop.closed(found, 2 * n, len(robot.actuator_names))
    return Motion(q, v, u, found.a, found.lam, found.K, found.C[:, :n], found.C[:, n:], found.D[:, n:])


class Rates(NamedTuple):
    """Coordinates x of states in charts, their rates f, and derivatives by the coordinates in their own charts."""

    x: np.ndarray
    f: np.ndarray
    dx: np.ndarray
    df: np.ndarray
    df_du: np.ndarray


def rates_in(charts, k, motion):
    """The `Rates` of a motion in charts k[i], which may differ from the charts of its derivatives."""
    p, size = charts.sizes
    d = charts.displacement(k, motion.q)
    R_y, R_w = charts.turned_rows(k, d), charts.R_w[k]
    x = np.concatenate([_times(charts.R_y[k], d), _times(R_w, motion.v)], axis=1)
    f = np.concatenate([_times(R_y, motion.v), _times(R_w, motion.a)], axis=1)
    dx, df = np.zeros((2, len(d), size, motion.X.shape[2]))
    dx[:, :p, :motion.N.shape[2]] = R_y @ motion.N
    dx[:, p:] = R_w @ motion.X
    df[:, :p], df[:, p:] = R_y @ motion.X, R_w @ motion.da_dx
    slopes = charts.rate_slopes(k, d, motion.v)
    if slopes is not None:
        df[:, :p, :motion.N.shape[2]] += slopes @ charts.turned(d, motion.N)
    df_du = np.zeros((len(d), size, motion.u.shape[1]))
    df_du[:, p:] = R_w @ motion.da_du
    return Rates(x, f, dx, df, df_du)


def bent_rates(charts, k, motion, on_x, on_f):
    """For on_x . x + on_f . f of `Rates` in charts k[i] the gradients by q, v and a (count, nv), and the part of its
    Hessian by the coordinates, (count, x, x), that is not made of these and the motion's second derivatives.

    J(d) varies with d, which the columns of N change by J(d) N: only ball joints and floating bases contribute.
    """
    p, x, nodes = charts.sizes[0], motion.X.shape[2], len(motion.q)
    d, J = charts.displacement(k, motion.q), motion.N.shape[2]
    R_y, own = charts.turned_rows(k, d), charts.R_y[k]
    of_a = np.einsum("bij,bi->bj", charts.R_w[k], on_f[:, p:])
    of_v = np.einsum("bij,bi->bj", charts.R_w[k], on_x[:, p:]) + np.einsum("bij,bi->bj", R_y, on_f[:, :p])
    of_q = np.einsum("bij,bi->bj", R_y, on_x[:, :p])
    H = np.zeros((nodes, x, x))
    if not charts.groups:
        return (of_q, of_v, of_a), H
    turned = charts.turned(d, motion.N)
    on_d, on_rate = (np.einsum("bij,bi->bj", own, each[:, :p]) for each in (on_x, on_f))
    for group in charts.groups:
        N, T, X, v = motion.N[:, group], turned[:, group], motion.X[:, group], motion.v[:, group]
        first = rate_slope(d[:, None, group], np.eye(N.shape[1]))  # derivative of the columns i of J(d): (b, i, a, j)
        of_rate = np.einsum("biaj,ba->bij", first, on_rate[:, group])
        along_d = np.einsum("bij,bi->bj", of_rate, v)  # the gradient by d of the rate of y
        of_q[:, group] += np.einsum("bij,bi->bj", inverse_jacobian(d[:, group]), along_d)
        H[:, :J, :J] += T.swapaxes(1, 2) @ rate_curvature(d[:, group], v, on_rate[:, group]) @ T
        crossed = np.einsum("bij,bix,bjz->bxz", of_rate, X, T, optimize=True)
        H[:, :, :J] += crossed
        H[:, :J] += crossed.swapaxes(1, 2)
        of_turn = np.einsum("biaj,ba->bij", first, on_d[:, group] + along_d)
        H[:, :J, :J] += np.einsum("bij,bix,bjz->bxz", of_turn, N, T, optimize=True)
    return (of_q, of_v, of_a), H


def _times(R, x):
    return np.einsum("bij,bj->bi", R, x)
