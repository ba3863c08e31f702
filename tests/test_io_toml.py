"""Robots as TOML: what is written is what is read, and errors name the file, the table and the key."""

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, assert_declared_alike, random_axes, random_inertia, random_pose, random_tree
from scipy.spatial.transform import Rotation

from liedyn.errors import ModelError
from liedyn.io import load_toml, save_toml
from liedyn.model import Builder, placement
from liedyn.model.frames import rpy_from_rotation
from liedyn.model.kinds import LOOP_KINDS

PENDULUM = """
name = "pendulum"
description = 'A "double" pendulum'
source = "any textbook"
gravity = [0, -9.81, 0]
independent = ["pivot"]
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
    assert (robot.independent, robot.outputs) == (("pivot",), ("pivot", "pose:rod"))
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
    assert np.array_equal(again.ints, robot.ints)
    np.testing.assert_allclose(again.floats, robot.floats, atol=1e-14)
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
    with pytest.raises(ModelError, match="nowhere.toml: cannot be read"):
        load_toml(tmp_path / "nowhere.toml")


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
    np.testing.assert_array_equal(again.ints, robot.ints)
    np.testing.assert_allclose(again.floats, robot.floats, atol=1e-15)


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
