"""Newton's method for operating points: least-norm steps if there are several solutions, limited by bounds, and
shortened until the residual falls.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.machine.errors import ClosureError, ModelError, SingularConfigurationError
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.rnea import rnea
from liedyn.tasks.operating_points.equilibrium_problem import RANK

SHORTEST = 1e-6
"""Fraction of Newton's step below which it is not shortened further."""
FALLS = 1e-4
"""Fraction of the predicted decrease by which the residual must fall."""
ROUNDED = 1e-14
"""Scaled residual below which no further step reduces it."""
BALANCED = 1e-13
"""Generalised force, relative to the largest one, that is rounding."""
ROUNDING, SOLVED = 1e-9, 1e-6
"""Newton's step, relative to the unknowns, and its relative residual, that mean rounding."""


def search(problem, here, tolerance, iterations):
    """The last point of Newton's method, the number of its steps, and whether all accelerations vanish there."""
    for count in range(iterations + 1):
        size = sizes(here)
        left = (np.abs(here.r) * size).max(initial=0.0)
        if left <= ROUNDED:
            return here, count, True
        step = _step(here.J * size[:, None], -here.r * size, here.room, bool(problem.bounds))
        if left <= tolerance:
            return _polished(problem, here, step, size), count, True
        there = _shortened(problem, here, step, size)
        if there is None:
            there = here if _is_rounding(here, step) else _balanced(problem, here)
            return there or here, count, there is not None
        here = there
    return here, iterations, False


def sizes(point):
    """Scales of the rows of the residual: a unit change of the unknowns then changes each by about 1."""
    return 1.0 / np.maximum(np.linalg.norm(point.J, axis=1), 1.0)


def freedom(point):
    """Number of directions of the unknowns in which the residual does not change."""
    s = np.linalg.svd(point.J * sizes(point)[:, None], compute_uv=False)
    return point.J.shape[1] - int((s > RANK * s.max(initial=0.0)).sum())


def unmet(problem, point):
    """Name of the balance that is violated most, and the reason."""
    size = sizes(point)
    k, count = int((np.abs(point.r) * size).argmax()), len(point.w)
    reason = "what is free cannot take that away from here" + (", within its bounds" if problem.bounds else "")
    if not np.abs(point.J[k] * size[k]).max() > RANK:
        reason = "nothing that is free changes that"
    if k < count:
        return f"{point.speeds[k]} still accelerates by {point.r[k]:.4g} /s^2, and {reason}"
    name, x = list(point.values.items())[k - count]
    return f"{name} is {point.r[k]:.4g} away from {x:.6g}, where it is held, and {reason}"


def _step(J, r, room, bounded):
    """The shortest least-squares step within the room of each unknown."""
    if bounded:
        from scipy.optimize import lsq_linear

        least = np.finfo(float).tiny  # of the room: an unknown at its bound can move back
        return lsq_linear(J, r, (np.minimum(room[:, 0], -least), np.maximum(room[:, 1], least)), method="bvls").x
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    keep = s > RANK * s.max(initial=0.0)
    step = Vt[keep].T @ ((U[:, keep].T @ r) / s[keep])
    with np.errstate(divide="ignore"):
        return step * min(1.0, (room[:, 1] / np.abs(step)).min(initial=1.0))


def _shortened(problem, here, step, size):
    """The state after the step, or a part of it, with a smaller residual; None if there is no such part."""
    before, part = np.linalg.norm(here.r * size), 1.0
    while part > SHORTEST:
        try:
            there = problem.moved(here, part * step)
            if np.linalg.norm(there.r * size) < (1.0 - FALLS * part) * before:
                return there
        except (ClosureError, SingularConfigurationError, ModelError):
            pass  # the step leaves the workspace, or a spring would have a negative length
        part *= 0.5
    return None


def _polished(problem, here, step, size):
    """The point after one more step, if the residual falls: soft directions may still be unbalanced when the residual
    of the stiff ones, which determine the scale, vanishes."""
    try:
        there = problem.moved(here, step)
    except (ClosureError, SingularConfigurationError, ModelError):
        return here
    return there if np.linalg.norm(there.r * size) < np.linalg.norm(here.r * size) else here


def _balanced(problem, here):
    """The point after one more step in terms of forces instead of accelerations, if forces are balanced to rounding
    there: rounding of forces accelerates motions with little inertia. None if they are not balanced."""
    robot, q, S, count = here.robot, here.q, here.ss.S, len(here.w)
    if not np.abs(here.r[count:]).max(initial=0.0) <= ROUNDING:
        return None
    M = S.T @ crba(robot, q) @ S
    step = -np.linalg.lstsq(M @ here.J[:count], M @ here.r[:count], rcond=RANK)[0]
    if (step < here.room[:, 0]).any() or (step > here.room[:, 1]).any():
        return None
    try:
        there = problem.moved(here, step)
    except (ClosureError, SingularConfigurationError, ModelError):
        return None
    forces = (rnea(robot, q, here.v, np.zeros(robot.nv)), element_forces(robot, q, here.v),
              actuator_matrix(robot, q) @ here.u)
    largest = (np.abs(S).T @ np.sum(np.abs(forces), axis=0)).max(initial=0.0)
    return there if np.abs(M @ there.r[:count]).max(initial=0.0) <= BALANCED * largest else None


def _is_rounding(here, step):
    """True if the step would cancel the residual, and is so small that the residual is rounding."""
    is_solved = np.linalg.norm(here.r + here.J @ step) <= SOLVED * np.linalg.norm(here.r)
    return is_solved and bool((np.abs(step) <= ROUNDING * here.scale).all())
