"""Batches: rows in lanes and rows shared among threads give what one state at a time gives."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from processes import COUNT, KEPT, ROOT, python
from tree_cases import mixed_tree, off
from users import kept

import liedyn as ld
from liedyn.machine.compiled import slices
from liedyn.machine.simd.lanes import LANES, WIDTH
from liedyn.machine.simd.lines import LINES
from liedyn.model.calls import batches
from liedyn.model.calls.batches import PAST_CACHE, gather, in_lanes, lines_for, scatter, scatter_matrix
from liedyn.model.packed import N_LINKS


@pytest.fixture(scope="module")
def tree():
    """Every kind of joint, three times."""
    return mixed_tree()


@pytest.fixture
def threads(monkeypatch):
    """Threads even for one row, as many as the test says."""
    monkeypatch.setattr(batches, "SHARED", 0)
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


def functions(robot, q, v, x):
    """Everything that takes many states at once, as functions of which of them."""
    body = robot.body_names[-1]
    F = np.random.default_rng(2).normal(size=(len(q), robot.nbodies, 6))
    return {
        "rnea": lambda k: ld.rnea(robot, q[k], v[k], x[k], F[k]),
        "aba": lambda k: ld.aba(robot, q[k], v[k], x[k], F[k]),
        "crba": lambda k: ld.crba(robot, q[k]),
        "rnea_derivatives": lambda k: np.stack(ld.rnea_derivatives(robot, q[k], v[k], x[k], F[k]), axis=-1),
        "aba_derivatives": lambda k: np.stack(ld.aba_derivatives(robot, q[k], v[k], x[k], F[k]), axis=-1),
        "forward_kinematics": lambda k: ld.forward_kinematics(robot, q[k]),
        "body_jacobian": lambda k: ld.body_jacobian(robot, q[k], body),
        "body_jacobian_dot": lambda k: ld.body_jacobian_dot(robot, q[k], v[k], body),
        "body_jacobian_ddot": lambda k: ld.body_jacobian_ddot(robot, q[k], v[k], x[k], body),
        "body_jacobian_dq": lambda k: ld.body_jacobian_dq(robot, q[k], body),
        "kinetic_energy": lambda k: ld.kinetic_energy(robot, q[k], v[k]),
        "potential_energy": lambda k: ld.potential_energy(robot, q[k]),
        "center_of_mass": lambda k: ld.center_of_mass(robot, q[k]),
        "momentum": lambda k: ld.momentum(robot, q[k], v[k]),
        "pose": lambda k: ld.pose(robot, q[k], body),
        "world_jacobian": lambda k: ld.world_jacobian(robot, q[k], body),
        "world_jacobian_dot": lambda k: ld.world_jacobian_dot(robot, q[k], v[k], body),
        "world_acceleration": lambda k: ld.world_acceleration(robot, q[k], v[k], x[k], body),
        "centroidal_momentum_matrix": lambda k: ld.centroidal_momentum_matrix(robot, q[k]),
        "coriolis_matrix": lambda k: ld.coriolis_matrix(robot, q[k], v[k]),
        "centroidal_momentum_matrix_dot": lambda k: ld.centroidal_momentum_matrix_dot(robot, q[k], v[k]),
        "integrate": lambda k: ld.integrate(robot, q[k], v[k]),
        "difference": lambda k: ld.difference(robot, q[k], q[::-1][k]),
    }


NAMES = tuple(functions(mixed_tree(), *np.empty((3, 0, 1))))


@pytest.mark.parametrize("name", NAMES)
def test_remainders_and_threads(tree, threads, name):
    """Counts around whole registers and whole blocks; more threads than registers of rows."""
    rng = np.random.default_rng(5)
    q = ld.random_configuration(tree, rng, 3 * WIDTH + 1)
    v, x = rng.normal(size=(2, len(q), tree.nv))
    function = functions(tree, q, v, x)[name]
    single = np.stack([function(k) for k in range(len(q))])
    # lanes may fuse other products and sums; the condition of M, 1e5, magnifies that in aba and its derivatives
    tolerance = 1e-11 if name.startswith("aba") else 1e-13
    for count in (0, 1, 2, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH, 2 * WIDTH + 1, 3 * WIDTH + 1):
        for number in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            threads(number)
            many = function(slice(count))
            assert many.shape == single[:count].shape
            assert off(many, single[:count]) < tolerance, (count, number)


@pytest.mark.parametrize(
    "function", [ld.rnea, ld.aba, ld.rnea_derivatives, ld.aba_derivatives], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["q", "v", "x"])
def test_no_number_is_overlooked(tree, threads, function, name):
    """Whatever row and column is not finite, in whatever thread's part: the numbers are looked at W rows at a time."""
    rng, third = np.random.default_rng(7), "a" if function.__name__.startswith("rnea") else "tau"
    for count in (2, WIDTH, 3 * WIDTH + 1):
        q = ld.random_configuration(tree, rng, count)
        arrays = {"q": q, "v": np.ones((count, tree.nv)), "x": np.ones((count, tree.nv))}
        for number in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            threads(number)
            for row in {0, count // 2, count - 1}:
                for column in (0, arrays[name].shape[1] - 1):
                    kept, arrays[name][row, column] = arrays[name][row, column], np.inf
                    with pytest.raises(ld.InputError, match=rf"^{third if name == 'x' else name} is not finite"):
                        function(tree, *arrays.values())
                    arrays[name][row, column] = kept
        assert all(np.isfinite(x).all() for x in function(tree, *arrays.values()))


@kept
def copied(rows, out):
    lanes = in_lanes(rows)
    for b in range(0, len(rows), WIDTH):
        gather(rows, b, len(rows), lanes)
        scatter(lanes, b, len(rows), out)


@pytest.mark.parametrize("columns", [0, 1, 3, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 2])
def test_transposition_touches_its_rows_only(columns):
    for count in range(2 * WIDTH + 2):
        rows = np.random.default_rng(1).normal(size=(count, columns))
        guarded = np.full((count + 2, columns), np.pi)
        copied(rows, guarded[1:-1])
        assert np.array_equal(guarded[1:-1], rows)
        assert (guarded[[0, -1]] == np.pi).all()


@kept
def copied_past_the_cache(rows, out, lines):
    lanes = in_lanes(rows)
    for b in range(0, len(rows), WIDTH):
        gather(rows, b, len(rows), lanes)
        scatter_matrix(lanes, b, len(rows), out, lines)


@pytest.mark.parametrize("columns", [WIDTH, WIDTH + 1, 2 * WIDTH - 1, 2 * WIDTH, 36, 49, 300])
def test_large_results_touch_their_rows_only(columns):
    """Wherever in a line of the cache they begin, and in whatever number of rows the last block has."""
    lines = np.empty(LINES, np.int64)
    for count in (1, WIDTH - 1, WIDTH, 2 * WIDTH + 3):
        rows = np.random.default_rng(1).normal(size=(count, columns))
        for offset in range(WIDTH):
            memory = np.full(count * columns + 4 * WIDTH, np.pi)
            out = memory[WIDTH + offset:][:count * columns].reshape(rows.shape)
            copied_past_the_cache(rows, out, lines)
            assert np.array_equal(out, rows)
            out[:] = np.pi
            assert (memory == np.pi).all()


@pytest.mark.parametrize("name", ["mixed", "solo12", "panda", "four_bar"])
@pytest.mark.parametrize("more", [0, 1, WIDTH - 1, 2 * WIDTH])
def test_large_batches_of_derivatives(threads, name, more):
    """What is written on the way, row by row past the cache, is what one state gives, and nothing beside it.

    Rows are longer than a line of the cache or, those of panda and of the tree of the four-bar, shorter.
    """
    robot, rng = mixed_tree() if name == "mixed" else ld.load(name), np.random.default_rng(11)
    count = PAST_CACHE // robot.nv**2 // WIDTH * WIDTH + WIDTH + more
    q = ld.random_configuration(robot, rng, count)
    v, a = rng.normal(size=(2, count, robot.nv))
    F = rng.normal(size=(count, robot.nbodies, 6))
    some = sorted({0, 1, WIDTH - 1, WIDTH, count // 2, count - 2, count - 1})
    single = [ld.rnea_derivatives(robot, q[k], v[k], a[k], F[k]) for k in some]
    size = count * robot.nv**2
    for offset in range(0, WIDTH, 3):
        memory = [np.full(size + 4 * WIDTH, np.pi) for _ in range(3)]
        out = tuple(x[WIDTH + offset + k:][:size].reshape(count, robot.nv, robot.nv) for k, x in enumerate(memory))
        threads(1 + offset % numba.config.NUMBA_NUM_THREADS)
        ld.rnea_derivatives(robot, q, v, a, F, out=out)
        for k, x in enumerate(out):
            assert off(x[some], np.stack([one[k] for one in single])) < 1e-13
            assert np.isfinite(x).all() and not (x == np.pi).any()
            x[...] = np.pi
            assert (memory[k] == np.pi).all()
    a[count - 1, -1] = np.nan
    with pytest.raises(ld.InputError, match="^a is not finite"):
        ld.rnea_derivatives(robot, q, v, a, out=out)


@kept
def size(rows):
    return lines_for(rows).size


def test_only_large_results_go_past_the_cache():
    assert size(np.empty((100, 49))) == 0
    assert size(np.empty((PAST_CACHE // 49 + 1, 49))) == LINES
    assert size(np.empty((PAST_CACHE, WIDTH - 1))) == 0  # several rows in a line


@kept
def gathered(rows, lanes):
    room = in_lanes(rows)
    gather(rows, 0, len(rows), room)
    lanes[:] = room[:len(lanes)]


def test_the_order_of_lanes():
    rows, lanes = np.arange(3.0 * WIDTH).reshape(WIDTH, 3), np.empty(3 * WIDTH)
    gathered(rows, lanes)
    assert np.array_equal(lanes.reshape(3, WIDTH), rows.T) and LANES.width == WIDTH


def test_large_batches(tree):
    """Enough states for threads and for writing past the cache, against some of them one by one."""
    rng = np.random.default_rng(6)
    q = ld.random_configuration(tree, rng, PAST_CACHE // tree.nv**2 + 100)
    v, x = rng.normal(size=(2, len(q), tree.nv))
    many, chosen = ld.rnea_derivatives(tree, q, v, x), np.append(rng.integers(len(q), size=20), [0, len(q) - 1])
    assert len(q) * tree.packed.ints[N_LINKS] > batches.SHARED and many[0].size > PAST_CACHE
    for k in chosen:
        for matrix, one in zip(many, ld.rnea_derivatives(tree, q[k], v[k], x[k])):
            assert off(matrix[k], one) < 1e-13


def test_few_rows_are_computed_at_once():
    """Rows that take a hundredth of a slice are neither measured nor divided; more are, and so are rows of unknown
    cost."""
    calls = []

    class Counted(batches.BatchKernel):
        def __init__(self):
            self._slices = {}

        def at_once(self, begin, end, many, *arguments):
            calls.append((begin, end))

    kernel, rows = Counted(), np.zeros((1100, 3))
    assert kernel.slices(rows).short == 0
    for _ in range(2):  # the first slice may have compiled
        kernel.slices(rows).learn(1000, 0.001)
    kernel.on(900, False, rows)
    assert calls == [(0, 900)]
    kernel.on(1100, False, rows)
    assert calls[1] == (0, 512) and calls[-1][1] == 1100


def test_nothing_is_allocated_for_a_state(tree, threads, monkeypatch):
    """As many arrays for 10 times the states; a workspace knows only the robot."""
    monkeypatch.setattr(slices, "LONGEST", 1e3)  # a busy machine would take more slices
    rng = np.random.default_rng(5)
    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        allocations = []
        for count in (1000, 100):
            q = ld.random_configuration(tree, rng, count)
            v = rng.normal(size=(count, tree.nv))
            for _ in range(5):  # until it is known that all of them are one slice
                ld.rnea_derivatives(tree, q, v, v)
            before = rtsys.get_allocation_stats().alloc
            ld.rnea_derivatives(tree, q, v, v)
            allocations.append(rtsys.get_allocation_stats().alloc - before)
    finally:
        if not enabled:
            _nrt_python.memsys_disable_stats()
    assert 0 < allocations[0] == allocations[1]


AT_ONCE = """
import threading
import numpy as np
import liedyn as ld
from numba import get_num_threads, threading_layer
panda = ld.load("panda")
q = ld.random_configuration(panda, 0, 4000)
expected = ld.crba(panda, q)
right = []
def work():
    for _ in range(20):
        right.append(np.array_equal(ld.crba(panda, q), expected))
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(threading_layer(), get_num_threads(), len(right), all(right))
"""


def test_python_threads_at_once_on_the_layer_that_does_not_allow_it():
    """Numba ends the process when its work queue is entered twice: here calls wait for one another."""
    words = python(AT_ONCE, NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="2", **KEPT)
    assert words == ["workqueue", "2", "60", "True"]


def test_the_interpreter_is_released(tree):
    """Another Python thread sees the first matrix of a batch before the last one is there."""
    q = ld.random_configuration(tree, 0, 20000)
    out = np.empty((len(q), tree.nv, tree.nv))
    ld.crba(tree, q, out=out)

    def seen_half_way():
        out[:] = np.nan
        worker = threading.Thread(target=ld.crba, args=(tree, q), kwargs={"out": out})
        worker.start()
        half_way = False
        while worker.is_alive():
            half_way = half_way or (not np.isnan(out[0, 0, 0]) and np.isnan(out[-1, 0, 0]))
        worker.join()
        assert not np.isnan(out).any()
        return half_way

    # once is enough: this thread may have to wait for a processor while the other one has it
    assert any(seen_half_way() for _ in range(50))


FORK = """
import multiprocessing as mp, sys
from concurrent.futures import ProcessPoolExecutor
import numba, numpy as np
import liedyn as ld

panda = ld.load("panda")
q = ld.random_configuration(panda, 0, 2000)
def few(k):
    return ld.crba(panda, q[k])
def many(k):
    return ld.crba(panda, q)
if __name__ == "__main__":
    method = sys.argv[1]
    M = ld.crba(panda, q)
    right = []
    for function, expected in ((few, M[:4]), (many, [M] * 4)):
        with ProcessPoolExecutor(1, mp_context=mp.get_context(method)) as pool:
            right += [np.abs(one - other).max() < 1e-13 * np.abs(M).max()
                      for one, other in zip(pool.map(function, range(4)), expected)]
    print(numba.threading_layer(), len(right), all(right), len(many(0)))
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_children_of_a_process_with_threads(tmp_path, method, layer):
    """GNU OpenMP ends a child that calls it after a fork: a pool waits for that for ever, an executor says so."""
    if layer == "omp":
        pytest.importorskip("numba.np.ufunc.omppool")
    (tmp_path / "job.py").write_text(FORK)
    environment = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, tmp_path / "job.py", method], capture_output=True, text=True,
                          env=os.environ | environment)
    assert done.stdout.split() == [layer, "8", "True", "2000"], done.stderr


BATCH = "import liedyn as ld; r = ld.load('panda'); print(ld.crba(r, ld.random_configuration(r, 0, 4000)).shape[0])\n"


def test_threads_come_from_the_cache():
    """What one process needs, be it compiled or found, the next one finds."""
    python(BATCH, NUMBA_NUM_THREADS="2", **KEPT)
    count, hits, misses = python(BATCH + COUNT, NUMBA_NUM_THREADS="2", **KEPT)
    assert (count, misses) == ("4000", "0") and int(hits) > 0
