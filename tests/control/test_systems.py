"""Mechanisms, regulators and filters as systems of python-control, and its controllers in `simulate`."""
import sys

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, LiedynError

control = pytest.importorskip("control", reason="python-control is not installed")
ARM = ld.load("five_bar")
REST = np.zeros(4)
HOLD = ld.inverse_dynamics(ARM, ARM.home, REST, [0.0, 0.0]).u
SEEN = ("q1", "q4")


def test_the_rates_of_a_mechanism_are_linearized_to_A_and_B():
    """python-control's differences of the rates, of a loop and of its outputs, against the exact model."""
    system = ld.to_control(ARM, outputs=["q4", "velocity:q3", "pose:link2"])
    assert system.input_labels == ["force_q1", "force_q2", "force_q3", "force_q4"]
    assert system.output_labels[:3] == ["q4", "velocity_q3", "pose_link2_wx"]
    found = control.linearize(system, np.zeros(4), HOLD, eps=1e-6)
    exact = ld.linearize(ARM, ARM.home, REST, u=HOLD, outputs=["q4", "velocity:q3", "pose:link2"])
    for one, other in ((found.A, exact.A), (found.B, exact.B)):
        assert np.allclose(one, other, rtol=0.0, atol=2e-5 * np.abs(other).max())  # of first order in eps
    assert np.allclose(found.C[:2], exact.C[:2], rtol=0.0, atol=1e-5)
    # the place of a pose is seen from the ground there, from the body here
    R = ld.pose(ARM, ARM.home, "link2")[:3, :3]
    assert np.allclose(found.C[5:8], R @ exact.C[5:8], rtol=0.0, atol=1e-5)


def test_springs_and_motors_on_cut_joints():
    """About a moving state, with a spring and an actuator at the loop's joint: f0, A and readings of forces."""
    b = ld.Builder.of(ARM)
    b.coordinate_force("bar", {"q1": 1.0}, stiffness=20.0, damping=1.0)
    b.actuator("second", "pin")
    robot = b.build()
    v, u, eps = ld.complete_velocity(robot, ARM.home, {"q1": 1.0, "q2": -0.5}), np.array([0.7]), 1e-6
    system = ld.to_control(robot, ARM.home, v, outputs=["acceleration:q2", "wrench:pin", "twist_rate:link2"])
    ss = ld.linearize(robot, ARM.home, v, u=u, outputs=["acceleration:q2", "wrench:pin", "twist_rate:link2"])
    assert np.allclose(system.dynamics(0.0, np.zeros(4), u), ss.f0, rtol=0.0, atol=1e-12)
    A = np.transpose([(system.dynamics(0.0, dx, u) - system.dynamics(0.0, -dx, u)) / (2.0 * eps)
                      for dx in eps * np.eye(4)])
    assert np.allclose(A, ss.A, rtol=0.0, atol=1e-7 * np.abs(ss.A).max())  # rounding over eps
    D = system.output(0.0, np.zeros(4), u + 1.0) - system.output(0.0, np.zeros(4), u)
    assert np.allclose(D, ss.D[:, 0], rtol=0.0, atol=1e-12 * max(1.0, np.abs(ss.D).max()))


def test_a_moving_ball_and_its_rates():
    """At any state, not at zero alone: along a motion of a floating body the rates are the slopes of its states."""
    b = ld.Builder("flier", gravity=(0.0, 0.0, 0.0))
    b.body("hull", 2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("base", "free", "ground", "hull")
    robot = b.build()
    system = ld.to_control(robot)
    u = np.array([0.1, -0.2, 0.05, 1.0, 0.0, -1.0])
    t = np.linspace(0.0, 1.0, 101)
    start = np.array([0.3, -0.2, 0.5, 0.0, 0.1, 0.0, 0.8, -0.6, 0.4, 0.2, 0.0, 0.1])
    response = control.input_output_response(system, t, np.outer(u, np.ones(101)), start,
                                             solve_ivp_kwargs={"rtol": 1e-9, "atol": 1e-11})
    tr = ld.simulate(robot, ld.integrate(robot, robot.home, start[:6]), start[6:], 1.0, dt=1e-3, u=u)
    end = ld.integrate(robot, robot.home, response.states[:6, -1])
    assert np.allclose(ld.difference(robot, end, tr.q[-1]), 0.0, rtol=0.0, atol=1e-8)
    assert np.allclose(response.states[6:, -1], tr.v[-1], rtol=0.0, atol=1e-8)


def test_responses_and_operating_points():
    system = ld.to_control(ARM, outputs=["q1", "q4"])
    t = np.linspace(0.0, 0.3, 31)
    u = HOLD[:, None] + 0.5 * np.array([[1.0], [0.0], [0.0], [-0.5]]) * np.sin(6.0 * t)
    response = control.input_output_response(system, t, u, np.zeros(4), solve_ivp_kwargs={"rtol": 1e-9, "atol": 1e-11})

    def interpolated(t_now, q, v):  # as python-control does
        return np.array([np.interp(t_now, t, row) for row in u])

    tr = ld.simulate(ARM, ARM.home, REST, 0.3, dt=1e-3, u=interpolated)
    assert np.allclose(response.outputs, tr.q[::10][:, [0, 3]].T, rtol=0.0, atol=1e-7)
    point = control.find_operating_point(system, np.full(4, 0.01), HOLD, y0=ARM.home[[0, 3]], iy=[0], iu=[1, 2, 3])
    x, forces = point.states, point.inputs
    q = ld.close(ARM, ARM.home, q1=ARM.home[0] + x[0], q2=ARM.home[1] + x[1])
    a = ld.forward_dynamics(ARM, q, REST, forces).a
    assert np.abs(x[2:]).max() < 1e-7 and np.abs(a).max() < 1e-5 * np.abs(HOLD).max()  # the root finder's tolerance


def test_a_loop_of_three_systems():
    """Mechanism, filter and regulator are joined by their signals; the loop has the eigenvalues of both."""
    regulator, observer = ld.lqr(ARM, ARM.home, 10.0, 0.1), ld.kalman(ARM, ARM.home, 1.0, 1e-4, SEEN)
    plant = ld.to_control(ARM, outputs=SEEN)
    loop = control.interconnect([plant, observer.to_control(absolute=True), regulator.to_control(absolute=True)],
                                inputs=None, outputs=["q1", "q4"], name="loop")
    found = control.linearize(loop, np.zeros(8), [], eps=1e-6).A
    expected = np.sort_complex(np.concatenate([regulator.eigenvalues, observer.eigenvalues]))
    assert np.allclose(np.sort_complex(np.linalg.eigvals(found)), expected, rtol=1e-3)  # differences
    t = np.linspace(0.0, 4.0, 81)
    start = np.concatenate([[0.05, 0.0, 0.0, 0.0], np.zeros(4)])
    response = control.input_output_response(loop, t, 0.0, start)
    assert np.linalg.norm(response.states[:4, -1]) < np.exp(4.0 * expected.real.max()) + 1e-3
    # deviations: the linear systems of the same names
    plant = ld.linearize(ARM, ARM.home, REST, u=HOLD, outputs=SEEN).to_control()
    linear = control.interconnect([plant, observer.to_control(), regulator.to_control()],
                                  inputs=["force_q1"], outputs=["q1"])
    assert np.allclose(np.sort_complex(np.linalg.eigvals(linear.A)), expected, rtol=1e-8)


def test_sampled_filters_and_regulators():
    h = 0.01
    regulator, observer = ld.dlqr(ARM, ARM.home, h, 10.0, 0.1), ld.dkalman(ARM, ARM.home, h, 1.0, 1e-4, SEEN)
    plain, absolute = observer.to_control(), observer.to_control(absolute=True)
    assert plain.dt == absolute.dt == regulator.to_control().dt == h
    rng = np.random.default_rng(0)
    x, y, u = 1e-3 * rng.normal(size=4), 1e-3 * rng.normal(size=2), rng.normal(size=4)
    observer.reset(x)
    observer.update(observer.y + y, observer.u + u)
    for system, given in ((plain, np.concatenate([y, u])),
                          (absolute, np.concatenate([observer.y + y, observer.u + u]))):
        assert np.allclose(system.output(0.0, x, given), observer.x, rtol=1e-9, atol=1e-15)
    ahead = [system.dynamics(0.0, x, given) for system, given in (
        (plain, np.concatenate([y, u])), (absolute, np.concatenate([observer.y + y, observer.u + u])))]
    observer.predict(observer.u + u)
    assert np.allclose(ahead, observer.x, rtol=1e-9, atol=1e-15)


# ---- python-control's controllers in `simulate`


def test_a_compensator_runs_as_the_filter_and_the_regulator_do():
    h = 0.01
    regulator, observer = ld.dlqr(ARM, ARM.home, h, 10.0, 0.1), ld.dkalman(ARM, ARM.home, h, 1.0, 1e-4, SEEN)
    A, B, C, K, L, M = observer.model.A, observer.model.B, observer.C, regulator.K, observer.L, observer.M
    after = np.eye(4) - M @ C
    compensator = control.ss(A - L @ C - B @ K @ after, -(L - B @ K @ M), -K @ after, K @ M, h)  # of y_0 - y
    start = ld.close(ARM, ARM.home, q1=ARM.home[0] + 0.05)
    feedback = ld.from_control(compensator, ARM, SEEN, reference=observer.y, u=HOLD)
    tr = ld.simulate(ARM, start, REST, 1.0, u=feedback.sampled)
    other = ld.simulate(ARM, start, REST, 1.0, u=ld.OutputFeedback(regulator, observer).sampled)
    assert np.allclose(tr.q, other.q, rtol=0.0, atol=1e-10)
    feedback.reset()
    assert np.array_equal(ld.simulate(ARM, start, REST, 1.0, u=feedback.sampled).q, tr.q)


def test_continuous_controllers():
    """A transfer function with a state, the same as a nonlinear system, and a difference equation by hand."""
    s, h = control.tf("s"), 2e-3
    lead = 50.0 * (1 + 0.3 * s) / (1 + 0.02 * s)
    space = control.ss(lead)
    nonlinear = control.nlsys(lambda t, x, e, params: space.A @ x + space.B @ e,
                              lambda t, x, e, params: space.C @ x + space.D @ e, inputs=1, outputs=1, states=1)
    goal = ARM.home[0] + 0.05

    def run(system, **options):
        feedback = ld.from_control(system, ARM, ["q1"], [goal], ["q1"], HOLD, h, **options)
        return ld.simulate(ARM, ARM.home, REST, 0.4, u=feedback.sampled)

    tr, by_steps = run(lead), run(nonlinear, steps=4)
    # Runge and Kutta's method with steps of a fortieth of the time constant
    assert np.allclose(tr.q, by_steps.q, rtol=0.0, atol=1e-9)
    a, x = np.exp(space.A[0, 0] * h), [0.0]

    def by_hand(t, q, v):
        e = goal - q[0]
        u = HOLD.copy()
        u[0] += space.C[0, 0] * x[0] + space.D[0, 0] * e
        x[0] = a * x[0] + (a - 1.0) / space.A[0, 0] * space.B[0, 0] * e
        return u

    other = ld.simulate(ARM, ARM.home, REST, 0.4, u=ld.Sampled(by_hand, h, initial=HOLD))
    assert np.allclose(tr.q, other.q, rtol=0.0, atol=1e-11)


def test_late_and_bounded_systems_feel_the_forces_that_act():
    """A controller that says back what accelerometer and bounds make of it: a = u / m with the u that arrived."""
    b = ld.Builder("mass", gravity=(0.0, 0.0, 0.0))
    b.body("mass", 2.0)
    b.joint("x", "prismatic", "ground", "mass")
    counter = control.nlsys(lambda t, x, e, params: x + 1.0, lambda t, x, e, params: x, inputs=1, outputs=1, states=1,
                            dt=0.02)
    feedback = ld.from_control(counter, b.build(), ["acceleration:x"], delay=0.03, upper=3.0)
    heard, original = [], counter.output
    counter.output = lambda t, x, e: (heard.append(2.0 * e[0]), original(t, x, e))[1]
    tr = ld.simulate(b.build(), [0.0], [0.0], 0.2, dt=0.01, u=feedback.sampled)
    # k is said at 0.02 k, arrives at 0.02 k + 0.03, and is heard from the next sample on
    assert np.allclose(heard, [0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3][:len(heard)], rtol=0.0, atol=1e-12)
    assert np.allclose(tr.tau[:, 0], np.minimum(np.repeat([0.0, 0.0, 1.0, 2.0, 3.0], [3, 2, 2, 2, 12]), 3.0))


def test_what_is_no_controller_is_said(monkeypatch):
    gain = control.ss([], [], [], [[1.0]])
    with pytest.raises(InputError, match="system: expected a StateSpace, TransferFunction or NonlinearIOSystem, got 3"):
        ld.from_control(3, ARM, ["q1"], period=0.01)
    with pytest.raises(InputError, match="the system has 1 inputs, which stand for q1, q4"):
        ld.from_control(gain, ARM, SEEN, period=0.01)
    with pytest.raises(InputError, match="the system has 1 outputs, which stand for q1, q2, q3, q4"):
        ld.from_control(gain, ARM, ["q1"], period=0.01)
    with pytest.raises(InputError, match="actuators: unknown or named twice: 'motor'"):
        ld.from_control(gain, ARM, ["q1"], actuators=["motor"], period=0.01)
    with pytest.raises(InputError, match="period: give the time between samples"):
        ld.from_control(gain, ARM, ["q1"], actuators=["q1"])
    with pytest.raises(InputError, match="period: the system samples every 0.1 s, got 0.01"):
        ld.from_control(control.ss([], [], [], [[1.0]], 0.1), ARM, ["q1"], actuators=["q1"], period=0.01)
    broken = control.nlsys(None, lambda t, x, e, params: e / {}["k"], inputs=1, outputs=1)
    with pytest.raises(InputError, match="from_control, the system fails with KeyError.* at t = 0"):
        ld.from_control(broken, ARM, ["q1"], actuators=["q1"], period=0.01)(0.0, ARM.home, REST)
    monkeypatch.setitem(sys.modules, "control", None)
    for call in (lambda: ld.to_control(ARM), lambda: ld.from_control(gain, ARM, ["q1"], period=0.01),
                 lambda: ld.lqr(ARM, ARM.home, 1.0, 1.0).to_control()):
        with pytest.raises(LiedynError, match="needs python-control: pip install 'liedyn.control.'"):
            call()
