"""Mutated robot files give a robot that is sound, or a ModelError that names the file; nothing else happens.

Each mutation is drawn by hypothesis, so that a file that fails is shrunk to few mutations of a small robot.
"""
import copy
import json
import tomllib
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mechanisms import assert_declared_alike

from liedyn.files import load, load_sdf, load_toml, load_urdf, save_toml
from liedyn.machine.errors import ModelError, ModelWarning
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.rnea import rnea

PENDULUM = """
name = "pendulum"
[bodies.rod]
mass = 1.0
com = [0.5, 0.0, 0.0]
inertia = { xx = 0.1, yy = 0.1, zz = 0.1 }
[joints.pivot]
kind = "revolute"
parent = "ground"
child = "rod"
placement = { xyz = [0.0, 0.0, 1.0], quaternion = [0.0, 0.0, 1.0, 1.0] }
axis = [0.0, 1.0, 0.0]
limits = [-1.0, 1.0]
effort_limit = 3.0
stiffness = 2.0
rest = 0.1
[constraints.rope]
kind = "distance"
parent = "ground"
child = "rod"
length = 2.0
unilateral = "below"
restitution = 0.5
friction = 0.3
active = "sliding"
[actuators.motor]
coordinate = "pivot"
gear = 10.0
[home]
pivot = 0.2
"""
PATHS = sorted(Path(__file__).parents[2].glob("robots/*.toml"))
FILES = [PENDULUM, *(path.read_text(encoding="utf-8") for path in PATHS
                     if path.stem not in ("talos", "solo12"))]  # which are large, and have nothing that others lack

# Text of values in a TOML file: numbers at the edges of what can be computed with, and what is no number there.
NUMBERS = ["-1.0", "0", "-0.0", "1", "1e-320", "1e-200", "1e-16", "1e16", "1e29", str(10**30), "1e31", "1e308",
           "-1e308", "nan", "inf", "-inf"]
VALUES = ["9" * 400, "9" * 5000, "true", '"x"', '""', "[]", "{}", "[1.0]", "[[1.0]]", "[1, [2], 3]",
          "[nan, nan, nan]", "[1e300, 1e300, 1e300]", '["a", "a", "a"]', "[0.0, 0.0, 0.0]", "[1.0, 0.0, 0.0, 0.0]",
          "1979-05-27", "07:32:00", "{ xyz = [0, 0, 0] }", "{ rpy = [9e29, 1, 1] }", "[" * 60 + "]" * 60]
NAMES = ["", "ground", "Ground", "é✓𝛀", "a b", "a.b", "\n", "a\x7fb", "\u2028", "x" * 10000, "..", "{}", "%s", "fixed",
         "free", "revolute", "weld", "spherical", "planar", "universal", "helical", "cylindrical", "prismatic",
         "translational", "inline", "distance", "coupling", "custom", "on_plane", "on_sphere", "on_cylinder",
         "knife_edge", "disk_on_plane", "sphere_on_sphere", "above", "below", "open", "off", "sticking"]
KEYS = ["", "é", "x" * 1000, "axis", "axis2", "pitch", "limits", "rest", "target", "self", "name", "kind", "active",
        "friction", "unilateral", "radius", "coefficients", "__class__", "a.b"]

# the first call of crba and rnea compiles
mutated = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mutated")


def assert_sound_or_refused(path, data, read=load):
    """The robot can be computed with and written, and what is written is the same robot; or the error is a good one."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            robot = read(path)
        except ModelError as error:
            message = str(error)
            assert path.name in message and "\n" not in message and len(message) < 3000
            return
        assert np.isfinite(robot.packed.floats).all() and np.isfinite(robot.home).all()
        assert np.isfinite(crba(robot, robot.home)).all()
        assert np.isfinite(rnea(robot, robot.home, np.ones(robot.nv), np.ones(robot.nv))).all()
        saved = path.with_name("saved.toml")
        save_toml(robot, saved)
        again = load_toml(saved)
        assert np.array_equal(again.packed.ints, robot.packed.ints)
        assert_declared_alike(robot.model, again.model)


class Literal(str):
    """Text that stands for a value in a TOML file."""


def written(value):
    """A value of a TOML file as text; tables inline."""
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def places(value):
    """Every table or list in a document with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def toml_files(draw):
    document = tomllib.loads(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 3))):
        everywhere = list(places(document))
        if not everywhere:
            break
        box, key = draw(st.sampled_from(everywhere))
        action = draw(st.sampled_from(["alike", "alike", "alike", "value", "delete", "copy", "rename", "add"]))
        if action == "alike" and isinstance(box[key], str):
            known = [name for section in ("bodies", "joints", "loops") for name in as_dict(document.get(section))]
            box[key] = draw(st.sampled_from(NAMES + known))
        elif action == "alike" and isinstance(box[key], int | float):
            box[key] = Literal(draw(st.sampled_from(NUMBERS) | st.floats(-10.0, 10.0).map(repr)))
        elif action in ("alike", "value"):
            box[key] = Literal(draw(st.sampled_from(NUMBERS + VALUES)))
        elif action == "delete":
            del box[key]
        elif action == "copy":
            other, where = draw(st.sampled_from(everywhere))
            box[key] = copy.deepcopy(other[where])
        elif isinstance(box, dict):
            new = draw(st.sampled_from(KEYS))
            box[new] = box.pop(key) if action == "rename" else copy.deepcopy(box[key])
    return "".join(f"{written(key)} = {written(value)}\n" for key, value in document.items()).encode()


def as_dict(value):
    return value if isinstance(value, dict) else {}


@st.composite
def damaged(draw, texts, marks):
    """A file with pieces cut out, marks put in and bytes changed."""
    data = bytearray(draw(st.sampled_from(texts)).encode())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        action = draw(st.sampled_from(["byte", "cut", "mark"]))
        if action == "cut":
            del data[at:at + draw(st.sampled_from([1, 5, 200]))]
        elif action == "mark":
            data[at:at] = draw(st.sampled_from(marks)).encode()
        elif data:
            data[at] = draw(st.sampled_from(b"0123456789-.e ax") | st.integers(0, 255))
    return bytes(data)


@mutated
@given(data=toml_files())
def test_mutated_toml(folder, data):
    assert_sound_or_refused(folder / "robot.toml", data)


@mutated
@given(data=damaged(FILES, ["[", "]", '"', "\0", "\ufeff", "é", "=", ".", "#", "\n", "nan", "1e999", "-", "\x7f", "{"]))
def test_damaged_toml(folder, data):
    assert_sound_or_refused(folder / "robot.toml", data)


LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0" rpy="0.3 0 0"/><mass value="2"/>
  <inertia ixx="1.2" ixy="0.1" ixz="-0.2" iyy="1.5" iyz="0.3" izz="1.9"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="0.5 0 1" rpy="0.1 0.2 0.3"/>
  <axis xyz="1 2 2"/><limit lower="-1" upper="2" effort="30" velocity="3"/>
  <dynamics damping="0.7" friction="0"/></joint>"""
ARM = f"""<robot name="arm"><link name="base"/>{"".join(map(LINK.format, ["upper", "lower", "hand", "wheel"]))}
  {JOINT.format("shoulder", "revolute", "base", "upper")} {JOINT.format("elbow", "prismatic", "upper", "lower")}
  {JOINT.format("wrist", "fixed", "lower", "hand")} {JOINT.format("spin", "continuous", "upper", "wheel")}</robot>"""
PUCK = f"""<robot name="puck">{"".join(map(LINK.format, ["table", "puck", "kite"]))}
  {JOINT.format("slide", "planar", "table", "puck")} {JOINT.format("string", "floating", "puck", "kite")}</robot>"""
LOOPED = f"""<robot name="looped"><link name="ground"/>{"".join(map(LINK.format, ["a", "b", "c"]))}
  {JOINT.format("ja", "revolute", "ground", "a")} {JOINT.format("jb", "continuous", "a", "b")}
  {JOINT.format("jc", "prismatic", "ground", "c").replace("</joint>", '<mimic joint="ja" multiplier="2"/></joint>')}
  <loop name="pin" type="revolute"><predecessor link="b"><origin xyz="1 0 0"/></predecessor><successor link="ground"/>
  <axis xyz="0 0 1"/></loop>
  <coupling name="gear"><predecessor link="b"/><successor link="c"/><ratio value="6"/></coupling>
  <constraint name="ball" type="spherical"><parent link="a"/><parent_origin xyz="1 0 0"/><child link="c"/></constraint>
  </robot>"""
ATTRIBUTES = ["nan", "inf", "-inf", "-1", "0", "1e308", "1e400", "1e-320", "1e30", "", "x", "1 2", "1,2,3", "0x10", "٣",
              "1_0", "1e", " 1 ", "nan nan nan", "1 2 3 4", "inf 0 0", "0 0 0", "1e200 0 0", "ground", "base", "upper",
              "a b", "é", "x" * 2000, "floating", "planar", "continuous", "fixed", "prismatic", "revolute", "spherical"]
TAGS = ["joint", "link", "origin", "axis", "mimic", "limit", "dynamics", "inertial", "mass", "inertia", "parent",
        "child", "gazebo", "visual", "safety_controller", "robot", "joint_properties", "loop", "coupling",
        "constraint", "predecessor", "successor", "ratio", "parent_axis"]


@st.composite
def xml_files(draw, texts, tags, keys):
    root = ElementTree.fromstring(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        elements = list(root.iter())
        element, other = draw(st.sampled_from(elements)), draw(st.sampled_from(elements))
        action = draw(st.sampled_from(["attribute", "text", "delete attribute", "delete", "tag", "copy", "new"]))
        if action == "attribute":
            key = draw(st.sampled_from([*element.attrib, *keys]))
            element.set(key, draw(st.sampled_from(ATTRIBUTES)))
        elif action == "text" and element.text and element.text.strip():
            element.text = draw(st.sampled_from(ATTRIBUTES))
        elif action == "delete attribute" and element.attrib:
            del element.attrib[draw(st.sampled_from(list(element.attrib)))]
        elif action == "delete" and len(element):
            element.remove(draw(st.sampled_from(list(element))))
        elif action == "tag":
            element.tag = draw(st.sampled_from(tags))
        elif action == "copy":
            element.append(copy.deepcopy(other))
        else:
            ElementTree.SubElement(element, draw(st.sampled_from(tags)))
    return ElementTree.tostring(root)


SDF_LINK = """<link name="{}"><pose>0.1 0 0.5 0.3 0 0</pose><inertial><mass>2</mass><pose>0 0.1 0 0 0 0</pose><inertia>
  <ixx>1.2</ixx><ixy>0.1</ixy><ixz>-0.2</ixz><iyy>1.5</iyy><iyz>0.3</iyz><izz>1.9</izz></inertia></inertial></link>"""
SDF_JOINT = """<joint name="{}" type="{}"><parent>{}</parent><child>{}</child>
  <pose relative_to="{}">0 0.1 0 0 0 0</pose><axis><xyz expressed_in="__model__">0 0.6 0.8</xyz>
  <limit><lower>-1</lower><upper>2</upper><effort>3</effort></limit>
  <dynamics><damping>0.7</damping><spring_stiffness>1</spring_stiffness></dynamics></axis>{}</joint>"""
AXIS2 = '<axis2><xyz expressed_in="__model__">0 0.8 -0.6</xyz></axis2>'
RING = f"""<sdf version="1.9"><model name="ring">{"".join(map(SDF_LINK.format, ["a", "b", "c", "d", "e"]))}
  <frame name="f" attached_to="b"><pose>1 0 0 0 0 0</pose></frame>
  {SDF_JOINT.format("ja", "prismatic", "world", "a", "f", "")} {SDF_JOINT.format("jb", "revolute", "a", "b", "a", "")}
  {SDF_JOINT.format("jc", "universal", "b", "c", "b", AXIS2)} {SDF_JOINT.format("close", "ball", "c", "a", "c", "")}
  {SDF_JOINT.format("jd", "revolute", "b", "d", "b", "")}
  {SDF_JOINT.format("je", "screw", "b", "e", "b", "<screw_thread_pitch>0.2</screw_thread_pitch>")}
  <joint name="gear" type="gearbox"><parent>a</parent><child>d</child><gearbox_ratio>2</gearbox_ratio>
  <gearbox_reference_body>b</gearbox_reference_body><axis><xyz expressed_in="__model__">0 0.6 0.8</xyz></axis>
  {AXIS2.replace("0 0.8 -0.6", "0 0.6 0.8")}</joint></model></sdf>"""
SDF_TAGS = ["link", "joint", "model", "frame", "pose", "inertial", "mass", "inertia", "axis", "axis2", "xyz", "limit",
            "lower", "dynamics", "damping", "parent", "child", "include", "static", "mimic", "gearbox_ratio", "world"]
MACHINE = """<mujoco><compiler angle="radian" autolimits="true"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="trunk" pos="0 0 1"><freejoint name="trunk"/><geom type="sphere" size="0.1"/><site name="eye" pos="1 0 0"/>
    <body name="arm" pos="0.3 0 0"><joint name="one" axis="0 1 0" ref="0.2" damping="1" stiffness="2" range="-1 1"/>
      <joint name="two" type="slide" axis="0 0 1"/><inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
      <site name="tip" pos="0 0 1"/></body>
    <body name="hand" pos="0 0.3 0" quat="1 1 0 0"><joint name="ball" type="ball"/><geom size="0.1 0.2" type="capsule"/>
    </body></body></worldbody>
  <tendon><fixed name="cord"><joint joint="one" coef="2"/><joint joint="two" coef="-1"/></fixed>
    <spatial name="spring" stiffness="3"><site site="eye"/><site site="tip"/></spatial></tendon>
  <equality><connect name="pin" body1="arm" body2="hand" anchor="0 0 0.2"/><weld name="glue" site1="eye" site2="tip"/>
    <joint name="gear" joint1="one" joint2="two" polycoef="0 1 0 0 0"/><tendon tendon1="cord"/></equality>
  <actuator><motor joint="one" gear="3"/><position joint="two" kp="10"/></actuator>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.1 0.2 1 0 0 0"/></keyframe></mujoco>"""
MJCF_TAGS = ["body", "joint", "freejoint", "geom", "inertial", "site", "option", "compiler", "connect", "weld",
             "tendon", "fixed", "spatial", "motor", "position", "general", "key", "default", "worldbody", "equality"]


@mutated
@given(data=xml_files([ARM, PUCK, LOOPED], TAGS, ["type", "name", "link", "xyz", "value", "friction"]),
       floating_base=st.booleans())
def test_mutated_urdf(folder, data, floating_base):
    assert_sound_or_refused(folder / "robot.urdf", data, lambda path: load_urdf(path, floating_base))


@mutated
@given(data=damaged([ARM, PUCK, LOOPED], ["<", ">", "/", '"', "&", "é", "\0", "<!--", "]]>", "<a/>", "<?a?>", "&lt;"]))
def test_damaged_urdf(folder, data):
    assert_sound_or_refused(folder / "robot.urdf", data)


@mutated
@given(data=xml_files([RING], SDF_TAGS, ["name", "type", "version", "relative_to", "expressed_in", "attached_to"]),
       floating_base=st.booleans())
def test_mutated_sdf(folder, data, floating_base):
    assert_sound_or_refused(folder / "robot.sdf", data, lambda path: load_sdf(path, floating_base=floating_base))


@mutated
@given(data=xml_files([MACHINE], MJCF_TAGS, ["name", "type", "pos", "quat", "axis", "joint", "ref", "mass", "gear"]))
def test_mutated_mjcf(folder, data):
    pytest.importorskip("mujoco")
    assert_sound_or_refused(folder / "robot.xml", data)


@pytest.mark.parametrize(("name", "text", "loops"), [("ring.sdf", RING, 1), ("machine.xml", MACHINE, 2)])
def test_the_files_that_are_mutated_are_sound(folder, name, text, loops):
    """Else every mutant would be refused for the same reason."""
    if name.endswith(".xml"):
        pytest.importorskip("mujoco")
    (folder / name).write_text(text)
    assert len(load(folder / name).loop_names) == loops
