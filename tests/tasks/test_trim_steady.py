"""Steady motions: turning governors, disks, carts and bicycles against formulas of their own; what is not steady."""
import functools

import numpy as np
import pytest
from comparison import off
from papers import numbers
from scipy.optimize import fsolve

import liedyn as ld
from liedyn.machine.errors import InputError

G, BICYCLE = 9.81, numbers("bicycle")
published = functools.partial(pytest.mark.validation, oracle="Published benchmarks, exact solutions")


def conical():
    """A point mass on a massless rod of 0.7 m, on a shaft that turns freely."""
    b = ld.Builder("conical", gravity=(0.0, 0.0, -G))
    b.body("arm")
    b.body("bob", 1.0, (0.0, 0.0, -0.7))
    b.joint("turn", "revolute", "ground", "arm", axis=(0, 0, 1), armature=1e-3)
    b.joint("lift", "revolute", "arm", "bob", axis=(0, -1, 0))
    return b.build()


def steadiness(found):
    """The largest rate at which accelerations change."""
    return max(np.abs(x).max() for x in found.drift.values())


def test_held_speeds_by_name_and_in_batches():
    omega = np.array([4.0, 5.0, 6.0])
    found = ld.trim(conical(), [0.0, 0.9], hold={"velocity:turn": omega}, free=["lift"])
    assert np.cos(found.q[:, 1]) == pytest.approx(G / (omega ** 2 * 0.7), rel=1e-9)
    assert np.array_equal(found.v[:, 0], omega) and steadiness(found) < 1e-9
    at_guess = ld.trim(conical(), [0.0, 0.9], [5.0, 0.0], hold=["velocity:turn"], free=["lift"])
    assert np.allclose(at_guess.q, found.q[1], rtol=1e-12)


def test_an_instant_without_acceleration_is_no_steady_motion():
    found = ld.trim(conical(), [0.0, 0.9], hold={"velocity:turn": 5.0, "velocity:lift": 0.1},
                    free=["lift", "force:turn"])
    assert found.reached and steadiness(found) > 0.1


def test_the_governor():
    """Of half of it: the Routhian of the arm's angle and the slider's height, with the moment of inertia I."""
    governor, omega, k = ld.load("governor"), 2.0 * np.pi, 8e5

    def balance(x):
        s, angle = x
        c, sin = np.cos(angle), np.sin(angle)
        x_d, z_d = 0.5 * c, 1.0 - 0.5 * sin - s  # from the slider to the middle of the rod
        length = np.hypot(x_d, z_d)
        pull = k * (length - 0.5) / length
        I_angle = (2.0 * 5.0 * (0.05 + c) * -sin + 2.0 * 0.3 * (0.05 + 0.5 * c) * -0.5 * sin
                   + 2.0 * (5e-6 - 0.0250025) * sin * c)
        V_angle = -5.0 * G * c - 0.3 * G * 0.5 * c + pull * (x_d * -0.5 * sin + z_d * -0.5 * c)
        return [1.5 * G - pull * z_d, V_angle - 0.5 * omega ** 2 * I_angle]

    s, angle = fsolve(balance, [0.5, 0.5], xtol=1e-14)
    found = ld.trim(governor, governor.home, hold={"velocity:spin": omega}, free=["s", "left", "right"])
    # a spring of 8e5 N/m: rounding of forces of 1e2 N is 1e-8 m/s^2 of the slider, which is 1e-14 m
    assert found.q[governor.coordinate_index("s")] == pytest.approx(s, rel=1e-9)
    for side in ("left", "right"):
        assert found.q[governor.coordinate_index(side)] == pytest.approx(angle, rel=1e-9)
    speed = ld.trim(governor, found.q, [6.0, 0.0, 0.0, 0.0], free=["velocity:spin", "s", "right"])
    assert speed.v[0] == pytest.approx(omega, rel=1e-9)


def test_a_rolling_disk_turns_steadily():
    """(C + m r^2) sigma W cos b - A W^2 sin b cos b + m g r sin b = 0: sigma the spin about the axis, W the rate of
    turning, b the lean, by the moment of momentum about the point of contact."""
    m, r = 2.0, 0.3
    A, C = 0.25 * m * r ** 2, 0.5 * m * r ** 2
    b = ld.Builder("disk", gravity=(0.0, 0.0, -G))
    for body in ("carrier", "heading", "side"):
        b.body(body)
    b.body("disk", m, (0.0, 0.0, 0.0), (A, C, A))
    b.joint("hub", "translational", "ground", "carrier")
    b.joint("yaw", "revolute", "carrier", "heading", axis=(0, 0, 1))
    b.joint("lean", "revolute", "heading", "side", axis=(1, 0, 0))
    b.joint("spin", "revolute", "side", "disk", axis=(0, 1, 0))
    b.constraint("floor", "disk_on_plane", "ground", "disk", radius=r, axis=(0, 0, 1), child_axis=(0, 1, 0))
    disk, lean, turning = b.build(), 0.3, 1.2
    q = ld.close(disk, [0.0, 0.0, 0.3, 0.0, 0.0, 0.0], lean=lean)
    found = ld.trim(disk, q, hold={"velocity:yaw": turning}, free=["velocity:spin"])
    # leaning about x by b turns the axis y up: the rate of turning has the part W sin b along it
    sigma = found.v[disk.velocity_index("spin")] + turning * np.sin(lean)
    left = (C + m * r ** 2) * sigma * turning * np.cos(lean) - A * turning ** 2 * np.sin(lean) * np.cos(lean)
    assert abs(left + m * G * r * np.sin(lean)) < 1e-9 and steadiness(found) < 1e-9
    tr = ld.simulate(disk, found.q, found.v, 1.0)
    assert np.ptp(tr["lean"]) < 1e-9


def test_a_shopping_cart_is_held_in_a_turn():
    """Virtual work of the caster: the cart moves with -0.12 / sin(caster) along its axis, its centre of mass is
    accelerated by -0.45 W^2 along that."""
    cart, W = ld.load("shopping_cart"), 0.8
    found = ld.trim(cart, cart.home, hold={"velocity:cart.angle": W, "velocity:caster": 0.0},
                    free=["force:cart.angle", "force:caster"])
    caster = cart.home[3]
    assert found.tau[3] == pytest.approx(12.0 * 0.12 / np.sin(caster) * 0.45 * W ** 2, rel=1e-9)
    assert abs(found.tau[2]) < 1e-9 and steadiness(found) < 1e-9


@published("torque and angle of the steering in a turn", robots="whipple_bicycle")
def test_a_bicycle_turns_steadily():
    """Small angles as in Meijaard et al. 2007, (g K0 + v^2 K2) (lean, steer) = (0, torque); large ones for 1 s."""
    bicycle, speed = ld.load("whipple_bicycle"), 5.0
    stiffness = 9.81 * np.array(BICYCLE["K0"]) + speed ** 2 * np.array(BICYCLE["K2"])

    def turn(lean):
        return ld.trim(bicycle, bicycle.home, hold={"lean": lean, "velocity:rear_wheel": -speed / 0.3,
                                                    "velocity:lean": 0.0, "velocity:steer": 0.0},
                       free=["lean", "steer", "force:steer"])

    small, large = turn(1e-4), turn(0.2)
    steer = small.q[bicycle.coordinate_index("steer")]
    # in nonlinear terms the next power of the lean is 1e-8 of it
    assert off([steer / 1e-4], [-stiffness[0, 0] / stiffness[0, 1]]) < 1e-7
    torque = small.tau[bicycle.velocity_index("steer")]
    assert off([torque / 1e-4], [stiffness[1] @ [1.0, steer / 1e-4]]) < 1e-7
    assert steadiness(large) < 1e-9
    tr = ld.simulate(bicycle, large.q, large.v, 1.0, tau=large.tau)
    assert np.ptp(tr["lean"]) < 1e-8 and np.ptp(tr["yaw"]) > 0.4


def test_what_cannot_be_held_is_said():
    with pytest.raises(InputError, match="velocities turn, lift, .* unknown|unknown 'velocity:trun'"):
        ld.trim(conical(), [0.0, 0.9], hold={"velocity:trun": 5.0}, free=["lift"])
    with pytest.raises(InputError, match="free: 'velocity:turn' is held as well"):
        ld.trim(conical(), [0.0, 0.9], hold={"velocity:turn": 5.0}, free=["velocity:turn"])
    with pytest.raises(InputError, match="velocities boom, bucket, lift_rod are not independent"):
        loader = ld.load("loader")
        ld.trim(loader, loader.home, hold={"velocity:boom": 1.0, "velocity:bucket": 0.0, "velocity:lift_rod": 0.0})
    with pytest.raises(InputError, match="leading axes do not broadcast"):
        ld.trim(conical(), np.zeros((2, 2)), hold={"velocity:turn": [1.0, 2.0, 3.0]}, free=["lift"])
