"""Jobs in chunks on a cluster: what one call computes, whatever is interrupted, killed or wrong meanwhile."""
import os
import signal
import sys
import threading

import numpy as np
import pytest
from processes import KEPT, process

import liedyn as ld
from benchmarks.robots import moving_states
from liedyn.bridges.large.chunks import ChunkWork, computed
from liedyn.bridges.large.transport import digest, packed, unpacked

dask = pytest.importorskip("dask", reason="jobs on a cluster need the extra dask")
distributed = pytest.importorskip("distributed", reason="jobs on a cluster need the extra dask")
zarr = pytest.importorskip("zarr", reason="results in Zarr need the extra dask")

COUNT, SCALE = 60, 2.0
# rows of a batch share the choice of independent coordinates and of pivots with others of their register, which are
# others where chunks begin: rounding differs
ROUNDING = dict(rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two processes, with a cache of kernels of their own that is empty, if the one of the tests has been chosen."""
    environment = {}
    if os.environ.get("LIEDYN_CACHE_DIR"):
        environment["LIEDYN_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                                  env=environment) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def five_bar():
    robot = ld.load("five_bar")
    q, v, tau = moving_states(robot, COUNT, np.random.default_rng(0), 0.02)
    return robot, {"q": q, "v": v, "tau": tau}


def misses():
    """On a worker: how many kernels it has looked for in vain, and found."""
    from liedyn.machine.compiled import jit
    return (sum(sum(k.stats.cache_misses.values()) for k in jit.KERNELS),
            sum(sum(k.stats.cache_hits.values()) for k in jit.KERNELS))


@pytest.mark.parametrize("save", (None, "folder", "group.zarr"))
def test_linearize(client, five_bar, tmp_path, save):
    robot, states = five_bar
    path = save and tmp_path / save
    found = ld.map_states("linearize", robot, states, chunk=16, client=client, save=path)
    assert found.names == ("A", "B", "C", "D", "f0") and found.computed == 4 and found.count == COUNT
    assert not found.errors and not found.failed.any() and found.chunk == 15
    at_once = ld.linearize(robot, **states)
    for name in found:
        assert isinstance(found[name], np.ndarray) == (save is None)
        np.testing.assert_allclose(np.asarray(found[name]), getattr(at_once, name), **ROUNDING)
    if save:
        again = ld.open_results(path)
        assert again.names == found.names and np.array_equal(again["A"][20:40].compute(), found["A"][20:40].compute())
    for missed, hit in client.run(misses).values():  # what this process has compiled, workers have found
        assert missed == 0 and (hit > 0 or save is None)


def test_other_functions(client, five_bar):
    robot, states = five_bar
    found = ld.map_states("forward_dynamics", robot, states, chunk=20, client=client, keep=["a", "lam", "rank"])
    at_once = ld.forward_dynamics(robot, **states)
    np.testing.assert_allclose(found["a"], at_once.a, **ROUNDING)
    assert found["rank"].dtype.kind == "i" and (found["rank"] == at_once.rank).all()
    starts = {"q0": states["q"], "v0": states["v"], "tau": states["tau"]}
    found = ld.map_states("simulate", robot, starts, chunk=20, client=client, t_final=0.01, keep=["q", "t"])
    runs = ld.simulate(robot, **starts, t_final=0.01)
    np.testing.assert_allclose(found["q"], runs.q, **ROUNDING)
    assert (found["t"] == runs.t).all()
    loader = ld.load("loader")
    q = ld.close(loader, loader.home, boom=np.linspace(0.0, 0.3, 12))
    found = ld.map_states("trim", loader, {"q": q}, chunk=4, client=client, free=loader.actuator_names)
    np.testing.assert_allclose(found["u"], ld.trim(loader, q, free=loader.actuator_names).u, rtol=1e-8)
    assert found["reached"].dtype == bool and found["reached"].all()


def test_a_function_of_states(client, five_bar):
    """Its rows come by name, options are the same for all; what is no dict is called "result"."""
    robot, states = five_bar

    def power(robot, v, tau, factor):
        return factor * (v * tau).sum(axis=-1)

    found = ld.map_states(power, robot, {"v": states["v"], "tau": states["tau"]}, chunk=7, client=client, factor=2.0)
    np.testing.assert_allclose(found["result"], 2.0 * (states["v"] * states["tau"]).sum(axis=-1), rtol=1e-12)
    halves = ld.map_states(lambda x: {"half": x / 2, "name": x[:, None] > 1.0}, None, {"x": np.arange(9.0)},
                           client=client, keep=["half"])
    assert halves["half"].tolist() == (np.arange(9) / 2).tolist() and halves.names == ("half",)


def test_arrays_of_dask_and_zarr(cluster, five_bar, tmp_path):
    """And a file in memory, and a scheduler by its address."""
    import dask.array as da
    robot, states = five_bar
    kept = zarr.open_array(tmp_path / "v.zarr", mode="w", shape=states["v"].shape, chunks=(9, 4), dtype="f8")
    kept[...] = states["v"]
    np.save(tmp_path / "tau.npy", states["tau"])
    given = {"q": da.from_array(states["q"], chunks=(25, 4)), "v": kept,
             "tau": np.load(tmp_path / "tau.npy", mmap_mode="r")}
    found = ld.map_states("forward_dynamics", robot, given, chunk=16, client=cluster.scheduler_address)
    np.testing.assert_allclose(found["a"], ld.forward_dynamics(robot, **states).a, **ROUNDING)


def test_rows_that_fail(client, five_bar):
    """They are named; the rest of their chunk is there."""
    robot, states = five_bar
    q = states["q"].copy()
    q[[0, 37, 38]] = [[np.nan], [1.0], [np.inf]]
    found = ld.map_states("linearize", robot, states | {"q": q}, chunk=20, client=client)
    assert list(found.errors) == [0, 37, 38] and np.flatnonzero(found.failed).tolist() == [0, 37, 38]
    assert "ClosureError" in found.errors[37] and "nan" in found.errors[0] and "of the batch" not in found.errors[38]
    assert np.isnan(found["A"][[0, 37, 38]]).all()
    good = ~found.failed
    np.testing.assert_allclose(found["A"][good], ld.linearize(robot, **states).A[good], **ROUNDING)
    with pytest.raises(ld.ClosureError):
        ld.map_states("linearize", robot, states | {"q": states["q"] + 1.0}, client=client)


@pytest.mark.parametrize("save", ("folder", "group.zarr"))
def test_an_interrupted_job_goes_on(client, five_bar, tmp_path, save):
    robot, states = five_bar
    flag = tmp_path / "repaired"

    def fragile(robot, q):
        if not flag.exists() and (q == states["q"][33]).all(axis=1).any():
            raise RuntimeError("the disk is full")
        return {"M": ld.crba(robot, q)}

    job = dict(robot=robot, states={"q": states["q"]}, chunk=10, client=client, save=tmp_path / save)
    with pytest.raises(ld.LiedynError, match=r"chunk 3 \(rows 30 to 39\).*from row 30 on: RuntimeError: the disk is"):
        ld.map_states(fragile, **job)
    with pytest.raises(ld.InputError, match="not complete: . of 6 chunks are missing"):
        ld.open_results(tmp_path / save)
    flag.touch()
    found = ld.map_states(fragile, **job)
    assert 1 <= found.computed < 6
    np.testing.assert_allclose(found["M"].compute(), ld.crba(robot, states["q"]), rtol=1e-12)
    lost = tmp_path / save / ("000002.npz" if save == "folder" else "liedyn_chunks/000002.json")
    lost.unlink()
    assert ld.map_states(fragile, **job).computed == 1
    assert ld.map_states(fragile, **job).computed == 0
    for other in (dict(chunk=20), dict(states={"q": states["q"] + 1e-15}), dict(robot=ld.load("four_bar"))):
        if "robot" in other:
            other["states"] = {"q": np.zeros((COUNT, other["robot"].nq))}
        with pytest.raises(ld.InputError, match="holds the results of another job: its"):
            ld.map_states(fragile, **job | other)


@pytest.mark.parametrize("save", (None, "folder"))
def test_a_worker_that_dies_loses_nothing(client, five_bar, tmp_path, save):
    robot, states = five_bar
    flag = tmp_path / "died"

    def deadly(robot, q):
        if (q == states["q"][41]).all(axis=1).any() and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"M": ld.crba(robot, q)}

    found = ld.map_states(deadly, robot, {"q": states["q"]}, chunk=5, client=client, save=save and tmp_path / save)
    assert flag.exists() and not found.errors and found.computed == 12
    np.testing.assert_allclose(np.asarray(found["M"]), ld.crba(robot, states["q"]), rtol=1e-12)


def test_parameters(client):
    """Variants of a robot; those that cannot be built are failed rows."""
    import dask.bag
    loader = ld.load("loader")

    def fastest(mass, pose):
        b = ld.Builder.of(loader)
        b.change("body", "boom", mass=mass)
        return ld.linearize(b.build(), pose, [0.0] * 8, [0.0] * 8).eigenvalues().imag.max()

    masses = np.append(np.linspace(300.0, 900.0, 6), -1.0)
    found = ld.map_parameters(fastest, masses, chunk=3, client=client, pose=loader.home)
    alone = [fastest(mass, loader.home) for mass in masses[:-1]]
    np.testing.assert_allclose(found["result"][:-1], alone, rtol=1e-9)
    assert list(found.errors) == [6] and "mass" in found.errors[6] and np.isnan(found["result"][6])
    bag = dask.bag.from_sequence([{"a": 1.0}, {"a": 2.0}])
    assert ld.map_parameters(lambda p: {"b": [p["a"], 2]}, bag, client=client)["b"].tolist() == [[1.0, 2.0], [2.0, 2.0]]
    with pytest.raises(ld.LiedynError, match="from row 0 on: ZeroDivisionError"):
        ld.map_parameters(lambda p: 1 / (p - 1), [1, 2, 3], client=client)
    with pytest.raises(ld.LiedynError, match=r"chunk 1 \(rows 2 to 3\).*from row 3 on: ZeroDivisionError"):
        ld.map_parameters(lambda p: 1 / (p - 4), [1, 2, 3, 4], chunk=2, client=client)


def test_robots_travel():
    """With switches and users' functions; what cannot travel is named."""
    five_bar = ld.load("five_bar")
    moved = five_bar.with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0])).at(0.5)
    b = ld.Builder.of(five_bar)
    b.coordinate_force("bar", {"q1": 1.0}, law=lambda x, w: (3.0 * x**3, 9.0 * x**2, 0.0))
    for robot in (five_bar, five_bar.switched(pin=False), moved, b.build(), ld.load("panda"), ld.load("governor")):
        again = unpacked(packed("robot", {"robot": robot}))["robot"]
        assert again is not robot and again.t == robot.t and again.active == robot.active
        q = ld.random_configuration(robot, np.random.default_rng(0))
        v, tau = np.ones(robot.nv), np.ones(robot.nv)
        assert np.array_equal(ld.rnea(robot, q, v, v), ld.rnea(again, q, v, v))
        assert np.array_equal(ld.closure_error(robot, q), ld.closure_error(again, q))
        assert np.array_equal(ld.element_forces(robot, q, v), ld.element_forces(again, q, v)), tau
        assert digest(robot) == digest(again) == digest(robot.at(robot.t))
    with pytest.raises(ld.InputError, match="function 'f'.* cannot be sent to other processes: TypeError.*lock"):
        packed("function 'f'", threading.Lock())


def test_jobs_are_told_apart():
    """By what a function does and uses, wherever it stands; the same in each process."""
    def made(factor, robot, more=1.0):
        return lambda x: x * factor * robot.nq * more * SCALE * len({"a", "b"})

    five_bar = ld.load("five_bar")
    b = ld.Builder.of(five_bar)
    b.change("body", "link2", mass=1.7)
    heavier = b.build()
    same = digest(made(2.0, five_bar))
    assert same == digest(made(2.0, ld.load("five_bar")))
    assert same not in map(digest, (made(3.0, five_bar), made(2.0, heavier), made(2.0, five_bar.at(1.0)), made))
    assert digest(five_bar.switched(pin=False)) != digest(five_bar) != digest(heavier)
    code = """
import liedyn as ld, numpy as np
from liedyn.bridges.large.transport import digest
SCALE = 2.0
def double(x): return SCALE * x
def used(x, y=np.arange(3)): return double(x) + y.sum() if x in {1.0, 2.0, "c"} else double
print(digest(used, ld.load("loader"), {"a": [1, None, 0.1]}))"""
    assert process(code, **KEPT).stdout == process(code, **KEPT).stdout


def test_halves_find_the_rows():
    """Of a chunk that fails only halves with a bad row are computed again: log2 of the rows for a single one."""
    sizes = []

    def root(x):
        sizes.append(len(x))
        if (x < 0).any():
            raise ld.InputError("negative")
        return np.sqrt(x)

    x = np.arange(64.0)
    x[20] = -1.0
    arrays, errors = computed(ChunkWork(root, None, None, {}, False), {"x": x}, 64)
    assert list(errors) == [20] and errors[20] == "InputError: negative" and len(sizes) == 13
    assert np.array_equal(np.delete(arrays["result"], 20), np.sqrt(np.delete(x, 20))) and np.isnan(arrays["result"][20])


def test_wrong_arguments(client, five_bar, tmp_path):
    robot, states = five_bar
    valid = dict(function="linearize", robot=robot, states=states, client=client)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    (tmp_path / "a_file").touch()
    for wrong, text in (
            (dict(function="linearise"), "did you mean 'linearize'"), (dict(function=3), "unknown function 3"),
            (dict(robot="five_bar"), "expected a Robot"), (dict(robot=None), "expected a Robot"),
            (dict(states=states["q"]), "a dict of arrays"), (dict(states={}), "a dict of arrays"),
            (dict(states={"q": states["q"], "v": states["v"][:3]}), "as many rows each, got {'q': 60, 'v': 3}"),
            (dict(states={"q": "text"}), "q must be"), (dict(states={"q": 1.0}), "q must have a row for each state"),
            (dict(states=states | {"x": states["q"]}), "linearize: got an unexpected keyword argument 'x'"),
            (dict(states={"v": states["v"]}), "linearize: missing a required argument: 'q'"),
            (dict(states=states | {"v": states["v"][:, :2]}), "v"), (dict(chunk=0), "chunk"),
            (dict(chunk="x"), "chunk"),
            (dict(keep=["E"]), "linearize has no array 'E' to keep, .*'A'"), (dict(keep=3), "keep must be names"),
            (dict(keep=[]), "keep names no results"), (dict(client=3), "client must be"),
            (dict(client="nowhere"), "client: there is no scheduler at 'nowhere'"),
            (dict(save=3), "the path of results"),
            (dict(save=tmp_path / "other"), "is there already, and holds no results"),
            (dict(save=tmp_path / "a_file"), "nothing can be kept in|a_file"), (dict(progress=3), "progress"),
            (dict(independent=["q7"]), "q7")):
        with pytest.raises(ld.InputError, match=text):
            ld.map_states(**valid | wrong)
    for wrong, text in ((dict(function="linearize"), "a function of a parameter"), (dict(parameters=3), "a sequence"),
                        (dict(parameters=[]), "there are no parameters"), (dict(parameters="abc"), "a sequence"),
                        (dict(parameters=np.array(["a"])), "rows of numbers"), (dict(keep=["x"]), "nothing is called")):
        with pytest.raises(ld.InputError, match=text):
            ld.map_parameters(**dict(function=lambda p: p, parameters=[1.0], client=client) | wrong)
    for path in (3, "", tmp_path / "nothing", tmp_path / "other", tmp_path / "a_file"):
        with pytest.raises(ld.InputError, match="results"):
            ld.open_results(path)
    with pytest.raises(ld.InputError, match="no results 'E': there are 'half'"):
        ld.map_states(lambda x: {"half": x}, None, {"x": [1.0]}, client=client)["E"]


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ld.LiedynError, match=r"need distributed: pip install 'liedyn\[dask\]'"):
        ld.map_states("linearize", ld.load("five_bar"), {"q": np.zeros((2, 4)), "v": np.zeros((2, 4))})
