"""Closing from where Newton comes to a halt: the least squared error, along negative curvature out of singularities.

A linkage that lies stretched on one line has no first-order motion across it: the error there may be out of reach of
the Jacobian, J^T e = 0 with e != 0, a stationary point of f = e . e / 2 that is no minimum. Its Hessian

    H = J^T J + d(G^T lambda)/dq    at lambda = e

knows the way out, the direction of its lowest eigenvalue. So f is minimised with steps that are the minimum of its
quadratic model within a radius, whatever the signs of the eigenvalues (More and Sorensen 1983; Nocedal and Wright 2006,
4.3). At a maximum or a saddle both ways along the eigenvector are as good; the one taken has a positive largest
component. Nothing is random: the same guess gives the same assembly. The second derivatives of held virtual
coordinates are left out of H, and off the manifold rows of cut joints are rates of a log only to first order in the
error; the radius takes care of both.
"""
import numpy as np

from liedyn.compiled.jit import kernel
from liedyn.constraints.closing import (
    CLOSED, LARGEST_STEP, LONGEST_JUMP, OPEN_GUESS, SMALLEST_PART, Held, Target, close_states, error_rows, errors,
    room_for,
)
from liedyn.constraints.loops import virtual_coordinates
from liedyn.constraints.rows import force_derivative_rows, holonomic_rows
from liedyn.tree.places import by_displacements, displace, displacement

ITERATIONS = 200
SMALLEST_RADIUS = 1e-9
FLAT = 1e-12
"""Eigenvalues below this part of the largest one are rounding, as in redundant rows and in free motions."""
ESCAPES = 20
"""Singular configurations on the path of one state that are passed before the path is given up."""


@kernel
def squared_error(model, q, held, values):
    """e (m + k), its Jacobian J (m + k, nv), and d(G^T e)/dq (nv, nv), by steps of `liedyn.tree.places`."""
    room = room_for(model, values.size)
    holonomic_rows(model, room.holonomic)
    m, n = room.G.shape
    curvature = np.zeros((n, n))
    errors(model, q, held, values, room, room.error)
    error_rows(model, q, held, room)
    force_derivative_rows(model, q, room.world, room.error[:m], curvature)
    by_displacements(model, q, curvature)
    curvature = curvature.T.copy()
    by_displacements(model, q, curvature)
    return room.error, room.rows, curvature


def moved(robot, q, step):
    """q after a step, as in `liedyn.tree.places`."""
    there = np.empty(robot.nq)
    displace(robot.packed, q, step, there)
    return there


def apart(robot, q, there):
    """The step from one configuration to another."""
    step = np.empty(robot.nv)
    displacement(robot.packed, q, there, step)
    return step


def model_minimum(gradient, H, radius):
    """The step within a radius that makes ``gradient . x + x . H x / 2`` smallest."""
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
        if rest > 0.0:  # no slope along the lowest eigenvector: either way is as good
            way = Q[:, 0] * np.sign(Q[np.abs(Q[:, 0]).argmax(), 0])
            return Q @ step + (np.sqrt(rest) * way if shift > flat else 0.0)

    def shortness(x):
        return 1.0 / np.linalg.norm(c / (values + x)) - 1.0 / radius

    x = shift + max(flat, 1e-300)
    if shortness(x) < 0.0:  # a larger shift makes it shorter, half as long as the radius at the other end
        from scipy.optimize import brentq  # takes 0.2 s, and few guesses come here
        x = brentq(shortness, x, x + 2.0 * np.linalg.norm(c) / radius)
    return Q @ (-c / (values + x))


def least_error(robot, q, target, tolerance):
    """The configuration next to q where the squared error has a minimum, held coordinates staying where they are.

    Returns it and its errors: residuals, then held virtual coordinates less their goals.
    """
    free, radius = np.flatnonzero(target.held.dofs == 0), LARGEST_STEP
    model = robot.packed._replace(floats=robot.floats.copy())

    def at(q):
        return squared_error(model, q, target.held, target.values)

    e, J, curvature = at(q)
    if not (np.isfinite(e).all() and np.isfinite(J).all() and np.isfinite(curvature).all()):
        # a place where some row is not defined, such as the centre of a sphere: a little beside it
        aside = np.zeros(robot.nv)
        aside[free] = 0.1 * LARGEST_STEP * np.cos(np.arange(len(free)))
        q = moved(robot, q, aside)
        e, J, curvature = at(q)
    for _ in range(ITERATIONS):
        if not (np.isfinite(e).all() and np.isfinite(J).all() and np.isfinite(curvature).all()):
            break
        if np.abs(e).max(initial=0.0) <= tolerance or not len(free) or radius < SMALLEST_RADIUS:
            break
        gradient, H = (J.T @ e)[free], (J.T @ J + 0.5 * (curvature + curvature.T))[np.ix_(free, free)]
        x = model_minimum(gradient, H, radius)
        expected = -(gradient @ x + 0.5 * x @ H @ x)
        if expected <= 1e-15 * (e @ e):
            break  # a minimum
        step = np.zeros(robot.nv)
        step[free] = x
        trial = moved(robot, q, step)
        there = at(trial)
        gained = 0.5 * (e @ e - there[0] @ there[0])
        if gained > 0.0:
            q, (e, J, curvature) = trial, there
        if not gained > 0.25 * expected:
            radius = 0.25 * np.linalg.norm(x)
        elif gained > 0.75 * expected:
            radius = min(2.0 * radius, LARGEST_STEP)
    return q, e


def closed_from(robot, q, target, tolerance):
    """`close_states` on one state: its configuration, and what became of it."""
    closed, status = np.empty((1, robot.nq)), np.empty(1, np.int64)
    close_states(robot.packed, np.ascontiguousarray(q)[None], target.q[None], target.values[None],
                 *target.held, tolerance, closed, status)
    return closed[0], status[0]


def closed_at(robot, q, target, tolerance):
    """q with its held coordinates put on their targets at once, closed if it can be: (q, errors, is it closed?)."""
    q, e = least_error(robot, np.where(target.held.coordinates == 1, target.q, q), target, tolerance)
    closed, status = closed_from(robot, q, target, tolerance)
    return (closed, e, True) if status == CLOSED else (q, e, False)


def close_singular(robot, guess, target, tolerance, q, status):
    """Close from a guess where `close_states` came to a halt with this outcome; the last q, and what became of it."""
    nothing = Held(np.zeros_like(target.held.dofs), np.zeros_like(target.held.coordinates),
                   target.held.virtual[:0], target.held.angles[:0])
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


def _beyond(robot, q, target, tolerance):
    """A closed configuration further on the way from a closed q to its targets, without a jump, or None."""
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
