"""Positions of independent coordinates, and how far they are from wanted ones."""

import numpy as np

from liedyn.machine import arguments
from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import virtual_coordinates
from liedyn.mechanics.tree.configuration import difference
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS


class Coordinates:
    """Positions and errors of independent coordinates, on the group where a joint has quaternions.

    Attributes
    ----------
    chosen : Independent
    size : int
        How many numbers a position has: those of q for ball and free joints, which come whole, one for each other
        coordinate.
    """

    def __init__(self, robot, independent):
        require_robot(robot)
        names = robot.independent if independent is None else arguments.names("independent", independent)
        if independent is None and not names and not robot.constraint_names:
            names = robot.joint_names
        if not names:
            raise InputError(f"{robot.name!r} declares no independent coordinates: name those that are controlled")
        self.chosen = by_name(robot, names)
        kinds = {joint.name: joint.kind for joint in robot.model.joints}
        loops = {loop.name: loop.kind for loop in robot.model.loops}
        self._q, self._virtual = [], []  # (place in the position, place in q or z)
        self._rows = [k for k, name in enumerate(self.chosen.names) if self.chosen.virtual[k] < 0]
        self._columns = [robot.velocity_index(self.chosen.names[k]) for k in self._rows]
        self.on_group, self.size, k = False, 0, 0
        while k < len(self.chosen.names):
            name = self.chosen.names[k]
            owner = name if name in kinds or name in loops else name.rsplit(".", 1)[0]
            if self.chosen.virtual[k] >= 0:
                if LOOP_KINDS[loops[owner]].has_quaternion:
                    raise InputError(f"{name!r} of a {loops[owner]} cut has no position that could be controlled")
                self._virtual.append((self.size, int(self.chosen.virtual[k]), k))
                found = 1
            elif JOINT_KINDS[kinds[owner]].has_quaternion:
                members = [each for each in robot.velocity_names if each.startswith(f"{owner}.")]
                if list(self.chosen.names[k:k + len(members)]) != members:
                    raise InputError(f"{name!r} can be controlled with all of joint {owner!r} only: name the joint")
                places = [j for j, each in enumerate(robot.coordinate_names) if each.startswith(f"{owner}.")]
                self._q += [(self.size + i, j) for i, j in enumerate(places)]
                self.on_group, found, k = True, len(places), k + len(members) - 1
            else:
                self._q.append((self.size, robot.coordinate_index(name)))
                found = 1
            self.size, k = self.size + found, k + 1
        # in their order, where all are revolute or prismatic joints of the tree
        self._plain = None if self._virtual or self.on_group else np.array([j for _, j in self._q], dtype=np.int64)

    def error(self, robot, q, wanted):
        """Wanted minus actual position, as a tangent vector."""
        if self._plain is not None:
            return wanted - q[self._plain]
        e = np.empty(len(self.chosen.names))
        target = q.copy()
        for place, j in self._q:
            target[j] = wanted[place]
        e[self._rows] = (difference(robot, q, target) if robot.nq != robot.nv else target - q)[self._columns]
        if self._virtual:
            z = virtual_coordinates(robot, q)
            for place, j, k in self._virtual:
                e[k] = wanted[place] - z[j]
        return e
