"""Digits that compiled code says are left, beside singular values; calls at random states stay on the fast way."""
import contextlib
import importlib
import warnings

import numpy as np
import pytest
from tree_cases import bundled

import liedyn as ld
from benchmarks import robots
from liedyn.mechanics.constraints.cluster_weights import weights_of
from liedyn.mechanics.constraints.independent import all_holonomic
from liedyn.mechanics.dynamics import digits, singular
from liedyn.mechanics.dynamics import forward
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.singular import ACCELERATIONS, LINEARIZATION

linearization = importlib.import_module("liedyn.linear.linearize")  # the package's own name is the function

MACHINES = ("bricard", "delta", "five_bar", "four_bars", "loader", "parallel_five_bar", "squeezer", "stewart",
            "cassie_like", "whipple_bicycle", "rolling_spheres", "carrier6+3", "ladder8")


def random_states(name, count, speed, seed=0):
    """Closed states 0.2 rad about home (a delta about where its coordinates are zero), with velocities."""
    robot, rng = robots.named(name), np.random.default_rng(seed)
    about, q = robot.neutral if name == "delta" else robot.home, []
    while len(q) < count:
        with contextlib.suppress(ld.ClosureError):
            q.append(ld.close(robot, ld.integrate(robot, about, 0.2 * rng.normal(size=robot.nv))))
    q = np.array(q)
    G = ld.constraint_jacobian(robot, q)
    v = speed * rng.normal(size=(count, robot.nv))
    v -= np.einsum("bij,bjk,bk->bi", np.linalg.pinv(G, rcond=RANK_TOLERANCE), G, v)
    return robot, q, v, G


@pytest.mark.parametrize("name", MACHINES)
def test_condition_numbers_are_those_of_singular_values(name):
    """To 2 % where digits are few, and from above, by a factor of five at most, where they are not."""
    robot, q, v, G = random_states(name, 40, 1.0)
    lengths, _, long = singular._row_scales(robot)
    rank = np.array([np.linalg.matrix_rank(x, tol=1e-6 * np.abs(x).max()) for x in G])
    s = np.linalg.svd(G * weights_of(robot)[1] / lengths[:-1, None], compute_uv=False)
    exact = np.maximum(s[:, 0], 1.0) / s[np.arange(len(s)), rank - 1] / long
    for power in (ACCELERATIONS, LINEARIZATION):
        kappa, left = np.empty(len(q)), np.empty(len(q))
        scales = digits.Scales(lengths[:-1].copy(), long, power)
        digits.digits_states(robot.packed, (q, v, v), rank, scales, (kappa, left))
        few, true = left < digits.ENOUGH, np.maximum(exact, 1.0)
        usual = true < 1e6
        assert (kappa[usual] >= true[usual] * (1.0 - 1e-6)).all() and (kappa[usual] <= 5.0 * true[usual]).all()
        assert (kappa[usual & few] <= 1.02 * true[usual & few]).all()
        for b in range(0, len(q), 8):
            one = digits.digits_of_one(robot, q[b], v[b], v[b], int(rank[b]), lengths, power)
            np.testing.assert_allclose(one, (kappa[b], left[b]), rtol=1e-9)


@pytest.mark.parametrize("speed", [0.0, 1.0])
@pytest.mark.parametrize("name", MACHINES)
def test_random_states_stay_on_the_fast_way(monkeypatch, name, speed):
    """At most 3 in 100 default calls are left to the general way, which takes ten times as long."""
    robot, q, v, _ = random_states(name, 100, speed, seed=1)
    usual = all_holonomic(robot) and robot.elements is None  # what rolls or has springs always goes the general way
    slow, left, tau, fast = [], [], np.zeros(robot.nv), linearization.linearize_one_state
    general = forward._nullspace
    monkeypatch.setattr(forward, "_nullspace", lambda *x, **y: slow.append(1) or general(*x, **y))

    def one_state(*given):
        found = fast(*given)
        left.append(found is None)
        return found

    monkeypatch.setattr(linearization, "linearize_one_state", one_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConditionWarning)
        for b in range(100):
            ld.forward_dynamics(robot, q[b], v[b], tau)
            if usual:
                ld.linearize(robot, q[b], v[b], tau)
    assert len(slow) <= 3 and sum(left) <= 3 and len(left) == (100 if usual else 0)


@pytest.mark.parametrize("name", ["delta", "four_bars", "stewart"])
def test_the_same_states_are_warned_of_one_by_one_in_batches_and_by_singular_values(name):
    robot, q, v, G = random_states(name, 60, 1.0, seed=2)
    lengths, _, long = singular._row_scales(robot)
    warned = []
    for b in range(len(q)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ld.ConditionWarning)
            found = ld.linearize(robot, q[b], v[b], np.zeros(robot.nv))
        warned.append(any("digits" in str(each.message) for each in caught))
        s = np.linalg.svd(G[b] / lengths[:-1, None], compute_uv=False)
        kappa = max(s[0], 1.0) / s[found.rank - 1] / long
        left = digits.digits_left(kappa, v[b], found.a, LINEARIZATION)
        if abs(left - digits.ENOUGH) > 0.05:  # nearer than this either is right
            assert warned[-1] == (left < digits.ENOUGH and found.condition > singular.SUSPECT), (b, left)
    if any(warned):
        with pytest.warns(ld.ConditionWarning, match="digits are left"):
            ld.linearize(robot, q, v, np.zeros(robot.nv))
    assert name == "four_bars" or any(warned) == (name == "delta")


def test_bundled_robots_have_digits_at_home():
    for name in ("loader", "stewart"):
        robot = bundled(name)
        rest = np.zeros(robot.nv)
        lengths = singular._row_scales(robot)[0]
        rank = ld.forward_dynamics(robot, robot.home, rest, rest).rank
        assert digits.digits_of_one(robot, robot.home, rest, rest, rank, lengths, LINEARIZATION)[1] > 8.0


def folding(size):
    """A crank and a rod of one length that drive a slider: the two fold up when the crank is upright."""
    b = ld.Builder("folding", gravity=(0.0, -9.81 * size, 0.0))
    for name in ("crank", "rod"):
        b.body(name, size**3, (0.5 * size, 0.0, 0.0), (size**5, size**5, size**5))
    b.body("slider", size**3)
    b.joint("turn", "revolute", "ground", "crank")
    b.joint("elbow", "revolute", "crank", "rod", placement=(size, 0.0, 0.0))
    b.joint("slide", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.loop("pin", "inline", "rod", "slider", parent_placement=(size, 0.0, 0.0))
    return b.build()


@pytest.mark.parametrize("aside, few", [(0.7, False), (1e-4, True)])
@pytest.mark.parametrize("size", [1e-5, 1e-3, 0.01, 1.0, 1e3])
def test_warnings_do_not_depend_on_the_size_of_a_mechanism(size, aside, few):
    robot, angle, tau = folding(size), np.pi / 2 - aside, np.zeros(3)
    q = np.array([angle, -2.0 * angle, 2.0 * size * np.cos(angle)])
    v = np.array([2.0, -4.0, -4.0 * size * np.sin(angle)])
    for function, states, options in ((ld.linearize, (q, v, tau), {"independent": ("turn",)}),
                                      (ld.linearize, ([q, q], [v, v], [tau, tau]), {"independent": ("turn",)}),
                                      (ld.forward_dynamics, (q, v, tau), {})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ld.ConditionWarning)
            function(robot, *states, **options)
        assert any("digits" in str(each.message) for each in caught) == few
