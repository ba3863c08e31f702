"""Random robots, and what their packed arrays mean, spelled out with SciPy's rotations: oracle of the model tests."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from liedyn.files import load
from liedyn.model import Builder, placement
from liedyn.model.kinds import FREE, HELICAL, JOINT_KINDS, PRISMATIC, REVOLUTE, SPHERICAL

MOVING_KINDS = [kind for kind in JOINT_KINDS if kind != "fixed"]


def random_pose(rng):
    return placement(rng.normal(size=3), quaternion=rng.normal(size=4))


def random_inertia(rng):
    """Of two dozen random points: no other way to be sure that a body can have it."""
    points = rng.normal(size=(24, 3))
    points -= points.mean(axis=0)
    return sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points) / 24


def random_axes(rng, kind):
    """The arguments `axis` and `axis2`, of random length, that a joint of this kind takes."""
    count = len(JOINT_KINDS[kind].axes)
    frame = Rotation.random(random_state=rng).as_matrix()
    return {key: frame[:, k] * rng.uniform(0.2, 3.0) for k, key in enumerate(("axis", "axis2")[:count])}


def random_joint(rng, kind):
    """Arguments of Builder.joint but for the names."""
    pitch = {"pitch": rng.normal()} if kind == "helical" else {}
    return {"placement": random_pose(rng), **random_axes(rng, kind), **pitch}


def random_tree(rng, kinds, name="tree", **options):
    """A tree with one body for each kind, on parents drawn at random, declared in random order."""
    builder = Builder(name, **options)
    bodies = ["ground"] + [f"body{k}" for k in range(len(kinds))]
    for k in rng.permutation(len(kinds)):
        builder.body(f"body{k}", rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng))
        parent = bodies[rng.integers(0, k + 1)]
        builder.joint(f"joint{k}", str(kinds[k]), parent, f"body{k}", **random_joint(rng, kinds[k]))
    return builder


def held(kind, joint="translational", **parameters):
    """One body that moves in space, and a constraint 'held' between it and the ground."""
    builder = Builder(kind, gravity=(0.0, 0.0, 0.0))
    builder.body("body", 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("move", joint, "ground", "body")
    builder.constraint("held", kind, "ground", "body", **parameters)
    return builder.build()


def random_q(rng, robot):
    """Any configuration: quaternions of length one, all else within (-2, 2)."""
    q = rng.uniform(-2.0, 2.0, size=robot.nq)
    for k, name in enumerate(robot.coordinate_names):
        if name.endswith(".qx"):
            q[k : k + 4] = Rotation.random(random_state=rng).as_quat()
    return q


def motion(kind, axes, pitch, q):
    """Motion of a joint in the user's joint frame, from the definition of the kind."""
    pose = np.eye(4)
    R, p = Rotation.identity(), np.zeros(3)
    if kind in ("revolute", "helical", "cylindrical"):
        R = Rotation.from_rotvec(q[0] * axes[0])
    if kind == "prismatic":
        p = q[0] * axes[0]
    if kind == "helical":
        p = pitch * q[0] * axes[0]
    if kind == "cylindrical":
        p = q[1] * axes[0]
    if kind == "universal":
        R = Rotation.from_rotvec(q[0] * axes[0]) * Rotation.from_rotvec(q[1] * axes[1])
    if kind == "planar":
        turn = smallest_rotation(axes[0])
        R, p = Rotation.from_rotvec(q[2] * axes[0]), turn.apply([q[0], q[1], 0.0])
    if kind == "translational":
        p = q
    if kind in ("spherical", "free"):
        R = Rotation.from_quat(q[:4])
    if kind == "free":
        p = q[4:]
    pose[:3, :3], pose[:3, 3] = R.as_matrix(), p
    return pose


def smallest_rotation(axis):
    """From z to a unit axis; to -z itself, half a turn about x."""
    perpendicular = np.cross([0.0, 0.0, 1.0], axis)
    sine = np.linalg.norm(perpendicular)
    if sine == 0.0:
        return Rotation.identity() if axis[2] > 0.0 else Rotation.from_euler("x", np.pi)
    return Rotation.from_rotvec(np.arctan2(sine, axis[2]) * perpendicular / sine)


class Unpacked:
    """The records of a packed model, read by the layout as the contract states it, not by the constants of the code."""

    def __init__(self, robot):
        ints, floats = robot.packed
        n, nq, nv, bodies, loops = ints[:5]
        self.links = ints[ints[7] :][: 8 * n].reshape(n, 8)
        self.dofs = ints[ints[8] :][: 6 * nv].reshape(nv, 6)
        self.bodies = ints[ints[9] :][: 2 * bodies].reshape(bodies, 2)
        self.loops = ints[ints[10] :][: 19 * loops].reshape(loops, 19)
        self.link_floats = floats[ints[11] :][: 40 * n].reshape(n, 40)
        self.dof_floats = floats[ints[12] :][: 4 * nv].reshape(nv, 4)
        self.rest = floats[ints[13] :][:nq]
        self.body_floats = floats[ints[14] :][: 12 * bodies].reshape(bodies, 12)
        self.loop_floats = floats[ints[15] :][: 93 * loops].reshape(loops, 93)
        self.clusters = ints[ints[17] :][: 4 * ints[16]].reshape(ints[16], 4)
        self.int_size = ints[10] + 19 * loops + 4 * ints[16] + self.clusters[:, :2].sum()
        self.float_size = ints[15] + 93 * loops + ints[5] + ints[2]  # weights of rows and of columns end them

    def link_poses(self, q):
        """World pose of every link."""
        poses = []
        for (parent, primitive, iq, _, _, nq, _, _), numbers in zip(self.links, self.link_floats):
            local = as_pose(numbers) @ _primitive_motion(primitive, numbers[22], q[iq : iq + nq])
            poses.append(local if parent < 0 else poses[parent] @ local)
        return poses

    def body_poses(self, q):
        """World pose of every body."""
        links = [*self.link_poses(q), np.eye(4)]  # the ground, number -1, comes last
        return np.array([links[link] @ as_pose(numbers) for (link, _), numbers in zip(self.bodies, self.body_floats)])

    def spatial_inertia(self, link):
        """(6, 6) about the link's origin, angular part first."""
        m, h, (xx, xy, xz, yy, yz, zz) = (
            self.link_floats[link, 12], self.link_floats[link, 13:16], self.link_floats[link, 16:22],
        )
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return np.block([[J, hat(h)], [-hat(h), m * np.eye(3)]])

    def mass_matrix(self, q):
        """M, as the sum of J^T I J over the links, armature added."""
        nv = len(self.dofs)
        poses, jacobians = self.link_poses(q), []
        M = np.diag(self.dof_floats[:, 0])
        for i, (parent, *_) in enumerate(self.links):
            J = np.zeros((6, nv))
            if parent >= 0:
                J = Ad(np.linalg.inv(poses[i]) @ poses[parent]) @ jacobians[parent]
            primitive, dofs = self.links[i, 1], np.flatnonzero(self.dofs[:, 0] == i)
            rows = {REVOLUTE: [2], PRISMATIC: [5], HELICAL: [2], SPHERICAL: range(3), FREE: range(6)}
            J[rows[primitive], dofs] = 1.0
            if primitive == HELICAL:
                J[5, dofs] = self.link_floats[i, 22]
            jacobians.append(J)
            M += J.T @ self.spatial_inertia(i) @ J
        return M


def as_pose(numbers):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.reshape(numbers[:9], (3, 3)), numbers[9:12]
    return pose


def _primitive_motion(primitive, pitch, q):
    pose = np.eye(4)
    if primitive in (REVOLUTE, HELICAL):
        pose[:3, :3] = Rotation.from_euler("z", q[0]).as_matrix()
    if primitive in (PRISMATIC, HELICAL):
        pose[2, 3] = q[0] * (pitch if primitive == HELICAL else 1.0)
    if primitive in (SPHERICAL, FREE):
        pose[:3, :3] = Rotation.from_quat(q[:4]).as_matrix()
    if primitive == FREE:
        pose[:3, 3] = q[4:]
    return pose


def hat(a):
    return np.cross(np.eye(3), a)


def Ad(pose):
    R, p = pose[:3, :3], pose[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [hat(p) @ R, R]])


def assert_declared_alike(one, two):
    """Two models have the same names and numbers, but for the last bits of rotations and axes."""
    for mine, other in zip(_flat(_plain(one)), _flat(_plain(two)), strict=True):
        assert mine == (pytest.approx(other, abs=1e-14) if isinstance(other, float) else other)


def _plain(value):
    """Everything in a model as nested lists of plain numbers and strings."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _flat(value):
    if isinstance(value, dict):
        value = [entry for pair in value.items() for entry in pair]
    if not isinstance(value, list):
        return [value]
    return [leaf for entry in value for leaf in _flat(entry)]


def loader_without_strokes():
    """The loader whose cylinders have no stroke limits: random states are far apart."""
    builder = Builder.of(load("loader"))
    for name in "lift_rod", "tilt_rod":
        builder.change("joint", name, limits=None)
    return builder.build()
