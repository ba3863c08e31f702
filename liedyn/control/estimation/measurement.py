"""Measurements of sensors at a state, as numbers, and differences between measurements.

Names are those of the outputs of `linearize`, with the same order of numbers. Measurements that are no vectors are
given by coordinates: a pose by its rotation vector and the position of its origin in the ground frame, the position of
a ball or free joint likewise. Their differences are taken on the group, in body axes, as in C.
"""
import numpy as np

from liedyn.lie import rotation_from_quaternion, so3_exp, so3_hat, so3_log, so3_right_jacobian_inverse
from liedyn.linear.output_rows import ACCELERATION, BODY, CUT, POSITION, TREE, VELOCITY
from liedyn.linear.outputs import output_plan
from liedyn.machine.arguments import floats, names
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.constraint_wrenches import constraint_wrenches
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import virtual_coordinates
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_dot
from liedyn.model.kinds import LOOP_KINDS
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_NV, links_of
from liedyn.motion.local_coordinates import is_angle
from liedyn.motion.local_coordinates import virtual_velocities


class Measurement:
    """Measurements of a robot's sensors.

    Attributes
    ----------
    names : tuple of str
        The outputs in the user's notation.
    labels : tuple of str
        A name for each number of a measurement.

    Raises
    ------
    InputError
        An output is unknown, is a part of the position of a ball or free joint, or cannot be measured: the position of
        a ball cut, the acceleration of a cut joint.
    """

    def __init__(self, robot, outputs):
        self.robot, self.names = robot, names("outputs", outputs)
        if not self.names:
            raise InputError("outputs: name at least one that is measured")
        plan = output_plan(robot, self.names, by_name(robot, ()))
        self.labels, self._wrenches = plan.labels, []
        self._readers, self._groups = [], []
        self._angles = np.zeros(len(self.labels), dtype=bool)
        links, _ = links_of(robot.packed)
        owners = {int(link[LINK_IV]) + k: (link, k) for link in links for k in range(link[LINK_NV])}
        in_groups = {j for group in robot.groups for j in range(group.start, group.stop)}
        loops = {loop.name + suffix: loop for loop in robot.model.loops for suffix in LOOP_KINDS[loop.kind].velocities}
        parts = [tuple(map(int, part)) for part in plan.parts]
        wholes = {(number, row) for belongs, rate, number, row in parts if belongs == TREE and rate == POSITION}
        for belongs, rate, number, row in parts:
            if belongs == TREE and rate == POSITION and number in in_groups:
                self._add_group(*owners[number], number, row, wholes)
            elif belongs == CUT:
                self._add_cut(loops[robot.virtual_names[number]], rate, number, row)
            else:
                iq = int(owners[number][0][LINK_IQ]) if belongs == TREE else 0
                self._readers.append((belongs, rate, number, row, iq))
                if belongs == BODY and rate == POSITION:
                    self._groups.append(slice(row, row + 6))
        self._contacts = [(robot.constraint_names[number], row) for number, row in plan.contacts]
        self.needs_accelerations = bool(self._contacts) or any(
            rate == ACCELERATION or belongs not in (TREE, CUT, BODY) for belongs, rate, *_ in self._readers)

    def _add_group(self, link, place, number, row, wholes):
        size = int(link[LINK_NV])
        if any((number - place + k, row - place + k) not in wholes for k in range(size)):
            raise InputError(f"outputs: {self.labels[row]} is part of the position of a ball or free joint, which is "
                             "measured as a whole, in its order")
        if place == 0:
            self._groups.append(slice(row, row + size))
            self._readers.append((TREE, "group", size, row, int(link[LINK_IQ])))

    def _add_cut(self, loop, rate, number, row):
        if rate == ACCELERATION or rate == POSITION and LOOP_KINDS[loop.kind].has_quaternion:
            raise InputError(f"outputs: nothing reads {self.labels[row]} of a cut joint")
        self._angles[row] = rate == POSITION and is_angle(loop, self.labels[row])
        self._readers.append((CUT, rate, number, row, 0))

    def __call__(self, robot, q, v, u):
        """The measurement at a state with actuator inputs u, of the robot at its time."""
        found, solved = np.empty(len(self.labels)), None
        if self.needs_accelerations:
            solved = forward_dynamics(robot, q, v, actuator_matrix(robot, q) @ u)
            wrenches = constraint_wrenches(robot, q, solved.lam)
        for belongs, rate, number, row, iq in self._readers:
            if belongs == TREE and rate == "group":
                found[row:row + 3] = so3_log(rotation_from_quaternion(q[iq:iq + 4]))
                found[row + 3:row + number] = q[iq + 4:iq + 1 + number]
            elif belongs == TREE:
                found[row] = q[iq] if rate == POSITION else v[number] if rate == VELOCITY else solved.a[number]
            elif belongs == CUT:
                found[row] = (virtual_coordinates(robot, q) if rate == POSITION else
                              virtual_velocities(robot.packed, q, v))[number]
            elif belongs == BODY:
                found[row:row + 6] = self._of_body(robot, q, v, rate, row, solved)
            else:
                found[row:row + 6] = wrenches[robot.loop_names[number]]
        for name, row in self._contacts:
            found[row:row + 6] = wrenches[name]
        return found

    def _of_body(self, robot, q, v, rate, row, solved):
        body = self.labels[row].partition(":")[2].removesuffix(".wx")
        if rate == POSITION:
            T = pose(robot, q, body)
            return np.concatenate([so3_log(T[:3, :3]), T[:3, 3]])
        J = body_jacobian(robot, q, body)
        return J @ v if rate == VELOCITY else J @ solved.a + body_jacobian_dot(robot, q, v, body) @ v

    def reading(self, y):
        """The user's measurement, checked; NaN for outputs that were not measured.

        Raises InputError if its shape does not fit, an entry is infinite, or only a part of a pose is given.
        """
        y = floats("y", y)
        if y.shape != (len(self.labels),) or np.isinf(y).any():
            raise InputError(f"y must be {len(self.labels)} finite numbers, one for each of {', '.join(self.labels)}, "
                             f"NaN where nothing was measured; got {shown(y.tolist())}")
        for group in self._groups:
            if 0 < np.isnan(y[group]).sum() < group.stop - group.start:
                raise InputError(f"y: {self.labels[group.start]} to {self.labels[group.stop - 1]} go together")
        return y

    def difference(self, y, expected):
        """The difference of a measurement from the expected one, in the coordinates of C."""
        left = y - expected
        left[self._angles] -= 2.0 * np.pi * np.round(left[self._angles] / (2.0 * np.pi))  # to (-pi, pi]
        for group in self._groups:
            if not np.isnan(y[group]).any():
                turn, seen = slice(group.start, group.start + 3), slice(group.start + 3, group.stop)
                R = so3_exp(expected[turn])
                left[turn] = so3_log(R.T @ so3_exp(y[turn]))
                left[seen] = left[seen] @ R
        return left

    def difference_slope(self, e):
        """D (ny, ny): if the expected measurement moves by dy, as in C, the difference e changes by -D dy."""
        D = np.eye(len(e))
        for group in self._groups:
            if not np.isnan(e[group]).any():
                turn, seen = slice(group.start, group.start + 3), slice(group.start + 3, group.stop)
                D[turn, turn] = so3_right_jacobian_inverse(-e[turn])
                if seen.stop > seen.start:
                    D[seen, turn] = -so3_hat(e[seen])
        return D

    def disturbed(self, y, noise):
        """The measurement whose difference from y is `noise`: the inverse of `difference`."""
        found = y + noise
        for group in self._groups:
            turn, seen = slice(group.start, group.start + 3), slice(group.start + 3, group.stop)
            R = so3_exp(y[turn])
            found[turn], found[seen] = so3_log(R @ so3_exp(noise[turn])), y[seen] + R @ noise[seen]
        return found


def measured(robot, outputs):
    """The `Measurement` of outputs; None stands for those that the robot declares.

    Raises InputError if the robot declares none, and what `Measurement` raises.
    """
    if outputs is None and not robot.outputs:
        raise InputError(f"outputs: {robot.name!r} declares none; name those that are measured")
    return Measurement(robot, robot.outputs if outputs is None else outputs)
