"""Plans over timed phases of contacts, and of robots that roll: impacts, derivatives, hops, and what is refused."""
import numpy as np
import pytest
from comparison import off

import liedyn as ld
from liedyn.tasks.planning.solver import Division, Solver

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
HOLD = np.array([0.33234856, 4.9852284])
"""Torques that hold the crouch."""
HOP = [ld.Phase(["foot"], 25), ld.Phase([], 25), ld.Phase(["foot"], 30)]
SHORT = [ld.Phase(["foot"], 10), ld.Phase([], 8), ld.Phase(["foot"], 10)]


def hop_cost(goal=0.25):
    q = CROUCH.copy()
    q[0] = goal
    names = ROBOT.velocity_names
    return ld.Cost(Q={"velocity:hip": 1e-3, "velocity:knee": 1e-3, "hip": 1e-2, "knee": 1e-2}, R=1e-4, q=q, u=HOLD,
                   terminal_Q={name: 100.0 for name in names} | {f"velocity:{name}": 1.0 for name in names})


REST = np.zeros(4)


def solver_of(phases, h=H, q=CROUCH, v=REST):
    cost = ld.Cost(Q=1.0, R=1e-4, q=CROUCH, u=HOLD, terminal_Q=10.0)
    solver = Solver(ROBOT, q, v, cost, ld.Limits(contacts=False), Division(phases, h, "midpoint"))
    solver.begin(*solver.state(q, v))
    return solver


def rolled(solver, u):
    """The plan under inputs, rolled out from the state that the solver begins with."""
    solver.set_penalty(1.0)
    solver.expansion.K[:], solver.expansion.k[:], solver.path.u[:] = 0.0, 0.0, u
    solver.search(0, (0.0, np.inf), 1.0, True)
    return solver.path


def foot(q):
    return ld.pose(ROBOT, q, "shank")[:3] @ [0.0, 0.0, -0.2, 1.0]


@pytest.fixture(scope="module")
def plan():
    start = np.tile(CROUCH, (83, 1)), np.zeros((83, 4))
    return ld.ddp(ROBOT, CROUCH, np.zeros(4), hop_cost(), HOP, H, start=start)


@pytest.mark.validation("impacts between phases of a plan", robots="monoped", oracle="Balance of momentum in NumPy")
def test_touches_are_plastic_impacts():
    """M (v+ - v-) + G^T Lambda = 0 and G v+ = 0 at the configuration after the touch, whose foot is on the ground."""
    path = rolled(solver_of(SHORT), HOLD + 0.5 * np.random.default_rng(0).normal(size=(30, 2)))
    assert off(path.q[11], path.q[10]) < 1e-14 and off(path.v[11], path.v[10]) < 1e-12  # the foot leaves: nothing jumps
    q, v = path.q[20], path.v[20]
    assert abs(foot(path.q[19])[2]) > 1e-2 and abs(foot(q)[2]) < 1e-13  # the gap is no plan's yet, and closed at once
    M, G = ld.crba(ROBOT, q), ld.constraint_jacobian(ROBOT.switched(foot="sticking"), q)
    kkt = np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])
    exact = np.linalg.lstsq(kkt, np.concatenate([M @ path.v[19], np.zeros(len(G))]), rcond=1e-12)[0][:4]
    assert off(v, exact) < 1e-11


def require_gradients(solver, merit, u, rng):
    """Those of the merit by inputs of stance, flight and landing, by the expansion at u and by differences."""
    merit(u)
    x, gradient = solver.expansion, np.zeros_like(u)
    p = x.lx[-1].copy()
    for k in range(29, -1, -1):
        gradient[k] = x.lu[k] + x.B[k].T @ p
        p = x.lx[k] + x.A[k].T @ p
    for part in (slice(0, 10), slice(11, 19), slice(20, 30)):
        z, d = np.zeros_like(u), 1e-2
        z[part] = rng.normal(size=z[part].shape)
        a, b, c = (merit(u + k * d * z) - merit(u - k * d * z) for k in (1, 2, 3))
        found, expected = (45.0 * a - 9.0 * b + c) / (60.0 * d), (gradient * z).sum()
        assert off(found / abs(expected), expected / abs(expected)) < 1e-6  # differences leave 1e-8


@pytest.mark.validation("gradients of a plan over phases by its inputs", robots="monoped",
                        oracle="Differences of sixth order")
def test_gradients_across_phases():
    """Through stance that rolls over the foot, take-off, flight and impact; by the inputs of each."""
    solver, rng = solver_of(SHORT), np.random.default_rng(0)
    u = HOLD + 0.5 * rng.normal(size=(30, 2))

    def merit(u):
        """The cost, and half the squares of gaps that should be closed, whose penalty is 1."""
        path = rolled(solver, u)
        return solver.log.cost[0] + 0.5 * foot(path.q[10])[2] ** 2 + 0.5 * foot(path.q[19])[2] ** 2

    require_gradients(solver, merit, u, rng)


def test_a_hop(plan):
    assert plan.status == "converged" and plan.violation <= 1e-6
    assert plan.t[-1] == pytest.approx(0.8) and plan.t[25] == plan.t[26] and plan.t[51] == plan.t[52]
    heights = np.array([foot(q)[2] for q in plan.q])
    # closed at all knots of stance, and never below the ground in flight but for the gap at its end
    assert np.abs(heights[plan.phase != 1]).max() < 1e-12 and heights.min() > -1e-6 and heights.max() > 0.05
    assert abs(plan.q[-1, 0] - 0.25) < 0.02
    push, hold = plan.contacts["foot"].T
    assert (push[plan.phase[:-1] == 1] == 0.0).all() and push[0] > 0.0 and (hold <= 0.7 * push + 1e-9).all()


@pytest.mark.parametrize("knot, closed", [(0, ["foot"]), (26, []), (52, ["foot"])])
def test_steps_of_a_phase_come_closer_to_a_simulation(plan, knot, closed):
    """By the square of their length, as the midpoint rule does."""
    robot, u = ROBOT.switched(foot="sticking" if closed else False), plan.u[knot]
    exact = ld.simulate(robot, plan.q[knot], plan.v[knot], 0.04, dt=1e-4, u=u, progress=False)
    errors = []
    for steps in (8, 16, 32):
        solver = solver_of([ld.Phase(closed, steps)], 0.04 / steps, plan.q[knot], plan.v[knot])
        path = rolled(solver, u)
        errors.append(np.abs(np.concatenate([path.q[-1] - exact.q[-1], path.v[-1] - exact.v[-1]])).max())
    assert np.log2(errors[0] / errors[2]) / 2.0 > 1.65


def test_a_contact_that_would_pull():
    """The plan is told to stay on the ground, where its cost wants the body to fall faster than it would."""
    q = np.tile(CROUCH, (31, 1))
    q[:, 1] += 0.05 * np.sin(25.0 * H * np.arange(31))  # accelerations of three g
    cost = ld.Cost(Q={"z": 1e3}, R=1e-6, q=q, u=HOLD, terminal_Q={"z": 1e3})
    with pytest.warns(ld.PlanWarning, match="contact 'foot' has to push with -"):
        ld.ddp(ROBOT, CROUCH, np.zeros(4), cost, [ld.Phase(["foot"], 30)], H, limits=ld.Limits(contacts=False))


def test_a_robot_that_rolls():
    """A disk on a plane comes to another place and heading: three coordinates, and two velocities."""
    disk = ld.load("rolling_disk")
    goal = disk.home + np.array([0.3, 0.1, 0.4])[:disk.nq]
    cost = ld.Cost(Q={f"velocity:{name}": 1e-3 for name in disk.velocity_names}, R=1e-4, q=goal,
                   terminal_Q={name: 10.0 for name in disk.velocity_names})
    plan = ld.ddp(disk, disk.home, np.zeros(disk.nv), cost, 60, 0.02)
    assert plan.status == "converged" and plan.cost < 0.5 * plan.costs[0]
    psi = [np.abs(ld.velocity_error(disk, q, v)).max() for q, v in zip(plan.q, plan.v)]
    assert max(psi) < 1e-11


def test_what_is_refused():
    cost, rest = hop_cost(), np.zeros(4)
    with pytest.raises(ld.InputError, match="unknown constraint 'hand'"):
        ld.ddp(ROBOT, CROUCH, rest, cost, [ld.Phase(["hand"], 5)], H)
    with pytest.raises(ld.InputError, match="phases such as"):
        ld.ddp(ROBOT, CROUCH, rest, cost, [], H)
    with pytest.raises(ld.InputError, match="euler.*midpoint"):
        ld.ddp(ROBOT, CROUCH, rest, cost, HOP, H, method="euler")
    for phases in ([ld.Phase(["foot"], 0)], [ld.Phase([], 5), ld.Phase(["foot"], 0)]):
        with pytest.raises(ld.InputError, match="steps of a phase"):
            ld.ddp(ROBOT, CROUCH, rest, cost, phases, H)
    with pytest.raises(ld.ClosureError, match="open by"):
        ld.ddp(ROBOT, CROUCH + 0.1, rest, cost, HOP, H)
    with pytest.raises(ld.InputError, match="plan in phases"):
        ld.ddp(ROBOT, CROUCH, rest, cost, 5, H)
    with pytest.raises(ld.InputError, match="steps"):
        ld.MPC(ROBOT, CROUCH, rest, cost, HOP, H)


def solo_on_its_feet():
    """A quadruped with a floating base, crouched, and the torques that hold it."""
    b, feet = ld.Builder.of(ld.load("solo12")), ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    for name in feet:
        b.constraint(name.lower(), "on_plane", "ground", name, unilateral=True, friction=0.8)
    solo = b.build()
    q, names = solo.neutral.copy(), tuple(name.lower() for name in feet)
    for name in feet:
        bend = 0.8 if name[0] == "F" else -0.8
        q[solo.coordinate_index(f"{name[:2]}_HFE")], q[solo.coordinate_index(f"{name[:2]}_KFE")] = bend, -2.0 * bend
    q[6] -= ld.pose(solo, q, feet[0])[2, 3]
    rest = np.zeros(18)
    G = ld.constraint_jacobian(solo.switched({name: "sticking" for name in names}), q)
    S = np.hstack([np.eye(18)[:, 6:], -G.T])
    return solo, q, names, np.linalg.lstsq(S, ld.rnea(solo, q, rest, rest), rcond=None)[0][:12]


@pytest.mark.parametrize("gait", ["hop", "trot"])
def test_a_quadruped(gait):
    """Redundant contacts, a floating base, phases that open some contacts and close others."""
    solo, q, feet, hold = solo_on_its_feet()
    phases = {"hop": [ld.Phase(feet, 20), ld.Phase([], 15), ld.Phase(feet, 25)],
              "trot": [ld.Phase(feet, 5), ld.Phase(feet[::3], 15), ld.Phase(feet, 5), ld.Phase(feet[1:3], 15),
                       ld.Phase(feet, 10)]}[gait]
    goal, names = q + 0.1 * (np.arange(19) == 4), solo.velocity_names
    weights = {name: 1e-3 for name in names[6:]} | {f"velocity:{name}": 1e-4 for name in names[6:]}
    cost = ld.Cost(Q=weights, R=1e-3, q=goal, u=hold,
                   terminal_Q={name: 10.0 for name in names} | {f"velocity:{name}": 0.1 for name in names})
    knots = sum(each.steps + 1 for each in phases)
    plan = ld.ddp(solo, q, np.zeros(18), cost, phases, 0.01, start=(np.tile(q, (knots, 1)), np.zeros((knots, 18))))
    assert plan.status == "converged" and plan.violation <= 1e-6 and plan.q[-1, 4] > 0.06
    heights = {name: np.array([ld.pose(solo, each, name.upper())[2, 3] for each in plan.q]) for name in feet}
    for k, each in enumerate(phases):
        for name in each.closed:
            assert np.abs(heights[name][plan.phase == k]).max() < 1e-12
    push = np.array([plan.contacts[name][:, 0] for name in feet])
    weight = 9.81 * ld.total_mass(solo)
    assert abs(push[:, 0].sum() - weight) < 0.5 * weight
