"""Robots made from parts of robots: a subtree by itself, and a robot with some joints locked."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.builder import Builder
from liedyn.model.description import GROUND
from liedyn.model.editing import require_no_custom_rows
from liedyn.model.frames import COLUMN_TO_Z, joint_basis, rotation_from_quaternion, rotation_from_rpy, rotation_pose
from liedyn.model.kinds import JOINTS, JOINT_KINDS

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot

MET = 1e-9  # tolerance for a coupling of locked coordinates


def subtree(robot: Robot, body: str, joint: str = "fixed") -> Robot:
    """A body and all bodies that it carries, as a robot of its own.

    Its ground is the frame of the body, in which gravity has the same components as in the world of `robot`. It keeps
    all declarations that refer only to the subtree: frames, loops, constraints and actuators, home values, independent
    coordinates and outputs.

    Parameters
    ----------
    robot : Robot
    body : str
    joint : str
        Kind of the joint between ground and body, which keeps its name: "fixed", "free", or any other that needs no
        further argument.

    Returns
    -------
    Robot

    Raises
    ------
    InputError
        `robot` is not a Robot.
    ModelError
        An unknown body, an unknown kind of joint, or custom rows, which depend on all coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.subtree(ld.load("panda"), "panda_link5").velocity_names
    ('panda_joint6', 'panda_joint7')
    """
    require_robot(robot)
    require_no_custom_rows("subtree", robot)
    b = Builder.of(robot)
    validation.choice("subtree", "body", body, dict.fromkeys(robot.body_names))
    [holder] = [each for each in robot.model.joints if each.child == body]
    b._drop(bodies={GROUND, *robot.body_numbers} - b._carried({body}), joints={holder.name})
    b.change("joint", holder.name, kind=joint, parent=GROUND, placement=None)
    return b.build()


def reduced(robot: Robot, locked: dict[str, Any]) -> Robot:
    """The same robot with some of its joints locked, which become fixed joints.

    Their coordinates are removed, with their springs, limits, actuators, outputs and home values. Loops and constraints
    between bodies remain; in couplings, locked coordinates become constants. If the locked coordinates were independent
    ones, the other independent coordinates remain; otherwise they are chosen automatically.

    Parameters
    ----------
    robot : Robot
    locked : dict
        By joint name, its value, or a list of values if it has several coordinates [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    Robot

    Raises
    ------
    InputError
        `robot` is not a Robot.
    ModelError
        An unknown joint, a value that does not fit, custom rows, or a coupling that the locked coordinates violate.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.reduced(ld.load("panda"), {"panda_joint1": 0.3, "panda_joint4": -2.0}).nv
    5
    """
    require_robot(robot)
    require_no_custom_rows("reduced", robot)
    if not isinstance(locked, dict):
        raise ModelError(f"reduced, locked: expected values by name of a joint, got {shown(locked)}")
    b, values, placements = Builder.of(robot), {}, {}
    joints = {joint.name: joint for joint in robot.model.joints if joint.name in robot.joint_names}
    for name, value in locked.items():
        joint = joints[validation.choice("reduced", "locked", name, joints)]
        kind, owner = JOINT_KINDS[joint.kind], f"reduced, {shown(name)}"
        q = validation.unit_quaternion(owner, kind, validation.per_dof("reduced", shown(name), value, kind.nq))
        values |= dict(zip((name + suffix for suffix in kind.coordinates), q.tolist()))
        placements[name] = joint.placement @ _motion(joint, kind, q)
    velocities = {name + suffix for name in locked for suffix in JOINT_KINDS[joints[name].kind].velocities}
    if not velocities <= set(robot.independent):
        b.change("robot", independent=())
    b._constraints[:] = filter(None, (_with_constants(each, values) for each in b._constraints))
    b._elements[:] = filter(None, (_element_with_constants(each, values) for each in b._elements))
    b._drop(joints=set(locked))
    for name, placement in placements.items():
        b.change("joint", name, kind="fixed", placement=placement)
    return b.build()


def _with_constants(coupling, values):
    """A constraint in which some coordinates have become constants; None if no coordinate is left."""
    known = {name: c for name, c in coupling.coefficients.items() if name in values}
    if not known:
        return coupling
    if coupling.kind == "dry_friction":
        left = {name: c for name, c in coupling.coefficients.items() if name not in values}
        return replace(coupling, coefficients=left) if left else None
    if coupling.kind != "coupling":
        raise ModelError(f"reduced, constraint {shown(coupling.name)}: a {coupling.kind} keeps all its coordinates, "
                         f"{shown(next(iter(known)))} cannot be locked")
    offset = coupling.offset - sum(c * values[name] for name, c in known.items())
    left = {name: c for name, c in coupling.coefficients.items() if name not in values}
    if left:
        return replace(coupling, coefficients=left, offset=offset)
    if not coupling.side and (coupling.target is not None or abs(offset) > MET):
        raise ModelError(f"reduced, constraint {shown(coupling.name)}: the locked coordinates do not meet it, "
                         f"its sum is off by {-offset:.6g}")
    return None


def _element_with_constants(element, values):
    """A force element in which some coordinates have become constants; None if no coordinate is left."""
    coefficients = element.coefficients
    if not values.keys() & coefficients.keys():
        return element
    offset = element.measure.offset - sum(c * values[name] for name, c in coefficients.items() if name in values)
    left = {name: c for name, c in coefficients.items() if name not in values}
    return replace(element, measure=replace(element.measure, coefficients=left, offset=offset)) if left else None


def _motion(joint, kind, q):
    """The pose of a joint's motion at q, shape (4, 4)."""
    pose = np.eye(4)
    if kind.has_quaternion:
        pose[:3, :3] = rotation_from_quaternion(q[:4])
        pose[:3, 3] = q[4:] if len(q) > 4 else 0.0
        return pose
    for (primitive, column), x in zip(kind.chain, q):
        to_link = rotation_pose(joint_basis(joint.axes) @ COLUMN_TO_Z[column])
        # rotation about and translation along z
        *_, turn, _, _, slide = x * JOINTS[primitive].screws_of(joint.pitch)[:, 0]
        along = rotation_pose(rotation_from_rpy((0.0, 0.0, turn)))
        along[2, 3] = slide
        pose = pose @ to_link @ along @ to_link.T
    return pose
