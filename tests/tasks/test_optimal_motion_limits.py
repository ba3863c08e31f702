"""Optimal motions: limits between the nodes, and what cannot be asked for."""
import warnings

import numpy as np
import pytest
from test_optimal_motion import cart_pole, slider

import liedyn as ld
from liedyn.machine.errors import InputError


def beyond(motion, name, low, high, of=None):
    """The largest amount by which a coordinate exceeds its limits, at many times."""
    q, v, u = motion.at(np.linspace(0.0, motion.duration, 2001))
    values = {"q": q, "v": v, "u": u}[name][:, of or 0]
    return max(low - values.min(), values.max() - high, 0.0)


def test_meshes_get_finer_where_limits_of_states_are_exceeded_between_nodes():
    options = dict(duration=1.0, bounds={"velocity:x": (-2.0, 1.2)}, intervals=3)
    with pytest.warns(ld.MotionWarning, match="velocity:x by"):
        coarse = ld.optimize_motion(slider(), [0.0], [1.0], tolerance=None, **options)
    most = beyond(coarse, "v", -2.0, 1.2)
    assert most > 1e-3 * 1.2 and len(coarse.knots) == 4
    # its peak may lie between two of the ten rows of an interval: a parabola's then misses 1/4 of 1/10^2 of its height
    # from knot to knot, 0.003 here
    assert most - 4e-3 < coarse.excess["velocity:x"] <= most
    with warnings.catch_warnings():
        warnings.simplefilter("error", ld.MotionWarning)
        fine = ld.optimize_motion(slider(), [0.0], [1.0], **options)
    assert beyond(fine, "v", -2.0, 1.2) < 2e-3 * 1.2 and len(fine.knots) > 4


def test_limits_that_hold_everywhere_are_not_spoken_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ld.MotionWarning)
        swing = ld.optimize_motion(cart_pole(), [0.0, 0.0], [1.0, np.pi], duration=2.0, bounds={"force:motor": 20.0})
    assert swing.excess == {} and beyond(swing, "u", -20.0, 20.0) < 1e-5


def test_inputs_that_jump_overshoot_between_nodes_and_it_is_said():
    with pytest.warns(ld.MotionWarning, match="force:force by.*method='shooting'"):
        motion = ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=(0.5, 5.0), cost="time")
    assert motion.excess["force:force"] == pytest.approx(beyond(motion, "u", -1.0, 1.0), rel=0.1)
    held = ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=(0.5, 5.0), cost="time", method="shooting")
    assert held.excess == {}


def test_excess_is_saved(tmp_path):
    with pytest.warns(ld.MotionWarning):
        motion = ld.optimize_motion(slider(), [0.0], [1.0], bounds={"velocity:x": 1.2}, intervals=3, tolerance=None)
    assert ld.OptimalMotion.load(motion.save(tmp_path / "motion")).excess == motion.excess


def test_obstacles_smaller_than_intervals_are_seen():
    # a bead on a line 1 mm beside a ball of 5 cm: four intervals step over it
    b = ld.Builder("bead", gravity=(0.0, 0.0, 0.0))
    b.body("rail", mass=1.0)
    b.body("bead", mass=1.0)
    b.joint("x", "prismatic", "ground", "rail", axis=(1.0, 0.0, 0.0))
    b.joint("y", "prismatic", "rail", "bead", axis=(0.0, 1.0, 0.0))
    b.actuator("along", "x")
    b.actuator("across", "y")
    robot = b.build()
    ball = ld.clearance(robot, "bead", (0.5, -0.001, 0.0), 0.05)
    motion = ld.optimize_motion(robot, [0.0, 0.0], [1.0, 0.0], path=ball, intervals=3, points=3)
    bead = motion.at(np.linspace(0.0, 1.0, 2001))[0]
    # 0.1 % of the square of the distance over that of the radius
    assert np.linalg.norm(bead - [0.5, -0.001], axis=1).min() > 0.05 * (1.0 - 1e-3)


@pytest.mark.parametrize("load", ["force", "torque"])
@pytest.mark.parametrize("axes", ["world", "body"])
def test_forces_that_are_functions_of_time_are_refused(load, axes):
    b = ld.Builder.of(slider())
    b.applied_force("wind", "mass", axes=axes, **{load: lambda t: np.array([5.0 * t, 0.0, 0.0])})
    with pytest.raises(InputError, match="functions of the time"):
        ld.optimize_motion(b.build(), [0.0], [1.0])
    b = ld.Builder.of(slider())  # one that is constant is known: the motor has to give as much
    b.applied_force("wind", "mass", axes=axes, force=(3.0, 0.0, 0.0))
    motion = ld.optimize_motion(b.build(), [0.0], [1.0])
    # inputs are as good as the square root of the cost, which is optimal by 1e-6 of it or better
    np.testing.assert_allclose(motion.u[:, 0], 6.0 - 12.0 * motion.t - 3.0, atol=1e-3)
