"""Time-stepping through contact, and what both ways must bear: random bodies, a quadruped, contacts that contradict."""
import numpy as np
import pytest
from contact_bodies import random_drop
from contact_laws import check_laws, gaps
from test_contact import ball, rod, slope, sphere

import liedyn as ld
from liedyn.mechanics.contact.complementarity import SOLVED, Coulomb, solve_coulomb
from liedyn.motion.simulation.crossings import _turn

G = 9.81


def test_ball_bounces_to_rest():
    robot = ball(restitution=0.5)
    tr = ld.simulate(robot, [1.0], [0.0], 2.0, method="moreau")
    first = [event.t for event in tr.events if event.name == "contact floor"][:3]
    times = np.sqrt(2 / G) * np.array([1.0, 2.0, 2.5])
    np.testing.assert_allclose(first, times, atol=5e-3)  # first order: a few steps of 1 ms
    rest = tr.t > 1.4
    assert np.abs(tr.q[rest]).max() < 1e-8 and np.abs(tr.v[rest]).max() < 1e-8
    assert tr["floor.gap"][-1] == pytest.approx(-2.0 * G, rel=1e-9)
    check_laws(robot, tr)


def test_first_order():
    """The error of a slide that ends in sticking falls in proportion to the step at least."""
    mu, angle, v0 = 0.6, 0.4, 2.0
    end = -v0 ** 2 / 2 / (G * (np.sin(angle) + mu * np.cos(angle)))
    robot, errors = slope(angle, mu), []
    for dt in (4e-3, 1e-3):
        tr = ld.simulate(robot, [0, 0, 0], [-v0, 0, 0], 1.0, method="moreau", dt=dt)
        errors.append(abs(tr.q[-1, 0] - end))
        assert np.abs(tr.v[-1]).max() < 1e-12
        check_laws(robot, tr)
    assert errors[0] < 4e-3 and errors[1] < 1e-3


@pytest.mark.parametrize("e", [0.0, 0.4])
@pytest.mark.parametrize("height", [0.41, 0.437, 0.452])
def test_landings_without_friction_leave_what_is_along_the_surface(height, e):
    """Wherever within its step a body lands: neither its horizontal speed nor its spin pays for the landing."""
    b = ld.Builder("puck")
    b.body("puck", mass=3.0, inertia=(0.02, 0.02, 0.02))
    b.joint("j", "free", "ground", "puck")
    b.constraint("floor", "sphere_on_plane", "ground", "puck", radius=0.1, unilateral=True, restitution=e)
    robot = b.build()
    q, v = robot.neutral.copy(), [0.7, -1.0, 2.0, 3.0, 0.5, 0.0]
    q[6] = 0.1 + height
    tr = ld.simulate(robot, q, v, 1.2, method="moreau", dt=2e-3)
    ends = ld.simulate(robot, q, v, 1.2)  # which locates impacts
    along = [ld.pose(robot, x.q[-1], "puck")[:3, :3] @ x.v[-1, 3:] for x in (tr, ends)]
    np.testing.assert_allclose(along, [[3.0, 0.5, 0.0]] * 2, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(tr.v[-1, :3]), np.linalg.norm(v[:3]), rtol=1e-10)
    assert tr.energy[-1] == pytest.approx(ends.energy[-1], abs=1e-7)
    check_laws(robot, tr)


@pytest.mark.parametrize("beyond", [-1e-3, 1e-3])
def test_friction_angle(beyond):
    mu = 0.5
    robot = slope(np.arctan(mu) + beyond, mu)
    tr = ld.simulate(robot, [0, 0, 0], [0, 0, 0], 1.0, method="moreau")
    a = max(0.0, G * (np.sin(np.arctan(mu) + beyond) - mu * np.cos(np.arctan(mu) + beyond)))
    assert tr.v[-1, 0] == pytest.approx(a, abs=1e-9)  # constant acceleration: exact in the velocity
    check_laws(robot, tr)


def test_sphere_slides_then_rolls():
    """To 5/7 of its speed, to first order: a step turns the ball, and what it holds at its middle is off at its end."""
    robot = sphere(0.3)
    q = robot.neutral.copy()
    q[6] = 0.1
    for dt in (1e-3, 2e-4):
        tr = ld.simulate(robot, q, [0, 0, 0, 2.0, 0, 0], 1.0, method="moreau", dt=dt)
        speed = ld.pose(robot, tr.q[-1], "ball")[:3, :3] @ tr.v[-1, 3:]
        np.testing.assert_allclose(speed, [10 / 7, 0, 0], atol=50 * dt)
        check_laws(robot, tr)


def test_rod_rattles_to_rest():
    """A rod that falls on one end, then the other, infinitely often: it lies in the end."""
    for mu in (0.0, 0.5):
        robot = rod(mu, e=0.3)
        for kw in ({"method": "moreau"}, {}):
            tr = ld.simulate(robot, [0, 0.2, 0.3], [0, 0, 0], 2.0, **kw)
            assert np.abs(tr.v[-1, 1:]).max() < 1e-6 and np.abs(gaps(robot, tr)[-1]).max() < 1e-6
            check_laws(robot, tr, stepping=True)


# ---- random bodies


@pytest.mark.parametrize("options", [{"accumulation": "error"}, {}, {"method": "moreau"}], ids=str)
def test_random_bodies_drop(options):
    """Each run ends right, or where its bounces accumulate; nothing breaks a law on the way."""
    ends = {}
    for seed in range(20):
        robot, q, v = random_drop(seed)
        try:
            tr = ld.simulate(robot, q, v, 1.0, **options)
            ends["right"] = ends.get("right", 0) + 1
        except ld.AccumulationError as error:
            assert "accumulation" in options
            tr = error.trajectory
        check_laws(robot, tr, stepping="accumulation" not in options)
    assert ends["right"] == 20 or "accumulation" in options


# ---- a quadruped


def solo():
    """solo12 with a contact at each foot, and a configuration 0.1 m above the floor."""
    b = ld.Builder.of(ld.load("solo12"))
    for foot in ("FL", "FR", "HL", "HR"):
        b.constraint(foot, "on_plane", "ground", f"{foot}_FOOT", unilateral=True, friction=0.7)
    robot = b.build()
    q = robot.home.copy()
    q[6] += 0.1
    return robot, q


def test_solo_lands_on_four_feet():
    """A PD controller on the joints: 10 s, and the floor carries the weight in the end."""
    robot, q = solo()
    wanted = q[7:].copy()

    def hold(t, q, v):
        return np.concatenate([np.zeros(6), -8.0 * (q[7:] - wanted) - 0.3 * v[6:]])

    tr = ld.simulate(robot, q, np.zeros(18), 10.0, tau=hold)
    push = -tr.lam[-1, [robot.row_names.index(f"{foot}.gap") for foot in ("FL", "FR", "HL", "HR")]]
    assert push.sum() == pytest.approx(ld.total_mass(robot) * G, rel=1e-6) and (push > 1.0).all()
    assert np.abs(tr.v[-1]).max() < 1e-9 and tr.active[-1].all()
    check_laws(robot, tr, inputs=True)


@pytest.mark.parametrize("duration, options", [(4.0, {}), (10.0, {"method": "moreau"})], ids=str)
def test_solo_limp(duration, options):
    """Without forces nothing sinks in, pulls, rubs more than it can, or gains energy; with events it takes longest."""
    robot, q = solo()
    tr = ld.simulate(robot, q, np.zeros(18), duration, **options)
    assert tr.t[-1] == duration
    check_laws(robot, tr, stepping=True)


def test_events_while_contacts_settle():
    """The ball's bounces accumulate at 1.354571 s; what is to happen while time-stepping settles it, happens."""
    b = ld.Builder("ball")
    b.body("ball", 1.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=True, restitution=0.5)
    kicked = ld.Event("kick", lambda t, q, v: t - 1.3575, direction=1, action=lambda t, q, v: (q, v + 1.0))
    tr = ld.simulate(b.build(), [1.0], [0.0], 1.4, events=kicked)
    event, = (each for each in tr.events if each.name == "kick")
    assert event.t == pytest.approx(1.3575, abs=1e-9) and event.v_after[0] - event.v_before[0] == pytest.approx(1.0)
    assert tr.q[-1, 0] == pytest.approx(0.0425 - 9.81 / 2 * 0.0425 ** 2, abs=1e-3)  # time-stepping is of first order


# ---- the complementarity problem itself


def coulomb_violation(D, b, first, mu, P):
    """Largest violation of Signorini's and Coulomb's conditions, in forces and motions."""
    u, worst = D @ P + b, 0.0
    for i in first:
        n, t, u_n, u_t = P[i], P[i + 1:i + 3], u[i], u[i + 1:i + 3]
        size = np.linalg.norm(t)
        worst = max(worst, -n, -u_n, abs(n * u_n), size - mu * n, (mu * n - size) * np.linalg.norm(u_t),
                    abs(t @ u_t + size * np.linalg.norm(u_t)))
    return worst


def test_contacts_that_stick_against_each_other():
    """Two corners that rise at different rates cannot both stick: the forces between them grow until one slips.

    Sweeps add 1e-7 of what is needed; Newton steps, from where both stick, find no way out.
    """
    rng = np.random.default_rng(5)
    first, count, given = np.array([0, 3]), np.array([3, 3]), np.zeros(2, bool)
    for case in range(30):
        mu, tilt = rng.uniform(0.1, 1.0), 10.0 ** rng.uniform(-8, -3)
        corners = np.array([[-0.3, 0.1, -0.2], [0.3, 0.1 + rng.uniform(-0.3, 0.3), -0.2 + 0.6 * tilt]])
        H = np.zeros((6, 6))  # normal z, then x and y, of twists (omega, v)
        for c, p in enumerate(corners):
            skew = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
            H[3 * c:3 * c + 3] = np.hstack([-skew, np.eye(3)])[[2, 0, 1]]
        Y = H / np.sqrt([0.05, 0.06, 0.08, 1, 1, 1])
        b = H @ np.r_[rng.uniform(-0.1, 0.1, 3), rng.uniform(-0.05, 0.05, 2), -1.0]
        b[3] *= 1.0 - 0.3 * rng.uniform()  # restitution of one of them
        P = np.zeros(6)
        status, _ = solve_coulomb(Coulomb(Y, b, first, count, np.full(2, mu), given, np.zeros((2, 3)),
                                          np.full(2, -1.0)), 1.0, P)
        assert status == SOLVED and coulomb_violation(Y @ Y.T, b, first, mu, P) < 1e-8, case


def test_contacts_that_slip_fast():
    """Random contacts, coupled in all directions, with slip much larger than friction can stop."""
    rng = np.random.default_rng(7)
    for case in range(50):
        contacts = rng.integers(1, 5)
        k = 3 * contacts
        Y, b = rng.standard_normal((k, k + 2)), rng.standard_normal(k)
        b[::3] *= 10.0 ** rng.uniform(-6, 0)
        first, mu, P = np.arange(0, k, 3), 0.3, np.zeros(k)
        problem = Coulomb(Y, b, first, np.full(contacts, 3), np.full(contacts, mu), np.zeros(contacts, bool),
                          np.zeros((contacts, 3)), np.full(contacts, -1.0))
        status, _ = solve_coulomb(problem, 0.0, P)
        assert status == SOLVED and coulomb_violation(Y @ Y.T, b, first, mu, P) < 1e-9, case


def test_the_turn_of_a_contact_that_comes_back_at_once():
    """It turns at 1e-8 s; later the friction of another contact changes, and the rate at the end is positive."""
    found = _turn(lambda t: 1e-8 - t if t < 0.6 else 0.5, 0.0, 1.0, 1e-8)
    assert found == pytest.approx(1e-8, rel=1e-6)
    assert _turn(lambda t: t, 0.0, 1.0, 0.0) == 1.0


def test_stiff_damping_of_a_joint():
    """A rod that turns about itself, damped at 2500 / s: explicit steps of 1 ms are unstable, and held up the fall."""
    b = ld.Builder("falling rod")
    b.body("base", 10.0, inertia=(0.1, 0.1, 0.1))
    b.body("rod", 0.2, inertia=(4e-6, 4e-3, 4e-3))
    b.joint("free", "free", "ground", "base")
    b.joint("ball", "spherical", "base", "rod", damping=0.01)
    robot = b.build()
    v = np.zeros(9)
    v[6] = 1.0
    tr = ld.simulate(robot, robot.home, v, 0.2, method="moreau")
    assert tr["free.z"][-1] == pytest.approx(-G * 0.2 ** 2 / 2, rel=1e-9)
    assert np.abs(tr.v[-1, 6]) < 1e-9
    lost = tr.energy - tr.energy[0] - tr.other_work
    assert np.abs(lost).max() < 1e-9
