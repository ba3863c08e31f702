"""Outputs of a linearized mechanism: each name becomes rows of C and D (body Jacobians: Spencer 2004, 4.4).

| output | rows | meaning |
|---|---|---|
| ``name`` or ``position:name`` | 1 | a coordinate of the tree or of a cut joint |
| ``velocity:name``, ``acceleration:name`` | 1 | its first and second time derivative |
| ``pose:body`` | 6 | body-fixed displacement (rotation, translation) of a body or frame |
| ``twist:body``, ``twist_rate:body`` | 6 | body-fixed twist (omega, v) of a body or frame, and its rate |
| ``wrench:loop`` | 6 | wrench of the cut joint on its child side, in the cut frame |
| ``wrench:contact`` | 6 | wrench of a constraint between two bodies, about the origin of frame B in the axes of frame A
|
| ``wrench:joint`` | 6 | wrench that a joint of the tree transmits to its child, in the joint's frame
|

A name with several coordinates (a joint, a loop) stands for all of them.
"""
from dataclasses import dataclass

import numpy as np

from liedyn.linear.output_rows import ACCELERATION, BODY, CUT, POSITION, TREE, VELOCITY, WRENCH
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.constraints.independent import by_name
from liedyn.model.remembered import remembered

NO_OUTPUTS = np.zeros((0, 4), dtype=np.int64)
_COORDINATES = {"position": POSITION, "velocity": VELOCITY, "acceleration": ACCELERATION}
_BODIES = {"pose": POSITION, "twist": VELOCITY, "twist_rate": ACCELERATION}
KINDS = (*_COORDINATES, *_BODIES, "wrench")
_AXES = (".wx", ".wy", ".wz", ".vx", ".vy", ".vz")
_WRENCH_AXES = (".mx", ".my", ".mz", ".fx", ".fy", ".fz")


@dataclass(frozen=True)
class OutputPlan:
    """Outputs as `linearize_states` takes them.

    Attributes
    ----------
    labels : tuple of str
        One for each row of C and D.
    parts : ndarray of int64, shape (count, 4)
        Kind (coordinate, body, ...), order of the time derivative, number, first row; empty if the outputs are the
        independent coordinates themselves.
    contacts : tuple of (int, int)
        Number and first row of each constraint between bodies, other than a loop, whose wrench is an output; these
        are not in `parts` (`liedyn.linear.contact_linearization`).
    joints : tuple of (str, int)
        Name and first row of each joint of the tree whose wrench is an output; these are not in `parts`
        (`liedyn.linear.joint_rows`).
    """

    labels: tuple
    parts: np.ndarray
    contacts: tuple = ()
    joints: tuple = ()

    @property
    def more(self):
        """True if some outputs are not in `parts`."""
        return bool(self.contacts or self.joints)

    def without_joints(self, what):
        """InputError if the wrench of a joint is an output, where `what` has none."""
        if self.joints:
            raise InputError(f"{what} has no output 'wrench:{self.joints[0][0]}' of a joint of the tree; linearize and "
                             "joint_wrenches do")


def output_plan(robot, names, chosen):
    """The plan for outputs by name; `chosen` are the independent coordinates, used if names is None.

    Raises InputError if an output is of unknown kind, or of an unknown coordinate, body or loop.
    """
    if not names:
        return OutputPlan(chosen.names, NO_OUTPUTS)
    return _plan(robot, names, chosen.names)


@remembered
def _plan(robot, names, chosen):
    if names == chosen and set(names) <= set(robot.velocity_names):
        return OutputPlan(names, NO_OUTPUTS)
    labels, parts, contacts, joints = [], [], [], []
    between_bodies = {each.name for each in robot.model.constraints if each.parent is not None}
    of_tree = tuple(joint.name for joint in robot.model.joints)
    for name in names:
        kind, _, what = name.partition(":") if ":" in name else ("position", ":", name)
        if kind not in KINDS:
            raise InputError(f"unknown kind of output {kind!r} in {name!r}, {suggestion(kind, KINDS)}")
        if kind in _COORDINATES:
            for member in by_name(robot, what).names:
                parts.append((*_coordinate(robot, member, _COORDINATES[kind]), len(labels)))
                labels.append(member if kind == "position" else f"{kind}:{member}")
        elif kind == "wrench":
            if what in between_bodies:
                contacts.append((robot.constraint_index(what), len(labels)))
            elif what in of_tree and what not in robot.loop_names:
                joints.append((what, len(labels)))
            else:
                if what not in robot.loop_names:
                    known = (*robot.loop_names, *between_bodies, *of_tree)
                    raise InputError(f"unknown joint, loop or constraint {shown(what)}, {suggestion(what, known)}")
                parts.append((WRENCH, POSITION, robot.loop_index(what), len(labels)))
            labels += [f"wrench:{what}{axis}" for axis in _WRENCH_AXES]
        else:
            parts.append((BODY, _BODIES[kind], robot.body_index(what), len(labels)))
            labels += [f"{kind}:{what}{axis}" for axis in _AXES]
    return OutputPlan(tuple(labels), np.array(parts, dtype=np.int64).reshape(-1, 4), tuple(contacts),
                      tuple(joints))


def with_outputs(results):
    """True if outputs have to be linearized."""
    return "C" in results or "D" in results


def needed_actuators(results, actuators):
    """The matrix of the actuators, without columns if nothing depends on inputs."""
    return actuators if "B" in results or "D" in results else np.empty((len(actuators), 0))


def needed_outputs(results, plan):
    """An `OutputPlan` with the same names, without parts if C and D are not asked for."""
    return plan if with_outputs(results) else type(plan)(plan.labels, NO_OUTPUTS)


def _coordinate(robot, name, rate):
    if name in robot.velocity_names:
        return TREE, rate, robot.velocity_index(name)
    return CUT, rate, robot.virtual_index(name)
