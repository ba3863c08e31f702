"""Runs through singular configurations: a published benchmark, its scaled copies, what is recorded and warned of."""
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from papers import numbers
from random_mechanisms import Plan, built
from tree_cases import bundled

import liedyn as ld
from liedyn.model.build import build

THETA = numbers("iftomm")["A02"]["exact"]["theta"]
STEPS = (5e-3, 1e-3, 7e-4, 5e-4, 3e-4, 2e-4, 1e-4)


def double_four_bar(size=1.0, mass=1.0):
    """The IFToMM benchmark A02 with its start; gravity goes with the size, so that times are the same."""
    def grown(pose):
        return ld.placement(size * pose[:3, 3])  # all frames are parallel

    model = bundled("four_bars").model
    robot = build(replace(
        model, gravity=size * model.gravity,
        bodies=tuple(replace(body, mass=mass * body.mass, com=size * body.com, inertia=mass * size ** 2 * body.inertia)
                     for body in model.bodies),
        joints=tuple(replace(joint, placement=grown(joint.placement)) for joint in model.joints),
        loops=tuple(replace(loop, parent_placement=grown(loop.parent_placement),
                            child_placement=grown(loop.child_placement)) for loop in model.loops)))
    return robot, robot.home, np.where(robot.home > 0.0, -1.0, 1.0)


def error(trajectory):
    return abs(trajectory["V0"][-1] - THETA)


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ld.ConditionWarning)
        yield


@pytest.mark.parametrize("formulation", ["nullspace", "svd"])
def test_benchmark_passes_its_singular_configurations(formulation):
    for dt in STEPS:
        # the method's own error at 5 ms is 2e-8; singular configurations must add nothing that can be seen
        assert error(ld.simulate(*double_four_bar(), 10.0, dt=dt, formulation=formulation, record=1000)) < 1e-7


def test_benchmark_with_implicit_steps():
    for dt in STEPS[1:5]:
        assert error(ld.simulate(*double_four_bar(), 10.0, dt=dt, method="implicit", record=1000)) < 1e-7


@pytest.mark.parametrize("method", ["DOP853", "rkmk"])
def test_benchmark_with_other_methods(method):
    assert error(ld.simulate(*double_four_bar(), 10.0, method=method)) < 1e-6


@pytest.mark.parametrize("stabilisation", ["minimal", "baumgarte"])
def test_benchmark_with_other_stabilisations(stabilisation):
    assert error(ld.simulate(*double_four_bar(), 10.0, dt=7e-4, stabilisation=stabilisation)) < 1e-6


@pytest.mark.parametrize(("size", "mass"), [(1e-3, 1.0), (1e3, 1.0), (1.0, 1e-6), (1e-3, 1e-9), (1e3, 1e6)])
def test_scaled_mechanisms_move_alike(size, mass):
    robot, q, v = double_four_bar(size, mass)
    for options in ({"dt": 1e-3}, {"dt": 3e-4}, {"dt": 1e-3, "method": "implicit"}):
        trajectory = ld.simulate(robot, q, v, 10.0, **options)
        assert error(trajectory) < 1e-7
        assert trajectory.position_residual.max() < 1e-14 * max(size, 1.0)
        assert len(trajectory.events) == 10


def test_closure_error_of_a_start_counts_by_the_size():
    q_offset = np.array([0.0, 0.0, 1e-4, 0.0, 0.0])  # [rad]: 1e-4 sizes, 1e-7 m of a mechanism of 1 mm
    for size in (1e-3, 1.0, 1e3):
        robot, q, v = double_four_bar(size)
        with pytest.raises(ld.ClosureError, match="open by"):
            ld.simulate(robot, q + q_offset, v, 0.01)
        assert ld.simulate(robot, q + 1e-3 * q_offset, v, 0.01).position_residual[-1] < 1e-14 * size


def test_passages_are_events():
    robot, q, v = double_four_bar()
    for options in ({"dt": 5e-3}, {"dt": 1e-3}, {"dt": 1e-4, "record": 50}, {"dt": 1e-3, "formulation": "svd"},
                    {"dt": 1e-3, "method": "RK45"}):
        trajectory = ld.simulate(robot, q, v, 10.0, **options)
        # all rods are in line ten times between 90 degrees and -1729 degrees
        assert [event.name for event in trajectory.events] == ["singular passage"] * 10
        turns = np.array([event.q_before[0] for event in trajectory.events]) / math.pi
        # located by linear interpolation of 1 / condition: what it leaves is of second order in the step
        np.testing.assert_allclose(turns, -np.arange(10.0), atol=20.0 * options["dt"] ** 2 + 1e-8)
        for event in trajectory.events:
            assert event.condition > 30.0 and event.energy_loss == 0.0 and not event.impulse.any()
            assert (event.q_before == event.q_after).all() and (event.v_before == event.v_after).all()
            # the potential energy is the same wherever all rods are in line, and so is the speed
            assert abs(event.v_before[0] - trajectory.events[0].v_before[0]) < 1e-3
        assert (np.diff(trajectory.t) > 0.0).all()  # no double rows
        # where it is passed within rounding, the adaptive method's own error, 1e-5, depends on the processor
        assert np.abs(trajectory.energy_drift).max() < (3e-5 if "method" in options else 1e-5)


def test_passages_survive_a_file(tmp_path):
    trajectory = ld.simulate(*double_four_bar(), 1.0)
    again = ld.Trajectory.load(trajectory.save(tmp_path / "run"))
    assert [event.condition for event in again.events] == [event.condition for event in trajectory.events]
    assert len(again.events) == 1


@pytest.mark.parametrize("name", ["four_bar", "loader", "stewart", "delta", "parallel_five_bar", "slider_crank"])
def test_regular_motion_has_no_passages(name):
    robot = ld.load(name)
    trajectory = ld.simulate(robot, robot.home, np.zeros(robot.nv), 0.05)
    assert trajectory.events == ()


@pytest.mark.parametrize("dt", [1e-3, 1e-4, 1e-5])
def test_five_bar_keeps_its_energy(dt):
    """It falls through configurations in which all its links are in line, at 0.65, 1.85, 2.7 and 3.91 s."""
    robot = ld.load("five_bar")
    trajectory = ld.simulate(robot, robot.home, np.zeros(4), 4.0 if dt > 1e-5 else 2.0, dt=dt, record=10)
    # 1e-8 of the peak of the kinetic energy, 222 J; it was 3.4 J
    assert np.abs(trajectory.energy_drift).max() < 2e-6


def test_steps_that_change_the_energy_are_warned_of():
    robot = ld.load("five_bar")
    for record in (1, 7):
        with pytest.warns(ld.ConditionWarning, match=r"step of 'five_bar' to t = .* changes the energy by .* J "):
            ld.simulate(robot, robot.home, np.zeros(4), 5.0, dt=0.02, record=record)


def test_energy_that_grows_is_warned_of():
    b = ld.Builder("pendulum", gravity=(0.0, -9.81, 0.0))
    b.body("rod", 1.0, (0.0, -0.5, 0.0), (1.0 / 12.0, 0.0, 1.0 / 12.0))
    b.joint("pivot", "revolute", "ground", "rod", axis=(0.0, 0.0, 1.0))
    with pytest.warns(ld.ConditionWarning, match="where nothing should"):
        ld.simulate(b.build(), [2.0], [0.0], 20.0, dt=0.5)


@pytest.mark.parametrize("seed", [44, 57, 58])
def test_rounding_of_what_cannot_move_is_no_warning(seed):
    """Without kinetic energy, the potential energy says what rounding is."""
    robot, q, _ = built(Plan((("spherical", -1),), (("revolute", -1, 0, True),), seed=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.simulate(robot, q, np.zeros(3), 0.4, dt=0.1)


def test_energy_may_change_where_something_changes_it():
    robot = ld.load("five_bar")
    ld.simulate(robot, robot.home, np.zeros(4), 1.0, dt=0.01, tau=lambda t, q, v: [50.0 * (t > 0.5), 0.0, 0.0, 0.0])


@pytest.mark.parametrize("formulation", ["nullspace", "momenta"])
def test_gauss_says_where_it_cannot_pass(formulation):
    """Its fixed-point iteration does not converge across a singular configuration; explicit steps go on."""
    robot, q, v = double_four_bar()
    with pytest.raises(ld.SimulationError, match=r"singular configuration \(condition number .*'rk4'") as caught:
        ld.simulate(robot, q, v, 10.0, dt=4e-3, method="gauss4", formulation=formulation)
    assert len(caught.value.trajectory) > 10
