"""What a run costs before its first step: memory for as many rows as it makes."""
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tree_cases import bundled

import liedyn as ld


def test_a_short_run_needs_little_memory():
    """The rows of a block grow with the run; long runs give the same as several short ones."""
    robot = bundled("five_bar")
    zeros = np.zeros(4)
    ld.simulate(robot, robot.home, zeros, 2e-3)
    tracemalloc.start()
    try:
        ld.simulate(robot, robot.home, zeros, 2e-3)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
    whole = ld.simulate(robot, robot.home, zeros, 0.2)
    first = ld.simulate(robot, robot.home, zeros, 0.1)
    second = ld.simulate(robot, first.q[-1], first.v[-1], 0.1)
    assert len(whole.t) == 201 and abs(whole.q[-1] - second.q[-1]).max() < 1e-12
    assert abs(whole.q[:101] - first.q).max() < 1e-14


def test_a_run_starts_with_few_calls():
    """What depends on the robot and the options only is not made again: 150 of our functions are called, not 300."""
    robot, calls, own = bundled("five_bar"), [], str(Path(ld.__file__).parent)
    ld.simulate(robot, robot.home, np.zeros(4), 3e-3)

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(own):
            calls.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        ld.simulate(robot, robot.home, np.zeros(4), 3e-3)
    finally:
        sys.setprofile(before)
    assert len(calls) < 200


@pytest.mark.parametrize("method", ["rk4", "gauss4", "implicit", "RK45"])
def test_a_run_whose_first_row_fails_says_so(method):
    """The first block completes the first row: it fails as that did by itself, and the trajectory is what was reached.

    The rod between two points that coincide has no direction.
    """
    b = ld.Builder("coincident")
    b.body("p", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "p", axis=(1.0, 0.0, 0.0))
    b.constraint("rod", "distance", "ground", "p", length=0.5)
    with pytest.raises(ld.SimulationError, match="stopped at t = 0 s: constraint 'rod' .* has no direction") as caught:
        ld.simulate(b.build(), [0.0], [1.0], 0.01, method=method, start="as given")
    assert len(caught.value.trajectory.t) == 0


@pytest.mark.parametrize("every", [1, 3, 10])
def test_rows_are_recorded_in_their_turn(every):
    """Blocks of 16, 32, ... rows: the recorded ones are every third, and the last; a run of one step has two."""
    robot = bundled("five_bar")
    whole = ld.simulate(robot, robot.home, np.zeros(4), 0.1)
    some = ld.simulate(robot, robot.home, np.zeros(4), 0.1, record=every)
    chosen = sorted({*range(0, 101, every), 100})
    for name in ("t", "q", "v", "a", "tau", "lam", "status", "input_work", "condition"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[chosen])
    assert len(ld.simulate(robot, robot.home, np.zeros(4), 1e-3, record=every).t) == 2


def test_a_trajectory_of_a_batch_has_arrays_of_its_own():
    robot = bundled("five_bar")
    runs = ld.simulate(robot, np.tile(robot.home, (9, 1)), np.zeros(4), 0.01)
    q, t = runs.q.copy(), runs.t.copy()
    runs[3].q[:], runs[3].t[:] = 0.0, 0.0
    assert np.array_equal(runs.q, q) and np.array_equal(runs[4].t, t)
