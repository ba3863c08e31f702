"""The configuration group: integrate and difference against their laws and against Pinocchio, random configurations."""

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, random_tree
from pinocchio_models import pin_model
from users import kept

from liedyn.lie import compose, exp
from liedyn.machine.errors import InputError
from liedyn.mechanics.tree.configuration import difference, integrate, integrate_kernel, neutral, random_configuration
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.model import Builder

EPS = 2.0**-52


@pytest.fixture(scope="module")
def tree():
    return random_tree(np.random.default_rng(5), MOVING_KINDS * 2).build()


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def quaternion_starts(robot):
    return [k for k, name in enumerate(robot.coordinate_names) if name.endswith(".qx")]


def same_sign(robot, q, like):
    """q with each quaternion in the hemisphere of the other's: q and -q are one rotation."""
    q = q.copy()
    for k in quaternion_starts(robot):
        q[..., k : k + 4] *= np.sign(np.sum(q[..., k : k + 4] * like[..., k : k + 4], axis=-1, keepdims=True))
    return q


def test_integrate_undoes_difference(tree, rng):
    q0, q1 = random_configuration(tree, rng, (2, 200))
    back = integrate(tree, q0, difference(tree, q0, q1))
    # coordinates of order one, a dozen operations each
    assert abs(same_sign(tree, back, q1) - q1).max() < 50 * EPS


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 0.1, 1.0])
def test_difference_undoes_integrate(tree, rng, size):
    q = random_configuration(tree, rng, 200)
    dv = size * rng.uniform(-1.0, 1.0, size=(200, tree.nv))  # turns of at most sqrt(3) < pi
    assert abs(difference(tree, q, integrate(tree, q, dv)) - dv).max() < 50 * EPS


def test_moving_in_two_steps_with_one_velocity(tree, rng):
    """exp(s dv) is a one-parameter group."""
    q, dv = random_configuration(tree, rng, 50), rng.normal(size=(50, tree.nv))
    twice = integrate(tree, integrate(tree, q, 0.3 * dv), 0.7 * dv)
    assert abs(twice - integrate(tree, q, dv)).max() < 100 * EPS
    assert abs(integrate(tree, integrate(tree, q, dv), -dv) - q).max() < 100 * EPS


def test_difference_is_antisymmetric(tree, rng):
    q0, q1 = random_configuration(tree, rng, (2, 50))
    assert abs(difference(tree, q0, q1) + difference(tree, q1, q0)).max() < 50 * EPS
    assert abs(difference(tree, q0, q0)).max() < EPS


def test_half_a_turn():
    """At |w| = pi the two ways are equally short; either gets there."""
    b = Builder("ball")
    b.body("ball", 1.0, inertia=(1, 1, 1))
    b.joint("ball", "spherical", "ground", "ball")
    ball = b.build()
    for q1 in np.eye(4)[:3]:
        dv = difference(ball, neutral(ball), q1)
        assert np.linalg.norm(dv) == pytest.approx(np.pi, rel=4 * EPS)
        assert abs(abs(integrate(ball, neutral(ball), dv) @ q1) - 1.0) < 4 * EPS


def test_free_body_moves_by_the_exponential(rng):
    b = Builder("satellite")
    b.body("satellite", 1.0, inertia=(1, 1, 1))
    b.joint("base", "free", "ground", "satellite")
    satellite = b.build()
    q, dv = random_configuration(satellite, rng, 20), 2.0 * rng.normal(size=(20, 6))
    moved = pose(satellite, integrate(satellite, q, dv), "satellite")
    assert abs(moved - compose(pose(satellite, q, "satellite"), exp(dv))).max() < 50 * EPS


def test_against_pinocchio(tree, rng):
    oracle = pin_model(tree)
    q0, q1 = random_configuration(tree, rng, (2, 20))
    # two roundings of the same formulas; Pinocchio's sums stand in another order
    dv = rng.uniform(-1.5, 1.5, size=(20, tree.nv))
    for k in range(20):
        expected = oracle.integrate(q0[k], dv[k])
        assert abs(same_sign(tree, integrate(tree, q0[k], dv[k]), expected) - expected).max() < 1e-14
        assert abs(difference(tree, q0[k], q1[k]) - oracle.difference(q0[k], q1[k])).max() < 1e-13


def test_quaternions_stay_of_unit_length(tree, rng):
    q, dv = random_configuration(tree, rng), 0.1 * rng.normal(size=tree.nv)
    for k in quaternion_starts(tree):
        q[k : k + 4] *= 1.0 + 2e-7  # accepted as rounding, and repaired
    for _ in range(50):
        q = integrate(tree, q, dv)
        for k in quaternion_starts(tree):
            assert abs(np.linalg.norm(q[k : k + 4]) - 1.0) < 2 * EPS


@kept
def in_place(model, q, dv):
    integrate_kernel(model, q, dv, q)


def test_batches_and_compiled_callers(tree, rng):
    q, dv = random_configuration(tree, rng, (2, 3)), rng.normal(size=(2, 3, tree.nv))
    moved = integrate(tree, q, dv)
    assert moved.shape == q.shape and np.array_equal(moved[1, 2], integrate(tree, q[1, 2], dv[1, 2]))
    assert np.array_equal(integrate(tree, q, dv[0, 0])[1, 2], integrate(tree, q[1, 2], dv[0, 0]))
    assert np.array_equal(difference(tree, q, moved)[1, 2], difference(tree, q[1, 2], moved[1, 2]))
    assert np.array_equal(difference(tree, q[0, 0], moved)[1, 2], difference(tree, q[0, 0], moved[1, 2]))

    one = q[1, 2].copy()
    in_place(tree.packed, one, dv[1, 2])
    assert np.array_equal(one, moved[1, 2])


def test_neutral_is_a_copy(tree):
    q = neutral(tree)
    q[:] = 7.0
    assert not np.array_equal(neutral(tree), q) and not difference(tree, neutral(tree), tree.neutral).any()


def test_random_configurations_fill_the_limits():
    b = Builder("limited")
    for name, kind, limits in (
        ("both", "revolute", (0.5, 0.7)), ("low", "prismatic", (3.0, np.inf)), ("high", "revolute", (-np.inf, -5.0)),
        ("angle", "revolute", None), ("slide", "prismatic", None), ("base", "free", None), ("ball", "spherical", None),
    ):
        b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint(name, kind, "ground", name, limits=limits)
    robot = b.build()
    q = random_configuration(robot, rng=3, size=4000)
    assert q.shape == (4000, robot.nq)
    expected = {
        "both": (0.5, 0.7), "low": (3.0, 5.0), "high": (-5.0 - 2 * np.pi, -5.0), "angle": (-np.pi, np.pi),
        "slide": (-1, 1), "base.x": (-1, 1), "base.y": (-1, 1), "base.z": (-1, 1),
    }
    for name, (lower, upper) in expected.items():
        x = (q[:, robot.coordinate_index(name)] - lower) / (upper - lower)
        # 4000 uniform numbers: beyond the edges never, within a hundredth of both surely, mean within 6 sigma
        assert 0.0 <= x.min() < 0.01 and 0.99 < x.max() <= 1.0 and abs(x.mean() - 0.5) < 0.03
    for name in ("base.qx", "ball.qx"):
        k = robot.coordinate_index(name)
        quaternion = q[:, k : k + 4]
        assert abs(np.linalg.norm(quaternion, axis=1) - 1.0).max() < 4 * EPS
        # uniform on the sphere: the second moments are those of a ball, 1/4, within 6 sigma
        assert abs(quaternion.T @ quaternion / 4000 - np.eye(4) / 4).max() < 0.02
    assert np.array_equal(random_configuration(robot, rng=3, size=4000), q)
    assert random_configuration(robot).shape == (robot.nq,)
    assert random_configuration(robot, size=(2, 3)).shape == (2, 3, robot.nq)


def test_bad_input(tree):
    q, dv = neutral(tree), np.zeros(tree.nv)
    with pytest.raises(InputError, match="dv must have shape"):
        integrate(tree, q, dv[1:])
    with pytest.raises(InputError, match=r"q1 must have shape \(\.\.\., "):
        difference(tree, q, dv)
    with pytest.raises(InputError, match="q1 is not finite"):
        difference(tree, q, np.full(tree.nq, np.nan))
    with pytest.raises(InputError, match="not 1"):
        difference(tree, q, 2.0 * q)
    with pytest.raises(InputError, match="do not broadcast"):
        difference(tree, np.tile(q, (2, 1)), np.tile(q, (3, 1)))
