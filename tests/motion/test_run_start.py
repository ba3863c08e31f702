"""What a run costs before its first step: memory for as many rows as it makes."""
import tracemalloc

import numpy as np
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
