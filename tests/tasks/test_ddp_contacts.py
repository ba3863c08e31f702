"""Forces of contacts as limits of plans over phases: friction cones, their derivatives, and plans that they bind."""
import numpy as np
import pytest
from comparison import off
from test_ddp_phases import CROUCH, H, HOLD, HOP, REST, ROBOT, SHORT, foot, hop_cost, require_gradients, rolled

import liedyn as ld
from liedyn.machine.compiled.jit import kernel
from liedyn.tasks.planning.augmented_lagrangian import (
    Cones, add_cone_derivatives, cone_cost, nearest, update_cone_multipliers,
)
from liedyn.tasks.planning.solver import Division, Solver

MASS = ld.total_mass(ROBOT)


@kernel
def update(cones, lam):
    update_cone_multipliers(cones, 0, lam, 10.0, 1e3)


@kernel
def find_nearest(z, friction):
    return nearest((z[0], z[1], z[2], z[3]), friction)


def single_cone(friction, count=3, mu=1.0):
    """The cone of one contact on side 1, whose multipliers are -f."""
    integers = np.arange(count)
    return Cones(integers, np.zeros(1, np.int64), np.array([count]), np.ones(1), np.array([friction]),
                 np.ones((1, 1), np.int64), np.ones(1), np.zeros((1, count)), np.array([mu]), np.zeros(2 * count))


def cost_and_slope(cones, lam):
    """Added cost, its gradient and its second derivatives by the multipliers, as those of a state."""
    n = len(lam)
    lx, lxx, lu, by_u = np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros((n, 2 * n))
    added, worst = add_cone_derivatives(cones, 0, lam, (np.eye(n), np.zeros((n, n))), (lx, lxx, lu, by_u))
    assert not by_u.any() and not lu.any() and (added, worst) == cone_cost(cones, 0, lam)
    return added, lx, lxx


@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0, 2.5])
def test_nearest_points_of_the_cone(friction):
    """Moreau 1962: p = Pi z is in the cone, z - p in its polar one, and they are at right angles."""
    for z in np.random.default_rng(0).normal(size=(500, 4)):
        s, t = find_nearest(z, friction)
        p = np.array([s, *t * z[1:]])
        rest = z - p
        assert np.linalg.norm(p[1:]) <= friction * p[0] + 1e-15 and abs(p @ rest) < 1e-14
        # polar: rest . f <= 0 for all f of the cone, whose edges are (1, friction e)
        assert rest[0] + friction * np.linalg.norm(rest[1:]) < 1e-14


@pytest.mark.parametrize("friction, count", [(0.0, 1), (0.0, 3), (0.7, 3), (0.4, 4)])
def test_cost_of_a_cone_has_the_derivatives_it_says(friction, count):
    rng, d = np.random.default_rng(1), 1e-4
    for _ in range(60):
        cones, lam = single_cone(friction, count, 3.0), rng.normal(size=count)
        cones.lam[:] = rng.normal(size=count)
        _, slope, curvature = cost_and_slope(cones, lam)
        for e in d * np.eye(count):
            (a, s_a, _), (b, s_b, _) = cost_and_slope(cones, lam + e), cost_and_slope(cones, lam - e)
            assert abs((a - b) / (2.0 * d) - slope @ e / d) < 1e-3  # kinks of the slope leave d
            if np.abs(s_a - 2.0 * slope + s_b).max() < 1e-6:  # no kink in between
                assert off((s_a - s_b) / (2.0 * d), curvature @ e / d) < 1e-5
    assert np.linalg.eigvalsh(curvature)[0] > -1e-12


def test_multipliers_are_the_slope_of_the_cost():
    cones, lam = single_cone(0.5, mu=2.0), np.array([-1.0, 2.0, 0.3])
    slope = cost_and_slope(cones, lam)[1]
    update(cones, lam)
    assert off(cones.lam[0] * [-1.0, 1.0, 1.0], slope) < 1e-15 and cones.mu[0] == 20.0


def springy():
    b = ld.Builder.of(ROBOT)
    b.spring("tendon", "thigh", "shank", (0.05, 0.0, -0.1), (0.05, 0.0, -0.1), 0.2, 30.0, 1.0)
    return b.build()


def on_a_ball():
    """The ground is a sphere, on which friction has three rows of rank two."""
    b = ld.Builder.of(ROBOT)
    b.remove("constraint", "foot")
    b.constraint("foot", "on_sphere", "ground", "shank", parent_placement=(0.0, 0.0, -2.0), radius=2.0,
                 child_placement=(0.0, 0.0, -0.2), unilateral=True, friction=0.7)
    return b.build()


@pytest.mark.validation("gradients of a plan by its inputs with limits on forces of contacts", robots="monoped",
                        oracle="Differences of sixth order")
@pytest.mark.parametrize("robot", [ROBOT, springy(), on_a_ball()], ids=["plain", "spring", "on a ball"])
def test_gradients_of_forces(robot):
    """Through stance, take-off, flight, impact and stance with a friction that all of them exceed."""
    limits = ld.Limits(contacts={"foot": 0.02})
    cost = ld.Cost(Q=1.0, R=1e-4, q=CROUCH, u=HOLD, terminal_Q=10.0)
    solver, rng = Solver(robot, CROUCH, REST, cost, limits, Division(SHORT, H, "midpoint")), np.random.default_rng(0)
    solver.begin(*solver.state(CROUCH, REST))
    u = HOLD + 0.5 * rng.normal(size=(30, 2))
    sticking = robot.switched(foot="sticking")

    def distance(force):
        """To the cone, of (normal, tangential)."""
        push, hold = force[0], abs(force[1])
        s = max((push + 0.02 * hold) / (1.0 + 0.02 ** 2), 0.0)
        return 0.0 if hold <= 0.02 * push else np.hypot(push - s, hold - 0.02 * s)

    def merit(u):
        path = rolled(solver, u)
        gaps = ld.closure_error(sticking, path.q[[10, 19]])[:, 0]
        total = solver.log.cost[0] + 0.5 * gaps @ gaps
        for k in [*range(10), *range(20, 30)]:
            lam = ld.forward_dynamics(sticking, path.q[k], path.v[k], np.array([0.0, 0.0, *path.u[k]])).lam
            total += 0.5 * (distance((-lam[0], np.linalg.norm(lam[1:]))) / (9.80665 * MASS)) ** 2
        # the impulse: M (v+ - v-) = -G^T Lambda
        G = ld.constraint_jacobian(sticking, path.q[20])
        impulse = np.linalg.lstsq(G.T, -ld.crba(robot, path.q[20]) @ (path.v[20] - path.v[19]), rcond=None)[0]
        return total + 0.5 * (distance((-impulse[0], np.linalg.norm(impulse[1:]))) / MASS) ** 2

    require_gradients(solver, merit, u, rng)
    merit(u)
    assert solver.log.violation[0] > 1e-2


def sled(friction):
    """A frame that stands on the ground, and a mass that a motor pushes along it."""
    b = ld.Builder("sled")
    b.body("frame", 3.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.body("lift", 0.5, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.body("mass", 2.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.joint("x", "prismatic", "ground", "lift", axis=(1, 0, 0))
    b.joint("z", "prismatic", "lift", "frame", axis=(0, 0, 1))
    b.joint("slide", "prismatic", "frame", "mass", axis=(1, 0, 0))
    b.actuator("motor", "slide")
    b.constraint("foot", "on_plane", "ground", "frame", unilateral=True, friction=friction)
    return b.build()


@pytest.mark.validation("plans within friction cones", robots="sled", oracle="The same plan within limits of inputs")
def test_friction_limits_the_motor():
    """The frame stands while the motor pushes less than friction times the weight: the same problem twice."""
    robot, names = sled(0.4), ("slide", "velocity:slide")
    most = 0.4 * 9.81 * (3.0 + 2.0)  # what stands on the foot; lift has its mass beside it, in x only
    cost = ld.Cost(R=1e-4, q=[0.0, 0.0, 0.5], terminal_Q=dict.fromkeys(names, 1e3))
    phases = [ld.Phase(["foot"], 40)]
    plan, expected = (ld.ddp(robot, robot.home, np.zeros(3), cost, phases, 0.01, limits=limits, tolerance=1e-12)
                      for limits in (ld.Limits(), ld.Limits(inputs=(-most, most), contacts=False)))
    slippery = ld.Limits(inputs=(-1e3, 1e3), contacts={"foot": np.inf})
    with pytest.warns(ld.PlanWarning, match="'foot' has to push with 49.05 N and to hold"):
        free = ld.ddp(robot, robot.home, np.zeros(3), cost, phases, 0.01, limits=slippery)
    push, hold = plan.contacts["foot"].T
    assert np.abs(free.u).max() > 1.2 * most and (hold > 0.999999 * most).sum() >= 5
    assert off(plan.u, expected.u) < 1e-3 and off(plan.cost, expected.cost) < 1e-6 * expected.cost
    assert (hold <= 0.4 * push * (1.0 + 1e-5)).all()
    assert (np.abs(plan.multipliers["foot"]).max(axis=1) > 0.0).sum() == (hold > 0.99999 * most).sum()


@pytest.fixture(scope="module")
def hops():
    start = np.tile(CROUCH, (83, 1)), np.zeros((83, 4))
    found = {}
    for friction in (0.7, 0.3):
        found[friction] = ld.ddp(ROBOT, CROUCH, REST, hop_cost(), HOP, H, start=start,
                                 limits=ld.Limits(contacts={"foot": friction}))
    return found


def test_a_hop_within_its_friction(hops):
    for friction, plan in hops.items():
        assert plan.status == "converged" and plan.violation <= 1e-6
        push, hold = plan.contacts["foot"].T
        assert (hold <= friction * push + 1e-6 * 9.81 * MASS * 2.0).all() and push.min() > -1e-4
        push, hold = plan.impulses["foot"].T
        assert push[0] == 0.0 and push[1] > 0.0 and hold[1] <= friction * push[1] + 1e-5
    assert hops[0.3].cost > hops[0.7].cost


def test_a_simulation_with_contacts_does_not_slip(hops):
    """The plan for less friction than the robot has, as it is: the foot stays until the plan lifts it."""
    plan = hops[0.3]
    tr = ld.simulate(ROBOT, CROUCH, REST, 0.24, dt=1e-3, u=ld.Sampled(plan, plan.h), progress=False)
    assert max(abs(foot(q)[0] - foot(CROUCH)[0]) for q in tr.q) < 1e-9
    assert np.abs(tr.q[-1] - plan.q[24]).max() < 2e-3


def test_what_is_refused():
    for contacts, match in (({"hand": 0.5}, "unknown one-sided contact 'hand'"), ({"foot": -0.1}, "not negative"),
                            ({"foot": np.nan}, "not negative"), (0.5, "coefficients of friction by name"),
                            ({"foot": "wood"}, "friction of foot")):
        with pytest.raises(ld.InputError, match=match):
            ld.ddp(ROBOT, CROUCH, REST, hop_cost(), HOP, H, limits=ld.Limits(contacts=contacts))
    arm = ld.load("five_bar")
    with pytest.raises(ld.InputError, match="limits of contacts count in phases"):
        ld.ddp(arm, arm.home, np.zeros(4), ld.Cost(), 5, H, limits=ld.Limits(contacts={"foot": 0.5}))
