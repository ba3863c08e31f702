"""What URDF and SDFormat files say besides what is read is told, at any depth; rotations as quaternions; choices of
independent coordinates that do not fit."""
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from sdf_files import link as sdf_link
from sdf_files import load as load_sdf

import liedyn as ld
from liedyn.files.known import SDF, URDF, strangers
from liedyn.machine.errors import ModelError, ModelWarning
from liedyn.files.declared_coordinates import fitting

INERTIA = '<inertia ixx="1" ixy="0.1" ixz="0" iyy="1.2" iyz="0" izz="1.1"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0"/><mass value="2"/>{INERTIA}</inertial>'
ARM = f"""<robot name="arm" xmlns:drake="http://drake.mit.edu" version="1.0"><link name="base"/>
  <link name="upper">{INERTIAL}<visual name="v"><origin xyz="0 0 1"/><geometry><box size="1 1 1"/></geometry>
    <material name="red"><color rgba="1 0 0 1"/></material></visual></link>
  <link name="lower">{INERTIAL}<collision><geometry><sphere radius="1"/></geometry></collision></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="1 0 0" rpy="0 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="3"/>
    <dynamics damping="0.5" friction="0"/></joint>
  <joint name="b" type="continuous"><parent link="upper"/><child link="lower"/><mimic joint="a" multiplier="2"/></joint>
  <transmission name="t"><type>simple</type><joint name="a"/><actuator name="m"/></transmission>
  <gazebo reference="upper"><mu1>0.2</mu1></gazebo><sensor name="s"><parent link="upper"/></sensor></robot>"""


def told(tmp_path, text, name="arm.urdf"):
    """The robot and the texts of its warnings."""
    (tmp_path / name).write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = ld.load(tmp_path / name)
    return robot, [str(each.message) for each in caught]


def test_what_is_known_is_not_told(tmp_path):
    assert told(tmp_path, ARM)[1] == []


@pytest.mark.parametrize(("old", "new", "words"), [
    ('<mass value="2"/>', '<mass value="2" valeu="3"/>',
     "attributes .* 'valeu' in <mass> of link 'upper', did you mean 'value'"),
    ("<inertial>", "<inertial><orign xyz='1 0 0'/>",
     "elements .* 'orign' in <inertial> of link 'upper', did you mean 'origin'"),
    (INERTIA, INERTIA.replace("/>", ' izy="0.2"/>'), "'izy' in <inertia> of link 'upper', did you mean 'iyz'"),
    ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0" yxz="1 0 0"/>', "'yxz' in <axis> of joint 'a', did you mean 'xyz'"),
    ("<dynamics", "<dynamic damping='2'/><dynamics", "'dynamic' in joint 'a', did you mean 'dynamics'"),
    ("<dynamics", "<dynamics dampng='2'", "'dampng' in <dynamics> of joint 'a', did you mean 'damping'"),
    ('multiplier="2"', 'multiplier="2" ofset="1"', "'ofset' in <mimic> of joint 'b', did you mean 'offset'"),
    ("<limit", "<limit uper='3'", "'uper' in <limit> of joint 'a', did you mean 'upper'"),
    ('<box size="1 1 1"/>', '<box size="1 1 1"><depth/></box>', "elements .* 'depth' in <box> of visual 'v'"),
    ("<color ", "<color alpha='1' ", "'alpha' in <color> of material 'red'"),
    ("<limit", "<limit drake:acceleration='2'", "what Drake adds: 'drake:acceleration' in <limit> of joint 'a'"),
    ('<actuator name="m"/>', '<actuator name="m"><drake:gear_ratio value="9"/></actuator>',
     "what Drake adds: 'drake:gear_ratio' in transmission 't'"),
    ("</robot>", "<drake:joint name='j'/></robot>", "what Drake adds: 'drake:joint' in robot 'arm'"),
    ("<limit", "<limit jerk='2'", "limits of accelerations: 'jerk' in <limit> of joint 'a'"),
    ("<mu1>", "<joint name='pin' type='revolute'/><mu1>", "joints within <gazebo>, which may close loops: 'pin'"),
])
def test_strangers_of_urdf(tmp_path, old, new, words):
    """They are told, and the robot is the one without them."""
    assert old in ARM
    robot, texts = told(tmp_path, ARM.replace(old, new, 1))
    assert len(texts) == 1 and texts[0].startswith("arm.urdf: left out ")
    assert re.search(words, texts[0])
    assert np.array_equal(robot.packed.floats, told(tmp_path, ARM)[0].packed.floats)


def test_there_may_be_many_strangers(tmp_path):
    _, [text] = told(tmp_path, ARM.replace("</robot>", "".join(f"<zz{k}/>" for k in range(5000)) + "</robot>"))
    assert len(text) < 1000 and text.endswith("(5000 in all)")


def test_a_misspelt_attribute_that_must_be_there_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="link 'upper': missing 'ixz' of <inertia>, which has 'izx'"):
        told(tmp_path, ARM.replace("ixz", "izx"))


@pytest.mark.parametrize(("inside", "words"), [
    ("<link name='c'><inertail/></link>", "'inertail' in link 'c', did you mean 'inertial'"),
    (sdf_link("c").replace("<iyy>", "<yyi>3</yyi><iyy>"), "'yyi' in <inertia> of link 'c', did you mean 'iyy'"),
    (sdf_link("c", extra="<visual name='v'><geometry><sphere><radus>1</radus><radius>1</radius></sphere></geometry>"
              "</visual>"), "'radus' in <sphere> of visual 'v', did you mean 'radius'"),
    ("<joint name='j' type='revolute'><parent>a</parent><child>c</child><axis><xyz>0 0 1</xyz><limit><uper>1</uper>"
     "</limit></axis></joint>" + sdf_link("c"), "'uper' in <limit> of joint 'j', did you mean 'upper'"),
    (sdf_link("c", attributes="relativ_to='a'"), "'relativ_to' in <pose> of link 'c', did you mean 'relative_to'"),
    ("<model name='in'><lik/>" + sdf_link("d") + "</model>", "'lik' in model 'in', did you mean 'link'"),
])
def test_strangers_of_sdf(tmp_path, inside, words):
    with pytest.warns(ModelWarning, match=f"thing.sdf: left out .* that SDFormat does not have: .*{words}"):
        load_sdf(tmp_path, sdf_link("a"), inside)


def test_what_sensors_and_plugins_have_within_is_passed_over():
    text = """<model name="m"><plugin name="p"><anything/></plugin><link name="l">
      <sensor name="s" type="imu"><odd/></sensor><collision name="c"><surface><friction><ode><mu>1</mu></ode></friction>
      </surface></collision></link></model>"""
    assert not strangers(SDF, ElementTree.fromstring(text))


def test_what_is_within_is_known_itself():
    """What a table says is within an element has a line of its own: else nothing would look into it."""
    for form in (URDF, SDF):
        for element, (_, within) in form.elements.items():
            unknown = set(within) - set(form.elements) - form.passed
            assert not unknown - {"texture", "empty"}, (element, unknown)


@pytest.mark.parametrize("old", ['<origin xyz="1 0 0" rpy="0 0 0"/>', '<origin xyz="0.1 0 0"/>',
                                 '<origin xyz="0 0 1"/>'])
def test_quaternions_of_origins(tmp_path, old):
    """Of joints, inertials and shapes; of any length; not beside rpy."""
    quaternion, rpy = np.array([0.1, -0.2, 0.3, 0.9]), np.empty(3)
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    rpy[:] = (np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), np.arcsin(2 * (w * y - z * x)),
              np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    plain, words = old.replace(' rpy="0 0 0"', ""), " ".join(map(repr, quaternion.tolist()))
    as_quaternion = plain.replace("/>", f' quat_xyzw="{words}"/>')
    as_angles = plain.replace("/>", f' rpy="{" ".join(map(repr, rpy.tolist()))}"/>')
    (one, said), (other, _) = (told(tmp_path, ARM.replace(old, each)) for each in (as_quaternion, as_angles))
    assert not said
    np.testing.assert_allclose(one.packed.floats, other.packed.floats, atol=1e-14)
    for ours, theirs in zip(one.model.shapes, other.model.shapes):
        np.testing.assert_allclose(ours.placement, theirs.placement, atol=1e-14)
    both = plain.replace("/>", f' rpy="0 0 0" quat_xyzw="{words}"/>')
    if "0 0 1" in old:  # of a shape, which is left out
        assert any("has rpy and quat_xyzw" in text for text in told(tmp_path, ARM.replace(old, both))[1])
    else:
        with pytest.raises(ModelError, match="origin: has rpy and quat_xyzw; give one of them"):
            told(tmp_path, ARM.replace(old, both))


def four_bar(independent):
    """A four-bar linkage as URDF+, of which these joints are said to be independent."""
    joints = "".join(
        f'<joint name="{name}" type="continuous" independent="{str(name in independent).lower()}">'
        f'<parent link="{parent}"/><child link="{name}l"/><origin xyz="{x} 0 0"/><axis xyz="0 0 1"/></joint>'
        for name, parent, x in (("crank", "base", 0.0), ("coupler", "crankl", 0.4), ("rocker", "base", 1.0)))
    links = "".join(f'<link name="{name}l">{INERTIAL}</link>' for name in ("crank", "coupler", "rocker"))
    return f"""<robot name="bars"><link name="base"/>{links}{joints}<loop name="pin" type="revolute">
      <predecessor link="couplerl"><origin xyz="1 0 0"/></predecessor>
      <successor link="rockerl"><origin xyz="0.8 0 0"/></successor><axis xyz="0 0 1"/></loop></robot>"""


def test_independent_coordinates_that_fit(tmp_path):
    robot, texts = told(tmp_path, four_bar({"rocker"}), "bars.urdf")
    assert not texts and robot.independent == ("rocker",)


@pytest.mark.parametrize("independent", [{"crank", "rocker"}, {"coupler", "rocker"}])
def test_independent_coordinates_that_do_not_fit(tmp_path, independent):
    robot, texts = told(tmp_path, four_bar(independent), "bars.urdf")
    assert any("bars.urdf: ignored independent: " in text and
               "2 where the robot has 1 degrees of freedom" in text for text in texts)
    q = ld.close(robot, [0.5, -1.0, 0.5])
    assert robot.independent == () and len(ld.linearize(robot, q, np.zeros(3), np.zeros(3)).states) == 2


def test_independent_coordinates_that_do_not_determine_the_motion(tmp_path):
    """One of two arms hangs loose: as many as there are, but two of the closed one."""
    text = four_bar({"crank", "rocker"}).replace("</robot>", f'<link name="tail">{INERTIAL}</link><joint name="swing" '
        'type="continuous" independent="false"><parent link="base"/><child link="tail"/></joint></robot>')
    robot, texts = told(tmp_path, text, "bars.urdf")
    said = "ignored independent: 'crank', 'rocker', which do not determine its motion"
    assert any(said in each for each in texts)
    assert robot.independent == ()


def test_those_of_bundled_robots_fit():
    for name in ld.bundled():
        robot = ld.load(name)
        assert fitting(robot, name) is robot
