"""Measurements of sensors at a state, as numbers, and differences between measurements.

Names are those of the outputs of `linearize`, with the same order of numbers. Measurements that are no vectors are
given by coordinates: a pose by its rotation vector and the position of its origin in the ground frame, the position of
a ball or free joint likewise. Their differences are taken on the group, in body axes, as in C.
"""
from functools import partial
from typing import NamedTuple

import numpy as np

from liedyn.lie import rotation_from_quaternion, so3_exp, so3_hat, so3_log, so3_right_jacobian_inverse
from liedyn.linear.output_rows import ACCELERATION, BODY, CUT, POSITION, TREE, VELOCITY
from liedyn.linear.outputs import output_plan
from liedyn.machine.arguments import floats, names, require_robot
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.constraint_wrenches import constraint_wrenches
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import virtual_coordinates
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.dynamics.joint_wrenches import joint_wrenches
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_dot
from liedyn.model.kinds import LOOP_KINDS
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_NV, links_of
from liedyn.motion.local_coordinates import is_angle, loops_by_coordinate, virtual_velocities


class MeasuredState(NamedTuple):
    """A state, its accelerations, and the wrenches of constraints by name, if a sensor needs them."""

    robot: object
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray | None
    wrenches: dict | None


def _position(iq, at):
    return at.q[iq]


def _velocity(j, at):
    return at.v[j]


def _acceleration(j, at):
    return at.a[j]


def _joint_pose(iq, size, at):
    """Rotation vector of a ball or free joint, and the position of its origin."""
    return np.concatenate([so3_log(rotation_from_quaternion(at.q[iq:iq + 4])), at.q[iq + 4:iq + 1 + size]])


def _cut_position(k, at):
    return virtual_coordinates(at.robot, at.q)[k]


def _cut_velocity(k, at):
    return virtual_velocities(at.robot.packed, at.q, at.v)[k]


def _body_pose(body, at):
    T = pose(at.robot, at.q, body)
    return np.concatenate([so3_log(T[:3, :3]), T[:3, 3]])


def _body_velocity(body, at):
    return body_jacobian(at.robot, at.q, body) @ at.v


def _body_acceleration(body, at):
    return body_jacobian(at.robot, at.q, body) @ at.a + body_jacobian_dot(at.robot, at.q, at.v, body) @ at.v


def _wrench(name, at):
    return at.wrenches[name]


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
        self.labels, self._readers, self._groups = plan.labels, [], []
        self._angles = np.zeros(len(self.labels), dtype=bool)
        links, _ = links_of(robot.packed)
        owners = {int(link[LINK_IV]) + k: link for link in links for k in range(link[LINK_NV])}
        parts = [tuple(map(int, part)) for part in plan.parts]
        for belongs, rate, number, row in parts:
            if belongs == TREE:
                self._add_coordinate(owners[number], rate, number, row, parts)
            elif belongs == CUT:
                self._add_cut(rate, number, row)
            elif belongs == BODY:
                self._add_body(rate, row)
            else:
                self._add(row, 6, _wrench, robot.loop_names[number])
        for number, row in plan.contacts:
            self._add(row, 6, _wrench, robot.constraint_names[number])
        self._joints = tuple(name for name, _ in plan.joints)
        for name, row in plan.joints:
            self._add(row, 6, _wrench, name)
        self._needs_accelerations = any(
            reader.func in (_acceleration, _body_acceleration, _wrench) for _, reader in self._readers)

    def _add(self, row, size, reader, *which):
        self._readers.append((row if size == 1 else slice(row, row + size), partial(reader, *which)))

    def _add_coordinate(self, link, rate, number, row, parts):
        place, size = number - int(link[LINK_IV]), int(link[LINK_NV])
        if rate != POSITION or size == 1:
            reader, j = {POSITION: (_position, int(link[LINK_IQ])), VELOCITY: (_velocity, number),
                         ACCELERATION: (_acceleration, number)}[rate]
            self._add(row, 1, reader, j)
            return
        if any((TREE, POSITION, number - place + k, row - place + k) not in parts for k in range(size)):
            raise InputError(f"outputs: {self.labels[row]} is part of the position of a ball or free joint, which is "
                             "measured as a whole, in its order")
        if place == 0:
            self._groups.append(slice(row, row + size))
            self._add(row, size, _joint_pose, int(link[LINK_IQ]), size)

    def _add_cut(self, rate, number, row):
        loop = loops_by_coordinate(self.robot)[self.robot.virtual_names[number]]
        if rate == ACCELERATION or rate == POSITION and LOOP_KINDS[loop.kind].has_quaternion:
            raise InputError(f"outputs: nothing reads {self.labels[row]} of a cut joint")
        self._angles[row] = rate == POSITION and is_angle(loop, self.labels[row])
        self._add(row, 1, _cut_position if rate == POSITION else _cut_velocity, number)

    def _add_body(self, rate, row):
        if rate == POSITION:
            self._groups.append(slice(row, row + 6))
        reader = {POSITION: _body_pose, VELOCITY: _body_velocity, ACCELERATION: _body_acceleration}[rate]
        self._add(row, 6, reader, self.labels[row].partition(":")[2].removesuffix(".wx"))

    def __call__(self, robot, q, v, u):
        """The measurement at a state with actuator inputs u, of the robot at its time."""
        a = wrenches = None
        if self._needs_accelerations:
            solved = forward_dynamics(robot, q, v, actuator_matrix(robot, q) @ u)
            a, wrenches = solved.a, constraint_wrenches(robot, q, solved.lam)
            if self._joints:
                wrenches |= joint_wrenches(robot, q, v, u=u)
        state, found = MeasuredState(robot, q, v, a, wrenches), np.empty(len(self.labels))
        for rows, read in self._readers:
            found[rows] = read(state)
        return found

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
        for turn, place in self._poses(y):
            R = so3_exp(expected[turn])
            left[turn], left[place] = so3_log(R.T @ so3_exp(y[turn])), left[place] @ R
        return left

    def difference_slope(self, e):
        """D (ny, ny): if the expected measurement moves by dy, as in C, the difference e changes by -D dy."""
        D = np.eye(len(e))
        for turn, place in self._poses(e):
            D[turn, turn] = so3_right_jacobian_inverse(-e[turn])
            if place.stop > place.start:
                D[place, turn] = -so3_hat(e[place])
        return D

    def disturbed(self, y, noise):
        """The measurement whose difference from y is `noise`: the inverse of `difference`."""
        found = y + noise
        for turn, place in self._poses(y):
            R = so3_exp(y[turn])
            found[turn], found[place] = so3_log(R @ so3_exp(noise[turn])), y[place] + R @ noise[place]
        return found

    def _poses(self, y):
        """(rows of the rotation vector, rows of the place) of each pose or ball joint that was measured."""
        for group in self._groups:
            if not np.isnan(y[group]).any():
                yield slice(group.start, group.start + 3), slice(group.start + 3, group.stop)


def measured(robot, outputs):
    """The `Measurement` of outputs; None stands for those that the robot declares.

    Raises InputError if the robot declares none, and what `Measurement` raises.
    """
    require_robot(robot)
    if outputs is None and not robot.outputs:
        raise InputError(f"outputs: {robot.name!r} declares none; name those that are measured")
    return Measurement(robot, robot.outputs if outputs is None else outputs)
