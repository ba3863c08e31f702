"""Contact with instants located: closed forms of bouncing, sticking, sliding, rolling, rocking and jamming."""
import numpy as np
import pytest
from contact_laws import check_laws, gaps
from tolerances import tight

import liedyn as ld

G = 9.81


def ball(**contact):
    """A point mass on a vertical guide above a floor."""
    b = ld.Builder("ball")
    b.body("ball", mass=2.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=True, **contact)
    return b.build()


def bounces(h, e, count):
    """Times of the first impacts of a ball dropped from h, and where they accumulate."""
    first = np.sqrt(2 * h / G)
    between = 2 * np.sqrt(2 * h / G) * e ** np.arange(1, count)
    return first + np.r_[0.0, np.cumsum(between)], first * (1 + e) / (1 - e)


@pytest.mark.parametrize("method", ["rk4", "RK45", "DOP853"])
def test_ball_accumulates(method):
    robot = ball(restitution=0.5)
    with pytest.raises(ld.AccumulationError, match="impacts of contact 'floor' accumulate at t = 1.354570") as caught:
        ld.simulate(robot, [1.0], [0.0], 2.0, method=method, accumulation="error")
    expected, end = bounces(1.0, 0.5, 20)
    tr = caught.value.trajectory
    found = np.array([event.t for event in tr.events])[:20]  # the 20th bounce lasts 1.7 us, all before it more
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
    assert abs(caught.value.t - end) < 1e-6 and caught.value.contacts == ("floor",)
    losses = np.array([event.energy_loss for event in tr.events[:12]])
    np.testing.assert_allclose(losses, 2.0 * G * 0.75 * 0.25 ** np.arange(12), rtol=1e-6)
    check_laws(robot, tr)


def test_ball_rests_after_accumulation():
    robot = ball(restitution=0.5)
    tr = ld.simulate(robot, [1.0], [0.0], 2.0)
    found = np.array([event.t for event in tr.events])[:15]
    np.testing.assert_allclose(found, bounces(1.0, 0.5, 15)[0], rtol=0.0, atol=1e-9)
    later = tr.t > 1.36
    assert np.abs(tr.q[later]).max() < 1e-9 and np.abs(tr.v[later]).max() < 1e-9
    assert tr["floor.gap"][-1] == pytest.approx(-2.0 * G, rel=1e-9) and tr.active[-1, 0]
    assert np.abs(tr.energy_drift[-1]) < 1e-6
    assert sum(event.t > 1.355 for event in tr.events) == 0  # what rests does not close again
    check_laws(robot, tr, stepping=True)


def test_ball_that_touches_stays():
    for h in (0.0, 1e-12, 1e-10):
        robot = ball()
        tr = ld.simulate(robot, [h], [0.0], 1.0)
        assert abs(tr.q[-1, 0]) < 1e-9, h
        check_laws(robot, tr)


def slope(angle, mu, unilateral=True):
    """A point mass on an incline: gravity is tilted, x points downhill."""
    b = ld.Builder("slope", gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    b.body("block", mass=3.0)
    b.joint("p", "translational", "ground", "block")
    b.constraint("floor", "on_plane", "ground", "block", unilateral=unilateral, friction=mu)
    return b.build()


@pytest.mark.parametrize("formulation", ["nullspace", "svd", "multiplier"])
def test_block_below_and_above_the_friction_angle(formulation):
    mu = 0.5
    for angle in (np.arctan(mu) - 1e-3, np.arctan(mu) + 1e-3, 0.3, 0.9):
        robot = slope(angle, mu)
        tr = ld.simulate(robot, [0, 0, 0], [0, 0, 0], 1.0, formulation=formulation)
        a = max(0.0, G * (np.sin(angle) - mu * np.cos(angle)))
        assert tr.q[-1, 0] == pytest.approx(0.5 * a, abs=1e-8)
        assert tr.v[-1, 0] == pytest.approx(a, abs=1e-8)
        assert np.abs(tr.q[:, 1:]).max() < 1e-12
        check_laws(robot, tr)


@pytest.mark.parametrize("method", ["rk4", "rkmk", "RK45", "DOP853"])
def test_block_slides_uphill_then_sticks(method):
    mu, angle, v0 = 0.6, 0.4, 2.0
    robot = slope(angle, mu)
    tr = ld.simulate(robot, [0, 0, 0], [-v0, 0.0, 0], 1.0, method=method)
    brake = G * (np.sin(angle) + mu * np.cos(angle))
    event, = tr.events
    assert event.name == "stick floor" and event.t == pytest.approx(v0 / brake, abs=1e-8)
    assert tr.q[-1, 0] == pytest.approx(-v0 ** 2 / 2 / brake, abs=1e-8) and np.abs(tr.v[-1]).max() < 1e-12
    check_laws(robot, tr)


def test_block_slides_uphill_then_down_again():
    mu, angle, v0, T = 0.2, 0.4, 2.0, 1.0
    robot = slope(angle, mu)
    tr = ld.simulate(robot, [0, 0, 0], [-v0, 0.0, 0], T)
    up, down = G * (np.sin(angle) + mu * np.cos(angle)), G * (np.sin(angle) - mu * np.cos(angle))
    turn = v0 / up
    assert tr.q[-1, 0] == pytest.approx(-v0 ** 2 / 2 / up + 0.5 * down * (T - turn) ** 2, abs=1e-8)
    check_laws(robot, tr)


def test_block_slides_around_a_bend():
    """Sideways on a slope at exactly the friction angle: along the path v - v_x is constant (v + v_x falls to v0)."""
    angle = 0.4
    robot = slope(angle, np.tan(angle))
    tr = ld.simulate(robot, [0, 0, 0], [0, 1.0, 0], 4.0)
    # dv/dt = g sin a (cos b - 1), dv_x/dt = g sin a (1 - cos b): v + v_x is constant, and v ends at v0 / 2 downhill
    size = np.hypot(tr.v[:, 0], tr.v[:, 1])
    np.testing.assert_allclose(size + tr.v[:, 0], 1.0, atol=1e-8)
    assert tr.v[-1, 0] == pytest.approx(0.5, abs=1e-3)
    check_laws(robot, tr)


@pytest.mark.parametrize("method", ["rk4", "RK45", "DOP853"])
def test_force_ramp_starts_slip(method):
    m, mu, rate, T = 3.0, 0.5, 20.0, 1.5
    robot = slope(0.0, mu)
    tr = ld.simulate(robot, [0, 0, 0], [0, 0, 0], T, tau=lambda t, q, v: [rate * t, 0, 0], method=method)
    slips = mu * m * G / rate
    event, = tr.events
    assert event.name == "slip floor" and event.t == pytest.approx(slips, abs=1e-8)
    assert tr.q[-1, 0] == pytest.approx(rate * (T - slips) ** 3 / 6 / m, abs=1e-8)
    check_laws(robot, tr, inputs=True)


def test_force_ramp_lifts():
    m, rate, T = 2.0, 40.0, 1.0
    tr = ld.simulate(ball(), [0.0], [0.0], T, tau=lambda t, q, v: [rate * t])
    event, = tr.events
    assert event.name == "release floor" and event.t == pytest.approx(m * G / rate, abs=1e-9)
    assert tr.q[-1, 0] == pytest.approx(rate * (T - event.t) ** 3 / 6 / m, abs=1e-8)


def sphere(mu, kind="sphere_on_plane"):
    b = ld.Builder("sphere")
    b.body("ball", mass=2.0, inertia=(0.4 * 2.0 * 0.01,) * 3)
    b.joint("j", "free", "ground", "ball")
    b.constraint("floor", kind, "ground", "ball", radius=0.1, unilateral=True, friction=mu)
    return b.build()


@pytest.mark.parametrize("method", ["rk4", "DOP853"])
def test_sphere_slides_then_rolls(method):
    """Rolls from 2 v0 / (7 mu g) on, with 5/7 v0."""
    mu, v0 = 0.3, 2.0
    robot = sphere(mu)
    q = robot.neutral.copy()
    q[6] = 0.1
    tr = ld.simulate(robot, q, [0, 0, 0, v0, 0, 0], 1.0, method=tight(method))
    event, = tr.events
    assert event.name == "stick floor" and event.t == pytest.approx(2 * v0 / 7 / mu / G, abs=1e-8)
    speed = ld.pose(robot, tr.q[-1], "ball")[:3, :3] @ tr.v[-1, 3:]
    np.testing.assert_allclose(speed, [5 / 7 * v0, 0, 0], atol=1e-8)
    assert tr.q[-1, 4] == pytest.approx(v0 * event.t - mu * G * event.t ** 2 / 2 + 5 / 7 * v0 * (1 - event.t), abs=1e-8)
    check_laws(robot, tr)


def rod(mu=0.0, e=0.0, length=1.0):
    """A planar rod with a contact at each end."""
    b = ld.Builder("rod", gravity=(0, -G, 0))
    b.body("rod", mass=1.0, inertia=(length ** 2 / 12,) * 3)
    b.joint("p", "planar", "ground", "rod")
    for k, x in enumerate((-length / 2, length / 2)):
        b.constraint(f"c{k}", "on_plane", "ground", "rod", child_placement=(x, 0, 0), axis=(0, 1, 0),
                     unilateral=True, friction=mu, restitution=e)
    return b.build()


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_rod_hits_with_both_ends_at_once(mu):
    robot = rod(mu)
    tr = ld.simulate(robot, [0, 0.2, 0], [0, 0, 0], 1.0)
    assert {event.name for event in tr.events} == {"contact c0", "contact c1"}
    assert len({event.t for event in tr.events}) == 1 and tr.events[0].t == pytest.approx(np.sqrt(0.4 / G), abs=1e-9)
    total = sum(event.impulse for event in tr.events)
    half = -0.5 * np.sqrt(2 * G * 0.2)
    assert [total[robot.row_names.index(f"c{k}.gap")] for k in (0, 1)] == pytest.approx([half, half], abs=1e-8)
    assert np.abs(tr.q[-1]).max() < 1e-9 and sum(event.energy_loss for event in tr.events) == pytest.approx(0.2 * G)
    check_laws(robot, tr)


def test_rod_hits_with_one_end_then_the_other():
    """Plastic hit of one end: omega+ = 6 v cos / (L (1 + 3 cos^2)) in closed form, then it falls on the other."""
    robot, tilt = rod(), 0.1
    tr = ld.simulate(robot, [0, 0.2, tilt], [0, 0, 0], 1.0)
    drop = 0.2 - 0.5 * np.sin(tilt)
    first = tr.events[0]
    v = np.sqrt(2 * G * drop)
    assert first.name == "contact c0" and first.t == pytest.approx(v / G, abs=1e-9)
    # J = v / (1/m + x^2 / I), x = L/2 cos: omega+ = -J x / I
    x, inertia = 0.5 * np.cos(tilt), 1 / 12
    J = v / (1 + x * x / inertia)
    assert first.v_after[2] == pytest.approx(-J * x / inertia, abs=1e-8)
    assert np.abs(gaps(robot, tr)[-1]).max() < 1e-9
    check_laws(robot, tr)


@pytest.mark.parametrize("dt", [1e-3, 0.1])
def test_slip_before_release(dt):
    """A force that lifts and pulls: it slips at mu (m g - r t) = f, long before it lets go; both in one step."""
    m, mu, rate, side = 3.0, 0.5, 200.0, 6.0
    tr = ld.simulate(slope(0.0, mu), [0, 0, 0], [0, 0, 0], 0.2, tau=lambda t, q, v: [side, 0, rate * t], dt=dt)
    slips, off = (m * G - side / mu) / rate, m * G / rate
    assert [event.name for event in tr.events] == ["slip floor", "release floor"]
    assert [event.t for event in tr.events] == pytest.approx([slips, off], abs=1e-8)
    check_laws(slope(0.0, mu), tr, inputs=True)


def sprag(mu, restitution):
    """A rod that swings down about a pivot 0.95 above the floor, and whose tip meets it before the lowest point."""
    b = ld.Builder("sprag")
    b.body("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(1 / 12, 1 / 12, 0.0))
    b.joint("pivot", "revolute", "ground", "rod", axis=(0, -1, 0))
    b.constraint("tip", "on_plane", "ground", "rod", parent_placement=(0, 0, -0.95), child_placement=(0, 0, -1.0),
                 unilateral=True, friction=mu, restitution=restitution)
    return b.build()


@pytest.mark.parametrize("mu, stops", [(0.2, False), (0.6, True)])
def test_sprag_does_not_bounce(mu, stops):
    """With mu > tan(angle) friction cannot let the tip come up again, whatever the restitution: it stops dead."""
    robot, angle = sprag(mu, 0.5), np.arccos(0.95)
    assert (mu > np.tan(angle)) == stops
    speed = -np.sqrt(3 * G * (np.cos(angle) - np.cos(0.8)))
    if stops:
        with pytest.warns(ld.ContactWarning, match="restitution 0.5 would have to pull, or to slip .* lowered to 0"):
            tr = ld.simulate(robot, [0.8], [0.0], 1.0)
    else:
        tr = ld.simulate(robot, [0.8], [0.0], 0.4)
    hit = tr.events[0]
    assert hit.v_before[0] == pytest.approx(speed, rel=1e-7)
    assert hit.v_after[0] == pytest.approx(0.0 if stops else -0.5 * speed, rel=1e-7, abs=1e-12)
    if stops:
        assert np.abs(tr.q[-1] - angle).max() < 1e-9 and not tr.v[-1].any()
    check_laws(robot, tr)


def test_restitution_is_lowered_beside_loops():
    """A guide whose row is zero but for rounding does no work: it does not hide that an impact would gain energy."""
    b = ld.Builder("guided block", gravity=(0.0, 0.0, -G))
    b.body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("p", "free", "ground", "block")
    b.constraint("guide", "on_plane", "ground", "block", axis=(0.3, 1.0, 0.2))
    for k, x in enumerate((-1.0, 1.0)):
        b.constraint(f"c{k}", "on_plane", "ground", "block", child_placement=(x, 0.1, -0.5), unilateral=True,
                     friction=1.0, restitution=1.0)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, [0.1, 0.2, -0.4, 0.0, 0.0, 0.0])
    n = np.array([0.3, 1.0, 0.2])
    q[4:] = 0.0, -0.2 * 0.9, 0.9
    assert abs(n @ q[4:]) < 1e-15
    G_h = ld.constraint_jacobian(robot, q)
    v = np.array([0.3, 3.0, -0.7, 2.0, 0.0, -1.0])
    v -= np.linalg.pinv(G_h) @ (G_h @ v)
    with pytest.warns(ld.ContactWarning, match="would gain"):
        tr = ld.simulate(robot, q, v, 0.6)
    check_laws(robot, tr)
