"""Kernels' own bodies in threads of a GPU, which Numba simulates: run by test_cuda.py with NUMBA_ENABLE_CUDASIM=1."""
import numpy as np
import pytest
from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray
from c_programs import moving_states
from cuda_on_host import HostDevice
from test_generate_c import ball, floating, geared
from tree_cases import bundled

import liedyn as ld
from liedyn.bridges.specialization import cuda_bodies, cuda_robot
from liedyn.bridges.specialization.cuda_bodies import CudaBody
from liedyn.bridges.specialization.cuda_robot import CudaRobot

TREE = ("rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives")
ROBOTS = {"panda": lambda: bundled("panda"), "ball": lambda: ball().build(), "floating": lambda: floating().build(),
          "geared": lambda: geared().build()}


@pytest.fixture(autouse=True)
def quick_simulator(monkeypatch):
    """In blocks of few threads, as each is one of Python; and a state's row is an array of NumPy, not wrapped again."""
    monkeypatch.setattr(cuda_bodies, "THREADS", 4)
    monkeypatch.setattr(FakeWithinKernelCUDAArray, "__getitem__", lambda array, place: array._item._ary[place])


def results(gpu, name, states, **options):
    """Results in rows, and `ok`."""
    given = [np.ascontiguousarray(x if gpu.layout == "rows" else x.T) for x in states[:1 if name == "crba" else 3]]
    *found, ok = getattr(gpu, name)(*given, **options)
    return [np.moveaxis(x, -1, 0) if gpu.layout == "columns" else x for x in found], ok


def expected_of(robot, name, states):
    if name == "crba":
        return (ld.crba(robot, states[0]),)
    if name == "forward_dynamics":
        name = "aba"
    found = getattr(ld, name)(robot, *states)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("name", ROBOTS)
def test_all_as_bodies(monkeypatch, tmp_path, name, layout):
    """More than one slab; a state without a result leaves those beside it alone."""
    monkeypatch.setattr(cuda_robot, "LONGEST_LINES", -1)
    monkeypatch.setattr(cuda_bodies, "ROOM", 60_000)
    robot = ROBOTS[name]()
    gpu = CudaRobot(robot, None, "float64", layout, HostDevice(tmp_path))
    states = moving_states(robot, 5, 0.5)
    bad = [x.copy() for x in states]
    bad[0][3] *= np.nan
    for function in TREE:
        found, ok = results(gpu, function, bad, fallback="nan")
        assert isinstance(gpu._function(function), CudaBody) and list(ok) == [True] * 3 + [False, True]
        for x, y in zip(found, expected_of(robot, function, states), strict=True):
            assert x.shape == y.shape and np.isnan(x[3]).all()
            assert abs(x - y)[ok].max() < 1e-12 * abs(y).max(), function


def test_what_is_too_long(tmp_path):
    """Derivatives of a quadruped: no program, but the same results; in single precision rounded."""
    robot = bundled("solo12")
    gpu = CudaRobot(robot, None, "float32", "rows", HostDevice(tmp_path))
    q, v, tau = (x.astype("float32").astype(float) for x in moving_states(robot, 2, 0.3))
    found, ok = results(gpu, "aba_derivatives", [x.astype("float32") for x in (q, v, tau)])
    assert isinstance(gpu._function("aba_derivatives"), CudaBody) and ok.all()
    for x, y in zip(found, ld.aba_derivatives(robot, q, v, tau), strict=True):
        assert x.dtype == "float32" and abs(x - y).max() < 1e-6 * abs(y).max()
    with pytest.raises(ld.InputError, match="too long for one program, and has no source"):
        gpu.source("aba_derivatives")


def test_quaternions_that_are_not_of_unit_length(monkeypatch, tmp_path):
    monkeypatch.setattr(cuda_robot, "LONGEST_LINES", -1)
    robot = floating().build()
    q, v, tau = moving_states(robot, 3, 0.3)
    gpu, longer = CudaRobot(robot, None, "float64", "rows", HostDevice(tmp_path)), q.copy()
    longer[1, robot.coordinate_names.index("base.qx"):][:4] *= 1.1
    found, ok = results(gpu, "aba", (longer, v, tau), fallback="nan")
    assert list(ok) == [True, False, True] and np.isnan(found[0][1]).all()
    with pytest.raises(ld.InputError, match="has length 1.1, not 1"):
        results(gpu, "aba", (longer, v, tau))
