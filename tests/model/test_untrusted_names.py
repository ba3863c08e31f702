"""Names are text, whatever is in them: files, tables, notebooks, pictures and terminals show them, and obey none."""
import tempfile
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import liedyn as ld
from liedyn.look.cli import main
from liedyn.look.cli.info import print_info
from liedyn.machine.texts import html_table, text_table

EVIL = ["a'b\"c", "back\\slash\\", "two\nlines\r\n", "tab\tx", "{0} {name} {{", "%s%n%(x)d", "$\\frac{1}{0$", "$$",
        "a$b", "<script>alert(1)</script>", "]]>", "&lt;&amp;", "<!-- x --!>", "-->", "\x1b[2J\x1b]0;t\x07", "\x9b31m",
        "\x00", "\x7f", "\u202eevil", "\u2028\u2029", "\ufeff", "\ufffe", "_hidden", "a/b/../c", "機械 Ünïcode",
        "`x` *y* [z](u)", "# = [x]\n[bodies.y]", "a.b.c", " ", "''' \"\"\"", "é\u0301", "😀"]

TOGETHER = ["".join(EVIL[k::5]) for k in range(5)]
"""The same in a few names, where each takes time."""


def arm(name, loop=True):
    """Everything that has a name bears it."""
    b = ld.Builder(name, description=name, source=name)
    for k, parent in enumerate(("ground", f"b0{name}")):
        b.body(f"b{k}{name}", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{k}{name}", "revolute", parent, f"b{k}{name}", (1.0 * k, 0.0, 0.0), damping=0.1)
    b.frame(f"f{name}", f"b1{name}", (1.0, 0.0, 0.0))
    b.shape(f"s{name}", f"b1{name}", "box", size=(0.1, 0.1, 0.1))
    b.actuator(f"a{name}", f"j0{name}")
    b.spring(f"k{name}", "ground", f"b1{name}", stiffness=2.0, length=1.0)
    if loop:
        b.loop(f"l{name}", "spherical", "ground", f"b1{name}", (2.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    return b.build()


def names_of(robot):
    model = robot.model
    kinds = (model.bodies, model.frames, model.joints, model.loops, model.actuators, model.elements)
    return [robot.name, *(each.name for kind in kinds for each in kind)]


def read_again(robot, path):
    """The robot as a file gives it back, or None where the error said that the file cannot hold it."""
    try:
        ld.save(robot, path)
    except ld.ModelError as error:
        assert "XML cannot hold" in str(error) and path.suffix != ".toml" and not path.exists()
        return None
    return ld.load(path)


@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
@example("".join(EVIL[:8]))
def test_toml_and_urdf_give_names_back(name):
    with tempfile.TemporaryDirectory() as folder:
        robot = arm(name)
        again = read_again(robot, Path(folder) / "r.toml")
        assert names_of(again) == names_of(robot) and again.description == name and again.source == name
        plain = read_again(robot, Path(folder) / "r.urdf")
        if plain is not None:
            assert plain.name == name and plain.joint_names[:2] == robot.joint_names[:2]
            assert set(plain.loop_names) == set(robot.loop_names)


@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
@pytest.mark.parametrize("name", EVIL, ids=ascii)
def test_all_formats(name, tmp_path):
    robot = arm(name)
    for ending in ("toml", "urdf", "xml"):
        if ending == "xml":
            pytest.importorskip("mujoco")
        try:
            again = read_again(robot, tmp_path / f"r.{ending}")
        except ld.ModelError as error:  # MuJoCo's parser has rules of its own
            assert ending == "xml" and "r.xml" in str(error)
            continue
        if again is not None:
            assert again.velocity_names == robot.velocity_names
            np.testing.assert_allclose(ld.rnea(again, robot.home, [1.0, 2.0], [0.3, 0.1]),
                                       ld.rnea(robot, robot.home, [1.0, 2.0], [0.3, 0.1]), atol=1e-12)
    assert {path.name for path in tmp_path.iterdir()} <= {"r.toml", "r.urdf", "r.xml"}


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        assert set(dict(attributes)) <= {"style"}

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", TOGETHER, ids=ascii)
def test_notebooks_and_terminals_show_names(name, capsys):
    robot = arm(name, loop=False)
    ss = ld.linearize(robot, robot.home, [0.0, 0.0], [0.0, 0.0])
    for each in (robot, ss, ld.modes(ss)):
        page = Tags(each._repr_html_())
        assert page.found <= {"p", "table", "thead", "tbody", "tr", "td", "th"}
    print(robot, ss, repr(ss), ld.modes(ss), ld.controllability(robot, robot.home), sep="\n")
    assert html_table(name, [[name], [name]]).count("<") == html_table("x", [["x"], ["x"]]).count("<")
    assert text_table([[name, name]]).isprintable()
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))


@pytest.mark.parametrize("name", TOGETHER, ids=ascii)
def test_the_command_line_prints_what_prints(name, capsys, tmp_path):
    robot = arm(name)
    ld.save_toml(robot, tmp_path / "r.toml")
    status = main(["info", str(tmp_path / "r.toml")])
    out, err = capsys.readouterr()
    assert status == 0 and all(line.isprintable() for line in (out + err).split("\n"))
    assert len(out.splitlines()) == len(_info(arm("plain"), tmp_path, capsys).splitlines())
    file = str(tmp_path / "r.toml")
    for wrong in (["info", name + ".toml"], ["info", name + ".urdf"], ["linearize", file, "--at", f"{name}=1"],
                  ["linearize", file, "--guess", f"{name}=1"], ["linearize", "five_bar", "--at", name]):
        try:
            status = main(wrong)
        except SystemExit as stop:
            status = stop.code
        out, err = capsys.readouterr()
        assert status in (1, 2) and err.count("\n") == 1 and (out + err[:-1]).isprintable()


def _info(robot, folder, capsys):
    ld.save_toml(robot, folder / "plain.toml")
    print_info(str(folder / "plain.toml"))
    return capsys.readouterr().out


@pytest.mark.parametrize("name", TOGETHER, ids=ascii)
def test_pictures_draw_names_letter_by_letter(name, tmp_path):
    pytest.importorskip("matplotlib")
    robot = arm(name, loop=False)
    ax = ld.plotting.mechanism(robot, robot.home)
    run = ld.simulate(robot, robot.home, [0.1, 0.0], 0.02)
    other = run.plot()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing|constrained_layout not applied")  # a long name; the font
        for picture, names, title in ((ax, robot.body_names, ax.title), (other, robot.velocity_names, other.title)):
            picture.figure.savefig(tmp_path / "picture.svg")
            seen = [text._preprocess_math(text.get_text()) for text in (title, *picture.get_legend().get_texts())]
            assert not any(is_formula for _, is_formula in seen)
            assert {printed(each) for each in (name, *names)} <= {text.removeprefix(" ") for text, _ in seen} | {" "}


def test_legends_leave_no_name_out():
    pytest.importorskip("matplotlib")
    b = ld.Builder("r")
    b.body("_b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("_j", "revolute", "ground", "_b")
    robot = b.build()
    axes = ld.plotting.mechanism(robot, robot.home), ld.simulate(robot, robot.home, [0.1], 0.02).plot()
    for ax, name in zip(axes, ("_b", "_j")):
        assert name in [text.get_text().strip() for text in ax.get_legend().get_texts()]


def test_axes_name_signals_letter_by_letter():
    pytest.importorskip("matplotlib")
    robot = arm(r"$\frac{$", loop=False)
    ss = ld.linearize(robot, robot.home, [0.0, 0.0], [0.0, 0.0])
    label = ld.frequency_response(ss).plot(ss.outputs[0], ss.inputs[0])[0].yaxis.label
    text = label._preprocess_math(label.get_text())
    assert text == (f"size of {ss.outputs[0]} / {ss.inputs[0]}", False)


def printed(name):
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def test_json_of_runs_gives_names_back(tmp_path):
    for name in TOGETHER:
        robot = arm(name, loop=False)
        again = ld.Trajectory.load(ld.simulate(robot, robot.home, [0.1, 0.0], 0.01).save(tmp_path / "run"))
        assert again.robot == name and again.coordinate_names == robot.coordinate_names
