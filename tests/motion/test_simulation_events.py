"""Events against motions known in closed form: landing, bouncing, lifting off, slackening, latching."""
import numpy as np
import pytest
from tolerances import tight

import liedyn as ld

G = 9.81


def ball(mass=2.0):
    """A point mass on a vertical guide above a floor that is switched off."""
    builder = ld.Builder("ball")
    builder.body("ball", mass)
    builder.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    builder.constraint("floor", "on_plane", "ground", "ball", active=False)
    return builder.build()


def height(t, q, v):
    return q[0]


LAND = ld.Event("land", height, direction=-1, on="floor")


@pytest.mark.parametrize("method", ["rk4", "rkmk", "RK45", "LSODA"])
def test_landing(method):
    m, h = 2.0, 1.3
    tr = ld.simulate(ball(m), [h], [0.0], 1.0, method=tight(method, 1e-11), events=LAND, dt=1e-2)
    landed, speed = np.sqrt(2 * h / G), np.sqrt(2 * G * h)
    event, = tr.events
    assert event.name == "land" and event.on == ("floor",)
    assert event.t == pytest.approx(landed, abs=1e-9)
    assert event.v_before == pytest.approx(-speed, abs=1e-8) and event.v_after == pytest.approx(0.0, abs=1e-12)
    # the floor pushes upward: M dv = -G^T impulse with G = 1
    assert event.impulse == pytest.approx(-m * speed, abs=1e-7)
    assert event.energy_loss == pytest.approx(m * G * h, abs=1e-7)
    k = np.flatnonzero(tr.t == event.t)
    assert len(k) == 2 and (tr.q[k[0]] == event.q_before).all() and (tr.v[k[1]] == event.v_after).all()
    assert not tr.active[k[0], 0] and tr.active[k[1]:, 0].all()
    assert np.abs(tr.q[k[1]:]).max() < 1e-11 and tr["floor.gap"][-1] == pytest.approx(-m * G, rel=1e-12)
    assert np.abs(tr.energy_drift).max() < 1e-7 and tr.t[-1] == 1.0


def test_two_land_at_once():
    """One platform, held by two feet: both events happen, and the second impulse finds nothing left to stop."""
    builder = ld.Builder("platform")
    for foot in ("left", "right"):
        builder.body(foot, 1.0)
        builder.joint(f"z_{foot}", "prismatic", "ground", foot, axis=(0, 0, 1))
        builder.constraint(foot, "on_plane", "ground", foot, active=False)
    events = [ld.Event("left", lambda t, q, v: q[0], direction=-1, on="left"),
              ld.Event("right", lambda t, q, v: q[1], direction=-1, on="right")]
    tr = ld.simulate(builder.build(), [0.7, 0.7], [0.0, 0.0], 0.6, events=events)
    assert [event.name for event in tr.events] == ["left", "right"] and tr.events[0].t == tr.events[1].t
    assert np.abs(tr.q[-1]).max() < 1e-11 and tr.active[-1].all()


def test_bouncing_comes_to_rest():
    h, e = 1.0, 0.5
    event = ld.Event("bounce", height, direction=-1, on="floor", restitution=e, resting=0.05)
    tr = ld.simulate(ball(), [h], [0.0], 2.0, events=event, dt=1e-2)
    times, speed = [np.sqrt(2 * h / G)], np.sqrt(2 * G * h)
    while speed > 0.05:
        speed *= e
        times.append(times[-1] + 2 * speed / G)
    found = [each.t for each in tr.events]
    assert len(found) == len(times) > 5
    np.testing.assert_allclose(found, times, atol=1e-9)
    assert all(each.on == () for each in tr.events[:-1]) and tr.events[-1].on == ("floor",)
    losses = np.array([each.energy_loss for each in tr.events[:-1]])
    np.testing.assert_allclose(losses[1:] / losses[:-1], e ** 2, rtol=1e-6)
    assert np.abs(tr.energy_drift).max() < 1e-8 and tr.q[-1, 0] == pytest.approx(0.0, abs=1e-11)


def test_lifting_off():
    """A floor that only pushes lets go when the lift has grown to the weight."""
    m, rate = 2.0, 40.0
    robot = ball(m).switched(floor=True)
    tr = ld.simulate(robot, [0.0], [0.0], 1.0, tau=lambda t, q, v: [rate * t], unilateral="floor", dt=1e-2)
    off = m * G / rate
    event, = tr.events
    assert event.name == "release floor" and event.off == ("floor",) and event.t == pytest.approx(off, abs=1e-9)
    assert not event.impulse.any() and event.energy_loss == 0.0
    assert tr.q[-1, 0] == pytest.approx(rate * (1.0 - off) ** 3 / 6 / m, rel=1e-8)


def test_a_floor_that_pulls_lets_go_at_once():
    robot = ball().switched(floor=True)
    tr = ld.simulate(robot, [0.0], [0.0], 0.1, tau=[50.0], unilateral="floor")
    assert [event.t for event in tr.events] == [0.0] and not tr.active[-1, 0]


def thrown():
    """A point mass in a vertical plane on a rope of length 1 about the origin."""
    builder = ld.Builder("rope")
    builder.body("mass", 1.0)
    builder.joint("p", "translational", "ground", "mass")
    builder.constraint("rope", "distance", "ground", "mass", length=1.0)
    return builder.build()


@pytest.mark.parametrize("formulation", ["nullspace", "svd", "multiplier"])
def test_rope_goes_slack(formulation):
    """v^2 = v0^2 - 2 g l (1 - cos a) and tension m (v^2/l + g cos a) = 0 at the slack angle."""
    robot, v0 = thrown(), np.sqrt(3.5 * G)
    tr = ld.simulate(robot, [0, 0, -1.0], [v0, 0, 0], 0.7, unilateral={"rope": -1}, formulation=formulation)
    event, = tr.events
    assert event.name == "release rope"
    assert -event.q_before[2] == pytest.approx((2 * G - v0 ** 2) / (3 * G), abs=1e-9)
    assert np.abs(tr.energy_drift).max() < 1e-8
    k = np.flatnonzero(tr.t == event.t)[1]
    flown = tr.t[-1] - event.t
    np.testing.assert_allclose(tr.q[-1], tr.q[k] + tr.v[k] * flown + [0, 0, -G / 2 * flown ** 2], atol=1e-9)


def discs(**options):
    """Two discs on one axle, and a latch that couples them."""
    builder = ld.Builder("discs", gravity=(0, 0, 0), **options)
    for name, inertia in (("a", 2.0), ("b", 3.0)):
        builder.body(name, 1.0, inertia=(inertia, inertia, inertia))
        builder.joint(name, "revolute", "ground", name)
    builder.constraint("latch", "coupling", coefficients={"a": 1.0, "b": -1.0}, active=False)
    return builder.build()


def test_latch():
    robot = discs()
    catch = ld.Event("catch", lambda t, q, v: q[0] - q[1], direction=1, on="latch")
    opens = ld.Event("open", lambda t, q, v: t - 1.5, off="latch")
    tr = ld.simulate(robot, [-1.0, 0.0], [2.0, 1.0], 2.0, events=[catch, opens], dt=1e-2)
    first, second = tr.events
    assert first.t == pytest.approx(1.0, abs=1e-10) and second.t == pytest.approx(1.5, abs=1e-11)
    together = (2 * 2.0 + 3 * 1.0) / 5
    np.testing.assert_allclose(first.v_after, [together, together], rtol=1e-12)
    dv = first.v_after - first.v_before
    assert first.energy_loss == pytest.approx(0.5 * dv @ np.diag([2.0, 3.0]) @ dv, rel=1e-12)
    np.testing.assert_allclose(np.diag([2.0, 3.0]) @ dv, -first.impulse[0] * np.array([1.0, -1.0]), rtol=1e-12)
    assert second.off == ("latch",) and tr.velocity_residual.max() < 1e-12 and tr.position_residual.max() < 1e-9


def test_action_and_terminal():
    def kick(t, q, v):
        return q, v + [1.0, 0.0]

    events = [ld.Event("kick", lambda t, q, v: q[1] - 0.5, action=kick),
              ld.Event("stop", lambda t, q, v: q[0] - 2.0, direction=1, terminal=True)]
    tr = ld.simulate(discs(), [0.0, 0.0], [1.0, 1.0], 5.0, events=events)
    assert [event.name for event in tr.events] == ["kick", "stop"]
    assert tr.events[0].t == pytest.approx(0.5, abs=1e-11)
    assert tr.t[-1] == pytest.approx(0.5 + 1.5 / 2, abs=1e-11) and tr.q[-1, 0] == pytest.approx(2.0, abs=1e-10)


def test_chattering():
    """Bouncing without end in finite time: stopped, with what there is."""
    event = ld.Event("bounce", height, direction=-1, on="floor", restitution=0.5, resting=0.0)
    with pytest.raises(ld.SimulationError, match="chattering.*bounce") as caught:
        ld.simulate(ball(), [1.0], [0.0], 2.0, events=event)
    end = np.sqrt(2 / G) * 3  # the bounces accumulate: t (1 + e) / (1 - e)
    assert caught.value.trajectory.t[-1] == pytest.approx(end, abs=1e-3)
    assert caught.value.state[0] == caught.value.trajectory.t[-1]


def test_a_constraint_that_is_far_open_cannot_be_switched_on():
    event = ld.Event("grab", lambda t, q, v: t - 0.1, on="floor")
    with pytest.raises(ld.SimulationError, match="'grab' cannot close.*floor") as caught:
        ld.simulate(ball(), [1.0], [0.0], 1.0, events=event)
    assert len(caught.value.trajectory) > 100


@pytest.mark.parametrize("arguments, text", [
    (dict(guard=1.0), "guard must be a function"),
    (dict(guard=height, direction=2), "direction"),
    (dict(guard=height, restitution=1.5), "restitution"),
])
def test_bad_events(arguments, text):
    with pytest.raises(ld.InputError, match=text):
        ld.Event("bad", **arguments)


def test_unknown_constraint():
    with pytest.raises(ld.InputError, match="unknown constraint 'flor', did you mean 'floor'"):
        ld.simulate(ball(), [1.0], [0.0], 1.0, events=ld.Event("land", height, on="flor"))
    with pytest.raises(ld.InputError, match="unknown constraint"):
        ld.simulate(ball(), [1.0], [0.0], 1.0, unilateral="flor")


def test_guards_that_fail():
    with pytest.raises(ld.SimulationError, match="guard of event 'bad' is not finite"):
        ld.simulate(ball(), [1.0], [0.0], 1.0, events=ld.Event("bad", lambda t, q, v: np.nan))
    with pytest.raises(ld.SimulationError, match="ZeroDivisionError"):
        ld.simulate(ball(), [1.0], [0.0], 1.0, events=ld.Event("bad", lambda t, q, v: 1 / 0))
