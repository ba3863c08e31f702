"""Optimal motions whose costs others have published, or that are hard to begin."""
import numpy as np
import pytest
from comparison import off
from mechanisms import loader_without_strokes
from test_optimal_motion import slider
from test_optimal_motion_loops import deviation_of_intervals

import liedyn as ld
from liedyn.tasks.optimal_motion import interior_point, optimize
from liedyn.tasks.optimal_motion.interior_point import InteriorPoint


def rods(driven, load=0.0, gravity=0.0):
    """Two rods of one metre and one kilogram each, with a load at the tip, hanging where there is gravity."""
    b, below = ld.Builder("two rods", gravity=(gravity, 0.0, 0.0)), "ground"
    for k in (1, 2):
        b.body(f"rod{k}", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 1 / 12, 1 / 12))
        b.joint(f"q{k}", "revolute", below, f"rod{k}", placement=(float(k > 1), 0.0, 0.0), axis=(0.0, 0.0, 1.0))
        below = f"rod{k}"
    if load:
        b.body("load", mass=load)
        b.joint("grip", "fixed", "rod2", "load", placement=(1.0, 0.0, 0.0))
    for k in driven:
        b.actuator(f"motor{k}", f"q{k}")
    return b.build()


@pytest.mark.validation("least effort of a mass between two walls, its cost", robots="mass on a line",
                        oracle="Optima in closed form")
def test_least_effort_within_a_limit_of_the_coordinate():
    # Bryson and Denham; Bryson and Ho, Applied Optimal Control (1975): J = 4 / (9 l) for l <= 1/6, as
    # long as it takes with three arcs, of which those beside the wall end at 3 l and 1 - 3 l: knots of nine intervals
    wall = 1.0 / 9.0
    motion = ld.optimize_motion(slider(), ([0.0], [1.0]), ([0.0], [-1.0]), cost={"effort": 0.5}, intervals=9,
                                bounds={"x": (-1.0, wall)}, tolerance=None)
    assert off(motion.cost, 4.0) < 1e-5  # the barrier leaves 1e-7 for each of some fifty limits
    assert motion["x"].max() < wall + 1e-6
    assert motion.iterations < 60  # 32; without a size of the inputs, which a guess at rest does not tell, above 500


@pytest.mark.validation("least time of a two-link arm", robots="two rods with a load", oracle="Published optima")
@pytest.mark.parametrize("intervals, published", [(39, 2.985042), (79, 2.983021)])
def test_least_time_of_a_two_link_arm(intervals, published):
    # Luus, Iterative Dynamic Programming (2000), section 12.4.2; times are those in PSOPT's example twolinkarm.cxx, by
    # multiple shooting with inputs that are linear in each segment: held ones take 2.985858 with 39 segments there
    robot = rods((1, 2), load=1.0)
    np.testing.assert_allclose(ld.crba(robot, [0.0, 0.5]), np.array([[11 / 3, 4 / 3], [4 / 3, 4 / 3]]) + 1.5 * np.cos(
        0.5) * np.array([[2.0, 1.0], [1.0, 0.0]]))  # that of the paper, by relative angles
    motion = ld.optimize_motion(robot, [0.0, 0.5], [0.522, 0.5], (1.0, 10.0), "time", method="shooting",
                                intervals=intervals, bounds={"force:motor1": 1.0, "force:motor2": 1.0}, tolerance=None)
    assert motion.duration < published and off(motion.duration, published) < 3e-4  # theirs has errors of its own
    assert np.abs(motion.u).max() <= 1.0 + 1e-9 and np.abs(motion.v).max() < 2.0
    assert deviation_of_intervals(robot, motion) < 1e-6
    np.testing.assert_allclose(motion.q[-1], [0.522, 0.5], atol=1e-9)


def test_acrobot_swings_up(monkeypatch):
    """The straight way up obeys no dynamics, and no step from there is accepted: violations have to be mended first."""
    robot, calls, restore = rods((2,), gravity=9.81), [], InteriorPoint._restore

    def counted(method):
        before, found = np.abs(method.g).sum(), restore(method)
        calls.append((found, np.abs(method.g).sum() / before))
        return found

    monkeypatch.setattr(InteriorPoint, "_restore", counted)
    motion = ld.optimize_motion(robot, [0.0, 0.0], [np.pi, 0.0], 3.0, tolerance=1e-4)
    assert any(found and left <= 0.9 for found, left in calls)
    assert motion.errors.max() <= 1e-4
    # one minimum of several: another mesh may lead to another
    assert motion.cost == pytest.approx(74.7363, rel=1e-4)
    assert deviation_of_intervals(robot, motion) < 1e-4


def test_constraints_that_contradict_each_other_end_the_search():
    # one metre in one second by a force of one newton, which needs two
    with pytest.raises(ld.OptimizationError, match="dynamics at .* by") as error:
        ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=1.0)
    assert error.value.motion.iterations < 100


def test_an_easier_motion_comes_first_where_none_is_found(monkeypatch):
    """An acrobot with a weak motor has to swing several times: from the straight way in a short time none is found."""
    solved, solve = [], optimize._solve

    def counted(program, z, setting):
        found = solve(program, z, setting)
        solved.append((program.demands.duration, found[-1]["ok"], found[-1]["iterations"]))
        return found

    monkeypatch.setattr(interior_point, "CREEPING", 10 ** 9)  # else one is found at once
    monkeypatch.setattr(optimize, "_solve", counted)
    with pytest.warns(ld.MotionWarning, match="force:motor2"):  # a continuous input overshoots where it jumps
        motion = ld.optimize_motion(rods((2,), gravity=9.81), [0.0, 0.0], [np.pi, 0.0], (1.0, 8.0), intervals=20,
                                    cost={"time": 1.0, "effort": 1e-3}, bounds={"force:motor2": 10.0}, tolerance=None)
    assert [(duration, ok) for duration, ok, _ in solved] == [((1.0, 8.0), False), ((8.0, 8.0), True),
                                                              ((1.0, 8.0), True)]
    assert motion.iterations >= sum(count for *_, count in solved[:2])
    assert motion.duration < 8.0 and motion.violation <= 1e-8


def test_motions_that_leave_the_mechanism_between_knots_are_told():
    """Six intervals step over a dead centre that the loader's weak lift could not hold it at."""
    with pytest.raises(ld.OptimizationError, match="optimal at the nodes of 6 intervals, but leaves the mechanism"):
        ld.optimize_motion(loader_without_strokes(), {"lift_rod": -0.2, "tilt_rod": 0.0},
                           {"lift_rod": 0.3, "tilt_rod": 0.1}, duration=4.0, intervals=6,
                           bounds={"force:lift_cylinder": 50e3}, tolerance=None)


@pytest.mark.filterwarnings("ignore::liedyn.MotionWarning")  # continuous inputs overshoot where they jump
@pytest.mark.parametrize("intervals", [12, 20, 30])
def test_weak_motors_swing_up_on_any_mesh(intervals):
    """Steps that limits keep short would creep for ever: violations are mended first then, further each time."""
    robot = rods((2,), gravity=9.81)
    motion = ld.optimize_motion(robot, [0.0, 0.0], [np.pi, 0.0], 3.0, intervals=intervals, tolerance=None,
                                bounds={"force:motor2": 16.0})
    assert motion.outcome == "converged" and motion.iterations < 200
