"""Events on the dense output of adaptive methods: pairs of zeros, zeros at the start, restitution, simultaneity."""
import numpy as np
import pytest
from tolerances import tight

import liedyn as ld

G = 9.81
ADAPTIVE = ["RK23", "RK45", "DOP853", "Radau", "BDF"]


def clock(rate=1.0):
    """A disc that turns evenly: the angle is the time, and adaptive steps get as long as they may."""
    b = ld.Builder("disc")
    b.body("disc", 1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("z", "revolute", "ground", "disc")
    return b.build()


def ball(unilateral=False, **contact):
    b = ld.Builder("ball")
    b.body("ball", mass=1.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=unilateral, **contact)
    return b.build() if unilateral else b.build().switched(floor=False)


@pytest.mark.parametrize("dt", [None, 0.05, 1.0])
@pytest.mark.parametrize("method", ["RK45", "DOP853"])
@pytest.mark.parametrize("half_width", [0.3, 0.03, 1e-3, 1e-5])
def test_pairs_of_zeros_within_a_step(method, dt, half_width):
    """(t - c)^2 - w^2 is below zero for 2 w only, which no row and no tenth of a step needs to hit."""
    for center in (1.2345, 2.71):
        guard = ld.Event("pair", lambda t, q, v, c=center: (q[0] - c) ** 2 - half_width ** 2)
        tr = ld.simulate(clock(), [0.0], [1.0], 4.0, method=method, dt=dt, events=guard)
        assert [event.t for event in tr.events] == pytest.approx([center - half_width, center + half_width], abs=1e-8)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_pairs_of_zeros_count_by_direction(method):
    for direction, offset in ((1, 1e-3), (-1, -1e-3)):
        guard = ld.Event("one", lambda t, q, v: (q[0] - 1.2) ** 2 - 1e-6, direction)
        tr = ld.simulate(clock(), [0.0], [1.0], 2.0, method=method, events=guard)
        assert [event.t for event in tr.events] == pytest.approx([1.2 + offset], abs=1e-8)


@pytest.mark.parametrize("method", ["rk4", *ADAPTIVE])
def test_four_bounces_by_an_action(method):
    """A ball that an action throws back with half its speed at a height of 0.1 (reproducer B)."""
    bounce = ld.Event("hit", lambda t, q, v: q[0] - 0.1, direction=-1, action=lambda t, q, v: (q, -0.5 * v))
    tr = ld.simulate(ball(), [1.0], [0.0], 1.2, method=tight(method), events=bounce)
    first = np.sqrt(2 * 0.9 / G)
    times = first + np.r_[0, np.cumsum(2 * first * 0.5 ** np.arange(1, 8))]
    assert [event.t for event in tr.events] == pytest.approx(times[times < 1.2], abs=1e-7)


@pytest.mark.parametrize("method", ["rk4", *ADAPTIVE])
@pytest.mark.parametrize("switch", ["event", "declared"])
def test_restitution_without_false_chattering(method, switch):
    """Every bounce that lasts over a millisecond, in the first 1.3 s."""
    if switch == "event":
        robot, events = ball(), ld.Event("hit", lambda t, q, v: q[0], direction=-1, on="floor", restitution=0.5)
    else:
        robot, events = ball(True, restitution=0.5), ()
    tr = ld.simulate(robot, [1.0], [0.0], 1.3, method=tight(method), events=events)
    first = np.sqrt(2 / G)
    times = first + np.r_[0, np.cumsum(2 * first * 0.5 ** np.arange(1, 12))]
    # RK23's own error, of order 3, at this tolerance
    assert [event.t for event in tr.events] == pytest.approx(times[times < 1.3], abs=1e-7)


@pytest.mark.parametrize("method", ["rk4", "RK45", "DOP853", "BDF"])
@pytest.mark.parametrize("direction, rate, fires", [(1, 1.0, True), (-1, 1.0, False), (-1, -1.0, True), (0, 1.0, True),
                                                    (0, -1.0, True), (1, -1.0, False)])
def test_guard_that_is_zero_at_the_start(method, direction, rate, fires):
    """It fires where it moves on in its direction, and once."""
    guard = ld.Event("zero", lambda t, q, v: q[0], direction)
    tr = ld.simulate(clock(), [0.0], [rate], 0.5, method=method, events=guard)
    assert [event.t for event in tr.events] == [0.0] * fires


def test_ball_at_rest_on_the_floor_is_caught():
    """Let go at height zero, with a floor that an event switches on (reproducer `silent`)."""
    hit = ld.Event("hit", lambda t, q, v: q[0], -1, on="floor")
    for height in (0.0, 1e-12, 1e-9):
        for method in ("rk4", "RK45"):
            tr = ld.simulate(ball(), [height], [0.0], 0.5, events=hit, unilateral=["floor"], method=method)
            assert abs(tr.q[-1, 0]) < 1e-8 and tr.active[-1, 0], (height, method)


def two_feet():
    b = ld.Builder("platform")
    for foot in ("left", "right"):
        b.body(foot, 1.0)
        b.joint(f"z_{foot}", "prismatic", "ground", foot)
        b.constraint(foot, "on_plane", "ground", foot, active=False)
    return b.build()


@pytest.mark.parametrize("method", ["rk4", "DOP853"])
def test_simultaneous_events_are_one_impact(method):
    events = [ld.Event("left", lambda t, q, v: q[0], -1, on="left"), ld.Event("right", lambda t, q, v: q[1], -1,
                                                                             on="right")]
    tr = ld.simulate(two_feet(), [0.7, 0.7], [0.0, 0.0], 0.6, events=events, method=method)
    first, second = tr.events
    assert first.t == second.t and (first.v_after == second.v_after).all() and (first.v_before == second.v_before).all()
    assert first.energy_loss == pytest.approx(2 * 0.7 * G, rel=1e-7) and second.energy_loss == 0.0
    speed = np.sqrt(2 * G * 0.7)
    np.testing.assert_allclose([first.impulse, second.impulse], [[-speed, 0], [0, -speed]], atol=1e-7)
    assert (np.count_nonzero(tr.t == first.t)) == 2  # one row before, one behind


def test_second_event_on_the_same_switch_is_not_recorded():
    events = [ld.Event(name, lambda t, q, v: q[0], -1, on="left") for name in ("first", "second")]
    tr = ld.simulate(two_feet(), [0.7, 5.0], [0.0, 0.0], 0.5, events=events)
    assert [event.name for event in tr.events] == ["first"] and tr.events[0].on == ("left",)


def test_rod_that_falls_on_switched_floors():
    """Reproducer A: both ends stay above the floor; what has been let go is caught again."""
    b, events = ld.Builder("rod", gravity=(0, -G, 0)), []
    b.body("rod", mass=1.0, inertia=(0.5, 0.5, 0.5))
    b.joint("p", "planar", "ground", "rod")
    for k, x in enumerate((-0.5, 0.5)):
        b.constraint(f"c{k}", "on_plane", "ground", "rod", child_placement=(x, 0, 0), axis=(0, 1, 0), active=False)
        events.append(ld.Event(f"t{k}", lambda t, q, v, x=x: q[1] + x * np.sin(q[2]), direction=-1, on=f"c{k}"))
    for accumulation in ("error", "moreau"):
        try:
            tr = ld.simulate(b.build(), [0, 0.2, 0.02], [0, 0, 0], 1.0, events=events, unilateral=["c0", "c1"],
                             accumulation=accumulation)
        except ld.AccumulationError as error:  # its ends hit in turn, ever faster
            assert accumulation == "error"
            tr = error.trajectory
        assert (tr.q[:, 1] - 0.5 * np.abs(np.sin(tr.q[:, 2]))).min() > -1e-6
    assert tr.t[-1] == 1.0 and np.abs(tr.v[-1]).max() < 1e-9
