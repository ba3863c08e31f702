"""Optimal motions of closed, rolling and floating mechanisms: closed at all times, and as `simulate` makes them."""
import numpy as np
import pytest
from comparison import relative

import liedyn as ld
from liedyn.lie import log

FIVE_BAR, LOADER, STEWART, CART = (ld.load(name) for name in ("five_bar", "loader", "stewart", "shopping_cart"))


def reached(robot, **values):
    return ld.close(robot, ld.close(robot, robot.home), **values)


def rock(spherical=False):
    """A rigid body in space, driven by all forces that there are; or about its centre by moments."""
    b = ld.Builder("rock", gravity=(0.0, 0.0, 0.0))
    b.body("rock", mass=1.0, inertia=(1.0, 2.0, 2.5))
    b.joint("joint", "spherical" if spherical else "free", "ground", "rock")
    for name in ("rx", "ry", "rz") if spherical else ("rx", "ry", "rz", "x", "y", "z"):
        b.actuator(name, f"joint.{name}")
    return b.build()


def deviation_of_intervals(robot, motion, steps=60):
    """The largest difference between the rows of each interval and a simulation from its first one."""
    worst, rows = 0.0, 10
    for k, (t_0, t_1) in enumerate(zip(motion.knots, motion.knots[1:])):
        first = motion.t.searchsorted(t_0 - 1e-12)
        held = motion.method == "shooting"
        u = motion.u[first + rows // 2] if held else motion.feedforward
        run = ld.simulate(robot, motion.q[first], motion.v[first], t_1, t0=t_0, u=u, dt=(t_1 - t_0) / steps,
                          start="project")
        same = slice(first, first + rows + 1)
        there = run.q[::steps // rows], run.v[::steps // rows]
        worst = max(worst, np.abs(ld.difference(robot, motion.q[same], there[0])).max(),
                    np.abs(motion.v[same] - there[1]).max())
        assert len(there[0]) == rows + 1, k
    return worst


CASES = {
    "five_bar": (FIVE_BAR, FIVE_BAR.home, reached(FIVE_BAR, q1=FIVE_BAR.home[0] + 0.5, q2=FIVE_BAR.home[1] - 0.3), 1.0),
    "loader": (LOADER, LOADER.home, reached(LOADER, boom=0.4, bucket=-0.3), 2.0),
    "shopping_cart": (CART, CART.home, {"cart.x": 1.0, "cart.y": 0.5, "cart.angle": 0.5, "caster": 0.0}, 2.0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["collocation", "shooting"])
def test_intervals_are_what_simulate_does(name, method):
    robot, start, goal, duration = CASES[name]
    points = 5 if method == "collocation" else 4
    motion = ld.optimize_motion(robot, start, goal, duration=duration, method=method, points=points, tolerance=3e-7)
    assert motion.outcome == "converged"
    size = max(1.0, np.abs(motion.v).max())  # errors of intervals are in coordinates of the manifold, these in all
    assert deviation_of_intervals(robot, motion) <= 1e-6 * size
    times = np.random.default_rng(0).uniform(0.0, duration, 200)
    q, v, _ = motion.at(times)
    assert np.abs(ld.closure_error(robot, q)).max(initial=0.0) <= 1e-10
    assert np.abs(ld.velocity_error(robot, q, v)).max() <= 1e-10
    assert motion.position_residual.max() <= 1e-10 and motion.velocity_residual.max() <= 1e-10
    # Simpson's rule on ten rows of each interval, whose motion is right by the tolerance
    assert np.abs(motion.energy_drift).max() <= 1e-5 * max(1.0, np.abs(motion.input_work).max())


def test_whole_motion_of_the_five_bar_is_what_simulate_does():
    robot, start, goal, duration = CASES["five_bar"]
    motion = ld.optimize_motion(robot, start, goal, duration=duration, tolerance=1e-8, points=5)
    run = ld.simulate(robot, start, np.zeros(4), duration, u=motion.feedforward, dt=2e-3)
    assert np.abs(run.q[-1] - goal).max() <= 1e-6 and np.abs(run.v[-1]).max() <= 1e-5


def test_the_manifold_has_no_opinion_on_coordinates():
    # the five-bar cut elsewhere is another tree with other charts, and has the same least effort
    robot, start, goal, duration = CASES["five_bar"]
    one = ld.optimize_motion(robot, start, goal, duration=duration, points=5)
    two = ld.optimize_motion(robot, start, goal, duration=duration, points=5, intervals=7, solver="ipopt") if (
        has_casadi()) else ld.optimize_motion(robot, start, goal, duration=duration, points=4, intervals=13)
    assert one.cost == pytest.approx(two.cost, rel=1e-6)


def has_casadi():
    try:
        import casadi  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.skipif(not has_casadi(), reason="CasADi is not installed")
@pytest.mark.parametrize("method", ["collocation", "shooting"])
def test_both_solvers_find_the_same(method):
    platform = STEWART.home
    pose = ld.pose(STEWART, platform, "platform")
    lifted = pose.copy()
    lifted[:3, 3] += (0.05, -0.03, 0.06)
    goal = ld.PoseTarget("platform", lifted)
    options = dict(duration=0.8, method=method, intervals=6, points=3, tolerance=None)
    scipy, ipopt = (ld.optimize_motion(STEWART, platform, goal, solver=each, **options) for each in ("scipy", "ipopt"))
    assert scipy.cost == pytest.approx(ipopt.cost, rel=1e-5)
    np.testing.assert_allclose(ld.pose(STEWART, scipy.q[-1], "platform"), lifted, atol=1e-6)
    assert np.abs(scipy.v[-1]).max() <= 1e-9


@pytest.mark.validation("least effort of a turn, its cost", robots="ball joint",
                        oracle="Optima in closed form")
def test_a_ball_joint_turns_about_a_principal_axis():
    # about a principal axis it is a mass on a line: J = 12 I^2 angle^2 / T^3, and beyond half a turn charts must change
    robot, angle = rock(spherical=True), 2.0
    goal = np.array([0.0, np.sin(0.5 * angle), 0.0, np.cos(0.5 * angle)])
    motion = ld.optimize_motion(robot, robot.home, goal, duration=1.5, intervals=4, points=4)
    assert relative(motion.cost, 12.0 * 2.0 ** 2 * angle ** 2 / 1.5 ** 3) < 1e-8


def test_floating_body_from_pose_to_pose():
    robot = rock()
    goal = np.array([0.5, 0.5, 0.5, 0.5, 1.0, -0.5, 0.3])
    motion = ld.optimize_motion(robot, robot.home, goal, duration=1.0, intervals=5)
    assert np.abs(ld.difference(robot, motion.q[-1], goal)).max() <= 1e-10
    assert deviation_of_intervals(robot, motion) <= 1e-5
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, :4], axis=1), 1.0, atol=1e-12)
    middle = ld.pose(robot, motion.at(0.5)[0], "rock")
    assert np.linalg.norm(log(middle)) > 0.1


def test_charts_move_with_the_iterates():
    # the guess goes the other way round: more than a chart's width from the optimum
    robot, start, goal, duration = CASES["five_bar"]
    aside = reached(FIVE_BAR, q1=FIVE_BAR.home[0] - 0.6, q2=FIVE_BAR.home[1] + 0.6)
    direct = ld.optimize_motion(robot, start, goal, duration=duration)
    found = ld.optimize_motion(robot, start, goal, duration=duration, guess=[start, aside, goal])
    assert found.cost == pytest.approx(direct.cost, rel=1e-5)


@pytest.mark.parametrize("tolerance", [1e-3, None])
def test_no_motion_leads_to_another_assembly_mode(tolerance):
    # both have the same tangent coordinates beyond the dead centre, where a motion would seem to arrive
    robot = ld.load("four_bar")
    start = ld.close(robot, robot.home)
    other = ld.close(robot, [start[0], -2.0, 2.0], crank=start[0])
    assert np.abs(other - start).max() > 1.0
    with pytest.raises(ld.OptimizationError, match="another assembly mode.*more intervals"):
        ld.optimize_motion(robot, start, other, duration=1.0, tolerance=tolerance)


def test_warm_start_takes_fewer_iterations():
    robot, start, goal, duration = CASES["loader"]
    options = dict(duration=duration, tolerance=None, intervals=10)
    first = ld.optimize_motion(robot, start, goal, **options)
    again = ld.optimize_motion(robot, start, goal, guess=first, **options)
    assert again.iterations < first.iterations and again.cost == pytest.approx(first.cost, rel=1e-4)


def test_strokes_of_cylinders_are_limited():
    robot, start, goal, duration = CASES["loader"]
    free = ld.optimize_motion(robot, start, goal, duration=duration, tolerance=None, intervals=6)
    rate = np.abs(np.diff(free["link"]) / np.diff(free.t)).max()
    with pytest.warns(ld.MotionWarning, match="velocity:link"):  # between the nodes of six intervals
        held = ld.optimize_motion(robot, start, goal, duration=duration, tolerance=None, intervals=6,
                                  bounds={"velocity:link": 0.9 * rate})
    assert np.abs(held["velocity:link"][::10]).max() <= 0.9 * rate + 1e-6
    assert held.cost > free.cost


def test_a_loader_digs_against_a_law_of_its_own_through_a_depth_on_the_way():
    # as in docs/tutorials/digging.md: a heap that resists the tip while it goes in, by a function with exact slopes
    def resistance(x, w):
        depth, slope = 0.05 * np.log1p(np.exp(-x / 0.05)), -1.0 / (1.0 + np.exp(x / 0.05))
        inwards, change = 0.5 * (1.0 - np.tanh(w / 0.2)), -0.5 / (0.2 * np.cosh(w / 0.2) ** 2)
        return -80e3 * depth * inwards, -80e3 * slope * inwards, -80e3 * depth * change

    b = ld.Builder.of(LOADER)
    b.spring("heap", "ground", "bucket", (4.7, -2.0, 0.0), (1.2, -0.15, 0.0), length=1.3, law=resistance)
    robot, foot, inside = b.build(), {"lift_rod": -0.30, "tilt_rod": 0.25}, {"lift_rod": -0.10, "tilt_rod": 0.15}
    limits = {"velocity:lift_rod": 0.25, "velocity:tilt_rod": 0.35, "force:lift_cylinder": 140e3}
    options = dict(duration=2.0, cost={"effort": 1e-10, "velocity": 1.0}, bounds=limits, intervals=10, points=5,
                   solver=ld.NLPSolver(optimality=1e-4))
    motion = ld.optimize_motion(robot, foot, (inside, None), tolerance=1e-6, **options)
    tip = np.hypot(*((ld.pose(robot, motion.q[-1], "bucket") @ [1.2, -0.15, 0.0, 1.0])[:2] - [4.7, -2.0])) - 1.3
    assert tip < -0.2 and motion.u[:, 0].max() <= 140e3 * (1.0 + 1e-3)
    assert motion["lift_rod"][-1] == pytest.approx(-0.10, abs=1e-8)
    assert deviation_of_intervals(robot, motion) <= 1e-5  # velocities of barrels are faster than the manifold's rates
    assert motion.position_residual.max() <= 1e-10
