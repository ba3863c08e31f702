"""Force elements in programs: their generalised forces, and how these change with the state.

A linear model has their forces in tau, and their slopes as a feedback: with additional inputs, one for each generalised
force, and F the derivative of these forces by (y, w),

    A = A_0 + B_f F        C = C_0 + D_f F        B = B_u + B_f S(q)

with S the generalised forces of unit inputs of actuators that act as elements do, such as cylinders between two points.
"""
import copy

import numpy as np

from liedyn.linear.operating_point import actuators_of
from liedyn.machine.program.trace import constants, room
from liedyn.mechanics.elements.forces import derivative_states, driven_states, force_states, room_size
from liedyn.model.force_elements import BUSHING, LAW, Laws
from liedyn.model.packed import N_ROWS, SPARSE, PackedModel


class ElementTerms:
    """The force elements of one robot, whose laws are those of liedyn.

    Parameters
    ----------
    robot : Robot
        With force elements.

    Attributes
    ----------
    has_displacements : bool
        True if some of them measure displacements in all six directions.
    """

    def __init__(self, robot):
        packed, laws = robot.elements.packed, robot.elements.laws
        ints = constants(packed.ints)
        ints[SPARSE] = 0
        self.robot, self.n, self.t = robot, robot.nv, float(robot.t)
        self.has_displacements = bool((laws.records[:, LAW] >= BUSHING).any())
        self.model, self.laws = PackedModel(ints, constants(packed.floats)), Laws(*map(constants, laws))

    def with_inputs(self, u):
        """The same elements, with inputs u of the robot's actuators; those that act on the tree are no elements."""
        made, numbers = copy.copy(self), self.laws.numbers.copy()
        for actuator, _, place in self.robot.elements.laws.inputs.tolist():
            numbers[place] = u[actuator]
        made.laws = self.laws._replace(numbers=numbers)
        return made

    def with_forces(self, plain, q, v, tau):
        """tau and the forces of the elements."""
        found, rows = room(1, self.n), room(3, 1, self.model.ints[N_ROWS])
        plain(force_states)(self.model, self.laws, self._work(plain), self.t, q[None], v[None], (found, *rows))
        return _sum(tau, found[0])

    def actuators(self):
        """Generalised forces of unit inputs: those of the tree, and one for each coordinate."""
        return constants(np.hstack([actuators_of(self.robot), np.eye(self.n)]))

    def slopes(self, plain, q, v):
        """Derivatives of the forces by q and by v, and the generalised forces of unit inputs of elements."""
        by_q, by_v, work = room(1, self.n, self.n), room(1, self.n, self.n), self._work(plain)
        S, tree = (room(*shape, self.n, len(self.robot.actuator_names)) for shape in ((1,), ()))
        plain(derivative_states)(self.model, self.laws, work, self.t, (q[None], v[None]), False, (by_q, by_v))
        plain(driven_states)(self.model, self.laws, work, q[None], tree, S)
        return by_q[0], by_v[0], S[0]

    def closed(self, space, slopes, by_state, by_input):
        """Matrices by (y, w), and by inputs and forces, with the feedback: by (y, w), and by inputs."""
        by_q, by_v, S = slopes
        count, nu = len(space.f0) - len(space.w), S.shape[1]
        F = _product(by_v, space.X[:, :by_state.shape[1]])
        F[:, :count] = _sum(F[:, :count], _product(by_q, space.N[:, :count]))
        by_u, by_force = by_input[:, :nu], by_input[:, nu:]
        return _sum(by_state, _product(by_force, F)), _sum(by_u, _product(by_force, S))

    def _work(self, plain):
        return room(plain(room_size)(self.model))


def _sum(a, b):
    made = np.empty(a.shape, object)
    for at in np.ndindex(a.shape):
        made[at] = a[at] + b[at]
    return made


def _product(a, b):
    """A matrix product that skips what is zero."""
    made = room(a.shape[0], b.shape[1])
    for i, k in np.ndindex(a.shape):
        x = a[i, k]
        if not isinstance(x, float) or x != 0.0:
            for j in range(b.shape[1]):
                made[i, j] = made[i, j] + x * b[k, j]
    return made
