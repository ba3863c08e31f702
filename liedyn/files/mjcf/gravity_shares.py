"""Compensated weights: fields of bodies and free joints in MuJoCo, forces on robots.

A body's `gravcomp` is the fraction of its weight that a force at its centre of mass compensates. The armature of a free
joint, along the world's axes, is a mass without weight at the origin of the body: here a body of its own, fixed there.
"""
import numpy as np

from liedyn.model import GROUND

_ROUNDING = 1e-12  # relative, for numbers in a file


def borne_part(element, body, gravity):
    """The fraction of a body's weight that a force element compensates; None if it is another force."""
    if element.law != "wrench" or element.functions or element.measure.child != body.name:
        return None
    torque, force = np.split(np.array(element.numbers), 2)
    weight, point = body.mass * gravity, element.measure.child_placement[:3, 3]
    size = weight @ weight
    if not size or torque.any() or not np.allclose(point, body.com, rtol=_ROUNDING, atol=_ROUNDING):
        return None
    part = -(force @ weight) / size
    is_weight = np.allclose(force, -part * weight, rtol=0.0, atol=_ROUNDING * np.abs(force).max())
    return float(part) if is_weight else None


def rotors_of_free_joints(model):
    """By free joint, the body fixed to its child that represents the translational part of MuJoCo's armature."""
    found = {}
    bodies = {body.name: body for body in model.bodies}
    used = _points_of_others(model)
    for joint in model.tree_joints:
        if joint.kind != "free" or joint.parent != GROUND:
            continue
        for held in model.tree_joints:
            body = bodies.get(held.child)
            is_there = held.kind == "fixed" and held.parent == joint.child and np.array_equal(held.placement, np.eye(4))
            if body and is_there and held.child not in used and _is_rotor(body, joint, model):
                found[joint.name] = body.name
    return found


def _is_rotor(body, joint, model):
    """True if a body is the mass of a joint's translational armature, and a force compensates its weight."""
    turns = np.array_equal(joint.armature, [body.mass] * 3 + [0.0] * 3)
    forces = [each for each in model.elements if body.name in each.bodies]
    borne = [borne_part(each, body, model.gravity) for each in forces]
    return (turns and body.mass > 0.0 and not body.inertia.any() and not body.com.any()
            and (borne == [1.0] if model.gravity.any() else not forces))


def _points_of_others(model):
    """Bodies to which joints, loops, constraints, actuators, frames or shapes are attached."""
    used = {joint.parent for joint in model.tree_joints} | {shape.body for shape in model.shapes}
    for each in (*model.loops, *model.constraints):
        used |= {each.parent, each.child}
    for each in model.actuators:
        used |= each.bodies
    return used
