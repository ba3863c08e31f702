"""Velocities that lead to targets: beside solvers of quadratic programs, laws of their limits, motions that arrive."""
from importlib.util import find_spec

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, LiedynError

PANDA, HAND = ld.load("panda"), "panda_hand_tcp"
needs_piqp = pytest.mark.skipif(not find_spec("piqp"), reason="PIQP is not installed (extra ik)")


def velocity(robot, q, targets, dt=0.02, **options):
    return ld.differential_inverse_kinematics(robot, q, targets, dt, **options)


def test_errors_die_out_at_the_rate():
    q = PANDA.home
    target = ld.PoseTarget(HAND, ld.pose(PANDA, q + 0.1, HAND))
    v = velocity(PANDA, q, target, rate=0.5, damping=0.0)
    assert np.abs(v).max() < PANDA.velocity_limit.min()  # no limit is in the way
    assert np.allclose(target.jacobian(PANDA, q) @ v, -0.5 * target.error(PANDA, q), atol=1e-10)
    # of all such velocities the shortest one
    assert np.allclose(v, np.linalg.pinv(target.jacobian(PANDA, q)) @ (-0.5 * target.error(PANDA, q)), atol=1e-7)


def test_it_arrives_within_all_limits():
    there = ld.random_configuration(PANDA, rng=4)
    target, q, dt = ld.PoseTarget(HAND, ld.pose(PANDA, there, HAND)), PANDA.home, 0.01
    for _ in range(2000):
        v = velocity(PANDA, q, target, dt, rate=5.0, damping=1e-4)
        assert (np.abs(v) <= PANDA.velocity_limit).all()
        q = ld.integrate(PANDA, q, dt * v)
        assert (q >= PANDA.lower - 1e-12).all() and (q <= PANDA.upper + 1e-12).all()
    # the damping leaves a bias that dies out too
    assert np.abs(target.error(PANDA, q)).max() < 1e-4


@needs_piqp
@pytest.mark.parametrize("name, first, second", [("panda", HAND, "panda_link4"), ("stewart", "platform", "rod1"),
                                                 ("cassie_like", "foot", "tarsus"), ("four_bars", "H1", "H1"),
                                                 ("talos", "left_sole_link", "rgbd_optical_frame")])
def test_it_solves_the_quadratic_program(name, first, second):
    """PIQP, level after level, which knows nothing of active sets."""
    robot, rng = ld.load(name), np.random.default_rng(6)
    q = ld.close(robot, robot.home)
    for _ in range(3):
        targets = [ld.PoseTarget(first, ld.pose(robot, q, first) @ ld.lie.exp(0.3 * rng.normal(size=6))),
                   ld.PointTarget(second, rng.normal(size=3), priority=1)]
        options = dict(rate=3.0, damping=1e-2, velocity_limit=rng.uniform(0.1, 0.5), posture=robot.home)
        own = velocity(robot, q, targets, **options)
        other = velocity(robot, q, targets, solver="piqp", **options)
        # PIQP is told 1e-10 of its optimality conditions; what levels leave to each other is divided by the damping
        assert np.abs(own - other).max() < 1e-4
        if len(robot.row_names):
            assert np.abs(ld.constraint_jacobian(robot, q) @ own).max() < 1e-9


def test_loops_are_kept_and_taken_back():
    robot, dt = ld.load("stewart"), 0.01
    q = ld.close(robot, robot.home)
    goal = ld.pose(robot, q, "platform")
    goal[:3, 3] += (0.03, -0.02, 0.04)
    target = ld.PoseTarget("platform", goal)
    q[0] += 1e-3  # open
    for _ in range(200):
        q = ld.integrate(robot, q, dt * velocity(robot, q, target, dt, rate=10.0, velocity_limit=1.0))
    # the rows are linear for a step: what is left is of second order in it
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-9 and np.abs(target.error(robot, q)).max() < 1e-6


def test_moving_constraints_move_the_robot():
    robot = ld.load("five_bar").with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0]))
    q = ld.close(robot, robot.home)
    v = velocity(robot, q, ld.PointTarget("link4", ld.pose(robot, q, "link4")[:3, 3]), velocity_limit=10.0)
    # the loop's error of 3e-13 is taken back within dt
    assert np.abs(ld.velocity_error(robot, q, v)).max() < 1e-10 and np.abs(v).max() > 0.01


def test_beyond_limits_it_goes_back():
    q = PANDA.home.copy()
    q[1] = PANDA.upper[1] + 1e-3
    v = velocity(PANDA, q, ld.PointTarget(HAND, ld.pose(PANDA, q, HAND)[:3, 3]), dt=0.01)
    assert v[1] <= -0.1 + 1e-12
    q[1] = PANDA.upper[1] + 1.0
    assert velocity(PANDA, q, ld.PointTarget(HAND, ld.pose(PANDA, q, HAND)[:3, 3]))[1] == -PANDA.velocity_limit[1]


def test_held_coordinates_stand_still():
    v = velocity(PANDA, PANDA.home, ld.PointTarget(HAND, (0.3, 0.3, 0.3)), hold=["panda_joint1"])
    assert v[0] == 0.0 and v[1:].any()


def test_batches():
    q = ld.random_configuration(PANDA, rng=3, size=(4, 50))
    target = ld.PointTarget(HAND, np.random.default_rng(1).normal(size=(50, 3)))
    v = velocity(PANDA, q, target, posture=PANDA.home)
    assert v.shape == q.shape
    one = velocity(PANDA, q[2, 7], ld.PointTarget(HAND, target.position[7]), posture=PANDA.home)
    assert np.array_equal(v[2, 7], one)


@needs_piqp
def test_inequalities_of_ones_own():
    """The hand does not sink faster than 0.05 m/s, whatever is wanted."""
    q = PANDA.home
    down = ld.PointTarget(HAND, ld.pose(PANDA, q, HAND)[:3, 3] - (0.0, 0.0, 0.2))
    row = ld.world_jacobian(PANDA, q, HAND)[5:]
    free = velocity(PANDA, q, down, rate=2.0)
    slow = velocity(PANDA, q, down, rate=2.0, inequalities=(row, [-0.05], [np.inf]))
    assert row @ free < -0.3 and row @ slow == pytest.approx(-0.05, abs=1e-7)
    if find_spec("qpsolvers") and find_spec("daqp"):
        other = velocity(PANDA, q, down, rate=2.0, inequalities=(row, [-0.05], [np.inf]), solver="daqp")
        # of velocities that are equally good but for the damping of 1e-6, to which both solve the program to 1e-9 or so
        assert np.abs(slow - other).max() < 1e-3
    with pytest.raises(ld.InfeasibleError):
        velocity(PANDA, q, down, inequalities=(np.eye(7)[:1], [10.0], [np.inf]))


def test_what_cannot_be_is_told():
    robot = ld.load("five_bar").with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0]))
    target = ld.PointTarget("link4", (0.0, 0.0, 0.0))
    with pytest.raises(ld.InfeasibleError, match="keeps its loops closed") as caught:
        velocity(robot, robot.home, target, hold=robot.velocity_names)
    assert caught.value.left > 0.0
    for options, said in ((dict(rate=100.0), "rate must be at most"), (dict(velocity_limit=-1.0), "velocity_limit"),
                          (dict(inequalities=3), "inequalities must be"),
                          (dict(inequalities=(np.eye(7), np.ones(7), np.zeros(7))), "above the upper ones"),
                          (dict(q0=1), "unexpected")):
        with pytest.raises(TypeError if "q0" in options else InputError, match=said):
            velocity(PANDA, PANDA.home, ld.PointTarget(HAND, (0.0, 0.0, 0.0)), **options)
    with pytest.raises(LiedynError, match="solver"):
        velocity(PANDA, PANDA.home, ld.PointTarget(HAND, (0.0, 0.0, 0.0)), solver="abacus")
