"""Robots that cannot move, without bodies or with all of them fixed: empty results, or errors that say so."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.mechanics.dynamics.forward import METHODS

NONE = np.zeros(0)


def nothing():
    return ld.Builder("nothing").build()


def welded():
    b = ld.Builder("welded")
    b.body("block", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    b.joint("weld", "fixed", "ground", "block")
    return b.build()


@pytest.mark.parametrize("make", [nothing, welded])
def test_what_cannot_move_has_empty_results(make):
    robot = make()
    for method in METHODS:
        found = ld.forward_dynamics(robot, NONE, NONE, NONE, method=method)
        assert found.a.shape == (0,) and found.rank == 0 and not found.independent
    ss = ld.linearize(robot, NONE, NONE, NONE)
    assert ss.A.shape == (0, 0) and ss.states == ()
    many = np.zeros((3, 0))
    assert ld.linearize(robot, many, many, many).A.shape == (3, 0, 0)
    assert ld.trim(robot, NONE).q.shape == ld.complete_velocity(robot, NONE, {}).shape == (0,)
    assert ld.complete_velocity(robot, many, {}).shape == (3, 0)
    assert len(ld.simulate(robot, NONE, NONE, 0.01, progress=False)) == 11
    with pytest.raises(ld.InputError, match=f"'{robot.name}' has no coordinates: there is nothing to be driven"):
        ld.inverse_dynamics(robot, NONE, NONE, NONE)
    with pytest.raises(ld.InputError, match="nothing to be driven"):
        ld.lqr(robot, NONE, [], [])
