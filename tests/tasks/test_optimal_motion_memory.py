"""Memory of `optimize_motion`: linear in the intervals, and asked for before it is taken."""
import numpy as np
import pytest
from scipy.sparse import csr_array, random_array, vstack
from test_optimal_motion_published import rods

import liedyn as ld
from liedyn.machine import memory
from liedyn.tasks.optimal_motion import bordered, optimize


def lines(intervals, of_each=6, seed=3):
    """A matrix of so many diagonal blocks, each beside the next one, with a full first column: a free duration."""
    rng, n = np.random.default_rng(seed), of_each * intervals
    A = np.zeros((n, 2 * n + of_each))
    for k in range(intervals):
        rows = slice(of_each * k, of_each * (k + 1))
        A[rows, 2 * of_each * k:2 * of_each * k + 3 * of_each] = rng.normal(size=(of_each, 3 * of_each))
    A[:, 0] = rng.normal(size=n)
    return A


def test_least_steps_are_those_of_dense_matrices():
    A = lines(9)
    b = np.random.default_rng(4).normal(size=len(A))
    np.testing.assert_allclose(bordered.least_step(csr_array(A), b), np.linalg.pinv(A) @ b, atol=1e-9)
    # rows that repeat each other: least squares of what they want
    twice = vstack([csr_array(A), csr_array(A[:3])]).tocsr()
    np.testing.assert_allclose(bordered.least_step(twice, np.append(b, b[:3])), np.linalg.pinv(A) @ b, atol=1e-6)
    assert bordered.least_step(csr_array((3, 5)), np.ones(3)) is None


def test_a_full_column_does_not_fill_the_factors(monkeypatch):
    """Entries of what is factored grow as the intervals; those of A A^T as their square."""
    seen = []

    def spy(K, factored=bordered._factored):
        seen.append((K.nnz, bordered._in_band(K)[1]))
        return factored(K)

    monkeypatch.setattr(bordered, "_factored", spy)
    for intervals in (20, 80):
        A = lines(intervals)
        bordered.least_step(csr_array(A), np.ones(len(A)))
    (few, narrow), (many, band) = seen
    assert many < 4.5 * few and band < 1.5 * narrow


def test_columns_of_many_rows_are_full_where_rows_are_many_more():
    """Slacks of many limits make the duration's column a small part of all rows."""
    A = random_array((400, 400), density=0.002, random_state=1).tocsc().tolil()
    A.setdiag(4.0)
    A[:90, 0] = A[0, :90] = 1.0  # 22 %
    assert list(bordered._split((A + A.T).tocsc(), 400)[1]) == [0]


def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    robot = rods((1, 2))
    monkeypatch.setattr(memory, "free_memory", lambda: 5e7)
    with pytest.raises(ld.InputError, match="in 900 intervals with 4 points each takes .* MB .* 50 MB are free"):
        ld.optimize_motion(robot, [0.0, 0.0], [0.3, 0.2], intervals=900)


def test_a_mesh_that_does_not_fit_loses_nothing(monkeypatch):
    """The motion on the mesh before is in the error."""
    robot = rods((1, 2), gravity=9.81)
    free, meshes = [np.inf], optimize.finer

    def then_little(*given):
        free[0] = 1e3
        return meshes(*given)

    monkeypatch.setattr(memory, "FREE_ANYWAY", 0.0)
    monkeypatch.setattr(memory, "free_memory", lambda: free[0])
    monkeypatch.setattr(optimize, "finer", then_little)
    with pytest.raises(ld.OptimizationError, match="optimal on 3 intervals, .* finer meshes do not fit") as error:
        ld.optimize_motion(robot, [0.0, 0.0], [1.2, -0.6], duration=(0.2, 2.0), intervals=3, tolerance=1e-9)
    assert error.value.motion.violation < 1e-8 and len(error.value.motion.knots) == 4


def test_what_is_free_is_known():
    assert 1e6 < memory.free_memory()
    assert memory.told(5.9e9) == "5.9 GB" and memory.told(12.0) == "12 bytes"


def test_plans_and_derivatives_that_do_not_fit_are_refused(monkeypatch):
    robot = rods((1, 2))
    monkeypatch.setattr(memory, "free_memory", lambda: 1e8)
    with pytest.raises(ld.InputError, match="a plan of 'two rods' with 1000000000 steps takes .* GB"):
        ld.ddp(robot, [0.0, 0.0], [0.0, 0.0], ld.Cost(R=1.0), 10 ** 9, 0.01)
