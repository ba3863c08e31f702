"""An optimal motion: a trajectory with inputs, cost, multipliers and errors, which can be evaluated at any time."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, number
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.mechanics.constraints.constraint_wrenches import wrenches_at
from liedyn.mechanics.constraints.loops import closure_error, velocity_error
from liedyn.mechanics.elements.generalized import energy_slope, forces_and_derivatives
from liedyn.model.packed import DOF_DAMPING, dofs_of
from liedyn.motion.simulation.recorder import energies_at
from liedyn.motion.simulation.trajectory import Trajectory
from liedyn.tasks.optimal_motion.between_nodes import SEEN, excess
from liedyn.tasks.optimal_motion.dynamics import motion_at

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array, ArrayLike

ROWS = 10
"""Number of rows of the trajectory in each interval."""


class OptimizationError(LiedynError):
    """No optimal motion was found; the error contains what was computed.

    Attributes
    ----------
    motion : OptimalMotion or None
        The best iterate, from which a new call can continue (``guess=``).
    violations : dict
        How far the worst rows of the program are beyond their limits, by their labels.
    """

    motion: OptimalMotion | None
    violations: dict[str, Any]

    def __init__(self, message: str, motion: OptimalMotion | None = None,
                 violations: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.motion = motion
        self.violations = violations or {}


class MotionWarning(UserWarning):
    """A motion exceeds limits between the nodes of its mesh."""


@dataclass(frozen=True, repr=False)
class OptimalMotion(Trajectory):
    """The result of `optimize_motion`: a `Trajectory` with ten rows in each interval, and data of the solution.

    Attributes
    ----------
    u : ndarray, shape (nt, nu)
        Forces of the actuators [N m, N].
    cost, duration : float
        The minimum, and the duration of the motion [s].
    knots : ndarray, shape (N + 1,)
        Boundaries of the intervals [s].
    errors : ndarray, shape (N,)
        For each interval the largest difference, in coordinates of the manifold and their rates, between the motion and
        an integration with its inputs from the interval's first state.
    excess : dict
        Excess of limits between the nodes, where the program does not check them: the largest amounts by the limit's
        name, in its unit, at the rows of the trajectory, if they are more than a millionth of the limit.
    outcome : str
        Status that the solver returned.
    optimality, violation : float
        The largest component of the gradient of the Lagrangian (of the scaled program), and the largest violation of a
        row.
    iterations : int
        Iterations of the solver, over all meshes.
    time : float
        Computation time [s].
    solver : str
    multipliers : ndarray, shape (rows,)
        Multipliers of the rows of the program: minus the derivative of the cost by the limit of the row.
    row_labels : tuple of str
        Meaning and place of these rows.
    actuator_names : tuple of str

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> goal = ld.close(arm, arm.home, q1=arm.home[0] + 0.2, q2=arm.home[1])
    >>> motion = ld.optimize_motion(arm, arm.home, goal, duration=0.5, intervals=4)
    >>> q, v, u = motion.at(0.3)
    >>> bool(abs(ld.closure_error(arm, q)).max() < 1e-10)
    True
    """

    u: Array = field(default_factory=lambda: np.empty(0))
    cost: float = float("nan")
    duration: float = float("nan")
    knots: Array = field(default_factory=lambda: np.empty(0))
    errors: Array = field(default_factory=lambda: np.empty(0))
    excess: dict[str, Any] = field(default_factory=dict)
    outcome: str = ""
    optimality: float = float("nan")
    violation: float = float("nan")
    iterations: int = 0
    time: float = float("nan")
    solver: str = ""
    multipliers: Array | None = None
    row_labels: tuple[str, ...] = ()
    actuator_names: tuple[str, ...] = ()
    # transcription, unknowns and motion at the nodes: neither saved nor pickled
    _plan: object = field(default=None, compare=False)
    # densities of limits (liedyn.tasks.optimal_motion.solving), for motions that start from this one
    _densities: object = field(default=None, compare=False)

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"_plan": None, "_densities": None}

    def __repr__(self) -> str:
        return (f"OptimalMotion({self.robot!r}, {self.duration:.6g} s, cost {self.cost:.6g}, {self.outcome}, "
                f"{len(self.knots) - 1} intervals, {self.iterations} iterations of {self.solver})")

    def at(self, t: float | ArrayLike) -> tuple[Array, Array, Array]:
        """State and inputs at any time of the motion.

        Parameters
        ----------
        t : float or array_like, shape (n,)
            Times from 0 to the duration [s].

        Returns
        -------
        q, v, u : ndarray
            Configuration, velocity and forces of the actuators, with the leading shape of t. The constraints hold to
            rounding between the knots, too.

        Raises
        ------
        InputError
            A time is outside the motion, or the motion was loaded from a file.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> goal = ld.close(arm, arm.home, q1=arm.home[0] + 0.2, q2=arm.home[1])
        >>> ld.optimize_motion(arm, arm.home, goal, duration=0.5, intervals=4).at([0.1, 0.2])[2].shape
        (2, 4)
        """
        given = floats("t", t)
        times = given[None] if given.ndim == 0 else given
        slack = 1e-9 * self.duration
        if times.ndim != 1 or not ((times >= -slack) & (times <= self.duration + slack)).all():
            raise InputError(f"t must be times from 0 to {self.duration:g} s, got {shown(t)}")
        if self._plan is None:
            raise InputError("a motion from a file has its rows only: motion.t, motion.q, motion.v, motion.u")
        found = inside(self._plan, times / self.duration)
        return tuple(x[0] for x in found) if given.ndim == 0 else found

    def feedforward(self, t: float, q: Array, v: Array) -> Array:
        """The inputs at time t, in the form ``u=motion.feedforward`` for `simulate` and feedback laws.

        Parameters
        ----------
        t : float
            Time [s]; before and after the motion its first and last inputs are returned.
        q, v : ndarray
            Not used.

        Returns
        -------
        u : ndarray, shape (nu,)

        Raises
        ------
        InputError
            t is not a finite number, or the motion was loaded from a file.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> goal = ld.close(arm, arm.home, q1=arm.home[0] + 0.2, q2=arm.home[1])
        >>> motion = ld.optimize_motion(arm, arm.home, goal, duration=0.5, intervals=4)
        >>> run = ld.simulate(arm, motion.q[0], motion.v[0], 0.5, u=motion.feedforward)
        >>> bool(abs(run.q[-1] - goal).max() < 1e-5)
        True
        """
        if self._plan is None:
            raise InputError("a motion from a file has its rows only: motion.t, motion.u")
        transcription, z, _ = self._plan
        part = min(max(number("t", t) / self.duration, 0.0), 1.0)
        k = interval_of(transcription, np.array([part]))
        return transcription.inputs(z, k, share(transcription, k, np.array([part])))[0]


def interval_of(transcription, part):
    """Indices of the intervals at fractions of the duration."""
    return np.clip(np.searchsorted(transcription.mesh, part, side="right") - 1, 0, len(transcription.mesh) - 2)


def share(transcription, k, part):
    """Elapsed fraction of interval k[i]."""
    mesh = transcription.mesh
    return np.clip((part - mesh[k]) / (mesh[k + 1] - mesh[k]), 0.0, 1.0)


def inside(plan, part):
    """States on the manifold and inputs at fractions of the duration."""
    transcription, z, motion = plan
    k = interval_of(transcription, part)
    x, u = transcription.inside(z, motion, k, share(transcription, k, part))
    return *transcription.charts.states(k, x), u


def optimal_motion(program, z, duration, known):
    """The `OptimalMotion` of unknowns z, and its `Excess` of limits; `known` has the other attributes."""
    transcription, robot = program.transcription, program.transcription.charts.robot
    plan = transcription, z.copy(), program.evaluate(z).motion
    mesh = transcription.mesh
    part = np.append((mesh[:-1, None] + np.diff(mesh)[:, None] * np.arange(ROWS) / ROWS).ravel(), 1.0)
    q, v, u = inside(plan, part)
    t, k = part * duration, interval_of(transcription, part)
    of = motion_at(transcription.charts, k, q, v, u)
    tau = u @ robot.tree_actuators.T
    if robot.elements is not None:
        tau = tau + forces_and_derivatives(robot, robot.t, q, v, u if robot.elements.driven else None)[0]
    kinetic, potential = energies_at(robot, q, v)
    input_work, other_work = works(robot, transcription, z, t, q, v)
    count, active = len(t), np.ones((len(t), len(robot.constraint_names)), np.int64)
    position, velocity = (np.abs(x).max(axis=1, initial=0.0) for x in (
        (closure_error(robot, q), velocity_error(robot, q, v)) if robot.row_names else np.zeros((2, count, 0))))
    beyond = excess(program.demands, robot.actuator_names, t, q, v, u)
    motion = OptimalMotion(
        t, q, v, of.a, tau, of.lam, active > 0, active, kinetic, potential, input_work, other_work, position, velocity,
        np.full(count, np.nan), wrenches_at(robot, t, q, of.lam), (), robot.name, robot.coordinate_names,
        robot.velocity_names, robot.row_names, robot.constraint_names, method=transcription.name,
        formulation="nullspace", stabilisation="local coordinates", _robot=robot, u=u, duration=float(duration),
        knots=mesh * duration, excess=beyond.largest(SEEN), actuator_names=robot.actuator_names, _plan=plan, **known)
    return motion, beyond


def works(robot, transcription, z, t, q, v):
    """Works since the start at the rows: of inputs and force elements without stored energy, and of joint dampers."""
    count = len(transcription.mesh) - 1
    # the last row of an interval has the inputs of this interval
    rows = np.arange(count)[:, None] * ROWS + np.arange(ROWS + 1)
    k, part = np.repeat(np.arange(count), ROWS + 1), np.tile(np.arange(ROWS + 1) / ROWS, count)
    q, v, u = q[rows.ravel()], v[rows.ravel()], transcription.inputs(z, k, part)
    tau = u @ robot.tree_actuators.T
    if robot.elements is not None:
        tau = tau + forces_and_derivatives(robot, robot.t, q, v, u if robot.elements.driven else None)[0]
        tau = tau + [energy_slope(robot, each)[0] for each in q]  # the stored part is in the potential energy
    powers = np.einsum("bi,bi->b", tau, v), -(v * v) @ dofs_of(robot.packed)[1][:, DOF_DAMPING]
    return [integral(np.diff(t[::ROWS]) / ROWS, power.reshape(count, ROWS + 1)) for power in powers]


def integral(h, power):
    """Cumulative integrals of powers (intervals, ROWS + 1) with steps h: Simpson's rule, a parabola in between."""
    a, b, c = power[:, :-1:2], power[:, 1::2], power[:, 2::2]
    steps = np.stack([(5.0 * a + 8.0 * b - c) / 12.0, (8.0 * b + 5.0 * c - a) / 12.0], axis=2) * h[:, None, None]
    return np.concatenate([[0.0], np.cumsum(steps.ravel())])
