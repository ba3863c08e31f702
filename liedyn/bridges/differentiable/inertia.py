"""Operations with the inertial parameters of all bodies as an argument, for identification or design.

Equations of motion are linear in the parameters pi: with the regressor Y = dID/dpi at constant accelerations,

    dtau/dpi = Y of inverse dynamics        da/dpi = -(da/dtau) Y,  dlambda/dpi = -(dlambda/dtau) Y of forward dynamics

Derivatives of steps and runs come from their `Tape`, as for any other parameter.
"""
import numpy as np

from liedyn.bridges.differentiable.operations import Operation
from liedyn.model.inertial_parameters import with_inertial_parameters
from liedyn.model.remembered import remembered


class OfInertia(Operation):
    """An operation of a robot with inertial parameters (nbodies, 10) as its last argument."""

    def __init__(self, robot, make, *options):
        plain = make(robot, *options)
        super().__init__(robot, plain.arguments | {"inertia": (robot.nbodies, 10)}, plain.results)
        self.make, self.options, self.bundle = make, options, plain.bundle
        self.map = plain.map.with_argument(10 * robot.nbodies)
        self._last = None, None

    def evaluate(self, *x):
        """The results as a tuple."""
        return self._each(lambda operation, *x: operation.evaluate(*x), x)

    def differentiate(self, *x):
        """The results as a tuple, and the matrices of the derivative as another."""
        count = len(self.results)
        found = self._each(lambda operation, *x: sum(operation.differentiate(*x, inertia=True), ()), x)
        return found[:count], found[count:]

    def _each(self, function, x):
        """Evaluates a function of an operation and its arguments, for each set of parameters with its own robot."""
        *x, pi = map(np.asarray, x)
        lead = pi.shape[:-2]
        pi = pi.reshape(-1, *pi.shape[-2:])
        if (pi == pi[0]).all():
            return function(self._of(pi[0]), *x)
        shapes = list(self.arguments.values())
        rows = zip(*(each.reshape(-1, *own) for each, own in zip(x, shapes)), pi)
        found = zip(*(function(self._of(pi), *each) for *each, pi in rows))
        return tuple(np.reshape(each, lead + np.shape(each)[1:]) for each in map(np.stack, found))

    def _of(self, pi):
        """The operation of the robot with these parameters; the last one is stored."""
        key, operation = self._last
        if key != pi.tobytes():
            operation = self.make(with_inertial_parameters(self.robot, pi), *self.options)
            self._last = pi.tobytes(), operation
        return operation


@remembered
def _of_inertia(robot, make, *options):
    return OfInertia(robot, make, *options)


def operation(make, robot, options, inertia):
    """The operation `make(robot, *options)`; if inertial parameters are given, with these as its last argument."""
    return make(robot, *options) if inertia is None else _of_inertia(robot, make, *options)
