"""Branches over gravity, numbers of springs and coordinates; and coordinates that are chosen again on the way."""
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq, fsolve

import liedyn as ld
from liedyn.machine.errors import InputError


def test_a_column_buckles_under_its_own_weight():
    """Two rods with point masses of 1 and 2 kg at their ends: K - g W, in angles from upright."""
    b = ld.Builder("column", gravity=(-0.5, 0.0, 0.0))
    b.body("lower", 1.0, (1.0, 0.0, 0.0))
    b.body("upper", 2.0, (1.0, 0.0, 0.0))
    b.joint("foot", "revolute", "ground", "lower", stiffness=5.0)
    b.joint("knee", "revolute", "lower", "upper", placement=(1.0, 0.0, 0.0), stiffness=7.0)
    robot = b.build()
    branch = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "gravity", (0.0, 20.0))
    loads = eigh([[12.0, -7.0], [-7.0, 7.0]], np.diag([3.0, 2.0]), eigvals_only=True)
    assert [each.parameter for each in branch.special] == pytest.approx(loads, rel=1e-9)
    assert np.array_equal(branch.parameters["gravity"], branch.parameter)
    hanging = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "gravity", (-5.0, 1.0), direction=-1)
    assert hanging.parameter[-1] == pytest.approx(-5.0, rel=1e-12) and not hanging.special


def toggle(**foot):
    """Two bars of length 1, a slide at their foot with a spring, a moment at the first one."""
    b = ld.Builder("toggle", gravity=(0.0, 0.0, 0.0))
    b.body("bar", 0.1, (0.5, 0.0, 0.0), (0.0, 0.01, 0.01))
    b.body("slide", 1.0)
    b.joint("knee", "revolute", "ground", "bar")
    b.joint("foot", "prismatic", "ground", "slide", axis=(1.0, 0.0, 0.0), **foot)
    b.constraint("link", "distance", "bar", "slide", parent_placement=(1.0, 0.0, 0.0), length=1.0)
    b.actuator("press", "knee")
    return b.build()


def test_a_toggle_turns_over_the_length_of_its_spring():
    """Under a moment of -5 the spring is at rest at 2 cos x - 5 / (40 sin x), which is largest at a turning point."""
    robot = toggle(stiffness=20.0, rest=0.9)
    q = ld.close(robot, [0.5, 1.75], knee=0.5)
    start = ld.trim(robot, q, u=[-5.0], free=["rest:foot"])
    x = start.q[0]
    assert start.parameters["rest:foot"] == pytest.approx(2.0 * np.cos(x) - 5.0 / (40.0 * np.sin(x)), rel=1e-9)
    found = []
    for direction in (1, -1):
        branch = ld.continuation(robot, start, "rest:foot", (0.5, 2.5), direction=direction)
        y = branch.q[:, 0]
        assert np.allclose(branch.parameter, 2.0 * np.cos(y) - 5.0 / (40.0 * np.sin(y)), rtol=1e-9)
        found += [each.parameter for each in branch.special if each.kind == "turning point"]
    y = brentq(lambda y: -2.0 * np.sin(y) + 5.0 * np.cos(y) / (40.0 * np.sin(y) ** 2), 0.1, 1.0, xtol=1e-15)
    assert found == pytest.approx([2.0 * np.cos(y) - 5.0 / (40.0 * np.sin(y))], rel=1e-9)


def test_stiffness_and_preload_of_the_diagonal_spring():
    """The rhombus on its diagonal d = 2 cos(phi / 2): 3 g cos phi, the moment of its rods in all, and the spring's."""
    robot = ld.load("diagonal_spring")
    start = ld.trim(robot, robot.home)
    branch = ld.continuation(robot, start, "preload:spring", (-3.0, 5.0))
    phi = branch.q[:, 0]
    pull = 25.0 * (2.0 * np.cos(0.5 * phi) - np.sqrt(2.0)) + branch.parameter
    # potential m g (1/2 + 1 + 1/2) sin phi and the spring's, d' = -sin(phi / 2)
    assert np.allclose(2.0 * 9.81 * np.cos(phi), pull * np.sin(0.5 * phi), rtol=0.0, atol=1e-8)


def test_coordinates_are_chosen_again():
    """A slider-crank through both dead points, where its slider is no coordinate: the moment that holds a spring."""
    b = ld.Builder("crank", gravity=(0.0, 0.0, 0.0), independent=("slide",))
    b.body("slide", 1.0)
    b.body("crank", 0.1, (0.25, 0.0, 0.0), (0.0, 0.01, 0.01))
    b.joint("slide", "prismatic", "ground", "slide", axis=(1.0, 0.0, 0.0), stiffness=10.0, rest=1.0)
    b.joint("crank", "revolute", "ground", "crank")
    b.constraint("rod", "distance", "crank", "slide", parent_placement=(0.5, 0.0, 0.0), length=1.0)
    b.actuator("motor", "crank")
    robot = b.build()
    q = ld.close(robot, [1.3, 0.9], crank=0.9)
    start = ld.trim(robot, q, free=["motor"])
    branch = ld.continuation(robot, start, "motor", (-10.0, 10.0), points=150)
    y = branch.q[:, 1]
    slide = 0.5 * np.cos(y) + np.sqrt(1.0 - 0.25 * np.sin(y) ** 2)
    slope = -0.5 * np.sin(y) - 0.25 * np.sin(y) * np.cos(y) / np.sqrt(1.0 - 0.25 * np.sin(y) ** 2)
    assert np.allclose(branch.q[:, 0], slide, rtol=1e-9)
    assert np.allclose(branch.u[:, 0], 10.0 * (slide - 1.0) * slope, rtol=0.0, atol=1e-8)
    assert branch.ended == "points" and np.ptp(y) > 2.0 * np.pi
    assert {each.kind for each in branch.special} == {"turning point"}


def linked(length):
    """The toggle with a second bar of this length, under a spring at rest at 1.2."""
    b = ld.Builder.of(toggle(stiffness=20.0, rest=1.2))
    b.change("constraint", "link", length=length)
    return b.build()


def test_any_function_of_a_parameter():
    """The length l of the second bar: the slide is at cos x + sqrt(l^2 - sin^2 x), with a moment of its spring."""
    def of(x, l):
        root = np.sqrt(l ** 2 - np.sin(x) ** 2)
        return np.cos(x) + root, -np.sin(x) - np.sin(x) * np.cos(x) / root

    def balance(x, l, u):
        s, slope = of(x, l)
        return 20.0 * (s - 1.2) * slope - u

    def slope(x, l):  # of the balance by x
        s, first = of(x, l)
        root = np.sqrt(l ** 2 - np.sin(x) ** 2)
        second = -np.cos(x) - np.cos(2.0 * x) / root - (np.sin(x) * np.cos(x)) ** 2 / root ** 3
        return 20.0 * (first ** 2 + (s - 1.2) * second)

    robot = linked(1.0)
    start = ld.trim(robot, ld.close(robot, [0.3, 1.9], knee=0.3), free=["press"])
    u = start.u[0]
    found = []
    for direction in (1, -1):
        branch = ld.continuation(linked, start, 1.0, (0.6, 1.4), direction=direction)
        assert np.allclose([balance(*each, u) for each in zip(branch.q[:, 0], branch.parameter)], 0.0, atol=1e-9)
        found += [each for each in branch.special]
    x, l = fsolve(lambda z: [balance(*z, u), slope(*z)], [0.5, 0.9], xtol=1e-13)
    assert [each.kind for each in found] == ["turning point"]
    assert found[0].parameter == pytest.approx(l, rel=1e-9) and found[0].q[0] == pytest.approx(x, rel=1e-6)


def standing(length):
    """A rod with a point mass that a torsion spring lets stand up to a length of k / (m g)."""
    b = ld.Builder("rod", gravity=(-9.81, 0.0, 0.0))
    b.body("rod", 1.0, (length, 0.0, 0.0))
    b.joint("hinge", "revolute", "ground", "rod", stiffness=12.0)
    return b.build()


def test_a_fork_over_any_function():
    start = ld.trim(standing(1.0), [0.0])
    [fork] = ld.continuation(standing, start, 1.0, (0.5, 2.0)).special
    assert (fork.kind, fork.form, fork.unstable) == ("branch point", "pitchfork", (0, 1))
    assert fork.parameter == pytest.approx(12.0 / 9.81, rel=1e-9)
    other = ld.continuation(standing, fork.crossing, fork.crossing.parameters["parameter"], (0.5, 2.0))
    assert np.allclose(9.81 * other.parameter * np.sin(other.q[:, 0]), 12.0 * other.q[:, 0], rtol=0.0, atol=1e-9)
    assert other.ended == "span" and abs(other.q[-1, 0]) > 1.0
    bent = ld.trim(standing(1.5), [1.0])
    branch = ld.continuation(standing, bent, 1.5, (0.5, 2.0), direction=-1)
    x = branch.q[:, 0]
    assert np.allclose(9.81 * branch.parameter * np.sin(x), 12.0 * x, rtol=0.0, atol=1e-9)
    assert [(each.kind, each.form) for each in branch.special] == [("branch point", "pitchfork")]
    assert branch.special[0].parameter == pytest.approx(12.0 / 9.81, rel=1e-9) and np.ptp(x) > 1.5


def ring(p):
    """A slide whose spring leaves it at rest where x^2 + p^2 = 1."""
    b = ld.Builder("ring", gravity=(0.0, 0.0, 0.0))
    b.body("slide", 1.0)
    b.joint("x", "prismatic", "ground", "slide")
    b.coordinate_force("spring", {"x": 1.0}, law=lambda x, w: (x * x + p * p - 1.0, 2.0 * x, 0.0))
    return b.build()


def test_a_branch_that_closes():
    branch = ld.continuation(ring, ld.trim(ring(0.3), [0.9]), 0.3, (-2.0, 2.0))
    assert branch.ended == "closed"
    assert np.allclose(branch.q[:, 0] ** 2 + branch.parameter ** 2, 1.0, rtol=0.0, atol=1e-10)
    assert np.allclose([branch.q[-1, 0], branch.parameter[-1]], [branch.q[0, 0], 0.3], rtol=0.0, atol=1e-6)
    assert [each.kind for each in branch.special] == ["turning point"] * 2
    assert [each.parameter for each in branch.special] == pytest.approx([1.0, -1.0], rel=1e-9)
    assert [each.unstable for each in branch.special] == [(0, 1), (1, 0)]


def test_nothing_is_jumped_over():
    """A coordinate of a cut joint, hard to follow at the end: steps that closing the loop bends are not taken."""
    arm = ld.load("five_bar")
    free = ["force:q1", "force:q4"]
    branch = ld.continuation(arm, ld.trim(arm, arm.home, free=free), "pin", (-3.0, 3.0), free=free, hold=["q1"])
    assert branch.ended == "span" and (np.diff(branch.parameter) > 0.0).all()
    assert np.allclose(ld.virtual_coordinates(arm, branch.q)[:, 0], branch.parameter, rtol=0.0, atol=1e-10)
    assert np.allclose(branch.q[:, 0], arm.home[0], rtol=0.0, atol=1e-10)


def test_families_that_do_not_fit_are_said():
    start = ld.trim(standing(1.0), [0.0])
    with pytest.raises(InputError, match="other velocity names at|other coordinate names at"):
        ld.continuation(lambda x: standing(x) if x == 1.0 else toggle(), start, 1.0, (0.5, 2.0))
    with pytest.raises(InputError, match="free: 'stiffness:hinge' is what robots make of the parameter"):
        ld.continuation(standing, start, 1.0, (0.5, 2.0), free=["hinge", "stiffness:hinge"])
    with pytest.raises(InputError, match="parameter must be"):
        ld.continuation(standing, start, "length", (0.5, 2.0))


def test_contacts_must_be_decided():
    b = ld.Builder("stone")
    b.body("stone", 1.0)
    b.joint("z", "prismatic", "ground", "stone", axis=(0, 0, 1), stiffness=10.0)
    b.constraint("floor", "on_plane", "ground", "stone", unilateral=True)
    robot = b.build()
    start = ld.trim(robot, [0.0])
    with pytest.raises(InputError, match="wants contacts decided"):
        ld.continuation(robot, start, "stiffness:z", (1.0, 20.0))
