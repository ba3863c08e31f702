"""Loading by bundled name or by path."""

import sys
import warnings
from pathlib import Path

import pytest

from liedyn.files import bundled, load
from liedyn.machine.errors import InputError, ModelError, ModelWarning

SLIDER = """
name = "slider"
[bodies.block]
mass = 1.0
inertia = [1.0, 1.0, 1.0]
[joints.slide]
kind = "prismatic"
parent = "ground"
child = "block"
"""


@pytest.fixture
def robots(tmp_path, monkeypatch):
    """A package of bundled robots with two in it."""
    package = tmp_path / "liedyn_robots"
    package.mkdir()
    (package / "slider.toml").write_text(SLIDER)
    (package / "sledge.toml").write_text(SLIDER.replace("slider", "sledge"))
    (package / "LICENSE").write_text("free")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "liedyn_robots", raising=False)
    yield package
    sys.modules.pop("liedyn_robots", None)


def test_bundled_names(robots):
    assert bundled() == ["sledge", "slider"]
    assert [load(name).name for name in bundled()] == bundled()


def test_unknown_names(robots):
    with pytest.raises(ModelError, match="no robot 'sliders'.*did you mean 'slider'"):
        load("sliders")
    with pytest.raises(ModelError, match="no robot 'xyz'.*known: 'sledge', 'slider'"):
        load("xyz")


def test_paths(robots):
    assert load(robots / "slider.toml").name == load(str(robots / "slider.toml")).name == "slider"
    for name in ("nowhere.toml", "nowhere.urdf"):
        with pytest.raises(ModelError, match=f"{name}: cannot be read"):
            load(robots / name)


def test_a_bundled_name_may_be_a_path(robots):
    assert load(Path("slider")).name == "slider"


@pytest.mark.parametrize("source", [None, 3, b"slider", ["slider"]])
def test_what_is_no_path_is_refused(source):
    with pytest.raises(InputError, match="expected a name or a path, got"):
        load(source)


@pytest.mark.parametrize(("source", "option", "words"), [
    ("slider", {"floating_base": True}, "bundled robot .* 'floating_base'"),
    ("slider.toml", {"foo": 1}, ".toml file .* 'foo'"),
    ("slider.urdf", {"floatin_base": True}, "did you mean 'floating_base'"),
    ("slider.urdf", {"floating_base": "yes"}, "floating_base: cannot be 'yes'"),
    ("slider.urdf", {"loops": 3}, "loops: cannot be"),
])
def test_options_that_a_kind_of_file_does_not_have(robots, source, option, words):
    with pytest.raises(InputError, match=words):
        load(robots / source if "." in source else source, **option)


@pytest.mark.parametrize("kind", ["usd", "usda", "usdz"])
def test_usd_is_refused_with_a_way_around(kind):
    with pytest.raises(ModelError, match=f"'a.{kind}': USD is not read; convert it to URDF or MJCF"):
        load(f"a.{kind}")


def test_warnings_point_at_the_line_that_loads(tmp_path):
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="b"/><stray/></robot>')
    with pytest.warns(ModelWarning, match="a.urdf: left out elements that URDF does not have: 'stray'") as caught:
        load(tmp_path / "a.urdf")
    assert caught[0].filename == __file__


INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
RUBBING = {
    "r.urdf": '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>' + INERTIA + """
      </inertial></link><joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
      <dynamics friction="0.4"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>""",
    "r.sdf": """<sdf version="1.9"><model name="r"><link name="arm"><inertial><mass>1</mass><inertia><ixx>1</ixx>
      <iyy>1</iyy><izz>1</izz></inertia></inertial></link><joint name="j" type="revolute"><parent>world</parent>
      <child>arm</child><axis><xyz>0 0 1</xyz><dynamics><friction>0.4</friction></dynamics></axis></joint></model>
      </sdf>""",
    "r.xml": """<mujoco><worldbody><body name="arm"><joint name="j" frictionloss="0.4"/><inertial pos="0 0 0" mass="1"
      diaginertia="1 1 1"/></body></worldbody></mujoco>"""}


@pytest.mark.parametrize("name", RUBBING)
def test_dry_friction_is_kept_on_request(tmp_path, name):
    if name == "r.xml":
        pytest.importorskip("mujoco")
    (tmp_path / name).write_text(RUBBING[name])
    with pytest.warns(ModelWarning, match="the dry friction of joints: 'j'"):
        assert not load(tmp_path / name).element_names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [element] = load(tmp_path / name, friction=0.02).model.elements
    assert element.name == "j friction" and element.law == "friction" and element.measure.coefficients == {"j": 1.0}
    assert element.numbers == (0.4, 0.4, 0.1, 0.02, 0.0)  # as `Builder.friction(coulomb=0.4, width=0.02)` has them
    with pytest.raises(InputError, match="load_.*, friction must be positive and finite, got -1"):
        load(tmp_path / name, friction=-1)
