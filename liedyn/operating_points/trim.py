"""Equilibria and steady motions: coordinates, speeds and inputs at which nothing accelerates.

The residual is wdot(y, w, u), the accelerations of the independent velocities; its derivatives are the lower rows of
the exact A and B of `linearize`, and so Newton's method on the manifold,

    [A_wy A_ww B_w] (dy, dw, du) = -wdot        R_h K dy = held value - value

has no differences in it. Steps are the shortest ones where several do, stay within bounds, and are shortened until the
residual falls. Closing the loops at each step keeps the state on the manifold (`liedyn.close`).
"""
from dataclasses import dataclass

import numpy as np

from liedyn.arguments import floats, names, positive, require_robot, whole
from liedyn.compiled.boundary import states
from liedyn.constraints.assembly import close, complete_velocity
from liedyn.constraints.independent import by_name
from liedyn.constraints.loops import virtual_coordinates, virtual_jacobian
from liedyn.contact.watching import watches
from liedyn.dynamics.nullspace import RANK_TOLERANCE
from liedyn.elements.generalized import actuator_matrix
from liedyn.errors import (
    ClosureError, InputError, LiedynError, SingularConfigurationError, of_the_batch, shown, suggestion,
)
from liedyn.linearization.linearize import linearize
from liedyn.tree.configuration import integrate

LONGEST = 0.5
"""Largest change of a coordinate in one step [rad, m]: beyond, what the linear model says has little to do with it."""
SHORTEST = 1e-6
"""Part of Newton's step below which shortening it further is given up."""
FALLS = 1e-4
"""The residual must fall by this part of the step's own share."""
ROUNDING, SOLVED = 1e-9, 1e-6
"""Newton's step, as a part of what is free, and what it leaves of the residual, where that is rounding."""
APART = 1e-6
"""Smallest singular value of the rows of independent coordinates that can be told apart."""
RANK = 1e-10
"""Singular values of the scaled derivatives below this part of the largest one count as zero."""


class TrimError(LiedynError):
    """There is no equilibrium near the guess; `trim` says which balance is left, and the error has the last try.

    Attributes
    ----------
    nearest : Trim
        Where the search ended, ``reached`` False.

    Examples
    --------
    >>> import liedyn as ld
    >>> try:
    ...     ld.trim(ld.load("loader"), ld.load("loader").home, free=["lift_cylinder"])
    ... except ld.TrimError as error:
    ...     error.nearest.reached
    False
    """

    def __init__(self, text, nearest):
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, repr=False)
class Trim:
    """An equilibrium or steady motion.

    Attributes
    ----------
    q, v, u : ndarray, shapes (..., nq), (..., nv), (..., nu)
        The state and the inputs of the actuators.
    tau : ndarray, shape (..., nv)
        The generalised forces of these inputs.
    residual : dict
        Acceleration that is left, by name of an independent coordinate [rad/s^2, m/s^2], shape (...).
    freedom : int or ndarray of int
        How many directions of what is free change nothing: the equilibrium is one of so many dimensions, and the
        nearest one was taken.
    iterations : int or ndarray of int
    reached : bool or ndarray of bool

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.trim(loader, loader.home, free=loader.actuator_names).freedom
    0
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    residual: dict
    freedom: int
    iterations: int
    reached: bool

    def __repr__(self):
        left = max((np.abs(x).max(initial=0.0) for x in self.residual.values()), default=0.0)
        how = "reached" if np.all(self.reached) else "not reached"
        return f"Trim({how}, residual {left:.3g}, freedom {self.freedom})"


def trim(robot, q, v=None, u=None, hold=None, free=None, bounds=None, tolerance=1e-10, iterations=100,
         rank_tolerance=RANK_TOLERANCE):
    """Find an equilibrium, or a steady motion, near a guess.

    Where does it come to rest under these inputs: ``trim(robot, q, u=[3.0])``. Which inputs hold this pose:
    ``trim(robot, q, free=["motor"])``. Anything between: coordinates, speeds and inputs are given or free by name.

    Parameters
    ----------
    robot : Robot
        At its time where constraints move. Contacts: as ``robot.switched(foot="sticking")`` has them; open ones exert
        no forces.
    q : array_like, shape (..., nq)
        Guess of the configuration [rad, m; quaternions (x, y, z, w)]; its loops are closed first.
    v : array_like, shape (..., nv), optional
        Velocity of a steady motion [rad/s, m/s]; default: at rest.
    u : array_like, shape (..., nu), optional
        Inputs of the actuators, given or a guess; default zero.
    hold : dict or sequence of str, optional
        Coordinates that are held, of the tree or of cut joints, each one number: at a value by name, or where the guess
        has them.
    free : sequence of str, optional
        What may change: coordinates; ``velocity:`` and the name of an independent coordinate; actuators, and where the
        robot declares none ``force:`` and the name of a coordinate. Default: all coordinates that are not held. Without
        a coordinate among them, the pose is given; with some, the other independent coordinates are held.
    bounds : dict, optional
        (lowest, highest) by name of what is free.
    tolerance : float
        Largest acceleration that counts as none, as a part of the largest one that a unit change of what is free makes
        (or of 1).
    iterations : int
        Steps after which the search ends.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    Trim

    Raises
    ------
    TrimError
        None is reached; says which acceleration is left, and of what size.
    InputError
        A shape that does not fit, an unknown name, a guess out of its bounds, one-sided constraints that are open or
        closed by the state, or what is free can change nothing.
    ClosureError
        The loops do not close with the coordinates that are held.

    Notes
    -----
    With velocities the condition is that they stay: steady turning, rolling at constant speed.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> held = ld.trim(loader, loader.home, free=loader.actuator_names)
    >>> lower = ld.trim(loader, loader.home, u=0.99 * held.u, hold=["bucket"], free=["boom", "tilt_cylinder"])
    >>> bool(abs(ld.forward_dynamics(loader, lower.q, lower.v, lower.tau).a).max() < 1e-6)
    True
    """
    require_robot(robot)
    if watches(robot):
        raise InputError("trim wants contacts decided: switch one-sided constraints off, or to 'sliding' or 'sticking'")
    tolerance, iterations = positive("tolerance", tolerance), whole("iterations", iterations, 1)
    lead, q, v = states(robot, q=q, v=np.zeros(robot.nv) if v is None else v)
    nu = len(robot.actuator_names)
    u = np.zeros(nu) if u is None else floats("u", u)
    if u.shape[-1:] != (nu,) or not np.isfinite(u).all():
        raise InputError(f"u must be finite and have shape (..., {nu}), got {u.shape}")
    u = np.broadcast_to(u, lead + (nu,)).reshape(-1, nu)
    problem, results = Problem(robot, hold, free, bounds, rank_tolerance), []
    for b, state in enumerate(zip(q, v, u)):
        with of_the_batch(lead, b):
            results.append(_solve(problem, *state, tolerance, iterations))
    if not lead:
        return results[0]
    parts = [np.reshape([getattr(each, name) for each in results], lead + np.shape(getattr(results[0], name)))
             for name in ("q", "v", "u", "tau", "freedom", "iterations", "reached")]
    residual = {name: np.reshape([each.residual.get(name, np.nan) for each in results], lead)
                for name in results[0].residual}
    return Trim(*parts[:4], residual, *parts[4:])


def _solve(problem, q, v, u, tolerance, iterations):
    """The `Trim` near one guess: Newton's method with shortened steps."""
    here = problem.start(q, v, u)
    for count in range(iterations + 1):
        size = 1.0 / np.maximum(np.linalg.norm(here.J, axis=1), 1.0)
        left = np.abs(here.r) * size
        if left.max(initial=0.0) <= tolerance:
            return problem.result(here, size, count, True)
        step = _step(here.J * size[:, None], -here.r * size, here.room, bool(problem.bounds))
        there = _shortened(problem, here, step, size)
        if there is None:
            if _is_rounding(here, step):
                return problem.result(here, size, count, True)
            break
        here = there
    k = int(left[:len(here.w)].argmax())
    reason = "what is free cannot take that away from here" + (", within its bounds" if problem.bounds else "")
    if not np.abs(here.J[k] * size[k]).max() > RANK:
        reason = "nothing that is free changes that"
    raise TrimError(f"no equilibrium of {problem.robot.name!r} near this guess: {here.speeds[k]} still accelerates by "
                    f"{here.r[k]:.4g} /s^2, and {reason}", problem.result(here, size, count, False))


def _step(J, r, room, bounded):
    """The shortest least-squares step, no longer than there is room for."""
    if bounded:
        from scipy.optimize import lsq_linear

        least = np.finfo(float).tiny  # of the room: what is at its bound can turn round
        return lsq_linear(J, r, (np.minimum(room[:, 0], -least), np.maximum(room[:, 1], least)), method="bvls").x
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    keep = s > RANK * s.max(initial=0.0)
    step = Vt[keep].T @ ((U[:, keep].T @ r) / s[keep])
    with np.errstate(divide="ignore"):
        return step * min(1.0, (room[:, 1] / np.abs(step)).min(initial=1.0))


def _shortened(problem, here, step, size):
    """The state a step further on, where the residual has fallen; None where no part of the step does that."""
    before, part = np.linalg.norm(here.r * size), 1.0
    while part > SHORTEST:
        try:
            there = problem.moved(here, part * step)
            if np.linalg.norm(there.r * size) < (1.0 - FALLS * part) * before:
                return there
        except (ClosureError, SingularConfigurationError):
            pass  # the step leaves the workspace
        part *= 0.5
    return None


def _is_rounding(here, step):
    """Would the step take the residual away, and is it so small that the residual is rounding?"""
    is_solved = np.linalg.norm(here.r + here.J @ step) <= SOLVED * np.linalg.norm(here.r)
    return is_solved and bool((np.abs(step) <= ROUNDING * here.scale).all())


@dataclass(frozen=True)
class Point:
    """A state: its independent speeds w and their names; residual r, its derivatives J by what is free, and the room
    (count, 2) that this has, and its size; K moves all coordinates along the independent ones, y; values of what is
    held and of what is free, by name."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    w: np.ndarray
    speeds: tuple
    r: np.ndarray
    J: np.ndarray
    room: np.ndarray
    scale: np.ndarray
    K: np.ndarray
    y: tuple
    values: dict
    free: dict


class Problem:
    """What is free and what is held; `coordinates`, `speeds` and `inputs` are what is free, by name."""

    def __init__(self, robot, hold, free, bounds, rank_tolerance, parameter=None):
        self.robot, self.rank_tolerance = robot, rank_tolerance
        every = (*robot.velocity_names, *robot.virtual_names)
        self.actuators = robot.actuator_names if robot.model.actuators else tuple(
            f"force:{name}" for name in robot.velocity_names)
        known = (*every, *(f"velocity:{name}" for name in every), *self.actuators)
        given = hold if isinstance(hold, dict) else dict.fromkeys(
            names("hold", () if hold is None else hold))
        self.held = {_known("hold", name, every): None if x is None else float(floats(f"hold of {shown(name)}", x))
                     for name, x in given.items()}
        more = [] if parameter is None else [_known("parameter", parameter, known)]
        some = [*(() if free is None else (_known("free", name, known) for name in names("free", free))), *more]
        # a name that an actuator has too is that of the actuator
        self.inputs = [k for k, name in enumerate(self.actuators) if name in some]
        self.speeds = list(dict.fromkeys(name.removeprefix("velocity:") for name in some
                                         if name.startswith("velocity:")))
        self.coordinates = None if free is None else [
            name for name in dict.fromkeys(some) if name in every and name not in self.actuators]
        if not isinstance(bounds, dict | None):
            raise InputError(f"bounds must be a dict of (lowest, highest) by name, got {shown(bounds)}")
        self.bounds = {_known("bounds", name, known): _pair(name, x) for name, x in (bounds or {}).items()}

    def start(self, q, v, u):
        """The guess, closed."""
        q = close(self.robot, q, held={name: x for name, x in self.held.items() if x is not None})
        values = {name: self._coordinate(q, name) if x is None else x for name, x in self.held.items()}
        wanted = [*(self.coordinates or ()), *(name for name in self.bounds if self._is_place(name))]
        return self._point(q, v, u, self._completed(q, list(dict.fromkeys(wanted))), values)

    def _is_place(self, name):
        return name in (*self.robot.velocity_names, *self.robot.virtual_names) and name not in self.actuators

    def _completed(self, q, wanted):
        """Independent coordinates, these among them, and others that determine the motion with them."""
        robot, rest = self.robot, np.zeros(self.robot.nv)
        found = linearize(robot, q, rest, rest, independent="auto", rank_tolerance=self.rank_tolerance)
        p, rows = found.K.shape[1], self._rows(q, wanted) @ found.K
        if np.linalg.svd(rows, compute_uv=False)[:len(wanted)].min(initial=1.0) < APART or len(wanted) > p:
            raise InputError(f"coordinates {', '.join(wanted)} are not independent of each other here")
        # what is held is best among them: then the others are free of it
        others = [*(name for name in self.held if name not in wanted), *found.states[:p]]
        for name in others:
            more = np.vstack([rows, self._rows(q, [name]) @ found.K])
            if len(more) <= p and np.linalg.svd(more, compute_uv=False).min() > APART:
                rows, wanted = more, [*wanted, name]
        return tuple(wanted)

    def _rows(self, q, wanted):
        """The rows that read the velocities of these coordinates."""
        chosen = by_name(self.robot, wanted)
        return chosen.matrix(virtual_jacobian(self.robot, q)) if (chosen.virtual >= 0).any() else chosen.rows

    def _is_coordinate(self, name):
        return name in self.robot.coordinate_names or name in self.robot.virtual_names

    def _coordinate(self, q, name):
        robot = self.robot
        if name in robot.virtual_names:
            return virtual_coordinates(robot, q)[robot.virtual_index(name)]
        if name not in robot.coordinate_names:
            raise InputError(f"{shown(name)} is the rate of a ball or free joint, not a coordinate")
        return q[robot.coordinate_index(name)]

    def _point(self, q, v, u, y, values):
        """All that is known at a state with the independent coordinates y and the held `values`."""
        ss = linearize(self.robot, q, v, u=u, independent=y, rank_tolerance=self.rank_tolerance)
        p = len(y)
        speeds = tuple(name.removeprefix("velocity:") for name in ss.states[p:])
        w = self._rows(q, speeds) @ v
        of_held = self._rows(q, list(values)) @ ss.K
        free, columns, room = {}, [], []  # free: values by name
        for k, name in enumerate(y):
            if self.coordinates is None or name in self.coordinates:
                free[name] = self._coordinate(q, name) if self._is_coordinate(name) else 0.0
                columns.append(np.concatenate([ss.A[p:, k], of_held[:, k]]))
                room.append(np.clip(self._left(name, free[name]), -LONGEST, LONGEST))
        for name in self.speeds:
            k = speeds.index(_known("free, velocity", name, speeds))
            free[f"velocity:{name}"] = w[k]
            columns.append(np.concatenate([ss.A[p:, p + k], np.zeros(len(values))]))
            room.append(self._left(f"velocity:{name}", w[k]))
        for k in self.inputs:
            free[self.actuators[k]] = u[k]
            columns.append(np.concatenate([ss.B[p:, k], np.zeros(len(values))]))
            room.append(self._left(self.actuators[k], u[k]))
        r = np.array([*ss.f0[p:], *(self._coordinate(q, name) - x for name, x in values.items())])
        if len(r) and not columns:
            raise InputError("nothing is free: name coordinates, speeds or actuators")
        J = np.stack(columns, -1) if columns else np.zeros((len(r), 0))
        sizes = [0.0 if name in y else abs(x) for name, x in free.items()]
        return Point(q, v, u, w, speeds, r, J, np.reshape(room, (-1, 2)), 1.0 + np.array(sizes), ss.K, y, values, free)

    def _left(self, name, x):
        """How far something at x may go down and up."""
        low, high = self.bounds.get(name, (-np.inf, np.inf))
        slack = 1e-9 * (1.0 + abs(x))
        if not low - slack <= x <= high + slack:
            raise InputError(f"bounds of {shown(name)}: the guess {x:.6g} is outside ({low:g}, {high:g})")
        return min(low - x, 0.0), max(high - x, 0.0)

    def moved(self, here, step):
        """The state along a step of what is free."""
        robot, u, w, dy = self.robot, here.u.copy(), here.w.copy(), np.zeros(len(here.y))
        free = [k for k, name in enumerate(here.y) if self.coordinates is None or name in self.coordinates]
        dy[free] = step[:len(free)]
        w[[here.speeds.index(name) for name in self.speeds]] += step[len(free):len(free) + len(self.speeds)]
        u[self.inputs] += step[len(free) + len(self.speeds):]
        q, v = here.q, here.v
        if free:  # closing the loops must not move what is held
            still = {name: self._coordinate(q, name) for k, name in enumerate(here.y)
                     if k not in free and self._is_coordinate(name)}
            q = close(robot, integrate(robot, q, here.K @ dy), held=still | here.values)
        if w.any():
            v = complete_velocity(robot, q, dict(zip(here.speeds, w)))
        return self._point(q, v, u, here.y, here.values)

    def result(self, here, size, count, reached):
        s = np.linalg.svd(here.J * size[:, None], compute_uv=False)
        freedom = here.J.shape[1] - int((s > RANK * s.max(initial=0.0)).sum())
        tau = actuator_matrix(self.robot, here.q) @ here.u
        return Trim(here.q, here.v, here.u, tau, dict(zip(here.speeds, here.r.tolist())), freedom, count, reached)


def _known(what, name, among):
    if not isinstance(name, str) or name not in among:
        raise InputError(f"{what}: unknown {shown(name)}, {suggestion(shown(name), among)}")
    return name


def _pair(name, x):
    pair = floats(f"bounds of {shown(name)}", x)
    if pair.shape != (2,) or not pair[0] < pair[1]:
        raise InputError(f"bounds of {shown(name)}: expected (lowest, highest), got {shown(x)}")
    return float(pair[0]), float(pair[1])
