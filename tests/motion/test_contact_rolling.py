"""Time-stepping where nothing collides: flight, rolling and sliding are what `simulate` makes of them without it."""
import numpy as np
import pytest

import liedyn as ld

G = 9.81


def body(kind, inertia, mass=0.8, gravity=(0, 0, -G), **contact):
    b = ld.Builder(kind, gravity=gravity)
    b.body("body", mass, inertia=inertia)
    b.joint("free", "free", "ground", "body")
    b.constraint("floor", kind, "ground", "body", unilateral=True, **contact)
    return b.build()


def ball(r, mass=0.8, **more):
    return body("sphere_on_plane", (0.4 * mass * r * r,) * 3, mass, radius=r, **more)


def in_world(robot, q, v):
    """Spin and velocity of the body in world axes."""
    R = ld.pose(robot, q, "body")[:3, :3]
    return R @ v[:3], R @ v[3:]


@pytest.mark.parametrize("inertia", [(3e-3,) * 3, (2e-3, 5e-3, 6e-3), (1e-3, 1e-3, 2e-3)], ids=str)
def test_spinning_bodies_fly_to_six_digits(inertia):
    """At 30 rad/s, with 1 ms, for 0.8 s: position, velocity, angular momentum and energy."""
    robot = body("on_plane", inertia, restitution=0.3)
    w, u = np.array([18.0, -9.0, 22.0]), np.array([1.0, -2.0, 4.5])
    tr = ld.simulate(robot, [0, 0, 0, 1, 0, 0, 1.5], [*w, *u], 0.8, method="moreau")
    stepper = ld.Stepper(robot, [0, 0, 0, 1, 0, 0, 1.5], [*w, *u], dt=1e-3, method="moreau")
    stepper.advance(800)
    for q, v in ((tr.q[-1], tr.v[-1]), (stepper.q, stepper.v)):
        spin, velocity = in_world(robot, q, v)
        np.testing.assert_allclose(q[4:], [0.8, -1.6, 1.5 + 3.6 - G * 0.32], rtol=1e-6)
        np.testing.assert_allclose(velocity, u - [0, 0, 0.8 * G], rtol=1e-6)
        R, moment = ld.pose(robot, q, "body")[:3, :3], np.array(inertia) * w
        np.testing.assert_allclose(R @ (inertia * v[:3]), moment, atol=1e-6 * np.linalg.norm(moment))
    assert tr.energy[-1] == pytest.approx(tr.energy[0], rel=1e-6) and not tr.events


@pytest.mark.parametrize("more", [dict(friction=0.4), dict(rolling=True), dict(friction=0.4, restitution=0.5)], ids=str)
def test_what_rolls_is_not_braked(more):
    """5 s, also askew: spin about the vertical, and rolling in two directions."""
    r, robot = 0.07, ball(0.07, **more)
    q, v = [0, 0, 0, 1, 0, 0, r], [-0.3 / r, 0.9 / r, 4.0, 0.9, 0.3, 0]
    tr = ld.simulate(robot, q, v, 5.0, method="moreau")
    stepper = ld.Stepper(robot, q, v, dt=1e-3, method="moreau")
    stepper.advance(5000)
    assert not tr.events and (tr.status[-1] == 1).all()
    np.testing.assert_allclose(tr.kinetic, tr.kinetic[0], rtol=1e-8)
    for end in (tr.q[-1], stepper.q):
        np.testing.assert_allclose(end[4:], [4.5, 1.5, r], rtol=1e-8)


def test_a_ball_rolls_down_a_slope():
    """5/7 of the acceleration of what slides, with friction that just holds it, and energy to 1e-6."""
    angle, r = 0.3, 0.05
    robot = ball(r, gravity=(G * np.sin(angle), 0, -G * np.cos(angle)), friction=2 / 7 * np.tan(angle) + 1e-3)
    tr = ld.simulate(robot, [0, 0, 0, 1, 0, 0, r], [0, 0, 0, 0, 0, 0], 2.0, method="moreau")
    # in the end it turns by 83 rad/s: the error of steps of fourth order, the same with "rk4"
    assert tr.q[-1, 4] == pytest.approx(5 / 7 * G * np.sin(angle) * 2.0, rel=1e-6)
    np.testing.assert_allclose(tr.energy, tr.energy[0], atol=1e-6 * tr.kinetic[-1])


def coin(r, tilt, mass=0.05, friction=0.6):
    """A thin disk on its rim, tilted out of the horizontal, and the velocity with which its centre stays where it is.

    It turns about the line from the point of contact to its centre, Omega sin(tilt), where Omega^2 = m g r / (A
    sin(tilt)) about the vertical, with A = m r^2 / 4.
    """
    A = mass * r * r / 4
    robot = body("disk_on_plane", (A, A, 2 * A), mass, radius=r, child_axis=(0, 0, 1), friction=friction)
    q = np.array([np.sin(tilt / 2), 0, 0, np.cos(tilt / 2), 0, 0, r * np.sin(tilt)])
    return robot, q, np.array([0, np.sqrt(mass * G * r / A * np.sin(tilt)), 0, 0, 0, 0])


@pytest.mark.parametrize("tilt", [0.4, 0.9])
def test_a_coin_in_steady_precession_keeps_its_height(tilt):
    robot, q, v = coin(0.04, tilt)
    tr = ld.simulate(robot, q, v, 3.0, method="moreau")
    np.testing.assert_allclose(tr.q[:, 6], q[6], rtol=1e-6)
    np.testing.assert_allclose(tr.q[:, 4:6], 0.0, atol=1e-7)
    np.testing.assert_allclose(tr.energy, tr.energy[0], rtol=1e-6)


def test_a_coin_that_rolls_is_that_of_exact_steps():
    """Round in circles, nodding."""
    robot, q, v = coin(0.05, 0.9)
    wanted = dict(zip(robot.velocity_names[:3], v[:3] + [0, 0, 3.0]))
    v = ld.complete_velocity(robot.switched(floor="sticking"), q, wanted)
    runs = [ld.simulate(robot, q, v, 2.0, method=method) for method in ("moreau", "rk4")]
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-7)  # the error of either: one is on the group
    np.testing.assert_allclose(runs[0].energy, runs[0].energy[0], rtol=1e-6)
    assert np.ptp(runs[0].q[:, 6]) > 1e-3


def test_a_ball_that_bounces_rolls_on_in_exact_steps():
    """The bounces are over at 0.36 s. Then it rolls, and spin and speed are the same for ever."""
    r, robot = 0.06, ball(0.06, friction=0.25, restitution=0.5)
    tr = ld.simulate(robot, [0, 0, 0, 1, 0, 0, r + 0.06], [2.0, 0, 5.0, 0.7, 0.2, 0], 4.0, accumulation="moreau")
    rolls = tr.t > 0.6
    assert (tr.status[rolls] == 1).all() and np.isfinite(tr.condition[rolls]).all()
    np.testing.assert_allclose(tr.kinetic[rolls], tr.kinetic[-1], rtol=1e-9)
    spin, velocity = in_world(robot, tr.q[-1], tr.v[-1])
    np.testing.assert_allclose(velocity[:2], [r * spin[1], -r * spin[0]], rtol=1e-9)
    first = np.flatnonzero(rolls)[0]
    # steps of fourth order: 1e-9 of the way
    np.testing.assert_allclose(tr.q[-1, 4:6] - tr.q[first, 4:6], velocity[:2] * (4.0 - tr.t[first]), rtol=1e-8)


def test_what_slides_and_what_falls_beside_it():
    """A ball that rolls while another one bounces on its own floor is not braked by the impulses of that one."""
    r, b = 0.05, ld.Builder("two")
    for name, restitution in (("rolls", 0.0), ("bounces", 0.8)):
        b.body(name, 1.0, inertia=(0.4 * r * r,) * 3)
        b.joint(name, "free", "ground", name)
        b.constraint(f"floor of {name}", "sphere_on_plane", "ground", name, radius=r, unilateral=True, friction=0.3,
                     restitution=restitution)
    robot = b.build()
    q = [0, 0, 0, 1, 0, 0, r, 0, 0, 0, 1, 0, 2, 0.1]
    tr = ld.simulate(robot, q, [0, 1 / r, 0, 1, 0, 0, 5, 0, 0, 0, 0, 0], 1.5, method="moreau")
    assert sum(event.name == "contact floor of bounces" for event in tr.events) > 5
    assert np.linalg.norm(tr.v[-1, 3:6]) == pytest.approx(1.0, rel=1e-6)
    assert np.linalg.norm(tr.v[-1, :3]) == pytest.approx(1 / r, rel=1e-6)


def standing_disk(tilt, friction):
    """A disk that stands on its rim, tilted: it falls flat, where its rows have no direction."""
    b = ld.Builder("coin")
    b.body("coin", mass=1.0, inertia=(0.01, 0.02, 0.01))
    b.joint("j", "free", "ground", "coin")
    b.constraint("rim", "disk_on_plane", "ground", "coin", radius=0.2, child_axis=(0, 1, 0), unilateral=True,
                 friction=friction)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, np.r_[tilt, 0, 0, 0, 0, 0])
    q[6] = 0.2 * np.cos(tilt)
    return robot, q


@pytest.mark.parametrize("tilt, friction", [(0.05, 0.5), (0.2, 0.5), (0.1, 0.5), (0.3, 2.0)])
def test_a_coin_that_falls_flat_comes_to_rest(tilt, friction):
    robot, q = standing_disk(tilt, friction)
    tr = ld.simulate(robot, q, np.zeros(6), 2.0)
    assert abs(ld.pose(robot, tr.q[-1], "coin")[2, 1]) == pytest.approx(1.0, abs=1e-9)
    assert np.abs(tr.v[-1]).max() < 1e-2 and abs(tr.q[-1, 6]) < 1e-9
    energy = ld.kinetic_energy(robot, tr.q, tr.v) + ld.potential_energy(robot, tr.q)
    assert (np.diff(energy) < 1e-6).all()


def test_a_run_that_ends_at_a_flat_disk_says_so():
    robot, q = standing_disk(0.2, 0.5)
    with pytest.raises(ld.SimulationError, match="disk of 'rim' lies almost flat"):
        ld.simulate(robot, q, np.zeros(6), 2.0, accumulation="error")
