"""Batches of runs: each of them is what it would be by itself, side by side, in threads, and where others fail."""
import time

import numpy as np
import pytest

import liedyn as ld
from benchmarks.robots import moving_states
from liedyn.motion.simulation.trajectories import COLUMNS

COUNT = 11


def starts(name, count=COUNT, seed=0):
    robot = ld.load(name)
    q, v, tau = moving_states(robot, count, np.random.default_rng(seed), 0.02)
    return robot, q, v, tau


def require_same(runs, number, alone, tolerance=1e-11):
    run = runs[number]
    assert np.array_equal(run.t, alone.t)
    for name in (*COLUMNS, "input_work", "other_work", "potential", "kinetic"):
        x, y = getattr(run, name), getattr(alone, name)
        assert abs(x - y).max(initial=0.0) <= tolerance * max(1.0, abs(y).max(initial=0.0)), name
    assert abs(run.condition - alone.condition).max() <= 1e-9 * alone.condition.max() or len(run.lam[0]) == 0
    assert (run.status == alone.status).all() and run.method == alone.method


@pytest.mark.parametrize("name", ("five_bar", "loader", "delta", "panda", "stewart"))
def test_side_by_side(name):
    """Lanes differ from single runs in rounding only; forces are constant, or over the grid, for each or for all."""
    robot, q, v, tau = starts(name)
    options = dict(dt=1e-3, record=3)
    steps = 20
    table = tau[:, None] * np.linspace(0.5, 1.0, steps)[:, None]
    for given in (None, tau[0], tau, table[0], table):
        runs = ld.simulate(robot, q, v, 0.0195, tau=given, **options)
        assert runs.shape == (COUNT,) and not runs.errors and runs.q.shape == (COUNT, 8, robot.nq)
        for number in (0, 4, COUNT - 1):
            own = given if given is None or given.ndim == 1 or given is table[0] else given[number]
            if given is not None and given.shape == table[0].shape and given is not tau:
                own = given
            require_same(runs, number, ld.simulate(robot, q[number], v[number], 0.0195, tau=own, **options))


@pytest.mark.parametrize("start", ("project", "as given"))
def test_starts_beside_the_manifold(start):
    """Each run starts from its own state, which is projected, taken as it is, or, with "check", refused by name."""
    robot, q, v, _ = starts("five_bar")
    q, v = q + 1e-4 * np.sin(np.arange(q.size)).reshape(q.shape), v + 1e-3
    runs = ld.simulate(robot, q, v, 0.02, start=start)
    assert not runs.errors
    for number in (0, 4, COUNT - 1):
        require_same(runs, number, ld.simulate(robot, q[number], v[number], 0.02, start=start))
    with pytest.warns(ld.ConditionWarning, match=f"{COUNT} of {COUNT} runs"):
        assert len(ld.simulate(robot, q, v, 0.02).errors) == COUNT


def test_actuators_and_axes():
    robot, q, v, _ = starts("five_bar", 12)
    u = np.random.default_rng(1).normal(size=(3, 4, len(robot.actuator_names)))
    runs = ld.simulate(robot, q.reshape(3, 4, -1), v.reshape(3, 4, -1), 0.02, u=u)
    assert runs.q.shape == (3, 4, 21, 4) and len(runs) == 3 and len(list(runs)) == 12
    require_same(runs, (2, 1), ld.simulate(robot, q[9], v[9], 0.02, u=u[2, 1]))
    with pytest.raises(ld.InputError, match=r"no run \(3, 0\)"):
        runs[3, 0]


@pytest.mark.parametrize("options", (
    {"method": "rkmk"}, {"method": "implicit"}, {"method": "RK45", "dt": 1e-2}, {"formulation": "svd"},
    {"stabilisation": "minimal"}, {"stabilisation": "none"}, {"energy": True},
    {"tau": lambda t, q, v: -0.1 * v}, {"stabilisation": ld.Baumgarte(5.0, 5.0)}))
def test_other_options(options):
    robot, q, v, _ = starts("five_bar", 9)
    runs = ld.simulate(robot, q, v, 0.03, **options)
    for number in (0, 8):
        require_same(runs, number, ld.simulate(robot, q[number], v[number], 0.03, **options))


def test_balls_and_floating_bases():
    robot, q, v, _ = starts("solo12", 9)
    runs = ld.simulate(robot, q, v, 0.01)
    require_same(runs, 7, ld.simulate(robot, q[7], v[7], 0.01))


def test_a_run_that_comes_near_a_singular_configuration():
    """It leaves the others, and is made by itself: they do not notice."""
    robot = ld.load("four_bars")
    angles = np.linspace(0.3, 1.5, COUNT)
    q = np.tile(robot.home, (COUNT, 1))
    for name in robot.coordinate_names:
        q[:, robot.coordinate_index(name)] = angles if name[0] == "V" else -angles
    v = np.zeros(robot.nv)
    runs = ld.simulate(robot, q, v, 0.4)
    passed = [number for number in range(COUNT) if runs[number].events]
    assert 0 < len(passed) < COUNT
    for number in (0, passed[-1], COUNT - 1):
        alone = ld.simulate(robot, q[number], v, 0.4)
        require_same(runs, number, alone, 1e-7)  # next to a singular configuration rounding grows
        assert [event.name for event in runs[number].events] == [event.name for event in alone.events]


def test_some_runs_fail():
    """What the others have computed is there, and what they had computed themselves."""
    robot, q, v, _ = starts("five_bar")
    q[3] = q[3] + 0.3  # its loop is open
    fast = v.copy()
    fast[5] *= 1e4
    with pytest.warns(ld.ConditionWarning, match="2 of 11 runs of 'five_bar' failed; the one at 3: inconsistent start"):
        runs = ld.simulate(robot, q, fast, 0.02, largest_speed=100.0)
    assert sorted(runs.errors) == [(3,), (5,)] and runs.failed.sum() == 2
    assert isinstance(runs.errors[3,], ld.ClosureError) and isinstance(runs.errors[5,], ld.SimulationError)
    require_same(runs, 4, ld.simulate(robot, q[4], v[4], 0.02))
    assert np.isnan(runs.q[5, -1]).all() and np.isfinite(runs.q[[0, 4, 10]]).all()
    # one that could not start has no states, least of all those of another
    assert all(np.isnan(getattr(runs, name)[3]).all() for name in COLUMNS)
    with pytest.raises(ld.ClosureError, match="inconsistent start"):
        runs[3]


@pytest.mark.parametrize("options", ({}, {"energy": True}))
def test_no_run_can_start(options):
    robot, q, v, _ = starts("five_bar", 9)
    with pytest.warns(ld.ConditionWarning, match="9 of 9 runs"):
        runs = ld.simulate(robot, q + 0.3, v, 0.02, **options)
    assert runs.failed.all() and len(runs.errors) == 9
    with pytest.raises(ld.InputError, match="none of the runs could start"):
        _ = runs.q
    with pytest.raises(ld.ClosureError):
        runs[0]


def test_contacts_in_threads():
    builder = ld.Builder("ball")
    builder.body("ball", 1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("free", "free", "ground", "ball")
    builder.constraint("floor", "sphere_on_plane", "ground", "ball", radius=0.1, unilateral=True, friction=0.3,
                       restitution=0.5)
    robot = builder.build()
    q, v = np.tile(robot.neutral, (5, 1)), np.zeros((5, 6))
    q[:, robot.coordinate_index("free.z")] = np.linspace(0.3, 0.5, 5)
    v[:, 0] = 1.0
    runs = ld.simulate(robot, q, v, 0.35)
    for number in (0, 4):
        alone = ld.simulate(robot, q[number], v[number], 0.35)
        require_same(runs, number, alone)
        assert [event.t for event in runs[number].events] == [event.t for event in alone.events] != []
    with pytest.raises(ld.InputError, match="runs have times of their own"):
        _ = runs.q


@pytest.mark.parametrize(("given", "what"), (
    ({"tau": np.zeros((20, 4))}, "may be meant for 20 runs or for as many steps"),
    ({"tau": np.zeros((7, 4))}, r"tau of 20 runs must have shape \(4,\)"),
    ({"tau": np.full((20, 1, 4), np.nan)}, "tau"),
    ({"u": np.zeros(2), "tau": np.zeros(4)}, "give tau or u"),
))
def test_wrong_inputs(given, what):
    robot, q, v, _ = starts("five_bar", 20)
    with pytest.raises(ld.InputError, match=what):
        ld.simulate(robot, q, v, 0.02, **given)


def test_no_starts():
    robot = ld.load("five_bar")
    with pytest.raises(ld.InputError, match="there are no starts"):
        ld.simulate(robot, np.empty((0, 4)), np.zeros(4), 0.1)


def test_steps_per_second():
    """Runs side by side make several times the steps of one run in the same time, on one core."""
    robot, q, v, _ = starts("five_bar", 128)
    ld.simulate(robot, q, v, 0.05, record=50)
    ld.simulate(robot, q[0], v[0], 0.05, record=50)

    def seconds(*state):
        taken = []
        for _ in range(5):
            begin = time.process_time()  # of all threads
            ld.simulate(robot, *state, 0.3, record=300)
            taken.append(time.process_time() - begin)
        return min(taken)

    assert seconds(q, v) / 128 < 0.6 * seconds(q[0], v[0])
