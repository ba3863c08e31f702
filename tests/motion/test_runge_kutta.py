"""One step of any explicit tableau and its derivative, and the local coordinates in which it is made."""
import numpy as np
import pytest
from closed_chains import difference, moving_state, off
from tree_cases import bundled

import liedyn as ld
from liedyn.linear.operating_point import linearize_at
from liedyn.mechanics.dynamics.state import State
from liedyn.motion.local_coordinates import Deviation
from liedyn.motion.runge_kutta import RK4, Vectors, step, tableau

TABLEAUX = {"Euler": tableau((), [1.0]), "midpoint": tableau([[0.5]], [0.0, 1.0]),
            "Kutta": tableau([[0.5], [-1.0, 2.0]], [1 / 6, 2 / 3, 1 / 6]), "classical": RK4}
ORDERS = {"Euler": 1, "midpoint": 2, "Kutta": 3, "classical": 4}


@pytest.mark.parametrize("method", TABLEAUX)
def test_orders_and_the_derivative_by_the_length(method):
    """x' = x^2 from x = 1/2: x(h) = 1 / (2 - h)."""
    def made(h, start=None, of_length=None):
        x = np.array([0.5])

        def equations(part, change, varied):
            return (x + change) ** 2, None if varied is None else 2.0 * (x + change) * varied

        return step(Vectors(np.zeros(1)), equations, TABLEAUX[method], h, start, of_length)

    errors = [abs(0.5 + made(h)[0][0] - 1.0 / (2.0 - h)) for h in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method] + 1, abs=0.15)
    end = made(0.1, np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[1]
    assert abs(end[0, 1] - difference(lambda s: made(0.1 + s)[0][0])) < 1e-11


@pytest.mark.parametrize("name", ["five_bar", "solo12"])
@pytest.mark.parametrize("method", ["midpoint", "Kutta"])
def test_derivatives_are_those_of_the_step(name, method):
    """By the state it begins in: of `discretize` with another tableau, loops and a floating base that turns."""
    robot = bundled(name)
    q = robot.home.copy()
    v, tau = moving_state(robot, q)
    found = linearize_at(robot, State(q, v, tau, np.empty(0)), None, None, 1e-6, 1e-9, None)
    y, w = found.coordinates, found.velocities
    here, size = Deviation.by(robot, q, v, y, w, 1e-9), len(y.names) + len(w.names)

    def made(space, start):
        def equations(part, change, eta):
            state = State(*space.state_at(change), tau, np.empty(0))
            local = linearize_at(robot, state, y, w, 1e-6, 1e-9, None).local
            return local.f0, local.A @ eta

        change, end = step(space, equations, TABLEAUX[method], 0.01, start)
        return space.state_at(change), end

    after, A = made(here, np.eye(size))
    there, nothing = here.at(*after), np.zeros((size, 0))
    directions = np.random.default_rng(1).normal(size=(2, size))
    for x in directions:
        along = difference(lambda s, x=x: there(*made(here.at(*here.state_at(s * x)), nothing)[0]))
        assert off(A @ x, along) < 1e-8


def test_states_are_where_their_deviation_says():
    """Also where what a cut joint reads is a length of some metres, which is no angle."""
    b = ld.Builder("carriage")
    b.body("base", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    b.body("wheel", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    b.joint("slide", "prismatic", "ground", "base", axis=(1.0, 0.0, 0.0))
    b.joint("turn", "revolute", "base", "wheel", axis=(1.0, 0.0, 0.0))
    b.loop("cut", "cylindrical", "ground", "wheel", axis=(1.0, 0.0, 0.0))
    robot = b.build()
    d = Deviation(robot, robot.home, np.zeros(robot.nv), robot.virtual_names, None, 1e-9)
    for x in ([0.4, 5.0, -0.2, 0.3], [-3.0, -40.0, 2.0, 1.0]):
        assert off(d(*d.state_at(np.array(x))), np.array(x)) < 1e-12
