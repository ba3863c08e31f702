"""Optimal motions: exact derivatives of the program, optima known in closed form or published, what is refused."""
import contextlib

import numpy as np
import pytest
from comparison import off, relative
from scipy.integrate import solve_ivp

import liedyn as ld
from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints.checking import central_difference
from liedyn.tasks.optimal_motion.charts import charts_about
from liedyn.tasks.optimal_motion.cost import MotionCost
from liedyn.tasks.optimal_motion.demands import conditions_of, demands_of
from liedyn.tasks.optimal_motion.program import Program
from liedyn.tasks.optimal_motion.programs import Setting, first, mesh_of
from liedyn.tasks.optimal_motion.solving import Options

FIVE_BAR, LOADER, PANDA, STEWART = (ld.load(name) for name in ("five_bar", "loader", "panda", "stewart"))


def slider(limit=None):
    """A mass of 1 kg that a force moves along a line."""
    b = ld.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.body("mass", mass=1.0)
    b.joint("x", "prismatic", "ground", "mass", axis=(1.0, 0.0, 0.0), effort_limit=limit)
    b.actuator("force", "x")
    return b.build()


def cart_pole():
    """That of Kelly 2017, appendix E.1, angle zero where it hangs."""
    b = ld.Builder("cart_pole", gravity=(0.0, 0.0, -9.81))
    b.body("cart", mass=1.0)
    b.body("bob", mass=0.3, com=(0.0, 0.0, -0.5))
    b.joint("x", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0), limits=(-2.0, 2.0))
    b.joint("theta", "revolute", "cart", "bob", axis=(0.0, -1.0, 0.0))
    b.actuator("motor", "x")
    return b.build()


def near(robot, size=0.1, seed=0):
    """Home, closed, and a configuration next to it on the manifold."""
    q = ld.close(robot, robot.home) if robot.row_names else robot.home
    charts = charts_about(robot, q[None])
    y = size * np.random.default_rng(seed).normal(size=(1, charts.sizes[0]))
    return q, charts.configurations(np.zeros(1, np.int64), y)[0]


def program(robot, start, goal, method, points, intervals=3, duration=(0.5, 2.0), cost=None, bounds=None, path=(),
            periodic=False):
    """The nonlinear program of a call, and unknowns that are no optimum of it."""
    demands = demands_of(robot, conditions_of(robot, start, goal, ()), duration, bounds, True, path, periodic)
    setting = Setting(method, points, "scipy", Options(1, 1e-6, 1e-8, {}, False), None)
    made, z = first(robot, setting, mesh_of(intervals, [0.0, 1.0]), demands, MotionCost(robot, cost), 1.0, None)
    rng = np.random.default_rng(1)
    moved = np.zeros(len(z))
    moved[made.free] = 0.05 * rng.normal(size=len(made.free)) * made.scale[made.free]
    return made, np.clip(z + moved, made.low, made.high)


@pytest.mark.parametrize("name", ["five_bar", "panda", "stewart", "rolling_disk", "solo12"])
@pytest.mark.parametrize("method, points", [("collocation", 4), ("shooting", 2)])
def test_derivatives_of_the_program_are_exact(name, method, points):
    robot = ld.load(name)
    start, goal = near(robot, 0.05)
    height = ld.PathFunction(lambda t, q, v, u: np.array([t * v @ v, u @ u]), lambda t, q, v, u: (
        np.zeros((2, len(v))), np.array([2.0 * t * v, 0.0 * v]), np.array([0.0 * u, 2.0 * u]), np.array([v @ v, 0.0])))
    cost = {"effort": 1.0, "velocity": 0.3, "time": 0.2, "posture": (0.5, goal),
            "terminal": ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u))}
    made, z = program(robot, (start, None), (goal, None), method, points, cost=cost, path=height,
                      bounds={f"power:{robot.actuator_names[0]}": 1e3}, periodic=True)
    direction = np.zeros(len(z))
    direction[made.free] = np.random.default_rng(2).normal(size=len(made.free)) * made.scale[made.free]
    value = made.evaluate(z)
    # sixth order along a line: rounding by 1e-10 or so, of rows that are up to 1e4 times larger than the smallest
    of_c = central_difference(lambda s: made._evaluate(z + s * direction).c)
    of_cost = central_difference(lambda s: made._evaluate(z + s * direction).cost)
    exact = value.jacobian @ direction
    assert np.abs(of_c - exact).max() <= 1e-6 * np.abs(exact).max()
    assert of_cost == pytest.approx(value.gradient @ direction, rel=1e-6)


@pytest.mark.validation("least effort of a mass, its cost", robots="mass on a line",
                        oracle="Optima in closed form")
def test_least_effort_of_a_mass():
    # u = 6 (1 - 2 t), J = 12: from one metre to the next in one second, at rest at both ends
    motion = ld.optimize_motion(slider(), [0.0], [1.0], duration=1.0, intervals=2)
    assert off(motion.cost, 12.0) < 1e-9  # the optimum is a polynomial that collocation contains
    np.testing.assert_allclose(motion["x"], 3.0 * motion.t ** 2 - 2.0 * motion.t ** 3, atol=1e-9)
    np.testing.assert_allclose(motion.u[:, 0], 6.0 - 12.0 * motion.t, atol=1e-8)


@pytest.mark.validation("least time of a mass", robots="mass on a line",
                        oracle="Optima in closed form")
@pytest.mark.parametrize("method", ["collocation", "shooting"])
def test_least_time_of_a_mass_is_bang_bang(method):
    # a continuous input takes an interval to change its sign, and overshoots there
    told = pytest.warns(ld.MotionWarning, match="force:force") if method == "collocation" else contextlib.nullcontext()
    with told:
        motion = ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=(0.5, 5.0), cost="time", method=method,
                                    points=3)
    # T = 2 sqrt(distance / force); the barrier leaves 1e-8 for each of some fifty limits
    assert off(motion.duration, 2.0) < 1e-5
    far = np.abs(motion.t - 1.0) > 0.11  # inputs that are continuous take an interval to change their sign
    np.testing.assert_allclose(motion.u[far, 0], np.sign(1.0 - motion.t[far]), atol=1e-3)


@pytest.mark.validation("cost to go over a finite horizon, by Riccati's equation", robots="pendulum",
                        oracle="Optima in closed form")
def test_finite_horizon_regulator_of_a_pendulum():
    # close to the equilibrium: the cost is x^T P x, with P from Riccati's equation backwards from zero
    b = ld.Builder("pendulum", gravity=(0.0, 0.0, -9.81))
    b.body("bob", mass=0.5, com=(0.0, 0.0, -0.8))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0), damping=0.1)
    b.actuator("motor", "hinge")
    robot, T, small = b.build(), 1.5, 1e-4
    ss = ld.linearize(robot, [0.0], [0.0], [0.0])
    Q = np.diag([3.0, 0.4])

    def riccati(_, p):
        P = p.reshape(2, 2)
        return (ss.A.T @ P + P @ ss.A - P @ ss.B @ ss.B.T @ P / 0.7 + Q).ravel()

    P = solve_ivp(riccati, (0.0, T), np.zeros(4), rtol=1e-11, atol=1e-13).y[:, -1].reshape(2, 2)
    x = np.array([small, 2.0 * small])
    cost = {"effort": 0.7, "velocity": Q[1, 1], "posture": (Q[0, 0], [0.0])}
    motion = ld.optimize_motion(robot, ([x[0]], [x[1]]), None, duration=T, cost=cost, intervals=8,
                                solver=ld.NLPSolver(optimality=1e-9))
    # the pendulum is nonlinear by x^2; the input's rule of quadrature is of order six
    assert relative(motion.cost, x @ P @ x) < 2e-6
    # inputs are less accurate than states and costs, at the ends of intervals above all
    assert motion.u[0, 0] == pytest.approx(-(ss.B.T @ P @ x)[0] / 0.7, rel=5e-3)


def test_swing_up_of_the_cart_pole():
    # Kelly, "An introduction to trajectory optimization", SIAM Review 59 (2017), section 6 and appendix E.1. OpenMDAO's
    # dymos has 58.83924863 in its test of the same problem, with one condition more: no force at the end.
    bounds = {"force:motor": 20.0}
    swing = ld.optimize_motion(cart_pole(), [0.0, 0.0], [1.0, np.pi], duration=2.0, bounds=bounds)
    assert 58.80 < swing.cost < 58.83924863
    assert swing.errors.max() <= 1e-6
    coarse = ld.optimize_motion(cart_pole(), [0.0, 0.0], [1.0, np.pi], duration=2.0, bounds=bounds, intervals=50,
                                points=3, tolerance=None)
    assert coarse.cost == pytest.approx(swing.cost, rel=1e-4)
    again = ld.optimize_motion(cart_pole(), [0.0, 0.0], [1.0, np.pi], duration=2.0, bounds=bounds, guess=swing,
                               intervals=50, tolerance=None)
    assert again.cost == pytest.approx(swing.cost, rel=1e-5)


def test_limits_hold_and_have_prices():
    robot = slider()
    free = ld.optimize_motion(robot, [0.0], [1.0], duration=1.0)
    with pytest.warns(ld.MotionWarning, match="power:force"):
        held = ld.optimize_motion(robot, [0.0], [1.0], bounds={"velocity:x": (-2.0, 1.2), "power:force": 4.0})
    assert free.v.max() == pytest.approx(1.5, abs=1e-5)
    assert held.v[::10].max() <= 1.2 + 1e-6
    assert (held.u * held.v).max() <= 4.0 + 0.05  # between nodes by what the polynomials do there
    assert held.cost > free.cost + 0.1


def test_targets_via_points_and_obstacles():
    goal = ld.PointTarget("panda_hand", (0.45, 0.35, 0.45))
    ball = ld.clearance(PANDA, "panda_hand", (0.5, 0.17, 0.5), 0.16)
    assert ball.check(PANDA, PANDA.home, np.zeros(7), np.zeros(7)).ok
    way = PANDA.home.copy()
    way[0] += 0.2
    options = dict(duration=1.5, intervals=6, points=3, tolerance=None, cost={"velocity": 1.0, "effort": 1e-4})
    with pytest.warns(ld.MotionWarning, match="clearance"):  # of a mesh that stays as it is
        motion = ld.optimize_motion(PANDA, PANDA.home, goal, path=ball, **options)
    hand = ld.pose(PANDA, motion.q, "panda_hand")[:, :3, 3]
    np.testing.assert_allclose(hand[-1], (0.45, 0.35, 0.45), atol=1e-6)
    nodes = np.arange(0, len(motion.t), 5)  # with three points every fifth row is a node
    assert np.linalg.norm(hand[nodes] - (0.5, 0.17, 0.5), axis=1).min() >= 0.16 - 1e-6
    through = ld.optimize_motion(PANDA, PANDA.home, goal, via=[(0.5, (way, 0))], **options)
    q, v, _ = through.at(0.75)
    np.testing.assert_allclose(q, way, atol=1e-8)
    np.testing.assert_allclose(v, 0.0, atol=1e-8)


def test_periodic_motion():
    # a pendulum that is shaken and comes back, with its own speed: the start is free
    b = ld.Builder("pendulum", gravity=(0.0, 0.0, -9.81))
    b.body("bob", mass=1.0, com=(0.0, 0.0, -1.0))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0), damping=0.2)
    b.actuator("motor", "hinge")
    motion = ld.optimize_motion(b.build(), {"velocity:hinge": 2.0}, None, duration=2.0, periodic=True)
    assert motion.q[0] == pytest.approx(motion.q[-1], abs=1e-7)
    assert motion.v[0] == pytest.approx(2.0, abs=1e-7)
    assert motion.v[-1] == pytest.approx(2.0, abs=1e-7)
    assert motion.u[0] == pytest.approx(motion.u[-1], abs=1e-6)
    assert motion.cost > 0.0


def test_saved_and_loaded(tmp_path):
    motion = ld.optimize_motion(slider(), [0.0], [1.0], duration=1.0, intervals=2)
    loaded = ld.OptimalMotion.load(motion.save(tmp_path / "motion"))
    assert loaded.cost == motion.cost and np.array_equal(loaded.u, motion.u) and loaded.outcome == "converged"
    with pytest.raises(InputError, match="from a file"):
        loaded.at(0.5)


def test_failures_keep_what_there_is():
    with pytest.raises(ld.OptimizationError, match="limit of iterations") as error:
        ld.optimize_motion(cart_pole(), [0.0, 0.0], [1.0, np.pi], duration=2.0, solver=ld.NLPSolver(iterations=3))
    assert len(error.value.motion.t) > 10
    with pytest.raises(ld.OptimizationError, match=r"dynamics at .* s by") as error:
        ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=1.0,
                           solver=ld.NLPSolver(iterations=60))  # it takes two seconds at least
    assert error.value.violations and max(error.value.violations.values()) > 1e-3


def test_what_is_left_after_the_last_mesh(monkeypatch):
    """All digits of the error, what to do, and the motion so far."""
    monkeypatch.setattr("liedyn.tasks.optimal_motion.optimize.NEW_MESHES", 1)
    with pytest.raises(ld.OptimizationError, match=r"its error 0\.000\d{4,} there is above tolerance=1e-14: .*"
                                                   "larger tolerance where forces jump") as caught:
        ld.optimize_motion(slider(1.0), [0.0], [1.0], duration=(0.5, 5.0), cost="time", intervals=5,
                           tolerance=1e-14, progress=False)
    assert abs(caught.value.motion.duration - 2.0) < 0.1


@pytest.mark.parametrize("options, match", [
    (dict(settings=3), "settings must be a dict"), (dict(settings={3: 1.0}), "by name"),
    (dict(iterations=0), "iterations"), (dict(feasibility=0.0), "feasibility"), (dict(optimality=-1.0), "optimality"),
    (dict(name="scipy", settings={"xtoll": 1.0}), "did you mean 'xtol'"),
])
def test_options_of_solvers_that_do_not_fit_are_named(options, match):
    with pytest.raises(InputError, match=match):
        ld.NLPSolver(**options)


@pytest.mark.parametrize("change, match", [
    (dict(method="guess"), "unknown method"), (dict(solver="snopt"), "unknown solver"),
    (dict(duration=(2.0, 1.0)), "duration must be"), (dict(cost={"efort": 1.0}), "did you mean 'effort'"),
    (dict(cost={"effort": [1.0, 2.0]}), "cost of effort"), (dict(cost={"effort": -1.0}), "not be negative"),
    (dict(bounds={"velocity:q9": 1.0}), "unknown coordinate"), (dict(bounds={"force:q9": 1.0}), "unknown actuator"),
    (dict(bounds={"q1": (2.0, 1.0)}), "leave nothing"), (dict(path=[3.0]), "PathFunctions"),
    (dict(via=[(1.5, FIVE_BAR.home)]), "between 0 and 1"), (dict(points=2), "3 to 10 points"),
    (dict(guess=[FIVE_BAR.home]), "at least two"), (dict(goal={"q1": np.nan}), "finite"),
    (dict(periodic={"q7": 1.0}), "unknown coordinate"), (dict(solver=3), "unknown solver"),
    (dict(goal=(FIVE_BAR.home, [1.0, 0.0, 0.0, 0.0])), "opens a loop"),
])
def test_what_does_not_fit_is_named(change, match):
    with pytest.raises(InputError, match=match):
        ld.optimize_motion(FIVE_BAR, FIVE_BAR.home, **({"goal": FIVE_BAR.home} | change))


def test_open_loops_are_named():
    with pytest.raises(ClosureError, match="pin"):
        ld.optimize_motion(FIVE_BAR, FIVE_BAR.home, FIVE_BAR.home + 0.1)


def test_wrong_derivatives_are_found():
    wrong = ld.PathFunction(lambda t, q, v, u: q[0] ** 2, lambda t, q, v, u: (q[0] * np.eye(1, 4)[0], 0.0 * v, 0.0 * u))
    found = wrong.check(FIVE_BAR, FIVE_BAR.home, np.zeros(4), np.zeros(4))
    assert not found.ok and found.deviations["by v"] == 0.0


def test_program_is_one():
    made, z = program(FIVE_BAR, *near(FIVE_BAR), "collocation", 3)
    assert isinstance(made, Program) and len(made.labels) == len(made.c_low)
