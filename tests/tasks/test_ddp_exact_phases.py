"""Plans with exact second derivatives of robots that roll, and over phases of contacts: Hessians of steps and of phase
changes, and the iterations that they save."""
import functools

import numpy as np
import pytest
from rolling_robots import balancer, rolling, skateboard
from test_ddp import sixth_order
from test_ddp_contacts import on_a_ball, springy
from test_ddp_exact import both_ways, curved, pulled
from test_ddp_phases import CROUCH, H, HOP, REST, ROBOT, hop_cost, solo_on_its_feet

import liedyn as ld
from liedyn.machine.compiled.jit import kernel
from liedyn.mechanics.constraints.independent import holonomic
from liedyn.tasks.planning.phase_changes import advance
from liedyn.tasks.planning.solver import Division, Solver

STANCE, FLIGHT = ld.Phase(["foot"], 1), ld.Phase([], 1)


def pulled_skateboard():
    """A spring from the ground to the rider, and a bushing in a joint that rolls along."""
    b = ld.Builder.of(skateboard())
    b.spring("rope", "ground", "rider", (1.0, 0.5, 0.2), (0.0, 0.1, 0.5), 0.4, 30.0, 1.0)
    b.coordinate_force("cubic", {"rider": 1.0}, law=ld.PolynomialSpring(2.0, 0.4, 0.3, 0.2, 0.1, 0.05))
    return b.build()


def geared(robot):
    """With rotors behind gears, which an impact stops, too."""
    b = ld.Builder.of(robot)
    b.body("tail", 0.3, (0.1, 0.0, 0.1), (1e-3, 2e-3, 1e-3))
    b.joint("tail", "revolute", "trunk", "tail", (0.1, 0.0, 0.0), axis=(0, 1, 1), armature=0.05, stiffness=3.0,
            damping=0.1)
    return b.build()


@kernel
def advanced(model, d, r, k, q, v, u, q_next, v_next):
    return advance(model, d, r, k, (q, v), u, (q_next, v_next))


class Step:
    """The step, or the phase change, from knot k of a plan."""

    def __init__(self, robot, phases, k, method="midpoint", h=0.02, q=None):
        self.k, self.home = k, robot.home if q is None else q
        self.solver = Solver(robot, self.home, np.zeros(robot.nv), ld.Cost(), None, Division(
            phases, h, method, None, "exact"))
        self.robot, self.mask = self.solver.robots[self.solver.of_knot[k]], self.entries(k)

    def entries(self, k):
        """True for the entries of x that are coordinates and velocities of knot k."""
        phases, mask = self.solver.discretisation.phases, np.zeros(2 * self.solver.robot.nv, bool)
        i = phases.of_knot[k]
        mask[phases.entries[i, :phases.counts[i, :2].sum()]] = True
        return mask

    def moved(self, q, v, x):
        """The state of the phase of knot k that is x away."""
        robot, (y, w) = self.robot, self.mask.reshape(2, -1)
        dq, dw = x.reshape(2, -1)
        q, v = ld.integrate(robot, q, np.where(y, dq, 0.0)), v + np.where(w, dw, 0.0)
        if not robot.row_names:
            return q, v
        rows = holonomic(robot)
        for _ in range(20 if rows.any() else 0):
            dq = np.zeros(robot.nv)
            dq[~y] = -np.linalg.lstsq(ld.constraint_jacobian(robot, q)[rows][:, ~y], ld.closure_error(robot, q)[rows],
                                      rcond=1e-10)[0]
            q = ld.integrate(robot, q, dq)
            if np.abs(dq).max() < 1e-15:
                break
        G, forced = ld.constraint_jacobian(robot, q), v.copy()
        forced[~w] = -np.linalg.lstsq(G[:, ~w], G[:, w] @ v[w], rcond=1e-10)[0]
        return q, forced

    def end(self, q, v, u):
        q_next, v_next = np.empty_like(q), np.empty_like(v)
        solver = self.solver
        assert advanced(solver.model, solver.discretisation, solver.rooms.step, self.k, q, v, u, q_next, v_next)
        return q_next, v_next

    def derivatives(self, state, u, costate):
        """The end, [A B], and the Hessian weighted with a costate of the end."""
        path, x, end = self.solver.path, self.solver.expansion, self.end(*state, u)
        for k in range(len(path.q)):
            path.q[k], path.v[k] = state if k <= self.k else end
        path.u[:] = u
        x.lx[:], x.lx[self.k + 1] = 0.0, costate
        curved(self.solver.model, self.solver.discretisation, self.solver.rooms, path, x)
        n, k = x.A.shape[1], self.k
        second = np.zeros((n + len(u), n + len(u)))
        second[:n, :n], second[n:], second[:n, n:] = x.lxx[k], x.by_u[k], x.by_u[k, :, :n].T
        return end, np.hstack([x.A[k], x.B[k]]), second

    def slope(self, state, u, costate, along, z):
        """The derivative by t of costate . log(end(0)^-1 end(z + t along)), where ends are those of steps from z away.
        """
        n, solver = len(self.mask), self.solver
        (q, _), by, _ = self.derivatives(self.moved(*state, z[:n]), u + z[n:], costate)
        return pulled(self.robot, solver, ld.difference(self.robot, self.end(*state, u)[0], q), costate) @ by @ along

    def require_hessian(self, rng, scale=1.0, reach=0.3, directions=6):
        robot, n, nu = self.robot, len(self.mask), len(self.robot.actuator_names)
        state, u = self.moved(self.home, np.zeros(robot.nv), reach * rng.normal(size=n)), scale * rng.normal(size=nu)
        costate = np.where(self.entries(self.k + 1), rng.normal(size=n), 0.0)
        _, _, second = self.derivatives(state, u, costate)
        scales = np.concatenate([self.mask, np.full(nu, scale)])
        size = np.abs(second * scales * scales[:, None]).max()
        assert size > 1e-3 and np.abs(second - second.T).max() <= 1e-13 * np.abs(second).max()
        assert not second[scales == 0.0].any()
        for z in rng.normal(size=(directions, n + nu)):
            along = z * scales
            found = sixth_order(functools.partial(self.slope, state, u, costate, along), along, 1e-3)
            assert abs(found - along @ second @ along) <= 1e-8 * size * (z @ z)


@pytest.mark.parametrize("method", ["midpoint", "rk4"])
@pytest.mark.parametrize(
    "robot", [ld.load("shopping_cart"), ld.load("whipple_bicycle"), balancer("planar"), skateboard(),
              pulled_skateboard(), ld.load("rolling_spheres")], ids=lambda robot: robot.name)
def test_hessians_of_rolling_steps(robot, method):
    rng, small = np.random.default_rng(1), robot.name == "rolling_spheres"  # which weigh little
    for _ in range(2):
        Step(robot, 1, 0, method, 5e-3).require_hessian(rng, *((1e-3, 0.1) if small else (1.0, 0.3)))


@pytest.mark.parametrize("phases, k", [([STANCE], 0), ([FLIGHT], 0), ([FLIGHT, STANCE], 1), ([STANCE, FLIGHT], 1)],
                         ids=["stance", "flight", "touch", "leave"])
@pytest.mark.parametrize("robot", [ROBOT, springy(), on_a_ball(), geared(ROBOT)],
                         ids=["plain", "spring", "on a ball", "geared"])
def test_hessians_in_phases_and_between(robot, phases, k):
    """An impact from above the ground, where the foot is pulled to it, and a start that changes the rows alone."""
    rng = np.random.default_rng(2)
    q = np.concatenate([CROUCH, np.zeros(robot.nq - 4)])
    for _ in range(2):
        Step(robot, phases, k, q=q).require_hessian(rng)


def test_hessians_of_a_quadruped_that_changes_its_feet():
    """Redundant contacts, of which some open and others close at once, and a floating base."""
    solo, q, feet, _ = solo_on_its_feet()
    for phases in ([ld.Phase(feet[::3], 1), ld.Phase(feet[1:3], 1)], [ld.Phase([], 1), ld.Phase(feet, 1)]):
        Step(solo, phases, 1, h=0.01, q=q).require_hessian(np.random.default_rng(3), 1.0, 0.1, 2)


def test_a_balancer_gets_to_another_place_in_fewer_iterations():
    robot = balancer("planar")
    goal, names = robot.home.copy(), robot.velocity_names
    goal[:3] += 0.5, 0.5, 1.0
    cost = ld.Cost(Q={"pitch": 0.1}, R=1e-2, q=goal,
                   terminal_Q=dict.fromkeys(names[:4], 100.0) | {"velocity:pitch": 10.0})
    plain, exact = both_ways(robot, robot.home, cost, np.zeros((50, 2)))
    assert plain.status == exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-8)
    assert exact.iterations < plain.iterations  # 6 and 8


def test_a_skateboard_that_its_rider_steers():
    """Newton's model has a minimum as it begins, but promises what no part of its change keeps: the other one helps."""
    robot = skateboard()
    goal = robot.home.copy()
    goal[:2] += 4.5, 0.5
    cost = ld.Cost(Q={"rider": 0.1, "lean": 0.1, "velocity:rider": 1e-2}, R=1e-6, q=goal,
                   terminal_Q={"cart.y": 100.0, "cart.angle": 100.0})
    plain, exact = (ld.ddp(robot, robot.home, rolling(robot, **{"cart.x": 3.0}), cost, 75, 0.02, hessian=each)
                    for each in ("gauss-newton", "exact"))
    assert plain.status == exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-8)
    assert exact.iterations <= plain.iterations + 1  # 6 both; without the other one 19


def test_a_cart_turns_in_fewer_iterations():
    """Its wheels roll forward only: it has to turn to get aside."""
    cart = ld.load("shopping_cart")
    goal = cart.home + np.array([1.0, 0.1, 0.2, 0.0])
    cost = ld.Cost(Q=1e-3, R=1e-2, q=goal, terminal_Q=dict.fromkeys(cart.velocity_names[:3], 100.0))
    plain, exact = both_ways(cart, cart.home, cost, np.zeros((60, 4)), h=0.05)
    assert plain.status == exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-8)
    assert exact.iterations < 0.5 * plain.iterations  # 10 and 40


@pytest.mark.parametrize("limits", [ld.Limits(contacts=False), ld.Limits(contacts={"foot": 0.3})],
                         ids=["free", "friction"])
def test_a_hop_in_fewer_iterations(limits):
    """The same hop, with gaps of contacts and active friction cones, whose limits contribute by Gauss and Newton."""
    start = np.tile(CROUCH, (83, 1)), np.zeros((83, 4))
    plain, exact = (ld.ddp(ROBOT, CROUCH, REST, hop_cost(), HOP, H, start=start, limits=limits, hessian=each)
                    for each in ("gauss-newton", "exact"))
    assert plain.status == exact.status == "converged" and exact.violation <= 1e-6
    assert exact.cost == pytest.approx(plain.cost, rel=1e-5)
    assert exact.iterations < 0.8 * plain.iterations  # 30 and 54; 39 and 57


def test_a_controller_along_a_schedule():
    """Phases move along the plan from call to call, with second derivatives as without, in fewer iterations."""
    def goal(t):
        q = CROUCH.copy()
        q[0] = 0.2 * t
        return ld.Cost(Q={"x": 1.0, "z": 10.0, "hip": 0.1, "knee": 0.1}, R=1e-4, q=q,
                       terminal_Q=dict.fromkeys(ROBOT.velocity_names, 10.0))

    gait = [ld.Phase(["foot"], 6), ld.Phase([], 5)]
    plain, exact = (ld.MPC(ROBOT, CROUCH, REST, goal, 14, 0.02, method="midpoint", schedule=gait, iterations=60,
                           tolerance=1e-10, hessian=each) for each in ("gauss-newton", "exact"))
    for k in range(4):  # 36, 39, 15, 13 and 22, 27, 10, 10 iterations
        found = [mpc(0.02 * k, CROUCH, REST) for mpc in (plain, exact)]
        assert plain.status == exact.status == "converged" and exact.iterations < plain.iterations
        assert exact.plan.cost == pytest.approx(plain.plan.cost, rel=3e-4)
        np.testing.assert_allclose(*found, rtol=0, atol=1e-2 * np.abs(found[0]).max())
