"""A run and its derivatives: the public function, variations forwards in time and gradients backwards."""
from dataclasses import dataclass, field

import numpy as np

from liedyn.arguments import floats, number, require_robot
from liedyn.compiled.boundary import require_usable, states, wrenches
from liedyn.compiled.functions import forget_errors, raise_errors
from liedyn.constraints.records import refresh
from liedyn.contact.state import statuses
from liedyn.errors import InputError, SimulationError, shown
from liedyn.gradients.instants import instants_of, require_differentiable
from liedyn.gradients.steps import StepDerivatives, differentiate_steps, make_parts, make_room, put_at_rest, vary_start
from liedyn.gradients.sweeps import carry_back, carry_forward
from liedyn.model.packed import PackedModel
from liedyn.sensitivity.changes import GRAVITY, make_changes
from liedyn.sensitivity.parameters import all_changes, chosen
from liedyn.sensitivity.partials import partial_states
from liedyn.sensitivity.variations import Motion
from liedyn.simulation.grid import Grid
from liedyn.simulation.inputs import Inputs
from liedyn.simulation.integrators.derivatives import make_derivatives
from liedyn.simulation.integrators.explicit import ExplicitRungeKutta
from liedyn.simulation.preparation import known_events, one_sided, options, private_model, settings_of
from liedyn.simulation.simulate import simulate
from liedyn.simulation.trajectory import Trajectory
from liedyn.simulation.workspace import FREE_ENERGY, FUNCTION, MESSAGES, N_SCALARS, NOT_CLOSED, OK, Rows, make_rows, make_work


@dataclass(frozen=True)
class RunVariation:
    """What a variation of start, inputs and parameters makes of a run.

    Attributes
    ----------
    q : ndarray, shape (nt, nv)
        Displacements in the tangent spaces at the configurations of the run [rad, m].
    v : ndarray, shape (nt, nv)
        Changes of the velocities [rad/s, m/s].
    t : ndarray, shape (nt,)
        Changes of the times [s]: those of events.
    """

    q: np.ndarray
    v: np.ndarray
    t: np.ndarray


@dataclass(frozen=True)
class RunGradient:
    """The gradient of a function of a run.

    Attributes
    ----------
    q0, v0 : ndarray, shape (nv,)
        By a displacement in the tangent space at the start, and by the initial velocity. Only their products with
        variations that the constraints allow mean anything.
    inputs : ndarray
        By the inputs, in the shape in which they were given; of a feedback by a constant added to it.
    parameters : ndarray, shape (np,)
        By the parameters, in the order of their names.
    """

    q0: np.ndarray
    v0: np.ndarray
    inputs: np.ndarray
    parameters: np.ndarray


@dataclass(frozen=True)
class RunDerivatives:
    """A run with the derivatives of its steps.

    Attributes
    ----------
    trajectory : Trajectory
        The run itself, each step one row.
    by_state : ndarray, shape (nt - 1, 2 nv, 2 nv)
        Derivative of row k + 1 by row k, both (tangent at q, v), at constant times; at events, which have two rows, of
        the state after by the state before. A row next to a singular configuration from which no step begins
        is passed over: the row behind it is derived by the one before it.
    by_inputs : ndarray, shape (nt - 1, 2 nv, nu)
    by_parameters : ndarray, shape (nt - 1, 2 nv, np)
    by_length : ndarray, shape (nt - 1, 2 nv)
        By the length of the step.
    parameters : tuple of str
    start_by_parameters : ndarray, shape (2 nv, np)
        How the start moves with parameters that would open the constraints there, as ``start="project"`` does.
    """

    trajectory: Trajectory
    by_state: np.ndarray
    by_inputs: np.ndarray
    by_parameters: np.ndarray
    by_length: np.ndarray
    parameters: tuple
    start_by_parameters: np.ndarray
    _origin: np.ndarray = field(repr=False)
    _held: np.ndarray = field(repr=False)
    _instants: list = field(repr=False)
    _table: tuple = field(repr=False)

    def forward(self, q0=None, v0=None, inputs=None, parameters=None):
        """What a variation of the start, the inputs and the parameters makes of all rows.

        Parameters
        ----------
        q0 : array_like, shape (nv,), optional
            Displacement of the start in the tangent space at q0; the constraints have to allow it, with v0.
        v0 : array_like, shape (nv,), optional
            Change of the initial velocity.
        inputs : array_like, optional
            Change of the inputs, in the shape in which they were given; of a feedback a constant added to it.
        parameters : array_like, shape (np,), optional
            Changes of the parameters, in the order of their names.

        Returns
        -------
        RunVariation

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1, tau=[1.0, 0.0, 0.0, 0.0])
        >>> run.forward(inputs=[1.0, 0.0, 0.0, 0.0]).q.shape
        (101, 4)
        """
        rows, n = len(self.trajectory.t), self.by_state.shape[1] // 2
        dx, dt = np.zeros((rows, 2 * n)), np.zeros(rows)
        dx[0] = np.concatenate([self._given("q0", q0, (n,)), self._given("v0", v0, (n,))])
        du = self._given("inputs", inputs, self._table).reshape(-1, self.by_inputs.shape[2])
        dp = self._given("parameters", parameters, (len(self.parameters),))
        dx[0] += self.start_by_parameters @ dp
        for first, last, instant in self._parts():
            carry_forward(self._steps(), self._origin, self._held, first, last, dt[first], du, dp, dx)
            if instant is not None:
                if last > 0:  # at the start nothing decides when it happens
                    rate = instant.by_state @ self.by_length[last - 1] + instant.by_time
                    dt[last] = -(instant.by_state @ dx[last] + instant.by_parameters @ dp) / rate
                    dx[last] += self.by_length[last - 1] * dt[last]
                dt[last + 1], dx[last + 1] = dt[last], instant.jump @ dx[last] + instant.jump_by_parameters @ dp
        return RunVariation(dx[:, :n].copy(), dx[:, n:].copy(), dt)

    def adjoint(self, q=None, v=None, t=None):
        """The gradient of a function of the run, from its gradients by the rows.

        Parameters
        ----------
        q : array_like, shape (nt, nv) or (nv,), optional
            Gradient of the function by displacements in the tangent spaces at the configurations; one row is that of
            the last state.
        v : array_like, shape (nt, nv) or (nv,), optional
            Gradient by the velocities, likewise.
        t : array_like, shape (nt,), optional
            Gradient by the times of the rows, of which those of events vary.

        Returns
        -------
        RunGradient
            It costs one product per step, whatever the number of inputs and parameters.

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1)
        >>> run.adjoint(q=[1.0, 0.0, 0.0, 0.0]).v0.shape  # of q1 at the end
        (4,)
        """
        rows, n = len(self.trajectory.t), self.by_state.shape[1] // 2
        y, y_t = np.hstack([self._of_rows("q", q, n), self._of_rows("v", v, n)]), self._given("t", t, (rows,)).copy()
        du, dp = np.zeros((int(np.prod(self._table[:-1])), self.by_inputs.shape[2])), np.zeros(len(self.parameters))
        for first, last, instant in reversed(self._parts()):
            if instant is not None:
                y[last] += instant.jump.T @ y[last + 1]
                dp += instant.jump_by_parameters.T @ y[last + 1]
                y_t[last] += y_t[last + 1]
                if last > 0:
                    rate = instant.by_state @ self.by_length[last - 1] + instant.by_time
                    of_time = (self.by_length[last - 1] @ y[last] + y_t[last]) / rate
                    y[last] -= instant.by_state * of_time
                    dp -= instant.by_parameters * of_time
            y_t[first] += carry_back(self._steps(), self._origin, self._held, first, last, y, du, dp)
        dp += self.start_by_parameters.T @ y[0]
        return RunGradient(y[0, :n].copy(), y[0, n:].copy(), du.reshape(self._table), dp)

    def _steps(self):
        return StepDerivatives(self.by_state, self.by_inputs, self.by_parameters, self.by_length)

    def _parts(self):
        """First and last row between events, and the event behind it."""
        parts, first = [], 0
        for instant in self._instants:
            parts.append((first, instant.row, instant))
            first = instant.row + 1
        return [*parts, (first, len(self.trajectory.t) - 1, None)]

    def _given(self, name, x, shape):
        if x is None:
            return np.zeros(shape)
        x = floats(name, x)
        if x.shape != tuple(shape):
            raise InputError(f"{name} must have shape {tuple(shape)}, got {x.shape}")
        require_usable(name, x)
        return np.ascontiguousarray(x)

    def _of_rows(self, name, x, n):
        rows = len(self.trajectory.t)
        if x is not None and np.ndim(x) == 1:
            every = np.zeros((rows, n))
            every[-1] = self._given(name, x, (n,))
            return every
        return self._given(name, x, (rows, n))


class Tape:
    """A run's model, settings and workspace once more, for the derivatives of its steps."""

    def __init__(self, robot, q0, v0, grid, method, stabilisation, tau, u, f_ext, events, parameters):
        forces = wrenches(robot, f_ext, ())[0]
        self.robot, self.n = robot, robot.nv
        self.inputs = Inputs(robot, tau, u, (grid.start, q0, v0), grid, True)
        if self.inputs.kind == FUNCTION and not self.inputs.derivative:
            name = "u" if u is not None else "tau"
            raise InputError(f"{name} is a function without its derivative: give a pair (f, df), as for check_feedback")
        if self.inputs.sampling is not None:
            raise InputError("Sampled controllers are not differentiated: give inputs over the time grid, or (f, df)")
        self.model = private_model(robot, grid.start)
        self.contacts = one_sided(robot, self.model, (), events)
        self.x = make_work(robot, forces, self.inputs, self.contacts, method.tableau.shape[1])
        _, stabilisation, pull = options(method, "nullspace", stabilisation)
        self.o = settings_of(robot, method, "nullspace", stabilisation, pull, 0.0, self.contacts, self.inputs,
                             len(forces) > 0, FREE_ENERGY)
        changes = make_changes([all_changes(robot)[name][0] for name in parameters])
        self.d, self.room = make_derivatives(self.model, self.x), make_room(self.model, self.x, changes)
        self.parameters = len(parameters)

    def put(self, status, t):
        """Constraints as they were at a time."""
        statuses(self.model)[:] = status
        refresh(self.model, t)

    def at_rest(self):
        """The model without gravity, springs and the velocities of targets."""
        put_at_rest(self.model, self.room.at_rest)
        return PackedModel(self.model.ints, self.room.at_rest)

    def partials(self, q, v, a, lam):
        """Partial derivatives by the parameters of ID + G^T lam, phi, psi and g, with the constraints as they are put."""
        n, m, count = self.n, len(self.x.psi), self.parameters
        found = [np.zeros((1, size, count)) for size in (n, m, m, m)]
        if count:
            at = Motion(*(np.ascontiguousarray(x[None]) for x in (q, v, a, lam)))
            partial_states(self.model, at, self.room.changes, *found)
        return [x[0] for x in found]

    def start(self, rows):
        """How the start moves with the parameters, (2 n, np)."""
        first = 2 * self.n + self.x.actuators.shape[1]
        if not self.parameters:
            return np.zeros((2 * self.n, 0))
        vary_start(self.model, self.o, self.x, rows, self.d, self.room)
        return np.vstack([self.room.theta, self.room.v])[:, first:first + self.parameters].copy()

    def steps(self, trajectory, held, parts):
        """Derivatives of all steps in the parts between events."""
        rows, n = len(trajectory.t), self.n
        known = Rows(trajectory.t, held, trajectory.q, trajectory.v, trajectory.a, trajectory.tau, trajectory.lam,
                     np.empty((rows, N_SCALARS)), np.empty((rows, 0)))
        nu, parameters = self.x.actuators.shape[1], self.parameters
        found = StepDerivatives(np.zeros((rows - 1, 2 * n, 2 * n)), np.zeros((rows - 1, 2 * n, nu)),
                                np.zeros((rows - 1, 2 * n, parameters)), np.zeros((rows - 1, 2 * n)))
        origin = np.arange(rows - 1)
        statuses(self.model)[:] = trajectory.status[0]
        start = self.start(known)
        for first, last in parts:
            statuses(self.model)[:] = trajectory.status[first]
            k = first
            while k < last:
                status, k = self._differentiate(known, k, last, found)
                if status == NOT_CLOSED:  # not one step and its projection
                    base = self._passage(known, k, first, found)
                    status, origin[k], k = (status, k, k) if base is None else (OK, base, k + 1)
                if status != OK:
                    text = MADE_IN_PARTS if status == NOT_CLOSED else MESSAGES[status].format(
                        largest=self.o.largest.min())
                    raise SimulationError(f"the run has no derivative at t = {trajectory.t[k]:.9g} s: {text}", trajectory)
        return found, start, origin

    def _differentiate(self, rows, first, last, found):
        functions = self.inputs.functions | self.robot.functions
        forget_errors(functions)
        result = differentiate_steps(self.model, self.o, self.x, rows, first, last, self.d, self.room, found)
        raise_errors(functions)
        return result

    def _passage(self, rows, k, first, found):
        """Derivatives of a step to row k + 1 that passes a singular configuration; the row it begins at, or None."""
        for base in range(k, max(first, k - 1) - 1, -1):
            for parts in (1, 2, 4, 8, 16, 32, 64):
                if base == k and parts == 1:
                    continue
                made = make_rows(self.robot, parts + 1)
                for target, source in zip(made[:-2], rows[:-2]):
                    target[0] = source[base]
                made.t[parts], made.held[:] = rows.t[k + 1], rows.held[base]
                if make_parts(self.model, self.o, self.x, made) != OK:
                    continue
                if np.array_equal(made.q[parts], rows.q[k + 1]) and np.array_equal(made.v[parts], rows.v[k + 1]):
                    own = StepDerivatives(*(np.zeros((parts, *x.shape[1:])) for x in found))
                    if self._differentiate(made, 0, parts, own)[0] != OK:
                        return None
                    put_product(own, np.diff(made.t) / (made.t[-1] - made.t[0]), k, found)
                    return base
        return None


def put_product(parts, lengths, k, found):
    """The derivatives of a step from those of its parts, whose `lengths` are given as parts of its own."""
    state, of_inputs, of_parameters, of_length = np.eye(parts.by_state.shape[1]), 0.0, 0.0, 0.0
    for by_state, by_inputs, by_parameters, by_length, length in zip(*parts, lengths):
        state, of_inputs = by_state @ state, by_state @ of_inputs + by_inputs if np.ndim(of_inputs) else by_inputs
        of_parameters = by_state @ of_parameters + by_parameters if np.ndim(of_parameters) else by_parameters
        of_length = by_state @ of_length + length * by_length if np.ndim(of_length) else length * by_length
    found.by_state[k], found.by_inputs[k], found.by_parameters[k], found.by_length[k] = (
        state, of_inputs, of_parameters, of_length)


def _own(robot, names):
    """Names of parameters of the robot itself."""
    for name in names:
        of_robot, of_elements = all_changes(robot)[name]
        if of_elements and (not of_robot or robot.elements is not None) and of_elements[0][0] != GRAVITY:
            raise InputError(f"{name!r} changes what force elements do: runs are not differentiated by such parameters")
    return names


MADE_IN_PARTS = "next to a singular configuration its step could not be found again"


def differentiate_run(robot, q0, v0, t_final, tau=None, u=None, dt=None, method="rk4", stabilisation="projection",
                      events=(), f_ext=None, start="check", t0=0.0, parameters=()):
    """A simulated run and its derivatives by start, inputs and parameters: exact for the steps that were made.

    Parameters
    ----------
    robot : Robot
    q0 : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] at the start.
    v0 : array_like, shape (nv,)
        Velocity [rad/s, m/s] there.
    t_final : float
        End [s].
    tau : array_like or tuple, optional
        Generalised forces [N m, N] as for `simulate`: constant, over the time grid, or a pair (f, df) of a feedback and
        its derivative.
    u : array_like or tuple, optional
        Instead of `tau`: forces of the robot's actuators.
    dt : float, optional
        Step [s], by default 1e-3.
    method : str
        A Runge-Kutta method with fixed steps on the numbers of q: ``"rk4"``; for robots without ball and free joints also
        ``"rkmk"``, which is the same there.
    stabilisation : {"projection", "none"}
        As for `simulate`.
    events : Event or sequence of Event
        Those of users need ``derivative=``.
    f_ext : dict or array_like, optional
        Constant wrenches (moment, force) [N m, N] on bodies, as for `simulate`.
    start : {"check", "project", "as given"}
        As for `simulate`.
    t0 : float
        Start [s].
    parameters : sequence of str
        Names of parameters of the robot, or patterns of them, as `sensitivities` takes them; not those of force elements.

    Returns
    -------
    RunDerivatives
        ``forward`` carries variations along the run, ``adjoint`` gradients back.

    Raises
    ------
    InputError
        As `simulate`; inputs that are functions without derivative; methods and options that are not differentiated.
    SimulationError
        The run stops early, or has no derivative: friction that begins to hold, a step that was made in parts.

    Notes
    -----
    Stages, projection and events are differentiated as they are computed (`liedyn.gradients.steps`,
    `liedyn.gradients.instants`); no step size, exact to rounding. Contacts that slide with friction are not
    differentiated. Where contacts bound the energy (`simulate`), their correction of a step, a rounding of 1e-12 of the
    energy, counts as constant.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1, tau=[1.0, 0.0, 0.0, 0.0])
    >>> run.trajectory.t[-1].item(), run.by_state.shape
    (0.1, (100, 8, 8))
    >>> gradient = run.adjoint(q=[1.0, 0.0, 0.0, 0.0])  # of q1 at the end
    >>> gradient.inputs.shape
    (4,)
    """
    require_robot(robot)
    lead, q, v = states(robot, q0=q0, v0=v0)
    if lead:
        raise InputError(f"differentiate_run takes one run, got leading axes {lead}")
    method = options(method, "nullspace", "projection")[0]
    if not isinstance(method, ExplicitRungeKutta) or method.on_group and robot.nq > robot.nv:
        raise InputError(f"method {method.name!r} is not differentiated: take 'rk4'")
    if stabilisation not in ("projection", "none"):
        raise InputError(f"stabilisation {shown(stabilisation)} is not differentiated: take 'projection' or 'none'")
    grid = Grid(number("t0", t0), number("t_final", t_final), 1e-3 if dt is None else number("dt", dt))
    events = known_events(robot, events)
    parameters = _own(robot, chosen(robot, parameters))
    tape = Tape(robot, q[0], v[0], grid, method, stabilisation, tau, u, f_ext, events, parameters)
    trajectory = simulate(robot, q0, v0, t_final, tau=tau, u=u, dt=dt, method=method, stabilisation=stabilisation,
                          events=events, f_ext=f_ext, start=start, t0=t0, progress=False)
    require_differentiable(tape, trajectory)
    held = np.array([min(grid.number(t), len(tape.x.table) - 1) for t in trajectory.t], dtype=np.int64)
    instants = instants_of(tape, trajectory, events)
    ends = [instant.row for instant in instants]
    parts = list(zip([0, *(row + 1 for row in ends)], [*ends, len(trajectory.t) - 1]))
    found, start, origin = tape.steps(trajectory, held, parts)
    for instant in instants:
        found.by_state[instant.row] = instant.jump
    given = tau if u is None else u  # of a feedback a pair, to which a constant may be added
    shape = tape.x.table.shape if np.ndim(given) == 2 else tape.x.table.shape[1:]
    return RunDerivatives(trajectory, *found, parameters, start, origin, held, instants, shape)
