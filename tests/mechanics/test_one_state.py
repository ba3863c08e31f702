"""One state called from Python, directly into compiled code: what the general way says, and its errors."""
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from test_state_batches import every_output, moving

import liedyn as ld
from liedyn.linear.linearize_one_state import linearize_one_state
from liedyn.linear.linearize_states import linearize_states
from liedyn.linear.state_space import RESULTS
from liedyn.machine.errors import ClosureError, ConditionWarning, InputError, SingularConfigurationError
from liedyn.mechanics.dynamics.forward_one_state import nullspace_one_state

TOLERANCES = 1e-8, 1e-8


@pytest.mark.parametrize("name, outputs", [
    ("five_bar", None), ("five_bar", "every"), ("panda", None), ("stewart", "every"), ("loader", ("bucket", "boom")),
    ("solo12", None),
])
def test_a_linearization_is_that_of_a_batch(name, outputs):
    robot = ld.load(name)
    outputs = every_output(robot) if outputs == "every" else outputs
    state = moving(robot, 1)
    one = ld.linearize(robot, *(x[0] for x in state), outputs=outputs)
    direct = linearize_one_state(robot, *(x[0] for x in state), (None, outputs, None, RESULTS, *TOLERANCES))
    general = ld.linearize(robot, *state, outputs=outputs)
    assert direct is not None or not (robot.independent or not robot.row_names)
    for field in fields(one):
        x, y = getattr(one, field.name), getattr(general, field.name)
        if x is None or isinstance(x, tuple):
            assert x == y
        else:
            assert type(x) is (np.ndarray if np.ndim(y) > 1 else type(np.asarray(y)[0].item()))
            np.testing.assert_allclose(x, y[0], rtol=1e-13, atol=1e-13 * (1.0 + np.abs(y).max(initial=0.0)))


def test_the_direct_way_is_the_usual_one():
    """Names in a list or a tuple, declared or given, and other speeds; and not where the state has a say."""
    robot = ld.load("five_bar")
    q, v, tau = (x[0] for x in moving(robot, 1))

    def direct(independent=None, outputs=None, speeds=None, q=q):
        return linearize_one_state(robot, q, v, tau, (independent, outputs, speeds, RESULTS, *TOLERANCES))

    assert direct().states == direct(["q1", "q2"]).states == ("q1", "q2", "velocity:q1", "velocity:q2")
    assert direct("q1", speeds=None) is None  # too few: the general way says so
    assert direct(("q1", "q4"), speeds=("q1", "q2")).states[2:] == ("velocity:q1", "velocity:q2")
    assert direct(outputs=["q3"]).outputs == ("q3",) and direct(outputs=["q3"]).C.shape == (1, 4)
    for unusual in (dict(independent="auto", speeds="q1"), dict(independent=iter(["q1", "q2"])), dict(q=q.tolist()),
                    dict(q=q[None]), dict(q=q.astype(np.float32))):
        assert direct(**unusual) is None
    # tolerances of another type, and one kernel for all ways
    loose = ld.linearize(robot, q, v, tau, closure_tolerance=1, rank_tolerance=np.float32(1e-8))
    np.testing.assert_array_equal(loose.A, direct().A)
    compiled = set(linearize_states.kernel.overloads)
    ld.linearize(robot, q[None], v[None], tau[None])
    assert set(linearize_states.kernel.overloads) == compiled
    disk = ld.load("rolling_disk")
    assert linearize_one_state(disk, *(x[0] for x in moving(disk, 1)), (None, None, None, RESULTS, *TOLERANCES)) is None


def test_what_is_wrong_is_said_by_the_general_way():
    robot = ld.load("five_bar")
    q, v, tau = robot.home.copy(), np.zeros(4), np.zeros(4)
    ld.linearize(robot, q, v, tau)
    with pytest.raises(ClosureError, match="loop 'pin'"):
        ld.linearize(robot, q + 0.1, v, tau)
    with pytest.raises(InputError, match="v opens the loops"):
        ld.linearize(robot, q, v + 1.0, tau)
    with pytest.raises(InputError, match="not finite"):
        ld.linearize(robot, q, v * np.nan, tau)
    with pytest.raises(SingularConfigurationError):
        ld.linearize(robot, ld.close(robot, q, q4=0.0), v, tau)
    with pytest.warns(ConditionWarning):
        ld.linearize(robot, ld.close(robot, q, q4=3e-8), v, tau)
    with pytest.raises(InputError, match="did you mean"):
        ld.linearize(robot, q, v, tau, outputs=["velocty:q1"])


def test_constraints_that_move_or_are_off():
    """The choice belongs to one robot, switched and timed as it is."""
    robot = ld.load("five_bar")
    q, v, tau = (x[0] for x in moving(robot, 1))
    assert ld.linearize(robot, q, v, tau).rank == 2
    free = robot.switched(pin=False)
    assert ld.linearize(free, q, v, tau, independent=robot.velocity_names).rank == 0
    with pytest.raises(InputError, match="4 degrees of freedom"):
        ld.linearize(free, q, v, tau)


@pytest.mark.parametrize("name", ["five_bar", "stewart", "loader", "solo12", "rolling_disk", "panda"])
@pytest.mark.parametrize("independent", [None, "auto"])
def test_accelerations_are_those_of_a_batch(name, independent):
    robot = ld.load(name)
    state = moving(robot, 1)
    one = ld.forward_dynamics(robot, *(x[0] for x in state), independent=independent)
    assert nullspace_one_state(robot, *(x[0] for x in state), independent, 1e-8) is not None
    general = ld.forward_dynamics(robot, *state, independent=independent)
    for name in ("a", "lam", "constraint_force", "rank", "condition"):
        x, y = getattr(one, name), getattr(general, name)
        np.testing.assert_allclose(x, y[0], rtol=1e-13, atol=1e-13 * (1.0 + np.abs(y).max(initial=0.0)))
    assert type(one.rank) is int and type(one.condition) is float
    assert one.redundant_rows == general.redundant_rows and one.independent == general.independent
    for what in ("constraint_wrenches", "multipliers"):
        of_one, of_all = getattr(one, what), getattr(general, what)
        assert list(of_one) == list(of_all)
        rounding = 1e-12 * (1.0 + np.abs(one.lam).max(initial=0.0))
        for key, x in of_one.items():
            np.testing.assert_allclose(x, of_all[key][0], rtol=1e-12, atol=rounding)


def test_what_is_found_is_kept():
    """Wrenches are worked out when asked for, at the configuration of then; results travel without the robot."""
    robot = ld.load("loader")
    q, v, tau = (x[0] for x in moving(robot, 1))
    expected = ld.forward_dynamics(robot, q, v, tau).constraint_wrenches
    r = ld.forward_dynamics(robot, q, v, tau)
    q += 1.0
    again = pickle.loads(pickle.dumps(r))
    assert r.constraint_wrenches is r.constraint_wrenches and "_at" not in vars(again)
    for name, F in expected.items():
        np.testing.assert_array_equal(r.constraint_wrenches[name], F)
        np.testing.assert_array_equal(again.constraint_wrenches[name], F)
    assert again.multipliers.keys() == r.multipliers.keys() == set(robot.constraint_names)


@pytest.mark.parametrize("independent", [None, "auto", "tangent"])
def test_what_is_read_later_is_that_of_the_call(independent):
    """Most of a linearization is looked at when it is read: arguments that change meanwhile do not matter."""
    robot = ld.load("loader")
    q, v, tau = (x[0] for x in moving(robot, 1))
    expected = {field.name: getattr(found, field.name) for found in [ld.linearize(robot, q, v, tau, independent)]
                for field in fields(found)}
    for travel in (lambda found: found, lambda found: pickle.loads(pickle.dumps(found)), replace):
        for first in expected:
            x = [a.copy() for a in (q, v, tau)]
            found = ld.linearize(robot, *x, independent)
            for a in x:
                a += 1.0
            again = travel(found)
            getattr(again, first)
            for name, value in expected.items():
                np.testing.assert_array_equal(getattr(again, name), value)
    assert "_later" not in vars(pickle.loads(pickle.dumps(found)))
    with pytest.raises(AttributeError, match="no attribute 'E'"):
        _ = found.E


def test_accelerations_that_there_are_not():
    robot = ld.load("five_bar")
    q, v, tau = ld.close(robot, robot.home, q4=0.0), np.zeros(4), np.zeros(4)
    with pytest.raises(SingularConfigurationError, match="q1, q2 do not determine"):
        ld.forward_dynamics(robot, q, v, tau, independent=("q1", "q2"))
    assert ld.forward_dynamics(robot, q, v, tau).independent != ("q1", "q2")
    with pytest.raises(InputError, match="2 degrees of freedom"):
        ld.forward_dynamics(robot, robot.home, v, tau, independent=("q1",))
    with pytest.warns(ConditionWarning, match="q1, q2 are poorly conditioned"):
        ld.forward_dynamics(robot, ld.close(robot, robot.home, q4=3e-8), v, tau)
    with pytest.raises(InputError, match="takes no option"):
        ld.forward_dynamics(robot, robot.home, v, tau, sigma=1.0)
