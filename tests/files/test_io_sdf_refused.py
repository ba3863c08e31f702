"""SDFormat files that are refused, what is left out of those that are read, and options that make no sense."""

import warnings

import numpy as np
import pytest
from sdf_files import AXES, TRAIN, joint, link, load

from liedyn.files import load_sdf
from liedyn.machine.errors import InputError, ModelError, ModelWarning

GOOD = (link("a") + link("b", "0 0 1 0 0 0") + '<frame name="f" attached_to="a"/>'
        + joint("j", "revolute", "a", "b", "<axis><xyz>0 0 1</xyz><limit><lower>-1</lower></limit></axis>"))


@pytest.mark.parametrize(("old", "new", "words"), [
    ('version="1.11"', 'version="1.3"', ["sdf, version: 1.4 to 1.11 are read, got '1.3'"]),
    ('version="1.11"', "", ["missing 'version' of <sdf>"]),
    ("<sdf ", "<robot><sdf ", ["not SDFormat"]),
    ("</model>", "", ["not SDFormat: mismatched tag"]),
    ('<link name="a"', '<link nam="a"', ["link: missing 'name'"]),
    ('<link name="a"', '<link name="b"', ["link 'b': declared twice"]),
    ('<link name="a"', '<link name="world"', ["link 'world': the name is reserved"]),
    ('<link name="a"', '<link name="ground"', ["'ground': the name is reserved"]),
    ("<parent>a</parent>", "<parent>aa</parent>", ["joint 'j', parent: unknown 'aa'", "did you mean 'a'"]),
    ("<parent>a</parent>", "<parent>m::a</parent>", ["joint 'j', parent: unknown 'm::a'"]),
    ("<parent>a</parent>", "<parent>b</parent>", ["'j': joins 'b' to itself"]),
    ("<child>b</child>", "", ["joint 'j': no <child>"]),
    ('type="revolute"', 'type="revolut"', ["joint 'j', type: unknown 'revolut', did you mean 'revolute'"]),
    ('type="revolute"', "", ["joint 'j': missing 'type'"]),
    ('type="revolute"', 'type="screw"', ["joint 'j': no <screw_thread_pitch>"]),
    ('type="revolute"', 'type="universal"', ["joint 'j': no <axis2>"]),
    ("<axis>", "<axes>", ["not SDFormat: mismatched tag"]),
    ("<xyz>0 0 1</xyz>", "", ["joint 'j': no <xyz> in <axis>"]),
    ("<xyz>0 0 1</xyz>", "<xyz>0 0 0</xyz>", ["joint 'j', axis", "zero"]),
    ("<xyz>0 0 1</xyz>", "<xyz>0 1</xyz>", ["joint 'j', xyz: expected 3 numbers, got '0 1'"]),
    ("<xyz>", '<xyz expressed_in="g">', ["joint 'j', axis, expressed_in: unknown 'g'"]),
    ("<lower>-1</lower>", "<lower>low</lower>", ["joint 'j', axis, lower: expected numbers, got 'low'"]),
    ("<lower>-1</lower>", "<lower></lower>", ["lower: expected one number, got ''"]),
    ("<mass>2</mass>", "<mass>-2</mass>", ["body 'a', mass"]),
    ("<inertial>", '<inertial auto="true">', ["link 'a', inertial", "(auto)"]),
    ("<pose >0 0 1 0 0 0</pose>", "<pose >0 0 1</pose>", ["link 'b', pose: expected 6 numbers, got '0 0 1'"]),
    ("<pose >0 0 1 0 0 0</pose>", '<pose degrees="x">0 0 1 0 0 0</pose>', ["degrees: expected true or false, got 'x'"]),
    ("<pose >0 0 1 0 0 0</pose>", '<pose rotation_format="rpy">0 0 1 0 0 0</pose>', ["did you mean 'euler_rpy'"]),
    ("<pose >0 0 1 0 0 0</pose>", '<pose relative_to="c">0 0 1 0 0 0</pose>', ["link 'b', pose: unknown 'c'"]),
    ("<pose >0 0 1 0 0 0</pose>", '<pose relative_to="j">0 0 1 0 0 0</pose>', ["frames in a circle: "]),
    ('attached_to="a"', 'attached_to="f"', []),
    ('name="thing"', 'name="thing" canonical_link="c"', ["model 'thing', canonical_link: unknown 'c'"]),
    ('name="thing"', 'name="thing" placement_frame="c"', ["model 'thing', placement_frame: unknown 'c'"]),
    ("</model>", "<include><uri>model://arm</uri></include></model>", ["model 'thing': includes 'model://arm'"]),
    ("</model>", "<static>maybe</static></model>", ["model 'thing', static: expected true or false, got 'maybe'"]),
    ("<model", "<actor", []),
])
def test_bad_files(tmp_path, old, new, words):
    text = f'<sdf version="1.11"><model name="thing" >{GOOD}</model></sdf>'
    assert old in text
    path = tmp_path / "bad.sdf"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError) as caught:
        load_sdf(path)
    for word in ["bad.sdf", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(("parts", "message"), [
    (joint("j", "gearbox", "sun", "planet", "<gearbox_reference_body>box</gearbox_reference_body>" + AXES),
     "joint 'j': no revolute joint of the tree about its axis between 'box' and 'sun'"),
    (joint("j", "gearbox", "sun", "planet", AXES), "no <gearbox_reference_body>"),
    (joint("j", "revolute", "box", "planet", '<axis><xyz>0 0 1</xyz><mimic joint="t"><multiplier>1</multiplier></mimic>'
           "</axis>"), "joint 'j', axis, mimic: unknown joint 't'"),
    (joint("j", "revolute", "box", "planet", '<axis><xyz>0 0 1</xyz><mimic joint="s" axis="axis2"><multiplier>1'
           "</multiplier></mimic></axis>"), "'s' has no axis2"),
    (joint("j", "revolute", "box", "planet") + joint("k", "revolute", "sun", "planet", '<axis><xyz>0 0 1</xyz>'
     '<mimic joint="s"><multiplier>1</multiplier></mimic></axis>'), "'k' closes a loop, and has no coordinate"),
    (joint("j", "revolute", "box", "planet", '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>2</multiplier></mimic>'
           "</axis>"), "joint 'j', axis, mimic: mimics itself"),
    (joint("j", "revolute", "box", "planet", '<axis><xyz>0 0 1</xyz><mimic joint="k"><multiplier>2</multiplier></mimic>'
           "</axis>") + joint("k", "revolute", "planet", "moon", '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>2'
                              "</multiplier></mimic></axis>") + '<link name="moon"/>',
     "joint 'k', axis, mimic: mimics itself through 'j'"),
    (joint("j", "gearbox", "sun", "sun", "<gearbox_reference_body>box</gearbox_reference_body>" + AXES), "'sun'"),
])
def test_bad_couplings(tmp_path, parts, message):
    with pytest.raises(ModelError, match=message):
        load(tmp_path, TRAIN, parts)


AXIS = "<axis><xyz>0 0 1</xyz>{}</axis>"


@pytest.mark.parametrize(("parts", "message"), [
    (joint("j", "revolute", "world", "a", AXIS.format("<dynamics><friction>1</friction></dynamics>")),
     "left out the dry friction of joints: 'j'"),
    (joint("j", "continuous", "world", "a", AXIS.format("<limit><upper>1</upper></limit>")),
     "left out limits of continuous joints: 'j'"),
    (joint("j", "ball", "world", "a", AXIS.format("<dynamics><damping>1</damping></dynamics>")),
     "left out damping and springs of ball joints: 'j'"),
    (joint("i", "revolute", "world", "a") + joint("j", "revolute", "world", "a", AXIS.format(
        "<limit><effort>1</effort></limit>")), "left out limits of cut joints: 'j'"),
    ("<vehicle/>", "left out elements that SDFormat does not have: 'vehicle' in model 'thing'"),
    (link("b", extra="<gravity>false</gravity>"), "left out that gravity spares links: 'b'"),
    (link("b", extra="<kinematic>true</kinematic>"), "left out that links are kinematic: 'b'"),
    (link("b", extra="<velocity_decay><linear>1</linear></velocity_decay>"),
     "left out the velocity decay of links: 'b'"),
    ('<link name="b"/>', "took SDFormat's defaults, 1 kg or 1 kg m.2, for links without mass or inertia: 'b'"),
    (link("b", "0 0 0 0 0 0", 'frame="a"'), "ignored frames of poses, which SDFormat calls relative_to: 'a'"),
    (link("b").replace("</inertial>", "<fluid_added_mass><xx>1</xx></fluid_added_mass></inertial>"),
     "left out the added mass of links in a fluid: 'b'"),
])
def test_what_is_left_out_is_a_warning(tmp_path, parts, message):
    with pytest.warns(ModelWarning, match=f"thing.sdf: {message}$") as caught:
        load(tmp_path, link("a"), parts)
    assert len(caught) == 1


def test_nothing_is_left_out_of_files_that_say_no_more(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path, GOOD, "<self_collide>true</self_collide><plugin name='p' filename='p.so'/>")


def test_frames_of_two_models_in_a_circle(tmp_path):
    inner = '<model name="{}">' + link("x", "0 0 1 0 0 0") + "</model>"
    frames = "".join(f'<frame name="{one}"><pose relative_to="{two}::x"/></frame>' for one, two in ("fm", "gn"))
    models = "".join(inner.format(name).replace("<link", f'<pose relative_to="{frame}"/><link', 1)
                     for name, frame in (("m", "g"), ("n", "f")))
    with pytest.raises(ModelError, match="in a circle"):
        load(tmp_path, frames, models)


@pytest.mark.parametrize("options", [{"model": 3}, {"floating_base": "yes"}, {"base_name": None}])
def test_bad_options(tmp_path, options):
    with pytest.raises(InputError, match="load_sdf, "):
        load(tmp_path, GOOD, **options)


def test_elements_may_be_in_a_namespace(tmp_path):
    robot = load(tmp_path, GOOD)
    path = tmp_path / "thing.sdf"
    path.write_text(path.read_text().replace("<sdf ", '<sdf xmlns="http://sdformat.org/schemas" '))
    assert np.array_equal(robot.packed.floats, load_sdf(path).packed.floats)
