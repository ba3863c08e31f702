"""Plans with exact second derivatives of their steps: the Hessian of a step, and what it is good for."""
import functools

import numpy as np
import pytest
from test_ddp import FIVE_BAR, LOADER, PANDA, moved, sixth_order, start_of, stepped, top

import liedyn as ld
from liedyn.lie import right_jacobian_inverse, so3_right_jacobian_inverse
from liedyn.machine.compiled.jit import kernel
from liedyn.tasks.planning.exact_hessian import add_step_hessians
from liedyn.tasks.planning.expansion import expand_steps
from liedyn.tasks.planning.solver import Division, Solver

SCREW = ld.Builder("screw")
SCREW.body("nut", 1.3, (0.1, 0.0, 0.05), (0.02, 0.03, 0.01))
SCREW.body("arm", 0.8, (0.0, 0.2, 0.1), (0.02, 0.01, 0.03))
SCREW.body("slide", 0.5, (0.1, 0.0, 0.1), (0.01, 0.01, 0.02))
SCREW.joint("screw", "helical", "ground", "nut", axis=(0, 0, 1), pitch=0.1)
SCREW.joint("turn", "revolute", "nut", "arm", axis=(1, 0, 0), placement=(0.0, 0.3, 0.1), stiffness=2.0, damping=0.3)
SCREW.joint("slide", "prismatic", "arm", "slide", axis=(0, 1, 1), placement=(0.0, 0.3, 0.1), armature=0.2)
SCREW.actuator("motor", "turn")
SCREW.actuator("piston", "slide")
SCREW = SCREW.build()


RODS = ld.Builder("rods")
for side, at in (("left", 0.0), ("right", 0.5)):
    RODS.body(side, 1.0, (0.0, 0.0, -0.3), (0.03, 0.03, 1e-3))
    RODS.joint(f"{side}_pin", "revolute", "ground", side, axis=(0, 1, 0.1), placement=(at, 0.0, 0.0))
RODS.constraint("coupler", "distance", "left", "right", parent_placement=(0.0, 0.0, -0.6),
                child_placement=(0.0, 0.1, -0.5), length=0.27**0.5)
RODS.actuator("motor", "left_pin")
RODS = RODS.build()


def crane():
    """A five-bar with a spring between bodies and a gas spring, and a motor on the coordinate of its cut joint."""
    b = ld.Builder.of(FIVE_BAR)
    b.spring("spring", "ground", "link2", stiffness=20.0, damping=0.3)
    b.spring("gas", "ground", "link4", (0.5, 0.5, 0.2), law=ld.GasSpring(2.0, column=9.0, exponent=1.2, damping=0.1))
    b.actuator("second_motor", "pin")
    return b.build()


def drone():
    """A free hull with thrusters, a hinge with a cubic spring, a bushing, and a winch whose cable goes round a drum."""
    b = ld.Builder("drone", gravity=(0.0, 0.0, -9.81))
    b.body("hull", 1.0, (0.1, 0.0, 0.05), (0.3, 0.4, 0.5))
    b.body("arm", 0.6, (0.0, 0.2, 0.1), (0.05, 0.04, 0.03))
    b.joint("free", "free", "ground", "hull", driven=False)
    b.joint("hinge", "revolute", "hull", "arm", (0.3, 0.0, 0.1), axis=(0, 1, 1), driven=False)
    b.coordinate_force("cubic", {"hinge": 1.0}, law=ld.PolynomialSpring(2.0, 0.4, 0.3, 0.2, 0.1, 0.05))
    b.thruster("jet", "hull", (0.1, 0.2, 0.0), force=(0.3, 0.1, 2.0), torque=(0.0, 0.1, 0.2))
    b.thruster("hook", "arm", (0.0, 0.1, 0.0), force=(1.0, 0.5, 0.0), axes="world")
    b.bushing("mount", "ground", "hull", (0.3, 0.1, 0.2), (0.1, 0.0, -0.2), stiffness=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
              damping=0.1)
    b.winch("winch", [("ground", (2.0, 0.5, 1.0)), ld.Pulley("hull", (0.1, 0.0, 0.2), 0.2), ("arm", (-1.5, 0.4, 0.7))],
            gear=2.0)
    return b.build()


@kernel
def curved(model, d, rooms, path, x):
    expand_steps(model, d, rooms.stages, rooms.step, rooms.forward.dq, path, True, x)
    x.lxx[:] = x.by_u[:] = 0.0
    add_step_hessians(model, d, rooms.stages, rooms.step, rooms.curvature, path, x)


def exact_solver(robot, method, steps=1, h=0.05):
    return Solver(robot, robot.home, np.zeros(robot.nv), ld.Cost(), None, Division(steps, h, method, None, "exact"))


def derivatives_at(solver, q, v, u, costate):
    """[A B] and the Hessian of the step from a state, weighted with a costate of its end."""
    path, x = solver.path, solver.expansion
    path.q[:], path.v[:], path.u[:] = q, v, u
    x.lx[:], x.lx[-1] = 0.0, costate
    curved(solver.model, solver.discretisation, solver.rooms, path, x)
    first, second = np.hstack([x.A[0], x.B[0]]), np.zeros((x.A.shape[1] + u.size,) * 2)
    n = x.A.shape[1]
    second[:n, :n], second[n:], second[:n, n:] = x.lxx[0], x.by_u[0], x.by_u[0, :, :n].T
    return first.copy(), second


def pulled(robot, solver, dq, costate):
    """The costate at the end of a step, as the weights of changes of another end that is dq away, seen from there."""
    found = costate.copy()
    for group in robot.groups:
        at = np.flatnonzero(np.isin(solver.places, range(group.start, group.stop)))
        J = (so3_right_jacobian_inverse if len(at) == 3 else right_jacobian_inverse)(dq[group])
        found[at] = J.T @ costate[at]
    return found


def slope(solver, state, costate, along, z):
    """The derivative by t of costate . log(end(0)^-1 end(z + t along)), where ends are those of steps from z away."""
    robot, (q, v, u), n = solver.robot, state, 2 * len(solver.places)
    at = moved(robot, solver, q, v, z[:n])
    ends = [stepped(solver, *each)[0] for each in (state, (*at, u + z[n:]))]
    by, _ = derivatives_at(solver, *at, u + z[n:], costate)
    return pulled(robot, solver, ld.difference(robot, *ends), costate) @ by @ along


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize(
    "robot", [PANDA, SCREW, top(), FIVE_BAR, LOADER, RODS, crane(), drone()], ids=lambda robot: robot.name)
def test_hessians_of_steps(robot, method):
    if robot.groups and method == "rk4":
        return
    solver, rng = exact_solver(robot, method), np.random.default_rng(5)
    n, nu = 2 * len(solver.places), len(robot.actuator_names)
    for _ in range(2):
        q, v, u, scale = start_of(robot, rng)
        if not robot.row_names:
            q = moved(robot, solver, q, v, np.concatenate([rng.normal(size=n // 2), np.zeros(n // 2)]))[0]
        costate = rng.normal(size=n)
        _, H = derivatives_at(solver, q, v, u, costate)
        assert np.abs(H - H.T).max() <= 1e-13 * np.abs(H).max()
        scales = np.append(np.ones(n), np.full(nu, scale))
        size = np.abs(H * scales * scales[:, None]).max()
        for along in rng.normal(size=(8, n + nu)) * scales:
            found = sixth_order(functools.partial(slope, solver, (q, v, u), costate, along), along, 1e-3)
            assert abs(found - along @ H @ along) <= 1e-8 * size * (along @ (along / scales**2))


def cart_pole():
    b = ld.Builder("cart_pole")
    b.body("cart", 1.0, (0.0, 0.0, 0.0), (1e-3, 1e-3, 1e-3))
    b.body("pole", 0.3, (0.0, 0.0, -0.5), (1e-3, 1e-3, 1e-4))
    b.joint("x", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("angle", "revolute", "cart", "pole", axis=(0, -1, 0))
    b.actuator("motor", "x")
    return b.build()


def acrobot():
    b = ld.Builder("acrobot")
    for name in ("upper", "lower"):
        b.body(name, 1.1, (0.0, 0.0, -0.45), (0.08, 0.08, 1e-4))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("elbow", "revolute", "upper", "lower", axis=(0, 1, 0), placement=(0, 0, -0.9))
    b.actuator("motor", "elbow")
    return b.build()


def both_ways(robot, q0, cost, start, **options):
    """Plans with Gauss-Newton and with exact second derivatives."""
    options = dict(steps=len(start), h=0.02, start=start, iterations=600) | options
    return [ld.ddp(robot, q0, np.zeros(robot.nv), cost, hessian=each, **options) for each in ("gauss-newton", "exact")]


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
def test_a_cart_pole_swings_up_in_fewer_iterations(method):
    cost = ld.Cost(Q=1e-3, R=1e-3, q=[0.0, np.pi], terminal_Q=100.0)
    start = 0.1 * np.random.default_rng(0).normal(size=(100, 1))
    plain, exact = both_ways(cart_pole(), [0.0, 0.0], cost, start, method=method)
    assert plain.status == exact.status == "converged"
    assert exact.cost == pytest.approx(plain.cost, rel=1e-6) and exact.cost <= plain.cost
    assert exact.iterations < 0.5 * plain.iterations  # 53 and 169


@pytest.mark.parametrize("method", ["midpoint", "rk4"])
def test_a_five_bar_gets_there_in_fewer_iterations(method):
    """Links of a closed loop, whose dynamics bend along a wide motion."""
    home, rest = FIVE_BAR.home, np.zeros(4)
    goal = ld.close(FIVE_BAR, home, q1=home[0] + 0.8, q2=home[1] - 0.56)
    hold = ld.inverse_dynamics(FIVE_BAR, home, rest, [0.0, 0.0]).u
    cost = ld.Cost(Q={"velocity:q1": 1.0, "velocity:q2": 1.0}, R=1e-2, q=goal, terminal_Q=10.0)
    plain, exact = both_ways(FIVE_BAR, home, cost, np.tile(hold, (40, 1)), method=method)
    assert plain.status == exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-8)
    assert exact.iterations <= 5 and plain.iterations >= 8  # 4 and 9


def double_pendulum(motors):
    b = ld.Builder("double", gravity=(0.0, 0.0, -9.81))
    for name, joint, parent, place in (("upper", "shoulder", "ground", 0.0), ("lower", "elbow", "upper", -1.0)):
        b.body(name, 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 1e-3))
        b.joint(joint, "revolute", parent, name, axis=(0, 1, 0), placement=(0, 0, place))
    for joint in motors:
        b.actuator(joint, joint)
    return b.build()


@pytest.mark.parametrize("motors, steps, iterations", [
    (("shoulder", "elbow"), 100, (88, 25)), (("shoulder",), 150, (99, 46))], ids=["both driven", "pendubot"])
def test_double_pendulums_swing_up(motors, steps, iterations):
    robot, start = double_pendulum(motors), 0.5 * np.random.default_rng(0).normal(size=(steps, len(motors)))
    cost = ld.Cost(Q=1e-3, R=1e-3, q=[np.pi, 0.0], terminal_Q=100.0)
    plain, exact = both_ways(robot, [0.0, 0.0], cost, start)
    assert plain.status == exact.status == "converged" and exact.cost <= plain.cost * (1.0 + 1e-9)
    assert exact.iterations < plain.iterations <= 2 * iterations[0] and exact.iterations <= 2 * iterations[1]


def test_a_pendulum_on_springs_swings_up():
    """Force elements bend the dynamics: a spring from the tip to the ground, and a cubic one at the elbow."""
    b = ld.Builder.of(double_pendulum(("shoulder", "elbow")))
    b.spring("spring", "ground", "lower", (1.0, 0.0, 1.0), (0.0, 0.0, -1.0), length=0.5, stiffness=8.0, damping=0.2)
    b.coordinate_force("cubic", {"elbow": 1.0}, law=ld.PolynomialSpring(1.0, 0.0, 2.0, 0.1, 0.0, 0.05))
    start = 0.5 * np.random.default_rng(0).normal(size=(60, 2))
    cost = ld.Cost(Q=1e-3, R=1e-3, q=[np.pi, 0.0], terminal_Q=100.0)
    plain, exact = both_ways(b.build(), [0.0, 0.0], cost, start)
    assert plain.status == exact.status == "converged" and exact.cost <= plain.cost * (1.0 + 1e-9)
    assert exact.iterations < plain.iterations


def test_wide_reaches():
    """A panda within half a second, and a loader: no dearer, and in fewer iterations."""
    rest = np.zeros(7)
    far = PANDA.home + np.array([2.0, 0.9, -1.2, 1.2, 1.4, -1.3, 1.5])
    hold = np.tile(ld.rnea(PANDA, PANDA.home, rest, rest), (25, 1))
    plans = both_ways(PANDA, PANDA.home, ld.Cost(Q=1e-3, R=1e-4, q=far, terminal_Q=100.0), hold)
    home, goal = LOADER.home, ld.close(LOADER, LOADER.home, boom=0.35, bucket=-0.3)
    hold = np.tile(ld.inverse_dynamics(LOADER, home, np.zeros(8), [0.0, 0.0]).u, (50, 1))
    cost = ld.Cost(Q={"velocity:boom": 1.0, "velocity:bucket": 1.0}, R=1e-9, q=goal, terminal_Q={
        "boom": 1e4, "bucket": 1e4, "velocity:boom": 1e3, "velocity:bucket": 1e3})
    for plain, exact in (plans, both_ways(LOADER, home, cost, hold)):  # 18 and 12 iterations, 6 and 3
        assert plain.status == exact.status == "converged" and exact.cost <= plain.cost * (1.0 + 1e-8)
        assert exact.iterations < plain.iterations


def test_inputs_at_their_limits():
    """The same minimum as of Gauss and Newton, with the motor at its limits most of the time."""
    cost = ld.Cost(Q=1e-4, R=1e-5, q=[np.pi, 0.0], terminal_Q=1e3)
    start = np.clip(3.6 * np.random.default_rng(3).normal(size=(150, 1)), -12.0, 12.0)
    plain, exact = both_ways(acrobot(), [0.0, 0.0], cost, start, method="euler", limits=ld.Limits(inputs=(-12.0, 12.0)))
    assert exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-4)
    assert np.abs(exact.u).max() <= 12.0 and exact.iterations <= plain.iterations


def test_it_ends_as_newtons_method_does():
    """Near the minimum the slope falls quadratically, where that of Gauss and Newton falls by a constant factor."""
    cost = ld.Cost(Q=1e-3, R=1e-3, q=[0.0, np.pi], terminal_Q=100.0)
    start = 0.1 * np.random.default_rng(0).normal(size=(100, 1))
    found = ld.ddp(cart_pole(), [0.0, 0.0], np.zeros(2), cost, 100, 0.02, start=start, hessian="exact", iterations=600)
    pushed = found.u + 0.1 * np.random.default_rng(1).normal(size=found.u.shape)
    plain, exact = both_ways(cart_pole(), [0.0, 0.0], cost, pushed, tolerance=1e-12)
    assert exact.iterations <= 4 and plain.iterations > 5 * exact.iterations  # 3 and 35
    assert exact.cost == pytest.approx(plain.cost, rel=1e-9)


def test_limits_of_states_and_states_to_begin_with():
    """A ball goes around a wall from states that do not follow from one another: gaps, multipliers, groups."""
    b = ld.Builder("kite", gravity=(0.0, 0.0, 0.0))
    b.body("kite", 1.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.3))
    b.joint("base", "free", "ground", "kite")
    robot = b.build()
    q0 = ld.integrate(robot, robot.neutral, [0.9, -0.7, 0.4, 0.0, 0.0, 0.0])
    goal = robot.neutral.copy()
    goal[4:] = 0.2, -0.1, 0.3
    cost = ld.Cost(Q=1e-3, R=1e-3, q=goal, terminal_Q=50.0)
    limits = ld.Limits(coordinates={"base.x": (-1.0, 0.15)})
    way = np.array([ld.integrate(robot, q0, s * ld.difference(robot, q0, goal)) for s in np.linspace(0.0, 1.0, 16)])
    plans = [ld.ddp(robot, q0, np.zeros(6), cost, 15, 0.1, limits=limits, start=(way, np.zeros((16, 6))), hessian=each)
             for each in ("gauss-newton", "exact")]
    assert all(plan.status == "converged" for plan in plans)
    assert plans[1].cost == pytest.approx(plans[0].cost, rel=1e-6)
    assert plans[1].q[:, 4].max() == pytest.approx(0.15, abs=1e-6)


def test_an_unknown_kind_of_second_derivatives():
    with pytest.raises(ld.InputError, match="hessian"):
        ld.ddp(FIVE_BAR, FIVE_BAR.home, np.zeros(4), ld.Cost(), 5, 0.01, hessian="newton")


def test_a_controller_with_exact_second_derivatives():
    """The same inputs as by Gauss and Newton, from fewer iterations of the first plan."""
    home, rest = FIVE_BAR.home, np.zeros(4)
    goal = ld.close(FIVE_BAR, home, q1=home[0] + 0.8, q2=home[1] - 0.56)
    hold = ld.inverse_dynamics(FIVE_BAR, home, rest, [0.0, 0.0]).u
    cost = ld.Cost(Q={"velocity:q1": 1.0, "velocity:q2": 1.0}, R=1e-2, q=goal, u=hold, terminal_Q=10.0)
    plain, exact = (ld.MPC(FIVE_BAR, home, rest, cost, 40, 0.02, method="midpoint", iterations=30, tolerance=1e-9,
                           hessian=each) for each in ("gauss-newton", "exact"))
    for t in (0.0, 0.02):
        found = [mpc(t, home, rest) for mpc in (plain, exact)]
        np.testing.assert_allclose(*found, rtol=0, atol=1e-3 * np.abs(found[0]).max())
        assert exact.status == plain.status == "converged" and exact.iterations < plain.iterations
        assert exact.plan.cost == pytest.approx(plain.plan.cost, rel=1e-6)
