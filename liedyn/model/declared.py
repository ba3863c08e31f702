"""Declared things as arguments of the builder's methods, for writing files and for editing."""

import numpy as np

from liedyn.model.cables import arguments_of_station
from liedyn.model.description import (
    APPLIED, Actuator, Body, Constraint, Cylinder, Element, Frame, Joint, Loop, Shape, Thruster, Winch,
)
from liedyn.model.force_elements import BUSHING_NUMBERS
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.laws import LAWS, NAMED


def arguments_of(thing):
    """Arguments of the method of :class:`liedyn.model.Builder` that declares a thing, except its name.

    Arguments with default values are omitted. Placements are (4, 4) arrays, all other arrays are lists.
    """
    return _ARGUMENTS[type(thing)](thing)


def _body(body):
    entries = {"mass": body.mass} if body.mass else {}
    return entries | {key: x.tolist() for key, x in (("com", body.com), ("inertia", body.inertia)) if x.any()}


def _frame(frame):
    return {"body": frame.body} | _placement("placement", frame.placement)


def _shape(shape):
    entries = {"body": shape.body, "kind": shape.kind} | _placement("placement", shape.placement)
    for key, default in (("size", ()), ("mesh", ""), ("scale", (1.0, 1.0, 1.0)), ("color", None), ("role", "visual")):
        value = getattr(shape, key)
        if value != default:
            entries[key] = list(value) if isinstance(value, tuple) else value
    return entries


def _joint(joint):
    kind = JOINT_KINDS[joint.kind]
    entries = {"kind": joint.kind, "parent": joint.parent, "child": joint.child}
    entries |= _placement("placement", joint.placement) | _axes(kind, joint)
    if np.isfinite(joint.limits).any():
        entries["limits"] = joint.limits.tolist() if kind.nq > 1 else joint.limits[0].tolist()
    defaults = {"velocity_limit": np.inf, "effort_limit": np.inf, "armature": 0.0, "damping": 0.0, "stiffness": 0.0}
    for key, default in defaults.items():
        entries |= _per_dof(key, getattr(joint, key), default)
    entries |= _per_dof("rest", joint.rest, neutral(kind))
    return entries if joint.driven else entries | {"driven": False}


def _loop(loop):
    return _ends(loop) | _axes(LOOP_KINDS[loop.kind], loop) | _state(loop)


def _ends(each):
    """Common arguments of loops and of constraints between bodies."""
    entries = {"kind": each.kind, "parent": each.parent, "child": each.child}
    return entries | _placement("parent_placement", each.parent_placement) | _placement(
        "child_placement", each.child_placement)


def _state(each):
    """Common arguments of loops and constraints."""
    entries = {} if each.active is True else {"active": each.active}
    return entries if each.target is None else entries | {"target": each.target}


def _constraint(constraint):
    kind = constraint.kind
    form = CONSTRAINT_KINDS[kind]
    if kind == "dry_friction":
        coulomb, static, stribeck, viscous = constraint.limit
        more = {} if static == coulomb else {"static": static}
        return {"coordinate": constraint.coefficients, "coulomb": coulomb, "stribeck": stribeck, "viscous": viscous,
                "width": 0.0} | more | _state(constraint)
    if kind == "cable":
        path = [arguments_of_station(each) for each in constraint.stations]
        return {"path": path, "length": constraint.length, "stiffness": np.inf} | _state(constraint)
    if kind == "custom":
        return constraint.functions | {"rows": len(constraint.rows)} | _state(constraint)
    if form.coefficients:
        offset = {"offset": constraint.offset} if constraint.offset else {}
        sum_of = {"kind": kind, "coefficients": constraint.coefficients}
        return sum_of | offset | _contact(constraint) | _state(constraint)
    entries = _ends(constraint)
    if "axis" in form.takes and not np.array_equal(constraint.axis, [0.0, 0.0, 1.0]):
        entries["axis"] = constraint.axis.tolist()
    needed = {"child_axis": constraint.child_axis.tolist(), "length": constraint.length,
              "radius": abs(constraint.radius) or constraint.length, "parent_radius": constraint.length}
    entries |= {key: value for key, value in needed.items() if key in form.needs}
    if "rolling" in form.takes and not constraint.side and constraint.rows != form.rows:
        entries["rolling"] = False
    if constraint.extent:
        entries["extent"] = list(constraint.extent) if len(constraint.extent) > 1 else constraint.extent[0]
    if constraint.radius < 0.0:
        entries["inside"] = True
    return entries | _contact(constraint) | _state(constraint)


def _contact(constraint):
    """Further arguments of a one-sided constraint."""
    if not constraint.side:
        return {}
    numbers = {"restitution": constraint.restitution, "friction": constraint.friction}
    return {"unilateral": "above" if constraint.side > 0 else "below"} | {k: x for k, x in numbers.items() if x}


def _actuator(actuator):
    if len(actuator.gears) > 1:
        return {"coordinate": actuator.gears}
    [(coordinate, gear)] = actuator.gears.items()
    return {"coordinate": coordinate, "gear": gear}


def _cylinder(cylinder):
    entries = _ends(cylinder.measure)
    del entries["kind"]
    return entries | {"gear": cylinder.gear}


def _winch(winch):
    return {"path": [arguments_of_station(each) for each in winch.measure.stations], "gear": winch.gear}


def _thruster(thruster):
    given = {"torque": list(thruster.wrench[:3]), "force": list(thruster.wrench[3:])}
    axes = {"axes": "world"} if thruster.axes == "world" else {}
    return ({"body": thruster.measure.child} | _placement("placement", thruster.measure.child_placement)
            | {key: x for key, x in given.items() if x != UNIT_THRUST[key]} | axes)


def method_of(thing):
    """Name of the method of the builder that declares a thing."""
    if isinstance(thing, Element):
        if thing.law in APPLIED:
            return "applied_force"
        if thing.law in ("friction", "bushing"):
            return thing.law
        if thing.measure.kind == "cable":
            return "cable"
        return "spring" if thing.measure.parent else "coordinate_force"
    if isinstance(thing, Constraint) and thing.kind in ("custom", "dry_friction", "cable"):
        return "friction" if thing.kind == "dry_friction" else thing.kind
    return type(thing).__name__.lower()


def _element(element):
    measure = element.measure
    values = dict(zip(LAWS[element.law].numbers, element.numbers)) if element.law in LAWS else {}
    if element.law == "friction":
        return {"coordinate": measure.coefficients} | values
    if element.law in APPLIED:
        given = {"torque": list(element.numbers[:3]), "force": list(element.numbers[3:])}
        axes = {"axes": "body"} if element.law == "follower" else {}
        return ({"body": measure.child} | _placement("placement", measure.child_placement)
                | {key: x for key, x in given.items() if any(x)} | element.functions | axes)
    law = {"law": NAMED[element.law](**values)} if element.law in NAMED else {k: x for k, x in values.items() if x}
    if measure.kind == "cable":
        path = [arguments_of_station(each) for each in measure.stations]
        pushes = {"pushes": True} if element.law == "linear" else {}
        length = {"length": measure.length} if measure.length else {}
        return {"path": path} | length | law | pushes | element.functions
    if measure.parent is None:
        return {"coefficients": measure.coefficients, "rest": measure.offset} | law | element.functions
    entries = _ends(measure)
    del entries["kind"]
    if element.law == "bushing":
        return entries | _six(element.numbers)
    return entries | {"length": measure.length} | law | element.functions


def _six(numbers):
    """Matrices of a bushing, diagonal ones as six numbers, and its preload."""
    entries, at = {}, 0
    for key, count in BUSHING_NUMBERS.items():
        x, at = np.array(numbers[at:at + count]), at + count
        if count == 36:
            x = x.reshape(6, 6)
            x = np.diag(x) if np.array_equal(x, np.diag(np.diag(x))) else x
        entries |= {key: x.tolist()} if x.any() else {}
    return entries


_ARGUMENTS = {Body: _body, Frame: _frame, Joint: _joint, Loop: _loop, Constraint: _constraint, Actuator: _actuator,
              Cylinder: _cylinder, Thruster: _thruster, Winch: _winch,
              Element: _element, Shape: _shape}
UNIT_THRUST = {"torque": [0.0, 0.0, 0.0], "force": [0.0, 0.0, 1.0]}
"""What the builder's thrusters are by default."""


def _placement(key, pose):
    return {} if np.array_equal(pose, np.eye(4)) else {key: pose}


def _axes(kind, thing):
    entries = {key: axis.tolist() for key, axis, default in zip(("axis", "axis2"), thing.axes, kind.axes)
               if not np.array_equal(axis, default)}
    return entries | ({"pitch": thing.pitch} if kind.has_pitch else {})


def _per_dof(key, values, default):
    return {} if np.all(values == default) else {key: values.tolist() if len(values) > 1 else float(values[0])}
