"""Conditions at the start, at the goal and in between: states, configurations, named coordinates, targets."""
# mypy: ignore-errors
from dataclasses import dataclass

import numpy as np

from liedyn.machine.errors import ClosureError, InputError, shown
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.loops import closure_error, velocity_error
from liedyn.model.calls.boundary import states
from liedyn.tasks.optimal_motion.limits import Reaching, coordinate_rows
from liedyn.tasks.reaching.solve import inverse_kinematics
from liedyn.tasks.reaching.targets import Target

CLOSED = 1e-8
FREE = "free"


@dataclass(frozen=True)
class Condition:
    """A condition at one time.

    Attributes
    ----------
    q : ndarray, shape (nq,), or None
        The configuration, if all of it is given.
    v : ndarray, shape (nv,), or None
        The velocity, if all of it is given.
    rows : tuple of Rows
        Other conditions.
    values : dict
        Coordinates by name, for the first guess.
    targets : tuple of Target
    """

    q: np.ndarray | None = None
    v: np.ndarray | None = None
    rows: tuple = ()
    values: dict | None = None
    targets: tuple = ()

    def near(self, robot, q):
        """A configuration that satisfies the condition, from one nearby."""
        if self.q is not None:
            return self.q
        if self.targets:
            return inverse_kinematics(robot, list(self.targets), q0=q).q
        if self.values:
            return close(robot, q, **self.values) if robot.row_names else _put(robot, q, self.values)
        return q


def condition(robot, name, given, at_rest):
    """A `Condition` from the user's argument: (what, v), or what alone, which is then at rest or has any velocity.

    Raises InputError if the argument cannot be interpreted, a shape does not fit, a name is unknown, or v opens a loop.
    Raises ClosureError if a loop is open at q.
    """
    what, v = given, FREE if not at_rest else None
    if isinstance(given, (tuple, list)) and len(given) == 2 and not np.isscalar(given[0]) and not (
            isinstance(given[1], Target)):
        what, v = given[0], FREE if given[1] is None else given[1]
    targets = (what,) if isinstance(what, Target) else tuple(what) if _are_targets(what) else ()
    if targets:
        q = inverse_kinematics(robot, list(targets), unreached="ignore").q
        return Condition(None, _velocity(robot, name, None, v), tuple(Reaching(robot, t, q) for t in targets),
                         None, targets)
    if isinstance(what, dict):
        rows, values = [], {}
        for key, x in what.items():
            if not isinstance(key, str):
                raise InputError(f"{name} has coordinates by name, got {shown(key)}")
            x = _number(name, key, x)
            rows.append(coordinate_rows(robot, key, x, x))
            if ":" in key:
                v = FREE if v is None else v
            else:
                values[key] = x
        return Condition(None, _velocity(robot, name, None, v), tuple(rows), values)
    _, q = states(robot, q=what)
    if len(q) != 1:
        raise InputError(f"{name} must be one state, got configurations of shape {np.shape(what)}")
    error = np.abs(closure_error(robot, q)).max(initial=0.0)
    if error > CLOSED:
        worst = robot.row_names[int(np.abs(closure_error(robot, q[0])).argmax())]
        raise ClosureError(f"the loops of {robot.name!r} are open at the {name}: {error:.3g} in {worst!r}; ld.close() "
                           "closes them", float(error), worst, q[0])
    return Condition(q[0].copy(), _velocity(robot, name, q[0], v))


def _velocity(robot, name, q, v):
    if v is FREE or isinstance(v, str) and v == FREE:
        return None
    if v is None:
        return np.zeros(robot.nv)
    if np.ndim(v) == 0 and v == 0:
        return np.zeros(robot.nv)
    _, one, v = states(robot, q=robot.home if q is None else q, v=v)
    if not v.any():
        return v[0].copy()
    if q is None:
        raise InputError(f"a velocity at the {name} needs the whole configuration; otherwise name its coordinates, "
                         "such as {'velocity:boom': 0.1}")
    error = np.abs(velocity_error(robot, one[0], v[0])).max(initial=0.0)
    if error > CLOSED * max(1.0, np.abs(v).max()):
        raise InputError(f"the velocity at the {name} opens a loop: {error:.3g}; ld.complete_velocity() completes it")
    return v[0].copy()


def _are_targets(what):
    return isinstance(what, (tuple, list)) and len(what) > 0 and all(isinstance(each, Target) for each in what)


def _number(name, key, x):
    try:
        x = float(x)
    except (TypeError, ValueError):
        raise InputError(f"{key!r} of the {name} must be a number, got {shown(x)}") from None
    if not np.isfinite(x):
        raise InputError(f"{key!r} of the {name} must be finite, got {x}")
    return x


def _put(robot, q, values):
    q = q.copy()
    for name, x in values.items():
        q[robot.coordinate_names.index(name)] = x
    return q
