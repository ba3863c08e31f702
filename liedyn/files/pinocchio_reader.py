"""Robots from models of Pinocchio: the extra ``pinocchio``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.files import orderings
from liedyn.files.export import LeftOut
from liedyn.files.pinocchio_joints import (
    KINDS, PER_VELOCITY, TURNS_FIRST, is_universal, leaders_of, library, parts_of, require_round,
)
from liedyn.machine.errors import InputError, ModelError, shown, suggestion
from liedyn.model import GROUND, Builder
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.numbers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot

_CHAINS = ("JointModelComposite", "JointModelSphericalZYX", "JointModelUniversal")


def from_pinocchio(model: Any, constraints: Sequence[Any] = (), reference: str | None = None) -> Robot:
    """Make a robot of a model of Pinocchio.

    Joints keep their names; a composite joint, and one of three Euler angles, becomes a chain of joints ``name.1``,
    ``name.2``, and so on, an unbounded revolute one has an angle for its cosine and sine, and a joint that mimics
    another is coupled to it by a constraint, ``name mimic``. The body moved by a joint has the name of the first frame
    of type BODY at its origin, else the joint's; all other frames become frames, including fixed joints. Inertia of the
    universe is ignored. Armature, damping and limits of joints are used; Pinocchio's own algorithms, from
    `pinocchio.rnea` to `pinocchio.aba`, ignore damping. A free-flyer is not driven unless an actuator is declared: the
    inputs are the other joints.

    `liedyn.files.orderings.pinocchio(robot, model)` converts configurations, velocities and other quantities between
    the two.

    Parameters
    ----------
    model : pinocchio.Model
    constraints : sequence of pinocchio.RigidConstraintModel
        CONTACT_3D becomes a cut joint of kind spherical, CONTACT_6D a fixed one; point and frame anchors likewise.
    reference : str, optional
        Name of the reference configuration used as home. Default: the one named ``"home"``, else the first one, else
        the neutral configuration.

    Returns
    -------
    Robot

    Raises
    ------
    LiedynError
        Pinocchio is not installed.
    InputError
        `model` is not a model of Pinocchio, a constraint is of another kind, or `reference` is not text.
    ModelError
        A joint that robots do not have, an unknown reference configuration, or a constraint with a velocity,
        acceleration or compliance of its own; the message names it.

    Warns
    -----
    ModelWarning
        The model has properties that the robot lacks: dry friction, inertia of rotors (which is not armature), limits
        of balls and free joints, Baumgarte's terms, frames of the same name at different places.

    Examples
    --------
    >>> import pinocchio as pin  # doctest: +SKIP
    >>> robot = from_pinocchio(pin.buildModelFromUrdf("panda.urdf"))  # doctest: +SKIP
    """
    pin = library()
    if not isinstance(model, pin.Model):
        raise InputError(f"from_pinocchio, model: expected a pinocchio.Model, got {shown(model)}")
    if model.gravity.angular.any():
        raise ModelError(f"gravity: has an angular part, {shown(model.gravity.angular.tolist())}")
    if not isinstance(reference, str | None):
        raise InputError(f"from_pinocchio, reference: cannot be {shown(reference)}")
    home, left_out = _reference(pin, model, reference), LeftOut()
    builder = Builder(model.name or "robot", gravity=model.gravity.linear)
    bodies = _body_names(pin, model)
    for number in range(1, model.njoints):
        inertia = model.inertias[number]
        builder.body(bodies[number], inertia.mass, inertia.lever, inertia.inertia)
        _add_joint(builder, model, number, bodies, pin.neutral(model), left_out)
    _add_frames(pin, builder, model, bodies, left_out)
    for number, each in enumerate(_rigid(pin, model, constraints)):
        _add_loop(pin, builder, each, each.name or f"constraint{number + 1}", bodies, left_out)
    robot = builder.build()
    home = orderings.pinocchio(robot, model).to_ours(home)
    if (home != robot.home).any():
        builder.change("robot", home=dict(zip(robot.coordinate_names, home)))
        robot = builder.build()
    left_out.warn(robot)
    return robot


def _reference(pin, model, chosen):
    """The reference configuration that is used as home."""
    names = [each.key() for each in model.referenceConfigurations]
    if chosen is not None and chosen not in names:
        raise ModelError(f"no reference configuration {shown(chosen)}, {suggestion(chosen, names)}")
    chosen = chosen or ("home" if "home" in names else names[0] if names else None)
    return model.referenceConfigurations[chosen] if chosen else pin.neutral(model)


def _body_names(pin, model):
    """Name of the body moved by a joint, by the joint's number."""
    names = {0: GROUND}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY and np.array_equal(frame.placement.homogeneous, np.eye(4)):
            names.setdefault(frame.parentJoint, frame.name)
    return {number: names.get(number, model.names[number]) for number in range(model.njoints)}


def _add_joint(builder, model, number, bodies, neutral, left_out):
    """Declare one joint, or a chain of them with massless bodies in between."""
    name, joint = model.names[number], model.joints[number]
    pose, parent = model.jointPlacements[number].homogeneous, bodies[model.parents[number]]
    chain = [(name, joint, np.eye(4))]
    if joint.shortname() in _CHAINS and not is_universal(joint):
        chain = parts_of(name, joint)
    for k, (name, part, behind) in enumerate(chain):
        child = name if k < len(chain) - 1 else bodies[number]
        if child == name and k < len(chain) - 1:
            builder.body(name)
        kind, motion = _motion(name, part, neutral)
        builder.joint(name, kind, parent, child, placement=pose @ behind, driven=kind != "free", **motion,
                      **_numbers_of(model, name, kind, part, left_out))
        parent, pose = child, np.eye(4)
    if joint.shortname() == "JointModelMimic":
        leader, own = model.names[leaders_of(model)[number]], joint.extract()
        builder.constraint(f"{name} mimic", "coupling", coefficients={name: 1.0, leader: -own.scaling},
                           offset=own.offset)


def _motion(name, joint, neutral):
    """The kind of a joint, and its axes and pitch."""
    kind = joint.shortname()
    if kind in KINDS:
        return KINDS[kind], {}
    if kind == "JointModelUniversal":
        return "universal", {"axis": joint.extract().axis1, "axis2": joint.extract().axis2}
    if hasattr(joint, "axis"):
        return "revolute", {"axis": joint.axis}
    if joint.nv != 1 and kind != "JointModelMimic":
        raise ModelError(f"joint {shown(name)}: robots have no joint of kind {shown(kind)}")
    data = joint.createData()
    joint.calc(data, neutral)
    slide, turn = np.split(np.array(data.S).ravel(), 2)  # times the scaling of a joint that mimics another one
    if kind == "JointModelMimic":
        scaling = joint.extract().scaling
        if not scaling:
            raise ModelError(f"joint {shown(name)}: mimics with the factor 0, so that its axis is unknown; fix it")
        slide, turn = slide / scaling, turn / scaling
    if not turn.any():
        return "prismatic", {"axis": slide}
    return ("helical", {"axis": turn, "pitch": slide @ turn}) if slide.any() else ("revolute", {"axis": turn})


def _numbers_of(model, name, kind, joint, left_out):
    """Armature, damping and limits, in our order."""
    q, v = slice(joint.idx_q, joint.idx_q + joint.nq), slice(joint.idx_v, joint.idx_v + joint.nv)
    if not joint.nv or joint.shortname() == "JointModelMimic":
        return {}
    order = TURNS_FIRST if kind == "free" else slice(None)
    found = {ours: _bounds(getattr(model, theirs)[v])[order] for ours, theirs in PER_VELOCITY.items()}
    if kind == "planar":
        require_round(name, found)
    left_out.add("the dry friction of joints", name, model.friction[v].any())
    left_out.add("the inertia of rotors", name, model.rotorInertia[v].any())
    limits = _bounds(np.column_stack([model.lowerPositionLimit[q], model.upperPositionLimit[q]]))
    if kind == "planar":
        limits = np.vstack([limits[:2], [-np.inf, np.inf]])
    if kind == "free":
        left_out.add("limits of free joints", name, np.isfinite(limits[:3]).any())
    if len(limits) == JOINT_KINDS[kind].nq and not JOINT_KINDS[kind].has_quaternion:
        found["limits"] = limits
    return found


def _bounds(values):
    """Limits, infinite if they are the largest numbers."""
    return np.where(np.abs(values) >= LARGEST, np.copysign(np.inf, values), values)


def _add_frames(pin, builder, model, bodies, left_out):
    """Declare all frames except those of moving joints and of bodies."""
    taken = {bodies[number]: (number, np.eye(4)) for number in range(model.njoints)}
    for frame in list(model.frames)[1:]:
        place = frame.parentJoint, frame.placement.homogeneous
        if frame.type == pin.FrameType.JOINT:
            continue
        if frame.name not in taken:
            builder.frame(frame.name, bodies[place[0]], place[1])
            taken[frame.name] = place
        elif taken[frame.name][0] != place[0] or not np.array_equal(taken[frame.name][1], place[1]):
            left_out.add("frames whose names others have", frame.name)


def _rigid(pin, model, constraints):
    """The constraints, all as `RigidConstraintModel`."""
    try:
        constraints = list(constraints)
    except TypeError:
        raise InputError(f"from_pinocchio, constraints: expected a sequence, got {shown(constraints)}") from None
    anchors = tuple(getattr(pin, name) for name in ("PointAnchorConstraintModel", "FrameAnchorConstraintModel")
                    if hasattr(pin, name))
    for each in constraints:
        if isinstance(each, anchors):
            name, each = each.name, pin.convertToRigidConstraintModel(model, each)
            each.name = name
        if not isinstance(each, pin.RigidConstraintModel):
            raise InputError("from_pinocchio, constraints: expected RigidConstraintModels, got "
                             f"{shown(type(each).__name__)}")
        yield each


def _add_loop(pin, builder, each, name, bodies, left_out):
    kinds = {pin.ContactType.CONTACT_3D: "spherical", pin.ContactType.CONTACT_6D: "fixed"}
    if each.type not in kinds:
        raise ModelError(f"constraint {shown(name)}: robots have none of type {each.type}")
    moves = {"placement": each.desired_contact_placement != pin.SE3.Identity(),
             "velocity": each.desired_contact_velocity.vector.any(),
             "acceleration": each.desired_contact_acceleration.vector.any()}
    for what, is_so in moves.items():
        if is_so:
            raise ModelError(f"constraint {shown(name)}: has a desired {what}; give the loop a target instead")
    if hasattr(each, "retrieveCompliance") and each.retrieveCompliance().any():
        raise ModelError(f"constraint {shown(name)}: is compliant, where those of robots are hard")
    gains = each.m_baumgarte_parameters
    left_out.add("Baumgarte's terms", name, np.any(gains.Kp) or np.any(gains.Kd))
    builder.loop(name, kinds[each.type], bodies[each.joint1_id], bodies[each.joint2_id],
                 parent_placement=each.joint1_placement.homogeneous,
                 child_placement=each.joint2_placement.homogeneous)
