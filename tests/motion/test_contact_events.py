"""Events that switch contacts on and off, whatever these do at that moment: fly, rest, slide, roll, bounce, settle."""
import numpy as np
import pytest
from tolerances import tight

import liedyn as ld

G, R, MASS = 9.81, 0.08, 0.7
WAYS = [dict(method="rk4"), dict(method=tight("RK45")), dict(method=tight("DOP853")), dict(method="moreau")]


def ids(way):
    return str(way["method"])[:25]


def ball(floors=1, **contact):
    """A ball above floors that are steps of 0.25 m down; only the first one is on."""
    b = ld.Builder("ball")
    b.body("ball", MASS, inertia=(0.4 * MASS * R * R,) * 3)
    b.joint("free", "free", "ground", "ball")
    for k in range(floors):
        b.constraint(f"floor{k}", "sphere_on_plane", "ground", "ball", parent_placement=(0, 0, -0.25 * k), radius=R,
                     unilateral=True, active=k == 0, **contact)
    return b.build()


def edge(x, **switches):
    return ld.Event("edge", lambda t, q, v: x - q[4], **switches)


def at(z):
    return [0, 0, 0, 1, 0, 0, z]


def moving(x, spin=0.0):
    return [0, spin, 0, x, 0, 0]


@pytest.mark.parametrize("way", WAYS, ids=ids)
@pytest.mark.parametrize("contact", [{}, dict(friction=0.4), dict(friction=0.2, restitution=0.7)], ids=str)
def test_floor_that_ends_under_a_flying_ball(way, contact):
    """At 1.5 m/s from 0.5 m it is at x = 0.3 in 0.2 s, and would land in 0.293 s: it falls past the floor."""
    tr = ld.simulate(ball(**contact), at(0.5), moving(1.5), 0.6, events=edge(0.3, off="floor0"), **way)
    event, = tr.events
    assert event.name == "edge" and event.off == ("floor0",) and event.on == () and event.energy_loss == 0.0
    assert event.t == pytest.approx(0.2, abs=1e-9) and not event.impulse.any()
    assert tr.q[-1, 6] == pytest.approx(0.5 - G / 2 * 0.36, abs=1e-8)
    assert tr.status[-1, 0] == 0 and tr.status[0, 0] == -1


@pytest.mark.parametrize("way", WAYS, ids=ids)
def test_one_floor_goes_and_the_next_comes_in_flight(way):
    """One event does both, and is recorded once; the ball lands on the lower floor."""
    tr = ld.simulate(ball(2), at(0.3), moving(2.0), 0.4, events=edge(0.3, off="floor0", on="floor1"), **way)
    first, hit = tr.events
    assert (first.name, first.off, first.on) == ("edge", ("floor0",), ("floor1",))
    fall = np.sqrt(2 * (0.3 - R + 0.25) / G)
    late = 2e-3 if way["method"] == "moreau" else 1e-8  # time-stepping tells impacts at the end of their steps
    assert hit.name == "contact floor1" and hit.on == ("floor1",) and hit.t == pytest.approx(fall, abs=late)
    assert tr.q[-1, 6] == pytest.approx(R - 0.25, abs=1e-9)


@pytest.mark.parametrize("way", WAYS, ids=ids)
@pytest.mark.parametrize("friction, spin", [(0.0, 0.0), (0.3, 0.9 / R), (0.3, 0.0)], ids=["slides", "rolls", "rubs"])
def test_floor_that_ends_under_a_ball_on_it(way, friction, spin):
    contact = dict(friction=friction) if friction else {}
    tr = ld.simulate(ball(**contact), at(R), moving(0.9, spin), 0.8, events=edge(0.25, off="floor0"), **way)
    event, = (each for each in tr.events if each.name == "edge")
    assert event.off == ("floor0",) and event.energy_loss == pytest.approx(0.0, abs=1e-9)
    assert tr.q[-1, 6] == pytest.approx(R - G / 2 * (0.8 - event.t) ** 2, abs=1e-6)
    assert tr.status[-1, 0] == 0 and [each.name for each in tr.events if each.t > event.t] == []


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("x", [0.2, 0.36, 0.9])
def test_edge_during_and_after_an_accumulation(friction, x):
    """The bounces accumulate at 0.42 s, x = 0.34."""
    contact = dict(friction=friction) if friction else {}
    tr = ld.simulate(ball(restitution=0.5, **contact), at(R + 0.1), moving(0.8), 2.0, events=edge(x, off="floor0"),
                     accumulation="moreau")
    event, = (each for each in tr.events if each.name == "edge")
    assert event.off == ("floor0",)
    w = ld.pose(ball(), event.q_after, "ball")[:3, :3] @ event.v_after[3:]
    left = 2.0 - event.t
    np.testing.assert_allclose((tr.q[-1] - event.q_after)[[4, 6]], w[[0, 2]] * left - [0, G / 2 * left ** 2], atol=1e-8)
    assert tr.status[-1, 0] == 0


def test_switched_off_and_on_again():
    """Off from 0.1 to 0.15 s, while the ball is above: it lands as if nothing had been. On from below: an error."""
    events = [ld.Event("off", lambda t, q, v: t - 0.1, off="floor0"),
              ld.Event("on", lambda t, q, v: t - 0.15, on="floor0")]
    for way in WAYS:
        tr = ld.simulate(ball(), at(0.4), moving(0.0), 0.4, events=events, **way)
        names = [event.name for event in tr.events]
        assert names == ["off", "on", "contact floor0"], names
        assert tr.events[0].off == tr.events[1].on == ("floor0",) and tr.q[-1, 6] == pytest.approx(R, abs=1e-9)
        with pytest.raises(ld.SimulationError, match="'floor0' is 0.0[0-9]* deep.*event 'on' switches it on") as caught:
            ld.simulate(ball(), at(0.2), moving(0.0), 0.4, events=events[:1] + [
                ld.Event("on", lambda t, q, v: t - 0.2, on="floor0")], **way)
        assert caught.value.trajectory.t[-1] == pytest.approx(0.2)


def test_batches_take_events_of_flying_balls():
    tr = ld.simulate(ball(friction=0.3), np.array([at(0.5), at(0.6)]), moving(1.5), 0.5,
                     events=edge(0.3, off="floor0"))
    for run, z in zip(tr, (0.5, 0.6)):
        assert [event.name for event in run.events] == ["edge"]
        assert run.q[-1, 6] == pytest.approx(z - G / 8, abs=1e-9)


def test_stepper_switches_contacts_in_flight():
    stepper = ld.Stepper(ball(friction=0.3), at(0.2), moving(0.5), dt=1e-3, method="moreau")
    stepper.advance(50)
    stepper.switch("floor0", False)
    assert stepper.active == ()
    stepper.advance(20)
    stepper.switch("floor0", True)  # still above
    stepper.advance(200)
    assert stepper.q[6] == pytest.approx(R, abs=1e-9)
    stepper.switch("floor0", False)
    stepper.advance(100)
    assert stepper.q[6] == pytest.approx(R - G / 2 * 0.01, abs=1e-9)
    with pytest.raises(ld.SimulationError, match="'floor0' is 0.049 deep"):
        stepper.switch("floor0", True)
    q = stepper.q
    stepper.step()  # nothing has changed
    assert stepper.q[6] < q[6] and stepper.active == ()


def test_steps_refuse_contacts_that_are_penetrated():
    robot, v, tau = ball(), moving(0.0), np.zeros(6)
    for call in (lambda: ld.step(robot, at(0.05), v, tau, method="moreau"),
                 lambda: ld.Stepper(robot, at(0.05), v, method="moreau"),
                 lambda: ld.simulate(robot, at(0.05), v, 0.1, method="moreau"),
                 lambda: ld.simulate(robot, at(0.05), v, 0.1)):
        with pytest.raises(ld.LiedynError, match="'floor0' is 0.03 deep on the wrong side"):
            call()
    q, v = ld.step(robot.switched(floor0=False), at(0.05), v, tau, method="moreau")
    assert q[6] == pytest.approx(0.05 - G / 2 * 1e-6)


@pytest.mark.parametrize("way", WAYS, ids=ids)
def test_energy_losses_stand_with_what_has_collided(way):
    """Where one floor is let go, or switched off, at the moment of an impact on another one."""
    b = ld.Builder("two")
    for name in ("a", "b"):
        b.body(name, 1.0)
        b.joint(name, "prismatic", "ground", name)
        b.constraint(f"floor_{name}", "on_plane", "ground", name, unilateral=True)
    edge_of_b = ld.Event("edge", lambda t, q, v: q[1], -1, off="floor_a")
    tr = ld.simulate(b.build(), [0.0, 0.3], [0.0, 0.0], 0.4, events=edge_of_b, **way)
    losses = {event.name: event.energy_loss for event in tr.events}
    assert losses["edge"] == 0.0
    assert losses["contact floor_b"] == pytest.approx(0.3 * G, rel=1e-2 if way["method"] == "moreau" else 1e-6)
    assert tr.q[-1, 0] < -0.05


def bob():
    """A mass that falls, and a pin at the origin that is off: a loop of three rows, none of which is a gap."""
    b = ld.Builder("bob")
    b.body("bob", 1.0)
    b.joint("place", "translational", "ground", "bob")
    b.loop("pin", "spherical", "ground", "bob", active=False)
    return b.build()


def test_a_loop_that_an_event_closes_is_closed():
    """Also where its first row is open to the side that a one-sided constraint may be."""
    pin = ld.Event("catch", lambda t, q, v: t - 0.1, on="pin")
    tr = ld.simulate(bob(), [0, 0, G / 2 * 0.01], [0, 0, 0], 0.2, events=pin, unilateral=["pin"])
    event, = tr.events
    assert event.on == ("pin",) and np.abs(tr.q[-1]).max() < 1e-9
    with pytest.raises(ld.SimulationError, match="event 'catch' cannot close its constraints: pin.* is open by 0.2"):
        ld.simulate(bob(), [0.2, 0, 0], [0, 0, 0], 0.2, events=pin, unilateral=["pin"])
    five_bar = ld.load("five_bar")
    with pytest.raises(ld.InputError, match="'pin'.*5 rows"):
        ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.2, unilateral=["pin"])
