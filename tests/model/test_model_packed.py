"""The packed arrays against the definitions they stand for."""

import numpy as np
import pytest
from mechanisms import (
    MOVING_KINDS, Ad, Unpacked, as_pose, hat, motion, random_axes, random_inertia, random_joint, random_pose,
    random_q, random_tree,
)
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model import Builder
from liedyn.model.kinds import HELICAL, JOINT_KINDS, KINDS, LOOP_KINDS, PRISMATIC, REVOLUTE


def poses_by_definition(robot, q):
    """World pose of every body by name: placements and motions multiplied along the tree of declared joints."""
    joints = {joint.child: joint for joint in robot.model.joints}
    coordinates = dict(zip(robot.coordinate_names, q))

    def pose(body):
        if body == "ground":
            return np.eye(4)
        joint = joints[body]
        values = np.array([coordinates[joint.name + suffix] for suffix in JOINT_KINDS[joint.kind].coordinates])
        return pose(joint.parent) @ joint.placement @ motion(joint.kind, joint.axes, joint.pitch, values)

    return np.array([pose(name) for name in robot.body_names])


@pytest.mark.parametrize("kind", MOVING_KINDS)
def test_joint_moves_as_its_kind_says(kind):
    rng = np.random.default_rng(MOVING_KINDS.index(kind))
    for _ in range(10):
        robot = random_tree(rng, [kind]).build()
        q = random_q(rng, robot)
        np.testing.assert_allclose(Unpacked(robot).body_poses(q), poses_by_definition(robot, q), atol=1e-14)


@pytest.mark.parametrize("kind", [kind for kind in MOVING_KINDS if len(JOINT_KINDS[kind].axes) == 1])
@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), (1e-9, 0, -1), (0, 1, -1e-17), (0.4, 0, -0.9)])
def test_no_axis_is_special(kind, axis):
    builder = Builder("joint")
    builder.body("body", 1.0, inertia=(1, 1, 1))
    builder.joint("joint", kind, "ground", "body", axis=axis, pitch=0.3 if kind == "helical" else None)
    robot = builder.build()
    q = random_q(np.random.default_rng(0), robot)
    np.testing.assert_allclose(Unpacked(robot).body_poses(q), poses_by_definition(robot, q), atol=1e-14)


def test_default_axes_leave_the_frames_alone():
    """Without an axis, a joint's link is the body: every packed rotation of a one-primitive joint is the identity."""
    for kind in ("revolute", "prismatic", "spherical", "free"):
        builder = Builder("joint")
        builder.body("body", 1.0, inertia=(1, 1, 1))
        builder.joint("joint", kind, "ground", "body")
        packed = Unpacked(builder.build())
        assert np.array_equal(as_pose(packed.link_floats[0]), np.eye(4))
        assert np.array_equal(as_pose(packed.body_floats[0]), np.eye(4))


@pytest.mark.parametrize("seed", range(20))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    kinds = [*rng.permutation(MOVING_KINDS), *rng.choice([*MOVING_KINDS, "fixed", "fixed"], size=6)]
    robot = random_tree(rng, list(rng.permutation(kinds))).build()
    q = random_q(rng, robot)
    np.testing.assert_allclose(Unpacked(robot).body_poses(q), poses_by_definition(robot, q), atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_placements_are_turns(seed):
    """R = Rz(beta) Rx(alpha) Rz(gamma) and p = Rz(beta) r, without beta for a child of each link that may be turned."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, [*MOVING_KINDS, *rng.choice(["revolute", "universal", "fixed"], size=8)]).build()
    packed = Unpacked(robot)
    for numbers in packed.link_floats:
        gamma, alpha, beta = (np.arctan2(*numbers[k:k + 2][::-1]) for k in (23, 25, 27))
        turns = Rotation.from_euler("ZXZ", [beta, alpha, gamma])
        np.testing.assert_allclose(turns.as_matrix(), as_pose(numbers)[:3, :3], atol=1e-15)
        np.testing.assert_allclose(Rotation.from_euler("Z", beta).apply(numbers[29:32]), numbers[9:12], atol=1e-15)
    sin_beta, revolute = packed.link_floats[:, 28], packed.links[:, 1] == REVOLUTE
    along_z = np.isin(packed.links[:, 1], (REVOLUTE, PRISMATIC, HELICAL))
    for link in np.flatnonzero(along_z):
        children = (packed.links[:, 0] == link) & revolute
        assert not children.any() or (sin_beta[children] == 0.0).any()


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (1e-17, 1, 0), (-1e-17, -1e-17, 1),
                                  (1e-9, 2e-9, 1), (-1e-15, 1e-15, -1), (0.6, 0.0, 0.8)])
def test_no_turn_is_special(axis):
    """Two hinges with this axis between them: of right angles exact zeros are left, of small ones nothing is lost."""
    builder = Builder("hinges")
    for body in "abc":
        builder.body(body, 1.0, inertia=(1, 1, 1))
    builder.joint("first", "revolute", "ground", "a", placement=(0.1, 0.2, 0.3))
    builder.joint("second", "revolute", "a", "b", placement=(0.3, -0.1, 0.2), axis=axis)
    builder.joint("third", "revolute", "a", "c", placement=(0.3, -0.1, 0.2), axis=(0.0, 0.6, 0.8))
    robot = builder.build()
    q = random_q(np.random.default_rng(0), robot)
    np.testing.assert_allclose(Unpacked(robot).body_poses(q), poses_by_definition(robot, q), atol=1e-15)
    v, a = np.random.default_rng(1).normal(size=(2, robot.nv))
    tau = ld.rnea(robot, q, v, a)
    np.testing.assert_allclose(ld.aba(robot, q, v, tau), a, atol=1e-13)
    np.testing.assert_allclose(ld.crba(robot, q) @ a, tau - ld.rnea(robot, q, v, 0.0 * a), atol=1e-14)
    assert Unpacked(robot).link_floats[1, 28] == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_second_moments_go_with_the_inertia(seed):
    """J = tr(Q) 1 - Q on every link, fused bodies or not."""
    rng = np.random.default_rng(seed)
    packed = Unpacked(random_tree(rng, list(rng.choice([*MOVING_KINDS, "fixed"], size=8))).build())
    for link, numbers in enumerate(packed.link_floats):
        Q = np.zeros((3, 3))
        Q[np.triu_indices(3)] = numbers[32:38]
        Q += np.triu(Q, 1).T
        np.testing.assert_allclose(
            np.trace(Q) * np.eye(3) - Q, packed.spatial_inertia(link)[:3, :3], rtol=1e-14, atol=1e-14 * np.trace(Q))


@pytest.mark.parametrize("seed", range(10))
def test_numbering(seed):
    """Records follow one another; parents come first; dofs and coordinates are numbered in the order of the links."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, list(rng.choice(MOVING_KINDS, size=12))).build()
    packed = Unpacked(robot)
    links, dofs = packed.links, packed.dofs
    assert (robot.packed.ints.size, robot.packed.floats.size) == (packed.int_size, packed.float_size)
    assert (links[:, 0] < np.arange(len(links))).all()
    assert np.array_equal(links[:, 2], np.cumsum([0, *links[:-1, 5]])) and links[:, 5].sum() == robot.nq
    assert np.array_equal(links[:, 3], np.cumsum([0, *links[:-1, 4]])) and links[:, 4].sum() == robot.nv
    assert np.array_equal(dofs[:, 0], np.repeat(np.arange(len(links)), links[:, 4]))
    kinds = {joint.name: JOINT_KINDS[joint.kind] for joint in robot.model.joints}
    widths = [kinds[name].nv for name in robot.joint_names]
    assert np.array_equal(links[dofs[:, 0], 6], np.repeat(np.arange(len(widths)), widths))


@pytest.mark.parametrize("seed", range(10))
def test_previous_dofs_lead_to_the_ground(seed):
    """Following the previous dofs from a body's last one visits the dofs of all joints between it and the ground."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, list(rng.choice([*MOVING_KINDS, "fixed"], size=12))).build()
    packed = Unpacked(robot)
    joints = {joint.child: joint for joint in robot.model.joints}
    for body, (link, _) in zip(robot.body_names, packed.bodies):
        expected = []
        while body != "ground":
            joint = joints[body]
            expected += [joint.name + suffix for suffix in reversed(JOINT_KINDS[joint.kind].velocities)]
            body = joint.parent
        visited, dof = [], np.flatnonzero(packed.dofs[:, 0] == link)[-1] if link >= 0 else -1
        while dof >= 0:
            visited.append(robot.velocity_names[dof])
            dof = packed.dofs[dof, 1]
        assert visited == expected


@pytest.mark.parametrize("seed", range(10))
def test_what_a_dof_carries_follows_it(seed):
    """Root and end of every dof: the first on the way to it, the first behind all whose way leads over it; forks."""
    rng = np.random.default_rng(seed)
    dofs = Unpacked(random_tree(rng, list(rng.choice([*MOVING_KINDS, "fixed"], size=12))).build()).dofs
    ways = []
    for previous in dofs[:, 1]:
        ways.append([*(ways[previous] if previous >= 0 else []), len(ways)])
    for j, (*_, root, end, _, _) in enumerate(dofs):
        assert root == ways[j][0]
        assert [j in way for way in ways] == [j <= k < end for k in range(len(dofs))]
    assert [j for j in range(len(dofs)) if (dofs[:, 1] == j).sum() > 1] == list(np.flatnonzero(dofs[:, 4] >= 0))
    for j, stretch in enumerate(dofs[:, 5]):
        assert all(dofs[k + 1, 1] == k and dofs[k, 4] < 0 for k in range(stretch, j))
        assert dofs[stretch, 1] < 0 or dofs[dofs[stretch, 1], 4] >= 0
    assert list(dofs[dofs[:, 4] >= 0, 4]) == list(range((dofs[:, 4] >= 0).sum()))


def test_depth_first_in_order_of_declaration():
    builder = Builder("tree")
    for name in ("d", "c", "b", "a", "e"):
        builder.body(name, 1.0, inertia=(1, 1, 1))
    builder.joint("b-c", "revolute", "b", "c")
    builder.joint("ground-e", "revolute", "ground", "e")
    builder.joint("a-d", "revolute", "a", "d")
    builder.joint("a-b", "fixed", "a", "b")
    builder.joint("ground-a", "cylindrical", "ground", "a")
    robot = builder.build()
    assert robot.coordinate_names == ("ground-e", "ground-a.angle", "ground-a.slide", "a-d", "b-c")
    assert robot.body_names == ("d", "c", "b", "a", "e")
    assert robot.joint_names == ("ground-e", "ground-a", "a-d", "b-c")


@pytest.mark.parametrize("seed", range(5))
def test_fixed_bodies_are_lumped(seed):
    """The inertia of a link is the sum of its bodies' 6 x 6 inertias, each carried over by Ad^-T G Ad^-1."""
    rng = np.random.default_rng(seed)
    builder = Builder("lump")
    parents = ["ground"]
    expected = np.zeros((6, 6))
    placements = {"ground": np.eye(4)}
    for k in range(5):
        name, parent = f"body{k}", parents[rng.integers(1, k + 1)] if k else "ground"
        mass, com, inertia = rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng)
        joint = random_joint(rng, "fixed") if k else {}
        builder.body(name, mass, com, inertia)
        builder.joint(f"joint{k}", "fixed" if k else "spherical", parent, name, **joint)
        placements[name] = placements[parent] @ joint.get("placement", np.eye(4))
        to_com = np.linalg.inv(placements[name] @ as_pose([*np.eye(3).ravel(), *com]))
        G = np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])
        expected += Ad(to_com).T @ G @ Ad(to_com)
        parents.append(name)
    np.testing.assert_allclose(Unpacked(builder.build()).spatial_inertia(0), expected, rtol=1e-13, atol=1e-13)


def test_massless_links_in_between():
    """Only the last link of a joint made of several primitives carries inertia."""
    for kind, links in (("cylindrical", 2), ("universal", 2), ("planar", 3), ("translational", 3)):
        packed = Unpacked(random_tree(np.random.default_rng(0), [kind]).build())
        assert len(packed.links) == links
        assert not packed.link_floats[:-1, 12:22].any()
        assert packed.link_floats[-1, 12] > 0.0


def test_ground_bodies_have_world_poses():
    rng = np.random.default_rng(0)
    builder, pose = Builder("frame"), random_pose(rng)
    builder.body("frame", 3.0, inertia=(1, 1, 1))
    builder.joint("bolts", "fixed", "ground", "frame", placement=pose)
    packed = Unpacked(builder.build())
    assert packed.bodies[0, 0] == -1
    np.testing.assert_allclose(as_pose(packed.body_floats[0]), pose, atol=1e-15)


def test_joint_properties_by_degree_of_freedom():
    builder = random_tree(np.random.default_rng(0), ["revolute"], gravity=(1.0, 2.0, 3.0))
    builder.body("tip", 1.0, inertia=(1, 1, 1))
    builder.joint(
        "wrist", "cylindrical", "body0", "tip",
        armature=[1.0, 2.0], damping=3.0, stiffness=[4.0, 5.0], rest=[0.1, 0.2],
        limits=[[-1, 1], [-2, 2]], effort_limit=7.0,
    )
    builder.body("ball", 1.0, inertia=(1, 1, 1))
    builder.joint("ball", "spherical", "tip", "ball", stiffness=6.0, rest=[0.6, 0.0, 0.0, 0.8])
    robot = builder.build()
    packed = Unpacked(robot)
    assert np.array_equal(packed.dof_floats[:3], [[0, 0, 0, 0], [1, 3, 4, 0], [2, 3, 5, 0]])
    assert np.array_equal(packed.dof_floats[3:, 2], [6, 6, 6])
    np.testing.assert_allclose(packed.rest, [0, 0.1, 0.2, 0.6, 0, 0, 0.8], atol=1e-16)
    assert np.array_equal(robot.lower[:3], [-np.inf, -1, -2]) and np.array_equal(robot.upper[:3], [np.inf, 1, 2])
    assert np.array_equal(robot.effort_limit[:3], [np.inf, 7, 7])
    assert np.array_equal(robot.packed.floats[:4], [1, 2, 3, 0])


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_cut_frames_are_folded_alike(kind):
    """Both folded frames are the user's frames turned by robot.loop_folding, which takes z (x and y) to the axes."""
    rng = np.random.default_rng(list(LOOP_KINDS).index(kind))
    builder = random_tree(rng, ["spherical", "fixed", "cylindrical"])
    axes = random_axes(rng, "revolute" if kind == "inline" else kind)
    placements = random_pose(rng), random_pose(rng)
    pitch = 0.7 if kind == "helical" else None
    builder.loop("first", "spherical", "body0", "ground")
    builder.loop("cut", kind, "body2", "body1", *placements, **axes, pitch=pitch)
    robot = builder.build()
    q = random_q(rng, robot)
    packed = Unpacked(robot)
    bodies, links = packed.body_poses(q), [*packed.link_poses(q), np.eye(4)]
    folding = robot.loop_folding[1]

    a, b, code, row, rows, virtual, n_virtual = packed.loops[1][:7]
    record = packed.loop_floats[1]
    for link, numbers, body, placement in (
        (a, record[:12], "body2", placements[0]), (b, record[12:24], "body1", placements[1]),
    ):
        expected = bodies[robot.body_index(body)] @ placement
        expected[:3, :3] = expected[:3, :3] @ folding
        np.testing.assert_allclose(links[link] @ as_pose(numbers), expected, atol=1e-13)
    units = [axis / np.linalg.norm(axis) for axis in axes.values()]
    columns = {0: [], 1: [2], 2: [0, 1]}[len(units)]
    for column, unit in zip(columns, units):
        np.testing.assert_allclose(folding[:, column], unit, atol=1e-15)
    np.testing.assert_allclose(folding @ folding.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(folding) > 0.0
    assert (code, row, virtual, record[24]) == (KINDS.index(kind), 3, 3, pitch or 0.0)
    assert robot.row_names[row:] == tuple(name for name in robot.row_names if name.startswith("cut."))
    assert len(robot.row_names) == row + rows and len(robot.virtual_names) == virtual + n_virtual
    if kind != "inline":
        assert rows + n_virtual == 6


def test_helpers_agree_with_their_definitions():
    """The oracle itself: hat and Ad against cross products and conjugation of 4 x 4 matrices."""
    rng = np.random.default_rng(0)
    a, b, pose, twist = rng.normal(size=3), rng.normal(size=3), random_pose(rng), rng.normal(size=6)
    np.testing.assert_allclose(hat(a) @ b, np.cross(a, b))
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = hat(twist[:3]), twist[3:]
    carried = pose @ matrix @ np.linalg.inv(pose)
    np.testing.assert_allclose(Ad(pose) @ twist, [carried[2, 1], carried[0, 2], carried[1, 0], *carried[:3, 3]])
