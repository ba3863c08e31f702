"""Inverse kinematics: forward kinematics of what is found, closed forms, conditions of a minimum, what is refused."""
import warnings

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import least_squares, minimize
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.machine.errors import InputError

PANDA, HAND = ld.load("panda"), "panda_hand_tcp"
CLOSED = {"cassie_like": "foot", "stewart": "platform", "loader": "bucket", "delta": "eff", "four_bars": "H1",
          "bricard": "rod5", "five_bar": "link4"}


def gantry(limits=(-1.0, 1.0), directions="xyz"):
    """A point that slides along axes of the world: everything about it is linear."""
    b, parent = ld.Builder("gantry"), "ground"
    for k, name in enumerate(directions):
        b.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(f"slide {k}", "prismatic", parent, name, axis=np.eye(3)["xyz".index(name[0])], limits=limits)
        parent = name
    return b.build()


def plane_arm(count, limits=None):
    """Links of 1 m in the plane; the frame at the end is called tip."""
    b, parent = ld.Builder("arm"), "ground"
    for k in range(count):
        b.body(f"link {k}", 1.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 0.1, 0.1))
        b.joint(f"joint {k}", "revolute", parent, f"link {k}", (0.0 if k == 0 else 1.0, 0.0, 0.0), limits=limits)
        parent = f"link {k}"
    b.frame("tip", parent, placement=(1.0, 0.0, 0.0))
    return b.build()


def closed_walk(robot, rng, steps=10, size=0.2):
    """A closed configuration within limits some way from home, on its branch."""
    q = ld.close(robot, robot.home)
    for _ in range(steps):
        N = null_space(ld.constraint_jacobian(robot, q)[robot.holonomic], rcond=1e-8)
        d = N @ rng.normal(size=N.shape[1])
        further = ld.close(robot, ld.integrate(robot, q, size * d / np.abs(d).max()))
        if (further >= robot.lower).all() and (further <= robot.upper).all():
            q = further
    return q


def within(robot, q):
    return bool(((q >= robot.lower) & (q <= robot.upper)).all())


# ---- open trees


def test_thousand_poses_of_the_panda():
    q = ld.random_configuration(PANDA, rng=0, size=1000)
    there = ld.pose(PANDA, q, HAND)
    options = dict(tolerance=1e-4, angle_tolerance=1e-3)
    one_start = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there), restarts=0, unreached="ignore", **options)
    # mink and pink reach 91 % of them (benchmarks/reaching.py)
    assert np.count_nonzero(one_start.reached) >= 975 and not one_start.restarts.any()
    found = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there), **options)
    assert found.reached.all() and within(PANDA, found.q) and within(PANDA, one_start.q)
    apart = ld.pose(PANDA, found.q, HAND)
    assert np.linalg.norm(apart[:, :3, 3] - there[:, :3, 3], axis=1).max() <= 1e-4
    turn = Rotation.from_matrix(apart[:, :3, :3] @ there[:, :3, :3].swapaxes(1, 2)).as_rotvec()
    assert np.linalg.norm(turn, axis=1).max() <= 1e-3
    assert np.allclose(found.errors[f"pose:{HAND}"][:, :3], turn, atol=1e-12)


def test_tight_tolerances_are_kept():
    there = ld.pose(PANDA, ld.random_configuration(PANDA, rng=1, size=50), HAND)
    found = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there), tolerance=1e-12, angle_tolerance=1e-12)
    assert found.reached.all()
    assert np.abs(ld.pose(PANDA, found.q, HAND) - there).max() < 3e-12  # of the rotation two errors of 1e-12


def test_rows_of_a_batch_do_not_know_each_other():
    there = ld.pose(PANDA, ld.random_configuration(PANDA, rng=2, size=200), HAND)
    batch = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there.reshape(2, 100, 4, 4)))
    assert batch.q.shape == (2, 100, 7) and batch.reached.shape == (2, 100)
    for k in (0, 57, 199):
        one = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there[k]))
        assert np.array_equal(one.q, batch.q.reshape(-1, 7)[k]) and isinstance(one.reached, bool)
    again = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there[0]), q0=batch.q.reshape(-1, 7)[:3])
    assert again.q.shape == (3, 7) and again.iterations[0] == 0


def test_out_of_reach_is_a_minimum_and_told():
    arm = plane_arm(2)
    far = ld.PointTarget("tip", (3.0, 4.0, 0.0))
    with pytest.raises(ld.ReachError, match="point:tip is off by 3") as caught:
        ld.inverse_kinematics(arm, far, q0=[0.2, 0.4])
    nearest = caught.value.nearest
    # stretched towards it; the error is flat across the arm, and rounding in its square hides 1e-7
    assert np.allclose(ld.pose(arm, nearest.q, "tip")[:3, 3], (1.2, 1.6, 0.0), atol=1e-5)
    assert not nearest.reached and repr(nearest) == "InverseKinematics(0 of 1 reached)"
    targets = ld.PointTarget("tip", [(3.0, 4.0, 0.0), (1.0, 1.0, 0.0)])
    with pytest.warns(ld.ReachWarning, match="1 of 2 targets"):
        found = ld.inverse_kinematics(arm, targets)
    assert found.reached.tolist() == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.inverse_kinematics(arm, targets, unreached="ignore")
        ld.inverse_kinematics(arm, far, unreached="ignore")
    with pytest.raises(ld.ReachError):
        ld.inverse_kinematics(arm, targets, unreached="raise")


def test_at_limits_it_is_a_minimum():
    """SciPy's least squares within bounds finds nothing better nearby."""
    goals = np.random.default_rng(3).normal(size=(100, 3))
    found = ld.inverse_kinematics(PANDA, ld.PointTarget(HAND, goals), unreached="ignore")
    missed, at_limits = np.flatnonzero(~found.reached), 0
    assert len(missed) > 50
    for k in missed[:20]:
        target = ld.PointTarget(HAND, goals[k])
        at_limits += ((found.q[k] == PANDA.lower) | (found.q[k] == PANDA.upper)).any()
        start = np.clip(found.q[k], PANDA.lower + 1e-9, PANDA.upper - 1e-9)  # it wants to begin inside
        other = least_squares(lambda q, t=target: t.error(PANDA, q), start, lambda q, t=target: t.jacobian(PANDA, q),
                              (PANDA.lower, PANDA.upper), xtol=1e-15)
        # what creeps along flat valleys, of both methods, is left to 1e-4 of the squared error
        assert np.square(found.errors[f"point:{HAND}"][k]).sum() < 2.0 * other.cost * (1.0 + 1e-4)
    assert at_limits >= 5


def test_limits_within_a_step():
    """What one slide cannot do the other one does, though it is the worse one."""
    b = ld.Builder("two slides along x")
    for name, parent, limits in (("a", "ground", (-0.1, 0.1)), ("b", "a", (-5.0, 5.0))):
        b.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(name, "prismatic", parent, name, axis=(1.0, 0.0, 0.0), limits=limits)
    found = ld.inverse_kinematics(b.build(), ld.PointTarget("b", (2.0, 0.0, 0.0)))
    assert found.q[0] == 0.1 and found.q[1] == pytest.approx(1.9, abs=1e-6)
    free = ld.inverse_kinematics(b.build(), ld.PointTarget("b", (2.0, 0.0, 0.0)), limits=False)
    assert np.allclose(free.q, 1.0, atol=1e-6)  # the shortest way


def test_weights_are_those_of_least_squares():
    robot, a, b = gantry((-9.0, 9.0)), np.array([1.0, 2.0, 3.0]), np.array([0.0, -1.0, 2.0])
    wa, wb = 2.0, np.array([1.0, 0.0, 3.0])
    found = ld.inverse_kinematics(robot, [ld.PointTarget("z", a, weight=wa), ld.PointTarget("z", b, weight=wb)],
                                  unreached="ignore")
    assert np.allclose(found.q, (wa**2 * a + wb**2 * b) / (wa**2 + wb**2), atol=1e-6)
    assert sorted(found.errors) == ["point:z", "point:z#2"] and not found.reached
    # rows of weight zero do not count
    height = ld.inverse_kinematics(robot, ld.PointTarget("z", (5.0, 5.0, 0.5), weight=(0.0, 0.0, 1.0)))
    assert height.reached and np.allclose(height.q, (0.0, 0.0, 0.5), atol=1e-6)


def test_priorities():
    """A lower one takes nothing from a higher one, and has all that is left."""
    robot = gantry((-9.0, 9.0))
    found = ld.inverse_kinematics(robot, [
        ld.PointTarget("z", (1.0, 1.0, 1.0), priority=5),
        ld.PointTarget("z", (2.0, 0.0, 0.0), weight=(1.0, 0.0, 0.0), priority=-1),
        ld.PointTarget("z", (4.0, 3.0, 0.0), weight=(1.0, 1.0, 0.0), priority=0)], posture=[0.5, 0.5, 0.5])
    assert found.reached and np.allclose(found.q, (2.0, 3.0, 1.0), atol=1e-6)


def test_a_lower_priority_stays_within_limits_too():
    arm = plane_arm(6, limits=(-1.2, 1.2))
    first, second = ld.PointTarget("tip", (2.0, 1.0, 0.0)), ld.PointTarget("link 2", (0.0, 2.0, 0.0), priority=1)
    found = ld.inverse_kinematics(arm, [first, second], q0=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert found.reached and within(arm, found.q)
    # SciPy, which knows of equations and bounds, finds nothing better from there
    other = minimize(lambda q: np.square(second.error(arm, q)).sum(), found.q, method="SLSQP",
                     constraints={"type": "eq", "fun": lambda q: first.error(arm, q)[:2]},
                     bounds=list(zip(arm.lower, arm.upper)), options={"ftol": 1e-12})
    assert np.square(second.error(arm, found.q)).sum() < other.fun + 1e-5
    assert ((found.q == arm.lower) | (found.q == arm.upper)).any()


def test_the_whole_body_by_priorities():
    """Talos reaches with its hand behind feet that stand, and stays near its posture behind both."""
    talos, hand, feet = ld.load("talos"), "gripper_left_base_link", ("left_sole_link", "right_sole_link")
    q = talos.home
    goals = ld.pose(talos, q, hand)[:3, 3] + np.random.default_rng(0).uniform(-0.25, 0.25, size=(50, 3))
    targets = [*(ld.PoseTarget(foot, ld.pose(talos, q, foot)) for foot in feet),
               ld.CenterOfMassTarget(ld.center_of_mass(talos, q), weight=(1.0, 1.0, 0.0)),
               ld.PointTarget(hand, goals, priority=1)]
    free, near = (ld.inverse_kinematics(talos, targets, posture=posture) for posture in (None, q))
    for found in (free, near):
        assert found.reached.all() and within(talos, found.q) and not found.restarts.any()
        assert np.linalg.norm(found.errors[f"point:{hand}"], axis=1).max() < 1e-6
    way = [np.linalg.norm(ld.difference(talos, found.q, np.tile(q, (50, 1))), axis=1) for found in (free, near)]
    assert (way[1] < way[0] + 1e-6).all() and free.iterations.mean() < 10


def test_posture_is_as_near_as_targets_allow():
    hand, target = PANDA.home + 0.3, ld.PoseTarget(HAND, ld.pose(PANDA, PANDA.home + 0.2, HAND))
    found = ld.inverse_kinematics(PANDA, target, posture=hand)
    assert found.reached
    way = hand - found.q
    inside = (found.q > PANDA.lower + 1e-9) & (found.q < PANDA.upper - 1e-9)
    left = null_space(target.jacobian(PANDA, found.q)[:, inside]).T @ way[inside]
    # the last step gains less than 1e-9 of the squared distance
    assert np.abs(left).max() < 1e-3
    other = ld.inverse_kinematics(PANDA, target)
    assert np.linalg.norm(hand - found.q) < np.linalg.norm(hand - other.q)
    # without targets in the way it is the posture itself
    free = ld.inverse_kinematics(PANDA, ld.PointTarget(HAND, (0.0, 0.0, 0.0), weight=0.0), posture=hand)
    assert np.allclose(free.q, np.clip(hand, PANDA.lower, PANDA.upper), atol=1e-6)


def test_a_stretched_arm_becomes_shorter():
    """Nothing moves the tip along the arm at first order, and the arm stands in the middle of its limits."""
    for limits in (None, (-3.0, 3.0)):
        found = ld.inverse_kinematics(plane_arm(2, limits), ld.PointTarget("tip", (1.0, 0.0, 0.0)), restarts=0)
        assert found.reached and abs(abs(found.q[1]) - 2.0 * np.pi / 3.0) < 1e-5


def test_held_coordinates_stay():
    start = PANDA.home + 0.1
    target = ld.PointTarget(HAND, (0.3, 0.3, 0.5))
    found = ld.inverse_kinematics(PANDA, target, q0=start, hold=["panda_joint1", "panda_joint4"])
    assert found.q[0] == start[0] and found.q[3] == start[3] and found.reached
    hard = ld.PoseTarget(HAND, ld.pose(PANDA, ld.random_configuration(PANDA, rng=0, size=200), HAND))
    found = ld.inverse_kinematics(PANDA, hard, q0=start, hold=["panda_joint1"], unreached="ignore")
    assert found.restarts.any() and (found.q[:, 0] == start[0]).all()
    solo = ld.load("solo12")
    free = solo.joint_names[0]
    feet = ld.PointTarget("HR_FOOT", ld.pose(solo, solo.home, "HR_FOOT")[:3, 3] + (0.0, 0.0, 0.02))
    found = ld.inverse_kinematics(solo, feet, hold=free)
    assert np.array_equal(found.q[:7], solo.home[:7]) and found.reached


def test_restarts_and_seeds():
    target = ld.PoseTarget(HAND, ld.pose(PANDA, ld.random_configuration(PANDA, rng=0, size=1000), HAND))
    first = ld.inverse_kinematics(PANDA, target, restarts=0, unreached="ignore")
    found = ld.inverse_kinematics(PANDA, target)
    assert found.restarts[~first.reached].all() and found.reached.all()
    again, other = (ld.inverse_kinematics(PANDA, target, seed=seed) for seed in (0, 1))
    assert np.array_equal(found.q, again.q) and not np.array_equal(found.q, other.q)


def test_one_crank_comes_round_to_the_other_side():
    squeezer, rng = ld.load("squeezer"), np.random.default_rng(0)
    target = ld.PoseTarget("K7", ld.pose(squeezer, [closed_walk(squeezer, rng, 20) for _ in range(10)], "K7"))
    found = ld.inverse_kinematics(squeezer, target)
    assert found.reached.all() and np.abs(ld.closure_error(squeezer, found.q)).max() < 1e-12


def test_a_path_stays_on_its_branch():
    """A circle of the hand, twice round, and two paths at once: no jump."""
    angle = np.linspace(0.0, 4.0 * np.pi, 400)
    there = np.tile(ld.pose(PANDA, PANDA.home, HAND), (400, 1, 1))
    there[:, :3, 3] += 0.15 * np.column_stack([np.cos(angle) - 1.0, np.sin(angle), 0.0 * angle])
    found = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there), path=True)
    assert found.reached.all() and np.abs(np.diff(found.q, axis=0)).max() < 0.05
    both = ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, np.stack([there, there[::-1]])), path=True)
    assert np.array_equal(both.q[0], found.q) and both.reached.all()
    assert np.abs(np.diff(both.q, axis=1)).max() < 0.05
    robot = ld.load("five_bar")  # from a start that is not closed
    q = ld.close(robot, robot.home, q1=robot.home[0] + 0.2 * np.sin(angle), q2=robot.home[1] + 0.2 * np.cos(angle))
    around = ld.inverse_kinematics(robot, ld.PoseTarget("link4", ld.pose(robot, q, "link4")), q0=q[0] + 0.2, path=True)
    assert around.reached.all() and np.abs(np.diff(around.q, axis=0)).max() < 0.1
    with pytest.raises(InputError, match="a path needs targets with a leading axis"):
        ld.inverse_kinematics(PANDA, ld.PoseTarget(HAND, there[0]), path=True)


# ---- floating bases, closed chains, redundant rows


@pytest.mark.parametrize("name, feet", [("solo12", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
                                        ("talos", ("left_sole_link", "right_sole_link"))])
def test_feet_stand_and_the_centre_of_mass_moves(name, feet):
    robot = ld.load(name)
    q = robot.home
    com = ld.center_of_mass(robot, q) + [(0.01, 0.01, -0.02), (-0.01, 0.02, -0.03)]
    kind = (lambda foot: ld.PoseTarget(foot, ld.pose(robot, q, foot))) if name == "talos" else (
        lambda foot: ld.PointTarget(foot, ld.pose(robot, q, foot)[:3, 3]))
    found = ld.inverse_kinematics(robot, [*map(kind, feet), ld.CenterOfMassTarget(com)], posture=q, tolerance=1e-9,
                                  angle_tolerance=1e-9)
    assert found.reached.all() and within(robot, found.q)
    assert np.abs(ld.center_of_mass(robot, found.q) - com).max() < 1e-9
    for foot in feet:
        assert np.abs(ld.pose(robot, found.q, foot)[:, :3, 3] - ld.pose(robot, q, foot)[:3, 3]).max() < 1e-9


def test_a_base_may_be_far_away():
    solo = ld.load("solo12")
    place = ld.pose(solo, solo.home, "HR_FOOT")[:3, 3] + (1000.0, -500.0, 20.0)
    found = ld.inverse_kinematics(solo, ld.PointTarget("HR_FOOT", place), restarts=0)
    assert found.reached and found.iterations < 20
    assert ld.inverse_kinematics(gantry((-1e3, 1e3)), ld.PointTarget("z", (900.0, 0.0, -900.0))).iterations < 10


@pytest.mark.parametrize("name, body", CLOSED.items())
def test_closed_chains_are_reached_and_closed(name, body):
    robot, rng = ld.load(name), np.random.default_rng(8)
    q = np.array([closed_walk(robot, rng) for _ in range(20)])
    there = ld.pose(robot, q, body)
    found = ld.inverse_kinematics(robot, ld.PoseTarget(body, there), tolerance=1e-9, angle_tolerance=1e-9)
    assert found.reached.all() and within(robot, found.q)
    assert np.abs(ld.closure_error(robot, found.q)).max() < 1e-12
    assert np.abs(ld.pose(robot, found.q, body) - there).max() < 3e-9


def test_an_open_start_is_closed_and_one_beyond_limits_refused():
    robot = ld.load("five_bar")
    open_start = robot.home + [0.05, -0.05, 0.1, 0.1]
    assert np.abs(ld.closure_error(robot, open_start)).max() > 0.01
    tip = ld.PointTarget("link4", ld.pose(robot, robot.home, "link4")[:3, 3])
    found = ld.inverse_kinematics(robot, tip, q0=open_start)
    assert found.reached and np.abs(ld.closure_error(robot, found.q)).max() < 1e-12
    assert ld.inverse_kinematics(PANDA, ld.PointTarget(HAND, (0.3, 0.3, 0.5)), q0=PANDA.upper + 1.0).reached


def test_moving_constraints_are_where_they_are():
    robot = ld.load("five_bar").with_target("pin", lambda t: ([0.01 * t, 0, 0], [0.01, 0, 0], [0, 0, 0])).at(2.0)
    target = ld.PointTarget("link4", ld.pose(robot, ld.close(robot, robot.home), "link4")[:3, 3])
    assert np.abs(ld.closure_error(robot, ld.inverse_kinematics(robot, target).q)).max() < 1e-12


# ---- what is refused


def test_options_that_are_wrong():
    target = ld.PointTarget(HAND, np.zeros((2, 3)))
    for options, said in (
            (dict(hold=["elbow"]), "cannot hold 'elbow'"), (dict(q0=np.zeros((3, 7))), "do not broadcast"),
            (dict(unreached="shrug"), "unknown unreached"), (dict(posture=[0.0]), "posture must have")):
        with pytest.raises(InputError, match=said):
            ld.inverse_kinematics(PANDA, target, **options)
    b = ld.Builder("light")
    b.body("a")
    b.joint("j", "revolute", "ground", "a", armature=1.0)
    with pytest.raises(InputError, match="no centre of mass"):
        ld.inverse_kinematics(b.build(), ld.CenterOfMassTarget((0.0, 0.0, 0.0)))
