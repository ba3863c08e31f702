"""Plans of robots with force elements: their steps are those of `simulate`, their derivatives those of the steps."""
import numpy as np
import pytest
from test_ddp import derivatives_of, moved, sixth_order, stepped

import liedyn as ld
from liedyn.tasks.planning.solver import Division, Solver

def tree():
    """A body on a ball joint and a free body, a bushing and a spring between them, and a force on a slider."""
    b = ld.Builder("sprung")
    b.body("top", 2.0, (0.0, 0.0, 0.3), (0.05, 0.06, 0.02))
    b.joint("ball", "spherical", "ground", "top")
    b.body("free", 1.5, (0.1, 0.0, 0.2), (0.05, 0.06, 0.02))
    b.joint("base", "free", "ground", "free")
    b.bushing("mount", "top", "free", stiffness=[30.0, 40.0, 50.0, 200.0, 300.0, 250.0],
              damping=[0.3, 0.4, 0.5, 2.0, 3.0, 2.5])
    b.spring("spring", "ground", "free", parent_placement=(0.5, 0.4, 0.3), length=0.2, stiffness=40.0, damping=0.7)
    return b.build()


def loop():
    """A five-bar with a spring, a law on a coordinate, and a second motor on its cut joint."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("wind_up", {"q1": 1.0}, stiffness=2.0, damping=0.3)
    b.actuator("second_motor", "pin")
    return b.build()


def start(robot):
    rng = np.random.default_rng(3)
    solver = Solver(robot, robot.home, np.zeros(robot.nv), ld.Cost(), None, Division(1, 0.01, "euler"))
    q, v = moved(robot, solver, robot.home.copy(), np.zeros(robot.nv), 0.2 * rng.normal(size=2 * len(solver.places)))
    return q, v, rng.normal(size=len(robot.actuator_names)), rng


@pytest.mark.parametrize("make, method", [(loop, "euler"), (loop, "midpoint"), (loop, "rk4"), (tree, "euler"),
                                          (tree, "midpoint")])
def test_derivatives_of_steps(make, method):
    robot = make()
    q, v, u, rng = start(robot)
    solver = Solver(robot, q, v, ld.Cost(), None, Division(4, 0.01, method))
    p = len(solver.places)
    q_1, v_1 = stepped(solver, q, v, u)
    A, B, gap = derivatives_of(solver, q, v, u)
    led = np.concatenate([ld.difference(robot, q, q_1)[solver.places], (v_1 - v)[solver.places]])
    assert np.allclose(gap, led, rtol=0, atol=1e-12)

    def at(z):
        found = stepped(solver, *moved(robot, solver, q, v, z[:2 * p]), u + z[2 * p:])
        return np.concatenate([ld.difference(robot, q_1, found[0])[solver.places], (found[1] - v_1)[solver.places]])

    for z in rng.normal(size=(3, 2 * p + len(u))):
        found = np.hstack([A, B]) @ z
        assert np.allclose(sixth_order(at, z, 1e-3), found, rtol=0, atol=2e-9 * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize("make", [loop, tree])
def test_local_state_spaces_are_those_of_linearize(make):
    robot = make()
    q, v, u, _ = start(robot)
    solver = Solver(robot, q, v, ld.Cost(), None, Division(2, 0.01, "euler"))
    derivatives_of(solver, q, v, u)
    found, known = solver.rooms.stages.found, ld.linearize(robot, q, v, u=u, independent=solver.y.names)
    for name in "A", "B", "f0":
        expected = getattr(known, name)
        assert np.abs(getattr(found, name)[0] - expected).max() <= 1e-11 * np.abs(expected).max()


def test_steps_are_those_of_simulate():
    """Without a loop the classical method makes the very steps of `simulate`."""
    b = ld.Builder.of(ld.load("panda"))
    b.coordinate_force("spring", {"panda_joint2": 1.0, "panda_joint4": -0.5}, stiffness=20.0, damping=3.0)
    robot = b.build()
    cost = ld.Cost(Q=1.0, R=1e-3, q=robot.home)
    plan = ld.ddp(robot, robot.home, [0.1] * 7, cost, steps=12, h=0.005, method="rk4")
    assert plan.status == "converged"
    q, v = plan.q[0], plan.v[0]
    for k, u in enumerate(plan.u):
        q, v, *_ = ld.step(robot, plan.q[k], plan.v[k], tau=robot.actuator_matrix @ u, dt=0.005)
        assert np.allclose(q, plan.q[k + 1], rtol=0, atol=1e-12) and np.allclose(v, plan.v[k + 1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("make", [loop, tree])
def test_order_of_steps(make):
    """Halved steps come closer to a fine simulation by a factor of four."""
    robot = make()
    q, v, u, _ = start(robot)
    exact, errors = ld.simulate(robot, q, v, 0.1, dt=5e-4, u=u), []
    for count in (16, 32, 64):
        solver, a, b = Solver(robot, q, v, ld.Cost(), None, Division(1, 0.1 / count, "midpoint")), q, v
        for _ in range(count):
            a, b = stepped(solver, a, b, u)
        errors.append(np.abs(np.concatenate([ld.difference(robot, exact.q[-1], a), b - exact.v[-1]])).max())
    assert np.log2(errors[0] / errors[2]) / 2.0 > 1.65


@pytest.mark.parametrize("make", [loop, tree])
def test_plans_are_the_best(make):
    robot = make()
    q, v, _, _ = start(robot)
    plan = ld.ddp(robot, q, v, ld.Cost(Q=1.0, R=1e-2, q=q), steps=10, h=0.01)
    assert plan.status == "converged" and plan.iterations < 20


@pytest.mark.parametrize("make", [loop, tree])
def test_a_single_phase_is_the_same_plan(make):
    """Phases linearize in coordinates of their own, and x is that of the whole tree."""
    robot = make()
    q, v, _, _ = start(robot)
    cost = ld.Cost(Q={name: 1.0 for name in robot.velocity_names}, R=1e-2, q=q)
    names = Solver(robot, q, v, ld.Cost(), None, Division(1, 0.01, "midpoint")).y.names
    plan, phased = (ld.ddp(robot, q, v, cost, steps=steps, h=0.01, independent=names)
                    for steps in (10, [ld.Phase([], 10)]))
    assert plan.status == phased.status == "converged"
    assert np.abs(plan.u - phased.u).max() <= 1e-6 * np.abs(plan.u).max() and phased.costs[0] == pytest.approx(
        plan.costs[0], rel=1e-10)
