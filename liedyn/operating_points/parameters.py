"""Numbers of a robot that may be unknown or vary: gravity, and what springs have.

A parameter is named by what it is and of what: ``stiffness:hinge``, ``rest:hinge`` of a joint; ``length:strut``,
``preload:strut`` of a force element; ``gravity``, ``gravity.x``. Of each, the derivative F of the generalised forces is
known in closed form. With f = stiffness x + preload + damping w the force of an element along its row G, tau = -G^T f,

    by stiffness   -G^T x        by damping   -G^T w        by preload   -G^T        by length or rest   G^T stiffness

and by gravity the momentum matrix, tau = (m J_com)^T g. Independent accelerations change by (S^T M S)^-1 S^T F.
"""
from dataclasses import replace

import numpy as np

from liedyn.elements.generalized import element_forces, element_states
from liedyn.errors import InputError, shown
from liedyn.model.builder import Builder
from liedyn.model.force_elements import NUMBERS
from liedyn.tree.centroidal import centroidal_momentum_matrix
from liedyn.tree.crba import crba

AXES = "xyz"
OF_JOINTS = "stiffness", "rest", "damping"
OF_ELEMENTS = "stiffness", "damping", "preload"
"""Numbers of a linear law, in its order."""


class Parameters:
    """The parameters of a robot and of those that differ from it in their values only.

    Attributes
    ----------
    names : tuple of str
    down : ndarray, shape (3,)
        The direction of gravity, along which it may vanish and turn round.
    """

    def __init__(self, robot):
        model, size = robot.model, np.linalg.norm(robot.gravity)
        joints = [f"{what}:{each.name}" for each in model.joints if each.stiffness.shape == (1,) for what in OF_JOINTS]
        elements = [f"{what}:{each.name}" for each in model.elements if each.law == "linear"
                    for what in (*OF_ELEMENTS, _rest(each))]
        self.names = tuple(dict.fromkeys([*joints, *elements, "gravity", *(f"gravity.{axis}" for axis in AXES)]))
        self.robot_name, self.down = robot.name, robot.gravity / size if size else None

    def value(self, robot, name):
        """The value of a parameter."""
        what, owner = _owner(robot, name)
        if owner is None:
            return float(self._direction(what) @ robot.gravity)
        if not hasattr(owner, "law"):
            return float(getattr(owner, what)[0])
        if what in OF_ELEMENTS:
            return float(owner.numbers[OF_ELEMENTS.index(what)])
        return float(owner.measure.length if what == "length" else owner.measure.offset)

    def changed(self, robot, name, x):
        """The robot with another value of a parameter, at the same time and with the same switches."""
        what, owner = _owner(robot, name)
        b = Builder.of(robot)
        if owner is not None:
            b.change("element" if hasattr(owner, "law") else "joint", owner.name, **{what: x})
        else:
            e = self._direction(what)
            b.change("robot", gravity=robot.gravity + (x - e @ robot.gravity) * e)
        made = b.build()
        return made.at(robot.t) if robot.t else made

    def _direction(self, what):
        """That along which a parameter of gravity is its size."""
        if "." in what:
            return np.eye(3)[AXES.index(what[-1])]
        if self.down is None:
            raise InputError(f"gravity of {shown(self.robot_name)} is zero and has no direction: name gravity.x, "
                             "gravity.y or gravity.z")
        return self.down

    def force_slope(self, robot, name, q, v):
        """The derivative (nv) of the generalised forces by a parameter."""
        what, owner = _owner(robot, name)
        if owner is None:
            return centroidal_momentum_matrix(robot, q)[3:].T @ self._direction(what)
        if not hasattr(owner, "law"):
            k, j = robot.coordinate_index(owner.name), robot.velocity_index(owner.name)
            slope = {"stiffness": owner.rest[0] - q[k], "rest": owner.stiffness[0], "damping": -v[j]}[what]
            return slope * np.eye(robot.nv)[j]
        x, w, _ = element_states(robot, q, v)[owner.name]
        slope = {"stiffness": x, "damping": w, "preload": 1.0}.get(what, -owner.numbers[0])
        return slope * _unit_pull(robot, owner.name, q)

    def acceleration_slope(self, robot, S, name, q, v):
        """The derivative of the accelerations of the independent velocities w, v = S w + drift, by a parameter."""
        return np.linalg.solve(S.T @ crba(robot, q) @ S, S.T @ self.force_slope(robot, name, q, v))


def _rest(element):
    """What the builder calls the displacement at rest."""
    return "length" if element.measure.kind == "distance" else "rest"


def _owner(robot, name):
    """What a parameter is, and the joint or force element that has it; None for gravity."""
    what, _, owner = name.partition(":")
    if not owner:
        return what, None
    found = [each for each in robot.model.elements if each.name == owner and each.law == "linear"]
    return what, found[0] if found else next(each for each in robot.model.joints if each.name == owner)


def _unit_pull(robot, name, q):
    """-G^T of a force element: its generalised forces where it pulls with 1 N, and no other one is there."""
    e, laws = robot.element_names.index(name), robot.elements.laws
    numbers, at = laws.numbers.copy(), laws.records[e, NUMBERS]
    numbers[at:at + len(OF_ELEMENTS)] = 0.0, 0.0, 1.0
    alone = laws._replace(records=laws.records[e:e + 1].copy(), numbers=numbers)
    return element_forces(replace(robot, elements=robot.elements._replace(laws=alone)), q, np.zeros(robot.nv))
