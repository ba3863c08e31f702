"""URDF files against Pinocchio's own reader, and loops from arguments and sidecar files."""

import warnings

import numpy as np
import pytest
from mechanisms import Unpacked, random_q

import liedyn as ld
from liedyn.files import load_urdf
from liedyn.files.orderings import pinocchio
from liedyn.machine.errors import ModelError, ModelWarning

pin = pytest.importorskip("pinocchio")

INERTIAL = """<inertial><origin xyz="{}" rpy="{}"/><mass value="{}"/>
  <inertia ixx="1.2" ixy="0.1" ixz="-0.2" iyy="1.5" iyz="0.3" izz="1.9"/></inertial>"""


def link(name, xyz="0 0 0", rpy="0 0 0", mass=1.0):
    return f'<link name="{name}">{INERTIAL.format(xyz, rpy, mass)}</link>'


def joint(name, kind, parent, child, xyz="0 0 0", rpy="0 0 0", extra=""):
    return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{xyz}" rpy="{rpy}"/>{extra}</joint>"""


TREE = f"""<robot name="tree">
  <link name="base"><visual><geometry><mesh filename="package://missing/base.dae"/></geometry></visual></link>
  {link("shoulder", "0.1 0.2 -0.3", "0.3 -0.2 0.9", 2.5)}
  {link("upper", "0.1 0 0", "0 1.5707963267948966 0")}
  {link("hand", "0 0 0.4", mass=0.7)} {link("finger", "0.05 0 0")}
  {link("puck")} {link("kite", "0 0.3 0")} {link("wheel")}
  <link name="tool0"/>
  {joint("pan", "revolute", "base", "shoulder", "0 0 0.3", "0.1 0.2 0.3",
         '<axis xyz="1 2 2"/><limit lower="-1" upper="2" effort="30" velocity="3"/><dynamics damping="0.7"/>')}
  {joint("lift", "prismatic", "shoulder", "upper", "0.5 0 0", "-1.5707963267948966 0 0",
         '<axis xyz="0 -1 0"/><limit lower="0" upper="0.4" effort="100" velocity="1"/>')}
  {joint("bolt", "fixed", "upper", "hand", "0 0.1 0.2", "1 2 3", '<dynamics damping="0.1"/>')}
  {joint("grip", "revolute", "hand", "finger", "0.3 0 0", "0 0 1",
         '<axis xyz="0 0 -1"/><limit effort="1" velocity="1"/>')}
  {joint("tip", "fixed", "finger", "tool0", "0.3 0 0", "0 0 1")}
  {joint("table", "planar", "base", "puck", "1 0 0", "0.5 0 0.2", '<axis xyz="0 0 1"/>')}
  {joint("string", "floating", "puck", "kite", "0 0 2")}
  {joint("spin", "continuous", "upper", "wheel", "0 0 1", "0.4 0 0", '<axis xyz="1 0 0"/>')}
</robot>"""


def write(tmp_path, text, name="tree.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("floating_base", [False, True])
def test_against_pinocchio(tmp_path, floating_base):
    """Every link at its place, and the same mass matrix, at random configurations."""
    path = write(tmp_path, TREE)
    robot = load_urdf(path, floating_base=floating_base)
    root = (pin.JointModelFreeFlyer(),) if floating_base else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    order = pinocchio(robot, model)
    data, packed, rng = model.createData(), Unpacked(robot), np.random.default_rng(0)
    for _ in range(5):
        q = random_q(rng, robot)
        theirs = order.to_theirs(q)
        pin.framesForwardKinematics(model, data, theirs)
        for name, pose in zip(robot.body_names, packed.body_poses(q)):
            expected = data.oMf[model.getFrameId(name, pin.FrameType.BODY)].homogeneous
            np.testing.assert_allclose(pose, expected, atol=1e-13, err_msg=name)
        M = np.triu(pin.crba(model, data, theirs))
        T = order.velocity_matrix(q)
        np.testing.assert_allclose(np.triu(T @ packed.mass_matrix(q) @ T.T), M, atol=1e-11)


def test_joint_properties(tmp_path):
    robot = load_urdf(write(tmp_path, TREE))
    pan, lift, grip = (robot.velocity_index(name) for name in ("pan", "lift", "grip"))
    damping = Unpacked(robot).dof_floats[:, 1]
    assert damping[pan] == 0.7 and damping.sum() == 0.7
    q_pan, q_lift, q_grip = (robot.coordinate_index(name) for name in ("pan", "lift", "grip"))
    assert (robot.lower[q_pan], robot.upper[q_pan], robot.upper[q_lift]) == (-1.0, 2.0, 0.4)
    assert (robot.lower[q_grip], robot.upper[q_grip]) == (-np.inf, np.inf)
    assert (robot.effort_limit[pan], robot.velocity_limit[pan], robot.velocity_limit[lift]) == (30.0, 3.0, 1.0)
    assert robot.effort_limit[grip] == 1.0
    assert robot.body_names[0] == "base" and robot.model.bodies[0].mass == 0.0


LOOPS = """
[loops.weld]
kind = "revolute"
parent_frame = "grip"
child_frame = "wheel"
child_placement = { xyz = [0.1, 0, 0] }
axis = [0, 1, 0]

[loops.rope]
kind = "inline"
parent = "ground"
child = "tool0"
"""


def test_loops_from_argument_and_sidecar(tmp_path):
    """A joint's frame is that of its child link."""
    path = write(tmp_path, TREE)
    assert load_urdf(path).loop_names == ()
    weld = {"kind": "revolute", "parent": "finger", "child": "wheel", "child_placement": (0.1, 0, 0), "axis": (0, 1, 0)}
    rope = {"kind": "inline", "parent": "ground", "child": "tool0"}
    by_argument = load_urdf(path, loops={"weld": weld, "rope": rope})
    write(tmp_path, LOOPS, "tree.loops.toml")
    by_sidecar = load_urdf(path)
    assert by_sidecar.loop_names == ("weld", "rope")
    assert all(np.array_equal(*both) for both in zip(by_argument.packed, by_sidecar.packed))
    assert load_urdf(path, loops={}).loop_names == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"grip"', '"gripp"', ["[loops.weld]", "parent_frame", "'gripp'", "did you mean 'grip'"]),
        ('"inline"', '"inlin"', ["[loops.rope]", "kind", "did you mean 'inline'"]),
        ("axis", "axes", ["[loops.weld]", "'axes'", "did you mean 'axis'"]),
        ('parent = "ground"', 'parent = "ground"\nparent_frame = "pan"', ["[loops.rope]", "not both"]),
        ("[loops.rope]", "[lops.rope]", ["tree.loops.toml", "'lops'"]),
        ("[loops.rope]", "[loops.rope", ["tree.loops.toml", "not TOML"]),
        ('"grip"', "{}", ["tree.loops.toml: [loops.weld]", "parent_frame", "unknown {}"]),
        ('kind = "inline"', "", ["tree.loops.toml: [loops.rope]", "missing key 'kind'"]),
    ],
)
def test_bad_sidecar(tmp_path, old, new, words):
    write(tmp_path, LOOPS.replace(old, new, 1), "tree.loops.toml")
    with pytest.raises(ModelError) as caught:
        load_urdf(write(tmp_path, TREE))
    for word in ["tree.urdf", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</robot>", '<joint name="x"', ["tree.urdf"]),
        ('type="planar"', 'type="plane"', ["'table'", "did you mean 'planar'"]),
        ('<axis xyz="1 2 2"/>', '<axis xyz="0 0 0"/>', ["'pan'", "axis", "zero"]),
        ('<mass value="2.5"/>', '<mass value="-2.5"/>', ["'shoulder'", "mass", "-2.5"]),
        ('<link name="tool0"/>', '<link name="tool0"/><link name="stray"/>', ["no joint holds 'base', 'stray'"]),
        ('<child link="wheel"/>', '<child link="whel"/>', ["'spin'", "child", "'whel'", "did you mean 'wheel'"]),
        ('damping="0.7"', 'damping="much"', ["'pan'", "damping", "much"]),
        ('damping="0.7"', 'damping=""', ["'pan'", "dynamics, damping", "one number", "''"]),
        ('damping="0.7"', 'damping="inf"', ["'pan'", "damping", "finite"]),
        ('damping="0.7"', 'damping="1_0"', ["'pan'", "dynamics, damping", "numbers", "'1_0'"]),
        ('xyz="0 0 0.3"', 'xyz="5"', ["'pan'", "origin, xyz", "3 numbers", "[5.0]"]),
        ('rpy="0.1 0.2 0.3"', 'rpy="0 0"', ["'pan'", "origin, rpy", "3 numbers"]),
        ('xyz="1 2 2"', 'xyz="1 2"', ["'pan'", "axis", "3 numbers"]),
        ('xyz="1 2 2"', 'xyz="1,2,2"', ["'pan'", "axis", "expected numbers", "1,2,2"]),
        ('xyz="1 2 2"', 'xyz="1e200 0 0"', ["'pan'", "axis", "too large"]),
        ('effort="30"', 'effort="-1"', ["'pan'", "effort", "-1"]),
        ('effort="30"', f'effort="{"x" * 1000}"', ["'pan'", "limit, effort", "xxx..."]),
        ('<mass value="2.5"/>', "", ["'shoulder'", "no <mass>"]),
        ('<mass value="2.5"/>', '<mass value="2.5"/><mass value="1"/>', ["'shoulder'", "2 <mass>"]),
        ('<mass value="2.5"/>', '<mass value="1e308"/>', ["'shoulder'", "mass", "too large"]),
        ('ixx="1.2" ', "", ["'shoulder'", "missing 'ixx' of <inertia>"]),
        ('<parent link="base"/>', "", ["'pan'", "no <parent>"]),
        ('name="pan" ', "", ["joint", "missing 'name'"]),
        ('<robot name="tree">', "<robot>", ["robot", "missing 'name'"]),
        ('<robot name="tree">', '<tobor name="tree">', ["not a URDF", "mismatched tag"]),
        ('damping="0.7"', 'damping="0.7" friction="x"', ["'pan'", "dynamics, friction", "numbers", "'x'"]),
        ("<robot", '<!DOCTYPE robot [<!ENTITY e SYSTEM "tree.urdf">]>&e;<robot', ["not a URDF"]),
        ("<robot", '<?xml version="1.0" encoding="klingon"?><robot', ["not a URDF", "encoding"]),
    ],
)
def test_bad_urdf(tmp_path, old, new, words):
    assert old in TREE
    with pytest.raises(ModelError) as caught:
        load_urdf(write(tmp_path, TREE.replace(old, new)))
    assert len(str(caught.value)) < 500
    for word in ["tree.urdf", *words]:
        assert word in str(caught.value)


def test_a_sidecar_that_cannot_be_read_is_not_passed_over(tmp_path):
    path = write(tmp_path, TREE)
    (tmp_path / "tree.loops.toml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="tree.loops.toml: cannot be read"):
        load_urdf(path)


def test_the_name_of_a_file_may_be_any_bytes(tmp_path):
    assert load_urdf(write(tmp_path, TREE, "tree\udcff.urdf")).source == "tree?.urdf"


def test_bounds_may_be_infinite(tmp_path):
    robot = load_urdf(write(tmp_path, TREE.replace('effort="30" velocity="3"', 'effort="inf" velocity="1e400"')))
    pan = robot.velocity_index("pan")
    assert robot.effort_limit[pan] == robot.velocity_limit[pan] == np.inf


def test_elements_may_be_in_a_namespace(tmp_path):
    robot = load_urdf(write(tmp_path, TREE.replace("<robot", '<robot xmlns="https://example.org/urdf"')))
    assert np.array_equal(robot.packed.floats, load_urdf(write(tmp_path, TREE)).packed.floats)


@pytest.mark.parametrize(("old", "new", "words"), [
    ('<dynamics damping="0.7"/>', '<dynamics damping="0.7" friction="2"/>', "dry friction of joints: 'pan'"),
    ('<dynamics damping="0.7"/>', '<joint_properties damping="0.7" friction="2"/>', "dry friction of joints: 'pan'"),
    ('<axis xyz="1 2 2"/>', '<axis xyz="1 2 2"/><safety_controller/>', "safety controllers of joints: 'pan'"),
    ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><limit effort="1" velocity="0"/>', "limits of planar joints: 'table'"),
    ('<axis xyz="1 0 0"/>', '<axis xyz="1 0 0"/><limit upper="1"/>', "limits of continuous joints: 'spin'"),
    ('<dynamics damping="0.1"/>', '<mimic joint="pan"/>', "what fixed joints mimic: 'bolt'"),
    ("</robot>", "<robots/><robots/></robot>", "elements that URDF does not have: 'robots' in robot 'tree'"),
])
def test_what_is_left_out_is_a_warning(tmp_path, old, new, words):
    """The robot is the one without it."""
    assert old in TREE
    with pytest.warns(ModelWarning, match=f"tree.urdf: left out .*{words}") as caught:
        robot = load_urdf(write(tmp_path, TREE.replace(old, new)))
    assert len(caught) == 1
    assert np.array_equal(robot.packed.floats, load_urdf(write(tmp_path, TREE)).packed.floats)


def test_one_warning_for_many_joints(tmp_path):
    links = "".join(link(f"l{k}") for k in range(41))
    rubbing = '<dynamics friction="1"/>'
    joints = "".join(joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", extra=rubbing) for k in range(40))
    with pytest.warns(ModelWarning, match=r"'j0', 'j1', .*'j11', \.\.\. \(40 in all\)$") as caught:
        load_urdf(write(tmp_path, f'<robot name="chain">{links}{joints}</robot>'))
    assert len(caught) == 1


def test_nothing_is_left_out_of_files_that_say_no_more(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_urdf(write(tmp_path, TREE.replace('damping="0.7"', 'damping="0.7" friction="0.0"')))


def test_negative_moments_that_are_next_to_nothing(tmp_path):
    """As of TIAGo's antennas, 1e-6 kg: the robot moves as Pinocchio says, which takes them as they are."""
    bad = ('<link name="tool0"><inertial><mass value="1e-6"/><inertia ixx="2.4e-8" ixy="6.1e-8" ixz="0" iyy="2.8e-8" '
           'iyz="0" izz="3.8e-8"/></inertial></link>')
    path = write(tmp_path, TREE.replace('<link name="tool0"/>', bad))
    with pytest.warns(ModelWarning, match="'tool0', inertia: .* negative .* -3.5.*e-08, taken as zero") as caught:
        robot = load_urdf(path)
    assert len(caught) == 1 and caught[0].filename == __file__
    model, rng = pin.buildModelFromUrdf(str(path)), np.random.default_rng(2)
    order, q, a = pinocchio(robot, model), random_q(rng, robot), rng.normal(size=robot.nv)
    T = order.velocity_matrix(q)
    theirs = T.T @ pin.rnea(model, model.createData(), order.to_theirs(q), np.zeros(model.nv), T @ a)
    np.testing.assert_allclose(ld.rnea(robot, q, np.zeros(robot.nv), a), theirs, atol=1e-7)  # by the size of the moment
    with pytest.raises(ModelError, match="'tool0', inertia: has the negative principal moment"):
        load_urdf(write(tmp_path, TREE.replace('<link name="tool0"/>', bad.replace("e-8", "e-4"))))


def test_limits_that_look_like_degrees(tmp_path):
    def text(low, up):
        return (f'<robot name="arm">{link("a")}{link("b")}'
                + joint("elbow", "revolute", "a", "b", extra=f'<limit lower="{low}" upper="{up}"/>') + "</robot>")

    with pytest.warns(ModelWarning, match="limits of 'elbow' are more than two turns: are they in degrees"):
        robot = load_urdf(write(tmp_path, text(-120, 90)))
    assert (robot.lower[0], robot.upper[0]) == (-120.0, 90.0)  # what the file says
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for low, up in ((-10, 10), (-6.3, 6.3), (-1e9, 1e9)):
            load_urdf(write(tmp_path, text(low, up)))


def test_a_link_that_stands_twice_is_no_other_link(tmp_path):
    """Its second inertia took the place of the first one."""
    with pytest.raises(ModelError, match="link 'base': declared twice"):
        load_urdf(write(tmp_path, TREE.replace("</robot>", link("base", mass=7.0) + "</robot>")))


@pytest.mark.parametrize(("kind", "words"), [
    ("rolling", "known: .*'disk_on_plane', .*'sphere_on_plane'"), ("on_plan", "did you mean 'on_plane'")])
def test_kinds_that_are_unlike_any_are_all_told(kind, words):
    b = ld.Builder.of(ld.load("panda"))
    with pytest.raises(ModelError, match=f"unknown '{kind}', {words}"):
        b.constraint("wheel", kind, "ground", "panda_hand")
