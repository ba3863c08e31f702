"""Closing where Newton's method stops: minimisation of the squared error, with negative curvature to leave
singularities.

A linkage stretched on one line has no first-order motion across it: the error may be orthogonal to the range of the
Jacobian, J^T e = 0 with e != 0, a stationary point of f = e . e / 2 that is not a minimum. There the Hessian

    H = J^T J + d(G^T lambda)/dq    at lambda = e

has a negative eigenvalue, whose eigenvector is a descent direction. So f is minimised by a trust-region method: each
step minimises the quadratic model within a radius, for any signs of the eigenvalues (More and Sorensen 1983; Nocedal
and Wright 2006, 4.3). At a maximum or a saddle both signs of the eigenvector are equally good; the one with a positive
largest component is used, so that the same guess always gives the same assembly. Clusters of constraints share no
coordinates, so each has a model, a radius and a step of its own. H lacks the second derivatives of held virtual
coordinates, and off the manifold the rows of cut joints are rates of a log only to first order in the error; the radius
compensates for both.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.mechanics.constraints.closing import CLOSED, LONGEST_JUMP, OPEN_GUESS, Goals, Held, Target, close_states
from liedyn.mechanics.constraints.closing_steps import (
    LARGEST_STEP, SMALLEST_PART, clusters_of_dofs, clusters_of_rows, error_rows, errors, room_for,
)
from liedyn.mechanics.constraints.constraint_rows import force_derivative_rows, holonomic_rows
from liedyn.mechanics.constraints.elimination import cluster_lists, cluster_size
from liedyn.mechanics.constraints.loops import closure_error, virtual_coordinates
from liedyn.mechanics.tree.places import displace, displacement, turn_free_rows

ITERATIONS = 200
SMALLEST_RADIUS = 1e-9
FLAT = 1e-12
"""Eigenvalues below this fraction of the largest one are rounding, as for redundant rows and free motions."""
ESCAPES = 20
"""Largest number of singular configurations that the path of one state may pass."""


@kernel
def squared_error(model, q, held, values):
    """e (m + k), its Jacobian J (m + k, nv), and d(G^T e)/dq (nv, nv), for steps as in `liedyn.mechanics.tree.places`;
    the clusters of rows and of coordinates."""
    room = room_for(model, held.virtual)
    room.G[:] = 0.0
    holonomic_rows(model, room.holonomic)
    m, n = room.G.shape
    curvature, J = np.zeros((n, n)), np.zeros((m + values.size, n))
    errors(model, q, held, values, room, room.error)
    error_rows(model, q, held, room)
    force_derivative_rows(model, q, room.world, room.error[:m], curvature)
    turn_free_rows(model, q, curvature, True)
    curvature = curvature.T.copy()
    turn_free_rows(model, q, curvature, True)
    for j in range(n):
        c = room.of_dofs[j]
        for i in range(cluster_size(model, c)[0]):
            row = model.ints[cluster_lists(model, c)[0] + i]
            if room.holonomic[row] > 0.0:
                J[row, j] = room.G[row, j]
        for k in range(values.size):
            if room.of_rows[m + k] == c:
                J[m + k, j] = room.E[held.virtual[k], j]
    return room.error, J, curvature, room.of_rows, room.of_dofs


def moved(robot, q, step):
    """q after a step, as in `liedyn.mechanics.tree.places`."""
    there = np.empty(robot.nq)
    displace(robot.packed, q, step, there)
    return there


def apart(robot, q, there):
    """The step from one configuration to another."""
    step = np.empty(robot.nv)
    displacement(robot.packed, q, there, step)
    return step


class Descent:
    """The rows and free coordinates of one cluster, with its trust radius."""

    def __init__(self, rows, dofs):
        self.rows, self.dofs, self.radius = rows, dofs, LARGEST_STEP

    def step(self, e, J, curvature, tolerance):
        """The next step, and the expected decrease of f; None at a minimum, or where the error is small enough."""
        e, J = e[self.rows], J[np.ix_(self.rows, self.dofs)]
        if np.abs(e).max(initial=0.0) <= tolerance or self.radius < SMALLEST_RADIUS:
            return None
        curvature = curvature[np.ix_(self.dofs, self.dofs)]
        gradient, H = J.T @ e, J.T @ J + 0.5 * (curvature + curvature.T)
        x = model_minimum(gradient, H, self.radius)
        expected = -(gradient @ x + 0.5 * x @ H @ x)
        return None if expected <= 1e-15 * (e @ e) else (x, expected)

    def judge(self, x, expected, e, there):
        """Adapt the radius to the actual decrease; returns whether the step is accepted."""
        gained = 0.5 * (e[self.rows] @ e[self.rows] - there[self.rows] @ there[self.rows])
        if not gained > 0.25 * expected:
            self.radius = 0.25 * np.linalg.norm(x)
        elif gained > 0.75 * expected:
            self.radius = min(2.0 * self.radius, LARGEST_STEP)
        return gained > 0.0


def model_minimum(gradient, H, radius):
    """The step within a radius that minimises ``gradient . x + x . H x / 2``."""
    values, Q = np.linalg.eigh(H)
    c, flat = Q.T @ gradient, FLAT * np.abs(values).max(initial=0.0)
    if values[0] >= -flat:  # no negative curvature: the Newton step, if it is short enough
        step = np.where(values > flat, -c / np.where(values > flat, values, 1.0), 0.0)
        if np.linalg.norm(step) <= radius:
            return Q @ step
    shift = max(0.0, -values[0])
    lowest = values + shift <= flat
    if np.linalg.norm(c[lowest]) <= 1e-9 * (np.linalg.norm(c) + shift * radius):
        step = np.where(lowest, 0.0, -c / np.where(lowest, 1.0, values + shift))
        rest = radius ** 2 - step @ step
        if rest > 0.0:  # no slope along the lowest eigenvector: both signs are equally good
            way = Q[:, 0] * np.sign(Q[np.abs(Q[:, 0]).argmax(), 0])
            return Q @ step + (np.sqrt(rest) * way if shift > flat else 0.0)

    def shortness(x):
        return 1.0 / np.linalg.norm(c / (values + x)) - 1.0 / radius

    x = shift + max(flat, 1e-300)
    if shortness(x) < 0.0:  # a larger shift gives a shorter step, half the radius at the other end
        from scipy.optimize import brentq  # imported here: it takes 0.2 s, and few guesses need it
        x = brentq(shortness, x, x + 2.0 * np.linalg.norm(c) / radius)
    return Q @ (-c / (values + x))


def least_error(robot, q, target, tolerance):
    """The configuration near q where the squared error has a minimum, without moving held coordinates.

    Returns it and its errors: residuals, then held virtual coordinates minus their goals.
    """
    free = np.flatnonzero(target.held.dofs == 0)
    model = robot.packed._replace(floats=robot.packed.floats.copy())

    def at(q):
        return squared_error(model, q, target.held, target.values)

    e, *slopes, of_rows, of_dofs = at(q)
    if not all(np.isfinite(x).all() for x in (e, *slopes)):
        # a row is not defined here, for instance at the centre of a sphere: move slightly aside
        aside = np.zeros(robot.nv)
        aside[free] = 0.1 * LARGEST_STEP * np.cos(np.arange(len(free)))
        q = moved(robot, q, aside)
        e, *slopes = at(q)[:3]
    descents = [Descent(np.flatnonzero(of_rows == c), free[of_dofs[free] == c]) for c in np.unique(of_rows)]
    descents = [each for each in descents if len(each.dofs)]
    for _ in range(ITERATIONS):
        if not all(np.isfinite(x).all() for x in (e, *slopes)):
            break
        tried = [(each, found) for each in descents if (found := each.step(e, *slopes, tolerance)) is not None]
        if not tried:
            break
        step, descents = np.zeros(robot.nv), [each for each, _ in tried]
        for each, (x, _) in tried:
            step[each.dofs] = x
        trial = moved(robot, q, step)
        there = at(trial)[:3]
        kept = [each.judge(x, expected, e, there[0]) for each, (x, expected) in tried]
        if not all(kept):
            for each, good in zip(descents, kept):
                step[each.dofs] *= good
            trial = moved(robot, q, step)
            there = at(trial)[:3] if any(kept) else (e, *slopes)
        q, (e, *slopes) = trial, there
    return q, e


def closed_from(robot, q, target, tolerance):
    """`close_states` for one state: its configuration and outcome."""
    closed, status = np.empty((1, robot.nq)), np.empty(1, np.int64)
    goals = Goals(target.held, target.q[None], target.values[None])
    close_states(robot.packed, np.ascontiguousarray(q)[None], goals, tolerance, (closed, status))
    return closed[0], status[0]


def closed_at(robot, q, target, tolerance):
    """q with its held coordinates set to their targets at once and closed if possible: (q, errors, True if closed)."""
    q, e = least_error(robot, np.where(target.held.coordinates == 1, target.q, q), target, tolerance)
    closed, status = closed_from(robot, q, target, tolerance)
    return (closed, e, True) if status == CLOSED else (q, e, False)


def close_singular(robot, guess, target, tolerance, q, status):
    """Close from a guess where `close_states` failed with outcome `status`; returns the last q and its outcome."""
    nothing = Held(np.zeros_like(target.held.dofs), np.zeros_like(target.held.coordinates),
                   target.held.virtual[:0], target.held.angles[:0])
    guess = _where_open(robot, guess, q, tolerance)
    if status == OPEN_GUESS:
        near, _ = least_error(robot, guess, Target(nothing, target.q, target.values[:0]), tolerance)
        q, status = closed_from(robot, near, target, tolerance)
    if status == OPEN_GUESS:
        q, _, closed = closed_at(robot, guess, target, tolerance)
        return q, CLOSED if closed else status
    for _ in range(ESCAPES):
        if status == CLOSED:
            break
        further = _beyond(robot, q, target, tolerance)
        if further is None:
            break
        q, status = closed_from(robot, further, target, tolerance)
    return q, status


def _where_open(robot, guess, q, tolerance):
    """The guess, but with those clusters of constraints that are closed at q as in q."""
    of_rows = clusters_of_rows(robot.packed, np.empty(0, np.int64))
    left_open = np.unique(of_rows[~(np.abs(closure_error(robot, q)) <= tolerance)])
    step = apart(robot, guess, q)
    step[np.isin(clusters_of_dofs(robot.packed), left_open)] = 0.0
    return moved(robot, guess, step)


def _beyond(robot, q, target, tolerance):
    """A closed configuration further along the path from a closed q to its targets, without a jump, or None."""
    held = target.held
    way = np.where(held.dofs == 1, apart(robot, q, target.q), 0.0)
    z = virtual_coordinates(robot, q)[held.virtual]
    to_go = target.values - z
    to_go = np.where(held.angles == 1, np.remainder(to_go + np.pi, 2.0 * np.pi) - np.pi, to_go)
    part = min(1.0, LARGEST_STEP / max(np.abs(way).max(initial=0.0), np.abs(to_go).max(initial=0.0), 1e-300))
    while part > SMALLEST_PART:
        goal = Target(held, moved(robot, q, part * way), z + part * to_go)
        near, _, closed = closed_at(robot, q, goal, tolerance)
        if closed and np.abs(apart(robot, q, near)).max(initial=0.0) <= LONGEST_JUMP:
            return near
        part /= 4.0
    return None
