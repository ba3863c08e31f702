"""What the builder refuses, and that it says why."""

import numpy as np
import pytest
from mechanisms import Unpacked, random_pose

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError, suggestion
from liedyn.model import Builder
from liedyn.model.kinds import JOINT_KINDS


def chain(*kinds, **options):
    """Bodies b0, b1, ... joined one after the other by joints j0, j1, ..."""
    builder, parent = Builder("chain", **options), "ground"
    for k, kind in enumerate(kinds):
        builder.body(f"b{k}", 1.0, inertia=(1, 1, 1))
        builder.joint(f"j{k}", kind, parent, f"b{k}", pitch=0.1 if kind == "helical" else None)
        parent = f"b{k}"
    return builder


class Unprintable:
    def __repr__(self):
        raise RuntimeError


def refuse(*words):
    """The error must mention every word."""
    return pytest.raises(ModelError, match="(?s)" + "".join(f"(?=.*{word})" for word in words))


def test_stops_of_wrong_joints():
    builder = chain("revolute")
    for joints, words in (("j0", "list of names"), (3, "list of"), (["j7"], "did you mean 'j0'"), (["j0"], "limit")):
        with refuse("stops", words):
            builder.stops(joints)


def test_custom_rows_lack_a_function():
    with refuse("'own'", "missing 'bias'"):
        Builder("robot").custom("own", jacobian=len, bias=None, derivatives=len, force_derivative=len)


def test_targets_are_kept_by_a_builder():
    """What moves a constraint came with the declaration, or later, or was taken away."""
    def forth(t):
        return [t, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]

    robot = ld.load("five_bar")
    moving = robot.with_target("pin", forth)
    for each in (moving, Builder.of(moving).build(), Builder.of(Builder.of(moving).build()).build()):
        error = ld.closure_error(each.at(0.1), robot.home)
        np.testing.assert_allclose(error, ld.closure_error(moving.at(0.1), robot.home), atol=1e-15)
        assert np.abs(error).max() > 0.09
    assert Builder.of(moving.with_target("pin", None)).build().functions == {}
    with pytest.raises(InputError, match="expected a Robot, got 'five_bar'"):
        Builder.of("five_bar")


def test_messages_are_short():
    """Names of any length and any number of them: values are cut, lists say how many there are."""
    builder = Builder("crowd")
    for k in range(3000):
        builder.body(f"body {k} {'x' * 500}")
    with refuse("3000 in all") as caught:
        builder.build()
    assert len(str(caught.value)) < 1500
    builder = chain("revolute", home={"x" * 100_000: 1.0})
    with refuse("xxx\\.\\.\\.", "known: 'j0'") as caught:
        builder.build()
    assert len(str(caught.value)) < 300


def test_near_matches_are_named_once():
    assert suggestion("bom", ["boom", "boom", "bucket"]) == "did you mean 'boom'?"


def test_names():
    with refuse("'b0'", "twice"):
        builder = chain("revolute")
        builder.body("b0")
        builder.build()
    with refuse("'j0'", "twice"):
        builder = chain("revolute")
        builder.loop("j0", "spherical", "b0", "ground")
        builder.build()
    with refuse("'ground'", "reserved"):
        builder = Builder("robot")
        builder.body("ground")
        builder.build()
    with refuse("'j0'", "parent", "'b5'", "did you mean 'b0'"):
        builder = Builder("robot")
        builder.body("b0")
        builder.joint("j0", "revolute", "b5", "b0")
        builder.build()
    with refuse("'cut'", "child", "'b5'"):
        builder = chain("revolute")
        builder.loop("cut", "spherical", "b0", "b5")
        builder.build()
    with refuse("actuator 'motor'", "'j1'", "'j0'"):
        builder = chain("revolute")
        builder.actuator("motor", "j1")
        builder.build()
    with refuse("coordinate 'a.angle'", "twice"):
        builder = chain("revolute")
        for name, kind in (("a", "cylindrical"), ("a.angle", "revolute")):
            builder.body(name, 1.0, inertia=(1, 1, 1))
            builder.joint(name, kind, "ground", name)
        builder.build()
    for name in ("", None, 3, "a\ud800b"):
        with refuse("name"):
            Builder("robot").body(name)


def test_trees():
    builder = chain("revolute", "revolute")
    builder.joint("third", "revolute", "ground", "b1")
    with refuse("'b1'", "'j1'", "'third'", "loop"):
        builder.build()

    builder = chain("revolute")
    builder.body("stray", 1.0)
    with refuse("no joint holds 'stray'", "free"):
        builder.build()
    builder.body("other", 1.0)
    with refuse("'stray', 'other'"):
        builder.build()

    builder = chain("revolute")
    for name, parent in (("x", "z"), ("y", "x"), ("z", "y")):
        builder.body(name, 1.0)
        builder.joint(f"to {name}", "revolute", parent, name)
    with refuse("cycle: x -> y -> z -> x"):
        builder.build()

    builder = chain("revolute")
    builder.loop("knot", "revolute", "b0", "b0")
    with refuse("'knot'", "'b0' to itself"):
        builder.build()

    builder = chain("revolute")
    builder.joint("upside down", "revolute", "b0", "ground")
    with refuse("'upside down'", "ground"):
        builder.build()


def test_any_order():
    """The order of declaration of different things does not matter."""
    forward, backward = chain("revolute", "spherical"), Builder("chain")
    backward.joint("j0", "revolute", "ground", "b0")
    backward.joint("j1", "spherical", "b0", "b1")
    backward.body("b0", 1.0, inertia=(1, 1, 1))
    backward.body("b1", 1.0, inertia=(1, 1, 1))
    one, two = forward.build(), backward.build()
    assert np.array_equal(one.packed.ints, two.packed.ints) and np.array_equal(one.packed.floats, two.packed.floats)


def test_arguments_are_copied():
    placement = np.eye(4)
    builder = Builder("robot")
    builder.body("b", 1.0, inertia=(1, 1, 1))
    builder.joint("j", "revolute", "ground", "b", placement=placement)
    placement[0, 3] = 5.0
    assert builder.build().model.joints[0].placement[0, 3] == 0.0


def test_empty_robot():
    robot = Builder("nothing").build()
    assert (robot.nq, robot.nv, robot.nbodies) == (0, 0, 0)
    assert robot.home.shape == (0,) and robot.actuator_matrix.shape == (0, 0) and robot.loop_folding.shape == (0, 3, 3)
    assert robot.packed.ints[:7].tolist() == [0] * 7


def test_long_chain():
    """Two thousand bodies: no recursion limit, and names still in order."""
    robot = chain(*["revolute"] * 2000).build()
    assert robot.coordinate_names == tuple(f"j{k}" for k in range(2000))


def test_home():
    robot = chain("free", "cylindrical", home={"j1.angle": 0.2, "j0": [0, 0, 0.6, 0.8, 1, 2, 3]}).build()
    np.testing.assert_allclose(robot.home, [0, 0, 0.6, 0.8, 1, 2, 3, 0.2, 0.0], atol=1e-16)
    assert np.array_equal(robot.neutral, [0, 0, 0, 1, 0, 0, 0, 0, 0])
    for home, words in (
        ({"j1.angel": 1.0}, ("j1.angel", "did you mean 'j1.angle'")),
        ({"j1": [1.0]}, ("j1", "2 numbers")),
        ({"j0.qw": 0.5}, ("j0", "quaternion")),
        ({"j1.slide": np.nan}, ("j1.slide", "nan")),
    ):
        with refuse(*words):
            chain("free", "cylindrical", home=home).build()


def test_actuators():
    builder = chain("revolute", "cylindrical")
    robot = builder.build()
    assert robot.actuator_names == robot.velocity_names and np.array_equal(robot.actuator_matrix, np.eye(3))
    builder.actuator("push", "j1.slide", gear=2.0)
    builder.actuator("turn", "j0")
    robot = builder.build()
    assert robot.actuator_names == ("push", "turn")
    assert np.array_equal(robot.actuator_matrix, [[0, 1], [0, 0], [2, 0]])


def test_independent_names_are_checked():
    for independent in (["j0"], ["cut"]):
        builder = chain("revolute", independent=independent)
        builder.loop("cut", "revolute", "b0", "ground")
        assert builder.build().independent == tuple(independent)
    with refuse("independent", "'j1'"):
        Builder("robot", independent=["j1"]).build()
    with refuse("independent", "list of names"):
        Builder("robot", independent="j1")
    with refuse("independent", "'j0'", "twice"):
        chain("revolute", independent=["j0", "j0"])


def test_rough_rotations_become_exact():
    """Ten printed digits are enough: packed rotations are orthogonal to the last bit all the same."""
    rng = np.random.default_rng(0)
    builder = Builder("robot")
    builder.body("b", 1.0, inertia=(1, 1, 1))
    rough = random_pose(rng).round(10)
    axis, axis2 = rough[:3, 0], rough[:3, 1]
    builder.joint("j", "universal", "ground", "b", placement=rough, axis=axis, axis2=axis2)
    robot = builder.build()
    np.testing.assert_allclose(robot.model.joints[0].placement, rough, atol=1e-9)
    for R in (robot.model.joints[0].placement[:3, :3], *Unpacked(robot).link_floats[:, :9].reshape(-1, 3, 3)):
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=2e-15)


def test_robot_is_immutable():
    robot = chain("revolute").build()
    with pytest.raises(AttributeError):
        robot.nq = 3
    joint = robot.model.joints[0]
    for array in (robot.home, robot.lower, robot.actuator_matrix, robot.gravity, joint.placement, joint.axes[0]):
        with pytest.raises(ValueError):
            array[...] = 1.0
    flags = robot.packed.ints.flags
    assert flags.writeable and flags.c_contiguous  # else Numba compiles everything again


def test_lookups():
    robot = chain("revolute", "spherical").build()
    assert robot.body_index("b1") == 1 and robot.velocity_index("j1.rz") == 3 and robot.coordinate_index("j1.qw") == 4
    with pytest.raises(InputError, match="unknown body 'b7', did you mean"):
        robot.body_index("b7")
    with pytest.raises(InputError, match="unknown velocity coordinate 'j1.qw'"):
        robot.velocity_index("j1.qw")


def test_every_kind_has_its_coordinates():
    for kind, form in JOINT_KINDS.items():
        robot = chain(kind).build()
        assert (robot.nq, robot.nv) == (form.nq, form.nv)
        assert len(robot.velocity_names) == len(set(robot.velocity_names)) == robot.nv
        assert len(robot.coordinate_names) == len(set(robot.coordinate_names)) == robot.nq
