"""Trajectories as curves, moving pictures and tables; static pictures; what is missing is named."""
import pickle
import shutil
import sys

import numpy as np
import pytest

import liedyn as ld
from liedyn.plotting import mechanism

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
    with pytest.raises(ld.LiedynError, match="FFmpeg, which is not installed"):
        run.animate(tmp_path / "a.mp4")
    with pytest.raises(ld.LiedynError, match="cannot write"):
        run.animate(tmp_path / "no" / "a.gif", rate=5.0)


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
