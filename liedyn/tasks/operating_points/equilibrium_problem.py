"""Knowns and unknowns of an operating point, and the derivatives of accelerations by the unknowns.

The residual is wdot(y, w, u, p), the accelerations of the independent velocities, and the deviations of held
coordinates from their values. Its derivatives J are exact: columns of A by coordinates and velocities, columns of B by
inputs, and those of `liedyn.tasks.operating_points.continuation_parameters` by gravity and spring parameters.

For a family, any function of a parameter that returns robots, the derivative by the parameter is unknown. It is
approximated by the secant of the last step in which the parameter changed (Broyden 1965, for this column alone).
Newton's method then takes more steps; its result depends on the residual only.
"""
from dataclasses import dataclass, replace

import numpy as np

from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import floats, names, require_robot
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.constraints.assembly import close, complete_velocity
from liedyn.mechanics.constraints.independent import Independent, all_holonomic, by_name
from liedyn.mechanics.constraints.loops import (
    constraint_jacobian, velocity_error, virtual_coordinates, virtual_jacobian,
)
from liedyn.mechanics.tree.configuration import integrate
from liedyn.mechanics.tree.places import turn_free_rows
from liedyn.tasks.operating_points.continuation_parameters import Parameters

LONGEST = 0.5
"""Largest change of a coordinate in one step [rad, m]: beyond, the linear model is not valid."""
APART = 1e-6
"""Smallest singular value of the rows of coordinates that count as independent."""
RANK = 1e-10
"""Singular values of the scaled derivatives below this part of the largest one count as zero."""
OF_SPEED = "velocity:"
FAMILY = "parameter"
"""Name of the parameter of a family."""
PROBE = 1e-3
"""Fraction of the span over which the first secant by the parameter of a family is taken."""
SECANT = 1e-10
"""Smallest relative change of that parameter in a step from which a secant is computed."""


@dataclass(frozen=True)
class Point:
    """A state of a robot with its parameters there.

    Attributes
    ----------
    robot : Robot
    q, v, u : ndarray
    y, speeds : tuple of str
        Independent coordinates and velocities.
    w : ndarray
        The independent velocities.
    ss : LocalStateSpace
    r, J : ndarray, shapes (m,), (m, count)
        Residual, and its derivatives by the unknowns.
    room : ndarray, shape (count, 2)
        Largest decrease and increase of each unknown in a step.
    scale : ndarray, shape (count,)
        Size of each unknown, at least 1.
    values, free : dict
        Values of held coordinates, and of all unknowns, by name.
    """

    robot: object
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    y: tuple
    speeds: tuple
    w: np.ndarray
    ss: object
    r: np.ndarray
    J: np.ndarray
    room: np.ndarray
    scale: np.ndarray
    values: dict
    free: dict

    @property
    def A(self):
        return self.ss.A

    @property
    def K(self):
        return self.ss.K


class Problem:
    """The unknown and the held quantities of a robot's operating points, by name."""

    def __init__(self, robot, hold, free, bounds, rank_tolerance, parameter=None, family=None):
        self.robot, self.rank_tolerance, self.family = robot, rank_tolerance, family
        self.strict = parameter is not None or family is not None  # closing the loops moves no independent coordinate
        self.places = (*robot.velocity_names, *robot.virtual_names)
        rates = tuple(OF_SPEED + name for name in self.places)
        self.actuators = robot.actuator_names if robot.model.actuators else tuple(
            f"force:{name}" for name in robot.actuator_names)
        self.numbers = Parameters(robot)
        numbers = self.numbers.names
        known = (*self.places, *rates, *self.actuators, *numbers)
        self.held = dict.fromkeys(_known("hold", name, (*self.places, *rates, *numbers)) for name in hold)
        some = [] if free is None else [_known("free", name, known) for name in names("free", free)]
        if parameter is not None:
            some.append(_known("parameter", parameter, known))
        self.parameter = parameter
        self._sort(list(dict.fromkeys(some)), free, rates, numbers)
        if not isinstance(bounds, dict | None):
            raise InputError(f"bounds must be a dict of (lowest, highest) by name, got {shown(bounds)}")
        self.bounds = {_known("bounds", name, known): _pair(name, x) for name, x in (bounds or {}).items()}

    def _sort(self, some, free, rates, numbers):
        """Sorts the unknowns by kind: inputs, speeds, parameters, coordinates."""
        # a name that is also an actuator's means the actuator
        self.inputs = [k for k, name in enumerate(self.actuators) if name in some]
        self.speeds = [name.removeprefix(OF_SPEED) for name in some if name in rates]
        self.parameters = [name for name in some if name in numbers and name not in self.actuators]
        self.coordinates = None if free is None else [
            name for name in some if name in self.places and name not in self.actuators]
        if self.family is not None:
            if self.parameters:
                raise InputError(f"free: {shown(self.parameters[0])} is what robots make of the parameter that they "
                                 "are a function of")
            self.parameters.append(FAMILY)  # the last column
        both = [name for name in some if name in self.held and name not in self.places]
        if both:
            raise InputError(f"free: {shown(both[0])} is held as well")

    # ---- the first point

    def start(self, q, v, u, given):
        """The closed guess with held quantities at the values `given` by name; None means the value of the guess."""
        robot, rates = self.robot, {}
        for name, x in given.items():
            if x is not None and name.startswith(OF_SPEED):
                rates[name.removeprefix(OF_SPEED)] = x
            elif x is not None and name not in self.places and name != FAMILY:
                robot = self.numbers.changed(robot, name, x)
        places = {name: x for name, x in given.items() if name in self.places}
        q = close(robot, q, held={name: x for name, x in places.items() if x is not None})
        values = {name: coordinate(robot, q, name) if x is None else x for name, x in places.items()}
        y = self.independent(robot, q, list(values))
        speeds = self._independent_speeds(robot, q, y)
        w = read_rows(robot, q, speeds) @ v
        for name, x in rates.items():
            w[speeds.index(name)] = x
        v, x = _velocity(robot, q, speeds, w), given.get(FAMILY)
        slope = None if x is None else np.zeros(len(w) + len(values))
        return self.point(robot, (q, v, u), (y, speeds), values, (x, slope))

    def independent(self, robot, q, held):
        """Independent coordinates: those that are free by name or have bounds, and others that complete them.

        Held coordinates are preferred among these: then the unknowns do not move them.
        """
        ss = self._at_rest(robot, q, "auto")
        p = ss.K.shape[1]
        wanted = [*(self.coordinates or ()), *(name for name in (*self.bounds, self.parameter) if self._is_place(name))]
        return _completed(place_rows, robot, q, ss.K, wanted, [*held, *ss.states[:p]], "coordinates")

    def _independent_speeds(self, robot, q, y):
        """Independent velocities, including those that are held or free by name."""
        named = [*self.speeds, *(name.removeprefix(OF_SPEED) for name in self.held if name.startswith(OF_SPEED))]
        at_places = coordinates_at(robot, q, y)
        if at_places is y and all_holonomic(robot) and set(named) <= set(y):
            return y
        ss = self._at_rest(robot, q, at_places)
        own = [*y, *self.places]  # velocities of free joints, whose positions are in y
        if at_places is y:
            own = [name.removeprefix(OF_SPEED) for name in ss.states[len(y):]]
            if set(named) <= set(own):
                return tuple(own)
        return _completed(read_rows, robot, q, ss.S, named, own, "velocities")

    def _at_rest(self, robot, q, independent):
        """The linear model without forces, at rest except for moving constraints."""
        rest = np.zeros(robot.nv)
        drift, v = velocity_error(robot, q, rest), rest
        if drift.any():
            v = np.linalg.lstsq(constraint_jacobian(robot, q), -drift, rcond=None)[0]
        return linearize(robot, q, v, rest, independent=independent, rank_tolerance=self.rank_tolerance)

    def _is_place(self, name):
        return name in self.places and name not in self.actuators

    def is_parameter(self, name):
        """True for gravity and for parameters of bodies and springs."""
        return name in self.numbers.names and name not in self.actuators

    # ---- all quantities at a point

    def point(self, robot, state, independent, values, family=(None, None)):
        """The `Point` at a closed state (q, v, u) in independent (coordinates, velocities), with the held `values`; of
        a family (x, the derivative of the residual by x), for the robot at x."""
        (q, v, u), (y, speeds), (x, slope) = state, independent, family
        at_places = coordinates_at(robot, q, y)
        by_speeds = None if speeds == y and at_places is y else speeds
        ss = linearize(robot, q, v, u=u, independent=at_places, speeds=by_speeds, rank_tolerance=self.rank_tolerance)
        p, w = len(y), read_rows(robot, q, speeds) @ v
        of_held, still = place_rows(robot, q, list(values)) @ ss.K, np.zeros(len(values))
        free, columns, room = {}, [], []
        for k in self._moving(y):
            free[y[k]] = coordinate(robot, q, y[k]) if is_coordinate(robot, y[k]) else 0.0
            columns.append([*ss.A[p:, k], *of_held[:, k]])
            room.append(np.clip(self._left(y[k], free[y[k]]), -LONGEST, LONGEST))
        for name in self.speeds:
            k = speeds.index(name)
            free[OF_SPEED + name] = w[k]
            columns.append([*ss.A[p:, p + k], *still])
        for k in self.inputs:
            free[self.actuators[k]] = u[k]
            columns.append([*ss.B[p:, k], *still])
        for name in self.parameters:
            if name == FAMILY:
                free[name] = x
                columns.append(slope)
                continue
            free[name] = self.numbers.value(robot, name)
            columns.append([*self.numbers.acceleration_slope(robot, ss.S, name, q, v, ss.a), *still])
        room += [self._left(name, x) for name, x in list(free.items())[len(room):]]
        r = np.array([*ss.f0[p:], *(coordinate(robot, q, name) - x for name, x in values.items())])
        if len(r) and not columns:
            raise InputError("nothing is free: name coordinates, speeds, actuators, gravity or other parameters")
        J = np.transpose(columns).reshape(len(r), len(columns))
        sizes = [0.0 if name in y else abs(x) for name, x in free.items()]
        return Point(robot, q, v, u, y, speeds, w, ss, r, J, np.reshape(room, (-1, 2)), 1.0 + np.array(sizes), values,
                     free)

    def _moving(self, y):
        """Indices of the independent coordinates that are free."""
        return [k for k, name in enumerate(y) if self.coordinates is None or name in self.coordinates]

    def _left(self, name, x):
        """Largest decrease and increase of an unknown at x."""
        low, high = self.bounds.get(name, (-np.inf, np.inf))
        slack = 1e-9 * (1.0 + abs(x))
        if not low - slack <= x <= high + slack:
            raise InputError(f"bounds of {shown(name)}: the guess {x:.6g} is outside ({low:g}, {high:g})")
        return min(low - x, 0.0), max(high - x, 0.0)

    # ---- other points

    def split(self, here, step):
        """A step of the unknowns as changes of all independent coordinates, all independent velocities, all inputs, and
        the parameters."""
        moving, changes = self._moving(here.y), [np.zeros(len(x)) for x in (here.y, here.speeds, here.u)]
        places = moving, [here.speeds.index(name) for name in self.speeds], self.inputs
        *parts, of_p = np.split(step, np.cumsum([len(each) for each in places]))
        for change, place, part in zip(changes, places, parts):
            change[place] = part
        return *changes, of_p

    def moved(self, here, step):
        """The point after a step of the unknowns."""
        moving, (dy, dw, du, of_p) = self._moving(here.y), self.split(here, step)
        w, u = here.w + dw, here.u + du
        q = integrate(here.robot, here.q, here.K @ dy) if moving else here.q
        still = {name: coordinate(here.robot, here.q, name) for k, name in enumerate(here.y)
                 if (k not in moving or self.strict) and is_coordinate(here.robot, name)}
        for k in moving if self.strict else ():
            if here.y[k] in still:
                still[here.y[k]] += dy[k]
        there = self.placed(here, q, w, u, self.numbers_of(here) + of_p, still)
        if self.family is None or abs(step[-1]) < SECANT * (1.0 + abs(there.free[FAMILY])):
            return there
        others = 0.5 * (here.J + there.J)[:, :-1] @ step[:-1]
        return replace(there, J=np.column_stack([there.J[:, :-1], (there.r - here.r - others) / step[-1]]))

    def probed(self, here, span):
        """The same point of a family with a new secant by the parameter, along a small part of its span."""
        aside = self.moved(here, PROBE * (span[1] - span[0]) * np.eye(len(here.free))[-1])
        return replace(here, J=np.column_stack([here.J[:, :-1], aside.J[:, -1]]))

    def numbers_of(self, point):
        """Values of the free parameters."""
        return np.array([point.free[name] for name in self.parameters])

    def placed(self, here, q, w, u, numbers, still):
        """The point near q, which is first closed with held coordinates and those in `still`, by name, with
        independent velocities w, inputs u and parameters."""
        robot = here.robot
        for name, x, before in zip(self.parameters, numbers, self.numbers_of(here)):
            if x != before:
                robot = self.made(x) if name == FAMILY else self.numbers.changed(robot, name, x)
        if q is not here.q or self.family is not None:
            q = close(robot, q, held=still | here.values)
        v = _velocity(robot, q, here.speeds, w)
        x = numbers[-1] if self.family is not None else None
        return self.point(robot, (q, v, u), (here.y, here.speeds), here.values, (x, here.J[:, -1]))

    def made(self, x):
        """The robot that the family returns for x."""
        robot = self.family(float(x))
        require_robot(robot)
        for what in ("coordinate_names", "velocity_names", "virtual_names", "actuator_names"):
            if getattr(robot, what) != getattr(self.robot, what):
                raise InputError(f"robot, a function of the parameter, has other {what.replace('_', ' ')} at {x:.6g}: "
                                 f"{shown(getattr(robot, what))}, not {shown(getattr(self.robot, what))}")
        return robot


def _velocity(robot, q, speeds, w):
    """The velocity with independent velocities w."""
    if w.any() or velocity_error(robot, q, np.zeros(robot.nv)).any():
        return complete_velocity(robot, q, dict(zip(speeds, w)))
    return np.zeros(robot.nv)


def read_rows(robot, q, wanted):
    """The rows that read the velocities of these coordinates."""
    chosen = by_name(robot, wanted)
    return chosen.matrix(virtual_jacobian(robot, q)) if (chosen.virtual >= 0).any() else chosen.rows


def place_rows(robot, q, wanted):
    """The rows that read the rates of these coordinates; for the position of a free joint in axes of the parent."""
    chosen, rows = by_name(robot, wanted), read_rows(robot, q, wanted).copy()
    of_tree = chosen.rows.copy()
    turn_free_rows(robot.packed, q, of_tree, False)
    rows[chosen.virtual < 0] = of_tree[chosen.virtual < 0]
    return rows


def coordinates_at(robot, q, y):
    """Coordinates y of a linear model as names of q: the same names, except for a free joint that is rotated."""
    chosen, rows = by_name(robot, y), place_rows(robot, q, y)
    on_tree = chosen.virtual < 0
    if (rows[on_tree] == chosen.rows[on_tree]).all():
        return y
    return Independent(chosen.names, np.where(on_tree[:, None], rows, chosen.rows), chosen.virtual)


def is_coordinate(robot, name):
    """True if q, or a cut joint, has a number of this name."""
    return name in robot.coordinate_names or name in robot.virtual_names


def coordinate(robot, q, name):
    """The value of a coordinate, of the tree or of a cut joint."""
    if name in robot.virtual_names:
        return virtual_coordinates(robot, q)[robot.virtual_index(name)]
    if name not in robot.coordinate_names:
        raise InputError(f"{shown(name)} is the rate of a ball or free joint, not a coordinate")
    return q[robot.coordinate_index(name)]


def _completed(rows_of, robot, q, N, wanted, others, what):
    """Names whose rows, by `place_rows` or `read_rows`, determine the motions N: `wanted`, and as many of the others as
    necessary, in their order."""
    wanted, p = list(dict.fromkeys(wanted)), N.shape[1]
    rows = rows_of(robot, q, wanted) @ N
    if np.linalg.svd(rows, compute_uv=False)[:len(wanted)].min(initial=1.0) < APART or len(wanted) > p:
        raise InputError(f"{what} {', '.join(wanted)} are not independent of each other here")
    for name in others:
        if len(rows) == p:
            break
        more = np.vstack([rows, rows_of(robot, q, [name]) @ N])
        if name not in wanted and np.linalg.svd(more, compute_uv=False).min() > APART:
            rows, wanted = more, [*wanted, name]
    return tuple(wanted)


def _known(what, name, among):
    if not isinstance(name, str) or name not in among:
        raise InputError(f"{what}: unknown {shown(name)}, {suggestion(shown(name), among)}")
    return name


def _pair(name, x):
    pair = floats(f"bounds of {shown(name)}", x)
    if pair.shape != (2,) or not pair[0] < pair[1]:
        raise InputError(f"bounds of {shown(name)}: expected (lowest, highest), got {shown(x)}")
    return float(pair[0]), float(pair[1])
