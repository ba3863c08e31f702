"""Coordinates that the elimination chooses, by pivoting and as tangent spaces: in kernels as for coordinates given."""
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from random_mechanisms import built, laws, plans

import liedyn as ld
from liedyn.linear.linearize_one_state import linearize_one_state
from liedyn.linear.state_space import RESULTS
from liedyn.machine.errors import LiedynError
from liedyn.mechanics.constraints.independent import all_holonomic, choose
from liedyn.mechanics.dynamics.forward_one_state import nullspace_one_state
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from test_state_batches import moving

ROBOTS = ["five_bar", "loader", "stewart", "delta", "cassie_like", "four_bar"]
CHOICES = ["auto", "tangent"]
ARRAYS = "A", "B", "C", "D", "f0", "K", "S", "drift", "a", "lam"
CLOSE = 1e-11


def same(x, y, tolerance=CLOSE):
    np.testing.assert_allclose(x, y, rtol=0.0, atol=tolerance * (1.0 + np.abs(y).max(initial=0.0)))


def all_the_same(robot, state, independent, tolerance=CLOSE):
    """f, and A, B and f, of one state: the direct way, and in the same coordinates given."""
    chosen = choose(robot, state[0], independent, RANK_TOLERANCE)
    one, given = (ld.forward_dynamics(robot, *state, independent=x) for x in (independent, chosen))
    expected = ld.forward_dynamics(robot, *state, method="svd")
    for name in ("a", "lam", "constraint_force"):
        same(getattr(one, name), getattr(given, name), tolerance)
        same(getattr(one, name), getattr(expected, name), tolerance)
    assert one.independent == given.independent and one.rank == given.rank
    assert len(one.redundant_rows) == len(given.redundant_rows)
    if chosen.names:  # else there is no R
        np.testing.assert_allclose(one.condition, given.condition, rtol=1e-12)
    one, given = (ld.linearize(robot, *state, independent=x) for x in (independent, chosen))
    for name in ARRAYS:
        same(getattr(one, name), getattr(given, name), tolerance)
    assert (one.states, one.inputs, one.outputs, one.rank) == (given.states, given.inputs, given.outputs, given.rank)
    if chosen.names:
        np.testing.assert_allclose(one.condition, given.condition, rtol=1e-12)


@pytest.mark.parametrize("independent", CHOICES)
@pytest.mark.parametrize("name", ROBOTS)
def test_one_state(name, independent):
    robot = ld.load(name)
    for state in zip(*moving(robot, 3)):
        assert nullspace_one_state(robot, *state, independent, 1e-8) is not None
        assert linearize_one_state(robot, *state, (independent, None, None, RESULTS, 1e-8, 1e-8)) is not None
        # small parts of the delta turn with next to no inertia: its A, up to 2e5, moves by 1e-8 of itself where q moves
        # by 6e-15, in whatever coordinates
        all_the_same(robot, state, independent, 1e-8 if name == "delta" else CLOSE)


@pytest.mark.parametrize("name", ["five_bar", "stewart", "loader"])
def test_batches(name):
    """Lanes that share a choice, and tangent spaces of each state, as one by one."""
    robot = ld.load(name)
    states = moving(robot, 19)
    for independent in CHOICES:
        together = ld.forward_dynamics(robot, *states, independent=independent)
        apart = [ld.forward_dynamics(robot, *state, independent=independent) for state in zip(*states)]
        for name in ("a", "lam", "constraint_force"):
            same(getattr(together, name), np.array([getattr(each, name) for each in apart]))
        assert together.independent == apart[-1].independent
    np.testing.assert_allclose(together.condition, [each.condition for each in apart], rtol=1e-11)
    together = ld.linearize(robot, *states, independent="tangent")
    apart = [ld.linearize(robot, *state, independent="tangent") for state in zip(*states)]
    for name in ARRAYS:
        same(getattr(together, name), np.array([getattr(each, name) for each in apart]))
    np.testing.assert_allclose(together.condition, [each.condition for each in apart], rtol=1e-11)


@laws(15)
@given(plans())
def test_random_mechanisms(plan):
    robot, q, rng = built(plan)
    if not all_holonomic(robot):
        return
    v = np.zeros(robot.nv)
    try:
        ld.forward_dynamics(robot, q, v, v)
    except LiedynError:  # singular, or without inertia: other tests look at that
        return
    for independent in CHOICES:
        try:
            all_the_same(robot, (q, v, rng.normal(size=robot.nv)), independent)
        except LiedynError as error:
            with pytest.raises(type(error)):
                ld.linearize(robot, q, v, v, independent=independent)


@pytest.mark.parametrize("name", ROBOTS)
def test_choices_are_well_conditioned(name):
    """As well as those of the best pivoted QR factorisation, but for a small factor; tangent spaces are orthonormal."""
    robot = ld.load(name)
    for q in moving(robot, 5)[0]:
        G = ld.constraint_jacobian(robot, q)
        rank = np.linalg.matrix_rank(G, 1e-8)
        _, _, order = scipy.linalg.qr(G, pivoting=True)
        best = np.linalg.cond(np.vstack([G, np.eye(robot.nv)[order[rank:]]]))
        auto, tangent = (choose(robot, q, each, RANK_TOLERANCE).rows for each in CHOICES)
        assert np.linalg.cond(np.vstack([G, auto])) <= 4.0 * best
        np.testing.assert_allclose(tangent @ tangent.T, np.eye(len(tangent)), atol=1e-14)
        np.testing.assert_allclose(G @ tangent.T, 0.0, atol=1e-12)
        assert len(tangent) == len(auto) == robot.nv - rank
