"""Derivatives of A and B by the state, and of eigenvalues: differences of neighbouring models, formulas by hand."""
import warnings

import numpy as np
import pytest
from test_second_order_elements import at_cuts, floating_tree, moving_state
from test_second_order_models import closed_near, velocity_with

import liedyn as ld
from liedyn.mechanics.constraints.independent import by_name
from tests.linear.test_sensitivities import hanging_chain, springy_five_bar

MACHINES = {"springs": springy_five_bar, "cut joints": at_cuts, "balls in loops": hanging_chain,
            "cables": floating_tree}


def sixth_order(function, h=2e-3):
    return sum(c * (function(k * h) - function(-k * h)) for k, c in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))) / h


@pytest.mark.parametrize("name", list(MACHINES))
def test_models_of_neighbouring_states(name):
    robot = MACHINES[name]()
    q, v, u = moving_state(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = ld.sensitivities(robot, q, v, u=u, parameters=(), second=True)
    p, x = s.model.K.shape[1], len(s.model.states)
    y, w = (by_name(robot, [each.removeprefix("velocity:") for each in names]) for names in (
        s.model.states[:p], s.model.states[p:]))
    assert s.A.shape == (x, x, 0) and s.eigenvalues("states").shape == (x, x + len(u))

    def model(direction, h):
        dy, dw, du = np.split(h * direction, [p, x])
        there = closed_near(robot, q, y.rows, dy)
        rates = velocity_with(robot, there, w.rows, w.rows @ v + dw)
        found = ld.linearize(robot, there, rates, u=u + du, independent=y.names, speeds=w.names)
        return np.hstack([found.A, found.B])

    rng, both = np.random.default_rng(3), np.concatenate([s.A_x, s.B_x], axis=1)
    for direction in [*rng.normal(size=(2, x + len(u))), *np.eye(x + len(u))[:: max(1, x // 4)]]:
        found = sixth_order(lambda h, d=direction: model(d, h))
        assert np.abs(both @ direction - found).max() < 1e-8 * max(1.0, np.abs(found).max())


def rod(stiffness=9.0, damping=0.3):
    """A rod of 2 kg, 1 m above a hinge with a spring, and of inertia 4.5 about it."""
    b = ld.Builder("rod", gravity=(0.0, 0.0, -1.0))
    b.body("rod", 2.0, (0.0, 0.0, 1.0), (1.5, 2.5, 1.2))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0), stiffness=stiffness, damping=damping, rest=0.4)
    return b.build()


def test_eigenvalues_of_a_rod_by_hand():
    """4.5 s^2 + d s + k - 2 g cos y = 0, in equilibrium k (y - 0.4) = 2 g sin y: all derivatives by hand."""
    k, d, I = 9.0, 0.3, 4.5
    robot = rod(k, d)
    rest = ld.trim(robot, [0.5])
    y = rest.q[0]
    assert abs(k * (y - 0.4) - 2.0 * np.sin(y)) < 1e-12
    s = ld.sensitivities(robot, rest.q, rest.v, u=rest.u, parameters=["stiffness:hinge", "rest:hinge", "gravity"],
                         second=True)
    values = s.model.eigenvalues()
    K = k - 2.0 * np.cos(y)
    assert np.abs(I * values ** 2 + d * values + K).max() < 1e-12
    by_K = -1.0 / (2.0 * I * values + d)
    by_states = s.eigenvalues("states")
    assert np.abs(by_states[:, 0] - by_K * 2.0 * np.sin(y)).max() < 1e-12 and np.abs(by_states[:, 1:]).max() < 1e-12
    K_p = np.array([1.0, 0.0, -2.0 * np.cos(y)])  # at this state
    y_p = -np.array([y - 0.4, -k, -2.0 * np.sin(y)]) / K  # of the equilibrium
    assert np.abs(s.eigenvalues() - by_K[:, None] * K_p).max() < 1e-12
    assert np.abs(s.eigenvalues("equilibria") - by_K[:, None] * (K_p + 2.0 * np.sin(y) * y_p)).max() < 1e-12


def test_eigenvalues_of_a_mechanism_along_its_equilibria():
    """The rhombus on its spring, at rest for each stiffness: differences of eigenvalues of the robots themselves."""
    robot = ld.load("diagonal_spring")

    def at(h):
        b = ld.Builder.of(robot)
        (spring,) = [each for each in robot.model.elements if each.name == "spring"]
        b.change("element", "spring", stiffness=spring.numbers[0] + h)
        other = b.build()
        rest = ld.trim(other, ld.close(other, other.home, crank=2.0), tolerance=1e-13)
        return rest, ld.linearize(other, rest.q, rest.v, u=rest.u, independent=("crank",)).eigenvalues()

    rest, _ = at(0.0)
    s = ld.sensitivities(robot, rest.q, rest.v, u=rest.u, parameters=["stiffness:spring"], independent=("crank",),
                         second=True)
    found = sixth_order(lambda h: at(h)[1], 0.05)
    assert np.abs(s.eigenvalues("equilibria")[:, 0] - found).max() < 1e-9 * np.abs(found).max()
    moved = sixth_order(lambda h: at(h)[0].q[0], 0.05)
    assert abs((np.linalg.solve(s.model.A, -s.f0))[0, 0] - moved) < 1e-9 * abs(moved)


def test_what_has_no_slopes_is_said():
    robot = rod()
    s = ld.sensitivities(robot, [0.5], [0.0], [0.0], parameters=["stiffness:hinge"], second=True)
    with pytest.raises(ld.InputError, match="no equilibrium here"):
        s.eigenvalues("equilibria")
    with pytest.raises(ld.InputError, match="unknown by 'state', did you mean 'states'"):
        s.eigenvalues("state")
    with pytest.raises(ld.InputError, match=r"sensitivities\(\.\.\., second=True\)"):
        ld.sensitivities(robot, [0.5], [0.0], [0.0], parameters=["stiffness:hinge"]).eigenvalues("states")
    with pytest.raises(ld.InputError, match="parameters is empty"):
        ld.sensitivities(robot, [0.5], [0.0], [0.0], parameters=())
    free = ld.Builder("slide", gravity=(0.0, 0.0, 0.0))
    free.body("slide", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    free.joint("x", "prismatic", "ground", "slide", axis=(1, 0, 0))
    robot = free.build()
    s = ld.sensitivities(robot, [0.0], [0.0], [0.0], parameters=["gravity.x"], second=True)
    with pytest.raises(ld.InputError, match="no neighbouring equilibrium for other values of 'gravity.x'"):
        s.eigenvalues("equilibria")
