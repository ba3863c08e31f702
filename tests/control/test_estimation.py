"""Observers: SciPy's and python-control's Riccati equations, Monte Carlo consistency, feedback of estimates."""
from functools import cache

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are, solve_discrete_are
from scipy.stats import chi2

import liedyn as ld
from liedyn.control.estimation.measurement import Measurement
from liedyn.machine.errors import ClosureError, InputError
from liedyn.motion.local_coordinates import Deviation

SEEN = ("q1", "q4")


@cache
def five_bar():
    return ld.load("five_bar")


@cache
def flier():
    """A floating body with six motors, and an arm on it."""
    b = ld.Builder("flier", gravity=(0.0, 0.0, 0.0))
    b.body("hull", 2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("base", "free", "ground", "hull")
    b.body("arm", 0.5, com=(0.3, 0.0, 0.0), inertia=np.diag([0.01, 0.02, 0.02]))
    b.joint("elbow", "revolute", "hull", "arm", ld.placement(xyz=(0.2, 0.0, 0.0)), axis=(0, 0, 1))
    robot = b.build()
    assert robot.velocity_names[-1] == "elbow"
    return robot


# ---- readings


@pytest.mark.parametrize("make, outputs", [
    (five_bar, ("q1", "velocity:q3", "pin", "velocity:pin", "acceleration:q2", "wrench:pin", "pose:LINK", "twist:LINK",
                "twist_rate:LINK")),
    (flier, ("base", "velocity:base", "elbow", "pose:arm", "twist_rate:arm")),
])
def test_readings_change_as_C_says(make, outputs):
    """Central differences of what sensors read along the manifold, against C of `linearize`."""
    robot, rng, eps = make(), np.random.default_rng(2), 1e-5
    outputs = [each.replace("LINK", robot.body_names[-1]) for each in outputs]
    measurement = Measurement(robot, outputs)
    d = Deviation(robot, robot.home, np.zeros(robot.nv), None, None, 1e-9)
    p, x = len(d.y.names), len(d.y.names) + len(d.w.names)
    q, v = d.state_at(np.concatenate([0.2 * rng.normal(size=p), rng.normal(size=x - p)]))
    u = rng.normal(size=len(robot.actuator_names))
    ss = ld.linearize(robot, q, v, u=u, outputs=outputs, independent=d.y, speeds=d.w)
    assert ss.outputs == measurement.labels
    here = measurement(robot, q, v, u)
    for k in range(x):
        dx = eps * np.eye(x)[k]
        there = [measurement(robot, *d.at(q, v).state_at(s * dx), u) for s in (1.0, -1.0)]
        slope = np.subtract(*(measurement.difference(each, here) for each in there)) / (2.0 * eps)
        # of second order in eps, and rounding over it
        assert np.allclose(ss.C[:, k], slope, rtol=0.0, atol=1e-7 * max(1.0, np.abs(ss.C).max()))


def test_differences_of_poses_are_taken_on_the_group():
    robot, rng = flier(), np.random.default_rng(0)
    measurement = Measurement(robot, ("pose:arm", "base", "elbow"))
    q = ld.integrate(robot, robot.home, rng.normal(size=7))
    y, noise = measurement(robot, q, np.zeros(7), np.zeros(7)), 0.5 * rng.normal(size=13)
    assert np.allclose(measurement.difference(measurement.disturbed(y, noise), y), noise, rtol=0.0, atol=1e-13)


# ---- filters with constant gains


def test_the_kalman_bucy_filter():
    arm = five_bar()
    observer = ld.kalman(arm, arm.home, Q=2.0, R={"q1": 1e-4, "velocity:q4": 1e-2}, outputs=["q1", "velocity:q4"])
    hold = ld.inverse_dynamics(arm, arm.home, np.zeros(4), [0.0, 0.0]).u
    ss = ld.linearize(arm, arm.home, np.zeros(4), u=hold, outputs=["q1", "velocity:q4"])
    A, C, Q, R, P = ss.A, ss.C, 2.0 * ss.B @ ss.B.T, np.diag([1e-4, 1e-2]), observer.P
    residual = A @ P + P @ A.T - P @ C.T @ np.linalg.solve(R, C @ P) + Q
    assert np.abs(residual).max() < 1e-9 * np.abs(Q).max()  # rounding of SciPy's solution
    assert np.allclose(P, solve_continuous_are(A.T, C.T, Q, R), rtol=1e-9)
    assert np.allclose(observer.L, P @ C.T @ np.linalg.inv(R), rtol=1e-9)
    assert (observer.eigenvalues.real < 0.0).all()
    e = observer.innovation(observer.y + [0.01, 0.2], np.zeros(4))
    assert np.allclose(e, [0.01, 0.2], rtol=1e-12)
    assert np.allclose(observer.rate(np.zeros(4), observer.y + [0.01, 0.2]), observer.L @ [0.01, 0.2], rtol=1e-12)


def test_the_filter_that_samples():
    arm = five_bar()
    observer = ld.dkalman(arm, arm.home, 0.01, Q=2.0, R=1e-4, outputs=SEEN)
    A, B, C, R = observer.model.A, observer.model.B, observer.C, 1e-4 * np.eye(2)
    P = solve_discrete_are(A.T, C.T, 2.0 * B @ B.T, R)
    assert np.allclose(observer.P, P, rtol=1e-9)
    assert np.allclose(observer.L, A @ P @ C.T @ np.linalg.inv(C @ P @ C.T + R), rtol=1e-9)
    assert (np.abs(observer.eigenvalues) < 1.0).all()
    # an extended filter at rest comes to the same covariance and gain
    ekf = ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), 0.01, P=1e-2, Q=2.0, R=1e-4, outputs=SEEN)
    for _ in range(300):
        ekf.update(ekf.measure())
        ekf.predict(observer.u)
    assert np.allclose(ekf.P, P, rtol=1e-6, atol=1e-9 * np.abs(P).max())  # the slowest mode has died out by then


def test_against_python_control():
    control = pytest.importorskip("control")
    arm = five_bar()
    bucy = ld.kalman(arm, arm.home, Q=2.0, R=1e-4, outputs=SEEN)
    L, P, _ = control.lqe(bucy.model.A, bucy.model.B, bucy.C, 2.0 * np.eye(4), 1e-4 * np.eye(2))
    assert np.allclose(bucy.L, L, rtol=1e-8) and np.allclose(bucy.P, P, rtol=1e-8)
    samples = ld.dkalman(arm, arm.home, 0.01, Q=2.0, R=1e-4, outputs=SEEN)
    L, P, _ = control.dlqe(samples.model.A, samples.model.B, samples.C, 2.0 * np.eye(4), 1e-4 * np.eye(2))
    assert np.allclose(samples.L, L, rtol=1e-8) and np.allclose(samples.P, P, rtol=1e-8)


# ---- the extended filter is consistent


def consistency(robot, q, P, Q, R, outputs, u, h, samples, runs):
    """Normalised squared errors and innovations, of `runs` runs at each of `samples` samples."""
    rng = np.random.default_rng(5)
    errors, innovations = np.empty((runs, samples)), np.empty((runs, samples))
    for run in range(runs):
        ekf = ld.ExtendedKalmanFilter(robot, q, np.zeros(robot.nv), h, P, Q, R, outputs)
        d, x = ekf._deviation, len(ekf.states)
        start = np.sqrt(P) * rng.normal(size=x)
        there = d.state_at(start)
        for k in range(samples):
            y = ekf.disturbed(ekf.measure(*there), np.sqrt(R) * rng.normal(size=len(ekf.outputs)))
            ekf.update(y)
            innovations[run, k] = ekf.e @ np.linalg.solve(ekf.S, ekf.e)
            left = ekf.deviation(*there)
            errors[run, k] = left @ np.linalg.solve(ekf.P, left)
            given = u(k * h)
            ekf.predict(given)
            there = ld.step(robot, *there, u=given + np.sqrt(Q) * rng.normal(size=len(given)), dt=h)
        assert np.abs(ld.closure_error(robot, ekf.q)).max(initial=0.0) < 1e-11
    return errors, innovations, x, len(ekf.outputs)


@pytest.mark.parametrize("make, outputs, runs, samples", [
    (five_bar, ("q1", "q4"), 40, 40),
    (flier, ("pose:hull", "elbow"), 40, 25),
])
def test_errors_are_what_the_covariance_says(make, outputs, runs, samples):
    """Mean normalised squares within what chi-square leaves in 999 of 1000 draws (Bar-Shalom et al. 2001, 5.4)."""
    robot = make()
    p = len(Deviation(robot, robot.home, np.zeros(robot.nv), None, None, 1e-9).w.names)
    hold = ld.inverse_dynamics(robot, robot.home, np.zeros(robot.nv), np.zeros(p)).u
    phase = np.arange(len(hold))

    def u(t):
        return hold + 0.3 * np.sin(8.0 * t + phase)

    errors, innovations, x, ny = consistency(robot, robot.home, 1e-4, 0.05, 1e-6, outputs, u, 0.01, samples, runs)
    for k in (0, samples // 2, samples - 1):  # runs are independent, samples of a run are not
        low, high = chi2.ppf([0.0005, 0.9995], runs * x) / runs
        assert low < errors[:, k].mean() < high
    low, high = chi2.ppf([0.0005, 0.9995], runs * samples * ny) / (runs * samples)  # innovations are white
    assert low < innovations.mean() < high


# ---- feedback of estimates


def test_a_five_bar_is_regulated_by_two_encoders():
    arm, h = five_bar(), 0.01
    regulator = ld.dlqr(arm, arm.home, h, Q=100.0, R=0.1)
    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.05)
    for observer in (ld.dkalman(arm, arm.home, h, Q=0.1, R=1e-8, outputs=SEEN),
                     ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), h, 1e-2, 0.1, 1e-8, SEEN)):
        feedback = ld.OutputFeedback(regulator, observer, noise=1e-8)
        tr = ld.simulate(arm, start, np.zeros(4), 3.0, u=feedback.sampled)
        assert np.linalg.norm(regulator.deviation(tr.q[-1], tr.v[-1])) < 5e-3  # noise of 1e-4 through the loop
        # the estimates, which begin 0.05 rad off, follow states that were never told: to the noise and its derivative
        off = np.array([ld.difference(arm, *each) for each in zip(feedback.q, tr.q[::10])])
        assert np.abs(off[50:]).max() < 5e-4
        assert max(np.abs(ld.closure_error(arm, q)).max() for q in feedback.q) < 1e-11
        y = feedback.y
        feedback.reset()
        again = ld.simulate(arm, start, np.zeros(4), 3.0, u=feedback.sampled)
        assert np.array_equal(again.q, tr.q) and np.array_equal(feedback.y, y)


def test_separation():
    """The loop of a regulator and a filter has the eigenvalues of both, on the mechanism itself."""
    arm, h = five_bar(), 0.01
    regulator, observer = ld.dlqr(arm, arm.home, h, 1.0, 0.1), ld.dkalman(arm, arm.home, h, 1.0, 1e-4, SEEN)
    A, B, C, K, M = observer.model.A, observer.model.B, observer.C, regulator.K, observer.M
    one = np.eye(4)
    # x+ = A x - B K xe,  xe = xp + M C (x - xp),  xp+ = (A - B K) xe
    loop = np.block([[A - B @ K @ M @ C, -B @ K @ (one - M @ C)], [(A - B @ K) @ M @ C, (A - B @ K) @ (one - M @ C)]])
    expected = np.sort_complex(np.concatenate([regulator.eigenvalues, observer.eigenvalues]))
    assert np.allclose(np.sort_complex(np.linalg.eigvals(loop)), expected, rtol=0.0, atol=1e-9)
    # the run of the mechanism is that of this loop for a small start, up to what is of second order
    scale = 1e-6
    start = ld.close(arm, arm.home, q1=arm.home[0] + scale)
    feedback = ld.OutputFeedback(regulator, observer)
    tr = ld.simulate(arm, start, np.zeros(4), 0.3, u=feedback.sampled)
    z = np.concatenate([regulator.deviation(start, np.zeros(4)), np.zeros(4)])
    found = regulator.deviation(tr.q[-1], tr.v[-1])
    assert np.allclose(found, (np.linalg.matrix_power(loop, 30) @ z)[:4], rtol=0.0, atol=1e-3 * scale)


def test_along_a_motion():
    """A time-varying regulator on the estimates of a filter that follows the motion."""
    arm, h = five_bar(), 0.01

    def tau(t, q, v):
        return hold + np.array([np.sin(3.0 * t), 0.0, np.cos(2.0 * t), 0.0])

    hold = ld.inverse_dynamics(arm, arm.home, np.zeros(4), [0.0, 0.0]).tau
    plan = ld.simulate(arm, arm.home, np.zeros(4), 1.0, dt=5e-3, tau=tau)
    regulator = ld.tvlqr(arm, plan.t, plan.q, plan.v, Q=[100.0, 100.0, 1.0, 1.0], R=0.01, a=plan.a)
    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.03)
    ekf = ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), h, 1e-3, 1e-2, 1e-8, SEEN)
    feedback = ld.OutputFeedback(regulator, ekf, noise=1e-8)
    tr = ld.simulate(arm, start, np.zeros(4), 1.0, u=feedback.sampled)
    assert np.abs(ld.difference(arm, plan.q[-1], arm.home)).max() > 0.05  # it has moved
    # inputs that are held are half a sample late
    assert np.abs(ld.difference(arm, plan.q[-1], tr.q[-1])).max() < 3e-3
    assert np.abs(ld.difference(arm, feedback.q[-1], tr.q[-1])).max() < 5e-4


def test_late_and_bounded_inputs_are_predicted():
    """With a filter that knows of delay and bounds nothing is left to correct."""
    arm, h = five_bar(), 0.01
    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.1)
    ekf = ld.ExtendedKalmanFilter(arm, start, np.zeros(4), h, 1e-4, 0.1, 1e-8, SEEN)
    feedback = ld.OutputFeedback(ld.dlqr(arm, arm.home, h, 1.0, 0.1), ekf, delay=2, lower=-0.2, upper=0.2)
    tr = ld.simulate(arm, start, np.zeros(4), 0.5, u=feedback.sampled)
    assert np.abs(feedback.u).max() == 0.2
    # the integrator's step of 10 ms against ten of 1 ms
    assert np.abs([ld.difference(arm, *each) for each in zip(feedback.q, tr.q[::10])]).max() < 1e-6


def test_a_floating_robot_is_held_by_its_pose():
    robot, h, rng = flier(), 0.01, np.random.default_rng(3)
    regulator = ld.dlqr(robot, robot.home, h, Q=10.0, R=0.1)
    start = ld.integrate(robot, robot.home, 0.6 * rng.normal(size=7))
    ekf = ld.ExtendedKalmanFilter(robot, robot.home, np.zeros(7), h, 1.0, 1e-3, 1e-6, ["pose:hull", "elbow"])
    feedback = ld.OutputFeedback(regulator, ekf, noise=1e-6)
    tr = ld.simulate(robot, start, np.zeros(7), 6.0, u=feedback.sampled)
    assert np.linalg.norm(regulator.deviation(start, np.zeros(7))) > 1.0
    assert np.linalg.norm(regulator.deviation(tr.q[-1], tr.v[-1])) < 0.02  # noise of 1e-3 through the loop
    assert np.allclose(np.linalg.norm(feedback.q[:, :4], axis=1), 1.0, rtol=0.0, atol=1e-14)


def test_what_is_not_measured():
    """Readings that are missing leave the estimate to the others; all missing, to the prediction."""
    arm = five_bar()
    ekf, only = (ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), 0.01, 1e-4, 0.1, 1e-6, seen)
                 for seen in (SEEN, SEEN[:1]))
    y = ekf.measure() + 1e-3
    ekf.update([y[0], np.nan])
    only.update(y[:1])
    assert np.array_equal(ekf.q, only.q) and np.array_equal(ekf.P, only.P)
    before = ekf.P
    ekf.update([np.nan, np.nan])
    assert np.allclose(ekf.P, before, rtol=1e-14) and len(ekf.e) == 0


def test_other_coordinates_are_chosen_on_the_way():
    """A pendulum that goes round, in x and y, of which each says nothing somewhere, against the same by its angle.

    Both know as much: two coordinates of the bob at the distance 1 m are worth one angle, two forces one moment.
    """
    cartesian = ld.load("cartesian_pendulum")
    b = ld.Builder("pendulum", gravity=(0.0, -9.81, 0.0))
    b.body("bob", 1.0, com=(0.0, -1.0, 0.0))
    b.joint("angle", "revolute", "ground", "bob")
    polar = b.build()
    rest, rate = np.array([0.0, -1.0]), 7.0
    filters = [ld.ExtendedKalmanFilter(cartesian, rest, [rate, 0.0], 0.0025, 1e-4, 0.1, 1e-6, ["q1", "q2"],
                                       independent="auto"),
               ld.ExtendedKalmanFilter(polar, [0.0], [rate], 0.0025, 1e-4, 0.1, 1e-6, ["angle"])]
    names = []
    for _ in range(600):
        names += [filters[0].states[0]] * (not names or names[-1] != filters[0].states[0])
        for each in filters:
            each.update(each.measure())
            each.predict(np.zeros(each.robot.nv))
        angle = filters[1].q[0]
        x, slope, bend = (np.array(each) for each in (
            (np.sin(angle), -np.cos(angle)), (np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))))
        # errors of the integrator in coordinates of which each is bad for a while
        assert np.allclose(filters[0].q, x, rtol=0.0, atol=1e-5)
        i = cartesian.velocity_names.index(filters[0].states[0])
        T = np.array([[slope[i], 0.0], [bend[i] * filters[1].v[0], slope[i]]])  # dx/dangle, d(velocity)
        expected = T @ filters[1].P @ T.T
        assert np.allclose(filters[0].P, expected, rtol=0.0, atol=1e-3 * np.abs(expected).max())
    assert filters[1].q[0] > 2.0 * np.pi and len(names) > 4


@pytest.mark.parametrize("name, seen", [
    ("arm_on_slider", ("shoulder", "end.angle")),  # states are coordinates of a cut joint
    ("rolling_disk", ("disk.x", "disk.angle")), ("shopping_cart", ("cart.x", "cart.y", "caster")),  # fewer speeds
    ("loader", ("boom", "lift_rod")), ("stewart", ("pose:LAST",)),
])
def test_estimates_satisfy_the_constraints(name, seen):
    robot, rng = ld.load(name), np.random.default_rng(4)
    seen = [each.replace("LAST", robot.body_names[-1]) for each in seen]
    ekf = ld.ExtendedKalmanFilter(robot, robot.home, np.zeros(robot.nv), 0.002, 1e-4, 0.1, 1e-6, seen)
    for _ in range(20):
        ekf.predict(rng.normal(size=len(robot.actuator_names)))
        ekf.update(ekf.disturbed(ekf.measure(), 1e-3 * rng.normal(size=len(ekf.outputs))))
        assert np.linalg.eigvalsh(ekf.P).min() > 0.0
    assert np.abs(ld.closure_error(robot, ekf.q)).max() < 1e-12
    assert np.abs(ld.velocity_error(robot, ekf.q, ekf.v)).max() < 1e-12


def test_a_moving_constraint_is_predicted():
    """A pendulum on a cart that is driven to and fro: a filter that sees what it expects follows the simulation."""
    b = ld.Builder("driven", gravity=(0.0, -9.81, 0.0))
    b.body("cart", 1.0)
    b.body("bob", 1.0, com=(0.0, -1.0, 0.0))
    b.joint("x", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("angle", "revolute", "cart", "bob")
    b.constraint("drive", "coupling", coefficients={"x": 1.0},
                 target=lambda t: (np.sin(3.0 * t), 3.0 * np.cos(3.0 * t), -9.0 * np.sin(3.0 * t)))
    robot, v = b.build(), [3.0, 0.0]
    ekf = ld.ExtendedKalmanFilter(robot, robot.home, v, 0.01, 1e-4, 0.1, 1e-6, ["angle"], independent=["angle"])
    for _ in range(50):
        ekf.predict(np.zeros(2))
        ekf.update(ekf.measure())
    tr = ld.simulate(robot, robot.home, v, 0.5, dt=1e-3)
    assert ekf.t == 0.5
    # what is measured belongs to the time of the estimate, also where the window began earlier
    estimator = ld.moving_horizon(robot, robot.home, v, 0.01, 1e-4, 0.1, 1e-6, ["acceleration:x"], horizon=5,
                                  independent=["angle"])
    for _ in range(10):
        estimator.predict(np.zeros(2))
    assert estimator.measure() == pytest.approx([-9.0 * np.sin(0.3)], abs=1e-6)
    # fourth order in steps of 10 ms
    assert np.allclose(ekf.q, tr.q[-1], rtol=0.0, atol=1e-6) and np.allclose(ekf.v, tr.v[-1], rtol=0.0, atol=1e-6)


def test_what_cannot_be_estimated_is_said():
    arm = five_bar()
    b = ld.Builder("cart", gravity=(0.0, 0.0, 0.0))
    for name in ("left", "right"):
        b.body(name, 1.0)
        b.joint(name, "prismatic", "ground", name)
    cart = b.build()
    with pytest.raises(InputError, match="no filter: the motion of right with the eigenvalue .* no output sees it"):
        ld.kalman(cart, [0.0, 0.0], 1.0, 1.0, outputs=["left"])
    with pytest.raises(InputError, match="no filter: the motion of right .* no noise moves it"):
        ld.dkalman(cart, [0.0, 0.0], 0.1, {"left": 1.0}, 1.0, outputs=["left", "right"])
    with pytest.raises(InputError, match="outputs: name at least one"):
        ld.kalman(cart, [0.0, 0.0], 1.0, 1.0, outputs=[])
    with pytest.raises(InputError, match="part of the position of a ball or free joint"):
        ld.kalman(flier(), flier().home, 1.0, 1.0, outputs=["base.rx"])
    with pytest.raises(InputError, match="y must be 2 finite numbers, one for each of q1, q4"):
        ld.kalman(arm, arm.home, 1.0, 1.0, outputs=SEEN).innovation([0.0], np.zeros(4))
    with pytest.raises(InputError, match="noise must be 'inputs', 'states' or"):
        ld.kalman(arm, arm.home, 1.0, 1.0, outputs=SEEN, noise="forces")
    with pytest.raises(InputError, match="R must be positive definite"):
        ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), 0.01, 1.0, 1.0, 0.0, SEEN)
    ekf = ld.ExtendedKalmanFilter(arm, arm.home, np.zeros(4), 0.01, 1.0, 1.0, 1e-6, ["q1", "q2"])
    with pytest.raises(ClosureError, match="the update moves the estimate by .*, to where the loops do not close"):
        ekf.update([2.0, 0.0])
    with pytest.raises(InputError, match="expected a filter that samples"):
        ld.OutputFeedback(lambda t, q, v: np.zeros(4), ld.kalman(arm, arm.home, 1.0, 1.0, outputs=SEEN))
    feedback = ld.OutputFeedback(lambda t, q, v: np.zeros(4), ld.dkalman(arm, arm.home, 0.01, 1.0, 1.0, SEEN))
    feedback(0.0, arm.home, np.zeros(4))
    with pytest.raises(InputError, match="a sample at t = 0.5 s cannot follow that at 0 s"):
        feedback(0.5, arm.home, np.zeros(4))
