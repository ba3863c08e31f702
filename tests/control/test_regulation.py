"""Regulators: the Riccati equations they solve, the motions they stabilise, their exact derivatives."""
import numpy as np
import pytest
from scipy.linalg import solve_continuous_are, solve_discrete_are

import liedyn as ld
from liedyn.machine.errors import ClosureError, InputError

LOADER = ld.load("loader")
WEIGHTS = {"boom": 100.0, "bucket": 100.0, "velocity:boom": 1.0, "velocity:bucket": 1.0}
REST = np.zeros(LOADER.nv)


def ball_on_motors():
    """A body on a ball joint with a motor for each of its axes, gravity above and below its centre."""
    b = ld.Builder("top")
    b.body("top", 2.0, (0.0, 0.0, 0.3), (0.05, 0.06, 0.02))
    b.joint("ball", "spherical", "ground", "top")
    return b.build()


def test_a_loader_is_held_and_comes_back():
    regulator = ld.lqr(LOADER, LOADER.home, WEIGHTS, 1e-9)
    ss = ld.linearize(LOADER, LOADER.home, REST, u=regulator.u)
    P = solve_continuous_are(ss.A, ss.B, np.diag(list(WEIGHTS.values())), 1e-9 * np.eye(2))
    assert np.allclose(regulator.K, 1e9 * ss.B.T @ P, rtol=1e-9) and np.allclose(regulator.P, P, rtol=1e-9)
    assert np.array_equal(regulator(0.0, LOADER.home, REST), regulator.u)
    start = ld.close(LOADER, LOADER.home, boom=LOADER.home[LOADER.coordinate_index("boom")] + 0.05)
    tr = ld.simulate(LOADER, start, REST, 4.0, dt=2e-3, u=regulator)
    # the slowest mode decays by exp(4 Re s)
    left = np.linalg.norm(regulator.deviation(tr.q[-1], tr.v[-1]))
    assert left < 2.0 * np.exp(4.0 * regulator.eigenvalues.real.max()) + 1e-9
    # the closed loop of the machine itself is that of the model
    closed = ld.linearize(LOADER, LOADER.home, REST, u=regulator.feedback)
    assert np.allclose(closed.eigenvalues(), regulator.eigenvalues, rtol=1e-7)


def test_the_cost_to_go_is_what_a_run_costs():
    """x^T P x for a small deviation, against the integral along the nonlinear motion."""
    arm = ld.load("five_bar")
    regulator = ld.lqr(arm, arm.home, 10.0, 0.5)
    scale = 1e-4
    q = ld.close(arm, arm.home, q1=arm.home[0] + scale)
    tr = ld.simulate(arm, q, np.zeros(4), 20.0, dt=2e-3, u=regulator)
    x = np.array([regulator.deviation(*each) for each in zip(tr.q, tr.v)])
    du = -x @ regulator.K.T
    rate = 10.0 * (x * x).sum(axis=1) + 0.5 * (du * du).sum(axis=1)
    found = np.trapezoid(rate, tr.t)
    assert found == pytest.approx(x[0] @ regulator.P @ x[0], rel=1e-3)  # of third order in the deviation


@pytest.mark.parametrize("make, choice", [
    (lambda: LOADER, None), (lambda: LOADER, "tangent"), (ball_on_motors, None),
    (lambda: ld.load("five_bar"), ("pin", "q1")),
])
def test_derivatives(make, choice):
    """Exact, on quaternions and on coordinates of cut joints too."""
    robot = make()
    rng = np.random.default_rng(1)
    regulator = ld.lqr(robot, robot.home, 1.0, 1e-3, independent=choice)
    q = ld.integrate(robot, robot.home, 0.3 * rng.normal(size=robot.nv))
    if robot.loop_names:
        q = ld.close(robot, q)
    N = np.linalg.svd(ld.constraint_jacobian(robot, q))[2][ld.forward_dynamics(
        robot, q, np.zeros(robot.nv), np.zeros(robot.nv)).rank:].T
    v = N @ rng.normal(size=N.shape[1])
    by_q, by_v = regulator.derivative(0.0, q, v)
    check = ld.check_feedback(robot, regulator.feedback, q, v)
    if choice == ("pin", "q1"):  # what is read at a cut is read on closed loops: only along these are rates slopes
        eps = 1e-5
        for e in N.T:
            there = [ld.close(robot, ld.integrate(robot, q, s * eps * e)) for s in (1.0, -1.0)]
            slope = np.subtract(*(regulator(0.0, each, v) for each in there)) / (2.0 * eps)
            assert np.allclose(by_q @ e, slope, rtol=0.0, atol=1e-6 * np.abs(by_q).max())  # of second order in eps
    else:
        assert check.ok, check


def test_discrete_regulators():
    arm = ld.load("five_bar")
    regulator = ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1, N=0.01 * np.eye(4))
    A, B, N = regulator.model.A, regulator.model.B, 0.01 * np.eye(4)
    P = solve_discrete_are(A, B, np.eye(4), 0.1 * np.eye(4), s=N)
    assert np.allclose(regulator.K, np.linalg.solve(0.1 * np.eye(4) + B.T @ P @ B, B.T @ P @ A + N.T), rtol=1e-9)
    assert (np.abs(regulator.eigenvalues) < 1.0).all()
    # held over each step on the nonlinear robot
    q, v = ld.close(arm, arm.home, q1=arm.home[0] + 0.05), np.zeros(4)
    for _ in range(400):
        tr = ld.simulate(arm, q, v, 0.01, dt=1e-3, u=regulator(0.0, q, v))
        q, v = tr.q[-1], tr.v[-1]
    assert np.linalg.norm(regulator.deviation(q, v)) < 1e-2 * 0.05


def test_a_ball_is_turned_back():
    top = ball_on_motors()
    regulator = ld.lqr(top, top.home, 10.0, 0.1)
    q = ld.integrate(top, top.home, [1.2, -0.8, 2.0])
    tr = ld.simulate(top, q, np.zeros(3), 8.0, dt=5e-3, u=regulator)
    assert np.linalg.norm(regulator.deviation(tr.q[-1], tr.v[-1])) < 1e-2
    minus = ld.simulate(top, -q, np.zeros(3), 0.5, dt=5e-3, u=regulator)  # the other quaternion of the same place
    assert np.allclose(minus.v[-1], tr.v[100], rtol=0.0, atol=1e-12)


def test_along_a_motion():
    """A disturbed robot comes back to the motion; where the motion stands still, to the regulator of lqr."""
    arm = ld.load("five_bar")
    hold = ld.inverse_dynamics(arm, arm.home, np.zeros(4), [0.0, 0.0]).tau

    def tau(t, q, v):
        return hold + 0.05 * np.array([np.sin(3.0 * t), 0.0, np.cos(2.0 * t), 0.0])

    plan = ld.simulate(arm, arm.home, np.zeros(4), 1.5, dt=5e-3, tau=tau)
    # positions weigh a hundred times what velocities do: poles near -10
    regulator = ld.tvlqr(arm, plan.t, plan.q, plan.v, Q=[100.0, 100.0, 1.0, 1.0], R=0.01, a=plan.a)
    q, v, u = regulator.reference(plan.t[17])
    assert np.allclose(q, plan.q[17], rtol=0.0, atol=1e-14) and np.allclose(v, plan.v[17], rtol=0.0, atol=1e-12)
    between = 0.5 * (plan.t[17] + plan.t[18])
    fine = ld.simulate(arm, plan.q[17], plan.v[17], between - plan.t[17], dt=(between - plan.t[17]) / 4,
                       tau=lambda t, q, v: tau(t + plan.t[17], q, v))
    assert np.allclose(regulator.reference(between)[0], fine.q[-1], rtol=0.0, atol=1e-8)  # cubics, 5 ms apart
    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.05)
    tr = ld.simulate(arm, start, np.zeros(4), 1.5, dt=2.5e-3, u=regulator)
    free = ld.simulate(arm, start, np.zeros(4), 1.5, dt=2.5e-3, tau=tau)
    off = [np.linalg.norm(ld.difference(arm, plan.q[-1], run.q[-1])) for run in (tr, free)]
    assert off[0] < 1e-3 < 0.05 < off[1]
    assert ld.check_feedback(arm, regulator.feedback, start, np.ones(4), t=0.4013).ok
    still = ld.lqr(arm, arm.home, 10.0, 1.0)
    t = np.linspace(0.0, 10.0, 400)
    waiting = ld.tvlqr(arm, t, np.tile(arm.home, (400, 1)), np.zeros((400, 4)), 10.0, 1.0, a=np.zeros((400, 4)))
    assert np.allclose(waiting.K[0], still.K, rtol=1e-9, atol=1e-9 * np.abs(still.K).max())


def test_over_a_grid():
    grid = {"boom": [-0.1, 0.05, 0.2], "bucket": [-0.2, 0.1]}
    schedule = ld.gain_schedule(LOADER, grid, WEIGHTS, 1e-9)
    assert schedule.K.shape == (3, 2, 2, 4) and (schedule.eigenvalues.real < 0.0).all()
    for boom, bucket in ((0.05, 0.1), (0.2, -0.2), (-0.1, -0.2)):
        node, alone = schedule.at(boom=boom, bucket=bucket), ld.lqr(
            LOADER, ld.close(LOADER, LOADER.home, boom=boom, bucket=bucket), WEIGHTS, 1e-9)
        assert np.allclose(node.K, alone.K, rtol=1e-8) and np.allclose(node.u, alone.u, rtol=1e-9)
    halfway = schedule.at(boom=0.125, bucket=0.1)
    assert np.allclose(halfway.K, 0.5 * (schedule.K[1, 1] + schedule.K[2, 1]), rtol=1e-12)
    assert halfway.q[LOADER.coordinate_index("boom")] == pytest.approx(0.125, abs=1e-12)
    with pytest.raises(InputError, match="boom = 0.3 is outside the grid, -0.1 to 0.2"):
        schedule.at(boom=0.3, bucket=0.0)
    with pytest.raises(InputError, match="over boom, bucket"):
        schedule.at(boom=0.3)
    with pytest.raises(ClosureError, match=r"\(at q1 = 2, q2 = 0\)"):
        ld.gain_schedule(ld.load("five_bar"), {"q1": [0.5, 2.0], "q2": [0.0, 1.0]}, 1.0, 1.0)


def test_what_cannot_be_regulated_is_said():
    cart = ld.Builder("cart", gravity=(0.0, 0.0, 0.0))
    for name in ("left", "right"):
        cart.body(name, 1.0)
        cart.joint(name, "prismatic", "ground", name)
    cart.actuator("push", "left")
    robot = cart.build()
    with pytest.raises(InputError, match="no regulator: the motion of right with the eigenvalue .* no actuator drives"):
        ld.lqr(robot, [0.0, 0.0], 1.0, 1.0)
    both = ld.Builder.of(robot)
    both.actuator("pull", "right")
    with pytest.raises(InputError, match="the motion of right .* Q gives it no weight"):
        ld.lqr(both.build(), [0.0, 0.0], {"left": 1.0}, 1.0)
    with pytest.raises(InputError, match="unknown 'front', .*'left'"):
        ld.lqr(robot, [0.0, 0.0], {"front": 1.0}, 1.0)
    with pytest.raises(InputError, match="R must be positive definite, its smallest eigenvalue is -1"):
        ld.lqr(robot, [0.0, 0.0], 1.0, -1.0)
    with pytest.raises(InputError, match="no equilibrium under u: velocity:boom"):
        ld.lqr(LOADER, LOADER.home, 1.0, 1e-9, u=[0.0, 0.0])


# ---- controllers that sample


def test_a_sampled_controller_holds_what_it_says():
    """The same as one run after the other with constant inputs; each sample asked once, at its instant."""
    arm, asked = ld.load("five_bar"), []
    regulator = ld.dlqr(arm, arm.home, 0.01, Q=1.0, R=0.1)

    def controller(t, q, v):
        asked.append(t)
        return regulator(t, q, v)

    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.05)
    tr = ld.simulate(arm, start, np.zeros(4), 0.1, dt=1e-3, u=ld.Sampled(controller, 0.01))
    assert np.allclose(asked, 0.01 * np.arange(11), rtol=0.0, atol=1e-12)
    q, v = start, np.zeros(4)
    for k in range(10):
        assert np.allclose(tr.tau[10 * k:10 * k + 10], regulator(0.0, q, v), rtol=0.0, atol=1e-12)
        part = ld.simulate(arm, q, v, 0.01, dt=1e-3, u=regulator(0.0, q, v))
        q, v = part.q[-1], part.v[-1]
    assert np.allclose(tr.q[-1], q, rtol=0.0, atol=1e-12) and np.allclose(tr.v[-1], v, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["rk4", "rkmk", "implicit", "generalized_alpha"])
def test_late_and_bounded(method):
    """A mass that a counter pushes: what is pushed when is known."""
    b = ld.Builder("mass", gravity=(0.0, 0.0, 0.0))
    b.body("mass", 1.0)
    b.joint("x", "prismatic", "ground", "mass")
    said = iter(range(1, 100))
    controller = ld.Sampled(lambda t, q, v: [float(next(said))], 0.02, delay=0.03, lower=-1.0, upper=3.0, initial=-0.5)
    tr = ld.simulate(b.build(), [0.0], [0.0], 0.2, dt=0.01, method=method, u=controller)
    # 1 is said at 0, arrives at 0.03; the next ones 0.02 s later each; bounded at 3
    expected = np.repeat([-0.5, 1.0, 2.0, 3.0], [3, 2, 2, 14])
    assert np.allclose(tr.tau[:, 0], expected, rtol=0.0, atol=1e-12)
    if method == "rk4":
        assert np.allclose(tr.v[1:, 0], 0.01 * np.cumsum(expected[:-1]), rtol=0.0, atol=1e-12)


def test_samples_between_events_and_contacts():
    b = ld.Builder("ball")
    b.body("ball", 1.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "coupling", coefficients={"z": 1.0}, unilateral=True, restitution=0.5)
    asked = []

    def controller(t, q, v):
        asked.append(t)
        return [2.0 if v[0] < 0.0 else 0.0]

    tr = ld.simulate(b.build(), [1.0], [0.0], 1.0, dt=1e-3, u=ld.Sampled(controller, 0.005))
    assert np.allclose(asked, 0.005 * np.arange(201), rtol=0.0, atol=1e-12)
    # the push begins with the second sample
    assert tr.events[0].t == pytest.approx(np.sqrt(2.0 / (9.81 - 2.0)), abs=5e-3)


def test_sampled_inputs_do_work(recwarn):
    """The energy of a run with a controller changes: that is no wrong step."""
    arm = ld.load("five_bar")
    ld.simulate(arm, arm.home, np.zeros(4), 0.1, tau=ld.Sampled(lambda t, q, v: 5.0 * np.ones(4) * (t > 0.05), 0.01))
    assert not [each for each in recwarn if issubclass(each.category, ld.ConditionWarning)]


def test_what_a_sampled_controller_cannot_be():
    arm = ld.load("five_bar")
    with pytest.raises(InputError, match="period: must be a multiple of dt = 0.001 s, got 0.0015"):
        ld.simulate(arm, arm.home, np.zeros(4), 0.1, u=ld.Sampled(lambda t, q, v: np.zeros(4), 0.0015))
    with pytest.raises(InputError, match="need fixed steps"):
        ld.simulate(arm, arm.home, np.zeros(4), 0.1, method="DOP853", u=ld.Sampled(lambda t, q, v: np.zeros(4), 0.01))
    with pytest.raises(ld.SimulationError, match="controller, fails with KeyError.* at t = 0.05") as info:
        ld.simulate(arm, arm.home, np.zeros(4), 0.1, u=ld.Sampled(lambda t, q, v: {t < 0.045: q}[True], 0.01))
    assert info.value.trajectory.t[-1] == pytest.approx(0.05)
    with pytest.raises(InputError, match="lower: must not exceed upper"):
        ld.Sampled(lambda t, q, v: q, 0.01, lower=1.0, upper=0.0)
