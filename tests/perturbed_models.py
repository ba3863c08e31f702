"""Robots with one parameter changed a little: the declaration is changed, and the robot is built again."""
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.model.build import build

_LENGTHS = {"parent_radius": "length"}


def perturbed(robot, name, h):
    """The robot with parameter `name` (`liedyn.linear.sensitivity.model_parameters`) larger by h."""
    what, _, owner = name.partition(":")
    what, _, entry = what.partition(".")
    return build(_changed(robot, what, entry, owner, h))


def _changed(robot, what, entry, owner, h):
    model = robot.model_as_is()
    if what == "gravity":
        e = np.eye(3)["xyz".index(entry)] if entry else model.gravity / np.linalg.norm(model.gravity)
        return replace(model, gravity=model.gravity + h * e)
    if owner in [each.name for each in model.elements]:
        return replace(model, elements=_replaced(model.elements, owner, lambda each: _element(each, what, entry, h)))
    if what in ("mass", "com", "inertia"):
        return replace(model, bodies=_replaced(model.bodies, owner, lambda body: _body(body, what, entry, h)))
    if what.endswith("placement"):
        kinds = "joints", "loops", "constraints", "frames"
        return replace(model, **{kind: _replaced(getattr(model, kind), owner, lambda each: replace(
            each, **{what: _moved(getattr(each, what), entry, h)})) for kind in kinds})
    if what in ("armature", "damping", "stiffness", "rest"):
        joint, k = _joint_of(robot, owner)
        numbers = getattr(joint, what).copy()
        numbers[k] += h
        return replace(model, joints=_replaced(model.joints, joint.name, lambda each: replace(each, **{what: numbers})))
    return replace(model, constraints=_replaced(model.constraints, owner, lambda each: _size(each, what, h)))


def _replaced(things, owner, change):
    return tuple(change(each) if each.name == owner else each for each in things)


def _body(body, what, entry, h):
    if what == "mass":
        return replace(body, mass=body.mass + h)
    if what == "com":
        return replace(body, com=body.com + h * np.eye(3)["xyz".index(entry)])
    i, j = ("xyz".index(axis) for axis in entry)
    E = np.zeros((3, 3))
    E[i, j] = E[j, i] = h
    return replace(body, inertia=body.inertia + E)


def _moved(placement, entry, h):
    moved, e = placement.copy(), h * np.eye(3)["xyz".index(entry[-1])]
    if entry[0] == "r":
        moved[:3, :3] = Rotation.from_rotvec(e).as_matrix() @ placement[:3, :3]
    else:
        moved[:3, 3] += e
    return moved


def _joint_of(robot, velocity):
    for joint in robot.model.joints:
        names = [name for name in robot.velocity_names if name == joint.name or name.startswith(f"{joint.name}.")]
        if velocity in names:
            return joint, names.index(velocity)
    raise KeyError(velocity)


def _size(each, what, h):
    if what == "radius" and each.kind in ("on_cylinder", "on_circle"):
        what = "length"
    sign = -1.0 if what == "radius" and each.radius < 0.0 else 1.0
    what = _LENGTHS.get(what, what)
    return replace(each, **{what: getattr(each, what) + sign * h})


def _element(each, what, entry, h):
    from liedyn.model.laws import LAWS

    if what.endswith("placement"):
        return replace(each, measure=replace(each.measure, **{what: _moved(getattr(each.measure, what), entry, h)}))
    if what in ("length", "rest"):
        size = "length" if what == "length" else "offset"
        return replace(each, measure=replace(each.measure, **{size: getattr(each.measure, size) + h}))
    k = LAWS[each.law].numbers.index(what)
    return replace(each, numbers=each.numbers[:k] + (each.numbers[k] + h,) + each.numbers[k + 1:])
