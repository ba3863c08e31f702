"""Objects found by their paths, and results stored with a robot."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine import errors
from liedyn.machine.by_name import by_name
from liedyn.mechanics.constraints.cluster_weights import ranking


def test_a_path_is_read_anew_at_every_call(monkeypatch):
    assert by_name("liedyn.machine.errors:InputError") is errors.InputError
    monkeypatch.setattr(errors, "InputError", KeyError)
    assert by_name("liedyn.machine.errors:InputError") is KeyError
    with pytest.raises(ModuleNotFoundError):
        by_name("liedyn.machine.no_such_module:anything")


def test_a_ranking_is_made_once_for_a_robot_and_a_tolerance():
    robot, other = ld.load("five_bar"), ld.load("loader")
    found = ranking(robot, 1e-8)
    assert ranking(robot, 1e-8) is found and ranking(robot, 1e-6).tolerance == 1e-6 and found.tolerance == 1e-8
    np.testing.assert_array_equal(ranking(robot, 1e-6).rows, found.rows)
    assert ranking(other, 1e-8).columns.shape == (other.nv,) and found.columns.shape == (robot.nv,)
