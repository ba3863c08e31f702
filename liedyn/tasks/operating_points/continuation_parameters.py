"""Parameters of a robot that may be unknown or vary, their values, and the derivatives of accelerations by them.

Names are those of `liedyn.linear.sensitivity.model_parameters`, for parameters that change forces only: gravity,
masses, centres of mass and inertias, springs, dampers and armatures of joints, ``stiffness:hinge``, and linear force
elements, ``length:strut``. The derivative of the generalised forces is -dID/dp at the actual accelerations; for a force
element with f = stiffness x + preload + damping w that of the force along its row G, tau = -G^T f,

    by stiffness   -G^T x        by damping   -G^T w        by preload   -G^T        by length or rest   G^T stiffness

Independent accelerations change by (S^T M S)^-1 S^T times this derivative.
"""
from dataclasses import replace

import numpy as np

from liedyn.linear.sensitivity.changes import ARMATURE, DAMPING, GRAVITY, INERTIA, REST, STIFFNESS
from liedyn.linear.sensitivity.model_parameters import AXES, ENTRIES, OF_DOFS, all_changes
from liedyn.linear.sensitivity.partials import partial_derivatives
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.elements.generalized import element_forces, element_states
from liedyn.mechanics.tree.crba import crba
from liedyn.model.builder import Builder
from liedyn.model.force_elements import NUMBERS

OF_ELEMENTS = "stiffness", "damping", "preload"
"""Parameters of a linear law, in its order."""
STILL = {INERTIA, GRAVITY, ARMATURE, DAMPING, STIFFNESS, REST}
"""Kinds of changes that displace nothing."""


class Parameters:
    """The parameters of a robot and of those that differ from it in parameter values only.

    Attributes
    ----------
    names : tuple of str
    down : ndarray, shape (3,)
        The direction of gravity, along which its size may pass zero and change sign.
    """

    def __init__(self, robot):
        size, linear = np.linalg.norm(robot.gravity), {e.name for e in robot.model.elements if e.law == "linear"}
        of_elements = {each.name for each in robot.model.elements}
        names = [name for name, (own, _) in all_changes(robot).items()
                 if {kind for kind, *_ in own} <= STILL and "placement" not in name
                 and (name.partition(":")[2] not in of_elements or name.partition(":")[2] in linear)]
        self.names = tuple(dict.fromkeys([*names, "gravity"]))
        self.robot_name, self.down = robot.name, robot.gravity / size if size else None

    def value(self, robot, name):
        """The value of a parameter."""
        (what, entry), owner = _split(name), _owner(robot, name)
        if owner is None:
            return float(self._direction(entry) @ robot.gravity)
        if hasattr(owner, "law"):
            if what in OF_ELEMENTS:
                return float(owner.numbers[OF_ELEMENTS.index(what)])
            return float(owner.measure.length if what == "length" else owner.measure.offset)
        return float(np.asarray(getattr(owner, what))[_place(robot, owner, name)])

    def changed(self, robot, name, x):
        """The robot with another value of a parameter, at the same time and with the same switches."""
        (what, entry), owner = _split(name), _owner(robot, name)
        b = Builder.of(robot)
        if owner is None:
            e = self._direction(entry)
            b.change("robot", gravity=robot.gravity + (x - e @ robot.gravity) * e)
        elif hasattr(owner, "law"):
            b.change("element", owner.name, **{what: x})
        else:
            numbers, place = np.array(getattr(owner, what), dtype=float), _place(robot, owner, name)
            numbers[place] = x
            if what == "inertia":
                numbers[place[::-1]] = x
            b.change("joint" if what in OF_DOFS else "body", owner.name, **{what: numbers.tolist()})
        made = b.build()
        return made.at(robot.t) if robot.t else made

    def _direction(self, axis):
        """The direction along which a parameter of gravity is measured."""
        if axis:
            return np.eye(3)[AXES.index(axis)]
        if self.down is None:
            raise InputError(f"gravity of {shown(self.robot_name)} is zero and has no direction: name gravity.x, "
                             "gravity.y or gravity.z")
        return self.down

    def force_slope(self, robot, name, q, v, a):
        """The derivative (nv) of the generalised forces by a parameter, at given accelerations."""
        owner = _owner(robot, name)
        if owner is not None and hasattr(owner, "law"):
            what = _split(name)[0]
            x, w, _ = element_states(robot, q, v)[owner.name]
            slope = {"stiffness": x, "damping": w, "preload": 1.0}.get(what, -owner.numbers[0])
            return slope * _unit_pull(robot, owner.name, q)
        lam = np.zeros(len(robot.row_names))
        if name == "gravity":
            return sum(e * self.force_slope(robot, f"gravity.{axis}", q, v, a)
                       for axis, e in zip(AXES, self._direction("")) if e)
        return -partial_derivatives(robot, [name], q, v, a, lam)[0][:, 0]

    def acceleration_slope(self, robot, S, name, q, v, a):
        """The derivative of the accelerations of the independent velocities w, v = S w + drift, by a parameter."""
        return np.linalg.solve(S.T @ crba(robot, q) @ S, S.T @ self.force_slope(robot, name, q, v, a))


def _split(name):
    """The kind of a parameter and its entry: com and x for com.x:hull."""
    what, _, entry = name.partition(":")[0].partition(".")
    return what, entry


def _owner(robot, name):
    """The body, joint or force element to which a parameter belongs; None for gravity."""
    owner = name.partition(":")[2]
    if not owner:
        return None
    of_elements = [each for each in robot.model.elements if each.name == owner and each.law == "linear"]
    if of_elements:
        return of_elements[0]
    if _split(name)[0] in OF_DOFS:
        return next(each for each in robot.model.joints if owner in _velocities(robot, each))
    return next(each for each in robot.model.bodies if each.name == owner)


def _velocities(robot, joint):
    """Names of a joint's velocity coordinates."""
    return [name for name in robot.velocity_names if name == joint.name or name.startswith(f"{joint.name}.")]


def _place(robot, owner, name):
    """The index of a parameter among the numbers of a body or joint."""
    what, entry = _split(name)
    if what in OF_DOFS:
        return _velocities(robot, owner).index(name.partition(":")[2])
    if what == "com":
        return AXES.index(entry)
    return () if what == "mass" else tuple(int(k[ENTRIES.index(entry)]) for k in np.triu_indices(3))


def _unit_pull(robot, name, q):
    """-G^T of a force element: its generalised forces if it pulls with 1 N and no other one acts."""
    e, laws = robot.element_names.index(name), robot.elements.laws
    numbers, at = laws.numbers.copy(), laws.records[e, NUMBERS]
    numbers[at:at + len(OF_ELEMENTS)] = 0.0, 0.0, 1.0
    alone = laws._replace(records=laws.records[e:e + 1].copy(), numbers=numbers)
    return element_forces(replace(robot, elements=robot.elements._replace(laws=alone)), q, np.zeros(robot.nv))
