"""Plans by differential dynamic programming: laws of their steps and costs, and other solvers of the same problem."""
import numpy as np
import pytest
from comparison import off, relative
from scipy.optimize import minimize

import liedyn as ld
from liedyn.machine.compiled.jit import kernel
from liedyn.tasks.planning import solver as solving
from liedyn.tasks.planning.expansion import expand_steps
from liedyn.tasks.planning.solver import Division, Solver
from liedyn.tasks.planning.step import make_step

FIVE_BAR, LOADER, PANDA = (ld.load(name) for name in ("five_bar", "loader", "panda"))
ARM = PANDA.home


@kernel
def one_step(model, d, r, q, v, u, q_next, v_next):
    return make_step(model, d, r, (q, v), u, (q_next, v_next))


@kernel
def expanded(model, d, r, path, x):
    return expand_steps(model, d, r.stages, r.step, r.forward.dq, path, False, x)


def problem(robot, steps=4, h=0.01, method="midpoint", **cost):
    """A solver for a robot at home, at rest."""
    return Solver(robot, robot.home, np.zeros(robot.nv), ld.Cost(**cost), None, Division(steps, h, method))


def stepped(solver, q, v, u):
    q_next, v_next = np.empty_like(q), np.empty_like(v)
    assert one_step(solver.model, solver.discretisation, solver.rooms.step, q, v, u, q_next, v_next)
    return q_next, v_next


def derivatives_of(solver, q, v, u):
    """A, B of the step from a state, which all knots have, and the gaps behind them."""
    path = solver.path
    path.q[:], path.v[:], path.u[:] = q, v, u
    done, _ = expanded(solver.model, solver.discretisation, solver.rooms, path, solver.expansion)
    assert done == len(path.q)
    x = solver.expansion
    # whether a state stands alone or in lanes, at the beginning or the end, changes its digits only
    assert np.abs(x.A - x.A[0]).max() <= 1e-11 * np.abs(x.A).max()
    return x.A[-1].copy(), x.B[-1].copy(), x.gap[-1].copy()


def moved(robot, solver, q, v, dx):
    """The state on the manifold with coordinates dx away."""
    p, names = len(solver.places), solver.y.names
    dq, w = np.zeros(robot.nv), v[solver.places] + dx[p:]
    dq[solver.places] = dx[:p]
    q = ld.integrate(robot, q, dq)
    if not robot.row_names:
        full = np.zeros(robot.nv)
        full[solver.places] = w
        return q, full
    q = ld.close(robot, q, **{name: q[robot.coordinate_index(name)] for name in names})
    return q, ld.complete_velocity(robot, q, dict(zip(names, w)))


def sixth_order(f, x, step):
    """Derivative of f at 0 along x: what is left out is of sixth order in the step."""
    a, b, c = (f(k * step * x) - f(-k * step * x) for k in (1, 2, 3))
    return (45.0 * a - 9.0 * b + c) / (60.0 * step)


def start_of(robot, rng):
    """A state of a robot off its home, in motion, and inputs."""
    y = Solver(robot, robot.home, np.zeros(robot.nv), ld.Cost(), None, Division(1, 0.01, "euler"))
    q, v = moved(robot, y, robot.home.copy(), np.zeros(robot.nv), 0.2 * rng.normal(size=2 * len(y.places)))
    scale = 1e4 if robot is LOADER else 1.0
    return q, v, scale * rng.normal(size=len(robot.actuator_names)), scale


def top():
    """A body on a ball joint with a motor for each of its axes, and a free body with a wrench on it."""
    b = ld.Builder("top")
    b.body("top", 2.0, (0.0, 0.0, 0.3), (0.05, 0.06, 0.02))
    b.joint("ball", "spherical", "ground", "top")
    b.body("free", 1.5, (0.1, 0.0, 0.2), (0.05, 0.06, 0.02))
    b.joint("base", "free", "ground", "free")
    return b.build()


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize("make", [lambda: FIVE_BAR, lambda: LOADER, lambda: PANDA, top])
def test_derivatives_of_steps(make, method):
    robot, rng = make(), np.random.default_rng(1)
    if robot.name == "top" and method == "rk4":
        return
    q, v, u, scale = start_of(robot, rng)
    solver = problem(robot, method=method)
    q_1, v_1 = stepped(solver, q, v, u)
    A, B, gap = derivatives_of(solver, q, v, u)
    p = len(solver.places)
    led = np.concatenate([ld.difference(robot, q, q_1)[solver.places], (v_1 - v)[solver.places]])
    assert np.allclose(gap, led, rtol=0, atol=1e-12)
    if robot.row_names:
        assert np.abs(ld.closure_error(robot, q_1)).max() < 1e-12

    def at(z):
        state = moved(robot, solver, q, v, z[:2 * p])
        found = stepped(solver, *state, u + scale * z[2 * p:])
        return np.concatenate([ld.difference(robot, q_1, found[0])[solver.places], (found[1] - v_1)[solver.places]])

    for z in rng.normal(size=(3, 2 * p + len(u))):
        found = np.hstack([A, scale * B]) @ z
        # differences of 1e-3 leave 1e-18 of the seventh derivative and 1e-13 of rounding; closing leaves 1e-13
        assert np.allclose(sixth_order(at, z, 1e-3), found, rtol=0, atol=2e-9 * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize("method, order", [("euler", 1), ("midpoint", 2), ("rk4", 4)])
@pytest.mark.parametrize("make", [lambda: FIVE_BAR, top])
def test_order_of_steps(make, method, order):
    """Halved steps come closer to a fine simulation by 2 to the power of the order."""
    robot, rng = make(), np.random.default_rng(2)
    if robot.name == "top" and method == "rk4":
        return
    q, v, u, _ = start_of(robot, rng)
    exact = ld.simulate(robot, q, v, 0.1, dt=5e-4, u=u)
    errors = []
    for count in (8, 16, 32):
        solver, a, b = problem(robot, h=0.1 / count, method=method), q, v
        for _ in range(count):
            a, b = stepped(solver, a, b, u)
        errors.append(np.abs(np.concatenate([ld.difference(robot, exact.q[-1], a), b - exact.v[-1]])).max())
    assert np.log2(errors[0] / errors[2]) / 2.0 > order - 0.35


def total_cost(solver, u):
    """The cost of inputs, by rolling them out."""
    solver.path.u[:], solver.expansion.K[:], solver.expansion.k[:] = u, 0.0, 0.0
    solver.search(0, (0.0, np.inf), 1.0, True)
    return solver.log.cost[0]


def gradient_of(solver):
    """The gradient of the cost by the inputs: the first-order part of the backward pass, an adjoint."""
    x, gradient = solver.expansion, np.zeros_like(solver.path.u)
    p = x.lx[-1].copy()
    for k in range(solver.steps - 1, -1, -1):
        gradient[k] = x.lu[k] + x.B[k].T @ p
        p = x.lx[k] + x.A[k].T @ p
    return gradient


COSTS = {
    "five_bar": dict(Q={"q1": 2.0, "q4": 1.0, "velocity:q3": 0.1}, R=1e-3, terminal_Q=5.0),
    "loader": dict(Q={"boom": 2.0, "tilt_rod": 5.0, "velocity:lift_rod": 1.0}, R=1e-9, terminal_Q=50.0,
                   terminal_targets=ld.PoseTarget("bucket", ld.pose(LOADER, LOADER.home, "bucket") + np.array(
                       [[0.0, 0.0, 0.0, 0.1], [0.0] * 4, [0.0] * 4, [0.0] * 4]))),
    "panda": dict(Q=0.1, R=1e-4, targets=ld.DirectionTarget("panda_hand", (0, 0, 1), (0.2, 0.1, -1.0)),
                  terminal_targets=(ld.PointTarget("panda_hand", (0.4, 0.2, 0.5), weight=3.0),
                                    ld.CenterOfMassTarget((0.1, 0.1, 0.4)))),
    "top": dict(Q=1.0, R=0.1, terminal_Q=3.0, terminal_targets=ld.OrientationTarget("top", np.diag([-1.0, -1.0, 1.0]))),
}


@pytest.mark.validation("gradients of a plan's cost by its inputs", robots="five_bar, loader, panda, top",
                        oracle="Differences of sixth order")
@pytest.mark.parametrize("make", [lambda: FIVE_BAR, lambda: LOADER, lambda: PANDA, top])
def test_gradient_of_the_total_cost(make):
    robot, rng = make(), np.random.default_rng(3)
    q, v, _, scale = start_of(robot, rng)
    solver = problem(robot, steps=20, method="midpoint", **COSTS[robot.name])
    solver.begin(q, v)
    u = scale * rng.normal(size=solver.path.u.shape)
    total_cost(solver, u)
    gradient = gradient_of(solver)
    for z in rng.normal(size=(3, *u.shape)):
        found = sixth_order(lambda dz: total_cost(solver, u + scale * dz), z, 3e-3)
        expected = scale * (gradient * z).sum()
        size = max(abs(expected), scale * np.abs(gradient).max())  # products of many terms may nearly cancel
        assert off(found / size, expected / size) < 1e-7


def held(robot):
    """Inputs that hold a robot at home."""
    return ld.inverse_dynamics(robot, robot.home, np.zeros(robot.nv), np.zeros(len(robot.independent or ARM))).u


@pytest.mark.parametrize("robot, R", [(FIVE_BAR, 0.1), (LOADER, 1e-8), (PANDA, 0.01)])
def test_small_plans_are_linear_quadratic_regulators(robot, R):
    """Far from the end the feedback is that of `dlqr`, and the motion is a step of Newton's method."""
    u, h = held(robot), 0.02
    regulator = ld.dlqr(robot, robot.home, h, Q=1.0, R=R, u=u)
    cost = ld.Cost(Q=1.0, R=R, q=robot.home, u=u, terminal_Q=regulator.P)
    plan = ld.ddp(robot, robot.home, np.zeros(robot.nv), cost, 30, h, method="rk4", start=np.tile(u, (30, 1)))
    # with the cost to go at the end, the feedback is the same at all knots, to rounding of the Riccati equation
    assert np.allclose(plan.K, -regulator.K, rtol=1e-7, atol=1e-7 * np.abs(regulator.K).max())
    assert plan.cost < 1e-15 and plan.iterations == 0
    solver = problem(robot)
    q, v = moved(robot, solver, robot.home.copy(), np.zeros(robot.nv), np.full(2 * len(solver.places), 1e-6))
    x = regulator.deviation(q, v)
    plan = ld.ddp(robot, q, v, cost, 30, h, method="rk4", start=np.tile(u, (30, 1)), iterations=10)
    # of third order in a deviation of 1e-6
    assert plan.costs[1] == pytest.approx(x @ regulator.P @ x, rel=1e-4)
    assert plan.costs[-1] == pytest.approx(plan.costs[1], rel=1e-4)


def by_scipy(robot, plan, cost, q, v, bounds):
    """The least cost of the same problem by SciPy's L-BFGS-B on the same rollouts, with adjoint gradients."""
    solver = Solver(robot, q, v, cost, None, Division(len(plan.u), plan.h, plan.method))
    solver.begin(q, v)
    shape = plan.u.shape

    def value(z):
        found = total_cost(solver, z.reshape(shape))
        return found, gradient_of(solver).ravel()

    return minimize(value, np.clip(0.7 * plan.u, *bounds[0]).ravel(), jac=True, bounds=bounds * plan.u.size,
                    method="L-BFGS-B", options=dict(maxiter=5000, maxfun=20000, ftol=1e-15, gtol=1e-10))


@pytest.mark.validation("costs of plans within limits of inputs", robots="five_bar", oracle="Optima of SciPy")
def test_the_optimum_is_that_of_another_solver():
    goal = ld.close(FIVE_BAR, FIVE_BAR.home, q1=1.7, q2=-0.9)
    cost = ld.Cost(Q=1.0, R=1e-3, q=goal, terminal_Q=20.0)
    plan = ld.ddp(FIVE_BAR, FIVE_BAR.home, np.zeros(4), cost, 25, 0.02, limits=ld.Limits(inputs=(-12.0, 12.0)))
    assert plan.status == "converged" and np.abs(plan.u).max() == 12.0 and (np.abs(plan.u) == 12.0).sum() > 3
    other = by_scipy(FIVE_BAR, plan, cost, FIVE_BAR.home, np.zeros(4), [(-12.0, 12.0)])
    # at a minimum the cost is flat: 1e-7 of it is what a gradient of 1e-4 of its first size leaves
    assert relative(plan.cost, other.fun) < 1e-7 and plan.cost <= other.fun * (1 + 1e-9)
    assert np.allclose(plan.u, other.x.reshape(plan.u.shape), atol=0.05)
    # inputs at their limits have no feedback, the others have some
    at_limit = np.abs(plan.u) == 12.0
    assert (plan.K[at_limit] == 0.0).all() and (plan.K[~at_limit] != 0.0).any(axis=-1).all()


def test_a_short_search_is_one_call_of_compiled_code(monkeypatch):
    """Each call converts a hundred arrays; a long search returns to Python now and then, for Ctrl-C."""
    calls, search = [], solving.search
    monkeypatch.setattr(solving, "search", lambda *given: calls.append(0) or search(*given))
    plan = ld.ddp(FIVE_BAR, FIVE_BAR.home, np.zeros(4), ld.Cost(Q=1.0, R=1.0), 20, 0.01)
    assert plan.iterations > 1 and len(calls) == 1
    assert solving.first_slice(60_000, 3) == solving.first_slice(100, 100) == 1
