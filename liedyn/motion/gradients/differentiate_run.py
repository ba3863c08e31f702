"""A simulated run with its derivatives: the public function."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.sensitivity.changes import GRAVITY
from liedyn.linear.sensitivity.model_parameters import all_changes, chosen
from liedyn.machine.arguments import number, one_of, require_robot
from liedyn.machine.errors import InputError
from liedyn.model.calls.boundary import states
from liedyn.motion.gradients.instants import instants_of, require_differentiable
from liedyn.motion.gradients.run_derivatives import RunDerivatives
from liedyn.motion.gradients.tape import Tape
from liedyn.motion.simulation.grid import Grid
from liedyn.motion.simulation.integrators.explicit import ExplicitRungeKutta
from liedyn.motion.simulation.preparation import known_events, scheme_of
from liedyn.motion.simulation.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.events import Event
    from liedyn.typing import ArrayLike, Wrenches


def differentiate_run(robot: Robot, q0: ArrayLike, v0: ArrayLike, t_final: float,
                      tau: ArrayLike | tuple[Any, ...] | None = None, u: ArrayLike | tuple[Any, ...] | None = None,
                      dt: float | None = None, method: str = "rk4",
                      stabilisation: Literal["projection", "none"] = "projection", events: Event | Sequence[Event] = (),
                      f_ext: Wrenches | None = None, start: Literal["check", "project", "as given"] = "check",
                      t0: float = 0.0, parameters: Sequence[str] = ()) -> RunDerivatives:
    """A simulated run with its derivatives by initial state, inputs and parameters, exact for the steps taken.

    Parameters
    ----------
    robot : Robot
    q0 : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] at the start.
    v0 : array_like, shape (nv,)
        Velocity [rad/s, m/s] at the start.
    t_final : float
        End time [s].
    tau : array_like or tuple, optional
        Generalised forces [N m, N] as for `simulate`: constant, an array over the time grid, or a pair (f, df) of a
        feedback and its derivative.
    u : array_like or tuple, optional
        Instead of `tau`: forces of the robot's actuators.
    dt : float, optional
        Step [s], by default 1e-3.
    method : str
        A Runge-Kutta method with fixed steps on the numbers of q: ``"rk4"``; for robots without ball and free joints
        also ``"rkmk"``, which is then the same method.
    stabilisation : {"projection", "none"}
        As for `simulate`.
    events : Event or sequence of Event
        Users' events need ``derivative=``, and ``action_derivative=`` if they have an action.
    f_ext : dict or array_like, optional
        Constant wrenches (moment, force) [N m, N] on bodies, as for `simulate`.
    start : {"check", "project", "as given"}
        As for `simulate`.
    t0 : float
        Start time [s].
    parameters : sequence of str
        Names of parameters of the robot and its force elements, or patterns of names, as for `sensitivities`.

    Returns
    -------
    RunDerivatives
        ``forward`` carries variations along the run, ``adjoint`` carries gradients back.

    Raises
    ------
    InputError
        As `simulate`; inputs that are functions without derivative; methods and options without derivatives.
    SimulationError
        The run stops early, or has no derivative: friction begins to hold, a restitution is reduced, or a step was
        divided into parts.

    Notes
    -----
    Stages, projection and events are differentiated as they are computed (`liedyn.motion.gradients.step_derivatives`,
    `liedyn.motion.gradients.instants`), sliding friction too (`liedyn.motion.gradients.sliding_derivatives`); no step
    size, exact to rounding. Each Newton step of the projection is differentiated, in the metric at its start. If
    contacts bound the energy (`simulate`), a step that gained energy is corrected by its own error, and that correction
    is treated as constant: with rk4 the error falls with the fourth power of the step (a mass on a spring of 20 rad/s:
    velocities by 1e-9 with 1 ms, by 1e-8 with 2 ms).

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
    method = scheme_of(method, "nullspace", "projection").method
    if not isinstance(method, ExplicitRungeKutta) or method.on_group and robot.nq > robot.nv:
        raise InputError(f"method {method.name!r} is not differentiated: take 'rk4'")
    one_of("stabilisation", stabilisation, ("projection", "none"))
    grid = Grid(number("t0", t0), number("t_final", t_final), 1e-3 if dt is None else number("dt", dt))
    events = known_events(robot, events)
    parameters = chosen(robot, parameters)
    changes = [(own, [each for each in of_elements if each[0] != GRAVITY])  # gravity does not act on force elements
               for own, of_elements in map(all_changes(robot).get, parameters)]
    scheme = scheme_of(method, "nullspace", stabilisation)
    tape = Tape(robot, (q[0], v[0]), grid, scheme, (tau, u, f_ext), events, changes)
    trajectory = simulate(robot, q0, v0, t_final, tau=tau, u=u, dt=dt, method=method, stabilisation=stabilisation,
                          events=events, f_ext=f_ext, start=start, t0=t0, progress=False)
    require_differentiable(tape, trajectory)
    held = np.array([tape.row(t) for t in trajectory.t], dtype=np.int64)
    instants = instants_of(tape, trajectory, events)
    ends = [instant.row for instant in instants]
    parts = list(zip([0, *(row + 1 for row in ends)], [*ends, len(trajectory.t) - 1]))
    found, moved, origin = tape.steps(trajectory, held, parts, start)
    for instant in instants:
        found.by_state[instant.row] = instant.jump
    given = tau if u is None else u  # for a feedback the pair, to which a constant may be added
    shape = tape.x.table.shape if np.ndim(given) == 2 else tape.x.table.shape[1:]
    return RunDerivatives(trajectory, *found, parameters, moved, origin, held, instants, shape)
