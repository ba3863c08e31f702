"""The compiled Hessian of weighted rates against differences of exact linear models, at states of closed chains."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.linear.second.hessian import RateWeights
from liedyn.linear.second.second_states import second_states
from liedyn.linear.space import Coordinates
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds
from liedyn.mechanics.dynamics.state import State


def closed_near(robot, q, y, dy):
    """The configuration whose chosen coordinates differ by dy from those of q."""
    found = q
    for _ in range(8):
        left = np.concatenate([ld.closure_error(robot, found), y.rows @ ld.difference(robot, q, found) - dy])
        Z = np.vstack([ld.constraint_jacobian(robot, found), y.rows])
        found = ld.integrate(robot, found, -np.linalg.lstsq(Z, left, rcond=None)[0])
    return found


def velocity_with(robot, q, w, rates):
    G = ld.constraint_jacobian(robot, q)
    b = -ld.constraints.velocity_error(robot, q, np.zeros(robot.nv))
    return np.linalg.lstsq(np.vstack([G, w.rows]), np.concatenate([b, rates]), rcond=None)[0]


@pytest.mark.parametrize("name", ["panda", "four_bar", "five_bar", "loader"])
def test_hessian_of_weighted_accelerations_is_the_derivative_of_linear_models(name):
    robot, rng = ld.load(name), np.random.default_rng(4)
    y = choose_positions(robot, robot.home, None, 1e-9)
    q = closed_near(robot, robot.home, y, 0.1 * rng.normal(size=len(y.names)))
    w = choose_speeds(robot, q, y, None, 1e-9)
    p, x = len(y.names), len(y.names) + len(w.names)
    v, S = velocity_with(robot, q, w, rng.normal(size=x - p)), robot.tree_actuators.copy()
    u, weights = rng.normal(size=S.shape[1]), rng.normal(size=x - p)
    H = np.empty((1, 1, x + len(u), x + len(u)))
    second_states(robot.packed, State(q[None], v[None], (S @ u)[None], np.empty((1, 0))),
                  Coordinates(y.rows[None].copy(), y.virtual, w.rows[None].copy(), w.virtual), S,
                  RateWeights(np.zeros((1, 1, p)), weights[None, None]), 1e-9, H)

    def slopes(dx):
        there = closed_near(robot, q, y, dx[:p])
        ss = ld.linearize(robot, there, velocity_with(robot, there, w, w.rows @ v + dx[p:]), u=u, independent=y.names)
        return weights @ np.hstack([ss.A, ss.B])[p:]

    def difference(k, h):
        e = h * np.eye(x)[k]
        return (slopes(e) - slopes(-e)) / (2.0 * h)

    steps = [np.array([difference(k, 1e-3 * 2 ** i) for k in range(x)]).T for i in range(3)]
    once = [(4.0 * a - b) / 3.0 for a, b in zip(steps, steps[1:])]
    expected = (16.0 * once[0] - once[1]) / 15.0
    assert np.abs(H[0, 0, :, :x] - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(H[0, 0, x:, x:]).max(initial=0.0) == 0.0
