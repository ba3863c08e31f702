"""Robots as TOML: what is written is what is read, and errors name the file, the table and the key."""

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, assert_declared_alike, random_axes, random_inertia, random_pose, random_tree
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.files import load_toml, save_toml
from liedyn.machine.errors import InputError, ModelError
from liedyn.model import Builder, placement
from liedyn.model.frames import rpy_from_rotation
from liedyn.model.kinds import LOOP_KINDS

PENDULUM = """
name = "pendulum"
description = 'A "double" pendulum'
source = "any textbook"
gravity = [0, -9.81, 0]
independent = ["pivot", "knee.joint.angle1", "knee.joint.angle2"]
outputs = ["pivot", "pose:rod"]

[bodies.rod]
mass = 2
com = [0.0, -0.5, 0.0]
inertia = [0.2, 0.1, 0.25]

[bodies.bob]
mass = 1.0
inertia = { xx = 1.0, yy = 1.1, zz = 1.2, xy = 0.01, yz = -0.02 }

[joints.pivot]
kind = "revolute"
parent = "ground"
child = "rod"
placement = { xyz = [0, 0, 1], rpy = [0.1, 0.2, 0.3] }
axis = [0, 0, 2]
limits = [-inf, 3.1]
damping = 0.1

[joints."knee.joint"]
kind = "universal"
parent = "rod"
child = "bob"
placement = { quaternion = [0, 0, 2, 2] }
armature = [0.1, 0.2]

[actuators.motor]
coordinate = "pivot"
gear = 50.0

[home]
pivot = 0.3
knee.joint.angle2 = 0.4
"""


def read(tmp_path, text):
    path = tmp_path / "pendulum.toml"
    path.write_text(text)
    return load_toml(path)


def test_every_key(tmp_path):
    robot = read(tmp_path, PENDULUM)
    rod, bob = robot.model.bodies
    pivot, knee = robot.model.joints
    assert (robot.name, robot.description, robot.source) == ("pendulum", 'A "double" pendulum', "any textbook")
    assert robot.independent == ("pivot", "knee.joint.angle1", "knee.joint.angle2")
    assert robot.outputs == ("pivot", "pose:rod")
    assert np.array_equal(robot.gravity, [0, -9.81, 0]) and rod.mass == 2.0
    assert np.array_equal(rod.inertia, np.diag([0.2, 0.1, 0.25]))
    assert np.array_equal(bob.inertia, [[1.0, 0.01, 0.0], [0.01, 1.1, -0.02], [0.0, -0.02, 1.2]])
    rotation = Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix()
    np.testing.assert_allclose(pivot.placement[:3, :3], rotation, atol=1e-16)
    assert np.array_equal(pivot.placement[:3, 3], [0, 0, 1]) and np.array_equal(pivot.axes, [[0, 0, 1]])
    np.testing.assert_allclose(knee.placement[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    assert np.array_equal(robot.upper, [3.1, np.inf, np.inf]) and robot.lower[0] == -np.inf
    assert np.array_equal(robot.home, [0.3, 0.0, 0.4])
    assert np.array_equal(robot.actuator_matrix, [[50.0], [0.0], [0.0]])
    assert pivot.damping[0] == 0.1 and np.array_equal(knee.armature, [0.1, 0.2])


@pytest.mark.parametrize("seed", range(5))
def test_round_trip(tmp_path, seed):
    """A robot with everything comes back the same: exactly, but for the last bits of rotations."""
    rng = np.random.default_rng(seed)
    builder = random_tree(
        rng, list(rng.permutation(MOVING_KINDS + ["fixed"])), name="quote \" and \\ µ", gravity=rng.normal(size=3),
        home={"body": 0.25, "ball": [0.0, 0.6, 0.0, 0.8]}, independent=["body"], outputs=["body"],
        description="two\nlines", source="tests",
    )
    builder.body("odd name!", 1.0, rng.normal(size=3), random_inertia(rng))
    builder.joint("body", "prismatic", "ground", "odd name!", velocity_limit=2.0, limits=(0.0, np.inf), rest=0.1)
    builder.body("ball", 1.0, inertia=(1, 1, 1))
    builder.joint(
        "ball", "spherical", "odd name!", "ball",
        stiffness=3.0, damping=[1, 2, 3], effort_limit=5.0, rest=[0.6, 0, 0, 0.8],
    )
    for kind in LOOP_KINDS:
        axes = random_axes(rng, "revolute" if kind == "inline" else kind)
        pitch = 0.2 if kind == "helical" else None
        builder.loop(f"cut {kind}", kind, "ball", "ground", random_pose(rng), random_pose(rng), **axes, pitch=pitch)
    builder.actuator("motor", "ball.rx", gear=3.0)
    robot = builder.build()
    save_toml(robot, tmp_path / "robot.toml")
    again = load_toml(tmp_path / "robot.toml")
    assert np.array_equal(again.packed.ints, robot.packed.ints)
    np.testing.assert_allclose(again.packed.floats, robot.packed.floats, atol=1e-14)
    assert_declared_alike(robot.model, again.model)


def test_saved_file_is_short(tmp_path):
    builder = Builder("arm")
    builder.body("arm", 1.0, inertia=(1, 1, 1))
    builder.joint("hinge", "revolute", "ground", "arm", placement=placement(rpy=(0, 0, np.pi / 2)))
    save_toml(builder.build(), tmp_path / "arm.toml")
    assert (tmp_path / "arm.toml").read_text() == """\
name = "arm"
gravity = [0.0, 0.0, -9.81]

[bodies.arm]
mass = 1.0
inertia = [1.0, 1.0, 1.0]

[joints.hinge]
kind = "revolute"
parent = "ground"
child = "arm"
placement = { rpy = [0.0, 0.0, 1.5707963267948966] }
"""


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, np.pi / 2 + 1e-12])
def test_rpy_loses_nothing_at_the_poles(pitch):
    for roll, yaw in np.random.default_rng(0).uniform(-3, 3, size=(20, 2)):
        R = placement(rpy=(roll, pitch, yaw))[:3, :3]
        np.testing.assert_allclose(R, Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix(), atol=1e-15)
        np.testing.assert_allclose(placement(rpy=rpy_from_rotation(R))[:3, :3], R, atol=5e-16)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mass = 2", "mas = 2", ["[bodies.rod]", "unknown key 'mas'", "did you mean 'mass'"]),
        ("mass = 2", "mass = '2'", ["[bodies.rod]", "mass", "'2'"]),
        ("mass = 2", "mass = true", ["[bodies.rod]", "mass", "True"]),
        ("mass = 2", "mass = nan", ["[bodies.rod]", "mass", "nan"]),
        ("xy = 0.01", "yx = 0.01", ["[bodies.bob]", "inertia", "unknown key 'yx'"]),
        ("xx = 1.0, ", "", ["[bodies.bob]", "inertia", "missing key 'xx'"]),
        ('kind = "universal"', 'kind = "cardan"', ["[joints.knee.joint]", "kind", "'cardan'"]),
        ('kind = "universal"\n', "", ["[joints.knee.joint]", "missing key 'kind'"]),
        ("rpy = [0.1, 0.2, 0.3]", "rpy = [0.1, 0.2]", ["[joints.pivot]", "placement", "rpy"]),
        ("xyz = [0, 0, 1]", "quaternion = [0, 0, 0, 1]", ["[joints.pivot]", "placement", "rpy or quaternion"]),
        ("[0, 0, 2, 2]", "[0, 0, 0, 0]", ["[joints.knee.joint]", "placement", "quaternion", "zero"]),
        ("xyz = [0, 0, 1]", "xzy = [0, 0, 1]", ["[joints.pivot]", "placement", "'xzy'"]),
        ("gravity = [0, -9.81, 0]", "gravity = 9.81", ["gravity", "9.81"]),
        ("gravity", "gravitation", ["unknown key 'gravitation'", "did you mean 'gravity'"]),
        ("[home]", "[house]", ["unknown key 'house'", "did you mean 'home'"]),
        ('coordinate = "pivot"', 'coordinate = "pivo"', ["actuator 'motor'", "'pivo'", "did you mean 'pivot'"]),
        ('child = "bob"', 'child = "rod"', ["joint 'knee.joint'", "'rod' to itself"]),
        ("[home]", "[home", ["not TOML", "line"]),
        ("[bodies.rod]", "[bodies]\nbar = 3\n[bodies.rod]", ["[bodies.bar]", "expected a table", "3"]),
    ],
)
def test_errors_name_file_table_and_key(tmp_path, old, new, words):
    assert old in PENDULUM
    with pytest.raises(ModelError) as caught:
        read(tmp_path, PENDULUM.replace(old, new, 1))
    for word in ["pendulum.toml", *words]:
        assert word in str(caught.value)


def test_no_file(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    for name in ("nowhere.toml", "folder.toml", "a\0b.toml", "x" * 5000 + ".toml"):
        with pytest.raises(ModelError, match="cannot be read"):
            load_toml(tmp_path / name)
    with pytest.raises(InputError, match="expected a name or a path, got 3"):
        load_toml(3)


BLOCK = """name = "block"
[bodies.block]
mass = 1
inertia = [1, 1, 1]
[joints.slide]
kind = "prismatic"
parent = "ground"
child = "block"
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("placement = { xyz = " + "9" * 400 + " }", ["[joints.slide]", "placement, xyz", "too large", "999..."]),
        ("placement = { xyz = ['1', '2', '3'] }", ["[joints.slide]", "placement, xyz", "expected numbers"]),
        ("placement = { xyz = [0, 0, 1e31] }", ["[joints.slide]", "placement, xyz", "too large", "1e+31"]),
        ("axis = [1e200, 0, 0]", ["[joints.slide], axis", "too large", "1e+200"]),
        ("axis = [1979-05-27, 0, 0]", ["[joints.slide], axis", "expected numbers", "1979"]),
        ("limits = [[1], 2]", ["[joints.slide], limits", "expected numbers", "[[1], 2]"]),
        ("effort_limit = nan", ["[joints.slide], effort_limit", "finite", "nan"]),
        (f'rest = "{"x" * 1000}"', ["[joints.slide], rest", "xxx..."]),
        ("[loops.l]\nkind = 'weld'\nparent = 'ground'\nchild = 'block'\ntarget = 1", ["[loops.l], target", "function"]),
        ("[constraints.c]\nkind = 'coupling'\ncoefficients = 3", ["[constraints.c]: coefficients", "expected a table"]),
        ("[constraints.c]\nkind = 'coupling'\ncoefficients = { slide = [1] }",
         ["[constraints.c], coefficients, 'slide'", "one number"]),
        ("[constraints.c]\nkind = 'on_plane'\nparent = 'ground'\nchild = 'block'\nunilateral = true\nactive = [1]",
         ["[constraints.c], active", "'sticking'", "[1]"]),
        ("[bodies.c]\nmass = 1e308", ["[bodies.c], mass", "too large"]),
        ("[bodies.c]\ncom = [1e308, 0, 0]", ["[bodies.c], com", "too large"]),
        ("[bodies.c]\ninertia = [1, [2], 3]", ["[bodies.c], inertia", "expected numbers", "[1, [2], 3]"]),
        (f"[bodies.{'x' * 1000}]\nmass = -1", ["[bodies.xxx", "...", "mass"]),
        ("[home]\nslide = [[0.1]]", ["home, 'slide'", "one number"]),
        ("[home]\n" + "a." * 5000 + "b = 1", ["tables and lists lie within one another"]),
        ("x = " + "[" * 5000, ["tables and lists lie within one another"]),
        ("x = " + "{a = " * 60 + "1" + "}" * 60, ["tables and lists lie within one another"]),
        ("x = " + "9" * 5000, ["not TOML", "5000 digits (at line 9)"]),
        ("x = '\ud800'", ["not TOML", "utf-8"]),
    ],
)
def test_what_is_refused_is_named_once(tmp_path, line, words):
    """Values that numpy or Python would stumble over: file, table and key are named, and long values are cut."""
    path = tmp_path / "block.toml"
    path.write_bytes((BLOCK + line).encode(errors="surrogatepass"))
    with pytest.raises(ModelError) as caught:
        load_toml(path)
    message = str(caught.value).removeprefix(str(path))
    assert message.startswith(": ") and len(message) < 500 and message.count("slide") < 2
    for word in words:
        assert word in message


def test_a_byte_order_mark_is_no_error(tmp_path):
    (tmp_path / "block.toml").write_text(BLOCK, encoding="utf-8-sig")
    assert load_toml(tmp_path / "block.toml").name == "block"


def test_bounds_may_be_infinite(tmp_path):
    (tmp_path / "block.toml").write_text(BLOCK + "effort_limit = inf\nvelocity_limit = [inf]")
    robot = load_toml(tmp_path / "block.toml")
    assert robot.effort_limit == np.inf and robot.velocity_limit == np.inf


@pytest.mark.parametrize("name", ["a\x7fb", "a\nb", 'a"b', "a\\b", "é", "a\0b", "a\u2028b", "a\x85b", "a\rb", "𝛀", " "])
def test_odd_names_survive_a_round_trip(tmp_path, name):
    builder = Builder(name, description=name, home={name: 0.5})
    builder.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint(name, "revolute", "ground", name)
    save_toml(builder.build(), tmp_path / "odd.toml")
    assert_declared_alike(load_toml(tmp_path / "odd.toml").model, builder.build().model)


@pytest.mark.parametrize("state", [True, False, "off", "open", "sliding", "sticking"])
def test_switches_are_kept(tmp_path, state):
    """What has been switched stays so, in a file and in a builder."""
    builder = Builder("ball")
    builder.body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("base", "free", "ground", "ball")
    builder.constraint("floor", "on_plane", "ground", "ball", unilateral=True, friction=0.5)
    builder.constraint("rod", "distance", "ground", "ball", length=1.0)
    builder.loop("weld", "weld", "ground", "ball")
    robot = builder.build().switched(floor=state, rod=state in (True, "open"), weld=state in (False, "off"))
    save_toml(robot, tmp_path / "ball.toml")
    for again in (load_toml(tmp_path / "ball.toml"), Builder.of(robot).build()):
        assert again.contacts == robot.contacts and again.active == robot.active
        assert np.array_equal(again.packed.ints, robot.packed.ints)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    """A target that came later, and a place that cannot be written."""
    robot = ld.load("five_bar")
    moved = robot.with_target("pin", lambda t: ([t, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    with pytest.raises(ModelError, match="constraint 'pin', target: a function cannot be written to a file"):
        save_toml(moved, tmp_path / "moved.toml")
    assert not (tmp_path / "moved.toml").exists()
    save_toml(moved.with_target("pin", None), tmp_path / "still.toml")
    with pytest.raises(InputError, match="nowhere.*cannot be written: No such file"):
        save_toml(robot, tmp_path / "nowhere" / "robot.toml")
    with pytest.raises(InputError, match="expected a Robot, got 'five_bar'"):
        save_toml("five_bar", tmp_path / "robot.toml")


def test_constraints_survive_a_round_trip(tmp_path):
    """Every kind of constraint, every parameter, and switches."""
    builder = Builder("all of them")
    for name in ("a", "b"):
        builder.body(name, mass=1.0, inertia=(0.1, 0.2, 0.25))
    builder.joint("base", "planar", "ground", "a")
    builder.joint("arm", "revolute", "a", "b")
    here, there = (0.1, 0.2, 0.3), placement(rpy=(0.1, 0.2, 0.3))
    for k, (kind, more) in enumerate([
        ("distance", {"length": 0.7}), ("on_sphere", {"radius": 0.7}), ("on_plane", {"axis": (0.0, 0.6, 0.8)}),
        ("on_cylinder", {"radius": 0.4}), ("on_circle", {"radius": 0.4, "axis": (1.0, 0.0, 0.0)}),
        ("knife_edge", {"child_axis": (0.0, 1.0, 0.0)}),
        ("disk_on_plane", {"radius": 0.3, "child_axis": (0.0, 1.0, 0.0), "rolling": False}),
        ("sphere_on_plane", {"radius": 0.3}),
        ("sphere_on_sphere", {"radius": 0.2, "parent_radius": 0.5, "inside": True}),
    ]):
        builder.constraint(f"c{k}", kind, "a", "b", here, there, active=k % 2 == 0, **more)
    builder.constraint("gear", "coupling", coefficients={"base.x": 2.0, "arm": -0.5}, offset=0.25)
    builder.loop("stop", "weld", "b", "ground", active=False)
    robot = builder.build()
    save_toml(robot, tmp_path / "all.toml")
    again = load_toml(tmp_path / "all.toml")
    assert again.active == robot.active and again.row_names == robot.row_names and "stop" not in again.active
    np.testing.assert_array_equal(again.packed.ints, robot.packed.ints)
    np.testing.assert_allclose(again.packed.floats, robot.packed.floats, atol=1e-15)


@pytest.mark.parametrize("table, message", [
    ('kind = "distance"\nparent = "ground"\nchild = "rod"', "missing 'length'"),
    ('kind = "distance"\nparent = "ground"\nchild = "rid"\nlength = 1.0', "rid"),
    ('kind = "distance"\nparent = "ground"\nchild = "rod"\nlength = -1.0', "must be positive"),
    ('kind = "on_plane"\nparent = "ground"\nchild = "rod"\nradius = 1.0', "has none"),
    ('kind = "on_plan"\nparent = "ground"\nchild = "rod"', "on_plane"),
    ('kind = "coupling"\ncoefficients = { pivot = 1.0, pivat = 2.0 }', "pivat"),
    ('kind = "on_plane"\nparent = "ground"\nchild = "rod"\nactive = 1', "true or false"),
])
def test_a_wrong_constraint_is_named(tmp_path, table, message):
    path = tmp_path / "rod.toml"
    path.write_text('name = "p"\n[bodies.rod]\nmass = 1.0\ninertia = [1, 1, 1]\n[joints.pivot]\nkind = "revolute"\n'
                    f'parent = "ground"\nchild = "rod"\n[constraints.tie]\n{table}\n')
    with pytest.raises(ModelError, match=message) as raised:
        load_toml(path)
    assert "tie" in str(raised.value)


def mixed():
    """A robot whose inputs, force elements and constraints were not declared kind after kind."""
    b = Builder("mixed")
    for name in ("a", "b"):
        b.body(name, mass=1.0, inertia=(0.1, 0.2, 0.25))
    b.joint("slide", "prismatic", "ground", "a")
    b.joint("turn", "revolute", "a", "b")
    b.thruster("fan", "b", (0.1, 0.2, 0.3))
    b.actuator("motor", "turn")
    b.cylinder("piston", "ground", "b", (0.0, 0.3, 0.0), (0.2, 0.0, 0.0))
    b.actuator("screw", "slide", gear=3.0)
    b.bushing("rubber", "ground", "b", stiffness=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    b.spring("coil", "ground", "b", child_placement=(0.3, 0.1, 0.0), stiffness=3.0)
    b.friction("dry", "turn", coulomb=0.2, width=0.0)
    b.constraint("1", "distance", "ground", "b", (1.0, 0.0, 0.0), (0.0, 0.2, 0.0), length=1.2)
    return b.build()


def test_inputs_elements_and_constraints_keep_their_order(tmp_path):
    """u is an array: an input that changes its place would drive another actuator, without a word."""
    robot = mixed()
    save_toml(robot, tmp_path / "mixed.toml")
    again = load_toml(tmp_path / "mixed.toml")
    assert again.actuator_names == robot.actuator_names == ("fan", "motor", "piston", "screw")
    assert again.element_names == robot.element_names and again.constraint_names == robot.constraint_names
    q = ld.random_configuration(robot, rng=np.random.default_rng(1))
    np.testing.assert_allclose(ld.actuator_matrix(again, q), ld.actuator_matrix(robot, q), atol=1e-14)
    save_toml(ld.load("loader"), tmp_path / "usual.toml")
    assert "[order]" not in (tmp_path / "usual.toml").read_text()


@pytest.mark.parametrize("line, message", [
    ("actuators = ['fan', 'motor']", r"\[order\].*actuators: expected each of the names .*got \['fan', 'motor'\]"),
    ("actuators = 3", "actuators: expected each of the names"),
    ("elements = [[1], 2]", "elements: expected each of the names"), ("constraints = [1]", "got \\[1\\]"),
    ("actuator = ['fan']", "unknown key 'actuator'.*'actuators'"),
])
def test_a_wrong_order_is_named(tmp_path, line, message):
    path = tmp_path / "mixed.toml"
    save_toml(mixed(), path)
    text = path.read_text()
    head, _, rest = text.partition("[order]")
    path.write_text(f"{head}[order]\n{line}\n\n" + rest[rest.index("\n["):])
    with pytest.raises(ModelError, match=message):
        load_toml(path)
