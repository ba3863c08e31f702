"""Second derivatives of mechanisms with taut cables that do not stretch: by hand at fifty digits, and differences."""
import math

import mpmath
import numpy as np
import pytest
from comparison import off
from test_second_order_models import closed_near, velocity_with
from test_state_sensitivities import sixth_order

import liedyn as ld
from liedyn.mechanics.constraints.independent import by_name
from tests.mechanics.test_inextensible_cables import UPRIGHT, belt_drive, strung


def string_round_a_wheel():
    """A bob in a plane, on a string of length 2 from (-0.3, -0.4) over a wheel of radius 0.3."""
    b = ld.Builder("string over a wheel", gravity=(0.0, 0.0, -9.81))
    b.body("bob", 0.7, inertia=(0.4, 0.4, 0.4))
    b.joint("plane", "planar", "ground", "bob", axis=(0, 1, 0))
    wheel = ld.Pulley("ground", UPRIGHT, 0.3, -1)
    b.cable("string", [("ground", (-0.3, 0.0, -0.4)), wheel, ("bob", (0.0, 0.0, 0.0))], length=2.0, stiffness=math.inf)
    return b.build()


@pytest.mark.validation("second derivatives of a bob on a string that winds round a wheel",
                        robots="string over a wheel", oracle="mpmath, 50 digits")
def test_a_string_that_winds_round_a_wheel_agrees_with_fifty_digits():
    """With the string's free length l = l_1 + R phi the bob is at R (cos phi, sin phi) + l (sin phi, -cos phi)."""
    robot, m, g, R = string_round_a_wheel(), 0.7, 9.81, 0.3
    with mpmath.workdps(50):
        r, G, mass = (mpmath.mpf(x) for x in (R, g, m))
        l_1 = 2 - mpmath.mpf(0.4) - mpmath.pi * r

        def place(phi):
            l = l_1 + r * phi
            return r * mpmath.cos(phi) + l * mpmath.sin(phi), r * mpmath.sin(phi) - l * mpmath.cos(phi), l

        start = mpmath.mpf("0.7")

        def motion(x, w):
            """Acceleration of x, and tension, of the bob at x with the speed w along x."""
            phi = mpmath.findroot(lambda phi: place(phi)[0] - x, start)
            l = place(phi)[2]
            rate = w / (l * mpmath.cos(phi))
            second = -(r * rate**2 + G * mpmath.sin(phi)) / l
            along = r * mpmath.cos(phi) - l * mpmath.sin(phi)
            return along * rate**2 + l * mpmath.cos(phi) * second, mass * (l * rate**2 + G * mpmath.cos(phi))

        x, z, _ = place(start)
        x, w = float(x), 0.9
        exact = [[[float(mpmath.diff(lambda y, s, k=k: motion(y, s)[k], (x, w), order)) for order in orders]
                  for orders in (((2, 0), (1, 1)), ((1, 1), (0, 2)))] for k in range(2)]
        phi = mpmath.findroot(lambda phi: place(phi)[0] - x, start)
        z, slope = float(place(phi)[1]), float(mpmath.tan(phi))
        first = float(motion(x, w)[0])
    names = robot.coordinate_names
    places = np.array([ld.pose(robot, each, "bob")[:3, 3] for each in np.eye(3)])  # of unit coordinates
    at = np.linalg.lstsq(places[:2].T, [x, 0.0, z], rcond=None)[0]
    k = int(abs(places[:2, 0]).argmax())
    sign = places[k, 0]
    q, v = np.array([*at, 0.4]), np.array([*np.linalg.lstsq(places[:2].T, [w, 0.0, w * slope], rcond=None)[0], 0.3])
    ss = ld.linearize(robot, q, v, np.zeros(3), independent=(names[k], names[2]), second=True)
    assert sign * ss.a[k] == pytest.approx(first, rel=1e-12)
    pick = np.ix_([0, 2], [0, 2])
    assert off(sign * ss.second.a[k][pick], np.array(exact[0])) < 1e-12
    assert off(ss.second.lam[0][pick], np.array(exact[1])) < 1e-12


def tackle():
    """A floating tree and cables over points, a wheel, wheels with a sense and a sphere."""
    b, q = strung()
    for name in ("beside", "round"):
        b.remove("constraint", name)
    return b.build(), q


def belts():
    """A belt round a slider's wheel and an idler on an arm that swings, and its tight shape is not there."""
    b = belt_drive(1, active="sticking")
    for name in ("belt", "tight"):
        b.remove("constraint", name)
    b.body("bob", 0.4, inertia=(0.01, 0.02, 0.03))
    b.joint("hang", "spherical", "arm", "bob", (0.1, 0.0, 0.0))
    robot = b.build()
    q = robot.neutral.copy()
    q[:3] = 0.03, -0.2, -2.0
    b.change("constraint", "rope", length=float(ld.cable_lengths(robot, q)["rope"]))
    return b.build(), q


MACHINES = {"tackle": tackle, "belts": belts}


def moving(name):
    robot, q = MACHINES[name]()
    rng = np.random.default_rng(8)
    rows = ld.constraint_jacobian(robot, q)
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    return robot, q, v - np.linalg.pinv(rows) @ (rows @ v), tau


@pytest.mark.parametrize("name", list(MACHINES))
def test_models_of_neighbouring_states(name):
    robot, q, v, tau = moving(name)
    s = ld.sensitivities(robot, q, v, tau, parameters=(), second=True)
    p, x = s.model.K.shape[1], len(s.model.states)
    y, w = (by_name(robot, [each.removeprefix("velocity:") for each in names]) for names in (
        s.model.states[:p], s.model.states[p:]))

    def model(direction, h):
        dy, dw, du = np.split(h * direction, [p, x])
        there = closed_near(robot, q, y.rows, dy)
        rates = velocity_with(robot, there, w.rows, w.rows @ v + dw)
        found = ld.linearize(robot, there, rates, tau + du, independent=y.names, speeds=w.names)
        return np.hstack([found.A, found.B]), found.a, found.lam

    rng, both = np.random.default_rng(3), np.concatenate([s.A_x, s.B_x], axis=1)
    for direction in rng.normal(size=(2, x + robot.nv)):
        found = sixth_order(lambda h, d=direction: model(d, h)[0], 5e-4)
        assert np.abs(both @ direction - found).max() < 1e-8 * max(1.0, np.abs(found).max())
    here = model(direction, 0.0)
    stencil, h = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]), 1e-3
    sides = [model(direction, k * h) for k in range(-4, 5)]
    for part, at in ((s.model.second.a, 1), (s.model.second.lam, 2)):
        expected = sum(c * (each[at] - here[at]) for c, each in zip(stencil, sides)) / (h * h)
        assert np.abs(part @ direction @ direction - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())
    weights = rng.normal(size=x)
    weighted = ld.linearize(robot, q, v, tau, independent=y.names, speeds=w.names, second=weights).second.f
    assert off(weighted, np.einsum("i,ijk", weights, s.model.second.f)) < 1e-12


@pytest.mark.parametrize("name", list(MACHINES))
def test_parameters_of_robots_with_taut_cables(name):
    robot, q, v, tau = moving(name)
    cable, body = robot.constraint_names[0], robot.body_names[-1]
    parameters = [f"mass:{body}", f"length:{cable}"]
    s = ld.sensitivities(robot, q, v, tau, parameters=parameters)
    p = s.model.K.shape[1]
    y, w = (by_name(robot, [each.removeprefix("velocity:") for each in names]) for names in (
        s.model.states[:p], s.model.states[p:]))

    def changed(k, h):
        b = ld.Builder.of(robot)
        if k == 0:
            b.change("body", body, mass=robot.model.bodies[-1].mass + h)
        else:
            b.change("constraint", cable, length=robot.model.constraints[0].length + h)
        other = b.build()
        there = closed_near(other, q, y.rows, np.zeros(p))
        rates = velocity_with(other, there, w.rows, w.rows @ v)
        found = ld.linearize(other, there, rates, tau, independent=y.names, speeds=w.names)
        return np.concatenate([found.A.ravel(), found.B.ravel(), found.a, found.lam, found.f0])

    for k in range(2):
        found = sixth_order(lambda h, k=k: changed(k, h), 1e-3)
        mine = np.concatenate([x[..., k].ravel() for x in (s.A, s.B, s.a, s.lam, s.f0)])
        assert np.abs(mine - found).max() < 1e-8 * max(1.0, np.abs(found).max()), parameters[k]


def test_what_would_displace_points_of_a_cable_is_refused():
    b = ld.Builder.of(string_round_a_wheel())
    b.body("hook", 0.1, inertia=(0.01, 0.01, 0.01))
    b.joint("weld", "fixed", "bob", "hook", (0.0, 0.0, 0.1))
    b.cable("leash", [("ground", (0.0, 0.0, 2.0)), ("hook", (0.0, 0.0, 0.0))], length=1.0, stiffness=math.inf,
            active="sticking")
    robot = b.build()
    q = robot.neutral
    with pytest.raises(ld.InputError, match="'placement.x:weld' would displace points of cable 'leash' on their link"):
        ld.sensitivities(robot, q, np.zeros(3), np.zeros(3), parameters=["placement.x:weld"])


def test_lengths_of_elastic_cables_are_parameters():
    """Round a wheel to a pendulum's bob, stretched and in motion, and a spring that pushes along its path."""
    def robot(rope, strut):
        b = ld.Builder.of(string_round_a_wheel())
        b.remove("constraint", "string")
        wheel = ld.Pulley("ground", UPRIGHT, 0.1, 1)
        b.cable("rope", [("ground", (-0.3, 0.0, -0.4)), wheel, ("bob", (0.0, 0.0, 0.0))], length=rope, stiffness=50.0,
                damping=2.0)
        b.cable("strut", [("ground", (1.0, 0.0, 0.0)), ("bob", (0.0, 0.0, 0.0))], length=strut, stiffness=30.0,
                pushes=True)
        return b.build()

    q, v, tau = np.array([0.9, -0.5, 0.2]), np.array([0.3, -0.2, 0.1]), np.zeros(3)
    s = ld.sensitivities(robot(0.8, 2.0), q, v, tau, parameters=["length:rope", "length:strut"])
    for k, step in enumerate(np.eye(2)):
        def model(h, step=step):
            found = ld.linearize(robot(0.8 + h * step[0], 2.0 + h * step[1]), q, v, tau)
            return np.hstack([found.A, found.f0[:, None]])

        mine, found = np.hstack([s.A[..., k], s.f0[:, k:k + 1]]), sixth_order(model, 1e-3)
        assert np.abs(found).max() > 1.0 and np.abs(mine - found).max() < 1e-8 * np.abs(found).max()
