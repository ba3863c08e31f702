"""Steps and runs of `simulate` as operations: classical Runge-Kutta method, projection, constant forces in each step.

The derivatives of all steps of all runs of a batch come from one `Tape` (`liedyn.motion.gradients`), on which the runs
follow one another; the derivative of a run is a chain of those of its steps.
"""
# mypy: ignore-errors
from collections import namedtuple

import numpy as np

from liedyn.bridges.differentiable.maps import Chain
from liedyn.bridges.differentiable.operations import Operation, state
from liedyn.bridges.differentiable.quaternions import rates, tangent
from liedyn.linear.sensitivity.model_parameters import all_changes, inertial_changes
from liedyn.machine.arguments import positive
from liedyn.machine.errors import InputError, SimulationError
from liedyn.mechanics.contact.contact_state import statuses
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.model.remembered import remembered
from liedyn.motion.gradients.tape import Tape
from liedyn.motion.simulation.grid import Grid
from liedyn.motion.simulation.one_step import step as one_step
from liedyn.motion.simulation.preparation import scheme_of
from liedyn.motion.simulation.simulate import simulate

State = namedtuple("State", "q v")
State.__doc__ = """A configuration q (..., nq) and a velocity v (..., nv); of a run with one row more than steps."""
Rows = namedtuple("Rows", "t q v a tau lam status")
"""The data of a trajectory that a `Tape` reads, for runs that follow one another."""


class Runs(Operation):
    """Common base of steps and runs: the matrices of steps."""

    bundle = State

    def __init__(self, robot, dt, arguments, results):
        if watches(robot):
            raise InputError(f"{robot.name!r} has one-sided constraints, whose events have times of their own: take "
                             "differentiate_run, or switch them to what they are with robot.switched")
        super().__init__(robot, arguments, results)
        self.dt = dt

    def differentiate(self, *x, inertia=False, parameters=()):
        """The results as a tuple, and for all steps A, B and, optionally, the derivative by numbers of the model."""
        (q, v, tau), lengths = self._with_rotations(x)
        robot, lead = self.robot, q.shape[:-1]
        rows = self._rows(q, v, tau)
        changes = [(own, []) for own in inertial_changes(robot)] if inertia else []  # force elements have no inertia
        changes += [all_changes(robot)[name] for name in parameters]
        A, B, C = self._steps(rows, tau.reshape(-1, robot.nv), changes)
        matrices = [A, B, C] if changes else [A, B]
        if robot.nq != robot.nv:
            every = np.ones((*rows.q.shape[:2], lengths.shape[-1]))
            every[:, 0] = lengths.reshape(-1, lengths.shape[-1])
            Q = with_speeds(rates(robot, rows.q[:, 1:]))
            matrices = [Q @ X for X in matrices]
            matrices[0] = matrices[0] @ with_speeds(tangent(robot, rows.q[:, :-1], every[:, :-1]))
        return tuple(x.reshape(*lead, *x.shape[1:]) for x in (rows.q, rows.v)), tuple(
            x.reshape(*lead, *x.shape[1:]) for x in matrices)

    def _steps(self, rows, tau, changes):
        """Derivatives (count, steps, 2 nv, ...) in tangent spaces by the state, by tau, and by changes of the model."""
        robot, (count, height) = self.robot, rows.q.shape[:2]
        grid = Grid(robot.t, robot.t + len(tau) * self.dt, self.dt)
        scheme = scheme_of("rk4", "nullspace", "projection")
        tape = Tape(robot, (rows.q[0, 0], rows.v[0, 0]), grid, scheme, (tau, None, None), (), changes)
        flat = Rows(np.tile(rows.t, count), *(x.reshape(count * height, x.shape[-1]).copy() for x in rows[1:6]),
                    np.tile(statuses(tape.model), (count * height, 1)))
        held = np.minimum(np.arange(height), height - 2) + (height - 1) * np.arange(count)[:, None]
        found, *_, origin = tape.steps(flat, held.ravel(), [(k, k + height - 1) for k in range(0, len(flat.t), height)])
        if (origin != np.arange(len(origin))).any():
            k = int(np.argmax(origin != np.arange(len(origin)))) % height
            raise SimulationError(f"the step from t = {rows.t[k]:.9g} s passes a singular configuration together with "
                                  "the one before: take differentiate_run")
        return tuple(np.concatenate([x, x[:1]]).reshape(count, height, *x.shape[1:])[:, :-1]
                     for x in (found.by_state, found.by_inputs, found.by_parameters))


class Run(Runs):
    """The states of a run, from the initial state and the forces, which are constant in each step."""

    def __init__(self, robot, steps, dt):
        super().__init__(robot, dt, state(robot) | {"tau": (steps, robot.nv)},
                         {"q": (steps + 1, robot.nq), "v": (steps + 1, robot.nv)})
        self.steps = steps
        self.map = Chain(steps, robot.nq, robot.nv, robot.nv)

    def evaluate(self, *x):
        """All q and v; the first ones are the given ones, with quaternions of any length."""
        q, v = super().evaluate(*x)
        q[..., 0, :] = x[0]
        return q, v

    def differentiate(self, *x, inertia=False, parameters=()):
        """All q and v, and the derivatives of all steps."""
        (q, v), matrices = super().differentiate(*x, inertia=inertia, parameters=parameters)
        q[..., 0, :] = x[0]
        return (q, v), matrices

    def _evaluate(self, q, v, tau):
        rows, lead = self._rows(q, v, tau), q.shape[:-1]
        return tuple(x.reshape(*lead, *x.shape[1:]) for x in (rows.q, rows.v))

    def _rows(self, q, v, tau):
        """The runs (count, steps + 1, ...) from starts with any leading axes."""
        robot, steps = self.robot, self.steps
        q, v, tau = q.reshape(-1, robot.nq), v.reshape(-1, robot.nv), tau.reshape(-1, steps, robot.nv)
        run = simulate(robot, q, v, robot.t + steps * self.dt, tau=tau, dt=self.dt, t0=robot.t, progress=False)
        for index in sorted(run.errors):
            raise run.errors[index]
        if len(run.t) != steps + 1:
            raise SimulationError(f"a run of {steps} steps has {len(run.t)} rows", run[0])
        return Rows(run.t, run.q, run.v, run.a, run.tau, run.lam, None)


class Step(Runs):
    """The state one step later."""

    def __init__(self, robot, dt):
        super().__init__(robot, dt, state(robot) | {"tau": (robot.nv,)}, state(robot))

    def _evaluate(self, q, v, tau):
        if q.ndim == 1:
            return one_step(self.robot, q, v, tau, self.dt)
        found = self._rows(q, v, tau)
        return tuple(x[:, 1].reshape(*q.shape[:-1], -1) for x in (found.q, found.v))

    def differentiate(self, *x, inertia=False, parameters=()):
        """The results as a tuple, and the matrices of the derivative as another."""
        (q, v), matrices = super().differentiate(*x, inertia=inertia, parameters=parameters)
        n, (A, *others) = self.robot.nq, (X[..., 0, :, :] for X in matrices)
        return (q[..., 1, :], v[..., 1, :]), tuple(
            X[..., rows, :] for rows in (slice(n), slice(n, None)) for X in (A[..., :n], A[..., n:], *others))

    def _rows(self, q, v, tau):
        """Beginning and end of each step, with what is known at the beginning."""
        robot = self.robot
        q, v, tau = q.reshape(-1, robot.nq), v.reshape(-1, robot.nv), tau.reshape(-1, robot.nv)
        ends = [one_step(robot, *each, self.dt) for each in zip(q, v, tau)]
        found = forward_dynamics(robot, q, v, tau)
        both = [np.stack([x, np.reshape([end[k] for end in ends], x.shape)], axis=1) for k, x in enumerate((q, v))]
        return Rows(np.array([robot.t, robot.t + self.dt]), *both,
                    *(np.repeat(x[:, None], 2, axis=1) for x in (found.a, tau, found.lam)), None)


def with_speeds(X):
    """The block-diagonal matrix with X for configurations and the identity for velocities."""
    rows, columns = X.shape[-2:]
    n = min(rows, columns)
    out = np.zeros((*X.shape[:-2], rows + n, columns + n))
    out[..., :rows, :columns] = X
    out[..., rows:, columns:] = np.eye(n)
    return out


@remembered
def _step(robot, dt):
    return Step(robot, dt)


@remembered
def _run(robot, steps, dt):
    return Run(robot, steps, dt)


def step(robot, dt):
    """The operation of `step`."""
    return _step(robot, positive("dt", dt))


def rollout(robot, dt, shape):
    """The operation of `rollout`, for forces tau of this shape.

    Raises InputError if the number of steps does not follow from the shape, or a step is not positive.
    """
    if len(shape) < 2 or shape[-1] != robot.nv or not shape[-2]:
        raise InputError(f"tau must have shape (..., steps, {robot.nv}), got {tuple(shape)}")
    return _run(robot, int(shape[-2]), positive("dt", dt))
