"""Virtual couplers: their force, what is stable, and bodies that are dragged about."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.lie import so3_exp, so3_log
from liedyn.motion.simulation.coupler_force import STIFFNESS

PANDA = ld.load("panda")


def handle(robot, body, placement, q):
    return ld.pose(robot, q, body) @ placement


def test_the_force_of_a_spring_and_a_damper():
    rng = np.random.default_rng(8)
    q, v = ld.random_configuration(PANDA, rng), rng.normal(size=7)
    P, device, twist = ld.placement([0.1, -0.2, 0.05], rpy=[0.3, 0.2, -0.7]), np.eye(4), rng.normal(size=6)
    device[:3, :3], device[:3, 3] = so3_exp(rng.normal(size=3)), rng.normal(size=3)
    coupler = ld.VirtualCoupler(PANDA, "panda_hand", P, 300.0, 20.0, 7.0, 0.6)
    assert not coupler.force(q, v).any() and coupler.device is None
    coupler.move(device, twist)
    H, E = handle(PANDA, "panda_hand", P, q), ld.world_jacobian(PANDA, q, "panda_hand")
    arm = ld.pose(PANDA, q, "panda_hand")[:3, :3] @ P[:3, 3]
    J = np.vstack([E[:3], E[3:] - np.cross(arm, E[:3], axis=0)])
    rate = twist - J @ v
    m = 7.0 * so3_log(device[:3, :3] @ H[:3, :3].T) + 0.6 * rate[:3]
    f = 300.0 * (device[:3, 3] - H[:3, 3]) + 20.0 * rate[3:]
    np.testing.assert_allclose(coupler.force(q, v), J.T @ np.concatenate([m, f]), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(coupler.wrench, np.concatenate([m, f]), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(coupler.device, device)
    weak = ld.VirtualCoupler(PANDA, "panda_hand", P, 300.0, 0.0, 7.0, 0.0, largest_force=5.0, largest_moment=0.25)
    weak.move(device)
    weak.force(q, v)
    assert np.linalg.norm(weak.wrench[:3]) == pytest.approx(0.25)
    assert np.linalg.norm(weak.wrench[3:]) == pytest.approx(5.0)
    np.testing.assert_allclose(np.cross(weak.wrench[3:], device[:3, 3] - H[:3, 3]), 0.0, atol=1e-12)
    coupler.release()
    assert not coupler.force(q, v).any()


def cart_on_a_rail(m):
    builder = ld.Builder("rail", gravity=(0.0, 0.0, 0.0))
    builder.body("cart", m)
    builder.joint("x", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0))
    return builder.build()


def amplitude(robot, k, d, dt, steps):
    """Largest deviation in the last tenth of the steps, from one at first; forces held over each step."""
    coupler, stepper = ld.VirtualCoupler(robot, "cart", None, k, d), ld.Stepper(robot, [1.0], [0.0], dt)
    coupler.move([0.0, 0.0, 0.0])
    found = []
    for _ in range(steps):
        stepper.step(coupler.force(stepper.q, stepper.v))
        found.append(abs(stepper.q[0]))
    return max(found[-steps // 10:])


@pytest.mark.parametrize("below, above", [
    ((1.95, 1.0), (2.05, 1.0)),  # k dt / d against 2, with a damper far from its own bound
    ((0.1, 1.95), (0.1, 2.02)),  # d dt / m against 2
])
def test_the_bounds_of_stability_are_sharp(below, above):
    m, dt = 3.0, 1e-3
    robot = cart_on_a_rail(m)

    def numbers(stiff, damped):
        d = damped * m / dt
        return stiff * d / dt, d

    for case, stable in ((below, True), (above, False)):
        k, d = numbers(*case)
        coupler = ld.VirtualCoupler(robot, "cart", None, k, d)
        if stable:
            coupler.check([0.0], dt)
            assert amplitude(robot, k, d, dt, 400) < 0.2
        else:
            with pytest.raises(ld.InputError, match="is above 2 damping / dt" if case[0] > 2 else "the largest is"):
                coupler.check([0.0], dt)
            assert amplitude(robot, k, d, dt, 400) > 2.0


def test_the_mass_is_that_of_the_constrained_mechanism():
    """The largest damping named is 2 m / dt for the m that answers a force there, loops closed."""
    robot, dt, place = ld.load("five_bar"), 1e-3, [1.5, 0.0, 0.0]
    q, rest = robot.home, np.zeros(4)
    coupler = ld.VirtualCoupler(robot, "link2", place, 1.0, 1e9)
    E = ld.world_jacobian(robot, q, "link2")
    arm = ld.pose(robot, q, "link2")[:3, :3] @ place
    J = E[3:] - np.cross(arm, E[:3], axis=0)
    free = ld.forward_dynamics(robot, q, rest, rest).a
    W = np.array([J @ (ld.forward_dynamics(robot, q, rest, row).a - free) for row in J])
    m = 1.0 / np.linalg.eigvalsh(W).max()
    with pytest.raises(ld.InputError, match=f"the largest is {2.0 * m / dt:g}, "):
        coupler.check(q, dt)
    stepper = ld.Stepper(robot, q, rest, dt)
    with pytest.raises(ld.InputError, match="coupler on 'link2'"):
        stepper.couple(coupler)
    assert stepper.couplers == ()
    stepper.couple(ld.VirtualCoupler(robot, "link2", place, 1.0, 0.99 * 2.0 * m / dt))
    with pytest.raises(ld.InputError, match="another robot"):
        stepper.couple(ld.VirtualCoupler(PANDA, "panda_hand", None, 1.0, 0.1))
    with pytest.raises(ld.InputError, match="nothing to move"):
        ld.VirtualCoupler.tuned(robot, "link1", None, q, 1.0)  # its origin is the support


def test_a_device_that_is_to_stay_passive():
    """b > k T / 2 + d (Colgate and Schenkel 1997)."""
    robot = cart_on_a_rail(3.0)
    fine = ld.VirtualCoupler(robot, "cart", None, 999.0, 2.0, device_damping=2.5)
    fine.check([0.0], 1e-3)
    with pytest.raises(ld.InputError, match="not passive.*largest stiffness is 1000 "):
        ld.VirtualCoupler(robot, "cart", None, 1001.0, 2.0, device_damping=2.5).check([0.0], 1e-3)


def test_a_switch_that_makes_a_body_too_light():
    robot = ld.load("five_bar")
    stepper = ld.Stepper(robot, robot.home, np.zeros(4))
    heavy = 2.0 / 1e-3 * 0.98 / _largest(robot, "link4", [0.5, 0.0, 0.0])
    stepper.couple(ld.VirtualCoupler(robot, "link4", [0.5, 0.0, 0.0], 1.0, heavy))
    with pytest.warns(ld.ConditionWarning, match="coupler on 'link4'"):
        stepper.switch("pin", False)
    assert stepper.active == ()


def _largest(robot, body, place):
    """Largest eigenvalue of J M_c^-1 J^T."""
    q, rest = robot.home, np.zeros(robot.nv)
    E, arm = ld.world_jacobian(robot, q, body), ld.pose(robot, q, body)[:3, :3] @ place
    J = E[3:] - np.cross(arm, E[:3], axis=0)
    free = ld.forward_dynamics(robot, q, rest, rest).a
    return np.linalg.eigvalsh(np.array([J @ (ld.forward_dynamics(robot, q, rest, r).a - free) for r in J])).max()


# ---- dragged about: Gillespie's interactive mechanisms


DRAGS = {
    # body, place held, how far it is moved in a second, switched while it runs, how near it comes [m]
    "five_bar": ("link2", [1.5, 0.0, 0.0], [0.3, 0.2, 0.0], (), 0.06),
    "shopping_cart": ("basket", [0.9, 0.0, 0.0], [1.0, 0.5, 0.0], ((1.5, "stick", True), (2.0, "stick", False)), 0.001),
    "rolling_disk": ("disk", [0.0, 0.0, 0.0], [0.5, 0.0, 0.0], (
        (0.5, "slides", True), (0.5, "rolls", False), (1.5, "rolls", True), (1.5, "slides", False)), 0.02),
    "spherical_wrist": ("C", [0.0, 0.0, 0.4], [-0.157, 0.187, 0.0], (), 0.05),
    "loader": ("bucket", [1.0, 0.0, 0.0], [0.2, 0.3, 0.0], (), 0.2),
}


@pytest.mark.parametrize("name", DRAGS)
def test_a_body_follows_the_cursor(name):
    """Three seconds at 1 kHz, the cursor moved at 60 Hz: the body comes as near as the spring carries its weight."""
    body, place, far, switches, near = DRAGS[name]
    robot = ld.load(name)
    stepper, P = ld.Stepper(robot, robot.home, np.zeros(robot.nv)), ld.placement(place)
    coupler = ld.VirtualCoupler.tuned(robot, body, place, robot.home, frequency=2.0)
    stepper.couple(coupler)
    start, k = handle(robot, body, P, robot.home)[:3, 3], coupler.numbers[STIFFNESS + 1]
    x = cursor = start
    allowed = ld.potential_energy(robot, robot.home)
    for _ in range(188):
        s = min(stepper.t, 1.0)
        before, cursor = cursor, start + s * s * (3.0 - 2.0 * s) * np.array(far)
        allowed += 0.5 * k * (sum((x - cursor) ** 2) - sum((x - before) ** 2))
        for when, what, on in switches:
            if when <= stepper.t < when + 0.016:
                stepper.switch(what, on)
        coupler.move(cursor)
        stepper.advance(16)
        now = stepper.now
        if now.active:
            assert np.abs(ld.closure_error(now, stepper.q)).max(initial=0.0) < 1e-10
            assert np.abs(ld.velocity_error(now, stepper.q, stepper.v)).max() < 1e-10 * max(1.0, abs(stepper.v).max())
        x = handle(robot, body, P, stepper.q)[:3, 3]
        # no energy but what the hand has put into the spring by moving its end
        energy = ld.kinetic_energy(robot, stepper.q, stepper.v) + ld.potential_energy(robot, stepper.q)
        assert energy + 0.5 * k * sum((x - cursor) ** 2) <= allowed + 1e-9 * abs(allowed)
    assert np.linalg.norm(x - cursor) < near
    assert np.linalg.norm(x - start) > 0.5 * np.linalg.norm(far)


def test_the_wrist_passes_its_singularity():
    """Its middle axis is drawn through zero, where the first and the last axis are one."""
    robot = ld.load("spherical_wrist")
    stepper = ld.Stepper(robot, robot.home, np.zeros(3), 1e-3)
    coupler = ld.VirtualCoupler.tuned(robot, "C", [0.0, 0.0, 0.4], robot.home, frequency=4.0)
    stepper.couple(coupler)
    start, middle = ld.pose(robot, robot.home, "C")[:3, 3] + ld.pose(robot, robot.home, "C")[:3, :3] @ [0, 0, 0.4], []
    for _ in range(150):
        s = min(stepper.t / 1.5, 1.0)
        p = (1.0 - s) * start + s * np.array([-start[0], -start[1], start[2]])
        coupler.move(0.4 * p / np.linalg.norm(p))
        stepper.advance(16)
        middle.append(stepper.q[1])
        assert np.isfinite(stepper.v).all()
    tip = handle(robot, "C", ld.placement([0.0, 0.0, 0.4]), stepper.q)[:3, 3]
    assert np.linalg.norm(tip - coupler.device[:3, 3]) < 0.05
    assert min(np.abs(np.sin(middle))) < 0.05


def test_a_coupler_inside_the_steps_is_the_one_outside():
    robot = ld.load("five_bar")
    inside, outside = (ld.Stepper(robot, robot.home, np.zeros(4)) for _ in range(2))
    couplers = [ld.VirtualCoupler.tuned(robot, "link2", None, robot.home, 3.0, turning=True) for _ in range(2)]
    device = ld.placement([-0.3, 0.9, 0.0], rpy=[0.0, 0.0, 1.0])
    for coupler in couplers:
        coupler.move(device, twist=[0.1, 0.0, 0.0])
    inside.couple(couplers[0])
    for _ in range(50):
        outside.step(couplers[1].force(outside.q, outside.v))
    inside.advance(50)
    np.testing.assert_allclose(inside.q, outside.q, rtol=1e-12)
    np.testing.assert_allclose(couplers[0].wrench, couplers[1].wrench, rtol=1e-9)
    np.testing.assert_array_equal(inside.tau, np.zeros(4))  # those of the user
    inside.couple()
    inside.step()
    assert inside.couplers == ()


@pytest.mark.parametrize("given, match", [
    (dict(body="hand"), "unknown body 'hand'"),
    (dict(placement=[1.0]), r"placement must have shape \(3,\) or \(4, 4\)"),
    (dict(placement=2.0 * np.eye(4)), "placement is no pose"), (dict(stiffness=-1.0), "stiffness must be"),
    (dict(largest_force=np.nan), "largest_force must be"),
])
def test_what_a_coupler_refuses(given, match):
    with pytest.raises(ld.InputError, match=match):
        ld.VirtualCoupler(**dict(robot=PANDA, body="panda_hand", placement=None, stiffness=1.0, damping=1.0) | given)


def test_a_coupler_that_turns_needs_a_pose():
    coupler = ld.VirtualCoupler(PANDA, "panda_hand", None, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ld.InputError, match=r"pose must have shape \(4, 4\)"):
        coupler.move([0.0, 0.0, 0.0])
    with pytest.raises(ld.InputError, match="twist must have shape"):
        coupler.move(np.eye(4), twist=[1.0])
