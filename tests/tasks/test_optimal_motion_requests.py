"""Optimal motions: requests that contradict themselves, guesses of several kinds, motions that go round."""
import numpy as np
import pytest
from test_optimal_motion import cart_pole

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.tasks.optimal_motion.demands import at_rest, unreached

LOADER, PANDA, FOUR_BAR, CART = (ld.load(name) for name in ("loader", "panda", "four_bar", "shopping_cart"))
OPTIONS = dict(duration=1.0, progress=False)


def panda_beyond():
    q = PANDA.home.copy()
    q[3] = 0.5
    return q


@pytest.mark.parametrize("robot, start, goal, more, match", [
    (PANDA, PANDA.home, panda_beyond(), {}, r"panda_joint4 of 'panda' is 0.5 at the goal, beyond its limits"),
    (cart_pole(), [2.5, 0.0], [0.0, 0.0], {}, "x of 'cart_pole' is 2.5 at the start"),
    (cart_pole(), [0.0, 0.0], {"x": 2.5}, {}, "x of 'cart_pole' is 2.5 at the goal"),
    (LOADER, LOADER.home, {"lift_rod": 0.3}, dict(bounds={"lift_rod": (-0.1, 0.2)}), "lift_rod .* is 0.3 at the goal"),
    (cart_pole(), [0.0, 0.0], [0.0, 0.0], dict(via=[(0.5, {"x": 2.5})]), "is 2.5 at 0.5 of the duration"),
    (cart_pole(), ([0.0, 0.0], [1.0, 0.0]), None, dict(bounds={"velocity:x": 0.5}), "velocity:x .* is 1 at the start"),
    (PANDA, PANDA.home, PANDA.home, dict(path=ld.clearance(
        PANDA, "panda_hand", ld.pose(PANDA, PANDA.home, "panda_hand")[:3, 3] + 0.01, 0.1)), "clearance of .panda_"),
    (cart_pole(), [0.0, 0.0], [1.0, 0.0], dict(bounds={"velocity:x": 0.3}), "go 1 within 1 s, which takes 3.333 s"),
    (cart_pole(), [0.0, 0.0], [1.0, 0.0], dict(bounds={"velocity:x": (-9.0, 2.5)}, via=[(0.9, {"x": -1.0})]),
     r"go 2 within 0.1 s, which takes 0.8 s"),
    (LOADER, {"lift_rod": -0.2, "tilt_rod": 0.0}, {"lift_rod": 0.3}, dict(bounds={"velocity:lift_rod": 0.2}),
     "lift_rod .* go 0.5 within 1 s, which takes 2.5 s"),
])
def test_conditions_beyond_limits_are_named_before_anything_is_solved(robot, start, goal, more, match):
    with pytest.raises(InputError, match=match):
        ld.optimize_motion(robot, start, goal, **OPTIONS | more)


def test_limits_of_the_robot_can_be_left_out():
    motion = ld.optimize_motion(cart_pole(), [2.5, 0.0], [2.0, 0.0], limits=False, **OPTIONS)
    assert motion["x"].max() >= 2.5


def two_masses(gravity=0.0):
    b = ld.Builder("two", gravity=(-gravity, 0.0, 0.0))
    for k in range(2):
        b.body(f"mass{k}", mass=1.0)
        b.joint(f"x{k}", "prismatic", "ground", f"mass{k}", axis=(1.0, 0.0, 0.0))
    b.actuator("force", "x0")
    return b.build()


@pytest.mark.parametrize("robot, start, goal, more, match", [
    (two_masses(), [0.0, 0.0], [0.0, 1.0], {}, "At 1 s, .*x1 least: the linear model is not controllable"),
    (two_masses(9.81), [0.0, 0.0], [0.0, 0.0], {}, "At 0 s, no inputs hold it at rest, x1 gets -9.81"),
    (PANDA, PANDA.home, PANDA.home + 0.1, dict(bounds={"force:panda_joint4": 5.0}),
     r"to hold it at rest takes 2\d.* of 'panda_joint4', beyond its limits \(-5, 5\)"),
    (CART, CART.home, {"cart.x": 0.0, "cart.y": 0.3, "cart.angle": 0.0}, {}, "only manoeuvres reach"),
])
def test_what_actuators_cannot_do_at_the_ends_is_said_when_nothing_is_found(robot, start, goal, more, match):
    with pytest.raises(ld.OptimizationError, match=match):
        ld.optimize_motion(robot, start, goal, solver=ld.NLPSolver(iterations=3), **OPTIONS | more)


def test_hautus_test_finds_what_inputs_do_not_reach():
    A, B = np.zeros((4, 4)), np.zeros((4, 1))
    A[0, 1] = A[2, 3] = B[1] = 1.0
    np.testing.assert_allclose(np.abs(unreached(A, B)), [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    assert unreached(A[:2, :2], B[:2]) is None


def test_first_meshes_get_finer_until_charts_reach():
    b = ld.Builder("ball", gravity=(0.0, 0.0, 0.0))
    b.body("ball", mass=1.0, inertia=(1.0, 2.0, 2.5))
    b.joint("joint", "spherical", "ground", "ball")
    for name in ("rx", "ry", "rz"):
        b.actuator(name, f"joint.{name}")
    robot, angle = b.build(), 3.0
    goal = np.array([0.0, np.sin(0.5 * angle), 0.0, np.cos(0.5 * angle)])
    motion = ld.optimize_motion(robot, robot.home, goal, intervals=1, points=4, **OPTIONS)
    assert motion.cost == pytest.approx(12.0 * 2.0 ** 2 * angle ** 2, rel=1e-8)  # as a mass on a line


def test_a_crank_goes_round_and_the_coupler_turns_back():
    # no damping and a free speed: it runs by itself, and least effort is none
    start = ld.close(FOUR_BAR, FOUR_BAR.home)
    motion = ld.optimize_motion(FOUR_BAR, (start, None), periodic={"crank": 2.0 * np.pi}, intervals=12, tolerance=1e-5,
                                **OPTIONS)
    assert motion["crank"][-1] - motion["crank"][0] == pytest.approx(2.0 * np.pi, abs=1e-7)
    assert motion["coupler"][-1] - motion["coupler"][0] == pytest.approx(-2.0 * np.pi, abs=1e-7)
    assert motion["rocker"][-1] == pytest.approx(motion["rocker"][0], abs=1e-7)
    np.testing.assert_allclose(motion.v[-1], motion.v[0], atol=1e-6)
    run = ld.simulate(FOUR_BAR, motion.q[0], motion.v[0], 1.0, dt=1e-3)
    np.testing.assert_allclose(run.v[-1], run.v[0], atol=1e-3 * np.abs(run.v[0]).max())
    assert run["crank"][-1] - run["crank"][0] == pytest.approx(2.0 * np.pi, abs=1e-3)


def five_bar(length, mass=1.0):
    b, below = ld.Builder("five_bar", gravity=(0.0, -9.81, 0.0)), "ground"
    for k in range(1, 5):
        b.body(f"link{k}", mass=mass, com=(0.5 * length, 0.0, 0.0), inertia=(0.0, 1 / 12, 1 / 12))
        b.joint(f"q{k}", "revolute", below, f"link{k}", placement=(length * (k > 1), 0.0, 0.0), axis=(0.0, 0.0, 1.0))
        below = f"link{k}"
    b.loop("pin", "revolute", "ground", "link4", parent_placement=(1.0, 0.0, 0.0), child_placement=(length, 0.0, 0.0))
    b.actuator("left", "q1")
    b.actuator("right", "pin")
    return b.build()


def ends(robot):
    start = ld.close(robot, [np.radians(100.0), -1.2, -1.5, -1.0], q1=np.radians(100.0))
    return start, ld.close(robot, start, q1=start[0] + 0.2, q2=start[1] - 0.2)


def test_guesses_of_all_kinds_lead_to_the_same_motion(tmp_path):
    robot = five_bar(1.0)
    start, goal = ends(robot)
    options = OPTIONS | dict(tolerance=1e-5)
    direct = ld.optimize_motion(robot, start, goal, **options)
    other = five_bar(1.05, mass=1.3)  # its configurations are open loops of this one
    run = ld.simulate(robot, start, np.zeros(4), 1.0, u=direct.feedforward)
    for guess in (ld.optimize_motion(other, *ends(other), **options), run, [start, goal],
                  ld.OptimalMotion.load(direct.save(tmp_path / "motion"))):
        found = ld.optimize_motion(robot, start, goal, guess=guess, **options)
        assert found.cost == pytest.approx(direct.cost, rel=1e-6)
        assert found.position_residual.max() <= 1e-10
    longer = options | {"duration": 1.3}
    found, cold = (ld.optimize_motion(robot, start, goal, guess=guess, **longer) for guess in (direct, None))
    assert found.duration == 1.3 and found.cost == pytest.approx(cold.cost, rel=1e-6)
    for guess in (ld.simulate(PANDA, PANDA.home, np.zeros(7), 0.02), ld.optimize_motion(
            cart_pole(), [0.0, 0.0], [0.2, 0.0], **options)):
        with pytest.raises(InputError, match="the guess is a motion of '"):
            ld.optimize_motion(robot, start, goal, guess=guess, **options)


def test_cut_joints_with_motors_are_named_where_loops_do_not_close():
    with pytest.raises(ld.ClosureError, match="cannot be satisfied.*'pin'"):
        ld.close(five_bar(0.2), np.zeros(4))


def sprung_slider(stiffness):
    """A mass of 1 kg between a motor and a spring."""
    b = ld.Builder("sprung slider", gravity=(0.0, 0.0, 0.0))
    b.body("mass", mass=1.0)
    b.joint("x", "prismatic", "ground", "mass", axis=(1.0, 0.0, 0.0), stiffness=stiffness, damping=1e-5 * stiffness)
    b.actuator("force", "x")
    return b.build()


def test_stiff_springs():
    """Their rows of the program are a million times steeper than others, and inputs reach them all the same."""
    robot = sprung_slider(1e8)
    motion = ld.optimize_motion(robot, [0.0], [0.1], tolerance=None)
    assert motion.outcome == "converged" and motion.iterations < 20
    assert unreached(np.array([[0.0, 1.0], [-1e8, -1e3]]), np.array([[0.0], [1.0]])) is None
    assert at_rest(robot, np.array([0.1]), np.array([[-np.inf, np.inf]])) == ""


@pytest.mark.parametrize("B, left", [([[0.0], [0.0], [0.0], [1.0]], 1), ([[0.0], [0.0], [1.0], [0.0]], 0)])
def test_modes_that_no_input_reaches_are_found_beside_stiff_ones(B, left):
    A = np.zeros((4, 4))
    A[0, 2] = A[1, 3] = 1.0
    A[2, 0], A[3, 1] = -1e8, -1.0
    found = unreached(A, np.array(B))
    share = np.abs(found[:2]) + np.abs(found[2:])
    assert share.argmin() == left


def test_steps_that_run_away_are_told():
    governor = ld.load("governor")
    goal = ld.close(governor, governor.home, s=governor.home[1] + 0.1)
    with pytest.raises(ld.OptimizationError, match="numbers run away|violated: dynamics"):
        ld.optimize_motion(governor, governor.home, goal, 10.0, method="shooting",
                           solver=ld.NLPSolver(iterations=30))
