"""Numbers that bodies, joints, loops, constraints and robots are declared with: what the builder refuses of them."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.model import Builder
from test_model_builder import Unprintable, refuse


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mass": -1.0}, ("mass", "-1.0")),
        ({"mass": np.nan}, ("mass", "nan")),
        ({"mass": "heavy"}, ("mass", "heavy")),
        ({"mass": "1.0"}, ("mass", "1.0")),
        ({"mass": [1.0]}, ("mass", "one number")),
        ({"com": (0, np.inf, 0)}, ("com", "inf")),
        ({"com": (0, 0)}, ("com", "3 numbers")),
        ({"com": ((0, 0, 0), (0, 0))}, ("com", "numbers")),
        ({"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, ("inertia", "symmetric")),
        ({"inertia": [[1, 2, 0], [2, 1, 0], [0, 0, 3]]}, ("inertia", "-1")),
        ({"inertia": (-1, 1, 1)}, ("inertia", "-1")),
        ({"inertia": (1, 1, np.nan)}, ("inertia", "nan")),
        ({"inertia": (1, 1)}, ("inertia", "3 x 3")),
        ({"inertia": [1, [2], 3]}, ("inertia", "expected numbers", "2")),
        ({"inertia": (1e31, 1e31, 1e31)}, ("inertia", "too large", "1e\\+31")),
        ({"mass": 1e308}, ("mass", "too large", "1e\\+308")),
        ({"mass": 10**400}, ("mass", "too large", "1000")),
        ({"mass": 1 + 0j}, ("mass", "expected numbers")),
        ({"mass": True}, ("mass", "expected numbers")),
        ({"mass": np.datetime64("2026-11-22")}, ("mass", "expected numbers", "2026")),
        ({"com": (1e308, 0, 0)}, ("com", "too large")),
        ({"com": np.ma.array([1.0, 2.0, 3.0], mask=[True, False, False])}, ("com", "expected numbers", "masked")),
        ({"com": np.array(["0", "0", "1"])}, ("com", "expected numbers")),
        ({"com": Unprintable()}, ("com", "expected numbers", "repr raises RuntimeError")),
    ],
)
def test_bad_bodies(arguments, words):
    with refuse("'arm'", *words):
        Builder("robot").body("arm", **arguments)


def test_bodies_at_the_edge_are_allowed():
    """Point masses, massless bodies, plates and thin rods, with inertias rounded to three digits."""
    builder = Builder("robot")
    builder.body("point", mass=1.0)
    builder.body("massless")
    builder.body("plate", mass=1.0, inertia=(0.333, 0.666, 1.0))
    builder.body("rod", mass=1.0, inertia=(0.0833, 0.0, 0.0833))


def test_an_inertia_that_no_body_has():
    """As some published robots have: computed with as it is, and said."""
    builder = Builder("robot")
    with pytest.warns(ld.ModelWarning, match="'arm', inertia: .* exceeds the sum .* 2.1$"):
        builder.body("arm", 1.0, inertia=(1.0, 1.0, 2.1))
    builder.body("dust", 1.0, inertia=(1e-35, -2e-35, 0.0))  # zero as a program wrote it
    builder.joint("hinge", "revolute", "ground", "arm", axis=(0, 0, 1))
    builder.joint("glue", "fixed", "arm", "dust")
    np.testing.assert_allclose(ld.crba(builder.build(), [0.0]), 2.1, rtol=1e-15)


SHEAR = np.array([[1, 0.01, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("revolut", {}, ("kind", "revolut", "did you mean 'revolute'")),
        (["revolute"], {}, ("kind", "revolute")),
        ("revolute", {"axis": (0, 0, 0)}, ("axis", "zero")),
        ("revolute", {"axis": (0, np.nan, 0)}, ("axis", "nan")),
        ("revolute", {"axis2": (0, 1, 0)}, ("axis2", "revolute")),
        ("spherical", {"axis": (0, 0, 1)}, ("axis", "spherical")),
        ("universal", {"axis": (1, 0, 0), "axis2": (1, 1, 0)}, ("axis2", "orthogonal")),
        ("universal", {"axis": (0, 1, 0)}, ("axis2", "orthogonal")),
        ("revolute", {"pitch": 0.1}, ("pitch", "revolute", "0.1")),
        ("helical", {}, ("pitch", "helical")),
        ("revolute", {"placement": SHEAR}, ("placement", "0.01")),
        ("revolute", {"placement": np.diag([1, 1, -1, 1])}, ("placement", "rotation")),
        ("revolute", {"placement": np.ones((4, 4)) * np.nan}, ("placement", "finite")),
        ("revolute", {"placement": np.eye(4) + np.eye(4)[3][:, None] * 0.5}, ("placement", "last row")),
        ("revolute", {"armature": -0.1}, ("armature", "-0.1")),
        ("revolute", {"damping": -0.1}, ("damping", "-0.1")),
        ("cylindrical", {"damping": [0.1, -0.2]}, ("damping", "-0.2")),
        ("cylindrical", {"damping": [0.1, 0.2, 0.3]}, ("damping", "2 numbers")),
        ("fixed", {"damping": 0.1}, ("damping", "0.1")),
        ("revolute", {"stiffness": np.nan}, ("stiffness", "nan")),
        ("spherical", {"stiffness": [1, 1, 2]}, ("stiffness", "three directions")),
        ("free", {"stiffness": [1, 1, 1, 2, 2, 3]}, ("stiffness", "three directions")),
        ("spherical", {"rest": [0, 0, 0, 2]}, ("rest", "quaternion", "2")),
        ("revolute", {"limits": (1, -1)}, ("limits", "lowest")),
        ("revolute", {"limits": (np.nan, 1)}, ("limits", "lowest")),
        ("cylindrical", {"limits": (-1, 1)}, ("limits", "2 pairs")),
        ("revolute", {"effort_limit": -1}, ("effort_limit", "-1")),
        ("revolute", {"effort_limit": np.nan}, ("effort_limit", "finite")),
        ("revolute", {"effort_limit": -np.inf}, ("effort_limit", "finite")),
        ("revolute", {"damping": np.inf}, ("damping", "finite")),
        ("revolute", {"axis": (1e200, 0, 0)}, ("axis", "too large", "1e\\+200")),
        ("revolute", {"placement": (0, 0, 1e31)}, ("placement", "too large")),
        ("revolute", {"limits": [[1], [1, 2]]}, ("limits", "expected numbers")),
        ("revolute", {"stiffness": "x" * 1000}, ("stiffness", "xxx\\.\\.\\.")),
    ],
)
def test_bad_joints(kind, arguments, words):
    with refuse("'elbow'", *words):
        Builder("robot").joint("elbow", kind, "upper", "lower", **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("free", {}, ("free", "nothing")),
        ("pin", {}, ("pin", "known")),
        ("inline", {"axis": (0, 0, 0)}, ("axis", "zero")),
        ("revolute", {"child_placement": SHEAR}, ("child_placement", "0.01")),
        ("revolute", {"target": 1}, ("target", "expected a function", "1")),
        ("revolute", {"active": "sliding"}, ("active", "true or false", "sliding")),
        (np.array(["weld", "weld"]), {}, ("kind", "expected a name")),
    ],
)
def test_bad_loops(kind, arguments, words):
    with refuse("'cut'", *words):
        Builder("robot").loop("cut", kind, "a", "b", **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("on_plane", {"active": "stuck", "unilateral": True}, ("active", "'sticking'", "'stuck'")),
        ("on_plane", {"active": ["open"], "unilateral": True}, ("active", "open")),
        ("on_plane", {"active": "open"}, ("active", "true or false", "open")),
        ("on_plane", {"unilateral": np.array(["above", "below"])}, ("unilateral", "above")),
        ("on_plane", {"unilateral": True, "friction": [[1], [1, 2]]}, ("friction", "expected numbers")),
        ("on_plane", {"unilateral": True, "friction": [0.5]}, ("friction", "one number")),
        ("on_plane", {"unilateral": True, "friction": -0.5}, ("friction", "negative", "-0.5")),
        ("on_plane", {"target": "f"}, ("target", "expected a function", "'f'")),
        ("sphere_on_sphere", {"radius": 1, "parent_radius": 2, "inside": 0}, ("inside", "true or false", "0")),
        ("coupling", {"coefficients": {"a": 1e200}}, ("coefficients, 'a'", "too large")),
        ("coupling", {"coefficients": {3: 1.0}}, ("coefficients", "expected a name", "3")),
    ],
)
def test_bad_constraints(kind, arguments, words):
    with refuse("'tie'", *words):
        Builder("robot").constraint("tie", kind, "a", "b", **arguments)


@pytest.mark.parametrize(("arguments", "words"), [
    ({"home": 3}, ("home", "by name", "3")),
    ({"gravity": (0, 0, 1e31)}, ("gravity", "too large")),
    ({"description": 3}, ("description", "text", "3")),
    ({"source": "\ud800"}, ("source", "not Unicode", "ud800")),
])
def test_bad_robots(arguments, words):
    with refuse("'robot'", *words):
        Builder("robot", **arguments)


def test_numbers_at_the_limit():
    """The largest numbers that are taken leave a mass matrix that is finite, and integers may have any size."""
    builder = Builder("giant", gravity=(0, 0, -1e30))
    for k in range(3):
        builder.body(f"b{k}", 10**30, (1e30, 0, 0), (1e30, 1e30, 1e30))
        builder.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "ground", f"b{k}", placement=(1e30, 0, 0),
                      axis=(0, 1e30, 0), armature=1e30)
    robot = builder.build()
    assert np.isfinite(robot.packed.floats).all() and np.isfinite(ld.crba(robot, robot.home)).all()
    assert np.array_equal(robot.model.joints[0].axes[0], [0.0, 1.0, 0.0])


def test_tiny_quaternions_are_rotations():
    """Squares of such numbers are rounded to multiples of the smallest one."""
    R = ld.placement(quaternion=(1e-160, 2e-160, 0.0, 3e-160))[:3, :3]
    np.testing.assert_allclose(R, ld.placement(quaternion=(1, 2, 0, 3))[:3, :3], atol=1e-15)


@pytest.mark.parametrize("angle", [0.3, 1.5, 2.0, 2.65, 2.9, 3.1, np.pi - 1e-6])
def test_the_plane_of_a_planar_joint_is_turned_by_the_smallest_rotation(angle):
    """Of z to the axis, wherever that points; only against z there is more than one."""
    from scipy.spatial.transform import Rotation

    for heading in (0.0, 0.7, 2.5, -1.9):
        across = np.array([-np.sin(heading), np.cos(heading), 0.0])
        wanted = Rotation.from_rotvec(angle * across).as_matrix()
        b = Builder("slab")
        b.body("slab", 1.0, (0, 0, 0), (1, 1, 1))
        b.joint("j", "planar", "ground", "slab", axis=wanted[:, 2])
        robot = b.build()
        for k in range(2):
            place = ld.pose(robot, np.eye(3)[k], "slab")[:3, 3]
            np.testing.assert_allclose(place, wanted[:, k], atol=1e-9)


@pytest.mark.parametrize("make, words", [
    (lambda: ld.GasSpring(force=np.nan, column=0.5), "GasSpring, law, force: must be finite"),
    (lambda: ld.GasSpring(force="20", column=0.5), "GasSpring, law, force: expected numbers, got '20'"),
    (lambda: ld.GasSpring(force=-1.0, column=0.5), "GasSpring, law, force: must not be negative"),
    (lambda: ld.GasSpring(force=1.0, column=0.0), "GasSpring, law, column: must be positive"),
    (lambda: ld.GasSpring(force=1.0, column=0.5, damping=np.inf), "GasSpring, law, damping: must be finite"),
    (lambda: ld.Motor(stall_torque=1j, no_load_speed=1.0), "Motor, law, stall_torque: expected numbers"),
    (lambda: ld.Motor(stall_torque=1.0, no_load_speed=-2.0), "Motor, law, no_load_speed: must be positive"),
])
def test_laws_are_checked_when_they_are_made(make, words):
    with pytest.raises(ld.ModelError) as error:
        make()
    assert words in str(error.value)
