"""Derivatives of runs across events: closed forms, and differences of runs."""
import numpy as np
import pytest
from closed_chains import difference

import liedyn as ld

G, ARM = 9.81, ld.load("five_bar")


def ball(**contact):
    """A point mass on a vertical guide above a floor."""
    b = ld.Builder("ball")
    b.body("ball", mass=2.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=True, **contact)
    return b.build()


def test_bouncing_ball():
    """z(t) = e v (t - t1) - g (t - t1)^2 / 2 with v = sqrt(2 g h), t1 = sqrt(2 h / g)."""
    e, h, t = 0.7, 1.0, 0.6
    run = ld.differentiate_run(ball(restitution=e), [h], [0.0], t, parameters=["gravity"])
    t1, v = np.sqrt(2 * h / G), np.sqrt(2 * G * h)
    moved = run.forward(q0=[1.0])
    dt1, dv = t1 / (2 * h), v / (2 * h)
    assert moved.q[-1, 0] == pytest.approx(e * dv * (t - t1) - e * v * dt1 + G * (t - t1) * dt1, rel=1e-10)
    assert moved.t[np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]] == pytest.approx(dt1, rel=1e-10)
    by_g = run.forward(parameters=[1.0])
    dt1, dv = -t1 / (2 * G), v / (2 * G)
    wanted = e * dv * (t - t1) - e * v * dt1 + G * (t - t1) * dt1 - 0.5 * (t - t1) ** 2
    assert by_g.q[-1, 0] == pytest.approx(wanted, rel=1e-10)
    gradient = run.adjoint(q=[1.0])
    assert gradient.q0[0] == pytest.approx(moved.q[-1, 0], rel=1e-12)
    assert gradient.parameters[0] == pytest.approx(wanted, rel=1e-10)


def test_time_of_an_event():
    run = ld.differentiate_run(ball(), [1.0], [0.0], 0.6)
    of_time = np.zeros(len(run.trajectory))
    of_time[np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]] = 1.0
    assert run.adjoint(t=of_time).q0[0] == pytest.approx(np.sqrt(2 / G) / 2, rel=1e-10)
    assert abs(run.forward(q0=[1.0]).q[-1, 0]) < 1e-12  # it rests


def opening(level):
    """The loop opens where q2 passes this angle."""
    return ld.Event("passed", lambda t, q, v: q[1] - level, off="pin",
                    derivative=lambda t, q, v: (0.0, np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4)))


@pytest.mark.parametrize("dt", [1e-3, 7e-3])
def test_loop_that_opens(dt):
    tau, along = np.array([3.0, 1.0, 0.0, 0.0]), np.array([1.0, -0.5, 0.3, 0.0])
    half = ld.simulate(ARM, ARM.home, np.zeros(4), 0.2, tau=tau).q[-1, 1]
    given = dict(dt=dt, events=opening(half))
    run = ld.differentiate_run(ARM, ARM.home, np.zeros(4), 0.4, tau=tau, **given, parameters=["mass:link2"])
    assert [each.name for each in run.trajectory.events] == ["passed"]
    moved = run.forward(inputs=along)
    wanted = difference(
        lambda e: ld.simulate(ARM, ARM.home, np.zeros(4), 0.4, tau=tau + e * along, **given).q[-1], 1e-3)
    # events are located to 1e-12 s, which differences over 1e-3 enlarge
    np.testing.assert_allclose(moved.q[-1], wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    assert run.adjoint(q=weights).inputs @ along == pytest.approx(weights @ moved.q[-1], rel=1e-12)

    def heavier(e):
        b = ld.Builder.of(ARM)
        b.change("body", "link2", mass=3.0 + e)
        return ld.simulate(b.build(), ARM.home, np.zeros(4), 0.4, tau=tau, **given).q[-1]

    wanted = difference(heavier, 1e-2)
    np.testing.assert_allclose(run.forward(parameters=[1.0]).q[-1], wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_loop_that_closes():
    """A double pendulum whose elbow is caught: an impact with an equation, which keeps the elbow as it was."""
    b = ld.Builder("caught", gravity=(0.0, -G, 0.0))
    for name in ("upper", "lower"):
        b.body(name, mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.2, 0.3))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 0, 1))
    b.joint("elbow", "revolute", "upper", "lower", placement=ld.placement(xyz=(1.0, 0.0, 0.0)), axis=(0, 0, 1))
    b.constraint("lock", "coupling", coefficients={"elbow": 1.0}, offset=0.0)
    robot = b.build().switched({"lock": False})
    catch = ld.Event("catch", lambda t, q, v: q[1], direction=1, on="lock",
                     derivative=lambda t, q, v: (0.0, np.array([0.0, 1.0]), np.zeros(2)))
    q, along = np.array([0.1, -0.4]), np.array([0.7, -0.3])
    given = dict(tau=[0.0, 1.5], dt=4e-3, events=catch)
    run = ld.differentiate_run(robot, q, [0.0, 0.0], 1.0, **given)
    assert [each.name for each in run.trajectory.events] == ["catch"]
    assert np.abs(run.trajectory.events[0].v_after - run.trajectory.events[0].v_before).max() > 0.1
    found = run.forward(q0=along)
    wanted = difference(lambda e: np.r_[(tr := ld.simulate(robot, q + e * along, [0.0, 0.0], 1.0, **given)).q[-1],
                                         tr.v[-1]], 1e-2)
    np.testing.assert_allclose(np.r_[found.q[-1], found.v[-1]], wanted, rtol=0, atol=2e-9 * np.abs(wanted).max())


def test_contact_that_lets_go():
    """A mass that is pulled from its floor by a growing force: released where the force is its weight."""
    robot, steps = ball(), 200
    pull = np.linspace(0.0, 60.0, steps)[:, None]
    run = ld.differentiate_run(robot, [0.0], [0.0], 0.4, tau=pull, dt=2e-3)
    assert [each.name for each in run.trajectory.events] == ["release floor"]
    wanted = difference(lambda e: ld.simulate(robot, [0.0], [0.0], 0.4, tau=pull * (1 + e), dt=2e-3).q[-1], 1e-4)
    # inputs are held: the force jumps over the weight at the beginning of a step, whose time does not vary
    np.testing.assert_allclose(run.forward(inputs=pull).q[-1], wanted, rtol=0, atol=1e-9 * abs(wanted[0]))


def test_jump_on_a_spring():
    """The upper of two masses stretches the spring between them until the lower one leaves its floor."""
    b = ld.Builder("hopper")
    b.body("foot", mass=1.0)
    b.body("head", mass=2.0)
    b.joint("low", "prismatic", "ground", "foot")
    b.joint("leg", "prismatic", "foot", "head", stiffness=400.0, rest=0.5, damping=0.5)
    b.constraint("floor", "on_plane", "ground", "foot", unilateral=True)
    robot = b.build()
    run = ld.differentiate_run(robot, [0.0, 0.2], [0.0, 0.0], 0.25, dt=2e-3, parameters=["mass:head", "stiffness:leg"])
    assert [each.name for each in run.trajectory.events] == ["release floor"]

    def last(e):
        tr = ld.simulate(robot, [0.0, 0.2 + e], [0.0, 0.0], 0.25, dt=2e-3)
        return np.r_[tr.q[-1], tr.v[-1], tr.events[0].t]

    moved = run.forward(q0=[0.0, 1.0])
    row = np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]
    found = np.r_[moved.q[-1], moved.v[-1], moved.t[row]]
    wanted = difference(last, 1e-3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())

    def changed(e, k):
        other = ld.Builder.of(robot)
        if k:
            other.change("joint", "leg", stiffness=400.0 + e)
        else:
            other.change("body", "head", mass=2.0 + e)
        return ld.simulate(other.build(), [0.0, 0.2], [0.0, 0.0], 0.25, dt=2e-3).q[-1]

    for k, h in ((0, 1e-3), (1, 1e-1)):
        found, wanted = run.forward(parameters=np.eye(2)[k]).q[-1], difference(lambda e, k=k: changed(e, k), h)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_action():
    """A ball that falls is kicked upward, by a share of its speed and with time, and shifted; in closed form."""
    b = ld.Builder("ball")
    b.body("ball", mass=2.0)
    b.joint("z", "prismatic", "ground", "ball")
    robot, share, grown, moved = b.build(), 0.6, 1.5, 0.8
    event = ld.Event("kick", lambda t, q, v: q[0] - 0.4, direction=-1, derivative=lambda t, q, v: (0.0, [1.0], [0.0]),
                     action=lambda t, q, v: (moved * q + 0.1 * v, -share * v + grown * t),
                     action_derivative=lambda t, q, v: ([0.0, grown], [[moved], [0.0]], [[0.1], [-share]]))

    def end(z, w, g=9.81, T=0.5):
        t = (w + np.sqrt(w * w + 2.0 * g * (z - 0.4))) / g
        v = w - g * t
        q, u = moved * 0.4 + 0.1 * v, -share * v + grown * t
        return np.array([q + u * (T - t) - 0.5 * g * (T - t) ** 2, u - g * (T - t), t])

    run = ld.differentiate_run(robot, [1.0], [0.2], 0.5, events=event, parameters=["gravity"])
    row = np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]
    np.testing.assert_allclose([run.trajectory.q[-1, 0], run.trajectory.v[-1, 0], run.trajectory.t[row]],
                               end(1.0, 0.2), rtol=0, atol=1e-11)
    for varied, f in ((dict(q0=[1.0]), lambda e: end(1.0 + e, 0.2)), (dict(v0=[1.0]), lambda e: end(1.0, 0.2 + e)),
                      (dict(parameters=[1.0]), lambda e: end(1.0, 0.2, 9.81 + e))):
        found = run.forward(**varied)
        np.testing.assert_allclose([found.q[-1, 0], found.v[-1, 0], found.t[row]], difference(f, 1e-3), rtol=0,
                                   atol=1e-10)
    gradient = run.adjoint(q=[1.0])
    assert gradient.q0[0] == pytest.approx(run.forward(q0=[1.0]).q[-1, 0], rel=1e-12)
    assert gradient.parameters[0] == pytest.approx(run.forward(parameters=[1.0]).q[-1, 0], rel=1e-12)


def test_action_that_opens_a_loop_is_refused():
    event = ld.Event("push", lambda t, q, v: t - 0.05, derivative=lambda t, q, v: (1.0, np.zeros(4), np.zeros(4)),
                     action=lambda t, q, v: (q + [1e-7, 0.0, 0.0, 0.0], v),
                     action_derivative=lambda t, q, v: (np.zeros(8), np.eye(8)[:, :4], np.eye(8)[:, 4:]))
    with pytest.raises(ld.SimulationError, match="action of event 'push' opens constraints"):
        ld.differentiate_run(ARM, ARM.home, np.zeros(4), 0.1, events=event)


def test_refused():
    with pytest.raises(ld.InputError, match="event 'late' has no derivative"):
        ld.differentiate_run(ARM, ARM.home, np.zeros(4), 0.1,
                             events=ld.Event("late", lambda t, q, v: t - 0.05, off="pin"))
    with pytest.raises(ld.InputError, match="event 'kick' has no action_derivative"):
        ld.differentiate_run(ARM, ARM.home, np.zeros(4), 0.1, events=ld.Event(
            "kick", lambda t, q, v: t - 0.05, action=lambda t, q, v: (q, v), derivative=lambda t, q, v: (1.0, q, v)))
    with pytest.raises(ld.InputError, match="derivative of event 'late' must return"):
        ld.differentiate_run(ARM, ARM.home, np.zeros(4), 0.1, events=ld.Event(
            "late", lambda t, q, v: t - 0.05, off="pin", derivative=lambda t, q, v: 1.0))
