"""Functions for a GPU, without one: their text compiled by g++, and by NVIDIA's compiler for sm_90."""
import os
import re
import subprocess
import sys
from pathlib import Path

import nvrtc
import numpy as np
import pytest
from c_programs import moving_states
from cuda_on_host import HostDevice, gxx
from test_generate_c import ball, floating, geared, off
from sprung_robots import sprung
from tree_cases import bundled

import liedyn as ld
from liedyn.bridges.specialization import cuda_bodies, cuda_launches
from liedyn.bridges.specialization.cuda_robot import CudaRobot

needs_gxx = pytest.mark.skipif(gxx() is None, reason="needs g++")

OPEN = ("rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives")
ROBOTS = {
    "panda": (lambda: bundled("panda"), (*OPEN, "forward_dynamics"), 1.5),
    "five_bar": (lambda: bundled("five_bar"), ("aba_derivatives", "forward_dynamics", "linearize"), 0.7),
    "four_bar": (lambda: bundled("four_bar"), ("linearize",), 0.7),
    "loader": (lambda: bundled("loader"), ("forward_dynamics", "linearize"), 0.3),
    "ball": (lambda: ball().build(), ("rnea", "forward_dynamics"), 0.5),
    "floating": (lambda: floating().build(), ("rnea_derivatives", "forward_dynamics"), 0.4),
    "sprung": (sprung, ("forward_dynamics", "linearize"), 0.3),
    "geared": (lambda: geared().build(), ("crba", "linearize"), 0.5),
}
REGISTERS = {("panda", "rnea"): (140, 0), ("panda", "aba"): (255, 0), ("panda", "rnea_derivatives"): (255, 800),
             ("panda", "aba_derivatives"): (255, 800), ("five_bar", "linearize"): (255, 0),
             ("four_bar", "linearize"): (180, 0)}
"""Registers and bytes of memory of a thread, at most, in double precision."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module", params=ROBOTS)
def moving(request):
    build, functions, spread = ROBOTS[request.param]
    robot = build()
    return robot, functions, moving_states(robot, 60, spread)


def results(gpu, name, states):
    """Results in rows, and `ok`."""
    given = [np.ascontiguousarray((x if gpu.layout == "rows" else x.T).astype(gpu.dtype))
             for x in states[:1 if name == "crba" else 3]]
    *found, ok = getattr(gpu, name)(*given, fallback="nan")
    return [np.moveaxis(x, -1, 0) if gpu.layout == "columns" else x for x in found], ok


def expected_of(robot, name, states):
    if name == "crba":
        return (ld.crba(robot, states[0]),)
    found = getattr(ld, name)(robot, *states)
    if name == "linearize":
        return found.A, found.B, found.f0
    return (found.a, found.lam) if name == "forward_dynamics" else found if isinstance(found, tuple) else (found,)


@needs_gxx
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_results(moving, layout, folder, monkeypatch):
    monkeypatch.setattr(cuda_launches, "SLAB", 25)
    robot, functions, states = moving
    gpu = CudaRobot(robot, None, "float64", layout, HostDevice(folder))
    for name in functions:
        found, ok = results(gpu, name, states)
        assert ok.mean() >= 0.85
        for x, y in zip(found, expected_of(robot, name, states), strict=True):
            assert x.shape == y.shape
            if y.size:
                assert off(x[ok].reshape(ok.sum(), -1), y[ok]) < 1e-12, name
                assert np.isnan(x[~ok]).all()


@needs_gxx
def test_single_precision(moving, folder):
    robot, functions, states = moving
    gpu = CudaRobot(robot, None, "float32", "rows", HostDevice(folder))
    rounded = [x.astype(np.float32).astype(float) for x in states]
    for name in set(functions) - {"linearize", "rnea_derivatives", "aba_derivatives"}:
        found, ok = results(gpu, name, states)
        assert ok.mean() >= 0.85 and found[0].dtype == np.float32
        for x, y in zip(found, expected_of(robot, name, rounded), strict=True):
            assert not y.size or off(x[ok].reshape(ok.sum(), -1), y[ok]) < 1e-3, name


@needs_gxx
def test_linear_models_in_single_precision(folder):
    """Rounded states are open by more than what is accepted in double precision."""
    robot = bundled("five_bar")
    states = [x.astype(np.float32).astype(float) for x in moving_states(robot, 60, 0.3)]
    (A, B, f0), ok = results(CudaRobot(robot, None, "float32", "rows", HostDevice(folder)), "linearize", states)
    assert ok.all()
    expected = ld.linearize(robot, *states, closure_tolerance=1e-4)
    assert off(A.reshape(60, -1), expected.A) < 1e-3 and off(f0, expected.f0) < 1e-3
    _, ok = results(CudaRobot(robot, None, "float32", "rows", HostDevice(folder)), "linearize",
                    (ld.integrate(robot, states[0], np.full(4, 1e-2)), *states[1:]))
    assert not ok.any()


@needs_gxx
def test_what_has_no_result(folder):
    """Not a number, infinite, too large; off the loop: no state beside it is touched."""
    robot = bundled("five_bar")
    states = moving_states(robot, 9, 0.3)
    gpu = CudaRobot(robot, None, "float64", "rows", HostDevice(folder))
    good = results(gpu, "linearize", states)
    for bad in (np.nan, np.inf, -1e60, 2e6):
        for k in range(3):
            changed = [x.copy() for x in states]
            changed[k][4, -1] = bad
            found, ok = results(gpu, "linearize", changed)
            if bad != 2e6 or k == 0:
                assert not ok[4] and all(np.isnan(x[4]).all() for x in found)
            others = np.arange(9) != 4
            assert ok[others].all()
            assert all((x[others] == y[others]).all() for x, y in zip(found, good[0]))
    found, ok = results(gpu, "linearize", (ld.integrate(robot, states[0], np.full(4, 1e-3)), *states[1:]))
    assert not ok.any() and all(np.isnan(x).all() for x in found)


@needs_gxx
def test_fallbacks(folder):
    robot = bundled("five_bar")
    q, v, tau = moving_states(robot, 300, 1.5)
    gpu = CudaRobot(robot, robot.home, "float64", "rows", HostDevice(folder))
    A, B, f0, ok = gpu.linearize(q, v, tau)
    expected = ld.linearize(robot, q, v, tau, independent=gpu.independent)
    assert 0.5 < ok.mean() < 1.0
    assert off(A.reshape(300, -1), expected.A) < 1e-9 and off(f0, expected.f0) < 1e-9
    with pytest.raises(ld.InputError, match=rf"{(~ok).sum()} of 300 states have no result of linearize"):
        gpu.linearize(q, v, tau, fallback="raise")
    with pytest.raises(ld.ClosureError) as found:
        gpu.linearize(np.vstack([q[:5], ld.integrate(robot, q[:1], np.full((1, 4), 1e-3))]), v[:6], tau[:6])
    assert any("linearize was asked for states [" in note and "5" in note for note in found.value.__notes__)
    with pytest.raises(ld.InputError, match="fallback must be one of"):
        gpu.linearize(q, v, tau, fallback="gpu")


@needs_gxx
def test_several_references(folder):
    """Each state is tried with the decisions of each reference: those chosen by default hold where home's do not."""
    robot = bundled("five_bar")
    states = moving_states(robot, 400, 1.5)
    one = CudaRobot(robot, robot.home, "float64", "columns", HostDevice(folder))
    failed = ~results(one, "forward_dynamics", states)[1]
    assert failed.any()
    more = CudaRobot(robot, None, "float64", "columns", HostDevice(folder))
    (a, lam), ok = results(more, "forward_dynamics", states)
    assert ok.mean() > 0.997
    expected = ld.forward_dynamics(robot, *states)
    assert off(a[ok], expected.a[ok]) < 1e-9 and np.isnan(a[~ok]).all() and np.isnan(lam[~ok]).all()


@needs_gxx
def test_arguments(folder):
    robot = bundled("five_bar")
    gpu = CudaRobot(robot, None, "float64", "rows", HostDevice(folder))
    q, v, tau = moving_states(robot, 5, 0.3)
    one = gpu.forward_dynamics(q[0], v[0], tau[0])
    assert [x.shape for x in one] == [(4,), (5,), ()]
    batch = gpu.forward_dynamics(q, v[0], tau[0])
    assert (batch[0][0] == one[0]).all() and batch[0].shape == (5, 4)
    assert [x.shape for x in gpu.forward_dynamics(q[:0], v[:0], tau[:0])] == [(0, 4), (0, 5), (0,)]
    for wrong, message in (((q[:, :3], v, tau), r"q must have shape \(count, 4\) or \(4,\)"),
                           ((q, v[:3], tau), "equally many states, got 5, 3"),
                           ((q.astype(np.float32), v, tau), "q must be of type float64, got float32")):
        with pytest.raises(ld.InputError, match=message):
            gpu.forward_dynamics(*wrong)
    with pytest.raises(ld.InputError, match="unknown function 'simulate'"):
        gpu.source("simulate")
    for options, message in ((dict(dtype="float16"), "unknown dtype"), (dict(layout="C"), "unknown layout"),
                             (dict(device="tpu"), "unknown device")):
        with pytest.raises(ld.InputError, match=message):
            ld.specialize(robot, **{"device": "cuda"} | options)


@needs_gxx
def test_source_in_ones_own_program(tmp_path):
    """The function of one state, called with pointers."""
    robot = bundled("four_bar")
    source = CudaRobot(robot, None, "float64", "rows", HostDevice(tmp_path)).source("linearize")
    q, v, tau = moving_states(robot, 1, 0.3)
    expected = ld.linearize(robot, q[0], v[0], tau[0])
    numbers = ", ".join(f"{x!r}" for x in (*map(float, q[0]), *map(float, v[0]), *map(float, tau[0])))
    (tmp_path / "own.cpp").write_text(source + f"""
    #include <cstdio>
    int main()
    {{
        const double x[] = {{{numbers}}};
        double A[4], B[{expected.B.size}], f0[2];
        const int ok = four_bar_linearize(x, x + {robot.nq}, x + {robot.nq + robot.nv}, A, B, f0);
        std::printf("%d %.17g %.17g", ok, A[2], f0[1]);
        return 0;
    }}""")
    subprocess.run([gxx(), "-std=c++17", str(tmp_path / "own.cpp"), "-o", str(tmp_path / "own")], check=True)
    ok, a, b = subprocess.run([str(tmp_path / "own")], capture_output=True, text=True, check=True).stdout.split()
    assert ok == "1" and abs(float(a) - expected.A[1, 0]) < 1e-12 and abs(float(b) - expected.f0[1]) < 1e-12


def test_bodies_of_kernels():
    """What is too long for one program, by numba.cuda, whose threads a process of its own simulates."""
    here = Path(__file__).parent
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
                           str(here / "simulated_cuda.py")], cwd=here.parents[1], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_numba_cuda_that_does_not_work(monkeypatch):
    """As one that does not fit the installed NumPy: an error that names it, and the cause."""
    monkeypatch.setattr(cuda_bodies, "has_numba_cuda", lambda: True)
    monkeypatch.delattr("numba.cuda", raising=False)
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    with pytest.raises(ld.LiedynError, match="numba-cuda, .* does not work with NumPy .*: .*numba.cuda"):
        cuda_bodies.CudaBody(bundled("solo12"), "aba_derivatives")


def test_nothing_is_imported_without_need():
    code = """if True:
        import sys, liedyn as ld
        gpu = ld.specialize(ld.load("four_bar"), device="cuda")
        gpu.source("rnea")
        assert not {"cupy", "torch", "jax"} & set(sys.modules)
        sys.modules["cupy"] = None
        try:
            gpu.rnea([0.0] * 3, [0.0] * 3, [0.0] * 3)
        except ld.LiedynError as error:
            print(error)"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "device='cuda' needs CuPy: pip install 'liedyn[cuda]'" in found


@pytest.mark.parametrize("robot, name", REGISTERS)
def test_registers(robot, name):
    """Machine code for a Hopper GPU; it needs the wheel nvidia-cuda-nvrtc-cu12, and no GPU."""
    compiler = nvrtc.library()
    if compiler is None:
        pytest.skip("needs nvidia-cuda-nvrtc-cu12")
    gpu = CudaRobot(bundled(robot), None, "float64", "rows", object())
    code, used = nvrtc.compiled(compiler, gpu.source(name))
    kernels = {launch.kernel for launch in gpu._function(name).launches}
    assert code[:4] == b"\x7fELF" and kernels < used.keys()
    registers, stack = REGISTERS[robot, name]
    assert max(used[kernel][0] for kernel in kernels) <= registers
    assert max(used[kernel][1] for kernel in kernels) <= stack


def test_both_sources_are_one_text():
    """C and CUDA C++ have the same lines for the same program."""
    from liedyn.machine.program.c import Language, split
    from liedyn.machine.program.cuda import LANGUAGES

    gpu = CudaRobot(bundled("four_bar"), None, "float64", "rows", object())
    trace = gpu._references.first("linearize").trace("linearize")
    (part,), _ = split(trace, Language("double", "", 1e-300), longest=sys.maxsize)
    renamed = [re.sub(r"\b(sin|cos)\(", r"liedyn_\1(", line) for line in part.lines]
    assert renamed == split(trace, LANGUAGES["float64"], longest=sys.maxsize)[0][0].lines
