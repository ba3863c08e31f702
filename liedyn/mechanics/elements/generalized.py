"""Public functions of force elements, and how their forces are added in dynamics and linearization."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import InputError, SingularConfigurationError, of_the_batch, shown
from liedyn.mechanics.elements.forces import (
    derivative_states, driven_state_derivatives, driven_states, energy_states, force_states, room_for,
)
from liedyn.mechanics.tree.energy import potential_energy as tree_energy
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.model.calls.boundary import as_floats, states
from liedyn.model.force_elements import FOLLOWER, FUNCTION_AT, LAW, TORQUE_AT, WRENCH
from liedyn.model.kinds import CONSTRAINT_KINDS
from liedyn.model.packed import N_ROWS
from liedyn.model.remembered import remembered

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


def element_forces(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Generalised forces of all force elements.

    `forward_dynamics`, `linearize`, `discretize` and `simulate` add them to tau; algorithms of the open tree (`rnea`,
    `aba`) do not.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    tau : ndarray, shape (..., nv)
        [N m, N]

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length; a law fails.
    SingularConfigurationError
        The points of a spring coincide: it has no direction.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("wind_up", {"q1": 1.0}, stiffness=2.0)
    >>> ld.element_forces(b.build(), [0.5, 0.0, 0.0, 0.0], [0.0] * 4).tolist()
    [-1.0, 0.0, 0.0, 0.0]
    """
    return _forces(robot, q, v)[0]


def element_states(robot: Robot, q: ArrayLike, v: ArrayLike) -> dict[str, Any]:
    """Lengths, rates and forces of all force elements.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    states : dict
        By name ``(length, rate, force)``, each of shape (...): the length minus that at rest [m], or the sum of
        coordinates minus that at rest [rad, m]; its rate; and the force or moment [N, N m], positive if it pulls. For
        bushings and applied forces each has shape (..., 6), in the axes of the parent's frame, or of the world for an
        applied force: rotation vector and displacement; angular velocity and rate of the displacement; and the wrench
        (moment, force) at the child's frame, as it pulls the child back, or as it is applied.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length; a law fails.
    SingularConfigurationError
        The points of a spring coincide: it has no direction.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("wind_up", {"q1": 1.0}, stiffness=2.0)
    >>> length, rate, force = ld.element_states(b.build(), [0.5, 0.0, 0.0, 0.0], [0.0] * 4)["wind_up"]
    >>> float(length), float(force)
    (0.5, 1.0)
    """
    found = _forces(robot, q, v)[1:]
    rows = () if robot.elements is None else robot.elements.rows
    return {name: tuple(x[..., k] for x in found) for k, name in zip(rows, robot.element_names)}


def _forces(robot, q, v, t=None):
    """tau, lengths, rates and forces, with the leading axes of the states; t is the time of the robot by default."""
    require_robot(robot)
    lead, q, v = states(robot, q=q, v=v)
    count, elements = len(q), robot.elements
    m = 0 if elements is None else int(elements.packed.ints[N_ROWS])
    found = [np.zeros((count, size)) for size in (robot.nv, m, m, m)]
    if elements is not None:
        force_states(elements.packed, elements.laws, room_for(elements.packed), robot.t if t is None else t, q, v,
                     tuple(found))
        raise_errors(elements.functions)
        _require_finite(robot, lead, found[0], found[2])
    return [x.reshape(lead + x.shape[1:]) for x in found]


def _require_finite(robot, lead, tau, w):
    """SingularConfigurationError if a force has no direction, and so no rate; InputError if one overflows."""
    bad = ~np.isfinite(tau).all(axis=1)
    if bad.any():
        b = int(np.argmax(bad))
        names = robot.element_names + robot.elements.driven
        undefined = [name for name, k in zip(names, robot.elements.rows) if np.isnan(w[b, k]).any()]
        with of_the_batch(lead, b):
            if undefined:
                raise SingularConfigurationError(f"force element {', '.join(map(shown, undefined))} has no direction "
                                                 f"here: {CONSTRAINT_KINDS['cable'].undefined}", np.zeros(0))
            raise InputError(f"numbers overflow: generalised forces of force elements are {shown(tau[b].tolist())}")


def energies(robot, q):
    """Energy of the force elements [J] for rows of configurations: zero for dampers, friction and users' laws."""
    return _energies_and_slopes(robot, q)[0]


def _energies_and_slopes(robot, q):
    elements, energy, slope = robot.elements, np.empty(len(q)), np.empty((len(q), robot.nv))
    energy_states(elements.packed, elements.laws, room_for(elements.packed), robot.t, q, energy, slope)
    forget_errors(elements.functions)  # users' laws have no energy
    return energy, slope


def energy_slope(robot, q):
    """Gradient (nv) of the energy at one configuration, tangent at q, and the derivative (nv, nv) of that gradient."""
    elements, n, q = robot.elements, robot.nv, q[None]
    by_q, by_v = np.empty((2, 1, n, n))
    derivative_states(elements.packed, elements.laws, room_for(elements.packed), robot.t, (q, np.zeros((1, n))), True,
                      (by_q, by_v))
    return _energies_and_slopes(robot, q)[1][0], -by_q[0]


# ---- as part of the applied forces


@remembered
def without_elements(robot):
    """The same robot without its force elements."""
    return replace(robot, elements=None)


def moves_elements(robot):
    """True if there are applied forces that are functions of time."""
    if robot.elements is None:
        return False
    records = robot.elements.laws.records
    applied = np.isin(records[:, LAW], (WRENCH, FOLLOWER))
    return bool((applied & records[:, [FUNCTION_AT, TORQUE_AT]].any(axis=1)).any())


def with_element_forces(robot, q, v, tau):
    """tau from the user, plus the forces of the elements."""
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    return (tau + element_forces(robot, q, v)).reshape(lead + (robot.nv,))


def of_actuators(robot, q, tau, u):
    """The generalised forces tau of inputs u; InputError if both are given, or neither."""
    if (tau is None) == (u is None):
        raise InputError("give tau, the forces of all coordinates, or u, those of the actuators")
    u, S = as_floats("u", u, len(robot.actuator_names)), actuator_matrix(robot, q)
    try:
        return (S @ u[..., None])[..., 0]
    except ValueError:
        raise InputError(f"leading axes of q {S.shape[:-2]} and u {u.shape[:-1]} do not broadcast") from None


def forces_and_derivatives(robot, t, q, v, u=None):
    """tau (count, nv), dtau/dq and dtau/dv (count, nv, nv) of rows of states at time t, with inputs u (count, nu)."""
    elements, count, n, m = robot.elements, len(q), robot.nv, int(robot.elements.packed.ints[N_ROWS])
    if u is None:
        u = np.zeros((count, 0))
        laws = elements.laws._replace(inputs=elements.laws.inputs[:0])
    else:
        laws = elements.laws._replace(numbers=elements.laws.numbers.copy())
    lead, q, v = states(robot, q=q, v=v)
    tau, x, w, f = (np.zeros((count, size)) for size in (n, m, m, m))
    by_q, by_v = np.empty((2, count, n, n))
    driven_state_derivatives(elements.packed, laws, room_for(elements.packed), t, (q, v, u), (tau, x, w, f),
                             (by_q, by_v))
    raise_errors(elements.functions)
    _require_finite(robot, lead, tau, w)
    return tau, by_q, by_v


def actuator_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Generalised forces of unit inputs: tau = S(q) u.

    S is constant for actuators on coordinates of the tree; for those on cut joints and between two points it depends on
    q. `forward_dynamics`, `linearize` and `simulate` take ``u`` directly; other functions take tau, which is
    ``actuator_matrix(robot, q) @ u``.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    S : ndarray, shape (..., nv, nu)
        Columns in the order of ``robot.actuator_names``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        The two points of an actuator coincide: it has no direction.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.actuator("second_motor", "pin")
    >>> robot = b.build()
    >>> ld.actuator_matrix(robot, robot.home).round(12).tolist()
    [[1.0], [1.0], [1.0], [1.0]]
    """
    require_robot(robot)
    lead, q = states(robot, q=q)
    S, elements = np.empty((len(q), *robot.tree_actuators.shape)), robot.elements
    S[:] = robot.tree_actuators
    if elements is not None and elements.driven:
        driven_states(elements.packed, elements.laws, room_for(elements.packed), q, robot.tree_actuators.copy(), S)
        raise_errors(elements.functions)
        bad = ~np.isfinite(S).all(axis=1)
        if bad.any():
            b, k = np.argwhere(bad)[0]
            with of_the_batch(lead, b):
                raise SingularConfigurationError(f"actuator {shown(robot.actuator_names[k])} has no direction here: "
                                                 f"{CONSTRAINT_KINDS['cable'].undefined}", np.zeros(0))
    return S.reshape(lead + S.shape[1:])


def unit_wrenches(robot, q, thruster):
    """Wrenches (count, 6) of a unit of a thruster's input at its frame, in world axes."""
    wrench, measure = np.array(thruster.wrench).reshape(2, 3), thruster.measure
    if thruster.axes == "body":
        wrench = wrench @ (pose(robot, q, measure.child) @ measure.child_placement)[:, :3, :3].swapaxes(1, 2)
    return np.broadcast_to(wrench, (len(q), 2, 3)).reshape(-1, 6)


def potential_energy(robot, q, out=None):
    """`liedyn.potential_energy` for a robot with force elements."""
    lead, rows = states(robot, q=q)
    found = tree_energy(without_elements(robot), q, out)
    held = energies(robot, rows).reshape(lead)
    if out is None:
        return float(found + held) if held.ndim == 0 else found + held
    out += held
    return out
