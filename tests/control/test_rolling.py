"""Regulators, filters and schedules for robots that roll: what is left out, and that it does not matter."""
import numpy as np
import pytest
from rolling_robots import balancer, rolling, skateboard
from scipy.linalg import solve_continuous_are

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.motion.partial_deviation import is_group

LEAN = {"lean": 10.0, "steer": 1.0}
UPRIGHT = {"lean": 0.0, "steer": 0.0}
KEPT = ("lean", "steer", "velocity:lean", "velocity:steer")


def bicycle():
    b = ld.Builder.of(ld.load("whipple_bicycle"))
    b.actuator("handlebar", "steer")
    return b.build()


BICYCLE = bicycle()
AHEAD = ld.complete_velocity(BICYCLE, BICYCLE.home, UPRIGHT | {"rear_wheel": -3.5 / 0.3})


def falling(lean=0.15, steer=0.0):
    q = ld.close(BICYCLE, BICYCLE.home, lean=lean, steer=steer)
    return q, ld.complete_velocity(BICYCLE, q, UPRIGHT | {"rear_wheel": -3.5 / 0.3})


def test_a_bicycle_stays_upright_at_a_speed_at_which_it_falls():
    with pytest.raises(InputError, match="does not decay.*name in states"):
        ld.lqr(BICYCLE, BICYCLE.home, 1.0, 1.0, v=AHEAD)
    regulator = ld.lqr(BICYCLE, BICYCLE.home, LEAN, 0.01, v=AHEAD, states=("lean", "steer", "velocity:rear_wheel"))
    assert regulator.model.states == KEPT
    assert regulator.left_out == {"velocity:rear_wheel": "no actuator drives it"} | dict.fromkeys(
        ("hub.x", "hub.y", "yaw", "rear_wheel", "front_wheel"), "not asked for")
    assert "without hub.x, hub.y, yaw, rear_wheel, front_wheel, velocity:rear_wheel" in repr(regulator)
    whole = ld.linearize(BICYCLE, BICYCLE.home, AHEAD, u=[0.0])
    k = [whole.states.index(name) for name in KEPT]
    A, B = whole.A[np.ix_(k, k)], whole.B[k]
    P = solve_continuous_are(A, B, np.diag([10.0, 1.0, 0.0, 0.0]), [[0.01]])
    assert np.allclose(regulator.K, 100.0 * B.T @ P, rtol=1e-9) and whole.eigenvalues().real.max() > 0.1
    tr = ld.simulate(BICYCLE, *falling(), 6.0, dt=4e-3, u=regulator)
    assert abs(tr["lean"][-1]) < 1e-6 and abs(tr["steer"][-1]) < 1e-6 and tr["hub.x"][-1] > 18.0
    assert abs(tr["yaw"][-1]) > 0.1  # it goes on in another direction
    # the closed loop of the whole machine has the poles of the design, and those of what is left out
    closed = ld.linearize(BICYCLE, BICYCLE.home, AHEAD, u=regulator.feedback).eigenvalues()
    assert all(np.abs(closed - s).min() < 1e-6 for s in regulator.eigenvalues)
    assert (np.sort(closed.real)[4:] > -1e-6).all()


def test_what_is_left_out_may_not_act_on_what_is_kept():
    with pytest.raises(InputError, match="steer is left out, but d/dt velocity:lean depends on it.*name steer too"):
        ld.lqr(BICYCLE, BICYCLE.home, 1.0, 1.0, v=AHEAD, states=("lean",))
    with pytest.raises(InputError, match="name yaw, lean, steer too"):
        ld.lqr(BICYCLE, BICYCLE.home, 1.0, 1.0, v=AHEAD, states=("hub.y",))
    with pytest.raises(InputError, match="Q: 'hub.x' is left out: not asked for"):
        ld.lqr(BICYCLE, BICYCLE.home, {"hub.x": 1.0}, 1.0, v=AHEAD, states=("lean", "steer"))
    with pytest.raises(InputError, match="unknown 'laen'"):
        ld.lqr(BICYCLE, BICYCLE.home, 1.0, 1.0, v=AHEAD, states=("laen",))
    with pytest.raises(InputError, match="nothing is left of velocity:rear_wheel"):
        ld.lqr(BICYCLE, BICYCLE.home, 1.0, 1.0, v=AHEAD, states=("velocity:rear_wheel",))
    with pytest.raises(InputError, match="output yaw depends on yaw, which is left out"):
        ld.kalman(BICYCLE, BICYCLE.home, 1.0, 1e-4, outputs=["lean", "yaw"], v=AHEAD, states=("lean", "steer"))
    # the path across the road can be held as well
    wide = ld.lqr(BICYCLE, BICYCLE.home, {"hub.y": 1.0, "yaw": 1.0}, 1.0, v=AHEAD,
                  states=("hub.y", "yaw", "lean", "steer"))
    assert len(wide.model.states) == 6 and (wide.eigenvalues.real < 0.0).all()


def test_a_bicycle_with_two_sensors():
    """Sampled, on estimates: both leave out the same, and neither needs it."""
    given = dict(v=AHEAD, states=("lean", "steer"))
    regulator = ld.dlqr(BICYCLE, BICYCLE.home, 0.01, LEAN, 0.01, **given)
    observer = ld.dkalman(BICYCLE, BICYCLE.home, 0.01, 10.0, 1e-6, outputs=["lean", "velocity:steer"], **given)
    assert observer.left_out == regulator.left_out and "without hub.x" in repr(observer)
    assert (np.abs(regulator.eigenvalues) < 1.0).all() and (np.abs(observer.eigenvalues) < 1.0).all()
    feedback = ld.OutputFeedback(regulator, observer)
    tr = ld.simulate(BICYCLE, *falling(0.05), 5.0, dt=5e-3, u=feedback.sampled)
    assert np.abs(tr["lean"][-1]) < 1e-3 and np.abs(feedback.q[-1] - BICYCLE.home).max() < 1e-3
    found = ld.kalman(BICYCLE, BICYCLE.home, 10.0, 1e-6, ["lean"], v=AHEAD,
                      states=("lean", "steer", "velocity:rear_wheel"))
    assert found.left_out["velocity:rear_wheel"] == "no output sees it"


def test_gains_over_the_speed():
    speeds = np.array([-8.0, -5.0, -3.0]) / 0.3
    schedule = ld.gain_schedule(BICYCLE, {"velocity:rear_wheel": speeds}, LEAN, 0.01, states=("lean", "steer"))
    assert schedule.states == KEPT and (schedule.eigenvalues.real < 0.0).all() and "without hub.x" in repr(schedule)
    there = schedule.at(**{"velocity:rear_wheel": -5.0 / 0.3})
    v = ld.complete_velocity(BICYCLE, BICYCLE.home, UPRIGHT | {"rear_wheel": -5.0 / 0.3})
    alone = ld.lqr(BICYCLE, BICYCLE.home, LEAN, 0.01, v=v, states=("lean", "steer"))
    assert np.allclose(there.K, alone.K, rtol=1e-8) and np.allclose(there.v, v, atol=1e-12)
    assert there.left_out == alone.left_out
    with pytest.raises(InputError, match="'velocity:pitch' is no independent velocity"):
        ld.gain_schedule(BICYCLE, {"velocity:pitch": [0.0, 1.0]}, LEAN, 0.01, states=("lean", "steer"))


def test_along_a_motion():
    tr = ld.simulate(BICYCLE, BICYCLE.home, AHEAD, 0.5, dt=5e-3, u=[0.0])
    given = dict(u=np.zeros((len(tr), 1)), states=("lean", "steer"))
    regulator = ld.tvlqr(BICYCLE, tr.t, tr.q, tr.v, LEAN, 0.01, **given)
    still = ld.lqr(BICYCLE, BICYCLE.home, LEAN, 0.01, v=AHEAD, states=("lean", "steer"))
    final = ld.tvlqr(BICYCLE, tr.t, tr.q, tr.v, LEAN, 0.01, final=still.P, **given)
    assert regulator.states == KEPT and regulator.left_out == still.left_out and "without hub.x" in repr(regulator)
    assert np.allclose(final.K, still.K, rtol=1e-6)  # its own cost-to-go at the end: the same at all times


@pytest.mark.parametrize("base", ["free", "planar"])
def test_a_balancer_drives_as_it_is_told_wherever_it_is(base):
    robot = balancer(base)
    pitch = "base.ry" if base == "free" else "pitch"
    wheels = ("velocity:left_wheel", "velocity:right_wheel")
    regulator = ld.lqr(robot, robot.home, {pitch: 10.0} | dict.fromkeys(wheels, 1.0), 1.0, states=(pitch, *wheels))
    assert set(regulator.model.states) == {pitch, f"velocity:{pitch}", *wheels}
    # far away, turned to the other side, leaning, and with one wheel ahead of the other
    if base == "free":
        q = robot.home.copy()
        q[:7] = 0.0, 0.0, np.sin(1.25), np.cos(1.25), 3.0, -2.0, 0.1
        q = ld.integrate(robot, q, 0.15 * np.eye(8)[1])
    else:
        q = ld.close(robot, robot.home, pitch=0.15) + np.array([3.0, -2.0, 2.5, 0.0, 0.0, 0.0])
    v = ld.complete_velocity(robot, q, {pitch: 0.3, "left_wheel": 1.0, "right_wheel": -8.0})
    assert np.allclose(regulator.deviation(q, v), [0.15, 0.3, 1.0, -8.0], atol=1e-12)
    tr = ld.simulate(robot, q, v, 4.0, dt=4e-3, u=regulator)
    assert np.abs(regulator.deviation(tr.q[-1], tr.v[-1])).max() < 1e-4
    rng = np.random.default_rng(0)
    off = ld.integrate(robot, tr.q[-1], 0.3 * rng.normal(size=robot.nv))
    assert ld.check_feedback(robot, regulator.feedback, off, rng.normal(size=robot.nv)).ok


def test_a_skateboard_rides_on():
    board = skateboard()
    regulator = ld.lqr(board, board.home, 1.0, 0.01, v=rolling(board, **{"cart.x": 3.0}), states=("lean", "rider"))
    assert regulator.left_out == dict.fromkeys(("cart.x", "cart.y", "cart.angle", "velocity:cart.x"), "not asked for")
    q = ld.close(board, board.home, lean=0.0, rider=0.03)
    v = ld.complete_velocity(board, q, {"lean": 0.0, "rider": 0.0, "cart.x": 3.0})
    tr = ld.simulate(board, q, v, 5.0, dt=2e-3, u=regulator)
    free = ld.simulate(board, q, v, 1.5, dt=2e-3, u=[0.0])
    assert np.abs([tr["lean"][-1], tr["rider"][-1]]).max() < 1e-3 < 1.0 < abs(free["rider"][-1])


AXES = "rx", "ry", "rz", "x", "y", "z"


@pytest.mark.parametrize("left", ["rz", "rz x y", "rz z", "rx ry rz", "x y z", "ry x y z", "rx ry rz x y z", "x z"])
def test_a_reference_is_carried_along_what_is_left_out(left):
    """u = log((r h)^-1 q) is found for q = r h exp(u) whatever h in the group is; its derivative is exact."""
    b = ld.Builder("body", gravity=(0.0, 0.0, 0.0))
    b.body("body", 2.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.25))
    b.joint("base", "free", "ground", "body")
    b.body("arm", 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1))
    b.joint("arm", "revolute", "body", "arm", axis=(0, 1, 0))
    robot, rng = b.build(), np.random.default_rng(3)
    along = np.array([AXES.index(name) for name in left.split()])
    assert is_group(along)
    names = [f"base.{AXES[j]}" for j in range(6) if j not in along] + ["arm"]
    q = ld.integrate(robot, robot.home, rng.normal(size=7))
    regulator = ld.lqr(robot, q, 1.0, 1.0, states=[*names, "velocity:arm"] if len(names) == 1 else names)
    at = q
    for _ in range(5):  # as far as one likes, in any order
        step = np.zeros(7)
        step[along] = rng.normal(size=len(along))
        at = ld.integrate(robot, at, step)
    u = np.append(0.3 * rng.normal(size=6), 0.2)
    u[along] = 0.0
    there = ld.integrate(robot, at, u)
    kept = [j for j in range(7) if j not in along]
    assert np.allclose(regulator.deviation(there, np.zeros(7))[:len(kept)], u[kept], atol=1e-12)
    assert ld.check_feedback(robot, regulator.feedback, there, rng.normal(size=7)).ok


def test_what_is_no_group_is_not_carried():
    assert not any(is_group(np.array([AXES.index(name) for name in left.split()])) for left in (
        "rx ry", "rz x", "rz x z", "rx ry rz x", "rx ry z"))


def test_pictures_of_gains():
    pytest.importorskip("matplotlib").use("Agg")
    loader = ld.load("loader")
    schedule = ld.gain_schedule(loader, {"boom": [0.0, 0.1, 0.2], "bucket": [-0.2, 0.2]}, 100.0, 1e-9)
    axes = schedule.plot("bucket")
    assert len(axes) == 3 and axes[-1].get_xlabel() == "bucket"
    # a line for each state, and each node of the other name; named once
    assert len(axes[0].lines) == 4 * 3
    assert [text.get_text() for text in axes[0].get_legend().texts] == list(schedule.states)
    assert np.allclose(axes[0].lines[0].get_ydata(), schedule.K[0, :, 0, 0])
    for wrong in ("bukcet", 3, np.zeros(2)):
        with pytest.raises(InputError, match="is not in the grid"):
            schedule.plot(wrong)
    with pytest.raises(InputError, match="axes must be 3"):
        schedule.plot(axes=axes[:2])


RIDING = ("lean", "steer", "velocity:rear_wheel")


def test_an_extended_filter_of_what_is_named():
    """Where the bicycle is does not act on how it stands: the whole filter has the same estimates and covariances."""
    outputs, noise = ["velocity:lean", "steer", "velocity:rear_wheel"], np.random.default_rng(3)
    q, v = falling(0.05)
    given = dict(h=0.01, Q=10.0, R=1e-5, outputs=outputs)
    few = ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, P=1e-3, states=RIDING, **given)
    whole = ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, P=dict.fromkeys(few.states, 1e-3), **given)
    assert few.states == (*KEPT, "velocity:rear_wheel") and "without hub.x" in repr(few)
    assert set(few.left_out) == set(whole.states) - set(few.states) and whole.left_out == {}
    k = [whole.states.index(name) for name in few.states]
    tr = ld.simulate(BICYCLE, q, v, 0.4, dt=5e-3, u=[0.0])
    for q, v in zip(tr.q[::2], tr.v[::2]):
        y = few.measure(q, v) + 3e-3 * noise.normal(size=3)
        for each in (few, whole):
            each.update(y)
            each.predict([0.0])
    assert np.allclose(few.P, whole.P[np.ix_(k, k)], rtol=1e-8, atol=1e-16)
    assert np.allclose(few.deviation(whole.q, whole.v), 0.0, atol=1e-10)
    assert few.deviation(tr.q[-1], tr.v[-1]) @ np.linalg.solve(few.P, few.deviation(tr.q[-1], tr.v[-1])) < 25.0


def test_an_extended_filter_says_what_it_cannot_leave_out():
    given = dict(h=0.01, P=1e-3, Q=10.0, R=1e-5)
    with pytest.raises(InputError, match="d/dt velocity:steer depends on it.*name velocity:rear_wheel too"):
        ld.ExtendedKalmanFilter(BICYCLE, *falling(0.1, 0.1), outputs=["steer"], states=("lean", "steer"), **given)
    upright = ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, outputs=["steer"], states=("lean", "steer"),
                                      **given)
    upright.update([0.1])
    before = upright.q
    with pytest.raises(InputError, match="velocity:rear_wheel is left out, but velocity:.* depends on it here"):
        upright.predict([0.0])
    assert (upright.q == before).all()  # as it was
    with pytest.raises(InputError, match="'hub.x' is left out: not asked for"):
        ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, outputs=["steer"], states=RIDING, **given
                                | {"P": {"hub.x": 1.0}})
    late = ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, outputs=["yaw"], states=RIDING, **given)
    with pytest.raises(InputError, match="yaw is left out, but yaw depends on it"):
        late.update([0.0])


def test_a_bicycle_rides_on_an_extended_filter():
    regulator = ld.dlqr(BICYCLE, BICYCLE.home, 0.01, LEAN, 0.01, v=AHEAD, states=("lean", "steer"))
    ekf = ld.ExtendedKalmanFilter(BICYCLE, BICYCLE.home, AHEAD, 0.01, P=1e-3, Q=10.0, R=1e-6, states=RIDING,
                                  outputs=["lean", "velocity:steer", "velocity:rear_wheel"])
    tr = ld.simulate(BICYCLE, *falling(0.05), 5.0, dt=5e-3, u=ld.OutputFeedback(regulator, ekf).sampled)
    assert np.abs(tr["lean"][-1]) < 1e-3


def test_a_balancer_is_followed_without_its_place_and_heading():
    robot, wheels = balancer("planar"), ("velocity:left_wheel", "velocity:right_wheel")
    q = ld.close(robot, robot.home, pitch=0.2)
    given = dict(h=5e-3, Q=1e-2, R=1e-6, outputs=["velocity:pitch", *wheels], states=("pitch", *wheels))
    ekf = ld.ExtendedKalmanFilter(robot, robot.home, np.zeros(robot.nv), P=1e-2, **given)
    late = ld.moving_horizon(robot, robot.home, np.zeros(robot.nv), P=1e-2, horizon=40, **given)
    assert set(ekf.states) == {"pitch", "velocity:pitch", *wheels}
    tr = ld.simulate(robot, q, np.zeros(robot.nv), 0.1, dt=5e-3, u=[0.05, -0.02])
    for q, v in zip(tr.q, tr.v):
        for each in (ekf, late):
            each.predict([0.05, -0.02])
            each.update(each.measure(q, v))
    for each in (ekf, late):
        assert np.abs(each._deviation(q, v)).max() < 0.02, each
