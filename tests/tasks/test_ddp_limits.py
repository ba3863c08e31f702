"""Limits of plans, plans that begin with gaps, model-predictive control, and what is refused."""
import warnings

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

import liedyn as ld
from benchmarks import reaches
from liedyn.machine.compiled.by_address import placed
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.late import _LATE
from liedyn.tasks.planning.ddp_search import EXACT, find_changes
from liedyn.tasks.planning.solver import Division, Solver

FIVE_BAR, LOADER, PANDA = (ld.load(name) for name in ("five_bar", "loader", "panda"))
REST = np.zeros(4)
GOAL = ld.close(FIVE_BAR, FIVE_BAR.home, q1=1.7, q2=-0.9)
COST = ld.Cost(Q=1.0, R=1e-3, q=GOAL, terminal_Q=20.0)


@kernel
def changes(o, rooms, path, x, exact):
    return find_changes(placed(o), placed(rooms), path, placed(x), 0.0, False, exact)


@pytest.mark.parametrize("scale", [1.0, 1e-7])
@pytest.mark.parametrize("inputs", [(-0.4, 0.5), {"q1": (0.0, np.inf), "q2": (-np.inf, 0.3)},
                                    {"q1": (0.2, 0.2), "q3": (-0.1, 0.1)}])
def test_changes_within_limits_are_the_best_ones_all_along_a_plan(inputs, scale):
    """Of the quadratic model of random steps, against bounded least squares of SciPy on all inputs at once; small ones
    as well, by which inputs leave their limits a little."""
    rng, steps = np.random.default_rng(0), 12
    solver = Solver(FIVE_BAR, FIVE_BAR.home, REST, ld.Cost(Q=1.0, R=1e-3), ld.Limits(inputs=inputs),
                    Division(steps, 0.02, "midpoint"))
    o, e, u, box = solver.objective, solver.expansion, solver.path.u, solver.rooms.box
    x, nu = e.B.shape[1:]
    for _ in range(10):
        e.A[:], e.B[:], e.gap[:] = 0.7 * rng.normal(size=e.A.shape), rng.normal(size=e.B.shape), 0.0
        roots = rng.normal(size=(steps + 1, x, x))
        e.lxx[:], e.lx[:], e.lu[:] = roots.transpose(0, 2, 1) @ roots, *(scale * rng.normal(size=s) for s in (
            e.lx.shape, e.lu.shape))
        u[:] = np.clip(0.3 * rng.normal(size=u.shape), o.u_low, o.u_high)
        u[2] = np.clip(9.0, o.u_low, np.minimum(o.u_high, 9.0))  # at limits
        slope, _ = changes(o, solver.rooms, solver.path, e, 0.0)
        # dx = G du, and the cost |C du - d|^2 / 2 but for a constant
        G = np.zeros((steps + 1, x, steps * nu))
        for k in range(steps):
            G[k + 1] = e.A[k] @ G[k]
            G[k + 1][:, k * nu:(k + 1) * nu] += e.B[k]
        H = np.kron(np.eye(steps), 2.0 * o.R) + np.einsum("kia,kij,kjb->ab", G, e.lxx, G)
        g = e.lu.ravel() + np.einsum("kia,ki->a", G, e.lx)
        C = np.linalg.cholesky(H).T
        low, high = np.tile(o.u_low, steps) - u.ravel(), np.tile(o.u_high, steps) - u.ravel()
        free, best = low < high, low.copy()
        best[free] = lsq_linear(C[:, free], -np.linalg.solve(C.T, g) - C[:, ~free] @ low[~free],
                                (low[free], high[free]), method="bvls", tol=1e-13).x
        du = box.wanted.ravel()
        assert (du >= low - 1e-11).all() and (du <= high + 1e-11).all()
        assert slope == pytest.approx(g @ du, rel=1e-9)
        taken = np.zeros(low.size)  # with feedback, and inputs that are held at their limits
        for k in range(steps):
            at = slice(k * nu, (k + 1) * nu)
            taken[at] = np.clip(e.k[k] + e.K[k] @ G[k] @ taken, low[at], high[at])
        cost, held, least = (g @ z + 0.5 * z @ H @ z for z in (du, taken, best))
        assert abs(cost - least) <= 1.1 * EXACT * abs(slope) and abs(held - least) <= 2.0 * EXACT * abs(slope)
        assert np.abs(best - np.clip(np.linalg.solve(H, -g), low, high)).max() > 1e-2 * scale  # limits matter


@pytest.mark.parametrize("limits, of", [
    (ld.Limits(speeds={"q3": (-0.2, 0.6)}), lambda plan: plan.v[:, 2]),
    (ld.Limits(coordinates={"q4": (-1.42, -1.2)}), lambda plan: plan.q[:, 3]),
    (ld.Limits(inputs=(-14.0, 14.0), targets=[(ld.PointTarget("link3", (0.0, 0.0, 0.0)), (-9.0, -9.0, -9.0),
                                              (9.0, 2.02, 9.0))]),
     lambda plan: np.array([ld.pose(FIVE_BAR, q, "link3")[1, 3] for q in plan.q])),
])
def test_limits_of_states_are_held_and_the_plan_is_the_best_one(limits, of):
    """Against SciPy's SLSQP on the same rollouts; the limits count for coordinates that depend on others, too."""
    free = ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, COST, 12, 0.04)
    plan = ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, COST, 12, 0.04, limits=limits)
    assert plan.status == "converged" and plan.violation <= 1e-6 and plan.cost > 1.0005 * free.cost
    low, high = limits_of(limits)
    x = of(plan)
    margin = min(x[1:].min() - low, high - x[1:].max())
    assert -1e-6 <= margin < 1e-6
    assert max(np.abs(ld.closure_error(FIVE_BAR, q)).max() for q in plan.q) < 1e-12
    solver = Solver(FIVE_BAR, FIVE_BAR.home, REST, COST, None, Division(12, 0.04, "midpoint"))
    solver.begin(FIVE_BAR.home, REST)

    def rolled(z):
        solver.path.u[:], solver.expansion.K[:], solver.expansion.k[:] = z.reshape(12, 4), 0.0, 0.0
        solver.search(0, (0.0, np.inf), 1.0, True)
        return solver.log.cost[0]

    def gradient(z):
        rolled(z)
        e, found = solver.expansion, np.zeros((12, 4))
        p = e.lx[-1].copy()
        for k in range(11, -1, -1):
            found[k] = e.lu[k] + e.B[k].T @ p
            p = e.lx[k] + e.A[k].T @ p
        return found.ravel()

    def margins(z):
        rolled(z)
        x = of(solver.path)[1:]
        return np.concatenate([x - low, high - x])

    bounds = [(-14.0, 14.0) if limits.inputs else (None, None)] * 48
    other = minimize(rolled, 0.98 * plan.u.ravel(), jac=gradient, bounds=bounds, method="SLSQP",
                     constraints=[dict(type="ineq", fun=margins)], options=dict(maxiter=300, ftol=1e-12))
    # both hold limits to 1e-6, and SciPy differentiates them by differences
    assert other.success and plan.cost == pytest.approx(other.fun, rel=2e-5)


def limits_of(limits):
    """The interval of the one limit that counts."""
    if limits.targets:
        return -9.0, 2.02
    return next(iter((limits.speeds or limits.coordinates).values()))


def test_multipliers_are_the_price_of_limits():
    """The derivative of the cost by a lower limit is minus the sum of its multipliers, which are negative."""
    costs = [ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, COST, 12, 0.04, tolerance=1e-13, limit_tolerance=1e-9,
                    limits=ld.Limits(speeds={"q3": (-0.2 + d, 9.0)})) for d in (-1e-3, 0.0, 1e-3)]
    price = costs[1].multipliers["velocity:q3"]
    assert (price <= 0.0).all() and price.min() < 0.0
    slope = (costs[2].cost - costs[0].cost) / 2e-3
    assert slope == pytest.approx(-price.sum(), rel=1e-3)  # differences of 1e-3, where active knots may change


@pytest.mark.parametrize("robot", [FIVE_BAR, LOADER, PANDA])
def test_plans_from_states_that_do_not_follow_from_one_another(robot):
    """Multiple shooting closes the gaps, and finds the plan that rollouts find."""
    n, nu = robot.nv, len(robot.actuator_names)
    hold = ld.inverse_dynamics(robot, robot.home, np.zeros(n), np.zeros(len(robot.independent or range(n)))).u
    cost = ld.Cost(Q=1.0, R=1e-9 if robot is LOADER else 1e-3, q=robot.home, u=hold, terminal_Q=10.0)
    rng, names = np.random.default_rng(4), robot.independent or robot.coordinate_names
    q = [robot.home]
    for dx in 0.03 * rng.normal(size=(20, len(names))):
        aims = {name: robot.home[robot.coordinate_index(name)] + d for name, d in zip(names, dx)}
        q.append(ld.close(robot, robot.home, **aims) if robot.row_names else robot.home + dx)
    q[0] = q[-1]
    v = np.zeros((21, n))
    plan = ld.ddp(robot, q[0], v[0], cost, 20, 0.02, start=(np.array(q), v))
    rolled = ld.ddp(robot, q[0], v[0], cost, 20, 0.02, start=np.tile(hold, (20, 1)))
    assert plan.status == "converged" and plan.cost == pytest.approx(rolled.cost, rel=1e-8)
    again = ld.ddp(robot, q[0], v[0], cost, 20, 0.02, start=plan, iterations=3)
    assert again.cost == pytest.approx(plan.cost, rel=1e-9) and again.u.shape == (20, nu)


def test_a_plan_is_the_same_each_time():
    plans = [ld.ddp(LOADER, LOADER.home, np.zeros(8), ld.Cost(Q=1.0, R=1e-9), 15, 0.02) for _ in range(2)]
    assert np.array_equal(plans[0].u, plans[1].u) and np.array_equal(plans[0].K, plans[1].K)


def loader_control(**more):
    goal = ld.close(LOADER, LOADER.home, boom=0.35, bucket=-0.3)
    hold = ld.inverse_dynamics(LOADER, goal, np.zeros(8), np.zeros(2)).u
    weights = {"boom": 100.0, "bucket": 100.0, "velocity:boom": 1.0, "velocity:bucket": 1.0}
    cost = ld.Cost(Q=weights, R=1e-11, q=goal, u=hold, terminal_Q={name: 10.0 * x for name, x in weights.items()})
    limits = ld.Limits(inputs=(-2e5, 2e5), speeds={"lift_rod": (-0.25, 0.25)})
    return ld.MPC(LOADER, LOADER.home, np.zeros(8), cost, 50, 0.02, limits=limits, **more)


@pytest.mark.parametrize("method", ["euler", "midpoint"])
def test_a_loader_is_controlled_within_its_limits(method):
    mpc, given = loader_control(method=method), []

    def controller(t, q, v):
        given.append(mpc(t, q, v))
        return given[-1]

    tr = ld.simulate(LOADER, LOADER.home, np.zeros(8), 2.5, dt=2e-3, u=ld.Sampled(controller, 0.01))
    assert abs(tr["boom"][-1] - 0.35) < 1e-4 and abs(tr["bucket"][-1] + 0.3) < 1e-4
    # the plan's steps are of another method and length than the run's: what is held there to 1e-4 is held here to 5e-4
    assert 2e5 - 1e-4 < np.abs(given).max() <= 2e5 and np.abs(tr["velocity:lift_rod"]).max() < 0.2505
    # no chatter while the limit binds: of the smooth decay that full convergence shows, steps change by 1 kN on average
    binding = (tr.t > 0.3) & (tr.t < 0.6)
    assert tr["velocity:lift_rod"][binding].min() > 0.24
    assert np.abs(np.diff(given[30:60], axis=0)).max() < 5e3
    assert mpc.plan.u.shape == (50, 2) and "loader" in repr(mpc)
    mpc.reset()
    assert np.array_equal(mpc(0.0, LOADER.home, np.zeros(8)), given[0])


def test_a_call_ends_when_its_time_is_over(monkeypatch):
    """A clock that ticks a millisecond whenever it is read: an iteration takes one, and one more lies before the first
    and between two of them."""
    ticks = iter(range(10 ** 6))
    monkeypatch.setattr("liedyn.tasks.planning.mpc.time.perf_counter", lambda: 1e-3 * next(ticks))
    for budget, most in ((1e-4, 1), (4.5e-3, 2), (6.5e-3, 3)):
        mpc = loader_control(budget=budget, iterations=20)
        mpc(0.0, LOADER.home, np.zeros(8))
        assert mpc.status == "converged"  # the first call takes what it needs
        v = ld.complete_velocity(LOADER, LOADER.home, {"boom": 0.4, "bucket": -0.4})  # a push
        mpc(0.01, LOADER.home, v)
        assert mpc.iterations == most and mpc.status == "no iteration is left"


def test_parts_of_a_search_are_the_search():
    """An iteration at a time, as with a budget that never ends, and all at once; limits cannot hold the push."""
    given = []
    for budget in (None, 1e9):
        mpc = loader_control(budget=budget, iterations=15)
        mpc(0.0, LOADER.home, np.zeros(8))
        v = ld.complete_velocity(LOADER, LOADER.home, {"boom": 0.2, "bucket": -0.2})
        given.append([mpc(0.01, LOADER.home, v), mpc.iterations, mpc.plan.v, mpc.plan])
    assert given[0][1] == given[1][1] > 3 and np.allclose(given[0][3].costs, given[1][3].costs, rtol=1e-9)
    assert len(given[0][3].costs) == given[0][1] + 1
    assert np.allclose(given[0][0], given[1][0], rtol=1e-9) and np.allclose(given[0][2], given[1][2], atol=1e-9)


def test_a_state_without_a_plan():
    """Thrown at the ends of its workspace, the arm goes on as it was planned, says so, and plans again later."""
    limits = ld.Limits(inputs=(-5.0, 5.0))
    mpc = ld.MPC(FIVE_BAR, FIVE_BAR.home, REST, ld.Cost(Q=1.0, R=1e-3, q=FIVE_BAR.home + 0.1), 20, 0.02, limits=limits)
    mpc(0.0, FIVE_BAR.home, REST)
    planned, bad = mpc.plan, ld.complete_velocity(FIVE_BAR, FIVE_BAR.home, {"q1": 50.0, "q2": 50.0})
    for t in (0.02, 0.021, 0.04):
        with pytest.warns(ld.PlanWarning, match="plan before goes on.*knot") as said:
            u = mpc(t, FIVE_BAR.home, bad)
        assert said[0].filename == __file__
        assert mpc.status == "as planned before" and np.abs(u).max() <= 5.0
        assert np.allclose(u, planned(t, FIVE_BAR.home, bad), rtol=1e-12)  # the same sum
        assert mpc.plan.status == mpc.status and np.isnan(mpc.plan.cost)
    mpc(0.06, FIVE_BAR.home, REST)
    assert mpc.status != "as planned before"


def test_gaps_of_a_plan_that_cannot_be_rolled_out_are_closed():
    """Where the rollout from a state leads nowhere, the plan begins with a gap, which counts: its steps are real ones
    once the search has converged."""
    mpc = ld.MPC(FIVE_BAR, FIVE_BAR.home, REST, ld.Cost(Q=1.0, R=1e-3, q=FIVE_BAR.home + 0.1), 20, 0.02,
                 limits=ld.Limits(inputs=(-5.0, 5.0)), iterations=50)
    mpc(0.0, FIVE_BAR.home, REST)
    v = ld.complete_velocity(FIVE_BAR, FIVE_BAR.home, {"q1": 10.0, "q2": -10.0})
    mpc(0.02, FIVE_BAR.home, v)
    plan = mpc.plan
    assert mpc.status == "converged" and np.array_equal(plan.v[0], v)
    again = ld.ddp(FIVE_BAR, FIVE_BAR.home, v, ld.Cost(Q=1.0, R=1e-3, q=FIVE_BAR.home + 0.1), 20, 0.02, method="euler",
                   limits=ld.Limits(inputs=(-5.0, 5.0)), start=plan, iterations=0, tolerance=1.0)
    assert np.allclose(again.q, plan.q, atol=1e-8)  # gaps that count as closed, 1e-9, and what becomes of them


def test_control_of_a_moving_goal():
    """A cost as a function of time."""
    def cost(t):
        times = t + 0.02 * np.arange(31)
        q = np.tile(PANDA.home, (31, 1))
        q[:, 0] = 0.3 * np.sin(2.0 * times)
        v = np.zeros((31, 7))
        v[:, 0] = 0.6 * np.cos(2.0 * times)
        return ld.Cost(Q=np.r_[np.full(7, 100.0), np.ones(7)], R=1e-5, q=q, v=v, terminal_Q=100.0)

    start, v = PANDA.home.copy(), np.zeros(7)
    v[0] = 0.6
    mpc = ld.MPC(PANDA, start, v, cost, 30, 0.02)
    tr = ld.simulate(PANDA, start, v, 1.0, dt=2e-3, u=ld.Sampled(mpc, 0.02))
    wanted = 0.3 * np.sin(2.0 * tr.t)
    assert np.abs(tr.q[:, 0] - wanted)[len(wanted) // 2:].max() < 0.01


def test_what_is_refused():
    cost = ld.Cost(Q=1.0, R=0.1)
    with pytest.raises(ld.InputError, match="unknown 'q9'"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, ld.Cost(Q={"q9": 1.0}), 5, 0.01)
    with pytest.raises(ld.InputError, match="euler.*rolling"):
        disk = ld.load("rolling_disk")
        ld.ddp(disk, disk.home, np.zeros(disk.nv), cost, 5, 0.01, method="euler")
    with pytest.raises(ld.ClosureError, match="open by"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home + 0.1, REST, cost, 5, 0.01)
    with pytest.raises(ld.InputError, match="cut joint"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, cost, 5, 0.01, independent=("pin", "q1"))
    with pytest.raises(ld.InputError, match="lowest not above the highest"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, cost, 5, 0.01, limits=ld.Limits(inputs=(1.0, -1.0)))
    with pytest.raises(ld.LiedynError, match="knot"):  # thrown through the ends of its workspace
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, cost, 50, 0.05, start=np.full((50, 4), 300.0))
    b = ld.Builder.of(FIVE_BAR)
    b.coordinate_force("bar", {"q1": 1.0}, law=lambda x, w: (2.0 * x, 2.0, 0.0))
    with pytest.raises(ld.InputError, match="laws of users"):
        ld.ddp(b.build(), FIVE_BAR.home, REST, cost, 5, 0.01)
    with pytest.warns(ld.PlanWarning, match="no iteration is left after 1 "):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, COST, 10, 0.02, iterations=1)
    with pytest.warns(ld.PlanWarning, match="limits are violated by"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, COST, 3, 0.01, limits=ld.Limits(coordinates={"q1": (0.0, 1.0)}))
    mpc = ld.MPC(FIVE_BAR, FIVE_BAR.home, REST, cost, 5, 0.01)
    mpc(1.0, FIVE_BAR.home, REST)
    with pytest.raises(ld.InputError, match="time goes back"):
        mpc(0.5, FIVE_BAR.home, REST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ld.ddp(FIVE_BAR, FIVE_BAR.home, REST, cost, 5, 0.01).status == "converged"


@pytest.mark.parametrize("method", ["euler", "midpoint"])
def test_control_with_limits_that_are_hard_to_hold(method):
    """Panda with speeds and torques at their limits for half of the motion, planned at first from inputs under which it
    falls (the cost is 40 and 200 times that of the plan)."""
    goal, rest = PANDA.home + np.array([1.0, 0.5, -0.4, 0.6, 0.5, 0.4, 0.5]), np.zeros(7)
    weights = {**dict.fromkeys(PANDA.coordinate_names, 10.0),
               **{f"velocity:{name}": 0.1 for name in PANDA.velocity_names}}
    cost = ld.Cost(Q=weights, R=1e-4, q=goal, u=ld.rnea(PANDA, goal, rest, rest),
                   terminal_Q=dict.fromkeys(PANDA.coordinate_names, 100.0))
    limits = ld.Limits(inputs=(-60.0, 60.0), speeds={"panda_joint1": (-0.8, 0.8), "panda_joint2": (-0.5, 0.5)})
    mpc = ld.MPC(PANDA, PANDA.home, rest, cost, 40, 0.02, limits=limits, method=method, iterations=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr = ld.simulate(PANDA, PANDA.home, rest, 2.5, dt=2e-3, u=ld.Sampled(mpc, 0.01))
    assert np.abs(tr.q[-1] - goal).max() < 1e-3
    # steps of 20 ms are not the motion: at the corners of the torques speeds differ from what is planned by 3 %
    assert tr["velocity:panda_joint1"].max() < 0.84 and tr["velocity:panda_joint2"].max() < 0.52


def test_control_above_a_table():
    """A hand that is drawn to a point below a table stays above it, also where inputs have no limits."""
    hand, rest = ld.pose(PANDA, PANDA.home, "panda_hand")[:3, 3], np.zeros(7)
    goal, table = hand + np.array([0.1, 0.45, -0.1]), hand[2] - 0.05
    cost = ld.Cost(Q={f"velocity:{name}": 0.05 for name in PANDA.velocity_names}, R=1e-5,
                   u=ld.rnea(PANDA, PANDA.home, rest, rest), targets=ld.PointTarget("panda_hand", goal, weight=3.0),
                   terminal_targets=ld.PointTarget("panda_hand", goal, weight=30.0))
    limits = ld.Limits(targets=[(ld.PointTarget("panda_hand", (0.0, 0.0, 0.0)), (-9.0, -9.0, table), (9.0, 9.0, 9.0))])
    mpc = ld.MPC(PANDA, PANDA.home, rest, cost, 30, 0.02, limits=limits)
    tr = ld.simulate(PANDA, PANDA.home, rest, 1.0, dt=2e-3, u=ld.Sampled(mpc, 0.01))
    z = ld.pose(PANDA, tr.q, "panda_hand")[:, :3, 3]
    assert z[:, 2].min() > table - 2e-3 and np.abs(z[-1, :2] - goal[:2]).max() < 0.02
    assert np.abs(tr.v).max() < 4.0


def test_a_first_plan_that_has_not_converged_says_so(monkeypatch):
    monkeypatch.setattr("liedyn.tasks.planning.mpc.FIRST_ITERATIONS", 1)
    with pytest.warns(ld.PlanWarning, match="first plan is not the best one: no iteration is left after 1"):
        loader_control()(0.0, LOADER.home, np.zeros(8))


def test_no_call_of_a_controller_compiles():
    """Its constructor does, for a robot that rests, too: kernels are looked for by their addresses."""
    arm, rest = ld.load("five_bar"), np.zeros(4)
    for each in _LATE.values():
        each.address.value = 0
    hold = ld.inverse_dynamics(arm, arm.home, rest, [0.0, 0.0]).u
    cost = ld.Cost(Q=1.0, R=1e-2, q=arm.home, u=hold)
    limits = ld.Limits(inputs=(-1.1 * np.abs(hold).max(), 1.1 * np.abs(hold).max()), speeds={"q1": (-0.1, 0.1)})
    # the arm does not move, as the plan says, and then it does, until inputs come to their limits
    v = [ld.complete_velocity(arm, arm.home, {"q1": w, "q2": 0.0}) for w in (0.0, 0.1, 0.2, 2.0)]
    mpc = ld.MPC(arm, arm.home, rest, cost, 10, 0.02, limits=limits)
    assert np.array_equal(mpc._solver.objective.u_high, np.full(4, limits.inputs[1]))
    known = {name for name, each in _LATE.items() if each.address.value}
    for k in range(4):
        mpc(0.015 * k, arm.home, v[k])
    assert np.abs(mpc.plan.u).max() == limits.inputs[1]
    assert {name for name, each in _LATE.items() if each.address.value} == known


def test_limits_of_the_position_of_a_free_joint():
    """A turned body has to go to another place beside a wall: its position in q is limited, whatever its attitude."""
    b = ld.Builder("kite", gravity=(0.0, 0.0, 0.0))
    b.body("kite", 1.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.3))
    b.joint("base", "free", "ground", "kite")
    robot = b.build()
    start = ld.integrate(robot, robot.neutral, [0.9, -0.7, 0.4, 0.0, 0.0, 0.0])
    goal = start.copy()
    goal[4:] = 0.2, -0.1, 0.3
    k, wall = robot.coordinate_index("base.x"), start[4] + 0.15
    cost = ld.Cost(Q=1e-3, R=1e-3, q=goal, terminal_Q=50.0)
    plan = ld.ddp(robot, start, np.zeros(6), cost, 15, 0.1, limits=ld.Limits(coordinates={"base.x": (-1.0, wall)}))
    assert plan.status == "converged" and plan.q[:, k].max() == pytest.approx(wall, abs=1e-6)
    assert np.abs(plan.q[-1, 5:] - goal[5:]).max() < 0.01  # the other two go where they are to go


@pytest.mark.parametrize("number", [3, 33, 69])
def test_a_search_that_says_that_it_has_converged_is_at_a_minimum(number):
    """Another search from there finds next to nothing, where damping alone made changes promise little."""
    problem = reaches.problem(number)
    first = reaches.own(problem)
    again = reaches.own(problem, first["inputs"])
    assert again["cost"] >= (1.0 - (1e-6 if first["converged"] else 1e-4)) * first["cost"]
    assert first["converged"] or number == 3  # which creeps along a bent valley


@pytest.mark.parametrize("seed", [3, 7])
def test_a_weak_acrobot_swings_up_from_random_inputs(seed):
    """The same minimum from everywhere, with the search converged: inputs that feedback takes beyond their limits would
    end steps short, one by one, unless they are held together."""
    b = ld.Builder("acrobot")
    for name in ("upper", "lower"):
        b.body(name, 1.1, (0.0, 0.0, -0.45), (0.08, 0.08, 1e-4))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("elbow", "revolute", "upper", "lower", axis=(0, 1, 0), placement=(0, 0, -0.9))
    b.actuator("motor", "elbow")
    cost = ld.Cost(Q=1e-4, R=1e-5, q=[np.pi, 0.0], terminal_Q=1e3)
    start = np.clip(3.6 * np.random.default_rng(seed).normal(size=(150, 1)), -12.0, 12.0)
    plan = ld.ddp(b.build(), [0.0, 0.0], [0.0, 0.0], cost, 150, 0.02, limits=ld.Limits(inputs=(-12.0, 12.0)),
                  method="euler", start=start, iterations=500)
    assert plan.status == "converged" and plan.cost == pytest.approx(0.664205, rel=1e-4)  # that of six seeds of seven
    assert np.abs(plan.u).max() <= 12.0
