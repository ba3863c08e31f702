"""One-sided contacts written as MJCF: geoms that touch nothing but each other, by a pair.

MuJoCo has planes of the ground without an end, and spheres; a point is a sphere of radius `POINT`. Its contacts are
soft, without restitution; friction is that of an elliptic cone.
"""
# mypy: ignore-errors
from xml.etree.ElementTree import SubElement

import numpy as np

from liedyn.files.export import words
from liedyn.machine.errors import ModelError, shown
from liedyn.model import GROUND

POINT = 1e-6
"""Radius of a point [m]."""
NEVER_SLIPS = 1e3
"""The coefficient that stands for friction without a limit."""
KINDS = "on_plane", "sphere_on_plane", "sphere_on_sphere"


def is_contact(constraint):
    """True if a constraint is a one-sided contact that MuJoCo may know."""
    return constraint.kind in KINDS and constraint.side != 0


def add_contact(contacts, each, model, elements, left_out):
    """Write a contact as two geoms and their pair; ModelError for one that MuJoCo does not know."""
    first = _plane(each, model) if "plane" in each.kind else ("sphere", each.parent, each.parent_placement, each.length)
    for trouble, is_so in (
            ("its plane moves, and MuJoCo's planes are fixed in the ground", first is None or each.target is not None),
            ("its surface ends, and MuJoCo's planes do not", bool(each.extent)),
            ("MuJoCo's spheres touch others from outside, and planes from above",
             each.radius < 0.0 or each.side < 0 and each.kind != "on_plane"),
            ("MuJoCo's pairs of geoms are neither switched off nor held closed", each.active is not True)):
        if is_so:
            raise ModelError(f"constraint {shown(each.name)}: {trouble}")
    second = "sphere", each.child, each.child_placement, each.radius or POINT
    names = [f"{each.name} {end}" for end in ("A", "B")]
    for name, (shape, body, pose, radius) in zip(names, (first, second)):
        geom = SubElement(elements[body], "geom", name=name, type=shape, pos=words(pose[:3, 3]), mass="0", group="3",
                          contype="0", conaffinity="0", size="0 0 1" if shape == "plane" else words(radius))
        if shape == "plane":
            geom.set("zaxis", words(pose[:3, 2]))
    rubs = each.friction > 0.0
    mu = min(each.friction, NEVER_SLIPS)
    SubElement(contacts, "pair", name=each.name, geom1=names[0], geom2=names[1], condim="3" if rubs else "1",
               **({"friction": words([mu, mu, 0.0, 0.0, 0.0])} if rubs else {}))
    left_out.add("restitution of contacts", each.name, each.restitution > 0.0)
    left_out.add(f"that contacts never slip, whose friction is {NEVER_SLIPS:g}", each.name, np.isinf(each.friction))


def _plane(each, model):
    """The plane of a contact as a geom of the ground; None if its body moves."""
    body, pose, joints = each.parent, each.parent_placement, {joint.child: joint for joint in model.tree_joints}
    while body != GROUND:
        joint = joints[body]
        if joint.kind != "fixed":
            return None
        body, pose = joint.parent, joint.placement @ pose
    plane = np.array(pose)
    plane[:3, 2] = each.side * (pose[:3, :3] @ each.axis)
    return "plane", GROUND, plane, None
