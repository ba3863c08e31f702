"""What a motion has to satisfy, from the checked arguments of `optimize_motion`."""
import numpy as np

from liedyn.machine.arguments import flag, floats, non_negative
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.elements.generalized import moves_elements
from liedyn.mechanics.tree.places import places_of
from liedyn.tasks.optimal_motion.conditions import condition
from liedyn.tasks.optimal_motion.limits import Own, limits
from liedyn.tasks.optimal_motion.path_functions import PathFunction
from liedyn.tasks.optimal_motion.program import Demands


def demands_of(robot, start, goal, duration, bounds, declared, path, via, periodic):
    if robot.functions or robot.t != 0.0:
        raise InputError(f"{robot.name!r} has constraints that are functions or move with time: motions are optimized "
                         "for fixed constraints of the library's own kinds")
    if moves_elements(robot):
        raise InputError(f"{robot.name!r} has forces that are functions of the time: motions are optimized for forces "
                         "that states and inputs decide")
    if watches(robot):
        raise InputError(f"{robot.name!r} has one-sided constraints: switch them to 'sliding' or 'sticking' or off")
    if not robot.actuator_names:
        raise InputError(f"{robot.name!r} has no actuators: nothing can be optimized")
    conditions = [(0.0, condition(robot, "start", start, True))]
    for each in _sequence("via", via):
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise InputError(f"via has pairs (part of the duration, what), got {shown(each)}")
        part = non_negative("the part of a via", each[0])
        if not 0.0 < part < 1.0:
            raise InputError(f"the part of a via is between 0 and 1, got {part:g}")
        conditions.append((part, condition(robot, "via", each[1], False)))
    if goal is not None:
        conditions.append((1.0, condition(robot, "goal", goal, True)))
    if bounds is not None and not isinstance(bounds, dict):
        raise InputError(f"bounds must be a dict by name, got {shown(bounds)}")
    rows, of_inputs = limits(robot, bounds or {}, flag("limits", declared))
    nu = len(robot.actuator_names)
    for each in (path,) if isinstance(path, PathFunction) else _sequence("path", path):
        if not isinstance(each, PathFunction):
            raise InputError(f"path has PathFunctions, got {shown(each)}")
        rows.append(Own(each, (0.0, robot.home, np.zeros(robot.nv), np.zeros(nu))))
    return Demands(rows, of_inputs, _duration(duration), conditions, _shift(robot, periodic))


def _sequence(name, x):
    if not isinstance(x, (list, tuple)):
        raise InputError(f"{name} must be a list, got {shown(x)}")
    return x


def _duration(given):
    x = floats("duration", given)
    if x.shape == ():
        x = np.array([x, x])
    if x.shape != (2,) or not np.isfinite(x).all() or not 0.0 < x[0] <= x[1]:
        raise InputError(f"duration must be positive, or (low, high), got {shown(given)}")
    return float(x[0]), float(x[1])


def _shift(robot, periodic):
    if isinstance(periodic, dict):
        shift = np.zeros(robot.nv)
        for name, x in periodic.items():
            if name not in robot.velocity_names or places_of(robot)[robot.velocity_index(name)] < 0:
                raise InputError(f"unknown coordinate {shown(name)} of periodic, "
                                 f"{suggestion(name, robot.coordinate_names)}")
            shift[robot.velocity_index(name)] = floats(f"periodic {name!r}", x)
        return shift
    return np.zeros(robot.nv) if flag("periodic", periodic) else None
