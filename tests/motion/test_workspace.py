"""Scratch arrays of runs: made from what is remembered of a robot, and of one run only."""
import numpy as np

import liedyn as ld
from liedyn.mechanics.contact.contact_state import contacts_of
from liedyn.motion.simulation.grid import Grid
from liedyn.motion.simulation.inputs import Inputs
from liedyn.motion.simulation.workspace import make_work


def test_runs_share_no_scratch():
    robot = ld.load("five_bar")
    q, v = robot.home, np.zeros(4)
    made = [make_work(robot, np.empty(0), Inputs(robot, None, None, (0.0, q, v), Grid(0.0, 1.0, 1e-3), False),
                      contacts_of(robot, robot.packed), 4) for _ in range(2)]
    for name, one, other in zip(made[0]._fields, *made):
        if isinstance(one, np.ndarray) and one.size:
            assert not np.shares_memory(one, other), name
            assert np.array_equal(one, other) and one.dtype == other.dtype, name
    assert made[0].holonomic.all() and made[0].M.shape == (4, 4) and not made[0].M.any()


def test_runs_after_one_another_are_alike():
    """Nothing of a run, nor of one by another method, is left for the next."""
    robot = ld.load("loader")
    q, v = robot.home, np.zeros(robot.nv)
    first = ld.simulate(robot, q, v, 0.05)
    for options in ({"method": "rkmk"}, {"formulation": "momenta"}, {"stabilisation": "none"}):
        ld.simulate(robot, q, v, 0.02, **options)
    again = ld.simulate(robot, q, v, 0.05)
    assert np.array_equal(first.q, again.q) and np.array_equal(first.lam, again.lam)
