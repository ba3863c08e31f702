"""Loading by bundled name or by path."""

import sys

import pytest

from liedyn.errors import ModelError
from liedyn.io import bundled, load

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
        with pytest.raises(ModelError, match=name):
            load(robots / name)
