"""Assembly: satisfy the constraints of a mechanism, and complete velocities, from a guess on the wanted branch.

Newton on the manifold: the shortest tangent step (minimum norm, by SVD, so redundant rows are harmless) that
removes the linearized error, cut to a largest step and halved until the error falls. Coordinates that are held move
to their targets along a path from the closed guess, a part of the way at a time: every point of the path is closed
before the next part is tried, and so the branch of the guess is kept.
"""
import numpy as np

from liedyn.boundary import as_floats, states
from liedyn.constraints.independent import by_name
from liedyn.constraints.loops import (
    closure_error, constraint_jacobian, velocity_error, virtual_coordinates, virtual_jacobian,
)
from liedyn.errors import ClosureError, InputError, SingularConfigurationError, suggestion
from liedyn.tree.configuration import difference, integrate

LARGEST_STEP = 0.3
"""Largest move of a coordinate in one step [rad or m]: well below the distance to another branch in common machines."""
LONGEST_JUMP = 1.0
"""Largest move of any coordinate between two points of a path before the path is suspected of changing branch."""
ITERATIONS = 60
SMALLEST_PART = 1e-3
ROUNDING = 1e-14


class _Target:
    """Held coordinates: tree coordinates at given values (whole joints), virtual coordinates at given values."""

    def __init__(self, robot, held):
        self.robot = robot
        self.q = robot.neutral.copy()
        fixed, self.virtual, self.values = [], [], []
        names = robot.coordinate_names + robot.joint_names + robot.virtual_names
        self.joints = []
        for name, value in held.items():
            if name in robot.velocity_names and name in robot.coordinate_names:
                fixed.append(robot.velocity_index(name))
                self.q[robot.coordinate_index(name)] = as_floats(name, [value], 1)[0]
                self.joints.append((robot.coordinate_index(name), 1))
            elif name in robot.joint_names:
                start, size = self._coordinates(name)
                self.q[start:start + size] = as_floats(name, value, size)
                fixed += [k for k, v in enumerate(robot.velocity_names) if v.startswith(f"{name}.")]
                self.joints.append((start, size))
            elif name in robot.virtual_names:
                self._hold_virtual(name, value)
            else:
                raise InputError(f"cannot hold {name!r}, {suggestion(name, names)}")
        if not np.isfinite(self.q).all() or not np.isfinite(self.values).all():
            raise InputError(f"held values must be finite: {held}")
        self.fixed = np.array(sorted(set(fixed)), dtype=int)
        self.values = np.array(self.values, dtype=float)

    def _coordinates(self, joint):
        places = [k for k, name in enumerate(self.robot.coordinate_names) if name.startswith(f"{joint}.")]
        return places[0], len(places)

    def _hold_virtual(self, name, value):
        if name.endswith((".rx", ".ry", ".rz")):
            raise InputError(f"{name!r} is a component of a rotation; a ball cut cannot be held by one of them")
        self.virtual.append(self.robot.virtual_index(name))
        self.values.append(float(value))

    def towards(self, q, part):
        """`q` with its held tree coordinates moved a part of the way to their targets."""
        goal = q.copy()
        for start, size in self.joints:
            goal[start:start + size] = self.q[start:start + size]
        step = difference(self.robot, q, goal)
        return integrate(self.robot, q, part * step)


def _virtual_error(robot, target, z, goal):
    """How far the held virtual coordinates are from their goal; angles take the shorter way round."""
    error = z[target.virtual] - goal
    for k, index in enumerate(target.virtual):
        if _is_angle(robot, index):
            error[k] = np.remainder(error[k] + np.pi, 2 * np.pi) - np.pi
    return error


def _is_angle(robot, index):
    name = robot.virtual_names[index]
    if "." in name:
        return name.rsplit(".", 1)[1].startswith("angle")
    return robot.model.loops[robot.loop_index(name)].kind == "revolute"


def _newton(robot, q, target, goal):
    """Close the loops as well as rounding allows, held coordinates staying where they are: (q, largest error)."""
    free = np.setdiff1d(np.arange(robot.nv), target.fixed)

    def errors(q):
        return np.concatenate(
            [closure_error(robot, q), _virtual_error(robot, target, virtual_coordinates(robot, q), goal)]
        )

    error = errors(q)
    for _ in range(ITERATIONS):
        size = np.abs(error).max(initial=0.0)
        if size <= ROUNDING:
            break
        G = np.where(robot.holonomic[:, None], constraint_jacobian(robot, q), 0.0)
        rows = np.vstack([G, virtual_jacobian(robot, q)[target.virtual]])[:, free]
        step = np.zeros(robot.nv)
        step[free] = -np.linalg.lstsq(rows, error, rcond=1e-9)[0]
        step *= min(1.0, LARGEST_STEP / max(np.abs(step).max(), 1e-300))
        part = 1.0
        while part > SMALLEST_PART:
            trial = integrate(robot, q, part * step)
            trial_error = errors(trial)
            if np.linalg.norm(trial_error) < np.linalg.norm(error):
                break
            part /= 2
        else:
            break  # no descent: at rounding, or stuck
        q, error = trial, trial_error
    return q, np.abs(error).max(initial=0.0)


def _failure(robot, q, held):
    residual = np.abs(closure_error(robot, q))
    worst = robot.row_owners[residual.argmax()]
    size = float(residual.max())
    what = f" with {', '.join(f'{k}={v}' for k, v in held.items())}" if held else ""
    what += f" at t = {robot.t}" if robot.functions else ""
    kind = "loop" if worst in robot.loop_names else "constraint"
    return ClosureError(
        f"the constraints of {robot.name!r} cannot be satisfied{what}: {kind} {worst!r} is left open by {size:.3g}",
        size, worst, q)


def close(robot, q, held=None, tolerance=1e-12, **coordinates):
    """Assemble the loops, and satisfy all other constraints on q, near a guess and on its branch.

    Parameters
    ----------
    robot : Robot
        Constraints that are switched off do not count; moving ones are where ``robot.at(t)`` puts them.
    q : array_like, shape (..., nq)
        Guess [rad, m; quaternions (x, y, z, w)]. It need not be closed.
    held : dict, optional
        Values of coordinates to be held [rad, m]: of the tree or virtual ones of a cut, by name; of a joint with
        several coordinates by the joint's name, as a sequence.
    tolerance : float
        Largest closure error accepted [rad, m].
    **coordinates : float
        More of `held`, for names that are identifiers: ``close(robot, q, boom=0.3)``.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Closed configuration; the loops' error is usually at rounding, well below `tolerance`.

    Raises
    ------
    ClosureError
        The constraints cannot be satisfied, a target cannot be reached: with the error, the name of the worst loop or
        constraint, and the configuration where the search stopped.
    InputError
        An unknown name, a shape that does not fit, or an entry that is not finite.

    Notes
    -----
    Newton with step control on the configuration manifold (Spencer 2004, 3.1.3, projection on position invariants), and
    continuation in the held coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> q = ld.close(loader, loader.home, boom=0.3, bucket=-0.2)
    >>> bool(abs(ld.closure_error(loader, q)).max() < 1e-12), float(q[loader.coordinate_index("boom")])
    (True, 0.3)
    """
    lead, q = states(robot, q=q)
    held = {**(held or {}), **coordinates}
    target = _Target(robot, held)
    closed = np.array([_close_one(robot, row, target, held, tolerance) for row in q]).reshape(lead + (robot.nq,))
    return closed


def _close_one(robot, q, target, held, tolerance):
    q = q.copy()
    start, error = _newton(robot, q, target, virtual_coordinates(robot, q)[target.virtual])
    if error > tolerance:
        # the guess does not close where it stands: let everything move once, to reach its branch
        everything = _Target(robot, {})
        start, error = _newton(robot, q, everything, np.empty(0))
        if error > tolerance:
            raise _failure(robot, start, held)
    if not held:
        return start
    q, done = start, 0.0
    from_virtual = virtual_coordinates(robot, q)[target.virtual]
    to_go = -_virtual_error(robot, target, virtual_coordinates(robot, q), target.values)
    largest = max(np.abs(difference(robot, q, target.towards(q, 1.0))).max(initial=0.0), np.abs(to_go).max(initial=0.0))
    part = min(1.0, LARGEST_STEP / max(largest, 1e-300))
    while done < 1.0:
        part = min(part, 1.0 - done)
        share = 1.0 if part >= 1.0 - done else part / (1.0 - done)
        goal = from_virtual + (done + part) * to_go
        trial, error = _newton(robot, target.towards(q, share), target, goal)
        moved = np.abs(difference(robot, q, trial)).max(initial=0.0)
        # a long jump of the other coordinates is the sign of another branch: shorten the part
        if error <= tolerance and moved <= LONGEST_JUMP:
            q, done, part = trial, 1.0 if share == 1.0 else done + part, 2.0 * part
        else:
            part /= 2.0
            if part < SMALLEST_PART:
                raise _failure(robot, trial, held)
    return q


def complete_velocity(robot, q, velocities, tolerance=1e-8):
    """The velocity that the constraints allow, from those of independent coordinates.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, where constraints move.
    q : array_like, shape (nq,)
        Closed configuration [rad, m; quaternions (x, y, z, w)].
    velocities : dict
        Velocity of each independent coordinate by name, of the tree or virtual [rad/s, m/s].
    tolerance : float
        Singular values of [G; R] below this part of the largest one count as zero.

    Returns
    -------
    v : ndarray, shape (nv,)
        Velocity [rad/s, m/s] with ``G v = b``.

    Raises
    ------
    SingularConfigurationError
        The given velocities do not determine the motion, or contradict each other.
    InputError
        An unknown name, a shape that does not fit, or an entry that is not finite.

    Notes
    -----
    v = K w, Spencer 2004, eq. 2.42a.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> v = ld.complete_velocity(loader, loader.home, {"boom": 0.4, "bucket": -0.3})
    >>> bool(abs(ld.constraint_jacobian(loader, loader.home) @ v).max() < 1e-12)
    True
    """
    chosen = by_name(robot, tuple(velocities))
    w = as_floats("velocities", list(velocities.values()), len(chosen.names))
    if not np.isfinite(w).all():
        raise InputError(f"velocities must be finite: {velocities}")
    G, drift = constraint_jacobian(robot, q), velocity_error(robot, q, np.zeros(robot.nv))
    Z = np.vstack([G, chosen.matrix(virtual_jacobian(robot, q))])
    known = np.concatenate([-drift, w])
    v, _, rank, singular_values = np.linalg.lstsq(Z, known, rcond=tolerance)
    if rank < robot.nv:
        raise SingularConfigurationError(
            f"velocities of {', '.join(chosen.names)} do not determine the motion of {robot.name!r}: [G; R] has rank "
            f"{rank} of {robot.nv}", singular_values)
    # consistent equations leave rounding times the condition of [G; R], contradictory ones a part of w itself
    if np.abs(Z @ v - known).max(initial=0.0) > 1e-9 * max(1.0, np.abs(known).max(initial=0.0)):
        raise SingularConfigurationError(
            f"velocities of {', '.join(chosen.names)} contradict the constraints of {robot.name!r}", singular_values)
    return v
