"""A mechanism as a nonlinear system of python-control.

Its states are the deviation x = (y, w) from a reference state, in independent coordinates, on the configuration group
for ball and free joints; each x determines a state (q, v) that closes the loops. With a of `forward_dynamics`,

    dx/dt = dx/dq v + dx/dv a
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.estimation.measurement import Measurement
from liedyn.linear.feedback import single_state
from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import InputError
from liedyn.machine.python_control import forces, plain, python_control
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.motion.local_coordinates import Deviation, at_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames


def to_control(robot: Robot, q: ArrayLike | None = None, v: ArrayLike | None = None,
               outputs: Sequence[str] | None = None, independent: IndependentNames = None,
               speeds: Sequence[str] | None = None, rank_tolerance: float = RANK_TOLERANCE) -> Any:
    """A mechanism as a `control.NonlinearIOSystem`, for `input_output_response`, `interconnect` and others.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,), optional
        Reference configuration, x = 0 [rad, m; quaternions (x, y, z, w)], loops closed; default: home.
    v : array_like, shape (nv,), optional
        Reference velocity [rad/s, m/s]; default: at rest.
    outputs : sequence of str, optional
        Outputs, named as in `linearize`; default: those that the robot declares, else all independent coordinates.
    independent, speeds
        Coordinates of the states, as for `linearize`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    control.NonlinearIOSystem
        States: deviations of the independent coordinates and velocities, named as in `linearize`; inputs: forces of the
        actuators, ``force_`` and the actuator's name; outputs: absolute measurements. A pose, and the position of a
        ball or free joint, is given by its rotation vector (and the position of its origin). Dots and colons in names
        become underscores.

    Raises
    ------
    LiedynError
        python-control is not installed.
    InputError
        A shape does not fit, a name is unknown, or the robot has functions of time and a coordinate of a cut joint as a
        state.
    ClosureError
        A loop is open at q; in simulations also at states that the mechanism cannot reach.
    SingularConfigurationError
        The independent coordinates do not determine the motion at q, or in simulations at a later state.

    Notes
    -----
    The same coordinates are used at all states: where they become singular use `liedyn.simulate`, which changes
    them during the run. One-sided constraints keep their modes at q.

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> system = ld.to_control(ld.load("five_bar"))
    >>> system.state_labels
    ['q1', 'q2', 'velocity_q1', 'velocity_q2']
    >>> system.dynamics(0.0, np.zeros(4), np.zeros(4)).shape
    (4,)
    """
    control = python_control("to_control")
    require_robot(robot)
    q, v = single_state("to_control takes one state", robot, robot.home if q is None else q,
                        np.zeros(robot.nv) if v is None else v)
    zero = Deviation(robot, q, v, independent, speeds, rank_tolerance)
    if robot.functions and (zero.y.virtual >= 0).any():
        raise InputError(f"{zero.y.names[int((zero.y.virtual >= 0).argmax())]!r} of a cut joint cannot be a state of "
                         f"{robot.name!r}, which has functions of time: name coordinates of the tree")
    measurement = Measurement(robot, (robot.outputs or zero.y.names) if outputs is None else outputs)
    system = Mechanism(robot, zero, measurement)
    return control.nlsys(system.rate, system.output, inputs=forces(robot.actuator_names),
                         outputs=plain(measurement.labels), states=plain(zero.y.names + zero.w.rates),
                         name=plain([robot.name])[0])


class Mechanism:
    """Rates and outputs of a mechanism's states, as functions for python-control.

    Parameters
    ----------
    robot : Robot
    zero : Deviation
        Deviation from the reference state.
    measurement : Measurement
    """

    def __init__(self, robot, zero, measurement):
        self.robot, self.zero, self.measurement = robot, zero, measurement

    def _at(self, t, x):
        robot = at_time(self.robot, t)
        return robot, *self.zero.state_at(x, robot)

    def rate(self, t, x, u, params):
        """dx/dt"""
        now, q, v = self._at(t, np.asarray(x, dtype=float))
        a = forward_dynamics(now, q, v, actuator_matrix(now, q) @ np.asarray(u, dtype=float)).a
        by_q, by_v = self.zero.derivative(q, v)
        return by_q @ v + by_v @ a

    def output(self, t, x, u, params):
        """The measurement."""
        return self.measurement(*self._at(t, np.asarray(x, dtype=float)), np.asarray(u, dtype=float))
