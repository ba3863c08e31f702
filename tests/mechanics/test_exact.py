"""The linearization against the reduced dynamics in 70 digits, differentiated by differences that lose none of them."""
import numpy as np
import pytest
from closed_chains import moving_state
from comparison import relative
from tree_cases import bundled

import liedyn as ld
from benchmarks.exact import ExactMechanism

MACHINES = ("four_bar", "five_bar", "ur5")


@pytest.mark.validation("A and B at moving states", oracle="Newton and Euler in 70 digits", robots=", ".join(MACHINES))
@pytest.mark.parametrize("name", MACHINES)
def test_linearization(name):
    robot = bundled(name)
    v, tau = moving_state(robot, robot.home)
    ss = ld.linearize(robot, robot.home, v, tau)
    p = len(ss.states) // 2
    expected = ExactMechanism(robot, ss.states[:p]).lower_rows(robot.home, v, tau)
    assert relative(np.hstack([ss.A, ss.B])[p:], expected) < 1e-11
