"""Motions that excite: exact derivatives of the condition number, limits, rest, and what they do for identification."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.tasks.identification.regression import log_condition
from liedyn.tasks.identification.dynamic_parameters import joint_columns
from liedyn.tasks.identification.regression import tree_regressor

INCLUDE = ["armature", "damping", "coulomb", "offset"]


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_derivatives_of_the_condition_number(name):
    """Central differences of order 8 along a direction, of singular values that are simple."""
    robot, rng, width = ld.load(name), np.random.default_rng(0), 0.3
    base, columns = ld.base_parameters(robot, INCLUDE), joint_columns(robot, INCLUDE)
    motion = [ld.random_configuration(robot, rng, 60), *rng.normal(size=(2, 60, robot.nv))]
    sizes = np.linalg.norm(tree_regressor(robot, *motion, columns, width)[..., base.columns], axis=(0, 1))
    slopes = log_condition(robot, motion, columns, base.columns, sizes, width)[1]
    for k in range(3):
        along = rng.normal(size=motion[k].shape)

        def value(h, k=k, along=along):
            moved = [x + h * along * (n == k) for n, x in enumerate(motion)]
            return log_condition(robot, moved, columns, base.columns, sizes, width)[0]

        stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
        rate = sum(c * (value(1e-3 * n) - value(-1e-3 * n)) for n, c in stencil.items()) / 1e-3
        assert abs(rate - (slopes[k] * along).sum()) < 1e-8 * max(abs(slopes[k]).sum(), 1.0)


def test_limits_rest_and_derivatives_of_the_series():
    panda = ld.load("panda")
    found = ld.excitation(panda, duration=10.0, include=["damping", "coulomb"])
    assert found.condition < 0.7 * found.started and found.condition < 8.0
    assert (panda.lower <= found.q).all() and (found.q <= panda.upper).all()
    assert (abs(found.v) <= panda.velocity_limit * (1.0 + 1e-12)).all()
    assert abs(found.v[0]).max() < 1e-12 and abs(found.a[0]).max() < 1e-12
    t = np.linspace(0.0, 10.0, 4001)
    q, v, a = found.at(t)
    # differences of the second order of a motion of five harmonics: (w h)^2 / 6 of it
    assert abs(np.gradient(q, t, axis=0) - v)[1:-1].max() < 1e-4 * abs(v).max()
    assert abs(np.gradient(v, t, axis=0) - a)[1:-1].max() < 1e-4 * abs(a).max()
    assert abs(q[-1] - q[0]).max() < 1e-12 and np.allclose(found.at(found.t)[0], found.q)


def test_it_does_what_it_is_for():
    """Beside the best of twenty random series parameters are told more surely."""
    panda, rng = ld.load("panda"), np.random.default_rng(0)
    spread = []
    for iterations in (0, 100):
        motion = ld.excitation(panda, duration=10.0, iterations=iterations)
        q, v, a = motion.q, motion.v, motion.a
        tau = ld.rnea(panda, q, v, a) + 0.1 * rng.normal(size=v.shape)
        found = ld.identify(panda, q, v, a, tau, consistent=False, noise=0.1 * np.ones(7))
        spread.append(found.condition)
    assert spread[1] < 0.8 * spread[0]


def test_a_closed_mechanism_moves_its_independent_coordinates():
    five_bar = ld.load("five_bar")
    limits = {"q1": (1.6, 2.6), "q2": (-1.7, -0.8)}
    found = ld.excitation(five_bar, duration=4.0, harmonics=3, limits=limits, speed=4.0, samples=40, iterations=20)
    assert found.names == ("q1", "q2") and found.condition < found.started
    assert abs(ld.closure_error(five_bar, found.q)).max() < 1e-12
    assert abs(ld.velocity_error(five_bar, found.q, found.v)).max() < 1e-11
    for name, (low, high) in limits.items():
        x = found.q[:, five_bar.coordinate_index(name)]
        assert low <= x.min() and x.max() <= high and abs(found.v[:, five_bar.velocity_index(name)]).max() <= 4.0 + 1e-9


def test_what_it_needs_is_said():
    for robot, options, what in (("five_bar", {}, "'q1' needs finite limits"),
                                 ("five_bar", {"limits": {"q1": (0, 1), "q2": (0, 1)}}, "'q1' needs a finite positive"),
                                 ("solo12", {}, "turn or slide"), ("panda", {"harmonics": 1}, "two harmonics"),
                                 ("panda", {"speed": {"elbow": 1.0}}, "no coordinate 'elbow' is moved")):
        with pytest.raises(ld.InputError, match=what):
            ld.excitation(ld.load(robot), **options)
    assert ld.excitation(ld.load("ur5"), iterations=5, seed=3).q.tobytes() == ld.excitation(
        ld.load("ur5"), iterations=5, seed=3).q.tobytes()
