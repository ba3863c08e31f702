"""Options of `simulate` that make no sense are refused, and the message names the option."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.motion.simulation.integrators import METHODS

@pytest.mark.parametrize("name, value", [
    ("dt", 1e-320), ("dt", 0.0), ("dt", np.nan), ("tolerance", 0.0), ("rank_tolerance", -1.0),
    ("largest_speed", np.nan), ("energy", "x"), ("events", 3), ("events", [3]), ("unilateral", 3),
    ("accumulation", "x"), ("record", 1.5), ("method", ld.Baumgarte()), ("stabilisation", 3),
])
def test_options(name, value):
    robot = ld.load("five_bar")
    with pytest.raises(ld.InputError, match=name):
        ld.simulate(robot, robot.home, np.zeros(4), 0.01, progress=False, **{name: value})


@pytest.mark.parametrize("group, name, value", [
    (ld.Baumgarte, "alpha", "a"), (ld.Baumgarte, "beta", np.nan), (ld.GeneralizedAlpha, "rho", 2.0),
    (ld.Adaptive, "rtol", np.nan), (ld.Adaptive, "atol", -1.0), (ld.Adaptive, "max_step", 0.0),
])
def test_groups_of_options(group, name, value):
    first = {"name": "RK45"} if group is ld.Adaptive else {}
    with pytest.raises(ld.InputError, match=name):
        group(**first, **{name: value})


def test_an_unknown_solver():
    with pytest.raises(ld.InputError, match="unknown method 'RK46', did you mean 'RK45'"):
        ld.Adaptive("RK46")


def test_methods_are_in_the_docstring():
    for name in METHODS:
        assert f"``{name!r}``" in ld.simulate.__doc__
