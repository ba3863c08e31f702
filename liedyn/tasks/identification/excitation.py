"""Motions that excite parameters well: Fourier series with a small condition number (Swevers et al. 1997).

    q_j(t) = c_j + sum over k of (a_jk sin(k w t) - b_jk cos(k w t)) / (k w),    w = 2 pi / duration

begin and end at rest: sum a_jk = 0, sum k b_jk = 0. They are periodic, so that measured periods can be averaged, and
band-limited, so that their derivatives can be computed exactly. For a tree SLSQP minimises the condition number with
its exact derivatives by the coefficients; for a closed mechanism COBYLA does so without derivatives.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from liedyn.machine.arguments import between, floats, require_robot, whole
from liedyn.machine.errors import ClosureError, InputError, SingularConfigurationError, shown, suggestion
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.independent import by_name, choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.places import places_of
from liedyn.tasks.identification.base import structure
from liedyn.tasks.identification.regression import log_condition
from liedyn.tasks.identification.dynamic_parameters import joint_columns
from liedyn.tasks.identification.parameter_projection import allowed_motions
from liedyn.tasks.identification.regression import tree_regressor
from liedyn.tasks.identification.signals import completed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

WIDTH = 0.05
"""Width of Coulomb friction during the search [rad/s, m/s], large enough for smooth derivatives."""
STARTS = 20
"""Number of random series, of which the best one is improved."""
LARGEST = 1e9
"""Largest limits and speeds."""
HOPELESS = 50.0
"""Logarithm of the condition number that is assigned to a motion that the loops do not allow."""


@dataclass(frozen=True, repr=False)
class Excitation:
    """A periodic motion that excites parameters.

    Attributes
    ----------
    t : ndarray, shape (samples,)
        One period [s].
    q, v, a : ndarray, shapes (samples, nq), (samples, nv), (samples, nv)
        The motion; for closed mechanisms it satisfies the constraints.
    names : tuple of str
        The coordinates that the series describe.
    center : ndarray, shape (n,)
        c [rad, m].
    sines, cosines : ndarray, shape (n, harmonics)
        a and b [rad/s, m/s].
    duration : float
        Period [s].
    condition : float
        Condition number of the regressor of the base parameters over the motion, each column in units of its size in
        random motions of the same speed.
    started : float
        Condition number of the best random series, from which the search started.

    Examples
    --------
    >>> import liedyn as ld
    >>> found = ld.excitation(ld.load("ur5"), duration=8.0, iterations=3)
    >>> bool(found.condition < found.started), found.q.shape, float(abs(found.v[0]).max().round(9))
    (True, (100, 6), 0.0)
    """

    t: Array
    q: Array
    v: Array
    a: Array
    names: tuple[str, ...]
    center: Array
    sines: Array
    cosines: Array
    duration: float
    condition: float
    started: float
    _robot: object = field(default=None, repr=False)

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """The motion at given times.

        Parameters
        ----------
        t : array_like, shape (samples,)
            Times [s]; for a closed mechanism in small steps, starting near the beginning of a period.

        Returns
        -------
        q, v, a : ndarray, shapes (samples, nq), (samples, nv), (samples, nv)

        Raises
        ------
        InputError
            A time is not finite.
        ClosureError
            The loops cannot be closed from one time to the next.

        Examples
        --------
        >>> import numpy as np, liedyn as ld
        >>> found = ld.excitation(ld.load("ur5"), duration=8.0, iterations=0)
        >>> q, v, a = found.at(np.linspace(0.0, 8.0, 801))
        >>> bool(abs(q[0] - q[-1]).max() < 1e-12)
        True
        """
        t = floats("t", t)
        if t.ndim != 1 or not np.isfinite(t).all() or not len(t):
            raise InputError(f"t must be finite times, of shape (samples,), got {shown(t)}")
        x = np.concatenate([self.center[:, None], self.sines, self.cosines], axis=1)
        return motion_of(self._robot, self.names, x, series(t, self.duration, self.sines.shape[1]), self._robot.home)

    def __repr__(self) -> str:
        return (f"Excitation({len(self.names)} coordinates, {self.sines.shape[1]} harmonics in {self.duration:g} s, "
                f"condition {self.condition:.3g})")


def excitation(robot: Robot, duration: float = 10.0, harmonics: int = 5, include: Sequence[str] | dict[str, Any] = (),
               limits: dict[str, Any] | None = None, speed: float | dict[str, Any] | None = None, samples: int = 100,
               iterations: int = 100, seed: int = 0) -> Excitation:
    """A periodic motion within limits that excites the parameters as well as possible.

    Parameters
    ----------
    robot : Robot
        Ball and free joints must not be among the moved coordinates.
    duration : float
        Period [s].
    harmonics : int
        Number of harmonics of the Fourier series, at least two.
    include : sequence of str, or dict
        Parameters of joints in addition to those of bodies, as for `identify`.
    limits : dict, optional
        Lowest and highest value by name of a coordinate [rad, m]; replaces the robot's own limits or adds missing ones.
    speed : float or dict, optional
        Highest speed, or speeds by name of a coordinate [rad/s, m/s]; default: those of the robot.
    samples : int
        Number of times in a period at which the regressor is evaluated.
    iterations : int
        Iterations of the optimization.
    seed : int
        Seed of the random initial series: the same seed gives the same result.

    Returns
    -------
    Excitation
        Positions and speeds are within limits at all samples. Collisions are not considered.

    Raises
    ------
    InputError
        A name is unknown, a coordinate has no limits or speed, or ball or free joints are moved.

    Notes
    -----
    Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997, IEEE T-RA 13(5). The optimum is a local one. For closed
    mechanisms the series describe the independent coordinates; the search without derivatives needs more time there and
    improves less.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("ur5")
    >>> found = ld.excitation(arm, duration=8.0, harmonics=3, iterations=5, speed=1.0)
    >>> bool((arm.lower <= found.q).all() and (found.q <= arm.upper).all() and abs(found.v).max() <= 1.0)
    True
    """
    require_robot(robot)
    duration, samples = between("duration", duration, 1e-3, 1e6), whole("samples", samples, 1)
    harmonics, iterations = whole("harmonics", harmonics, 1), whole("iterations", iterations)
    rng = np.random.default_rng(whole("seed", seed))
    columns, names = joint_columns(robot, include), moved(robot)
    if harmonics < 2 or samples < 4 * harmonics or max(iterations, samples) > 10_000:
        raise InputError("an excitation needs two harmonics and four samples for each, and not more than 10000 samples "
                         f"or iterations; got {harmonics} harmonics, {samples} samples, {iterations} iterations")
    box = Box(*allowed_range(robot, names, limits, speed))
    problem = Problem(robot, names, columns, structure(robot, include).columns,
                      series(np.arange(samples) * duration / samples, duration, harmonics))
    starts = [box.shrunk(random_series(rng, robot, names, harmonics, box), problem.basis) for _ in range(STARTS)]
    problem.measure(starts)
    first = min(starts, key=problem.value)
    best = min((first, search(problem, first, box, iterations)), key=problem.value)
    q, v, a = problem.motion(best)
    return Excitation(np.arange(samples) * duration / samples, q, v, a, names, best[:, 0], best[:, 1:1 + harmonics],
                      best[:, 1 + harmonics:], duration, *np.exp([problem.value(best), problem.value(first)]).tolist(),
                      robot)


def series(t, duration, harmonics):
    """Factors of the coefficients in positions, velocities and accelerations, (samples, 1 + 2 harmonics) each."""
    k = 2.0 * np.pi / duration * np.arange(1, harmonics + 1)
    s, c, one = np.sin(t[:, None] * k), np.cos(t[:, None] * k), np.ones((len(t), 1))
    return (np.concatenate([one, s / k, -c / k], axis=1), np.concatenate([0.0 * one, c, s], axis=1),
            np.concatenate([0.0 * one, -k * s, k * c], axis=1))


def at_rest(harmonics):
    """E for x = E z such that the series are at rest at t = 0: sum a_k = 0 and sum k b_k = 0."""
    E = np.zeros((1 + 2 * harmonics, 2 * harmonics - 1))
    E[0, 0] = 1.0
    for rows, columns, row in ((slice(1, 1 + harmonics), slice(1, harmonics), np.ones(harmonics)),
                               (slice(1 + harmonics, None), slice(harmonics, None), np.arange(1.0, harmonics + 1.0))):
        E[rows, columns] = np.linalg.svd(row[None])[2][1:].T
    return E


@dataclass(frozen=True)
class Box:
    """Limits of the moved coordinates, each of shape (n,)."""

    low: np.ndarray
    up: np.ndarray
    fastest: np.ndarray

    def shrunk(self, x, basis):
        """The series x, (n, 1 + 2 harmonics), with amplitudes reduced such that all samples are within the limits."""
        q, v = (x @ each.T for each in basis[:2])
        x, c = x.copy(), x[:, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.stack([np.where(q > c, (self.up[:, None] - c) / (q - c), np.inf).min(axis=1),
                             np.where(q < c, (self.low[:, None] - c) / (q - c), np.inf).min(axis=1),
                             (self.fastest[:, None] / abs(v)).min(axis=1)])
        x[:, 1:] *= np.minimum((1.0 - 1e-12) * room.min(axis=0), 1.0)[:, None]  # rounding must not exceed them either
        return x

    def rows(self, basis):
        """A and b of A z <= b for one coordinate, b as a list over coordinates: two rows for each sample and kind."""
        q, v = basis[:2]
        return np.concatenate([q, -q, v, -v]), [np.repeat([up, -low, w, w], len(q)) for low, up, w in zip(
            self.low, self.up, self.fastest)]


class Problem:
    """The condition number as a function of the coefficients of the series."""

    def __init__(self, robot, names, columns, kept, basis):
        self.robot, self.names, self.columns, self.kept, self.basis = robot, names, columns, kept, basis
        self.sizes = None

    def motion(self, x):
        return motion_of(self.robot, self.names, x, self.basis, self.robot.home)

    def equations(self, x):
        """The regressor of the base parameters over the motion; None if the loops cannot be closed."""
        try:
            q, v, a = self.motion(x)
            Y = tree_regressor(self.robot, q, v, a, self.columns, WIDTH)[..., self.kept]
            if self.robot.row_names:
                Y = np.swapaxes(allowed_motions(self.robot, q, by_name(self.robot, self.names)), 1, 2) @ Y
            return Y.reshape(-1, len(self.kept))
        except (ClosureError, SingularConfigurationError):
            return None

    def measure(self, starts):
        """Sizes of the columns: root mean squares over several motions."""
        found = [W for W in map(self.equations, starts) if W is not None]
        if not found:
            raise InputError(f"the loops of {self.robot.name!r} close in none of {len(starts)} random motions within "
                             "the limits: give narrower limits, around home")
        self.sizes = np.maximum(np.sqrt(np.mean([(W ** 2).sum(axis=0) for W in found], axis=0)), 1e-300)

    def value(self, x):
        """The logarithm of the condition number."""
        W = self.equations(x)
        if W is None:
            return HOPELESS
        s = np.linalg.svd(W / self.sizes, compute_uv=False)
        return float(np.log(s[0] / s[-1])) if s[-1] > 0.0 else HOPELESS

    def with_slope(self, x):
        """`value` for a tree, and its derivatives by x."""
        value, slopes = log_condition(self.robot, self.motion(x), self.columns, self.kept, self.sizes, WIDTH)
        return value, sum(slope.T @ each for slope, each in zip(slopes, self.basis))


def search(problem, x, box, iterations):
    """A series with a smaller condition number than x, within the limits."""
    n, harmonics = len(x), (x.shape[1] - 1) // 2
    E = at_rest(harmonics)
    basis = [each[::max(len(each) // (8 * harmonics), 1)] @ E for each in problem.basis]
    A, b = box.rows(basis)
    # amplitudes in units of the allowed speed, centres in units of the range
    unit = np.stack([np.concatenate([[(up - low) / 4.0], np.full(E.shape[1] - 1, fastest)])
                     for low, up, fastest in zip(box.low, box.up, box.fastest)])
    z, rows, right = x @ E / unit, len(A), np.concatenate(b)
    J = np.zeros((n * rows, z.size))
    for j in range(n):
        J[j * rows:(j + 1) * rows, j * E.shape[1]:(j + 1) * E.shape[1]] = A * unit[j]
    size = np.maximum(abs(right), 1e-12)
    J, right = J / size[:, None], right / size

    def series_of(z):
        return z.reshape(n, -1) * unit @ E.T

    def value(z):
        return problem.value(series_of(z))

    def with_slope(z):
        f, slope = problem.with_slope(series_of(z))
        return f, (slope @ E * unit).ravel()

    if not iterations:
        return x
    kept = {"type": "ineq", "fun": lambda z: right - J @ z}
    if problem.robot.row_names:
        found = minimize(value, z.ravel(), method="COBYLA", constraints=[kept],
                         # size of the first simplex
                         options={"maxiter": max(10 * iterations, z.size + 2), "rhobeg": 0.1})
    else:
        kept["jac"] = lambda z: -J
        found = minimize(with_slope, z.ravel(), jac=True, method="SLSQP", constraints=[kept],
                         options={"maxiter": iterations, "ftol": 1e-4})
    return box.shrunk(inside(series_of(found.x), box), problem.basis)


def inside(x, box):
    """The series with centres moved into the limits."""
    x = x.copy()
    x[:, 0] = np.clip(x[:, 0], box.low, box.up)
    return x


def random_series(rng, robot, names, harmonics, box):
    """Random coefficients; centres in the middle half of the range for trees, at home for closed mechanisms."""
    x = rng.normal(size=(len(names), 2 * harmonics - 1)) @ at_rest(harmonics).T
    # as large as the limits allow, or a fraction of that
    x[:, 1:] *= (100.0 * box.fastest)[:, None]
    middle, half = (box.low + box.up) / 2.0, (box.up - box.low) / 2.0
    x[:, 0] = middle + 0.5 * half * rng.uniform(-1.0, 1.0, size=len(names))
    if robot.row_names:
        x[:, 0] = np.clip([robot.home[robot.coordinate_index(name)] for name in names], box.low, box.up)
    return x


def motion_of(robot, names, x, basis, guess):
    """q, v and a of the series with coefficients x."""
    w = [each @ x.T for each in basis]
    if not robot.row_names:
        return tuple(np.ascontiguousarray(each) for each in w)
    return completed(robot, names, *w, guess)


def moved(robot):
    """The moved coordinates: all of a tree, the independent ones of a closed mechanism."""
    names = robot.velocity_names
    if robot.row_names:
        names = choose(robot, close(robot, robot.home), None, RANK_TOLERANCE).names
    for name in names:
        if name not in robot.velocity_names or places_of(robot)[robot.velocity_index(name)] < 0:
            raise InputError(f"excitation moves coordinates that turn or slide, {shown(name)} of {robot.name!r} is "
                             "none of the tree")
    return tuple(names)


def allowed_range(robot, names, limits, speed):
    """Lowest and highest positions, and highest speeds."""
    limits = {} if limits is None else limits
    if not isinstance(limits, dict):
        raise InputError(f"limits must be a dict of pairs by name of a coordinate, got {shown(limits)}")
    speeds = speed if isinstance(speed, dict) else {} if speed is None else dict.fromkeys(names, speed)
    for what, given in (("limits", limits), ("speed", speeds)):
        for name in given:
            if name not in names:
                raise InputError(f"{what}: no coordinate {shown(name)} is moved, {suggestion(str(name), names)}")
    ranges = []
    for name in names:
        k, j = robot.coordinate_index(name), robot.velocity_index(name)
        pair = floats(f"limits of {name!r}", limits.get(name, (robot.lower[k], robot.upper[k])))
        fastest = floats(f"speed of {name!r}", speeds.get(name, robot.velocity_limit[j]))
        if pair.shape != (2,) or fastest.ndim or not (abs(pair) < LARGEST).all() or not pair[0] < pair[1]:
            raise InputError(f"{name!r} needs finite limits, the lower below the higher one: limits={{{name!r}: (low, "
                             f"high)}}; got {pair.tolist() if pair.size < 10 else pair.shape}")
        if not 1e-9 < fastest < LARGEST:
            raise InputError(f"{name!r} needs a finite positive speed: speed={{{name!r}: ...}}; got {fastest}")
        ranges.append((*pair, float(fastest)))
    return np.array(ranges).T
