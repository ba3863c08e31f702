"""Models of Pinocchio from robots: the extra ``pinocchio``."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.files import orderings
from liedyn.files.export import LeftOut, refused, require_plain
from liedyn.files.pinocchio_joints import KINDS, PER_VELOCITY, TURNS_FIRST, leaders_of, library, require_round
from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import ModelError, shown
from liedyn.model import GROUND
from liedyn.model.frames import joint_basis, rotation_pose
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.links import depth_first

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot


def to_pinocchio(robot: Robot) -> tuple[Any, list[Any]]:
    """Make a Pinocchio model of a robot, and constraint models of its loops.

    Joints keep their names, also those of several coordinates; a cylindrical one is a composite. For a coupling of two
    joints, the second one mimics the first, which some algorithms of Pinocchio do not support. Bodies become frames of
    type BODY, frames operational ones; the home configuration is the reference configuration ``"home"``.

    `liedyn.files.orderings.pinocchio(robot, model)` converts configurations, velocities and other quantities between
    the two.

    Parameters
    ----------
    robot : Robot
        With its switched constraints.

    Returns
    -------
    model : pinocchio.Model
    constraints : list of pinocchio.RigidConstraintModel
        CONTACT_6D for a fixed loop, CONTACT_3D for a spherical one; a pin is constrained at two points of its axis, 1 m
        apart, so that one of the six rows is redundant.

    Raises
    ------
    LiedynError
        Pinocchio is not installed.
    InputError
        `robot` is not a Robot.
    ModelError
        A loop or constraint that Pinocchio lacks, or one that is switched off, one-sided or moves with time; the
        message names it.

    Warns
    -----
    ModelWarning
        Properties that the model lacks, by name: springs, force elements, actuators, the choice of independent
        coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> model, constraints = to_pinocchio(ld.load("panda"))  # doctest: +SKIP
    """
    require_robot(robot)
    pin, declared, left_out = library(), robot.model_as_is(), LeftOut()
    model = pin.Model()
    model.name, model.gravity = declared.name, pin.Motion(declared.gravity, np.zeros(3))
    bodies = {body.name: body for body in declared.bodies}
    places = {GROUND: (0, pin.SE3.Identity(), 0)}  # joint of a body, pose of the body in it, frame
    moving = []
    for joint in depth_first(declared.tree_joints):
        number, pose, frame = places[joint.parent]
        pose = pose * pin.SE3(joint.placement)
        if JOINT_KINDS[joint.kind].nv:
            theirs, turn = _their_joint(pin, joint)
            number = model.addJoint(number, theirs, pose * turn, joint.name)
            pose, frame = turn.inverse(), model.addJointFrame(number, frame)
            moving.append(joint)
        elif joint.child in bodies:
            frame = model.addFrame(pin.Frame(joint.name, number, frame, pose, pin.FrameType.FIXED_JOINT))
        if joint.child in bodies:
            body = bodies[joint.child]
            frame = model.addFrame(pin.Frame(body.name, number, frame, pose, pin.FrameType.BODY,
                                             pin.Inertia(body.mass, body.com, body.inertia)))
        else:
            frame = model.addFrame(pin.Frame(joint.child, number, frame, pose, pin.FrameType.OP_FRAME))
        places[joint.child] = number, pose, frame
    for joint in moving:
        _set_numbers(model, joint, left_out)
    for coupling in declared.constraints:
        model = _with_mimic(pin, model, coupling)
    loops = [each for loop in declared.loops for each in _their_constraints(pin, model, loop, places)]
    model.referenceConfigurations["home"] = orderings.pinocchio(robot, model).to_theirs(robot.home)
    for what, things in (("force elements", declared.elements), ("actuators", declared.actuators)):
        for each in things:
            left_out.add(what, each.name)
    left_out.add("the choice of independent coordinates", ", ".join(declared.independent), declared.independent)
    left_out.warn(robot)
    return model, loops


def _their_joint(pin, joint):
    """A joint of Pinocchio, and the rotation of its frame relative to ours."""
    names = {"revolute": ("R", "Revolute"), "prismatic": ("P", "Prismatic"), "helical": ("H", "Helical")}
    axes = joint.axes

    def along(kind, axis, *pitch):
        short, long = names[kind]
        if axis.max() == 1.0:
            return getattr(pin, f"JointModel{short}{'XYZ'[np.argmax(axis)]}")(*pitch)
        return getattr(pin, f"JointModel{long}Unaligned")(axis, *pitch)

    if joint.kind in names:
        return along(joint.kind, *axes, *([joint.pitch] if joint.kind == "helical" else [])), pin.SE3.Identity()
    if joint.kind == "cylindrical":
        both = pin.JointModelComposite(along("revolute", *axes))
        both.addJoint(along("prismatic", *axes))
        return both, pin.SE3.Identity()
    if joint.kind == "universal":
        return pin.JointModelUniversal(*axes), pin.SE3.Identity()
    if joint.kind == "planar":
        return pin.JointModelPlanar(), pin.SE3(rotation_pose(joint_basis(axes)))
    return getattr(pin, next(theirs for theirs, ours in KINDS.items() if ours == joint.kind))(), pin.SE3.Identity()


def _set_numbers(model, joint, left_out):
    """Armature, damping and limits; infinite limits are Pinocchio's default."""
    theirs, kind = model.joints[model.getJointId(joint.name)], JOINT_KINDS[joint.kind]
    order = TURNS_FIRST if joint.kind == "free" else slice(None)
    ours = {key: getattr(joint, key)[order] for key in PER_VELOCITY}
    if joint.kind == "planar":
        require_round(joint.name, ours)
    for key, values in ours.items():
        _put(model, PER_VELOCITY[key], theirs.idx_v, values)
    left_out.add("the springs of joints", joint.name, joint.stiffness.any())
    if kind.has_quaternion:
        left_out.add("limits of balls and free joints", joint.name, np.isfinite(joint.limits).any())
        return
    left_out.add("limits of angles of planar joints", joint.name,
                 joint.kind == "planar" and np.isfinite(joint.limits[2]).any())
    for key, values in zip(("lowerPositionLimit", "upperPositionLimit"), joint.limits.T):
        _put(model, key, theirs.idx_q, values[:2] if joint.kind == "planar" else values)


def _put(model, key, start, values):
    array = getattr(model, key).copy()
    places = start + np.flatnonzero(np.isfinite(values))
    array[places] = values[np.isfinite(values)]
    setattr(model, key, array)


def _with_mimic(pin, model, coupling):
    """The model in which the second of two coupled joints mimics the first."""
    require_plain(coupling, "Pinocchio")
    numbers = {name: model.getJointId(name) for name in coupling.coefficients if model.existJointName(name)}
    mimics = leaders_of(model)
    names = sorted(numbers, key=numbers.get)
    if len(coupling.coefficients) != 2 or len(names) != 2 or not hasattr(pin, "transformJointIntoMimic"):
        raise refused(coupling, "Pinocchio")
    leader, follower = names
    factor = coupling.coefficients[follower]
    if not factor or {numbers[leader], numbers[follower]} & set(mimics) or numbers[follower] in mimics.values():
        raise ModelError(f"constraint {shown(coupling.name)}: a joint of Pinocchio mimics one that mimics nothing, "
                         f"{shown(follower)} cannot mimic {shown(leader)}")
    return pin.transformJointIntoMimic(model, numbers[leader], numbers[follower],
                                       -coupling.coefficients[leader] / factor, coupling.offset / factor)


def _their_constraints(pin, model, loop, places):
    """One constraint model, or for a pin two, of points on its axis."""
    require_plain(loop, "Pinocchio")
    kinds = {"fixed": (pin.ContactType.CONTACT_6D, [""]), "spherical": (pin.ContactType.CONTACT_3D, [""]),
             "revolute": (pin.ContactType.CONTACT_3D, ["", " axis"])}
    if loop.kind not in kinds:
        raise refused(loop, "Pinocchio")
    kind, suffixes = kinds[loop.kind]
    for k, suffix in enumerate(suffixes):
        ends = []
        for body, placement in ((loop.parent, loop.parent_placement), (loop.child, loop.child_placement)):
            number, pose, _ = places[body]
            shift = pin.SE3(np.eye(3), k * loop.axes[0] if k else np.zeros(3))
            ends += [number, pose * pin.SE3(placement) * shift]
        each = pin.RigidConstraintModel(kind, model, *ends, pin.ReferenceFrame.LOCAL)
        each.name = loop.name + suffix
        yield each
