"""Branches of equilibria against closed forms and published numbers."""
import numpy as np
import pytest
from comparison import off
from scipy.optimize import brentq

import liedyn as ld
from liedyn.machine.errors import InputError


def column():
    """A rod on a torsion spring under a dead load along its axis, pulled from far away."""
    b = ld.Builder("column", gravity=(0.0, 0.0, 0.0))
    b.body("rod", 1.0, (1.0, 0.0, 0.0))
    b.joint("hinge", "revolute", "ground", "rod", stiffness=3.0)
    b.cylinder("load", "ground", "rod", (1e7, 0.0, 0.0), (1.0, 0.0, 0.0))
    return b.build()


def test_a_column_buckles():
    robot = column()
    straight = ld.continuation(robot, ld.trim(robot, [0.0]), "load", (-1.0, 5.0))
    [point] = straight.special
    assert point.kind == "branch point" and point.parameter == pytest.approx(3.0, rel=1e-6)  # of the far away point
    assert (straight.eigenvalues.real.max(axis=1) > 1e-6).tolist() == (straight.parameter > point.parameter).tolist()
    # the buckled branch: load = stiffness x / sin x
    bent = ld.trim(robot, [0.8], u=[3.0 * 0.8 / np.sin(0.8)])
    branch = ld.continuation(robot, bent, "load", (-1.0, 5.0))
    x = branch.q[:, 0]
    assert branch.ended == "span" and np.allclose(branch.parameter, 3.0 * x / np.sin(x), rtol=1e-6)


@pytest.mark.validation("weave and capsize speeds", robots="whipple_bicycle",
                        oracle="Published benchmarks, exact solutions")
def test_the_weave_and_capsize_speeds_of_the_bicycle():
    bicycle = ld.load("whipple_bicycle")
    v = ld.complete_velocity(bicycle, bicycle.home, {"lean": 0.0, "steer": 0.0, "rear_wheel": -3.5 / 0.3})
    start = ld.trim(bicycle, bicycle.home, v, free=["lean", "steer"])
    branch = ld.continuation(bicycle, start, "velocity:rear_wheel", (-8.0 / 0.3, -3.0 / 0.3), free=["lean", "steer"],
                             direction=-1)
    found = {each.kind: -0.3 * each.parameter for each in branch.special}
    # Meijaard et al. 2007, section 7; all digits but the last
    assert off([found["hopf"], found["branch point"]], [4.29238253634111, 6.02426201538837]) < 1e-13
    assert [each.unstable for each in branch.special] == [(2, 0), (0, 1)]


def test_a_toggle_press_snaps_through():
    """Two bars of length 1, a spring at their foot: the load that it takes has a largest and a smallest value."""
    b = ld.Builder("toggle", gravity=(0.0, 0.0, 0.0))
    b.body("bar", 0.1, (0.5, 0.0, 0.0), (0.0, 0.01, 0.01))
    b.body("slide", 1.0)
    b.joint("knee", "revolute", "ground", "bar")
    b.joint("foot", "prismatic", "ground", "slide", axis=(1.0, 0.0, 0.0), placement=(0.9, 0.0, 0.0), stiffness=20.0)
    b.constraint("link", "distance", "bar", "slide", parent_placement=(1.0, 0.0, 0.0), length=1.0)
    b.actuator("press", "knee")
    robot = b.build()
    q = ld.close(robot, [0.5, 0.0], knee=0.5)
    start = ld.trim(robot, q, free=["press"])
    branches = [ld.continuation(robot, start, "press", (-40.0, 40.0), direction=each, step=0.01) for each in (1, -1)]

    def moment(x):  # slide at 2 cos x, its spring at rest at 0.9, work of the moment and of the spring
        return 20.0 * (2.0 * np.cos(x) - 0.9) * -2.0 * np.sin(x)

    def slope(x):
        return 40.0 * (2.0 * np.sin(x) ** 2 - (2.0 * np.cos(x) - 0.9) * np.cos(x))

    for branch in branches:
        assert np.allclose(branch.parameter, [moment(x) for x in branch.q[:, 0]], rtol=1e-8, atol=1e-8)
    expected = {round(moment(brentq(slope, *bracket)), 9) for bracket in ((0.3, 1.0), (-1.0, -0.3))}
    found = {round(each.parameter, 9) for branch in branches for each in branch.special if each.kind == "turning point"}
    assert expected <= found


def test_what_cannot_be_followed_is_said():
    robot = column()
    start = ld.trim(robot, [0.0])
    with pytest.raises(InputError, match="span: load = 0 is outside"):
        ld.continuation(robot, start, "load", (1.0, 2.0))
    with pytest.raises(InputError, match="parameter: unknown 'lod'"):
        ld.continuation(robot, start, "lod", (0.0, 1.0))
    five_bar = ld.load("five_bar")
    held = ld.trim(five_bar, five_bar.home, free=["force:q1", "force:q4"])
    with pytest.raises(InputError, match="no curve but 2 directions"):
        ld.continuation(five_bar, held, "q1", (2.0, 2.5), free=["force:q1", "force:q4", "q2"])
    with pytest.raises(InputError, match="start must be what trim returns"):
        ld.continuation(robot, [0.0], "load", (0.0, 1.0))


def test_both_ways_in_one_call():
    bicycle = ld.load("whipple_bicycle")
    v = ld.complete_velocity(bicycle, bicycle.home, [0.0, 0.0, -4.0 / 0.3])
    start = ld.trim(bicycle, bicycle.home, v, free=["lean", "steer"])
    given = bicycle, start, "velocity:rear_wheel", (-8.0 / 0.3, -3.0 / 0.3), ["lean", "steer"]
    both, ahead, back = (ld.continuation(*given, direction=each) for each in ("both", 1, -1))
    assert len(both) == len(ahead) + len(back) - 1 and both.start == len(back) - 1
    assert np.array_equal(both.parameter, [*back.parameter[::-1], *ahead.parameter[1:]])
    assert (np.diff(both.parameter) > 0.0).all() and both.ended == "span, span"
    assert np.array_equal(both.q[both.start:], ahead.q) and np.array_equal(both.eigenvalues[:both.start + 1],
                                                                           back.eigenvalues[::-1])
    assert [each.kind for each in both.special] == ["branch point", "hopf"]
    assert [each.unstable for each in both.special] == [(1, 0), (0, 2)]
    for each, k in zip(both.special, both.before):
        assert both.parameter[k] <= each.parameter <= both.parameter[k + 1]
    assert np.array_equal(both["velocity:lean"], both.v[:, bicycle.velocity_index("lean")])
    with pytest.raises(InputError, match="nothing called 'laen' on the branch"):
        assert both["laen"] is None
    for wrong in ("back", 2, True, 1.0, np.ones(2), None):
        with pytest.raises(InputError, match="direction must be 1, -1 or 'both'"):
            ld.continuation(*given, direction=wrong)


def test_pictures_of_branches():
    pytest.importorskip("matplotlib").use("Agg")
    b = ld.Builder("column", gravity=(0, 0, -0.5))
    for rod, below in (("lower", "ground"), ("upper", "lower")):
        b.body(rod, mass=1.0, com=(0, 0, 0.5), inertia=(0.08, 0.08, 0))
        b.joint(f"{rod}_hinge", "revolute", below, rod, placement=(0, 0, float(rod == "upper")), axis=(0, 1, 0),
                stiffness=5.0)
    robot = b.build()
    straight = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "gravity", (0.0, 20.0))
    ax = straight.plot("upper_hinge")
    lines = [line for line in ax.lines if line.get_linestyle() in ("-", "--")]
    first = straight.special[0].parameter
    assert [line.get_linestyle() for line in lines] == ["-", "--", "--"]
    assert lines[0].get_xdata()[-1] == first == lines[1].get_xdata()[0]  # lines meet where stability changes
    buckled = ld.continuation(robot, straight.special[0].crossing, "gravity", (0.0, 20.0))
    buckled.plot("upper_hinge", ax)
    labels = ax.get_legend_handles_labels()[1]
    assert sorted(labels) == ["branch point", "stable", "unstable"]  # each once, of two branches
    growth = straight.plot()
    assert growth.get_ylabel().startswith("largest real part")  # no coordinate moves
    crossing = [line for line in growth.lines if line.get_marker() == "s"]
    assert [*crossing[0].get_xdata(), *crossing[0].get_ydata()] == [first, 0.0]  # where it becomes unstable
    assert buckled.plot().get_ylabel() in robot.coordinate_names
