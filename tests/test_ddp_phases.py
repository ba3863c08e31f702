"""Plans over timed phases of contacts: derivatives of touches, impacts, hops beside `simulate`, and what is refused."""
import numpy as np
import pytest
from comparison import off

import liedyn as ld
from liedyn.planning.solver import Solver

BEND, H = 0.6, 0.01


def monoped(friction=0.7):
    """A trunk in a plane on a leg with hip and knee, whose foot is a point."""
    b = ld.Builder("monoped")
    b.body("rail", 0.01, (0.0, 0.0, 0.0), (1e-5, 1e-5, 1e-5))
    b.body("trunk", 4.0, (0.0, 0.0, 0.0), (0.03, 0.03, 0.03))
    b.body("thigh", 0.4, (0.0, 0.0, -0.1), (2e-3, 2e-3, 2e-4))
    b.body("shank", 0.2, (0.0, 0.0, -0.1), (1e-3, 1e-3, 1e-4))
    b.joint("x", "prismatic", "ground", "rail", axis=(1, 0, 0))
    b.joint("z", "prismatic", "rail", "trunk", axis=(0, 0, 1))
    b.joint("hip", "revolute", "trunk", "thigh", axis=(0, 1, 0))
    b.joint("knee", "revolute", "thigh", "shank", axis=(0, 1, 0), placement=(0.0, 0.0, -0.2))
    b.actuator("hip", "hip")
    b.actuator("knee", "knee")
    b.constraint("foot", "on_plane", "ground", "shank", child_placement=(0.0, 0.0, -0.2), unilateral=True,
                 friction=friction)
    return b.build()


ROBOT = monoped()
CROUCH = np.array([0.0, 0.4 * np.cos(BEND), BEND, -2.0 * BEND])
HOLD = np.array([0.0, 4.6 * 9.81 * 0.2 * np.sin(BEND)])
HOP = [ld.Phase(["foot"], 25), ld.Phase([], 25), ld.Phase(["foot"], 30)]


def hop_cost(goal=0.25):
    q = CROUCH.copy()
    q[0] = goal
    names = ROBOT.velocity_names
    return ld.Cost(Q={"velocity:hip": 1e-3, "velocity:knee": 1e-3, "hip": 1e-2, "knee": 1e-2}, R=1e-4, q=q, u=HOLD,
                   terminal_Q={name: 100.0 for name in names} | {f"velocity:{name}": 1.0 for name in names})


def rolled(solver, u):
    """The states of all knots under inputs, rolled out, and what the search finds there."""
    solver.begin(*solver.state(CROUCH, np.zeros(4)))
    solver.set_penalty(1.0)
    solver.path.u[:] = u
    solver.search(0, 0.0, np.inf, 1.0, True)
    return solver.path, solver.expansion


def foot(q):
    return ld.pose(ROBOT, q, "shank")[:3] @ [0.0, 0.0, -0.2, 1.0]


@pytest.fixture(scope="module")
def plan():
    return ld.ddp(ROBOT, CROUCH, np.zeros(4), hop_cost(), HOP, H)


@pytest.mark.validation("impacts between phases of a plan", robots="monoped", oracle="Balance of momentum in NumPy")
def test_touches_are_plastic_impacts():
    """M (v+ - v-) + G^T Lambda = 0 and G v+ = 0 at the configuration after the touch, whose foot is on the ground."""
    solver = Solver(ROBOT, CROUCH, np.zeros(4), hop_cost(), HOP, H, None, "midpoint", None)
    path, _ = rolled(solver, HOLD + np.random.default_rng(0).normal(size=(82, 2)))
    for k in (25, 51):
        q, v, q_next, v_next = path.q[k], path.v[k], path.q[k + 1], path.v[k + 1]
        if k == 25:  # the foot leaves the ground: nothing jumps
            assert np.array_equal(q, q_next) and off(v, v_next) < 1e-12
            continue
        stance = ROBOT.switched(foot="sticking")
        assert abs(foot(q)[2]) > 1e-4 and abs(foot(q_next)[2]) < 1e-13  # a plan that is not yet one
        M, G = ld.crba(ROBOT, q_next), ld.constraint_jacobian(stance, q_next)
        kkt = np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])
        exact = np.linalg.lstsq(kkt, np.concatenate([M @ v, np.zeros(len(G))]), rcond=1e-12)[0][:4]
        assert off(v_next, exact) < 1e-11


@pytest.mark.validation("gradients of a plan over phases by its inputs", robots="monoped",
                        oracle="Differences of sixth order")
def test_gradients_across_phases():
    """Through rolling stance, take-off, flight and impact."""
    solver = Solver(ROBOT, CROUCH, np.zeros(4), hop_cost(), HOP, H, None, "midpoint", None)
    rng = np.random.default_rng(1)
    u = HOLD + rng.normal(size=(82, 2))

    def total(u):
        rolled(solver, u)
        return solver.log.cost[0]

    x = rolled(solver, u)[1]
    gradient, p = np.zeros_like(u), x.lx[-1].copy()
    for k in range(81, -1, -1):
        gradient[k] = x.lu[k] + x.B[k].T @ p
        p = x.lx[k] + x.A[k].T @ p
    for z in rng.normal(size=(3, *u.shape)):
        d = 1e-3
        a, b, c = (merit(solver, u + k * d * z) - merit(solver, u - k * d * z) for k in (1, 2, 3))
        found, expected = (45.0 * a - 9.0 * b + c) / (60.0 * d), (gradient * z).sum()
        assert off(found / abs(expected), expected / abs(expected)) < 1e-6


def merit(solver, u):
    """The cost, and half the squares of the gaps of the foot before it touches, whose penalty is 1."""
    path, _ = rolled(solver, u)
    return solver.log.cost[0] + sum(0.5 * foot(path.q[k])[2] ** 2 for k in (25, 51))


def test_a_hop(plan):
    assert plan.status == "converged" and plan.violation <= 1e-6
    assert plan.t[-1] == pytest.approx(0.8) and plan.t[25] == plan.t[26] and plan.t[51] == plan.t[52]
    heights = np.array([foot(q)[2] for q in plan.q])
    assert np.abs(heights[:26]).max() < 1e-12 and np.abs(heights[52:]).max() < 1e-12
    assert heights[27:51].min() > 0.0 and heights.max() > 0.01
    assert abs(plan.q[-1, 0] - 0.25) < 0.02


def test_each_phase_is_what_simulate_makes_of_it(plan):
    """Runs of each phase from its first knot with the plan's inputs end where the plan does, to the error of steps."""
    for first, last, closed in ((0, 25, True), (26, 51, False), (52, 82, True)):
        robot = ROBOT.switched(foot="sticking" if closed else False)
        u, t0 = plan.u[first:last], plan.t[first]
        tr = ld.simulate(robot, plan.q[first], plan.v[first], plan.t[last] - t0, dt=5e-4,
                         u=ld.Sampled(lambda t, q, v, u=u: u[min(int(t / H + 1e-6), len(u) - 1)], H), progress=False)
        assert np.abs(tr.q[-1] - plan.q[last]).max() < 2e-3


def test_what_is_refused():
    cost = hop_cost()
    with pytest.raises(ld.InputError, match="unknown constraint 'hand'"):
        ld.ddp(ROBOT, CROUCH, np.zeros(4), cost, [ld.Phase(["hand"], 5)], H)
    with pytest.raises(ld.InputError, match="phases such as"):
        ld.ddp(ROBOT, CROUCH, np.zeros(4), cost, [], H)
    with pytest.raises(ld.InputError, match="euler.*midpoint"):
        ld.ddp(ROBOT, CROUCH, np.zeros(4), cost, HOP, H, method="euler")
    with pytest.raises(ld.ClosureError, match="open by"):
        ld.ddp(ROBOT, CROUCH + 0.1, np.zeros(4), cost, HOP, H)
    with pytest.raises(ld.InputError, match="plan in phases"):
        ld.ddp(ROBOT, CROUCH, np.zeros(4), cost, 5, H)
