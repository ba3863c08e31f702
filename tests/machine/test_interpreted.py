"""Kernels interpreted: the same numbers, errors and warnings as compiled, and nothing compiled."""
import json
import math
import operator
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import one_state_calls
import pytest
from processes import KEPT, ROOT, python

import liedyn as ld
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.program import interpret
from liedyn.machine.program.plain_arrays import Strided, Tensor, Vector, wrapped
from liedyn.machine.program.plain_registers import Register
from liedyn.machine.simd.lanes import SCALAR, sqrt
from liedyn.machine.simd.sines import sincos
from liedyn.mechanics.tree.rnea import rnea_kernel

TOLERANCE = 1e-12
"""Of the largest number of a result: sums of some thousand products, without fused multiply-adds."""
USUAL = 1e3
"""Condition of the inertia matrix from which on the tolerance grows with it: of arms 3e2 to 3e3."""


def interpreted(code, **environment):
    """The words that a fresh process without a compiler prints."""
    return python(code, LIEDYN_COMPILE="never", **environment)


# ---- arrays and registers


def kinds_of_arrays():
    for careful in (False, True):
        for x in (np.arange(6.0) - 2.0, np.arange(12.0).reshape(3, 4) + 1.0, np.arange(24.0).reshape(2, 3, 4),
                  np.arange(6) + 1, np.ones((0, 3)), np.arange(12.0).reshape(3, 4).T, np.arange(5) > 2):
            yield x, careful


def same(found, wanted):
    found = np.asarray(found)
    return found.shape == np.shape(wanted) and np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f")


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_",
          "xor", "lshift", "rshift", "matmul")


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore")
def test_operators_of_arrays(name):
    """What NumPy computes, with arrays and numbers on either side; or its error."""
    function, count = getattr(operator, name), 0
    for x, careful in kinds_of_arrays():
        for other in (x.copy(), x[..., :1].copy(), 2, 2.0):
            for flip in (False, True):
                def both(a, b, flip=flip):
                    return function(b, a) if flip else function(a, b)

                given = wrapped(other, careful) if isinstance(other, np.ndarray) else other
                try:
                    wanted = both(x, other)
                except (TypeError, ValueError):
                    with pytest.raises((TypeError, ValueError)):
                        both(wrapped(x.copy(), careful), given)
                    continue
                found = both(wrapped(x.copy(), careful), given)
                assert same(found, wanted), (x, other, flip)
                assert isinstance(found, Vector | Tensor | Strided) or not isinstance(wanted, np.ndarray)
                count += 1
    assert count > 8


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
@pytest.mark.filterwarnings("ignore")
def test_operators_in_place_change_the_memory(name):
    for x in (np.arange(6.0) + 1.0, np.arange(12.0).reshape(3, 4) + 1.0, (np.arange(12.0).reshape(3, 4) + 1.0).T):
        for careful in (False, True):
            wanted = getattr(operator, name)(x.copy(), 3.0)
            memory = x.copy(order="K")
            array = other = wrapped(memory, careful)
            array = getattr(operator, name)(array, 3.0)
            assert array is other and same(memory, wanted)


def test_arrays_refuse_what_would_be_wrong():
    for x, careful in kinds_of_arrays():
        array = wrapped(x, careful)
        for refused in (bool, hash, lambda array: 1.0 in array, float, operator.index):
            with pytest.raises(TypeError):
                refused(array)


def test_indices_of_arrays():
    """Parts are views, numbers are plain, and what is not there raises."""
    for careful in (False, True):
        x = np.arange(24.0).reshape(2, 3, 4)
        array = wrapped(x, careful)
        for index in ((1, 2, 3), (-1, -1, -1), 1, -1, (0, slice(None), 2), (slice(None), 1), slice(1, None),
                      (1, slice(0, 3, 2)), (0, 1)):
            assert same(array[index], x[index]), index
            array[index] = 7.0
            assert (x[index] == 7.0).all()
        assert same(array.reshape(6, 4).T, x.reshape(6, 4).T) and same(array.ravel()[2:-1:3], x.ravel()[2:-1:3])
        assert array.shape == (2, 3, 4) and array.size == 24 and array.ndim == 3 and len(array) == 2
        kind = np.float64 if careful else float
        assert type(array[1, 1, 1]) is kind and type(array[1][1][1]) is kind
        for index in ((2, 0, 0), 2, -3):
            with pytest.raises(IndexError):
                array[index]
        with pytest.raises(IndexError):
            wrapped(x[0, 0], careful)[4]
    whole = wrapped(np.arange(3), False)
    whole[1] = 2.9  # as compiled code stores a number in an array of integers
    assert whole[1] == 2


def test_registers():
    a, b = Register((1.0, -2.0, 0.0, 0.0)), Register((4.0, 0.0, 0.0, 2.0))
    for function in (operator.add, operator.sub, operator.mul):
        for x, y in ((a, b), (a, 3.0), (3.0, a)):
            assert isinstance(function(x, y), Register)
            np.testing.assert_array_equal(function(x, y), function(*(np.array(z) for z in (x, y))))
    np.testing.assert_array_equal(a / b, [0.25, -np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(-a, [-1.0, 2.0, 0.0, 0.0])
    for refused in (bool, hash, lambda a: a < b, lambda a: a == a, lambda a: a ** 2, lambda a: 1.0 in a, abs):
        with pytest.raises(TypeError):
            refused(a)


@kernel
def refused_by_python(x, out):
    out[0] += 1.0  # done twice if the call is made again
    out[1] = x[0] / x[1]
    out[2] = math.sqrt(x[2]) + sqrt(x[2])
    out[3] = math.sin(x[3]) + sincos(x[3])[1]
    out[4] = math.exp(x[4])
    out[5] = x[2] ** x[5]
    out[6] = x[0] * x[6] * x[6]
    out[7] = int(x[7])
    k = 8
    for y in x:
        out[k] = max(y, 1.0) + min(1.0, y) + abs(y) + (1.0 if y < x[0] else 0.0) + y // 2.0
        k += 1


@pytest.mark.parametrize("seed", range(3))
def test_numbers_that_python_refuses(seed):
    """Division by zero, overflow and roots of negative numbers: as compiled, and with one effect."""
    values = (0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-308, np.inf, -np.inf, np.nan, 0.5, 2.0, 800.0)
    for x in np.random.default_rng(seed).choice(values, size=(300, 8)):
        wanted, found = np.full(16, 3.0), np.full(16, 3.0)
        refused_by_python(x, wanted)
        interpret.run(refused_by_python, (x, found))
        np.testing.assert_allclose(found, wanted, rtol=1e-15, equal_nan=True, err_msg=str(x))
    x = np.array([1.0, 0.0, -1.0, np.inf, 1e4, 0.5, 1e308, np.nan])
    interpret.run(refused_by_python, (x, found))
    np.testing.assert_array_equal(found[1:8], [np.inf, np.nan, np.nan, np.inf, np.nan, np.inf, -2.0 ** 63])


# ---- all public functions of one state


@pytest.fixture(scope="module")
def states():
    return {name: one_state_calls.state(name) for name in ld.bundled()}


@pytest.fixture(scope="module")
def wanted(states):
    return one_state_calls.outcomes(states)


@pytest.fixture(scope="module")
def stiff(states):
    """By how much tolerances grow, for each robot."""
    return {name: max(1.0, np.linalg.cond(ld.crba(ld.load(name), state["q"])) / USUAL)
            for name, state in states.items()}


@pytest.mark.parametrize("switch", [{"LIEDYN_COMPILE": "never"}, {"LIEDYN_CHECK": "1"}])
def test_public_functions_of_one_state(states, wanted, stiff, switch, tmp_path):
    """On every bundled robot as compiled; nothing is compiled; no memory is read before it is written, or beyond."""
    given, results = tmp_path / "states", tmp_path / "results"
    given.write_bytes(pickle.dumps(states))
    names = {name: value for name, value in KEPT.items() if value is not None}
    subprocess.run([sys.executable, str(Path(one_state_calls.__file__)), str(given), str(results)], check=True,
                   env=os.environ | {"PYTHONPATH": str(ROOT)} | names | switch)
    found, compilations = pickle.loads(results.read_bytes())
    assert compilations == 0
    assert found.keys() == wanted.keys() and len(found) > 1000
    errors = 0
    for (robot, what), (result, noted) in wanted.items():
        mine, notes = found[robot, what]
        assert notes == noted, (robot, what)
        if isinstance(result, str):
            assert mine == result
            errors += 1
            continue
        size = max((np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in result), default=0.0)
        for x, y in zip(result, mine, strict=True):
            np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
            np.testing.assert_allclose(y, x, rtol=0.0, atol=TOLERANCE * stiff[robot] * max(size, 1.0), equal_nan=True,
                                       err_msg=f"{robot}: {what}")
    assert errors


CALLS = """
import sys
sys.path.insert(0, {tests!r})
import json
import public_calls
from liedyn.bridges.specialization import references
from numba.core import event

references.SAMPLES = 50  # to close thousands takes a minute
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
found = public_calls.outcomes(public_calls.robots(), {names!r})
print(json.dumps([found, len(compiled.buffer)]))
"""


def test_everything_else_that_is_public_runs():
    """Plans, runs, filters, controllers, estimates: without an error, without a compiler."""
    import public_calls

    slow = {"PathFunction", "optimize_motion", "specialize", "MPC", "excitation", "differentiate_run", "view",
            "export_html", "map_states", "map_parameters", "open_results", "Cost", "Limits"}
    names = [name for name in public_calls.CALLS if name not in slow]
    code = CALLS.format(tests=str(ROOT / "tests"), names=names)
    found, compilations = json.loads(" ".join(interpreted(code)))
    assert compilations == 0 and found.keys() == set(names)
    assert not {name: text for name, text in found.items() if "Error: " in text}


LARGE = """
import numpy as np
import liedyn as ld
robot = ld.load("solo12")
q, v, a = ld.random_configuration(robot, 0, size=20), *np.random.default_rng(0).standard_normal((2, 20, 18))
J = ld.body_jacobian_dq(robot, q, robot.body_names[-1])
tau, M = ld.rnea(robot, q, v, a), ld.crba(robot, q)
np.savez({path!r}, J, tau, M)
"""


def test_batches(tmp_path, monkeypatch):
    """Rows in lanes, in threads where there are some, and past the cache."""
    import liedyn.model.calls.batches as batches

    path = str(tmp_path / "found.npz")
    interpreted("import liedyn.model.calls.batches as batches\nbatches.PAST_CACHE = 1000\n" + LARGE.format(path=path))
    robot = ld.load("solo12")
    q, v, a = ld.random_configuration(robot, 0, size=20), *np.random.default_rng(0).standard_normal((2, 20, 18))
    wanted = ld.body_jacobian_dq(robot, q, robot.body_names[-1]), ld.rnea(robot, q, v, a), ld.crba(robot, q)
    with np.load(path) as found:
        for x, y in zip(wanted, found.values(), strict=True):
            np.testing.assert_allclose(y, x, rtol=0.0, atol=TOLERANCE * np.abs(x).max())
    assert batches.PAST_CACHE > 1000


# ---- what needs a compiler says so


REFUSED = """
import numpy as np
from numba import njit
import liedyn as ld
from liedyn import kernels

robot = ld.load("five_bar")
work, M = kernels.workspace(robot), np.zeros((4, 4))

@njit
def mine(model, q, work, M):
    kernels.crba(kernels.SCALAR, model, q, work, M)

for call in (lambda: mine(robot.packed, robot.home, work, M), lambda: kernels.stepping(robot)):
    try:
        call()
    except Exception as error:
        print("never" if "LIEDYN_COMPILE=never" in str(error) else error)
kernels.crba(kernels.SCALAR, robot.packed, robot.home, work, M)
print(np.array_equal(M, ld.crba(robot, robot.home)))
"""


def test_compilation_is_refused():
    """A function of one's own, and what is made for one; kernels called from Python are interpreted."""
    assert interpreted(REFUSED) == ["never", "never", "True"]


def test_a_debugger_finds_the_kernel():
    """The frames below `ld.rnea` are those of the kernel's own file and lines."""
    code = """
import sys
import numpy as np
import liedyn as ld
robot, seen = ld.load("panda"), []
def trace(frame, event, argument):
    if frame.f_code.co_name == "rnea_kernel":
        seen.append((frame.f_code.co_filename.endswith("rnea.py"), "model" in frame.f_locals))
sys.settrace(trace)
ld.rnea(robot, robot.home, robot.home, robot.home)
sys.settrace(None)
print(seen[0])
"""
    assert " ".join(interpreted(code)) == "(True, True)"


def test_an_interrupt_leaves_nothing_half_done(monkeypatch):
    """Functions are converted when they are first needed: an exception there is forgotten, all of it."""
    world = interpret.World(False)
    x, out = np.full(8, 0.5), np.zeros(16)
    value, left = interpret.World._value, [2]

    def interrupted(self, given):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return value(self, given)

    monkeypatch.setattr(interpret.World, "_value", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interpret.run(refused_by_python, (x, out), (world, world))
    assert (out == 0.0).all()
    interpret.run(refused_by_python, (x, out), (world, world))
    assert out[0] == 1.0 and out[1] == 1.0


@pytest.mark.parametrize("careful", [False, True])
def test_threads_get_whole_functions(careful):
    """Functions that are being converted by one thread are not run by another."""
    robot, found = ld.load("five_bar"), []
    arguments = SCALAR, robot.packed, robot.home, np.zeros(4), np.zeros(4), np.zeros(0)
    world = interpret.World(careful)

    def work():
        out = np.zeros(4)
        interpret.run(rnea_kernel, (*arguments, np.zeros(20_000), out), (world, world))
        found.append(out)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == 8 and all(np.allclose(out, found[0], rtol=1e-15) for out in found)
