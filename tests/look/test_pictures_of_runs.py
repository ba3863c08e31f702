"""Trajectories as curves, moving pictures and tables; static pictures; what is missing is named."""
import pickle
import shutil
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from liedyn.look.plotting import mechanism, poles, save_picture

LOADER = ld.load("loader")


@pytest.fixture(scope="module")
def run():
    return ld.simulate(LOADER, LOADER.home, np.zeros(8), 0.2, events=ld.Event("half", lambda t, q, v: t - 0.1))


def test_curves_have_names_and_events(run):
    ax = run.plot()
    assert [line.get_label() for line in ax.lines] == [*LOADER.coordinate_names, "events"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), run["boom"])
    assert ax.lines[-1].get_xdata() == [0.1, 0.1] or np.allclose(ax.lines[-1].get_xdata(), 0.1)
    assert run.plot(["energy", "velocity:boom", "lift_pin.vx"], ax) is ax and len(ax.lines) == 13
    with pytest.raises(ld.InputError, match="nothing called 'bom' in the trajectory, did you mean 'boom'"):
        run.plot("bom")


def test_curves_have_units(run):
    assert run.plot().get_ylabel() == "[rad, m]" and run.plot("velocity:lift_rod").get_ylabel() == "[m/s]"
    assert run.plot(["force:boom", "energy"]).get_ylabel() == "[N m, J]"


def test_bars_of_progress_are_shown_on_terminals_only(monkeypatch):
    from liedyn.machine import progress

    for terminal in (True, False):
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda terminal=terminal: terminal))
        assert (progress.Progress(None, 0.0, 1.0).tqdm is not None) == terminal
        assert progress.Progress(True, 0.0, 1.0).tqdm is not None


def test_many_curves_are_told_apart():
    arm = ld.load("talos")
    tr = ld.simulate(arm, arm.home, np.zeros(arm.nv), 0.002)
    styles = [(line.get_color(), line.get_linestyle()) for line in tr.plot(arm.coordinate_names[:30]).lines]
    assert len(set(styles)) == 30 and len(tr.plot().lines) == 10


@pytest.mark.parametrize("name", ["loader", "panda"])
def test_moving_pictures_have_their_frames(tmp_path, name):
    from PIL import Image

    robot = ld.load(name)
    tr = ld.simulate(robot, robot.home, np.zeros(robot.nv), 0.1)
    with Image.open(tr.animate(tmp_path / "run.gif", rate=20.0)) as picture:
        frames = []
        for k in range(picture.n_frames):
            picture.seek(k)
            frames.append(np.asarray(picture.convert("RGB")).astype(int))
    assert len(frames) == 3 and np.abs(frames[-1] - frames[0]).max() > 50


@pytest.mark.parametrize("name", ["loader", "panda"])
def test_a_moved_picture_is_a_new_one(name, pyplot):
    """Artists that were moved show what artists made at that configuration show."""
    from liedyn.look.drawing import Drawing
    from liedyn.look.planes import plane_of, poses_of

    robot, pictures = ld.load(name), []
    q = ld.integrate(robot, robot.home, 0.2 * np.ones(robot.nv))
    for way in ([q], [robot.home, q]):
        normal = plane_of(robot, poses_of(robot, q))
        ax = pyplot.figure(figsize=(3, 3)).add_subplot(projection=None if normal is not None else "3d")
        drawing = Drawing(robot, ax, normal)
        drawing.frame(*np.array([[-1.0, -1.0, -1.0], [3.0, 1.0, 1.0]])[:, :2 + (normal is None)])
        for each in way:
            drawing.move(each)
        ax.figure.canvas.draw()
        pictures.append(np.asarray(ax.figure.canvas.buffer_rgba()).copy())
    np.testing.assert_array_equal(*pictures)


def test_configurations_are_animated_without_a_run(tmp_path):
    from PIL import Image

    q = ld.close(LOADER, LOADER.home, boom=np.linspace(0.0, 0.3, 4), bucket=0.0)
    animate = ld.plotting.animate
    with Image.open(animate(LOADER, [0.0, 0.1, 0.2, 0.3], q, tmp_path / "lift.gif", rate=10.0)) as picture:
        assert picture.n_frames == 4
    for t, why in (([0.0, 0.1], "one time for each of 4"), ([0.0, 0.2, 0.1, 0.3], "in order"),
                   ([0.0, 0.1, 0.2, np.inf], "finite"), ("abc", "times")):
        with pytest.raises(ld.InputError, match=why):
            animate(LOADER, t, q, tmp_path / "no.gif")


def test_every_picture_of_a_motion_shows_all_of_it(pyplot):
    """A free body flies far: it is inside the axes of its first and of its last picture."""
    robot = floating(lambda b: None)
    v = [0.0, 0.0, 0.0, 3.0, 0.0, 4.0]
    tr = ld.simulate(robot, robot.home, v, 0.8)
    from liedyn.look import animation
    from liedyn.machine.progress import Progress

    for picture in animation._pictures(robot, tr.t[[0, -1]], tr.q[[0, -1]], Progress(False, 0.0, 1.0, "")):
        coloured = np.ptp(picture[..., :3].astype(int), axis=2) > 60
        assert coloured.any() and not coloured[:5].any() and not coloured[:, :5].any() and not coloured[:, -5:].any()


def test_meshes_are_drawn_with_fewer_faces(pyplot, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(subdivisions=5, radius=0.5).export(tmp_path / "ball.stl")
    robot = floating(lambda b: b.shape("skin", "thing", "mesh", mesh=str(tmp_path / "ball.stl")))
    seen = next(each for each in mechanism(robot, robot.home).collections if hasattr(each, "corners")).corners
    assert 500 < len(seen) < 6000
    np.testing.assert_allclose(np.ptp(seen.reshape(-1, 3), axis=0), 1.0, atol=0.03)


def test_a_run_from_a_file_needs_its_robot(run, tmp_path):
    loaded = ld.Trajectory.load(run.save(tmp_path / "run"))
    for other in (loaded, pickle.loads(pickle.dumps(run))):
        with pytest.raises(ld.InputError, match="does not know its robot.*'loader'"):
            other.animate(tmp_path / "a.gif")
    with pytest.raises(ld.InputError, match="other coordinates than 'panda'"):
        loaded.animate(tmp_path / "a.gif", robot=ld.load("panda"))
    assert loaded.animate(tmp_path / "a.gif", robot=LOADER, rate=5.0).exists()


def test_other_endings_and_missing_programs(run, tmp_path, monkeypatch):
    with pytest.raises(ld.InputError, match=r"\.gif or \.mp4, not 'a.avi'"):
        run.animate(tmp_path / "a.avi")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ld.LiedynError, match=r"FFmpeg, which is not installed.*liedyn\[video\]"):
        run.animate(tmp_path / "a.mp4")
    with pytest.raises(ld.LiedynError, match="cannot write"):
        run.animate(tmp_path / "no" / "a.gif", rate=5.0)


def test_a_film_without_an_ffmpeg_of_the_system(run, tmp_path, monkeypatch):
    """As many pictures as asked for, of the loader, which moves."""
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    path = run.animate(tmp_path / "a.mp4", rate=20.0)
    frames = imageio_ffmpeg.read_frames(str(path))
    told = next(frames)
    width, height = told["size"]
    pictures = [np.frombuffer(each, np.uint8).reshape(height, width, 3) for each in frames]
    assert told["fps"] == 20.0 and len(pictures) == int(np.ceil(20.0 * (run.t[-1] - run.t[0]))) + 1
    assert (pictures[0][2, 2] > 250).all() and (pictures[0] < 200).any()  # white, and something on it
    assert (np.abs(pictures[0].astype(int) - pictures[-1]) > 60).sum() > 100


def test_a_table(run):
    pandas = pytest.importorskip("pandas")
    table = run.to_dataframe()
    assert isinstance(table, pandas.DataFrame) and len(table) == len(run) and table.index.name == "t"
    for name in ("boom", "velocity:boom", "acceleration:boom", "force:boom", "lift_pin.vx"):
        np.testing.assert_array_equal(table[name], run[name])
    np.testing.assert_array_equal(table["kinetic"] + table["potential"], run.energy)


@pytest.mark.parametrize("package, call", [
    ("pandas", "to_dataframe"), ("matplotlib.figure", "plot"),
])
def test_what_is_not_installed_is_named(run, monkeypatch, package, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ld.LiedynError, match="pip install 'liedyn"):
        getattr(run, call)()


def test_sliding_joints_are_drawn_between_barrel_and_rod():
    q = ld.close(LOADER, LOADER.home, boom=-0.4)
    ax = mechanism(LOADER, q)
    joints = next(each for each in ax.collections if each.get_label() == "joint").get_offsets()
    poses = [ld.pose(LOADER, q, name)[:2, 3] for name in ("lift_barrel", "lift_rod")]
    middle = poses[0] + 0.475 * (poses[1] - poses[0])
    assert np.linalg.norm(np.asarray(joints) - middle, axis=1).min() < 1e-12


# ---- where pictures appear, and what of a robot


@pytest.fixture
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def test_pictures_are_of_pyplot_and_files_are_not(run, pyplot, tmp_path):
    """`plt.show()` and notebooks show what pyplot knows."""
    for k, make in enumerate((run.plot, lambda: mechanism(LOADER, LOADER.home), lambda: poles([-1.0]))):
        assert make().figure.number == pyplot.get_fignums()[k]
    save_picture(tmp_path / "a.png", LOADER, LOADER.home, [-1.0])
    run.animate(tmp_path / "a.gif", rate=5.0)
    assert len(pyplot.get_fignums()) == 3


@pytest.mark.parametrize("name", ld.bundled())
def test_every_robot_is_drawn_on_axes_of_space(name, pyplot):
    robot = ld.load(name)
    ax = pyplot.figure(figsize=(2, 2)).add_subplot(projection="3d")
    mechanism(robot, robot.home, ax=ax)
    ax.figure.canvas.draw()
    picture = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].astype(int)
    faces = next(each for each in ax.collections if hasattr(each, "corners"))
    assert len(faces.get_paths()) > 10 and (np.ptp(picture, axis=2) > 40).sum() > 50  # coloured, axes are grey


def test_flat_axes_are_for_flat_mechanisms(pyplot):
    with pytest.raises(ld.InputError, match="'panda' does not move in one plane: give axes with projection='3d'"):
        panda = ld.load("panda")
        mechanism(panda, panda.home, ax=pyplot.figure().add_subplot())


def test_legends_stay_in_axes_of_somebody_else(run, pyplot):
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3))
    run.plot(["boom", "bucket"], ax=axes[0])
    mechanism(LOADER, LOADER.home, ax=axes[1])
    figure.canvas.draw()
    for ax in axes[:2]:
        legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.x1 - legend.x0 > 0 and legend.x1 <= box.x1 + 1 and legend.x0 >= box.x0 - 1


def floating(declare):
    b = ld.Builder("thing")
    b.body("thing", mass=2.0, inertia=(0.004, 0.002, 0.005))
    b.joint("free", "free", "ground", "thing")
    declare(b)
    return b.build()


@pytest.mark.parametrize("declare, size", [
    (lambda b: b.shape("skin", "thing", "box", size=(0.1, 0.15, 0.05), role="collision"), (0.1, 0.15, 0.05)),
    (lambda b: b.shape("skin", "thing", "capsule", size=(0.03, 0.2)), (0.06, 0.06, 0.26)),
    (lambda b: b.shape("skin", "thing", "cylinder", size=(0.03, 0.2)), (0.06, 0.06, 0.2)),
    (lambda b: b.shape("skin", "thing", "ellipsoid", size=(0.03, 0.2, 0.1)), (0.06, 0.4, 0.2)),
    (lambda b: b.constraint("floor", "sphere_on_plane", "ground", "thing", radius=0.05, unilateral=True),
     (0.1, 0.1, 0.1)),
    # the box of even density with this mass and inertia: m (b^2 + c^2) / 12 = Ixx and so on
    (lambda b: None, np.sqrt(6.0 / 2.0 * np.array([0.003, 0.007, 0.001]))),
], ids=["box", "capsule", "cylinder", "ellipsoid", "contact", "inertia"])
def test_bodies_that_nothing_holds_are_seen_in_their_size(declare, size, pyplot):
    robot = floating(declare)
    ax = mechanism(robot, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.3])
    seen = next(each for each in ax.collections if hasattr(each, "corners")).corners.reshape(-1, 3)
    np.testing.assert_allclose(np.ptp(seen, axis=0), size, rtol=1e-9)
    assert abs(seen[:, 2].mean() - 0.3) < 0.05
    ax.figure.canvas.draw()


def test_the_page_looks_at_a_robot_where_it_is():
    from liedyn.look.viewer import scene

    robot = floating(lambda b: None)
    look = scene.camera(robot, np.array([0.0, 0.0, 0.0, 1.0, 5.0, 0.0, 0.3]))
    np.testing.assert_allclose(look.target, (5.0, 0.0, 0.3), atol=0.2)


def test_a_page_with_a_traceback_fails_the_site(tmp_path):
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
    try:
        import tracebacks
    finally:
        sys.path.pop(0)
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    told = '<div class="output {}"><pre>Traceback (most recent call last):</pre></div>'
    page = '<pre>Traceback (most recent call last): of a docstring</pre><div class="cell {}docutils container">{}</div>'
    for tag, output in (("", "<pre>fine</pre>"), ("tag_raises-exception ", told.format("traceback highlight"))):
        (tmp_path / "page.html").write_text(page.format(tag, output))
        tracebacks.look(app, None)
    told_where = page.format("tag_raises-exception ", "<pre>File {}liedyn/linear/linearize.py:5</pre>")
    (tmp_path / "page.html").write_text(told_where.format(f"{Path(__file__).parents[2]}{os.sep}"))
    tracebacks.look(app, None)
    assert (tmp_path / "page.html").read_text() == told_where.format("")
    for kind in ("stream", "stderr", "traceback"):
        (tmp_path / "page.html").write_text(page.format("", told.format(f"{kind} highlight")))
        with pytest.raises(Exception, match="page.html"):
            tracebacks.look(app, None)
