"""A robot 100 km away from the world's origin moves as it does at home.

About the world's origin its inertia would be 1e10 times as large, and as many digits would be lost in every difference.
"""
from dataclasses import replace

import numpy as np
import pytest
from closed_chains import moving_state, walker
from tree_cases import bundled

from liedyn import (
    aba, aba_derivatives, body_jacobian_dot, close, closure_error, constraint_bias, constraint_jacobian, crba,
    forward_dynamics, integrate, kinetic_energy, linearize, momentum, rnea, rnea_derivatives, simulate,
)
from liedyn.mechanics.dynamics.forward import METHODS
from liedyn.model import Builder
from liedyn.model.build import build

FAR = np.array([1e5, -0.7e5, 0.4e5])
FREE = 1e-11  # relative: nothing is lost, the place drops out of all equations
BOUND = 1e-9  # relative: numbers near 1e5 m are 1.5e-11 m apart, and so are places on the ground


def moved(robot, by=FAR):
    """The robot with all that stands on the ground somewhere else."""
    def shifted(pose):
        pose = pose.copy()
        pose[:3, 3] += by
        return pose

    def placed(each):
        return replace(each, parent_placement=shifted(each.parent_placement)) if each.parent == "ground" else each

    joints = tuple(replace(j, placement=shifted(j.placement)) if j.parent == "ground" else j
                   for j in robot.model.joints)
    return build(replace(robot.model, joints=joints, loops=tuple(map(placed, robot.model.loops)),
                         constraints=tuple(map(placed, robot.model.constraints))))


def vehicle():
    """An arm on a vehicle in the plane: two prismatic joints, then a revolute one."""
    b, previous = Builder("vehicle"), "ground"
    for k, (kind, axis) in enumerate((("prismatic", (1, 0, 0)), ("prismatic", (0, 1, 0)), ("revolute", (0, 0, 1)),
                                      ("revolute", (0, 1, 0)), ("revolute", (1, 0, 0)))):
        b.body(f"b{k}", mass=1.0 + k, com=(0.1, 0.02 * k, -0.3), inertia=(0.3, 0.4, 0.5))
        b.joint(f"j{k}", kind, previous, f"b{k}", placement=(0.1, 0.2, 0.3) if k > 2 else (0, 0, 0), axis=axis)
        previous = f"b{k}"
    return b.build()


def tree_results(robot, q, v, a):
    many = tuple(np.tile(x, (9, 1)) for x in (q, v, a))
    body = robot.body_names[-1]
    for name, x in {
        "rnea": rnea(robot, q, v, a), "crba": crba(robot, q), "aba": aba(robot, q, v, a),
        "rnea, batch": rnea(robot, *many), "crba, batch": crba(robot, many[0]), "aba, batch": aba(robot, *many),
        "rnea_derivatives": rnea_derivatives(robot, q, v, a), "aba_derivatives": aba_derivatives(robot, q, v, a),
        "rnea_derivatives, batch": rnea_derivatives(robot, *many),
        "aba_derivatives, batch": aba_derivatives(robot, *many),
        "body_jacobian_dot": body_jacobian_dot(robot, q, v, body),
        "kinetic_energy": kinetic_energy(robot, q, v),
    }.items():
        yield from ((f"{name} {k}", y) for k, y in enumerate(x if isinstance(x, tuple) else (x,)))


def state_results(robot, q, v, tau):
    found = forward_dynamics(robot, q, v, tau)
    yield "accelerations", found.a
    for method in METHODS:
        yield f"accelerations, {method}", forward_dynamics(robot, q, v, tau, method=method).a
    models = linearize(robot, *(np.tile(x, (9, 1)) for x in (q, v, tau)))
    for ss, name in ((linearize(robot, q, v, tau), ""), (models, ", batch")):
        yield f"A{name}", ss.A
        yield f"B{name}", ss.B


def assert_equal_results(here, there, tolerance):
    """Relative to the largest number of a result, or to 1e-3 where all of it is small beside what it is a sum of."""
    for (name, x), (_, y) in zip(here, there, strict=True):
        assert np.abs(x - y).max() <= tolerance * max(np.abs(x).max(), 1e-3), name


CASES = {
    "free root": (lambda: bundled("talos"), None),
    "sliding root": (vehicle, None),
    "placed root": (lambda: bundled("panda"), moved),
}


def pair(case):
    """The robot at home and far away, and a configuration of each."""
    make, move = CASES[case]
    robot = make()
    q = integrate(robot, robot.home, 0.3 * np.sin(np.arange(robot.nv)))
    if move:
        return robot, move(robot), q, q
    far = q.copy()
    if case == "free root":
        q[4:7], far[4:7] = 0.0, FAR
    else:
        q[:2], far[:2] = 0.0, FAR[:2]
    return robot, robot, q, far


@pytest.mark.parametrize("case", CASES)
def test_trees_lose_nothing_far_away(case):
    robot, other, q, far = pair(case)
    v, a = np.cos(np.arange(robot.nv)), np.sin(2.0 + np.arange(robot.nv))
    assert_equal_results(tree_results(robot, q, v, a), tree_results(other, far, v, a), FREE)


@pytest.mark.parametrize("case", CASES)
def test_state_space_models_lose_nothing_far_away(case):
    robot, other, q, far = pair(case)
    v, tau = np.cos(np.arange(robot.nv)), np.sin(2.0 + np.arange(robot.nv))
    assert_equal_results(state_results(robot, q, v, tau), state_results(other, far, v, tau), FREE)


@pytest.mark.parametrize("case", ("free root", "placed root"))
def test_momentum_about_the_centre_of_mass_loses_nothing_far_away(case):
    robot, other, q, far = pair(case)
    here = momentum(robot, q, np.cos(np.arange(robot.nv)))
    there = momentum(other, far, np.cos(np.arange(robot.nv)))
    assert np.abs(here - there).max() < FREE * np.abs(here).max()


@pytest.mark.parametrize("name", ("five_bar", "stewart", "loader", "rolling_disk"))
def test_constraints_to_the_ground_far_away(name):
    other = moved(bundled(name))
    # back at home with what far away has left of the places on the ground: their digits below 1.5e-11 m are lost
    robot, q = moved(other, -FAR), other.home
    v, tau = moving_state(robot, q)
    assert np.abs(closure_error(other, q) - closure_error(robot, q)).max() < 1e-10
    G, bias = constraint_jacobian(robot, q), constraint_bias(robot, q, v)
    assert np.abs(constraint_jacobian(other, q) - G).max() < 1e-10 * np.abs(G).max()
    assert np.abs(constraint_bias(other, q, v) - bias).max() < BOUND * np.abs(bias).max()
    assert_equal_results(state_results(robot, q, v, tau), state_results(other, q, v, tau), BOUND)
    assert np.abs(close(other, q) - close(robot, q)).max() < BOUND


def test_closed_legs_of_a_free_robot_lose_nothing_far_away():
    robot, q = walker()
    far = q.copy()
    far[4:7] += FAR
    v, tau = moving_state(robot, q)
    assert_equal_results(state_results(robot, q, v, tau), state_results(robot, far, v, tau), FREE)


def test_a_run_far_away_is_the_run_at_home():
    robot = bundled("five_bar")
    v = np.zeros(robot.nv)
    here, there = (simulate(r, r.home, v, 0.2, dt=1e-3, progress=False) for r in (robot, moved(robot)))
    assert np.abs(here.q[-1] - there.q[-1]).max() < BOUND


def test_a_robot_that_cannot_move():
    """It has no link to look from, and is looked at from the world's origin."""
    b = Builder("wall")
    for name, parent, place in (("wall", "ground", FAR), ("beam", "wall", (0.0, 0.0, 1.0))):
        b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(f"on_{name}", "fixed", parent, name, placement=place)
    b.constraint("rod", "distance", "ground", "beam", parent_placement=FAR, length=0.75)
    robot, nothing = b.build(), np.zeros(0)
    np.testing.assert_allclose(closure_error(robot, nothing), [0.25], rtol=0.0, atol=BOUND)
    assert constraint_jacobian(robot, nothing).shape == (1, 0) and aba(robot, nothing, nothing, nothing).shape == (0,)
