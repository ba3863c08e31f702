"""Operations with numbers of the model as an argument: inertial parameters of all bodies, or parameters by name.

Equations of motion are linear in the inertial parameters pi: with the regressor Y = dID/dpi at constant accelerations,

    dtau/dpi = Y of inverse dynamics        da/dpi = -(da/dtau) Y,  dlambda/dpi = -(dlambda/dtau) Y of forward dynamics

and alike for springs, dampers and whatever else changes generalised forces by dtau/dp. Derivatives of steps and runs
come from their `Tape`, as for any other parameter.
"""
from typing import NamedTuple

import numpy as np

from liedyn.bridges.differentiable.operations import Operation
from liedyn.machine.errors import InputError, LiedynError, shown, suggestion
from liedyn.model.inertial_parameters import with_inertial_parameters
from liedyn.model.remembered import remembered
from liedyn.tasks.operating_points.continuation_parameters import Parameters


class Inertia(NamedTuple):
    """The argument `inertia` (nbodies, 10)."""

    name: str = "inertia"

    def shape(self, robot):
        return robot.nbodies, 10

    def put(self, robot, numbers):
        """The robot with these numbers."""
        return with_inertial_parameters(robot, numbers)

    def wanted(self):
        """What `Operation.differentiate` is asked for besides."""
        return {"inertia": True}


class Named(NamedTuple):
    """The argument `parameters`, a number for each of `names`."""

    names: tuple
    name: str = "parameters"

    def shape(self, robot):
        return (len(self.names),)

    def put(self, robot, numbers):
        """The robot with these numbers."""
        known = Parameters(robot)
        for name, x in zip(self.names, numbers):
            robot = known.changed(robot, name, float(x))
        return robot

    def wanted(self):
        """What `Operation.differentiate` is asked for besides."""
        return {"parameters": self.names}


class OfModel(Operation):
    """An operation of a robot with numbers of the model as its last argument."""

    def __init__(self, robot, make, given, *options):
        plain, shape = make(robot, *options), given.shape(robot)
        super().__init__(robot, plain.arguments | {given.name: shape}, plain.results)
        self.make, self.given, self.options, self.bundle = make, given, options, plain.bundle
        self.map = plain.map.with_argument(int(np.prod(shape)))
        self._last = None, None

    def evaluate(self, *x):
        """The results as a tuple."""
        return self._each(lambda operation, *x: operation.evaluate(*x), x)

    def differentiate(self, *x):
        """The results as a tuple, and the matrices of the derivative as another."""
        count, wanted = len(self.results), self.given.wanted()
        found = self._each(lambda operation, *x: sum(operation.differentiate(*x, **wanted), ()), x)
        return found[:count], found[count:]

    def require_second(self):
        """LiedynError: they are not known by numbers of the model."""
        raise LiedynError(f"no second derivatives: those of {self.make.__name__} by {self.given.name} are not known; "
                          f"leave out {self.given.name}")

    def _each(self, function, x):
        """Evaluates a function of an operation and its arguments, for each set of numbers with its own robot."""
        *x, numbers = map(np.asarray, x)
        own = self.given.shape(self.robot)
        lead = numbers.shape[:numbers.ndim - len(own)]
        numbers = numbers.reshape(-1, *own)
        if (numbers == numbers[0]).all():
            return function(self._of(numbers[0]), *x)
        shapes = list(self.arguments.values())
        rows = zip(*(each.reshape(-1, *own) for each, own in zip(x, shapes)), numbers)
        found = zip(*(function(self._of(each), *row) for *row, each in rows))
        return tuple(np.reshape(each, lead + np.shape(each)[1:]) for each in map(np.stack, found))

    def _of(self, numbers):
        """The operation of the robot with these numbers; the last one is stored."""
        key, operation = self._last
        if key != numbers.tobytes():
            operation = self.make(self.given.put(self.robot, numbers), *self.options)
            self._last = numbers.tobytes(), operation
        return operation


@remembered
def _of_model(robot, make, given, *options):
    return OfModel(robot, make, given, *options)


def operation(make, robot, options, inertia, parameters=None):
    """The operation `make(robot, *options)`; if numbers of the model are given, with these as its last argument.

    Raises InputError if both kinds are given, a parameter is unknown, or it does not only change forces.
    """
    if inertia is None and parameters is None:
        return make(robot, *options)
    if inertia is not None and parameters is not None:
        raise InputError("give inertia or parameters, not both")
    if inertia is not None:
        return _of_model(robot, make, Inertia(), *options)
    if not isinstance(parameters, dict) or not parameters:
        raise InputError(f"parameters must be a dict of numbers by name, got {shown(parameters)}")
    known = Parameters(robot).names
    for name in parameters:
        if name not in known:
            raise InputError(f"parameters: {shown(name)} is none of {robot.name!r} that changes forces alone, "
                             f"{suggestion(shown(name), known)}")
    return _of_model(robot, make, Named(tuple(parameters)), *options)
