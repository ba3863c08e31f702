"""Regulators and filters exist where the closed loop is stable by a margin; else an error names the motion."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError

H = 0.02


def pair(stiffness, coupling, masses=(1.0, 1.0), damping=0.0, motor=("left", "right")):
    """Two carts on springs, joined by another one; the motor pushes them alike, so that it cannot move them apart."""
    b = ld.Builder("pair", gravity=(0.0, 0.0, 0.0))
    for name, mass, own in zip(("left", "right"), masses, stiffness):
        b.body(name, mass, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        b.joint(name, "prismatic", "ground", name, axis=(1.0, 0.0, 0.0), stiffness=own, damping=damping)
    if coupling:
        b.coordinate_force("coupling", {"left": 1.0, "right": -1.0}, stiffness=coupling)
    b.actuator("motor", dict.fromkeys(motor, 1.0))
    return b.build()


def designs(robot, Q=1.0, R=1.0, h=H, outputs=("left",), noise="states"):
    """The four of them, as functions."""
    return {"lqr": lambda: ld.lqr(robot, robot.home, Q, R), "dlqr": lambda: ld.dlqr(robot, robot.home, h, Q, R),
            "kalman": lambda: ld.kalman(robot, robot.home, Q, R, outputs=outputs, noise=noise),
            "dkalman": lambda: ld.dkalman(robot, robot.home, h, Q, R, outputs=outputs, noise=noise)}


@pytest.mark.parametrize("rate", [0.02, 1.0, 40.0])
@pytest.mark.parametrize("design", ["lqr", "dlqr"])
def test_what_no_motor_moves_apart(design, rate):
    """Undamped, in all of the units of time; steps of a method damp it a little, which is not its own."""
    robot = pair((rate ** 2, rate ** 2), 0.7 * rate ** 2)
    with pytest.raises(InputError, match="no regulator: the motion of (left|right) .* no actuator drives it"):
        designs(robot)[design]()


@pytest.mark.parametrize("rate", [0.02, 1.0, 40.0])
@pytest.mark.parametrize("design", ["kalman", "dkalman"])
def test_what_no_sensor_sees(design, rate):
    """The right cart is on a spring of its own."""
    robot = pair((rate ** 2, 3.0 * rate ** 2), 0.0)
    with pytest.raises(InputError, match="no filter: the motion of right with the eigenvalue .* no output sees it"):
        designs(robot)[design]()


def test_two_alike_of_which_one_is_driven():
    """The same eigenvalue twice: any combination of the two motions has it."""
    robot = pair((2.0, 2.0), 0.0, motor=("left",))
    for name in ("lqr", "dlqr"):
        with pytest.raises(InputError, match="the motion of right .* no actuator drives it"):
            designs(robot)[name]()


def test_what_has_no_weight():
    robot = pair((2.0, 3.0), 0.0)
    for name in ("lqr", "dlqr"):
        with pytest.raises(InputError, match="the motion of right .* Q gives it no weight"):
            designs(robot, Q={"left": 1.0, "velocity:left": 1.0})[name]()


def test_schedules_name_the_node():
    robot = pair((2.0, 3.0), 0.0, motor=("left",))
    with pytest.raises(InputError, match=r"the motion of right .* no actuator drives it; .* \(at left = 0\)"):
        ld.gain_schedule(robot, {"left": [0.0, 0.1]}, 1.0, 1.0)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("design", ["lqr", "dlqr", "kalman", "dkalman"])
def test_a_little_damping_or_coupling_is_enough(design, scale):
    """In all of the units of time: damped by 1e-3 of critical, or moved by the motor by a thousandth."""
    for robot in (pair((scale ** 2, scale ** 2), 0.5 * scale ** 2, damping=2e-3 * scale),
                  pair((scale ** 2, scale ** 2), 0.5 * scale ** 2, masses=(1.0, 1.002))):
        found = designs(robot, Q=np.array([1.0, 1.0, scale ** -2, scale ** -2]) * scale ** 4, h=H / scale)[design]()
        stable = abs(found.eigenvalues) - 1.0 if design.startswith("d") else found.eigenvalues.real
        assert (stable < -1e-7 * (1.0 if design.startswith("d") else scale)).all()


@pytest.mark.parametrize(("mass", "stiffness", "damping"), [(1e8, 1.0, 0.0), (1.0, 0.0, 1e-4), (1e4, 0.0, 1.0)])
def test_slow_beside_fast(mass, stiffness, damping):
    """What takes 1e4 s beside what takes 0.6 ms, each with a motor and a sensor."""
    b = ld.Builder("slow", gravity=(0.0, 0.0, 0.0))
    b.body("slow", mass, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    b.joint("slow", "prismatic", "ground", "slow", stiffness=stiffness, damping=damping)
    b.body("fast", 1e-3, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    b.joint("fast", "prismatic", "ground", "fast", stiffness=1e5, damping=1e-2)
    b.actuator("push", "slow")
    b.actuator("pull", "fast")
    robot = b.build()
    found = designs(robot, R=1e4, outputs=("slow", "fast"), noise="inputs")
    for name in ("lqr", "kalman"):
        assert (found[name]().eigenvalues.real < 0.0).all()


def test_slow_motions_that_are_sampled_often():
    """What takes 1e4 s, a thousand samples in each radian of it."""
    robot = pair((1e-8, 2e-8), 0.0)
    for name, design in designs(robot, Q=1e-10, h=10.0, outputs=("left", "right")).items():
        found = design().eigenvalues
        assert (abs(found) < 1.0).all() if name.startswith("d") else (found.real < 0.0).all()
