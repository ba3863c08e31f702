"""``ld.specialize(robot, device="cuda")`` on a GPU: ``LIEDYN_COMPILE=never python -m pytest -m cuda tests/bridges``."""
import functools

import numpy as np
import pytest
from c_programs import moving_states

import liedyn as ld

pytestmark = pytest.mark.cuda

COUNT = 48
bundled = functools.cache(ld.load)


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture(scope="module", params=["panda", "five_bar"])
def moving(request):
    robot = bundled(request.param)
    return robot, moving_states(robot, COUNT, 0.3)


@functools.cache
def specialized(name, **options):
    return ld.specialize(bundled(name), device="cuda", **options)


def general(robot, name, states):
    if name == "crba":
        return (ld.crba(robot, states[0]),)
    if name == "linearize":
        found = ld.linearize(robot, *states)
        return found.A, found.B, found.f0
    if name == "forward_dynamics":
        found = ld.forward_dynamics(robot, *states)
        return found.a, found.lam
    found = getattr(ld, name)(robot, *states)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives", "forward_dynamics",
                                  "linearize"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_results(cupy, moving, name, layout):
    robot, states = moving
    gpu = specialized(robot.name, layout=layout)
    given = [cupy.asarray(np.ascontiguousarray(x if layout == "rows" else x.T)) for x in states]
    *found, ok = getattr(gpu, name)(*given[:1 if name == "crba" else 3], fallback="nan")
    assert float(ok.mean()) > 0.9
    for x, y in zip(found, general(robot, name, states), strict=True):
        x = x.get() if layout == "rows" else np.moveaxis(x.get(), -1, 0)
        assert x.shape == y.shape
        good = ok.get()
        assert not y.size or abs(x[good] - y[good]).max() < 1e-11 * max(1.0, abs(y).max())


def test_many_states(cupy, moving):
    """More than one slab, and a part of a block at the end; results are those of the first states, again and again."""
    robot, states = moving
    count = 300_007
    for layout in ("rows", "columns"):
        gpu = specialized(robot.name, layout=layout)
        given = [np.resize(x, (count, x.shape[1])) for x in states]
        given = [cupy.asarray(np.ascontiguousarray(x if layout == "rows" else x.T)) for x in given]
        *found, ok = gpu.aba_derivatives(*given)
        assert bool(ok.all())
        for x, y in zip(found, ld.aba_derivatives(robot, *states)):
            x = x if layout == "rows" else cupy.moveaxis(x, -1, 0)
            y = cupy.asarray(y)
            assert float(abs(x - y[cupy.arange(count) % COUNT]).max()) < 1e-11 * float(abs(y).max())


def test_single_precision(cupy, moving):
    robot, states = moving
    gpu = specialized(robot.name, dtype="float32")
    *found, ok = gpu.linearize(*(cupy.asarray(x, "float32") for x in states), fallback="nan")
    assert found[0].dtype == "float32" and float(ok.mean()) > 0.9
    for x, y in zip(found, general(robot, "linearize", states)):
        assert abs(x.get() - y)[ok.get()].max() < 2e-3 * abs(y).max()


def test_fallbacks(cupy):
    robot = bundled("five_bar")
    states = moving_states(robot, 8, 0.3)
    gpu = specialized(robot.name, at=robot.home)  # one reference state: the default ones leave no state to fall back
    far = moving_states(robot, 200, 1.5)
    A, B, f0, ok = gpu.linearize(*map(cupy.asarray, far), fallback="nan")
    assert 0.5 < float(ok.mean()) < 1.0 and bool(cupy.isnan(A[~ok]).all()) and bool(cupy.isfinite(A[ok]).all())
    with pytest.raises(ld.InputError, match="have no result of linearize"):
        gpu.linearize(*map(cupy.asarray, far), fallback="raise")
    few = [np.concatenate([x[~ok.get()][:3], y]) for x, y in zip(far, states)]
    A, B, f0, ok = gpu.linearize(*map(cupy.asarray, few))
    expected = ld.linearize(robot, *few, independent=gpu.independent)
    assert not bool(ok.all())  # state by state: next to a singular one A is large
    assert (abs(A.get() - expected.A).max(axis=(1, 2)) < 1e-9 * abs(expected.A).max(axis=(1, 2))).all()
    with pytest.raises(ld.ClosureError):
        gpu.linearize(cupy.asarray(ld.integrate(robot, states[0], np.full(4, 1e-3))), *map(cupy.asarray, states[1:]))


def test_bodies_of_kernels(cupy):
    """What is too long for one program: derivatives of a quadruped, with a state that has none among them."""
    pytest.importorskip("numba_cuda")
    robot = bundled("solo12")
    q, v, tau = moving_states(robot, 6, 0.3)
    bad, expected = q.copy(), ld.aba_derivatives(robot, q, v, tau)
    bad[4, :4] *= 1.1
    for layout in ("rows", "columns"):
        gpu = specialized("solo12", layout=layout)
        assert gpu._function("aba_derivatives").work["work"]
        given = [cupy.asarray(np.ascontiguousarray(x if layout == "rows" else x.T)) for x in (bad, v, tau)]
        *found, ok = gpu.aba_derivatives(*given, fallback="nan")
        assert list(ok.get()) == [True] * 4 + [False, True]
        for x, y in zip(found, expected, strict=True):
            x = x.get() if layout == "rows" else np.moveaxis(x.get(), -1, 0)
            assert np.isnan(x[4]).all() and abs(x - y)[ok.get()].max() < 1e-11 * abs(y).max()


def test_torch_without_copies(moving):
    torch = pytest.importorskip("torch")
    robot, states = moving
    gpu = specialized(robot.name)
    q, v, tau = (torch.tensor(x, device="cuda") for x in states)
    seen = gpu._device.array(q)
    assert seen.data.ptr == q.data_ptr()
    a, ok = gpu.aba(q, v, tau)
    assert isinstance(a, torch.Tensor) and a.is_cuda and ok.dtype == torch.bool and bool(ok.all())
    assert abs(a.cpu().numpy() - ld.aba(robot, *states)).max() < 1e-10 * abs(a.cpu().numpy()).max()


def test_jax_without_copies(moving):
    jax = pytest.importorskip("jax")
    robot, states = moving
    gpu = specialized(robot.name, dtype="float32")
    q, v, tau = (jax.device_put(x.astype("float32"), jax.devices("gpu")[0]) for x in states)
    assert gpu._device.array(q).data.ptr == q.unsafe_buffer_pointer()
    a, ok = gpu.aba(q, v, tau)
    assert isinstance(a, jax.Array) and bool(ok.all())
    assert abs(np.asarray(a) - ld.aba(robot, *states)).max() < 1e-4 * abs(np.asarray(a)).max()


def test_source_in_a_kernel_of_ones_own(cupy):
    robot = bundled("five_bar")
    q, v, tau = moving_states(robot, COUNT, 0.3)
    source = specialized(robot.name).source("forward_dynamics") + """
    extern "C" __global__ void work(int count, const double *q, const double *v, const double *tau, double *power)
    {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        double a[4], lam[5];
        if (i < count && five_bar_forward_dynamics(q + 4 * i, v + 4 * i, tau + 4 * i, a, lam)) {
            power[i] = a[0] + a[3];
        }
    }"""
    power = cupy.zeros(COUNT)
    cupy.RawModule(code=source, options=("-std=c++17",)).get_function("work")(
        (1,), (COUNT,), (np.int32(COUNT), *map(cupy.asarray, (q, v, tau)), power))
    expected = ld.forward_dynamics(robot, q, v, tau).a
    assert abs(power.get() - expected[:, 0] - expected[:, 3]).max() < 1e-10 * abs(expected).max()


def test_no_leak(cupy, moving):
    robot, states = moving
    gpu, pool = specialized(robot.name), cupy.get_default_memory_pool()
    given, used = [cupy.asarray(np.resize(x, (50_000, x.shape[1]))) for x in states], []
    for _ in range(30):
        gpu.aba_derivatives(*given)
        used.append((pool.used_bytes(), pool.total_bytes()))
    assert used[-1] == used[2]
