"""Rows of the program that are functions of states and inputs: limits along the motion, conditions at single times.

Each kind has values (count, m) at samples and derivatives by q (tangent), v, u and t, None for those that are zero.
"""
import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.constraints.loops import virtual_coordinates, virtual_jacobian
from liedyn.mechanics.tree.places import places_of
from liedyn.motion.local_coordinates import virtual_rate_derivatives
from liedyn.tasks.optimal_motion.path_functions import derivatives_of, value_of
from liedyn.tasks.reaching.packing import evaluate


class Rows:
    """Rows of one kind; `names` for messages, limits `low` and `high` (m,), and whether they depend on inputs."""

    with_inputs = False

    def __init__(self, names, low, high):
        self.names, self.low, self.high = list(names), np.asarray(low, float), np.asarray(high, float)


class Linear(Rows):
    """Coordinates or velocities of the tree: columns of q or of v."""

    def __init__(self, robot, names, of_velocity, low, high):
        super().__init__([f"velocity:{name}" for name in names] if of_velocity else names, low, high)
        self.of_velocity = of_velocity
        self._dofs = [robot.velocity_index(name) for name in names]
        self._places = self._dofs if of_velocity else [places_of(robot)[j] for j in self._dofs]

    def evaluate(self, s):
        by = np.zeros((len(s.q), len(self.names), s.v.shape[1]))
        by[:, np.arange(len(self._dofs)), self._dofs] = 1.0
        if self.of_velocity:
            return s.v[:, self._places], None, by, None, None
        return s.q[:, self._places], by, None, None, None


class Virtual(Rows):
    """Coordinates of cut joints, such as strokes of cylinders, or their rates."""

    def __init__(self, robot, names, of_velocity, low, high):
        super().__init__([f"velocity:{name}" for name in names] if of_velocity else names, low, high)
        self.of_velocity, self._robot = of_velocity, robot
        self._places = [robot.virtual_index(name) for name in names]

    def evaluate(self, s):
        E = virtual_jacobian(self._robot, s.q)[:, self._places]
        if not self.of_velocity:
            return virtual_coordinates(self._robot, s.q)[:, self._places], E, None, None, None
        slopes = [virtual_rate_derivatives(self._robot.packed, q, v)[self._places] for q, v in zip(s.q, s.v)]
        return np.einsum("bij,bj->bi", E, s.v), np.array(slopes), E, None, None


class Power(Rows):
    """Powers u_i (S^T v)_i of actuators."""

    with_inputs = True

    def __init__(self, robot, names, low, high):
        super().__init__([f"power:{name}" for name in names], low, high)
        self._places = [robot.actuator_names.index(name) for name in names]
        self._S = robot.tree_actuators[:, self._places]

    def evaluate(self, s):
        rate, u = s.v @ self._S, s.u[:, self._places]
        by_u = np.zeros((len(s.q), len(self.names), s.u.shape[1]))
        by_u[:, np.arange(len(self._places)), self._places] = rate
        return u * rate, None, u[:, :, None] * self._S.T, by_u, None


class Own(Rows):
    """A `PathFunction` of the user."""

    with_inputs = True

    def __init__(self, function, sample):
        size = len(value_of(function, *sample))
        self._function, self._size = function, size
        try:
            low, high = (np.broadcast_to(np.asarray(x, float), size) for x in (function.low, function.high))
        except ValueError:
            raise InputError(f"limits of {function.name!r} must be numbers or of shape ({size},), got "
                             f"{shown(function.low)}, {shown(function.high)}") from None
        derivatives_of(function, *sample, size)
        super().__init__([function.name if size == 1 else f"{function.name}[{k}]" for k in range(size)], low, high)

    def evaluate(self, s):
        points = list(zip(s.t, s.q, s.v, s.u))
        values = np.array([value_of(self._function, *point) for point in points])
        return values, *map(np.array, zip(*(derivatives_of(self._function, *point, self._size) for point in points)))


class Reaching(Rows):
    """The error of a target of inverse kinematics, which has to be zero."""

    def __init__(self, robot, target, q):
        size = evaluate(robot, target, q)[0].shape[-1]
        name = getattr(target, "name", None) or type(target).__name__
        super().__init__([f"{name}[{k}]" for k in range(size)], np.zeros(size), np.zeros(size))
        self._robot, self._target = robot, target

    def evaluate(self, s):
        error, J = evaluate(self._robot, self._target, s.q)
        return error, J, None, None, None


def coordinate_rows(robot, name, low, high):
    """Rows for a coordinate or, with ``velocity:``, its rate, of the tree or of a cut joint.

    Raises InputError if the name is unknown, or belongs to a coordinate of a ball or free joint.
    """
    rate, _, what = name.rpartition(":")
    known = robot.velocity_names + robot.virtual_names
    if rate not in ("", "velocity") or what not in known:
        every = [*known, *(f"velocity:{each}" for each in known)]
        raise InputError(f"unknown coordinate {shown(name)}, {suggestion(name, every)}")
    if what in robot.virtual_names:
        return Virtual(robot, [what], bool(rate), [low], [high])
    if not rate and places_of(robot)[robot.velocity_index(what)] < 0:
        raise InputError(f"{shown(name)} belongs to a ball or free joint and has no coordinate of its own: give a "
                         "target such as ld.PoseTarget, or a PathFunction")
    return Linear(robot, [what], bool(rate), [low], [high])


def interval(name, given):
    """(low, high) from the user's argument: a pair, or one number for minus and plus."""
    x = floats(f"bounds of {name!r}", given)
    if x.shape not in ((), (2,)) or np.isnan(x).any():
        raise InputError(f"bounds of {name!r} must be (low, high), or a number for both signs, got {shown(given)}")
    low, high = (-abs(x), abs(x)) if x.ndim == 0 else x
    if low > high:
        raise InputError(f"bounds of {name!r} leave nothing: {shown(given)}")
    return float(low), float(high)


def limits(robot, bounds, declared):
    """Rows along the motion, and limits of the inputs (nu, 2).

    Raises InputError if a name is unknown, or limits contradict each other.
    """
    of_inputs = np.tile([-np.inf, np.inf], (len(robot.actuator_names), 1))
    rows = list(_declared(robot, of_inputs)) if declared else []
    for name, given in bounds.items():
        if not isinstance(name, str):
            raise InputError(f"bounds are by name, got {shown(name)}")
        low, high = interval(name, given)
        kind, _, what = name.partition(":")
        if kind in ("force", "power"):
            if what not in robot.actuator_names:
                raise InputError(f"unknown actuator in {name!r}, {suggestion(what, robot.actuator_names)}")
            if kind == "power":
                rows.append(Power(robot, [what], [low], [high]))
            else:
                of_inputs[robot.actuator_names.index(what)] = low, high
        else:
            rows.append(coordinate_rows(robot, name, low, high))
    return rows, of_inputs


def _declared(robot, of_inputs):
    """The limits that the robot declares: of coordinates, speeds, and forces of actuators that drive one joint."""
    places, finite = places_of(robot), lambda low, high: low > -np.inf or high < np.inf
    names = [name for j, name in enumerate(robot.velocity_names)
             if places[j] >= 0 and finite(robot.lower[places[j]], robot.upper[places[j]])]
    if names:
        at = [places[robot.velocity_index(name)] for name in names]
        yield Linear(robot, names, False, robot.lower[at], robot.upper[at])
    speed, effort = robot.velocity_limit, robot.effort_limit
    names = [name for j, name in enumerate(robot.velocity_names) if speed[j] < np.inf]
    if names:
        most = speed[[robot.velocity_index(name) for name in names]]
        yield Linear(robot, names, True, -most, most)
    for k, column in enumerate(robot.tree_actuators.T):
        driven = np.flatnonzero(column)
        if len(driven) == 1 and effort[driven[0]] < np.inf:
            most = effort[driven[0]] / abs(column[driven[0]])
            of_inputs[k] = -most, most
