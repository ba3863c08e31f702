"""Equilibria and steady motions: nothing accelerates, closed forms, and what cannot be is said."""
import warnings

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError

LOADER = ld.load("loader")


def accelerations(robot, found):
    return ld.forward_dynamics(robot, found.q, found.v, found.tau).a


def pendulum(**spring):
    b = ld.Builder("pendulum", gravity=(0.0, -9.81, 0.0))
    b.body("rod", mass=2.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 0.1, 0.1))
    b.joint("pivot", "revolute", "ground", "rod", **spring)
    b.actuator("motor", "pivot", gear=2.0)
    return b.build()


def test_which_inputs_hold_a_pose():
    found = ld.trim(LOADER, LOADER.home, free=LOADER.actuator_names)
    expected = ld.inverse_dynamics(LOADER, LOADER.home, np.zeros(8), np.zeros(2)).u
    assert found.reached and np.allclose(found.u, expected, rtol=1e-9)
    assert np.array_equal(found.q, LOADER.home) and found.freedom == 0
    assert np.abs(accelerations(LOADER, found)).max() < 1e-8


def test_where_it_comes_to_rest():
    robot = pendulum(stiffness=30.0, rest=0.2)
    found = ld.trim(robot, [0.0], u=[1.5])
    x = found.q[0]
    assert 30.0 * (x - 0.2) + 2.0 * 9.81 * 0.5 * np.cos(x) - 2.0 * 1.5 == pytest.approx(0.0, abs=1e-9)
    below = ld.trim(pendulum(), [-1.0])  # hanging
    assert below.q[0] == pytest.approx(-0.5 * np.pi, abs=1e-10)
    above = ld.trim(pendulum(), [1.3])  # Newton finds unstable ones as well
    assert above.q[0] == pytest.approx(0.5 * np.pi, abs=1e-10)


def test_springs_that_are_far_from_rest():
    """Where Newton's method comes to a halt between equilibria: chains come to rest in a minimum of their energy."""
    rng = np.random.default_rng(5)
    relaxed = 0
    for _ in range(12):
        b, below = ld.Builder("chain", gravity=(0.3 * rng.normal(), -1.0, 0.0)), "ground"
        for k in range(3):
            b.body(f"rod{k}", rng.uniform(0.5, 2.0), (0.5, 0.05, 0.0), (0.0, 0.05, 0.05))
            b.joint(f"joint{k}", "revolute", below, f"rod{k}", placement=(float(k > 0), 0.0, 0.0),
                    stiffness=rng.uniform(0.5, 6.0), rest=rng.uniform(-2.5, 2.5))
            below = f"rod{k}"
        b.spring("spring", "ground", below, (*rng.uniform(-1.0, 2.0, 2), 0.0), (0.8, 0.0, 0.0), length=0.5,
                 stiffness=rng.uniform(0.0, 20.0))
        robot = b.build()
        found = ld.trim(robot, rng.uniform(-2.0, 2.0, 3))
        assert np.abs(accelerations(robot, found)).max() < 1e-8
        if found.iterations > 30:
            relaxed += 1
            values = ld.linearize(robot, found.q, found.v, found.tau).eigenvalues()
            assert np.abs(values.real).max() < 1e-6 * np.abs(values).max()
    assert relaxed > 3


def test_a_mix_of_coordinates_and_inputs():
    """The boom is let go under a given cylinder force; the tilt cylinder holds the bucket where it is."""
    held = ld.trim(LOADER, LOADER.home, free=LOADER.actuator_names)
    start = ld.close(LOADER, LOADER.home, boom=0.03)
    found = ld.trim(LOADER, start, u=held.u, hold={"bucket": LOADER.home[LOADER.coordinate_index("bucket")]},
                    free=["boom", "bucket", "tilt_cylinder"])
    assert np.allclose(found.q, held.q, rtol=0.0, atol=1e-8) and np.allclose(found.u, held.u, rtol=1e-8)
    moved = ld.trim(LOADER, LOADER.home, hold={"boom": 0.1, "bucket": -0.1}, free=["boom", "bucket",
                                                                                   *LOADER.actuator_names])
    assert moved.q[LOADER.coordinate_index("boom")] == pytest.approx(0.1, abs=1e-12)
    assert np.abs(accelerations(LOADER, moved)).max() < 1e-7


def test_a_conical_pendulum_turns_steadily():
    """tan(angle) = speed^2 radius / gravity, for a point mass."""
    b = ld.Builder("conical", gravity=(0.0, 0.0, -9.81))
    b.body("arm")
    b.body("bob", 1.0, (0.0, 0.0, -0.7))
    b.joint("turn", "revolute", "ground", "arm", axis=(0, 0, 1), armature=1e-3)
    b.joint("lift", "revolute", "arm", "bob", axis=(0, -1, 0))
    robot = b.build()
    omega = 5.0
    found = ld.trim(robot, [0.0, 0.9], [omega, 0.0], free=["lift"])
    assert np.cos(found.q[1]) == pytest.approx(9.81 / (omega ** 2 * 0.7), rel=1e-9)
    speed = ld.trim(robot, [0.0, 0.8], [3.0, 0.0], free=["velocity:turn"])
    assert speed.v[0] ** 2 == pytest.approx(9.81 / (0.7 * np.cos(0.8)), rel=1e-9)


def test_loops_springs_and_cut_joints():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("spring", {"pin": 1.0}, rest=0.4, stiffness=2.0)
    b.actuator("motor", "q1")
    b.actuator("pin motor", "pin")
    robot = b.build()
    found = ld.trim(robot, robot.home, free=["motor", "pin motor"])
    assert np.abs(accelerations(robot, found)).max() < 1e-9
    batch = ld.trim(robot, np.stack([robot.home, ld.close(robot, robot.home, q1=robot.home[0] + 0.1)]),
                    free=["motor", "pin motor"])
    assert batch.u.shape == (2, 2) and np.allclose(batch.u[0], found.u, rtol=1e-9) and batch.reached.all()


def test_robots_without_actuators():
    robot = ld.load("five_bar")
    found = ld.trim(robot, robot.home, free=["force:q1", "force:q4"])
    assert not found.tau[1:3].any() and np.abs(accelerations(robot, found)).max() < 1e-9
    more = ld.trim(robot, robot.home, free=["force:q1", "force:q2", "force:q4"])
    assert more.freedom == 1  # one more than it takes: the smallest change


def test_what_hardly_any_inertia_resists():
    """The delta robot has rods between balls of 6 mg that spin freely: rounding accelerates them by 1e-8 /s^2."""
    delta = ld.load("delta")
    found = ld.trim(delta, delta.home, free=delta.actuator_names)
    rest = np.zeros(delta.nv)
    S = ld.linearize(delta, delta.home, rest, rest).S
    weight, drive = S.T @ ld.rnea(delta, delta.home, rest, rest), S.T @ ld.actuator_matrix(delta, delta.home)
    assert found.reached and np.allclose(found.u, np.linalg.lstsq(drive, weight, rcond=None)[0], rtol=1e-9)


def test_constraints_that_move():
    """At an instant, the pin moves: the speeds are those of nothing but the pin."""
    five_bar = ld.load("five_bar")
    moving = five_bar.with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0])).at(0.5)
    q = ld.close(moving, moving.home)
    found = ld.trim(moving, q, free=["force:q1", "force:q4"])
    assert np.allclose(found.v, ld.complete_velocity(moving, q, {"q1": 0.0, "q4": 0.0}), atol=1e-12)
    assert np.abs(ld.velocity_error(moving, found.q, found.v)).max() < 1e-12
    w = [five_bar.velocity_names.index(name) for name in found.residual]
    assert np.abs(accelerations(moving, found)[w]).max() < 1e-9


def test_bounds():
    robot = pendulum(stiffness=30.0)
    held = ld.trim(robot, [0.1], hold=["pivot"], free=["pivot", "motor"], bounds={"motor": (0.0, 50.0)})
    assert held.u[0] == pytest.approx(0.5 * (30.0 * 0.1 + 9.81 * np.cos(0.1)), rel=1e-9)
    with pytest.raises(ld.TrimError, match="pivot still accelerates by .* within its bounds") as info:
        ld.trim(robot, [0.1], free=["motor"], bounds={"motor": (0.0, 2.0)})
    assert info.value.nearest.u[0] == pytest.approx(2.0, abs=1e-9) and not info.value.nearest.reached
    with pytest.raises(InputError, match="bounds of 'motor': the guess 0 is outside"):
        ld.trim(robot, [0.1], free=["motor"], bounds={"motor": (1.0, 2.0)})


def test_what_cannot_be_is_said():
    falling = ld.Builder("falling")
    falling.body("stone", 1.0)
    falling.joint("z", "prismatic", "ground", "stone")
    with pytest.raises(ld.TrimError, match="z still accelerates by -9.81 .* nothing that is free changes that"):
        ld.trim(falling.build(), [0.0])
    with pytest.raises(InputError, match="free: unknown 'mtor', did you mean 'motor'"):
        ld.trim(pendulum(), [0.0], free=["mtor"])
    with pytest.raises(InputError, match="boom, boom_2 are not independent|unknown"):
        ld.trim(LOADER, LOADER.home, free=["boom", "boom_2"])
    with pytest.raises(InputError, match="nothing is free"):
        ld.trim(pendulum(), [0.0], free=[])
    b = ld.Builder.of(falling.build())
    b.constraint("floor", "coupling", coefficients={"z": 1.0}, unilateral=True)
    assert ld.trim(b.build(), [0.0]).contacts == {"floor": "sliding"}
    with pytest.raises(ld.TrimError, match="z still accelerates by -9.81"):
        ld.trim(b.build(), [0.1])  # above the floor
    assert ld.trim(b.build().switched(floor="sticking"), [0.0]).reached


def test_what_is_said_is_said_of_the_result():
    """A platform that nothing holds falls past singular poses to where it hangs, without a word about them."""
    robot = ld.load("stewart")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = ld.trim(robot, robot.home)
    with warnings.catch_warnings(record=True) as of_result:
        warnings.simplefilter("always")
        ld.linearize(robot, found.q, found.v, u=found.u)
    assert found.reached and len(told) == len(of_result)
