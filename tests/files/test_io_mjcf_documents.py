"""MJCF files that MuJoCo would not end with, or that would end Python, and names that files have twice."""
import os
import warnings

import numpy as np
import pytest
from mujoco_oracle import mujoco

import liedyn as ld
from liedyn.files.mjcf.documents import looked_through
from liedyn.machine.errors import ModelError, ModelWarning

BODY = "<body name='b'><joint/><geom size='.1'/>{}</body>"


def write(folder, body, before="", name="robot.xml"):
    path = folder / name
    path.write_text(f"<mujoco>{before}<worldbody>{body}</worldbody></mujoco>")
    return path


def doubling(n):
    """Bodies that hold two copies of the one before: 2^n in the last."""
    bodies = ["<body name='b0'><joint/><geom size='.1'/></body>"]
    for k in range(n):
        two = "".join(f"<attach body='b{k}' prefix='{k}{c}'/>" for c in "xy")
        bodies.append(f"<body name='b{k + 1}'><joint/><geom size='.1'/>{two}</body>")
    return "".join(bodies)


@pytest.mark.parametrize("body, before, said", [
    ("<replicate count='300000000' offset='1 0 0'>" + BODY.format("") + "</replicate>", "", "replicate.*at most|copes"),
    ("<replicate count='40'>" * 4 + "<geom size='.1'/>" + "</replicate>" * 4, "", "would make .* copes with 10000"),
    ("<flexcomp name='f' type='grid' count='900 900 90' spacing='.1 .1 .1' dim='3'/>", "", "flexcomp.*copes with"),
    (doubling(30), "", "attach.*copes with"),
    (BODY.format("<attach body='b' prefix='x'/>"), "", "body 'b' attaches itself"),
    ("", "<asset><hfield name='h' nrow='90000' ncol='90000' size='1 1 1 1'/></asset>", "<hfield> 'h': 8100000000"),
    ("", "<size nkey='2000000000'/>", "<size> '': 2000000000 keyframes"),
    ("<body>" * 700 + "</body>" * 700, "", "more than 500 elements in each other"),
    ("<geom size='.1'/", "", "no XML: not well-formed"),
])
def test_what_would_not_end_is_refused(tmp_path, body, before, said):
    with pytest.raises(ModelError, match=f"robot.xml: .*{said}"):
        ld.load(write(tmp_path, body, before))


def test_models_that_attach_each_other_are_refused(tmp_path):
    """MuJoCo reads them until the stack is full, which ends Python."""
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        write(tmp_path, BODY.format("<attach model='m' body='b' prefix='p'/>"),
              f"<asset><model name='m' file='{other}.xml'/></asset>", f"{one}.xml")
    with pytest.raises(ModelError, match="a.xml: .*model 'a.xml' has itself among the models"):
        ld.load(tmp_path / "a.xml")
    path = write(tmp_path, "", "<asset><model name='m' file='own.xml'/></asset>", "own.xml")
    with pytest.raises(ModelError, match="model 'own.xml' has itself among"):
        ld.load(path)


def test_files_that_include_themselves_are_refused(tmp_path):
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{one}.xml").write_text(f"<mujoco><include file='{other}.xml'/></mujoco>")
    with pytest.raises(ModelError, match="a.xml: MuJoCo cannot read it: .*already included"):
        ld.load(tmp_path / "a.xml")
    many = "<replicate count='99999999'><geom size='.1'/></replicate>"
    (tmp_path / "part.xml").write_text(f"<mujoco><worldbody>{many}</worldbody></mujoco>")
    (tmp_path / "whole.xml").write_text("<mujoco><include file='part.xml'/></mujoco>")
    with pytest.raises(ModelError, match="whole.xml: .*copes with"):
        ld.load(tmp_path / "whole.xml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are a thing of Unix")
def test_pipes_are_not_read(tmp_path):
    (tmp_path / "meshes").mkdir()
    os.mkfifo(tmp_path / "meshes" / "pipe.stl")
    path = write(tmp_path, BODY.format("<geom type='mesh' mesh='m'/>"),
                 "<compiler meshdir='meshes'/><asset><mesh name='m' file='pipe.stl'/></asset>")
    with pytest.raises(ModelError, match="<mesh>, file 'pipe.stl': cannot be read: "):
        ld.load(path)


def test_copies_that_are_few_are_made(tmp_path):
    """Replicates in each other, another model, and a part of the same one."""
    write(tmp_path, BODY.format(""), name="part.xml")
    own = "<body name='{}'><joint/><geom size='.1'/>{}</body>"
    inner = "<replicate count='3' offset='0 1 0'>" + own.format("r", "") + "</replicate>"
    body = ("<replicate count='2' offset='1 0 0' sep='-'>" + inner + "</replicate>"
            + own.format("rest", "<attach model='m' body='b' prefix='p'/>"))
    robot = ld.load(write(tmp_path, body, "<asset><model name='m' file='part.xml'/></asset>"))
    assert robot.nv == 2 * 3 + 2


def test_a_large_model_may_be_attached(tmp_path):
    """Once, not often."""
    geoms = "<geom size='.1'/>" * 11000
    write(tmp_path, BODY.format(geoms), name="part.xml")
    attach = "<attach model='m' body='b' prefix='p'/>"
    model = "<asset><model name='m' file='part.xml'/></asset>"
    assert looked_through(write(tmp_path, attach, model)) == "mujoco"
    with pytest.raises(ModelError, match="attach.*copes with"):
        looked_through(write(tmp_path, "".join(attach.replace("'p'", f"'{p}'") for p in "abcd"), model))


@pytest.mark.parametrize("text, said", [
    (b"<mujoco><worldbody><body name='arm\xff'><joint/><geom size='.1'/></body></worldbody></mujoco>", "<body>, name"),
    (b"<mujoco>\n<worldbody><site name='\xc3\x28'/></worldbody></mujoco>", "line 2, <site>, name"),
    (b"<mujoco><actuator><motor joint='\xa0'/></actuator></mujoco>", "<motor>, joint"),
    (b"<mujoco><custom><text name='t' data='\xf0\x28\x8c\x28'/></custom></mujoco>", "<text>, data"),
    (b"<mujoco><world\xffbody/></mujoco>", "no XML"),
    (b"\xff\xfe<\x00m\x00", "no XML"),
])
def test_names_must_be_utf8(tmp_path, text, said):
    (tmp_path / "robot.xml").write_bytes(text)
    with pytest.raises(ModelError, match=f"robot.xml: .*{said}"):
        ld.load(tmp_path / "robot.xml")
    (tmp_path / "whole.xml").write_text("<mujoco><include file='robot.xml'/></mujoco>")
    with pytest.raises(ModelError, match="whole.xml: included 'robot.xml': "):
        ld.load(tmp_path / "whole.xml")


def test_comments_need_be_neither_utf8_nor_xml(tmp_path):
    text = "<mujoco><!-- -- M\xfcller -- --><worldbody>" + BODY.format("") + "</worldbody></mujoco>"
    (tmp_path / "robot.xml").write_bytes(text.encode("latin-1"))
    assert ld.load(tmp_path / "robot.xml").nv == 1


def test_replicates_behind_marks_of_comments_are_seen(tmp_path):
    """In a section of characters they begin no comment."""
    hidden = "<![CDATA[ <!-- ]]><replicate count='99999999'><geom size='.1'/></replicate><![CDATA[ --> ]]>"
    with pytest.raises(ModelError, match="copes with"):
        ld.load(write(tmp_path, hidden))


def test_an_error_that_ends_mujoco_is_an_error_here(tmp_path, monkeypatch):
    def fail(path):
        raise mujoco.FatalError("no memory")

    monkeypatch.setattr(mujoco.MjSpec, "from_file", fail)
    with pytest.raises(ModelError, match="robot.xml: MuJoCo cannot read it: no memory"):
        ld.load(write(tmp_path, BODY.format("")))


# ---- names and shapes

def messages(path):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        robot = ld.load(path)
    return robot, [str(each.message) for each in found if issubclass(each.category, ModelWarning)]


def test_sites_that_are_called_as_bodies_are(tmp_path):
    body = BODY.format("<site name='b' pos='0.1 0.2 0.3'/><site name='tip' pos='0 0 1'/>")
    robot, said = messages(write(tmp_path, body))
    assert robot.frame_names == ("b site", "tip") and said == [
        "robot.xml: names that others have, too, changed: 'b, now b site'"]
    assert np.array_equal(ld.pose(robot, robot.home, "b site")[:3, 3], [0.1, 0.2, 0.3])


def test_names_that_others_have_too(tmp_path):
    """Equalities and joints, bodies without a name and those with the one that would be made for them."""
    path = tmp_path / "robot.xml"
    path.write_text(
        "<mujoco><worldbody><body name='one'><joint/><geom size='.1'/></body><body name='two'><joint name='one'/><geom "
        "size='.1'/></body><body><joint/><geom size='.1'/></body><body name='body3'><joint/><geom size='.1'/><body "
        "name='six'><geom size='.1'/><body name='seven'><joint name='six'/><geom size='.1'/></body></body></body>"
        "</worldbody><equality><joint name='one' joint1='one' joint2='six'/></equality></mujoco>")
    robot, said = messages(path)
    assert robot.joint_names[:2] == ("one'", "one") and robot.nv == 5 and robot.constraint_names == ("one equality",)
    assert len(set(robot.body_names)) == 6 and "'one, now one equality'" in said[0]


def test_height_fields_are_left_out(tmp_path):
    """And what refers to them is read, in bodies that move, too."""
    assets = ("<asset><hfield name='h' nrow='4' ncol='3' size='.5 .4 .1 .1'/><hfield name='photo' file='none.png' "
              "size='1 1 1 1'/></asset>")
    top = "<geom name='top' type='hfield' hfield='photo'/>"
    body = "<geom name='hills' type='hfield' hfield='h'/>" + BODY.format(top)
    path = tmp_path / "robot.xml"
    path.write_text(f"<mujoco>{assets}<worldbody>{body}</worldbody><contact><pair geom1='hills' geom2='top'/></contact>"
                    "<sensor><framepos objtype='geom' objname='hills'/></sensor></mujoco>")
    robot, said = messages(path)
    assert robot.nv == 1 and [shape.kind for shape in robot.model.shapes] == ["sphere"] * 2
    assert any("shapes of bodies: 'hills: height field', 'top: height field'" in each for each in said)
    expected = 0.4 * 1000.0 * 4.0 / 3.0 * np.pi * 0.1 ** 5  # of the sphere alone
    assert np.isclose(ld.crba(robot, robot.home)[0, 0], expected, rtol=1e-9)


def test_materials_may_have_pictures_that_are_missing(tmp_path):
    """Of geoms, sites and tendons; colors stay."""
    assets = ("<asset><texture name='t' type='2d' file='none.png'/>"
              "<material name='red' texture='t' rgba='1 0 0 1'/></asset>")
    path = tmp_path / "robot.xml"
    path.write_text(f"<mujoco>{assets}<worldbody><light texture='t'/><site name='s' material='red'/><body name='b'>"
                    "<joint/><geom size='.1' material='red'/><site name='e' material='red'/></body></worldbody><tendon>"
                    "<spatial material='red'><site site='s'/><site site='e'/></spatial></tendon></mujoco>")
    robot, said = messages(path)
    assert not said and robot.model.shapes[0].color == (1.0, 0.0, 0.0, 1.0)
