"""What is no file is not read: FIFOs, devices and folders in the place of files, and files without an end."""
import json
import os
import pickle
import threading

import numpy as np
import pytest

import liedyn as ld
from liedyn.bridges.large.results import DONE, JOB
from liedyn.look.solids import Solid
from liedyn.look.solid_surfaces import triangles
from liedyn.machine.reading import LARGEST, open_regular, read_regular

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
URDF = '<robot name="r"><link name="a"/></robot>'


def fifo(path):
    os.mkfifo(path)


def zeros(path):
    path.symlink_to("/dev/zero")


def folder(path):
    path.mkdir()


def endless(path):
    """As large as no robot, without taking room on the disk."""
    with open(path, "wb") as file:
        file.truncate(LARGEST + 1)


WRONG = {fifo: "a FIFO, not a regular file", zeros: "a device, not a regular file", folder: "Is a directory",
         endless: "larger than 64 MiB"}


def in_time(call, seconds=60.0):
    """What a call returns or raises; an error of the test's if it waits."""
    found = []

    def run():
        try:
            found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it waits"
    return found[0]


@pytest.mark.parametrize("make", WRONG)
@pytest.mark.parametrize("ending", ["toml", "urdf", "sdf", "world", "xml"])
def test_robots(make, ending, tmp_path):
    if ending == "xml":
        pytest.importorskip("mujoco")
    path = tmp_path / f"r.{ending}"
    make(path)
    error = in_time(lambda: ld.load(path))
    assert isinstance(error, ld.ModelError) and str(path) in str(error) and WRONG[make] in str(error)


@pytest.mark.parametrize("make", WRONG)
@pytest.mark.parametrize("sidecar", ["r.loops.toml", "r.yaml"])
def test_files_beside_robots(make, sidecar, tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    make(tmp_path / sidecar)
    error = in_time(lambda: ld.load(tmp_path / "r.urdf"))
    assert isinstance(error, ld.ModelError) and f"{sidecar}: cannot be read: {WRONG[make]}" in str(error)


@pytest.mark.parametrize("make", [fifo, zeros, folder])
def test_runs_and_results(make, tmp_path):
    make(tmp_path / "run.npz")
    error = in_time(lambda: ld.Trajectory.load(tmp_path / "run.npz"))
    assert isinstance(error, ld.InputError) and WRONG[make] in str(error)
    pytest.importorskip("dask")
    (tmp_path / "results").mkdir()
    make(tmp_path / "results" / "job.json")
    error = in_time(lambda: ld.open_results(tmp_path / "results"))
    assert isinstance(error, ld.InputError) and "holds no results" in str(error)


def results(path, zarr_format=3, **array):
    """A finished job of four rows, one number each, as `map_states` keeps it in Zarr."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(path, mode="a", zarr_format=zarr_format)
    group.create_array("A", shape=(4,), chunks=(2,), **{"dtype": "f8"} | array)[:] = np.arange(4.0)
    (path / DONE).mkdir()
    for k in range(2):
        (path / DONE / f"{k:06d}.json").write_text("{}")
    (path / JOB).write_text(json.dumps({"count": 4, "chunk": 2, "results": {"A": [[], "float64"]}}))
    return path


class Evil:
    def __reduce__(self):
        return os.abort, ()


def test_results_run_nothing(tmp_path):
    pytest.importorskip("dask")
    numcodecs = pytest.importorskip("numcodecs")
    np.testing.assert_array_equal(ld.open_results(results(tmp_path / "a.zarr"))["A"].compute(), np.arange(4.0))
    evil = results(tmp_path / "b.zarr", 2, filters=[numcodecs.Pickle()])
    for chunk in evil.glob("A/[0-9]*"):
        chunk.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ld.InputError, match="no array of Zarr, format 3"):
        ld.open_results(evil)["A"].compute()
    job = results(tmp_path / "c.zarr", dtype="i4") / JOB
    with pytest.raises(ld.InputError, match="kept as int32"):
        ld.open_results(job.parent)["A"]
    for wrong in ({"count": 10**18, "chunk": 1}, {"count": -1, "chunk": 1}, {"count": 1, "chunk": 0}):
        job.write_text(json.dumps({"results": {}} | wrong))
        with pytest.raises(ld.InputError, match="holds no results"):
            ld.open_results(job.parent)
    os.mkfifo(results(tmp_path / "d.zarr") / "A" / "fifo")
    assert "not a regular file" in str(in_time(lambda: ld.open_results(tmp_path / "d.zarr")))


@pytest.mark.parametrize("make", [fifo, zeros, folder])
@pytest.mark.parametrize("text", [
    '<include file="{}"/>', "<include  file = '{}' />", '<include file="inner.xml"/>',
    '<asset><mesh file="{}"/></asset>', '<asset><hfield name="h" file="{}" size="1 1 1 1"/></asset>',
    '<asset><texture type="2d" file="{}"/></asset>',
    '<asset><model name="m" file="{}"/></asset>', '<compiler meshdir="sub"/><asset><mesh file="../{}"/></asset>',
    '<include file="p&#97;rt.xml"/>',
])
def test_files_that_an_mjcf_file_names(make, text, tmp_path):
    pytest.importorskip("mujoco")
    make(tmp_path / "part.xml")
    (tmp_path / "sub").mkdir()
    (tmp_path / "inner.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    (tmp_path / "r.xml").write_text(f"<mujoco>{text.format('part.xml')}</mujoco>")
    error = in_time(lambda: ld.load(tmp_path / "r.xml"))
    assert isinstance(error, ld.ModelError) and "part.xml'" in str(error) and WRONG[make] in str(error)


@pytest.mark.parametrize("meta", ["{}", "[]", "3", "{", '{"events": 3}', '{"events": [{}], "wrenches": []}',
                                  '{"events": [], "wrenches": {"a": 1}}', '{"events": [], "wrenches": [], "x": 1}'])
def test_archives_of_others(meta, tmp_path):
    np.savez(tmp_path / "run.npz", meta=np.array(meta), t=np.zeros(1))
    with pytest.raises(ld.InputError, match="was not written by Trajectory.save"):
        ld.Trajectory.load(tmp_path / "run.npz")


@pytest.mark.parametrize("make", [fifo, zeros, folder])
def test_meshes_and_what_they_name(make, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    solid = Solid("a", "mesh", np.eye(4), (), (1, 0, 0, 1), str(tmp_path / "a.obj"), (1.0, 1.0, 1.0))
    box = trimesh.creation.box().export(file_type="obj", include_normals=False)
    (tmp_path / "a.obj").write_text(f"mtllib a.mtl\nusemtl x\n{box}")
    make(tmp_path / "a.mtl")
    corners, _ = in_time(lambda: triangles(solid))
    assert np.ptp(corners, axis=0).tolist() == [1.0, 1.0, 1.0]
    (tmp_path / "a.obj").unlink()
    make(tmp_path / "a.obj")
    with pytest.warns(ld.ModelWarning, match="is not there"):
        assert in_time(lambda: triangles(solid)) == (None, None)


def test_included_files_are_read_as_ever(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "part.xml").write_text('<mujoco><worldbody><body name="b"><joint name="j"/><geom size="1"/></body>'
                                       "</worldbody></mujoco>")
    (tmp_path / "r.xml").write_text('<mujoco><!-- <include file="none.xml"/> --><include file="part.xml"/></mujoco>')
    assert ld.load(tmp_path / "r.xml").joint_names == ("j",)
    (tmp_path / "part.xml").write_text('<mujoco><include file="r.xml"/></mujoco>')
    assert isinstance(in_time(lambda: ld.load(tmp_path / "r.xml")), ld.ModelError)


def test_bytes_and_their_bound(tmp_path):
    (tmp_path / "x").write_bytes(json.dumps([1]).encode())
    assert read_regular(tmp_path / "x") == b"[1]" and read_regular(tmp_path / "x", 3) == b"[1]"
    with pytest.raises(OSError, match="larger than"):
        read_regular(tmp_path / "x", 2)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")
    for path in ("/dev/null", "/dev/tty", "/proc/self/fd/0"):
        if os.path.exists(path) and not os.path.isfile(path):
            with pytest.raises(OSError):
                open_regular(path)
