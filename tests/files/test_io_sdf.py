"""SDFormat files: Cassie against an oracle of its own, and small files, one behaviour each."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from sdf_files import AXES, TRAIN, joint, link, load
from sdf_oracle import Oracle

import liedyn as ld
from liedyn.machine.errors import ModelError, ModelWarning

CASSIE = Path(__file__).parents[1] / "reference" / "cassie_v2.sdf"  # Agility Robotics; its licence is in its head


@pytest.fixture(scope="module")
def cassie():
    with pytest.warns(ModelWarning, match="damping and springs of cut joints: 'left-pitch-rod-joint', 'right-pitch-"):
        return ld.load(CASSIE)


def test_cassie(cassie):
    """28 coordinates with the floating base, four balls that take 10 degrees of freedom; closed as the file has it."""
    assert (cassie.nv, {loop.kind for loop in cassie.model.loops}) == (28, {"spherical"})
    assert np.abs(ld.closure_error(cassie, cassie.home)).max() < 1e-14
    zero = np.zeros(cassie.nv)
    assert ld.forward_dynamics(cassie, cassie.home, zero, zero).rank == 10
    assert cassie.home[:7].tolist() == [0, 0, 0, 1, 0, 0, 1.01]


@pytest.mark.parametrize("distance", [0.0, 0.1, 0.3])
def test_cassie_against_the_definition(cassie, distance):
    """Accelerations to 1e-9 of the largest one, at random states around that of the file."""
    rng = np.random.default_rng(int(10 * distance))
    q = ld.integrate(cassie, cassie.home, distance * rng.normal(size=28))
    # the file's angles are rounded: the right foot's axes are 7e-8 rad apart, so that away from home its linkage closes
    # to 1e-9 m and no better, and has rank 2 by the tolerance of ranks only
    q = ld.close(cassie, q, tolerance=1e-9)
    G = ld.constraint_jacobian(cassie, q)
    v, tau = rng.normal(size=(2, 28))
    v -= np.linalg.pinv(G, rcond=1e-8) @ (G @ v)
    oracle, base = Oracle(CASSIE), np.eye(4)
    base[:3, :3], base[:3, 3] = Rotation.from_quat(q[:4]).as_matrix(), q[4:7]
    values, rates = dict(zip(cassie.coordinate_names, q)), dict(zip(cassie.velocity_names, v))
    oracle.place(base, v[:6], values, rates)
    assert np.abs(oracle.rows()[0]).max() < 1e-9
    order = [*range(6), *(cassie.velocity_index(name) for name in oracle.names)]
    rank, expected = oracle.accelerations(values, rates, tau[order], 1e-8)
    result = ld.forward_dynamics(cassie, q, v, tau)
    assert rank == result.rank == 10
    np.testing.assert_allclose(result.a[order], expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def pose(x=0.0, y=0.0, z=0.0, *rpy):
    return ld.placement((x, y, z), rpy=rpy or None)


def at_home(robot, body):
    return ld.forward_kinematics(robot, robot.home)[robot.body_index(body)]


QUARTER = np.pi / 2


@pytest.mark.parametrize(("parts", "expected"), [
    (link("b", "1 2 3 0.1 0.2 0.3"), pose(1, 2, 3, 0.1, 0.2, 0.3)),
    (link("b", "1 2 3 10 20 30", 'degrees="true"'), pose(1, 2, 3, *np.radians([10, 20, 30]))),
    (link("b", "1 2 3 0 0 2 2", 'rotation_format="quat_xyzw"'), pose(1, 2, 3, 0, 0, QUARTER)),
    (link("a", "1 0 0 0 0 2") + link("b", "1 2 3 0 0 0", 'relative_to="a"'), pose(1, 0, 0, 0, 0, 2) @ pose(1, 2, 3)),
    (link("b", "1 2 3 0 0 0", 'relative_to="a"') + link("a", "0 1 0 0 1 0"), pose(0, 1, 0, 0, 1, 0) @ pose(1, 2, 3)),
    (link("b", "1 0 0 0 0 0", 'relative_to="f"') + link("a", "0 1 0 0 0 0") +
     '<frame name="f" attached_to="a"><pose>0 0 1 0.1 0 0</pose></frame>', pose(0, 1, 1, 0.1, 0, 0) @ pose(1)),
    (link("b", "1 0 0 0 0 0", 'relative_to="f"') + link("a", "0 1 0 0 0 0") +
     '<frame name="f" attached_to="a"><pose relative_to="__model__">0 0 1 0 0 0</pose></frame>', pose(1, 0, 1)),
    (link("a", "0 1 0 0 0 0") + joint("j", "revolute", "world", "a", pose="0 0 1 0 0 0.2") +
     link("b", "1 0 0 0 0 0", 'relative_to="j"'), pose(0, 1, 1, 0, 0, 0.2) @ pose(1)),
    (link("a", "0 1 0 0 0 0") + link("b", "0 0 1 0 0 0", 'relative_to="j"') +
     joint("j", "fixed", "a", "b", pose="0 3 0 0 0 0", attributes='relative_to="a"'), pose(0, 4, 1)),
    ("<pose>0 0 5 0 0 0.5</pose>" + link("b", "1 0 0 0 0 0"), pose(0, 0, 5, 0, 0, 0.5) @ pose(1)),
    ('<model name="m"><pose>1 0 0 0 0 0.5</pose>' + link("x", "0 1 0 0 0 0") + "</model>" +
     link("b", "0 0 1 0 0 0", 'relative_to="m::x"'), pose(1, 0, 0, 0, 0, 0.5) @ pose(0, 1, 1)),
    ('<model name="m" placement_frame="x"><pose>1 0 0 0 0 0.5</pose>' + link("x", "0 1 0 0.2 0 0") + "</model>" +
     link("b", "0 0 1 0 0 0", 'relative_to="m::x"'), pose(1, 0, 0, 0, 0, 0.5) @ pose(0, 0, 1)),
    ('<model name="m" placement_frame="x"><pose>1 0 0 0 0 0.5</pose>' + link("x", "0 1 0 0.2 0 0") + "</model>" +
     link("b", "", 'relative_to="m"'), pose(1, 0, 0, 0, 0, 0.5) @ np.linalg.inv(pose(0, 1, 0, 0.2, 0, 0))),
])
def test_places(tmp_path, parts, expected):
    """A link lies where the file says, whatever frame it is said in."""
    np.testing.assert_allclose(at_home(load(tmp_path, parts), "b"), expected, atol=1e-14)


def test_a_model_may_be_placed_by_any_of_its_frames(tmp_path):
    robot = load(tmp_path, "<pose>1 2 3 0 0 0.4</pose>", link("a"), link("b", "1 0 0 0.3 0 0"),
                 attributes='placement_frame="b"')
    np.testing.assert_allclose(at_home(robot, "b"), pose(1, 2, 3, 0, 0, 0.4), atol=1e-14)


def test_frames_are_frames_of_the_robot(tmp_path):
    """They lie where the file says when all coordinates are zero, and move with the link that they are attached to."""
    inner = f'<model name="m"><pose>0 0 2 0 0 0</pose>{link("x", "0 1 0 0.2 0 0")}<frame name="grip"/></model>'
    robot = load(tmp_path, link("a", "1 0 0 0 0 0.3"), inner, joint("j", "revolute", "world", "a"),
                 joint("k", "fixed", "a", "m::x"),
                 '<frame name="tip" attached_to="a"><pose>0 0 1 0.1 0 0</pose></frame>',
                 '<frame name="far" attached_to="tip"><pose relative_to="a">0 0 3 0 0 0</pose></frame>')
    assert robot.frame_names == ("tip", "far", "m::grip")
    at, q = pose(1, 0, 0, 0, 0, 0.3), robot.neutral
    np.testing.assert_allclose(ld.pose(robot, q, "tip"), at @ pose(0, 0, 1, 0.1, 0, 0), atol=1e-14)
    np.testing.assert_allclose(ld.pose(robot, q, "far"), at @ pose(0, 0, 3), atol=1e-14)
    np.testing.assert_allclose(ld.pose(robot, q, "m::grip"), pose(0, 0, 2), atol=1e-14)
    held = {frame.name: frame.body for frame in robot.model.frames}
    assert held == {"tip": "a", "far": "a", "m::grip": "m::x"}


def test_long_chains_of_frames(tmp_path):
    frame = '<frame name="f{}"><pose relative_to="f{}">0.001 0 0 0 0 0</pose></frame>'
    chain = "".join(frame.format(k, k + 1) for k in range(2000))
    robot = load(tmp_path, link("b", "", 'relative_to="f0"'), chain, '<frame name="f2000"/>')
    np.testing.assert_allclose(at_home(robot, "b"), pose(2.0), atol=1e-12)


def test_links_of_models_within_the_model(tmp_path):
    """Joints may hold links, frames and models: what they are attached to."""
    inner = f'<model name="arm">{link("upper")}{link("lower")}{joint("elbow", "revolute", "upper", "lower")}</model>'
    robot = load(tmp_path, link("torso"), f'<model name="left">{inner}</model>',
                 '<frame name="neck" attached_to="torso"/><frame name="nape" attached_to="neck"/>',
                 joint("shoulder", "revolute", "nape", "left"), joint("mount", "fixed", "world", "__model__"))
    assert robot.body_names == ("torso", "left::arm::upper", "left::arm::lower")
    assert [(each.parent, each.child) for each in robot.model.joints] == [
        ("torso", "left::arm::upper"), ("ground", "torso"), ("left::arm::upper", "left::arm::lower")]
    assert robot.coordinate_names == ("shoulder", "left::arm::elbow")


def test_the_canonical_link_moves_with_the_model(tmp_path):
    robot = load(tmp_path, link("a"), link("b"), joint("j", "fixed", "world", "__model__"),
                 joint("k", "revolute", "b", "a"), attributes='canonical_link="b"')
    assert [(each.parent, each.child) for each in robot.model.joints] == [("ground", "b"), ("b", "a")]


A, B = "0.3 -0.1 0.2 0.5 -0.4 0.9", "-0.6 0.8 0.1 -0.2 0.3 1.2"  # links, in the model
J = "0.1 0.2 -0.3 0.7 0.1 -0.5"  # joint, in its child
SKEWED = "<axis><xyz>1 2 2</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
ONE, TWO, UP = np.array([1, 2, 2]) / 3, np.array([2, 1, -2]) / 3, np.array([0, 0, 1.0])


def turn(axis, angle):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(angle * np.asarray(axis)).as_matrix()
    return T


MOTIONS = [
    ("fixed", "", lambda: np.eye(4)),
    ("revolute", AXES, lambda q: turn(ONE, q)),
    ("continuous", AXES, lambda q: turn(ONE, q)),
    ("prismatic", AXES, lambda q: pose(*(q * ONE))),
    ("screw", AXES + "<screw_thread_pitch>0.4</screw_thread_pitch>",
     lambda q: turn(ONE, q) @ pose(*(0.4 * q / (2 * np.pi) * ONE))),
    ("screw", AXES + "<thread_pitch>5</thread_pitch>", lambda q: turn(ONE, q) @ pose(*(-q / 5 * ONE))),
    ("universal", AXES, lambda p, q: turn(ONE, p) @ turn(TWO, q)),
    ("revolute2", AXES, lambda p, q: turn(ONE, p) @ turn(TWO, q)),
    ("revolute2", SKEWED, lambda p, q: turn(ONE, p) @ turn(UP, q)),
    ("ball", "", lambda *q: ld.placement(quaternion=q)),
]


@pytest.mark.parametrize("held", ["a", "b"])
@pytest.mark.parametrize(("kind", "axes", "motion"), MOTIONS)
def test_motions(tmp_path, kind, axes, motion, held):
    """The child moves against the parent about the joint's own frame, whichever of the two the world holds."""
    if kind == "ball" and held == "b":
        motion = lambda *q: ld.placement(quaternion=(*(-np.array(q[:3])), q[3]))  # noqa: E731
    robot = load(tmp_path, link("a", A), link("b", B), joint("j", kind, "a", "b", axes, J),
                 joint("hold", "fixed", "world", held))
    q = np.random.default_rng(0).uniform(0.3, 1.0, robot.nq)
    if kind == "ball":
        q /= np.linalg.norm(q)
    poses = dict(zip(robot.body_names, ld.forward_kinematics(robot, q)))
    a, b, j = (pose(*map(float, text.split())) for text in (A, B, J))
    values = [q[robot.coordinate_index(name)] for name in sorted(robot.coordinate_names)] if kind != "ball" else q
    if kind == "ball":  # the joint's axes are those of the link it moves, at zero
        about = b if held == "a" else a
        spin = np.eye(4)
        spin[:3, :3] = (b @ j)[:3, :3].T @ about[:3, :3]
        expected = np.linalg.inv(a) @ b @ j @ spin @ motion(*values) @ np.linalg.inv(spin) @ np.linalg.inv(j)
    else:
        expected = np.linalg.inv(a) @ b @ j @ motion(*values) @ np.linalg.inv(j)
    np.testing.assert_allclose(np.linalg.inv(poses["a"]) @ poses["b"], expected, atol=1e-13)
    np.testing.assert_allclose(poses[held], {"a": a, "b": b}[held], atol=1e-14)


@pytest.mark.parametrize(("version", "inside", "expected"), [
    ("1.11", "<axis><xyz>1 0 0</xyz></axis>", (0, 0, -1)),  # of the joint, which is in the child
    ("1.6", "<axis><xyz>1 0 0</xyz></axis>", (0, 0, -1)),
    ("1.4", "<axis><xyz>1 0 0</xyz></axis>", (1, 0, 0)),  # of the model
    ("1.6", "<axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>", (1, 0, 0)),
    ("1.4", "<axis><xyz>1 0 0</xyz><use_parent_model_frame>false</use_parent_model_frame></axis>", (0, 0, -1)),
    ("1.7", '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis>', (1, 0, 0)),
    ("1.7", '<axis><xyz expressed_in="a">0 1 0</xyz></axis>', (-1, 0, 0)),
])
def test_axes_are_expressed_in_frames(tmp_path, version, inside, expected):
    robot = load(tmp_path, link("a", f"0 0 0 0 0 {QUARTER!r}"), link("b", f"0 0 0 0 {QUARTER!r} 0"),
                 joint("j", "revolute", "a", "b", inside), joint("hold", "fixed", "world", "a"), version=version)
    hub = Rotation.from_matrix(ld.forward_kinematics(robot, [0.2])[1][:3, :3] @ at_home(robot, "b")[:3, :3].T)
    np.testing.assert_allclose(hub.as_rotvec() / 0.2, expected, atol=1e-12)


def test_bodies_have_the_inertia_of_links(tmp_path):
    body = load(tmp_path, link("a")).model.bodies[0]
    R, about_centre = Rotation.from_euler("x", 0.4).as_matrix(), [[1.2, 0.1, -0.2], [0.1, 1.5, 0.3], [-0.2, 0.3, 1.9]]
    assert body.mass == 2.0 and body.com.tolist() == [0.1, -0.2, 0.3]
    np.testing.assert_allclose(body.inertia, R @ about_centre @ R.T, atol=1e-15)


def test_joint_properties(tmp_path):
    inside = """<axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>30</effort></limit>
      <dynamics><damping>0.7</damping><spring_stiffness>5</spring_stiffness><spring_reference>0.3</spring_reference>
      </dynamics><initial_position>0.4</initial_position></axis>
      <axis2><xyz>0 1 0</xyz><limit><lower>-1e16</lower><velocity>-1</velocity></limit></axis2>"""
    robot = load(tmp_path, link("a"), joint("j", "universal", "world", "a", inside), version="1.6")
    spec = robot.model.joints[0]
    assert robot.coordinate_names == ("j.angle1", "j.angle2") and robot.home.tolist() == [0.4, 0.0]
    assert spec.limits.tolist() == [[-1.0, 2.0], [-np.inf, np.inf]]
    assert (spec.effort_limit.tolist(), spec.velocity_limit.tolist()) == ([30.0, np.inf], [np.inf, np.inf])
    assert (spec.damping.tolist(), spec.stiffness.tolist(), spec.rest.tolist()) == ([0.7, 0.0], [5.0, 0.0], [0.3, 0.0])


@pytest.mark.parametrize(("edges", "tree", "cut"), [
    ([("j", "world", "a"), ("k", "a", "b"), ("l", "a", "c"), ("m", "b", "c")], "jkl", "m"),  # the first one declared
    ([("m", "b", "c"), ("l", "a", "c"), ("k", "a", "b"), ("j", "world", "a")], "mkj", "l"),
    ([("j", "a", "c"), ("k", "b", "c")], ["j", "k", "base"], ""),  # k holds b by its child
    ([("j", "world", "a"), ("k", "b", "c"), ("l", "a", "c")], "jkl", ""),  # here too: nothing else does
    ([("j", "a", "b"), ("k", "b", "c"), ("l", "c", "d"), ("m", "d", "a")], ["base", "j", "k", "l"], "m"),  # a ring
    ([("j", "a", "world"), ("k", "a", "b")], "jk", ""),
    ([("j", "world", "a"), ("k", "world", "a")], "j", "k"),
], ids=str)
def test_joints_that_make_no_tree_are_cut(tmp_path, edges, tree, cut):
    names = sorted({end for _, *ends in edges for end in ends} - {"world"})
    robot = load(tmp_path, *map(link, names), *(joint(name, "revolute", *ends) for name, *ends in edges))
    assert sorted(robot.joint_names) == sorted(tree)
    assert robot.loop_names == tuple(cut)


def test_a_joint_may_ask_to_be_cut(tmp_path):
    last = "<physics><simbody><must_be_loop_joint>true</must_be_loop_joint></simbody></physics>"
    axis = "<axis><xyz>0 0 1</xyz></axis>"
    robot = load(tmp_path, link("a"), joint("j", "revolute", "world", "a", axis + last),
                 joint("k", "revolute", "world", "a"))
    assert (robot.joint_names, robot.loop_names) == (("k",), ("j",))


@pytest.mark.parametrize(("kind", "axes", "rows"), [
    ("fixed", "", 6), ("revolute", AXES, 5), ("prismatic", AXES, 5), ("universal", AXES, 4), ("ball", "", 3),
    ("screw", AXES + "<thread_pitch>5</thread_pitch>", 5), ("revolute2", AXES, 4), ("continuous", AXES, 5)])
def test_cut_joints_keep_their_kind(tmp_path, kind, axes, rows):
    """The body that is held twice can move just as the cut joint alone would let it."""
    links, cut = link("a", A) + link("b", B), joint("j", kind, "world", "b", axes, J)
    robot = load(tmp_path, links, joint("p", "revolute", "world", "a"), joint("q", "ball", "a", "b", ""), cut)
    assert robot.loop_names == ("j",) and len(robot.row_names) == rows
    assert np.abs(ld.closure_error(robot, robot.home)).max() < 1e-14
    G = ld.constraint_jacobian(robot, robot.home)
    held = load(tmp_path, link("b", B), cut)
    alone, body = ld.body_jacobian(held, held.home, "b"), ld.body_jacobian(robot, robot.home, "b")
    # G v = 0 just where the body's twist is one of the joint alone
    off = np.linalg.svd(alone)[0][:, alone.shape[1]:] if alone.size else np.eye(6)
    rank = np.linalg.matrix_rank(np.vstack([G, off.T @ body]), 1e-9)
    assert rank == np.linalg.matrix_rank(G, 1e-9) == np.linalg.matrix_rank(off.T @ body, 1e-9) > 0


@pytest.mark.parametrize(("planet", "axis2", "sign"), [
    (("box", "planet"), "0 0 1", 1), (("box", "planet"), "0 0 -1", -1), (("planet", "box"), "0 0 1", -1)])
def test_a_gearbox_couples_two_joints(tmp_path, planet, axis2, sign):
    """theta_2 = -ratio theta_1, of the links against the reference body about the gearbox's axes."""
    gear = f"""<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>box</gearbox_reference_body>
      <axis><xyz>0 0 1</xyz></axis><axis2><xyz>{axis2}</xyz></axis2>"""
    robot = load(tmp_path, TRAIN, joint("p", "revolute", *planet), joint("gear", "gearbox", "sun", "planet", gear))
    assert robot.model.constraints[0].coefficients == {"s": 3.0, "p": sign}
    assert robot.constraint_names == ("gear",) and robot.loop_names == ()


def test_a_joint_that_mimics_another_one(tmp_path):
    mimic = """<axis><xyz>0 0 1</xyz><mimic joint="s"><multiplier>2</multiplier><offset>0.5</offset>
      <reference>0.1</reference></mimic></axis>"""
    robot = load(tmp_path, TRAIN, joint("p", "revolute", "box", "planet", mimic))
    assert robot.constraint_names == ("p mimic",)
    assert abs(ld.closure_error(robot, [0.4, 2 * (0.4 - 0.1) + 0.5])).max() < 1e-15


def test_the_base_floats_unless_it_is_held(tmp_path):
    robot = load(tmp_path, link("a", "0 0 2 0 0 0"), link("b"), base_name="root")
    assert [(each.name, each.kind) for each in robot.model.joints] == [("root", "free"), ("root b", "free")]
    assert robot.home[:7].tolist() == [0, 0, 0, 1, 0, 0, 2]
    held = load(tmp_path, link("a", "0 0 2 0 0 0"), link("b"), joint("j", "revolute", "a", "b"), floating_base=False)
    assert held.coordinate_names == ("j",) and at_home(held, "a")[2, 3] == 2.0


def test_static_models_stand_still(tmp_path):
    inside = link("foot") + link("top") + joint("k", "revolute", "foot", "top")
    post = f'<model name="post"><static>true</static>{inside}</model>'
    robot = load(tmp_path, post, link("a", "1 0 0 0 0 0"), joint("j", "revolute", "post::top", "a"))
    assert robot.coordinate_names == ("j",)
    assert {each.name: each.kind for each in robot.model.joints} == {
        "post::foot static": "fixed", "post::top static": "fixed", "j": "revolute"}


WORLD = f"""<sdf version="1.9"><world name="w"><gravity>0 0 -3.7</gravity><include><uri>model://sun</uri></include>
  <model name="rover"><pose relative_to="pad">0 0 1 0 0 0</pose>{link("hull")}</model>
  <frame name="pad"><pose>5 0 0 0 0 0</pose></frame><joint name="leash" type="ball"><parent>world</parent>
  <child>rover::hull</child></joint>{{}}</world></sdf>"""


def test_worlds(tmp_path):
    path = tmp_path / "mars.world"
    path.write_text(WORLD.format(""))
    with pytest.warns(ModelWarning, match="mars.world: left out included files that are not there: 'model://sun'"):
        robot = ld.load(path)
    assert robot.gravity.tolist() == [0, 0, -3.7] and robot.joint_names == ("leash",)
    np.testing.assert_allclose(at_home(robot, "hull"), pose(5, 0, 1))
    path.write_text(WORLD.format(f'<model name="rock">{link("stone")}</model>'))
    with pytest.raises(ModelError, match=r"mars.world: holds 2 models, 'rover', 'rock': name one, model='rover'"):
        ld.load(path)
    with pytest.warns(ModelWarning) as caught:
        rock = ld.load(path, model="rock", gravity=(0, 0, 0))
    assert any("joints with other models: 'leash'" in str(each.message) for each in caught)
    assert rock.body_names == ("stone",) and rock.joint_names == ("base",) and not rock.gravity.any()
