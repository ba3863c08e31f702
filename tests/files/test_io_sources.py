"""Robots from texts, open files, xacro, names of robot_descriptions, and SDFormat files that include others."""
import io
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, LiedynError, ModelError, ModelWarning

LINK = ('<link name="{0}"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>')
URDF = f"""<?xml version="1.0"?>
<!-- a pendulum -->
<robot name="stick">{LINK.format('base')}</link>{LINK.format('rod')}
<visual><geometry><mesh filename="rod.stl"/></geometry></visual></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="3" velocity="2"/></joint></robot>"""
MJCF = """<mujoco model="stick"><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
<geom type="sphere" size="0.1"/></body></worldbody></mujoco>"""
SDF = """<sdf version="1.9"><model name="stick"><link name="rod"><inertial><mass>2</mass><inertia>
<ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<joint name="hinge" type="revolute"><parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""
TOML = """name = "stick"

[bodies.rod]
mass = 2.0
inertia = [1.0, 1.0, 1.0]

[joints.hinge]
kind = "revolute"
parent = "ground"
child = "rod"
"""
TEXTS = {"stick.urdf": URDF, "stick.xml": MJCF, "stick.sdf": SDF, "stick.toml": TOML}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_and_open_files(name, tmp_path):
    text, file = TEXTS[name], tmp_path / name
    file.write_text(text)
    expected = ld.load(file)
    with open(file) as plain, open(file, "rb") as raw:
        for source in (text, plain, raw, io.StringIO(text), io.BytesIO(text.encode())):
            robot = ld.load(source)
            assert (robot.name, robot.joint_names, robot.nv) == ("stick", expected.joint_names, expected.nv)
            assert np.array_equal(ld.total_mass(robot), ld.total_mass(expected))
    with open(file) as plain:
        assert ld.load(plain).source == expected.source  # the name of the file


def test_meshes_of_an_open_file_lie_beside_it(tmp_path):
    (tmp_path / "stick.urdf").write_text(URDF)
    with open(tmp_path / "stick.urdf") as file:
        [shape] = ld.load(file, floating_base=True).model.shapes
    assert shape.mesh == str(tmp_path / "rod.stl")
    assert ld.load(URDF, floating_base=True).nv == 7  # options of the reader


@pytest.mark.parametrize(("source", "error", "message"), [
    ("<html>\n</html>", ModelError, "begins with <html> is none of a robot"),
    ("< robot>\n", ModelError, "begins as XML, but has no element"), ("name = 3\n", ModelError, "text.toml"),
    (io.StringIO(""), ModelError, "text.toml"), (URDF.replace("</robot>", ""), ModelError, "text.urdf: not a URDF"),
    ("no_robot", ModelError, "no robot 'no_robot'"), (3, InputError, "expected a name or a path")])
def test_texts_of_no_robot(source, error, message):
    with pytest.raises(error, match=message):
        ld.load(source)


def test_a_long_beginning_is_read_once():
    """The kind of a text is found in time that grows with its length; reading comments anew doubled it with each."""
    for text in ("<!-- -->\n" * 50_000 + "<!", "<?a?>" * 50_000 + "x", "<!-- " * 50_000):
        with pytest.raises(ModelError):
            ld.load("<" + text[1:])


def test_what_xacro_has_written_needs_no_xacro(monkeypatch):
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    stick = '<robot name="stick" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="rod"/>{}</robot>'
    assert ld.load(stick.format("")).body_names == ("rod",)
    for macro in ('<xacro:a/>', '<link name="${1}"/>', '<link name="$(arg b)"/>'):
        with pytest.raises(LiedynError, match="xacrodoc"):
            ld.load(stick.format(macro))


def test_open_files_that_fail(tmp_path):
    class Broken:
        name = "broken.urdf"

        def read(self, size):
            raise OSError("the line is dead")

    with pytest.raises(InputError, match="'broken.urdf' cannot be read: .*the line is dead"):
        ld.load(Broken())
    Broken.read = lambda self, size: 3
    with pytest.raises(InputError, match="an open file gives text or bytes, got 3"):
        ld.load(Broken())


# ---- robot_descriptions


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A package like robot_descriptions, with three robots, of which one cannot be fetched."""
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (tmp_path / "stick.urdf").write_text(URDF)
    (folder / "stick_description.py").write_text(f"URDF_PATH = {str(tmp_path / 'stick.urdf')!r}\n")
    (folder / "lost_description.py").write_text("raise OSError('no network')\n")
    (folder / "empty_mj_description.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        del sys.modules[name]


def test_names_of_robot_descriptions(descriptions):
    assert ld.load("stick_description").name == "stick"
    assert ld.load("stick_description", floating_base=True).nv == 7
    for name, message in (("stik_description", "has no 'stik_description', did you mean 'stick_description'"),
                          ("lost_description", "cannot fetch 'lost_description': .*no network"),
                          ("empty_mj_description", "no file of 'empty_mj_description'")):
        with pytest.raises(ModelError, match=message):
            ld.load(name)


@pytest.mark.skipif(find_spec("robot_descriptions") is not None, reason="robot_descriptions is installed")
def test_without_robot_descriptions():
    with pytest.raises(LiedynError, match="'ur10_description' is a name of robot_descriptions: pip install"):
        ld.load("ur10_description")


# ---- xacro

XACRO = URDF.replace("<robot name=", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name=').replace(
    "<link", '<xacro:arg name="reach" default="1"/><xacro:property name="far" value="$(arg reach)"/><link', 1).replace(
    'upper="1"', 'upper="${2 * far}"')


@pytest.mark.skipif(find_spec("xacrodoc") is not None, reason="xacrodoc is installed")
def test_xacro_without_its_package(tmp_path):
    (tmp_path / "stick.urdf.xacro").write_text(XACRO)
    with pytest.raises(LiedynError, match="xacro files need xacrodoc"):
        ld.load(tmp_path / "stick.urdf.xacro")


def test_xacro(tmp_path):
    pytest.importorskip("xacrodoc")
    file = tmp_path / "stick.urdf.xacro"
    file.write_text(XACRO)
    for source in (file, XACRO):
        assert ld.load(source).upper.tolist() == [2.0]
        robot = ld.load(source, arguments={"reach": 0.25}, floating_base=True)
        assert robot.nv == 7 and robot.upper[-1] == 0.5
    assert ld.load(file).model.shapes[0].mesh == str(tmp_path / "rod.stl")
    file.write_text(XACRO.replace("2 * far", "2 * fra"))
    with pytest.raises(ModelError, match="xacrodoc cannot expand it: .*fra"):
        ld.load(file)
    with pytest.raises(InputError, match="without an option 'argments', did you mean 'arguments'"):
        ld.load(file, argments={})
    with pytest.raises(InputError, match="arguments: must be values by name"):
        ld.load(file, arguments=["reach"])


# ---- SDFormat's includes

ARM = """<sdf version="{0}"><model name="arm"><pose>9 9 9 0 0 0</pose><link name="upper"><inertial><mass>{1}</mass>
<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial><visual name="v"><geometry><mesh><uri>arm.stl</uri>
</mesh></geometry></visual></link><link name="lower"><pose>0 0 -1 0 0 0</pose></link>
<joint name="elbow" type="revolute"><parent>upper</parent><child>lower</child><axis><xyz>0 1 0</xyz></axis></joint>
{2}</model></sdf>"""
CART = """<sdf version="1.9"><model name="cart"><link name="chassis"/>
<include><uri>model://arm</uri><name>left</name><pose>0 1 0 0 0 0</pose></include>
<include><uri>{0}</uri><name>right</name><pose relative_to="chassis">0 -1 0 0 0 0.5</pose></include>
<joint name="left_mount" type="fixed"><parent>chassis</parent><child>left::upper</child></joint>
<joint name="right_mount" type="revolute"><parent>chassis</parent><child>right::upper</child>
<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


def folder_of_arm(path, inner=""):
    path.mkdir(parents=True)
    (path / "old.sdf").write_text(ARM.format("1.4", 7.0, ""))
    (path / "new.sdf").write_text(ARM.format("1.8", 3.0, inner))
    (path / "model.config").write_text('<model><name>arm</name><sdf version="1.4">old.sdf</sdf>'
                                       '<sdf version="1.10">new.sdf</sdf></model>')


@pytest.mark.filterwarnings("ignore:.*SDFormat's defaults")
def test_included_models(tmp_path, monkeypatch):
    folder_of_arm(tmp_path / "models" / "arm")
    (tmp_path / "models" / "cart").mkdir()
    file = tmp_path / "models" / "cart" / "model.sdf"
    file.write_text(CART.format("../arm/old.sdf"))
    robot = ld.load(file)
    assert {"left::upper", "left::lower", "right::upper", "right::lower"} <= set(robot.body_names)
    assert robot.joint_names == ("base", "left::elbow", "right_mount", "right::elbow")
    masses = {body.name: body.mass for body in robot.model.bodies}
    assert (masses["left::upper"], masses["right::upper"]) == (3.0, 7.0)  # the newest version; the file itself
    T = ld.pose(robot, robot.home, "right::lower")
    assert np.allclose(T[:3, 3], [0.0, -1.0, -1.0]) and np.allclose(T[0, 0], np.cos(0.5))
    assert np.allclose(ld.pose(robot, robot.home, "left::upper")[:3, 3], [0.0, 1.0, 0.0])
    assert {shape.mesh for shape in robot.model.shapes} == {str(tmp_path / "models" / "arm" / "arm.stl")}
    # from elsewhere, through the environment
    other = tmp_path / "else.sdf"
    other.write_text(CART.format("model://arm"))
    with pytest.raises(ModelError, match="includes 'model://arm', which is not found: neither beside the file"):
        ld.load(other)
    monkeypatch.setenv("SDF_PATH", f"/nowhere:{tmp_path / 'models'}")
    assert ld.load(other).nv == robot.nv
    # a world that includes its only robot, fixed
    world = tmp_path / "a.world"
    world.write_text('<sdf version="1.7"><world name="w"><include><uri>model://arm</uri><static>1</static></include>'
                     "<include><uri>model://sun</uri></include></world></sdf>")
    with pytest.warns(ModelWarning, match="left out included files that are not there: 'model://sun'"):
        found = ld.load(world)
    assert found.name == "arm" and found.nv == 0


def test_models_that_include_themselves(tmp_path):
    folder_of_arm(tmp_path / "arm", "<include><uri>model://arm</uri></include>")
    with pytest.raises(ModelError, match="includes 'model://arm': it includes itself"):
        ld.load(tmp_path / "arm" / "new.sdf")
    (tmp_path / "two.sdf").write_text(SDF.replace("</sdf>", '<model name="b"/></sdf>'))
    (tmp_path / "one.sdf").write_text('<sdf version="1.9"><model name="m"><include><uri>two.sdf</uri></include></model>'
                                      "</sdf>")
    with pytest.raises(ModelError, match="included 'two.sdf': holds 2 <model>, where one is included"):
        ld.load(tmp_path / "one.sdf")
