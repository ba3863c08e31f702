"""Cables in pictures: drawn along their paths, dashed where slack, moved with the robot, in every renderer."""
import math

import numpy as np
import pytest

import liedyn as ld
from liedyn.look.cable_lines import dashes, lines, tube
from liedyn.look.drawing import Drawing
from liedyn.look.planes import plane_of, poses_of
from liedyn.look.plotting import mechanism
from liedyn.look.solids import PULLEY, solids


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def hoist():
    """A weight on three cables: a helix, a great circle, and one that is switched off; and a winch."""
    b = ld.Builder("hoist")
    b.body("weight", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("guide", "prismatic", "ground", "weight", (0.15, 0.1, -0.4), axis=(0, 0, 1))
    drum, ball = ld.Pulley("ground", None, 0.1, 1), ld.Pulley("ground", (0.3, 0.1, 0.0), 0.12, shape="sphere")
    b.cable("helix", [("ground", (-0.3, 0.02, 0.3)), drum, ("weight", (0, 0, 0))], length=1.5, stiffness=1e3)
    b.cable("circle", [("ground", (0.45, 0.15, 0.3)), ball, ("weight", (0.05, 0, 0))], length=0.1, stiffness=1e3)
    b.cable("gone", [("ground", (0, 0, 1)), ("weight", (0, 0, 0))], length=3.0, stiffness=math.inf, active=False)
    b.winch("tackle", [("ground", (0, 0, 1)), ("weight", (0, 0, 0)), ("ground", (0.1, 0, 1))])
    return b.build()


def belts():
    """An open belt over an idler that hangs from an arm, which does not stretch, and a crossed one that does."""
    b = ld.Builder("belts")
    b.body("arm", mass=0.2, com=(0.1, 0.0, 0.0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("swing", "revolute", "ground", "arm", (0.25, 0.15, 0.0), axis=(0, 0, 1))
    motor, drum = ld.Pulley("ground", None, 0.05, 1), ld.Pulley("ground", (0.5, 0.0, 0.0), 0.1, 1)
    b.cable("open", [motor, drum, ld.Pulley("arm", (0.1, 0.0, 0.0), 0.02, -1), motor], length=1.482, stiffness=math.inf)
    b.cable("crossed", [motor, ld.Pulley("ground", (0.5, 0.0, 0.0), 0.1, -1), motor], length=1.0, stiffness=100.0)
    return b.build()


def test_a_constraint_and_a_force_element_may_share_their_name(pyplot):
    b = ld.Builder.of(hoist())
    b.cable("helix", [("ground", (0.5, 0.0, 1.0)), ("weight", (0, 0, 0))], length=3.0, stiffness=math.inf)
    robot = b.build()
    assert sorted(each.name for each in lines(robot, robot.home)) == ["circle", "helix", "helix", "tackle"]
    drawing = Drawing(robot, pyplot.figure().add_subplot(), np.array([0.0, 1.0, 0.0]))
    drawing.move([-0.2])
    found = [line.get_xydata() for line in drawing.cables]
    with pytest.raises(ld.InputError, match="several cables of 'hoist' are called 'helix': rename all but one"):
        ld.cable_lengths(robot, [-0.2])
    assert len(found) == 4 and not any(np.array_equal(x, y) for k, x in enumerate(found) for y in found[:k])


@pytest.mark.parametrize("made, places", [(hoist, (-1.2, -0.2, 0.0, 0.3)), (belts, (-0.7, -0.9, -1.2, -1.3))])
def test_points_are_as_far_from_each_other_as_the_path_is_long(made, places):
    robot = made()
    for q in ([x] for x in places):
        lengths = ld.cable_lengths(robot, q)
        found = lines(robot, q)
        assert {each.name for each in found} == set(lengths) - {"gone"}
        for line in found:
            steps = np.linalg.norm(np.diff(line.points, axis=0), axis=1)
            # a polygon of chords is shorter than its arc by a part angle^2 / 24 of it
            assert (1.0 - 2e-3) * lengths[line.name] < steps.sum() <= (1.0 + 1e-12) * lengths[line.name]


def test_a_helix_and_a_great_circle_touch_what_they_go_round():
    robot = hoist()
    found = {line.name: line for line in lines(robot, robot.home)}
    for name, centre, radius, axes in (("helix", (0, 0, 0), 0.1, 2), ("circle", (0.3, 0.1, 0.0), 0.12, 3)):
        points = found[name].points - centre
        away = np.linalg.norm(points[:, :axes], axis=1)
        assert away.min() == pytest.approx(radius, rel=1e-12) and (np.abs(away - radius) < 1e-12).sum() >= 24
        along = np.diff(points, axis=0)
        along /= np.linalg.norm(along, axis=1)[:, None]
        assert np.einsum("ki,ki->k", along[:-1], along[1:]).min() > math.cos(0.2)  # no corner where it meets the pulley
    np.testing.assert_allclose(found["helix"].points[[0, -1]], [(-0.3, 0.02, 0.3), (0.15, 0.1, -0.4)], atol=1e-12)
    assert found["helix"].slack and not found["circle"].slack and not found["tackle"].slack
    assert {each.body for each in solids(robot) if each.role == PULLEY} == {"ground"}


def test_slack_cables_are_dashed():
    robot = belts()
    for q, slack in (([-0.9], True), ([-1.25], False)):
        line = lines(robot, q)[-1]
        assert line.name == "open" and line.slack is slack
        size = np.linalg.norm(np.diff(dashes(line), axis=1), axis=2)
        assert (size[1::2] == 0.0).all() == slack
        corners = tube(line, 0.01)
        assert np.isfinite(corners).all() and len(corners) == 6 * (len(line.points) - 1)
        ax = mechanism(robot, q)
        drawn = [each for each in ax.lines if each.get_color() == "#7A4A1E"]
        assert [each.get_linestyle() for each in drawn] == ["-", "--" if slack else "-"]
        np.testing.assert_allclose(np.column_stack(drawn[1].get_data()), line.points[:, :2], atol=1e-12)


@pytest.mark.parametrize("made", [hoist, belts])
def test_a_moved_picture_is_a_new_one(made, pyplot):
    robot, pictures = made(), []
    for way in ([[-0.9]], [robot.home, [-1.2], [-0.9]]):
        normal = plane_of(robot, poses_of(robot, robot.home))
        ax = pyplot.figure(figsize=(3, 3)).add_subplot(projection=None if normal is not None else "3d")
        drawing = Drawing(robot, ax, normal)
        drawing.frame(*np.array([[-0.5, -0.5, -1.0], [0.8, 0.8, 1.0]])[:, :2 + (normal is None)])
        for q in way:
            drawing.move(q)
        ax.figure.canvas.draw()
        pictures.append(np.asarray(ax.figure.canvas.buffer_rgba()).copy())
    np.testing.assert_array_equal(*pictures)


def test_the_page_draws_cables_and_moves_them():
    pytest.importorskip("viser")
    robot = belts()
    page = ld.view(robot, [-1.2], port=18080)
    try:
        nodes = page.stage.cables
        assert len(nodes) == 2
        before = nodes[1].points.copy()
        page.stage.pose([-0.9])
        np.testing.assert_allclose(nodes[1].points, dashes(lines(robot, [-0.9])[-1]), atol=1e-6)
        assert np.abs(nodes[1].points - before).max() > 0.01
    finally:
        page.close()


def test_the_page_says_that_a_string_goes_slack():
    from liedyn.look.viewer.player import Run

    b = ld.Builder("bob", gravity=(0.0, -9.81, 0.0))
    b.body("bob", mass=0.3)
    b.joint("motion", "translational", "ground", "bob")
    b.cable("string", [("ground", (0, 0, 0)), ("bob", (0, 0, 0))], length=0.8, stiffness=math.inf)
    robot = b.build()
    tr = ld.simulate(robot, [0.0, -0.8, 0.0], [math.sqrt(3.5 * 9.81 * 0.8), 0.0, 0.0], 0.5)
    assert Run(robot, tr).events(tr.events[0].t) == ("string goes slack",)
