"""From bodies and joints to links: depth-first order, joints as chains of primitives, fixed joints lumped.

Every joint that is not fixed becomes one packed link per primitive; only the last link of the chain carries inertia. A
body held by a fixed joint adds its inertia to the link that carries its parent. The rotation of a link's frame about
its own axis is arbitrary: it is chosen so that few rotations about coordinate axes lead to the next link.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from liedyn.model.description import GROUND
from liedyn.model.frames import COLUMN_TO_Z, facing, is_along_z, joint_basis, rotation_pose, skew
from liedyn.model.kinds import JOINTS, JOINT_KINDS, REVOLUTE


@dataclass
class Link:
    """A packed link; its inertia is that of all bodies lumped into it, about the link's origin in link axes."""

    parent: int
    primitive: int
    joint: int
    placement: np.ndarray
    pitch: float = 0.0
    mass: float = 0.0
    moment: np.ndarray = field(default_factory=lambda: np.zeros(3))  # mass * com
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def carry(self, body, pose):
        """Add the inertia of `body`, whose frame lies at `pose` in the link."""
        R = pose[:3, :3]
        com = R @ body.com + pose[:3, 3]
        self.mass += body.mass
        self.moment += body.mass * com
        self.inertia += R @ body.inertia @ R.T - body.mass * skew(com) @ skew(com)

    def turn(self, Z):
        """Rotate the frame about its own z axis, along which it moves as before: its axes become the columns of Z."""
        self.placement = self.placement @ rotation_pose(Z)
        self.moment, self.inertia = Z.T @ self.moment, Z.T @ self.inertia @ Z


@dataclass(frozen=True)
class Tree:
    """The links of a model, and the poses of its bodies in them.

    Attributes
    ----------
    joints : list of Joint
        The joints that are not fixed, in the order of their links.
    links : list of Link
    body_links : dict
        Link number by name of a body or frame, -1 for the ground and bodies fixed to it.
    body_poses : dict
        Pose in its link, (4, 4), by name of a body or frame.
    """

    joints: list
    links: list
    body_links: dict
    body_poses: dict


def depth_first(joints):
    """The joints connected to the ground, parents first, the children of a body in the order of declaration."""
    children = defaultdict(list)
    for joint in joints:
        children[joint.parent].append(joint)
    order, stack = [], children[GROUND][::-1]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(children[joint.child]))
    return order


def link_tree(model):
    """The links of a valid model."""
    bodies = {body.name: body for body in model.bodies}
    tree = Tree([], [], {GROUND: -1}, {GROUND: np.eye(4)})
    for joint in depth_first(model.tree_joints):
        _attach(tree, joint)
        carrier = tree.body_links[joint.child]
        if carrier >= 0 and joint.child in bodies:
            tree.links[carrier].carry(bodies[joint.child], tree.body_poses[joint.child])
    _face_children(tree)
    return tree


def _face_children(tree):
    """Rotate links that move along their z axis so that the axis of their first child lies in the yz plane."""
    carried, bodies = defaultdict(list), defaultdict(list)
    for link in tree.links:
        carried[link.parent].append(link)
    for name, number in tree.body_links.items():
        bodies[number].append(name)
    for number, link in enumerate(tree.links):
        axes = [child.placement[:3, 2] for child in carried[number] if child.primitive == REVOLUTE]
        turns = [facing(axis) for axis in axes if not is_along_z(axis)]
        if turns and JOINTS[link.primitive].moves_along_z(link.pitch):
            link.turn(turns[0])
            back = rotation_pose(turns[0].T)
            for child in carried[number]:
                child.placement = back @ child.placement
            for name in bodies[number]:
                tree.body_poses[name] = back @ tree.body_poses[name]


def _attach(tree, joint):
    """Append the links of `joint`, and set the pose of its child body."""
    link = tree.body_links[joint.parent]
    pose = tree.body_poses[joint.parent] @ joint.placement
    chain = JOINT_KINDS[joint.kind].chain
    if chain:
        tree.joints.append(joint)
    basis = joint_basis(joint.axes)
    for primitive, column in chain:
        to_link = rotation_pose(basis @ COLUMN_TO_Z[column])
        tree.links.append(Link(link, primitive, len(tree.joints) - 1, pose @ to_link, joint.pitch))
        link, pose = len(tree.links) - 1, to_link.T
    tree.body_links[joint.child] = link
    tree.body_poses[joint.child] = pose
