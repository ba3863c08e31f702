"""States in lanes: as one by one where lanes decide alike, and worked on one by one where they do not."""
import numba
import numpy as np
import pytest
from closed_chains import closed_mechanism, moving_state, off, onto_manifold, walker
from numba.core.runtime import _nrt_python, rtsys
from test_clusters import closed_state, small_loops
from tree_cases import TREES, bundled

import liedyn as ld
from liedyn.linear.linearize import CLOSURE_TOLERANCE
from liedyn.linear.linearize_states import Found, Request, Tolerances, linearize_registers, linearize_trees
from liedyn.linear.space import Coordinates
from liedyn.machine.errors import LiedynError, SingularConfigurationError
from liedyn.machine.simd.lanes import WIDTH
from liedyn.mechanics.constraints.free_velocities import TANGENT
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.forward_states import GIVEN, Choice, Found as Accelerations, nullspace_registers
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.model.kinds import LOOP_KINDS

ROBOTS = ("four_bar", "five_bar", "parallel_four_bar", "parallel_five_bar", "loader", "stewart", "delta", "scara",
          "cassie_like")
COUNT = WIDTH + 3
NO_OUTPUTS = np.empty((0, 4), dtype=np.int64)


def near(robot, q, count, seed=0, spread=0.1):
    """Moving states near a closed configuration."""
    rng, states = np.random.default_rng(seed), []
    for k in range(count):
        closed = onto_manifold(robot, ld.integrate(robot, q, spread * rng.normal(size=robot.nv)))
        states.append((closed, *moving_state(robot, closed, seed=[seed, k])))
    return tuple(np.array(x) for x in zip(*states))


def around(robot, count=4 * WIDTH):
    """States of a five-bar all over its range, near singular ones too: G has its largest element in many places."""
    rng, states = np.random.default_rng(3), []
    while len(states) < count:
        try:
            q = ld.close(robot, rng.uniform(-np.pi, np.pi, robot.nq))
        except LiedynError:
            continue
        states.append((q, *moving_state(robot, q, seed=len(states))))
    return tuple(np.array(x) for x in zip(*states))


def tree_coordinates(robot, q):
    """Names of the robot's own coordinates, or of those that pivoting leaves."""
    return choose(robot, q, None if robot.independent else "auto", RANK_TOLERANCE).names


def done_in_lanes(robot, state, names):
    """Which states have accelerations in lanes, and which of them have local state spaces."""
    (count, n), m, chosen = state[1].shape, len(robot.row_names), choose(robot, state[0][0], names, RANK_TOLERANCE)
    assert (chosen.virtual < 0).all()
    p, S_u = len(chosen.names), robot.actuator_matrix.copy()
    virtual = np.full(p, TANGENT) if names == "tangent" else chosen.virtual
    x, nu, forces = 2 * p, S_u.shape[1], np.empty((count, 0))
    rank, a, lam = np.full(count, -1), np.empty((count, n)), np.empty((count, m))
    nullspace_registers(
        robot.packed, State(*state, forces), Choice(chosen.rows, chosen.virtual, GIVEN, RANK_TOLERANCE),
        Accelerations(a, lam, np.empty((count, n)), rank, np.empty(count)), np.empty(1 + m + n))
    shapes = ((x, x), (x, nu), (0, x), (0, nu), (x,), (n, p), (n, p), (n,), (n,), (m,), (), (), (), ())
    found = Found(*(np.empty((count, *shape)) for shape in shapes))._replace(rank=np.full(count, -1))
    choice = (chosen.rows[None], virtual)
    linearize = linearize_registers if m > 0 else linearize_trees
    tolerances = Tolerances(CLOSURE_TOLERANCE, RANK_TOLERANCE)
    request = Request(Coordinates(*choice, *choice), S_u, NO_OUTPUTS, tolerances)
    linearize(robot.packed, State(*state, forces), request, found)
    return rank >= 0, found.rank >= 0


def assert_as_one_by_one(robot, state, names, tolerance=1e-13, outputs=None, **options):
    dynamics = ld.forward_dynamics(robot, *state, independent=names, **options)
    spaces = ld.linearize(robot, *state, independent=names, outputs=outputs, **options)
    for b, one in enumerate(zip(*state)):
        alone = ld.forward_dynamics(robot, *one, independent=names, **options)
        bound = tolerance * max(1.0, alone.condition)  # coordinates that say little of the motion magnify rounding
        for name in ("a", "lam", "constraint_force"):
            assert off(getattr(dynamics, name)[b], getattr(alone, name)) < bound, (b, name)
        assert dynamics.rank[b] == alone.rank
        # of other rows, where redundant ones leave a choice
        assert 0.1 < dynamics.condition[b] / alone.condition < 10.0
        space = ld.linearize(robot, *one, independent=names, outputs=outputs, **options)
        for name in ("A", "B", "C", "D", "f0", "K", "S", "drift", "a", "lam"):
            assert off(getattr(spaces, name)[b], getattr(space, name)) < bound * max(1.0, np.abs(one[1]).max()), (
                b, name, off(getattr(spaces, name)[b], getattr(space, name)) / bound)
        assert spaces.rank[b] == space.rank and abs(spaces.closure_residual[b] - space.closure_residual) < 1e-15
        assert 0.1 < spaces.condition[b] / space.condition < 10.0
    assert dynamics.redundant_rows == alone.redundant_rows  # of the last one


@pytest.mark.parametrize("name", ROBOTS)
def test_robots(name):
    robot = bundled(name)
    state, names = near(robot, robot.home, COUNT), tree_coordinates(robot, robot.home)
    assert np.all(done_in_lanes(robot, state, names))
    assert_as_one_by_one(robot, state, names)


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_every_cut_joint(kind):
    """In a tree with ball and free joints; outputs of every kind."""
    robot, q = closed_mechanism(kind)
    state, names = near(robot, q, COUNT), tree_coordinates(robot, q)
    body = robot.body_names[-1]
    outputs = [names[0], f"acceleration:{names[-1]}", f"pose:{body}", f"twist:{body}", f"twist_rate:{body}",
               "wrench:cut", *robot.virtual_names[:1]]
    assert np.all(done_in_lanes(robot, state, names))
    assert_as_one_by_one(robot, state, names, outputs=outputs)


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_tangent_spaces(kind):
    """The basis is that of each state alone."""
    robot, q = closed_mechanism(kind)
    state, body = near(robot, q, COUNT), robot.body_names[-1]
    outputs = [f"acceleration:{robot.velocity_names[0]}", f"pose:{body}", f"twist_rate:{body}", "wrench:cut",
               *robot.virtual_names[:1]]
    assert np.all(done_in_lanes(robot, state, "tangent")[1])
    assert_as_one_by_one(robot, state, "tangent", outputs=outputs)


def test_tangent_spaces_of_other_pivots():
    """And of many clusters, and of a machine whose states are faster one by one."""
    robot = bundled("five_bar")
    assert_as_one_by_one(robot, around(robot), "tangent")
    robot = small_loops(6)
    state = tuple(np.array(x) for x in zip(*(closed_state(robot, k) for k in range(COUNT))))
    assert np.all(done_in_lanes(robot, state, "tangent")[1])
    assert_as_one_by_one(robot, state, "tangent")
    robot = small_loops(30)
    state = tuple(np.array(x) for x in zip(*(closed_state(robot, k) for k in range(COUNT))))
    assert not np.any(done_in_lanes(robot, state, "tangent")[1])
    assert_as_one_by_one(robot, state, "tangent", 1e-12)  # thirty loops on one another magnify rounding in lanes of f


@pytest.mark.parametrize("name", ["panda", "solo12", "mixed", "floating, springs"])
def test_open_trees(name):
    """Without constraints; outputs of every kind, and inputs that are not the coordinates."""
    robot = TREES[name]()
    state, names = near(robot, robot.home, COUNT), tree_coordinates(robot, robot.home)
    body = robot.body_names[-1]
    outputs = [names[0], f"acceleration:{names[-1]}", f"pose:{body}", f"twist:{body}", f"twist_rate:{body}"]
    assert np.all(done_in_lanes(robot, state, names)[1])
    assert_as_one_by_one(robot, state, names, outputs=outputs)


def test_clusters():
    robot = small_loops(6)
    state = tuple(np.array(x) for x in zip(*(closed_state(robot, k) for k in range(COUNT))))
    names = tuple(f"a{k}" for k in range(6))
    assert np.all(done_in_lanes(robot, state, names))
    assert_as_one_by_one(robot, state, names)


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_legs_beside_each_other(damping):
    robot, q = walker(damping)
    state, names = near(robot, q, COUNT, spread=0.02), tree_coordinates(robot, q)
    outputs = (f"acceleration:{robot.velocity_names[0]}", f"acceleration:{names[-1]}", "twist_rate:a1", "wrench:cut_b")
    assert np.all(done_in_lanes(robot, state, names)[1])
    assert_as_one_by_one(robot, state, names, outputs=outputs)


def test_wrenches_of_redundant_rows():
    """And forces on bodies, and a moving target."""
    target = lambda t: ([0.01 * np.sin(t), 0, 0], [0.01 * np.cos(t), 0, 0], [-0.01 * np.sin(t), 0, 0])  # noqa: E731
    robot = bundled("five_bar").with_target("pin", target).at(0.3)
    rng, states = np.random.default_rng(1), []
    for _ in range(COUNT):
        q = ld.close(robot, robot.home + 0.1 * rng.normal(size=robot.nq))
        v = ld.complete_velocity(robot, q, {"q1": rng.normal(), "q2": rng.normal()})
        states.append((q, v, rng.normal(size=robot.nv)))
    state, forces = tuple(np.array(x) for x in zip(*states)), {robot.body_names[-1]: rng.normal(size=6)}
    assert_as_one_by_one(robot, state, ("q1", "q2"), outputs=["wrench:pin", "pin", "velocity:pin"], f_ext=forces)


def test_other_pivots_in_other_lanes():
    robot = bundled("five_bar")
    state = around(robot)
    G = ld.constraint_jacobian(robot, state[0])[:, :, 2:]
    assert len(set(np.abs(G).reshape(len(G), -1).argmax(1))) > 1
    accelerations, spaces = done_in_lanes(robot, state, ("q1", "q2"))
    assert accelerations.any() and (accelerations == spaces).all()
    assert_as_one_by_one(robot, state, ("q1", "q2"))


@pytest.mark.parametrize("angle", [3e-8, 1e-6, 1e-3])
@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ConditionWarning")
def test_one_state_next_to_a_singular_one(angle):
    """So close that a rank is in doubt, or that it has no pivot that suits all, it takes its register out of lanes."""
    robot = bundled("five_bar")
    state = near(robot, robot.home, 2 * WIDTH)
    q = ld.close(robot, robot.home, q4=angle)
    for whole, part in zip(state, (q, *moving_state(robot, q))):
        whole[3] = part
    for done in done_in_lanes(robot, state, ("q1", "q2")):
        assert (done == (np.arange(2 * WIDTH) >= (0 if angle > 1e-4 else WIDTH))).all()
    assert_as_one_by_one(robot, state, ("q1", "q2"))


def test_one_state_of_another_rank():
    """Its accelerations are those of coordinates that fit, those of the others stay; it has no local state space."""
    robot = bundled("five_bar")
    state = near(robot, robot.home, WIDTH)
    state[0][2], state[1][2] = ld.close(robot, robot.home, q4=0.0), 0.0
    assert not np.any(done_in_lanes(robot, state, ("q1", "q2")))
    dynamics = ld.forward_dynamics(robot, *state)
    for b, one in enumerate(zip(*state)):
        np.testing.assert_allclose(dynamics.a[b], ld.forward_dynamics(robot, *one).a, rtol=1e-12, atol=1e-12)
    with pytest.raises(SingularConfigurationError, match="state 2 of the batch"):
        ld.linearize(robot, *state)


def test_nothing_is_allocated_for_a_state():
    """As many arrays for 10 times the states; in lanes and one by one."""
    robot, enabled = bundled("five_bar"), _nrt_python.memsys_stats_enabled()
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    _nrt_python.memsys_enable_stats()
    try:
        for independent in (("q1", "q2"), ("q1", "pin")):
            allocations = []
            for count in (10, 100):
                state = tuple(np.repeat(x, count, axis=0) for x in near(robot, robot.home, 3))
                ld.linearize(robot, *state, independent=independent)
                before = rtsys.get_allocation_stats().alloc
                ld.linearize(robot, *state, independent=independent)
                allocations.append(rtsys.get_allocation_stats().alloc - before)
            assert 0 < allocations[0] == allocations[1]
    finally:
        numba.set_num_threads(threads)
        if not enabled:
            _nrt_python.memsys_disable_stats()
