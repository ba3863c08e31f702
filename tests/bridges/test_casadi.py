"""Functions for CasADi against the library's own numbers, in expressions and in Ipopt."""
import gc
import subprocess
import sys

import numpy as np
import pytest
from comparison import off
from mechanisms import MOVING_KINDS, random_tree
from scipy.linalg import block_diag

import liedyn as ld

casadi = pytest.importorskip("casadi", reason="CasADi is not installed")

import liedyn.casadi as bridge  # noqa: E402
from liedyn.bridges.differentiable import operations  # noqa: E402

PANDA = ld.load("panda")
FIVE_BAR = ld.load("five_bar")
TREE = random_tree(np.random.default_rng(3), MOVING_KINDS).build()
LIMITED_MEMORY = {"ipopt.hessian_approximation": "limited-memory", "ipopt.print_level": 0, "print_time": False,
                  "ipopt.sb": "yes"}


def states(robot, count=5, seed=0):
    rng = np.random.default_rng(seed)
    return ld.random_configuration(robot, rng, count), *rng.normal(size=(2, count, robot.nv))


def symbols(*arrays):
    """MX for arrays whose rows are states."""
    return [casadi.MX.sym(f"x{k}", *x.T.shape) for k, x in enumerate(arrays)]


def test_values():
    q, v, x = states(PANDA)
    given = symbols(q, v, x)
    results = (bridge.rnea(PANDA, *given), bridge.forward_dynamics(PANDA, *given).a,
               bridge.pose(PANDA, given[0], "panda_hand"))
    expected = (ld.rnea(PANDA, q, v, x), ld.aba(PANDA, q, v, x),
                np.vstack(np.swapaxes(ld.pose(PANDA, q, "panda_hand"), 1, 2)))
    for actual, each in zip(casadi.Function("f", given, results)(q.T, v.T, x.T), expected):
        assert off(actual.full().T, each) < 1e-14
    for body, matrix in enumerate(bridge.forward_kinematics(PANDA, q[0])):  # of numbers
        assert off(matrix.full(), ld.forward_kinematics(PANDA, q[0])[body]) < 1e-14


def test_jacobians_are_the_librarys():
    """Sparse, block by block; along directions forwards and in reverse, too."""
    q, v, x = states(PANDA)
    given = symbols(q, v, x)
    for function, expected in ((bridge.rnea, ld.rnea_derivatives(PANDA, q, v, x)),
                               (lambda *x: bridge.forward_dynamics(*x).a, ld.aba_derivatives(PANDA, q, v, x))):
        y = function(PANDA, *given)
        jacobians = [casadi.jacobian(y, each) for each in given]
        along, back = casadi.jtimes(y, given[0], given[1]), casadi.jtimes(y, given[1], given[2], True)
        *found, along, back = casadi.Function("f", given, [*jacobians, along, back])(q.T, v.T, x.T)
        for actual, each in zip(found, expected):
            assert actual.nnz() == each.size and off(actual.full(), block_diag(*each)) < 1e-12
        assert off(along.full().T, np.einsum("bij,bj->bi", expected[0], v)) < 1e-12
        assert off(back.full().T, np.einsum("bij,bi->bj", expected[1], x)) < 1e-12


def test_quaternions():
    """Derivatives by the numbers of q are those that the operation has, which tests of its own check by differences."""
    q, v, x = states(TREE, 2)
    q *= 1.3
    given = symbols(q, v, x)
    y = bridge.forward_dynamics(TREE, *given).a
    T = casadi.vertcat(*(casadi.vec(each) for each in bridge.forward_kinematics(TREE, given[0])))
    slopes = casadi.Function("f", given, [casadi.jacobian(y, given[0]), casadi.jacobian(T, given[0])])
    by_q, poses_by_q = slopes(q.T, v.T, x.T)
    assert off(by_q.full(), block_diag(*operations.forward_dynamics(TREE).differentiate(q, v, x)[1][0])) < 1e-14
    expected = operations.poses(TREE).differentiate(q)[1][0].reshape(2, TREE.nbodies, 4, 4, TREE.nq)
    found = poses_by_q.full().reshape(TREE.nbodies, 2, 4, 4, 2, TREE.nq)  # column by column
    for b in range(2):
        assert off(found[:, b, :, :, b].swapaxes(1, 2), expected[b]) < 1e-14
        assert not found[:, b, :, :, 1 - b].any()


def five_bars(count):
    """States on the constraints, and forces."""
    rng = np.random.default_rng(7)
    q = ld.close(FIVE_BAR, FIVE_BAR.home, q1=FIVE_BAR.home[0] + rng.uniform(-0.2, 0.2, count))
    return q, ld.complete_velocity(FIVE_BAR, q, {"q1": rng.normal(size=count), "q2": 0.3}), rng.normal(size=(count, 4))


def test_closed_loops():
    """Accelerations and multipliers of several states."""
    q, v, tau = five_bars(4)
    given = symbols(q, v, tau)
    found = bridge.forward_dynamics(FIVE_BAR, *given)
    expected = ld.forward_dynamics_derivatives(FIVE_BAR, q, v, tau)
    jacobians = [casadi.jacobian(y, x) for y in found for x in given]
    for actual, name in zip(casadi.Function("f", given, jacobians)(q.T, v.T, tau.T),
                            ("a_q", "a_v", "a_tau", "lam_q", "lam_v", "lam_tau")):
        assert off(actual.full(), block_diag(*getattr(expected, name))) < 1e-12


def test_the_gradient_of_a_run():
    """By its start and its forces: against the adjoint of the library's own run."""
    q, v, _ = (x[0] for x in five_bars(1))
    tau = np.random.default_rng(1).normal(size=(20, 4))
    given = casadi.MX.sym("q", 4), casadi.MX.sym("v", 4), casadi.MX.sym("tau", 4, 20)
    run = bridge.rollout(FIVE_BAR, *given, 0.01)
    total = casadi.sumsqr(run.q[:, -1] - 1.0) + casadi.sumsqr(run.v) / 10
    function = casadi.Function("f", given, [run.q, run.v, *(casadi.gradient(total, x) for x in given)])
    of_q, of_v, *gradient = (x.full().T for x in function(q, v, tau.T))
    own = ld.differentiate_run(FIVE_BAR, q, v, 0.2, tau=tau, dt=0.01)
    assert off(of_q, own.trajectory.q) < 1e-13 and off(of_v, own.trajectory.v) < 1e-13
    weights = np.zeros((21, 4))
    weights[-1] = 2 * (own.trajectory.q[-1] - 1.0)
    expected = own.adjoint(weights, own.trajectory.v / 5)
    for actual, each in zip(gradient, (expected.q0[None], expected.v0[None], expected.inputs)):
        assert off(actual, each) < 1e-12
    pattern = casadi.jacobian(casadi.vec(run.q), casadi.vec(given[2])).sparsity()
    assert pattern.nnz() == 16 * 20 * 21 // 2  # forces act on what comes later


def test_inertial_parameters():
    """Inverse dynamics is linear in them: their Jacobian is the regressor; that of a run is what JAX has, too."""
    q, v, a = (x[0] for x in five_bars(1))
    pi = casadi.MX.sym("pi", 10 * FIVE_BAR.nbodies)
    given = ld.inertial_parameters(FIVE_BAR).ravel()
    tau = casadi.Function("f", [pi], [casadi.jacobian(bridge.rnea(FIVE_BAR, q, v, a, pi), pi)])
    assert off(tau(given).full(), ld.inertial_regressor(FIVE_BAR, q, v, a).reshape(4, -1)) < 1e-14
    end = bridge.rollout(FIVE_BAR, q, v, np.tile(a, (5, 1)).T, 0.01, pi).q[:, -1]
    by_mass = casadi.Function("f", [pi], [casadi.jacobian(end, pi)])(given).full() @ given  # all of them heavier
    expected = ld.differentiate_run(FIVE_BAR, q, v, 0.05, tau=a, dt=0.01, parameters=["mass:*", "inertia.*"])
    values = np.concatenate([ld.inertial_parameters(FIVE_BAR)[:, 0], [
        body.inertia[np.triu_indices(3)] for body in FIVE_BAR.model.bodies]], axis=None)
    assert off(by_mass, expected.forward(parameters=values).q[-1]) < 1e-12


def test_multiple_shooting():
    """Swing-up of a pendulum from knot to knot; the states of the result are those of a run with its forces."""
    builder = ld.Builder("pendulum")
    builder.body("rod", 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01))
    builder.joint("hinge", "revolute", "ground", "rod", axis=(0.0, 1.0, 0.0))
    pendulum, steps, h = builder.build(), 40, 0.05
    q, v, tau = casadi.MX.sym("q", 1, steps + 1), casadi.MX.sym("v", 1, steps + 1), casadi.MX.sym("tau", 1, steps)
    end = bridge.step(pendulum, q[:, :-1], v[:, :-1], tau, h)
    gaps = casadi.vertcat(*(casadi.vec(x) for x in (
        q[:, 1:] - end.q, v[:, 1:] - end.v, q[:, 0], v[:, 0], q[:, -1] - np.pi, v[:, -1])))
    problem = {"x": casadi.vertcat(*(casadi.vec(x) for x in (q, v, tau))), "f": h * casadi.sumsqr(tau), "g": gaps}
    solver = casadi.nlpsol("solver", "ipopt", problem, LIMITED_MEMORY | {"ipopt.max_iter": 500, "ipopt.tol": 1e-8})
    guess = np.concatenate([np.linspace(0.0, np.pi, steps + 1), np.full(steps + 1, np.pi / 2), np.zeros(steps)])
    found = solver(x0=guess, lbg=0.0, ubg=0.0)["x"].full()[:, 0]
    assert solver.stats()["success"]
    run = ld.simulate(pendulum, [0.0], [0.0], steps * h, tau=found[2 * steps + 2:, None], dt=h)
    assert abs(run.q[-1, 0] - np.pi) < 1e-5 and off(run.q[:, 0], found[:steps + 1]) < 1e-5


def test_one_column_goes_with_many():
    q, v, x = states(PANDA)
    given = symbols(q)[0]
    y = bridge.rnea(PANDA, given, v[0], x.T)
    assert off(casadi.Function("f", [given], [y])(q.T).full().T, ld.rnea(PANDA, q, v[0], x)) < 1e-14


def test_expressions_keep_what_they_need():
    def rest():
        q = casadi.MX.sym("q", 7)
        return casadi.Function("f", [q], [bridge.rnea(ld.load("panda"), q, [0.0] * 7, [0.0] * 7)])

    function = rest()
    gc.collect()
    assert off(function(PANDA.home).full()[:, 0], ld.rnea(PANDA, PANDA.home, np.zeros(7), np.zeros(7))) < 1e-14


def test_equations_by_newtons_method():
    """The configuration at which given torques hold the arm: CasADi's rootfinder, and the library's own residual."""
    q, held = casadi.MX.sym("q", 7), PANDA.home + 0.1
    tau = ld.rnea(PANDA, held, np.zeros(7), np.zeros(7))
    wanted = casadi.vertcat(q[0], bridge.rnea(PANDA, q, [0.0] * 7, [0.0] * 7)[1:])  # joint 1 does not feel gravity
    solver = casadi.rootfinder("solver", "newton", {"x": q, "g": wanted - casadi.vertcat(held[0], tau[1:])})
    found = solver(x0=PANDA.home + 0.08)["x"].full()[:, 0]
    assert off(ld.rnea(PANDA, found, np.zeros(7), np.zeros(7)), tau) < 1e-9


def test_second_derivatives():
    """Of several states at once; sparse, a block for each state."""
    q, v, x = states(PANDA)
    given, weights = symbols(q, v, x), np.random.default_rng(1).normal(size=(7, len(q)))
    for function, second in ((bridge.rnea, ld.rnea_second_derivatives),
                             (lambda *x: bridge.forward_dynamics(*x).a, ld.aba_second_derivatives)):
        weighted = casadi.dot(weights, function(PANDA, *given))
        hessian, gradient = casadi.hessian(weighted, given[0])
        mixed = casadi.jacobian(gradient, given[2])
        assert hessian.nnz() == mixed.nnz() == len(q) * 49
        expected = second(PANDA, q, v, x, weights=weights.T)
        found = casadi.Function("f", given, [hessian, mixed])(q.T, v.T, x.T)
        for actual, each in zip(found, (expected[0], expected[3])):
            assert off(actual.full(), block_diag(*each)) < 1e-11
    q, v, x = (each[:2] for each in states(TREE))
    at, weights = casadi.MX.sym("q", *q.T.shape), np.random.default_rng(1).normal(size=(TREE.nv, 2))
    hessian, _ = casadi.hessian(casadi.dot(weights, bridge.rnea(TREE, at, v.T, x.T)), at)
    expected = np.einsum("bi,bijk->bjk", weights.T, operations.inverse_dynamics(TREE).second(q, v, x)[0])
    assert off(casadi.Function("f", [at], [hessian])(q.T).full(), block_diag(*expected)) < 1e-11
    at, (v, tau, weights) = casadi.MX.sym("q", 4), np.random.default_rng(2).normal(size=(3, 4))
    hessian, _ = casadi.hessian(casadi.dot(weights, bridge.forward_dynamics(FIVE_BAR, at, v, tau).a), at)
    expected = np.einsum("i,ijk", weights, operations.forward_dynamics(FIVE_BAR).second(FIVE_BAR.home, v, tau)[0])
    assert off(casadi.Function("f", [at], [hessian])(FIVE_BAR.home).full(), expected) < 1e-11


def test_ipopt_with_exact_hessians():
    """The same optimum as with limited memory, in fewer iterations; the Hessian of the constraint is in it."""
    q, point = casadi.MX.sym("q", 7), ld.pose(PANDA, PANDA.home, "panda_hand")[:3, 3] + [0.05, 0.2, -0.1]
    effort = casadi.sumsqr(bridge.rnea(PANDA, q, [0.0] * 7, [0.0] * 7)) / 1e3 + casadi.sumsqr(q - PANDA.home)
    problem = {"x": q, "f": effort, "g": bridge.pose(PANDA, q, "panda_hand")[:3, 3]}
    quiet = {name: value for name, value in LIMITED_MEMORY.items() if "hessian" not in name}
    found, iterations = [], []
    for options in (LIMITED_MEMORY, quiet):
        solver = casadi.nlpsol("solver", "ipopt", problem, options | {"ipopt.tol": 1e-10})
        found.append(solver(x0=PANDA.home, lbg=point, ubg=point)["x"].full())
        assert solver.stats()["success"]
        iterations.append(solver.stats()["iter_count"])
    assert off(*found) < 1e-6 and iterations[1] < iterations[0]


def test_ipopt():
    """The hand to a point with the least torques that gravity asks for: the optimum of Lagrange's conditions."""
    q, point = casadi.MX.sym("q", 7), ld.pose(PANDA, PANDA.home, "panda_hand")[:3, 3] + [0.05, 0.1, -0.1]
    effort = casadi.sumsqr(bridge.rnea(PANDA, q, [0.0] * 7, [0.0] * 7)) / 1e3 + casadi.sumsqr(q - PANDA.home)
    problem = {"x": q, "f": effort, "g": bridge.pose(PANDA, q, "panda_hand")[:3, 3]}
    solver = casadi.nlpsol("solver", "ipopt", problem, LIMITED_MEMORY | {"ipopt.tol": 1e-10})
    found = solver(x0=PANDA.home, lbg=point, ubg=point)
    assert solver.stats()["success"]
    at = found["x"].full()[:, 0]
    assert off(ld.pose(PANDA, at, "panda_hand")[:3, 3], point) < 1e-9
    tau = ld.rnea(PANDA, at, np.zeros(7), np.zeros(7))
    slope = ld.rnea_derivatives(PANDA, at, np.zeros(7), np.zeros(7))[0]
    J = ld.pose(PANDA, at, "panda_hand")[:3, :3] @ ld.body_jacobian(PANDA, at, "panda_hand")[3:]
    gradient = 2 * tau @ slope / 1e3 + 2 * (at - PANDA.home)
    assert np.abs(gradient + J.T @ found["lam_g"].full()[:, 0]).max() < 1e-8  # of a gradient of 1


def test_what_is_wrong_is_said():
    q, rest = casadi.MX.sym("q", 7), np.zeros(7)
    for given, said in (((q[:6], rest, rest), r"q must have shape \(7, n\), got \(6, 1\)"),
                        ((q, "rest", rest), "v must be numbers"), ((q, rest, 1j * rest), "a must be numbers"),
                        ((q, np.zeros((7, 3)), np.zeros((7, 2))), "numbers of columns do not go together"),
                        ((casadi.SX.sym("q", 7), rest, rest), "q is SX"),
                        ((np.nan * rest, rest, rest), "q is not finite"),
                        ((q, np.zeros((7, 2, 2)), rest), "v must be a column"),
                        ((q, np.zeros((7, 0)), rest), "v must have")):
        with pytest.raises(ld.InputError, match=said):
            bridge.rnea(PANDA, *given)
    with pytest.raises(ld.InputError, match="expected a Robot"):
        bridge.rnea("panda", q, rest, rest)
    with pytest.raises(RuntimeError, match="q is not finite"):
        casadi.Function("f", [q], [bridge.rnea(PANDA, q, rest, rest)])(np.nan * rest)
    with pytest.raises(RuntimeError, match="no second derivatives.*limited-memory"):
        casadi.hessian(casadi.sumsqr(bridge.step(PANDA, q, rest, rest, 0.01).v), q)


def test_without_casadi():
    program = "import sys; sys.modules['casadi'] = None; import liedyn.casadi"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "LiedynError" in done.stderr and "pip install 'liedyn[casadi]'" in done.stderr
