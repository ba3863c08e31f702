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


def parameter_names(robot):
    """All that `value`, `changed` and `force_slope` know of a robot."""
    model = robot.model
    joints = [f"{what}:{each.name}" for each in model.joints if each.stiffness.shape == (1,) for what in OF_JOINTS]
    elements = [f"{what}:{each.name}" for each in model.elements if each.law == "linear"
                for what in (*OF_ELEMENTS, _rest(each))]
    return tuple(dict.fromkeys([*joints, *elements, "gravity", *(f"gravity.{axis}" for axis in AXES)]))


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


def value(robot, name):
    """The value of a parameter."""
    what, owner = _owner(robot, name)
    if owner is None:
        return float(robot.gravity[AXES.index(what[-1])] if "." in what else np.linalg.norm(robot.gravity))
    if not hasattr(owner, "law"):
        return float(getattr(owner, what)[0])
    if what in OF_ELEMENTS:
        return float(owner.numbers[OF_ELEMENTS.index(what)])
    return float(owner.measure.length if what == "length" else owner.measure.offset)


def changed(robot, name, x):
    """The robot with another value of a parameter, at the same time and with the same switches."""
    what, owner = _owner(robot, name)
    b = Builder.of(robot)
    if owner is not None:
        b.change("element" if hasattr(owner, "law") else "joint", owner.name, **{what: x})
    elif "." in what:
        g = robot.gravity.copy()
        g[AXES.index(what[-1])] = x
        b.change("robot", gravity=g)
    else:
        b.change("robot", gravity=x * _down(robot))
    made = b.build()
    return made.at(robot.t) if robot.t else made


def _down(robot):
    """The direction of gravity."""
    size = np.linalg.norm(robot.gravity)
    if not size:
        raise InputError(f"gravity of {shown(robot.name)} is zero and has no direction: name gravity.x, gravity.y or "
                         "gravity.z")
    return robot.gravity / size


def force_slope(robot, name, q, v):
    """The derivative (nv) of the generalised forces by a parameter."""
    what, owner = _owner(robot, name)
    if owner is None:
        g = np.eye(3)[AXES.index(what[-1])] if "." in what else _down(robot)
        return centroidal_momentum_matrix(robot, q)[3:].T @ g
    if not hasattr(owner, "law"):
        k, j = robot.coordinate_index(owner.name), robot.velocity_index(owner.name)
        slope = {"stiffness": owner.rest[0] - q[k], "rest": owner.stiffness[0], "damping": -v[j]}[what]
        return slope * np.eye(robot.nv)[j]
    x, w, _ = element_states(robot, q, v)[owner.name]
    slope = {"stiffness": x, "damping": w, "preload": 1.0}.get(what, -owner.numbers[0])
    return slope * _unit_pull(robot, owner.name, q)


def _unit_pull(robot, name, q):
    """-G^T of a force element: its generalised forces where it pulls with 1 N, and no other one is there."""
    e, laws = robot.element_names.index(name), robot.elements.laws
    numbers, at = laws.numbers.copy(), laws.records[e, NUMBERS]
    numbers[at:at + len(OF_ELEMENTS)] = 0.0, 0.0, 1.0
    alone = laws._replace(records=laws.records[e:e + 1].copy(), numbers=numbers)
    return element_forces(replace(robot, elements=robot.elements._replace(laws=alone)), q, np.zeros(robot.nv))


def acceleration_slope(robot, S, name, q, v):
    """The derivative of the accelerations of the independent velocities w, v = S w + drift, by a parameter."""
    return np.linalg.solve(S.T @ crba(robot, q) @ S, S.T @ force_slope(robot, name, q, v))
