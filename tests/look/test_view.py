"""What is drawn where, postures, playing and the page's controls, without a browser."""
import sys
import types

import numpy as np
import pytest

import liedyn as ld
from liedyn.look.planes import poses_of
from liedyn.look import solids as scenery
from liedyn.look.solid_surfaces import triangles
from liedyn.look.viewer import scene
from liedyn.look.viewer.player import Clock, Run, Swing
from liedyn.look.viewer.posture import Posture

LOADER = ld.load("loader")
REST = np.zeros(8)


@pytest.fixture(scope="module")
def fall():
    return ld.simulate(LOADER, LOADER.home, REST, 0.3, events=ld.Event("half", lambda t, q, v: t - 0.15))


@pytest.fixture
def page():
    pages = []

    def of(*given, **more):
        pytest.importorskip("viser")
        pages.append(ld.view(*given, port=18080, **more))
        return pages[0]
    yield of
    for each in pages:
        each.close()


def closed(robot, q):
    return np.abs(ld.closure_error(robot, q)).max() < 1e-11


def by_hand(control, value):
    """What a browser's message does: the value, and a callback that knows of a client."""
    control.value = value
    for callback in control._impl.update_cb:
        callback(types.SimpleNamespace(client=1, target=control))


# ---- the scene


@pytest.mark.parametrize("name", ld.bundled())
def test_every_robot_has_something_of_every_body_and_a_camera(name):
    robot = ld.load(name)
    assert {each.body for each in scenery.solids(robot)} >= set(robot.body_names)
    look = scene.camera(robot, robot.home)
    poses = poses_of(robot, robot.home)
    forward = look.target - look.position
    away = np.linalg.norm(forward)
    for body in robot.body_names:  # within 50 degrees of the line of sight
        to = poses[body][:3, 3] - look.position
        assert to @ forward > 0.6 * away * np.linalg.norm(to)
    assert abs(forward @ look.up) < 0.999 * away


def test_bars_go_from_joint_to_joint():
    robot = ld.load("five_bar")
    bars = [each for each in scenery.solids(robot) if each.kind == "capsule" and each.body == "link1"]
    child = next(joint for joint in robot.model.joints if joint.parent == "link1")
    (one,) = bars
    ends = [(one.placement @ [0.0, 0.0, sign * one.size[1] / 2, 1.0])[:3] for sign in (-1, 1)]
    ends.sort(key=np.linalg.norm)
    np.testing.assert_allclose(ends, [np.zeros(3), child.placement[:3, 3]], atol=1e-12)


@pytest.mark.parametrize("kind, size, half", [
    ("box", (1.0, 2.0, 3.0), (0.5, 1.0, 1.5)), ("sphere", (0.5,), (0.5, 0.5, 0.5)),
    ("cylinder", (0.5, 2.0), (0.5, 0.5, 1.0)), ("capsule", (0.5, 2.0), (0.5, 0.5, 1.5)),
    ("ellipsoid", (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)), ("plane", (), (4.0, 4.0, 0.002)),
])
def test_triangles_of_solids(kind, size, half):
    placement = ld.placement((1.0, 0.0, 0.0))
    corners, faces = triangles(scenery.Solid("a", kind, placement, size, (1.0, 0.0, 0.0, 1.0)), reach=4.0)
    np.testing.assert_allclose(np.ptp(corners, axis=0) / 2, half, rtol=0.01)
    np.testing.assert_allclose((corners.max(axis=0) + corners.min(axis=0)) / 2, [1.0, 0.0, 0.0], atol=1e-9)
    assert faces.max() < len(corners)


def test_meshes_are_scaled_and_missing_ones_named(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box(extents=(1.0, 1.0, 1.0)).export(tmp_path / "cube.stl")
    solid = scenery.Solid("a", "mesh", np.eye(4), (), (1, 0, 0, 1), str(tmp_path / "cube.stl"), (2.0, 1.0, 0.001))
    corners, _ = triangles(solid)
    np.testing.assert_allclose(np.ptp(corners, axis=0), [2.0, 1.0, 0.001])
    with pytest.warns(ld.ModelWarning, match="'a': its mesh .*none.stl is not there"):
        assert triangles(solid._replace(mesh=str(tmp_path / "none.stl"))) == (None, None)
    (tmp_path / "bad.stl").write_text("solid nonsense")
    with pytest.warns(ld.ModelWarning, match="bad.stl cannot be read"):
        assert triangles(solid._replace(mesh=str(tmp_path / "bad.stl"))) == (None, None)


def test_shapes_of_files_are_drawn_as_they_are():
    def drawn(*shapes):
        b = ld.Builder.of(ld.load("five_bar"))
        b.frame("handle", "link1", (0.0, 0.2, 0.0))
        for name, body, kind, more in shapes:
            b.shape(name, body, kind, (0.1, 0.0, 0.0), **more)
        return scenery.solids(b.build())

    robot = ld.load("five_bar")
    box = "box", "handle", "box", dict(size=(0.1, 0.2, 0.3), role="collision")
    first, second = drawn(box, ("ball", "link2", "sphere", dict(size=0.1, color=(0.0, 1.0, 0.0, 0.5))))
    assert first.placement[:3, 3].tolist() == [0.1, 0.2, 0.0]  # of the frame, in the body that holds it
    assert (first.role, first.kind, second.color) == ("collision", "box", (0.0, 1.0, 0.0, 0.5))
    assert first.color == scenery.colour(scenery.COLOURS[robot.body_index("link1")])
    with_bars = drawn(box)  # for collisions only: better than a bar, and the others have bars
    assert with_bars[0].role == "visual"
    assert {each.kind for each in with_bars if each.body == "link1"} == {"box", "cylinder"}
    assert {each.body for each in with_bars} >= set(robot.body_names)


def test_bodies_whose_meshes_are_missing_are_drawn_otherwise(tmp_path):
    (tmp_path / "there.stl").write_text("solid")
    b = ld.Builder.of(ld.load("five_bar"))
    for body in ("link1", "link2", "link3"):
        b.shape(body, body, "mesh", mesh=str(tmp_path / ("there.stl" if body == "link1" else "none.stl")))
    b.shape("ball", "link2", "sphere", size=0.1, role="collision")
    with pytest.warns(ld.ModelWarning, match="2 meshes are not there, of 'link2', 'link3'; the first is .*none.stl"):
        found = scenery.solids(b.build())
    kinds = {body: {each.kind for each in found if each.body == body and each.role == "visual"} for body in (
        "link1", "link2", "link3")}
    assert "mesh" in kinds["link1"] and "sphere" in kinds["link2"] and "capsule" in kinds["link3"]
    assert not any(each.kind == "mesh" and each.body != "link1" for each in found)


def test_arrows_are_the_forces_of_pins():
    r = ld.forward_dynamics(LOADER, LOADER.home, REST, REST)
    found = scene.arrows(LOADER, LOADER.home, r.lam, unit=scene.weight(LOADER))
    wrenches = ld.world_constraint_wrenches(LOADER, LOADER.home, r.lam)
    poses = poses_of(LOADER, LOADER.home)
    assert [each.name for each in found] == list(LOADER.loop_names)
    for each, loop in zip(found, LOADER.model.loops):
        np.testing.assert_allclose(each.start, (poses[loop.child] @ loop.child_placement)[:3, 3])
        force = wrenches[loop.name][3:]
        np.testing.assert_allclose(np.cross(each.vector, force), 0.0, atol=1e-9)
        length = scene.LONGEST * scenery.size_of(LOADER) * min(np.linalg.norm(force) / scene.weight(LOADER), 1.5)
        assert each.vector @ force > 0.0 and np.linalg.norm(each.vector) == pytest.approx(length)


# ---- postures


@pytest.mark.parametrize("name", ["loader", "five_bar", "stewart", "delta", "shopping_cart", "cassie_like", "bricard"])
def test_sliders_move_coordinates_and_loops_stay_closed(name):
    robot = ld.load(name)
    posture = Posture(robot)
    assert not posture.message and posture.names
    for each in posture.names[:3]:
        low, high = posture.bounds(each)
        value, others = posture.value(each), {other: posture.value(other) for other in posture.names if other != each}
        goal = value + 0.02 * (1 if value + 0.02 < high else -1)
        assert low <= goal <= high and posture.move(each, goal), posture.message
        assert posture.value(each) == pytest.approx(goal, abs=1e-9) and closed(robot, posture.q)
        assert all(posture.value(other) == pytest.approx(x, abs=1e-9) for other, x in others.items())


def test_what_cannot_be_closed_is_said_and_the_last_posture_stays():
    posture = Posture(ld.load("stewart"))
    before = posture.q.copy()
    assert not posture.move("leg1", 2.0)
    assert "leg1" in posture.message and (posture.q == before).all()
    assert posture.move("leg1", 0.8) and posture.message == ""


def test_a_free_body_turns_and_shifts():
    robot = ld.load("solo12")
    posture = Posture(robot)
    assert posture.move("base.rz", 0.5) and posture.move("base.z", 0.7)
    expected = ld.integrate(robot, robot.home, [0, 0, 0.5] + [0.0] * (robot.nv - 3))
    np.testing.assert_allclose(posture.q[:4], expected[:4], atol=1e-12)
    assert posture.value("base.rz") == pytest.approx(0.5) and posture.value("base.z") == pytest.approx(0.7)


def test_switches_free_coordinates_and_close_again():
    posture = Posture(ld.load("five_bar"))
    assert len(posture.names) == 2 and posture.switch("pin", False) and len(posture.names) == 4
    assert ("rank of the rows", "0 of 0") in posture.facts()
    assert posture.move(posture.names[0], posture.value(posture.names[0]) + 0.2)
    assert posture.switch("pin", True) and len(posture.names) == 2 and closed(posture.robot, posture.q)
    assert posture.home() and np.allclose(posture.q, posture.robot.home, atol=1e-9)


def test_facts_name_redundant_rows_and_limits():
    facts = dict(Posture(LOADER).facts())
    assert facts["rank of the rows"] == "6 of 15" and "lift_pin.wx" in facts["redundant rows"]
    arm = ld.load("panda")
    posture = Posture(arm, arm.upper + 0.1)
    assert dict(posture.facts())["beyond limits"].split(", ") == list(arm.coordinate_names)
    assert posture.bounds("panda_joint1") == (arm.lower[0], arm.upper[0])


def test_forces_at_rest_hold_the_weight():
    robot = ld.load("stewart")
    lam, said = Posture(robot).forces()
    assert said.startswith("held at rest")
    q = ld.close(robot, robot.home)
    r = ld.inverse_dynamics(robot, q, np.zeros(robot.nv), np.zeros(6), robot.independent or None)
    np.testing.assert_allclose(lam, r.lam, atol=1e-8)


# ---- playing


def test_a_run_shows_the_state_after_an_event(fall):
    run = Run(LOADER, fall)
    assert (run.q(0.15) == fall.events[0].q_after).all()
    assert run.events(0.16) == ("half",) and run.events(0.14) == ()
    assert run.row(-1.0) == 0 and run.row(9.0) == len(fall) - 1
    with pytest.raises(ld.InputError, match="the trajectory is of 'loader', with other coordinates than 'panda'"):
        Run(ld.load("panda"), fall)


def test_a_mode_swings_about_the_operating_point():
    ss = ld.linearize(LOADER, LOADER.home, REST, REST)
    found = ld.modes(ss)
    swing = Swing(LOADER, ss, found, len(found) - 1, 0.05)
    for t in (0.0, 0.3, 1.2):
        assert closed(LOADER, swing.q(t)) and swing.message == ""
        assert np.abs(swing.q(t) - LOADER.home).max() < 0.06
    assert np.abs(swing.q(0.3) - LOADER.home).max() > 0.01


def test_the_clock_goes_round_and_stops():
    seen = []
    clock = Clock(seen.append, 0.0, 0.2, speed=1.0)
    clock.play()
    while len(seen) < 12:
        pass
    clock.pause()
    count = len(seen)
    assert not clock.running and min(seen) >= 0.0 and max(seen) <= 0.2 and np.diff(seen).min() < 0.0
    assert len(seen) == count


# ---- the page


def test_the_page_has_a_slider_for_each_coordinate_and_keeps_loops_closed(page):
    p = page(LOADER)
    assert set(p.sliders) == {"boom", "bucket"} and set(p.switches) == set(LOADER.loop_names)
    assert (p.sliders["boom"].min, p.sliders["bucket"].max) == (-3.141, 3.141)
    by_hand(p.sliders["boom"], 0.2)
    assert p.posture.value("boom") == pytest.approx(0.2) and closed(LOADER, p.posture.q)
    expected = poses_of(LOADER, p.posture.q)
    for name in LOADER.body_names:
        np.testing.assert_allclose(p.stage.bodies[name].position, expected[name][:3, 3], atol=1e-6)
    by_hand(p.switches["lift_pin"], False)
    assert len(p.sliders) == 4 and "4 of 10" in p.text.content
    assert "loader" in repr(p) and p.url in repr(p)


def test_the_page_says_what_cannot_be(page):
    p = page(ld.load("stewart"))
    before = p.sliders["leg1"].value
    by_hand(p.sliders["leg1"], 3.0)
    assert "cannot be" in p.text.content and p.sliders["leg1"].value == pytest.approx(before)


def test_the_page_plays_and_draws_forces(page, fall):
    p = page(LOADER, trajectory=fall, linear=ld.linearize(LOADER, LOADER.home, REST, REST))
    by_hand(p.time, 0.16)
    np.testing.assert_allclose(p.stage.bodies["boom"].position, poses_of(LOADER, fall.q[0])["boom"][:3, 3], atol=1e-6)
    assert "half" in p.text.content and set(p.stage.arrows) == set(LOADER.loop_names)
    p._play_or_pause()
    assert p._clock.running and p.button.label == "Pause"
    p._play_or_pause()
    assert not p._clock.running and p.button.label == "Play"


def test_a_page_for_a_browser_alone(tmp_path, fall):
    pytest.importorskip("viser")
    file = ld.export_html(LOADER, fall, tmp_path / "run.html", speed=0.5)
    text = file.read_text()
    assert "__VISER_EMBED_DATA__" in text and len(text) > 500_000
    assert ld.export_html(LOADER, LOADER.home, tmp_path / "still.html").exists()
    with pytest.raises(ld.LiedynError, match="cannot write"):
        ld.export_html(LOADER, LOADER.home, tmp_path / "no" / "still.html")


@pytest.mark.parametrize("package", ["viser", "trimesh"])
def test_what_is_not_installed_is_named(monkeypatch, package, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    for call in (lambda: ld.view(LOADER), lambda: ld.export_html(LOADER, LOADER.home, tmp_path / "a.html")):
        with pytest.raises(ld.LiedynError, match=rf"needs {package}: pip install 'liedyn\[view\]'"):
            call()


@pytest.mark.parametrize("wrong, said", [
    (dict(robot=3), "expected a Robot"), (dict(q=[0.0]), "shape"), (dict(trajectory=3), "must be a Trajectory, got 3"),
    (dict(linear=3), "LocalStateSpace"), (dict(port=-1), "port"), (dict(port=70000), "below 65536"),
    (dict(host=3), "host"), (dict(q=np.tile(LOADER.home, (2, 1))), "one q"),
])
def test_wrong_arguments_of_view(wrong, said):
    with pytest.raises(ld.InputError, match=said):
        ld.view(**{"robot": LOADER} | wrong)


@pytest.mark.parametrize("wrong, said", [
    (dict(robot=3), "expected a Robot"), (dict(trajectory=[0.0]), "shape"), (dict(path=3), "path"),
    (dict(speed=0.0), "speed"), (dict(trajectory=np.tile(LOADER.home, (2, 1))), "one configuration"),
])
def test_wrong_arguments_of_export_html(wrong, said, tmp_path):
    with pytest.raises(ld.InputError, match=said):
        ld.export_html(**{"robot": LOADER, "trajectory": LOADER.home, "path": tmp_path / "a.html"} | wrong)
