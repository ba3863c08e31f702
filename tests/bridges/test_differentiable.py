"""What the bridges to JAX, PyTorch and CasADi share: functions of plain numbers, and their Jacobians."""
import copy
import pickle

import numpy as np
import pytest
from comparison import off
from mechanisms import MOVING_KINDS, random_tree
from numba import njit
from test_energy import STENCIL

import liedyn as ld
from liedyn.bridges.differentiable import changed_model, operations, runs
from liedyn.bridges.differentiable.maps import Chain
from liedyn.bridges.differentiable.quaternions import rates, rotations, tangent, with_unit_quaternions

STEP = 0.01  # differences of order 8: truncation 1e-16 f^(9), rounding 1e-14 f

def tree():
    """All kinds of joints, balls and free ones among them."""
    return random_tree(np.random.default_rng(3), MOVING_KINDS).build()


def springs():
    """A tree whose force elements depend on its state."""
    builder = random_tree(np.random.default_rng(4), ["revolute", "spherical", "prismatic"])
    builder.spring("spring", "body0", "body2", stiffness=20.0, damping=3.0, length=0.4)
    return builder.build()


ROBOTS = {"panda": lambda: ld.load("panda"), "all joints": tree, "springs": springs}
LOOPS = ["five_bar", "stewart", "rolling_disk"]  # cut joints, redundant rows and balls, rolling
H = 0.01
OPERATIONS = {"rnea": operations.inverse_dynamics, "forward_dynamics": operations.forward_dynamics,
              "forward_kinematics": operations.poses,
              "pose": lambda robot: operations.poses(robot, robot.body_names[-1])}


def consistent(robot, rng, count):
    """States on the constraints."""
    q = np.array([ld.close(robot, ld.integrate(robot, robot.home, 0.05 * rng.normal(size=robot.nv)))
                  for _ in range(count)])
    v, G = rng.normal(size=(count, robot.nv)), ld.constraint_jacobian(robot, q)
    return q, v - (np.linalg.pinv(G) @ G @ v[..., None])[..., 0]


def arguments(operation, rng, count=3):
    """States at random, with quaternions of any length."""
    robot = operation.robot
    q = ld.random_configuration(robot, rng, count)
    for k, _, _ in rotations(robot):
        q[:, k:k + 4] *= rng.uniform(0.5, 2.0, size=(count, 1))
    return q, *(rng.normal(size=(count, *shape)) for name, shape in operation.arguments.items() if name != "q")


def with_units(robot, q):
    return with_unit_quaternions(robot, q)[0]


def differences(operation, x, i, step=STEP):
    """For each result its derivatives by the numbers of argument i, by central differences of order 8."""
    columns = []
    for c in range(operations.size(x[i].shape[1:])):
        unit = np.zeros(x[i][0].size)
        unit[c] = step
        unit, sides = unit.reshape(x[i].shape[1:]), {**STENCIL, **{-k: -w for k, w in STENCIL.items()}}
        results = [operation.evaluate(*x[:i], x[i] + k * unit, *x[i + 1:]) for k in sides]
        columns.append([sum(w * y for w, y in zip(sides.values(), each)) / step for each in zip(*results)])
    return [np.stack([np.reshape(y, (len(y), -1)) for y in each], axis=-1) for each in zip(*columns)]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_derivatives_by_numbers_are_those_of_differences(robot, name):
    operation = OPERATIONS[name](ROBOTS[robot]())
    x = arguments(operation, np.random.default_rng(1))
    found, matrices = operation.differentiate(*x)
    for actual, expected in zip(found, operation.evaluate(*x)):
        assert np.array_equal(actual, expected)
    for i in range(len(x)):
        for actual, expected in zip(matrices[i::len(x)], differences(operation, x, i)):
            assert off(actual, expected) < 1e-9


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("robot", ["panda", "all joints"])
def test_second_derivatives_by_numbers(robot, name):
    """Of every block of the Jacobian along a direction of each argument, for quaternions of any length."""
    operation, rng = OPERATIONS[name](ROBOTS[robot]()), np.random.default_rng(2)
    x = arguments(operation, rng)
    second, count = operation.second(*x), len(x)
    for i, along in enumerate(rng.normal(size=each.shape) for each in x):

        def blocks(t, i=i, along=along):
            return operation.differentiate(*x[:i], x[i] + t * along, *x[i + 1:])[1]

        moved = [(45.0 * (b - a) - 9.0 * (d - c) + (f - e)) / 0.06 for a, b, c, d, e, f in zip(
            *(blocks(t) for t in (-1e-3, 1e-3, -2e-3, 2e-3, -3e-3, 3e-3)))]
        for k, each in enumerate(moved):
            found = (second[k * count + i] @ along[:, None, :, None])[..., 0]
            assert found.shape == each.shape
            if each.size:
                assert np.abs(found - each).max() <= 1e-9 * max(1.0, np.abs(each).max())


@pytest.mark.parametrize("name", [*LOOPS, "springs"])
def test_second_derivatives_of_constrained_dynamics(name):
    """By every coordinate alone, also where that opens the loops; multipliers where all rows count."""
    robot = springs() if name == "springs" else ld.load(name)
    operation, rng = operations.forward_dynamics(robot), np.random.default_rng(4)
    x = arguments(operation, rng, 2)
    if robot.row_names:
        x = *consistent(robot, rng, 2), rng.normal(size=(2, robot.nv))
    second, redundant = operation.second(*x), False
    if robot.row_names:
        redundant = ld.forward_dynamics(robot, *x).rank[0] < len(robot.row_names)
    for i, along in enumerate(rng.normal(size=each.shape) for each in x):

        def blocks(t, i=i, along=along):
            return operation.differentiate(*x[:i], x[i] + t * along, *x[i + 1:])[1]

        moved = [(45.0 * (b - a) - 9.0 * (d - c) + (f - e)) / 0.06 for a, b, c, d, e, f in zip(
            *(blocks(t) for t in (-1e-3, 1e-3, -2e-3, 2e-3, -3e-3, 3e-3)))]
        for k, each in enumerate(moved[:3 if redundant else 6]):
            found = (second[3 * k + i] @ along[:, None, :, None])[..., 0]
            assert np.abs(found - each).max(initial=0.0) <= 1e-8 * max(1.0, np.abs(each).max(initial=0.0)), (k, i)


def test_multipliers_of_redundant_rows_to_second_order():
    """Along velocities and forces, and along motions of the mechanism, on which redundant rows stay redundant."""
    robot, rng = ld.load("five_bar"), np.random.default_rng(6)
    operation = operations.forward_dynamics(robot)
    x = *consistent(robot, rng, 1), rng.normal(size=(1, robot.nv))
    G = ld.constraint_jacobian(robot, x[0][0])
    dq, dv, dtau = (np.eye(4) - np.linalg.pinv(G) @ G) @ rng.normal(size=4), *rng.normal(size=(2, 4))
    bent, second, blocks = ld.curvature(robot, x[0][0], ("q1", "q2")), operation.second(*x), (dq, dv, dtau)
    H = sum(second[9 + 3 * i + j][0] @ blocks[j] @ blocks[i] for i in range(3) for j in range(3))
    H = H + operation.differentiate(*x)[1][3][0] @ (bent.second @ dq[:2] @ dq[:2])

    def lam(t):
        q = x[0][0] + t * dq
        q = ld.close(robot, q, {"q1": q[0], "q2": q[1]})
        return ld.forward_dynamics(robot, q, x[1][0] + t * dv, x[2][0] + t * dtau).lam

    found = (-lam(2e-3) + 16.0 * lam(1e-3) - 30.0 * lam(0.0) + 16.0 * lam(-1e-3) - lam(-2e-3)) / 12e-6
    assert np.abs(H - found).max() < 1e-6 * np.abs(found).max()


def test_what_has_no_second_derivatives():
    arm = ld.load("five_bar")
    b = ld.Builder.of(arm)
    b.coordinate_force("hard", {"q1": 1.0}, law=njit(lambda x, w: (x ** 3, 3.0 * x * x, 0.0)))
    for operation, said in ((operations.forward_dynamics(b.build()), "force element 'hard', whose law is a function"),
                            (runs.step(arm, 0.01), "those of Step are not known"),
                            (changed_model.operation(operations.inverse_dynamics, arm, (), True), "by inertia are")):
        x = [np.zeros(shape) for shape in operation.arguments.values()]
        x[0][:] = operation.robot.home
        with pytest.raises(ld.LiedynError, match=said):
            operation.second(*x)


@pytest.mark.parametrize("name", LOOPS)
def test_constrained_dynamics(name):
    """By every coordinate alone, also where that opens the loops."""
    operation, rng = operations.forward_dynamics(ld.load(name)), np.random.default_rng(1)
    x = *consistent(operation.robot, rng, 3), rng.normal(size=(3, operation.robot.nv))
    matrices = operation.differentiate(*x)[1]
    redundant = ld.forward_dynamics(operation.robot, *x).rank[0] < len(operation.robot.row_names)
    for i in range(3):
        of_a, of_lam = differences(operation, x, i)
        assert off(matrices[i], of_a) < 1e-8  # of which the differences have 1e-9
        if not redundant:  # multipliers jump where rows cease to be redundant
            assert off(matrices[3 + i], of_lam) < 1e-8


@pytest.mark.parametrize("robot", ROBOTS)
def test_steps_of_trees(robot):
    operation = runs.step(ROBOTS[robot](), H)
    x = arguments(operation, np.random.default_rng(1))
    found, matrices = operation.differentiate(*x)
    for actual, expected in zip(found, operation.evaluate(*x)):
        assert np.array_equal(actual, expected)
    for i in range(3):
        for actual, expected in zip(matrices[i::3], differences(operation, x, i)):
            assert off(actual, expected) < 1e-9


@pytest.mark.parametrize("name", LOOPS)
def test_steps_on_constraints(name):
    """Against differences of steps of `simulate` that begin off the constraints, and end on them by projection."""
    robot, rng = ld.load(name), np.random.default_rng(2)
    operation, tau = runs.step(robot, H), rng.normal(size=(1, robot.nv))
    q, v = consistent(robot, rng, 1)

    def end(q, v, tau):
        run = ld.simulate(robot, q[0], v[0], H, tau=tau, dt=H, start="as given")
        return run.q[-1:], run.v[-1:]

    by_numbers = type("Free", (), {"evaluate": staticmethod(lambda q, v, tau: end(with_units(robot, q), v, tau))})
    for i in range(3):
        for actual, expected in zip(operation.differentiate(q, v, tau)[1][i::3],
                                    differences(by_numbers, (q, v, tau), i, 1e-3)):
            assert off(actual, expected) < 1e-8  # projections from further away are strongly nonlinear


def test_runs_are_chains_of_steps():
    """States are those of `simulate`, matrices those of `differentiate_run`; forwards, in reverse, and dense."""
    robot, rng, steps = ld.load("five_bar"), np.random.default_rng(3), 12
    q, v = consistent(robot, rng, 2)
    tau = rng.normal(size=(2, steps, robot.nv))
    operation = runs.rollout(robot, H, tau.shape)
    found, matrices = operation.differentiate(q, v, tau)
    dense, n = operation.map.dense(matrices), robot.nv
    for b in range(2):
        run = ld.differentiate_run(robot, q[b], v[b], steps * H, tau=tau[b], dt=H)
        assert off(found[0][b], run.trajectory.q) < 1e-13 and off(found[1][b], run.trajectory.v) < 1e-13
        assert off(matrices[0][b], run.by_state) < 1e-12 and off(matrices[1][b], run.by_inputs) < 1e-12
        dq, dv, du = rng.normal(size=n), rng.normal(size=n), rng.normal(size=tau[b].shape)
        moved = run.forward(dq, dv, du)
        tools = [operation.map.forward(np, scan, [x[b] for x in matrices], [dq, dv, du.ravel()]),
                 [sum(block[b] @ x for block, x in zip(dense[k:k + 3], (dq, dv, du.ravel()))) for k in (0, 3)]]
        for of_q, of_v in tools:
            assert off(of_q.reshape(-1, n), moved.q) < 1e-12 and off(of_v.reshape(-1, n), moved.v) < 1e-12
        weights = rng.normal(size=(2, steps + 1, n))
        gradient = run.adjoint(*weights)
        found_q, found_v, found_u = operation.map.reverse(np, scan, [x[b] for x in matrices], weights.reshape(2, -1))
        assert off(found_q, gradient.q0) < 1e-12 and off(found_v, gradient.v0) < 1e-12
        assert off(found_u.reshape(steps, n), gradient.inputs) < 1e-12
    for block, pattern in zip(dense, operation.map.patterns()):
        assert not block[:, ~pattern].any()


def scan(function, carried, sequences):
    rows = []
    for at in zip(*sequences):
        carried, row = function(carried, at)
        rows.append(row)
    return carried, np.array(rows)


def test_runs_with_quaternions():
    """The matrices of a floating robot by plain numbers, multiplied along a run, against differences of all of it."""
    robot = random_tree(np.random.default_rng(5), ["free", "spherical", "revolute"]).build()
    operation = runs.rollout(robot, H, (5, robot.nv))
    x = arguments(operation, np.random.default_rng(6), 2)
    dense = operation.map.dense(operation.differentiate(*x)[1])
    for i in range(3):
        for actual, expected in zip(dense[i::3], differences(operation, x, i)):
            assert off(actual, expected) < 1e-9


@pytest.mark.parametrize("robot", ["panda", "all joints", "five_bar"])
@pytest.mark.parametrize("make, options", [(operations.inverse_dynamics, ()), (operations.forward_dynamics, ()),
                                           (runs.step, (H,)), (runs.rollout, (H, (4, 0)))],
                         ids=["rnea", "forward_dynamics", "step", "rollout"])
def test_inertial_parameters(make, options, robot):
    """Others for each state; derivatives along a direction in which all bodies stay bodies that can exist."""
    robot, rng = ROBOTS[robot]() if robot in ROBOTS else ld.load(robot), np.random.default_rng(8)
    options = (H, (4, robot.nv)) if make is runs.rollout else options
    operation = changed_model.operation(make, robot, options, "given")
    if robot.row_names:
        q, v = consistent(robot, rng, 2)
    else:
        q, v = arguments(operations.inverse_dynamics(robot), rng, 2)[:2]
    x = q, v, rng.normal(size=(2, *list(operation.arguments.values())[2]))
    pi = np.multiply.outer([1.0, 1.2], ld.inertial_parameters(robot))
    found, matrices = operation.differentiate(*x, pi)
    plain = make(ld.with_inertial_parameters(robot, pi[1]), *options)
    for actual, expected in zip(found, plain.evaluate(*(each[1:] for each in x))):
        assert off(actual[1:], expected) < 1e-14
    along, dense = 0.1 * rng.uniform(size=pi.shape[:2] + (1,)) * pi, operation.map.dense(matrices)
    changes = [sum(w * (a - b) for w, a, b in zip(STENCIL.values(), up, down)) / STEP for up, down in zip(
        *(zip(*(operation.evaluate(*x, pi + sign * k * STEP * along) for k in STENCIL)) for sign in (1.0, -1.0)))]
    for block, expected in zip(dense[3::4], changes):
        actual = (block @ along.reshape(2, -1, 1)).reshape(expected.shape)
        assert np.abs(actual - expected).max(initial=0.0) < 1e-10 * max(1.0, np.abs(expected).max(initial=0.0))
    for k, block in enumerate(plain.map.dense(plain.differentiate(*(each[1:] for each in x))[1])):
        assert off(dense[k + k // 3][1:], block) < 1e-13
    if isinstance(operation.map, Chain):  # in reverse the transposed of forwards
        changes = [*(rng.normal(size=(2, each[0].size)) for each in x), rng.normal(size=(2, pi[0].size))]
        weights = [rng.normal(size=(2, each[0].size)) for each in found]
        for b in range(2):
            at = [X[b] for X in matrices]
            forwards = operation.map.forward(np, scan, at, [dx[b] for dx in changes])
            backwards = operation.map.reverse(np, scan, at, [w[b] for w in weights])
            assert np.isclose(sum(w[b] @ dy for w, dy in zip(weights, forwards)),
                              sum(dx[b] @ g for dx, g in zip(changes, backwards)), rtol=1e-11)


def test_what_runs_refuse():
    five_bar, still = ld.load("five_bar"), np.zeros(4)
    with pytest.raises(ld.ClosureError, match="is open by"):
        runs.step(five_bar, H).evaluate(five_bar.home + 0.1, still, still)
    with pytest.raises(ld.InputError, match="dt must be positive"):
        runs.step(five_bar, 0.0)
    for shape in ((4,), (0, 4), (5, 3)):
        with pytest.raises(ld.InputError, match=r"tau must have shape \(..., steps, 4\)"):
            runs.rollout(five_bar, H, shape)
    builder = ld.Builder.of(ld.load("panda"))
    builder.constraint("floor", "on_plane", "ground", "panda_hand", unilateral=True)
    with pytest.raises(ld.InputError, match="one-sided constraints"):
        runs.step(builder.build(), H)


def test_quaternions_of_any_length_are_rotations():
    """f(Q) = f(Q / |Q|), and the derivative along Q is zero."""
    operation = operations.forward_dynamics(tree())
    rng = np.random.default_rng(2)
    q, v, tau = arguments(operation, rng)
    unit, lengths = with_unit_quaternions(operation.robot, q)
    assert lengths.shape == (3, len(rotations(operation.robot))) and (abs(lengths - 1.0) > 1e-3).any()
    assert off(operation.evaluate(q, v, tau)[0], ld.aba(operation.robot, unit, v, tau)) < 1e-14
    slopes = operation.differentiate(q, v, tau)[1][0]
    for k, _, _ in rotations(operation.robot):
        along = np.zeros_like(q)
        along[:, k:k + 4] = q[:, k:k + 4]
        assert np.abs(slopes @ along[..., None]).max() < 1e-13 * np.abs(slopes).max()


def test_rates_of_numbers():
    """Q theta is the rate of q exp(t theta), and W its left inverse that is zero along quaternions."""
    robot, rng = tree(), np.random.default_rng(3)
    q, theta = ld.random_configuration(robot, rng), rng.normal(size=robot.nv)
    moved = sum(w * (ld.integrate(robot, q, k * STEP * theta) - ld.integrate(robot, q, -k * STEP * theta))
                for k, w in STENCIL.items()) / STEP
    Q = rates(robot, q)
    assert off(Q @ theta, moved) < 1e-11  # truncation of |theta| = 3
    W = tangent(robot, q, np.ones(len(rotations(robot))))
    assert off(W @ Q, np.eye(robot.nv)) < 1e-14
    assert np.linalg.matrix_rank(W) == robot.nv and np.abs(W @ (np.eye(robot.nq) - Q @ W)).max() < 1e-14


def test_a_quaternion_of_length_zero():
    robot = ld.load("solo12")
    q = robot.home.copy()
    q[:4] = 0.0
    with pytest.raises(ld.InputError, match="quaternion of joint .* is zero"):
        operations.forward_dynamics(robot).evaluate(q, np.zeros(robot.nv), np.zeros(robot.nv))


def test_operations_are_kept_with_the_robot_and_travel_with_it():
    robot = ld.load("panda")
    operation = operations.forward_dynamics(robot)
    operation._memo["of a framework"] = lambda: None  # cannot be pickled
    assert operations.forward_dynamics(robot) is operation
    for other in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        x = robot.home, np.zeros(7), np.ones(7)
        assert np.array_equal(operations.forward_dynamics(other).evaluate(*x)[0], operation.evaluate(*x)[0])


def test_unknown_bodies():
    with pytest.raises(ld.InputError, match="unknown body 'hnd'"):
        operations.poses(ld.load("panda"), "hnd")
