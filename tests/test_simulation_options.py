"""Options of `simulate` that make no sense are refused, and the message names the option."""
import numpy as np
import pytest

import liedyn as ld

ADAPTIVE = {"method": "RK45"}


@pytest.mark.parametrize("name, value, more", [
    ("dt", 1e-320, {}), ("dt", 0.0, {}), ("dt", np.nan, {}), ("alpha", "a", {}), ("beta", np.nan, {}),
    ("tolerance", 0.0, {}), ("rank_tolerance", -1.0, {}), ("largest_speed", np.nan, {}), ("rho", 2.0, {}),
    ("rtol", np.nan, ADAPTIVE), ("atol", -1.0, ADAPTIVE), ("max_step", 0.0, ADAPTIVE), ("energy", "x", {}),
    ("events", 3, {}), ("events", [3], {}), ("unilateral", 3, {}), ("accumulation", "x", {}), ("record", 1.5, {}),
])
def test_options(name, value, more):
    robot = ld.load("five_bar")
    with pytest.raises(ld.InputError, match=name):
        ld.simulate(robot, robot.home, np.zeros(4), 0.01, progress=False, **more, **{name: value})
