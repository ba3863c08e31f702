"""Second derivatives of linear models with force elements: SymPy at fifty digits, differences, formulas by hand."""
import warnings

import numpy as np
import pytest
import sympy
from comparison import off
from numba import njit
from test_second_order_models import closed_near, velocity_with
from test_sensitivities import rubbery_five_bar, springy_five_bar

import liedyn as ld
from liedyn.mechanics.constraints.independent import by_name

STENCIL = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
"""Second differences of eighth order."""


def floating_tree():
    """A free hull with a ball and a hinge, on cables round a cylinder and a sphere, with thrusters and a ram."""
    b, rng = ld.Builder("drone", gravity=(0.0, 0.0, -9.81)), np.random.default_rng(5)
    for k, (kind, parent) in enumerate((("free", "ground"), ("spherical", "part0"), ("revolute", "part1"))):
        b.body(f"part{k}", 1.0 + k, 0.2 * rng.normal(size=3), np.diag([0.3, 0.4, 0.5]))
        b.joint(f"joint{k}", kind, parent, f"part{k}", 0.3 * rng.normal(size=3), stiffness=0.5, damping=0.1)
    over = ld.Pulley("part0", (0.1, 0.0, 0.2), 0.2)
    b.cable("wheel", [("ground", (2.0, 0.5, 1.0)), over, ("part2", (-1.5, 0.4, 0.7))], length=0.3, stiffness=8.0,
            damping=0.5, pushes=True)
    b.cable("ball", [("part1", (1.0, 1.5, 0.2)), ld.Pulley("part2", (0.0, 0.1, 0.0), 0.15, shape="sphere"),
                     ("part0", (-1.0, -1.2, 0.3)), ("ground", (0.0, 0.0, 3.0))],
            stiffness=5.0, damping=0.2, pushes=True)
    b.winch("winch", [("part0", (0.2, 0.3, 0.1)), ("ground", (0.0, 1.0, 4.0))], gear=2.0)
    b.thruster("jet", "part2", (0.1, 0.2, 0.0), force=(0.3, 0.1, 2.0), torque=(0.0, 0.1, 0.2))
    b.thruster("hook", "part1", (0.0, 0.1, 0.0), force=(1.0, 0.5, 0.0), axes="world")
    b.cylinder("ram", "part0", "part2", (0.1, 0.2, 0.3))
    b.bushing("mount", "part0", "part2", (0.3, 0.1, 0.2), (0.1, 0.0, -0.2), stiffness=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
              damping=0.1)
    b.spring("gas", "ground", "part1", (0.5, 0.5, 1.0), law=ld.GasSpring(2.0, column=9.0, exponent=1.2, damping=0.1))
    return b.build()


def at_cuts():
    """A five-bar with a spring, a motor and an actuator on coordinates of its cut joint."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("wind_up", {"pin": 1.0, "q1": 0.5}, law=ld.PolynomialSpring(2.0, 0.4, 0.3, 0.2, 0.1, 0.05))
    b.coordinate_force("drive", {"q2": 1.0}, law=ld.Motor(stall_torque=2.0, no_load_speed=8.0))
    b.actuator("second_motor", "pin")
    return b.build()


MACHINES = {"springs": springy_five_bar, "bushings": rubbery_five_bar, "cut joints": at_cuts, "cables": floating_tree}


def moving_state(robot, seed=2):
    rng = np.random.default_rng(seed)
    q = ld.integrate(robot, robot.home, 0.05 * rng.normal(size=robot.nv))
    v = rng.normal(size=robot.nv)
    if robot.row_names:
        q = ld.close(robot, q)
        G = ld.constraint_jacobian(robot, q)
        v = v - np.linalg.pinv(G, rcond=1e-9) @ (G @ v)
    return q, v, rng.normal(size=len(robot.actuator_names))


@pytest.mark.parametrize("name", list(MACHINES))
def test_force_elements_have_second_derivatives(name):
    """Along a path of the mechanism, second differences of accelerations and multipliers."""
    robot = MACHINES[name]()
    q, v, u = moving_state(robot)
    ss = ld.linearize(robot, q, v, u=u, second=True)
    p, x = ss.K.shape[1], len(ss.states)
    of_y, of_w = (by_name(robot, [each.removeprefix("velocity:") for each in names]).rows for names in (
        ss.states[:p], ss.states[p:]))
    direction = np.random.default_rng(0).normal(size=x + len(u))
    direction /= np.linalg.norm(direction)

    def found(h):
        dy, dw, du = np.split(h * direction, [p, x])
        there = closed_near(robot, q, of_y, dy)
        rates = velocity_with(robot, there, of_w, of_w @ v + dw)
        result = ld.forward_dynamics(robot, there, rates, u=u + du)
        return np.concatenate([result.a, result.lam])

    expected = np.concatenate([np.einsum("ijk,j,k", each, direction, direction) for each in (
        ss.second.a, ss.second.lam)])
    errors = [np.abs(sum(c * found(h * k) for c, k in zip(STENCIL, range(-4, 5))) / h ** 2 - expected).max()
              for h in (2e-2, 1e-2)]
    assert min(errors) < 2e-8 * np.abs(expected).max()
    weights = np.random.default_rng(1).normal(size=x)
    H = ld.linearize(robot, q, v, u=u, second=weights).second.f
    whole = np.einsum("i,ijk", weights, ss.second.f)
    assert np.abs(H - whole).max() < 1e-12 * np.abs(ss.second.f).max()
    for tensor in (ss.second.f, ss.second.a, ss.second.lam):
        assert np.abs(tensor - tensor.swapaxes(1, 2)).max(initial=0.0) <= 1e-13 * np.abs(tensor).max(initial=1.0)


def exact_pendulum():
    """A pendulum on a gas spring and a drag in SymPy: its acceleration, as a function of (angle, rate, torque)."""
    y, w, u = sympy.symbols("y w u")
    number = sympy.Rational
    tip = sympy.Matrix([sympy.cos(y), sympy.sin(y)]) * number(1, 2)
    length = sympy.sqrt((tip - sympy.Matrix([number(3, 10), number(6, 5)])).dot(tip - sympy.Matrix([
        number(3, 10), number(6, 5)])))
    x, rate = length - number(2, 5), sympy.diff(length, y) * w
    gas = -20 * (1 + x / number(9, 5)) ** -number(13, 10) + number(2, 5) * rate
    drag = number(1, 5) * w + number(1, 20) * w ** 3
    return (y, w, u), (u - sympy.diff(length, y) * gas - drag) / (number(1, 4) + 2 * number(1, 4) ** 2)


@pytest.mark.validation("second derivatives of mechanisms with force elements", robots="a pendulum on a gas spring",
                        oracle="SymPy, 50 digits")
def test_a_pendulum_on_a_gas_spring_agrees_with_fifty_digits():
    b = ld.Builder("pendulum", gravity=(0.0, 0.0, 0.0))
    b.body("rod", 2.0, (0.25, 0.0, 0.0), (0.1, 0.2, 0.25))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 0, 1))
    b.spring("gas", "ground", "rod", (0.3, 1.2, 0.0), (0.5, 0.0, 0.0), length=0.4,
             law=ld.GasSpring(force=20.0, column=1.8, exponent=1.3, damping=0.4))
    b.coordinate_force("drag", {"hinge": 1.0}, law=ld.PolynomialSpring(damping=0.2, cubic_damping=0.05))
    robot, (symbols, a) = b.build(), exact_pendulum()
    rng = np.random.default_rng(4)
    for y, w, u in rng.normal(size=(3, 3)):
        ss = ld.linearize(robot, [y], [w], u=[u], second=True)
        at = dict(zip(symbols, map(sympy.Float, (y, w, u), [50] * 3)))
        assert abs(ss.f0[1] - float(a.evalf(50, subs=at))) < 1e-12 * abs(ss.f0[1])
        exact = np.array([[float(sympy.diff(a, j, k).evalf(50, subs=at)) for j in symbols] for k in symbols])
        assert off(ss.second.f[1], exact) < 1e-12 and not ss.second.f[0].any()


def test_a_rope_on_a_wheel_agrees_with_its_formula():
    """Its length grows with the angle by a helix, up to third derivatives by hand."""
    b = ld.Builder("swing")
    b.body("arm", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("turn", "revolute", "ground", "arm", axis=(0, 0, 1))
    b.cable("rope", [("ground", (-1.0, 0.0, 0.3)), ld.Pulley("ground", radius=0.2, turn=1), ("arm", (1.0, 0.0, -0.3))],
            stiffness=1.5, damping=0.3, pushes=True)
    robot, angle, rate = b.build(), 0.4, 0.7
    flat = 2.0 * np.sqrt(1.0 - 0.04) + 0.2 * (np.pi + angle - 2.0 * np.arccos(0.2))
    L = np.hypot(flat, 0.6)
    L_1 = 0.2 * flat / L
    L_2 = (0.04 - L_1 ** 2) / L
    L_3 = -3.0 * L_1 * L_2 / L
    f, f_1 = 1.5 * L + 0.3 * L_1 * rate, 1.5 * L_1 + 0.3 * L_2 * rate
    f_2 = 1.5 * L_2 + 0.3 * L_3 * rate
    crossed = 0.3 * 2.0 * L_1 * L_2
    expected = -np.array([[f_2 * L_1 + 2.0 * f_1 * L_2 + f * L_3, crossed], [crossed, 0.0]])
    found = ld.linearize(robot, [angle], [rate], u=[0.0], second=True).second.f[1, :2, :2]
    assert np.abs(found - expected / 0.1).max() < 1e-11 * np.abs(expected).max() / 0.1


def test_users_laws_and_feedback_are_named():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("hard", {"q1": 1.0}, law=njit(lambda x, w: (x ** 3, 3.0 * x * x, 0.0)))
    robot = b.build()
    q, rest = robot.home, np.zeros(4)
    with pytest.raises(ld.InputError, match="force element 'hard' has a law that is a user's function"):
        ld.linearize(robot, q, rest, rest, second=True)
    assert ld.curvature(robot, q, ("q1", "q2")).second.shape == (4, 2, 2)
    gain = np.zeros((4, 4))
    with pytest.raises(ld.InputError, match="second derivatives of feedback are not known"):
        ld.linearize(ld.load("five_bar"), q, rest, (lambda t, q, v: rest, lambda t, q, v: (gain, gain)), second=True)


def test_batches_with_force_elements():
    robot = springy_five_bar()
    states = [moving_state(robot, seed) for seed in (2, 3, 4)]
    q, v, u = (np.array(each) for each in zip(*states))
    for each in (q, v, u):
        each.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = ld.linearize(robot, q, v, u=u, independent=("q1", "q2"), second=True)
        for b in range(3):
            one = ld.linearize(robot, q[b], v[b], u=u[b], independent=("q1", "q2"), second=True)
            assert np.abs(batch[b].second.f - one.second.f).max() < 1e-11 * np.abs(one.second.f).max()
