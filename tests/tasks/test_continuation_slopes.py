"""Derivatives of eigenvalues along branches of equilibria, and crossings of the axis found by them."""
import numpy as np
import pytest
from test_continuation_special_points import ziegler

import liedyn as ld
from liedyn.tasks.operating_points.curve import Curve


def toppling():
    """A rod of inertia 4.5 on a spring of 3 N m/rad, whose weight pulls it over."""
    b = ld.Builder("rod", gravity=(0.0, 0.0, -1.0))
    b.body("rod", 2.0, (0.0, 0.0, 1.0), (1.5, 2.5, 1.2))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0), stiffness=3.0, damping=0.2, rest=0.3)
    return b.build()


def test_slopes_by_hand():
    """Along k (y - 0.3) = 2 g sin y with 4.5 s^2 + d s + k - 2 g cos y = 0."""
    robot = toppling()
    branch = ld.continuation(robot, ld.trim(robot, [0.5]), "gravity", (0.5, 3.0), second=True, points=12)
    y, g = branch.q[:, 0], branch.parameter
    assert np.allclose(g, 1.5 * (y - 0.3) / np.sin(y), rtol=1e-9) and np.ptp(g) > 0.3
    y_g = 2.0 * np.sin(y) / (3.0 - 2.0 * g * np.cos(y))
    by_K = -1.0 / (9.0 * branch.eigenvalues + 0.2)
    expected = by_K * (-2.0 * np.cos(y) + 2.0 * g * np.sin(y) * y_g)[:, None]
    assert np.abs(branch.slopes - expected).max() < 1e-9 * np.abs(expected).max()


def found_by(monkeypatch, *given, **options):
    """The branch, and how many places were computed in all."""
    counts, at = [], Curve.at

    def counted(self, place, s):
        counts.append(s)
        return at(self, place, s)

    monkeypatch.setattr(Curve, "at", counted)
    branch = ld.continuation(*given, **options)
    monkeypatch.undo()
    return branch, len(counts)


def test_crossings_by_newtons_method(monkeypatch):
    """The same Hopf point as by halving, in a fraction of the places, and the slope there is that of differences."""
    robot = ziegler(0.05)
    given = robot, ld.trim(robot, [0.0, 0.0]), "stiffness:knee", (0.5, 3.0)
    halved, many = found_by(monkeypatch, *given, direction=-1)
    newton, few = found_by(monkeypatch, *given, direction=-1, second=True)
    assert [each.kind for each in newton.special] == [each.kind for each in halved.special]
    for one, other in zip(newton.special, halved.special):
        assert one.parameter == pytest.approx(other.parameter, rel=1e-11)
        assert one.frequency == pytest.approx(other.frequency, rel=1e-9) and one.unstable == other.unstable
    assert many - few > 25 * len(newton.special)
    h = 1e-3

    def eigenvalues(x):
        b = ld.Builder.of(robot)
        b.change("joint", "knee", stiffness=x)
        return ld.linearize(b.build(), [0.0, 0.0], [0.0, 0.0], u=np.zeros(2)).eigenvalues()

    for k in (2, len(newton) // 2):
        x = newton.parameter[k]
        one, two = (eigenvalues(x + j * h) - eigenvalues(x - j * h) for j in (1, 2))
        difference = (8.0 * one - two) / (12.0 * h)
        assert np.abs(newton.slopes[k] - difference).max() < 1e-8 * np.abs(difference).max()


def test_the_weave_speed_of_the_bicycle_by_newtons_method():
    """Over a speed, in steady motion on rolling wheels: Meijaard et al. 2007."""
    bicycle = ld.load("whipple_bicycle")
    v = ld.complete_velocity(bicycle, bicycle.home, {"lean": 0.0, "steer": 0.0, "rear_wheel": -3.5 / 0.3})
    start = ld.trim(bicycle, bicycle.home, v, free=["lean", "steer"])
    branch = ld.continuation(bicycle, start, "velocity:rear_wheel", (-8.0 / 0.3, -3.0 / 0.3), free=["lean", "steer"],
                             direction=-1, second=True)
    found = {each.kind: -0.3 * each.parameter for each in branch.special}
    assert found["hopf"] == pytest.approx(4.29238253634111, rel=1e-12)
    assert found["branch point"] == pytest.approx(6.02426201538837, rel=1e-12)


def test_flutter_and_families():
    robot = ziegler(0.0)
    options = {"direction": -1}
    plain, second = (ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "stiffness:knee", (0.05, 2.0), second=each,
                                     **options) for each in (False, True))
    assert [each.kind for each in second.special] == [each.kind for each in plain.special] == ["flutter"]
    assert second.special[0].parameter == pytest.approx(plain.special[0].parameter, rel=1e-9)
    with pytest.raises(ld.InputError, match="a function that returns robots are not known"):
        ld.continuation(lambda x: ziegler(x), ld.trim(ziegler(0.1), [0.0, 0.0]), 0.1, (0.05, 0.2), second=True)
