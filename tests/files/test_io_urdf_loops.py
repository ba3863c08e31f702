"""Loops and couplings of URDF files in all dialects.

The files in reference/urdf_plus are those of generalized_rbda (Chignoli et al.); what they mean is spelled out here: a
loop keeps two points of a plane together, a coupling's ratio times the coordinate of the predecessor's joint is that of
the successor's.
"""

import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.linalg

import liedyn as ld
from liedyn.files import load_urdf
from liedyn.machine.errors import InputError, ModelError, ModelWarning

FILES = Path(__file__).parents[1] / "reference" / "urdf_plus"

pytestmark = pytest.mark.filterwarnings(
    "ignore:body .* the largest principal moment:liedyn.machine.errors.ModelWarning")


def opened(tmp_path, name):
    """The robot of a file without its loops and couplings, and the XML."""
    xml = ElementTree.parse(FILES / f"{name}.urdf").getroot()
    for each in xml.findall("loop") + xml.findall("coupling"):
        xml.remove(each)
    path = tmp_path / "open.urdf"
    path.write_bytes(ElementTree.tostring(xml))
    return ld.load(path), ElementTree.parse(FILES / f"{name}.urdf").getroot()


def point(xml, names, q, v, link, offset):
    """Of a point of a planar linkage: position, Jacobian, and acceleration while the joints keep their speeds."""
    joints = {joint.find("child").get("link"): joint for joint in xml.findall("joint")}
    chain = []
    while link in joints:
        chain.insert(0, joints[link])
        link = joints[link].find("parent").get("link")
    ends = [float(joint.find("origin").get("xyz").split()[0]) for joint in chain[1:]] + [offset]
    at = complex(float(chain[0].find("origin").get("xyz").split()[0]))
    angle, speed, bias, pivots = 0.0, 0.0, 0.0, []
    for joint, end in zip(chain, ends):
        k = names.index(joint.get("name"))
        angle, speed = angle + q[k], speed + v[k]
        pivots.append((k, at))
        at = at + end * np.exp(1j * angle)
        bias = bias - speed**2 * end * np.exp(1j * angle)
    J = np.zeros((2, len(names)))
    for k, pivot in pivots:
        J[:, k] = [(1j * (at - pivot)).real, (1j * (at - pivot)).imag]
    return np.array([at.real, at.imag]), J, np.array([bias.real, bias.imag])


@pytest.mark.parametrize(("name", "guess", "freedoms"), [
    ("four_bar", [1.2, -1.3, 1.0], 1), ("planar_leg_linkage", [0.3, 0.9, 0.7, -0.4], 2)])
def test_loops_of_urdf_plus(tmp_path, name, guess, freedoms):
    robot = ld.load(FILES / f"{name}.urdf")
    tree, xml = opened(tmp_path, name)
    q, rng = ld.close(robot, guess), np.random.default_rng(0)

    def rows(v):
        ends = [(xml.find("loop").find(end), end) for end in ("predecessor", "successor")]
        one, two = (point(xml, list(tree.velocity_names), q, v, end.get("link"),
                          float(end.find("origin").get("xyz").split()[0])) for end, _ in ends)
        return [first - second for first, second in zip(one, two)]

    g, G, _ = rows(np.zeros(tree.nv))
    np.testing.assert_allclose(g, 0.0, atol=1e-12)
    assert tree.nv - np.linalg.matrix_rank(G) == freedoms == len(robot.model.independent)
    v, tau = scipy.linalg.null_space(G) @ rng.normal(size=freedoms), rng.normal(size=tree.nv)
    bias = rows(v)[2]
    M, h = ld.crba(tree, q), ld.rnea(tree, q, v, np.zeros(tree.nv))
    a = np.linalg.solve(np.block([[M, G.T], [G, np.zeros((2, 2))]]), [*(tau - h), *-bias])[:tree.nv]
    found = ld.forward_dynamics(robot, q, v, tau)
    assert found.rank == 2
    np.testing.assert_allclose(found.a, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())


@pytest.mark.parametrize(("name", "freedoms"), [("revolute_rotor_chain", 3), ("mini_cheetah", 18)])
def test_couplings_of_urdf_plus(tmp_path, name, freedoms):
    """v = S y in the independent coordinates y: a = S (S^T M S)^-1 S^T (tau - h)."""
    robot = ld.load(FILES / f"{name}.urdf")
    tree, xml = opened(tmp_path, name)
    holders = {joint.find("child").get("link"): joint.get("name") for joint in xml.findall("joint")}
    S = np.eye(tree.nv)
    for coupling in xml.findall("coupling"):
        ends = [coupling.find(tag).get("link") for tag in ("predecessor", "successor")]
        one, two = (tree.velocity_index(holders[end]) for end in ends)
        S[two] = float(coupling.find("ratio").get("value")) * S[one]
    S = S[:, [tree.velocity_index(name) for name in robot.model.independent]]
    rng = np.random.default_rng(1)
    y = rng.normal(size=freedoms)
    q, v, tau = ld.integrate(tree, tree.neutral, S @ y), S @ rng.normal(size=freedoms), rng.normal(size=tree.nv)
    np.testing.assert_allclose(ld.close(robot, q), q, atol=1e-12)
    M, h = ld.crba(tree, q), ld.rnea(tree, q, v, np.zeros(tree.nv))
    a = S @ np.linalg.solve(S.T @ M @ S, S.T @ (tau - h))
    np.testing.assert_allclose(ld.forward_dynamics(robot, q, v, tau).a, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def link(name):
    return f"""<link name="{name}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>"""


def joint(name, parent, child, xyz, kind="revolute", extra=""):
    return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{xyz}"/><axis xyz="0 0 1"/>{extra}</joint>"""


RHOMBUS = f"""<robot name="rhombus"><link name="frame"/> {"".join(map(link, ["left", "top", "right"]))}
  <link name="hook"/><link name="eye"/>
  {joint("a", "frame", "left", "0 0 0")} {joint("b", "left", "top", "1 0 0")} {joint("c", "frame", "right", "1 0 0")}
  {joint("hooked", "top", "hook", "1 0 0", "fixed")} {joint("eyed", "right", "eye", "1 0 0", "fixed")}
  EXTRA</robot>"""
LOOP = {"kind": "revolute", "parent": "hook", "child": "eye"}


def write(tmp_path, text, name="robot.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


def with_extra(tmp_path, extra="", **options):
    return load_urdf(write(tmp_path, RHOMBUS.replace("EXTRA", extra)), **options)


def assert_same(one, two):
    assert np.array_equal(one.packed.ints, two.packed.ints) and np.array_equal(one.packed.floats, two.packed.floats)


def plus(kind="revolute", extra='<axis xyz="0 0 1"/>'):
    return f"""<loop name="pin" type="{kind}"><predecessor link="top"><origin xyz="1 0 0"/></predecessor>
      <successor link="right"><origin xyz="1 0 0"/></successor>{extra}</loop>"""


def proposed(kind="revolute", extra='<parent_axis xyz="0 0 1"/>'):
    return f"""<constraint name="pin" type="{kind}"><parent link="top"/><parent_origin xyz="1 0 0"/>
      <child link="right"/><child_origin xyz="1 0 0"/>{extra}</constraint>"""


AT = {"parent": "top", "child": "right", "parent_placement": (1, 0, 0), "child_placement": (1, 0, 0)}


@pytest.mark.parametrize(("extra", "table"), [
    (plus(), {"kind": "revolute"}), (plus("continuous"), {"kind": "revolute"}),
    (plus("spherical"), {"kind": "spherical"}),
    (plus("fixed", ""), {"kind": "fixed"}), (plus(extra=""), {"kind": "revolute", "axis": (1, 0, 0)}),
    (plus("helical", '<axis xyz="0 0 1"/><pitch value="0.1"/>'), {"kind": "helical", "pitch": 0.1}),
    (plus("universal", '<axis2 xyz="0 1 0"/>'), {"kind": "universal"}),
    (proposed(), {"kind": "revolute"}), (proposed("link"), {"kind": "fixed"}),
    (proposed("spherical"), {"kind": "spherical"}),
    (proposed("universal", '<parent_axis xyz="0 1 0"/><child_axis xyz="0 0 1"/>'),
     {"kind": "universal", "axis": (0, 1, 0), "axis2": (0, 0, 1)}),
    (proposed("prismatic", '<parent_axis xyz="0 1 0"/><child_axis xyz="0 2 0"/>'),
     {"kind": "prismatic", "axis": (0, 1, 0)}),
])
def test_elements_of_loops(tmp_path, extra, table):
    robot = with_extra(tmp_path, extra)
    assert robot.loop_names == ("pin",)
    assert_same(robot, with_extra(tmp_path, loops={"pin": AT | table}))


@pytest.mark.parametrize(("extra", "words"), [
    (plus("rev"), ["loop 'pin'", "type", "did you mean 'revolute'"]),
    (plus().replace("<predecessor", "<predeccessor", 1).replace("</predecessor", "</predeccessor"),
     ["loop 'pin'", "no <predecessor>"]),
    (plus().replace('link="top"', 'link="tob"'), ["loop 'pin'", "'tob'", "did you mean 'top'"]),
    (plus("free"), ["loop 'pin'", "unknown 'free'"]),
    ("<loop/>", ["loop: missing 'name'"]),
    (proposed("rigid"), ["constraint 'pin'", "unknown 'rigid'"]),
    (proposed(extra='<parent_axis xyz="0 0 1"/><child_axis xyz="1 0 0"/>'), ["child_axis", "parallel"]),
    ('<coupling name="gear"><predecessor link="top"/><successor link="right"/></coupling>',
     ["coupling 'gear'", "no <ratio>"]),
    ('<coupling name="gear" type="belt"><predecessor link="a"/><successor link="b"/><ratio value="2"/></coupling>',
     ["coupling 'gear'", "unknown 'belt'"]),
    ('<coupling name="gear"><predecessor link="frame"/><successor link="frame"/><ratio value="2"/></coupling>',
     ["'gear'", "coefficients"]),
])
def test_bad_elements(tmp_path, extra, words):
    with pytest.raises(ModelError) as caught:
        with_extra(tmp_path, extra)
    for word in ["robot.urdf", *words]:
        assert word in str(caught.value)


def test_the_coordinates_on_the_way_are_coupled(tmp_path):
    """Up to the nearest common ancestor of the two links; fixed joints have none."""
    gear = '<coupling name="gear"><predecessor link="hook"/><successor link="eye"/><ratio value="2"/></coupling>'
    assert with_extra(tmp_path, gear).model.constraints[0].coefficients == {"a": 2.0, "b": 2.0, "c": -1.0}
    gear = '<coupling name="gear"><predecessor link="left"/><successor link="top"/><ratio value="2"/></coupling>'
    assert with_extra(tmp_path, gear).model.constraints[0].coefficients == {"b": -1.0}


def test_pairs_of_frames(tmp_path):
    pairs = with_extra(tmp_path, loops=[("hooked", "eye"), ["hook", "ground", "spherical"]])
    assert pairs.loop_names == ("hooked eye", "hook ground")
    tables = {"hooked eye": LOOP | {"kind": "fixed"},
              "hook ground": {"kind": "spherical", "parent": "hook", "child": "ground"}}
    assert_same(pairs, with_extra(tmp_path, loops=tables))


@pytest.mark.parametrize("pair", ["hook", ("hook",), ("hook", "eye", "fixed", "more"), ("hook", 3)])
def test_bad_pairs(tmp_path, pair):
    with pytest.raises(InputError, match="loops: expected names of two frames"):
        with_extra(tmp_path, loops=[pair])


def test_bad_names_in_pairs(tmp_path):
    with pytest.raises(ModelError, match=r"loops.hook eyes\]: child_frame: unknown 'eyes', did you mean"):
        with_extra(tmp_path, loops=[("hook", "eyes")])
    with pytest.raises(ModelError, match="did you mean 'spherical'"):
        with_extra(tmp_path, loops=[("hook", "eye", "sphericl")])
    with pytest.raises(ModelError, match="'hook eye': declared twice"):
        with_extra(tmp_path, loops=[("hook", "eye"), ("hook", "eye", "spherical")])


YAML = """closed_loop: [['hooked', 'eyed']]
type: ['3d']
name_mot: ['a']
joint_name: ['b', 'hooked']
joint_type: ['CARDAN', 'FIXED']
"""


def test_yaml_sidecar(tmp_path):
    """Loops, motors and kinds of joints as example-parallel-robots writes them."""
    pytest.importorskip("yaml", reason="PyYAML reads them")
    plain = with_extra(tmp_path)
    write(tmp_path, YAML, "robot.yaml")
    robot = with_extra(tmp_path)
    assert robot.velocity_names == ("a", "b.angle1", "b.angle2", "c")
    assert robot.loop_names == ("hooked eyed",) and robot.model.loops[0].kind == "spherical"
    assert [actuator.gears for actuator in robot.model.actuators] == [{"a": 1.0}]
    assert_same(with_extra(tmp_path, loops={}), plain)
    write(tmp_path, "closed_loop: [[hook, eye]]\n", "robot.yaml")
    assert with_extra(tmp_path).model.loops[0].kind == "fixed"
    write(tmp_path, "rate: 100\n", "robot.yaml")  # of somebody else
    assert_same(with_extra(tmp_path), plain)


def test_unknown_keys_of_yaml_are_told(tmp_path):
    pytest.importorskip("yaml", reason="PyYAML reads them")
    write(tmp_path, YAML + "joint_typ: [SPHERICAL]\n", "robot.yaml")
    with pytest.warns(ModelWarning, match="robot.yaml: left out 'joint_typ', did you mean 'joint_type'"):
        with_extra(tmp_path)


@pytest.mark.parametrize("axes", ["XY", "XZ", "YX", "YZ", "ZX", "ZY"])
def test_universal_joints_of_yaml(tmp_path, axes):
    """About these axes of the joint's frame, one after the other, as Gepetto's loader adds them."""
    pytest.importorskip("yaml", reason="PyYAML reads them")
    write(tmp_path, YAML.replace("CARDAN", f"UJOINT_{axes}"), "robot.yaml")
    robot = with_extra(tmp_path)
    joint = next(each for each in robot.model.joints if each.name == "b")
    assert joint.kind == "universal"
    np.testing.assert_array_equal(joint.axes, [np.eye(3)["XYZ".index(each)] for each in axes])


@pytest.mark.parametrize(("old", "new", "words"), [
    ("'3d'", "'4d'", ["type", "unknown '4d'"]), ("'3d'", "'3d', '3d'", ["type", "one entry"]),
    ("'CARDAN'", "'HINGE'", ["joint_type", "'HINGE'"]), ("'b'", "'bb'", ["joint_name", "'bb'", "did you mean 'b'"]),
    ("'hooked', 'eyed'", "'hooked'", ["closed_loop", "pairs"]), ("'eyed'", "'eyes'", ["child_frame", "'eyes'"]),
    ("[['hooked', 'eyed']]", "3", ["closed_loop", "list", "3"]), ("'a'", "'aa'", ["actuator 'aa'", "did you mean 'a'"]),
    ("type:", "type: [", ["not YAML"]), ("'eyed'", "7", ["child_frame", "unknown '7'"]),
    ("'hooked', 'eyed'", "'hooked', ['eyed']", ["closed_loop", "name", "['eyed']"]),
    ("'hooked', 'eyed'", "'hooked', &x 'eyed'], ['hooked', *x", ["closed_loop", "'eyed'", "twice"]),
    ("'hooked', 'eyed'", "*x, 'eyed'", ["aliases"]), ("'hooked'", "!!python/name:os.system 'hooked'", ["tag"]),
    ("type:", "closed_loop: []\ntype:", ["'closed_loop'", "twice"]), ("type:", "<<: &x {a: [*x]}\ntype:", ["aliases"]),
    ("type:", f"x: {'[' * 30}\ntype:", ["within one another"]), ("type:", "%TAG !x! y\ntype:", ["directives"]),
])
def test_bad_yaml(tmp_path, old, new, words):
    pytest.importorskip("yaml", reason="PyYAML reads them")
    assert old in YAML
    write(tmp_path, YAML.replace(old, new, 1), "robot.yaml")
    with pytest.raises(ModelError) as caught:
        with_extra(tmp_path)
    for word in ["robot.urdf", *words]:
        assert word in str(caught.value)


def test_without_pyyaml_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(tmp_path, YAML, "robot.yaml")
    with pytest.raises(ModelError, match=r"robot.yaml: .*pip install 'liedyn\[yaml\]'"):
        with_extra(tmp_path)


def test_mimic(tmp_path):
    """One degree of freedom less; c = 2 a + 0.5."""
    mimic = '<mimic joint="a" multiplier="2" offset="0.5"/>'
    text = RHOMBUS.replace(joint("c", "frame", "right", "1 0 0"), joint("c", "frame", "right", "1 0 0", extra=mimic))
    robot = load_urdf(write(tmp_path, text.replace("EXTRA", "")))
    assert robot.constraint_names == ("c mimic",)
    q = ld.close(robot, [0.3, 0.2, 0.1], a=0.3)
    assert q[2] == pytest.approx(2.0 * 0.3 + 0.5, abs=1e-12)
    a = ld.forward_dynamics(robot, q, [1.0, 0.0, 2.0], np.zeros(3))
    assert a.rank == 1 and a.a[2] == pytest.approx(2.0 * a.a[0], rel=1e-12)


@pytest.mark.parametrize(("old", "new", "words"), [
    ('joint="a"', 'joint="aa"', ["unknown 'aa'", "did you mean 'a'"]), ('joint="a"', 'joint="c"', ["mimics itself"]),
    ('joint="a"', 'joint="hooked"', ["'hooked'", "fixed", "one coordinate"]), ('joint="a"', "", ["missing 'joint'"]),
    ('multiplier="2"', 'multiplier="x"', ["multiplier", "'x'"]),
])
def test_bad_mimic(tmp_path, old, new, words):
    mimic = '<mimic joint="a" multiplier="2"/>'
    text = RHOMBUS.replace(joint("c", "frame", "right", "1 0 0"),
                           joint("c", "frame", "right", "1 0 0", extra=mimic.replace(old, new)))
    with pytest.raises(ModelError) as caught:
        load_urdf(write(tmp_path, text.replace("EXTRA", "")))
    for word in ["robot.urdf", "'c", *words]:
        assert word in str(caught.value)


def test_joints_that_mimic_each_other_are_refused(tmp_path):
    """Such a circle would hold all of them still; a chain does not."""
    def text(follows):
        return RHOMBUS.replace("EXTRA", "").replace(joint("a", "frame", "left", "0 0 0"), joint(
            "a", "frame", "left", "0 0 0", extra=f'<mimic joint="{follows}" multiplier="3"/>')).replace(
            joint("c", "frame", "right", "1 0 0"), joint(
                "c", "frame", "right", "1 0 0", extra='<mimic joint="a" multiplier="2"/>'))

    with pytest.raises(ModelError, match="'c', mimic: mimics itself through 'a'"):
        load_urdf(write(tmp_path, text("c")))
    assert load_urdf(write(tmp_path, text("b"))).constraint_names == ("a mimic", "c mimic")


def test_a_root_called_ground_is_the_ground(tmp_path):
    plain = with_extra(tmp_path)
    robot = load_urdf(write(tmp_path, RHOMBUS.replace("EXTRA", "").replace('"frame"', '"ground"')))
    assert "ground" not in robot.body_names and robot.joint_names == plain.joint_names == ("a", "b", "c")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ld.rnea(robot, q, v, v), ld.rnea(plain, q, v, v))


def test_what_a_link_called_ground_cannot_be(tmp_path):
    text = RHOMBUS.replace("EXTRA", "")
    with pytest.raises(ModelError, match="'ground': the ground cannot float"):
        load_urdf(write(tmp_path, text.replace('"frame"', '"ground"')), floating_base=True)
    with pytest.raises(ModelError, match="'ground': only a root link can be the ground"):
        load_urdf(write(tmp_path, text.replace('"top"', '"ground"')))
    heavy = text.replace('<link name="frame"/>', link("ground")).replace('"frame"', '"ground"')
    with pytest.warns(ModelWarning, match="left out the inertia of the root link: 'ground'"):
        load_urdf(write(tmp_path, heavy))


@pytest.mark.parametrize(("old", "new"), [
    ("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="x"/></robot><robot'),
    ("EXTRA", '<xacro:property name="x" value="1"/>'), ('xyz="1 0 0"', 'xyz="${length} 0 0"'),
])
def test_templates_are_refused(tmp_path, old, new):
    text = RHOMBUS.replace(old, new, 1)
    if "</robot><robot" in text:
        text = text[:text.index("<robot", 5)].replace("</robot>", "<link name='a'/></robot>")
    with pytest.raises(ModelError, match="robot.urdf: a xacro template, .*expand it first"):
        load_urdf(write(tmp_path, text))


def test_the_namespace_of_xacro_alone_is_no_template(tmp_path):
    text = RHOMBUS.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"').replace("EXTRA", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(load_urdf(write(tmp_path, text)), with_extra(tmp_path))


def test_limits_beyond_all_numbers_are_none(tmp_path):
    text = RHOMBUS.replace("EXTRA", "").replace(
        joint("c", "frame", "right", "1 0 0"), joint("c", "frame", "right", "1 0 0", extra=(
            '<limit lower="-1.7976931348623157e308" upper="1e30" effort="1e31" velocity="2"/>')))
    robot = load_urdf(write(tmp_path, text))
    assert (robot.lower[2], robot.upper[2]) == (-np.inf, np.inf)
    assert (robot.effort_limit[2], robot.velocity_limit[2]) == (np.inf, 2.0)
